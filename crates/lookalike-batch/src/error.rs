//! Errors of a job. The command adds the remedies, in terms of its options.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputError, ReadError, STATE_FOLDER};

use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::MinEqualError;
use crate::folder_refusal::FolderRefusal;
use crate::observer::JobCancelled;
use crate::overlap::settings_error::OverlapSettingsError;
use crate::settings_error::SettingsError;

/// Folder in [`STATE_FOLDER`] where results are collected; once it contains the summary, it is complete.
pub(crate) const NEW: &str = "new";

/// Stands for the name of an output that only the caller knows: standard output, or a file that is written whole or not at all.
pub(crate) const OUTPUT: &str = "the output";

/// Formats a size in mebibytes, rounded up.
fn mebibytes(bytes: u64) -> String {
    // Rounded up, so that a limit that a message names is never too low.
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// Begins a sentence about something that no record has.
fn no_record_has(records: u64) -> String {
    match records {
        1 => "the only record does not have".to_owned(),
        records => format!("none of the {records} records has"),
    }
}

/// A job that failed. A cause that the message includes is not a [`source`](std::error::Error::source), because a report of both would
/// state it twice. The error of a caller, [`BatchError::Given`], is a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The input could not be found or understood.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input could not be read to the end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A temporary file could not be written or read back.
    #[error("{path}: {cause}: temporary files are stored there while the job runs", path = path.display())]
    Temporary {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A result file could not be written or read back.
    #[error("{path}: {cause}: results are written there", path = path.display())]
    Result {
        /// The final path of the file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Another file could not be written or read back.
    #[error("{path}: {cause}: {remedy}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// Two records have the same id and [`RepeatedIds::Refuse`](crate::RepeatedIds::Refuse) is set.
    #[error("records that repeat the id of another: {count}; the first is {id:?}")]
    RepeatedId {
        /// The first repeated id.
        id: String,
        /// Number of records that repeat an id.
        count: usize,
    },
    /// An unreadable record in a strict job.
    #[error("{0}")]
    Strict(String),
    /// More records or files were lost than the limit allows.
    #[error(
        "{count} of {all} records and files could not be read, {}",
        match is_uncounted {
            true => format!(
                "and a share of {limit} cannot be checked: {first}: it is unknown how many records are missing there"
            ),
            false => format!("more than the limit of {limit}, for example {first}"),
        }
    )]
    Losses {
        /// Records and files that could not be read.
        count: u64,
        /// All records, and files that could not be read.
        all: u64,
        /// The limit, as the user wrote it.
        limit: String,
        /// One of the worst losses, with its reason.
        first: String,
        /// True if the limit is a share and the number of missing records is unknown.
        is_uncounted: bool,
    },
    /// Nothing can be used, because fields hold values of a wrong type, such as an id that is an object.
    #[error("{count} of {all} records could not be read, and no other has a text: {first}")]
    WrongTypes {
        /// Records with such a value.
        count: u64,
        /// All records.
        all: u64,
        /// The first of them, with the reason.
        first: String,
    },
    /// No record has a text.
    #[error("{} a text: {fields}", no_record_has(*records))]
    NoText {
        /// Number of records read.
        records: u64,
        /// Names of the fields of the first record, and a remark about records that could not be read, as a sentence.
        fields: String,
    },
    /// A field was named that no record has.
    #[error(
        "{} a {field}, as {setting} {value} requires: {fields}",
        no_record_has(*records)
    )]
    NoField {
        /// The setting that names the field.
        setting: FieldSetting,
        /// The value of the setting.
        value: String,
        /// The missing field.
        field: MissingField,
        /// Number of records read.
        records: u64,
        /// Names of the fields of the first record, as a sentence.
        fields: String,
    },
    /// A survivor rule reads a field in which no record has a usable value.
    #[error(
        "{} a value that the rule {keep} can use ({missing} without any); the first: {first}: {remedy}",
        no_record_has(*records)
    )]
    NoUsableValue {
        /// The rule.
        keep: String,
        /// Number of records read.
        records: u64,
        /// Number of these that have no value.
        missing: u64,
        /// The first value that cannot be used, with its place and the reason.
        first: String,
        /// The kind of value that can be used.
        remedy: &'static str,
    },
    /// The job has more documents than it can number.
    // Numbers of documents have 32 bits, and one value means none.
    #[error("more than 4,294,967,294 documents in one job")]
    TooMany,
    /// There are more fingerprints or sketches than can be compared in memory.
    #[error("{0} fingerprints are too many to be compared in memory; the maximum is 4,294,967,294")]
    TooManyFingerprints(u64),
    /// The tables of the job do not fit in the memory limit.
    #[error(
        "{what} needs {}, but the memory limit leaves {} for it",
        mebibytes(*needed),
        mebibytes(*left)
    )]
    Memory {
        /// The part of the job that needs the memory.
        what: &'static str,
        /// Number of bytes needed.
        needed: u64,
        /// Number of bytes left.
        left: u64,
        /// The smallest sufficient limit, in bytes.
        least: u64,
    },
    /// The longest document of the input does not fit in the memory limit.
    #[error(
        "{}a document of {} may take {} of memory, and the limit of {} leaves {} for that",
        place.as_ref().map_or(String::new(), |place| format!("{place}: ")),
        mebibytes(*document),
        mebibytes(*needed),
        mebibytes(*limit),
        mebibytes(*left)
    )]
    LongDocuments {
        /// The file and record where it is; `None` before reading, when the input may contain such a document.
        place: Option<String>,
        /// Bytes of the longest possible document.
        document: u64,
        /// Bytes of memory that it takes.
        needed: u64,
        /// The limit, in bytes.
        limit: u64,
        /// Bytes that the limit leaves for it.
        left: u64,
        /// The smallest sufficient limit, in bytes.
        least: u64,
        /// Bytes of the longest document that would fit.
        fitting: u64,
    },
    /// A collection of fingerprints cannot be used.
    #[error(transparent)]
    Codes(#[from] crate::fingerprints::files::error::CodesError),
    /// Fingerprints and pairs cannot be clustered.
    #[error(transparent)]
    Cluster(#[from] crate::fingerprints::cluster::ClusterError),
    /// Lists of pairs cannot be merged.
    #[error(transparent)]
    PairMerge(#[from] crate::fingerprints::join::PairMergeError),
    /// A collection of documents cannot be used.
    #[error(transparent)]
    Collection(#[from] crate::dedup::collection::error::CollectionError),
    /// An archive cannot be written or read.
    #[error(transparent)]
    Archive(#[from] crate::archive::error::CollectionArchiveError),
    /// Tables over fingerprints could not be built.
    #[error(transparent)]
    Tables(#[from] lookalike_hamming::BuildError),
    /// The queries of a join do not fit in the memory limit.
    #[error("the queries and their tables do not fit in {mib} MiB", mib = limit >> 20)]
    JoinMemory {
        /// The limit, in bytes.
        limit: u64,
        /// The smallest sufficient limit, in MiB.
        least: u64,
    },
    /// The fingerprints of a collection that is joined with itself do not fit in the memory limit.
    #[error("the fingerprints of {name} do not fit in {mib} MiB", mib = limit >> 20)]
    SelfJoinMemory {
        /// The collection.
        name: String,
        /// The limit, in bytes.
        limit: u64,
        /// The smallest sufficient limit, in MiB.
        least: u64,
    },
    /// The memory that a join of sketches needs besides the sketches exceeds the limit.
    #[error(
        "a join of sketches takes at least {least} MiB, and the memory limit is {mib} MiB",
        mib = limit >> 20
    )]
    SketchMemory {
        /// The limit, in bytes.
        limit: u64,
        /// The smallest sufficient limit, in MiB.
        least: u64,
    },
    /// The memory limit is too small to build an index.
    #[error(
        "building the index takes at least {least} MiB, and the memory limit is {mib} MiB",
        mib = limit >> 20
    )]
    IndexMemory {
        /// The limit, in bytes.
        limit: u64,
        /// The smallest sufficient limit, in MiB.
        least: u64,
    },
    /// A file of an index is damaged or is not such a file.
    #[error("{path}: {cause}: build the index again, or restore it from a copy")]
    IndexFile {
        /// The file.
        path: String,
        /// The fault, and its place in the file.
        cause: lookalike_hamming::FileError,
    },
    /// Settings mean nothing or contradict each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The page of the report could not be generated.
    #[error(transparent)]
    Report(#[from] crate::report::ReportError),
    /// The folder beside the output is of another job than the one to resume.
    #[error("{}: {reason}", folder.display())]
    OtherUnfinished {
        /// The folder.
        folder: PathBuf,
        /// The difference.
        reason: FolderRefusal,
    },
    /// An input has changed since an interrupted job read it.
    #[error("{name} has changed since the job to resume read it")]
    ResumedInput {
        /// The input.
        name: String,
    },
    /// The system refuses a thread without which the job cannot go on.
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    /// The job's observer cancelled it.
    #[error("the job was cancelled")]
    Cancelled,
    /// The iterator of documents that the caller provides failed.
    #[error("the documents could not be obtained")]
    Given(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The output folder cannot be used for this job.
    #[error("{path}: {reason}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: FolderRefusal,
    },
}

lookalike::words! {
    /// A setting that names fields of records.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FieldSetting {
        /// The field with the id.
        Id = "id",
        /// The field with the text.
        Text = "text",
        /// The anchors and links beside the text.
        Fields = "fields",
        /// The category within which documents are compared.
        Within = "within",
        /// The category across which documents are compared.
        Across = "across",
        /// The pairs for which the distance counts.
        DistanceFor = "distance_for",
        /// The rule for survivors.
        Keep = "keep",
        /// The field with the address of the server.
        Address = "address",
    }
}

/// A field that no record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingField {
    /// A URL, in the field `url` or as the id.
    Url,
    /// A value other than null in the field of this name.
    Named(String),
    /// A value that is not empty in the field of this name.
    Filled(&'static str),
}

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("URL"),
            Self::Named(name) => write!(f, "value in the field {name}"),
            Self::Filled(name) => write!(f, "non-empty field {name}"),
        }
    }
}

