//! Replacement of `codes` and `split` in builds without Parquet: tables of fingerprints are refused with an error that names the feature. Tables of
//! documents are refused before they are split.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;

use super::code_cell::{CodeCell, CodeColumn};
use super::split_table::{SplitTable, TableRowChooser};
use crate::error::ReadError;
use crate::options::InputOptions;
use crate::source::Inputs;

/// Returns the error for a table that this build cannot read or write.
pub(crate) fn unsupported<T>() -> io::Result<T> {
    let reason = "this build has no Parquet, which needs the Cargo feature `parquet` (or `full`)";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// A reader that cannot be created.
pub struct CodeTable {
    /// Width in bits of the numbers in the column.
    pub number_bits: Option<u32>,
    never: Infallible,
}

/// A writer that cannot be created.
pub struct CodeTableWriter<W>(Infallible, W);

lookalike::opaque_debug! {
    [] CodeTable [];
    [W] CodeTableWriter [W];
}

impl CodeTable {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &Path, _: &'static str) -> io::Result<Self> {
        unsupported()
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn read(&mut self, _: &mut dyn FnMut(u64, Option<&str>, CodeCell<'_>)) -> io::Result<bool> {
        match self.never {}
    }
}

impl<W: Write + Send> CodeTableWriter<W> {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: W, _: bool, _: CodeColumn) -> io::Result<Self> {
        unsupported()
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn push(&mut self, _: Option<&str>, _: CodeCell<'_>) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {}
    }
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
        _: &mut TableRowChooser<'_>,
    ) -> io::Result<Option<SplitTable>> {
        Ok(None)
    }
}
