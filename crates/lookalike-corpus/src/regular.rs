//! Opening of regular files, which never waits.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// There is something else than a regular file.
#[derive(Debug, thiserror::Error)]
#[error("not a regular file")]
struct NotRegular;

/// Opens a regular file to read it.
///
/// Whoever opens a FIFO waits until somebody writes to it, which may be never: a FIFO in the place of a file that was found before
/// would stop a job.
///
/// # Errors
/// When the system refuses, or there is something else than a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // A FIFO is not even opened, for that could end the program that writes to it...
    check(&path.metadata()?)?;
    let file = OpenOptions::new()
        .read(true)
        // ...unless it comes just now; then nobody waits for it. Regular files do not know this flag.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // Between the first check and the opening another file may have taken the name; this one is of what is
    // open.
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular)),
    }
}

/// Returns true if there is something else than a regular file.
pub(crate) fn is_not_regular(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|cause| cause.is::<NotRegular>())
}

/// Tells whether the cause of an error is the one file that was opened, not the machine that reads it: the file is gone, may not be
/// read, or is something else now.
pub(crate) fn is_of_file(error: &io::Error) -> bool {
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
            let refused = open_regular(path).unwrap_err();
            assert_eq!(refused.to_string(), "not a regular file");
            assert!(is_of_file(&refused));
        }
        let gone = open_regular(&folder.path().join("gone")).unwrap_err();
        assert!(is_of_file(&gone));
        assert!(
            !is_of_file(&io::Error::from_raw_os_error(24)),
            "too many open files"
        );
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(
            io::read_to_string(open_regular(&file).unwrap()).unwrap(),
            "text"
        );
    }
}
