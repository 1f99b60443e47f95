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
use crate::spill::arrange::{ExpectedRecords, RecordArranger};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::check;

/// Names of all results of `cluster` in its folder.
pub const CLUSTER_RESULTS: [&str; 5] =
    ["kept.jsonl", "removed.jsonl", "clusters.jsonl", LAST, STATE];

/// Maximum bytes of a member in a line, besides its id.
const MEMBER_BYTES: u64 = 80;

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

/// Places of clusters and members in `clusters.jsonl`, by rank of the survivor.
struct ClusterPositions {
    /// Place of each survivor, and the end of all.
    starts: TableColumn<u32>,
    /// Place of the next member of each survivor.
    next: TableColumn<u32>,
    /// Number of each survivor's cluster.
    numbers: TableColumn<u32>,
    /// The survivor that most documents are removed for; the first of ties.
    largest: Option<u32>,
}

impl ClusterPositions {
    /// Assigns places from the number of removed documents by rank of their survivor.
    fn new(sizes: TableColumn<u32>) -> Self {
        let ranks = sizes.len();
        let most = sizes.iter().copied().max().filter(|&most| most > 0);
        let largest = sizes.iter().position(|&size| Some(size) == most);
        let (mut starts, mut next) = (sizes, TableColumn::with_capacity(ranks));
        let mut numbers = TableColumn::with_capacity(ranks);
        let (mut end, mut clusters) = (0, 0);
        for start in starts.iter_mut() {
            let size = *start;
            *start = end;
            // The survivor's place comes before those of its members.
            next.push(end + 1);
            if size > 0 {
                // Cannot overflow: members and survivors are different documents, and those have 32-bit numbers.
                end += size + 1;
                clusters += 1;
            }
            // Also for ranks without a cluster, so that the column is looked up by rank; their numbers are never used.
            numbers.push(clusters);
        }
        starts.push(end);
        Self {
            starts,
            next,
            numbers,
            largest: largest.map(|rank| rank as u32),
        }
    }

    /// Returns the number of documents removed for a survivor.
    fn removed(&self, rank: u32) -> u32 {
        let rank = rank as usize;
        // No place at all if nothing is removed, otherwise one for the survivor.
        (self.starts[rank + 1] - self.starts[rank]).saturating_sub(1)
    }

    fn all(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }
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
    clusters: RecordArranger,
    places: ClusterPositions,
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

    /// Starts the line of a cluster with its survivor, if any documents were removed for it. It is written to the folder for temporary files.
    fn begin(&mut self, rank: u32, survivor: &ListedId<'_>) -> io::Result<()> {
        let removed = u64::from(self.places.removed(rank));
        if removed == 0 {
            return Ok(());
        }
        self.counts.clusters += 1;
        if self.places.largest == Some(rank) {
            self.counts.largest_cluster = Some(LargestCluster {
                survivor: text_of(survivor),
                removed,
            });
        }
        let line = &mut self.line;
        line.clear();
        let number = self.places.numbers[rank as usize];
        write!(line, "{{\"cluster\":{number},\"survivor\":")?;
        serde_json::to_writer(&mut *line, survivor)?;
        line.extend_from_slice(b",\"members\":[");
        self.clusters
            // The survivor takes the first place of its cluster, in front of the members.
            .add(0, self.places.starts[rank as usize], line)
    }

    /// Adds a removed document to the cluster of its survivor, whose last member ends its line. It is written as in `begin`.
    fn join(&mut self, survivor: u32, member: &RemovedMember<'_>) -> io::Result<()> {
        *count_of(&mut self.counts, member.reason) += 1;
        let line = &mut self.line;
        line.clear();
        serde_json::to_writer(&mut *line, member)?;
        let survivor = survivor as usize;
        let place = self.places.next[survivor];
        self.places.next[survivor] += 1;
        // Pieces of a line arrive in the order of documents, with the survivor at any point among them, and the arranger moves them to their places.
        // So the line ends with the member in the last place, not with the piece that arrives last.
        let is_last = place + 1 == self.places.starts[survivor + 1];
        line.extend_from_slice(if is_last { b"]}\n" } else { b"," });
        self.clusters.add(0, place, line)
    }
}

impl ClusterWriter<'_> {
    fn open(&self, name: &str) -> Result<AtomicFile, BatchError> {
        let path = self.place.path(name);
        AtomicFile::create(&path, Compression::None).map_err(unwritable(self.place.folder))
    }

    fn files(&self) -> Result<ClusterFiles, BatchError> {
        let sizes = match self.verified {
            Some(verified) => verified.sizes.clone(),
            None => self.outcomes.sizes(),
        };
        let places = ClusterPositions::new(sizes);
        // Growing tables cannot return errors; a failure of their files is known only when asked for.
        check(self.folder).map_err(BatchError::temporary(self.folder))?;
        let all = places.all();
        let expected = ExpectedRecords {
            places: all as usize,
            bytes: self.outcomes.ranking.id_bytes + MEMBER_BYTES * u64::from(all),
        };
        Ok(ClusterFiles {
            kept: self.open("kept.jsonl")?,
            removed: self.open("removed.jsonl")?,
            clusters: RecordArranger::new(self.folder, 1, &expected, self.budget, 1)
                .map_err(BatchError::temporary(self.folder))?,
            places,
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
        // Lines of clusters are arranged in the other folder.
        let unarranged = BatchError::temporary(self.folder);
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
                    files.begin(rank, &id).map_err(&unarranged)?;
                    files.keep(id)
                }
                (_, DocumentOutcome::Removed { survivor, distance }) => {
                    // There is one for each removed document, because `ClaimedRemovals::collect` visited the same documents in the same order.
                    let similarity = similarities.as_mut().and_then(Iterator::next).copied();
                    match similarity.is_some_and(f64::is_nan) {
                        true => files.keep(id),
                        false => {
                            let member = RemovedMember::new(id, distance, similarity);
                            files.join(survivor, &member).map_err(&unarranged)?;
                            files.id_line(member.id, false)
                        }
                    }
                }
            }
            .map_err(&failed)
        })?;
        let mut clusters = self.open("clusters.jsonl")?;
        files.clusters.finish(0, &mut clusters).map_err(&failed)?;
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

/// Returns an id as text.
fn text_of(id: &ListedId<'_>) -> String {
    match id {
        ListedId::Number(number) => number.to_string(),
        ListedId::Text(text) => text.to_string(),
    }
}

fn count_of(counts: &mut ClusterDecisionCounts, reason: RemovalReason) -> &mut u64 {
    match reason {
        RemovalReason::SameFingerprint => &mut counts.removed_same_fingerprint,
        RemovalReason::Near => &mut counts.removed_near,
        RemovalReason::Connected => &mut counts.removed_connected,
    }
}
