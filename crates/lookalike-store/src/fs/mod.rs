//! All access to files, behind a small trait: the real file system and, with the feature `simulation`, one that loses power.
//!
//! The store relies on no more than this: a file's bytes are durable after [`FileHandle::sync`]; a name (new, renamed,
//! removed) is durable after [`FileSystem::sync_dir`] of its folder; [`FileSystem::rename`] replaces in one step. Whatever was not
//! synced may be there, be missing, or be there in part, in any combination.

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
    /// A new, empty file to write and read; one of that name is removed first.
    ///
    /// # Errors
    /// Those of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// An existing file to read and, when `write`, to overwrite and extend.
    ///
    /// # Errors
    /// Those of the system.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn FileHandle>>;

    /// Gives a file a new name, in the place of any file that has it.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name; whoever has the file open goes on reading it.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// A second name for a file.
    ///
    /// # Errors
    /// Those of the system, for instance on another medium.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// A new folder that only its owner may look into; none when it is there already.
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

    /// Gives up what is kept open of a folder and of all folders below it: they are complete.
    fn release_dirs(&self, _path: &Path) {}

    /// The names in a folder, ascending.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Takes the lock that a file stands for, creating it where it is missing, and writes `holder` into it; the lock
    /// ends with the value.
    ///
    /// # Errors
    /// [`LockError::Held`] with what the holder wrote.
    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn FileLock>, LockError>;

    /// Takes the lock together with others that only read, and writes nothing: the medium may be one that cannot be
    /// written. Without the file there is nothing to lock.
    ///
    /// # Errors
    /// [`LockError::Held`] with what the holder wrote.
    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError>;
}

/// An open file.
pub trait FileHandle: Send + Sync + fmt::Debug {
    /// Reads some bytes at an offset; none at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes at an offset; how many.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// Those of the system; then nothing is known of the bytes written since the last success.
    fn sync(&self) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn length(&self) -> io::Result<u64>;
}

/// A lock that is held.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// Failure to take a lock.
#[derive(Debug)]
pub enum LockError {
    /// Somebody has it.
    Held {
        /// Text that the holder wrote.
        holder: String,
    },
    /// The file could not be opened.
    Io(io::Error),
}

/// Reads exactly these bytes.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] when the file ends before.
pub(crate) fn read_exact(
    file: &dyn FileHandle,
    mut bytes: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            // Short reads are legal for any file system (network mounts do them): only zero is the end.
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of these bytes.
///
/// # Errors
/// Those of the file; some of the bytes may have been written.
pub(crate) fn write_all(
    file: &dyn FileHandle,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The whole of a file.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_whole(fs: &dyn FileSystem, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path, false)?;
    let mut bytes = vec![0; file.length()? as usize];
    read_exact(&*file, &mut bytes, 0)?;
    Ok(bytes)
}
