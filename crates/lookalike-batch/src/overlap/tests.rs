//! Every engine under every budget, compared with the definition.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike_corpus::{InputOptions, Inputs};
use proptest::prelude::*;

use super::SharedCount;
use super::coarse::CoarseEngine;
use super::count::SharedLists;
use super::defer::Deferral;
use super::job::OverlapJob;
use super::postings::{CountResources, Postings, collect};
use super::read::ChunkSets;
use super::settings::OverlapSettings;
use super::sort::SortEngine;
use super::units::UnitPlacement;
use crate::error::BatchError;
use crate::settings::JobLimits;
use crate::spill::feature_sets::{SetStore, header};
use crate::spill::table_column::TableColumn;

/// Computes the rows by definition: counts every pair with sets.
fn naive(units: &[BTreeSet<u64>], min_shared: u32) -> Vec<SharedCount> {
    let mut rows = Vec::new();
    for a in 0..units.len() {
        for b in a + 1..units.len() {
            let shared = units[a].intersection(&units[b]).count() as u32;
            if shared >= min_shared {
                rows.push(SharedCount {
                    a: a as u32,
                    b: b as u32,
                    shared,
                });
            }
        }
    }
    rows
}

fn chunk_sets(units: &[BTreeSet<u64>], folder: &std::path::Path) -> ChunkSets {
    let mut chunks = ChunkSets {
        sets: SetStore::new(1 << 30),
        sizes: TableColumn::new(),
    };
    for (segment, part) in units.chunks(7).enumerate() {
        let mut words = Vec::new();
        for (i, set) in part.iter().enumerate() {
            words.push(header((segment * 7 + i) as u32, set.len()));
            words.extend(set);
        }
        chunks.push(words, folder).unwrap();
    }
    chunks
}

/// Limits on the resources of one run.
#[derive(Clone, Copy, Debug)]
struct Budget {
    threads: usize,
    bytes: u64,
}

fn postings(units: &[BTreeSet<u64>], budget: Budget, folder: &std::path::Path) -> Postings {
    let means = CountResources {
        advance: &|_| Ok(()),
        threads: budget.threads,
        keys: budget.bytes,
        lists: budget.bytes,
        parts: budget.bytes,
        folder,
    };
    // Units arrive in another order than their names have.
    let order = (0..units.len() as u32).rev().collect();
    let arrived: Vec<BTreeSet<u64>> = units.iter().rev().cloned().collect();
    let postings = collect(
        &chunk_sets(&arrived, folder),
        &UnitPlacement::Sets(order),
        units.len(),
        &means,
    )
    .unwrap();
    let sizes: Vec<u32> = units.iter().map(|set| set.len() as u32).collect();
    assert_eq!(postings.sizes, sizes);
    assert_eq!(
        postings.records,
        sizes.iter().map(|&size| u64::from(size)).sum::<u64>()
    );
    assert_eq!(
        postings.distinct as usize,
        units.iter().flatten().collect::<BTreeSet<_>>().len()
    );
    postings
}

/// Receiver of the rows of an engine.
type Emit<'a> = dyn FnMut(SharedCount) -> Result<(), BatchError> + 'a;

