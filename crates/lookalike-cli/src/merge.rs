//! `lookalike merge`: merges lists of pairs.

use std::ffi::OsString;
use std::path::PathBuf;

use lookalike_batch::PairMerge;
use lookalike_batch::fingerprints::files::FingerprintSource;

use crate::arguments::fingerprint_sources;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{check_output, write_output};
use crate::spool::Spool;

#[derive(clap::Args)]
#[command(after_help = "\
Lists are outputs of `lookalike join` with --shard, or for parts of Q: sorted lines, also
.gz or .zst, or - for standard input. The result is byte for byte what a single join of
everything would have written; a pair in several lists is written once.

Example:
  lookalike join 'crawl/*.lkfp' --shard 1/2 -o part1.jsonl      on one machine
  lookalike join 'crawl/*.lkfp' --shard 2/2 -o part2.jsonl      on another
  lookalike merge part1.jsonl part2.jsonl -o pairs.jsonl")]
pub(crate) struct MergeArguments {
    /// Lists of pairs: files, globs, or addresses of objects
    #[arg(value_name = "LIST", required = true)]
    lists: Vec<OsString>,

    /// Write to this file instead of standard output; .gz and .zst are compressed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Print a summary as one JSON object
    #[arg(long)]
    json: bool,

    /// Print no progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(arguments: &MergeArguments) -> Result<(), Failure> {
    let spool = Spool::new(&std::env::temp_dir())?;
    let lists = fingerprint_sources(&arguments.lists, spool.path())?;
    let output = arguments.output.as_deref();
    check_output(output, lists.iter().map(FingerprintSource::path))?;
    let console = Console::new(arguments.quiet).json(arguments.json);
    let job = PairMerge::new(&lists).observer(&console);
    let summary = console.ended(write_output(output, |out| job.write(out)))?;
    Ok(console.summarise(&summary, output, console::merge_summary)?)
}
