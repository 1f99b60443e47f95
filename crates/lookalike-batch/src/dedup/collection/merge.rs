//! Merging of segments: an addition is merged with the newest segments, as long as the next older one is less than twice as large as all of
//! these. So a collection has few segments however many additions there were: each is at least twice as large as all newer ones together.
//!
//! A merged segment has the same contents that one job would have written for the same documents in the same order: records of one class become
//! one, with the facts of the oldest, and the documents of newer segments come after those of older ones. Decisions do not depend on merging,
//! because they do not depend on how documents are divided into segments.

use std::io;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::dedup::candidate_groups::key_record;
use crate::dedup::collection::blocks::BlockRun;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::lookup::{SegmentFile, SegmentPosition, SortedTable, TableCursor};
use crate::dedup::collection::segment::{NO_CLASS, PairSection, SegmentEntry, SegmentSections};

/// Number of bytes in memory per record of a merged segment: its row, size and number, and spare capacity of vectors.
pub(crate) const RECORD_BYTES: u64 = 64;

/// Returns the index of the first segment to merge; all later ones are merged with it, into at most `most` records. The oldest segment is the first.
pub(crate) fn first_to_merge(segments: &[SegmentEntry], most: u64) -> usize {
    let Some((newest, older)) = segments.split_last() else {
        return 0;
    };
    // A segment is rewritten only when it grows by half at least, so each record is rewritten O(log n) times.
    let (mut first, mut records) = (older.len(), newest.records);
    // Only the newest in a row, because segments stay in the order of additions.
    for segment in older.iter().rev() {
        let all = records.saturating_add(segment.records);
        if segment.records / 2 >= records || all > most {
            break;
        }
        (first, records) = (first - 1, all);
    }
    first
}

/// Segments that are merged into one, the oldest first.
pub(crate) struct SegmentMerge<'a> {
    pub(crate) segments: &'a [SegmentFile],
    /// Number of further tests, whose feature sets the classes have.
    pub(crate) tests: usize,
}

/// Error of a merge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeError {
    /// A segment cannot be read.
    #[error(transparent)]
    Read(#[from] CollectionError),
    /// The merged segment cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// New numbers of a segment's records in the merged segment.
type MergedNumbers = Vec<u32>;

/// Reads the classes of a segment in order.
struct ClassCursor<'a> {
    segment: &'a SegmentFile,
    record: u32,
    /// `None` after the last class.
    place: Option<SegmentPosition>,
    rows: BlockRun,
    /// The record that was read last.
    bytes: Vec<u8>,
    /// Number that is added to the order of its documents.
    before: u64,
}

/// A record that is being assembled.
#[derive(Default)]
struct MergedRecord {
    /// Number of features of the class.
    size: u32,
    count: u64,
    class: Vec<u8>,
    documents: Vec<u8>,
}

impl SegmentMerge<'_> {
    /// Writes the merged segment to the file `name` in `folder` and syncs it to disk.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<SegmentEntry, MergeError> {
        let identity = self.identity();
        let mut sections = SegmentSections::create(&folder.join(name), identity)?;
        let mut numbers: Vec<MergedNumbers> = self.segments.iter().map(|_| Vec::new()).collect();
        let mut cursors = self.cursors()?;
        self.merge_classes(&mut cursors, &mut sections, &mut numbers)?;
        let classes = sections.records();
        self.append_classless(&mut cursors, &mut sections, &mut numbers)?;
        let sum = |of: fn(&SegmentEntry) -> u64| {
            let all = self.segments.iter().map(|segment| of(&segment.entry));
            all.fold(0, u64::saturating_add)
        };
        let entry = SegmentEntry {
            file: name.to_owned(),
            identity,
            documents: sum(|entry| entry.documents),
            classes,
            text_bytes: sum(|entry| entry.text_bytes),
            records: sections.records(),
            orders: sum(|entry| entry.orders),
            // `SegmentSections::finish` sets the others.
            ..SegmentEntry::default()
        };
        sections.finish(
            entry,
            |out| self.merge_pairs(|segment| &segment.keys, &numbers, out),
            |out| self.merge_pairs(|segment| &segment.ids, &numbers, out),
        )
    }

    fn identity(&self) -> u64 {
        // Not from the contents: checksums need it from the first block on, before these are read.
        let mut hash = Xxh3::new();
        for segment in self.segments {
            hash.update(&segment.entry.identity.to_le_bytes());
        }
        hash.digest()
    }

    fn cursors(&self) -> Result<Vec<ClassCursor<'_>>, CollectionError> {
        let mut before: u64 = 0;
        let mut cursors = Vec::with_capacity(self.segments.len());
        for segment in self.segments {
            let mut cursor = ClassCursor {
                segment,
                record: 0,
                place: None,
                rows: BlockRun::default(),
                bytes: Vec::new(),
                before,
            };
            cursor.look_up_current()?;
            cursors.push(cursor);
            // Documents of newer segments are ordered after those of older ones.
            before = before.saturating_add(segment.entry.orders);
        }
        Ok(cursors)
    }

    /// Writes the records of classes, in ascending order of hash.
    fn merge_classes(
        &self,
        cursors: &mut [ClassCursor<'_>],
        sections: &mut SegmentSections,
        numbers: &mut [MergedNumbers],
    ) -> Result<(), MergeError> {
        let mut merged = MergedRecord::default();
        // There are some ten segments at most, so a linear search for the smallest hash is enough.
        while let Some(hash) = cursors.iter().filter_map(ClassCursor::hash).min() {
            let number = sections.records() as u32;
            for (cursor, numbers) in cursors.iter_mut().zip(&mut *numbers) {
                if cursor.hash() == Some(hash) {
                    merged.add(cursor, self.tests)?;
                    numbers.push(number);
                }
            }
            merged.write(hash, sections)?;
        }
        Ok(())
    }

    /// Writes the records of documents without a text, in the order in which they were added.
    fn append_classless(
        &self,
        cursors: &mut [ClassCursor<'_>],
        sections: &mut SegmentSections,
        numbers: &mut [MergedNumbers],
    ) -> Result<(), MergeError> {
        let mut merged = MergedRecord::default();
        for (cursor, numbers) in cursors.iter_mut().zip(numbers) {
            // The cursor has passed all classes, so the rest are records without a text.
            while u64::from(cursor.record) < cursor.segment.entry.records {
                let place = cursor.segment.place(cursor.record, &mut cursor.rows)?;
                cursor.place = Some(place);
                numbers.push(sections.records() as u32);
                merged.add(cursor, 0)?;
                merged.write(NO_CLASS, sections)?;
            }
        }
        Ok(())
    }

    /// Writes the entries of a table of all segments, ascending and without repetition.
    fn merge_pairs(
        &self,
        table: impl Fn(&SegmentFile) -> &SortedTable,
        numbers: &[MergedNumbers],
        out: &mut PairSection<'_>,
    ) -> Result<(), MergeError> {
        let cursors = self.segments.iter();
        // One block of each segment is in memory.
        let mut cursors: Vec<TableCursor<'_>> = cursors
            .map(|segment| TableCursor::new(segment, table(segment)))
            .collect();
        let mut records = Vec::new();
        loop {
            let mut least = None;
            for cursor in &mut cursors {
                let key = cursor.peek()?.map(|entry| entry.key);
                least = [least, key].into_iter().flatten().min();
            }
            let Some(key) = least else {
                return Ok(());
            };
            records.clear();
            for (cursor, numbers) in cursors.iter_mut().zip(numbers) {
                while let Some(entry) = cursor.peek()?.filter(|entry| entry.key == key) {
                    let number = numbers.get(entry.record as usize);
                    records.push(*number.ok_or_else(|| cursor.segment.damaged())?);
                    cursor.advance();
                }
            }
            // Records of one class in several segments have become one number.
            records.sort_unstable();
            records.dedup();
            for &record in &records {
                out.put(key_record(key, record))?;
            }
        }
    }
}

impl ClassCursor<'_> {
    fn hash(&self) -> Option<u128> {
        self.place.map(|place| place.hash)
    }

    /// Looks up the place of the current record, if it is a class.
    fn look_up_current(&mut self) -> Result<(), CollectionError> {
        self.place = match u64::from(self.record) < self.segment.entry.classes {
            true => Some(self.segment.place(self.record, &mut self.rows)?),
            false => None,
        };
        Ok(())
    }
}

