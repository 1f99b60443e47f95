//! The job behind `dedup`: writes decisions to files, each of which appears under its name only when it is complete.
//!
//! ```text
//! kept.jsonl, removed.jsonl     the records as they came in; inputs that are files are copied to kept/, removed/
//! clusters.jsonl                who was removed for whom, and why
//! pairs.jsonl                   verified pairs
//! annotations.jsonl             on request: the decision on each record, in the order of the input
//! skipped.jsonl                 what could not be read; files among it are copied to skipped/
//! report.html                   for people
//! run.json                      settings, scheme, counts, cost; written last: where it stands, the job is done
//! .lookalike/                   while the job runs: what it is, what it read, its decisions once they are made, and in new/ its results
//! ```
//!
//! Results are collected in `.lookalike/new/` and replace older ones once they are complete: see [`OutputDir::publish`].
//!
//! With [`OutputFormat::Parquet`] the lines become tables: `kept.parquet` and so on. Rows of tables whose columns have types keep
//! these types. They are written to a separate table for each source: below `kept/` and `removed/`, or `kept.parquet` if there is one source.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, BadRecord, Compression, FileTree, Inputs, OutputFormat, PROGRAM,
    STATE_FOLDER as STATE, SUMMARY_FILE as LAST, SkipKind, Source, Transfer, sync_file_system,
};
use lookalike_hamming::threads::in_parallel_with;
use xxhash_rust::xxh3::xxh3_64;

use crate::contents::{self, CONTENTS};
use crate::dedup::checkpoint::{CheckpointHeader, DecisionCheckpoint};
use crate::dedup::collection::addition::StagedAddition;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::counts::InputCounts;
use crate::dedup::decided::DedupDecisions;
use crate::dedup::job::DedupJob;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::memory_budget::expected_text;
use crate::dedup::result_lines::{write_in_pieces, write_line, write_pair};
use crate::dedup::result_writer::{
    PAIR, PAIR_WITH_DISTANCE, ResultWriter, common_compression, is_split, record_file_name,
    table_name,
};
use crate::dedup::scan::ScannedCollection;
use crate::dedup::skipped_files::SkippedFiles;
use crate::dedup::summary::{BelowThreshold, DedupSummary, skipped};
use crate::error::{BatchError, NEW};
use crate::folder_refusal::FolderRefusal;
use crate::output_dir::{IfExists, JobIdentity, JobProgress, OutputDir, OutputOptions, STAGED};
use crate::settings_error::SettingsError;
use crate::skipped::{SKIPPED, SKIPPED_FILES, SkippedLine};
use crate::spill::table_memory::max_mapped;
use crate::unfinished::{FOUND, SCANNED, save};

/// Number of clusters in a summary.
const SUMMARY_CLUSTERS: usize = 5;

/// File with the decisions, until the job ends.
const DECIDED: &str = "decided.bin";

/// Log of the comparisons, until they are complete.
const COMPARED: &str = "compared.bin";

/// Names of all results of `dedup` in its folder.
pub const DEDUP_RESULTS: [&str; 22] = [
    "kept.parquet",
    "removed.parquet",
    "clusters.parquet",
    "pairs.parquet",
    "annotations.parquet",
    "skipped.parquet",
    "kept.jsonl",
    "kept.jsonl.gz",
    "kept.jsonl.zst",
    "removed.jsonl",
    "removed.jsonl.gz",
    "removed.jsonl.zst",
    "clusters.jsonl",
    "pairs.jsonl",
    "annotations.jsonl",
    "skipped.jsonl",
    "report.html",
    LAST,
    "kept",
    "removed",
    "skipped",
    STATE,
];

