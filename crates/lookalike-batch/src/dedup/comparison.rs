//! Comparison of prepared documents: survivors, texts just below the threshold, and lists of pairs.

use std::io;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dedup::counts::{DecisionCounts, InputCounts};
use crate::dedup::decided::DedupDecisions;
use crate::dedup::decision::{ClusterTable, outcomes};
use crate::dedup::decision_log::DecisionLog;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::group_windows::{ClassGroups, GroupError};
use crate::dedup::job::DedupJob;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::just_below::{BelowThresholdCounts, MarginBins};
use crate::dedup::margin_search::{MarginSearch, last_sampled};
use crate::dedup::memory_budget::with_keys;
use crate::dedup::pair_log::PairLog;
use crate::dedup::pairs::{PairJoin, PairSpool, class_copies};
use crate::dedup::preparation::PreparedJob;
use crate::dedup::summary::{input_counts, skipped};
use crate::dedup::survivors::{ClassDecisions, SettledRanks, SettlingResources, settle_stored};
use crate::error::BatchError;
use crate::observer::{JobStage, check_cancelled};
use crate::parallel::{in_ranges, inverse};
use crate::settings::{Method, PairList};
use crate::spill::table_column::TableColumn;

/// Minimum number of ranks in a window of groups on disk, in the search for all pairs.
const JOINED_RANKS: usize = 1024;

impl PreparedJob {
    /// Returns a hash of the texts in the order of ranks, independent of the number of threads.
    fn order_hash(&self, threads: usize) -> u64 {
        let hashes = &self.scanned.classes.high_hashes;
        let of_rank = |rank: usize| {
            let hash = hashes[self.ranking.classes[rank] as usize];
            // The rank is the seed, so the sum depends on the order of texts, although threads may add in any order.
            xxh3_64_with_seed(&hash.to_le_bytes(), rank as u64)
        };
        let sums = in_ranges(self.ranking.classes.len(), threads, |ranks| {
            ranks.map(of_rank).fold(0, u64::wrapping_add)
        });
        sums.into_iter().fold(0, u64::wrapping_add)
    }
}

