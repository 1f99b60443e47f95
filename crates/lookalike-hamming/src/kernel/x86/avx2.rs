//! The kernels of AVX2.

use std::arch::x86_64::*;

#[target_feature(enable = "avx2")]
fn ones_avx2(x: __m256i) -> __m256i {
    let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    ));
    let nibbles = _mm256_set1_epi8(15);
    let low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibbles));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibbles);
    let sums = _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high));
    _mm256_sad_epu8(sums, _mm256_setzero_si256())
}

/// Mask of those of four lanes that hold at most `limit`.
#[target_feature(enable = "avx2")]
fn within_avx2(apart: __m256i, limit: __m256i) -> u64 {
    let beyond = _mm256_castsi256_pd(_mm256_cmpgt_epi64(apart, limit));
    u64::from(!_mm256_movemask_pd(beyond) as u8 & 15)
}

/// `bytes` holds whole groups of four entries, at most sixteen of them.
#[target_feature(enable = "avx2,popcnt,bmi2")]
pub(super) fn scan_groups_avx2(bytes: &[u8], width: usize, needle: u64, radius: u32) -> u64 {
    let mut order = [0x80_u8; 32];
    for byte in 0..width {
        for (entry, first) in [0, width, 16 - 2 * width, 16 - width]
            .into_iter()
            .enumerate()
        {
            order[8 * entry + byte] = (first + byte) as u8;
        }
    }
    // SAFETY: the table is 32 bytes.
    let order = unsafe { _mm256_loadu_si256(order.as_ptr().cast()) };
    let needles = _mm256_set1_epi64x(needle as i64);
    let limit = _mm256_set1_epi64x(i64::from(radius));
    let mut hits = 0;
    for (i, group) in bytes.chunks_exact(4 * width).enumerate() {
        // SAFETY: a group is 4 * width >= 16 bytes, of which the first and the last 16 are read.
        let (low, high) = unsafe {
            let first = group.as_ptr();
            let last = first.add(4 * width - 16);
            (_mm_loadu_si128(first.cast()), _mm_loadu_si128(last.cast()))
        };
        let entries = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), order);
        let apart = ones_avx2(_mm256_xor_si256(entries, needles));
        hits |= within_avx2(apart, limit) << (4 * i);
    }
    hits
}
