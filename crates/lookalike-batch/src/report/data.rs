//! Contents of a report as plain data. Jobs fill it, and the page reads it.

use serde::Serialize;

use crate::dedup::counts::WrittenBytes;

/// Everything that the report page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportData {
    /// Heading of the page, for example the name of the collection.
    pub title: String,
    /// The command line that produced these results.
    pub command: String,
    /// `allpairs`, `minhash`, `supershingle`, `simhash` or `copies`.
    pub method: String,
    /// Minimum resemblance of a near copy to the document kept for it, in `[0, 1]`.
    pub threshold: f64,
    /// Further tests that near copies passed, in the notation of the command.
    pub and: Vec<String>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Id of the scheme.
    pub scheme_id: String,
    /// Version of the engine.
    pub version: String,
    /// True if the true similarity of every near copy was computed.
    pub verified: bool,
    /// Probability that a pair exactly at the threshold becomes a candidate: 1.0 for `allpairs`, `None` if the method cannot state it.
    pub recall: Option<f64>,
    /// Totals of the job.
    pub counts: ReportCounts,
    /// Stages in the order in which they ran: name, wall seconds, CPU seconds.
    pub timings: Vec<(String, f64, f64)>,
    /// Peak resident memory of the process, in bytes.
    pub peak_memory_bytes: u64,
    /// Number of threads that the job was allowed.
    pub threads: usize,
    /// Memory that the job was allowed, in bytes.
    pub memory_limit_bytes: u64,
    /// Bytes of the records as written.
    pub written: WrittenBytes,
    /// Files and folders next to the report, with descriptions.
    pub results: Vec<ResultRow>,
    /// Inputs in reading order. The page lists the first [`Self::MAX_INPUTS`].
    pub inputs: Vec<InputRow>,
    /// Parts of the input that were skipped, and why.
    pub skips: Vec<SkipRow>,
    /// Clusters by number of members: the name of a bucket (`"2"`, `"3-4"`, ...) and the number of its clusters.
    pub cluster_sizes: Vec<(String, u64)>,
    /// Removed near copies by their similarity to the document kept for them: bins of equal width
    /// over `[similarity_from, 1]`, usually 20.
    pub similarities: Vec<u64>,
    /// Lower end of the first bin of `similarities`.
    pub similarity_from: f64,
    /// Number of removed exact copies. They are in no bin.
    pub similarity_exact: u64,
    /// Kept records by their similarity to the most similar kept record before them: bins as wide as those of `similarities`, from `below_from` to
    /// the threshold.
    pub below: Vec<u64>,
    /// Number of kept records that the counts of `below` were estimated from, and number of all kept records.
    pub below_sampled: [u64; 2],
    /// Lower end of the first bin of `below`.
    pub below_from: f64,
    /// The pairs closest below the threshold, most similar first.
    pub closest: Vec<BelowThresholdRow>,
    /// The cluster with most of the removed records, if there is one: its survivor and the number of records removed for it.
    pub dominant: Option<(String, u64)>,
    /// The largest clusters, in descending order. The page lists the first [`Self::MAX_CLUSTERS`].
    pub largest: Vec<ClusterRow>,
}

impl ReportData {
    /// Maximum number of inputs that the page lists one by one.
    pub const MAX_INPUTS: usize = 1000;
    /// Maximum number of clusters that the page shows one by one.
    pub const MAX_CLUSTERS: usize = 30;
}

/// Totals of a job. `kept + removed_exact + removed_near = records`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReportCounts {
    /// Records read.
    pub records: u64,
    /// Records kept.
    pub kept: u64,
    /// Records removed as exact copies.
    pub removed_exact: u64,
    /// Records removed as near copies.
    pub removed_near: u64,
    /// Groups of two or more records: a survivor and the records removed for it.
    pub clusters: u64,
    /// Sentences about fields that records do not have.
    pub notes: Vec<String>,
    /// Records with an empty text, which equals no other.
    pub empty: u64,
    /// Records longer than the limit, which were only compared for equal bytes.
    pub too_long: u64,
    /// Different texts without a feature under the scheme, which were only compared for exact equality.
    pub without_features: u64,
    /// Records with words that mix look-alike letters of different scripts.
    pub homoglyphs: u64,
    /// Files that could not be read at all and are copied to `skipped/`.
    pub skipped_files: u64,
    /// Lines that recur on many pages and were removed before the comparison.
    pub boilerplate_lines: u64,
    /// Records that such lines were removed from.
    pub boilerplate_records: u64,
    /// Near copies with the main text of a kept page but other visible text.
    pub removed_same_main_text: u64,
    /// Pages that are kept although their main text resembles that of a kept page.
    pub kept_as_pages: u64,
    /// HTML pages of which only a part was compared.
    pub pages: u64,
    /// Pages of these of which more than the main content was compared.
    pub fallen_back: u64,
    /// Bytes of the inputs as stored.
    pub input_bytes: u64,
    /// Bytes of the texts of all records.
    pub text_bytes: u64,
    /// Bytes of the texts of removed records.
    pub removed_text_bytes: u64,
}

impl ReportCounts {
    /// Returns the number of removed records, exact and near copies together.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed_exact.saturating_add(self.removed_near)
    }
}

/// One input file, archive or stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InputRow {
    /// Path or name.
    pub name: String,
    /// Format it was read as.
    pub format: String,
    /// Number of records in it.
    pub records: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of its records that were removed.
    pub removed: u64,
}

/// A file or folder with results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultRow {
    /// Its name in the folder of the report.
    pub name: String,
    /// Description of its content.
    pub what: String,
}

/// A reason for skipping, with the number of times that it occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkipRow {
    /// Short name, as in `skipped.jsonl`.
    pub what: String,
    /// Reason in words.
    pub reason: String,
    /// Number of occurrences.
    pub count: u64,
    /// True if documents are missing because of it.
    pub lost: bool,
    /// One occurrence, as an example.
    pub example: String,
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
#[non_exhaustive]
pub struct BelowThresholdRow {
    /// Id of the record that the job would prefer to keep.
    pub a_id: String,
    /// Id of the other record.
    pub b_id: String,
    /// Their similarity.
    pub similarity: f64,
    /// The two texts to show side by side, if both are available.
    pub example: Option<ReportExample>,
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
