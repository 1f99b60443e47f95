//! A job from inputs to decisions: scan, rank, group, compare.
//!
//! [`DedupJob::decide`] chooses survivors for `dedup`; [`DedupJob::write_pairs`] lists all verified pairs for `pairs`. Both go
//! through [`DedupJob::prepare`], and neither depends on threads or memory in what it finds.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike_corpus::{Category, InputOptions, Inputs, ReadError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dedup::candidate_groups::{CandidateGroups, GroupResources, KeySink};
use crate::dedup::collection::addition::KeptFacts;
use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection};
use crate::dedup::counts::{DecisionCounts, InputCounts};
use crate::dedup::decided::DedupDecisions;
use crate::dedup::decision::{ClusterTable, outcomes};
use crate::dedup::decision_log::DecisionLogPlace;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::frequency::FrequencyLevels;
use crate::dedup::group_windows::{ClassGroups, GroupError, StoredGroups};
use crate::dedup::just_below::{BelowMargin, JustBelow};
use crate::dedup::margin_search::{MarginSearch, last_sampled};
use crate::dedup::memory_budget::{DedupMemory, MemoryShare, expected_text, with_keys};
use crate::dedup::page_groups::{LARGE_GROUP, PageGroupResources, page_groups};
use crate::dedup::pages::{PageColumns, PageVerifier};
use crate::dedup::pair_test::LoadedTest;
use crate::dedup::pairs::{ClassCopies, PairJoin, PairSpool};
use crate::dedup::paragraphs::ParagraphRecords;
use crate::dedup::ranking::{DocumentRanking, IdOrder};
use crate::dedup::scan::{ScanPlan, ScannedCollection, scan};
use crate::dedup::scan_log::ScanLogPlace;
use crate::dedup::summary::{input_counts, skipped};
use crate::dedup::survivors::{ClassDecisions, SettledRanks, SettlingResources, settle_stored};
use crate::dedup::verify::Verifier;
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::{BatchError, FieldSetting, MissingField, OUTPUT};
use crate::fields::{FieldTally, first_names};
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::{BlockKeys, KeySalt, PrefixFinder, SketchPlan};
use crate::observer::{JobObserver, JobStage, NoProgress, ensure_wanted};
use crate::parallel::{column, in_ranges, inverse, on_threads};
use crate::settings::{JobLimits, JobSettings, KeepRule, Method, PairList, PairScope};
use crate::settings_error::{SettingConflict, SettingsError};
use crate::skipped::SkippedRow;
use crate::spill::feature_sets::SetPlace;
use crate::spill::partitions::PARTS;

/// Scans before a job gives up on files that go on changing: each finds one more that does.
const MAX_SCANS: usize = 4;

/// Bytes of chunks for each thread between two checkpoints while reading: some two seconds.
const CHECKPOINT_BYTES: u64 = 128 << 20;

/// Ranks of the smallest window of groups that are on disk, where all pairs are looked for.
const JOINED_RANKS: usize = 1024;

/// Deduplication of some inputs: what to read, what to look for, what to use.
///
/// ```
/// use lookalike_batch::{DedupJob, JobSettings, OutputOptions};
/// use lookalike_corpus::{InputOptions, Inputs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("pages.jsonl");
/// std::fs::write(&file, r#"{"id":"a","text":"a rose is a rose"}
/// {"id":"b","text":"A rose is a rose!"}
/// {"id":"c","text":"something else"}
/// "#)?;
///
/// let inputs = Inputs::discover(&[file.into()], &InputOptions::default(), folder.path())?;
/// let settings = JobSettings::default().threshold(0.9);
/// let job = DedupJob::new(&inputs, folder.path()).settings(settings);
/// let summary = job.dedup(&folder.path().join("out"), &OutputOptions::default())?;
/// assert_eq!(summary.decisions.kept, 2);
/// # Ok(())
/// # }
/// ```
pub struct DedupJob<'a> {
    pub(crate) settings: JobSettings,
    pub(crate) limits: JobLimits,
    /// All sources, those given with `--against` first.
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: InputOptions,
    pub(crate) against_sources: usize,
    pub(crate) collection: Option<&'a DocumentCollection>,
    pub(crate) addition: Option<&'a CollectionWriter>,
    pub(crate) decisions: Option<&'a Path>,
    pub(crate) paragraphs: Option<&'a ParagraphRecords>,
    pub(crate) checkpoint_bytes: u64,
    /// The number of documents, where a caller hands them over and knows it.
    pub(crate) document_count: Option<u64>,
    pub(crate) folder: &'a Path,
    pub(crate) observer: &'a dyn JobObserver,
}

