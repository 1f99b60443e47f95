//! Running the engine without the interpreter's lock, on separate threads, while the calling thread checks for signals.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookalike_hamming::threads::spawn_scoped;
use pyo3::prelude::*;

use crate::error::CallError;
use crate::whole::WholeNumber;

/// Interval at which signals are checked, so that Ctrl-C takes effect within it.
const LISTENING: Duration = Duration::from_millis(50);

/// Locks a value that stays valid if a thread panics while it holds the lock.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the threads of a call whether its result is still wanted.
#[derive(Debug, Default)]
pub(crate) struct Cancellation(AtomicBool);

impl Cancellation {
    /// Returns true if nobody waits for the result any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `work` on another thread and waits for it. If a signal handler raises an exception, as that of Ctrl-C does, the work is cancelled
/// and the exception returned.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancellation) -> Result<T, CallError> + Send,
) -> PyResult<T> {
    run_polling(py, work, |py| py.check_signals()).and_then(unless_raised)
}

/// The result of work, and the exception that was raised meanwhile, if any: the work may have changed something by then that cannot be undone.
pub(crate) type LateResult<T> = (T, Option<PyErr>);

/// Returns the result, or the exception in its place: otherwise Ctrl-C at the last moment would be ignored.
pub(crate) fn unless_raised<T>((done, raised): LateResult<T>) -> PyResult<T> {
    raised.map_or(Ok(done), Err)
}

/// Returns the exception beside the result if something was added to a collection, and raises it otherwise.
pub(crate) fn raised_late(raised: Option<PyErr>, has_added: bool) -> PyResult<Option<PyErr>> {
    match raised {
        Some(raised) if !has_added => Err(raised),
        raised => Ok(raised),
    }
}

/// Runs `work` like [`run`], and calls `look` at intervals on the calling thread, which should also check for signals.
pub(crate) fn run_polling<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancellation) -> Result<T, CallError> + Send,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync + Send,
) -> PyResult<LateResult<T>> {
    let (done, raised) = py.detach(|| {
        let cancellation = Cancellation::default();
        // Nothing is ever sent: dropping the sender is the message, which happens even on a panic.
        let (ended, ending) = channel::<()>();
        std::thread::scope(|scope| {
            let cancellation = &cancellation;
            let worker = spawn_scoped(scope, move || {
                // Dropped at the end, however the work ends.
                let _ended = ended;
                work(cancellation)
            });
            let worker = match worker {
                Ok(worker) => worker,
                Err(error) => return (Err(of_refused_thread(&error)), None),
            };
            // A timeout means that the work continues; a disconnect means that it is done. So short work returns at once, without waiting
            // for 50 ms.
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = ending.recv_timeout(LISTENING) {
                // Only the first exception counts. After it, handlers are not run again: the work is already ending, and a second Ctrl-C
                // would replace the exception.
                if raised.is_none() {
                    raised = Python::attach(&look).err();
                    // Relaxed is enough: nothing is read depending on the flag, and it does no harm if the work notices it some items
                    // later.
                    cancellation.0.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let done = worker.join().unwrap_or_else(|panic| Err(of_panic(&*panic)));
            (done, raised)
        })
    });
    // A signal since the last check would be raised as soon as the result is returned, and lose it.
    let raised = raised.or_else(|| py.check_signals().err());
    match (done, raised) {
        (Ok(done), raised) => Ok((done, raised)),
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(error.into()),
    }
}

/// Creates the error for a panic, which is a bug in the engine.
fn of_panic(panic: &(dyn Any + Send)) -> CallError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    CallError::Failed(format!(
        "internal error: {}: please report it, with what you called",
        text.unwrap_or("a panic")
    ))
}

/// Creates the error for a thread that the system refuses.
fn of_refused_thread(error: &std::io::Error) -> CallError {
    CallError::Failed(format!(
        "a thread cannot be started: {error}: raise the limit on threads of this user or container"
    ))
}

/// Runs something short on the calling thread, and turns a panic into an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, CallError>) -> PyResult<T> {
    // Otherwise pyo3 would raise `PanicException`, which is not an `Exception` and is not caught by `except Exception`.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    Ok(done.unwrap_or_else(|panic| Err(of_panic(&*panic)))?)
}

/// Calls `work` for all items on `threads` threads, each with its own state, and returns the results in the order of items.
pub(crate) fn for_all<I: Send, S, T: Send>(
    threads: usize,
    items: Vec<I>,
    cancellation: &Cancellation,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<T, CallError> + Sync,
) -> Result<Vec<T>, CallError> {
    let count = items.len();
    let waiting = Mutex::new(items.into_iter().enumerate());
    // Items are taken one by one, not in fixed shares, because their costs differ by orders of magnitude. The lock is only held for one step
    // of the iterator.
    let next = || {
        locked(&waiting)
            .next()
            .filter(|_| !cancellation.is_cancelled())
    };
    let share = || {
        let (mut state, mut done) = (state(), Vec::new());
        while let Some((at, item)) = next() {
            done.push((at, work(&mut state, item)?));
        }
        Ok(done)
    };
    // No more threads than items.
    let threads = threads.clamp(1, count.max(1));
    let shares: Vec<Result<Vec<(usize, T)>, CallError>> = std::thread::scope(|scope| {
        // The calling thread takes part, so a single item or thread starts no other thread, and those that the system refuses are not needed.
        let others = (1..threads).map_while(|_| spawn_scoped(scope, share).ok());
        let others: Vec<_> = others.collect();
        let own = share();
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| Err(of_panic(&*panic))));
        std::iter::once(own)
            .chain(others.collect::<Vec<_>>())
            .collect()
    });
    let mut all = Vec::with_capacity(count);
    for share in shares {
        // The first share with an error decides, even if another item failed earlier. Messages name the row, so any of them will do.
        all.extend(share?);
    }
    // Threads finish in any order, but results are in the order of items, whatever the number of threads.
    all.sort_unstable_by_key(|&(at, _)| at);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}

/// Returns the number of threads of a call: as many as requested, or by default all processors that the process may use.
pub(crate) fn threads(asked: Option<WholeNumber>) -> Result<usize, CallError> {
    match asked.map(|WholeNumber(asked)| asked) {
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        Some(threads @ 1..=1024) => Ok(threads as usize),
        Some(other) => Err(CallError::Value(format!(
            "threads={other} is not a number of threads from 1 to 1024"
        ))),
    }
}
