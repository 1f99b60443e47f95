//! Sorting with several threads.

use std::cmp::Ordering;

use bytemuck::Zeroable;
use lookalike_hamming::threads::map_parallel;

use crate::parallel::{PARALLEL_MIN, copy_lists, map_parallel_limited};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::are_mapped;

/// Average number of runs that each thread sorts.
const RUNS: usize = 4;

/// Number of items sampled from each run to choose the bounds of the ranges.
const SAMPLED: usize = 64;

// A key of one `u64` would align it to 16 bytes.
/// A number with the key that it is sorted by, in 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable)]
pub(crate) struct KeyedNumber {
    high: u32,
    low: u32,
    pub(crate) number: u32,
}

impl KeyedNumber {
    pub(crate) fn new(key: u64, number: u32) -> Self {
        Self {
            high: (key >> 32) as u32,
            low: key as u32,
            number,
        }
    }

    pub(crate) fn key(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// A comparison that looks up its data elsewhere: an indirect call costs little next to that, and all such orders share the code
/// of one sort.
pub(crate) type ItemOrder<'a, T> = dyn Fn(&T, &T) -> Ordering + Sync + 'a;

/// Sorts by a total order in which no two items are equal, so that the result is the same for any number of threads.
///
/// Takes O(n log n / threads) time, and memory for a copy of the items unless they are few or there is one thread.
pub(crate) fn sort_unequal_by<T: Copy + Send + Sync>(
    items: &mut [T],
    threads: usize,
    compare: impl Fn(&T, &T) -> Ordering + Sync,
) {
    let compare = &compare;
    if threads < 2 || items.len() < PARALLEL_MIN {
        items.sort_unstable_by(compare);
        return;
    }
    // Some runs are already in order: a thread that gets those takes others instead of waiting.
    let length = items.len().div_ceil(threads * RUNS);
    map_parallel_limited(items.chunks_mut(length), threads, |run| {
        run.sort_unstable_by(compare);
    });
    let runs: Vec<&[T]> = items.chunks(length).collect();
    let bounds = bounds(&runs, threads, compare);
    let range = |number: usize| -> TableColumn<T> {
        let before = |run: &[T], number: usize| match bounds.get(number) {
            None => run.len(),
            Some(bound) => run.partition_point(|item| compare(item, bound) == Ordering::Less),
        };
        let mut range = TableColumn::new();
        for run in &runs {
            let from = number.checked_sub(1).map_or(0, |last| before(run, last));
            range.extend_from_slice(&run[from..before(run, number)]);
        }
        match are_mapped() {
            // The stable sort detects the sorted runs and merges them. It takes half of their memory.
            false => range.sort_by(compare),
            // Memory is short if arrays are on disk, so the sort must work in place.
            true => range.sort_unstable_by(compare),
        }
        range
    };
    let ranges = map_parallel(0..=bounds.len(), range);
    let ranges: Vec<&[T]> = ranges.iter().map(|range| &range[..]).collect();
    // The ranges ascend: each ends before the bound at which the next one begins.
    copy_lists(items, &ranges, threads);
}

/// Returns items that divide all runs into `ranges` ranges of about equal length.
fn bounds<T: Copy>(runs: &[&[T]], ranges: usize, compare: &impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let sample = |run: &&[T]| -> Vec<T> {
        // The runs are sorted, so evenly spaced items are quantiles of the run.
        let step = run.len().div_ceil(SAMPLED);
        run.iter().step_by(step.max(1)).copied().collect()
    };
    let mut sampled: Vec<T> = runs.iter().flat_map(sample).collect();
    sampled.sort_unstable_by(compare);
    (1..ranges)
        // Runs have nearly the same length, so each has as much weight in the sample.
        .map(|number| sampled[number * sampled.len() / ranges])
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn any_number_of_threads_sorts_like_one(
            seed in any::<u64>(),
            length in prop_oneof![0..10_usize, PARALLEL_MIN - 1..3 * PARALLEL_MIN],
            bits in 1..40_u32,
            threads in 1..10_usize,
        ) {
            // Few different keys, or many; a part is already sorted.
            let key = |at: usize| match at % 3 {
                0 => at as u64,
                _ => seed.wrapping_mul(2 * at as u64 + 1) >> (64 - bits),
            };
            let mut items: Vec<(u64, u32)> = (0..length).map(|at| (key(at), at as u32)).collect();
            let mut expected = items.clone();
            expected.sort();
            sort_unequal_by(&mut items, threads, Ord::cmp);
            prop_assert_eq!(items, expected);
        }
    }
}
