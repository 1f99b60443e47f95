//! Jobs that resketch collections: those that are running, and the reasons of those that failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lookalike::SchemeId;
use lookalike_store::UnixMillis;
use lookalike_store::sync::lock;
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ProblemDetails;
use crate::request::ShownRadius;

/// Jobs by collection. A job that succeeded is dropped, because the collection shows its new scheme and the number of the job.
#[derive(Debug, Default)]
pub(crate) struct ResketchJobs(Mutex<JobTable>);

#[derive(Debug, Default)]
struct JobTable {
    jobs: BTreeMap<String, Arc<ResketchProgress>>,
    /// The number of the last job of each collection that succeeded.
    done: BTreeMap<String, u64>,
    /// The number of the last job that began.
    last: u64,
}

/// The progress of a job.
#[derive(Debug)]
pub(crate) struct ResketchProgress {
    number: u64,
    scheme: SchemeId,
    nearness: ShownRadius,
    documents: u64,
    done: AtomicU64,
    // Locked after the jobs where both are needed.
    stage: Mutex<ResketchStage>,
}

/// The stage of a job.
#[derive(Debug)]
enum ResketchStage {
    /// It is sketching documents.
    Running,
    /// It has been cancelled, and will end at the next document.
    Cancelled,
    /// It is replacing the collection, and can no longer be cancelled.
    Replacing,
    /// It failed, for this reason.
    Failed(String),
}

/// A job that sketches the documents of a collection again, as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Resketching")]
pub(crate) struct ResketchInfo {
    /// `running`, or `failed`: the collection is then as it was before.
    #[schemars(extend("enum" = ["running", "failed"]))]
    state: &'static str,
    /// Number of the job, which no other job has: the time when it began, in milliseconds since 1970, or a larger number.
    job: u64,
    /// Id of the new scheme: 16 hexadecimal digits.
    scheme_id: String,
    /// New radius, for fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    radius: Option<u32>,
    /// New minimum number of super-shingles or minima in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<u32>,
    /// Number of documents sketched so far; those that changed meanwhile count again.
    done: u64,
    /// Number of documents when the job began.
    documents: u64,
    /// Reason of the failure, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ResketchProgress {
    pub(crate) fn new(scheme: SchemeId, nearness: ShownRadius, documents: u64) -> Self {
        Self {
            number: 0,
            scheme,
            nearness,
            documents,
            done: AtomicU64::new(0),
            stage: Mutex::new(ResketchStage::Running),
        }
    }

    /// Counts a document.
    pub(crate) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the job has been cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*lock(&self.stage), ResketchStage::Cancelled)
    }

    /// Starts the last step, after which the job cannot be cancelled. Returns false if it has been cancelled.
    pub(crate) fn begin_replacement(&self) -> bool {
        // One step under the lock: a request to cancel comes before it and is obeyed, or after it and is refused.
        let mut stage = lock(&self.stage);
        let is_wanted = !matches!(*stage, ResketchStage::Cancelled);
        if is_wanted {
            *stage = ResketchStage::Replacing;
        }
        is_wanted
    }

    fn has_failed(&self) -> bool {
        matches!(*lock(&self.stage), ResketchStage::Failed(_))
    }

    /// Describes the job.
    pub(crate) fn info(&self) -> ResketchInfo {
        let reason = match &*lock(&self.stage) {
            ResketchStage::Failed(reason) => Some(reason.clone()),
            _ => None,
        };
        ResketchInfo {
            // A job that was cancelled still runs, until it notices at its next document.
            state: if reason.is_some() {
                "failed"
            } else {
                "running"
            },
            job: self.number,
            scheme_id: self.scheme.to_string(),
            radius: self.nearness.radius,
            equal: self.nearness.equal,
            done: self.done.load(Ordering::Relaxed),
            documents: self.documents,
            reason,
        }
    }
}

impl ResketchJobs {
    /// Registers a job that begins at this time, unless one is running.
    pub(crate) fn begin(
        &self,
        name: &str,
        progress: ResketchProgress,
        now: UnixMillis,
    ) -> Result<Arc<ResketchProgress>, ProblemDetails> {
        let mut table = lock(&self.0);
        let mut running = table.jobs.values().filter(|job| !job.has_failed());
        // The store would refuse a second rebuild as well, but only on the thread of the job.
        if running.next().is_some() {
            return Err(ProblemDetails::one_resketch());
        }
        // By the time, so that a service that was restarted gives no number twice.
        table.last = now.0.max(table.last + 1);
        let progress = Arc::new(ResketchProgress {
            number: table.last,
            ..progress
        });
        table.jobs.insert(name.to_owned(), Arc::clone(&progress));
        Ok(progress)
    }

    /// Cancels the running job of a collection, which is returned, or drops the reason of a failed one.
    pub(crate) fn cancel(
        &self,
        name: &str,
    ) -> Result<Option<Arc<ResketchProgress>>, ProblemDetails> {
        let jobs = &mut lock(&self.0).jobs;
        let Some(job) = jobs.get(name).cloned() else {
            return Err(ProblemDetails::conflict(
                "no-job",
                "no job sketches the collection anew, and none has failed",
                "a completed job cannot be undone: sketch the collection anew under its former scheme",
            ));
        };
        let mut stage = lock(&job.stage);
        match *stage {
            // The job is dropped when it ends; no other can start before that.
            ResketchStage::Running => *stage = ResketchStage::Cancelled,
            ResketchStage::Cancelled => {}
            ResketchStage::Replacing => {
                return Err(ProblemDetails::conflict(
                    "replacing",
                    "the job has sketched all documents, and is putting the new collection in the place of the old one",
                    "wait until that is done, then sketch the collection anew under its former scheme",
                ));
            }
            ResketchStage::Failed(_) => {
                jobs.remove(name);
                return Ok(None);
            }
        }
        drop(stage);
        Ok(Some(job))
    }

