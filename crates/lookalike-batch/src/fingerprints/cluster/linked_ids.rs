//! Collects the ids of documents in classes, to detect other documents with the same id.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::sorted_fingerprints::SortedKeys;
use crate::fingerprints::files::ListedId;
use crate::spill::table_column::TableColumn;

/// Hashes of 128 bits, which practically never collide.
#[derive(Default)]
pub(super) struct LinkedIds {
    hashes: TableColumn<u128>,
}

/// The hashes in order, once all have been added.
pub(super) struct SortedIds {
    all: SortedKeys<u128>,
    /// Hashes that several documents share.
    repeated: Vec<u128>,
}

fn hash(id: &ListedId<'_>) -> u128 {
    match id {
        // Seed by kind, since the eight bytes of a number may also be a text.
        ListedId::Number(number) => xxh3_128_with_seed(&number.to_le_bytes(), 1),
        ListedId::Text(text) => xxh3_128_with_seed(text.as_bytes(), 0),
    }
}

impl LinkedIds {
    pub(super) fn add(&mut self, id: &ListedId<'_>) {
        self.hashes.push(hash(id));
    }

    /// Returns the bytes that the hashes take when they are sorted.
    pub(super) fn memory(&self) -> u64 {
        SortedKeys::<u128>::memory(self.hashes.capacity() as u64)
    }

    pub(super) fn sorted(self) -> SortedIds {
        let Self { mut hashes } = self;
        hashes.sort_unstable();
        let pairs = hashes.windows(2).filter(|pair| pair[0] == pair[1]);
        let mut repeated: Vec<u128> = pairs.map(|pair| pair[0]).collect();
        repeated.dedup();
        hashes.dedup();
        SortedIds {
            all: SortedKeys::new(hashes),
            repeated,
        }
    }
}

impl SortedIds {
    /// Tells whether another document has this id. `was_added` tells whether the document itself was added. Repetitions among documents that were not
    /// added are not detected.
    pub(super) fn is_repeated(&self, id: &ListedId<'_>, was_added: bool) -> bool {
        match was_added {
            // The document's own hash is among all, so only a hash that was added twice shows another document.
            true => !self.repeated.is_empty() && self.repeated.binary_search(&hash(id)).is_ok(),
            false => self.all.find(hash(id)).is_some(),
        }
    }
}
