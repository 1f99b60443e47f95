//! The store of a table as bits ([`Layout::Dense`](super::super::layout::Layout)), in the form that `kernel::dense` reads.

use super::super::code::Word;
use super::super::kernel::{
    self, BitWriter, DENSE_GROUP, DENSE_PADDING, Dense, EntryRange, LocateDense, RankBytes,
};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::for_each_unit;
use super::rank_list::RankList;
use std::ops::Range;

/// The three lists of bits, and the state of writing them.
#[derive(Clone, Debug, Default)]
pub(super) struct DenseStore {
    counts: RankList,
    unary: TableSection<u8>,
    entries: TableSection<u8>,
    entry_bits: u32,
    /// Number of entries, once the table is complete.
    len: usize,
    growing: Growing,
}

#[derive(Clone, Debug, Default)]
struct Growing {
    buckets: usize,
    entries: u64,
    unary: BitWriter,
    bits: BitWriter,
}

impl DenseStore {
    pub(super) fn new(entry_bits: u32, ranks: RankBytes) -> Self {
        Self {
            counts: RankList::new(ranks),
            entry_bits,
            ..Self::default()
        }
    }

    /// Makes room for `entries` entries in `buckets` buckets.
    pub(super) fn reserve(&mut self, entries: usize, buckets: usize) {
        // Sixteen bytes more, because the writer stores whole words and keeps part of the last.
        let bytes = |bits: usize| bits.div_ceil(8) + 16 + DENSE_PADDING;
        self.counts.reserve(buckets.div_ceil(DENSE_GROUP) + 1);
        let unary = self.unary.growing();
        unary.reserve_exact(bytes(buckets + entries));
        kernel::advise_huge_pages(unary);
        let bits = self.entries.growing();
        bits.reserve_exact(bytes(entries * self.entry_bits as usize));
        kernel::advise_huge_pages(bits);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, rests: &[W], sizes: &[u32]) {
        let growing = &mut self.growing;
        growing
            .bits
            .push_words(rests, self.entry_bits, self.entries.growing());
        let (counts, unary) = (&mut self.counts, self.unary.growing());
        for &size in sizes {
            // One count for 64 buckets, which is half a bit for each; the unary codes give the rest.
            if growing.buckets.is_multiple_of(DENSE_GROUP) {
                counts.push(growing.entries);
            }
            growing.buckets += 1;
            growing.entries += u64::from(size);
            // The writer takes at most 64 bits at a time: the last zeros of a bucket, at most 63, and its one.
            let mut zeros = size;
            while zeros > 63 {
                growing.unary.push(0, 63, unary);
                zeros -= 63;
            }
            growing.unary.push(1 << zeros, zeros + 1, unary);
        }
    }

    pub(super) fn finish(&mut self) {
        // The number of all entries follows the last group, and is the length of the table.
        self.len = self.growing.entries as usize;
        self.counts.push(self.growing.entries);
        self.counts.finish();
        self.growing.unary.finish(self.unary.growing());
        self.growing.bits.finish(self.entries.growing());
        self.unary.growing().shrink_to_fit();
        self.entries.growing().shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [
            self.counts.section(),
            self.unary.bytes(),
            self.entries.bytes(),
        ]
    }

    /// Creates the store from the sections that [`DenseStore::sections`] returned; `None` if their sizes are inconsistent.
    pub(super) fn shared(
        entry_bits: u32,
        ranks: RankBytes,
        buckets: usize,
        bytes: &SharedBytes,
        [counts, unary, entries]: [Range<usize>; 3],
    ) -> Option<Self> {
        let groups = buckets.div_ceil(DENSE_GROUP);
        let counts = RankList::shared(ranks, bytes, counts)?;
        let len = counts.view().get(groups);
        let store = Self {
            unary: TableSection::shared(bytes, unary)?,
            entries: TableSection::shared(bytes, entries)?,
            counts,
            entry_bits,
            len,
            growing: Growing::default(),
        };
        let room = |bits: usize| bits.div_ceil(8) + DENSE_PADDING;
        let counts = store.counts.view();
        let fits = store.counts.has(groups + 1)
            // As in packed tables: sums of them must not overflow.
            && (0..=groups).map(|at| counts.get(at)).is_sorted()
            && store.unary.items().len() == room(buckets.checked_add(len)?)
            && store.entries.items().len() == room(len.checked_mul(entry_bits as usize)?);
        fits.then_some(store)
    }

    #[inline(always)]
    pub(super) fn view(&self) -> Dense<'_> {
        Dense {
            counts: self.counts.view(),
            unary: self.unary.items(),
            entries: self.entries.items(),
            entry_bits: self.entry_bits as usize,
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize>) {
        let counts = self.counts.view();
        // A cache line holds the counts of sixteen groups if these have four bytes.
        for_each_unit(buckets, DENSE_GROUP * counts.per_line(), |at| {
            counts.prefetch(at / DENSE_GROUP);
        });
    }

    pub(super) fn prefetch_unary(&self, buckets: impl Iterator<Item = usize>) {
        let view = self.view();
        for_each_unit(buckets, DENSE_GROUP, |at| {
            let place = view.unary_place(at);
            kernel::prefetch(view.unary, place);
            // The unary codes of most groups are sixteen bytes, of which three words are read.
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
            // With one entry per bucket on average, more than a third of the buckets are empty.
            if range.count > 0 {
                kernel::prefetch(view.entries, first);
                kernel::prefetch(view.entries, last);
            }
        }
    }
}
