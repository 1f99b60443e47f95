//! The ordered stream of chunks: decompresses sources and cuts them between records, in bounded memory.
//!
//! A chunk consists of pieces: lines of one JSONL source, rows of an archive or table, or one whole file. Small files share a chunk. A line longer
//! than the limit is never held as a whole: the reader of the parser hashes its bytes and drops them, and the raw reader passes them on in parts.
//! Both count it as one record.

mod array;
mod cutter;
mod record_cutter;
mod rows;

use crate::buffer_pool::BufferPool;
use crate::decode::{DecodeStep, SourceDecoder};
use crate::error::{self, ReadError};
use crate::format::{Compression, Format};
use crate::limits::ReadLimits;
use crate::long_hash::LongHasher;
use crate::options::InputOptions;
use crate::piece::{ChunkPiece, FileState, MAX_RECORDS, PieceContent, ReadMode, RecordChunk};
use crate::record::BadRecordKind;
use crate::row::MAX_ROWS;
use crate::source::{Inputs, SkipKind, SkippedPart, Source};
use array::ArrayCutter;
use cutter::LineCutter;
use record_cutter::{CutSource, RecordCutter};
use rows::RowCutter;

/// Maximum number of pieces in a chunk, so that a million empty files do not make one chunk.
const MAX_PIECES: usize = 4096;

/// Step in which whole files are decompressed; the compression ratio is checked after each.
pub(crate) const FILE_STEP_BYTES: usize = 1 << 20;

/// Output size below which the compression ratio is not checked.
const BOMB_FLOOR_BYTES: u64 = 16 << 20;

impl Inputs {
    /// Reads all sources once, in order. The reader may be moved to another thread.
    pub fn chunks(&self, options: &InputOptions) -> ChunkReader<'_> {
        ChunkReader::with_mode(self, options, ReadMode::Parse)
    }
}

/// Reads all sources in order; see [`Inputs::chunks`]. Ends after the first error.
pub struct ChunkReader<'a> {
    inputs: &'a Inputs,
    options: InputOptions,
    limits: ReadLimits,
    mode: ReadMode,
    // Position in the inputs: the source to open next, and the one that is being read.
    next_source: usize,
    open: Option<OpenSource<'a>>,
    /// Number of bytes of the file of that source that were added to chunks.
    counted_disk_bytes: u64,
    next_number: u64,
    buffers: BufferPool,
    failed: bool,
}

