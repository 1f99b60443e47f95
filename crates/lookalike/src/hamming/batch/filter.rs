//! The filter before the tables of a batch join: a bitmap of what one half of a code looks like when
//! some query is near in that half.
//!
//! A code is let through when its address, some bits of the half, is marked. Bitmaps that fit the
//! second-level cache are looked up as the codes come; larger ones a stretch at a time, with the
//! addresses in the order of their leading bits ([`Buckets`]).

use super::super::build::{Addressing, permuted};
use super::super::code::{Code, Word};
use super::super::cost::neighbours;
use super::super::entropy::BitBalance;
use super::super::family::low_mask;
use super::super::kernel;
use super::super::table::flips;
use super::buckets::Buckets;

/// Marks what a half of a code looks like when some query is near in that half.
#[derive(Clone, Debug)]
pub(super) struct Filter<W> {
    addressing: Addressing<W>,
    marks: Vec<u64>,
}

/// Address bits whose marks fit the second-level cache beside what streams by: 256 KiB.
const CACHED_BITS: u32 = 21;
/// Addresses that are put in order at a time when a bitmap is made.
const MARKS: usize = 1 << 22;
/// Filters that let more than this share of random codes through do not pay.
const LEAST_USE: f64 = 0.25;
/// Filters are made larger until they let less than this share through.
const GOOD: f64 = 1.0 / 100.0;

/// The halves of a code, and the errors that one of them keeps to.
pub(super) fn half_budgets(bits: u32, radius: u32) -> Vec<(u128, u32)> {
    let low = low_mask(bits / 2);
    let high = low_mask(bits) & !low;
    match radius.checked_sub(1) {
        None => vec![(high, 0)],
        Some(errors) => vec![(high, errors - errors / 2), (low, errors / 2)],
    }
}

/// Address bits of a filter, or `None` when none of at most half of `filter_bytes` is of use.
pub(super) fn filter_bits(
    queries: u64,
    budget: u32,
    half_bits: u32,
    filter_bytes: u64,
) -> Option<u32> {
    let most = (filter_bytes / 2)
        .saturating_mul(8)
        .checked_ilog2()?
        .min(half_bits)
        .min(32);
    let marked =
        |bits: u32| queries as f64 * neighbours(bits, budget) as f64 / 2_f64.powi(bits as i32);
    let good = (6..=most)
        .find(|&bits| marked(bits) <= GOOD)
        .unwrap_or(most);
    (good >= 6 && marked(good) <= LEAST_USE).then_some(good)
}

impl<W: Word> Filter<W> {
    /// Marks the halves of `queries` within `budget` errors, in `address_bits` bits of `half`.
    pub(super) fn new<C: Code<Word = W>>(
        queries: &[C],
        balance: &BitBalance,
        half: u128,
        address_bits: u32,
        budget: u32,
    ) -> Self {
        let addressing = Addressing::new(balance.best(half, address_bits));
        // Fresh pages are zero already: nothing is written before the advice, or twice.
        let mut marks = vec![0_u64; 1 << (address_bits - 6)];
        kernel::ask_huge_pages(&mut marks);
        let flips = flips(address_bits, budget);
        let near = queries.iter().flat_map(|query| {
            let address = addressing.bucket(query.word()) as u32;
            flips.iter().map(move |flip| address ^ flip)
        });
        mark(&mut marks, address_bits, queries.len() * flips.len(), near);
        Self { addressing, marks }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.marks.as_slice())
    }

    /// Appends the positions of the codes of `block` that the filter lets through, in any order.
    pub(super) fn pass<C: Code<Word = W>>(
        &self,
        block: &[C],
        buckets: &mut Buckets,
        passed: &mut Vec<u32>,
    ) {
        let bits = self.addressing.address_bits;
        let Some(digit_bits) = bits.checked_sub(CACHED_BITS).filter(|&bits| bits > 0) else {
            let mut at = 0;
            return self.addresses(block, &mut |address| {
                passed.extend(is_marked(&self.marks, address).then_some(at));
                at += 1;
            });
        };
        buckets.prepare(digit_bits, block.len());
        let words = self.marks.len() >> digit_bits;
        let mut look_up = |bucket: usize, items: &[u64]| {
            look_up(&self.marks[bucket * words..][..words], items, passed);
        };
        let mut at = 0;
        self.addresses(block, &mut |address| {
            let bucket = address >> CACHED_BITS;
            buckets.push(bucket as usize, address << 32 | at, &mut look_up);
            at += 1;
        });
        kernel::end_streaming();
        buckets.finish(&mut look_up);
    }

    /// Calls `each` with the address of each code of `block`, in order.
    #[inline(always)]
    fn addresses<C: Code<Word = W>>(&self, block: &[C], each: &mut impl FnMut(u64)) {
        let (mask, bits) = (
            self.addressing.address.to_u128(),
            self.addressing.address_bits,
        );
        let shift = mask.trailing_zeros();
        if bits < 64 && mask >> shift == low_mask(bits) {
            let low = low_mask(bits) as u64;
            return block
                .iter()
                .for_each(|code| each(code.word().above(shift) & low));
        }
        let rest_bits = self.addressing.rest_bits;
        permuted(block, &self.addressing, &mut |word: W| {
            each(word.above(rest_bits));
        });
    }
}