impl<'a> DedupJob<'a> {
    /// Creates a job with default settings and limits. Its temporary files go to `folder`.
    pub fn new(inputs: &'a Inputs, folder: &'a Path) -> Self {
        Self {
            settings: JobSettings::default(),
            limits: JobLimits::default(),
            inputs,
            options: InputOptions::default(),
            against_sources: 0,
            collection: None,
            addition: None,
            decisions: None,
            paragraphs: None,
            checkpoint_bytes: CHECKPOINT_BYTES,
            document_count: None,
            folder,
            observer: &NoProgress,
        }
    }

    /// Sets what decides the result.
    #[must_use]
    pub fn settings(self, settings: JobSettings) -> Self {
        Self { settings, ..self }
    }

    /// Sets how much of the machine the job may use. The result does not depend on it.
    #[must_use]
    pub fn limits(self, limits: JobLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets how sources are read: the options that [`Inputs::discover`] was given.
    #[must_use]
    pub fn options(self, options: InputOptions) -> Self {
        Self { options, ..self }
    }

    /// Says that the first so many sources are compared with, and never removed.
    #[must_use]
    pub fn against_sources(self, against_sources: usize) -> Self {
        Self {
            against_sources,
            ..self
        }
    }

    /// Sets a collection to compare with, whose documents are not read again and never removed. The decisions are those of a job that
    /// reads them, with [`DedupJob::against_sources`].
    #[must_use]
    pub fn against_collection(self, collection: &'a DocumentCollection) -> Self {
        Self {
            collection: Some(collection),
            ..self
        }
    }

    /// Sets a collection that [`DedupJob::dedup`] adds to what it keeps, in one step, when all results are written.
    #[must_use]
    pub fn into_collection(self, writer: &'a CollectionWriter) -> Self {
        Self {
            addition: Some(writer),
            ..self
        }
    }

    /// Sets a file outside the results where [`DedupJob::dedup`] leaves its decisions, for
    /// [`SavedDecisions::open`](crate::SavedDecisions::open).
    #[must_use]
    pub fn leave_decisions(self, path: &'a Path) -> Self {
        Self {
            decisions: Some(path),
            ..self
        }
    }

    /// Says that the records are these paragraphs: pairs have documents and positions.
    #[must_use]
    pub fn paragraphs(self, records: &'a ParagraphRecords) -> Self {
        Self {
            paragraphs: Some(records),
            ..self
        }
    }

    /// Sets after how many bytes of input, as it is once decompressed, for each thread [`DedupJob::dedup`] leaves a checkpoint while it
    /// reads: 128 MiB, if nothing is said. Shorter inputs leave none.
    #[must_use]
    pub fn checkpoint_bytes(self, checkpoint_bytes: u64) -> Self {
        Self {
            checkpoint_bytes,
            ..self
        }
    }

    /// Sets who hears of progress.
    #[must_use]
    pub fn observer(self, observer: &'a dyn JobObserver) -> Self {
        Self { observer, ..self }
    }
}

/// Everything known before the first comparison.
pub(crate) struct PreparedJob {
    pub(crate) scanned: ScannedCollection,
    pub(crate) ranking: DocumentRanking,
    /// Rank of each class.
    pub(crate) rank_of: Vec<u32>,
    pub(crate) repeated_ids: u64,
    groups: ClassGroups,
    by_rank: ClassColumns,
    /// Memory that is left beside all that.
    budget: DedupMemory,
    kept_facts: Option<KeptFacts>,
}

/// Places of the logs that a job leaves while it reads and while it compares.
pub(crate) struct JobLogs {
    pub(crate) scan: ScanLogPlace,
    pub(crate) decisions: DecisionLogPlace,
}

impl JobLogs {
    /// Removes the logs: what followed from them is on the disk, or nobody can go on from them.
    pub(crate) fn forget(&self) {
        self.scan.forget();
        self.decisions.forget();
    }
}

impl PreparedJob {
    /// A hash of the texts in the order of ranks, for any number of threads.
    fn order_hash(&self, threads: usize) -> u64 {
        let hashes = &self.scanned.classes.high_hashes;
        let of_rank = |rank: usize| {
            let hash = hashes[self.ranking.classes[rank] as usize];
            // The rank is the seed, so the sum depends on the order though adding does not: threads may add in
            // any.
            xxh3_64_with_seed(&hash.to_le_bytes(), rank as u64)
        };
        let sums = in_ranges(self.ranking.classes.len(), threads, |ranks| {
            ranks.map(of_rank).fold(0, u64::wrapping_add)
        });
        sums.into_iter().fold(0, u64::wrapping_add)
    }
}

/// Columns of the class table in the order of ranks.
struct ClassColumns {
    places: Vec<SetPlace>,
    sizes: Vec<u32>,
    fingerprints: Vec<u64>,
    high_fingerprints: Vec<u64>,
    categories: Vec<u64>,
    texts: Vec<u128>,
    pages: PageColumns,
    /// Bytes of the texts, where they are looked at.
    lengths: Vec<u64>,
}

impl DedupJob<'_> {
    /// Reads all inputs and groups candidates.
    fn prepare(&self, log: Option<&ScanLogPlace>) -> Result<PreparedJob, BatchError> {
        ensure_documents_fit(
            &self.limits,
            DocumentUse::Features(&self.settings.scheme),
            self.inputs,
            &self.options,
        )?;
        self.prepare_scan(expected_text(self.inputs), |plan, keys| {
            self.scan_steady(plan, keys, log)
        })
    }

