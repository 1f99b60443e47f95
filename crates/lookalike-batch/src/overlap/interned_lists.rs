//! Stores equal lists once, with their number.
//!
//! If pages are versions of one another, most chunks are in the same pages as the chunk before. Two versions of a manual page share hundreds of
//! chunks, all with the same list of two units. Such a list is stored once with its *weight*, the number of chunks that have it. Counting adds the
//! weight instead of walking the list again.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// End marker after the last unit of a list.
pub(super) const END: u32 = u32::MAX;

/// Maximum bytes for a list, besides its units.
pub(super) const BYTES: u64 = 24;

/// A list of units and the number of chunks that have it.
#[derive(Clone, Copy)]
pub(super) struct InternedList {
    /// Place of its first unit in `members`.
    pub(super) start: u32,
    hash: u32,
    pub(super) weight: u32,
}

/// Different lists of ascending units, each with a weight.
pub(super) struct InternedLists {
    /// Units of all lists, and [`END`] after each list.
    pub(super) members: Vec<u32>,
    pub(super) lists: Vec<InternedList>,
    table: HashTable<u32>,
}

impl InternedLists {
    /// Creates a table with room for `lists` lists.
    pub(super) fn new(lists: usize) -> Self {
        Self {
            members: Vec::new(),
            lists: Vec::new(),
            // For all lists at once: growing would hold two tables.
            table: HashTable::with_capacity(lists),
        }
    }

    /// Adds the list of one more chunk. All lists together must have fewer than [`END`] units and end markers.
    pub(super) fn add(&mut self, list: &[u32]) {
        let hash = xxh3_64(bytemuck::cast_slice(list));
        let is_equal = |&number: &u32| {
            let found = self.lists[number as usize];
            let units = &self.members[found.start as usize..];
            found.hash == hash as u32
                && units.len() > list.len()
                && units[..list.len()] == *list
                // A longer list may start with this one.
                && units[list.len()] == END
        };
        if let Some(&number) = self.table.find(hash, is_equal) {
            // The weight cannot overflow, since there are fewer than 2^32 chunks.
            self.lists[number as usize].weight += 1;
            return;
        }
        // Only the lower half of the hash is stored. The table needs the whole hash only when it grows, and computes it again.
        let number = self.lists.len() as u32;
        self.lists.push(InternedList {
            start: self.members.len() as u32,
            hash: hash as u32,
            weight: 1,
        });
        self.members.extend_from_slice(list);
        self.members.push(END);
        self.table.insert_unique(hash, number, |&number| {
            let start = self.lists[number as usize].start as usize;
            let units = self.members[start..]
                .iter()
                .take_while(|&&unit| unit != END);
            xxh3_64(bytemuck::cast_slice(
                &self.members[start..start + units.count()],
            ))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every list is stored once, with the number of times that it was added, whatever the initial capacity.
        #[test]
        fn lists_are_counted_as_a_map_counts_them(
            given in prop::collection::vec(prop::collection::btree_set(0_u32..5, 2..5), 0..80),
            room in 0..90_usize,
        ) {
            let mut alike = InternedLists::new(room);
            let mut expected = BTreeMap::new();
            for list in &given {
                let list: Vec<u32> = list.iter().copied().collect();
                alike.add(&list);
                *expected.entry(list).or_insert(0) += 1;
            }
            let of = |list: &InternedList| {
                let units = alike.members[list.start as usize..].iter().copied();
                (units.take_while(|&unit| unit != END).collect::<Vec<_>>(), list.weight)
            };
            let found: BTreeMap<Vec<u32>, u32> = alike.lists.iter().map(of).collect();
            prop_assert_eq!((alike.lists.len(), found), (expected.len(), expected));
        }
    }
}