impl MergedRecord {
    /// Adds the current record and moves to the next.
    fn add(&mut self, cursor: &mut ClassCursor<'_>, tests: usize) -> Result<(), CollectionError> {
        // Not reached: callers add only records whose places they have looked up.
        let Some(place) = cursor.place else {
            return Ok(());
        };
        let pieces = cursor.segment.pieces(place, tests, &mut cursor.bytes)?;
        // Cursors are in the order of age, so these are the facts of the oldest.
        if self.count == 0 {
            self.size = pieces.size;
            self.class.extend_from_slice(pieces.class);
        }
        self.count += pieces.documents.len() as u64;
        for document in pieces.documents {
            let order = document.order.saturating_add(cursor.before);
            self.documents.extend_from_slice(&order.to_le_bytes());
            self.documents.extend_from_slice(document.rest);
        }
        cursor.record += 1;
        cursor.look_up_current()
    }

    /// Writes the record and clears it.
    fn write(&mut self, hash: u128, sections: &mut SegmentSections) -> io::Result<()> {
        sections.begin(hash, self.size);
        sections.write(&self.count.to_le_bytes())?;
        sections.write(&self.class)?;
        sections.write(&self.documents)?;
        self.count = 0;
        self.class.clear();
        self.documents.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(records: u64) -> SegmentEntry {
        SegmentEntry {
            file: String::new(),
            identity: 0,
            content: 0,
            documents: records,
            classes: records,
            text_bytes: 0,
            records,
            keys: 0,
            ids: 0,
            orders: records,
            rows_at: 0,
        }
    }

    fn first(records: &[u64], most: u64) -> usize {
        let segments: Vec<SegmentEntry> = records.iter().copied().map(segment).collect();
        first_to_merge(&segments, most)
    }

    #[test]
    fn newer_segments_are_merged_until_an_older_one_is_twice_as_large() {
        assert_eq!(first(&[], 1 << 20), 0);
        assert_eq!(first(&[5], 1 << 20), 0);
        assert_eq!(first(&[2, 1], 1 << 20), 1);
        assert_eq!(first(&[1, 1], 1 << 20), 0);
        assert_eq!(first(&[130, 40, 15, 10], 1 << 20), 1);
        assert_eq!(first(&[129, 40, 15, 10], 1 << 20), 0);
        assert_eq!(first(&[900, 129, 40, 15, 10], 1 << 20), 1);
    }

    #[test]
    fn no_segment_is_merged_beyond_the_most_records() {
        assert_eq!(first(&[10, 10, 10], 30), 0);
        assert_eq!(first(&[10, 10, 10], 29), 1);
        assert_eq!(first(&[10, 10, 10], 0), 2);
    }

    #[test]
    fn a_thousand_additions_leave_a_few_segments() {
        let mut segments = Vec::new();
        for addition in 0..1000 {
            segments.push(1 + addition % 7);
            let first = first(&segments, 1 << 30);
            let merged = segments.drain(first..).sum();
            segments.push(merged);
            assert!(segments.len() <= 8, "{segments:?}");
        }
    }
}
