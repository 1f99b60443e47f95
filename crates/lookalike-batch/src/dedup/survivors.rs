//! Choice of survivors: the streaming star clustering that promise P3 in ARCHITECTURE.md is based on.
//!
//! Documents are processed from the most to the least preferred. One that is similar to an earlier survivor is removed and joins the most similar one
//! (of equally similar ones, the preferred one); any other survives. So every removed document has a verified similarity to a kept document, however
//! long the chains of small changes are (marin#6854 reports a tool that followed them), and a cluster of n documents costs n comparisons with its
//! survivor instead of the n^2 of all pairs. The slow definition is [`lookalike::cluster::survivors`]; tests compare the two.
//!
//! The work is divided into blocks of ranks. First all threads compare the block with the survivors of earlier blocks, and determine which ranks may
//! resemble an earlier one of the block. Then all threads settle the components of the block; see
//! [`block_components`](crate::dedup::block_components). The result is that of the plain sequence.
//!
//! With groups on disk, blocks are processed one after another within each window of groups; see [`group_windows`](crate::dedup::group_windows).

mod barrier;
mod block_team;
mod group_survivors;
mod settled_ranks;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use lookalike_hamming::threads::{join_all, map_parallel, spawn_scoped};

use crate::dedup::group_windows::{ClassGroups, GroupError, WindowPlan};
use crate::dedup::verify::{Verifier, VerifyScratch};
use barrier::BarrierGuard;
use block_team::{BlockPlan, BlockTeam, next_stride, shifted};
use group_survivors::{EarlierSurvivors, Survivors};

pub(crate) use group_survivors::settling_bytes;
pub(crate) use settled_ranks::{ClassDecisions, SettledRanks};

/// Settles every rank. The first `fixed` ranks survive whatever they resemble. Calls `advance` with the number of settled ranks after each block; an
/// error ends the work.
pub(crate) fn settle(
    verifier: &Verifier<'_>,
    fixed: usize,
    threads: usize,
    mut advance: impl FnMut(usize) -> io::Result<()>,
) -> io::Result<ClassDecisions> {
    let ranks = verifier.sizes.len();
    let all = SettlingRange {
        fixed,
        ranks: fixed..ranks,
    };
    let settled = SettledRanks::fixed(fixed, ranks);
    let settled = settle_window(
        verifier,
        all,
        settled,
        BlockPlan::of_threads(threads),
        &mut |settled| advance(settled.count),
    )?;
    Ok(settled.into_decisions())
}

/// Groups for settling, and the resources that it may use.
pub(crate) struct SettlingResources<'a> {
    pub(crate) groups: &'a ClassGroups,
    /// Bytes for a window of groups that are on disk.
    pub(crate) memory: u64,
    pub(crate) threads: usize,
}

/// Settles as [`settle`] does, but window by window, and continues after ranks that are already settled, up to the end of a block.
pub(crate) fn settle_stored(
    verifier: &Verifier<'_>,
    resources: &SettlingResources<'_>,
    fixed: usize,
    settled: SettledRanks,
    mut advance: impl FnMut(&SettledRanks) -> io::Result<()>,
) -> Result<ClassDecisions, GroupError> {
    let plan = BlockPlan::of_threads(resources.threads);
    settle_windows(verifier, resources, fixed, settled, plan, &mut advance)
}

fn settle_windows(
    verifier: &Verifier<'_>,
    resources: &SettlingResources<'_>,
    fixed: usize,
    mut settled: SettledRanks,
    plan: BlockPlan,
    advance: &mut impl FnMut(&SettledRanks) -> io::Result<()>,
) -> Result<ClassDecisions, GroupError> {
    let ranks = verifier.sizes.len();
    // A log does not contain the ranks that are refused at the end of a window.
    let mut start = match resources.groups.by_page {
        Some(_) => fixed,
        None => settled.count,
    };
    while start < ranks {
        let survivors = settled.decisions.kept_bits(start, resources.threads);
        let window = resources.groups.window(&WindowPlan {
            ranks: start as u32..ranks as u32,
            // Whole blocks, because the counts of comparisons depend on where blocks begin.
            step: plan.ranks,
            memory: resources.memory,
            threads: resources.threads,
            is_wanted: &|rank| survivors[rank as usize / 64] >> (rank % 64) & 1 == 1,
        })?;
        let range = SettlingRange {
            fixed,
            ranks: start..window.end as usize,
        };
        start = range.ranks.end;
        settled = settle_window(&verifier.in_window(&window), range, settled, plan, advance)?;
    }
    Ok(settled.into_decisions())
}

/// Ranks that are settled with one table of groups.
struct SettlingRange {
    /// Number of ranks, from the first, that survive whatever they resemble.
    fixed: usize,
    ranks: Range<usize>,
}

