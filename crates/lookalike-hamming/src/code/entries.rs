//! Search of many entries or words for those near one, by the slow and obvious way: for words without vector kernels.

use super::super::kernel::{
    self, BucketVisitor, CacheLine, Dense, Found, ProbeLocations, ProbeSet, ProbeStages,
    SingleProbeTable,
};
use super::Word;

/// Compares all entries of the buckets that are to be probed; returns how many.
fn probe_each<W: Word>(
    probes: ProbeLocations<'_>,
    needle: W,
    entry: impl Fn(usize) -> W,
    hit: &mut dyn FnMut(u32, W),
) -> u64 {
    let mut compared = 0;
    for (bucket, left, range) in probes.each() {
        compared += u64::from(range.count);
        let first = range.first as usize;
        for entry in (first..first + range.count as usize).map(&entry) {
            if (entry ^ needle).ones() <= left {
                hit(bucket, entry);
            }
        }
    }
    compared
}

/// [`Word::probe_packed`], entry by entry.
pub(super) fn probe_packed<W: Word>(
    entries: &[u8],
    width: usize,
    probes: ProbeLocations<'_>,
    needle: W,
    hit: &mut dyn FnMut(u32, W),
) -> u64 {
    let entry = |at: usize| W::read(&entries[at * width..(at + 1) * width]);
    probe_each(probes, needle, entry, hit)
}

/// [`Word::probe_dense`], entry by entry.
pub(super) fn probe_dense<W: Word>(
    table: Dense<'_>,
    probes: ProbeLocations<'_>,
    needle: W,
    hit: &mut dyn FnMut(u32, W),
) -> u64 {
    let entry = |rank| W::from_u128(table.entry(rank));
    probe_each(probes, needle, entry, hit)
}

/// [`Word::probe_buckets`], entry by entry.
pub(super) fn probe_buckets<W: Word>(
    lines: &[CacheLine],
    (width, capacity): (usize, u32),
    probes: ProbeSet<'_>,
    needle: W,
    visitor: &mut dyn BucketVisitor<W>,
) -> u64 {
    let mut compared = 0;
    for &mask in probes.xor_masks {
        let Some(left) = probes.radius.checked_sub(mask.count_ones()) else {
            continue;
        };
        let bucket = probes.bucket ^ mask;
        let line = &lines[bucket as usize];
        let count = line.tail().min(capacity) as usize;
        compared += count as u64;
        for at in 0..count {
            let entry = W::read(&line.0[at * width..(at + 1) * width]);
            if (entry ^ needle).ones() <= left {
                visitor.hit(bucket, entry);
            }
        }
        if line.tail() > capacity {
            compared += visitor.overflow(bucket, left);
        }
    }
    compared
}

/// [`Word::scan_words`], word by word.
pub(super) fn scan_words<W: Word>(words: &[W], needle: W, radius: u32) -> u64 {
    let near = words
        .iter()
        .map(|&word| u64::from((word ^ needle).ones() <= radius));
    near.enumerate().fold(0, |hits, (i, near)| hits | near << i)
}

/// [`Word::close_pairs`], word by word.
pub(super) fn close_pairs<W: Word>(
    words: &[W],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(W, W)>,
) {
    kernel::each_group(words, start, ends, most, |group| {
        for (i, &a) in group.iter().enumerate() {
            let near = group[i + 1..].iter().filter(|&&b| (a ^ b).ones() <= radius);
            pairs.extend(near.map(|&b| (a, b)));
        }
    });
}

/// The search of tables that a query probes once each, for words without kernels of their own.
pub(super) fn search<W: Word, T: SingleProbeTable<W>>(
    tables: &[T],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
) -> u64 {
    let stages = ProbeStages {
        extract: W::extract,
        deposit: W::deposit,
        near: |bytes: &[u8], place: usize, width, count, needle, radius| {
            scan(&bytes[place..], width, count, needle, radius)
        },
    };
    kernel::search_with(tables, queries, radius, found, &stages)
}

/// The obvious scan over packed entries, for words without a vector kernel.
pub(super) fn scan<W: Word>(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: W,
    radius: u32,
) -> u64 {
    if width == 0 {
        return kernel::low_ones(if needle.ones() <= radius { count } else { 0 });
    }
    let entries = bytes.chunks_exact(width).take(count).enumerate();
    entries.fold(0, |hits, (i, entry)| {
        let near = (W::read(entry) ^ needle).ones() <= radius;
        hits | u64::from(near) << i
    })
}
