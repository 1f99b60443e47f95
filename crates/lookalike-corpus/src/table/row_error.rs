//! The error for lines that do not form a table.

/// Error for a line that cannot be a row of a table. [`AtomicFile`](crate::AtomicFile) returns it within an [`io::Error`](std::io::Error).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableRowError {
    /// The line is too long to be converted in memory.
    #[error("row {row} has more than {most} MiB")]
    TooLong {
        /// Number of the row, from 1.
        row: u64,
        /// Maximum length in MiB.
        most: u64,
    },
    /// The line is not a JSON object, or would need too many columns.
    #[error("row {row} of the table: {cause}")]
    Columns {
        /// Number of the row, from 1.
        row: u64,
        /// Reason why a table cannot hold the row.
        cause: serde_json::Error,
    },
}

impl TableRowError {
    /// Returns true if this is the cause of an error of a file.
    pub fn is_cause_of(error: &std::io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}
