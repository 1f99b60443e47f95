//! Rough frequencies of features, for the order in which prefixes are taken.
//!
//! Prefix filtering is right under *any* one total order of the features (Chaudhuri et al., ICDE 2006; Bayardo et
//! al., WWW 2007); an order from rare to common only makes it fast. So the counts may be rough: an array of counters
//! that stays in the processor's cache, addressed by some bits of the feature. A counter holds the sum of its
//! features; what stands out above the mean by more than chance is a common feature (a licence header, a menu),
//! and its level is the logarithm of its count. All others are level 0 and ordered by their value, which is as good
//! as random and is the order in which feature sets are stored.

use crate::kernel::checked_bytes::{CheckedBytesError, TableKind};

/// Counts of how many documents have each feature, rough and mergeable.
///
/// Memory: 4 bytes a counter, 131,072 counters: 512 KiB.
///
/// ```
/// use lookalike_batch::kernel::FeatureFrequency;
///
/// let (mut first, mut second) = (FeatureFrequency::new(), FeatureFrequency::new());
/// first.add(&[1, 2, 3]);
/// second.add(&[3, 4]);
/// let received = FeatureFrequency::from_bytes(&second.to_bytes())?;
/// first.merge(&received);
/// # Ok::<(), lookalike_batch::kernel::CheckedBytesError>(())
/// ```
#[derive(Clone)]
pub struct FeatureFrequency {
    cells: Vec<u32>,
    total: u64,
}

/// Level of every feature, fixed after counting: 1 byte a counter, 128 KiB.
#[derive(Clone)]
pub struct FrequencyLevels {
    cells: Vec<u8>,
}

const COUNTS: TableKind = TableKind {
    mark: *b"lkFREQ1\n",
    name: "counts of features",
};

const LEVELS: TableKind = TableKind {
    mark: *b"lkLEVL1\n",
    name: "levels of features",
};

/// As many counters as fit a second-level cache beside other things.
const BITS: u32 = 17;

#[inline]
fn cell(feature: u64) -> usize {
    // Not the leading bits: prefixes are the smallest features of a document, so their leading bits are alike.
    (feature & ((1 << BITS) - 1)) as usize
}

impl FeatureFrequency {
    pub(crate) const CELLS: usize = 1 << BITS;

    /// Creates counters that have counted nothing.
    pub fn new() -> Self {
        Self {
            cells: vec![0; Self::CELLS],
            total: 0,
        }
    }

    /// Counts each feature of one document.
    pub fn add(&mut self, features: &[u64]) {
        for &feature in features {
            let count = &mut self.cells[cell(feature)];
            *count = count.saturating_add(1);
        }
        self.total += features.len() as u64;
    }

    /// Adds the counts of another thread or machine.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total += other.total;
    }

    /// The counts as bytes that another machine reads with [`FeatureFrequency::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let counts = self.cells.iter().flat_map(|count| count.to_le_bytes());
        let table: Vec<u8> = self.total.to_le_bytes().into_iter().chain(counts).collect();
        COUNTS.seal(&table)
    }

    /// Reads counts that [`FeatureFrequency::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`CheckedBytesError`] if they are something else, cut off or changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckedBytesError> {
        let table = COUNTS.open(bytes)?;
        let damaged = || COUNTS.damaged();
        let (total, counts) = table.split_first_chunk().ok_or_else(damaged)?;
        let (counts, rest) = counts.as_chunks();
        if counts.len() != Self::CELLS || !rest.is_empty() {
            return Err(damaged());
        }
        Ok(Self {
            cells: counts
                .iter()
                .map(|&count| u32::from_le_bytes(count))
                .collect(),
            total: u64::from_le_bytes(*total),
        })
    }

    /// Fixes the levels. A counter is level 0 unless it exceeds the mean by four standard deviations and eight.
    pub fn levels(&self) -> FrequencyLevels {
        let mean = self.total as f64 / Self::CELLS as f64;
        let chance = mean + 4.0 * mean.sqrt() + 8.0;
        let level = |&count: &u32| {
            let count = f64::from(count);
            if count <= chance {
                0
            } else {
                (count - mean).log2().max(1.0) as u8
            }
        };
        FrequencyLevels {
            cells: self.cells.iter().map(level).collect(),
        }
    }
}

