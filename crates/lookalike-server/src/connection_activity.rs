//! Which connections are idle. A request counts from its head to the end of its answer; an export counts while it waits for the store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike_store::sync::lock;
use tokio::time::Instant;

use crate::deadline::deadline;
use crate::load_shedding::ArrivalClock;

/// The state of a connection: idle, or with requests in progress. A connection without a request in progress for longer than the idle
/// timeout is closed, whatever happens on it: half a head, a head sent byte by byte, an answer that the client does not take, or nothing.
/// As long as the client takes parts of an answer, the connection is not idle.
#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    state: Mutex<ActivityState>,
    arrival: Arc<ArrivalClock>,
}

#[derive(Debug)]
struct ActivityState {
    // More than one if HTTP/2 multiplexes requests.
    in_progress: usize,
    since: Instant,
}

impl ConnectionActivity {
    pub(crate) fn new(arrival: Arc<ArrivalClock>) -> Self {
        Self {
            state: Mutex::new(ActivityState {
                in_progress: 0,
                since: Instant::now(),
            }),
            arrival,
        }
    }

    /// Returns the time since which the connection is idle, or `None` while a request is in progress.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let taken = Instant::from_std(self.arrival.taken_at());
        (state.in_progress == 0).then(|| state.since.max(taken))
    }

    pub(crate) fn idle_deadline(&self, idle_timeout: Duration) -> Instant {
        // While a request is in progress, this is only when to check next.
        let since = self.idle_since().unwrap_or_else(Instant::now);
        Instant::from_std(deadline(since.into_std(), idle_timeout))
    }

    pub(crate) fn is_idle_for(&self, idle_timeout: Duration) -> bool {
        self.idle_since()
            .is_some_and(|since| since.elapsed() >= idle_timeout)
    }
}

/// Counts a request as in progress until dropped.
pub(crate) struct RequestInProgress(Arc<ConnectionActivity>);

impl RequestInProgress {
    pub(crate) fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        lock(&activity.state).in_progress += 1;
        Self(Arc::clone(activity))
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.in_progress -= 1;
        state.since = Instant::now();
    }
}
