//! An index from 64-bit keys to documents, on disk: sorted entries in checksummed blocks of the same size, of which only the first keys are
//! in memory. A lookup usually reads one or two blocks.

use super::pages::{BlockReader, BlockWriter, CHECK, IndexLocation};
use crate::codec::fixed;
use crate::error::Result;

/// A key, and the number of a document.
pub(crate) type IndexEntry = (u64, u32);

const ENTRY: usize = 12;
/// Number of entries in a block, which stays below 4 KiB including its checksum.
const ENTRIES: usize = 340;
/// Number of keys that are passed on at once.
const KEYS: usize = 8192;
const STORED: usize = ENTRIES * ENTRY + CHECK;

lookalike::words! {
    /// Keys of the indexes of a run, in the order of its footer.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum IndexKey {
        /// Hashes of ids.
        Id = "ids",
        /// Hashes of paragraphs.
        Paragraph = "paragraphs",
        /// The first eight bytes of the hashes of texts.
        Text = "texts",
        /// Fingerprints of paragraphs.
        ParagraphCode = "paragraphs by fingerprint",
    }
}

/// An index in a run file.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedIndex {
    pub(crate) offset: u64,
    pub(crate) count: u64,
    /// First key of each block.
    pub(crate) firsts: Vec<u64>,
}

/// Tells whether an index ends before `end` and has a first key for each of its blocks.
pub(super) fn fits(index: &IndexLocation, end: u64) -> bool {
    let blocks = index.count.div_ceil(ENTRIES as u64);
    let entries = index.count.checked_mul(ENTRY as u64);
    // A block has hundreds of entries, so this product cannot overflow.
    let stored = entries.and_then(|bytes| bytes.checked_add(blocks * CHECK as u64));
    let ends = stored.and_then(|stored| stored.checked_add(index.offset));
    ends.is_some_and(|at| at <= end) && index.first_keys.length == blocks * 8
}

/// Writes entries, which must be in ascending order.
pub(crate) fn write(
    out: &mut BlockWriter<'_>,
    entries: impl Iterator<Item = Result<IndexEntry>>,
) -> Result<IndexLocation> {
    let offset = out.offset();
    let (mut count, mut first_keys) = (0, Vec::new());
    let mut block = Vec::with_capacity(STORED);
    for entry in entries {
        let (key, document) = entry?;
        if block.is_empty() {
            first_keys.extend_from_slice(&key.to_le_bytes());
        }
        block.extend_from_slice(&key.to_le_bytes());
        block.extend_from_slice(&document.to_le_bytes());
        count += 1;
        if block.len() == ENTRIES * ENTRY {
            out.block(&block)?;
            block.clear();
        }
    }
    if !block.is_empty() {
        out.block(&block)?;
    }
    Ok(IndexLocation {
        offset,
        count,
        first_keys: out.section(&first_keys)?,
    })
}

impl SortedIndex {
    /// Visits the documents of a key in ascending order, until `each` returns false.
    pub(crate) fn find(
        &self,
        reader: &BlockReader,
        key: u64,
        each: &mut dyn FnMut(u32) -> bool,
    ) -> Result<()> {
        // The entries of a key may start in the block before the first one that begins with it.
        let mut block = self
            .firsts
            .partition_point(|&first| first < key)
            .saturating_sub(1);
        let mut bytes = Vec::new();
        while block < self.firsts.len() && self.firsts[block] <= key {
            self.block(reader, block, &mut bytes)?;
            let (entries, _) = bytes.as_chunks::<ENTRY>();
            // Keys with many documents may span several blocks; the later ones are visited from their beginning.
            let from = entries.partition_point(|entry| fixed(&entry[..8]) < key);
            for entry in &entries[from..] {
                if fixed(&entry[..8]) != key || !each(fixed(&entry[8..]) as u32) {
                    return Ok(());
                }
            }
            block += 1;
        }
        Ok(())
    }

    fn block(&self, reader: &BlockReader, block: usize, into: &mut Vec<u8>) -> Result<()> {
        let entries = (self.count as usize - block * ENTRIES).min(ENTRIES);
        let offset = self.offset + (block * STORED) as u64;
        reader.block(offset, entries * ENTRY + CHECK, into)
    }

    /// Tells whether a lookup of `key` finds the block of its entry at position `at`: if the entry is the first of a block, `key` must be
    /// listed as its first key.
    pub(crate) fn is_found_by_lookup(&self, at: usize, key: u64) -> bool {
        !at.is_multiple_of(ENTRIES) || self.firsts.get(at / ENTRIES) == Some(&key)
    }

    /// Opens the index at a location in the file of `reader`.
    pub(crate) fn open(reader: &BlockReader, location: IndexLocation) -> Result<Self> {
        Ok(Self {
            offset: location.offset,
            count: location.count,
            firsts: reader.words(location.first_keys)?,
        })
    }

    /// Passes the distinct keys to `each` in ascending order, many at a time.
    pub(crate) fn keys(
        &self,
        reader: &BlockReader,
        each: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let (mut keys, mut last) = (Vec::with_capacity(KEYS), None);
        for entry in self.iter(reader) {
            let (key, _) = entry?;
            if last.replace(key) == Some(key) {
                continue;
            }
            keys.push(key);
            if keys.len() == KEYS {
                each(&keys)?;
                keys.clear();
            }
        }
        each(&keys)
    }

    /// Returns all entries in ascending order.
    pub(crate) fn iter<'a>(&'a self, reader: &'a BlockReader) -> SortedEntries<'a> {
        SortedEntries {
            index: self,
            reader,
            next: 0,
            bytes: Vec::new(),
            at: 0,
        }
    }
}

/// An iterator over the entries of an index, block by block.
pub(crate) struct SortedEntries<'a> {
    index: &'a SortedIndex,
    reader: &'a BlockReader,
    next: usize,
    bytes: Vec<u8>,
    at: usize,
}

impl Iterator for SortedEntries<'_> {
    type Item = Result<IndexEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            if self.next == self.index.firsts.len() {
                return None;
            }
            if let Err(error) = self.index.block(self.reader, self.next, &mut self.bytes) {
                // The iterator ends after an error.
                self.next = self.index.firsts.len();
                self.bytes.clear();
                self.at = 0;
                return Some(Err(error));
            }
            self.next += 1;
            self.at = 0;
        }
        let entry = &self.bytes[self.at..self.at + ENTRY];
        self.at += ENTRY;
        Some(Ok((fixed(&entry[..8]), fixed(&entry[8..]) as u32)))
    }
}
