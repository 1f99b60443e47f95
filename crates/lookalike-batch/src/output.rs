//! `dedup`: decisions to files, each of which appears under its name only when it is whole.
//!
//! ```text
//! kept.jsonl, removed.jsonl     the records as they came in; inputs that are files are copied to kept/, removed/
//! clusters.jsonl                who was removed for whom, and why
//! pairs.jsonl                   verified pairs
//! skipped.jsonl                 what could not be read
//! report.html                   for people
//! run.json                      settings, scheme, counts, cost; written last: where it stands, the job is done
//! .lookalike/                   while the job runs: what it is, and its decisions once they are made
//! ```
//!
//! With [`OutputFormat::Parquet`] the lines become tables: `kept.parquet` and so on.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, Compression, FileTree, Inputs, OutputFormat, Part, RawRecord, Source, raw_records,
};
use serde::{Deserialize, Serialize};

use crate::arrange::Arranger;
use crate::checkpoint::{Head, Verdicts};
use crate::error::BatchError;
use crate::examples::Examples;
use crate::job::{Decided, Job};
use crate::lines::{write_cluster, write_line, write_pair};
use crate::observer::{Measured, Stage};
use crate::outcome::{Clusters, Outcome};
use crate::pairs::DocumentPair;
use crate::settings::{Limits, Order};
use crate::summary::{Counts, Decisions, SkippedRow, skipped};

/// What becomes of results that are already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// Refuse a folder with results in it.
    #[default]
    New,
    /// Go on with a job that was interrupted; start it when there is none.
    Resume,
    /// Remove the results that are there and start.
    Overwrite,
}

/// How far a job in a folder has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is at work, or ended before it was done: [`Folder::Resume`] goes on with it.
    Begun,
    /// All its results are there.
    Finished,
}

impl Progress {
    /// `None` where no job has begun. Takes two looks at the folder.
    pub fn of(folder: &Path) -> Option<Progress> {
        if folder.join(LAST).exists() {
            return Some(Progress::Finished);
        }
        folder.join(STATE).exists().then_some(Progress::Begun)
    }
}

/// How results are written.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// What results consist of.
    pub format: OutputFormat,
    /// Compression of `kept.jsonl` and `removed.jsonl`; as the input if `None`. Tables are compressed in their own way.
    pub compression: Option<Compression>,
    /// What becomes of results that are already there.
    pub folder: Folder,
    /// The command, for the report.
    pub command: String,
}

/// What `dedup` tells when it is done: the content of `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DedupSummary {
    /// Version of the program.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Name of the method.
    pub method: String,
    /// Least resemblance of a near-duplicate.
    pub threshold: f64,
    /// Largest distance, for simhash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// For which candidates of Henzinger's combination the distance counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_for: Option<crate::settings::DistanceFor>,
    /// Which pairs count: all, or those within a category or across categories.
    pub scope: crate::settings::Scope,
    /// What the category is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Least share of the longer text that the shorter one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lengths: Option<f64>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// Which document of a cluster survives.
    pub keep: String,
    /// Longer documents, in bytes, were kept and not compared.
    pub max_document: u64,
    /// Every near-duplicate was verified by exact resemblance.
    pub verified: bool,
    /// Share of pairs at the threshold that the method proposes, where that can be computed.
    pub recall: Option<f64>,
    /// Counts of what was read.
    pub counts: Counts,
    /// Counts of what was decided.
    pub decisions: Decisions,
    /// What was not read, by reason.
    pub skipped: Vec<SkippedRow>,
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

/// The result that is written when all others are.
pub(crate) const LAST: &str = "run.json";

/// The folder of what a job needs to be resumed, while it runs.
pub(crate) const STATE: &str = ".lookalike";

/// What a job that was interrupted can be resumed from.
const STATES: [&str; 2] = ["decided.bin", "read.bin"];

const RESULTS: [&str; 19] = [
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
    STATE,
];

