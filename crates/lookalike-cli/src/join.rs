//! `lookalike join`: finds every pair of two collections of fingerprints within a distance, or of longer sketches with enough in common.

use std::ffi::OsString;
use std::path::PathBuf;

use lookalike::Preset;
use lookalike_batch::fingerprints::files::FingerprintSource;
use lookalike_batch::fingerprints::sketches::MinEqual;
use lookalike_batch::{FingerprintJoin, FingerprintShard, JobFolder};

use crate::arguments::{
    LossArguments, RunArguments, ensure_preset_fits, fingerprint_sources, preset_distance,
    preset_name,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::interrupt;
use crate::output_file::{check_output, is_in_system_folder, write_output};
use crate::radius_warning::{self, DEFAULT_DISTANCE};

#[derive(clap::Args)]
#[command(
    mut_arg("distance", preset_distance),
    override_usage = "lookalike join [OPTIONS] <F> [Q]\n       lookalike join [OPTIONS] <F>... --queries <Q>",
    after_help = "\
Prints one JSON object per line, {\"f\":..,\"q\":..,\"distance\":..}, sorted by f, then q, without
repeats; fingerprints are named by their ids if their file has ids. F streams from disk and
Q is kept in memory: let Q be the smaller one. With F alone: all pairs in it,
{\"a\":..,\"b\":..,\"distance\":..}, a < b; equal fingerprints count as one, named by the smallest
of their ids, and each other id is paired with that one only. F is then in memory.

F may be indexes of `lookalike index build`: then Q streams and may be large, and the
indexes are searched on disk. Their pages that a search has touched count as resident
beyond --memory; the system takes them back when it needs memory.

F and Q are files, quoted globs, s3://, gs://, az:// or https:// addresses, or - for
standard input: fingerprint files, archives, JSON Lines from `lookalike fingerprint` (each
also .gz or .zst), Parquet tables with a column fingerprint (not on standard input), or raw
little-endian numbers in a file named .u64, .u32 or .u128. Put u64: before the name of other
raw numbers, as in u64:- (u64x6:- for sketches of six). All fingerprints have the same
width: 64, 32 or 128 bits.

With --equal, the files come from `lookalike fingerprint --sketch super-shingle:GxR` or
minhash:N. A pair shares at least that many super-shingles or min-hash values; its distance
is the number of those that differ. Every such pair is found. F and Q are both in memory,
unless F are indexes.

With -o, a join that is killed leaves FILE.joining, from which --resume continues.

--shard finds one part of the pairs, on any machine; a shard of a self-join keeps only its
part of F in memory, with --equal all of it. `lookalike merge` merges the lists of all
shards into the list of the whole join.

Example:
  lookalike fingerprint new.jsonl -o new.fp.jsonl
  lookalike join crawl.u64 new.fp.jsonl --distance 3 -o pairs.jsonl
  lookalike join crawl.lkix new.fp.jsonl        the same against an index
  lookalike join new.fp.jsonl                   all pairs in one file
  lookalike join 'crawl/*.lkfp' --shard 1/4 -o part1.jsonl
  lookalike join shingles.lkfp --equal 2        at least two super-shingles in common"
)]
pub(crate) struct JoinArguments {
    /// Large collection, streamed from disk; of two arguments, the second is Q unless --queries is given
    #[arg(value_name = "F", required = true)]
    collections: Vec<OsString>,

    /// Small collection, kept in memory; may be repeated
    #[arg(long, value_name = "Q")]
    queries: Vec<OsString>,

    /// Maximum Hamming distance of a pair, 0 to 16 bits
    #[arg(long, value_name = "BITS", default_value_t = DEFAULT_DISTANCE)]
    distance: u32,

    /// Distance of `lookalike fingerprint --preset NAME`: one-topic (12 of 128 bits)
    #[arg(long, value_name = "NAME", value_parser = preset_name(), conflicts_with_all = ["distance", "equal"])]
    preset: Option<Preset>,

