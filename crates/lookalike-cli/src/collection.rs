//! `lookalike collection`: documents that later jobs are compared with, without reading them again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use lookalike_batch::{
    CollectionInfo, CollectionSummary, CollectionWriter, DedupJob, DocumentCollection, JobProgress,
    JobSettings, KeepRules, is_addition_staged,
};
use lookalike_corpus::InputOptions;

use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments, SimilarityArguments};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::interrupt::{self, TemporaryPath};
use crate::kept_documents::kept_documents;
use crate::size;

#[derive(clap::Args)]
#[command(after_help = "\
A collection stores what later jobs need of each document: a hash of its text, its features,
candidate keys and its id. `dedup --against DIR` then reads only the new documents, and
decides as if it had read the old ones again; `dedup --into DIR` adds what it keeps.

Examples:
  lookalike collection build seen crawls/                everything collected so far
  lookalike collection build seen earlier-results/       what an earlier `dedup` kept
  lookalike dedup today.jsonl --against seen --into seen -o today
  lookalike collection info seen")]
pub(crate) struct CollectionArguments {
    #[command(subcommand)]
    command: CollectionCommand,
}

#[derive(Subcommand)]
enum CollectionCommand {
    /// Build a collection from documents
    Build(BuildArguments),
    /// Add documents to a collection unchanged: nothing is compared or removed
    Add(CollectArguments),
    /// Show what a collection holds, and the settings that jobs must share
    Info(CollectionInfoArguments),
}

#[derive(clap::Args)]
#[command(after_help = "\
Given the results of an earlier `dedup`, it reads the kept documents. The first addition
fixes the options for features and methods: later ones, and all jobs, must use the same.")]
struct CollectArguments {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    similarity: SimilarityArguments,

    /// Rule by which later jobs choose survivors, as in `dedup`; the field that it reads is stored
    #[arg(
        long,
        value_name = "RULE,...",
        default_value = "longest",
        help_heading = "Output"
    )]
    keep: KeepRules,

    #[command(flatten)]
    run: RunArguments,
}

#[derive(clap::Args)]
struct BuildArguments {
    #[command(flatten)]
    collect: CollectArguments,

    #[command(flatten)]
    log: BuildLogArguments,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
struct BuildLogArguments {
    /// Resume an interrupted build from its last checkpoint of reading. The inputs must be the same, byte for byte
    #[arg(long)]
    resume: bool,

    /// Amount of input between two checkpoints while reading, per thread
    ///
    /// Input counts as decompressed. Inputs shorter than this leave no checkpoint. Checkpoints take about as much disk as that and are
    /// removed at the end.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = size::parse_positive, hide_short_help = true)]
    checkpoint: u64,
}

#[derive(clap::Args)]
struct CollectionInfoArguments {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Read every file and check it for damage
    #[arg(long)]
    verify: bool,

    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &CollectionArguments) -> Result<(), Failure> {
    match &arguments.command {
        CollectionCommand::Build(arguments) => {
            let BuildArguments { collect, log } = arguments;
            collect.run(Some(log))
        }
        CollectionCommand::Add(arguments) => arguments.run(None),
        CollectionCommand::Info(arguments) => arguments.run(),
    }
}

impl CollectArguments {
    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        Ok(self
            .similarity
            .settings(read)?
            .keep(self.keep.clone())
            .losses(self.input.losses.policy()))
    }

    /// Reads the documents and adds them. With `build`, creates a new collection; otherwise extends an existing one.
    fn run(&self, build: Option<&BuildLogArguments>) -> Result<(), Failure> {
        let console = self.run.console();
        let collected = self.collect(build, &console);
        let summary =
            collected.map_err(|failure| interrupt::with_remaining_files(failure, &self.folder))?;
        console.summarise(&summary, Some(&self.folder), |summary, measured| {
            console::collection_summary(summary, &self.folder, measured);
        })?;
        self.input.losses.end(&summary.skipped)
    }

    fn collect(
        &self,
        build: Option<&BuildLogArguments>,
        console: &Console,
    ) -> Result<CollectionSummary, Failure> {
        self.similarity.method.check()?;
        let input = self.input.options(self.keep.order_field()?);
        let options = self.similarity.options(input);
        let settings = self.settings(&options)?;
        // Before taking the lock, which would create a folder even for a misspelt name.
        match (DocumentCollection::exists_in(&self.folder), build) {
            // A collection exists once its manifest is written, the last step of a build, so nothing is left to resume.
            (true, Some(build)) if build.resume => return Err(complete(&self.folder)),
            (true, Some(_)) => return Err(exists(&self.folder)),
            (false, Some(_)) => {}
            // Only to report a missing or damaged collection; it is opened again under the lock.
            (_, None) => drop(DocumentCollection::open(&self.folder)?),
        }
        // Before the lock, which creates the directory.
        let was_there = self.folder.exists();
        let collected = self.collect_with(&settings, &options, build, console);
        // An existing collection is never touched, whatever the outcome of this job.
        if !was_there && collected.is_err() {
            remove_unless_used(&self.folder);
        }
        collected
    }

