//! Collections of fingerprints in any of their formats, read once from front to back.
//!
//! Stands before every job over fingerprints. What a file is follows from its first bytes, and only for raw
//! numbers from its name:
//!
//! | format | begins with | ids | scheme |
//! |---|---|---|---|
//! | fingerprint file | `LKFP` | texts, numbers, or none | yes |
//! | archive (Manku et al. 2007, section 3.2) | `LKAR` | none | yes |
//! | raw little-endian numbers | named `.u64`, `.u32` or `.u128` | none | no |
//! | Parquet table with a column `fingerprint` | `PAR1` | texts of a column `id`, or none | no |
//! | JSON Lines `{"id":..,"fingerprint":..}` | anything else | texts, or none | no |
//!
//! Each of them may be packed by gzip or zstd, but for Parquet, which must be a file; `-` is standard input, and `u64:-` raw numbers there.
//! Fingerprints have 64 bits, or 32 or 128, of which archives hold none: those of one collection are of one width.
//! `write` writes all of them.
//!
//! Super-shingles and signatures of min-hash, which are longer, have readers and writers of their own: `sketch_file`, `sketch_writer`.

mod ascending;
pub(crate) mod error;
mod ids;
mod json_lines;
mod open;
mod pair_file;
mod raw;
mod several;
mod sized_fingerprint;
mod sketch_file;
mod sketch_kind;
mod sketch_shape;
mod sketch_writer;
mod source;
mod table;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::scheme::SchemeId;
use lookalike_hamming::{FingerprintArchiveReader, FingerprintReader, Word};

pub use ascending::ArchiveScratch;
pub use error::CodesError;
pub use ids::{FingerprintIds, FingerprintName};
use json_lines::JsonLines;
use open::{FingerprintStream, OpenedFile};
pub(crate) use pair_file::{ListedId, ListedPair, PairFile, PairFileError};
pub(crate) use raw::RawReader;
pub use several::CodeFiles;
pub use sized_fingerprint::{ParseSizedFingerprintError, SizedFingerprint};
use sized_fingerprint::{bits_of_header, extend_codes};
pub use sketch_file::{SketchFile, SketchRows};
pub use sketch_kind::SketchKind;
pub use sketch_shape::{PlaceKind, SketchShape};
pub(crate) use sketch_writer::{SketchWriter, write_sketch};
pub use source::FingerprintSource;
use table::TableReader;
pub(crate) use write::write_code;
pub use write::{CodeFormat, CodeImport, CodeWriter, FileBegin, ImportSummary};

use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::skipped::{SkippedRow, SkippedRows};

/// Fingerprints and their ids, in the order of their file.
#[derive(Clone, Debug, Default)]
pub struct FingerprintFile<W = u64> {
    /// The fingerprints.
    pub codes: Vec<W>,
    /// Their ids.
    pub ids: FingerprintIds,
}

impl<W: Word> FingerprintFile<W> {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.ids.clear();
    }

    /// Keeps those fingerprints that `keep` is true of, with their ids.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(W) -> bool) {
        let kept: Vec<bool> = self.codes.iter().map(|&code| keep(code)).collect();
        self.ids.retain(&kept);
        let mut kept = kept.into_iter();
        self.codes.retain(|_| kept.next().unwrap_or(false));
    }

    /// Bytes of the fingerprints and ids.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.codes.as_slice()) as u64 + self.ids.bytes()
    }
}

/// An open collection; see the module's header.
pub struct CodeFile {
    name: String,
    format: FingerprintFormat,
    /// Width of the fingerprints, where it is known before they are read.
    bits: Option<u32>,
    scheme: Option<SchemeId>,
    bytes: Option<u64>,
    read: Arc<AtomicU64>,
    count: u64,
    without: u64,
    skipped: SkippedRows,
    strict: bool,
}

enum FingerprintFormat {
    Fingerprints(FingerprintReader<FingerprintStream>),
    Archive(FingerprintArchiveReader<FingerprintStream>),
    Raw(RawReader),
    Lines(JsonLines),
    Table(Box<TableReader>),
}

/// Counts of what was read of a collection.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CodesSummary {
    /// Its name.
    pub name: String,
    /// Fingerprints read.
    pub fingerprints: u64,
    /// Records whose fingerprint is null: texts without features, near to nothing.
    pub without_features: u64,
    /// Id of the scheme, where the format keeps it.
    pub scheme_id: Option<String>,
    /// Lines that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

