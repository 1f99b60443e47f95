//! Choice of survivors: the star clustering that promise 4 rests on, streaming.
//!
//! Documents are taken from the most to the least wanted. One that is similar to an earlier survivor is removed and
//! joins the most similar one (the more wanted one of equals); any other survives. So every removed document has a
//! verified similarity to a document that is kept, however long the chains of small changes are (marin#6854 is the
//! story of a tool that followed them), and a family of n documents costs n comparisons with its survivor instead of
//! the n^2 of all pairs. The slow definition is [`lookalike::cluster::survivors`]; tests compare the two.
//!
//! Work goes in blocks of ranks: first all threads compare the block with the survivors of earlier blocks, then one
//! thread settles the block itself in order. The result is that of the plain sequence.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dedup::candidate_groups::CandidateGroups;
use crate::dedup::just_below::{BelowMargin, JustBelow};
use crate::dedup::verify::{CandidateMembers, ClosestMatch, Verifier, VerifyScratch};
use crate::spill::partitions::lock;

/// Decision on a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClassDecision {
    /// It is kept.
    Survives,
    /// It is similar to a survivor.
    Joins {
        /// Rank of the survivor.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
        /// That of all that a reader sees, where that is not what was compared.
        visible: Option<f64>,
    },
}

/// Decision on all classes.
pub(crate) struct ClassDecisions {
    /// By rank.
    pub(crate) fates: Vec<ClassDecision>,
    /// Those that nearly resemble a survivor enough.
    pub(crate) just_below: JustBelow,
    /// Number of classes that survive though their main text resembles that of a survivor: the pages differ.
    pub(crate) kept_as_pages: u64,
}

/// Survivors so far, by rank and by group.
///
/// Most groups are small: there the members are looked at and asked whether they survived, one bit each, which stay
/// in cache. A family of thousands would be walked again and again; groups beyond [`SMALL`] keep a list of their
/// survivors.
struct GroupSurvivors<'g> {
    groups: &'g CandidateGroups,
    bits: Vec<u64>,
    /// Lists of large groups, each in the place of its group. Pages of small groups are never touched.
    lists: Vec<u32>,
    lengths: Vec<u32>,
}

/// Larger groups keep a list of their survivors.
const SMALL: usize = 32;

impl<'g> GroupSurvivors<'g> {
    fn new(groups: &'g CandidateGroups, ranks: usize) -> Self {
        let (lists, lengths) = (vec![0; groups.members.len()], vec![0; groups.len()]);
        Self {
            groups,
            bits: vec![0; ranks.div_ceil(64)],
            lists,
            lengths,
        }
    }

