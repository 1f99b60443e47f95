//! Search for kept texts just below the threshold: for each text of a sample, the most similar other kept text.
//!
//! The candidates of a job are chosen for its threshold, and few pairs below it are compared. So this is a separate search, and the same
//! for all methods. Prefixes of the sample, long enough for the lower end of the margin, are put into a table; then all features of every kept
//! text are looked up there. That is one pass over the feature sets, and nothing in the margin is missed: the first |x| - n + 1 features of x,
//! in any order, contain at least one feature of any set that shares n of them.
//!
//! If memory is short, the sample is processed in parts, with one pass each.
//!
//! The sample is chosen by the hashes of texts, so it is the same for any order of the input, memory and number of threads.

use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lookalike::resemblance::prefix_len;

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::frequency::FeatureFrequency;
use crate::dedup::just_below::{BelowThresholdCounts, MarginBins};
use crate::dedup::verify::{VerifiedMatch, Verifier, VerifyScratch};
use crate::parallel::{in_ranges, map_parallel_limited, run_on_threads};
use crate::parallel_sort::sort_unequal_by;
use crate::spill::prefetch::prefetch;
use crate::spill::table_column::TableColumn;

/// Maximum number of texts in a sample.
const SAMPLED: usize = 4096;
/// Number of texts of a sample that a thread takes at a time.
const SHARE: usize = 64;
/// Number of new texts that the sample is limited to if the job uses a collection.
const SAMPLED_AGAINST: usize = 1024;
/// Maximum number of features in a sample.
const FEATURES: usize = 1 << 20;
/// Maximum number of bytes of memory per feature: its set, the entry of the table before and after sorting, and the search structures.
const FEATURE_BYTES: usize = 44;

/// Returns the largest hash that a text of the sample may have, if a collection is searched for neighbours below the threshold. There each text of
/// the sample costs as much as in the search for candidates at the threshold.
pub(crate) fn last_sampled(hashes: impl Iterator<Item = u64>) -> u64 {
    let mut hashes: TableColumn<u64> = hashes.collect();
    match hashes.len() > SAMPLED_AGAINST {
        true => *hashes.select_nth_unstable(SAMPLED_AGAINST - 1).1,
        false => u64::MAX,
    }
}

/// Search for kept texts just below the threshold.
pub(crate) struct MarginSearch<'a> {
    pub(crate) verifier: &'a Verifier<'a>,
    /// Rank of each class.
    pub(crate) rank_of: &'a [u32],
    /// Hash of the text of each class.
    pub(crate) hashes: &'a [u64],
    pub(crate) decisions: &'a DecisionTable,
    /// Number of ranks, from the first, that are kept whatever they resemble: they can be found, but are not in the sample.
    pub(crate) fixed: usize,
    /// Texts with larger hashes are not in the sample.
    pub(crate) last_sampled: u64,
    /// True if no near-duplicate of a kept text is kept, except among fixed ranks.
    pub(crate) finds_all: bool,
    pub(crate) threads: usize,
    /// Bytes for a part of the sample. A part always has at least one text.
    pub(crate) memory: u64,
    /// Called regularly; an error ends the search.
    pub(crate) advance: &'a (dyn Fn() -> io::Result<()> + Sync),
}

/// Ascending ranks of the texts in a sample, and the number of kept texts that it was drawn from.
struct SampledRanks {
    ranks: Vec<u32>,
    kept: u64,
}

/// A text of the sample.
struct SampledText {
    rank: u32,
    /// Range of its features in [`TextSample::sets`].
    set: Range<usize>,
    /// Number of its features outside its prefix, which are not in the table.
    outside: usize,
}

/// Sampled texts in the order of rank, and a table of the features in their prefixes.
#[derive(Default)]
struct TextSample {
    texts: Vec<SampledText>,
    sets: Vec<u64>,
    /// Ascending features; `owners` has the number of the text for each.
    features: Vec<u64>,
    // A sample has at most 4096 texts, so 16 bits suffice.
    owners: Vec<u16>,
    /// Start in `features` of each value of the leading bits, and the end of the last one.
    starts: Vec<u32>,
    /// Number of bits of a feature after the leading bits.
    shift: u32,
    /// Bits indexed by the last bits of features: if a bit is not set, no text has the feature. The filter stays in cache, and rejects nearly all
    /// features.
    filter: Vec<u64>,
}

impl TextSample {
    #[inline]
    fn may_contain(&self, feature: u64) -> bool {
        let word = (feature as usize / 64) & (self.filter.len() - 1);
        self.filter[word] >> (feature % 64) & 1 == 1
    }

