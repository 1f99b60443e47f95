//! The part of a collection that can affect the decisions on new documents, which is put before these in the tables of a job.
//!
//! The decisions equal those of a job that reads the whole collection again. In such a job, the classes of the collection come first in
//! the order of ranks and survive whatever they resemble; so a new document is decided by
//!
//! 1. the class of its text, if the collection has it: step 1 finds it by its hash;
//! 2. earlier survivors that it may resemble. In a job that reads everything, these share a candidate key with its class, and as many keys as
//!    both sizes require. Step 2 finds those of the collection by keys and sizes alone ([`candidate_records`]), and passes on every key
//!    that they share with any new class, so that the same number of shared groups is counted;
//! 3. the order of the classes of the collection, if two are equally similar. It is the order of their preferred documents. The order of two
//!    documents does not depend on others, as long as all documents of a class are loaded (a record has those of its
//!    segment, and steps 1 and 2 search all segments) and each has the id that it would have among all documents: step 3 finds the documents
//!    whose ids affect how others are renamed.
//!
//! Keys match because everything they depend on is the same in all jobs of a collection, including the order of features, and any order
//! finds all pairs (see [`frequency`](crate::dedup::frequency)). A superset of the neighbourhood changes nothing.
//!
//! [`candidate_records`]: crate::dedup::collection::candidate_records

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use hashbrown::HashMap;
use lookalike_corpus::PageIdentity;
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::candidate_groups::{KeySink, KeyWriter};
use crate::dedup::class_id::{ClassId, put};
use crate::dedup::collection::blocks::BlockRun;
use crate::dedup::collection::candidate_records::{
    KeySearch, MatchedKeys, NewClasses, SharedCounts,
};
use crate::dedup::collection::directory::DocumentCollection;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::lookup::{SegmentDocument, SegmentPosition, hash_of, record_of};
use crate::dedup::documents::DocumentTable;
use crate::dedup::scan::{ScannedCollection, StoredCounts};
use crate::error::BatchError;
use crate::settings::{JobSettings, PairList};
use crate::spill::feature_sets::SetAppender;
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;

/// A part of a collection that is being loaded into the tables.
pub(crate) struct Neighbourhood<'a> {
    pub(crate) collection: &'a DocumentCollection,
    pub(crate) settings: &'a JobSettings,
    /// Scan of the new documents.
    pub(crate) scanned: &'a mut ScannedCollection,
    /// Keys of all new classes.
    pub(crate) keys: &'a KeySink,
    /// Folder for temporary files.
    pub(crate) folder: &'a Path,
    /// Bytes for the keys that old and new classes share.
    pub(crate) memory: u64,
}

/// Records that were found so far.
struct FoundRecords {
    /// Numbers of classes by their hashes.
    classes: HashMap<u128, ClassId>,
    /// Classes of the records of each segment; `None` for a document without a text.
    records: Vec<HashMap<u32, Option<ClassId>>>,
    /// Number of new classes, which have the first numbers.
    new: usize,
    /// Number of the next class.
    next: usize,
    /// Records found since records were last read.
    waiting: Vec<WaitingRecord>,
}

#[derive(Clone, Copy)]
struct WaitingRecord {
    segment: usize,
    record: u32,
    place: SegmentPosition,
    class: Option<ClassId>,
    /// True if the tables have nothing of the class yet.
    is_new: bool,
}

/// A document that was found, with its segment.
struct LoadedDocument {
    segment: usize,
    class: Option<ClassId>,
    stored: SegmentDocument,
}

/// The blocks that were read last, of the current segment.
#[derive(Default)]
struct SegmentBlocks {
    segment: u32,
    run: BlockRun,
}

impl SegmentBlocks {
    fn of(&mut self, segment: u32) -> &mut BlockRun {
        // Blocks of different segments have the same numbers.
        if self.segment != segment {
            (self.segment, self.run) = (segment, BlockRun::default());
        }
        &mut self.run
    }
}

