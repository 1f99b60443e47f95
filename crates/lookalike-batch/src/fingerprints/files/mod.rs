//! Reads collections of fingerprints in any of their formats, once from start to end.
//!
//! Every job over fingerprints reads its input through this module. The format follows from the first bytes of a file; only raw numbers are
//! recognised by the file's name:
//!
//! | format | begins with | ids | scheme |
//! |---|---|---|---|
//! | fingerprint file | `LKFP` | texts, numbers, or none | yes |
//! | archive (Manku et al. 2007, section 3.2) | `LKAR` | none | yes |
//! | raw little-endian numbers | named `.u64`, `.u32` or `.u128` | none | no |
//! | Parquet table with a column `fingerprint` | `PAR1` | texts of a column `id`, or none | no |
//! | JSON Lines `{"id":..,"fingerprint":..}` | anything else | texts, or none | no |
//!
//! All formats except Parquet may be compressed with gzip or zstd. Parquet must be a regular file; for the others `-` is standard input, and `u64:-`
//! raw numbers there. Fingerprints have 32, 64 or 128 bits, in archives always 64, and all fingerprints of a collection have the same width. `write`
//! writes all formats.
//!
//! Super-shingles and min-hash signatures are longer and have their own readers and writers: `sketch_file` and `sketch_writer`.

mod ascending;
mod common_fact;
pub(crate) mod error;
mod ids;
mod json_lines;
mod open;
mod pair_file;
mod raw;
mod row_counts;
mod several;
mod sized_fingerprint;
mod sketch_file;
mod sketch_kind;
mod sketch_shape;
mod source;
mod table;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::scheme::SchemeId;
use lookalike_corpus::CodeTable;
use lookalike_hamming::{FingerprintArchiveReader, FingerprintReader, Word};

pub use ascending::ArchiveScratch;
pub(crate) use common_fact::CommonFact;
pub use error::CodesError;
pub(crate) use error::system_error;
pub use ids::{FingerprintIds, FingerprintName};
use json_lines::JsonLines;
pub use open::decompressed;
use open::{FingerprintStream, OpenedFile};
pub(crate) use pair_file::{ListedId, ListedPair, NoPair, PairFile};
pub(crate) use raw::RawReader;
use row_counts::RowCounts;
pub use several::CodeFiles;
use sized_fingerprint::extend_codes;
pub use sized_fingerprint::{ParseSizedFingerprintError, SizedFingerprint};
pub use sketch_file::{SketchFile, SketchRows};
pub use sketch_kind::SketchKind;
pub use sketch_shape::{PlaceKind, SketchShape};
pub use source::FingerprintSource;
pub use write::{AtomicFileCreator, CodeFormat, CodeImport, ImportSummary};
pub(crate) use write::{CodeWriter, write_sketch};

use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::skipped::SkippedRow;

/// Fingerprints and their ids, in file order.
#[derive(Clone, Debug, Default)]
pub struct FingerprintFile<W = u64> {
    /// The fingerprints.
    pub codes: Vec<W>,
    /// Their ids.
    pub ids: FingerprintIds,
    /// True if some have ids and others stand for themselves.
    pub(crate) has_both: bool,
}

impl<W: Word> FingerprintFile<W> {
    /// Removes everything but keeps the allocations.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.ids.clear();
        self.has_both = false;
    }

    /// Adds a fingerprint. Without an id it is its own id.
    fn push(&mut self, id: Option<&str>, code: W) {
        // A cleared list of texts shows that earlier fingerprints of the file had ids.
        self.has_both |= match id {
            Some(_) => self.ids.is_none() && !self.codes.is_empty(),
            None => !self.ids.is_none(),
        };
        match id {
            Some(id) => self.ids.push_text(id, &self.codes),
            None => self.ids.push_none(code),
        }
        self.codes.push(code);
    }

    /// Keeps the fingerprints for which `keep` returns true, with their ids.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(W) -> bool) {
        // `keep` is asked once for each fingerprint, since ids and fingerprints are separate columns.
        let kept: Vec<bool> = self.codes.iter().map(|&code| keep(code)).collect();
        self.ids.retain(&kept);
        let mut kept = kept.into_iter();
        self.codes.retain(|_| kept.next().unwrap_or(false));
    }

    /// Returns the bytes of the fingerprints and ids.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.codes.as_slice()) as u64 + self.ids.bytes()
    }
}

/// An open collection of fingerprints.
pub struct CodeFile {
    rows: RowCounts,
    format: FingerprintFormat,
    /// Width of the fingerprints, if it is known before they are read.
    bits: Option<u32>,
    scheme: Option<SchemeId>,
    bytes: Option<u64>,
    read: Arc<AtomicU64>,
}

enum FingerprintFormat {
    Fingerprints(FingerprintReader<FingerprintStream>),
    Archive(Box<FingerprintArchiveReader<FingerprintStream>>),
    Raw(RawReader),
    Lines(JsonLines),
    Table(Box<CodeTable>),
}

