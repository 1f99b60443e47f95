//! Search for kept texts that are just below the threshold: for each text of a sample, the most similar kept one before it.
//!
//! The candidates of a job are for its threshold, and below it hardly any pair is compared. So this is a search of its own, and the same one
//! for all methods. Prefixes of the sample, long enough for the lower end of the margin, go into a table; then every kept text looks all its
//! features up there. That is one pass over the feature sets, and nothing in the margin is missed: of the first |x| - n + 1 features of x,
//! in any order, one that shares n has at least one.
//!
//! When memory is short, the sample is searched for in parts, one pass each.
//!
//! A text is in the sample for its hash, so that the sample is the same for any order of the input, any memory and any number of threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lookalike::resemblance::prefix_len;

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::frequency::FeatureFrequency;
use crate::dedup::just_below::{BelowMargin, JustBelow};
use crate::dedup::verify::{VerifiedMatch, Verifier, VerifyScratch};
use crate::parallel::{in_ranges, on_items, on_threads};
use crate::parallel_sort::sort_unequal_by;
use crate::spill::prefetch::prefetch;
use crate::spill::table_column::TableColumn;

/// Texts of the largest sample.
const SAMPLED: usize = 4096;
/// Texts of a sample that a thread takes at a time.
const SHARE: usize = 64;
/// New texts that a sample is drawn from where a collection is met.
const SAMPLED_AGAINST: usize = 1024;
/// Features of the largest sample.
const FEATURES: usize = 1 << 20;
/// Bytes of memory for each of them, at most: set, entry of the table before and after it is sorted, and what finds it.
const FEATURE_BYTES: usize = 44;

/// The largest hash of a text that may be in the sample, where neighbours below the threshold are looked for in a collection, which costs as
/// much for each text of the sample as the search for candidates of the threshold.
pub(crate) fn last_sampled(hashes: impl Iterator<Item = u64>) -> u64 {
    let mut hashes: TableColumn<u64> = hashes.collect();
    match hashes.len() > SAMPLED_AGAINST {
        true => *hashes.select_nth_unstable(SAMPLED_AGAINST - 1).1,
        false => u64::MAX,
    }
}

/// Kept texts, and who looks for those just below the threshold among them.
pub(crate) struct MarginSearch<'a> {
    pub(crate) verifier: &'a Verifier<'a>,
    /// Rank of each class.
    pub(crate) rank_of: &'a [u32],
    /// Hash of the text of each class.
    pub(crate) hashes: &'a [u64],
    pub(crate) decisions: &'a DecisionTable,
    /// The first so many ranks are kept whatever they resemble: they are found, and nothing is looked for beside them.
    pub(crate) fixed: usize,
    /// Texts of larger hashes are not in the sample.
    pub(crate) last_sampled: u64,
    pub(crate) threads: usize,
    /// Bytes for a part of the sample, if that is more than one text.
    pub(crate) memory: u64,
    /// Its error ends the work.
    pub(crate) advance: &'a (dyn Fn() -> io::Result<()> + Sync),
}

/// Ranks of the texts of a sample, ascending, and the number of kept texts that it was drawn from.
struct SampledRanks {
    ranks: Vec<u32>,
    kept: u64,
}

/// A text of the sample.
struct SampledText {
    rank: u32,
    /// Its features, in [`TextSample::sets`].
    set: Range<usize>,
    /// Number of its features that are not in the table.
    outside: usize,
}

/// Texts of which the most similar one is looked for, by rank, and a table of the features of their prefixes.
struct TextSample {
    texts: Vec<SampledText>,
    sets: Vec<u64>,
    /// Features, ascending, and beside each the number of the text that has it.
    features: Vec<u64>,
    owners: Vec<u16>,
    /// Start in `features` of each value of the leading bits; one more at the end.
    starts: Vec<u32>,
    /// Bits of a feature behind those.
    shift: u32,
    /// Bits by the last bits of features: one that is not set says that no text has the feature. It stays in cache, and nearly all features end
    /// there.
    filter: Vec<u64>,
}

