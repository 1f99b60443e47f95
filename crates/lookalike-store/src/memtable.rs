//! The newest documents, in memory, with indexes by id, sketch, text and paragraph.

mod hamming;
mod slot_chain;

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use crate::bits::AtomicBits;
use crate::codec::fixed;
use crate::document::{StoredDocument, StoredParagraph, TextHash};
use crate::document_sketch::SketchForm;
use crate::id_hash::IdHasher;
use crate::pair_rule::PairFilter;
use crate::place_index::PlaceIndex;
use crate::searches::ContentSearch;
use crate::settings::IndexShape;
use crate::time::UnixMillis;

use hamming::GrowingHammingIndex;
use slot_chain::{SlotChain, SlotLinks};

/// Estimated memory in bytes for the fingerprint of a paragraph, which is in up to four buckets of the index and has a list of documents.
const PARAGRAPH_CODE_BYTES: usize = 150;

/// An index of distinct sketches, numbered in order of insertion.
#[derive(Debug)]
enum GrowingSketchIndex {
    Codes(GrowingHammingIndex),
    Places(PlaceIndex),
}

impl GrowingSketchIndex {
    fn new(shape: IndexShape) -> Self {
        match shape.form {
            SketchForm::Fingerprint => Self::Codes(GrowingHammingIndex::new(shape.radius)),
            form => Self::Places(PlaceIndex::new(form, shape.radius)),
        }
    }

    fn find(&self, sketch: &[u8]) -> Option<u32> {
        match self {
            Self::Codes(codes) => codes.find(fixed(sketch)),
            Self::Places(places) => places.find(sketch),
        }
    }

    fn insert(&mut self, sketch: &[u8]) -> (u32, bool) {
        match self {
            Self::Codes(codes) => codes.insert(fixed(sketch)),
            Self::Places(places) => places.insert(sketch),
        }
    }

    /// Returns the memory in bytes that sketches with much in common take besides.
    fn divided_bytes(&self) -> usize {
        match self {
            Self::Codes(_) => 0,
            Self::Places(places) => places.divided_bytes(),
        }
    }

    fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        match self {
            Self::Codes(codes) => codes.search(fixed(sketch), radius, visit),
            Self::Places(places) => places.search(sketch, radius, visit),
        }
    }
}

/// Documents in order of insertion. The slot of a document is its position in this order.
#[derive(Debug)]
pub(crate) struct MemTable {
    documents: Vec<Arc<StoredDocument>>,
    hashes: Vec<u64>,
    pub(crate) tombstones: AtomicBits,
    by_id: HashTable<u32>,
    pub(crate) shape: IndexShape,
    by_sketch: GrowingSketchIndex,
    /// Slots of each sketch in `by_sketch`.
    with_sketch: Vec<SlotChain>,
    sketch_links: SlotLinks,
    with_text: HashMap<TextHash, SlotChain>,
    text_links: SlotLinks,
    /// Slots of each paragraph by its hash.
    paragraphs: HashMap<u64, Vec<u32>>,
    by_paragraph_code: GrowingHammingIndex,
    /// Slots of each code in `by_paragraph_code`.
    with_paragraph_code: Vec<Vec<u32>>,
    /// Earliest time at which a document expires.
    first_expiry: UnixMillis,
    bytes: usize,
}

impl MemTable {
    pub(crate) fn new(shape: IndexShape) -> Self {
        Self {
            documents: Vec::new(),
            hashes: Vec::new(),
            tombstones: AtomicBits::default(),
            by_id: HashTable::new(),
            shape,
            by_sketch: GrowingSketchIndex::new(shape),
            with_sketch: Vec::new(),
            sketch_links: SlotLinks::default(),
            with_text: HashMap::new(),
            text_links: SlotLinks::default(),
            paragraphs: HashMap::new(),
            by_paragraph_code: GrowingHammingIndex::new(shape.paragraph_radius),
            with_paragraph_code: Vec::new(),
            first_expiry: UnixMillis::NEVER,
            bytes: 0,
        }
    }

