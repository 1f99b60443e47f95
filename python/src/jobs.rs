//! Jobs over files, with the options of the command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use lookalike_batch::overlap::ATLAS_RESULTS;
use lookalike_batch::report::ClusterRow;
use lookalike_batch::{DEDUP_RESULTS, IfExists, JobObserver, JobStage};
use lookalike_cli::program::{self, NumberedDocument, PairExplanation, ProgramJob};
use pyo3::prelude::*;

use crate::error::{CallError, warnings_for_python};
use crate::work::{Cancellation, LateResult, locked, raised_late, run, run_polling, unless_raised};

/// Progress of a job, which the calling thread reads.
struct JobProgress<'a> {
    now: &'a Mutex<Option<StageProgress>>,
    cancellation: &'a Cancellation,
}

/// The current stage, and how much of it is done.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StageProgress {
    stage: JobStage,
    done: u64,
    total: u64,
}

impl JobObserver for JobProgress<'_> {
    fn stage(&self, stage: JobStage, total: u64) {
        *locked(self.now) = Some(StageProgress {
            stage,
            done: 0,
            total,
        });
    }

    fn progress(&self, done: u64) {
        if let Some(now) = &mut *locked(self.now) {
            now.done = done;
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

/// Runs `job` with an observer whose progress the calling thread reports to `callback`.
pub(crate) fn observed<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&dyn JobObserver) -> Result<T, CallError> + Send,
) -> PyResult<T> {
    observed_to_end(py, callback, job).and_then(unless_raised)
}

/// Works like [`observed`], but if the job ends before it notices an exception, returns its result as well.
pub(crate) fn observed_to_end<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&dyn JobObserver) -> Result<T, CallError> + Send,
) -> PyResult<LateResult<T>> {
    let now = Mutex::new(None);
    let callback = callback.map(|callback| callback.clone().unbind());
    let told = Mutex::new(None);
    run_polling(
        py,
        |cancellation| {
            let now = &now;
            job(&JobProgress { now, cancellation })
        },
        |py| {
            py.check_signals()?;
            let (Some(callback), now) = (&callback, *locked(&now)) else {
                return Ok(());
            };
            let mut told = locked(&told);
            // Only changes are reported, because the callback takes the interpreter from other threads.
            if let Some(StageProgress { stage, done, total }) = now
                && now != *told
            {
                *told = now;
                callback.call1(py, (stage.name(), done, total, stage.counts_bytes()))?;
            }
            Ok(())
        },
    )
}

/// Result of a job over files: its summary as JSON, the largest clusters, the files of kept and removed rows for each source with tables of
/// its own, the warnings, and an exception that came too late to keep the documents out of a collection.
type PathsResult = (
    String,
    Vec<ClusterExample>,
    Vec<Option<[PathBuf; 2]>>,
    Vec<String>,
    Option<PyErr>,
);

/// Two documents of a cluster, the survivor first: their ids, and their texts if available.
type ClusterExample = [(String, Option<String>); 2];

