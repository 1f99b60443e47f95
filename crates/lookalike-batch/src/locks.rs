//! Mutexes whose poisoning is ignored, because their data is always consistent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holders never panic in the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the value of a mutex that is no longer shared, even if a thread that held it has panicked.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
