//! Tables: rows of CSV and TSV, Parquet and Arrow as records.
//!
//! Read, a row becomes the JSON object of its columns, so that `--id`, `--text` and ranks name columns,
//! `a.b` the fields of a nested one. Written, lines of JSON become a table again (`writer`).

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod column;
mod delimited;
#[cfg(feature = "parquet")]
mod fill;
#[cfg(feature = "parquet")]
mod kind;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
pub(crate) mod writer;

#[cfg(feature = "parquet")]
pub(crate) use arrow::ArrowTable;
pub(crate) use delimited::Delimited;
#[cfg(feature = "parquet")]
pub(crate) use kind::Columns;
#[cfg(feature = "parquet")]
pub(crate) use parquet::ParquetTable;
