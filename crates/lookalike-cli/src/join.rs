//! `lookalike join`: every pair of two collections of fingerprints within a distance.

use std::io::{BufWriter, stdout};
use std::path::PathBuf;

use lookalike_batch::{FingerprintJoin, JobObserver};
use lookalike_corpus::{AtomicFile, Compression};

use crate::arguments::{LossArguments, RunArguments};
use crate::console::{self, Console};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object a line, {\"f\":..,\"q\":..,\"distance\":..}, sorted by f, then q, each line
once; fingerprints are called by their ids where their file has ids. F streams from disk, Q
is kept in memory: let Q be the smaller one. With F alone: all pairs in it,
{\"a\":..,\"b\":..,\"distance\":..}, a < b; equal fingerprints are one, called by the least of
their ids, and each other id is a pair with that one only. F is in memory then.

F may be an index of `lookalike index build`: Q streams by then, and may be large; it is
searched where it lies.

Files are fingerprint files, archives, JSON Lines as of `lookalike fingerprint` (each also
.gz or .zst), Parquet tables with a column fingerprint, or raw little-endian numbers of 64
bits in a file named .u64; - is standard input.

Example:
  lookalike fingerprint new.jsonl -o new.fp.jsonl
  lookalike join crawl.u64 new.fp.jsonl --distance 3 -o pairs.jsonl
  lookalike join crawl.lkix new.fp.jsonl        the same against an index
  lookalike join new.fp.jsonl                   all pairs in one file")]
pub(crate) struct JoinArguments {
    /// The large collection, which streams by
    #[arg(value_name = "F")]
    f: PathBuf,

    /// The small collection, which is kept in memory; without it, F is joined with itself
    #[arg(value_name = "Q")]
    q: Option<PathBuf>,

    /// Most bits in which the fingerprints of a pair differ, 0 to 16
    #[arg(long, value_name = "BITS", default_value_t = 3)]
    distance: u32,

    /// Write to this file (.gz and .zst are packed) instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: &JoinArguments) -> Result<(), Failure> {
    // F may be an index, which is searched where it lies.
    crate::bus_error::name_file(&arguments.f);
    let limits = arguments.run.limits();
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let console = Console::new(arguments.run.quiet);
    let job = FingerprintJoin {
        f: &arguments.f,
        q: arguments.q.as_deref(),
        distance: arguments.distance,
        losses: arguments.losses.policy(),
        limits: &limits,
        folder: spool.path(),
        observer: &console,
    };
    let done = match &arguments.output {
        Some(path) => write_file(&job, path),
        None => {
            let mut out = BufWriter::with_capacity(1 << 18, stdout().lock());
            job.write(&mut out).map_err(Failure::from)
        }
    };
    console.clear();
    let summary = done?;
    if arguments.run.json {
        console::json_summary(&summary, arguments.output.as_deref())?;
    } else if !arguments.run.quiet {
        console::join_summary(&summary, &console.measured());
    }
    let sides = [&summary.f].into_iter().chain(&summary.q);
    arguments.losses.end(sides.flat_map(|side| &side.skipped))
}

fn write_file(
    job: &FingerprintJoin<'_>,
    path: &std::path::Path,
) -> Result<lookalike_batch::JoinSummary, Failure> {
    let failed = |error| {
        Failure::Failed(format!(
            "{}: {error}: choose another file with -o",
            path.display()
        ))
    };
    let name = path.to_string_lossy();
    let packed = [Compression::Gzip, Compression::Zstd]
        .into_iter()
        .find(|compression| name.ends_with(compression.suffix()));
    let mut file = AtomicFile::create(path, packed.unwrap_or(Compression::None)).map_err(failed)?;
    let summary = job.write(&mut file)?;
    file.commit().map_err(failed)?;
    Ok(summary)
}
