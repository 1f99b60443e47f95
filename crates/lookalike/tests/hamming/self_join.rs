//! The self-join against the comparison of all pairs.

use super::collections::{SHAPES, collection};
use lookalike::hamming::{Code, self_join};
use proptest::prelude::*;

fn all_pairs<C: Code>(codes: &[C], radius: u32) -> Vec<(usize, usize, u32)> {
    let mut pairs = Vec::new();
    for (i, a) in codes.iter().enumerate() {
        for (j, b) in codes.iter().enumerate().skip(i + 1) {
            let distance = a.bits_apart(*b);
            if distance <= radius {
                pairs.push((i, j, distance));
            }
        }
    }
    pairs
}

fn joined<C: Code>(codes: &[C], radius: u32) -> Vec<(usize, usize, u32)> {
    let mut pairs = Vec::new();
    self_join(codes, radius, &mut |i, j, distance| {
        pairs.push((i, j, distance))
    });
    pairs.sort_unstable();
    pairs
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
fn large_skewed_collections_are_joined_in_levels() {
    for shape in SHAPES {
        let mut codes = collection(shape, 64, 6_000, 3, 5);
        codes.sort_unstable();
        codes.dedup();
        let codes: Vec<u64> = codes.into_iter().map(|code| code as u64).collect();
        assert!(joined(&codes, 3) == all_pairs(&codes, 3), "{shape:?}");
    }
}

#[test]
fn empty_and_tiny_collections() {
    assert!(joined::<u64>(&[], 3).is_empty());
    assert!(joined(&[5_u64], 3).is_empty());
    assert_eq!(joined(&[5_u64, 5], 0), [(0, 1, 0)]);
    assert_eq!(joined(&[0_u64, u64::MAX], 64), [(0, 1, 64)]);
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
