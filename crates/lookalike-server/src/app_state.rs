//! The state shared by all requests.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use lookalike_store::sync::{read_lock, write_lock};
use lookalike_store::{Collection, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api_key::ApiKeys;
use crate::client::KeyName;
use crate::clock::GuardedClock;
use crate::config::{ServiceConfig, ServiceLimits};
use crate::deadline::deadline;
use crate::event_log::{EventLog, LogEntry, LogLevel};
use crate::load_shedding::LoadShedder;
use crate::metrics::ServiceMetrics;
use crate::problem::ProblemDetails;
use crate::request_memory::RequestMemory;
use crate::resketch_jobs::ResketchJobs;
use crate::scheme_state::SchemeStates;
use crate::worker_pool::WorkerPool;

/// Maximum number of concurrent exports and searches for copies.
const MAX_EXPORTS: usize = 2;
/// Interval at which a closing service checks whether all requests have ended.
const CLOSE_POLL: Duration = Duration::from_millis(10);
/// Minimum time for interrupted requests to end once their connections were cut off.
const MIN_CLOSE_TIME: Duration = Duration::from_secs(1);

/// Minimum lead of the data's time over the clock that is logged at the start.
const MIN_REPORTED_LEAD: Duration = Duration::from_secs(60);

/// The store, and the limits and resources of the work on it.
pub struct AppState {
    pub(crate) store: Store,
    pub(crate) limits: ServiceLimits,
    pub(crate) log: EventLog,
    pub(crate) memory: RequestMemory,
    pub(crate) metrics: ServiceMetrics,
    pub(crate) workers: WorkerPool,
    /// Slots of exports and other passes over all documents of a collection.
    exports: Arc<Semaphore>,
    pub(crate) scheme_states: SchemeStates,
    pub(crate) resketches: ResketchJobs,
    pub(crate) overload: LoadShedder,
    pub(crate) snapshots: Option<PathBuf>,
    // A request clones the `Arc` and releases the lock, so neither waits for the other: a reload, nor a request that is being authenticated.
    keys: RwLock<Arc<ApiKeys>>,
    pub(crate) clock: GuardedClock,
    /// The time at which the service began to stop.
    stopping: OnceLock<Instant>,
    /// Held from counting the collections until another is created, so that concurrent creations cannot exceed the limit together.
    pub(crate) creating: Mutex<()>,
    /// Held while the status is collected, so that concurrent requests for it use one thread at a time.
    pub(crate) status_turn: tokio::sync::Mutex<()>,
    /// The same for the readiness, which must not wait for the metrics, as these wait for a sync.
    pub(crate) ready_turn: tokio::sync::Mutex<()>,
    /// Held while a snapshot is made, so that those of several requests do not take all workers.
    pub(crate) snapshotting: Mutex<()>,
}

lookalike::opaque_debug! {
    [] AppState [];
}

impl AppState {
    /// Creates a service for an open store.
    ///
    /// # Errors
    /// Fails if its threads cannot be started.
    pub fn new(store: Store, config: ServiceConfig) -> io::Result<Self> {
        let open = store
            .collections()
            .into_iter()
            .filter_map(|(_, opened)| opened.ok());
        let last = open.map(|collection| collection.stats().time).max();
        let limits = config.limits;
        let app = Self {
            memory: RequestMemory::new(
                limits.request_memory,
                limits.body_bytes,
                limits.queue_timeout,
            ),
            workers: WorkerPool::start(&limits)?,
            metrics: ServiceMetrics::default(),
            exports: Arc::new(Semaphore::new(MAX_EXPORTS)),
            scheme_states: SchemeStates::default(),
            resketches: ResketchJobs::default(),
            overload: LoadShedder::new(limits.queue_timeout),
            keys: RwLock::new(Arc::new(config.keys)),
            // Start from the newest time of any collection, so that time does not go back in the one that was written last.
            clock: GuardedClock::new(config.clock, last.unwrap_or_default(), config.trust_clock),
            stopping: OnceLock::new(),
            creating: Mutex::new(()),
            status_turn: tokio::sync::Mutex::new(()),
            ready_turn: tokio::sync::Mutex::new(()),
            snapshotting: Mutex::new(()),
            store,
            limits,
            log: config.log,
            snapshots: config.snapshots,
        };
        app.log_collections();
        // Before requests are served: a snapshot that is being made would look unfinished too.
        app.remove_unfinished_snapshots();
        if app.clock.is_held() {
            let entry = LogEntry::new(LogLevel::Error, "clock-held");
            let remedy = "the clock is more than an hour ahead of the newest record, so nothing expires: set it, or restart trusting it if it is right";
            app.log.record(&entry.with("remedy", remedy));
        }
        let ahead = app.clock.ahead();
        if ahead >= MIN_REPORTED_LEAD {
            let entry =
                LogEntry::new(LogLevel::Warn, "clock-behind").with("seconds", ahead.as_secs());
            let remedy = "documents live that much longer until the clock catches up with the data: set it if it is wrong";
            app.log.record(&entry.with("remedy", remedy));
        }
        Ok(app)
    }

    /// Returns the store, which the caller may use beside the service; the service alone closes it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Tells all collections the current time, which they record, and by which they free the memory of expired documents. [`serve`](crate::serve)
    /// calls this every minute, and so must a server of its own, also without requests: if the recorded time fell more than an hour behind, a
    /// restart would not trust the clock.
    pub fn observe_time(&self) {
        let now = self.clock.now();
        let open = self.store.collections().into_iter();
        open.filter_map(|(_, opened)| opened.ok())
            .for_each(|collection| collection.observe_time(now));
    }

    /// Logs why flushes and merges of collections fail. [`serve`](crate::serve) calls this every minute.
    pub fn log_failures(&self) {
        for (name, opened) in self.store.collections() {
            let Ok(health) = opened.map(|collection| collection.health()) else {
                continue;
            };
            let failing = [("flush", health.flush_error), ("merge", health.merge_error)];
            for (what, error) in failing {
                let Some(error) = error else { continue };
                let entry = LogEntry::new(LogLevel::Error, "background-failed")
                    .with("collection", name.as_str())
                    .with("what", what);
                self.log.record(&entry.with("reason", error.to_string()));
            }
        }
    }

    /// Returns the keys accepted now.
    pub(crate) fn keys(&self) -> Arc<ApiKeys> {
        Arc::clone(&read_lock(&self.keys))
    }

    /// Replaces the accepted keys, from the next request on.
    pub fn set_keys(&self, keys: ApiKeys) {
        // Requests that are just being authenticated continue with the old keys.
        *write_lock(&self.keys) = Arc::new(keys);
    }

    /// Logs a change, with the name of the key that made it.
    pub(crate) fn log_change(&self, entry: LogEntry, by: Option<&KeyName>) {
        let entry = match by {
            Some(KeyName(name)) => entry.with("key", &**name),
            None => entry,
        };
        self.log.record(&entry);
    }

    /// Records whether the last reload found an invalid file.
    pub fn set_reload_failed(&self, failed: bool) {
        self.metrics.reload_failed.store(failed, Ordering::Relaxed);
    }

    /// Runs work that needs no sketches on a worker.
    pub(crate) async fn on_worker<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ProblemDetails> + Send + 'static,
    ) -> Result<T, ProblemDetails> {
        let app = Arc::clone(self);
        self.workers.run(move |_, _| work(&app)).await
    }

    /// Returns a collection. Only call this on a worker, because it waits while the store creates another.
    pub(crate) fn collection(&self, name: &str) -> Result<Arc<Collection>, ProblemDetails> {
        Ok(self.store.collection(name)?)
    }

    /// Takes the slot of an export, which is freed when dropped.
    pub(crate) fn begin_export(&self) -> Result<OwnedSemaphorePermit, ProblemDetails> {
        Arc::clone(&self.exports).try_acquire_owned().map_err(|_| {
            let reason =
                format!("{MAX_EXPORTS} exports or searches for copies are already running");
            ProblemDetails::busy("exports", reason)
        })
    }

    /// Tells whether the service is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get().is_some()
    }

    /// Makes the readiness fail and long jobs end. [`serve`](crate::serve) does this by itself once it is told to stop; a program that serves
    /// [`router`](crate::router) in another way calls it before [`AppState::close`].
    pub fn stop(&self) {
        self.stopping.get_or_init(Instant::now);
    }

    /// Ends the workers and then closes the store. Waits for interrupted requests that still use the service, until [`ServiceLimits::drain`]
    /// after [`AppState::stop`], and at least a second. If some do not end, the store is left as after a crash, which loses no acknowledged
    /// write. Returns whether the store was closed.
    ///
    /// # Errors
    /// The first failure of the medium; no acknowledged write is lost.
    pub async fn close(mut self: Arc<Self>) -> lookalike_store::Result<bool> {
        // Interrupted requests may still use the state on a worker, and exports and jobs on their own threads.
        self.stop();
        let now = Instant::now();
        let since = self.stopping.get().copied().unwrap_or(now);
        let end = deadline(since, self.limits.drain).max(now + MIN_CLOSE_TIME);
        loop {
            match Arc::try_unwrap(self) {
                Ok(app) => {
                    // Workers first: their last jobs may write, and a closed store would refuse that.
                    drop(app.workers);
                    return app.store.close().map(|()| true);
                }
                // An `Arc` does not tell when its other holders are gone, so poll.
                Err(held) if Instant::now() < end => self = held,
                Err(held) => {
                    held.log
                        .record(&LogEntry::new(LogLevel::Warn, "not-closed"));
                    return Ok(false);
                }
            }
            tokio::time::sleep(CLOSE_POLL).await;
        }
    }

    /// Removes unfinished snapshots that killed processes left in the directory.
    fn remove_unfinished_snapshots(&self) {
        let folder = self.snapshots.iter();
        let removed = folder.flat_map(|folder| self.store.remove_unfinished_snapshots(folder));
        for name in removed {
            let entry = LogEntry::new(LogLevel::Warn, "unfinished-snapshot-removed");
            self.log.record(&entry.with("name", name));
        }
    }

    /// Logs what was found when the store was opened.
    fn log_collections(&self) {
        for (name, opened) in self.store.collections() {
            let entry = match opened {
                Ok(collection) => {
                    let recovery = collection.recovery();
                    let level = if recovery.clean {
                        LogLevel::Info
                    } else {
                        LogLevel::Warn
                    };
                    let entry = LogEntry::new(level, "opened")
                        .with("documents", collection.stats().documents)
                        .with("clean", recovery.clean)
                        .with("groups_recovered", recovery.groups)
                        .with("torn_bytes", recovery.torn_bytes);
                    match recovery.removed.is_empty() {
                        true => entry,
                        false => entry.with("files_removed", recovery.removed.clone()),
                    }
                }
                Err(error) => {
                    LogEntry::new(LogLevel::Error, "not-opened").with("reason", error.to_string())
                }
            };
            self.log.record(&entry.with("collection", name));
        }
    }
}
