//! Summary of an atlas: the content of its `run.json`.

use serde::Serialize;

use super::job::OverlapSummary;
use super::replicas::ReplicaLevel;
use crate::observer::MeasuredCost;
use crate::settings::JobLimits;

/// The content of `run.json`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AtlasSummary {
    /// The program: [`PROGRAM`](lookalike_corpus::PROGRAM), by which a folder of results is known.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Names of all files and folders that the job left in its folder: [`IfExists::Overwrite`](crate::IfExists::Overwrite) replaces these, and nothing else.
    pub results: Vec<String>,
    /// Settings that decided the result.
    pub settings: String,
    /// Counts of documents and of each chunking.
    #[serde(flatten)]
    pub overlap: OverlapSummary,
    /// Replication of equal texts, then by each chunking.
    pub levels: Vec<ReplicaLevel>,
    /// Rows of servers, by chunking.
    pub server_rows: Vec<u64>,
    /// Page sets that several servers hold.
    pub mirrored_sets: u64,
    /// Pages in these, near copies counted once.
    pub mirrored_pages: u64,
    /// Classes of servers that are aliases, and of URLs.
    pub aliases: u64,
    /// Servers with the pages and paths of others that are no aliases because their addresses differ.
    pub apart_by_address: u64,
    /// Pages: documents of one URL are one page, whatever their texts.
    pub pages: u64,
    /// Pages in `skip.jsonl`: all their documents have their content in a kept document of another page.
    pub skip: u64,
    /// The chunking by which near copies are skipped; none when equal texts are all.
    pub skip_chunking: Option<String>,
    /// Limits of the job.
    pub limits: JobLimits,
    /// True if what an interrupted job had read was taken over.
    pub resumed: bool,
    /// Cost of the job.
    pub measured: MeasuredCost,
}
