//! Survivors compared with the plain sequence.

use proptest::prelude::*;

use super::block_team::BLOCK;
use super::*;
use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::testing::{TestCollection, feature_sets, thresholds};

/// The definition, one rank after another: the most similar earlier survivor; of equally similar ones, the smaller rank.
fn slow(collection: &TestCollection, fixed: usize) -> Vec<DocumentDecision> {
    let mut decisions: Vec<DocumentDecision> = Vec::new();
    for rank in 0..collection.sets.len() as u32 {
        let mut best = None;
        for earlier in
            (0..rank).filter(|&earlier| decisions[earlier as usize] == DocumentDecision::Kept)
        {
            let found = collection
                .similar(rank, earlier)
                .map(|similarity| (similarity, earlier));
            if found.is_some_and(|(similarity, _)| best.is_none_or(|(most, _)| similarity > most)) {
                best = found;
            }
        }
        decisions.push(match best {
            Some((similarity, survivor)) if rank as usize >= fixed => DocumentDecision::Near {
                survivor,
                similarity,
                visible: None,
            },
            _ => DocumentDecision::Kept,
        });
    }
    decisions
}

fn classes(decisions: &DecisionTable) -> Vec<DocumentDecision> {
    let ranks = 0..decisions.len();
    ranks.map(|rank| decisions.get(rank)).collect()
}

fn settled(collection: &TestCollection, fixed: usize, threads: usize) -> Vec<DocumentDecision> {
    let settled = settle(&collection.verifier(), fixed, threads, |_| Ok(())).unwrap();
    classes(&settled.decisions)
}

/// Families in which many sets share all their groups, and sets from a small range of features.
fn families() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let member = (0..4_u64, prop::collection::btree_set(0..12_u64, 0..4));
    let member = member.prop_map(|(family, own)| {
        let mut set: Vec<u64> = (0..8).map(|f| family * 10 + f).collect();
        set.extend(own.iter().map(|f| 100 + f));
        set
    });
    prop::collection::vec(member, 60..200)
}

/// Sets, and the way they are settled.
#[derive(Debug)]
struct SettlingCase {
    sets: Vec<Vec<u64>>,
    threshold: f64,
    fixed: usize,
    threads: usize,
    /// Number of ranks in a block.
    ranks: usize,
    resumed_at: usize,
    by_prefix: bool,
}

prop_compose! {
    fn cases()(
        sets in prop_oneof![feature_sets(120), families()],
        threshold in thresholds(),
        part_fixed in 0.0..1.0_f64,
        threads in 1..9_usize,
        ranks in prop::sample::select(vec![1_usize, 2, 7, 40, 150]),
        resumed_at in 0..200_usize,
        by_prefix in any::<bool>(),
    ) -> SettlingCase {
        let fixed = (sets.len() as f64 * part_fixed.powi(4)) as usize;
        SettlingCase { sets, threshold, fixed, threads, ranks, resumed_at, by_prefix }
    }
}

impl SettlingCase {
    fn collection(&self) -> TestCollection {
        match self.by_prefix {
            true => TestCollection::by_prefix(self.sets.clone(), self.threshold),
            false => TestCollection::by_any_feature(self.sets.clone(), self.threshold),
        }
    }

    fn begin(&self) -> SettledRanks {
        SettledRanks::fixed(self.fixed, self.sets.len())
    }

    /// Settles the ranks after `settled` with groups in memory. Returns the decisions, and the last state with no more settled ranks than a
    /// resumption starts with.
    fn settle_from(
        &self,
        settled: SettledRanks,
        verifier: &Verifier<'_>,
        threads: usize,
        alone: usize,
    ) -> (ClassDecisions, SettledRanks) {
        let plan = BlockPlan {
            threads,
            ranks: self.ranks,
            alone,
        };
        let range = SettlingRange {
            fixed: self.fixed,
            ranks: self.fixed..self.sets.len(),
        };
        let mut stopped = settled.clone();
        let all = settle_window(verifier, range, settled, plan, &mut |settled| {
            if settled.count <= self.resumed_at {
                stopped = settled.clone();
            }
            Ok(())
        });
        (all.unwrap().into_decisions(), stopped)
    }
}

