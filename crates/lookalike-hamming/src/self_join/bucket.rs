//! One bucket of a self-join: codes that agree in some bits of a key, joined in the cache.
//!
//! The codes are scattered by the rest of the key, and small groups that agree in all of it are compared in one call of a vector kernel. A group too
//! heavy for that is joined in the same way over the bits outside its key, without those that are constant in it: skew costs more passes over the
//! heavy part, not its square.

use super::super::code::Word;
use super::super::design::Design;
use super::super::family::{Family, low_mask};
use super::super::kernel::{ClosePairs, ScanWords, hit_positions};
use super::super::plan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of codes up to which a bucket is compared without being divided further.
const SMALL: usize = 24;
/// Number of rows that a thread takes at a time, if all pairs are compared.
const ROWS: usize = 64;
/// Number of codes up to which a group is compared by the kernel.
const KERNEL_MAX: usize = 256;
/// Number of groups that the kernel compares in one call, which bounds the pairs that are collected.
const GROUPS_PER_CALL: usize = 64;
/// Maximum number of key bits that one scatter pass partitions by: the write positions stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
/// Number of key bits that are not worth a scatter of their own: pairs that differ in them are compared in vain.
const MAX_UNSPLIT_BITS: u32 = 2;
/// Number of bits by which a digit may be shorter if its bits are then contiguous.
const SHORTER: u32 = 3;

/// Some leading bits of a key, by which codes are scattered.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketDigit<W> {
    pub(super) mask: W,
    bits: u32,
    /// Lowest of the bits, if they are contiguous.
    shift: Option<u32>,
}

