//! Iteration over the rows of record batches, one batch after another.

use super::column;
use super::texts::TableBatch;
use crate::record::BadRecordKind;
use crate::row::RowSink;
use crate::source::SkippedPart;

/// The position in the batches of a table.
pub(super) struct BatchCursor {
    /// Maximum size of a row in bytes.
    limit: usize,
    batch: Option<TableBatch>,
    /// Number of the next row in the batch.
    at: usize,
    /// Number of the batch's first row in the table. Lost rows count.
    number: u64,
}

/// A table that is read batch by batch.
pub(super) trait BatchSource {
    /// Returns the next readable batch, or `None` at the end.
    fn next_batch(&mut self, skips: &mut Vec<SkippedPart>) -> Option<TableBatch>;

    /// Returns the position in the batches.
    fn cursor(&mut self) -> &mut BatchCursor;
}

impl BatchCursor {
    pub(super) fn new(limit: usize) -> BatchCursor {
        BatchCursor {
            limit,
            batch: None,
            at: 0,
            number: 0,
        }
    }

    /// Returns the number of rows before the current batch.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Passes over rows that are lost.
    pub(super) fn pass_over(&mut self, rows: u64) {
        self.number = self.number.saturating_add(rows);
    }

    fn add_rows(&mut self, batch: TableBatch, sink: &mut RowSink<'_>) {
        while self.at < batch.rows.num_rows() && !sink.is_full() {
            let number = self.number + self.at as u64;
            match batch.invalid_column(self.at) {
                None => column::add_row(&batch.rows, self.at, number, self.limit, sink),
                Some(column) => {
                    let reason = format!("column {column}: its text is not UTF-8");
                    sink.bad(number, BadRecordKind::Broken, reason);
                }
            }
            self.at += 1;
        }
        if self.at < batch.rows.num_rows() {
            self.batch = Some(batch);
        } else {
            self.number += batch.rows.num_rows() as u64;
        }
    }
}

/// Adds rows until the sink is full. Returns true at the end of the table.
pub(super) fn fill(table: &mut impl BatchSource, sink: &mut RowSink<'_>) -> bool {
    while !sink.is_full() {
        // A batch may contain more rows than a chunk takes: it is kept, and the next call continues within it.
        if let Some(batch) = table.cursor().batch.take() {
            table.cursor().add_rows(batch, sink);
            continue;
        }
        let Some(batch) = table.next_batch(sink.skips) else {
            return true;
        };
        let cursor = table.cursor();
        (cursor.batch, cursor.at) = (Some(batch), 0);
    }
    false
}
