//! `lookalike index extend` and `merge`: from an index and more fingerprints to one index, as if it had been built of all at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike_batch::fingerprints::files::FingerprintSource;
use lookalike_batch::fingerprints::index::{IndexBuild, IndexProperties, is_index};

use super::build;
use crate::arguments::{LossArguments, RunArguments, fingerprint_sources};
use crate::console::Console;
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Inputs are as for `lookalike index build`. INDEX keeps its distance, design and layout, and
stores ids if it has ids. It then finds what a single build of everything would find; with
ids it has the same bytes. Searches may continue: INDEX is replaced when the new one is
complete.

The whole index is rewritten: extending costs about as much as building, but does not need
the original inputs. For a few new fingerprints, a second index is cheaper; search both, or
give both to `lookalike join`.

Example:
  lookalike index extend pages.lkix march.fp.jsonl")]
pub(crate) struct IndexExtendArguments {
    /// The index
    index: PathBuf,

    /// Files of fingerprints, or indexes
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// Resume an interrupted extension
    #[arg(long)]
    resume: bool,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

#[derive(clap::Args)]
#[command(after_help = "\
The result has the distance, design and layout of the first index, and ids if all of them
have ids. It finds what a single build of everything would find; with ids it has the same
bytes.

Example:
  lookalike index merge january.lkix february.lkix -o pages.lkix")]
pub(crate) struct IndexMergeArguments {
    /// Indexes, two or more
    #[arg(required = true, num_args = 2.., value_name = "INDEX")]
    indexes: Vec<OsString>,

    /// The merged index; written under a temporary name and renamed when complete
    #[arg(long, short, value_name = "INDEX")]
    output: PathBuf,

    /// Resume an interrupted merge
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,

    /// Replace an existing index
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn extend(arguments: &IndexExtendArguments) -> Result<(), Failure> {
    let path = arguments.index.as_path();
    let properties = IndexProperties::of(path)?;
    let spool = arguments.run.spool(std::env::temp_dir())?;
    // The index is the first of its own inputs; it is replaced by a rename, so it stays readable to the end.
    let mut inputs = vec![FingerprintSource::from(path)];
    inputs.extend(fingerprint_sources(&arguments.inputs, spool.path())?);
    IndexRebuild {
        inputs: &inputs,
        output: path,
        properties,
        resume: arguments.resume,
        losses: &arguments.losses,
        run: &arguments.run,
    }
    .finish()
}

pub(crate) fn merge(arguments: &IndexMergeArguments) -> Result<(), Failure> {
    // A merge with `--overwrite` that was interrupted goes on by `--resume` alone, beside the old file.
    build::refuse_existing(&arguments.output, arguments.overwrite || arguments.resume)?;
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = fingerprint_sources(&arguments.indexes, spool.path())?;
    // The result takes its distance and design from the first: of files of fingerprints there are none.
    if let Some(other) = inputs.iter().find(|source| !is_index(source.path())) {
        return Err(Failure::Usage(format!(
            "{} is not an index: add files of fingerprints with `lookalike index extend`",
            other.name()
        )));
    }
    IndexRebuild {
        inputs: &inputs,
        output: &arguments.output,
        properties: properties_of_merged(&inputs)?,
        resume: arguments.resume,
        losses: &arguments.losses,
        run: &arguments.run,
    }
    .finish()
}

/// The properties of the first index. Ids are in all of them or in none, whatever their order: none may be lost unseen.
fn properties_of_merged(indexes: &[FingerprintSource]) -> Result<IndexProperties, Failure> {
    let mut all = Vec::with_capacity(indexes.len());
    for index in indexes {
        all.push(IndexProperties::of(index.path())?);
    }
    let find = |has_ids| all.iter().position(|index| index.has_ids == Some(has_ids));
    let (with, without) = (find(true), find(false));
    if let (Some(with), Some(without)) = (with, without) {
        return Err(Failure::Usage(format!(
            "{} has ids and {} has none: merge them without ids by `lookalike index build --no-ids`, which also reads indexes",
            indexes[with].name(),
            indexes[without].name()
        )));
    }
    // The first one; the order of the rest does not matter any more.
    let mut properties = all.swap_remove(0);
    properties.has_ids = Some(without.is_none());
    Ok(properties)
}

/// An index that is written anew, with the properties of one that is there.
struct IndexRebuild<'a> {
    inputs: &'a [FingerprintSource],
    output: &'a Path,
    properties: IndexProperties,
    resume: bool,
    losses: &'a LossArguments,
    run: &'a RunArguments,
}

impl IndexRebuild<'_> {
    fn finish(self) -> Result<(), Failure> {
        let limits = self.run.limits();
        let console = Console::new(self.run.quiet);
        let job = IndexBuild {
            inputs: self.inputs,
            output: self.output,
            distance: self.properties.distance,
            tables: None,
            design: Some(self.properties.design),
            layout: self.properties.layout,
            // None where the index is empty: then the inputs decide.
            with_ids: self.properties.has_ids.unwrap_or(true),
            resume: self.resume,
            losses: self.losses.policy(),
            limits: &limits,
            observer: &console,
        };
        build::end(&build::finish(&job, &console, self.run)?, self.losses)
    }
}
