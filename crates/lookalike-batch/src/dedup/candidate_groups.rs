//! Groups of classes that share a candidate key.
//!
//! Each method gives every class keys such that two classes that the method must compare share one: the prefix of the feature set
//! ([`Method::AllPairs`]), bands of a signature, super-shingles, blocks of a fingerprint. A [`KeySink`] collects (key, class); [`CandidateGroups`]
//! sorts them by key, drops the keys of a single class (nearly all of them, in most collections), or of a single category if only pairs across
//! categories count, and stores the rest as two compressed tables: the classes of each group, and the groups of each class. Classes are identified
//! by their ranks, the preferred one first.
//!
//! Groups that do not fit in memory go to a [`GroupFile`], from which [`group_windows`](crate::dedup::group_windows) builds tables for some
//! ranks at a time.
//!
//! [`Method::AllPairs`]: crate::settings::Method::AllPairs

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::zeroed_vec;

use crate::dedup::group_file::{GroupFile, GroupMembers};
use crate::free_memory::release_free_memory;
use crate::locks::{into_inner, lock};
use crate::observer::SharedProgress;
use crate::parallel::{PARALLEL_MIN, copy_lists, in_ranges, map_parallel_limited, share_length};
use crate::spill::partitions::{PARTS, PartitionedFile, SpoolWriter, by_parts};
use crate::spill::prefetch::prefetch;
use crate::spill::table_column::TableColumn;

/// A key in the first two words and a class in the third.
// Three words: alignment would pad (u64, u32) to 16 bytes.
pub(crate) type KeyRecord = [u32; 3];

/// Returns the record of a key of a class.
#[inline]
pub(crate) fn key_record(key: u64, class: u32) -> KeyRecord {
    [(key >> 32) as u32, key as u32, class]
}

/// Returns the key of a record.
#[inline]
pub(crate) fn key_of(record: &KeyRecord) -> u64 {
    u64::from(record[0]) << 32 | u64::from(record[1])
}

/// Returns the number of the record's partition, below [`PARTS`].
#[inline]
pub(crate) fn part_of(record: &KeyRecord) -> usize {
    // By the last bits: the smallest features of a set are its prefix, so leading bits are similar.
    // Segments of collections depend on it: see `partition_first`.
    record[1] as usize % PARTS
}

/// Collects candidate keys. It is shared between threads, each of which has its own [`KeyWriter`].
///
/// Memory: the budget; further keys go to a temporary file, 12 bytes each.
pub(crate) struct KeySink(PartitionedFile<KeyRecord>);

impl KeySink {
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        PartitionedFile::new(folder, budget).map(Self)
    }

    pub(crate) fn writer(&self) -> KeyWriter<'_> {
        KeyWriter(SpoolWriter::new(&self.0))
    }

    /// Copies all keys into a sink that keeps at most `budget` bytes in memory.
    pub(crate) fn copied(&self, folder: &Path, budget: u64) -> io::Result<Self> {
        const PIECE: usize = 1 << 14;
        let copy = Self::new(folder, budget)?;
        for part in 0..PARTS {
            self.0.pieces(part, PIECE, &mut |records| {
                copy.0.append(part, &mut records.to_vec())
            })?;
        }
        Ok(copy)
    }

    /// Returns all records of a partition, in no particular order, and keeps the partition.
    pub(crate) fn part(&self, part: usize) -> io::Result<Vec<KeyRecord>> {
        const PIECE: usize = 1 << 14;
        let mut all = Vec::new();
        self.0.pieces(part, PIECE, &mut |records: &[KeyRecord]| {
            all.extend_from_slice(records);
            io::Result::Ok(())
        })?;
        Ok(all)
    }

    /// Returns the number of records of the largest partition.
    pub(crate) fn largest(&self) -> u64 {
        (0..PARTS)
            .map(|part| self.0.records(part))
            .max()
            .unwrap_or(0)
    }

    /// Takes all records of a partition, in no particular order.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<KeyRecord>> {
        self.0.take(part)
    }
}

/// Writes the keys of one thread to a [`KeySink`].
pub(crate) struct KeyWriter<'s>(SpoolWriter<'s, KeyRecord>);

