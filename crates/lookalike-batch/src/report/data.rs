//! Content of a report, as plain data: filled by the jobs, read by the page.

use serde::Serialize;

use crate::dedup::counts::WrittenBytes;

/// Everything the report page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportData {
    /// Heading of the page, for example the name of the collection.
    pub title: String,
    /// The command line that made these results.
    pub command: String,
    /// `allpairs`, `minhash`, `supershingle`, `simhash` or `copies`.
    pub method: String,
    /// Least resemblance of a near copy to the document kept for it, in `[0, 1]`.
    pub threshold: f64,
    /// Further tests that near copies passed, as they are written.
    pub and: Vec<String>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Id of the scheme.
    pub scheme_id: String,
    /// Version of the engine.
    pub version: String,
    /// True if the true similarity of every near copy was computed.
    pub verified: bool,
    /// Probability that a pair exactly at the threshold becomes a candidate: 1.0 for `allpairs`,
    /// `None` where the method cannot state it.
    pub recall: Option<f64>,
    /// Totals of the job.
    pub counts: ReportCounts,
    /// Stages in the order they ran: name, wall seconds, CPU seconds.
    pub timings: Vec<(String, f64, f64)>,
    /// Largest resident size of the process.
    pub peak_memory_bytes: u64,
    /// Threads the job was allowed.
    pub threads: usize,
    /// Memory the job was allowed.
    pub memory_limit_bytes: u64,
    /// Bytes of the records as written.
    pub written: WrittenBytes,
    /// Files and folders beside the report, for those who read it.
    pub results: Vec<ResultRow>,
    /// Inputs in the order they were read. The page lists the first [`Self::MAX_INPUTS`].
    pub inputs: Vec<InputRow>,
    /// Things that were skipped, and why.
    pub skips: Vec<SkipRow>,
    /// Clusters by number of members: a bucket's name (`"2"`, `"3-4"`, ...) and its clusters.
    pub cluster_sizes: Vec<(String, u64)>,
    /// Removed near copies by their similarity to the document kept for them: bins of equal width
    /// over `[similarity_from, 1]`, usually 20.
    pub similarities: Vec<u64>,
    /// Lower end of the first bin of `similarities`.
    pub similarity_from: f64,
    /// Removed exact copies, which are in no bin.
    pub similarity_exact: u64,
    /// Kept records by their similarity to the most similar kept record before them: bins of the width
    /// of those of `similarities`, from `below_from` up to the threshold.
    pub below: Vec<u64>,
    /// Kept records by which those of `below` were estimated, and all of them.
    pub below_sampled: [u64; 2],
    /// Lower end of the first bin of `below`.
    pub below_from: f64,
    /// The pairs that come nearest to the threshold, most similar first.
    pub closest: Vec<BelowRow>,
    /// The cluster that holds most of what was removed, if one does: the kept record and how many were removed for it.
    pub dominant: Option<(String, u64)>,
    /// The largest clusters, largest first. The page lists the first [`Self::MAX_CLUSTERS`].
    pub largest: Vec<ClusterRow>,
}

impl ReportData {
    /// Inputs that the page lists one by one.
    pub const MAX_INPUTS: usize = 1000;
    /// Clusters that the page shows one by one.
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
    /// Groups of two or more records that belong together.
    pub clusters: u64,
    /// Sentences about fields that records lack.
    pub notes: Vec<String>,
    /// Records with an empty text: they equal nothing.
    pub empty: u64,
    /// Records longer than the limit, which were compared for equal bytes only.
    pub too_long: u64,
    /// Different texts without a feature under the scheme, compared only for exact equality.
    pub without_features: u64,
    /// Records with words that mix look-alike letters of scripts.
    pub homoglyphs: u64,
    /// Files that could not be read at all, which stand in `skipped/`.
    pub skipped_files: u64,
    /// Lines that recur on many pages and were taken out before anything was compared.
    pub boilerplate_lines: u64,
    /// Records they were taken from.
    pub boilerplate_records: u64,
    /// Near copies with the main text of a kept page, of which a reader sees something else.
    pub removed_same_main_text: u64,
    /// Pages that are kept though their main text is like that of a kept one.
    pub kept_as_pages: u64,
    /// HTML pages of which a part was compared.
    pub pages: u64,
    /// Of these, pages of which more than the main content was compared.
    pub fallen_back: u64,
    /// Bytes of the inputs as stored.
    pub input_bytes: u64,
    /// Bytes of the texts of all records.
    pub text_bytes: u64,
    /// Bytes of the texts of removed records.
    pub removed_text_bytes: u64,
}

impl ReportCounts {
    /// Records removed, exact and near.
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
    /// Records in it.
    pub records: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Records of it that were removed.
    pub removed: u64,
}

/// A file or folder of results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultRow {
    /// Its name in the folder of the report.
    pub name: String,
    /// Description of its content.
    pub what: String,
}

/// One reason for skipping, with how often it was met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkipRow {
    /// Short name, as in `skipped.jsonl`.
    pub what: String,
    /// Reason, for a person.
    pub reason: String,
    /// Number of them.
    pub count: u64,
    /// True if documents are missing because of it.
    pub lost: bool,
    /// One of them, to look at.
    pub example: String,
}

/// One cluster of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClusterRow {
    /// Id of the survivor.
    pub survivor: String,
    /// Members, the survivor included.
    pub members: u64,
    /// Members that are exact copies of the survivor, itself not counted.
    pub exact: u64,
    /// Least similarity of a member to the survivor, in `[0, 1]`.
    pub lowest_similarity: f64,
    /// Bytes of the texts of the removed members.
    pub bytes_saved: u64,
    /// Ids of some members, at most 20.
    pub sample_ids: Vec<String>,
    /// One pair to show side by side.
    pub example: Option<ReportExample>,
}

/// Two kept records that are nearly similar enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BelowRow {
    /// Id of the more wanted one.
    pub a_id: String,
    /// Id of the other.
    pub b_id: String,
    /// Their similarity.
    pub similarity: f64,
    /// The two side by side, where both texts are at hand.
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
    /// True if one of the texts was cut to fit.
    pub cut: bool,
    /// True if the main texts are equal, and these are all that a reader sees.
    pub whole_pages: bool,
}
