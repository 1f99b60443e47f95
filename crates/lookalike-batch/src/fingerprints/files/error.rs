//! Errors of collections of fingerprints, each with the name of the file.

use std::io;

use lookalike::scheme::SchemeId;
use lookalike_hamming::FileError;

use super::sketch_kind::SketchKind;
use super::sketch_shape::SketchShape;

/// Reason why a collection of fingerprints cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodesError {
    /// The file cannot be read.
    #[error("{name}: {cause}: {remedy}", remedy = remedy(cause))]
    Io {
        /// Name of the file.
        name: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The contents of the file contradict its first bytes.
    #[error("{name}: {cause}: make the file again, or restore it from a copy")]
    File {
        /// Name of the file.
        name: String,
        /// Description and place of the error.
        cause: FileError,
    },
    /// A table cannot be read or holds no fingerprints.
    #[error(
        "{name}: {cause}: write the table with a column named fingerprint and optionally one named id"
    )]
    Table {
        /// Name of the file.
        name: String,
        /// Cause of the error.
        cause: io::Error,
    },
    /// Standard input is a table.
    #[error(
        "standard input: Parquet is read from its end, which a pipe does not allow: save it to a file, and name that"
    )]
    TableOnStandardInput,
    /// The fingerprints of two files were made under different schemes.
    #[error(
        "{a} holds fingerprints of scheme {first}, {b} of scheme {second}: they cannot be compared; make both with the \
         same options"
    )]
    OtherScheme {
        /// The first file.
        a: String,
        /// The other file.
        b: String,
        /// Scheme of the first file.
        first: SchemeId,
        /// Scheme of the other file.
        second: SchemeId,
    },
    /// The fingerprints do not have the width that is needed.
    #[error("{name} holds fingerprints of {found} bits, but {wanted} bits are needed")]
    Width {
        /// Name of the file.
        name: String,
        /// Bits of its fingerprints.
        found: u32,
        /// Bits that are needed.
        wanted: u32,
    },
    /// The file holds sketches of several places instead of fingerprints.
    #[error("{name} holds {shape}, not fingerprints")]
    Places {
        /// Name of the file.
        name: String,
        /// Shape of its sketches.
        shape: SketchShape,
    },
    /// The file holds fingerprints instead of sketches of several places.
    #[error("{name} holds fingerprints, which have no places to compare")]
    NoPlaces {
        /// Name of the file.
        name: String,
    },
    /// The file is an index instead of a collection.
    #[error("{name} is an index")]
    Index {
        /// Name of the file.
        name: String,
    },
    /// The file holds sketches of a kind that this version does not know.
    #[error("{name} holds sketches of an unknown kind: read it with a newer version")]
    UnknownShape {
        /// Name of the file.
        name: String,
    },
    /// The sketches of two files are of different kinds.
    #[error("{a} holds {first}, {b} {second}: they cannot be compared")]
    OtherKind {
        /// The first file.
        a: String,
        /// The other file.
        b: String,
        /// Kind of the first file's sketches.
        first: SketchKind,
        /// Kind of the other file's sketches.
        second: SketchKind,
    },
    /// No line of the file is a sketch.
    #[error("{first}; no line of the file is a sketch")]
    UnknownSketch {
        /// Error in the first line.
        first: String,
    },
    /// A line is not a fingerprint, in a strict job.
    #[error("{0}")]
    Strict(String),
    /// No line of the file is a fingerprint.
    #[error(
        "{first}; no line of the file is a fingerprint: give a fingerprint file, an .lkar archive, a Parquet table, JSON Lines from `lookalike \
         fingerprint`, or raw little-endian numbers in a file named .u64, .u32 or .u128"
    )]
    Unknown {
        /// Error in the first line.
        first: String,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        // These errors come from decompression, not from the system.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            "it ends early or is damaged; make the file again, or restore it from a copy"
        }
        _ => "check the path, or read standard input with -",
    }
}

/// Returns the error of the system that a file error stands for, or wraps one of another kind.
pub(crate) fn system_error(error: FileError) -> io::Error {
    match error {
        FileError::Io(cause) => cause,
        other => io::Error::other(other),
    }
}

impl CodesError {
    pub(crate) fn table(name: &str, cause: io::Error) -> Self {
        let name = name.to_owned();
        if name == "-" {
            return Self::TableOnStandardInput;
        }
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Self::Io { name, cause },
            _ => Self::Table { name, cause },
        }
    }

    /// For `map_err`: wraps an error of the file with this name.
    pub(crate) fn of(name: &str) -> impl Fn(FileError) -> Self + use<> {
        let name = name.to_owned();
        move |error| match error {
            FileError::Io(cause) => Self::Io {
                name: name.clone(),
                cause,
            },
            cause => Self::File {
                name: name.clone(),
                cause,
            },
        }
    }
}
