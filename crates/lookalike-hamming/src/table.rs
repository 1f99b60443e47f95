//! One table: its buckets in memory, in one of three layouts.
//!
//! The entries of a bucket are the stored bits of its codes, ascending. An entry's *rank* is the number of entries
//! before it in the table.

use super::build::Addressing;
use super::code::Word;
use super::design::TableKey;
use super::kernel::{self, Extent, Flipped, LineTable, Located, PackedTable, Split};
use super::layout::{Layout, entry_bytes};
use super::section::HeldBytes;
use bucket::Bucket;
use dense::DenseStore;
use lines::Lines;
use packed::Packed;
use std::ops::Range;

mod bucket;
mod dense;
mod lines;
mod packed;

/// A table of distinct codes.
#[derive(Clone, Debug)]
pub(super) struct Table<W> {
    pub(super) addressing: Addressing<W>,
    /// Errors in the address that probes forgive.
    pub(super) budget: u32,
    /// What to flip in an address for each probe, ascending: neighbouring buckets share cache lines.
    pub(super) flips: Vec<u32>,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Packed(Packed),
    Lines(Lines),
    Dense(DenseStore),
}

/// Flips of a table that are searched together: a table that forgives several errors has thousands, whose memory would
/// be gone from the cache before it is read.
pub(super) const PIECE: usize = 32;
/// Bytes that may be read beyond the last entry in whole bytes: kernels read eight at a time.
const PADDING: usize = 8;

/// Calls `each` with the first bucket of every run of buckets of one unit, a power of two.
#[inline(always)]
fn once_each(buckets: impl Iterator<Item = usize>, unit: usize, mut each: impl FnMut(usize)) {
    let mut last = usize::MAX;
    for at in buckets {
        if at / unit != last {
            last = at / unit;
            each(at);
        }
    }
}

/// Appends entries of `width` bytes.
fn append<W: Word>(entries: &mut Vec<u8>, rests: &[W], width: usize) {
    entries.reserve(rests.len() * width + PADDING);
    rests.iter().for_each(|rest| rest.append(width, entries));
}

/// All flips of at most `budget` of `bits` address bits, ascending.
pub(super) fn flips(bits: u32, budget: u32) -> Vec<u32> {
    let mut all = vec![0_u32];
    let mut newest = vec![0_u32];
    for _ in 0..budget.min(bits) {
        // Each flip once: bits are added above those there are.
        let grown = newest.iter().flat_map(|&flip| {
            let above = 32 - flip.leading_zeros();
            (above..bits).map(move |bit| flip | 1 << bit)
        });
        newest = grown.collect();
        all.extend_from_slice(&newest);
    }
    all.sort_unstable();
    all
}

impl<W: Word> Table<W> {
    pub(super) fn new(key: &TableKey, address: u128, layout: Layout) -> Self {
        let addressing = Addressing::new(address);
        let width = entry_bytes(W::BITS, addressing.address_bits);
        let store = match layout {
            Layout::Packed => Store::Packed(Packed::new(width)),
            Layout::Lines => Store::Lines(Lines::new(width)),
            Layout::Dense => Store::Dense(DenseStore::new(addressing.rest_bits)),
        };
        Self {
            addressing,
            budget: key.budget,
            flips: flips(addressing.address_bits, key.budget),
            store,
        }
    }

    /// Makes room for so many entries, which the sums of the buckets must not exceed.
    pub(super) fn reserve(&mut self, entries: usize) {
        let buckets = self.buckets();
        match &mut self.store {
            Store::Packed(packed) => packed.reserve(entries, buckets),
            Store::Lines(lines) => lines.reserve(buckets),
            Store::Dense(dense) => dense.reserve(entries, buckets),
        }
    }

    /// Adds the next buckets: their entries, and how many each of them has.
    pub(super) fn push(&mut self, rests: &[W], sizes: &[u32]) {
        match &mut self.store {
            Store::Packed(packed) => packed.push(rests, sizes),
            Store::Lines(lines) => lines.push(rests, sizes),
            Store::Dense(dense) => dense.push(rests, sizes),
        }
    }

