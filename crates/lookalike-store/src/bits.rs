//! Bits that are set one by one and never cleared, while others read them; ranks and places of set bits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bits that are only ever set.
#[derive(Debug, Default)]
pub(crate) struct AtomicBits {
    words: Vec<AtomicU64>,
    length: usize,
    ones: AtomicUsize,
}

impl AtomicBits {
    /// So many bits, none of them set.
    pub(crate) fn new(length: usize) -> Self {
        let mut bits = Self::default();
        bits.grow(length);
        bits
    }

    /// More bits, not set.
    pub(crate) fn grow(&mut self, length: usize) {
        self.length = length;
        let words = length.div_ceil(64);
        if words > self.words.len() {
            self.words.resize_with(words, AtomicU64::default);
        }
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        // Relaxed is enough: a reader of a document holds the view's lock, which orders it after every delete
        // that was applied before. Without the lock a stale zero only shows a document a moment longer.
        self.words[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    pub(crate) fn set(&self, at: usize) {
        assert!(at < self.length, "bit {at} of {}", self.length);
        let bit = 1 << (at % 64);
        // Relaxed: a bit publishes nothing else. Whoever needs a moment of all of them holds the lock of the
        // view.
        if self.words[at / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.ones.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The bits as they are now.
    pub(crate) fn words(&self) -> Vec<u64> {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        words.collect()
    }

    /// Number of set bits in some words of 64 bits.
    pub(crate) fn count_in(&self, words: std::ops::Range<usize>) -> usize {
        let words = self.words[words].iter();
        let ones = words.map(|word| word.load(Ordering::Relaxed).count_ones() as usize);
        ones.sum()
    }

    /// Number of set bits.
    pub(crate) fn count(&self) -> usize {
        self.ones.load(Ordering::Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

/// Bits that stay as they are, with ranks and places.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankedBits {
    words: Vec<u64>,
    /// Ones before each block of eight words, and in all.
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

    /// The bits themselves, 64 a word, the lowest first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Ones before `at`.
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

    /// Number of ones.
    pub(crate) fn ones(&self) -> u32 {
        self.ranks.last().copied().unwrap_or(0)
    }

    /// Position of the one with this many before it; `None` beyond the last.
    pub(crate) fn select(&self, before: u32) -> Option<usize> {
        if before >= self.ones() {
            return None;
        }
        // Select by rank (Jacobson 1989): the directory gives the block of 512 bits, and at most eight words
        // are counted behind it. No second level: blocks are few cache lines, and the directory of a million
        // documents fits L2.
        let block = self.block_of(before);
        let mut left = before - self.ranks[block];
        for (at, &word) in self.words.iter().enumerate().skip(block * BLOCK) {
            if left < word.count_ones() {
                let mut word = word;
                // Clear the lower ones, and the lowest that is left is the one.
                (0..left).for_each(|_| word &= word - 1);
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            left -= word.count_ones();
        }
        None
    }
}

impl RankedBits {
    /// The block of the one with this many before it, which is there. No block has more than one in each place, so that
    /// it is the block of that many places or a later one: the next, where most bits are ones.
    fn block_of(&self, before: u32) -> usize {
        // Exponential search, then bisection inside the last step. In dense bit vectors the first probe hits,
        // so a lookup costs one cache miss where plain bisection over all blocks costs a dozen.
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

    /// Position of the first one after `at`; `None` beyond the last.
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

/// Numbers of a fixed number of bits, back to back.
#[derive(Clone, Debug)]
pub(crate) struct PackedNumbers {
    words: Vec<u64>,
    bits: u32,
}

impl PackedNumbers {
    /// Bits that numbers below `end` need.
    pub(crate) fn bits_below(end: usize) -> u32 {
        (usize::BITS - end.saturating_sub(1).leading_zeros()).max(1)
    }

    /// Words that so many numbers take: one more, so that every number can be read as two.
    pub(crate) fn words_of(count: usize, bits: u32) -> usize {
        (count * bits as usize).div_ceil(64) + 1
    }

    /// So many zeros of so many bits.
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
        // Reading two words always spares the branch on whether the number crosses a word; `words_of` keeps one
        // word behind the last number for it.
        let at = index * self.bits as usize;
        // A number of up to 32 bits lies in two neighbouring words at most.
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
            // Few ones in places, many in others.
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
