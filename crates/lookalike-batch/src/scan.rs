//! The first pass: read every record once, keep its id, the class of its text, and once a class its feature set.
//!
//! A text that was seen before costs its hash and nothing more.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;
use lookalike::band::Banding;
use lookalike::feature::FeatureExtractor;
use lookalike::scheme::{Scheme, Sketch};
use lookalike::sketch::{MinHash, Simhash};
use lookalike::{DocumentFields, Features, Sketcher, Terms};
use lookalike_corpus::{BadRecord, Chunk, InputOptions, Inputs, Parser, Record, Skip, TextState};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::boilerplate::RemovedTally;
use crate::documents::{ClassId, Classes, Documents};
use crate::error::BatchError;
use crate::frequency::Frequency;
use crate::groups::{KeySink, KeyWriter};
use crate::observer::Observer;
use crate::pipeline::{Worker, run_in_order};
use crate::sets::{SetStore, header};
use crate::settings::{Method, Scope};
use crate::spool::lock;

/// What a scan is asked for.
pub(crate) struct ScanPlan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: &'a InputOptions,
    pub(crate) scheme: &'a Scheme,
    pub(crate) method: Method,
    /// Bands of the signatures, for the methods that have some.
    pub(crate) banding: Option<Banding>,
    /// The table of terms that the scheme names.
    pub(crate) terms: Option<&'a Arc<Terms>>,
    /// The number of sources, from the first, whose documents are never removed.
    pub(crate) against_sources: usize,
    /// Which pairs count.
    pub(crate) scope: Scope,
    /// Whether a class is a text in a category, not a text.
    pub(crate) by_category: bool,
    /// Whether a field decides who survives.
    pub(crate) wants_values: bool,
    pub(crate) strict: bool,
    pub(crate) threads: usize,
    /// Bytes of feature sets to keep in memory.
    pub(crate) sets_budget: u64,
    pub(crate) folder: &'a Path,
}

/// All that the first pass found.
pub(crate) struct Scanned {
    pub(crate) documents: Documents,
    pub(crate) classes: Classes,
    pub(crate) sets: SetStore,
    pub(crate) frequency: Frequency,
    pub(crate) bad: Vec<BadRecord>,
    pub(crate) skips: Vec<Skip>,
    pub(crate) tally: Tally,
    /// Records of each source, unreadable ones included.
    pub(crate) records: Vec<u64>,
}

/// Counts of what was noteworthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Records without a text, or with white space only.
    pub(crate) empty: u64,
    /// Of these, records whose text field is absent or null.
    pub(crate) missing: u64,
    /// Records longer than the limit.
    pub(crate) too_long: u64,
    /// Records without a category, where one is asked for.
    pub(crate) uncategorised: u64,
    /// Records with text but without features.
    pub(crate) featureless: u64,
    /// Records in which broken characters were replaced.
    pub(crate) replaced: u64,
    /// Records with text that was decoded wrongly before.
    pub(crate) mojibake: u64,
    /// Records that were given an id.
    pub(crate) generated_ids: u64,
    /// Bytes of text.
    pub(crate) text_bytes: u64,
    /// What was taken out of texts.
    pub(crate) removed: RemovedTally,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.empty += other.empty;
        self.missing += other.missing;
        self.too_long += other.too_long;
        self.uncategorised += other.uncategorised;
        self.featureless += other.featureless;
        self.replaced += other.replaced;
        self.mojibake += other.mojibake;
        self.generated_ids += other.generated_ids;
        self.text_bytes += other.text_bytes;
        self.removed.add(&other.removed);
    }
}

/// What one worker made of one chunk.
#[derive(Default)]
struct Batch {
    ids: String,
    rows: Vec<Row>,
    words: Vec<u64>,
    classes: Vec<NewClass>,
    bad: Vec<BadRecord>,
    skips: Vec<Skip>,
    tally: Tally,
    raw_bytes: u64,
}

struct Row {
    source: u32,
    id_end: u32,
    class: Option<ClassId>,
    length: u64,
    record_hash: u64,
    value: f64,
}

