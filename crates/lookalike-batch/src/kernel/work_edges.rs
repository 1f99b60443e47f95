//! Edges between classes that must be processed together, computed from groups of classes that share a key.
//!
//! Edges decide only what is processed together, never the result: two classes that resemble each other must be connected, and other
//! connections cost only time. So a large group does not need all pairs of its members. If members are sorted by size, two of compatible
//! sizes are connected by the chain of neighbours between them, because all of these are compatible.

use lookalike::cluster::Components;

use crate::kernel::candidate_rule::{CandidateRule, is_compatible};

/// A key of a class. Classes that share one are candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKey {
    /// The key. Engines without unsigned integers carry its bits in a signed one.
    pub key: u64,
    /// Number of the class, for example its rank. Classes with the same number are connected, which costs time but changes no decision.
    pub rank: i64,
    /// Number of features of the class; negative for the key of a whole text, which classes of different categories share.
    pub size: i32,
}

/// A key of a class of fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintKey {
    /// The key and the class.
    pub class: ClassKey,
    /// The fingerprint of the class.
    pub fingerprint: u128,
}

/// Two classes that may resemble each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkEdge {
    /// The smaller number.
    pub x: i64,
    /// The larger number.
    pub y: i64,
    /// Size of `x`, as in [`ClassKey`].
    pub size_x: i32,
    /// Size of `y`, as in [`ClassKey`].
    pub size_y: i32,
    /// Number of groups that both are in, as far as they were counted; [`CHAIN`] or more for an edge that needs no count. Edges of the same
    /// classes are added up before [`DedupKernel::is_promising`](super::DedupKernel::is_promising).
    pub shared: i64,
}

/// Count of an edge that is promising whatever its sizes. Larger than any total of counted groups.
pub const CHAIN: i64 = 1 << 32;

impl WorkEdge {
    /// Returns false only if counts and sizes rule out that the classes resemble each other.
    pub(crate) fn is_promising(&self, rule: CandidateRule, threshold: f64) -> bool {
        let sizes = [self.size_x, self.size_y].map(|size| size.max(0) as usize);
        self.shared >= CHAIN || rule.is_promising(sizes, self.shared.max(0) as u64, threshold)
    }
}

/// Rule by which the groups of a method are turned into edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeRule {
    pub(crate) rule: CandidateRule,
    pub(crate) threshold: f64,
    /// Number of members above which a group gets a chain instead of all pairs; `None` for pairs in all groups.
    pub(crate) group_limit: Option<usize>,
}

impl EdgeRule {
    /// Calls `visit` with the edges of all groups. The keys may be in any order and may repeat.
    ///
    /// O(keys log keys + edges); at most `group_limit` edges per key.
    pub(crate) fn edges(self, mut keys: Vec<ClassKey>, mut visit: impl FnMut(WorkEdge)) {
        // Most keys occur only once, and need not be sorted.
        let mut filter = RepeatedKeyFilter::new(keys.len());
        keys.iter().for_each(|key| filter.add(key.key));
        keys.retain(|key| filter.may_repeat(key.key));
        keys.sort_unstable();
        keys.dedup();
        for group in keys.chunk_by_mut(|a, b| a.key == b.key) {
            self.group(group, &mut visit);
        }
    }

    fn group(self, group: &mut [ClassKey], visit: &mut impl FnMut(WorkEdge)) {
        // Equal texts must be connected whatever their sizes.
        if group.iter().any(|member| member.size < 0) {
            return chain(group, |_, _| true, visit);
        }
        let is_compatible = |a: i32, b: i32| is_compatible(a as usize, b as usize, self.threshold);
        // A single shared group suffices for such a method, so no count is needed.
        let needs_no_count = self
            .rule
            .min_shared_groups()
            .is_some_and(|least| least <= 1);
        let is_large = self.group_limit.is_some_and(|limit| group.len() > limit);
        if is_large || needs_no_count && self.group_limit.is_some() {
            // In this order, two compatible members are neighbours or have only compatible ones between them.
            group.sort_unstable_by_key(|member| (member.size, member.rank));
            return chain(group, is_compatible, visit);
        }
        for (at, &b) in group.iter().enumerate() {
            for &a in group[..at].iter().filter(|a| is_compatible(a.size, b.size)) {
                connect([a, b], 1, visit);
            }
        }
    }
}