    /// Lets `read` scan all documents, of about so many bytes of text, and groups candidates. `read` gets the plan, and how many bytes
    /// of keys stay in memory.
    pub(crate) fn prepare_scan(
        &self,
        text_bytes: u64,
        read: impl FnOnce(&ScanPlan<'_>, u64) -> Result<(ScannedCollection, KeySink), BatchError>,
    ) -> Result<PreparedJob, BatchError> {
        self.settings.check()?;
        self.check_collections()?;
        let temporary = BatchError::temporary(self.folder);
        let mut budget = DedupMemory::new(&self.limits, &self.settings.scheme, &self.options);
        let (mut scanned, sink) = self.scan_with(&mut budget, text_bytes, read)?;
        // Then keys are made while old and new documents meet, under the order of features that the collection
        // keeps.
        let meets_collection = self.collection.is_some() || self.addition.is_some();
        if meets_collection && self.settings.stop_features.is_some() {
            let conflict = SettingConflict::StopFeaturesBesideCollection;
            return Err(SettingsError::from(conflict).into());
        }
        let kept_facts = match meets_collection {
            true => self.meet_collection(&mut scanned, &sink, &budget)?,
            false => None,
        };
        self.observer.stage(JobStage::Rank, 0);
        let threads = self.limits.threads;
        let repeated = self.settings.repeated_ids;
        let ids = IdOrder::new(&mut scanned.documents, &scanned.classes, repeated, threads)?;
        let repeated_ids = ids.renamed;
        // Repeated ids have been told apart by the whole hashes; the rest of the job looks at halves.
        scanned
            .classes
            .halve_hashes(self.addition.is_some(), threads);
        let ranking = DocumentRanking::of_ids(
            ids,
            &mut scanned.documents,
            scanned.classes.len(),
            &self.settings.keep,
            threads,
        );
        let rank_of = inverse(&ranking.classes, threads);
        let (documents, classes) = (scanned.documents.len(), scanned.classes.len());
        budget.tables(scanned.table_bytes(), documents, classes)?;
        if !meets_collection {
            let levels = scanned.frequency.levels();
            self.push_keys(&scanned, &levels, &sink)
                .map_err(&temporary)?;
        }
        // Before the groups, which need the memory.
        drop(std::mem::take(&mut scanned.frequency));
        budget.release_counters();
        self.observer.stage(JobStage::Group, PARTS as u64);
        let advance = |done| self.advance(done);
        let resources = GroupResources {
            folder: self.folder,
            threads,
            memory: budget.for_groups(),
            most_members: self.settings.stop_features,
            advance: &advance,
        };
        let groups = StoredGroups::new(&sink, &rank_of, &resources).map_err(&temporary)?;
        let in_groups = groups.ranks_in_groups(classes, threads);
        budget.near_ranks(in_groups.map_err(&temporary)?)?;
        let all = MemoryShare {
            of: 1,
            folder: self.folder,
        };
        let by_text = budget
            .groups(groups, classes, threads, all)
            .map_err(&temporary)?;
        let wants_lengths = self.settings.lengths.is_some();
        let by_rank = ClassColumns::new(&scanned, &ranking, wants_lengths, self.limits.threads);
        if self.addition.is_none() {
            // There is a copy by rank; only an addition looks sets up by class again.
            scanned.classes.places = Vec::new();
        }
        let mut prepared = PreparedJob {
            scanned,
            ranking,
            rank_of,
            repeated_ids,
            groups: ClassGroups {
                by_text,
                by_page: None,
            },
            by_rank,
            budget,
            kept_facts,
        };
        self.group_pages(&mut prepared)
            .map_err(BatchError::temporary(self.folder))?;
        Ok(prepared)
    }

    /// Lets `read` scan all documents, of about so many bytes of text, and refuses what cannot be meant. `read` gets the plan, and how many
    /// bytes of keys stay in memory.
    pub(crate) fn scan_with(
        &self,
        budget: &mut DedupMemory,
        text_bytes: u64,
        read: impl FnOnce(&ScanPlan<'_>, u64) -> Result<(ScannedCollection, KeySink), BatchError>,
    ) -> Result<(ScannedCollection, KeySink), BatchError> {
        let options = self.options.clone().read_long(true);
        let is_ordered = self.settings.method == Method::AllPairs;
        let frequency = budget.frequency(if is_ordered { text_bytes } else { 0 });
        let plan = ScanPlan {
            inputs: self.inputs,
            options: &options,
            sketch: SketchPlan::new(&self.settings, self.settings.banding()?),
            tests: &self.settings.tests,
            against_sources: self.against_sources,
            scope: self.settings.scope,
            by_category: self.settings.by_category(),
            field_rule: self.settings.keep.field_rule(),
            losses: self.settings.losses,
            threads: self.limits.threads,
            memory: DocumentMemory::new(
                &self.limits,
                DocumentUse::Features(&self.settings.scheme),
                self.inputs,
                &options,
            ),
            frequency: is_ordered.then_some(&frequency),
            sets_budget: budget.sets(1 + self.settings.tests.len()),
            reading: budget.reading(),
            document_count: self.document_count,
            folder: self.folder,
        };
        let (mut scanned, sink) = read(&plan, budget.keys())?;
        scanned.frequency = frequency;
        // First of all: what was lost must be told even where nothing that was read has a text.
        let lost = skipped(self.inputs, &scanned, &[]);
        self.settings
            .losses
            .check(&lost, scanned.documents.len() as u64)?;
        self.refuse_no_text(&scanned)?;
        self.refuse_unknown_fields(&scanned)?;
        Ok((scanned, sink))
    }

    /// Groups pages that have their main text in common with many others by what else they show.
    fn group_pages(&self, prepared: &mut PreparedJob) -> io::Result<()> {
        let (ranks, threads) = (prepared.rank_of.len(), self.limits.threads);
        let budget = &prepared.budget;
        // Columns of families and virtual ranks go first; the groups are in memory twice while weak members are sorted out.
        let columns = 64 * ranks as u64;
        let resources = PageGroupResources {
            folder: self.folder,
            keys: budget.keys() / 2,
            groups: GroupResources {
                folder: self.folder,
                threads,
                memory: budget.for_groups().saturating_sub(columns) / 2,
                most_members: None,
                advance: &|_| ensure_wanted(self.observer),
            },
        };
        let none = CandidateGroups::default();
        let verifier = self.verifier(prepared, &none);
        let by_text = &prepared.groups.by_text;
        let Some(found) = page_groups(&verifier, by_text, LARGE_GROUP, &resources)? else {
            return Ok(());
        };
        let PreparedJob {
            groups,
            budget,
            by_rank,
            ..
        } = prepared;
        let share = MemoryShare {
            // Windows of the other groups want memory, too.
            of: if groups.are_on_disk() { 2 } else { 1 },
            folder: self.folder,
        };
        let found = budget.groups(found, ranks, threads, share)?;
        if found.is_on_disk() {
            // Windows of both need little of what all groups by text have.
            budget.release_groups();
            let by_text = std::mem::take(&mut groups.by_text);
            groups.by_text = by_text.into_file(self.folder)?;
        }
        groups.by_page = Some(found);
        let is_page = |rank| by_rank.pages.identity(rank).is_some();
        groups
            .by_text
            .weaken(LARGE_GROUP, ranks, is_page, self.folder)
    }

    /// Reads everything. A file of records that changes on the way is lost with all of them, because the results could not be
    /// written from it: then everything is read again, without that file.
    pub(crate) fn scan_steady(
        &self,
        plan: &ScanPlan<'_>,
        keys_budget: u64,
        log: Option<&ScanLogPlace>,
    ) -> Result<(ScannedCollection, KeySink), BatchError> {
        let mut changed = String::new();
        for attempt in 0..MAX_SCANS {
            // Of a file that is lost the log tells, too: it is begun anew.
            let log = log.map(|log| {
                log.open(attempt == 0)
                    .map_err(BatchError::result(&log.path))
            });
            let sink = KeySink::new(self.folder, keys_budget)
                .map_err(BatchError::temporary(self.folder))?;
            self.observer
                .stage(JobStage::Scan, self.inputs.total_bytes());
            let chunks = self.inputs.chunks(plan.options);
            let scanned = scan(plan, chunks, &sink, log.transpose()?, self.observer)?;
            match self.inputs.lose_changed(&scanned.records) {
                None => return Ok((scanned, sink)),
                Some(source) => changed = source.name().into_owned(),
            }
        }
        Err(BatchError::Read(ReadError::Changed { name: changed }))
    }

    /// Refuses input in which nothing has a text: the field is misnamed.
    fn refuse_no_text(&self, scanned: &ScannedCollection) -> Result<(), BatchError> {
        let records = scanned.documents.len() as u64;
        if records == 0 || scanned.tally.missing < records {
            return Ok(());
        }
        let fields = first_names(self.inputs, &self.options);
        Err(BatchError::NoText { records, fields })
    }

    /// Refuses fields that were named and that no record has.
    fn refuse_unknown_fields(&self, scanned: &ScannedCollection) -> Result<(), BatchError> {
        let (tally, options) = (&scanned.tally, &self.options);
        let named = FieldTally {
            records: scanned.documents.len() as u64,
            ids: tally.named_ids,
            texts: scanned.documents.len() as u64 - tally.missing,
            linked: tally.linked,
        };
        named.check(self.inputs, options)?;
        let unknown = |setting: FieldSetting, value: String, field: MissingField, records: u64| {
            Err(BatchError::NoField {
                setting,
                value,
                field,
                records,
                fields: first_names(self.inputs, options),
            })
        };
        let with_text = tally.categorised + tally.uncategorised;
        if let (Some(category), 0, 1..) = (&options.category, tally.categorised, with_text) {
            let setting = match self.settings.scope {
                PairScope::Within => FieldSetting::Within,
                PairScope::Across => FieldSetting::Across,
                PairScope::Everything => FieldSetting::DistanceFor,
            };
            let field = match category {
                Category::Site => MissingField::Url,
                Category::Field(path) => MissingField::Named(path.to_string()),
            };
            return unknown(setting, category.to_string(), field, with_text);
        }
        let Some(rule) = self.settings.keep.field_rule() else {
            return Ok(());
        };
        let records = tally.unranked + tally.rank_unusable;
        match (tally.ranked, records, &scanned.unusable) {
            (1.., _, _) | (_, 0, _) => Ok(()),
            (0, _, None) => unknown(
                FieldSetting::Keep,
                self.settings.keep.to_string(),
                MissingField::Named(rule.field().unwrap_or_default().to_owned()),
                records,
            ),
            (0, _, Some(first)) => Err(BatchError::NoUsableValue {
                keep: self.settings.keep.to_string(),
                records,
                missing: tally.unranked,
                first: first.clone(),
                remedy: match rule {
                    KeepRule::Newest(_) => {
                        "newest: takes dates with the year first (2024-03-01, 2024/3, 2024), RFC 2822 dates and seconds since \
                         1970; latest: goes by the order of texts"
                    }
                    _ => {
                        "max: and min: take numbers, newest: dates, latest: goes by the order of texts"
                    }
                },
            }),
        }
    }

    /// Collects the keys that need the whole collection: prefixes, and blocks of fingerprints.
    pub(crate) fn push_keys(
        &self,
        scanned: &ScannedCollection,
        levels: &FrequencyLevels,
        sink: &KeySink,
    ) -> io::Result<()> {
        // Keys that a collection keeps must not depend on how many documents there are.
        let is_kept = self.collection.is_some() || self.addition.is_some();
        match self.settings.method {
            Method::AllPairs => self.push_prefixes(scanned, levels, sink),
            Method::Simhash => push_blocks(scanned, &self.settings, is_kept, sink),
            _ => Ok(()),
        }
    }

    fn push_prefixes(
        &self,
        scanned: &ScannedCollection,
        levels: &FrequencyLevels,
        sink: &KeySink,
    ) -> io::Result<()> {
        let segments = scanned.sets.segments();
        self.observer.stage(JobStage::Keys, segments as u64);
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<()> {
            let mut writer = sink.writer();
            let (mut buffer, mut finder) = (Vec::new(), PrefixFinder::default());
            loop {
                // Segments are told apart by number only; keys meet behind the lock of the sink.
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= segments {
                    return writer.finish();
                }
                scanned.sets.walk(segment, &mut buffer, |class, set| {
                    let salt = salt(scanned, self.settings.scope, class);
                    let mut prefix = finder.prefix(set, self.settings.threshold, levels).iter();
                    prefix.try_for_each(|&feature| writer.push(salt.apply(feature), class))
                })?;
                self.advance(segment as u64 + 1)?;
            }
        };
        on_threads(self.limits.threads, work).map(drop)
    }

    /// Tells the observer of progress; an error if it has cancelled the job.
    fn advance(&self, done: u64) -> io::Result<()> {
        self.observer.advance(done);
        ensure_wanted(self.observer)
    }

    /// Reads the inputs and decides on every document, without writing results.
    ///
    /// # Errors
    /// [`BatchError`].
    pub fn decide(&self) -> Result<DedupDecisions, BatchError> {
        self.choose_survivors(self.prepare(None)?, None)
    }

    /// As [`DedupJob::decide`]. What is read and compared leaves logs, and what a log has is not made again.
    pub(crate) fn decide_logged(
        &self,
        logs: Option<&JobLogs>,
    ) -> Result<DedupDecisions, BatchError> {
        let prepared = self.prepare(logs.map(|logs| &logs.scan))?;
        self.choose_survivors(prepared, logs.map(|logs| &logs.decisions))
    }

    /// Settles all classes; those of which a log tells are settled.
    fn settle_logged(
        &self,
        prepared: &mut PreparedJob,
        log: Option<&DecisionLogPlace>,
    ) -> Result<ClassDecisions, BatchError> {
        let (fixed, threads) = (prepared.ranking.fixed, self.limits.threads);
        let mut settled = SettledRanks::fixed(fixed, prepared.ranking.classes.len());
        let opened = log.map(|log| {
            log.open(prepared.order_hash(threads), &mut settled)
                .map_err(BatchError::result(&log.path))
        });
        let mut log = opened.transpose()?;
        prepared.scanned.is_resumed |= settled.count > fixed;
        let advance = |settled: &SettledRanks| {
            if let Some(log) = &mut log {
                log.note(settled);
            }
            self.advance(settled.count as u64)
        };
        let resources = SettlingResources {
            groups: &prepared.groups,
            memory: prepared.budget.for_groups(),
            threads,
        };
        let none = CandidateGroups::default();
        let verifier = self.verifier(prepared, &none);
        settle_stored(&verifier, &resources, fixed, settled, advance)
            .map_err(|error| self.without_groups(prepared, error))
    }

    /// Error for groups that could not be looked at.
    fn without_groups(&self, prepared: &PreparedJob, error: GroupError) -> BatchError {
        match error {
            GroupError::Io(error) => BatchError::temporary(self.folder)(error),
            GroupError::TooLarge(needed) => prepared.budget.refuse_groups(needed),
        }
    }

    /// Decides on every document of a prepared job.
    pub(crate) fn choose_survivors(
        &self,
        mut prepared: PreparedJob,
        log: Option<&DecisionLogPlace>,
    ) -> Result<DedupDecisions, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let threads = self.limits.threads;
        self.observer
            .stage(JobStage::Compare, prepared.rank_of.len() as u64);
        let fingerprints = self.settings.method.has_fingerprints();
        let counts = InputCounts {
            stop_features: prepared.groups.by_text.left_out(),
            ..input_counts(
                &prepared.scanned,
                self.inputs,
                self.against_sources,
                &self.options,
                prepared.repeated_ids,
            )
        };
        // The groups lie beside all tables now: what only other steps look at is let go of, and made anew behind them.
        prepared.rank_of = Vec::new();
        prepared.ranking.id_ranks = Vec::new();
        if !fingerprints && self.addition.is_none() {
            prepared.scanned.classes.sizes = Vec::new();
        }
        let ClassDecisions {
            decisions,
            comparisons,
            kept_as_pages,
        } = self.settle_logged(&mut prepared, log)?;
        let wants_all = self.settings.pairs == PairList::All;
        if !wants_all {
            // The search below the threshold has a table of its own: the groups make room for it.
            prepared.groups = ClassGroups::default();
            prepared.budget.release_groups();
        }
        prepared.rank_of = inverse(&prepared.ranking.classes, threads);
        let just_below = self.just_below(&prepared, &decisions).map_err(&temporary)?;
        let pairs = match wants_all {
            true => Some(self.join(&prepared)?),
            false => None,
        };
        let PreparedJob {
            scanned,
            mut ranking,
            rank_of,
            kept_facts,
            groups,
            by_rank,
            ..
        } = prepared;
        drop((groups, by_rank));
        let outcomes = outcomes(
            &scanned.documents,
            &scanned.classes,
            &ranking,
            &rank_of,
            &decisions,
            self.settings.scope,
            threads,
        );
        drop((rank_of, decisions));
        ranking.id_ranks = inverse(&ranking.by_id, threads);
        let best = |rank: u32| ranking.best[ranking.classes[rank as usize] as usize];
        let just_below = just_below.of_documents(best);
        let clusters = ClusterTable::new(&ranking.by_id, &ranking.id_ranks, &outcomes, threads);
        Ok(DedupDecisions {
            counts,
            comparisons,
            decision_counts: DecisionCounts {
                kept_as_pages,
                ..DecisionCounts::new(&scanned.documents, &outcomes, &clusters)
            },
            skipped: skipped(self.inputs, &scanned, &[]),
            threshold: self.settings.threshold,
            scanned,
            ranking,
            outcomes,
            clusters,
            just_below,
            pairs,
            fingerprints,
            threads,
            kept_facts,
        })
    }

    /// Looks for kept texts just below the threshold; for none where only copies are looked for.
    fn just_below(
        &self,
        prepared: &PreparedJob,
        decisions: &DecisionTable,
    ) -> io::Result<JustBelow> {
        let margin = BelowMargin::below(self.settings.threshold);
        if self.settings.method == Method::Copies {
            return Ok(JustBelow::new(margin, 0, 0));
        }
        let scanned = &prepared.scanned;
        let hashes = &scanned.classes.high_hashes;
        let new = hashes.len() - scanned.stored.classes as usize;
        let none = CandidateGroups::default();
        let search = MarginSearch {
            verifier: &self.verifier(prepared, &none),
            rank_of: &prepared.rank_of,
            hashes,
            decisions,
            fixed: prepared.ranking.fixed,
            last_sampled: match scanned.stored.collection {
                Some(_) => last_sampled(hashes[..new].iter().copied()),
                None => u64::MAX,
            },
            threads: self.limits.threads,
            memory: prepared.budget.for_margin(),
            advance: &|| ensure_wanted(self.observer),
        };
        search.run(margin)
    }

    /// All pairs, spooled.
    fn join(&self, prepared: &PreparedJob) -> Result<PairSpool, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let documents = &prepared.scanned.documents;
        // Where groups take all that is left by windows, pairs have their part of it.
        let keys = match prepared.groups.are_on_disk() {
            true => prepared.budget.keys(),
            false => DedupMemory::new(&self.limits, &self.settings.scheme, &self.options).keys(),
        };
        let spool = PairSpool::new(self.folder, keys, documents.len()).map_err(&temporary)?;
        let copies = ClassCopies::new(documents, &prepared.ranking, &prepared.rank_of);
        let join = PairJoin {
            groups: &prepared.groups,
            memory: prepared.budget.for_groups().saturating_sub(keys),
            copies: &copies,
            against: documents.against as u32,
            scope: self.settings.scope,
            threads: self.limits.threads,
            spool: &spool,
            advance: &|done| self.advance(done as u64),
        };
        let none = CandidateGroups::default();
        join.run(&self.verifier(prepared, &none), JOINED_RANKS)
            .map_err(|error| match error {
                // Pairs have their part of what is left.
                GroupError::TooLarge(needed) => GroupError::TooLarge(with_keys(needed)),
                GroupError::Io(error) => GroupError::Io(error),
            })
            .map_err(|error| self.without_groups(prepared, error))?;
        Ok(spool)
    }

