//! The folder of a build, `OUTPUT.building`, and how its result gets its name.

use std::fs;
use std::path::{Path, PathBuf};

use lookalike_corpus::{open_regular, parent_directory, sync_directory};

use crate::dedup::hashing_stream::HashingStream;
use crate::error::BatchError;
use crate::fingerprints::files::FingerprintSource;
use crate::fingerprints::unfinished::{JOB, UnfinishedJob, folder_beside};
use crate::folder_lock::FolderLock;

/// The index so far.
pub(super) const PART: &str = "part";
/// Describes how far an index of fingerprints is whole.
pub(super) const PROGRESS: &str = "progress";
/// Fingerprints, ids and ends of ids, as they came.
pub(super) const CODES: &str = "codes";
pub(super) const TEXTS: &str = "ids.txt";
pub(super) const ENDS: &str = "ids.ends";
/// Different sketches, and the first id of each.
pub(super) const SKETCHES: &str = "sketches";
pub(super) const FIRSTS: &str = "ids.firsts";

/// The folder of a build, which no other build works in meanwhile.
pub struct BuildFolder {
    path: PathBuf,
    _lock: FolderLock,
}

impl BuildFolder {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the build of an output.
    pub(super) fn of(output: &Path) -> PathBuf {
        folder_beside(output, ".building")
    }

    /// Takes the folder beside the output. What an interrupted build of any kind left there is removed, unless it is resumed.
    pub(super) fn enter(output: &Path, resume: bool) -> Result<Self, BatchError> {
        let path = Self::of(output);
        let job = UnfinishedJob {
            name: "build",
            // The list of what is whole first.
            files: &[PROGRESS, JOB, PART, CODES, SKETCHES, FIRSTS, TEXTS, ENDS],
        };
        let lock = job.enter(&path, resume)?;
        Ok(Self { path, _lock: lock })
    }
}

/// Gives the index in the folder its name, and removes the folder.
pub(super) fn install(folder: &Path, output: &Path) -> Result<(), BatchError> {
    fs::rename(folder.join(PART), output)
        // The new name is durable before the only other copy of the work goes.
        .and_then(|()| sync_directory(parent_directory(output)))
        .map_err(BatchError::result(output))?;
    fs::remove_dir_all(folder).map_err(BatchError::result(folder))
}

/// The inputs of a build by name and content, not by time: a file that was replaced between two attempts makes it another build.
pub(super) fn identity(inputs: &[FingerprintSource]) -> String {
    let input = |source: &FingerprintSource| (source.name().to_owned(), content_sum(source.path()));
    let inputs: Vec<_> = inputs.iter().map(input).collect();
    format!("{inputs:?}")
}

/// The sum of the bytes of a file; none of what can be read only once.
fn content_sum(path: &Path) -> Option<u64> {
    let mut file = open_regular(path).ok()?;
    let mut sum = HashingStream::new(std::io::sink());
    std::io::copy(&mut file, &mut sum).ok()?;
    Some(sum.digest())
}

/// An interrupted build in the folder that is not the one to resume.
pub(super) fn other_build(folder: &Path) -> BatchError {
    BatchError::Settings(format!(
        "{}: an interrupted build with other inputs or settings: run without --resume to start again",
        folder.display()
    ))
}
