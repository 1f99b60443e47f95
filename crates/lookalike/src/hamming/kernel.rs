//! The machine-dependent kernels of the engine, each with a portable twin of equal results.
//!
//! Everything above calls the safe functions here; which instructions they use is decided once, at
//! the first call, from what the processor offers ([`Level`]).

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "vector loads, prefetch and calls behind run-time detection"
)]
mod x86;

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// AVX2, BMI2 and POPCNT.
    Avx2,
    /// AVX-512 F and BW besides.
    Avx512,
    /// AVX-512 VPOPCNTDQ besides.
    Avx512Popcnt,
}

impl Level {
    /// The best level of this processor, found once.
    pub fn detected() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(detect)
    }

    /// Every level this processor has, for tests that compare them.
    pub fn available() -> impl Iterator<Item = Self> {
        use Level::{Avx2, Avx512, Avx512Popcnt, Portable};
        let all = [Portable, Avx2, Avx512, Avx512Popcnt];
        all.into_iter().filter(|&level| level <= Self::detected())
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    match (avx2, avx512, is_x86_feature_detected!("avx512vpopcntdq")) {
        (false, _, _) => Level::Portable,
        (true, false, _) => Level::Avx2,
        (true, true, false) => Level::Avx512,
        (true, true, true) => Level::Avx512Popcnt,
    }
}

/// The `count <= 64` lowest bits.
pub(super) fn low_ones(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// The bits of `word` at the set positions of `mask`, moved together to the low end (PEXT).
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if Level::detected() != Level::Portable {
        return x86::extract(word, mask);
    }
    extract_portably(word, mask)
}

/// The inverse of [`extract`]: low bits spread to the set positions of `mask` (PDEP).
pub(super) fn deposit(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if Level::detected() != Level::Portable {
        return x86::deposit(word, mask);
    }
    deposit_portably(word, mask)
}

/// The runs of ones of a mask, from low to high: where each starts, how long it is, and how many
/// ones lie below it.
fn runs(mut mask: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut below = 0;
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        let length = mask.checked_shr(start)?.trailing_ones();
        mask &= !(low_ones(length as usize) << start);
        below += length;
        Some((start, length, below - length))
    })
}

fn extract_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> start & low_ones(length as usize)) << below
    })
}

fn deposit_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> below & low_ones(length as usize)) << start
    })
}

/// Which of the `count <= 64` entries of `width` bytes at the start of `bytes` lie within `radius`
/// of `needle`. An entry is a little-endian number of at most 8 bytes.
///
/// # Panics
///
/// When `bytes` is shorter than the entries, or `count` or `width` is out of range.
pub(super) fn scan_packed(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_packed_at(Level::detected(), bytes, width, count, needle, radius)
}

