//! The second reading of records: to what is kept and what is removed, on all threads.
//!
//! Records are bytes here. Which document each is follows from its place, so threads need not wait for one another; what they
//! make of their chunks is handed on in the order of the input.

use lookalike_corpus::{BufferPool, PooledBytes, RawChunk, RawRecord, RecordPart};
use std::path::PathBuf;

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::record_cursor::DocumentNumbers;
use crate::document_memory::LongestDocument;
use crate::error::BatchError;
use crate::pipeline::{ChunkWorker, InputChunk};
use crate::spill::arrange::RecordArranger;

/// Positions of what there is twice: of what is kept, and of what is removed.
pub(super) const KEPT: usize = 0;
pub(super) const REMOVED: usize = 1;

/// All that is known of records that are read again.
pub(super) struct RecordRouter<'a> {
    pub(super) numbers: DocumentNumbers<'a>,
    pub(super) outcomes: &'a DecisionTable,
    /// Place of each document in the order of the output.
    pub(super) places: &'a [u32],
    /// Puts records in order, unless they come in it.
    pub(super) arranger: Option<&'a RecordArranger>,
    /// The files, for messages.
    pub(super) paths: &'a [PathBuf; 2],
    /// False where no record leaves as a line.
    pub(super) has_lines: bool,
    /// Documents whose lines are shown in the report, ascending, if they are no longer than `shown_bytes`.
    pub(super) shown: &'a [u32],
    pub(super) shown_bytes: usize,
    /// Buffers for lines.
    pub(super) buffers: BufferPool,
}

/// Records of one chunk, in their order.
pub(super) enum RoutedRecords {
    Lines(RoutedLines),
    /// A chunk with a part of a record that is too long to be held, and so to be copied.
    Long(RawChunk),
    /// A source that is a file of its own, or a table.
    File {
        source: u32,
    },
}

/// Whole lines.
#[derive(Default)]
pub(super) struct RoutedLines {
    /// The lines, unless they are on their way into an order already.
    pub(super) bytes: [PooledBytes; 2],
    /// Bytes of all lines.
    pub(super) counts: [u64; 2],
    /// Lines that the report shows.
    pub(super) shown: Vec<(u32, Vec<u8>)>,
    /// One more than the last document.
    pub(super) end: usize,
}

impl RecordRouter<'_> {
    /// Number of the way that a document goes.
    pub(super) fn way(&self, document: usize) -> usize {
        match self.outcomes.is_kept(document) {
            true => KEPT,
            false => REMOVED,
        }
    }

    /// Adds a record, which is whole or a file, to those before it.
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
        let way = self.way(document);
        lines.counts[way] += line.len() as u64 + 1;
        lines.end = document + 1;
        let is_shown = self.shown.binary_search(&(document as u32)).is_ok();
        // Lines wait in memory until the collector has them.
        if is_shown && line.len() <= self.shown_bytes {
            lines.shown.push((document as u32, line.to_vec()));
        }
        match self.arranger {
            Some(arranger) => arranger
                .add_line(way, self.places[document], line)
                .map_err(BatchError::result(&self.paths[way])),
            None => {
                if self.has_lines {
                    lines.bytes[way].extend_from_slice(line);
                    lines.bytes[way].push(b'\n');
                }
                Ok(())
            }
        }
    }
}

/// One thread of the second reading.
pub(super) struct RouteWorker<'a>(pub(super) &'a RecordRouter<'a>);

impl ChunkWorker<RawChunk> for RouteWorker<'_> {
    type Output = Vec<RoutedRecords>;

    fn run(&mut self, chunk: &RawChunk) -> Result<Self::Output, BatchError> {
        // Parts of a long record must be written by one thread in their order: the collector does that.
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
