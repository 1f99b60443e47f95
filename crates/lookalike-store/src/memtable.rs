//! The newest documents, in memory: by id, by sketch, by text, by paragraph.

mod hamming;
mod slot_chain;

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use crate::bits::AtomicBits;
use crate::codec::fixed;
use crate::document::{StoredDocument, StoredParagraph, TextHash};
use crate::document_sketch::SketchForm;
use crate::id_hash::IdHasher;
use crate::place_index::PlaceIndex;
use crate::searches::ContentSearch;
use crate::settings::IndexShape;
use crate::time::UnixMillis;

use hamming::GrowingHammingIndex;
use slot_chain::{SlotChain, SlotLinks};

/// Memory of the fingerprint of a paragraph: in up to four buckets of the index, and in the list of its documents.
const PARAGRAPH_CODE_BYTES: usize = 150;

/// Distinct sketches, numbered in the order in which they came.
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

    fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        match self {
            Self::Codes(codes) => codes.search(fixed(sketch), radius, visit),
            Self::Places(places) => places.search(sketch, radius, visit),
        }
    }
}

/// Documents in the order in which they came; a slot is a place in that order.
#[derive(Debug)]
pub(crate) struct MemTable {
    documents: Vec<Arc<StoredDocument>>,
    hashes: Vec<u64>,
    tombstones: AtomicBits,
    by_id: HashTable<u32>,
    form: SketchForm,
    by_sketch: GrowingSketchIndex,
    /// Slots of each sketch of `by_sketch`.
    with_sketch: Vec<SlotChain>,
    sketch_links: SlotLinks,
    with_text: HashMap<TextHash, SlotChain>,
    text_links: SlotLinks,
    /// Slots of each paragraph, by its hash.
    paragraphs: HashMap<u64, Vec<u32>>,
    by_paragraph_code: GrowingHammingIndex,
    /// Slots of each code of `by_paragraph_code`.
    with_paragraph_code: Vec<Vec<u32>>,
    /// The first time at which a document expires.
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
            form: shape.form,
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

    /// Number of documents, including deleted ones.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Number of documents that are live at a time. As many steps as documents, once any has expired.
    pub(crate) fn live(&self, now: UnixMillis) -> usize {
        if now < self.first_expiry {
            return self.len() - self.tombstones.count();
        }
        let slots = 0..self.len() as u32;
        slots.filter(|&slot| self.is_alive(slot, now)).count()
    }

