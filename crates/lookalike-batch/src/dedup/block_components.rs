//! Components of a block of ranks that can be settled at the same time.
//!
//! The decision on a rank depends only on earlier ranks that it may resemble. If those in its block are known, the
//! block divides into components of ranks that may resemble each other; one thread settles each component in the order of its ranks, and
//! no thread waits for another. The decisions are those of the plain sequence.

use std::collections::HashMap;
use std::ops::Range;

use lookalike::cluster::Components;

use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership, ascending_within};
use crate::dedup::verify::{CandidateMembers, GroupKind, VerifiedMatch, Verifier, VisitedGroup};
use crate::spill::list_table::ListTable;

/// Maximum number of members that a group in one block may have to be examined one by one. In larger groups all members are connected, and their
/// survivors are listed.
pub(crate) const MAX_PAIRWISE_GROUP: usize = 32;

/// A group of texts or of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockGroup {
    pub(crate) group: u32,
    pub(crate) kind: GroupKind,
}

impl BlockGroup {
    fn of(group: VisitedGroup<'_>) -> Self {
        Self {
            group: group.membership.group,
            kind: group.kind,
        }
    }
}

/// Facts about the ranks of a block that all threads compute before it is settled.
#[derive(Default)]
pub(crate) struct BlockFacts {
    /// The most similar survivor of earlier blocks, by place in the block.
    pub(crate) earlier: Vec<Option<VerifiedMatch>>,
    /// Sets of ranks that may resemble each other.
    pub(crate) sets: Components,
    /// Groups that are crowded in the block: any two of their members may resemble each other.
    pub(crate) crowded: Vec<BlockGroup>,
}

impl BlockFacts {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            earlier: vec![None; places],
            sets: Components::new(places as u32),
            crowded: Vec::new(),
        }
    }

    /// Unites all places that are united in `others`.
    pub(crate) fn unite_all(&mut self, mut others: Components) {
        for place in 0..self.earlier.len() as u32 {
            self.sets.join(others.first(place), place);
        }
    }

    /// Divides a block into components and lists the places of each, ascending. Each crowded group is there once.
    pub(crate) fn components(&self, verifier: &Verifier<'_>, block: &Range<u32>) -> ListTable<u32> {
        let mut sets = self.sets.clone();
        for crowd in &self.crowded {
            let groups = crowd.kind.of(verifier.groups, verifier.page_groups);
            let groups = groups.expect("they have the group");
            // Strong and weak members are each in ascending order, so each part is searched separately.
            let members = groups.members(crowd.group);
            let (strong, weak) = members.split_at(groups.strong_count(crowd.group));
            let places = [strong, weak].into_iter();
            let places = places.flat_map(|part| ascending_within(part, block));
            let mut places = places.map(|&rank| rank - block.start);
            let Some(first) = places.next() else { continue };
            // Unite all of them: an unnecessary edge costs parallel work, but a missing one could change a decision.
            places.for_each(|place| {
                sets.join(first, place);
            });
        }
        components_of(sets, block.len())
    }
}

/// Lists the places of each set.
fn components_of(mut sets: Components, places: usize) -> ListTable<u32> {
    let (mut numbers, mut components) = (Vec::with_capacity(places), 0);
    for place in 0..places as u32 {
        // The first place of a component comes before its others, which get its number.
        let known = numbers.get(sets.first(place) as usize).copied();
        components += usize::from(known.is_none());
        numbers.push(known.unwrap_or(components - 1));
    }
    ListTable::new(components, || numbers.iter().copied().zip(0..))
}

/// Returns the number of places in components of more than one.
pub(crate) fn connected(components: &ListTable<u32>) -> usize {
    let sizes = (0..components.len() as u32).map(|component| components.of(component).len());
    sizes.filter(|&size| size > 1).sum()
}

/// Members of a block before a rank, whether they survive or not. Crowded groups are left out and recorded.
pub(crate) struct BlockMembers<'c> {
    pub(crate) ranks: Range<u32>,
    // A cell, because members are visited through a shared reference.
    pub(crate) crowded: &'c std::cell::RefCell<Vec<BlockGroup>>,
}

impl CandidateMembers for BlockMembers<'_> {
    fn for_each(&self, group: VisitedGroup<'_>, wanted: &Range<u32>, mut visit: impl FnMut(u32)) {
        // Each half by itself, because `ComponentSurvivors` lists survivors by halves.
        for members in group.groups.partners(group.membership) {
            // All members before the rank, not only the wanted ones: candidates of a rank may be visited in several ranges, with the same answer in
            // each.
            let all = ascending_within(members, &self.ranks);
            // `EarlierInComponent` makes the same test for the same range: members that are not visited here are listed
            // there.
            match all.len() > MAX_PAIRWISE_GROUP {
                // Recorded once per rank and half; repetitions are removed later.
                true => self.crowded.borrow_mut().push(BlockGroup::of(group)),
                false => {
                    let wanted = all.iter().copied().filter(|rank| wanted.contains(rank));
                    wanted.for_each(&mut visit);
                }
            }
        }
    }
}

