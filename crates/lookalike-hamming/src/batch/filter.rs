//! The filter in front of the tables of a batch join: the values that one half of a code takes if a query is near in that half.
//!
//! A code passes if its address, some bits of the half, is marked. Marks are in words of 64 bits. Either each address has its own bit or, if few are
//! marked, a hash spreads them: it chooses a word and three bits in it (a blocked Bloom filter: Putze, Sanders, Singler, "Cache-, hash- and
//! space-efficient Bloom filters", 2007), which takes a quarter of the memory and lets one in four hundred unmarked codes pass. Words that fit the
//! second-level cache are looked up in the order of the codes; larger ones a stretch at a time, with the addresses in the order of their stretches
//! ([`QueryBuckets`]).

use super::super::build::BuildAddressing;
use super::super::code::Word;
use super::super::cost::neighbours;
use super::super::entropy::BitBalance;
use super::super::family::low_mask;
use super::super::kernel::{self, FilterKind};
use super::super::table::xor_masks;
use super::buckets::QueryBuckets;

/// A filter that marks the values that a half of a code takes if a query is near in that half.
#[derive(Clone, Debug)]
pub(super) struct QueryFilter<W> {
    addressing: BuildAddressing<W>,
    kind: FilterKind,
    words: Vec<u64>,
}

/// Kind and size of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterShape {
    kind: FilterKind,
    /// Bits of an address, 6 to 32.
    address_bits: u32,
    /// Number of words, as a power of two.
    word_bits: u32,
}

/// Number of words in a stretch, as a power of two: 256 KiB, which fit the second-level cache beside the codes that stream past.
const STRETCH_BITS: u32 = 15;
/// Maximum number of stretches, as a power of two.
const MAX_DIGIT_BITS: u32 = 12;
/// Number of addresses that are put in order at a time when words are filled.
const MARKS: usize = 1 << 22;
/// Number of codes whose addresses are computed together, few enough to stay in the first-level cache.
const ADDRESSES_PER_BATCH: usize = 1 << 9;
/// Share of random codes that a filter may let pass; with more it does not pay.
const MAX_PASS_SHARE: f64 = 0.25;
/// Approximate cost of searching for a code that passes, of setting a mark, and of reading a byte of words, in nanoseconds.
const SEARCH_NS: f64 = 200.0;
const MARK_NS: f64 = 5.0;
const BYTE_NS: f64 = 0.125;

/// Returns the halves of a code, and the number of errors that each tolerates, such that every near pair keeps to one of them.
pub(super) fn half_budgets(bits: u32, radius: u32) -> Vec<(u128, u32)> {
    // Halves rather than thirds: for k = 3, one error in 32 bits has a neighbourhood of 33 members. With thirds, one of them would also have to
    // tolerate an error, in fewer bits, and a third filter would be read.
    let low = low_mask(bits / 2);
    let high = low_mask(bits) & !low;
    // By the pigeonhole principle: if one half tolerates t errors and the other u, a pair that both halves miss has at least t + 1 + u + 1 = radius +
    // 1 errors.
    match radius.checked_sub(1) {
        None => vec![(high, 0)],
        Some(errors) => vec![(high, errors - errors / 2), (low, errors / 2)],
    }
}

impl FilterShape {
    /// Returns the cheapest filter for distinct `queries` in at most half of `filter_bytes`, which is read once for every `block` of `stream` codes;
    /// `None` if none is worthwhile.
    pub(super) fn cheapest(
        queries: u64,
        budget: u32,
        half_bits: u32,
        filter_bytes: u64,
        block: usize,
        stream: u64,
    ) -> Option<Self> {
        // Two filters share the memory, in words of eight bytes.
        let most = (filter_bytes / 2 / 8).checked_ilog2()?;
        let all = (6..=half_bits.min(32)).flat_map(|address_bits| {
            let spread = (0..=most).map(move |word_bits| (FilterKind::BlockedBloom, word_bits));
            // A word has one bit for each of 64 addresses.
            let each = std::iter::once((FilterKind::Bitmap, address_bits - 6));
            spread.chain(each).map(move |(kind, word_bits)| Self {
                kind,
                address_bits,
                word_bits,
            })
        });
        let cost = |shape: Self| {
            let marks = shape.marks(queries, budget);
            let passed = shape.passed(marks);
            let read = 8.0 * 2_f64.powi(shape.word_bits as i32) * BYTE_NS / block as f64;
            let made = marks * MARK_NS / stream as f64;
            (marks <= stream as f64 && passed <= MAX_PASS_SHARE)
                // Nanoseconds for each code of the stream: searching for those that pass by mistake, reading through the words, and setting the marks
                // once.
                .then_some((passed * SEARCH_NS + read + made, shape))
        };
        let fitting = all.filter(|shape| shape.word_bits <= most);
        let cheapest = fitting.filter_map(cost).min_by(|a, b| a.0.total_cmp(&b.0));
        cheapest.map(|(_, shape)| shape)
    }

    pub(super) fn address_bits(self) -> u32 {
        self.address_bits
    }