    /// The verifier of all ranks, to be used with groups of a window.
    fn verifier<'p>(&self, prepared: &'p PreparedJob, groups: &'p CandidateGroups) -> Verifier<'p> {
        Verifier {
            groups,
            page_groups: None,
            sets: &prepared.scanned.sets,
            classes: &prepared.ranking.classes,
            places: &prepared.by_rank.places,
            sizes: &prepared.by_rank.sizes,
            fingerprints: &prepared.by_rank.fingerprints,
            high_fingerprints: &prepared.by_rank.high_fingerprints,
            scope: self.settings.scope,
            categories: &prepared.by_rank.categories,
            texts: &prepared.by_rank.texts,
            pages: (!prepared.by_rank.pages.is_empty()).then_some(PageVerifier {
                columns: &prepared.by_rank.pages,
                sets: &prepared.scanned.page_sets,
                classes: &prepared.ranking.classes,
                threshold: self.settings.threshold,
            }),
            length_share: self.settings.lengths,
            lengths: &prepared.by_rank.lengths,
            tests: self
                .settings
                .tests
                .iter()
                .zip(&prepared.scanned.test_sets)
                .map(|(&test, sets)| LoadedTest { test, sets })
                .collect(),
            threshold: self.settings.threshold,
            rule: CandidateRule::of(&self.settings),
        }
    }

