//! Fingerprint files: fingerprints, or longer sketches, in any order, with or without ids, in chunks with checks.
//!
//! # Bytes
//!
//! All numbers are little-endian; checks are XXH3-64.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `LKFP` |
//! | 4 | 4 | version: 1 |
//! | 8 | 8 | scheme id; zero if it is unknown |
//! | 16 | 4 | ids after the fingerprints of each chunk: 0 none, 1 ids that are numbers, 2 ids that are texts |
//! | 20 | 2 | number of 64-bit words of each sketch, w, less one: zero for fingerprints |
//! | 22 | 2 | kind of the words, a number chosen by the writer of the file: zero for fingerprints |
//! | 24 | 8 | check of the bytes before |
//! | 32 | | chunks: number of sketches, n, 1 to 2^20, with n w at most 2^20 (4); zero (4); their words (8 n w); their ids, if any; check of the chunk so far, with the chunk's number as seed (8) |
//! | | | ids that are numbers: 8 n; ids that are texts: the end of each within the chunk (8 n), then the texts, UTF-8, back to back, at most 2^27 bytes, and zeros up to a multiple of 8 |
//! | | 24 | the end: zero (8); total number of fingerprints (8); check of these sixteen bytes, with the number of chunks as seed (8) |

use super::file_error::{FileError, FileFormat, expect_end, number, read_or_truncated};
use std::io::{Read, Write};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const FORMAT: FileFormat = FileFormat {
    magic: "LKFP",
    file: "fingerprint file",
    kind: "fingerprint file",
    version: 1,
};
const HEADER: usize = 32;
/// Number of words at which a chunk ends; the last chunk has fewer, and one of longer sketches may have more.
const CHUNK: usize = 1 << 16;
const MAX_CHUNK_BYTES: u64 = 1 << 20;
/// Bytes of ids at which a chunk ends, and the maximum in a chunk.
const CHUNK_TEXTS: usize = 8 << 20;
const MAX_TEXT_BYTES: u64 = 1 << 27;
/// The longest id: it fits in a chunk, whatever the chunk already holds.
const MAX_ID_BYTES: usize = MAX_TEXT_BYTES as usize - CHUNK_TEXTS;

/// Kind of the ids of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdKind {
    Nothing,
    Numbers,
    Texts,
}

impl IdKind {
    fn of_flags(flags: u64) -> Option<Self> {
        [Self::Nothing, Self::Numbers, Self::Texts]
            .into_iter()
            .find(|&id_kind| id_kind as u64 == flags)
    }
}

/// Kind of the sketches of a file: fingerprints, or longer ones.
///
/// ```
/// use lookalike_hamming::{FingerprintReader, FingerprintWriter, SketchWords};
///
/// // Sketches of three words, which the writer calls kind 1.
/// let sketch = SketchWords { words: 3, kind: 1 };
/// let mut writer = FingerprintWriter::new(Vec::new(), 7, sketch, true)?;
/// writer.push_sketch(&[1, 2, 3], "a.html")?;
/// writer.push_sketch(&[1, 2, 4], "b.html")?;
/// let bytes = writer.finish()?;
/// let mut reader = FingerprintReader::new(bytes.as_slice())?;
/// assert_eq!(reader.sketch(), sketch);
/// let chunk = reader.next_chunk()?.expect("one chunk");
/// assert_eq!((chunk.fingerprints, chunk.texts), ([1, 2, 3, 1, 2, 4].as_slice(), "a.htmlb.html"));
/// # Ok::<(), lookalike_hamming::FileError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchWords {
    /// Number of 64-bit words of each sketch, 1 to 65,536.
    pub words: usize,
    /// Number by which the writer identifies the kind of the words; zero for fingerprints.
    pub kind: u16,
}

impl SketchWords {
    /// Fingerprints of 64 bits.
    pub const FINGERPRINT: Self = Self { words: 1, kind: 0 };
}

