//! A job from inputs to decisions: its input, its settings and its resources.
//!
//! [`DedupJob::decide`] chooses survivors for `dedup`; [`DedupJob::write_pairs`] lists all verified pairs for `pairs`. Both begin with
//! `preparation`, and the results of neither depend on threads or memory.

use std::io;
use std::path::Path;

use lookalike_corpus::{InputOptions, Inputs};

use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection};
use crate::dedup::memory_budget::DedupMemory;
use crate::dedup::paragraphs::ParagraphRecords;
use crate::document_memory::{DocumentUse, fixed_bytes};
use crate::error::BatchError;
use crate::observer::{JobObserver, NoProgress, check_cancelled};
use crate::settings::{JobLimits, JobSettings, PairScope};
use crate::settings_error::{SettingConflict, SettingsError};
use crate::spill::table_memory::{self, TableShare};
use crate::unfinished::JobFolder;

/// Bytes of chunks per thread between two checkpoints while reading: about two seconds.
const CHECKPOINT_BYTES: u64 = 128 << 20;

/// Deduplication of some inputs, with its settings and resources.
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
    /// All sources; those that are only compared with come first.
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: InputOptions,
    pub(crate) against_sources: usize,
    pub(crate) collection: Option<&'a DocumentCollection>,
    pub(crate) addition: Option<&'a CollectionWriter>,
    pub(crate) adds_last: bool,
    pub(crate) decisions: Option<&'a Path>,
    pub(crate) paragraphs: Option<&'a ParagraphRecords>,
    pub(crate) pairs_checkpoint: Option<&'a JobFolder>,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) folder: &'a Path,
    pub(crate) observer: &'a dyn JobObserver,
}

lookalike::setters! {
    DedupJob<'a> {
        /// Sets the settings that decide the result.
        settings: JobSettings,
        /// Sets the resources that the job may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets how sources are read: the options that [`Inputs::discover`] was given.
        options: InputOptions,
        /// Sets the number of bytes of decompressed input per thread between two checkpoints that [`DedupJob::dedup`], or a job with
        /// [`DedupJob::pairs_checkpoint`], writes while it reads: by default 128 MiB. Shorter inputs have no checkpoint.
        checkpoint_bytes: u64,
        /// Adds documents to the collection only after all results have their names, so that no error follows the addition. This is for callers who
        /// drop the results of a job that fails: after a kill in between, a resumed job has results but does not make the addition.
        adds_last: bool,
        /// Sets the observer of the progress.
        observer: &'a dyn JobObserver,
    }
}

impl<'a> DedupJob<'a> {
    /// Creates a job with default settings and limits that writes its temporary files to `folder`.
    pub fn new(inputs: &'a Inputs, folder: &'a Path) -> Self {
        Self {
            settings: JobSettings::default(),
            limits: JobLimits::default(),
            inputs,
            options: InputOptions::default(),
            against_sources: 0,
            collection: None,
            addition: None,
            adds_last: false,
            decisions: None,
            paragraphs: None,
            pairs_checkpoint: None,
            checkpoint_bytes: CHECKPOINT_BYTES,
            folder,
            observer: &NoProgress,
        }
    }

    /// Sets the number of sources, from the first, that are compared with and never removed. A number above that of the sources means all.
    #[must_use]
    pub fn against_sources(mut self, against_sources: usize) -> Self {
        self.against_sources = against_sources.min(self.inputs.sources.len());
        self
    }

    /// Sets a collection to compare with, whose documents are not read again and never removed. The decisions are the same as if
    /// its documents were read as [`DedupJob::against_sources`].
    #[must_use]
    pub fn against_collection(
        mut self,
        collection: impl Into<Option<&'a DocumentCollection>>,
    ) -> Self {
        self.collection = collection.into();
        self
    }