/// Two bits for each cell, which is chosen by some bits of a key: whether any key was added to it, and whether a second one was.
pub(crate) struct RepeatedKeyFilter {
    once: Vec<u64>,
    again: Vec<u64>,
}

impl RepeatedKeyFilter {
    /// Creates enough cells for `keys` keys that at most an eighth of the keys that occur once share a cell with another.
    pub(crate) fn new(keys: usize) -> Self {
        // A word has 64 cells, so this makes eight for each key.
        let words = (keys / 8).next_power_of_two();
        Self {
            once: vec![0; words],
            again: vec![0; words],
        }
    }

    fn place(&self, key: u64) -> (usize, u64) {
        let cell = key as usize & (self.once.len() * 64 - 1);
        (cell / 64, 1 << (cell % 64))
    }

    pub(crate) fn add(&mut self, key: u64) {
        let (word, bit) = self.place(key);
        // In this order, so that a first key sets only the bit in `once`.
        self.again[word] |= self.once[word] & bit;
        self.once[word] |= bit;
    }

    /// Returns false only for a key that was added once.
    pub(crate) fn may_repeat(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        self.again[word] & bit != 0
    }
}

/// Calls `visit` with the edge between two classes, unless they have the same number and are one node.
fn connect([a, b]: [ClassKey; 2], shared: i64, visit: &mut impl FnMut(WorkEdge)) {
    let [x, y] = if a.rank < b.rank { [a, b] } else { [b, a] };
    if x.rank != y.rank {
        visit(WorkEdge {
            x: x.rank,
            y: y.rank,
            size_x: x.size,
            size_y: y.size,
            shared,
        });
    }
}

/// Calls `visit` with the edges between neighbours of the group whose sizes are compatible.
fn chain(
    group: &[ClassKey],
    is_compatible: impl Fn(i32, i32) -> bool,
    visit: &mut impl FnMut(WorkEdge),
) {
    for pair in group
        .windows(2)
        .filter(|pair| is_compatible(pair[0].size, pair[1].size))
    {
        connect([pair[0], pair[1]], CHAIN, visit);
    }
}

