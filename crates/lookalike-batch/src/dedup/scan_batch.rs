//! The result of one worker for one chunk, in memory and in the log of a scan.

use std::io::{self, Read};

use bytemuck::{Pod, Zeroable};
use lookalike_corpus::{BadRecord, OrderNumber, PageIdentity, PooledBytes, SkippedPart};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::candidate_groups::KeyRecord;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::ValueTexts;
use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::dedup::scan_tally::ScanTally;

/// Result of one worker for one chunk.
#[derive(Default)]
pub(crate) struct ScanBatch {
    pub(super) ids: String,
    pub(super) rows: Vec<ScanRow>,
    pub(super) words: Vec<u64>,
    /// Feature sets for each further test.
    pub(super) test_words: Vec<Vec<u64>>,
    pub(super) page_words: Vec<u64>,
    pub(super) classes: Vec<NewClass>,
    pub(super) bad: Vec<BadRecord>,
    pub(super) skips: Vec<SkippedPart>,
    pub(super) tally: ScanTally,
    pub(super) unusable: Option<String>,
    pub(super) value_texts: ValueTexts,
    pub(super) raw_bytes: u64,
    /// Keys of the new classes, and a checksum of the bytes of the chunk; only for a log.
    pub(super) keys: Vec<KeyRecord>,
    pub(super) content: u64,
}

/// A batch encoded as bytes.
pub(super) struct EncodedBatch {
    pub(super) bytes: PooledBytes,
    /// XXH3-64 of the bytes.
    pub(super) sum: u64,
    /// Offsets of its sets in the bytes.
    pub(super) sets: SetColumns,
}

/// Offsets of the columns of sets, in the bytes of a batch or in the file of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetColumns {
    pub(super) words: u64,
    pub(super) page_words: u64,
    pub(super) test_words: Vec<u64>,
}

impl SetColumns {
    /// Returns the offsets with `bytes` added.
    pub(super) fn shifted_by(mut self, bytes: u64) -> Self {
        let of_tests = self.test_words.iter_mut();
        for offset in of_tests.chain([&mut self.words, &mut self.page_words]) {
            *offset += bytes;
        }
        self
    }
}

/// A document.
pub(super) struct ScanRow {
    pub(super) source: u32,
    pub(super) id_end: u32,
    pub(super) class: Option<ClassId>,
    pub(super) length: u64,
    pub(super) record_hash: u64,
    pub(super) value: OrderNumber,
}

/// A new text.
pub(super) struct NewClass {
    pub(super) class: ClassId,
    pub(super) hash: u128,
    pub(super) word: u32,
    pub(super) size: u32,
    pub(super) fingerprint: u128,
    pub(super) category: u64,
    pub(super) text: u128,
    /// Word and size of its set for each further test.
    pub(super) tests: Vec<(u32, u32)>,
    pub(super) page: Option<NewPage>,
}

/// Facts about the page of a class.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct NewPage {
    pub(super) identity: PageIdentity,
    /// Position and number of the features of its visible text in the batch; `None` if they are those of its text.
    pub(super) set: Option<(u32, u32)>,
}

/// The small and rare parts of a batch, as JSON. Skips and bytes read are not stored, because they come from the chunk again.
#[derive(Serialize, Deserialize)]
struct BatchFacts {
    bad: Vec<BadRecord>,
    tally: ScanTally,
    unusable: Option<String>,
    value_texts: ValueTexts,
    /// Number of a class in the batch, and its page.
    pages: Vec<(usize, NewPage)>,
}

/// A row in the layout of the log.
// The layout is a part of the log's format, and changes with `MAGIC` only.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LoggedRow {
    length: u64,
    record_hash: u64,
    value: f64,
    value_rest: i64,
    source: u32,
    id_end: u32,
    /// Position of the class plus one; 0 for none.
    class: u64,
}

/// A class in the layout of the log.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LoggedClass {
    hash: u128,
    fingerprint: u128,
    text: u128,
    category: u64,
    position: u64,
    word: u32,
    size: u32,
    zero: [u32; 2],
}

/// Appends a column: its length, and the values as in memory. Returns the offset of the values.
fn put<T: Pod>(out: &mut Vec<u8>, column: &[T]) -> u64 {
    out.extend_from_slice(&(column.len() as u64).to_le_bytes());
    let values = out.len() as u64;
    out.extend_from_slice(bytemuck::cast_slice(column));
    values
}

/// Reads a column of sets, and returns it with the position of its values in the file.
fn take_sets(file: &mut HashingStream<impl Read>) -> io::Result<(Vec<u64>, u64)> {
    let length = file.word()?;
    let values = file.passed();
    Ok((file.column(length)?, values))
}

fn take<T: Pod>(file: &mut HashingStream<impl Read>) -> io::Result<Vec<T>> {
    let length = file.word()?;
    file.column(length)
}

