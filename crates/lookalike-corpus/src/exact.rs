//! Byte-exact reading for archives: visits every byte of sources that are lines or files, in order, both records and the bytes between them.
//!
//! Records are numbered as by a [`crate::Parser`]. Blank lines and byte order marks are not records; they are visited too, so that a source can be
//! rebuilt from the visited bytes.

use crate::chunk::{ChunkReader, FILE_STEP_BYTES, is_bomb};
use crate::decode::{DecodeStep, SourceDecoder};
use crate::error::ReadError;
use crate::format::Format;
use crate::input_window::BYTE_ORDER_MARK;
use crate::limits::{ReadLimits, max_document_bytes};
use crate::lines::TextLines;
use crate::options::InputOptions;
use crate::piece::{ChunkPiece, PieceContent, ReadMode, RecordChunk};
use crate::record::RecordPart;
use crate::source::{Inputs, Source};

/// A piece of a source, decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactPiece<'a> {
    /// Index into [`Inputs::sources`].
    pub source: u32,
    /// Number of the record that the bytes belong to, the same as in [`crate::Record::number`]; `None` between records.
    pub record: Option<u64>,
    /// True if the record begins here.
    pub begins: bool,
    /// Offset of the first byte in the decompressed source.
    pub offset: u64,
    /// The bytes; for a line, including its terminator.
    pub bytes: &'a [u8],
}

impl Source {
    /// Returns true if [`exact_pieces`] visits every byte of the source, because it is lines of JSON or one document.
    pub fn is_exact(&self) -> bool {
        self.is_document() || self.format == Format::Jsonl
    }
}

/// Visits every byte of every source in order: of lines and of documents, decompressed. In a damaged compressed source it visits the bytes before the
/// damage. It skips sources that are lost or not [exact](Source::is_exact). Holds one chunk in memory.
///
/// # Errors
/// Returns the first error of reading or of the visitor, which ends the visit.
pub fn exact_pieces<E: From<ReadError>>(
    inputs: &Inputs,
    options: &InputOptions,
    visit: &mut dyn FnMut(ExactPiece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let max_bytes = max_document_bytes(options);
    let mut seen = vec![false; inputs.sources.len()];
    for chunk in ChunkReader::with_mode(inputs, options, ReadMode::Copy) {
        let chunk = chunk?;
        for piece in &chunk.pieces {
            let source = &inputs.sources[piece.source as usize];
            // Archives and tables contain bytes that belong to no row. Callers that need those byte for byte copy the file.
            if !source.is_exact() || source.is_lost() {
                continue;
            }
            let is_first = !std::mem::replace(&mut seen[piece.source as usize], true);
            match piece.span {
                PieceContent::File(_) => visit_file(piece.source, source, options, visit)?,
                _ => {
                    // The reader skipped a byte order mark: nothing else can come before the first line.
                    if is_first && piece.offset > 0 {
                        visit(mark(piece.source))?;
                    }
                    visit_lines(&chunk, piece, max_bytes, visit)?;
                }
            }
        }
    }
    for (number, source) in (0..).zip(&inputs.sources) {
        // A file of three bytes; without this its copy would be empty.
        if source.format == Format::Jsonl && !seen[number as usize] && is_lone_mark(source)? {
            visit(mark(number))?;
        }
    }
    Ok(())
}

/// Returns the piece for the byte order mark before the first line of a source.
fn mark(source: u32) -> ExactPiece<'static> {
    ExactPiece {
        source,
        record: None,
        begins: false,
        offset: 0,
        bytes: BYTE_ORDER_MARK,
    }
}

/// Returns true if a source without lines consists of such a mark, which is in no chunk.
fn is_lone_mark(source: &Source) -> Result<bool, ReadError> {
    if source.is_lost() || source.bytes == 0 {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    // One more byte shows that nothing follows.
    SourceDecoder::open(source)?.append(&mut bytes, BYTE_ORDER_MARK.len() + 1)?;
    Ok(bytes == BYTE_ORDER_MARK)
}

fn visit_lines<E>(
    chunk: &RecordChunk,
    piece: &ChunkPiece,
    max_bytes: usize,
    visit: &mut dyn FnMut(ExactPiece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bytes = &chunk.bytes[piece.range.clone()];
    if let PieceContent::Long(part) = piece.span {
        return visit(ExactPiece {
            source: piece.source,
            record: Some(piece.first_record),
            begins: part == RecordPart::First,
            offset: piece.offset,
            bytes,
        });
    }
    let mut number = piece.first_record;
    for line in TextLines::new(bytes) {
        // The same test as in the parser and in the count of the cutter: all three must agree on record numbers.
        let is_record = line.is_record(max_bytes);
        let end = line.start + line.content.len() + line.end.len();
        visit(ExactPiece {
            source: piece.source,
            record: is_record.then_some(number),
            begins: is_record,
            offset: piece.offset + line.start as u64,
            bytes: &bytes[line.start..end],
        })?;
        number += u64::from(is_record);
    }
    Ok(())
}

fn visit_file<E: From<ReadError>>(
    number: u32,
    source: &Source,
    options: &InputOptions,
    visit: &mut dyn FnMut(ExactPiece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let limits = ReadLimits::new(options);
    let mut decoder = SourceDecoder::open(source)?;
    let mut bytes = Vec::new();
    let mut offset = 0;
    loop {
        bytes.clear();
        let step = decoder.append(&mut bytes, FILE_STEP_BYTES)?;
        // An empty file is a record, too.
        if offset == 0 || !bytes.is_empty() {
            visit(ExactPiece {
                source: number,
                record: Some(0),
                begins: offset == 0,
                offset,
                bytes: &bytes,
            })?;
        }
        offset += bytes.len() as u64;
        // A bomb is a bad record; storing its bytes would fill the caller's disk.
        if step != DecodeStep::More || is_bomb(source, offset, limits) {
            return Ok(());
        }
    }
}
