//! Decisions on all documents, and the clusters that follow from them.

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::ranking::DocumentRanking;
use crate::parallel::{concatenated, in_ranges};
use crate::parallel_sort::sort_unequal_by;
use crate::settings::PairScope;
use crate::spill::table_column::TableColumn;

/// Derives the decisions on documents from those on classes.
///
/// Documents of one class are exact copies of its preferred one. This does not hold across categories: there the documents of a class
/// share their category, so they are not pairs, and all of them are kept if their class is.
pub(crate) fn outcomes(
    documents: &DocumentTable,
    classes: &TextClasses,
    ranking: &DocumentRanking,
    rank_of: &[u32],
    decisions: &DecisionTable,
    scope: PairScope,
    threads: usize,
) -> DecisionTable {
    let same_text = |a: u32, b: u32| {
        let text = |rank: u32| classes.visible_text(ranking.classes[rank as usize] as usize);
        classes.has_visible_texts() && text(a) == text(b)
    };
    let best = |rank: u32| ranking.best[ranking.classes[rank as usize] as usize];
    // Returns the document that is kept for `document`, and, if they are not exact copies, their resemblances.
    let outcome = |document: usize| {
        let itself = (document as u32, None);
        let Some(class) = documents.classes[document] else {
            return itself;
        };
        // These are never removed, even if they are copies of each other.
        if document < documents.against {
            return itself;
        }
        let rank = rank_of[class.position()];
        let Some(survivor) = decisions.survivor(rank as usize) else {
            return match scope {
                // Documents of one text and one category are not pairs, so all of them are kept.
                PairScope::Across => itself,
                // For the preferred document this is itself: it is kept.
                _ => (best(rank), None),
            };
        };
        // Classes with equal visible texts are exact copies, although their main texts, titles or categories differ.
        let near = match decisions.get(rank as usize) {
            DocumentDecision::Near {
                similarity,
                visible,
                ..
            } if !same_text(rank, survivor) => Some((similarity, visible)),
            _ => None,
        };
        (best(survivor), near)
    };
    // A table for each range, because resemblances are appended in the order of documents.
    let found = in_ranges(documents.len(), threads, |range| {
        let mut table = DecisionTable::default();
        for document in range {
            let (survivor, near) = outcome(document);
            table.push(survivor);
            if let Some((similarity, visible)) = near {
                table.set_near(document as u32, similarity, visible);
            }
        }
        table
    });
    DecisionTable::joined(&found, threads)
}

/// Removed documents grouped by survivor; survivors and removed documents are in the order of ids.
pub(crate) struct ClusterTable {
    survivors: TableColumn<u32>,
    starts: TableColumn<u32>,
    members: TableColumn<u32>,
}

impl ClusterTable {
    pub(crate) fn new(
        by_id: &[u32],
        id_ranks: &[u32],
        outcomes: &DecisionTable,
        threads: usize,
    ) -> Self {
        let removed = |place: usize| {
            let survivor = outcomes.survivor(by_id[place] as usize)?;
            Some((id_ranks[survivor as usize], place as u32))
        };
        let removed = in_ranges(by_id.len(), threads, |range| -> TableColumn<(u32, u32)> {
            range.filter_map(removed).collect()
        });
        let removed: Vec<&[(u32, u32)]> = removed.iter().map(|part| &part[..]).collect();
        let mut removed = concatenated(&removed, threads);
        // By the place of the survivor, then by that of the removed document. No document is removed twice, so no two are equal.
        sort_unequal_by(&mut removed, threads, Ord::cmp);
        let mut clusters = Self {
            survivors: TableColumn::new(),
            starts: [0].into_iter().collect(),
            members: TableColumn::new(),
        };
        for cluster in removed.chunk_by(|a, b| a.0 == b.0) {
            clusters.survivors.push(by_id[cluster[0].0 as usize]);
            clusters
                .members
                .extend(cluster.iter().map(|&(_, place)| by_id[place as usize]));
            clusters.starts.push(clusters.members.len() as u32);
        }
        clusters
    }

    /// Returns the number of clusters.
    pub(crate) fn len(&self) -> usize {
        self.survivors.len()
    }

    /// Returns the survivor and the removed documents of a cluster.
    pub(crate) fn get(&self, cluster: usize) -> (u32, &[u32]) {
        let members =
            &self.members[self.starts[cluster] as usize..self.starts[cluster + 1] as usize];
        (self.survivors[cluster], members)
    }

    /// Returns the number, from 1, of the cluster of each of the documents; 0 if it is in none.
    pub(crate) fn numbers(&self, documents: usize) -> TableColumn<u32> {
        let mut numbers = TableColumn::zeroed(documents);
        for (number, (survivor, members)) in (1..).zip(self.iter()) {
            numbers[survivor as usize] = number;
            for &member in members {
                numbers[member as usize] = number;
            }
        }
        numbers
    }

    /// Returns all clusters, in the order of their survivors' ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0..self.len()).map(|cluster| self.get(cluster))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::document_decision::DocumentDecision;

    proptest! {
        #[test]
        fn clusters_equal_a_map_from_survivors_to_what_was_removed_for_them(
            choices in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..60),
            shuffled in any::<u64>(),
        ) {
            let kept: Vec<u32> = (0..choices.len() as u32).filter(|&document| document == 0 || choices[document as usize].0).collect();
            let outcomes: Vec<DocumentDecision> = choices.iter().enumerate().map(|(document, (_, choice))| {
                match kept.contains(&(document as u32)) {
                    true => DocumentDecision::Kept,
                    false => DocumentDecision::Exact { survivor: *choice.get(&kept) },
                }
            }).collect();
            let mut by_id: Vec<u32> = (0..choices.len() as u32).collect();
            by_id.sort_by_key(|&document| (u64::from(document) + 1).wrapping_mul(shuffled | 1));
            let mut id_ranks = vec![0; by_id.len()];
            for (place, &document) in by_id.iter().enumerate() {
                id_ranks[document as usize] = place as u32;
            }

            let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for &document in &by_id {
                if let Some(survivor) = outcomes[document as usize].survivor() {
                    expected.entry(id_ranks[survivor as usize]).or_default().push(document);
                }
            }
            let expected: Vec<(u32, Vec<u32>)> = expected.into_iter().map(|(place, members)| (by_id[place as usize], members)).collect();
            let table = outcomes.into_iter().collect();
            let clusters = ClusterTable::new(&by_id, &id_ranks, &table, 1);
            let found: Vec<(u32, Vec<u32>)> = clusters.iter().map(|(survivor, members)| (survivor, members.to_vec())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
