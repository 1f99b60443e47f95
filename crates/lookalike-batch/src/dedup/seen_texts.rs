//! Texts that have been seen, by hash, with the class of each.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use hashbrown::HashTable;

use crate::dedup::class_id::ClassId;
use crate::locks::lock;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::TableAllocator;

/// Texts seen so far, by hash, in 64 parts with a lock each.
///
/// Memory: 16 bytes per class, 10 to 20 for the table, and spare capacity.
pub(crate) struct SeenTexts {
    parts: Vec<Mutex<HashTable<KnownText, TableAllocator>>>,
    hashes: SharedHashes,
    next: AtomicUsize,
}

/// An entry of a table. It has enough of the hash to grow the table and to distinguish most texts without reading the complete hash, which
/// would be a cache miss or a disk access.
#[derive(Clone, Copy)]
struct KnownText {
    hash: u32,
    position: u32,
}

impl KnownText {
    /// Returns the hash for the table, which uses both ends of a 64-bit number.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

/// The two halves of a hash.
type HashCell = [AtomicU64; 2];

/// Blocks of hashes; a block is created with its first class.
type HashBlocks = Box<[OnceLock<TableColumn<HashCell>>]>;

/// Hashes by class, in blocks that do not move, because some threads read while others add.
struct SharedHashes {
    groups: Vec<OnceLock<HashBlocks>>,
}

impl SharedHashes {
    /// Number of hashes in a block: one MiB, which returns to the system as soon as it is freed.
    const BLOCK: usize = 1 << 16;
    /// Number of blocks in a group, and of groups; enough for the maximum number of classes.
    const GROUP: usize = 1 << 8;

    fn new() -> Self {
        Self {
            groups: (0..Self::GROUP).map(|_| OnceLock::new()).collect(),
        }
    }

    // A vector would move its hashes when it grows. A block is found by two indices, and is never moved or freed before the end.
    fn cell(&self, position: usize) -> &HashCell {
        let block = position / Self::BLOCK;
        let group = self.groups[block / Self::GROUP]
            .get_or_init(|| (0..Self::GROUP).map(|_| OnceLock::new()).collect());
        let block = group[block % Self::GROUP].get_or_init(|| TableColumn::zeroed(Self::BLOCK));
        &block[position % Self::BLOCK]
    }

    fn get(&self, position: u32) -> u128 {
        hash_of(self.cell(position as usize))
    }

    fn set(&self, position: usize, hash: u128) {
        let [high, low] = self.cell(position);
        high.store((hash >> 64) as u64, Ordering::Relaxed);
        low.store(hash as u64, Ordering::Relaxed);
    }
}

/// Returns the hash in a cell. Relaxed loads suffice, because readers of a class have held the lock under which its hash was set.
fn hash_of([high, low]: &HashCell) -> u128 {
    let half = |half: &AtomicU64| u128::from(half.load(Ordering::Relaxed));
    half(high) << 64 | half(low)
}

impl SeenTexts {
    /// Maximum number of bytes per class.
    pub(crate) const CLASS_BYTES: u64 = 36;

    pub(crate) fn new() -> Self {
        Self {
            // Many more parts than threads, so that two threads seldom need the same lock.
            parts: (0..64)
                .map(|_| Mutex::new(HashTable::new_in(TableAllocator::new())))
                .collect(),
            hashes: SharedHashes::new(),
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the class of a text, and whether it is new. Returns `None` if there are too many classes.
    pub(crate) fn class(&self, hash: u128) -> Option<(ClassId, bool)> {
        // The upper six bits choose one of 64 parts; tables use the lower ones.
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        let is_it =
            |text: &KnownText| text.hash == hash as u32 && self.hashes.get(text.position) == hash;
        if let Some(text) = part.find(KnownText::spread(hash as u32), is_it) {
            return Some((ClassId::new(text.position as usize)?, false));
        }
        // Under the lock of the part, so that no text gets two numbers. The numbers depend on which thread is first, but nothing else does, because
        // ranks replace them.
        let class = ClassId::new(self.next.fetch_add(1, Ordering::Relaxed))?;
        self.insert(&mut part, hash, class);
        Some((class, true))
    }

    /// Adds a text from a log, with its class in the log. Must be called before any call of [`Self::class`].
    pub(crate) fn restore(&self, hash: u128, class: ClassId) {
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        self.insert(&mut part, hash, class);
        self.next.fetch_max(class.position() + 1, Ordering::Relaxed);
    }

    fn insert(&self, part: &mut HashTable<KnownText, TableAllocator>, hash: u128, class: ClassId) {
        let position = class.position();
        self.hashes.set(position, hash);
        let text = KnownText {
            // Any bits of a cryptographic hash can serve as a hash of it.
            hash: hash as u32,
            position: position as u32,
        };
        let spread = |text: &KnownText| KnownText::spread(text.hash);
        part.insert_unique(spread(&text), text, spread);
    }

    /// Returns the hash of each class. Frees the tables first, and each block before the next one is read.
    pub(crate) fn into_hashes(self, classes: usize) -> TableColumn<u128> {
        let Self { parts, hashes, .. } = self;
        drop(parts);
        let mut all = TableColumn::with_capacity(classes);
        let groups = hashes.groups.into_iter().filter_map(OnceLock::into_inner);
        for block in groups.flatten() {
            // A class whose batch was never collected occurs only in a job that failed.
            let end = classes.min(all.len() + SharedHashes::BLOCK);
            let cells = block.into_inner().unwrap_or_default();
            all.extend(cells.iter().take(end - all.len()).map(hash_of));
            all.resize(end, 0);
        }
        all.resize(classes, 0);
        all
    }
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::map_parallel;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_of_many_blocks_keep_their_hashes() {
        let seen = SeenTexts::new();
        let classes = 2 * SharedHashes::BLOCK + 5;
        let hash = |class: usize| (class as u128 + 1).wrapping_mul(u128::MAX / 1_000_003);
        map_parallel(0..3, |thread| {
            // Every text occurs twice, in different threads.
            for text in (0..classes).filter(|class| class % 3 != thread) {
                seen.class(hash(text)).unwrap();
            }
        });
        let mut numbers = vec![0; classes];
        for text in 0..classes {
            let (class, is_new) = seen.class(hash(text)).unwrap();
            assert!(!is_new);
            numbers[class.position()] = hash(text);
        }
        assert!(seen.into_hashes(classes) == numbers);
    }

    proptest! {
        #[test]
        fn each_class_has_the_hash_that_it_was_seen_with(
            texts in prop::collection::vec((0..40_u128).prop_map(|text| text.wrapping_mul(u128::MAX / 37)), 0..80),
        ) {
            let seen = SeenTexts::new();
            let mut expected: Vec<u128> = Vec::new();
            for &hash in &texts {
                let (class, is_new) = seen.class(hash).unwrap();
                prop_assert_eq!(is_new, !expected.contains(&hash));
                if is_new {
                    expected.push(hash);
                }
                prop_assert_eq!(expected[class.position()], hash);
            }
            prop_assert_eq!(seen.into_hashes(expected.len()), expected);
        }
    }
}
