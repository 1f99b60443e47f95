//! Opening of regular files without blocking.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The error for a path that is not a regular file.
#[derive(Debug, thiserror::Error)]
#[error("not a regular file")]
struct NotRegular;

/// Opens a regular file for reading.
///
/// Opening a FIFO blocks until a writer opens it, possibly forever: a FIFO that replaced a file found earlier would block a job.
///
/// # Errors
/// Fails if the system refuses, or the path is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a regular file like [`open_regular`], but also for writing: NFS locks no file that is open for reading only.
///
/// # Errors
/// Fails if the system refuses, or the path is not a regular file.
pub fn open_lockable(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true).write(true))
}

fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A FIFO is not even opened, because that could end the program that writes to it...
    check(&path.metadata()?)?;
    let file = options
        // ...unless it appears just now; then the open does not block. The flag has no effect on regular files.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // Another file may have taken the name between the first check and the open; this checks the open file.
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular)),
    }
}

/// Returns true if the error is that the path is not a regular file.
pub(crate) fn is_not_regular(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|cause| cause.is::<NotRegular>())
}

/// Returns true if an error concerns the one file that was opened, not the machine that reads it: the file is gone, may not be read, or was replaced
/// by something else.
pub(crate) fn concerns_file(error: &io::Error) -> bool {
    let of_file = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::StaleNetworkFileHandle
    );
    of_file || is_not_regular(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_without_a_writer_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        for path in [&*fifo, folder.path()] {
            for open in [open_regular, open_lockable] {
                let refused = open(path).unwrap_err();
                assert_eq!(refused.to_string(), "not a regular file");
                assert!(concerns_file(&refused));
            }
        }
        let gone = open_regular(&folder.path().join("gone")).unwrap_err();
        assert!(concerns_file(&gone));
        assert!(
            !concerns_file(&io::Error::from_raw_os_error(24)),
            "too many open files"
        );
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(
            io::read_to_string(open_regular(&file).unwrap()).unwrap(),
            "text"
        );
        open_lockable(&file).unwrap().set_len(4).unwrap();
    }
}