/// [`scan_packed`] at a chosen level.
fn scan_packed_at(
    level: Level,
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(count <= 64 && width <= 8 && count * width <= bytes.len());
    match level {
        Level::Portable => scan_packed_portably(bytes, width, count, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_packed(level, bytes, width, count, needle, radius),
        #[cfg(not(target_arch = "x86_64"))]
        _ => scan_packed_portably(bytes, width, count, needle, radius),
    }
}

#[inline(always)]
fn scan_packed_portably(bytes: &[u8], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
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

/// A little-endian number whose eight bytes would reach beyond the end of the data.
#[cold]
fn read_short(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

/// [`scan_packed`] for entries that lie together in one cache line, which is loaded once.
pub(super) fn scan_line(
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_line_at(Level::detected(), line, width, count, needle, radius)
}

fn scan_line_at(
    level: Level,
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(width <= 8 && count * width <= 64);
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Avx512Popcnt if (4..=8).contains(&width) => {
            x86::scan_line(level, line, width, count, needle, radius)
        }
        _ => scan_packed_at(level, line, width, count, needle, radius),
    }
}

/// Which of at most 64 words lie within `radius` of `needle`.
pub(super) fn scan_words(words: &[u64], needle: u64, radius: u32) -> u64 {
    scan_words_at(Level::detected(), words, needle, radius)
}

fn scan_words_at(level: Level, words: &[u64], needle: u64, radius: u32) -> u64 {
    assert!(words.len() <= 64);
    match level {
        Level::Portable => scan_words_portably(words, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_words(level, words, needle, radius),
        #[cfg(not(target_arch = "x86_64"))]
        _ => scan_words_portably(words, needle, radius),
    }
}

#[inline(always)]
fn scan_words_portably(words: &[u64], needle: u64, radius: u32) -> u64 {
    let near = words
        .iter()
        .map(|word| u64::from((word ^ needle).count_ones() <= radius));
    near.enumerate().fold(0, |hits, (i, near)| hits | near << i)
}

/// All pairs `(i, j)`, `i < j`, of `words` within `radius`, appended to `pairs`.
pub(super) fn close_pairs(words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    close_pairs_at(Level::detected(), words, radius, pairs);
}

fn close_pairs_at(level: Level, words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    match level {
        Level::Portable => close_pairs_portably(words, radius, pairs),
        #[cfg(target_arch = "x86_64")]
        _ => x86::close_pairs(level, words, radius, pairs),
        #[cfg(not(target_arch = "x86_64"))]
        _ => close_pairs_portably(words, radius, pairs),
    }
}

#[inline(always)]
fn close_pairs_portably(words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    for (i, a) in words.iter().enumerate() {
        for (j, b) in words.iter().enumerate().skip(i + 1) {
            if (a ^ b).count_ones() <= radius {
                pairs.push((i as u32, j as u32));
            }
        }
    }
}

/// Asks for the cache line that holds `items[index]`; does nothing when there is no such item.
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(items, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Asks the system to back a large allocation with huge pages: a random probe beyond 1 GiB costs
/// twice as much without. A hint only: results never depend on it.
pub(super) fn ask_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    x86::ask_huge_pages(items);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let _ = items;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extract_and_deposit_equal_their_twins(word: u64, a: u64, b: u64) {
            for mask in [a, a & b, a | b, a & b & a.rotate_left(17), 0, u64::MAX, 1 << 63] {
                prop_assert_eq!(extract(word, mask), extract_portably(word, mask));
                prop_assert_eq!(deposit(word, mask), deposit_portably(word, mask));
                prop_assert_eq!(deposit_portably(extract_portably(word, mask), mask), word & mask);
            }
        }

        #[test]
        fn scans_equal_the_obvious_scan(
            bytes in proptest::collection::vec(0_u8..4, 64 * 8),
            width in 0_usize..=8,
            count in 0_usize..=64,
            radius in 0_u32..20,
            tail in 0_usize..20,
        ) {
            let end = (count * width + tail).min(bytes.len());
            let needle = 0x0102_0300_0301_0203 & low_ones(8 * width);
            let mut expected = 0;
            for i in 0..count {
                let entry = read_short(&bytes[i * width..(i + 1) * width]);
                if (entry ^ needle).count_ones() <= radius {
                    expected |= 1 << i;
                }
            }
            let line: &[u8; 64] = bytes.first_chunk().expect("512 bytes");
            let in_line = 64_usize.checked_div(width).unwrap_or(64).min(count);
            for level in Level::available() {
                let found = scan_packed_at(level, &bytes[..end], width, count, needle, radius);
                prop_assert_eq!(found, expected, "{:?}", level);
                let found = scan_line_at(level, line, width, in_line, needle, radius);
                prop_assert_eq!(found, expected & low_ones(in_line), "{:?}", level);
            }
        }

        #[test]
        fn word_kernels_equal_their_twins(
            mut words in proptest::collection::vec(any::<u64>(), 0..=64),
            radius in 0_u32..=40,
        ) {
            for i in (1..words.len()).step_by(3) {
                words[i] = words[i - 1] ^ (words[i] & words[i] << 1 & words[i] << 2 & words[i] << 3);
            }
            let needle = words.first().copied().unwrap_or(5);
            let expected = scan_words_portably(&words, needle, radius);
            let mut expected_pairs = Vec::new();
            close_pairs_portably(&words, radius, &mut expected_pairs);
            for level in Level::available() {
                prop_assert_eq!(scan_words_at(level, &words, needle, radius), expected);
                let mut pairs = Vec::new();
                close_pairs_at(level, &words, radius, &mut pairs);
                prop_assert_eq!(&pairs, &expected_pairs, "{:?}", level);
            }
        }
    }

    #[test]
    fn hints_accept_anything() {
        prefetch(&[0_u8; 3], 1_000);
        ask_huge_pages(&mut Vec::<u64>::new());
        let mut large = vec![7_u8; 5 << 20];
        ask_huge_pages(&mut large);
        assert!(large.iter().all(|&byte| byte == 7));
    }
}