impl KeyWriter<'_> {
    /// Adds a key of a class.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, class: u32) -> io::Result<()> {
        self.push_record(key_record(key, class))
    }

    /// Adds a record, as [`KeyWriter::push`] does.
    #[inline]
    pub(crate) fn push_record(&mut self, record: KeyRecord) -> io::Result<()> {
        self.0.push(part_of(&record), record)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Groups of classes that share keys, by rank.
///
/// Two members of a group are candidates unless both are weak in it. All are strong, except those that [`weaken_members`],
/// [`split_virtual_ranks`] and [`AcrossCategories`] make weak.
///
/// Memory: 8 bytes per posting (a class in a group), 8 per group and 4 per class, and another 4 per class while the tables are built.
#[derive(Clone, Default)]
pub(crate) struct CandidateGroups {
    /// Ranks of the members of all groups: in each group the strong ones, then the weak ones, both ascending.
    pub(crate) members: Vec<u32>,
    /// Start of each group in `members`, and the end of the last one.
    pub(crate) starts: Vec<u64>,
    /// Number of strong members of each group; empty if all members are strong.
    strong: Vec<u32>,
    /// Groups of each rank, concatenated.
    pub(crate) lists: Vec<u32>,
    /// Start of each rank's list in `lists`, and the end of the last one.
    list_starts: ListStarts,
    /// One bit per entry of `lists`, set if the rank is weak in that group. Empty if no member is weak.
    weak: Vec<u64>,
    /// Number of groups that were left out because they have too many members.
    pub(crate) left_out: u64,
}

/// Starts of concatenated lists, 4 bytes each.
#[derive(Clone, Default)]
struct ListStarts {
    /// Start of every [`Self::BLOCK`]th list.
    bases: TableColumn<u64>,
    /// Distance of each list's start from the last base.
    offsets: TableColumn<u32>,
}

impl ListStarts {
    const BLOCK: usize = 64;

    /// Computes the starts of lists with these lengths, and the end of the last one.
    fn of_lengths(lengths: impl ExactSizeIterator<Item = u32>) -> Self {
        let mut starts = Self {
            bases: TableColumn::new(),
            offsets: TableColumn::with_capacity(lengths.len() + 1),
        };
        // Offsets start at 0 in each block, so 4 bytes suffice however many postings there are.
        let (mut base, mut offset) = (0, 0);
        for length in lengths.chain([0]) {
            if starts.offsets.len().is_multiple_of(Self::BLOCK) {
                // The base moves to the start of this list.
                (base, offset) = (base + u64::from(offset), 0);
                starts.bases.push(base);
            }
            starts.offsets.push(offset);
            offset += length;
        }
        starts
    }

    #[inline]
    fn get(&self, list: usize) -> usize {
        self.bases[list / Self::BLOCK] as usize + self.offsets[list] as usize
    }

    fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Sorts each of the lists, with `threads` threads.
    fn sort_lists(&self, all: &mut [u32], threads: usize) {
        let lists = self.len() - 1;
        let threads = if all.len() < PARALLEL_MIN { 1 } else { threads };
        let share = share_length(lists, threads);
        let mut rest = all;
        // Lists are adjacent, so those of a thread are one slice, which it can own.
        let parts = (0..lists).step_by(share).map(|first| {
            let last = lists.min(first + share);
            let length = self.get(last) - self.get(first);
            let own = rest.split_off_mut(..length);
            (first..last, own.expect("lists lie one after another"))
        });
        map_parallel_limited(parts, threads, |(lists, own)| {
            let start = self.get(lists.start);
            for list in lists {
                own[self.get(list) - start..self.get(list + 1) - start].sort_unstable();
            }
        });
    }
}

/// Membership of a rank in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupMembership {
    pub(crate) group: u32,
    /// True if only the group's strong members are candidates of the rank.
    pub(crate) is_weak: bool,
}

/// Resources for grouping keys.
pub(crate) struct GroupResources<'a> {
    /// Folder for a file of groups that do not fit in memory.
    pub(crate) folder: &'a Path,
    pub(crate) threads: usize,
    /// Bytes of memory that all groups may take.
    pub(crate) memory: u64,
    /// Groups of more texts are left out and counted.
    pub(crate) most_texts: Option<TextLimit<'a>>,
    /// Categories, if only pairs of different ones count.
    pub(crate) across: Option<AcrossCategories<'a>>,
    /// Called with the number of partitions, of [`PARTS`], that are done.
    pub(crate) advance: &'a (dyn Fn(u64) -> io::Result<()> + Sync),
}

/// Categories of ranks, if only pairs of different categories count.
///
/// Groups of a single category are dropped. In groups of more than `bound` members, those of the most common category are weak, so they
/// are not candidates of each other. That is at most half more than the pairs that count: members of any other category are no
/// more than those of the most common one, so they are in at least twice as many pairs with these as among themselves.
#[derive(Clone, Copy)]
pub(crate) struct AcrossCategories<'a> {
    pub(crate) of_rank: &'a (dyn Fn(u32) -> u64 + Sync),
    pub(crate) bound: usize,
}

