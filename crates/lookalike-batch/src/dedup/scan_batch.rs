//! The result of one worker for one chunk, in memory and in the log of a scan.

use std::io::{self, Read};

use bytemuck::{Pod, Zeroable};
use lookalike_corpus::{BadRecord, PageIdentity, PooledBytes, SkippedPart};
use serde::{Deserialize, Serialize};

use crate::dedup::candidate_groups::KeyRecord;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::ValueTexts;
use crate::dedup::entry_log::{WORD, seal};
use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::dedup::scan_tally::ScanTally;

/// Result of one worker for one chunk.
#[derive(Default)]
pub(crate) struct ScanBatch {
    pub(super) ids: String,
    pub(super) rows: Vec<ScanRow>,
    /// Feature sets of the new classes, each behind its header.
    pub(super) words: SetKinds<Vec<u64>>,
    pub(super) classes: Vec<NewClass>,
    /// Word and size of the sets of each class for further tests.
    pub(super) tests: Vec<[u32; 2]>,
    pub(super) facts: BatchFacts,
    pub(super) skips: Vec<SkippedPart>,
    pub(super) raw_bytes: u64,
    /// Keys of the new classes, and a checksum of the bytes of the chunk; only for a log.
    pub(super) keys: Vec<KeyRecord>,
    pub(super) content: u64,
}

/// The small and rare parts of a batch, which a log has as JSON.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct BatchFacts {
    pub(super) bad: Vec<BadRecord>,
    pub(super) tally: ScanTally,
    pub(super) unusable: Option<String>,
    pub(super) value_texts: ValueTexts,
    /// Places of classes in the batch, and their pages.
    pub(super) pages: Vec<(usize, NewPage)>,
}

/// A batch encoded as an entry of a log.
pub(super) struct EncodedBatch {
    pub(super) bytes: PooledBytes,
    /// Offsets of its sets in the bytes.
    pub(super) sets: SetKinds<u64>,
}

/// One value for each kind of feature sets.
#[derive(Clone, Debug, Default)]
pub(super) struct SetKinds<T> {
    /// That of the texts that are compared.
    pub(super) texts: T,
    /// That of the visible texts of pages.
    pub(super) pages: T,
    /// One for each further test.
    pub(super) tests: Vec<T>,
}

impl<T> SetKinds<T> {
    /// Returns all values, in a fixed order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.texts, &mut self.pages]
            .into_iter()
            .chain(&mut self.tests)
    }

    /// Returns what `value` makes of each value, in the same order.
    pub(super) fn map<U>(&self, mut value: impl FnMut(&T) -> U) -> SetKinds<U> {
        SetKinds {
            texts: value(&self.texts),
            pages: value(&self.pages),
            tests: self.tests.iter().map(value).collect(),
        }
    }
}

/// A document.
// The layouts of rows and classes are a part of the log's format, and change with `MAGIC` only.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ScanRow {
    pub(super) length: u64,
    pub(super) record_hash: u64,
    pub(super) value: f64,
    pub(super) value_rest: i64,
    pub(super) source: u32,
    pub(super) id_end: u32,
    /// Position of the class plus one; 0 for none.
    pub(super) class: u64,
}

impl ScanRow {
    pub(super) fn class(&self) -> Option<ClassId> {
        ClassId::new(self.class.checked_sub(1)? as usize)
    }
}

/// A new text.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct NewClass {
    pub(super) hash: u128,
    pub(super) fingerprint: u128,
    pub(super) text: u128,
    pub(super) category: u64,
    pub(super) position: u64,
    pub(super) word: u32,
    pub(super) size: u32,
    // `Pod` allows no gaps.
    pub(super) padding: [u32; 2],
}

impl NewClass {
    pub(super) fn id(&self) -> ClassId {
        ClassId::new(self.position as usize).expect("`decode` refuses others")
    }
}

/// Facts about the page of a class.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct NewPage {
    pub(super) identity: PageIdentity,
    /// Position and number of the features of its visible text in the batch; `None` if they are those of its text.
    pub(super) set: Option<(u32, u32)>,
}

