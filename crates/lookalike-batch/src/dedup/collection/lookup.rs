//! Reading a segment: entries of its sorted sections by their keys, and records by their numbers.

use std::path::Path;

use lookalike_corpus::OrderNumber;

use crate::dedup::collection::blocks::CheckedBlockFile;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::segment::{
    CATEGORY, FINGERPRINT, INDEXED, NUMBER, PAGE, PAIR, ROW, SegmentEntry, TEXT, VISIBLE,
};

/// A segment that is read.
pub(crate) struct SegmentFile {
    file: CheckedBlockFile,
    pub(crate) entry: SegmentEntry,
    /// Classes by the upper half of their hash.
    pub(crate) rows: SortedSection,
    pub(crate) keys: SortedSection,
    pub(crate) ids: SortedSection,
}

/// Entries that begin with an ascending `u64`.
///
/// Memory: 8 bytes for 512 entries.
pub(crate) struct SortedSection {
    at: u64,
    entries: u64,
    width: usize,
    index: Vec<u64>,
}

/// The place of a record, and the hash of its class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentPlace {
    pub(crate) hash: u128,
    at: u64,
    bytes: usize,
}

/// Rows that were read last.
#[derive(Default)]
pub(crate) struct RowPage {
    first: Option<u64>,
    bytes: Vec<u8>,
}

impl RowPage {
    /// They fill most of a block.
    const ROWS: u64 = 128;
}

/// A record, taken apart.
#[derive(Debug, Default)]
pub(crate) struct SegmentRecord {
    pub(crate) fingerprint: Option<u128>,
    pub(crate) category: Option<u64>,
    pub(crate) visible: Option<u128>,
    pub(crate) page: Option<u64>,
    pub(crate) features: Vec<u64>,
    /// Empty where a reader sees what is compared.
    pub(crate) page_features: Vec<u64>,
    pub(crate) test_features: Vec<Vec<u64>>,
    pub(crate) documents: Vec<SegmentDocument>,
}

/// A document of a record.
#[derive(Clone, Debug)]
pub(crate) struct SegmentDocument {
    /// Its number in the input of the job that added it.
    pub(crate) order: u64,
    pub(crate) length: u64,
    pub(crate) record_hash: u64,
    pub(crate) id: String,
    pub(crate) value: SegmentValue,
}

/// The value by which a survivor is chosen.
#[derive(Clone, Debug)]
pub(crate) enum SegmentValue {
    None,
    Number(OrderNumber),
    Text(String),
}

impl SegmentFile {
    pub(crate) fn open(folder: &Path, entry: &SegmentEntry) -> Result<Self, CollectionError> {
        let path = folder.join(&entry.file);
        let file = CheckedBlockFile::open(&path, entry.identity, entry.content)?;
        let mut at = entry.rows_at;
        let mut section = |entries: u64, width: usize, more: u64| {
            let section = SortedSection {
                at,
                entries,
                width,
                index: Vec::new(),
            };
            // Numbers of the manifest may be damaged: they saturate, and the end does not fit the file then.
            at = entries
                .saturating_add(more)
                .saturating_mul(width as u64)
                .saturating_add(at);
            section
        };
        // Rows of documents without a text stand behind those of classes and are found by number only.
        let classless = entry.records.saturating_sub(entry.classes) + 1;
        let mut rows = section(entry.classes, ROW, classless);
        let mut keys = section(entry.keys, PAIR, 0);
        let mut ids = section(entry.ids, PAIR, 0);
        let all_rows = entry.records;
        for (section, indexed) in [
            (&mut rows, all_rows),
            (&mut keys, entry.keys),
            (&mut ids, entry.ids),
        ] {
            let count = indexed.div_ceil(INDEXED as u64);
            section.index = words(&file, at, count)?;
            section
                .index
                // Rows are indexed to the last record, but only those of classes ascend and are searched.
                .truncate(section.entries.div_ceil(INDEXED as u64) as usize);
            at = at.saturating_add(count.saturating_mul(8));
        }
        if at != entry.content {
            return Err(CollectionError::damaged(
                &path,
                "its sections do not fill the file",
            ));
        }
        Ok(Self {
            file,
            entry: entry.clone(),
            rows,
            keys,
            ids,
        })
    }

    /// Visits the entries of a section whose `u64` is among `wanted`, which ascend: the number in the section, and the bytes.
    ///
    /// Reads the pages of 512 entries in which a wanted one may stand, once each.
    pub(crate) fn find<E: From<CollectionError>>(
        &self,
        section: &SortedSection,
        wanted: impl Iterator<Item = u64>,
        mut visit: impl FnMut(u64, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut page = SectionPage::default();
        for key in wanted {
            // Equal keys may begin in the page before the first that begins with them.
            let mut number = section
                .index
                .partition_point(|&first| first < key)
                .saturating_sub(1);
            while section.index.get(number).is_some_and(|&first| first <= key) {
                if page.number != Some(number) {
                    page.load(&self.file, section, number)?;
                }
                page.visit(section.width, key, &mut visit)?;
                number += 1;
            }
        }
        Ok(())
    }

    /// The place of a record. Records that are looked at in ascending order find most rows in `page`.
    pub(crate) fn place(
        &self,
        record: u32,
        page: &mut RowPage,
    ) -> Result<SegmentPlace, CollectionError> {
        let number = u64::from(record);
        if number >= self.entry.records {
            return Err(self.damaged());
        }
        let first = number - number % RowPage::ROWS;
        if page.first != Some(first) {
            // The row behind the last one says where its record ends.
            let rows = RowPage::ROWS.min(self.entry.records - first) + 1;
            // A failed read leaves bytes of something else in the page.
            page.first = None;
            let at = self.rows.at + first * ROW as u64;
            self.file.read(at, rows as usize * ROW, &mut page.bytes)?;
            page.first = Some(first);
        }
        let row = (number - first) as usize * ROW;
        let word = |at: usize| first_word(&page.bytes[row + at * 8..]);
        let (at, end) = (word(2), word(5));
        let bytes = end
            .checked_sub(at)
            // Records end where rows begin: nothing that the rows say is believed before that is looked at.
            .filter(|_| end <= self.entry.rows_at)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| self.damaged())?;
        Ok(SegmentPlace {
            hash: u128::from(word(0)) << 64 | u128::from(word(1)),
            at,
            bytes,
        })
    }