    fn texts_with(&self, feature: u64) -> impl Iterator<Item = u16> {
        let bucket = (feature >> self.shift) as usize;
        let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        let features = &self.features[range.clone()];
        let from = range.start + features.partition_point(|&other| other < feature);
        let same = self.features[from..range.end]
            .iter()
            .zip(&self.owners[from..]);
        same.take_while(move |(other, _)| **other == feature)
            .map(|(_, &owner)| owner)
    }

    fn set(&self, text: &SampledText) -> &[u64] {
        &self.sets[text.set.clone()]
    }

    /// Fills the table with the prefixes for resemblances of at least `from`.
    fn index(&mut self, from: f64, threads: usize) {
        let frequency = FeatureFrequency::new();
        map_parallel_limited(self.texts.chunks(SHARE), threads, |texts| {
            texts.iter().for_each(|text| frequency.add(self.set(text)));
        });
        // Counted in the sample only: any order of features is correct, and this one needs no other table.
        let levels = frequency.levels_by(threads);
        let of_texts = self.texts.chunks(SHARE).enumerate();
        let entries = map_parallel_limited(of_texts, threads, |(share, texts)| {
            let mut entries = Vec::new();
            let (mut prefix, mut common) = (Vec::new(), Vec::new());
            for (number, text) in (share * SHARE..).zip(texts) {
                debug_assert_eq!(text.outside, outside(text.set.len(), from));
                let length = text.set.len() - text.outside;
                levels.prefix(self.set(text), length, &mut prefix, &mut common);
                entries.extend(prefix.iter().map(|&feature| (feature, number as u16)));
            }
            entries
        });
        let mut entries = entries.concat();
        // Sets have each feature once, so no entry occurs twice.
        sort_unequal_by(&mut entries, threads, Ord::cmp);
        // About half of the leading values have an entry.
        // At least one bit, because a shift by 64 overflows.
        let bits = (entries.len() * 2).max(2).ilog2();
        self.shift = u64::BITS - bits;
        // Features are hashes, so their leading bits distribute them evenly among buckets.
        self.starts = vec![0; (1 << bits) + 1];
        for &(feature, _) in &entries {
            self.starts[(feature >> self.shift) as usize + 1] += 1;
        }
        for bucket in 0..1 << bits {
            self.starts[bucket + 1] += self.starts[bucket];
        }
        // At most one bit in 16 is set.
        self.filter = vec![0; (entries.len() * 16 / 64).next_power_of_two()];
        for &(feature, _) in &entries {
            let word = (feature as usize / 64) & (self.filter.len() - 1);
            self.filter[word] |= 1 << (feature % 64);
        }
        (self.features, self.owners) = entries.into_iter().unzip();
    }
}

/// Returns the number of features of a set outside its prefix.
fn outside(size: usize, from: f64) -> usize {
    size - prefix_len(size, from)
}

