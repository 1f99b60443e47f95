//! Sources of a run: memtables and other runs. Both preserve the order of insertion.

use std::sync::Arc;

use super::footer::NEVER;
use super::read::StoredRun;
use super::sorted::{IndexEntry, IndexKey};
use crate::bits::RankedBits;
use crate::error::Result;
use crate::id_hash::IdHasher;
use crate::memtable::MemTable;
use crate::pair_rule::PairTraits;
use crate::time::UnixMillis;

/// Entries in ascending order.
pub(crate) type EntryIter<'a> = Box<dyn Iterator<Item = Result<IndexEntry>> + 'a>;

/// A source of documents for a run. All methods visit the live documents in the same order, in which they are numbered from zero.
pub(crate) trait DocumentSource {
    /// Returns the number of documents.
    fn live(&self) -> u32;
    /// Visits the encoded documents.
    fn documents(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
    /// Visits their sketches.
    fn sketches(&self, each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()>;
    /// Tells whether any document may expire.
    fn any_expires(&self) -> bool;
    /// Visits their expiry times.
    fn expiry(&self, each: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;
    /// Visits their categories and lengths.
    fn traits(&self, each: &mut dyn FnMut(PairTraits) -> Result<()>) -> Result<()>;
    /// Their entries in an index.
    fn entries(&self, of: IndexKey) -> EntryIter<'_>;
}

/// The live documents of a memtable.
pub(crate) struct MemTableSource {
    memtable: Arc<MemTable>,
    live: RankedBits,
    hasher: IdHasher,
}

impl MemTableSource {
    pub(crate) fn new(memtable: Arc<MemTable>, now: UnixMillis, hasher: IdHasher) -> Self {
        // Decide once which documents are live: each section of a run is written in a separate pass over them, while deletes continue. A
        // document that dies between two passes must not be in one section and missing from another.
        let live = live_bits_of(memtable.len(), |slot| memtable.is_alive(slot as u32, now));
        Self {
            memtable,
            live,
            hasher,
        }
    }

    /// Returns the slots that are included.
    pub(crate) fn live_bits(&self) -> &RankedBits {
        &self.live
    }

    fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.memtable.len())
            .filter(|&slot| self.live.get(slot))
            .map(|slot| slot as u32)
    }
}

fn live_bits_of(length: usize, test: impl Fn(usize) -> bool) -> RankedBits {
    let mut words = vec![0_u64; length.div_ceil(64)];
    for at in 0..length {
        words[at / 64] |= u64::from(test(at)) << (at % 64);
    }
    RankedBits::new(words)
}

impl DocumentSource for MemTableSource {
    fn live(&self) -> u32 {
        self.live.ones()
    }

    fn documents(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        self.slots().try_for_each(|slot| {
            bytes.clear();
            self.memtable.document(slot).encode(&mut bytes);
            each(&bytes)
        })
    }

