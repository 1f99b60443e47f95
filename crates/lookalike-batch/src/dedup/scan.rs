//! The first pass: read every record once, keep its id, the class of its text, and once a class its feature set.
//!
//! A text that was seen before costs its hash and nothing more. One that is too long to be compared has a class by the hash of
//! its bytes, with an empty feature set: it equals others, and resembles none.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::{FeatureExtractor, Features};
use lookalike_corpus::{
    BadRecord, InputOptions, Inputs, OrderKey, OrderNumber, PageIdentity, Parser, Record,
    RecordChunk, SkippedPart, TextState, text_hash,
};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::boilerplate::RemovedTally;
use crate::dedup::candidate_groups::{KeySink, KeyWriter};
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::{DocumentTable, TextClasses, ValueTexts};
use crate::dedup::frequency::FeatureFrequency;
use crate::dedup::memory_budget::{ReadingBudget, skip_bytes};
use crate::dedup::pages::PageCounts;
use crate::dedup::pair_test::{PairTest, TestSets};
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::DocumentMemory;
use crate::error::BatchError;
use crate::fields::LinkedRecords;
use crate::kernel::class_keys::{ClassSketcher, KeySalt, SketchPlan, text_key};
use crate::kernel::placed_text::{PlacedText, category_hash, hash_with, long_hash};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, ensure_wanted};
use crate::pipeline::{ChunkWorker, InputChunk, run_in_order};
use crate::settings::{KeepRule, Method, PairScope};
use crate::skipped::SkippedInput;
use crate::spill::feature_sets::{SetStore, header, place};

/// Options of a scan.
pub(crate) struct ScanPlan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: &'a InputOptions,
    /// Things that are kept of each text.
    pub(crate) sketch: SketchPlan<'a>,
    /// Further tests, whose features are kept as well.
    pub(crate) tests: &'a [PairTest],
    /// The number of sources, from the first, whose documents are never removed.
    pub(crate) against_sources: usize,
    /// Pairs that count.
    pub(crate) scope: PairScope,
    /// True if a class is a text in a category, not a text.
    pub(crate) by_category: bool,
    /// The rule that reads a field, if one does.
    pub(crate) field_rule: Option<&'a KeepRule>,
    pub(crate) losses: LossPolicy,
    pub(crate) threads: usize,
    pub(crate) memory: DocumentMemory<'a>,
    /// Counts features, for a method that orders them.
    pub(crate) frequency: Option<&'a FeatureFrequency>,
    /// Bytes of the feature sets of each kind to keep in memory.
    pub(crate) sets_budget: u64,
    /// Bytes of feature sets and tables together.
    pub(crate) reading: ReadingBudget,
    pub(crate) folder: &'a Path,
}

/// All that the first pass found.
pub(crate) struct ScannedCollection {
    pub(crate) documents: DocumentTable,
    pub(crate) classes: TextClasses,
    pub(crate) sets: SetStore,
    /// The sets of each further test.
    pub(crate) test_sets: Vec<TestSets>,
    /// Feature sets of the visible text of pages.
    pub(crate) page_sets: SetStore,
    /// Counts of features, where the method orders them.
    pub(crate) frequency: FeatureFrequency,
    pub(crate) bad: Vec<BadRecord>,
    pub(crate) skips: Vec<SkippedPart>,
    pub(crate) tally: ScanTally,
    /// The first value that the survivor rule cannot use, and where it is.
    pub(crate) unusable: Option<String>,
    /// Records of each source, unreadable ones included.
    pub(crate) records: Vec<u64>,
    /// The part of a collection that was put before the documents that were read.
    pub(crate) stored: StoredCounts,
}

/// Counts of the part of a collection that the new documents may meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredCounts {
    /// Documents in the whole collection; none if there is no collection.
    pub(crate) collection: Option<u64>,
    /// Documents in the part.
    pub(crate) documents: u64,
    /// Classes in the part that are not those of new documents.
    pub(crate) classes: u64,
}

impl ScannedCollection {
    /// Bytes of the tables of documents and classes, and of further tests.
    pub(crate) fn table_bytes(&self) -> u64 {
        let tests: u64 = self.test_sets.iter().map(TestSets::bytes).sum();
        self.documents.bytes() + self.classes.bytes() + tests
    }
}

