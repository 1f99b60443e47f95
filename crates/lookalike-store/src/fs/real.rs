//! The file system of the machine.
//!
//! It changes nothing under a lock whose file was moved away. It keeps a handle on each folder that it has synced, until the folder is complete, and some open files in reserve, so that a service
//! that reaches its limit on open files in a burst of connections can still store documents.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use super::{FileHandle, FileLock, FileSystem, LockError};
use crate::error::is_out_of_descriptors;
use crate::sync::lock;

/// Number of open files that are kept in reserve, to be closed one by one if no others are available.
const RESERVE: usize = 16;
/// A file that can always be opened.
const DEV_NULL: &str = "/dev/null";

/// The file system of the machine, which implements [`FileSystem`].
#[derive(Debug, Default)]
pub struct RealFs {
    folders: Mutex<BTreeMap<PathBuf, Arc<fs::File>>>,
    reserve: Mutex<Vec<fs::File>>,
    locks: Mutex<Vec<Weak<HeldLock>>>,
}

/// The file of an exclusive lock that is held.
#[derive(Debug)]
struct HeldLock {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl HeldLock {
    fn of(file: &fs::File, path: &Path) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Returns true if the file is still at its path.
    fn is_there(&self) -> bool {
        fs::metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }
}

impl RealFs {
    /// Opens something, using a file of the reserve if the limit on open files is reached.
    fn open_with<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match open() {
                Err(error) if is_out_of_descriptors(&error) => {
                    // Sockets of a service and files of the store share one limit. If a burst of connections takes the last descriptors, a
                    // log that cannot be rotated would refuse writes: the reserve is for such cases.
                    let mut reserve = lock(&self.reserve);
                    if reserve.pop().is_none() {
                        return Err(error);
                    }
                    // While the lock is held, no other thread of the store can take the file that was closed.
                    match open() {
                        Err(error) if is_out_of_descriptors(&error) => {}
                        opened => return opened,
                    }
                }
                opened => {
                    self.fill_reserve();
                    return opened;
                }
            }
        }
    }

    fn fill_reserve(&self) {
        let mut reserve = lock(&self.reserve);
        while reserve.len() < RESERVE {
            match fs::File::open(DEV_NULL) {
                Ok(file) => reserve.push(file),
                Err(_) => return,
            }
        }
    }

    /// Fails if a folder whose lock is held was moved or replaced. Paths in it then name files of another store, which must not be changed.
    fn ensure_in_place(&self, path: &Path) -> io::Result<()> {
        let mut locks = lock(&self.locks);
        locks.retain(|held| held.strong_count() > 0);
        let moved = locks.iter().filter_map(Weak::upgrade).find(|held| {
            let folder = held.path.parent();
            folder.is_some_and(|folder| path.starts_with(folder)) && !held.is_there()
        });
        match moved {
            None => Ok(()),
            Some(held) => Err(io::Error::other(format!(
                "the store at {} was moved or replaced while it was open",
                held.path.parent().unwrap_or(&held.path).display()
            ))),
        }
    }

    fn drop_folder(&self, path: &Path) {
        lock(&self.folders).remove(path);
    }
}

