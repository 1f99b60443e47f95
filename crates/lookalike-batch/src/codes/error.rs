//! What can be wrong with a collection of fingerprints, named with its file.

use std::io;

use lookalike::hamming::FileError;
use lookalike::scheme::SchemeId;

/// A collection of fingerprints that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodesError {
    /// The file cannot be read.
    #[error("{name}: {source}: check the path, or read standard input with -")]
    Io {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what its first bytes say.
    #[error("{name}: {source}: make the file again, or take a whole copy")]
    File {
        /// The file.
        name: String,
        /// What is wrong with it, and where.
        source: FileError,
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
        "{first}: no line of the file is one; fingerprint files, archives, JSON Lines as of `lookalike fingerprint`, and \
         raw little-endian numbers in a file named .u64 are read"
    )]
    Unknown {
        /// What is wrong with the first line.
        first: String,
    },
}

impl CodesError {
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