struct NewClass {
    class: ClassId,
    hash: u128,
    word: u32,
    size: u32,
    fingerprint: u128,
    category: u64,
    text: u128,
}

/// The text of a class and where it belongs.
#[derive(Clone, Copy)]
struct Placed<'t> {
    text: &'t str,
    /// Anchors and links, where the scheme looks at them.
    fields: Option<&'t DocumentFields>,
    /// Hash of the text, and of the fields where the scheme looks at them.
    hash: u128,
    /// Hash of the category; 0 where there is none.
    category: u64,
}

/// Texts seen so far, by hash: 64 parts with a lock each.
///
/// Memory: 28 to 36 bytes a class.
pub(crate) struct Seen {
    parts: Vec<Mutex<SeenPart>>,
    next: AtomicUsize,
}

/// Classes in order of arrival, and a table of their positions: 5 bytes an entry, so that it stays in cache long after
/// a table of hashes would have left it.
#[derive(Default)]
struct SeenPart {
    table: HashTable<u32>,
    classes: Vec<(u128, ClassId)>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            parts: (0..64).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The class of a text, and whether it is new. None when there are too many.
    pub(crate) fn class(&self, hash: u128) -> Option<(ClassId, bool)> {
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        let SeenPart { table, classes } = &mut *part;
        // Any 64 bits of a cryptographic hash are as good as a hash of it.
        let is_it = |&position: &u32| classes[position as usize].0 == hash;
        if let Some(&position) = table.find(hash as u64, is_it) {
            return Some((classes[position as usize].1, false));
        }
        let class = ClassId::new(self.next.fetch_add(1, Ordering::Relaxed))?;
        let position = classes.len() as u32;
        classes.push((hash, class));
        table.insert_unique(hash as u64, position, |&p| classes[p as usize].0 as u64);
        Some((class, true))
    }
}

/// What all workers share.
struct Shared<'a> {
    plan: &'a ScanPlan<'a>,
    seen: &'a Seen,
    keys: &'a KeySink,
    too_many: &'a AtomicBool,
}

/// Makes the sketch a method wants of each new class.
enum Keys {
    /// Nothing of each text by itself: keys that need the whole collection come later.
    None,
    /// Its fingerprint of so many bits.
    Simhash(u32),
    /// The bands of its signature, without an allocation a text.
    Bands {
        minhash: MinHash,
        banding: Banding,
        signature: Vec<u32>,
    },
    /// The keys of any other sketch, and with `fingerprint` its fingerprint as well.
    Sketch {
        sketcher: Sketcher,
        banding: Option<Banding>,
        fingerprint: bool,
    },
}

impl Keys {
    fn new(plan: &ScanPlan<'_>) -> Self {
        let scheme = plan.scheme;
        match (plan.method, scheme.sketch) {
            (Method::Copies | Method::AllPairs, _) => Self::None,
            (Method::Simhash, sketch) => Self::Simhash(sketch.fingerprint_bits()),
            (Method::MinHash, Sketch::MinHash { functions }) => Self::Bands {
                minhash: MinHash::new(usize::from(functions), scheme.seed),
                banding: plan.banding.expect("chosen with the method"),
                signature: vec![0; usize::from(functions)],
            },
            (method, _) => Self::Sketch {
                sketcher: Sketcher::new(scheme, plan.terms).expect("checked before the job began"),
                banding: plan.banding,
                fingerprint: method == Method::Henzinger,
            },
        }
    }

    /// Whether the set of features is all that is looked at.
    fn needs_set_only(&self) -> bool {
        matches!(self, Self::None | Self::Bands { .. })
    }

