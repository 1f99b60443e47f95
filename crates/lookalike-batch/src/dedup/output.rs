//! `dedup`: decisions to files, each of which appears under its name only when it is whole.
//!
//! ```text
//! kept.jsonl, removed.jsonl     the records as they came in; inputs that are files are copied to kept/, removed/
//! clusters.jsonl                who was removed for whom, and why
//! pairs.jsonl                   verified pairs
//! skipped.jsonl                 what could not be read; files among it are copied to skipped/
//! report.html                   for people
//! run.json                      settings, scheme, counts, cost; written last: where it stands, the job is done
//! .lookalike/                   while the job runs: what it is, its decisions once they are made, and in new/ its results
//! ```
//!
//! Results are gathered in `.lookalike/new/` and take the places of older ones when all of them are there: see [`Workplace::publish`].
//!
//! With [`OutputFormat::Parquet`] the lines become tables: `kept.parquet` and so on. Rows of tables whose columns have types keep
//! them, in a table of their own for each source: below `kept/` and `removed/`, or, where there is one source, `kept.parquet`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, Compression, FileTree, Inputs, OutputFormat, PROGRAM, RawRecord, ReadError,
    RecordPart, STATE_FOLDER as STATE, SUMMARY_FILE as LAST, SkipKind, Source, TableRow, Transfer,
    holds_results, raw_records, raw_records_beside_tables, remove_leftovers, sync_directory,
    transfer_file, uninterrupted,
};
use serde::{Deserialize, Serialize};

use crate::contents::{self, CONTENTS};
use crate::dedup::checkpoint::{Head, Verdicts};
use crate::dedup::decision::{Clusters, Outcome};
use crate::dedup::job::{Decided, Job};
use crate::dedup::just_below::{ClosePair, JustBelow, Margin};
use crate::dedup::pairs::DocumentPair;
use crate::dedup::report_examples::Examples;
use crate::dedup::result_lines::{write_cluster, write_line, write_pair};
use crate::dedup::scan::Scanned;
use crate::dedup::summary::{
    BelowPair, BelowThreshold, Counts, Decisions, SkippedRow, WrittenBytes, skipped,
};
use crate::error::BatchError;
use crate::observer::{Measured, Observer, Stage};
use crate::settings::{Limits, Order};
use crate::skipped::{SKIPPED, SkippedLine};
use crate::spill::arrange::Arranger;

/// What becomes of results that are already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// Refuse a folder with results in it.
    #[default]
    New,
    /// Go on from what an interrupted job decided or read; start when there is nothing of that.
    Resume,
    /// Start, and replace the results that are there when the new ones are whole.
    Overwrite,
}

/// How far a job in a folder has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is at work, or ended before there was anything to go on from: [`Folder::Resume`] starts from the beginning.
    Begun,
    /// The same, but what it decided, or read, is kept: [`Folder::Resume`] goes on from there.
    Resumable,
    /// All its results are there.
    Finished,
}

impl Progress {
    /// `None` where no job has begun. Takes a few looks at the folder.
    pub fn of(folder: &Path) -> Option<Progress> {
        let state = folder.join(STATE);
        // The results of an earlier job may stand in the folder until those of this one are whole.
        let is_placed = state.join(READY).exists() && !state.join(READY).join(LAST).exists();
        let finished = folder.join(LAST).exists();
        match state.join(JOB).exists() && !(finished && is_placed) {
            true if STATES.iter().any(|name| state.join(name).exists()) => {
                Some(Progress::Resumable)
            }
            true => Some(Progress::Begun),
            false => finished.then_some(Progress::Finished),
        }
    }
}

/// Removes the unfinished files of a job that was interrupted. What it needs to be resumed stays.
///
/// # Errors
/// When a folder cannot be listed or a file not be removed.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    remove_leftovers(folder)?;
    match folder.join(STATE).join(NEW) {
        new if new.exists() => remove_leftovers(&new).map(drop),
        _ => Ok(()),
    }
}

/// How results are written.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// What results consist of.
    pub format: OutputFormat,
    /// Compression of `kept.jsonl` and `removed.jsonl`; as the input if `None`. Tables are compressed in their own way.
    pub compression: Option<Compression>,
    /// How inputs that are files get into the results.
    pub transfer: Transfer,
    /// What becomes of results that are already there.
    pub folder: Folder,
    /// The command, for the report.
    pub command: String,
}

