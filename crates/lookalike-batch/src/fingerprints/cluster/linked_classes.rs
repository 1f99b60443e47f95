//! Finds classes of documents with equal fingerprints, and the pairs between them: by a self-join of files, or from a list of pairs.
//!
//! Only classes of several documents and classes with a neighbour get a number.

use lookalike::cluster::Components;
use lookalike_hamming::{SelfJoinLimits, Word, self_join_until};

use super::documents::{ClusterDocument, DocumentFiles, DocumentId, ReadDocuments};
use super::edge_spool::{Edge, EdgeSpool, EdgeWriter};
use super::error::ClusterError;
use super::id_table::IdTable;
use super::memory_shares::MemoryShares;
use super::sorted_fingerprints::{FingerprintMarks, NumberedMarks, SortedKeys};
use super::{FingerprintClustering, FingerprintRule, MAX_DISTANCE};
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFiles, ListedPair, NoPair, PairFile};
use crate::fingerprints::with_word::with_word;
use crate::observer::{JobStage, check_cancelled};
use crate::parallel_sort::sort_unequal_by;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::check;

/// Number of lines between two checks of the memory and the observer.
const STEP: u64 = 1 << 14;

/// Distance of pairs of texts, which only connect their documents.
const CONNECTED: u8 = 1;

/// Numbered classes and their pairs.
pub(super) struct LinkedClasses {
    pub(super) index: ClassIndex,
    /// Pairs whose ends are arguments of [`ClassIndex::end`].
    pub(super) edges: EdgeSpool,
    /// Facts about the files that were read for it.
    pub(super) read: Option<ReadDocuments>,
}

/// Map from documents, and from ends of edges, to classes.
pub(super) enum ClassIndex {
    /// A class is a fingerprint, and an edge holds positions among all fingerprints.
    Fingerprints {
        count: usize,
        /// Bytes of each fingerprint.
        key_bytes: u64,
        /// Function that finds the class of a fingerprint of any width.
        find: Box<dyn Fn(u128) -> Option<u32> + Send + Sync>,
        marks: NumberedMarks,
    },
    /// A class is a set of ids, and an edge holds numbers of ids.
    Ids {
        ids: IdTable,
        classes: TableColumn<u32>,
        count: u32,
    },
}

impl ClassIndex {
    /// Creates the index of classes that are the marked fingerprints.
    pub(super) fn of_marked<K: Word>(keys: SortedKeys<K>, marks: FingerprintMarks) -> Self {
        let keys = keys.retain(&marks);
        Self::Fingerprints {
            count: keys.keys.len(),
            key_bytes: size_of::<K>() as u64,
            find: Box::new(move |fingerprint| keys.find(K::from_u128(fingerprint))),
            marks: marks.numbered(),
        }
    }

    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fingerprints { count, .. } => *count,
            Self::Ids { count, .. } => *count as usize,
        }
    }

    /// Returns the bytes of the fingerprints of all classes.
    pub(super) fn fingerprint_bytes(&self) -> u64 {
        let each = match self {
            Self::Fingerprints { key_bytes, .. } => *key_bytes,
            Self::Ids { .. } => 16,
        };
        each * self.len() as u64
    }

    /// Returns the class of the end of an edge.
    pub(super) fn end(&self, end: u32) -> u32 {
        match self {
            Self::Fingerprints { marks, .. } => marks.number(end),
            Self::Ids { classes, .. } => classes[end as usize],
        }
    }

    /// Returns the number of a document's id in the pairs. `None` without a list of pairs, or if they do not have the id.
    pub(super) fn listed(&self, document: &ClusterDocument<'_>) -> Option<u32> {
        match (self, document.id) {
            (Self::Fingerprints { .. }, _) => None,
            (Self::Ids { .. }, DocumentId::Listed(_, number)) => Some(number),
            (Self::Ids { ids, .. }, DocumentId::Named(name)) => ids.find(&name.into()),
        }
    }

    /// Returns the class of a document. `None` if it is alone.
    pub(super) fn class(&self, document: &ClusterDocument<'_>) -> Option<u32> {
        match self {
            Self::Fingerprints { find, .. } => find(document.fingerprint?),
            Self::Ids { classes, .. } => Some(classes[self.listed(document)? as usize]),
        }
    }
}

