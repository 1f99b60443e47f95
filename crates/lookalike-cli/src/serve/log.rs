//! The log on standard error, written by a separate thread, so that a reader who stops reading blocks only the log.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookalike_corpus::spawn_detached;
use lookalike_server::{LogEntry, LogLevel};

use crate::console;

/// Maximum number of lines that wait to be written; further ones are only counted.
const MAX_WAITING: usize = 4096;

/// A queue of lines for standard error.
#[derive(Clone)]
pub(super) struct LogQueue(Arc<LogQueueShared>);

struct LogQueueShared {
    state: Mutex<LogQueueState>,
    /// Notified when there are lines to write.
    filled: Condvar,
    /// Notified when all lines have been written.
    emptied: Condvar,
}

#[derive(Default)]
struct LogQueueState {
    waiting: VecDeque<String>,
    /// True while lines are being written.
    writing: bool,
    /// Number of lines that were dropped since waiting ones were last taken to be written.
    lost: u64,
}

impl LogQueue {
    /// Creates a queue, and starts the thread that empties it.
    pub(super) fn start() -> io::Result<Self> {
        let queue = Self(Arc::new(LogQueueShared {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }));
        let writer = queue.clone();
        let thread = std::thread::Builder::new().name("log".to_owned());
        spawn_detached(thread, move || writer.write())?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, LogQueueState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an entry. Never blocks.
    pub(super) fn push(&self, entry: &LogEntry) {
        let text = line(entry);
        let mut state = self.state();
        // A stalled reader of standard error must neither fill the memory nor block requests.
        if state.waiting.len() >= MAX_WAITING {
            state.lost += 1;
            return;
        }
        state.waiting.push_back(text);
        drop(state);
        self.0.filled.notify_one();
    }

    /// Waits until all lines are written, but at most for `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        let done = self
            .0
            .emptied
            .wait_timeout_while(self.state(), timeout, |state| {
                state.writing || !state.waiting.is_empty()
            });
        drop(done);
    }

    fn write(&self) {
        loop {
            let mut state = self.state();
            // Under the lock in which the queue is looked at, so that `flush` never takes lines that are still being written for written.
            state.writing = false;
            if state.waiting.is_empty() {
                self.0.emptied.notify_all();
            }
            let mut state = self
                .0
                .filled
                .wait_while(state, |state| state.waiting.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            // Written without holding the lock, because a write may block for any time.
            let lines = std::mem::take(&mut state.waiting);
            let lost = std::mem::take(&mut state.lost);
            state.writing = true;
            drop(state);
            for line in lines {
                console::print_line(&line);
            }
            // After the lines that had filled the queue, because the lost ones came later.
            if lost > 0 {
                let entry = LogEntry::new(LogLevel::Warn, "log-lost").with("lines", lost);
                console::print_line(&line(&entry));
            }
        }
    }
}

/// Formats an entry as a JSON object.
fn line(entry: &LogEntry) -> String {
    let mut line = serde_json::json!({
        "time": jiff::Timestamp::now().to_string(),
        "level": entry.level.to_string(),
        "event": entry.event,
    });
    if let Some(object) = line.as_object_mut() {
        object.extend(entry.fields.clone());
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_counts_what_it_cannot_take_and_makes_nobody_wait() {
        // Without a thread that writes.
        let queue = LogQueue(Arc::new(LogQueueShared {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }));
        for _ in 0..MAX_WAITING + 3 {
            queue.push(&LogEntry::new(LogLevel::Info, "test"));
        }
        let state = queue.state();
        assert_eq!((state.waiting.len(), state.lost), (MAX_WAITING, 3));
        drop(state);
        queue.flush(Duration::from_millis(1));
    }
}
