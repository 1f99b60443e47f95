//! Rough frequencies of features, for the order in which prefixes are taken.
//!
//! Prefix filtering is right under *any* one total order of the features (Chaudhuri et al., ICDE 2006; Bayardo et
//! al., WWW 2007); an order from rare to common only makes it fast. So the counts may be rough: an array of counters of a byte each,
//! addressed by some bits of the feature, that grows with the collection. A counter holds the sum of its features, exact up to [`EXACT`]
//! and from there on logarithmic, after Morris (Counting large numbers of events in small registers, CACM 1978). What stands at or below
//! the mean is rare, and ordered by its value, which is as good as random and is the order in which feature sets are stored; above it
//! even a little counts, for a common feature in a prefix costs comparisons.

use std::sync::atomic::{AtomicU8, Ordering};

use lookalike::hash::avalanche;
use lookalike_hamming::huge_page_buffer;

use crate::spill::prefetch::prefetch;

/// Counters of one pass over the feature sets, shared by all threads; see the module's header.
///
/// Memory: a byte a counter. An addition touches one cache line a feature.
pub(crate) struct FeatureFrequency {
    cells: Vec<AtomicU8>,
    /// Features of no higher level are as rare as most.
    rare: u8,
}

/// Counts that are exact; the first counter beyond stands for the double of it after [`STEPS`] steps.
const EXACT: u8 = 128;
/// Steps of a counter for each doubling beyond that: 255 stands for some 8 million.
const STEPS: u8 = 8;

/// Counters that are asked for before they are looked at.
const AHEAD: usize = 16;

/// Counters that are always there, in bits of their number: they fit a second-level cache beside other things.
const LEAST_BITS: u32 = 17;

impl FeatureFrequency {
    /// As many counters as are wanted, or up to twice as many, in at most so many bytes, but 128 KiB at least.
    pub(crate) fn new(wanted: u64, bytes: u64) -> Self {
        let wanted = 64 - wanted.saturating_sub(1).leading_zeros();
        let most = 63 - bytes.max(1).leading_zeros();
        let bits = wanted.min(most).clamp(LEAST_BITS, 32);
        let mut cells = huge_page_buffer(1 << bits);
        cells.resize(1 << bits, 0);
        // Collected in place, so that the huge pages stay.
        Self {
            cells: cells.into_iter().map(AtomicU8::new).collect(),
            rare: 1,
        }
    }

    /// Bytes of the counters.
    pub(crate) fn bytes(&self) -> u64 {
        self.cells.len() as u64
    }

    #[inline]
    fn cell_of(&self, feature: u64) -> usize {
        // Not the leading bits: prefixes are the smallest features of a document, so their leading bits are alike.
        feature as usize & (self.cells.len() - 1)
    }

    #[inline]
    fn cell(&self, feature: u64) -> &AtomicU8 {
        &self.cells[self.cell_of(feature)]
    }