/// Writer of a fingerprint file.
///
/// ```
/// use lookalike_hamming::{FingerprintReader, FingerprintWriter};
///
/// let scheme = 0x5eed; // names how the fingerprints were made
/// let mut writer = FingerprintWriter::with_ids(Vec::new(), scheme)?;
/// writer.push(7, 42)?;
/// let bytes = writer.finish()?;
/// let mut reader = FingerprintReader::new(bytes.as_slice())?;
/// assert_eq!(reader.scheme(), scheme);
/// let chunk = reader.next_chunk()?.expect("one chunk");
/// assert_eq!((chunk.fingerprints, chunk.ids), ([7].as_slice(), [42].as_slice()));
/// # Ok::<(), lookalike_hamming::FileError>(())
/// ```
#[derive(Debug)]
pub struct FingerprintWriter<W: Write> {
    out: W,
    id_kind: IdKind,
    words: usize,
    fingerprints: Vec<u64>,
    /// Ids that are numbers, or the ends of ids that are texts.
    ids: Vec<u64>,
    texts: String,
    chunks: u64,
    count: u64,
}

impl<W: Write> FingerprintWriter<W> {
    /// Begins a file with a number as the id of each fingerprint.
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    pub fn with_ids(out: W, scheme: u64) -> Result<Self, FileError> {
        Self::begin(out, scheme, IdKind::Numbers, SketchWords::FINGERPRINT)
    }

    /// Begins a file of fingerprints or longer sketches, with a text as the id of each or without ids; see [`FingerprintWriter::push_sketch`].
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    ///
    /// # Panics
    ///
    /// Panics if a sketch has no words, or more than 65,536.
    pub fn new(
        out: W,
        scheme: u64,
        sketch: SketchWords,
        with_texts: bool,
    ) -> Result<Self, FileError> {
        let id_kind = match with_texts {
            true => IdKind::Texts,
            false => IdKind::Nothing,
        };
        Self::begin(out, scheme, id_kind, sketch)
    }

