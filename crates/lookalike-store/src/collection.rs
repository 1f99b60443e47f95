//! A collection with its three threads: one writes, one flushes memtables to runs, one merges runs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use lookalike::SchemeId;

use crate::document::{ContentKey, StoredDocument, StoredParagraph};
use crate::engine::{
    CollectionEngine, CollectionStats, LARGEST_BATCH, RecoveryReport, WriteRequest,
};
use crate::error::{Result, StoreError};
use crate::fs::FileLock;
use crate::operations::{NeighbourPage, ParagraphMatches, QueryResult, WriteOp, WriteOutcome};
use crate::pair_rule::NeighbourScope;
use crate::scheme_part::SchemePart;
use crate::settings::{CollectionSettings, StoredScheme};
use crate::sync::lock;
use crate::time::{UnixMillis, WriteTime};
use crate::verdict::Verdict;

/// Largest number of writes in a group, unless one request has more.
const GROUP_WRITES: usize = 4096;
/// Bytes of a group, roughly.
const GROUP_BYTES: usize = 16 << 20;
/// Changes beyond which writes wait for whoever rebuilds the collection: what is copied at last, while nobody writes.
const MAX_JOURNAL: usize = 16_384;
/// Frozen memtables beyond which writes wait for a flush.
const MAX_FROZEN_MEMTABLES: usize = 3;
/// Delay before a failed flush or merge is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Delay without writes before a closing frame follows the last group.
const CLOSING_FRAME_DELAY: Duration = Duration::from_millis(50);
/// Interval at which an idle collection checks whether its time has to be recorded.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Reason of an end that no medium caused.
const WRITER_PANICKED: &str = "a thread of the collection panicked";

/// A collection of a store: any number of threads may read and write it.
///
/// ```
/// use std::time::Duration;
///
/// use lookalike::{Fingerprint, Scheme};
/// use lookalike_store::{CollectionSettings, Store, StoreOptions, StoredDocument, UnixMillis, Verdict, WriteOp};
///
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// let settings = CollectionSettings::new(&Scheme::default()).time_to_live(Duration::from_secs(60));
/// let pages = store.create_collection("pages", &settings)?;
/// let insert = |id: &str, code| WriteOp::Insert(StoredDocument::new(id, Fingerprint(code)));
/// let now = UnixMillis(1_700_000_000_000);
/// pages.write(vec![insert("a", 0b1011), insert("b", 0b1001), insert("c", u64::MAX)], now)?;
///
/// // The two nearest within three bits.
/// let found = pages.query(Fingerprint(0b1011), 3, now, 2)?;
/// let near: Vec<_> = found.neighbours.iter().map(|near| (near.id.as_str(), near.distance)).collect();
/// assert_eq!((found.verdict, near), (Verdict::SameFingerprint, vec![("a", 0), ("b", 1)]));
/// // All three live for a minute.
/// let later = now.after(Duration::from_secs(61));
/// assert_eq!(pages.check(Fingerprint(0b1011), 3, later)?, Verdict::New);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collection {
    name: String,
    recovery: RecoveryReport,
    shared: Arc<CollectionShared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Keeps other processes out while this collection may write.
    store_lock: Mutex<Option<Arc<dyn FileLock>>>,
}

#[derive(Debug)]
struct CollectionShared {
    engine: CollectionEngine,
    queue: Mutex<WriteQueue>,
    /// There are requests, or the end has come.
    requested: Condvar,
    background: Mutex<BackgroundErrors>,
    /// There may be something to flush or to merge, or the end has come.
    work: Condvar,
    /// Something was flushed or merged, or failed.
    done: Condvar,
    closed: AtomicBool,
    merging: Mutex<()>,
    /// True if a compaction was requested.
    compacting: AtomicBool,
    /// The thread of the writer, once it runs.
    writer_thread: OnceLock<ThreadId>,
}

#[derive(Debug, Default)]
struct WriteQueue {
    requests: VecDeque<WriteRequest>,
}

/// Body of a thread, which returns when the collection closes.
type ThreadBody = fn(&CollectionShared);

/// Errors of the background threads.
#[derive(Debug, Default)]
struct BackgroundErrors {
    /// Error of the last flush of a memtable.
    flush_error: Option<StoreError>,
    /// Error of the last merge.
    merge_error: Option<StoreError>,
}

