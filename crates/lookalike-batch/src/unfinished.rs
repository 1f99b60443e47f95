//! The folder beside an output that holds the intermediate files of a job: an interrupted job resumes from it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{AtomicFile, Compression, remove_leftovers};

use crate::error::BatchError;
use crate::folder_refusal::FolderRefusal;
use crate::path_lock::PathLock;

/// The marker file of a resumable job.
pub(crate) const JOB: &str = "job.json";

/// The marker file of a job whose output has its final name.
pub(crate) const DONE: &str = "done";

/// The log of what was read. It begins with the identity of its job.
pub(crate) const SCANNED: &str = "scanned.bin";

/// The log of the pairs found.
pub(crate) const FOUND: &str = "found.bin";

/// Returns true if the folder of an interrupted job holds something to resume from, or the mark that nothing is left to do.
pub fn can_resume(folder: &Path) -> bool {
    [JOB, SCANNED, DONE]
        .iter()
        .any(|name| folder.join(name).exists())
}

/// Returns the path of the folder beside `output`.
pub(crate) fn sibling_folder(output: &Path, ending: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The folder beside an output in which a job stores its intermediate files until the output is complete. No other job works in it meanwhile.
#[derive(Debug)]
pub struct JobFolder {
    path: PathBuf,
    was_resumable: bool,
    _lock: PathLock,
}

impl JobFolder {
    /// Takes the folder for a job such as `build`. Unless `resume` is set, removes the files of an earlier job. `files` are the names of all
    /// files that the job writes there; those that refer to others come first.
    pub(crate) fn enter(
        job: &'static str,
        path: &Path,
        files: &[&str],
        resume: bool,
    ) -> Result<Self, BatchError> {
        let failed = BatchError::result(path);
        let refused = |reason: FolderRefusal| BatchError::Folder {
            path: path.to_owned(),
            reason,
        };
        fs::create_dir_all(path).map_err(&failed)?;
        // Another job would write its progress into our files, and rename them before they are complete.
        let Some(lock) = PathLock::take(path).map_err(&failed)? else {
            return Err(refused(FolderRefusal::OutputInUse { job }));
        };
        let is_ours = |name: &OsStr| files.iter().any(|ours| name == *ours);
        remove_leftovers(path, is_ours).map_err(&failed)?;
        for entry in fs::read_dir(path).map_err(&failed)? {
            let found = entry.map_err(&failed)?.file_name();
            if !is_ours(&found) {
                return Err(refused(FolderRefusal::OtherFile { job, name: found }));
            }
        }
        // Noted before the files are removed, so that a caller can tell what it gave up.
        let was_resumable = can_resume(path);
        if !resume {
            // Remove the files in this order, references first. Keep the folder, or its lock would lock nothing.
            for file in files {
                remove_if_there(&path.join(file)).map_err(&failed)?;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            was_resumable,
            _lock: lock,
        })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if an earlier job left something to resume from.
    pub fn was_resumable(&self) -> bool {
        self.was_resumable
    }

    /// Removes the folder once the output is complete.
    ///
    /// # Errors
    /// [`BatchError`] if it cannot be removed.
    pub fn finish(self) -> Result<(), BatchError> {
        let remove = || {
            // The marker first: next to half of the other files, it would be believed.
            remove_if_there(&self.path.join(JOB))?;
            remove_if_there(&self.path.join(SCANNED))?;
            fs::remove_dir_all(&self.path)
        };
        remove().map_err(BatchError::result(&self.path))
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // A job that failed before saving anything leaves nothing behind. If the folder is gone, one of that name belongs to another job.
        if PathLock::is_held(&self.path) && !can_resume(&self.path) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a small file atomically.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), BatchError> {
    write_whole(path, bytes).map_err(BatchError::result(path))
}

/// Does the same, with the error of the system.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path, Compression::None)?;
    file.write_all(bytes)?;
    file.commit()
}
