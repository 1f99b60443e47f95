//! Search of some entries or words for those near a needle.

#[cfg(target_arch = "aarch64")]
use super::arm;
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{KernelLevel, low_ones};

/// Mask of those of the `count <= 64` entries, of `width` bytes at the start of `bytes`, that lie within `radius`
/// of `needle`. An entry is a little-endian number of at most 8 bytes.
///
/// # Panics
///
/// When `bytes` is shorter than the entries, or `count` or `width` is out of range.
pub(in super::super) fn scan_packed(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_packed_at(KernelLevel::detected(), bytes, width, count, needle, radius)
}

/// [`scan_packed`] at a chosen level.
pub(super) fn scan_packed_at(
    level: KernelLevel,
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(count <= 64 && width <= 8 && count * width <= bytes.len());
    match level {
        KernelLevel::Portable => scan_packed_portably(bytes, width, count, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_packed(level, bytes, width, count, needle, radius),
        #[cfg(target_arch = "aarch64")]
        _ => arm::scan_packed(bytes, width, count, needle, radius),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => scan_packed_portably(bytes, width, count, needle, radius),
    }
}

#[inline(always)]
pub(super) fn scan_packed_portably(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    let kept = low_ones(8 * width);
    let mut hits = 0;
    for i in 0..count {
        let entry = match bytes.get(i * width..).and_then(<[u8]>::first_chunk) {
            Some(eight) => u64::from_le_bytes(*eight) & kept,
            None => read_short(&bytes[i * width..(i + 1) * width]),
        };
        hits |= u64::from((entry ^ needle).count_ones() <= radius) << i;
    }
    hits
}

/// A little-endian number of at most eight bytes.
pub(super) fn read_short(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

/// [`scan_packed_portably`] from a place of `bytes` on.
#[inline(always)]
pub(super) fn scan_packed_from(
    bytes: &[u8],
    place: usize,
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_packed_portably(&bytes[place..], width, count, needle, radius)
}

/// [`scan_packed`] for entries that lie together in one cache line, which is loaded once.
pub(in super::super) fn scan_cache_line(
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_cache_line_at(KernelLevel::detected(), line, width, count, needle, radius)
}

pub(super) fn scan_cache_line_at(
    level: KernelLevel,
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(width <= 8 && count * width <= 64);
    match level {
        #[cfg(target_arch = "x86_64")]
        KernelLevel::Avx512 | KernelLevel::Avx512Popcnt if (4..=8).contains(&width) => {
            x86::scan_cache_line(level, line, width, count, needle, radius)
        }
        _ => scan_packed_at(level, line, width, count, needle, radius),
    }
}

/// Mask of those of at most 64 words that lie within `radius` of `needle`.
pub(in super::super) fn scan_words(words: &[u64], needle: u64, radius: u32) -> u64 {
    scan_words_at(KernelLevel::detected(), words, needle, radius)
}

pub(super) fn scan_words_at(level: KernelLevel, words: &[u64], needle: u64, radius: u32) -> u64 {
    assert!(words.len() <= 64);
    match level {
        KernelLevel::Portable => scan_words_portably(words, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_words(level, words, needle, radius),
        #[cfg(target_arch = "aarch64")]
        _ => arm::scan_words(words, needle, radius),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => scan_words_portably(words, needle, radius),
    }
}

#[inline(always)]
pub(super) fn scan_words_portably(words: &[u64], needle: u64, radius: u32) -> u64 {
    let near = words
        .iter()
        .map(|word| u64::from((word ^ needle).count_ones() <= radius));
    near.enumerate().fold(0, |hits, (i, near)| hits | near << i)
}