/// Health of a collection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectionHealth {
    /// Reason why nothing can be written until the store is opened again.
    pub stopped: Option<String>,
    /// Error of the last flush of documents in memory to a run; tried again every second.
    pub flush_error: Option<StoreError>,
    /// Error of the last merge; tried again when something changes.
    pub merge_error: Option<StoreError>,
    /// True if the disk was full at the last write; probed again every second.
    pub disk_full: bool,
}

impl Collection {
    pub(crate) fn start(
        name: &str,
        engine: CollectionEngine,
        recovery: RecoveryReport,
        store_lock: Arc<dyn FileLock>,
    ) -> Result<Self> {
        let shared = Arc::new(CollectionShared {
            engine,
            queue: Mutex::default(),
            requested: Condvar::new(),
            background: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            closed: AtomicBool::new(false),
            merging: Mutex::new(()),
            compacting: AtomicBool::new(false),
            writer_thread: OnceLock::new(),
        });
        let collection = Self {
            name: name.to_owned(),
            recovery,
            threads: Mutex::default(),
            store_lock: Mutex::new(Some(store_lock)),
            shared,
        };
        let roles: [(&str, ThreadBody); 3] = [
            ("write", CollectionShared::write),
            ("flush", CollectionShared::flush),
            ("merge", CollectionShared::merge),
        ];
        for (role, body) in roles {
            let shared = Arc::clone(&collection.shared);
            let thread = std::thread::Builder::new()
                .name(format!("{role} {name}"))
                .spawn(move || body(&shared))
                .map_err(|error| {
                    StoreError::Invalid(format!(
                        "cannot start a thread of the collection {name:?}: {error}"
                    ))
                })?;
            lock(&collection.threads).push(thread);
        }
        Ok(collection)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings it was created with, and its current time to live.
    pub fn settings(&self) -> Arc<CollectionSettings> {
        self.shared.engine.settings()
    }

    /// Tells whether the scheme has parts that its text only names.
    pub fn has_scheme_parts(&self) -> bool {
        self.shared.engine.has_parts()
    }

    /// Reads the parts of the scheme that its text only names, and checks every byte.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub fn scheme_parts(&self) -> Result<Vec<SchemePart>> {
        self.shared.engine.parts()
    }