impl MarginSearch<'_> {
    /// Searches for the most similar kept text of each text of the sample, and counts those in the margin.
    pub(crate) fn run(&self, margin: MarginBins) -> io::Result<BelowThresholdCounts> {
        // A search of its own: candidates for the lower end of the margin in the whole job would cost more than this pass.
        let from = margin.from();
        let SampledRanks { ranks, kept } = self.sampled_ranks();
        let mut just_below = BelowThresholdCounts::new(margin, ranks.len() as u64, kept);
        let mut rest = &ranks[..];
        while !rest.is_empty() {
            // In the order of ranks, because equally similar pairs are named in that order.
            let (part, later) = rest.split_at(self.fit_count(rest));
            rest = later;
            let mut sample = self.sample(part, from)?;
            sample.index(from, self.threads);
            let found = self.closest(&sample, from)?;
            for (text, found) in sample.texts.iter().zip(found) {
                let Some(found) = found else { continue };
                let similarity = self.verifier.similarity(text.rank, found);
                // An approximate method may have missed a pair above the threshold.
                if similarity < self.verifier.threshold {
                    just_below.add(margin, text.rank, found.rank, similarity);
                }
            }
        }
        Ok(just_below)
    }

    /// Returns the number of ranks, from the first, whose sets fit in the memory together; at least one.
    fn fit_count(&self, ranks: &[u32]) -> usize {
        let mut bytes = 0;
        let fitting = ranks.iter().take_while(|&&rank| {
            bytes += self.verifier.sizes[rank as usize] as usize * FEATURE_BYTES;
            bytes as u64 <= self.memory
        });
        fitting.count().max(1)
    }

    fn is_kept(&self, rank: u32) -> bool {
        self.decisions.is_kept(rank as usize)
    }

    /// Returns the number of kept texts in a range of ranks that are not fixed, and the texts with the smallest hashes: hash and rank, in any order.
    /// `largest` is an upper bound of the hashes in the sample, which decreases as ranges are processed.
    fn smallest_hashes(&self, range: Range<usize>, largest: &AtomicU64) -> (u64, Vec<(u64, u32)>) {
        const PREFETCH_DISTANCE: u32 = 16;
        let classes = self.verifier.classes;
        let (start, end) = (self.fixed + range.start, self.fixed + range.end);
        let (mut kept, mut least) = (0, BinaryHeap::new());
        for rank in start as u32..end as u32 {
            // The classes of successive ranks are anywhere, so each hash is a cache miss.
            if let Some(&later) = classes.get((rank + PREFETCH_DISTANCE) as usize) {
                prefetch(self.hashes, later as usize);
            }
            if !self.is_kept(rank) {
                continue;
            }
            kept += 1;
            let found = (self.hashes[classes[rank as usize] as usize], rank);
            // A bound that another thread has lowered in the meantime lets more texts through, never fewer.
            if found.0 > largest.load(Ordering::Relaxed) {
                continue;
            }
            // The heap has the largest hash on top. Keeping the smallest hashes of each range keeps the smallest of
            // all.
            if least.len() < SAMPLED {
                least.push(found);
            } else if least.peek().is_some_and(|last| found < *last) {
                least.pop();
                least.push(found);
            }
        }
        // A full heap holds as many texts as a sample, so no larger hash can be in it.
        if let Some(last) = least.peek().filter(|_| least.len() == SAMPLED) {
            largest.fetch_min(last.0, Ordering::Relaxed);
        }
        (kept, least.into_vec())
    }

    /// Returns the kept texts with the smallest hashes whose features fit in the limit for a sample, which does not depend on the memory.
    fn sampled_ranks(&self) -> SampledRanks {
        let sizes = self.verifier.sizes;
        let count = sizes.len() - self.fixed;
        let (mut kept, mut least) = (0, Vec::new());
        let largest = AtomicU64::new(self.last_sampled);
        let of_range = |range| self.smallest_hashes(range, &largest);
        for (number, found) in in_ranges(count, self.threads, of_range) {
            kept += number;
            least.extend(found);
        }
        // By hash, then rank, so that the sample does not depend on the division into ranges.
        if least.len() > SAMPLED {
            least.select_nth_unstable(SAMPLED);
            least.truncate(SAMPLED);
        }
        least.sort_unstable();
        let mut room = FEATURES;
        let fits = |&(_, rank): &(u64, u32)| {
            let size = sizes[rank as usize] as usize;
            let left = room.checked_sub(size);
            // Skip a text that does not fit; shorter ones after it may.
            room = left.unwrap_or(room);
            left.is_some()
        };
        let fitting = least.into_iter().filter(fits);
        let mut ranks: Vec<u32> = fitting.map(|(_, rank)| rank).collect();
        // `run` cuts the sample into parts in the order of ranks.
        ranks.sort_unstable();
        SampledRanks { ranks, kept }
    }

    /// Loads the texts of these ranks, without the table of their features.
    fn sample(&self, ranks: &[u32], from: f64) -> io::Result<TextSample> {
        let sizes = ranks.iter().map(|&rank| self.verifier.sizes[rank as usize]);
        let mut sample = TextSample {
            texts: Vec::with_capacity(ranks.len()),
            sets: Vec::with_capacity(sizes.map(|size| size as usize).sum()),
            ..TextSample::default()
        };
        let mut buffer = Vec::new();
        for &rank in ranks {
            let start = sample.sets.len();
            let set = self.verifier.set(rank, &mut buffer)?;
            sample.sets.extend_from_slice(set);
            sample.texts.push(SampledText {
                rank,
                set: start..sample.sets.len(),
                outside: outside(set.len(), from),
            });
        }
        Ok(sample)
    }

    /// Returns, for each text of the sample, the most similar other kept text that shares a feature of its prefix, if their resemblance reaches
    /// `from`; among equally similar ones, that of the smallest rank.
    fn closest(&self, sample: &TextSample, from: f64) -> io::Result<Vec<Option<VerifiedMatch>>> {
        // By segments of the store, not by rank, so that sets on disk are read in the order in which they were written.
        let segments = self.verifier.sets.segments();
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<Vec<Option<VerifiedMatch>>> {
            let mut worker = MarginWorker::new(self, sample, from);
            let mut buffer = Vec::new();
            loop {
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= segments {
                    return Ok(worker.found);
                }
                (self.advance)()?;
                let sets = self.verifier.sets;
                sets.walk(segment, &mut buffer, |class, set| worker.visit(class, set))?;
            }
        };
        let all = run_on_threads(self.threads, work)?;
        let best = |number: usize| {
            let rank = sample.texts[number].rank;
            let found = all.iter().map(|found| found[number]);
            // Threads process segments in any order: ties go to the smaller rank, as in the plain sequence.
            found.fold(None, |best, found| self.verifier.closer(rank, best, found))
        };
        Ok((0..sample.texts.len()).map(best).collect())
    }
}

