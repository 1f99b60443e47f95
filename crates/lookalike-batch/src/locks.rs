//! Mutexes whose poison means nothing: what they guard is whole at every moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holders never panic half way through a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value behind a lock that nobody needs any more, whatever became of the threads that held it.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