    /// Bytes of the documents.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn document(&self, slot: u32) -> &Arc<StoredDocument> {
        &self.documents[slot as usize]
    }

    pub(crate) fn tombstones(&self) -> &AtomicBits {
        &self.tombstones
    }

    /// Tells whether the document of a slot is live at a time.
    pub(crate) fn is_alive(&self, slot: u32, now: UnixMillis) -> bool {
        !self.tombstones.get(slot as usize) && self.document(slot).is_alive(now)
    }

    /// Adds a document; that there is no live one with its id is the caller's business.
    pub(crate) fn push(&mut self, document: Arc<StoredDocument>, hasher: &IdHasher) -> u32 {
        let slot = self.documents.len() as u32;
        let hash = hasher.hash(&document.id);
        let hashes = &mut self.hashes;
        hashes.push(hash);
        self.by_id
            .insert_unique(hash, slot, |&slot| hashes[slot as usize]);
        // One link a slot in each list of links, whether the document has a sketch or a text: the slot is the
        // index.
        self.sketch_links.grow();
        if let Some(sketch) = document.sketch(self.form) {
            let (group, new) = self.by_sketch.insert(&sketch.to_bytes());
            if new {
                self.with_sketch.push(SlotChain::default());
            }
            self.with_sketch[group as usize].push(slot, &mut self.sketch_links);
            if self.form != SketchForm::Fingerprint {
                // The sketch once more, and some twelve bytes for each of its bands.
                self.bytes += self.form.bytes() + 12 * self.form.parts();
            }
        }
        self.text_links.grow();
        if let Some(hash) = document.text_hash {
            let chain = self.with_text.entry(hash).or_default();
            chain.push(slot, &mut self.text_links);
            self.bytes += 32;
        }
        self.first_expiry = self
            .first_expiry
            .min(document.expires.unwrap_or(UnixMillis::NEVER));
        for &paragraph in &document.paragraphs {
            self.push_paragraph(paragraph, slot);
        }
        // A document takes some 300 bytes beside its parts, in all the lists it is in.
        // An estimate will do: it decides when a memory is full, and limits nothing by itself.
        self.bytes += 300 + document.size();
        self.documents.push(document);
        self.tombstones.grow(self.documents.len());
        slot
    }

    fn push_paragraph(&mut self, paragraph: StoredParagraph, slot: u32) {
        let add = |slots: &mut Vec<u32>| {
            // A document may repeat a paragraph. Slots come ascending, so the last one tells.
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

    /// The slot of the document with this id that is not dead, if any.
    pub(crate) fn find(&self, id: &str, hash: u64) -> Option<u32> {
        let found = self.by_id.find(hash, |&slot| {
            !self.tombstones.get(slot as usize) && self.documents[slot as usize].id == id
        });
        found.copied()
    }

    /// Marks a document as deleted or replaced, while others may read.
    pub(crate) fn mark_deleted(&self, slot: u32) {
        self.tombstones.set(slot as usize);
    }

    /// As [`MemTable::mark_deleted`], and no lookup meets the document again: one id may be replaced a million times.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.mark_deleted(slot);
        let found = self
            .by_id
            .find_entry(self.hashes[slot as usize], |&other| other == slot);
        if let Ok(entry) = found {
            entry.remove();
        }
        let content = self.documents[slot as usize].content(self.form);
        // Chains are linked one way, so only their dead heads can go; those behind wait for their turn.
        let is_dead = |slot: u32| self.tombstones.get(slot as usize);
        let group = content
            .sketch
            .and_then(|sketch| self.by_sketch.find(&sketch.to_bytes()));
        if let Some(group) = group {
            self.with_sketch[group as usize].drop_leading(&self.sketch_links, is_dead);
        }
        if let Some(hash) = content.text_hash
            && let Some(chain) = self.with_text.get_mut(&hash)
        {
            chain.drop_leading(&self.text_links, is_dead);
            if chain.is_empty() {
                self.with_text.remove(&hash);
            }
        }
    }

    /// The oldest live document of a text, without those that `skip` hides.
    pub(crate) fn find_text(
        &self,
        search: &ContentSearch,
        skip: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let content = &search.content;
        let chain = self.with_text.get(&content.text_hash?)?;
        let mut slots = chain.slots(&self.text_links);
        slots.find(|&slot| {
            self.is_alive(slot, search.now)
                && search.filter.admits(self.document(slot).traits)
                && !skip(slot)
                && self.document(slot).content(self.form).is_same_text(content)
        })
    }

    /// Visits every sketch within `radius`, with its distance and a name for [`MemTable::slots`].
    pub(crate) fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        self.by_sketch.search(sketch, radius, visit);
    }

    /// The slots of a sketch, from the oldest to the newest, dead ones included.
    pub(crate) fn slots(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        self.with_sketch[group as usize].slots(&self.sketch_links)
    }

    /// The form of the sketches.
    pub(crate) fn form(&self) -> SketchForm {
        self.form
    }

    /// The slots with a paragraph, from the oldest to the newest, dead ones included.
    pub(crate) fn with_paragraph(&self, hash: u64) -> &[u32] {
        self.paragraphs.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Visits every code of a paragraph within `radius`, with its distance and a name for [`MemTable::with_paragraph_code`].
    pub(crate) fn search_paragraphs(
        &self,
        code: u64,
        radius: u32,
        visit: &mut dyn FnMut(u32, u32),
    ) {
        self.by_paragraph_code.search(code, radius, visit);
    }

    /// The slots with a paragraph of a code, from the oldest to the newest, dead ones included.
    pub(crate) fn with_paragraph_code(&self, group: u32) -> &[u32] {
        &self.with_paragraph_code[group as usize]
    }
}
