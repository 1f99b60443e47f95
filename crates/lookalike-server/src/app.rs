//! What all requests share.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lookalike_store::{Collection, Store, Time};

use crate::config::Limits;
use crate::key::Keys;
use crate::log::{Entry, Level, Log};
use crate::memory::Memory;
use crate::metric::Metrics;
use crate::problem::Problem;
use crate::worker::Workers;

/// How long to wait before looking again whether requests have ended.
const BREATH: Duration = Duration::from_millis(10);

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The store, and all that bounds the work on it.
pub struct App {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
    pub(crate) workers: Workers,
    clock: Clock,
    stopping: AtomicBool,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("store", &self.store)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl App {
    /// A service over an open store.
    ///
    /// # Errors
    /// When its threads cannot be started.
    pub fn new(
        store: Store,
        keys: Keys,
        limits: Limits,
        clock: Clock,
        log: Log,
    ) -> io::Result<Self> {
        let app = Self {
            memory: Memory::new(limits.request_memory, limits.patience),
            workers: Workers::start(limits.workers, limits.queue, limits.patience)?,
            metrics: Metrics::default(),
            stopping: AtomicBool::new(false),
            store,
            keys,
            limits,
            clock,
            log,
        };
        app.tell_of_collections();
        Ok(app)
    }

    /// The time that documents live by.
    pub(crate) fn now(&self) -> Time {
        (self.clock)()
    }

    /// A collection; only on a worker, since the store may be busy making another.
    pub(crate) fn collection(&self, name: &str) -> Result<Arc<Collection>, Problem> {
        Ok(self.store.collection(name)?)
    }

    /// Whether the service takes no new work.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Ends the workers, then the store, in order. Waits for requests that were cut off and still hold the service; should some
    /// not end, the store is left as a crash would: nothing that was acknowledged is lost.
    ///
    /// # Errors
    /// The first failure of the medium; nothing that was acknowledged is lost.
    pub async fn close(mut self: Arc<Self>) -> lookalike_store::Result<()> {
        let end = Instant::now() + self.limits.drain;
        loop {
            match Arc::try_unwrap(self) {
                Ok(app) => {
                    drop(app.workers);
                    return app.store.close();
                }
                Err(held) if Instant::now() < end => self = held,
                Err(held) => {
                    held.log.say(&Entry::new(Level::Warn, "not-closed"));
                    return Ok(());
                }
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Says what was found when the store was opened.
    fn tell_of_collections(&self) {
        for (name, opened) in self.store.collections() {
            let entry = match opened {
                Ok(collection) => {
                    let recovery = collection.recovery();
                    let level = if recovery.clean {
                        Level::Info
                    } else {
                        Level::Warn
                    };
                    Entry::new(level, "opened")
                        .with("documents", collection.stats().documents)
                        .with("clean", recovery.clean)
                        .with("groups_recovered", recovery.groups)
                        .with("torn_bytes", recovery.torn_bytes)
                }
                Err(error) => {
                    Entry::new(Level::Error, "not-opened").with("reason", error.to_string())
                }
            };
            self.log.say(&entry.with("collection", name));
        }
    }
}
