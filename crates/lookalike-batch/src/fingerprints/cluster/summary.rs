//! Summary of a decision by fingerprints: its `run.json`.

use serde::Serialize;

use super::{FingerprintKeep, FingerprintRule};
use crate::dedup::counts::LargestCluster;
use crate::fingerprints::files::CodesSummary;
use crate::fingerprints::sketches::EqualPlaces;
use crate::observer::MeasuredCost;
use crate::settings::JobLimits;
use crate::skipped::SkippedRow;

/// Summary of the job: the content of `run.json`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterSummary {
    /// The program, by which a folder of results is known.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Rule by which documents are removed.
    pub rule: FingerprintRule,
    /// True if every removed document was compared with its survivor, by their fingerprints at least.
    pub compared: bool,
    /// True if every removed document was compared with its survivor by their texts.
    pub verified: bool,
    /// Most bits in which fingerprints of a pair differ; of lists of pairs only where it was asked for.
    pub distance: Option<u32>,
    /// Places that are equal at least in the sketches of a pair, where sketches of several places were joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal: Option<EqualPlaces>,
    /// Document of a cluster that survives.
    pub keep: FingerprintKeep,
    /// Files of fingerprints that were read.
    pub inputs: Vec<CodesSummary>,
    /// Lists of pairs that were read.
    pub pair_lists: Vec<String>,
    /// Names of all files and folders that the job left in its folder: [`IfExists::Overwrite`](crate::IfExists::Overwrite) replaces these, and nothing else.
    pub results: Vec<String>,
    /// Counts of what was read and found.
    pub counts: ClusterCounts,
    /// Counts of what was decided.
    pub decisions: ClusterDecisionCounts,
    /// Answer of the texts, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationSummary>,
    /// Limits of the job.
    pub limits: JobLimits,
    /// Cost of the job.
    pub measured: MeasuredCost,
}

/// Counts of what was read and found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterCounts {
    /// Documents: those of the files, or, without files, the ids of the pairs.
    pub documents: u64,
    /// Fingerprints without ids that equal an earlier one: these are one document.
    pub repeated: u64,
    /// Texts without features in the files, which have no fingerprint: they are neither kept nor removed here.
    pub without_features: u64,
    /// Pairs of different fingerprints that were found, or pairs that were listed with a distance above zero.
    pub pairs: u64,
    /// Bytes of tables that were in temporary files at once.
    pub tables_on_disk: u64,
}

/// Counts of what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterDecisionCounts {
    /// Documents kept.
    pub kept: u64,
    /// Documents removed for a kept one of equal fingerprint.
    pub removed_same_fingerprint: u64,
    /// Documents removed for a kept one whose fingerprint is within the distance.
    pub removed_near: u64,
    /// Documents removed for a kept one of the same component, with which they were not compared.
    pub removed_connected: u64,
    /// Kept documents for which others were removed.
    pub clusters: u64,
    /// The cluster from which most documents were removed.
    pub largest_cluster: Option<LargestCluster>,
}

impl ClusterDecisionCounts {
    /// Documents removed.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed_same_fingerprint + self.removed_near + self.removed_connected
    }
}

/// Answer of the texts to a decision by fingerprints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerificationSummary {
    /// Least resemblance of a removed document to its survivor.
    pub threshold: f64,
    /// Canonical text of the scheme by which texts were compared.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// Counts of texts, and of what they changed.
    pub counts: VerificationCounts,
    /// Texts that could not be read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// Counts of texts, and of what they changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerificationCounts {
    /// Documents whose texts were compared.
    pub texts: u64,
    /// Documents that would be removed, or survive others, and whose text was not there.
    pub missing: u64,
    /// Documents that fingerprints would remove, and that are kept: the texts do not resemble each other, or one was not there.
    pub kept_after_all: u64,
    /// Those among them of which a text was not there.
    pub without_text: u64,
}