/// Settles those ranks of a window that are not settled yet, and records those that were refused.
fn settle_window(
    verifier: &Verifier<'_>,
    range: SettlingRange,
    settled: SettledRanks,
    plan: BlockPlan,
    advance: &mut impl FnMut(&SettledRanks) -> io::Result<()>,
) -> io::Result<SettledRanks> {
    let threads = plan.threads;
    let mut scratches: Vec<VerifyScratch> =
        (0..threads).map(|_| VerifyScratch::default()).collect();
    // First add the survivors of earlier windows and of a log, in the order of ranks, because lists must ascend.
    let mut survivors = Survivors::new(verifier, threads);
    let end = range.ranks.end;
    let kept = (0..settled.count.min(end)).filter(|&rank| settled.decisions.is_kept(rank));
    kept.for_each(|rank| survivors.add(rank as u32));
    let (own, others) = scratches
        .split_first_mut()
        .expect("a job has at least one thread");
    // One team for all blocks, because starting threads for each would cost more than many blocks do.
    let team = BlockTeam::new(verifier, survivors, plan);
    let mut settled = std::thread::scope(|scope| {
        let team = &team;
        // If this thread panics, the guard releases the workers, for which the scope waits.
        let _leaving = BarrierGuard(&team.barrier);
        let begin = |scratch| spawn_scoped(scope, move || team.work(scratch)).ok();
        let workers: Vec<_> = others.iter_mut().map_while(begin).collect();
        // Nobody waits for threads that the system refused.
        team.barrier.set_threads(workers.len() + 1);
        // No `?` before the workers are dismissed: they would wait at the barrier forever.
        let settled = team.settle(settled, end, own, advance);
        team.stop_workers();
        join_all(workers);
        settled
    })?;
    let survivors = team.into_survivors();
    // Fixed ranks survive anyway, so none of them is kept because its page differs.
    let ranks = range.fixed.max(range.ranks.start) as u32..end as u32;
    record_refused_survivors(verifier, &survivors, ranks, &mut scratches)?;
    settled.refused_as_weak.extend(
        scratches
            .into_iter()
            .flat_map(|scratch| scratch.buffers.refused),
    );
    Ok(settled)
}

/// Records the survivors whose main text resembles that of an earlier one, if both are weak members of a group. Such pairs are
/// not compared while survivors are chosen, because they are not near-duplicates as pages.
fn record_refused_survivors(
    verifier: &Verifier<'_>,
    survivors: &Survivors<'_>,
    ranks: Range<u32>,
    scratches: &mut [VerifyScratch],
) -> io::Result<()> {
    if verifier.page_groups.is_none() {
        return Ok(());
    }
    for_each_stride(ranks, scratches, |stride, scratch| {
        let is_weak = |&rank: &u32| survivors.by_text.has(rank) && verifier.groups.is_weak(rank);
        for rank in stride.filter(is_weak) {
            let earlier = |last_only| {
                move |than| EarlierSurvivors {
                    survivors,
                    than,
                    last_only,
                }
            };
            // In a large group of pages, nearly any other member suffices.
            if !verifier.is_refused(rank, scratch, earlier(true))? {
                verifier.is_refused(rank, scratch, earlier(false))?;
            }
        }
        Ok(())
    })
}

/// Runs `stride_work` on all ranks in a range, on all threads.
fn for_each_stride(
    ranks: Range<u32>,
    scratches: &mut [VerifyScratch],
    stride_work: impl Fn(Range<u32>, &mut VerifyScratch) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let worked = map_parallel(scratches, |scratch| -> io::Result<()> {
        while let Some(stride) = next_stride(&next, ranks.len()) {
            stride_work(shifted(stride, ranks.start), scratch)?;
        }
        Ok(())
    });
    worked.into_iter().collect()
}

/// Settles as [`settle_stored`] does, in blocks of the given size and in little more memory than the smallest windows need.
#[cfg(test)]
pub(crate) fn settle_low_memory(
    verifier: &Verifier<'_>,
    groups: &ClassGroups,
    settled: &SettledRanks,
    fixed: usize,
    plan: LowMemoryPlan,
) -> ClassDecisions {
    let mut memory = 0;
    loop {
        let resources = SettlingResources {
            groups,
            memory: memory + plan.more,
            threads: plan.threads,
        };
        let blocks = BlockPlan {
            threads: plan.threads,
            ranks: plan.ranks,
            alone: 5,
        };
        let settled = settled.clone();
        match settle_windows(
            verifier,
            &resources,
            fixed,
            settled,
            blocks,
            &mut |_| Ok(()),
        ) {
            Ok(decisions) => return decisions,
            Err(GroupError::TooLarge(needed)) => {
                assert!(needed > memory + plan.more, "{needed} fit");
                memory = needed;
            }
            Err(GroupError::Io(error)) => panic!("{error}"),
        }
    }
}

/// Number of threads, ranks in a block, and additional bytes of memory for [`settle_low_memory`].
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct LowMemoryPlan {
    pub(crate) threads: usize,
    pub(crate) ranks: usize,
    pub(crate) more: u64,
}
