//! Decision on every document, and the clusters that follow from it.

use crate::dedup::class_decision::ClassDecision;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::ranking::DocumentRanking;
use crate::parallel::{column, concatenated, in_ranges};
use crate::parallel_sort::sort_unequal_by;
use crate::settings::PairScope;

/// Decision on a document. Survivors are told by their numbers; see [`DedupDecisions`](crate::DedupDecisions).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DocumentDecision {
    /// It is kept, or only compared with.
    #[default]
    Kept,
    /// A reader sees the same text as of a kept document.
    Exact {
        /// The kept document.
        survivor: u32,
    },
    /// It resembles a kept document.
    Near {
        /// The kept document.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
        /// That of all that a reader sees, where that is not what was compared.
        visible: Option<f64>,
    },
}

impl DocumentDecision {
    /// The kept document that a removed one is like.
    pub fn survivor(self) -> Option<u32> {
        match self {
            Self::Kept => None,
            Self::Exact { survivor } | Self::Near { survivor, .. } => Some(survivor),
        }
    }

    /// The resemblance to the survivor; 1 for exact copies and kept documents.
    pub fn similarity(self) -> f64 {
        if let Self::Near { similarity, .. } = self {
            similarity
        } else {
            1.0
        }
    }

    /// The resemblance of all that a reader sees, where that is not what was compared.
    pub fn visible_similarity(self) -> Option<f64> {
        match self {
            Self::Near { visible, .. } => visible,
            Self::Kept | Self::Exact { .. } => None,
        }
    }

    /// True if its main text has all the features of that of the kept document and no others, while a reader sees something
    /// else.
    pub fn is_same_main_text(self) -> bool {
        self.visible_similarity().is_some() && self.similarity() >= 1.0
    }

    /// The reason of the removal in a word, as in `clusters.jsonl`: `exact`, `near` or `same-main-text`.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Kept => None,
            Self::Near { .. } if self.is_same_main_text() => Some("same-main-text"),
            Self::Near { .. } => Some("near"),
            Self::Exact { .. } => Some("exact"),
        }
    }
}

/// Turns the decisions of classes into outcomes of documents.
///
/// Documents of one class are exact copies of its best one. Not so across categories: they share
/// their category, so they are no pair, and all of them are kept when their class is.
pub(crate) fn outcomes(
    documents: &DocumentTable,
    classes: &TextClasses,
    ranking: &DocumentRanking,
    rank_of: &[u32],
    decisions: &[ClassDecision],
    scope: PairScope,
    threads: usize,
) -> Vec<DocumentDecision> {
    let same_text = |a: u32, b: u32| {
        let text = |rank: u32| classes.visible_text(ranking.classes[rank as usize] as usize);
        classes.has_visible_texts() && text(a) == text(b)
    };
    let best = |rank: u32| ranking.best[ranking.classes[rank as usize] as usize];
    let outcome = |document: usize| {
        let Some(class) = documents.classes[document] else {
            return DocumentDecision::Kept;
        };
        if document < documents.against {
            return DocumentDecision::Kept;
        }
        let rank = rank_of[class.position()];
        match decisions[rank as usize] {
            ClassDecision::Survives
                if best(rank) as usize == document || scope == PairScope::Across =>
            {
                DocumentDecision::Kept
            }
            ClassDecision::Survives => DocumentDecision::Exact {
                survivor: best(rank),
            },
            ClassDecision::Joins { survivor, .. } if same_text(rank, survivor) => {
                DocumentDecision::Exact {
                    survivor: best(survivor),
                }
            }
            ClassDecision::Joins {
                survivor,
                similarity,
                visible,
            } => DocumentDecision::Near {
                survivor: best(survivor),
                similarity,
                visible,
            },
        }
    };
    column(documents.len(), threads, outcome)
}

/// Removed documents by survivor, both in the order of ids.
pub(crate) struct ClusterTable {
    survivors: Vec<u32>,
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl ClusterTable {
    pub(crate) fn new(
        by_id: &[u32],
        id_ranks: &[u32],
        outcomes: &[DocumentDecision],
        threads: usize,
    ) -> Self {
        let removed = |place: usize| {
            let survivor = outcomes[by_id[place] as usize].survivor()?;
            Some((id_ranks[survivor as usize], place as u32))
        };
        let removed = in_ranges(by_id.len(), threads, |range| -> Vec<(u32, u32)> {
            range.filter_map(removed).collect()
        });
        let removed: Vec<&[(u32, u32)]> = removed.iter().map(Vec::as_slice).collect();
        let mut removed = concatenated(&removed, threads);
        sort_unequal_by(&mut removed, threads, Ord::cmp);
        let mut clusters = Self {
            survivors: Vec::new(),
            starts: vec![0],
            members: Vec::new(),
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

    /// Number of clusters.
    pub(crate) fn len(&self) -> usize {
        self.survivors.len()
    }

    /// Survivor and removed documents of a cluster.
    pub(crate) fn get(&self, cluster: usize) -> (u32, &[u32]) {
        let members =
            &self.members[self.starts[cluster] as usize..self.starts[cluster + 1] as usize];
        (self.survivors[cluster], members)
    }

    /// All clusters, in the order of their survivors' ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0..self.len()).map(|cluster| self.get(cluster))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

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
            let clusters = ClusterTable::new(&by_id, &id_ranks, &outcomes, 1);
            let found: Vec<(u32, Vec<u32>)> = clusters.iter().map(|(survivor, members)| (survivor, members.to_vec())).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_main_text_that_is_equal_on_another_page_has_a_reason_of_its_own() {
        let near = |similarity, visible| DocumentDecision::Near {
            survivor: 0,
            similarity,
            visible,
        };
        assert_eq!(near(1.0, Some(0.9)).reason(), Some("same-main-text"));
        assert_eq!(near(0.9, Some(0.9)).reason(), Some("near"));
        assert_eq!(near(1.0, None).reason(), Some("near"));
        assert_eq!(
            DocumentDecision::Exact { survivor: 0 }.reason(),
            Some("exact")
        );
    }
}
