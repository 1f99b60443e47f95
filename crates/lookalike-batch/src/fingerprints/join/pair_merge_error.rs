//! Faults of lists of pairs that are put together.

/// A list that is not one of pairs in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairMergeError {
    /// A line is no pair.
    #[error(
        "{name}, line {line}: {reason}: lists are merged as `lookalike join` writes them; repair the line, or join again"
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
        "{name}, line {line}: comes before the line above it: lists are merged in the order in which `lookalike join` writes them; \
         join again, or give `lookalike cluster` the lists as they are"
    )]
    Order {
        /// The list.
        name: String,
        /// The line.
        line: u64,
    },
    /// Pairs of one collection beside pairs of two.
    #[error(
        "{name}, line {line}: a pair of {found}, after pairs of {before}: merge the lists of one join only"
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
