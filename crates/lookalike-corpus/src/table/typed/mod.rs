//! Tables with typed columns: Parquet and Arrow.
//!
//! JSON lines become a table (`writer`); rows of a table become records (`typed_table`), or are taken directly from the batches (`split`).

mod arrow;
mod batch_source;
mod codes;
mod column;
mod column_builders;
mod delta;
mod footer;
mod messages;
mod pages;
mod parquet;
mod parquet_types;
mod schema_inference;
mod split;
mod texts;
mod thrift;
mod typed_table;
mod writer;

pub use codes::{CodeTable, CodeTableWriter};
pub use column::{UnrepresentableValue, cell_json, row_line};
pub(crate) use schema_inference::InferredFields;
pub(crate) use typed_table::TypedTable;
pub(crate) use writer::{learn, write_parquet};
