//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike::scheme::ParseOptionError;

use crate::document_sketch::SketchForm;

/// An error of the store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The medium failed.
    #[error("{path}: {action}: {cause}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the system.
        cause: Arc<io::Error>,
    },
    /// The medium is full: nothing of the write was accepted.
    #[error(
        "{path}: the disk is full, so nothing was written; free some space and try again", path = path.display()
    )]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The process or the system has reached its limit on open files, so the operation was not done.
    #[error(
        "{path}: too many open files; try again, or raise the limit (ulimit -n)", path = path.display()
    )]
    OutOfFiles {
        /// The file that could not be opened.
        path: PathBuf,
    },
    /// A file does not hold the bytes that were written.
    #[error(
        "{path}: damaged at byte {offset}: {what}; restore a snapshot, or salvage the readable data into a new directory", path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the damage.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
    /// A file that another part of the store names is missing.
    #[error("{path}: this file is missing although {named_by} names it; restore a snapshot, or salvage the readable data into a new directory", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The file that names it.
        named_by: &'static str,
    },
    /// The file belongs to another store or collection, or to no store at all.
    #[error("{path}: {what}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of the mismatch.
        what: &'static str,
    },
    /// The file has a format version that this program does not know.
    #[error("{path}: this is version {found} of the format, but this program reads versions up to {known}", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Format version of the file.
        found: u32,
        /// Latest format version that this program reads.
        known: u32,
    },
    /// The store is already open, in this process or another.
    #[error("{}: {}", path.display(), lock_holder_message(holder))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Process id of the holder.
        holder: String,
    },
    /// There is no store in this directory, and the options do not ask for a new one.
    #[error("{path}: there is no store in this directory", path = path.display())]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds a snapshot; opening it as a store would change files that [`restore`](crate::restore) verifies.
    #[error("{path}: this is a snapshot, not a store; restore it into a new directory", path = path.display())]
    IsSnapshot {
        /// The directory.
        path: PathBuf,
    },
    /// The target directory already contains files.
    #[error("{path}: this directory is not empty; name a new directory", path = path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// There is no collection of this name.
    #[error("no collection {0:?}")]
    NoCollection(String),
    /// A collection of this name already exists with other settings.
    #[error("the collection {name:?} already exists with other settings: {difference}")]
    Exists {
        /// The collection.
        name: String,
        /// Differences of the settings.
        difference: String,
    },
    /// A collection of this name is being removed.
    #[error("the collection {0:?} is being removed; try again")]
    BeingRemoved(String),
    /// The store is not the one wanted.
    #[error("{path}: this is the store {found}, not {wanted}; check that the right volume is mounted", path = path.display())]
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// Identity of the store.
        found: String,
        /// Identity wanted.
        wanted: String,
    },
    /// The name is not valid for a collection.
    #[error(
        "{0:?} is not a valid name of a collection: use 1 to 64 characters of a-z, 0-9, - and _"
    )]
    BadName(String),
    /// The scheme's sketch has parameters that make no sense.
    #[error(transparent)]
    BadSketch(ParseOptionError),
    /// The sketches were made with another scheme than that of the collection.
    #[error("the collection {name:?} has the scheme {wanted}, not {found} ({difference})")]
    OtherScheme {
        /// The collection.
        name: String,
        /// Id of its scheme.
        wanted: String,
        /// Id of the scheme of the sketches.
        found: String,
        /// Differences of the two schemes.
        difference: String,
    },
    /// The sketch is of a form that the collection does not hold, or the document has only such sketches.
    #[error(
        "{}the collection holds {wanted}, not {found}",
        document.as_ref().map_or(String::new(), |id| format!("document {id:?}: "))
    )]
    OtherForm {
        /// Id of the document; `None` for a search.
        document: Option<String>,
        /// Form of the collection's sketches.
        wanted: SketchForm,
        /// Form of the given sketch.
        found: SketchForm,
    },
    /// A document is larger than any collection stores.
    #[error("document {id:?} has {bytes} bytes, more than the limit of {limit}")]
    DocumentTooLarge {
        /// Its id.
        id: String,
        /// Its size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The writes of one request are too large together.
    #[error(
        "the documents of the batch have {bytes} bytes or more, over the limit of {limit}; split it"
    )]
    BatchTooLarge {
        /// Size in bytes of the writes counted so far.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The system refused to start a thread of a collection.
    #[error(
        "the collection {name:?}: a thread could not be started: {cause}; raise the limit on threads and reopen the store"
    )]
    Thread {
        /// The collection.
        name: String,
        /// The error of the system.
        cause: Arc<io::Error>,
    },
    /// A run cannot be built from its documents, although these and the medium are intact.
    #[error("{path}: the run cannot be built: {reason}", path = path.display())]
    RunBuild {
        /// The file.
        path: PathBuf,
        /// Description of the cause.
        reason: String,
    },
    /// The request is invalid, whatever the state of the store.
    #[error("{0}")]
    Invalid(String),
    /// The document at which the previous page of neighbours ended is gone or was stored again, so the next page is unknown.
    #[error("the document that the cursor names was deleted, replaced or given another expiry")]
    StaleCursor,
    /// Writes have stopped after a failure of the medium. Everything acknowledged is kept.
    #[error("writes have stopped: {0}; reads still work; repair the cause and reopen the store")]
    Stopped(String),
    /// The writer thread was asked to wait for a write, which it would have to do itself.
    #[error("the writer of the collection cannot wait for a write; submit it")]
    WriterThread,
    /// All writes of the request are done, but a neighbour that one of the outcomes shows cannot be read.
    #[error("the writes are done, but a neighbour cannot be read: {0}")]
    WrittenUnread(Arc<Self>),
    /// The collection was closed.
    #[error("the collection is closed")]
    Closed,
    /// The collection was rebuilt, and a new one has replaced it.
    #[error("the collection has another scheme or radius now; send the request again")]
    Replaced,
    /// Another collection is being rebuilt.
    #[error("the collection {0:?} is being rebuilt; wait until that is done")]
    Rebuilding(String),
}

