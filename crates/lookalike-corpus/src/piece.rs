//! Chunks, and the pieces that they consist of.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::buffer_pool::PooledBytes;
use crate::record::{BadKind, RecordPart};
use crate::row::JsonRow;
use crate::source::SkippedPart;

/// Records in a chunk: it takes no more when it has as many, so that what is made of it is bounded, too.
pub(crate) const MAX_RECORDS: u64 = 1 << 13;

/// A run of whole records, to be given to a [`crate::Parser`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RecordChunk {
    /// Number of the chunk in its stream, from 0.
    pub number: u64,
    /// The decompressed bytes.
    pub bytes: PooledBytes,
    /// Number of records that a parser will visit, bad ones included.
    pub records: u64,
    /// Blank lines among them, which are no records.
    pub blank_lines: u64,
    /// Bytes on disk that were consumed since the chunk before; they add up to
    /// [`crate::Inputs::total_bytes`] unless something is damaged or too long.
    pub disk_bytes: u64,
    /// Losses met while reading it.
    pub skips: Vec<SkippedPart>,
    pub(crate) pieces: Vec<ChunkPiece>,
    /// Bytes that hang on rows, beside `bytes`.
    pub(crate) attached: usize,
}

impl RecordChunk {
    /// Bytes that it holds.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() + self.attached
    }

    /// A sum of all that a parser sees: the bytes, and where they lie.
    pub fn content_sum(&self) -> u64 {
        let mut sum = Xxh3::new();
        sum.update(&self.bytes);
        for piece in &self.pieces {
            // Source and number, so that equal bytes at another place have another sum; the ranges tell where
            // records were cut.
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
                PieceContent::File(FileState::Bad(kind, _)) => sum.update(kind.as_str().as_bytes()),
                PieceContent::Rows(rows) => rows.iter().for_each(|row| row.add_to(&mut sum)),
                PieceContent::Lines | PieceContent::Long(_) | PieceContent::File(_) => {}
            }
        }
        sum.digest()
    }

    /// Source and number there, from 0, of the record that its last part begins with: the long one, if it has one.
    pub fn last_record(&self) -> Option<RecordPlace> {
        self.pieces.last().map(|piece| RecordPlace {
            source: piece.source,
            record: piece.first_record,
        })
    }
}

/// A record among all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
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
    /// Whole lines.
    Lines,
    /// A part of an over-long line, for the raw reader.
    Long(RecordPart),
    /// An over-long line, whose bytes are not here, by its hash.
    TooLong(u128),
    /// Records of an archive or table, each a line of JSON or the reason why there is none.
    Rows(Vec<JsonRow>),
    /// A whole file.
    File(FileState),
}

#[derive(Debug)]
pub(crate) enum FileState {
    /// All its bytes are here.
    Whole,
    /// Larger than the limit; its bytes are not here, but their hash if it was read to its end.
    TooLong(Option<u128>),
    /// Not to be decompressed; its bytes are not here.
    Bad(BadKind, String),
    /// Left unopened, for the raw reader.
    Unread,
}

/// The treatment of over-long lines and of whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// For parsing: files are read, over-long lines dropped.
    Parse,
    /// For copying: files are left alone, over-long lines passed on.
    Copy,
    /// For copying: as files, tables whose columns have types are left alone.
    CopyBesideTables,
}
