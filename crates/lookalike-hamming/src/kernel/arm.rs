//! The kernels for aarch64, with NEON. Each function here equals its portable twin in the parent module.
//!
//! NEON counts the ones of bytes. The counts of sixteen 64-bit words are brought together by pairwise
//! additions, eight bytes to one in three rounds, so that sixteen words end as one vector of sixteen
//! counts, and one comparison judges them all.

use super::scan::read_short;
use super::{each_group, low_ones};
use std::arch::aarch64::*;

/// Words that are judged together.
const GROUP: usize = 16;

/// Mask of those of sixteen words, two a vector, that have at most `radius` ones: bit i for word i.
#[target_feature(enable = "neon")]
fn within(words: [uint64x2_t; GROUP / 2], radius: u32) -> u64 {
    let [a, b, c, d, e, f, g, h] = words.map(|pair| vcntq_u8(vreinterpretq_u8_u64(pair)));
    let (ab, cd, ef, gh) = (
        vpaddq_u8(a, b),
        vpaddq_u8(c, d),
        vpaddq_u8(e, f),
        vpaddq_u8(g, h),
    );
    let counts = vpaddq_u8(vpaddq_u8(ab, cd), vpaddq_u8(ef, gh));
    let near = vcleq_u8(counts, vdupq_n_u8(radius.min(64) as u8));
    bits(near)
}

/// One bit of each byte that is all ones, the first byte lowest.
#[target_feature(enable = "neon")]
fn bits(bytes: uint8x16_t) -> u64 {
    let places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let kept = vandq_u8(bytes, places);
    let low = vaddv_u8(vget_low_u8(kept));
    let high = vaddv_u8(vget_high_u8(kept));
    u64::from(low) | u64::from(high) << 8
}

/// Mask of those of sixteen words that lie within `radius` of `needle`.
#[target_feature(enable = "neon")]
fn scan_group(words: &[u64; GROUP], needle: u64, radius: u32) -> u64 {
    let needles = vdupq_n_u64(needle);
    // SAFETY: a pair at an even place below sixteen lies within the group.
    let pair = |at: usize| unsafe { vld1q_u64(words.as_ptr().add(2 * at)) };
    within(
        std::array::from_fn(|at| veorq_u64(pair(at), needles)),
        radius,
    )
}

/// See [`super::scan_words`].
pub(super) fn scan_words(words: &[u64], needle: u64, radius: u32) -> u64 {
    let (groups, rest) = words.as_chunks::<GROUP>();
    let mut hits = 0;
    for (at, group) in groups.iter().enumerate() {
        // SAFETY: NEON is part of aarch64.
        hits |= unsafe { scan_group(group, needle, radius) } << (GROUP * at);
    }
    if !rest.is_empty() {
        let mut last = [0; GROUP];
        last[..rest.len()].copy_from_slice(rest);
        // SAFETY: as above.
        let near = unsafe { scan_group(&last, needle, radius) };
        hits |= (near & low_ones(rest.len())) << (GROUP * groups.len());
    }
    hits
}

/// See [`super::close_pairs`].
pub(super) fn close_pairs(
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    each_group(words, start, ends, most, |group| {
        for (i, &needle) in group.iter().enumerate() {
            for later in group[i + 1..].chunks(64) {
                let mut hits = scan_words(later, needle, radius);
                while hits != 0 {
                    pairs.push((needle, later[hits.trailing_zeros() as usize]));
                    hits &= hits - 1;
                }
            }
        }
    });
}

/// See [`super::scan_packed`].
pub(super) fn scan_packed(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    let mut hits = 0;
    let mut words = [0; GROUP];
    for first in (0..count).step_by(GROUP) {
        let size = GROUP.min(count - first);
        unpack(&bytes[first * width..], width, &mut words[..size]);
        // SAFETY: NEON is part of aarch64.
        let near = unsafe { scan_group(&words, needle, radius) };
        hits |= (near & low_ones(size)) << first;
    }
    hits
}

/// Entries of `width` bytes as words.
fn unpack(bytes: &[u8], width: usize, words: &mut [u64]) {
    let kept = low_ones(8 * width);
    for (at, word) in words.iter_mut().enumerate() {
        *word = match bytes.get(at * width..).and_then(<[u8]>::first_chunk) {
            Some(eight) => u64::from_le_bytes(*eight) & kept,
            None => read_short(&bytes[at * width..(at + 1) * width]),
        };
    }
}