/// Survivors of the component that is being settled.
pub(crate) struct ComponentSurvivors<'g> {
    groups: &'g CandidateGroups,
    page_groups: Option<&'g CandidateGroups>,
    block: Range<u32>,
    /// One bit per rank of the block.
    bits: Vec<u64>,
    /// Crowded groups, ascending.
    crowded: &'g [BlockGroup],
    /// Survivors in these groups: strong members and weak ones.
    lists: HashMap<BlockGroup, [Vec<u32>; 2]>,
}

impl<'g> ComponentSurvivors<'g> {
    /// Creates an empty set of survivors.
    pub(crate) fn new(
        verifier: &Verifier<'g>,
        block: Range<u32>,
        crowded: &'g [BlockGroup],
    ) -> Self {
        Self {
            groups: verifier.groups,
            page_groups: verifier.page_groups,
            bits: vec![0; block.len().div_ceil(64)],
            block,
            crowded,
            lists: HashMap::new(),
        }
    }

    /// Removes all survivors, because those of other components are not candidates.
    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
        self.lists.clear();
    }

    fn has(&self, rank: u32) -> bool {
        let place = (rank - self.block.start) as usize;
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    /// Adds a rank, which must be later than all earlier ones.
    pub(crate) fn add(&mut self, rank: u32) {
        let place = (rank - self.block.start) as usize;
        self.bits[place / 64] |= 1 << (place % 64);
        // Without crowded groups, bits and member lists suffice.
        if self.crowded.is_empty() {
            return;
        }
        for kind in [GroupKind::Text, GroupKind::Page] {
            if let Some(groups) = kind.of(self.groups, self.page_groups) {
                self.list(groups, kind, rank);
            }
        }
    }

    fn list(&mut self, groups: &CandidateGroups, kind: GroupKind, rank: u32) {
        for GroupMembership { group, is_weak } in groups.of(rank) {
            let group = BlockGroup { group, kind };
            if self.crowded.binary_search(&group).is_ok() {
                self.lists.entry(group).or_default()[usize::from(is_weak)].push(rank);
            }
        }
    }

    /// Returns the survivors before a rank.
    pub(crate) fn before(&self, than: u32) -> EarlierInComponent<'_, 'g> {
        EarlierInComponent {
            survivors: self,
            ranks: self.block.start..than,
        }
    }
}

/// Survivors of a component before a rank.
pub(crate) struct EarlierInComponent<'s, 'g> {
    survivors: &'s ComponentSurvivors<'g>,
    ranks: Range<u32>,
}

impl CandidateMembers for EarlierInComponent<'_, '_> {
    fn for_each(&self, group: VisitedGroup<'_>, wanted: &Range<u32>, mut visit: impl FnMut(u32)) {
        let halves = group.groups.partners(group.membership);
        for (part, members) in halves.into_iter().enumerate() {
            let all = ascending_within(members, &self.ranks);
            // These were visited one by one when edges were computed, so all relevant ones are in the component of the rank.
            if all.len() <= MAX_PAIRWISE_GROUP {
                let survivors = all.iter().copied().filter(|&rank| self.survivors.has(rank));
                survivors
                    .filter(|rank| wanted.contains(rank))
                    .for_each(&mut visit);
            } else if let Some(lists) = self.survivors.lists.get(&BlockGroup::of(group)) {
                let listed = lists[part].iter().copied();
                listed
                    .filter(|rank| wanted.contains(rank))
                    .for_each(&mut visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn components_equal_what_is_reached_by_steps_over_edges(
            edges in prop::collection::vec([0..60_u32, 0..60_u32], 0..80),
        ) {
            let (some, others) = edges.split_at(edges.len() / 2);
            let [own, more] = [some, others].map(|edges| {
                let mut sets = Components::new(60);
                for &[x, y] in edges {
                    sets.join(x, y);
                }
                sets
            });
            let mut facts = BlockFacts::new(60);
            facts.unite_all(own);
            facts.unite_all(more);
            let components = components_of(facts.sets, 60);

            let mut reached: Vec<BTreeSet<u32>> = (0..60).map(|place| BTreeSet::from([place])).collect();
            for _ in 0..60 {
                for &[x, y] in &edges {
                    let both: BTreeSet<u32> = reached[x as usize].union(&reached[y as usize]).copied().collect();
                    for place in [x, y] {
                        reached[place as usize].clone_from(&both);
                    }
                }
            }
            let expected: BTreeSet<Vec<u32>> = reached.into_iter().map(|set| set.into_iter().collect()).collect();
            let found: BTreeSet<Vec<u32>> = (0..components.len() as u32).map(|at| components.of(at).to_vec()).collect();
            prop_assert_eq!(found.len(), components.len());
            let connected: usize = expected.iter().filter(|set| set.len() > 1).map(Vec::len).sum();
            prop_assert_eq!(super::connected(&components), connected);
            prop_assert_eq!(found, expected);
        }
    }
}
