//! Marks looked up eight at a time by AVX-512.

use super::super::address_filter::{PAYLOAD_BITS, select_members_portably};
use std::arch::x86_64::*;

/// Items that are looked up together.
const TOGETHER: usize = 8;

/// As [`select_members_portably`]; the number of words is a power of two.
#[target_feature(enable = "avx512f,popcnt,bmi1,bmi2")]
pub(super) fn select_members_avx512<const BLOOM: bool>(
    words: &[u64],
    items: &[u64],
    room: &mut [u32],
) -> usize {
    assert!(words.len().is_power_of_two() && room.len() >= items.len());
    let last = _mm512_set1_epi64(words.len() as i64 - 1);
    let (groups, rest) = items.as_chunks::<TOGETHER>();
    let mut kept = 0;
    for group in groups {
        // SAFETY: a group is 64 bytes.
        let items = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        let places = if BLOOM {
            _mm512_srli_epi64::<{ PAYLOAD_BITS + 18 }>(items)
        } else {
            _mm512_srli_epi64::<{ PAYLOAD_BITS + 6 }>(items)
        };
        let places = _mm512_and_si512(places, last);
        // SAFETY: places are at most the last of the words.
        let found = unsafe { _mm512_i64gather_epi64::<8>(places, words.as_ptr().cast()) };
        let bits = pattern::<BLOOM>(items);
        let set = _mm512_cmpeq_epi64_mask(_mm512_and_si512(found, bits), bits);
        let own = _mm512_and_si512(items, _mm512_set1_epi64((1 << PAYLOAD_BITS) - 1));
        let own = _mm512_cvtepi64_epi32(_mm512_maskz_compress_epi64(set, own));
        // SAFETY: no more is kept than was looked at before, so that eight places of the room are left.
        unsafe { _mm256_storeu_si256(room.as_mut_ptr().add(kept).cast(), own) };
        kept += set.count_ones() as usize;
    }
    kept + select_members_portably::<BLOOM>(words, rest, &mut room[kept..])
}

/// The bits that items have in their words.
#[inline]
#[target_feature(enable = "avx512f")]
fn pattern<const BLOOM: bool>(items: __m512i) -> __m512i {
    let (one, low) = (_mm512_set1_epi64(1), _mm512_set1_epi64(63));
    let first = _mm512_srli_epi64::<PAYLOAD_BITS>(items);
    let bit = _mm512_sllv_epi64(one, _mm512_and_si512(first, low));
    if !BLOOM {
        return bit;
    }
    let second = _mm512_srli_epi64::<{ PAYLOAD_BITS + 6 }>(items);
    let second = _mm512_sllv_epi64(one, _mm512_and_si512(second, low));
    let third = _mm512_srli_epi64::<{ PAYLOAD_BITS + 12 }>(items);
    let third = _mm512_sllv_epi64(one, _mm512_and_si512(third, low));
    _mm512_or_si512(bit, _mm512_or_si512(second, third))
}
