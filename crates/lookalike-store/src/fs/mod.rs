//! All access to files goes through a small trait. It is implemented by the real file system and, with the feature `simulation`, by a
//! simulated one that can lose power.
//!
//! The store relies on the following only: the bytes of a file are durable after [`FileHandle::sync`]; a name (created, renamed or removed)
//! is durable after [`FileSystem::sync_dir`] of its folder; [`FileSystem::rename`] replaces atomically. After a power failure, changes that
//! were not synced may be present, missing, or present in part, in any combination.

mod real;
#[cfg(any(test, feature = "simulation"))]
mod simulated;

use std::fmt;
use std::io;
use std::path::Path;

pub use real::RealFs;
#[cfg(any(test, feature = "simulation"))]
pub use simulated::{CrashPoint, IgnoredSync, InjectedFault, SimulatedFs};

/// A file system.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Creates a new, empty file for reading and writing. An existing file of that name is removed first.
    ///
    /// # Errors
    /// Those of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Opens an existing file for reading and, if `write`, for overwriting and extending.
    ///
    /// # Errors
    /// Those of the system.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn FileHandle>>;

    /// Renames a file, replacing any file with the new name.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name. Handles that are open on the file stay readable.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a second name (hard link) for a file.
    ///
    /// # Errors
    /// Those of the system, for instance if the names are on different media.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Creates a folder that only its owner can access. Does nothing if it already exists.
    ///
    /// # Errors
    /// Those of the system.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Closes handles kept open on a folder and all folders below it, because they are complete.
    fn release_dirs(&self, _path: &Path) {}

    /// Returns the names in a folder in ascending order.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Takes an exclusive lock on a file, creating it if it is missing, and writes `holder` to it. The lock ends when the value is dropped.
    ///
    /// # Errors
    /// [`LockError::Held`] with the text that the holder wrote; [`LockError::Io`].
    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn FileLock>, LockError>;

    /// Takes a lock shared with other readers, without writing anything, because the medium may be read-only. If the file does not exist,
    /// there is nothing to lock.
    ///
    /// # Errors
    /// [`LockError::Held`] with the text that the holder wrote; [`LockError::Io`].
    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError>;
}

/// An open file.
pub trait FileHandle: Send + Sync + fmt::Debug {
    /// Reads bytes at an offset. Returns how many were read; 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes at an offset. Returns how many.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes all bytes written so far durable.
    ///
    /// # Errors
    /// Those of the system; the state of all bytes written since the last successful sync is then unknown.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn length(&self) -> io::Result<u64>;
}

/// A lock that is held until dropped.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// An error while taking a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process or store holds the lock.
    #[error("the lock is held by {holder}")]
    Held {
        /// Text that the holder wrote.
        holder: String,
    },
    /// The file could not be opened.
    #[error("the file of the lock could not be opened: {0}")]
    Io(#[source] io::Error),
}

/// Reads exactly as many bytes as fit in `bytes`.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before that; those of the file.
pub(crate) fn read_exact(file: &dyn FileHandle, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    transfer(bytes.len(), io::ErrorKind::UnexpectedEof, |done| {
        file.read_at(&mut bytes[done..], offset + done as u64)
    })
}

/// Writes all of `bytes`.
///
/// # Errors
/// Those of the file; some of the bytes may have been written then.
pub(crate) fn write_all(file: &dyn FileHandle, bytes: &[u8], offset: u64) -> io::Result<()> {
    transfer(bytes.len(), io::ErrorKind::WriteZero, |done| {
        file.write_at(&bytes[done..], offset + done as u64)
    })
}

/// Calls `part` with the number of bytes that are done, until all are; `end` is the error if no more can be done.
fn transfer(
    bytes: usize,
    end: io::ErrorKind,
    mut part: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        match part(done) {
            // Any file system may do less than was asked (network mounts do), so only zero means the end.
            Ok(0) => return Err(end.into()),
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a file with these bytes, or replaces it, and syncs it, but not the folder that names it.
///
/// # Errors
/// Those of the system. A file system with delayed allocation reports a full disk only when it syncs.
pub(crate) fn write_file(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = fs.create(path)?;
    write_all(&*file, bytes, 0)?;
    file.sync()
}

/// Reads a whole file.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_whole(fs: &dyn FileSystem, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path, false)?;
    let mut bytes = vec![0; file.length()? as usize];
    read_exact(&*file, &mut bytes, 0)?;
    Ok(bytes)
}
