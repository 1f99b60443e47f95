//! The self-join: all pairs of a collection within a distance, without an index.
//!
//! For each table of an exact design, codes are scattered by the table's key, and those that agree
//! in the whole key are compared with each other. A pair that agrees in several keys belongs to the
//! first of them, so none is reported twice and nothing has to be remembered. A bucket too heavy to
//! compare is joined by the same means over the bits outside its key, with bits that are constant
//! in it left out: skew costs more passes over the heavy part, not its square.
//!
//! Memory: twelve bytes a code beside the input for 64-bit codes, and as much again for the largest
//! part that shares the leading key bits (1/2048 of the collection when codes are spread evenly).

use super::code::{Code, Word};
use super::design::Design;
use super::family::{Family, low_mask};
use super::plan;
use super::scatter::Scatter;
use std::collections::BTreeMap;

/// Visits every pair `i < j` of `codes` within `radius`, inclusive, once, with its distance.
///
/// Equal codes are pairs at distance 0, so n copies of one code are n (n - 1) / 2 pairs: pass
/// distinct codes when that is not wanted. The order of the pairs is the same in every run, and
/// otherwise not promised.
///
/// Expected time for codes spread evenly: O(T n) with the T tables of the design that fits n, some
/// tens of nanoseconds a code and core for 64 bits and radius 3.
///
/// ```
/// let codes = [0b0000_u64, 0b1111, 0b0111, 0b0000];
/// let mut pairs = Vec::new();
/// lookalike::hamming::self_join(&codes, 1, &mut |i, j, distance| pairs.push((i, j, distance)));
/// pairs.sort_unstable();
/// assert_eq!(pairs, [(0, 3, 0), (1, 2, 1)]);
/// ```
///
/// # Panics
///
/// When there are 2^32 codes or more.
pub fn self_join<C: Code>(codes: &[C], radius: u32, visit: &mut dyn FnMut(usize, usize, u32)) {
    assert!(
        u32::try_from(codes.len()).is_ok(),
        "a self-join takes fewer than 2^32 codes"
    );
    let bits = C::Word::BITS;
    let mut join = Join {
        radius,
        visit,
        covered: Vec::new(),
        key: C::Word::ZERO,
        close: Vec::new(),
        designs: BTreeMap::new(),
    };
    let all = C::Word::from_u128(low_mask(bits));
    let varying = varying_bits(codes.iter().map(|code| code.word())) & all;
    let Some(keys) = join.keys(codes.len(), varying) else {
        let words: Vec<_> = codes.iter().map(|code| code.word()).collect();
        let indexes: Vec<_> = (0..codes.len() as u32).collect();
        return join.compare(&words, &indexes);
    };
    let mut parts = Items::default();
    for key in keys {
        let digit = Digit::leading(key, codes.len());
        let word = |i: usize| (codes[i].word(), i as u32);
        let ends = parts.scatter(codes.len(), &digit, word);
        join.key = key;
        join.refine_all(parts.as_part(), &ends, key & !digit.mask, varying & !key);
        join.covered.push(key);
    }
}

/// Buckets of up to so many codes are compared without a further look.
const SMALL: usize = 24;
/// Up to so many codes, their close pairs are gathered before they are looked at.
const FEW: usize = 2048;
/// Most bits of a key that one scatter takes: the write positions stay in the first-level cache.
const DIGIT_BITS: u32 = 11;

struct Join<'a, W> {
    radius: u32,
    visit: &'a mut dyn FnMut(usize, usize, u32),
    /// Keys that were done: pairs that agree in one of them have been visited.
    covered: Vec<W>,
    /// The key at work: only pairs that agree in all of it belong here.
    key: W,
    close: Vec<(u32, u32)>,
    /// Masks of the designs used so far, by magnitude of the codes and by bits.
    designs: BTreeMap<(u32, u32), Option<Vec<u128>>>,
}

/// Codes with their indexes; both have one length.
#[derive(Default)]
struct Items<W> {
    words: Vec<W>,
    indexes: Vec<u32>,
}

/// A run of [`Items`].
struct Part<'a, W> {
    words: &'a mut [W],
    indexes: &'a mut [u32],
}

/// Some leading bits of a key, by which codes are scattered.
#[derive(Clone, Copy)]
struct Digit<W> {
    mask: W,
    bits: u32,
    /// Where the bits begin, when they stand together.
    shift: Option<u32>,
}

impl<W: Word> Digit<W> {
    /// As many leading bits of `key` as leave a few codes to a bucket, and one scatter can take.
    fn leading(key: W, codes: usize) -> Self {
        let wanted = (codes / 8).max(2).ilog2().max(1);
        let bits = wanted.min(DIGIT_BITS).min(key.ones());
        let low = W::from_u128(low_mask(key.ones() - bits)).deposit(key);
        let mask = key & !low;
        let shift = mask.to_u128().trailing_zeros();
        let together = mask.to_u128() >> shift == low_mask(bits);
        Self {
            mask,
            bits,
            shift: together.then_some(shift),
        }
    }

