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

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};

use crate::dedup::block_components::{
    BlockComponents, BlockFacts, BlockMembers, ComponentSurvivors,
};
use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership};
use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::group_windows::{ClassGroups, GroupError, WindowPlan};
use crate::dedup::verify::{CandidateMembers, VerifiedMatch, Verifier, VerifyScratch};
use crate::parallel::in_ranges;
use crate::spill::partitions::lock;

/// Decision on all classes.
pub(crate) struct ClassDecisions {
    /// By rank.
    pub(crate) decisions: DecisionTable,
    /// Counts of what was looked at for them.
    pub(crate) comparisons: ComparisonCounts,
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
    /// Ranks in large groups, one bit each: of the others only that they survived is noted.
    in_large: Vec<u64>,
    /// Lists of large groups, each in the place of its group. Pages of small groups are never touched.
    lists: Vec<u32>,
    /// Of each group, for strong members and for weak ones.
    lengths: Vec<[u32; 2]>,
}

/// Larger groups keep a list of their survivors.
const SMALL: usize = 32;

/// Bytes that [`settle`] will touch beside the groups of so many ranks, at most: lists of large groups, of which memory is given by pages, and
/// two bits a rank.
pub(crate) fn settling_bytes(groups: &CandidateGroups, ranks: usize, threads: usize) -> u64 {
    const PAGE: usize = 4096;
    let (postings, count) = (groups.members.len(), groups.len());
    let large = in_ranges(count, threads, |range| {
        let sizes = range.map(|group| groups.members(group as u32).len());
        sizes
            .filter(|&size| size > SMALL)
            .fold([0, 0], |[groups, members], size| {
                [groups + 1, members + size]
            })
    });
    let [large, members] = large.into_iter().fold([0, 0], |[a, b], [groups, members]| {
        [a + groups, b + members]
    });
    let lists = (4 * postings).min(4 * members + PAGE * large);
    let lengths = (8 * count).min(PAGE * large);
    (lists + lengths + ranks / 4) as u64
}

