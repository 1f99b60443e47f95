//! The first pass: reads every record once, and keeps its id, the class of its text, and the feature set of each class.
//!
//! A text that was seen before costs only its hash. A text that is too long to be compared has a class by the hash of
//! its bytes, with an empty feature set: it may equal others, but resembles none.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::{FeatureExtractor, Features};
use lookalike_corpus::{
    BadRecord, BufferPool, InputOptions, Inputs, OrderKey, OrderNumber, Parser, Record,
    RecordChunk, RecordPosition, SkippedPart, TextState,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::candidate_groups::{KeyRecord, KeySink, KeyWriter, key_record};
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::frequency::{FeatureFrequency, FrequencyLevels};
use crate::dedup::hashing_stream::damaged;
use crate::dedup::memory_budget::{DedupMemory, later_bytes, skip_bytes};
use crate::dedup::pair_test::TestSets;
use crate::dedup::scan_batch::{EncodedBatch, NewClass, NewPage, ScanBatch, ScanRow, SetKinds};
use crate::dedup::scan_log::{ScanLog, SegmentChunk};
use crate::dedup::scan_tally::ScanTally;
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::DocumentMemory;
use crate::error::BatchError;
use crate::kernel::class_keys::{ClassSketcher, KeySalt, SketchPlan, text_key};
use crate::kernel::placed_text::{PlacedText, category_hash};
use crate::observer::{JobObserver, check_cancelled};
use crate::pipeline::{ChunkWorker, InputChunk, run_in_order};
use crate::settings::{JobSettings, Method, PairScope};
use crate::skipped::SkippedInput;
use crate::spill::feature_sets::{SetStore, header, place};
use crate::spill::table_memory;

/// Options of a scan.
pub(crate) struct ScanPlan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: &'a InputOptions,
    pub(crate) settings: &'a JobSettings,
    /// The sketch that is computed from each text.
    pub(crate) sketch: SketchPlan<'a>,
    /// The number of sources, from the first, whose documents are never removed.
    pub(crate) against_sources: usize,
    pub(crate) threads: usize,
    pub(crate) memory: DocumentMemory<'a>,
    /// Counters of features, for a method that orders them.
    pub(crate) frequency: Option<&'a FeatureFrequency>,
    /// Bytes of feature sets of each kind to keep in memory.
    pub(crate) sets_budget: u64,
    /// Shares of the memory as they were when the plan was made.
    pub(crate) budget: DedupMemory,
    pub(crate) folder: &'a Path,
}

/// Result of the first pass.
#[derive(Default)]
pub(crate) struct ScannedCollection {
    pub(crate) documents: DocumentTable,
    pub(crate) classes: TextClasses,
    pub(crate) sets: SetStore,
    /// The sets of each further test.
    pub(crate) test_sets: Vec<TestSets>,
    /// Feature sets of the visible text of pages.
    pub(crate) page_sets: SetStore,
    /// Counts of features, which are all 0 if the method does not order them; `None` until the scan has ended, and once the order is fixed.
    pub(crate) frequency: Option<FeatureFrequency>,
    pub(crate) bad: Vec<BadRecord>,
    pub(crate) skips: Vec<SkippedPart>,
    pub(crate) tally: ScanTally,
    /// The first value that the survivor rule cannot use, with its place.
    pub(crate) unusable: Option<String>,
    /// Number of records in each source, including unreadable ones.
    pub(crate) records: Vec<u64>,
    /// The part of a collection that was put before the documents read.
    pub(crate) stored: StoredCounts,
    /// True if a part of the result was read by an interrupted job.
    pub(crate) is_resumed: bool,
}

/// Counts of the part of a collection that new documents may resemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredCounts {
    /// Number of documents in the whole collection; `None` without a collection.
    pub(crate) collection: Option<u64>,
    /// Number of documents in the part.
    pub(crate) documents: u64,
    /// Number of classes in the part that are not classes of new documents.
    pub(crate) classes: u64,
}

impl ScannedCollection {
    /// Returns the order of features that their counts give; `threads` threads compute it.
    pub(crate) fn levels(&self, threads: usize) -> FrequencyLevels {
        let frequency = self.frequency.as_ref().expect("set when the scan ends");
        frequency.levels_by(threads)
    }