    /// True if a record is a document without a text.
    pub(crate) fn is_classless(&self, record: u32) -> bool {
        u64::from(record) >= self.entry.classes
    }

    /// Reads a record. Classes have the sets of so many further tests. `bytes` is a buffer.
    pub(crate) fn record(
        &self,
        record: u32,
        place: SegmentPlace,
        tests: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<SegmentRecord, CollectionError> {
        self.file.read(place.at, place.bytes, bytes)?;
        let mut rest = RecordBytes(bytes);
        let tests = match self.is_classless(record) {
            true => 0,
            false => tests,
        };
        rest.record(tests).ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> CollectionError {
        CollectionError::damaged(self.file.path(), "its sections contradict each other")
    }

    /// Reads the whole file, to see whether it is what was written. Returns its bytes.
    pub(crate) fn verify(&self) -> Result<u64, CollectionError> {
        self.file.verify()
    }
}

/// The entries of a section from a multiple of [`INDEXED`] on.
#[derive(Default)]
struct SectionPage {
    number: Option<usize>,
    bytes: Vec<u8>,
    /// No entry before this one is looked for again.
    from: usize,
}

impl SectionPage {
    fn load(
        &mut self,
        file: &CheckedBlockFile,
        section: &SortedSection,
        number: usize,
    ) -> Result<(), CollectionError> {
        let first = (number * INDEXED) as u64;
        let entries = (INDEXED as u64).min(section.entries - first);
        let length = entries as usize * section.width;
        let at = section.at + first * section.width as u64;
        file.read(at, length, &mut self.bytes)?;
        self.number = Some(number);
        self.from = 0;
        Ok(())
    }

    fn visit<E>(
        &mut self,
        width: usize,
        key: u64,
        visit: &mut impl FnMut(u64, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let entries = self.bytes.len() / width;
        let word = |entry: usize| first_word(&self.bytes[entry * width..]);
        // The wanted ones ascend, so the next is not far: steps that double, then halves.
        let mut step = 1;
        while self.from + step < entries && word(self.from + step) < key {
            self.from += step;
            step *= 2;
        }
        let mut end = entries.min(self.from + step);
        while self.from < end {
            let middle = (self.from + end) / 2;
            match word(middle) < key {
                true => self.from = middle + 1,
                false => end = middle,
            }
        }
        let first = self.number.unwrap_or(0) * INDEXED;
        for entry in self.from..entries {
            if word(entry) != key {
                break;
            }
            let bytes = &self.bytes[entry * width..(entry + 1) * width];
            visit((first + entry) as u64, key, bytes)?;
        }
        Ok(())
    }
}

/// The number of the record in an entry of keys or ids.
pub(crate) fn record_of(pair: &[u8]) -> u32 {
    u32::from_le_bytes(*pair.last_chunk().unwrap_or(&[0; 4]))
}

/// The hash in an entry of rows.
pub(crate) fn hash_of(row: &[u8]) -> u128 {
    u128::from(first_word(row)) << 64 | u128::from(first_word(&row[8..]))
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

fn words(file: &CheckedBlockFile, at: u64, count: u64) -> Result<Vec<u64>, CollectionError> {
    let length = usize::try_from(count.saturating_mul(8)).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    file.read(at, length, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(first_word).collect())
}

/// Rest of the bytes of a record. Everything is none where they end too early.
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
        let [documents, features, page_features, flags] = [
            self.number()?,
            self.number()?,
            self.number()?,
            self.number()?,
        ];
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
        let sizes: Vec<u32> = (0..tests).map(|_| self.number()).collect::<Option<_>>()?;
        record.features = self.set(features)?;
        record.page_features = self.set(page_features)?;
        for size in sizes {
            record.test_features.push(self.set(size)?);
        }
        for _ in 0..documents {
            record.documents.push(self.document()?);
        }
        // Bytes that are left over say as much as missing ones: this is not what was written.
        self.0.is_empty().then_some(record)
    }

    fn document(&mut self) -> Option<SegmentDocument> {
        let (order, length, record_hash) = (self.word()?, self.word()?, self.word()?);
        let id_length = self.number()?;
        let [kind] = self.array()?;
        let value = match kind {
            NUMBER => SegmentValue::Number(OrderNumber {
                nearest: self.array().map(f64::from_le_bytes)?,
                rest: self.array().map(i64::from_le_bytes)?,
            }),
            TEXT => {
                let length = self.number()?;
                SegmentValue::Text(self.text(length)?)
            }
            _ => SegmentValue::None,
        };
        Some(SegmentDocument {
            order,
            length,
            record_hash,
            id: self.text(id_length)?,
            value,
        })
    }
}