impl ScanBatch {
    /// Encodes the batch, without skips, into `out`, which must be empty: columns, each preceded by its length.
    pub(super) fn encode(&self, mut out: PooledBytes) -> io::Result<EncodedBatch> {
        let row = |row: &ScanRow| LoggedRow {
            length: row.length,
            record_hash: row.record_hash,
            value: row.value.nearest,
            value_rest: row.value.rest,
            source: row.source,
            id_end: row.id_end,
            class: row.class.map_or(0, |class| class.position() as u64 + 1),
        };
        let class = |class: &NewClass| LoggedClass {
            hash: class.hash,
            fingerprint: class.fingerprint,
            text: class.text,
            category: class.category,
            position: class.class.position() as u64,
            word: class.word,
            size: class.size,
            // Explicit padding, because `Pod` allows no gaps.
            zero: [0; 2],
        };
        let pages = self.classes.iter().enumerate();
        let facts = BatchFacts {
            bad: self.bad.clone(),
            tally: self.tally,
            unusable: self.unusable.clone(),
            value_texts: self.value_texts.clone(),
            pages: pages
                .filter_map(|(number, class)| Some((number, class.page?)))
                .collect(),
        };
        let tests = self.classes.iter().flat_map(|class| &class.tests);
        let tests: Vec<[u32; 2]> = tests.map(|&(word, size)| [word, size]).collect();
        let facts = serde_json::to_vec(&facts)?;
        let bytes = self.column_bytes() + facts.len() + 8 * tests.len();
        out.reserve(bytes);
        // `decode` reads the columns in this order.
        // A checksum of one word is a column too, so that `take` reads all parts.
        put(&mut out, &[self.content]);
        put(&mut out, &facts);
        put(&mut out, self.ids.as_bytes());
        put(&mut out, &self.rows.iter().map(row).collect::<Vec<_>>());
        put(
            &mut out,
            &self.classes.iter().map(class).collect::<Vec<_>>(),
        );
        put(&mut out, &tests);
        put(&mut out, &self.placed_keys()?);
        let words = put(&mut out, &self.words);
        let page_words = put(&mut out, &self.page_words);
        put(&mut out, &[self.test_words.len() as u64]);
        let of_tests = self.test_words.iter();
        let test_words = of_tests.map(|words| put(&mut out, words)).collect();
        debug_assert_eq!(out.len(), bytes);
        Ok(EncodedBatch {
            sum: xxh3_64(&out),
            bytes: out,
            sets: SetColumns {
                words,
                page_words,
                test_words,
            },
        })
    }

    /// Returns the number of bytes of the columns whose lengths are known, and of all lengths. A buffer that grew by doubling would be too long to be
    /// reused.
    fn column_bytes(&self) -> usize {
        let words = self.words.len() + self.page_words.len();
        let test_words: usize = self.test_words.iter().map(|words| 1 + words.len()).sum();
        // One for each column, and the values of two columns that have one value each.
        let lengths = 12;
        self.ids.len()
            + size_of_val(&*self.keys)
            + self.rows.len() * size_of::<LoggedRow>()
            + self.classes.len() * size_of::<LoggedClass>()
            + 8 * (lengths + words + test_words)
    }

    /// Returns the keys with the positions of their classes in the batch, which fit in 32 bits for any number of classes.
    fn placed_keys(&self) -> io::Result<Vec<KeyRecord>> {
        let classes = &self.classes;
        let mut at = 0;
        let placed = |&[high, low, class]: &KeyRecord| {
            // Keys are in the order of their classes, so each search ends where it starts or at the next class.
            let places = (at..classes.len()).chain(0..at);
            let mut places =
                places.filter(|&place| classes[place].class.position() == class as usize);
            at = places.next().ok_or_else(damaged)?;
            Ok([high, low, at as u32])
        };
        self.keys.iter().map(placed).collect()
    }

    /// Returns an error unless all indices are valid in a job with these numbers of sources and of further tests.
    pub(super) fn check_indices(&self, sources: usize, tests: usize) -> io::Result<()> {
        let is_source = |source: u32| (source as usize) < sources;
        let mut start = 0;
        let is_row = |row: &ScanRow| {
            let id = start..row.id_end as usize;
            start = id.end;
            is_source(row.source) && self.ids.get(id).is_some()
        };
        // The header of a set precedes it.
        let is_set = |words: &[u64], (word, size): (u32, u32)| {
            let from = word as usize + 1;
            size == 0 || words.get(from..from + size as usize).is_some()
        };
        let is_class = |class: &NewClass| {
            let page_set = class.page.and_then(|page| page.set);
            let mut of_tests = self.test_words.iter().zip(&class.tests);
            is_set(&self.words, (class.word, class.size))
                && page_set.is_none_or(|set| is_set(&self.page_words, set))
                && of_tests.all(|(words, &set)| is_set(words, set))
        };
        let is_valid = self.test_words.len() <= tests
            && self.rows.iter().all(is_row)
            && self.classes.iter().all(is_class)
            && self.bad.iter().all(|bad| is_source(bad.source));
        is_valid.then_some(()).ok_or_else(damaged)
    }

