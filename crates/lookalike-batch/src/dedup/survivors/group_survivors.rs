//! The survivors so far, by the groups that they are in, as candidates for later ranks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership};
use crate::dedup::verify::{CandidateMembers, GroupKind, Verifier, VisitedGroup};
use crate::parallel::in_ranges;
use crate::spill::table_column::TableColumn;

/// The survivors so far, by rank and by group.
///
/// Most groups are small: their members are tested for survival, with one bit per rank, and these bits stay in cache. Groups of thousands would be
/// read again and again, so groups of more than [`SMALL`] members keep a list of their survivors.
pub(super) struct GroupSurvivors<'g> {
    groups: &'g CandidateGroups,
    bits: TableColumn<u64>,
    /// One bit per rank, set if it is in a large group. For other survivors only their bit is set.
    in_large: TableColumn<u64>,
    /// Lists of large groups, each at the position of its group. Memory pages with only small groups are never accessed.
    lists: Vec<u32>,
    /// For each group, the number of listed strong and weak members.
    lengths: Vec<[u32; 2]>,
}

/// Number of members above which a group keeps a list of its survivors.
const SMALL: usize = 32;

/// Returns the maximum number of bytes that [`settle`](super::settle) uses besides the groups: lists of large groups, whose memory is allocated in
/// pages.
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
    // A list may touch one page more than its bytes need, but all lists together touch no more than the whole array.
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
                // Bits are only set, and read after all threads have been joined.
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

    #[inline]
    pub(super) fn has(&self, rank: u32) -> bool {
        self.bits[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    #[inline]
    fn is_large(&self, group: u32) -> bool {
        self.groups.members(group).len() > SMALL
    }

    /// Returns the survivors of a large group that are strong in it, and those that are weak, both ascending.
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
        // Nearly all ranks end here, without a pass over their groups.
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
            // Ranks are added in ascending order, so lists ascend. No list outgrows its place, because it has at most all members.
            self.lists[first + *length as usize] = rank;
            *length += 1;
        }
    }

    /// Visits the survivors with ranks in a range that are candidates of a member.
    fn for_each(
        &self,
        membership: GroupMembership,
        ranks: &Range<u32>,
        mut visit: impl FnMut(u32),
    ) {
        let Range { start, end } = *ranks;
        if self.is_large(membership.group) {
            let [strong, weak] = self.listed(membership.group);
            for listed in [strong, if membership.is_weak { &[] } else { weak }] {
                // All earlier blocks are queried far more often than a single one, so skip the search for these.
                let from = if start == 0 {
                    0
                } else {
                    listed.partition_point(|&rank| rank < start)
                };
                // Plain loops: the adapters of iterators are not inlined into other codegen units.
                for &rank in &listed[from..] {
                    if rank >= end {
                        break;
                    }
                    visit(rank);
                }
            }
            return;
        }
        for members in self.groups.partners(membership) {
            for &rank in members {
                if rank >= end {
                    break;
                }
                if rank >= start && self.has(rank) {
                    visit(rank);
                }
            }
        }
    }
}

/// The survivors so far, by the groups of their texts and by those of pages.
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

/// Returns the intersection of two ranges.
fn common(a: &Range<u32>, b: &Range<u32>) -> Range<u32> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// The survivors with ranks in a range.
pub(super) struct SurvivorRange<'s, 'g> {
    pub(super) survivors: &'s Survivors<'g>,
    pub(super) ranks: Range<u32>,
}

impl CandidateMembers for SurvivorRange<'_, '_> {
    fn for_each(&self, group: VisitedGroup<'_>, within: &Range<u32>, visit: impl FnMut(u32)) {
        let Survivors { by_text, by_page } = self.survivors;
        if let Some(survivors) = group.kind.of(by_text, by_page.as_ref()) {
            survivors.for_each(group.membership, &common(&self.ranks, within), visit);
        }
    }
}

/// All survivors before a rank that share a group with it. If `last_only`, only the last one of each group in which the rank is weak.
pub(super) struct EarlierSurvivors<'s, 'g> {
    pub(super) survivors: &'s Survivors<'g>,
    pub(super) than: u32,
    pub(super) last_only: bool,
}

impl CandidateMembers for EarlierSurvivors<'_, '_> {
    fn for_each(&self, group: VisitedGroup<'_>, within: &Range<u32>, mut visit: impl FnMut(u32)) {
        if group.kind == GroupKind::Page {
            return;
        }
        let membership = group.membership;
        let by_text = &self.survivors.by_text;
        // As if the rank were strong, because the pairs of two weak members are those that were not compared before.
        let strong = GroupMembership {
            is_weak: false,
            ..membership
        };
        if !self.last_only {
            by_text.for_each(strong, &common(&(0..self.than), within), visit);
        } else if membership.is_weak && by_text.is_large(membership.group) {
            let [_, weak] = by_text.listed(membership.group);
            // The last one before the rank, because neighbours in the order of preference are often alike.
            let before = weak.partition_point(|&rank| rank < self.than);
            let last = weak[..before].last().copied();
            last.filter(|last| within.contains(last))
                .into_iter()
                .for_each(&mut visit);
        }
    }

    /// Returns true if only the last ones are visited. Otherwise all shared groups are counted, as if there were no weak members.
    fn excludes_weak(&self) -> bool {
        self.last_only
    }
}
