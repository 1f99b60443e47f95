//! Bit vectors: one whose bits are set while others read it, and one with rank and select. Also numbers packed into few bits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A bit vector whose bits are only ever set, never cleared.
#[derive(Debug, Default)]
pub(crate) struct AtomicBits {
    words: Vec<AtomicU64>,
    length: usize,
    ones: AtomicUsize,
}

impl AtomicBits {
    /// Creates `length` bits, all zero.
    pub(crate) fn new(length: usize) -> Self {
        let mut bits = Self::default();
        bits.grow(length);
        bits
    }

    /// Grows the vector to `length` bits; the new ones are zero.
    pub(crate) fn grow(&mut self, length: usize) {
        self.length = length;
        let words = length.div_ceil(64);
        if words > self.words.len() {
            self.words.resize_with(words, AtomicU64::default);
        }
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        // Relaxed is enough: a reader of a document holds the lock of the view, which orders it after every delete that was applied before.
        // Without the lock, a stale zero only shows a document a moment longer.
        self.words[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    pub(crate) fn set(&self, at: usize) {
        assert!(at < self.length, "bit {at} of {}", self.length);
        let bit = 1 << (at % 64);
        // Relaxed is enough: a bit publishes nothing else. Callers that need a consistent set of bits hold the lock of the view.
        if self.words[at / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.ones.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a copy of the bits as they are now.
    pub(crate) fn words(&self) -> Vec<u64> {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        words.collect()
    }

    /// Counts the set bits in a range of 64-bit words.
    pub(crate) fn count_in(&self, words: std::ops::Range<usize>) -> usize {
        let words = self.words[words].iter();
        let ones = words.map(|word| word.load(Ordering::Relaxed).count_ones() as usize);
        ones.sum()
    }

    /// Returns the number of set bits.
    pub(crate) fn count(&self) -> usize {
        self.ones.load(Ordering::Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

/// An immutable bit vector with rank and select.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankedBits {
    words: Vec<u64>,
    /// Number of ones before each block of eight words, then the total.
    ranks: Vec<u32>,
}

const BLOCK: usize = 8;

impl RankedBits {
    pub(crate) fn new(words: Vec<u64>) -> Self {
        let mut ranks = vec![0];
        let mut ones = 0;
        for block in words.chunks(BLOCK) {
            ones += block.iter().map(|word| word.count_ones()).sum::<u32>();
            ranks.push(ones);
        }
        Self { words, ranks }
    }

    /// Returns the bits, 64 a word, the lowest first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Counts the ones before position `at`.
    pub(crate) fn rank(&self, at: usize) -> u32 {
        let (word, bit) = (at / 64, at % 64);
        let whole = self.words[word / BLOCK * BLOCK..word].iter();
        let below = self
            .words
            .get(word)
            .map_or(0, |bits| bits & ((1 << bit) - 1));
        self.ranks[word / BLOCK]
            + whole.map(|bits| bits.count_ones()).sum::<u32>()
            + below.count_ones()
    }

    /// Returns the number of ones.
    pub(crate) fn ones(&self) -> u32 {
        self.ranks.last().copied().unwrap_or(0)
    }

    /// Returns the position of the one that has `before` ones before it, or `None` if there are not that many.
    pub(crate) fn select(&self, before: u32) -> Option<usize> {
        if before >= self.ones() {
            return None;
        }
        // Select by rank (Jacobson 1989): the directory gives the block of 512 bits, and at most eight words of it are counted. A second
        // level is not worth it: a block spans few cache lines, and the directory of a million documents fits in L2.
        let block = self.block_of(before);
        let mut left = before - self.ranks[block];
        for (at, &word) in self.words.iter().enumerate().skip(block * BLOCK) {
            if left < word.count_ones() {
                let mut word = word;
                // Clear the lower ones; the lowest one left is the one sought.
                (0..left).for_each(|_| word &= word - 1);
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            left -= word.count_ones();
        }
        None
    }
}

impl RankedBits {
    /// Returns the block of the one that has `before` ones before it, which must exist. A block holds at most 512 ones, so this is block
    /// `before / 512` or a later one: the next or so if most bits are ones.
    fn block_of(&self, before: u32) -> usize {
        // Exponential search, then bisection within the last step. In dense bit vectors the first probe hits, so a lookup costs one cache
        // miss; plain bisection over all blocks would cost a dozen.
        let least = before as usize / (BLOCK * 64);
        let mut step = 1;
        while self
            .ranks
            .get(least + step)
            .is_some_and(|&ones| ones <= before)
        {
            step *= 2;
        }
        let from = least + step / 2;
        let to = self.ranks.len().min(least + step);
        from + self.ranks[from..to].partition_point(|&ones| ones <= before) - 1
    }

    /// Returns the position of the first one after `at`, or `None` if there is none.
    pub(crate) fn next_one(&self, at: usize) -> Option<usize> {
        let from = at + 1;
        let mut word = from / 64;
        let mut bits = self.words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// An array of numbers of a fixed number of bits each, back to back.
#[derive(Clone, Debug)]
pub(crate) struct PackedNumbers {
    words: Vec<u64>,
    bits: u32,
}

impl PackedNumbers {
    /// Returns the number of bits that numbers below `end` need, at least one.
    pub(crate) fn bits_below(end: usize) -> u32 {
        (usize::BITS - end.saturating_sub(1).leading_zeros()).max(1)
    }

    /// Returns the number of words for `count` numbers, with an extra word at the end, so that every number can be read from two words.
    pub(crate) fn words_of(count: usize, bits: u32) -> usize {
        (count * bits as usize).div_ceil(64) + 1
    }

    /// Creates `count` zeros of `bits` bits each.
    pub(crate) fn zeros(count: usize, bits: u32) -> Self {
        let words = vec![0; Self::words_of(count, bits)];
        Self { words, bits }
    }

    pub(crate) fn from_words(words: Vec<u64>, bits: u32) -> Self {
        Self { words, bits }
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn get(&self, index: usize) -> u32 {
        // Always reading two words avoids a branch on whether the number crosses a word boundary; `words_of` adds a word at the end for
        // this.
        let at = index * self.bits as usize;
        // A number of up to 32 bits spans at most two neighbouring words.
        let both = u128::from(self.words[at / 64]) | u128::from(self.words[at / 64 + 1]) << 64;
        (both >> (at % 64)) as u32 & (u32::MAX >> (32 - self.bits))
    }

    /// Sets a number that is still zero.
    pub(crate) fn set(&mut self, index: usize, value: u32) {
        let at = index * self.bits as usize;
        let both = u128::from(value) << (at % 64);
        self.words[at / 64] |= both as u64;
        self.words[at / 64 + 1] |= (both >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_places_are_those_of_a_count(words in prop::collection::vec(any::<u64>(), 1..60)) {
            // Sparse in some ranges, dense or random in others.
            let words = words.into_iter().enumerate().map(|(at, word)| match at / 12 % 4 { 0 => word, 1 => 0, 2 => u64::MAX, _ => word & 1 });
            let bits = RankedBits::new(words.collect());
            let mut ones = 0;
            for at in 0..bits.words().len() * 64 {
                prop_assert_eq!(bits.next_one(at), (at + 1..bits.words().len() * 64).find(|&at| bits.get(at)));
                prop_assert_eq!(bits.rank(at), ones);
                if bits.get(at) {
                    prop_assert_eq!(bits.select(ones), Some(at));
                    ones += 1;
                }
            }
            prop_assert_eq!(bits.ones(), ones);
            prop_assert_eq!(bits.select(ones), None);
        }

        #[test]
        fn packed_numbers_are_read_as_they_were_set(numbers in prop::collection::vec(any::<u32>(), 0..60), bits in 1_u32..=32) {
            let mut packed = PackedNumbers::zeros(numbers.len(), bits);
            let numbers: Vec<u32> = numbers.iter().map(|number| number & (u32::MAX >> (32 - bits))).collect();
            numbers.iter().enumerate().for_each(|(at, &number)| packed.set(at, number));
            let read: Vec<u32> = (0..numbers.len()).map(|at| packed.get(at)).collect();
            prop_assert_eq!(read, numbers);
        }
    }
}