impl AcrossCategories<'_> {
    /// Moves weak members of a group behind the strong ones, and returns the number of strong members, or `None` if all are of one category.
    fn split(self, members: &mut [u32], categories: &mut Vec<u64>) -> Option<usize> {
        categories.clear();
        categories.extend(members.iter().map(|&rank| (self.of_rank)(rank)));
        categories.sort_unstable();
        let runs = categories.chunk_by(|a, b| a == b);
        let most_common = runs.max_by_key(|run| run.len())?;
        (most_common.len() < members.len()).then(|| {
            weaken_members(members, self.bound, |rank| {
                (self.of_rank)(rank) == most_common[0]
            })
        })
    }
}

/// Maximum number of different texts in a group.
#[derive(Clone, Copy)]
pub(crate) struct TextLimit<'a> {
    pub(crate) most: usize,
    /// Returns a number that only ranks with one visible text have in common.
    pub(crate) text: &'a (dyn Fn(u32) -> u128 + Sync),
}

impl TextLimit<'_> {
    fn is_exceeded(self, group: &[KeyRecord]) -> bool {
        let mut texts = HashSet::new();
        // Most groups are far beyond the limit or below it, so few texts are looked at.
        let exceeds = |&[.., rank]: &KeyRecord| {
            texts.insert((self.text)(rank));
            texts.len() > self.most
        };
        group.len() > self.most && group.iter().any(exceeds)
    }
}

/// The groups of one partition: their sizes, and their members concatenated.
#[derive(Default)]
pub(crate) struct GroupPartition {
    sizes: Vec<u32>,
    /// Number of strong members of each group; empty if all members of all partitions are strong.
    strong: Vec<u32>,
    members: Vec<u32>,
    left_out: u64,
}

impl GroupPartition {
    /// Ends a group that consists of the members from `first` on, of which `strong` are strong.
    pub(crate) fn end_group(&mut self, first: usize, strong: usize) {
        self.sizes.push((self.members.len() - first) as u32);
        self.strong.push(strong as u32);
    }

    /// Returns the members of all groups, to append more.
    pub(crate) fn members(&mut self) -> &mut Vec<u32> {
        &mut self.members
    }

    /// Returns the number of bytes that the groups need at the peak of building.
    fn bytes(&self) -> u64 {
        let weak_bits = match self.strong.is_empty() {
            true => 0,
            false => self.members.len().div_ceil(8),
        };
        bytes_needed(self.members.len(), self.sizes.len())
            + (self.strong.len() * 4 + weak_bits) as u64
    }

    fn write(self, file: &GroupFile, part: usize) -> io::Result<()> {
        let mut writer = file.writer(part);
        let mut rest = &self.members[..];
        for (number, size) in self.sizes.into_iter().enumerate() {
            let (ranks, others) = rest.split_at(size as usize);
            rest = others;
            let strong = self.strong.get(number).map_or(size, |&strong| strong) as usize;
            writer.push(GroupMembers { ranks, strong })?;
        }
        writer.finish()
    }
}

/// Groups of all ranks, in memory or on disk.
pub(crate) enum StoredGroups {
    InMemory(CandidateGroups),
    OnDisk(GroupFile),
}

impl Default for StoredGroups {
    fn default() -> Self {
        Self::InMemory(CandidateGroups::default())
    }
}

/// Returns the start of each group of all partitions among the members, and the end of the last one. Frees the partitions.
fn starts(parts: Vec<GroupPartition>, threads: usize) -> Vec<u64> {
    let groups: usize = parts.iter().map(|part| part.sizes.len()).sum();
    let mut starts = zeroed_vec(1 + groups);
    // The members before each partition are summed up first, so that threads can fill the ends of all partitions at the same time.
    let (mut rest, mut before, mut shares) = (&mut starts[1..], 0, Vec::new());
    for part in parts {
        let (ends, more) = rest.split_at_mut(part.sizes.len());
        let members = part.members.len() as u64;
        shares.push((ends, before, part));
        (rest, before) = (more, before + members);
    }
    map_parallel_limited(shares.into_iter(), threads, |(ends, before, part)| {
        let mut end = before;
        for (own, &size) in ends.iter_mut().zip(&part.sizes) {
            end += u64::from(size);
            *own = end;
        }
    });
    starts
}

/// Concatenates lists.
fn joined(lists: &[&[u32]], threads: usize) -> Vec<u32> {
    let mut all = vec![0; lists.iter().map(|list| list.len()).sum()];
    copy_lists(&mut all, lists, threads);
    all
}

impl CandidateGroups {
    /// Creates the groups of keys that are all in memory; classes are given by rank.
    pub(crate) fn of_keys(
        keys: Vec<KeyRecord>,
        ranks: usize,
        across: Option<AcrossCategories<'_>>,
    ) -> Self {
        Self::of_partitions(vec![group(keys, None, across)], ranks, 1)
    }