impl<'g> GroupSurvivors<'g> {
    fn new(groups: &'g CandidateGroups, ranks: usize, threads: usize) -> Self {
        let lists = vec![0; groups.members.len()];
        let lengths = vec![[0; 2]; groups.len()];
        let words: Vec<AtomicU64> = (0..ranks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        in_ranges(groups.len(), threads, |range| {
            let members = range.map(|group| groups.members(group as u32));
            for &rank in members.filter(|members| members.len() > SMALL).flatten() {
                // Bits are only set, and read when all threads have been joined.
                words[rank as usize / 64].fetch_or(1 << (rank % 64), Ordering::Relaxed);
            }
        });
        Self {
            groups,
            bits: vec![0; ranks.div_ceil(64)],
            in_large: words.into_iter().map(AtomicU64::into_inner).collect(),
            lists,
            lengths,
        }
    }

    fn has(&self, rank: u32) -> bool {
        self.bits[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    fn is_large(&self, group: u32) -> bool {
        self.groups.members(group).len() > SMALL
    }

    /// Survivors of a large group that are strong in it, ascending; and those that are weak.
    fn listed(&self, group: u32) -> [&[u32]; 2] {
        let start = self.groups.starts[group as usize] as usize;
        let weak = start + self.groups.strong_count(group);
        let [strong_length, weak_length] = self.lengths[group as usize];
        [
            &self.lists[start..start + strong_length as usize],
            &self.lists[weak..weak + weak_length as usize],
        ]
    }

    fn add(&mut self, rank: u32) {
        self.bits[rank as usize / 64] |= 1 << (rank % 64);
        // Nearly all ranks end here: their groups need not be walked.
        if self.in_large[rank as usize / 64] >> (rank % 64) & 1 == 0 {
            return;
        }
        let groups = self.groups;
        for GroupMembership { group, is_weak } in groups.of(rank) {
            if !self.is_large(group) {
                continue;
            }
            let start = groups.starts[group as usize] as usize;
            let [strong_length, weak_length] = &mut self.lengths[group as usize];
            let (first, length) = match is_weak {
                true => (start + groups.strong_count(group), weak_length),
                false => (start, strong_length),
            };
            // Ranks are added in ascending order, so lists ascend; and no list outgrows its place, for it has
            // no more than all members.
            self.lists[first + *length as usize] = rank;
            *length += 1;
        }
    }

    /// Survivors with ranks in a range that are candidates of a member.
    fn each(&self, membership: GroupMembership, ranks: &Range<u32>, mut visit: impl FnMut(u32)) {
        let Range { start, end } = *ranks;
        if self.is_large(membership.group) {
            let [strong, weak] = self.listed(membership.group);
            for listed in [strong, if membership.is_weak { &[] } else { weak }] {
                // Survivors of all earlier blocks are asked for far more often than those of one: no search for
                // these.
                let from = if start == 0 {
                    0
                } else {
                    listed.partition_point(|&rank| rank < start)
                };
                let later = listed[from..].iter().copied();
                later.take_while(|&rank| rank < end).for_each(&mut visit);
            }
            return;
        }
        for members in self.groups.partners(membership) {
            let earlier = members.iter().copied().take_while(|&rank| rank < end);
            earlier
                .filter(|&rank| rank >= start && self.has(rank))
                .for_each(&mut visit);
        }
    }
}

/// Survivors so far, by the groups of their texts and by those of pages.
struct Survivors<'g> {
    by_text: GroupSurvivors<'g>,
    by_page: Option<GroupSurvivors<'g>>,
}

impl<'g> Survivors<'g> {
    fn new(verifier: &Verifier<'g>, threads: usize) -> Self {
        let ranks = verifier.sizes.len();
        let of = |groups| GroupSurvivors::new(groups, ranks, threads);
        Self {
            by_text: of(verifier.groups),
            by_page: verifier.page_groups.map(of),
        }
    }

    fn add(&mut self, rank: u32) {
        self.by_text.add(rank);
        if let Some(by_page) = &mut self.by_page {
            by_page.add(rank);
        }
    }
}

/// Ranks that are in both ranges.
fn common(a: &Range<u32>, b: &Range<u32>) -> Range<u32> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Survivors with ranks in a range.
struct SurvivorRange<'s, 'g> {
    survivors: &'s Survivors<'g>,
    ranks: Range<u32>,
}

impl CandidateMembers for SurvivorRange<'_, '_> {
    fn each(&self, membership: GroupMembership, within: &Range<u32>, visit: impl FnMut(u32)) {
        let ranks = common(&self.ranks, within);
        self.survivors.by_text.each(membership, &ranks, visit);
    }

    fn each_by_page(
        &self,
        membership: GroupMembership,
        within: &Range<u32>,
        visit: impl FnMut(u32),
    ) {
        if let Some(by_page) = &self.survivors.by_page {
            by_page.each(membership, &common(&self.ranks, within), visit);
        }
    }

    fn leaves_out_weak(&self) -> bool {
        true
    }
}

/// All survivors before a rank that share a group with it, and of each group in which it is weak only the last one if so asked.
struct EarlierSurvivors<'s, 'g> {
    survivors: &'s Survivors<'g>,
    than: u32,
    last_only: bool,
}

impl CandidateMembers for EarlierSurvivors<'_, '_> {
    fn each(&self, membership: GroupMembership, within: &Range<u32>, mut visit: impl FnMut(u32)) {
        let by_text = &self.survivors.by_text;
        let strong = GroupMembership {
            is_weak: false,
            ..membership
        };
        if !self.last_only {
            by_text.each(strong, &common(&(0..self.than), within), visit);
        } else if membership.is_weak && by_text.is_large(membership.group) {
            let [_, weak] = by_text.listed(membership.group);
            // The last one before the rank: neighbours in the order of wanting are often of one kind.
            let before = weak.partition_point(|&rank| rank < self.than);
            let last = weak[..before].last().copied();
            last.filter(|last| within.contains(last))
                .into_iter()
                .for_each(&mut visit);
        }
    }

    fn each_by_page(&self, _: GroupMembership, _: &Range<u32>, _: impl FnMut(u32)) {}

    /// True where only the last ones are visited: else all shared groups are counted, as if there were no weak members.
    fn leaves_out_weak(&self) -> bool {
        self.last_only
    }
}

/// Ranks of a block.
const BLOCK: usize = 1024;

/// Ranks that a thread takes at a time.
const STRIDE: usize = 32;

/// Ranks that depend on each other in a block beyond which all threads settle it: one alone is done with fewer before the others have begun.
const FEW_CONNECTED: usize = 64;

/// Threads, and the sizes of the pieces that they work on.
#[derive(Clone, Copy)]
struct BlockPlan {
    threads: usize,
    /// Ranks of a block.
    ranks: usize,
    /// Ranks that depend on each other which one thread settles alone.
    alone: usize,
}

/// Settled ranks: the first ones of all.
#[derive(Clone, Default)]
pub(crate) struct SettledRanks {
    /// Number of ranks that are settled.
    pub(crate) count: usize,
    /// Decisions on all ranks; those that are not settled are kept so far.
    pub(crate) decisions: DecisionTable,
    /// Counts of what was looked at for them.
    pub(crate) comparisons: ComparisonCounts,
    /// Ranks that resemble a survivor by their main text, but not as pages; some more than once.
    pub(crate) refused: Vec<u32>,
    /// The same, found at the ends of windows: no log tells of them.
    refused_as_weak: Vec<u32>,
    /// Bytes of feature sets that were compared for those settled by this process, roughly.
    pub(crate) compared_bytes: u64,
}

impl SettledRanks {
    /// The first `fixed` of so many ranks, which survive whatever they resemble.
    pub(crate) fn fixed(fixed: usize, ranks: usize) -> Self {
        Self {
            count: fixed,
            decisions: DecisionTable::all_kept(ranks),
            ..Self::default()
        }
    }

    /// The decisions, once all ranks are settled.
    fn into_decisions(self) -> ClassDecisions {
        let Self {
            decisions,
            comparisons,
            mut refused,
            mut refused_as_weak,
            ..
        } = self;
        refused.append(&mut refused_as_weak);
        refused.sort_unstable();
        refused.dedup();
        // A rank may be refused by one survivor and join another.
        refused.retain(|&rank| decisions.is_kept(rank as usize));
        ClassDecisions {
            decisions,
            comparisons,
            kept_as_pages: refused.len() as u64,
        }
    }
}

impl BlockPlan {
    fn of_threads(threads: usize) -> Self {
        Self {
            threads,
            ranks: BLOCK,
            alone: FEW_CONNECTED,
        }
    }
}

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
        let survivors = settled.decisions.kept_bits(start);
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
        for scratch in others {
            scope.spawn(move || team.work(scratch));
        }
        let _leaving = Leaving(&team.meeting);
        let settled = team.settle(settled, end, own, advance);
        team.dismiss();
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

/// A place where threads wait for one another.
struct Meeting {
    threads: usize,
    state: Mutex<MeetingState>,
    moved: Condvar,
}

#[derive(Default)]
struct MeetingState {
    /// Threads that wait for the others.
    waiting: usize,
    /// Number of meetings that all came to.
    round: u64,
    /// True once a thread will not come any more.
    is_broken: bool,
}

impl Meeting {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Waits until all threads wait.
    fn wait(&self) {
        let mut state = lock(&self.state);
        let round = state.round;
        state.waiting += 1;
        if state.waiting == self.threads {
            state.waiting = 0;
            state.round += 1;
            self.moved.notify_all();
        }
        // The number of the round tells a real end from a spurious wake-up, and this meeting from the next.
        while state.round == round && !state.is_broken {
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        assert!(!state.is_broken, "another thread panicked");
    }
}

/// Tells the other threads if one of them panics: they would wait for ever.
struct Leaving<'m>(&'m Meeting);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).is_broken = true;
            self.0.moved.notify_all();
        }
    }
}

