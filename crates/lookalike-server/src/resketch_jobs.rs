//! Jobs that sketch collections anew: the one that runs, and why others failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

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
    failure: OnceLock<String>,
    cancelled: AtomicBool,
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
            failure: OnceLock::new(),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Counts a document.
    pub(crate) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// True once nobody wants the job any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Ends the job as a failure.
    pub(crate) fn fail(&self, reason: String) {
        self.failure.get_or_init(|| reason);
    }

    fn info(&self) -> ResketchInfo {
        let reason = self.failure.get().cloned();
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
        let mut running = jobs.iter().filter(|(_, job)| job.failure.get().is_none());
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

    /// Cancels the job of a collection that runs, or forgets why it failed; false if there is none.
    pub(crate) fn cancel(&self, name: &str) -> bool {
        let mut jobs = lock(&self.0);
        let Some(job) = jobs.get(name) else {
            return false;
        };
        // A job that runs ends at the next document, and is forgotten then: until that no other can begin.
        job.cancelled.store(true, Ordering::Release);
        if job.failure.get().is_some() {
            jobs.remove(name);
        }
        true
    }

    /// Forgets the job of a collection, which has ended well, was cancelled or was never begun.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// Forgets why the last job of a collection failed that is no more. One that runs will find that out itself.
    pub(crate) fn forget_failure(&self, name: &str) {
        lock(&self.0).retain(|other, job| other != name || job.failure.get().is_none());
    }

    /// The job of a collection that runs or failed.
    pub(crate) fn info(&self, name: &str) -> Option<ResketchInfo> {
        lock(&self.0).get(name).map(|progress| progress.info())
    }
}
