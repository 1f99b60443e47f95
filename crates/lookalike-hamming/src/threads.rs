//! Scoped threads that are always joined.
//!
//! A handle that is dropped detaches its thread. `pthread_detach` of glibc 2.36 marks a thread as detached and then reads its descriptor; if the
//! thread has ended in between and its stack was unmapped, the process is killed by a signal. So no handle is dropped here, nor anywhere else in the
//! workspace (`scripts/check-names` checks this).
//!
//! The system may refuse a thread: users, services and containers have limits on them. `std::thread::spawn` panics then, so jobs start their threads
//! here, and do without those that are refused.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Calls `work` on each item, with a thread for each, one of which is the caller's, as far as the system allows so many. Returns the results in the order of the items.
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

/// Starts a thread in a scope.
///
/// # Errors
/// Fails if the system refuses the thread. `work` is then dropped.
pub fn spawn_scoped<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    Builder::new().spawn_scoped(scope, work)
}

/// Calls `work` with the numbers below `threads`, each on a thread of its own, one of which is the caller's. The caller's thread also does the work of
/// threads that the system refuses, after its own, so no call may wait for another.
///
/// A scope is a thousand lines of intermediate code for each type that it is used with, so most of the workspace uses this one.
///
/// # Panics
/// Panics if `work` does, once all threads have ended.
pub fn in_parallel(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    if threads > 0 {
        // The caller's thread does a part instead of waiting for the others.
        in_parallel_with(1..threads, work, &mut || work(0));
    }
}

/// Calls `work` with each number as [`in_parallel`] does, and `own` on the caller's thread.
///
/// # Panics
/// Panics if `work` or `own` does, once all threads have ended.
pub fn in_parallel_with(
    numbers: Range<usize>,
    work: &(dyn Fn(usize) + Sync),
    own: &mut dyn FnMut(),
) {
    std::thread::scope(|scope| {
        let begin = |number| spawn_scoped(scope, move || work(number)).ok();
        let others: Vec<_> = numbers.clone().map_while(begin).collect();
        let mut refused = numbers.start + others.len()..numbers.end;
        // If this panics, the others are joined all the same.
        let own = catch_unwind(AssertUnwindSafe(|| {
            own();
            refused.by_ref().for_each(work);
        }));
        results(std::iter::once(own).chain(others.into_iter().map(ScopedJoinHandle::join)));
    });
}

/// Ensures that the system allows this many more threads, by starting them all at once. For libraries that hang or panic without their threads.
///
/// # Errors
/// Fails if the system refuses one of them.
pub fn ensure_startable(threads: usize) -> io::Result<()> {
    let gate = RwLock::new(());
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let mut refused = Ok(());
        let begin = |_| {
            let begun = spawn_scoped(scope, || drop(gate.read()));
            begun.map_err(|error| refused = Err(error)).ok()
        };
        let waiting: Vec<_> = (0..threads).map_while(begin).collect();
        drop(closed);
        join_all(waiting);
        refused
    })
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