/// Appends a column: its length, and the values as in memory. Returns the offset of the values.
fn put<T: Pod>(out: &mut Vec<u8>, column: &[T]) -> u64 {
    out.extend_from_slice(&(column.len() as u64).to_le_bytes());
    let values = out.len() as u64;
    out.extend_from_slice(bytemuck::cast_slice(column));
    values
}

/// Reads a column of sets, and returns it with the offset of its values in the entry.
fn take_sets(file: &mut HashingStream<impl Read>) -> io::Result<(Vec<u64>, u64)> {
    let length = file.word()?;
    let values = WORD as u64 + file.passed;
    Ok((file.column(length)?, values))
}

fn take<T: Pod>(file: &mut HashingStream<impl Read>) -> io::Result<Vec<T>> {
    let length = file.word()?;
    file.column(length)
}

impl ScanBatch {
    /// Encodes the batch, without skips, as an entry of the log of this job in `out`, which must be empty: columns, each preceded by its length.
    pub(super) fn encode(&self, mut out: PooledBytes, job: u64) -> io::Result<EncodedBatch> {
        let facts = serde_json::to_vec(&self.facts)?;
        let bytes = self.column_bytes() + facts.len();
        out.reserve(bytes);
        out.resize(WORD, 0);
        // `decode` reads the columns in this order.
        // A checksum of one word is a column too, so that `take` reads all parts.
        put(&mut out, &[self.content]);
        put(&mut out, &facts);
        put(&mut out, self.ids.as_bytes());
        put(&mut out, &self.rows);
        put(&mut out, &self.classes);
        put(&mut out, &self.tests);
        put(&mut out, &self.placed_keys()?);
        put(&mut out, &[self.words.tests.len() as u64]);
        let sets = self.words.map(|words| put(&mut out, words));
        seal(&mut out, job);
        debug_assert_eq!(out.len(), bytes);
        Ok(EncodedBatch { bytes: out, sets })
    }

