//! A collection and its three threads: one writes, one flushes memtables to runs, one merges runs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use lookalike::SchemeId;

use crate::document::{ContentKey, StoredDocument};
use crate::engine::{
    CollectionEngine, CollectionStats, MAX_BATCH_BYTES, ParagraphLookup, RecoveryReport,
    WriteRequest,
};
use crate::error::{Result, StoreError};
use crate::fs::FileLock;
use crate::operations::{NeighbourPage, QueryResult, WriteOp, WriteOutcome};
use crate::pair_rule::NeighbourScope;
use crate::scheme_part::SchemePart;
use crate::settings::{CollectionSettings, StoredScheme};
use crate::sync::lock;
use crate::time::{UnixMillis, WriteTime};
use crate::verdict::Verdict;
use crate::write_receipt::WriteReceipt;

/// Maximum number of writes in a group, unless a single request has more.
const GROUP_WRITES: usize = 4096;
/// Approximate maximum size of a group in bytes.
const GROUP_BYTES: usize = 16 << 20;
/// Number of journaled changes beyond which writes wait for the rebuild of the collection. The journal that is left at the end is copied
/// while writes are blocked.
const MAX_JOURNAL: usize = 16_384;
/// Number of frozen memtables beyond which writes wait for a flush.
const MAX_FROZEN_MEMTABLES: usize = 3;
/// Delay before a flush or merge is tried again after its first failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay before a failed flush is tried again. It writes no more than a memtable, and inserts may wait for it.
const MAX_FLUSH_DELAY: Duration = Duration::from_secs(10);
/// Longest delay before a failed merge is tried again. It may write as much as the collection has.
const MAX_MERGE_DELAY: Duration = Duration::from_secs(600);
/// Time without writes after which a closing frame follows the last group.
const CLOSING_FRAME_DELAY: Duration = Duration::from_millis(50);
/// Interval at which an idle collection checks whether to record its time.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Reason for a stop that the medium did not cause.
const WRITER_PANICKED: &str = "a thread of the collection panicked";

/// A collection of a store, which any number of threads may read and write.
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
    /// Lock that keeps other processes out as long as this collection may write.
    store_lock: Mutex<Option<Arc<dyn FileLock>>>,
}

#[derive(Debug)]
struct CollectionShared {
    engine: CollectionEngine,
    queue: Mutex<VecDeque<WriteRequest>>,
    /// Notified when requests arrive, or when the collection closes.
    requested: Condvar,
    background: Mutex<BackgroundErrors>,
    /// Notified when there may be something to flush or merge, or when the collection closes.
    work: Condvar,
    /// Notified when a flush or merge has succeeded or failed.
    done: Condvar,
    closed: AtomicBool,
    /// Held while runs are merged, by the merge thread or by a caller of `compact`.
    merging: Mutex<()>,
    /// Number of compactions that were requested and have not ended.
    compactions: AtomicUsize,
    /// Id of the writer thread, once it runs.
    writer_thread: OnceLock<ThreadId>,
}

/// The body of a background thread, which returns when the collection closes.
type ThreadBody = fn(&CollectionShared);

/// Latest errors of the background threads.
#[derive(Debug, Default)]
struct BackgroundErrors {
    /// The last flush of a memtable, if it failed.
    flush: Option<FailedStep>,
    /// The last merge, if it failed.
    merge: Option<FailedStep>,
    /// Error of the last compaction.
    compact_error: Option<StoreError>,
}

/// A flush or merge that failed, and when it is tried again. It may write much before it fails, so the delay doubles.
#[derive(Debug)]
struct FailedStep {
    error: StoreError,
    delay: Duration,
    due: Instant,
}

impl FailedStep {
    /// Records a failure, given the one before it.
    fn after(before: Option<Self>, error: StoreError, longest: Duration) -> Self {
        let delay = before.map_or(RETRY_INTERVAL, |before| before.delay * 2);
        let delay = delay.min(longest);
        let due = Instant::now() + delay;
        Self { error, delay, due }
    }
}