/// Calls `visit` with edges that connect all classes that share a key and whose fingerprints are within the distance.
///
/// The edges of a group are a forest: fewer than its members. O(keys log keys), and in each group one comparison for each pair of
/// different fingerprints.
pub(crate) fn fingerprint_edges(
    mut keys: Vec<FingerprintKey>,
    distance: u32,
    mut visit: impl FnMut(WorkEdge),
) {
    // Within a key, equal fingerprints become one run, which is compared as one.
    keys.sort_unstable_by_key(|key| (key.class.key, key.fingerprint, key.class.rank));
    keys.dedup();
    for group in keys.chunk_by(|a, b| a.class.key == b.class.key) {
        if group.iter().any(|member| member.class.size < 0) {
            let members: Vec<ClassKey> = group.iter().map(|member| member.class).collect();
            chain(&members, |_, _| true, &mut visit);
            continue;
        }
        let equal: Vec<&[FingerprintKey]> = group
            .chunk_by(|a, b| a.fingerprint == b.fingerprint)
            .collect();
        for run in &equal {
            for pair in run.windows(2) {
                connect([pair[0].class, pair[1].class], CHAIN, &mut visit);
            }
        }
        // Pairs that are already connected are not joined again.
        let mut trees = Components::new(equal.len() as u32);
        for (at, b) in equal.iter().enumerate() {
            for (before, a) in equal[..at].iter().enumerate() {
                let apart = (a[0].fingerprint ^ b[0].fingerprint).count_ones();
                if apart <= distance && trees.join(before as u32, at as u32) {
                    connect([a[0].class, b[0].class], CHAIN, &mut visit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<ClassKey>> {
        // Each class has a single size.
        let key = (0..6_u64, 0..40_i64);
        let key = key.prop_map(|(key, rank)| ClassKey {
            key,
            rank,
            size: (rank * 7 % 23) as i32,
        });
        prop::collection::vec(key, 0..150)
    }

    fn edges(rule: EdgeRule, keys: &[ClassKey]) -> Vec<WorkEdge> {
        let mut edges = Vec::new();
        rule.edges(keys.to_vec(), |edge| edges.push(edge));
        edges
    }

    /// Returns true if each pair of classes that share a key and pass is connected.
    fn connects(
        keys: &[ClassKey],
        edges: &[WorkEdge],
        passes: impl Fn(ClassKey, ClassKey) -> bool,
    ) -> bool {
        let mut trees = Components::new(40);
        for edge in edges {
            trees.join(edge.x as u32, edge.y as u32);
        }
        let mut pairs = keys.iter().flat_map(|&a| keys.iter().map(move |&b| (a, b)));
        pairs.all(|(a, b)| {
            a.key != b.key
                || !passes(a, b)
                || trees.first(a.rank as u32) == trees.first(b.rank as u32)
        })
    }

    proptest! {
        #[test]
        fn all_that_may_resemble_each_other_are_connected_by_few_edges(
            keys in keys(),
            group_limit in prop::sample::select(vec![Some(2), Some(3), Some(32), None]),
            threshold in 0.1..=1.0_f64,
            rule in prop::sample::select(vec![CandidateRule::Prefix, CandidateRule::Shared(1), CandidateRule::Shared(2)]),
        ) {
            let rule = EdgeRule { rule, threshold, group_limit };
            let edges = edges(rule, &keys);
            let passes = |a: ClassKey, b: ClassKey| is_compatible(a.size as usize, b.size as usize, threshold);
            prop_assert!(connects(&keys, &edges, passes));
            prop_assert!(edges.iter().all(|edge| edge.x < edge.y));
            if let Some(limit) = group_limit {
                prop_assert!(edges.len() <= keys.len() * limit.max(2) / 2);
            }
        }

        #[test]
        fn counts_are_those_of_shared_groups_where_no_group_is_large(keys in keys(), threshold in 0.1..=1.0_f64) {
            let mut counts = std::collections::BTreeMap::new();
            let rule = EdgeRule { rule: CandidateRule::Prefix, threshold, group_limit: None };
            for edge in edges(rule, &keys) {
                *counts.entry((edge.x, edge.y)).or_insert(0) += edge.shared;
            }
            let groups = |rank: i64| -> std::collections::BTreeSet<u64> {
                keys.iter().filter(|key| key.rank == rank).map(|key| key.key).collect()
            };
            for y in 0..40 {
                for x in 0..y {
                    let shared = groups(x).intersection(&groups(y)).count() as i64;
                    let sizes = [x, y].map(|rank| (rank * 7 % 23) as usize);
                    let expected = (shared > 0 && is_compatible(sizes[0], sizes[1], threshold)).then_some(shared);
                    prop_assert_eq!(counts.get(&(x, y)).copied(), expected);
                }
            }
        }

        #[test]
        fn close_fingerprints_are_connected_by_a_forest(
            keys in keys(),
            distance in 0..4_u32,
            spread in prop::sample::select(vec![0x55_u128, 0xffff, u128::MAX]),
        ) {
            let fingerprint = |rank: i64| (rank as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) & spread;
            let with: Vec<FingerprintKey> = keys.iter().map(|&class| FingerprintKey { class, fingerprint: fingerprint(class.rank) }).collect();
            let mut edges = Vec::new();
            fingerprint_edges(with, distance, |edge| edges.push(edge));
            let is_close = |a: i64, b: i64| (fingerprint(a) ^ fingerprint(b)).count_ones() <= distance;
            prop_assert!(connects(&keys, &edges, |a, b| is_close(a.rank, b.rank)));
            prop_assert!(edges.iter().all(|edge| is_close(edge.x, edge.y)));
            prop_assert!(edges.len() <= keys.len());
        }
    }

    #[test]
    fn a_key_of_a_whole_text_connects_classes_without_features() {
        let class = |rank| ClassKey {
            key: 5,
            rank,
            size: -1,
        };
        let rule = EdgeRule {
            rule: CandidateRule::Prefix,
            threshold: 0.8,
            group_limit: Some(32),
        };
        let found = edges(rule, &[class(3), class(1), class(2)]);
        let pairs: Vec<(i64, i64)> = found.iter().map(|edge| (edge.x, edge.y)).collect();
        assert_eq!(pairs, [(1, 2), (2, 3)]);
        assert!(found.iter().all(|edge| edge.is_promising(rule.rule, 0.8)));
    }
}