    fn sketches(&self, each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> {
        let form = self.memtable.form();
        self.slots().try_for_each(|slot| {
            let sketch = self.memtable.document(slot).sketch(form);
            each(sketch.map(|sketch| sketch.to_bytes()).as_deref())
        })
    }

    fn any_expires(&self) -> bool {
        self.slots()
            .any(|slot| self.memtable.document(slot).expires.is_some())
    }

    fn expiry(&self, each: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.slots().try_for_each(|slot| {
            each(
                self.memtable
                    .document(slot)
                    .expires
                    .map_or(NEVER, |end| end.0),
            )
        })
    }

    fn traits(&self, each: &mut dyn FnMut(PairTraits) -> Result<()>) -> Result<()> {
        self.slots()
            .try_for_each(|slot| each(self.memtable.document(slot).traits))
    }

    fn entries(&self, of: IndexKey) -> EntryIter<'_> {
        let mut all: Vec<IndexEntry> = Vec::new();
        for (slot, number) in self.slots().zip(0..) {
            let document = self.memtable.document(slot);
            let paragraphs = document.paragraphs.iter();
            let mut add = |key| all.push((key, number));
            match of {
                IndexKey::Id => add(self.hasher.hash(&document.id)),
                IndexKey::Paragraph => paragraphs.for_each(|paragraph| add(paragraph.hash)),
                IndexKey::ParagraphCode => paragraphs
                    .filter_map(|paragraph| paragraph.fingerprint)
                    .for_each(|code| add(code.0)),
                IndexKey::Text => document.text_hash.iter().for_each(|hash| add(hash.key())),
            }
        }
        // In memory, because a memtable is limited (`StoreTuning::memory_bytes`).
        all.sort_unstable();
        // A document may repeat a paragraph.
        all.dedup();
        Box::new(all.into_iter().map(Ok))
    }
}

/// The live documents of a run.
pub(crate) struct RunSource {
    run: Arc<StoredRun>,
    live: RankedBits,
}

impl RunSource {
    pub(crate) fn new(run: Arc<StoredRun>, now: UnixMillis) -> Self {
        // As for a memtable: decide once for all passes.
        let live = live_bits_of(run.len(), |document| run.is_alive(document as u32, now));
        Self { run, live }
    }

    /// Returns the documents that are included.
    pub(crate) fn live_bits(&self) -> &RankedBits {
        &self.live
    }
}

impl DocumentSource for RunSource {
    fn live(&self) -> u32 {
        self.live.ones()
    }

    fn documents(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.run.for_each(&mut |document, bytes| {
            if self.live.get(document as usize) {
                each(bytes)
            } else {
                Ok(())
            }
        })
    }

    fn sketches(&self, each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> {
        self.run.for_each_sketch(&mut |document, sketch| {
            if self.live.get(document as usize) {
                each(sketch)
            } else {
                Ok(())
            }
        })
    }

    fn any_expires(&self) -> bool {
        self.run.any_expires()
    }

    fn expiry(&self, each: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        (0..self.run.len())
            .filter(|&document| self.live.get(document))
            .try_for_each(|document| each(self.run.expires(document as u32)))
    }

    fn traits(&self, each: &mut dyn FnMut(PairTraits) -> Result<()>) -> Result<()> {
        (0..self.run.len())
            .filter(|&document| self.live.get(document))
            .try_for_each(|document| each(self.run.traits(document as u32)))
    }

    fn entries(&self, of: IndexKey) -> EntryIter<'_> {
        Box::new(self.run.entries(of).filter_map(|entry| match entry {
            Ok((key, document)) => {
                // Ranks ascend with the documents, so the entries stay sorted.
                let live = self.live.get(document as usize);
                live.then(|| Ok((key, self.live.rank(document as usize))))
            }
            Err(error) => Some(Err(error)),
        }))
    }
}

/// Merges the entries of all sources in ascending order, numbering documents consecutively across sources.
pub(super) fn merged<'a>(
    sources: &[&'a dyn DocumentSource],
    of: IndexKey,
) -> impl Iterator<Item = Result<IndexEntry>> + use<'a> {
    let mut base = 0;
    let mut heads = Vec::new();
    for &source in sources {
        let mut entries = source.entries(of);
        let first = base;
        base += source.live();
        let mut next = move || {
            let entry = entries.next()?;
            // The engine does not write runs with more documents than fit in 32 bits.
            Some(entry.map(|(key, document)| (key, document + first)))
        };
        if let Some(head) = next() {
            heads.push((head, next));
        }
    }
    std::iter::from_fn(move || {
        // Errors first; else the least. There are a handful of sources.
        let order = |head: &Result<IndexEntry>| head.as_ref().ok().copied();
        // No two entries are equal, because documents have different numbers, so the order of the sources does not matter.
        let least = (0..heads.len()).min_by_key(|&at| order(&heads[at].0))?;
        let (head, next) = &mut heads[least];
        match next() {
            Some(later) => Some(std::mem::replace(head, later)),
            None => Some(heads.swap_remove(least).0),
        }
    })
}
