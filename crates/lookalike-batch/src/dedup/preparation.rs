//! Preparation of a job: everything that is computed before the first comparison.

use std::io::{self, ErrorKind};

use lookalike_corpus::ReadError;

use crate::dedup::candidate_groups::{
    AcrossCategories, CandidateGroups, GroupResources, KeySink, StoredGroups, TextLimit,
    weaken_members,
};
use crate::dedup::collection::segment::AdditionFacts;
use crate::dedup::documents::TextClasses;
use crate::dedup::group_windows::ClassGroups;
use crate::dedup::id_order::IdOrder;
use crate::dedup::job::DedupJob;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::memory_budget::{DedupMemory, expected_text};
use crate::dedup::page_groups::{LARGE_GROUP, page_groups};
use crate::dedup::pages::{PageColumns, PageVerifier};
use crate::dedup::pair_test::LoadedTest;
use crate::dedup::ranking::DocumentRanking;
use crate::dedup::scan::{ScanPlan, ScannedCollection, scan};
use crate::dedup::scan_log::ScanLog;
use crate::dedup::summary::skipped;
use crate::dedup::verify::Verifier;
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::SketchPlan;
use crate::observer::{JobStage, check_cancelled};
use crate::parallel::{column, inverse, sorted};
use crate::settings::{Method, PairScope};
use crate::settings_error::{SettingConflict, SettingsError};
use crate::spill::feature_sets::SetPosition;
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;

/// Maximum number of scans if files keep changing: each scan finds one more file that does.
const MAX_SCANS: usize = 4;

/// Everything that is computed before the first comparison.
pub(crate) struct PreparedJob {
    pub(crate) scanned: ScannedCollection,
    pub(crate) ranking: DocumentRanking,
    /// Rank of each class.
    pub(crate) rank_of: TableColumn<u32>,
    pub(crate) repeated_ids: u64,
    pub(super) groups: ClassGroups,
    pub(super) by_rank: ClassColumns,
    /// No groups, for a verifier that gets the groups of each window.
    no_groups: CandidateGroups,
    /// Memory that is left beside all that.
    pub(super) budget: DedupMemory,
    pub(super) kept_facts: Option<AdditionFacts>,
}

/// Columns of the class table in the order of ranks.
pub(super) struct ClassColumns {
    pub(super) places: TableColumn<SetPosition>,
    pub(super) sizes: TableColumn<u32>,
    pub(super) fingerprints: TableColumn<u64>,
    pub(super) high_fingerprints: TableColumn<u64>,
    pub(super) categories: TableColumn<u64>,
    pub(super) texts: TableColumn<u128>,
    pub(super) pages: PageColumns,
    /// Bytes of the texts; empty unless lengths are compared.
    pub(super) lengths: TableColumn<u64>,
}