/// Counts of what was noteworthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScanTally {
    /// Records without a text, or with white space only.
    pub(crate) empty: u64,
    /// Of these, records whose text field is absent or null.
    pub(crate) missing: u64,
    /// Records longer than the limit.
    pub(crate) too_long: u64,
    /// Different ones among those of which a hash is known.
    pub(crate) long_classes: u64,
    /// Records without a category, where one is asked for; and those with one.
    pub(crate) uncategorised: u64,
    pub(crate) categorised: u64,
    /// Records whose id stands in the field that was named.
    pub(crate) named_ids: u64,
    /// Records with anchors or links, where they are asked for.
    pub(crate) linked: LinkedRecords,
    /// Records, but for those given with `--against`, that have the value by which survivors are chosen, have none, and have
    /// something else there.
    pub(crate) ranked: u64,
    pub(crate) unranked: u64,
    pub(crate) rank_unusable: u64,
    /// Records with text but without features.
    pub(crate) featureless: u64,
    /// Records in which broken characters were replaced.
    pub(crate) replaced: u64,
    /// Records with text that was decoded wrongly before.
    pub(crate) mojibake: u64,
    /// Records with words that mix look-alike letters of scripts.
    pub(crate) homoglyphs: u64,
    /// Records that were given an id.
    pub(crate) generated_ids: u64,
    /// Bytes of text.
    pub(crate) text_bytes: u64,
    /// Counts of what was taken out of texts.
    pub(crate) removed: RemovedTally,
    /// Pages of which a part was chosen.
    pub(crate) pages: PageCounts,
}

impl ScanTally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.empty += other.empty;
        self.missing += other.missing;
        self.too_long += other.too_long;
        self.long_classes += other.long_classes;
        self.uncategorised += other.uncategorised;
        self.categorised += other.categorised;
        self.named_ids += other.named_ids;
        self.linked.add(&other.linked);
        self.ranked += other.ranked;
        self.unranked += other.unranked;
        self.rank_unusable += other.rank_unusable;
        self.featureless += other.featureless;
        self.replaced += other.replaced;
        self.mojibake += other.mojibake;
        self.homoglyphs += other.homoglyphs;
        self.generated_ids += other.generated_ids;
        self.text_bytes += other.text_bytes;
        self.removed.add(&other.removed);
        self.pages.add(&other.pages);
    }
}

/// A piece of the input with documents in it.
pub(crate) trait ScanChunk: InputChunk {
    /// Losses met while reading it.
    fn skips(&self) -> &[SkippedPart];
    /// Bytes of the input that it stands for.
    fn read_bytes(&self) -> u64;
    /// Visits its records in their order.
    fn parse(&self, parser: &mut Parser<'_>, visit: &mut dyn FnMut(Result<Record<'_>, BadRecord>));
}

impl ScanChunk for RecordChunk {
    fn skips(&self) -> &[SkippedPart] {
        &self.skips
    }

    fn read_bytes(&self) -> u64 {
        self.disk_bytes
    }

    fn parse(&self, parser: &mut Parser<'_>, visit: &mut dyn FnMut(Result<Record<'_>, BadRecord>)) {
        parser.parse(self, visit);
    }
}

/// Result of one worker for one chunk.
#[derive(Default)]
struct ScanBatch {
    ids: String,
    rows: Vec<ScanRow>,
    words: Vec<u64>,
    /// The same of each further test.
    test_words: Vec<Vec<u64>>,
    page_words: Vec<u64>,
    classes: Vec<NewClass>,
    bad: Vec<BadRecord>,
    skips: Vec<SkippedPart>,
    tally: ScanTally,
    unusable: Option<String>,
    value_texts: ValueTexts,
    raw_bytes: u64,
}

struct ScanRow {
    source: u32,
    id_end: u32,
    class: Option<ClassId>,
    length: u64,
    record_hash: u64,
    value: OrderNumber,
}

struct NewClass {
    class: ClassId,
    hash: u128,
    word: u32,
    size: u32,
    fingerprint: u128,
    category: u64,
    text: u128,
    /// Word and size of the set of each further test.
    tests: Vec<(u32, u32)>,
    page: Option<NewPage>,
}

/// Data kept of the page that a class is.
struct NewPage {
    identity: PageIdentity,
    /// Position and number of the features of its visible text in the batch; none if they are those of its text.
    set: Option<(u32, u32)>,
}

/// State that all workers share.
struct ScanShared<'a> {
    plan: &'a ScanPlan<'a>,
    seen: &'a SeenTexts,
    keys: &'a KeySink,
    too_many: &'a AtomicBool,
}