/// Task of all threads between two meetings.
#[derive(Clone, Copy, Default)]
enum TeamTask {
    /// Look at the ranks of the block.
    #[default]
    Look,
    /// Settle its components.
    Settle,
    /// Go home.
    Leave,
}

/// A rank that joins a survivor.
struct JoiningRank {
    /// Place of the rank in its block.
    place: u16,
    found: VerifiedMatch,
    visible: Option<f64>,
}

/// The block at hand.
#[derive(Default)]
struct TeamBlock {
    task: TeamTask,
    ranks: Range<u32>,
    facts: BlockFacts,
    components: BlockComponents,
}

/// Results of all threads, until the first one takes them.
#[derive(Default)]
struct TeamResults {
    facts: BlockFacts,
    joining: Vec<JoiningRank>,
    comparisons: ComparisonCounts,
    refused: Vec<u32>,
    failed: Option<io::Error>,
}

/// Threads that work on one block after another: all of them look at its ranks, then all settle its components.
struct BlockTeam<'v, 'g> {
    verifier: &'v Verifier<'g>,
    /// Those of earlier blocks. Whoever works on a block reads them; between two tasks the first thread alone has them, and the block.
    survivors: RwLock<Survivors<'g>>,
    block: RwLock<TeamBlock>,
    plan: BlockPlan,
    /// All threads meet here before a task, and behind it.
    meeting: Meeting,
    /// Next piece of the task to take.
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
    fn new(verifier: &'v Verifier<'g>, survivors: Survivors<'g>, plan: BlockPlan) -> Self {
        Self {
            verifier,
            survivors: RwLock::new(survivors),
            block: RwLock::default(),
            plan,
            meeting: Meeting::new(plan.threads),
            next: AtomicUsize::new(0),
            results: Mutex::default(),
        }
    }