/// What `dedup` tells when it is done: the content of `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DedupSummary {
    /// The program: [`PROGRAM`], by which a folder of results is known.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Name of the method.
    pub method: String,
    /// Least resemblance of a near-duplicate.
    pub threshold: f64,
    /// Largest distance, for simhash.
    pub distance: Option<u32>,
    /// For which candidates of Henzinger's combination the distance counts.
    pub distance_for: Option<crate::settings::DistanceFor>,
    /// Which pairs count: all, or those within a category or across categories.
    pub scope: crate::settings::Scope,
    /// What the category is.
    pub category: Option<String>,
    /// Least share of the longer text that the shorter one has.
    pub lengths: Option<f64>,
    /// Further tests that every near-duplicate passed.
    pub and: Vec<String>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// Which document of a cluster survives.
    pub keep: String,
    /// Longer documents, in bytes, were compared for equal bytes only.
    pub max_document: u64,
    /// Every near-duplicate was verified by exact resemblance.
    pub verified: bool,
    /// Share of pairs at the threshold that the method proposes, where that can be computed.
    pub recall: Option<f64>,
    /// Counts of what was read.
    pub counts: Counts,
    /// Counts of what was decided.
    pub decisions: Decisions,
    /// What was written.
    pub written: WrittenBytes,
    /// How many were kept just below the threshold.
    pub below_threshold: BelowThreshold,
    /// What was not read, by reason.
    pub skipped: Vec<SkippedRow>,
    /// Where the kept documents are, within the folder of the results: `kept.jsonl`, `kept` for files, or both.
    pub kept_in: Vec<String>,
    /// Limits of the job.
    pub limits: Limits,
    /// Whether the decisions of an interrupted job were taken over.
    pub resumed: bool,
    /// What it cost.
    pub measured: Measured,
}

/// What a job in a folder is, to know it again.
#[derive(Serialize, Deserialize, PartialEq)]
pub(crate) struct Identity {
    pub(crate) settings: String,
    pub(crate) input: String,
}

/// How names of folders for temporary files begin. Those of jobs that were killed are removed by the next job in the
/// same output folder.
pub const SPOOL: &str = "spool.tmp-";

/// In [`STATE`]: which job is at work.
const JOB: &str = "job.json";

/// Where in [`STATE`] results are gathered; with [`LAST`] in it, they are all there.
pub(crate) const NEW: &str = "new";

/// What [`NEW`] is called once the older results are out of the way.
const READY: &str = "ready";

/// Where in [`STATE`] older results go.
const OLD: &str = "old";

/// What a job that was interrupted can be resumed from.
const STATES: [&str; 2] = ["decided.bin", "read.bin"];

/// Names of all results of `dedup` in its folder.
pub const DEDUP_RESULTS: [&str; 20] = [
    "kept.parquet",
    "removed.parquet",
    "clusters.parquet",
    "pairs.parquet",
    "skipped.parquet",
    "kept.jsonl",
    "kept.jsonl.gz",
    "kept.jsonl.zst",
    "removed.jsonl",
    "removed.jsonl.gz",
    "removed.jsonl.zst",
    "clusters.jsonl",
    "pairs.jsonl",
    "skipped.jsonl",
    "report.html",
    LAST,
    "kept",
    "removed",
    "skipped",
    STATE,
];

/// The folder that a job works in.
pub(crate) struct Workplace<'a> {
    pub(crate) folder: &'a Path,
    /// Names of all results.
    pub(crate) results: &'a [&'static str],
}

