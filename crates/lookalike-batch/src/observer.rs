//! Progress and cancellation of a job. The library neither prints nor reads a clock; its caller does.

use std::fmt;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::locks::lock;

lookalike::words! {
    /// A part of a job. The variants are in the order in which they run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum JobStage {
        /// Reading all records to learn which lines recur; progress in bytes of input.
        Learn = "learn",
        /// Reading all records; progress in bytes of input.
        Scan = "read",
        /// Reading all records again for their links; progress in bytes of input.
        Links = "links",
        /// Reading all records again and writing them with links; progress in bytes of input.
        Linked = "write",
        /// Ordering ids and classes.
        Rank = "rank",
        /// Collecting candidate keys; progress in segments of feature sets.
        Keys = "keys",
        /// Grouping classes by key; progress in parts of the keys.
        Group = "group",
        /// Comparing candidates and choosing survivors; progress in classes.
        Compare = "compare",
        /// Reading the queries of a join and building their tables; progress in bytes of input.
        Queries = "queries",
        /// Streaming by the queries; progress in bytes of input.
        Join = "join",
        /// Building the tables of an index; progress in tables.
        Tables = "tables",
        /// Finding the pairs that an evaluation takes as the truth.
        Truth = "truth",
        /// Measuring settings of an evaluation; progress in settings.
        Measure = "measure",
        /// Writing results; progress in documents.
        Write = "write",
        /// Compressing an archive; progress in bytes of records.
        Compress = "compress",
    }
}

impl JobStage {
    /// Returns true if progress counts bytes.
    pub fn counts_bytes(self) -> bool {
        matches!(
            self,
            Self::Learn
                | Self::Scan
                | Self::Links
                | Self::Linked
                | Self::Queries
                | Self::Join
                | Self::Compress
        )
    }
}

/// Cost of a job, as far as the observer measures it.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct MeasuredCost {
    /// Stages in the order they ran: name, wall seconds, CPU seconds of all threads.
    pub stages: Vec<(&'static str, f64, f64)>,
    /// Largest resident size of the process, in bytes.
    pub peak_memory: u64,
}

/// Receives the progress of a job, from any of its threads. An [`AtomicBool`] is an observer too: the job ends once it is true.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use lookalike_batch::{BatchError, DocumentDedup};
/// use lookalike_corpus::InMemoryDocument;
///
/// let (folder, is_cancelled) = (tempfile::tempdir()?, AtomicBool::new(false));
/// let job = DocumentDedup::new(folder.path()).observer(&is_cancelled);
/// assert!(job.decide([vec![InMemoryDocument::of_text("a rose")]]).is_ok());
/// is_cancelled.store(true, Ordering::Relaxed);
/// let ended = job.decide([vec![InMemoryDocument::of_text("a rose")]]);
/// assert!(matches!(ended, Err(BatchError::Cancelled)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait JobObserver: Sync {
    /// Returns the cost of the job so far.
    fn measured(&self) -> MeasuredCost {
        MeasuredCost::default()
    }
    /// Called when a stage begins, with the `total` units of work that it has; 0 if that is unknown.
    fn stage(&self, _stage: JobStage, _total: u64) {}
    /// Called with the number of units of the stage's work that are done so far.
    fn progress(&self, _done: u64) {}
    /// Called within a stage before results are written (`true`), and before the stage goes on with its own work (`false`).
    fn writing(&self, _is_writing: bool) {}
    /// Returns true if the result is no longer wanted: the job then ends soon with [`BatchError::Cancelled`](crate::BatchError::Cancelled).
    /// All threads call this many times a second.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Payload of the `io::Error` by which cancellation passes through code that returns such errors.
#[derive(Debug, thiserror::Error)]
#[error("the job was cancelled")]
pub(crate) struct JobCancelled;

/// Returns an error if the job is cancelled.
pub(crate) fn check_cancelled(observer: &dyn JobObserver) -> io::Result<()> {
    match observer.is_cancelled() {
        true => Err(io::Error::other(JobCancelled)),
        false => Ok(()),
    }
}

/// Units of work that threads have done together.
#[derive(Debug, Default)]
pub(crate) struct SharedProgress(Mutex<u64>);

impl SharedProgress {
    /// Creates the count of a stage of which `done` units are already done.
    pub(crate) fn starting_at(done: u64) -> Self {
        Self(Mutex::new(done))
    }

    /// Adds units, and calls `report` with the sum.
    pub(crate) fn add<T>(&self, units: u64, report: impl FnOnce(u64) -> T) -> T {
        let mut done = lock(&self.0);
        *done += units;
        // Under the lock, so that the numbers passed to the observer only grow.
        report(*done)
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl fmt::Debug for dyn JobObserver + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobObserver")
    }
}

impl JobObserver for NoProgress {}

impl JobObserver for AtomicBool {
    fn is_cancelled(&self) -> bool {
        // Nothing else is read because of the flag, and a moment's delay does not matter.
        self.load(Ordering::Relaxed)
    }
}
