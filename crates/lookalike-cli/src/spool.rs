//! The folder for the temporary files of a command.
//!
//! A killed command cannot remove its folder, so the next one in the same place does. Each command locks a file in its own folder. The system
//! releases the lock when the process ends, however it ends, so a folder whose lock can be acquired is abandoned.

use std::fs::{File, read_dir, remove_dir_all};
use std::io;
use std::path::Path;

use lookalike_batch::SPOOL;
use tempfile::{Builder, TempDir};

use crate::interrupt;

/// The file that is locked.
const LOCK: &str = "in-use";

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
        remove_abandoned(parent);
        let folder =
            interrupt::temporary_folder(|| Builder::new().prefix(SPOOL).tempdir_in(parent))?;
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
    let (waiting, path) = (folder.join("new"), folder.join(LOCK));
    let file = File::create(&waiting).ok()?;
    file.try_lock().ok()?;
    std::fs::rename(&waiting, &path).ok()?;
    Some(file)
}

/// Removes folders whose commands have ended. Folders that cannot be read or removed belong to other users, and stay.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_spool = entry.file_name().to_string_lossy().starts_with(SPOOL);
        // This excludes links to folders.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_spool && is_folder && is_abandoned(&entry.path()) {
            let _ = remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK));
    // Locks of this kind belong to the open file, so a second attempt in the same process fails, too: several jobs of one program do not remove each
    // other's folders.
    lock.is_ok_and(|file| file.try_lock().is_ok())
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
        std::fs::write(abandoned.join(LOCK), "").unwrap();
        let foreign = parent.path().join(format!("{SPOOL}foreign"));
        std::fs::create_dir(&foreign).unwrap();
        let second = Spool::new(parent.path()).unwrap();
        assert!(used.path().exists() && second.path().exists());
        assert!(!abandoned.exists() && foreign.exists());
        drop(used);
        assert_eq!(read_dir(parent.path()).unwrap().count(), 2);
    }
}
