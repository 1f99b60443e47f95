//! Exact Hamming search over codes that keep coming: exact blocks with error budgets.
//!
//! A code of 64 bits is cut into up to four blocks; budgets are dealt out so that their sum, plus one for each block, is
//! the radius plus one. Two codes within the radius then differ within the budget in some block (the general
//! pigeonhole principle), so probing each block's buckets at all values within its budget finds every one.
//!
//! Which bits make up a block is decided when there are enough codes to see which of them differ: where all codes share a
//! stretch of bits, that would else be a block with all of them in one bucket. Codes are shuffled once, on their way in,
//! which leaves their distances as they are.

use hashbrown::HashTable;

/// Below so many codes all are compared: blocks would cost more than they save.
const FEW: usize = 512;
const MOST_BLOCKS: u32 = 4;

/// Distinct codes, numbered in the order in which they came.
#[derive(Debug)]
pub(super) struct GrowingHammingIndex {
    /// Shuffled, as everything that follows.
    codes: Vec<u64>,
    permutation: Option<BitPermutation>,
    numbers: HashTable<u32>,
    radius: u32,
    /// Empty while there are few codes: listing what the blocks are probed at takes longer than comparing all of those.
    blocks: Vec<KeyBlock>,
    /// Of each block, of each value, the codes; empty while there are few.
    buckets: Vec<Vec<Vec<(u64, u32)>>>,
}

#[derive(Clone, Debug)]
struct KeyBlock {
    shift: u32,
    bits: u32,
    budget: u32,
    xor_masks: Vec<u64>,
}

/// A permutation of the bits of a code, by bytes.
#[derive(Clone, Debug)]
struct BitPermutation(Box<[[u64; 256]; 8]>);

impl BitPermutation {
    /// Deals the bits out to the blocks, those that differ most evenly among the codes first.
    fn of(codes: &[u64], blocks: u32) -> Self {
        let uneven = |bit: &u32| {
            let ones = codes.iter().filter(|&code| code >> bit & 1 == 1).count();
            // Zero for a bit that is one in half of the codes, the most that a bit can tell; the number of
            // codes for one that all share.
            (2 * ones).abs_diff(codes.len())
        };
        let mut bits: Vec<u32> = (0..64).collect();
        // Dealt in turn, so that each block gets as good bits as the others, the best of them in its lowest
        // places: `blocks` reads sixteen bits of each.
        bits.sort_by_cached_key(uneven);
        // With three blocks a bit is left over, and with fewer than four a block reads only the lowest sixteen
        // of its bits. The rest is compared with the whole code, so leaving bits out costs time and no match.
        let width = 64 / blocks;
        let dealt =
            (0..width).flat_map(|place| (0..blocks).map(move |block| block * width + place));
        let places: Vec<u32> = dealt.chain(blocks * width..64).collect();
        let mut tables = Box::new([[0; 256]; 8]);
        for (bit, place) in bits.into_iter().zip(places) {
            let (byte, bit) = (bit as usize / 8, bit % 8);
            for (value, moved) in tables[byte].iter_mut().enumerate() {
                *moved |= (value as u64 >> bit & 1) << place;
            }
        }
        Self(tables)
    }

    fn apply(&self, code: u64) -> u64 {
        let bytes = code.to_le_bytes();
        let moved = self.0.iter().zip(bytes);
        moved.fold(0, |all, (table, byte)| all | table[byte as usize])
    }
}

impl KeyBlock {
    fn mask(&self) -> u64 {
        ((1 << self.bits) - 1) << self.shift
    }

    fn value(&self, code: u64) -> usize {
        ((code & self.mask()) >> self.shift) as usize
    }

    fn sees(&self, apart: u64) -> bool {
        (apart & self.mask()).count_ones() <= self.budget
    }
}

/// Blocks for a radius: 16 bits each, or fewer blocks for a radius below three.
fn blocks(radius: u32) -> Vec<KeyBlock> {
    // Budgets with one more for each block add up to the radius plus one, so some block is within its budget.
    let count = (radius + 1).min(MOST_BLOCKS);
    let shifts = (0..count).map(|at| at * (64 / count));
    let budgets =
        (0..count).map(|at| (radius + 1 - count) / count + u32::from(at < (radius + 1) % count));
    let all = shifts.zip(budgets).map(|(shift, budget)| KeyBlock {
        shift,
        bits: 16,
        budget,
        xor_masks: xor_masks(16, budget),
    });
    all.collect()
}

/// All values of so many bits with at most `most` ones.
fn xor_masks(bits: u32, most: u32) -> Vec<u64> {
    let all = 0..1_u64 << bits;
    all.filter(|xor_mask| xor_mask.count_ones() <= most)
        .collect()
}

