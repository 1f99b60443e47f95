//! Errors of a job. What helps against them in the words of the command, the command says.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputError, ReadError, STATE_FOLDER};

use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::folder_refusal::FolderRefusal;
use crate::observer::JobCancelled;
use crate::overlap::settings_error::OverlapSettingsError;
use crate::settings_error::SettingsError;

/// Folder in [`STATE_FOLDER`] in which results are gathered; with the summary in it, they are all there.
pub(crate) const NEW: &str = "new";

/// The name of an output that only the caller knows: standard output, or a file that is whole or not there.
pub(crate) const OUTPUT: &str = "the output";

/// A size in mebibytes, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// A job that could not be carried out. A cause that the text names is no [`source`](std::error::Error::source), or a report of both would tell
/// it twice. The error of a caller, [`BatchError::Given`], is a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The input could not be found or understood.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input could not be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A temporary file could not be written or read back.
    #[error("{path}: {cause}: temporary files are stored there while the job runs", path = path.display())]
    Temporary {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
    /// A result file could not be written or read back.
    #[error("{path}: {cause}: results are written there", path = path.display())]
    Result {
        /// The final place of the file or folder.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
    /// Another file could not be written or read back.
    #[error("{path}: {cause}: {remedy}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// Two records have one id and the job was told to refuse that.
    #[error("records that repeat the id of another: {count}, the first being {id:?}")]
    RepeatedId {
        /// The first repeated id.
        id: String,
        /// Number of records that repeat an id.
        count: usize,
    },
    /// An unreadable record in a strict job.
    #[error("{0}")]
    Strict(String),
    /// More was lost than the job may lose.
    #[error(
        "{count} of {all} records and files could not be read, more than the limit of {limit}. The \
         worst: {first}{}",
        match is_uncounted {
            true => ": it is unknown how many records are missing there",
            false => "",
        }
    )]
    Losses {
        /// Records and files that could not be read.
        count: u64,
        /// All records, and files that could not be read.
        all: u64,
        /// The limit, as it was given.
        limit: String,
        /// The worst, and what is wrong with it.
        first: String,
        /// True if the limit is a share, and nobody knows how many records are missing there.
        is_uncounted: bool,
    },
    /// No record has a text.
    #[error("none of the {records} records has a text: {fields}")]
    NoText {
        /// Records read.
        records: u64,
        /// Names of the fields of the first record, and what came of records that could not be read, as a sentence.
        fields: String,
    },
    /// A field that was named and that no record has.
    #[error("none of the {records} records has a {field}, as {setting} {value} requires: {fields}")]
    NoField {
        /// The setting that names it.
        setting: FieldSetting,
        /// The value of the setting.
        value: String,
        /// Field that is missing.
        field: MissingField,
        /// Records read.
        records: u64,
        /// Names of the fields of the first record, as a sentence.
        fields: String,
    },
    /// A survivor rule that reads a field in which no record has a value that it can use.
    #[error(
        "none of the {records} records has a value that the rule {keep} can use ({missing} have none); the first: {first}: {remedy}"
    )]
    NoUsableValue {
        /// The rule.
        keep: String,
        /// Records read.
        records: u64,
        /// Of these, without a value.
        missing: u64,
        /// The first value that cannot be used, where it is, and why.
        first: String,
        /// Amount that can be used.
        remedy: &'static str,
    },
    /// More documents than a job can number.
    #[error("more than 4,294,967,294 documents in one job")]
    TooMany,
    /// More fingerprints or sketches than are compared in memory.
    #[error("{0} fingerprints are too many to be compared in memory; the maximum is 4,294,967,294")]
    TooManyFingerprints(u64),
    /// The memory limit does not hold the tables of the job.
    #[error(
        "{what} needs {}, but the memory limit leaves {} for it",
        mebibytes(*needed),
        mebibytes(*left)
    )]
    Memory {
        /// Consumer of the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        left: u64,
        /// Least limit that would do.
        least: u64,
    },
    /// The memory limit does not hold the longest documents that are to be read.
    #[error(
        "{}a document of {} may take {} of memory, and the limit of {} leaves {} for that",
        met.as_ref().map_or(String::new(), |met| format!("{met}: ")),
        mebibytes(*document),
        mebibytes(*needed),
        mebibytes(*limit),
        mebibytes(*left)
    )]
    LongDocuments {
        /// File and record where it was met, unless it is only feared.
        met: Option<String>,
        /// Bytes of the longest document that may come.
        document: u64,
        /// Bytes that it takes.
        needed: u64,
        /// The limit.
        limit: u64,
        /// Bytes left of it.
        left: u64,
        /// Least limit that would do.
        least: u64,
        /// Bytes of the longest document that would fit.
        fitting: u64,
    },
    /// A collection of fingerprints cannot be used.
    #[error(transparent)]
    Codes(#[from] crate::fingerprints::files::error::CodesError),
    /// Fingerprints and pairs that do not make a decision.
    #[error(transparent)]
    Cluster(#[from] crate::fingerprints::cluster::ClusterError),
    /// Lists of pairs that cannot be merged.
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
    /// The memory limit does not hold the queries of a join.
    #[error("the queries and their tables do not fit in {mib} MiB", mib = limit >> 20)]
    JoinMemory {
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// The memory limit does not hold the fingerprints of a collection that is joined with itself.
    #[error("the fingerprints of {name} do not fit in {mib} MiB", mib = limit >> 20)]
    SelfJoinMemory {
        /// The collection.
        name: String,
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// The memory limit does not hold what a join of sketches needs beside those.
    #[error(
        "a join of sketches takes at least {least} MiB, and the memory limit is {mib}",
        mib = limit >> 20
    )]
    SketchMemory {
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// The memory limit does not hold what a build of an index needs.
    #[error(
        "building the index takes at least {least} MiB, and the memory limit is {mib}",
        mib = limit >> 20
    )]
    IndexMemory {
        /// The limit, in bytes.
        limit: u64,
        /// Least limit that would do, in MiB.
        least: u64,
    },
    /// A file of an index is damaged or foreign.
    #[error("{path}: {cause}: build the index again, or restore it from a copy")]
    IndexFile {
        /// The file.
        path: String,
        /// Fault, and its place.
        cause: lookalike_hamming::FileError,
    },
    /// Settings that mean nothing, or contradict each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The page of the report could not be made.
    #[error(transparent)]
    Report(#[from] crate::report::ReportError),
    /// The job to resume, which left this folder beside its output, is another.
    #[error("{}: {reason}", folder.display())]
    OtherUnfinished {
        /// The folder.
        folder: PathBuf,
        /// Difference.
        reason: FolderRefusal,
    },
    /// A part of an input is not what an interrupted job read of it.
    #[error("{name} has changed since the job to resume read it")]
    ResumedInput {
        /// The input.
        name: String,
    },
    /// The job's observer cancelled it.
    #[error("the job was cancelled")]
    Cancelled,
    /// Documents that a caller hands over could not be had.
    #[error("the documents could not be had")]
    Given(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The output folder is not fit for this job.
    #[error("{path}: {reason}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Reason.
        reason: FolderRefusal,
    },
}

/// A setting that names fields of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSetting {
    /// The field of ids.
    Id,
    /// The field of texts.
    Text,
    /// Anchors and links beside the text.
    Fields,
    /// The category within which documents are compared.
    Within,
    /// The category across which documents are compared.
    Across,
    /// The pairs for which the distance counts.
    DistanceFor,
    /// The rule for survivors.
    Keep,
    /// The address of the server.
    Address,
}

