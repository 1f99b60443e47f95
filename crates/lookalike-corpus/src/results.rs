//! Folders of results, which walks skip, because they are not the documents that a user means.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use crate::regular::open_regular;

/// The result file that is written last. It describes the job, and shows that this program ran it.
pub const SUMMARY_FILE: &str = "run.json";

/// The folder within a results folder that holds the state of a job while it runs.
pub const STATE_FOLDER: &str = ".lookalike";

/// The value of `program` in [`SUMMARY_FILE`].
pub const PROGRAM: &str = "lookalike";

/// The value of `program` in the summary of a job on Spark.
pub const SPARK_PROGRAM: &str = "lookalike.spark";

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

/// Opens the summary of a job. Spark writes it as a folder, with the text in a single part, which is empty while a job runs.
///
/// # Errors
/// Fails if there is none, or it cannot be opened.
pub fn open_summary(folder: &Path) -> io::Result<File> {
    let path = folder.join(SUMMARY_FILE);
    if !path.is_dir() {
        return open_regular(&path);
    }
    for entry in fs::read_dir(&path)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"part-") {
            return open_regular(&entry.path());
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Returns true if a job of this program, on one machine or on Spark, left its results in the folder, or is running there.
pub fn holds_results(folder: &Path) -> bool {
    let is_of_spark = || folder.join(SUMMARY_FILE).is_dir();
    folder.join(STATE_FOLDER).is_dir() || is_of_spark() || summary(folder).is_some()
}

/// Returns the names of all results that the last job of this program on one machine left in the folder, or none if there was no such job.
pub fn results_in(folder: &Path) -> Vec<String> {
    let own = summary(folder).filter(|summary| summary.program == PROGRAM);
    own.map_or_else(Vec::new, |summary| summary.results)
}

/// Returns the names of all results in the folder, also of a job on Spark.
pub(crate) fn all_results_in(folder: &Path) -> Vec<String> {
    summary(folder).map_or_else(Vec::new, |summary| summary.results)
}

/// Reads the summary of a job. Returns `None` if the file was not written by this program.
fn summary(folder: &Path) -> Option<SummaryHeader> {
    let file = open_summary(folder).ok()?;
    // The text is truncated, not refused: truncated JSON is invalid, which gives the same answer.
    let text = BufReader::new(file).take(MAX_SUMMARY_BYTES);
    let summary: SummaryHeader = serde_json::from_reader(text).ok()?;
    [PROGRAM, SPARK_PROGRAM]
        .contains(&&*summary.program)
        .then_some(summary)
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
