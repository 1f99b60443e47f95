//! Jobs that resketch collections: those that are running, and the reasons of those that failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lookalike::SchemeId;
use lookalike_store::sync::lock;
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ProblemDetails;
use crate::request::ShownRadius;

/// Jobs by collection. A job that succeeded is dropped, because the collection shows its new scheme.
#[derive(Debug, Default)]
pub(crate) struct ResketchJobs(Mutex<BTreeMap<String, Arc<ResketchProgress>>>);

/// The progress of a job.
#[derive(Debug)]
pub(crate) struct ResketchProgress {
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

    fn info(&self) -> ResketchInfo {
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
    /// Registers a job, unless one is running for the collection.
    pub(crate) fn begin(
        &self,
        name: &str,
        progress: ResketchProgress,
    ) -> Result<Arc<ResketchProgress>, ProblemDetails> {
        let mut jobs = lock(&self.0);
        let mut running = jobs.iter().filter(|(_, job)| !job.has_failed());
        // The store would refuse a second rebuild as well, but only on the thread of the job.
        if running.next().is_some() {
            return Err(ProblemDetails::one_resketch());
        }
        let progress = Arc::new(progress);
        jobs.insert(name.to_owned(), Arc::clone(&progress));
        Ok(progress)
    }

    /// Cancels the running job of a collection, or drops the reason of a failed one.
    pub(crate) fn cancel(&self, name: &str) -> Result<(), ProblemDetails> {
        let mut jobs = lock(&self.0);
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
            }
        }
        Ok(())
    }

    /// Marks the job of a collection as failed, which is then shown, unless it was cancelled or the collection is gone.
    pub(crate) fn fail(&self, name: &str, reason: String, is_gone: impl FnOnce() -> bool) {
        let mut jobs = lock(&self.0);
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

    /// Drops the job of a collection, because it succeeded, was cancelled, or never started.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// Drops the failed job of a collection that was removed. A running job finds that out by itself.
    pub(crate) fn discard_failure(&self, name: &str) {
        lock(&self.0).retain(|other, job| other != name || !job.has_failed());
    }

    /// Returns the running or failed job of a collection.
    pub(crate) fn info(&self, name: &str) -> Option<ResketchInfo> {
        lock(&self.0).get(name).map(|progress| progress.info())
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
        jobs.begin("pages", ResketchProgress::new(scheme.id(), nearness, 9))
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
        assert_eq!(jobs.info("pages").map(|job| job.state), Some("running"));
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
        assert!(jobs.info("pages").is_none());
        begin(&jobs).expect("none runs");
        jobs.fail("pages", "the collection was removed".to_owned(), || true);
        assert!(jobs.info("pages").is_none());
        begin(&jobs).expect("none runs");
        jobs.fail("pages", "the disk is full".to_owned(), || false);
        let shown = jobs.info("pages").expect("it failed");
        assert_eq!(shown.reason.as_deref(), Some("the disk is full"));
        jobs.cancel("pages").expect("it is forgotten");
        assert!(jobs.info("pages").is_none());
    }
}
