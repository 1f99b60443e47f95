//! A collection with its threads: one writes, one makes runs of what is in memory, one merges runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lookalike::{Fingerprint, SchemeId};

use crate::answer::{Answer, Outcome, ParagraphSeen, Verdict, Write};
use crate::document::Document;
use crate::engine::{Engine, Recovery, Request, Stats};
use crate::error::{Result, StoreError};
use crate::log::LARGEST_PAYLOAD;
use crate::settings::{CollectionSettings, StoredScheme};
use crate::time::Time;

/// Writes of a group, at most, unless one request has more.
const GROUP_WRITES: usize = 4096;
/// Bytes of a group, roughly.
const GROUP_BYTES: usize = 16 << 20;
/// Largest batch, in bytes.
pub const LARGEST_BATCH: usize = LARGEST_PAYLOAD / 4;
/// Memories that wait to become runs before writes wait for them.
const MOST_FROZEN: usize = 3;
/// How long after a failure a run is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long nothing is written before a closing frame follows the last group.
const CLOSE_AFTER: Duration = Duration::from_millis(50);
/// How often a collection that nobody writes to looks whether time is to be noted.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A collection of a store: any number of threads may read and write it.
#[derive(Debug)]
pub struct Collection {
    name: String,
    recovery: Recovery,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    queue: Mutex<Queue>,
    /// There are requests, or the end has come.
    requested: Condvar,
    behind: Mutex<Behind>,
    /// There may be something to flush or to merge, or the end has come.
    work: Condvar,
    /// Something was flushed or merged, or failed.
    done: Condvar,
    closed: AtomicBool,
    merging: Mutex<()>,
    /// Whether one run of everything was asked for.
    compacting: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<Request>,
}

/// What a thread does until the end.
type Role = fn(&Shared);

/// What happens behind the scenes.
#[derive(Debug, Default)]
struct Behind {
    /// Why memories do not become runs.
    flush_error: Option<StoreError>,
    /// Why runs are not merged.
    merge_error: Option<StoreError>,
}

