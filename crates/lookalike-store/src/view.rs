//! The parts of a collection at one moment, and searches over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::StoredDocument;
use crate::error::Result;
use crate::found_document::{FoundCopy, FoundDocument, SearchHit};
use crate::memtable::MemTable;
use crate::pair_rule::PairFilter;
use crate::run::{IndexKey, StoredRun};
use crate::searches::{ContentSearch, HitRange};
use crate::time::UnixMillis;

/// Location of a document: the number of a part, and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DocumentLocation {
    /// Number of the log or run.
    pub(crate) part: u64,
    pub(crate) place: u32,
}

/// A memtable whose log is complete and that waits for a flush.
#[derive(Clone, Debug)]
pub(crate) struct FrozenMemTable {
    pub(crate) log: u64,
    /// Number of the first frame after its log.
    pub(crate) next: u64,
    pub(crate) memtable: Arc<MemTable>,
}

/// All parts of a collection, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct CollectionView {
    pub(crate) runs: Vec<Arc<StoredRun>>,
    pub(crate) frozen: Vec<FrozenMemTable>,
    pub(crate) active: MemTable,
    /// Number of the log of `active`.
    pub(crate) log: u64,
    /// Counter of changes to documents; flushes and merges, which only move documents, do not count.
    pub(crate) changes: u64,
}

/// One part of a view: a run, or a memtable with the number of its log.
#[derive(Clone, Copy)]
pub(crate) enum ViewPart<'a> {
    Run(&'a Arc<StoredRun>),
    MemTable(u64, &'a MemTable),
}

/// The key of a paragraph in one part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParagraphKey {
    /// The hash of its words.
    Hash(u64),
    /// Its fingerprint in a run; in a memtable, the number of the fingerprint there.
    Code(u64),
}

impl<'a> ViewPart<'a> {
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Run(run) => run.number,
            Self::MemTable(log, _) => log,
        }
    }

    /// Visits the name of every sketch within the radius, with its distance. Names are local to the part.
    fn search(self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u64, u32)) {
        match self {
            Self::Run(run) => run.search(sketch, radius, visit),
            Self::MemTable(_, memtable) => {
                memtable.search(sketch, radius, &mut |group, distance| {
                    visit(group.into(), distance)
                });
            }
        }
    }

    /// Returns the live documents with a sketch, given its name, that a filter admits, in ascending order.
    fn admitted(
        self,
        name: u64,
        now: UnixMillis,
        filter: PairFilter,
    ) -> impl Iterator<Item = u32> + 'a {
        let all = match self {
            Self::Run(run) => run.admitted(name, filter),
            Self::MemTable(_, memtable) => memtable.admitted(name as u32, filter),
        };
        all.filter(move |&place| self.is_alive(place, now))
    }

    /// Tells whether a document is live at a given time.
    pub(crate) fn is_alive(self, place: u32, now: UnixMillis) -> bool {
        match self {
            Self::Run(run) => run.is_alive(place, now),
            Self::MemTable(_, memtable) => memtable.is_alive(place, now),
        }
    }

    /// Tells whether any live document with a sketch is admitted by the filter.
    fn has_compared(self, name: u64, now: UnixMillis, filter: &PairFilter) -> bool {
        if let Self::Run(run) = self
            && run.is_whole()
            && filter.is_open()
        {
            return true;
        }
        self.admitted(name, now, *filter).next().is_some()
    }

    /// Visits the key of every paragraph fingerprint within the radius, with its distance.
    pub(crate) fn search_paragraphs(
        self,
        code: u64,
        radius: u32,
        visit: &mut dyn FnMut(ParagraphKey, u32),
    ) {
        match self {
            Self::Run(run) => {
                let mut each = |code, distance| visit(ParagraphKey::Code(code), distance);
                let found = run.paragraph_index().search(code, radius, &mut each);
                debug_assert!(found.is_ok());
            }
            Self::MemTable(_, memtable) => {
                let mut each = |group: u32, distance| {
                    visit(ParagraphKey::Code(group.into()), distance);
                };
                memtable.search_paragraphs(code, radius, &mut each);
            }
        }
    }

    /// Visits the documents with a paragraph in ascending order, including deleted and expired ones, until `each` returns false. Reads
    /// blocks of a run.
    pub(crate) fn with_paragraph(
        self,
        key: ParagraphKey,
        each: &mut dyn FnMut(u32) -> bool,
    ) -> Result<()> {
        match (self, key) {
            (Self::Run(run), ParagraphKey::Hash(hash)) => {
                run.find_key(IndexKey::Paragraph, hash, each)
            }
            (Self::Run(run), ParagraphKey::Code(code)) => {
                run.find_key(IndexKey::ParagraphCode, code, each)
            }
            (Self::MemTable(_, memtable), key) => {
                let slots = match key {
                    ParagraphKey::Hash(hash) => memtable.with_paragraph(hash),
                    ParagraphKey::Code(group) => memtable.with_paragraph_code(group as u32),
                };
                slots.iter().take_while(|&&slot| each(slot)).for_each(drop);
                Ok(())
            }
        }
    }

    pub(crate) fn found(self, place: u32) -> FoundDocument {
        match self {
            Self::Run(run) => FoundDocument::InRun(Arc::clone(run), place),
            Self::MemTable(_, memtable) => {
                FoundDocument::InMemory(Arc::clone(memtable.document(place)))
            }
        }
    }
}

