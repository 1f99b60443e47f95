//! An index file of sketches of several places, opened in place. For a query it finds exactly the sketches with at least a given number of equal
//! places.
//!
//! The search uses [`bands`]: only the sketches in the query's bucket of each band are compared with it.
//!
//! # Bytes
//!
//! All numbers are little-endian, and checks are XXH3-64 checksums.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4, 4 | `LKIS`; version: 2 |
//! | 8 | 8 | scheme id; zero when it is not known |
//! | 16 | 8, 8 | kind of the places: 1 super-shingles (8 bytes each), 2 minima (4 each); number of places |
//! | 32 | 8 | least number of equal places of a search |
//! | 40 | 8, 8 | sketches that were read; different ones among them, n |
//! | 56 | 8 | 1 if there are ids, else 0 |
//! | 64 | 8, 8 | number of ids; their bytes |
//! | 80 | 8 | w, the bytes of a position or the number of an id: 4 to 8, as few as they need |
//! | 88 | 8 | check of the bytes before; zeros to 128 |
//! | 128 | | sections, each from a multiple of 64 bytes on, zeros between; they end at D, a multiple of 65536 |
//! | D | 8 each | check of each 65536 bytes before D, seeded with their number from zero |
//! | | 8, 8 | D; check of all from D on |
//!
//! Sections: the n distinct sketches, ascending as bytes. Then for each band the rank of the first entry of each bucket and of the end of the last (w
//! bytes each), and the entries, which are positions of sketches (w each), ascending in each bucket. If there are ids: the number of the first id of
//! each sketch, and of the end (w each), the end of each id (8 each), and the concatenated ids in UTF-8, ascending for each sketch.
//!
//! With at least k of p equal places there are p - k + 1 bands; band b has the places from b p / (p - k + 1), rounded down, up to those of the next
//! band. The number of a bucket is the leading bits of the XXH3-64 of the band's bytes. The number of these bits is one less than the binary
//! logarithm of n, rounded down, so that two to four sketches share a bucket.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use lookalike::hash::xxh3_64;
use lookalike::scheme::SchemeId;
use lookalike_corpus::open_regular;
use lookalike_hamming::{
    CheckedFile, Effort, FileError, FileFormat, PageChecks, RankBytes, Ranks, SharedBytes,
};
use serde::Serialize;

use super::bands::bands;
use crate::error::BatchError;
use crate::fingerprints::files::{CodesSummary, PlaceKind, SketchShape};
use crate::fingerprints::mapped::{begins_with, damaged, map, map_file, read, unreadable};

const FORMAT: FileFormat = FileFormat {
    magic: "LKIS",
    file: "index of sketches",
    kind: "index of sketches",
    version: 2,
};
const HEAD: usize = 128;
const CHECKED: usize = 88;
/// Bytes of D and the last check.
const TRAILER: usize = 16;
/// Number of bytes under one check.
const PAGE: usize = PageChecks::PAGE;
const ALIGNED: usize = 64;

/// Tells whether a file starts like an index of sketches. Returns false if it cannot be opened.
pub fn is_sketch_index(path: &Path) -> bool {
    begins_with(path, *b"LKIS")
}

/// Opens an index of sketches, either mapped or, if `in_memory` is true, read, and verifies every byte.
///
/// # Errors
/// [`BatchError::IndexFile`] with the file and the cause.
pub fn open_sketches(path: &Path, in_memory: bool) -> Result<SketchIndexFile, BatchError> {
    if !in_memory {
        return Ok(map_sketches(path)?.1);
    }
    let index = open_sketches_unchecked(path, in_memory)?;
    index.verify().map_err(damaged(path))?;
    Ok(index)
}

/// Opens and maps an index of sketches, and verifies every byte. Also returns the file, which can be mapped again.
pub(crate) fn map_sketches(path: &Path) -> Result<(File, SketchIndexFile), BatchError> {
    let failed = unreadable(path);
    let mut file = open_regular(path).map_err(&failed)?;
    let mapped = map_file(&file).map_err(&failed)?;
    let index = SketchIndexFile::open(mapped).map_err(damaged(path))?;
    // Verify by reading, not through the mapping: mapped pages that are touched count as the process's memory, and here these are all.
    let verified = index.file.verify_read(&mut file);
    verified.map_err(damaged(path))?;
    Ok((file, index))
}