impl From<OverlapSettingsError> for BatchError {
    fn from(error: OverlapSettingsError) -> Self {
        Self::Settings(error.into())
    }
}

impl From<MinEqualError> for BatchError {
    fn from(error: MinEqualError) -> Self {
        FingerprintSettingsError::from(error).into()
    }
}

impl From<FingerprintSettingsError> for BatchError {
    fn from(error: FingerprintSettingsError) -> Self {
        Self::Settings(error.into())
    }
}

impl BatchError {
    /// Returns a closure for `map_err` that makes the error of a temporary file in `folder`.
    pub(crate) fn temporary(folder: &Path) -> impl Fn(io::Error) -> Self + '_ {
        // Callbacks of sorts and stores can only fail with I/O errors, so a cancellation arrives as one.
        move |cause| match is_cancelled(&cause) {
            true => Self::Cancelled,
            false => Self::Temporary {
                path: folder.to_owned(),
                cause,
            },
        }
    }

    /// Fails with [`BatchError::Memory`] unless a limit of `limit` bytes leaves `needed` bytes besides `taken` ones.
    pub(crate) fn ensure_memory(
        what: &'static str,
        needed: u64,
        limit: u64,
        taken: u64,
    ) -> Result<(), Self> {
        let left = limit.saturating_sub(taken);
        match needed <= left {
            true => Ok(()),
            false => Err(Self::Memory {
                what,
                needed,
                left,
                least: taken + needed,
            }),
        }
    }

    /// Replaces the placeholder for the output by its name, which jobs do not know.
    #[must_use]
    pub fn of_output(mut self, output: &Path) -> Self {
        // `result` makes this kind of error for the placeholder.
        if let Self::File { path, .. } = &mut self
            && path.as_path() == Path::new(OUTPUT)
        {
            output.clone_into(path);
        }
        self
    }

    /// Returns a closure for `map_err` that makes the error of a result file, with the final path of the file.
    pub(crate) fn result(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| match path == Path::new(OUTPUT) {
            true => Self::File {
                path: path.to_owned(),
                cause,
                remedy: "check where it goes and the free space there, then repeat the command",
            },
            false => Self::Result {
                path: final_place(path),
                cause,
            },
        }
    }
}

