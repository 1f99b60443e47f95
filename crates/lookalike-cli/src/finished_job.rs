//! Jobs that are to be resumed, but were finished before.

use std::path::Path;

use lookalike_batch::{BatchError, FolderRefusal, LossPolicy, SkippedRow};
use lookalike_corpus::SUMMARY_FILE;
use serde::Deserialize as _;

use crate::console::{self, Console};
use crate::failure::Failure;

/// The part of `run.json` that tells what the job lost.
#[derive(serde::Deserialize)]
struct FinishedSummary {
    skipped: Vec<SkippedRow>,
    counts: ReadDocuments,
}

#[derive(serde::Deserialize)]
struct ReadDocuments {
    documents: u64,
}

/// Tells that nothing was left to do, if that is why a job with `--resume` failed, and returns what the finished job had skipped.
///
/// # Errors
/// Fails as the job did for any other reason, and if the finished job lost more than is accepted now.
pub(crate) fn resumed_when_finished(
    failure: Failure,
    folder: &Path,
    losses: LossPolicy,
    console: &Console<'_>,
) -> Result<Vec<SkippedRow>, Failure> {
    let Failure::Job(BatchError::Folder {
        reason: FolderRefusal::Finished,
        ..
    }) = &failure
    else {
        return Err(failure);
    };
    let path = folder.join(SUMMARY_FILE);
    let unread = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let text = std::fs::read(&path).map_err(unread)?;
    let summary: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| unread(error.into()))?;
    let finished = FinishedSummary::deserialize(&summary).map_err(|error| unread(error.into()))?;
    losses.check(&finished.skipped, finished.counts.documents)?;
    console.summarise(&summary, Some(folder), |_, _| {
        console::print_line(&format!(
            "{}: this job was finished before: nothing was left to do",
            folder.display()
        ));
    })?;
    Ok(finished.skipped)
}
