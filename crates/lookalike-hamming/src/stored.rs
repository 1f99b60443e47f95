//! An index as a file: written table by table, opened in place.
//!
//! [`IndexFileWriter`] builds the tables of a design one after the other and writes each before it builds the next, so that a build needs the memory
//! of one table and some scratch. [`IndexFile`] takes bytes that the caller has mapped or read, and searches them with the same code as an index in
//! memory.
//!
//! # Bytes
//!
//! All numbers are little-endian; checks are XXH3-64.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `LKIX` |
//! | 4 | 4 | version: 2 |
//! | 8 | 8 | scheme id; zero if it is unknown |
//! | 16 | 8 | width of the codes in bits: 32, 64 or 128 |
//! | 24 | 8 | check of the bytes before |
//! | 32 | 32 | zeros |
//! | 64 | | sections, each starting at a multiple of 64 bytes; each table (the first together with the ids) is padded to a multiple of 65536 |
//! | D | 8 each | directory: see below |
//! | | 8, 8 | D; number of numbers in the directory |
//! | | 8 | check of the directory |
//! | | 8 | check of the 24 bytes before |
//!
//! The directory is a list of 64-bit numbers: width in bits; radius; layout (0 packed, 1 buckets, 2 dense); w, the bytes of a rank or of the number
//! of a document, 4 to 8, as few as the number of fingerprints that were read needs; the family of the design (0 scan, 1 groups, 2 nested, 3 biplane,
//! 4 affine, 5 projective), how many numbers describe it, and these numbers (for each group: errors, blocks, chosen; for each level: blocks); 1 if
//! the scheme is known, else 0; scheme id; number of fingerprints that were read; number of distinct ones; number of tables; for each table: key mask
//! (low half, high half), address mask (low, high), budget, unit of the positions in the overflow, offset and length of three sections; 1 if there
//! are ids, else 0; offset and length of their three sections; D / 65536; and for each 65536 bytes before D their check, seeded with their number,
//! counted from zero.
//!
//! The sections of a packed table are: the rank of the first entry of each bucket, and of the end (w bytes each), followed by eight bytes more; the
//! entries, back to back, followed by eight bytes more; nothing. Those of a table of cache-line buckets: with ids, the rank of the first entry of
//! each bucket (w bytes each) followed by eight bytes more, else nothing; a line of 64 bytes for each bucket; the overflow entries. An entry holds
//! the bits outside the address mask, from the lowest to the highest, in as few whole bytes as possible; the entries of a bucket ascend. A line holds
//! as many entries as fit 60 bytes. Its last four bytes are the number of entries of the bucket if all fit. Otherwise they are the number that
//! fit, plus one, plus a position in the overflow, in the unit of the table: there are the number of all entries of the bucket (4 bytes), and those
//! that are not in the line. The unit is 16 bytes, doubled as often as needed for 2^32 of them to be enough.
//!
//! Those of a dense table: the number of entries before each 64th bucket, and in all (w bytes each), followed by eight bytes more; for each bucket in
//! turn, a zero bit for each of its entries and then a one bit; the entries, back to back, each as the bits outside the address mask. Bits start at
//! the lowest of each byte; the last two sections are padded with zeros to a whole byte, and 24 bytes more.
//!
//! The sections of the ids are: the number of the first document of each rank, and of the end (w bytes each); the end of the id of each document (8
//! bytes each); the ids, UTF-8, back to back. The rank of a code is the number of entries before it in the first table; documents with equal codes
//! are ordered by id.

use super::code::Word;
use super::design::Design;
use super::file_error::{FileError, FileFormat, number};
use super::index::TableIndex;
use super::layout::Layout;
use super::shared_bytes::SharedBytes;
use super::table::{ProbeTable, TableNumbers};
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

mod directory;
mod pages;
mod write;

use directory::{StoredDirectory, StoredTable};
pub use pages::{CheckedFile, PageChecks};
pub use write::{IdTexts, IndexFileWriter};

const FORMAT: FileFormat = FileFormat {
    magic: "LKIX",
    file: "fingerprint index",
    kind: "index",
    version: 2,
};
const HEAD: usize = 64;
const TRAILER: usize = 32;
/// Number of bytes under one check.
const PAGE: usize = PageChecks::PAGE;

/// Returns the first bytes of a file.
fn head(scheme: Option<u64>, bits: u32) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&FORMAT.start());
    head[8..16].copy_from_slice(&scheme.unwrap_or(0).to_le_bytes());
    head[16..24].copy_from_slice(&u64::from(bits).to_le_bytes());
    let check = xxh3_64(&head[..24]);
    head[24..32].copy_from_slice(&check.to_le_bytes());
    head
}

