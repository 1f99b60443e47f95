//! Approximate frequencies of features, which order the features for prefixes.
//!
//! Prefix filtering is correct under *any* one total order of the features (Chaudhuri et al., ICDE 2006; Bayardo et
//! al., WWW 2007); an order from rare to common only makes it fast. So the counts may be approximate: an array of counters,
//! indexed by some bits of the feature, whose size grows with the collection. A counter has the sum of its features over a sample of the
//! documents. Features with a count at or below the mean are rare and ordered by value, which is nearly random and the order in which
//! feature sets are stored. Above the mean, small differences count, because a common feature in a prefix costs comparisons.
//!
//! Counts are added in any order, and a document's features decide whether it is in the sample: the order of features is the same for any number of
//! threads.

use std::sync::atomic::{AtomicU32, Ordering};

use lookalike_hamming::huge_page_buffer;

use crate::kernel::checked_bytes::{CheckedBytesError, TableKind};
use crate::parallel::{in_ranges, map_parallel_limited, share_length};
use crate::spill::prefetch::prefetch;

/// Approximate counts of the documents that have each feature. They can be merged, and shared between threads.
///
/// Memory: 4 bytes per counter, 512 KiB for the 131,072 of [`FeatureFrequency::new`]. Adding a feature accesses one cache line.
///
/// ```
/// use lookalike_batch::kernel::FeatureFrequency;
///
/// let (mut first, second) = (FeatureFrequency::new(), FeatureFrequency::new());
/// first.add(&[1, 2, 3]);
/// second.add(&[3, 4]);
/// let received = FeatureFrequency::from_bytes(&second.to_bytes())?;
/// first.merge(&received);
/// # Ok::<(), lookalike_batch::kernel::CheckedBytesError>(())
/// ```
pub struct FeatureFrequency {
    cells: Vec<AtomicU32>,
    /// One document in this many is counted; a power of two.
    sampling: u64,
}

lookalike::opaque_debug! {
    [] FeatureFrequency [];
}

/// Number of counters, and share of documents that they count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterPlan {
    /// Desired number of counters, which is rounded up to a power of two.
    pub(crate) wanted: u64,
    /// Maximum number of counters; there are always at least 131,072.
    pub(crate) most: u64,
    /// One document in this many is counted; a power of two.
    pub(crate) sampling: u64,
}

impl Default for CounterPlan {
    /// Returns the minimum number of counters, for all documents.
    fn default() -> Self {
        Self {
            wanted: 0,
            most: 0,
            sampling: 1,
        }
    }
}

/// Levels of all features, fixed after counting: one byte per counter.
#[derive(Clone)]
pub struct FrequencyLevels {
    cells: Vec<u8>,
}

lookalike::opaque_debug! {
    [] FrequencyLevels [];
}

/// A feature in the order for prefixes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankedFeature {
    level: u8,
    feature: u64,
}

const COUNTS: TableKind = TableKind {
    mark: *b"lkFREQ1\n",
    name: "counts of features",
};

const LEVELS: TableKind = TableKind {
    mark: *b"lkLEVL1\n",
    name: "levels of features",
};

/// Maximum of a counter: the rest of the 32 bits is a margin for threads that add at the same time.
const MAX_COUNT: u32 = u32::MAX - (1 << 20);

/// Number of counters that are prefetched ahead.
const PREFETCH_DISTANCE: usize = 16;

/// Minimum number of counters, as a power of two: their levels fit into a second-level cache beside other data.
const MIN_BITS: u32 = 17;

#[inline]
fn cell_of(feature: u64, cells: usize) -> usize {
    // By the last bits: prefixes are the smallest features of a document, so their leading bits are similar.
    // The order of features that a collection stores is indexed in the same way.
    feature as usize & (cells - 1)
}

