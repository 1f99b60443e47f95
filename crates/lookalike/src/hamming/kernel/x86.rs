//! The kernels for x86-64. Each function here equals its portable twin in the parent module.
//!
//! The functions without `target_feature` are the doors: they are called only at a [`Level`] that
//! was detected, which is the safety argument of every call inside.

use super::dense::{self, Dense};
use super::once::{self, Found, LineTable, PackedTable, Steps};
use super::{
    Extent, Flipped, Level, Line, LineVisitor, Located, WINDOW, close_pairs_portably, low_ones,
    near_windows_portably, probe_packed_portably, scan_bucket, scan_packed_from,
    scan_packed_portably, scan_words_portably, visit_line,
};
use std::arch::x86_64::*;

pub(super) fn extract(word: u64, mask: u64) -> u64 {
    #[target_feature(enable = "bmi2")]
    fn pext(word: u64, mask: u64) -> u64 {
        _pext_u64(word, mask)
    }
    // SAFETY: called at `Level::Avx2` or above, which includes BMI2.
    unsafe { pext(word, mask) }
}

pub(super) fn deposit(word: u64, mask: u64) -> u64 {
    #[target_feature(enable = "bmi2")]
    fn pdep(word: u64, mask: u64) -> u64 {
        _pdep_u64(word, mask)
    }
    // SAFETY: called at `Level::Avx2` or above, which includes BMI2.
    unsafe { pdep(word, mask) }
}

pub(super) fn permute(words: &[u64], address: u64, out: &mut [u64]) {
    #[target_feature(enable = "bmi2")]
    fn by_pext(words: &[u64], address: u64, out: &mut [u64]) {
        let rest_bits = address.count_zeros();
        for (&word, out) in words.iter().zip(out) {
            let high = _pext_u64(word, address).checked_shl(rest_bits).unwrap_or(0);
            *out = high | _pext_u64(word, !address);
        }
    }
    // SAFETY: called at `Level::Avx2` or above, which includes BMI2.
    unsafe { by_pext(words, address, out) }
}

#[inline(always)]
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    let address = items.as_ptr().wrapping_add(index);
    // SAFETY: a prefetch never faults, whatever the address; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[inline]
pub(super) fn stream_line(to: &mut [u64], line: &[u64; 8]) {
    assert!(to.len() == 8 && to.as_ptr().addr().is_multiple_of(16));
    for at in 0..4 {
        // SAFETY: both have eight words, of which two are moved at a time, and the target is aligned
        // to 16 bytes; SSE2 is part of x86-64.
        unsafe {
            let two = _mm_loadu_si128(line.as_ptr().cast::<__m128i>().add(at));
            _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>().add(at), two);
        }
    }
}

pub(super) fn end_streaming() {
    // SAFETY: a fence has no preconditions; SSE is part of x86-64.
    unsafe { _mm_sfence() };
}

#[cfg(target_os = "linux")]
pub(super) fn ask_huge_pages<T>(items: &mut Vec<T>) {
    const HUGE_PAGE: usize = 2 << 20;
    const MADV_HUGEPAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    let start = items.as_mut_ptr().addr().next_multiple_of(HUGE_PAGE);
    let skipped = start - items.as_mut_ptr().addr();
    let length = (items.capacity() * size_of::<T>()).saturating_sub(skipped) & !(HUGE_PAGE - 1);
    if length > 0 {
        let address = items.as_mut_ptr().cast::<u8>().wrapping_add(skipped);
        // SAFETY: the range lies within the vector's allocation and begins at a page; this advice
        // changes neither content nor access rights, and a failure is only a missing speed-up.
        let _ = unsafe { madvise(address.cast(), length, MADV_HUGEPAGE) };
    }
}

