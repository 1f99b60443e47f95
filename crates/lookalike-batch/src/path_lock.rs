//! The lock of a folder or a file, which lets one job at a time work on it. It leaves no file behind.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use crate::locks::lock;

/// Folders and files whose locks this process holds.
static HELD_LOCKS: Mutex<Vec<PathIdentity>> = Mutex::new(Vec::new());

/// The lock of a folder or a file, held until it is dropped.
#[derive(Debug)]
pub struct PathLock {
    file: File,
    identity: PathIdentity,
}

/// Identity of a folder or a file, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PathIdentity {
    device: u64,
    number: u64,
}

impl PathIdentity {
    fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            number: data.ino(),
        }
    }
}

impl PathLock {
    /// Takes the lock. Returns `None` if another job holds it.
    ///
    /// # Errors
    /// Returns an error if nothing has this path, or it cannot be opened.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = File::open(path)?;
            let identity = PathIdentity::of(&file.metadata()?);
            match file.try_lock() {
                // Some network file systems cannot lock folders: jobs run there without a lock.
                Ok(()) | Err(TryLockError::Error(_)) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
            // The holder before may have removed or replaced what was opened, and another job may hold the lock of what is there now.
            if PathIdentity::of(&path.metadata()?) == identity {
                lock(&HELD_LOCKS).push(identity);
                return Ok(Some(Self { file, identity }));
            }
        }
    }

    /// Returns true if a job of this process holds the lock of the folder.
    pub(crate) fn is_held(folder: &Path) -> bool {
        folder.metadata().is_ok_and(|data| {
            let identity = PathIdentity::of(&data);
            lock(&HELD_LOCKS).contains(&identity)
        })
    }
}

impl Drop for PathLock {
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
