//! The part of a job that uses a collection: comparing with it, adding to it, and building one from inputs.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::dedup::candidate_groups::KeySink;
use crate::dedup::collection::addition::{AddedDocuments, StagedAddition};
use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection, load_order};
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::manifest::settings_of;
use crate::dedup::collection::neighbourhood::Neighbourhood;
use crate::dedup::collection::segment::{AdditionFacts, SegmentSource};
use crate::dedup::counts::InputCounts;
use crate::dedup::decided::DedupDecisions;
use crate::dedup::frequency::FrequencyLevels;
use crate::dedup::job::DedupJob;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::memory_budget::{DedupMemory, expected_text};
use crate::dedup::run::is_recoverable;
use crate::dedup::scan::{ScanPlan, ScannedCollection};
use crate::dedup::scan_log::ensure_same;
use crate::dedup::summary::{input_counts, skipped};
use crate::error::BatchError;
use crate::folder_refusal::FolderRefusal;
use crate::observer::JobStage;
use crate::settings::Method;
use crate::skipped::SkippedRow;
use crate::spill::table_memory::max_mapped;

/// Summary of an addition to a collection.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CollectionSummary {
    /// Numbers of documents added and in the collection.
    #[serde(flatten)]
    pub added: AddedDocuments,
    /// Counts of what was read.
    pub counts: InputCounts,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
    /// True if the job reused anything that an interrupted job had read.
    pub resumed: bool,
}

