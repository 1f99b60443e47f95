//! A team of threads that settles one block of ranks after another.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use lookalike::cluster::Components;

use super::barrier::{BarrierGuard, PanicBarrier};
use super::group_survivors::{SurvivorRange, Survivors};
use super::settled_ranks::SettledRanks;
use crate::dedup::block_components::{BlockFacts, BlockMembers, ComponentSurvivors, connected};
use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::verify::{VerifiedMatch, Verifier, VerifyScratch};
use crate::locks::lock;
use crate::spill::list_table::ListTable;

/// Number of ranks in a block: enough pieces for 64 threads, which meet twice per block.
pub(super) const BLOCK: usize = 4096;

/// Number of ranks that a thread takes at a time.
const STRIDE: usize = 32;

/// Number of ranks in a block that depend on each other above which all threads settle it. One thread settles fewer before the others have started.
const PARALLEL_MIN_CONNECTED: usize = 64;

/// Number of threads, and the sizes of the pieces that they work on.
#[derive(Clone, Copy)]
pub(super) struct BlockPlan {
    pub(super) threads: usize,
    /// Number of ranks in a block.
    pub(super) ranks: usize,
    /// Maximum number of ranks that depend on each other and are settled by one thread alone.
    pub(super) alone: usize,
}

impl BlockPlan {
    pub(super) fn of_threads(threads: usize) -> Self {
        Self {
            threads,
            ranks: BLOCK,
            alone: PARALLEL_MIN_CONNECTED,
        }
    }
}

/// Takes the next stride of `places` places, or returns `None` when all are taken.
pub(super) fn next_stride(next: &AtomicUsize, places: usize) -> Option<Range<usize>> {
    // Relaxed, because each number is given out once; locks and the barrier publish the results.
    let from = next.fetch_add(STRIDE, Ordering::Relaxed);
    (from < places).then(|| from..places.min(from + STRIDE))
}

/// Converts places to ranks, of which `start` is the first.
pub(super) fn shifted(places: Range<usize>, start: u32) -> Range<u32> {
    start + places.start as u32..start + places.end as u32
}

/// Task of all threads between two rounds of the barrier.
#[derive(Clone, Copy, Default)]
enum TeamTask {
    /// Compare the ranks of the block with earlier survivors.
    #[default]
    Compare,
    /// Settle the components of the block.
    Settle,
    /// End the thread.
    Exit,
}

/// A rank that joins a survivor.
struct JoiningRank {
    rank: u32,
    found: VerifiedMatch,
    visible: Option<f64>,
}

/// The current block.
#[derive(Default)]
struct TeamBlock {
    task: TeamTask,
    ranks: Range<u32>,
    facts: BlockFacts,
    components: ListTable<u32>,
}

/// Results of all threads, until the first thread takes them.
#[derive(Default)]
struct TeamResults {
    facts: BlockFacts,
    joining: Vec<JoiningRank>,
    comparisons: ComparisonCounts,
    refused: Vec<u32>,
    failed: Option<io::Error>,
}

