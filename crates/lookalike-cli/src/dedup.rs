//! `lookalike dedup`: the main job.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike_batch::explain::LISTED;
use lookalike_batch::kernel::{DedupKernel, KernelError};
use lookalike_batch::{
    CollectionWriter, DEDUP_RESULTS, DedupJob, DedupSummary, DocumentCollection, JobLimits,
    JobObserver, JobProgress, JobSettings, KeepRules, Method, NoProgress, OutputOptions, PairList,
    RecordOrder,
};
use lookalike_corpus::{
    Compression, InMemoryDocument, InputError, InputOptions, Inputs, OutputFolder, OutputFormat,
    Source, Transfer,
};

use crate::against::{against_first, discover_against};
use crate::arguments::{
    BoilerplateArguments, InputArguments, RepeatedIdArguments, RunArguments, SimilarityArguments,
    command_line, output_format, output_path,
};
use crate::collection::{JobCollections, refuse_collections, remove_unless_used};
use crate::console::{self, Console};
use crate::explain::{ExplainedRecord, NumberedDocument, PairExplanation};
use crate::failure::Failure;
use crate::finished_job::resumed_when_finished;
use crate::interrupt;
use crate::kept_documents::{added_count, has_added};
use crate::output_file::{ResultFolder, files_of, if_exists};
use crate::size;

/// Deduplication of documents that another program passes in memory.
#[derive(Debug)]
pub struct DocumentJob {
    /// Settings that decide the result.
    pub settings: JobSettings,
    /// Limits on the resources of the machine.
    pub limits: JobLimits,
    /// Reading options that also apply to documents in memory.
    pub options: InputOptions,
    /// The collection that `--against` names.
    pub against: Option<DocumentCollection>,
    /// The collection that `--into` names, locked.
    pub into: Option<CollectionWriter>,
}

#[derive(clap::Args)]
#[command(after_help = "\
Writes to DIR: kept.jsonl and removed.jsonl (the records unchanged; inputs that are files
are copied to kept/ and removed/), clusters.jsonl, pairs.jsonl, skipped.jsonl (files that
could not be read at all are copied to skipped/), report.html and, last, run.json; with
--annotate also annotations.jsonl.

With --output-format parquet, each .jsonl file is a .parquet file with the fields of the
records as columns. Rows of Parquet and Arrow keep their types, in kept.parquet and
removed.parquet; with several input files, each has a file of the same path under kept/
and removed/.

Each removed document equals a kept one, or resembles it by at least the threshold.

Examples:
  lookalike dedup pages/ -o out                    a folder of text, source code or HTML
  lookalike dedup crawl.jsonl.gz -o out --keep longest,first --within site
  lookalike dedup 'crawl/*.warc.gz' -o out --memory 8G
  lookalike dedup new.jsonl --against old.jsonl -o out    old documents are never removed
  lookalike dedup crawl.jsonl.gz -o out --resume          go on after an interruption")]
