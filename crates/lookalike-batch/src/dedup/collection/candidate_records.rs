//! Records of a collection that may resemble a new class, found by keys and sizes before any record is read.
//!
//! Most records that share a key with a new class share too few keys for their sizes: in three million documents, 20 of 21 such
//! records. So first the keys of new classes are looked up, and each record with some of them is stored with these. Then, for each record, the
//! keys that it shares with each new class are counted, and [`CandidateRule`] decides whether one of them is a candidate: the job applies the same
//! rule to the same counts again when it compares.
//!
//! Counts do not matter if two visible texts are equal. Then both have a key of the visible text, or the record is the class of that text.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::dedup::candidate_groups::{KeyRecord, KeySink, key_of, key_record, part_of};
use crate::dedup::collection::lookup::{SegmentFile, record_of};
use crate::dedup::collection::segment::partition_first;
use crate::dedup::documents::TextClasses;
use crate::dedup::just_below::MarginBins;
use crate::dedup::margin_search::last_sampled;
use crate::error::BatchError;
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::{KeySalt, text_key};
use crate::settings::JobSettings;
use crate::spill::partitions::{PARTS, PartitionedFile, SpoolWriter};
use crate::spill::table_column::TableColumn;

/// A record that has a key of new classes: segment, record, and number of the key.
pub(crate) type KeyPosting = [u32; 3];

/// Data of the new classes that determine which records are candidates.
pub(crate) struct NewClasses<'a> {
    settings: &'a JobSettings,
    classes: &'a TextClasses,
    rule: CandidateRule,
    /// By class, true if it survives whatever it resembles, so that it needs no search.
    is_settled: TableColumn<bool>,
    /// Keys by which classes with the same visible text are found, by partition. A class may lack its own.
    text_keys: TableColumn<KeyRecord>,
    /// Minimum resemblance of relevant neighbours, for classes that may be in the sample of [`margin_search`](crate::dedup::margin_search).
    margin: f64,
    last_sampled: u64,
}

/// Keys of new classes that records have too, with these records.
pub(crate) struct MatchedKeys {
    /// Each key, with the end of its classes in `members`.
    keys: Vec<MatchedKey>,
    members: Vec<u32>,
    /// Partitioned into ranges of records.
    postings: PartitionedFile<KeyPosting>,
}

struct MatchedKey {
    key: u64,
    end: usize,
    /// True if the classes with this key have the same visible text.
    is_of_text: bool,
}

/// Search for the keys of new classes in segments.
pub(crate) struct KeySearch<'a> {
    pub(crate) segments: &'a [SegmentFile],
    pub(crate) keys: &'a KeySink,
    pub(crate) new: &'a NewClasses<'a>,
    /// Folder for temporary files.
    pub(crate) folder: &'a Path,
    /// Bytes that the keys of a round may take.
    pub(crate) memory: u64,
}

/// For a record, the number of keys that it shares with each new class.
pub(crate) struct SharedCounts {
    first: u32,
    /// By class, from `first` on; all zero between two records.
    counts: TableColumn<u32>,
    touched: Vec<u32>,
}

impl<'a> NewClasses<'a> {
    pub(crate) fn new(
        settings: &'a JobSettings,
        classes: &'a TextClasses,
        is_settled: TableColumn<bool>,
    ) -> Self {
        let hashes = classes.hashes.iter().map(|hash| (hash >> 64) as u64);
        let mut new = Self {
            settings,
            classes,
            rule: CandidateRule::of(settings),
            is_settled,
            text_keys: TableColumn::new(),
            // As in `DedupJob::find_below_threshold`, so that all neighbours in the margin are loaded.
            margin: MarginBins::below(settings.threshold).from(),
            last_sampled: last_sampled(hashes),
        };
        let text_key = |class| key_record(new.text_key(class), class);
        new.text_keys = (0..classes.len() as u32).map(text_key).collect();
        // By partition only: `search_keys` sorts each partition with the other keys.
        new.text_keys.sort_unstable_by_key(part_of);
        new
    }

