//! Expiry times of a run's documents: counts live documents exactly, and estimates how many have expired.

use crate::bits::AtomicBits;
use crate::run::footer::NEVER;
use crate::time::UnixMillis;

/// Number of documents whose times are summarised together: whole words of bits.
const BLOCK: usize = 1024;
/// Number of times in a sample.
const SAMPLED: usize = 1 << 12;

/// Expiry times of the documents of a run, all ones for never; empty if none expires.
#[derive(Debug)]
pub(super) struct ExpiryTimes {
    all: Vec<u64>,
    /// Earliest and latest time in each block.
    ranges: Vec<(u64, u64)>,
    sample: ExpirySample,
}

impl ExpiryTimes {
    pub(super) fn new(all: Vec<u64>) -> Self {
        let range = |block: &[u64]| {
            let first = block.iter().copied().min().unwrap_or(NEVER);
            (first, block.iter().copied().max().unwrap_or(NEVER))
        };
        Self {
            ranges: all.chunks(BLOCK).map(range).collect(),
            sample: ExpirySample::of(&all),
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
        // Without the sample, which has at most 32 KiB.
        self.all.len() * 8 + self.ranges.len() * 16
    }

    /// Returns the approximate share of documents that have expired; it is one only if all have.
    pub(super) fn share(&self, now: UnixMillis) -> f64 {
        self.sample.share(now)
    }

    /// Counts the documents that have neither expired nor a tombstone. If all documents live equally long, those that expire at about the
    /// same time are adjacent, and most blocks are counted as a whole.
    pub(super) fn live(&self, now: UnixMillis, tombstones: &AtomicBits) -> usize {
        if self.all.is_empty() {
            return tombstones.len() - tombstones.count();
        }
        let blocks = self.all.chunks(BLOCK).zip(&self.ranges).enumerate();
        let live = blocks.map(|(block, (times, &(first, last)))| {
            let start = block * BLOCK;
            if last <= now.0 {
                0
            } else if first > now.0 {
                // `BLOCK` is a multiple of 64, so a block begins with a whole word.
                let words = start / 64..(start + times.len()).div_ceil(64);
                times.len() - tombstones.count_in(words)
            } else {
                let lives =
                    |(at, end): &(usize, &u64)| **end > now.0 && !tombstones.get(start + at);
                times.iter().enumerate().filter(lives).count()
            }
        });
        live.sum()
    }
}

/// Evenly sampled expiry times of a run's documents, and the latest of all.
#[derive(Debug)]
struct ExpirySample {
    sorted: Vec<u64>,
    last: u64,
}

impl ExpirySample {
    fn of(expires: &[u64]) -> Self {
        let step = expires.len().div_ceil(SAMPLED).max(1);
        // One from each stretch, but at varying positions, because times may be periodic.
        let place = |stretch: usize| {
            let mixed = (stretch as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            stretch * step + mixed as usize % step
        };
        let stretches = 0..expires.len() / step;
        let mut sorted: Vec<u64> = stretches.map(|at| expires[place(at)]).collect();
        sorted.sort_unstable();
        let last = expires.iter().copied().max().unwrap_or(NEVER);
        Self { sorted, last }
    }

    /// Returns the estimated share of documents that have expired; it is one only if all have.
    fn share(&self, now: UnixMillis) -> f64 {
        if self.last <= now.0 {
            return 1.0;
        }
        // With a sample of 4096, the standard error of the share is below one percent, and the share only decides whether a rewrite is due.
        let expired = self.sorted.partition_point(|&end| end <= now.0);
        // The last entry may be missing from the sample.
        (expired as f64 / (self.sorted.len() + 1) as f64).min(0.999)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_share_of_a_sample_is_about_that_of_all(mut expires in prop::collection::vec(0..1000_u64, 20_000..40_000), now in 0..1100_u64) {
            // Some that never expire.
            expires.iter_mut().step_by(7).for_each(|end| *end = NEVER);
            let exact = expires.iter().filter(|&&end| end <= now).count() as f64 / expires.len() as f64;
            let share = ExpirySample::of(&expires).share(UnixMillis(now));
            prop_assert!((share - exact).abs() < 0.05, "{share} {exact}");
            prop_assert!(share < 1.0);
        }

        #[test]
        fn all_have_expired_when_the_last_has_and_not_before(expires in prop::collection::vec(1..1_000_000_u64, 1..20_000)) {
            let sample = ExpirySample::of(&expires);
            let last = expires.iter().copied().max().unwrap_or(0);
            prop_assert!(sample.share(UnixMillis(last)) >= 1.0);
            prop_assert!(sample.share(UnixMillis(last - 1)) < 1.0);
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
        }
    }
}
