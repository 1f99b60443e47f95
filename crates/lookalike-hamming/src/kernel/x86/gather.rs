//! Entries of a table as bits, gathered eight at a time by AVX-512 with VPOPCNTDQ.

use super::super::dense::Dense;
use super::super::{EntryRange, ProbeLocations, ProbeSet, low_ones};
use std::arch::x86_64::*;

/// Probes whose entries are gathered at a time.
const TOGETHER: usize = 32;
/// Entries of a bucket that are gathered; those beyond are compared one by one.
const GATHERED: usize = 4;

/// The entries of all probes in one list, of which eight at a time are gathered and compared: buckets hold one entry on
/// average, and a loop over so few would be mispredicted at every second bucket.
///
/// The table has entries of 1 to 57 bits, and eight bytes of them at least.
#[target_feature(enable = "avx512f,avx512vpopcntdq,avx2,popcnt,bmi1,bmi2")]
pub(super) fn probe_dense_popcnt(
    table: Dense<'_>,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let ProbeSet {
        bucket,
        xor_masks,
        radius,
    } = probes.probes;
    let mut compared = 0;
    let groups = xor_masks
        .chunks(TOGETHER)
        .zip(probes.ranges.chunks(TOGETHER));
    for (xor_masks, ranges) in groups {
        let mut ranks = [0_u32; TOGETHER * GATHERED + 8];
        let mut owners = [0_u8; TOGETHER * GATHERED + 8];
        let mut listed = 0;
        for (at, (&mask, range)) in xor_masks.iter().zip(ranges).enumerate() {
            let Some(left) = radius.checked_sub(mask.count_ones()) else {
                continue;
            };
            let first = range.first;
            compared += u64::from(range.count);
            // All four are written, and those that there are kept.
            // Not by `map`: a closure here has the features of this function, which keep it from being inlined there.
            let (second, third) = (first.wrapping_add(1), first.wrapping_add(2));
            let four = [first, second, third, first.wrapping_add(3)];
            ranks[listed..listed + GATHERED].copy_from_slice(&four);
            owners[listed..listed + GATHERED].copy_from_slice(&[at as u8; GATHERED]);
            listed += range.count.min(GATHERED as u32) as usize;
            if range.count > GATHERED as u32 {
                let rest = EntryRange {
                    first: first + GATHERED as u32,
                    count: range.count - GATHERED as u32,
                };
                table.compare(rest, needle, left, &mut |entry| hit(bucket ^ mask, entry));
            }
        }
        for start in (0..listed).step_by(8) {
            let eight = ranks[start..].first_chunk().unwrap_or(&[0; 8]);
            let (mut near, entries) = near_entries_popcnt(table, eight, needle, radius);
            near &= low_ones(listed - start) as u8;
            while near != 0 {
                let lane = near.trailing_zeros() as usize;
                near &= near - 1;
                let (mask, entry) = (xor_masks[owners[start + lane] as usize], entries[lane]);
                // By now without what the mask costs.
                if (entry ^ needle).count_ones() + mask.count_ones() <= radius {
                    hit(bucket ^ mask, entry);
                }
            }
        }
    }
    compared
}

/// Mask of those of eight entries that are within `radius` of `needle`, and these entries. Ranks beyond the table are taken for its
/// last entry. The table has entries of 1 to 57 bits, and eight bytes of them at least.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn near_entries_popcnt(
    table: Dense<'_>,
    ranks: &[u32; 8],
    needle: u64,
    radius: u32,
) -> (u8, [u64; 8]) {
    let bits = table.entry_bits;
    // Its eight bytes are the last, or before.
    let last = ((table.entries.len() - 8) * 8 / bits).min(u32::MAX as usize);
    // SAFETY: the list is 32 bytes.
    let ranks = unsafe { _mm256_loadu_si256(ranks.as_ptr().cast()) };
    let ranks = _mm512_min_epu64(_mm512_cvtepu32_epi64(ranks), _mm512_set1_epi64(last as i64));
    let places = _mm512_mul_epu32(ranks, _mm512_set1_epi64(bits as i64));
    let shifts = _mm512_and_si512(places, _mm512_set1_epi64(7));
    let bytes = _mm512_srli_epi64::<3>(places);
    // SAFETY: rank <= last, so that the first byte of an entry is no more than eight bytes before the end.
    let found = unsafe { _mm512_i64gather_epi64::<1>(bytes, table.entries.as_ptr().cast()) };
    let kept = _mm512_set1_epi64(low_ones(bits) as i64);
    let entries = _mm512_and_si512(_mm512_srlv_epi64(found, shifts), kept);
    let apart = _mm512_xor_si512(entries, _mm512_set1_epi64(needle as i64));
    let limit = _mm512_set1_epi64(i64::from(radius));
    let near = _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(apart), limit);
    let mut out = [0; 8];
    if near != 0 {
        // SAFETY: the list is 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), entries) };
    }
    (near, out)
}