/// Returns the documents within the radius by distance and then age, leaving out those for which `skip` returns true; none for a content
/// without a sketch.
pub(crate) fn search(
    parts: &[ViewPart<'_>],
    wanted: &ContentSearch,
    range: HitRange,
    skip: &dyn Fn(DocumentLocation) -> bool,
) -> Vec<SearchHit> {
    let Some(sketch) = &wanted.sketch else {
        return Vec::new();
    };
    let (filter, most) = (wanted.filter, range.most);
    // Names of sketches, by distance and part.
    let mut groups: BTreeMap<(u32, usize), Vec<u64>> = BTreeMap::new();
    // Collect all names before looking at documents, so that a nearer name in a later part comes before a farther one in an earlier part.
    for (at, part) in parts.iter().enumerate() {
        part.search(sketch, wanted.radius, &mut |name, distance| {
            if distance >= range.distance {
                groups.entry((distance, at)).or_default().push(name);
            }
        });
    }
    let (mut hits, mut left_out) = (Vec::new(), range.skip);
    for ((distance, at), names) in groups {
        if distance > range.distance {
            // A cursor counts only documents at its own distance.
            left_out = 0;
        }
        // Documents that are left out at the start count, too: they are dropped only after the list is cut.
        let (part, room) = (parts[at], left_out.saturating_add(most - hits.len()));
        let number = part.number();
        let mut places: Vec<u32> = Vec::new();
        for &name in &names {
            let shown = part.admitted(name, wanted.now, filter).filter(|&place| {
                !skip(DocumentLocation {
                    part: number,
                    place,
                })
            });
            // All documents on the page may have the same sketch, so take up to a full page from each.
            places.extend(shown.take(room));
        }
        // Documents of different sketches at the same distance in a part interleave by age.
        places.sort_unstable();
        let skipped = left_out.min(places.len());
        left_out -= skipped;
        let shown = places.into_iter().skip(skipped).take(most - hits.len());
        hits.extend(shown.map(|place| SearchHit {
            distance,
            found: part.found(place),
        }));
        if hits.len() == most {
            break;
        }
    }
    hits
}

impl CollectionView {
    /// Tells whether the view has exactly these runs.
    pub(crate) fn has_runs(&self, runs: &[Arc<StoredRun>]) -> bool {
        let pairs = || self.runs.iter().zip(runs);
        self.runs.len() == runs.len() && pairs().all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Freezes the memtable, whose log ends before frame `next`, and starts a new one for the log `number`.
    pub(crate) fn freeze(&mut self, number: u64, next: u64) {
        let active = MemTable::new(self.active.shape);
        let memtable = Arc::new(std::mem::replace(&mut self.active, active));
        let log = std::mem::replace(&mut self.log, number);
        self.frozen.push(FrozenMemTable {
            log,
            next,
            memtable,
        });
    }

    /// Returns the memtables with the numbers of their logs, from the oldest to the newest.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = (u64, &MemTable)> {
        let frozen = self.frozen.iter();
        let frozen = frozen.map(|frozen| (frozen.log, &*frozen.memtable));
        frozen.chain([(self.log, &self.active)])
    }

    /// Returns the parts, from the oldest to the newest.
    pub(crate) fn parts(&self) -> impl Iterator<Item = ViewPart<'_>> {
        let memtables = self.memtables();
        let memtables = memtables.map(|(log, memtable)| ViewPart::MemTable(log, memtable));
        self.runs.iter().map(ViewPart::Run).chain(memtables)
    }

    /// Returns, for each sketch, the distance of the nearest live document within the radius that its filter admits.
    pub(crate) fn nearest(
        &self,
        sketches: &[Vec<u8>],
        filters: &[PairFilter],
        radius: u32,
        now: UnixMillis,
    ) -> Vec<Option<u32>> {
        // Fingerprints are searched as a group in each run, so that many of their memory accesses are in flight at once.
        let mut nearest: Vec<Option<u32>> = vec![None; sketches.len()];
        let better = |best: Option<u32>, distance| best.is_none_or(|best| distance < best);
        for part in self.parts() {
            match part {
                ViewPart::Run(run) => {
                    run.search_group(sketches, radius, &mut |at, name, distance| {
                        // Compare distances first: documents are looked at only if they would improve the result.
                        if better(nearest[at], distance)
                            && part.has_compared(name, now, &filters[at])
                        {
                            nearest[at] = Some(distance);
                        }
                    });
                }
                ViewPart::MemTable(..) => {
                    for ((best, sketch), filter) in nearest.iter_mut().zip(sketches).zip(filters) {
                        part.search(sketch, radius, &mut |name, distance| {
                            if better(*best, distance) && part.has_compared(name, now, filter) {
                                *best = Some(distance);
                            }
                        });
                    }
                }
            }
        }
        nearest
    }

    /// Finds the document with an id in memory that is not deleted or replaced; it may have expired.
    pub(crate) fn find_in_memtables(
        &self,
        id: &str,
        hash: u64,
    ) -> Option<(DocumentLocation, &Arc<StoredDocument>)> {
        self.memtables().find_map(|(part, memtable)| {
            let place = memtable.find(id, hash)?;
            Some((DocumentLocation { part, place }, memtable.document(place)))
        })
    }

    /// Marks a document as deleted or replaced.
    pub(crate) fn add_tombstone(&mut self, location: DocumentLocation) {
        let DocumentLocation { part, place } = location;
        if part == self.log {
            return self.active.remove(place);
        }
        // A flush shares a frozen memtable, so its indexes cannot change any more; only the mark can be set.
        if let Some(frozen) = self.frozen.iter().find(|frozen| frozen.log == part) {
            return frozen.memtable.mark_deleted(place);
        }
        // One of the parts contains it: parts are replaced only under the writer lock, which the caller has held since the lookup.
        if let Some(run) = self.runs.iter().find(|run| run.number == part) {
            run.tombstones.set(place as usize);
        }
    }
}

