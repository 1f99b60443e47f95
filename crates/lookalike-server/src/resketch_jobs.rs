//! Jobs that sketch collections anew: the one that runs, and why others failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use lookalike::SchemeId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ProblemDetails;
use crate::request::ShownNearness;
use crate::sync::lock;

/// Jobs by collection. One that has ended well is forgotten: the collection shows its new scheme.
#[derive(Debug, Default)]
pub(crate) struct ResketchJobs(Mutex<BTreeMap<String, Arc<ResketchProgress>>>);

/// Progress of a job.
#[derive(Debug)]
pub(crate) struct ResketchProgress {
    scheme: SchemeId,
    nearness: ShownNearness,
    documents: u64,
    done: AtomicU64,
    stage: Mutex<ResketchStage>,
}

/// How far a job has come.
#[derive(Debug)]
enum ResketchStage {
    /// It sketches documents.
    Running,
    /// It is cancelled, and ends at the next document.
    Cancelled,
    /// It puts the new collection in the place of the old one, and can no longer be cancelled.
    Replacing,
    /// It failed, for this reason.
    Failed(String),
}

/// A job that sketches a collection anew, as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Resketching")]
pub(crate) struct ResketchInfo {
    /// `running`, or `failed`: then all stands as it was before.
    #[schemars(extend("enum" = ["running", "failed"]))]
    state: &'static str,
    /// Id of the scheme that the collection is to have: 16 hexadecimal digits.
    scheme_id: String,
    /// Radius that it is to have, of fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    radius: Option<u32>,
    /// Fewest super-shingles or minima in common that it is to demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<u32>,
    /// Documents that were sketched so far; some twice, if they changed meanwhile.
    done: u64,
    /// Documents when the job began.
    documents: u64,
    /// Reason of a failure, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ResketchProgress {
    pub(crate) fn new(scheme: SchemeId, nearness: ShownNearness, documents: u64) -> Self {
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

    /// True once nobody wants the job any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*lock(&self.stage), ResketchStage::Cancelled)
    }

    /// Begins the last step, unless nobody wants the job any more; false then.
    pub(crate) fn begin_replacement(&self) -> bool {
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
    /// Begins a job, unless one runs.
    pub(crate) fn begin(
        &self,
        name: &str,
        progress: ResketchProgress,
    ) -> Result<Arc<ResketchProgress>, ProblemDetails> {
        let mut jobs = lock(&self.0);
        let mut running = jobs.iter().filter(|(_, job)| !job.has_failed());
        if let Some((other, _)) = running.next() {
            return Err(ProblemDetails::new(
                StatusCode::CONFLICT,
                "resketching",
                format!(
                    "the collection {other:?} is being sketched anew, and one job runs at a time"
                ),
                "wait until GET /v1/collections/NAME shows no `resketching` of it that is running",
            ));
        }
        let progress = Arc::new(progress);
        jobs.insert(name.to_owned(), Arc::clone(&progress));
        Ok(progress)
    }

    /// Cancels the job of a collection that runs, or forgets why it failed.
    pub(crate) fn cancel(&self, name: &str) -> Result<(), ProblemDetails> {
        let mut jobs = lock(&self.0);
        let Some(job) = jobs.get(name).cloned() else {
            return Err(ProblemDetails::new(
                StatusCode::CONFLICT,
                "no-job",
                "no job sketches the collection anew, and none has failed",
                "one that has ended well cannot be taken back: sketch the collection anew under its former scheme",
            ));
        };
        let mut stage = lock(&job.stage);
        match *stage {
            // It is forgotten when it ends: until then no other can begin.
            ResketchStage::Running => *stage = ResketchStage::Cancelled,
            ResketchStage::Cancelled => {}
            ResketchStage::Replacing => {
                return Err(ProblemDetails::new(
                    StatusCode::CONFLICT,
                    "replacing",
                    "the job has sketched all documents, and is putting the new collection in the place of the old one",
                    "wait for its end, then sketch the collection anew under its former scheme",
                ));
            }
            ResketchStage::Failed(_) => {
                jobs.remove(name);
            }
        }
        Ok(())
    }

    /// Ends the job of a collection as a failure, which is shown from then on, unless it was cancelled or the collection is gone.
    pub(crate) fn fail(&self, name: &str, reason: String, is_gone: impl FnOnce() -> bool) {
        let mut jobs = lock(&self.0);
        let Some(job) = jobs.get(name) else {
            return;
        };
        // The lock of the jobs is held: whoever removes the collection forgets the failure after this, or is seen here.
        if job.is_cancelled() || is_gone() {
            jobs.remove(name);
        } else {
            *lock(&job.stage) = ResketchStage::Failed(reason);
        }
    }

    /// Forgets the job of a collection, which has ended well, was cancelled or was never begun.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// Forgets why the last job of a collection failed that is no more. One that runs will find that out itself.
    pub(crate) fn forget_failure(&self, name: &str) {
        lock(&self.0).retain(|other, job| other != name || !job.has_failed());
    }

    /// The job of a collection that runs or failed.
    pub(crate) fn info(&self, name: &str) -> Option<ResketchInfo> {
        lock(&self.0).get(name).map(|progress| progress.info())
    }
}

#[cfg(test)]
mod tests {
    use lookalike_store::StoredScheme;

    use super::*;
    use crate::scheme::default_scheme;

    fn begin(jobs: &ResketchJobs) -> Result<Arc<ResketchProgress>, ProblemDetails> {
        let scheme = StoredScheme::from(&default_scheme());
        let nearness = ShownNearness::of(scheme.sketch_form(), 3);
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
