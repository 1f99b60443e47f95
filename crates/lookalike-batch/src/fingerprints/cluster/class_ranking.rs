//! Finds the best document of each class, and orders classes by preference.

use super::documents::{ClusterDocument, ClusterDocuments, DocumentId};
use super::error::ClusterError;
use super::id_table::IdTable;
use super::linked_classes::ClassIndex;
use super::linked_ids::{LinkedIds, SortedIds};
use super::memory_shares::MemoryShares;
use super::repeated_fingerprints::{BareFingerprints, RepeatedFingerprints};
use super::{FingerprintClustering, FingerprintKeep};
use crate::error::BatchError;
use crate::fingerprints::files::ListedId;
use crate::fingerprints::sketches::DistinctSketches;
use crate::observer::JobStage;
use crate::parallel::inverse;
use crate::parallel_sort::{ItemOrder, sort_unequal_by};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::check;

/// Value that means no document.
const NO_DOCUMENT: u32 = u32::MAX;

/// Facts about the documents of each class, and the order of the classes.
pub(super) struct ClassRanking<'s> {
    /// Place of the best document of each class.
    pub(super) best: TableColumn<u32>,
    /// Number of documents of each class.
    pub(super) members: TableColumn<u32>,
    /// Rank of each class, the most wanted first.
    pub(super) ranks: TableColumn<u32>,
    /// Class of each rank.
    pub(super) classes: TableColumn<u32>,
    /// Fingerprint of each class. Empty if no file was read, or if fingerprints are the classes.
    pub(super) fingerprints: TableColumn<u128>,
    /// The sketches that these values are positions of, if they are not fingerprints.
    pub(super) sketches: Option<&'s DistinctSketches>,
    /// Digest of the files that were read.
    pub(super) digest: Option<u64>,
    /// Ids of all these documents, for detecting repeated ids.
    pub(super) linked: SortedIds,
    /// Fingerprints without ids that occur several times but in no pair of the lists.
    pub(super) repeated: RepeatedFingerprints,
    /// Memory of the tables of these ids and fingerprints, in bytes.
    pub(super) linked_bytes: u64,
    /// Bytes of the ids that classes were ordered by. They are free again, but the allocator may keep them.
    pub(super) held_bytes: u64,
}

/// Number of ids between two checks of the memory.
const STEP: u64 = 1 << 14;

/// Returns the bytes of an id on the heap, with those of the allocator.
fn heap_bytes(id: &ListedId<'_>) -> u64 {
    match id {
        ListedId::Text(text) => text.len() as u64 + 16,
        ListedId::Number(_) => 0,
    }
}

/// State of a ranking while documents are read.
struct RankedDocuments<'i, 's> {
    index: &'i ClassIndex,
    keep: FingerprintKeep,
    /// These are columns of the [`ClassRanking`].
    best: TableColumn<u32>,
    members: TableColumn<u32>,
    fingerprints: TableColumn<u128>,
    sketches: Option<&'s DistinctSketches>,
    /// Id of the best document of each class, if ids decide.
    ids: Vec<Option<ListedId<'static>>>,
    /// Number of classes with such an id, and the bytes of these ids on the heap.
    named: u64,
    named_bytes: u64,
    shares: MemoryShares,
    /// For each id in the pairs, whether it occurred in a file.
    seen: TableColumn<bool>,
    /// Number of the id that gave its class a fingerprint, if files must agree with pairs.
    witnesses: TableColumn<u32>,
    linked: LinkedIds,
    /// Documents that the lists of pairs do not name.
    unlisted: BareFingerprints,
}