    fn text_key(&self, class: u32) -> u64 {
        let class = class as usize;
        let category = self.classes.categories.get(class).copied().unwrap_or(0);
        let salt = KeySalt::new(self.settings.scope, category);
        salt.apply(text_key(self.classes.visible_text(class)))
    }

    /// Returns those of `keys` and the text keys by which a range of classes is searched, in one of [`PARTS`] partitions: ascending and without
    /// repetition.
    fn search_keys(
        &self,
        keys: &KeySink,
        part: usize,
        classes: &Range<u32>,
    ) -> io::Result<Vec<KeyRecord>> {
        let mut wanted = keys.part(part)?;
        let from = self
            .text_keys
            .partition_point(|record| part_of(record) < part);
        // The sink has no such key of a plain text, but a page of the collection may show exactly this text.
        let text_keys = self.text_keys[from..].iter();
        wanted.extend(text_keys.take_while(|record| part_of(record) == part));
        // Other classes are those of the collection that earlier rounds found.
        wanted.retain(|&[.., class]| classes.contains(&class) && !self.is_settled[class as usize]);
        wanted.sort_unstable();
        wanted.dedup();
        Ok(wanted)
    }

    /// Returns true if a class and a record with `size` features may resemble each other closely enough, given that they share `shared` keys.
    fn may_resemble(&self, class: usize, size: u32, shared: u32) -> bool {
        let sizes = [self.classes.sizes[class] as usize, size as usize];
        let (shared, threshold) = (u64::from(shared), self.settings.threshold);
        // Sampled classes also need their neighbours below the threshold, which the search for near misses lists.
        match (self.classes.hashes[class] >> 64) as u64 <= self.last_sampled {
            true => self
                .rule
                .may_reach_similarity(self.margin, sizes, shared, threshold),
            false => self.rule.is_promising(sizes, shared, threshold),
        }
    }
}

impl KeySearch<'_> {
    /// Divides the new classes into ranges whose keys fit in the memory.
    pub(crate) fn rounds(&self) -> Result<Vec<Range<u32>>, BatchError> {
        let classes = self.new.classes.len() as u32;
        // Partitions have similar sizes, because they are chosen by the last bits of keys, which are hashes.
        let one = self.matched_keys(0..1, &(0..classes))?.bytes();
        // Postings do not count here: they have a budget of their own, beyond which they go to a file.
        let rounds = (one * PARTS as u64).div_ceil(self.memory.max(1)).max(1);
        let share = u64::from(classes).div_ceil(rounds).max(1) as u32;
        let starts = (0..classes).step_by(share as usize);
        Ok(starts
            .map(|start| start..classes.min(start.saturating_add(share)))
            .collect())
    }

    /// Returns the keys of a range of new classes, in some partitions, that records have too.
    pub(crate) fn matched_keys(
        &self,
        parts: Range<usize>,
        classes: &Range<u32>,
    ) -> Result<MatchedKeys, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let postings = PartitionedFile::new(self.folder, self.memory / 2).map_err(&temporary)?;
        let mut writer = SpoolWriter::new(&postings);
        let (mut keys, mut members) = (Vec::new(), Vec::new());
        let places = RecordParts::new(self.segments);
        for part in parts {
            let own = self.new.search_keys(self.keys, part, classes);
            let own = own.map_err(&temporary)?;
            let groups: Vec<&[KeyRecord]> = own.chunk_by(|a, b| a[..2] == b[..2]).collect();
            // Keys of one partition have the same last byte, so rotating them keeps their order.
            let wanted: Vec<u64> = groups
                .iter()
                .map(|group| partition_first(key_of(&group[0])))
                .collect();
            // A key gets a number with its first record; those without a record need none.
            let mut numbers: Vec<Option<u32>> = vec![None; wanted.len()];
            // A partition at a time, because the keys of a partition are adjacent in every segment.
            for (segment, file) in self.segments.iter().enumerate() {
                file.find(&file.keys, &wanted, |found| {
                    let number = match numbers[found.wanted] {
                        Some(number) => number,
                        None => {
                            let group = groups[found.wanted];
                            members.extend(group.iter().map(|record| record[2]));
                            let key = key_of(&group[0]);
                            let is_text_key =
                                |record: &KeyRecord| self.new.text_key(record[2]) == key;
                            let number = u32::try_from(keys.len());
                            keys.push(MatchedKey {
                                key,
                                end: members.len(),
                                is_of_text: group.iter().any(is_text_key),
                            });
                            *numbers[found.wanted].insert(number.map_err(|_| BatchError::TooMany)?)
                        }
                    };
                    let record = record_of(found.bytes);
                    let posting = [segment as u32, record, number];
                    let part = places.part_of(segment, record);
                    writer.push(part, posting).map_err(&temporary)
                })?;
            }
        }
        writer.finish().map_err(&temporary)?;
        Ok(MatchedKeys {
            keys,
            members,
            postings,
        })
    }
}