/// The folder that a job works in.
pub(crate) struct Workplace<'a> {
    pub(crate) folder: &'a Path,
    /// Names of all results.
    pub(crate) results: &'a [&'static str],
}

impl Workplace<'_> {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
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
        let path = self.path(&format!("{name}{}", format.suffix()));
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
        let decided = STATES.iter().any(|name| self.state(name).exists());
        // The state of a job that failed before it had decided anything is in nobody's way.
        let counts = |name: &&str| **name != *STATE || decided || mode != Folder::New;
        let present = self
            .results
            .iter()
            .find(|name| counts(name) && self.path(name).symlink_metadata().is_ok());
        match (mode, present) {
            (Folder::New, Some(name)) => {
                return Err(self.refuse(format!(
                    "holds results already ({name}): choose another folder, finish that job with --resume, or replace \
                     its results with --overwrite"
                )));
            }
            (Folder::Resume, Some(_)) => self.recognise(identity)?,
            (Folder::Overwrite, Some(_)) => self.clear().map_err(&failed)?,
            (_, None) => {}
        }
        std::fs::create_dir_all(self.folder.join(STATE)).map_err(&failed)?;
        lookalike_corpus::remove_leftovers(self.folder).map_err(&failed)?;
        self.remove_spools(spool).map_err(&failed)?;
        let mut file =
            AtomicFile::create(&self.state("job.json"), Compression::None).map_err(&failed)?;
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

    /// Refuses to go on with a job of other settings or other input.
    fn recognise(&self, identity: &Identity) -> Result<(), BatchError> {
        if Progress::of(self.folder) == Some(Progress::Finished) {
            return Err(self.refuse(
                "the job in this folder is finished (run.json is there): nothing to resume; replace its results with \
                 --overwrite",
            ));
        }
        let Ok(text) = std::fs::read_to_string(self.state("job.json")) else {
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

    /// After a failure: removes the state of a job that has decided nothing, with which nobody could go on.
    fn forget_undecided(&self, checkpoint: &Path) {
        if !checkpoint.exists() {
            // The failure at hand is what the user should hear of.
            let _ = std::fs::remove_dir_all(self.path(STATE));
        }
    }

    fn clear(&self) -> io::Result<()> {
        for name in self.results {
            let path = self.path(name);
            match path.symlink_metadata() {
                Ok(data) if data.is_dir() => std::fs::remove_dir_all(path)?,
                Ok(_) => std::fs::remove_file(path)?,
                Err(_) => {}
            }
        }
        Ok(())
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
            results: &RESULTS,
        };
        let identity = Identity {
            settings: format!(
                "{} format={:?} compression={:?} {:?}",
                self.settings.canonical(),
                options.format,
                options.compression,
                self.options
            ),
            input: format!("{}+{}", self.inputs.fingerprint(), self.against_sources),
        };
        self.settings.stated_recall()?;
        place.enter(options.folder, &identity, self.folder)?;
        let checkpoint = place.state("decided.bin");
        let old = Verdicts::load(&checkpoint, &identity.settings, &identity.input);
        let resumed = old.is_some();
        let verdicts = match old {
            Some(verdicts) => verdicts,
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
        self.finish(&place, options, verdicts.head, resumed, report)
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
            write_skipped(out, self.inputs, &decided)
        })?;
        let verdicts = self.verdicts(decided, identity);
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
            repeated_ids,
            ..
        } = decided;
        let clusters = Clusters::new(&ranking.by_id, &ranking.id_ranks, &outcomes).len();
        let head = Head {
            settings: identity.settings,
            input: identity.input,
            counts: Counts::of_scan(&scanned, self.inputs, self.options, repeated_ids),
            decisions: Decisions::new(&scanned.documents, &outcomes, clusters),
            skipped: skipped(self.inputs, &scanned),
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
        head: Head,
        resumed: bool,
        report: crate::report::ReportData,
    ) -> Result<DedupSummary, BatchError> {
        let settings = self.settings;
        let simhash = settings.method.has_fingerprints();
        let summary = DedupSummary {
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
            scheme: settings.scheme.to_string(),
            scheme_id: settings.scheme.id().to_string(),
            keep: settings.keep.to_string(),
            max_document: self.options.max_document_bytes,
            verified: true,
            recall: self.settings.stated_recall()?,
            counts: head.counts,
            decisions: head.decisions,
            skipped: head.skipped,
            limits: self.limits.clone(),
            resumed,
            measured: self.observer.measured(),
        };
        let page = crate::report::render(&crate::examples::complete(report, &summary))
            .map_err(|error| BatchError::Settings(error.to_string()))?;
        write_file(&place.path("report.html"), Compression::None, &mut |out| {
            out.write_all(page.as_bytes())
        })?;
        write_file(&place.path(LAST), Compression::None, &mut |out| {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            out.write_all(b"\n")
        })?;
        let state = place.path(STATE);
        std::fs::remove_dir_all(&state).map_err(BatchError::result(&state))?;
        Ok(summary)
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

/// Lines whose fields tables have even where no line does.
const PAIR: &str = r#"{"a":"","b":"","similarity":0.5}"#;
const PAIR_WITH_DISTANCE: &str = r#"{"a":"","b":"","similarity":0.5,"distance":0}"#;
const CLUSTER: &str =
    r#"{"cluster":1,"survivor":"","members":[{"id":"","similarity":0.5,"reason":""}]}"#;
const SKIPPED: &str =
    r#"{"source":"","line":1,"record":1,"offset":0,"kind":"","reason":"","count":1}"#;

#[derive(Serialize)]
struct SkippedLine<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Number of the record in its source, from 1, where there are no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    kind: &'a str,
    reason: &'a str,
    /// How many of them there are, if this is the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

fn write_skipped(out: &mut AtomicFile, inputs: &Inputs, decided: &Decided) -> io::Result<()> {
    for bad in &decided.scanned.bad {
        let source = inputs.sources[bad.source as usize].name();
        let line = SkippedLine {
            source: &source,
            line: (bad.line > 0).then_some(bad.line),
            record: (bad.line == 0).then_some(bad.number + 1),
            offset: Some(bad.offset),
            kind: bad.kind.as_str(),
            reason: &bad.reason,
            count: None,
        };
        write_line(out, &line)?;
    }
    for skip in inputs.skips.iter().chain(&decided.scanned.skips) {
        let (kind, reason) = (skip.kind.as_str(), &*skip.reason);
        write_line(
            out,
            &SkippedLine {
                source: &skip.name,
                line: None,
                record: None,
                offset: skip.offset,
                kind,
                reason,
                count: (skip.count > 1).then_some(skip.count),
            },
        )?;
    }
    Ok(())
}

/// Writing everything that follows from the decisions.
struct Output<'a> {
    job: &'a Job<'a>,
    place: &'a Workplace<'a>,
    verdicts: &'a Verdicts,
    options: &'a OutputOptions,
}