/// Does the same as [`open_sketches`] without verifying entries, so it is immediate for files of any size.
///
/// # Errors
/// [`BatchError::IndexFile`] with the file and the cause.
pub fn open_sketches_unchecked(
    path: &Path,
    in_memory: bool,
) -> Result<SketchIndexFile, BatchError> {
    let held = if in_memory { read(path) } else { map(path) };
    SketchIndexFile::open(held.map_err(unreadable(path))?).map_err(damaged(path))
}

/// Number and bytes of the ids of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdCounts {
    pub(crate) ids: u64,
    pub(crate) bytes: u64,
}

/// Contents of the header of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SketchIndexHeader {
    pub(crate) scheme: Option<SchemeId>,
    pub(crate) shape: SketchShape,
    pub(crate) least: usize,
    pub(crate) documents: u64,
    pub(crate) distinct: u64,
    pub(crate) ids: Option<IdCounts>,
    /// Number of bytes of a position, and of the number of an id.
    pub(crate) position_bytes: RankBytes,
}

/// The places of a band in a sketch, and the sections of the band.
#[derive(Clone, Debug)]
pub(crate) struct BandSections {
    /// Byte range of its places in a sketch.
    pub(crate) part: Range<usize>,
    pub(crate) starts: Range<usize>,
    pub(crate) entries: Range<usize>,
}

/// Sections of the file, computed from the header.
#[derive(Clone, Debug)]
pub(crate) struct SketchIndexSections {
    pub(crate) sketches: Range<usize>,
    pub(crate) bands: Vec<BandSections>,
    /// First ids, ends of ids, and texts of ids.
    pub(crate) ids: Option<[Range<usize>; 3]>,
    /// D, the end of the sections.
    pub(crate) end: usize,
}

/// Returns the number of bits of a bucket number, given the number of sketches.
fn bucket_bits(distinct: u64) -> u32 {
    distinct.max(1).ilog2().saturating_sub(1)
}

/// Returns the bucket of a band's bytes, given the number of sketches.
pub(crate) fn bucket(band: &[u8], distinct: u64) -> usize {
    // Without bits the shift would be by 64, which overflows.
    match bucket_bits(distinct) {
        0 => 0,
        bits => (xxh3_64(band, 0) >> (64 - bits)) as usize,
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..).and_then(|rest| rest.first_chunk());
    eight.map_or(0, |eight| u64::from_le_bytes(*eight))
}

