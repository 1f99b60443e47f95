//! All verified pairs, sorted: the join behind `lookalike pairs`.
//!
//! Works on classes: every class is compared with the earlier members of its groups. A verified pair of classes
//! stands for all pairs of their documents, and the documents of one class are pairs with similarity 1. Pairs are
//! partitioned by the first document's place in the order of ids. Those of a partition are sorted in memory: together if they fit, otherwise
//! those of a few documents at a time, for each of which the partition is read again. So the memory is bounded, except for the pairs of a
//! single document with later ones.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dedup::documents::DocumentTable;
use crate::dedup::group_windows::{ClassGroups, GroupError, WindowPlan};
use crate::dedup::hashing_stream::damaged;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::pair_log::{PairLog, PairRecord, StridePairs};
use crate::dedup::ranking::DocumentRanking;
use crate::dedup::verify::{CandidateMembers, Verifier, VerifyScratch, VisitedGroup};
use crate::observer::SharedProgress;
use crate::parallel::run_on_threads;
use crate::settings::PairScope;
use crate::spill::list_table::ListTable;
use crate::spill::partitions::{PARTS, PartitionedFile, SpoolWriter};

/// Number of pairs that are read from a temporary file at a time.
const READ_PAIRS: usize = 1 << 14;

/// A verified pair of documents: numbers in the document table, in the order of ids, in which documents that are only compared with come
/// before all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DocumentPair {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) similarity: f64,
    /// Resemblance of the visible texts, if another text was compared.
    pub(crate) visible: Option<f64>,
}

/// Documents of each class, by rank: their places in the order of ids.
pub(crate) fn class_copies(
    documents: &DocumentTable,
    ranking: &DocumentRanking,
    rank_of: &[u32],
) -> ListTable<u32> {
    // The closure is called twice, to count and to fill, so that no pairs are stored in between.
    ListTable::new(rank_of.len(), || {
        let places = (0..).zip(ranking.by_id.iter());
        places.filter_map(move |(place, &document)| {
            let class = documents.classes[document as usize]?;
            Some((rank_of[class.position()] as usize, place))
        })
    })
}

/// Spool of verified pairs.
pub(crate) struct PairSpool {
    spool: PartitionedFile<PairRecord>,
    documents: usize,
    per_part: usize,
    /// Number of pairs that are sorted at once, unless a single document has more.
    most_sorted: u64,
}

impl PairSpool {
    pub(crate) fn new(folder: &Path, budget: u64, documents: usize) -> io::Result<Self> {
        Ok(Self {
            spool: PartitionedFile::new(folder, budget)?,
            documents,
            // Partitions are ranges of places, so that reading them one after another keeps the order.
            per_part: documents.div_ceil(PARTS).max(1),
            // Beside the pairs of the spool that are in memory.
            most_sorted: (budget / 2 / size_of::<PairRecord>() as u64).max(READ_PAIRS as u64),
        })
    }

    /// Adds the pairs in a log, for `ranks` ranks whose texts have the hash `order`, and returns the log.
    pub(crate) fn restored(&self, logs: &JobLogs, order: u64, ranks: usize) -> io::Result<PairLog> {
        let mut writer = self.writer();
        let log = PairLog::open(logs, order, ranks, |pair @ [a, b, ..]| {
            // Although the checksum is right, the log is a file, so its indices are checked.
            match (a.max(b) as usize) < self.documents {
                true => writer.push(self.part_of(&pair), pair),
                false => Err(damaged()),
            }
        })?;
        writer.finish()?;
        Ok(log)
    }

