//! Errors of the kernel.

use std::io;

use thiserror::Error;

use crate::error::BatchError;

/// Reason why a step of a distributed deduplication failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] BatchError),
    /// An option needs more of a document than its text.
    #[error(
        "{what}: this needs whole records on one machine, but only texts are distributed; leave it out"
    )]
    WholeRecords {
        /// The option.
        what: &'static str,
    },
    /// The method needs levels to order features, but none were given.
    #[error(
        "the method allpairs uses the rarest features of each document, but no levels were given: count features in the scan, and pass \
         the levels of all counts"
    )]
    NoLevels,
    /// Two classes of a component have the same rank.
    #[error(
        "rank {rank} occurs twice in its component: pass each class once, with different ranks"
    )]
    RepeatedRank {
        /// The rank.
        rank: i64,
    },
    /// A class that is compared with and never removed comes after one that may be removed.
    #[error(
        "rank {rank} belongs to documents that are compared with and never removed, and comes after a rank that does not: rank all classes in \
         the order of survivors, in which they come first"
    )]
    AgainstAfterOthers {
        /// The rank of the class that is out of order.
        rank: i64,
    },
    /// A component has more classes than one machine can number.
    #[error("a component of {classes} classes is too large: the limit is 4,294,967,294")]
    TooLarge {
        /// Number of classes.
        classes: usize,
    },
    /// Packed rows are truncated.
    #[error("the packed {rows} are truncated or changed: pass what this version packed")]
    CutOff {
        /// The kind of the rows.
        rows: &'static str,
    },
    /// Feature sets could not be read back from memory.
    #[error(
        "feature sets could not be read back: {0}: run the step again; if this recurs, check the memory of the machine"
    )]
    Sets(io::Error),
}

impl From<io::Error> for KernelError {
    fn from(error: io::Error) -> Self {
        Self::Sets(error)
    }
}
