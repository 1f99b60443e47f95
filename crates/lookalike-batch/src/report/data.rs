//! Contents of a report as plain data. Jobs fill it, and the page reads it.

use serde::Serialize;

use crate::dedup::counts::WrittenBytes;

/// Contents of the report page besides the summary of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ReportData {
    /// Heading of the page, for example the name of the collection.
    pub(crate) title: String,
    /// Bytes of the records as written.
    pub(crate) written: WrittenBytes,
    /// Inputs in reading order. The page lists the first [`Self::MAX_INPUTS`].
    pub(crate) inputs: Vec<InputRow>,
    /// Clusters by number of members: the name of a bucket (`"2"`, `"3-4"`, ...) and the number of its clusters.
    pub(crate) cluster_sizes: Vec<(String, u64)>,
    /// Removed near copies by their similarity to the document kept for them: bins of equal width
    /// over `[similarity_from, 1]`, usually 20.
    pub(crate) similarities: Vec<u64>,
    /// Lower end of the first bin of `similarities`.
    pub(crate) similarity_from: f64,
    /// Kept records by their similarity to the most similar other kept record: bins as wide as those of `similarities`, up to the threshold.
    pub(crate) below: Vec<u64>,
    /// The pairs closest below the threshold, most similar first.
    pub(crate) closest: Vec<BelowThresholdRow>,
    /// The largest clusters, in descending order. The page lists the first [`Self::MAX_CLUSTERS`].
    pub(crate) largest: Vec<ClusterRow>,
    /// Of the other clusters, those with the least similar members, in ascending order of similarity.
    pub(crate) least_similar: Vec<ClusterRow>,
}

impl ReportData {
    /// Maximum number of inputs that the page lists one by one.
    pub(crate) const MAX_INPUTS: usize = 1000;
    /// Maximum number of the largest clusters that the page shows one by one.
    pub(crate) const MAX_CLUSTERS: usize = 30;
}

/// One input file, archive or stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct InputRow {
    /// Path or name.
    pub(crate) name: String,
    /// Format it was read as.
    pub(crate) format: String,
    /// Number of records in it.
    pub(crate) records: u64,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Number of its records that were removed.
    pub(crate) removed: u64,
}

/// One cluster of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClusterRow {
    /// Id of the survivor.
    pub survivor: String,
    /// Number of members, the survivor included.
    pub members: u64,
    /// Number of members that are exact copies of the survivor, which is not counted.
    pub exact: u64,
    /// Lowest similarity of a member to the survivor, in `[0, 1]`.
    pub lowest_similarity: f64,
    /// Bytes of the texts of the removed members.
    pub bytes_saved: u64,
    /// Ids of some members, at most 20.
    pub sample_ids: Vec<String>,
    /// One pair to show side by side, if there is one.
    pub example: Option<ReportExample>,
}

/// Two kept records just below the threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct BelowThresholdRow {
    /// Id of the record that the job would prefer to keep.
    pub(crate) a_id: String,
    /// Id of the other record.
    pub(crate) b_id: String,
    /// Their similarity.
    pub(crate) similarity: f64,
    /// The two texts to show side by side, if both are available.
    pub(crate) example: Option<ReportExample>,
}

/// A survivor and one member of its cluster, with their texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportExample {
    /// Id of the survivor.
    pub a_id: String,
    /// Id of the member.
    pub b_id: String,
    /// Their similarity, in `[0, 1]`.
    pub similarity: f64,
    /// Text of the survivor, at most about 20 KB.
    pub a_text: String,
    /// Text of the member, at most about 20 KB.
    pub b_text: String,
    /// True if one of the texts was truncated.
    pub cut: bool,
    /// True if the main texts are equal, and the texts shown are all visible text instead.
    pub whole_pages: bool,
}