impl CounterPlan {
    /// Returns the base-2 logarithm of the number of counters.
    fn bits(&self) -> u32 {
        // `wanted` is rounded up and `most` down to a power of two, because some bits of a feature select the counter.
        let wanted = 64 - self.wanted.saturating_sub(1).leading_zeros();
        let most = 63 - self.most.max(1).leading_zeros();
        wanted.min(most).clamp(MIN_BITS, 32)
    }

    /// Returns the number of bytes of the counters and their levels.
    pub(crate) fn bytes(&self) -> u64 {
        FeatureFrequency::CELL_BYTES << self.bits()
    }
}

impl FeatureFrequency {
    /// Number of bytes of a counter and its level.
    pub(crate) const CELL_BYTES: u64 = 5;

    /// Creates 131,072 counters, all zero, that count all documents.
    pub fn new() -> Self {
        Self::with_counters(CounterPlan::default())
    }

    pub(crate) fn with_counters(plan: CounterPlan) -> Self {
        let bits = plan.bits();
        // Counters are accessed at random; with huge pages, few accesses miss the TLB.
        let mut cells = huge_page_buffer(1 << bits);
        cells.resize_with(1 << bits, AtomicU32::default);
        Self {
            cells,
            sampling: plan.sampling,
        }
    }

    /// Counts each feature of a document, if the document is in the sample.
    pub fn add(&self, features: &[u64]) {
        // The sum of all features, because a single one could be common to a whole cluster.
        let sum = features.iter().fold(0_u64, |sum, &it| sum.wrapping_add(it));
        if sum & (self.sampling - 1) != 0 {
            return;
        }
        let cells = self.cells.len();
        features
            .iter()
            .take(PREFETCH_DISTANCE)
            .for_each(|&it| prefetch(&self.cells, cell_of(it, cells)));
        for (at, &feature) in features.iter().enumerate() {
            if let Some(&later) = features.get(at + PREFETCH_DISTANCE) {
                prefetch(&self.cells, cell_of(later, cells));
            }
            let cell = &self.cells[cell_of(feature, cells)];
            // Full counters are not written, so that threads do not contend for features that all documents have.
            if cell.load(Ordering::Relaxed) < MAX_COUNT {
                cell.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Adds the counts of another thread or machine, which must have the same number of counters.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.cells.iter_mut().zip(other.counts()) {
            let mine = mine.get_mut();
            *mine = (*mine).saturating_add(theirs).min(MAX_COUNT);
        }
    }

    /// Returns the counts as bytes for [`FeatureFrequency::from_bytes`] on another machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let table: Vec<u8> = self.counts().flat_map(u32::to_le_bytes).collect();
        COUNTS.seal(&table)
    }

    /// Reads counts written by [`FeatureFrequency::to_bytes`], if they have as many counters as [`FeatureFrequency::new`].
    ///
    /// # Errors
    /// [`CheckedBytesError`] if the bytes are something else, truncated or changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckedBytesError> {
        let (counts, rest) = COUNTS.open(bytes)?.as_chunks();
        if counts.len() != 1 << MIN_BITS || !rest.is_empty() {
            return Err(COUNTS.damaged());
        }
        let counts = counts.iter().map(|&count| u32::from_le_bytes(count));
        Ok(Self {
            cells: counts.map(AtomicU32::new).collect(),
            sampling: 1,
        })
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.counts().map(u64::from).sum()
    }

    fn counts(&self) -> impl Iterator<Item = u32> {
        // Threads that add at the same time may pass the maximum.
        let count = |cell: &AtomicU32| cell.load(Ordering::Relaxed).min(MAX_COUNT);
        self.cells.iter().map(count)
    }

    /// Fixes the levels. Features whose counters are at or below the mean get level 0, so that most prefixes are found early.
    pub fn levels(&self) -> FrequencyLevels {
        self.levels_by(1)
    }

