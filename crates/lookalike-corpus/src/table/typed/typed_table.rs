//! Rows of Parquet and Arrow as records, one batch after another.

use super::arrow::ArrowTable;
use super::batch_source::BatchSource;
use super::pages::TextTypes;
use super::parquet::ParquetTable;
use super::texts::TableBatch;
use crate::decode;
use crate::error::ReadError;
use crate::format::Format;
use crate::limits;
use crate::options::InputOptions;
use crate::row::{RowReader, RowSink};
use crate::source::Source;

/// Opens a table. `texts` are the types of texts of Parquet.
pub(super) fn open<'a>(
    source: &'a Source,
    options: &InputOptions,
    texts: TextTypes,
) -> Result<Box<dyn BatchSource + 'a>, ReadError> {
    // Only for its checks: it refuses a file that has changed since it was discovered.
    decode::SourceDecoder::open(source)?;
    let file = decode::open_source(source)?;
    Ok(match source.format {
        Format::Arrow => Box::new(ArrowTable::new(source, file, options.max_batch_bytes)),
        _ => Box::new(ParquetTable::new(source, file, texts)),
    })
}

/// The state of reading a table.
pub(crate) struct TypedTable<'a> {
    table: Box<dyn BatchSource + 'a>,
    /// Maximum size of a row in bytes.
    limit: usize,
    batch: Option<TableBatch>,
    /// Number of the next row in the batch.
    at: usize,
    /// Number of the batch's first row in the table. Lost rows count.
    number: u64,
}

impl<'a> TypedTable<'a> {
    /// Opens a table. With `is_whole`, no row counts as too long.
    pub(crate) fn open(
        source: &'a Source,
        options: &InputOptions,
        is_whole: bool,
    ) -> Result<TypedTable<'a>, ReadError> {
        Ok(TypedTable {
            table: open(source, options, TextTypes::Views)?,
            limit: match is_whole {
                true => usize::MAX,
                false => limits::max_document_bytes(options),
            },
            batch: None,
            at: 0,
            number: 0,
        })
    }
}

impl RowReader for TypedTable<'_> {
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        while !sink.is_full() {
            if self.batch.is_none() {
                (self.batch, self.at) = (self.table.next_batch(&mut self.number, sink.skips), 0);
            }
            let Some(batch) = &self.batch else {
                return self.table.check_unchanged().map(|()| true);
            };
            // A batch may contain more rows than a chunk takes: it is kept, and the next call continues within it.
            self.at = batch.add_rows(self.at, self.number, self.limit, sink);
            if self.at >= batch.rows.num_rows() {
                self.number += batch.rows.num_rows() as u64;
                self.batch = None;
            }
        }
        Ok(false)
    }

    fn disk_bytes(&self) -> u64 {
        self.table.disk_bytes()
    }
}
