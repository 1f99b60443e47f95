//! The batch query (M7): a large file of codes streams by a set of queries in memory.
//!
//! The queries stand in an index. Before it stands a filter: of two halves of a code one has at most
//! (k - 1) / 2 of the errors, so a bitmap for each half marks what the halves of the queries look
//! like with so many errors; a code that neither bitmap knows is far from every query. A chunk is
//! scattered by the leading bits of the half first, so that bitmaps larger than the caches are
//! read in order. For a million queries and distance 3, two bitmaps of 2^32 bits let two codes in a
//! hundred through.

use super::build::{Addressing, BuildError, permuted};
use super::code::{Code, Word};
use super::cost::{Constants, neighbours};
use super::entropy::BitBalance;
use super::family::low_mask;
use super::index::TableIndex;
use super::plan::{Limits, plan};
use super::scatter::Scatter;
use super::table::flips;
use super::{HammingIndex, kernel};

/// Queries that codes can stream by. Immutable: several threads may share one.
#[derive(Clone, Debug)]
pub struct BatchJoin<C: Code> {
    index: TableIndex<C>,
    radius: u32,
    /// Empty when the filter would let most codes through.
    filters: Vec<Filter<C::Word>>,
}

/// Memory of one thread of a batch join, kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct JoinScratch {
    /// Address above position.
    items: Vec<u64>,
    passed: Vec<u32>,
}

/// Marks what a half of a code looks like when some query is near in that half.
#[derive(Clone, Debug)]
struct Filter<W> {
    addressing: Addressing<W>,
    marks: Vec<u64>,
}

/// Codes that are scattered together.
const BLOCK: usize = 1 << 24;
/// Filters that let more than this share of random codes through do not pay.
const LEAST_USE: f64 = 0.25;
/// Filters are made larger until they let less than this share through.
const GOOD: f64 = 1.0 / 64.0;

impl<C: Code> BatchJoin<C> {
    /// Takes the queries in, in any order and with repetitions.
    ///
    /// The filters take at most `filter_bytes`; 2^30 is enough for all that they can use. The index
    /// beside takes some tens of bytes a query.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there are too many queries.
    pub fn new(queries: &[C], radius: u32, filter_bytes: u64) -> Result<Self, BuildError> {
        let bits = C::Word::BITS;
        let radius = radius.min(bits);
        let plans = plan(
            queries.len() as u64,
            bits,
            radius,
            &Limits::default(),
            &Constants::default(),
        );
        let best = plans
            .iter()
            .find(|costed| costed.cheapest)
            .or(plans.first());
        let index = match best {
            Some(best) => TableIndex::build(queries, &best.design, best.layout)?,
            None => TableIndex::build(
                queries,
                &super::Design::scan(bits, radius),
                super::Layout::Packed,
            )?,
        };
        let balance = BitBalance::sample(queries, 1 << 16);
        let filters = half_budgets(bits, radius)
            .into_iter()
            .map(|(half, budget)| {
                let address_bits = filter_bits(index.len() as u64, budget, bits / 2, filter_bytes)?;
                Some(Filter::new(
                    &index,
                    balance.best(half, address_bits),
                    budget,
                ))
            });
        let filters = filters.collect::<Option<Vec<_>>>().unwrap_or_default();
        Ok(Self {
            index,
            radius,
            filters,
        })
    }

    /// The index over the queries, in which their ids could be looked up.
    pub fn queries(&self) -> &TableIndex<C> {
        &self.index
    }

    /// Visits every pair of a code of `chunk`, by its position, and a distinct query within the
    /// radius, with their distance. In order of position, each pair once.
    ///
    /// Large chunks are best: bitmaps are read through once for every 2^24 codes.
    pub fn join(
        &self,
        chunk: &[C],
        scratch: &mut JoinScratch,
        visit: &mut dyn FnMut(usize, C, u32),
    ) {
        for (number, block) in chunk.chunks(BLOCK).enumerate() {
            let base = number * BLOCK;
            scratch.passed.clear();
            if self.filters.is_empty() {
                scratch.passed.extend(0..block.len() as u32);
            }
            for filter in &self.filters {
                filter.pass(block, &mut scratch.items, &mut scratch.passed);
            }
            scratch.passed.sort_unstable();
            scratch.passed.dedup();
            for group in scratch.passed.chunks(256) {
                self.search(block, base, group, visit);
            }
        }
    }

    fn search(
        &self,
        block: &[C],
        base: usize,
        positions: &[u32],
        visit: &mut dyn FnMut(usize, C, u32),
    ) {
        let codes: Vec<C> = positions.iter().map(|&at| block[at as usize]).collect();
        let searched = self
            .index
            .search_group(&codes, self.radius, &mut |at, code, distance| {
                visit(base + positions[at] as usize, code, distance);
            });
        debug_assert!(searched.is_ok(), "the index was built for this radius");
    }
}

