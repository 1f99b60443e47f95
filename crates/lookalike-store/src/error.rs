//! What can go wrong, and what an operator can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failure of the store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The medium failed.
    #[error("{path}: {action}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// There is no room on the medium: nothing of the write was taken.
    #[error(
        "{path}: the disk is full: the write was refused, reads and deletes go on; free some space and write again", path = path.display()
    )]
    DiskFull {
        /// What could not grow.
        path: PathBuf,
    },
    /// The process, or the system, has as many files open as it may: nothing was done.
    #[error(
        "{path}: too many open files: try again; allow more (ulimit -n), or fewer connections", path = path.display()
    )]
    OutOfFiles {
        /// What could not be opened.
        path: PathBuf,
    },
    /// Bytes are not those that were written.
    #[error(
        "{path}: damaged at byte {offset}: {what}; restore a snapshot, or save what can be read with `salvage` into a new directory", path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file that another part of the store names is not there.
    #[error("{path}: this file is missing, though {named_by} names it; restore a snapshot, or use `salvage`", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The file that names it.
        named_by: &'static str,
    },
    /// A file of another store or collection, or not of a store at all.
    #[error("{path}: {what}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is not.
        what: &'static str,
    },
    /// A file of a version that this program does not know.
    #[error("{path}: version {found} of the format; this program reads version {known}", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: u32,
        /// What this program reads.
        known: u32,
    },
    /// Another process has the store open.
    #[error("{path}: the store is in use by process {holder}; stop it first", path = path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Process id of the holder.
        holder: String,
    },
    /// No store in this directory, and none was to be created.
    #[error("{path}: no store here", path = path.display())]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// No collection of this name.
    #[error("no collection {0:?}")]
    NoCollection(String),
    /// A collection of this name exists with other settings.
    #[error("the collection {name:?} exists already, with {difference}")]
    Exists {
        /// The collection.
        name: String,
        /// What differs.
        difference: String,
    },
    /// A collection of this name is being removed.
    #[error("the collection {0:?} is being removed: try again")]
    BeingRemoved(String),
    /// Another store than the one that is wanted.
    #[error("{path}: this is the store {found}, not {wanted}: is the right medium mounted?", path = path.display())]
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// Its identity.
        found: String,
        /// The identity that is wanted.
        wanted: String,
    },
    /// A name that no collection can have.
    #[error("{0:?} is no name of a collection: 1 to 64 of a-z, 0-9, - and _")]
    BadName(String),
    /// Sketches of one scheme brought to a collection of another.
    #[error("the collection {name:?} has the scheme {wanted} ({difference}), not {found}")]
    OtherScheme {
        /// The collection.
        name: String,
        /// Id of its scheme.
        wanted: String,
        /// Id of the scheme that was brought.
        found: String,
        /// Where the two differ.
        difference: String,
    },
    /// A request that cannot be carried out whatever the state of the store.
    #[error("{0}")]
    Invalid(String),
    /// Writing stopped after a failure of the medium: what was acknowledged is kept, nothing more is taken.
    #[error("writing has stopped: {0}; reads go on; repair the cause and open the store again")]
    Stopped(String),
    /// The collection was closed.
    #[error("the collection is closed")]
    Closed,
}

impl StoreError {
    /// Makes an error of the system's one at a path.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path: path.to_owned(),
            },
            _ if is_out_of_files(&source) => Self::OutOfFiles {
                path: path.to_owned(),
            },
            _ => Self::Io {
                path: path.to_owned(),
                action,
                source: Arc::new(source),
            },
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }

    /// Whether room on the medium would mend it.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    /// Whether it passes without a repair: what failed can be tried again.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::OutOfFiles { .. })
    }
}

/// Whether the process or the system has as many files open as it may.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    // EMFILE and ENFILE have these numbers on all Unix systems.
    matches!(error.raw_os_error(), Some(24 | 23))
}

/// Results of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
