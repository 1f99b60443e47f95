//! `lookalike pairs`: lists all verified pairs.

use std::ffi::OsString;
use std::path::PathBuf;

use lookalike::ParagraphRule;
use lookalike_batch::{
    DedupJob, JobFolder, JobLimits, JobObserver, JobSettings, PairScope, PairsSummary,
    ParagraphCounts, ParagraphRecords, ParagraphSplit, SkippedRow,
};
use lookalike_corpus::{InputOptions, Inputs};

use serde_json::json;

use crate::against::{against_first, discover_against};
use crate::arguments::{
    BoilerplateArguments, InputArguments, RepeatedIdArguments, RunArguments, SimilarityArguments,
};
use crate::caller::is_program;
use crate::collection::JobCollections;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::interrupt;
use crate::output_file::{check_output, files_of, is_in_system_folder, write_rows};
use crate::size;

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object per line, {\"a\":..,\"b\":..,\"similarity\":..}, with a < b, sorted by a
and b; with --method simhash also the distance of the fingerprints. Equal texts are pairs of
similarity 1.

With --unit paragraphs, paragraphs of different documents are compared; a_position and
b_position are the numbers of paragraphs before them in their documents. If a document
repeats a paragraph, only the first one counts. All texts are copied to the directory for
temporary files.

Examples:
  lookalike pairs news.jsonl --threshold 0.5 -o pairs.jsonl
  lookalike pairs news.jsonl --threshold 0.5 -o pairs.jsonl --resume    after a kill
  lookalike pairs pages/ --method minhash --threshold 0.9
  lookalike pairs new.jsonl --against old.jsonl       pairs with at least one new document
  lookalike pairs essays/ --unit paragraphs")]
pub(crate) struct PairsArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Earlier documents to compare with; pairs of two of them are not listed
    ///
    /// Files, directories or results of dedup; may be repeated. Or the directory of a collection, which is not read again: see
    /// `lookalike collection`.
    #[arg(long, value_name = "PATH", help_heading = "Input")]
    against: Vec<OsString>,

    #[command(flatten)]
    similarity: SimilarityArguments,

    /// Compare documents, or paragraphs of different documents
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "documents",
        conflicts_with_all = ["within", "across"],
        help_heading = "Method"
    )]
    unit: PairUnit,

    /// End paragraphs at blank lines (blank) or at every line (lines) [default: auto, lines if no line is blank]
    #[arg(long, value_name = "RULE", help_heading = "Method")]
    paragraphs: Option<ParagraphRule>,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    repeats: RepeatedIdArguments,

    /// Write to this file instead of standard output; .gz and .zst are compressed, .parquet is a table
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Resume an interrupted search with the same options
    ///
    /// It continues from its last checkpoint of reading, and does not compare again what was compared. The inputs must be the same, byte
    /// for byte. Without this option the search starts again, and the checkpoints of the interrupted one are removed.
    #[arg(long, requires = "output", help_heading = "Output")]
    resume: bool,

    /// Amount of input between two checkpoints while reading, per thread
    ///
    /// Input counts as decompressed. Inputs shorter than this leave no checkpoint. Checkpoints are in FILE.pairing until the output is
    /// complete and take about as much disk as the decompressed input, and 24 bytes per pair.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = size::parse_positive, requires = "output", hide_short_help = true, help_heading = "Output")]
    checkpoint: u64,

    #[command(flatten)]
    run: RunArguments,
}

/// The unit of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PairUnit {
    Documents,
    Paragraphs,
}