    fn into_survivors(self) -> Survivors<'g> {
        self.survivors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one task after another, until there are no more.
    fn work(&self, scratch: &mut VerifyScratch) {
        let _leaving = Leaving(&self.meeting);
        loop {
            self.meeting.wait();
            if matches!(read(&self.block).task, TeamTask::Leave) {
                return;
            }
            self.take_part(scratch);
            self.meeting.wait();
        }
    }

    /// Sends the other threads home.
    fn dismiss(&self) {
        write(&self.block).task = TeamTask::Leave;
        self.meeting.wait();
    }

    /// Does a task with all threads.
    fn all(&self, task: TeamTask, scratch: &mut VerifyScratch) -> io::Result<()> {
        write(&self.block).task = task;
        self.next.store(0, Ordering::Relaxed);
        // Whoever comes out of a meeting sees what was done before it.
        self.meeting.wait();
        self.take_part(scratch);
        self.meeting.wait();
        lock(&self.results).failed.take().map_or(Ok(()), Err)
    }

    /// Takes pieces of the task at hand until there are no more; the first error is kept for the first thread.
    fn take_part(&self, scratch: &mut VerifyScratch) {
        // Locks are taken in one order everywhere: the block, the survivors, the results.
        let block = read(&self.block);
        let done = match block.task {
            TeamTask::Look => self.look(&block, scratch),
            TeamTask::Settle => self.settle_components(&block, scratch),
            TeamTask::Leave => Ok(()),
        };
        let mut results = lock(&self.results);
        results
            .comparisons
            .add(&std::mem::take(&mut scratch.comparisons));
        results.refused.append(&mut scratch.buffers.refused);
        if let Err(error) = done {
            // The other threads go on to the meeting, or the first one would wait there for ever.
            results.failed.get_or_insert(error);
        }
    }

    /// Looks at ranks of the block.
    fn look(&self, block: &TeamBlock, scratch: &mut VerifyScratch) -> io::Result<()> {
        let survivors = read(&self.survivors);
        let size = block.ranks.len();
        loop {
            let from = self.next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= size {
                return Ok(());
            }
            let start = block.ranks.start + from as u32;
            let stride = start..block.ranks.end.min(start + STRIDE as u32);
            self.look_at(&survivors, &block.ranks, stride, scratch)?;
        }
    }