pub(super) fn probe_packed(
    level: Level,
    entries: &[u8],
    width: usize,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    #[target_feature(enable = "popcnt,bmi2")]
    fn by_popcnt(
        entries: &[u8],
        width: usize,
        probes: Located<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        probe_packed_portably(entries, width, probes, needle, hit)
    }
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt if (4..=8).contains(&width) => unsafe {
            probe_packed_popcnt(entries, width, probes, needle, hit)
        },
        // SAFETY: the level was detected.
        Level::Avx512 if (4..=8).contains(&width) => unsafe {
            probe_packed_avx512(entries, width, probes, needle, hit)
        },
        // SAFETY: every level above portable includes POPCNT and BMI2.
        _ => unsafe { by_popcnt(entries, width, probes, needle, hit) },
    }
}

pub(super) fn locate_dense(table: Dense<'_>, bucket: u32, flips: &[u32], out: &mut [Extent]) {
    #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
    fn by_pdep(table: Dense<'_>, bucket: u32, flips: &[u32], out: &mut [Extent]) {
        let select = |word: u64, n: u32| _pdep_u64(1 << n, word).trailing_zeros();
        dense::locate_with(table, bucket, flips, out, select);
    }
    // SAFETY: every level above portable includes POPCNT, BMI1, BMI2 and LZCNT.
    unsafe { by_pdep(table, bucket, flips, out) }
}

pub(super) fn probe_dense(
    level: Level,
    table: Dense<'_>,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_popcnt(
        table: Dense<'_>,
        probes: Located<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        dense::probe_with(table, probes, needle, hit)
    }
    let bits = 1..=dense::WORD_BITS;
    match level {
        Level::Avx512Popcnt if bits.contains(&table.entry_bits) && table.entries.len() >= 8 => {
            // SAFETY: the level was detected.
            unsafe { probe_dense_popcnt(table, probes, needle, hit) }
        }
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_popcnt(table, probes, needle, hit) },
    }
}

/// Whether the AVX-512 kernels read entries of all these widths.
fn are_wide(mut widths: impl Iterator<Item = usize>) -> bool {
    widths.all(|width| (4..=8).contains(&width))
}

pub(super) fn search_lines(
    level: Level,
    tables: &[LineTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_popcnt(
        tables: &[LineTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        let steps = Steps {
            extract: |word, mask| _pext_u64(word, mask),
            deposit: |word, mask| _pdep_u64(word, mask),
            near: scan_packed_from,
        };
        once::lines_with(tables, queries, radius, found, &steps)
    }
    let wide = are_wide(tables.iter().map(|table| table.width));
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt if wide => unsafe {
            search_lines_popcnt(tables, queries, radius, found)
        },
        // SAFETY: the level was detected.
        Level::Avx512 if wide => unsafe { search_lines_avx512(tables, queries, radius, found) },
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_popcnt(tables, queries, radius, found) },
    }
}

pub(super) fn search_packed(
    level: Level,
    tables: &[PackedTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_popcnt(
        tables: &[PackedTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        let steps = Steps {
            extract: |word, mask| _pext_u64(word, mask),
            deposit: |word, mask| _pdep_u64(word, mask),
            near: scan_packed_from,
        };
        once::packed_with(tables, queries, radius, found, &steps)
    }
    let wide = are_wide(tables.iter().map(|table| table.width));
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt if wide => unsafe {
            search_packed_popcnt(tables, queries, radius, found)
        },
        // SAFETY: the level was detected.
        Level::Avx512 if wide => unsafe { search_packed_avx512(tables, queries, radius, found) },
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_popcnt(tables, queries, radius, found) },
    }
}

/// Probes whose entries are gathered at a time.
const TOGETHER: usize = 32;
/// Entries of a bucket that are gathered; those beyond are compared one by one.
const GATHERED: usize = 4;

