//! Decides from fingerprints which documents to keep and which to remove, for `lookalike cluster`.
//!
//! Documents with equal fingerprints form a class, and classes within the distance are pairs. A class joins the closest survivor among the classes
//! that are wanted more, or survives itself. This is the rule of [`lookalike::cluster::survivors`]: every removed document is within the distance of
//! a kept one, and chains lead no farther. Connected components are available as another rule.
//!
//! ```text
//! sketch_classes     of sketches of several places: the different ones, which take the place of fingerprints, and their pairs
//! linked_classes     pairs: the self-join of files, or the lists that `join` wrote; classes that have one, or several documents
//! class_ranking      files once more: the best document of each class, and their order
//! class_decisions    pairs in the order of their less wanted class: survivors
//! results            files once more: kept, removed, clusters
//! ```
//!
//! Memory: about ten bytes for each fingerprint while pairs are found (for sketches of several places, twice the sketch and forty bytes), then about
//! thirty bytes for each class that matters. Tables are in files beyond their share, except eight bytes for each class. Pairs wait on disk. The result
//! does not depend on the order of pairs, the threads or the memory. Texts are only read if `text_verification` is requested: a decision by
//! fingerprints is not verified.

mod class_decisions;
mod class_ranking;
mod documents;
mod edge_spool;
mod error;
mod id_table;
mod linked_classes;
mod linked_ids;
mod memory_shares;
mod outcomes;
mod repeated_fingerprints;
mod results;
mod sketch_classes;
mod sorted_fingerprints;
mod summary;
#[cfg(test)]
mod tests;
mod text_verification;

use std::path::Path;

use lookalike_corpus::PROGRAM;
use serde::Serialize;

pub use error::ClusterError;
pub use results::CLUSTER_RESULTS;
pub use summary::{
    ClusterCounts, ClusterDecisionCounts, ClusterSummary, VerificationCounts, VerificationSummary,
};
pub use text_verification::TextVerification;

use crate::error::BatchError;
use crate::fingerprints::files::FingerprintSource;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{MinEqual, SketchPositions};
use crate::fingerprints::{DEFAULT_DISTANCE, MAX_DISTANCE};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress};
use crate::output_dir::{IfExists, JobIdentity, OutputDir};
use crate::path_lock::PathLock;
use crate::setting_words::setting_from_str;
use crate::settings::JobLimits;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{TableShare, max_mapped};
use class_ranking::ClassRanking;
use documents::{ClusterDocuments, DocumentFiles};
use linked_classes::{ClassIndex, LinkedClasses};
use memory_shares::MemoryShares;
use outcomes::ClusterOutcomes;
use results::{ClusterWriter, WrittenClusters};
use sketch_classes::SketchClasses;
use text_verification::VerifiedRemovals;

/// Rule that decides which documents are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FingerprintRule {
    /// Every removed document is within the distance of its survivor: [`lookalike::cluster::survivors`].
    #[default]
    Stars,
    /// One document of each connected component is kept, whatever its distance to the others.
    Components,
}

lookalike::words! {
    /// Document of a cluster that survives. Fingerprints say nothing about lengths or fields.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FingerprintKeep: Serialize {
        /// The first document in the files.
        First = "first",
        /// The last document in the files.
        Last = "last",
        /// The document with the smallest id: numbers come first, by value, then texts byte by byte.
        Id = "id",
    }
}

setting_from_str!(FingerprintKeep, "rule";
    "fingerprints tell neither lengths nor fields, which `lookalike dedup` reads");

lookalike::job! {
    /// Job that clusters documents by their fingerprints.
    #[derive(Clone, Debug)]
    pub struct FingerprintClustering<'a> {
        /// Creates a job over fingerprint files, in any of their formats. Without files, the ids of the pairs are all documents. Temporary files go to
        /// `folder`.
        new(inputs: &'a [FingerprintSource], folder: &'a Path);
        /// Sets lists of pairs as [`FingerprintJoin`](crate::FingerprintJoin) writes them. By default there are none, and the files are joined with
        /// themselves.
        pairs: &'a [FingerprintSource] = &[],
        /// Sets the largest distance of a pair, in bits. Default: 3 for files; for lists of pairs, whatever distances they have.
        distance: Option<u32>,
        /// Declares that the files hold sketches of several places, and sets how many of these must be equal. No other distance can be set then.
        equal: Option<MinEqual>,
        /// Sets which document of a cluster survives. By default it is the first one; without files, the one with the smallest id.
        keep: Option<FingerprintKeep>,
        /// Sets the rule that decides which documents are removed.
        rule: FingerprintRule,
        /// Sets the texts that removals are verified with. By default they are not verified.
        verify: Option<&'a TextVerification<'a>>,
        /// Sets the policy for lines of files that cannot be read. A pair that cannot be read is always an error.
        losses: LossPolicy,
        /// Sets how many threads and how much memory the job may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets the observer of progress.
        observer: &'a dyn JobObserver = &NoProgress,
    }
}

