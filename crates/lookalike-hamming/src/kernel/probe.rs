//! Probes of a table: the buckets at some xor masks from that of a query.

use super::bits::deposit_portably;
use super::dense::{self, Dense};
use super::scan::{read_short, scan_packed};
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{KernelLevel, low_ones};

/// The buckets of one table that a query looks at: those at each of `xor_masks` from its own.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSet<'a> {
    /// The bucket of the query.
    pub bucket: u32,
    /// Bits that each probe flips in its number.
    pub xor_masks: &'a [u32],
    /// Errors that the query may have in all; a xor mask costs as many as it has bits.
    pub radius: u32,
}

impl ProbeSet<'_> {
    /// Bucket and errors left of each probe.
    #[inline(always)]
    pub(super) fn probes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.xor_masks.iter().filter_map(|&mask| {
            let left = self.radius.checked_sub(mask.count_ones())?;
            Some((self.bucket ^ mask, left))
        })
    }
}

/// Entries of a bucket: the rank of the first, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRange {
    /// Entries of the table before the bucket.
    pub first: u32,
    /// Entries of the bucket.
    pub count: u32,
}

/// Probes whose entries have been found.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLocations<'a> {
    /// The probes.
    pub probes: ProbeSet<'a>,
    /// The entries of each.
    pub ranges: &'a [EntryRange],
}

impl ProbeLocations<'_> {
    /// Bucket, errors left, and entries of each probe.
    #[inline(always)]
    pub(in super::super) fn each(&self) -> impl Iterator<Item = (u32, u32, EntryRange)> + '_ {
        let ProbeSet {
            bucket,
            xor_masks,
            radius,
        } = self.probes;
        xor_masks
            .iter()
            .zip(self.ranges)
            .filter_map(move |(&mask, &range)| {
                let left = radius.checked_sub(mask.count_ones())?;
                Some((bucket ^ mask, left, range))
            })
    }
}

/// A cache line of entries.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct CacheLine(pub(in super::super) [u8; 64]);