impl<W: Word> BucketDigit<W> {
    /// Takes as many leading bits of `key` as leave a few codes in a bucket, and as one scatter can take; a few less if those are contiguous.
    pub(super) fn leading(key: W, codes: usize) -> Self {
        // About eight codes per bucket: few enough to compare all pairs, many enough that the scatter pays.
        let wanted = (codes / 8).max(2).ilog2().max(1);
        let most = wanted.min(DIGIT_BITS).min(key.ones());
        let least = most.saturating_sub(SHORTER).max(1);
        // The largest number of bits that are contiguous, if any are: a shift extracts them, without PEXT.
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
    pub(super) fn for_each(&self, words: impl Iterator<Item = W>, mut each: impl FnMut(usize, W)) {
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
pub(super) struct BucketJoiner<'c, W, V> {
    radius: u32,
    /// Asked before every few thousand comparisons, because skew can bring all codes into one bucket.
    is_cancelled: &'c (dyn Fn() -> bool + Sync),
    visit: V,
    /// Keys that are done: pairs that agree in one of them have been visited.
    covered: Vec<W>,
    /// The current key: only pairs that agree in all of it belong to it.
    key: W,
    close: Vec<(W, W)>,
    /// Memory for scattered codes and the ends of their groups, by recursion depth.
    spare: Vec<DigitGroups<W>>,
    /// Masks of the designs used so far, by the magnitude of the number of codes and the number of bits.
    designs: BTreeMap<(u32, u32), Option<Vec<u128>>>,
}

/// Codes in groups.
#[derive(Default)]
struct DigitGroups<W> {
    words: Vec<W>,
    ends: Vec<u32>,
}

impl<W: Word> DigitGroups<W> {
    /// Takes the codes of `segments`, fewer than 2^32, and orders them by digit.
    fn scatter(&mut self, segments: &[&[W]], digit: &BucketDigit<W>) {
        let words = || segments.iter().flat_map(|segment| segment.iter().copied());
        self.ends.clear();
        self.ends.resize(digit.buckets(), 0);
        let next = &mut self.ends;
        for segment in segments {
            digit.for_each(segment.iter().copied(), |bucket, _| next[bucket] += 1);
        }
        let mut start = 0;
        for slot in next.iter_mut() {
            // Counts become starts, and the scatter below moves each start to the end of its bucket.
            start += std::mem::replace(slot, start);
        }
        self.words.resize(start as usize, W::ZERO);
        let out = self.words.as_mut_slice();
        digit.for_each(words(), |bucket, word| {
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

    /// Removes duplicates within each group.
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

impl<'c, W: Word, V: FnMut(W, W, u32)> BucketJoiner<'c, W, V> {
    pub(super) fn new(radius: u32, is_cancelled: &'c (dyn Fn() -> bool + Sync), visit: V) -> Self {
        Self {
            radius,
            is_cancelled,
            visit,
            covered: Vec::new(),
            key: W::ZERO,
            close: Vec::new(),
            spare: Vec::new(),
            designs: BTreeMap::new(),
        }
    }

    /// Passes pairs from here on to another visitor, and drops the previous one.
    pub(super) fn replace_visitor(&mut self, visit: V) {
        self.visit = visit;
    }

    /// Begins a table: pairs that agree in all of `key` belong to it.
    pub(super) fn begin(&mut self, key: W) {
        self.key = key;
    }

    /// Ends the table of `key`.
    pub(super) fn end(&mut self, key: W) {
        self.covered.push(key);
    }

    /// Joins the codes of `segments`, which agree in the key except for the bits of `rest`; `free` are the bits outside the key.
    pub(super) fn bucket(&mut self, segments: &[&[W]], rest: W, free: W) {
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
            // A pair that differs in bits that were not scattered by is found anyway, and dropped: it costs a comparison, whereas a scatter costs
            // every code a move.
            let left = rest & !digit.mask;
            // Codes of a group may still differ in these bits: `judge` drops such pairs.
            if left.ones() <= MAX_UNSPLIT_BITS {
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

    /// Joins groups of codes that agree in the key, perhaps except for a few bits.
    fn groups(&mut self, groups: &mut DigitGroups<W>, free: W) {
        let mut close = std::mem::take(&mut self.close);
        let mut start = 0;
        for run in 0..groups.ends.len().div_ceil(GROUPS_PER_CALL) {
            if (self.is_cancelled)() {
                break;
            }
            close.clear();
            let ends = &groups.ends[run * GROUPS_PER_CALL..];
            let ends = &ends[..ends.len().min(GROUPS_PER_CALL)];
            W::run(ClosePairs {
                words: &groups.words,
                start,
                ends,
                most: KERNEL_MAX,
                radius: self.radius,
                pairs: &mut close,
            });
            // Equal codes show up as pairs at distance zero, and only then is anything sorted. No pair of this run has been visited yet, so the run
            // can be repeated.
            if close.iter().any(|(a, b)| a == b) {
                close.clear();
                self.close = close;
                return self.repeated(groups, run * GROUPS_PER_CALL, start, free);
            }
            close.iter().for_each(|&(a, b)| self.visit_pair(a, b));
            for &end in ends {
                let end = end as usize;
                if end - start > KERNEL_MAX {
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

    /// Repeats the groups from `first` on, which begin at `start`, without duplicates.
    fn repeated(&mut self, groups: &DigitGroups<W>, first: usize, start: usize, free: W) {
        let mut distinct = self.spare.pop().unwrap_or_default();
        distinct.words.clear();
        distinct.words.extend_from_slice(&groups.words[start..]);
        distinct.ends.clear();
        let ends = groups.ends[first..].iter();
        distinct.ends.extend(ends.map(|end| end - start as u32));
        // The codes are distinct from here on, so no equal pair leads back here.
        distinct.dedup();
        self.groups(&mut distinct, free);
        self.spare.push(distinct);
    }

    /// Visits all pairs of codes that agree in the whole key, by tables over the free bits if there are many codes.
    fn heavy(&mut self, words: &[W], free: W) {
        let mut distinct = self.spare.pop().unwrap_or_default();
        distinct.gather(&[words]);
        distinct.dedup();
        let words = distinct.words.as_slice();
        // Bits in which all of them agree divide nothing.
        let free = free & varying_bits(words.iter().copied());
        match self
            .keys(words.len(), free)
            .filter(|keys| is_worthwhile(words, keys))
        {
            None => self.compare(words),
            Some(keys) => {
                let (outer, done) = (self.key, self.covered.len());
                for key in keys {
                    if (self.is_cancelled)() {
                        break;
                    }
                    self.key = outer | key;
                    self.bucket(&[words], key, free & !key);
                    self.covered.push(key);
                }
                // Keys of this level cover pairs inside this group only: they were made for its free bits, and another group has others.
                self.covered.truncate(done);
                self.key = outer;
            }
        }
        self.spare.push(distinct);
    }

    /// Returns the keys of the cheapest exact design for `codes` codes over the bits of `free`; `None` if it is cheaper to compare all pairs.
    fn keys(&mut self, codes: usize, free: W) -> Option<Vec<W>> {
        // By magnitude, and cached, because a join meets many groups of one size.
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
    fn compare(&mut self, words: &[W]) {
        self.compare_rows(words, &AtomicUsize::new(0));
    }

    /// Compares all pairs of different codes, each of which is in the row of the first. Takes rows from `next`, which threads share, until all are
    /// taken or the join is cancelled.
    pub(super) fn compare_rows(&mut self, words: &[W], next: &AtomicUsize) {
        loop {
            let first = next.fetch_add(ROWS, Ordering::Relaxed);
            if first >= words.len() || (self.is_cancelled)() {
                return;
            }
            let rows = first..words.len().min(first + ROWS);
            rows.for_each(|row| self.compare_row(words, row));
        }
    }

    /// Compares a code with all later ones.
    fn compare_row(&mut self, words: &[W], row: usize) {
        let word = words[row];
        for later in words[row + 1..].chunks(64) {
            let scan = ScanWords {
                words: later,
                needle: word,
                radius: self.radius,
            };
            for at in hit_positions(W::run(scan)) {
                self.visit_pair(word, later[at]);
            }
        }
    }

    /// Visits a close pair, unless it belongs to another key.
    fn visit_pair(&mut self, a: W, b: W) {
        let apart = a ^ b;
        let here = apart & self.key == W::ZERO;
        if here && self.covered.iter().all(|&key| apart & key != W::ZERO) {
            // `self_join` promises a < b.
            let (a, b) = (a.min(b), a.max(b));
            (self.visit)(a, b, apart.ones());
        }
    }
}

/// Returns true if tables with these keys leave less than half of the pairs to compare. Without this, codes that are all similar would be divided in
/// vain, level after level, by as many tables each time.
fn is_worthwhile<W: Word>(words: &[W], keys: &[W]) -> bool {
    let all = words.len() as f64 * words.len() as f64;
    let mut left = 0.0;
    keys.iter().all(|&key| {
        let digit = BucketDigit::leading(key, words.len());
        let mut counts = vec![0_u32; digit.buckets()];
        digit.for_each(words.iter().copied(), |bucket, _| counts[bucket] += 1);
        left += counts
            .iter()
            .map(|&count| f64::from(count) * f64::from(count))
            .sum::<f64>();
        left < all / 2.0
    })
}

/// Nanoseconds of one comparison, and of moving one code in one scatter.
const COMPARE: f64 = 0.4;
const MOVE: f64 = 5.0;

/// Returns the keys of the exact design with the least expected time for a join of 2^magnitude codes, or `None` if comparing all pairs is no slower.
pub(super) fn cheapest_masks(magnitude: u32, bits: u32, radius: u32) -> Option<Vec<u128>> {
    const MAX_TABLES: u32 = 40;
    // If there are no more bits than errors, there is no key in which a close pair must agree.
    if 1 << magnitude.min(20) <= SMALL || bits <= radius {
        return None;
    }
    // The middle of the counts of this magnitude, all of which use this design.
    let count = 1.5 * 2_f64.powi(magnitude as i32);
    let cost = |family: &Family| {
        let prefix = f64::from(bits) * family.prefix_share(radius);
        // More bits than the logarithm of the count would only scatter single codes.
        let scatters = (prefix.min(f64::from(magnitude)) / f64::from(DIGIT_BITS)).ceil();
        // Random codes that agree in the key, halved because each pair is compared once, and a share of a group that is compared whatever its keys.
        let compared = count / prefix.exp2() / 2.0 + SMALL as f64 / 8.0;
        count * family.table_count(radius) as f64 * (scatters * MOVE + compared * COMPARE)
    };
    let families = plan::exact_families(radius, MAX_TABLES).into_iter();
    let usable = families.filter_map(|family| Some((cost(&family), design(family, bits, radius)?)));
    let (cost, best) = usable.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let pays = cost < count * count / 2.0 * COMPARE;
    pays.then(|| best.tables().iter().map(|table| table.mask).collect())
}

/// Returns the design of a family, if every table has a key.
fn design(family: Family, bits: u32, radius: u32) -> Option<Design> {
    let design = Design::new(family, bits, radius).ok()?;
    (design.prefix_range().0 > 0).then_some(design)
}
