//! The store of a table with a cache line for each bucket ([`Layout::CacheLineBuckets`](super::super::layout::Layout)).

use super::super::code::{Integer, Word};
use super::super::kernel::{self, BucketVisitor, CacheLine, ProbeBuckets, ProbeSet, RankBytes};
use super::super::layout::{LINE_ENTRY_BYTES, bucket_capacity};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::bucket::{Runs, scan_run};
use super::rank_list::RankList;
use super::single_probe::{AddressSplit, BucketTable};
use super::{PADDING, append};
use std::ops::Range;

/// Minimum unit: the overflow of a bucket begins at a multiple of at least this many bytes.
const MIN_UNIT: usize = 16;
/// Maximum unit, because a damaged file may have any.
const MAX_UNIT: usize = 1 << 20;

/// Returns the unit of the positions in the overflow for a table of `entries` entries: the smallest with which a tail of 32 bits can express all
/// positions, however the entries are distributed. `None` if there is none.
pub(in super::super) fn overflow_unit(entries: u64, buckets: u64, width: usize) -> Option<usize> {
    let capacity = bucket_capacity(width) as u64;
    // A list has at least one entry that its line does not hold, and begins with a number of four bytes.
    let lists = (entries / (capacity + 1)).min(buckets);
    let bytes = entries
        .checked_mul(width as u64)
        .and_then(|bytes| bytes.checked_add(4 * lists))?;
    // Up to the capacity, a tail is a number of entries; the larger values are left for positions.
    let room = (u64::from(u32::MAX) - capacity).checked_sub(1)?;
    let units = std::iter::successors(Some(MIN_UNIT), |unit| Some(2 * unit));
    let mut units = units.take_while(|&unit| unit <= MAX_UNIT);
    // Each list may leave most of its last unit unused.
    units.find(|&unit| lists + bytes / unit as u64 <= room)
}

#[derive(Clone, Debug)]
pub(super) struct BucketStore {
    lines: TableSection<CacheLine>,
    /// For each bucket with more entries than a line holds, at a multiple of `unit` bytes: the number of all its entries (4 bytes), and those that
    /// are not in the line.
    overflow: TableSection<u8>,
    /// Rank of the first entry of each bucket; empty until counted.
    ranks: RankList,
    /// Bytes of an entry.
    width: usize,
    /// Unit of the positions in the overflow, in bytes.
    unit: usize,
}

impl BucketStore {
    pub(super) fn new(width: usize, ranks: RankBytes, unit: usize) -> Self {
        Self {
            lines: TableSection::default(),
            overflow: TableSection::default(),
            ranks: RankList::new(ranks),
            width,
            unit,
        }
    }