    fn marks(self, queries: u64, budget: u32) -> f64 {
        queries as f64 * neighbours(self.address_bits, budget) as f64
    }

    /// Estimates the share of random codes that a filter with this many marks lets pass, rounded up a little.
    fn passed(self, marks: f64) -> f64 {
        let marked = marks / 2_f64.powi(self.address_bits as i32);
        let mistaken = match self.kind {
            FilterKind::Bitmap => 0.0,
            FilterKind::BlockedBloom => {
                // The third moment of a Poisson distribution: three bits for each mark of a word, as if all were different.
                let load = marks / 2_f64.powi(self.word_bits as i32);
                27.0 * (load.powi(3) + 3.0 * load.powi(2) + load) / 64_f64.powi(3)
            }
        };
        marked + mistaken
    }

    fn words(self) -> usize {
        1 << self.word_bits
    }
}

impl<W: Word> QueryFilter<W> {
    /// Creates a filter that marks all values within `budget` errors of the halves of `queries`.
    pub(super) fn new(
        queries: &[W],
        balance: &BitBalance,
        half: u128,
        budget: u32,
        shape: FilterShape,
    ) -> Self {
        let mut words = vec![0_u64; shape.words()];
        // Before the first mark: marks fall anywhere, and with small pages each would miss the TLB as well as the cache.
        kernel::claim_huge_pages(&mut words);
        let mut filter = Self {
            addressing: BuildAddressing::new(balance.best(half, shape.address_bits)),
            kind: shape.kind,
            words,
        };
        let xor_masks = xor_masks(shape.address_bits, budget);
        match shape.kind {
            FilterKind::Bitmap => filter.mark::<false>(queries, &xor_masks),
            FilterKind::BlockedBloom => filter.mark::<true>(queries, &xor_masks),
        }
        filter
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Returns the number of leading bits of a position in the words by which items are put in order.
    fn digit_bits(&self) -> u32 {
        let beyond = self.words.len().ilog2().saturating_sub(STRETCH_BITS);
        beyond.min(MAX_DIGIT_BITS)
    }

    /// Marks the neighbourhood of each query, a stretch of words at a time.
    fn mark<const BLOOM: bool>(&mut self, queries: &[W], xor_masks: &[u32]) {
        let (bits, digit_bits) = (self.addressing.address_bits, self.digit_bits());
        let stretch = self.words.len() >> digit_bits;
        let (addressing, words) = (self.addressing, &mut self.words);
        let mut buckets = QueryBuckets::default();
        let marks = queries.len().saturating_mul(xor_masks.len());
        // A bucket is emptied when it is full, so any number of marks takes at most the memory of this many.
        buckets.prepare(digit_bits, marks.min(MARKS));
        let mut empty = |bucket: usize, items: &[u64]| {
            kernel::insert::<BLOOM>(&mut words[bucket * stretch..][..stretch], items);
        };
        for query in queries {
            let address = addressing.bucket(*query);
            let near = xor_masks.iter().map(|&mask| address ^ u64::from(mask));
            // The neighbours of the queries are marked, so that a code of the stream costs one lookup instead of one for each neighbour.
            let items = near.map(|near| kernel::filter_item::<BLOOM>(near, bits, digit_bits));
            buckets.extend(items, &mut empty);
        }
        buckets.finish(&mut empty);
    }

    /// Appends the positions of the codes of `block` that pass the filter, in any order. A block has at most 2^24 codes.
    pub(super) fn pass(&self, block: &[W], buckets: &mut QueryBuckets, passed: &mut Vec<u32>) {
        match self.kind {
            FilterKind::Bitmap => self.pass_by::<false>(block, buckets, passed),
            FilterKind::BlockedBloom => self.pass_by::<true>(block, buckets, passed),
        }
    }

    fn pass_by<const BLOOM: bool>(
        &self,
        block: &[W],
        buckets: &mut QueryBuckets,
        passed: &mut Vec<u32>,
    ) {
        let (bits, digit_bits) = (self.addressing.address_bits, self.digit_bits());
        let stretch = self.words.len() >> digit_bits;
        if digit_bits == 0 {
            return self.pass_in_lots::<BLOOM>(block, passed);
        }
        buckets.prepare(digit_bits, block.len());
        let mut look_up = |bucket: usize, items: &[u64]| {
            kernel::select_members::<BLOOM>(
                &self.words[bucket * stretch..][..stretch],
                items,
                passed,
            );
        };
        let mut lot = [0; ADDRESSES_PER_BATCH];
        for (number, codes) in block.chunks(ADDRESSES_PER_BATCH).enumerate() {
            self.addresses(codes, &mut lot);
            let items = (number * ADDRESSES_PER_BATCH..)
                .zip(&lot[..codes.len()])
                .map(|(at, &address)| {
                    let (bucket, item) = kernel::filter_item::<BLOOM>(address, bits, digit_bits);
                    // A position within a block of 2^24 codes fits the payload.
                    (bucket, item | at as u64)
                });
            buckets.extend(items, &mut look_up);
        }
        buckets.finish(&mut look_up);
    }

    /// Does the same as [`QueryFilter::pass`] if all words are one stretch: the addresses stay in the first-level cache.
    fn pass_in_lots<const BLOOM: bool>(&self, block: &[W], passed: &mut Vec<u32>) {
        let bits = self.addressing.address_bits;
        let mut lot = [0; ADDRESSES_PER_BATCH];
        for (number, codes) in block.chunks(ADDRESSES_PER_BATCH).enumerate() {
            self.addresses(codes, &mut lot);
            let lot = &mut lot[..codes.len()];
            for (at, slot) in (number * ADDRESSES_PER_BATCH..).zip(lot.iter_mut()) {
                *slot = kernel::filter_item::<BLOOM>(*slot, bits, 0).1 | at as u64;
            }
            kernel::select_members::<BLOOM>(&self.words, lot, passed);
        }
    }

    /// Writes the addresses of at most [`ADDRESSES_PER_BATCH`] codes to `out`.
    #[inline]
    fn addresses(&self, codes: &[W], out: &mut [u64; ADDRESSES_PER_BATCH]) {
        let (mask, bits) = (
            self.addressing.address.to_u128(),
            self.addressing.address_bits,
        );
        let shift = mask.trailing_zeros();
        let out = out.iter_mut().zip(codes);
        // Contiguous bits need no PEXT: a shift and a mask extract them.
        if bits < 64 && mask >> shift == low_mask(bits) {
            let low = low_mask(bits) as u64;
            return out.for_each(|(out, code)| *out = code.above(shift) & low);
        }
        let addressing = &self.addressing;
        out.for_each(|(out, code)| *out = addressing.bucket(*code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(odd: u64) -> impl Iterator<Item = u64> {
        (1..).map(move |i: u64| i.wrapping_mul(odd))
    }

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
        let cheapest = |queries, budget, bytes| {
            let shape = FilterShape::cheapest(queries, budget, 32, bytes, 1 << 24, 1 << 40)?;
            assert!(shape.words() as u64 * 8 <= bytes / 2);
            Some((shape.kind, shape.words() * 8))
        };
        const MIB: usize = 1 << 20;
        assert_eq!(
            cheapest(1 << 20, 1, 1 << 30),
            Some((FilterKind::BlockedBloom, 128 * MIB))
        );
        assert_eq!(
            cheapest(1 << 20, 1, 1 << 26),
            Some((FilterKind::BlockedBloom, 32 * MIB))
        );
        assert_eq!(cheapest(1 << 20, 1, 1 << 20), None);
        // One address in eight is marked: a bit for each is better than a hash.
        assert_eq!(
            cheapest(1 << 20, 2, 1 << 30),
            Some((FilterKind::Bitmap, 512 * MIB))
        );
        assert_eq!(cheapest(1 << 28, 3, 1 << 30), None);
        assert!(cheapest(100, 1, 1 << 30).is_some_and(|(_, bytes)| bytes <= MIB / 4));
        assert!(cheapest(0, 1, 1 << 30).is_some());
        assert_eq!(cheapest(10, 0, 0), None);
    }

    #[test]
    fn filters_let_through_what_is_near_in_the_half_and_little_else() {
        let queries: Vec<u64> = numbers(0x9e37_79b9_7f4a_7c15).take(500).collect();
        let balance = BitBalance::sample(&queries, 500);
        let near = queries.iter().map(|query| query ^ 1 << 40);
        let far = numbers(0xc2b2_ae3d_27d4_eb4f).skip(7).take(9_500);
        let block: Vec<u64> = near.chain(far).collect();
        let each = [16, 21, 22, 25].map(|bits| (FilterKind::Bitmap, bits, bits - 6));
        let spread = [9, 10, 15, 16, 20].map(|word_bits| (FilterKind::BlockedBloom, 32, word_bits));
        for (kind, address_bits, word_bits) in each.into_iter().chain(spread) {
            let shape = FilterShape {
                kind,
                address_bits,
                word_bits,
            };
            let half = u128::from(u64::MAX << 32);
            let filter = QueryFilter::new(&queries, &balance, half, 1, shape);
            let mut passed = Vec::new();
            filter.pass(&block, &mut QueryBuckets::default(), &mut passed);
            passed.sort_unstable();
            assert!(passed.windows(2).all(|two| two[0] < two[1]));
            let address = |code: u64| filter.addressing.bucket(code);
            let marked = |at: u32| {
                let apart =
                    |query: &u64| (address(block[at as usize]) ^ address(*query)).count_ones();
                queries.iter().any(|query| apart(query) <= 1)
            };
            let marked: Vec<u32> = (0..block.len() as u32).filter(|&at| marked(at)).collect();
            assert!(marked.len() >= 500);
            assert!(marked.iter().all(|at| passed.binary_search(at).is_ok()));
            let mistaken = passed.len() - marked.len();
            let expected = shape.passed(shape.marks(500, 1)) * block.len() as f64;
            assert!(
                mistaken as f64 <= 2.0 * expected + 10.0,
                "{shape:?}: {mistaken}"
            );
            assert!(
                kind == FilterKind::BlockedBloom || mistaken == 0,
                "{shape:?}"
            );
        }
    }
}