impl DedupJob<'_> {
    /// Reads all inputs and groups candidates.
    pub(crate) fn prepare(&self, logs: Option<&JobLogs>) -> Result<PreparedJob, BatchError> {
        self.ensure_documents_fit()?;
        self.prepare_scan(expected_text(self.inputs), |plan| {
            self.scan_steady(plan, logs)
        })
    }

    /// Refuses limits under which the longest admitted document could not be compared.
    pub(super) fn ensure_documents_fit(&self) -> Result<(), BatchError> {
        let documents = DocumentUse::Features(&self.settings.scheme);
        ensure_documents_fit(&self.limits, documents, self.inputs, &self.options)
    }

    /// Scans all documents, of about `text_bytes` bytes of text, with `read`, and groups candidates.
    pub(crate) fn prepare_scan(
        &self,
        text_bytes: u64,
        read: impl FnOnce(&ScanPlan<'_>) -> Result<(ScannedCollection, KeySink), BatchError>,
    ) -> Result<PreparedJob, BatchError> {
        self.check()?;
        let temporary = BatchError::temporary(self.folder);
        let mut budget = self.memory();
        let (mut scanned, sink) = self.scan_with(&mut budget, text_bytes, read)?;
        // With a collection, keys are made when old and new documents are combined, in the order of features of the
        // collection.
        let meets_collection = self.collection.is_some() || self.addition.is_some();
        if meets_collection && self.settings.stop_features.is_some() {
            let conflict = SettingConflict::StopFeaturesBesideCollection;
            return Err(SettingsError::from(conflict).into());
        }
        let kept_facts = match meets_collection {
            true => self.add_neighbourhood(&mut scanned, &sink, &budget)?,
            false => None,
        };
        self.push_text_keys(&scanned, &sink).map_err(&temporary)?;
        self.observer.stage(JobStage::Rank, 0);
        let threads = self.limits.workers();
        let repeated = self.settings.repeated_ids;
        let ids = IdOrder::new(&mut scanned.documents, &scanned.classes, repeated, threads)?;
        let repeated_ids = ids.renamed;
        // Repeated ids have been renamed by the complete hashes; the rest of the job uses only halves.
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
        budget.tables(scanned.table_bytes(), documents, classes);
        if !meets_collection {
            let levels = scanned.levels(self.limits.workers());
            self.push_keys(&scanned, &levels, &sink)
                .map_err(&temporary)?;
        }
        // Before the groups, which need the memory.
        scanned.frequency = None;
        budget.release_counters();
        let groups = self.group_texts(&scanned, &ranking, &rank_of, &sink, budget.for_groups());
        let groups = groups.map_err(&temporary)?;
        // A class outside all groups cannot resemble another.
        let in_groups = groups.ranks_in_groups(classes, threads);
        budget.near_ranks(in_groups.map_err(&temporary)?);
        let by_text = budget.groups(groups, threads, 1, self.folder);
        let by_text = by_text.map_err(&temporary)?;
        let wants_lengths = self.settings.lengths.is_some();
        let by_rank = ClassColumns::new(&scanned, &ranking, wants_lengths, self.limits.workers());
        if self.addition.is_none() {
            // There is a copy by rank; only an addition looks up sets by class again.
            scanned.classes.places = TableColumn::new();
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
            no_groups: CandidateGroups::default(),
            budget,
            kept_facts,
        };
        self.group_pages(&mut prepared)
            .map_err(BatchError::temporary(self.folder))?;
        Ok(prepared)
    }

    /// Groups the classes that share a key, in `memory` bytes.
    fn group_texts(
        &self,
        scanned: &ScannedCollection,
        ranking: &DocumentRanking,
        rank_of: &[u32],
        sink: &KeySink,
        memory: u64,
    ) -> io::Result<StoredGroups> {
        self.observer.stage(JobStage::Group, PARTS as u64);
        let classes = &scanned.classes;
        let text = |rank: u32| match classes.has_visible_texts() {
            true => classes.visible_text(ranking.classes[rank as usize] as usize),
            false => rank.into(),
        };
        let category_of = |rank: u32| classes.categories[ranking.classes[rank as usize] as usize];
        let resources = GroupResources {
            folder: self.folder,
            threads: self.limits.workers(),
            memory,
            across: self.across(classes, &category_of),
            most_texts: self.settings.stop_features.map(|most| TextLimit {
                most: most as usize,
                text: &text,
            }),
            advance: &|done| self.advance(done),
        };
        StoredGroups::new(sink, rank_of, &resources)
    }

    /// Scans all documents, of about `text_bytes` bytes of text, with `read`, and refuses input that the settings cannot mean.
    pub(crate) fn scan_with(
        &self,
        budget: &mut DedupMemory,
        text_bytes: u64,
        read: impl FnOnce(&ScanPlan<'_>) -> Result<(ScannedCollection, KeySink), BatchError>,
    ) -> Result<(ScannedCollection, KeySink), BatchError> {
        // Records beyond the limit are read too: they are compared for equal bytes.
        let options = self.options.clone().read_long(true);
        let is_ordered = self.settings.method == Method::AllPairs;
        let frequency = budget.frequency(if is_ordered { text_bytes } else { 0 });
        let plan = ScanPlan {
            inputs: self.inputs,
            options: &options,
            settings: &self.settings,
            sketch: SketchPlan::new(&self.settings, self.settings.banding()?),
            against_sources: self.against_sources,
            threads: self.limits.workers(),
            memory: DocumentMemory::new(
                &self.limits,
                DocumentUse::Features(&self.settings.scheme),
                self.inputs,
                &options,
            ),
            frequency: is_ordered.then_some(&frequency),
            sets_budget: budget.sets(1 + self.settings.tests.len()),
            budget: *budget,
            folder: self.folder,
        };
        let (mut scanned, sink) = read(&plan)?;
        scanned.frequency = Some(frequency);
        // Losses first: they must be reported even if no record that could be read has a text.
        let lost = skipped(self.inputs, &scanned, &[]);
        self.settings
            .losses
            .check(&lost, scanned.documents.len() as u64)?;
        self.refuse_no_text(&scanned)?;
        self.refuse_no_text_against(&scanned)?;
        self.refuse_unknown_fields(&scanned)?;
        Ok((scanned, sink))
    }

    /// Returns the categories of ranks if only pairs across them count.
    fn across<'c>(
        &self,
        classes: &TextClasses,
        of_rank: &'c (dyn Fn(u32) -> u64 + Sync),
    ) -> Option<AcrossCategories<'c>> {
        // Pages are made weak by other properties, in groups without weak members.
        let bound = match classes.pages.is_empty() {
            true => LARGE_GROUP,
            false => usize::MAX,
        };
        (self.settings.scope == PairScope::Across).then_some(AcrossCategories { of_rank, bound })
    }

    /// Groups pages that share their main text with many others by their other properties.
    fn group_pages(&self, prepared: &mut PreparedJob) -> io::Result<()> {
        let (ranks, threads) = (prepared.rank_of.len(), self.limits.workers());
        let budget = &prepared.budget;
        // Subtract columns of families and virtual ranks; the groups are in memory twice while weak members are moved.
        let columns = 64 * ranks as u64;
        let resources = GroupResources {
            folder: self.folder,
            threads,
            memory: budget.for_groups().saturating_sub(columns) / 2,
            most_texts: None,
            across: None,
            advance: &|_| check_cancelled(self.observer),
        };
        let verifier = self.verifier(prepared);
        let (by_text, keys) = (&prepared.groups.by_text, budget.keys() / 2);
        let Some(found) = page_groups(&verifier, by_text, LARGE_GROUP, keys, &resources)? else {
            return Ok(());
        };
        let (groups, budget) = (&mut prepared.groups, &mut prepared.budget);
        // Windows of the other groups need memory too.
        let shares = if groups.are_on_disk() { 2 } else { 1 };
        let found = budget.groups(found, threads, shares, self.folder)?;
        if found.is_on_disk() {
            // Windows of both kinds need little of the memory that all groups by text took.
            budget.release_groups();
            let by_text = std::mem::take(&mut groups.by_text);
            groups.by_text = by_text.into_file(self.folder)?;
        }
        groups.by_page = Some(found);
        // Only now, because `page_groups` needs groups without weak members.
        let is_page = |rank| prepared.by_rank.pages.identity(rank).is_some();
        let by_text = std::mem::take(&mut groups.by_text);
        groups.by_text = by_text.changed(ranks, &resources, |members| {
            Some(weaken_members(members, LARGE_GROUP, is_page))
        })?;
        Ok(())
    }

    /// Reads the whole input. A file of records that changes meanwhile is lost completely, because its records could not be
    /// written to the results: then everything else is read again.
    pub(crate) fn scan_steady(
        &self,
        plan: &ScanPlan<'_>,
        logs: Option<&JobLogs>,
    ) -> Result<(ScannedCollection, KeySink), BatchError> {
        let mut changed = String::new();
        for attempt in 0..MAX_SCANS {
            // The log contains the lost file too, so a further attempt begins a new log.
            let log = logs.map(|logs| {
                ScanLog::open(logs, attempt == 0).map_err(|error| match error.kind() {
                    // The log is a regular file, so this comes from the thread that writes it.
                    ErrorKind::WouldBlock => BatchError::Thread(error),
                    _ => BatchError::result(&logs.scanned)(error),
                })
            });
            // A new one, because the last attempt has filled the old one.
            let sink = KeySink::new(self.folder, plan.budget.keys())
                .map_err(BatchError::temporary(self.folder))?;
            self.observer
                .stage(JobStage::Scan, self.inputs.total_bytes());
            let chunks = self.inputs.chunks(plan.options);
            let scanned = scan(plan, chunks, &sink, log.transpose()?, self.observer)?;
            match self.inputs.mark_changed_lost(&scanned.records) {
                None => return Ok((scanned, sink)),
                Some(source) => changed = source.name().into_owned(),
            }
        }
        Err(BatchError::Read(ReadError::Changed { name: changed }))
    }

    /// Returns the verifier of all ranks; the caller adds the groups of a window.
    pub(super) fn verifier<'p>(&self, prepared: &'p PreparedJob) -> Verifier<'p> {
        Verifier {
            groups: &prepared.no_groups,
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
            pages: classes.pages.sorted(order, threads),
            lengths: column(ranks(wants_lengths), threads, |rank| {
                // All documents of a class have one text, so any of them would do.
                let best = ranking.best[order[rank] as usize];
                scanned.documents.lengths.get(best as usize)
            }),
        }
    }
}
