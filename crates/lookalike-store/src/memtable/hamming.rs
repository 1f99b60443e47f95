//! Exact Hamming search over a growing set of codes: exact blocks with error budgets.
//!
//! A 64-bit code is cut into up to four blocks. Each block gets an error budget; the budgets plus one for each block add up to the radius
//! plus one. Two codes within the radius then differ by at most the budget in some block (the general pigeonhole principle), so probing the
//! buckets of each block at all values within its budget finds every match.
//!
//! The bits of each block are chosen once there are enough codes to see which bits vary: if all codes agree in a run of bits, a block of
//! these bits would put every code into the same bucket. The bits of each code are permuted on insertion, which does not change distances.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Number of codes below which all are compared: with so few, blocks cost more than they save.
const LINEAR_SCAN_MAX: usize = 512;
// Four blocks of sixteen bits use all 64.
const MAX_BLOCKS: u32 = 4;

/// A set of distinct codes, numbered in order of insertion.
#[derive(Debug, Default)]
pub(super) struct GrowingHammingIndex {
    /// Codes with permuted bits, as in all other fields.
    codes: Vec<u64>,
    permutation: Option<BitPermutation>,
    numbers: HashTable<u32>,
    /// Its seed is secret to the process, so clients cannot choose codes that collide.
    hasher: DefaultHashBuilder,
    radius: u32,
    /// Blocks; empty while there are few codes, because listing the probes takes longer than comparing all codes.
    blocks: Vec<KeyBlock>,
    /// Codes by block and by value of the block; empty while there are few codes.
    buckets: Vec<Vec<Vec<(u64, u32)>>>,
}

#[derive(Clone, Debug)]
struct KeyBlock {
    // The bits of a permuted code that make the block.
    shift: u32,
    bits: u32,
    // Number of these bits that may differ, and all ways in which so few of them do.
    budget: u32,
    xor_masks: Vec<u64>,
}

/// A permutation of the bits of a code, as lookup tables by byte.
#[derive(Clone, Debug)]
struct BitPermutation(Box<[[u64; 256]; 8]>);

