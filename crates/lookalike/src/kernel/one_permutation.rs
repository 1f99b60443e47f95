//! One-permutation hashing: the smallest hash of the features in each bin.
//!
//! Vectors of features are hashed at once, which leaves the value and the place of each in one word. Lowering the bins is then a load, a comparison
//! and two stores for each word. Bins that stay empty are filled in [`densify`](super::densify).

use super::bins::{Bins, EMPTY, HIGHEST, MAX_SMALL_BINS};
use super::densify::{Donors, densify};
use super::{CpuLevel, versions};
use crate::hash::avalanche;

/// Value and place of a feature.
type BinWord = [u32; 2];
/// Number of features that are hashed at once.
const BLOCK: usize = 32;
/// The bins that [`small_signature`] leaves empty.
pub(crate) struct Open {
    /// The empty bins, ascending.
    pub(crate) places: Vec<u16>,
    /// [`Bins::full`] of the bins in use.
    pub(crate) full: Vec<u8>,
}

/// Writes the values of the bins of `features` to `out`, for an odd `factor`; see [`OnePermutation`](crate::sketch::OnePermutation). An empty bin
/// takes the value of its first full donor in `tries`. Returns the bins that have none, if there are any.
///
/// # Panics
/// Panics if there are no bins or more than [`MAX_SMALL_BINS`], or if a donor is not one of them.
pub(crate) fn small_signature(
    out: &mut [u32],
    factor: u64,
    features: &[u64],
    tries: &[Donors],
) -> Option<Open> {
    small_signature_at(CpuLevel::current(), out, factor, features, tries)
}

versions! {
    fn small_signature_at(out: &mut [u32], factor: u64, features: &[u64], tries: &[Donors]) -> Option<Open> {
        portable: small_signature_with::<false>, avx2: small_signature_with::<false>, avx512: small_signature_with::<true>,
    }
}

#[inline(always)]
fn small_signature_with<const AVX512: bool>(
    out: &mut [u32],
    factor: u64,
    features: &[u64],
    tries: &[Donors],
) -> Option<Open> {
    let mut bins = Bins {
        least: [HIGHEST; MAX_SMALL_BINS],
        full: [EMPTY; MAX_SMALL_BINS],
    };
    let (least, full) = (&mut bins.least[..out.len()], &mut bins.full[..out.len()]);
    lower::<AVX512>(least, full, factor, features);
    // Bins beyond `out` stay empty, and no donor is one of them.
    let left = densify(out, &bins, tries);
    (left != 0).then(|| open(left, &bins.full[..out.len()]))
}

#[cold]
fn open(left: u128, full: &[u8]) -> Open {
    Open {
        places: (0..128).filter(|&bin| left >> bin & 1 == 1).collect(),
        full: full.to_owned(),
    }
}

/// Lowers any number of bins to the values of the features that fall into them, and writes the numbers of these bins, modulo 128, to `full`.
/// Otherwise like [`small_signature`], without donors.
///
/// # Panics
/// Panics if the length of `full` is not the number of bins.
pub(crate) fn update(least: &mut [u32], full: &mut [u8], factor: u64, features: &[u64]) {
    assert_eq!(least.len(), full.len(), "a byte a bin");
    update_at(CpuLevel::current(), least, full, factor, features);
}

versions! {
    fn update_at(least: &mut [u32], full: &mut [u8], factor: u64, features: &[u64]) {
        portable: lower::<false>, avx2: lower::<false>, avx512: lower::<true>,
    }
}

#[inline(always)]
fn lower<const AVX512: bool>(least: &mut [u32], full: &mut [u8], factor: u64, features: &[u64]) {
    let mut words = [[0; 2]; BLOCK];
    for features in features.chunks(BLOCK) {
        place::<AVX512>(&mut words, features, factor, least.len() as u64);
        for &[value, place] in &words[..features.len()] {
            // Store whether or not the bin is lowered: a branch on it would be mispredicted while bins fill. Two consecutive features of one bin wait
            // for each other through memory (store forwarding, about five cycles), which is rare with as many bins as features.
            let bin = place as usize;
            least[bin] = least[bin].min(value);
            full[bin] = place as u8 & !EMPTY;
        }
    }
}

