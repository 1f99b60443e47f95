//! Reading of segments: entries of sorted sections by their keys, and records by their numbers.

use std::ops::Range;
use std::path::Path;

use lookalike_corpus::OrderNumber;

use crate::dedup::collection::blocks::{BlockRun, BlockTable, CONTENT, CheckedBlockFile};
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::segment::{
    CATEGORY, FINGERPRINT, NUMBER, PAGE, PAIR, ROW, SIZE, SegmentEntry, TEXT, VISIBLE,
};

/// A segment that is open for reading.
pub(crate) struct SegmentFile {
    file: CheckedBlockFile,
    pub(crate) entry: SegmentEntry,
    /// Rows of classes, sorted by the upper half of their hash.
    pub(crate) rows: SortedTable,
    sizes: BlockTable,
    pub(crate) keys: SortedTable,
    pub(crate) ids: SortedTable,
}

/// A table of entries that begin with an ascending `u64`.
///
/// Memory: 8 bytes per block.
pub(crate) struct SortedTable {
    table: BlockTable,
    /// First `u64` of each block.
    index: Vec<u64>,
}

/// An entry that was searched for and found.
pub(crate) struct FoundEntry<'b> {
    /// Its number in the table.
    pub(crate) number: u64,
    /// Index of its `u64` in `wanted`.
    pub(crate) wanted: usize,
    pub(crate) bytes: &'b [u8],
}

/// The place of a record, and the hash of its class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentPosition {
    pub(crate) hash: u128,
    at: u64,
    bytes: usize,
}

/// A decoded record.
#[derive(Debug, Default)]
pub(crate) struct SegmentRecord {
    pub(crate) fingerprint: Option<u128>,
    pub(crate) category: Option<u64>,
    pub(crate) visible: Option<u128>,
    pub(crate) page: Option<u64>,
    pub(crate) features: Vec<u64>,
    /// Features of the visible text; empty if that is the text that is compared.
    pub(crate) page_features: Vec<u64>,
    pub(crate) test_features: Vec<Vec<u64>>,
    pub(crate) documents: Vec<SegmentDocument>,
}

/// A record in the pieces from which a merged one is assembled.
pub(crate) struct RecordPieces<'b> {
    /// Number of features.
    pub(crate) size: u32,
    /// Facts and sets of the class: the bytes between the number of documents and the first document.
    pub(crate) class: &'b [u8],
    pub(crate) documents: Vec<DocumentPiece<'b>>,
}

/// A document of a record: its number in the input, and the bytes after that.
pub(crate) struct DocumentPiece<'b> {
    pub(crate) order: u64,
    pub(crate) rest: &'b [u8],
}

/// Reads the entries of a table of keys or ids in order.
pub(crate) struct TableCursor<'a> {
    pub(crate) segment: &'a SegmentFile,
    table: BlockTable,
    next: u64,
    run: BlockRun,
}

/// An entry of a table of keys or ids.
#[derive(Clone, Copy)]
pub(crate) struct PairEntry {
    pub(crate) key: u64,
    pub(crate) record: u32,
}

/// A document of a record.
#[derive(Clone, Debug)]
pub(crate) struct SegmentDocument {
    /// Its number in the input of the job that added it.
    pub(crate) order: u64,
    pub(crate) length: u64,
    pub(crate) record_hash: u64,
    pub(crate) id: String,
    /// The value that orders survivors, as in a scan: NaN if there is none.
    pub(crate) value: OrderNumber,
    /// The value if it is a text.
    pub(crate) value_text: Option<String>,
}

