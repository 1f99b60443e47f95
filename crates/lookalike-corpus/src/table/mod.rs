//! Tables: rows of CSV and TSV, Parquet and Arrow as records.
//!
//! A row becomes the JSON object of its columns, so that options name columns, and `a.b` the fields of a nested one.

mod code_cell;
mod delimited;
mod dialect;
mod row_error;
mod split_table;
mod stray_quotes;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
pub(crate) mod typed;

pub use code_cell::{CodeCell, CodeColumn, FINGERPRINT_COLUMN};
pub(crate) use delimited::DelimitedTable;
pub(crate) use dialect::{has_even_rows, is_table};
pub use row_error::TableRowError;
pub use split_table::{SplitTable, TableRowChooser};
pub use typed::{CodeTable, CodeTableWriter};
#[cfg(feature = "parquet")]
pub use typed::{UnrepresentableValue, cell_json, row_line};