impl DedupJob<'_> {
    /// Deduplicates the inputs into `folder`.
    ///
    /// # Errors
    /// [`BatchError`]. In any case, no file under its final name is incomplete, and `run.json` exists only if
    /// everything is complete.
    pub fn dedup(
        &self,
        folder: &Path,
        options: &OutputOptions,
    ) -> Result<DedupSummary, BatchError> {
        let place = OutputDir {
            folder,
            results: &DEDUP_RESULTS,
        };
        let path = place.state(DECIDED);
        let is_resumed = options.folder == IfExists::Resume && path.exists();
        // An addition is staged before the checkpoint is saved, so without a checkpoint it is staged anew.
        let interrupted = is_resumed.then(|| place.state(STAGED));
        let identity = JobIdentity {
            // Options of the output count too, because a resumed job completes results that were begun with them.
            settings: format!(
                "version={} {} output={} compress={} link={} annotate={} {}",
                env!("CARGO_PKG_VERSION"),
                self.settings.canonical(),
                options.format,
                options.compression.map_or("as-input", Compression::suffix),
                options.transfer == Transfer::Link,
                options.annotate,
                self.options.canonical()
            ),
            input: format!(
                "{}+{}{}",
                self.inputs.fingerprint(),
                self.against_sources,
                self.collection_state(interrupted.as_deref())?
            ),
        };
        // Only for its error: the value is needed at the end.
        self.settings.stated_recall()?;
        // Check everything that can be checked before the folder is touched.
        self.check()?;
        self.check_tables(options.format)?;
        if options.folder != IfExists::Resume {
            self.refuse_losing_added(&place)?;
        }
        let _lock = place.enter_with_inputs(options.folder, &identity, self.inputs)?;
        let _tables = self.open_tables();
        let old = DecisionCheckpoint::load(&path, &identity.settings, &identity.input);
        let logs = self.dedup_logs(&place, &identity);
        let (checkpoint, resumed) = match old {
            Some(checkpoint) => {
                let CheckpointHeader {
                    skipped, counts, ..
                } = &checkpoint.head;
                // The limit of losses is not part of the identity, so it may be lower than that of the interrupted job.
                self.settings.losses.check(skipped, counts.documents)?;
                (checkpoint, true)
            }
            None => self
                .decide_and_save(&place, options, identity, &path, logs.as_ref())
                .inspect_err(|error| {
                    if let Some(logs) = logs.as_ref().filter(|_| !is_recoverable(error)) {
                        logs.discard();
                    }
                    place.discard_undecided();
                })?,
        };
        let writer = ResultWriter {
            job: self,
            place: &place,
            checkpoint: &checkpoint,
            options,
        };
        let mut report = None;
        // The checkpoint has all that is in the logs. Remove them in the background, because removing large files takes the system some time.
        let discard = |_| logs.iter().for_each(JobLogs::discard);
        in_parallel_with(0..1, &discard, &mut || report = Some(writer.write()));
        let report = report.expect("it was called")?;
        self.finish(&place, options, checkpoint, resumed, report)
    }

    /// Refuses to replace the state of an interrupted job whose kept documents are in the collection: this job would find them there, and only that
    /// state lists them.
    fn refuse_losing_added(&self, place: &OutputDir<'_>) -> Result<(), BatchError> {
        let staged = StagedAddition::load(&place.state(STAGED));
        let Some((writer, staged)) = self.addition.zip(staged) else {
            return Ok(());
        };
        let progress = JobProgress::of(place.folder).map_err(BatchError::result(place.folder))?;
        match progress != Some(JobProgress::Finished) && staged.is_made(writer)? {
            true => Err(BatchError::Folder {
                path: place.folder.to_owned(),
                reason: FolderRefusal::UnlistedAddition,
            }),
            false => Ok(()),
        }
    }

    /// Returns the inputs without those that are only compared with, whose skips have no files.
    pub(super) fn new_inputs(&self) -> Inputs {
        Inputs {
            sources: self.inputs.sources[self.against_sources..].to_vec(),
            skips: self.inputs.skips.clone(),
        }
    }

    /// Returns the sources of records, except those that are only compared with, that are damaged from their first byte.
    fn unread(&self, scanned: &ScannedCollection) -> Vec<u32> {
        let skips = scanned.skips.iter();
        let damaged = skips.filter(|skip| skip.kind == SkipKind::Damaged);
        let damaged: BTreeSet<&str> = damaged.map(|skip| &*skip.name).collect();
        let is_damaged = |source: &Source| damaged.contains(&*source.name());
        let sources = self.inputs.sources.iter().enumerate();
        let unread = sources
            .skip(self.against_sources)
            .filter(|(number, source)| {
                !source.is_document() && scanned.records[*number] == 0 && is_damaged(source)
            });
        unread.map(|(number, _)| number as u32).collect()
    }

    /// Returns true if an unreadable record is a single file that can be copied. A file that changed meanwhile is not the one that was found.
    fn is_bad_file(&self, bad: &BadRecord) -> bool {
        let number = bad.source as usize;
        let source = &self.inputs.sources[number];
        number >= self.against_sources && source.is_document() && !source.is_lost()
    }

    /// Returns the sources that are copied whole, by their numbers among the new ones.
    fn unread_sources(&self, scanned: &ScannedCollection) -> Vec<u32> {
        let bad = scanned.bad.iter().filter(|bad| self.is_bad_file(bad));
        let sources = bad.map(|bad| bad.source).chain(self.unread(scanned));
        let against = self.against_sources as u32;
        sources.map(|source| source - against).collect()
    }

    fn write_skipped(
        &self,
        out: &mut AtomicFile,
        decided: &DedupDecisions,
        copies: &SkippedFiles<'_>,
    ) -> io::Result<()> {
        let against = self.against_sources as u32;
        let of_source = |source: u32| copies.of_source(source - against);
        for bad in &decided.scanned.bad {
            let is_file = self.is_bad_file(bad).then_some(bad.source);
            let line = SkippedLine::of_record(self.inputs, bad);
            write_line(out, &line.with_file(is_file.and_then(of_source)))?;
        }
        // One path for each skip with a file, in the same order.
        let mut files = copies.skipped_copies();
        for skip in &self.inputs.skips {
            let file = skip.file.as_ref().and_then(|_| files.next());
            let line = SkippedLine::of_part(skip).with_file(file.flatten());
            write_line(out, &line)?;
        }
        for lost in &copies.lost {
            write_line(out, &SkippedLine::of_part(lost))?;
        }
        // A part that was skipped while a source was read has only the name of the source.
        let named = |number: u32| (self.inputs.sources[number as usize].name(), number);
        let unread = self.unread(&decided.scanned).into_iter().map(named);
        let unread: BTreeMap<_, _> = unread.collect();
        for skip in &decided.scanned.skips {
            let number = unread.get(&*skip.name);
            let file = number.and_then(|number| of_source(*number));
            write_line(out, &SkippedLine::of_part(skip).with_file(file))?;
        }
        Ok(())
    }

    /// Refuses tables whose rows Parquet cannot store with their types.
    fn check_tables(&self, format: OutputFormat) -> Result<(), BatchError> {
        for (number, source) in self
            .inputs
            .sources
            .iter()
            .enumerate()
            .skip(self.against_sources)
        {
            if !is_split(format, source) {
                continue;
            }
            let reason = self.inputs.unwritable_table(number as u32, &self.options)?;
            if let Some(reason) = reason {
                let source_name = source.name().into_owned();
                return Err(SettingsError::NotParquet {
                    source_name,
                    reason,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Returns the places of the kept documents, as paths within the folder of the results.
    fn kept_in(&self, options: &OutputOptions) -> Vec<String> {
        let sources = &self.inputs.sources[self.against_sources..];
        let format = options.format;
        let is_lone_table = sources.len() == 1 && is_split(format, &sources[0]);
        let is_file = |source: &Source| source.is_document() || is_split(format, source);
        let mut names = Vec::new();
        // Without any source, `kept.jsonl` is written too, and empty: see `has_lines`.
        if is_lone_table || !sources.iter().all(is_file) || sources.is_empty() {
            let compression = options
                .compression
                .unwrap_or_else(|| common_compression(sources));
            names.push(record_file_name("kept", format, compression));
        }
        if sources.iter().any(is_file) && !is_lone_table {
            names.push("kept".to_owned());
        }
        names
    }

    /// Returns the tables of the kept and the removed rows of each source that gets separate tables.
    fn tables(&self, folder: &Path, format: OutputFormat) -> Vec<Option<[PathBuf; 2]>> {
        let inputs = self.new_inputs();
        let tree = FileTree::new(&inputs);
        let tables = |(number, source): (u32, &Source)| {
            is_split(format, source).then(|| {
                let path = |name| folder.join(table_name(name, &inputs, &tree, number));
                ["kept", "removed"].map(path)
            })
        };
        (0..).zip(&inputs.sources).map(tables).collect()
    }

    /// Decides, writes the results that need texts or feature sets, and saves the decisions.
    fn decide_and_save(
        &self,
        place: &OutputDir<'_>,
        options: &OutputOptions,
        identity: JobIdentity,
        path: &Path,
        logs: Option<&JobLogs>,
    ) -> Result<(DecisionCheckpoint, bool), BatchError> {
        let format = options.format;
        let decided = self.decide_logged(logs)?;
        let is_resumed = decided.scanned.is_resumed;
        let new = self.new_inputs();
        let sources = self.unread_sources(&decided.scanned);
        let folder = place.path(SKIPPED_FILES);
        // First, because `skipped.jsonl` names the copies.
        let copies = SkippedFiles::copy(&new, sources, folder, options.transfer)?;
        // A resumed job takes them over as they are.
        sync_copies(place)?;
        let pair = match decided.fingerprints {
            true => PAIR_WITH_DISTANCE,
            false => PAIR,
        };
        place.write_lines("pairs", format, pair, &mut |out| write_pairs(out, &decided))?;
        place.write_lines("skipped", format, SKIPPED, &mut |out| {
            self.write_skipped(out, &decided, &copies)
        })?;
        // Here, because a resumed job has no texts from which to make the segment.
        if let Some(staged) = self.stage_kept(&decided)? {
            let path = place.state(STAGED);
            staged.save(&path).map_err(BatchError::result(&path))?;
        }
        let checkpoint = self.checkpoint(decided, identity, &copies);
        let head = &checkpoint.head;
        let losses = self.settings.losses;
        // Again, because files that were gone before they could be copied are losses too.
        losses.check(&head.skipped, head.counts.documents)?;
        // The checkpoint comes last: if it exists, everything that only this job could write has been written.
        contents::save(&place.state(CONTENTS), self.inputs)?;
        checkpoint
            .save(path, self.limits.workers())
            .map_err(BatchError::result(path))?;
        Ok((checkpoint, is_resumed))
    }

    /// Returns the logs of reading and comparing, or `None` if there is too little to read for them to be worthwhile.
    fn dedup_logs(&self, place: &OutputDir<'_>, identity: &JobIdentity) -> Option<JobLogs> {
        let job = format!("{}\n{}", identity.settings, identity.input);
        let logs = self.job_logs(place.state(SCANNED), &job);
        self.are_logs_worthwhile(&logs).then_some(logs)
    }

    /// Returns the logs of a job that is identified by the text `job`.
    fn job_logs(&self, scanned: PathBuf, job: &str) -> JobLogs {
        let threads = self.limits.workers() as u64;
        JobLogs {
            compared: scanned.with_file_name(COMPARED),
            found: scanned.with_file_name(FOUND),
            scanned,
            job: xxh3_64(job.as_bytes()),
            description: String::new(),
            scanned_bytes: self.checkpoint_bytes.saturating_mul(threads),
            compared_bytes: self.checkpoint_bytes,
        }
    }

    /// Returns the logs of a job, with a description that tells a later job how it differs, and what is described.
    pub(super) fn described_logs(&self, scanned: PathBuf, input: String) -> (JobLogs, JobIdentity) {
        let identity = JobIdentity {
            settings: format!(
                "version={} {} {}",
                env!("CARGO_PKG_VERSION"),
                self.settings.canonical(),
                self.options.canonical()
            ),
            input,
        };
        let description = serde_json::to_string(&identity).expect("texts are JSON");
        let logs = JobLogs {
            description: description.clone(),
            ..self.job_logs(scanned, &description)
        };
        (logs, identity)
    }

    /// Returns true if there is enough to read for logs.
    pub(super) fn are_logs_worthwhile(&self, logs: &JobLogs) -> bool {
        // Logs that an earlier run left are always continued, even if this number of threads would not write them.
        let is_there = || logs.scanned.exists() || logs.compared.exists();
        expected_text(self.inputs) > logs.scanned_bytes || is_there()
    }

    fn checkpoint(
        &self,
        decided: DedupDecisions,
        identity: JobIdentity,
        copies: &SkippedFiles<'_>,
    ) -> DecisionCheckpoint {
        let scanned = decided.scanned;
        let head = CheckpointHeader {
            settings: identity.settings,
            input: identity.input,
            counts: decided.counts,
            decisions: decided.decision_counts,
            comparisons: decided.comparisons,
            just_below: decided.just_below,
            skipped: skipped(self.inputs, &scanned, &copies.lost),
            copied: copies.copied,
        };
        let bad = scanned
            .bad
            .iter()
            .map(|bad| [u64::from(bad.source), bad.number])
            .collect();
        let mut documents = scanned.documents;
        // Results need no classes, and writing them needs the memory.
        documents.drop_classes();
        DecisionCheckpoint {
            head,
            documents,
            by_id: decided.ranking.by_id,
            outcomes: decided.outcomes,
            bad,
            records: scanned.records,
        }
    }

    fn finish(
        &self,
        place: &OutputDir<'_>,
        options: &OutputOptions,
        checkpoint: DecisionCheckpoint,
        resumed: bool,
        report: crate::report::ReportData,
    ) -> Result<DedupSummary, BatchError> {
        let settings = &self.settings;
        let below_threshold = checkpoint.below_threshold(settings.threshold);
        let head = checkpoint.head;
        let has_fingerprints = settings.method.has_fingerprints();
        let mut largest = report.largest.clone();
        largest.truncate(SUMMARY_CLUSTERS);
        let mut summary = DedupSummary {
            program: PROGRAM,
            version: env!("CARGO_PKG_VERSION"),
            command: options.command.clone(),
            method: settings.method.to_string(),
            threshold: settings.threshold,
            distance: has_fingerprints.then_some(settings.distance),
            distance_for: (settings.method == crate::settings::Method::Henzinger)
                .then_some(settings.distance_for),
            scope: settings.scope,
            category: self.options.category.as_ref().map(ToString::to_string),
            lengths: settings.lengths,
            and: settings.tests.iter().map(ToString::to_string).collect(),
            scheme: settings.scheme.to_string(),
            scheme_id: settings.scheme.id().to_string(),
            keep: settings.keep.to_string(),
            max_document: self.options.max_document_bytes,
            verified: settings.verifies(),
            recall: self.settings.stated_recall()?,
            counts: InputCounts {
                tables_on_disk: max_mapped(self.folder),
                ..head.counts
            },
            decisions: head.decisions,
            comparisons: head.comparisons,
            written: report.written,
            below_threshold,
            skipped: head.skipped,
            kept_in: self.kept_in(options),
            results: Vec::new(),
            tables: self.tables(place.folder, options.format),
            largest,
            limits: self.limits.clone(),
            resumed,
            added: self.added(&place.state(STAGED))?,
            measured: self.observer.measured(),
        };
        let results = place.written()?;
        let page = crate::report::render(&summary, &report, &results)?;
        save(&place.path("report.html"), page.as_bytes())?;
        // The summary must not reach the disk before the files that it describes.
        sync_copies(place)?;
        // Before `publish`, which removes the checkpoint.
        if let Some(path) = self.decisions {
            hard_link_or_copy(&place.state(DECIDED), path).map_err(BatchError::result(path))?;
        }
        // Loaded before `publish`, which removes it.
        let staged = self.staged(&place.state(STAGED))?;
        let commit = || match &staged {
            Some((staged, writer)) => staged.commit(writer).map_err(BatchError::from),
            None => Ok(()),
        };
        // Before `run.json`, which reports the addition: once that exists, the next command publishes it, whatever happened to the collection.
        // If this process ends in between, `--resume` finds the addition made.
        if !self.adds_last {
            commit()?;
        }
        // Again, because the report is one of them.
        summary.results = place.written()?;
        place.write_summary(&summary)?;
        place.publish()?;
        if self.adds_last {
            commit()?;
        }
        Ok(summary)
    }
}

/// Returns true if a job that failed with this error may be resumed after a remedy: more room on a disk or in memory, or the original inputs.
pub(super) fn is_recoverable(error: &BatchError) -> bool {
    matches!(
        error,
        BatchError::File { .. }
            | BatchError::Temporary { .. }
            | BatchError::Result { .. }
            | BatchError::Memory { .. }
            | BatchError::LongDocuments { .. }
            | BatchError::ResumedInput { .. }
            | BatchError::Collection(CollectionError::Unwritable { .. })
            | BatchError::Cancelled
    )
}

/// Syncs input files that were copied to the results.
fn sync_copies(place: &OutputDir<'_>) -> Result<(), BatchError> {
    match has_copies(&place.state(NEW)) {
        true => sync_file_system(place.folder).map_err(BatchError::result(place.folder)),
        false => Ok(()),
    }
}

/// Returns true if input files were copied to a folder of results.
fn has_copies(results: &Path) -> bool {
    let mut folders = ["kept", "removed", SKIPPED_FILES].iter();
    folders.any(|name| results.join(name).is_dir())
}

/// Gives a file a second name, or copies it if that is impossible.
fn hard_link_or_copy(file: &Path, path: &Path) -> io::Result<()> {
    // A job that was killed after this may have made the link already, and copying onto it would empty the file.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::hard_link(file, path).or_else(|_| std::fs::copy(file, path).map(drop))
}

impl DecisionCheckpoint {
    /// Returns the pairs just below the threshold, by ids.
    fn below_threshold(&self, threshold: f64) -> BelowThreshold {
        BelowThreshold::new(&self.head.just_below, threshold, &self.documents)
    }
}

fn write_pairs(out: &mut AtomicFile, decided: &DedupDecisions) -> io::Result<()> {
    let documents = &decided.scanned.documents;
    let classes = decided.fingerprints.then_some(&decided.scanned.classes);
    let write = |out: &mut dyn Write, pair| write_pair(out, documents, classes, None, pair);
    if decided.pairs.is_some() {
        return decided.for_each_pair(|pair| write(out, pair));
    }
    let pairs = decided.deciding_pairs();
    let line = |out: &mut dyn Write, at: usize| write(out, pairs[at].1);
    write_in_pieces(out, pairs.len(), decided.threads, |_| 1, line)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lookalike_corpus::InputOptions;

    use super::*;

    #[test]
    fn each_damaged_file_was_searched_for_among_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in");
        fs::create_dir(&input).unwrap();
        let broken: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff no deflate";
        // Of the second file, a record was read, so it is not copied.
        let cut: &[u8] = br#"[{"id":"b","text":"a rose"},"#;
        for (name, bytes) in [
            ("a.jsonl.gz", broken),
            ("b.json", cut),
            ("c.jsonl.gz", broken),
        ] {
            fs::write(input.join(name), bytes).unwrap();
        }
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[input.into()], &options, folder.path()).unwrap();
        let out = folder.path().join("out");
        let job = DedupJob::new(&inputs, folder.path());
        job.dedup(&out, &OutputOptions::default()).unwrap();
        let lines = fs::read_to_string(out.join("skipped.jsonl")).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<serde_json::Value> = lines.collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (line, name) in lines.iter().zip(["a.jsonl.gz", "b.json", "c.jsonl.gz"]) {
            assert!(line["source"].as_str().unwrap().ends_with(name), "{line}");
            match name {
                "b.json" => assert_eq!(line.get("file"), None),
                _ => assert_eq!(
                    fs::read(out.join(line["file"].as_str().unwrap())).unwrap(),
                    broken
                ),
            }
        }
    }

    #[test]
    fn a_full_disk_under_the_collection_lost_what_was_read() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = CollectionError::unwritable(Path::new("seen"))(full());
        assert!(is_recoverable(&error.into()));
        let error = CollectionError::damaged(Path::new("seen"), "no checksum");
        assert!(!is_recoverable(&error.into()));
    }

    #[test]
    fn files_that_were_removed_were_not_synced_if_none_was_kept() {
        for name in ["kept", "removed", "skipped"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("kept.jsonl"), "").unwrap();
            assert!(!has_copies(folder.path()));
            std::fs::create_dir(folder.path().join(name)).unwrap();
            assert!(has_copies(folder.path()), "{name}");
        }
    }

    #[test]
    fn decisions_that_are_left_a_second_time_are_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let (decided, left) = (folder.path().join("decided"), folder.path().join("left"));
        std::fs::write(&decided, "all of them").unwrap();
        for _ in 0..2 {
            hard_link_or_copy(&decided, &left).unwrap();
            assert_eq!(std::fs::read(&decided).unwrap(), b"all of them");
            assert_eq!(std::fs::read(&left).unwrap(), b"all of them");
        }
    }
}