impl Workplace<'_> {
    /// Where the result `name` is written.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.state(NEW).join(name)
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.join(STATE).join(name)
    }

    /// Writes lines of JSON to the result `name`, in the format given. See [`AtomicFile::lines`].
    pub(crate) fn write_lines(
        &self,
        name: &str,
        (format, example): (OutputFormat, &str),
        write: &mut dyn FnMut(&mut AtomicFile) -> io::Result<()>,
    ) -> Result<(), BatchError> {
        let path = self.path(format!("{name}{}", format.suffix()));
        let failed = BatchError::result(&path);
        let mut file = AtomicFile::lines(&path, format, example).map_err(&failed)?;
        write(&mut file)
            .and_then(|()| file.commit())
            .map_err(&failed)
    }

    fn refuse(&self, reason: impl Into<String>) -> BatchError {
        BatchError::Folder {
            path: self.folder.to_owned(),
            reason: reason.into(),
        }
    }

    /// Makes the folder ready for the job `identity`.
    pub(crate) fn enter(
        &self,
        mode: Folder,
        identity: &Identity,
        spool: &Path,
    ) -> Result<(), BatchError> {
        let failed = BatchError::result(self.folder);
        match mode {
            Folder::Resume => self.take_back().map_err(&failed)?,
            Folder::New | Folder::Overwrite => self.finish_publishing().map_err(&failed)?,
        }
        let decided = STATES.iter().any(|name| self.state(name).exists());
        // The state of a job that failed before it had decided anything is in nobody's way.
        let counts = |name: &&str| **name != *STATE || decided || mode != Folder::New;
        let present = self
            .results
            .iter()
            .find(|name| counts(name) && self.folder.join(name).symlink_metadata().is_ok());
        match (mode, present) {
            (Folder::New, Some(name)) => {
                return Err(self.refuse(format!(
                    "holds results already ({name}): choose another folder, finish that job with --resume, or replace \
                     its results with --overwrite"
                )));
            }
            (Folder::Resume, Some(_)) => self.recognise(identity)?,
            (Folder::Overwrite, Some(name)) => self.allow_overwriting(name)?,
            (_, None) => {}
        }
        if mode != Folder::Resume {
            remove(&self.folder.join(STATE)).map_err(&failed)?;
        } else if !decided {
            remove(&self.state(NEW)).map_err(&failed)?;
        }
        std::fs::create_dir_all(self.state(NEW)).map_err(&failed)?;
        remove_folders_in(&self.state(NEW)).map_err(&failed)?;
        remove_unfinished(self.folder).map_err(&failed)?;
        self.remove_spools(spool).map_err(&failed)?;
        let mut file = AtomicFile::create(&self.state(JOB), Compression::None).map_err(&failed)?;
        write_line(&mut file, identity)
            .and_then(|()| file.commit())
            .map_err(&failed)
    }

    /// Removes folders of temporary files that killed jobs left, but for the one in use.
    fn remove_spools(&self, used: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(self.folder)? {
            let entry = entry?;
            let is_spool = entry.file_name().to_string_lossy().starts_with(SPOOL);
            if is_spool
                && entry.file_type()?.is_dir()
                && Some(&*entry.file_name()) != used.file_name()
            {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Refuses to replace what no job of ours left.
    fn allow_overwriting(&self, name: &str) -> Result<(), BatchError> {
        if holds_results(self.folder) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "{name} is there, but no {LAST} of a job that wrote it, so it may be yours: move it away, or choose another folder"
        )))
    }

    /// Refuses to go on with a job of other settings or other input.
    fn recognise(&self, identity: &Identity) -> Result<(), BatchError> {
        if Progress::of(self.folder) == Some(Progress::Finished) {
            return Err(self.refuse(
                "the job in this folder is finished (run.json is there): nothing to resume; replace its results with \
                 --overwrite",
            ));
        }
        let Ok(text) = std::fs::read_to_string(self.state(JOB)) else {
            return Ok(());
        };
        let Ok(found) = serde_json::from_str::<Identity>(&text) else {
            return Ok(());
        };
        if found.input != identity.input {
            return Err(self.refuse(
                "the job to resume read other files, or they have changed since: start again with --overwrite",
            ));
        }
        if found.settings != identity.settings {
            return Err(self.refuse(format!(
                "the job to resume has other settings: there {}; now {}; repeat it with the same, or start again with \
                 --overwrite",
                found.settings, identity.settings
            )));
        }
        Ok(())
    }

    /// Refuses to go on when an input holds something else than it held, whatever its name, size and time say.
    pub(crate) fn ensure_same_contents(&self, inputs: &Inputs) -> Result<(), BatchError> {
        match contents::changed(&self.state(CONTENTS), inputs)? {
            None => Ok(()),
            Some(name) => Err(self.refuse(format!(
                "{name} has changed since the job to resume read it: start again with --overwrite"
            ))),
        }
    }

    /// After a failure: removes the state of a job that has decided nothing, with which nobody could go on.
    pub(crate) fn forget_undecided(&self, checkpoint: &Path) {
        if !checkpoint.exists() {
            // The failure at hand is what the user should hear of.
            let _ = std::fs::remove_dir_all(self.folder.join(STATE));
        }
    }

    /// Gives the new results, of which [`LAST`] was written last, their places, and removes the older ones. The job is
    /// done then.
    ///
    /// A command that is killed meanwhile leaves the rest of this to the next one: as long as `new/run.json` is there,
    /// what stands in the folder is old; as long as `ready/` is there, it is new.
    pub(crate) fn publish(&self) -> Result<(), BatchError> {
        let state = self.folder.join(STATE);
        let publish = || {
            self.finish_publishing()?;
            for entry in std::fs::read_dir(&state)? {
                let entry = entry?;
                // It says to the end that the results are placed.
                if entry.file_name() != READY {
                    remove(&entry.path())?;
                }
            }
            remove(&state)
        };
        uninterrupted(publish).map_err(BatchError::result(self.folder))
    }

    fn finish_publishing(&self) -> io::Result<()> {
        if self.state(NEW).join(LAST).exists() {
            self.clear_away()?;
            std::fs::rename(self.state(NEW), self.state(READY))?;
        }
        if self.state(READY).join(LAST).exists() {
            self.place()?;
            sync_directory(self.folder)?;
        }
        remove(&self.state(OLD))
    }

    /// Undoes what a killed command had done of [`Workplace::publish`], unless that was all: its last results are to be
    /// written once more.
    fn take_back(&self) -> io::Result<()> {
        if !matches!(
            Progress::of(self.folder),
            Some(Progress::Begun | Progress::Resumable)
        ) {
            return Ok(());
        }
        let (new, ready, old) = (self.state(NEW), self.state(READY), self.state(OLD));
        if ready.exists() {
            self.move_results(self.folder, &ready)?;
            std::fs::rename(&ready, &new)?;
        }
        remove(&new.join(LAST))?;
        if old.exists() {
            self.move_results(&old, self.folder)?;
        }
        remove(&old)
    }

    /// Moves the results that are in the one folder to the other.
    fn move_results(&self, from: &Path, to: &Path) -> io::Result<()> {
        for name in self.results.iter().filter(|name| **name != STATE) {
            if from.join(name).symlink_metadata().is_ok() {
                std::fs::rename(from.join(name), to.join(name))?;
            }
        }
        Ok(())
    }

    /// Moves the older results out of the way, [`LAST`] first. If one cannot be moved, all stay.
    fn clear_away(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.state(OLD))?;
        let others = self.results.iter().filter(|name| **name != LAST);
        let mut moved = Vec::new();
        for name in std::iter::once(&LAST).chain(others) {
            if **name == *STATE {
                continue;
            }
            let (from, to) = (self.folder.join(name), self.state(OLD).join(name));
            if from.symlink_metadata().is_err() {
                continue;
            }
            if let Err(error) = remove(&to).and_then(|()| std::fs::rename(&from, &to)) {
                for (from, to) in moved.iter().rev() {
                    // The first failure is what the user should hear of.
                    let _ = std::fs::rename(to, from);
                }
                return Err(error);
            }
            moved.push((from, to));
        }
        Ok(())
    }

    /// Moves the new results to their places, [`LAST`] last.
    fn place(&self) -> io::Result<()> {
        let ready = self.state(READY);
        for name in self.results.iter().filter(|name| **name != LAST) {
            if ready.join(name).symlink_metadata().is_ok() {
                std::fs::rename(ready.join(name), self.folder.join(name))?;
            }
        }
        std::fs::rename(ready.join(LAST), self.folder.join(LAST))
    }
}