/// The entries of all probes in one list, of which eight at a time are gathered and compared: buckets hold one entry on
/// average, and a loop over so few would be mispredicted at every second bucket.
///
/// The table has entries of 1 to 57 bits, and eight bytes of them at least.
#[target_feature(enable = "avx512f,avx512vpopcntdq,avx2,popcnt,bmi1,bmi2")]
fn probe_dense_popcnt(
    table: Dense<'_>,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let Flipped {
        bucket,
        flips,
        radius,
    } = probes.probes;
    let mut compared = 0;
    let groups = flips.chunks(TOGETHER).zip(probes.extents.chunks(TOGETHER));
    for (flips, extents) in groups {
        let mut ranks = [0_u32; TOGETHER * GATHERED + 8];
        let mut owners = [0_u8; TOGETHER * GATHERED + 8];
        let mut listed = 0;
        for (at, (&flip, extent)) in flips.iter().zip(extents).enumerate() {
            let Some(left) = radius.checked_sub(flip.count_ones()) else {
                continue;
            };
            let first = extent.first;
            compared += u64::from(extent.count);
            // All four are written, and those that there are kept.
            // Not by `map`: a closure here has the features of this function, which keep it from being inlined there.
            let (second, third) = (first.wrapping_add(1), first.wrapping_add(2));
            let four = [first, second, third, first.wrapping_add(3)];
            ranks[listed..listed + GATHERED].copy_from_slice(&four);
            owners[listed..listed + GATHERED].copy_from_slice(&[at as u8; GATHERED]);
            listed += extent.count.min(GATHERED as u32) as usize;
            if extent.count > GATHERED as u32 {
                let rest = Extent {
                    first: first + GATHERED as u32,
                    count: extent.count - GATHERED as u32,
                };
                table.compare(rest, needle, left, &mut |entry| hit(bucket ^ flip, entry));
            }
        }
        for start in (0..listed).step_by(8) {
            let eight = ranks[start..].first_chunk().unwrap_or(&[0; 8]);
            let (mut near, entries) = near_entries_popcnt(table, eight, needle, radius);
            near &= low_ones(listed - start) as u8;
            while near != 0 {
                let lane = near.trailing_zeros() as usize;
                near &= near - 1;
                let (flip, entry) = (flips[owners[start + lane] as usize], entries[lane]);
                // By now without what the flip costs.
                if (entry ^ needle).count_ones() + flip.count_ones() <= radius {
                    hit(bucket ^ flip, entry);
                }
            }
        }
    }
    compared
}

/// Which of eight entries are within `radius` of `needle`, and these entries. Ranks beyond the table are taken for its
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

/// Entries from which the vector kernels pay; below, one POPCNT each is as fast.
const VECTOR_ENTRIES: usize = 16;

pub(super) fn scan_packed(
    level: Level,
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    let grouped = match level {
        _ if count < VECTOR_ENTRIES || !(4..=8).contains(&width) => 0,
        Level::Avx2 => count & !3,
        _ => count & !7,
    };
    let (groups, rest) = bytes.split_at(grouped * width);
    let near = match level {
        _ if grouped == 0 => 0,
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { scan_groups_avx512(groups, width, needle, radius) },
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe { scan_groups_popcnt(groups, width, needle, radius) },
        // SAFETY: the level was detected.
        _ => unsafe { scan_groups_avx2(groups, width, needle, radius) },
    };
    if grouped == count {
        return near;
    }
    // SAFETY: every level above portable includes POPCNT and BMI2.
    near | unsafe { scan_rest(rest, width, count - grouped, needle, radius) } << grouped
}

#[target_feature(enable = "popcnt,bmi2")]
fn scan_rest(bytes: &[u8], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
    scan_packed_portably(bytes, width, count, needle, radius)
}

/// How to spread eight packed entries over the 64-bit lanes of a vector: first four dwords for each
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
        hit(super::read_short(&entries[at..at + width]));
        near &= near - 1;
    }
}

