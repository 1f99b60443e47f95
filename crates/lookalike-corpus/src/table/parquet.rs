//! Parquet, one row group at a time: a broken group harms no other.

use std::fs::File;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};

use super::column;
use super::pages::CheckedFile;
use crate::chunk;
use crate::decode;
use crate::error::ReadError;
use crate::guard::guarded;
use crate::options::InputOptions;
use crate::row::{RowReader, RowSink};
use crate::source::Source;

/// Rows are decoded in batches of about this many bytes.
const BATCH_BYTES: i64 = 4 << 20;

/// Most rows in a batch.
const BATCH_ROWS: i64 = 4096;

/// A Parquet file that is being read.
pub(crate) struct ParquetTable<'a> {
    source: &'a Source,
    limit: usize,
    /// The file and what its footer says, or what is wrong with them.
    file: Result<(File, ArrowReaderMetadata), String>,
    /// The row group that is read next.
    next_group: usize,
    rows: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
    /// First row of the batch that is still to be added.
    at: usize,
    /// Number of the first row of the batch in the file.
    number: u64,
}

impl<'a> ParquetTable<'a> {
    pub(crate) fn open(
        source: &'a Source,
        options: &InputOptions,
    ) -> Result<ParquetTable<'a>, ReadError> {
        decode::Decoder::open(source)?;
        let file = File::open(source.file()).map_err(|error| decode::io_error(source, error))?;
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()));
        let metadata = metadata.and_then(|metadata| match impossible(&metadata, source.bytes) {
            Some(reason) => Err(reason),
            None => Ok(metadata),
        });
        Ok(ParquetTable {
            source,
            limit: chunk::max_document_bytes(options),
            file: metadata.map(|metadata| (file, metadata)),
            next_group: 0,
            rows: None,
            batch: None,
            at: 0,
            number: 0,
        })
    }

    /// Gets the next batch; false at the end.
    fn next_batch(&mut self, sink: &mut RowSink<'_>) -> bool {
        loop {
            if let Some(rows) = &mut self.rows {
                match guarded(|| rows.next().transpose()) {
                    Ok(Some(batch)) => {
                        self.at = 0;
                        self.batch = Some(batch);
                        return true;
                    }
                    Ok(None) => self.rows = None,
                    Err(reason) => self.lose(&reason, sink),
                }
            } else {
                match self.open_group() {
                    Ok(false) => return false,
                    Ok(true) => {}
                    Err(reason) => self.lose(&reason, sink),
                }
            }
        }
    }

    /// Begins the next row group; false if there is none.
    fn open_group(&mut self) -> Result<bool, String> {
        let (file, metadata) = match &self.file {
            Ok(file) => file,
            Err(_) => return Ok(false),
        };
        let groups = metadata.metadata().row_groups();
        let Some(group) = groups.get(self.next_group) else {
            return Ok(false);
        };
        let number = self.next_group;
        self.next_group += 1;
        let per_row = group.total_byte_size() / group.num_rows().max(1);
        let rows = (BATCH_BYTES / per_row.max(1)).clamp(1, BATCH_ROWS) as usize;
        let file = CheckedFile(file.try_clone().map_err(|error| error.to_string())?);
        let metadata = metadata.clone();
        let reader = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_row_groups(vec![number])
                .with_batch_size(rows)
                .build()
        })?;
        self.rows = Some(reader);
        Ok(true)
    }

    /// What is left of the row group cannot be read.
    fn lose(&mut self, reason: &str, sink: &mut RowSink<'_>) {
        self.rows = None;
        let reason = format!("row group {}: {reason}", self.next_group);
        sink.skips
            .push(chunk::lost(self.source, self.number, reason));
    }
}

impl RowReader for ParquetTable<'_> {
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        if let Err(reason) = &self.file {
            sink.skips.push(chunk::lost(self.source, 0, reason.clone()));
            return Ok(true);
        }
        while !sink.is_full() {
            match self.batch.take() {
                None if self.next_batch(sink) => {}
                None => return Ok(true),
                Some(batch) => {
                    self.at = column::add_rows(&batch, self.at, self.number, self.limit, sink);
                    if self.at < batch.num_rows() {
                        self.batch = Some(batch);
                    } else {
                        self.number += batch.num_rows() as u64;
                    }
                }
            }
        }
        Ok(false)
    }

    fn disk_bytes(&self) -> u64 {
        let groups = match &self.file {
            Ok((_, metadata)) => metadata.metadata().row_groups(),
            Err(_) => return self.source.bytes,
        };
        if self.next_group >= groups.len() {
            return self.source.bytes;
        }
        let read = groups.iter().take(self.next_group);
        let bytes: i64 = read.map(|group| group.compressed_size().max(0)).sum();
        (bytes as u64).min(self.source.bytes)
    }
}

/// What a footer says that cannot be true of a file of this size.
fn impossible(metadata: &ArrowReaderMetadata, file_bytes: u64) -> Option<String> {
    let fits = |value: i64| u64::try_from(value).is_ok_and(|value| value <= file_bytes);
    for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
        let number = number + 1;
        if group.num_rows() < 0 {
            return Some(format!("row group {number} has {} rows", group.num_rows()));
        }
        for column in group.columns() {
            let (start, bytes) = (column.data_page_offset(), column.compressed_size());
            if !fits(start) || !fits(bytes) {
                return Some(format!(
                    "column {} of row group {number} lies beyond the end of the file",
                    column.column_path()
                ));
            }
        }
    }
    None
}
