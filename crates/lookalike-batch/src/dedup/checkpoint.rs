//! The decisions of a job on disk, so that a job that was killed while it wrote its results need not read and compare
//! everything again.
//!
//! One file, `decided.bin`, replaced atomically. Little-endian:
//!
//! ```text
//! 8 bytes   "LOOKDEC2"
//! u64       length of a JSON object: settings, input, counts, what was skipped
//! ...       that object
//! u64 x 7   numbers of id bytes, documents, unreadable records, sources; documents given with --against; of the two columns of resemblances
//! ...       ids, each behind its length (7 bits a byte); text lengths (u64); documents by id, and for each the one that is kept
//!           (columns of numbers); resemblances of documents, and those of visible texts; unreadable records (u64 source, u64 number);
//!           records of each source (u64)
//! u64       XXH3-64 of all before
//! ```
//!
//! For columns of numbers, which may have any size, and of resemblances see [`number_column`](crate::dedup::number_column).

use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dedup::counts::{ComparisonCounts, DecisionCounts, InputCounts};
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::documents::DocumentTable;
use crate::dedup::hashing_stream::{HashingStream, damaged, save_hashed, write_words};
use crate::dedup::id_table::IdTable;
use crate::dedup::just_below::BelowThresholdCounts;
use crate::dedup::number_column::{
    ExpectedNumber, read_numbers, read_similarities, write_column, write_similarities,
};
use crate::dedup::skipped_files::CopiedFiles;
use crate::skipped::SkippedRow;
use crate::spill::table_column::TableColumn;

const MAGIC: [u8; 8] = *b"LOOKDEC2";

/// All data needed to write the results.
pub(crate) struct DecisionCheckpoint {
    pub(crate) head: CheckpointHeader,
    pub(crate) documents: DocumentTable,
    pub(crate) by_id: TableColumn<u32>,
    pub(crate) outcomes: DecisionTable,
    /// Source and number of unreadable records, ascending.
    pub(crate) bad: Vec<[u64; 2]>,
    /// Records of each source.
    pub(crate) records: Vec<u64>,
}

/// The small part of a checkpoint, stored as JSON.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct CheckpointHeader {
    pub(crate) settings: String,
    pub(crate) input: String,
    pub(crate) counts: InputCounts,
    pub(crate) decisions: DecisionCounts,
    pub(crate) comparisons: ComparisonCounts,
    pub(crate) just_below: BelowThresholdCounts,
    pub(crate) skipped: Vec<SkippedRow>,
    /// Copies of files of which nothing was read.
    pub(crate) copied: CopiedFiles,
}

impl DecisionCheckpoint {
    /// Writes the checkpoint to `path` atomically; `threads` threads prepare its columns.
    pub(crate) fn save(&self, path: &Path, threads: usize) -> io::Result<()> {
        save_hashed(path, MAGIC, &self.head, |out| {
            self.write_columns(out, threads)
        })
    }

    fn write_columns(&self, out: &mut impl Write, threads: usize) -> io::Result<()> {
        let ids = self.documents.ids.encoded();
        let outcomes = &self.outcomes;
        // `read` takes the columns in the same order.
        let sizes = [
            ids.len(),
            outcomes.len(),
            self.bad.len(),
            self.records.len(),
            self.documents.against,
            outcomes.near.len(),
            outcomes.visible.len(),
        ];
        write_words(out, &sizes)?;
        out.write_all(&ids)?;
        self.documents.lengths.write(out)?;
        write_column(out, &self.by_id, ExpectedNumber::Next, threads)?;
        write_column(out, &outcomes.kept, ExpectedNumber::Position, threads)?;
        write_similarities(out, &outcomes.near)?;
        write_similarities(out, &outcomes.visible)?;
        // Columns are written as they lie in memory; `hashing_stream` refuses to compile where that is not little-endian.
        out.write_all(bytemuck::cast_slice(&self.bad))?;
        out.write_all(bytemuck::cast_slice(&self.records))
    }

    /// Reads a checkpoint of the same settings and input. Returns `None` if there is none, if it is of another job, or if it
    /// is damaged: the job then starts again.
    pub(crate) fn load(path: &Path, settings: &str, input: &str) -> Option<Self> {
        let found = Self::open(path).ok()?;
        (found.head.settings == settings && found.head.input == input).then_some(found)
    }

