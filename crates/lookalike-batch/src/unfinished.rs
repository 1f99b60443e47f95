//! The folder of what a job made so far, beside its output: after an interruption the job goes on from there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{AtomicFile, Compression, remove_leftovers};

use crate::error::BatchError;
use crate::folder_lock::FolderLock;
use crate::folder_refusal::FolderRefusal;

/// The file that tells what there is to go on from.
pub(crate) const JOB: &str = "job.json";

/// The file that tells that the output has its name.
pub(crate) const DONE: &str = "done";

/// The log of what was read, which tells of which job it is.
pub(crate) const SCANNED: &str = "scanned.bin";

/// The log of the pairs that were found.
pub(crate) const FOUND: &str = "found.bin";

/// True if the folder of a job that was interrupted holds what it can be resumed from, or tells that there is nothing left to do.
pub fn can_resume(folder: &Path) -> bool {
    [JOB, SCANNED, DONE]
        .iter()
        .any(|name| folder.join(name).exists())
}

/// The folder of such a job.
pub(crate) fn folder_beside(output: &Path, ending: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The folder beside an output in which a job keeps what it made so far, until the output is whole. No other job works in it meanwhile.
#[derive(Debug)]
pub struct JobFolder {
    path: PathBuf,
    was_resumable: bool,
    _lock: FolderLock,
}

impl JobFolder {
    /// Takes the folder for a job such as `build`, without what an earlier one left unless that is resumed. `files` are all that it makes
    /// there, those that tell of others before these.
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
        // Another job would save its progress into our files, and give the half-made ones their name.
        let Some(lock) = FolderLock::take(path).map_err(&failed)? else {
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
        let was_resumable = can_resume(path);
        if !resume {
            // The list of what is whole first. The folder stays, or its lock would be one of nothing.
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

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if an earlier job had left there what it could be resumed from.
    pub fn was_resumable(&self) -> bool {
        self.was_resumable
    }

    /// Removes the folder: the output is whole.
    ///
    /// # Errors
    /// [`BatchError`]: it cannot be removed.
    pub fn finish(self) -> Result<(), BatchError> {
        let remove = || {
            // What tells of the rest first: with half of that it would be believed.
            remove_if_there(&self.path.join(JOB))?;
            remove_if_there(&self.path.join(SCANNED))?;
            fs::remove_dir_all(&self.path)
        };
        remove().map_err(BatchError::result(&self.path))
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // An error before anything was kept leaves nothing behind. Once the folder is gone, the next one of that name is another job's.
        if FolderLock::is_held(&self.path) && !can_resume(&self.path) {
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

/// Writes a small file that is there whole or not at all.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), BatchError> {
    let write = || {
        let mut file = AtomicFile::create(path, Compression::None)?;
        file.write_all(bytes)?;
        file.commit()
    };
    write().map_err(BatchError::result(path))
}