/// The halves of a code, and the errors that one of them keeps to.
fn half_budgets(bits: u32, radius: u32) -> Vec<(u128, u32)> {
    let low = low_mask(bits / 2);
    let high = low_mask(bits) & !low;
    match radius.checked_sub(1) {
        None => vec![(high, 0)],
        Some(errors) => vec![(high, errors - errors / 2), (low, errors / 2)],
    }
}

/// Address bits of a filter, or `None` when none of at most half of `filter_bytes` is of use.
fn filter_bits(queries: u64, budget: u32, half_bits: u32, filter_bytes: u64) -> Option<u32> {
    let most = (filter_bytes / 2)
        .checked_mul(8)?
        .checked_ilog2()?
        .min(half_bits)
        .min(32);
    let marked = |bits: u32| (queries * neighbours(bits, budget)) as f64 / 2_f64.powi(bits as i32);
    let good = (6..=most)
        .find(|&bits| marked(bits) <= GOOD)
        .unwrap_or(most);
    (good >= 6 && marked(good) <= LEAST_USE).then_some(good)
}

impl<W: Word> Filter<W> {
    fn new<C: Code<Word = W>>(queries: &TableIndex<C>, mask: u128, budget: u32) -> Self {
        let addressing = Addressing::new(mask);
        let mut marks = Vec::new();
        marks.reserve_exact(1 << (addressing.address_bits - 6));
        kernel::ask_huge_pages(&mut marks);
        marks.resize(1 << (addressing.address_bits - 6), 0_u64);
        let flips = flips(addressing.address_bits, budget);
        queries.for_each(&mut |query| {
            let address = addressing.bucket(query.word()) as u32;
            for flip in &flips {
                let near = address ^ flip;
                marks[near as usize / 64] |= 1 << (near % 64);
            }
        });
        Self { addressing, marks }
    }

    /// Appends the positions of the codes of `block` that the filter lets through.
    fn pass<C: Code<Word = W>>(&self, block: &[C], items: &mut Vec<u64>, passed: &mut Vec<u32>) {
        let test = |address: u64| self.marks[address as usize / 64] >> (address % 64) & 1 == 1;
        let rest_bits = self.addressing.rest_bits;
        let addresses = |each: &mut dyn FnMut(u64)| {
            permuted(block, &self.addressing, &mut |word: W| {
                each(word.above(rest_bits))
            });
        };
        // What fits the second-level cache needs no order.
        if self.marks.len() <= 1 << 16 {
            let mut at = 0;
            return addresses(&mut |address| {
                passed.extend(test(address).then_some(at));
                at += 1;
            });
        }
        scatter(self.addressing.address_bits, items, addresses);
        let near = items.iter().filter(|&&item| test(item >> 32));
        passed.extend(near.map(|&item| item as u32));
    }
}

/// Fills `items` with `address << 32 | position`, ordered by the eleven leading bits of the address.
fn scatter(bits: u32, items: &mut Vec<u64>, addresses: impl Fn(&mut dyn FnMut(u64))) {
    const DIGIT: u32 = 11;
    let digit = |address: u64| (address >> (bits - DIGIT)) as usize;
    let mut counts = vec![0_usize; 1 << DIGIT];
    addresses(&mut |address| counts[digit(address)] += 1);
    let mut scatter = Scatter::new(&counts, items);
    let mut at = 0_u64;
    addresses(&mut |address| {
        scatter.push(digit(address), address << 32 | at, items);
        at += 1;
    });
    let complete = scatter.finish(items);
    debug_assert!(complete, "both passes see the same addresses");
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
        assert_eq!(filter_bits(1 << 20, 1, 32, 1 << 30), Some(31));
        assert_eq!(filter_bits(1 << 20, 1, 32, 1 << 20), None);
        assert_eq!(filter_bits(1 << 28, 3, 32, 1 << 30), None);
        assert_eq!(filter_bits(100, 1, 32, 1 << 30), Some(17));
        assert_eq!(filter_bits(0, 1, 32, 1 << 30), Some(6));
        assert_eq!(filter_bits(10, 0, 32, 0), None);
    }

    #[test]
    fn scattered_items_are_all_there_in_order_of_their_digit() {
        let address = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9) & 0xf_ffff;
        let mut items = Vec::new();
        scatter(20, &mut items, |each| {
            (0..5_000).map(address).for_each(each)
        });
        assert!(items.windows(2).all(|two| two[0] >> 41 <= two[1] >> 41));
        items.sort_unstable_by_key(|item| *item as u32);
        let expected = (0..5_000).map(|at| address(at) << 32 | at as u64);
        assert!(items.into_iter().eq(expected));
    }
}
