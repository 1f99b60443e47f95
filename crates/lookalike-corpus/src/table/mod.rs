//! Tables: rows of CSV and TSV, Parquet and Arrow as records.
//!
//! For reading, a row becomes the JSON object of its columns, so that options name columns, and `a.b` the fields of a nested one. For writing, JSON
//! lines become a table again (`writer`); rows of Parquet and Arrow are taken directly from the batches (`split`).

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod batch_source;
mod code_cell;
#[cfg(feature = "parquet")]
mod codes;
#[cfg(feature = "parquet")]
mod column;
#[cfg(feature = "parquet")]
mod column_builders;
mod delimited;
#[cfg(feature = "parquet")]
mod delta;
mod dialect;
#[cfg(feature = "parquet")]
mod footer;
#[cfg(feature = "parquet")]
mod messages;
#[cfg(not(feature = "parquet"))]
pub(crate) mod no_parquet;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_types;
mod row_error;
#[cfg(feature = "parquet")]
pub(crate) mod schema_inference;
#[cfg(feature = "parquet")]
mod split;
mod split_table;
mod stray_quotes;
#[cfg(feature = "parquet")]
mod texts;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod typed_table;
#[cfg(feature = "parquet")]
pub(crate) mod writer;

pub use code_cell::{CodeCell, CodeColumn, FINGERPRINT_COLUMN};
#[cfg(feature = "parquet")]
pub use codes::{CodeTable, CodeTableWriter};
#[cfg(feature = "parquet")]
pub use column::{UnrepresentableValue, cell_json, row_line};
pub(crate) use delimited::DelimitedTable;
pub(crate) use dialect::{has_even_rows, is_table};
#[cfg(not(feature = "parquet"))]
pub use no_parquet::{CodeTable, CodeTableWriter};
pub use row_error::TableRowError;
pub use split_table::{SplitTable, TableRowChooser};
#[cfg(feature = "parquet")]
pub(crate) use typed_table::TypedTable;