impl SegmentFile {
    pub(crate) fn open(folder: &Path, entry: &SegmentEntry) -> Result<Self, CollectionError> {
        let path = folder.join(&entry.file);
        let file = CheckedBlockFile::open(&path, entry.identity, entry.content)?;
        let contradiction = || CollectionError::damaged(&path, "its sections do not fill the file");
        if !entry.rows_at.is_multiple_of(CONTENT as u64) {
            return Err(contradiction());
        }
        let mut block = entry.rows_at / CONTENT as u64;
        let mut table = |entries: u64, width: usize| {
            let table = BlockTable {
                first_block: block,
                entries,
                width,
            };
            block = table.end_block();
            table
        };
        // One row more than records, because a record ends where that of the next row starts.
        let rows = table(entry.records.saturating_add(1), ROW);
        let sizes = table(entry.records, SIZE);
        let keys = table(entry.keys, PAIR);
        let ids = table(entry.ids, PAIR);
        // Rows of documents without a text come after those of classes, and are found only by number.
        let entries = entry.classes;
        let rows = BlockTable { entries, ..rows };
        // Indexes follow the tables as plain content, not in blocks of entries.
        let mut at = block.saturating_mul(CONTENT as u64);
        let mut sorted = |table: BlockTable| -> Result<SortedTable, CollectionError> {
            let index = words(&file, at, table.blocks())?;
            at = at.saturating_add(table.blocks().saturating_mul(8));
            Ok(SortedTable { table, index })
        };
        let (rows, keys, ids) = (sorted(rows)?, sorted(keys)?, sorted(ids)?);
        // If the sections fill the file exactly, no position that is computed from them lies outside.
        match at == entry.content && entry.classes <= entry.records {
            true => Ok(Self {
                file,
                entry: entry.clone(),
                rows,
                sizes,
                keys,
                ids,
            }),
            false => Err(contradiction()),
        }
    }

    /// Visits the entries of a table whose `u64` is in `wanted`, which must be ascending and without repetition.
    ///
    /// Reads each block that may contain one of them once, and the blocks between if they are close to each other.
    pub(crate) fn find<E: From<CollectionError>>(
        &self,
        sorted: &SortedTable,
        wanted: &[u64],
        mut visit: impl FnMut(FoundEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Two ascending lists, the index and the wanted values, are merged; both skip what the other lacks.
        let index = &*sorted.index;
        let mut run = BlockRun::default();
        let (mut next, mut block) = (0, 0);
        while let Some(&key) = wanted.get(next).filter(|_| block < index.len()) {
            let begins = gallop(block..index.len(), |block| index[block] < key);
            // Equal keys may start in the block before the first that begins with them.
            block = begins.saturating_sub(1).max(block);
            // No block from here on has the key: all begin behind it.
            if index[block] > key {
                next = gallop(next..wanted.len(), |next| wanted[next] < index[block]);
                continue;
            }
            let blocks = sorted.blocks_ahead(block, &wanted[next..]);
            let first = sorted.table.first_block + block as u64;
            self.file.load(first, blocks as u64, &mut run)?;
            for block in block..block + blocks {
                let content = run.content(sorted.table.first_block + block as u64);
                next = sorted.visit(block, content, wanted, next, &mut visit)?;
            }
            block += blocks;
        }
        Ok(())
    }

    /// Returns the place of a record. If records are looked up in ascending order, most rows are already in `rows`.
    pub(crate) fn place(
        &self,
        record: u32,
        rows: &mut BlockRun,
    ) -> Result<SegmentPosition, CollectionError> {
        let number = self.known(record)?;
        let [high, low, at] = self.row(number, rows)?;
        // The next row has the end of the record.
        let next = number + 1;
        // Across a block boundary, a run of its own, so that `rows` keeps the block of the record.
        let [.., end] = match self.rows.table.block_of(next) == self.rows.table.block_of(number) {
            true => self.row(next, rows)?,
            false => self.row(next, &mut BlockRun::default())?,
        };
        let bytes = end
            .checked_sub(at)
            // The rows follow the records, so a record ends at their start at the latest. Check this before using the values.
            .filter(|_| end <= self.entry.rows_at)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| self.damaged())?;
        Ok(SegmentPosition {
            hash: u128::from(high) << 64 | u128::from(low),
            at,
            bytes,
        })
    }

    fn row(&self, number: u64, rows: &mut BlockRun) -> Result<[u64; 3], CollectionError> {
        let table = &self.rows.table;
        let block = table.block_of(number);
        self.file.load(block, 1, rows)?;
        let row = &rows.content(block)[table.offset_of(number)..];
        Ok([0, 1, 2].map(|word| first_word(&row[word * 8..])))
    }

