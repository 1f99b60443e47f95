//! The batch join, compared with comparing all pairs.

use super::collections::{SHAPES, Shape, collection};
use lookalike_hamming::{BatchJoin, BatchLimits, BuildError, JoinScratch, Word};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

fn joined<C: Word>(queries: &[C], chunk: &[C], radius: u32) -> Vec<(usize, C, u32)> {
    let limits = BatchLimits::default()
        .memory_bytes(1 << 24)
        .threads(1 + queries.len() % 2);
    let join = BatchJoin::new(queries, radius, limits).unwrap();
    let mut pairs = Vec::new();
    let mut scratch = JoinScratch::default();
    for _ in 0..2 {
        pairs.clear();
        join.join(chunk, &mut scratch, &mut |at, code, distance| {
            pairs.push((at, code, distance))
        });
    }
    assert!(pairs.windows(2).all(|two| two[0].0 <= two[1].0));
    pairs.sort_unstable();
    pairs
}

fn all_pairs<C: Word>(queries: &[C], chunk: &[C], radius: u32) -> Vec<(usize, C, u32)> {
    let queries: BTreeSet<C> = queries.iter().copied().collect();
    let mut pairs = Vec::new();
    for (at, code) in chunk.iter().enumerate() {
        let apart = queries
            .iter()
            .map(|&query| (at, query, code.bits_apart(query)));
        pairs.extend(apart.filter(|&(_, _, distance)| distance <= radius));
    }
    pairs
}

#[test]
fn joins_equal_the_comparison_of_all_pairs() {
    for shape in SHAPES {
        for radius in 0..=6 {
            let codes = collection(shape, 64, 2_600, radius, 4);
            let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
            let (queries, chunk) = codes.split_at(300);
            let expected = all_pairs(queries, chunk, radius);
            assert!(
                joined(queries, chunk, radius) == expected,
                "{shape:?} {radius}"
            );
        }
        let wide = collection(shape, 128, 800, 3, 4);
        assert!(joined(&wide[..99], &wide[99..], 3) == all_pairs(&wide[..99], &wide[99..], 3));
        let codes = collection(shape, 32, 800, 2, 4);
        let codes: Vec<u32> = codes.into_iter().map(|code| code as u32).collect();
        assert!(joined(&codes[..99], &codes[99..], 2) == all_pairs(&codes[..99], &codes[99..], 2));
    }
}

#[test]
fn large_filters_are_read_in_order() {
    let codes = collection(Shape::Random, 64, 40_000, 3, 4);
    let queries: Vec<u64> = codes.iter().map(|&code| code as u64).collect();
    let chunk: Vec<u64> = queries
        .iter()
        .step_by(7)
        .map(|code| code ^ 0x8100_0000_0001)
        .collect();
    let join = BatchJoin::new(&queries, 3, BatchLimits::default()).unwrap();
    let mut pairs = Vec::new();
    join.join(
        &chunk,
        &mut JoinScratch::default(),
        &mut |at, code, distance| {
            pairs.push((at, code, distance));
        },
    );
    let expected = queries
        .iter()
        .step_by(7)
        .enumerate()
        .map(|(at, &code)| (at, code, 3));
    assert!(pairs.into_iter().eq(expected));
}

#[test]
fn a_join_of_values_of_32_bits_compared_all_pairs() {
    let codes = collection(Shape::Random, 32, 60_000, 3, 4);
    let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
    let (queries, chunk) = codes.split_at(30_000);
    let join = BatchJoin::new(queries, 3, BatchLimits::default()).unwrap();
    for load in join.queries().loads() {
        assert!(load.observed < 300.0, "{load:?}");
    }
    let chunk = &chunk[..300];
    assert!(joined(queries, chunk, 3) == all_pairs(queries, chunk, 3));
}

#[test]
fn nothing_joins_nothing() {
    assert!(joined::<u64>(&[], &[1, 2], 3).is_empty());
    assert!(joined::<u64>(&[1, 2], &[], 3).is_empty());
    assert_eq!(joined::<u64>(&[1, 1], &[1], 0), [(0, 1, 0)]);
}

#[test]
fn queries_that_nobody_wants_any_more_were_taken_in_to_the_end() {
    let codes = collection(Shape::Random, 64, 200_000, 3, 4);
    let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
    let taken_in = |until: usize| {
        let asked = AtomicUsize::new(0);
        let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= until;
        let limits = BatchLimits::default().threads(1);
        let join = BatchJoin::new_until(&codes, 3, limits, &is_cancelled);
        (join.map(|_| ()), asked.into_inner())
    };
    let (whole, all) = taken_in(usize::MAX);
    // Each reading of a table takes four pieces of 65,536 codes.
    assert!(whole.is_ok() && all >= 16, "{all}");
    for until in [0, 1, all / 2, all - 1] {
        let (cancelled, asked) = taken_in(until);
        assert!(matches!(cancelled, Err(BuildError::Cancelled)));
        assert!(asked <= until + 2, "{asked} after {until}");
    }
}
