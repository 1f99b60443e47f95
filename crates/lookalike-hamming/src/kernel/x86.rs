//! The kernels for x86-64. Each function here equals its portable twin in the modules beside.
//!
//! The functions of this file are the doors: they are called only at a [`KernelLevel`] that was detected, which is the safety
//! argument of every call inside. Those behind have the features of a level.

use super::address_filter::select_members_portably;
use super::dense::{self, Dense};
use super::pairs::{close_pairs_portably, near_windows_portably};
use super::probe::probe_packed_portably;
use super::scan::{scan_packed_from, scan_packed_portably, scan_words_portably};
use super::single_probe::{self, Found, ProbeStages, SingleProbeTable};
use super::{BucketVisitor, CacheLine, EntryRange, KernelLevel, ProbeLocations, ProbeSet};
use address_filter::select_members_avx512;
use avx2::scan_groups_avx2;
use avx512::{
    close_pairs_avx512, close_pairs_popcnt, near_windows_popcnt, probe_buckets_avx512,
    probe_buckets_popcnt, probe_packed_avx512, probe_packed_popcnt, scan_cache_line_avx512,
    scan_cache_line_popcnt, scan_groups_avx512, scan_groups_popcnt, scan_words_avx512,
    scan_words_popcnt, search_single_probe_avx512, search_single_probe_popcnt,
};
use gather::probe_dense_popcnt;
use std::arch::x86_64::*;

mod address_filter;
mod avx2;
mod avx512;
mod gather;

pub(super) fn extract(word: u64, mask: u64) -> u64 {
    #[target_feature(enable = "bmi2")]
    fn pext(word: u64, mask: u64) -> u64 {
        _pext_u64(word, mask)
    }
    // SAFETY: called at `KernelLevel::Avx2` or above, which includes BMI2.
    unsafe { pext(word, mask) }
}

pub(super) fn deposit(word: u64, mask: u64) -> u64 {
    #[target_feature(enable = "bmi2")]
    fn pdep(word: u64, mask: u64) -> u64 {
        _pdep_u64(word, mask)
    }
    // SAFETY: called at `KernelLevel::Avx2` or above, which includes BMI2.
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
    // SAFETY: called at `KernelLevel::Avx2` or above, which includes BMI2.
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

pub(super) fn probe_packed(
    level: KernelLevel,
    entries: &[u8],
    width: usize,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    #[target_feature(enable = "popcnt,bmi2")]
    fn by_popcnt(
        entries: &[u8],
        width: usize,
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        probe_packed_portably(entries, width, probes, needle, hit)
    }
    match level {
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt if (4..=8).contains(&width) => unsafe {
            probe_packed_popcnt(entries, width, probes, needle, hit)
        },
        // SAFETY: the level was detected.
        KernelLevel::Avx512 if (4..=8).contains(&width) => unsafe {
            probe_packed_avx512(entries, width, probes, needle, hit)
        },
        // SAFETY: every level above portable includes POPCNT and BMI2.
        _ => unsafe { by_popcnt(entries, width, probes, needle, hit) },
    }
}

pub(super) fn locate_dense(
    table: Dense<'_>,
    bucket: u32,
    xor_masks: &[u32],
    out: &mut [EntryRange],
) {
    #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
    fn by_pdep(table: Dense<'_>, bucket: u32, xor_masks: &[u32], out: &mut [EntryRange]) {
        let select = |word: u64, n: u32| _pdep_u64(1 << n, word).trailing_zeros();
        dense::locate_with(table, bucket, xor_masks, out, select);
    }
    // SAFETY: every level above portable includes POPCNT, BMI1, BMI2 and LZCNT.
    unsafe { by_pdep(table, bucket, xor_masks, out) }
}

pub(super) fn probe_dense(
    level: KernelLevel,
    table: Dense<'_>,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_popcnt(
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        dense::probe_with(table, probes, needle, hit)
    }
    let bits = 1..=dense::WORD_BITS;
    match level {
        KernelLevel::Avx512Popcnt
            if bits.contains(&table.entry_bits) && table.entries.len() >= 8 =>
        {
            // SAFETY: the level was detected.
            unsafe { probe_dense_popcnt(table, probes, needle, hit) }
        }
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_popcnt(table, probes, needle, hit) },
    }
}