impl<'a> FingerprintClustering<'a> {
    fn survivor(&self) -> FingerprintKeep {
        self.keep.unwrap_or(match self.inputs.is_empty() {
            true => FingerprintKeep::Id,
            false => FingerprintKeep::First,
        })
    }

    fn check(&self) -> Result<(), FingerprintSettingsError> {
        if self.inputs.is_empty() && self.pairs.is_empty() {
            return Err(FingerprintSettingsError::NothingToCluster);
        }
        if self.inputs.iter().any(FingerprintSource::is_standard_input) {
            return Err(FingerprintSettingsError::StandardInputOnce);
        }
        // Pairs are sorted by id, so the first and the last of them mean nothing.
        if self.inputs.is_empty() && self.survivor() != FingerprintKeep::Id {
            return Err(FingerprintSettingsError::NoOrder);
        }
        if self.equal.is_some() && (self.inputs.is_empty() || self.distance.is_some()) {
            return Err(FingerprintSettingsError::EqualOfFiles);
        }
        match self.distance {
            // With lists the distance only selects pairs, so nothing is searched for and any value is fine.
            Some(distance) if self.pairs.is_empty() && distance > MAX_DISTANCE => {
                let most = MAX_DISTANCE;
                Err(FingerprintSettingsError::DistanceTooLarge { distance, most })
            }
            _ => Ok(()),
        }
    }

    /// Decides and writes the results into `folder`. `command` is stored in the summary.
    ///
    /// # Errors
    /// [`BatchError`]. In any case no file under its final name is incomplete, and `run.json` exists only if everything does.
    pub fn cluster(
        &self,
        folder: &Path,
        if_exists: IfExists,
        command: &str,
    ) -> Result<ClusterSummary, BatchError> {
        self.check()?;
        let place = OutputDir {
            folder,
            results: &CLUSTER_RESULTS,
        };
        let _lock = self.enter(&place, if_exists)?;
        let done = self.write(&place, command);
        // There is nothing to resume from.
        done.inspect_err(|_| place.discard_undecided())
    }

    fn write(&self, place: &OutputDir<'_>, command: &str) -> Result<ClusterSummary, BatchError> {
        let _tables = TableShare::open(MemoryShares::new(&self.limits).tables(), self.folder);
        let Some(least) = self.equal else {
            let summary = self.decide_and_write(place, command, None)?;
            return publish(place, summary);
        };
        let sketches = self.read_sketches(least)?;
        let beside = FingerprintClustering {
            // Lists state the number of places that differ.
            distance: Some(sketches.max_distance()),
            ..self.clone()
        };
        let mut summary = beside.decide_and_write(place, command, Some(&sketches))?;
        // The number of places was only needed for the decision; the summary tells it as the caller stated it, by equal places.
        summary.distance = None;
        summary.equal = Some(sketches.equal());
        publish(place, summary)
    }

    /// Decides and writes everything but the summary.
    fn decide_and_write(
        &self,
        place: &OutputDir<'_>,
        command: &str,
        sketches: Option<&SketchClasses>,
    ) -> Result<ClusterSummary, BatchError> {
        let shares = MemoryShares::new(&self.limits);
        let positions = sketches.map(|classes| &classes.sketches);
        let shares = shares.reserving_tables(positions.map_or(0, SketchPositions::bytes));
        let distinct = positions.map(|positions| &positions.distinct);
        let files = DocumentFiles {
            paths: self.inputs,
            losses: self.losses,
            observer: self.observer,
            digest: None,
            sketches: positions,
        };
        let linked = match (sketches, self.pairs.is_empty()) {
            // Lists take the place of a join, for sketches as for fingerprints.
            (_, false) => self.read_pairs(shares)?,
            (Some(sketches), true) => self.join_sketches(sketches)?,
            (None, true) => self.join_files(&files)?,
        };
        let mut documents = self.documents(files, &linked);
        let ranking = self.rank(&linked.index, &documents, distinct, shares)?;
        // From here on the files must be unchanged since the ranking: documents are remembered by their places only.
        if let ClusterDocuments::Files(files) = &mut documents {
            files.digest = ranking.digest;
        }
        // It serves the sorting of pairs and then that of clusters, never both at once.
        let budget = Self::sorting_budget(shares, &linked.index, &ranking)?;
        let decisions = self.decide(&linked, &ranking, budget)?;
        let outcomes = ClusterOutcomes {
            index: &linked.index,
            ranking: &ranking,
            decisions: &decisions,
        };
        let verify = |texts| self.verify_removals(texts, &outcomes, &documents, &shares);
        let verified = self.verify.map(verify).transpose()?;
        self.observer.stage(JobStage::Write, 0);
        let writer = ClusterWriter {
            outcomes: &outcomes,
            verified: verified.as_ref(),
            place,
            folder: self.folder,
            budget,
            threads: self.limits.workers(),
        };
        let written = writer.write(&documents)?;
        let mut summary = self.summary(written, linked.edges.len(), command);
        summary.verification = verified.and_then(|verified| self.verification(verified));
        Ok(summary)
    }

