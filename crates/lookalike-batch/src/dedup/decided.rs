//! Decisions of a job on every document, for callers: which are kept, which are removed, for which survivor and why.
//!
//! They come from [`DedupJob::decide`](crate::DedupJob::decide) for files and from [`DocumentDedup::decide`](crate::DocumentDedup::decide)
//! for documents in memory; `dedup` writes its results from them.

use std::fmt;
use std::io;

use crate::dedup::collection::segment::AdditionFacts;
use crate::dedup::counts::{ComparisonCounts, DecisionCounts, InputCounts};
use crate::dedup::decision::ClusterTable;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::just_below::BelowThresholdCounts;
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
/// Documents are numbered from 0 in the order of the input: first those that are only compared with and never removed (see
/// [`DedupDecisions::against`]), then the others. Memory: about 60 bytes per document, and its id.
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
    /// Kept documents whose resemblance to another kept one is just below the threshold.
    pub(crate) just_below: BelowThresholdCounts,
    /// All pairs, if the settings request them.
    pub(crate) pairs: Option<PairSpool>,
    /// True if the method computes fingerprints, which the classes then have.
    pub(crate) fingerprints: bool,
    pub(crate) threads: usize,
    /// Facts about the documents that are added to a collection, if the job adds any.
    pub(crate) kept_facts: Option<AdditionFacts>,
}

/// A kept document and those removed for it, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupCluster<'a> {
    /// The kept document.
    pub survivor: u32,
    /// The removed documents, in the order of their ids.
    pub members: &'a [u32],
}

/// Two documents that are similar, by their numbers. If one is only compared with, it is `a`; otherwise `a` has the smaller id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DedupPair {
    /// One document.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Their resemblance, in [0, 1].
    pub similarity: f64,
}

/// The pair of a removed document and its survivor, preceded by their places in the order of ids.
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
    /// Returns the number of documents, including those that are only compared with.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Returns true if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.outcomes.len() == 0
    }

    /// Returns the number of documents that are only compared with; they come first.
    pub fn against(&self) -> usize {
        self.scanned.documents.against
    }

    /// Returns the id of a document: the caller's, or with `#2` and so on appended if another document has the same. Which of them keeps the plain id
    /// depends on their contents, not on their order, so join by the numbers of documents.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn id(&self, document: u32) -> &str {
        self.scanned.documents.id(document as usize)
    }

    /// Returns the decision on a document.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn decision(&self, document: u32) -> DocumentDecision {
        self.outcomes.get(document as usize)
    }

    /// Returns the decision on every document, by number.
    pub fn decisions(&self) -> impl ExactSizeIterator<Item = DocumentDecision> {
        self.outcomes.documents()
    }

    /// Returns the decisions on the documents that are not only compared with, in the order of the input, with their numbers.
    pub fn new_documents(&self) -> impl ExactSizeIterator<Item = (u32, DocumentDecision)> {
        let documents = self.against() as u32..self.len() as u32;
        documents.map(|document| (document, self.decision(document)))
    }

    /// Returns the clusters of more than one document, in the order of the survivors' ids.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = DedupCluster<'_>> {
        (0..self.clusters.len()).map(|cluster| {
            let (survivor, members) = self.clusters.get(cluster);
            DedupCluster { survivor, members }
        })
    }

    /// Calls `visit` with pairs in the order of their ids, those with documents that are only compared with first: each removed document with its survivor, or, with [`PairList::All`](crate::PairList::All),
    /// all pairs at or above the threshold, which are read from temporary files.
    ///
    /// # Errors
    /// Errors of a temporary file, or of `visit`.
    pub fn pairs(&self, mut visit: impl FnMut(DedupPair) -> io::Result<()>) -> io::Result<()> {
        self.for_each_pair(|pair| {
            visit(DedupPair {
                a: pair.a,
                b: pair.b,
                similarity: pair.similarity,
            })
        })
    }

    /// Returns the counts of the input.
    pub fn counts(&self) -> &InputCounts {
        &self.counts
    }

    /// Returns the counts of the decisions.
    pub fn decision_counts(&self) -> &DecisionCounts {
        &self.decision_counts
    }

    /// Returns the counts of comparisons.
    #[must_use]
    pub fn comparisons(&self) -> ComparisonCounts {
        self.comparisons
    }

    /// Returns the records and files that were not read, by kind.
    pub fn skipped(&self) -> &[SkippedRow] {
        &self.skipped
    }

    /// Returns the kept documents whose most similar kept one is just below the threshold.
    pub fn below_threshold(&self) -> BelowThreshold {
        BelowThreshold::new(&self.just_below, self.threshold, &self.scanned.documents)
    }

    pub(crate) fn for_each_pair(
        &self,
        visit: impl FnMut(DocumentPair) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.pairs {
            Some(pairs) => pairs.for_each(&self.ranking.by_id, visit),
            None => self
                .deciding_pairs()
                .into_iter()
                .map(|(_, pair)| pair)
                .try_for_each(visit),
        }
    }

    /// Returns the removed documents with their survivors, in the order of ids.
    pub(crate) fn deciding_pairs(&self) -> TableColumn<DecidingPair> {
        let ranks = &self.ranking.id_ranks;
        let pair = |document: usize| {
            let outcome = self.outcomes.get(document);
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
        // Each document is removed once, and never for a removed one, so no pair occurs twice.
        sort_unequal_by(&mut pairs, self.threads, |(a, _), (b, _)| a.cmp(b));
        pairs
    }
}
