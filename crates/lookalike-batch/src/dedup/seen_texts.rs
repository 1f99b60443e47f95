//! Texts by their hashes: which were seen before, and the class that each belongs to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;

use crate::dedup::class_id::ClassId;
use crate::spill::partitions::lock;

/// Texts seen so far, by hash: 64 parts with a lock each.
///
/// Memory: 28 to 36 bytes a class.
pub(crate) struct SeenTexts {
    parts: Vec<Mutex<SeenPart>>,
    next: AtomicUsize,
}

/// Classes in order of arrival, and a table of their positions: 5 bytes an entry, so that it stays in cache long after
/// a table of hashes would have left it.
#[derive(Default)]
struct SeenPart {
    table: HashTable<u32>,
    classes: Vec<(u128, ClassId)>,
}

impl SeenPart {
    fn insert(&mut self, hash: u128, class: ClassId) {
        let Self { table, classes } = self;
        let position = classes.len() as u32;
        classes.push((hash, class));
        table.insert_unique(hash as u64, position, |&p| classes[p as usize].0 as u64);
    }
}

impl SeenTexts {
    pub(crate) fn new() -> Self {
        Self {
            parts: (0..64).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The class of a text, and whether it is new. None when there are too many.
    pub(crate) fn class(&self, hash: u128) -> Option<(ClassId, bool)> {
        let mut part = lock(&self.parts[(hash >> 122) as usize]);
        let SeenPart { table, classes } = &*part;
        // Any 64 bits of a cryptographic hash are as good as a hash of it.
        let is_it = |&position: &u32| classes[position as usize].0 == hash;
        if let Some(&position) = table.find(hash as u64, is_it) {
            return Some((classes[position as usize].1, false));
        }
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
}