    fn has(&self, rank: u32) -> bool {
        self.bits[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    /// Survivors of a large group, ascending.
    fn listed(&self, group: u32) -> &[u32] {
        let start = self.groups.starts[group as usize] as usize;
        &self.lists[start..start + self.lengths[group as usize] as usize]
    }

    fn add(&mut self, rank: u32) {
        self.bits[rank as usize / 64] |= 1 << (rank % 64);
        for &group in self.groups.of(rank) {
            if self.groups.members(group).len() > SMALL {
                let length = &mut self.lengths[group as usize];
                self.lists[(self.groups.starts[group as usize] + u64::from(*length)) as usize] =
                    rank;
                *length += 1;
            }
        }
    }
}

/// Survivors with ranks in a range.
struct SurvivorRange<'s, 'g> {
    survivors: &'s GroupSurvivors<'g>,
    ranks: Range<u32>,
}

impl CandidateMembers for SurvivorRange<'_, '_> {
    fn each(&self, group: u32, visit: impl FnMut(u32)) {
        let members = self.survivors.groups.members(group);
        let Range { start, end } = self.ranks;
        if members.len() > SMALL {
            let listed = self.survivors.listed(group);
            let from = if start == 0 {
                0
            } else {
                listed.partition_point(|&rank| rank < start)
            };
            listed[from..]
                .iter()
                .copied()
                .take_while(|&rank| rank < end)
                .for_each(visit);
        } else {
            let earlier = members.iter().copied().take_while(|&rank| rank < end);
            earlier
                .filter(|&rank| rank >= start && self.survivors.has(rank))
                .for_each(visit);
        }
    }
}

/// Settles every rank. The first `fixed` ranks survive whatever they resemble. `advance` hears of each block. Beside the
/// fates it gives those that survive with a similarity in the margin below the threshold.
pub(crate) fn settle(
    verifier: &Verifier<'_>,
    fixed: usize,
    threads: usize,
    mut advance: impl FnMut(usize),
) -> io::Result<ClassDecisions> {
    const BLOCK: usize = 1024;
    let ranks = verifier.sizes.len();
    let mut fates = vec![ClassDecision::Survives; ranks];
    let margin = BelowMargin::below(verifier.threshold);
    let mut just_below = JustBelow::new(margin);
    let mut survivors = GroupSurvivors::new(verifier.groups, ranks);
    let mut scratches: Vec<VerifyScratch> =
        (0..threads).map(|_| VerifyScratch::new(ranks)).collect();
    (0..fixed as u32).for_each(|rank| survivors.add(rank));
    for start in (fixed..ranks).step_by(BLOCK) {
        let block = start as u32..ranks.min(start + BLOCK) as u32;
        let earlier = against_earlier(verifier, &survivors, block.clone(), &mut scratches)?;
        for (rank, earlier) in block.clone().zip(earlier) {
            let mut within = None;
            let among = |x| SurvivorRange {
                survivors: &survivors,
                ranks: block.start..x,
            };
            verifier.best(rank..rank + 1, &mut scratches[0], among, |_, found| {
                within = Some(found)
            })?;
            match verifier.closer(rank, earlier, within) {
                Some(ClosestMatch::Similar(found)) => {
                    let scratch = &mut scratches[0];
                    fates[rank as usize] = ClassDecision::Joins {
                        survivor: found.rank,
                        similarity: verifier.similarity(rank, found),
                        visible: verifier.visible_similarity(rank, found.rank, scratch)?,
                    };
                    continue;
                }
                Some(ClosestMatch::Below(found)) => {
                    let similarity = verifier.similarity(rank, found);
                    just_below.add(margin, rank, found.rank, similarity);
                }
                None => {}
            }
            survivors.add(rank);
        }
        advance(block.end as usize);
    }
    let refused = scratches.into_iter().flat_map(|scratch| scratch.refused);
    let mut refused: Vec<u32> = refused.collect();
    refused.sort_unstable();
    refused.dedup();
    refused.retain(|&rank| fates[rank as usize] == ClassDecision::Survives);
    Ok(ClassDecisions {
        fates,
        just_below,
        kept_as_pages: refused.len() as u64,
    })
}

/// Best survivors of earlier blocks for each rank of a block, found by all threads.
fn against_earlier(
    verifier: &Verifier<'_>,
    survivors: &GroupSurvivors<'_>,
    block: Range<u32>,
    scratches: &mut [VerifyScratch],
) -> io::Result<Vec<Option<ClosestMatch>>> {
    const STRIDE: usize = 32;
    let size = block.len();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; size]);
    let work = |scratch: &mut VerifyScratch| -> io::Result<()> {
        loop {
            let from = next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= size {
                return Ok(());
            }
            let stride = block.start + from as u32..block.start + size.min(from + STRIDE) as u32;
            let among = |_| SurvivorRange {
                survivors,
                ranks: 0..block.start,
            };
            verifier.best(stride, scratch, among, |x, best| {
                lock(&found)[(x - block.start) as usize] = Some(best);
            })?;
        }
    };
    let (own, others) = scratches
        .split_first_mut()
        .expect("a job has at least one thread");
    std::thread::scope(|scope| -> io::Result<()> {
        let workers: Vec<_> = others
            .iter_mut()
            .map(|scratch| scope.spawn(|| work(scratch)))
            .collect();
        work(own)?;
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    Ok(found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};

    /// The definition, one rank after another: the most similar earlier survivor, the smaller rank of equals.
    fn slow(collection: &TestCollection, fixed: usize) -> Vec<ClassDecision> {
        let mut fates: Vec<ClassDecision> = Vec::new();
        for rank in 0..collection.sets.len() as u32 {
            let mut best = None;
            for earlier in
                (0..rank).filter(|&earlier| fates[earlier as usize] == ClassDecision::Survives)
            {
                let found = collection
                    .similar(rank, earlier)
                    .map(|similarity| (similarity, earlier));
                if found
                    .is_some_and(|(similarity, _)| best.is_none_or(|(most, _)| similarity > most))
                {
                    best = found;
                }
            }
            fates.push(match best {
                Some((similarity, survivor)) if rank as usize >= fixed => ClassDecision::Joins {
                    survivor,
                    similarity,
                    visible: None,
                },
                _ => ClassDecision::Survives,
            });
        }
        fates
    }

    fn settled(collection: &TestCollection, fixed: usize, threads: usize) -> Vec<ClassDecision> {
        settle(&collection.verifier(), fixed, threads, |_| ())
            .unwrap()
            .fates
    }

    proptest! {
        #[test]
        fn fates_equal_those_of_one_rank_after_another(
            sets in feature_sets(80),
            threshold in thresholds(),
            part_fixed in 0.0..1.0_f64,
            threads in 1..4_usize,
            by_prefix in any::<bool>(),
        ) {
            let fixed = (sets.len() as f64 * part_fixed * part_fixed) as usize;
            let collection = match by_prefix {
                true => TestCollection::by_prefix(sets, threshold),
                false => TestCollection::by_any_feature(sets, threshold),
            };
            prop_assert_eq!(settled(&collection, fixed, threads), slow(&collection, fixed));
        }
    }

    #[test]
    fn survivors_of_earlier_blocks_are_found_by_every_thread() {
        // 2,500 sets are three blocks; each resembles some in all of them.
        let feature = |at: u64, number: u64| (at / 7 * 13 + number * (1 + at % 3)) % 997;
        let sets = (0..2500_u64).map(|at| {
            let mut set: Vec<u64> = (0..8).map(|number| feature(at % 900, number)).collect();
            set.sort_unstable();
            set.dedup();
            set
        });
        let collection = TestCollection::by_prefix(sets.collect(), 0.5);
        let expected = slow(&collection, 3);
        let across_blocks = |(rank, fate): (usize, &ClassDecision)| matches!(fate, ClassDecision::Joins { survivor, .. } if rank / 1024 > *survivor as usize / 1024);
        assert!(expected.iter().enumerate().any(across_blocks));
        for threads in [1, 3] {
            assert_eq!(
                settled(&collection, 3, threads),
                expected,
                "{threads} threads"
            );
        }
    }
}