/// Removes the folders in a folder.
fn remove_folders_in(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, or a folder with all that is in it, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(data) if data.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

impl Job<'_> {
    /// Deduplicates the inputs into `folder`.
    ///
    /// # Errors
    /// [`BatchError`]. Whatever happens, no file under its final name is incomplete, and `run.json` is there only when
    /// everything is.
    pub fn dedup(
        &self,
        folder: &Path,
        options: &OutputOptions,
    ) -> Result<DedupSummary, BatchError> {
        let place = Workplace {
            folder,
            results: &DEDUP_RESULTS,
        };
        let identity = Identity {
            settings: format!(
                "{} output={} compress={} link={} {}",
                self.settings.canonical(),
                options.format,
                options.compression.map_or("as-input", Compression::suffix),
                options.transfer == Transfer::Link,
                self.options.canonical()
            ),
            input: format!("{}+{}", self.inputs.fingerprint(), self.against_sources),
        };
        self.settings.stated_recall()?;
        self.check_tables(options.format)?;
        place.enter(options.folder, &identity, self.folder)?;
        place.ensure_same_contents(self.inputs)?;
        let checkpoint = place.state("decided.bin");
        let old = Verdicts::load(&checkpoint, &identity.settings, &identity.input);
        let resumed = old.is_some();
        let verdicts = match old {
            Some(verdicts) => {
                let Head {
                    skipped, counts, ..
                } = &verdicts.head;
                self.settings.losses.check(skipped, counts.documents)?;
                verdicts
            }
            None => self
                .judge(&place, options.format, identity, &checkpoint)
                .inspect_err(|_| place.forget_undecided(&checkpoint))?,
        };
        let report = Output {
            job: self,
            place: &place,
            verdicts: &verdicts,
            options,
        }
        .write()?;
        self.finish(&place, options, verdicts, resumed, report)
    }

    /// The inputs without those of `--against`, whose skips name no files.
    fn new_inputs(&self) -> Inputs {
        Inputs {
            sources: self.inputs.sources[self.against_sources..].to_vec(),
            skips: self.inputs.skips.clone(),
        }
    }

    /// Sources of records, not those of `--against`, that are damaged from their first byte on.
    fn unread(&self, scanned: &Scanned) -> Vec<u32> {
        let is_damaged = |source: &Source| {
            let name = source.name();
            let mut skips = scanned.skips.iter();
            skips.any(|skip| skip.kind == SkipKind::Damaged && skip.name == name)
        };
        let sources = self.inputs.sources.iter().enumerate();
        let unread = sources
            .skip(self.against_sources)
            .filter(|(number, source)| {
                !source.is_document() && scanned.records[*number] == 0 && is_damaged(source)
            });
        unread.map(|(number, _)| number as u32).collect()
    }

    fn write_skipped(&self, out: &mut AtomicFile, decided: &Decided) -> io::Result<()> {
        let against = self.against_sources;
        let tree = FileTree::new(&self.new_inputs());
        let shown = |path: &Path| {
            let path = Path::new(SKIPPED_FILES).join(path);
            path.to_string_lossy().into_owned()
        };
        let of_source = |number: usize| shown(tree.path((number - against) as u32));
        for bad in &decided.scanned.bad {
            let number = bad.source as usize;
            let is_file = number >= against && self.inputs.sources[number].is_document();
            let line = SkippedLine::of_record(self.inputs, bad);
            write_line(out, &line.with_file(is_file.then(|| of_source(number))))?;
        }
        let mut files = tree.skipped();
        for skip in &self.inputs.skips {
            let file = skip.file.as_ref().and_then(|_| files.next());
            let line = SkippedLine::of_part(skip).with_file(file.map(|(_, to)| shown(to)));
            write_line(out, &line)?;
        }
        let unread = self.unread(&decided.scanned);
        for skip in &decided.scanned.skips {
            let is_it = |number: &&u32| self.inputs.sources[**number as usize].name() == skip.name;
            let number = unread.iter().find(is_it);
            let file = number.map(|number| of_source(*number as usize));
            write_line(out, &SkippedLine::of_part(skip).with_file(file))?;
        }
        Ok(())
    }

    /// Refuses tables whose rows Parquet cannot hold with their types.
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
            let reason = self.inputs.unwritable_table(number as u32, self.options)?;
            if let Some(reason) = reason {
                return Err(BatchError::Settings(format!(
                    "{}: its rows cannot be written as Parquet with their types: {reason}: use --output-format jsonl",
                    source.name()
                )));
            }
        }
        Ok(())
    }

    /// Where the kept documents are, as paths within the folder of the results.
    fn kept_in(&self, options: &OutputOptions) -> Vec<String> {
        let sources = &self.inputs.sources[self.against_sources..];
        let format = options.format;
        let is_lone_table = sources.len() == 1 && is_split(format, &sources[0]);
        let is_file = |source: &Source| source.is_document() || is_split(format, source);
        let mut names = Vec::new();
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

    /// Decides, writes what must be written while everything is at hand, and saves the decisions.
    fn judge(
        &self,
        place: &Workplace<'_>,
        format: OutputFormat,
        identity: Identity,
        checkpoint: &Path,
    ) -> Result<Verdicts, BatchError> {
        let decided = self.decide()?;
        let pair = match decided.fingerprints {
            true => PAIR_WITH_DISTANCE,
            false => PAIR,
        };
        place.write_lines("pairs", (format, pair), &mut |out| {
            write_pairs(out, &decided)
        })?;
        place.write_lines("skipped", (format, SKIPPED), &mut |out| {
            self.write_skipped(out, &decided)
        })?;
        let verdicts = self.verdicts(decided, identity);
        contents::save(&place.state(CONTENTS), self.inputs)?;
        verdicts
            .save(checkpoint)
            .map_err(BatchError::result(checkpoint))?;
        Ok(verdicts)
    }

    fn verdicts(&self, decided: Decided, identity: Identity) -> Verdicts {
        let Decided {
            scanned,
            ranking,
            outcomes,
            just_below,
            repeated_ids,
            kept_as_pages,
            ..
        } = decided;
        let clusters = Clusters::new(&ranking.by_id, &ranking.id_ranks, &outcomes);
        let head = Head {
            settings: identity.settings,
            input: identity.input,
            counts: Counts::of_scan(
                &scanned,
                self.inputs,
                self.against_sources,
                self.options,
                repeated_ids,
            ),
            decisions: Decisions {
                kept_as_pages,
                ..Decisions::new(&scanned.documents, &outcomes, &clusters)
            },
            just_below,
            skipped: skipped(self.inputs, &scanned),
            unread: self.unread(&scanned),
        };
        let bad = scanned
            .bad
            .iter()
            .map(|bad| [u64::from(bad.source), bad.number])
            .collect();
        let (by_id, records) = (ranking.by_id, scanned.records);
        Verdicts {
            head,
            documents: scanned.documents,
            by_id,
            outcomes,
            bad,
            records,
        }
    }

    fn finish(
        &self,
        place: &Workplace<'_>,
        options: &OutputOptions,
        verdicts: Verdicts,
        resumed: bool,
        report: crate::report::ReportData,
    ) -> Result<DedupSummary, BatchError> {
        let settings = self.settings;
        let below_threshold = verdicts.below_threshold(settings.threshold);
        let head = verdicts.head;
        let simhash = settings.method.has_fingerprints();
        let summary = DedupSummary {
            program: PROGRAM,
            version: env!("CARGO_PKG_VERSION"),
            command: options.command.clone(),
            method: settings.method.to_string(),
            threshold: settings.threshold,
            distance: simhash.then_some(settings.distance),
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
            verified: true,
            recall: self.settings.stated_recall()?,
            counts: head.counts,
            decisions: head.decisions,
            written: report.written,
            below_threshold,
            skipped: head.skipped,
            kept_in: self.kept_in(options),
            limits: self.limits.clone(),
            resumed,
            measured: self.observer.measured(),
        };
        let page =
            crate::report::render(&crate::dedup::report_examples::complete(report, &summary))
                .map_err(|error| BatchError::Settings(error.to_string()))?;
        write_file(&place.path("report.html"), Compression::None, &mut |out| {
            out.write_all(page.as_bytes())
        })?;
        write_file(&place.path(LAST), Compression::None, &mut |out| {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            out.write_all(b"\n")
        })?;
        place.publish()?;
        Ok(summary)
    }
}