pub(super) fn select_members<const BLOOM: bool>(
    level: KernelLevel,
    words: &[u64],
    items: &[u64],
    room: &mut [u32],
) -> usize {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_shifts<const BLOOM: bool>(words: &[u64], items: &[u64], room: &mut [u32]) -> usize {
        select_members_portably::<BLOOM>(words, items, room)
    }
    match level {
        KernelLevel::Avx512 | KernelLevel::Avx512Popcnt => {
            // SAFETY: the level was detected.
            unsafe { select_members_avx512::<BLOOM>(words, items, room) }
        }
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_shifts::<BLOOM>(words, items, room) },
    }
}

pub(super) fn search_single_probe<T: SingleProbeTable<u64>>(
    level: KernelLevel,
    tables: &[T],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn by_popcnt<T: SingleProbeTable<u64>>(
        tables: &[T],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        let stages = ProbeStages {
            extract: |word, mask| _pext_u64(word, mask),
            deposit: |word, mask| _pdep_u64(word, mask),
            near: scan_packed_from,
        };
        single_probe::search_with(tables, queries, radius, found, &stages)
    }
    let wide = tables.iter().all(|table| (4..=8).contains(&table.width()));
    match level {
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt if wide => unsafe {
            search_single_probe_popcnt(tables, queries, radius, found)
        },
        // SAFETY: the level was detected.
        KernelLevel::Avx512 if wide => unsafe {
            search_single_probe_avx512(tables, queries, radius, found)
        },
        // SAFETY: every level above portable includes POPCNT, BMI1 and BMI2.
        _ => unsafe { by_popcnt(tables, queries, radius, found) },
    }
}

/// Entries from which the vector kernels pay; below, one POPCNT each is as fast.
const VECTOR_ENTRIES: usize = 16;

pub(super) fn scan_packed(
    level: KernelLevel,
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    let grouped = match level {
        _ if count < VECTOR_ENTRIES || !(4..=8).contains(&width) => 0,
        KernelLevel::Avx2 => count & !3,
        _ => count & !7,
    };
    let (groups, rest) = bytes.split_at(grouped * width);
    let near = match level {
        _ if grouped == 0 => 0,
        // SAFETY: the level was detected.
        KernelLevel::Avx512 => unsafe { scan_groups_avx512(groups, width, needle, radius) },
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt => unsafe { scan_groups_popcnt(groups, width, needle, radius) },
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

pub(super) fn near_windows(
    level: KernelLevel,
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
        KernelLevel::Avx512Popcnt => unsafe {
            near_windows_popcnt(lists, window, radius, first, found)
        },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_avx2(lists, window, radius, first, found) },
    }
}

pub(super) fn probe_buckets(
    level: KernelLevel,
    lines: &[CacheLine],
    shape: (usize, u32),
    probes: ProbeSet<'_>,
    needle: u64,
    visitor: &mut dyn BucketVisitor<u64>,
) -> u64 {
    match level {
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt => unsafe {
            probe_buckets_popcnt(lines, shape, probes, needle, visitor)
        },
        // SAFETY: the caller has chosen an AVX-512 level, which was detected.
        _ => unsafe { probe_buckets_avx512(lines, shape, probes, needle, visitor) },
    }
}

pub(super) fn scan_cache_line(
    level: KernelLevel,
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    match level {
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt => unsafe {
            scan_cache_line_popcnt(line, width, count, needle, radius)
        },
        // SAFETY: the caller has chosen an AVX-512 level, which was detected.
        _ => unsafe { scan_cache_line_avx512(line, width, count, needle, radius) },
    }
}

pub(super) fn scan_words(level: KernelLevel, words: &[u64], needle: u64, radius: u32) -> u64 {
    #[target_feature(enable = "avx2,popcnt,bmi2")]
    fn by_popcnt(words: &[u64], needle: u64, radius: u32) -> u64 {
        scan_words_portably(words, needle, radius)
    }
    match level {
        // SAFETY: the level was detected.
        KernelLevel::Avx512 => unsafe { scan_words_avx512(words, needle, radius) },
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt => unsafe { scan_words_popcnt(words, needle, radius) },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_popcnt(words, needle, radius) },
    }
}

pub(super) fn close_pairs(
    level: KernelLevel,
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
        KernelLevel::Avx512 => unsafe {
            close_pairs_avx512(words, start, ends, most, radius, pairs)
        },
        // SAFETY: the level was detected.
        KernelLevel::Avx512Popcnt => unsafe {
            close_pairs_popcnt(words, start, ends, most, radius, pairs);
        },
        // SAFETY: every level above portable includes AVX2, POPCNT and BMI2.
        _ => unsafe { by_popcnt(words, start, ends, most, radius, pairs) },
    }
}
