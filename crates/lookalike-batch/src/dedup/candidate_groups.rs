//! From candidate keys to groups of classes that share a key.
//!
//! Each method gives every class some keys such that two classes that the method must compare share one: the prefix
//! of the feature set ([`Method::AllPairs`]), bands of a signature, super-shingles, blocks of a fingerprint. A
//! [`KeySink`] collects (key, class); [`CandidateGroups`] sorts them by key, forgets the keys that one class alone has (nearly
//! all of them, in most collections) and keeps the rest as two compressed tables: classes of each group, and groups
//! of each class. Classes are called by their rank here, the most wanted one first.
//!
//! [`Method::AllPairs`]: crate::settings::Method::AllPairs

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::spill::partitions::{PARTS, PartitionedFile, SpoolWriter, lock};
use crate::spill::prefetch::prefetch;

/// Key in the first two words, class in the third.
pub(crate) type KeyRecord = [u32; 3];

/// Collector of candidate keys; shared between threads, each with a [`KeyWriter`] of its own.
///
/// Memory: the budget; beyond it keys go to a temporary file, 12 bytes each.
pub(crate) struct KeySink(PartitionedFile<KeyRecord>);

impl KeySink {
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        PartitionedFile::new(folder, budget).map(Self)
    }

    pub(crate) fn writer(&self) -> KeyWriter<'_> {
        KeyWriter(SpoolWriter::new(&self.0))
    }

    /// Takes one of [`PARTS`] partitions out: all its records, in no particular order.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<KeyRecord>> {
        self.0.take(part)
    }
}

/// One thread's end of a [`KeySink`].
pub(crate) struct KeyWriter<'s>(SpoolWriter<'s, KeyRecord>);

impl KeyWriter<'_> {
    /// Gives a key to a class.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, class: u32) -> io::Result<()> {
        // The smallest features of a set are its prefix, so leading bits are alike: partition by the last ones.
        self.0.push(
            (key % PARTS as u64) as usize,
            [(key >> 32) as u32, key as u32, class],
        )
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Classes that share keys, by rank.
///
/// Memory: 8 bytes a posting (a class in a group), 8 a group, 8 a class.
#[derive(Default)]
pub(crate) struct CandidateGroups {
    /// Ranks of the members of all groups, ascending in each.
    pub(crate) members: Vec<u32>,
    /// Start of each group in `members`; one more at the end.
    pub(crate) starts: Vec<u64>,
    /// Groups of all ranks.
    pub(crate) lists: Vec<u32>,
    /// Start of the list of each rank in `lists`; one more at the end.
    pub(crate) list_starts: Vec<u64>,
}

/// Resources of [`CandidateGroups::new`].
pub(crate) struct GroupResources<'a> {
    pub(crate) threads: usize,
    /// Bytes that all groups may take.
    pub(crate) memory: u64,
    /// Hears how many of [`PARTS`] are done.
    pub(crate) advance: &'a (dyn Fn(u64) + Sync),
}

/// Reason why keys could not be grouped.
#[derive(Debug)]
pub(crate) enum GroupError {
    /// The temporary file failed.
    Io(io::Error),
    /// The groups need so many bytes, more than there are.
    TooLarge(u64),
}

impl From<io::Error> for GroupError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The groups of one partition: sizes, and members one group after another.
#[derive(Default)]
struct GroupPartition {
    sizes: Vec<u32>,
    members: Vec<u32>,
}

impl CandidateGroups {
    /// Groups the collected keys. `rank_of` turns a class into its rank.
    pub(crate) fn new(
        sink: &KeySink,
        rank_of: &[u32],
        resources: &GroupResources<'_>,
    ) -> Result<Self, GroupError> {
        let parts = partitions(sink, rank_of, resources)?;
        let postings = parts.iter().map(|part| part.members.len()).sum();
        let mut groups = Self {
            members: Vec::with_capacity(postings),
            starts: vec![0],
            ..Self::default()
        };
        for part in parts {
            groups.members.extend_from_slice(&part.members);
            for size in part.sizes {
                groups
                    .starts
                    .push(groups.starts.last().expect("begins with 0") + u64::from(size));
            }
        }
        groups.invert(rank_of.len());
        Ok(groups)
    }

