//! What can go wrong in a job, and what its user can do about it.

use std::io;
use std::path::PathBuf;

use lookalike_corpus::{InputError, ReadError};

/// A job that could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The input could not be found or understood.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input could not be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A temporary or result file could not be written or read back.
    #[error("{path}: {source}: {remedy}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Two records have one id and the job was told to refuse that.
    #[error(
        "{count} records repeat the id of another, the first is {id:?}: give the records different ids, name another \
         field with --id, or let them be numbered with --repeated-ids number"
    )]
    RepeatedId {
        /// The first repeated id.
        id: String,
        /// How many records repeat an id.
        count: usize,
    },
    /// An unreadable record in a strict job.
    #[error("{0}: repair the record, or run without --strict to skip and count such records")]
    Strict(String),
    /// No record has a text.
    #[error(
        "none of the {records} records has a text: fields of the first record are {fields}; name the one that holds \
         the text with --text FIELD"
    )]
    NoText {
        /// Records read.
        records: u64,
        /// Names of fields of the first record.
        fields: String,
    },
    /// More documents than a job can number.
    #[error("more than 4,294,967,294 documents in one job: split the input and use --against")]
    TooMany,
    /// The memory limit does not hold the tables of the job.
    #[error(
        "{what} needs {needed} bytes, but --memory leaves {left} for it: raise --memory to at least {least}, or split \
         the input and use --against"
    )]
    Memory {
        /// What needs the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        left: u64,
        /// Least limit that would do.
        least: u64,
    },
    /// A collection of fingerprints cannot be used.
    #[error(transparent)]
    Codes(#[from] crate::codes::CodesError),
    /// Tables over fingerprints could not be built.
    #[error(transparent)]
    Tables(#[from] lookalike::hamming::BuildError),
    /// The memory limit does not hold the queries of a join.
    #[error(
        "the queries and their tables do not fit {mib} MiB: raise --memory to about {least}M, exchange F and Q when F is \
         the smaller one, or split Q and join its parts one after another",
        mib = limit >> 20
    )]
    JoinMemory {
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// The memory limit does not hold the fingerprints of a collection that is joined with itself.
    #[error(
        "the fingerprints of {name} do not fit {mib} MiB: raise --memory to about {least}M, or split the file and join its \
         parts with themselves and with each other",
        mib = limit >> 20
    )]
    SelfJoinMemory {
        /// The collection.
        name: String,
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// The memory limit does not hold what a build of an index needs.
    #[error(
        "building the index takes at least {least} MiB, --memory allows {mib}: allow that much, or split the input",
        mib = limit >> 20
    )]
    IndexMemory {
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// A file of an index is damaged or foreign.
    #[error("{path}: {source}: build the index again, or take a whole copy")]
    IndexFile {
        /// The file.
        path: String,
        /// What is wrong with it, and where.
        source: lookalike::hamming::FileError,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The output folder is not fit for this job.
    #[error("{path}: {reason}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}

impl BatchError {
    /// For `map_err`: an error of a temporary file in `folder`.
    pub(crate) fn temporary(folder: &std::path::Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: folder.to_owned(),
            source,
            remedy: "temporary files are kept there while the job runs; free some space or choose another folder",
        }
    }

    /// For `map_err`: an error of a result file.
    pub(crate) fn result(path: &std::path::Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.to_owned(),
            source,
            remedy: "results are written there; check its permissions and the free space, then repeat with --resume",
        }
    }
}