/// Counts of what was read from a collection.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CodesSummary {
    /// Name of the collection.
    pub name: String,
    /// Number of fingerprints read.
    pub fingerprints: u64,
    /// Number of records whose fingerprint is null: texts without features, which have no neighbours.
    pub without_features: u64,
    /// Id of the scheme, if the format stores it.
    pub scheme_id: Option<String>,
    /// Lines that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

impl CodesSummary {
    /// Returns the counts of an index.
    pub(crate) fn of_index(name: &str, documents: u64, scheme: Option<SchemeId>) -> Self {
        Self {
            name: name.to_owned(),
            fingerprints: documents,
            without_features: 0,
            scheme_id: scheme.map(|id| id.to_string()),
            skipped: Vec::new(),
        }
    }
}

lookalike::opaque_debug! {
    [] CodeFile [];
}

impl CodeFile {
    /// Opens a collection and reads its header. If `strict` is true, the first line that cannot be read is an error.
    ///
    /// # Errors
    /// [`CodesError`] if there is no such file, or if its header is damaged or of another version.
    pub fn open(source: &FingerprintSource, strict: bool) -> Result<Self, CodesError> {
        Self::open_counted(source, strict, Arc::default())
    }

    /// Does the same as [`Self::open`] and adds the bytes read to the caller's counter.
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
        let mut nulls = 0;
        let (format, bits, scheme) = match head {
            Some([b'L', b'K', b'F', b'P']) => {
                let reader = FingerprintReader::new(input).map_err(wrong)?;
                let bits = match SketchKind::of_header(reader.sketch()) {
                    Some(SketchKind::Fingerprints(bits)) => bits,
                    Some(SketchKind::Places(shape)) => {
                        return Err(CodesError::Places { name, shape });
                    }
                    None => return Err(CodesError::UnknownShape { name }),
                };
                let scheme = known(reader.scheme());
                (FingerprintFormat::Fingerprints(reader), Some(bits), scheme)
            }
            Some([b'L', b'K', b'A', b'R']) => {
                let reader = FingerprintArchiveReader::new(input).map_err(wrong)?;
                let scheme = known(reader.scheme());
                // Archives hold fingerprints of 64 bits only.
                (
                    FingerprintFormat::Archive(Box::new(reader)),
                    Some(64),
                    scheme,
                )
            }
            // An index of fingerprints or one of sketches. Jobs that accept an index open it before they come here.
            Some([b'L', b'K', b'I', b'X' | b'S']) => return Err(CodesError::Index { name }),
            Some([b'P', b'A', b'R', b'1']) => {
                // Parquet is read from its end, so the stream is dropped and the file is opened again by its path.
                let opened = table::open(source.path());
                let (table, bits) = opened.map_err(|cause| CodesError::table(&name, cause))?;
                (FingerprintFormat::Table(Box::new(table)), bits, None)
            }
            None => {
                let bits = match source.raw_kind() {
                    Some(SketchKind::Places(shape)) => {
                        return Err(CodesError::Places { name, shape });
                    }
                    Some(SketchKind::Fingerprints(bits)) => Some(bits),
                    None => None,
                };
                let raw = FingerprintFormat::Raw(RawReader::new(input));
                (raw, bits, None)
            }
            Some(_) => {
                let peeked = JsonLines::peek(input).map_err(|error| wrong(error.into()))?;
                nulls = peeked.nulls;
                (FingerprintFormat::Lines(peeked.lines), peeked.bits, None)
            }
        };
        let mut rows = RowCounts::new(name, strict);
        rows.add_nulls(nulls);
        Ok(Self {
            rows,
            format,
            bits,
            scheme,
            bytes,
            read,
        })
    }

    /// Returns the name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.rows.name
    }

    /// Returns the width of the fingerprints: 32, 64 or 128 bits. Lines and tables have it from their first fingerprint, so it is `None` if they have
    /// none.
    pub fn bits(&self) -> Option<u32> {
        self.bits
    }

    /// Returns the scheme, if the format stores it.
    pub fn scheme(&self) -> Option<SchemeId> {
        self.scheme
    }

    /// Returns the stored bytes of the file. `None` for standard input.
    pub fn total_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns the stored bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Tells whether fingerprints may have ids though those before have none.
    pub(crate) fn may_have_later_ids(&self) -> bool {
        match self.format {
            FingerprintFormat::Lines(_) | FingerprintFormat::Table(_) => true,
            FingerprintFormat::Fingerprints(_)
            | FingerprintFormat::Archive(_)
            | FingerprintFormat::Raw(_) => false,
        }
    }

    /// Estimates the number of fingerprints from the size of the file.
    pub fn expected(&self) -> Option<u64> {
        // Typical stored bytes of a fingerprint, for reservations and plans only.
        let each = match &self.format {
            FingerprintFormat::Fingerprints(reader) if reader.has_ids() => 16,
            FingerprintFormat::Archive(_) => 5,
            FingerprintFormat::Lines(_) => 40,
            _ => 8,
        };
        Some(self.bytes? / each)
    }

    /// Appends fingerprints until they and their ids take `bytes` bytes, or the file ends. Returns false at the end.
    ///
    /// Chunks of the file are not split, so it may be up to 16 MiB more.
    ///
    /// # Errors
    /// [`CodesError`] if the fingerprints have another width, if the file is damaged or truncated, or if it has no line that can be read.
    pub fn fill<W: Word>(
        &mut self,
        out: &mut FingerprintFile<W>,
        bytes: u64,
    ) -> Result<bool, CodesError> {
        // If the width is unknown, rows are checked one by one.
        if let Some(found) = self.bits.filter(|&bits| bits != W::BITS) {
            return Err(CodesError::Width {
                name: self.rows.name.clone(),
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
                FingerprintFormat::Lines(lines) => {
                    let mut take = |line: &[u8]| json_lines::take(line, out);
                    Ok(lines.read(&mut self.rows, &mut take)?)
                }
                FingerprintFormat::Table(table) => {
                    let rows = &mut self.rows;
                    Ok(rows.read_table(table, |id, cell| table::take(id, cell, out))?)
                }
            }
            .map_err(CodesError::of(&self.rows.name))?;
        }
        self.rows.sketches += (out.codes.len() - before) as u64;
        // Only at the end is it known that no line was good.
        if !more && let Some(first) = self.rows.first_fault() {
            return Err(CodesError::Unknown { first });
        }
        Ok(more)
    }

    /// Returns counts of what was read. Call it after the end.
    pub fn summary(self) -> CodesSummary {
        self.rows.summary(self.scheme)
    }
}