    /// Ends the table.
    pub(super) fn finish(&mut self) {
        match &mut self.store {
            Store::Packed(packed) => packed.finish(),
            Store::Lines(lines) => lines.finish(),
            Store::Dense(dense) => dense.finish(),
        }
    }

    /// Prepares a whole table for random probes; one that is only to be written needs none of it.
    pub(super) fn settle(&self) {
        for section in self.sections() {
            kernel::gather_huge_pages(section);
        }
    }

    /// The table as it stands in a file: the parts that must be right for any search to end first.
    pub(super) fn sections(&self) -> [&[u8]; 3] {
        match &self.store {
            Store::Packed(packed) => packed.sections(),
            Store::Lines(lines) => lines.sections(),
            Store::Dense(dense) => dense.sections(),
        }
    }

    /// The table that [`Table::sections`] was written from; `None` when the sizes contradict each
    /// other.
    pub(super) fn held(
        key: &TableKey,
        address: u128,
        layout: Layout,
        bytes: &HeldBytes,
        sections: &[Range<usize>; 3],
    ) -> Option<Self> {
        let mut table = Self::new(key, address, layout);
        let (addressing, buckets) = (table.addressing, table.buckets());
        let width = entry_bytes(W::BITS, addressing.address_bits);
        let sections = sections.clone();
        table.store = match layout {
            Layout::Packed => Store::Packed(Packed::held(width, buckets, bytes, sections)?),
            Layout::Lines => Store::Lines(Lines::held(width, buckets, bytes, sections)?),
            Layout::Dense => {
                let bits = addressing.rest_bits;
                Store::Dense(DenseStore::held(bits, buckets, bytes, sections)?)
            }
        };
        Some(table)
    }

