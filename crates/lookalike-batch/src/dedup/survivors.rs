//! Choice of survivors: the star clustering that promise 4 rests on, streaming.
//!
//! Documents are taken from the most to the least wanted. One that is similar to an earlier survivor is removed and
//! joins the most similar one (the more wanted one of equals); any other survives. So every removed document has a
//! verified similarity to a document that is kept, however long the chains of small changes are (marin#6854 is the
//! story of a tool that followed them), and a family of n documents costs n comparisons with its survivor instead of
//! the n^2 of all pairs. The slow definition is [`lookalike::cluster::survivors`]; tests compare the two.
//!
//! Work goes in blocks of ranks: first all threads compare the block with the survivors of earlier blocks, and see which ranks may resemble
//! an earlier one of the block. Then one thread settles the block in order, and looks at the candidates of these. The result is that of the plain
//! sequence.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};

use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership};
use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
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

/// Members of a block before a rank, whether they survive or not. Where a group has many of them they are left out, and the rank goes to `crowded`:
/// in a large family all would be candidates of all.
struct BlockMembers<'g> {
    groups: &'g CandidateGroups,
    page_groups: Option<&'g CandidateGroups>,
    ranks: Range<u32>,
    crowded: &'g RefCell<Vec<u32>>,
}

impl BlockMembers<'_> {
    fn visit(
        &self,
        groups: &CandidateGroups,
        membership: GroupMembership,
        within: &Range<u32>,
        visit: &mut impl FnMut(u32),
    ) {
        let Range { start, end } = self.ranks;
        for members in groups.partners(membership) {
            let from = members.partition_point(|&rank| rank < start);
            let later = &members[from..];
            let all = &later[..later.partition_point(|&rank| rank < end)];
            match all.len() > SMALL {
                true => self.crowded.borrow_mut().push(end),
                false => {
                    let wanted = all.iter().copied().filter(|rank| within.contains(rank));
                    wanted.for_each(&mut *visit);
                }
            }
        }
    }
}

impl CandidateMembers for BlockMembers<'_> {
    fn each(&self, membership: GroupMembership, within: &Range<u32>, mut visit: impl FnMut(u32)) {
        self.visit(self.groups, membership, within, &mut visit);
    }

    fn each_by_page(
        &self,
        membership: GroupMembership,
        within: &Range<u32>,
        mut visit: impl FnMut(u32),
    ) {
        if let Some(groups) = self.page_groups {
            self.visit(groups, membership, within, &mut visit);
        }
    }

    fn leaves_out_weak(&self) -> bool {
        true
    }
}