/// Writes the value and the place of up to [`BLOCK`] features to the words, given a factor and a number of bins.
#[inline(always)]
fn place<const AVX512: bool>(
    words: &mut [BinWord; BLOCK],
    features: &[u64],
    factor: u64,
    bins: u64,
) {
    #[cfg(target_arch = "x86_64")]
    if AVX512 {
        return place_avx512(words, features, factor, bins);
    }
    for (word, feature) in words.iter_mut().zip(features) {
        let hash = avalanche(feature.wrapping_mul(factor));
        // A multiplication and a shift map 32 bits to the bins without the division of a remainder (Lemire, "Fast random integer generation in an
        // interval", 2019).
        *word = [hash as u32, (((hash >> 32) * bins) >> 32) as u32];
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "vector instructions")]
fn place_avx512(words: &mut [BinWord; BLOCK], features: &[u64], factor: u64, bins: u64) {
    // SAFETY: only called where `AVX512` is true, which only bodies that are compiled for AVX-512 say.
    unsafe { x86::place(words, features, factor, bins) };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, BinWord};
    use crate::hash::AVALANCHE;

    /// Words in a register.
    const LANES: usize = 8;

    /// [`super::place`] in whole registers: by itself the compiler uses half of them for some processors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    pub(super) fn place(words: &mut [BinWord; BLOCK], features: &[u64], factor: u64, bins: u64) {
        let (whole, rest) = features.as_chunks::<LANES>();
        let mut words = words.as_chunks_mut::<LANES>().0.iter_mut();
        for (features, words) in whole.iter().zip(&mut words) {
            // SAFETY: eight features fill a register.
            let features = unsafe { _mm512_loadu_si512(features.as_ptr().cast()) };
            let placed = placed(features, factor, bins);
            // SAFETY: as for the load.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), placed) };
        }
        if let Some(words) = words.next().filter(|_| !rest.is_empty()) {
            // All eight words are written: there is room for a whole block, and the words after the features are not read.
            let lanes = (1 << rest.len()) - 1;
            // SAFETY: only as many features are read as there are.
            let features = unsafe { _mm512_maskz_loadu_epi64(lanes, rest.as_ptr().cast()) };
            let placed = placed(features, factor, bins);
            // SAFETY: eight words fill a register.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), placed) };
        }
    }

    /// Returns the value and the place of each feature.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn placed(features: __m512i, factor: u64, bins: u64) -> __m512i {
        let hash = _mm512_mullo_epi64(features, _mm512_set1_epi64(factor as i64));
        let hash = avalanche(hash);
        // A shuffle, not a shift: a shift would tell the compiler that the high halves are zero, and it would multiply in 64 bits, at three times the
        // cost.
        let high = _mm512_shuffle_epi32::<0b11_11_01_01>(hash);
        let place = _mm512_mul_epu32(high, _mm512_set1_epi64(bins as i64));
        // The high halves are places, the low ones values.
        _mm512_mask_mov_epi32(hash, 0xAAAA, place)
    }

    /// [`crate::hash::avalanche`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn avalanche(hash: __m512i) -> __m512i {
        let [first, second] = AVALANCHE.map(|factor| _mm512_set1_epi64(factor as i64));
        let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<33>(hash));
        let hash = _mm512_mullo_epi64(hash, first);
        let hash = _mm512_xor_si512(hash, _mm512_srli_epi64::<29>(hash));
        let hash = _mm512_mullo_epi64(hash, second);
        _mm512_xor_si512(hash, _mm512_srli_epi64::<32>(hash))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares every level of this machine with one feature after another.
        #[test]
        fn all_levels_agree(
            features in prop::collection::vec(any::<u64>(), 0..600),
            factor in any::<u64>(),
            count in 1..300_usize,
        ) {
            let (mut least, mut full) = (vec![HIGHEST; count], vec![EMPTY; count]);
            for feature in &features {
                let hash = avalanche(feature.wrapping_mul(factor));
                let at = (((hash >> 32) * count as u64) >> 32) as usize;
                least[at] = least[at].min(hash as u32);
                full[at] = (at % 128) as u8;
            }
            for level in CpuLevel::available() {
                let (mut found, mut numbers) = (vec![HIGHEST; count], vec![EMPTY; count]);
                update_at(level, &mut found, &mut numbers, factor, &features);
                prop_assert_eq!((&found, &numbers), (&least, &full));
                if count <= MAX_SMALL_BINS {
                    let mut out = vec![7; count];
                    let open = small_signature_at(level, &mut out, factor, &features, &[]);
                    let (places, numbers) = open.map_or_else(Default::default, |open| (open.places, open.full));
                    let empty = (0..count as u16).filter(|&bin| full[usize::from(bin)] == EMPTY);
                    prop_assert_eq!(&places, &empty.collect::<Vec<_>>());
                    prop_assert!(places.is_empty() || numbers == full);
                    prop_assert!((0..count).all(|bin| full[bin] == EMPTY || out[bin] == least[bin]));
                }
            }
        }
    }
}