impl Verdicts {
    /// What is just below the threshold, by ids.
    fn below_threshold(&self, threshold: f64) -> BelowThreshold {
        let JustBelow { kept, closest } = &self.head.just_below;
        let id = |document: u32| self.documents.id(document as usize).to_owned();
        let pair = |pair: &ClosePair| BelowPair {
            a: id(pair.a),
            b: id(pair.b),
            similarity: pair.similarity(),
        };
        BelowThreshold {
            from: Margin::below(threshold).from(),
            kept: kept.clone(),
            closest: closest.iter().map(pair).collect(),
        }
    }
}

pub(crate) fn write_file(
    path: &Path,
    compression: Compression,
    write: &mut dyn FnMut(&mut AtomicFile) -> io::Result<()>,
) -> Result<(), BatchError> {
    let failed = BatchError::result(path);
    let mut file = AtomicFile::create(path, compression).map_err(&failed)?;
    write(&mut file)
        .and_then(|()| file.commit())
        .map_err(&failed)
}

fn write_pairs(out: &mut AtomicFile, decided: &Decided) -> io::Result<()> {
    let documents = &decided.scanned.documents;
    let classes = decided.fingerprints.then_some(&decided.scanned.classes);
    if let Some(pairs) = &decided.pairs {
        return pairs.drain(&decided.ranking.by_id, |pair| {
            write_pair(out, documents, classes, pair)
        });
    }
    let ranks = &decided.ranking.id_ranks;
    let pair = |(document, outcome): (usize, &Outcome)| {
        let survivor = outcome.survivor()?;
        let (a, b) = (document as u32, survivor);
        let (a, b) = if ranks[a as usize] < ranks[b as usize] {
            (a, b)
        } else {
            (b, a)
        };
        Some(DocumentPair {
            a,
            b,
            similarity: outcome.similarity(),
            visible: outcome.visible_similarity(),
        })
    };
    let mut pairs: Vec<DocumentPair> = decided
        .outcomes
        .iter()
        .enumerate()
        .filter_map(pair)
        .collect();
    pairs.sort_unstable_by_key(|pair| (ranks[pair.a as usize], ranks[pair.b as usize]));
    pairs
        .into_iter()
        .try_for_each(|pair| write_pair(out, documents, classes, pair))
}