pub(crate) struct DedupArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Directory for the results; created if missing
    #[arg(long, short, value_name = "DIR", value_parser = output_path())]
    output: PathBuf,

    /// Earlier documents to compare with; they are never removed
    ///
    /// Files, directories or results of dedup; may be repeated. Or the directory of a collection, which is not read again: see
    /// `lookalike collection`.
    #[arg(long, value_name = "PATH", help_heading = "Input")]
    against: Vec<OsString>,

    /// Directory of a collection to add the kept documents to
    ///
    /// All of them are added, or none, when the results are written. A missing collection is created; an existing one must be the
    /// one given with --against.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    into: Option<PathBuf>,

    #[command(flatten)]
    similarity: SimilarityArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    /// Rule for the survivor of a cluster: longest, shortest, first, max:FIELD, min:FIELD, newest:FIELD or latest:FIELD
    ///
    /// max and min compare numbers, newest compares dates (year first, RFC 2822, or seconds since 1970), latest compares texts. Of
    /// several rules, separated by commas, each breaks the ties of those before it; in the end, the smaller id survives.
    #[arg(
        long,
        value_name = "RULE,...",
        default_value = "longest",
        help_heading = "Output"
    )]
    keep: KeepRules,

    /// Order of records in kept.jsonl and removed.jsonl: id or input [default: id; rows of Parquet and Arrow written as Parquet
    /// keep the order of their file]
    #[arg(long, value_name = "ORDER", help_heading = "Output")]
    order: Option<RecordOrder>,

    /// Pairs in pairs.jsonl: each removed document with its survivor (deciding), or all
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "deciding",
        help_heading = "Output"
    )]
    pairs: PairList,

    /// Also write annotations.jsonl: the decision on each record, in the order of the input
    ///
    /// Each line has id, cluster_id, cluster_size, survivor_id, similarity, reason, representative_id and is_duplicate.
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    annotate: bool,

    #[command(flatten)]
    repeats: RepeatedIdArguments,

    /// Format of the results: jsonl or parquet [default: parquet if every input is Parquet or Arrow]
    ///
    /// With parquet the files are kept.parquet, removed.parquet, clusters.parquet and so on.
    #[arg(long, value_name = "FORMAT", value_parser = output_format, help_heading = "Output")]
    output_format: Option<OutputFormat>,

    /// Compress kept.jsonl and removed.jsonl: none, gz or zst [default: as the input]
    #[arg(long, value_name = "KIND", value_parser = compression, help_heading = "Output")]
    compress: Option<Compression>,

    /// Link files into kept/, removed/ and skipped/ instead of copying them: by hard links, or symbolic links across file systems.
    /// Changing such a file in place changes both
    #[arg(long, help_heading = "Output")]
    link: bool,

    /// Resume an interrupted job
    ///
    /// It continues from its last checkpoint of reading or comparing, or from its decisions. The inputs must be the same, byte for
    /// byte.
    #[arg(long, conflicts_with = "overwrite", help_heading = "Output")]
    resume: bool,

    /// Amount of input between two checkpoints while reading, per thread, and of feature sets while comparing
    ///
    /// Input counts as decompressed. An input shorter than this times the number of threads leaves no checkpoint. Checkpoints take about as much disk as that,
    /// 1.6 times as much for records of 250 bytes, and are removed once everything is decided.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = size::parse_positive, hide_short_help = true, help_heading = "Output")]
    checkpoint: u64,

    /// Replace existing results
    #[arg(long, help_heading = "Output")]
    overwrite: bool,

    #[command(flatten)]
    run: RunArguments,
}

fn compression(text: &str) -> Result<Compression, String> {
    match text {
        "none" => Ok(Compression::None),
        "gz" => Ok(Compression::Gzip),
        "zst" => Ok(Compression::Zstd),
        _ => Err(format!("unknown compression {text:?}: use none, gz or zst")),
    }
}

