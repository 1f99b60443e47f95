//! Expiry times of a run's documents: counts live documents, and estimates how many have expired or are deleted.

use crate::bits::AtomicBits;
use crate::run::footer::NEVER;
use crate::time::UnixMillis;

/// Number of documents whose times are summarised together: whole words of bits.
const BLOCK: usize = 1024;
/// Maximum number of blocks that an estimate counts.
const SAMPLED_BLOCKS: usize = 64;

/// Expiry times of the documents of a run, all ones for never; empty if none expires.
#[derive(Debug)]
pub(super) struct ExpiryTimes {
    all: Vec<u64>,
    /// Earliest and latest time in each block.
    ranges: Vec<(u64, u64)>,
}

impl ExpiryTimes {
    pub(super) fn new(all: Vec<u64>) -> Self {
        let range = |block: &[u64]| {
            let first = block.iter().copied().min().unwrap_or(NEVER);
            (first, block.iter().copied().max().unwrap_or(NEVER))
        };
        Self {
            ranges: all.chunks(BLOCK).map(range).collect(),
            all,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the expiry time of a document, all ones for never.
    pub(super) fn of(&self, document: u32) -> u64 {
        self.all.get(document as usize).copied().unwrap_or(NEVER)
    }

    /// Returns the memory in bytes.
    pub(super) fn resident(&self) -> usize {
        self.all.len() * 8 + self.ranges.len() * 16
    }

    /// Counts the documents that have neither expired nor a tombstone. If all documents live equally long, those that expire at about the
    /// same time are adjacent, and most blocks are counted as a whole.
    pub(super) fn live(&self, now: UnixMillis, tombstones: &AtomicBits) -> usize {
        match self.all.is_empty() {
            true => tombstones.len() - tombstones.count(),
            false => self.live_of_blocks(1, now, tombstones).0,
        }
    }

    /// Estimates the number of documents that have expired or have a tombstone, which is exact for up to 65,536 documents. Fast enough to be called
    /// every second.
    pub(super) fn waste(&self, now: UnixMillis, tombstones: &AtomicBits) -> usize {
        if self.all.is_empty() {
            return tombstones.count();
        }
        // Evenly spaced: documents that expire at about the same time are adjacent, or in no order at all.
        let step = self.ranges.len().div_ceil(SAMPLED_BLOCKS);
        let (live, counted) = self.live_of_blocks(step, now, tombstones);
        let live = live as u64 * self.all.len() as u64 / counted as u64;
        self.all.len() - live as usize
    }

    /// Counts the live documents of every `step`-th block, and all documents of these blocks.
    fn live_of_blocks(
        &self,
        step: usize,
        now: UnixMillis,
        tombstones: &AtomicBits,
    ) -> (usize, usize) {
        let blocks = self.all.chunks(BLOCK).zip(&self.ranges).enumerate();
        let (mut live, mut counted) = (0, 0);
        for (block, (times, &(first, last))) in blocks.step_by(step) {
            let start = block * BLOCK;
            counted += times.len();
            live += if last <= now.0 {
                0
            } else if first > now.0 {
                // `BLOCK` is a multiple of 64, so a block begins with a whole word.
                let words = start / 64..(start + times.len()).div_ceil(64);
                times.len() - tombstones.count_in(words)
            } else {
                let lives =
                    |(at, end): &(usize, &u64)| **end > now.0 && !tombstones.get(start + at);
                times.iter().enumerate().filter(lives).count()
            };
        }
        (live, counted)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_waste_of_many_is_about_right_whatever_their_order(
            mut expires in prop::collection::vec(0..1000_u64, 100_000..300_000), is_sorted: bool, now in 0..1100_u64,
        ) {
            // Some that never expire, and some that are dead.
            expires.iter_mut().step_by(7).for_each(|end| *end = NEVER);
            if is_sorted {
                expires.sort_unstable();
            }
            let tombstones = AtomicBits::new(expires.len());
            (0..expires.len()).step_by(5).for_each(|at| tombstones.set(at));
            let exact = (0..expires.len()).filter(|&at| expires[at] <= now || at % 5 == 0).count();
            let all = expires.len() as f64;
            let waste = ExpiryTimes::new(expires).waste(UnixMillis(now), &tombstones);
            prop_assert!((waste as f64 - exact as f64).abs() < 0.05 * all, "{waste} {exact}");
        }

        #[test]
        fn those_that_live_are_counted_one_by_one(
            mut expires in prop::collection::vec(0..50_u64, 0..5000), dead in prop::collection::vec(0..5000_usize, 0..100),
            is_sorted: bool, now in 0..60_u64,
        ) {
            if is_sorted {
                expires.sort_unstable();
            }
            let tombstones = AtomicBits::new(expires.len());
            let dead = dead.into_iter().filter(|&at| at < expires.len());
            dead.for_each(|at| tombstones.set(at));
            let wanted = (0..expires.len()).filter(|&at| expires[at] > now && !tombstones.get(at)).count();
            let times = ExpiryTimes::new(expires);
            prop_assert_eq!(times.live(UnixMillis(now), &tombstones), wanted);
            prop_assert_eq!(times.waste(UnixMillis(now), &tombstones), tombstones.len() - wanted);
        }
    }
}
