//! Groups of a job, and the windows of ranks for which they are loaded.
//!
//! Groups that fit in memory are used all together. Others are in a [`GroupFile`], which is read sequentially, and ranks are processed in
//! consecutive windows: for each window, one pass over the file counts how many ranks fit, and another builds a table of their groups. This
//! table has the members in the window, and those earlier members that are still needed as candidates: the survivors, when survivors are
//! chosen. Later members are not needed. So a window costs two passes over a file, and no random access on disk, whatever the order of ranks.
//!
//! In its window, a rank finds the same candidates as in all groups, and the counts of comparisons are the same: the table has every group
//! that two of its ranks share, and every group in which a rank of the window is weak.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dedup::candidate_groups::{
    CandidateGroups, GroupPartition, GroupResources, StoredGroups, ascending_within,
};
use crate::dedup::group_file::{GroupFile, GroupMembers};
use crate::locks::{into_inner, lock};
use crate::spill::partitions::{PARTS, by_parts};
use crate::spill::table_column::TableColumn;

/// Maximum number of bytes per posting in the table of a window: both tables of the groups, and the lists of their survivors.
const POSTING: u64 = 12;

/// Number of bytes per group in the table: start, number of strong members, and number of listed survivors.
const GROUP: u64 = 20;

/// Reason why groups cannot be loaded.
#[derive(Debug)]
pub(crate) enum GroupError {
    /// The temporary file failed.
    Io(io::Error),
    /// The smallest window needs this many bytes, more than the memory has.
    TooLarge(u64),
}

impl From<io::Error> for GroupError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Ranks that are still to be processed, and the resources of a window.
pub(crate) struct WindowPlan<'a> {
    /// All ranks that are left.
    pub(crate) ranks: Range<u32>,
    /// Each window except the last has a multiple of this many ranks.
    pub(crate) step: usize,
    /// Bytes of memory that a window may take.
    pub(crate) memory: u64,
    pub(crate) threads: usize,
    /// Returns true for earlier ranks that are needed as candidates.
    pub(crate) is_wanted: &'a (dyn Fn(u32) -> bool + Sync),
}

/// Groups of classes by the features of their texts, and by other properties that make pages near-duplicates.
#[derive(Default)]
pub(crate) struct ClassGroups {
    pub(crate) by_text: StoredGroups,
    pub(crate) by_page: Option<StoredGroups>,
}

/// Groups of both kinds for the ranks of a window.
pub(crate) struct ClassWindow<'g> {
    pub(crate) by_text: Cow<'g, CandidateGroups>,
    pub(crate) by_page: Option<Cow<'g, CandidateGroups>>,
    /// End of the window, exclusive.
    pub(crate) end: u32,
}

