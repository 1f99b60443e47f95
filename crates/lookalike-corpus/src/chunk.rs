//! The ordered stream of chunks: sources decompressed and cut between records, in bounded memory.
//!
//! A chunk is made of pieces: lines of one JSONL source, or one whole file. Small files share a
//! chunk. A line longer than the limit is never held: the parser's reader drops its bytes, the raw
//! reader passes them on part by part; both count it as one record.

use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::decode::{Decoder, Step};
use crate::error::ReadError;
use crate::lines;
use crate::options::{Compression, InputOptions};
use crate::raw::Part;
use crate::record::BadKind;
use crate::source::{Inputs, Skip, SkipKind, Source};

/// Pieces in a chunk at most, so that a million empty files do not make one chunk.
const MAX_PIECES: usize = 4096;

/// Whole files are decompressed in steps of this size; the ratio is looked at after each.
const FILE_STEP_BYTES: usize = 1 << 20;

/// Below this output no ratio is held against a file.
const BOMB_FLOOR_BYTES: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A run of whole records, to be given to a [`crate::Parser`].
#[derive(Debug, Default)]
pub struct Chunk {
    /// Number of the chunk in its stream, from 0.
    pub number: u64,
    /// The decompressed bytes.
    pub bytes: Vec<u8>,
    /// How many records a parser will visit, bad ones included.
    pub records: u64,
    /// Blank lines among them, which are no records.
    pub blank_lines: u64,
    /// Bytes on disk that were consumed since the chunk before; they add up to
    /// [`Inputs::total_bytes`] unless something is damaged or too long.
    pub disk_bytes: u64,
    /// Losses met while reading it.
    pub skips: Vec<Skip>,
    pub(crate) pieces: Vec<Piece>,
}

/// A part of a chunk that comes from one source.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) source: u32,
    /// Number of its first record in the source.
    pub(crate) first_record: u64,
    /// Number of its first line in the source, from 0.
    pub(crate) first_line: u64,
    /// Where it begins in the decompressed source.
    pub(crate) offset: u64,
    /// Where it lies in the chunk.
    pub(crate) range: Range<usize>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Span {
    /// Whole lines.
    Lines,
    /// A part of an over-long line; for the parser only the first, without bytes.
    Long(Part),
    /// A whole file.
    File(FileState),
}

#[derive(Debug)]
pub(crate) enum FileState {
    /// All its bytes are here.
    Whole,
    /// Larger than the limit; its bytes are not here.
    TooLong,
    /// Not to be decompressed; its bytes are not here.
    Bad(BadKind, String),
    /// Left unopened, for the raw reader.
    Unread,
}

/// What becomes of over-long lines and of whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For parsing: files are read, over-long lines dropped.
    Parse,
    /// For copying: files are left alone, over-long lines passed on.
    Copy,
}

/// Reads all sources in order; see [`Inputs::chunks`]. Ends after the first error.
pub struct ChunkReader<'a> {
    inputs: &'a Inputs,
    limits: Limits,
    mode: Mode,
    next_source: usize,
    open: Option<OpenLines<'a>>,
    next_number: u64,
    failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    chunk_bytes: usize,
    document_bytes: usize,
    decoded_ratio: u64,
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(inputs: &'a Inputs, options: &InputOptions) -> ChunkReader<'a> {
        Self::with_mode(inputs, options, Mode::Parse)
    }

    pub(crate) fn with_mode(
        inputs: &'a Inputs,
        options: &InputOptions,
        mode: Mode,
    ) -> ChunkReader<'a> {
        ChunkReader {
            inputs,
            limits: Limits {
                chunk_bytes: options.chunk_bytes.max(1),
                document_bytes: max_document_bytes(options),
                decoded_ratio: options.max_decoded_ratio,
            },
            mode,
            next_source: 0,
            open: None,
            next_number: 0,
            failed: false,
        }
    }

    /// Adds to the chunk until it is large enough or the inputs end.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), ReadError> {
        while chunk.bytes.len() < self.limits.chunk_bytes && chunk.pieces.len() < MAX_PIECES {
            if let Some(open) = &mut self.open {
                if open.fill(chunk, self.limits, self.mode)? {
                    self.open = None;
                }
            } else if self.next_source < self.inputs.sources.len() {
                self.start_source(chunk)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn start_source(&mut self, chunk: &mut Chunk) -> Result<(), ReadError> {
        let number = self.next_source as u32;
        let source = &self.inputs.sources[self.next_source];
        self.next_source += 1;
        if !source.is_document() {
            self.open = Some(OpenLines::new(number, source)?);
            return Ok(());
        }
        let start = chunk.bytes.len();
        let state = match self.mode {
            Mode::Copy => FileState::Unread,
            Mode::Parse => read_file(source, self.limits, chunk)?,
        };
        chunk.records += 1;
        chunk.pieces.push(Piece {
            source: number,
            first_record: 0,
            first_line: 0,
            offset: 0,
            range: start..chunk.bytes.len(),
            span: Span::File(state),
        });
        Ok(())
    }
}

impl Iterator for ChunkReader<'_> {
    type Item = Result<Chunk, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut chunk = Chunk {
            number: self.next_number,
            ..Chunk::default()
        };
        if let Err(error) = self.fill(&mut chunk) {
            self.failed = true;
            return Some(Err(error));
        }
        if chunk.pieces.is_empty() && chunk.skips.is_empty() && chunk.disk_bytes == 0 {
            return None;
        }
        self.next_number += 1;
        Some(Ok(chunk))
    }
}

