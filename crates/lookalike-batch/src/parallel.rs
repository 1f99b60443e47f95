//! Parallel loops, and columns filled by several threads with the same values for any number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};

use bytemuck::Zeroable;
use lookalike_hamming::threads::{
    OrderedResults, in_parallel, join_all, map_parallel, spawn_scoped,
};

use crate::locks::lock;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::trim;

/// Number of positions below which the caller's thread does all the work.
pub(crate) const PARALLEL_MIN: usize = 1 << 14;

/// Number of shares per thread: when some shares take longer, the threads that finish early take others.
const SHARES: usize = 8;

/// Maximum number of positions between two checks of how much of the tables on disk is resident.
const TRIM_INTERVAL_POSITIONS: usize = 1 << 14;

/// Runs `work` on each item, on at most `threads` threads, each of which takes the next item when it has finished one. The results are in the
/// order of the items.
pub(crate) fn map_parallel_limited<I, R: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    threads: usize,
    work: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.map(work).collect();
    }
    let results = OrderedResults::new(items.len());
    let items = Mutex::new(items.enumerate());
    in_parallel(threads, &|_| {
        loop {
            let Some((number, item)) = lock(&items).next() else {
                return;
            };
            results.set(number, work(item));
        }
    });
    results.into_vec()
}

/// Returns the number of positions in each share of the work.
pub(crate) fn share_length(positions: usize, threads: usize) -> usize {
    match threads < 2 || positions < PARALLEL_MIN {
        // At least one, since slices cannot be divided into shares of nothing.
        true => positions.max(1),
        false => positions
            .div_ceil(threads * SHARES)
            .max(PARALLEL_MIN / SHARES),
    }
}

/// Runs `work` on consecutive ranges of positions. The results are in the order of the ranges; there is at least one.
pub(crate) fn in_ranges<R: Send>(
    positions: usize,
    threads: usize,
    work: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let length = share_length(positions, threads);
    // Without positions there is one empty range, so callers can rely on a first result.
    let ranges = positions.div_ceil(length).max(1);
    let range = |number: usize| number * length..positions.min((number + 1) * length);
    map_parallel_limited((0..ranges).map(range), threads, work)
}

/// Returns a column with the value of each position.
pub(crate) fn column<T: Zeroable + Send>(
    positions: usize,
    threads: usize,
    value: impl Fn(usize) -> T + Sync,
) -> TableColumn<T> {
    // Pages that the system provides zeroed, when a thread first writes to them.
    let mut column = TableColumn::zeroed(positions);
    // The values may be computed from tables on disk, which the threads together can read at gigabytes per second.
    let length = share_length(positions, threads).min(TRIM_INTERVAL_POSITIONS);
    let parts = column.chunks_mut(length).enumerate();
    map_parallel_limited(parts, threads, |(number, part)| {
        trim();
        for (at, cell) in part.iter_mut().enumerate() {
            *cell = value(number * length + at);
        }
    });
    column
}

/// Returns a column of classes in the order of `classes`. An empty column stays empty, and one that is too short ends in zeros.
pub(crate) fn sorted<T: Copy + Zeroable + Send + Sync>(
    values: &[T],
    classes: &[u32],
    threads: usize,
) -> TableColumn<T> {
    let positions = if values.is_empty() { 0 } else { classes.len() };
    column(positions, threads, |rank| {
        let value = values.get(classes[rank] as usize);
        value.copied().unwrap_or_else(T::zeroed)
    })
}

/// Returns the inverse of a permutation of `0..order.len()`.
pub(crate) fn inverse(order: &[u32], threads: usize) -> TableColumn<u32> {
    if threads < 2 || order.len() < PARALLEL_MIN {
        let mut positions = TableColumn::zeroed(order.len());
        for (position, &value) in (0..).zip(order) {
            positions[value as usize] = position;
        }
        return positions;
    }
    let positions: TableColumn<AtomicU32> = TableColumn::zeroed(order.len());
    in_ranges(order.len(), threads, |range| {
        for position in range {
            // Each position is written once, by one thread, and read after all threads have been joined, so no ordering is
            // needed.
            positions[order[position] as usize].store(position as u32, Ordering::Relaxed);
        }
    });
    positions.into_numbers()
}

/// Concatenates lists, with several threads.
pub(crate) fn concatenated<T: Copy + Zeroable + Send + Sync>(
    lists: &[&[T]],
    threads: usize,
) -> TableColumn<T> {
    let mut all = TableColumn::zeroed(lists.iter().map(|list| list.len()).sum());
    copy_lists(&mut all, lists, threads);
    all
}

/// Copies lists one after another into `all`, which has exactly their total length. A list is never divided between threads.
pub(crate) fn copy_lists<T: Copy + Send + Sync>(all: &mut [T], lists: &[&[T]], threads: usize) {
    let threads = if all.len() < PARALLEL_MIN { 1 } else { threads };
    let mut rest = all;
    let places = lists.iter().map(|list| {
        rest.split_off_mut(..list.len())
            .expect("room for all lists")
    });
    let places: Vec<&mut [T]> = places.collect();
    map_parallel_limited(places.into_iter().zip(lists), threads, |(place, list)| {
        place.copy_from_slice(list);
    });
}

