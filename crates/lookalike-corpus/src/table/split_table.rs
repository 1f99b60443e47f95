//! Splitting of a table, as its caller sees it.

/// The result of [`Inputs::split_table`](crate::Inputs::split_table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitTable {
    /// Number of readable rows in the table.
    pub rows: u64,
    /// Size of each of the two tables in bytes.
    pub bytes: [u64; 2],
}

/// Returns the index of the table for a row, if any. Gets the number of the record in its source, the same as in [`crate::Record::number`], and a
/// function that returns the record as the JSON object of its columns, without a line feed.
pub type TableRowChooser<'c> = dyn FnMut(u64, &dyn Fn() -> Vec<u8>) -> Option<usize> + 'c;