/// State of one thread of a search.
struct MarginWorker<'a> {
    search: &'a MarginSearch<'a>,
    sample: &'a TextSample,
    from: f64,
    /// Most similar text so far for each text of the sample.
    found: Vec<Option<VerifiedMatch>>,
    /// For each text of the sample, the number of features in the table that it shares with the current text; and the texts with a number above 0.
    counts: Vec<u32>,
    touched: Vec<u16>,
    scratch: VerifyScratch,
}

impl<'a> MarginWorker<'a> {
    fn new(search: &'a MarginSearch<'a>, sample: &'a TextSample, from: f64) -> Self {
        let texts = sample.texts.len();
        Self {
            search,
            sample,
            from,
            found: vec![None; texts],
            counts: vec![0; texts],
            touched: Vec::new(),
            scratch: VerifyScratch::default(),
        }
    }

    /// Compares the set of a class with those texts of the sample that share enough features with it.
    fn visit(&mut self, class: u32, set: &[u64]) -> io::Result<()> {
        let rank = self.search.rank_of[class as usize];
        if !self.search.is_kept(rank) {
            return Ok(());
        }
        for &feature in set
            .iter()
            .filter(|&&feature| self.sample.may_contain(feature))
        {
            for number in self.sample.texts_with(feature) {
                let count = &mut self.counts[usize::from(number)];
                if *count == 0 {
                    self.touched.push(number);
                }
                *count += 1;
            }
        }
        // Taken out while `compare` borrows the worker, and put back to be reused.
        let mut touched = std::mem::take(&mut self.touched);
        for number in touched.drain(..) {
            let shared = std::mem::take(&mut self.counts[usize::from(number)]);
            self.compare(usize::from(number), rank, shared as usize)?;
        }
        self.touched = touched;
        Ok(())
    }