    /// Returns the number of bytes of the tables of documents and classes, and of further tests.
    pub(crate) fn table_bytes(&self) -> u64 {
        let tests: u64 = self.test_sets.iter().map(TestSets::bytes).sum();
        self.documents.bytes() + self.classes.bytes() + tests
    }

    /// Returns all stores of feature sets.
    fn set_stores(&mut self) -> impl Iterator<Item = &mut SetStore> {
        let tests = self.test_sets.iter_mut().map(|test| &mut test.sets);
        tests.chain([&mut self.sets, &mut self.page_sets])
    }
}

/// A piece of the input that contains documents.
pub(crate) trait ScanChunk: InputChunk {
    /// Returns the losses that occurred while it was read.
    fn skips(&self) -> &[SkippedPart];
    /// Returns the number of bytes of the input that it covers.
    fn read_bytes(&self) -> u64;
    /// Returns a checksum of its bytes.
    fn content_sum(&self) -> u64;
    /// Visits its records in order.
    fn parse(&self, parser: &mut Parser<'_>, visit: &mut dyn FnMut(Result<Record<'_>, BadRecord>));
}

impl ScanChunk for RecordChunk {
    fn skips(&self) -> &[SkippedPart] {
        &self.skips
    }

    fn read_bytes(&self) -> u64 {
        self.disk_bytes
    }

    fn content_sum(&self) -> u64 {
        RecordChunk::content_sum(self)
    }

    fn parse(&self, parser: &mut Parser<'_>, visit: &mut dyn FnMut(Result<Record<'_>, BadRecord>)) {
        parser.parse(self, visit);
    }
}

/// State that all workers share.
struct ScanShared<'a> {
    plan: &'a ScanPlan<'a>,
    seen: &'a SeenTexts,
    keys: &'a KeySink,
    too_many: &'a AtomicBool,
    /// Job of the log to which batches are also written, if there is one.
    logged_job: Option<u64>,
    /// Buffers for batches that are written to the log.
    buffers: BufferPool,
}

/// Writes the keys of a thread to their partitions, and collects them for a log if there is one.
struct ScanKeys<'a> {
    writer: KeyWriter<'a>,
    logged: Option<Vec<KeyRecord>>,
}

impl ScanKeys<'_> {
    fn push(&mut self, key: u64, class: u32) -> io::Result<()> {
        if let Some(logged) = &mut self.logged {
            logged.push(key_record(key, class));
        }
        self.writer.push(key, class)
    }
}

/// A batch, and its encoding for the log.
struct ScannedChunk {
    batch: ScanBatch,
    logged: Option<EncodedBatch>,
    begins_segment: bool,
}

/// One thread's part of the scan.
struct ScanWorker<'a> {
    shared: &'a ScanShared<'a>,
    parser: Parser<'a>,
    tools: ScanContext<'a>,
}

/// Tools with which a thread computes everything that is stored of a text.
struct ScanContext<'a> {
    extractor: FeatureExtractor,
    sketches: ClassSketcher,
    keys: ScanKeys<'a>,
    /// Extractors for the further tests.
    tests: Vec<FeatureExtractor>,
    /// Feature sets of the current chunk. The buffers are reused; batches get copies that fit.
    words: SetKinds<Vec<u64>>,
}

impl<'a> ScanWorker<'a> {
    fn new(shared: &'a ScanShared<'a>) -> Self {
        let tests = shared.plan.settings.tests.iter();
        let tests = tests.map(|test| test.extractor(shared.plan.sketch.scheme));
        let tools = ScanContext {
            extractor: shared.plan.sketch.extractor(),
            sketches: ClassSketcher::new(shared.plan.sketch),
            keys: ScanKeys {
                writer: shared.keys.writer(),
                logged: shared.logged_job.map(|_| Vec::new()),
            },
            tests: tests.collect(),
            words: SetKinds {
                tests: vec![Vec::new(); shared.plan.settings.tests.len()],
                ..SetKinds::default()
            },
        };
        Self {
            shared,
            parser: Parser::new(shared.plan.inputs, shared.plan.options).with_visible(),
            tools,
        }
    }

