//! Choice of survivors: the star clustering that promise P3 in ARCHITECTURE.md rests on, streaming.
//!
//! Documents are taken from the most to the least wanted. One that is similar to an earlier survivor is removed and
//! joins the most similar one (the more wanted one of equals); any other survives. So every removed document has a
//! verified similarity to a document that is kept, however long the chains of small changes are (marin#6854 is the
//! story of a tool that followed them), and a family of n documents costs n comparisons with its survivor instead of
//! the n^2 of all pairs. The slow definition is [`lookalike::cluster::survivors`]; tests compare the two.
//!
//! Work goes in blocks of ranks: first all threads compare the block with the survivors of earlier blocks, and see which ranks may resemble
//! an earlier one of the block. Then all threads settle the components of the block; see [`block_components`](crate::dedup::block_components).
//! The result is that of the plain sequence.
//!
//! With groups on disk, blocks follow one another within each window of groups; see [`group_windows`](crate::dedup::group_windows).

mod block_team;
mod group_survivors;
mod meeting;
mod settled_ranks;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use lookalike_hamming::threads::{join_all, on_each};

use crate::dedup::group_windows::{ClassGroups, GroupError, WindowPlan};
use crate::dedup::verify::{Verifier, VerifyScratch};
use block_team::{BlockPlan, BlockTeam, next_stride, shifted};
use group_survivors::{EarlierSurvivors, Survivors};
use meeting::Leaving;

pub(crate) use group_survivors::settling_bytes;
pub(crate) use settled_ranks::{ClassDecisions, SettledRanks};

/// Settles every rank. The first `fixed` ranks survive whatever they resemble. `advance` hears of each block, and its error ends the work.
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

/// Groups by which ranks are settled, and what that may use.
pub(crate) struct SettlingResources<'a> {
    pub(crate) groups: &'a ClassGroups,
    /// Bytes of a window of groups that are on disk.
    pub(crate) memory: u64,
    pub(crate) threads: usize,
}

/// As [`settle`], window by window, where some ranks are settled already, up to the end of a block.
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
    // No log tells of those that are refused at the end of a window.
    let mut start = match resources.groups.by_page {
        Some(_) => fixed,
        None => settled.count,
    };
    while start < ranks {
        let survivors = settled.decisions.kept_bits(start, resources.threads);
        let window = resources.groups.window(&WindowPlan {
            ranks: start as u32..ranks as u32,
            // Whole blocks: the counts of what was looked at depend on where they begin.
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

/// Ranks that are settled by one table of groups.
struct SettlingRange {
    /// Number of first ranks that survive whatever they resemble.
    fixed: usize,
    ranks: Range<usize>,
}

/// Settles the ranks of a window that are not settled, and notes those that were refused.
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
    // Those of earlier windows, and what a log told, are replayed first, in the order of ranks, as lists must ascend.
    let mut survivors = Survivors::new(verifier, threads);
    let end = range.ranks.end;
    let kept = (0..settled.count.min(end)).filter(|&rank| settled.decisions.is_kept(rank));
    kept.for_each(|rank| survivors.add(rank as u32));
    let (own, others) = scratches
        .split_first_mut()
        .expect("a job has at least one thread");
    let team = BlockTeam::new(verifier, survivors, plan);
    let mut settled = std::thread::scope(|scope| {
        let team = &team;
        let workers = others
            .iter_mut()
            .map(|scratch| scope.spawn(move || team.work(scratch)))
            .collect();
        let _leaving = Leaving(&team.meeting);
        let settled = team.settle(settled, end, own, advance);
        team.dismiss();
        join_all(workers);
        settled
    })?;
    let survivors = team.into_survivors();
    let ranks = range.fixed.max(range.ranks.start) as u32..end as u32;
    look_for_refused(verifier, &survivors, ranks, &mut scratches)?;
    settled.refused_as_weak.extend(
        scratches
            .into_iter()
            .flat_map(|scratch| scratch.buffers.refused),
    );
    Ok(settled)
}

/// Notes the survivors that resemble an earlier one by their main text, where both are weak members of a group: such pairs are
/// not compared while survivors are chosen, for they are not near-duplicates as pages.
fn look_for_refused(
    verifier: &Verifier<'_>,
    survivors: &Survivors<'_>,
    ranks: Range<u32>,
    scratches: &mut [VerifyScratch],
) -> io::Result<()> {
    if verifier.page_groups.is_none() {
        return Ok(());
    }
    by_strides(ranks, scratches, |stride, scratch| {
        let is_weak = |&rank: &u32| survivors.by_text.has(rank) && verifier.groups.is_weak(rank);
        for rank in stride.filter(is_weak) {
            let earlier = |last_only| {
                move |than| EarlierSurvivors {
                    survivors,
                    than,
                    last_only,
                }
            };
            // In a family nearly any other member will do.
            if !verifier.is_refused(rank, scratch, earlier(true))? {
                verifier.is_refused(rank, scratch, earlier(false))?;
            }
        }
        Ok(())
    })
}

/// Does some work for all ranks in a range, on all threads.
fn by_strides(
    ranks: Range<u32>,
    scratches: &mut [VerifyScratch],
    stride_work: impl Fn(Range<u32>, &mut VerifyScratch) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let worked = on_each(scratches, |scratch| -> io::Result<()> {
        while let Some(stride) = next_stride(&next, ranks.len()) {
            stride_work(shifted(stride, ranks.start), scratch)?;
        }
        Ok(())
    });
    worked.into_iter().collect()
}

/// As [`settle_stored`] in blocks of so many ranks, and in as little memory as will do for the smallest windows, with some more.
#[cfg(test)]
pub(crate) fn settle_in_little(
    verifier: &Verifier<'_>,
    groups: &ClassGroups,
    settled: &SettledRanks,
    fixed: usize,
    plan: LittlePlan,
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

/// Threads, ranks of a block, and bytes of memory for [`settle_in_little`].
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct LittlePlan {
    pub(crate) threads: usize,
    pub(crate) ranks: usize,
    pub(crate) more: u64,
}
