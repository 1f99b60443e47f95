//! Runs the job: reads and orders documents, then groups, counts and writes one chunking after another.

use std::io::{self, Write};
use std::path::Path;

use lookalike_corpus::{InputOptions, Inputs};
use serde::Serialize;

use super::checkpoint::OverlapCheckpoint;
use super::coarse::{CoarseEngine, CoarseFigures};
use super::collection::{OverlapDocuments, UnitView};
use super::count::{self, SharedLists};
use super::defer::Deferral;
use super::plan::{CountPlan, EngineChoice};
use super::postings::{CountResources, Postings, collect, steps};
use super::read::{
    ChunkSets, DocumentSites, OverlapBudget, OverlapInput, ReadPlan, ResidentLists, read,
};
use super::row_log::RowLog;
use super::rows::RowWriter;
use super::server_name::ServerName;
use super::settings::{OverlapSettings, OverlapUnit};
use super::sort::SortEngine;
use super::{RowSink, SharedCount};
use crate::contents;
use crate::dedup::counts::InputCounts;
use crate::document_memory::{DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::{BatchError, FieldSetting, MissingField, OUTPUT};
use crate::fields::{FieldTally, LinkedRecords, first_names};
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};
use crate::overlap::settings_error::OverlapSettingsError;
use crate::record_scan::RecordScan;
use crate::settings::JobLimits;
use crate::skipped::{SkippedLine, SkippedRow};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{self, TableShare};

const MIB: u64 = 1 << 20;