    /// Returns the number of documents, including deleted ones.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Returns the number of live documents at a given time. Takes linear time once any document has expired.
    pub(crate) fn live(&self, now: UnixMillis) -> usize {
        if now < self.first_expiry {
            return self.len() - self.tombstones.count();
        }
        let slots = 0..self.len() as u32;
        slots.filter(|&slot| self.is_alive(slot, now)).count()
    }

    /// Returns the estimated size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.by_sketch.divided_bytes()
    }

    pub(crate) fn document(&self, slot: u32) -> &Arc<StoredDocument> {
        &self.documents[slot as usize]
    }

    /// Tells whether the document in a slot is live at a given time.
    pub(crate) fn is_alive(&self, slot: u32, now: UnixMillis) -> bool {
        !self.tombstones.get(slot as usize) && self.document(slot).is_alive(now)
    }

    /// Adds a document and returns its slot. The caller makes sure that no live document has the same id.
    pub(crate) fn push(&mut self, document: Arc<StoredDocument>, hasher: &IdHasher) -> u32 {
        let slot = self.documents.len() as u32;
        let hash = hasher.hash(&document.id);
        let hashes = &mut self.hashes;
        // Before the insert: a table that grows hashes its slots again from this list.
        hashes.push(hash);
        self.by_id
            .insert_unique(hash, slot, |&slot| hashes[slot as usize]);
        // Every slot has a link in both lists, even if its document has no sketch or text, so that the slot is the index of its link.
        self.sketch_links.grow();
        self.text_links.grow();
        self.documents.push(Arc::clone(&document));
        let (has_traits, documents) = (self.shape.has_traits, &self.documents);
        let traits = |slot: u32| documents[slot as usize].traits;
        if let Some(sketch) = document.sketch(self.shape.form) {
            let (group, new) = self.by_sketch.insert(&sketch.to_bytes());
            // Sketches are numbered in order of insertion, so the chain of a new one is the next.
            if new {
                self.with_sketch.push(SlotChain::default());
            }
            let chain = &mut self.with_sketch[group as usize];
            chain.push(slot, &mut self.sketch_links, document.traits);
            if has_traits {
                self.bytes += chain.index(&self.sketch_links, traits);
            }
            if self.shape.form != SketchForm::Fingerprint {
                // Another copy of the sketch, and about twelve bytes for each of its bands.
                self.bytes += self.shape.form.bytes() + 12 * self.shape.form.parts();
            }
        }
        if let Some(hash) = document.text_hash {
            let chain = self.with_text.entry(hash).or_default();
            chain.push(slot, &mut self.text_links, document.traits);
            if has_traits {
                self.bytes += chain.index(&self.text_links, traits);
            }
            self.bytes += 40;
        }
        self.first_expiry = self
            .first_expiry
            .min(document.expires.unwrap_or(UnixMillis::NEVER));
        for &paragraph in &document.paragraphs {
            self.push_paragraph(paragraph, slot);
        }
        // A document takes about 300 bytes in indexes and lists besides its parts. An estimate is enough: it only decides when a memtable
        // is full.
        self.bytes += 300 + document.size();
        self.tombstones.grow(self.documents.len());
        slot
    }

    fn push_paragraph(&mut self, paragraph: StoredParagraph, slot: u32) {
        let add = |slots: &mut Vec<u32>| {
            // A document may repeat a paragraph. Slots are added in ascending order, so comparing with the last one is enough.
            if slots.last() != Some(&slot) {
                slots.push(slot);
            }
        };
        add(self.paragraphs.entry(paragraph.hash).or_default());
        self.bytes += 32;
        if let Some(code) = paragraph.fingerprint {
            let (group, new) = self.by_paragraph_code.insert(code.0);
            if new {
                self.with_paragraph_code.push(Vec::new());
            }
            add(&mut self.with_paragraph_code[group as usize]);
            self.bytes += PARAGRAPH_CODE_BYTES;
        }
    }

    /// Finds the slot of the document with an id that is not deleted or replaced; it may have expired.
    pub(crate) fn find(&self, id: &str, hash: u64) -> Option<u32> {
        // `mark_deleted` leaves dead slots in the table, so several may have this id, of which at most one is not dead.
        let found = self.by_id.find(hash, |&slot| {
            !self.tombstones.get(slot as usize) && self.documents[slot as usize].id == id
        });
        found.copied()
    }

    /// Marks a document as deleted or replaced, while others may read.
    pub(crate) fn mark_deleted(&self, slot: u32) {
        self.tombstones.set(slot as usize);
    }

    /// Marks a document like [`MemTable::mark_deleted`] and removes it from the indexes, so that lookups stay fast even if the same id is
    /// replaced a million times.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.mark_deleted(slot);
        let found = self
            .by_id
            .find_entry(self.hashes[slot as usize], |&other| other == slot);
        if let Ok(entry) = found {
            entry.remove();
        }
        // Lists of paragraphs keep the dead slot, which searches leave out. The document stays in memory, too, so `bytes` does not shrink.
        let content = self.documents[slot as usize].content(self.shape.form);
        let traits = self.documents[slot as usize].traits;
        let is_dead = |slot: u32| self.tombstones.get(slot as usize);
        let group = content
            .sketch
            .and_then(|sketch| self.by_sketch.find(&sketch.to_bytes()));
        if let Some(group) = group {
            let chain = &mut self.with_sketch[group as usize];
            chain.remove(slot, &self.sketch_links, traits, is_dead);
        }
        if let Some(hash) = content.text_hash
            && let Some(chain) = self.with_text.get_mut(&hash)
        {
            chain.remove(slot, &self.text_links, traits, is_dead);
            if chain.is_empty() {
                self.with_text.remove(&hash);
            }
        }
    }

    /// Finds the oldest live document that has the text searched for, leaving out those for which `skip` returns true.
    pub(crate) fn find_text(
        &self,
        search: &ContentSearch,
        skip: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let content = &search.content;
        let chain = self.with_text.get(&content.text_hash?)?;
        let traits = |slot| self.document(slot).traits;
        let mut slots = chain.admitted(&self.text_links, search.filter, traits);
        slots.find(|&slot| {
            self.is_alive(slot, search.now)
                && !skip(slot)
                && self
                    .document(slot)
                    .content(self.shape.form)
                    .is_same_text(content)
        })
    }

    /// Visits every sketch within `radius`, as a number for [`MemTable::admitted`], with its distance.
    pub(crate) fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        self.by_sketch.search(sketch, radius, visit);
    }

    /// Returns the slots of a sketch that a filter admits, from the oldest to the newest, including dead ones.
    pub(crate) fn admitted(
        &self,
        group: u32,
        filter: PairFilter,
    ) -> Box<dyn Iterator<Item = u32> + '_> {
        let traits = |slot| self.document(slot).traits;
        self.with_sketch[group as usize].admitted(&self.sketch_links, filter, traits)
    }

    /// Returns the slots of documents that have the paragraph with this hash, from the oldest to the newest, including dead ones.
    pub(crate) fn with_paragraph(&self, hash: u64) -> &[u32] {
        self.paragraphs.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Visits every paragraph code within `radius`, as a number for [`MemTable::with_paragraph_code`], with its distance.
    pub(crate) fn search_paragraphs(
        &self,
        code: u64,
        radius: u32,
        visit: &mut dyn FnMut(u32, u32),
    ) {
        self.by_paragraph_code.search(code, radius, visit);
    }

    /// Returns the slots of documents that have a paragraph with this code, from the oldest to the newest, including dead ones.
    pub(crate) fn with_paragraph_code(&self, group: u32) -> &[u32] {
        &self.with_paragraph_code[group as usize]
    }
}