impl DedupArguments {
    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        Ok(self
            .similarity
            .settings(read)?
            .keep(self.keep.clone())
            .order(self.order.unwrap_or_default())
            .pairs(self.pairs)
            .repeated_ids(self.repeats.repeated_ids)
            .losses(self.input.losses.policy()))
    }

    /// Returns the format of the results, which depends on the sources unless the user specified one.
    fn format(&self, sources: &[Source]) -> Result<OutputFormat, Failure> {
        let format = self
            .output_format
            .unwrap_or_else(|| OutputFormat::natural(sources));
        let refused = |why: &str| {
            let default = match self.output_format {
                None => {
                    "; the input is Parquet or Arrow, so the results are Parquet unless you give --output-format jsonl"
                }
                Some(_) => "",
            };
            Err(Failure::Usage(format!("{why}{default}")))
        };
        if format != OutputFormat::Parquet {
            return Ok(format);
        }
        if self.compress.is_some() {
            return refused(
                "--compress applies to JSON lines: Parquet files are always compressed",
            );
        }
        if self.order == Some(RecordOrder::Id) && sources.iter().any(Source::is_typed_table) {
            return refused(
                "--order id applies to JSON lines: rows of Parquet keep the order of their file",
            );
        }
        Ok(format)
    }

    /// Refuses to replace results that the job itself reads: those that it does not write again would be lost. `remark` says why.
    fn refuse_overwriting<'p>(
        &self,
        mut read: impl Iterator<Item = &'p Path>,
        remark: &str,
    ) -> Result<(), Failure> {
        // A folder that does not exist has nothing to lose.
        let Ok(output) = self.output.canonicalize() else {
            return Ok(());
        };
        let is_replaced = |path: &&Path| {
            let below = path.canonicalize().ok().and_then(|path| {
                let name = path
                    .strip_prefix(&output)
                    .ok()?
                    .iter()
                    .next()
                    .map(OsString::from);
                // The folder itself, or a path within one of its results; other files in it stay.
                Some(name.is_none_or(|name| DEDUP_RESULTS.iter().any(|result| *result == name)))
            });
            below.unwrap_or(false)
        };
        match read.find(is_replaced) {
            // Without `--overwrite`, existing results are refused anyway.
            Some(path) if self.overwrite => Err(Failure::Usage(format!(
                "--overwrite would replace {}, {remark}: choose another directory with -o",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns all inputs, those of `--against` first, and the number of those.
    fn inputs(
        &self,
        options: &InputOptions,
        spool: &Path,
        console: &Console,
    ) -> Result<(Inputs, usize), Failure> {
        let compared = "whose documents are only compared with and not written again";
        self.refuse_overwriting(self.against.iter().map(Path::new), compared)?;
        refuse_collections(&self.input.names()?)?;
        // Collections are opened by `JobCollections`, not read; a new one has nothing but its lock.
        let is_unread = |path: &Path| self.is_into(path);
        let against = discover_against(&self.against, is_unread, options, spool)?;
        // Also check the files found through a wildcard or a link.
        self.refuse_overwriting(files_of(&against), compared)?;
        let output = OutputFolder {
            path: &self.output,
            results: &DEDUP_RESULTS,
        };
        let new = self.input.discover(options, spool, Some(output), console)?;
        // Results in an input directory were left out; these were named, or match a pattern.
        self.refuse_overwriting(files_of(&new), "which is also an input")?;
        against_first(against, new, console)
    }
}

pub(crate) fn run(arguments: &DedupArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let (output, losses) = (&arguments.output, &arguments.input.losses);
    let summary = match arguments.write_results(&console, None) {
        Ok(summary) => summary,
        Err(failure) => {
            let failure = interrupt::with_remaining_files(failure, output);
            let skipped = resumed_when_finished(failure, output, losses.policy(), &console)?;
            return losses.end(&skipped);
        }
    };
    // The summary has costs of its own, measured when the job ended.
    console.summarise(&summary, Some(output), |summary, _| {
        console::dedup_summary(summary, output);
        if let (Some(added), Some(folder)) = (&summary.added, &arguments.into) {
            console::added(added, folder);
        }
    })?;
    losses.end(&summary.skipped)
}

impl DedupArguments {
    /// Runs the job, with its results in the output directory, and its decisions in an additional file if one is given.
    pub(crate) fn write_results(
        &self,
        console: &Console,
        decisions: Option<&Path>,
    ) -> Result<DedupSummary, Failure> {
        // Checked before the job, because the lock creates the folder.
        let has_collection = self.into.as_ref().is_none_or(|folder| folder.exists());
        // Before the collections are opened, because that may create a directory in it; dropped after `--into` is removed from it.
        let results = ResultFolder::of(&self.output);
        let done = self.dedup(&results, console, decisions);
        if let Some(folder) = self
            .into
            .as_ref()
            .filter(|_| !has_collection && done.is_err())
        {
            remove_unless_used(folder);
        }
        done
    }

    /// Creates the job for documents that another program passes in memory. Paths of `--against` must be collections, because nothing else can be
    /// read.
    pub(crate) fn document_job(&self) -> Result<DocumentJob, Failure> {
        self.similarity.method.check()?;
        let options = self.input_options()?;
        let settings = self.settings(&options)?;
        let mut paths = self.against.iter().map(Path::new);
        let is_unread = |path: &Path| !DocumentCollection::exists_in(path) && !self.is_into(path);
        if let Some(path) = paths.find(|path| is_unread(path)) {
            return Err(Failure::Usage(format!(
                "{}: neither a collection nor the directory of an earlier result: compare data in memory with other data, or with one \
                 of these",
                path.display()
            )));
        }
        let collections = JobCollections::open(&self.against, self.into.as_deref(), None)?;
        collections.refuse_learning(&self.boilerplate)?;
        self.warn_of_new_collection(&collections, &Console::for_program(&NoProgress));
        Ok(DocumentJob {
            settings,
            limits: self.run.document_limits(),
            options,
            against: collections.against,
            into: collections.into,
        })
    }

    /// Explains two documents of the job, which another program passes again, under these names.
    pub(crate) fn explain_given(
        &self,
        names: [&str; 2],
        documents: [InMemoryDocument<'_>; 2],
        observer: &dyn JobObserver,
    ) -> Result<PairExplanation, Failure> {
        let options = self.input_options()?;
        let pair = ExplainedRecord::of_given(names, documents, &options)?;
        PairExplanation::of(&pair, &self.settings(&options)?, LISTED, observer)
    }

    /// Explains two documents of the job, which are read again.
    pub(crate) fn explain_numbered(
        &self,
        documents: [&NumberedDocument; 2],
        console: &Console<'_>,
    ) -> Result<PairExplanation, Failure> {
        let mut options = self.input_options()?;
        let spool = self.run.spool(std::env::temp_dir())?;
        let limits = self.run.document_limits();
        let (inputs, _) = self.inputs(&options, spool.path(), console)?;
        // The lines are learned anew, because a job does not keep them; the same inputs give the same lines.
        self.boilerplate
            .learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let pair = ExplainedRecord::of_numbers(documents, &inputs, &options, console)?;
        PairExplanation::of(&pair, &self.settings(&options)?, LISTED, console)
    }

    /// Returns the settings of a job over documents that another program distributes over many machines.
    pub(crate) fn dedup_kernel(&self) -> Result<DedupKernel, Failure> {
        self.similarity.method.check()?;
        if !self.boilerplate.is_off() {
            return Err(Failure::Usage(
                "--boilerplate reads all records before comparing the first, and here they are on many machines: leave it out".to_owned(),
            ));
        }
        let options = self.input_options()?;
        let settings = self.settings(&options)?;
        DedupKernel::new(settings, &options).map_err(|error| match error {
            // As for a job, which adds the remedy in terms of options.
            KernelError::Settings(error) => Failure::Job(error),
            other => Failure::Usage(other.to_string()),
        })
    }

    fn input_options(&self) -> Result<InputOptions, Failure> {
        let input = self.input.options(self.keep.order_field()?);
        Ok(self.similarity.options(input))
    }

    fn dedup(
        &self,
        folder: &ResultFolder<'_>,
        console: &Console,
        decisions: Option<&Path>,
    ) -> Result<DedupSummary, Failure> {
        self.similarity.method.check()?;
        let mut options = self.input_options()?;
        // Checked before anything is read, if possible: wrong settings should not cost time.
        // Learned lines are a part of the scheme, so with them the settings are only known after a first reading.
        let early = self.boilerplate.is_off().then(|| self.settings(&options));
        let early = early.transpose()?;
        if self.similarity.method.method == Method::Exact && self.pairs == PairList::All {
            console.warn("--pairs all lists every pair of equal texts with --method exact");
        }
        self.refuse_results_in_collections()?;
        self.refuse_missing_output_as_input()?;
        self.refuse_finished_without_addition()?;
        // Take the lock of `--into` before anything is read, so that two jobs do not compare with the same state and then both add to it.
        let resumed = self.resume.then_some(&*self.output);
        let collections = JobCollections::open(&self.against, self.into.as_deref(), resumed)?;
        collections.refuse_learning(&self.boilerplate)?;
        self.warn_of_new_collection(&collections, console);
        let limits = self.run.document_limits();
        // Temporary files are in the output directory by default.
        folder.make()?;
        let spool = self.run.spool(self.output.clone())?;
        // After the spool, so that an interruption removes the spool first and then may find the folder empty.
        folder.remove_on_interrupt(true);
        if self.resume {
            interrupt::warn_of_nothing_in(&self.output, console);
        }
        let (inputs, against_sources) = self.inputs(&options, spool.path(), console)?;
        self.refuse_replacing_added(&inputs.sources[against_sources..])?;
        self.boilerplate
            .learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let settings = early.map_or_else(|| self.settings(&options), Ok)?;
        // By the new sources only: those of `--against` are not written.
        let output = self.output_options(&inputs.sources[against_sources..], console)?;
        let job = DedupJob::new(&inputs, spool.path())
            .settings(settings)
            .limits(limits)
            .options(options)
            .against_sources(against_sources)
            .checkpoint_bytes(self.checkpoint)
            .against_collection(&collections.against)
            .into_collection(&collections.into)
            // A program keeps the results in a temporary folder, and drops them with an error.
            .adds_last(decisions.is_some())
            .save_decisions_to(decisions)
            .observer(console);
        let summary = console.ended(job.dedup(&self.output, &output))?;
        self.warn_of_unused(&inputs, &summary, console);
        Ok(summary)
    }

    /// Warns if `--against` names the collection that `--into` begins, as on the first day of a daily job.
    fn warn_of_new_collection(&self, collections: &JobCollections, console: &Console) {
        let mut compared = self.against.iter().map(Path::new);
        if collections.against.is_none() && compared.any(|path| self.is_into(path)) {
            console.warn("--against names the new collection of --into: nothing is in it yet");
        }
    }

    /// Returns true if a path is the directory of `--into`, which may not exist yet.
    fn is_into(&self, path: &Path) -> bool {
        let place = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
        // Compare canonical paths: `seen` and `./seen` are the same directory.
        let into = self.into.as_deref().map(place);
        matches!((into, place(path)), (Some(Ok(into)), Ok(path)) if into == path)
    }

    /// Refuses to write results among the files of a collection.
    fn refuse_results_in_collections(&self) -> Result<(), Failure> {
        match self.is_into(&self.output) || DocumentCollection::exists_in(&self.output) {
            true => Err(Failure::Usage(format!(
                "{}: this is the directory of a collection: choose another one for the results with -o",
                self.output.display()
            ))),
            false => Ok(()),
        }
    }

    /// Refuses to read an output directory that does not exist: the job would create it, and then find it empty.
    fn refuse_missing_output_as_input(&self) -> Result<(), Failure> {
        let Ok(output) = std::path::absolute(&self.output) else {
            return Ok(());
        };
        let is_output =
            |path: &&OsString| std::path::absolute(path).is_ok_and(|path| path == output);
        let names = self.input.names()?;
        let mut read = names.iter().chain(&self.against);
        match read.find(is_output) {
            Some(path) if !output.exists() => Err(Failure::from(InputError::NotFound {
                name: path.to_string_lossy().into_owned(),
            })),
            _ => Ok(()),
        }
    }

    /// Refuses to resume a finished job that added nothing to the collection of `--into`, or to one that is gone.
    fn refuse_finished_without_addition(&self) -> Result<(), Failure> {
        let progress = JobProgress::of(&self.output).ok().flatten();
        let is_finished = self.resume && progress == Some(JobProgress::Finished);
        match &self.into {
            Some(into)
                if is_finished
                    && !(has_added(&self.output) && DocumentCollection::exists_in(into)) =>
            {
                let (output, into) = (self.output.display(), into.display());
                Err(Failure::Failed(format!(
                    "{output}: the job in this directory is finished, and what it kept is not in {into}: add it with `lookalike collection \
                     add {into} {output}`, or build the collection from it"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to repeat a job over its results if its kept documents are in the collection: all of them would be removed as copies of themselves,
    /// and their list replaced by an empty one.
    fn refuse_replacing_added(&self, new: &[Source]) -> Result<(), Failure> {
        let is_repeated = |into: &&PathBuf| self.overwrite && DocumentCollection::exists_in(into);
        let Some(into) = self.into.as_ref().filter(is_repeated) else {
            return Ok(());
        };
        // A fixed directory for the results of each day is overwritten every time, so only the same input is refused.
        // Paths and size identify the input: reading it to compare contents would take as long as the job.
        let bytes = new.iter().map(|source| source.bytes).sum();
        // Summaries name lists, not what is in them.
        let named = [&self.input.inputs, self.input.files.lists()].concat();
        match added_count(&self.output, &named, bytes) {
            None => Ok(()),
            Some(added) => {
                let (output, into) = (self.output.display(), into.display());
                Err(Failure::Failed(format!(
                    "{output}: these are the results of a job that read the same input and added {} to a collection: repeated with \
                     --into {into}, it would find them there and keep none of them; choose another directory with -o, or build the \
                     collection again without them",
                    console::counted(added, "document")
                )))
            }
        }
    }

    /// Says why rows of tables become JSON lines: other inputs are no tables.
    fn warn_of_mixed_tables(&self, sources: &[Source], console: &Console) {
        let tables = sources
            .iter()
            .filter(|source| source.is_typed_table())
            .count();
        let mut others = sources.iter().filter(|source| !source.is_typed_table());
        let Some(first) = others.next() else {
            return;
        };
        // Nobody leaves out most of the input for the sake of a few tables.
        if tables < sources.len() - tables || self.output_format.is_some() {
            return;
        }
        let inputs = console::counted(sources.len() as u64, "input");
        let others = match others.count() {
            0 => format!("{} is", first.name()),
            more => format!(
                "{} and {} more are",
                first.name(),
                console::grouped(more as u64)
            ),
        };
        console.warn(&format!(
            "the results are JSON lines, because {others} neither Parquet nor Arrow ({inputs} in all): leave that out for results in Parquet, or \
             choose with --output-format"
        ));
    }

    fn output_options(
        &self,
        sources: &[Source],
        console: &Console,
    ) -> Result<OutputOptions, Failure> {
        let format = self.format(sources)?;
        self.warn_of_mixed_tables(sources, console);
        Ok(OutputOptions::default()
            .format(format)
            .compression(self.compress)
            .annotate(self.annotate)
            .transfer(match self.link {
                true => Transfer::Link,
                false => Transfer::Copy,
            })
            .folder(if_exists(self.resume, self.overwrite))
            .command(command_line()))
    }

    /// Warns of options that had no effect.
    fn warn_of_unused(&self, inputs: &Inputs, summary: &DedupSummary, console: &Console) {
        self.similarity
            .warn(summary.counts.without_category, console);
        // Files that could not be read are linked, too.
        if self.link
            && summary.skipped.is_empty()
            && !inputs.sources.iter().any(Source::is_document)
        {
            console.warn("--link had no effect: none of the documents read is a file of its own");
        }
        // A resumed job has not read the first part, so it does not know whether that contained HTML.
        if !summary.resumed {
            self.input.warn_of_unused(inputs, console);
        }
    }
}