    /// Marks the job of a collection as failed, which is then shown, unless it was cancelled or the collection is gone.
    pub(crate) fn fail(&self, name: &str, reason: String, is_gone: impl FnOnce() -> bool) {
        let jobs = &mut lock(&self.0).jobs;
        let Some(job) = jobs.get(name) else {
            return;
        };
        // The lock of the jobs is held: removing the collection either drops the failure afterwards, or is noticed here.
        if job.is_cancelled() || is_gone() {
            jobs.remove(name);
        } else {
            *lock(&job.stage) = ResketchStage::Failed(reason);
        }
    }

    /// Drops the job of a collection, because it was cancelled, or never started.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).jobs.remove(name);
    }

    /// Drops the job of a collection, because it succeeded. Its number is then shown, unless the collection is gone.
    pub(crate) fn succeed(&self, name: &str, is_gone: impl FnOnce() -> bool) {
        let mut table = lock(&self.0);
        let job = table.jobs.remove(name);
        // The lock of the jobs is held, as in `fail`.
        if let Some(job) = job.filter(|_| !is_gone()) {
            table.done.insert(name.to_owned(), job.number);
        }
    }

    /// Drops what is shown of the ended jobs of a collection that was removed. A running job finds that out by itself.
    pub(crate) fn discard_ended(&self, name: &str) {
        let mut table = lock(&self.0);
        table.done.remove(name);
        table
            .jobs
            .retain(|other, job| other != name || !job.has_failed());
    }

    /// Returns the running or failed job of a collection, and the number of the last job that succeeded.
    pub(crate) fn info(&self, name: &str) -> (Option<ResketchInfo>, Option<u64>) {
        let table = lock(&self.0);
        let job = table.jobs.get(name).map(|progress| progress.info());
        (job, table.done.get(name).copied())
    }
}

#[cfg(test)]
mod tests {
    use lookalike_store::{StoreError, StoredScheme};

    use super::*;
    use crate::scheme::default_scheme;

    fn begin(jobs: &ResketchJobs) -> Result<Arc<ResketchProgress>, ProblemDetails> {
        let scheme = StoredScheme::from(&default_scheme());
        let nearness = ShownRadius::of(scheme.sketch_form(), 3);
        let progress = ResketchProgress::new(scheme.id(), nearness, 9);
        jobs.begin("pages", progress, UnixMillis(7))
    }

    fn shown(jobs: &ResketchJobs) -> Option<ResketchInfo> {
        jobs.info("pages").0
    }

    #[test]
    fn a_cancel_that_was_accepted_came_too_late_to_be_heard() {
        let jobs = ResketchJobs::default();
        let job = begin(&jobs).expect("none runs");
        jobs.cancel("pages").expect("it runs");
        jobs.cancel("pages").expect("as before");
        assert!(!job.begin_replacement());
        jobs.forget("pages");
        let job = begin(&jobs).expect("none runs");
        assert!(job.begin_replacement());
        let refused = jobs.cancel("pages").expect_err("it is too late");
        assert_eq!(refused.code, "replacing");
        assert!(!job.is_cancelled());
        assert_eq!(shown(&jobs).map(|job| job.state), Some("running"));
        assert!(begin(&jobs).is_err());
    }

    #[test]
    fn a_refused_job_revealed_the_name_of_another_collection() {
        let jobs = ResketchJobs::default();
        begin(&jobs).expect("none runs");
        let refused = [
            begin(&jobs).expect_err("one runs"),
            StoreError::Rebuilding("pages".to_owned()).into(),
        ];
        for refused in refused {
            assert_eq!(refused.code, "resketching");
            assert!(!refused.to_string().contains("pages"), "{refused}");
        }
    }

    #[test]
    fn a_cancelled_job_that_failed_all_the_same_was_shown_as_failed() {
        let jobs = ResketchJobs::default();
        begin(&jobs).expect("none runs");
        jobs.cancel("pages").expect("it runs");
        jobs.fail("pages", "the disk is full".to_owned(), || false);
        assert!(shown(&jobs).is_none());
        begin(&jobs).expect("none runs");
        jobs.fail("pages", "the collection was removed".to_owned(), || true);
        assert!(shown(&jobs).is_none());
        begin(&jobs).expect("none runs");
        jobs.fail("pages", "the disk is full".to_owned(), || false);
        let failed = shown(&jobs).expect("it failed");
        assert_eq!(failed.reason.as_deref(), Some("the disk is full"));
        jobs.cancel("pages").expect("it is forgotten");
        assert!(shown(&jobs).is_none());
    }

    #[test]
    fn jobs_of_a_collection_could_not_be_told_apart() {
        let jobs = ResketchJobs::default();
        let first = begin(&jobs).expect("none runs").number;
        jobs.succeed("pages", || false);
        let second = begin(&jobs).expect("none runs").number;
        assert!(first < second);
        let (running, done) = jobs.info("pages");
        assert_eq!(
            (running.map(|job| job.job), done),
            (Some(second), Some(first))
        );
        jobs.forget("pages");
        jobs.discard_ended("pages");
        assert_eq!(jobs.info("pages").1, None);
    }
}