    fn batch(&mut self, chunk: &impl ScanChunk) -> io::Result<ScanBatch> {
        let mut batch = ScanBatch {
            skips: chunk.skips().to_vec(),
            raw_bytes: chunk.read_bytes(),
            ..ScanBatch::default()
        };
        let tools = &mut self.tools;
        tools.words.iter_mut().for_each(Vec::clear);
        let mut failed = None;
        chunk.parse(&mut self.parser, &mut |record| {
            let done = match record {
                Ok(record) => add_record(self.shared, &record, tools, &mut batch),
                Err(bad) => {
                    batch.facts.bad.push(bad);
                    Ok(())
                }
            };
            if let Err(error) = done {
                // The parser cannot be stopped, so keep the first error and ignore the rest of the chunk.
                failed.get_or_insert(error);
            }
        });
        batch.words = tools.words.clone();
        // Only a log needs the checksum, which costs a pass over the chunk.
        if let Some(keys) = &mut tools.keys.logged {
            batch.keys.append(keys);
            batch.content = chunk.content_sum();
        }
        failed.map_or(Ok(batch), Err)
    }
}

fn add_record(
    shared: &ScanShared<'_>,
    record: &Record<'_>,
    tools: &mut ScanContext<'_>,
    batch: &mut ScanBatch,
) -> io::Result<()> {
    let text = &*record.text;
    let tally = &mut batch.facts.tally;
    tally.count(record);
    let is_against = (record.source as usize) < shared.plan.against_sources;
    tally.missing_new += u64::from(!is_against && record.text_state == TextState::Missing);
    // Texts that are only white space are not copies in any useful sense, so they equal nothing.
    let class = if text.trim().is_empty() && record.long_hash.is_none() {
        // Some records beyond the limit have no hash; they count as too long only.
        tally.empty += u64::from(record.text_state != TextState::TooLong);
        // That the records have categories shows in any of them.
        tally.categorised += u64::from(record.category.is_some());
        None
    } else {
        let placed = placed(shared.plan, record, tally);
        // Across categories, new documents get classes apart from those that are only compared with; see `class_salt`.
        let salt = shared.plan.settings.scope.class_salt(is_against);
        let hash = placed.class_hash(shared.plan.settings.by_category()) ^ salt;
        let Some((class, is_new)) = shared.seen.class(hash) else {
            // The collector checks this.
            shared.too_many.store(true, Ordering::Relaxed);
            return Ok(());
        };
        if is_new {
            let size = tools.add_class(shared.plan, placed, class, hash, batch)?;
            // Texts that have no features by design are not counted.
            let compared = shared.plan.sketch.method != Method::Exact && !placed.is_too_long;
            let tally = &mut batch.facts.tally;
            tally.featureless += u64::from(compared && size == 0);
            tally.long_classes += u64::from(placed.is_too_long);
        }
        Some(class)
    };
    let value = batch.value(shared.plan, record);
    batch.ids.push_str(&record.id);
    batch.rows.push(ScanRow {
        source: record.source,
        id_end: batch.ids.len() as u32,
        class: class.map_or(0, |class: ClassId| class.position() as u64 + 1),
        length: text.len() as u64,
        record_hash: xxh3_64(record.raw),
        value: value.nearest,
        value_rest: value.rest,
    });
    Ok(())
}

impl ScanBatch {
    /// Returns the value that orders survivors, NaN if there is none; adds its text, if it has one, to those of the batch.
    fn value(&mut self, plan: &ScanPlan<'_>, record: &Record<'_>) -> OrderNumber {
        let none = OrderNumber {
            nearest: f64::NAN,
            rest: 0,
        };
        let is_new = u64::from(record.source as usize >= plan.against_sources);
        let facts = &mut self.facts;
        let tally = &mut facts.tally;
        match &record.order_key {
            OrderKey::Missing => {
                tally.unranked += is_new * u64::from(plan.settings.keep.field_rule().is_some());
                none
            }
            OrderKey::Unusable(value) => {
                tally.rank_unusable += is_new;
                if is_new > 0 && facts.unusable.is_none() {
                    let name = plan.inputs.sources[record.source as usize].name();
                    // A value may be a whole array or object.
                    let shown: String = value.json.chars().take(60).collect();
                    let (number, reason) = (record.number + 1, value.reason);
                    facts.unusable = Some(format!("{name}, record {number}: {shown} is {reason}"));
                }
                none
            }
            OrderKey::Number(number) => {
                tally.ranked += is_new;
                *number
            }
            OrderKey::Text(text) => {
                tally.ranked += is_new;
                facts.value_texts.push(text);
                OrderNumber::default()
            }
        }
    }
}