    /// Makes room for `buckets` buckets.
    pub(super) fn reserve(&mut self, buckets: usize) {
        let lines = self.lines.growing();
        // Before the first line is written, because the system gives huge pages to untouched memory.
        lines.reserve_exact(buckets);
        kernel::advise_huge_pages(lines);
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
            // In ascending order: the next entry, and finally the tail, overwrite the surplus of a wide write.
            rest.write_wide(width, &mut line.0[i * width..]);
        }
        let tail = if held == rests.len() {
            held as u32
        } else {
            let overflow = self.overflow.growing();
            // Positions in units of 16 bytes or more, so that 32 bits reach the last one.
            let unit = overflow.len().div_ceil(self.unit);
            overflow.resize(unit * self.unit, 0);
            overflow.extend_from_slice(&(rests.len() as u32).to_le_bytes());
            append(overflow, &rests[held..], width);
            // Larger than any count of a line, so that one comparison distinguishes counts from positions.
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
            self.ranks.section(),
            self.lines.bytes(),
            self.overflow.bytes(),
        ]
    }

    /// Creates the store from the sections that [`BucketStore::sections`] returned; `None` if their sizes are inconsistent.
    pub(super) fn shared(
        width: usize,
        ranks: RankBytes,
        unit: usize,
        buckets: usize,
        bytes: &SharedBytes,
        sections: [Range<usize>; 3],
    ) -> Option<Self> {
        let [of_ranks, lines, overflow] = sections;
        let store = Self {
            ranks: RankList::shared(ranks, bytes, of_ranks)?,
            lines: TableSection::shared(bytes, lines)?,
            overflow: TableSection::shared(bytes, overflow)?,
            width,
            unit,
        };
        let fits = store.lines.items().len() == buckets
            && (1..=MAX_UNIT).contains(&unit)
            && (store.ranks.is_empty() || store.ranks.has(buckets));
        fits.then_some(store)
    }

    /// Returns the numbers of the buckets.
    fn buckets(&self) -> Range<usize> {
        0..self.lines.items().len()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.buckets().map(|bucket| self.count(bucket)).sum()
    }

    /// Returns the position of the overflow of a bucket, if it has one.
    #[inline]
    fn overflow_place(&self, line: &CacheLine) -> Option<usize> {
        // Up to the capacity the tail is a count, and all entries are in the line.
        let unit = (line.tail() as usize).checked_sub(bucket_capacity(self.width) + 1)?;
        Some(unit * self.unit)
    }

    /// Returns the overflow entries of a bucket, and the number of all its entries.
    fn range(&self, bucket: usize) -> (&[u8], usize) {
        let line = &self.lines.items()[bucket];
        match self.overflow_place(line) {
            None => (&[], line.tail() as usize),
            Some(at) => {
                let list = self.overflow.items().get(at..).unwrap_or_default();
                let (count, entries) = list.split_at_checked(4).unwrap_or_default();
                // A damaged file may claim more entries than there are; intact files never do.
                let most = entries.len() / self.width.max(1) + bucket_capacity(self.width);
                (entries, (u32::read(count) as usize).min(most))
            }
        }
    }

    /// Returns the number of entries of a bucket.
    pub(super) fn count(&self, bucket: usize) -> usize {
        self.range(bucket).1
    }

    pub(super) fn bucket(&self, bucket: usize) -> Runs<'_> {
        let (more, count) = self.range(bucket);
        let held = count.min(bucket_capacity(self.width));
        let line = &self.lines.items()[bucket].0;
        Runs::of_line(line, held, more, count - held, self.width)
    }

    /// Returns the rank of the first entry of a bucket; call [`BucketStore::count_ranks`] before.
    pub(super) fn rank(&self, bucket: usize) -> usize {
        self.ranks.view().get(bucket)
    }

    pub(super) fn has_ranks(&self) -> bool {
        !self.ranks.is_empty()
    }

    pub(super) fn count_ranks(&mut self) {
        let mut before = 0;
        self.ranks.reserve(self.lines.items().len());
        for bucket in self.buckets() {
            self.ranks.push(before);
            before += self.count(bucket) as u64;
        }
        self.ranks.finish();
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize>) {
        let lines = self.lines.items();
        buckets.for_each(|at| kernel::prefetch(lines, at));
    }

    pub(super) fn locate(&self, buckets: impl Iterator<Item = usize>) {
        let (lines, overflow) = (self.lines.items(), self.overflow.items());
        for at in buckets {
            // The line has arrived by now, and tells whether a second memory access follows.
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
            unit: self.unit,
        }
    }
}

/// Visitor that also compares the overflow of buckets.
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
        // A damaged file may claim that a bucket with overflow has fewer entries than a line.
        let more = count.saturating_sub(bucket_capacity(width));
        let visit = &mut |_, rest| (self.hit)(bucket, rest);
        scan_run(entries, more, width, self.needle, radius, 0, visit);
        more as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_overflow_grows_with_what_may_overflow() {
        // Twelve entries of five bytes fit a line.
        let of = |entries, buckets| overflow_unit(entries, buckets, 5);
        assert_eq!(of(0, 1), Some(16));
        assert_eq!(of(1 << 30, 1 << 27), Some(16));
        // All in one bucket, with seven of eight bytes in its line: a tail can express 2^32 - 8 units, of which the list may leave one unused.
        assert_eq!(overflow_unit((1 << 33) - 19, 1, 8), Some(16));
        assert_eq!(overflow_unit((1 << 33) - 18, 1, 8), Some(32));
        // Every bucket may have a list, and there are more lists than a tail can express.
        assert_eq!(of(13 << 32, 1 << 32), None);
        assert_eq!(of(u64::MAX, 1 << 32), None);
    }
}