    /// The best survivors of earlier blocks for some ranks of a block, and which of the block they may resemble.
    fn look_at(
        &self,
        survivors: &Survivors<'_>,
        block: &Range<u32>,
        stride: Range<u32>,
        scratch: &mut VerifyScratch,
    ) -> io::Result<()> {
        let among = |_| SurvivorRange {
            survivors,
            // Of the block itself nobody has been decided on yet.
            ranks: 0..block.start,
        };
        let place = |rank: u32| (rank - block.start) as u16;
        let mut closest = Vec::new();
        self.verifier
            .best(stride.clone(), scratch, among, |x, best| {
                closest.push((x, best));
            })?;
        let crowded = RefCell::default();
        let mut edges = Vec::new();
        // A single thread settles all of them as fast as it finds out about them.
        if self.plan.threads > 1 {
            let before = |x| BlockMembers {
                groups: self.verifier.groups,
                page_groups: self.verifier.page_groups,
                ranks: block.start..x,
                crowded: &crowded,
            };
            // Places fit 16 bits because a block has 1024 ranks.
            let edge = |x, y| edges.push([x, y].map(place));
            self.verifier.candidates(stride, scratch, before, edge);
        }
        let mut crowded = crowded.into_inner();
        crowded.sort_unstable();
        crowded.dedup();
        let facts = &mut lock(&self.results).facts;
        for (x, best) in closest {
            // Each rank is in one stride only, so no thread overwrites what another found.
            facts.earlier[usize::from(place(x))] = Some(best);
        }
        facts.edges.append(&mut edges);
        facts.crowded.append(&mut crowded);
        Ok(())
    }

    /// Settles components of the block.
    fn settle_components(&self, block: &TeamBlock, scratch: &mut VerifyScratch) -> io::Result<()> {
        let counted = scratch.comparisons;
        let mut survivors =
            ComponentSurvivors::new(self.verifier, block.ranks.clone(), &block.facts.crowded);
        let mut joining = Vec::new();
        let components = block.components.len();
        loop {
            let from = self.next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= components {
                break;
            }
            for component in from..components.min(from + STRIDE) {
                let places = block.components.get(component);
                self.settle_component(block, places, &mut survivors, scratch, &mut joining)?;
            }
        }
        scratch.comparisons = only_compared(counted, scratch.comparisons);
        lock(&self.results).joining.append(&mut joining);
        Ok(())
    }

    fn settle_component(
        &self,
        block: &TeamBlock,
        places: &[u16],
        survivors: &mut ComponentSurvivors<'_>,
        scratch: &mut VerifyScratch,
        joining: &mut Vec<JoiningRank>,
    ) -> io::Result<()> {
        let verifier = self.verifier;
        let is_alone = places.len() == 1;
        if !is_alone {
            survivors.clear();
        }
        for (number, &place) in places.iter().enumerate() {
            let rank = block.ranks.start + u32::from(place);
            let mut within = None;
            // The first of a component has nobody before it there.
            if number > 0 {
                let before = |x| survivors.before(x);
                verifier.best(rank..rank + 1, scratch, before, |_, found| {
                    within = Some(found);
                })?;
            }
            let earlier = block.facts.earlier[usize::from(place)];
            match verifier.closer(rank, earlier, within) {
                Some(found) => {
                    let visible = verifier.visible_similarity(rank, found.rank, scratch)?;
                    joining.push(JoiningRank {
                        place,
                        found,
                        visible,
                    });
                }
                // Nobody else asks for it in this block; `apply` makes it a survivor for later ones.
                None if is_alone => {}
                None => survivors.add(rank),
            }
        }
        Ok(())
    }

