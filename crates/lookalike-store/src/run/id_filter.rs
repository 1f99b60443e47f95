//! A filter over hashes of ids: most lookups of an id that a run does not have end here, without a read.
//!
//! Blocked Bloom filter (Putze, Sanders, Singler 2007): ten bits a document, six of them in one block of 512.
//! About one absent id in fifty passes.

const WORDS: usize = 8;
/// Bytes of a block.
pub(super) const FILTER_BLOCK: u64 = WORDS as u64 * 8;
const BITS_A_DOCUMENT: usize = 10;
const PROBES: u32 = 6;

/// The filter.
#[derive(Clone, Debug)]
pub(crate) struct IdFilter {
    words: Vec<u64>,
}

impl IdFilter {
    pub(crate) fn new(documents: usize) -> Self {
        let blocks = (documents * BITS_A_DOCUMENT).div_ceil(WORDS * 64).max(1);
        Self {
            words: vec![0; blocks * WORDS],
        }
    }

    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The first word of the block of a hash, and the bits in it.
    fn place(&self, hash: u64) -> (usize, impl Iterator<Item = (usize, u64)> + use<>) {
        let blocks = (self.words.len() / WORDS) as u64;
        // The high half of the product spreads the hash over the blocks without a division.
        let block = ((u128::from(hash) * u128::from(blocks)) >> 64) as usize;
        // The high bits chose the block, so the hash is mixed before it gives bits: six times nine of the upper
        // 54.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (0..PROBES).map(move |probe| {
            let bit = (mixed >> (10 + 9 * probe)) as usize & 511;
            (bit / 64, 1 << (bit % 64))
        });
        (block * WORDS, bits)
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        let (at, bits) = self.place(hash);
        // All six bits lie in one cache line: a look-up costs one miss, where a plain Bloom filter of the same
        // error costs up to six.
        bits.for_each(|(word, bit)| self.words[at + word] |= bit);
    }

    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let (at, mut bits) = self.place(hash);
        !self.words.is_empty() && bits.all(|(word, bit)| self.words[at + word] & bit != 0)
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
        assert!((0..10_000).all(|i| filter.may_have(hash(i))));
        let wrong = (10_000..110_000)
            .filter(|&i| filter.may_have(hash(i)))
            .count();
        assert!(wrong < 2500, "{wrong}");
    }
}
