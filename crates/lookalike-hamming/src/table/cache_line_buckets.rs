//! The store of a table with a cache line for each bucket ([`Layout::CacheLineBuckets`](super::super::layout::Layout)).

use super::super::code::{Integer, Word};
use super::super::kernel::{self, BucketVisitor, CacheLine, ProbeBuckets, ProbeSet};
use super::super::layout::{LINE_ENTRY_BYTES, bucket_capacity};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::bucket::{Runs, scan_run};
use super::single_probe::{AddressSplit, BucketTable};
use super::{PADDING, append};
use std::ops::Range;

/// The overflow of a bucket begins at a multiple of so many bytes: 2^32 of those are room enough.
const OVERFLOW_UNIT: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct BucketStore {
    lines: TableSection<CacheLine>,
    /// Of each bucket with more entries than a line holds, at a multiple of sixteen bytes: how many it
    /// has in all (4 bytes), and those that are not in the line.
    overflow: TableSection<u8>,
    /// Rank of the first entry of each bucket; empty until asked for.
    ranks: TableSection<[u8; 4]>,
    /// Bytes of an entry.
    width: usize,
}

impl BucketStore {
    pub(super) fn new(width: usize) -> Self {
        Self {
            lines: TableSection::default(),
            overflow: TableSection::default(),
            ranks: TableSection::default(),
            width,
        }
    }

    /// Makes room for so many buckets.
    pub(super) fn reserve(&mut self, buckets: usize) {
        let lines = self.lines.growing();
        // Before the first line is written: the system gives huge pages to memory that nobody has touched.
        lines.reserve_exact(buckets);
        kernel::ask_huge_pages(lines);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, mut rests: &[W], sizes: &[u32]) {
        for &size in sizes {
            let (bucket, later) = rests.split_at(size as usize);
            self.push_one(bucket);
            rests = later;
        }
    }

    #[inline]
    fn push_one<W: Word>(&mut self, rests: &[W]) {
        let width = self.width;
        let capacity = bucket_capacity(width);
        let held = rests.len().min(capacity);
        let mut line = CacheLine([0; 64]);
        for (i, rest) in rests[..held].iter().enumerate() {
            // Ascending: the next entry, and the tail at last, overwrite what a wide write leaves behind.
            rest.write_wide(width, &mut line.0[i * width..]);
        }
        let tail = if held == rests.len() {
            held as u32
        } else {
            let overflow = self.overflow.growing();
            // Places in units of sixteen bytes: 32 bits then reach over 64 GiB.
            let unit = overflow.len().div_ceil(OVERFLOW_UNIT);
            overflow.resize(unit * OVERFLOW_UNIT, 0);
            overflow.extend_from_slice(&(rests.len() as u32).to_le_bytes());
            append(overflow, &rests[held..], width);
            // Larger than any count of a line, so that one comparison tells counts and places apart.
            (capacity + 1 + unit) as u32
        };
        line.0[LINE_ENTRY_BYTES..].copy_from_slice(&tail.to_le_bytes());
        self.lines.growing().push(line);
    }

    pub(super) fn finish(&mut self) {
        let overflow = self.overflow.growing();
        overflow.extend_from_slice(&[0; PADDING]);
        overflow.shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [
            self.ranks.bytes(),
            self.lines.bytes(),
            self.overflow.bytes(),
        ]
    }

    /// The store that [`BucketStore::sections`] was written from; `None` when the sizes contradict each other.
    pub(super) fn shared(
        width: usize,
        buckets: usize,
        bytes: &SharedBytes,
        [ranks, lines, overflow]: [Range<usize>; 3],
    ) -> Option<Self> {
        let store = Self {
            ranks: TableSection::shared(bytes, ranks)?,
            lines: TableSection::shared(bytes, lines)?,
            overflow: TableSection::shared(bytes, overflow)?,
            width,
        };
        let ranks = store.ranks.items().len();
        let fits = store.lines.items().len() == buckets && (ranks == 0 || ranks == buckets);
        fits.then_some(store)
    }

    /// Numbers of the buckets.
    fn buckets(&self) -> Range<usize> {
        0..self.lines.items().len()
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.buckets().map(|bucket| self.count(bucket)).sum()
    }