/// Returns the scheme that a file names, where zero means unknown.
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
    // Only texts have ends, so these tell which kind of ids the file has.
    if !chunk.ends.is_empty() {
        out.ids.extend_texts(chunk.texts, chunk.ends);
    } else if with_ids {
        out.ids.extend_numbers(chunk.ids);
    }
    Ok(true)
}

/// Refuses to compare fingerprints of different schemes. Each file is given by name and scheme, or `None` if its scheme is unknown.
///
/// # Errors
/// [`CodesError::OtherScheme`] if both schemes are known and differ.
pub fn ensure_equal_schemes(
    a: Option<(&str, SchemeId)>,
    b: Option<(&str, SchemeId)>,
) -> Result<(), CodesError> {
    match (a, b) {
        (Some((a, first)), Some((b, second))) if first != second => Err(CodesError::OtherScheme {
            a: a.to_owned(),
            b: b.to_owned(),
            first,
            second,
        }),
        _ => Ok(()),
    }
}

/// Refuses to compare sketches of different kinds. Each file is given by name and kind, or `None` if its kind is unknown.
pub(crate) fn ensure_equal_kinds(
    a: Option<(&str, SketchKind)>,
    b: Option<(&str, SketchKind)>,
) -> Result<(), CodesError> {
    match (a, b) {
        (Some((a, first)), Some((b, second))) if first != second => Err(CodesError::OtherKind {
            a: a.to_owned(),
            b: b.to_owned(),
            first,
            second,
        }),
        _ => Ok(()),
    }
}

/// Does the same for fingerprints, by their bits.
pub(crate) fn ensure_equal_widths(
    a: Option<(&str, u32)>,
    b: Option<(&str, u32)>,
) -> Result<(), CodesError> {
    let [a, b] = [a, b].map(|file| file.map(|(name, bits)| (name, SketchKind::Fingerprints(bits))));
    ensure_equal_kinds(a, b)
}

/// Refuses to compare sketches of different shapes. Each file is given by name and shape, or `None` if its shape is unknown.
///
/// # Errors
/// [`CodesError::OtherKind`] if both shapes are known and differ.
pub fn ensure_equal_shapes(
    a: Option<(&str, SketchShape)>,
    b: Option<(&str, SketchShape)>,
) -> Result<(), CodesError> {
    let [a, b] = [a, b].map(|file| file.map(|(name, shape)| (name, SketchKind::Places(shape))));
    ensure_equal_kinds(a, b)
}

/// Checks that the number of lines that could not be read is acceptable under the policy.
///
/// # Errors
/// [`BatchError::Losses`] if there are too many.
pub fn check_losses<'a>(
    losses: LossPolicy,
    read: impl IntoIterator<Item = &'a CodesSummary> + Clone,
) -> Result<(), BatchError> {
    let all = read.clone().into_iter();
    let all = all.map(|codes| codes.fingerprints + codes.without_features);
    let rows = read.into_iter().flat_map(|codes| &codes.skipped);
    losses.check(rows, all.sum())
}
