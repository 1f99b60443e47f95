//! Cutting of one archive or table into chunks, row by row.

use crate::archive::ArchiveReader;
use crate::error::ReadError;
use crate::format::Format;
use crate::options::InputOptions;
use crate::piece::{ChunkPiece, PieceContent, RecordChunk};
use crate::row::{RowReader, RowSink};
use crate::source::Source;
use crate::table::DelimitedTable;
#[cfg(feature = "parquet")]
use crate::table::{ArrowTable, ParquetTable};

/// The state of reading a source of rows.
pub(super) struct RowCutter<'a> {
    number: u32,
    reader: Box<dyn RowReader + Send + 'a>,
    record: u64,
    counted_disk_bytes: u64,
}

impl<'a> RowCutter<'a> {
    pub(super) fn new(
        number: u32,
        source: &'a Source,
        options: &InputOptions,
        is_whole: bool,
    ) -> Result<RowCutter<'a>, ReadError> {
        Ok(RowCutter {
            number,
            reader: open(source, options, is_whole)?,
            record: 0,
            counted_disk_bytes: 0,
        })
    }

    /// Returns the number of rows that were added to chunks.
    pub(super) fn records(&self) -> u64 {
        self.record
    }

    /// Adds rows until the chunk has `enough` bytes. Returns true if the source has ended.
    pub(super) fn fill(
        &mut self,
        chunk: &mut RecordChunk,
        enough: usize,
    ) -> Result<bool, ReadError> {
        let start = chunk.bytes.len();
        let mut sink = RowSink {
            bytes: &mut chunk.bytes,
            rows: Vec::new(),
            skips: &mut chunk.skips,
            attached: &mut chunk.attached,
            enough,
        };
        let ended = self.reader.fill(&mut sink);
        let rows = sink.rows;
        if ended.is_err() {
            // The earlier rows are complete; of the next one there may be a part, which is dropped.
            chunk
                .bytes
                .truncate(rows.last().map_or(start, |row| row.end));
        }
        // Readers that seek, as for Parquet, may move backwards in the file, but progress must not.
        let disk_bytes = self.reader.disk_bytes().max(self.counted_disk_bytes);
        chunk.disk_bytes += disk_bytes - self.counted_disk_bytes;
        self.counted_disk_bytes = disk_bytes;
        let count = rows.len() as u64;
        // A read that only skipped something makes no piece, but its skips are in the chunk.
        if count > 0 {
            chunk.pieces.push(ChunkPiece {
                source: self.number,
                first_record: self.record,
                first_line: 0,
                offset: rows[0].offset,
                range: start..chunk.bytes.len(),
                span: PieceContent::Rows(rows),
            });
        }
        self.record += count;
        chunk.records += count;
        ended
    }
}

/// Returns the options for a table. With `is_whole`, no row counts as too long.
#[cfg(feature = "parquet")]
fn table_options(options: &InputOptions, is_whole: bool) -> InputOptions {
    match is_whole {
        true => options.clone().max_document_bytes(u64::MAX),
        false => options.clone(),
    }
}

fn open<'a>(
    source: &'a Source,
    options: &InputOptions,
    is_whole: bool,
) -> Result<Box<dyn RowReader + Send + 'a>, ReadError> {
    Ok(match source.format {
        Format::Warc | Format::Wat | Format::Arc => Box::new(ArchiveReader::open(source, options)?),
        Format::Csv | Format::Tsv => Box::new(DelimitedTable::open(source, options, is_whole)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(ParquetTable::open(
            source,
            &table_options(options, is_whole),
        )?),
        #[cfg(feature = "parquet")]
        Format::Arrow => Box::new(ArrowTable::open(source, &table_options(options, is_whole))?),
        _ => unreachable!("one document a file, or lines"),
    })
}