impl fmt::Debug for CodeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CodeFile");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl CodeFile {
    /// Opens a collection and reads its header. With `strict`, the first line that cannot be read is an error.
    ///
    /// # Errors
    /// [`CodesError`]: no such file, or a header that is damaged or of another version.
    pub fn open(source: &FingerprintSource, strict: bool) -> Result<Self, CodesError> {
        Self::open_counted(source, strict, Arc::default())
    }

    /// Does the same, and adds the bytes read to a counter of the caller's.
    fn open_counted(
        source: &FingerprintSource,
        strict: bool,
        read: Arc<AtomicU64>,
    ) -> Result<Self, CodesError> {
        let OpenedFile {
            name,
            input,
            head,
            bytes,
        } = open::open(source, Arc::clone(&read))?;
        let wrong = CodesError::of(&name);
        let (format, bits, scheme) = match head {
            Some([b'L', b'K', b'F', b'P']) => {
                let reader = FingerprintReader::of_sketches(input).map_err(wrong)?;
                let Some(bits) = bits_of_header(reader.sketch()) else {
                    return Err(match SketchShape::of_header(reader.sketch()) {
                        Some(shape) => CodesError::Places { name, shape },
                        None => CodesError::UnknownShape { name },
                    });
                };
                let scheme = known(reader.scheme());
                (FingerprintFormat::Fingerprints(reader), Some(bits), scheme)
            }
            Some([b'L', b'K', b'A', b'R']) => {
                let reader = FingerprintArchiveReader::new(input).map_err(wrong)?;
                let scheme = known(reader.scheme());
                (FingerprintFormat::Archive(reader), Some(64), scheme)
            }
            Some([b'L', b'K', b'I', b'X' | b'S']) => return Err(CodesError::Index { name }),
            Some([b'P', b'A', b'R', b'1']) => {
                let table = TableReader::open(source.path());
                let table = table.map_err(|source| CodesError::table(&name, source))?;
                let bits = table.bits();
                (FingerprintFormat::Table(Box::new(table)), bits, None)
            }
            None => match source.raw_shape() {
                Some(shape) => return Err(CodesError::Places { name, shape }),
                None => {
                    let raw = FingerprintFormat::Raw(RawReader::new(input));
                    (raw, source.raw_bits(), None)
                }
            },
            Some(_) => {
                let peeked = JsonLines::peek_bits(input);
                let (bits, input) = peeked.map_err(|error| wrong(error.into()))?;
                (FingerprintFormat::Lines(JsonLines::new(input)), bits, None)
            }
        };
        Ok(Self {
            name,
            format,
            bits,
            scheme,
            bytes,
            read,
            count: 0,
            without: 0,
            skipped: SkippedRows::default(),
            strict,
        })
    }

    /// The name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Width of the fingerprints: 32, 64 or 128. Lines and tables tell it by their first fingerprint, and not at all without one.
    pub fn bits(&self) -> Option<u32> {
        self.bits
    }

    /// The scheme, where the format keeps it.
    pub fn scheme(&self) -> Option<SchemeId> {
        self.scheme
    }

    /// Bytes of the file as stored; none for standard input.
    pub fn total_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Counts the bytes read so far, as stored; may be read while the file is in use.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// About how many fingerprints there are, as far as the size of the file tells.
    pub fn expected(&self) -> Option<u64> {
        // Typical bytes of one as stored, for reservations and plans: nothing relies on them.
        let each = match &self.format {
            FingerprintFormat::Fingerprints(reader) if reader.has_ids() => 16,
            FingerprintFormat::Archive(_) => 5,
            FingerprintFormat::Lines(_) => 40,
            _ => 8,
        };
        Some(self.bytes? / each)
    }

    /// Appends fingerprints until they and their ids take `bytes` or the file ends; false at the end.
    ///
    /// A chunk of the file is never cut, so there may be some mebibytes more (16 at most).
    ///
    /// # Errors
    /// [`CodesError`]: the fingerprints have another width, the file is damaged or cut off, or holds no line that can be read.
    pub fn fill<W: Word>(
        &mut self,
        out: &mut FingerprintFile<W>,
        bytes: u64,
    ) -> Result<bool, CodesError> {
        if let Some(found) = self.bits.filter(|&bits| bits != W::BITS) {
            return Err(CodesError::Width {
                name: self.name.clone(),
                found,
                wanted: W::BITS,
            });
        }
        let before = out.codes.len();
        let mut more = true;
        while more && out.bytes() < bytes {
            more = match &mut self.format {
                FingerprintFormat::Fingerprints(reader) => next_chunk(reader, out),
                FingerprintFormat::Archive(reader) => {
                    let mut words = Vec::new();
                    let more = reader.read_block(&mut words);
                    extend_codes(&mut out.codes, &words);
                    more
                }
                FingerprintFormat::Raw(reader) => reader.read(&mut out.codes),
                FingerprintFormat::Lines(reader) => {
                    let Self { skipped, .. } = self;
                    let ended = reader.read(out, &mut self.without, |reason| {
                        let first = format!("{}, {reason}", self.name);
                        if self.strict {
                            return Err(first);
                        }
                        skipped.add("malformed", first);
                        Ok(())
                    });
                    match ended {
                        Ok(more) => Ok(more),
                        Err(json_lines::StopReason::Strict(line)) => {
                            return Err(CodesError::Strict(line));
                        }
                        Err(json_lines::StopReason::Io(error)) => Err(error.into()),
                    }
                }
                FingerprintFormat::Table(table) => {
                    let Self { skipped, .. } = self;
                    let read = table.read(out, &mut self.without, |reason| {
                        let first = format!("{}, {reason}", self.name);
                        if self.strict {
                            return Err(first);
                        }
                        skipped.add("malformed", first);
                        Ok(())
                    });
                    match read {
                        Ok(Ok(more)) => Ok(more),
                        Ok(Err(row)) => return Err(CodesError::Strict(row)),
                        Err(source) => return Err(CodesError::table(&self.name, source)),
                    }
                }
            }
            .map_err(CodesError::of(&self.name))?;
        }
        self.count += (out.codes.len() - before) as u64;
        if !more && self.count + self.without == 0 {
            self.ensure_some_line()?;
        }
        Ok(more)
    }

    /// A file whose every line is wrong is not a collection with wrong lines but something else.
    fn ensure_some_line(&mut self) -> Result<(), CodesError> {
        // What was skipped becomes the error, not a loss besides.
        let rows = std::mem::take(&mut self.skipped).finish();
        match rows.into_iter().next() {
            Some(row) => Err(CodesError::Unknown { first: row.first }),
            None => Ok(()),
        }
    }

    /// Counts of what was read; to be asked after the end.
    pub fn summary(self) -> CodesSummary {
        CodesSummary {
            name: self.name,
            fingerprints: self.count,
            without_features: self.without,
            scheme_id: self.scheme.map(|scheme| scheme.to_string()),
            skipped: self.skipped.finish(),
        }
    }
}

