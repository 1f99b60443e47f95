//! Compares clusterings: components of pairs and the adjusted Rand index.

use std::collections::BTreeMap;

use lookalike::cluster::Components;

/// Returns the cluster of each of `documents` documents after merging `pairs`. A cluster is named by the smallest position in it.
#[must_use]
pub fn components(documents: usize, pairs: impl IntoIterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut joined = Components::new(documents as u32);
    for (a, b) in pairs {
        joined.join(a, b);
    }
    (0..documents as u32).map(|at| joined.first(at)).collect()
}

/// Returns the adjusted Rand index of two clusterings of the same documents (Hubert and Arabie, 1985): 1 if they are equal, about 0 if they agree by
/// chance only. The NEWS-COPY benchmark reports this index.
///
/// ```
/// use lookalike_eval::cluster::{adjusted_rand, components};
///
/// // Documents 0, 1 and 2 are one cluster by two of the pairs; the names of clusters do not count.
/// assert_eq!(adjusted_rand(&components(4, [(0, 1), (1, 2)]), &[7, 7, 7, 9]), 1.0);
/// ```
///
/// # Panics
/// If the clusterings differ in length.
#[must_use]
pub fn adjusted_rand(a: &[u32], b: &[u32]) -> f64 {
    assert_eq!(a.len(), b.len(), "one cluster a document");
    // Index = pairs that are together in both clusterings. Adjusted = (index - expected) / (maximum - expected), where the expected index of random
    // clusterings with these sizes is in_a * in_b / all pairs, and the maximum is the mean of in_a and in_b.
    let pairs_of = |count: u64| count as f64 * (count as f64 - 1.0) / 2.0;
    let sum = |counts: BTreeMap<(u32, u32), u64>| counts.into_values().map(pairs_of).sum::<f64>();
    let count = |keys: &mut dyn Iterator<Item = (u32, u32)>| {
        let mut counts = BTreeMap::new();
        keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
        counts
    };
    let both = sum(count(&mut a.iter().copied().zip(b.iter().copied())));
    let in_a = sum(count(&mut a.iter().map(|&cluster| (cluster, 0))));
    let in_b = sum(count(&mut b.iter().map(|&cluster| (cluster, 0))));
    let expected = in_a * in_b / pairs_of(a.len() as u64).max(1.0);
    let most = f64::midpoint(in_a, in_b);
    // Both put every document alone, or all together: they are equal, and the formula would be 0 / 0.
    if most == expected {
        return 1.0;
    }
    (both - expected) / (most - expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rand_index_by_hand() {
        assert_eq!(adjusted_rand(&[0, 0, 1, 1], &[5, 5, 7, 7]), 1.0);
        // The example in scikit-learn's documentation.
        let found = adjusted_rand(&[0, 0, 1, 2], &[0, 0, 1, 1]);
        assert!((found - 4.0 / 7.0).abs() < 1e-12, "{found}");
        let found = adjusted_rand(&[0, 0, 0, 0], &[0, 1, 2, 3]);
        assert_eq!(found, 0.0);
    }

    #[test]
    fn components_merge_chains() {
        assert_eq!(components(5, [(3, 4), (1, 3)]), [0, 1, 2, 1, 1]);
    }
}