impl BitPermutation {
    /// Deals the bits out to the blocks, starting with those that split the codes most evenly.
    fn of(codes: &[u64], blocks: u32) -> Self {
        let uneven = |bit: &u32| {
            let ones = codes.iter().filter(|&code| code >> bit & 1 == 1).count();
            // Zero for a bit that is set in half of the codes, which distinguishes them best; the number of codes for a bit in which all
            // agree.
            (2 * ones).abs_diff(codes.len())
        };
        let mut bits: Vec<u32> = (0..64).collect();
        // Deal bits in turn, so that all blocks get equally good bits, with the best in the lowest positions: `blocks` uses sixteen bits of
        // each.
        bits.sort_by_cached_key(uneven);
        // Three blocks leave a bit over, and with fewer than four, a block uses only its lowest sixteen bits. The whole code is compared in
        // the end, so unused bits cost time but no matches.
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

    fn detects(&self, apart: u64) -> bool {
        (apart & self.mask()).count_ones() <= self.budget
    }
}

/// Returns the blocks for a radius: 16 bits each, and fewer than four blocks if the radius is below three.
fn blocks(radius: u32) -> Vec<KeyBlock> {
    // The budgets plus one for each block add up to the radius plus one, so some block stays within its budget.
    let count = (radius + 1).min(MAX_BLOCKS);
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

/// Returns all values of `bits` bits of which at most `most` are set.
fn xor_masks(bits: u32, most: u32) -> Vec<u64> {
    let all = 0..1_u64 << bits;
    all.filter(|xor_mask| xor_mask.count_ones() <= most)
        .collect()
}

impl GrowingHammingIndex {
    pub(super) fn new(radius: u32) -> Self {
        Self {
            radius,
            ..Self::default()
        }
    }

    fn permuted(&self, code: u64) -> u64 {
        let permutation = self.permutation.as_ref();
        permutation.map_or(code, |permutation| permutation.apply(code))
    }

    /// Returns the number of a code, or `None`.
    pub(super) fn find(&self, code: u64) -> Option<u32> {
        self.find_shuffled(self.permuted(code))
    }

    fn find_shuffled(&self, code: u64) -> Option<u32> {
        let same = |&number: &u32| self.codes[number as usize] == code;
        self.numbers.find(self.hasher.hash_one(code), same).copied()
    }

    /// Adds a code. Returns its number, and whether it is new.
    pub(super) fn insert(&mut self, code: u64) -> (u32, bool) {
        let code = self.permuted(code);
        if let Some(number) = self.find_shuffled(code) {
            return (number, false);
        }
        let number = self.codes.len() as u32;
        self.codes.push(code);
        self.name(code, number);
        if !self.buckets.is_empty() {
            self.file(code, number);
        } else if self.codes.len() == LINEAR_SCAN_MAX {
            self.permutation();
            // An empty `Vec` takes 24 bytes, so each block costs 1.5 MiB: scanning while there are few codes also saves this memory.
            self.buckets = vec![vec![Vec::new(); 1 << 16]; self.blocks.len()];
            (0..LINEAR_SCAN_MAX as u32)
                .for_each(|number| self.file(self.codes[number as usize], number));
        }
        (number, true)
    }

    /// Adds a new code to the table of numbers.
    fn name(&mut self, code: u64, number: u32) {
        let (codes, hasher) = (&self.codes, &self.hasher);
        let hash = |&number: &u32| hasher.hash_one(codes[number as usize]);
        self.numbers
            .insert_unique(hasher.hash_one(code), number, hash);
    }

    /// Chooses the bits of the blocks.
    fn permutation(&mut self) {
        // The first codes decide, once. If later codes vary in other bits, buckets become uneven, but every code can still be found: any
        // permutation is complete.
        self.blocks = blocks(self.radius);
        let permutation = BitPermutation::of(&self.codes, self.blocks.len() as u32);
        self.codes
            .iter_mut()
            .for_each(|code| *code = permutation.apply(*code));
        self.numbers.clear();
        for number in 0..self.codes.len() as u32 {
            self.name(self.codes[number as usize], number);
        }
        self.permutation = Some(permutation);
    }

    fn file(&mut self, code: u64, number: u32) {
        for (block, buckets) in self.blocks.iter().zip(&mut self.buckets) {
            buckets[block.value(code)].push((code, number));
        }
    }

    /// Visits the number of every code within `radius`, with its distance. `radius` must not exceed that of the index.
    pub(super) fn search(&self, query: u64, radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        let query = self.permuted(query);
        if self.buckets.is_empty() {
            for (number, code) in self.codes.iter().enumerate() {
                // Two instructions for each code, in sequential memory: comparing 512 codes takes less time than listing the probes of a
                // block.
                let distance = (code ^ query).count_ones();
                if distance <= radius {
                    visit(number as u32, distance);
                }
            }
            return;
        }
        for (at, block) in self.blocks.iter().enumerate() {
            let (earlier, value) = (&self.blocks[..at], block.value(query));
            // Masks are in ascending order and the buckets of a block in one array, so neighbouring probes share pages. Buckets hold the
            // whole codes, so no second lookup is needed to compare them.
            for &xor_mask in &block.xor_masks {
                for &(code, number) in &self.buckets[at][value ^ xor_mask as usize] {
                    let apart = code ^ query;
                    let distance = apart.count_ones();
                    // Report a code that several blocks find only for the first of them.
                    if distance <= radius && !earlier.iter().any(|block| block.detects(apart)) {
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
        for radius in 0..=crate::document_sketch::MAX_RADIUS {
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

    /// If blocks were made of the bits in their original order, three out of four would hold every code in the same bucket.
    #[test]
    fn codes_that_share_most_of_their_bits_are_spread_over_the_buckets() {
        for radius in 0..=crate::document_sketch::MAX_RADIUS {
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

    /// They were hashed by a known product, which anybody can invert: each insert was compared with all before it.
    #[test]
    fn clients_could_choose_codes_that_collide() {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        // Newton's method doubles the number of right bits.
        let inverse = (0..6).fold(FACTOR, |inverse: u64, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(FACTOR.wrapping_mul(inverse)))
        });
        let former = |code: u64| {
            let product = code.wrapping_mul(FACTOR);
            product ^ product >> 32
        };
        let hamming = GrowingHammingIndex::new(3);
        let mut buckets = std::collections::BTreeSet::new();
        for number in 0..1000_u64 {
            let high = number << 40;
            let code = (high | high >> 32).wrapping_mul(inverse);
            assert_eq!((former(code) & 0xffff, former(code) >> 57), (0, 0));
            buckets.insert(hamming.hasher.hash_one(code) & 0xffff);
        }
        assert!(buckets.len() > 900, "{}", buckets.len());
    }

    #[test]
    fn budgets_add_up_to_the_radius() {
        for radius in 0..=crate::document_sketch::MAX_RADIUS {
            let sum: u32 = blocks(radius).iter().map(|block| block.budget + 1).sum();
            assert_eq!(sum, radius + 1);
        }
    }
}