    /// Fixes the levels as [`FeatureFrequency::levels`] does, with `threads` threads.
    pub(crate) fn levels_by(&self, threads: usize) -> FrequencyLevels {
        let cells = self.cells.len();
        let mean = |most: u32| {
            let totals = in_ranges(cells, threads, |range| -> u64 {
                let counts = self.cells[range].iter();
                counts
                    .map(|count| u64::from(count.load(Ordering::Relaxed).min(most)))
                    .sum()
            });
            (totals.into_iter().sum::<u64>() / cells as u64) as u32
        };
        // Very large counts do not contribute to the mean in full.
        let most = mean(MAX_COUNT).saturating_mul(8).clamp(LINEAR, MAX_COUNT);
        // At least 1: in a small collection the mean is 0, but a feature that occurs once is not common.
        let rare = mean(most).max(1);
        let mut levels: Vec<u8> = huge_page_buffer(cells);
        levels.resize(cells, 0);
        let length = share_length(cells, threads);
        let parts = levels.chunks_mut(length).zip(self.cells.chunks(length));
        map_parallel_limited(parts, threads, |(levels, counts)| {
            for (own, count) in levels.iter_mut().zip(counts) {
                let count = count.load(Ordering::Relaxed).min(MAX_COUNT);
                *own = if count <= rare { 0 } else { level(count) };
            }
        });
        FrequencyLevels { cells: levels }
    }
}

impl Default for FeatureFrequency {
    fn default() -> Self {
        Self::new()
    }
}

/// Maximum count that is its own level.
const LINEAR: u32 = 128;

/// Returns a number that grows with the count: by four for each doubling beyond [`LINEAR`].
fn level(count: u32) -> u8 {
    if count <= LINEAR {
        return count as u8;
    }
    // Four levels for each doubling, at equal distances, so the counts of a level differ by less than a quarter.
    let doublings = count.ilog2() - LINEAR.ilog2();
    // The two bits after the leading one.
    let quarters = ((count >> doublings) - LINEAR) >> 5;
    // At most 128 + 4 * 24 + 3 = 227, so the level fits in a byte.
    (LINEAR + 4 * doublings + quarters) as u8
}

