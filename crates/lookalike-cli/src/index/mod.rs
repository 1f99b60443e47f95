//! `lookalike index`: an index of fingerprints or longer sketches on disk. One file per subcommand.

mod build;
mod extend;
mod findings;
mod info;
mod page;
mod search;
mod sketch_info;
mod sketch_search;

use clap::Subcommand;
use lookalike_batch::fingerprints::sketches::is_sketch_index;

use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike fingerprint crawl.jsonl -o crawl.fp.jsonl
  lookalike index build crawl.fp.jsonl -o crawl.lkix
  lookalike index search crawl.lkix 5f3a9c0012d4e877 --distance 3
  lookalike index info crawl.lkix --verify --page crawl.html
  lookalike index build shingles.lkfp --equal 2 -o shingles.lkix
  lookalike index search shingles.lkix new-shingles.lkfp")]
pub(crate) struct IndexArguments {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Subcommand)]
enum IndexCommand {
    /// Build an index from files of fingerprints or sketches
    Build(build::IndexBuildArguments),
    /// Add fingerprints or sketches to an index
    Extend(extend::IndexExtendArguments),
    /// Merge several indexes into one
    Merge(extend::IndexMergeArguments),
    /// Find all stored fingerprints within a distance, or sketches with enough in common
    Search(search::IndexSearchArguments),
    /// Show what an index holds, and check it
    Info(info::IndexInfoArguments),
}

pub(crate) fn run(arguments: &IndexArguments) -> Result<(), Failure> {
    match &arguments.command {
        IndexCommand::Build(arguments) => build::run(arguments),
        IndexCommand::Extend(arguments) => extend::extend(arguments),
        IndexCommand::Merge(arguments) => extend::merge(arguments),
        IndexCommand::Search(arguments) => {
            let plan = search::plan(arguments)?;
            match plan.indexes.iter().any(|path| is_sketch_index(path)) {
                true => sketch_search::run(&plan),
                false => search::run(&plan),
            }
        }
        IndexCommand::Info(arguments) if is_sketch_index(&arguments.index) => {
            sketch_info::print_info(arguments)
        }
        IndexCommand::Info(arguments) => info::run(arguments),
    }
}