impl TextSample {
    #[inline]
    fn may_have(&self, feature: u64) -> bool {
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

    /// Fills the table with prefixes for resemblances of `from` and more.
    fn index(&mut self, from: f64, threads: usize) {
        let frequency = FeatureFrequency::new();
        on_items(self.texts.chunks(SHARE), threads, |texts| {
            texts.iter().for_each(|text| frequency.add(self.set(text)));
        });
        // Counted in the sample only: any order of features is right, and this one needs no other table.
        let levels = frequency.levels_by(threads);
        let of_texts = self.texts.chunks(SHARE).enumerate();
        let entries = on_items(of_texts, threads, |(share, texts)| {
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
        sort_unequal_by(&mut entries, threads, Ord::cmp);
        // Half of the values have an entry.
        let bits = (entries.len() * 2).max(2).ilog2();
        self.shift = u64::BITS - bits;
        // Features are hashes, so leading bits spread them evenly over buckets.
        self.starts = vec![0; (1 << bits) + 1];
        for &(feature, _) in &entries {
            self.starts[(feature >> self.shift) as usize + 1] += 1;
        }
        for bucket in 0..1 << bits {
            self.starts[bucket + 1] += self.starts[bucket];
        }
        // One bit in 16 is set, at most.
        self.filter = vec![0; (entries.len() * 16 / 64).next_power_of_two()];
        for &(feature, _) in &entries {
            let word = (feature as usize / 64) & (self.filter.len() - 1);
            self.filter[word] |= 1 << (feature % 64);
        }
        (self.features, self.owners) = entries.into_iter().unzip();
    }
}

/// Number of features of a set that are not in its prefix.
fn outside(size: usize, from: f64) -> usize {
    size - prefix_len(size, from)
}

impl MarginSearch<'_> {
    /// Looks for the most similar kept text before each one of the sample, and counts those in the margin.
    pub(crate) fn run(&self, margin: BelowMargin) -> io::Result<JustBelow> {
        let from = margin.from();
        let SampledRanks { ranks, kept } = self.sampled_ranks();
        let mut just_below = JustBelow::new(margin, ranks.len() as u64, kept);
        let mut rest = &ranks[..];
        while !rest.is_empty() {
            // In the order of ranks, as equally close pairs are named in it.
            let (part, later) = rest.split_at(self.fitting(rest));
            rest = later;
            let mut sample = self.sample(part, from)?;
            sample.index(from, self.threads);
            let found = self.closest(&sample, from)?;
            for (text, found) in sample.texts.iter().zip(found) {
                let Some(found) = found else { continue };
                let similarity = self.verifier.similarity(text.rank, found);
                // A method that is not exact may have missed one above.
                if similarity < self.verifier.threshold {
                    just_below.add(margin, text.rank, found.rank, similarity);
                }
            }
        }
        Ok(just_below)
    }

    /// Number of first ranks whose sets fit the memory together, at least one.
    fn fitting(&self, ranks: &[u32]) -> usize {
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

    /// The number of kept texts in a range of those that are not fixed, and those of the least hashes: hash and rank, in any order. `largest` is
    /// a hash that none of the sample exceeds, and falls as ranges are looked at.
    fn least_hashes(&self, range: Range<usize>, largest: &AtomicU64) -> (u64, Vec<(u64, u32)>) {
        const AHEAD: u32 = 16;
        let classes = self.verifier.classes;
        let (start, end) = (self.fixed + range.start, self.fixed + range.end);
        let (mut kept, mut least) = (0, BinaryHeap::new());
        for rank in start as u32..end as u32 {
            if let Some(&later) = classes.get((rank + AHEAD) as usize) {
                prefetch(self.hashes, later as usize);
            }
            if !self.is_kept(rank) {
                continue;
            }
            kept += 1;
            let found = (self.hashes[classes[rank as usize] as usize], rank);
            // A bound from before another thread lowered it lets more through, never less.
            if found.0 > largest.load(Ordering::Relaxed) {
                continue;
            }
            // A heap with the largest on top: of each range the least hashes stay, and with them the least of
            // all.
            if least.len() < SAMPLED {
                least.push(found);
            } else if least.peek().is_some_and(|last| found < *last) {
                least.pop();
                least.push(found);
            }
        }
        if let Some(last) = least.peek().filter(|_| least.len() == SAMPLED) {
            largest.fetch_min(last.0, Ordering::Relaxed);
        }
        (kept, least.into_vec())
    }

    /// The kept texts of the least hashes, as far as there is room for their features, whatever the memory.
    fn sampled_ranks(&self) -> SampledRanks {
        let sizes = self.verifier.sizes;
        let count = sizes.len() - self.fixed;
        let (mut kept, mut least) = (0, Vec::new());
        let largest = AtomicU64::new(self.last_sampled);
        let of_range = |range| self.least_hashes(range, &largest);
        for (number, found) in in_ranges(count, self.threads, of_range) {
            kept += number;
            least.extend(found);
        }
        // By hash, then rank: the sample is the same however ranges were cut.
        if least.len() > SAMPLED {
            least.select_nth_unstable(SAMPLED);
            least.truncate(SAMPLED);
        }
        least.sort_unstable();
        let mut room = FEATURES;
        let fits = |&(_, rank): &(u64, u32)| {
            let size = sizes[rank as usize] as usize;
            let left = room.checked_sub(size);
            // One that does not fit is passed over; shorter ones behind it still have room.
            room = left.unwrap_or(room);
            left.is_some()
        };
        let fitting = least.into_iter().filter(fits);
        let mut ranks: Vec<u32> = fitting.map(|(_, rank)| rank).collect();
        ranks.sort_unstable();
        SampledRanks { ranks, kept }
    }

    /// Texts of these ranks, without the table of their features.
    fn sample(&self, ranks: &[u32], from: f64) -> io::Result<TextSample> {
        let sizes = ranks.iter().map(|&rank| self.verifier.sizes[rank as usize]);
        let mut sample = TextSample {
            texts: Vec::with_capacity(ranks.len()),
            sets: Vec::with_capacity(sizes.map(|size| size as usize).sum()),
            features: Vec::new(),
            owners: Vec::new(),
            starts: Vec::new(),
            shift: 0,
            filter: Vec::new(),
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

    /// The most similar kept text before each one of the sample that shares a feature of its prefix, if it reaches `from`; of equally
    /// similar ones that of the smaller rank.
    fn closest(&self, sample: &TextSample, from: f64) -> io::Result<Vec<Option<VerifiedMatch>>> {
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
        let all = on_threads(self.threads, work)?;
        let best = |number: usize| {
            let rank = sample.texts[number].rank;
            let found = all.iter().filter_map(|found| found[number]);
            found.max_by(|a, b| {
                let similarity = |found: &VerifiedMatch| self.verifier.similarity(rank, *found);
                let order = similarity(a).total_cmp(&similarity(b));
                // Threads found theirs in any order of segments: ties go to the smaller rank, as in the plain
                // sequence.
                order.then(Reverse(a.rank).cmp(&Reverse(b.rank)))
            })
        };
        Ok((0..sample.texts.len()).map(best).collect())
    }
}

/// One thread of a search.
struct MarginWorker<'a> {
    search: &'a MarginSearch<'a>,
    sample: &'a TextSample,
    from: f64,
    /// Closest text so far of each one of the sample.
    found: Vec<Option<VerifiedMatch>>,
    /// Features of the table that each text of the sample shares with the one at hand, and those that share any.
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

    /// Compares the set of a class with the texts of the sample with which it may share enough.
    fn visit(&mut self, class: u32, set: &[u64]) -> io::Result<()> {
        let rank = self.search.rank_of[class as usize];
        if !self.search.is_kept(rank) {
            return Ok(());
        }
        for &feature in set.iter().filter(|&&feature| self.sample.may_have(feature)) {
            for number in self.sample.texts_with(feature) {
                let count = &mut self.counts[usize::from(number)];
                if *count == 0 {
                    self.touched.push(number);
                }
                *count += 1;
            }
        }
        let mut touched = std::mem::take(&mut self.touched);
        for number in touched.drain(..) {
            let shared = std::mem::take(&mut self.counts[usize::from(number)]);
            self.compare(usize::from(number), rank, shared as usize)?;
        }
        self.touched = touched;
        Ok(())
    }

    /// Compares a text of the sample with a kept one that has so many features of its prefix.
    fn compare(&mut self, number: usize, other: u32, shared: usize) -> io::Result<()> {
        let verifier = self.search.verifier;
        let text = &self.sample.texts[number];
        // Only earlier ones: of two texts of the sample the pair counts once, for the later.
        if other >= text.rank {
            return Ok(());
        }
        let best = self.found[number];
        let bar = best.map_or(self.from, |best| verifier.similarity(text.rank, best));
        let needed = verifier.needed(text.rank, other, bar);
        // What is not in the table may all be shared, at most.
        if shared + text.outside < needed {
            return Ok(());
        }
        let set = self.sample.set(text);
        let found = verifier.verified(set, [text.rank, other], needed, &mut self.scratch)?;
        self.found[number] = verifier.closer(text.rank, best, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::survivors::settle;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};

    /// The definition: for each kept rank, the most similar kept one before it that shares a feature with it, if it is in the margin.
    fn slow(collection: &TestCollection, decisions: &DecisionTable, fixed: usize) -> JustBelow {
        let margin = BelowMargin::below(collection.threshold);
        let is_kept = |&rank: &u32| decisions.is_kept(rank as usize);
        let kept: Vec<u32> = (fixed as u32..decisions.len() as u32)
            .filter(is_kept)
            .collect();
        let mut just_below = JustBelow::new(margin, kept.len() as u64, kept.len() as u64);
        for rank in kept {
            let similar = |earlier| {
                let found = collection.similar_from(rank, earlier, margin.from());
                found.map(|similarity| (similarity, Reverse(earlier)))
            };
            let closest = (0..rank).filter(is_kept).filter_map(similar);
            let closest = closest.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            if let Some((similarity, Reverse(earlier))) = closest {
                just_below.add(margin, rank, earlier, similarity);
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
                threads,
                memory,
                advance: &|| Ok(()),
            };
            let found = search.run(BelowMargin::below(threshold)).unwrap();
            prop_assert_eq!(found, slow(&collection, &decisions, fixed));
        }
    }

    #[test]
    fn a_large_collection_is_sampled_by_hash() {
        // Every set is one half or the other of the one before it, so all are kept, and half of them are in the margin.
        // So many that a range of two threads has more than are sampled.
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
                threads,
                memory: if threads == 3 { 400_000 } else { u64::MAX },
                advance: &|| Ok(()),
            };
            search.run(BelowMargin::below(0.85)).unwrap()
        };
        let found = run(1, u64::MAX);
        assert_eq!((found.sampled, found.texts), (SAMPLED as u64, count));
        assert_eq!(found.kept.iter().sum::<u64>(), SAMPLED as u64 / 2);
        // The least hashes are those of the last ranks.
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
