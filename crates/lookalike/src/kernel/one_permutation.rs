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
            let mut minima = vec![u64::MAX; bins];
            update(&mut minima, factor, &features);
            prop_assert_eq!(&minima, &expected);
        }
    }
}
