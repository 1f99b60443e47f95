//! Outcome of each document, by the decision on its class.

use super::class_decisions::ClassDecisions;
use super::class_ranking::ClassRanking;
use super::documents::ClusterDocument;
use super::linked_classes::ClassIndex;
use crate::spill::table_column::TableColumn;

/// Outcome of a document.
#[derive(Clone, Copy)]
pub(super) enum DocumentOutcome {
    Kept,
    /// Its fingerprint stood before: it is one document with that.
    Again,
    Removed {
        /// Rank of the class whose best document is kept for it.
        survivor: u32,
        /// Distance to it, where the two were compared.
        distance: Option<u8>,
    },
}

/// Decisions on classes, seen from their documents.
pub(super) struct ClusterOutcomes<'a> {
    pub(super) index: &'a ClassIndex,
    pub(super) ranking: &'a ClassRanking<'a>,
    pub(super) decisions: &'a ClassDecisions,
}

impl ClusterOutcomes<'_> {
    /// Outcome of a document, and the rank of its class if that is not it alone.
    pub(super) fn of(&self, document: &ClusterDocument<'_>) -> (Option<u32>, DocumentOutcome) {
        let Some(class) = self.index.class(document) else {
            return (None, DocumentOutcome::Kept);
        };
        let rank = self.ranking.ranks[class as usize];
        let is_best = self.ranking.best[class as usize] == document.place;
        let outcome = match self.decisions.survivor(rank) {
            _ if !is_best && document.id.is_bare() => DocumentOutcome::Again,
            None if is_best => DocumentOutcome::Kept,
            None => DocumentOutcome::Removed {
                survivor: rank,
                distance: Some(0),
            },
            Some((survivor, distance)) => DocumentOutcome::Removed { survivor, distance },
        };
        (Some(rank), outcome)
    }

    /// Documents that are removed, by rank of their survivor.
    pub(super) fn sizes(&self) -> TableColumn<u32> {
        let mut sizes = TableColumn::zeroed(self.ranking.classes.len());
        for (rank, &class) in (0..).zip(self.ranking.classes.iter()) {
            let members = self.ranking.members[class as usize];
            match self.decisions.survivor(rank) {
                // The best stays. A class that joins another leaves as a whole.
                None => sizes[rank as usize] += members - 1,
                Some((survivor, _)) => sizes[survivor as usize] += members,
            }
        }
        sizes
    }
}