impl SketchIndexHeader {
    pub(crate) fn bytes(&self) -> [u8; HEAD] {
        let kind = match self.shape.kind {
            PlaceKind::SuperShingles => 1,
            PlaceKind::Minima => 2,
        };
        let IdCounts { ids, bytes } = self.ids.unwrap_or(IdCounts { ids: 0, bytes: 0 });
        let numbers = [
            self.scheme.map_or(0, |scheme| scheme.0),
            kind,
            self.shape.places as u64,
            self.least as u64,
            self.documents,
            self.distinct,
            self.ids.is_some().into(),
            ids,
            bytes,
            self.position_bytes.get() as u64,
        ];
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&FORMAT.start());
        for (at, number) in numbers.into_iter().enumerate() {
            head[8 * (at + 1)..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let check = xxh3_64(&head[..CHECKED], 0);
        head[CHECKED..][..8].copy_from_slice(&check.to_le_bytes());
        head
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let Some(head) = bytes.first_chunk::<HEAD>() else {
            let offset = bytes.len() as u64;
            return Err(FileError::Truncated { offset });
        };
        FORMAT.check(&head[..CHECKED + 8])?;
        let wrong = |what| FileError::Damaged { offset: 0, what };
        let [scheme, kind, places, least] = [8, 16, 24, 32].map(|at| number(head, at));
        let [documents, distinct, has_ids, ids, id_bytes, position_bytes] =
            [40, 48, 56, 64, 72, 80].map(|at| number(head, at));
        let position_bytes = RankBytes::new(position_bytes);
        // 0 wraps around to a number that is not found.
        let kind = PlaceKind::ALL.get((kind.wrapping_sub(1)) as usize);
        let shape = kind.map(|&kind| SketchShape {
            kind,
            places: places as usize,
        });
        let of_ids = IdCounts {
            ids,
            bytes: id_bytes,
        };
        let head = Self {
            scheme: (scheme != 0).then_some(SchemeId(scheme)),
            shape: shape.ok_or(wrong("an unknown kind of sketches"))?,
            least: least as usize,
            documents,
            distinct,
            ids: (has_ids != 0).then_some(of_ids),
            position_bytes: position_bytes.ok_or(wrong("an impossible width of positions"))?,
        };
        // The checksum shows an intact header, not an honest one, and the sections are computed from these numbers.
        let is_possible = (1..=u64::from(u16::MAX)).contains(&places)
            && (1..=places).contains(&least)
            && distinct <= documents
            && RankBytes::of_count(distinct.max(ids)) <= head.position_bytes
            && (has_ids == 0 || ids >= distinct);
        // The comparison also refuses numbers that were cut by a cast, flags other than 0 and 1, and padding that is not zero.
        match is_possible && head.bytes() == bytes[..HEAD] {
            true => Ok(head),
            false => Err(wrong("the numbers of the header are impossible")),
        }
    }

    /// Returns the positions of all sections, or `None` if they exceed what a file can hold.
    pub(crate) fn sections(&self) -> Option<SketchIndexSections> {
        let (count, bytes) = (self.distinct as usize, self.position_bytes.get());
        let mut end = HEAD;
        // Every step is checked, because the numbers may be forged and decide which bytes are read.
        let mut section = |items: usize, bytes: usize| {
            let start = end.checked_next_multiple_of(ALIGNED)?;
            end = start.checked_add(items.checked_mul(bytes)?)?;
            Some(start..end)
        };
        let sketches = section(count, self.shape.raw_bytes())?;
        let width = self.shape.place_bytes();
        let buckets = 1_usize << bucket_bits(self.distinct);
        let places = self.shape.places;
        let of_band = |part: Range<usize>| {
            Some(BandSections {
                part: part.start * width..part.end * width,
                starts: section(buckets + 1, bytes)?,
                entries: section(count, bytes)?,
            })
        };
        let bands = bands(places, places - self.least + 1).map(of_band);
        let bands = bands.collect::<Option<Vec<_>>>()?;
        let ids = match self.ids {
            None => None,
            Some(of) => Some([
                section(count.checked_add(1)?, bytes)?,
                section(of.ids as usize, 8)?,
                section(usize::try_from(of.bytes).ok()?, 1)?,
            ]),
        };
        Some(SketchIndexSections {
            sketches,
            bands,
            ids,
            end: end.checked_next_multiple_of(PAGE)?,
        })
    }
}

/// Returns the bytes from D to the end of the file.
pub(crate) fn tail_bytes(checks: &PageChecks) -> Vec<u8> {
    let end = (checks.all().len() * PAGE) as u64;
    let numbers = checks.all().iter().chain([&end]);
    let mut bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(xxh3_64(&bytes, 0).to_le_bytes());
    bytes
}

/// Loads of the buckets of one band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BandLoads {
    /// Number of places in the band.
    pub places: usize,
    /// Mean number of entries in the bucket of a stored sketch: the candidates of a similar query.
    pub observed_candidates: f64,
    /// The same mean if values were spread evenly.
    pub expected_candidates: f64,
    /// Number of entries in the largest bucket.
    pub fullest_bucket: usize,
}

/// An index of sketches, held in memory or mapped.
#[derive(Clone)]
pub struct SketchIndexFile {
    file: CheckedFile,
    head: SketchIndexHeader,
    sections: SketchIndexSections,
}

