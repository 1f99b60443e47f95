//! The self-join, compared with comparing all pairs.

use super::collections::{SHAPES, Shape, collection, words};
use lookalike_hamming::{
    JoinedTables, SelfJoinLimits, SelfJoinProgress, Word, self_join, self_join_from,
    self_join_until,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn all_pairs<C: Word>(codes: &[C], radius: u32) -> Vec<(C, C, u32)> {
    let mut distinct = codes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut pairs = Vec::new();
    for (i, &a) in distinct.iter().enumerate() {
        for &b in &distinct[i + 1..] {
            let distance = a.bits_apart(b);
            if distance <= radius {
                pairs.push((a, b, distance));
            }
        }
    }
    pairs
}

fn joined_within<C: Word>(codes: &[C], radius: u32, limits: SelfJoinLimits) -> Vec<(C, C, u32)> {
    let pairs = Mutex::new(Vec::new());
    self_join(codes, radius, limits, || {
        |a, b, distance| pairs.lock().unwrap().push((a, b, distance))
    });
    let mut pairs = pairs.into_inner().unwrap();
    pairs.sort_unstable();
    pairs
}

fn joined<C: Word>(codes: &[C], radius: u32) -> Vec<(C, C, u32)> {
    joined_within(codes, radius, SelfJoinLimits::default())
}

#[test]
fn joins_equal_the_comparison_of_all_pairs() {
    for shape in SHAPES {
        for radius in 0..=8 {
            let codes = collection(shape, 64, 900, radius, radius.into());
            let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
            assert!(
                joined(&codes, radius) == all_pairs(&codes, radius),
                "{shape:?} {radius}"
            );
        }
        for radius in [0, 1, 3, 5] {
            let narrow = collection(shape, 32, 900, radius, 7);
            let narrow: Vec<u32> = narrow.into_iter().map(|code| code as u32).collect();
            assert!(
                joined(&narrow, radius) == all_pairs(&narrow, radius),
                "{shape:?} {radius}"
            );
            let wide = collection(shape, 128, 900, radius, 8);
            assert!(
                joined(&wide, radius) == all_pairs(&wide, radius),
                "{shape:?} {radius}"
            );
        }
    }
}

#[test]
fn large_skewed_collections_are_joined_in_levels_whatever_the_limits() {
    for shape in SHAPES {
        let codes = collection(shape, 64, 5_000, 3, 5);
        let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
        let expected = all_pairs(&codes, 3);
        assert!(joined(&codes, 3) == expected, "{shape:?}");
        for (threads, scratch_bytes) in [(2, usize::MAX), (2, 20_000), (3, 0), (1, 9_000)] {
            let limits = SelfJoinLimits::default()
                .threads(threads)
                .scratch_bytes(scratch_bytes);
            assert!(
                joined_within(&codes, 3, limits) == expected,
                "{shape:?} {limits:?}"
            );
        }
    }
}

#[test]
fn a_million_equal_codes_cost_no_more_than_others() {
    let mut next = words(3);
    let mut codes: Vec<u64> = (0..1_000_000).map(|_| 77).collect();
    codes.extend((0..50_000).map(|_| next()));
    codes.extend([77 ^ 1 << 40, 77 ^ 1, 77 ^ 1]);
    let expected = [(76, 77, 1), (76, 77 ^ 1 << 40, 2), (77, 77 ^ 1 << 40, 1)];
    assert_eq!(joined(&codes, 3), expected);
}

#[test]
fn codes_that_are_all_alike_are_joined_in_full() {
    // At most 2^12 distinct codes; any two of them differ in few bits.
    let codes = collection(Shape::Narrow, 64, 20_000, 3, 8);
    let codes: Vec<u64> = codes
        .into_iter()
        .map(|code| (code as u64) * 0x11_1111)
        .collect();
    assert!(joined(&codes, 4) == all_pairs(&codes, 4));
}

#[test]
fn empty_and_tiny_collections() {
    assert!(joined::<u64>(&[], 3).is_empty());
    assert!(joined(&[5_u64], 3).is_empty());
    assert!(joined(&[5_u64, 5], 0).is_empty());
    assert_eq!(joined(&[u64::MAX, 0_u64], 64), [(0, u64::MAX, 64)]);
}

proptest! {
    #[test]
    fn any_codes(
        codes in proptest::collection::vec(0_u64..1 << 14, 0..300),
        spread in any::<u64>(),
        radius in 0_u32..8,
    ) {
        let codes: Vec<u64> = codes.into_iter().map(|code| code.wrapping_mul(spread | 1)).collect();
        prop_assert_eq!(joined(&codes, radius), all_pairs(&codes, radius));
    }
}

#[test]
fn a_cancelled_join_ends_at_once_with_some_of_the_pairs() {
    // The larger collection is worth joining by tables that tolerate an error.
    for count in [20_000, 1 << 18] {
        let even = collection(Shape::Random, 64, count / 2, 3, 5);
        let even = even.into_iter().map(|code| code as u64);
        let pair = |(at, code): (usize, u64)| [code, code ^ 1 << (at % 64)];
        let codes: Vec<u64> = even.enumerate().flat_map(pair).collect();
        let all: BTreeSet<_> = joined(&codes, 3).into_iter().collect();
        assert!(all.len() >= count / 2);
        for (after, threads) in [(0, 1), (1, 2), (7, 1), (40, 2)] {
            let (asked, pairs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= after;
            let limits = SelfJoinLimits::default().threads(threads);
            let ended = self_join_until(&codes, 3, limits, &is_cancelled, || {
                |a, b, distance| pairs.lock().unwrap().push((a, b, distance))
            });
            let pairs = pairs.into_inner().unwrap();
            let distinct: BTreeSet<_> = pairs.iter().copied().collect();
            assert!(distinct.len() == pairs.len() && distinct.is_subset(&all));
            // Each thread may ask once more in the current step and in each of the four buckets that it took, and the join between steps and at the end.
            let asked = asked.into_inner();
            assert!(asked <= after + 5 * threads + 4, "{count} {after}");
            assert_eq!(ended.is_break(), asked > after, "{count} {after}");
        }
    }
}

/// Joins the tables after `before`. Returns the pairs, each with the number of tables that were done when it was found, and the final state.
fn joined_from<C: Word>(
    codes: &[C],
    radius: u32,
    limits: SelfJoinLimits,
    before: JoinedTables,
) -> (Vec<(usize, C, C)>, JoinedTables) {
    let (found, done) = (Mutex::new(Vec::new()), AtomicUsize::new(before.done));
    let mut last = before;
    let completed = &mut |tables: JoinedTables| {
        done.store(tables.done, Ordering::Relaxed);
        last = tables;
    };
    let mut progress = SelfJoinProgress { before, completed };
    let ended = self_join_from(codes, radius, limits, &|| false, &mut progress, || {
        |a, b, _| {
            let done = done.load(Ordering::Relaxed);
            found.lock().unwrap().push((done, a, b));
        }
    });
    assert!(ended.is_continue());
    (found.into_inner().unwrap(), last)
}

/// Checks that a join resumed at any table finds the pairs that a whole join finds from that table on.
fn goes_on_at_each_table<C: Word>(codes: &[C], radius: u32) {
    for threads in [1, 2] {
        let limits = SelfJoinLimits::default().threads(threads);
        let (whole, end) = joined_from(codes, radius, limits, JoinedTables::default());
        assert!(end.done > 1 && end.done == end.all, "{end:?}");
        for done in 0..=end.all {
            let before = JoinedTables { done, ..end };
            let (rest, _) = joined_from(codes, radius, limits, before);
            let rest: BTreeSet<_> = rest.into_iter().map(|(_, a, b)| (a, b)).collect();
            let wanted = whole.iter().filter(|&&(table, _, _)| table >= done);
            let wanted: BTreeSet<_> = wanted.map(|&(_, a, b)| (a, b)).collect();
            assert!(rest == wanted, "from table {done} of {}", end.all);
        }
        // If the saved tables are not those of this join, all tables are joined.
        let (all, design) = (end.all + 1, end.design + 1);
        for other in [JoinedTables { all, ..end }, JoinedTables { design, ..end }] {
            let (found, _) = joined_from(codes, radius, limits, JoinedTables { done: 1, ..other });
            assert_eq!(found.len(), whole.len());
        }
    }
}

#[test]
fn codes_in_another_order_had_other_tables_and_the_first_of_them_were_left_out() {
    // The bits have different balances, and a sample by position picks other codes if the order changes.
    let even = collection(Shape::Random, 64, 300_000, 3, 5).into_iter();
    let codes: Vec<u64> = even
        .map(|code| code as u64 & (code >> 64) as u64 | 1)
        .collect();
    let limits = SelfJoinLimits::default();
    let (_, end) = joined_from(&codes, 3, limits, JoinedTables::default());
    let mut other = codes.clone();
    other.sort_unstable_by_key(|code| code.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (whole, _) = joined_from(&other, 3, limits, JoinedTables::default());
    let (rest, again) = joined_from(&other, 3, limits, JoinedTables { done: 1, ..end });
    assert!(again.design == end.design || rest.len() == whole.len());
}

#[test]
fn a_join_goes_on_at_the_first_table_that_was_not_done() {
    let narrow = |count: usize| {
        let even = collection(Shape::Random, 64, count / 2, 3, 5).into_iter();
        let pair = |(at, code): (usize, u128)| [code, code ^ 1 << (at % 31) ^ 1 << (at % 7)];
        even.enumerate().flat_map(pair).collect::<Vec<u128>>()
    };
    let codes: Vec<u64> = narrow(20_000).into_iter().map(|code| code as u64).collect();
    goes_on_at_each_table(&codes, 3);
    // This collection is joined by tables that tolerate an error.
    let codes: Vec<u64> = narrow(1 << 18)
        .into_iter()
        .map(|code| code as u64)
        .collect();
    goes_on_at_each_table(&codes, 3);
    let codes: Vec<u32> = narrow(20_000).into_iter().map(|code| code as u32).collect();
    goes_on_at_each_table(&codes, 2);
    let spread = |code: u128| code | code.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 64;
    goes_on_at_each_table(
        &narrow(20_000)
            .into_iter()
            .map(spread)
            .collect::<Vec<u128>>(),
        3,
    );
}
