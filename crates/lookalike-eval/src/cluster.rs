//! Compares clusterings: pairs in one cluster and the adjusted Rand index.

use std::collections::BTreeMap;

/// Numbers of pairs of documents that two clusterings put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusteredPairs {
    /// Pairs in one cluster of the first clustering.
    pub first: u64,
    /// Pairs in one cluster of the second clustering.
    pub second: u64,
    /// Pairs in one cluster of both.
    pub both: u64,
    /// All pairs of documents.
    all: u64,
}

impl ClusteredPairs {
    /// Counts the pairs from the sizes of the clusters and of their intersections. Names of clusters do not matter.
    ///
    /// ```
    /// use lookalike_eval::cluster::ClusteredPairs;
    ///
    /// let pairs = ClusteredPairs::count(&[0, 0, 0, 3], &[7, 7, 8, 8]);
    /// assert_eq!((pairs.first, pairs.second, pairs.both), (3, 2, 1));
    /// ```
    ///
    /// # Panics
    /// If the clusterings differ in length.
    #[must_use]
    pub fn count(first: &[u32], second: &[u32]) -> Self {
        assert_eq!(first.len(), second.len(), "one cluster a document");
        let pairs_of = |size: u64| size * size.saturating_sub(1) / 2;
        let together = |keys: &mut dyn Iterator<Item = (u32, u32)>| -> u64 {
            let mut sizes = BTreeMap::new();
            keys.for_each(|key| *sizes.entry(key).or_insert(0) += 1);
            sizes.into_values().map(pairs_of).sum()
        };
        let mut both = first.iter().copied().zip(second.iter().copied());
        Self {
            first: together(&mut first.iter().map(|&cluster| (cluster, 0))),
            second: together(&mut second.iter().map(|&cluster| (cluster, 0))),
            both: together(&mut both),
            all: pairs_of(first.len() as u64),
        }
    }

    /// Returns the adjusted Rand index (Hubert and Arabie, 1985): 1 if the clusterings are equal, about 0 if they agree by chance only. The NEWS-COPY
    /// benchmark reports this index.
    #[must_use]
    pub fn adjusted_rand(self) -> f64 {
        // Index = pairs that are together in both clusterings. Adjusted = (index - expected) / (maximum - expected), where the expected index of
        // random clusterings with these sizes is first * second / all pairs, and the maximum is the mean of first and second.
        let [first, second, both, all] =
            [self.first, self.second, self.both, self.all].map(|pairs| pairs as f64);
        let expected = first * second / all.max(1.0);
        let most = f64::midpoint(first, second);
        // Both put every document alone, or all together: they are equal, and the formula would be 0 / 0.
        if most == expected {
            return 1.0;
        }
        (both - expected) / (most - expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rand_index_by_hand() {
        let adjusted_rand = |a: &[u32], b: &[u32]| ClusteredPairs::count(a, b).adjusted_rand();
        assert_eq!(adjusted_rand(&[0, 0, 1, 1], &[5, 5, 7, 7]), 1.0);
        // The example in scikit-learn's documentation.
        let found = adjusted_rand(&[0, 0, 1, 2], &[0, 0, 1, 1]);
        assert!((found - 4.0 / 7.0).abs() < 1e-12, "{found}");
        let found = adjusted_rand(&[0, 0, 0, 0], &[0, 1, 2, 3]);
        assert_eq!(found, 0.0);
    }

    #[test]
    fn every_pair_of_a_large_cluster_was_held() {
        // 2^45 pairs.
        let pairs = ClusteredPairs::count(&[1; 1 << 20], &[2; 1 << 20]);
        assert_eq!(pairs.both, (1 << 19) * ((1 << 20) - 1));
        assert_eq!(pairs.adjusted_rand(), 1.0);
    }
}
