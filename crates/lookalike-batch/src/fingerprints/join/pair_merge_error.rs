//! Errors of merging lists of pairs.

/// Reason why lists of pairs cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairMergeError {
    /// A line is not a pair.
    #[error(
        "{name}, line {line}: {reason}: lists must be as `lookalike join` writes them; repair the line, or join again"
    )]
    Line {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
        /// Description of the error.
        reason: String,
    },
    /// A line sorts before the one above it.
    #[error(
        "{name}, line {line}: sorts before the line above it: lists must be in the order that `lookalike join` writes; join again, or \
         give the lists as they are to `lookalike cluster`"
    )]
    Order {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
    },
    /// Pairs of one collection are mixed with pairs of two.
    #[error(
        "{name}, line {line}: a pair of {found}, after pairs of {before}: merge only lists of the same join"
    )]
    Sides {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
        /// Names of the fields of the line.
        found: &'static str,
        /// Names of the fields of the lines before.
        before: &'static str,
    },
}