    /// Writes every verified pair, sorted by both ids, one JSON object a line.
    ///
    /// # Errors
    /// [`BatchError`]; one of kind [`io::ErrorKind::BrokenPipe`] inside [`BatchError::File`] when the reader is gone.
    pub fn write_pairs(&self, out: &mut dyn Write) -> Result<PairsSummary, BatchError> {
        // All pairs of documents whose text a collection has, too.
        let all = DedupJob {
            settings: self.settings.clone().pairs(PairList::All),
            limits: self.limits.clone(),
            options: self.options.clone(),
            ..*self
        };
        let prepared = all.prepare(None)?;
        self.observer
            .stage(JobStage::Compare, prepared.rank_of.len() as u64);
        let spool = self.join(&prepared)?;
        self.observer.stage(JobStage::Write, 0);
        let scanned = &prepared.scanned;
        let fingerprints = self
            .settings
            .method
            .has_fingerprints()
            .then_some(&scanned.classes);
        let mut pairs = 0;
        let written = spool.drain(&prepared.ranking.by_id, |pair| {
            pairs += 1;
            crate::dedup::result_lines::write_pair(
                out,
                &scanned.documents,
                fingerprints,
                self.paragraphs.map(ParagraphRecords::names),
                pair,
            )
        });
        written
            .and_then(|()| out.flush())
            .map_err(BatchError::result(Path::new(OUTPUT)))?;
        let counts = InputCounts {
            stop_features: prepared.groups.by_text.left_out(),
            ..input_counts(
                scanned,
                self.inputs,
                self.against_sources,
                &self.options,
                prepared.repeated_ids,
            )
        };
        let skipped = skipped(self.inputs, scanned, &[]);
        Ok(PairsSummary {
            pairs,
            counts,
            skipped,
        })
    }
}