    /// Sets a collection to which [`DedupJob::dedup`] adds the documents that it keeps, in one step, after all results are written.
    ///
    /// Documents are compared with it only if it is also the collection of [`DedupJob::against_collection`]. In that case lock it before opening it:
    /// a collection that has been added to since it was opened is refused.
    #[must_use]
    pub fn into_collection(mut self, writer: impl Into<Option<&'a CollectionWriter>>) -> Self {
        self.addition = writer.into();
        self
    }

    /// Sets a file outside the results where [`DedupJob::dedup`] saves its decisions for
    /// [`SavedDecisions::open`](crate::SavedDecisions::open).
    #[must_use]
    pub fn save_decisions_to(mut self, path: impl Into<Option<&'a Path>>) -> Self {
        self.decisions = path.into();
        self
    }

    /// Sets the folder where [`DedupJob::write_pairs`] saves what it reads and finds, and from which it resumes an interrupted job. The caller must
    /// call [`JobFolder::finish`] once the output is complete.
    #[must_use]
    pub fn pairs_checkpoint(mut self, checkpoint: impl Into<Option<&'a JobFolder>>) -> Self {
        self.pairs_checkpoint = checkpoint.into();
        self
    }

    /// Declares that the records are these paragraphs: pairs then have documents and positions.
    #[must_use]
    pub fn paragraphs(mut self, records: impl Into<Option<&'a ParagraphRecords>>) -> Self {
        self.paragraphs = records.into();
        self
    }
}

impl DedupJob<'_> {
    /// Returns the budget of the memory, of which nothing is used yet.
    pub(crate) fn memory(&self) -> DedupMemory {
        let documents = DocumentUse::Features(&self.settings.scheme);
        let fixed = fixed_bytes(&self.limits, documents, self.inputs, &self.options);
        DedupMemory::new(self.limits.memory, fixed)
    }

    /// Opens the share of the memory that tables of documents may take. The caller must hold it while the job runs.
    pub(crate) fn open_tables(&self) -> TableShare {
        TableShare::open(self.memory().table_share(), self.folder)
    }

    /// Checks what can be checked before anything is read.
    pub(crate) fn check(&self) -> Result<(), BatchError> {
        self.settings.check()?;
        // Documents that a caller passes in bring their categories with them.
        if self.options.category.is_none() && !self.inputs.are_in_memory() {
            self.refuse_scope()?;
        }
        // Paragraphs are plain texts, cut out of what was read under the options of their documents.
        if self.paragraphs.is_none() {
            self.refuse_other_reading().map_err(SettingsError::from)?;
        }
        self.check_collections()
    }

    /// Refuses settings that claim something else about the documents than what the options read.
    fn refuse_other_reading(&self) -> Result<(), SettingConflict> {
        let (scheme, options) = (&self.settings.scheme, &self.options);
        if options.html != scheme.html {
            return Err(SettingConflict::OtherHtml);
        }
        // Documents that a caller passes in bring these with them.
        if self.inputs.are_in_memory() {
            return Ok(());
        }
        if options.fields != scheme.fields {
            return Err(SettingConflict::OtherFields);
        }
        match self.settings.keep.order_field() {
            Ok(None) => Ok(()),
            Ok(field) if field == options.order_field => Ok(()),
            _ => Err(SettingConflict::KeepFieldNotRead),
        }
    }

    /// Refuses the scopes within and across if there are no categories.
    pub(crate) fn refuse_scope(&self) -> Result<(), BatchError> {
        match self.settings.scope {
            PairScope::Everything => Ok(()),
            PairScope::Within | PairScope::Across => {
                Err(SettingsError::from(SettingConflict::ScopeWithoutCategory).into())
            }
        }
    }

    /// Reports progress to the observer. Returns an error if it has cancelled the job, or if tables could not be written to disk.
    pub(super) fn advance(&self, done: u64) -> io::Result<()> {
        self.observer.progress(done);
        check_cancelled(self.observer)?;
        // Arrays for which a file had no room are in memory beyond the limit, so the job must not continue.
        table_memory::check(self.folder)
    }
}
