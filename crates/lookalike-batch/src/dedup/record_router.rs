//! The second pass over the records, which distributes them to the kept and the removed ones, on all threads.
//!
//! Records are only bytes here. The document of each follows from its position, so threads need not wait for each other; their
//! results for chunks are collected in input order.

use lookalike_corpus::{BufferPool, PooledBytes, RawChunk, RawRecord, RecordPart};
use std::path::PathBuf;

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::record_cursor::DocumentNumbers;
use crate::document_memory::LongestDocument;
use crate::error::BatchError;
use crate::pipeline::{ChunkWorker, InputChunk};
use crate::spill::arrange::RecordArranger;

/// Indices into pairs of values for kept and for removed records.
pub(super) const KEPT: usize = 0;
pub(super) const REMOVED: usize = 1;

/// Data for the second pass over the records.
pub(super) struct RecordRouter<'a> {
    pub(super) numbers: DocumentNumbers<'a>,
    pub(super) outcomes: &'a DecisionTable,
    /// Place of each document in the order of the output.
    pub(super) places: &'a [u32],
    /// Puts records in order; `None` if they are already in order.
    pub(super) arranger: Option<&'a RecordArranger>,
    /// The files, for error messages.
    pub(super) paths: &'a [PathBuf; 2],
    /// False if no record is written as a line.
    pub(super) has_lines: bool,
    /// Ascending documents whose lines the report shows if they are at most `shown_bytes` long.
    pub(super) shown: &'a [u32],
    pub(super) shown_bytes: usize,
    /// Buffers for lines.
    pub(super) buffers: BufferPool,
}

/// Records of one chunk, in order.
pub(super) enum RoutedRecords {
    Lines(RoutedLines),
    /// A chunk with a part of a record that is too long to be held, which must be copied.
    Long(RawChunk),
    /// A source that is a single file, or a table.
    File {
        source: u32,
    },
}

/// Complete lines.
#[derive(Default)]
pub(super) struct RoutedLines {
    /// The lines, unless they were passed to the arranger.
    pub(super) bytes: [PooledBytes; 2],
    /// Number of bytes of all lines.
    pub(super) counts: [u64; 2],
    /// Lines for the report.
    pub(super) shown: Vec<(u32, Vec<u8>)>,
    /// Number of the last document plus one.
    pub(super) end: usize,
}

impl RecordRouter<'_> {
    /// Returns the index, [`KEPT`] or [`REMOVED`], for a document.
    pub(super) fn destination(&self, document: usize) -> usize {
        match self.outcomes.is_kept(document) {
            true => KEPT,
            false => REMOVED,
        }
    }

    /// Adds a record, which is complete or a file, after the earlier ones.
    pub(super) fn route(
        &self,
        record: &RawRecord<'_>,
        routed: &mut Vec<RoutedRecords>,
    ) -> Result<(), BatchError> {
        let source = record.source;
        if record.part == RecordPart::File {
            routed.push(RoutedRecords::File { source });
            return Ok(());
        }
        let Some(document) = self.numbers.of(source, record.number) else {
            return Ok(());
        };
        // Lines behind a file begin a new piece, so that the pieces stay in the order of the input.
        if !matches!(routed.last(), Some(RoutedRecords::Lines(_))) {
            routed.push(RoutedRecords::Lines(RoutedLines {
                bytes: [KEPT, REMOVED].map(|_| self.buffers.take()),
                ..RoutedLines::default()
            }));
        }
        if let Some(RoutedRecords::Lines(lines)) = routed.last_mut() {
            self.add_line(document, record.bytes, lines)?;
        }
        Ok(())
    }

    fn add_line(
        &self,
        document: usize,
        line: &[u8],
        lines: &mut RoutedLines,
    ) -> Result<(), BatchError> {
        let destination = self.destination(document);
        lines.counts[destination] += line.len() as u64 + 1;
        lines.end = document + 1;
        let is_shown = self.shown.binary_search(&(document as u32)).is_ok();
        // Lines stay in memory until the collector receives them.
        if is_shown && line.len() <= self.shown_bytes {
            lines.shown.push((document as u32, line.to_vec()));
        }
        match self.arranger {
            Some(arranger) => arranger
                .add_line(destination, self.places[document], line)
                .map_err(BatchError::result(&self.paths[destination])),
            None => {
                if self.has_lines {
                    lines.bytes[destination].extend_from_slice(line);
                    lines.bytes[destination].push(b'\n');
                }
                Ok(())
            }
        }
    }
}

/// One thread of the second pass.
pub(super) struct RouteWorker<'a>(pub(super) &'a RecordRouter<'a>);

impl ChunkWorker<RawChunk> for RouteWorker<'_> {
    type Output = Vec<RoutedRecords>;

    fn run(&mut self, chunk: &RawChunk) -> Result<Self::Output, BatchError> {
        // One thread must write the parts of a long record in order: the collector does.
        if chunk.has_long_part() {
            return Ok(vec![RoutedRecords::Long(chunk.clone())]);
        }
        let mut routed = Vec::new();
        chunk.visit(&mut |record: RawRecord<'_>| self.0.route(&record, &mut routed))?;
        Ok(routed)
    }

    fn shrink(&mut self) {}
}

impl InputChunk for RawChunk {
    fn held_bytes(&self) -> usize {
        RawChunk::held_bytes(self)
    }

    fn longest_document(&self) -> LongestDocument {
        LongestDocument {
            bytes: self.held_bytes() as u64,
            place: None,
        }
    }
}
