//! Errors of collections on disk, each with its remedy, unless the remedy is an option of the command.

use std::io;
use std::path::{Path, PathBuf};

use crate::folder_refusal::FolderRefusal;

/// A collection on disk that cannot be used, or not by this job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectionError {
    /// The directory has no collection.
    #[error("{}: there is no collection: build one there first, or name the directory of one", .folder.display())]
    Missing {
        /// The directory.
        folder: PathBuf,
    },
    /// A collection cannot be built because there is one already.
    #[error("{}: already holds a collection: add to it, or choose another directory", .folder.display())]
    Exists {
        /// The directory.
        folder: PathBuf,
    },
    /// The path is not a directory.
    #[error("{}: is a file, not the directory of a collection: name a directory, which is created if it is missing", .path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// A collection cannot be built in a directory with other files.
    #[error("{}: holds {name}, which is not part of a collection: choose an empty or new directory", .folder.display())]
    Foreign {
        /// The directory.
        folder: PathBuf,
        /// One of the files.
        name: String,
    },
    /// The collection has another version of the format.
    #[error("{}: the collection has format {found}, but this program reads format {known}: build it again with this program, or use the \
             program that wrote it", .path.display())]
    Version {
        /// The manifest.
        path: PathBuf,
        /// The version that was found.
        found: u64,
        /// The version that this program reads.
        known: u64,
    },
    /// A setting that decides the result differs between the collection and the job.
    #[error("{}: the collection and this job have different settings: {differences}: give the job the settings of the collection, or \
             build a collection with those of the job", .folder.display())]
    Settings {
        /// The directory.
        folder: PathBuf,
        /// Each setting that differs, with both values.
        differences: String,
    },
    /// A file of the collection is damaged.
    #[error("{}: {reason}: restore the directory of the collection from a copy, or build it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage, in words.
        reason: String,
    },
    /// Another job, of this process or another, is adding to the collection.
    #[error("{}: another job is writing to this collection: wait until it has finished, then start this one again", .folder.display())]
    Locked {
        /// The directory.
        folder: PathBuf,
    },
    /// The collection has changed since an interrupted job was compared with it.
    #[error("{}: the collection has changed since the job to resume was compared with it: start that job again", .folder.display())]
    Changed {
        /// The directory.
        folder: PathBuf,
    },
    /// The collection, which the job compares with and adds to, has been added to since the job opened it.
    #[error("{}: the collection has changed since it was opened: lock it before it is opened, and start the job again", .folder.display())]
    Outdated {
        /// The directory.
        folder: PathBuf,
    },
    /// The build to resume has other settings or another input.
    #[error("{}: {reason}", .folder.display())]
    OtherBuild {
        /// The directory.
        folder: PathBuf,
        /// The difference.
        reason: FolderRefusal,
    },
    /// A file of the collection cannot be read.
    #[error("{}: {cause}: check that the collection can be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file of the collection cannot be written.
    #[error("{}: {cause}: the collection could not be written there and is unchanged; check the permissions and the free space, then \
             repeat the command", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The manifest was replaced, but it is not certain that this is on the disk.
    #[error("{}: {cause}: the documents were added to the collection, but a power failure may still undo that: check the disk", .path.display())]
    Unsynced {
        /// The manifest.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl CollectionError {
    /// Makes the error of a manifest that could not be written; `contents` are those that it was to have.
    pub(crate) fn unsaved(path: PathBuf, cause: io::Error, contents: &[u8]) -> Self {
        // The last step, syncing the directory, comes after the manifest has got its name.
        match std::fs::read(&path) {
            Ok(found) if found == contents => Self::Unsynced { path, cause },
            _ => Self::Unwritable { path, cause },
        }
    }

    /// Returns a closure for `map_err` that makes the error of a file that cannot be read.
    pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unreadable {
            path: path.to_owned(),
            cause,
        }
    }

    /// Returns a closure for `map_err` that makes the error of a file of the collection that cannot be opened.
    pub(crate) fn unopened(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |error| match error.kind() {
            io::ErrorKind::NotFound => {
                Self::damaged(path, "this file of the collection is missing")
            }
            _ => Self::unreadable(path)(error),
        }
    }

    /// Returns a closure for `map_err` that makes the error of a file that cannot be written.
    pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Unwritable {
            path: path.to_owned(),
            cause,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
