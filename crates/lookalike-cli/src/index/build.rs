//! `lookalike index build`: builds an index file from files of fingerprints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike::Preset;
use lookalike_batch::BatchError;
use lookalike_batch::can_resume;
use lookalike_batch::fingerprints::files::{CodesSummary, FingerprintSource};
use lookalike_batch::fingerprints::index::{IndexBuild, IndexSummary, is_index, stated_width};
use lookalike_batch::fingerprints::sketches::{MinEqual, is_sketch_index};
use lookalike_hamming::Layout;

use crate::arguments::{
    KnownFingerprints, LossArguments, RunArguments, ensure_preset_fits, fingerprint_sources,
    output_path, preset_distance, preset_name,
};
use crate::console::{self, Console};
use crate::design::design_of_name;
use crate::failure::Failure;
use crate::interrupt;
use crate::output_file::{check_output, resolve_links};
use crate::radius_warning::{self, DEFAULT_DISTANCE};

#[derive(clap::Args)]
#[command(
    mut_arg("distance", preset_distance),
    after_help = "\
Inputs are fingerprint files, archives, JSON Lines from `lookalike fingerprint` (each also
.gz or .zst), Parquet tables with a column fingerprint, raw little-endian numbers in a file
named .u64, .u32 or .u128, or other indexes; quoted globs and addresses of object stores
stand for many, - for standard input. All have the same width, which is also that of the
index. Equal fingerprints are stored once, with the ids of all of them.

With --equal, the inputs are files of `lookalike fingerprint --sketch super-shingle:GxR` or
minhash:N, or indexes of these. A search then finds every sketch that has at least that many
super-shingles or min-hash values in common with the query.

An interrupted build leaves INDEX.building, from which --resume continues.

Examples:
  lookalike index build january.fp.jsonl february.fp.jsonl -o pages.lkix --memory 4G
  lookalike index build shingles.lkfp --equal 2 -o pages.lkix"
)]
pub(crate) struct IndexBuildArguments {
    /// Files of fingerprints
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// The index; written under a temporary name and renamed when complete
    #[arg(long, short, value_name = "INDEX", value_parser = output_path())]
    output: PathBuf,

    /// Maximum Hamming distance between a query and a match, 0 to 16 bits
    #[arg(long, value_name = "BITS", default_value_t = DEFAULT_DISTANCE, value_parser = clap::value_parser!(u32).range(0..=16))]
    distance: u32,

    /// Distance of `lookalike fingerprint --preset NAME`: one-topic (12 of 128 bits)
    #[arg(long, value_name = "NAME", value_parser = preset_name(), conflicts_with_all = ["distance", "equal"])]
    preset: Option<Preset>,

    /// Minimum number of super-shingles or min-hash values in common: a number, or a share such as 0.8
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["distance", "tables", "design", "layout"])]
    equal: Option<MinEqual>,

    /// Maximum number of tables; see `lookalike design` [default: half the distance plus one, the least memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    tables: Option<u32>,

    /// Design by name, such as 4-of-7x1; see `lookalike design`
    #[arg(long, value_name = "NAME", conflicts_with = "tables")]
    design: Option<String>,

    /// Table layout: packed, dense (a tenth less memory) or buckets (up to twice as fast)
    ///
    /// Dense tables are faster than packed ones from some 10^7 fingerprints on, and slower below. Buckets take a cache line each.
    #[arg(long, value_name = "LAYOUT", default_value = "packed")]
    layout: Layout,

    /// Leave out the ids of the inputs
    #[arg(long)]
    no_ids: bool,

    /// Resume an interrupted build: finished tables are kept. A build that was still reading starts from the beginning
    #[arg(long)]
    resume: bool,

    /// Replace an existing index
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: &IndexBuildArguments) -> Result<(), Failure> {
    let output = &*resolve_links(&arguments.output);
    // Checked before anything is read: a job of hours must not end with this error. If a resumed build finds an existing index, the build was started
    // with --overwrite.
    if !arguments.resume {
        refuse_existing(output, arguments.overwrite)?;
    }
    let limits = arguments.run.limits();
    let console = arguments.run.console();
    // For inputs from elsewhere only; the tables are in INDEX.building beside the output, where the rename is
    // one of the same file system.
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = fingerprint_sources(&arguments.inputs, spool.path())?;
    // An index may replace one from which it was built.
    let lost = inputs.iter().map(FingerprintSource::path);
    let lost = lost.filter(|path| !is_index(path) && !is_sketch_index(path));
    check_output(Some(output), lost)?;
    if let Some(preset) = arguments.preset {
        ensure_preset_fits(preset, &inputs, &console)?;
    }
    let named = arguments.design.as_deref();
    let design = named
        .map(|name| {
            design_of_name(
                name,
                known_width(&inputs)?.unwrap_or(64),
                arguments.distance,
            )
        })
        .transpose()?;
    let job = IndexBuild::new(&inputs, output)
        .distance(arguments.distance)
        .tables(arguments.tables)
        .design(design)
        .layout(arguments.layout)
        .equal(arguments.equal)
        .with_ids(!arguments.no_ids)
        .resume(arguments.resume)
        .losses(arguments.losses.policy())
        .limits(limits)
        .observer(&console);
    if arguments.resume {
        refuse_existing(output, arguments.overwrite || can_resume(&job.folder()))?;
    }
    let summary = finish(&job, arguments.resume, &console)?;
    if let IndexSummary::Fingerprints(summary) = &summary
        && arguments.run.warns()
    {
        radius_warning::warn_of_schemes(summary.scheme_id.as_deref(), arguments.distance);
    }
    end(summary.inputs(), &arguments.losses)
}

