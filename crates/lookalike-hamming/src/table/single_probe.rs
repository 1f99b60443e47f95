//! Views of tables for a search that probes each of them once.

use super::super::code::Integer;
use super::super::kernel::{CacheLine, Ranks, prefetch, prefetch_overflow, prefetch_run};

/// Maximum number of tables that are searched in this way.
pub(in super::super) const MAX_TABLES: usize = 20;
/// Number of entries that are compared at a time.
const ENTRIES_PER_BLOCK: usize = 64;

/// Division of a code into the bits that address its bucket and those that are stored.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct AddressSplit<W> {
    pub(in super::super) address: W,
    pub(in super::super) rest: W,
}

/// Some entries of a bucket, at most 64: `count` entries, starting `place` bytes into `bytes`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct EntryRun<'a> {
    pub(in super::super) bytes: &'a [u8],
    pub(in super::super) place: usize,
    pub(in super::super) count: usize,
}

/// A table that is searched in this way.
pub(in super::super) trait SingleProbeTable<W>: Copy + Default {
    /// True if the first run of a bucket is a cache line.
    const IN_CACHE_LINES: bool;
    /// Position of the entries of a bucket, once it is known.
    type Place: Copy + Default;

    /// Returns the division of codes into address and stored bits.
    fn split(&self) -> AddressSplit<W>;
    /// Returns the bytes of an entry.
    fn width(&self) -> usize;
    /// Prefetches a bucket.
    fn prefetch(&self, bucket: u32);
    /// Reads a bucket that was prefetched, and prefetches the entries that it points to.
    fn locate(&self, bucket: u32) -> Self::Place;
    /// Returns run `number` of a bucket, counted from zero; `None` after the last.
    fn run(&self, bucket: u32, place: Self::Place, number: usize) -> Option<EntryRun<'_>>;
}

/// A table with a cache line for each bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct BucketTable<'a, W> {
    pub(in super::super) split: AddressSplit<W>,
    pub(in super::super) lines: &'a [CacheLine],
    /// Overflow of the buckets, in the format that the module `stored` describes.
    pub(in super::super) overflow: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
    /// Number of entries in a line.
    pub(in super::super) capacity: u32,
    /// Unit of the positions in the overflow, in bytes.
    pub(in super::super) unit: usize,
}

impl<'a, W> BucketTable<'a, W> {
    /// Returns the position of the overflow of a bucket; zero if it has none.
    #[inline(always)]
    fn overflow_place(&self, tail: u32) -> usize {
        tail.saturating_sub(self.capacity + 1) as usize * self.unit
    }

    /// Returns the entries of a bucket that its line does not hold, and their number.
    fn overflow_entries(&self, tail: u32) -> (&'a [u8], usize) {
        // Checked, because the tail of a damaged line may point anywhere.
        let list = self.overflow.get(self.overflow_place(tail)..);
        let (count, entries) = list
            .and_then(<[u8]>::split_first_chunk)
            .unwrap_or((&[0; 4], &[]));
        let count = u32::from_le_bytes(*count).saturating_sub(self.capacity);
        // A damaged file may claim more entries than there are; intact files never do.
        let most = entries.len() / self.width.max(1);
        (entries, (count as usize).min(most))
    }
}

impl<W: Integer> SingleProbeTable<W> for BucketTable<'_, W> {
    const IN_CACHE_LINES: bool = true;
    type Place = ();

    #[inline(always)]
    fn split(&self) -> AddressSplit<W> {
        self.split
    }

    #[inline(always)]
    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        prefetch(self.lines, bucket as usize);
    }

    #[inline(always)]
    fn locate(&self, bucket: u32) {
        // Prefetched whether there is overflow or not, because a branch on it would be mispredicted now and then.
        let tail = self.lines[bucket as usize].tail();
        prefetch_overflow(self.overflow, self.overflow_place(tail));
    }

    #[inline(always)]
    fn run(&self, bucket: u32, (): (), number: usize) -> Option<EntryRun<'_>> {
        let line = &self.lines[bucket as usize];
        let tail = line.tail();
        let Some(number) = number.checked_sub(1) else {
            return Some(EntryRun {
                bytes: &line.0,
                place: 0,
                count: tail.min(self.capacity) as usize,
            });
        };
        if tail <= self.capacity {
            return None;
        }
        let (bytes, count) = self.overflow_entries(tail);
        part_of(bytes, 0, count, self.width, number)
    }
}

/// A table with entries back to back.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PackedTable<'a, W> {
    pub(in super::super) split: AddressSplit<W>,
    /// Rank of the first entry of each bucket, and of the end.
    pub(in super::super) starts: Ranks<'a>,
    /// The entries, followed by eight bytes more.
    pub(in super::super) entries: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
}

/// Position of a bucket's entries among all entries.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PackedBucket {
    /// First byte.
    place: usize,
    /// Number of entries.
    count: usize,
}

impl<W: Integer> SingleProbeTable<W> for PackedTable<'_, W> {
    const IN_CACHE_LINES: bool = false;
    type Place = PackedBucket;

    #[inline(always)]
    fn split(&self) -> AddressSplit<W> {
        self.split
    }

    #[inline(always)]
    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        self.starts.prefetch(bucket as usize);
        self.starts.prefetch_next(bucket as usize);
    }

    #[inline(always)]
    fn locate(&self, bucket: u32) -> PackedBucket {
        let (first, count) = self.starts.range(bucket as usize);
        let place = first * self.width;
        prefetch_run(self.entries, place, count, self.width);
        PackedBucket { place, count }
    }

    #[inline(always)]
    fn run(&self, _: u32, bucket: PackedBucket, number: usize) -> Option<EntryRun<'_>> {
        let PackedBucket { place, count } = bucket;
        part_of(self.entries, place, count, self.width, number)
    }
}

/// Returns the entries of a list that are compared as its part `number`.
#[inline(always)]
fn part_of(
    bytes: &[u8],
    place: usize,
    count: usize,
    width: usize,
    number: usize,
) -> Option<EntryRun<'_>> {
    let before = number * ENTRIES_PER_BLOCK;
    (before < count).then(|| EntryRun {
        bytes,
        place: place + before * width,
        count: (count - before).min(ENTRIES_PER_BLOCK),
    })
}