impl PairsArguments {
    /// Refuses options that do not apply to the unit of comparison.
    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str| Err(Failure::Usage(what.to_owned()));
        if self.unit == PairUnit::Documents {
            return match self.paragraphs {
                Some(_) => {
                    refuse("--paragraphs applies only with --unit paragraphs: add that option")
                }
                None => Ok(()),
            };
        }
        if !self.against.is_empty() {
            return refuse(
                "--against compares whole documents: leave it out, or leave out --unit paragraphs",
            );
        }
        if self.similarity.reads_fields() {
            let what = "fields describe a whole record, not a single paragraph: leave out --unit paragraphs, or the options that name \
                        fields";
            return refuse(what);
        }
        Ok(())
    }

    /// Divides the documents if paragraphs are compared.
    fn divide(
        &self,
        inputs: &Inputs,
        options: &InputOptions,
        limits: &JobLimits,
        spool: &std::path::Path,
        console: &Console,
    ) -> Result<Option<ParagraphRecords>, Failure> {
        if self.unit == PairUnit::Documents {
            return Ok(None);
        }
        let split = ParagraphSplit::new(self.input.scan(inputs, options, limits, console))
            .rule(self.paragraphs.unwrap_or_default())
            .repeated_ids(self.repeats.repeated_ids);
        Ok(Some(split.write(&spool.join("paragraphs.jsonl"))?))
    }

    /// Enters the folder that stores what was read and found until the output is complete.
    fn checkpoint(&self, console: &Console<'_>) -> Result<Option<JobFolder>, Failure> {
        let enter = |output: &PathBuf| {
            let enter = || JobFolder::of_pairs(output, self.resume);
            interrupt::resumable(self.resume, console, enter)
        };
        // Another program writes the output into a folder of its own, which it does not use again.
        let output = self.output.as_ref().filter(|_| !is_program());
        let output = output.filter(|output| !is_in_system_folder(output));
        output.map(enter).transpose()
    }

    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        let settings = self.similarity.settings(read)?;
        let scope = match self.unit {
            PairUnit::Documents => settings.scope,
            // The category of a paragraph is its document, so paragraphs of the same document are never compared.
            PairUnit::Paragraphs => PairScope::Across,
        };
        Ok(settings
            .scope(scope)
            .repeated_ids(self.repeats.repeated_ids)
            .losses(self.input.losses.policy()))
    }

    /// Returns a line with the fields that every table of such pairs has.
    fn example(&self, settings: &JobSettings) -> String {
        let positions = self.unit == PairUnit::Paragraphs;
        let mut line = json!({"a": "", "b": "", "similarity": 0.5});
        if positions {
            line = json!({"a": "", "a_position": 0, "b": "", "b_position": 0, "similarity": 0.5});
        } else {
            // Only some rows have it, so a table must be told of the column.
            line["visible_similarity"] = json!(0.5);
        }
        if settings.method.has_fingerprints() {
            line["distance"] = json!(0);
        }
        line.to_string()
    }

    /// Finds the pairs and writes them.
    fn write_pairs(&self, console: &Console<'_>) -> Result<PairsFound, Failure> {
        self.similarity.method.check()?;
        self.check()?;
        let mut options = self.similarity.options(self.input.options(None));
        // Checked before anything is read, if possible: wrong settings should not cost time.
        let early = self.boilerplate.is_off().then(|| self.settings(&options));
        let early = early.transpose()?;
        let limits = self.run.document_limits();
        let collections = JobCollections::open(&self.against, None, None)?;
        collections.refuse_learning(&self.boilerplate)?;
        let spool = self.run.spool(std::env::temp_dir())?;
        let against = discover_against(&self.against, |_| false, &options, spool.path())?;
        let new = self.input.discover(&options, spool.path(), None, console)?;
        let (inputs, against_sources) = against_first(against, new, console)?;
        let read = files_of(&inputs).chain(self.similarity.scheme.files());
        check_output(self.output.as_deref(), read)?;
        // After everything that may refuse the command, because entering without `--resume` removes what an earlier search left.
        let checkpoint = self.checkpoint(console)?;
        self.boilerplate
            .learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let settings = early.map_or_else(|| self.settings(&options), Ok)?;
        let example = self.example(&settings);
        let divided = self.divide(&inputs, &options, &limits, spool.path(), console)?;
        // Declared before `job`, which borrows it in one of two cases.
        let records;
        let mut job = DedupJob::new(&inputs, spool.path())
            .options(options)
            .against_sources(against_sources)
            .against_collection(&collections.against);
        if let Some(divided) = &divided {
            let options = divided.options();
            // Paragraphs are records in a file of their own, so the job for documents compares them unchanged.
            records = Inputs::discover(&[divided.path.clone().into()], &options, spool.path())?;
            // With its own reading options, because the file consists of JSON lines with extracted texts.
            job = DedupJob::new(&records, spool.path())
                .options(options)
                .paragraphs(divided);
        }
        let job = job.settings(settings).limits(limits);
        let job = job.pairs_checkpoint(&checkpoint);
        let job = job.checkpoint_bytes(self.checkpoint).observer(console);
        let written = write_rows(self.output.as_deref(), &example, |out| job.write_pairs(out));
        let summary = console.ended(written)?;
        // Only once the output has its name: until then it can be made again from the checkpoint.
        checkpoint.map_or(Ok(()), JobFolder::finish)?;
        self.similarity
            .warn(summary.counts.without_category, console);
        self.input.warn_of_unused(&inputs, console);
        Ok(PairsFound {
            summary,
            divided: divided.map(|divided| divided.counts),
        })
    }

    /// Writes the pairs for another program to the output file.
    pub(crate) fn pairs_for_program(&self, console: &Console<'_>) -> Result<(), Failure> {
        match self.output {
            Some(_) => {
                let found = self.write_pairs(console)?;
                self.input.losses.end_answered(found.skipped())
            }
            None => Err(Failure::Usage(
                "pairs need a file: name one with --output".to_owned(),
            )),
        }
    }
}

/// Counts of a run, for documents or for paragraphs.
struct PairsFound {
    summary: PairsSummary,
    divided: Option<ParagraphCounts>,
}

impl PairsFound {
    fn skipped(&self) -> &[SkippedRow] {
        // Losses are those of the first reading; the second one reads a file that was just written.
        let divided = self.divided.as_ref();
        divided.map_or(&self.summary.skipped, |divided| &divided.skipped)
    }
}

pub(crate) fn run(arguments: &PairsArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let found = arguments.write_pairs(&console)?;
    if arguments.run.json {
        let output = arguments.output.as_deref();
        match &found.divided {
            Some(divided) => console::json_summary(
                &json!({"pairs": found.summary.pairs, "paragraphs": divided}),
                output,
            )?,
            None => console::json_summary(&found.summary, output)?,
        }
    } else if !arguments.run.quiet {
        console::pairs_summary(&found.summary, found.divided.as_ref(), &console.measured());
    }
    arguments.input.losses.end(found.skipped())
}