    /// Sketches one class: hands its keys to `keys`, returns its fingerprint.
    fn sketch(
        &mut self,
        class: u32,
        features: &Features<'_>,
        keys: &mut KeyWriter<'_>,
        salt: u64,
    ) -> io::Result<u128> {
        if features.set.is_empty() {
            return Ok(0);
        }
        let fingerprint = |bits| Simhash::wide(features, bits).map_or(0, |f| f.0);
        match self {
            Self::None => Ok(0),
            Self::Simhash(bits) => Ok(fingerprint(*bits)),
            Self::Bands {
                minhash,
                banding,
                signature,
            } => {
                minhash.signature_into(features.set, signature);
                banding
                    .keys(signature)
                    .try_for_each(|key| keys.push(salted(key, salt), class))?;
                Ok(0)
            }
            Self::Sketch {
                sketcher,
                banding,
                fingerprint: wanted,
            } => {
                let sketch = sketcher.sketch(features);
                let own = sketch.map_or_else(Vec::new, |sketch| sketch.keys(banding.as_ref()));
                own.into_iter()
                    .try_for_each(|key| keys.push(salted(key, salt), class))?;
                Ok(if *wanted { fingerprint(64) } else { 0 })
            }
        }
    }
}

/// A key that classes of different categories do not share; category 0 leaves it as it is.
pub(crate) fn salted(key: u64, category: u64) -> u64 {
    match category {
        0 => key,
        category => lookalike::hash::avalanche(key ^ category),
    }
}

/// The extractor of the scheme, with its table of terms where it names one.
fn extractor(plan: &ScanPlan<'_>) -> FeatureExtractor {
    match plan.terms {
        Some(terms) => {
            FeatureExtractor::with_terms(plan.scheme, terms).expect("checked before the job began")
        }
        None => FeatureExtractor::new(plan.scheme),
    }
}

/// One thread's part of the scan.
struct Scanner<'a> {
    shared: &'a Shared<'a>,
    parser: Parser<'a>,
    tools: Tools<'a>,
}

/// What a thread needs to make of a text what is kept of it.
struct Tools<'a> {
    extractor: FeatureExtractor,
    sketches: Keys,
    keys: KeyWriter<'a>,
    frequency: Frequency,
    /// Feature sets of the chunk at hand: grows once, batches get copies that fit.
    words: Vec<u64>,
}

impl<'a> Scanner<'a> {
    fn new(shared: &'a Shared<'a>) -> Self {
        let tools = Tools {
            extractor: extractor(shared.plan),
            sketches: Keys::new(shared.plan),
            keys: shared.keys.writer(),
            frequency: Frequency::new(),
            words: Vec::new(),
        };
        Self {
            shared,
            parser: Parser::new(shared.plan.inputs, shared.plan.options),
            tools,
        }
    }

