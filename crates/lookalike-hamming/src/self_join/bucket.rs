//! One bucket of a self-join: codes that agree in some bits of a key, joined in the cache.
//!
//! They are scattered by the rest of the key; small groups that agree in all of it are compared in
//! one call of a vector kernel. A group too heavy for that is joined by the same means over the bits
//! outside its key, with bits that are constant in it left out: skew costs more passes over the heavy
//! part, not its square.

use super::super::code::{Code, Word};
use super::super::design::Design;
use super::super::family::{Family, low_mask};
use super::super::kernel::{ClosePairs, ScanWords, each_hit};
use super::super::plan;
use std::collections::BTreeMap;

/// Buckets of up to so many codes are compared without a further look.
const SMALL: usize = 24;
/// Groups of up to so many codes are compared by the kernel.
const FEW: usize = 256;
/// Groups that the kernel compares in one call: so many pairs are gathered at most.
const AT_ONCE: usize = 64;
/// Most bits of a key that one scatter takes: the write positions stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
/// Bits of a key that are not worth a scatter of their own: pairs that differ in them are compared in
/// vain.
const UNCUT: u32 = 2;
/// Fewer bits that stand together are better than so many that do not, by this much.
const SHORTER: u32 = 3;

/// Some leading bits of a key, by which codes are scattered.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketDigit<W> {
    pub(super) mask: W,
    bits: u32,
    /// Lowest of the bits, when they stand together.
    shift: Option<u32>,
}

impl<W: Word> BucketDigit<W> {
    /// As many leading bits of `key` as leave a few codes to a bucket, and one scatter can take; a few
    /// less when those stand together.
    pub(super) fn leading(key: W, codes: usize) -> Self {
        // About eight codes a bucket: few enough to compare all pairs, many enough that the scatter pays.
        let wanted = (codes / 8).max(2).ilog2().max(1);
        let most = wanted.min(DIGIT_BITS).min(key.ones());
        let least = most.saturating_sub(SHORTER).max(1);
        // The most bits that stand together, if any do: a shift takes them, not PEXT.
        let all = (least..=most).rev().map(|bits| Self::of_bits(key, bits));
        let together = all.into_iter().find(|digit| digit.shift.is_some());
        together.unwrap_or_else(|| Self::of_bits(key, most))
    }

    fn of_bits(key: W, bits: u32) -> Self {
        let low = W::from_u128(low_mask(key.ones() - bits)).deposit(key);
        let mask = key & !low;
        let shift = mask.to_u128().trailing_zeros();
        let together = mask.to_u128().checked_shr(shift) == Some(low_mask(bits));
        Self {
            mask,
            bits,
            shift: together.then_some(shift),
        }
    }

    pub(super) fn buckets(&self) -> usize {
        1 << self.bits
    }

    /// Calls `each` with the bucket of each word, and the word.
    #[inline(always)]
    pub(super) fn each(&self, words: impl Iterator<Item = W>, mut each: impl FnMut(usize, W)) {
        let last = self.buckets() - 1;
        match self.shift {
            Some(shift) => words.for_each(|word| each(word.above(shift) as usize & last, word)),
            None => words.for_each(|word| each(word.extract(self.mask).above(0) as usize, word)),
        }
    }
}

pub(super) fn varying_bits<W: Word>(mut words: impl Iterator<Item = W>) -> W {
    let first = words.next().unwrap_or(W::ZERO);
    words.fold(W::ZERO, |varying, word| varying | (word ^ first))
}

/// State of one thread of a join.
pub(super) struct BucketJoiner<W, V> {
    radius: u32,
    visit: V,
    /// Keys that were done: pairs that agree in one of them have been visited.
    covered: Vec<W>,
    /// The key at work: only pairs that agree in all of it belong here.
    key: W,
    close: Vec<(W, W)>,
    /// Memory for scattered codes and the ends of their groups, by depth.
    spare: Vec<DigitGroups<W>>,
    /// Masks of the designs used so far, by magnitude of the codes and by bits.
    designs: BTreeMap<(u32, u32), Option<Vec<u128>>>,
}

/// Codes in groups.
#[derive(Default)]
struct DigitGroups<W> {
    words: Vec<W>,
    ends: Vec<u32>,
}

impl<W: Word> DigitGroups<W> {
    /// Takes the codes of `segments`, ordered by digit. Fewer than 2^32.
    fn scatter(&mut self, segments: &[&[W]], digit: &BucketDigit<W>) {
        let words = || segments.iter().flat_map(|segment| segment.iter().copied());
        self.ends.clear();
        self.ends.resize(digit.buckets(), 0);
        let next = &mut self.ends;
        for segment in segments {
            digit.each(segment.iter().copied(), |bucket, _| next[bucket] += 1);
        }
        let mut start = 0;
        for slot in next.iter_mut() {
            // Counts become starts, and the scatter below moves each start to the end of its bucket.
            start += std::mem::replace(slot, start);
        }
        self.words.resize(start as usize, W::ZERO);
        let out = self.words.as_mut_slice();
        digit.each(words(), |bucket, word| {
            let slot = &mut next[bucket];
            out[*slot as usize] = word;
            *slot += 1;
        });
    }

