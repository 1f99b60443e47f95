//! Reads collections of sketches of several places in any of their formats, once from start to end.
//!
//! | format | begins with | ids | shape and scheme |
//! |---|---|---|---|
//! | fingerprint file | `LKFP` | texts, or none | both |
//! | raw little-endian numbers | named `.u64xN` or `.u32xN` | none | the shape, by the name |
//! | Parquet table with a column `super_shingles` or `signature` | `PAR1` | texts of a column `id`, or none | the shape |
//! | JSON Lines `{"id":..,"super_shingles":".."}` or `"signature"` | anything else | texts, or none | the shape |
//!
//! A sketch without an id is named by its digits.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::scheme::SchemeId;
use lookalike_corpus::JsonId;
use lookalike_corpus::{CodeCell, CodeTable, FINGERPRINT_COLUMN};
use lookalike_hamming::{FileError, FingerprintReader};
use serde::Deserialize;

use super::error::CodesError;
use super::ids::{FingerprintIds, FingerprintName};
use super::json_lines::{JsonLines, READ_BYTES, object, present};
use super::open::{self, FingerprintStream, OpenedFile};
use super::row_counts::RowCounts;
use super::sketch_kind::SketchKind;
use super::sketch_shape::{PlaceKind, SketchShape};
use super::source::FingerprintSource;
use super::{CodesSummary, known};

/// Bytes of raw sketches read at once.
const RAW_BYTES: usize = 1 << 17;

/// Sketches and their names, in file order.
#[derive(Clone, Debug, Default)]
pub struct SketchRows {
    /// Words of all sketches, concatenated.
    pub words: Vec<u64>,
    /// Names of the sketches.
    pub ids: FingerprintIds,
    /// Number of sketches.
    pub count: usize,
    /// True if any sketch has an id; sketches without one are named by their digits.
    pub has_ids: bool,
    /// True if some have ids and others do not.
    pub(crate) has_both: bool,
}

impl SketchRows {
    /// Removes everything but keeps the allocations.
    pub fn clear(&mut self) {
        self.words.clear();
        self.ids.clear();
        self.count = 0;
        self.has_ids = false;
        self.has_both = false;
    }

    /// Returns the sketches with their names.
    pub fn for_each(&self, shape: SketchShape) -> impl Iterator<Item = (&str, &[u64])> {
        let sketches = self.words.chunks_exact(shape.words());
        // The fingerprint only matters for rows without names, of which there are none.
        let name = |at| match self.ids.name(at, 0_u64) {
            FingerprintName::Text(text) => text,
            // Every sketch gets a text as its name when it is read.
            FingerprintName::Number(_) | FingerprintName::Fingerprint(_) => "",
        };
        sketches
            .enumerate()
            .map(move |(at, sketch)| (name(at), sketch))
    }

    /// Returns the bytes of the sketches and names.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64 + self.ids.bytes()
    }

    /// Names the sketch whose words were just appended.
    pub(crate) fn name(&mut self, id: Option<&str>, shape: SketchShape) {
        self.has_both |= self.count > 0 && id.is_some() != self.has_ids;
        self.has_ids |= id.is_some();
        match id {
            Some(id) => self.ids.push_text::<u64>(id, &[]),
            None => {
                let digits = shape.digits(&self.words[self.words.len() - shape.words()..]);
                self.ids.push_text::<u64>(&digits, &[]);
            }
        }
        self.count += 1;
    }
}

/// An open collection of sketches of several places: super-shingles or minima.
pub struct SketchFile {
    rows: RowCounts,
    format: SketchFormat,
    shape: Option<SketchShape>,
    scheme: Option<SchemeId>,
    read: Arc<AtomicU64>,
}

enum SketchFormat {
    Words(FingerprintReader<FingerprintStream>),
    Raw(FingerprintStream, SketchShape),
    Lines(JsonLines),
    Table(Box<CodeTable>, PlaceKind),
}

lookalike::opaque_debug! {
    [] SketchFile [];
}

