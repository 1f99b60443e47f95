//! Decisions of a job on every document, for callers: which are kept, which are removed, for whom and why.
//!
//! They come from [`DedupJob::decide`](crate::DedupJob::decide) for files and from [`DocumentDedup::decide`](crate::DocumentDedup::decide)
//! for documents in memory; `dedup` writes its results from them.

use std::fmt;
use std::io;

use crate::dedup::collection::addition::KeptFacts;
use crate::dedup::counts::{ComparisonCounts, DecisionCounts, InputCounts};
use crate::dedup::decision::ClusterTable;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::just_below::JustBelow;
use crate::dedup::pairs::{DocumentPair, PairSpool};
use crate::dedup::ranking::DocumentRanking;
use crate::dedup::scan::ScannedCollection;
use crate::dedup::summary::BelowThreshold;
use crate::parallel::in_ranges;
use crate::parallel_sort::sort_unequal_by;
use crate::skipped::SkippedRow;
use crate::spill::table_column::TableColumn;

/// Decisions of a job on every document.
///
/// Documents have numbers, from 0, in the order in which they came: first those that are compared with and never removed (see
/// [`DedupDecisions::against`]), then the others. Memory: some 60 bytes a document, and its id.
pub struct DedupDecisions {
    pub(crate) scanned: ScannedCollection,
    pub(crate) ranking: DocumentRanking,
    pub(crate) outcomes: DecisionTable,
    pub(crate) clusters: ClusterTable,
    pub(crate) counts: InputCounts,
    pub(crate) decision_counts: DecisionCounts,
    pub(crate) comparisons: ComparisonCounts,
    pub(crate) skipped: Vec<SkippedRow>,
    pub(crate) threshold: f64,
    /// Kept documents that nearly resemble another kept one enough.
    pub(crate) just_below: JustBelow,
    /// All pairs, when the settings ask for them.
    pub(crate) pairs: Option<PairSpool>,
    /// Fingerprints of documents by class, when the method made them.
    pub(crate) fingerprints: bool,
    pub(crate) threads: usize,
    /// Facts about the documents that go into a collection, if some do.
    pub(crate) kept_facts: Option<KeptFacts>,
}

/// A kept document and those that were removed for it, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupCluster<'a> {
    /// The kept one.
    pub survivor: u32,
    /// The removed ones, in the order of their ids.
    pub members: &'a [u32],
}

/// Two documents that were found to be similar, by their numbers; `a` has the smaller id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DedupPair {
    /// One document.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Their resemblance, in [0, 1].
    pub similarity: f64,
}

/// The pair of a removed document and its survivor, behind their places in the order of ids.
pub(crate) type DecidingPair = ((u32, u32), DocumentPair);

impl fmt::Debug for DedupDecisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DedupDecisions")
            .field("documents", &self.len())
            .field("decisions", &self.decision_counts)
            .finish_non_exhaustive()
    }
}

impl DedupDecisions {
    /// The number of documents, those that are only compared with included.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// True if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.outcomes.len() == 0
    }

    /// The number of documents, from the first, that are only compared with.
    pub fn against(&self) -> usize {
        self.scanned.documents.against
    }

    /// The id of a document: the caller's, or with `#2` and so on behind it where another has the same. Which of them keeps the id as it is
    /// depends on their contents, not on their order: join by the numbers of documents.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn id(&self, document: u32) -> &str {
        self.scanned.documents.id(document as usize)
    }

    /// The decision on a document.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn decision(&self, document: u32) -> DocumentDecision {
        self.outcomes.document(document as usize)
    }

    /// The decision on every document, by number.
    pub fn decisions(&self) -> impl ExactSizeIterator<Item = DocumentDecision> {
        self.outcomes.documents()
    }

    /// The decisions on the documents that are not only compared with, in the order in which they came, each with the number of its document.
    pub fn new_documents(&self) -> impl ExactSizeIterator<Item = (u32, DocumentDecision)> {
        let documents = self.against() as u32..self.len() as u32;
        documents.map(|document| (document, self.decision(document)))
    }

    /// The clusters of more than one document, in the order of the survivors' ids.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = DedupCluster<'_>> {
        (0..self.clusters.len()).map(|cluster| {
            let (survivor, members) = self.clusters.get(cluster);
            DedupCluster { survivor, members }
        })
    }

    /// Shows pairs in the order of their ids: each removed document with its survivor, or, with [`PairList::All`](crate::PairList::All), all pairs
    /// at or above the threshold, which are in temporary files.
    ///
    /// # Errors
    /// Of a temporary file, or of `visit`.
    pub fn pairs(&self, mut visit: impl FnMut(DedupPair) -> io::Result<()>) -> io::Result<()> {
        self.each_pair(|pair| {
            visit(DedupPair {
                a: pair.a,
                b: pair.b,
                similarity: pair.similarity,
            })
        })
    }

    /// Counts of what was read.
    pub fn counts(&self) -> &InputCounts {
        &self.counts
    }

    /// Counts of what was decided.
    pub fn decision_counts(&self) -> &DecisionCounts {
        &self.decision_counts
    }

    /// Counts of what was looked at for the decisions.
    #[must_use]
    pub fn comparisons(&self) -> ComparisonCounts {
        self.comparisons
    }

    /// Records and files that were not read, by reason.
    pub fn skipped(&self) -> &[SkippedRow] {
        &self.skipped
    }

    /// Kept documents whose most similar kept one is just below the threshold.
    pub fn below_threshold(&self) -> BelowThreshold {
        BelowThreshold::new(&self.just_below, self.threshold, &self.scanned.documents)
    }

    pub(crate) fn each_pair(
        &self,
        visit: impl FnMut(DocumentPair) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.pairs {
            Some(pairs) => pairs.each(&self.ranking.by_id, visit),
            None => self
                .deciding_pairs()
                .into_iter()
                .map(|(_, pair)| pair)
                .try_for_each(visit),
        }
    }

    /// Removed documents with their survivors, in the order of ids.
    pub(crate) fn deciding_pairs(&self) -> TableColumn<DecidingPair> {
        let ranks = &self.ranking.id_ranks;
        let pair = |document: usize| {
            let outcome = self.outcomes.document(document);
            let survivor = outcome.survivor()?;
            let document = document as u32;
            let (rank, of_survivor) = (ranks[document as usize], ranks[survivor as usize]);
            let (key, a, b) = match rank < of_survivor {
                true => ((rank, of_survivor), document, survivor),
                false => ((of_survivor, rank), survivor, document),
            };
            let pair = DocumentPair {
                a,
                b,
                similarity: outcome.similarity(),
                visible: outcome.visible_similarity(),
            };
            Some((key, pair))
        };
        let found = in_ranges(
            self.outcomes.len(),
            self.threads,
            |range| -> TableColumn<_> { range.filter_map(pair).collect() },
        );
        let mut pairs = TableColumn::with_capacity(found.iter().map(|part| part.len()).sum());
        for part in found {
            pairs.extend_from_slice(&part);
        }
        // Each document is removed once, and never for one that is removed: no pair is there twice.
        sort_unequal_by(&mut pairs, self.threads, |(a, _), (b, _)| a.cmp(b));
        pairs
    }
}