    /// Creates a writer for one thread.
    fn writer(&self) -> SpoolWriter<'_, PairRecord> {
        SpoolWriter::new(&self.spool)
    }

    /// Returns the partition of a pair.
    fn part_of(&self, pair: &PairRecord) -> usize {
        pair[0] as usize / self.per_part
    }

    /// Calls `visit` with all pairs, sorted by both ids, and keeps them.
    pub(crate) fn for_each(
        &self,
        by_id: &[u32],
        mut visit: impl FnMut(DocumentPair) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in 0..PARTS {
            for (places, count) in self.sortable_places(part)? {
                // Exactly as long, because a list that grows takes up to twice as much.
                let mut records: Vec<PairRecord> = Vec::with_capacity(count as usize);
                // Not taken, because callers may ask for the pairs again.
                self.spool.pieces(part, READ_PAIRS, &mut |piece| {
                    records.extend(piece.iter().filter(|pair| places.contains(&pair[0])));
                    io::Result::Ok(())
                })?;
                // By `a`, then `b`. Each pair occurs once, so the similarities never decide.
                records.sort_unstable();
                for [a, b, high, low, visible_high, visible_low] in records {
                    let visible = whole(visible_high, visible_low);
                    visit(DocumentPair {
                        a: by_id[a as usize],
                        b: by_id[b as usize],
                        similarity: whole(high, low),
                        visible: (!visible.is_nan()).then_some(visible),
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Divides the places of a partition, in ascending order, into ranges whose pairs are sorted at once. Returns each with its number of pairs.
    fn sortable_places(&self, part: usize) -> io::Result<Vec<(Range<u32>, u64)>> {
        let start = (part * self.per_part).min(self.documents);
        let end = (start + self.per_part).min(self.documents);
        let mut ranges = Vec::new();
        let (mut first, mut sum) = (start, self.spool.records(part));
        if sum > self.most_sorted {
            let mut counts = vec![0_u64; end - start];
            self.spool.pieces(part, READ_PAIRS, &mut |piece| {
                let places = piece.iter().map(|pair| pair[0] as usize);
                places.for_each(|place| counts[place - start] += 1);
                io::Result::Ok(())
            })?;
            sum = 0;
            for (place, count) in (start..).zip(counts) {
                if sum > 0 && sum + count > self.most_sorted {
                    ranges.push((first as u32..place as u32, sum));
                    (first, sum) = (place, 0);
                }
                sum += count;
            }
        }
        ranges.push((first as u32..end as u32, sum));
        Ok(ranges)
    }
}

/// Returns the record of two documents, by their places in the order of ids.
fn pair_record(x: u32, y: u32, similarity: f64, visible: Option<f64>) -> PairRecord {
    let [high, low] = halves(similarity);
    // No resemblance is NaN, so NaN stands for none.
    let [visible_high, visible_low] = halves(visible.unwrap_or(f64::NAN));
    [x.min(y), x.max(y), high, low, visible_high, visible_low]
}

fn halves(value: f64) -> [u32; 2] {
    let bits = value.to_bits();
    [(bits >> 32) as u32, bits as u32]
}

fn whole(high: u32, low: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

/// A search for all pairs.
pub(crate) struct PairJoin<'a> {
    pub(crate) groups: &'a ClassGroups,
    /// Bytes for a window of groups that are on disk.
    pub(crate) memory: u64,
    pub(crate) copies: &'a ListTable<u32>,
    /// Number of places of documents that are only compared with; pairs of two of these are left out.
    pub(crate) against: u32,
    pub(crate) scope: PairScope,
    pub(crate) threads: usize,
    pub(crate) spool: &'a PairSpool,
    /// A log that has the pairs of some ranks, which are already in the spool, and receives those of the others.
    pub(crate) log: Option<&'a PairLog>,
    /// Called with the number of classes that are done; an error ends the search.
    pub(crate) advance: &'a (dyn Fn(u64) -> io::Result<()> + Sync),
}

impl PairJoin<'_> {
    /// Finds all pairs and adds them to the spool, window by window; each window has a multiple of `step` ranks.
    pub(crate) fn run(&self, verifier: &Verifier<'_>, step: usize) -> Result<(), GroupError> {
        let ranks = verifier.sizes.len();
        let mut start = self.log.map_or(0, PairLog::first_unfinished);
        while start < ranks {
            let window = self.groups.window(&WindowPlan {
                ranks: start as u32..ranks as u32,
                step,
                memory: self.memory,
                threads: self.threads,
                // All earlier ranks may form pairs, not only survivors.
                is_wanted: &|_| true,
            })?;
            let end = window.end as usize;
            self.join(&verifier.in_window(&window), start..end)?;
            start = end;
        }
        Ok(())
    }

    /// Finds the pairs of a range of ranks with earlier ranks.
    fn join(&self, verifier: &Verifier<'_>, ranks: Range<usize>) -> io::Result<()> {
        const STRIDE: usize = 32;
        let next = AtomicUsize::new(ranks.start);
        let done = SharedProgress::starting_at(ranks.start as u64);
        let work = || -> io::Result<()> {
            let mut stride = PairStride {
                join: self,
                done: &done,
                pushed: 0,
                verifier,
                scratch: VerifyScratch::default(),
                whole_pages: VerifyScratch::default(),
                writer: self.spool.writer(),
            };
            loop {
                // The number is all that threads share here; results are combined in the spool, which has locks.
                let from = next.fetch_add(STRIDE, Ordering::Relaxed);
                if from >= ranks.end {
                    return stride.writer.finish();
                }
                let to = ranks.end.min(from + STRIDE);
                match self.log {
                    None => stride.join(from as u32..to as u32, None)?,
                    Some(log) => {
                        for run in log.unfinished(from as u32..to as u32) {
                            let mut found = log.stride(run.clone());
                            stride.join(run, Some(&mut found))?;
                            // After an error, the stride has no end in the log, and is searched again.
                            found.end();
                        }
                    }
                }
                // After the stride has ended in the log, so that a cancelled job keeps its pairs.
                done.add((to - from) as u64, self.advance)?;
            }
        };
        run_on_threads(self.threads, work).map(drop)
    }
}

/// One thread's search for the pairs of a few ranks at a time.
struct PairStride<'a> {
    join: &'a PairJoin<'a>,
    done: &'a SharedProgress,
    /// Number of pairs so far.
    pushed: u64,
    verifier: &'a Verifier<'a>,
    scratch: VerifyScratch,
    // `matches` holds the other scratch while it passes on pairs.
    whole_pages: VerifyScratch,
    writer: SpoolWriter<'a, PairRecord>,
}

impl PairStride<'_> {
    /// Finds the pairs of these ranks with earlier ones, and adds them to `found` too.
    fn join(
        &mut self,
        ranks: Range<u32>,
        mut found: Option<&mut StridePairs<'_>>,
    ) -> io::Result<()> {
        // Number of pairs after which a thread asks whether the job is cancelled: a single class of equal texts may have very many.
        const ASKED: u64 = 1 << 16;
        let (join, verifier) = (self.join, self.verifier);
        let (copies, against) = (join.copies, join.against);
        let mut put = |pair: PairRecord| {
            self.pushed += 1;
            if self.pushed.is_multiple_of(ASKED) {
                self.done.add(0, join.advance)?;
            }
            if let Some(found) = &mut found {
                found.push(pair);
            }
            self.writer.push(join.spool.part_of(&pair), pair)
        };
        // Documents of one class have one category.
        if join.scope.allows(true) {
            push_exact_copies(copies, against, ranks.clone(), |a, b, similarity| {
                put(pair_record(a, b, similarity, None))
            })?;
        }
        let mut outcome = Ok(());
        verifier.matches(ranks, &mut self.scratch, EarlierMembers, |x, other| {
            // `matches` cannot be stopped from here, so ignore further pairs.
            if outcome.is_err() {
                return;
            }
            let similarity = verifier.similarity(x, other);
            let visible = match verifier.visible_similarity(x, other.rank, &mut self.whole_pages) {
                Ok(visible) => visible,
                Err(error) => {
                    outcome = Err(error);
                    return;
                }
            };
            let all = product(copies.of(x), copies.of(other.rank));
            let mut all = all.filter(|&(a, b)| a >= against || b >= against);
            outcome = all.try_for_each(|(a, b)| put(pair_record(a, b, similarity, visible)));
        })?;
        outcome
    }
}

/// Adds the pairs of documents in each class, with similarity 1.
fn push_exact_copies(
    copies: &ListTable<u32>,
    against: u32,
    ranks: Range<u32>,
    mut push: impl FnMut(u32, u32, f64) -> io::Result<()>,
) -> io::Result<()> {
    for own in ranks.map(|x| copies.of(x)) {
        for (i, &a) in own.iter().enumerate() {
            let mut others = own[i + 1..]
                .iter()
                .filter(|&&b| a >= against || b >= against);
            others.try_for_each(|&b| push(a, b, 1.0))?;
        }
    }
    Ok(())
}

/// Returns all pairs with one element of each slice.
fn product<'s>(a: &'s [u32], b: &'s [u32]) -> impl Iterator<Item = (u32, u32)> + 's {
    a.iter().flat_map(move |&a| b.iter().map(move |&b| (a, b)))
}

/// Members before this rank, so that each pair is found once.
pub(crate) struct EarlierMembers(pub(crate) u32);

impl CandidateMembers for EarlierMembers {
    fn for_each(&self, group: VisitedGroup<'_>, within: &Range<u32>, mut visit: impl FnMut(u32)) {
        let end = within.end.min(self.0);
        for partners in group.groups.partners(group.membership) {
            // Nearly all searches are for all ranks, so skip this one for them.
            let from = match within.start {
                0 => 0,
                start => partners.partition_point(|&y| y < start),
            };
            let earlier = partners[from..].iter().copied().take_while(|&y| y < end);
            earlier.for_each(&mut visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::class_id::ClassId;
    use crate::dedup::documents::TextClasses;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};
    use crate::settings::{KeepRules, RepeatedIds};

    /// Creates documents `a0`, `a1`, ..., with these classes and equal lengths.
    fn table(class_of: &[usize], classes: usize) -> (DocumentTable, DocumentRanking) {
        let mut documents = DocumentTable::default();
        for (at, &class) in class_of.iter().enumerate() {
            documents.push_id(&format!("a{at}"));
            documents.classes.push(ClassId::new(class));
            documents.lengths.push(1);
            documents.record_hashes.push(0);
        }
        let mut table = TextClasses::default();
        for class in 0..classes {
            table.set(ClassId::new(class).unwrap(), class as u128, 0, 1);
        }
        let ranking = DocumentRanking::new(
            &mut documents,
            &table,
            &KeepRules::default(),
            RepeatedIds::Number,
            1,
        );
        let ranking = ranking.unwrap().0;
        (documents, ranking)
    }

    /// Returns all pairs of documents whose classes are equal or similar, as in the result, except pairs of two that are only compared with.
    fn slow(
        collection: &TestCollection,
        class_of: &[usize],
        by_id: &[u32],
        against: usize,
    ) -> Vec<(u32, u32, f64)> {
        let mut pairs = Vec::new();
        for (place, &a) in by_id.iter().enumerate() {
            for (other, &b) in by_id.iter().enumerate().skip(place + 1) {
                let classes = (class_of[a as usize] as u32, class_of[b as usize] as u32);
                let similarity = match classes.0 == classes.1 {
                    true => Some(1.0),
                    false => collection.similar(classes.0, classes.1),
                };
                if place >= against || other >= against {
                    pairs.extend(similarity.map(|similarity| (a, b, similarity)));
                }
            }
        }
        pairs
    }

    #[test]
    fn a_search_in_one_large_class_could_not_be_cancelled() {
        let class_of = [0; 1000];
        let (documents, ranking) = table(&class_of, 1);
        let collection = TestCollection::by_prefix(vec![vec![1, 2, 3]], 0.5);
        let copies = class_copies(&documents, &ranking, &[0]);
        let spool = PairSpool::new(collection.folder.path(), 1 << 20, documents.len()).unwrap();
        let reported = Mutex::new(Vec::new());
        let join = PairJoin {
            groups: &collection.groups_in_memory(),
            memory: 0,
            copies: &copies,
            against: 0,
            scope: PairScope::Everything,
            threads: 1,
            spool: &spool,
            log: None,
            advance: &|done| {
                reported.lock().unwrap().push(done);
                Err(io::Error::other("cancelled"))
            },
        };
        let searched = join.run(&collection.verifier(), 1);
        assert!(matches!(searched, Err(GroupError::Io(_))));
        // Asked while no class was done yet.
        assert_eq!(*reported.lock().unwrap(), [0]);
    }

    #[test]
    fn all_pairs_of_a_large_partition_were_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        // Three places in each partition, and the last ones in none.
        let mut spool = PairSpool::new(folder.path(), 0, 3 * PARTS - 1).unwrap();
        spool.most_sorted = 2;
        let mut writer = spool.writer();
        let last = 3 * PARTS as u32 - 2;
        let pairs = [
            [1, last],
            [last - 1, last],
            [0, 9],
            [1, 2],
            [0, 1],
            [1, 8],
            [2, 7],
        ];
        for [a, b] in pairs {
            let pair = pair_record(a, b, 0.5, None);
            writer.push(spool.part_of(&pair), pair).unwrap();
        }
        writer.finish().unwrap();
        let ranges = spool.sortable_places(0).unwrap();
        let places: Vec<_> = ranges.iter().map(|(places, _)| places.clone()).collect();
        assert_eq!(places, [0..1, 1..2, 2..3]);
        assert_eq!(
            ranges.iter().map(|&(_, count)| count).sum::<u64>(),
            spool.spool.records(0)
        );
        assert_eq!(spool.sortable_places(1).unwrap().len(), 1);
        let by_id: Vec<u32> = (0..=last).collect();
        let mut found = Vec::new();
        spool
            .for_each(&by_id, |pair| {
                found.push([pair.a, pair.b]);
                Ok(())
            })
            .unwrap();
        let mut sorted = pairs;
        sorted.sort_unstable();
        assert_eq!(found, sorted);
    }

    proptest! {
        #[test]
        fn the_join_finds_every_pair_in_the_order_of_ids(
            sets in feature_sets(40),
            copies in prop::collection::vec(0..40_usize, 0..20),
            threshold in thresholds(),
            against in 0..10_u32,
            threads in 1..4_usize,
            budget in prop_oneof![Just(0_u64), Just(1 << 20)],
            step in 1..50_usize,
            is_on_disk in any::<bool>(),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let classes = sets.len();
            let repeated = copies.into_iter().filter(|&class| class < classes);
            let class_of: Vec<usize> = (0..classes).chain(repeated).collect();
            let (documents, ranking) = table(&class_of, classes);
            let collection = TestCollection::by_prefix(sets, threshold);
            // Ranks equal classes here, because the pairs do not depend on the order of preference.
            let rank_of: Vec<u32> = (0..classes as u32).collect();
            let copies = class_copies(&documents, &ranking, &rank_of);
            let verifier = collection.verifier();
            let groups = match is_on_disk {
                true => collection.groups_on_disk(),
                false => collection.groups_in_memory(),
            };
            let find = |log: Option<&JobLogs>, threads| {
                let mut memory = 0;
                loop {
                    let spool = PairSpool::new(collection.folder.path(), budget, documents.len()).unwrap();
                    let log = log.map(|log| spool.restored(log, 1, classes).unwrap());
                    let join = PairJoin {
                        groups: &groups,
                        memory,
                        copies: &copies,
                        against,
                        scope: PairScope::Everything,
                        threads,
                        spool: &spool,
                        log: log.as_ref(),
                        advance: &|_| Ok(()),
                    };
                    match join.run(&verifier, step) {
                        Ok(()) => return spool,
                        Err(GroupError::TooLarge(needed)) => memory = needed,
                        Err(GroupError::Io(error)) => panic!("{error}"),
                    }
                }
            };
            let spool = match cut {
                None => find(None, threads),
                Some(cut) => {
                    // A job that was killed, and one that resumes it.
                    let log = JobLogs::in_folder(collection.folder.path(), 1, 1);
                    drop(find(Some(&log), threads));
                    let bytes = std::fs::read(&log.found).unwrap();
                    std::fs::write(&log.found, &bytes[..cut.index(bytes.len() + 1)]).unwrap();
                    find(Some(&log), 4 - threads)
                }
            };

            let mut found = Vec::new();
            spool.for_each(&ranking.by_id, |pair| {
                found.push((pair.a, pair.b, pair.similarity));
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, slow(&collection, &class_of, &ranking.by_id, against as usize));
        }
    }
}
