//! Folders of results, which a walk leaves out: they are not the documents that a user means.

use std::io::{BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use crate::regular::open_regular;

/// The result that is written when all others are: what the job was, and that this program did it.
pub const SUMMARY_FILE: &str = "run.json";

/// The folder within a folder of results that holds the state of a job while it runs.
pub const STATE_FOLDER: &str = ".lookalike";

/// The value of `program` in [`SUMMARY_FILE`].
pub const PROGRAM: &str = "lookalike";

/// The file by which the directory of a collection is known: nothing in it is a document.
pub const COLLECTION_FILE: &str = "lookalike.collection";

/// A larger file is no summary of ours.
const MAX_SUMMARY_BYTES: u64 = 64 << 20;

/// The folder that a job writes its results to.
#[derive(Clone, Copy, Debug)]
pub struct OutputFolder<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Names of all results in it.
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

/// Returns the names of all results that the last job of this program left in the folder, none where there was no such job.
pub fn results_in(folder: &Path) -> Vec<String> {
    summary(folder).map_or_else(Vec::new, |summary| summary.results)
}

/// The summary of a job; none if the file of that name is somebody else's.
fn summary(folder: &Path) -> Option<SummaryHeader> {
    let file = open_regular(&folder.join(SUMMARY_FILE)).ok()?;
    let mut text = String::new();
    BufReader::new(file)
        // The text is cut, not refused: what is cut is no JSON, and the answer is no.
        .take(MAX_SUMMARY_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let summary: SummaryHeader = serde_json::from_str(&text).ok()?;
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
