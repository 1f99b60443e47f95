//! `lookalike pairs`: all verified pairs on standard output.

use lookalike::ParagraphRule;
use lookalike_batch::{
    DedupJob, JobLimits, JobObserver, JobSettings, PairScope, ParagraphRecords, ParagraphSplit,
    RepeatedIds,
};
use lookalike_corpus::{InputOptions, Inputs};

use serde_json::json;

use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments, SimilarityArguments};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::write_standard_output;

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object a line, {\"a\":..,\"b\":..,\"similarity\":..}, a < b, sorted by a and b;
with --method simhash also the distance of the fingerprints. Equal texts are pairs of
similarity 1.

With --unit paragraphs, paragraphs of different documents are compared, and a_position and
b_position tell how many paragraphs of the document come before. Of a paragraph that a
document repeats the first counts. All texts are copied to the directory for temporary
files.")]
pub(crate) struct PairsArguments {
    #[command(flatten)]
    input: InputArguments,

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

    /// End paragraphs at blank lines (blank) or at every line (lines) [default: auto, lines where no line is blank]
    #[arg(long, value_name = "RULE", help_heading = "Method")]
    paragraphs: Option<ParagraphRule>,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    /// Records that repeat an id: number (ID#2, ID#3, ...) or refuse
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "number",
        help_heading = "Input"
    )]
    repeated_ids: RepeatedIds,

    #[command(flatten)]
    run: RunArguments,
}

/// Things that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PairUnit {
    Documents,
    Paragraphs,
}

impl PairsArguments {
    /// Refuses options that say nothing of what is compared.
    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str| Err(Failure::Usage(what.to_owned()));
        if self.unit == PairUnit::Documents {
            return match self.paragraphs {
                Some(_) => refuse("--paragraphs says what ends a paragraph: add --unit paragraphs"),
                None => Ok(()),
            };
        }
        if self.similarity.reads_fields() {
            let what = "fields of a record say nothing of a single paragraph: leave out --unit paragraphs, or the options that \
                        name fields";
            return refuse(what);
        }
        Ok(())
    }

    /// Divides the documents, where paragraphs are compared.
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
        let split = ParagraphSplit {
            inputs,
            options,
            rule: self.paragraphs.unwrap_or_default(),
            repeated_ids: self.repeated_ids,
            limits,
            losses: self.input.losses.policy(),
            observer: console,
        };
        Ok(Some(split.write(&spool.join("paragraphs.jsonl"))?))
    }

    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        let settings = self.similarity.settings(read)?;
        let scope = match self.unit {
            PairUnit::Documents => settings.scope,
            // The category of a paragraph is its document: none is compared within its own.
            PairUnit::Paragraphs => PairScope::Across,
        };
        Ok(settings
            .scope(scope)
            .repeated_ids(self.repeated_ids)
            .losses(self.input.losses.policy()))
    }
}

pub(crate) fn run(arguments: &PairsArguments) -> Result<(), Failure> {
    arguments.similarity.check()?;
    arguments.check()?;
    let mut options = arguments.similarity.options(arguments.input.options(None));
    let boilerplate = &arguments.boilerplate;
    // Before anything is read where that can be: wrong settings should not cost time.
    let early = match boilerplate.is_off() {
        true => Some(arguments.settings(&options)?),
        false => None,
    };
    let limits = arguments.run.limits();
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = arguments
        .input
        .discover(&options, spool.path(), None, arguments.run.quiet)?;
    let console = Console::new(arguments.run.quiet);
    boilerplate.learn(&inputs, &mut options, &limits, spool.path(), &console)?;
    let settings = match early {
        Some(settings) => settings,
        None => arguments.settings(&options)?,
    };
    let divided = arguments.divide(&inputs, &options, &limits, spool.path(), &console)?;
    // Declared before `job`, which borrows it in one of two cases.
    let records;
    let mut job = DedupJob::new(&inputs, spool.path()).options(options);
    if let Some(divided) = &divided {
        let options = divided.options();
        // Paragraphs are records of a file of their own, so the job that compares documents compares them
        // unchanged.
        records = Inputs::discover(&[divided.path.clone().into()], &options, spool.path())?;
        // Its own reading options: what is there are our own lines of JSON, whose texts are extracted already.
        job = DedupJob::new(&records, spool.path())
            .options(options)
            .paragraphs(divided);
    }
    let job = job.settings(settings).limits(limits).observer(&console);
    let done = write_standard_output(|out| job.write_pairs(out));
    console.clear();
    let summary = done?;
    let divided = divided.as_ref().map(|divided| &divided.counts);
    if !arguments.run.quiet {
        arguments.similarity.warn(summary.counts.without_category);
    }
    arguments.input.warn_of_unused(&inputs, arguments.run.quiet);
    if arguments.run.json {
        match divided {
            Some(divided) => {
                console::json_beside(&json!({"pairs": summary.pairs, "paragraphs": divided}))
            }
            None => console::json_beside(&summary),
        }
    } else if !arguments.run.quiet {
        console::pairs_summary(&summary, divided, &console.measured());
    }
    // Losses are those of the first reading; the second is of a file that was just written.
    let skipped = divided.map_or(&summary.skipped, |divided| &divided.skipped);
    arguments.input.losses.end(skipped)
}