/// Returns the rows of the three ways of counting.
fn every_way(
    units: &[BTreeSet<u64>],
    min_shared: u32,
    budget: Budget,
) -> [(&'static str, Vec<SharedCount>); 3] {
    every_way_from(0, units, min_shared, budget)
}

/// Returns the rows of the three ways whose first unit is `from` or later.
fn every_way_from(
    from: u32,
    units: &[BTreeSet<u64>],
    min_shared: u32,
    budget: Budget,
) -> [(&'static str, Vec<SharedCount>); 3] {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let postings = postings(units, budget, folder);
    let deferral = Deferral::new(&postings, min_shared, budget.bytes, folder).unwrap();
    let collected = |run: &dyn Fn(&mut Emit<'_>)| {
        let mut rows = Vec::new();
        run(&mut |row| {
            rows.push(row);
            Ok(())
        });
        rows
    };
    let in_memory = collected(&|emit| {
        let index = SharedLists::new(&postings, &deferral, min_shared).unwrap();
        index.rows(from, budget.threads, emit, &|_| Ok(())).unwrap();
    });
    let coarse = collected(&|emit| {
        let engine = CoarseEngine {
            postings: &postings,
            deferral: &deferral,
            min_shared,
            budget: budget.bytes,
        };
        engine
            .rows(from, emit, &|error: io::Error| panic!("{error}"), &|_| {
                Ok(())
            })
            .unwrap();
    });
    let sorted = collected(&|emit| {
        let engine = SortEngine {
            postings: &postings,
            deferral: &deferral,
            min_shared,
            budget: budget.bytes,
            folder,
        };
        engine.rows(from, emit, &|_| Ok(())).unwrap()
    });
    [("count", in_memory), ("coarse", coarse), ("sort", sorted)]
}

/// Generates units with chunks of their own, chunks of families, and chunks that nearly all have.
fn collections() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
    let unit = (
        prop::collection::btree_set(0_u64..40, 0..30),
        prop::collection::btree_set(100_u64..400, 0..25),
        any::<bool>(),
    );
    prop::collection::vec(unit, 0..90).prop_map(|units| {
        let spread = |chunk: u64| lookalike::hash::avalanche(chunk + 1);
        let whole = |(common, own, header): (BTreeSet<u64>, BTreeSet<u64>, bool)| {
            let header = if header { 1000..1030 } else { 1000..1000 };
            common
                .into_iter()
                .chain(own)
                .chain(header)
                .map(spread)
                .collect()
        };
        units.into_iter().map(whole).collect()
    })
}

proptest! {
    #[test]
    fn every_way_gives_the_rows_of_the_definition(
        units in collections(),
        min_shared in 1_u32..26,
        threads in 1_usize..3,
        bytes in prop_oneof![Just(0_u64), Just(2_000), Just(30_000), Just(1 << 28)],
        from in prop_oneof![Just(0_u32), 0_u32..100],
    ) {
        let mut expected = naive(&units, min_shared);
        expected.retain(|row| row.a >= from);
        for (way, rows) in every_way_from(from, &units, min_shared, Budget { threads, bytes }) {
            prop_assert_eq!(&rows, &expected, "{}", way);
        }
    }
}

#[test]
fn the_progress_of_counting_in_memory_never_reached_its_total() {
    let units: Vec<BTreeSet<u64>> = (0..1000).map(|i| BTreeSet::from([i / 2])).collect();
    for threads in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget {
            threads,
            bytes: 1 << 20,
        };
        let postings = postings(&units, budget, folder.path());
        let deferral = Deferral::new(&postings, 1, budget.bytes, folder.path()).unwrap();
        let index = SharedLists::new(&postings, &deferral, 1).unwrap();
        let reached = Cell::new(0);
        let done = |units| {
            reached.set(units);
            Ok(())
        };
        index.rows(0, threads, &mut |_| Ok(()), &done).unwrap();
        assert_eq!(reached.get(), 1000);
    }
}

/// A chunk of all units costs nothing: every unit defers it, and no pair is counted for it.
#[test]
fn a_chunk_of_all_units_is_deferred_and_still_counted() {
    let unit = |i: u64| {
        BTreeSet::from_iter(
            [7, 1000 + i, 1000 + i / 2, 5000 + i % 9].map(lookalike::hash::avalanche),
        )
    };
    let units: Vec<BTreeSet<u64>> = (0..400).map(unit).collect();
    let folder = tempfile::tempdir().unwrap();
    let budget = Budget {
        threads: 1,
        bytes: 1 << 20,
    };
    let postings = postings(&units, budget, folder.path());
    let deferral = Deferral::new(&postings, 2, 1 << 20, folder.path()).unwrap();
    assert_eq!(deferral.common.first(), Some(&(400, deferral.common[0].1)));
    assert!(deferral.spared >= 400 * 399 / 2, "{}", deferral.spared);
    let expected = naive(&units, 2);
    assert!(expected.len() > 8000 && expected.iter().any(|row| row.shared > 2));
    for (way, rows) in every_way(&units, 2, budget) {
        assert_eq!(rows, expected, "{way}");
    }
}