    /// Takes the codes of `segments` as one group.
    fn gather(&mut self, segments: &[&[W]]) {
        self.words.clear();
        segments
            .iter()
            .for_each(|segment| self.words.extend_from_slice(segment));
        self.ends.clear();
        self.ends.push(self.words.len() as u32);
    }

    /// Removes what is equal within each group.
    fn dedup(&mut self) {
        let (mut start, mut kept) = (0, 0);
        for end in &mut self.ends {
            let group = &mut self.words[start..*end as usize];
            group.sort_unstable();
            let mut last = None;
            for at in start..*end as usize {
                let word = self.words[at];
                if last != Some(word) {
                    self.words[kept] = word;
                    kept += 1;
                    last = Some(word);
                }
            }
            start = *end as usize;
            *end = kept as u32;
        }
        self.words.truncate(kept);
    }
}

impl<W: Word, V> BucketJoiner<W, V> {
    pub(super) fn new(radius: u32, visit: V) -> Self {
        Self {
            radius,
            visit,
            covered: Vec::new(),
            key: W::ZERO,
            close: Vec::new(),
            spare: Vec::new(),
            designs: BTreeMap::new(),
        }
    }

    /// Pairs from here on go to another visitor; the one so far is dropped.
    pub(super) fn replace_visitor(&mut self, visit: V) {
        self.visit = visit;
    }

    /// A table begins: pairs that agree in all of `key` belong to it.
    pub(super) fn begin(&mut self, key: W) {
        self.key = key;
    }

    /// The table is done.
    pub(super) fn end(&mut self, key: W) {
        self.covered.push(key);
    }

    /// Joins the codes of `segments`, which agree in the key but for the bits of `rest`; `free` are the
    /// bits outside the key.
    pub(super) fn bucket<C: Code<Word = W>>(&mut self, segments: &[&[W]], rest: W, free: W)
    where
        V: FnMut(C, C, u32),
    {
        let count: usize = segments.iter().map(|segment| segment.len()).sum();
        if count < 2 {
            return;
        }
        let mut groups = self.spare.pop().unwrap_or_default();
        if count <= SMALL || rest == W::ZERO {
            groups.gather(segments);
            self.groups(&mut groups, free);
        } else {
            let digit = BucketDigit::leading(rest, count);
            groups.scatter(segments, &digit);
            // A pair that differs in bits that were not cut is found all the same, and dropped: it costs a
            // comparison, where a scatter costs every code a move.
            let left = rest & !digit.mask;
            // Codes of a group may still differ in these bits: `judge` drops such pairs.
            if left.ones() <= UNCUT {
                self.groups(&mut groups, free);
            } else {
                let mut start = 0;
                for &end in &groups.ends {
                    self.bucket(&[&groups.words[start..end as usize]], left, free);
                    start = end as usize;
                }
            }
        }
        self.spare.push(groups);
    }

    /// Groups of codes that agree in the key, but for a few bits perhaps.
    fn groups<C: Code<Word = W>>(&mut self, groups: &mut DigitGroups<W>, free: W)
    where
        V: FnMut(C, C, u32),
    {
        let mut close = std::mem::take(&mut self.close);
        let mut start = 0;
        for run in 0..groups.ends.len().div_ceil(AT_ONCE) {
            close.clear();
            let ends = &groups.ends[run * AT_ONCE..];
            let ends = &ends[..ends.len().min(AT_ONCE)];
            W::run(ClosePairs {
                words: &groups.words,
                start,
                ends,
                most: FEW,
                radius: self.radius,
                pairs: &mut close,
            });
            // Equal codes show up as pairs at distance zero; only then is anything sorted. No pair of this run
            // has been visited yet, so that it can be done again.
            if close.iter().any(|(a, b)| a == b) {
                close.clear();
                self.close = close;
                return self.repeated(groups, run * AT_ONCE, start, free);
            }
            close.iter().for_each(|&(a, b)| self.judge(a, b));
            for &end in ends {
                let end = end as usize;
                if end - start > FEW {
                    // A heavy group may get back here, and uses the same list.
                    self.close = std::mem::take(&mut close);
                    self.heavy(&groups.words[start..end], free);
                    close = std::mem::take(&mut self.close);
                }
                start = end;
            }
        }
        self.close = close;
    }

    /// The groups from `first` on, which begin at `start`, without what is equal.
    fn repeated<C: Code<Word = W>>(
        &mut self,
        groups: &DigitGroups<W>,
        first: usize,
        start: usize,
        free: W,
    ) where
        V: FnMut(C, C, u32),
    {
        let mut distinct = self.spare.pop().unwrap_or_default();
        distinct.words.clear();
        distinct.words.extend_from_slice(&groups.words[start..]);
        distinct.ends.clear();
        let ends = groups.ends[first..].iter();
        distinct.ends.extend(ends.map(|end| end - start as u32));
        // Distinct from here on: no equal pair leads back to this.
        distinct.dedup();
        self.groups(&mut distinct, free);
        self.spare.push(distinct);
    }

