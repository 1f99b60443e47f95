//! Derives the outcome of each document from the decision about its class.

use super::class_decisions::ClassDecisions;
use super::class_ranking::ClassRanking;
use super::documents::ClusterDocument;
use super::linked_classes::ClassIndex;
use crate::spill::table_column::TableColumn;

/// Outcome of a document.
#[derive(Clone, Copy)]
pub(super) enum DocumentOutcome {
    Kept,
    /// Its fingerprint, which has no id, occurred before, so it is the same document.
    Repeated,
    Removed {
        /// Rank of the class whose best document is kept instead.
        survivor: u32,
        /// Distance to that document, if the two were compared.
        distance: Option<u8>,
    },
}

/// Decisions about classes, looked up by document.
pub(super) struct ClusterOutcomes<'a> {
    pub(super) index: &'a ClassIndex,
    pub(super) ranking: &'a ClassRanking<'a>,
    pub(super) decisions: &'a ClassDecisions,
}

impl ClusterOutcomes<'_> {
    /// Returns the rank of a document's class and the document's outcome. The rank is `None` if the document is alone.
    pub(super) fn of(&self, document: &ClusterDocument<'_>) -> (Option<u32>, DocumentOutcome) {
        let Some(class) = self.index.class(document) else {
            let outcome = match self.ranking.repeated.has(document) {
                true => DocumentOutcome::Repeated,
                false => DocumentOutcome::Kept,
            };
            return (None, outcome);
        };
        let rank = self.ranking.ranks[class as usize];
        let is_best = self.ranking.best[class as usize] == document.place;
        let outcome = match self.decisions.survivor(rank) {
            // Before the others: a repetition of a bare fingerprint is the same document, whether its class survives or not.
            _ if !is_best && document.is_bare => DocumentOutcome::Repeated,
            None if is_best => DocumentOutcome::Kept,
            // A copy of its class's best document, which has the same fingerprint.
            None => DocumentOutcome::Removed {
                survivor: rank,
                distance: Some(0),
            },
            Some((survivor, distance)) => DocumentOutcome::Removed { survivor, distance },
        };
        (Some(rank), outcome)
    }

    /// Counts removed documents by the rank of their survivor.
    pub(super) fn sizes(&self) -> TableColumn<u32> {
        let mut sizes = TableColumn::zeroed(self.ranking.classes.len());
        for (rank, &class) in (0..).zip(self.ranking.classes.iter()) {
            let members = self.ranking.members[class as usize];
            match self.decisions.survivor(rank) {
                // The best document stays. A class that joins another is removed as a whole.
                // Every class has a document, since lists with ids that are in no file are refused.
                None => sizes[rank as usize] += members - 1,
                Some((survivor, _)) => sizes[survivor as usize] += members,
            }
        }
        sizes
    }
}
