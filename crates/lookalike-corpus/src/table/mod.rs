//! Tables: rows of CSV and TSV, Parquet and Arrow as records.
//!
//! Read, a row becomes the JSON object of its columns, so that `--id`, `--text` and ranks name columns,
//! `a.b` the fields of a nested one. Written, lines of JSON become a table again (`writer`).

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod codes;
#[cfg(not(feature = "parquet"))]
#[path = "no_codes.rs"]
mod codes;
#[cfg(feature = "parquet")]
mod column;
mod delimited;
#[cfg(feature = "parquet")]
mod fill;
#[cfg(feature = "parquet")]
mod kind;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
pub(crate) mod writer;

#[cfg(feature = "parquet")]
pub(crate) use arrow::ArrowTable;
pub use codes::{CodeTable, CodeTableWriter};
pub(crate) use delimited::Delimited;
#[cfg(feature = "parquet")]
pub(crate) use kind::Columns;
#[cfg(feature = "parquet")]
pub(crate) use parquet::ParquetTable;

/// A fingerprint as a table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeCell<'a> {
    /// None: a text without features.
    Null,
    /// A number.
    Number(u64),
    /// A text that spells it.
    Text(&'a str),
}