    /// Codes that agree in the whole key: all their pairs, by tables over the free bits when they
    /// are many.
    fn heavy<C: Code<Word = W>>(&mut self, words: &[W], free: W)
    where
        V: FnMut(C, C, u32),
    {
        let mut distinct = self.spare.pop().unwrap_or_default();
        distinct.gather(&[words]);
        distinct.dedup();
        let words = distinct.words.as_slice();
        // Bits in which all of them agree cut nothing.
        let free = free & varying_bits(words.iter().copied());
        match self
            .keys(words.len(), free)
            .filter(|keys| pays(words, keys))
        {
            None => self.compare(words),
            Some(keys) => {
                let (outer, done) = (self.key, self.covered.len());
                for key in keys {
                    self.key = outer | key;
                    self.bucket(&[words], key, free & !key);
                    self.covered.push(key);
                }
                // Pairs are covered by the keys of this level inside this group only.
                // Keys of this level were made for the free bits of this group: another group has others.
                self.covered.truncate(done);
                self.key = outer;
            }
        }
        self.spare.push(distinct);
    }

    /// The keys of the cheapest exact design for so many codes over the bits of `free`; `None` when
    /// it is cheaper to compare all pairs.
    fn keys(&mut self, codes: usize, free: W) -> Option<Vec<W>> {
        // By magnitude, and remembered: a join meets many groups of one size.
        let (bits, magnitude) = (free.ones(), codes.checked_ilog2()?);
        let best = || cheapest_masks(magnitude, bits, self.radius);
        let masks = self
            .designs
            .entry((magnitude, bits))
            .or_insert_with(best)
            .as_ref()?;
        let key = |&mask: &u128| W::from_u128(mask).deposit(free);
        Some(masks.iter().map(key).collect())
    }

    /// Compares all pairs of different codes, row by row.
    fn compare<C: Code<Word = W>>(&mut self, words: &[W])
    where
        V: FnMut(C, C, u32),
    {
        for (i, &word) in words.iter().enumerate() {
            for later in words[i + 1..].chunks(64) {
                let scan = ScanWords {
                    words: later,
                    needle: word,
                    radius: self.radius,
                };
                for at in each_hit(W::run(scan)) {
                    self.judge(word, later[at]);
                }
            }
        }
    }

    /// Visits a close pair, unless it belongs to another key.
    fn judge<C: Code<Word = W>>(&mut self, a: W, b: W)
    where
        V: FnMut(C, C, u32),
    {
        let apart = a ^ b;
        let here = apart & self.key == W::ZERO;
        if here && self.covered.iter().all(|&key| apart & key != W::ZERO) {
            // As `self_join` promises, a < b.
            let (a, b) = (a.min(b), a.max(b));
            (self.visit)(C::from_word(a), C::from_word(b), apart.ones());
        }
    }
}

/// Returns true if tables with these keys leave less than half of the pairs to compare. Without this, codes
/// that are all alike would be cut in vain, level after level, each with as many tables.
fn pays<W: Word>(words: &[W], keys: &[W]) -> bool {
    let all = words.len() as f64 * words.len() as f64;
    let mut left = 0.0;
    keys.iter().all(|&key| {
        let digit = BucketDigit::leading(key, words.len());
        let mut counts = vec![0_u32; digit.buckets()];
        digit.each(words.iter().copied(), |bucket, _| counts[bucket] += 1);
        left += counts
            .iter()
            .map(|&count| f64::from(count) * f64::from(count))
            .sum::<f64>();
        left < all / 2.0
    })
}

/// Nanoseconds of one comparison, and of moving one code through one scatter.
const COMPARE: f64 = 0.4;
const MOVE: f64 = 5.0;

/// The keys of the exact design with the least expected time for a join of 2^magnitude codes, or
/// `None` when comparing all pairs is no slower.
pub(super) fn cheapest_masks(magnitude: u32, bits: u32, radius: u32) -> Option<Vec<u128>> {
    const MOST_TABLES: u32 = 40;
    // With no more bits than errors, no key is left in which a close pair must agree.
    if 1 << magnitude.min(20) <= SMALL || bits <= radius {
        return None;
    }
    // The middle of the counts with this magnitude, for all of which the design is kept.
    let count = 1.5 * 2_f64.powi(magnitude as i32);
    let cost = |family: &Family| {
        let prefix = f64::from(bits) * family.prefix_share(radius);
        // More bits than the logarithm of the count would only scatter single codes.
        let scatters = (prefix.min(f64::from(magnitude)) / f64::from(DIGIT_BITS)).ceil();
        // Half of those that agree in the key, since each pair is compared once.
        // Random codes that agree in the key, and a share of a group that is compared whatever its keys.
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
