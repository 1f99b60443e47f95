//! Chunks and the pieces of which they consist.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::buffer_pool::PooledBytes;
use crate::record::{BadRecordKind, RecordPart};
use crate::row::JsonRow;
use crate::source::SkippedPart;

/// Number of records at which a chunk counts as full, which limits the size of its parsed form, too.
pub(crate) const MAX_RECORDS: u64 = 1 << 13;

/// A batch of whole records, to be parsed by a [`crate::Parser`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RecordChunk {
    /// Number of the chunk in its stream, from 0.
    pub number: u64,
    /// The decompressed bytes.
    pub bytes: PooledBytes,
    /// Number of records that a parser will visit, including bad ones.
    pub records: u64,
    /// Number of blank lines in the chunk, which are not records.
    pub blank_lines: u64,
    /// Number of bytes on disk that were consumed since the previous chunk. Their sum is [`crate::Inputs::total_bytes`] unless something is damaged
    /// or too long.
    pub disk_bytes: u64,
    /// Losses that occurred while reading it.
    pub skips: Vec<SkippedPart>,
    pub(crate) pieces: Vec<ChunkPiece>,
    /// Number of bytes attached to rows, outside of `bytes`.
    pub(crate) attached: usize,
}

impl RecordChunk {
    /// Returns the number of bytes that the chunk holds.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() + self.attached
    }

    /// Adds rows of a source, whose lines begin at `start`.
    pub(crate) fn push_rows(
        &mut self,
        source: u32,
        first_record: u64,
        start: usize,
        rows: Vec<JsonRow>,
    ) {
        self.records += rows.len() as u64;
        // A read that only skipped something makes no piece, but its skips are in the chunk.
        if let Some(first) = rows.first() {
            self.pieces.push(ChunkPiece {
                source,
                first_record,
                first_line: 0,
                offset: first.offset,
                range: start..self.bytes.len(),
                span: PieceContent::Rows(rows),
            });
        }
    }

    /// Returns a checksum of everything that a parser sees: the bytes and their positions.
    pub fn content_sum(&self) -> u64 {
        let mut sum = Xxh3::new();
        sum.update(&self.bytes);
        for piece in &self.pieces {
            // Source and number, so that equal bytes in another place have another checksum; the ranges show where records were cut.
            let place = [
                u64::from(piece.source),
                piece.first_record,
                piece.range.start as u64,
                piece.range.end as u64,
            ];
            place
                .iter()
                .for_each(|number| sum.update(&number.to_le_bytes()));
            match &piece.span {
                PieceContent::TooLong(hash)
                | PieceContent::File(FileState::TooLong(Some(hash))) => {
                    sum.update(&hash.to_le_bytes());
                }
                PieceContent::File(FileState::Bad(kind, _)) => sum.update(kind.name().as_bytes()),
                PieceContent::Rows(rows) => rows.iter().for_each(|row| row.add_to(&mut sum)),
                PieceContent::Lines | PieceContent::Long(_) | PieceContent::File(_) => {}
            }
        }
        sum.digest()
    }

    /// Returns the position of the first record in the last piece. If the chunk has a part of a long record, it is that one.
    pub fn last_record(&self) -> Option<RecordPosition> {
        self.pieces.last().map(|piece| RecordPosition {
            source: piece.source,
            record: piece.first_record,
        })
    }
}

/// The position of a record in all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// Number of the source.
    pub source: u32,
    /// Number of the record in it, from 0.
    pub record: u64,
}

/// A part of a chunk that comes from one source.
#[derive(Debug)]
pub(crate) struct ChunkPiece {
    pub(crate) source: u32,
    /// Number of its first record in the source.
    pub(crate) first_record: u64,
    /// Number of its first line in the source, from 0.
    pub(crate) first_line: u64,
    /// Offset of its first byte in the decompressed source.
    pub(crate) offset: u64,
    /// Its range in the chunk.
    pub(crate) range: Range<usize>,
    pub(crate) span: PieceContent,
}

#[derive(Debug)]
pub(crate) enum PieceContent {
    /// Complete lines.
    Lines,
    /// Part of an over-long line, for the raw reader.
    Long(RecordPart),
    /// The hash of an over-long line, whose bytes were dropped.
    TooLong(u128),
    /// Records of an archive or table, each a line of JSON or the reason why there is none.
    Rows(Vec<JsonRow>),
    /// A whole file.
    File(FileState),
}

#[derive(Debug)]
pub(crate) enum FileState {
    /// The chunk holds all its bytes.
    Whole,
    /// Larger than the limit. Its bytes were dropped, but it has a hash if it was read to its end.
    TooLong(Option<u128>),
    /// It cannot be decompressed, so its bytes are missing.
    Bad(BadRecordKind, String),
    /// Not opened, for the raw reader.
    Unread,
}

/// The treatment of over-long lines and of whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// For parsing: files are read, and over-long lines are dropped.
    Parse,
    /// For copying: files are not opened, and over-long lines are passed on.
    Copy,
    /// For copying: like files, tables with typed columns are not opened.
    CopyExceptTables,
}