impl DedupJob<'_> {
    /// Reads the inputs and decides on every document, without writing results.
    ///
    /// # Errors
    /// [`BatchError`].
    pub fn decide(&self) -> Result<DedupDecisions, BatchError> {
        let _tables = self.open_tables();
        self.choose_survivors(self.prepare(None)?, None)
    }

    /// Decides as [`DedupJob::decide`] does, and writes logs of what it reads and compares. Work that is in a log is not done again.
    pub(crate) fn decide_logged(
        &self,
        logs: Option<&JobLogs>,
    ) -> Result<DedupDecisions, BatchError> {
        let prepared = self.prepare(logs)?;
        self.choose_survivors(prepared, logs)
    }

    pub(super) fn counts(&self, prepared: &PreparedJob) -> InputCounts {
        InputCounts {
            stop_features: prepared.groups.by_text.excluded_groups(),
            ..input_counts(
                &prepared.scanned,
                self.inputs,
                self.against_sources,
                &self.options,
                prepared.repeated_ids,
            )
        }
    }

    /// Settles all classes, except those that a log has already settled.
    fn settle_logged(
        &self,
        prepared: &mut PreparedJob,
        logs: Option<&JobLogs>,
    ) -> Result<ClassDecisions, BatchError> {
        let (fixed, threads) = (prepared.ranking.fixed, self.limits.workers());
        let mut settled = SettledRanks::fixed(fixed, prepared.ranking.classes.len());
        let opened = logs.map(|logs| {
            DecisionLog::open(logs, prepared.order_hash(threads), &mut settled)
                .map_err(BatchError::result(&logs.compared))
        });
        let mut log = opened.transpose()?;
        prepared.scanned.is_resumed |= settled.count > fixed;
        let advance = |settled: &SettledRanks| {
            // Noted first, so that a job that is cancelled below resumes from here.
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
        let verifier = self.verifier(prepared);
        settle_stored(&verifier, &resources, fixed, settled, advance)
            .map_err(|error| self.without_groups(prepared, error))
    }

    /// Returns the error for groups that could not be read.
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
        logs: Option<&JobLogs>,
    ) -> Result<DedupDecisions, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let threads = self.limits.workers();
        self.observer
            .stage(JobStage::Compare, prepared.rank_of.len() as u64);
        let fingerprints = self.settings.method.has_fingerprints();
        // While the groups are there, which know the features that were left out.
        let counts = self.counts(&prepared);
        // The groups now take memory beside all tables, so tables that only other steps use are dropped, and computed again afterwards.
        prepared.rank_of = TableColumn::new();
        prepared.ranking.id_ranks = TableColumn::new();
        // An addition stores sizes, and a distance is shown only for texts with features.
        if !fingerprints && self.addition.is_none() {
            prepared.scanned.classes.sizes = TableColumn::new();
        }
        let settled = self.settle_logged(&mut prepared, logs)?;
        let wants_all = self.settings.pairs == PairList::All;
        if !wants_all {
            // The search below the threshold has a table of its own, so free the groups first.
            prepared.groups = ClassGroups::default();
            prepared.budget.release_groups();
        }
        prepared.rank_of = inverse(&prepared.ranking.classes, threads);
        let just_below = self
            .find_below_threshold(&prepared, &settled.decisions)
            .map_err(&temporary)?;
        let pairs = match wants_all {
            true => Some(self.join(&mut prepared, logs)?),
            false => None,
        };
        // `deciding_bytes` does not count these.
        drop((prepared.groups, prepared.by_rank));
        let (scanned, mut ranking) = (prepared.scanned, prepared.ranking);
        let outcomes = outcomes(
            &scanned.documents,
            &scanned.classes,
            &ranking,
            &prepared.rank_of,
            &settled.decisions,
            self.settings.scope,
            threads,
        );
        drop((prepared.rank_of, settled.decisions));
        ranking.id_ranks = inverse(&ranking.by_id, threads);
        let best = |rank: u32| ranking.best[ranking.classes[rank as usize] as usize];
        let just_below = just_below.of_documents(best);
        let clusters = ClusterTable::new(&ranking.by_id, &ranking.id_ranks, &outcomes, threads);
        Ok(DedupDecisions {
            counts,
            comparisons: settled.comparisons,
            decision_counts: DecisionCounts {
                kept_as_pages: settled.kept_as_pages,
                ..DecisionCounts::new(&scanned.documents, &outcomes, &clusters, threads)
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
            kept_facts: prepared.kept_facts,
        })
    }

    /// Searches for kept texts just below the threshold. Returns an empty result if only copies are searched for, or nothing is below it.
    fn find_below_threshold(
        &self,
        prepared: &PreparedJob,
        decisions: &DecisionTable,
    ) -> io::Result<BelowThresholdCounts> {
        let margin = MarginBins::below(self.settings.threshold);
        if self.settings.method == Method::Exact || margin.is_empty() {
            return Ok(BelowThresholdCounts::new(margin, 0, 0));
        }
        let scanned = &prepared.scanned;
        let hashes = &scanned.classes.high_hashes;
        // New classes have the first numbers; those that a collection added come after them.
        let new = hashes.len() - scanned.stored.classes as usize;
        let search = MarginSearch {
            verifier: &self.verifier(prepared),
            rank_of: &prepared.rank_of,
            hashes,
            decisions,
            fixed: prepared.ranking.fixed,
            // For other new texts, neighbours below the threshold were not loaded from the collection.
            last_sampled: match scanned.stored.collection {
                Some(_) => last_sampled(hashes[..new].iter().copied()),
                None => u64::MAX,
            },
            finds_all: self.settings.method == Method::AllPairs,
            threads: self.limits.workers(),
            memory: prepared.budget.for_margin(),
            advance: &|| check_cancelled(self.observer),
        };
        search.run(margin)
    }

    /// Finds all pairs and spools them; pairs that are in a log are not searched again.
    pub(super) fn join(
        &self,
        prepared: &mut PreparedJob,
        logs: Option<&JobLogs>,
    ) -> Result<PairSpool, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        // If windows of groups take all the memory that is left, pairs get their part of it.
        let keys = match prepared.groups.are_on_disk() {
            true => prepared.budget.keys(),
            // Otherwise pairs get the share that keys had.
            false => self.memory().keys(),
        };
        let spool = PairSpool::new(self.folder, keys, prepared.scanned.documents.len());
        let spool = spool.map_err(&temporary)?;
        let opened = logs.map(|logs| {
            let order = prepared.order_hash(self.limits.workers());
            spool
                .restored(logs, order, prepared.rank_of.len())
                .map_err(BatchError::result(&logs.found))
        });
        let log = opened.transpose()?;
        prepared.scanned.is_resumed |= log.as_ref().is_some_and(PairLog::is_resumed);
        let documents = &prepared.scanned.documents;
        let copies = class_copies(documents, &prepared.ranking, &prepared.rank_of);
        let join = PairJoin {
            groups: &prepared.groups,
            memory: prepared.budget.for_groups().saturating_sub(keys),
            copies: &copies,
            against: documents.against as u32,
            scope: self.settings.scope,
            threads: self.limits.workers(),
            spool: &spool,
            log: log.as_ref(),
            advance: &|done| self.advance(done),
        };
        join.run(&self.verifier(prepared), JOINED_RANKS)
            .map_err(|error| match error {
                // Pairs take a part of the memory that is left.
                GroupError::TooLarge(needed) => GroupError::TooLarge(with_keys(needed)),
                GroupError::Io(error) => GroupError::Io(error),
            })
            .map_err(|error| self.without_groups(prepared, error))?;
        Ok(spool)
    }
}