impl SketchIndexFile {
    /// Opens the bytes of a whole file and verifies the header and the list of checksums. Entries are verified by [`Self::verify`], ids whenever they
    /// are read, until that has verified them all. A search in damaged entries may find too little or too much, but nothing worse happens.
    ///
    /// # Errors
    /// [`FileError`] if the bytes are not a complete index of a known version.
    pub fn open(bytes: SharedBytes) -> Result<Self, FileError> {
        let whole = (*bytes).as_ref();
        let head = SketchIndexHeader::read(whole)?;
        let wrong = |what| FileError::Damaged { offset: 0, what };
        let sections = head
            .sections()
            .ok_or(wrong("the numbers of the header are impossible"))?;
        let checks = sections.end / PAGE * 8;
        let length = sections.end.checked_add(checks + TRAILER);
        let offset = whole.len() as u64;
        match length.map(|length| whole.len().cmp(&length)) {
            Some(std::cmp::Ordering::Equal) => {}
            Some(std::cmp::Ordering::Greater) => {
                let what = "data follows the end of the index";
                return Err(FileError::Damaged { offset, what });
            }
            _ => return Err(FileError::Truncated { offset }),
        }
        let tail = &whole[sections.end..];
        let (sums, check) = tail.split_at(tail.len() - 8);
        if xxh3_64(sums, 0) != number(check, 0) || number(sums, checks) != sections.end as u64 {
            return Err(FileError::Damaged {
                offset: sections.end as u64,
                what: "the list of checksums does not match its own checksum",
            });
        }
        let checks = (0..sections.end / PAGE).map(|page| number(tail, page * 8));
        let checks = PageChecks::new(checks.collect());
        Ok(Self {
            file: CheckedFile::new(bytes, checks),
            head,
            sections,
        })
    }

    fn whole(&self) -> &[u8] {
        self.file.whole()
    }

    /// Returns the shape of the sketches.
    pub fn shape(&self) -> SketchShape {
        self.head.shape
    }

    /// Returns the scheme, if it is known.
    pub fn scheme(&self) -> Option<SchemeId> {
        self.head.scheme
    }

    /// Returns the minimum number of equal places that a search supports.
    pub fn min_equal(&self) -> usize {
        self.head.least
    }

    /// Returns the number of sketches read, including equal ones.
    pub fn documents(&self) -> u64 {
        self.head.documents
    }

    /// Returns the number of distinct sketches.
    pub fn len(&self) -> usize {
        self.head.distinct as usize
    }

    /// Tells whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether ids are stored with the sketches.
    pub fn has_ids(&self) -> bool {
        self.head.ids.is_some()
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.whole().len() as u64
    }

    /// Returns the number of bands. Sketches with enough equal places agree in at least one of them.
    pub fn bands(&self) -> usize {
        self.sections.bands.len()
    }

    /// Returns the bytes of the sketch at a position.
    fn row(&self, at: usize) -> Option<&[u8]> {
        let bytes = self.shape().raw_bytes();
        let sketches = self.whole().get(self.sections.sketches.clone())?;
        // A damaged entry may name any position.
        sketches.get(at.checked_mul(bytes)?..)?.get(..bytes)
    }

    /// Returns the words of the sketch at a position.
    pub fn sketch(&self, at: usize) -> Vec<u64> {
        let mut words = Vec::new();
        SketchShape::extend_words(self.row(at).unwrap_or(&[]), &mut words);
        words
    }