/// Threads that process one block after another: all of them compare its ranks, then all settle its components.
// The first thread writes the block and the task. At the barrier all threads begin to read both, and at the next they have ended. From there on only
// the first thread works, until it begins another task.
pub(super) struct BlockTeam<'v, 'g> {
    verifier: &'v Verifier<'g>,
    /// Survivors of earlier blocks. All threads read them during a task; between tasks only the first thread uses them and the block.
    survivors: RwLock<Survivors<'g>>,
    block: RwLock<TeamBlock>,
    plan: BlockPlan,
    /// All threads meet here before and after each task.
    pub(super) barrier: PanicBarrier,
    /// Index of the next piece of the task.
    next: AtomicUsize,
    results: Mutex<TeamResults>,
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl<'v, 'g> BlockTeam<'v, 'g> {
    pub(super) fn new(
        verifier: &'v Verifier<'g>,
        survivors: Survivors<'g>,
        plan: BlockPlan,
    ) -> Self {
        Self {
            verifier,
            survivors: RwLock::new(survivors),
            block: RwLock::default(),
            plan,
            barrier: PanicBarrier::new(plan.threads),
            next: AtomicUsize::new(0),
            results: Mutex::default(),
        }
    }

    pub(super) fn into_survivors(self) -> Survivors<'g> {
        self.survivors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes part in one task after another, until the team is dismissed.
    pub(super) fn work(&self, scratch: &mut VerifyScratch) {
        let _guard = BarrierGuard(&self.barrier);
        loop {
            // The first meeting begins a task, and the second ends it.
            self.barrier.wait();
            if matches!(read(&self.block).task, TeamTask::Exit) {
                return;
            }
            self.run_task(scratch);
            self.barrier.wait();
        }
    }

    /// Ends the other threads.
    pub(super) fn stop_workers(&self) {
        write(&self.block).task = TeamTask::Exit;
        // Workers return after this meeting, so there is no second one.
        self.barrier.wait();
    }

    /// Carries out a task with all threads.
    fn all(&self, task: TeamTask, scratch: &mut VerifyScratch) -> io::Result<()> {
        write(&self.block).task = task;
        self.next.store(0, Ordering::Relaxed);
        // The barrier makes everything done before it visible to all threads.
        self.barrier.wait();
        self.run_task(scratch);
        self.barrier.wait();
        lock(&self.results).failed.take().map_or(Ok(()), Err)
    }

    /// Takes pieces of the current task until there are no more. Keeps the first error for the first thread.
    fn run_task(&self, scratch: &mut VerifyScratch) {
        // Locks are always taken in this order: the block, the survivors, the results.
        let block = read(&self.block);
        let done = match block.task {
            TeamTask::Compare => self.compare_ranks(&block, scratch),
            TeamTask::Settle => self.settle_components(&block, scratch),
            TeamTask::Exit => Ok(()),
        };
        let mut results = lock(&self.results);
        results.comparisons += std::mem::take(&mut scratch.comparisons);
        results.refused.append(&mut scratch.buffers.refused);
        if let Err(error) = done {
            // Keep the error instead of returning early, because the first thread waits for all at the barrier.
            results.failed.get_or_insert(error);
        }
    }

    /// Compares ranks of the block until all are taken.
    fn compare_ranks(&self, block: &TeamBlock, scratch: &mut VerifyScratch) -> io::Result<()> {
        let survivors = read(&self.survivors);
        // Each thread unites places in sets of its own: there are far more pairs than ranks, and a lock for each would cost more than the comparison.
        let mut sets = Components::new(block.ranks.len() as u32);
        while let Some(stride) = next_stride(&self.next, block.ranks.len()) {
            let stride = shifted(stride, block.ranks.start);
            self.compare_stride(&survivors, &block.ranks, stride, &mut sets, scratch)?;
        }
        lock(&self.results).facts.unite_all(sets);
        Ok(())
    }

    /// Finds the most similar survivors of earlier blocks for a stride of ranks, and the ranks of the block that these may resemble.
    fn compare_stride(
        &self,
        survivors: &Survivors<'_>,
        block: &Range<u32>,
        stride: Range<u32>,
        sets: &mut Components,
        scratch: &mut VerifyScratch,
    ) -> io::Result<()> {
        let among = |_| SurvivorRange {
            survivors,
            // The ranks of the block itself are not decided yet.
            ranks: 0..block.start,
        };
        // Collected first, so that the lock is taken once for each stride.
        let mut closest = Vec::new();
        self.verifier
            .best(stride.clone(), scratch, among, |x, best| {
                closest.push((x, best));
            })?;
        let crowded = RefCell::default();
        // A single thread can settle all ranks in order, without components.
        if self.plan.threads > 1 {
            let before = |x| BlockMembers {
                ranks: block.start..x,
                crowded: &crowded,
            };
            let unite = |x, y| {
                sets.join(x - block.start, y - block.start);
            };
            self.verifier.candidates(stride, scratch, before, unite);
        }
        let mut crowded = crowded.into_inner();
        crowded.sort_unstable();
        crowded.dedup();
        let facts = &mut lock(&self.results).facts;
        for (x, best) in closest {
            // Each rank is in one stride only, so no thread overwrites the result of another.
            facts.earlier[(x - block.start) as usize] = Some(best);
        }
        facts.crowded.append(&mut crowded);
        Ok(())
    }

    /// Settles components of the block until all are taken.
    fn settle_components(&self, block: &TeamBlock, scratch: &mut VerifyScratch) -> io::Result<()> {
        let mut survivors =
            ComponentSurvivors::new(self.verifier, block.ranks.clone(), &block.facts.crowded);
        let mut joining = Vec::new();
        while let Some(stride) = next_stride(&self.next, block.components.len()) {
            for component in stride {
                let places = block.components.of(component as u32);
                self.settle_component(block, places, &mut survivors, scratch, &mut joining)?;
            }
        }
        scratch.comparisons = only_compared(scratch.comparisons);
        lock(&self.results).joining.append(&mut joining);
        Ok(())
    }

    fn settle_component(
        &self,
        block: &TeamBlock,
        places: &[u32],
        survivors: &mut ComponentSurvivors<'_>,
        scratch: &mut VerifyScratch,
        joining: &mut Vec<JoiningRank>,
    ) -> io::Result<()> {
        let verifier = self.verifier;
        let is_alone = places.len() == 1;
        // A component of one rank neither reads survivors nor adds one.
        if !is_alone {
            survivors.clear();
        }
        for (number, &place) in places.iter().enumerate() {
            let rank = block.ranks.start + place;
            let mut within = None;
            // The first rank of a component has no earlier one there.
            if number > 0 {
                let before = |x| survivors.before(x);
                verifier.best(rank..rank + 1, scratch, before, |_, found| {
                    within = Some(found);
                })?;
            }
            let earlier = block.facts.earlier[place as usize];
            match verifier.closer(rank, earlier, within) {
                Some(found) => {
                    let visible = verifier.visible_similarity(rank, found.rank, scratch)?;
                    joining.push(JoiningRank {
                        rank,
                        found,
                        visible,
                    });
                }
                // No other rank in this block needs it; `apply` makes it a survivor for later blocks.
                None if is_alone => {}
                None => survivors.add(rank),
            }
        }
        Ok(())
    }

    /// Settles one block after another up to `end`, with all threads.
    pub(super) fn settle(
        &self,
        mut settled: SettledRanks,
        end: usize,
        scratch: &mut VerifyScratch,
        advance: &mut impl FnMut(&SettledRanks) -> io::Result<()>,
    ) -> io::Result<SettledRanks> {
        // Logged decisions end with a block, so after a resumption blocks may begin elsewhere than in the first run. Decisions do not depend on that.
        for start in (settled.count..end).step_by(self.plan.ranks) {
            let block = start as u32..end.min(start + self.plan.ranks) as u32;
            // In the results at first, where all threads may write; `settle_together` moves them into the block.
            lock(&self.results).facts = BlockFacts::new(block.len());
            write(&self.block).ranks = block.clone();
            self.all(TeamTask::Compare, scratch)?;
            match self.plan.threads {
                1 => self.settle_in_order(&block, scratch, &mut settled.decisions)?,
                _ => self.settle_together(&block, scratch, &mut settled.decisions)?,
            }
            let mut results = lock(&self.results);
            let compared = std::mem::take(&mut results.comparisons);
            settled.refused.extend(results.refused.drain(..));
            drop(results);
            settled.comparisons += compared;
            settled.compared_bytes += compared_bytes(self.verifier, &block, &compared);
            settled.count = block.end as usize;
            advance(&settled)?;
        }
        Ok(settled)
    }

    /// Settles a block by its components.
    fn settle_together(
        &self,
        ranks: &Range<u32>,
        scratch: &mut VerifyScratch,
        decisions: &mut DecisionTable,
    ) -> io::Result<()> {
        let mut facts = std::mem::take(&mut lock(&self.results).facts);
        facts.crowded.sort_unstable();
        facts.crowded.dedup();
        let components = facts.components(self.verifier, ranks);
        let connected = connected(&components);
        let mut block = write(&self.block);
        (block.facts, block.components) = (facts, components);
        // Pages that join a survivor are compared once more, by their visible texts.
        let is_quick = connected <= self.plan.alone && self.verifier.pages.is_none();
        if is_quick {
            block.task = TeamTask::Settle;
            self.next.store(0, Ordering::Relaxed);
            // `run_task` locks the block for reading.
            drop(block);
            self.run_task(scratch);
            lock(&self.results).failed.take().map_or(Ok(()), Err)?;
        } else {
            drop(block);
            self.all(TeamTask::Settle, scratch)?;
        }
        self.apply(ranks, decisions);
        Ok(())
    }

    /// Records the decisions on a block.
    fn apply(&self, ranks: &Range<u32>, decisions: &mut DecisionTable) {
        let mut joining = std::mem::take(&mut lock(&self.results).joining);
        // Threads finish in any order, but survivors must be added in the order of ranks.
        joining.sort_unstable_by_key(|joining| joining.rank);
        let mut survivors = write(&self.survivors);
        let mut joining = joining.into_iter().peekable();
        for rank in ranks.clone() {
            match joining.next_if(|next| next.rank == rank) {
                None => survivors.add(rank),
                Some(JoiningRank { found, visible, .. }) => {
                    let similarity = self.verifier.similarity(rank, found);
                    decisions.join(rank, found.rank, similarity, visible);
                }
            }
        }
    }

    /// Settles a block rank by rank.
    fn settle_in_order(
        &self,
        ranks: &Range<u32>,
        scratch: &mut VerifyScratch,
        decisions: &mut DecisionTable,
    ) -> io::Result<()> {
        let verifier = self.verifier;
        let facts = std::mem::take(&mut lock(&self.results).facts);
        let mut survivors = write(&self.survivors);
        // Survivors of earlier blocks were compared by all threads; only those of this block are missing.
        for (rank, earlier) in ranks.clone().zip(facts.earlier) {
            let mut within = None;
            let among = |x| SurvivorRange {
                survivors: &survivors,
                ranks: ranks.start..x,
            };
            verifier.best(rank..rank + 1, scratch, among, |_, found| {
                within = Some(found);
            })?;
            let Some(found) = verifier.closer(rank, earlier, within) else {
                survivors.add(rank);
                continue;
            };
            let visible = verifier.visible_similarity(rank, found.rank, scratch)?;
            decisions.join(rank, found.rank, verifier.similarity(rank, found), visible);
        }
        let mut results = lock(&self.results);
        let compared = std::mem::take(&mut scratch.comparisons);
        results.comparisons += only_compared(compared);
        results.refused.append(&mut scratch.buffers.refused);
        Ok(())
    }
}

/// Returns the approximate number of bytes of feature sets compared for a block: its own, and for each pair two sets of average length.
fn compared_bytes(
    verifier: &Verifier<'_>,
    block: &Range<u32>,
    comparisons: &ComparisonCounts,
) -> u64 {
    let sizes = &verifier.sizes[block.start as usize..block.end as usize];
    // A block has at least one rank, so the division below is safe.
    let own = 8 * sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
    // A visit reads one number.
    own + 2 * own / block.len() as u64 * comparisons.compared + 4 * comparisons.visits
}

/// Returns only the number of comparisons, because the number of members visited in a block depends on the number of threads.
fn only_compared(counts: ComparisonCounts) -> ComparisonCounts {
    ComparisonCounts {
        compared: counts.compared,
        ..ComparisonCounts::default()
    }
}