impl ScanContext<'_> {
    /// Computes the features and the sketch of a new text, adds it to the batch, and returns the number of its features.
    fn add_class(
        &mut self,
        plan: &ScanPlan<'_>,
        placed: PlacedText<'_>,
        class: ClassId,
        hash: u128,
        batch: &mut ScanBatch,
    ) -> io::Result<u32> {
        let (method, text) = (plan.sketch.method, placed.text);
        let number = class.position() as u32;
        // Before the features of the text, because the extractor keeps only those of the last text.
        let page = self.add_page(plan, placed, number);
        let features = match (method, placed.fields) {
            (Method::Exact, _) => Features::of_set(&[]),
            _ if placed.is_too_long => Features::of_set(&[]),
            (_, Some(fields)) => self.extractor.extract_with(text, fields),
            _ => self.sketches.features(&mut self.extractor, text),
        };
        let (word, size) = push_set(&mut self.words.texts, number, features.set);
        // Once per text: copies would make the features of their text look common.
        if let Some(frequency) = plan.frequency {
            frequency.add(features.set);
        }
        let salt = KeySalt::new(plan.settings.scope, placed.category);
        let keys = &mut self.keys;
        let fingerprint = self
            .sketches
            .sketch(&features, |key| keys.push(salt.apply(key), number))?;
        let is_part = placed.hash != placed.visible_hash;
        let settings = plan.settings;
        let spans_categories = settings.by_category() && settings.scope != PairScope::Within;
        if page.is_some() || is_part || spans_categories {
            // Equal visible texts with different categories, main texts or titles are different classes, which must share a key.
            let key = text_key(placed.visible_hash);
            self.keys.push(salt.apply(key), number)?;
        }
        batch.tests.extend(self.add_test_sets(placed, number));
        let pages = &mut batch.facts.pages;
        pages.extend(page.map(|page| (batch.classes.len(), page)));
        batch.classes.push(NewClass {
            hash,
            fingerprint,
            text: placed.visible_hash,
            category: placed.category,
            position: class.position() as u64,
            word,
            size,
            padding: [0; 2],
        });
        Ok(size)
    }

    /// Stores the sets for further tests and returns the word and size of each.
    fn add_test_sets(
        &mut self,
        placed: PlacedText<'_>,
        class: u32,
    ) -> impl Iterator<Item = [u32; 2]> {
        let tests = self.tests.iter_mut().zip(&mut self.words.tests);
        tests.map(move |(extractor, words)| {
            let set = match placed.fields {
                _ if placed.is_too_long => &[],
                Some(fields) => extractor.extract_with(placed.text, fields).set,
                None => extractor.feature_set(placed.text),
            };
            let (word, size) = push_set(words, class, set);
            [word, size]
        })
    }

    /// Stores the facts and features that verification needs of a page of which a part was chosen.
    fn add_page(
        &mut self,
        plan: &ScanPlan<'_>,
        placed: PlacedText<'_>,
        number: u32,
    ) -> Option<NewPage> {
        let visible = placed.visible?;
        let identity = visible.page?;
        // Then the features of the text serve for both.
        if visible.own() == placed.text || plan.sketch.method == Method::Exact {
            return Some(NewPage {
                identity,
                set: None,
            });
        }
        let set = match placed.fields {
            Some(fields) => self.extractor.extract_with(visible.own(), fields).set,
            None => self.extractor.feature_set(visible.own()),
        };
        let set = Some(push_set(&mut self.words.pages, number, set));
        Some(NewPage { identity, set })
    }
}

/// Appends the set of a class behind its header. Returns its word and its size.
fn push_set(words: &mut Vec<u64>, class: u32, set: &[u64]) -> (u32, u32) {
    let word = words.len() as u32;
    words.push(header(class, set.len()));
    words.extend_from_slice(set);
    (word, set.len() as u32)
}

