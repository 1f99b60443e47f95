//! `lookalike index`: a Hamming index on disk, one file a subcommand.

mod build;
mod info;
mod page;
mod search;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike fingerprint crawl.jsonl -o crawl.fp.jsonl
  lookalike index build crawl.fp.jsonl -o crawl.lkix
  lookalike index search crawl.lkix 5f3a9c0012d4e877 --distance 3
  lookalike index info crawl.lkix --verify --html crawl.html")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build an index from files of fingerprints
    Build(build::Arguments),
    /// Find all stored fingerprints within a distance
    Search(search::Arguments),
    /// Tell what an index holds, and check it
    Info(info::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::Search(arguments) => search::run(arguments),
        Command::Info(arguments) => info::run(arguments),
    }
}