/// The AVX-512 kernels once for each way to count ones.
macro_rules! avx512_kernels {
    ($features:literal, $ones:ident, $group:ident, $groups:ident, $run:ident, $packed:ident, $line:ident, $lines:ident, $words:ident, $pairs:ident, $search_lines:ident, $search_packed:ident) => {
        /// Which of the eight entries at the start of `bytes` are near.
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
        fn $groups(bytes: &[u8], width: usize, needle: u64, radius: u32) -> u64 {
            let mut hits = 0;
            // Not by `fold`: a closure here has the features of this function, which keep it from being inlined there.
            for (at, group) in bytes.chunks_exact(GROUP * width).enumerate() {
                hits |= $group(group, width, needle, radius) << (GROUP * at);
            }
            hits
        }

        /// Which of at most 64 entries are near; `bytes` holds [`read_entries`] of them.
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
        fn $packed(
            entries: &[u8],
            width: usize,
            probes: Located<'_>,
            needle: u64,
            hit: &mut dyn FnMut(u32, u64),
        ) -> u64 {
            let mut compared = 0;
            for (bucket, left, extent) in probes.each() {
                compared += u64::from(extent.count);
                let (start, count) = (extent.first as usize * width, extent.count as usize);
                let mut hit = |entry| hit(bucket, entry);
                match entries.get(start..start + read_entries(count) * width) {
                    Some(bytes) if count <= 64 => {
                        let near = $run(bytes, width, count, needle, left);
                        visit_packed(entries, start, width, near, &mut hit);
                    }
                    _ => scan_bucket(entries, width, extent, needle, left, &mut hit),
                }
            }
            compared
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn $line(line: &[u8; 64], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
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
        fn $lines(
            lines: &[Line],
            (width, capacity): (usize, u32),
            probes: Flipped<'_>,
            needle: u64,
            visitor: &mut dyn LineVisitor<u64>,
        ) -> u64 {
            let mut compared = 0;
            for (bucket, left) in probes.probes() {
                let line = &lines[bucket as usize];
                let count = line.tail().min(capacity);
                compared += u64::from(count);
                let hits = $line(&line.0, width, count as usize, needle, left);
                if hits != 0 {
                    visit_line(line, width, hits, bucket, visitor);
                }
                if line.tail() > capacity {
                    compared += visitor.overflow(bucket, left);
                }
            }
            compared
        }

        /// Entries are of 4 to 8 bytes, a line of them where they begin.
        #[target_feature(enable = $features)]
        fn $search_lines(
            tables: &[LineTable<'_, u64>],
            queries: &[u64],
            radius: u32,
            found: Found<'_, u64>,
        ) -> u64 {
            let steps = Steps {
                extract: |word, mask| _pext_u64(word, mask),
                deposit: |word, mask| _pdep_u64(word, mask),
                near: |bytes: &[u8], place: usize, width, count, needle, radius| {
                    match bytes.get(place..).and_then(<[u8]>::first_chunk) {
                        // Those beside lines begin anywhere in theirs, and are few.
                        Some(line) if count * width <= 64 => {
                            $line(line, width, count, needle, radius)
                        }
                        _ => scan_packed_from(bytes, place, width, count, needle, radius),
                    }
                },
            };
            once::lines_with(tables, queries, radius, found, &steps)
        }

        /// Entries are of 4 to 8 bytes.
        #[target_feature(enable = $features)]
        fn $search_packed(
            tables: &[PackedTable<'_, u64>],
            queries: &[u64],
            radius: u32,
            found: Found<'_, u64>,
        ) -> u64 {
            let steps = Steps {
                extract: |word, mask| _pext_u64(word, mask),
                deposit: |word, mask| _pdep_u64(word, mask),
                near: |bytes: &[u8], place: usize, width, count: usize, needle, radius| match bytes
                    .get(place..place + read_entries(count) * width)
                {
                    Some(run) => $run(run, width, count, needle, radius),
                    None => scan_packed_from(bytes, place, width, count, needle, radius),
                },
            };
            once::packed_with(tables, queries, radius, found, &steps)
        }

        /// At most 64 words.
        #[target_feature(enable = $features)]
        fn $words(words: &[u64], needle: u64, radius: u32) -> u64 {
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
        fn $pairs(
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
    scan_line_avx512,
    probe_lines_avx512,
    scan_words_avx512,
    close_pairs_avx512,
    search_lines_avx512,
    search_packed_avx512
);
avx512_kernels!(
    "avx512f,avx512bw,avx512vpopcntdq,avx2,popcnt,bmi2",
    ones_by_instruction,
    scan_group_popcnt,
    scan_groups_popcnt,
    scan_run_popcnt,
    probe_packed_popcnt,
    scan_line_popcnt,
    probe_lines_popcnt,
    scan_words_popcnt,
    close_pairs_popcnt,
    search_lines_popcnt,
    search_packed_popcnt
);

/// The differences of eight windows are brought to their least before one comparison judges them.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt,bmi2")]
fn near_windows_popcnt(
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

/// As [`near_windows_popcnt`] for the words from position `base` of their list on.
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
    for (at, &x) in words.iter().enumerate() {
        let from = window(base + at);
        let apart = bits_apart(x, &ys[from..from + WINDOW]);
        let mut near = _mm512_cmple_epu32_mask(apart, limit);
        while near != 0 {
            let place = from + near.trailing_zeros() as usize;
            found.push(((first + base + at) as u32, place as u32));
            near &= near - 1;
        }
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

pub(super) fn near_windows(
    level: Level,
    lists: (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    #[target_feature(enable = "avx2,popcnt,bmi2")]
    fn by_avx2(
        lists: (&[u32], &[u32]),
        window: impl Fn(usize) -> usize + Copy,
        radius: u32,
        first: usize,
        found: &mut Vec<(u32, u32)>,
    ) {
        near_windows_portably(lists, window, radius, first, found);
    }
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe { near_windows_popcnt(lists, window, radius, first, found) },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_avx2(lists, window, radius, first, found) },
    }
}

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

/// Which of four lanes hold at most `limit`.
#[target_feature(enable = "avx2")]
fn within_avx2(apart: __m256i, limit: __m256i) -> u64 {
    let beyond = _mm256_castsi256_pd(_mm256_cmpgt_epi64(apart, limit));
    u64::from(!_mm256_movemask_pd(beyond) as u8 & 15)
}

/// `bytes` holds whole groups of four entries, at most sixteen of them.
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn scan_groups_avx2(bytes: &[u8], width: usize, needle: u64, radius: u32) -> u64 {
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

pub(super) fn probe_lines(
    level: Level,
    lines: &[Line],
    shape: (usize, u32),
    probes: Flipped<'_>,
    needle: u64,
    visitor: &mut dyn LineVisitor<u64>,
) -> u64 {
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe { probe_lines_popcnt(lines, shape, probes, needle, visitor) },
        // SAFETY: the caller has chosen an AVX-512 level, which was detected.
        _ => unsafe { probe_lines_avx512(lines, shape, probes, needle, visitor) },
    }
}

pub(super) fn scan_line(
    level: Level,
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    match level {
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe { scan_line_popcnt(line, width, count, needle, radius) },
        // SAFETY: the caller has chosen an AVX-512 level, which was detected.
        _ => unsafe { scan_line_avx512(line, width, count, needle, radius) },
    }
}

pub(super) fn scan_words(level: Level, words: &[u64], needle: u64, radius: u32) -> u64 {
    #[target_feature(enable = "avx2,popcnt,bmi2")]
    fn by_popcnt(words: &[u64], needle: u64, radius: u32) -> u64 {
        scan_words_portably(words, needle, radius)
    }
    match level {
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { scan_words_avx512(words, needle, radius) },
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe { scan_words_popcnt(words, needle, radius) },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_popcnt(words, needle, radius) },
    }
}

pub(super) fn close_pairs(
    level: Level,
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    #[target_feature(enable = "avx2,popcnt,bmi2")]
    fn by_popcnt(
        words: &[u64],
        start: usize,
        ends: &[u32],
        most: usize,
        radius: u32,
        pairs: &mut Vec<(u64, u64)>,
    ) {
        close_pairs_portably(words, start, ends, most, radius, pairs);
    }
    match level {
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { close_pairs_avx512(words, start, ends, most, radius, pairs) },
        // SAFETY: the level was detected.
        Level::Avx512Popcnt => unsafe {
            close_pairs_popcnt(words, start, ends, most, radius, pairs);
        },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_popcnt(words, start, ends, most, radius, pairs) },
    }
}