impl FingerprintClustering<'_> {
    /// Finds all pairs of the files within the distance by the engine's self-join.
    pub(super) fn join_files(
        &self,
        files: &DocumentFiles<'_>,
    ) -> Result<LinkedClasses, BatchError> {
        let sizes = files.open()?;
        with_word!(sizes.word_bits(), W => self.join_codes::<W>(files, sizes))
    }

    fn join_codes<W: Word>(
        &self,
        files: &DocumentFiles<'_>,
        sizes: CodeFiles,
    ) -> Result<LinkedClasses, BatchError> {
        let expected = sizes.expected().unwrap_or(0);
        let bytes = sizes.total_bytes().unwrap_or(0);
        // Only the headers were needed; `read` opens the files again.
        drop(sizes);
        let shares = MemoryShares::new(&self.limits);
        // Before reading, refuse a memory limit that is too low for any number of fingerprints.
        shares.after_fingerprints::<W>(0)?;
        self.observer.stage(JobStage::Scan, bytes);
        let temporary = BatchError::temporary(self.folder);
        // Reserving memory without writing to it costs nothing, whereas a growing column is briefly in memory twice. In a file the reservation would
        // take disk space, and the number is only a guess.
        let room = shares.tables().heap / size_of::<W>() as u64;
        let mut all: TableColumn<W> = TableColumn::with_capacity(expected.min(room) as usize);
        let read = files.read(&mut |document| {
            all.extend(document.fingerprint.map(W::from_u128));
            check(self.folder).map_err(&temporary)
        })?;
        // The reservation was a guess. What it left unused would count against the share of tables for the rest of the job.
        all.shrink_to_fit();
        self.observer.stage(JobStage::Compare, 0);
        let shares = shares.after_fingerprints::<W>(all.len() as u64)?;
        // Sorting on several threads needs a copy.
        let threads = match shares.join >= size_of_val(all.as_slice()) as u64 {
            true => self.limits.workers(),
            false => 1,
        };
        sort_unequal_by(&mut all, threads, W::cmp);
        let repeated = drop_repeated(&mut all);
        let marks = FingerprintMarks::new(all.len());
        // Documents with equal fingerprints are a cluster even if their class has no neighbour.
        repeated.iter().for_each(|&at| marks.set(at));
        let sorted = SortedKeys::new(all);
        let mut edges = EdgeSpool::new(self.folder, shares.pairs).map_err(&temporary)?;
        let limits = SelfJoinLimits::default()
            .threads(self.limits.workers())
            .scratch_bytes(usize::try_from(shares.join).unwrap_or(usize::MAX));
        let is_cancelled = || self.observer.is_cancelled() || edges.has_failed();
        let ended = self_join_until(&sorted.keys, self.radius(), limits, &is_cancelled, || {
            let (sorted, marks) = (&sorted, &marks);
            let mut writer = edges.writer();
            move |a: W, b: W, distance| link(sorted, marks, &mut writer, [a, b], distance)
        });
        edges.check().map_err(&temporary)?;
        if ended.is_break() {
            return Err(BatchError::Cancelled);
        }
        // Classes that are alone survive in any case, so they need neither a number nor a rank.
        Ok(LinkedClasses {
            index: ClassIndex::of_marked(sorted, marks),
            edges,
            read: Some(read),
        })
    }

    /// Reads the pairs of the lists.
    pub(super) fn read_pairs(&self, shares: MemoryShares) -> Result<LinkedClasses, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let mut ids = IdTable::default();
        let mut edges = EdgeSpool::new(self.folder, shares.list_pairs).map_err(&temporary)?;
        let mut writer = edges.writer();
        let mut equal = TableColumn::new();
        // All lists are opened before the first is read, so that a missing one is reported at once.
        let lists: Vec<PairFile> = (self.pairs.iter())
            .map(PairFile::open)
            .collect::<Result<_, _>>()?;
        let bytes = lists
            .iter()
            .map(|list| list.total_bytes().unwrap_or(0))
            .sum();
        self.observer.stage(JobStage::Scan, bytes);
        let mut before = 0;
        'lists: for mut list in lists {
            let name = list.name().to_owned();
            let no_pair = |NoPair { line, reason }| {
                let name = name.clone();
                ClusterError::Line { name, line, reason }
            };
            while let Some(pair) = list.next()?.map_err(no_pair)? {
                let line = pair.line;
                if let Some([a, b, distance]) = self.edge(&mut ids, &name, pair)? {
                    match distance {
                        // Equal fingerprints make one class. All classes must be known before edges between them mean anything.
                        0 => equal.push([a, b]),
                        _ => writer.push([a, b, distance]),
                    }
                }
                if line % STEP == 1 {
                    if edges.has_failed() {
                        break 'lists;
                    }
                    check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
                    self.observer.progress(before + list.bytes_read());
                    check(self.folder).map_err(&temporary)?;
                    // Checked again and again, because nothing tells beforehand how many ids a list has.
                    let used = ids.memory() + 8 * equal.capacity() as u64;
                    shares.ensure_list(used, u64::from(ids.len()))?;
                }
            }
            before += list.bytes_read();
        }
        // Dropping the writer appends its remaining edges, which may fail.
        drop(writer);
        edges.check().map_err(&temporary)?;
        let (classes, count) = classes_of(ids.len(), &equal);
        Ok(LinkedClasses {
            index: ClassIndex::Ids {
                ids,
                classes,
                count,
            },
            edges,
            read: None,
        })
    }

    /// Returns a pair as an edge between two ids. `None` if an id is paired with itself.
    fn edge(
        &self,
        ids: &mut IdTable,
        name: &str,
        pair: ListedPair<'_>,
    ) -> Result<Option<Edge>, BatchError> {
        let ListedPair {
            a,
            b,
            distance,
            line,
            ..
        } = pair;
        let of_texts = || ClusterError::OfTexts {
            name: name.to_owned(),
            line,
        };
        let distance = match distance {
            Some(distance) => distance,
            None if self.takes_text_pairs() => CONNECTED,
            None => return Err(of_texts().into()),
        };
        let most = self.distance.unwrap_or(u32::MAX);
        if u32::from(distance) > most {
            return Err(BatchError::Cluster(ClusterError::Beyond {
                name: name.to_owned(),
                line,
                a: a.to_string(),
                b: b.to_string(),
                found: distance,
                most,
            }));
        }
        // One id cannot have two fingerprints in one collection, so two documents share the id.
        if a == b && distance > 0 {
            return Err(BatchError::Cluster(ClusterError::OneId {
                name: name.to_owned(),
                line,
                id: a.to_string(),
                distance,
            }));
        }
        let (a, b) = (ids.number(&a), ids.number(&b));
        // At distance 0 an id is paired with itself if a document is in both collections of a join; that is not a pair.
        Ok((a != b).then_some([a, b, u32::from(distance)]))
    }

    /// Returns true if pairs may have similarities instead of distances: if nothing compares them, and no fingerprints contradict them.
    fn takes_text_pairs(&self) -> bool {
        self.rule == FingerprintRule::Components
            && self.inputs.is_empty()
            && self.distance.is_none()
    }

    /// Returns the largest distance at which fingerprints are joined, in bits.
    pub(super) fn radius(&self) -> u32 {
        self.distance
            .unwrap_or(super::DEFAULT_DISTANCE)
            .min(MAX_DISTANCE)
    }
}