    /// Reads a checkpoint of any job.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = std::fs::File::open(path)?;
        Self::read(&mut HashingStream::new(io::BufReader::new(file)))
    }

    /// Returns the documents of each source, in the order of sources. Documents of a collection come before all of them.
    pub(crate) fn source_documents(&self) -> impl Iterator<Item = Range<u32>> {
        // These were loaded from the collection and belong to no source.
        let stored = self.head.counts.collection.map_or(0, |used| used.looked_at);
        // Both are ordered by source, so a single pass covers all sources.
        let (mut next, mut bad) = (stored as u32, self.bad.iter().peekable());
        (0..).zip(&self.records).map(move |(source, &records)| {
            // An unreadable record counts in its source, but has no document.
            let unreadable = std::iter::from_fn(|| bad.next_if(|bad| bad[0] == source)).count();
            let documents = next..next + (records - unreadable as u64) as u32;
            next = documents.end;
            documents
        })
    }

    fn read(file: &mut HashingStream<impl Read>) -> io::Result<Self> {
        let head = file.head(MAGIC)?;
        let [id_bytes, documents, bad, sources, against, near, visible] = file.words()?;
        let ids = file.table_column(id_bytes)?;
        let lengths = file.table_column(documents)?.into_iter().collect();
        let by_id = read_numbers(file, documents, ExpectedNumber::Next)?;
        let outcomes = DecisionTable {
            kept: read_numbers(file, documents, ExpectedNumber::Position)?,
            near: read_similarities(file, near)?,
            visible: read_similarities(file, visible)?,
        };
        let bad = file.column(bad)?;
        let records = file.column(sources)?;
        // Check the sum first: the code below trusts the columns.
        file.end()?;
        let ids = IdTable::decoded(ids, documents as usize).ok_or_else(damaged)?;
        let documents = DocumentTable::from_columns(ids, lengths, against as usize);
        Ok(Self {
            head,
            documents,
            by_id,
            outcomes,
            bad,
            records,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::document_decision::DocumentDecision;

    fn checkpoint() -> DecisionCheckpoint {
        let mut documents = DocumentTable::default();
        for (id, length) in [("a", 5), ("b", 700), ("c\u{e9}", 0)] {
            documents.push_id(id);
            documents.lengths.push(length);
        }
        documents.against = 1;
        let head = CheckpointHeader {
            settings: "s".into(),
            input: "i".into(),
            counts: InputCounts {
                documents: 3,
                ..InputCounts::default()
            },
            decisions: DecisionCounts::default(),
            comparisons: ComparisonCounts::default(),
            just_below: BelowThresholdCounts::default(),
            skipped: vec![SkippedRow {
                loss: crate::LossExtent::Records,
                kind: "bomb".into(),
                count: 2,
                first: "x".into(),
            }],
            copied: CopiedFiles { bytes: 9, files: 1 },
        };
        let outcomes = [
            DocumentDecision::Kept,
            DocumentDecision::Near {
                survivor: 0,
                similarity: 0.875,
                visible: Some(0.5),
            },
            DocumentDecision::Exact { survivor: 0 },
        ];
        DecisionCheckpoint {
            head,
            documents,
            by_id: [0, 2, 1].into_iter().collect(),
            outcomes: outcomes.into_iter().collect(),
            bad: vec![[0, 7]],
            records: vec![4],
        }
    }

    #[test]
    fn a_checkpoint_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decided.bin");
        let saved = checkpoint();
        saved.save(&path, 2).unwrap();
        let loaded = DecisionCheckpoint::load(&path, "s", "i").unwrap();
        assert_eq!(loaded.head, saved.head);
        let outcomes = |saved: &DecisionCheckpoint| saved.outcomes.documents().collect::<Vec<_>>();
        assert_eq!(outcomes(&loaded), outcomes(&saved));
        assert_eq!(
            (&loaded.by_id, &loaded.bad, &loaded.records),
            (&saved.by_id, &saved.bad, &saved.records)
        );
        assert_eq!(loaded.documents.id(2), "c\u{e9}");
        assert_eq!(loaded.documents.against, 1);
        assert!(DecisionCheckpoint::load(&path, "other settings", "i").is_none());
        assert!(DecisionCheckpoint::load(&path, "s", "other input").is_none());
    }

    #[test]
    fn no_damaged_checkpoint_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decided.bin");
        checkpoint().save(&path, 1).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(
                DecisionCheckpoint::load(&path, "s", "i").is_none(),
                "byte {at}"
            );
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(
                DecisionCheckpoint::load(&path, "s", "i").is_none(),
                "cut at {at}"
            );
        }
    }
}