/// Runs `lookalike dedup` with these arguments. Its decisions are written to the file `decisions`, if given.
#[pyfunction]
#[pyo3(signature = (words, decisions, progress=None))]
pub(crate) fn dedup_paths(
    py: Python<'_>,
    words: Vec<OsString>,
    decisions: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PathsResult> {
    let done = observed_to_end(py, progress, |observer| {
        let job = match &decisions {
            Some(path) => program::dedup_saving_decisions(&words, path, observer),
            None => program::dedup(&words, observer),
        };
        let done = job.done?;
        let summary = serde_json::to_string(&done).map_err(CallError::value)?;
        let largest = done.largest.into_iter().map(cluster_example);
        let largest: Vec<_> = largest.collect();
        let has_added = done.added.is_some();
        Ok(((summary, largest, done.tables, job.warnings), has_added))
    });
    let (((summary, largest, tables, warnings), has_added), raised) = done?;
    let raised = raised_late(raised, has_added)?;
    let warnings = warnings_for_python(warnings);
    Ok((summary, largest, tables, warnings, raised))
}

fn cluster_example(cluster: ClusterRow) -> ClusterExample {
    match cluster.example {
        Some(pair) => [
            (pair.a_id, Some(pair.a_text)),
            (pair.b_id, Some(pair.b_text)),
        ],
        None => {
            let member = cluster.sample_ids.into_iter().next().unwrap_or_default();
            [(cluster.survivor, None), (member, None)]
        }
    }
}

/// Runs `lookalike COMMAND` with these arguments and returns its summary or answer as JSON, and the warnings.
#[pyfunction]
#[pyo3(signature = (command, words, progress=None))]
pub(crate) fn run_job(
    py: Python<'_>,
    command: &str,
    words: Vec<OsString>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let words: Vec<OsString> = std::iter::once(command.into()).chain(words).collect();
    observed(py, progress, |observer| match command {
        "overlap" => answered(program::overlap(&words, observer), serde_json::to_string),
        "pairs" => answered(program::pairs(&words, observer), serde_json::to_string),
        "extract" => answered(program::extract(&words, observer), serde_json::to_string),
        _ => answered(program::evaluate(&words, observer), |answer| {
            Ok(answer.clone())
        }),
    })
}

fn answered<T>(
    job: ProgramJob<T>,
    json: impl FnOnce(&T) -> serde_json::Result<String>,
) -> Result<(String, Vec<String>), CallError> {
    let answer = json(&job.done?).map_err(CallError::value)?;
    Ok((answer, warnings_for_python(job.warnings)))
}

/// Copies the output directory of a finished command.
#[pyfunction]
pub(crate) fn copy_results(
    py: Python<'_>,
    command: &str,
    source: PathBuf,
    folder: PathBuf,
    overwrite: bool,
) -> PyResult<()> {
    let results: &[&'static str] = match command {
        "overlap" => &ATLAS_RESULTS,
        _ => &DEDUP_RESULTS,
    };
    let if_exists = match overwrite {
        true => IfExists::Overwrite,
        false => IfExists::New,
    };
    observed(py, None, |observer| {
        lookalike_batch::copy_results(&source, &folder, results, if_exists, observer)
            .map_err(CallError::from)
    })
}

/// Returns the URLs of the objects in a store that an argument names.
#[pyfunction]
pub(crate) fn object_urls(py: Python<'_>, argument: &str) -> PyResult<Vec<String>> {
    run(py, |_| Ok(program::object_urls(argument)?))
}

/// The explanation of two documents: the text, the JSON, the page, and the warnings.
pub(crate) type RenderedExplanation = (String, String, String, Vec<String>);

pub(crate) fn rendered_explanation(
    job: ProgramJob<PairExplanation>,
) -> Result<RenderedExplanation, CallError> {
    let PairExplanation { text, json, page } = job.done?;
    Ok((text, json, page, warnings_for_python(job.warnings)))
}

/// Explains two texts, or the documents that the arguments name.
#[pyfunction]
#[pyo3(signature = (words, texts=None))]
pub(crate) fn explain(
    py: Python<'_>,
    words: Vec<OsString>,
    texts: Option<(String, String)>,
) -> PyResult<RenderedExplanation> {
    observed(py, None, |observer| {
        let texts = texts.as_ref().map(|(a, b)| [a.as_str(), b.as_str()]);
        rendered_explanation(program::explain(&words, texts, observer))
    })
}

/// A document of a job over files to be explained.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExplainedNumber {
    id: String,
    number: u64,
}

impl From<ExplainedNumber> for NumberedDocument {
    fn from(ExplainedNumber { id, number }: ExplainedNumber) -> Self {
        Self { id, number }
    }
}

/// Explains two documents of the job over files that these arguments of `lookalike dedup` describe.
#[pyfunction]
pub(crate) fn explain_paths(
    py: Python<'_>,
    words: Vec<OsString>,
    a: ExplainedNumber,
    b: ExplainedNumber,
) -> PyResult<RenderedExplanation> {
    let (a, b) = (a.into(), b.into());
    observed(py, None, |observer| {
        rendered_explanation(program::explain_numbered(&words, [&a, &b], observer))
    })
}
