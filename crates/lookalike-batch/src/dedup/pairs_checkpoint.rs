//! The folder beside the output of `pairs` in which the job keeps what it read and found: one that is killed goes on from there.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::BatchError;
use crate::folder_refusal::FolderRefusal;
use crate::output_dir::JobIdentity;
use crate::unfinished::{EnteredFolder, SCANNED, UnfinishedJob, can_resume, folder_beside};

/// The name of the log of what was read until a segment of it is whole.
const BEGUN: &str = "scanned.part";

/// The log of the pairs that were found.
pub(crate) const FOUND: &str = "found.bin";

/// The folder in which a search for all pairs keeps what it read and found, until its output is whole; see
/// [`DedupJob::pairs_checkpoint`](crate::DedupJob::pairs_checkpoint).
///
/// It stands beside the output, whose name it has with the ending `.pairing`.
pub struct PairsCheckpoint {
    folder: PathBuf,
    entered: EnteredFolder,
}

impl PairsCheckpoint {
    /// Takes the folder beside an output. Without `resume`, what an interrupted job left there is removed.
    ///
    /// # Errors
    /// [`BatchError`]: the folder cannot be made, another job is at work in it, or something else is in it.
    pub fn enter(output: &Path, resume: bool) -> Result<Self, BatchError> {
        let folder = folder_beside(output, ".pairing");
        let job = UnfinishedJob {
            name: "search for pairs",
            // The log of what was read tells of the other.
            files: &[SCANNED, BEGUN, FOUND],
        };
        Ok(Self {
            entered: job.enter(&folder, resume)?,
            folder,
        })
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// True if an earlier job had left there what it could be resumed from.
    pub fn was_resumable(&self) -> bool {
        self.entered.was_resumable
    }

    /// Path of the log of what was read.
    pub(crate) fn scanned(&self) -> PathBuf {
        self.folder.join(SCANNED)
    }

    /// Path of the log of what was found.
    pub(crate) fn found(&self) -> PathBuf {
        self.folder.join(FOUND)
    }

    /// Refuses to go on with what `there`, the description in a log, says of another job.
    pub(crate) fn ensure_same(
        &self,
        identity: &JobIdentity,
        there: Option<&[u8]>,
    ) -> Result<(), BatchError> {
        let there = there.and_then(|there| serde_json::from_slice::<JobIdentity>(there).ok());
        let same = there.map_or(Ok(()), |there| identity.ensure_same(there));
        same.map_err(|reason| self.refuse(reason))
    }

    /// The error of a job that is not the one to resume.
    pub(crate) fn refuse(&self, reason: FolderRefusal) -> BatchError {
        BatchError::OtherUnfinished {
            folder: self.folder.clone(),
            reason,
        }
    }

    /// Removes the folder: the output is whole.
    ///
    /// # Errors
    /// [`BatchError`]: it cannot be removed.
    pub fn finish(self) -> Result<(), BatchError> {
        // The log that tells of the other first: with half of them the folder would be believed.
        let removed = match std::fs::remove_file(self.scanned()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => std::fs::remove_dir_all(&self.folder),
        };
        removed.map_err(BatchError::result(&self.folder))
    }
}

impl Drop for PairsCheckpoint {
    fn drop(&mut self) {
        // An error before anything was kept leaves nothing behind.
        if !can_resume(&self.folder) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
