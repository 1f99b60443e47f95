//! Cutting of one JSONL source into chunks, after the last complete line.

use std::ops::Range;

use memchr::{memchr, memrchr};
use serde::de::IgnoredAny;

use super::record_cutter::{CutSource, RecordCutter};
use crate::decode::{DecodeStep, SourceDecoder};
use crate::error::ReadError;
use crate::input_window::BYTE_ORDER_MARK;
use crate::lines::{self, split_terminator};
use crate::long_hash::LongHasher;
use crate::piece::{ChunkPiece, MAX_RECORDS, PieceContent, ReadMode, RecordChunk};
use crate::record::RecordPart;
use crate::source::SkippedPart;

/// Maximum number of lines that a chunk takes at once.
const MAX_LINES: usize = MAX_RECORDS as usize;

/// The state of reading a JSONL source.
pub(super) struct LineCutter<'a> {
    cut: CutSource<'a>,
    decoder: SourceDecoder<'a>,
    /// The start of a line that did not fit into the previous chunk.
    carry: Vec<u8>,
    /// Offset of `carry` in the decompressed source.
    offset: u64,
    record: u64,
    line: u64,
    /// True if `carry` continues an over-long line.
    in_long: bool,
    /// Hash of the bytes of that line read so far.
    long_hasher: LongHasher,
    /// Offset of that line in the decompressed source.
    long_offset: u64,
    /// True if `carry` holds whole lines for which the previous chunk had no room.
    has_lines: bool,
    /// True if the source has been read to its end.
    ended: bool,
}