impl fmt::Display for FieldSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "id",
            Self::Text => "text",
            Self::Fields => "fields",
            Self::Within => "within",
            Self::Across => "across",
            Self::DistanceFor => "distance_for",
            Self::Keep => "keep",
            Self::Address => "address",
        })
    }
}

/// A field that no record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingField {
    /// A URL, in the field `url` or as the id.
    Url,
    /// A value, not null, in the field of this name.
    Named(String),
    /// Something in the field of this name.
    Filled(&'static str),
}

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("URL"),
            Self::Named(name) => write!(f, "value in the field {name}"),
            Self::Filled(name) => write!(f, "field {name} with something in it"),
        }
    }
}

impl From<OverlapSettingsError> for BatchError {
    fn from(error: OverlapSettingsError) -> Self {
        Self::Settings(error.into())
    }
}

impl From<FingerprintSettingsError> for BatchError {
    fn from(error: FingerprintSettingsError) -> Self {
        Self::Settings(error.into())
    }
}

impl BatchError {
    /// For `map_err`: an error of a temporary file in `folder`.
    pub(crate) fn temporary(folder: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| match is_cancelled(&cause) {
            true => Self::Cancelled,
            false => Self::Temporary {
                path: folder.to_owned(),
                cause,
            },
        }
    }

    /// The error, with the name of the output if it is one of that: jobs do not know it.
    #[must_use]
    pub fn of_output(mut self, output: &Path) -> Self {
        if let Self::File { path, .. } = &mut self
            && path.as_path() == Path::new(OUTPUT)
        {
            output.clone_into(path);
        }
        self
    }

    /// For `map_err`: an error of a result file, told with the place that the file would have got.
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

/// Final path of a result that is written at `path`.
fn final_place(path: &Path) -> PathBuf {
    let gathered = Path::new(STATE_FOLDER).join(NEW);
    let above = path.ancestors().find(|above| above.ends_with(&gathered));
    let Some(above) = above else {
        return path.to_owned();
    };
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
