//! The last step of one-permutation hashing: an empty bin takes the value of a full one.
//!
//! Each empty bin asks one donor after another until one is full. For texts of about forty features and 128 bins these are about 340 questions, which
//! cost more than hashing. With AVX-512 and its byte permutations up to 128 bins ask at once: a table of 128 bytes in two registers tells which bins
//! are full, one try of all bins is two lookups in it, and the values are moved once all sources are known.

use super::CpuLevel;
use super::bins::{Bins, EMPTY, MAX_SMALL_BINS};
#[cfg(target_arch = "x86_64")]
use super::level::CpuKind;

/// Donors of all bins in one try; those of unused bins are arbitrary.
pub(crate) type Donors = [u8; MAX_SMALL_BINS];

/// Writes the values of the first bins to `out`: a full bin's own value, and for an empty bin that of its first full donor in `tries`. Returns one
/// bit for each bin that had no full donor; the values of these are arbitrary.
///
/// # Panics
/// Panics if `out` is empty or longer than the number of bins, or if a donor is not one of the bins.
pub(crate) fn densify(out: &mut [u32], bins: &Bins, tries: &[Donors]) -> u128 {
    densify_at(CpuLevel::current(), out, bins, tries)
}

#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls code for instructions that were detected")
)]
fn densify_at(level: CpuLevel, out: &mut [u32], bins: &Bins, tries: &[Donors]) -> u128 {
    assert!((1..=MAX_SMALL_BINS).contains(&out.len()), "1 to 128 bins");
    #[cfg(target_arch = "x86_64")]
    // VBMI is not part of the level, because the first processors with AVX-512 lack it. The standard library caches the answer.
    if level.kind() >= CpuKind::Avx512 && std::is_x86_feature_detected!("avx512vbmi") {
        // SAFETY: this level, and VBMI in addition to it, were detected.
        return unsafe { x86::densify(out, bins, tries) };
    }
    let _ = level;
    one_by_one(out, bins, tries)
}

fn one_by_one(out: &mut [u32], bins: &Bins, tries: &[Donors]) -> u128 {
    out.copy_from_slice(&bins.least[..out.len()]);
    let mut places = [0; MAX_SMALL_BINS];
    let mut left = list_empty(&mut places, &bins.full[..out.len()]);
    for donors in tries {
        left = fill_from_donors(out, &bins.full, &mut places[..left], |bin| {
            donors[bin].into()
        });
    }
    // Bins are below 128 here, so each has a bit.
    places[..left].iter().fold(0, |bits, bin| bits | 1 << bin)
}

/// Lists the empty bins in `places`, ascending, and returns their number.
///
/// # Panics
/// Panics if `places` is shorter than the list, or there are more than 65536 bins.
pub(crate) fn list_empty(places: &mut [u16], full: &[u8]) -> usize {
    let mut count = 0;
    for (bin, &number) in full.iter().enumerate() {
        if number == EMPTY {
            places[count] = bin as u16;
            count += 1;
        }
    }
    count
}