    /// Changes how long documents live that are inserted from now on without an end; durable when it returns. Others
    /// read and write on.
    ///
    /// # Errors
    /// Failures of the medium; then all stands as it was.
    pub fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        self.shared.engine.set_time_to_live(time_to_live)
    }

    /// The recovery report of its opening.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// Refuses sketches of another scheme.
    ///
    /// # Errors
    /// [`StoreError::OtherScheme`] with the differences.
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

    /// Carries out some writes, all or none of them, in order, and waits until they are durable.
    ///
    /// # Errors
    /// [`StoreError`]; then none of the writes was done. [`StoreError::WriterThread`] on the thread of the writer, where `done` of
    /// [`Collection::submit`] runs: it would wait for itself.
    pub fn write(
        &self,
        writes: Vec<WriteOp>,
        time: impl Into<WriteTime>,
    ) -> Result<Vec<WriteOutcome>> {
        if self.shared.writer_thread.get() == Some(&std::thread::current().id()) {
            return Err(StoreError::WriterThread);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(writes, time, move |result| {
            // Whoever asked may have gone.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or_else(|_| Err(self.shared.ended()))
    }

    /// As [`Collection::write`] without waiting: `done` hears the result, mostly on the thread of the writer. Results come in the order of
    /// the requests, each once its changes are durable and readers see them; where the disk is full, those of deletes come last.
    ///
    /// `done` must not take long, for later writes wait for it. It may read and submit, but [`Collection::write`] refuses it. If it
    /// panics, the collection goes on.
    pub fn submit(
        &self,
        writes: Vec<WriteOp>,
        time: impl Into<WriteTime>,
        done: impl FnOnce(Result<Vec<WriteOutcome>>) + Send + 'static,
    ) {
        let done = Box::new(done);
        let request = WriteRequest {
            writes,
            time: time.into(),
            done,
        };
        let bytes = request.bytes();
        if bytes > LARGEST_BATCH {
            let limit = LARGEST_BATCH;
            return (request.done)(Err(StoreError::BatchTooLarge { bytes, limit }));
        }
        let mut queue = lock(&self.shared.queue);
        // Under the lock: the writer leaves once it is closed and nothing waits, and nobody would hear of a request behind that.
        if self.shared.is_closed() {
            drop(queue);
            return (request.done)(Err(self.shared.ended()));
        }
        queue.requests.push_back(request);
        drop(queue);
        self.shared.requested.notify_one();
    }

    /// Requests that wait to be written.
    pub fn queued(&self) -> usize {
        lock(&self.shared.queue).requests.len()
    }

    /// Finds the nearest documents of a sketch or content: a page of them. A search in memory, and a read for each document shown;
    /// pages after the first pass over those before them.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] of the sketch; [`StoreError::Invalid`] beyond the radius of the collection; [`StoreError::StaleCursor`]; failures of the medium.
    pub fn query(
        &self,
        content: impl Into<ContentKey>,
        scope: impl Into<NeighbourScope>,
        now: UnixMillis,
        page: impl Into<NeighbourPage>,
    ) -> Result<QueryResult> {
        let engine = &self.shared.engine;
        engine.query(&content.into(), scope.into(), now, page.into())
    }

    /// The verdict on a sketch or content. Reads only where the hash of a text is given and a document has its
    /// sketch.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] of the sketch; [`StoreError::Invalid`] beyond the radius of the collection; failures of the medium.
    pub fn check(
        &self,
        content: impl Into<ContentKey>,
        scope: impl Into<NeighbourScope>,
        now: UnixMillis,
    ) -> Result<Verdict> {
        let verdicts = self.check_many(&[content.into()], scope, now)?;
        Ok(verdicts[0])
    }

    /// The verdicts on some sketches or contents, all of one moment.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] of the sketch; [`StoreError::Invalid`] beyond the radius of the collection; failures of the medium.
    pub fn check_many<K: Clone + Into<ContentKey>>(
        &self,
        contents: &[K],
        scope: impl Into<NeighbourScope>,
        now: UnixMillis,
    ) -> Result<Vec<Verdict>> {
        let contents: Vec<ContentKey> = contents.iter().cloned().map(Into::into).collect();
        self.shared.engine.check_many(&contents, scope.into(), now)
    }

    /// The document of an id, if it is there.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn get(&self, id: &str, now: UnixMillis) -> Result<Option<Arc<StoredDocument>>> {
        self.shared.engine.get(id, now)
    }

    /// Finds the documents that contain paragraphs or similar ones within a radius, at most `limit` for each.
    ///
    /// ```
    /// # use lookalike::{Fingerprint, Scheme};
    /// use lookalike_store::{CollectionSettings, RetainedParts, StoredDocument};
    /// # use lookalike_store::{Store, StoreOptions, UnixMillis, WriteOp};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
    /// # let now = UnixMillis(1_700_000_000_000);
    /// let keep = RetainedParts::default().paragraphs(true);
    /// let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()).keep(keep))?;
    /// // Hashes of two paragraphs, such as those of `lookalike_corpus`.
    /// let paragraphs = vec![17.into(), 18.into()];
    /// let page = StoredDocument { paragraphs, ..StoredDocument::new("a", Fingerprint(7)) };
    /// pages.write(vec![WriteOp::Insert(page)], now)?;
    /// let found = pages.paragraphs(&[18, 19], 0, now, 10)?;
    /// assert_eq!((&*found[0].documents[0].id, found[0].documents[0].position), ("a", 1));
    /// assert!(found[1].documents.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when the collection keeps no paragraphs, and beyond its radius; failures of the medium.
    pub fn paragraphs<P: Copy + Into<StoredParagraph>>(
        &self,
        paragraphs: &[P],
        radius: u32,
        now: UnixMillis,
        limit: usize,
    ) -> Result<Vec<ParagraphMatches>> {
        let paragraphs: Vec<StoredParagraph> = paragraphs.iter().copied().map(Into::into).collect();
        let engine = &self.shared.engine;
        engine.paragraphs(&paragraphs, radius, now, limit)
    }

    /// Visits all documents of one moment, from the one inserted first to the one inserted last, while others write.
    ///
    /// # Errors
    /// Failures of the medium, and those of `each`.
    pub fn for_each(
        &self,
        now: UnixMillis,
        each: &mut dyn FnMut(StoredDocument) -> Result<()>,
    ) -> Result<()> {
        self.shared.engine.for_each(now, each)
    }

    /// Statistics of its documents, files and memory, of the latest time that it was told.
    pub fn stats(&self) -> CollectionStats {
        self.shared.engine.stats()
    }

    /// Its health.
    pub fn health(&self) -> CollectionHealth {
        let background = lock(&self.shared.background);
        CollectionHealth {
            stopped: self.shared.engine.stopped().map(str::to_owned),
            flush_error: background.flush_error.clone(),
            merge_error: background.merge_error.clone(),
            disk_full: self.shared.engine.is_disk_full(),
        }
    }

    /// Makes runs of all documents in memory, and waits for it.
    ///
    /// # Errors
    /// Failures of the medium; [`StoreError::Closed`] or [`StoreError::Replaced`] if the collection ends before.
    pub fn flush(&self) -> Result<()> {
        self.shared.engine.rotate_log()?;
        let mut background = lock(&self.shared.background);
        background.flush_error = None;
        self.shared.work.notify_all();
        while self.shared.engine.wants_flush() > 0 {
            if self.shared.is_closed() {
                return Err(self.shared.ended());
            }
            if let Some(error) = &background.flush_error {
                return Err(error.clone());
            }
            let waited = self.shared.done.wait_timeout(background, RETRY_INTERVAL);
            background = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Makes one run of everything: the fastest queries, and the space of what is gone.
    ///
    /// # Errors
    /// As [`Collection::flush`]; then all stands as it was.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _alone = lock(&self.shared.merging);
        self.shared.engine.compact()
    }

    /// Starts what [`Collection::compact`] does, in the background. [`Collection::is_compacting`] tells when it is done.
    ///
    /// # Errors
    /// Failures of the medium when the documents in memory are given a log of their own.
    pub fn compact_later(&self) -> Result<()> {
        self.shared.engine.rotate_log()?;
        self.shared.compacting.store(true, Ordering::Release);
        // The merge thread looks at the flag without a lock and can miss the notice: it looks again after RETRY_INTERVAL.
        self.shared.work.notify_all();
        Ok(())
    }

    /// True while a compaction is pending or running.
    pub fn is_compacting(&self) -> bool {
        self.shared.compacting.load(Ordering::Acquire)
    }

    pub(crate) fn engine(&self) -> &CollectionEngine {
        &self.shared.engine
    }

    /// Advances the clock of the collection. The time is recorded every ten minutes, even without writes, so that the next
    /// start knows roughly how long the collection was closed.
    pub fn observe_time(&self, now: UnixMillis) {
        self.shared.engine.now(now);
    }

    /// Writes what is queued, ends the threads, and records a clean shutdown. Unfinished runs are abandoned.
    pub(crate) fn close(&self) -> Result<()> {
        self.end();
        let closed = match self.shared.engine.stopped() {
            Some(_) => Ok(()),
            None => self.shared.engine.close(),
        };
        self.give_up_files();
        closed
    }

    /// Ends the threads and all writing: the files are about to be removed, and others may get their names.
    pub(crate) fn abandon(&self) {
        self.end();
        self.shared.engine.end_writes("the collection was removed");
        self.give_up_files();
    }

    /// True once its threads are told to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Lets writes go on that wait for whoever rebuilds the collection.
    pub(crate) fn changes_were_taken(&self) {
        drop(lock(&self.shared.background));
        self.shared.done.notify_all();
    }

    /// Waits until nobody makes files any more, and gives the lock of the store back.
    fn give_up_files(&self) {
        // A merge that a holder of the collection has begun is cancelled by now.
        drop(lock(&self.shared.merging));
        lock(&self.store_lock).take();
    }

    /// Tells the threads to end.
    pub(crate) fn begin_end(&self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.engine.cancel();
        // A thread that has looked at `closed` waits by the time that each lock is free, so it hears the
        // notice.
        drop(lock(&self.shared.queue));
        self.shared.requested.notify_all();
        drop(lock(&self.shared.background));
        self.shared.work.notify_all();
        self.shared.done.notify_all();
    }

    fn end(&self) {
        self.begin_end();
        for thread in lock(&self.threads).drain(..) {
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

impl CollectionShared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reason why nothing is taken any more.
    fn ended(&self) -> StoreError {
        if self.engine.is_replaced() {
            StoreError::Replaced
        } else {
            StoreError::Closed
        }
    }

    /// The writer. A panic in it ends all writing, and what waits is told so: nobody knows how much of the group is durable.
    fn write(&self) {
        self.writer_thread
            .get_or_init(|| std::thread::current().id());
        while catch_unwind(AssertUnwindSafe(|| self.write_groups())).is_err() {
            self.engine.end_writes(WRITER_PANICKED);
        }
    }

    /// Takes all that waits as one group, until the end.
    fn write_groups(&self) {
        loop {
            let group = self.next_group();
            if group.is_empty() {
                return;
            }
            self.wait_for_others();
            // The queue's lock is free here: requests that come during the sync form the next group.
            self.engine.commit(group);
            if self.engine.wants_flush() > 0 {
                // A flush thread that has looked at the memtables and found none waits by the time that this
                // lock is free, so the notice is not lost between its look and its wait.
                drop(lock(&self.background));
                self.work.notify_all();
            }
        }
    }

    /// The next group; empty at the end.
    fn next_group(&self) -> Vec<WriteRequest> {
        // Before the queue is locked: it takes the writer lock, behind which a sync may be going on, and
        // `submit` must not wait for one.
        let mut closing_frame_due = self.engine.needs_closing_frame();
        let mut queue = lock(&self.queue);
        while queue.requests.is_empty() {
            if self.is_closed() {
                return Vec::new();
            }
            let pause = if closing_frame_due {
                CLOSING_FRAME_DELAY
            } else {
                IDLE_CHECK_INTERVAL
            };
            let waited = self.requested.wait_timeout(queue, pause);
            let (waiting, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = waiting;
            if timeout.timed_out() && queue.requests.is_empty() {
                drop(queue);
                // It may append a frame and sync: requests can queue up meanwhile.
                self.engine.idle();
                closing_frame_due = false;
                queue = lock(&self.queue);
            }
        }
        // Group commit: all that queued up during the last sync shares the next one. So throughput grows with
        // the load, and latency stays at one to two syncs.
        let (mut group, mut writes, mut bytes) = (Vec::new(), 0, 0);
        while let Some(request) = queue.requests.front() {
            writes += request.writes.len();
            bytes += request.bytes();
            // The first goes in whatever its size, or it would never be written.
            if !group.is_empty() && (writes > GROUP_WRITES || bytes > GROUP_BYTES) {
                break;
            }
            group.extend(queue.requests.pop_front());
        }
        group
    }

    /// Writes wait when memories become runs more slowly than they fill, unless that fails, and when a rebuild falls behind.
    fn wait_for_others(&self) {
        let mut background = lock(&self.background);
        // Waiting for flushes that fail would stop the deletes that can make room on a full disk.
        while (self.engine.wants_flush() > MAX_FROZEN_MEMTABLES && background.flush_error.is_none()
            || self.engine.journal_len() > MAX_JOURNAL)
            && !self.is_closed()
        {
            let waited = self.done.wait_timeout(background, RETRY_INTERVAL);
            background = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn flush(&self) {
        self.repeat(
            || {
                if self.engine.is_disk_full() {
                    self.engine.probe_room();
                } else if self.engine.stopped().is_none() {
                    self.engine.end_expired_memory()?;
                }
                if self.engine.wants_flush() == 0 {
                    return Ok(false);
                }
                self.engine.flush()
            },
            |background| &mut background.flush_error,
        );
    }

    fn merge(&self) {
        self.repeat(
            || {
                // `compact` of a caller merges as well: two merges at once could choose the same runs, and each would
                // install its own copy of their documents.
                let _alone = lock(&self.merging);
                if self.compacting.load(Ordering::Acquire) && self.engine.wants_flush() == 0 {
                    // Only once all memory is in runs: a flush that comes later adds a run, and the caller was
                    // promised one.
                    let compacted = self.engine.compact();
                    // Whether it was done or cannot be: merges of a few runs go on.
                    self.compacting.store(false, Ordering::Release);
                    compacted?;
                }
                self.engine.merge()
            },
            |background| &mut background.merge_error,
        );
    }

    /// Does something as long as there is something to do, and again when something may have changed.
    fn repeat(
        &self,
        step: impl Fn() -> Result<bool>,
        error: impl Fn(&mut BackgroundErrors) -> &mut Option<StoreError>,
    ) {
        while !self.is_closed() {
            let result = catch_unwind(AssertUnwindSafe(&step)).unwrap_or_else(|_| {
                self.engine.end_writes(WRITER_PANICKED);
                Err(StoreError::Stopped(WRITER_PANICKED.to_owned()))
            });
            let mut background = lock(&self.background);
            let again = matches!(result, Ok(true));
            // What is given up at the end did not fail.
            *error(&mut background) = result.err().filter(|_| !self.is_closed());
            self.done.notify_all();
            if again {
                // What one has done may be work for the other.
                self.work.notify_all();
            } else if !self.is_closed() {
                // A notice that came after the step had looked is missed: the interval makes up for it.
                let waited = self.work.wait_timeout(background, RETRY_INTERVAL);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}
