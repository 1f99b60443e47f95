//! Errors of a collection of fingerprints, named with its file.

use std::io;

use lookalike::scheme::SchemeId;
use lookalike_hamming::FileError;

/// A collection of fingerprints that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodesError {
    /// The file cannot be read.
    #[error("{name}: {source}: check the path, or read standard input with -")]
    Io {
        /// The file.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is not what its first bytes say.
    #[error("{name}: {source}: make the file again, or take a whole copy")]
    File {
        /// The file.
        name: String,
        /// Fault, and its place.
        source: FileError,
    },
    /// A table that cannot be read, or holds no fingerprints.
    #[error(
        "{name}: {source}: write the table again, with a column named fingerprint and perhaps one named id"
    )]
    Table {
        /// The file.
        name: String,
        /// Fault.
        source: io::Error,
    },
    /// The fingerprints of the two sides mean different things.
    #[error(
        "{a} holds fingerprints of scheme {first}, {b} of scheme {second}: they cannot be compared; make both with the \
         same options"
    )]
    OtherScheme {
        /// One file.
        a: String,
        /// The other.
        b: String,
        /// Scheme of the one.
        first: SchemeId,
        /// Scheme of the other.
        second: SchemeId,
    },
    /// A line that is no fingerprint, in a strict job.
    #[error("{0}: repair the line, or run without --strict to skip and count such lines")]
    Strict(String),
    /// Not one line is a fingerprint.
    #[error(
        "{first}: no line of the file is one; fingerprint files, archives, Parquet tables, JSON Lines as of `lookalike \
         fingerprint`, and raw little-endian numbers in a file named .u64 are read"
    )]
    Unknown {
        /// Fault of the first line.
        first: String,
    },
}

impl CodesError {
    pub(crate) fn table(name: &str, source: io::Error) -> Self {
        let name = name.to_owned();
        if name == "-" {
            let reason =
                "Parquet is read from its end, which standard input cannot: save it to a file";
            let source = io::Error::new(io::ErrorKind::Unsupported, reason);
            return Self::Io { name, source };
        }
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Self::Io { name, source },
            _ => Self::Table { name, source },
        }
    }

    /// For `map_err`: an error of the file of this name.
    pub(crate) fn of(name: &str) -> impl Fn(FileError) -> Self + use<> {
        let name = name.to_owned();
        move |error| match error {
            FileError::Io(source) => Self::Io {
                name: name.clone(),
                source,
            },
            source => Self::File {
                name: name.clone(),
                source,
            },
        }
    }
}
