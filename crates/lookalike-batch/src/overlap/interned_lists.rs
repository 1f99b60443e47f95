//! Lists that are equal, counted as one.
//!
//! Where pages are versions of one another, most chunks are in the same pages as the chunk before: the two versions of a
//! manual page share hundreds of chunks, and all of these have the same list of two units. Such a list is kept once with
//! its *weight*, the number of chunks that have it, and counting adds the weight instead of going through it so often.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Behind the last unit of a list.
pub(super) const END: u32 = u32::MAX;

/// Bytes that a list needs here at most, beside its units.
pub(super) const BYTES: u64 = 24;

/// A list of units, and how many chunks have it.
#[derive(Clone, Copy)]
pub(super) struct InternedList {
    /// Its first unit's place among the members.
    pub(super) start: u32,
    hash: u32,
    pub(super) weight: u32,
}

/// Different lists of ascending units, each with its weight.
pub(super) struct InternedLists {
    /// Units of all lists, with [`END`] behind each.
    pub(super) members: Vec<u32>,
    pub(super) lists: Vec<InternedList>,
    table: HashTable<u32>,
}

impl InternedLists {
    /// No lists yet, and room for so many.
    pub(super) fn new(lists: usize) -> Self {
        Self {
            members: Vec::new(),
            lists: Vec::new(),
            table: HashTable::with_capacity(lists),
        }
    }

    /// Takes the list of one more chunk. All lists together have fewer than [`END`] units and ends.
    pub(super) fn add(&mut self, list: &[u32]) {
        let hash = xxh3_64(bytemuck::cast_slice(list));
        let Self {
            members,
            lists,
            table,
        } = self;
        let is_equal = |&number: &u32| {
            let found = lists[number as usize];
            let units = &members[found.start as usize..];
            found.hash == hash as u32
                && units.len() > list.len()
                && units[..list.len()] == *list
                // A longer list may begin with this one.
                && units[list.len()] == END
        };
        if let Some(&number) = table.find(hash, is_equal) {
            // Fewer than 2^32 chunks: each takes a place among the members of its list, or shares one.
            lists[number as usize].weight += 1;
            return;
        }
        // Only the lower half of a hash is kept; the table asks for the whole again only where it grows.
        let number = lists.len() as u32;
        lists.push(InternedList {
            start: members.len() as u32,
            hash: hash as u32,
            weight: 1,
        });
        members.extend_from_slice(list);
        members.push(END);
        table.insert_unique(hash, number, |&number| {
            let start = lists[number as usize].start as usize;
            let units = members[start..].iter().take_while(|&&unit| unit != END);
            xxh3_64(bytemuck::cast_slice(&members[start..start + units.count()]))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every list stands once, with the number of times that it was added, whatever room was made for.
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
