//! Scoped threads that are always joined.
//!
//! A handle that is dropped detaches its thread. `pthread_detach` of glibc 2.36 marks a thread as detached and then reads its descriptor; if the
//! thread has ended in between and its stack was unmapped, the process is killed by a signal. So no handle is dropped here, nor anywhere else in the
//! workspace (`scripts/check-names` checks this).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;

/// Calls `work` on each item, with a thread for each, one of which is the caller's. Returns the results in the order of the items.
///
/// # Panics
/// Panics if `work` does.
pub fn map_parallel<I, R>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> R + Sync,
) -> Vec<R>
where
    I: Send,
    R: Send,
{
    let items: Vec<Option<I>> = items.into_iter().map(Some).collect();
    let results = OrderedResults::new(items.len());
    let (threads, items) = (items.len(), Mutex::new(items));
    in_parallel(threads, &|number| {
        let item = lock(&items)[number].take();
        // Each number belongs to one thread, so its item is still there.
        if let Some(item) = item {
            results.set(number, work(item));
        }
    });
    results.into_vec()
}

/// Results of several threads, in the order of their numbers.
#[derive(Debug)]
pub struct OrderedResults<R>(Mutex<Vec<Option<R>>>);

impl<R> OrderedResults<R> {
    /// Creates `count` results, none of which is set yet.
    pub fn new(count: usize) -> Self {
        let mut results = Vec::new();
        results.resize_with(count, || None);
        Self(Mutex::new(results))
    }

    /// Sets the result of this number.
    ///
    /// # Panics
    /// Panics if there is no such number.
    pub fn set(&self, number: usize, result: R) {
        lock(&self.0)[number] = Some(result);
    }

    /// Returns all results that were set.
    #[expect(
        clippy::manual_flatten,
        reason = "adapters would be as much code again for each type"
    )]
    pub fn into_vec(self) -> Vec<R> {
        let results = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(results.len());
        for result in results {
            if let Some(result) = result {
                all.push(result);
            }
        }
        all
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` on this many threads, one of which is the caller's, each with its own number.
///
/// A scope is a thousand lines of intermediate code for each type that it is used with, so most of the workspace uses this one.
///
/// # Panics
/// Panics if `work` does, once all threads have ended.
pub fn in_parallel(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    if threads == 0 {
        return;
    }
    std::thread::scope(|scope| {
        let begin = |number| scope.spawn(move || work(number));
        let others: Vec<_> = (1..threads).map(begin).collect();
        // The caller's thread does a part instead of waiting for the others. If it panics, they are joined all the same.
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        results(std::iter::once(own).chain(others.into_iter().map(ScopedJoinHandle::join)));
    });
}

/// Waits for threads, and returns their results in order.
///
/// # Panics
/// Panics if one of them did, like the first.
pub fn join_all<R>(threads: Vec<ScopedJoinHandle<'_, R>>) -> Vec<R> {
    results(threads.into_iter().map(ScopedJoinHandle::join))
}

/// Returns the results of all threads once all have ended, or resumes the first panic.
fn results<R>(ends: impl Iterator<Item = std::thread::Result<R>>) -> Vec<R> {
    let ends: Vec<_> = ends.collect();
    ends.into_iter()
        .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_and_each_but_the_first_has_a_thread_of_its_own() {
        for count in 0..6 {
            let results = map_parallel(0..count, |item| (item, std::thread::current().id()));
            let items: Vec<usize> = results.iter().map(|&(item, _)| item).collect();
            assert_eq!(items, (0..count).collect::<Vec<_>>());
            let threads: std::collections::HashSet<_> = results.iter().map(|&(_, id)| id).collect();
            assert_eq!(threads.len(), count);
            assert!(
                results
                    .first()
                    .is_none_or(|&(_, id)| id == std::thread::current().id())
            );
        }
    }

    #[test]
    fn a_panic_on_any_thread_reaches_the_caller() {
        for bad in 0..3 {
            let run = || map_parallel(0..3, |item| assert_ne!(item, bad, "item {bad}"));
            let panic = std::panic::catch_unwind(run).unwrap_err();
            let text = panic.downcast_ref::<String>().unwrap();
            assert!(text.contains(&format!("item {bad}")), "{text}");
        }
    }
}