lookalike::job! {
    /// An overlap job with its inputs, settings and limits.
    #[derive(Debug)]
    pub struct OverlapJob<'a> {
        /// Creates a job with default settings and limits. Its temporary files go to `folder`.
        new(pub(super) inputs: &'a Inputs, pub(super) folder: &'a Path);
        /// Sets the settings that the result depends on.
        pub(super) settings: OverlapSettings,
        /// Sets how much memory and how many threads the job may use. The result does not depend on them.
        pub(super) limits: JobLimits,
        /// Sets how sources are read: the options that were passed to [`Inputs::discover`].
        pub(super) options: InputOptions,
        /// Sets the observer of progress.
        pub(super) observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Summary of one chunking.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ChunkingSummary {
    /// Name of the chunking.
    pub chunking: String,
    /// Minimum number of shared chunks.
    pub min_shared: u32,
    /// Number of units: documents of different text, or servers.
    pub units: u64,
    /// Distinct chunks of all units; a chunk counts once for each unit that has it.
    pub chunk_records: u64,
    /// Number of distinct chunks.
    pub distinct_chunks: u64,
    /// Number of chunks that at least two units share.
    pub shared_chunks: u64,
    /// Expected number of pairs of different chunks with the same fingerprint.
    pub expected_collisions: f64,
    /// Name of the engine that counted.
    pub engine: &'static str,
    /// Reason why it was chosen.
    pub why: String,
    /// Number of chunks so common that they were deferred and added exactly later.
    pub common_chunks: u64,
    /// Each of these chunks is in more units than this.
    pub common_above: u32,
    /// Pairs of units, one for each chunk that they share, that did not need counting because of deferral.
    pub pairs_spared: u64,
    /// Pairs of units, one for each chunk that they share, that were counted.
    pub pairs_counted: u64,
    /// Number of ranges of units counted one after another: 1 if there is enough memory.
    pub passes: u64,
    /// Figures of coarse counting, if that was the engine.
    pub coarse: Option<CoarseFigures>,
    /// Units whose rows an interrupted job had already counted.
    pub units_resumed: u64,
    /// Number of rows written.
    pub rows: u64,
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct OverlapSummary {
    /// Counts of the input.
    pub counts: InputCounts,
    /// Number of texts that two or more documents have. `counts.repeated_texts` counts all but one document of each.
    pub shared_texts: u64,
    /// Documents among `counts.repeated_texts` with the same URL as another of that text: the same page, read again.
    pub pages_again: u64,
    /// With [`OverlapJob::copies_of`]: overlapping documents with the same URL, which get no row.
    pub same_page: u64,
    /// Number of servers; 0 if servers were not requested.
    pub servers: u64,
    /// Number of documents without a server.
    pub without_server: u64,
    /// Summary of each chunking.
    pub chunkings: Vec<ChunkingSummary>,
    /// Parts of the input that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// One chunking to count.
pub(crate) struct ChunkingCount<'a> {
    /// Its number among the chunkings of the settings.
    pub(crate) number: usize,
    pub(crate) by: OverlapUnit,
    /// Path that the rows are written to, for messages.
    pub(crate) path: &'a Path,
    /// File that stores rows as they are counted, for a later run. Rows of an earlier run are used if its reading was reused.
    pub(crate) log: Option<&'a Path>,
}

/// Everything that is known before chunks are counted.
pub(crate) struct PreparedOverlap {
    pub(crate) collection: OverlapDocuments,
    pub(crate) chunks: Vec<ChunkSets>,
    pub(crate) summary: OverlapSummary,
    /// Everything that could not be read.
    pub(crate) skipped: Vec<SkippedLine>,
    /// Bytes left for grouping and counting.
    pub(crate) left: u64,
    /// Bytes of lists that stay in memory whatever the limit is.
    lists: ResidentLists,
    budget: OverlapBudget,
    /// True if an interrupted job had already read the input.
    pub(crate) resumed: bool,
    /// Held while the job has tables.
    _tables: TableShare,
}

impl PreparedOverlap {
    /// Fails if what must be in memory at once, instead of grouping and counting, does not fit.
    pub(super) fn ensure_room(&self, what: &'static str, needed: u64) -> Result<(), BatchError> {
        match needed <= self.left {
            true => Ok(()),
            // Chunk sets may take up to half of what a higher limit leaves.
            false => Err(BatchError::Memory {
                what,
                needed,
                left: self.left,
                least: self.budget.least(self.lists, 2 * needed),
            }),
        }
    }
}

impl<'a> OverlapJob<'a> {
    /// Writes the rows of the single chunking in the settings.
    ///
    /// # Errors
    /// [`BatchError`] if the settings are invalid, if input cannot be read or output cannot be written, or if there is not enough memory.
    pub fn write_rows(&self, out: &mut dyn Write) -> Result<OverlapSummary, BatchError> {
        // Check the settings first: a chunking given twice is wrong for any output.
        self.settings.check()?;
        if self.settings.chunkings.len() > 1 {
            return Err(OverlapSettingsError::ChunkingsOfRows.into());
        }
        // Rows of documents need neither URLs nor servers.
        let mut prepared = self.prepare(self.settings.by == OverlapUnit::Server, None)?;
        let count = ChunkingCount {
            number: 0,
            by: self.settings.by,
            path: Path::new(OUTPUT),
            log: None,
        };
        let (summary, _) = self.chunking(&prepared, &count, out, &mut |_, _| ())?;
        prepared.summary.chunkings.push(summary);
        Ok(self.finished(prepared.summary))
    }

    /// Completes the summary of a finished job.
    pub(super) fn finished(&self, mut summary: OverlapSummary) -> OverlapSummary {
        summary.counts.tables_on_disk = table_memory::max_mapped(self.folder);
        summary
    }

    /// Reads and orders everything.
    ///
    /// Loads the reading from `kept` if it is there, and otherwise reads and saves it there.
    pub(crate) fn prepare(
        &self,
        sites: bool,
        kept: Option<OverlapCheckpoint<'_>>,
    ) -> Result<PreparedOverlap, BatchError> {
        self.settings.check()?;
        let chunks = DocumentUse::Chunks(&self.settings);
        ensure_documents_fit(&self.limits, chunks, self.inputs, &self.options)?;
        let fixed = fixed_bytes(&self.limits, chunks, self.inputs, &self.options);
        let budget = OverlapBudget {
            all: self.limits.memory.saturating_sub(fixed),
            fixed,
        };
        let tables = TableShare::open(budget.table_share(), self.folder);
        self.observer
            .stage(JobStage::Scan, self.inputs.total_bytes());
        let plan = ReadPlan {
            scan: RecordScan {
                inputs: self.inputs,
                options: self.options.clone(),
                limits: self.limits.clone(),
                losses: self.settings.losses,
                observer: self.observer,
            },
            settings: &self.settings,
            sites,
            budget,
            folder: self.folder,
        };
        let old = kept.and_then(|kept| kept.load(&plan));
        let resumed = old.is_some();
        let mut read = match old {
            Some(old) => old,
            None => read(&plan)?,
        };
        let documents = read.documents.len() as u64;
        // Check before saving: a job that is refused must leave nothing to resume from.
        self.settings.losses.check(&read.facts.skipped, documents)?;
        let named = FieldTally {
            linked: LinkedRecords::default(),
            ..read.facts.tally.fields
        };
        named.refuse_wrong_types(&read.facts.skipped)?;
        named.check(self.inputs, &self.options)?;
        named.refuse_no_text(self.inputs, &self.options)?;
        self.refuse_absent_sites(sites, documents, &read.sites)?;
        if let Some(kept) = kept.filter(|_| !resumed) {
            // Save the checksums first: without them a resumed job could not check what it reuses.
            contents::save(kept.contents, self.inputs)?;
            kept.save(&read).map_err(BatchError::result(kept.path))?;
        }
        self.observer.stage(JobStage::Rank, 0);
        // Counted here, because `OverlapDocuments` takes the classes.
        let distinct = read.classes.len() as u64;
        let lines = read.facts.lines.iter().map(SkippedLine::text_bytes);
        let lists = read.lists(lines.sum());
        let collection =
            OverlapDocuments::new(&mut read, self.settings.repeated_ids, self.limits.workers())?;
        let summary = self.summary(&read, &collection, distinct);
        // Tables stay until the end; chunks, grouping and counting share the rest of the memory.
        let beside_tables = budget.remaining_after(collection.bytes(), lists)?;
        read.shrink(beside_tables / 2, self.folder)?;
        let resident: u64 = read.chunks.iter().map(|chunks| chunks.sets.resident).sum();
        // Sets beyond the budget are on disk and take nothing.
        let left = beside_tables.saturating_sub(resident);
        Ok(PreparedOverlap {
            collection,
            chunks: read.chunks,
            summary,
            skipped: read.facts.lines,
            left: left.max(OverlapBudget::MIN_MEMORY),
            lists,
            budget,
            resumed,
            _tables: tables,
        })
    }

    /// Fails if servers are compared, or named by a rule of the user, but no document has one, and if an address field was named that no record has.
    fn refuse_absent_sites(
        &self,
        sites: bool,
        records: u64,
        found: &DocumentSites,
    ) -> Result<(), BatchError> {
        let settings = &self.settings;
        // The default rule may find no server.
        let needs_servers =
            settings.by == OverlapUnit::Server || sites && settings.server != ServerName::Url;
        if needs_servers && found.names.is_empty() && records > 0 {
            return Err(OverlapSettingsError::NoServer(settings.server.clone()).into());
        }
        let field = settings.address.to_string();
        let is_absent = !found.names.is_empty() && found.addresses.is_empty();
        // The default field, that of web archives, may be absent, but one that the user named may not.
        match sites && is_absent && field != OverlapSettings::ADDRESS {
            true => Err(BatchError::NoField {
                setting: FieldSetting::Address,
                value: field.clone(),
                field: MissingField::Named(field),
                records,
                fields: first_names(self.inputs, &self.options),
            }),
            false => Ok(()),
        }
    }

    fn summary(
        &self,
        read: &OverlapInput,
        collection: &OverlapDocuments,
        distinct: u64,
    ) -> OverlapSummary {
        let tally = &read.facts.tally;
        let servers = &collection.servers;
        let chunks = read
            .chunks
            .iter()
            .map(|chunks| chunks.sets.bytes_on_disk())
            .sum();
        OverlapSummary {
            counts: InputCounts {
                documents: collection.documents.len() as u64,
                distinct_texts: distinct,
                repeated_texts: collection.documents.repeated_texts(distinct),
                empty: tally.empty,
                missing_text: tally.fields.missing(),
                too_long: tally.fields.too_long,
                characters_replaced: tally.replaced,
                ids_generated: tally.generated_ids,
                ids_repeated: collection.repeated_ids,
                unreadable: read.facts.unreadable,
                input_bytes: self.inputs.total_bytes(),
                text_bytes: tally.text_bytes,
                temporary_bytes: chunks,
                boilerplate: tally.removed.counts(&self.options),
                ..InputCounts::default()
            },
            shared_texts: collection.exact.repeated().count() as u64,
            pages_again: collection.repeated_pages(),
            same_page: 0,
            servers: servers.names.len() as u64,
            without_server: servers.of.iter().filter(|server| server.is_none()).count() as u64,
            chunkings: Vec::new(),
            skipped: read.facts.skipped.clone(),
        }
    }

    /// Groups, counts and writes one chunking. `hear` gets each row of units with the sizes of all units. Returns the summary and these sizes.
    pub(crate) fn chunking(
        &self,
        prepared: &PreparedOverlap,
        what: &ChunkingCount<'_>,
        out: &mut dyn Write,
        hear: &mut dyn FnMut(SharedCount, &[u32]),
    ) -> Result<(ChunkingSummary, TableColumn<u32>), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let min_shared = self.settings.least(what.number);
        let view = UnitView {
            collection: &prepared.collection,
            by: what.by,
        };
        let (postings, deferral) = self
            .group(prepared, view, what.number)
            .map_err(&temporary)?;
        let left = prepared
            .left
            .saturating_sub(postings.lists.resident_bytes())
            .max(MIB);
        let needed = count::needed(&postings, &deferral, self.limits.workers());
        // The rows get the last quarter: if equal texts are listed, they are sorted while engines count.
        let plan = CountPlan::new(self.settings.engine, &postings, needed, left * 3 / 4);
        let chunking = self.settings.chunkings[what.number].to_string();
        let writer = RowWriter {
            view,
            chunking: &chunking,
            sizes: &postings.sizes,
            min_shared,
            settings: &self.settings,
            // An engine takes at most three quarters, and rows are sorted while it counts.
            budget: left / 4,
            folder: self.folder,
            is_alone: self.limits.workers() == 1,
        };
        let sorted = SortEngine {
            postings: &postings,
            deferral: &deferral,
            min_shared,
            budget: left / 2,
            folder: self.folder,
        };
        // Only the sort engine does without deferral, where the common chunks of all units take too much memory.
        let defers = plan.way != EngineChoice::Sort || sorted.defers();
        let (rows, (resumed, coarse)) = writer.write(
            out,
            what.path,
            &mut |row| hear(row, &postings.sizes),
            self.observer,
            |emit| {
                let count =
                    |from, emit: &mut RowSink<'_>| self.count(&sorted, plan.way, from, left, emit);
                match what.log {
                    None => Ok((0, count(0, emit)?)),
                    Some(path) => logged(path, prepared.resumed, view.units(), emit, count),
                }
            },
        )?;
        let summary = ChunkingSummary {
            min_shared,
            units: view.units() as u64,
            chunk_records: postings.records,
            distinct_chunks: postings.distinct,
            shared_chunks: postings.histogram.values().sum(),
            expected_collisions: self.settings.bits.expected_collisions(postings.distinct),
            engine: plan.way.name(),
            why: plan.why,
            // The deferral was prepared in any case; without its use nothing was deferred or spared.
            common_chunks: match defers {
                true => deferral.common.len() as u64,
                false => 0,
            },
            common_above: match defers && !deferral.is_empty() {
                true => deferral.cut,
                false => 0,
            },
            pairs_spared: if defers { deferral.spared } else { 0 },
            pairs_counted: deferral.pairs + if defers { 0 } else { deferral.spared },
            passes: coarse.as_ref().map_or(1, |coarse| coarse.ranges),
            coarse,
            units_resumed: resumed.into(),
            rows,
            chunking,
        };
        Ok((summary, postings.sizes))
    }

    /// Maps chunks to the units that share them, and finds the common ones.
    fn group(
        &self,
        prepared: &PreparedOverlap,
        view: UnitView<'_>,
        number: usize,
    ) -> io::Result<(Postings, Deferral)> {
        let chunks = &prepared.chunks[number];
        self.observer.stage(JobStage::Group, steps(chunks));
        // The thirds exist at the same time while parts are grouped. The eighth below is for the remainders of common chunks, beside the lists.
        let means = CountResources {
            advance: &|done| self.advance(done),
            threads: self.limits.workers(),
            keys: prepared.left / 3,
            lists: prepared.left / 3,
            parts: prepared.left / 3,
            folder: self.folder,
        };
        let postings = collect(chunks, &view.placement(), view.units(), &means)?;
        let min_shared = self.settings.least(number);
        let deferral = Deferral::new(&postings, min_shared, prepared.left / 8, self.folder)?;
        Ok((postings, deferral))
    }

    /// Reports progress to the observer. Fails if it has cancelled the job, or if tables could not be moved to disk.
    pub(super) fn advance(&self, done: u64) -> io::Result<()> {
        self.observer.progress(done);
        check_cancelled(self.observer)?;
        table_memory::check(self.folder)
    }

    /// Counts pairs whose first unit is `from` or later. Returns the figures of coarse counting, if that was the engine.
    fn count(
        &self,
        sorted: &SortEngine<'_>,
        way: EngineChoice,
        from: u32,
        left: u64,
        emit: &mut RowSink<'_>,
    ) -> Result<Option<CoarseFigures>, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let (postings, deferral) = (sorted.postings, sorted.deferral);
        let min_shared = sorted.min_shared;
        let total = match way {
            // The unit of progress differs: sorting walks lists, the other engines walk units.
            EngineChoice::Sort => postings.histogram.values().sum(),
            EngineChoice::InMemory | EngineChoice::Coarse => postings.sizes.len() as u64,
        };
        self.observer.stage(JobStage::Compare, total);
        let done = |units| self.advance(units).map_err(&temporary);
        match way {
            EngineChoice::Sort => sorted.rows(from, emit, &|lists| self.advance(lists))?,
            EngineChoice::InMemory => {
                let index = SharedLists::new(postings, deferral, min_shared).map_err(&temporary)?;
                index.rows(from, self.limits.workers(), emit, &done)?;
            }
            EngineChoice::Coarse => {
                let coarse = CoarseEngine {
                    postings,
                    deferral,
                    min_shared,
                    budget: left / 2,
                };
                return coarse.rows(from, emit, &temporary, &done).map(Some);
            }
        }
        Ok(None)
    }
}

/// Emits the rows of an earlier run first, then those that `count` makes from there on, which are logged for a later run. Returns the unit from which
/// on it counted, and its result.
fn logged<T>(
    path: &Path,
    is_believed: bool,
    units: usize,
    emit: &mut RowSink<'_>,
    count: impl FnOnce(u32, &mut RowSink<'_>) -> Result<T, BatchError>,
) -> Result<(u32, T), BatchError> {
    let failed = BatchError::result(path);
    let mut refused = None;
    let log = RowLog::open(path, units as u32, is_believed, |row| {
        emit(row).map_err(|error| {
            refused = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    let mut log = log.map_err(|error| refused.unwrap_or_else(|| failed(error)))?;
    let from = log.from;
    let counted = count(from, &mut |row| {
        // Every run writes its output anew, so the log alone decides what need not be counted again.
        log.push(row).map_err(&failed)?;
        emit(row)
    })?;
    log.finish().map_err(&failed)?;
    Ok((from, counted))
}
