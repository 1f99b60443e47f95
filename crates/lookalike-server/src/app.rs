//! What all requests share.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use lookalike_store::{Collection, Store, Time};

use crate::clock::{Clock, Guarded};
use crate::config::Limits;
use crate::endpoint::export::Exports;
use crate::gate::KeyName;
use crate::key::Keys;
use crate::log::{Entry, Level, Log};
use crate::memory::Memory;
use crate::metric::Metrics;
use crate::overload::Overload;
use crate::problem::Problem;
use crate::worker::Workers;

/// How long to wait before looking again whether requests have ended.
const BREATH: Duration = Duration::from_millis(10);

/// How far the data must be ahead of the clock for a warning at the start.
const TOLD_AHEAD: Duration = Duration::from_secs(60);

/// What a service is started with, beside its store.
pub struct Setup {
    /// Who may ask.
    pub keys: Keys,
    /// What bounds the work.
    pub limits: Limits,
    /// The wall clock.
    pub clock: Clock,
    /// Believe the clock at the start though it is more than an hour ahead of the store.
    pub trust_clock: bool,
    /// Where entries go.
    pub log: Log,
    /// The directory for snapshots; none are made without it.
    pub snapshots: Option<PathBuf>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The store, and all that bounds the work on it.
pub struct App {
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
    pub(crate) workers: Workers,
    pub(crate) exports: Exports,
    pub(crate) overload: Overload,
    pub(crate) snapshots: Option<PathBuf>,
    keys: RwLock<Arc<Keys>>,
    clock: Guarded,
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
    pub fn new(store: Store, setup: Setup) -> io::Result<Self> {
        let Setup {
            keys,
            limits,
            clock,
            trust_clock,
            log,
            snapshots,
        } = setup;
        let open = store
            .collections()
            .into_iter()
            .filter_map(|(_, opened)| opened.ok());
        let last = open.map(|collection| collection.stats().time).max();
        let app = Self {
            memory: Memory::new(limits.request_memory, limits.body_bytes, limits.patience),
            workers: Workers::start(&limits)?,
            metrics: Metrics::default(),
            exports: Exports::default(),
            overload: Overload::new(limits.patience),
            keys: RwLock::new(Arc::new(keys)),
            clock: Guarded::new(clock, last.unwrap_or_default(), trust_clock),
            stopping: AtomicBool::new(false),
            store,
            limits,
            log,
            snapshots,
        };
        app.tell_of_collections();
        if app.clock.is_held() {
            let entry = Entry::new(Level::Error, "clock-held");
            let remedy = "the clock is more than an hour ahead of the data, and nothing expires: set it, or start with --trust-clock if it is right";
            app.log.say(&entry.with("remedy", remedy));
        }
        let ahead = app.clock.ahead();
        if ahead >= TOLD_AHEAD {
            let entry = Entry::new(Level::Warn, "clock-behind").with("seconds", ahead.as_secs());
            let remedy = "documents live that much longer, until the clock is where the data is: set it if it is wrong";
            app.log.say(&entry.with("remedy", remedy));
        }
        Ok(app)
    }

    /// The time that documents live by.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// How far the time that documents live by is ahead of the clock.
    pub(crate) fn time_ahead(&self) -> Duration {
        self.clock.ahead()
    }

    /// Tells all collections the time, which they note: to be called every minute or so.
    pub fn observe_time(&self) {
        let now = self.now();
        let open = self.store.collections().into_iter();
        open.filter_map(|(_, opened)| opened.ok())
            .for_each(|collection| collection.observe_time(now));
    }

    /// Whether the clock jumped ahead and is not believed.
    pub(crate) fn is_clock_held(&self) -> bool {
        self.clock.is_held()
    }

    /// Who may ask, at this moment.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes who may ask, from the next request on.
    pub fn set_keys(&self, keys: Keys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Tells of something that changed, and by whose key.
    pub(crate) fn log_change(&self, entry: Entry, by: Option<&KeyName>) {
        let entry = match by {
            Some(KeyName(name)) => entry.with("key", &**name),
            None => entry,
        };
        self.log.say(&entry);
    }

    /// Whether the last reading of files of settings left something as it was, because of what was wrong with them.
    pub fn set_reload_failed(&self, failed: bool) {
        self.metrics.reload_failed.store(failed, Ordering::Relaxed);
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
