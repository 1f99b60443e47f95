//! Survivors so far, by the groups that they are in, as candidates for later ranks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership};
use crate::dedup::verify::{CandidateMembers, Verifier};
use crate::parallel::in_ranges;
use crate::spill::table_column::TableColumn;

/// Survivors so far, by rank and by group.
///
/// Most groups are small: there the members are looked at and asked whether they survived, one bit each, which stay
/// in cache. A family of thousands would be walked again and again; groups beyond [`SMALL`] keep a list of their
/// survivors.
pub(super) struct GroupSurvivors<'g> {
    groups: &'g CandidateGroups,
    bits: TableColumn<u64>,
    /// Ranks in large groups, one bit each: of the others only that they survived is noted.
    in_large: TableColumn<u64>,
    /// Lists of large groups, each in the place of its group. Pages of small groups are never touched.
    lists: Vec<u32>,
    /// Of each group, for strong members and for weak ones.
    lengths: Vec<[u32; 2]>,
}

/// Larger groups keep a list of their survivors.
const SMALL: usize = 32;

/// Bytes that [`settle`](super::settle) will touch beside the groups of so many ranks, at most: lists of large groups, of which memory is given by pages.
pub(crate) fn settling_bytes(groups: &CandidateGroups, threads: usize) -> u64 {
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
    (lists + lengths) as u64
}

impl<'g> GroupSurvivors<'g> {
    fn new(groups: &'g CandidateGroups, ranks: usize, threads: usize) -> Self {
        let lists = vec![0; groups.members.len()];
        let lengths = vec![[0; 2]; groups.len()];
        let words: TableColumn<AtomicU64> = TableColumn::zeroed(ranks.div_ceil(64));
        in_ranges(groups.len(), threads, |range| {
            let members = range.map(|group| groups.members(group as u32));
            for &rank in members.filter(|members| members.len() > SMALL).flatten() {
                // Bits are only set, and read when all threads have been joined.
                words[rank as usize / 64].fetch_or(1 << (rank % 64), Ordering::Relaxed);
            }
        });
        Self {
            groups,
            bits: TableColumn::zeroed(ranks.div_ceil(64)),
            in_large: words.into_numbers(),
            lists,
            lengths,
        }
    }

    pub(super) fn has(&self, rank: u32) -> bool {
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
pub(super) struct Survivors<'g> {
    pub(super) by_text: GroupSurvivors<'g>,
    by_page: Option<GroupSurvivors<'g>>,
}

impl<'g> Survivors<'g> {
    pub(super) fn new(verifier: &Verifier<'g>, threads: usize) -> Self {
        let ranks = verifier.sizes.len();
        let of = |groups| GroupSurvivors::new(groups, ranks, threads);
        Self {
            by_text: of(verifier.groups),
            by_page: verifier.page_groups.map(of),
        }
    }

    pub(super) fn add(&mut self, rank: u32) {
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
pub(super) struct SurvivorRange<'s, 'g> {
    pub(super) survivors: &'s Survivors<'g>,
    pub(super) ranks: Range<u32>,
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
pub(super) struct EarlierSurvivors<'s, 'g> {
    pub(super) survivors: &'s Survivors<'g>,
    pub(super) than: u32,
    pub(super) last_only: bool,
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
