//! A barrier at which threads wait for each other, and which fails for all of them if one panics.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::locks::lock;

/// A point where threads wait for each other.
pub(super) struct PanicBarrier {
    threads: usize,
    state: Mutex<PanicBarrierState>,
    changed: Condvar,
}

#[derive(Default)]
struct PanicBarrierState {
    /// Number of threads that wait for the others.
    waiting: usize,
    /// Number of completed rounds.
    round: u64,
    /// True once a thread has panicked.
    is_broken: bool,
}

impl PanicBarrier {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits until all threads wait.
    pub(super) fn wait(&self) {
        let mut state = lock(&self.state);
        let round = state.round;
        state.waiting += 1;
        if state.waiting == self.threads {
            state.waiting = 0;
            state.round += 1;
            self.changed.notify_all();
        }
        // The round number distinguishes the end of this round from a spurious wake-up and from the next round.
        while state.round == round && !state.is_broken {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        // This panic poisons the mutex, which `lock` ignores, so every waiting thread ends here.
        assert!(!state.is_broken, "another thread panicked");
    }
}

/// Breaks the barrier if its thread panics, because the others would wait forever.
pub(super) struct BarrierGuard<'b>(pub(super) &'b PanicBarrier);

impl Drop for BarrierGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).is_broken = true;
            self.0.changed.notify_all();
        }
    }
}
