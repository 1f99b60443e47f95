//! Decides which classes are kept: applies the rule of [`lookalike::cluster`] to classes, the most wanted first.

use std::io;

use lookalike::cluster::{Components, StarClusters};

use super::class_ranking::{ClassRanking, ensure_distance};
use super::edge_spool::Edge;
use super::error::ClusterError;
use super::linked_classes::{ClassIndex, LinkedClasses};
use super::{FingerprintClustering, FingerprintRule};
use crate::error::BatchError;
use crate::observer::JobStage;
use crate::spill::external_sort::ExternalSort;

/// Decisions about classes, by rank.
pub(super) enum ClassDecisions {
    Stars(StarClusters),
    /// The first rank of each class's component.
    Components(Vec<u32>),
}

impl ClassDecisions {
    /// Returns the rank that a class is removed for, with the distance if the two were compared. `None` if the class survives.
    pub(super) fn survivor(&self, rank: u32) -> Option<(u32, Option<u8>)> {
        match self {
            Self::Stars(stars) => {
                let (survivor, distance) = stars.survivor(rank)?;
                // Stars record a distance only for pairs that exist, so it is the distance to this survivor.
                Some((survivor, Some(distance)))
            }
            Self::Components(firsts) => {
                let first = firsts[rank as usize];
                (first != rank).then_some((first, None))
            }
        }
    }
}

impl FingerprintClustering<'_> {
    /// Decides about all classes. Sorting pairs takes up to `budget` bytes of memory.
    pub(super) fn decide(
        &self,
        linked: &LinkedClasses,
        ranking: &ClassRanking<'_>,
        budget: u64,
    ) -> Result<ClassDecisions, BatchError> {
        self.observer.stage(JobStage::Group, 0);
        let temporary = BatchError::temporary(self.folder);
        let ranks = linked.index.len() as u32;
        // The walk over edges can only fail with disk errors. An error in the pairs is kept here and takes precedence afterwards.
        let mut wrong = None;
        let decided = match self.rule {
            FingerprintRule::Components => {
                let mut components = Components::new(ranks);
                let walked = for_each_ranked(linked, ranking, &mut wrong, |[later, _, earlier]| {
                    components.join(earlier, later);
                    Ok(())
                });
                walked.map_err(&temporary)?;
                let firsts = (0..ranks).map(|rank| components.first(rank));
                ClassDecisions::Components(firsts.collect())
            }
            FingerprintRule::Stars => {
                // Sort by later rank, distance and earlier rank: each class then sees its pairs together and in ascending distance, whatever the
                // order in which threads found them.
                let mut sort = ExternalSort::new(budget, self.folder);
                let walked = for_each_ranked(linked, ranking, &mut wrong, |edge| sort.push(edge));
                walked.map_err(&temporary)?;
                let mut stars = StarClusters::new(ranks);
                // Pairs come in the order of the later rank, so it is known by then whether the earlier one survives.
                sort.drain(|[later, distance, earlier]: Edge| {
                    // `PairFile` accepts distances up to 128 only, and joins search for no larger ones.
                    stars.pair(later, earlier, distance as u8);
                    Ok(())
                })?;
                ClassDecisions::Stars(stars)
            }
        };
        wrong.map_or(Ok(decided), |wrong| Err(BatchError::Cluster(wrong)))
    }
}

/// Visits every pair by ranks: the later one, the distance, the earlier one. The first pair that contradicts the files goes to `wrong`.
fn for_each_ranked(
    linked: &LinkedClasses,
    ranking: &ClassRanking<'_>,
    wrong: &mut Option<ClusterError>,
    mut visit: impl FnMut(Edge) -> io::Result<()>,
) -> io::Result<()> {
    linked.edges.for_each(|[a, b, distance]| {
        let classes = [a, b].map(|end| linked.index.end(end));
        if let ClassIndex::Ids { ids, .. } = &linked.index
            && !ranking.fingerprints.is_empty()
            && wrong.is_none()
        {
            let fingerprints = classes.map(|class| ranking.fingerprints[class as usize]);
            let sketches = ranking.sketches;
            let checked = ensure_distance(sketches, ids, [a, b], distance, fingerprints);
            *wrong = checked.err();
        }
        let [x, y] = classes.map(|class| ranking.ranks[class as usize]);
        // Two ids may belong to one class through other equal ids. Between them there is nothing to decide.
        match x == y {
            true => Ok(()),
            false => visit([x.max(y), distance, x.min(y)]),
        }
    })
}
