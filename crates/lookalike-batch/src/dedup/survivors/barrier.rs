//! A barrier at which threads wait for each other, and which fails for all of them if one panics.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::locks::lock;

/// A point where threads wait for each other.
pub(super) struct PanicBarrier {
    state: Mutex<PanicBarrierState>,
    changed: Condvar,
}

#[derive(Default)]
struct PanicBarrierState {
    /// Number of threads that meet.
    threads: usize,
    /// Number of threads that wait for the others.
    waiting: usize,
    /// Number of completed rounds.
    round: u64,
    /// True once a thread has panicked.
    is_broken: bool,
}

impl PanicBarrier {
    pub(super) fn new(threads: usize) -> Self {
        let state = PanicBarrierState {
            threads,
            ..PanicBarrierState::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Sets the number of threads that meet, before the last of them waits for the first time.
    pub(super) fn set_threads(&self, threads: usize) {
        lock(&self.state).threads = threads;
    }

    /// Waits until all threads wait.
    pub(super) fn wait(&self) {
        let mut state = lock(&self.state);
        let round = state.round;
        state.waiting += 1;
        if state.waiting == state.threads {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_waited_for_one_that_the_system_refused() {
        let barrier = PanicBarrier::new(3);
        std::thread::scope(|scope| {
            let started = scope.spawn(|| barrier.wait());
            barrier.set_threads(2);
            barrier.wait();
            started.join().expect("the barrier is not broken");
        });
    }
}