    /// Compares a text of the sample with a kept text that has `shared` features of its prefix.
    fn compare(&mut self, number: usize, other: u32, shared: usize) -> io::Result<()> {
        let verifier = self.search.verifier;
        let text = &self.sample.texts[number];
        if other == text.rank {
            return Ok(());
        }
        let best = self.found[number];
        let bar = best.map_or(self.from, |best| verifier.similarity(text.rank, best));
        let needed = verifier.needed(text.rank, other, bar);
        // Features that are not in the table may all be shared.
        if shared + text.outside < needed {
            return Ok(());
        }
        // Two kept texts whose resemblance reaches the threshold were compared and refused if the method finds all pairs. Thousands of pages may have
        // one main text, and to compare each two of them as pages again would take minutes.
        let limit = match self.search.finds_all {
            true => verifier.needed(text.rank, other, verifier.threshold),
            false => usize::MAX,
        };
        let (set, pair) = (self.sample.set(text), [text.rank, other]);
        let found = verifier.verified(set, pair, needed..limit, &mut self.scratch)?;
        self.found[number] = verifier.closer(text.rank, best, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use lookalike_corpus::PageIdentity;
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::class_id::ClassId;
    use crate::dedup::pages::{PageColumns, PageVerifier};
    use crate::dedup::survivors::settle;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};
    use crate::spill::feature_sets::SetStore;

    /// The definition: for each kept rank, the most similar other kept one that shares a feature with it, if it is in the margin.
    fn slow(
        collection: &TestCollection,
        decisions: &DecisionTable,
        fixed: usize,
    ) -> BelowThresholdCounts {
        let margin = MarginBins::below(collection.threshold);
        let is_kept = |&rank: &u32| decisions.is_kept(rank as usize);
        let kept: Vec<u32> = (fixed as u32..decisions.len() as u32)
            .filter(is_kept)
            .collect();
        let mut just_below =
            BelowThresholdCounts::new(margin, kept.len() as u64, kept.len() as u64);
        for rank in kept {
            let similar = |other| {
                let found = collection.similar_from(rank, other, margin.from());
                found.map(|similarity| (similarity, Reverse(other)))
            };
            let others = (0..decisions.len() as u32).filter(|&other| other != rank);
            let closest = others.filter(is_kept).filter_map(similar);
            let closest = closest.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            if let Some((similarity, Reverse(other))) = closest {
                just_below.add(margin, rank, other, similarity);
            }
        }
        just_below
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn all_that_is_just_below_the_threshold_is_found(
            sets in feature_sets(80),
            threshold in prop_oneof![thresholds(), 0.1..1.0_f64],
            part_fixed in 0.0..1.0_f64,
            threads in prop::sample::select(vec![1_usize, 2, 3, 8]),
            memory in prop_oneof![Just(0_u64), 0..20_000_u64, Just(u64::MAX)],
            finds_all in any::<bool>(),
        ) {
            let fixed = (sets.len() as f64 * part_fixed * part_fixed) as usize;
            let collection = TestCollection::by_prefix(sets, threshold);
            let verifier = collection.verifier();
            let decisions = settle(&verifier, fixed, threads, |_| Ok(())).unwrap().decisions;
            let search = MarginSearch {
                verifier: &verifier,
                rank_of: verifier.classes,
                hashes: &vec![7; decisions.len()],
                decisions: &decisions,
                fixed,
                last_sampled: u64::MAX,
                finds_all,
                threads,
                memory,
                advance: &|| Ok(()),
            };
            let found = search.run(MarginBins::below(threshold)).unwrap();
            prop_assert_eq!(found, slow(&collection, &decisions, fixed));
        }
    }

    #[test]
    fn pages_that_were_refused_were_compared_again() {
        let collection = TestCollection::by_prefix(vec![vec![1, 2, 3]; 2], 0.8);
        let mut columns = PageColumns::default();
        for class in 0..2 {
            let class = ClassId::new(class).unwrap();
            columns.set(class, PageIdentity::from_bits(1).unwrap(), Some((0, 9)));
        }
        let verifier = Verifier {
            pages: Some(PageVerifier {
                columns: &columns,
                // Without sets, so that a comparison of visible texts panics.
                sets: &SetStore::new(0),
                classes: &[0, 1],
                threshold: 0.8,
            }),
            ..collection.verifier()
        };
        let search = MarginSearch {
            verifier: &verifier,
            rank_of: verifier.classes,
            hashes: &[7, 7],
            decisions: &DecisionTable::all_kept(2),
            fixed: 0,
            last_sampled: u64::MAX,
            finds_all: true,
            threads: 1,
            memory: u64::MAX,
            advance: &|| Ok(()),
        };
        let found = search.run(MarginBins::below(0.8)).unwrap();
        assert_eq!(found.kept.iter().sum::<u64>(), 0);
    }

    #[test]
    fn a_large_collection_is_sampled_by_hash() {
        // Every second set has eight of the ten features of the one before it, so all are kept, and both are in the margin.
        // There are so many that, with two threads, each range has more texts than the sample.
        let count = 17 * SAMPLED as u64;
        let set = |at: u64| (0..10).map(move |number| 1000 * at + number);
        let near = |at: u64| {
            set(at - at % 2)
                .take(8)
                .chain(set(at).skip(8 + at as usize % 2 * 2))
        };
        let sets: Vec<Vec<u64>> = (0..count).map(|at| near(at).collect()).collect();
        let collection = TestCollection::by_prefix(sets, 0.85);
        let verifier = collection.verifier();
        let decisions = DecisionTable::all_kept(count as usize);
        let hashes: Vec<u64> = (0..count).map(|at| count - at).collect();
        let run = |threads, last_sampled| {
            let search = MarginSearch {
                verifier: &verifier,
                rank_of: verifier.classes,
                hashes: &hashes,
                decisions: &decisions,
                fixed: 0,
                last_sampled,
                finds_all: false,
                threads,
                memory: if threads == 3 { 400_000 } else { u64::MAX },
                advance: &|| Ok(()),
            };
            search.run(MarginBins::below(0.85)).unwrap()
        };
        let found = run(1, u64::MAX);
        assert_eq!((found.sampled, found.texts), (SAMPLED as u64, count));
        assert_eq!(found.kept.iter().sum::<u64>(), SAMPLED as u64);
        // The smallest hashes are those of the last ranks.
        assert!(
            found
                .closest
                .iter()
                .all(|pair| pair.a >= SAMPLED as u32 && pair.b == pair.a - 1)
        );
        for threads in [2, 3, 8] {
            assert_eq!(run(threads, u64::MAX), found, "{threads} threads");
        }
        let few = run(2, 100);
        assert_eq!((few.sampled, few.texts), (100, count));
        let most = SAMPLED_AGAINST as u64;
        assert_eq!(last_sampled((0..count).rev()), most - 1);
        assert_eq!(last_sampled(0..most), u64::MAX);
    }
}
