//! The store of a table with entries back to back ([`Layout::Packed`](super::super::layout::Layout)).

use super::super::code::Word;
use super::super::kernel::{self, EntryRange, ProbeLocations, ProbePacked};
use super::super::shared_bytes::{SharedBytes, TableSection};
use super::bucket::Runs;
use super::single_probe::{AddressSplit, PackedTable};
use super::{PADDING, append, each_unit};
use std::ops::Range;

/// Directory entries of four bytes in a cache line.
pub(super) const LINE_STARTS: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct PackedStore {
    /// Rank of the first entry of each bucket, and of the end.
    starts: TableSection<[u8; 4]>,
    entries: TableSection<u8>,
    /// Bytes of an entry.
    width: usize,
}

impl PackedStore {
    pub(super) fn new(width: usize) -> Self {
        Self {
            starts: TableSection::default(),
            entries: TableSection::default(),
            width,
        }
    }

    /// Makes room for so many entries in so many buckets.
    pub(super) fn reserve(&mut self, entries: usize, buckets: usize) {
        let starts = self.starts.growing();
        starts.reserve_exact(buckets + 1);
        kernel::ask_huge_pages(starts);
        // The first bucket begins at zero; each bucket then adds its end, which is the start of the next.
        starts.push([0; 4]);
        let bytes = self.entries.growing();
        bytes.reserve_exact(entries * self.width + PADDING);
        kernel::ask_huge_pages(bytes);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, rests: &[W], sizes: &[u32]) {
        append(self.entries.growing(), rests, self.width);
        let starts = self.starts.growing();
        let mut end = starts.last().map_or(0, |&end| u32::from_le_bytes(end));
        starts.extend(sizes.iter().map(|size| {
            end += size;
            end.to_le_bytes()
        }));
    }

    pub(super) fn finish(&mut self) {
        let entries = self.entries.growing();
        entries.extend_from_slice(&[0; PADDING]);
        entries.shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [self.starts.bytes(), self.entries.bytes(), &[]]
    }

    /// The store that [`Self::sections`] was written from; `None` when the sizes contradict each other, or the starts descend.
    pub(super) fn shared(
        width: usize,
        buckets: usize,
        bytes: &SharedBytes,
        [starts, entries, _]: [Range<usize>; 3],
    ) -> Option<Self> {
        let store = Self {
            starts: TableSection::shared(bytes, starts)?,
            entries: TableSection::shared(bytes, entries)?,
            width,
        };
        let fits = store.starts.items().len() == buckets + 1
            && store.entries.items().len() == store.len() * width + PADDING
            // Their check says that they are as they were written, not that it was us who wrote them.
            && (store.starts.items()).is_sorted_by_key(|&start| u32::from_le_bytes(start));
        fits.then_some(store)
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        let end = self.starts.items().last();
        end.map_or(0, |&end| u32::from_le_bytes(end) as usize)
    }

    /// Rank of the first entry of a bucket, and how many it has.
    #[inline(always)]
    pub(super) fn range(&self, bucket: usize) -> (usize, usize) {
        let starts = self.starts.items();
        let rank = |at: usize| u32::from_le_bytes(starts[at]) as usize;
        let first = rank(bucket);
        (first, rank(bucket + 1) - first)
    }

    pub(super) fn bucket(&self, bucket: usize) -> Runs<'_> {
        let (first, count) = self.range(bucket);
        let bytes = &self.entries.items()[first * self.width..];
        Runs::packed(bytes, count, self.width)
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize> + Clone) {
        let starts = self.starts.items();
        // Sixteen buckets share a line of starts: with masks in ascending order one request serves those that
        // differ in the low four bits.
        each_unit(buckets.clone(), LINE_STARTS, |at| {
            kernel::prefetch(starts, at)
        });
        // Where a bucket ends, which is in the next line now and then.
        buckets.for_each(|at| kernel::prefetch(starts, at + 1));
    }

    pub(super) fn locate(&self, buckets: impl Iterator<Item = usize>, out: &mut [EntryRange]) {
        let entries = self.entries.items();
        for (at, out) in buckets.zip(out) {
            let (first, count) = self.range(at);
            kernel::prefetch_run(entries, first * self.width, count, self.width);
            *out = EntryRange {
                first: first as u32,
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
            starts: self.starts.items(),
            entries: self.entries.items(),
            width: self.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A search panicked in them.
    #[test]
    fn starts_that_descend_are_refused() {
        let mut store = PackedStore::new(1);
        store.reserve(3, 2);
        store.push::<u64>(&[1, 2, 3], &[1, 2]);
        store.finish();
        for (second, expected) in [
            (0, true),
            (1, true),
            (3, true),
            (4, false),
            (u32::MAX, false),
        ] {
            let mut bytes = store.sections().concat();
            bytes[4..8].copy_from_slice(&second.to_le_bytes());
            let sections = [0..12, 12..bytes.len(), 0..0];
            let bytes: SharedBytes = Arc::new(bytes);
            let found = PackedStore::shared(1, 2, &bytes, sections).is_some();
            assert_eq!(found, expected, "{second}");
        }
    }
}