/// The limit as a length in memory, with room to spare for the reader's arithmetic.
pub(crate) fn max_document_bytes(options: &InputOptions) -> usize {
    usize::try_from(options.max_document_bytes)
        .unwrap_or(usize::MAX)
        .min(isize::MAX as usize / 2)
}

/// Appends a whole file to the chunk, or says why its bytes are not there.
fn read_file(source: &Source, limits: Limits, chunk: &mut Chunk) -> Result<FileState, ReadError> {
    let start = chunk.bytes.len();
    let mut decoder = Decoder::open(source)?;
    let step = file_step(source, limits);
    let state = loop {
        let outcome = decoder.append(&mut chunk.bytes, step)?;
        let length = chunk.bytes.len() - start;
        if source.compression != Compression::None
            && length > BOMB_FLOOR_BYTES
            && length as u64 > source.bytes.saturating_mul(limits.decoded_ratio)
        {
            break bomb(source, length, limits);
        }
        if length > limits.document_bytes {
            break FileState::TooLong;
        }
        match outcome {
            Step::More => {}
            Step::End => break FileState::Whole,
            Step::Damaged(reason) => break damaged(source, length as u64, reason, chunk),
        }
    };
    if !matches!(state, FileState::Whole) {
        chunk.bytes.truncate(start);
    }
    chunk.disk_bytes += decoder.disk_bytes();
    Ok(state)
}

/// How much is asked for at once: a plain file whole, with one byte more to see its end.
fn file_step(source: &Source, limits: Limits) -> usize {
    let most = limits.document_bytes.saturating_add(1);
    match source.compression {
        Compression::None => usize::try_from(source.bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
            .min(most),
        Compression::Gzip | Compression::Zstd => FILE_STEP_BYTES.min(most),
    }
}

fn bomb(source: &Source, length: usize, limits: Limits) -> FileState {
    FileState::Bad(
        BadKind::Bomb,
        format!(
            "{} bytes on disk grow to more than {length}, over {} times as many",
            source.bytes, limits.decoded_ratio
        ),
    )
}

fn damaged(source: &Source, offset: u64, reason: String, chunk: &mut Chunk) -> FileState {
    chunk.skips.push(damage(source, offset, &reason));
    FileState::Bad(
        BadKind::Damaged,
        format!("compressed data ends early or is corrupt: {reason}"),
    )
}

fn damage(source: &Source, offset: u64, reason: &str) -> Skip {
    Skip {
        name: source.name().into_owned(),
        reason: format!("compressed data ends early or is corrupt: {reason}"),
        kind: SkipKind::Damaged,
        offset: Some(offset),
    }
}

/// A JSONL source that is being read.
struct OpenLines<'a> {
    number: u32,
    source: &'a Source,
    decoder: Decoder<'a>,
    /// The beginning of a line that did not fit into the chunk before.
    carry: Vec<u8>,
    /// Where `carry` begins in the decompressed source.
    offset: u64,
    record: u64,
    line: u64,
    /// Whether `carry` goes on with an over-long line.
    in_long: bool,
    counted_disk_bytes: u64,
}