/// Divides the records of all segments, concatenated, into [`PARTS`] ranges.
struct RecordParts {
    /// For each segment, the number of records in earlier segments.
    before: Vec<u64>,
    per_part: u64,
}

impl RecordParts {
    fn new(segments: &[SegmentFile]) -> Self {
        let mut all: u64 = 0;
        let before = segments.iter().map(|segment| {
            let before = all;
            all = all.saturating_add(segment.entry.records);
            before
        });
        Self {
            before: before.collect(),
            per_part: all.div_ceil(PARTS as u64).max(1),
        }
    }

    fn part_of(&self, segment: usize, record: u32) -> usize {
        let number = self.before[segment].saturating_add(u64::from(record));
        // A record number that does not exist gets a range too; looking it up returns an error.
        (number / self.per_part).min(PARTS as u64 - 1) as usize
    }
}

impl MatchedKeys {
    /// Returns the number of bytes in memory.
    fn bytes(&self) -> u64 {
        (self.keys.len() * size_of::<MatchedKey>() + self.members.len() * 4) as u64
    }

    /// Takes one of [`PARTS`] ranges of records: the keys of each, by segment and record.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<KeyPosting>> {
        let mut postings = self.postings.take(part)?;
        postings.sort_unstable();
        Ok(postings)
    }

    pub(crate) fn key(&self, posting: &KeyPosting) -> u64 {
        self.keys[posting[2] as usize].key
    }

    /// Returns the new classes that have a key.
    fn classes(&self, posting: &KeyPosting) -> &[u32] {
        let number = posting[2] as usize;
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.keys[before].end);
        &self.members[start..self.keys[number].end]
    }

    /// Returns true if a record with `size` features may resemble a new class closely enough. `postings` are its keys.
    pub(crate) fn has_candidate(
        &self,
        postings: &[KeyPosting],
        size: u32,
        new: &NewClasses<'_>,
        counts: &mut SharedCounts,
    ) -> bool {
        let mut may_meet = false;
        for posting in postings {
            may_meet |= self.keys[posting[2] as usize].is_of_text;
            self.classes(posting)
                .iter()
                .for_each(|&class| counts.add(class));
        }
        // Even if the answer is known, because all counts must be zero for the next record.
        counts.drain(|class, shared| {
            may_meet = may_meet || new.may_resemble(class as usize, size, shared)
        });
        may_meet
    }
}

impl SharedCounts {
    /// Creates the counts for a range of new classes.
    pub(crate) fn new(classes: &Range<u32>) -> Self {
        Self {
            first: classes.start,
            counts: TableColumn::zeroed(classes.len()),
            touched: Vec::new(),
        }
    }

    fn add(&mut self, class: u32) {
        let count = &mut self.counts[(class - self.first) as usize];
        if *count == 0 {
            self.touched.push(class);
        }
        *count += 1;
    }

    fn drain(&mut self, mut visit: impl FnMut(u32, u32)) {
        for class in self.touched.drain(..) {
            let count = &mut self.counts[(class - self.first) as usize];
            visit(class, std::mem::take(count));
        }
    }
}
