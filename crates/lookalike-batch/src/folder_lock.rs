//! The lock of a folder, by which one job at a time works in it. It leaves no file behind.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// The lock of a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(Option<File>);

impl FolderLock {
    /// Takes the lock; `None` if another job has it.
    pub(crate) fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            // Some network file systems lock no folders: jobs go on there, as they would without any lock.
            Err(TryLockError::Error(_)) => Ok(Some(Self(None))),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A child that another thread is just starting has a copy of the handle: closing ours would leave the lock to it.
        let _ended = self.0.as_ref().map(File::unlock);
    }
}
