//! Resemblance and the arithmetic of thresholds, compared with operations on sets and with brute force.

use std::collections::BTreeSet;

use lookalike::{
    containment, intersection_at_least, intersection_size, prefix_len, resemblance, resemblance_of,
    shared_needed,
};
use proptest::prelude::*;

fn sets() -> impl Strategy<Value = (BTreeSet<u64>, BTreeSet<u64>)> {
    let set = |limit: u64, len: usize| prop::collection::btree_set(0..limit, 0..len);
    prop_oneof![
        (set(80, 70), set(80, 70)),
        (set(5000, 10), set(5000, 3000)),
        (set(u64::MAX, 40), set(u64::MAX, 40)),
    ]
}

fn list(set: &BTreeSet<u64>) -> Vec<u64> {
    set.iter().copied().collect()
}

proptest! {
    #[test]
    fn measures_are_those_of_sets((a, b) in sets()) {
        let shared = a.intersection(&b).count();
        let all = a.union(&b).count();
        let (x, y) = (list(&a), list(&b));
        prop_assert_eq!(intersection_size(&x, &y), shared);
        prop_assert_eq!(intersection_size(&y, &x), shared);
        let expected = if a.is_empty() || b.is_empty() { 0.0 } else { shared as f64 / all as f64 };
        prop_assert_eq!(resemblance(&x, &y), expected);
        prop_assert_eq!(resemblance(&x, &y), resemblance(&y, &x));
        prop_assert!(containment(&x, &y) >= resemblance(&x, &y));
        prop_assert_eq!(containment(&x, &x), if x.is_empty() { 0.0 } else { 1.0 });
        prop_assert_eq!(resemblance(&x, &x), if x.is_empty() { 0.0 } else { 1.0 });
    }

    #[test]
    fn at_least_is_the_count_or_nothing((a, b) in sets(), needed in 0..90usize) {
        let (x, y) = (list(&a), list(&b));
        let shared = intersection_size(&x, &y);
        let expected = (shared >= needed).then_some(shared);
        prop_assert_eq!(intersection_at_least(&x, &y, needed), expected);
        prop_assert_eq!(intersection_at_least(&x, &y, shared), Some(shared));
        prop_assert_eq!(intersection_at_least(&x, &y, shared + 1), None);
    }

    #[test]
    fn prefixes_of_similar_sets_meet((a, b) in sets(), threshold in 0.01..=1.0f64) {
        let (x, y) = (list(&a), list(&b));
        if resemblance(&x, &y) >= threshold {
            let (p, q) = (prefix_len(x.len(), threshold), prefix_len(y.len(), threshold));
            prop_assert!(intersection_size(&x[..p], &y[..q]) > 0);
        }
    }
}

/// Tries all sizes up to 40, with thresholds at, just below and just above each possible resemblance.
#[test]
fn bounds_agree_with_the_comparison_to_the_last_bit() {
    let mut thresholds: Vec<f64> = vec![0.0, -1.0, 1.0, 1.5, f64::MIN_POSITIVE, f64::INFINITY];
    for total in 1..=40 {
        for shared in 0..=total {
            let exact = f64::from(shared) / f64::from(total);
            thresholds.extend([exact, exact.next_down(), exact.next_up()]);
        }
    }
    for (a, threshold) in (0..=40).flat_map(|a| thresholds.iter().map(move |&t| (a, t))) {
        let reaches = |shared: usize| a > 0 && shared as f64 / a as f64 >= threshold;
        let least = (0..=a).find(|&shared| reaches(shared));
        let expected = least.map_or(0, |least| (a - least + 1).min(a));
        assert_eq!(prefix_len(a, threshold), expected, "{a} {threshold}");
        for b in [0, 1, a / 2, a, 39, 40] {
            let found = (0..=a.min(b)).find(|&o| resemblance_of(o, a, b) >= threshold);
            let needed = shared_needed(a, b, threshold);
            assert_eq!(needed, found.unwrap_or(a.min(b) + 1), "{a} {b} {threshold}");
        }
    }
    assert!(shared_needed(7, 7, f64::NAN) > 7);
    assert_eq!(prefix_len(7, f64::NAN), 0);
}

#[test]
fn large_sizes_are_exact_too() {
    for (a, b) in [(1_000_000, 999_983), (129_456_789, 130_000_001)] {
        for threshold in [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99] {
            let needed = shared_needed(a, b, threshold);
            assert!(resemblance_of(needed, a, b) >= threshold);
            assert!(resemblance_of(needed - 1, a, b) < threshold);
        }
    }
}

/// Regression test: they overflowed.
#[test]
fn impossible_sizes_do_not_panic() {
    assert_eq!(resemblance_of(3, 1, 1), 1.0);
    assert_eq!(resemblance_of(0, usize::MAX, usize::MAX), 0.0);
    assert!(shared_needed(usize::MAX, usize::MAX, 0.5) > 1 << 50);
    assert!(prefix_len(usize::MAX, 0.5) > 1 << 50);
}

#[test]
fn a_short_list_is_looked_up_in_a_long_one() {
    let long: Vec<u64> = (0..100_000).map(|x| x * 3).collect();
    assert_eq!(
        intersection_size(&[0, 1, 2, 3, 150_000, 299_997, 299_998], &long),
        4
    );
    assert_eq!(intersection_size(&long, &[299_997]), 1);
    assert_eq!(intersection_size(&long, &[u64::MAX]), 0);
}
