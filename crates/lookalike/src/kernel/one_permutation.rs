//! One-permutation hashing: the least hash of the features in each bin.
//!
//! Hashing is done for vectors of features at once, and leaves place and value of each in one word;
//! lowering the bins is a loop over these words, a load, a comparison and a store each.

use super::{Level, versions};
use crate::hash::avalanche;

/// Features that are hashed at once.
const BLOCK: usize = 256;
/// The value of a feature: the low half of its word, the place being the high half.
const VALUE: u64 = 0xFFFF_FFFF;
/// No feature has been in a bin: larger than every value.
pub(crate) const EMPTY: u64 = u64::MAX;

/// Lowers the minima of the bins to the values of the features that fall into them, for an odd
/// `factor`; see [`OnePermutation`](crate::sketch::OnePermutation).
pub(crate) fn update(minima: &mut [u64], factor: u64, features: &[u64]) {
    let level = Level::current();
    let bins = minima.len() as u64;
    let mut words = [0; BLOCK];
    for features in features.chunks(BLOCK) {
        let words = &mut words[..features.len()];
        place(level, words, features, factor, bins);
        for word in words {
            let bin = &mut minima[(*word >> 32) as usize];
            *bin = (*bin).min(*word & VALUE);
        }
    }
}

versions! {
    /// Writes place and value of each feature.
    fn place(out: &mut [u64], features: &[u64], factor: u64, bins: u64) {
        portable: place_body, avx2: place_body, avx512: place_body,
    }
}

#[inline(always)]
fn place_body(out: &mut [u64], features: &[u64], factor: u64, bins: u64) {
    for (out, feature) in out.iter_mut().zip(features) {
        let hash = avalanche(feature.wrapping_mul(factor));
        *out = ((hash >> 32) * bins) & !VALUE | hash & VALUE;
    }
}

/// Copies the values of the bins to `out` and lists the empty ones, ascending, in `open`; returns
/// how many these are.
///
/// # Panics
/// If `open` is shorter than the list.
pub(crate) fn values(out: &mut [u32], open: &mut [u16], minima: &[u64]) -> usize {
    values_at(Level::current(), out, open, minima)
}

versions! {
    fn values_at(out: &mut [u32], open: &mut [u16], minima: &[u64]) -> usize {
        portable: values_body, avx2: values_body, avx512: values_body,
    }
}

#[inline(always)]
fn values_body(out: &mut [u32], open: &mut [u16], minima: &[u64]) -> usize {
    for (out, value) in out.iter_mut().zip(minima) {
        *out = *value as u32;
    }
    let (blocks, rest) = minima.as_chunks::<64>();
    let mut left = 0;
    let mut list = |block: usize, mut empty: u64| {
        while empty != 0 {
            open[left] = (64 * block + empty.trailing_zeros() as usize) as u16;
            left += 1;
            empty &= empty - 1;
        }
    };
    for (at, block) in blocks.iter().enumerate() {
        list(at, empty_ones(block));
    }
    list(blocks.len(), empty_ones(rest));
    left
}

/// A bit for each of up to 64 bins, the first lowest: whether it is empty.
#[inline(always)]
fn empty_ones(minima: &[u64]) -> u64 {
    let bits = (0..).zip(minima);
    bits.fold(0, |ones, (at, &value)| {
        ones | u64::from(value == EMPTY) << at
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every level that this machine has, against one feature after another.
        #[test]
        fn all_levels_agree(
            features in prop::collection::vec(any::<u64>(), 0..600),
            factor in any::<u64>(),
            bins in 1..300_usize,
        ) {
            let mut expected = vec![u64::MAX; bins];
            for feature in &features {
                let hash = avalanche(feature.wrapping_mul(factor));
                let bin = (((hash >> 32) * bins as u64) >> 32) as usize;
                expected[bin] = expected[bin].min(hash & VALUE);
            }
            let mut words = vec![0; features.len()];
            for level in Level::available() {
                place(level, &mut words, &features, factor, bins as u64);
                let mut minima = vec![u64::MAX; bins];
                for word in &words {
                    let bin = &mut minima[(word >> 32) as usize];
                    *bin = (*bin).min(word & VALUE);
                }
                prop_assert_eq!(&minima, &expected);
            }
            let mut minima = vec![EMPTY; bins];
            update(&mut minima, factor, &features);
            prop_assert_eq!(&minima, &expected);
            let empty: Vec<u16> = (0..bins as u16)
                .filter(|&bin| expected[usize::from(bin)] == EMPTY)
                .collect();
            let low: Vec<u32> = expected.iter().map(|&value| value as u32).collect();
            for level in Level::available() {
                let (mut out, mut open) = (vec![0; bins], vec![0; bins]);
                let left = values_at(level, &mut out, &mut open, &expected);
                prop_assert_eq!(&open[..left], &empty);
                prop_assert_eq!(&out, &low);
            }
        }
    }
}
