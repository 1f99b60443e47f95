//! Errors before reading ([`InputError`]) and while reading ([`ReadError`]).
//! A bad record is neither: it becomes a [`crate::BadRecord`], and reading continues.

use std::io;

use crate::regular::concerns_file;

/// Reason why the arguments cannot be read as requested. Each variant names the argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// An HTML mode that this build lacks.
    #[error(transparent)]
    Html(#[from] crate::html::UnsupportedHtml),
    /// The delimiter is a letter, a digit, a quote, a line end or not ASCII.
    #[error("{:?} cannot separate the values of a table", char::from(*.0))]
    Delimiter(u8),
    /// The argument is neither an existing file nor a glob.
    #[error("{name}: no such file or directory: check the name, and quote globs")]
    NotFound {
        /// The argument.
        name: String,
    },
    /// No file matches a glob.
    #[error("{name}: no file matches")]
    NoMatch {
        /// The argument.
        name: String,
    },
    /// A glob is malformed.
    #[error("{name}: not a valid glob: {reason}")]
    Pattern {
        /// The argument.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A directory or glob has files, but none of them can be read as a document.
    #[error("{name}: no document in it{}", first_skip(*skipped, first.as_deref()))]
    Empty {
        /// The argument.
        name: String,
        /// Number of entries that were skipped.
        skipped: usize,
        /// The reason of the first skip.
        first: Option<String>,
    },
    /// The user named a directory whose files are results of a job: most of them are not documents, and the same document may be in two of them.
    #[error("{name}: holds results of an earlier job: name what is to be read in it{kept}")]
    Results {
        /// The argument.
        name: String,
        /// The names of the files of kept documents, to be read after the rest; empty if there are none.
        kept: String,
    },
    /// The user named the directory of a collection.
    #[error(
        "{name}: is a collection, which does not store documents: name the documents that it was built from"
    )]
    Collection {
        /// The argument.
        name: String,
    },
    /// The user named a file in a format that is not supported.
    #[error("{name}: {reason}; {remedy}")]
    Unsupported {
        /// The argument.
        name: String,
        /// The type of the file.
        reason: String,
        /// The remedy.
        remedy: String,
        /// True if a command of the caller's could convert it to text.
        is_convertible: bool,
    },
    /// An object or standard input could not be copied to the directory for temporary files.
    #[error("{name}: {reason}: it is copied to the directory for temporary files")]
    Copy {
        /// The argument, or one of the objects that it stands for.
        name: String,
        /// The error of the system.
        reason: String,
    },
    /// A store refused access, or an object does not exist.
    #[error("{name}: {reason}: {remedy}")]
    Remote {
        /// The argument, or one of the objects that it stands for.
        name: String,
        /// The message of the store.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Two inputs of one job are standard input.
    #[error("standard input is named more than once, and can be read only once: save it to a file")]
    StandardInputAgain,
    /// The user named a FIFO, socket or device.
    #[error("{name}: a {kind}, not a regular file; pass its content through `-`")]
    NotAFile {
        /// The argument.
        name: String,
        /// The type of the file.
        kind: &'static str,
    },
    /// The system returned an error.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// There are more than 2^32 - 1 files.
    #[error("more than 4,294,967,295 input files")]
    TooMany,
    /// An error about an argument that the caller took from a list.
    #[error("{place}: {error}")]
    Listed {
        /// The list, and the place in it.
        place: String,
        /// The error.
        error: Box<InputError>,
    },
}

impl InputError {
    /// Returns the argument that the error is about, or the file or object that was found for it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::NotFound { name }
            | Self::NoMatch { name }
            | Self::Pattern { name, .. }
            | Self::Empty { name, .. }
            | Self::Results { name, .. }
            | Self::Collection { name }
            | Self::Unsupported { name, .. }
            | Self::Copy { name, .. }
            | Self::Remote { name, .. }
            | Self::NotAFile { name, .. }
            | Self::Io { name, .. } => Some(name),
            Self::Listed { error, .. } => error.name(),
            Self::Html(_) | Self::Delimiter(_) | Self::StandardInputAgain | Self::TooMany => None,
        }
    }

    /// Returns the error without the place of a list.
    #[must_use]
    pub fn without_place(&self) -> &Self {
        match self {
            Self::Listed { error, .. } => error.without_place(),
            error => error,
        }
    }
}

/// Returns the end of the sentence about a directory without documents.
fn first_skip(skipped: usize, first: Option<&str>) -> String {
    match first {
        Some(first) if skipped == 1 => format!(" (1 entry skipped: {first})"),
        Some(first) => format!(" ({skipped} entries skipped; the first: {first})"),
        None => ": it is empty".to_owned(),
    }
}

/// Reason why reading had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system returned an error.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file is not the one that was discovered: its size or modification time differs.
    #[error(
        "{name}: changed since the job began to read it; run the job again when the file is no longer written to"
    )]
    Changed {
        /// The file.
        name: String,
    },
}

impl ReadError {
    /// Returns true if the cause is this one file, not the machine that reads it.
    pub(crate) fn concerns_file(&self) -> bool {
        match self {
            ReadError::Io { cause, .. } => concerns_file(cause),
            ReadError::Changed { .. } => true,
        }
    }

    /// Returns the reason, to be read after the name of the file.
    pub(crate) fn reason(&self) -> String {
        match self {
            ReadError::Io { cause, .. } => cause.to_string(),
            ReadError::Changed { .. } => "it changed since the job began".to_owned(),
        }
    }
}

/// A value of an option that is not a format, field path or order field; the message lists valid values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub(crate) String);

/// Translates a library's reason why compressed data cannot be read further. `place` says where the damage is.
pub(crate) fn damage(place: &str, reason: &str) -> String {
    // The data is intact, but these decoders are configured to refuse it.
    match reason {
        "Frame requires too much memory for decoding" => {
            "its zstd window is larger than 128 MiB: compress it again with a smaller one"
                .to_owned()
        }
        "memory limit reached" => {
            "its xz dictionary takes more than 128 MiB: compress it again with a smaller one"
                .to_owned()
        }
        "Dictionary mismatch" => {
            "it was compressed with a zstd dictionary that is not in the file, or has more than 2 MiB: decompress it with that dictionary first"
                .to_owned()
        }
        _ => format!("compressed data ends early or is corrupt{place}: {reason}"),
    }
}
