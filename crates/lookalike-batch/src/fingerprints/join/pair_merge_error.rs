//! Faults of lists of pairs that are put together.

/// A list that is not one of pairs in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairMergeError {
    /// A line is no pair.
    #[error(
        "{name}, line {line}: {reason}: lists must be as `lookalike join` writes them; repair the line, or join again"
    )]
    Line {
        /// The list.
        name: String,
        /// The line.
        line: u64,
        /// Fault.
        reason: String,
    },
    /// A line stands behind one that comes after it.
    #[error(
        "{name}, line {line}: sorts before the line above it: lists must be in the order that `lookalike join` writes; join again, or \
         give the lists as they are to `lookalike cluster`"
    )]
    Order {
        /// The list.
        name: String,
        /// The line.
        line: u64,
    },
    /// Pairs of one collection beside pairs of two.
    #[error(
        "{name}, line {line}: a pair of {found}, after pairs of {before}: merge only lists of the same join"
    )]
    Sides {
        /// The list.
        name: String,
        /// The line.
        line: u64,
        /// Fields of the line.
        found: &'static str,
        /// Fields of the lines before.
        before: &'static str,
    },
}