    #[inline]
    fn of(&self, word: W) -> usize {
        match self.shift {
            Some(shift) => word.above(shift) as usize & (self.buckets() - 1),
            None => word.extract(self.mask).above(0) as usize,
        }
    }

    fn buckets(&self) -> usize {
        1 << self.bits
    }
}

impl<W: Word> Items<W> {
    /// Fills itself with the items `0..count`, ordered by digit; returns where each bucket ends.
    fn scatter(
        &mut self,
        count: usize,
        digit: &Digit<W>,
        item: impl Fn(usize) -> (W, u32),
    ) -> Vec<usize> {
        let mut counts = vec![0_usize; digit.buckets()];
        for at in 0..count {
            counts[digit.of(item(at).0)] += 1;
        }
        let mut words = Scatter::new(&counts, &mut self.words);
        let mut indexes = Scatter::new(&counts, &mut self.indexes);
        for at in 0..count {
            let (word, index) = item(at);
            let bucket = digit.of(word);
            words.push(bucket, word, &mut self.words);
            indexes.push(bucket, index, &mut self.indexes);
        }
        let complete = words.finish(&mut self.words) && indexes.finish(&mut self.indexes);
        debug_assert!(complete, "both passes see the same items");
        let mut end = 0;
        let ends = counts.iter().map(|&count| {
            end += count;
            end
        });
        ends.collect()
    }

    fn as_part(&mut self) -> Part<'_, W> {
        Part {
            words: &mut self.words,
            indexes: &mut self.indexes,
        }
    }
}

/// A stable counting sort by digit; returns where each bucket ends.
fn scatter<W: Word>(
    count: usize,
    digit: &Digit<W>,
    item: impl Fn(usize) -> (W, u32),
    to: Part<'_, W>,
) -> Vec<usize> {
    let mut next = vec![0_usize; digit.buckets()];
    for i in 0..count {
        next[digit.of(item(i).0)] += 1;
    }
    let mut start = 0;
    for slot in &mut next {
        start += std::mem::replace(slot, start);
    }
    for i in 0..count {
        let (word, index) = item(i);
        let slot = &mut next[digit.of(word)];
        to.words[*slot] = word;
        to.indexes[*slot] = index;
        *slot += 1;
    }
    next
}

fn varying_bits<W: Word>(mut words: impl Iterator<Item = W>) -> W {
    let first = words.next().unwrap_or(W::ZERO);
    words.fold(W::ZERO, |varying, word| varying | (word ^ first))
}