/// The folder of files of which nothing was read.
const SKIPPED_FILES: &str = "skipped";

/// Lines whose fields tables have even where no line does.
const PAIR: &str = r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5}"#;
const PAIR_WITH_DISTANCE: &str =
    r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5,"distance":0}"#;
const CLUSTER: &str = r#"{"cluster":1,"survivor":"","members":[{"id":"","similarity":0.5,"visible_similarity":0.5,"reason":""}]}"#;

/// Writing everything that follows from the decisions.
struct Output<'a> {
    job: &'a Job<'a>,
    place: &'a Workplace<'a>,
    verdicts: &'a Verdicts,
    options: &'a OutputOptions,
}

/// One of `kept.jsonl` and `removed.jsonl` on its way.
struct RecordFile {
    /// None where no source has lines.
    file: Option<AtomicFile>,
    arranger: Option<Arranger>,
    name: &'static str,
    bytes: u64,
}

impl RecordFile {
    fn add(&mut self, place: u32, bytes: &[u8], is_whole: bool) -> io::Result<()> {
        match (&mut self.arranger, &mut self.file) {
            (None, Some(file)) => file.write_all(bytes),
            (None, None) => Ok(()),
            (Some(arranger), _) if is_whole => arranger.add(place, bytes),
            (Some(arranger), _) => arranger.add_long(place, bytes),
        }
    }

    /// The file with all its records in it.
    fn arranged(mut self) -> io::Result<Option<AtomicFile>> {
        if let (Some(arranger), Some(file)) = (self.arranger, &mut self.file) {
            arranger.finish(file)?;
        }
        Ok(self.file)
    }
}

#[derive(Serialize)]
struct FileLine<'a> {
    id: &'a str,
    file: std::borrow::Cow<'a, str>,
}