/// One of `kept.jsonl` and `removed.jsonl` on its way.
struct RecordFile {
    file: AtomicFile,
    arranger: Option<Arranger>,
    tree: FileTree,
    name: &'static str,
    bytes: u64,
}

impl RecordFile {
    fn add(&mut self, place: u32, bytes: &[u8], is_whole: bool) -> io::Result<()> {
        match &mut self.arranger {
            None => self.file.write_all(bytes),
            Some(arranger) if is_whole => arranger.add(place, bytes),
            Some(arranger) => arranger.add_long(place, bytes),
        }
    }

    /// The file with all its records in it.
    fn arranged(mut self) -> io::Result<AtomicFile> {
        if let Some(arranger) = self.arranger {
            arranger.finish(&mut self.file)?;
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
        let sizes = self.write_records(&mut examples)?;
        examples.report(
            self.job,
            self.verdicts,
            &clusters,
            sizes,
            &self.place.state("examples"),
        )
    }

    /// Reads the input again and sends every record where it belongs. Returns the bytes of kept and removed records.
    fn write_records(&self, examples: &mut Examples) -> Result<(u64, u64), BatchError> {
        let against = self.job.against_sources;
        let inputs = Inputs {
            sources: self.job.inputs.sources[against..].to_vec(),
            skips: Vec::new(),
        };
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
        let mut cursor = Cursor::new(self.verdicts, against);
        let mut current = None;
        raw_records(
            &inputs,
            self.job.options,
            &mut |record: RawRecord<'_>| -> Result<(), BatchError> {
                if record.part.begins() {
                    current = cursor.next(&record);
                    if let Some(document) = current
                        && document % 4096 == 0
                    {
                        self.job.observer.advance(document as u64);
                    }
                }
                let Some(document) = current else {
                    return Ok(());
                };
                let file = if self.verdicts.outcomes[document] == Outcome::Kept {
                    &mut kept
                } else {
                    &mut removed
                };
                let done = self.send(file, &inputs, &record, document, places[document], examples);
                done.map_err(BatchError::result(&self.place.path(file.name)))
            },
        )?;
        let sizes = (kept.bytes, removed.bytes);
        self.finish(kept, removed)?;
        Ok(sizes)
    }

