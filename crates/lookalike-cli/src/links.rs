//! `lookalike links`: inverts links into fields of the pages to which they lead.

use std::ffi::OsString;
use std::path::PathBuf;

use lookalike::{Extraction, HtmlMode};
use lookalike_batch::{LinkInversion, LinksSummary, RecordScan};
use lookalike_corpus::{FieldPath, Format, InputError, InputOptions, Inputs};

use crate::arguments::{FileArguments, LossArguments, RunArguments};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{check_output, files_of, write_output};
use crate::size;

#[derive(clap::Args)]
#[command(after_help = "\
Writes each record as a JSON object with three more fields, in input order:
  anchors    [{\"text\":..,\"before\":..,\"after\":..}], the texts of links to the page
  in_links   addresses of pages that link to it
  out_links  addresses of pages that it links to

A page is identified by its url, else by its id, which for a file is its path. Links come
from the field html of a record, else from its fields out_links and link_texts, as WAT files
have them. Links from a page to itself do not count; pages not in INPUT get no record.

Example:
  lookalike links crawl.warc.gz -o linked.jsonl.zst
  lookalike dedup linked.jsonl.zst --fields anchors:2~5,in-links:1 -o out
  lookalike links crawl.wet.gz --from crawl.wat.gz --from-format wat -o linked.jsonl")]
pub(crate) struct LinksArguments {
    /// Files, directories or globs with pages, or - for standard input
    #[arg(required_unless_present = "inputs_from", value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// Format of all inputs [default: by name and content]
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<Format>,

    /// Take links from these files instead of INPUT; may be repeated
    #[arg(long, value_name = "PATH", help_heading = "Input")]
    from: Vec<OsString>,

    /// Format of all --from files [default: by name and content]
    #[arg(long, value_name = "FORMAT", requires = "from", help_heading = "Input")]
    from_format: Option<Format>,

    /// Field or column that holds the id [default: id, else url, else file and number of the record]
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    id: Option<FieldPath>,

    /// Size limit of a record; longer ones are counted and left out
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse_positive, help_heading = "Input")]
    max_document: u64,

    #[command(flatten)]
    files: FileArguments,

    #[command(flatten)]
    losses: LossArguments,

    /// Number of words before and after a link, within its block, to keep with its text, 0 to 64
    #[arg(
        long,
        value_name = "WORDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u8).range(0..=64),
        help_heading = "Output"
    )]
    window: u8,

    /// Maximum number of linking pages, of anchors and of linked pages to keep for a page; the choice does not depend on the order of
    /// INPUT
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Output"
    )]
    most: u32,

    /// Write to this file instead of standard output; .gz and .zst are compressed
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    run: RunArguments,
}

impl LinksArguments {
    fn options(&self, format: Option<Format>) -> InputOptions {
        let mut options = InputOptions::default()
            .format(format)
            .id_field(self.id.clone())
            .max_document_bytes(self.max_document)
            // Texts are not needed, so use the fastest mode.
            .html(Extraction {
                mode: HtmlMode::Visible,
                ..Extraction::default()
            });
        self.files.apply(&mut options);
        options
    }

    fn invert(&self, console: &Console<'_>) -> Result<LinksSummary, Failure> {
        let limits = self.run.document_limits();
        let spool = self.run.spool(std::env::temp_dir())?;
        let options = self.options(self.format);
        let inputs = Inputs::discover(&self.files.names(&self.inputs)?, &options, spool.path())
            .map_err(|error| unreadable(self.files.with_place(error)))?;
        // `--id` names a field of INPUT; files of links are identified by their URLs.
        let from_options = self.options(self.from_format).id_field(None);
        let discover = || Inputs::discover(&self.from, &from_options, spool.path());
        let from = (!self.from.is_empty()).then(discover);
        let from = from.transpose().map_err(unreadable)?;
        let read = files_of(&inputs).chain(from.iter().flat_map(files_of));
        check_output(self.output.as_deref(), read)?;
        let scan = |inputs, options| {
            RecordScan::new(inputs)
                .options(options)
                .limits(limits.clone())
                .losses(self.losses.policy())
                .observer(console)
        };
        let from = from.as_ref().map(|inputs| scan(inputs, from_options));
        let job = LinkInversion::new(scan(&inputs, options), spool.path())
            .from(from)
            .window(self.window.into())
            .most(self.most as usize);
        // Not a table: records differ in their other fields, which stay unchanged.
        console.ended(write_output(self.output.as_deref(), |out| job.write(out)))
    }
}

pub(crate) fn run(arguments: &LinksArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let summary = arguments.invert(&console)?;
    // The usual cause is that the ids are no addresses, which nothing else would show.
    if summary.links_to_pages == 0 && summary.pages > 0 && !arguments.run.quiet {
        console.warn(&format!(
            "none of {} links points to a page of INPUT, so anchors and in_links are empty: pages are identified by the field url, else \
             by their ids",
            summary.links
        ));
    }
    let output = arguments.output.as_deref();
    console.summarise(&summary, output, console::links_summary)?;
    arguments.losses.end(&summary.skipped)
}

/// Creates the failure for an input that cannot be read. This command has no options that would convert it.
fn unreadable(error: InputError) -> Failure {
    match error.without_place() {
        InputError::Unsupported { .. } => {
            Failure::Failed(format!("{error}; skip such files with --skip-unreadable"))
        }
        _ => error.into(),
    }
}