    /// Creates the groups of all partitions, for `ranks` ranks.
    pub(crate) fn of_partitions(parts: Vec<GroupPartition>, ranks: usize, threads: usize) -> Self {
        let members: Vec<&[u32]> = parts.iter().map(|part| part.members.as_slice()).collect();
        let mut strong: Vec<&[u32]> = parts.iter().map(|part| part.strong.as_slice()).collect();
        // Without weak members the counts say nothing. Partitions made by `group` have no counts at all.
        if parts.iter().all(|part| part.strong == part.sizes) {
            strong.clear();
        }
        let mut groups = Self {
            members: joined(&members, threads),
            strong: joined(&strong, threads),
            left_out: parts.iter().map(|part| part.left_out).sum(),
            ..Self::default()
        };
        // Frees the partitions before the lists are allocated.
        groups.starts = starts(parts, threads);
        release_free_memory();
        groups.invert(ranks, threads);
        groups
    }

    /// Computes `lists` from `members`, with `threads` threads.
    pub(crate) fn invert(&mut self, ranks: usize, threads: usize) {
        // Ranks are in no order, so each step misses the cache: prefetching this many steps ahead hides a memory access.
        const PREFETCH_DISTANCE: usize = 24;
        // First the number of groups of each rank, later the number of free entries in its list.
        let left: TableColumn<AtomicU32> = TableColumn::zeroed(ranks);
        // Relaxed, because each pass ends with all threads joined before the next reads its numbers.
        let relaxed = Ordering::Relaxed;
        in_ranges(self.members.len(), threads, |range| {
            for i in range {
                if let Some(&later) = self.members.get(i + PREFETCH_DISTANCE) {
                    prefetch(&left, later as usize);
                }
                left[self.members[i] as usize].fetch_add(1, relaxed);
            }
        });
        self.list_starts = ListStarts::of_lengths(left.iter().map(|left| left.load(relaxed)));
        let lists: Vec<AtomicU32> = zeroed_vec(self.members.len());
        // Lists are filled from their ends, so the number of free entries in each gives the position of the next.
        in_ranges(self.len(), threads, |range| {
            // Groups go backwards, so that lists that one thread fills from their ends ascend. So the positions to prefetch are lower ones.
            for group in range.rev() {
                for i in self.starts[group] as usize..self.starts[group + 1] as usize {
                    if let Some(earlier) = i.checked_sub(PREFETCH_DISTANCE) {
                        prefetch(&left, self.members[earlier] as usize);
                    }
                    let rank = self.members[i] as usize;
                    let place = left[rank].fetch_sub(1, relaxed) as usize - 1;
                    lists[self.list_starts.get(rank) + place].store(group as u32, relaxed);
                }
            }
        });
        self.lists = lists.into_iter().map(AtomicU32::into_inner).collect();
        if threads > 1 {
            // The threads filled the lists in any order.
            self.list_starts.sort_lists(&mut self.lists, threads);
        }
        self.weak = self.weak_memberships();
    }

    /// Returns one bit per entry of `lists`, set if the membership is weak.
    fn weak_memberships(&self) -> Vec<u64> {
        if self.strong.is_empty() {
            return Vec::new();
        }
        // Each posting has one entry in `lists`, so both have the same length.
        let mut weak = vec![0; self.members.len().div_ceil(64)];
        for group in 0..self.len() as u32 {
            for &rank in &self.members(group)[self.strong_count(group)..] {
                // The list of a rank is ascending, because `invert` has sorted it.
                let at = self.list(rank).binary_search(&group);
                let place = self.list_starts.get(rank as usize) + at.expect("members have groups");
                weak[place / 64] |= 1 << (place % 64);
            }
        }
        weak
    }

    /// Returns the number of groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Changes the groups of `ranks` ranks: `change` gets the members of each and returns how many of them are strong, or `None` to drop the group. `threads`
    /// threads compute the lists again.
    pub(crate) fn change(
        &mut self,
        ranks: usize,
        threads: usize,
        change: impl Fn(&mut [u32]) -> Option<usize>,
    ) {
        self.strong = Vec::with_capacity(self.len());
        let (mut start, mut end) = (0, 0);
        for group in 0..self.len() {
            let members = start..self.starts[group + 1] as usize;
            start = members.end;
            let Some(strong) = change(&mut self.members[members.clone()]) else {
                continue;
            };
            // In place: groups that were dropped leave room before the others.
            self.members.copy_within(members.clone(), end);
            end += members.len();
            self.strong.push(strong as u32);
            self.starts[self.strong.len()] = end as u64;
        }
        self.members.truncate(end);
        self.starts.truncate(1 + self.strong.len());
        // Free the old lists before the new ones are made.
        self.lists = Vec::new();
        self.invert(ranks, threads);
    }

