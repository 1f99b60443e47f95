//! Errors of a collection of fingerprints, named with its file.

use std::io;

use lookalike::scheme::SchemeId;
use lookalike_hamming::FileError;

use super::sketch_kind::SketchKind;
use super::sketch_shape::SketchShape;

/// A collection of fingerprints that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodesError {
    /// The file cannot be read.
    #[error("{name}: {cause}: {remedy}", remedy = remedy(cause))]
    Io {
        /// The file.
        name: String,
        /// Error of the system.
        cause: io::Error,
    },
    /// The file is not what its first bytes say.
    #[error("{name}: {cause}: make the file again, or restore it from a copy")]
    File {
        /// The file.
        name: String,
        /// Fault, and its place.
        cause: FileError,
    },
    /// A table that cannot be read, or holds no fingerprints.
    #[error(
        "{name}: {cause}: write the table with a column named fingerprint and optionally one named id"
    )]
    Table {
        /// The file.
        name: String,
        /// Fault.
        cause: io::Error,
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
    /// The fingerprints of two files have other widths.
    #[error("{a} holds fingerprints of {first} bits, {b} of {second}: they cannot be compared")]
    OtherWidth {
        /// One file.
        a: String,
        /// The other.
        b: String,
        /// Bits of the one.
        first: u32,
        /// Bits of the other.
        second: u32,
    },
    /// Fingerprints of another width than are taken.
    #[error("{name} holds fingerprints of {found} bits, but {wanted} bits are needed")]
    Width {
        /// The file.
        name: String,
        /// Bits of its fingerprints.
        found: u32,
        /// Bits of those that are taken.
        wanted: u32,
    },
    /// Sketches of several places, where fingerprints are wanted.
    #[error("{name} holds {shape}, not fingerprints")]
    Places {
        /// The file.
        name: String,
        /// Its sketches.
        shape: SketchShape,
    },
    /// Fingerprints, where sketches of several places are wanted.
    #[error("{name} holds fingerprints, which have no places to compare")]
    NoPlaces {
        /// The file.
        name: String,
    },
    /// An index, where a file of what it is made from is wanted.
    #[error("{name} is an index")]
    Index {
        /// The file.
        name: String,
    },
    /// Sketches that this version does not know.
    #[error("{name} holds sketches of an unknown kind: read it with a newer version")]
    UnknownShape {
        /// The file.
        name: String,
    },
    /// The sketches of two files have other places.
    #[error("{a} holds sketches of {first}, {b} of {second}: they cannot be compared")]
    OtherShape {
        /// One file.
        a: String,
        /// The other.
        b: String,
        /// Shape of the one.
        first: SketchShape,
        /// Shape of the other.
        second: SketchShape,
    },
    /// The sketches of two files are of other kinds.
    #[error("{a} holds {first}, {b} {second}: they cannot be compared")]
    OtherKind {
        /// One file.
        a: String,
        /// The other.
        b: String,
        /// Sketches of the one.
        first: SketchKind,
        /// Sketches of the other.
        second: SketchKind,
    },
    /// Not one line is a sketch.
    #[error("{first}: nothing in the file is one")]
    UnknownSketch {
        /// Fault of the first line.
        first: String,
    },
    /// A line that is no fingerprint, in a strict job.
    #[error("{0}")]
    Strict(String),
    /// Not one line is a fingerprint.
    #[error(
        "{first}: nothing in the file is one; give a fingerprint file, an archive, a Parquet table, JSON Lines from `lookalike \
         fingerprint`, or raw little-endian numbers in a file named .u64, .u32 or .u128"
    )]
    Unknown {
        /// Fault of the first line.
        first: String,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        // What unpacks a file finds these, not the system.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            "it ends early or is damaged; make the file again, or restore it from a copy"
        }
        _ => "check the path, or read standard input with -",
    }
}

impl CodesError {
    pub(crate) fn table(name: &str, cause: io::Error) -> Self {
        let name = name.to_owned();
        if name == "-" {
            let reason = "Parquet is read from its end, which standard input does not allow: save it to a file";
            let cause = io::Error::new(io::ErrorKind::Unsupported, reason);
            return Self::Io { name, cause };
        }
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Self::Io { name, cause },
            _ => Self::Table { name, cause },
        }
    }

    /// For `map_err`: an error of the file of this name.
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
