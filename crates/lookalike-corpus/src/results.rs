//! Folders of results, which walks skip, because they are not the documents that a user means.

use std::io::{BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use crate::regular::open_regular;

/// The result file that is written last. It describes the job, and shows that this program ran it.
pub const SUMMARY_FILE: &str = "run.json";

/// The folder within a results folder that holds the state of a job while it runs.
pub const STATE_FOLDER: &str = ".lookalike";

/// The value of `program` in [`SUMMARY_FILE`].
pub const PROGRAM: &str = "lookalike";

/// The file that marks the directory of a collection; the directory contains no documents.
pub const COLLECTION_FILE: &str = "lookalike.collection";

/// Maximum size of a summary; a larger file was not written by this program.
const MAX_SUMMARY_BYTES: u64 = 64 << 20;

/// The folder to which a job writes its results.
#[derive(Clone, Copy, Debug)]
pub struct OutputFolder<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Names of all its results.
    pub results: &'a [&'a str],
}

#[derive(Deserialize)]
struct SummaryHeader {
    program: String,
    #[serde(default)]
    results: Vec<String>,
}

/// Returns true if a job of this program left its results in the folder, or is running there.
pub fn holds_results(folder: &Path) -> bool {
    folder.join(STATE_FOLDER).is_dir() || summary(folder).is_some()
}

/// Returns the names of all results that the last job of this program left in the folder, or none if there was no such job.
pub fn results_in(folder: &Path) -> Vec<String> {
    summary(folder).map_or_else(Vec::new, |summary| summary.results)
}

/// Reads the summary of a job. Returns `None` if the file was not written by this program.
fn summary(folder: &Path) -> Option<SummaryHeader> {
    let file = open_regular(&folder.join(SUMMARY_FILE)).ok()?;
    // The text is truncated, not refused: truncated JSON is invalid, which gives the same answer.
    let text = BufReader::new(file).take(MAX_SUMMARY_BYTES);
    let summary: SummaryHeader = serde_json::from_reader(text).ok()?;
    (summary.program == PROGRAM).then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_summary_marks_a_folder_of_results() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join(SUMMARY_FILE);
        assert!(!holds_results(folder.path()));
        for foreign in [
            "",
            "[]",
            "{}",
            r#"{"program":"other"}"#,
            r#"{"program":7}"#,
            r#"{"program":"lookalike""#,
        ] {
            std::fs::write(&summary, foreign).unwrap();
            assert!(!holds_results(folder.path()), "{foreign}");
        }
        std::fs::write(&summary, r#"{"program":"lookalike","version":"1"}"#).unwrap();
        assert!(holds_results(folder.path()));
        std::fs::remove_file(&summary).unwrap();
        std::fs::create_dir(folder.path().join(STATE_FOLDER)).unwrap();
        assert!(holds_results(folder.path()));
    }
}