pub(crate) fn is_cancelled(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|reason| reason.is::<JobCancelled>())
}

/// Returns the final path of a result that is written at `path`.
fn final_place(path: &Path) -> PathBuf {
    let gathered = Path::new(STATE_FOLDER).join(NEW);
    let above = path.ancestors().find(|above| above.ends_with(&gathered));
    let Some(above) = above else {
        return path.to_owned();
    };
    // `above` ends with two names of its own, the state folder and `new`.
    let folder = above.ancestors().nth(2).unwrap_or(Path::new(""));
    folder.join(path.strip_prefix(above).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::dedup::collection::error::CollectionError;
    use crate::fingerprints::files::error::CodesError;

    #[test]
    fn a_chain_of_errors_told_each_cause_twice() {
        let (path, cause) = (Path::new("there"), || io::Error::other("no space"));
        let errors: [Box<dyn Error>; 6] = [
            Box::new(BatchError::temporary(path)(cause())),
            Box::new(BatchError::result(path)(cause())),
            Box::new(BatchError::result(Path::new(OUTPUT))(cause())),
            Box::new(BatchError::from(CollectionError::unreadable(path)(cause()))),
            Box::new(BatchError::from(CodesError::table("there", cause()))),
            Box::new(ReadError::Io {
                name: "there".to_owned(),
                cause: cause(),
            }),
        ];
        for error in errors {
            assert!(error.to_string().contains("no space"), "{error}");
            assert!(error.source().is_none(), "{error}");
        }
    }
}