/// Codes are mixed before they name a place in a hash table: those of like texts are alike.
fn mix(code: u64) -> u64 {
    let mixed = code.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

impl GrowingHammingIndex {
    pub(super) fn new(radius: u32) -> Self {
        Self {
            codes: Vec::new(),
            permutation: None,
            numbers: HashTable::new(),
            radius,
            blocks: Vec::new(),
            buckets: Vec::new(),
        }
    }

    fn permuted(&self, code: u64) -> u64 {
        let permutation = self.permutation.as_ref();
        permutation.map_or(code, |permutation| permutation.apply(code))
    }

    /// The number of a code.
    pub(super) fn find(&self, code: u64) -> Option<u32> {
        self.find_shuffled(self.permuted(code))
    }

    fn find_shuffled(&self, code: u64) -> Option<u32> {
        let same = |&number: &u32| self.codes[number as usize] == code;
        self.numbers.find(mix(code), same).copied()
    }

    /// The number of a code, and whether it is new.
    pub(super) fn insert(&mut self, code: u64) -> (u32, bool) {
        let code = self.permuted(code);
        if let Some(number) = self.find_shuffled(code) {
            return (number, false);
        }
        let number = self.codes.len() as u32;
        self.codes.push(code);
        let codes = &self.codes;
        self.numbers
            .insert_unique(mix(code), number, |&number| mix(codes[number as usize]));
        if !self.buckets.is_empty() {
            self.file(code, number);
        } else if self.codes.len() == FEW {
            self.permutation();
            self.buckets = vec![vec![Vec::new(); 1 << 16]; self.blocks.len()];
            (0..FEW as u32).for_each(|number| self.file(self.codes[number as usize], number));
        }
        (number, true)
    }

    /// Chooses the bits of the blocks.
    fn permutation(&mut self) {
        // Decided once, by the first codes. Later ones may be spread otherwise, and then buckets are uneven,
        // but every code stays findable: any order of bits is complete.
        self.blocks = blocks(self.radius);
        let permutation = BitPermutation::of(&self.codes, self.blocks.len() as u32);
        self.codes
            .iter_mut()
            .for_each(|code| *code = permutation.apply(*code));
        self.numbers.clear();
        let codes = &self.codes;
        for (number, &code) in (0..).zip(codes) {
            self.numbers
                .insert_unique(mix(code), number, |&number| mix(codes[number as usize]));
        }
        self.permutation = Some(permutation);
    }

    fn file(&mut self, code: u64, number: u32) {
        for (block, buckets) in self.blocks.iter().zip(&mut self.buckets) {
            buckets[block.value(code)].push((code, number));
        }
    }

    /// Visits number and distance of every code within `radius`, which is at most the one of the start.
    pub(super) fn search(&self, query: u64, radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        let query = self.permuted(query);
        if self.buckets.is_empty() {
            for (number, code) in self.codes.iter().enumerate() {
                // Two instructions a code, from one array in order: 512 codes take less time than listing the
                // probes of a block.
                let distance = (code ^ query).count_ones();
                if distance <= radius {
                    visit(number as u32, distance);
                }
            }
            return;
        }
        for (at, block) in self.blocks.iter().enumerate() {
            let (earlier, value) = (&self.blocks[..at], block.value(query));
            // Masks ascend by value and the buckets of a block lie in one array, so neighbouring probes share
            // pages. A bucket holds the whole code: no second look-up to compare.
            for &xor_mask in &block.xor_masks {
                for &(code, number) in &self.buckets[at][value ^ xor_mask as usize] {
                    let apart = code ^ query;
                    let distance = apart.count_ones();
                    // What several blocks find belongs to the first of them.
                    if distance <= radius && !earlier.iter().any(|block| block.sees(apart)) {
                        visit(number, distance);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(seed: u64) -> u64 {
        let z = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 31)
    }

    #[test]
    fn equals_a_linear_scan_at_every_radius() {
        for radius in 0..=crate::document_sketch::LARGEST_RADIUS {
            let mut hamming = GrowingHammingIndex::new(radius);
            let mut all = Vec::new();
            for i in 0..1500_u64 {
                let mut code = mixed(i / 6);
                (0..i % 6 * 3).for_each(|j| code ^= 1 << (mixed(i * 31 + j) % 64));
                let (number, new) = hamming.insert(code);
                assert_eq!(new, !all.contains(&code));
                if new {
                    all.push(code);
                }
                assert_eq!(all[number as usize], code);
                assert_eq!(hamming.find(code), Some(number));
                if i % 250 == 3 || i == 1499 {
                    for &query in all.iter().step_by(37) {
                        let query = query ^ (1 << (i % 64));
                        for radius in [radius / 2, radius] {
                            let mut found = Vec::new();
                            hamming.search(query, radius, &mut |number, distance| {
                                found.push((number, distance))
                            });
                            found.sort_unstable();
                            let distances = all.iter().map(|code| (code ^ query).count_ones());
                            let expected: Vec<_> = (0..)
                                .zip(distances)
                                .filter(|pair| pair.1 <= radius)
                                .collect();
                            assert_eq!(found, expected, "radius {radius}");
                        }
                    }
                }
            }
        }
    }

    /// With bits taken as they come, three of four buckets would hold every code.
    #[test]
    fn codes_that_share_most_of_their_bits_are_spread_over_the_buckets() {
        for radius in 0..=crate::document_sketch::LARGEST_RADIUS {
            let mut hamming = GrowingHammingIndex::new(radius);
            for i in 0..4000 {
                hamming.insert(0xabcd_ef01_2345_0000 | mixed(i) & 0xffff);
            }
            let count = hamming.codes.len();
            for buckets in &hamming.buckets {
                let largest = buckets.iter().map(Vec::len).max().unwrap_or(0);
                assert!(largest * 4 < count, "radius {radius}: {largest} of {count}");
            }
        }
    }

    #[test]
    fn budgets_add_up_to_the_radius() {
        for radius in 0..=crate::document_sketch::LARGEST_RADIUS {
            let sum: u32 = blocks(radius).iter().map(|block| block.budget + 1).sum();
            assert_eq!(sum, radius + 1);
        }
    }
}
