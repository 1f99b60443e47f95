//! Distinct fingerprints in ascending order, found by their leading bits, with marks.

use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_hamming::Word;

use crate::spill::table_column::TableColumn;

/// Average number of keys in a bucket, if keys are spread evenly.
const BUCKET: usize = 4;

/// Returns the leading `bits` bits of a key, fewer than 32.
fn leading<K: Word>(key: K, bits: u32) -> usize {
    // With zero bits the shift equals the width of the key, and all keys share one bucket.
    key.above(K::BITS - bits) as usize
}

/// Ascending keys with a directory that takes one byte for each key.
pub(super) struct SortedKeys<K> {
    pub(super) keys: TableColumn<K>,
    /// Position of the first key of each bucket, and the end of the last.
    starts: TableColumn<u32>,
    /// Number of leading bits that select a bucket.
    bits: u32,
}

impl<K: Word> SortedKeys<K> {
    /// Creates the directory of keys, which must ascend without duplicates.
    pub(super) fn new(keys: TableColumn<K>) -> Self {
        debug_assert!(keys.is_sorted_by(|a, b| a < b), "each once");
        // At most one start of four bytes for four keys, so the directory takes no more than a byte for each key.
        let bits = (keys.len() / BUCKET).max(1).ilog2();
        let mut starts: TableColumn<u32> = TableColumn::zeroed((1 << bits) + 1);
        for key in keys.iter() {
            // Count one entry further on, so that the sums below are the starts.
            starts[leading(*key, bits) + 1] += 1;
        }
        let mut end = 0;
        for start in starts.iter_mut() {
            end += *start;
            *start = end;
        }
        Self { keys, starts, bits }
    }

    /// Returns the bytes of memory for `count` keys.
    pub(super) fn memory(count: u64) -> u64 {
        (size_of::<K>() as u64 + 1) * count
    }

    /// Returns the position of a key, or `None` if it is absent.
    pub(super) fn find(&self, key: K) -> Option<u32> {
        // If keys are not spread evenly, a bucket holds more of them: the bisection takes more steps, the answer is the same.
        let bucket = leading(key, self.bits);
        let start = self.starts[bucket] as usize;
        let entries = &self.keys[start..self.starts[bucket + 1] as usize];
        let at = entries.binary_search(&key).ok()?;
        Some((start + at) as u32)
    }

    /// Keeps only the marked keys.
    pub(super) fn retain(self, marks: &FingerprintMarks) -> Self {
        let Self { mut keys, .. } = self;
        let mut at = 0;
        keys.retain(|_| {
            at += 1;
            marks.has(at - 1)
        });
        // Most fingerprints have no neighbour, so what remains is often a small part of the column.
        keys.shrink_to_fit();
        Self::new(keys)
    }
}

/// One bit for each position, which any thread may set.
pub(super) struct FingerprintMarks {
    words: TableColumn<AtomicU64>,
}

impl FingerprintMarks {
    pub(super) fn new(count: usize) -> Self {
        Self {
            words: TableColumn::zeroed(count.div_ceil(64)),
        }
    }

    pub(super) fn set(&self, at: u32) {
        let (word, bit) = (&self.words[at as usize / 64], 1 << (at % 64));
        // Most marks are already set.
        if word.load(Ordering::Relaxed) & bit == 0 {
            // Relaxed ordering is enough: marks are read after the threads that set them have been joined.
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.words[at as usize / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    /// Numbers the marked positions from 0, in order.
    pub(super) fn numbered(self) -> NumberedMarks {
        let words = self.words.into_numbers();
        let mut count = 0;
        let before = words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before = before.collect();
        NumberedMarks { words, before }
    }
}

/// Marks with the number of marks before each word.
pub(super) struct NumberedMarks {
    words: TableColumn<u64>,
    /// Number of marks before each word.
    before: TableColumn<u32>,
}

impl NumberedMarks {
    /// Returns the number of a marked position.
    pub(super) fn number(&self, at: u32) -> u32 {
        let word = at as usize / 64;
        let below = self.words[word] & ((1 << (at % 64)) - 1);
        self.before[word] + below.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates fingerprints that are spread evenly, or all close together.
    fn fingerprints() -> impl Strategy<Value = Vec<u64>> {
        let any = prop_oneof![any::<u64>(), 0..50_u64, Just(u64::MAX)];
        prop::collection::btree_set(any, 0..300).prop_map(|all| all.into_iter().collect())
    }

    proptest! {
        #[test]
        fn longer_keys_are_found_too(all in prop::collection::btree_set(prop_oneof![any::<u128>(), 0..9_u128], 0..300), other in any::<u128>()) {
            let keys: Vec<u128> = all.iter().copied().collect();
            let sorted = SortedKeys::new(keys.iter().copied().collect());
            for (at, &key) in keys.iter().enumerate() {
                prop_assert_eq!(sorted.find(key), Some(at as u32));
            }
            prop_assert_eq!(sorted.find(other).is_some(), all.contains(&other));
        }

        #[test]
        fn every_fingerprint_is_found_at_its_position_and_no_other(all in fingerprints(), others in fingerprints()) {
            let sorted = SortedKeys::<u64>::new(all.iter().copied().collect());
            for (at, &fingerprint) in all.iter().enumerate() {
                prop_assert_eq!(sorted.find(fingerprint), Some(at as u32));
            }
            for other in others {
                prop_assert_eq!(sorted.find(other).is_some(), all.contains(&other));
            }
        }

        #[test]
        fn marked_ones_are_numbered_in_their_order(all in fingerprints(), choice in any::<u64>()) {
            let marks = FingerprintMarks::new(all.len());
            let chosen: Vec<u32> = (0..all.len() as u32).filter(|at| choice >> (at % 61) & 1 == 1).collect();
            chosen.iter().for_each(|&at| marks.set(at));
            let retained = SortedKeys::<u64>::new(all.iter().copied().collect()).retain(&marks);
            let expected: Vec<u64> = chosen.iter().map(|&at| all[at as usize]).collect();
            prop_assert_eq!(&retained.keys[..], expected);
            let numbered = marks.numbered();
            for (number, &at) in chosen.iter().enumerate() {
                prop_assert_eq!(numbered.number(at), number as u32);
            }
        }
    }
}
