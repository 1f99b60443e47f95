//! File format of an archive. Numbers are little-endian; the parts follow each other:
//!
//! ```text
//! 8 bytes   "LKARCHV\n"
//! u32 x 2   version of the format; 0
//! ...       blocks: zstd frames, one behind the other, each with the checksum of its content
//! ...       directory: a zstd frame
//! u64 x 4   offset of the directory, its compressed length, its length, XXH3-64 of its compressed bytes
//! u64       XXH3-64 of these 32 bytes
//! 8 bytes   "LKARCEND"
//! ```
//!
//! The directory has these tables. A table holds the first byte of each row, then the second byte of each, and so on:
//!
//! ```text
//! u64 x 5   numbers of sources, blocks, records; bytes of names, bytes of ids (each number by itself)
//! sources   length of the name, decompressed bytes (u64)
//! blocks    compressed length, length, XXH3-64 of the compressed bytes, prefix (u64): 0, or the number of a record, from 1
//! records   offset in the source, length (u64); source, lower half of XXH3-64, length of the id, kind (u32): 0 kept, 1 a copy of the last kept one
//!           before it, 2 bytes between documents
//! ...       names of sources; ids of records
//! ```
//!
//! The contents of all blocks form one stream, and the records are its parts, in order. A record of at most [`MAX_RECORD_IN_BLOCK`] bytes lies in one
//! block. The prefix of a block is a kept record in a block without a prefix, and every record of the block is a copy of it, so reading a record
//! takes at most two blocks. Bytes between documents are blank lines, byte order marks, and what could not be read as a document. The records of a
//! source cover every byte of it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use bytemuck::{CheckedBitPattern, NoUninit, cast_slice};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const MAGIC: [u8; 8] = *b"LKARCHV\n";
pub(crate) const VERSION: u32 = 2;
pub(crate) const HEADER_BYTES: u64 = 16;
pub(crate) const END_MAGIC: [u8; 8] = *b"LKARCEND";
pub(crate) const TRAILER_BYTES: u64 = 48;

/// Maximum bytes of a record that lies in one block: the size of the largest block.
pub(crate) const MAX_RECORD_IN_BLOCK: u64 = 32 << 20;

/// A directory has at most this many times its compressed bytes plus [`SMALL_DIRECTORY`], since hashes of records do not compress.
pub(crate) const DIRECTORY_RATIO: u64 = 512;
pub(crate) const SMALL_DIRECTORY: u64 = 1 << 20;

// The numbers of the variants are part of the format.
/// Role of a record in its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit, CheckedBitPattern)]
#[repr(u32)]
pub(crate) enum ArchivedKind {
    /// A document that `dedup` keeps.
    Kept,
    /// A copy of the last kept document before it.
    Copy,
    /// Bytes that belong to no document.
    Between,
}

/// A record of an archive, as its directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit, CheckedBitPattern)]
#[repr(C)]
pub(crate) struct ArchivedRecord {
    /// Offset in the decompressed source.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) source: u32,
    /// Its [`record_hash`].
    pub(crate) hash: u32,
    pub(crate) id_bytes: u32,
    pub(crate) kind: ArchivedKind,
}

impl ArchivedRecord {
    /// Returns a record without bytes, at an offset in a source.
    pub(crate) fn empty(kind: ArchivedKind, source: u32, offset: u64) -> Self {
        Self {
            offset,
            length: 0,
            source,
            hash: record_hash(xxh3_64(b"")),
            id_bytes: 0,
            kind,
        }
    }
}

/// A block of an archive, as its directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit, CheckedBitPattern)]
#[repr(C)]
pub(crate) struct ArchivedBlock {
    /// Compressed bytes in the file.
    pub(crate) packed: u64,
    pub(crate) length: u64,
    /// XXH3-64 of its compressed bytes.
    pub(crate) hash: u64,
    /// Number of the record that serves as its prefix, from 1; 0 if there is none.
    pub(crate) prefix: u64,
}

impl ArchivedBlock {
    /// Returns the record that serves as its prefix.
    pub(crate) fn prefix(&self) -> Option<usize> {
        self.prefix.checked_sub(1).map(|record| record as usize)
    }
}

/// A source of an archive: its path below the output directory, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedSource {
    pub(crate) name: PathBuf,
    pub(crate) length: u64,
}

