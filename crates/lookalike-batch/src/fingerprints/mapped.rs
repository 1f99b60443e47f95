//! Provides the bytes of an index file in memory, either mapped or read completely.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use lookalike_corpus::open_regular;
use lookalike_hamming::{FileError, SharedBytes, share};

use crate::error::BatchError;
use crate::fingerprints::files::CodesError;

/// Maps a file, which opens it at once; the system keeps the parts that are used in memory.
///
/// Index files are never changed in place: a build writes a new file and renames it. Truncating or overwriting a file while it is searched breaks the
/// search, as with any database file.
///
/// # Errors
/// If the file cannot be opened or mapped.
pub fn map(path: &Path) -> io::Result<SharedBytes> {
    map_file(&open_regular(path)?)
}

/// Does the same as [`map`] for an open file.
#[expect(unsafe_code, reason = "mapping a file")]
pub(super) fn map_file(file: &File) -> io::Result<SharedBytes> {
    // No system maps zero bytes; the header check then says what is wrong with an empty file.
    if file.metadata()?.len() == 0 {
        return Ok(Arc::new(Vec::<u8>::new()));
    }
    // SAFETY: the mapping is private to readers and is only read. That nobody changes the file in the meantime is the contract that the documentation
    // states.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Arc::new(map))
}

/// Reads a file into memory. This is slower to open but faster to search at random, and later changes of the file have no effect.
///
/// Requests huge pages, which halve the cost of random accesses in more than a gigabyte.
///
/// # Errors
/// If the file cannot be read, or memory is short.
pub fn read(path: &Path) -> io::Result<SharedBytes> {
    let mut file = open_regular(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(Arc::new(Vec::<u8>::new()));
    }
    // Anonymous memory instead of a vector, since huge pages can be requested only for a mapping of its own.
    let mut memory = memmap2::MmapMut::map_anon(length)?;
    #[cfg(target_os = "linux")]
    {
        // This is only a hint: without huge pages the same bytes are read more slowly.
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    file.read_exact(&mut memory)?;
    Ok(share(memory))
}

/// Tells whether a file starts with these bytes. Returns false if it cannot be opened.
pub(super) fn begins_with(path: &Path, magic: [u8; 4]) -> bool {
    let mut head = [0; 4];
    let mut file = open_regular(path).ok();
    let read = file.as_mut().map(|file| file.read_exact(&mut head));
    matches!(read, Some(Ok(()))) && head == magic
}

/// For `map_err`: wraps the error of an index that cannot be read.
pub(super) fn unreadable(path: &Path) -> impl Fn(io::Error) -> BatchError + '_ {
    move |cause| BatchError::File {
        path: path.to_owned(),
        cause,
        remedy: "name an index made by `lookalike index build`",
    }
}

/// For `map_err`: wraps the error of a file that is a damaged index, no index, or one of another width.
pub(super) fn damaged(path: &Path) -> impl Fn(FileError) -> BatchError + '_ {
    move |cause| {
        let path = path.display().to_string();
        match cause {
            FileError::OtherWidth { found, wanted } => CodesError::Width {
                name: path,
                found,
                wanted,
            }
            .into(),
            cause => BatchError::IndexFile { path, cause },
        }
    }
}
