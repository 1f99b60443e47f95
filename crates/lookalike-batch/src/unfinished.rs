//! The folder of what a job made so far, beside its output: after an interruption the job goes on from there.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lookalike_corpus::{AtomicFile, Compression, remove_leftovers};

use crate::error::BatchError;
use crate::folder_lock::FolderLock;
use crate::folder_refusal::FolderRefusal;

/// The file that tells what there is to go on from.
pub(crate) const JOB: &str = "job.json";

/// The file that tells that the output has its name.
pub(crate) const DONE: &str = "done";

/// The log of what `pairs` read, which tells of which job it is.
pub(crate) const SCANNED: &str = "scanned.bin";

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

/// The folder of such a job, which no other job works in meanwhile.
pub(crate) struct EnteredFolder {
    /// True if an earlier job had left there what it could be resumed from.
    pub(crate) was_resumable: bool,
    _lock: FolderLock,
}

/// Kinds of jobs that have such folders.
pub(crate) struct UnfinishedJob<'a> {
    /// Such as `build`.
    pub(crate) name: &'static str,
    /// All its files, those that tell of others before these.
    pub(crate) files: &'a [&'a str],
}

impl UnfinishedJob<'_> {
    /// Takes the folder for this job, without what an earlier one left unless that is resumed.
    pub(crate) fn enter(&self, folder: &Path, resume: bool) -> Result<EnteredFolder, BatchError> {
        let failed = BatchError::result(folder);
        let refused = |reason: FolderRefusal| BatchError::Folder {
            path: folder.to_owned(),
            reason,
        };
        let job = self.name;
        fs::create_dir_all(folder).map_err(&failed)?;
        // Another job would save its progress into our files, and give the half-made ones their name.
        let Some(lock) = FolderLock::take(folder).map_err(&failed)? else {
            return Err(refused(FolderRefusal::OutputInUse { job }));
        };
        let is_ours = |name: &OsStr| self.files.iter().any(|ours| name == *ours);
        remove_leftovers(folder, is_ours).map_err(&failed)?;
        for entry in fs::read_dir(folder).map_err(&failed)? {
            let found = entry.map_err(&failed)?.file_name();
            if !is_ours(&found) {
                return Err(refused(FolderRefusal::OtherFile { job, name: found }));
            }
        }
        let was_resumable = can_resume(folder);
        if !resume {
            // The list of what is whole first. The folder stays, or its lock would be one of nothing.
            for file in self.files {
                match fs::remove_file(folder.join(file)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(failed(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(EnteredFolder {
            was_resumable,
            _lock: lock,
        })
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
