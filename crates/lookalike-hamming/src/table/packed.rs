//! The store of a table with entries back to back ([`Layout::Packed`](super::super::layout::Layout)).

use super::super::code::Word;
use super::super::kernel::{self, EntryRange, ProbeLocations, ProbePacked, RankBytes};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::bucket::Runs;
use super::rank_list::RankList;
use super::single_probe::{AddressSplit, PackedTable};
use super::{PADDING, append, for_each_unit};
use std::ops::Range;

/// Number of four-byte starts in a cache line.
const LINE_STARTS: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct PackedStore {
    /// Rank of the first entry of each bucket, and of the end.
    starts: RankList,
    entries: TableSection<u8>,
    /// Bytes of an entry.
    width: usize,
    /// Number of entries.
    len: usize,
}

impl PackedStore {
    pub(super) fn new(width: usize, ranks: RankBytes) -> Self {
        Self {
            starts: RankList::new(ranks),
            entries: TableSection::default(),
            width,
            len: 0,
        }
    }

    /// Makes room for `entries` entries in `buckets` buckets.
    pub(super) fn reserve(&mut self, entries: usize, buckets: usize) {
        self.starts.reserve(buckets + 1);
        // The first bucket begins at zero; each bucket then adds its end, which is the start of the next.
        self.starts.push(0);
        let bytes = self.entries.growing();
        bytes.reserve_exact(entries * self.width + PADDING);
        kernel::advise_huge_pages(bytes);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, rests: &[W], sizes: &[u32]) {
        append(self.entries.growing(), rests, self.width);
        for &size in sizes {
            self.len += size as usize;
            self.starts.push(self.len as u64);
        }
    }

    pub(super) fn finish(&mut self) {
        self.starts.finish();
        let entries = self.entries.growing();
        entries.extend_from_slice(&[0; PADDING]);
        entries.shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [self.starts.section(), self.entries.bytes(), &[]]
    }

    /// Creates the store from the sections that [`Self::sections`] returned; `None` if their sizes are inconsistent, or the starts descend.
    pub(super) fn shared(
        width: usize,
        ranks: RankBytes,
        buckets: usize,
        bytes: &SharedBytes,
        [starts, entries, _]: [Range<usize>; 3],
    ) -> Option<Self> {
        let starts = RankList::shared(ranks, bytes, starts)?;
        let entries = TableSection::shared(bytes, entries)?;
        let (view, len) = (starts.view(), starts.view().get(buckets));
        let expected = len.checked_mul(width)?.checked_add(PADDING)?;
        let fits = starts.has(buckets + 1)
            && entries.items().len() == expected
            // The check proves that the starts are as they were written, not that this library wrote them.
            && (0..=buckets).map(|at| view.get(at)).is_sorted();
        fits.then_some(Self {
            starts,
            entries,
            width,
            len,
        })
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the rank of the first entry of a bucket, and the number of its entries.
    #[inline(always)]
    pub(super) fn range(&self, bucket: usize) -> (usize, usize) {
        self.starts.view().range(bucket)
    }

    pub(super) fn bucket(&self, bucket: usize) -> Runs<'_> {
        let (first, count) = self.range(bucket);
        let bytes = &self.entries.items()[first * self.width..];
        Runs::packed(bytes, count, self.width)
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize> + Clone) {
        let starts = self.starts.view();
        // Ranks of four bytes, as in all tables of fewer than 2^32 fingerprints.
        let Some(narrow) = starts.narrow() else {
            buckets.for_each(|at| {
                starts.prefetch(at);
                starts.prefetch_next(at);
            });
            return;
        };
        // Sixteen buckets share a line of starts. As masks ascend, one request serves those that differ in the low four bits.
        for_each_unit(buckets.clone(), LINE_STARTS, |at| {
            kernel::prefetch(narrow, at)
        });
        // The end of a bucket is in the next line now and then.
        buckets.for_each(|at| kernel::prefetch(narrow, at + 1));
    }

    pub(super) fn locate(&self, buckets: impl Iterator<Item = usize>, out: &mut [EntryRange]) {
        let starts = self.starts.view();
        match starts.narrow() {
            Some(narrow) => self.locate_by(buckets, out, |at| {
                let rank = |at: usize| u32::from_le_bytes(narrow[at]) as usize;
                (rank(at), rank(at + 1))
            }),
            None => self.locate_by(buckets, out, |at| (starts.get(at), starts.get(at + 1))),
        }
    }

    #[inline(always)]
    fn locate_by(
        &self,
        buckets: impl Iterator<Item = usize>,
        out: &mut [EntryRange],
        bounds: impl Fn(usize) -> (usize, usize),
    ) {
        let entries = self.entries.items();
        for (at, out) in buckets.zip(out) {
            let (first, end) = bounds(at);
            let count = end.saturating_sub(first);
            kernel::prefetch_run(entries, first * self.width, count, self.width);
            *out = EntryRange {
                first: first as u64,
                count: count as u32,
            };
        }
    }

    pub(super) fn probe<W: Word>(
        &self,
        located: ProbeLocations<'_>,
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        W::run(ProbePacked {
            entries: self.entries.items(),
            width: self.width,
            probes: located,
            needle,
            hit,
        })
    }

    pub(super) fn view<W>(&self, split: AddressSplit<W>) -> PackedTable<'_, W> {
        PackedTable {
            split,
            starts: self.starts.view(),
            entries: self.entries.items(),
            width: self.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A search panicked on them.
    #[test]
    fn starts_that_descend_are_refused() {
        for width in 4..=8 {
            let ranks = RankBytes::new(width).expect("4 to 8");
            let mut store = PackedStore::new(1, ranks);
            store.reserve(3, 2);
            store.push::<u64>(&[1, 2, 3], &[1, 2]);
            store.finish();
            let width = width as usize;
            let most = u64::MAX >> (64 - 8 * width);
            for (second, expected) in [(0, true), (1, true), (3, true), (4, false), (most, false)] {
                let mut bytes = store.sections().concat();
                bytes[width..2 * width].copy_from_slice(ranks.cut(&second.to_le_bytes()));
                let entries = 3 * width + 8;
                let sections = [0..entries, entries..bytes.len(), 0..0];
                let bytes: SharedBytes = Arc::new(bytes);
                let found = PackedStore::shared(1, ranks, 2, &bytes, sections).is_some();
                assert_eq!(found, expected, "{second}");
            }
        }
    }
}