    /// Returns the strong and weak members of a group.
    #[inline]
    pub(crate) fn get(&self, group: u32) -> GroupMembers<'_> {
        GroupMembers {
            ranks: self.members(group),
            strong: self.strong_count(group),
        }
    }

    /// Writes all groups to a file.
    pub(crate) fn write(&self, file: &GroupFile) -> io::Result<()> {
        let mut groups = 0..self.len() as u32;
        for part in 0..PARTS {
            let mut writer = file.writer(part);
            // About equal numbers of groups in all partitions, so that threads share the work of reading them.
            let some = groups.by_ref().take(self.len().div_ceil(PARTS));
            some.map(|group| self.get(group))
                .try_for_each(|group| writer.push(group))?;
            writer.finish()?;
        }
        Ok(())
    }

    /// Returns the number of strong members of a group.
    #[inline]
    pub(crate) fn strong_count(&self, group: u32) -> usize {
        match self.strong.get(group as usize) {
            Some(&strong) => strong as usize,
            None => self.members(group).len(),
        }
    }

    /// Returns the candidates of a member: the strong members of the group, and the weak ones if it is strong itself. Both are ascending,
    /// and the member itself is among them.
    #[inline]
    pub(crate) fn partners(&self, membership: GroupMembership) -> [&[u32]; 2] {
        let [strong, weak] = self.get(membership.group).halves();
        [strong, if membership.is_weak { &[] } else { weak }]
    }

    /// Returns true if a rank is weak in any group.
    pub(crate) fn is_weak(&self, rank: u32) -> bool {
        !self.weak.is_empty() && self.of(rank).any(|membership| membership.is_weak)
    }

    /// Returns the number of groups that two ranks share.
    pub(crate) fn shared(&self, x: u32, y: u32) -> u32 {
        // Weak memberships count too, because the rule is about all keys that both have.
        let (mut own, mut other) = (self.list(x), self.list(y));
        let mut shared = 0;
        while let (Some(&a), Some(&b)) = (own.first(), other.first()) {
            shared += u32::from(a == b);
            if a <= b {
                own = &own[1..];
            }
            if b <= a {
                other = &other[1..];
            }
        }
        shared
    }

    /// Returns the number of ranks that are in any group.
    pub(crate) fn ranks_in_groups(&self, threads: usize) -> usize {
        let ranks = self.list_starts.len() - 1;
        let counts = in_ranges(ranks, threads, |range| {
            range
                .filter(|&rank| !self.list(rank as u32).is_empty())
                .count()
        });
        counts.into_iter().sum()
    }

    /// Returns the members of a group: strong ones, then weak ones, both ascending.
    #[inline]
    pub(crate) fn members(&self, group: u32) -> &[u32] {
        &self.members
            [self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }

    /// Returns the groups of a rank, ascending.
    #[inline]
    pub(crate) fn of(&self, rank: u32) -> impl Iterator<Item = GroupMembership> {
        let from = self.list_starts.get(rank as usize);
        let groups = self.list(rank).iter().enumerate();
        groups.map(move |(at, &group)| {
            // Without weak members there are no bits.
            let bits = self.weak.get((from + at) / 64).copied().unwrap_or(0);
            GroupMembership {
                group,
                is_weak: bits >> ((from + at) % 64) & 1 == 1,
            }
        })
    }

    #[inline]
    fn list(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        &self.lists[self.list_starts.get(rank)..self.list_starts.get(rank + 1)]
    }

    /// Prefetches the memory that [`CandidateGroups::members`] reads for the groups of these ranks.
    pub(crate) fn prefetch(&self, ranks: Range<u32>) {
        let from = self.list_starts.get(ranks.start as usize);
        let groups = &self.lists[from..self.list_starts.get(ranks.end as usize)];
        // All starts first: the addresses of the members depend on them, and misses of the same kind overlap.
        groups
            .iter()
            .for_each(|&group| prefetch(&self.starts, group as usize));
        for &group in groups {
            prefetch(&self.members, self.starts[group as usize] as usize);
        }
    }

    /// Returns the number of bytes that the groups need at the peak of building.
    pub(crate) fn bytes(&self) -> u64 {
        let weak = self.strong.len() * 4 + self.weak.len() * 8;
        let whole = bytes_needed(self.members.len(), self.starts.len());
        whole + weak as u64
    }
}

/// Returns the number of bytes that this many postings and groups need at the peak of building.
fn bytes_needed(postings: usize, groups: usize) -> u64 {
    // A posting has 4 bytes in `members` and 4 in `lists`, a group 8 in `starts`.
    (postings * 8 + groups * 8) as u64
}