    /// Fills `lists` from `members`.
    pub(crate) fn invert(&mut self, ranks: usize) {
        const AHEAD: usize = 24;
        let mut ends = vec![0_u64; ranks + 1];
        for (i, &rank) in self.members.iter().enumerate() {
            if let Some(&later) = self.members.get(i + AHEAD) {
                prefetch(&ends, later as usize + 1);
            }
            ends[rank as usize + 1] += 1;
        }
        for rank in 0..ranks {
            ends[rank + 1] += ends[rank];
        }
        self.list_starts.clone_from(&ends);
        self.lists = vec![0; self.members.len()];
        for group in 0..self.len() {
            for i in self.starts[group] as usize..self.starts[group + 1] as usize {
                if let Some(&later) = self.members.get(i + AHEAD) {
                    prefetch(&ends, later as usize);
                }
                let end = &mut ends[self.members[i] as usize];
                self.lists[*end as usize] = group as u32;
                *end += 1;
            }
        }
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Members of a group, ascending.
    pub(crate) fn members(&self, group: u32) -> &[u32] {
        &self.members
            [self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }

    /// Groups of a rank.
    pub(crate) fn of(&self, rank: u32) -> &[u32] {
        &self.lists
            [self.list_starts[rank as usize] as usize..self.list_starts[rank as usize + 1] as usize]
    }

    /// Asks for what [`CandidateGroups::members`] will touch for the groups of these ranks.
    pub(crate) fn prefetch(&self, ranks: Range<u32>) {
        let (from, to) = (
            self.list_starts[ranks.start as usize],
            self.list_starts[ranks.end as usize],
        );
        let groups = &self.lists[from as usize..to as usize];
        groups
            .iter()
            .for_each(|&group| prefetch(&self.starts, group as usize));
        for &group in groups {
            prefetch(&self.members, self.starts[group as usize] as usize);
        }
    }

    /// Bytes that this many postings of this many classes need at the peak of building.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_needed(
            self.members.len(),
            self.starts.len(),
            self.list_starts.len(),
        )
    }
}

/// Bytes that so many postings, groups and ranks need at the peak of building.
fn bytes_needed(postings: usize, groups: usize, ranks: usize) -> u64 {
    (postings * 8 + groups * 8 + ranks * 16) as u64
}

fn partitions(
    sink: &KeySink,
    rank_of: &[u32],
    resources: &GroupResources<'_>,
) -> Result<Vec<GroupPartition>, GroupError> {
    // Every rank has the start of its list; the rest comes as it is found.
    let needed = AtomicU64::new(bytes_needed(0, 0, rank_of.len()));
    let parts: Mutex<Vec<GroupPartition>> =
        Mutex::new((0..PARTS).map(|_| GroupPartition::default()).collect());
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        let mut filter = SharedKeys::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                return Ok(());
            }
            let records = filter.shared(sink.0.take(part)?);
            let found = group(records, rank_of);
            let more = bytes_needed(found.members.len(), found.sizes.len(), 0);
            // Once they do not fit they are counted only, to say what would do.
            if needed.fetch_add(more, Ordering::Relaxed) + more <= resources.memory {
                lock(&parts)[part] = found;
            }
            (resources.advance)(part as u64 + 1);
        }
    };
    std::thread::scope(|scope| -> io::Result<()> {
        let workers: Vec<_> = (1..resources.threads).map(|_| scope.spawn(work)).collect();
        work()?;
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    let needed = needed.into_inner();
    if needed > resources.memory {
        return Err(GroupError::TooLarge(needed));
    }
    Ok(parts
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Sorts the records of one partition by key and keeps the groups of two and more.
fn group(mut records: Vec<KeyRecord>, rank_of: &[u32]) -> GroupPartition {
    for record in &mut records {
        record[2] = rank_of[record[2] as usize];
    }
    records.sort_unstable();
    records.dedup();
    let mut part = GroupPartition::default();
    for group in records
        .chunk_by(|a, b| a[..2] == b[..2])
        .filter(|group| group.len() > 1)
    {
        part.sizes.push(group.len() as u32);
        part.members.extend(group.iter().map(|record| record[2]));
    }
    part
}

/// A filter in cache that drops most keys of one class alone before the sort.
///
/// Memory: 64 KiB. A key passes when another key fell into its cell, so no shared key is lost.
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

    /// Cell of a key: two bits in a byte of four.
    #[inline]
    fn cell(record: KeyRecord) -> (usize, u32) {
        let key = u64::from(record[0]) << 32 | u64::from(record[1]);
        let cell = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::BITS)) as usize;
        (cell / 4, (cell % 4) as u32 * 2)
    }

    fn shared(&mut self, mut records: Vec<KeyRecord>) -> Vec<KeyRecord> {
        self.cells.fill(0);
        for &record in &records {
            let (byte, shift) = Self::cell(record);
            let seen = self.cells[byte] >> shift & 3;
            self.cells[byte] |= (seen << 1 | 1) << shift;
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

    fn resources(threads: usize) -> GroupResources<'static> {
        GroupResources {
            threads,
            memory: u64::MAX,
            advance: &|_| (),
        }
    }

    #[test]
    fn groups_that_do_not_fit_are_refused_with_what_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let sink = KeySink::new(folder.path(), 1 << 20).unwrap();
        let mut writer = sink.writer();
        for class in 0..1000 {
            writer.push(u64::from(class / 2), class).unwrap();
        }
        writer.finish().unwrap();
        let ranks: Vec<u32> = (0..1000).collect();
        let few = GroupResources {
            memory: 20_000,
            ..resources(2)
        };
        let Err(GroupError::TooLarge(needed)) = CandidateGroups::new(&sink, &ranks, &few) else {
            panic!("28,000 bytes fit 20,000");
        };
        assert_eq!(needed, 1000 * 16 + 1000 * 8 + 500 * 8);
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
            let groups = CandidateGroups::new(&sink, &rank_of, &resources(threads)).unwrap();

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
                for &group in groups.of(rank) {
                    prop_assert!(groups.members(group).contains(&rank));
                }
            }
            prop_assert_eq!(groups.lists.len(), groups.members.len());
        }
    }
}
