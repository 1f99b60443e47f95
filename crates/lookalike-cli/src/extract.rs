//! `lookalike extract`: writes the texts that the other commands compare.

use std::path::PathBuf;

use lookalike::Language;
use lookalike_batch::{ExtractionSummary, TextExtraction, TextFormat};

use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{check_output, files_of, is_table, write_rows};

#[derive(clap::Args)]
#[command(after_help = "\
Example: lookalike extract crawl.warc.gz -o texts.jsonl.zst

Prints {\"id\":..,\"source\":..,\"record\":..,\"offset\":..,\"charset\":..,\"language\":..,\"text\":..}
for each document, in input order; without a text, null and the reason in \"without\". With
--output-format text, prints only the texts, each followed by a line with a form feed.")]
pub(crate) struct ExtractArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Write to this file instead of standard output; .gz and .zst are compressed, .parquet is a table
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Format of the output: jsonl (texts and their origin) or text
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "jsonl",
        help_heading = "Output"
    )]
    output_format: TextFormat,

    /// Detect the language of each text; if it is clear, the field `language` has its two-letter code
    #[arg(long, help_heading = "Output")]
    language: bool,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// A function that detects the language of a text.
type LanguageDetector = fn(&str) -> Option<Language>;

/// Returns a language detector, if requested.
#[cfg(feature = "languages")]
fn language_of(wished: bool) -> Result<Option<LanguageDetector>, Failure> {
    Ok(wished.then_some(lookalike::language::detect))
}

#[cfg(not(feature = "languages"))]
fn language_of(wished: bool) -> Result<Option<LanguageDetector>, Failure> {
    match wished {
        true => Err(Failure::Usage(
            "this build cannot detect languages, which needs the Cargo feature `languages`: install lookalike with `--features full`, or leave --language out"
                .to_owned(),
        )),
        false => Ok(None),
    }
}

/// A line with the fields that every table of texts has.
// Columns are inferred from lines: a table without records would have none, but programs that read many files expect the same columns in each.
const TABLE: &str = r#"{"id":"","source":"","record":0,"offset":0,"charset":"","text":""}"#;

pub(crate) fn run(arguments: &ExtractArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let summary = arguments.write_texts(&console)?;
    let output = arguments.output.as_deref();
    console.summarise(&summary, output, console::extraction_summary)?;
    arguments.input.losses.end(&summary.skipped)
}

impl ExtractArguments {
    fn write_texts(&self, console: &Console<'_>) -> Result<ExtractionSummary, Failure> {
        if self.output.as_deref().is_some_and(is_table) && self.output_format == TextFormat::Text {
            let why = "a .parquet file holds texts and their origin: leave --output-format text out, or choose another name";
            return Err(Failure::Usage(why.to_owned()));
        }
        let language = language_of(self.language)?;
        let mut options = self.input.options(None);
        let limits = self.run.document_limits();
        let spool = self.run.spool(std::env::temp_dir())?;
        let inputs = self.input.discover(&options, spool.path(), None, console)?;
        // After discovery, which finds out what is read: the output must be none of it.
        check_output(self.output.as_deref(), files_of(&inputs))?;
        self.boilerplate
            // This reads all inputs an additional time; those that can only be read once were copied to the spool.
            .learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let scan = self.input.scan(&inputs, &options, &limits, console);
        let job = TextExtraction::new(scan)
            .format(self.output_format)
            .language(language);
        let written = write_rows(self.output.as_deref(), TABLE, |out| job.write(out));
        let summary = console.ended(written)?;
        self.input.warn_of_unused(&inputs, console);
        Ok(summary)
    }

    /// Writes the texts for another program to the output file.
    pub(crate) fn extract_for_program(
        &self,
        console: &Console<'_>,
    ) -> Result<ExtractionSummary, Failure> {
        match self.output {
            Some(_) => self.write_texts(console),
            None => Err(Failure::Usage(
                "texts need a file: name one with --output".to_owned(),
            )),
        }
    }
}
