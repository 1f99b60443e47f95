//! One table: its buckets in memory, in one of three layouts.
//!
//! The entries of a bucket are the stored bits of its codes, ascending. An entry's *rank* is the number of entries
//! before it in the table.

use super::build::BuildAddressing;
use super::code::Word;
use super::kernel::{self, EntryRange, ProbeDense, ProbeLocations, ProbeSet, RankBytes};
use super::layout::{Layout, entry_bytes};
use super::shared_bytes::SharedBytes;
use super::table_key::TableKey;
use bucket::Bucket;
use cache_line_buckets::BucketStore;
pub(super) use cache_line_buckets::overflow_unit;
use dense::DenseStore;
use packed::PackedStore;
pub(super) use single_probe::{
    AddressSplit, BucketTable, MAX_TABLES, PackedTable, SingleProbeTable,
};
use std::ops::Range;

mod bucket;
mod cache_line_buckets;
mod dense;
mod packed;
mod rank_list;
mod single_probe;

/// A table of distinct codes.
#[derive(Clone, Debug)]
pub(super) struct ProbeTable<W> {
    pub(super) addressing: BuildAddressing<W>,
    /// Number of errors in the address that probes tolerate.
    pub(super) budget: u32,
    /// Bits that each probe flips in an address, ascending, because neighbouring buckets share cache lines.
    pub(super) xor_masks: Vec<u32>,
    pub(super) numbers: TableNumbers,
    store: TableStorage,
}

/// Sizes of the numbers in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableNumbers {
    /// Bytes of a rank.
    pub(super) ranks: RankBytes,
    /// Unit of the positions in the overflow, in bytes; only of cache-line buckets.
    pub(super) unit: usize,
}

#[derive(Clone, Debug)]
enum TableStorage {
    Packed(PackedStore),
    Buckets(BucketStore),
    Dense(DenseStore),
}

/// Number of xor masks of a table that are searched together: a table that tolerates several errors has thousands, whose memory would have left the
/// cache before it is read.
pub(super) const PIECE: usize = 32;
/// Bytes that may be read beyond the last entry in whole bytes, because kernels read eight at a time.
const PADDING: usize = 8;

/// Calls `each` with the first bucket of every run of buckets in one unit, which is a power of two.
#[inline(always)]
fn for_each_unit(buckets: impl Iterator<Item = usize>, unit: usize, mut each: impl FnMut(usize)) {
    // A shift, because a division costs as much as a probe.
    let shift = unit.trailing_zeros();
    let mut last = usize::MAX;
    for at in buckets {
        // Masks ascend and a unit is a power of two, so its buckets follow each other: one request for all of them.
        if at >> shift != last {
            last = at >> shift;
            each(at);
        }
    }
}

/// Appends entries of `width` bytes.
fn append<W: Word>(entries: &mut Vec<u8>, rests: &[W], width: usize) {
    // Each entry is written as a whole word and then cut, which needs the padding.
    entries.reserve(rests.len() * width + PADDING);
    rests.iter().for_each(|rest| rest.append(width, entries));
}

/// Returns all xor masks of at most `budget` of `bits` address bits, ascending.
pub(super) fn xor_masks(bits: u32, budget: u32) -> Vec<u32> {
    let mut all = vec![0_u32];
    let mut newest = vec![0_u32];
    for _ in 0..budget.min(bits) {
        let grown = newest.iter().flat_map(|&mask| {
            // Only bits above the highest one, or a mask would come up once for each order of its bits.
            let above = 32 - mask.leading_zeros();
            (above..bits).map(move |bit| mask | 1 << bit)
        });
        newest = grown.collect();
        all.extend_from_slice(&newest);
    }
    all.sort_unstable();
    all
}

impl<W: Word> ProbeTable<W> {
    pub(super) fn new(
        key: &TableKey,
        address: u128,
        layout: Layout,
        numbers: TableNumbers,
    ) -> Self {
        let addressing = BuildAddressing::new(address);
        let width = entry_bytes(W::BITS, addressing.address_bits);
        let TableNumbers { ranks, unit } = numbers;
        let store = match layout {
            Layout::Packed => TableStorage::Packed(PackedStore::new(width, ranks)),
            Layout::CacheLineBuckets => TableStorage::Buckets(BucketStore::new(width, ranks, unit)),
            Layout::Dense => TableStorage::Dense(DenseStore::new(addressing.rest_bits, ranks)),
        };
        Self {
            addressing,
            budget: key.budget,
            // Over the bits of bucket numbers, which are contiguous wherever they come from.
            xor_masks: xor_masks(addressing.address_bits, key.budget),
            numbers,
            store,
        }
    }

    /// Makes room for `entries` entries, which all buckets together must not exceed.
    pub(super) fn reserve(&mut self, entries: usize) {
        let buckets = self.buckets();
        match &mut self.store {
            TableStorage::Packed(packed) => packed.reserve(entries, buckets),
            TableStorage::Buckets(store) => store.reserve(buckets),
            TableStorage::Dense(dense) => dense.reserve(entries, buckets),
        }
    }

