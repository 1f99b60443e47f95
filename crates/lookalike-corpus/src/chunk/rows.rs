//! Cutting of one archive or table into chunks, row by row.

use super::record_cutter::{CutSource, RecordCutter};
use crate::archive::ArchiveReader;
use crate::error::ReadError;
use crate::format::Format;
use crate::options::InputOptions;
use crate::piece::{ReadMode, RecordChunk};
use crate::row::{RowReader, RowSink};
use crate::source::Source;
use crate::table::DelimitedTable;
#[cfg(feature = "parquet")]
use crate::table::typed::TypedTable;

/// The state of reading a source of rows.
pub(super) struct RowCutter<'a> {
    cut: CutSource<'a>,
    reader: Box<dyn RowReader + Send + 'a>,
    record: u64,
}

impl<'a> RowCutter<'a> {
    pub(super) fn new(
        cut: CutSource<'a>,
        options: &InputOptions,
    ) -> Result<RowCutter<'a>, ReadError> {
        // Records that are too long to be compared are kept all the same, so results need rows with all their contents.
        let is_whole = cut.mode != ReadMode::Parse;
        Ok(RowCutter {
            cut,
            reader: open(cut.source, options, is_whole)?,
            record: 0,
        })
    }
}

impl RecordCutter for RowCutter<'_> {
    fn fill(&mut self, chunk: &mut RecordChunk) -> Result<bool, ReadError> {
        let start = chunk.bytes.len();
        let mut sink = RowSink {
            bytes: &mut chunk.bytes,
            rows: Vec::new(),
            skips: &mut chunk.skips,
            attached: &mut chunk.attached,
            enough: self.cut.limits.chunk_bytes,
        };
        let ended = self.reader.fill(&mut sink);
        let rows = sink.rows;
        if ended.is_err() {
            // The earlier rows are complete; of the next one there may be a part, which is dropped.
            chunk
                .bytes
                .truncate(rows.last().map_or(start, |row| row.end));
        }
        let first = self.record;
        self.record += rows.len() as u64;
        chunk.push_rows(self.cut.number, first, start, rows);
        ended
    }

    fn records(&self) -> u64 {
        self.record
    }

    fn disk_bytes(&self) -> u64 {
        self.reader.disk_bytes()
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
        Format::Parquet | Format::Arrow => Box::new(TypedTable::open(source, options, is_whole)?),
        _ => unreachable!("one document a file, or lines"),
    })
}
