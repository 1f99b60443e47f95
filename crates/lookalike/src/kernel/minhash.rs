//! Min-hash: minima of many linear functions over many values.
//!
//! The functions are in rows of 16. A kernel holds the minima of up to eight rows in registers and iterates over the values; a value takes one
//! broadcast load, and a multiplication, an addition and a minimum for each row.

use super::{CpuLevel, versions};

/// Number of functions in a row.
pub(crate) const ROW: usize = 16;
/// Factors, offsets or minima of the functions of a row.
pub(crate) type FunctionRow = [u32; ROW];
/// Number of rows whose minima are held in registers.
pub(crate) const ROWS: usize = 8;
/// Number of values that are folded at once.
const BLOCK: usize = 512;

/// Computes `minima = min(minima, factors * x + offsets)` in every place, for the folds x of `features` and up to [`ROWS`] rows.
pub(crate) fn update(
    minima: &mut [FunctionRow],
    factors: &[FunctionRow],
    offsets: &[FunctionRow],
    features: &[u64],
) {
    let level = CpuLevel::current();
    let mut values = [0; BLOCK];
    // Fold once for all rows; 2 KiB of values stay in the first-level cache while the rows iterate over them.
    for features in features.chunks(BLOCK) {
        let values = &mut values[..features.len()];
        for (value, feature) in values.iter_mut().zip(features) {
            // 32 bits, because a vector has sixteen such lanes, but only eight of 64 bits.
            *value = fold(*feature);
        }
        lower(level, minima, factors, offsets, values);
    }
}

/// Returns the 32 bits of a feature that the functions see: both halves, XORed.
#[inline(always)]
pub(crate) const fn fold(feature: u64) -> u32 {
    (feature >> 32) as u32 ^ feature as u32
}

versions! {
    /// Updates up to [`ROWS`] rows.
    fn lower(minima: &mut [FunctionRow], factors: &[FunctionRow], offsets: &[FunctionRow], values: &[u32]) {
        portable: lower_portable, avx2: lower_portable, avx512: lower_avx512,
    }
}

#[inline(always)]
fn lower_portable(
    minima: &mut [FunctionRow],
    factors: &[FunctionRow],
    offsets: &[FunctionRow],
    values: &[u32],
) {
    for ((minima, factors), offsets) in minima.iter_mut().zip(factors).zip(offsets) {
        // A copy, which can stay in registers during the loop over the values.
        let mut row = *minima;
        for &value in values {
            // Sixteen lanes with a constant bound, which the compiler vectorises.
            for lane in 0..ROW {
                let hash = factors[lane]
                    .wrapping_mul(value)
                    .wrapping_add(offsets[lane]);
                row[lane] = row[lane].min(hash);
            }
        }
        *minima = row;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "vector instructions")]
fn lower_avx512(
    minima: &mut [FunctionRow],
    factors: &[FunctionRow],
    offsets: &[FunctionRow],
    values: &[u32],
) {
    // SAFETY: this body is only named by the version for AVX-512.
    unsafe {
        // A constant number of rows lets the compiler keep the arrays of the loop in registers.
        match minima.len() {
            1 => x86::lower::<1>(minima, factors, offsets, values),
            2 => x86::lower::<2>(minima, factors, offsets, values),
            3 => x86::lower::<3>(minima, factors, offsets, values),
            4 => x86::lower::<4>(minima, factors, offsets, values),
            5 => x86::lower::<5>(minima, factors, offsets, values),
            6 => x86::lower::<6>(minima, factors, offsets, values),
            7 => x86::lower::<7>(minima, factors, offsets, values),
            // Eight, because no caller has more than `ROWS`.
            _ => x86::lower::<8>(minima, factors, offsets, values),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::FunctionRow;

    /// Updates `R` rows, whose minima stay in registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    pub(super) fn lower<const R: usize>(
        minima: &mut [FunctionRow],
        factors: &[FunctionRow],
        offsets: &[FunctionRow],
        values: &[u32],
    ) {
        // SAFETY: a row has the 64 bytes of the vector.
        let load = |row: &FunctionRow| unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
        // Eight rows take 24 of the 32 registers for minima, factors and offsets.
        let mut lowest: [__m512i; R] = std::array::from_fn(|row| load(&minima[row]));
        let factors: [__m512i; R] = std::array::from_fn(|row| load(&factors[row]));
        let offsets: [__m512i; R] = std::array::from_fn(|row| load(&offsets[row]));
        for &value in values {
            let value = _mm512_set1_epi32(value as i32);
            // Rows are independent: side by side they hide the ten cycles of VPMULLD.
            for row in 0..R {
                let product = _mm512_mullo_epi32(factors[row], value);
                let hash = _mm512_add_epi32(product, offsets[row]);
                lowest[row] = _mm512_min_epu32(lowest[row], hash);
            }
        }
        for (row, lowest) in minima.iter_mut().zip(lowest) {
            // SAFETY: as for the loads.
            unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), lowest) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix64;

    fn rows(count: usize, state: &mut u64) -> Vec<FunctionRow> {
        (0..count)
            .map(|_| [(); ROW].map(|()| splitmix64(state) as u32))
            .collect()
    }

    #[test]
    fn every_level_takes_the_minimum_of_each_function() {
        let mut state = 5;
        for count in [1, 2, 3, 4, 5, 6, 7, 8] {
            let (factors, offsets) = (rows(count, &mut state), rows(count, &mut state));
            for length in [0usize, 1, 2, 7, 100] {
                let values: Vec<u32> = (0..length).map(|_| splitmix64(&mut state) as u32).collect();
                let minimum = |row: usize, lane: usize| {
                    let (a, b) = (factors[row][lane], offsets[row][lane]);
                    values
                        .iter()
                        .map(|&x| a.wrapping_mul(x).wrapping_add(b))
                        .min()
                };
                for level in CpuLevel::available() {
                    let mut minima = vec![[u32::MAX; ROW]; count];
                    lower(level, &mut minima, &factors, &offsets, &values);
                    for (row, lane) in (0..count).flat_map(|row| (0..ROW).map(move |l| (row, l))) {
                        let expected = minimum(row, lane).unwrap_or(u32::MAX);
                        assert_eq!(minima[row][lane], expected, "{count} rows, {level:?}");
                    }
                }
            }
        }
    }
}
