//! Kept documents that are almost near-duplicates, by which a user can judge the threshold.
//!
//! Each kept text of a sample is counted if its most similar kept text shares a feature with it and is in the margin. None of these is missed; [`MarginSearch`](crate::dedup::margin_search::MarginSearch) finds them. If there are few texts, the sample has all of them.

use serde::{Deserialize, Serialize};

/// Number of bins between the threshold and 1.
pub(crate) const BINS: usize = 20;
/// Maximum number of bins of the same width below the threshold.
const BINS_BELOW: usize = 10;
/// Maximum number of pairs that are named.
const MAX_NAMED_PAIRS: usize = 10;

/// Margin below the threshold, in bins with a twentieth of the width of the range above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarginBins {
    threshold: f64,
    width: f64,
    bins: usize,
}

impl MarginBins {
    /// Creates the margin below a threshold.
    pub(crate) fn below(threshold: f64) -> Self {
        // At a threshold of 1 the bins would have no width.
        let width = (1.0 - threshold.min(0.999)) / BINS as f64;
        // No bin reaches below a similarity of 0.
        let bins = ((threshold / width) as usize).min(BINS_BELOW);
        Self {
            threshold,
            width,
            bins,
        }
    }

    /// Returns true if nothing can be in the margin, because the threshold is nearly 0.
    pub(crate) fn is_empty(self) -> bool {
        self.bins == 0
    }

    /// Returns the lower end of the margin.
    pub(crate) fn from(self) -> f64 {
        (self.threshold - self.bins as f64 * self.width).max(0.0)
    }

    /// Returns the bin of a similarity below the threshold, counted from the lowest, or `None` if it is below the margin.
    fn bin(self, similarity: f64) -> Option<usize> {
        let down = ((self.threshold - similarity).max(0.0) / self.width) as usize;
        // Bins are numbered upwards, but distances from the threshold grow downwards.
        self.bins.checked_sub(down + 1)
    }
}

/// Two kept documents by their numbers, or texts by their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClosePair {
    /// The later one.
    pub(crate) a: u32,
    /// The earlier one.
    pub(crate) b: u32,
    /// Bits of their similarity: as a decimal number it might lose precision in a checkpoint.
    bits: u64,
}

impl ClosePair {
    pub(crate) fn similarity(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// Counts of kept texts whose most similar kept text is just below the threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BelowThresholdCounts {
    /// Number of kept texts in each bin of [`MarginBins`].
    pub(crate) kept: Vec<u64>,
    /// The most similar of the pairs of a text and its most similar one, in descending order of similarity.
    pub(crate) closest: Vec<ClosePair>,
    /// Numbers of kept texts in the sample, and in total.
    pub(crate) sampled: u64,
    pub(crate) texts: u64,
}

impl BelowThresholdCounts {
    pub(crate) fn new(margin: MarginBins, sampled: u64, texts: u64) -> Self {
        Self {
            kept: vec![0; margin.bins],
            closest: Vec::new(),
            sampled,
            texts,
        }
    }

    /// Returns the number of kept texts in each bin, extrapolated from the sample to all texts.
    pub(crate) fn estimated(&self) -> Vec<u64> {
        // An empty sample has only zeros to scale.
        let scale = self.texts as f64 / self.sampled.max(1) as f64;
        let estimate = |&kept: &u64| (kept as f64 * scale).round() as u64;
        self.kept.iter().map(estimate).collect()
    }

    /// Counts a kept text of the sample, with the rank of the most similar one.
    pub(crate) fn add(&mut self, margin: MarginBins, text: u32, closest: u32, similarity: f64) {
        let Some(bin) = margin.bin(similarity) else {
            return;
        };
        self.kept[bin] += 1;
        let bits = similarity.to_bits();
        // Similarities are not negative, so their bits have the same order.
        let place = self.closest.partition_point(|pair| pair.bits >= bits);
        let (a, b) = (text.max(closest), text.min(closest));
        let pair = ClosePair { a, b, bits };
        // Each of the two may be the most similar one of the other.
        if self.closest.contains(&pair) {
            return;
        }
        self.closest.insert(place, pair);
        self.closest.truncate(MAX_NAMED_PAIRS);
    }

    /// Converts the ranks to documents; `document` returns the one that represents a rank.
    pub(crate) fn of_documents(mut self, document: impl Fn(u32) -> u32) -> Self {
        for pair in &mut self.closest {
            (pair.a, pair.b) = (document(pair.a), document(pair.b));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bins_and_names_equal_those_of_a_sort(
            threshold in 0.3..0.99_f64,
            similarities in prop::collection::vec(0.0..1.0_f64, 0..60),
        ) {
            let margin = MarginBins::below(threshold);
            let mut below = BelowThresholdCounts::new(margin, 60, 60);
            let similarities: Vec<f64> = similarities.iter().map(|part| part * threshold).collect();
            for (at, &similarity) in (0..).zip(&similarities) {
                below.add(margin, at, at + 100, similarity);
            }
            let distance = |similarity: f64| (threshold - similarity) / margin.width;
            let mut within: Vec<f64> = similarities.into_iter().filter(|&s| distance(s) < margin.bins as f64).collect();
            within.sort_by(|a, b| b.total_cmp(a));
            for (bin, &count) in below.kept.iter().enumerate() {
                let down = margin.bins - 1 - bin;
                prop_assert_eq!(count as usize, within.iter().filter(|&&s| distance(s) as usize == down).count());
            }
            let named: Vec<f64> = below.closest.iter().map(ClosePair::similarity).collect();
            within.truncate(MAX_NAMED_PAIRS);
            prop_assert_eq!(named, within);
        }
    }

    #[test]
    fn a_sample_stands_for_all() {
        let margin = MarginBins::below(0.8);
        let mut below = BelowThresholdCounts::new(margin, 400, 1000);
        (0..7).for_each(|at| below.add(margin, at, at, 0.795));
        assert_eq!(below.estimated()[9], 18, "17.5");
        assert_eq!(BelowThresholdCounts::new(margin, 0, 0).estimated(), [0; 10]);
    }

    #[test]
    fn the_margin_is_ten_bins_where_there_is_room() {
        for (threshold, from) in [(0.8, 0.7), (0.5, 0.25), (0.95, 0.925), (1.0, 0.9995)] {
            let margin = MarginBins::below(threshold);
            assert!((margin.from() - from).abs() < 1e-9, "{threshold}");
            assert_eq!(margin.bins, BINS_BELOW);
        }
        assert!(MarginBins::below(0.1).from() >= 0.0);
        assert_eq!(MarginBins::below(0.01).bins, 0, "nothing fits below");
    }

    #[test]
    fn the_closest_are_named_and_all_are_counted() {
        let margin = MarginBins::below(0.8);
        let mut below = BelowThresholdCounts::new(margin, 60, 60);
        for at in 0..30_u32 {
            below.add(margin, at + 100, at, 0.799 - f64::from(at) * 0.004);
        }
        assert_eq!(below.kept.iter().sum::<u64>(), 25, "beyond the margin five");
        assert_eq!(below.kept[9], 3);
        let named: Vec<u32> = below.closest.iter().map(|pair| pair.b).collect();
        assert_eq!(named, (0..10).collect::<Vec<u32>>());
    }
}
