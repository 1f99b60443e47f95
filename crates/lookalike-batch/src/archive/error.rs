//! Errors of archives, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// An archive that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectionArchiveError {
    /// A source that could not come back byte for byte.
    #[error(
        "{name}: records of {format} are not archived, because they would not come back byte for byte: convert the file to JSON Lines \
         or to one file per document, or leave it out"
    )]
    Inexact {
        /// The source.
        name: String,
        /// Its format.
        format: String,
    },
    /// The file is no archive.
    #[error("{}: not an archive of a collection: name a file that was built as one", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The archive is of another version of the format.
    #[error("{}: an archive of format {found}, and this program reads format {known}: read it with the program that wrote it", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// A part of the file is not what was written.
    #[error("{}: {place} is damaged ({reason}): restore the file from a copy, or build it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The block, record or other part.
        place: String,
        /// The damage, in words.
        reason: String,
    },
    /// No record has the id.
    #[error("{}: holds no document with the id {id:?}: check the id", .path.display())]
    UnknownId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// The memory limit does not hold what compressing a block takes.
    #[error(
        "compressing a block takes {} MiB, and the memory limit leaves {} for it",
        needed.div_ceil(1 << 20), left >> 20
    )]
    BuildMemory {
        /// Bytes that a thread needs.
        needed: u64,
        /// Bytes that are left for it.
        left: u64,
        /// The least limit that would do.
        least: u64,
    },
    /// The memory limit does not hold what reading takes.
    #[error("{}: reading it takes {} MiB, and the memory limit is {}", .path.display(), needed.div_ceil(1 << 20), limit >> 20)]
    ReadMemory {
        /// The file.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("{}: {cause}: check that the archive can be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: {cause}: check the permissions and the free space there, then repeat the command", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
}

impl CollectionArchiveError {
    /// For `map_err`: an archive that cannot be read.
    pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unreadable {
            path: path.to_owned(),
            cause,
        }
    }

    /// For `map_err`: a file that cannot be written.
    pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unwritable {
            path: path.to_owned(),
            cause,
        }
    }
}