impl<W: Word> Join<'_, W> {
    /// The keys of the cheapest exact design for so many codes over the bits of `free`; `None` when
    /// it is cheaper to compare all pairs.
    fn keys(&mut self, codes: usize, free: W) -> Option<Vec<W>> {
        let (bits, magnitude) = (free.ones(), codes.checked_ilog2()?);
        if codes <= SMALL || bits <= self.radius {
            return None;
        }
        let best = || cheapest_masks(magnitude, bits, self.radius);
        let masks = self
            .designs
            .entry((magnitude, bits))
            .or_insert_with(best)
            .as_ref()?;
        Some(
            masks
                .iter()
                .map(|&mask| W::from_u128(mask).deposit(free))
                .collect(),
        )
    }

    /// Goes on with each bucket of a scattered part: first by the rest of the key, then in full.
    fn refine_all(&mut self, part: Part<'_, W>, ends: &[usize], rest: W, free: W) {
        let mut spare = Items::default();
        let mut start = 0;
        for &end in ends {
            if end - start > 1 {
                let (words, indexes) = (&mut part.words[start..end], &mut part.indexes[start..end]);
                self.refine(Part { words, indexes }, &mut spare, rest, free);
            }
            start = end;
        }
    }

    /// Codes that agree in the key but for the bits of `rest`.
    fn refine(&mut self, part: Part<'_, W>, spare: &mut Items<W>, rest: W, free: W) {
        let count = part.words.len();
        if count <= SMALL {
            return self.compare(part.words, part.indexes);
        }
        if rest == W::ZERO {
            return self.join(part, free);
        }
        if spare.words.len() < count {
            spare.words.resize(count, W::ZERO);
            spare.indexes.resize(count, 0);
        }
        let digit = Digit::leading(rest, count);
        let (words, indexes) = (&mut spare.words[..count], &mut spare.indexes[..count]);
        let item = |i: usize| (part.words[i], part.indexes[i]);
        let ends = scatter(count, &digit, item, Part { words, indexes });
        // What was scattered is in the spare half now; the part itself becomes the spare.
        let mut inner = Items::default();
        let mut start = 0;
        for &end in &ends {
            if end - start > 1 {
                let (words, indexes) =
                    (&mut spare.words[start..end], &mut spare.indexes[start..end]);
                self.refine(
                    Part { words, indexes },
                    &mut inner,
                    rest & !digit.mask,
                    free,
                );
            }
            start = end;
        }
    }

    /// Codes that agree in the whole key: all their pairs, by tables over the free bits when they
    /// are many.
    fn join(&mut self, part: Part<'_, W>, free: W) {
        let free = free & varying_bits(part.words.iter().copied());
        let keys = self.keys(part.words.len(), free);
        let Some(keys) = keys.filter(|keys| pays(part.words, keys)) else {
            return self.compare(part.words, part.indexes);
        };
        let (outer, done) = (self.key, self.covered.len());
        let mut inner = Items::default();
        for key in keys {
            let digit = Digit::leading(key, part.words.len());
            let item = |i: usize| (part.words[i], part.indexes[i]);
            let ends = inner.scatter(part.words.len(), &digit, item);
            self.key = outer | key;
            self.refine_all(inner.as_part(), &ends, key & !digit.mask, free & !key);
            self.covered.push(key);
        }
        self.covered.truncate(done);
        self.key = outer;
    }

    /// Compares all pairs and visits those that belong to the key at work.
    fn compare(&mut self, words: &[W], indexes: &[u32]) {
        if words.len() > FEW {
            return self.compare_many(words, indexes);
        }
        let mut close = std::mem::take(&mut self.close);
        W::close_pairs(words, self.radius, &mut close);
        for (a, b) in close.drain(..) {
            self.judge(
                (words[a as usize], indexes[a as usize]),
                (words[b as usize], indexes[b as usize]),
            );
        }
        self.close = close;
    }

    /// As [`Join::compare`], row by row: so many codes may have more close pairs than fit in memory.
    fn compare_many(&mut self, words: &[W], indexes: &[u32]) {
        for (i, (&word, &index)) in words.iter().zip(indexes).enumerate() {
            let (later, later_indexes) = (&words[i + 1..], &indexes[i + 1..]);
            for (words, indexes) in later.chunks(64).zip(later_indexes.chunks(64)) {
                let mut hits = W::scan_words(words, word, self.radius);
                while hits != 0 {
                    let at = hits.trailing_zeros() as usize;
                    self.judge((word, index), (words[at], indexes[at]));
                    hits &= hits - 1;
                }
            }
        }
    }

    /// Visits a close pair, unless it belongs to another key.
    fn judge(&mut self, (a, i): (W, u32), (b, j): (W, u32)) {
        let apart = a ^ b;
        let here = apart & self.key == W::ZERO;
        if here && self.covered.iter().all(|&key| apart & key != W::ZERO) {
            (self.visit)(i.min(j) as usize, i.max(j) as usize, apart.ones());
        }
    }
}

/// Whether tables with these keys leave less than half of the pairs to compare. Without this, codes
/// that are all alike would be cut in vain, level after level, each with as many tables.
fn pays<W: Word>(words: &[W], keys: &[W]) -> bool {
    let all = words.len() as f64 * words.len() as f64;
    let mut left = 0.0;
    keys.iter().all(|&key| {
        let digit = Digit::leading(key, words.len());
        let mut counts = vec![0_u32; digit.buckets()];
        for &word in words {
            counts[digit.of(word)] += 1;
        }
        left += counts
            .iter()
            .map(|&count| f64::from(count) * f64::from(count))
            .sum::<f64>();
        left < all / 2.0
    })
}

/// Nanoseconds of one comparison, and of moving one code through one scatter.
const COMPARE: f64 = 0.5;
const MOVE: f64 = 5.0;

/// The keys of the exact design with the least expected time for a join of 2^magnitude codes, or
/// `None` when comparing all pairs is no slower.
fn cheapest_masks(magnitude: u32, bits: u32, radius: u32) -> Option<Vec<u128>> {
    const MOST_TABLES: u32 = 40;
    let count = 1.5 * 2_f64.powi(magnitude as i32);
    let cost = |family: &Family| {
        let prefix = f64::from(bits) * family.prefix_share(radius);
        let scatters = (prefix.min(f64::from(magnitude)) / f64::from(DIGIT_BITS)).ceil();
        let compared = count / prefix.exp2() / 2.0 + SMALL as f64 / 8.0;
        count * family.table_count(radius) as f64 * (scatters * MOVE + compared * COMPARE)
    };
    let families = plan::exact_families(radius, MOST_TABLES).into_iter();
    let usable = families.filter_map(|family| Some((cost(&family), design(family, bits, radius)?)));
    let (cost, best) = usable.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let pays = cost < count * count / 2.0 * COMPARE;
    pays.then(|| best.tables().iter().map(|table| table.mask).collect())
}

/// The design of a family, when every table has a key.
fn design(family: Family, bits: u32, radius: u32) -> Option<Design> {
    let design = Design::new(family, bits, radius).ok()?;
    (design.prefix_range().0 > 0).then_some(design)
}