    fn finish(&self, kept: RecordFile, removed: RecordFile) -> Result<(), BatchError> {
        let mut files = Vec::new();
        for file in [kept, removed] {
            let path = self.place.path(file.name);
            files.push(file.arranged().map_err(BatchError::result(&path))?);
        }
        AtomicFile::commit_alike(files).map_err(BatchError::result(&self.place.path("kept")))
    }

    fn send(
        &self,
        file: &mut RecordFile,
        inputs: &Inputs,
        record: &RawRecord<'_>,
        document: usize,
        place: u32,
        examples: &mut Examples,
    ) -> io::Result<()> {
        if record.part == Part::File {
            let source = &inputs.sources[record.source as usize];
            file.bytes += file
                .tree
                .copy(inputs, record.source, &self.place.path(file.name))?;
            examples.meet_file(document as u32, source);
            let id = self.verdicts.documents.id(document);
            let to = Path::new(file.name).join(file.tree.path(record.source));
            let mut line = serde_json::to_vec(&FileLine {
                id,
                file: to.to_string_lossy(),
            })?;
            line.push(b'\n');
            return file.add(place, &line, true);
        }
        let ends = matches!(record.part, Part::Whole | Part::Last);
        file.bytes += record.bytes.len() as u64 + u64::from(ends);
        let is_whole = record.part == Part::Whole;
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
        let file = self.open_file(name, compression)?;
        let budget = crate::memory::Budget::new(
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
        let temporary = self.place.path(STATE);
        let arranger = (!in_order).then(|| Arranger::new(&temporary, places, bytes, budget));
        let tree = FileTree::new(inputs);
        Ok(RecordFile {
            file,
            arranger,
            tree,
            name,
            bytes: 0,
        })
    }

    fn open_file(&self, name: &str, compression: Compression) -> Result<AtomicFile, BatchError> {
        let name = match self.options.format {
            OutputFormat::JsonLines => format!("{name}.jsonl{}", compression.suffix()),
            OutputFormat::Parquet => format!("{name}.parquet"),
        };
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

/// Follows raw records and tells which document each is.
struct Cursor<'a> {
    bad: &'a [[u64; 2]],
    source_offset: u64,
    next: usize,
}

impl<'a> Cursor<'a> {
    fn new(verdicts: &'a Verdicts, against: usize) -> Self {
        let first = verdicts.bad.partition_point(|bad| bad[0] < against as u64);
        Self {
            bad: &verdicts.bad[first..],
            source_offset: against as u64,
            next: verdicts.documents.against,
        }
    }

    /// The document that a record is, or none if it could not be read.
    fn next(&mut self, record: &RawRecord<'_>) -> Option<usize> {
        let here = [u64::from(record.source) + self.source_offset, record.number];
        if self.bad.first() == Some(&here) {
            self.bad = &self.bad[1..];
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
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