/// One thread's part of the scan.
struct ScanWorker<'a> {
    shared: &'a ScanShared<'a>,
    parser: Parser<'a>,
    tools: ScanTools<'a>,
}

/// Tools with which a thread turns a text into what is kept of it.
struct ScanTools<'a> {
    extractor: FeatureExtractor,
    sketches: ClassSketcher,
    keys: KeyWriter<'a>,
    /// Feature sets of the chunk at hand: grows once, batches get copies that fit.
    words: Vec<u64>,
    /// Each further test, with its sets of the chunk at hand.
    tests: Vec<(FeatureExtractor, Vec<u64>)>,
    /// The same of visible texts of pages.
    page_words: Vec<u64>,
}

impl<'a> ScanWorker<'a> {
    fn new(shared: &'a ScanShared<'a>) -> Self {
        let tools = ScanTools {
            extractor: shared.plan.sketch.extractor(),
            sketches: ClassSketcher::new(shared.plan.sketch),
            keys: shared.keys.writer(),
            words: Vec::new(),
            tests: shared
                .plan
                .tests
                .iter()
                .map(|test| (test.extractor(shared.plan.sketch.scheme), Vec::new()))
                .collect(),
            page_words: Vec::new(),
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
        let Self {
            shared,
            parser,
            tools,
        } = self;
        tools.words.clear();
        tools.tests.iter_mut().for_each(|(_, words)| words.clear());
        tools.page_words.clear();
        let mut failed = None;
        chunk.parse(parser, &mut |record| {
            let done = match record {
                Ok(record) => add_record(shared, &record, tools, &mut batch),
                Err(bad) => {
                    batch.bad.push(bad);
                    Ok(())
                }
            };
            if let Err(error) = done {
                failed.get_or_insert(error);
            }
        });
        batch.words = tools.words.as_slice().to_vec();
        let test_words = tools
            .tests
            .iter()
            .map(|(_, words)| words.as_slice().to_vec());
        batch.test_words = test_words.collect();
        batch.page_words = tools.page_words.as_slice().to_vec();
        failed.map_or(Ok(batch), Err)
    }
}

fn add_record(
    shared: &ScanShared<'_>,
    record: &Record<'_>,
    tools: &mut ScanTools<'_>,
    batch: &mut ScanBatch,
) -> io::Result<()> {
    let text = &*record.text;
    let tally = &mut batch.tally;
    tally.text_bytes += text.len() as u64;
    tally.missing += u64::from(record.text_state == TextState::Missing);
    tally.too_long += u64::from(record.text_state == TextState::TooLong);
    tally.replaced += u64::from(record.replaced);
    tally.mojibake += u64::from(record.mojibake);
    tally.homoglyphs += u64::from(record.homoglyphs);
    tally.generated_ids += u64::from(record.id_generated);
    tally.named_ids += u64::from(record.id_named);
    tally.linked.count(&record.fields);
    tally.removed.count(&record.removed);
    tally.pages.count(record);
    let class = if text.trim().is_empty() && record.long_hash.is_none() {
        tally.empty += u64::from(record.text_state != TextState::TooLong);
        None
    } else {
        let placed = placed(shared.plan, record, tally);
        let hash = placed.class_hash(shared.plan.by_category);
        let Some((class, is_new)) = shared.seen.class(hash) else {
            shared.too_many.store(true, Ordering::Relaxed);
            return Ok(());
        };
        if is_new {
            let new = tools.add_class(shared.plan, placed, class, hash)?;
            let compared = shared.plan.sketch.method != Method::Copies && !placed.is_too_long;
            tally.featureless += u64::from(compared && new.size == 0);
            tally.long_classes += u64::from(placed.is_too_long);
            batch.classes.push(new);
        }
        Some(class)
    };
    let value = batch.value(shared.plan, record);
    batch.ids.push_str(&record.id);
    batch.rows.push(ScanRow {
        source: record.source,
        id_end: batch.ids.len() as u32,
        class,
        length: text.len() as u64,
        record_hash: xxh3_64(record.raw),
        value,
    });
    Ok(())
}

impl ScanBatch {
    /// The value by which survivors are chosen, NaN where there is none; texts go to those of the batch.
    fn value(&mut self, plan: &ScanPlan<'_>, record: &Record<'_>) -> OrderNumber {
        let none = OrderNumber {
            nearest: f64::NAN,
            rest: 0,
        };
        let is_new = u64::from(record.source as usize >= plan.against_sources);
        let tally = &mut self.tally;
        match &record.order_key {
            OrderKey::Missing => {
                tally.unranked += is_new * u64::from(plan.field_rule.is_some());
                none
            }
            OrderKey::Unusable(value) => {
                tally.rank_unusable += is_new;
                if is_new > 0 && self.unusable.is_none() {
                    let name = plan.inputs.sources[record.source as usize].name();
                    let shown: String = value.json.chars().take(60).collect();
                    let (number, reason) = (record.number + 1, value.reason);
                    self.unusable = Some(format!("{name}, record {number}: {shown} is {reason}"));
                }
                none
            }
            OrderKey::Number(number) => {
                tally.ranked += is_new;
                *number
            }
            OrderKey::Text(text) => {
                tally.ranked += is_new;
                self.value_texts.push(text);
                OrderNumber::default()
            }
        }
    }
}

impl ScanTools<'_> {
    /// Makes and keeps what a method wants of a text that was not seen before.
    fn add_class(
        &mut self,
        plan: &ScanPlan<'_>,
        placed: PlacedText<'_>,
        class: ClassId,
        hash: u128,
    ) -> io::Result<NewClass> {
        let (method, text) = (plan.sketch.method, placed.text);
        let number = class.position() as u32;
        let page = self.add_page(plan, placed, number);
        let word = self.words.len();
        self.words.push(0);
        let features = match (method, placed.fields) {
            (Method::Copies, _) => Features::of_set(&[]),
            _ if placed.is_too_long => Features::of_set(&[]),
            (_, Some(fields)) => self.extractor.extract_with(text, fields),
            _ => self.sketches.features(&mut self.extractor, text),
        };
        self.words.extend_from_slice(features.set);
        let size = features.set.len();
        self.words[word] = header(number, size);
        if let Some(frequency) = plan.frequency {
            frequency.add(features.set);
        }
        let salt = KeySalt::new(plan.scope, placed.category);
        let keys = &mut self.keys;
        let fingerprint = self
            .sketches
            .sketch(&features, |key| keys.push(salt.apply(key), number))?;
        let is_part = placed.hash != placed.visible_hash;
        if page.is_some() || is_part || plan.by_category && plan.scope != PairScope::Within {
            // Equal visible texts of different categories, or with different main texts, are different classes, and must meet.
            let key = text_key(placed.visible_hash);
            self.keys.push(salt.apply(key), number)?;
        }
        let tests = self.add_test_sets(placed, number);
        let (word, size) = (word as u32, size as u32);
        Ok(NewClass {
            class,
            hash,
            word,
            size,
            fingerprint,
            category: placed.category,
            text: placed.visible_hash,
            page,
            tests,
        })
    }

