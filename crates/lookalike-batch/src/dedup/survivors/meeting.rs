//! Meetings of threads, which end for all threads if one of them panics.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::locks::lock;

/// A point where threads wait for each other.
pub(super) struct Meeting {
    threads: usize,
    state: Mutex<MeetingState>,
    moved: Condvar,
}

#[derive(Default)]
struct MeetingState {
    /// Number of threads that wait for the others.
    waiting: usize,
    /// Number of completed meetings.
    round: u64,
    /// True once a thread has panicked.
    is_broken: bool,
}

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            moved: Condvar::new(),
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
            self.moved.notify_all();
        }
        // The round distinguishes the end of the meeting from a spurious wake-up, and this meeting from the next.
        while state.round == round && !state.is_broken {
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        assert!(!state.is_broken, "another thread panicked");
    }
}

/// Breaks the meeting if its thread panics, because the others would wait forever.
pub(super) struct Leaving<'m>(pub(super) &'m Meeting);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).is_broken = true;
            self.0.moved.notify_all();
        }
    }
}