/// Returns a record's text with its hashes and the hash of its category.
fn placed<'t>(
    plan: &ScanPlan<'_>,
    record: &'t Record<'_>,
    tally: &mut ScanTally,
) -> PlacedText<'t> {
    let category = match (plan.settings.by_category(), &record.category) {
        (false, _) => 0,
        (_, None) => {
            // The category of a line that is too long to be parsed is unknown, but equal for equal bytes.
            tally.uncategorised += u64::from(record.long_hash.is_none());
            0
        }
        (_, Some(category)) => {
            tally.categorised += 1;
            category_hash(category)
        }
    };
    PlacedText::of_record(record, plan.sketch.scheme, category)
}

impl<C: ScanChunk> ChunkWorker<SegmentChunk<C>> for ScanWorker<'_> {
    type Output = ScannedChunk;

    fn run(&mut self, chunk: &SegmentChunk<C>) -> Result<ScannedChunk, BatchError> {
        let folder = self.shared.plan.folder;
        let mut scanned = || {
            let batch = self.batch(&chunk.chunk)?;
            let buffers = &self.shared.buffers;
            let logged = self.shared.logged_job;
            let logged = logged.map(|job| batch.encode(buffers.take(), job));
            Ok(ScannedChunk {
                batch,
                logged: logged.transpose()?,
                begins_segment: chunk.begins_segment,
            })
        };
        scanned().map_err(BatchError::temporary(folder))
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        let tools = &mut self.tools;
        tools.extractor.shrink();
        tools.tests.iter_mut().for_each(FeatureExtractor::shrink);
        tools.words.iter_mut().for_each(|words| *words = Vec::new());
    }
}

/// Adds batches to the tables, in input order.
struct ScanCollector<'a> {
    plan: &'a ScanPlan<'a>,
    scanned: ScannedCollection,
    /// Maximum number of documents that the tables can number.
    most_documents: usize,
    read_bytes: u64,
    /// Bytes of the lists of records and files that could not be read.
    list_bytes: u64,
}

impl<'a> ScanCollector<'a> {
    fn new(plan: &'a ScanPlan<'a>) -> Self {
        let scanned = ScannedCollection {
            sets: SetStore::new(plan.sets_budget),
            test_sets: (plan.settings.tests.iter())
                .map(|_| TestSets::new(plan.sets_budget))
                .collect(),
            page_sets: SetStore::new(plan.sets_budget / 3),
            records: vec![0; plan.inputs.sources.len()],
            ..ScannedCollection::default()
        };
        Self {
            plan,
            scanned,
            // `u32::MAX` is no document: ranking uses it as a mark.
            most_documents: u32::MAX as usize - 1,
            read_bytes: 0,
            list_bytes: 0,
        }
    }

    /// Reports progress to the observer. Returns an error if it has cancelled the job.
    fn report_progress(&self, observer: &dyn JobObserver) -> Result<(), BatchError> {
        observer.progress(self.read_bytes);
        check_cancelled(observer).map_err(BatchError::temporary(self.plan.folder))
    }

    /// Reduces the feature sets in memory to make room for tables. Returns an error if that and files are not enough.
    fn spill_to_fit(&mut self, batch: &ScanBatch) -> Result<(), BatchError> {
        let reasons = batch.facts.bad.iter().map(|bad| bad.reason.len());
        let reasons = reasons.chain(batch.skips.iter().map(|skip| skip.reason.len()));
        self.list_bytes += reasons.map(skip_bytes).sum::<u64>();
        let tables = self.scanned.table_bytes();
        let scanned = &mut self.scanned;
        let rows = (scanned.documents.len() + batch.rows.len()) as u64;
        let texts = (scanned.classes.len() + batch.classes.len()) as u64;
        // Later steps count too, because feature sets are moved to disk only during the scan.
        let tables = tables + later_bytes(rows, texts);
        let left = self.plan.budget.remaining_after(tables, self.list_bytes)?;
        let share = left / (1 + scanned.test_sets.len() as u64);
        // Feature sets of visible texts, if there are any, take a third of the share.
        let (mut own, pages) = (share, share / 3);
        if !scanned.classes.pages.is_empty() {
            own -= pages;
        }
        let tests = scanned.test_sets.iter_mut();
        let tests = tests.map(|test| (&mut test.sets, share));
        let mut all = tests.chain([(&mut scanned.sets, own), (&mut scanned.page_sets, pages)]);
        all.try_for_each(|(sets, room)| sets.shrink(room, self.plan.folder))
            .and_then(|()| table_memory::check(self.plan.folder))
            .map_err(BatchError::temporary(self.plan.folder))
    }