    /// Keeps what the further tests look at; word and size of each set.
    fn add_test_sets(&mut self, placed: PlacedText<'_>, class: u32) -> Vec<(u32, u32)> {
        let add = |(extractor, words): &mut (FeatureExtractor, Vec<u64>)| {
            let set = match placed.fields {
                _ if placed.is_too_long => &[],
                Some(fields) => extractor.extract_with(placed.text, fields).set,
                None => extractor.feature_set(placed.text),
            };
            let (word, size) = (words.len() as u32, set.len() as u32);
            words.push(header(class, set.len()));
            words.extend_from_slice(set);
            (word, size)
        };
        self.tests.iter_mut().map(add).collect()
    }

    /// Keeps what verification wants of a page of which a part was chosen.
    fn add_page(
        &mut self,
        plan: &ScanPlan<'_>,
        placed: PlacedText<'_>,
        number: u32,
    ) -> Option<NewPage> {
        let visible = placed.visible?;
        let identity = visible.page?;
        if visible.own() == placed.text || plan.sketch.method == Method::Copies {
            return Some(NewPage {
                identity,
                set: None,
            });
        }
        let set = match placed.fields {
            Some(fields) => self.extractor.extract_with(visible.own(), fields).set,
            None => self.extractor.feature_set(visible.own()),
        };
        let word = self.page_words.len() as u32;
        self.page_words.push(header(number, set.len()));
        self.page_words.extend_from_slice(set);
        let set = Some((word, set.len() as u32));
        Some(NewPage { identity, set })
    }
}