/// An index in a file that is held in memory.
///
/// [`IndexFile::open`] checks the directory and all bucket starts, so that no search can go astray. Entries are checked by [`IndexFile::verify`], ids
/// whenever they are read, until that has checked them all.
///
/// ```
/// use lookalike_hamming::{
///     BuildLimits, Design, Family, IdTexts, IndexFile, IndexFileWriter, Layout, share,
/// };
///
/// let codes = [0x0123_u64, 0x0122, u64::MAX];
/// let ids = IdTexts { texts: "a.htmlb.htmlfull", ends: &[6, 12, 16] };
/// let design = Design::new(Family::budgets(&[1, 1]), 64, 3)?;
/// let mut writer = IndexFileWriter::new(Vec::new(), None, &design, Layout::Packed)?;
/// while writer.next_table(&codes[..], Some(ids), BuildLimits::default())? {}
///
/// // Map a large file instead: anything that is `AsRef<[u8]>` can be opened.
/// let file = IndexFile::<u64>::open(share(writer.finish()?))?;
/// let (mut found, mut ids) = (Vec::new(), Vec::new());
/// file.index().search(0x0123, 3, &mut |code, _| found.push(code))?;
/// for code in found {
///     file.ids(code, &mut ids)?;
/// }
/// ids.sort_unstable();
/// assert_eq!(ids, ["a.html", "b.html"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct IndexFile<C: Word> {
    file: CheckedFile,
    directory: StoredDirectory,
    index: TableIndex<C>,
}

/// Returns the width of the codes of an index file from its first bytes, which determines the `C` of the [`IndexFile`] that opens it.
///
/// # Errors
///
/// Returns [`FileError`] if these are not the first 64 bytes of an index of a known version.
pub fn index_width(first: &[u8]) -> Result<u32, FileError> {
    let Some(head) = first.first_chunk::<HEAD>() else {
        let offset = first.len() as u64;
        return Err(FileError::Truncated { offset });
    };
    FORMAT.check(&head[..32])?;
    Ok(number(&head[16..24]) as u32)
}

impl<C: Word> IndexFile<C> {
    /// Opens the bytes of a whole file. Takes time linear in the number of buckets for [`Layout::Packed`] and [`Layout::Dense`], constant time for
    /// [`Layout::CacheLineBuckets`].
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the bytes are not a whole index of a known version for codes of this width.
    pub fn open(bytes: SharedBytes) -> Result<Self, FileError> {
        let whole = (*bytes).as_ref();
        let found = index_width(whole)?;
        if found != C::BITS {
            let wanted = C::BITS;
            return Err(FileError::OtherWidth { found, wanted });
        }
        let directory = StoredDirectory::read(whole)?;
        let inconsistent = FileError::Damaged {
            offset: directory.offset,
            what: "the tables do not match the directory",
        };
        // Both places have scheme and width, each under its own check: files put together from two do not agree.
        if directory.bits != found || head(directory.scheme, found) != whole[..HEAD] {
            return Err(inconsistent);
        }
        // The sections that lead a search to its entries.
        let leading = match directory.layout {
            Layout::Packed => 0..1,
            // The counts and positions in a line are bounded when they are read.
            Layout::CacheLineBuckets => 0..0,
            Layout::Dense => 0..2,
        };
        for table in &directory.tables {
            // Directories are checked whole at the start, because a wrong bucket start would send a search anywhere. Entries are many gigabytes, and
            // a wrong one only gives a wrong answer, which `verify` finds.
            for section in &table.sections[leading.clone()] {
                directory.pages.check(whole, section)?;
            }
        }
        let layout = directory.layout;
        let tables = directory.tables.iter().map(|stored| {
            let table = ProbeTable::shared(
                &stored.key,
                stored.address,
                layout,
                TableNumbers {
                    ranks: directory.rank_bytes,
                    unit: stored.unit,
                },
                &bytes,
                &stored.sections,
            );
            table.filter(|table| {
                // The entries of lines are not counted, because that would read them all.
                layout == Layout::CacheLineBuckets || table.len() as u64 == directory.distinct
            })
        });
        let tables: Option<Vec<_>> = tables.collect();
        let design = Design::stored(
            found,
            directory.radius,
            directory.family.clone(),
            directory.tables.iter().map(|table| table.key).collect(),
        );
        let distinct = directory.distinct as usize;
        let tables = tables.ok_or(inconsistent)?;
        Ok(Self {
            index: TableIndex::of_tables(design, layout, tables, distinct),
            file: CheckedFile::new(bytes, directory.pages.clone()),
            directory,
        })
    }