/// Moves the weak members of a group of more than `bound` members behind the strong ones, and returns the number of strong members.
pub(crate) fn weaken_members(
    members: &mut [u32],
    bound: usize,
    is_weak: impl Fn(u32) -> bool,
) -> usize {
    if members.len() <= bound {
        return members.len();
    }
    // Both parts keep their order, because searches in groups rely on ascending ranks.
    let (mut weak, mut strong) = (Vec::new(), 0);
    for at in 0..members.len() {
        match is_weak(members[at]) {
            true => weak.push(members[at]),
            false => {
                members[strong] = members[at];
                strong += 1;
            }
        }
    }
    members[strong..].copy_from_slice(&weak);
    strong
}

/// Returns those of some ascending ranks that are in a range.
pub(crate) fn ascending_within<'m>(members: &'m [u32], ranks: &Range<u32>) -> &'m [u32] {
    let later = &members[members.partition_point(|&rank| rank < ranks.start)..];
    &later[..later.partition_point(|&rank| rank < ranks.end)]
}

/// Converts virtual ranks to the ranks whose weak memberships they stand for: a rank from `ranks` on stands for a weak membership of the rank that
/// is `ranks` lower. Returns the number of strong members, or `None` if there are none.
pub(crate) fn split_virtual_ranks(members: &mut [u32], ranks: usize) -> Option<usize> {
    // Members are ascending, so virtual ranks are last.
    let strong = members.partition_point(|&rank| (rank as usize) < ranks);
    members[strong..]
        .iter_mut()
        .for_each(|rank| *rank -= ranks as u32);
    // Two weak members are no candidates, so a group without a strong one proposes nothing.
    (strong > 0).then_some(strong)
}

impl StoredGroups {
    /// Groups the collected keys; `rank_of` maps a class to its rank. If the groups do not all fit in memory, all of them are written to disk.
    pub(crate) fn new(
        sink: &KeySink,
        rank_of: &[u32],
        resources: &GroupResources<'_>,
    ) -> io::Result<Self> {
        let (needed, groups) = (AtomicU64::new(0), AtomicU64::new(0));
        // Numbers of groups have 32 bits in memory.
        let fits = |bytes: u64, groups: u64| bytes <= resources.memory && groups <= u32::MAX.into();
        let left_out = AtomicU64::new(0);
        let done = SharedProgress::default();
        let parts: Vec<Mutex<Option<GroupPartition>>> =
            (0..PARTS).map(|_| Mutex::default()).collect();
        let mut file = GroupFile::new(resources.folder)?;
        // Each thread holds the keys of a partition, and those of them that are shared.
        let bytes = 2 * sink.largest() * size_of::<KeyRecord>() as u64;
        let fitting = resources.memory / bytes.max(1);
        let threads = (resources.threads as u64).min(fitting).max(1) as usize;
        by_parts(threads, SharedKeys::new, |filter, part| {
            let mut records = filter.shared(sink.0.take(part)?);
            for record in &mut records {
                // After the filter, which drops nearly all records, because each access to `rank_of` is a cache miss.
                record[2] = rank_of[record[2] as usize];
            }
            let found = group(records, resources.most_texts, resources.across);
            // Counted here too, because a partition that goes to the file is dropped.
            left_out.fetch_add(found.left_out, Ordering::Relaxed);
            let more = found.bytes();
            // Which partitions still fit depends on the threads, but their total does not: it alone decides between memory and disk.
            let bytes = needed.fetch_add(more, Ordering::Relaxed) + more;
            let more = found.sizes.len() as u64;
            match fits(bytes, groups.fetch_add(more, Ordering::Relaxed) + more) {
                true => *lock(&parts[part]) = Some(found),
                false => found.write(&file, part)?,
            }
            done.add(1, resources.advance)
        })?;
        let parts = parts.into_iter().map(into_inner);
        if fits(needed.into_inner(), groups.into_inner()) {
            let parts = parts.flatten().collect();
            let groups = CandidateGroups::of_partitions(parts, rank_of.len(), resources.threads);
            return Ok(Self::InMemory(groups));
        }
        for (part, found) in parts.enumerate() {
            found.map_or(Ok(()), |found| found.write(&file, part))?;
        }
        release_free_memory();
        file.left_out = left_out.into_inner();
        Ok(Self::OnDisk(file))
    }
}

