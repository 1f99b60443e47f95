//! Tables: rows of CSV and TSV, Parquet and Arrow as records.
//!
//! A row becomes the JSON object of its columns, so that `--id`, `--text` and ranks name columns,
//! `a.b` the fields of a nested one.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod column;
mod delimited;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub(crate) use arrow::ArrowTable;
pub(crate) use delimited::Delimited;
#[cfg(feature = "parquet")]
pub(crate) use parquet::ParquetTable;
