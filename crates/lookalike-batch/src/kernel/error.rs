//! Errors of the kernel.

use std::io;

use thiserror::Error;

use crate::error::BatchError;

/// Reason why a step of a spread deduplication has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// Settings that mean nothing.
    #[error(transparent)]
    Settings(#[from] BatchError),
    /// Options that need more of a document than its text.
    #[error(
        "{what}: this needs whole records on one machine, and only texts are distributed: leave it out"
    )]
    WholeRecords {
        /// The thing that needs them.
        what: &'static str,
    },
    /// The method orders features, and no levels were given.
    #[error(
        "the method allpairs uses the rarest features of each document, and no levels were given: count features in the scan, and pass \
         the levels of all counts"
    )]
    NoLevels,
    /// Two classes of a component have one rank.
    #[error(
        "rank {rank} occurs twice in its component: pass each class once, with different ranks"
    )]
    RepeatedRank {
        /// The rank.
        rank: i64,
    },
    /// A class that others are compared with comes after one that may be removed.
    #[error(
        "rank {rank} belongs to documents that are compared with and never removed, and comes after a rank that does not: rank all classes in \
         the order of survivors, in which they come first"
    )]
    AgainstAfterOthers {
        /// The rank of the class that comes too late.
        rank: i64,
    },
    /// A component of more classes than one machine numbers.
    #[error("a component of {classes} classes is too large: the limit is 4,294,967,294")]
    TooLarge {
        /// Its classes.
        classes: usize,
    },
    /// Packed rows that end in the middle of one.
    #[error("the packed {rows} are truncated or changed: pass what this version packed")]
    CutOff {
        /// The kind of the rows.
        rows: &'static str,
    },
    /// Feature sets in memory that are not what was put there.
    #[error("feature sets could not be read back: {0}: the memory of the machine is faulty")]
    Sets(io::Error),
}

impl From<io::Error> for KernelError {
    fn from(error: io::Error) -> Self {
        Self::Sets(error)
    }
}