    fn batch(&mut self, chunk: &Chunk) -> io::Result<Batch> {
        let mut batch = Batch {
            skips: chunk.skips.clone(),
            raw_bytes: chunk.disk_bytes,
            ..Batch::default()
        };
        let Self {
            shared,
            parser,
            tools,
        } = self;
        tools.words.clear();
        let mut failed = None;
        parser.parse(chunk, &mut |record| {
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
        failed.map_or(Ok(batch), Err)
    }
}

fn add_record(
    shared: &Shared<'_>,
    record: &Record<'_>,
    tools: &mut Tools<'_>,
    batch: &mut Batch,
) -> io::Result<()> {
    let text = &*record.text;
    let tally = &mut batch.tally;
    tally.text_bytes += text.len() as u64;
    tally.missing += u64::from(record.text_state == TextState::Missing);
    tally.too_long += u64::from(record.text_state == TextState::TooLong);
    tally.replaced += u64::from(record.replaced);
    tally.mojibake += u64::from(record.mojibake);
    tally.generated_ids += u64::from(record.id_generated);
    tally.removed.count(&record.removed);
    let class = if text.trim().is_empty() {
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
            let compared = shared.plan.method != Method::Copies;
            tally.featureless += u64::from(compared && new.size == 0);
            batch.classes.push(new);
        }
        Some(class)
    };
    batch.ids.push_str(&record.id);
    batch.rows.push(Row {
        source: record.source,
        id_end: batch.ids.len() as u32,
        class,
        length: text.len() as u64,
        record_hash: xxh3_64(record.raw),
        value: record.rank.unwrap_or(f64::NAN),
    });
    Ok(())
}

impl Tools<'_> {
    /// Makes and keeps what a method wants of a text that was not seen before.
    fn add_class(
        &mut self,
        plan: &ScanPlan<'_>,
        placed: Placed<'_>,
        class: ClassId,
        hash: u128,
    ) -> io::Result<NewClass> {
        let (method, text) = (plan.method, placed.text);
        let word = self.words.len();
        let number = class.position() as u32;
        self.words.push(0);
        let features = match (method, placed.fields) {
            (Method::Copies, _) => Features::of_set(&[]),
            (_, Some(fields)) => self.extractor.read_with(text, fields),
            _ if self.sketches.needs_set_only() => {
                Features::of_set(self.extractor.feature_set(text))
            }
            _ => self.extractor.read(text),
        };
        self.words.extend_from_slice(features.set);
        let size = features.set.len();
        self.words[word] = header(number, size);
        if method == Method::AllPairs {
            self.frequency.add(features.set);
        }
        let salt = match plan.scope {
            Scope::Within => placed.category,
            Scope::Everything | Scope::Across => 0,
        };
        let fingerprint = self
            .sketches
            .sketch(number, &features, &mut self.keys, salt)?;
        if plan.by_category && plan.scope != Scope::Within {
            // Equal texts of different categories are different classes, and must meet.
            let key = lookalike::hash::avalanche(placed.hash as u64);
            self.keys.push(key, number)?;
        }
        let (word, size) = (word as u32, size as u32);
        Ok(NewClass {
            class,
            hash,
            word,
            size,
            fingerprint,
            category: placed.category,
            text: placed.hash,
        })
    }
}

/// A record's text with its category, which is hashed.
fn placed<'t>(plan: &ScanPlan<'_>, record: &'t Record<'_>, tally: &mut Tally) -> Placed<'t> {
    let category = match (plan.by_category, &record.category) {
        (false, _) => 0,
        (_, None) => {
            tally.uncategorised += 1;
            0
        }
        (_, Some(category)) => (content_hash(category) as u64).max(1),
    };
    let text = &*record.text;
    let fields = (!plan.scheme.fields.is_none()).then_some(&record.fields);
    Placed {
        text,
        fields,
        hash: fields.map_or_else(|| content_hash(text), |fields| hash_with(text, fields)),
        category,
    }
}

/// First 128 bits of the BLAKE3 hash of a text and its fields, each behind its length.
fn hash_with(text: &str, fields: &DocumentFields) -> u128 {
    let mut hasher = blake3::Hasher::new();
    let mut part = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    part(text);
    for anchor in &fields.anchors {
        part("anchor");
        part(&anchor.text);
        part(&anchor.before);
        part(&anchor.after);
    }
    for (name, links) in [("in", &fields.in_links), ("out", &fields.out_links)] {
        part(name);
        links.iter().for_each(|link| part(link));
    }
    first_128(&hasher.finalize())
}

impl Placed<'_> {
    /// What tells classes apart: the text, and the category where it matters.
    fn class_hash(&self, by_category: bool) -> u128 {
        if !by_category {
            return self.hash;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.hash.to_le_bytes());
        hasher.update(&self.category.to_le_bytes());
        first_128(&hasher.finalize())
    }
}

/// First 128 bits of the BLAKE3 hash of a text.
pub(crate) fn content_hash(text: &str) -> u128 {
    first_128(&blake3::hash(text.as_bytes()))
}

fn first_128(hash: &blake3::Hash) -> u128 {
    let first: [u8; 16] = hash.as_bytes()[..16]
        .try_into()
        .expect("a hash has 32 bytes");
    u128::from_le_bytes(first)
}

impl Worker for Scanner<'_> {
    type Output = Batch;

    fn run(&mut self, chunk: &Chunk) -> Result<Batch, BatchError> {
        self.batch(chunk)
            .map_err(BatchError::temporary(self.shared.plan.folder))
    }
}

