//! Assigns numbers to the distinct ids of a list of pairs.

use std::cmp::Ordering;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fingerprints::files::ListedId;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::TableAllocator;

/// Ids by number. Memory: their bytes, and about 16 more for each.
#[derive(Default)]
pub(super) struct IdTable {
    bytes: TableColumn<u8>,
    // The start of an id is the end of the one before it, so a table of ids needs no second column.
    /// End of each id, shifted left by one; the lowest bit is set if the id is a number.
    ends: TableColumn<u64>,
    numbers: HashTable<u32, TableAllocator>,
}

/// Returns the bytes of an id, and whether it is a number.
fn bytes_of<'a>(id: &'a ListedId<'_>, number: &'a mut [u8; 8]) -> (&'a [u8], bool) {
    match id {
        ListedId::Number(value) => {
            // Big-endian, so that bytes compare as the numbers do.
            *number = value.to_be_bytes();
            (number, true)
        }
        ListedId::Text(text) => (text.as_bytes(), false),
    }
}

fn hash(bytes: &[u8], is_number: bool) -> u64 {
    // Seed by kind, since the eight bytes of a number may also be a text.
    xxh3_64_with_seed(bytes, u64::from(is_number))
}

impl IdTable {
    /// Returns the number of ids.
    pub(super) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory(&self) -> u64 {
        // Each slot of the hash table has a control byte.
        let table = self.numbers.capacity() * (size_of::<u32>() + 1);
        (self.bytes.capacity() + 8 * self.ends.capacity() + table) as u64
    }

    /// Returns the bytes of an id, and whether it is a number.
    fn entry(&self, number: u32) -> (&[u8], bool) {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] >> 1);
        let end = self.ends[at];
        (
            &self.bytes[start as usize..(end >> 1) as usize],
            end & 1 == 1,
        )
    }

    /// Returns the id with a number.
    pub(super) fn id(&self, number: u32) -> ListedId<'_> {
        let (bytes, is_number) = self.entry(number);
        match bytes.try_into() {
            Ok(eight) if is_number => ListedId::Number(u64::from_be_bytes(eight)),
            // Texts were added from `str`, so nothing is replaced here and nothing is copied.
            _ => ListedId::Text(String::from_utf8_lossy(bytes)),
        }
    }

    /// Returns the number of an id, or `None` if it is not in the table.
    pub(super) fn find(&self, id: &ListedId<'_>) -> Option<u32> {
        let mut eight = [0; 8];
        let (bytes, is_number) = bytes_of(id, &mut eight);
        let is_it = |&number: &u32| self.entry(number) == (bytes, is_number);
        self.numbers.find(hash(bytes, is_number), is_it).copied()
    }

    /// Returns the number of an id, which is added if it is missing.
    pub(super) fn number(&mut self, id: &ListedId<'_>) -> u32 {
        if let Some(number) = self.find(id) {
            return number;
        }
        let mut eight = [0; 8];
        let (bytes, is_number) = bytes_of(id, &mut eight);
        let number = self.len();
        self.bytes.extend_from_slice(bytes);
        self.ends
            .push((self.bytes.len() as u64) << 1 | u64::from(is_number));
        let Self {
            bytes: all,
            ends,
            numbers,
        } = self;
        // Hashes are not stored; a growing table computes them again from the bytes.
        let again = |&number: &u32| {
            let at = number as usize;
            let start = at.checked_sub(1).map_or(0, |before| ends[before] >> 1);
            let end = ends[at];
            hash(&all[start as usize..(end >> 1) as usize], end & 1 == 1)
        };
        numbers.insert_unique(hash(bytes, is_number), number, again);
        number
    }

    /// Compares two ids: numbers come first, by value, then texts byte by byte.
    pub(super) fn compare(&self, a: u32, b: u32) -> Ordering {
        let key = |number| {
            let (bytes, is_number) = self.entry(number);
            // `false` sorts before `true`, so numbers come first; big-endian bytes of equal length compare as the numbers do.
            (!is_number, bytes)
        };
        key(a).cmp(&key(b))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ids() -> impl Strategy<Value = Vec<ListedId<'static>>> {
        let id = prop_oneof![
            prop_oneof![0..20_u64, any::<u64>()].prop_map(ListedId::Number),
            "[0-9é]{0,9}".prop_map(|text| ListedId::Text(text.into())),
        ];
        prop::collection::vec(id, 0..200)
    }

    proptest! {
        #[test]
        fn an_id_has_one_number_by_which_it_is_found_and_ordered(ids in ids()) {
            let (mut table, mut expected) = (IdTable::default(), BTreeMap::new());
            for id in &ids {
                let next = expected.len() as u32;
                let number = *expected.entry(id.clone()).or_insert(next);
                prop_assert_eq!(table.number(id), number);
            }
            prop_assert_eq!(table.len() as usize, expected.len());
            let mut sorted: Vec<u32> = (0..table.len()).collect();
            sorted.sort_by(|&a, &b| table.compare(a, b));
            let found: Vec<(ListedId<'_>, u32)> = sorted.iter().map(|&number| (table.id(number), number)).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            for id in &ids {
                prop_assert_eq!(table.id(table.find(id).unwrap()), id.clone());
            }
            prop_assert_eq!(table.find(&ListedId::Text("none of them".into())), None);
        }
    }
}
