//! Errors before reading ([`InputError`]) and while reading ([`ReadError`]).
//! A bad record is neither: it is a [`crate::BadRecord`] and the others go on.

use std::io;

use crate::regular::is_of_file;

/// Reason why the arguments cannot be read as asked. Each names the argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// An HTML mode that this build lacks.
    #[error(transparent)]
    Html(#[from] crate::html::UnsupportedHtml),
    /// There is no such file, and it is no glob either.
    #[error("{name}: no such file or directory: check the name, and quote globs")]
    NotFound {
        /// The argument.
        name: String,
    },
    /// A glob that no file matches.
    #[error("{name}: no file matches")]
    NoMatch {
        /// The argument.
        name: String,
    },
    /// A glob that cannot be understood.
    #[error("{name}: not a valid glob: {reason}")]
    Pattern {
        /// The argument.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A directory or glob with files, none of which can be read as a document.
    #[error("{name}: no document in it{}", first_skip(*skipped, first.as_deref()))]
    Empty {
        /// The argument.
        name: String,
        /// Number of entries that were skipped.
        skipped: usize,
        /// The reason of the first skip.
        first: Option<String>,
    },
    /// A directory named by the user whose files are results of a job: most of them are no documents, and the same document may be
    /// in two of them.
    #[error("{name}: holds results of an earlier job: name what is to be read in it{kept}")]
    Results {
        /// The argument.
        name: String,
        /// The names of the kept documents, to be read after the rest; empty where there are none.
        kept: String,
    },
    /// The directory of a collection, named by the user.
    #[error(
        "{name}: is a collection, which has no documents that can be read: name the documents that it was made of"
    )]
    Collection {
        /// The argument.
        name: String,
    },
    /// A file named by the user in a format that is not read.
    #[error("{name}: {reason}; {remedy}")]
    Unsupported {
        /// The argument.
        name: String,
        /// The type of the file.
        reason: String,
        /// The remedy.
        remedy: String,
    },
    /// A store that refuses, or an object that is not there.
    #[error("{name}: {reason}: {remedy}")]
    Remote {
        /// The argument, or the object among those that it stands for.
        name: String,
        /// The store's word.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Standard input named as one input and as another.
    #[error("standard input is named more than once, and can be read only once: save it to a file")]
    StandardInputAgain,
    /// A FIFO, socket or device named by the user.
    #[error("{name}: a {kind}, not a regular file; pass its content through `-`")]
    NotAFile {
        /// The argument.
        name: String,
        /// The type of the file.
        kind: &'static str,
    },
    /// The system refused.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The system's word.
        cause: io::Error,
    },
    /// More than 2^32 - 1 files.
    #[error("more than 4294967295 input files")]
    TooMany,
}

/// The end of the sentence about a directory without documents.
fn first_skip(skipped: usize, first: Option<&str>) -> String {
    match first {
        Some(first) => format!(" ({skipped} entries skipped; the first: {first})"),
        None => ": it is empty".to_owned(),
    }
}

/// Reason why reading had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The system's word.
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
    /// Tells whether the cause is this one file, not the machine that reads it.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            ReadError::Io { cause, .. } => is_of_file(cause),
            ReadError::Changed { .. } => true,
        }
    }

    /// The reason, to be read after the name of the file.
    pub(crate) fn reason(&self) -> String {
        match self {
            ReadError::Io { cause, .. } => cause.to_string(),
            ReadError::Changed { .. } => "it changed since the job began".to_owned(),
        }
    }
}

/// A word of the user that is no format, field path or order field; the message says what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub(crate) String);

/// Reason why compressed data is not read on, from the reason of the library. `place` follows what is damaged.
pub(crate) fn damage(place: &str, reason: &str) -> String {
    // Whole data, which these decoders are told not to take.
    match reason {
        "Frame requires too much memory for decoding" => {
            "its zstd window is larger than 128 MiB: compress it again with a smaller one"
                .to_owned()
        }
        "memory limit reached" => {
            "its xz dictionary takes more than 128 MiB: compress it again with a smaller one"
                .to_owned()
        }
        _ => format!("compressed data ends early or is corrupt{place}: {reason}"),
    }
}