    /// Returns the number of features of a record, 0 if it has no text. If records are looked up in ascending order, most sizes are already in
    /// `sizes`.
    pub(crate) fn size(&self, record: u32, sizes: &mut BlockRun) -> Result<u32, CollectionError> {
        let number = self.known(record)?;
        let block = self.sizes.block_of(number);
        self.file.load(block, 1, sizes)?;
        let bytes = &sizes.content(block)[self.sizes.offset_of(number)..];
        // Entries lie within blocks and blocks are read whole, so the size is always there.
        Ok(bytes
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    /// Returns the number of the record, or an error if there is no such record.
    fn known(&self, record: u32) -> Result<u64, CollectionError> {
        let number = u64::from(record);
        match number < self.entry.records {
            true => Ok(number),
            false => Err(self.damaged()),
        }
    }

    /// Returns true if a record is a document without a text.
    pub(crate) fn is_classless(&self, record: u32) -> bool {
        u64::from(record) >= self.entry.classes
    }

    /// Reads a record whose class has the sets of `tests` further tests. `bytes` is a buffer.
    pub(crate) fn record(
        &self,
        record: u32,
        place: SegmentPosition,
        tests: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<SegmentRecord, CollectionError> {
        self.file.read(place.at, place.bytes, bytes)?;
        let mut rest = RecordBytes(bytes);
        // A record without a text has no sizes of tests either.
        let tests = match self.is_classless(record) {
            true => 0,
            false => tests,
        };
        rest.record(tests).ok_or_else(|| self.damaged())
    }

    /// Reads a record for merging, whose class has the sets of `tests` further tests. `bytes` is a buffer.
    pub(crate) fn pieces<'b>(
        &self,
        place: SegmentPosition,
        tests: usize,
        bytes: &'b mut Vec<u8>,
    ) -> Result<RecordPieces<'b>, CollectionError> {
        self.file.read(place.at, place.bytes, bytes)?;
        RecordBytes(bytes)
            .pieces(tests)
            .ok_or_else(|| self.damaged())
    }

    /// Returns the number of bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    pub(crate) fn damaged(&self) -> CollectionError {
        CollectionError::damaged(self.file.path(), "its sections are inconsistent")
    }

    /// Checks the whole file. Returns the number of its bytes.
    pub(crate) fn verify(&self) -> Result<u64, CollectionError> {
        self.file.verify()
    }
}

impl<'a> TableCursor<'a> {
    pub(crate) fn new(segment: &'a SegmentFile, sorted: &SortedTable) -> Self {
        Self {
            segment,
            table: sorted.table,
            next: 0,
            run: BlockRun::default(),
        }
    }

    /// Returns the current entry, or `None` after the last.
    pub(crate) fn peek(&mut self) -> Result<Option<PairEntry>, CollectionError> {
        if self.next == self.table.entries {
            return Ok(None);
        }
        let block = self.table.block_of(self.next);
        // Nearly always, the block is there already.
        self.segment.file.load(block, 1, &mut self.run)?;
        let entry = &self.run.content(block)[self.table.offset_of(self.next)..][..PAIR];
        Ok(Some(PairEntry {
            key: first_word(entry),
            record: record_of(entry),
        }))
    }

    /// Moves to the next entry.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }
}

impl SortedTable {
    /// Returns the number of blocks to read together from `block` on, where the first of `wanted` may be: blocks for more of these are included if
    /// they are close.
    fn blocks_ahead(&self, block: usize, wanted: &[u64]) -> usize {
        const KEYS: usize = 64;
        const MAX_BLOCKS_READ: usize = 32;
        let wanted = &wanted[..wanted.len().min(KEYS)];
        let last = wanted.last().copied().unwrap_or(0);
        let end = gallop(block..self.index.len(), |block| self.index[block] <= last);
        let blocks = end - block;
        // Two blocks per key: to read a few blocks in vain costs less than another read, but many would cost more.
        match blocks <= 2 * wanted.len() {
            true => blocks.min(MAX_BLOCKS_READ),
            false => 1,
        }
    }