impl Output<'_> {
    /// Writes clusters and records; returns what the report shows of them.
    fn write(&self) -> Result<crate::report::ReportData, BatchError> {
        let Verdicts {
            documents,
            by_id,
            outcomes,
            ..
        } = self.verdicts;
        let mut id_ranks = vec![0; by_id.len()];
        for (rank, &document) in by_id.iter().enumerate() {
            id_ranks[document as usize] = rank as u32;
        }
        let clusters = Clusters::new(by_id, &id_ranks, outcomes);
        let columns = (self.options.format, CLUSTER);
        self.place.write_lines("clusters", columns, &mut |out| {
            for (number, (survivor, members)) in clusters.iter().enumerate() {
                write_cluster(
                    out,
                    documents,
                    number as u64 + 1,
                    survivor,
                    members,
                    outcomes,
                )?;
            }
            Ok(())
        })?;
        let mut examples = Examples::choose(self.verdicts, &clusters);
        let written = self.write_records(&mut examples)?;
        examples.report(
            self.job,
            self.verdicts,
            &clusters,
            written,
            &self.place.state("examples"),
        )
    }

    /// Reads the input again and sends every record where it belongs.
    fn write_records(&self, examples: &mut Examples) -> Result<WrittenBytes, BatchError> {
        let against = self.job.against_sources;
        let inputs = self.job.new_inputs();
        let tree = FileTree::new(&inputs);
        let places = self.places();
        let in_order = self.job.settings.order == Order::Input || self.is_in_order();
        let compression = self
            .options
            .compression
            .unwrap_or_else(|| common_compression(&inputs.sources));
        let mut kept = self.open("kept", compression, in_order, &inputs)?;
        let mut removed = self.open("removed", compression, in_order, &inputs)?;
        self.job
            .observer
            .stage(Stage::Write, self.verdicts.documents.len() as u64);
        let mut cursor = Cursor::new(self.verdicts, against, self.job.observer);
        let mut current = None;
        let mut written = self.transfer_skipped(&inputs, &tree)?;
        let read = match self.options.format {
            OutputFormat::Parquet => raw_records_beside_tables,
            OutputFormat::JsonLines => raw_records,
        };
        read(
            &inputs,
            self.job.options,
            &mut |record: RawRecord<'_>| -> Result<(), BatchError> {
                if self.is_split(&inputs.sources[record.source as usize]) {
                    let paths = [&kept, &removed].map(|file| {
                        let name = table_name(file.name, &inputs, &tree, record.source);
                        self.place.path(&name)
                    });
                    let source = (&inputs, record.source);
                    let bytes = self.split(source, &paths, &mut cursor, examples)?;
                    kept.bytes += bytes[0];
                    removed.bytes += bytes[1];
                    return Ok(());
                }
                if record.part.begins() {
                    current = cursor.next(record.source, record.number);
                }
                let Some(document) = current else {
                    if record.part == RecordPart::File {
                        self.transfer_unread((&inputs, &tree), record.source, &mut written)?;
                    }
                    return Ok(());
                };
                let file = if self.verdicts.outcomes[document] == Outcome::Kept {
                    &mut kept
                } else {
                    &mut removed
                };
                let source = (&inputs, &tree);
                let done = self.send(file, source, &record, document, places[document], examples);
                done.map_err(BatchError::result(&self.place.path(file.name)))
            },
        )?;
        (written.kept, written.removed) = (kept.bytes, removed.bytes);
        self.finish(kept, removed)?;
        Ok(written)
    }

    /// Copies files that were passed over, and sources of records of which nothing could be read.
    fn transfer_skipped(
        &self,
        inputs: &Inputs,
        tree: &FileTree,
    ) -> Result<WrittenBytes, BatchError> {
        let mut written = WrittenBytes::default();
        for (from, to) in tree.skipped() {
            let to = self.place.path(SKIPPED_FILES).join(to);
            let bytes = transfer_file(from, &to, self.options.transfer);
            written.skipped += bytes.map_err(BatchError::result(&to))?;
            written.skipped_files += 1;
        }
        for &source in &self.verdicts.head.unread {
            let source = source - self.job.against_sources as u32;
            self.transfer_unread((inputs, tree), source, &mut written)?;
        }
        Ok(written)
    }

    fn transfer_unread(
        &self,
        (inputs, tree): (&Inputs, &FileTree),
        source: u32,
        written: &mut WrittenBytes,
    ) -> Result<(), BatchError> {
        let folder = self.place.path(SKIPPED_FILES);
        let bytes = tree.copy(inputs, source, &folder, self.options.transfer);
        written.skipped += bytes.map_err(BatchError::result(&folder))?;
        written.skipped_files += 1;
        Ok(())
    }

    /// Whether the rows of a source go to tables of their own.
    fn is_split(&self, source: &Source) -> bool {
        is_split(self.options.format, source)
    }

    /// Writes the rows of a table to the tables of what is kept and what is removed; their bytes.
    fn split(
        &self,
        (inputs, source): (&Inputs, u32),
        paths: &[PathBuf; 2],
        cursor: &mut Cursor<'_>,
        examples: &mut Examples,
    ) -> Result<[u64; 2], BatchError> {
        let outcomes = &self.verdicts.outcomes;
        let mut choose = |row: &TableRow<'_>| {
            let document = cursor.next(source, row.number)?;
            if examples.wants(document as u32) {
                examples.meet_line(document as u32, &row.line());
            }
            Some(usize::from(outcomes[document] != Outcome::Kept))
        };
        let [kept, removed] = paths;
        let split = inputs
            .split_table(source, self.job.options, [kept, removed], &mut choose)
            .map_err(BatchError::result(kept))?;
        let number = self.job.against_sources + source as usize;
        let rows = split.map_or(0, |split| split.rows);
        if rows != self.verdicts.records[number] {
            let name = inputs.sources[source as usize].name().into_owned();
            return Err(BatchError::Read(ReadError::Changed { name }));
        }
        Ok(split.map_or([0; 2], |split| split.bytes))
    }

    fn finish(&self, kept: RecordFile, removed: RecordFile) -> Result<(), BatchError> {
        let mut files = Vec::new();
        for file in [kept, removed] {
            let path = self.place.path(file.name);
            files.extend(file.arranged().map_err(BatchError::result(&path))?);
        }
        AtomicFile::commit_alike(files).map_err(BatchError::result(&self.place.path("kept")))
    }

    fn send(
        &self,
        file: &mut RecordFile,
        (inputs, tree): (&Inputs, &FileTree),
        record: &RawRecord<'_>,
        document: usize,
        place: u32,
        examples: &mut Examples,
    ) -> io::Result<()> {
        if record.part == RecordPart::File {
            let source = &inputs.sources[record.source as usize];
            let folder = self.place.path(file.name);
            file.bytes += tree.copy(inputs, record.source, &folder, self.options.transfer)?;
            examples.meet_file(document as u32, source);
            let id = self.verdicts.documents.id(document);
            let to = Path::new(file.name).join(tree.path(record.source));
            let mut line = serde_json::to_vec(&FileLine {
                id,
                file: to.to_string_lossy(),
            })?;
            line.push(b'\n');
            return file.add(place, &line, true);
        }
        let ends = matches!(record.part, RecordPart::Whole | RecordPart::Last);
        file.bytes += record.bytes.len() as u64 + u64::from(ends);
        let is_whole = record.part == RecordPart::Whole;
        if is_whole {
            examples.meet_line(document as u32, record.bytes);
        }
        file.add(place, record.bytes, is_whole)?;
        if ends {
            file.add(
                place, b"
", is_whole,
            )
        } else {
            Ok(())
        }
    }

    fn open(
        &self,
        name: &'static str,
        compression: Compression,
        in_order: bool,
        inputs: &Inputs,
    ) -> Result<RecordFile, BatchError> {
        let has_lines = has_lines(self.options.format, &inputs.sources);
        let file = has_lines
            .then(|| self.open_file(name, compression))
            .transpose()?;
        let budget = crate::dedup::memory_budget::Budget::new(
            self.job.limits,
            &self.job.settings.scheme,
            self.job.options,
        )
        .keys();
        // Compressed input may be many times larger once it is read; the text is the better guess then.
        let bytes = inputs
            .total_bytes()
            .max(self.verdicts.head.counts.text_bytes);
        let places = self.verdicts.documents.len();
        let temporary = self.place.folder.join(STATE);
        let arranger =
            (has_lines && !in_order).then(|| Arranger::new(&temporary, places, bytes, budget));
        Ok(RecordFile {
            file,
            arranger,
            name,
            bytes: 0,
        })
    }

    fn open_file(&self, name: &str, compression: Compression) -> Result<AtomicFile, BatchError> {
        let name = record_file_name(name, self.options.format, compression);
        let path = self.place.path(&name);
        let file = match self.options.format {
            OutputFormat::JsonLines => AtomicFile::create(&path, compression),
            OutputFormat::Parquet => AtomicFile::lines(&path, OutputFormat::Parquet, ""),
        };
        file.map_err(BatchError::result(&path))
    }

    /// Place of each document in the order of the output.
    fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.verdicts.by_id.len()];
        for (place, &document) in self.verdicts.by_id.iter().enumerate() {
            places[document as usize] = place as u32;
        }
        places
    }

    /// Whether the input is already in the order of ids.
    fn is_in_order(&self) -> bool {
        let against = self.verdicts.documents.against;
        self.verdicts
            .by_id
            .iter()
            .filter(|&&document| document as usize >= against)
            .is_sorted()
    }
}