    /// Place of the overflow of a bucket, if it has one.
    #[inline]
    fn overflow_place(&self, line: &CacheLine) -> Option<usize> {
        // Up to the capacity the tail is a count, and nothing lies elsewhere.
        let unit = (line.tail() as usize).checked_sub(bucket_capacity(self.width) + 1)?;
        Some(unit * OVERFLOW_UNIT)
    }

    /// Overflow entries of a bucket, and the count of all its entries.
    fn range(&self, bucket: usize) -> (&[u8], usize) {
        let line = &self.lines.items()[bucket];
        match self.overflow_place(line) {
            None => (&[], line.tail() as usize),
            Some(at) => {
                let list = self.overflow.items().get(at..).unwrap_or_default();
                let (count, entries) = list.split_at_checked(4).unwrap_or_default();
                // A damaged file may tell of more than there is; whole ones never do.
                let most = entries.len() / self.width.max(1) + bucket_capacity(self.width);
                (entries, (u32::read(count) as usize).min(most))
            }
        }
    }

    /// Number of entries of a bucket.
    pub(super) fn count(&self, bucket: usize) -> usize {
        self.range(bucket).1
    }

    pub(super) fn bucket(&self, bucket: usize) -> Runs<'_> {
        let (more, count) = self.range(bucket);
        let held = count.min(bucket_capacity(self.width));
        let line = &self.lines.items()[bucket].0;
        Runs::of_line(line, held, more, count - held, self.width)
    }

    /// Rank of the first entry of a bucket; [`BucketStore::count_ranks`] comes before.
    pub(super) fn rank(&self, bucket: usize) -> usize {
        u32::from_le_bytes(self.ranks.items()[bucket]) as usize
    }

    pub(super) fn has_ranks(&self) -> bool {
        !self.ranks.items().is_empty()
    }

    pub(super) fn count_ranks(&mut self) {
        let mut before = 0;
        let ranks = self.buckets().map(|bucket| {
            let count = self.count(bucket) as u32;
            before += count;
            (before - count).to_le_bytes()
        });
        self.ranks = TableSection::Owned(ranks.collect());
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize>) {
        let lines = self.lines.items();
        buckets.for_each(|at| kernel::prefetch(lines, at));
    }

    pub(super) fn locate(&self, buckets: impl Iterator<Item = usize>) {
        let (lines, overflow) = (self.lines.items(), self.overflow.items());
        for at in buckets {
            // The line is there by now, and says whether a second access to memory follows.
            if let Some(at) = self.overflow_place(&lines[at]) {
                kernel::prefetch_overflow(overflow, at);
            }
        }
    }

    pub(super) fn probe<W: Word>(
        &self,
        probes: ProbeSet<'_>,
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let mut visitor = OverflowVisitor {
            lines: self,
            needle,
            hit,
        };
        W::run(ProbeBuckets {
            lines: self.lines.items(),
            width: self.width,
            capacity: bucket_capacity(self.width) as u32,
            probes,
            needle,
            visitor: &mut visitor,
        })
    }

    pub(super) fn view<W>(&self, split: AddressSplit<W>) -> BucketTable<'_, W> {
        BucketTable {
            split,
            lines: self.lines.items(),
            overflow: self.overflow.items(),
            width: self.width,
            capacity: bucket_capacity(self.width) as u32,
            unit: OVERFLOW_UNIT,
        }
    }
}

/// Compares the overflow of buckets too.
struct OverflowVisitor<'a, W> {
    lines: &'a BucketStore,
    needle: W,
    hit: &'a mut dyn FnMut(u32, W),
}

impl<W: Word> BucketVisitor<W> for OverflowVisitor<'_, W> {
    fn hit(&mut self, bucket: u32, entry: W) {
        (self.hit)(bucket, entry);
    }

    fn overflow(&mut self, bucket: u32, radius: u32) -> u64 {
        let width = self.lines.width;
        let (entries, count) = self.lines.range(bucket as usize);
        // A damaged file may say that a bucket with overflow has fewer entries than a line.
        let more = count.saturating_sub(bucket_capacity(width));
        let visit = &mut |_, rest| (self.hit)(bucket, rest);
        scan_run(entries, more, width, self.needle, radius, 0, visit);
        more as u64
    }
}