/// Sorts the records of one partition by key and returns the groups of at least two ranks within the limit.
fn group(
    mut records: Vec<KeyRecord>,
    most: Option<TextLimit<'_>>,
    across: Option<AcrossCategories<'_>>,
) -> GroupPartition {
    // By key and then by rank, so that the members of each group ascend. A number is compared without branches, unlike an array.
    records.sort_unstable_by_key(|record| u128::from(key_of(record)) << 32 | u128::from(record[2]));
    // A class may have a key twice, which would make a group with a single class.
    records.dedup();
    let mut part = GroupPartition::default();
    let mut categories = Vec::new();
    for group in records
        .chunk_by(|a, b| a[..2] == b[..2])
        .filter(|group| group.len() > 1)
    {
        if most.is_some_and(|most| most.is_exceeded(group)) {
            part.left_out += 1;
            continue;
        }
        let first = part.members.len();
        part.members.extend(group.iter().map(|record| record[2]));
        let Some(across) = across else {
            part.sizes.push(group.len() as u32);
            continue;
        };
        match across.split(&mut part.members[first..], &mut categories) {
            Some(strong) => part.end_group(first, strong),
            None => part.members.truncate(first),
        }
    }
    part
}

/// A filter, small enough for the cache, that drops most keys of single classes before the sort.
///
/// Memory: 64 KiB. A key passes if another key fell into its cell, so no shared key is lost.
struct SharedKeys {
    cells: Vec<u8>,
}

impl SharedKeys {
    const BITS: u32 = 18;

    fn new() -> Self {
        Self {
            cells: vec![0; 1 << (Self::BITS - 2)],
        }
    }