/// Whether a collection does all it should.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Why nothing can be written until the store is opened again.
    pub stopped: Option<String>,
    /// Why documents in memory do not go to runs; tried again every second.
    pub flush_error: Option<StoreError>,
    /// Why runs are not merged; tried again when something changes.
    pub merge_error: Option<StoreError>,
    /// Whether the disk was full when something was written last; looked at again every second.
    pub disk_full: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collection {
    pub(crate) fn start(name: &str, engine: Engine, recovery: Recovery) -> Result<Self> {
        let shared = Arc::new(Shared {
            engine,
            queue: Mutex::default(),
            requested: Condvar::new(),
            behind: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            closed: AtomicBool::new(false),
            merging: Mutex::new(()),
            compacting: AtomicBool::new(false),
        });
        let collection = Self {
            name: name.to_owned(),
            recovery,
            threads: Mutex::default(),
            shared,
        };
        let roles: [(&str, Role); 3] = [
            ("write", Shared::write),
            ("flush", Shared::flush),
            ("merge", Shared::merge),
        ];
        for (role, body) in roles {
            let shared = Arc::clone(&collection.shared);
            let thread = std::thread::Builder::new()
                .name(format!("{role} {name}"))
                .spawn(move || body(&shared))
                .map_err(|error| {
                    StoreError::Invalid(format!("starting a thread of {name:?}: {error}"))
                })?;
            locked(&collection.threads).push(thread);
        }
        Ok(collection)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was made with, and its time to live of this moment.
    pub fn settings(&self) -> Arc<CollectionSettings> {
        self.shared.engine.settings()
    }

    /// Changes how long documents live that are inserted from now on without an end; durable when it returns. Others
    /// read and write on.
    ///
    /// # Errors
    /// Failures of the medium; then all stands as it was.
    pub fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        self.shared.engine.set_time_to_live(time_to_live)
    }

    /// What was found when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Refuses sketches of another scheme.
    ///
    /// # Errors
    /// [`StoreError::OtherScheme`] with what differs.
    pub fn ensure_scheme(&self, brought: &StoredScheme) -> Result<()> {
        let ours = &self.settings().scheme;
        if ours == brought {
            return Ok(());
        }
        Err(self.other_scheme(brought.id(), ours.differences(brought)))
    }

    /// Refuses sketches of a scheme with another id.
    ///
    /// # Errors
    /// [`StoreError::OtherScheme`].
    pub fn ensure_scheme_id(&self, brought: SchemeId) -> Result<()> {
        let ours = &self.settings().scheme;
        if ours.id() == brought {
            return Ok(());
        }
        Err(self.other_scheme(brought, ours.text().to_owned()))
    }

    fn other_scheme(&self, found: SchemeId, difference: String) -> StoreError {
        StoreError::OtherScheme {
            name: self.name.clone(),
            wanted: self.settings().scheme.id().to_string(),
            found: found.to_string(),
            difference,
        }
    }

    /// Carries out some writes, all or none of them, in order, and waits until they are durable. Answers hold at most
    /// `limit` neighbours.
    ///
    /// # Errors
    /// [`StoreError`]; then none of the writes was done.
    pub fn write(&self, writes: Vec<Write>, now: Time, limit: usize) -> Result<Vec<Outcome>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(writes, now, limit, move |result| {
            // Whoever asked may have gone.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// As [`Collection::write`] without waiting: `done` hears the result, on the writer's thread, and must not take long.
    pub fn submit(
        &self,
        writes: Vec<Write>,
        now: Time,
        limit: usize,
        done: impl FnOnce(Result<Vec<Outcome>>) + Send + 'static,
    ) {
        let done = Box::new(done);
        let request = Request {
            writes,
            now,
            limit,
            done,
        };
        if self.shared.closed.load(Ordering::Acquire) {
            return (request.done)(Err(StoreError::Closed));
        }
        let bytes = request.bytes();
        if bytes > LARGEST_BATCH {
            let what = format!(
                "a batch of {bytes} bytes; the most are {LARGEST_BATCH}: write it in parts"
            );
            return (request.done)(Err(StoreError::Invalid(what)));
        }
        locked(&self.shared.queue).requests.push_back(request);
        self.shared.requested.notify_one();
    }

    /// Requests that wait to be written.
    pub fn queued(&self) -> usize {
        locked(&self.shared.queue).requests.len()
    }

    /// What is near a fingerprint: at most `limit` documents. A search in memory, and a read for each document shown.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] beyond the radius of the collection; failures of the medium.
    pub fn query(&self, code: Fingerprint, radius: u32, now: Time, limit: usize) -> Result<Answer> {
        self.shared.engine.query(code, radius, now, limit)
    }

    /// The verdict on a fingerprint, without a read.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] beyond the radius of the collection.
    pub fn check(&self, code: Fingerprint, radius: u32, now: Time) -> Result<Verdict> {
        let verdicts = self.check_many(&[code], radius, now)?;
        Ok(verdicts[0])
    }

    /// The verdicts on some fingerprints, all of one moment.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] beyond the radius of the collection.
    pub fn check_many(
        &self,
        codes: &[Fingerprint],
        radius: u32,
        now: Time,
    ) -> Result<Vec<Verdict>> {
        self.shared.engine.check_many(codes, radius, now)
    }

    /// The document of an id, if it is there.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn get(&self, id: &str, now: Time) -> Result<Option<Arc<Document>>> {
        self.shared.engine.get(id, now)
    }

    /// In which documents paragraphs were seen, at most `limit` of each.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when the collection keeps no paragraphs; failures of the medium.
    pub fn paragraphs(
        &self,
        paragraphs: &[u64],
        now: Time,
        limit: usize,
    ) -> Result<Vec<ParagraphSeen>> {
        self.shared.engine.paragraphs(paragraphs, now, limit)
    }

    /// Visits all documents of one moment, from the one inserted first to the one inserted last, while others write.
    ///
    /// # Errors
    /// Failures of the medium, and those of `each`.
    pub fn for_each(&self, now: Time, each: &mut dyn FnMut(Document) -> Result<()>) -> Result<()> {
        self.shared.engine.for_each(now, each)
    }

    /// What it takes.
    pub fn stats(&self) -> Stats {
        self.shared.engine.stats()
    }

    /// Whether it does all it should.
    pub fn health(&self) -> Health {
        let behind = locked(&self.shared.behind);
        Health {
            stopped: self.shared.engine.stopped().map(str::to_owned),
            flush_error: behind.flush_error.clone(),
            merge_error: behind.merge_error.clone(),
            disk_full: self.shared.engine.is_disk_full(),
        }
    }

    /// Makes runs of all documents in memory, and waits for it.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn flush(&self) -> Result<()> {
        self.shared.engine.seal_log()?;
        let mut behind = locked(&self.shared.behind);
        behind.flush_error = None;
        self.shared.work.notify_all();
        while self.shared.engine.wants_flush() > 0 && !self.shared.closed.load(Ordering::Acquire) {
            if let Some(error) = &behind.flush_error {
                return Err(error.clone());
            }
            let waited = self.shared.done.wait_timeout(behind, AGAIN);
            behind = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Makes one run of everything: the fastest queries, and the space of what is gone.
    ///
    /// # Errors
    /// Failures of the medium; then all stands as it was.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _alone = locked(&self.shared.merging);
        self.shared.engine.compact()
    }

    /// Asks for what [`Collection::compact`] does without waiting for it: documents in memory become a run now, all runs one
    /// behind the scenes. Whether that is under way still, [`Collection::is_compacting`] tells.
    ///
    /// # Errors
    /// Failures of the medium when the documents in memory are given a log of their own.
    pub fn compact_later(&self) -> Result<()> {
        self.shared.engine.seal_log()?;
        self.shared.compacting.store(true, Ordering::Release);
        drop(locked(&self.shared.behind));
        self.shared.work.notify_all();
        Ok(())
    }

    /// Whether one run of everything was asked for and is not there yet.
    pub fn is_compacting(&self) -> bool {
        self.shared.compacting.load(Ordering::Acquire)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Tells the time: it is noted every ten minutes, also while nobody writes, so that the next start knows about how long
    /// the collection was not open.
    pub fn observe_time(&self, now: Time) {
        self.shared.engine.now(now);
    }

    /// Writes what waits, ends the threads, and marks an orderly end. Runs that are being made are given up.
    pub(crate) fn close(&self) -> Result<()> {
        self.end();
        if self.shared.engine.stopped().is_some() {
            return Ok(());
        }
        self.shared.engine.close()
    }

    /// Ends without a mark: nothing of it will be read again.
    pub(crate) fn abandon(&self) {
        self.end();
    }

    /// Tells the threads to end.
    pub(crate) fn begin_end(&self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.engine.cancel();
        drop(locked(&self.shared.queue));
        self.shared.requested.notify_all();
        drop(locked(&self.shared.behind));
        self.shared.work.notify_all();
        self.shared.done.notify_all();
    }

    fn end(&self) {
        self.begin_end();
        for thread in locked(&self.threads).drain(..) {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The writer: takes all that waits as one group.
    fn write(&self) {
        loop {
            let group = self.next_group();
            if group.is_empty() {
                return;
            }
            self.wait_for_flushes();
            self.engine.commit(group);
            if self.engine.wants_flush() > 0 {
                drop(locked(&self.behind));
                self.work.notify_all();
            }
        }
    }

    /// The next group; empty at the end.
    fn next_group(&self) -> Vec<Request> {
        let mut restless = self.engine.is_restless();
        let mut queue = locked(&self.queue);
        while queue.requests.is_empty() {
            if self.is_closed() {
                return Vec::new();
            }
            let pause = if restless { CLOSE_AFTER } else { LOOK_EVERY };
            let waited = self.requested.wait_timeout(queue, pause);
            let (waiting, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = waiting;
            if timeout.timed_out() && queue.requests.is_empty() {
                drop(queue);
                self.engine.idle();
                restless = false;
                queue = locked(&self.queue);
            }
        }
        let (mut group, mut writes, mut bytes) = (Vec::new(), 0, 0);
        while let Some(request) = queue.requests.front() {
            writes += request.writes.len();
            bytes += request.bytes();
            if !group.is_empty() && (writes > GROUP_WRITES || bytes > GROUP_BYTES) {
                break;
            }
            group.extend(queue.requests.pop_front());
        }
        group
    }

    /// Writes wait when memories become runs more slowly than they fill, unless that fails.
    fn wait_for_flushes(&self) {
        let mut behind = locked(&self.behind);
        while self.engine.wants_flush() > MOST_FROZEN
            && behind.flush_error.is_none()
            && !self.is_closed()
        {
            let waited = self.done.wait_timeout(behind, AGAIN);
            behind = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn flush(&self) {
        self.repeat(
            || self.engine.wants_flush() > 0 || self.engine.is_disk_full(),
            || {
                if self.engine.is_disk_full() {
                    self.engine.probe_room();
                }
                self.engine.flush()
            },
            |behind| &mut behind.flush_error,
        );
    }

    fn merge(&self) {
        self.repeat(
            || true,
            || {
                let _alone = locked(&self.merging);
                if self.compacting.load(Ordering::Acquire) && self.engine.wants_flush() == 0 {
                    let compacted = self.engine.compact();
                    // Whether it was done or cannot be: merges of a few runs go on.
                    self.compacting.store(false, Ordering::Release);
                    compacted?;
                }
                self.engine.merge()
            },
            |behind| &mut behind.merge_error,
        );
    }

    /// Does something as long as there is something to do, and again when something may have changed.
    fn repeat(
        &self,
        wanted: impl Fn() -> bool,
        step: impl Fn() -> Result<bool>,
        error: impl Fn(&mut Behind) -> &mut Option<StoreError>,
    ) {
        while !self.is_closed() {
            let result = if wanted() { step() } else { Ok(false) };
            let mut behind = locked(&self.behind);
            let again = matches!(result, Ok(true));
            // What is given up at the end did not fail.
            *error(&mut behind) = result.err().filter(|_| !self.is_closed());
            self.done.notify_all();
            if again {
                // What one has done may be work for the other.
                self.work.notify_all();
            } else if !self.is_closed() {
                let waited = self.work.wait_timeout(behind, AGAIN);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}