/// Finds the document with an id in the runs that is not deleted or replaced; it may have expired.
pub(crate) fn find_in_runs(
    runs: &[Arc<StoredRun>],
    id: &str,
    hash: u64,
) -> Result<Option<(DocumentLocation, Arc<StoredRun>)>> {
    // An id is in at most one run, so the order only matters for speed.
    for run in runs.iter().rev() {
        if let Some(place) = run.find(id, hash)? {
            let part = run.number;
            return Ok(Some((DocumentLocation { part, place }, Arc::clone(run))));
        }
    }
    Ok(None)
}

/// Finds the oldest live document in the runs that has the text searched for, leaving out those for which `skip` returns true.
pub(crate) fn find_text_in_runs(
    runs: &[Arc<StoredRun>],
    search: &ContentSearch,
    skip: &dyn Fn(DocumentLocation) -> bool,
) -> Result<Option<FoundCopy>> {
    for run in runs {
        let part = run.number;
        let hidden = |place| skip(DocumentLocation { part, place });
        // Runs are in order of age, so the first hit is the oldest document.
        if let Some((place, id)) = run.find_text(search, &hidden)? {
            let found = FoundDocument::InRun(Arc::clone(run), place);
            return Ok(Some(FoundCopy { id, found }));
        }
    }
    Ok(None)
}

/// Finds such a document in the parts that are in memory.
pub(crate) fn find_text_in_memory<'a>(
    parts: &[ViewPart<'a>],
    search: &ContentSearch,
    skip: &dyn Fn(DocumentLocation) -> bool,
) -> Option<&'a Arc<StoredDocument>> {
    parts.iter().find_map(|part| match *part {
        ViewPart::Run(_) => None,
        ViewPart::MemTable(part, memtable) => {
            let hidden = |place| skip(DocumentLocation { part, place });
            let slot = memtable.find_text(search, &hidden)?;
            Some(memtable.document(slot))
        }
    })
}