impl FileSystem for RealFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        self.ensure_in_place(path)?;
        // Create a new inode instead of truncating the file: those who have the old one open or linked keep its contents.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(Box::new(self.open_with(|| options.open(path))?))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        Ok(Box::new(self.open_with(|| options.open(path))?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ensure_in_place(to)?;
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ensure_in_place(path)?;
        fs::remove_file(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ensure_in_place(to)?;
        fs::hard_link(from, to)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.ensure_in_place(path)?;
        // Texts may be private, so only the owner may list or read them, whatever the umask.
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => {
                // A handle kept for this path would refer to a folder that is gone.
                self.drop_folder(path);
                made
            }
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.ensure_in_place(path)?;
        self.drop_folder(path);
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // Keep the handle, because it also preserves errors: Linux reports a failed write-back once to each descriptor that was open at the
        // time, and possibly not to one that is opened afterwards.
        let known = lock(&self.folders).get(path).cloned();
        let folder = match known {
            Some(folder) => folder,
            None => {
                let folder = Arc::new(self.open_with(|| fs::File::open(path))?);
                lock(&self.folders).insert(path.to_owned(), Arc::clone(&folder));
                folder
            }
        };
        folder.sync_all()
    }

    fn release_dirs(&self, path: &Path) {
        lock(&self.folders).retain(|folder, _| !folder.starts_with(path));
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.open_with(|| fs::read_dir(path))? {
            // The names of the store are all ASCII, so skip others.
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn FileLock>, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(LockError::Io)?;
        // The system releases the lock when the file is closed, so a killed process leaves none.
        ensure_free(&mut file, fs::File::try_lock)?;
        // The text only explains the lock, so a full disk must not keep a store from opening.
        let written = file
            .rewind()
            .and_then(|()| file.write_all(holder.as_bytes()))
            .and_then(|()| file.set_len(holder.len() as u64));
        drop(written);
        let held = Arc::new(HeldLock::of(&file, path).map_err(LockError::Io)?);
        lock(&self.locks).push(Arc::downgrade(&held));
        Ok(Box::new(LockedFile {
            file,
            _held: Some(held),
        }))
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        let mut file = match fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Box::new(NoLockFile));
            }
            opened => opened.map_err(LockError::Io)?,
        };
        ensure_free(&mut file, fs::File::try_lock_shared)?;
        Ok(Box::new(LockedFile { file, _held: None }))
    }
}

/// Takes a lock, or returns who holds it.
fn ensure_free(
    file: &mut fs::File,
    take: impl Fn(&fs::File) -> Result<(), TryLockError>,
) -> Result<(), LockError> {
    match take(file) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(LockError::Io)?;
            Err(LockError::Held { holder })
        }
        Err(TryLockError::Error(error)) => Err(LockError::Io(error)),
    }
}

/// The lock of a file that does not exist.
#[derive(Debug)]
struct NoLockFile;

impl FileLock for NoLockFile {}

impl FileHandle for fs::File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // This is `fdatasync`: it flushes the length where later reads need it, but no timestamps.
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// A file whose lock is released immediately when it is dropped.
#[derive(Debug)]
struct LockedFile {
    file: fs::File,
    /// Keeps the folder of an exclusive lock from being changed once it is elsewhere.
    _held: Option<Arc<HeldLock>>,
}

impl FileLock for LockedFile {}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // A lock belongs to the open file. A child process that another thread is just starting has a copy of the handle until its program
        // begins, and would keep the lock if this handle were only closed. If unlocking fails, the lock ends with the last handle.
        let _ended = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_being_started_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let file = fs::File::create(&path).expect("a file");
        // The same open file, as a forked child has it until its program begins.
        let inherited = file.try_clone().expect("a second handle");
        file.try_lock().expect("free");
        drop(LockedFile { file, _held: None });
        let again = RealFs::default().lock(&path, "the next");
        assert!(again.is_ok(), "{again:?}");
        drop(inherited);
    }

    #[test]
    fn a_store_that_was_moved_wrote_into_the_one_at_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let [here, away] = ["store", "moved"].map(|name| folder.path().join(name));
        let fs_of_first = RealFs::default();
        fs_of_first.create_dir(&here).expect("a folder");
        let held = fs_of_first.lock(&here.join("LOCK"), "first").expect("free");
        fs_of_first.create(&here.join("a")).expect("its own folder");
        fs::rename(&here, &away).expect("moved");
        let second = RealFs::default();
        second.create_dir(&here).expect("a folder");
        let _other = second.lock(&here.join("LOCK"), "second").expect("free");
        second.create(&here.join("b")).expect("its own folder");
        for changed in [
            fs_of_first.create(&here.join("b")).map(drop),
            fs_of_first.rename(&here.join("b"), &here.join("c")),
            fs_of_first.remove(&here.join("b")),
            fs_of_first.create_dir(&here.join("d")),
        ] {
            let error = changed.expect_err("the folder of another");
            assert!(error.to_string().contains("moved or replaced"), "{error}");
        }
        assert_eq!(second.list(&here).expect("a folder"), ["LOCK", "b"]);
        drop(held);
        fs_of_first
            .create(&here.join("e"))
            .expect("no lock is held");
    }
}