/// Puts batches into the tables, in input order.
struct Collector<'a> {
    plan: &'a ScanPlan<'a>,
    scanned: Scanned,
    read_bytes: u64,
}

impl Collector<'_> {
    fn append(&mut self, batch: Batch) -> Result<(), BatchError> {
        self.read_bytes += batch.raw_bytes;
        let Scanned {
            documents,
            classes,
            sets,
            records,
            ..
        } = &mut self.scanned;
        if self.plan.strict
            && let Some(bad) = batch.bad.first()
        {
            let name = self.plan.inputs.sources[bad.source as usize].name();
            return Err(BatchError::Strict(format!(
                "{name}: {}: {}",
                bad.place(),
                bad.reason
            )));
        }
        if self.plan.strict
            && let Some(skip) = batch.skips.iter().find(|skip| skip.kind.is_loss())
        {
            return Err(BatchError::Strict(format!(
                "{}: {}",
                skip.name, skip.reason
            )));
        }
        let mut start = 0;
        for row in batch.rows {
            documents.push_id(&batch.ids[start..row.id_end as usize]);
            start = row.id_end as usize;
            documents.classes.push(row.class);
            documents.lengths.push(row.length);
            documents.record_hashes.push(row.record_hash);
            if self.plan.wants_values {
                documents.values.push(row.value);
            }
            if (row.source as usize) < self.plan.against_sources {
                documents.against += 1;
            }
            records[row.source as usize] += 1;
        }
        for bad in &batch.bad {
            records[bad.source as usize] += 1;
        }
        let segment = sets
            .push(batch.words, self.plan.folder)
            .map_err(BatchError::temporary(self.plan.folder))?;
        for class in batch.classes {
            classes.set(
                class.class,
                class.hash,
                u64::from(segment) << 32 | u64::from(class.word),
                class.size,
            );
            if self.plan.method.has_fingerprints() {
                let bits = match self.plan.scheme.sketch.fingerprint_bits() {
                    0 => 64,
                    bits => bits,
                };
                classes.set_fingerprint(class.class, class.fingerprint, bits);
            }
            if self.plan.by_category {
                classes.set_category(class.class, class.category, class.text);
            }
        }
        self.scanned.bad.extend(batch.bad);
        self.scanned.skips.extend(batch.skips);
        self.scanned.tally.add(&batch.tally);
        Ok(())
    }
}

/// Reads all inputs. Keys that a method takes from its sketches go to `keys`.
pub(crate) fn scan(
    plan: &ScanPlan<'_>,
    keys: &KeySink,
    observer: &dyn Observer,
) -> Result<Scanned, BatchError> {
    let (seen, too_many) = (Seen::new(), AtomicBool::new(false));
    let shared = Shared {
        plan,
        seen: &seen,
        keys,
        too_many: &too_many,
    };
    let scanned = Scanned {
        documents: Documents::default(),
        classes: Classes::default(),
        sets: SetStore::new(plan.sets_budget),
        frequency: Frequency::new(),
        bad: Vec::new(),
        skips: Vec::new(),
        tally: Tally::default(),
        records: vec![0; plan.inputs.sources.len()],
    };
    let mut collector = Collector {
        plan,
        scanned,
        read_bytes: 0,
    };
    let workers = (0..plan.threads).map(|_| Scanner::new(&shared)).collect();
    let workers = run_in_order(plan.inputs, plan.options, workers, |batch| {
        collector.append(batch)?;
        observer.advance(collector.read_bytes);
        Ok(())
    })?;
    if too_many.load(Ordering::Relaxed) || collector.scanned.documents.len() >= u32::MAX as usize {
        return Err(BatchError::TooMany);
    }
    for worker in workers {
        collector.scanned.frequency.merge(&worker.tools.frequency);
        worker
            .tools
            .keys
            .finish()
            .map_err(BatchError::temporary(plan.folder))?;
    }
    Ok(collector.scanned)
}