    /// Counts each feature of one document; the number tells it from all others.
    ///
    /// Two threads that count one feature at the same moment may count it once: that costs time somewhere, never a pair, and locked
    /// additions would cost more.
    pub(crate) fn add(&self, document: u32, features: &[u64]) {
        for &feature in features {
            let cell = self.cell(feature);
            let level = cell.load(Ordering::Relaxed);
            if level < EXACT || level < u8::MAX && is_counted(level, document, feature) {
                cell.store(level + 1, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn prefetch(&self, feature: u64) {
        prefetch(&self.cells, self.cell_of(feature));
    }

    /// Ends the counting: features whose counters are at or below the mean get one level, so that most prefixes are found early.
    pub(crate) fn finish(&mut self) {
        let counted = |cell: &AtomicU8| u64::from(cell.load(Ordering::Relaxed).min(EXACT));
        let total: u64 = self.cells.iter().map(counted).sum();
        self.rare = (total / self.cells.len() as u64).max(1) as u8;
    }

    /// A number that grows with the number of documents that have the feature, above that of a rare one: up to [`EXACT`] it is the sum
    /// of those of all features that share a counter.
    #[inline]
    pub(crate) fn level(&self, feature: u64) -> u8 {
        self.cell(feature).load(Ordering::Relaxed).max(self.rare)
    }

    /// Puts the first `length` features of the ascending `set` under the order (level, value) into `prefix`, in this order.
    ///
    /// O(features + length log length), and less where many features are those of no other document.
    pub(crate) fn prefix(
        &self,
        set: &[u64],
        length: usize,
        prefix: &mut Vec<u64>,
        common: &mut Vec<RankedFeature>,
    ) {
        prefix.clear();
        common.clear();
        // What a counter says decides a branch that nobody can foresee: the next ones must be on their way by then.
        set.iter().take(AHEAD).for_each(|&it| self.prefetch(it));
        for (at, &feature) in set.iter().enumerate() {
            if prefix.len() == length {
                return;
            }
            if let Some(&later) = set.get(at + AHEAD) {
                self.prefetch(later);
            }
            match self.level(feature) {
                level if level == self.rare => prefix.push(feature),
                level => common.push(RankedFeature { level, feature }),
            }
        }
        let missing = (length - prefix.len()).min(common.len());
        if missing > 0 && missing < common.len() {
            common.select_nth_unstable(missing - 1);
            common.truncate(missing);
        }
        common.sort_unstable();
        prefix.extend(common[..missing].iter().map(|ranked| ranked.feature));
    }
}

/// A feature in the order of prefixes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankedFeature {
    level: u8,
    feature: u64,
}

/// True once in as many documents as a counter of this level stands for at each of its steps.
fn is_counted(level: u8, document: u32, feature: u64) -> bool {
    let stands_for =
        |level: u8| f64::from(EXACT) * (f64::from(level - EXACT) / f64::from(STEPS)).exp2();
    let step = stands_for(level + 1) - stands_for(level);
    // Uniform in [0, 1).
    let drawn = (avalanche(feature ^ u64::from(document) << 32) >> 11) as f64 * (-53_f64).exp2();
    drawn * step < 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: sort by (level, value), take the first.
    fn slow_prefix(frequency: &FeatureFrequency, set: &[u64], length: usize) -> Vec<u64> {
        let mut sorted = set.to_vec();
        sorted.sort_by_key(|&feature| (frequency.level(feature), feature));
        sorted.truncate(length);
        sorted
    }

    fn least() -> FeatureFrequency {
        FeatureFrequency::new(0, 0)
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
                for document in 0..(1 << (2 * i)) {
                    if let Some(&f) = set.get(index) { frequency.add(document, &[f]) }
                }
            }
            let (mut prefix, mut common) = (Vec::new(), Vec::new());
            frequency.prefix(&set, length, &mut prefix, &mut common);
            prop_assert_eq!(prefix, slow_prefix(&frequency, &set, length));
        }

        #[test]
        fn small_counts_are_those_of_a_map(sets in prop::collection::vec(prop::collection::btree_set(0..50_u64, 0..20), 0..100)) {
            let frequency = least();
            for (document, set) in (0..).zip(&sets) {
                frequency.add(document, &set.iter().copied().collect::<Vec<_>>());
            }
            for feature in 0..50 {
                let count = sets.iter().filter(|set| set.contains(&feature)).count();
                prop_assert_eq!(usize::from(frequency.level(feature)), count.max(1));
            }
        }

        #[test]
        fn sets_that_reach_the_threshold_share_a_feature_of_their_prefixes(
            sets in crate::dedup::testing::feature_sets(30),
            threshold in crate::dedup::testing::thresholds(),
        ) {
            let frequency = least();
            // Some features are common, so that levels decide and not values alone.
            (0..200).for_each(|document| frequency.add(document, &[1, 2, 5]));
            (200..).zip(&sets).for_each(|(document, set)| frequency.add(document, set));
            let prefix = |set: &[u64]| {
                let mut prefix = Vec::new();
                let length = lookalike::resemblance::prefix_len(set.len(), threshold);
                frequency.prefix(set, length, &mut prefix, &mut Vec::new());
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
    fn large_counts_are_known_by_their_logarithm() {
        let frequency = least();
        for document in 0..1_000_000 {
            frequency.add(document, &[42]);
        }
        // 128 * 2^(12.9) is a million; a counter of this kind is off by some 6 % at one standard deviation.
        let steps = f64::from(frequency.level(42) - EXACT) / f64::from(STEPS);
        let count = f64::from(EXACT) * steps.exp2();
        assert!((700_000.0..1_400_000.0).contains(&count), "{count}");
        assert_eq!(frequency.level(41), 1);
    }

    #[test]
    fn the_largest_count_stays_where_it_is() {
        let frequency = least();
        frequency.cell(7).store(u8::MAX, Ordering::Relaxed);
        frequency.add(0, &[7]);
        assert_eq!(frequency.level(7), u8::MAX);
    }

    #[test]
    fn counters_are_as_many_as_wanted_unless_memory_says_less() {
        let cells = |wanted, bytes| FeatureFrequency::new(wanted, bytes).bytes();
        assert_eq!(cells(0, 0), 1 << LEAST_BITS);
        assert_eq!(cells(1 << 20, u64::MAX), 1 << 20);
        assert_eq!(cells((1 << 20) + 1, u64::MAX), 1 << 21);
        assert_eq!(cells(u64::MAX, 3 << 19), 1 << 20);
    }
}