    /// Lets sets that leave memory be read from the log.
    fn use_log(&mut self, log: &ScanLog) {
        for sets in self.scanned.set_stores() {
            sets.use_log(log.file());
        }
    }

    /// Continues without a log that could not be written. Returns false if some sets are only in the log.
    fn stop_logging(&mut self) -> bool {
        let mut is_whole = true;
        for sets in self.scanned.set_stores() {
            is_whole &= sets.stop_logging();
        }
        is_whole
    }

    /// Returns an error if a document has a class that is not there, as it could be in a log.
    fn check_classes(&self) -> io::Result<()> {
        let ScannedCollection {
            documents, classes, ..
        } = &self.scanned;
        let mut all = documents.classes.iter().flatten();
        match all.all(|class| class.position() < classes.len()) {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// Adds a batch; `logged` has the places of its sets in the log.
    fn append(
        &mut self,
        mut batch: ScanBatch,
        logged: Option<SetKinds<u64>>,
    ) -> Result<(), BatchError> {
        self.read_bytes += batch.raw_bytes;
        // Before the rest of the input is read, because the job cannot succeed any more.
        if self.scanned.documents.len() + batch.rows.len() > self.most_documents {
            return Err(BatchError::TooMany);
        }
        // Before the batch is added, so that both fit in the memory.
        self.spill_to_fit(&batch)?;
        let losses = self.plan.settings.losses;
        if losses.is_strict() {
            let bad = batch.facts.bad.iter();
            let bad = bad.map(|bad| SkippedInput::record(self.plan.inputs, bad));
            let mut skipped = bad.chain(batch.skips.iter().map(SkippedInput::part));
            skipped.try_for_each(|skipped| losses.refuse_first(&skipped))?;
        }
        self.append_rows(&batch);
        let segments = self.append_sets(&mut batch, logged)?;
        for (number, class) in batch.classes.iter().enumerate() {
            self.append_class(class, batch.tests_of(number), &segments);
        }
        let facts = batch.facts;
        for (number, NewPage { identity, set }) in facts.pages {
            let set = set.map(|(word, size)| (place(segments.pages, word), size));
            let class = batch.classes[number].id();
            self.scanned.classes.pages.set(class, identity, set);
        }
        if self.scanned.unusable.is_none() {
            self.scanned.unusable = facts.unusable;
        }
        self.scanned.bad.extend(facts.bad);
        self.scanned.skips.extend(batch.skips);
        self.scanned.tally += facts.tally;
        Ok(())
    }

    /// Adds the documents of a batch.
    fn append_rows(&mut self, batch: &ScanBatch) {
        let ScannedCollection {
            documents, records, ..
        } = &mut self.scanned;
        let mut start = 0;
        for row in &batch.rows {
            documents.push_id(&batch.ids[start..row.id_end as usize]);
            start = row.id_end as usize;
            documents.classes.push(row.class());
            documents.lengths.push(row.length);
            documents.record_hashes.push(row.record_hash);
            if self.plan.settings.keep.field_rule().is_some() {
                documents.push_value(OrderNumber {
                    nearest: row.value,
                    rest: row.value_rest,
                });
            }
            if (row.source as usize) < self.plan.against_sources {
                documents.against += 1;
            }
            records[row.source as usize] += 1;
        }
        documents.value_texts.append(&batch.facts.value_texts);
        for bad in &batch.facts.bad {
            // Unreadable records are counted too, or a second pass would count differently.
            records[bad.source as usize] += 1;
        }
    }

    /// Moves the feature sets of a batch to the stores, and returns their segments: a batch is a segment of each, so that its classes keep their
    /// positions. That of pages is unused if no page has a set.
    fn append_sets(
        &mut self,
        batch: &mut ScanBatch,
        logged: Option<SetKinds<u64>>,
    ) -> Result<SetKinds<u32>, BatchError> {
        let scanned = &mut self.scanned;
        let folder = self.plan.folder;
        let temporary = BatchError::temporary(folder);
        let push = |sets: &mut SetStore, words: &mut Vec<u64>, at: Option<u64>| {
            let pushed = sets.push_logged(std::mem::take(words), at, folder);
            pushed.map_err(&temporary)
        };
        let (words, at) = (&mut batch.words, logged.as_ref());
        let texts = at.map(|at| at.texts);
        let mut segments = SetKinds {
            texts: push(&mut scanned.sets, &mut words.texts, texts)?,
            ..SetKinds::default()
        };
        let tests = scanned.test_sets.iter_mut().zip(&mut words.tests);
        for (number, (test, words)) in tests.enumerate() {
            let at = at.map(|at| at.tests[number]);
            segments.tests.push(push(&mut test.sets, words, at)?);
        }
        if !words.pages.is_empty() {
            // Both stores share the budget once both are needed.
            let shrunk = scanned.sets.shrink(self.plan.sets_budget / 3 * 2, folder);
            shrunk.map_err(&temporary)?;
            let pages = at.map(|at| at.pages);
            segments.pages = push(&mut scanned.page_sets, &mut words.pages, pages)?;
        }
        Ok(segments)
    }

    /// Adds a class of a batch, whose sets are in these segments; `tests` has those for further tests.
    fn append_class(&mut self, new: &NewClass, tests: &[[u32; 2]], segments: &SetKinds<u32>) {
        let class = new.id();
        let ScannedCollection {
            classes, test_sets, ..
        } = &mut self.scanned;
        let tests = test_sets.iter_mut().zip(&segments.tests).zip(tests);
        for ((test, &segment), &[word, size]) in tests {
            test.set(class, place(segment, word), size);
        }
        classes.set_features(class, place(segments.texts, new.word), new.size);
        if self.plan.sketch.method.has_fingerprints() {
            let bits = self.plan.settings.fingerprint_bits();
            classes.set_fingerprint(class, new.fingerprint, bits);
        }
        if self.plan.settings.by_category() {
            classes.set_category(class, new.category, new.text);
        } else if new.text != new.hash {
            // A missing hash stands for the hash of the class: see `TextClasses::visible_text`.
            classes.set_visible_text(class, new.text);
        }
    }
}

/// Reads all chunks. Keys that a method computes from its sketches go to `keys`. Chunks whose batches are in `log` are not parsed again, and
/// the batches of the others are added to it.
pub(crate) fn scan<C: ScanChunk, E: Send>(
    plan: &ScanPlan<'_>,
    mut chunks: impl Iterator<Item = Result<C, E>> + Send,
    keys: &KeySink,
    mut log: Option<ScanLog>,
    observer: &dyn JobObserver,
) -> Result<ScannedCollection, BatchError>
where
    BatchError: From<E>,
{
    plan.settings.losses.refuse_undiscovered(plan.inputs)?;
    let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
    let shared = ScanShared {
        plan,
        seen: &seen,
        keys,
        too_many: &too_many,
        logged_job: log.as_ref().map(ScanLog::job),
        buffers: BufferPool::default(),
    };
    let mut collector = ScanCollector::new(plan);
    let failed = BatchError::temporary(plan.folder);
    if let Some(log) = &mut log {
        // If temporary files are to be on another disk, sets are stored there, because they are read in any order.
        if log.shares_disk(plan.folder).map_err(&failed)? {
            collector.use_log(log);
        }
        let mut writer = keys.writer();
        // Replay the complete log before any worker starts, so that classes get the numbers that they had.
        while let Some((mut batch, sets)) = log.replay().map_err(&failed)? {
            // Although the checksum is right, the log is a file, so its indices are checked.
            let checked = batch.check_indices(plan.inputs.sources.len(), plan.settings.tests.len());
            checked.map_err(&failed)?;
            let chunk = chunks.next().transpose()?;
            complete_from_chunk(plan, chunk.as_ref(), &mut batch)?;
            shared.restore(&batch, &mut writer).map_err(&failed)?;
            collector.append(batch, Some(sets))?;
            collector.scanned.is_resumed = true;
            collector.report_progress(observer)?;
        }
        writer.finish().map_err(&failed)?;
        collector.check_classes().map_err(&failed)?;
    }
    let chunks = SegmentChunk::cut(chunks, log.as_ref().map(ScanLog::segment_bytes));
    let workers = (0..plan.threads)
        .map(|_| ScanWorker::new(&shared))
        .collect();
    let workers = run_in_order(
        chunks,
        plan.memory,
        observer,
        workers,
        |scanned: ScannedChunk| {
            if log.as_ref().is_some_and(ScanLog::has_failed) {
                end_log(&mut log, &mut collector)?;
            }
            let logged = log.as_mut().zip(scanned.logged);
            let logged = logged.map(|(log, batch)| log.add(batch, scanned.begins_segment));
            collector.append(scanned.batch, logged)?;
            // Texts without a number are in no batch, so the results would be wrong.
            // Relaxed suffices, because the worker set it before it passed on this batch.
            if too_many.load(Ordering::Relaxed) {
                return Err(BatchError::TooMany);
            }
            // If the job is cancelled here, the log is dropped and keeps its complete segments.
            collector.report_progress(observer)
        },
    )?;
    end_log(&mut log, &mut collector)?;
    for worker in workers {
        let keys = worker.tools.keys.writer;
        keys.finish().map_err(&failed)?;
    }
    let mut scanned = collector.scanned;
    // Until here the table of seen texts has the hashes, so that they are in memory only once.
    scanned.classes.hashes = seen.into_hashes(scanned.classes.len());
    Ok(scanned)
}

/// Ends the log. If it could not be written, as on a full disk, the job continues without it if all sets are in memory. Otherwise the log
/// is kept for a resumed job.
fn end_log(log: &mut Option<ScanLog>, collector: &mut ScanCollector<'_>) -> Result<(), BatchError> {
    match log.take().map_or(Ok(()), ScanLog::finish) {
        // The guard also makes the stores forget the log.
        Err(unfinished) if !collector.stop_logging() => Err(unfinished.into()),
        Err(unfinished) => {
            unfinished.discard();
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Completes a batch of a log with data from its chunk, whose bytes must be those that the batch was made of.
fn complete_from_chunk<C: ScanChunk>(
    plan: &ScanPlan<'_>,
    chunk: Option<&C>,
    batch: &mut ScanBatch,
) -> Result<(), BatchError> {
    let same = chunk.filter(|chunk| chunk.content_sum() == batch.content);
    let Some(chunk) = same else {
        // The name is a guess: a chunk without lines does not know its source, and the input may have ended.
        let place = chunk.and_then(|chunk| chunk.longest_document().place);
        let row = batch.rows.last().map(|row| row.source);
        let source = place.map(|place: RecordPosition| place.source).or(row);
        let source = plan.inputs.sources.get(source.unwrap_or(0) as usize);
        return Err(BatchError::ResumedInput {
            name: source.map_or_else(String::new, |source| source.name().into_owned()),
        });
    };
    batch.skips = chunk.skips().to_vec();
    batch.raw_bytes = chunk.read_bytes();
    Ok(())
}

impl ScanShared<'_> {
    /// Marks the texts of a batch of a log as seen, and passes on the keys and counts that a worker had passed on for it.
    fn restore(&self, batch: &ScanBatch, keys: &mut KeyWriter<'_>) -> io::Result<()> {
        for class in &batch.classes {
            self.seen.restore(class.hash, class.id());
            if let Some(frequency) = self.plan.frequency {
                let set = match class.size as usize {
                    0 => &[][..],
                    size => &batch.words.texts[class.word as usize + 1..][..size],
                };
                frequency.add(set);
            }
        }
        let mut records = batch.keys.iter();
        records.try_for_each(|&record| keys.push_record(record))
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::dedup::job::DedupJob;

    #[test]
    fn too_many_documents_were_refused_only_when_all_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.jsonl");
        std::fs::write(&input, "{\"id\":\"a\",\"text\":\"a rose\"}\n").unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[input.into()], &options, folder.path()).unwrap();
        let job = DedupJob::new(&inputs, folder.path());
        let mut budget = job.memory();
        let two = || ScanBatch {
            ids: "ab".to_owned(),
            rows: [1, 2]
                .map(|id_end| ScanRow {
                    id_end,
                    ..ScanRow::zeroed()
                })
                .into(),
            ..ScanBatch::default()
        };
        let refused = job.scan_with(&mut budget, 0, |plan| {
            let mut collector = ScanCollector {
                most_documents: 3,
                ..ScanCollector::new(plan)
            };
            collector.append(two(), None).unwrap();
            Err(collector.append(two(), None).unwrap_err())
        });
        assert!(matches!(refused, Err(BatchError::TooMany)));
    }
}
