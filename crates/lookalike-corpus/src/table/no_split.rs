//! Replacement of `split` in builds without Parquet, which read no such tables.

use std::io;
use std::marker::PhantomData;
use std::path::Path;

use crate::error::ReadError;
use crate::options::InputOptions;
use crate::source::Inputs;

/// A row of a table that is being split.
pub struct TableRow<'a> {
    batch: PhantomData<&'a ()>,
    /// Number of the record in its source, the same as in [`crate::Record::number`].
    pub number: u64,
}

lookalike::opaque_debug! {
    [] TableRow ['_];
}

impl TableRow<'_> {
    /// Returns the record as the JSON object of its columns, without a line feed.
    pub fn line(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// The result of [`Inputs::split_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitTable {
    /// Number of readable rows in the table.
    pub rows: u64,
    /// Size of each of the two tables in bytes.
    pub bytes: [u64; 2],
}

impl Inputs {
    /// Returns no reason, because this build reads no tables.
    ///
    /// # Errors
    /// None.
    pub fn unwritable_table(&self, _: u32, _: &InputOptions) -> Result<Option<String>, ReadError> {
        Ok(None)
    }

    /// Splits nothing, because this build reads no tables.
    ///
    /// # Errors
    /// None.
    pub fn split_table(
        &self,
        _: u32,
        _: &InputOptions,
        _: [&Path; 2],
        _: &mut dyn FnMut(&TableRow<'_>) -> Option<usize>,
    ) -> io::Result<Option<SplitTable>> {
        Ok(None)
    }
}