/// Follows raw records and tells which document each is, and the observer how far they are.
struct Cursor<'a> {
    bad: &'a [[u64; 2]],
    source_offset: u64,
    next: usize,
    observer: &'a dyn Observer,
}

impl<'a> Cursor<'a> {
    fn new(verdicts: &'a Verdicts, against: usize, observer: &'a dyn Observer) -> Self {
        let first = verdicts.bad.partition_point(|bad| bad[0] < against as u64);
        Self {
            bad: &verdicts.bad[first..],
            source_offset: against as u64,
            next: verdicts.documents.against,
            observer,
        }
    }

    /// The document that a record is, or none if it could not be read.
    fn next(&mut self, source: u32, number: u64) -> Option<usize> {
        let here = [u64::from(source) + self.source_offset, number];
        if self.bad.first() == Some(&here) {
            self.bad = &self.bad[1..];
            return None;
        }
        if self.next.is_multiple_of(4096) {
            self.observer.advance(self.next as u64);
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

fn record_file_name(name: &str, format: OutputFormat, compression: Compression) -> String {
    match format {
        OutputFormat::JsonLines => format!("{name}.jsonl{}", compression.suffix()),
        OutputFormat::Parquet => format!("{name}.parquet"),
    }
}

/// Whether the rows of a source go to tables of their own.
fn is_split(format: OutputFormat, source: &Source) -> bool {
    format == OutputFormat::Parquet && source.is_typed_table()
}

/// Whether any record leaves as a line.
fn has_lines(format: OutputFormat, sources: &[Source]) -> bool {
    sources.is_empty() || sources.iter().any(|source| !is_split(format, source))
}

/// Where the rows of a table go: `kept.parquet` if there is no other source, else its path below `kept/`.
fn table_name(name: &str, inputs: &Inputs, tree: &FileTree, source: u32) -> PathBuf {
    match inputs.sources.len() {
        1 => PathBuf::from(format!("{name}.parquet")),
        _ => Path::new(name).join(tree.path(source)),
    }
}

/// The compression that all sources of records have, or none; what is read but not written becomes zstd.
fn common_compression(sources: &[Source]) -> Compression {
    let mut lines = sources.iter().filter(|source| !source.is_document());
    let first = lines
        .next()
        .map_or(Compression::None, |source| source.compression);
    match first {
        _ if lines.any(|source| source.compression != first) => Compression::None,
        Compression::Bzip2 | Compression::Xz => Compression::Zstd,
        first => first,
    }
}
