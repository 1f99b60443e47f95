//! A job from inputs to decisions: what to read, what to look for, what to use.
//!
//! [`DedupJob::decide`] chooses survivors for `dedup`; [`DedupJob::write_pairs`] lists all verified pairs for `pairs`. Both prepare the job first
//! (`preparation`), and neither depends on threads or memory in what it finds.

use std::io;
use std::path::Path;

use lookalike_corpus::{InputOptions, Inputs};

use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection};
use crate::dedup::memory_budget::DedupMemory;
use crate::dedup::paragraphs::ParagraphRecords;
use crate::error::BatchError;
use crate::observer::{JobObserver, NoProgress, ensure_wanted};
use crate::settings::{JobLimits, JobSettings, PairScope};
use crate::settings_error::{SettingConflict, SettingsError};
use crate::spill::table_memory::{self, TableShare};
use crate::unfinished::JobFolder;

/// Bytes of chunks for each thread between two checkpoints while reading: some two seconds.
const CHECKPOINT_BYTES: u64 = 128 << 20;

/// Deduplication of some inputs: what to read, what to look for, what to use.
///
/// ```
/// use lookalike_batch::{DedupJob, JobSettings, OutputOptions};
/// use lookalike_corpus::{InputOptions, Inputs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("pages.jsonl");
/// std::fs::write(&file, r#"{"id":"a","text":"a rose is a rose"}
/// {"id":"b","text":"A rose is a rose!"}
/// {"id":"c","text":"something else"}
/// "#)?;
///
/// let inputs = Inputs::discover(&[file.into()], &InputOptions::default(), folder.path())?;
/// let settings = JobSettings::default().threshold(0.9);
/// let job = DedupJob::new(&inputs, folder.path()).settings(settings);
/// let summary = job.dedup(&folder.path().join("out"), &OutputOptions::default())?;
/// assert_eq!(summary.decisions.kept, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DedupJob<'a> {
    pub(crate) settings: JobSettings,
    pub(crate) limits: JobLimits,
    /// All sources, those that are only compared with first.
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: InputOptions,
    pub(crate) against_sources: usize,
    pub(crate) collection: Option<&'a DocumentCollection>,
    pub(crate) addition: Option<&'a CollectionWriter>,
    pub(crate) decisions: Option<&'a Path>,
    pub(crate) paragraphs: Option<&'a ParagraphRecords>,
    pub(crate) pairs_checkpoint: Option<&'a JobFolder>,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) folder: &'a Path,
    pub(crate) observer: &'a dyn JobObserver,
}

lookalike::setters! {
    DedupJob<'a> {
        /// Sets what decides the result.
        settings: JobSettings,
        /// Sets how much of the machine the job may use. The result does not depend on it.
        limits: JobLimits,
        /// Sets how sources are read: the options that [`Inputs::discover`] was given.
        options: InputOptions,
        /// Sets after how many bytes of input, as it is once decompressed, for each thread [`DedupJob::dedup`], or a job with
        /// [`DedupJob::pairs_checkpoint`], leaves a checkpoint while it reads: 128 MiB, if nothing is said. Shorter inputs leave none.
        checkpoint_bytes: u64,
        /// Sets who hears of progress.
        observer: &'a dyn JobObserver,
    }
}

impl<'a> DedupJob<'a> {
    /// Creates a job with default settings and limits. Its temporary files go to `folder`.
    pub fn new(inputs: &'a Inputs, folder: &'a Path) -> Self {
        Self {
            settings: JobSettings::default(),
            limits: JobLimits::default(),
            inputs,
            options: InputOptions::default(),
            against_sources: 0,
            collection: None,
            addition: None,
            decisions: None,
            paragraphs: None,
            pairs_checkpoint: None,
            checkpoint_bytes: CHECKPOINT_BYTES,
            folder,
            observer: &NoProgress,
        }
    }

    /// Says that the first so many sources are compared with, and never removed: all, if there are fewer.
    #[must_use]
    pub fn against_sources(self, against_sources: usize) -> Self {
        Self {
            against_sources: against_sources.min(self.inputs.sources.len()),
            ..self
        }
    }

    /// Sets a collection to compare with, whose documents are not read again and never removed. The decisions are those of a job that
    /// reads them, with [`DedupJob::against_sources`].
    #[must_use]
    pub fn against_collection(self, collection: &'a DocumentCollection) -> Self {
        Self {
            collection: Some(collection),
            ..self
        }
    }

    /// Sets a collection to which [`DedupJob::dedup`] adds what it keeps, in one step, when all results are written.
    ///
    /// Compares the documents with those in it only if it is the collection of [`DedupJob::against_collection`], too. Lock it first, then open it:
    /// a collection that others have added to since it was opened is refused.
    #[must_use]
    pub fn into_collection(self, writer: &'a CollectionWriter) -> Self {
        Self {
            addition: Some(writer),
            ..self
        }
    }

    /// Sets a file outside the results where [`DedupJob::dedup`] leaves its decisions, for
    /// [`SavedDecisions::open`](crate::SavedDecisions::open).
    #[must_use]
    pub fn leave_decisions(self, path: &'a Path) -> Self {
        Self {
            decisions: Some(path),
            ..self
        }
    }

    /// Sets where [`DedupJob::write_pairs`] keeps what it reads and finds, and goes on from what an interrupted job kept. The caller ends it
    /// with [`JobFolder::finish`] once the output is whole.
    #[must_use]
    pub fn pairs_checkpoint(self, checkpoint: &'a JobFolder) -> Self {
        Self {
            pairs_checkpoint: Some(checkpoint),
            ..self
        }
    }

    /// Says that the records are these paragraphs: pairs have documents and positions.
    #[must_use]
    pub fn paragraphs(self, records: &'a ParagraphRecords) -> Self {
        Self {
            paragraphs: Some(records),
            ..self
        }
    }
}

impl DedupJob<'_> {
    /// Lets tables of documents take their share of the memory. A job holds it as long as it works.
    pub(crate) fn open_tables(&self) -> TableShare {
        let budget = DedupMemory::new(&self.limits, &self.settings.scheme, &self.options);
        TableShare::open(budget.table_share(), self.folder)
    }

    /// Refuses what can be refused before anything is read.
    pub(crate) fn check(&self) -> Result<(), BatchError> {
        self.settings.check()?;
        // Documents that a caller hands over tell their categories themselves.
        if self.options.category.is_none() && !self.inputs.are_given() {
            self.refuse_scope()?;
        }
        self.check_collections()
    }

    /// Refuses pairs within or across categories where there are none.
    pub(crate) fn refuse_scope(&self) -> Result<(), BatchError> {
        match self.settings.scope {
            PairScope::Everything => Ok(()),
            PairScope::Within | PairScope::Across => {
                Err(SettingsError::from(SettingConflict::ScopeWithoutCategory).into())
            }
        }
    }

    /// Tells the observer of progress; an error if it has cancelled the job, or tables could not go to disk.
    pub(super) fn advance(&self, done: u64) -> io::Result<()> {
        self.observer.progress(done);
        ensure_wanted(self.observer)?;
        table_memory::check(self.folder)
    }
}
