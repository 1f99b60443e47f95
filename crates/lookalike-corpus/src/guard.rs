//! Guards around libraries that read hostile bytes: if one panics, one document or file is lost, not the job.

use std::cell::Cell;
#[cfg(any(test, feature = "parquet", feature = "quality"))]
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static HANDLED: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if a panic on this thread would be caught and reported as damage to a file. Panic hooks should then print nothing.
pub fn panic_is_handled() -> bool {
    HANDLED.get()
}

#[cfg(any(test, feature = "parquet", feature = "pdf", feature = "quality"))]
/// A guard that marks this thread as one whose panics are handled, until it is dropped.
pub(crate) struct PanicGuard {
    before: bool,
}

#[cfg(any(test, feature = "parquet", feature = "pdf", feature = "quality"))]
impl PanicGuard {
    pub(crate) fn new() -> PanicGuard {
        PanicGuard {
            // Guards nest: the inner one must not unmark the thread while the outer one still holds.
            before: HANDLED.replace(true),
        }
    }
}

#[cfg(any(test, feature = "parquet", feature = "pdf", feature = "quality"))]
impl Drop for PanicGuard {
    fn drop(&mut self) {
        HANDLED.set(self.before);
    }
}

#[cfg(any(test, feature = "parquet", feature = "quality"))]
/// Runs foreign code on hostile bytes. Returns `None` if it panics.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _guard = PanicGuard::new();
    // Sound as long as callers drop the values of the closure after a panic, as all do: a reader that panicked is never used again.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Runs foreign code on hostile bytes. Returns a panic as an error.
#[cfg(feature = "parquet")]
pub(crate) fn catch_panic_as_error<T, E: std::fmt::Display>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, String> {
    match catch_panic(work) {
        Some(done) => done.map_err(|error| error.to_string()),
        None => Err("the data is inconsistent".to_owned()),
    }
}
