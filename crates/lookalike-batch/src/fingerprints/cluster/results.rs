//! Writes the results into a folder. Each file appears under its name only when it is complete, `run.json` last.
//!
//! ```text
//! kept.jsonl        ids of the documents that are kept
//! removed.jsonl     ids of those that are removed
//! clusters.jsonl    who was removed for whom, and why
//! run.json          settings, counts, cost
//! ```
//!
//! Documents are in file order or, without files, in the order of ids. Clusters are in the order in which their survivors are wanted.

use std::io::{self, Write};
use std::path::Path;

use lookalike_corpus::{AtomicFile, Compression, STATE_FOLDER as STATE, SUMMARY_FILE as LAST};
use serde::Serialize;

use super::documents::{ClusterDocuments, ReadDocuments};
use super::error::ClusterError;
use super::outcomes::{ClusterOutcomes, DocumentOutcome};
use super::summary::ClusterDecisionCounts;
use super::text_verification::VerifiedRemovals;
use crate::dedup::counts::LargestCluster;
use crate::error::BatchError;
use crate::fingerprints::files::ListedId;
use crate::output_dir::OutputDir;
use crate::spill::frame_sort::{FrameSort, SortedFrames};

/// Names of all results of `cluster` in its folder.
pub const CLUSTER_RESULTS: [&str; 5] =
    ["kept.jsonl", "removed.jsonl", "clusters.jsonl", LAST, STATE];

/// Bytes before the JSON of a survivor or member while clusters are sorted: the rank of the survivor, and the place of the member, from 1. The place
/// of the survivor is 0, so that it comes first.
const KEY_BYTES: usize = 8;

/// For `map_err`: wraps the error of a result that cannot be written, in a job that cannot be resumed.
pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> BatchError + '_ {
    move |cause| BatchError::File {
        path: path.to_owned(),
        cause,
        remedy: "results are written there; check its permissions and the free space, then repeat the command",
    }
}

/// Reason why a document was removed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RemovalReason {
    SameFingerprint,
    Near,
    Connected,
}

#[derive(Serialize)]
struct IdLine<'a> {
    id: ListedId<'a>,
}

#[derive(Serialize)]
struct RemovedMember<'a> {
    id: ListedId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u8>,
    /// Exact resemblance to the survivor, if texts were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    reason: RemovalReason,
}

/// Writer of the results of the decisions.
pub(super) struct ClusterWriter<'a> {
    pub(super) outcomes: &'a ClusterOutcomes<'a>,
    /// Result of the verification with texts, if there was one.
    pub(super) verified: Option<&'a VerifiedRemovals>,
    pub(super) place: &'a OutputDir<'a>,
    /// Folder for temporary files, and budget in bytes.
    pub(super) folder: &'a Path,
    pub(super) budget: u64,
    /// Number of threads that sort clusters.
    pub(super) threads: usize,
}

/// Facts about the written results.
pub(super) struct WrittenClusters {
    pub(super) counts: ClusterDecisionCounts,
    /// Number of fingerprints without ids that equal an earlier one.
    pub(super) repeated: u64,
    /// Facts about the files that were read for it.
    pub(super) read: Option<ReadDocuments>,
}

/// Files being written, with counts of their contents.
struct ClusterFiles {
    kept: AtomicFile,
    removed: AtomicFile,
    /// Survivors and members, each behind its key.
    clusters: FrameSort,
    counts: ClusterDecisionCounts,
    line: Vec<u8>,
}

impl ClusterFiles {
    fn id_line(&mut self, id: ListedId<'_>, is_kept: bool) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &IdLine { id })?;
        self.line.push(b'\n');
        match is_kept {
            true => self.kept.write_all(&self.line),
            false => self.removed.write_all(&self.line),
        }
    }

    /// Writes a kept document.
    fn keep(&mut self, id: ListedId<'_>) -> io::Result<()> {
        self.counts.kept += 1;
        self.id_line(id, true)
    }

    /// Adds a survivor or a member to the cluster of the survivor with this rank, in the folder for temporary files.
    fn add(&mut self, rank: u32, place: u32, json: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        self.line.extend(rank.to_be_bytes());
        self.line.extend(place.to_be_bytes());
        serde_json::to_writer(&mut self.line, json)?;
        self.clusters.push(&self.line)
    }
}