    /// Returns the cell of a key: a byte, and the position of two bits in it.
    #[inline]
    fn cell(record: KeyRecord) -> (usize, u32) {
        let key = key_of(&record);
        // All keys of a partition have the same last byte; multiplying by the golden ratio spreads the other bits to the leading ones.
        let cell = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::BITS)) as usize;
        (cell / 4, (cell % 4) as u32 * 2)
    }

    fn shared(&mut self, mut records: Vec<KeyRecord>) -> Vec<KeyRecord> {
        self.cells.fill(0);
        for &record in &records {
            let (byte, shift) = Self::cell(record);
            // A cell is 0 before any key, 1 after one, and 3 after more.
            let seen = self.cells[byte] >> shift & 3;
            // A third key must not change the neighbouring cell.
            self.cells[byte] |= (seen << 1 & 2 | 1) << shift;
        }
        records.retain(|&record| {
            let (byte, shift) = Self::cell(record);
            self.cells[byte] >> shift & 2 != 0
        });
        records
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::testing::in_memory;

    fn resources(folder: &Path, threads: usize) -> GroupResources<'_> {
        GroupResources {
            folder,
            threads,
            memory: u64::MAX,
            most_texts: None,
            across: None,
            advance: &|_| Ok(()),
        }
    }

    proptest! {
        #[test]
        fn keys_of_more_texts_than_may_share_one_make_no_group_and_are_counted(
            keys in prop::collection::vec((0..12_u64, 0..30_u32), 0..200), most in 2..9_usize, texts in 1..40_u32, threads in 1..3_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let sink = KeySink::new(folder.path(), 1 << 20).unwrap();
            let mut writer = sink.writer();
            keys.iter().for_each(|&(key, class)| writer.push(key, class).unwrap());
            writer.finish().unwrap();
            let ranks: Vec<u32> = (0..30).collect();
            let text = |rank: u32| (rank % texts).into();
            let resources = GroupResources { most_texts: Some(TextLimit { most, text: &text }), ..resources(folder.path(), threads) };
            let groups = in_memory(StoredGroups::new(&sink, &ranks, &resources).unwrap());
            let mut found: Vec<Vec<u32>> = (0..groups.len() as u32).map(|group| groups.members(group).to_vec()).collect();
            found.sort();
            let mut of_key: BTreeMap<u64, std::collections::BTreeSet<u32>> = BTreeMap::new();
            for (key, class) in keys {
                of_key.entry(key).or_default().insert(class);
            }
            let is_larger = |members: &std::collections::BTreeSet<u32>| {
                members.iter().map(|&rank| text(rank)).collect::<std::collections::BTreeSet<u128>>().len() > most
            };
            let larger = of_key.values().filter(|members| is_larger(members)).count();
            let mut expected: Vec<Vec<u32>> = of_key.into_values()
                .filter(|members| members.len() > 1 && !is_larger(members))
                .map(|members| members.into_iter().collect())
                .collect();
            expected.sort();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(groups.left_out, larger as u64);
        }
    }

    proptest! {
        #[test]
        fn across_categories_few_more_pairs_are_proposed_than_count(
            groups in prop::collection::vec(prop::collection::btree_set(0..40_u32, 2..30), 0..12),
            categories in prop::collection::vec(0..4_u64, 40),
            bound in 0..12_usize,
        ) {
            let mut keys = Vec::new();
            for (key, members) in (0..).zip(&groups) {
                keys.extend(members.iter().map(|&rank| key_record(key, rank)));
            }
            let of_rank = |rank: u32| categories[rank as usize];
            let across = AcrossCategories { of_rank: &of_rank, bound };
            let found = CandidateGroups::of_keys(keys, 40, Some(across));
            // By group: pairs of two categories, each with the members of the group.
            let mut counting = Vec::new();
            for group in 0..found.len() as u32 {
                let (mut proposed, mut counted) = (0, Vec::new());
                let GroupMembers { ranks, strong } = found.get(group);
                for (at, &x) in ranks.iter().enumerate() {
                    for &y in &ranks[at + 1..] {
                        let are_candidates = at < strong;
                        proposed += usize::from(are_candidates);
                        if of_rank(x) != of_rank(y) {
                            prop_assert!(are_candidates);
                            counted.push((x.min(y), x.max(y)));
                        }
                    }
                }
                prop_assert!(!counted.is_empty());
                prop_assert!(ranks.len() <= bound || 2 * proposed <= 3 * counted.len());
                counted.sort_unstable();
                counting.push(counted);
            }
            let all_pairs = |members: &std::collections::BTreeSet<u32>| {
                let pairs = members.iter().flat_map(|&x| members.range(x + 1..).map(move |&y| (x, y)));
                pairs.filter(|&(x, y)| of_rank(x) != of_rank(y)).collect::<Vec<_>>()
            };
            let mut expected: Vec<_> = groups.iter().map(all_pairs).filter(|pairs| !pairs.is_empty()).collect();
            counting.sort();
            expected.sort();
            prop_assert_eq!(counting, expected);
        }
    }

    #[test]
    fn progress_of_several_threads_went_back() {
        let folder = tempfile::tempdir().unwrap();
        let sink = KeySink::new(folder.path(), 0).unwrap();
        let seen = Mutex::new(Vec::new());
        let advance = |done: u64| {
            if done == 1 {
                // Time for other threads to report more.
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            lock(&seen).push(done);
            Ok(())
        };
        let resources = GroupResources {
            advance: &advance,
            ..resources(folder.path(), 3)
        };
        StoredGroups::new(&sink, &[], &resources).unwrap();
        let expected: Vec<u64> = (1..=PARTS as u64).collect();
        assert_eq!(into_inner(seen), expected);
    }

    #[test]
    fn a_key_of_many_made_a_key_of_one_in_the_next_cell_count() {
        let mut by_byte: BTreeMap<usize, [Option<KeyRecord>; 4]> = BTreeMap::new();
        for number in 0..200_000_u32 {
            let record = [0, number, 0];
            let (byte, shift) = SharedKeys::cell(record);
            by_byte.entry(byte).or_default()[shift as usize / 2] = Some(record);
        }
        let mut pairs = by_byte
            .into_values()
            .filter_map(|cells| Some((cells[0]?, cells[1]?)));
        let (many, one) = pairs.next().unwrap();
        let records = vec![many, many, many, one];
        assert_eq!(SharedKeys::new().shared(records), [many; 3]);
    }

    proptest! {
        #[test]
        fn groups_equal_a_map_of_keys(
            keys in prop::collection::vec((prop_oneof![0..40_u64, any::<u64>()], 0..50_u32), 0..3000),
            budget in prop_oneof![Just(0_u64), Just(1 << 20)],
            threads in 1..4_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let sink = KeySink::new(folder.path(), budget).unwrap();
            let mut writer = sink.writer();
            for &(key, class) in &keys {
                writer.push(key, class).unwrap();
            }
            writer.finish().unwrap();
            let rank_of: Vec<u32> = (0..50).map(|class| (class * 7 + 3) % 50).collect();
            let groups = in_memory(StoredGroups::new(&sink, &rank_of, &resources(folder.path(), threads)).unwrap());

            let mut expected: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for &(key, class) in &keys {
                expected.entry(key).or_default().push(rank_of[class as usize]);
            }
            let mut expected: Vec<Vec<u32>> = expected.into_values().map(|mut members| {
                members.sort_unstable();
                members.dedup();
                members
            }).filter(|members| members.len() > 1).collect();
            let mut found: Vec<Vec<u32>> = (0..groups.len() as u32).map(|g| groups.members(g).to_vec()).collect();
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
            for rank in 0..50 {
                for membership in groups.of(rank) {
                    prop_assert!(groups.members(membership.group).contains(&rank) && !membership.is_weak);
                }
            }
            prop_assert_eq!(groups.lists.len(), groups.members.len());
        }
    }
}
