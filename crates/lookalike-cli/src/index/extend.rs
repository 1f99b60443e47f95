//! `lookalike index extend` and `merge`: make one index of an index and more fingerprints, the same as if it had been built from all of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike_batch::fingerprints::files::FingerprintSource;
use lookalike_batch::fingerprints::index::{IndexBuild, IndexProperties, is_index};
use lookalike_batch::fingerprints::sketches::{MinEqual, is_sketch_index, open_sketches_unchecked};

use super::build;
use crate::arguments::{LossArguments, RunArguments, fingerprint_sources, output_path};
use crate::failure::Failure;
use crate::output_file::resolve_links;

#[derive(clap::Args)]
#[command(after_help = "\
Inputs are as for `lookalike index build`. INDEX keeps its distance, design and layout, or
its --equal, and stores ids if it has ids. It then finds what a single build of everything
would find; with ids it has the same bytes, if both have the same design (`index build
--design`). Searches may continue: INDEX is replaced when the new one is complete.

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

    #[command(flatten)]
    rebuild: RebuildArguments,
}

#[derive(clap::Args)]
#[command(after_help = "\
The result has the distance, design and layout of the first index, or its --equal, and ids
if all of them have ids. It finds what a single build of everything would find; with ids it
has the same bytes, if both have the same design (`index build --design`).

Example:
  lookalike index merge january.lkix february.lkix -o pages.lkix")]
pub(crate) struct IndexMergeArguments {
    /// Indexes, two or more
    #[arg(required = true, num_args = 2.., value_name = "INDEX")]
    indexes: Vec<OsString>,

    /// The merged index; written under a temporary name and renamed when complete
    #[arg(long, short, value_name = "INDEX", value_parser = output_path())]
    output: PathBuf,

    /// Replace an existing index
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    rebuild: RebuildArguments,
}

/// Arguments of both.
#[derive(clap::Args)]
struct RebuildArguments {
    /// Resume an interrupted rebuild
    #[arg(long)]
    resume: bool,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn extend(arguments: &IndexExtendArguments) -> Result<(), Failure> {
    let path = &*resolve_links(&arguments.index);
    let properties = RebuiltIndex::of(path)?;
    let rebuild = &arguments.rebuild;
    let spool = rebuild.run.spool(std::env::temp_dir())?;
    // The index is the first of its own inputs; it is replaced by a rename, so it stays readable to the end.
    let mut inputs = vec![FingerprintSource::from(path)];
    inputs.extend(fingerprint_sources(&arguments.inputs, spool.path())?);
    rebuild.finish(properties, &inputs, path)
}

pub(crate) fn merge(arguments: &IndexMergeArguments) -> Result<(), Failure> {
    // An interrupted merge with `--overwrite` is resumed with `--resume` alone, next to the old file.
    let rebuild = &arguments.rebuild;
    build::refuse_existing(&arguments.output, arguments.overwrite || rebuild.resume)?;
    let spool = rebuild.run.spool(std::env::temp_dir())?;
    let inputs = fingerprint_sources(&arguments.indexes, spool.path())?;
    // The result takes its distance and design from the first index; files of fingerprints have neither.
    let is_none =
        |source: &&FingerprintSource| !is_index(source.path()) && !is_sketch_index(source.path());
    if let Some(other) = inputs.iter().find(is_none) {
        return Err(Failure::Usage(format!(
            "{} is not an index: add files of fingerprints with `lookalike index extend`",
            other.name()
        )));
    }
    let properties = properties_of_merged(&inputs)?;
    rebuild.finish(properties, &inputs, &resolve_links(&arguments.output))
}

/// Properties that a rebuilt index takes from an existing one.
enum RebuiltIndex {
    Fingerprints(IndexProperties),
    Sketches {
        /// Minimum number of equal places.
        least: usize,
        /// Like [`IndexProperties::has_ids`].
        has_ids: Option<bool>,
    },
}

impl RebuiltIndex {
    fn of(path: &Path) -> Result<Self, Failure> {
        if !is_sketch_index(path) {
            return Ok(Self::Fingerprints(IndexProperties::of(path)?));
        }
        // Only its head is needed here; the build reads and checks the rest.
        let index = open_sketches_unchecked(path, false)?;
        Ok(Self::Sketches {
            least: index.min_equal(),
            // An empty index says nothing about ids, so it must not decide for the others.
            has_ids: (index.documents() > 0).then(|| index.has_ids()),
        })
    }

    fn has_ids(&mut self) -> &mut Option<bool> {
        match self {
            Self::Fingerprints(properties) => &mut properties.has_ids,
            Self::Sketches { has_ids, .. } => has_ids,
        }
    }
}

/// Returns the properties of the first index. Either all or none of the indexes must have ids, whatever their order, so that no ids are silently
/// lost.
fn properties_of_merged(indexes: &[FingerprintSource]) -> Result<RebuiltIndex, Failure> {
    let holds_sketches = |source: &FingerprintSource| is_sketch_index(source.path());
    let first = &indexes[0];
    let of_first_kind = holds_sketches(first);
    let mut others = indexes[1..].iter();
    if let Some(other) = others.find(|other| holds_sketches(other) != of_first_kind) {
        let [sketches, fingerprints] = if of_first_kind {
            [first, other]
        } else {
            [other, first]
        };
        return Err(Failure::Usage(format!(
            "{} is an index of sketches and {} one of fingerprints: merge each with its own kind",
            sketches.name(),
            fingerprints.name()
        )));
    }
    let mut all = Vec::with_capacity(indexes.len());
    for index in indexes {
        all.push(RebuiltIndex::of(index.path())?);
    }
    let mut find = |has_ids| {
        all.iter_mut()
            .position(|index| *index.has_ids() == Some(has_ids))
    };
    let (with, without) = (find(true), find(false));
    if let (Some(with), Some(without)) = (with, without) {
        return Err(Failure::Usage(format!(
            "{} has ids and {} has none: merge them without ids by `lookalike index build --no-ids`, which also reads indexes",
            indexes[with].name(),
            indexes[without].name()
        )));
    }
    // Take the first one; the order of the rest does not matter any more.
    let mut properties = all.swap_remove(0);
    // Indexes that are all empty get ids, as a build does by default.
    *properties.has_ids() = Some(without.is_none());
    Ok(properties)
}

impl RebuildArguments {
    /// Builds an index with the properties of an existing one.
    fn finish(
        &self,
        mut properties: RebuiltIndex,
        inputs: &[FingerprintSource],
        output: &Path,
    ) -> Result<(), Failure> {
        let limits = self.run.limits();
        let console = self.run.console();
        let with_ids = *properties.has_ids();
        let job = IndexBuild::new(inputs, output)
            // `None` if the index is empty: then the inputs decide.
            .with_ids(with_ids.unwrap_or(true))
            .resume(self.resume)
            .losses(self.losses.policy())
            .limits(limits)
            .observer(&console);
        let job = match properties {
            RebuiltIndex::Fingerprints(properties) => {
                // An empty index may have been built before any input told the width, and then for another one.
                let bits = properties.design.bits();
                let is_other = build::known_width(inputs)?.is_some_and(|known| known != bits);
                job.distance(properties.distance)
                    .design((!is_other).then_some(properties.design))
                    .layout(properties.layout)
            }
            RebuiltIndex::Sketches { least, .. } => job.equal(Some(MinEqual::Places(least as u32))),
        };
        let summary = build::finish(&job, self.resume, &console)?;
        build::end(summary.inputs(), &self.losses)
    }
}