/// Gives each of the bins in `places` the value of its donor, moves those whose donor is also empty to the front of `places`, and returns their
/// number. Whether a donor is empty is as good as random, so the loop has no branch on it.
#[inline(always)]
pub(crate) fn fill_from_donors(
    bins: &mut [u32],
    full: &[u8],
    places: &mut [u16],
    donor: impl Fn(usize) -> usize,
) -> usize {
    let mut left = 0;
    for at in 0..places.len() {
        // The list is rewritten from its front: the write position never overtakes the read position.
        let bin = usize::from(places[at]);
        let donor = donor(bin);
        // A full donor still has its own value, because only bins that were empty at first are written. A value from an empty donor is overwritten by
        // a later try, because the bin stays on the list.
        bins[bin] = bins[donor];
        places[left] = bin as u16;
        left += usize::from(full[donor] == EMPTY);
    }
    left
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Bins, Donors, MAX_SMALL_BINS};

    /// 32-bit values in a register.
    const LANES: usize = 16;
    /// Number of tries between two checks for bins that are left.
    const STRIDE: usize = 4;

    /// A byte for each bin.
    type Table = [__m512i; 2];
    /// A value for each bin.
    type Values = [__m512i; MAX_SMALL_BINS / LANES];

    /// [`super::densify`].
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn densify(out: &mut [u32], bins: &Bins, tries: &[Donors]) -> u128 {
        let full = table(&bins.full);
        // There is at least one bin, so the shift is below 128. Bins after the last one are also empty, and must not count as open.
        let open = empty(full) & u128::MAX >> (MAX_SMALL_BINS - out.len());
        let mut values = load(&bins.least);
        let mut left = open;
        if open != 0 {
            let sources;
            (sources, left) = fill_from_donors(full, open, tries);
            values = take(&values, sources);
        }
        store(out, &values);
        left
    }

    /// Returns one bit for each empty bin: no other byte has its sign bit set.
    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn empty(table: Table) -> u128 {
        let [low, high] = table.map(|bytes| _mm512_movepi8_mask(bytes));
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    #[expect(unsafe_code, reason = "vector loads take pointers")]
    fn table(bytes: &[u8; MAX_SMALL_BINS]) -> Table {
        // SAFETY: half of the bytes fill a register.
        [0, 64].map(|first| unsafe { _mm512_loadu_si512(bytes[first..].as_ptr().cast()) })
    }

    /// Returns the donor of each bin, and those of the `open` bins, which are empty, that have no full donor.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn fill_from_donors(full: Table, open: u128, tries: &[Donors]) -> (Table, u128) {
        // Unused bins ask no donor.
        let beyond = empty(full) & !open;
        let zero = _mm512_setzero_si512();
        let mut sources = [
            _mm512_mask_mov_epi8(full[0], beyond as u64, zero),
            _mm512_mask_mov_epi8(full[1], (beyond >> 64) as u64, zero),
        ];
        let mut left = open;
        let (strides, rest) = tries.as_chunks::<STRIDE>();
        for tries in strides {
            let asked = tries.each_ref().map(|donors| donor_values(full, donors));
            let asked = asked
                .into_iter()
                .rev()
                .reduce(|later, sooner| first(sooner, later));
            sources = first(sources, asked.unwrap_or(sources));
            left = empty(sources);
            if left == 0 {
                return (sources, 0);
            }
        }
        for donors in rest {
            sources = first(sources, donor_values(full, donors));
            left = empty(sources);
        }
        (sources, left)
    }

    /// Returns the answers of the donors of all bins.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn donor_values(full: Table, donors: &Donors) -> Table {
        // A lookup in `full` gives the donor's number if it is full, else EMPTY, so the answer itself is the source.
        table(donors).map(|donors| _mm512_permutex2var_epi8(full[0], donors, full[1]))
    }

    /// Returns the bytes of `one`, replaced by those of `other` where `one` marks a bin as empty.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn first(one: Table, other: Table) -> Table {
        let either = |one, other| _mm512_mask_mov_epi8(one, _mm512_movepi8_mask(one), other);
        [either(one[0], other[0]), either(one[1], other[1])]
    }

    /// Returns the value of each bin's source.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    fn take(values: &Values, sources: Table) -> Values {
        let mut bytes = [0u8; MAX_SMALL_BINS];
        for (half, sources) in bytes.as_chunks_mut::<64>().0.iter_mut().zip(sources) {
            // SAFETY: a half has the 64 bytes of a register.
            unsafe { _mm512_storeu_si512(half.as_mut_ptr().cast(), sources) };
        }
        // Bytes go through memory: sixteen of them are loaded and widened to the sixteen lanes of their bins.
        let mut taken = *values;
        for (taken, sources) in taken.iter_mut().zip(bytes.as_chunks::<LANES>().0) {
            // SAFETY: these are the sixteen bytes that are loaded.
            let sources = _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(sources.as_ptr().cast()) });
            // VPERMT2D uses five bits of an index, for one of 32 values; bits 5 and 6 choose among the four pairs of registers.
            let of = |pair: usize| {
                _mm512_permutex2var_epi32(values[2 * pair], sources, values[2 * pair + 1])
            };
            let bit = |bit| _mm512_test_epi32_mask(sources, _mm512_set1_epi32(bit));
            let low = _mm512_mask_mov_epi32(of(0), bit(32), of(1));
            let high = _mm512_mask_mov_epi32(of(2), bit(32), of(3));
            *taken = _mm512_mask_mov_epi32(low, bit(64), high);
        }
        taken
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    #[expect(unsafe_code, reason = "vector loads take pointers")]
    fn load(least: &[u32; MAX_SMALL_BINS]) -> Values {
        let mut values = [_mm512_setzero_si512(); MAX_SMALL_BINS / LANES];
        for (value, least) in values.iter_mut().zip(least.as_chunks::<LANES>().0) {
            // SAFETY: sixteen values fill a register.
            *value = unsafe { _mm512_loadu_si512(least.as_ptr().cast()) };
        }
        values
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    #[expect(unsafe_code, reason = "vector stores take pointers")]
    fn store(out: &mut [u32], values: &Values) {
        for (out, values) in out.chunks_mut(LANES).zip(values) {
            // A chunk has at least one value, so the shift is below 16.
            let lanes = u16::MAX >> (LANES - out.len());
            // SAFETY: only as many lanes are written as `out` has room for.
            unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), lanes, *values) };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates bins, some of them empty, and donors among them.
    fn table() -> impl Strategy<Value = (Vec<Option<u32>>, Vec<Vec<u8>>)> {
        (1..=MAX_SMALL_BINS, 0.0..=1.0).prop_flat_map(|(bins, full)| {
            let value =
                prop::option::weighted(full, prop_oneof![Just(u32::MAX), Just(0), any::<u32>()]);
            let donors = prop::collection::vec(0..bins as u8, bins);
            (
                prop::collection::vec(value, bins),
                prop::collection::vec(donors, 0..20),
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Compares every level of this machine with one bin after another.
        #[test]
        fn all_levels_agree((bins, donors) in table()) {
            let mut made = Bins { least: [u32::MAX; MAX_SMALL_BINS], full: [EMPTY; MAX_SMALL_BINS] };
            for (bin, value) in bins.iter().enumerate() {
                if let Some(value) = *value {
                    (made.least[bin], made.full[bin]) = (value, bin as u8);
                }
            }
            let tries: Vec<Donors> = donors
                .iter()
                .map(|row| std::array::from_fn(|bin| row.get(bin).copied().unwrap_or(0)))
                .collect();
            let given = |bin: usize| donors.iter().find_map(|row| bins[usize::from(row[bin])]);
            let expected = (0..bins.len()).map(|bin| bins[bin].or_else(|| given(bin)));
            let expected: Vec<_> = expected.collect();
            for level in CpuLevel::available() {
                let mut found = vec![7; bins.len()];
                let left = densify_at(level, &mut found, &made, &tries);
                for (bin, (&found, expected)) in found.iter().zip(&expected).enumerate() {
                    prop_assert_eq!(left >> bin & 1 == 1, expected.is_none());
                    prop_assert!(expected.is_none_or(|expected| found == expected));
                }
                prop_assert_eq!(left.checked_shr(bins.len() as u32).unwrap_or(0), 0);
            }
        }
    }
}
