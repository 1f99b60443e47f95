//! The folder for the temporary files of a command.
//!
//! A killed command cannot remove its folder, so the next one in the same place does. Each command locks a file in its own folder. The system
//! releases the lock when the process ends, however it ends, so a folder whose lock can be acquired is abandoned.

use std::fs::File;
use std::io;
use std::path::Path;

use lookalike_batch::{SPOOL, SPOOL_LOCK, remove_abandoned_spools};
use tempfile::{Builder, TempDir};

use crate::interrupt::{TemporaryPath, listed};

/// A folder for temporary files, which is removed with the command.
pub(crate) struct Spool {
    // Dropped before the lock, so that no other command finds the folder abandoned while it is being removed.
    folder: TempDir,
    /// Locked while it is open.
    _lock: Option<File>,
}

impl Spool {
    /// Creates a folder in `parent`, and removes those of killed commands there.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        // Before the new folder is created, which must not be examined while it has no lock.
        remove_abandoned_spools(parent);
        let make = || Builder::new().prefix(SPOOL).tempdir_in(parent);
        let folder = listed(make, |folder| TemporaryPath::Folder(folder.path().into()))?;
        Ok(Self {
            _lock: lock(folder.path()),
            folder,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a new folder. On file systems without locks, there is no lock file, so no other command removes the folder.
fn lock(folder: &Path) -> Option<File> {
    // Under another name until it is locked, so that no other command finds it unlocked.
    let (waiting, path) = (folder.join("new"), folder.join(SPOOL_LOCK));
    let file = File::create(&waiting).ok()?;
    file.try_lock().ok()?;
    std::fs::rename(&waiting, &path).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_use_stay_and_abandoned_ones_go() {
        let parent = tempfile::tempdir().unwrap();
        let used = Spool::new(parent.path()).unwrap();
        let abandoned = parent.path().join(format!("{SPOOL}killed"));
        std::fs::create_dir(&abandoned).unwrap();
        std::fs::write(abandoned.join(SPOOL_LOCK), "").unwrap();
        let foreign = parent.path().join(format!("{SPOOL}foreign"));
        std::fs::create_dir(&foreign).unwrap();
        let second = Spool::new(parent.path()).unwrap();
        assert!(used.path().exists() && second.path().exists());
        assert!(!abandoned.exists() && foreign.exists());
        drop(used);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 2);
    }
}