/// A record's text with its category, which is hashed.
fn placed<'t>(
    plan: &ScanPlan<'_>,
    record: &'t Record<'_>,
    tally: &mut ScanTally,
) -> PlacedText<'t> {
    let category = match (plan.by_category, &record.category) {
        (false, _) => 0,
        (_, None) => {
            // That of a line too long to be parsed is unknown; of equal bytes it is the same.
            tally.uncategorised += u64::from(record.long_hash.is_none());
            0
        }
        (_, Some(category)) => {
            tally.categorised += 1;
            category_hash(category)
        }
    };
    let text = &*record.text;
    let fields = (!plan.sketch.scheme.fields.is_none()).then_some(&record.fields);
    let hash = |text: &str| match fields {
        Some(fields) => hash_with(text, fields),
        None => text_hash(text),
    };
    let of_text = match record.long_hash {
        Some(of_bytes) => long_hash(of_bytes, fields),
        None => hash(text),
    };
    let visible = record.visible.as_ref();
    let whole = visible.filter(|visible| visible.whole != record.text);
    PlacedText {
        text,
        fields,
        is_too_long: record.long_hash.is_some(),
        hash: of_text,
        visible,
        visible_hash: whole.map_or(of_text, |visible| hash(&visible.whole)),
        category,
    }
}

impl<C: ScanChunk> ChunkWorker<C> for ScanWorker<'_> {
    type Output = ScanBatch;

    fn run(&mut self, chunk: &C) -> Result<ScanBatch, BatchError> {
        self.batch(chunk)
            .map_err(BatchError::temporary(self.shared.plan.folder))
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        let tools = &mut self.tools;
        tools.extractor.shrink();
        (tools.words, tools.page_words) = (Vec::new(), Vec::new());
        for (extractor, words) in &mut tools.tests {
            extractor.shrink();
            *words = Vec::new();
        }
    }
}

/// Puts batches into the tables, in input order.
struct ScanCollector<'a> {
    plan: &'a ScanPlan<'a>,
    scanned: ScannedCollection,
    read_bytes: u64,
    /// Bytes of the lists of what could not be read.
    list_bytes: u64,
}

impl ScanCollector<'_> {
    /// Refuses what does not fit, and has feature sets make room for tables.
    fn keep_within_memory(&mut self, batch: &ScanBatch) -> Result<(), BatchError> {
        let reasons = batch.bad.iter().map(|bad| bad.reason.len());
        let reasons = reasons.chain(batch.skips.iter().map(|skip| skip.reason.len()));
        self.list_bytes += reasons.map(skip_bytes).sum::<u64>();
        let tables = self.scanned.table_bytes();
        let ScannedCollection {
            documents,
            classes,
            sets,
            test_sets,
            page_sets,
            ..
        } = &mut self.scanned;
        // The hash table of texts, and ranks, orders and outcomes that come later.
        let rows = (documents.len() + batch.rows.len()) as u64;
        let texts = (classes.len() + batch.classes.len()) as u64;
        let tables = tables + 40 * (rows + texts) + 36 * texts;
        let total = self.plan.inputs.total_bytes();
        let left = self
            .plan
            .reading
            .left_by(tables + self.list_bytes, self.read_bytes, total)?;
        let share = left / (1 + test_sets.len() as u64);
        // Those of visible texts, where there are some, take a third of the share.
        let (mut own, pages) = (share, share / 3);
        if !classes.pages.is_empty() {
            own -= pages;
        }
        let tests = test_sets.iter_mut().map(|test| (&mut test.sets, share));
        let mut all = tests.chain([(sets, own), (page_sets, pages)]);
        all.try_for_each(|(sets, room)| sets.shrink(room, self.plan.folder))
            .map_err(BatchError::temporary(self.plan.folder))
    }

    fn append(&mut self, batch: ScanBatch) -> Result<(), BatchError> {
        self.read_bytes += batch.raw_bytes;
        self.keep_within_memory(&batch)?;
        let ScannedCollection {
            documents,
            classes,
            sets,
            test_sets,
            page_sets,
            records,
            unusable,
            ..
        } = &mut self.scanned;
        if self.plan.losses.is_strict() {
            let bad = batch.bad.iter();
            let bad = bad.map(|bad| SkippedInput::record(self.plan.inputs, bad));
            let mut skipped = bad.chain(batch.skips.iter().map(SkippedInput::part));
            skipped.try_for_each(|skipped| self.plan.losses.refuse_first(&skipped))?;
        }
        let mut start = 0;
        for row in batch.rows {
            documents.push_id(&batch.ids[start..row.id_end as usize]);
            start = row.id_end as usize;
            documents.classes.push(row.class);
            documents.lengths.push(row.length);
            documents.record_hashes.push(row.record_hash);
            if self.plan.field_rule.is_some() {
                documents.push_value(row.value);
            }
            if (row.source as usize) < self.plan.against_sources {
                documents.against += 1;
            }
            records[row.source as usize] += 1;
        }
        documents.value_texts.append(&batch.value_texts);
        if unusable.is_none() {
            *unusable = batch.unusable;
        }
        for bad in &batch.bad {
            records[bad.source as usize] += 1;
        }
        let temporary = BatchError::temporary(self.plan.folder);
        let segment = sets
            .push(batch.words, self.plan.folder)
            .map_err(&temporary)?;
        let mut test_segments = Vec::with_capacity(test_sets.len());
        for (test, words) in test_sets.iter_mut().zip(batch.test_words) {
            let segment = test.sets.push(words, self.plan.folder);
            test_segments.push(segment.map_err(&temporary)?);
        }
        let page_segment = match batch.page_words.is_empty() {
            true => 0,
            false => {
                // The two share what there is as soon as both are needed.
                sets.shrink(self.plan.sets_budget / 3 * 2, self.plan.folder)
                    .map_err(&temporary)?;
                page_sets
                    .push(batch.page_words, self.plan.folder)
                    .map_err(&temporary)?
            }
        };
        for class in batch.classes {
            let tests = test_sets.iter_mut().zip(&test_segments).zip(&class.tests);
            for ((test, &segment), &(word, size)) in tests {
                let place = u64::from(segment) << 32 | u64::from(word);
                test.set(class.class.position(), place, size);
            }
            classes.set(
                class.class,
                class.hash,
                place(segment, class.word),
                class.size,
            );
            if self.plan.sketch.method.has_fingerprints() {
                let bits = match self.plan.sketch.scheme.sketch.fingerprint_bits() {
                    0 => 64,
                    bits => bits,
                };
                classes.set_fingerprint(class.class, class.fingerprint, bits);
            }
            if self.plan.by_category {
                classes.set_category(class.class, class.category, class.text);
            } else if class.text != class.hash {
                classes.set_visible_text(class.class, class.text);
            }
            if let Some(NewPage { identity, set }) = class.page {
                let set = set.map(|(word, size)| (place(page_segment, word), size));
                classes.pages.set(class.class, identity, set);
            }
        }
        self.scanned.bad.extend(batch.bad);
        self.scanned.skips.extend(batch.skips);
        self.scanned.tally.add(&batch.tally);
        Ok(())
    }
}

