//! Decisions of a job over files, saved for callers that process its results further.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::dedup::checkpoint::DecisionCheckpoint;
use crate::dedup::decided::DedupCluster;
use crate::dedup::decision::ClusterTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::parallel::inverse;

/// Decisions saved by [`DedupJob::save_decisions_to`](crate::DedupJob::save_decisions_to).
///
/// Documents are numbered as in [`DedupDecisions`](crate::DedupDecisions).
pub struct SavedDecisions {
    checkpoint: DecisionCheckpoint,
    clusters: ClusterTable,
}

impl fmt::Debug for SavedDecisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedDecisions")
            .field("documents", &self.checkpoint.by_id.len())
            .finish_non_exhaustive()
    }
}

impl SavedDecisions {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    pub fn open(path: &Path) -> io::Result<Self> {
        let checkpoint = DecisionCheckpoint::open(path)?;
        let id_ranks = inverse(&checkpoint.by_id, 1);
        let clusters = ClusterTable::new(&checkpoint.by_id, &id_ranks, &checkpoint.outcomes, 1);
        Ok(Self {
            checkpoint,
            clusters,
        })
    }

    /// Returns the number of documents that are only compared with; they come first.
    pub fn against(&self) -> usize {
        self.checkpoint.documents.against
    }

    /// Returns the id of a document.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn id(&self, document: u32) -> &str {
        self.checkpoint.documents.id(document as usize)
    }

    /// Returns all documents in the order of their ids.
    pub fn by_id(&self) -> &[u32] {
        &self.checkpoint.by_id
    }

    /// Returns the decision on every document, by number.
    pub fn decisions(&self) -> impl ExactSizeIterator<Item = DocumentDecision> {
        self.checkpoint.outcomes.documents()
    }

    /// Returns the clusters of more than one document, in the order of the survivors' ids.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = DedupCluster<'_>> {
        (0..self.clusters.len()).map(|cluster| {
            let (survivor, members) = self.clusters.get(cluster);
            DedupCluster { survivor, members }
        })
    }

    /// Returns the documents of each source; sources that are only compared with come first. Documents of a collection belong to no source.
    pub fn source_documents(&self) -> impl Iterator<Item = Range<u32>> {
        self.checkpoint.source_documents()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::fs;

    use lookalike_corpus::{InputOptions, Inputs};

    use super::*;
    use crate::dedup::job::DedupJob;
    use crate::output_dir::OutputOptions;

    #[test]
    fn what_a_job_leaves_is_what_it_decided() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &str| -> OsString {
            let path = folder.path().join(name);
            fs::write(&path, lines).unwrap();
            path.into()
        };
        let files = [
            write("old.jsonl", "{\"id\":\"z\",\"text\":\"old one\"}\n"),
            write(
                "a.jsonl",
                "{\"id\":\"b\",\"text\":\"a rose is\"}\nbroken\n{\"id\":\"a\",\"text\":\"a rose is\"}\n",
            ),
            write("b.jsonl", "{\"id\":\"c\",\"text\":\"old one\"}\n"),
        ];
        let options = InputOptions::default();
        let inputs = Inputs::discover(&files, &options, folder.path()).unwrap();
        let job = DedupJob::new(&inputs, folder.path()).against_sources(1);
        let decided = job.decide().unwrap();

        let (out, left) = (folder.path().join("out"), folder.path().join("left"));
        let job = job.save_decisions_to(left.as_path());
        let summary = job.dedup(&out, &OutputOptions::default()).unwrap();
        let saved = SavedDecisions::open(&left).unwrap();

        assert!(saved.decisions().eq(decided.decisions()));
        assert_eq!(saved.against(), 1);
        let ids: Vec<&str> = (0..4).map(|document| saved.id(document)).collect();
        assert_eq!(ids, ["z", "b", "a", "c"]);
        assert!(saved.clusters().eq(decided.clusters()));
        // The record that cannot be read is not a document.
        let of_sources: Vec<_> = saved.source_documents().collect();
        assert_eq!(of_sources, [0..1, 1..3, 3..4]);
        let sorted: BTreeMap<&str, u32> = (1..4)
            .map(|document| (saved.id(document), document))
            .collect();
        let by_id: Vec<u32> = saved
            .by_id()
            .iter()
            .copied()
            .filter(|&document| document > 0)
            .collect();
        assert_eq!(by_id, sorted.into_values().collect::<Vec<_>>());
        assert_eq!(summary.tables, [None, None]);
        assert_eq!(summary.largest.len(), 2);
        assert!(!out.join(".lookalike").exists());

        fs::write(&left, "something else").unwrap();
        assert!(SavedDecisions::open(&left).is_err());
    }
}