    /// Returns all documents: those of the files or, without files, the ids of the pairs.
    fn documents<'l>(
        &'l self,
        files: DocumentFiles<'l>,
        linked: &'l LinkedClasses,
    ) -> ClusterDocuments<'l> {
        match &linked.index {
            ClassIndex::Ids { ids, .. } if self.inputs.is_empty() => {
                // Documents in lists have no order of their own, so they take that of their ids.
                let mut order: TableColumn<u32> = (0..ids.len()).collect();
                order.sort_unstable_by(|&a, &b| ids.compare(a, b));
                ClusterDocuments::Ids(ids, order)
            }
            _ => ClusterDocuments::Files(DocumentFiles {
                digest: linked.read.as_ref().map(|read| read.digest),
                ..files
            }),
        }
    }

    /// Returns the bytes for sorting pairs, next to everything known about classes.
    fn sorting_budget(
        shares: MemoryShares,
        index: &ClassIndex,
        ranking: &ClassRanking<'_>,
    ) -> Result<u64, ClusterError> {
        let tables = index.fingerprint_bytes() + ranking.linked_bytes;
        shares.sorting(index.len() as u64, tables, ranking.held_bytes)
    }

    fn summary(&self, written: WrittenClusters, pairs: u64, command: &str) -> ClusterSummary {
        let inputs = written.read.map_or(Vec::new(), |read| read.files);
        let names = self.pairs.iter().map(|path| path.name().to_string());
        ClusterSummary {
            program: PROGRAM,
            version: env!("CARGO_PKG_VERSION"),
            command: command.to_owned(),
            rule: self.rule,
            compared: self.rule == FingerprintRule::Stars,
            verified: self.verify.is_some(),
            distance: match self.pairs.is_empty() && self.equal.is_none() {
                // The default was used only in a join; lists may have pairs of any distance.
                true => Some(self.radius()),
                false => self.distance,
            },
            equal: None,
            keep: self.survivor(),
            pair_lists: names.collect(),
            results: Vec::new(),
            counts: ClusterCounts {
                documents: written.counts.kept + written.counts.removed(),
                repeated: written.repeated,
                without_features: inputs.iter().map(|file| file.without_features).sum(),
                pairs,
                tables_on_disk: max_mapped(self.folder),
            },
            inputs,
            decisions: written.counts,
            verification: None,
            limits: self.limits.clone(),
            measured: self.observer.measured(),
        }
    }

    fn verification(&self, verified: VerifiedRemovals) -> Option<VerificationSummary> {
        let texts = self.verify?;
        Some(VerificationSummary {
            threshold: texts.threshold,
            scheme: texts.scheme.to_string(),
            scheme_id: texts.scheme.id().to_string(),
            counts: verified.counts,
            skipped: verified.skipped,
        })
    }

    /// Prepares the folder. There is nothing to resume, so incomplete results are made again.
    fn enter(&self, place: &OutputDir<'_>, if_exists: IfExists) -> Result<PathLock, BatchError> {
        let identity = JobIdentity {
            settings: format!(
                "{:?} {:?} {:?} {}",
                self.rule,
                self.distance,
                self.equal,
                self.survivor()
            ),
            input: format!("{:?} {:?}", self.inputs, self.pairs),
        };
        let if_exists = match if_exists {
            IfExists::New => IfExists::New,
            IfExists::Overwrite | IfExists::Resume => IfExists::Overwrite,
        };
        place.enter(if_exists, &identity)
    }
}

fn publish(
    place: &OutputDir<'_>,
    mut summary: ClusterSummary,
) -> Result<ClusterSummary, BatchError> {
    summary.results = place.written()?;
    place.write_summary(&summary)?;
    place.publish()?;
    Ok(summary)
}