impl SketchFile {
    /// Opens a collection and reads its header. If `strict` is true, the first line that cannot be read is an error.
    ///
    /// # Errors
    /// [`CodesError`] if there is no such file, or if it is damaged or holds fingerprints.
    pub fn open(source: &FingerprintSource, strict: bool) -> Result<Self, CodesError> {
        let read = Arc::default();
        let OpenedFile {
            name, input, head, ..
        } = open::open(source, Arc::clone(&read))?;
        let wrong = CodesError::of(&name);
        let fingerprints = || CodesError::NoPlaces { name: name.clone() };
        let (mut shape, mut scheme) = (None, None);
        let format = match head {
            Some([b'L', b'K', b'F', b'P']) => {
                let reader = FingerprintReader::new(input).map_err(&wrong)?;
                shape = match SketchKind::of_header(reader.sketch()) {
                    Some(SketchKind::Fingerprints(_)) => return Err(fingerprints()),
                    Some(SketchKind::Places(shape)) => Some(shape),
                    None => return Err(CodesError::UnknownShape { name }),
                };
                scheme = known(reader.scheme());
                SketchFormat::Words(reader)
            }
            Some([b'L', b'K', b'A', b'R']) => return Err(fingerprints()),
            // Jobs that accept an index open it before they come here.
            Some([b'L', b'K', b'I', b'X' | b'S']) => return Err(CodesError::Index { name }),
            Some([b'P', b'A', b'R', b'1']) => {
                // Opened again by its path, because Parquet is read from its end.
                let (table, kind) = open_table(source, &name)?;
                SketchFormat::Table(Box::new(table), kind)
            }
            None => {
                let Some(SketchKind::Places(found)) = source.raw_kind() else {
                    return Err(fingerprints());
                };
                shape = Some(found);
                SketchFormat::Raw(input, found)
            }
            Some(_) => SketchFormat::Lines(JsonLines::new(input, READ_BYTES)),
        };
        Ok(Self {
            rows: RowCounts::new(name, strict),
            format,
            shape,
            scheme,
            read,
        })
    }

    /// Returns the name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.rows.name
    }

    /// Returns the shape of the sketches. For lines and tables it is `None` until the first sketch has been read.
    pub fn shape(&self) -> Option<SketchShape> {
        self.shape
    }

    /// Returns the scheme, if the format stores it.
    pub fn scheme(&self) -> Option<SchemeId> {
        self.scheme
    }

    /// Returns the stored bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Appends sketches until they and their names take `bytes` bytes, or some mebibytes more, or until the file ends. Returns false at the end.
    ///
    /// # Errors
    /// [`CodesError`] if the file is damaged or truncated, or has no line that can be read.
    pub fn fill(&mut self, out: &mut SketchRows, bytes: u64) -> Result<bool, CodesError> {
        let before = out.count;
        let mut more = true;
        while more && out.bytes() < bytes {
            let sketches_before = self.rows.sketches + (out.count - before) as u64;
            let shape = &mut self.shape;
            more = match &mut self.format {
                SketchFormat::Words(reader) => next_chunk(reader, *shape, out),
                // The number of sketches before locates a truncation: raw files have no chunks of their own that would.
                SketchFormat::Raw(input, shape) => next_raw(input, *shape, sketches_before, out),
                SketchFormat::Lines(lines) => {
                    let mut take = |line: &[u8]| take(line, shape, out);
                    Ok(lines.read(&mut self.rows, &mut take)?)
                }
                SketchFormat::Table(table, kind) => {
                    let more = self.rows.read_table(table, |id, cell| match cell {
                        CodeCell::Null => Ok(false),
                        CodeCell::Number(_) => Err("a number is not a sketch".to_owned()),
                        CodeCell::Text(text) => add(*kind, text, id, shape, out),
                    });
                    Ok(more?)
                }
            }
            .map_err(CodesError::of(&self.rows.name))?;
        }
        self.rows.sketches += (out.count - before) as u64;
        if !more && let Some(first) = self.rows.first_fault() {
            return Err(CodesError::UnknownSketch { first });
        }
        Ok(more)
    }

    /// Returns counts of what was read. Call it after the end.
    pub fn summary(self) -> CodesSummary {
        self.rows.summary(self.scheme)
    }
}

fn open_table(
    source: &FingerprintSource,
    name: &str,
) -> Result<(CodeTable, PlaceKind), CodesError> {
    let open = |kind: PlaceKind| CodeTable::open(source.path(), kind.column());
    for kind in PlaceKind::ALL {
        // Only an error shows that a table lacks a column. Errors of the file itself are reported below.
        if let Ok(table) = open(kind) {
            return Ok((table, kind));
        }
    }
    match CodeTable::open(source.path(), FINGERPRINT_COLUMN) {
        Ok(_) => Err(CodesError::NoPlaces {
            name: name.to_owned(),
        }),
        Err(source) => Err(CodesError::table(name, source)),
    }
}

fn next_chunk(
    reader: &mut FingerprintReader<FingerprintStream>,
    shape: Option<SketchShape>,
    out: &mut SketchRows,
) -> Result<bool, FileError> {
    let (with_texts, offset) = (reader.has_texts(), reader.offset());
    let (Some(chunk), Some(shape)) = (reader.next_chunk()?, shape) else {
        return Ok(false);
    };
    // Joins compare whole words, so unused halves must be zero.
    let has_rest = |sketch: &[u64]| sketch.last().is_some_and(|last| last >> 32 != 0);
    let is_odd = shape.kind == PlaceKind::Minima && shape.places % 2 == 1;
    let mut sketches = chunk.fingerprints.chunks_exact(shape.words());
    if is_odd && sketches.any(has_rest) {
        return Err(FileError::Damaged {
            offset,
            what: "the padding after an odd number of minima is not zero",
        });
    }
    if with_texts {
        out.has_ids = true;
        out.words.extend_from_slice(chunk.fingerprints);
        out.ids.extend_texts(chunk.texts, chunk.ends);
        out.count += chunk.ends.len();
    } else {
        for sketch in chunk.fingerprints.chunks_exact(shape.words()) {
            out.words.extend_from_slice(sketch);
            out.name(None, shape);
        }
    }
    Ok(true)
}

