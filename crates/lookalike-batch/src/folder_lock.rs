//! The lock of a folder, which lets one job at a time work in it. It leaves no file behind.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use crate::locks::lock;

/// Folders whose locks this process holds.
static HELD_LOCKS: Mutex<Vec<FolderIdentity>> = Mutex::new(Vec::new());

/// The lock of a folder, held until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
    identity: FolderIdentity,
}

/// Identity of a folder, independent of its path.
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
    /// Takes the lock. Returns `None` if another job holds it.
    pub(crate) fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        let identity = FolderIdentity::of(&file.metadata()?);
        match file.try_lock() {
            // Some network file systems cannot lock folders: jobs run there without a lock.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
        lock(&HELD_LOCKS).push(identity);
        Ok(Some(Self { file, identity }))
    }

    /// Returns true if a job of this process holds the lock of the folder.
    pub(crate) fn is_held(folder: &Path) -> bool {
        folder.metadata().is_ok_and(|data| {
            let identity = FolderIdentity::of(&data);
            lock(&HELD_LOCKS).contains(&identity)
        })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let mut held = lock(&HELD_LOCKS);
        // Before the lock is released: from then on the folder may belong to another process, and `is_held` must not say otherwise.
        if let Some(at) = held.iter().position(|other| *other == self.identity) {
            held.swap_remove(at);
        }
        drop(held);
        // A child process that another thread is just starting has a copy of the handle: closing ours alone would leave the lock with the child.
        let _ended = self.file.unlock();
    }
}
