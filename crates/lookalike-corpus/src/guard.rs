//! Guards around libraries that read hostile bytes: if one panics, one document or file is lost, not the job.

use std::cell::Cell;

thread_local! {
    static HANDLED: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if a panic on this thread would be caught and reported as damage to a file. Panic hooks should then print nothing.
pub fn panic_is_handled() -> bool {
    HANDLED.get()
}

/// Runs foreign code on hostile bytes. Returns the payload of a panic as an error.
#[cfg(any(test, feature = "parquet", feature = "pdf", feature = "quality"))]
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    // Calls nest: the inner one must not unmark the thread while the outer one still works.
    let before = HANDLED.replace(true);
    // Sound as long as callers drop the values of the closure after a panic, as all do: a reader that panicked is never used again.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    HANDLED.set(before);
    outcome
}

/// Runs foreign code on hostile bytes. Returns a panic as an error.
#[cfg(feature = "parquet")]
pub(crate) fn catch_panic_as_error<T, E: std::fmt::Display>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, String> {
    match catch_panic(work) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the data is inconsistent".to_owned()),
    }
}