impl Default for FeatureFrequency {
    fn default() -> Self {
        Self::new()
    }
}

impl FrequencyLevels {
    /// The levels as bytes that another machine reads with [`FrequencyLevels::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        LEVELS.seal(&self.cells)
    }

    /// Reads levels that [`FrequencyLevels::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`CheckedBytesError`] if they are something else, cut off or changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckedBytesError> {
        let cells = LEVELS.open(bytes)?;
        match cells.len() == FeatureFrequency::CELLS {
            true => Ok(Self {
                cells: cells.to_vec(),
            }),
            false => Err(LEVELS.damaged()),
        }
    }

    /// 0 for rare features, else about log2 of the number of documents that have it.
    #[inline]
    pub(crate) fn of(&self, feature: u64) -> u8 {
        self.cells[cell(feature)]
    }

    /// Puts the first `length` features of the ascending `set` under the order (level, value) into `prefix`.
    pub(crate) fn prefix(
        &self,
        set: &[u64],
        length: usize,
        prefix: &mut Vec<u64>,
        common: &mut Vec<u64>,
    ) {
        prefix.clear();
        common.clear();
        for &feature in set {
            if prefix.len() == length {
                return;
            }
            if self.of(feature) == 0 {
                prefix.push(feature)
            } else {
                common.push(feature)
            }
        }
        common.sort_unstable_by_key(|&feature| (self.of(feature), feature));
        let missing = length - prefix.len();
        prefix.extend_from_slice(&common[..missing.min(common.len())]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: sort by (level, value), take the first.
    fn slow_prefix(levels: &FrequencyLevels, set: &[u64], length: usize) -> Vec<u64> {
        let mut sorted = set.to_vec();
        sorted.sort_by_key(|&f| (levels.of(f), f));
        sorted.truncate(length);
        sorted
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
            let mut frequency = FeatureFrequency::new();
            for (i, &index) in hot.iter().enumerate() {
                for _ in 0..(100 << i) {
                    if let Some(&f) = set.get(index) { frequency.add(&[f]) }
                }
            }
            let levels = frequency.levels();
            let (mut prefix, mut common) = (Vec::new(), Vec::new());
            levels.prefix(&set, length.min(set.len()), &mut prefix, &mut common);
            prop_assert_eq!(prefix, slow_prefix(&levels, &set, length.min(set.len())));
        }
    }

    proptest! {
        #[test]
        fn counts_of_threads_add_up(
            sets in prop::collection::vec(prop::collection::vec(0..50_u64, 0..200), 0..20),
            split in 0..20_usize,
        ) {
            let counted = |sets: &[Vec<u64>]| {
                let mut frequency = FeatureFrequency::new();
                sets.iter().for_each(|set| frequency.add(set));
                frequency
            };
            let split = split.min(sets.len());
            let mut merged = counted(&sets[..split]);
            merged.merge(&counted(&sets[split..]));
            let whole = counted(&sets);
            prop_assert_eq!(merged.total, whole.total);
            prop_assert_eq!(merged.levels().cells, whole.levels().cells);
            let read = FeatureFrequency::from_bytes(&whole.to_bytes()).unwrap();
            prop_assert_eq!((read.cells, read.total), (whole.cells.clone(), whole.total));
            let levels = FrequencyLevels::from_bytes(&whole.levels().to_bytes()).unwrap();
            prop_assert_eq!(levels.cells, whole.levels().cells);
        }

        #[test]
        fn sets_that_reach_the_threshold_share_a_feature_of_their_prefixes(
            sets in crate::dedup::testing::feature_sets(30),
            threshold in crate::dedup::testing::thresholds(),
        ) {
            let mut frequency = FeatureFrequency::new();
            // Some features are common, so that levels decide and not values alone.
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
        let mut frequency = FeatureFrequency::new();
        for document in 0..10_000_u64 {
            frequency.add(&[42, document.wrapping_mul(0x9E37_79B9_7F4A_7C15)]);
        }
        let levels = frequency.levels();
        assert!(levels.of(42) >= 12, "level {}", levels.of(42));
        assert_eq!(levels.of(7_u64.wrapping_mul(0x9E37_79B9_7F4A_7C15)), 0);
    }
}
