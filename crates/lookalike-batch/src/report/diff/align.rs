//! Aligns two sequences of numbers: finds an approximately longest common subsequence in bounded time.
//!
//! Numbers that occur once on each side are anchors (the patience diff of Bram Cohen). Between anchors that are close together, Myers' algorithm
//! finds the shortest edit script. A stretch that stays too large and has no anchor counts as different. The work is therefore bounded by the sizes
//! alone: repetitive or crafted texts cost no more than others.

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// Maximum number of steps of all leaves together.
const BUDGET: usize = 1 << 28;
/// Maximum size of a leaf, in elements of both sides together.
const MAX_LEAF: usize = 2048;
/// Maximum nesting depth of anchors.
const MAX_DEPTH: u32 = 16;

/// A common run: `a[self.a..][..len]` equals `b[self.b..][..len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AlignedRange {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) len: usize,
}

/// Returns common runs of both sequences, ascending in both and not overlapping.
pub(super) fn align(a: &[u32], b: &[u32]) -> Vec<AlignedRange> {
    let total = (a.len() + b.len()).max(1);
    // A leaf of n elements costs at most n * n steps, and there are at most total / n of them.
    let leaf = (BUDGET / total).clamp(16, MAX_LEAF);
    let mut aligner = DiffAligner {
        leaf,
        matches: Vec::new(),
    };
    aligner.range(a, b, (0, 0), 0);
    join(aligner.matches)
}

struct DiffAligner {
    leaf: usize,
    matches: Vec<AlignedRange>,
}

impl DiffAligner {
    /// Aligns two slices that start at `at` in the whole sequences.
    fn range(&mut self, a: &[u32], b: &[u32], at: (usize, usize), depth: u32) {
        // Equal ends are matched first: they need no search, and what is left is often small enough for a leaf.
        let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let (a, b, at) = (&a[head..], &b[head..], (at.0 + head, at.1 + head));
        self.push(at.0 - head, at.1 - head, head);
        let tail = a
            .iter()
            .rev()
            .zip(b.iter().rev())
            .take_while(|(x, y)| x == y)
            .count();
        self.middle(&a[..a.len() - tail], &b[..b.len() - tail], at, depth);
        self.push(at.0 + a.len() - tail, at.1 + b.len() - tail, tail);
    }

    /// Aligns two slices without a common head or tail.
    fn middle(&mut self, a: &[u32], b: &[u32], at: (usize, usize), depth: u32) {
        if a.is_empty() || b.is_empty() {
        } else if a.len() + b.len() <= self.leaf {
            self.leaf(a, b, at);
        // Beyond this depth the rest counts as different; each level costs a sort of its elements, so the depth bounds the work.
        } else if depth < MAX_DEPTH {
            self.split(a, b, at, depth);
        }
    }

    /// Aligns the gaps between anchors. Without anchors nothing is common.
    fn split(&mut self, a: &[u32], b: &[u32], at: (usize, usize), depth: u32) {
        let anchors = anchors(a, b);
        if anchors.is_empty() {
            return;
        }
        let (mut i, mut j) = (0, 0);
        for &(x, y) in anchors.iter().chain([&(a.len(), b.len())]) {
            // The gap before the anchor or, at the end of the chain, the rest of both.
            self.range(&a[i..x], &b[j..y], (at.0 + i, at.1 + j), depth + 1);
            if x < a.len() {
                self.push(at.0 + x, at.1 + y, 1);
            }
            // After the last pair, which stands for the ends, both are past the end and not used again.
            (i, j) = (x + 1, y + 1);
        }
    }

    fn leaf(&mut self, a: &[u32], b: &[u32], at: (usize, usize)) {
        for op in shortest_edits(a, b) {
            if let DiffOp::Equal {
                old_index,
                new_index,
                len,
            } = op
            {
                self.push(at.0 + old_index, at.1 + new_index, len);
            }
        }
    }

    fn push(&mut self, a: usize, b: usize, len: usize) {
        if len > 0 {
            self.matches.push(AlignedRange { a, b, len });
        }
    }
}

/// Returns the shortest edit script. `similar::capture_diff_slices` does the same but compiles six algorithms to choose from.
fn shortest_edits(a: &[u32], b: &[u32]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), a, b);
    let Ok(()) = myers::diff(&mut hook, a, 0..a.len(), b, 0..b.len());
    hook.into_inner().into_inner().into_ops()
}

