//! The kernels of AVX-512, once for each way to count ones: by VPOPCNTDQ, and by table look-up.

use super::super::probe::{scan_bucket, visit_cache_line};
use super::super::scan::{read_short, scan_packed_from};
use super::super::single_probe::{self, Found, ProbeStages, SingleProbeTable};
use super::super::{BucketVisitor, CacheLine, ProbeLocations, ProbeSet, WINDOW, low_ones};
use std::arch::x86_64::*;

/// Shuffles that spread eight packed entries over the 64-bit lanes of a vector: first four dwords for each
/// 128-bit lane, which then hold the bytes of two entries, then those bytes in place.
struct Spread {
    dwords: [u32; 16],
    bytes: [u8; 64],
}

impl Spread {
    /// `at[lane]` is the position in the loaded vector of the first byte of entry `2 * lane`.
    const fn new(width: usize, at: [usize; 4]) -> Self {
        let mut spread = Self {
            dwords: [0; 16],
            bytes: [0x80; 64],
        };
        let mut lane = 0;
        while lane < 4 {
            let mut i = 0;
            while i < 4 {
                spread.dwords[4 * lane + i] = (at[lane] / 4 + i) as u32 & 15;
                i += 1;
            }
            let mut byte = 0;
            while byte < width {
                let from = at[lane] % 4 + byte;
                spread.bytes[16 * lane + byte] = from as u8;
                spread.bytes[16 * lane + 8 + byte] = (from + width) as u8;
                byte += 1;
            }
            lane += 1;
        }
        spread
    }

    /// For eight entries loaded as their first and their last 32 bytes.
    const fn of_group(width: usize) -> Self {
        let mut at = [0; 4];
        let mut lane = 0;
        while lane < 4 {
            let first = 2 * width * lane;
            let in_low_half = first + 2 * width <= 32;
            at[lane] = if in_low_half {
                first
            } else {
                first + 64 - 8 * width
            };
            lane += 1;
        }
        Self::new(width, at)
    }

    /// For the entries `8 * group..` of one line.
    const fn of_line(width: usize, group: usize) -> Self {
        let first = 8 * width * group;
        Self::new(
            width,
            [
                first,
                first + 2 * width,
                first + 4 * width,
                first + 6 * width,
            ],
        )
    }
}

/// By width less four.
static GROUP_SPREADS: [Spread; 5] = [
    Spread::of_group(4),
    Spread::of_group(5),
    Spread::of_group(6),
    Spread::of_group(7),
    Spread::of_group(8),
];

/// By width less four, and group.
static LINE_SPREADS: [[Spread; 2]; 5] = [
    [Spread::of_line(4, 0), Spread::of_line(4, 1)],
    [Spread::of_line(5, 0), Spread::of_line(5, 1)],
    [Spread::of_line(6, 0), Spread::of_line(6, 1)],
    [Spread::of_line(7, 0), Spread::of_line(7, 1)],
    [Spread::of_line(8, 0), Spread::of_line(8, 1)],
];

#[target_feature(enable = "avx512f,avx512bw")]
fn spread(loaded: __m512i, how: &Spread) -> __m512i {
    // SAFETY: both tables are 64 bytes.
    let (dwords, bytes) = unsafe {
        (
            _mm512_loadu_si512(how.dwords.as_ptr().cast()),
            _mm512_loadu_si512(how.bytes.as_ptr().cast()),
        )
    };
    _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, loaded), bytes)
}

/// Ones in each 64-bit lane by table look-up of nibbles, for processors without VPOPCNTDQ.
#[target_feature(enable = "avx512f,avx512bw")]
fn ones_by_nibbles(x: __m512i) -> __m512i {
    let table = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    ));
    let nibbles = _mm512_set1_epi8(15);
    let low = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibbles));
    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(x), nibbles);
    let sums = _mm512_add_epi8(low, _mm512_shuffle_epi8(table, high));
    _mm512_sad_epu8(sums, _mm512_setzero_si512())
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn ones_by_instruction(x: __m512i) -> __m512i {
    _mm512_popcnt_epi64(x)
}

