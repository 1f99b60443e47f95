//! The logs that a job writes while it reads and compares.

use std::fs;
use std::path::{Path, PathBuf};

/// Places of the logs of a job, and what they have in common.
pub(crate) struct JobLogs {
    /// The log of what is read: see [`scan_log`](crate::dedup::scan_log).
    pub(crate) scanned: PathBuf,
    /// The log of decisions on classes: see [`decision_log`](crate::dedup::decision_log).
    pub(crate) compared: PathBuf,
    /// The log of pairs: see [`pair_log`](crate::dedup::pair_log).
    pub(crate) found: PathBuf,
    /// Hash of settings and input.
    pub(crate) job: u64,
    /// Settings and input, for a later job that must say how it differs; empty if they are stored in another file.
    pub(crate) description: String,
    /// Number of bytes of chunks in a segment of the log of what is read.
    pub(crate) scanned_bytes: u64,
    /// Number of bytes of feature sets that are compared between two segments of the log of decisions.
    pub(crate) compared_bytes: u64,
}

impl JobLogs {
    /// Creates the logs of a job in a folder, with segments of this many bytes.
    #[cfg(test)]
    pub(crate) fn in_folder(folder: &Path, job: u64, bytes: u64) -> Self {
        Self {
            scanned: folder.join("scanned.bin"),
            compared: folder.join("compared.bin"),
            found: folder.join("found.bin"),
            job,
            description: String::new(),
            scanned_bytes: bytes,
            compared_bytes: bytes,
        }
    }

    /// Removes the logs, when their results have been saved or cannot be resumed.
    pub(crate) fn discard(&self) {
        // The log of what is read first, because it vouches for the others.
        let begun = unnamed(&self.scanned);
        for path in [&self.scanned, &begun, &self.compared, &self.found] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the path of a log that has no complete segment yet.
pub(crate) fn unnamed(path: &Path) -> PathBuf {
    path.with_extension("part")
}
