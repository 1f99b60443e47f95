//! The lookups measured by the example `prefix_lookups`: they are correct, and as fast as the paper says.

use super::collections::words;
use lookups::{bisected, interpolated};

#[path = "../../examples/prefix_lookups/lookups.rs"]
mod lookups;

/// Returns the position found and the number of reads, by bisection and by interpolation.
fn both(sorted: &[u64], target: u64) -> [(usize, usize); 2] {
    let mut reads = [0, 0];
    let [bisections, guesses] = &mut reads;
    let read = |at: usize, count: &mut usize| {
        *count += 1;
        sorted[at]
    };
    let by_halves = bisected(0..sorted.len(), target, |at| read(at, bisections));
    let by_guesses = interpolated(sorted.len(), target, |at| read(at, guesses));
    [(by_halves, reads[0]), (by_guesses, reads[1])]
}

#[test]
fn both_lookups_find_the_lower_bound() {
    let spread: Vec<u64> = (0..500_u64).map(|i| i.wrapping_mul(i) * 3).collect();
    let skewed: Vec<u64> = (0..60_u32).map(|i| 1_u64 << i).collect();
    let high: Vec<u64> = (0..300).map(|i| u64::MAX - 300 + i).collect();
    for sorted in [spread, skewed, high, vec![], vec![5; 40]] {
        for &entry in sorted.iter().chain(&[0, 5, u64::MAX]) {
            for target in [entry.saturating_sub(1), entry, entry.saturating_add(1)] {
                let expected = sorted.iter().filter(|&&entry| entry < target).count();
                let [(by_halves, _), (by_guesses, _)] = both(&sorted, target);
                assert_eq!((by_halves, by_guesses), (expected, expected), "{target}");
            }
        }
    }
}

/// Counts reads to check the paper's claim for random fingerprints: O(log log n) compared with O(log n).
#[test]
fn interpolation_reads_half_as_many_random_entries_as_bisection() {
    let mut next = words(7);
    let mut sorted: Vec<u64> = (0..1 << 20).map(|_| next()).collect();
    sorted.sort_unstable();
    let mut sums = [0, 0];
    for _ in 0..2000 {
        let found = both(&sorted, next());
        assert_eq!(found[0].0, found[1].0);
        sums[0] += found[0].1;
        sums[1] += found[1].1;
    }
    assert!(sums[1] * 2 < sums[0], "{sums:?}");
}

/// All entries but the last few lie at the start of the range, so interpolation guesses badly; its cost must stay bounded.
#[test]
fn hostile_entries_take_no_more_than_the_bound() {
    let mut sorted: Vec<u64> = (0..100_000).collect();
    sorted.extend((0..64).map(|bit| 1 << bit));
    sorted.sort_unstable();
    for at in (0..sorted.len()).step_by(97) {
        let [(_, by_halves), (_, by_guesses)] = both(&sorted, sorted[at]);
        assert!(by_guesses <= by_halves * by_halves, "{at}: {by_guesses}");
    }
}
