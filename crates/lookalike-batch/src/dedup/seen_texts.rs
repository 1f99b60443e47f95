//! Texts by their hashes: which were seen before, and the class that each belongs to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;

use crate::dedup::class_id::ClassId;
use crate::spill::partitions::{into_inner, lock};

/// Texts seen so far, by hash: 64 parts with a lock each.
///
/// Memory: 20 bytes a class and 5 to 11 of the table, and room to grow.
pub(crate) struct SeenTexts {
    parts: Vec<Mutex<SeenPart>>,
    next: AtomicUsize,
}

/// Classes in order of arrival, and a table of their positions: 5 bytes an entry, so that it stays in cache long after
/// a table of hashes would have left it.
#[derive(Default)]
struct SeenPart {
    table: HashTable<u32>,
    hashes: Vec<u128>,
    classes: Vec<ClassId>,
}

impl SeenPart {
    fn insert(&mut self, hash: u128, class: ClassId) {
        let Self {
            table,
            hashes,
            classes,
        } = self;
        let position = classes.len() as u32;
        hashes.push(hash);
        classes.push(class);
        table.insert_unique(hash as u64, position, |&p| hashes[p as usize] as u64);
    }
}

impl SeenTexts {
    /// Bytes of a class, about.
    pub(crate) const CLASS_BYTES: u64 = 36;

    pub(crate) fn new() -> Self {
        Self {
            // Far more parts than threads, so that two seldom want the same lock.
            parts: (0..64).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The class of a text, and whether it is new. None when there are too many.
    pub(crate) fn class(&self, hash: u128) -> Option<(ClassId, bool)> {
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        // Any 64 bits of a cryptographic hash are as good as a hash of it.
        let is_it = |&position: &u32| part.hashes[position as usize] == hash;
        if let Some(&position) = part.table.find(hash as u64, is_it) {
            return Some((part.classes[position as usize], false));
        }
        // Within the lock of the part: no two threads give one text two numbers. Numbers depend on who comes
        // first; nothing else does, for ranks replace them.
        let class = ClassId::new(self.next.fetch_add(1, Ordering::Relaxed))?;
        part.insert(hash, class);
        Some((class, true))
    }

    /// Enters a text that was seen when a log was written, with its class there. Only before all others.
    pub(crate) fn restore(&self, hash: u128, class: ClassId) {
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        part.insert(hash, class);
        self.next.fetch_max(class.position() + 1, Ordering::Relaxed);
    }

    /// The hash of each of so many classes. Each part is let go of before the next one is looked at.
    pub(crate) fn into_hashes(self, classes: usize) -> Vec<u128> {
        let mut hashes = vec![0; classes];
        for part in self.parts {
            let part = into_inner(part);
            drop(part.table);
            for (class, hash) in part.classes.iter().zip(part.hashes) {
                // One whose batch was never collected belongs to a job that failed.
                if let Some(place) = hashes.get_mut(class.position()) {
                    *place = hash;
                }
            }
        }
        hashes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
