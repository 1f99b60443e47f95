//! Sources of a run: memtables and other runs. Both preserve the order of insertion.

use super::footer::NEVER;
use super::read::StoredRun;
use super::sorted::{IndexEntry, IndexKey};
use crate::bits::{AtomicBits, RankedBits};
use crate::error::Result;
use crate::id_hash::IdHasher;
use crate::memtable::MemTable;
use crate::pair_rule::PairTraits;
use crate::time::UnixMillis;

/// Entries in ascending order.
type EntryIter<'a> = Box<dyn Iterator<Item = Result<IndexEntry>> + 'a>;

/// The live documents of a memtable or a run. All methods visit them in the same order, in which they are numbered from zero.
pub(crate) struct DocumentSource<'a> {
    part: SourcePart<'a>,
    live: RankedBits,
}

#[derive(Clone, Copy)]
enum SourcePart<'a> {
    MemTable(&'a MemTable, &'a IdHasher),
    Run(&'a StoredRun),
}

impl<'a> DocumentSource<'a> {
    pub(crate) fn of_memtable(
        memtable: &'a MemTable,
        hasher: &'a IdHasher,
        now: UnixMillis,
    ) -> Self {
        let live = live_bits(memtable.len(), |slot| memtable.is_alive(slot, now));
        let part = SourcePart::MemTable(memtable, hasher);
        Self { part, live }
    }

    pub(crate) fn of_run(run: &'a StoredRun, now: UnixMillis) -> Self {
        let live = live_bits(run.len(), |document| run.is_alive(document, now));
        let part = SourcePart::Run(run);
        Self { part, live }
    }

    /// Returns the number of documents.
    pub(crate) fn live(&self) -> u32 {
        self.live.ones()
    }

    /// Returns the slots of the memtable or the documents of the run that are included.
    fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let all = match self.part {
            SourcePart::MemTable(memtable, _) => memtable.len(),
            SourcePart::Run(run) => run.len(),
        };
        (0..all as u32).filter(|&place| self.live.get(place as usize))
    }

    /// Visits the encoded documents.
    pub(super) fn documents(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        match self.part {
            SourcePart::MemTable(memtable, _) => self.places().try_for_each(|slot| {
                bytes.clear();
                memtable.document(slot).encode(&mut bytes);
                each(&bytes)
            }),
            SourcePart::Run(run) => {
                run.for_each(&mut |place, bytes| match self.live.get(place as usize) {
                    true => each(bytes),
                    false => Ok(()),
                })
            }
        }
    }

    /// Visits their sketches.
    pub(super) fn sketches(&self, each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> {
        match self.part {
            SourcePart::MemTable(memtable, _) => self.places().try_for_each(|slot| {
                let sketch = memtable.document(slot).sketch(memtable.shape.form);
                each(sketch.map(|sketch| sketch.to_bytes()).as_deref())
            }),
            SourcePart::Run(run) => {
                run.for_each_sketch(&mut |place, sketch| match self.live.get(place as usize) {
                    true => each(sketch),
                    false => Ok(()),
                })
            }
        }
    }

    /// Returns their expiry times, all ones for never.
    pub(super) fn expires(&self) -> impl Iterator<Item = u64> + '_ {
        self.places().map(|place| match self.part {
            SourcePart::MemTable(memtable, _) => {
                let expires = memtable.document(place).expires;
                expires.map_or(NEVER, |end| end.0)
            }
            SourcePart::Run(run) => run.expires(place),
        })
    }

    /// Returns their categories and lengths.
    pub(super) fn traits(&self) -> impl Iterator<Item = PairTraits> + '_ {
        self.places().map(|place| match self.part {
            SourcePart::MemTable(memtable, _) => memtable.document(place).traits,
            SourcePart::Run(run) => run.traits(place),
        })
    }

    /// Returns their entries in an index.
    fn entries(&self, of: IndexKey) -> EntryIter<'_> {
        match self.part {
            SourcePart::MemTable(memtable, hasher) => {
                let entries = self.memtable_entries(memtable, hasher, of);
                Box::new(entries.into_iter().map(Ok))
            }
            SourcePart::Run(run) => Box::new(run.entries(of).filter_map(|entry| match entry {
                Ok((key, document)) => {
                    // Ranks ascend with the documents, so the entries stay sorted.
                    let live = self.live.get(document as usize);
                    live.then(|| Ok((key, self.live.rank(document as usize))))
                }
                Err(error) => Some(Err(error)),
            })),
        }
    }

    fn memtable_entries(
        &self,
        memtable: &MemTable,
        hasher: &IdHasher,
        of: IndexKey,
    ) -> Vec<IndexEntry> {
        let mut all: Vec<IndexEntry> = Vec::new();
        for (slot, number) in self.places().zip(0..) {
            let document = memtable.document(slot);
            let paragraphs = document.paragraphs.iter();
            let mut add = |key| all.push((key, number));
            match of {
                IndexKey::Id => add(hasher.hash(&document.id)),
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
        all
    }

    /// Marks documents in a new run that died in this source while it was written. `base` is the number of the first one there.
    pub(crate) fn mark_late_tombstones(&self, run: &StoredRun, base: u32) {
        let tombstones: &AtomicBits = match self.part {
            SourcePart::MemTable(memtable, _) => &memtable.tombstones,
            SourcePart::Run(run) => &run.tombstones,
        };
        let words = self.live.words().iter().zip(tombstones.words());
        for (at, (&live, tombstones)) in words.enumerate() {
            let mut late = live & tombstones;
            while late != 0 {
                // The new run numbers documents by their rank among those that were written to it.
                let place = at * 64 + late.trailing_zeros() as usize;
                run.tombstones.set((base + self.live.rank(place)) as usize);
                late &= late - 1;
            }
        }
    }
}

/// Decides once which documents are live: each section of a run is written in a separate pass over them, while deletes continue. A document
/// that dies between two passes must not be in one section and missing from another.
fn live_bits(length: usize, test: impl Fn(u32) -> bool) -> RankedBits {
    let mut words = vec![0_u64; length.div_ceil(64)];
    for at in 0..length {
        words[at / 64] |= u64::from(test(at as u32)) << (at % 64);
    }
    RankedBits::new(words)
}

/// Merges the entries of all sources in ascending order, numbering documents consecutively across sources.
pub(super) fn merged<'a>(
    sources: &'a [DocumentSource<'_>],
    of: IndexKey,
) -> impl Iterator<Item = Result<IndexEntry>> + use<'a> {
    let mut base = 0;
    let mut heads = Vec::new();
    for source in sources {
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
