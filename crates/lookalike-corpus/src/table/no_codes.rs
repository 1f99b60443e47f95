//! Replacement of `codes` in builds without Parquet: refuses tables of fingerprints with an error that names the feature.

use std::io::{self, Write};
use std::path::Path;

use super::code_cell::CodeCell;

fn unsupported() -> io::Error {
    let reason = "this build has no Parquet, which needs the Cargo feature `parquet` (or `full`)";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

/// A reader that cannot be created.
pub struct CodeTable(std::convert::Infallible);

lookalike::opaque_debug! {
    [] CodeTable [];
}

impl CodeTable {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn open_column(_: &Path, _: &'static str) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Never called.
    pub fn number_bits(&self) -> Option<u32> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn first_text(&mut self) -> io::Result<Option<String>> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn read(&mut self, _: &mut dyn FnMut(u64, Option<&str>, CodeCell<'_>)) -> io::Result<bool> {
        match self.0 {}
    }
}

/// A writer that cannot be created.
pub struct CodeTableWriter<W>(std::convert::Infallible, W);

lookalike::opaque_debug! {
    [W] CodeTableWriter [W];
}

impl<W: Write + Send> CodeTableWriter<W> {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: W, _: bool) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn of_short_numbers(_: W, _: bool) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn of_texts(_: W, _: bool, _: &'static str) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn push(&mut self, _: Option<&str>, _: Option<u64>) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn push_text(&mut self, _: Option<&str>, _: Option<String>) -> io::Result<()> {
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