fn next_raw(
    input: &mut FingerprintStream,
    shape: SketchShape,
    sketches_before: u64,
    out: &mut SketchRows,
) -> Result<bool, FileError> {
    let each = shape.raw_bytes();
    // Whole sketches, so that only the end of the file can leave a part of one.
    let wanted = (RAW_BYTES / each).max(1) * each;
    let mut bytes = Vec::with_capacity(wanted);
    input.take(wanted as u64).read_to_end(&mut bytes)?;
    let sketches = bytes.chunks_exact(each);
    if !sketches.remainder().is_empty() {
        let offset = sketches_before * each as u64 + bytes.len() as u64;
        return Err(FileError::Truncated { offset });
    }
    for sketch in sketches {
        SketchShape::extend_words(sketch, &mut out.words);
        out.name(None, shape);
    }
    Ok(bytes.len() == wanted)
}

#[derive(Deserialize)]
struct SketchLine<'a> {
    #[serde(borrow)]
    id: Option<JsonId<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    super_shingles: Option<Option<Cow<'a, str>>>,
    #[serde(borrow, default, deserialize_with = "present")]
    signature: Option<Option<Cow<'a, str>>>,
}

/// Takes one line. Returns false if its sketch is null.
fn take(
    line: &[u8],
    shape: &mut Option<SketchShape>,
    out: &mut SketchRows,
) -> Result<bool, String> {
    let read: SketchLine<'_> = object("sketch", line)?;
    let (kind, digits) = match (read.super_shingles, read.signature) {
        (Some(digits), None) => (PlaceKind::SuperShingles, digits),
        (None, Some(digits)) => (PlaceKind::Minima, digits),
        (Some(_), Some(_)) => return Err("both super_shingles and a signature".to_owned()),
        (None, None) => {
            return Err("no field named super_shingles, and none named signature".to_owned());
        }
    };
    // `null` stands for a text without features.
    let Some(digits) = digits else {
        return Ok(false);
    };
    let id = read.id.as_ref().map(|JsonId(id)| id.as_ref());
    add(kind, &digits, id, shape, out)
}

/// Adds a sketch, which must have the shape of the sketches before it. Returns true.
fn add(
    kind: PlaceKind,
    digits: &str,
    id: Option<&str>,
    shape: &mut Option<SketchShape>,
    out: &mut SketchRows,
) -> Result<bool, String> {
    let before = out.words.len();
    let found = SketchShape::read_digits(kind, digits, &mut out.words)?;
    // The first good row decides the shape of the file.
    let wanted = *shape.get_or_insert(found);
    if found != wanted {
        // Rows do not store their lengths: a surplus word would shift all sketches after it.
        out.words.truncate(before);
        return Err(format!("{found}, and {wanted} before"));
    }
    out.name(id, found);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::FingerprintWriter;

    use super::*;

    #[test]
    fn wrong_padding_was_told_to_be_at_the_start_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lkfp");
        let shape = SketchShape {
            kind: PlaceKind::Minima,
            places: 1,
        };
        let mut bytes = Vec::new();
        let mut writer = FingerprintWriter::new(&mut bytes, 7, shape.in_header(), false).unwrap();
        writer.push_sketch(&[1 << 32], "").unwrap();
        writer.finish().unwrap();
        std::fs::write(&path, bytes).unwrap();
        let mut file = SketchFile::open(&path.as_path().into(), true).unwrap();
        let found = file.fill(&mut SketchRows::default(), 1).unwrap_err();
        let CodesError::File { cause, .. } = found else {
            panic!("{found}");
        };
        // The first chunk comes after the header.
        assert!(
            matches!(cause, FileError::Damaged { offset, .. } if offset > 0),
            "{cause}"
        );
    }

    #[test]
    fn a_cut_was_told_by_its_place_in_the_last_mebibytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.u64x2");
        // Three pieces, each removed before the next is read, and one byte of another sketch.
        let length = 3 * RAW_BYTES + 1;
        std::fs::write(&path, vec![7; length]).unwrap();
        let mut file = SketchFile::open(&path.as_path().into(), true).unwrap();
        let mut rows = SketchRows::default();
        let found = loop {
            rows.clear();
            if let Err(error) = file.fill(&mut rows, 1) {
                break error;
            }
        };
        let CodesError::File { cause, .. } = found else {
            panic!("{found}");
        };
        assert!(
            matches!(cause, FileError::Truncated { offset } if offset == length as u64),
            "{cause}"
        );
    }
}
