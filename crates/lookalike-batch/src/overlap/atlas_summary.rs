//! Summary of an atlas: the contents of its `run.json`.

use serde::Serialize;

use super::job::OverlapSummary;
use super::replicas::ReplicaLevel;
use crate::observer::MeasuredCost;
use crate::settings::JobLimits;

/// Contents of `run.json`.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct AtlasSummary {
    /// Name of the program, [`PROGRAM`](lookalike_corpus::PROGRAM). A folder of results is recognised by it.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Names of all files and folders that the job left in its folder. [`IfExists::Overwrite`](crate::IfExists::Overwrite) replaces these and nothing
    /// else.
    pub results: Vec<String>,
    /// Settings that the result depends on.
    pub settings: String,
    /// Counts of documents and of each chunking.
    #[serde(flatten)]
    pub overlap: OverlapSummary,
    /// Levels of replication: of equal texts, then by each chunking.
    pub levels: Vec<ReplicaLevel>,
    /// Number of rows of servers, by chunking.
    pub server_rows: Vec<u64>,
    /// Number of page sets that several servers hold.
    pub mirrored_sets: u64,
    /// Number of pages in these sets; near-copies count once.
    pub mirrored_pages: u64,
    /// Number of alias classes, of servers and of URLs.
    pub aliases: u64,
    /// Number of servers with the pages and paths of others that are not aliases because their addresses differ.
    pub apart_by_address: u64,
    /// Number of pages. Documents with the same URL are one page, whatever their texts.
    pub pages: u64,
    /// Number of pages in `skip.jsonl`: the contents of all their documents are in a kept document of another page.
    pub skip: u64,
    /// The chunking by which near-copies are skipped. `None` if only equal texts are.
    pub skip_chunking: Option<String>,
    /// Limits of the job.
    pub limits: JobLimits,
    /// True if the job reused what an interrupted job had read.
    pub resumed: bool,
    /// Cost of the job.
    pub measured: MeasuredCost,
}