    fn collect_with(
        &self,
        settings: &JobSettings,
        options: &InputOptions,
        build: Option<&BuildLogArguments>,
        console: &Console,
    ) -> Result<CollectionSummary, Failure> {
        let limits = self.run.document_limits();
        let writer = CollectionWriter::lock(&self.folder)?;
        // A collection opened under the lock cannot change.
        let old = match build {
            None => Some(DocumentCollection::open(&self.folder)?),
            Some(_) => None,
        };
        // Asked before the job starts, because it changes what is there.
        let was_begun = CollectionWriter::has_unfinished_build(&self.folder);
        if let Some(build) = build {
            interrupt::watch(TemporaryPath::Build(self.folder.clone()));
            interrupt::warn_about_resume(build.resume, was_begun, console);
        }
        let spool = self.run.spool(self.folder.clone())?;
        let names = self.input.names()?;
        let paths = names.iter().map(kept_documents);
        let paths = paths.collect::<Result<Vec<_>, _>>()?.concat();
        // After `kept_documents`, which replaces folders of results by the files in them.
        refuse_collections(&paths)?;
        let inputs = self
            .input
            .discover_paths(&paths, options, spool.path(), None, console)?;
        let job = DedupJob::new(&inputs, spool.path())
            .settings(settings.clone())
            .limits(limits)
            .options(options.clone())
            .into_collection(&writer)
            .against_collection(&old)
            .observer(console);
        let collected = match build {
            Some(log) => job
                .checkpoint_bytes(log.checkpoint)
                .build_collection(log.resume),
            None => job.collect(),
        };
        let summary = console.ended(collected)?;
        if was_begun && build.is_some_and(|build| build.resume) && !summary.resumed {
            console.warn(
                "what the interrupted build left is damaged: this build started from the beginning",
            );
        }
        self.similarity
            .warn(summary.counts.without_category, console);
        self.input.warn_of_unused(&inputs, console);
        Ok(summary)
    }
}

impl CollectionInfoArguments {
    fn run(&self) -> Result<(), Failure> {
        let collection = DocumentCollection::open(&self.folder)?;
        if self.verify {
            collection.verify()?;
        }
        let info = collection.info()?;
        match self.json {
            true => console::json(&info)?,
            false => print(&info)?,
        }
        Ok(())
    }
}

/// Prints facts about a collection on standard output.
fn print(info: &CollectionInfo) -> Result<(), Failure> {
    use std::io::Write as _;

    let mut out = std::io::stdout().lock();
    // `None` for a collection without documents.
    let each = match info.bytes.checked_div(info.documents) {
        Some(each) => format!(", {each} bytes a document"),
        None => String::new(),
    };
    let documents = console::counted(info.documents, "document");
    let additions = console::counted(info.additions, "addition");
    writeln!(
        out,
        "{documents}, {}, {additions}",
        console::counted(info.texts, "text")
    )?;
    writeln!(
        out,
        "{} of text; {} on disk{each}",
        crate::size::show(info.text_bytes),
        crate::size::show(info.bytes)
    )?;
    writeln!(out, "settings that jobs must share:")?;
    for setting in &info.settings {
        writeln!(out, "  {}: {}", setting.name, setting.value)?;
    }
    Ok(())
}

fn exists(folder: &Path) -> Failure {
    Failure::Usage(format!(
        "{}: already holds a collection: add to it with `lookalike collection add`, or choose another directory",
        folder.display()
    ))
}

/// Returns the failure for a build that was interrupted after its last step, and is resumed.
fn complete(folder: &Path) -> Failure {
    // Taking the lock removes the remaining checkpoints of the build. Another job that holds it does the same.
    let _ = CollectionWriter::lock(folder);
    let folder = folder.display();
    Failure::Failed(format!(
        "{folder}: the collection is complete, so nothing is left to resume: see what it holds with `lookalike collection info \
         {folder}`, or add to it with `lookalike collection add`"
    ))
}