/// Step that a background thread repeats.
#[derive(Clone, Copy)]
struct BackgroundStep {
    /// Longest delay after a failure.
    longest_delay: Duration,
    failed: fn(&mut BackgroundErrors) -> &mut Option<FailedStep>,
    /// Work of every second, even while a failed step waits.
    always: fn(&CollectionShared),
    /// Returns false if there was nothing to do.
    run: fn(&CollectionShared) -> Result<bool>,
}

/// Health of a collection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectionHealth {
    /// Reason why writes are refused until the store is reopened.
    pub stopped: Option<String>,
    /// Error of the last flush of documents in memory to a run. Flushes are retried after a second at first, and after ten seconds at last.
    pub flush_error: Option<StoreError>,
    /// Error of the last merge, or of the last compaction until the next one begins. Merges are retried after a second at first, and after
    /// ten minutes at last.
    pub merge_error: Option<StoreError>,
    /// True if the disk was full at the last write, or so many flushes found it full that inserts are refused. It is probed again every second.
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
            merging: Mutex::default(),
            compactions: AtomicUsize::new(0),
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
                .map_err(|error| StoreError::Thread {
                    name: name.to_owned(),
                    cause: Arc::new(error),
                })?;
            lock(&collection.threads).push(thread);
        }
        Ok(collection)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the settings that the collection was created with, with its current time to live.
    pub fn settings(&self) -> Arc<CollectionSettings> {
        self.shared.engine.settings()
    }

    /// Tells whether the scheme has parts, data that its text only names.
    pub fn has_scheme_parts(&self) -> bool {
        self.shared.engine.has_parts
    }

    /// Reads the parts of the scheme and verifies their checksums.
    ///
    /// # Errors
    /// Failures of the medium, and damaged files.
    pub fn scheme_parts(&self) -> Result<Vec<SchemePart>> {
        self.shared.engine.parts()
    }

    /// Sets how long documents live that are inserted from now on without an expiry. The change is durable on return. Reads and writes
    /// continue meanwhile.
    ///
    /// # Errors
    /// Failures of the medium; the old value then remains.
    pub fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        self.shared.engine.set_time_to_live(time_to_live)
    }

    /// Returns the report on how the collection was recovered when it was opened.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// Returns an error unless `brought` is the scheme of the collection.
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

    /// Returns an error unless `brought` is the id of the collection's scheme.
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

    /// Performs a batch of writes atomically and in order, and waits until they are durable.
    ///
    /// # Errors
    /// Any [`StoreError`]; except for [`StoreError::WrittenUnread`], none of the writes was done then. [`StoreError::WriterThread`] if it is
    /// called on the writer thread, where the `done` of [`Collection::submit`] runs: the thread would wait for itself.
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
            // The caller may be gone.
            let _ = sender.send(result);
        });
        let written = receiver.recv().unwrap_or_else(|_| Err(self.shared.ended()));
        written?.outcomes()
    }

    /// Queues a batch of writes like [`Collection::write`], but without waiting: `done` is called with the result, usually on the writer
    /// thread. Results come in the order of the requests, each once its changes are durable and visible to readers; if the disk is full or
    /// flushes fail, those of deletes come last.
    ///
    /// `done` should return quickly, because later writes wait for it: leave [`WriteReceipt::outcomes`] to another thread. It may read and submit, but [`Collection::write`] fails in it. If it
    /// panics, the collection stays usable.
    pub fn submit(
        &self,
        writes: Vec<WriteOp>,
        time: impl Into<WriteTime>,
        done: impl FnOnce(Result<WriteReceipt>) + Send + 'static,
    ) {
        let done = Box::new(done);
        let request = WriteRequest {
            writes,
            time: time.into(),
            done,
        };
        let bytes = request.bytes();
        if bytes > MAX_BATCH_BYTES {
            let limit = MAX_BATCH_BYTES;
            // If a single document is too large, splitting the batch would not help.
            let checked = request.writes.iter().try_for_each(WriteOp::check_document);
            let error = StoreError::BatchTooLarge { bytes, limit };
            return (request.done)(checked.and(Err(error)));
        }
        let mut queue = lock(&self.shared.queue);
        // Check under the lock: the writer exits once the collection is closed and the queue empty, and would never answer a request queued
        // after that.
        if self.shared.is_closed() {
            drop(queue);
            return (request.done)(Err(self.shared.ended()));
        }
        queue.push_back(request);
        drop(queue);
        // One is enough: only the writer thread waits for requests.
        self.shared.requested.notify_one();
    }

    /// Returns the number of requests that wait to be written.
    pub fn queued(&self) -> usize {
        lock(&self.shared.queue).len()
    }

    /// Finds the documents nearest to a sketch or content, one page at a time. This searches in memory and reads once for each document
    /// shown; later pages search again and skip the documents of earlier ones.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] if the sketch has another form; [`StoreError::Invalid`] if the radius is larger than the collection's;
    /// [`StoreError::StaleCursor`]; failures of the medium.
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

    /// Returns the verdict on a sketch or content. This reads from the medium only if the hash of a text is given and some document has the
    /// same sketch.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] if the sketch has another form; [`StoreError::Invalid`] if the radius is larger than the collection's;
    /// failures of the medium.
    pub fn check(
        &self,
        content: impl Into<ContentKey>,
        scope: impl Into<NeighbourScope>,
        now: UnixMillis,
    ) -> Result<Verdict> {
        let verdicts = self.check_many(&[content.into()], scope, now)?;
        Ok(verdicts[0])
    }

    /// Returns the verdicts on several sketches or contents, all as of the same moment.
    ///
    /// # Errors
    /// [`StoreError::OtherForm`] if a sketch has another form; [`StoreError::Invalid`] if the radius is larger than the collection's;
    /// failures of the medium.
    pub fn check_many<K: Clone + Into<ContentKey>>(
        &self,
        contents: &[K],
        scope: impl Into<NeighbourScope>,
        now: UnixMillis,
    ) -> Result<Vec<Verdict>> {
        let contents: Vec<ContentKey> = contents.iter().cloned().map(Into::into).collect();
        self.shared.engine.check_many(&contents, scope.into(), now)
    }

    /// Returns the document with an id, or `None` if there is none or it has expired.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn get(&self, id: &str, now: UnixMillis) -> Result<Option<Arc<StoredDocument>>> {
        self.shared.engine.get(id, now)
    }

    /// Begins lookups of documents that contain given paragraphs, or similar ones within a radius.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the collection keeps no paragraphs or the radius is larger than its own.
    pub fn paragraph_lookup(&self, radius: u32, now: UnixMillis) -> Result<ParagraphLookup<'_>> {
        self.shared.engine.paragraph_lookup(radius, now)
    }

    /// Visits all documents as of one moment in order of insertion, while others write.
    ///
    /// # Errors
    /// Failures of the medium, and the first error that `each` returns, which ends the visit.
    pub fn for_each<E: From<StoreError>>(
        &self,
        now: UnixMillis,
        each: &mut dyn FnMut(StoredDocument) -> Result<(), E>,
    ) -> Result<(), E> {
        self.shared.engine.for_each(now, each)
    }

    /// Returns statistics of its documents, files and memory, as of the latest time that a caller reported.
    pub fn stats(&self) -> CollectionStats {
        self.shared.engine.stats()
    }

    /// Returns its health.
    pub fn health(&self) -> CollectionHealth {
        let background = lock(&self.shared.background);
        let refusal = self.shared.flush_refusal(&background);
        let error = |failed: &Option<FailedStep>| Some(failed.as_ref()?.error.clone());
        CollectionHealth {
            stopped: self.shared.engine.stopped().map(str::to_owned),
            flush_error: error(&background.flush),
            merge_error: error(&background.merge).or_else(|| background.compact_error.clone()),
            disk_full: self.shared.engine.is_disk_full()
                || refusal.is_some_and(StoreError::is_disk_full),
        }
    }

    /// Flushes all documents in memory to runs, and waits until that is done.
    ///
    /// # Errors
    /// Failures of the medium; [`StoreError::Closed`] or [`StoreError::Replaced`] if the collection ends first.
    pub fn flush(&self) -> Result<()> {
        if self.shared.is_closed() {
            return Err(self.shared.ended());
        }
        self.shared.engine.rotate_log()?;
        let mut background = lock(&self.shared.background);
        // Forget earlier failures: the flush need not wait for its next time, and the loop below reports only a failure that follows this call.
        background.flush = None;
        self.shared.work.notify_all();
        while self.shared.engine.pending_flushes() > 0 {
            if self.shared.is_closed() {
                return Err(self.shared.ended());
            }
            if let Some(failed) = &background.flush {
                return Err(failed.error.clone());
            }
            let waited = self.shared.done.wait_timeout(background, RETRY_INTERVAL);
            background = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Merges everything into one run: queries are then fastest, and the space of deleted documents is freed.
    ///
    /// # Errors
    /// Those of [`Collection::flush`]; the runs then stay as they are.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _alone = lock(&self.shared.merging);
        self.shared.compact()
    }

    /// Starts a compaction like [`Collection::compact`] in the background. [`Collection::is_compacting`] tells when it is done.
    ///
    /// # Errors
    /// Failures of the medium when the log is rotated.
    pub fn compact_later(&self) -> Result<()> {
        // The compaction waits for pending flushes, so that it includes the documents that are now in memory.
        self.shared.engine.rotate_log()?;
        self.shared.compactions.fetch_add(1, Ordering::Release);
        // The merge thread reads the number without a lock and can miss the notification; it looks again after `RETRY_INTERVAL`.
        self.shared.work.notify_all();
        Ok(())
    }

    /// Returns true while a compaction is pending or running.
    pub fn is_compacting(&self) -> bool {
        self.shared.compactions.load(Ordering::Acquire) > 0
    }

    pub(crate) fn engine(&self) -> &CollectionEngine {
        &self.shared.engine
    }

    /// Advances the clock of the collection. The time is recorded every ten minutes, even without writes, so that the next
    /// start knows roughly how long the collection was closed.
    pub fn observe_time(&self, now: UnixMillis) {
        self.shared.engine.now(now);
    }

    /// Writes what is queued, ends the threads, and records a clean shutdown. Runs that are being written are abandoned.
    pub(crate) fn close(&self) -> Result<()> {
        self.end();
        // A collection that has stopped says so with every write, and its log has no certain end to record.
        let closed = match self.shared.engine.stopped() {
            Some(_) => Ok(()),
            None => self.shared.engine.close(),
        };
        self.release_files();
        closed
    }

    /// Ends the threads and all writes, because the files are about to be removed and their names may be used again.
    pub(crate) fn abandon(&self) {
        self.end();
        self.shared.engine.end_writes("the collection was removed");
        self.release_files();
    }

    /// Returns true once the threads have been told to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Wakes writes that wait for a rebuild of the collection.
    pub(crate) fn changes_were_taken(&self) {
        // A writer has either seen the shorter journal or waits by the time this lock is free, so the notification is not lost.
        drop(lock(&self.shared.background));
        self.shared.done.notify_all();
    }

    /// Waits until no thread creates files any more, and releases the lock of the store.
    fn release_files(&self) {
        // A merge that a caller of `compact` has started is cancelled by now.
        drop(lock(&self.shared.merging));
        lock(&self.store_lock).take();
    }

    /// Tells the threads to end.
    pub(crate) fn begin_end(&self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.engine.cancel();
        // A thread that has already checked `closed` is waiting by the time each lock is free, so it gets the notification.
        drop(lock(&self.shared.queue));
        self.shared.requested.notify_all();
        drop(lock(&self.shared.background));
        self.shared.work.notify_all();
        self.shared.done.notify_all();
    }

    fn end(&self) {
        self.begin_end();
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        // Without `close`, no clean shutdown is recorded, so the next start recovers as after a crash.
        self.end();
    }
}

