//! Rows of a collection, counted while they are read.

use std::io;

use lookalike::scheme::SchemeId;
use lookalike_corpus::{CodeCell, CodeTable};

use super::{CodesError, CodesSummary};
use crate::skipped::SkippedRows;

/// Counts of the rows so far, with the name of their file.
pub(super) struct RowCounts {
    pub(super) name: String,
    /// Rows with a sketch.
    pub(super) sketches: u64,
    /// Rows whose sketch is null.
    without: u64,
    skipped: SkippedRows,
    /// True if the first row that cannot be read is an error.
    strict: bool,
}

impl RowCounts {
    pub(super) fn new(name: String, strict: bool) -> Self {
        Self {
            name,
            sketches: 0,
            without: 0,
            skipped: SkippedRows::default(),
            strict,
        }
    }

    /// Returns a closure for `map_err` that makes the error of a file that cannot be read.
    pub(super) fn failed(&self) -> impl Fn(io::Error) -> CodesError + '_ {
        move |cause| CodesError::Io {
            name: self.name.clone(),
            cause,
        }
    }

    /// Counts rows whose sketch is null, and which are not read again.
    pub(super) fn add_nulls(&mut self, count: u64) {
        self.without += count;
    }

    /// Counts a row, such as `line` 3: `taken` is false if its sketch is null, and an error if it holds none.
    pub(super) fn note(
        &mut self,
        kind: &str,
        number: u64,
        taken: Result<bool, String>,
    ) -> Result<(), CodesError> {
        match taken {
            // The caller counts sketches, because not all formats have rows.
            Ok(true) => {}
            Ok(false) => self.without += 1,
            Err(reason) => {
                let first = format!("{}, {kind} {number}: {reason}", self.name);
                if self.strict {
                    return Err(CodesError::Strict(first));
                }
                self.skipped.add("malformed", first);
            }
        }
        Ok(())
    }

    /// Passes the next rows of a table to `take`. Returns false at the end.
    pub(super) fn read_table(
        &mut self,
        table: &mut CodeTable,
        mut take: impl FnMut(Option<&str>, CodeCell<'_>) -> Result<bool, String>,
    ) -> Result<bool, CodesError> {
        let mut stopped = Ok(());
        let more = table.read(&mut |row, id, cell| {
            // A table cannot stop within a group of rows, so rows after the first refusal are ignored.
            if stopped.is_ok() {
                stopped = self.note("row", row, take(id, cell));
            }
        });
        stopped?;
        more.map_err(|cause| CodesError::table(&self.name, cause))
    }

    /// Returns the fault of the first row if every row is bad: the file is then not a collection with bad rows but something else.
    pub(super) fn first_fault(&mut self) -> Option<String> {
        if self.sketches + self.without > 0 {
            return None;
        }
        // The skipped rows become the error, so they are not reported as losses too.
        let rows = std::mem::take(&mut self.skipped).finish();
        rows.into_iter().next().map(|row| row.first)
    }

    pub(super) fn summary(self, scheme: Option<SchemeId>) -> CodesSummary {
        CodesSummary {
            name: self.name,
            fingerprints: self.sketches,
            without_features: self.without,
            scheme_id: scheme.map(|scheme| scheme.to_string()),
            skipped: self.skipped.finish(),
        }
    }
}