impl FrequencyLevels {
    /// Returns the levels as bytes for [`FrequencyLevels::from_bytes`] on another machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        LEVELS.seal(&self.cells)
    }

    /// Reads levels written by [`FrequencyLevels::to_bytes`].
    ///
    /// # Errors
    /// [`CheckedBytesError`] if the bytes are something else, truncated or changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckedBytesError> {
        let cells = LEVELS.open(bytes)?;
        // A power of two, because `cell_of` takes the last bits of a feature.
        match cells.len().is_power_of_two() && cells.len() >= 1 << MIN_BITS {
            true => Ok(Self {
                cells: cells.to_vec(),
            }),
            false => Err(LEVELS.damaged()),
        }
    }

    /// Returns 0 for a rare feature, otherwise a number that grows with the number of documents that have it or another feature of its counter.
    #[inline]
    pub(crate) fn of(&self, feature: u64) -> u8 {
        self.cells[cell_of(feature, self.cells.len())]
    }

    #[inline]
    fn prefetch(&self, feature: u64) {
        prefetch(&self.cells, cell_of(feature, self.cells.len()));
    }

    /// Writes the first `length` features of the ascending `set`, in the order of (level, value), to `prefix`.
    ///
    /// O(features + length log length), and less if many features are rare.
    pub(crate) fn prefix(
        &self,
        set: &[u64],
        length: usize,
        prefix: &mut Vec<u64>,
        common: &mut Vec<RankedFeature>,
    ) {
        prefix.clear();
        common.clear();
        // The branch on a level is unpredictable, so the next counters must be prefetched before it.
        set.iter()
            .take(PREFETCH_DISTANCE)
            .for_each(|&it| self.prefetch(it));
        for (at, &feature) in set.iter().enumerate() {
            // Sets are ascending, so rare features are already in the order for prefixes.
            if prefix.len() == length {
                return;
            }
            if let Some(&later) = set.get(at + PREFETCH_DISTANCE) {
                self.prefetch(later);
            }
            match self.of(feature) {
                0 => prefix.push(feature),
                level => common.push(RankedFeature { level, feature }),
            }
        }
        let missing = (length - prefix.len()).min(common.len());
        if missing > 0 && missing < common.len() {
            // Only the required part is sorted.
            common.select_nth_unstable(missing - 1);
        }
        common.truncate(missing);
        common.sort_unstable();
        prefix.extend(common.iter().map(|ranked| ranked.feature));
    }
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::map_parallel;
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::testing::{feature_sets, thresholds};

    /// The definition: sort by (level, value) and take the first ones.
    fn slow_prefix(levels: &FrequencyLevels, set: &[u64], length: usize) -> Vec<u64> {
        let mut sorted = set.to_vec();
        sorted.sort_by_key(|&feature| (levels.of(feature), feature));
        sorted.truncate(length);
        sorted
    }

    fn least() -> FeatureFrequency {
        FeatureFrequency::new()
    }

    fn counts(frequency: &FeatureFrequency) -> Vec<u32> {
        frequency.counts().collect()
    }

    proptest! {
        #[test]
        fn prefix_equals_its_definition(
            mut set in prop::collection::vec(any::<u64>(), 0..60),
            hot in prop::collection::vec(0usize..60, 0..8),
            length in 0usize..70,
        ) {
            set.sort_unstable();
            set.dedup();
            let frequency = least();
            for (i, &index) in hot.iter().enumerate() {
                for _ in 0..(1 << (2 * i)) {
                    if let Some(&f) = set.get(index) { frequency.add(&[f]) }
                }
            }
            let levels = frequency.levels();
            let (mut prefix, mut common) = (Vec::new(), Vec::new());
            levels.prefix(&set, length, &mut prefix, &mut common);
            prop_assert_eq!(prefix, slow_prefix(&levels, &set, length));
        }

        #[test]
        fn counts_are_those_of_a_map_for_any_number_of_threads(
            sets in feature_sets(100),
            threads in prop::sample::select(vec![1_usize, 2, 3, 8]),
            sampling in prop::sample::select(vec![1_u64, 2, 4]),
            merged in any::<bool>(),
        ) {
            let plan = CounterPlan { sampling, ..CounterPlan::default() };
            let mut frequency = FeatureFrequency::with_counters(plan);
            let parts = sets.chunks(sets.len().div_ceil(threads).max(1));
            let apart: Vec<_> = parts.clone().map(|_| FeatureFrequency::with_counters(plan)).collect();
            map_parallel(parts.zip(&apart), |(part, own)| {
                let frequency = if merged { own } else { &frequency };
                part.iter().for_each(|set| frequency.add(set));
            });
            apart.iter().for_each(|part| frequency.merge(part));
            let in_sample = |set: &&Vec<u64>| set.iter().sum::<u64>() % sampling == 0;
            let counts = counts(&frequency);
            for feature in 0..50 {
                let count = sets.iter().filter(in_sample).filter(|set| set.contains(&feature)).count();
                prop_assert_eq!(counts[cell_of(feature, counts.len())] as usize, count);
            }
        }

        #[test]
        fn sets_that_reach_the_threshold_share_a_feature_of_their_prefixes(
            sets in feature_sets(30),
            threshold in thresholds(),
        ) {
            let frequency = least();
            // Some features are common, so that levels decide and not only values.
            (0..200).for_each(|_| frequency.add(&[1, 2, 5]));
            sets.iter().for_each(|set| frequency.add(set));
            let levels = frequency.levels();
            prop_assert!(levels.of(1) > 0);
            let prefix = |set: &[u64]| {
                let mut prefix = Vec::new();
                let length = lookalike::resemblance::prefix_len(set.len(), threshold);
                levels.prefix(set, length, &mut prefix, &mut Vec::new());
                prefix
            };
            for (at, a) in sets.iter().enumerate() {
                for b in &sets[..at] {
                    let shared = a.iter().filter(|feature| b.contains(feature)).count();
                    let needed = lookalike::resemblance::shared_needed(a.len(), b.len(), threshold);
                    if shared > 0 && shared >= needed {
                        let other = prefix(b);
                        prop_assert!(prefix(a).iter().any(|feature| other.contains(feature)), "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn full_counters_add_up_alike_in_any_order() {
        let with = |count: u32| {
            let frequency = least();
            frequency.cells[7].store(count, Ordering::Relaxed);
            frequency.add(&[7]);
            frequency
        };
        let (few, many) = (MAX_COUNT / 2, MAX_COUNT - 1);
        for (first, second) in [
            (few, many),
            (many, few),
            (many, many),
            (MAX_COUNT, MAX_COUNT + 3),
        ] {
            let mut merged = with(first);
            merged.merge(&with(second));
            assert_eq!(counts(&merged)[7], MAX_COUNT, "{first} and {second}");
        }
        assert_eq!(counts(&with(MAX_COUNT))[7], MAX_COUNT);
        let mut merged = with(few);
        merged.merge(&with(few - 3));
        assert_eq!(counts(&merged)[7], 2 * few - 1);
    }

    #[test]
    fn levels_grow_with_counts() {
        let counts = (0..100_000)
            .chain((17..32).map(|bits| 1 << bits))
            .chain([MAX_COUNT]);
        assert!(counts.map(level).is_sorted());
        assert!((0..=LINEAR).all(|count| u32::from(level(count)) == count));
        for doublings in 1..25 {
            let count = LINEAR << doublings;
            assert_eq!(level(count), level(count / 2) + 4, "{count}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn counts_and_levels_are_read_as_they_were_written(sets in feature_sets(100)) {
            let frequency = least();
            sets.iter().for_each(|set| frequency.add(set));
            let read = FeatureFrequency::from_bytes(&frequency.to_bytes()).unwrap();
            prop_assert_eq!(counts(&read), counts(&frequency));
            let levels = FrequencyLevels::from_bytes(&frequency.levels().to_bytes()).unwrap();
            prop_assert_eq!(levels.cells, frequency.levels().cells);
        }
    }

    #[test]
    fn counts_are_not_taken_for_levels_nor_tables_of_another_size_for_either() {
        let counts = FeatureFrequency::new();
        assert!(FrequencyLevels::from_bytes(&counts.to_bytes()).is_err());
        assert!(FeatureFrequency::from_bytes(&counts.levels().to_bytes()).is_err());
        let short = CheckedBytesError::Damaged {
            expected: "levels of features",
        };
        assert_eq!(
            FrequencyLevels::from_bytes(&LEVELS.seal(&[0; 100])).err(),
            Some(short)
        );
        assert!(FeatureFrequency::from_bytes(&COUNTS.seal(&[0; 100])).is_err());
        assert!(FeatureFrequency::from_bytes(&COUNTS.seal(&[0; 3])).is_err());
    }

    #[test]
    fn a_feature_of_every_document_is_common_and_a_rare_one_is_not() {
        let frequency = least();
        let other = |document: u64| document.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (0..10_000).for_each(|document| frequency.add(&[42, other(document)]));
        let levels = frequency.levels();
        assert!(levels.of(42) > levels.of(other(7)));
        assert_eq!(levels.of(other(7)), 0);
    }

    #[test]
    fn counters_are_as_many_as_wanted_unless_memory_says_less() {
        let cells = |wanted, most| {
            let plan = CounterPlan {
                wanted,
                most,
                sampling: 1,
            };
            FeatureFrequency::with_counters(plan).cells.len()
        };
        assert_eq!(cells(0, 0), 1 << MIN_BITS);
        assert_eq!(cells(1 << 20, u64::MAX), 1 << 20);
        assert_eq!(cells((1 << 20) + 1, u64::MAX), 1 << 21);
        assert_eq!(cells(u64::MAX, 3 << 19), 1 << 20);
    }
}
