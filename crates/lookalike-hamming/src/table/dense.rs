//! The store of a table as bits ([`Layout::Dense`](super::super::layout::Layout)): as `kernel::dense` reads it.

use super::super::code::Word;
use super::super::kernel::{
    self, BitWriter, DENSE_GROUP, DENSE_PADDING, Dense, EntryRange, LocateDense,
};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::each_unit;
use super::packed::LINE_STARTS;
use std::ops::Range;

/// The three lists of bits, and what is not written yet.
#[derive(Clone, Debug, Default)]
pub(super) struct DenseStore {
    counts: TableSection<[u8; 4]>,
    unary: TableSection<u8>,
    entries: TableSection<u8>,
    entry_bits: u32,
    growing: Growing,
}

#[derive(Clone, Debug, Default)]
struct Growing {
    buckets: usize,
    entries: u32,
    unary: BitWriter,
    bits: BitWriter,
}

impl DenseStore {
    pub(super) fn new(entry_bits: u32) -> Self {
        Self {
            entry_bits,
            ..Self::default()
        }
    }

    /// Makes room for so many entries in so many buckets.
    pub(super) fn reserve(&mut self, entries: usize, buckets: usize) {
        // Sixteen more, since the writer stores whole words and keeps part of the last.
        let bytes = |bits: usize| bits.div_ceil(8) + 16 + DENSE_PADDING;
        let counts = self.counts.growing();
        counts.reserve_exact(buckets.div_ceil(DENSE_GROUP) + 1);
        kernel::ask_huge_pages(counts);
        let unary = self.unary.growing();
        unary.reserve_exact(bytes(buckets + entries));
        kernel::ask_huge_pages(unary);
        let bits = self.entries.growing();
        bits.reserve_exact(bytes(entries * self.entry_bits as usize));
        kernel::ask_huge_pages(bits);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, rests: &[W], sizes: &[u32]) {
        let growing = &mut self.growing;
        growing
            .bits
            .push_words(rests, self.entry_bits, self.entries.growing());
        let (counts, unary) = (self.counts.growing(), self.unary.growing());
        for &size in sizes {
            // One count for 64 buckets, half a bit each; the unary codes tell the rest.
            if growing.buckets.is_multiple_of(DENSE_GROUP) {
                counts.push(growing.entries.to_le_bytes());
            }
            growing.buckets += 1;
            growing.entries += size;
            // The writer takes 64 bits at a time: the last zeros of a bucket, 63 at most, and its one.
            let mut zeros = size;
            while zeros > 63 {
                growing.unary.push(0, 63, unary);
                zeros -= 63;
            }
            growing.unary.push(1 << zeros, zeros + 1, unary);
        }
    }

    pub(super) fn finish(&mut self) {
        // The number of all entries stands behind the last group: it is the length of the table.
        let all = self.growing.entries.to_le_bytes();
        self.counts.growing().push(all);
        self.growing.unary.finish(self.unary.growing());
        self.growing.bits.finish(self.entries.growing());
        self.unary.growing().shrink_to_fit();
        self.entries.growing().shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [
            self.counts.bytes(),
            self.unary.bytes(),
            self.entries.bytes(),
        ]
    }

    /// The store that [`DenseStore::sections`] was written from; `None` when the sizes contradict each other.
    pub(super) fn shared(
        entry_bits: u32,
        buckets: usize,
        bytes: &SharedBytes,
        [counts, unary, entries]: [Range<usize>; 3],
    ) -> Option<Self> {
        let store = Self {
            counts: TableSection::shared(bytes, counts)?,
            unary: TableSection::shared(bytes, unary)?,
            entries: TableSection::shared(bytes, entries)?,
            entry_bits,
            growing: Growing::default(),
        };
        let room = |bits: usize| bits.div_ceil(8) + DENSE_PADDING;
        let len = store.len();
        let fits = store.counts.items().len() == buckets.div_ceil(DENSE_GROUP) + 1
            && store.unary.items().len() == room(buckets + len)
            && store.entries.items().len() == room(len * entry_bits as usize);
        fits.then_some(store)
    }

    #[inline(always)]
    pub(super) fn view(&self) -> Dense<'_> {
        Dense {
            counts: self.counts.items(),
            unary: self.unary.items(),
            entries: self.entries.items(),
            entry_bits: self.entry_bits as usize,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        let all = self.counts.items().last();
        all.map_or(0, |&all| u32::from_le_bytes(all) as usize)
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize>) {
        let counts = self.counts.items();
        // A cache line holds the counts of sixteen groups.
        each_unit(buckets, DENSE_GROUP * LINE_STARTS, |at| {
            kernel::prefetch(counts, at / DENSE_GROUP);
        });
    }

    pub(super) fn prefetch_unary(&self, buckets: impl Iterator<Item = usize>) {
        let view = self.view();
        each_unit(buckets, DENSE_GROUP, |at| {
            let place = view.unary_place(at);
            kernel::prefetch(view.unary, place);
            // Those of most groups are sixteen bytes, of which three words are read.
            kernel::prefetch(view.unary, place + 23);
        });
    }

    pub(super) fn locate(&self, bucket: u32, xor_masks: &[u32], out: &mut [EntryRange]) {
        let view = self.view();
        kernel::run(LocateDense {
            table: view,
            bucket,
            xor_masks,
            out: &mut *out,
        });
        for &range in out.iter() {
            let (first, last) = view.place(range);
            // With one entry on average, more than a third of the buckets are empty.
            if range.count > 0 {
                kernel::prefetch(view.entries, first);
                kernel::prefetch(view.entries, last);
            }
        }
    }
}