impl Neighbourhood<'_> {
    /// Puts the neighbourhood of the new documents before them.
    pub(crate) fn load(mut self) -> Result<(), BatchError> {
        let new_classes = self.scanned.classes.len();
        let mut found = FoundRecords {
            classes: HashMap::new(),
            records: self
                .collection
                .segments
                .iter()
                .map(|_| HashMap::new())
                .collect(),
            new: new_classes,
            next: new_classes,
            waiting: Vec::new(),
        };
        self.find_texts(&mut found)?;
        self.find_keys(&mut found)?;
        let mut documents = Vec::new();
        self.read(&mut found, &mut documents)?;
        self.find_namesakes(&mut found, &mut documents)?;
        self.scanned.stored = StoredCounts {
            collection: Some(self.collection.documents()),
            documents: documents.len() as u64,
            classes: (found.next - new_classes) as u64,
        };
        // In the order of addition, because the rule `first` depends on it.
        documents.sort_unstable_by_key(|found| (found.segment, found.stored.order));
        let stored = self.table(&documents);
        // `u32::MAX` stands for no document.
        if stored.len() + self.scanned.documents.len() >= u32::MAX as usize {
            return Err(BatchError::TooMany);
        }
        self.scanned.documents.prepend(stored);
        Ok(())
    }

    /// Step 1: finds classes of the collection that have the text or the visible text of a new one.
    fn find_texts(&self, found: &mut FoundRecords) -> Result<(), BatchError> {
        let classes = &self.scanned.classes;
        // Sorted, because each row that is found has only its hash, not the class that wanted it.
        let mut wanted: TableColumn<(u128, u32)> =
            classes.hashes.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        // The visible text of a page may be the whole of another text, which then has no key for it.
        let visible = (0..classes.len()).map(|class| classes.visible_text(class));
        let parts = visible.zip(&classes.hashes);
        let parts = parts.filter(|(visible, hash)| visible != *hash);
        let mut visible: TableColumn<u128> = parts.map(|(visible, _)| visible).collect();
        visible.sort_unstable();
        let hashes = wanted.iter().map(|(hash, _)| hash).chain(&visible);
        let mut tops: TableColumn<u64> = hashes.map(|hash| (hash >> 64) as u64).collect();
        tops.sort_unstable();
        // A repeated value would visit its records twice.
        tops.dedup();
        for (number, segment) in self.collection.segments.iter().enumerate() {
            // Added after the search, because adding a record reads its row and the next one.
            let mut of_segment = Vec::new();
            segment.find(&segment.rows, &tops, |row| {
                let hash = hash_of(row.bytes);
                match wanted.binary_search_by_key(&hash, |&(hash, _)| hash) {
                    Ok(at) => of_segment.push((row.number as u32, hash, Some(wanted[at].1))),
                    Err(_) if visible.binary_search(&hash).is_ok() => {
                        of_segment.push((row.number as u32, hash, None));
                    }
                    Err(_) => {}
                }
                Ok::<_, CollectionError>(())
            })?;
            let mut rows = BlockRun::default();
            for (record, hash, class) in of_segment {
                if let Some(class) = class {
                    let class = ClassId::new(class as usize).ok_or(BatchError::TooMany)?;
                    found.classes.insert(hash, class);
                }
                self.add_record(found, number, record, &mut rows)?;
            }
        }
        Ok(())
    }

    /// Step 2: finds classes of the collection that a new one may resemble, and the keys that they share with new ones.
    fn find_keys(&self, found: &mut FoundRecords) -> Result<(), BatchError> {
        let mut is_settled = TableColumn::<bool>::zeroed(self.scanned.classes.len());
        if self.settings.pairs == PairList::Deciding {
            // A class whose text is in the collection survives anyway.
            let known = found.classes.values().map(|class| class.position());
            let new = known.filter(|&class| class < found.new);
            new.for_each(|class| is_settled[class] = true);
        }
        let new = NewClasses::new(self.settings, &self.scanned.classes, is_settled);
        let search = KeySearch {
            segments: &self.collection.segments,
            keys: self.keys,
            new: &new,
            folder: self.folder,
            memory: self.memory,
        };
        // Keys of found classes go to the sink that later rounds read; `search_keys` leaves them out by their classes.
        let mut writer = self.keys.writer();
        for round in search.rounds()? {
            let matched = search.matched_keys(0..PARTS, &round)?;
            self.add_candidates(&matched, &new, &round, found, &mut writer)?;
        }
        writer.finish().map_err(BatchError::temporary(self.folder))
    }

    /// Adds the records that may resemble a class of a round, and passes on the keys that they share with these.
    fn add_candidates(
        &self,
        matched: &MatchedKeys,
        new: &NewClasses<'_>,
        round: &Range<u32>,
        found: &mut FoundRecords,
        writer: &mut KeyWriter<'_>,
    ) -> Result<(), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let mut counts = SharedCounts::new(round);
        let (mut rows, mut sizes) = (SegmentBlocks::default(), SegmentBlocks::default());
        for part in 0..PARTS {
            // Ascending, so sizes and rows are read from the beginning of a segment to its end.
            let postings = matched.take(part).map_err(&temporary)?;
            for of_record in postings.chunk_by(|a, b| a[..2] == b[..2]) {
                let [segment, record, _] = of_record[0];
                let number = segment as usize;
                let class = match found.records[number].get(&record) {
                    // It was a candidate in another round, or has the text of a new document.
                    Some(&class) => class,
                    None => {
                        let file = &self.collection.segments[number];
                        let size = file.size(record, sizes.of(segment))?;
                        if !matched.has_candidate(of_record, size, new, &mut counts) {
                            continue;
                        }
                        self.add_record(found, number, record, rows.of(segment))?
                    }
                };
                // A class that is also a new one already has all its keys.
                if let Some(class) = class.filter(|class| class.position() >= found.new) {
                    let class = class.position() as u32;
                    let mut keys = of_record.iter().map(|posting| matched.key(posting));
                    keys.try_for_each(|key| writer.push(key, class))
                        .map_err(&temporary)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a record and returns its class.
    fn add_record(
        &self,
        found: &mut FoundRecords,
        segment: usize,
        record: u32,
        rows: &mut BlockRun,
    ) -> Result<Option<ClassId>, BatchError> {
        // Another step may have found it before.
        if let Some(&class) = found.records[segment].get(&record) {
            return Ok(class);
        }
        let file = &self.collection.segments[segment];
        let place = file.place(record, rows)?;
        // The same text may be in several segments and among the new documents; it is a single class.
        let known = found.classes.get(&place.hash).copied();
        let class = match (file.is_classless(record), known) {
            (true, _) => None,
            (false, Some(class)) => Some(class),
            (false, None) => {
                let class = ClassId::new(found.next).ok_or(BatchError::TooMany)?;
                found.next += 1;
                found.classes.insert(place.hash, class);
                Some(class)
            }
        };
        found.records[segment].insert(record, class);
        found.waiting.push(WaitingRecord {
            segment,
            record,
            place,
            class,
            is_new: known.is_none(),
        });
        Ok(class)
    }

    /// Reads the records that were found.
    fn read(
        &mut self,
        found: &mut FoundRecords,
        documents: &mut Vec<LoadedDocument>,
    ) -> Result<(), BatchError> {
        let mut waiting = std::mem::take(&mut found.waiting);
        // In the order of the files, so that the disk is read sequentially.
        waiting.sort_unstable_by_key(|waiting| (waiting.segment, waiting.record));
        let scanned = &mut *self.scanned;
        let folder = self.folder;
        let temporary = BatchError::temporary(folder);
        let mut own = SetAppender::new(&mut scanned.sets, folder);
        let mut pages = SetAppender::new(&mut scanned.page_sets, folder);
        let classes = &mut scanned.classes;
        let tests = scanned.test_sets.iter_mut().map(|test| {
            let sets = SetAppender::new(&mut test.sets, folder);
            (sets, &mut test.places, &mut test.sizes)
        });
        let mut tests: Vec<_> = tests.collect();
        let mut bytes = Vec::new();
        for waiting in waiting {
            let file = &self.collection.segments[waiting.segment];
            let count = self.settings.tests.len();
            let record = file.record(waiting.record, waiting.place, count, &mut bytes)?;
            // The features of a class that a new text or another segment has are there already.
            if let Some(class) = waiting.class.filter(|_| waiting.is_new) {
                let number = class.position() as u32;
                let place = own.push(number, &record.features).map_err(&temporary)?;
                let hash = waiting.place.hash;
                classes.set(class, hash, place, record.features.len() as u32);
                if let Some(fingerprint) = record.fingerprint {
                    classes.set_fingerprint(class, fingerprint, self.settings.fingerprint_bits());
                }
                let visible = record.visible.unwrap_or(hash);
                // As in a scan: with categories, every class has the hash of its visible text; without them, only if it differs.
                if let Some(category) = record.category {
                    classes.set_category(class, category, visible);
                } else if visible != hash {
                    classes.set_visible_text(class, visible);
                }
                if let Some(identity) = record.page.and_then(PageIdentity::from_bits) {
                    let set = match record.page_features.len() {
                        0 => None,
                        size => {
                            let place = pages.push(number, &record.page_features);
                            Some((place.map_err(&temporary)?, size as u32))
                        }
                    };
                    classes.pages.set(class, identity, set);
                }
                for ((sets, places, sizes), set) in tests.iter_mut().zip(&record.test_features) {
                    let place = sets.push(number, set).map_err(&temporary)?;
                    put(places, class, place);
                    put(sizes, class, set.len() as u32);
                }
            }
            // All documents of a class, because the preferred one gives it its rank.
            documents.extend(record.documents.into_iter().map(|stored| LoadedDocument {
                segment: waiting.segment,
                class: waiting.class,
                stored,
            }));
        }
        own.finish().map_err(&temporary)?;
        pages.finish().map_err(&temporary)?;
        let mut tests = tests.into_iter();
        tests.try_for_each(|(sets, ..)| sets.finish().map(drop).map_err(&temporary))
    }

    /// Step 3: finds documents that have an id of those found, or an id that a repeated id may be renamed to, or that may be renamed
    /// to one of those; and so on, until no more are found.
    fn find_namesakes(
        &mut self,
        found: &mut FoundRecords,
        documents: &mut Vec<LoadedDocument>,
    ) -> Result<(), BatchError> {
        // If the second `a` becomes `a#2`, a document that was read as `a#2` may become `a#2#2`, and so on. So names lead to further names in both
        // directions.
        let mut asked: HashSet<String> = HashSet::new();
        let mut names: Vec<String> = documents
            .iter()
            .map(|found| found.stored.id.clone())
            .collect();
        let mut counted = 0;
        while !names.is_empty() {
            let mut hashes: Vec<u64> = Vec::new();
            for name in names.drain(..) {
                // `a#2` may be the second `a`, and `a#2#2` the second `a#2`.
                let mut name = &*name;
                while !asked.contains(name) {
                    // Other ids may have the same hash: they only make the neighbourhood larger.
                    hashes.push(xxh3_64(name.as_bytes()));
                    asked.insert(name.to_owned());
                    match name.rsplit_once('#') {
                        Some((base, number)) if is_number(number) => name = base,
                        _ => break,
                    }
                }
            }
            hashes.sort_unstable();
            hashes.dedup();
            self.find_ids(found, &hashes)?;
            self.read(found, documents)?;
            names.extend(
                documents[counted..]
                    .iter()
                    .map(|found| found.stored.id.clone()),
            );
            // Only names of documents found in the last round can lead to more.
            counted = documents.len();
            names.extend(numbered(documents));
            names.retain(|name| !asked.contains(name));
        }
        Ok(())
    }

    fn find_ids(&mut self, found: &mut FoundRecords, hashes: &[u64]) -> Result<(), BatchError> {
        for (number, segment) in self.collection.segments.iter().enumerate() {
            let mut of_segment = Vec::new();
            segment.find(&segment.ids, hashes, |id| {
                of_segment.push(record_of(id.bytes));
                Ok::<_, CollectionError>(())
            })?;
            // In the order of records, so that rows are read from the beginning of the segment to its end.
            of_segment.sort_unstable();
            let mut rows = BlockRun::default();
            for record in of_segment {
                self.add_record(found, number, record, &mut rows)?;
            }
        }
        Ok(())
    }

    fn table(&self, documents: &[LoadedDocument]) -> DocumentTable {
        let mut table = DocumentTable::default();
        let ranked = self.settings.keep.field_rule().is_some();
        for LoadedDocument { class, stored, .. } in documents {
            table.push_id(&stored.id);
            table.classes.push(*class);
            table.lengths.push(stored.length);
            table.record_hashes.push(stored.record_hash);
            if ranked {
                table.push_value(stored.value);
                let text = stored.value_text.iter();
                text.for_each(|text| table.value_texts.push(text));
            }
        }
        table
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the names that documents with repeated ids may get.
fn numbered(documents: &[LoadedDocument]) -> Vec<String> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for found in documents {
        *counts.entry(&found.stored.id).or_default() += 1;
    }
    let mut names = Vec::new();
    for found in documents {
        let id = &*found.stored.id;
        // Another document may be renamed to an id that looks like a renamed one.
        let looks_numbered = id
            .rsplit_once('#')
            .is_some_and(|(base, number)| is_number(number) && counts.contains_key(base));
        let count = counts.get(id).copied().unwrap_or(0) + u32::from(looks_numbered);
        if count > 1 {
            names.extend((2..=count).map(|number| format!("{id}#{number}")));
        }
    }
    names
}