/// Removes duplicates from ascending fingerprints. Returns the new positions of those that occurred more than once.
fn drop_repeated<W: Word>(all: &mut TableColumn<W>) -> TableColumn<u32> {
    let mut repeated = TableColumn::new();
    let mut count = 0;
    for at in 0..all.len() {
        if count > 0 && all[at] == all[count - 1] {
            // A value that occurs three times or more is listed once.
            if repeated.last() != Some(&(count as u32 - 1)) {
                repeated.push(count as u32 - 1);
            }
            continue;
        }
        all[count] = all[at];
        count += 1;
    }
    all.truncate(count);
    repeated
}

/// Records a pair that the join found.
fn link<W: Word>(
    sorted: &SortedKeys<W>,
    marks: &FingerprintMarks,
    writer: &mut EdgeWriter<'_>,
    pair: [W; 2],
    distance: u32,
) {
    // The join passes values, while edges and marks need positions: four bytes for fingerprints of any width.
    let [a, b] = pair.map(|fingerprint| {
        let at = sorted.find(fingerprint);
        at.expect("the join visits what it was given")
    });
    marks.set(a);
    marks.set(b);
    writer.push([a, b, distance]);
}

/// Returns the class of each id after merging ids with equal fingerprints, and the number of classes.
fn classes_of(ids: u32, equal: &[[u32; 2]]) -> (TableColumn<u32>, u32) {
    let mut joined = Components::new(ids);
    for &[a, b] in equal {
        joined.join(a, b);
    }
    let (mut classes, mut count) = (TableColumn::zeroed(ids as usize), 0);
    for id in 0..ids {
        let first = joined.first(id);
        // The first id of a class comes before its others.
        classes[id as usize] = match first == id {
            true => count,
            false => classes[first as usize],
        };
        count += u32::from(first == id);
    }
    (classes, count)
}