    /// Returns the numbers of a section.
    fn numbers(&self, section: &Range<usize>) -> Ranks<'_> {
        // Each number is read as eight bytes, which is safe because more bytes follow the last section.
        let bytes = self.whole().get(section.start..section.end + 8);
        Ranks::new(bytes.unwrap_or(&[]), self.head.position_bytes)
    }

    /// Returns the range of a bucket's entries within its band. The range is empty if the numbers that give it are damaged.
    fn entries(&self, band: &BandSections, bucket: usize) -> Range<usize> {
        let (first, count) = self.numbers(&band.starts).range(bucket);
        match first.checked_add(count) {
            Some(end) if end <= self.len() => first..end,
            _ => 0..0,
        }
    }

    /// Visits every distinct sketch with at least `least` places equal to those of the query, each once, with its position and the number of places
    /// that differ. If `least` is smaller than that of the index, some sketches are missed.
    pub fn search(&self, query: &[u64], least: usize, visit: &mut dyn FnMut(usize, u32)) -> Effort {
        let shape = self.shape();
        let (mut bytes, mut effort) = (Vec::with_capacity(shape.raw_bytes()), Effort::default());
        shape.extend_raw(query, &mut bytes);
        for (number, band) in self.sections.bands.iter().enumerate() {
            let (part, earlier) = (&bytes[band.part.clone()], &self.sections.bands[..number]);
            let entries = self.entries(band, bucket(part, self.head.distinct));
            effort.probes += 1;
            effort.candidates += entries.len() as u64;
            let positions = self.numbers(&band.entries);
            for entry in entries {
                let at = positions.get(entry);
                // Skip others that share the bucket, and those that agree in an earlier band.
                let Some(row) = self.row(at).filter(|row| row[band.part.clone()] == *part) else {
                    continue;
                };
                let equal = equal_places(shape, row, &bytes);
                let agrees =
                    |band: &BandSections| row[band.part.clone()] == bytes[band.part.clone()];
                // The count decides most candidates, so the earlier bands are compared only for what would be reported.
                if equal >= least && !earlier.iter().any(agrees) {
                    visit(at, (shape.places - equal) as u32);
                }
            }
        }
        effort
    }

    /// Appends the ids of the sketch at a position to `ids`, ascending. Appends nothing if the index has no ids.
    ///
    /// # Errors
    /// [`FileError::Damaged`] with the place, if the bytes read do not match their checksum.
    pub fn ids<'a>(&'a self, at: usize, ids: &mut Vec<&'a str>) -> Result<(), FileError> {
        let Some(sections) = &self.sections.ids else {
            return Ok(());
        };
        self.file.ids(sections, self.head.position_bytes, at, ids)
    }

    /// Returns the number of ids of the sketch at a position; 1 if the index has no ids.
    pub fn copies(&self, at: usize) -> u64 {
        let Some([firsts, ..]) = &self.sections.ids else {
            return 1;
        };
        self.numbers(firsts).range(at).1 as u64
    }

    /// Returns the loads of the buckets of each band, in time linear in the number of buckets.
    pub fn loads(&self) -> Vec<BandLoads> {
        let count = self.len() as f64;
        let buckets = 1_usize << bucket_bits(self.head.distinct);
        let width = self.shape().place_bytes();
        let of_band = |band: &BandSections| {
            let (mut squares, mut fullest_bucket) = (0.0, 0);
            for bucket in 0..buckets {
                let load = self.entries(band, bucket).len();
                // Each sketch of a bucket meets all of them, so the mean over sketches is the sum of squares divided by n.
                squares += (load as f64).powi(2);
                fullest_bucket = fullest_bucket.max(load);
            }
            BandLoads {
                places: band.part.len() / width,
                observed_candidates: squares / count.max(1.0),
                // A sketch meets itself, and the others with a chance of one in the number of buckets.
                expected_candidates: 1.0 + (count - 1.0).max(0.0) / buckets as f64,
                fullest_bucket,
            }
        };
        self.sections.bands.iter().map(of_band).collect()
    }

    /// Returns the same index in a new mapping of its file. Pages of the old mapping no longer count as the process's memory.
    pub(crate) fn remapped(self, file: &File) -> std::io::Result<Self> {
        Ok(Self {
            file: self.file.moved(map_file(file)?),
            ..self
        })
    }

    /// Verifies every byte.
    ///
    /// # Errors
    /// [`FileError::Damaged`] with the place of the first page that does not match its checksum.
    pub fn verify(&self) -> Result<(), FileError> {
        // The rest has its own checksum, which was verified when the file was opened.
        self.file.verify()
    }

    /// Returns the counts of the index as those of a file with this name.
    pub(crate) fn summary(&self, name: &str) -> CodesSummary {
        CodesSummary::of_index(name, self.documents(), self.scheme())
    }

    /// Returns a number that depends on every byte.
    pub(crate) fn digest(&self) -> u64 {
        let whole = self.whole();
        // The trailer has a checksum of the checksums of all pages.
        xxh3_64(&whole[whole.len() - TRAILER..], 0)
    }
}

/// Returns the number of places in which two rows are equal.
fn equal_places(shape: SketchShape, a: &[u8], b: &[u8]) -> usize {
    // A width that the compiler knows lets it compare several places at once.
    fn of_width<const BYTES: usize>(a: &[u8], b: &[u8]) -> usize {
        let [(a, _), (b, _)] = [a, b].map(<[u8]>::as_chunks::<BYTES>);
        a.iter().zip(b).filter(|(a, b)| a == b).count()
    }
    match shape.kind {
        PlaceKind::SuperShingles => of_width::<8>(a, b),
        PlaceKind::Minima => of_width::<4>(a, b),
    }
}

lookalike::opaque_debug! {
    [] SketchIndexFile [];
}
