//! Tables that are read batch by batch.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::file::metadata::ParquetMetaData;

use super::texts::TableBatch;
use crate::error::ReadError;
use crate::source::SkippedPart;

/// A table of Parquet or Arrow.
pub(super) trait BatchSource: Send {
    /// Returns the next readable batch, or `None` at the end. `row` is the number of its first row in the table; lost rows are added to it.
    fn next_batch(&mut self, row: &mut u64, skips: &mut Vec<SkippedPart>) -> Option<TableBatch>;

    /// Returns the schema of the batches, and the metadata of the footer if the table is Parquet. Returns `None` if they cannot be read.
    fn metadata(&self) -> Option<(SchemaRef, Option<Arc<ParquetMetaData>>)>;

    /// Checks at the end that the file is still the one that was discovered.
    fn check_unchanged(&self) -> Result<(), ReadError>;

    /// Returns the number of bytes of the file that were consumed so far.
    fn disk_bytes(&self) -> u64;
}