impl<'s> RankedDocuments<'_, 's> {
    fn add(&mut self, document: &ClusterDocument<'_>) -> Result<(), BatchError> {
        let Some(class) = self.index.class(document) else {
            // Equal fingerprints always have a class, except if lists tell which documents have one.
            if matches!(self.index, ClassIndex::Ids { .. }) {
                self.unlisted.add(document);
            }
            return Ok(());
        };
        // Check before the best document is chosen: a class without one has no fingerprint yet and takes that of this document.
        self.check(document, class)?;
        // A bare fingerprint is its own id, so a second one is a repetition of the same document and no error.
        if !document.is_bare {
            self.linked.add(&document.id.listed());
        }
        let class = class as usize;
        let is_first = self.best[class] == NO_DOCUMENT;
        // All documents with the same bare fingerprint are one, however often it is read.
        match document.is_bare {
            true => self.members[class] = 1,
            false => self.members[class] += 1,
        }
        let is_better = match self.keep {
            _ if is_first => true,
            FingerprintKeep::First => false,
            // Documents come in file order, so each later one takes the place of the one before.
            FingerprintKeep::Last => true,
            FingerprintKeep::Id => {
                let best = self.ids[class].as_ref();
                best.is_none_or(|best| document.id.listed() < *best)
            }
        };
        if is_better {
            self.best[class] = document.place;
            if self.keep == FingerprintKeep::Id {
                self.hold(class, document.id)?;
            }
        }
        Ok(())
    }

    /// Makes an id the best of its class.
    fn hold(&mut self, class: usize, id: DocumentId<'_>) -> Result<(), ClusterError> {
        let id = id.listed().into_owned();
        self.named_bytes += heap_bytes(&id);
        if let Some(before) = self.ids[class].replace(id) {
            self.named_bytes -= heap_bytes(&before);
            return Ok(());
        }
        self.named += 1;
        if self.named.is_multiple_of(STEP) {
            self.ensure_ids_fit()?;
        }
        Ok(())
    }

    /// Fails if the ids so far do not fit in the memory. Returns their bytes.
    fn ensure_ids_fit(&self) -> Result<u64, ClusterError> {
        let classes = self.ids.len() as u64;
        // Not extrapolated to all classes: the ids of later files may be shorter.
        let bytes = size_of_val(self.ids.as_slice()) as u64 + self.named_bytes;
        let tables = self.index.fingerprint_bytes() + self.table_bytes();
        self.shares.sorting(classes, tables, bytes)?;
        Ok(bytes)
    }

    fn table_bytes(&self) -> u64 {
        self.linked.memory() + self.unlisted.memory()
    }

    /// Fails for a second document with an id of the pairs, and for a fingerprint that differs from that of its class.
    fn check(&mut self, document: &ClusterDocument<'_>, class: u32) -> Result<(), ClusterError> {
        let (ClassIndex::Ids { ids, .. }, Some(number)) = (self.index, self.index.listed(document))
        else {
            return Ok(());
        };
        // A bare fingerprint may repeat: all documents with it are one.
        if std::mem::replace(&mut self.seen[number as usize], true) && !document.is_bare {
            let id = ids.id(number).to_string();
            return Err(ClusterError::RepeatedId { id });
        }
        let Some(fingerprint) = document.fingerprint else {
            return Ok(());
        };
        let class = class as usize;
        if self.best[class] == NO_DOCUMENT {
            self.fingerprints[class] = fingerprint;
            self.witnesses[class] = number;
            return Ok(());
        }
        let both = [self.fingerprints[class], fingerprint];
        ensure_distance(self.sketches, ids, [self.witnesses[class], number], 0, both)
    }

    /// Fails if an id of the pairs occurs in no file.
    fn check_all_seen(&self) -> Result<(), ClusterError> {
        let ClassIndex::Ids { ids, .. } = self.index else {
            return Ok(());
        };
        // Otherwise a class could have no document, and a survivor could not be named.
        let mut missing = (0..).zip(self.seen.iter()).filter(|(_, seen)| !**seen);
        match missing.next() {
            None => Ok(()),
            Some((number, _)) => Err(ClusterError::UnknownId {
                id: ids.id(number).to_string(),
                count: 1 + missing.count() as u64,
            }),
        }
    }

    fn finish(self, threads: usize, held_bytes: u64, digest: Option<u64>) -> ClassRanking<'s> {
        let (best, ids, keep) = (&self.best, &self.ids, self.keep);
        let place = |class: &u32| best[*class as usize];
        let id = |class: &u32| &ids[*class as usize];
        let mut classes: TableColumn<u32> = (0..best.len() as u32).collect();
        let by_wish: &ItemOrder<'_, u32> = &|a, b| match keep {
            FingerprintKeep::First => place(a).cmp(&place(b)),
            FingerprintKeep::Last => place(b).cmp(&place(a)),
            // Equal ids in two classes are refused when results are written; until then places make the order total.
            FingerprintKeep::Id => (id(a), place(a)).cmp(&(id(b), place(b))),
        };
        sort_unequal_by(&mut classes, threads, by_wish);
        ClassRanking {
            // Both directions are looked up for each edge and each document.
            ranks: inverse(&classes, threads),
            classes,
            linked_bytes: self.table_bytes(),
            best: self.best,
            members: self.members,
            fingerprints: self.fingerprints,
            sketches: self.sketches,
            digest,
            linked: self.linked.sorted(),
            repeated: self.unlisted.repeated(keep),
            held_bytes,
        }
    }
}