    /// Returns the number of bytes of an entry except its facts. A buffer that grew by doubling would be too long to be reused.
    fn column_bytes(&self) -> usize {
        let tests = self.words.tests.iter().map(|words| 1 + words.len());
        let sets = self.words.texts.len() + self.words.pages.len() + tests.sum::<usize>();
        // One for each other column, the values of two columns that have one value each, and the length and checksum of the entry.
        let words = 14;
        self.ids.len()
            + size_of_val(&*self.keys)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.classes)
            + size_of_val(&*self.tests)
            + WORD * (words + sets)
    }

    /// Returns the keys with the positions of their classes in the batch, which fit in 32 bits for any number of classes.
    fn placed_keys(&self) -> io::Result<Vec<KeyRecord>> {
        let classes = &self.classes;
        let mut at = 0;
        let placed = |&[high, low, class]: &KeyRecord| {
            // Keys are in the order of their classes, so each search ends where it starts or at the next class.
            let places = (at..classes.len()).chain(0..at);
            let mut places = places.filter(|&place| classes[place].position == u64::from(class));
            at = places.next().ok_or_else(damaged)?;
            Ok([high, low, at as u32])
        };
        self.keys.iter().map(placed).collect()
    }

    /// Returns the word and size of each set for further tests of a class, by its place in the batch.
    pub(super) fn tests_of(&self, number: usize) -> &[[u32; 2]] {
        let kinds = self.words.tests.len();
        let own = number * kinds..(number + 1) * kinds;
        self.tests.get(own).unwrap_or_default()
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
        let is_class = |(number, class): (usize, &NewClass)| {
            let mut of_tests = self.words.tests.iter().zip(self.tests_of(number));
            is_set(&self.words.texts, (class.word, class.size))
                && of_tests.all(|(words, &[word, size])| is_set(words, (word, size)))
        };
        let is_page = |(number, page): &(usize, NewPage)| {
            let is_set = |set| is_set(&self.words.pages, set);
            *number < self.classes.len() && page.set.is_none_or(is_set)
        };
        let is_valid = self.words.tests.len() <= tests
            && self.rows.iter().all(is_row)
            && self.classes.iter().enumerate().all(is_class)
            && self.facts.pages.iter().all(is_page)
            && self.facts.bad.iter().all(|bad| is_source(bad.source));
        is_valid.then_some(()).ok_or_else(damaged)
    }

    /// Reads a batch, without its skips and bytes read, from the contents of an entry. Returns it with the offsets of its sets in the entry.
    pub(super) fn decode(entry: &[u8]) -> io::Result<(Self, SetKinds<u64>)> {
        let file = &mut HashingStream::new(entry);
        let content = take::<u64>(file)?;
        let facts = serde_json::from_slice(&take::<u8>(file)?)?;
        let ids = String::from_utf8(take(file)?).map_err(|_| damaged())?;
        let rows: Vec<ScanRow> = take(file)?;
        let classes: Vec<NewClass> = take(file)?;
        let tests = take(file)?;
        let mut keys: Vec<KeyRecord> = take(file)?;
        let kinds = take::<u64>(file)?.first().copied().unwrap_or(0);
        let (mut words, mut sets) = (SetKinds::default(), SetKinds::default());
        (words.texts, sets.texts) = take_sets(file)?;
        (words.pages, sets.pages) = take_sets(file)?;
        for _ in 0..kinds {
            let (of_test, offset) = take_sets(file)?;
            words.tests.push(of_test);
            sets.tests.push(offset);
        }
        // A number too large for this program's tables must not be read as a document without a class.
        let is_known = |position: u64| ClassId::new(position as usize).is_some();
        let positions = rows.iter().filter_map(|row| row.class.checked_sub(1));
        let mut positions = positions.chain(classes.iter().map(|class| class.position));
        if !positions.all(is_known) {
            return Err(damaged());
        }
        for [.., class] in &mut keys {
            let of = classes.get(*class as usize).ok_or_else(damaged)?;
            *class = of.position as u32;
        }
        let batch = Self {
            ids,
            rows,
            words,
            classes,
            tests,
            facts,
            keys,
            content: content.first().copied().ok_or_else(damaged)?,
            ..Self::default()
        };
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
            ..ScanRow::zeroed()
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
        let check = |word, size, test, page_of| {
            let class = NewClass {
                word,
                size,
                ..NewClass::zeroed()
            };
            let page = NewPage {
                identity: PageIdentity::from_bits(1).unwrap(),
                set: Some((0, 1)),
            };
            let batch = ScanBatch {
                words: SetKinds {
                    texts: vec![0; 3],
                    pages: vec![0; 2],
                    tests: vec![vec![0; 2]],
                },
                classes: vec![class],
                tests: vec![test],
                facts: BatchFacts {
                    pages: vec![(0, page), (page_of, page)],
                    ..BatchFacts::default()
                },
                ..ScanBatch::default()
            };
            batch.check_indices(1, 1)
        };
        check(0, 2, [0, 1], 0).unwrap();
        for (word, size, test, page) in [(1, 2, [0, 1], 0), (0, 2, [1, 1], 0), (0, 2, [0, 1], 1)] {
            check(word, size, test, page).unwrap_err();
        }
    }

    #[test]
    fn a_class_that_no_table_can_number_is_damage() {
        let decoded = |row: u64, class: u64| {
            let batch = ScanBatch {
                rows: vec![ScanRow {
                    class: row,
                    ..ScanRow::zeroed()
                }],
                classes: vec![NewClass {
                    position: class,
                    ..NewClass::zeroed()
                }],
                ..ScanBatch::default()
            };
            let entry = batch.encode(PooledBytes::default(), 7).unwrap().bytes;
            ScanBatch::decode(&entry[WORD..]).is_ok()
        };
        let last = u64::from(u32::MAX);
        assert!(decoded(0, 0) && decoded(last, last - 1));
        assert!(!decoded(last + 1, 0) && !decoded(0, last));
    }
}