    fn buckets(&self) -> usize {
        1 << self.addressing.address_bits
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.len(),
            Store::Lines(lines) => lines.len(),
            Store::Dense(dense) => dense.len(),
        }
    }

    /// Memory of the table.
    pub(super) fn bytes(&self) -> usize {
        let stored: usize = self.sections().iter().map(|section| section.len()).sum();
        stored + size_of_val(self.flips.as_slice())
    }

    /// Pieces that the flips are searched in.
    pub(super) fn pieces(&self) -> usize {
        self.flips.len().div_ceil(PIECE)
    }

    /// The flips of a piece.
    #[inline(always)]
    pub(super) fn piece(&self, piece: usize) -> &[u32] {
        let start = piece * PIECE;
        &self.flips[start..self.flips.len().min(start + PIECE)]
    }

    /// Whether there are marks between directory and entries.
    #[inline(always)]
    pub(super) fn has_marks(&self) -> bool {
        matches!(self.store, Store::Dense(_))
    }

    /// Asks for the memory that the probes at these flips from `bucket` read first.
    pub(super) fn prefetch_directory(&self, bucket: u32, flips: &[u32]) {
        let buckets = flips.iter().map(|flip| (bucket ^ flip) as usize);
        match &self.store {
            Store::Packed(packed) => packed.prefetch_directory(buckets),
            Store::Lines(lines) => lines.prefetch_directory(buckets),
            Store::Dense(dense) => dense.prefetch_directory(buckets),
        }
    }

    /// Asks for the marks of a dense table, once the directory is there.
    pub(super) fn prefetch_marks(&self, bucket: u32, flips: &[u32]) {
        if let Store::Dense(dense) = &self.store {
            dense.prefetch_marks(flips.iter().map(|flip| (bucket ^ flip) as usize));
        }
    }

    /// Finds the entries of the probes, once directory and marks are there, and asks for their memory.
    pub(super) fn locate(&self, bucket: u32, flips: &[u32], out: &mut [Extent]) {
        let buckets = flips.iter().map(|flip| (bucket ^ flip) as usize);
        match &self.store {
            Store::Packed(packed) => packed.locate(buckets, out),
            Store::Lines(lines) => lines.locate(buckets),
            Store::Dense(dense) => dense.locate(bucket, flips, out),
        }
    }

    /// Visits bucket and stored bits of each entry within the radius of `needle`, the bits flipped in
    /// the number of its bucket included; how many were compared. `extents` is what [`Table::locate`] found.
    pub(super) fn probe(
        &self,
        probes: Flipped<'_>,
        extents: &[Extent],
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let located = Located { probes, extents };
        match &self.store {
            Store::Packed(packed) => packed.probe(located, needle, hit),
            Store::Lines(lines) => lines.probe(probes, needle, hit),
            Store::Dense(dense) => W::probe_dense(dense.view(), located, needle, hit),
        }
    }

    /// Whether a query has one probe of the table, which needs no marks.
    pub(super) fn is_probed_once(&self) -> bool {
        self.flips.len() == 1 && !self.has_marks()
    }

    fn split(&self) -> Split<W> {
        let Addressing { address, rest, .. } = self.addressing;
        Split { address, rest }
    }

    /// The table for a search that probes it once, where it is in lines.
    pub(super) fn lines(&self) -> Option<LineTable<'_, W>> {
        match &self.store {
            Store::Lines(lines) => Some(lines.view(self.split())),
            Store::Packed(_) | Store::Dense(_) => None,
        }
    }

    /// The same where it is packed.
    pub(super) fn packed(&self) -> Option<PackedTable<'_, W>> {
        match &self.store {
            Store::Packed(packed) => Some(packed.view(self.split())),
            Store::Lines(_) | Store::Dense(_) => None,
        }
    }

    fn bucket(&self, bucket: usize) -> Bucket<'_> {
        match &self.store {
            Store::Packed(packed) => Bucket::Bytes(packed.bucket(bucket)),
            Store::Lines(lines) => Bucket::Bytes(lines.bucket(bucket)),
            Store::Dense(dense) => {
                let (start, count) = dense.view().range(bucket);
                Bucket::Bits(dense.view(), start, count)
            }
        }
    }

    /// Rank of the first entry of a bucket; [`Table::count_ranks`] comes before.
    fn rank(&self, bucket: usize) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.range(bucket).0,
            Store::Lines(lines) => lines.rank(bucket),
            Store::Dense(dense) => dense.view().range(bucket).0,
        }
    }

    /// Whether [`Table::find`] can tell ranks.
    pub(super) fn has_ranks(&self) -> bool {
        match &self.store {
            Store::Packed(_) | Store::Dense(_) => true,
            Store::Lines(lines) => lines.has_ranks(),
        }
    }

    /// Makes ranks available.
    pub(super) fn count_ranks(&mut self) {
        if let Store::Lines(lines) = &mut self.store {
            lines.count_ranks();
        }
    }

    /// The position of a code in its bucket, when it is stored.
    fn position(&self, word: W) -> Option<usize> {
        let bucket = self.bucket(self.addressing.bucket(word) as usize);
        let rest = word.extract(self.addressing.rest);
        let mut found = None;
        bucket.scan(rest, 0, &mut |at, _| found = Some(at));
        found
    }

    /// The rank of a code, when it is stored.
    pub(super) fn find(&self, word: W) -> Option<usize> {
        let position = self.position(word)?;
        Some(self.rank(self.addressing.bucket(word) as usize) + position)
    }

    /// Whether a code is stored.
    pub(super) fn contains(&self, word: W) -> bool {
        self.position(word).is_some()
    }

    /// How many entries each bucket has, from the first to the last.
    pub(super) fn loads(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.buckets()).map(|bucket| match &self.store {
            Store::Packed(packed) => packed.range(bucket).1,
            Store::Lines(lines) => lines.count(bucket),
            Store::Dense(dense) => dense.view().range(bucket).1,
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
    fn flips_are_each_once_and_within_the_budget() {
        let found = flips(10, 3);
        let expected: Vec<u32> = (0..1 << 10)
            .filter(|flip: &u32| flip.count_ones() <= 3)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(flips(0, 5), [0]);
        assert_eq!(flips(2, 9), [0, 1, 2, 3]);
        assert_eq!(flips(32, 1).len(), 33);
    }
}