impl DedupJob<'_> {
    /// Adds all documents of the inputs to the collection of [`DedupJob::into_collection`], in one step and without comparing them; creates
    /// the collection if the directory has none.
    ///
    /// Jobs that compare with the collection never remove its documents.
    ///
    /// # Errors
    /// [`BatchError`]; the collection is unchanged then.
    ///
    /// # Panics
    /// If the job has no collection to add to.
    pub fn collect(&self) -> Result<CollectionSummary, BatchError> {
        self.collect_with(None)
    }

    /// Builds a new collection as [`DedupJob::collect`] does. While it reads, it writes checkpoints to the directory of the collection: if
    /// `resume` is true, it continues from those of an interrupted job, see [`CollectionWriter::has_unfinished_build`]. It removes them at the end.
    ///
    /// # Errors
    /// As [`DedupJob::collect`]; [`CollectionError::Exists`] if the collection exists, and [`CollectionError::OtherBuild`] if the job to resume
    /// has other inputs or settings, or is of another version.
    ///
    /// # Panics
    /// As [`DedupJob::collect`].
    pub fn build_collection(&self, resume: bool) -> Result<CollectionSummary, BatchError> {
        let writer = self.addition.expect("the caller names a collection");
        if writer.manifest()?.is_some() {
            let folder = writer.folder().to_owned();
            return Err(CollectionError::Exists { folder }.into());
        }
        let (logs, identity) = self.described_logs(writer.begun(), self.inputs.fingerprint());
        let other_build = |reason| CollectionError::OtherBuild {
            folder: writer.folder().to_owned(),
            reason,
        };
        match resume {
            // The log of a build with other settings stays, because that build can still be resumed.
            true => ensure_same(&logs.scanned, &identity).map_err(other_build)?,
            false => logs.discard(),
        }
        let built = self.collect_with(self.are_logs_worthwhile(&logs).then_some(&logs));
        match &built {
            Err(error) if is_recoverable(error) => {}
            _ => logs.discard(),
        }
        built.map_err(|error| match error {
            BatchError::ResumedInput { name } => {
                other_build(FolderRefusal::ChangedInput { name }).into()
            }
            error => error,
        })
    }

    fn collect_with(&self, logs: Option<&JobLogs>) -> Result<CollectionSummary, BatchError> {
        let writer = self.addition.expect("the caller names a collection");
        self.check()?;
        self.ensure_documents_fit()?;
        let _tables = self.open_tables();
        let temporary = BatchError::temporary(self.folder);
        // Before anything is read, so that a damaged order is reported early.
        let stored = self.stored_order()?;
        let mut budget = self.memory();
        let text_bytes = expected_text(self.inputs);
        let read = |plan: &ScanPlan<'_>| self.scan_steady(plan, logs);
        let (scanned, keys) = self.scan_with(&mut budget, text_bytes, read)?;
        let (documents, classes) = (scanned.documents.len(), scanned.classes.len());
        budget.tables(scanned.table_bytes(), documents, classes);
        let levels = stored.unwrap_or_else(|| Cow::Owned(scanned.levels(self.limits.workers())));
        self.push_keys(&scanned, &levels, &keys)
            .map_err(&temporary)?;
        self.observer.stage(JobStage::Write, 0);
        let new = AdditionFacts {
            facts: scanned.documents.ranking_facts(),
            keys,
            levels: levels.into_owned(),
        };
        let all = 0..scanned.documents.len() as u32;
        let staged = self.stage(writer, &scanned, &new, all)?;
        // Before the commit, because a failure after it could not be undone; `added` returns the numbers as they will be.
        let added = staged.added(writer)?;
        staged.commit(writer)?;
        Ok(CollectionSummary {
            added,
            counts: InputCounts {
                tables_on_disk: max_mapped(self.folder),
                ..input_counts(&scanned, self.inputs, 0, &self.options, 0)
            },
            skipped: skipped(self.inputs, &scanned, &[]),
            resumed: scanned.is_resumed,
        })
    }

    /// Refuses, before anything is read, collections made with other settings, and one that has been added to since it was opened.
    pub(crate) fn check_collections(&self) -> Result<(), BatchError> {
        if let Some(collection) = self.collection {
            collection.ensure_fits(&self.settings, &self.options)?;
        }
        let Some(writer) = self.addition else {
            return Ok(());
        };
        let now = writer.manifest()?;
        if let Some((manifest, _)) = &now {
            let settings = settings_of(&self.settings, &self.options);
            manifest.ensure_same(writer.folder(), &settings)?;
        }
        // A damaged order is an error before anything is read.
        self.stored_order()?;
        let state = now.map(|(_, checksum)| checksum);
        let own = self
            .collection
            .filter(|collection| self.adds_to(&collection.folder));
        match own {
            // Documents added in the meantime would be added again.
            Some(collection) if state != Some(collection.checksum) => {
                let folder = writer.folder().to_owned();
                Err(CollectionError::Outdated { folder }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the collection in a directory is the one that the job adds to.
    fn adds_to(&self, folder: &Path) -> bool {
        let added = self.addition.map(CollectionWriter::folder);
        match (added.map(Path::canonicalize), folder.canonicalize()) {
            (Some(Ok(added)), Ok(folder)) => added == folder,
            // Two directories that cannot be found are not the same one.
            _ => false,
        }
    }

    /// Returns the order of features of the collection that the job adds to, or `None` if that collection is new.
    fn stored_order(&self) -> Result<Option<Cow<'_, FrequencyLevels>>, CollectionError> {
        // A collection keeps the order in which its first keys were made: two prefixes meet only in one order.
        let Some(writer) = self.addition else {
            return Ok(None);
        };
        let Some((manifest, _)) = writer.manifest()? else {
            return Ok(None);
        };
        let order = &manifest.order;
        let is_same = |collection: &&DocumentCollection| collection.manifest.order == *order;
        Ok(Some(match self.collection.filter(is_same) {
            Some(collection) => Cow::Borrowed(&collection.levels),
            None => Cow::Owned(load_order(writer.folder(), order)?),
        }))
    }

    /// Adds the keys of the new classes, and puts the neighbourhood of the new documents before them. Returns the facts that an addition needs.
    pub(crate) fn add_neighbourhood(
        &self,
        scanned: &mut ScannedCollection,
        keys: &KeySink,
        budget: &DedupMemory,
    ) -> Result<Option<AdditionFacts>, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let stored = self.stored_order()?;
        // A loaded order is not that of the collection that the documents are compared with.
        let has_other_keys = matches!(stored, Some(Cow::Owned(_)))
            && self.collection.is_some()
            && self.settings.method == Method::AllPairs;
        // Keys of old and new documents are equal only if prefixes use the same order of features.
        let levels = match (self.collection, &stored) {
            (Some(collection), _) => Cow::Borrowed(&collection.levels),
            (None, Some(stored)) => Cow::Borrowed(&**stored),
            (None, None) => Cow::Owned(scanned.levels(self.limits.workers())),
        };
        self.push_keys(scanned, &levels, keys).map_err(&temporary)?;
        let memory = budget.keys() / 2;
        let kept = match self.addition {
            None => None,
            Some(_) => Some(AdditionFacts {
                // Copies, because ranking drops these columns, and the neighbourhood moves the documents.
                facts: scanned.documents.ranking_facts(),
                // Before the keys of the neighbourhood are added, and because grouping takes keys out of the sink.
                keys: match stored.as_deref().filter(|_| has_other_keys) {
                    Some(order) => self.keys_in(order, scanned, memory),
                    None => keys.copied(self.folder, memory),
                }
                .map_err(&temporary)?,
                levels: levels.into_owned(),
            }),
        };
        if let Some(collection) = self.collection {
            let neighbourhood = Neighbourhood {
                collection,
                settings: &self.settings,
                scanned,
                keys,
                folder: self.folder,
                memory: budget.keys(),
            };
            neighbourhood.load()?;
        }
        Ok(kept)
    }

    /// Makes the keys of the new classes in another order of features than that of the collection that they are compared with.
    fn keys_in(
        &self,
        order: &FrequencyLevels,
        scanned: &ScannedCollection,
        memory: u64,
    ) -> io::Result<KeySink> {
        let keys = KeySink::new(self.folder, memory)?;
        self.push_keys(scanned, order, &keys)?;
        Ok(keys)
    }

    /// Writes the kept documents as a segment that is not yet part of the collection.
    pub(crate) fn stage_kept(
        &self,
        decided: &DedupDecisions,
    ) -> Result<Option<StagedAddition>, BatchError> {
        let (Some(writer), Some(kept)) = (self.addition, &decided.kept_facts) else {
            return Ok(None);
        };
        let scanned = &decided.scanned;
        let is_kept = |document: &u32| decided.outcomes.is_kept(*document as usize);
        let new = scanned.documents.against as u32..scanned.documents.len() as u32;
        let staged = self.stage(writer, scanned, kept, new.filter(is_kept))?;
        Ok(Some(staged))
    }

    /// Writes a segment with the chosen documents.
    fn stage(
        &self,
        writer: &CollectionWriter,
        scanned: &ScannedCollection,
        new: &AdditionFacts,
        chosen: impl Iterator<Item = u32>,
    ) -> Result<StagedAddition, CollectionError> {
        let settings = settings_of(&self.settings, &self.options);
        let source = SegmentSource {
            settings: &self.settings,
            scanned,
            new,
        };
        // For merging segments. The groups of candidates, which took more, have been freed.
        let memory = self.limits.memory / 8;
        StagedAddition::write(writer, settings, &source, chosen, memory)
    }

    /// Describes the states of the collections when the job was decided; with other states it is another job. `staged` is the path of an interrupted
    /// job's addition.
    pub(crate) fn collection_state(&self, staged: Option<&Path>) -> Result<String, BatchError> {
        let staged = staged.and_then(StagedAddition::load);
        // A resumed job may find its own addition in the collection; then the state before the addition counts.
        let base = match (&staged, self.addition) {
            (Some(staged), Some(writer)) => Some(staged.base(writer)?),
            _ => None,
        };
        let against = self.collection.map(|collection| match base {
            Some(base) if self.adds_to(&collection.folder) => base,
            _ => Some(collection.checksum),
        });
        let into = self
            .addition
            .map(|writer| writer.folder().display().to_string());
        Ok(match (against, into) {
            (None, None) => String::new(),
            (against, into) => format!(" against={:?} into={into:?}", against.flatten()),
        })
    }

    /// Returns the numbers of documents as they will be after the addition that was saved at a path.
    pub(crate) fn added(&self, staged: &Path) -> Result<Option<AddedDocuments>, BatchError> {
        let staged = self.staged(staged)?;
        let added = staged.map(|(staged, writer)| staged.added(writer));
        Ok(added.transpose()?)
    }

    /// Returns the addition that was saved at a path, if the job makes one.
    pub(crate) fn staged(
        &self,
        path: &Path,
    ) -> Result<Option<(StagedAddition, &CollectionWriter)>, BatchError> {
        let Some(writer) = self.addition else {
            return Ok(None);
        };
        // Without the file, nothing tells what the job had added.
        let lost = || CollectionError::Changed {
            folder: writer.folder().to_owned(),
        };
        let staged = StagedAddition::load(path).ok_or_else(lost)?;
        Ok(Some((staged, writer)))
    }
}

#[cfg(test)]
mod tests {
    use lookalike_corpus::{InputOptions, Inputs};

    use super::*;

    #[test]
    fn two_directories_that_were_gone_were_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let [input, seen, other] =
            ["in.jsonl", "seen", "other"].map(|name| folder.path().join(name));
        std::fs::write(&input, "{\"id\":\"a\",\"text\":\"a rose\"}\n").unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[input.into()], &options, folder.path()).unwrap();
        let writer = CollectionWriter::lock(&seen).unwrap();
        let job = DedupJob::new(&inputs, folder.path()).into_collection(&writer);
        assert!(job.adds_to(&seen));
        std::fs::remove_dir_all(&seen).unwrap();
        assert!(!job.adds_to(&other));
    }
}