    /// Reads a batch, without its skips and bytes read, and returns it with the positions of its sets in the file.
    pub(super) fn decode(file: &mut HashingStream<impl Read>) -> io::Result<(Self, SetColumns)> {
        let content = take::<u64>(file)?;
        let facts: BatchFacts = serde_json::from_slice(&take::<u8>(file)?)?;
        let ids = String::from_utf8(take(file)?).map_err(|_| damaged())?;
        let rows: Vec<LoggedRow> = take(file)?;
        let classes: Vec<LoggedClass> = take(file)?;
        let tests: Vec<[u32; 2]> = take(file)?;
        let mut keys: Vec<KeyRecord> = take(file)?;
        let mut sets = SetColumns::default();
        let (words, page_words);
        (words, sets.words) = take_sets(file)?;
        (page_words, sets.page_words) = take_sets(file)?;
        let kinds = take::<u64>(file)?.first().copied().unwrap_or(0);
        let mut test_words = Vec::new();
        for _ in 0..kinds {
            let (words, offset) = take_sets(file)?;
            test_words.push(words);
            sets.test_words.push(offset);
        }
        let row = |row: LoggedRow| {
            let class = match row.class.checked_sub(1) {
                // A number too large for this program's tables must not be read as a document without a class.
                Some(position) => Some(ClassId::new(usize::try_from(position).ok()?)?),
                None => None,
            };
            Some(ScanRow {
                source: row.source,
                id_end: row.id_end,
                class,
                length: row.length,
                record_hash: row.record_hash,
                value: OrderNumber {
                    nearest: row.value,
                    rest: row.value_rest,
                },
            })
        };
        let rows: Option<Vec<ScanRow>> = rows.into_iter().map(row).collect();
        // One for each class and test. Without tests, any chunk size above 0 will do.
        // The columns of a class have no tests in them, because their number differs between jobs.
        let mut tests = tests.chunks(test_words.len().max(1));
        let mut class = |class: LoggedClass| {
            let tests = tests.next().unwrap_or_default();
            Some(NewClass {
                class: ClassId::new(class.position as usize)?,
                hash: class.hash,
                word: class.word,
                size: class.size,
                fingerprint: class.fingerprint,
                category: class.category,
                text: class.text,
                tests: tests.iter().map(|&[word, size]| (word, size)).collect(),
                // Pages are rare: they are set from the facts below.
                page: None,
            })
        };
        let classes: Option<Vec<NewClass>> = classes.into_iter().map(&mut class).collect();
        let classes = classes.ok_or_else(damaged)?;
        for [.., class] in &mut keys {
            let of = classes.get(*class as usize).ok_or_else(damaged)?;
            *class = of.class.position() as u32;
        }
        let mut batch = Self {
            ids,
            rows: rows.ok_or_else(damaged)?,
            words,
            test_words,
            page_words,
            classes,
            bad: facts.bad,
            tally: facts.tally,
            unusable: facts.unusable,
            value_texts: facts.value_texts,
            keys,
            content: content.first().copied().ok_or_else(damaged)?,
            ..Self::default()
        };
        for (number, page) in facts.pages {
            batch.classes.get_mut(number).ok_or_else(damaged)?.page = Some(page);
        }
        Ok((batch, sets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_from_a_log_could_be_out_of_bounds() {
        let row = |(source, id_end)| ScanRow {
            source,
            id_end,
            class: None,
            length: 0,
            record_hash: 0,
            value: OrderNumber::default(),
        };
        let check = |rows: &[(u32, u32)]| {
            let batch = ScanBatch {
                // The second id begins with a letter of two bytes.
                ids: "a\u{e9}b".to_owned(),
                rows: rows.iter().copied().map(row).collect(),
                ..ScanBatch::default()
            };
            batch.check_indices(2, 0)
        };
        check(&[(0, 1), (1, 4)]).unwrap();
        for rows in [
            [(0, 1), (2, 4)],
            [(0, 2), (0, 4)],
            [(0, 1), (0, 5)],
            [(0, 3), (0, 1)],
        ] {
            check(&rows).unwrap_err();
        }
        let class = |word, size, tests| NewClass {
            class: ClassId::new(0).unwrap(),
            hash: 0,
            word,
            size,
            fingerprint: 0,
            category: 0,
            text: 0,
            tests,
            page: None,
        };
        let check = |class| {
            let batch = ScanBatch {
                words: vec![0; 3],
                test_words: vec![vec![0; 2]],
                classes: vec![class],
                ..ScanBatch::default()
            };
            batch.check_indices(1, 1)
        };
        check(class(0, 2, vec![(0, 1)])).unwrap();
        for class in [class(1, 2, vec![(0, 1)]), class(0, 2, vec![(1, 1)])] {
            check(class).unwrap_err();
        }
    }
}