/// Sets the bits of all `addresses`, of which there are `count`, a stretch of the bitmap at a time.
fn mark(marks: &mut [u64], address_bits: u32, count: usize, addresses: impl Iterator<Item = u32>) {
    let set = |marks: &mut [u64], address: u32| marks[address as usize / 64] |= 1 << (address % 64);
    let digit_bits = address_bits.saturating_sub(CACHED_BITS);
    if digit_bits == 0 {
        return addresses.for_each(|address| set(marks, address));
    }
    let mut buckets = Buckets::default();
    buckets.prepare(digit_bits, count.min(MARKS));
    let mut empty = |_: usize, items: &[u64]| {
        items.iter().for_each(|&item| set(marks, item as u32));
    };
    for address in addresses {
        let bucket = (address >> CACHED_BITS) as usize;
        buckets.push(bucket, address.into(), &mut empty);
    }
    kernel::end_streaming();
    buckets.finish(&mut empty);
}

#[inline]
fn is_marked(marks: &[u64], address: u64) -> bool {
    marks[address as usize / 64] >> (address % 64) & 1 == 1
}

/// Appends the positions of the items whose address is marked. `marks` is the stretch of one bucket, a power of two
/// of words; an item is an address above 32 bits of position.
fn look_up(marks: &[u64], items: &[u64], passed: &mut Vec<u32>) {
    let last = marks.len() - 1;
    let before = passed.len();
    passed.resize(before + items.len(), 0);
    let out = &mut passed[before..];
    let mut kept = 0;
    for &item in items {
        let word = marks[(item >> 38) as usize & last];
        out[kept] = item as u32;
        kept += (word >> (item >> 32 & 63) & 1) as usize;
    }
    passed.truncate(before + kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_of_halves_cover_the_radius() {
        for radius in 0..=16 {
            let halves = half_budgets(64, radius);
            let errors: u32 = halves.iter().map(|(_, budget)| budget + 1).sum();
            assert_eq!(errors, radius + 1);
        }
    }

    #[test]
    fn filters_fit_queries_and_memory() {
        assert_eq!(filter_bits(1 << 20, 1, 32, 1 << 30), Some(32));
        assert_eq!(filter_bits(1 << 20, 1, 32, 1 << 20), None);
        assert_eq!(filter_bits(1 << 28, 3, 32, 1 << 30), None);
        assert_eq!(filter_bits(100, 1, 32, 1 << 30), Some(18));
        assert_eq!(filter_bits(0, 1, 32, 1 << 30), Some(6));
        assert_eq!(filter_bits(10, 0, 32, 0), None);
    }

    #[test]
    fn filters_large_and_small_let_through_what_is_near_in_the_half() {
        let queries: Vec<u64> = (0..500_u64)
            .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let balance = BitBalance::sample(&queries, 500);
        let near = queries.iter().map(|query| query ^ 1 << 40);
        let far = (0..9_500_u64).map(|i| (i + 7).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
        let block: Vec<u64> = near.chain(far).collect();
        for address_bits in [16, 21, 22, 25, 32] {
            let half = u128::from(u64::MAX << 32);
            let filter = Filter::new(&queries, &balance, half, address_bits, 1);
            let mut passed = Vec::new();
            filter.pass(&block, &mut Buckets::default(), &mut passed);
            passed.sort_unstable();
            let address = |code: u64| filter.addressing.bucket(code);
            let expected = (0..block.len() as u32).filter(|&at| {
                let apart =
                    |query: &u64| (address(block[at as usize]) ^ address(*query)).count_ones();
                queries.iter().any(|query| apart(query) <= 1)
            });
            assert!(expected.eq(passed.iter().copied()), "{address_bits}");
            assert!(passed.len() >= 500);
        }
    }
}
