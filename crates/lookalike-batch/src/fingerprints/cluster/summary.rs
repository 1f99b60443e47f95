//! Summary of a decision by fingerprints: the contents of its `run.json`.

use serde::Serialize;

use super::{FingerprintKeep, FingerprintRule};
use crate::dedup::counts::LargestCluster;
use crate::fingerprints::files::CodesSummary;
use crate::fingerprints::sketches::EqualPlaces;
use crate::observer::MeasuredCost;
use crate::settings::JobLimits;
use crate::skipped::SkippedRow;

/// Summary of the job, written as `run.json`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterSummary {
    /// Name of the program, by which a folder of results is recognised.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Rule that decided which documents are removed.
    pub rule: FingerprintRule,
    /// True if every removed document was compared with its survivor, at least by fingerprint.
    pub compared: bool,
    /// True if the texts of every removed document and its survivor were compared.
    pub verified: bool,
    /// Largest distance of a pair, in bits. For lists of pairs only if it was set.
    pub distance: Option<u32>,
    /// Minimum number of equal places in the sketches of a pair, if sketches of several places were joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal: Option<EqualPlaces>,
    /// Document of a cluster that survives.
    pub keep: FingerprintKeep,
    /// Fingerprint files that were read.
    pub inputs: Vec<CodesSummary>,
    /// Lists of pairs that were read.
    pub pair_lists: Vec<String>,
    /// Names of all files and folders that the job left in its folder. [`IfExists::Overwrite`](crate::IfExists::Overwrite) replaces these and nothing
    /// else.
    pub results: Vec<String>,
    /// Counts of the input and of the pairs.
    pub counts: ClusterCounts,
    /// Counts of the decisions.
    pub decisions: ClusterDecisionCounts,
    /// Result of the verification with texts, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationSummary>,
    /// Limits of the job.
    pub limits: JobLimits,
    /// Cost of the job.
    pub measured: MeasuredCost,
}

/// Counts of the input and of the pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterCounts {
    /// Number of documents: those of the files or, without files, the ids of the pairs.
    pub documents: u64,
    /// Number of fingerprints without ids that equal an earlier one. They are one document with it.
    pub repeated: u64,
    /// Number of texts without features in the files. They have no fingerprint, so they are neither kept nor removed here.
    pub without_features: u64,
    /// Number of pairs of different fingerprints that were found, or of listed pairs with a distance above zero.
    pub pairs: u64,
    /// Peak bytes of tables in temporary files.
    pub tables_on_disk: u64,
}

/// Counts of the decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterDecisionCounts {
    /// Number of documents kept.
    pub kept: u64,
    /// Number of documents removed for a kept one with an equal fingerprint.
    pub removed_same_fingerprint: u64,
    /// Number of documents removed for a kept one with a fingerprint within the distance.
    pub removed_near: u64,
    /// Number of documents removed for a kept one of the same component that they were not compared with.
    pub removed_connected: u64,
    /// Number of kept documents that others were removed for.
    pub clusters: u64,
    /// The cluster that most documents were removed from. `None` if none was removed.
    pub largest_cluster: Option<LargestCluster>,
}

impl ClusterDecisionCounts {
    /// Returns the number of documents removed.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed_same_fingerprint + self.removed_near + self.removed_connected
    }
}

/// Result of verifying a decision by fingerprints with the texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerificationSummary {
    /// Minimum resemblance of a removed document to its survivor.
    pub threshold: f64,
    /// Canonical text of the scheme that texts were compared under.
    pub scheme: String,
    /// Id of the scheme.
    pub scheme_id: String,
    /// Counts of texts, and of the decisions that they changed.
    pub counts: VerificationCounts,
    /// Texts that could not be read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// Counts of texts, and of the decisions that they changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerificationCounts {
    /// Number of documents whose texts were compared.
    pub texts: u64,
    /// Number of documents without a text among those that would be removed or that others would be removed for.
    pub missing: u64,
    /// Number of documents that fingerprints would remove but that are kept, because the texts do not resemble each other or one is missing.
    pub kept_after_all: u64,
    /// Documents among these for which a text is missing.
    pub without_text: u64,
}