impl ClusterWriter<'_> {
    fn open(&self, name: &str) -> Result<AtomicFile, BatchError> {
        let path = self.place.path(name);
        AtomicFile::create(&path, Compression::None).map_err(unwritable(self.place.folder))
    }

    fn files(&self) -> Result<ClusterFiles, BatchError> {
        Ok(ClusterFiles {
            kept: self.open("kept.jsonl")?,
            removed: self.open("removed.jsonl")?,
            // Vectors double when they grow, and threads copy positions.
            clusters: FrameSort::new(self.budget / 2, self.folder).threads(self.threads),
            counts: ClusterDecisionCounts::default(),
            line: Vec::new(),
        })
    }

    /// Writes all files except the summary.
    pub(super) fn write(
        &self,
        documents: &ClusterDocuments<'_>,
    ) -> Result<WrittenClusters, BatchError> {
        let mut files = self.files()?;
        let mut similarities = self.verified.map(|verified| verified.similarities.iter());
        let mut repeated = 0;
        let failed = unwritable(self.place.folder);
        // Clusters are sorted in the other folder.
        let unsorted = BatchError::temporary(self.folder);
        let read = documents.for_each(&mut |document| {
            let id = document.id.listed();
            let (rank, outcome) = self.outcomes.of(&document);
            let linked = &self.outcomes.ranking.linked;
            // A line with this id would mean either document.
            if !document.is_bare && linked.is_repeated(&id, rank.is_some()) {
                let id = id.to_string();
                return Err(ClusterError::RepeatedId { id }.into());
            }
            match (rank, outcome) {
                (_, DocumentOutcome::Repeated) => {
                    repeated += 1;
                    Ok(())
                }
                (None, DocumentOutcome::Kept) => files.keep(id),
                (Some(rank), DocumentOutcome::Kept) => {
                    files.add(rank, 0, &id).map_err(&unsorted)?;
                    files.keep(id)
                }
                (_, DocumentOutcome::Removed { survivor, distance }) => {
                    // There is one for each removed document, because `ClaimedRemovals::collect` visited the same documents in the same order.
                    let similarity = similarities.as_mut().and_then(Iterator::next).copied();
                    match similarity.is_some_and(f64::is_nan) {
                        true => files.keep(id),
                        false => {
                            let member = RemovedMember::new(id, distance, similarity);
                            *count_of(&mut files.counts, member.reason) += 1;
                            let added = files.add(survivor, document.place + 1, &member);
                            added.map_err(&unsorted)?;
                            files.id_line(member.id, false)
                        }
                    }
                }
            }
            .map_err(&failed)
        })?;
        let clusters = files.clusters.finish().map_err(&unsorted)?;
        let clusters = self.write_clusters(clusters, &mut files.counts)?;
        // Rename when all three are complete. `run.json`, written later, shows that they belong together.
        for file in [files.kept, files.removed, clusters] {
            file.commit().map_err(&failed)?;
        }
        Ok(WrittenClusters {
            counts: files.counts,
            repeated,
            read,
        })
    }

    /// Writes the lines of all clusters, and counts them.
    fn write_clusters(
        &self,
        mut sorted: SortedFrames,
        counts: &mut ClusterDecisionCounts,
    ) -> Result<AtomicFile, BatchError> {
        let failed = unwritable(self.place.folder);
        let unsorted = BatchError::temporary(self.folder);
        let mut out = self.open("clusters.jsonl")?;
        let (mut survivor, mut members) = (Vec::new(), 0);
        loop {
            let next = sorted.next().transpose().map_err(&unsorted)?;
            let is_member = |next: &Vec<u8>| next[4..KEY_BYTES] != [0; 4];
            // Only behind its last member is it known that a cluster ends.
            if members > 0 && !next.as_ref().is_some_and(is_member) {
                out.write_all(b"]}\n").map_err(&failed)?;
                let largest = counts.largest_cluster.as_ref();
                if largest.is_none_or(|largest| members > largest.removed) {
                    let survivor = text_of(&survivor);
                    let removed = members;
                    counts.largest_cluster = Some(LargestCluster { survivor, removed });
                }
            }
            let Some(next) = next else {
                return Ok(out);
            };
            let (key, json) = next.split_at(KEY_BYTES);
            if key.ends_with(&[0; 4]) {
                // Nothing may be removed for it: then it has no line.
                (survivor, members) = (json.to_vec(), 0);
                continue;
            }
            let written = match members {
                0 => {
                    counts.clusters += 1;
                    write!(out, "{{\"cluster\":{},\"survivor\":", counts.clusters)
                        .and_then(|()| out.write_all(&survivor))
                        .and_then(|()| out.write_all(b",\"members\":["))
                }
                _ => out.write_all(b","),
            };
            written
                .and_then(|()| out.write_all(json))
                .map_err(&failed)?;
            members += 1;
        }
    }
}

impl<'a> RemovedMember<'a> {
    fn new(id: ListedId<'a>, distance: Option<u8>, similarity: Option<f64>) -> Self {
        let reason = match distance {
            Some(0) => RemovalReason::SameFingerprint,
            Some(_) => RemovalReason::Near,
            None => RemovalReason::Connected,
        };
        Self {
            id,
            distance,
            similarity,
            reason,
        }
    }
}

/// Returns an id in JSON as text.
fn text_of(id: &[u8]) -> String {
    match serde_json::from_slice(id) {
        Ok(ListedId::Text(text)) => text.into_owned(),
        _ => String::from_utf8_lossy(id).into_owned(),
    }
}

fn count_of(counts: &mut ClusterDecisionCounts, reason: RemovalReason) -> &mut u64 {
    match reason {
        RemovalReason::SameFingerprint => &mut counts.removed_same_fingerprint,
        RemovalReason::Near => &mut counts.removed_near,
        RemovalReason::Connected => &mut counts.removed_connected,
    }
}