/// The directory of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArchiveDirectory {
    pub(crate) sources: Vec<ArchivedSource>,
    pub(crate) blocks: Vec<ArchivedBlock>,
    pub(crate) records: Vec<ArchivedRecord>,
    /// All ids, concatenated.
    pub(crate) ids: String,
    /// End of each record's id in `ids`.
    pub(crate) id_ends: Vec<usize>,
}

/// Positions computed from a directory.
#[derive(Debug)]
pub(crate) struct ArchivePositions {
    /// Start of each record in the stream, and the end of the last.
    pub(crate) records: Vec<u64>,
    /// Start of each block in the stream, and the end of the last.
    pub(crate) blocks: Vec<u64>,
    /// Offset of each block in the file, and the end of the last.
    pub(crate) offsets: Vec<u64>,
}

impl ArchiveDirectory {
    /// Returns the id of a record.
    pub(crate) fn id(&self, record: usize) -> &str {
        let start = record
            .checked_sub(1)
            .map_or(0, |before| self.id_ends[before]);
        &self.ids[start..self.id_ends[record]]
    }

    /// Adds the id of the next record.
    pub(crate) fn push_id(&mut self, id: &str) {
        self.records[self.id_ends.len()].id_bytes = id.len() as u32;
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len());
    }

    /// Returns the bytes of memory that a directory takes when it is written or read, with its encoded form, for ids of `ids` bytes in total.
    pub(crate) fn memory(records: u64, ids: u64) -> u64 {
        // Twice, for its encoded form; the end of its id, its position, and the order in which it is checked.
        let each = 2 * size_of::<ArchivedRecord>() as u64 + 2 * 8 + 4;
        records * each + 2 * ids
    }

    /// Encodes the directory.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let sources = self.sources.iter();
        let named = sources.map(|source| (source.name.as_os_str().as_bytes(), source.length));
        let (names, lengths): (Vec<&[u8]>, Vec<u64>) = named.unzip();
        let rows = names.iter().zip(lengths);
        let rows: Vec<SourceRow> = rows
            .map(|(name, length)| [name.len() as u64, length])
            .collect();
        let names = names.concat();
        let (blocks, records) = (&self.blocks, &self.records);
        let counts = [
            rows.len(),
            blocks.len(),
            records.len(),
            names.len(),
            self.ids.len(),
        ];
        let counts = counts.map(|count| count as u64);
        // A list that grows would take up to three times as much for a moment.
        let mut out = Vec::with_capacity(40 + bytes_of_tables(&counts).unwrap_or(0) as usize);
        out.extend_from_slice(cast_slice(&counts));
        put_rows(&mut out, &rows);
        put_rows(&mut out, blocks);
        put_rows(&mut out, records);
        out.extend_from_slice(&names);
        out.extend_from_slice(self.ids.as_bytes());
        out
    }

    /// Decodes a directory and checks it. The blocks must end at `end`, an offset in the file. The error is the reason in words.
    pub(crate) fn decode(bytes: &[u8], end: u64) -> Result<(Self, ArchivePositions), &'static str> {
        let (counts, mut rest) = bytes.split_first_chunk::<40>().ok_or("it is too short")?;
        let counts: [u64; 5] = bytemuck::pod_read_unaligned(counts);
        // Check before allocating: counts come from the file, so they must agree with the bytes that are present. Records have 32-bit numbers, in
        // prefixes as well as in the order below.
        if bytes_of_tables(&counts) != Some(rest.len() as u64) || counts[2] > u64::from(u32::MAX) {
            return Err("its length does not match its count");
        }
        // Every count is now bounded by the bytes that are present.
        let [sources, blocks, records, names, _] = counts.map(|count| count as usize);
        let sources: Vec<SourceRow> = take_rows(&mut rest, sources)?;
        let blocks = take_rows(&mut rest, blocks)?;
        let records: Vec<ArchivedRecord> = take_rows(&mut rest, records)?;
        let (names, ids) = rest.split_at(names);
        let name_ends = ends(sources.iter().map(|source| source[0]), names.len())?;
        let mut start = 0;
        let source = |(end, source): (usize, &SourceRow)| ArchivedSource {
            name: OsStr::from_bytes(&names[std::mem::replace(&mut start, end)..end]).into(),
            length: source[1],
        };
        let lengths = records.iter().map(|record| u64::from(record.id_bytes));
        let directory = Self {
            sources: name_ends.into_iter().zip(&sources).map(source).collect(),
            id_ends: ends(lengths, ids.len())?,
            blocks,
            records,
            ids: match std::str::from_utf8(ids) {
                Ok(ids) => ids.to_owned(),
                Err(_) => return Err("an id is not UTF-8"),
            },
        };
        if !directory
            .id_ends
            .iter()
            // The ids together are UTF-8, but a length could still cut a character in two, and slicing there would panic.
            .all(|&end| directory.ids.is_char_boundary(end))
        {
            return Err("an id is not UTF-8");
        }
        directory.check_names()?;
        directory.check_sources()?;
        let positions = directory.positions(end)?;
        directory.check_prefixes(&positions)?;
        Ok((directory, positions))
    }

    /// Refuses names that lead outside the output directory, and names that collide.
    fn check_names(&self) -> Result<(), &'static str> {
        let mut names = HashSet::new();
        for source in &self.sources {
            if !is_safe(&source.name) {
                return Err("the name of a source is not a relative path");
            }
            if !names.insert(&*source.name) {
                return Err("two sources have one name");
            }
        }
        // If one name were a file and also a directory of another, extraction would fail midway.
        let is_above = |name: &Path| name.ancestors().skip(1).any(|above| names.contains(above));
        match self.sources.iter().any(|source| is_above(&source.name)) {
            true => Err("the name of one source is a directory in the path of another"),
            false => Ok(()),
        }
    }

    /// Checks that the records of each source cover it.
    fn check_sources(&self) -> Result<(), &'static str> {
        const GAP: &str = "records do not cover their source";
        let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
        let record = |number: u32| &self.records[number as usize];
        // An empty record shares its offset with the next one, so sort the shorter one first.
        order.sort_unstable_by_key(|&number| {
            (
                record(number).source,
                record(number).offset,
                record(number).length,
            )
        });
        // Each record must start where the previous one of its source ends. Without gaps or overlaps, extraction restores every byte.
        let mut ends = vec![0_u64; self.sources.len()];
        for record in order.into_iter().map(record) {
            let end = ends
                .get_mut(record.source as usize)
                .ok_or("a record has no source")?;
            if record.offset != *end {
                return Err(GAP);
            }
            *end = end.checked_add(record.length).ok_or(GAP)?;
        }
        let lengths = self.sources.iter().map(|source| source.length);
        match lengths.eq(ends) {
            true => Ok(()),
            false => Err(GAP),
        }
    }

    fn positions(&self, end: u64) -> Result<ArchivePositions, &'static str> {
        const LONG: &str = "lengths are too large";
        // Readers allocate memory by these lengths.
        let sizes_fit = |block: &ArchivedBlock| (1..=MAX_RECORD_IN_BLOCK).contains(&block.length);
        if !self.blocks.iter().all(sizes_fit) {
            return Err("a block has an invalid size");
        }
        let positions = ArchivePositions {
            records: sums(0, self.records.iter().map(|record| record.length)).ok_or(LONG)?,
            blocks: sums(0, self.blocks.iter().map(|block| block.length)).ok_or(LONG)?,
            offsets: sums(HEADER_BYTES, self.blocks.iter().map(|block| block.packed))
                .ok_or(LONG)?,
        };
        if positions.offsets.last() != Some(&end) {
            return Err("blocks do not end where the directory begins");
        }
        // Otherwise `block_of` would be asked for a byte outside of all blocks.
        if positions.records.last() != positions.blocks.last() {
            return Err("records and blocks differ in length");
        }
        for (record, &start) in self.records.iter().zip(&positions.records) {
            if record.length == 0 && record.hash != record_hash(xxh3_64(b"")) {
                return Err("an empty record has the hash of a text");
            }
            let is_split = record.length > 0
                && positions.block_of(start) != positions.block_of(start + record.length - 1);
            if is_split && record.length <= MAX_RECORD_IN_BLOCK {
                return Err("a record that fits in one block is split");
            }
        }
        Ok(positions)
    }

    fn check_prefixes(&self, positions: &ArchivePositions) -> Result<(), &'static str> {
        let mut kinds = self.records.iter().map(|record| record.kind);
        // Only the first document can lack a survivor: a later copy always has some kept record before it.
        if kinds.find(|&kind| kind != ArchivedKind::Between) == Some(ArchivedKind::Copy) {
            return Err("a copy precedes every original");
        }
        for (number, block) in self.blocks.iter().enumerate() {
            let Some(prefix) = block.prefix() else {
                continue;
            };
            let record = self.records.get(prefix).ok_or("a prefix is not a record")?;
            let fits = record.kind == ArchivedKind::Kept
                && (1..=MAX_RECORD_IN_BLOCK).contains(&record.length);
            // The prefix lies in an earlier block without a prefix, so reading a record takes at most two blocks, and prefixes cannot form a loop.
            let place = fits.then(|| positions.block_of(positions.records[prefix]));
            if !place.is_some_and(|place| place < number && self.blocks[place].prefix == 0) {
                return Err("a prefix is not in an earlier block without a prefix");
            }
        }
        Ok(())
    }
}