impl ClassGroups {
    /// Returns the groups of the first window of the ranks in the plan; all ranks if the groups are in memory.
    pub(crate) fn window(&self, plan: &WindowPlan<'_>) -> Result<ClassWindow<'_>, GroupError> {
        // Both windows are in memory at the same time, so two kinds on disk get half of it each.
        let shares = match self.by_page {
            Some(StoredGroups::OnDisk(_)) if self.by_text.is_on_disk() => 2,
            _ => 1,
        };
        let memory = plan.memory / shares;
        // Both kinds get equal shares, so the one that does not fit has to be counted twice.
        let too_large = |error| match error {
            GroupError::TooLarge(needed) => GroupError::TooLarge(needed * shares),
            GroupError::Io(error) => GroupError::Io(error),
        };
        let by_text = self.by_text.window(&WindowPlan {
            ranks: plan.ranks.clone(),
            memory,
            ..*plan
        });
        let (by_text, end) = by_text.map_err(too_large)?;
        let by_page = self.by_page.as_ref().map(|groups| {
            groups.window(&WindowPlan {
                ranks: plan.ranks.start..end,
                memory,
                ..*plan
            })
        });
        let by_page = by_page.transpose().map_err(too_large)?;
        Ok(ClassWindow {
            by_text,
            // If the window of pages ends sooner, that of texts has later ranks too, which are not used.
            end: by_page.as_ref().map_or(end, |(_, end)| *end),
            by_page: by_page.map(|(groups, _)| groups),
        })
    }

    /// Returns true if any groups are on disk.
    pub(crate) fn are_on_disk(&self) -> bool {
        let by_page = self.by_page.as_ref();
        self.by_text.is_on_disk() || by_page.is_some_and(StoredGroups::is_on_disk)
    }
}

impl StoredGroups {
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self, Self::OnDisk(_))
    }

    /// Returns the number of groups that were left out because they have too many members.
    pub(crate) fn excluded_groups(&self) -> u64 {
        match self {
            Self::InMemory(groups) => groups.left_out,
            Self::OnDisk(file) => file.left_out,
        }
    }

    /// Calls `visit` with all groups, in any order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(GroupMembers<'_>)) -> io::Result<()> {
        match self {
            Self::InMemory(groups) => {
                (0..groups.len() as u32).for_each(|group| visit(groups.get(group)));
                Ok(())
            }
            Self::OnDisk(file) => (0..PARTS).try_for_each(|part| {
                file.for_each(part, |group| {
                    visit(group);
                    Ok(())
                })
            }),
        }
    }

    /// Moves the groups to a file in `folder`.
    pub(crate) fn into_file(self, folder: &Path) -> io::Result<Self> {
        let Self::InMemory(groups) = self else {
            return Ok(self);
        };
        let mut file = GroupFile::new(folder)?;
        file.left_out = groups.left_out;
        groups.write(&file)?;
        Ok(Self::OnDisk(file))
    }

    /// Changes the groups; see [`CandidateGroups::change`]. Groups on disk go to a new file.
    pub(crate) fn changed(
        self,
        ranks: usize,
        resources: &GroupResources<'_>,
        change: impl Fn(&mut [u32]) -> Option<usize> + Sync,
    ) -> io::Result<Self> {
        Ok(match self {
            Self::InMemory(mut groups) => {
                groups.change(ranks, resources.threads, change);
                Self::InMemory(groups)
            }
            Self::OnDisk(file) => {
                Self::OnDisk(file.changed(resources.folder, resources.threads, change)?)
            }
        })
    }

    /// Returns the number of ranks that are in any group.
    pub(crate) fn ranks_in_groups(&self, ranks: usize, threads: usize) -> io::Result<usize> {
        let file = match self {
            Self::InMemory(groups) => return Ok(groups.ranks_in_groups(threads)),
            Self::OnDisk(file) => file,
        };
        let bits = TableColumn::<AtomicU64>::zeroed(ranks.div_ceil(64));
        by_parts(
            threads,
            || (),
            |(), part| {
                file.for_each(part, |group| {
                    for &rank in group.ranks {
                        let (word, bit) = (&bits[rank as usize / 64], 1 << (rank % 64));
                        // Most ranks are in several groups, and reading is cheaper than writing.
                        if word.load(Ordering::Relaxed) & bit == 0 {
                            word.fetch_or(bit, Ordering::Relaxed);
                        }
                    }
                    Ok(())
                })
            },
        )?;
        let words = bits.iter().map(|word| word.load(Ordering::Relaxed));
        Ok(words.map(|word| word.count_ones() as usize).sum())
    }

    /// Returns the groups of the first window of the ranks in the plan, and its end; all ranks if the groups are in memory.
    fn window(&self, plan: &WindowPlan<'_>) -> Result<(Cow<'_, CandidateGroups>, u32), GroupError> {
        match self {
            Self::InMemory(groups) => Ok((Cow::Borrowed(groups), plan.ranks.end)),
            Self::OnDisk(file) => {
                let end = plan.end(file)?;
                Ok((Cow::Owned(plan.groups(file, end)?), end))
            }
        }
    }
}