    fn begin(
        mut out: W,
        scheme: u64,
        id_kind: IdKind,
        sketch: SketchWords,
    ) -> Result<Self, FileError> {
        let SketchWords { words, kind } = sketch;
        let more = words
            .checked_sub(1)
            .and_then(|more| u16::try_from(more).ok());
        let more = more.expect("a sketch has 1 to 65,536 words");
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&FORMAT.start());
        header.extend_from_slice(&scheme.to_le_bytes());
        header.extend_from_slice(&(id_kind as u32).to_le_bytes());
        header.extend_from_slice(&more.to_le_bytes());
        header.extend_from_slice(&kind.to_le_bytes());
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        out.write_all(&header)?;
        let (fingerprints, ids) = (Vec::new(), Vec::new());
        Ok(Self {
            out,
            id_kind,
            words,
            fingerprints,
            ids,
            texts: String::new(),
            chunks: 0,
            count: 0,
        })
    }

    /// Adds a fingerprint and its id, a number, which is written as a text if the ids of the file are texts, and dropped if the file has no ids.
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    ///
    /// # Panics
    ///
    /// Panics if the file was begun for sketches of more than one word.
    pub fn push(&mut self, fingerprint: u64, id: u64) -> Result<(), FileError> {
        self.check_words(&[fingerprint]);
        match self.id_kind {
            IdKind::Nothing => {}
            IdKind::Numbers => self.ids.push(id),
            IdKind::Texts => return self.push_sketch(&[fingerprint], &id.to_string()),
        }
        self.add(&[fingerprint])
    }

    /// Adds a sketch, with the number of words that the file was begun for, and its id, a text, which is dropped if the file has no
    /// ids.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::NumberIds`] if the ids of the file are numbers, [`FileError::LongId`], and the errors of the output.
    ///
    /// # Panics
    ///
    /// Panics if the sketch has another number of words.
    pub fn push_sketch(&mut self, sketch: &[u64], id: &str) -> Result<(), FileError> {
        self.check_words(sketch);
        match self.id_kind {
            IdKind::Nothing => {}
            IdKind::Numbers => return Err(FileError::NumberIds),
            IdKind::Texts if id.len() > MAX_ID_BYTES => return Err(FileError::LongId(id.len())),
            IdKind::Texts => {
                self.texts.push_str(id);
                self.ids.push(self.texts.len() as u64);
            }
        }
        self.add(sketch)
    }

    fn check_words(&self, sketch: &[u64]) {
        assert_eq!(sketch.len(), self.words, "words of a sketch");
    }

    fn add(&mut self, sketch: &[u64]) -> Result<(), FileError> {
        // The id was added before. Nothing fails between the two, so they stay in step.
        self.fingerprints.extend_from_slice(sketch);
        // Long ids end a chunk sooner, because its reader holds it in memory.
        if self.fingerprints.len() >= CHUNK || self.texts.len() >= CHUNK_TEXTS {
            self.end_chunk()
        } else {
            Ok(())
        }
    }

    fn end_chunk(&mut self) -> Result<(), FileError> {
        let count = (self.fingerprints.len() / self.words) as u64;
        // Eight bytes: the number, and the zero after it.
        let mut chunk = count.to_le_bytes().to_vec();
        let numbers = self.fingerprints.iter().chain(&self.ids);
        chunk.extend(numbers.flat_map(|number| number.to_le_bytes()));
        chunk.extend_from_slice(self.texts.as_bytes());
        chunk.resize(chunk.len().next_multiple_of(8), 0);
        // Seeded with the number of the chunk, so that swapped chunks fail.
        let check = xxh3_64_with_seed(&chunk, self.chunks);
        chunk.extend_from_slice(&check.to_le_bytes());
        self.out.write_all(&chunk)?;
        self.chunks += 1;
        self.count += count;
        self.fingerprints.clear();
        self.ids.clear();
        self.texts.clear();
        Ok(())
    }

    /// Writes the end, flushes the output, and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    pub fn finish(mut self) -> Result<W, FileError> {
        if !self.fingerprints.is_empty() {
            self.end_chunk()?;
        }
        // An empty chunk and the total number, so that a file that lost whole chunks does not pass.
        let mut end = [0_u64, self.count].map(u64::to_le_bytes).concat();
        let check = xxh3_64_with_seed(&end, self.chunks);
        end.extend_from_slice(&check.to_le_bytes());
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reader of a fingerprint file, in one pass.
#[derive(Debug)]
pub struct FingerprintReader<R: Read> {
    input: R,
    scheme: u64,
    id_kind: IdKind,
    sketch: SketchWords,
    offset: u64,
    chunks: u64,
    count: u64,
    finished: bool,
    // Buffers of the current chunk.
    bytes: Vec<u8>,
    fingerprints: Vec<u64>,
    ids: Vec<u64>,
}

/// Some fingerprints of a file, with their ids.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FingerprintChunk<'a> {
    /// The fingerprints, in the order of the file; for longer sketches their words, one sketch after another.
    pub fingerprints: &'a [u64],
    /// Their ids if these are numbers, else empty.
    pub ids: &'a [u64],
    /// Their ids if these are texts, back to back, else empty.
    pub texts: &'a str,
    /// End of each of the texts.
    pub ends: &'a [u64],
}

impl<R: Read> FingerprintReader<R> {
    /// Reads the header of a file of fingerprints or of longer sketches; [`FingerprintReader::sketch`] tells which.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if it is not that of a fingerprint file of a known version.
    pub fn new(mut input: R) -> Result<Self, FileError> {
        let mut header = [0; HEADER];
        read_or_truncated(&mut input, &mut header, 0)?;
        FORMAT.check(&header)?;
        let what = "the header does not match its checksum";
        let id_kind = IdKind::of_flags(number(&header[16..20]));
        let id_kind = id_kind.ok_or(FileError::Damaged { offset: 0, what })?;
        Ok(Self {
            input,
            scheme: number(&header[8..16]),
            id_kind,
            sketch: SketchWords {
                words: number(&header[20..22]) as usize + 1,
                kind: number(&header[22..24]) as u16,
            },
            offset: HEADER as u64,
            chunks: 0,
            count: 0,
            finished: false,
            bytes: Vec::new(),
            fingerprints: Vec::new(),
            ids: Vec::new(),
        })
    }

