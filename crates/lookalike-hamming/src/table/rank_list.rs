//! Lists of ranks, in memory or in a file, in the form that [`Ranks`] reads.

use super::super::kernel::{self, RANK_PADDING, RankBytes, Ranks};
use super::super::shared_bytes::{SharedBytes, TableSection};
use std::ops::Range;

/// Ranks in memory, or in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct RankList {
    bytes: TableSection<u8>,
    width: RankBytes,
}

impl RankList {
    pub(super) fn new(width: RankBytes) -> Self {
        Self {
            bytes: TableSection::default(),
            width,
        }
    }

    /// Makes room for `count` ranks.
    pub(super) fn reserve(&mut self, count: usize) {
        let bytes = self.bytes.growing();
        bytes.reserve_exact(count * self.width.get() + RANK_PADDING);
        kernel::advise_huge_pages(bytes);
    }

    /// Adds the next rank.
    #[inline]
    pub(super) fn push(&mut self, rank: u64) {
        let bytes = self.bytes.growing();
        // All eight bytes, and then a truncation, because copies of a constant length need no call.
        bytes.extend_from_slice(&rank.to_le_bytes());
        bytes.truncate(bytes.len() + self.width.get() - 8);
    }

    /// Completes the list.
    pub(super) fn finish(&mut self) {
        self.bytes.growing().extend_from_slice(&[0; RANK_PADDING]);
    }

    /// Returns the bytes as in a file; empty if the list was not begun.
    pub(super) fn section(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Creates the list from the bytes that [`Self::section`] returned.
    pub(super) fn shared(
        width: RankBytes,
        bytes: &SharedBytes,
        range: Range<usize>,
    ) -> Option<Self> {
        let bytes = TableSection::shared(bytes, range)?;
        Some(Self { bytes, width })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.items().is_empty()
    }

    /// Returns true if the list has `count` ranks.
    pub(super) fn has(&self, count: usize) -> bool {
        self.bytes.items().len() == count * self.width.get() + RANK_PADDING
    }

    #[inline(always)]
    pub(super) fn view(&self) -> Ranks<'_> {
        Ranks::new(self.bytes.items(), self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn ranks_of_any_width_are_read_as_written(width in 4_u64..=8, ranks in prop::collection::vec(any::<u64>(), 1..30)) {
            let width = RankBytes::new(width).expect("4 to 8");
            let mut ranks: Vec<u64> = ranks.iter().map(|rank| rank >> (64 - 8 * width.get())).collect();
            ranks.sort_unstable();
            let mut list = RankList::new(width);
            list.reserve(ranks.len());
            ranks.iter().for_each(|&rank| list.push(rank));
            list.finish();
            let bytes: SharedBytes = Arc::new([&[9], list.section()].concat());
            let end = (*bytes).as_ref().len();
            let shared = RankList::shared(width, &bytes, 1..end).expect("inside");
            for list in [&list, &shared] {
                prop_assert!(list.has(ranks.len()) && !list.has(ranks.len() + 1));
                let view = list.view();
                for (at, &rank) in ranks.iter().enumerate() {
                    prop_assert_eq!(view.get(at) as u64, rank);
                    if let Some(next) = ranks.get(at + 1) {
                        prop_assert_eq!(view.range(at), (rank as usize, (next - rank) as usize));
                    }
                }
                prop_assert_eq!(view.get(ranks.len() + 9), 0);
            }
        }
    }
}
