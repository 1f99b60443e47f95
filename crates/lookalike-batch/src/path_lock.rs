//! The lock of a folder or a file, which lets one job at a time work on it. It leaves no file behind.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use lookalike_corpus::open_lockable;

use crate::locks::lock;

/// Number of files that are opened one after the other, because another one takes the path each time, before the lock of the last one counts.
const MAX_ROUNDS: u32 = 16;

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
        Self::take_at(path, |path| Ok(PathIdentity::of(&path.metadata()?)))
    }

    /// Takes the lock like [`PathLock::take`], where `at` returns what has the path.
    fn take_at(
        path: &Path,
        at: impl Fn(&Path) -> io::Result<PathIdentity>,
    ) -> io::Result<Option<Self>> {
        let mut rounds = 0;
        loop {
            // Folders cannot be opened for writing.
            let file = open_lockable(path).or_else(|_| File::open(path))?;
            let opened = PathIdentity::of(&file.metadata()?);
            match file.try_lock() {
                // Some network file systems cannot lock folders: jobs run there without a lock.
                Ok(()) | Err(TryLockError::Error(_)) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
            // The holder before may have removed or replaced what was opened, and another job may hold the lock of what is there now.
            let identity = at(path)?;
            rounds += 1;
            // On some network file systems, an open file never has the identity of its path.
            if identity == opened || rounds == MAX_ROUNDS {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nfs_locked_no_file_because_it_was_open_for_reading_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lock = PathLock::take(file.path()).unwrap().unwrap();
        // The system refuses this where NFS refuses a lock.
        lock.file.set_len(0).unwrap();
    }

    #[test]
    fn a_lock_was_sought_for_ever_where_open_files_have_numbers_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let other = PathIdentity {
            device: u64::MAX,
            number: 1,
        };
        let lock = PathLock::take_at(folder.path(), |_| Ok(other)).unwrap();
        assert!(lock.is_some());
        assert!(PathLock::take(folder.path()).unwrap().is_none());
    }
}