    /// Returns the scheme of the fingerprints.
    pub fn scheme(&self) -> u64 {
        self.scheme
    }

    /// Returns the number and the kind of the words of each sketch.
    pub fn sketch(&self) -> SketchWords {
        self.sketch
    }

    /// Returns true if each fingerprint has an id.
    pub fn has_ids(&self) -> bool {
        self.id_kind != IdKind::Nothing
    }

    /// Returns true if each fingerprint has an id that is a text.
    pub fn has_texts(&self) -> bool {
        self.id_kind == IdKind::Texts
    }

    /// Returns the number of bytes read, which is the position of the next chunk.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next fingerprints. Returns `None` after the last, once the end of the file has been checked, too.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the chunk is damaged or cut off, or reading fails.
    pub fn next_chunk(&mut self) -> Result<Option<FingerprintChunk<'_>>, FileError> {
        if self.finished {
            return Ok(None);
        }
        let start = self.offset;
        let damaged = |what| FileError::Damaged {
            offset: start,
            what,
        };
        self.bytes.clear();
        self.read(8)?;
        let count = number(&self.bytes);
        // Bound the count before allocating memory for it, because its check comes at the end of the chunk.
        let words = self.sketch.words as u64;
        if count > MAX_CHUNK_BYTES || count * words > MAX_CHUNK_BYTES {
            return Err(damaged("the chunk has an impossible size"));
        }
        // The end has one number instead, that of all fingerprints.
        let numbers = if count == 0 {
            1
        } else {
            count * (words + u64::from(self.has_ids()))
        };
        // At most 16 MiB, because the count was bounded: a damaged file cannot ask for more.
        self.read(8 * numbers as usize)?;
        let texts = if count > 0 && self.has_texts() {
            // The end of the last text is the length of all texts.
            let length = number(&self.bytes[self.bytes.len() - 8..]);
            if length > MAX_TEXT_BYTES {
                return Err(damaged("the ids of the chunk have an impossible size"));
            }
            length as usize
        } else {
            0
        };
        self.read(texts.next_multiple_of(8) + 8)?;
        let (body, check) = self.bytes.split_at(self.bytes.len() - 8);
        // The sizes above were used unchecked, but only to know how much to read.
        if xxh3_64_with_seed(body, self.chunks) != number(check) {
            return Err(damaged("the chunk does not match its checksum"));
        }
        let mut numbers = body[8..].chunks_exact(8).map(number);
        if count == 0 {
            self.finished = true;
            if numbers.next() != Some(self.count) {
                return Err(damaged("fingerprints are missing"));
            }
            expect_end(&mut self.input, self.offset)?;
            return Ok(None);
        }
        self.fingerprints.clear();
        self.fingerprints
            .extend(numbers.by_ref().take((count * words) as usize));
        let ids = if self.has_ids() { count as usize } else { 0 };
        self.ids.clear();
        self.ids.extend(numbers.by_ref().take(ids));
        self.chunks += 1;
        self.count += count;
        let texts = &self.bytes[8 + 8 * (self.fingerprints.len() + ids)..][..texts];
        let texts = std::str::from_utf8(texts).map_err(|_| damaged("an id is not UTF-8"))?;
        let (ids, ends): (&[u64], &[u64]) = match self.id_kind {
            IdKind::Texts => (&[], &self.ids),
            _ => (&self.ids, &[]),
        };
        let mut start = 0;
        let whole = ends.iter().all(|&end| {
            // A position beyond the end is never a boundary.
            let fits = start <= end && texts.is_char_boundary(end as usize);
            start = end;
            fits
        });
        if !whole {
            return Err(damaged("an id has an impossible end"));
        }
        Ok(Some(FingerprintChunk {
            fingerprints: &self.fingerprints,
            ids,
            texts,
            ends,
        }))
    }

    /// Appends `count` bytes to those of the chunk.
    fn read(&mut self, count: usize) -> Result<(), FileError> {
        let from = self.bytes.len();
        self.bytes.resize(from + count, 0);
        read_or_truncated(&mut self.input, &mut self.bytes[from..], self.offset)?;
        self.offset += count as u64;
        Ok(())
    }
}