impl CacheLine {
    /// The last four bytes: how many entries the bucket has or, above what a line holds, that it has
    /// more elsewhere.
    #[inline(always)]
    pub(in super::super) fn tail(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Receiver of what a probe of buckets finds.
pub trait BucketVisitor<W> {
    /// An entry near the needle, and its bucket.
    fn hit(&mut self, bucket: u32, entry: W);
    /// A bucket with more entries than its line holds, and the errors left for them; how many more
    /// were compared.
    fn overflow(&mut self, bucket: u32, radius: u32) -> u64;
}

/// Probes buckets of a line each, which hold `capacity` entries of `width` bytes at most; returns how
/// many entries were compared.
pub(in super::super) fn probe_buckets(
    lines: &[CacheLine],
    (width, capacity): (usize, u32),
    probes: ProbeSet<'_>,
    needle: u64,
    visitor: &mut dyn BucketVisitor<u64>,
) -> u64 {
    match KernelLevel::detected() {
        #[cfg(target_arch = "x86_64")]
        level if level >= KernelLevel::Avx512 && (4..=8).contains(&width) => {
            x86::probe_buckets(level, lines, (width, capacity), probes, needle, visitor)
        }
        _ => probe_buckets_portably(lines, (width, capacity), probes, needle, visitor),
    }
}

pub(super) fn probe_buckets_portably(
    lines: &[CacheLine],
    (width, capacity): (usize, u32),
    probes: ProbeSet<'_>,
    needle: u64,
    visitor: &mut dyn BucketVisitor<u64>,
) -> u64 {
    let mut compared = 0;
    for (bucket, left) in probes.probes() {
        let line = &lines[bucket as usize];
        let count = line.tail().min(capacity) as usize;
        compared += count as u64;
        let hits = scan_packed(&line.0, width, count, needle, left);
        visit_cache_line(line, width, hits, bucket, visitor);
        if line.tail() > capacity {
            compared += visitor.overflow(bucket, left);
        }
    }
    compared
}

#[inline(always)]
pub(super) fn visit_cache_line(
    line: &CacheLine,
    width: usize,
    mut hits: u64,
    bucket: u32,
    visitor: &mut dyn BucketVisitor<u64>,
) {
    while hits != 0 {
        let at = hits.trailing_zeros() as usize * width;
        visitor.hit(bucket, read_short(&line.0[at..at + width]));
        hits &= hits - 1;
    }
}

/// Entries up to which a bucket is compared one by one.
const FEW: usize = 24;

/// Compares the entries of probes that lie back to back in `entries`, which has eight bytes more. Calls `hit` with bucket
/// and value of each entry near `needle`, and returns how many were compared.
pub(in super::super) fn probe_packed(
    entries: &[u8],
    width: usize,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    probe_packed_at(KernelLevel::detected(), entries, width, probes, needle, hit)
}

pub(super) fn probe_packed_at(
    level: KernelLevel,
    entries: &[u8],
    width: usize,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    match level {
        KernelLevel::Portable => probe_packed_portably(entries, width, probes, needle, hit),
        #[cfg(target_arch = "x86_64")]
        _ => x86::probe_packed(level, entries, width, probes, needle, hit),
        #[cfg(not(target_arch = "x86_64"))]
        _ => probe_packed_portably(entries, width, probes, needle, hit),
    }
}

#[inline(always)]
pub(super) fn probe_packed_portably(
    entries: &[u8],
    width: usize,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let mut compared = 0;
    for (bucket, left, range) in probes.each() {
        compared += u64::from(range.count);
        let mut hit = |entry| hit(bucket, entry);
        scan_bucket(entries, width, range, needle, left, &mut hit);
    }
    compared
}

/// Visits the entries of a bucket within `radius` of `needle`.
#[inline(always)]
pub(super) fn scan_bucket(
    entries: &[u8],
    width: usize,
    range: EntryRange,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let (start, count) = (range.first as usize, range.count as usize);
    let bytes = &entries[start * width..(start + count) * width + 8];
    match width {
        _ if count > FEW => scan_many(bytes, width, count, needle, radius, hit),
        5 => scan_few::<5>(bytes, count, needle, radius, hit),
        6 => scan_few::<6>(bytes, count, needle, radius, hit),
        _ => scan_many(bytes, width, count, needle, radius, hit),
    }
}

/// Finds the entries of the buckets at each of `xor_masks` from `bucket` in a table as bits.
pub(in super::super) fn locate_dense(
    table: Dense<'_>,
    bucket: u32,
    xor_masks: &[u32],
    out: &mut [EntryRange],
) {
    locate_dense_at(KernelLevel::detected(), table, bucket, xor_masks, out);
}

pub(super) fn locate_dense_at(
    level: KernelLevel,
    table: Dense<'_>,
    bucket: u32,
    xor_masks: &[u32],
    out: &mut [EntryRange],
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= KernelLevel::Avx2 => x86::locate_dense(table, bucket, xor_masks, out),
        _ => locate_dense_portably(table, bucket, xor_masks, out),
    }
}

pub(super) fn locate_dense_portably(
    table: Dense<'_>,
    bucket: u32,
    xor_masks: &[u32],
    out: &mut [EntryRange],
) {
    let select = |word: u64, n: u32| deposit_portably(1 << n, word).trailing_zeros();
    dense::locate_with(table, bucket, xor_masks, out, select);
}

/// Compares the entries of probes of a table as bits. Calls `hit` with bucket and value of each entry near `needle`, in any
/// order, and returns how many were compared.
pub(in super::super) fn probe_dense(
    table: Dense<'_>,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    probe_dense_at(KernelLevel::detected(), table, probes, needle, hit)
}

pub(super) fn probe_dense_at(
    level: KernelLevel,
    table: Dense<'_>,
    probes: ProbeLocations<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= KernelLevel::Avx2 => x86::probe_dense(level, table, probes, needle, hit),
        _ => dense::probe_with(table, probes, needle, hit),
    }
}

/// Entries of a width that is known beforehand, each read as eight bytes.
#[inline(always)]
fn scan_few<const WIDTH: usize>(
    bytes: &[u8],
    count: usize,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let surplus = 64 - 8 * WIDTH as u32;
    let shifted = needle << surplus;
    for at in 0..count {
        let Some(eight) = bytes[at * WIDTH..].first_chunk() else {
            return;
        };
        let entry = u64::from_le_bytes(*eight) << surplus;
        if (entry ^ shifted).count_ones() <= radius {
            hit(entry >> surplus);
        }
    }
}

/// Entries of any width and number, by the vector kernels.
fn scan_many(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let kept = low_ones(8 * width);
    for first in (0..count).step_by(64) {
        let run = &bytes[first * width..];
        let mut hits = scan_packed(run, width, (count - first).min(64), needle, radius);
        while hits != 0 {
            let at = hits.trailing_zeros() as usize * width;
            hit(read_short(&run[at..at + 8]) & kept);
            hits &= hits - 1;
        }
    }
}