    /// Adds the next buckets: their entries, and the number of entries in each.
    pub(super) fn push(&mut self, rests: &[W], sizes: &[u32]) {
        match &mut self.store {
            TableStorage::Packed(packed) => packed.push(rests, sizes),
            TableStorage::Buckets(store) => store.push(rests, sizes),
            TableStorage::Dense(dense) => dense.push(rests, sizes),
        }
    }

    /// Completes the table.
    pub(super) fn finish(&mut self) {
        match &mut self.store {
            TableStorage::Packed(packed) => packed.finish(),
            TableStorage::Buckets(store) => store.finish(),
            TableStorage::Dense(dense) => dense.finish(),
        }
    }

    /// Prepares a complete table for random probes; a table that is only written does not need this.
    pub(super) fn settle(&self) {
        for section in self.sections() {
            kernel::gather_huge_pages(section);
        }
    }

    /// Returns the sections of the table as in a file, those first that must be right for any search to end.
    pub(super) fn sections(&self) -> [&[u8]; 3] {
        match &self.store {
            TableStorage::Packed(packed) => packed.sections(),
            TableStorage::Buckets(store) => store.sections(),
            TableStorage::Dense(dense) => dense.sections(),
        }
    }

    /// Creates the table from the sections that [`ProbeTable::sections`] returned; `None` if their sizes are inconsistent.
    pub(super) fn shared(
        key: &TableKey,
        address: u128,
        layout: Layout,
        numbers: TableNumbers,
        bytes: &SharedBytes,
        sections: &[Range<usize>; 3],
    ) -> Option<Self> {
        // Masks and addressing are computed again: the file has the bits of the address, and nothing that follows from them.
        let mut table = Self::new(key, address, layout, numbers);
        let (addressing, buckets) = (table.addressing, table.buckets());
        let width = entry_bytes(W::BITS, addressing.address_bits);
        let (sections, TableNumbers { ranks, unit }) = (sections.clone(), numbers);
        table.store = match layout {
            Layout::Packed => {
                TableStorage::Packed(PackedStore::shared(width, ranks, buckets, bytes, sections)?)
            }
            Layout::CacheLineBuckets => TableStorage::Buckets(BucketStore::shared(
                width, ranks, unit, buckets, bytes, sections,
            )?),
            Layout::Dense => {
                let bits = addressing.rest_bits;
                TableStorage::Dense(DenseStore::shared(bits, ranks, buckets, bytes, sections)?)
            }
        };
        Some(table)
    }

    fn buckets(&self) -> usize {
        1 << self.addressing.address_bits
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        match &self.store {
            TableStorage::Packed(packed) => packed.len(),
            TableStorage::Buckets(store) => store.len(),
            TableStorage::Dense(dense) => dense.len(),
        }
    }

    /// Returns the memory of the table in bytes.
    pub(super) fn bytes(&self) -> usize {
        let stored: usize = self.sections().iter().map(|section| section.len()).sum();
        stored + size_of_val(self.xor_masks.as_slice())
    }

    /// Returns the number of pieces in which the xor masks are searched.
    pub(super) fn pieces(&self) -> usize {
        self.xor_masks.len().div_ceil(PIECE)
    }

    /// Returns the xor masks of a piece.
    #[inline(always)]
    pub(super) fn piece(&self, piece: usize) -> &[u32] {
        let start = piece * PIECE;
        &self.xor_masks[start..self.xor_masks.len().min(start + PIECE)]
    }

    /// Returns true if the table has a unary directory between the counts and the entries.
    #[inline(always)]
    pub(super) fn has_unary_directory(&self) -> bool {
        matches!(self.store, TableStorage::Dense(_))
    }

    /// Prefetches the memory that the probes with these xor masks from `bucket` read first.
    pub(super) fn prefetch_directory(&self, bucket: u32, xor_masks: &[u32]) {
        let buckets = xor_masks.iter().map(|mask| (bucket ^ mask) as usize);
        match &self.store {
            TableStorage::Packed(packed) => packed.prefetch_directory(buckets),
            TableStorage::Buckets(store) => store.prefetch_directory(buckets),
            TableStorage::Dense(dense) => dense.prefetch_directory(buckets),
        }
    }

    /// Prefetches the unary directory of a dense table, once the directory has arrived.
    pub(super) fn prefetch_unary(&self, bucket: u32, xor_masks: &[u32]) {
        if let TableStorage::Dense(dense) = &self.store {
            dense.prefetch_unary(xor_masks.iter().map(|mask| (bucket ^ mask) as usize));
        }
    }

    /// Finds the entries of the probes, once both directories have arrived, and prefetches them.
    pub(super) fn locate(&self, bucket: u32, xor_masks: &[u32], out: &mut [EntryRange]) {
        let buckets = xor_masks.iter().map(|mask| (bucket ^ mask) as usize);
        match &self.store {
            TableStorage::Packed(packed) => packed.locate(buckets, out),
            TableStorage::Buckets(store) => store.locate(buckets),
            TableStorage::Dense(dense) => dense.locate(bucket, xor_masks, out),
        }
    }