/// If all pairs fit, the pilot samples every unit, so its figures equal those of the definition.
#[test]
fn the_pilot_tells_what_the_definition_says() {
    let unit = |i: u64| {
        let chunks = [i / 2, 1000 + i / 3, 2000 + i / 3, 5000 + i % 9, 9000 + i];
        BTreeSet::from_iter(chunks.map(lookalike::hash::avalanche))
    };
    let units: Vec<BTreeSet<u64>> = (0..90).map(unit).collect();
    let folder = tempfile::tempdir().unwrap();
    let budget = Budget {
        threads: 1,
        bytes: 1 << 28,
    };
    let postings = postings(&units, budget, folder.path());
    for min_shared in [1, 2, 3] {
        let deferral = Deferral::new(&postings, min_shared, 1 << 28, folder.path()).unwrap();
        assert!(deferral.is_empty(), "no chunk is common");
        let engine = CoarseEngine {
            postings: &postings,
            deferral: &deferral,
            min_shared,
            budget: 1 << 28,
        };
        let mut rows = 0;
        let mut emit = |_| {
            rows += 1;
            Ok(())
        };
        let figures = engine
            .rows(0, &mut emit, &|error: io::Error| panic!("{error}"), &|_| {
                Ok(())
            })
            .unwrap();
        let pairs = naive(&units, 1).len() as u64;
        assert_eq!((figures.pilot_units, figures.pilot_pairs), (90, pairs));
        assert_eq!(figures.expected_pairs, pairs);
        assert_eq!(
            figures.expected_enough,
            naive(&units, min_shared).len() as u64
        );
        assert_eq!(rows, figures.expected_enough);
        let counted = [figures.candidates, figures.expected_candidates];
        assert!(
            counted
                .iter()
                .all(|counted| (rows..=pairs).contains(counted)),
            "{figures:?}"
        );
        assert_eq!((figures.ranges, figures.halved), (1, 0));
    }
}

/// Without memory, the deferred chunks used to be added to zero rows at a time, so the job never ended.
#[test]
fn no_budget_at_all_comes_to_an_end() {
    let unit = |i: u64| {
        BTreeSet::from_iter(
            (0..30)
                .chain([1000 + i / 2])
                .map(lookalike::hash::avalanche),
        )
    };
    let units: Vec<BTreeSet<u64>> = (0..60).map(unit).collect();
    let budget = Budget {
        threads: 1,
        bytes: 0,
    };
    for min_shared in [1, 2, 5, 20, 25, 31] {
        let expected = naive(&units, min_shared);
        for (way, rows) in every_way(&units, min_shared, budget) {
            assert_eq!(rows, expected, "{way}");
        }
    }
}

/// One unit with every common chunk must not keep the others from deferring theirs.
#[test]
fn a_unit_of_all_common_chunks_is_exact() {
    let everything: BTreeSet<u64> = (0..60).map(lookalike::hash::avalanche).collect();
    let unit = |i: u64| {
        (0..4)
            .map(|c| lookalike::hash::avalanche((i * 4 + c) % 60))
            .collect()
    };
    let units: Vec<BTreeSet<u64>> = std::iter::once(everything)
        .chain((0..300).map(unit))
        .collect();
    for min_shared in [1, 3, 4, 5] {
        let expected = naive(&units, min_shared);
        for (way, rows) in every_way(
            &units,
            min_shared,
            Budget {
                threads: 2,
                bytes: 4_000,
            },
        ) {
            assert_eq!(rows, expected, "{way} at {min_shared}");
        }
    }
}

/// Output that cancels the job with the first row, and counts the rows.
struct CancelOnWrite<'a> {
    is_cancelled: &'a AtomicBool,
    rows: usize,
}

impl io::Write for CancelOnWrite<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.rows += bytes.iter().filter(|&&byte| byte == b'\n').count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_cancelled_job_wrote_the_rows_of_a_whole_block_of_units() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.jsonl");
    // Every two share a line, so the first block has over ten thousand rows.
    let lines = (0..200).map(|at| format!("{{\"id\":\"{at}\",\"text\":\"shared\\n{at}\"}}\n"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let options = InputOptions::default();
    let inputs = Inputs::discover(&[file.into_os_string()], &options, folder.path()).unwrap();
    for threads in [1, 2] {
        let is_cancelled = AtomicBool::new(false);
        let mut out = CancelOnWrite {
            is_cancelled: &is_cancelled,
            rows: 0,
        };
        let job = OverlapJob::new(&inputs, folder.path())
            .settings(OverlapSettings::default().chunkings(vec!["lines:1".parse().unwrap()]))
            .limits(JobLimits::default().threads(threads))
            .observer(&is_cancelled);
        let ended = job.write_rows(&mut out);
        assert!(matches!(ended, Err(BatchError::Cancelled)), "{ended:?}");
        assert!((1..5_000).contains(&out.rows), "{} rows", out.rows);
    }
}