/// Refuses collections as inputs, because they contain no documents that can be read.
pub(crate) fn refuse_collections(paths: &[OsString]) -> Result<(), Failure> {
    let mut collections = paths
        .iter()
        .map(Path::new)
        .filter(|path| DocumentCollection::exists_in(path));
    match collections.next() {
        None => Ok(()),
        Some(path) => Err(Failure::Usage(format!(
            "{}: a collection holds no documents that can be read: compare with it by `lookalike dedup INPUT --against {}`",
            path.display(),
            path.display()
        ))),
    }
}

/// Removes a directory that was created for a collection but stayed empty.
pub(crate) fn remove_unless_used(folder: &Path) {
    if DocumentCollection::exists_in(folder) || !folder.exists() {
        return;
    }
    // Removed under the lock: another job may have begun a collection there after this one failed.
    let Ok(_lock) = CollectionWriter::lock(folder) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let is_lock = |name: OsString| name == lookalike_batch::COLLECTION_LOCK;
    // The lock itself is the only file that a failed job leaves.
    if entries.flatten().all(|entry| is_lock(entry.file_name())) {
        // Ignore errors: the user should see the original failure.
        let _ = std::fs::remove_file(folder.join(lookalike_batch::COLLECTION_LOCK));
        let _ = std::fs::remove_dir(folder);
    }
}

/// The collections of a `dedup` or `pairs`: the one that is compared with, and the one that is added to.
#[derive(Default)]
pub(crate) struct JobCollections {
    pub(crate) against: Option<DocumentCollection>,
    pub(crate) into: Option<CollectionWriter>,
}

impl JobCollections {
    /// Opens the collections that `--against` and `--into` name. The latter is locked before anything is read. `resumed` is the folder of the job to
    /// resume.
    pub(crate) fn open(
        against: &[OsString],
        into: Option<&Path>,
        resumed: Option<&Path>,
    ) -> Result<Self, Failure> {
        let collections = against.iter().map(Path::new);
        let collections: Vec<&Path> = collections
            .filter(|path| DocumentCollection::exists_in(path))
            .collect();
        // A collection was decided as a whole; other documents beside it may be near-duplicates of its documents.
        if let (Some(path), 2..) = (collections.first(), against.len()) {
            return Err(Failure::Usage(format!(
                "--against {}: a collection must be the only --against: add the other documents to it first (`lookalike collection add`, or --into in a job with this --against)",
                path.display()
            )));
        }
        // Locked before the other collection is opened: if both are the same, it cannot change in between.
        let writer = into.map(CollectionWriter::lock).transpose()?;
        let against = collections
            .first()
            .map(|path| DocumentCollection::open(path));
        let opened = Self {
            against: against.transpose()?,
            into: writer,
        };
        // The collection may contain the addition of this very job, which the job itself checks.
        let may_be_its_own = |folder| {
            is_addition_staged(folder)
                || matches!(JobProgress::of(folder), Ok(Some(JobProgress::Finished)))
        };
        if let Some(folder) = into
            && !resumed.is_some_and(may_be_its_own)
        {
            opened.refuse_unread(folder, collections.first().copied())?;
        }
        Ok(opened)
    }

    /// Refuses to learn boilerplate if a collection is involved, because the lines would differ every time.
    pub(crate) fn refuse_learning(
        &self,
        boilerplate: &BoilerplateArguments,
    ) -> Result<(), Failure> {
        let has_collection = self.against.is_some() || self.into.is_some();
        match has_collection && !boilerplate.is_off() {
            true => Err(Failure::Usage(
                "--boilerplate learns its lines from all documents, and a collection is not read again: leave it out"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Refuses to add to a collection that the job is not compared with, because it would get near-duplicates of its documents.
    fn refuse_unread(&self, into: &Path, against: Option<&Path>) -> Result<(), Failure> {
        let is_same =
            // Both paths exist here, so two errors are never taken for the same path.
            against.is_some_and(|path| path.canonicalize().ok() == into.canonicalize().ok());
        match DocumentCollection::exists_in(into) && !is_same {
            false => Ok(()),
            true => Err(Failure::Usage(format!(
                "--into {0}: the collection already has documents, and this job is not compared with them: name it with --against, too, \
                 or name a new directory",
                into.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_another_job_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("seen");
        let other = CollectionWriter::lock(&place).unwrap();
        remove_unless_used(&place);
        assert!(place.join(lookalike_batch::COLLECTION_LOCK).exists());
        drop(other);
        remove_unless_used(&place);
        assert!(!place.exists());
        remove_unless_used(&place);
        assert!(!place.exists());
    }
}