    /// Returns the index over the tables, to search.
    pub fn index(&self) -> &TableIndex<C> {
        &self.index
    }

    /// Returns the scheme of the fingerprints, if it is known.
    pub fn scheme(&self) -> Option<u64> {
        self.directory.scheme
    }

    /// Returns the number of fingerprints that were read, including equal ones.
    pub fn documents(&self) -> u64 {
        self.directory.documents
    }

    /// Returns true if the fingerprints have ids.
    pub fn has_ids(&self) -> bool {
        self.directory.ids.is_some()
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.whole().len() as u64
    }

    /// Appends the ids of a code to `ids`, ascending; nothing if the code is not stored.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset if the bytes read do not match their checksum.
    pub fn ids<'a>(&'a self, code: C, ids: &mut Vec<&'a str>) -> Result<(), FileError> {
        let Some(sections) = &self.directory.ids else {
            return Ok(());
        };
        let Some(rank) = self.index.rank(code) else {
            return Ok(());
        };
        let width = self.directory.rank_bytes;
        self.file.ids(sections, width, rank, ids)
    }

    /// Visits every code with the number of its copies, in the order of [`TableIndex::for_each`]; without ids each code counts as one copy.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] if the counts do not match their checksum.
    pub fn copies(&self, visit: &mut dyn FnMut(C, u64)) -> Result<(), FileError> {
        let Some([firsts, ..]) = &self.directory.ids else {
            self.index.for_each(&mut |code| visit(code, 1));
            return Ok(());
        };
        self.file.check(firsts)?;
        let bytes = self.directory.rank_bytes.get();
        let mut firsts = self.file.whole()[firsts.clone()]
            .chunks_exact(bytes)
            .map(number);
        let mut first = firsts.next().unwrap_or(0);
        self.index.for_each(&mut |code| {
            let end = firsts.next().unwrap_or(first);
            visit(code, end.saturating_sub(first));
            first = end;
        });
        Ok(())
    }

    /// Checks every byte.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset of the first page that does not match its checksum.
    pub fn verify(&self) -> Result<(), FileError> {
        // The rest has its own check, which was compared when the file was opened.
        self.file.verify()
    }

    /// Checks every byte by reading `file`, which must be at the start of the file that this index maps. Touched pages of a mapping count as memory
    /// of the process, and [`IndexFile::verify`] touches all of them.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the file cannot be read, or a page does not match its checksum.
    pub fn verify_read(&self, file: &mut impl Read) -> Result<(), FileError> {
        self.file.verify_read(file)
    }
}

impl<C: Word> std::fmt::Debug for IndexFile<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("IndexFile");
        shown.field("bytes", &self.bytes());
        shown.field("design", self.index.design()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fmt::Write;

    use super::*;
    use crate::family::Family;
    use crate::index::BuildLimits;
    use crate::shared_bytes::share;

    thread_local! {
        /// Number of pages that this thread has checked.
        pub(super) static CHECKED_PAGES: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_page_was_checked_again_for_each_id_that_was_read() {
        const IDS: usize = 1000;
        let (mut texts, mut ends) = (String::new(), Vec::new());
        for number in 0..IDS {
            write!(texts, "document {number}").unwrap();
            ends.push(texts.len() as u64);
        }
        let texts = IdTexts {
            texts: &texts,
            ends: &ends,
        };
        let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
        let mut writer = IndexFileWriter::new(Vec::new(), None, &design, Layout::Packed).unwrap();
        let codes = [7_u64; IDS];
        while writer
            .next_table(&codes[..], Some(texts), BuildLimits::default())
            .unwrap()
        {}
        let file = IndexFile::<u64>::open(share(writer.finish().unwrap())).unwrap();
        let checked = || {
            CHECKED_PAGES.set(0);
            let mut ids = Vec::new();
            file.ids(7, &mut ids).unwrap();
            assert_eq!(ids.len(), IDS);
            CHECKED_PAGES.get()
        };
        // Each of the three sections of the ids is shorter than a page, and may lie on two.
        assert!((1..=6).contains(&checked()));
        file.verify().unwrap();
        assert_eq!(checked(), 0);
    }
}