/// Runs the same work on `threads` threads, including the caller's, and waits for all of them. The results are in the order of the threads.
///
/// # Errors
/// Returns the first error in the order of the threads.
pub(crate) fn run_on_threads<R: Send, E: Send>(
    threads: usize,
    work: impl Fn() -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    map_parallel(0..threads.max(1), |_| work())
        .into_iter()
        .collect()
}

/// Runs `work` on each item, on several threads, and passes the results to `hand_on` in the order of the items. At most, a thread has one
/// result in work and two waiting.
///
/// # Errors
/// Returns the first error in the order of the items.
pub(crate) fn in_order<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<R, E> + Sync,
    mut hand_on: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    if threads < 2 || items.len() < 2 {
        return items.into_iter().try_for_each(|item| hand_on(work(item)?));
    }
    let count = items.len();
    std::thread::scope(|scope| {
        let work = &work;
        let begin = |_| {
            let (dealer, dealt) = mpsc::channel::<T>();
            // One result in the channel and one being sent: threads do not wait for short delays of the receiver, and memory stays bounded.
            let (sender, results) = mpsc::sync_channel(1);
            // Sending fails after an error, when nobody receives any more.
            let mut results_of = move |item| sender.send(work(item)).is_ok();
            let worker = spawn_scoped(scope, move || dealt.into_iter().all(&mut results_of));
            Some(((worker.ok()?, dealer), results))
        };
        let (workers, results): (Vec<_>, Vec<_>) = (0..threads).map_while(begin).unzip();
        let (workers, dealers): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
        let started = results.len();
        if started == 0 {
            return items.into_iter().try_for_each(|item| hand_on(work(item)?));
        }
        for (number, item) in items.into_iter().enumerate() {
            // Round robin, the order in which results are received: a thread never waits while another must first deliver a later item.
            dealers[number % started]
                .send(item)
                .expect("it receives all items");
        }
        // This was all.
        drop(dealers);
        let handed_on = (0..count).try_for_each(|number| {
            let result = results[number % started].recv();
            hand_on(result.expect("each item has a result")?)
        });
        // Workers with more results to send end once the receivers are dropped.
        drop(results);
        join_all(workers);
        handed_on
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lengths below and above the limit for a single thread.
    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![0..10_usize, PARALLEL_MIN - 1..3 * PARALLEL_MIN]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn any_number_of_threads_fills_a_column_as_one_does(length in lengths(), threads in 1..10_usize, factor in any::<u64>()) {
            let value = |at: usize| (at as u64).wrapping_mul(factor);
            prop_assert_eq!(column(length, threads, value), (0..length).map(value).collect::<Vec<u64>>());
            let ranges: Vec<usize> = in_ranges(length, threads, |range| range).into_iter().flatten().collect();
            prop_assert_eq!(ranges, (0..length).collect::<Vec<usize>>());
            let longest = in_ranges(length, threads, |range| range.len()).into_iter().max();
            prop_assert!(longest <= Some(length.div_ceil(threads).max(PARALLEL_MIN - 1)));
        }

        #[test]
        fn results_are_in_the_order_of_items_whoever_worked_on_them(count in 0..50_usize, threads in 1..6_usize) {
            let results = map_parallel_limited(0..count, threads, |item| {
                std::thread::yield_now();
                item * 3
            });
            prop_assert_eq!(results, (0..count).map(|item| item * 3).collect::<Vec<usize>>());
        }

        #[test]
        fn each_value_is_at_the_position_that_the_inverse_says(length in lengths(), threads in 1..10_usize, factor in any::<u64>()) {
            let mut order: Vec<u32> = (0..length as u32).collect();
            order.sort_unstable_by_key(|&value| u64::from(value + 1).wrapping_mul(factor | 1));
            let positions = inverse(&order, threads);
            prop_assert_eq!(positions.len(), order.len());
            for (position, &value) in order.iter().enumerate() {
                prop_assert_eq!(positions[value as usize] as usize, position);
            }
        }

        #[test]
        fn lists_are_joined_in_their_order(
            lengths in prop::collection::vec(prop_oneof![0..20_usize, 0..2 * PARALLEL_MIN], 0..12),
            threads in 1..10_usize,
        ) {
            let lists: Vec<Vec<u32>> = (0..).zip(&lengths).map(|(list, &length)| (0..length as u32).map(|at| at * 13 + list).collect()).collect();
            let slices: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(concatenated(&slices, threads), lists.concat());
        }

        #[test]
        fn results_arrive_in_the_order_of_items_up_to_the_first_error(
            count in 0..60_usize,
            failing in prop::option::of(0..60_usize),
            refused in prop::option::of(0..60_usize),
            threads in 1..8_usize,
        ) {
            let mut arrived = Vec::new();
            let outcome = in_order((0..count).collect(), threads, |item| {
                std::thread::yield_now();
                if Some(item) == failing { Err(item) } else { Ok(item) }
            }, |item| {
                arrived.push(item);
                if Some(item) == refused { Err(item) } else { Ok(()) }
            });
            let stops: Vec<usize> = [failing, refused].into_iter().flatten().filter(|&stop| stop < count).collect();
            let first = stops.iter().min().copied();
            prop_assert_eq!(outcome, first.map_or(Ok(()), Err));
            let last = match first {
                None => count,
                Some(first) => first + usize::from(Some(first) != failing),
            };
            prop_assert_eq!(arrived, (0..last).collect::<Vec<usize>>());
        }
    }
}
