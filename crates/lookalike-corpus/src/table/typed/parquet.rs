//! Reading of Parquet, one row group at a time: a damaged row group does not affect the others.

use std::fs::File;
use std::sync::Arc;

use arrow_array::RecordBatchReader as _;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader};
use parquet::file::metadata::ParquetMetaData;

use super::batch_source::BatchSource;
use super::pages::{BatchPages, ParquetPart, TextTypes};
use super::texts::TableBatch;
use super::{footer, pages};
use crate::decode;
use crate::error::ReadError;
use crate::guard::catch_panic_as_error;
use crate::source::{SkippedPart, Source};

/// Approximate number of bytes in a batch of rows that are decoded together.
const BATCH_BYTES: i64 = 4 << 20;

/// Maximum number of rows in a batch.
const BATCH_ROWS: i64 = 4096;

/// Maximum number of bytes of pages, besides the first page of each column, for a batch of more than one row: long rows may be next to each other.
const MAX_BATCH_BYTES: u64 = 16 << 20;

/// Returns the reason why the contents do not fit the footer.
pub(super) fn fewer_rows(missing: u64) -> String {
    format!("it lacks {missing} of the rows that its footer declares")
}

/// The state of reading a Parquet file.
pub(super) struct ParquetTable<'a> {
    source: &'a Source,
    /// The file and its footer, or the reason why they are invalid.
    file: Result<(File, ArrowReaderMetadata), String>,
    /// The Arrow types of texts.
    texts: TextTypes,
    /// Number of the next row group to read.
    next_group: usize,
    group: Option<OpenGroup>,
    /// Number of rows that the row group still has, by the footer.
    left: u64,
}

/// A row group that is being read.
struct OpenGroup {
    rows: ParquetRecordBatchReader,
    /// The schema of the rows, if their texts are read as bytes.
    texts: Option<SchemaRef>,
    /// Maximum number of rows in a batch.
    batch_rows: usize,
    /// Number of rows that were read by this reader, and of those that were given to the caller, by earlier readers too.
    read: usize,
    given: usize,
    pages: Arc<BatchPages>,
}