    /// Visits the wanted entries of a block, from index `next` of `wanted` on. Returns the index of the first that may be in later blocks.
    fn visit<E>(
        &self,
        block: usize,
        content: &[u8],
        wanted: &[u64],
        mut next: usize,
        visit: &mut impl FnMut(FoundEntry<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let BlockTable { entries, width, .. } = self.table;
        let first = block as u64 * self.table.per_block();
        // The last block may have fewer.
        let count = self.table.per_block().min(entries - first) as usize;
        let key_of = |entry: usize| first_word(&content[entry * width..]);
        let mut entry = 0;
        while let Some(&key) = wanted.get(next) {
            entry = gallop(entry..count, |entry| key_of(entry) < key);
            if entry == count {
                break;
            }
            let here = key_of(entry);
            if here > key {
                next = gallop(next..wanted.len(), |next| wanted[next] < here);
                continue;
            }
            while entry < count && key_of(entry) == key {
                visit(FoundEntry {
                    number: first + entry as u64,
                    wanted: next,
                    bytes: &content[entry * width..(entry + 1) * width],
                })?;
                entry += 1;
            }
            if entry == count {
                // The next block may have more entries with this key.
                break;
            }
            next += 1;
        }
        Ok(next)
    }
}

/// Returns the first index of a range for which `is_before` is false, or its end: a search with doubled steps, then halves, because the result is
/// usually near.
fn gallop(places: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = places;
    // All places before `start` are before the result, and none from `end` on is.
    let mut step = 1;
    while step <= end - start {
        let place = start + step - 1;
        if !is_before(place) {
            end = place;
            break;
        }
        start = place + 1;
        step *= 2;
    }
    while start < end {
        let middle = start + (end - start) / 2;
        match is_before(middle) {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    start
}

/// Returns the record number in an entry of keys or ids.
pub(crate) fn record_of(pair: &[u8]) -> u32 {
    u32::from_le_bytes(*pair.last_chunk().unwrap_or(&[0; 4]))
}

/// Returns the hash in an entry of rows.
pub(crate) fn hash_of(row: &[u8]) -> u128 {
    u128::from(first_word(row)) << 64 | u128::from(first_word(&row[8..]))
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

fn words(file: &CheckedBlockFile, at: u64, count: u64) -> Result<Vec<u64>, CollectionError> {
    // A length that no memory can hold exceeds the file, and `read` refuses it.
    let length = usize::try_from(count.saturating_mul(8)).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    file.read(at, length, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(first_word).collect())
}

/// The remaining bytes of a record. All methods return `None` if there are too few.
struct RecordBytes<'b>(&'b [u8]);

impl<'b> RecordBytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (now, later) = self.0.split_at_checked(count)?;
        self.0 = later;
        Some(now)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, later) = self.0.split_first_chunk()?;
        self.0 = later;
        Some(*now)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn hash(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    fn set(&mut self, size: u32) -> Option<Vec<u64>> {
        let bytes = self.take((size as usize).checked_mul(8)?)?;
        Some(bytes.chunks_exact(8).map(first_word).collect())
    }

    fn text(&mut self, length: u32) -> Option<String> {
        String::from_utf8(self.take(length as usize)?.to_vec()).ok()
    }

    fn record(&mut self, tests: usize) -> Option<SegmentRecord> {
        let documents = self.word()?;
        let mut record = self.class(tests)?;
        // The count is not trusted: nothing is reserved for it, and the loop ends when bytes are missing.
        for _ in 0..documents {
            record.documents.push(self.document()?);
        }
        // Remaining bytes show that the record is damaged, as missing ones do.
        self.0.is_empty().then_some(record)
    }

    fn pieces(mut self, tests: usize) -> Option<RecordPieces<'b>> {
        let count = self.word()?;
        let from = self.0;
        // Decoded only to find the end of the class; its bytes are copied as they are.
        let size = self.class(tests)?.features.len() as u32;
        let class = self.since(from);
        let mut documents = Vec::new();
        for _ in 0..count {
            // Behind the order, which merging replaces.
            let from = self.0.get(8..)?;
            let order = self.document()?.order;
            let rest = self.since(from);
            documents.push(DocumentPiece { order, rest });
        }
        let pieces = RecordPieces {
            size,
            class,
            documents,
        };
        self.0.is_empty().then_some(pieces)
    }

    /// Returns the bytes that were taken since the rest was `from`.
    fn since(&self, from: &'b [u8]) -> &'b [u8] {
        &from[..from.len() - self.0.len()]
    }

    /// Reads everything between the number of documents and the first document.
    fn class(&mut self, tests: usize) -> Option<SegmentRecord> {
        let [features, page_features, flags] = [self.number()?, self.number()?, self.number()?];
        let mut record = SegmentRecord::default();
        if flags & FINGERPRINT != 0 {
            record.fingerprint = Some(self.hash()?);
        }
        if flags & CATEGORY != 0 {
            record.category = Some(self.word()?);
        }
        if flags & VISIBLE != 0 {
            record.visible = Some(self.hash()?);
        }
        if flags & PAGE != 0 {
            record.page = Some(self.word()?);
        }
        // Sets have no headers in a record, so all sizes come before the first set.
        let sizes: Vec<u32> = (0..tests).map(|_| self.number()).collect::<Option<_>>()?;
        record.features = self.set(features)?;
        record.page_features = self.set(page_features)?;
        for size in sizes {
            record.test_features.push(self.set(size)?);
        }
        Some(record)
    }

    fn document(&mut self) -> Option<SegmentDocument> {
        let (order, length, record_hash) = (self.word()?, self.word()?, self.word()?);
        let id_length = self.number()?;
        let [kind] = self.array()?;
        let (mut value, mut value_text) = (OrderNumber::default(), None);
        match kind {
            NUMBER => {
                value.nearest = self.array().map(f64::from_le_bytes)?;
                value.rest = self.array().map(i64::from_le_bytes)?;
            }
            TEXT => {
                let length = self.number()?;
                value_text = Some(self.text(length)?);
            }
            _ => value.nearest = f64::NAN,
        }
        Some(SegmentDocument {
            order,
            length,
            record_hash,
            id: self.text(id_length)?,
            value,
            value_text,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::collection::blocks::CheckedBlockWriter;

    /// Creates a segment that has only keys.
    fn segment_of_keys(folder: &Path, keys: &[u64]) -> SegmentFile {
        let mut out = CheckedBlockWriter::create(&folder.join("keys"), 3).unwrap();
        out.write_entry(&[0xff; ROW]).unwrap();
        out.fill_block().unwrap();
        let mut index = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if at % (CONTENT / PAIR) == 0 {
                index.extend_from_slice(&key.to_le_bytes());
            }
            let entry = [&key.to_le_bytes()[..], &(at as u32).to_le_bytes()[..]];
            out.write_entry(&entry.concat()).unwrap();
        }
        out.fill_block().unwrap();
        out.write(&index).unwrap();
        let entry = SegmentEntry {
            file: "keys".to_owned(),
            identity: 3,
            content: out.commit().unwrap(),
            documents: 0,
            classes: 0,
            text_bytes: 0,
            records: 0,
            keys: keys.len() as u64,
            ids: 0,
            orders: 0,
            rows_at: 0,
        };
        SegmentFile::open(folder, &entry).unwrap()
    }

    proptest! {
        #[test]
        fn just_the_wanted_entries_are_visited(
            mut keys in prop_oneof![
                prop::collection::vec(0..30_u64, 0..3_000),
                prop::collection::vec(0..100_000_u64, 0..20_000),
            ],
            wanted in prop::collection::btree_set(prop_oneof![0..30_u64, 0..100_000_u64], 0..300),
            far in prop::collection::btree_set(any::<u64>(), 0..3),
        ) {
            keys.sort_unstable();
            let folder = tempfile::tempdir().unwrap();
            let segment = segment_of_keys(folder.path(), &keys);
            let wanted: Vec<u64> = wanted.union(&far).copied().collect();
            let mut found = Vec::new();
            segment.find(&segment.keys, &wanted, |entry| {
                assert_eq!(entry.number, u64::from(record_of(entry.bytes)));
                found.push((entry.number, wanted[entry.wanted]));
                Ok::<_, CollectionError>(())
            }).unwrap();
            let expected: Vec<(u64, u64)> =
                (0..).zip(keys).filter(|(_, key)| wanted.binary_search(key).is_ok()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_search_that_gallops_finds_the_first_place(
            values in prop::collection::vec(0..50_u32, 0..80),
            from in 0..80_usize,
            bound in 0..55_u32,
        ) {
            let mut values = values;
            values.sort_unstable();
            let from = from.min(values.len());
            let found = gallop(from..values.len(), |place| values[place] < bound);
            prop_assert_eq!(found, from.max(values.partition_point(|&value| value < bound)));
        }
    }
}
