//! Errors of archives, each with a remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectionArchiveError {
    /// A source cannot be restored byte for byte.
    #[error(
        "{name}: records of {format} are not archived, because they would not come back byte for byte: convert the file to JSON Lines \
         or to one file per document, or leave it out"
    )]
    Inexact {
        /// Name of the source.
        name: String,
        /// Format of the source.
        format: String,
    },
    /// The file is not an archive.
    #[error("{}: not a collection archive: name a file that an archive build wrote", .path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The archive has another format version.
    #[error("{}: the archive has format {found}, but this program reads format {known}: read it with the program that wrote it", .path.display())]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The format version of this program.
        known: u32,
    },
    /// A part of the file differs from what was written.
    #[error("{}: {place} is damaged ({reason}): restore the file from a copy, or build it again", .path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Name of the block, record or other part.
        place: String,
        /// Description of the damage.
        reason: String,
    },
    /// No document has the id.
    #[error("{}: holds no document with the id {id:?}: check the id", .path.display())]
    UnknownId {
        /// Path of the file.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// The memory limit is too low for compressing a block.
    #[error(
        "compressing a block takes {} MiB, and the memory limit leaves {} MiB for it",
        needed.div_ceil(1 << 20), left >> 20
    )]
    BuildMemory {
        /// Bytes that a thread needs.
        needed: u64,
        /// Bytes that are left for it.
        left: u64,
        /// The minimum limit that would be enough.
        least: u64,
    },
    /// The memory limit is too low for reading.
    #[error("{}: reading it takes {} MiB, and the memory limit is {} MiB", .path.display(), needed.div_ceil(1 << 20), limit >> 20)]
    ReadMemory {
        /// Path of the file.
        path: PathBuf,
        /// Bytes that reading needs.
        needed: u64,
        /// The memory limit in bytes.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("{}: {cause}: check that the archive can be read", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: {cause}: check the permissions and the free space there, then repeat the command", .path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl CollectionArchiveError {
    /// For `map_err`: wraps the error of an archive that cannot be read.
    pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unreadable {
            path: path.to_owned(),
            cause,
        }
    }

    /// Returns a closure that makes the error of a damaged part, from its name and the reason.
    pub(crate) fn damaged<P: Into<String>>(path: &Path) -> impl Fn(P, &str) -> Self + '_ {
        move |place, reason| Self::Damaged {
            path: path.to_owned(),
            place: place.into(),
            reason: reason.to_owned(),
        }
    }

    /// For `map_err`: wraps the error of a file that cannot be written.
    pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unwritable {
            path: path.to_owned(),
            cause,
        }
    }
}