/// Joins runs that are adjacent on both sides.
fn join(matches: Vec<AlignedRange>) -> Vec<AlignedRange> {
    let mut joined: Vec<AlignedRange> = Vec::with_capacity(matches.len());
    for run in matches {
        match joined.last_mut() {
            Some(last) if last.a + last.len == run.a && last.b + last.len == run.b => {
                last.len += run.len;
            }
            _ => joined.push(run),
        }
    }
    joined
}

/// Returns the positions of numbers that occur once in each slice, reduced to the longest chain that ascends in both.
fn anchors(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let (once_a, once_b) = (once(a), once(b));
    let mut pairs = Vec::new();
    let mut others = once_b.iter().peekable();
    for &(number, x) in &once_a {
        // Both lists ascend by number, so one pass finds the numbers that occur once in each.
        while others.next_if(|other| other.0 < number).is_some() {}
        if let Some(&(_, y)) = others.next_if(|other| other.0 == number) {
            pairs.push((x, y));
        }
    }
    pairs.sort_unstable();
    longest_ascending(&pairs)
}

/// Returns the numbers that occur once, ascending, with their positions.
fn once(slice: &[u32]) -> Vec<(u32, usize)> {
    let mut sorted: Vec<(u32, usize)> = slice.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|x, y| x.0 == y.0)
        .filter(|run| run.len() == 1)
        .map(|run| run[0])
        .collect()
}

/// Returns the longest chain of pairs, sorted by the first position, that ascends in the second.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is the pair with the smallest second position that ends a chain of n + 1 pairs.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        // Patience sorting: the longest ascending chain in n log n steps.
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        if length > 0 {
            before[index] = ends[length - 1];
        }
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied().unwrap_or(usize::MAX);
    while at != usize::MAX {
        chain.push(pairs[at]);
        at = before[at];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the length of the longest common subsequence by the textbook table, as a slow reference.
    fn longest_common(a: &[u32], b: &[u32]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                table[i + 1][j + 1] = if a[i] == b[j] {
                    table[i][j] + 1
                } else {
                    table[i][j + 1].max(table[i + 1][j])
                };
            }
        }
        table[a.len()][b.len()]
    }

    fn assert_common(a: &[u32], b: &[u32], matches: &[AlignedRange]) {
        let (mut i, mut j) = (0, 0);
        for run in matches {
            assert!(run.len > 0 && run.a >= i && run.b >= j);
            assert_eq!(a[run.a..run.a + run.len], b[run.b..run.b + run.len]);
            (i, j) = (run.a + run.len, run.b + run.len);
        }
    }

    fn matched(matches: &[AlignedRange]) -> usize {
        matches.iter().map(|run| run.len).sum()
    }

    proptest! {
        #[test]
        fn small_sequences_align_as_well_as_the_table(
            a in prop::collection::vec(0_u32..6, 0..40),
            b in prop::collection::vec(0_u32..6, 0..40),
        ) {
            let matches = align(&a, &b);
            assert_common(&a, &b, &matches);
            prop_assert_eq!(matched(&matches), longest_common(&a, &b));
        }

        #[test]
        fn split_ranges_stay_common(
            a in prop::collection::vec(0_u32..60, 0..90),
            b in prop::collection::vec(0_u32..60, 0..90),
        ) {
            let mut aligner = DiffAligner { leaf: 4, matches: Vec::new() };
            aligner.range(&a, &b, (0, 0), 0);
            let matches = join(aligner.matches);
            assert_common(&a, &b, &matches);
            prop_assert!(matched(&matches) <= longest_common(&a, &b));
        }
    }

    #[test]
    fn anchors_carry_a_long_sequence_over_a_replaced_block() {
        let a: Vec<u32> = (0..10_000).collect();
        let mut b = a.clone();
        b.splice(5_000..5_010, 20_000..20_020);
        let matches = align(&a, &b);
        assert_common(&a, &b, &matches);
        assert_eq!(matched(&matches), 9_990);
    }

    #[test]
    fn two_numbers_in_different_order_end_in_bounded_work() {
        // No number occurs once and no leaf is small enough, so everything except head and tail is different.
        let a: Vec<u32> = (0..200_000).map(|i| i % 2).collect();
        let b: Vec<u32> = (0..200_000).map(|i| (i / 2) % 2).collect();
        assert_common(&a, &b, &align(&a, &b));
    }
}