impl ArchivePositions {
    /// Returns the block that contains a byte of the stream.
    pub(crate) fn block_of(&self, at: u64) -> usize {
        // No block is empty, so starts ascend strictly; the first is 0, so one of them is never beyond `at`.
        self.blocks.partition_point(|&start| start <= at) - 1
    }
}

/// Returns, starting at `first`, the running sum before each number and after the last. `None` on overflow.
fn sums(first: u64, numbers: impl ExactSizeIterator<Item = u64>) -> Option<Vec<u64>> {
    let mut sums = Vec::with_capacity(numbers.len() + 1);
    let mut sum = first;
    sums.push(sum);
    for number in numbers {
        sum = sum.checked_add(number)?;
        sums.push(sum);
    }
    Some(sums)
}

/// Tells whether a path stays below the directory that it is joined to.
pub(crate) fn is_safe(name: &Path) -> bool {
    let bytes = name.as_os_str().as_bytes();
    let mut rebuilt = PathBuf::new();
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_));
    rebuilt.extend(name.components().filter(|&component| is_plain(component)));
    // `a//b`, `./a`, `a/` and paths with other than normal components are spelled differently when rebuilt.
    !bytes.is_empty() && !bytes.contains(&0) && rebuilt.as_os_str().as_bytes() == bytes
}