    /// Minimum number of super-shingles or min-hash values that a pair must share: a number, or a share such as 0.8
    #[arg(long, value_name = "NUMBER", conflicts_with = "distance")]
    equal: Option<MinEqual>,

    /// Find one of N parts of the pairs, such as 2/5
    #[arg(long, value_name = "I/N", default_value_t = FingerprintShard::ALL, hide_default_value = true)]
    shard: FingerprintShard,

    /// Write to this file instead of standard output; .gz and .zst are compressed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Resume an interrupted join with the same options; pairs already found are not searched for again
    ///
    /// The inputs must be the same. Without this option the join starts again, and what the interrupted one found is removed.
    #[arg(long, requires = "output")]
    resume: bool,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

impl JoinArguments {
    /// Returns the inputs for F and those for Q.
    fn sides(&self) -> Result<(&[OsString], &[OsString]), Failure> {
        match (self.collections.as_slice(), self.queries.as_slice()) {
            (f @ [_], []) => Ok((f, &[])),
            // Two bare arguments are F and Q, as in the shell's `join`; with more it would be a guess.
            ([_, _], []) => Ok(self.collections.split_at(1)),
            (_, []) => Err(Failure::Usage(
                "more than two collections, and it is unclear which of them are Q: name those with --queries; to join many files with \
                 themselves, quote the glob, so that it is one argument"
                    .to_owned(),
            )),
            (f, q) => Ok((f, q)),
        }
    }

    /// Enters the folder that stores pairs until the output is complete.
    fn checkpoint(&self, console: &Console<'_>) -> Result<Option<JobFolder>, Failure> {
        let enter = |output: &PathBuf| {
            let enter = || JobFolder::of_join(output, self.resume);
            interrupt::resumable(self.resume, console, enter)
        };
        let output = self.output.as_ref();
        let output = output.filter(|output| !is_in_system_folder(output));
        output.map(enter).transpose()
    }
}

pub(crate) fn run(arguments: &JoinArguments) -> Result<(), Failure> {
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let console = arguments.run.console();
    let (f, q) = arguments.sides()?;
    let f = fingerprint_sources(f, spool.path())?;
    let q = fingerprint_sources(q, spool.path())?;
    let read = f.iter().chain(&q).map(FingerprintSource::path);
    check_output(arguments.output.as_deref(), read)?;
    if let Some(preset) = arguments.preset {
        ensure_preset_fits(preset, f.iter().chain(&q), &console)?;
    }
    // F may be an index, which is searched in place. A truncated file under a mapping kills the process by SIGBUS; the message then names it.
    if let [one] = f.as_slice() {
        crate::bus_error::name_file(one.path());
    }
    // After everything that may refuse the command, because entering without `--resume` removes what an earlier join left.
    let checkpoint = arguments.checkpoint(&console)?;
    let job = FingerprintJoin::new(&f, spool.path())
        .queries(&q)
        .distance(arguments.distance)
        .equal(arguments.equal)
        .shard(arguments.shard)
        .losses(arguments.losses.policy())
        .limits(arguments.run.limits())
        .checkpoint(checkpoint.as_ref())
        .observer(&console);
    let output = arguments.output.as_deref();
    let summary = console.ended(write_output(output, |out| job.write(out)))?;
    // Only once the output has its name: until then it can be made again from the checkpoint.
    checkpoint.map_or(Ok(()), JobFolder::finish)?;
    console.summarise(&summary, output, console::join_summary)?;
    let sides = summary.f.iter().chain(&summary.q);
    if arguments.run.warns() && arguments.equal.is_none() {
        let schemes = sides.clone().filter_map(|side| side.scheme_id.as_deref());
        radius_warning::warn_of_schemes(schemes, arguments.distance);
    }
    arguments.losses.end(sides.flat_map(|side| &side.skipped))
}