impl<'a> ParquetTable<'a> {
    pub(super) fn new(source: &'a Source, file: File, texts: TextTypes) -> ParquetTable<'a> {
        let metadata = footer::load(&file);
        ParquetTable {
            source,
            file: metadata.map(|metadata| (file, metadata)),
            texts,
            next_group: 0,
            group: None,
            left: 0,
        }
    }

    /// Begins the next row group. Returns false if there is none.
    fn open_group(&mut self) -> Result<bool, String> {
        let metadata = match &self.file {
            Ok((_, metadata)) => metadata.metadata(),
            Err(_) => return Ok(false),
        };
        let Some(group) = metadata.row_groups().get(self.next_group) else {
            return Ok(false);
        };
        self.next_group += 1;
        self.left = group.num_rows().max(0) as u64;
        // It contains nothing to read, not even a dictionary.
        if self.left == 0 {
            return Ok(true);
        }
        // By the mean size of the group's rows in the footer; a negative one is clamped below.
        let per_row = group.total_byte_size() / group.num_rows().max(1);
        let rows = (BATCH_BYTES / per_row.max(1)).clamp(1, BATCH_ROWS) as usize;
        self.read_group(rows, 0, None).map(|()| true)
    }

    /// Reads the row group that was begun last from its start, to continue after its first `given` rows. With `texts`, the schema of the rows, texts
    /// are read as bytes.
    fn read_group(
        &mut self,
        batch_rows: usize,
        given: usize,
        texts: Option<SchemaRef>,
    ) -> Result<(), String> {
        let (file, metadata) = self.file.as_ref().map_err(Clone::clone)?;
        let file = file.try_clone().map_err(|error| error.to_string())?;
        let pages = BatchPages::new(match batch_rows {
            1 => u64::MAX,
            _ => MAX_BATCH_BYTES,
        });
        let part = ParquetPart {
            groups: vec![self.next_group - 1],
            columns: ProjectionMask::all(),
            texts: self.texts,
            as_bytes: texts.is_some(),
            pages: pages.clone(),
        };
        let rows =
            catch_panic_as_error(|| pages::record_batches(file, metadata, part, batch_rows))?;
        self.group = Some(OpenGroup {
            rows,
            texts,
            batch_rows,
            read: 0,
            given,
            pages,
        });
        Ok(())
    }

    /// Gives up the rest of the row group and reports it as lost.
    fn skip_row_group(&mut self, reason: &str, row: &mut u64, skips: &mut Vec<SkippedPart>) {
        // The rest of the group cannot be reached, because pages have no marks to resynchronize at.
        self.group = None;
        // The library puts its name before the reason, and once more before that.
        let reason = reason
            .trim_start_matches("Parquet argument error: ")
            .trim_start_matches("Parquet error: ");
        let reason = format!("row group {}: {reason}", self.next_group);
        skips.push(SkippedPart::unreadable(self.source, *row, reason));
        // The rows behind them keep their numbers in the file.
        *row = row.saturating_add(std::mem::take(&mut self.left));
    }
}

impl BatchSource for ParquetTable<'_> {
    fn next_batch(&mut self, row: &mut u64, skips: &mut Vec<SkippedPart>) -> Option<TableBatch> {
        if let Err(reason) = &self.file {
            skips.push(SkippedPart::unreadable(self.source, 0, reason.clone()));
            return None;
        }
        loop {
            if let Some(group) = &mut self.group {
                group.pages.begin();
                match catch_panic_as_error(|| group.rows.next().transpose()) {
                    Ok(Some(batch)) => {
                        group.read += batch.num_rows();
                        let new = group.read.saturating_sub(group.given);
                        if new > 0 {
                            group.given = group.read;
                            self.left = self.left.saturating_sub(new as u64);
                            let given = batch.num_rows() - new;
                            return Some(TableBatch {
                                rows: batch.slice(given, new),
                                texts: group.texts.clone(),
                            });
                        }
                    }
                    Ok(None) if self.left > 0 => {
                        let reason = fewer_rows(self.left);
                        self.skip_row_group(&reason, row, skips);
                    }
                    Ok(None) => self.group = None,
                    // The same rows once more, in smaller batches.
                    Err(_) if group.pages.exceeded() => {
                        let (rows, given) = ((group.batch_rows / 8).max(1), group.given);
                        let texts = group.texts.clone();
                        if let Err(reason) = self.read_group(rows, given, texts) {
                            self.skip_row_group(&reason, row, skips);
                        }
                    }
                    // Once more, because a text that is not UTF-8 need not cost the rows beside it.
                    Err(reason) if group.texts.is_none() => {
                        let texts = Some(group.rows.schema());
                        let (rows, given) = (group.batch_rows, group.given);
                        if self.read_group(rows, given, texts).is_err() {
                            self.skip_row_group(&reason, row, skips);
                        }
                    }
                    Err(reason) => self.skip_row_group(&reason, row, skips),
                }
            } else {
                match self.open_group() {
                    Ok(false) => return None,
                    Ok(true) => {}
                    Err(reason) => self.skip_row_group(&reason, row, skips),
                }
            }
        }
    }

    fn metadata(&self) -> Option<(SchemaRef, Option<Arc<ParquetMetaData>>)> {
        let (_, metadata) = self.file.as_ref().ok()?;
        Some((metadata.schema().clone(), Some(metadata.metadata().clone())))
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        match &self.file {
            Ok((file, _)) => decode::check_metadata(self.source, file.metadata()),
            Err(_) => Ok(()),
        }
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
        // Only for progress: groups count when they are begun.
        let bytes: i64 = read.map(|group| group.compressed_size().max(0)).sum();
        (bytes as u64).min(self.source.bytes)
    }
}