impl<'a> LineCutter<'a> {
    pub(super) fn new(cut: CutSource<'a>) -> Result<LineCutter<'a>, ReadError> {
        Ok(LineCutter {
            cut,
            decoder: SourceDecoder::open(cut.source)?,
            carry: Vec::new(),
            offset: 0,
            record: 0,
            line: 0,
            in_long: false,
            long_hasher: LongHasher::of_record(),
            long_offset: 0,
            has_lines: false,
            ended: false,
        })
    }

    /// Reads until there is enough for the chunk and a line has ended or become too long.
    fn read(&mut self, chunk: &mut RecordChunk, start: usize) -> Result<bool, ReadError> {
        let limits = self.cut.limits;
        loop {
            let before = chunk.bytes.len();
            let unfinished = before - start;
            // At least the length of the unfinished line, so that reads double in size and a long line takes linear time.
            let want = limits
                .chunk_bytes
                .saturating_sub(before)
                .max(unfinished)
                .max(1);
            // Read directly into the buffer to be parsed, without a copy.
            let step = self.decoder.append(&mut chunk.bytes, want)?;
            self.drop_byte_order_mark(chunk, start);
            if let DecodeStep::Damaged(reason) = &step {
                let offset = self.offset + (chunk.bytes.len() - start) as u64;
                chunk
                    .skips
                    .push(SkippedPart::damaged(self.cut.source, offset, reason));
                self.drop_cut_line(chunk, start);
            }
            if step != DecodeStep::More {
                return Ok(true);
            }
            let length = chunk.bytes.len() - start;
            // Earlier bytes contain no line feed, otherwise nothing would have been read.
            let complete = memrchr(b'\n', &chunk.bytes[before.min(chunk.bytes.len())..]).is_some();
            // Two bytes for `\r\n`, which does not count towards the line. Wait for a whole byte order mark in any case.
            let too_long = length >= (limits.document_bytes + 2).max(BYTE_ORDER_MARK.len());
            if self.in_long || complete || too_long {
                return Ok(false);
            }
        }
    }

    /// Drops a last line that damage cut off: the damage is reported, and a bad record would count the same loss twice.
    fn drop_cut_line(&self, chunk: &mut RecordChunk, start: usize) {
        let newline = memrchr(b'\n', &chunk.bytes[start..]);
        let line = newline.map_or(start, |newline| start + newline + 1);
        let rest = &chunk.bytes[line..];
        // The end of an over-long line, or a line that becomes one. How much of it is read at once must not matter.
        let is_long =
            self.in_long && newline.is_none() || rest.len() >= self.cut.limits.document_bytes + 2;
        // The last record may be whole, although it has no line feed.
        if !is_long && serde_json::from_slice::<IgnoredAny>(rest).is_err() {
            chunk.bytes.truncate(line);
        }
    }

    /// Drops a byte order mark, which is not part of the first record.
    fn drop_byte_order_mark(&mut self, chunk: &mut RecordChunk, start: usize) {
        if self.offset == 0 && chunk.bytes[start..].starts_with(BYTE_ORDER_MARK) {
            // Moves the bytes of one read, once per source. A second mark is not dropped, because `offset` is no longer 0.
            chunk.bytes.drain(start..start + BYTE_ORDER_MARK.len());
            self.offset = BYTE_ORDER_MARK.len() as u64;
        }
    }

    /// Adds the whole lines from `from` on to the chunk as a piece, and carries the rest.
    fn take_lines(&mut self, chunk: &mut RecordChunk, from: usize, ended: bool) {
        let limits = self.cut.limits;
        let whole = match memrchr(b'\n', &chunk.bytes[from..]) {
            _ if ended => chunk.bytes.len(),
            Some(newline) => from + newline + 1,
            // No line ends here, so all of it is carried.
            None => from,
        };
        // A pass over the chunk at the speed of memory. Records are numbered here, in order, so that chunks can be parsed by any thread at any time.
        // The parsed form of a line may be many times its size, so the number of lines is limited too.
        let counted = lines::count(&chunk.bytes[from..whole], MAX_LINES, limits.document_bytes);
        let cut = from + counted.end;
        if cut > from {
            self.push(chunk, from..cut, PieceContent::Lines);
            self.line += counted.lines;
            self.record += counted.records;
            chunk.records += counted.records;
            chunk.blank_lines += counted.lines - counted.records;
        }
        let rest = &chunk.bytes[cut..];
        // Then the next chunk is cut from the carried lines, without reading.
        self.has_lines = !rest.is_empty() && (ended || memchr(b'\n', rest).is_some());
        // The same limit as in `read`: content that fits exactly, with its `\r\n`, is below it.
        if !self.has_lines && chunk.bytes.len() - cut >= limits.document_bytes + 2 {
            self.begin_long(chunk, cut);
        } else {
            self.carry.extend_from_slice(&chunk.bytes[cut..]);
            chunk.bytes.truncate(cut);
        }
    }

    /// Begins an over-long line with the bytes from `from` on.
    fn begin_long(&mut self, chunk: &mut RecordChunk, from: usize) {
        self.in_long = true;
        self.long_offset = self.offset;
        self.long_hasher = LongHasher::of_record();
        let end = self.hold_back_return(chunk);
        self.push_long(chunk, from..end, RecordPart::First);
    }

    /// Takes the next part of an over-long line. Returns the offset of the bytes after it.
    fn continue_long_line(&mut self, chunk: &mut RecordChunk, start: usize, ended: bool) -> usize {
        let newline = memchr(b'\n', &chunk.bytes[start..]);
        let (part, end) = match newline {
            Some(newline) => (RecordPart::Last, start + newline + 1),
            // The last line of a file may lack a line feed.
            None if ended => (RecordPart::Last, chunk.bytes.len()),
            None => (RecordPart::Middle, self.hold_back_return(chunk)),
        };
        let next = self.push_long(chunk, start..end, part);
        if part == RecordPart::Last {
            self.in_long = false;
            self.line += 1;
            self.record += 1;
            chunk.records += 1;
        }
        next
    }

    /// Holds back a carriage return at the very end, which may belong to the line terminator. Returns the end of the other bytes.
    fn hold_back_return(&mut self, chunk: &mut RecordChunk) -> usize {
        if chunk.bytes.last() == Some(&b'\r') {
            chunk.bytes.pop();
            self.carry.push(b'\r');
        }
        chunk.bytes.len()
    }

    /// Adds a part as a piece, or drops its bytes; in that case the whole line becomes one piece at its end. Returns the new offset of the bytes
    /// after the part.
    fn push_long(
        &mut self,
        chunk: &mut RecordChunk,
        range: Range<usize>,
        part: RecordPart,
    ) -> usize {
        if self.cut.mode != ReadMode::Parse {
            self.push(chunk, range.clone(), PieceContent::Long(part));
            return range.end;
        }
        let bytes = &chunk.bytes[range.clone()];
        self.long_hasher.update(match part {
            // The terminator is not hashed, so that the same record in a file with `\r\n` has the same hash.
            RecordPart::Last => split_terminator(bytes).0,
            _ => bytes,
        });
        // Nothing of a long line is kept, so its memory is that of one read.
        chunk.bytes.drain(range.clone());
        self.offset += range.len() as u64;
        if part == RecordPart::Last {
            chunk.pieces.push(ChunkPiece {
                source: self.cut.number,
                first_record: self.record,
                first_line: self.line,
                offset: self.long_offset,
                range: range.start..range.start,
                span: PieceContent::TooLong(self.long_hasher.finish()),
            });
        }
        range.start
    }

    fn push(&mut self, chunk: &mut RecordChunk, range: Range<usize>, span: PieceContent) {
        chunk.pieces.push(ChunkPiece {
            source: self.cut.number,
            first_record: self.record,
            first_line: self.line,
            offset: self.offset,
            range: range.clone(),
            span,
        });
        self.offset += range.len() as u64;
    }
}

impl RecordCutter for LineCutter<'_> {
    /// Adds the bytes of at least one read to the chunk.
    fn fill(&mut self, chunk: &mut RecordChunk) -> Result<bool, ReadError> {
        let start = chunk.bytes.len();
        // Copies the unfinished line once per chunk. The chunk is passed on with its buffer, so the line cannot stay where it was read.
        chunk.bytes.append(&mut self.carry);
        if !self.ended && !self.has_lines {
            let read = self.read(chunk, start);
            // The carried line is lost with the error, as the rest of the source is; earlier whole lines are in earlier chunks.
            self.ended = read.inspect_err(|_| chunk.bytes.truncate(start))?;
        }
        let ended = self.ended;
        let mut from = start;
        if self.in_long {
            from = self.continue_long_line(chunk, start, ended);
        }
        // Not `else`: a long line that ended may be followed by other lines in the same read.
        if !self.in_long {
            self.take_lines(chunk, from, ended);
        }
        Ok(ended && !self.has_lines)
    }

    fn records(&self) -> u64 {
        self.record
    }

    fn disk_bytes(&self) -> u64 {
        self.decoder.disk_bytes()
    }
}