impl<'a> OpenLines<'a> {
    fn new(number: u32, source: &'a Source) -> Result<OpenLines<'a>, ReadError> {
        Ok(OpenLines {
            number,
            source,
            decoder: Decoder::open(source)?,
            carry: Vec::new(),
            offset: 0,
            record: 0,
            line: 0,
            in_long: false,
            counted_disk_bytes: 0,
        })
    }

    /// Adds at least one read's worth to the chunk; says whether the source is at its end.
    fn fill(&mut self, chunk: &mut Chunk, limits: Limits, mode: Mode) -> Result<bool, ReadError> {
        let start = chunk.bytes.len();
        chunk.bytes.append(&mut self.carry);
        let ended = self.read(chunk, start, limits)?;
        let disk_bytes = self.decoder.disk_bytes();
        chunk.disk_bytes += disk_bytes - self.counted_disk_bytes;
        self.counted_disk_bytes = disk_bytes;
        let mut from = start;
        if self.in_long {
            from = self.go_on_long(chunk, start, ended, mode);
        }
        if !self.in_long {
            self.take_lines(chunk, from, ended, limits, mode);
        }
        Ok(ended)
    }

    /// Reads until there is enough, and a line that ends or is too long for one.
    fn read(&mut self, chunk: &mut Chunk, start: usize, limits: Limits) -> Result<bool, ReadError> {
        loop {
            let before = chunk.bytes.len();
            let unfinished = before - start;
            let want = limits
                .chunk_bytes
                .saturating_sub(before)
                .max(unfinished)
                .max(1);
            let step = self.decoder.append(&mut chunk.bytes, want)?;
            self.drop_byte_order_mark(chunk, start);
            if let Step::Damaged(reason) = &step {
                let offset = self.offset + (chunk.bytes.len() - start) as u64;
                chunk.skips.push(damage(self.source, offset, reason));
            }
            if step != Step::More {
                return Ok(true);
            }
            let length = chunk.bytes.len() - start;
            let complete = memrchr(b'\n', &chunk.bytes[before.min(chunk.bytes.len())..]).is_some();
            let too_long = length >= (limits.document_bytes + 2).max(BYTE_ORDER_MARK.len());
            if self.in_long || complete || too_long {
                return Ok(false);
            }
        }
    }

    /// The mark is no part of the first record.
    fn drop_byte_order_mark(&mut self, chunk: &mut Chunk, start: usize) {
        if self.offset == 0 && chunk.bytes[start..].starts_with(BYTE_ORDER_MARK) {
            chunk.bytes.drain(start..start + BYTE_ORDER_MARK.len());
            self.offset = BYTE_ORDER_MARK.len() as u64;
        }
    }

    /// Makes a piece of the whole lines from `from` on, and keeps the rest for later.
    fn take_lines(
        &mut self,
        chunk: &mut Chunk,
        from: usize,
        ended: bool,
        limits: Limits,
        mode: Mode,
    ) {
        let cut = match memrchr(b'\n', &chunk.bytes[from..]) {
            _ if ended => chunk.bytes.len(),
            Some(newline) => from + newline + 1,
            None => from,
        };
        if cut > from {
            let (lines, records) = lines::count(&chunk.bytes[from..cut], limits.document_bytes);
            self.push(chunk, from..cut, Span::Lines);
            self.line += lines;
            self.record += records;
            chunk.records += records;
            chunk.blank_lines += lines - records;
        }
        if chunk.bytes.len() - cut >= limits.document_bytes + 2 {
            self.begin_long(chunk, cut, mode);
        } else {
            self.carry.extend_from_slice(&chunk.bytes[cut..]);
            chunk.bytes.truncate(cut);
        }
    }

    /// The bytes from `from` on begin a line that is too long, whatever follows.
    fn begin_long(&mut self, chunk: &mut Chunk, from: usize, mode: Mode) {
        self.in_long = true;
        chunk.records += 1;
        let end = self.hold_back_return(chunk);
        self.push_long(chunk, from..end, Part::First, mode);
        self.record += 1;
    }

    /// Takes the next part of an over-long line; says where other lines begin.
    fn go_on_long(&mut self, chunk: &mut Chunk, start: usize, ended: bool, mode: Mode) -> usize {
        let newline = memchr(b'\n', &chunk.bytes[start..]);
        let (part, end) = match newline {
            Some(newline) => (Part::Last, start + newline + 1),
            None if ended => (Part::Last, chunk.bytes.len()),
            None => (Part::Middle, self.hold_back_return(chunk)),
        };
        self.in_long = part == Part::Middle;
        self.line += u64::from(!self.in_long);
        self.record -= 1;
        let next = self.push_long(chunk, start..end, part, mode);
        self.record += 1;
        next
    }

    /// A carriage return at the very end may belong to the terminator: it waits for what follows.
    fn hold_back_return(&mut self, chunk: &mut Chunk) -> usize {
        if chunk.bytes.last() == Some(&b'\r') {
            chunk.bytes.pop();
            self.carry.push(b'\r');
        }
        chunk.bytes.len()
    }

    /// Makes a piece of a part, or drops its bytes; says where the bytes after it now begin.
    fn push_long(
        &mut self,
        chunk: &mut Chunk,
        range: Range<usize>,
        part: Part,
        mode: Mode,
    ) -> usize {
        let length = range.len();
        let kept = if mode == Mode::Copy {
            range
        } else {
            chunk.bytes.drain(range.clone());
            range.start..range.start
        };
        let next = kept.end;
        if mode == Mode::Copy || part == Part::First {
            self.push(chunk, kept.clone(), Span::Long(part));
            self.offset -= kept.len() as u64;
        }
        self.offset += length as u64;
        next
    }

    fn push(&mut self, chunk: &mut Chunk, range: Range<usize>, span: Span) {
        chunk.pieces.push(Piece {
            source: self.number,
            first_record: self.record,
            first_line: self.line,
            offset: self.offset,
            range: range.clone(),
            span,
        });
        self.offset += range.len() as u64;
    }
}
