//! Work beside the interpreter: the engine runs on threads of its own, without the interpreter's lock, while the thread of the
//! caller looks for signals.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::CallError;
use crate::whole::WholeNumber;

/// Time between two looks for signals: Ctrl-C is heard within it.
const LISTENING: Duration = Duration::from_millis(50);

/// Says to the threads of a call whether its result is still wanted.
#[derive(Debug, Default)]
pub(crate) struct Cancellation(AtomicBool);

impl Cancellation {
    /// True if nobody waits for the result any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `work` on another thread and waits for it. After a signal whose handler raises, as that of Ctrl-C does, the work is
/// cancelled and the exception raised.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancellation) -> Result<T, CallError> + Send,
) -> PyResult<T> {
    run_beside(py, work, |py| py.check_signals())
}

/// As [`run`], with something else to do every now and then on the thread of the caller, beside looking for signals.
pub(crate) fn run_beside<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancellation) -> Result<T, CallError> + Send,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync + Send,
) -> PyResult<T> {
    let done = py.detach(|| {
        let cancellation = Cancellation::default();
        // Nothing is ever sent: the end of the sender is the message, which also a panic brings about.
        let (ended, ending) = channel::<()>();
        std::thread::scope(|scope| {
            let cancellation = &cancellation;
            let worker = scope.spawn(move || {
                // Dropped at the end, however it comes.
                let _ended = ended;
                work(cancellation)
            });
            // Timed out: still at work. Disconnected: done. Short work returns at once, without a wait of 50
            // ms.
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = ending.recv_timeout(LISTENING) {
                // The first exception counts. After it handlers are not run again: the work is on its way out,
                // and a second Ctrl-C would replace the exception.
                if raised.is_none() {
                    raised = Python::attach(&look).err();
                    // Relaxed: nothing is read on the strength of the flag. Work that hears of it some items
                    // later is no worse.
                    cancellation.0.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let done = worker.join().unwrap_or_else(|panic| Err(of_panic(&*panic)));
            // The exception wins over a result that came in time, else Ctrl-C in the last moment would be
            // swallowed.
            raised.map_or(done, |error| Err(error.into()))
        })
    });
    Ok(done?)
}

/// A defect of the engine.
fn of_panic(panic: &(dyn Any + Send)) -> CallError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    CallError::Failed(format!(
        "internal error: {}: please report it, with what you called",
        text.unwrap_or("a panic")
    ))
}

/// Runs something short on the thread of the caller; a panic is an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, CallError>) -> PyResult<T> {
    // Without it pyo3 raises `PanicException`, which is no `Exception` and passes by `except Exception`.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    Ok(done.unwrap_or_else(|panic| Err(of_panic(&*panic)))?)
}

/// Calls `work` for all items, on so many threads, each with a state of its own, and returns the results in their order.
pub(crate) fn for_all<I: Send, S, T: Send>(
    threads: usize,
    items: Vec<I>,
    cancellation: &Cancellation,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<T, CallError> + Sync,
) -> Result<Vec<T>, CallError> {
    let count = items.len();
    let waiting = std::sync::Mutex::new(items.into_iter().enumerate());
    let next = || {
        let mut waiting = waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Items one by one, not in shares: they differ in cost by orders of magnitude, and the lock is held for
        // a step of an iterator.
        waiting.next().filter(|_| !cancellation.is_cancelled())
    };
    let share = || {
        let (mut state, mut done) = (state(), Vec::new());
        while let Some((at, item)) = next() {
            done.push((at, work(&mut state, item)?));
        }
        Ok(done)
    };
    // No thread without an item.
    let threads = threads.clamp(1, count.max(1));
    let shares: Vec<Result<Vec<(usize, T)>, CallError>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        // The calling thread takes part: one item, or one thread, starts no other.
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
        // The first share with an error decides, whose item need not be the first that failed. Messages name
        // the row, so that any will do.
        all.extend(share?);
    }
    // Threads finished in any order; results are in that of the items, whatever the number of threads.
    all.sort_unstable_by_key(|&(at, _)| at);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}

/// Threads of a call: as many as asked for, else all processors that the process may use.
pub(crate) fn threads(asked: Option<WholeNumber>) -> Result<usize, CallError> {
    match asked.map(|WholeNumber(asked)| asked) {
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        Some(threads @ 1..=1024) => Ok(threads as usize),
        Some(other) => Err(CallError::Value(format!(
            "threads={other} is not a number of threads from 1 to 1024"
        ))),
    }
}
