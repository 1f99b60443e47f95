//! The second reading, for output: records as bytes, without parsing them.

use std::sync::Arc;

use crate::chunk::ChunkReader;
use crate::error::ReadError;
use crate::limits::max_document_bytes;
use crate::lines::{TextLines, split_terminator};
use crate::options::InputOptions;
use crate::piece::{ChunkPiece, FileState, PieceContent, ReadMode, RecordChunk};
use crate::record::RecordPart;
use crate::source::Inputs;

/// A record, or a part of one that is too long to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRecord<'a> {
    /// Index into [`Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, the same as in [`crate::Record::number`].
    pub number: u64,
    /// The part of the record that the bytes hold.
    pub part: RecordPart,
    /// The line without its terminator. For a record of an archive or table, the JSON line of its fields, which is empty for a bad record. Empty for
    /// [`RecordPart::File`].
    pub bytes: &'a [u8],
    /// The line's terminator as in the source: `\n`, `\r\n`, or nothing at the end of a source and after a part that is not the last.
    pub end: &'static [u8],
}

/// Visits every record of every source in order, including bad ones, with the same numbers as a [`crate::Parser`]. Holds one chunk in memory.
///
/// # Errors
/// Returns the first error of reading or of the visitor, which ends the visit.
pub fn raw_records<E: From<ReadError>>(
    inputs: &Inputs,
    options: &InputOptions,
    visit: &mut dyn FnMut(RawRecord<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for chunk in raw_chunks(inputs, options, false) {
        chunk?.visit(visit)?;
    }
    Ok(())
}

/// Returns the chunks that [`raw_records`] reads, for callers that process several at once. Ends after the first error. With `beside_tables`, a table with typed columns is one
/// record, [`RecordPart::File`]: its rows are written by [`Inputs::split_table`].
pub fn raw_chunks<'a>(
    inputs: &'a Inputs,
    options: &InputOptions,
    beside_tables: bool,
) -> impl Iterator<Item = Result<RawChunk, ReadError>> + use<'a> {
    let mode = match beside_tables {
        true => ReadMode::CopyExceptTables,
        false => ReadMode::Copy,
    };
    let max_bytes = max_document_bytes(options);
    let chunks = ChunkReader::with_mode(inputs, options, mode);
    chunks.map(move |chunk| {
        let chunk = Arc::new(chunk?);
        Ok(RawChunk { chunk, max_bytes })
    })
}

/// A batch of records, or of parts of long ones, as bytes. Cheap to clone.
#[derive(Clone)]
pub struct RawChunk {
    chunk: Arc<RecordChunk>,
    max_bytes: usize,
}

lookalike::opaque_debug! {
    [] RawChunk [];
}

impl RawChunk {
    /// Returns the number of bytes that the chunk holds.
    pub fn held_bytes(&self) -> usize {
        self.chunk.held()
    }

    /// Returns true if it contains a part of a record that is too long to be held.
    pub fn has_long_part(&self) -> bool {
        let mut pieces = self.chunk.pieces.iter();
        pieces.any(|piece| matches!(piece.span, PieceContent::Long(_)))
    }

    /// Visits the records in order; see [`raw_records`].
    ///
    /// # Errors
    /// Returns the first error of the visitor, which ends the visit.
    pub fn visit<E>(&self, visit: &mut dyn FnMut(RawRecord<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut pieces = self.chunk.pieces.iter();
        pieces.try_for_each(|piece| visit_piece(&self.chunk, piece, self.max_bytes, visit))
    }
}

fn visit_piece<E>(
    chunk: &RecordChunk,
    piece: &ChunkPiece,
    max_bytes: usize,
    visit: &mut dyn FnMut(RawRecord<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bytes = &chunk.bytes[piece.range.clone()];
    let record = |number, part, bytes, end| RawRecord {
        source: piece.source,
        number,
        part,
        bytes,
        end,
    };
    match &piece.span {
        PieceContent::Lines => {
            // The numbers follow from the same rule as in the parser; they are not stored.
            let records = TextLines::new(bytes).filter(|line| line.is_record(max_bytes));
            for (number, line) in (piece.first_record..).zip(records) {
                visit(record(number, RecordPart::Whole, line.content, line.end))?;
            }
            Ok(())
        }
        PieceContent::Long(RecordPart::Last) => {
            let (content, end) = split_terminator(bytes);
            visit(record(piece.first_record, RecordPart::Last, content, end))
        }
        PieceContent::Long(part) => visit(record(piece.first_record, *part, bytes, b"")),
        PieceContent::TooLong(_) => unreachable!("for parsers only"),
        PieceContent::Rows(rows) => {
            let mut start = piece.range.start;
            for (number, row) in (piece.first_record..).zip(rows) {
                let line = &chunk.bytes[start..row.end];
                // A bad row has no bytes, so there is no line feed to cut off.
                let (content, end) = split_terminator(line);
                visit(record(number, RecordPart::Whole, content, end))?;
                start = row.end;
            }
            Ok(())
        }
        PieceContent::File(state) => {
            // In the modes for copying, whole files are not decoded here.
            debug_assert!(matches!(state, FileState::Unread));
            visit(record(0, RecordPart::File, b"", b""))
        }
    }
}