/// Returns all parts of the decisions.
fn told(all: &ClassDecisions) -> (Vec<DocumentDecision>, ComparisonCounts, u64) {
    (classes(&all.decisions), all.comparisons, all.kept_as_pages)
}

proptest! {
    #[test]
    fn fates_equal_those_of_one_rank_after_another(case in cases()) {
        let collection = case.collection();
        let found = settled(&collection, case.fixed, case.threads.min(3));
        prop_assert_eq!(found, slow(&collection, case.fixed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn groups_on_disk_decide_and_count_as_those_in_memory(
        case in cases(),
        weak in prop::option::of(0..40_usize),
        part in 0.0..1.1_f64,
    ) {
        let threads = case.threads.min(3);
        let mut collection = case.collection();
        if let Some(bound) = weak {
            collection.weaken(bound, |rank| rank % 3 > 0);
        }
        let verifier = collection.verifier();
        let (expected, stopped) = case.settle_from(case.begin(), &verifier, threads, 5);
        let groups = collection.groups_on_disk();
        // As little memory as possible, and any amount up to all.
        for more in [0, (part * part * 20_000.0) as u64] {
            for settled in [&case.begin(), &stopped] {
                let plan = LowMemoryPlan { threads, ranks: case.ranks, more };
                let found = settle_low_memory(&verifier, &groups, settled, case.fixed, plan);
                prop_assert_eq!(told(&found), told(&expected));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn components_settled_by_any_number_of_threads_are_those_of_the_plain_sequence(
        case in cases(),
        alone in prop::sample::select(vec![0_usize, 5, 1000]),
    ) {
        let collection = case.collection();
        let verifier = collection.verifier();
        let (plain, stopped) = case.settle_from(case.begin(), &verifier, 1, alone);
        prop_assert_eq!(classes(&plain.decisions), slow(&collection, case.fixed));
        for settled in [case.begin(), stopped] {
            let (found, _) = case.settle_from(settled, &verifier, case.threads, alone);
            prop_assert_eq!(told(&found), told(&plain));
        }
    }
}

#[test]
fn an_error_ends_the_work_of_all_threads() {
    let collection = TestCollection::by_prefix(vec![vec![1, 2, 3]; 50], 0.5);
    let verifier = collection.verifier();
    for threads in 1..5 {
        let plan = BlockPlan {
            threads,
            ranks: 8,
            alone: 0,
        };
        let settled = SettledRanks::fixed(0, 50);
        let stop = |settled: &SettledRanks| match settled.count {
            24 => Err(io::Error::other("enough")),
            _ => Ok(()),
        };
        let all = SettlingRange {
            fixed: 0,
            ranks: 0..50,
        };
        let outcome = settle_window(&verifier, all, settled, plan, &mut { stop });
        assert_eq!(outcome.err().unwrap().to_string(), "enough");
    }
}

#[test]
fn survivors_of_earlier_blocks_are_found_by_every_thread() {
    // Three blocks. Each set resembles earlier ones, some of them in an earlier block.
    let feature = |at: u64, number: u64| (at / 7 * 13 + number * (1 + at % 3)) % 997;
    let sets = (0..2 * BLOCK as u64 + 500).map(|at| {
        let mut set: Vec<u64> = (0..8).map(|number| feature(at % 900, number)).collect();
        set.sort_unstable();
        set.dedup();
        set
    });
    let collection = TestCollection::by_prefix(sets.collect(), 0.5);
    let expected = slow(&collection, 3);
    let across_blocks = |(rank, decision): (usize, &DocumentDecision)| matches!(decision, DocumentDecision::Near { survivor, .. } if rank / BLOCK > *survivor as usize / BLOCK);
    assert!(expected.iter().enumerate().any(across_blocks));
    for threads in [1, 3] {
        assert_eq!(
            settled(&collection, 3, threads),
            expected,
            "{threads} threads"
        );
    }
}