impl StoreError {
    /// Wraps a system error with the path and the action that failed.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| {
            let path = path.to_owned();
            match cause.kind() {
                // To its owner, an exhausted quota is a full disk: deleting helps, a repair does not.
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Self::DiskFull { path }
                }
                _ if is_out_of_descriptors(&cause) => Self::OutOfFiles { path },
                _ => Self::failed(path, action, cause),
            }
        }
    }

    /// Creates the error of an action that failed for any cause.
    pub(crate) fn failed(path: PathBuf, action: &'static str, cause: io::Error) -> Self {
        // Shared, because a failed sync answers all the writes that waited for it with copies of one error.
        let cause = Arc::new(cause);
        Self::Io {
            path,
            action,
            cause,
        }
    }

    /// Makes the error that a file was not found that of a missing file, which another file names.
    pub(crate) fn or_missing(self, named_by: &'static str) -> Self {
        match self {
            Self::Io { path, cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                Self::Missing { path, named_by }
            }
            other => other,
        }
    }

    pub(crate) fn foreign(path: impl Into<PathBuf>, what: &'static str) -> Self {
        let path = path.into();
        Self::Foreign { path, what }
    }

    pub(crate) fn version(path: impl Into<PathBuf>, found: u32, known: u32) -> Self {
        let path = path.into();
        Self::Version { path, found, known }
    }

    pub(crate) fn no_store(folder: &Path) -> Self {
        let path = folder.to_owned();
        Self::NoStore { path }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn run_build(path: &Path, reason: impl ToString) -> Self {
        Self::RunBuild {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Returns true if freeing space on the medium would resolve the error.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    /// Returns true if the same call may succeed later without a repair.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::OutOfFiles { .. })
    }
}

/// Describes who has the store open, and the remedy.
fn lock_holder_message(holder: &str) -> String {
    match holder == std::process::id().to_string() {
        // In containers every process may be number 1.
        true => format!(
            "this process, or process {holder} of another container, has the store open; close it first"
        ),
        false => format!("process {holder} has the store open; stop it first"),
    }
}

/// Tells whether the process or the system has reached its limit on open files.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE have these numbers on all Unix systems.
    matches!(error.raw_os_error(), Some(24 | 23))
}

/// The result type of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