    /// Settles one block after another up to `end`, with all threads.
    fn settle(
        &self,
        mut settled: SettledRanks,
        end: usize,
        scratch: &mut VerifyScratch,
        advance: &mut impl FnMut(&SettledRanks) -> io::Result<()>,
    ) -> io::Result<SettledRanks> {
        // Logged decisions end with a block, so blocks after a resumption may begin elsewhere than in the first
        // run: decisions do not depend on that.
        for start in (settled.count..end).step_by(self.plan.ranks) {
            let block = start as u32..end.min(start + self.plan.ranks) as u32;
            lock(&self.results).facts.earlier = vec![None; block.len()];
            write(&self.block).ranks = block.clone();
            self.all(TeamTask::Look, scratch)?;
            match self.plan.threads {
                1 => self.settle_in_order(&block, scratch, &mut settled.decisions)?,
                _ => self.settle_together(&block, scratch, &mut settled.decisions)?,
            }
            let mut results = lock(&self.results);
            let compared = std::mem::take(&mut results.comparisons);
            settled.refused.append(&mut results.refused);
            drop(results);
            settled.comparisons.add(&compared);
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
        let components = BlockComponents::new(self.verifier, ranks, &facts);
        let connected = components.connected();
        let mut block = write(&self.block);
        (block.facts, block.components) = (facts, components);
        // Pages that join are compared once more, by all that a reader sees.
        let is_quick = connected <= self.plan.alone && self.verifier.pages.is_none();
        if is_quick {
            block.task = TeamTask::Settle;
            self.next.store(0, Ordering::Relaxed);
            drop(block);
            self.take_part(scratch);
            lock(&self.results).failed.take().map_or(Ok(()), Err)?;
        } else {
            drop(block);
            self.all(TeamTask::Settle, scratch)?;
        }
        self.apply(ranks, decisions);
        Ok(())
    }

    /// Notes the decisions on a block.
    fn apply(&self, ranks: &Range<u32>, decisions: &mut DecisionTable) {
        let mut joining = std::mem::take(&mut lock(&self.results).joining);
        // Threads came in any order; survivors must be added in that of ranks.
        joining.sort_unstable_by_key(|joining| joining.place);
        let mut survivors = write(&self.survivors);
        let mut joining = joining.into_iter().peekable();
        for rank in ranks.clone() {
            let is_next = |next: &JoiningRank| u32::from(next.place) == rank - ranks.start;
            match joining.next_if(is_next) {
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
        let counted = scratch.comparisons;
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
        results.comparisons.add(&only_compared(
            counted,
            std::mem::take(&mut scratch.comparisons),
        ));
        results.refused.append(&mut scratch.buffers.refused);
        Ok(())
    }
}

/// Bytes of feature sets that were compared for a block, roughly: its own, and for each pair two that are as long on average.
fn compared_bytes(
    verifier: &Verifier<'_>,
    block: &Range<u32>,
    comparisons: &ComparisonCounts,
) -> u64 {
    let sizes = &verifier.sizes[block.start as usize..block.end as usize];
    let own = 8 * sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
    // A visit is a look at a number.
    own + 2 * own / block.len() as u64 * comparisons.compared + 4 * comparisons.visits
}

/// The counts with what was compared since: how many members of a block were looked at depends on the number of threads.
fn only_compared(before: ComparisonCounts, now: ComparisonCounts) -> ComparisonCounts {
    ComparisonCounts {
        compared: now.compared,
        ..before
    }
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
    let size = ranks.len();
    let next = AtomicUsize::new(0);
    let work = |scratch: &mut VerifyScratch| -> io::Result<()> {
        loop {
            let from = next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= size {
                return Ok(());
            }
            let stride = ranks.start + from as u32..ranks.start + size.min(from + STRIDE) as u32;
            stride_work(stride, scratch)?;
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
    })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::class_decision::ClassDecision;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};

    /// The definition, one rank after another: the most similar earlier survivor, the smaller rank of equals.
    fn slow(collection: &TestCollection, fixed: usize) -> Vec<ClassDecision> {
        let mut decisions: Vec<ClassDecision> = Vec::new();
        for rank in 0..collection.sets.len() as u32 {
            let mut best = None;
            for earlier in
                (0..rank).filter(|&earlier| decisions[earlier as usize] == ClassDecision::Survives)
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
            decisions.push(match best {
                Some((similarity, survivor)) if rank as usize >= fixed => ClassDecision::Joins {
                    survivor,
                    similarity,
                    visible: None,
                },
                _ => ClassDecision::Survives,
            });
        }
        decisions
    }

    fn classes(decisions: &DecisionTable) -> Vec<ClassDecision> {
        let ranks = 0..decisions.len();
        ranks.map(|rank| decisions.class(rank)).collect()
    }

    fn settled(collection: &TestCollection, fixed: usize, threads: usize) -> Vec<ClassDecision> {
        let settled = settle(&collection.verifier(), fixed, threads, |_| Ok(())).unwrap();
        classes(&settled.decisions)
    }

    /// Families in which many sets share all their groups, beside sets of a small pool.
    fn families() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let member = (0..4_u64, prop::collection::btree_set(0..12_u64, 0..4));
        let member = member.prop_map(|(family, own)| {
            let mut set: Vec<u64> = (0..8).map(|f| family * 10 + f).collect();
            set.extend(own.iter().map(|f| 100 + f));
            set
        });
        prop::collection::vec(member, 60..200)
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]

        #[test]
        fn groups_on_disk_decide_and_count_as_those_in_memory(
            sets in prop_oneof![feature_sets(120), families()],
            threshold in thresholds(),
            part_fixed in 0.0..1.0_f64,
            threads in 1..4_usize,
            ranks in prop::sample::select(vec![1_usize, 2, 7, 40, 150]),
            weak in prop::option::of(0..40_usize),
            part in 0.0..1.1_f64,
            resumed_at in 0..200_usize,
            by_prefix in any::<bool>(),
        ) {
            let fixed = (sets.len() as f64 * part_fixed.powi(4)) as usize;
            let mut collection = match by_prefix {
                true => TestCollection::by_prefix(sets, threshold),
                false => TestCollection::by_any_feature(sets, threshold),
            };
            if let Some(bound) = weak {
                collection.weaken(bound, |rank| rank % 3 > 0);
            }
            let verifier = collection.verifier();
            let plan = BlockPlan { threads, ranks, alone: 5 };
            let begin = SettledRanks::fixed(fixed, verifier.sizes.len());
            let mut stopped = begin.clone();
            let range = SettlingRange { fixed, ranks: fixed..verifier.sizes.len() };
            let expected = settle_window(&verifier, range, begin.clone(), plan, &mut |settled: &SettledRanks| {
                if settled.count <= resumed_at { stopped = settled.clone() }
                Ok(())
            });
            let expected = expected.unwrap().into_decisions();
            let groups = collection.groups_on_disk();
            // As little as will do, and anything up to all.
            for more in [0, (part * part * 20_000.0) as u64] {
                for settled in [&begin, &stopped] {
                    let plan = LittlePlan { threads, ranks, more };
                    let found = settle_in_little(&verifier, &groups, settled, fixed, plan);
                    prop_assert_eq!(classes(&found.decisions), classes(&expected.decisions));
                    prop_assert_eq!(found.comparisons, expected.comparisons);
                    prop_assert_eq!(found.kept_as_pages, expected.kept_as_pages);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn components_settled_by_any_number_of_threads_are_those_of_the_plain_sequence(
            sets in prop_oneof![feature_sets(120), families()],
            threshold in thresholds(),
            part_fixed in 0.0..1.0_f64,
            threads in 1..9_usize,
            ranks in prop::sample::select(vec![1_usize, 2, 7, 40, 150]),
            alone in prop::sample::select(vec![0_usize, 5, 1000]),
            resumed_at in 0..200_usize,
            by_prefix in any::<bool>(),
        ) {
            let fixed = (sets.len() as f64 * part_fixed.powi(4)) as usize;
            let collection = match by_prefix {
                true => TestCollection::by_prefix(sets, threshold),
                false => TestCollection::by_any_feature(sets, threshold),
            };
            let verifier = collection.verifier();
            let begin = SettledRanks::fixed(fixed, verifier.sizes.len());
            let mut stopped = begin.clone();
            let with = |threads, settled, keep: &mut dyn FnMut(&SettledRanks)| {
                let plan = BlockPlan { threads, ranks, alone };
                let range = SettlingRange { fixed, ranks: fixed..verifier.sizes.len() };
                settle_window(&verifier, range, settled, plan, &mut |settled| { keep(settled); Ok(()) }).unwrap().into_decisions()
            };
            let plain = with(1, begin.clone(), &mut |settled| if settled.count <= resumed_at { stopped = settled.clone() });
            prop_assert_eq!(classes(&plain.decisions), slow(&collection, fixed));
            for settled in [begin, stopped] {
                let found = with(threads, settled, &mut |_| ());
                prop_assert_eq!(classes(&found.decisions), classes(&plain.decisions));
                prop_assert_eq!(found.comparisons, plain.comparisons);
                prop_assert_eq!(found.kept_as_pages, plain.kept_as_pages);
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
        let across_blocks = |(rank, decision): (usize, &ClassDecision)| matches!(decision, ClassDecision::Joins { survivor, .. } if rank / 1024 > *survivor as usize / 1024);
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