/// Summary of `pairs`.
#[derive(Debug, serde::Serialize)]
pub struct PairsSummary {
    /// Pairs written.
    pub pairs: u64,
    /// Counts of what was read.
    #[serde(flatten)]
    pub counts: InputCounts,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

impl ClassColumns {
    fn new(
        scanned: &ScannedCollection,
        ranking: &DocumentRanking,
        wants_lengths: bool,
        threads: usize,
    ) -> Self {
        let classes = &scanned.classes;
        let order = &ranking.classes;
        let ranks = |is_wanted| if is_wanted { order.len() } else { 0 };
        Self {
            places: sorted(&classes.places, order, threads),
            sizes: sorted(&classes.sizes, order, threads),
            fingerprints: sorted(&classes.fingerprints, order, threads),
            high_fingerprints: sorted(&classes.high_fingerprints, order, threads),
            categories: sorted(&classes.categories, order, threads),
            texts: column(ranks(classes.has_visible_texts()), threads, |rank| {
                classes.visible_text(order[rank] as usize)
            }),
            pages: classes.pages.sorted(order),
            lengths: column(ranks(wants_lengths), threads, |rank| {
                let best = ranking.best[order[rank] as usize];
                scanned.documents.lengths.get(best as usize)
            }),
        }
    }
}

/// A column of classes in the order of ranks; an empty one stays empty.
fn sorted<T: Copy + Default + Send + Sync>(
    values: &[T],
    classes: &[u32],
    threads: usize,
) -> Vec<T> {
    if values.is_empty() {
        return Vec::new();
    }
    column(classes.len(), threads, |rank| {
        values[classes[rank] as usize]
    })
}

/// Hands over keys of fingerprints.
fn push_blocks(
    scanned: &ScannedCollection,
    settings: &JobSettings,
    for_any_number: bool,
    sink: &KeySink,
) -> io::Result<()> {
    let classes = &scanned.classes;
    let (bits, distance) = (settings.fingerprint_bits(), settings.distance);
    // Two blocks each tell any number of fingerprints apart.
    let classes_told = match for_any_number {
        true => u64::MAX,
        false => classes.len() as u64,
    };
    let blocks = BlockKeys::new(bits, distance, classes_told);
    let mut writer = sink.writer();
    // A text without features has fingerprint 0 and would be near others that have few bits.
    for class in (0..classes.len()).filter(|&class| classes.sizes[class] > 0) {
        let high = classes.high_fingerprints.get(class).copied().unwrap_or(0);
        let fingerprint = u128::from(high) << 64 | u128::from(classes.fingerprints[class]);
        let salt = salt(scanned, settings.scope, class as u32);
        for key in blocks.of(fingerprint) {
            writer.push(salt.apply(key), class as u32)?;
        }
    }
    writer.finish()
}

/// Salt of the keys of a class.
fn salt(scanned: &ScannedCollection, scope: PairScope, class: u32) -> KeySalt {
    let category = scanned.classes.categories.get(class as usize);
    KeySalt::new(scope, category.copied().unwrap_or(0))
}
