//! Exact Hamming search over codes that keep coming: exact blocks with error budgets.
//!
//! A code of 64 bits is cut into up to four blocks; budgets are dealt out so that their sum, plus one for each block, is
//! the radius plus one. Two codes within the radius then differ within the budget in some block (the general
//! pigeonhole principle), so probing each block's buckets at all values within its budget finds every one.

use hashbrown::HashTable;

/// Below so many codes all are compared: blocks would cost more than they save.
const FEW: usize = 512;
const MOST_BLOCKS: u32 = 4;

/// Distinct codes, numbered in the order in which they came.
#[derive(Debug)]
pub(super) struct Near {
    codes: Vec<u64>,
    numbers: HashTable<u32>,
    radius: u32,
    /// Empty while there are few codes: listing what the blocks are probed at takes longer than comparing all of those.
    blocks: Vec<Block>,
    /// Of each block, of each value, the codes; empty while there are few.
    buckets: Vec<Vec<Vec<(u64, u32)>>>,
}

#[derive(Clone, Debug)]
struct Block {
    shift: u32,
    bits: u32,
    budget: u32,
    flips: Vec<u64>,
}

impl Block {
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
fn blocks(radius: u32) -> Vec<Block> {
    let count = (radius + 1).min(MOST_BLOCKS);
    let shifts = (0..count).map(|at| at * (64 / count));
    let budgets =
        (0..count).map(|at| (radius + 1 - count) / count + u32::from(at < (radius + 1) % count));
    let all = shifts.zip(budgets).map(|(shift, budget)| Block {
        shift,
        bits: 16,
        budget,
        flips: flips(16, budget),
    });
    all.collect()
}

/// All values of so many bits with at most `most` ones.
fn flips(bits: u32, most: u32) -> Vec<u64> {
    let all = 0..1_u64 << bits;
    all.filter(|flip| flip.count_ones() <= most).collect()
}

/// Codes are mixed before they name a place in a hash table: those of like texts are alike.
fn mix(code: u64) -> u64 {
    let mixed = code.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

impl Near {
    pub(super) fn new(radius: u32) -> Self {
        Self {
            codes: Vec::new(),
            numbers: HashTable::new(),
            radius,
            blocks: Vec::new(),
            buckets: Vec::new(),
        }
    }

    /// The number of a code.
    pub(super) fn find(&self, code: u64) -> Option<u32> {
        let same = |&number: &u32| self.codes[number as usize] == code;
        self.numbers.find(mix(code), same).copied()
    }

    /// The number of a code, and whether it is new.
    pub(super) fn insert(&mut self, code: u64) -> (u32, bool) {
        if let Some(number) = self.find(code) {
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
            self.blocks = blocks(self.radius);
            self.buckets = vec![vec![Vec::new(); 1 << 16]; self.blocks.len()];
            (0..FEW as u32).for_each(|number| self.file(self.codes[number as usize], number));
        }
        (number, true)
    }

    fn file(&mut self, code: u64, number: u32) {
        for (block, buckets) in self.blocks.iter().zip(&mut self.buckets) {
            buckets[block.value(code)].push((code, number));
        }
    }

    /// Visits number and distance of every code within `radius`, which is at most the one of the start.
    pub(super) fn search(&self, query: u64, radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        if self.buckets.is_empty() {
            for (number, code) in self.codes.iter().enumerate() {
                let distance = (code ^ query).count_ones();
                if distance <= radius {
                    visit(number as u32, distance);
                }
            }
            return;
        }
        for (at, block) in self.blocks.iter().enumerate() {
            let (earlier, value) = (&self.blocks[..at], block.value(query));
            for &flip in &block.flips {
                for &(code, number) in &self.buckets[at][value ^ flip as usize] {
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
        for radius in 0..=crate::settings::LARGEST_RADIUS {
            let mut near = Near::new(radius);
            let mut all = Vec::new();
            for i in 0..1500_u64 {
                let mut code = mixed(i / 6);
                (0..i % 6 * 3).for_each(|j| code ^= 1 << (mixed(i * 31 + j) % 64));
                let (number, new) = near.insert(code);
                assert_eq!(new, !all.contains(&code));
                if new {
                    all.push(code);
                }
                assert_eq!(all[number as usize], code);
                if i % 250 == 3 || i == 1499 {
                    for &query in all.iter().step_by(37) {
                        let query = query ^ (1 << (i % 64));
                        for radius in [radius / 2, radius] {
                            let mut found = Vec::new();
                            near.search(query, radius, &mut |number, distance| {
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

    #[test]
    fn budgets_add_up_to_the_radius() {
        for radius in 0..=crate::settings::LARGEST_RADIUS {
            let sum: u32 = blocks(radius).iter().map(|block| block.budget + 1).sum();
            assert_eq!(sum, radius + 1);
        }
    }
}