/// Returns the half of a hash that a record stores. Its block has a whole hash, so 32 bits are enough to recognise a mix-up of records.
pub(crate) fn record_hash(hash: u64) -> u32 {
    hash as u32
}

/// A source in a directory: the length of its name, and its bytes.
type SourceRow = [u64; 2];

/// Returns the bytes of what follows these counts in a directory.
fn bytes_of_tables(counts: &[u64; 5]) -> Option<u64> {
    let source = size_of::<SourceRow>();
    let widths = [
        source,
        size_of::<ArchivedBlock>(),
        size_of::<ArchivedRecord>(),
        1,
        1,
    ];
    counts
        .iter()
        .zip(widths)
        .try_fold(0_u64, |sum, (count, each)| {
            sum.checked_add(count.checked_mul(each as u64)?)
        })
}

/// Appends a table byte by byte. The upper bytes of most numbers are equal and compress to almost nothing when they are adjacent.
fn put_rows<T: NoUninit>(out: &mut Vec<u8>, rows: &[T]) {
    let (start, count) = (out.len(), rows.len());
    out.resize(start + size_of_val(rows), 0);
    for (row, bytes) in rows.iter().enumerate() {
        for (place, &byte) in bytemuck::bytes_of(bytes).iter().enumerate() {
            out[start + place * count + row] = byte;
        }
    }
}

/// Takes a table, whose bytes must be present.
fn take_rows<T: CheckedBitPattern>(rest: &mut &[u8], count: usize) -> Result<Vec<T>, &'static str> {
    let bytes;
    (bytes, *rest) = rest.split_at(count * size_of::<T>());
    let mut row_bytes = vec![0; size_of::<T>()];
    let row = |row: usize| {
        for (place, byte) in row_bytes.iter_mut().enumerate() {
            *byte = bytes[place * count + row];
        }
        // Every other field takes any bits.
        bytemuck::checked::try_pod_read_unaligned(&row_bytes)
            .map_err(|_| "a record is of an unknown kind")
    };
    (0..count).map(row).collect()
}

/// Returns the ends of strings of these lengths, which must add up to `bytes`.
fn ends(
    lengths: impl ExactSizeIterator<Item = u64>,
    bytes: usize,
) -> Result<Vec<usize>, &'static str> {
    let sums = sums(0, lengths).filter(|sums| sums.last() == Some(&(bytes as u64)));
    let sums = sums.ok_or("the lengths of the strings do not add up")?;
    Ok(sums[1..].iter().map(|&end| end as usize).collect())
}
