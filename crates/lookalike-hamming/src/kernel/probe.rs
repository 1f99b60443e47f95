//! Comparison of a needle with the entries of the buckets that a query probes.

use super::super::code::Integer;
use super::dense::Dense;
use super::probe_set::{BucketVisitor, CacheLine, EntryRange, ProbeLocations, ProbeSet};
use super::scan::{ScanLine, ScanPacked, ScanRun, hit_positions};
use super::vector::{Kernel, Vector};

/// Comparison of `needle` with the packed entries of some probes. Calls `hit` with the bucket and value of each entry near `needle`, and returns the
/// number of entries compared.
pub struct ProbePacked<'a, 'h, W> {
    /// All entries, followed by eight bytes more.
    pub entries: &'a [u8],
    /// Bytes of an entry.
    pub width: usize,
    /// The probes.
    pub probes: ProbeLocations<'a>,
    /// The word that entries are compared with.
    pub needle: W,
    /// Receives each entry near `needle`, with its bucket.
    pub hit: &'h mut dyn FnMut(u32, W),
}

/// Number of entries that are compared as one run.
const RUN: usize = 64;
/// Number of entries up to which a bucket is compared one by one if vectors are narrow.
const SCALAR_MAX: usize = 24;

impl<W: Integer> Kernel<W> for ProbePacked<'_, '_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let Self {
            entries,
            width,
            probes,
            needle,
            hit,
        } = self;
        let mut compared = 0;
        for (bucket, left, EntryRange { first, count }) in probes.for_each() {
            compared += u64::from(count);
            let (place, count) = (first as usize * width, count as usize);
            // A loop over so few is as fast as a narrow vector, and its step is a constant for the widths that tables of 64 bits mostly have. Buckets
            // hold two to five entries on average: AVX2 would spend its shuffle on four of them, and mask off half.
            let few = !V::WIDE && count <= if V::LANES == 1 { SCALAR_MAX } else { V::LANES };
            match width {
                5 if few => {
                    compare_few::<W, 5>(&entries[place..], count, needle, left, bucket, hit);
                    continue;
                }
                6 if few => {
                    compare_few::<W, 6>(&entries[place..], count, needle, left, bucket, hit);
                    continue;
                }
                _ => {}
            }
            let mut run = ScanRun {
                place,
                entries: ScanPacked {
                    bytes: entries,
                    width,
                    count: count.min(RUN),
                    needle,
                    radius: left,
                },
            };
            // The first run is outside the loop, because nearly all buckets end with it.
            for at in hit_positions(run.run(vector)) {
                hit(bucket, W::read_at(entries, place + at * width, width));
            }
            // As many at a time as a mask has bits.
            for before in (RUN..count).step_by(RUN) {
                run.place = place + before * width;
                run.entries.count = (count - before).min(RUN);
                for at in hit_positions(run.run(vector)) {
                    hit(bucket, W::read_at(entries, run.place + at * width, width));
                }
            }
        }
        compared
    }
}

/// Compares entries of a constant width, one by one.
#[inline(always)]
fn compare_few<W: Integer, const WIDTH: usize>(
    bytes: &[u8],
    count: usize,
    needle: W,
    radius: u32,
    bucket: u32,
    hit: &mut dyn FnMut(u32, W),
) {
    for at in 0..count {
        let entry = W::read_at(bytes, at * WIDTH, WIDTH);
        if (entry ^ needle).ones() <= radius {
            hit(bucket, entry);
        }
    }
}

/// Probe of buckets of one cache line each; returns the number of entries compared.
pub struct ProbeBuckets<'a, 'v, W> {
    /// The lines of all buckets.
    pub lines: &'a [CacheLine],
    /// Bytes of an entry.
    pub width: usize,
    /// Number of entries that a line holds.
    pub capacity: u32,
    /// The probes.
    pub probes: ProbeSet<'a>,
    /// The word that entries are compared with.
    pub needle: W,
    /// Receives the results.
    pub visitor: &'v mut dyn BucketVisitor<W>,
}

impl<W: Integer> Kernel<W> for ProbeBuckets<'_, '_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let (width, visitor) = (self.width, self.visitor);
        let mut compared = 0;
        for (bucket, left) in self.probes.probes() {
            let line = &self.lines[bucket as usize];
            // A tail above the capacity gives the position of the overflow, and the line is full. One line, one miss: count and entries arrive
            // together, which is the point of this layout.
            let count = line.tail().min(self.capacity);
            compared += u64::from(count);
            let entries = ScanPacked {
                bytes: &line.0,
                width,
                count: count as usize,
                needle: self.needle,
                radius: left,
            };
            let line_scan = ScanLine {
                line: &line.0,
                entries,
            };
            for at in hit_positions(line_scan.run(vector)) {
                // Read again from the line, which is in the first-level cache by now, so that masks need no room for words.
                visitor.hit(bucket, W::read_at(&line.0, at * width, width));
            }
            if line.tail() > self.capacity {
                compared += visitor.overflow(bucket, left);
            }
        }
        compared
    }
}

/// Search for the entries of the buckets at each of `xor_masks` from `bucket` in a table as bits.
pub(in super::super) struct LocateDense<'a> {
    pub(in super::super) table: Dense<'a>,
    pub(in super::super) bucket: u32,
    pub(in super::super) xor_masks: &'a [u32],
    /// Receives the entries of each bucket, as many as there are masks.
    pub(in super::super) out: &'a mut [EntryRange],
}

impl Kernel<u64> for LocateDense<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<u64>>(self, vector: V) {
        for (&mask, out) in self.xor_masks.iter().zip(self.out) {
            let bucket = (self.bucket ^ mask) as usize;
            // Uses the select of the vector, which is two inline instructions: without it, each probe would be a call.
            *out = self
                .table
                .range_with(bucket, |word, n| vector.select(word, n));
        }
    }
}

/// Comparison of `needle` with the entries of some probes of a table as bits. Calls `hit` with the bucket and value of each entry near `needle`, in
/// any order, and returns the number of entries compared.
pub(in super::super) struct ProbeDense<'a, 'h, W> {
    /// The table.
    pub table: Dense<'a>,
    /// The probes.
    pub probes: ProbeLocations<'a>,
    /// The word that entries are compared with.
    pub needle: W,
    /// Receives each entry near `needle`, with its bucket.
    pub hit: &'h mut dyn FnMut(u32, W),
}

impl<W: Integer> Kernel<W> for ProbeDense<'_, '_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        vector.probe_dense(self.table, self.probes, self.needle, self.hit)
    }
}