/// Entries of a vector.
const GROUP: usize = 8;

/// Entries that `scan_run` reads of so many: whole groups.
fn read_entries(count: usize) -> usize {
    count.max(1).next_multiple_of(GROUP)
}

/// Visits the entries of a bucket, which begins at byte `start`, that `near` has a bit for.
#[inline]
fn visit_packed(
    entries: &[u8],
    start: usize,
    width: usize,
    mut near: u64,
    hit: &mut impl FnMut(u64),
) {
    while near != 0 {
        let at = start + near.trailing_zeros() as usize * width;
        hit(read_short(&entries[at..at + width]));
        near &= near - 1;
    }
}

/// The AVX-512 kernels once for each way to count ones.
macro_rules! avx512_kernels {
    ($features:literal, $ones:ident, $group:ident, $groups:ident, $run:ident, $packed:ident, $line:ident, $lines:ident, $words:ident, $pairs:ident, $search:ident) => {
        /// Mask of those of the eight entries at the start of `bytes` that are near.
        #[inline]
        #[target_feature(enable = $features)]
        fn $group(bytes: &[u8], width: usize, needle: u64, radius: u32) -> u64 {
            let group = &bytes[..GROUP * width];
            // SAFETY: a group is 8 * width >= 32 bytes, of which the first and the last 32 are read.
            let (low, high) = unsafe {
                let first = group.as_ptr();
                let last = first.add(GROUP * width - 32);
                (
                    _mm256_loadu_si256(first.cast()),
                    _mm256_loadu_si256(last.cast()),
                )
            };
            let loaded = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let needles = _mm512_set1_epi64(needle as i64);
            let limit = _mm512_set1_epi64(i64::from(radius));
            let spread = spread(loaded, &GROUP_SPREADS[width - 4]);
            let apart = $ones(_mm512_xor_si512(spread, needles));
            u64::from(_mm512_cmple_epu64_mask(apart, limit))
        }

        /// `bytes` holds whole groups of eight entries, at most eight of them.
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn $groups(bytes: &[u8], width: usize, needle: u64, radius: u32) -> u64 {
            let mut hits = 0;
            // Not by `fold`: a closure here has the features of this function, which keep it from being inlined there.
            for (at, group) in bytes.chunks_exact(GROUP * width).enumerate() {
                hits |= $group(group, width, needle, radius) << (GROUP * at);
            }
            hits
        }

        /// Mask of those of at most 64 entries that are near; `bytes` holds [`read_entries`] of them.
        ///
        /// Two groups are compared even where one would do, which is then compared again: how many a bucket has is not
        /// known beforehand, and a wrong guess costs more, but memory beyond the bucket is not asked for.
        #[inline]
        #[target_feature(enable = $features)]
        fn $run(bytes: &[u8], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
            let second = if count > GROUP { GROUP * width } else { 0 };
            let mut hits = $group(bytes, width, needle, radius)
                | $group(&bytes[second..], width, needle, radius) << GROUP;
            let mut at = 2 * GROUP;
            while at < count {
                hits |= $group(&bytes[at * width..], width, needle, radius) << at;
                at += GROUP;
            }
            hits & low_ones(count)
        }

        /// Entries are of 4 to 8 bytes.
        #[target_feature(enable = $features)]
        pub(super) fn $packed(
            entries: &[u8],
            width: usize,
            probes: ProbeLocations<'_>,
            needle: u64,
            hit: &mut dyn FnMut(u32, u64),
        ) -> u64 {
            let mut compared = 0;
            for (bucket, left, range) in probes.each() {
                compared += u64::from(range.count);
                let (start, count) = (range.first as usize * width, range.count as usize);
                let mut hit = |entry| hit(bucket, entry);
                match entries.get(start..start + read_entries(count) * width) {
                    Some(bytes) if count <= 64 => {
                        let near = $run(bytes, width, count, needle, left);
                        visit_packed(entries, start, width, near, &mut hit);
                    }
                    _ => scan_bucket(entries, width, range, needle, left, &mut hit),
                }
            }
            compared
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn $line(
            line: &[u8; 64],
            width: usize,
            count: usize,
            needle: u64,
            radius: u32,
        ) -> u64 {
            let needles = _mm512_set1_epi64(needle as i64);
            let limit = _mm512_set1_epi64(i64::from(radius));
            // SAFETY: a line is 64 bytes.
            let loaded = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
            let mut hits = 0;
            for (group, how) in LINE_SPREADS[width - 4].iter().enumerate() {
                let apart = $ones(_mm512_xor_si512(spread(loaded, how), needles));
                hits |= u64::from(_mm512_cmple_epu64_mask(apart, limit)) << (8 * group);
            }
            hits & low_ones(count)
        }

        #[target_feature(enable = $features)]
        pub(super) fn $lines(
            lines: &[CacheLine],
            (width, capacity): (usize, u32),
            probes: ProbeSet<'_>,
            needle: u64,
            visitor: &mut dyn BucketVisitor<u64>,
        ) -> u64 {
            let mut compared = 0;
            for (bucket, left) in probes.probes() {
                let line = &lines[bucket as usize];
                let count = line.tail().min(capacity);
                compared += u64::from(count);
                let hits = $line(&line.0, width, count as usize, needle, left);
                if hits != 0 {
                    visit_cache_line(line, width, hits, bucket, visitor);
                }
                if line.tail() > capacity {
                    compared += visitor.overflow(bucket, left);
                }
            }
            compared
        }

        /// Entries are of 4 to 8 bytes.
        #[target_feature(enable = $features)]
        pub(super) fn $search<T: SingleProbeTable<u64>>(
            tables: &[T],
            queries: &[u64],
            radius: u32,
            found: Found<'_, u64>,
        ) -> u64 {
            let stages = ProbeStages {
                extract: |word, mask| _pext_u64(word, mask),
                deposit: |word, mask| _pdep_u64(word, mask),
                near: |bytes: &[u8], place: usize, width, count: usize, needle, radius| {
                    if T::IN_CACHE_LINES {
                        return match bytes.as_array() {
                            Some(line) => $line(line, width, count, needle, radius),
                            // Few, which begin anywhere in their line: a vector would reach into the next.
                            None => scan_packed_from(bytes, place, width, count, needle, radius),
                        };
                    }
                    match bytes.get(place..place + read_entries(count) * width) {
                        Some(run) => $run(run, width, count, needle, radius),
                        None => scan_packed_from(bytes, place, width, count, needle, radius),
                    }
                },
            };
            single_probe::search_with(tables, queries, radius, found, &stages)
        }

        /// At most 64 words.
        #[target_feature(enable = $features)]
        pub(super) fn $words(words: &[u64], needle: u64, radius: u32) -> u64 {
            let needles = _mm512_set1_epi64(needle as i64);
            let limit = _mm512_set1_epi64(i64::from(radius));
            let mut hits = 0;
            for (i, eight) in words.chunks(8).enumerate() {
                let kept = low_ones(eight.len()) as u8;
                // SAFETY: the mask keeps the load within the chunk.
                let loaded = unsafe { _mm512_maskz_loadu_epi64(kept, eight.as_ptr().cast()) };
                let apart = $ones(_mm512_xor_si512(loaded, needles));
                hits |= u64::from(_mm512_mask_cmple_epu64_mask(kept, apart, limit)) << (8 * i);
            }
            hits
        }

        #[target_feature(enable = $features)]
        pub(super) fn $pairs(
            words: &[u64],
            mut start: usize,
            ends: &[u32],
            most: usize,
            radius: u32,
            pairs: &mut Vec<(u64, u64)>,
        ) {
            let limit = _mm512_set1_epi64(i64::from(radius));
            for &end in ends {
                let group = &words[start..end as usize];
                start = end as usize;
                if group.len() > most {
                    continue;
                }
                for (i, &needle) in group.iter().enumerate() {
                    let needles = _mm512_set1_epi64(needle as i64);
                    for eight in group[i + 1..].chunks(8) {
                        let kept = low_ones(eight.len()) as u8;
                        let from = eight.as_ptr().cast();
                        // SAFETY: the mask keeps the load within the chunk.
                        let loaded = unsafe { _mm512_maskz_loadu_epi64(kept, from) };
                        let apart = $ones(_mm512_xor_si512(loaded, needles));
                        let mut hits = _mm512_mask_cmple_epu64_mask(kept, apart, limit);
                        while hits != 0 {
                            pairs.push((needle, eight[hits.trailing_zeros() as usize & 7]));
                            hits &= hits - 1;
                        }
                    }
                }
            }
        }
    };
}

avx512_kernels!(
    "avx512f,avx512bw,avx2,popcnt,bmi2",
    ones_by_nibbles,
    scan_group_avx512,
    scan_groups_avx512,
    scan_run_avx512,
    probe_packed_avx512,
    scan_cache_line_avx512,
    probe_buckets_avx512,
    scan_words_avx512,
    close_pairs_avx512,
    search_single_probe_avx512
);
avx512_kernels!(
    "avx512f,avx512bw,avx512vpopcntdq,avx2,popcnt,bmi2",
    ones_by_instruction,
    scan_group_popcnt,
    scan_groups_popcnt,
    scan_run_popcnt,
    probe_packed_popcnt,
    scan_cache_line_popcnt,
    probe_buckets_popcnt,
    scan_words_popcnt,
    close_pairs_popcnt,
    search_single_probe_popcnt
);

/// The differences of eight windows are brought to their least before one comparison judges them.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt,bmi2")]
pub(super) fn near_windows_popcnt(
    (xs, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    const TOGETHER: usize = 8;
    let limit = _mm512_set1_epi32(radius as i32);
    let (groups, rest) = xs.as_chunks::<TOGETHER>();
    for (group, words) in groups.iter().enumerate() {
        let base = group * TOGETHER;
        // More than any count of ones.
        let mut least = _mm512_set1_epi32(33);
        for (at, &x) in words.iter().enumerate() {
            let from = window(base + at);
            least = _mm512_min_epu32(least, bits_apart(x, &ys[from..from + WINDOW]));
        }
        if _mm512_cmple_epu32_mask(least, limit) != 0 {
            near_words_popcnt((words, ys), window, radius, (base, first), found);
        }
    }
    let base = groups.len() * TOGETHER;
    near_words_popcnt((rest, ys), window, radius, (base, first), found);
}

/// As [`near_windows_popcnt`] for at most eight words, from position `base` of their list on.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt,bmi2")]
fn near_words_popcnt(
    (words, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    (base, first): (usize, usize),
    found: &mut Vec<(u32, u32)>,
) {
    let limit = _mm512_set1_epi32(radius as i32);
    // All windows first: which word is near cannot be foretold, so a branch for each would be mispredicted.
    let mut near = 0_u128;
    for (at, &x) in words.iter().enumerate() {
        let from = window(base + at);
        let apart = bits_apart(x, &ys[from..from + WINDOW]);
        near |= u128::from(_mm512_cmple_epu32_mask(apart, limit)) << (WINDOW * at);
    }
    while near != 0 {
        let bit = near.trailing_zeros() as usize;
        let (at, place) = (base + bit / WINDOW, bit % WINDOW);
        found.push(((first + at) as u32, (window(at) + place) as u32));
        near &= near - 1;
    }
}

/// In how many bits each word of a window differs from `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn bits_apart(x: u32, window: &[u32]) -> __m512i {
    assert!(window.len() == WINDOW);
    // SAFETY: a window is 64 bytes.
    let loaded = unsafe { _mm512_loadu_si512(window.as_ptr().cast()) };
    _mm512_popcnt_epi32(_mm512_xor_si512(loaded, _mm512_set1_epi32(x as i32)))
}