impl CollectionShared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns the error for requests after the end.
    fn ended(&self) -> StoreError {
        if self.engine.is_replaced() {
            StoreError::Replaced
        } else {
            StoreError::Closed
        }
    }

    /// Runs the writer thread. A panic stops all writes and fails the queued requests, because it is unknown how much of the group is
    /// durable.
    fn write(&self) {
        self.writer_thread
            .get_or_init(|| std::thread::current().id());
        // Start again after a panic: requests that are still queued must get an error, or their callers would wait forever.
        while catch_unwind(AssertUnwindSafe(|| self.write_groups())).is_err() {
            self.engine.end_writes(WRITER_PANICKED);
        }
    }

    /// Commits groups of queued requests until the collection closes.
    fn write_groups(&self) {
        loop {
            let group = self.next_group();
            if group.is_empty() {
                return;
            }
            // The lock of the queue is free here: requests that arrive during the sync form the next group.
            match self.wait_for_others() {
                None => self.engine.commit(group),
                Some(error) => self.engine.commit_freeing(group, &error),
            }
            if self.engine.pending_flushes() > 0 {
                // A flush thread that has found no memtable to flush is waiting by the time this lock is free, so the notification is not
                // lost between its check and its wait.
                drop(lock(&self.background));
                self.work.notify_all();
            }
        }
    }

    /// Waits for requests and returns them as a group; an empty group when the collection closes.
    fn next_group(&self) -> Vec<WriteRequest> {
        // Before the queue is locked: this takes the writer lock, which may be held during a sync, and `submit` must not wait for one.
        let mut closing_frame_due = self.engine.needs_closing_frame();
        let mut queue = lock(&self.queue);
        while queue.is_empty() {
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
            if timeout.timed_out() && queue.is_empty() {
                drop(queue);
                // This may append a frame and sync, so the queue is unlocked meanwhile.
                self.engine.idle();
                closing_frame_due = false;
                queue = lock(&self.queue);
            }
        }
        // Group commit: all requests that arrived during the last sync share the next one. So throughput grows with the load, and latency
        // stays at one to two syncs.
        let (mut group, mut writes, mut bytes) = (Vec::new(), 0, 0);
        while let Some(request) = queue.front() {
            writes += request.writes.len();
            bytes += request.bytes();
            // The first request always goes in, whatever its size, or it would never be written.
            if !group.is_empty() && (writes > GROUP_WRITES || bytes > GROUP_BYTES) {
                break;
            }
            group.extend(queue.pop_front());
        }
        group
    }

    /// Waits while memtables are flushed more slowly than they fill, and while a rebuild falls behind. If flushes fail and so many memtables
    /// are left that no more may be filled, returns the error.
    fn wait_for_others(&self) -> Option<StoreError> {
        let mut background = lock(&self.background);
        // Waiting for flushes that fail would also hold up the deletes that can free space on a full disk.
        while (self.is_behind() && background.flush.is_none()
            || self.engine.journal_len() > MAX_JOURNAL)
            && !self.is_closed()
        {
            let waited = self.done.wait_timeout(background, RETRY_INTERVAL);
            background = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.flush_refusal(&background).cloned()
    }

    /// Tells whether so many memtables wait for a flush that writes wait, too.
    fn is_behind(&self) -> bool {
        self.engine.pending_flushes() > MAX_FROZEN_MEMTABLES
    }

    /// Returns the error of the last flush if inserts are refused because of it.
    fn flush_refusal<'b>(&self, background: &'b BackgroundErrors) -> Option<&'b StoreError> {
        let failed = background.flush.as_ref().filter(|_| self.is_behind())?;
        Some(&failed.error)
    }

    fn flush(&self) {
        self.repeat(BackgroundStep {
            longest_delay: MAX_FLUSH_DELAY,
            failed: |background| &mut background.flush,
            always: |shared| {
                if shared.engine.is_disk_full() {
                    shared.engine.probe_disk_space();
                }
            },
            run: |shared| {
                if shared.engine.stopped().is_none() && !shared.engine.is_disk_full() {
                    shared.engine.end_expired_memory()?;
                }
                if shared.engine.pending_flushes() == 0 {
                    return Ok(false);
                }
                shared.engine.flush()
            },
        });
    }

    fn merge(&self) {
        self.repeat(BackgroundStep {
            longest_delay: MAX_MERGE_DELAY,
            failed: |background| &mut background.merge,
            always: Self::compact_if_requested,
            run: |shared| {
                // A caller of `compact` merges as well: two merges at once could choose the same runs, and each would install its own copy
                // of their documents.
                let _alone = lock(&shared.merging);
                shared.engine.merge()
            },
        });
    }

    /// Performs the compactions that were requested.
    fn compact_if_requested(&self) {
        let _alone = lock(&self.merging);
        // Before the compaction: one that is requested while it runs includes documents that it does not.
        let asked = self.compactions.load(Ordering::Acquire);
        // Only once all documents are in runs: a later flush would add a run, and the caller was promised a single one.
        if asked > 0 && self.engine.pending_flushes() == 0 {
            // Its error is kept apart, so that ordinary merges continue.
            let _ = self.compact();
            self.compactions.fetch_sub(asked, Ordering::Release);
        }
    }

    /// Merges everything into one run, and keeps the error until the next time. A merge that failed is tried again after a compaction that
    /// did not. The caller holds `merging`.
    fn compact(&self) -> Result<()> {
        lock(&self.background).compact_error = None;
        let compacted = self.engine.compact();
        let mut background = lock(&self.background);
        match &compacted {
            Ok(()) => background.merge = None,
            Err(error) if !self.is_closed() => background.compact_error = Some(error.clone()),
            Err(_) => {}
        }
        compacted
    }

    /// Repeats a step while it has something to do, then waits until something may have changed.
    fn repeat(&self, step: BackgroundStep) {
        let is_due = || {
            let mut background = lock(&self.background);
            let failed = (step.failed)(&mut background).as_ref();
            failed.is_none_or(|failed| Instant::now() >= failed.due)
        };
        while !self.is_closed() {
            let result = catch_unwind(AssertUnwindSafe(|| {
                (step.always)(self);
                is_due().then(|| (step.run)(self))
            }));
            let result = result.unwrap_or_else(|_| {
                self.engine.end_writes(WRITER_PANICKED);
                Some(Err(StoreError::Stopped(WRITER_PANICKED.to_owned())))
            });
            let mut background = lock(&self.background);
            let again = matches!(result, Some(Ok(true)));
            let failed = (step.failed)(&mut background);
            match result {
                None => {}
                Some(Ok(_)) => *failed = None,
                // A step that is cancelled because the collection closes has not failed.
                Some(Err(_)) if self.is_closed() => {}
                Some(Err(error)) => {
                    *failed = Some(FailedStep::after(failed.take(), error, step.longest_delay));
                }
            }
            self.done.notify_all();
            if again {
                // The result of one thread may be work for the other.
                self.work.notify_all();
            } else if !self.is_closed() {
                // A notification after the step had looked is missed; the timeout makes up for it.
                let waited = self.work.wait_timeout(background, RETRY_INTERVAL);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}