/// Facts about a rank that all threads find out before its block is settled.
#[derive(Clone, Copy, Default)]
struct BlockRank {
    /// The closest of the survivors of earlier blocks.
    earlier: Option<VerifiedMatch>,
    /// False if it resembles no earlier rank of its block.
    may_resemble: bool,
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

/// Settles every rank. The first `fixed` ranks survive whatever they resemble. `advance` hears of each block, and its error ends the work.
pub(crate) fn settle(
    verifier: &Verifier<'_>,
    fixed: usize,
    threads: usize,
    mut advance: impl FnMut(usize) -> io::Result<()>,
) -> io::Result<ClassDecisions> {
    let mut scratches: Vec<VerifyScratch> =
        (0..threads).map(|_| VerifyScratch::default()).collect();
    let mut survivors = Survivors::new(verifier, threads);
    (0..fixed as u32).for_each(|rank| survivors.add(rank));
    let (own, others) = scratches
        .split_first_mut()
        .expect("a job has at least one thread");
    let team = BlockTeam::new(verifier, survivors, threads);
    let decisions = std::thread::scope(|scope| {
        let team = &team;
        for scratch in others {
            scope.spawn(move || team.work(scratch));
        }
        let _leaving = Leaving(&team.meeting);
        let settled = team.settle(fixed, own, &mut advance);
        team.dismiss();
        settled
    })?;
    let survivors = team.into_survivors();
    let mut comparisons = ComparisonCounts::default();
    scratches
        .iter()
        .for_each(|scratch| comparisons.add(&scratch.comparisons));
    look_for_refused(verifier, &survivors, fixed, &mut scratches)?;
    let refused = scratches.into_iter().flat_map(|scratch| scratch.refused);
    let mut refused: Vec<u32> = refused.collect();
    refused.sort_unstable();
    refused.dedup();
    refused.retain(|&rank| decisions.is_kept(rank as usize));
    Ok(ClassDecisions {
        decisions,
        comparisons,
        kept_as_pages: refused.len() as u64,
    })
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

/// Threads that work on one block after another: all of them look at its ranks, then the first one settles it while the others wait.
struct BlockTeam<'v, 'g> {
    verifier: &'v Verifier<'g>,
    survivors: RwLock<Survivors<'g>>,
    threads: usize,
    /// All threads meet here before a block, and behind it.
    meeting: Meeting,
    is_dismissed: AtomicBool,
    /// First rank of the block, and the next one to take.
    start: AtomicU32,
    next: AtomicUsize,
    found: Mutex<Vec<BlockRank>>,
    failed: Mutex<Option<io::Error>>,
}

impl<'v, 'g> BlockTeam<'v, 'g> {
    fn new(verifier: &'v Verifier<'g>, survivors: Survivors<'g>, threads: usize) -> Self {
        Self {
            verifier,
            survivors: RwLock::new(survivors),
            threads,
            meeting: Meeting::new(threads),
            is_dismissed: AtomicBool::new(false),
            start: AtomicU32::new(0),
            next: AtomicUsize::new(0),
            found: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    fn into_survivors(self) -> Survivors<'g> {
        self.survivors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The block that begins with a rank.
    fn block(&self, start: u32) -> Range<u32> {
        let end = self.verifier.sizes.len().min(start as usize + BLOCK);
        start..end as u32
    }

    /// Looks at each block until there are no more.
    fn work(&self, scratch: &mut VerifyScratch) {
        let _leaving = Leaving(&self.meeting);
        loop {
            self.meeting.wait();
            if self.is_dismissed.load(Ordering::Relaxed) {
                return;
            }
            self.look(scratch);
            self.meeting.wait();
        }
    }

    /// Sends the other threads home.
    fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Relaxed);
        self.meeting.wait();
    }

    /// Looks at ranks of the block at hand, and keeps the first error for the thread that settles it.
    fn look(&self, scratch: &mut VerifyScratch) {
        let survivors = self
            .survivors
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let block = self.block(self.start.load(Ordering::Relaxed));
        loop {
            let from = self.next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= block.len() {
                return;
            }
            let start = block.start + from as u32;
            let stride = start..block.end.min(start + STRIDE as u32);
            if let Err(error) = self.look_at(&survivors, &block, stride, scratch) {
                lock(&self.failed).get_or_insert(error);
                return;
            }
        }
    }

    /// The best survivors of earlier blocks for some ranks of a block, and whether there may be one in the block.
    fn look_at(
        &self,
        survivors: &Survivors<'_>,
        block: &Range<u32>,
        stride: Range<u32>,
        scratch: &mut VerifyScratch,
    ) -> io::Result<()> {
        let among = |_| SurvivorRange {
            survivors,
            ranks: 0..block.start,
        };
        let place = |x: u32| (x - block.start) as usize;
        let mut closest = Vec::new();
        self.verifier
            .best(stride.clone(), scratch, among, |x, best| {
                closest.push((x, best));
            })?;
        // A single thread settles all of them as fast as it finds out about them.
        let may_resemble = match self.threads {
            1 => stride.collect(),
            _ => with_candidates(self.verifier, block.start, stride, scratch),
        };
        let mut found = lock(&self.found);
        for (x, best) in closest {
            found[place(x)].earlier = Some(best);
        }
        for x in may_resemble {
            found[place(x)].may_resemble = true;
        }
        Ok(())
    }

    /// Settles one block after another, with all threads.
    fn settle(
        &self,
        fixed: usize,
        scratch: &mut VerifyScratch,
        advance: &mut impl FnMut(usize) -> io::Result<()>,
    ) -> io::Result<DecisionTable> {
        let ranks = self.verifier.sizes.len();
        let mut decisions = DecisionTable::all_kept(ranks);
        for start in (fixed..ranks).step_by(BLOCK) {
            let block = self.block(start as u32);
            self.start.store(block.start, Ordering::Relaxed);
            self.next.store(0, Ordering::Relaxed);
            *lock(&self.found) = vec![BlockRank::default(); block.len()];
            // Whoever comes out of a meeting sees what was done before it.
            self.meeting.wait();
            self.look(scratch);
            self.meeting.wait();
            if let Some(error) = lock(&self.failed).take() {
                return Err(error);
            }
            let found = std::mem::take(&mut *lock(&self.found));
            self.settle_block(block.start, &found, scratch, &mut decisions)?;
            advance(block.end as usize)?;
        }
        Ok(decisions)
    }

    fn settle_block(
        &self,
        start: u32,
        found: &[BlockRank],
        scratch: &mut VerifyScratch,
        decisions: &mut DecisionTable,
    ) -> io::Result<()> {
        let verifier = self.verifier;
        let mut survivors = self
            .survivors
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let counted = scratch.comparisons;
        for (rank, found) in (start..).zip(found) {
            let mut within = None;
            if found.may_resemble {
                let among = |x| SurvivorRange {
                    survivors: &survivors,
                    ranks: start..x,
                };
                verifier.best(rank..rank + 1, scratch, among, |_, found| {
                    within = Some(found);
                })?;
            }
            let Some(found) = verifier.closer(rank, found.earlier, within) else {
                survivors.add(rank);
                continue;
            };
            let visible = verifier.visible_similarity(rank, found.rank, scratch)?;
            decisions.join(rank, found.rank, verifier.similarity(rank, found), visible);
        }
        // How many members of the block were looked at depends on the number of threads.
        let within = &mut scratch.comparisons;
        *within = ComparisonCounts {
            compared: within.compared,
            ..counted
        };
        Ok(())
    }
}

/// Ranks that may resemble an earlier one of their block, some of them more than once.
fn with_candidates(
    verifier: &Verifier<'_>,
    start: u32,
    ranks: Range<u32>,
    scratch: &mut VerifyScratch,
) -> Vec<u32> {
    let crowded = RefCell::new(Vec::new());
    let before = |x| BlockMembers {
        groups: verifier.groups,
        page_groups: verifier.page_groups,
        ranks: start..x,
        crowded: &crowded,
    };
    let mut found = Vec::new();
    verifier.candidates(ranks, scratch, before, |x| found.push(x));
    found.append(&mut crowded.borrow_mut());
    found
}

/// Notes the survivors that resemble an earlier one by their main text, where both are weak members of a group: such pairs are
/// not compared while survivors are chosen, for they are not near-duplicates as pages.
fn look_for_refused(
    verifier: &Verifier<'_>,
    survivors: &Survivors<'_>,
    fixed: usize,
    scratches: &mut [VerifyScratch],
) -> io::Result<()> {
    if verifier.page_groups.is_none() {
        return Ok(());
    }
    let ranks = fixed as u32..verifier.sizes.len() as u32;
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

    fn settled(collection: &TestCollection, fixed: usize, threads: usize) -> Vec<ClassDecision> {
        let settled = settle(&collection.verifier(), fixed, threads, |_| Ok(())).unwrap();
        let decisions = settled.decisions;
        (0..decisions.len())
            .map(|rank| decisions.class(rank))
            .collect()
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