/// The scheme that a file names: zero where it was not known.
fn known(scheme: u64) -> Option<SchemeId> {
    (scheme != 0).then_some(SchemeId(scheme))
}

fn next_chunk<W: Word>(
    reader: &mut FingerprintReader<FingerprintStream>,
    out: &mut FingerprintFile<W>,
) -> Result<bool, lookalike_hamming::FileError> {
    let with_ids = reader.has_ids();
    let Some(chunk) = reader.next_chunk()? else {
        return Ok(false);
    };
    extend_codes(&mut out.codes, chunk.fingerprints);
    if !chunk.ends.is_empty() {
        out.ids.extend_texts(chunk.texts, chunk.ends);
    } else if with_ids {
        out.ids.extend_numbers(chunk.ids);
    }
    Ok(true)
}

/// The error of two files that tell, beside their names, what they must have in common, and differ in it.
fn ensure_equal<T: PartialEq>(
    a: Option<(&str, T)>,
    b: Option<(&str, T)>,
    error: impl Fn([String; 2], [T; 2]) -> CodesError,
) -> Result<(), CodesError> {
    match (a, b) {
        (Some((a, first)), Some((b, second))) if first != second => {
            Err(error([a, b].map(str::to_owned), [first, second]))
        }
        _ => Ok(()),
    }
}

/// Refuses to compare fingerprints of different schemes, where both files, by name and scheme, tell theirs.
///
/// # Errors
/// [`CodesError::OtherScheme`].
pub fn ensure_equal_schemes(
    a: Option<(&str, SchemeId)>,
    b: Option<(&str, SchemeId)>,
) -> Result<(), CodesError> {
    ensure_equal(a, b, |[a, b], [first, second]| CodesError::OtherScheme {
        a,
        b,
        first,
        second,
    })
}

/// Refuses to compare fingerprints of different widths, where both files, by name and bits, tell theirs.
///
/// # Errors
/// [`CodesError::OtherWidth`].
pub fn ensure_equal_widths(
    a: Option<(&str, u32)>,
    b: Option<(&str, u32)>,
) -> Result<(), CodesError> {
    ensure_equal(a, b, |[a, b], [first, second]| CodesError::OtherWidth {
        a,
        b,
        first,
        second,
    })
}

/// Refuses to compare sketches of different shapes, where both files, by name and shape, tell theirs.
///
/// # Errors
/// [`CodesError::OtherShape`].
pub fn ensure_equal_shapes(
    a: Option<(&str, SketchShape)>,
    b: Option<(&str, SketchShape)>,
) -> Result<(), CodesError> {
    ensure_equal(a, b, |[a, b], [first, second]| CodesError::OtherShape {
        a,
        b,
        first,
        second,
    })
}

/// Refuses to go on when more lines could not be read than is bearable.
///
/// # Errors
/// [`BatchError::Losses`].
pub fn check_losses<'a>(
    losses: LossPolicy,
    read: impl IntoIterator<Item = &'a CodesSummary> + Clone,
) -> Result<(), BatchError> {
    let all = read.clone().into_iter();
    let all = all.map(|codes| codes.fingerprints + codes.without_features);
    let rows = read.into_iter().flat_map(|codes| &codes.skipped);
    losses.check(rows, all.sum())
}

/// Number of bytes read of some files.
pub(crate) fn sum(counters: &[Arc<AtomicU64>]) -> u64 {
    counters
        .iter()
        .map(|counter| counter.load(Ordering::Relaxed))
        .sum()
}