lookalike::opaque_debug! {
    [] ChunkReader ['_];
}

/// An open source of many records.
type OpenSource<'a> = Box<dyn RecordCutter + Send + 'a>;

impl<'a> ChunkReader<'a> {
    pub(crate) fn with_mode(
        inputs: &'a Inputs,
        options: &InputOptions,
        mode: ReadMode,
    ) -> ChunkReader<'a> {
        ChunkReader {
            inputs,
            options: options.clone(),
            limits: ReadLimits::new(options),
            mode,
            next_source: 0,
            open: None,
            counted_disk_bytes: 0,
            next_number: 0,
            buffers: BufferPool::default(),
            failed: false,
        }
    }

    /// Adds to the chunk until it is large enough or the inputs end.
    fn fill(&mut self, chunk: &mut RecordChunk) -> Result<(), ReadError> {
        // Checked between records, so a chunk exceeds its size by at most one document.
        while chunk.held() < self.limits.chunk_bytes
            && chunk.pieces.len() < MAX_PIECES
            && chunk.records < MAX_RECORDS
            // Readers of rows stop there, too.
            && chunk.skips.len() < MAX_ROWS
        {
            if let Some(mut open) = self.open.take() {
                let filled = open.fill(chunk);
                // Readers that seek, as for Parquet, may move backwards in the file, but progress must not.
                let disk_bytes = open.disk_bytes().max(self.counted_disk_bytes);
                chunk.disk_bytes += disk_bytes - self.counted_disk_bytes;
                self.counted_disk_bytes = disk_bytes;
                match filled {
                    Ok(true) => {}
                    Ok(false) => self.open = Some(open),
                    // Drop `open`: a source that failed once is not read further.
                    Err(error) => self.skip_rest(open.records(), error, chunk)?,
                }
            } else if self.next_source < self.inputs.sources.len() {
                self.start_source(chunk)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Opens a source of records. If it is gone, or is not the file that was found, all its records are lost, but nothing else.
    fn begin(
        &self,
        number: u32,
        source: &'a Source,
        chunk: &mut RecordChunk,
    ) -> Result<Option<OpenSource<'a>>, ReadError> {
        // Raw readings are for output, after decisions were made on the parsed records: a source that is gone by then is an error of the job.
        if self.mode != ReadMode::Parse {
            return self.open(number, source).map(Some);
        }
        if source.loss().is_none() {
            match self.open(number, source) {
                // Stored in the source, not in the reader: a second reading of the inputs must skip the same source, or the numbers of records would
                // shift.
                Err(error) if error.concerns_file() => source.mark_lost(error.reason()),
                opened => return opened.map(Some),
            }
        }
        let reason = source.loss().unwrap_or_default();
        chunk.skips.push(unreadable(source, reason.to_owned()));
        Ok(None)
    }

    /// Continues without the rest of the open source if it changed while it was read. A reading for output fails instead: it would lack records for
    /// which decisions were made.
    fn skip_rest(
        &self,
        records: u64,
        error: ReadError,
        chunk: &mut RecordChunk,
    ) -> Result<(), ReadError> {
        if self.mode != ReadMode::Parse || !error.concerns_file() {
            return Err(error);
        }
        // The open source is the one that was started last.
        let source = &self.inputs.sources[self.next_source - 1];
        let reason = error.reason();
        source.mark_lost(reason.clone());
        let reason = match records {
            0 => reason,
            _ => format!("{reason}: the rest after record {records} is not read"),
        };
        chunk.skips.push(unreadable(source, reason));
        Ok(())
    }

    fn open(&self, number: u32, source: &'a Source) -> Result<OpenSource<'a>, ReadError> {
        let cut = CutSource {
            number,
            source,
            limits: self.limits,
            mode: self.mode,
        };
        Ok(match source.format {
            Format::Jsonl => Box::new(LineCutter::new(cut)?),
            Format::Json => Box::new(ArrayCutter::new(cut)?),
            _ => Box::new(RowCutter::new(cut, &self.options)?),
        })
    }

    fn start_source(&mut self, chunk: &mut RecordChunk) -> Result<(), ReadError> {
        let number = self.next_source as u32;
        let source = &self.inputs.sources[self.next_source];
        self.next_source += 1;
        let is_apart = self.mode == ReadMode::CopyExceptTables && source.is_typed_table();
        // Lost while it was parsed, so it has no records to copy.
        if !source.is_document() && self.mode != ReadMode::Parse && source.is_lost() {
            return Ok(());
        }
        if !source.is_document() && !is_apart {
            (self.open, self.counted_disk_bytes) = (self.begin(number, source, chunk)?, 0);
            return Ok(());
        }
        let start = chunk.bytes.len();
        let state = match self.mode {
            ReadMode::Copy | ReadMode::CopyExceptTables => FileState::Unread,
            ReadMode::Parse => read_file(source, self.limits, chunk),
        };
        // A lost file keeps its number, since it is a document; only sources of many records vanish as a whole.
        chunk.records += 1;
        chunk.pieces.push(ChunkPiece {
            source: number,
            first_record: 0,
            first_line: 0,
            offset: 0,
            range: start..chunk.bytes.len(),
            span: PieceContent::File(state),
        });
        Ok(())
    }
}

/// Reports a source of records that is lost, or the rest of one.
fn unreadable(source: &Source, reason: String) -> SkippedPart {
    SkippedPart::new(source.name(), SkipKind::Unreadable, reason)
}

impl Iterator for ChunkReader<'_> {
    type Item = Result<RecordChunk, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut chunk = RecordChunk {
            number: self.next_number,
            bytes: self.buffers.take(),
            ..RecordChunk::default()
        };
        if let Err(error) = self.fill(&mut chunk) {
            self.failed = true;
            return Some(Err(error));
        }
        // Bytes without records are reported, too: over all chunks they add up to the size of the inputs.
        if chunk.pieces.is_empty() && chunk.skips.is_empty() && chunk.disk_bytes == 0 {
            return None;
        }
        self.next_number += 1;
        Some(Ok(chunk))
    }
}

/// Appends a whole file to the chunk, or returns why its bytes are missing. A file that cannot be read, or changed since it was found, is one lost
/// document; the others are not affected.
fn read_file(source: &Source, limits: ReadLimits, chunk: &mut RecordChunk) -> FileState {
    let start = chunk.bytes.len();
    if let Some(reason) = source.loss() {
        return FileState::Bad(BadRecordKind::Unreadable, reason.to_owned());
    }
    match try_read_file(source, limits, chunk) {
        Ok(state) => state,
        Err(error) => {
            // Several small files share the buffer: part of a broken one must not end up in the text of the next.
            chunk.bytes.truncate(start);
            // A later reading must skip it as well, whatever its contents by then.
            source.mark_lost(error.reason());
            FileState::Bad(BadRecordKind::Unreadable, error.reason())
        }
    }
}

fn try_read_file(
    source: &Source,
    limits: ReadLimits,
    chunk: &mut RecordChunk,
) -> Result<FileState, ReadError> {
    let start = chunk.bytes.len();
    let mut decoder = SourceDecoder::open(source)?;
    let step = file_step(source, limits);
    let state = loop {
        // Nothing is reserved by the claimed size of a file. The ratio is checked after each step, so a bomb costs one step too many.
        let outcome = decoder.append(&mut chunk.bytes, step)?;
        let length = chunk.bytes.len() - start;
        // Check the ratio first: a file that grows without end is a bomb, not a long document.
        if is_bomb(source, length as u64, limits) {
            let (bytes, ratio) = (source.bytes, limits.decoded_ratio);
            let reason = format!(
                "{bytes} bytes on disk grow to more than {length}, over {ratio} times as many"
            );
            break FileState::Bad(BadRecordKind::Bomb, reason);
        }
        if length > limits.document_bytes {
            let begun = &chunk.bytes[start..];
            break match limits.read_long {
                true => hash_long_file(source, limits, &mut decoder, begun, outcome)?,
                false => FileState::TooLong(None),
            };
        }
        match outcome {
            DecodeStep::More => {}
            DecodeStep::End => break FileState::Whole,
            DecodeStep::Damaged(reason) => break damaged(length as u64, &reason),
        }
    };
    if !matches!(state, FileState::Whole) {
        chunk.bytes.truncate(start);
    }
    chunk.disk_bytes += decoder.disk_bytes();
    Ok(state)
}

/// Reads a file that is too long to its end, to complete the hash `begun` with its first bytes. A file that exceeds the ratio on the way has no hash.
fn hash_long_file(
    source: &Source,
    limits: ReadLimits,
    decoder: &mut SourceDecoder<'_>,
    begun: &[u8],
    mut outcome: DecodeStep,
) -> Result<FileState, ReadError> {
    let mut hasher = LongHasher::of_text();
    hasher.update(begun);
    let mut length = begun.len() as u64;
    let mut piece = Vec::new();
    loop {
        match outcome {
            DecodeStep::More => {}
            DecodeStep::End => return Ok(FileState::TooLong(Some(hasher.finish()))),
            DecodeStep::Damaged(reason) => return Ok(damaged(length, &reason)),
        }
        if is_bomb(source, length, limits) {
            return Ok(FileState::TooLong(None));
        }
        piece.clear();
        outcome = decoder.append(&mut piece, FILE_STEP_BYTES)?;
        hasher.update(&piece);
        length += piece.len() as u64;
    }
}

/// Returns true if the compression ratio of a file exceeds the limit.
pub(crate) fn is_bomb(source: &Source, length: u64, limits: ReadLimits) -> bool {
    source.compression != Compression::None
        && length > BOMB_FLOOR_BYTES
        // Compared with the size of the whole file on disk, not of the part read so far, which says little in the middle of a file.
        && length > source.bytes.saturating_mul(limits.decoded_ratio)
}

/// Returns the number of bytes to request at once: for a plain file all of it, and one more byte to see its end.
fn file_step(source: &Source, limits: ReadLimits) -> usize {
    // One byte beyond the limit shows that the text is too long.
    let most = limits.document_bytes.saturating_add(1);
    match source.compression {
        Compression::None => usize::try_from(source.bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
            .min(most),
        _ => FILE_STEP_BYTES.min(most),
    }
}

fn damaged(length: u64, reason: &str) -> FileState {
    let place = format!(" after {length} bytes");
    FileState::Bad(BadRecordKind::Damaged, error::damage(&place, reason))
}