/// Reads all chunks. Keys that a method takes from its sketches go to `keys`.
pub(crate) fn scan<C: ScanChunk, E: Send>(
    plan: &ScanPlan<'_>,
    chunks: impl Iterator<Item = Result<C, E>> + Send,
    keys: &KeySink,
    observer: &dyn JobObserver,
) -> Result<ScannedCollection, BatchError>
where
    BatchError: From<E>,
{
    plan.losses.refuse_undiscovered(plan.inputs)?;
    let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
    let shared = ScanShared {
        plan,
        seen: &seen,
        keys,
        too_many: &too_many,
    };
    let scanned = ScannedCollection {
        documents: DocumentTable::default(),
        classes: TextClasses::default(),
        sets: SetStore::new(plan.sets_budget),
        test_sets: plan
            .tests
            .iter()
            .map(|_| TestSets::new(plan.sets_budget))
            .collect(),
        page_sets: SetStore::new(plan.sets_budget / 3),
        frequency: FeatureFrequency::new(),
        bad: Vec::new(),
        skips: Vec::new(),
        tally: ScanTally::default(),
        unusable: None,
        records: vec![0; plan.inputs.sources.len()],
        stored: StoredCounts::default(),
    };
    let mut collector = ScanCollector {
        plan,
        scanned,
        read_bytes: 0,
        list_bytes: 0,
    };
    let workers = (0..plan.threads)
        .map(|_| ScanWorker::new(&shared))
        .collect();
    let workers = run_in_order(chunks, plan.memory, workers, |batch: ScanBatch| {
        collector.append(batch)?;
        observer.advance(collector.read_bytes);
        ensure_wanted(observer).map_err(BatchError::temporary(plan.folder))?;
        Ok(())
    })?;
    if too_many.load(Ordering::Relaxed) || collector.scanned.documents.len() >= u32::MAX as usize {
        return Err(BatchError::TooMany);
    }
    for worker in workers {
        worker
            .tools
            .keys
            .finish()
            .map_err(BatchError::temporary(plan.folder))?;
    }
    Ok(collector.scanned)
}
