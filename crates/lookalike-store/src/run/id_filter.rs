//! A filter over hashes of ids, which answers most lookups of ids that a run does not have without a read.
//!
//! Blocked Bloom filter (Putze, Sanders, Singler 2007): ten bits for each document, six of which are set in one block of 512. About one in
//! fifty absent ids passes.

const WORDS: usize = 8;
/// Size of a block in bytes.
pub(super) const FILTER_BLOCK: u64 = WORDS as u64 * 8;
const BITS_PER_DOCUMENT: usize = 10;
const PROBES: u32 = 6;

/// A blocked Bloom filter of ids.
#[derive(Clone, Debug)]
pub(crate) struct IdFilter {
    pub(crate) words: Vec<u64>,
}

impl IdFilter {
    pub(crate) fn new(documents: usize) -> Self {
        let blocks = (documents * BITS_PER_DOCUMENT).div_ceil(WORDS * 64).max(1);
        Self {
            words: vec![0; blocks * WORDS],
        }
    }

    /// Creates a filter of whole blocks, of which there is at least one.
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    /// Returns the index of the first word of a hash's block, and the bits in that block as word and mask.
    fn place(&self, hash: u64) -> (usize, impl Iterator<Item = (usize, u64)> + use<>) {
        let blocks = (self.words.len() / WORDS) as u64;
        // The high half of the product spreads the hash over the blocks without a division.
        let block = ((u128::from(hash) * u128::from(blocks)) >> 64) as usize;
        // The high bits have chosen the block, so mix the hash before taking bits from it: six times nine of the upper 54.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (0..PROBES).map(move |probe| {
            let bit = (mixed >> (10 + 9 * probe)) as usize & 511;
            (bit / 64, 1 << (bit % 64))
        });
        (block * WORDS, bits)
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        let (at, bits) = self.place(hash);
        // All six bits are in one cache line, so a lookup costs one cache miss; in a plain Bloom filter with the same error rate it costs
        // up to six.
        bits.for_each(|(word, bit)| self.words[at + word] |= bit);
    }

    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let (at, mut bits) = self.place(hash);
        bits.all(|(word, bit)| self.words[at + word] & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_in_passes_and_little_else() {
        let hash = |i: u64| lookalike::hash::xxh3_64(&i.to_le_bytes(), 1);
        let mut filter = IdFilter::new(10_000);
        (0..10_000).for_each(|i| filter.insert(hash(i)));
        assert!((0..10_000).all(|i| filter.may_contain(hash(i))));
        let wrong = (10_000..110_000)
            .filter(|&i| filter.may_contain(hash(i)))
            .count();
        assert!(wrong < 2500, "{wrong}");
    }
}