impl WindowPlan<'_> {
    /// Returns the end, exclusive, of the largest window that fits in the memory.
    fn end(&self, file: &GroupFile) -> Result<u32, GroupError> {
        // By step instead of by rank, because a window ends at the end of a step.
        let costs: Vec<AtomicU64> = (0..self.ranks.len().div_ceil(self.step))
            .map(|_| AtomicU64::new(0))
            .collect();
        by_parts(
            self.threads,
            || (),
            |(), part| {
                file.for_each(part, |group| {
                    self.add_costs(group, &costs);
                    Ok(())
                })
            },
        )?;
        let fixed = file.reading_bytes(self.threads);
        let (mut needed, mut end) = (fixed, self.ranks.start);
        for cost in costs {
            needed += cost.into_inner();
            // In 64 bits, because the end of the step may exceed 32.
            let next = u64::from(self.ranks.end).min(u64::from(end) + self.step as u64);
            if needed > self.memory {
                return match end == self.ranks.start {
                    true => Err(GroupError::TooLarge(needed)),
                    false => Ok(end),
                };
            }
            end = next as u32;
        }
        Ok(end)
    }

    /// Adds the cost of a group to the first step with which a window has to include it.
    fn add_costs(&self, group: GroupMembers<'_>, costs: &[AtomicU64]) {
        let [strong, weak] = group.halves();
        let step = |rank: u32| (rank - self.ranks.start) as usize / self.step;
        // Relaxed, because sums are read after all threads have been joined.
        let add = |step: usize, bytes: u64| costs[step].fetch_add(bytes, Ordering::Relaxed);
        let within = [strong, weak].map(|half| self.within(half, self.ranks.end));
        // A group without members from here on is in no later window.
        let Some(first) = within.iter().filter_map(|half| half.first()).min() else {
            return;
        };
        for &rank in within.into_iter().flatten() {
            add(step(rank), POSTING);
        }
        let earlier: usize = [strong, weak]
            .iter()
            .map(|half| self.candidates_before_window(half).count())
            .sum();
        // The group and its earlier candidates are loaded with its first member in the window.
        if earlier > 0 {
            add(step(*first), GROUP + POSTING * earlier as u64);
            return;
        }
        // A single strong member in a window has no candidate, so the group costs nothing until the next member.
        // This cannot underflow: the loop above added as much to the same step.
        costs[step(*first)].fetch_sub(POSTING, Ordering::Relaxed);
        // The group is needed from its second strong member on, which has a candidate, or from its first weak member, whose weakness must be known.
        let begins = [within[1].first(), within[0].get(1)];
        if let Some(&begins) = begins.into_iter().flatten().min() {
            add(step(begins), GROUP + POSTING);
        }
    }

    /// Returns the groups of the ranks up to `end`.
    fn groups(&self, file: &GroupFile, end: u32) -> io::Result<CandidateGroups> {
        let parts: Vec<Mutex<GroupPartition>> = (0..PARTS).map(|_| Mutex::default()).collect();
        by_parts(
            self.threads,
            || (),
            |(), part| {
                let mut found = GroupPartition::default();
                file.for_each(part, |group| {
                    self.take(group, end, &mut found);
                    Ok(())
                })?;
                *lock(&parts[part]) = found;
                io::Result::Ok(())
            },
        )?;
        let parts = parts.into_iter().map(into_inner).collect();
        // From rank 0, because earlier survivors look up their groups too.
        Ok(CandidateGroups::of_partitions(
            parts,
            end as usize,
            self.threads,
        ))
    }

    /// Takes the part of a group that is needed for ranks up to `end`.
    fn take(&self, group: GroupMembers<'_>, end: u32, found: &mut GroupPartition) {
        let halves = group.halves();
        let within = halves.map(|half| self.within(half, end));
        if within.iter().all(|half| half.is_empty()) {
            return;
        }
        let members = found.members();
        let first = members.len();
        // Strong members, then weak ones, each ascending, as in all groups.
        members.extend(self.candidates_before_window(halves[0]));
        members.extend_from_slice(within[0]);
        let strong = members.len() - first;
        members.extend(self.candidates_before_window(halves[1]));
        members.extend_from_slice(within[1]);
        // A rank that is weak in any group is processed in another way, even if no other member is left.
        match members.len() - first > 1 || !within[1].is_empty() {
            true => found.end_group(first, strong),
            false => members.truncate(first),
        }
    }

    /// Returns the members, which are ascending, that are in a window up to `end`.
    fn within<'m>(&self, members: &'m [u32], end: u32) -> &'m [u32] {
        ascending_within(members, &(self.ranks.start..end))
    }

    /// Returns the members before the window that are needed as candidates.
    fn candidates_before_window<'m>(
        &self,
        members: &'m [u32],
    ) -> impl Iterator<Item = u32> + use<'m, '_> {
        let earlier = members.iter().copied();
        let earlier = earlier.take_while(|&rank| rank < self.ranks.start);
        earlier.filter(|&rank| (self.is_wanted)(rank))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::candidate_groups::{
        AcrossCategories, KeySink, TextLimit, split_virtual_ranks, weaken_members,
    };

    /// Returns all groups in a fixed order: their members, and the number of strong ones.
    fn all(groups: &StoredGroups) -> Vec<(Vec<u32>, usize)> {
        let mut all = Vec::new();
        groups
            .for_each(|group| all.push((group.ranks.to_vec(), group.strong)))
            .unwrap();
        all.sort();
        all
    }

    proptest! {
        #[test]
        fn groups_on_disk_are_those_in_memory(
            keys in prop::collection::vec((0..60_u64, 0..40_u32), 0..400),
            memory in prop_oneof![Just(0_u64), 0..3000_u64],
            most in prop::option::of(2..9_usize),
            bound in prop::option::of(0..9_usize),
            categories in prop::option::of(1..4_u64),
            threads in 1..4_usize,
        ) {
            const RANKS: usize = 20;
            let folder = tempfile::tempdir().unwrap();
            let ranks: Vec<u32> = (0..2 * RANKS as u32).collect();
            let of_rank = |rank| u64::from(rank) % categories.unwrap_or(1);
            let across = categories.map(|_| AcrossCategories { of_rank: &of_rank, bound: 2 });
            let resources = |memory| GroupResources {
                folder: folder.path(),
                threads,
                memory,
                across,
                most_texts: most.map(|most| TextLimit { most, text: &|rank| rank.into() }),
                advance: &|_| Ok(()),
            };
            let [stored, expected] = [memory, u64::MAX].map(|memory| {
                let sink = KeySink::new(folder.path(), 1 << 20).unwrap();
                let mut writer = sink.writer();
                keys.iter().for_each(|&(key, class)| writer.push(key, class).unwrap());
                writer.finish().unwrap();
                StoredGroups::new(&sink, &ranks, &resources(memory)).unwrap()
            });
            prop_assert!(!expected.is_on_disk());
            let postings: usize = all(&expected).iter().map(|(members, _)| members.len()).sum();
            if across.is_none() {
                prop_assert_eq!(stored.is_on_disk(), (8 * (postings + all(&expected).len())) as u64 > memory);
            }
            prop_assert_eq!(all(&stored), all(&expected));
            prop_assert_eq!(stored.excluded_groups(), expected.excluded_groups());
            let counted = |groups: &StoredGroups| groups.ranks_in_groups(ranks.len(), threads).unwrap();
            prop_assert_eq!(counted(&stored), counted(&expected));
            if across.is_some() {
                // Other changes are for groups without weak members.
                return Ok(());
            }
            let [stored, expected] = [stored, expected].map(|groups| match bound {
                Some(bound) => groups.changed(ranks.len(), &resources(memory), |members| {
                    Some(weaken_members(members, bound, |rank| rank % 3 == 0))
                }),
                None => groups.changed(RANKS, &resources(memory), |members| split_virtual_ranks(members, RANKS)),
            }.unwrap());
            prop_assert_eq!(all(&stored), all(&expected));
            let expected_groups = all(&expected);
            prop_assert_eq!(all(&expected.into_file(folder.path()).unwrap()), expected_groups);
        }

        #[test]
        fn a_window_has_all_that_its_ranks_share_and_no_more_than_fits(
            groups in prop::collection::vec((prop::collection::btree_set(0..60_u32, 2..9), 0..9_usize), 0..40),
            start in 0..59_u32,
            step in 1..9_usize,
            unwanted in prop::collection::btree_set(0..60_u32, 0..40),
            room in 0..4000_u64,
            threads in 1..3_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = GroupFile::new(folder.path()).unwrap();
            for (number, (members, strong)) in groups.iter().enumerate() {
                let ranks: Vec<u32> = members.iter().copied().collect();
                let strong = (*strong).clamp(1, ranks.len());
                let mut writer = file.writer(number % PARTS);
                writer.push(GroupMembers { ranks: &ranks, strong }).unwrap();
                writer.finish().unwrap();
            }
            let stored = StoredGroups::OnDisk(file);
            let is_wanted = |rank: u32| !unwanted.contains(&rank);
            let plan = |memory| WindowPlan { ranks: start..60, step, memory, threads, is_wanted: &is_wanted };
            let Err(GroupError::TooLarge(least)) = stored.window(&plan(0)) else {
                panic!("a window in no memory");
            };
            let (window, window_end) = stored.window(&plan(least + room)).unwrap();
            let next = |end: u32| 60.min(end + step as u32);
            prop_assert!(window_end == 60 || ((window_end - start) as usize).is_multiple_of(step));
            let found = &*window;
            let cost = |found: &CandidateGroups| {
                POSTING * found.members.len() as u64 + GROUP * found.len() as u64
            };
            let StoredGroups::OnDisk(file) = &stored else { unreachable!() };
            let fixed = file.reading_bytes(threads);
            prop_assert!(cost(found) + fixed <= least + room);
            // One step more would be too much.
            if window_end < 60 {
                let plan = plan(0);
                let more = plan.groups(file, next(window_end)).unwrap();
                prop_assert!(cost(&more) + fixed > least + room);
            }
            let mut expected: Vec<(Vec<u32>, usize)> = Vec::new();
            for (members, strong) in &groups {
                let strong = (*strong).clamp(1, members.len());
                let is_there = |rank: u32| (start..window_end).contains(&rank) || rank < start && is_wanted(rank);
                let halves: [Vec<u32>; 2] = [false, true].map(|weak| {
                    let numbered = members.iter().copied().enumerate();
                    numbered.filter(|&(at, rank)| (at >= strong) == weak && is_there(rank)).map(|(_, rank)| rank).collect()
                });
                let within: BTreeSet<u32> = halves.concat().into_iter().filter(|&rank| rank >= start).collect();
                let is_weak = halves[1].iter().any(|&rank| rank >= start);
                if !within.is_empty() && (halves.concat().len() > 1 || is_weak) {
                    expected.push((halves.concat(), halves[0].len()));
                }
            }
            expected.sort();
            let mut shown: Vec<_> = (0..found.len() as u32).map(|group| found.get(group)).map(|group| (group.ranks.to_vec(), group.strong)).collect();
            shown.sort();
            prop_assert_eq!(shown, expected);
        }
    }
}