/// Returns the width in bits of the fingerprints in some files, from the first file for which it is known before reading.
pub(super) fn known_width(inputs: &[FingerprintSource]) -> Result<Option<u32>, Failure> {
    for source in inputs {
        let bits = match is_index(source.path()) {
            true => stated_width(source.path())?,
            false => KnownFingerprints::of(source)?.bits,
        };
        if bits.is_some() {
            return Ok(bits);
        }
    }
    Ok(None)
}

/// Refuses to write over an existing file, unless it may be replaced.
pub(super) fn refuse_existing(output: &Path, may_replace: bool) -> Result<(), Failure> {
    let Ok(found) = output.metadata() else {
        return Ok(());
    };
    let reason = match (found.is_file(), may_replace) {
        (true, true) => return Ok(()),
        (true, false) => "already exists: choose another name, or replace it with --overwrite",
        (false, _) if found.is_dir() => "is a directory: choose another name",
        (false, _) => "is a pipe or a device, and no index can take its place: choose another name",
    };
    Err(Failure::Usage(format!("{}: {reason}", output.display())))
}

/// Returns a failure that mentions the resumable build in `folder`, if a memory limit that may change was too small.
fn with_resumable_note(error: BatchError, folder: &Path) -> Failure {
    let is_left = matches!(error, BatchError::IndexMemory { .. }) && can_resume(folder);
    let failure = Failure::from(error);
    match is_left {
        true => Failure::Failed(format!(
            "{failure}; {} holds what was read: --resume continues from there, and another build removes it",
            folder.display()
        )),
        false => failure,
    }
}

/// Builds an index and prints the summary.
pub(super) fn finish(
    job: &IndexBuild<'_>,
    resume: bool,
    console: &Console<'_>,
) -> Result<IndexSummary, Failure> {
    let folder = interrupt::resumable(resume, console, || job.enter())?;
    let done = console.ended(job.run(&folder));
    let summary = done.map_err(|error| with_resumable_note(error, folder.path()))?;
    // Any path does: it only says that standard output has no results and is free for JSON.
    console.summarise(&summary, Some(folder.path()), console::index_summary)?;
    Ok(summary)
}

/// Fails if more rows were lost than allowed.
pub(super) fn end(inputs: &[CodesSummary], losses: &LossArguments) -> Result<(), Failure> {
    losses.end(inputs.iter().flat_map(|input| &input.skipped))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct IndexBuildCommand {
        #[command(flatten)]
        arguments: IndexBuildArguments,
    }

    #[test]
    fn ctrl_c_removed_the_folder_of_somebody_else_before_it_was_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in.u64"), folder.path().join("out.lkix"));
        let building = folder.path().join("out.lkix.building");
        fs::write(&input, [0; 8]).unwrap();
        fs::create_dir(&building).unwrap();
        fs::write(building.join("thesis.tex"), "years").unwrap();
        let words = [
            "build".as_ref(),
            input.as_os_str(),
            "-qo".as_ref(),
            output.as_os_str(),
        ];
        let refused = run(&IndexBuildCommand::parse_from(words).arguments).unwrap_err();
        assert!(refused.to_string().contains("thesis.tex"), "{refused}");
        assert!(!interrupt::removed_on_interrupt(&building));
    }
}