    /// Visits the bucket and the stored bits of each entry within the radius of `needle`, where bits flipped in the number of its bucket count, too.
    /// Returns the number of entries compared. `ranges` is the result of [`ProbeTable::locate`].
    pub(super) fn probe(
        &self,
        probes: ProbeSet<'_>,
        ranges: &[EntryRange],
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let located = ProbeLocations { probes, ranges };
        match &self.store {
            TableStorage::Packed(packed) => packed.probe(located, needle, hit),
            TableStorage::Buckets(store) => store.probe(probes, needle, hit),
            TableStorage::Dense(dense) => W::run(ProbeDense {
                table: dense.view(),
                probes: located,
                needle,
                hit,
            }),
        }
    }

    /// Returns true if a query probes the table once, without a unary directory.
    pub(super) fn has_single_probe(&self) -> bool {
        self.xor_masks.len() == 1 && !self.has_unary_directory()
    }

    fn split(&self) -> AddressSplit<W> {
        let BuildAddressing { address, rest, .. } = self.addressing;
        AddressSplit { address, rest }
    }

    /// Returns the view for a search that probes the table once, if it has cache-line buckets.
    pub(super) fn bucket_table(&self) -> Option<BucketTable<'_, W>> {
        match &self.store {
            TableStorage::Buckets(store) => Some(store.view(self.split())),
            TableStorage::Packed(_) | TableStorage::Dense(_) => None,
        }
    }

    /// Returns the same view if the table is packed.
    pub(super) fn packed_table(&self) -> Option<PackedTable<'_, W>> {
        match &self.store {
            TableStorage::Packed(packed) => Some(packed.view(self.split())),
            TableStorage::Buckets(_) | TableStorage::Dense(_) => None,
        }
    }

    fn bucket(&self, bucket: usize) -> Bucket<'_> {
        match &self.store {
            TableStorage::Packed(packed) => Bucket::Bytes(packed.bucket(bucket)),
            TableStorage::Buckets(store) => Bucket::Bytes(store.bucket(bucket)),
            TableStorage::Dense(dense) => {
                let (start, count) = dense.view().range(bucket);
                Bucket::Bits(dense.view(), start, count)
            }
        }
    }

    /// Returns the rank of the first entry of a bucket; call [`ProbeTable::count_ranks`] before.
    fn rank(&self, bucket: usize) -> usize {
        match &self.store {
            TableStorage::Packed(packed) => packed.range(bucket).0,
            TableStorage::Buckets(store) => store.rank(bucket),
            TableStorage::Dense(dense) => dense.view().range(bucket).0,
        }
    }

    /// Returns true if [`ProbeTable::find`] can return ranks.
    pub(super) fn has_ranks(&self) -> bool {
        match &self.store {
            TableStorage::Packed(_) | TableStorage::Dense(_) => true,
            TableStorage::Buckets(store) => store.has_ranks(),
        }
    }

    /// Makes ranks available.
    pub(super) fn count_ranks(&mut self) {
        if let TableStorage::Buckets(store) = &mut self.store {
            store.count_ranks();
        }
    }

    /// Returns the position of a code in its bucket, if it is stored.
    fn position(&self, word: W) -> Option<usize> {
        let bucket = self.bucket(self.addressing.bucket(word) as usize);
        bucket.position(word.extract(self.addressing.rest))
    }

    /// Returns the rank of a code, if it is stored.
    pub(super) fn find(&self, word: W) -> Option<usize> {
        let position = self.position(word)?;
        // The ranks of a crafted file may be anything.
        let first = self.rank(self.addressing.bucket(word) as usize);
        first.checked_add(position)
    }

    /// Returns true if the code is stored.
    pub(super) fn contains(&self, word: W) -> bool {
        self.position(word).is_some()
    }

    /// Returns the number of entries of each bucket, from the first to the last.
    pub(super) fn loads(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.buckets()).map(|bucket| match &self.store {
            TableStorage::Packed(packed) => packed.range(bucket).1,
            TableStorage::Buckets(store) => store.count(bucket),
            TableStorage::Dense(dense) => dense.view().range(bucket).1,
        })
    }

    /// Visits all codes in order of rank.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(W)) {
        for number in 0..self.buckets() {
            let bucket = self.bucket(number);
            // Every entry is within the full width of any needle.
            bucket.scan(W::ZERO, W::BITS, &mut |_, rest| {
                visit(self.addressing.restored(number as u64, rest));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xor_masks_are_each_once_and_within_the_budget() {
        let found = xor_masks(10, 3);
        let expected: Vec<u32> = (0..1 << 10)
            .filter(|mask: &u32| mask.count_ones() <= 3)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(xor_masks(0, 5), [0]);
        assert_eq!(xor_masks(2, 9), [0, 1, 2, 3]);
        assert_eq!(xor_masks(32, 1).len(), 33);
    }
}
