//! The lock of a folder, by which one job at a time works in it. It leaves no file behind.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use crate::locks::lock;

/// Folders whose locks this process holds.
static HELD: Mutex<Vec<FolderIdentity>> = Mutex::new(Vec::new());

/// The lock of a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
    identity: FolderIdentity,
}

/// A folder, whatever paths lead to it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FolderIdentity {
    device: u64,
    number: u64,
}

impl FolderIdentity {
    fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            number: data.ino(),
        }
    }
}

impl FolderLock {
    /// Takes the lock; `None` if another job has it.
    pub(crate) fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        let identity = FolderIdentity::of(&file.metadata()?);
        match file.try_lock() {
            // Some network file systems lock no folders: jobs go on there, as they would without any lock.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
        lock(&HELD).push(identity);
        Ok(Some(Self { file, identity }))
    }

    /// True if a job of this process has the folder for itself.
    pub(crate) fn is_held(folder: &Path) -> bool {
        folder.metadata().is_ok_and(|data| {
            let identity = FolderIdentity::of(&data);
            lock(&HELD).contains(&identity)
        })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let mut held = lock(&HELD);
        if let Some(at) = held.iter().position(|other| *other == self.identity) {
            held.swap_remove(at);
        }
        drop(held);
        // A child that another thread is just starting has a copy of the handle: closing ours would leave the lock to it.
        let _ended = self.file.unlock();
    }
}