/// Fails if the fingerprints of two ids, or their positions among the sketches, have another distance than the pair.
pub(super) fn ensure_distance(
    sketches: Option<&DistinctSketches>,
    ids: &IdTable,
    pair: [u32; 2],
    listed: u32,
    fingerprints: [u128; 2],
) -> Result<(), ClusterError> {
    let [a, b] = fingerprints;
    // For sketches these values are positions among the distinct ones, and the distance is the number of places that differ.
    let found = match sketches {
        Some(sketches) => sketches.different_places(a as u32, b as u32),
        None => (a ^ b).count_ones(),
    };
    if found == listed {
        return Ok(());
    }
    let [a, b] = pair.map(|number| ids.id(number).to_string());
    Err(ClusterError::OtherDistance {
        a,
        b,
        listed,
        found,
    })
}

impl FingerprintClustering<'_> {
    /// Finds the best document of each class.
    pub(super) fn rank<'s>(
        &self,
        index: &ClassIndex,
        documents: &ClusterDocuments<'_>,
        sketches: Option<&'s DistinctSketches>,
        shares: MemoryShares,
    ) -> Result<ClassRanking<'s>, BatchError> {
        self.observer.stage(JobStage::Rank, 0);
        let classes = index.len();
        let ids = match index {
            ClassIndex::Ids { ids, .. } => ids.len() as usize,
            ClassIndex::Fingerprints { .. } => 0,
        };
        // Keep fingerprints of classes only if pairs came from a list; pairs that were joined here are right.
        let (keep, in_files) = match documents {
            ClusterDocuments::Files(_) => (self.survivor(), ids > 0),
            // Their places are in the order of ids.
            ClusterDocuments::Ids(..) => (FingerprintKeep::First, false),
        };
        let of_files = if in_files { classes } else { 0 };
        let mut ranked = RankedDocuments {
            index,
            keep,
            best: std::iter::repeat_n(NO_DOCUMENT, classes).collect(),
            members: TableColumn::zeroed(classes),
            fingerprints: TableColumn::zeroed(of_files),
            sketches,
            ids: match keep {
                FingerprintKeep::Id => vec![None; classes],
                FingerprintKeep::First | FingerprintKeep::Last => Vec::new(),
            },
            named: 0,
            named_bytes: 0,
            shares,
            seen: TableColumn::zeroed(ids),
            witnesses: TableColumn::zeroed(of_files),
            linked: LinkedIds::default(),
            unlisted: BareFingerprints::default(),
        };
        let read = documents.for_each(&mut |document| ranked.add(&document))?;
        check(self.folder).map_err(BatchError::temporary(self.folder))?;
        let held_bytes = match keep {
            FingerprintKeep::Id => ranked.ensure_ids_fit()?,
            FingerprintKeep::First | FingerprintKeep::Last => 0,
        };
        ranked.check_all_seen()?;
        let digest = read.map(|read| read.digest);
        Ok(ranked.finish(self.limits.workers(), held_bytes, digest))
    }
}
