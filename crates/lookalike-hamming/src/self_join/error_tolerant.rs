//! The self-join of large collections of 64-bit codes: few tables, each of which tolerates one error.
//!
//! For radius 3, one half of a code has at most one of the errors. A table numbers the bucket of a code by some bits of one half, so many that a
//! bucket has a handful of codes; the two codes of a close pair are then in one bucket, or in two whose numbers differ in one bit. Each code is
//! compared with the first sixteen codes of such a bucket at once, by 32 of the bits that do not number its bucket. This takes 1 + d / 2 vector
//! comparisons for each code and table with numbers of d bits, whereas an exact design takes one scatter for each of three to four times as many
//! tables.
//!
//! Codes are scattered by the leading bits of their bucket number into *parts* that fit the second-level cache, and each part by the rest of the
//! number; parts that differ in one leading bit are streamed past each other. A pair belongs to the first table that finds it. Buckets of more than
//! sixteen codes cost more comparisons, and heavy ones are joined like a collection of their own (`bucket`). Collections so uneven that this would be
//! usual are left to exact designs.

use super::super::build::{BuildAddressing, permuted};
use super::super::code::Word;
use super::super::entropy::BitBalance;
use super::super::family::low_mask;
use super::super::scatter::ScatterBuffers;
use super::super::threads::map_parallel;
use super::bucket::BucketJoiner;
use super::{JoinedTables, SelfJoinLimits, SelfJoinProgress};
use part::{OrderedPart, PartFinder, PartShape, SortedParts, sort_part};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

mod part;

/// Maximum number of codes in a bucket if all codes are spread evenly.
const LOAD: usize = 8;
/// Number of codes in a bucket, on average over codes, above which exact designs are better.
const MAX_AVERAGE_LOAD: f64 = 40.0;
/// Number of codes in a part, as a power of two: their numbers and halves stay in the second-level cache.
const PART_BITS: u32 = 16;
/// Maximum number of bits that one scatter pass partitions by.
const TOP_BITS: u32 = 13;
/// Number of bits of a code that are compared, sixteen codes at a time, and the maximum number of other bits.
const LOW_BITS: u32 = 32;
const SIDE_BITS: u32 = 16;
/// Minimum number of bits of a bucket number: the others must find room.
const MIN_BITS: u32 = 64 - LOW_BITS - SIDE_BITS;
/// Number of codes below which the buckets do not pay.
const MIN_CODES: usize = 1 << 18;
/// Memory in addition to the codes, for each of them: scattered words, then sorted low bits and other bits, and starts of buckets.
const BYTES_PER_CODE: usize = 8 + 4 + 2 + 2;
/// Number of codes in the sample that judges how even the codes are.
const SAMPLE: usize = 1 << 16;

/// The tables for one collection.
#[derive(Clone, Debug)]
pub(super) struct TolerantTables<W> {
    radius: u32,
    tables: Vec<TolerantTable<W>>,
}

/// One table: the bits that number its buckets, and whether one of them may be wrong.
#[derive(Clone, Copy, Debug)]
struct TolerantTable<W> {
    addressing: BuildAddressing<W>,
    /// Rotation that moves the number of a code's bucket to the top, if a rotation is enough.
    rotation: Option<u32>,
    budget: u32,
}

impl<W: Word> TolerantTable<W> {
    fn new(address: u128, budget: u32) -> Self {
        let (lowest, bits) = (address.trailing_zeros(), address.count_ones());
        let together = address.checked_shr(lowest) == Some(low_mask(bits));
        Self {
            addressing: BuildAddressing::new(address),
            rotation: together.then(|| 64 - lowest - bits),
            budget,
        }
    }

    /// Calls `each` with every code, rearranged so that the number of its bucket is its highest bits.
    #[inline(always)]
    fn numbered(&self, codes: &[W], mut each: impl FnMut(u64)) {
        match self.rotation {
            // One rotation moves contiguous bits to the top; others take two PEXT and a shift.
            Some(by) => codes
                .iter()
                .for_each(|code| each(code.above(0).rotate_left(by))),
            None => permuted(codes, &self.addressing, &mut |word: W| each(word.above(0))),
        }
    }

    /// Returns the code with this bucket number and these bits below it.
    fn restored(&self, address: u64, rest: u64) -> W {
        match self.rotation {
            Some(by) => {
                let numbered = address << self.addressing.rest_bits | rest;
                W::from_u128(numbered.rotate_right(by).into())
            }
            None => {
                let rest = W::from_u128(rest.into());
                self.addressing.restored(address, rest)
            }
        }
    }

    /// Returns true if the table finds a close pair that differs in the bits of `apart`.
    fn detects(&self, apart: W) -> bool {
        (apart & self.addressing.address).ones() <= self.budget
    }
}

impl<W: Word> TolerantTables<W> {
    /// Returns the tables for `codes`; `None` if an exact design suits the codes, or the memory, better.
    pub(super) fn if_worthwhile(codes: &[W], radius: u32, limits: SelfJoinLimits) -> Option<Self> {
        let room = codes.len().checked_mul(BYTES_PER_CODE)? <= limits.scratch_bytes;
        let many = codes.len() >= MIN_CODES && u32::try_from(codes.len()).is_ok();
        // A 64-bit code consists of the bucket number, up to 16 other bits and 32 low bits.
        if W::BITS != 64 || !room || !many || !(1..=5).contains(&radius) {
            return None;
        }
        // A bucket has from half of `LOAD` to all of it, so windows of sixteen hold most buckets whole.
        let bits = (codes.len().div_ceil(LOAD)).next_power_of_two().ilog2();
        let tables = Self::with_bits(codes, radius, bits.max(MIN_BITS))?;
        tables.are_even(codes).then_some(tables)
    }

    /// Creates tables whose bucket numbers have `bits` bits; `None` if a group of bits has fewer.
    fn with_bits(codes: &[W], radius: u32, bits: u32) -> Option<Self> {
        let balance = BitBalance::sample(codes, SAMPLE);
        // Groups of bits, each of which tolerates an error, perhaps except one: the sum of (t + 1) is radius + 1.
        let groups = (radius + 2) / 2;
        let width = W::BITS / groups;
        let order = balance.order();
        let tables = (0..groups).map(|group| {
            // For an even radius the sum leaves no error for the first group.
            let budget = u32::from(group > 0 || radius % 2 == 1);
            let end = if group + 1 == groups {
                W::BITS
            } else {
                (group + 1) * width
            };
            // `order` distributes the balanced bits, so that each group has its share of them.
            let places = group * width..end;
            let mask = places.fold(0, |mask, place| mask | 1_u128 << order[place as usize]);
            let wide = mask.count_ones() >= bits;
            wide.then(|| TolerantTable::new(balance.best(mask, bits), budget))
        });
        let tables = tables.collect::<Option<Vec<_>>>()?;
        Some(Self { radius, tables })
    }

    /// Returns true if, by a sample, few different codes are in one bucket.
    fn are_even(&self, codes: &[W]) -> bool {
        // Evenly spaced positions would hit both codes of pairs that are evenly spaced. The multiples of the golden ratio fill the interval evenly at
        // every length (three-distance theorem), without a regular step.
        let place = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let scaled = |place: u64| ((place * codes.len() as u64) >> 32) as usize;
        let sample = (0..SAMPLE as u64).map(|at| codes[scaled(place(at))]);
        let mut sample: Vec<W> = sample.collect();
        sample.sort_unstable();
        sample.dedup();
        let pairs = (sample.len() as f64).powi(2) / 2.0;
        self.tables.iter().all(|table| {
            let numbers = sample.iter().map(|&word| table.addressing.bucket(word));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            let groups = numbers.chunk_by(|a, b| a == b);
            // The share of pairs that meet in a bucket, times the number of codes, is the number of other codes in the bucket of a code.
            let met: f64 = groups.map(|group| (group.len() as f64).powi(2)).sum();
            let met = (met - sample.len() as f64) / 2.0;
            met / pairs * (codes.len() as f64) <= MAX_AVERAGE_LOAD
        })
    }

    /// Visits every pair, each by one of the visitors, with as many threads as visitors. Ends early if it is cancelled.
    pub(super) fn join<V>(
        &self,
        codes: &[W],
        is_cancelled: &(dyn Fn() -> bool + Sync),
        mut progress: Option<&mut SelfJoinProgress<'_>>,
        new_visitors: &dyn Fn() -> Vec<V>,
    ) where
        V: FnMut(W, W, u32) + Send,
    {
        let magnitude = codes.len().max(1).ilog2();
        let mut visitors = new_visitors();
        // The errors that a table tolerates follow from its position.
        let bits = self.tables.iter().map(|table| table.addressing.address);
        let begun = SelfJoinProgress::begin(progress.as_deref(), bits.map(|bits| bits.to_u128()));
        let mut scattered: Vec<ScatteredCodes> =
            visitors.iter().map(|_| ScatteredCodes::default()).collect();
        // The memory of the first table is reused for all.
        let mut sorted = SortedParts::default();
        for (at, table) in self.tables.iter().enumerate().skip(begun.done) {
            let address_bits = table.addressing.address_bits;
            // At most sixteen bits number the buckets of a part, because they are kept as `u16`; any further ones number parts. Parts of 2^16 codes
            // take 384 KiB of low bits and sides, which stay in a second-level cache while their buckets are compared bit by bit.
            let top = magnitude.saturating_sub(PART_BITS).min(TOP_BITS);
            if is_cancelled() {
                return;
            }
            let pass = TolerantPass {
                codes,
                is_cancelled,
                radius: self.radius,
                table: *table,
                earlier: &self.tables[..at],
                below: address_bits - top.clamp(address_bits.saturating_sub(16), address_bits),
            };
            pass.scatter(&mut scattered);
            pass.sort(&scattered, &mut sorted, &mut visitors);
            // Without a budget, a table only finds the pairs inside its buckets. After a cancellation, not all parts are in order.
            if table.budget > 0 && !is_cancelled() {
                pass.compare(&sorted, &mut visitors);
            }
            if let Some(progress) = progress.as_deref_mut().filter(|_| !is_cancelled()) {
                visitors = new_visitors();
                (progress.completed)(JoinedTables {
                    done: at + 1,
                    ..begun
                });
            }
        }
    }
}

/// One thread's share of the codes, by part: bucket number, other bits and low bits in one word.
#[derive(Default)]
struct ScatteredCodes {
    words: Vec<u64>,
    counts: Vec<usize>,
}

impl ScatteredCodes {
    /// Returns the words of each part.
    fn parts(&self) -> impl Iterator<Item = &[u64]> {
        let mut rest = self.words.as_slice();
        self.counts.iter().map(move |&count| {
            let (part, later) = rest.split_at(count);
            rest = later;
            part
        })
    }
}

/// A pass over the codes with one table.
struct TolerantPass<'a, W: Word> {
    codes: &'a [W],
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    radius: u32,
    table: TolerantTable<W>,
    earlier: &'a [TolerantTable<W>],
    /// Number of bits of a bucket number below those that number its part.
    below: u32,
}

impl<W: Word> TolerantPass<'_, W> {
    fn parts(&self) -> usize {
        1 << (self.table.addressing.address_bits - self.below)
    }

    /// Orders each thread's share of the codes by part.
    fn scatter(&self, scattered: &mut [ScatteredCodes]) {
        let share = self.codes.len().div_ceil(scattered.len()).max(1);
        // If there is one part, this would be the whole width.
        let shift = (self.table.addressing.rest_bits + self.below).min(63);
        let last = self.parts() - 1;
        map_parallel(scattered.iter_mut().enumerate(), |(at, mine)| {
            let share = self.codes.chunks(share).nth(at).unwrap_or_default();
            let ScatteredCodes { words, counts } = mine;
            counts.clear();
            counts.resize(self.parts(), 0);
            self.table.numbered(share, |word| {
                counts[(word >> shift) as usize & last] += 1;
            });
            let mut scatter = ScatterBuffers::new(counts, words);
            let mut fits = true;
            self.table.numbered(share, |word| {
                fits &= scatter.push((word >> shift) as usize & last, word, words);
            });
            let complete = scatter.finish(words);
            debug_assert!(fits && complete, "both passes see the same codes");
        });
    }

    /// Orders every part by bucket, and visits the pairs within buckets.
    fn sort<V: FnMut(W, W, u32) + Send>(
        &self,
        scattered: &[ScatteredCodes],
        sorted: &mut SortedParts,
        visitors: &mut [V],
    ) {
        let counts = (0..self.parts()).map(|part| {
            let of = |scattered: &ScatteredCodes| scattered.counts[part];
            scattered.iter().map(of).sum()
        });
        let rooms = sorted.prepare(counts, self.below);
        let mut sources: Vec<_> = scattered.iter().map(ScatteredCodes::parts).collect();
        let segments = std::iter::from_fn(|| {
            let segments = sources.iter_mut().map(Iterator::next);
            segments.collect::<Option<Vec<_>>>()
        });
        // The buffers of a part go to the thread that takes its number, so nothing is shared but the list.
        let jobs: Vec<_> = rooms.into_iter().zip(segments).collect();
        let jobs = Mutex::new(jobs.into_iter());
        let shape = PartShape {
            below: self.below,
            rest_bits: self.table.addressing.rest_bits,
        };
        map_parallel(&mut *visitors, |visitor| {
            let mut finder = PartFinder::default();
            loop {
                // A thread that panics leaves the iterator intact, and its panic is passed on when the thread is joined.
                let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((mut room, segments)) = next else {
                    return;
                };
                if (self.is_cancelled)() {
                    return;
                }
                sort_part(&segments, shape, self.radius, &mut room, &mut finder);
                let part = room.part();
                self.verify(part, part, 0, &finder, visitor);
            }
        });
    }

    /// Visits the pairs of codes whose bucket numbers differ in one bit.
    fn compare<V: FnMut(W, W, u32) + Send>(&self, sorted: &SortedParts, visitors: &mut [V]) {
        let next = AtomicUsize::new(0);
        map_parallel(&mut *visitors, |visitor| {
            let mut finder = PartFinder::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.parts() || (self.is_cancelled)() {
                    return;
                }
                let part = sorted.part(number);
                finder.number_buckets(part);
                // The bit in which two numbers differ is one of the errors, so all other bits may have one less.
                for bit in 0..self.below {
                    finder.within(part, bit, self.radius - 1);
                    self.verify(part, part, 1 << bit, &finder, visitor);
                }
                let above = (0..usize::BITS).map(|bit| 1 << bit);
                for flip in above.take_while(|&flip| flip < self.parts()) {
                    // Of two parts, the one without the bit compares them.
                    if number & flip == 0 {
                        let other = sorted.part(number ^ flip);
                        finder.between(part, other, self.radius - 1);
                        self.verify(part, other, 0, &finder, visitor);
                    }
                }
            }
        });
    }

    /// Visits the pairs that `finder` found between two parts, or within one, if they are close.
    fn verify<V: FnMut(W, W, u32)>(
        &self,
        a: OrderedPart<'_>,
        b: OrderedPart<'_>,
        flip: usize,
        finder: &PartFinder,
        visitor: &mut V,
    ) {
        let mut verifier = PairVerifier {
            pass: self,
            a,
            b,
            flip,
            buckets: finder.buckets(),
            visitor,
        };
        for &(a, b) in &finder.found {
            verifier.pair(a, b);
        }
        for &bucket in &finder.heavy {
            if (self.is_cancelled)() {
                return;
            }
            verifier.heavy(bucket as usize);
        }
    }
}

/// Verifier of the pairs that a comparison of low bits lets through.
struct PairVerifier<'a, W: Word, V> {
    pass: &'a TolerantPass<'a, W>,
    /// Part of the first code of each pair.
    a: OrderedPart<'a>,
    /// Part of the second code of each pair.
    b: OrderedPart<'a>,
    /// The bits in which the buckets of a pair differ within their parts.
    flip: usize,
    /// The bucket of each code of the first part.
    buckets: &'a [u16],
    visitor: &'a mut V,
}

impl<W: Word, V: FnMut(W, W, u32)> PairVerifier<'_, W, V> {
    /// Verifies two codes, given by their positions in their parts.
    fn pair(&mut self, a: u32, b: u32) {
        // Windows reach beyond the last code of a part.
        if b as usize >= self.b.len() {
            return;
        }
        // Most codes that are in the window of another bucket by chance are rejected here.
        let apart = self.a.rest(a as usize) ^ self.b.rest(b as usize);
        if apart.count_ones() > self.pass.radius {
            return;
        }
        let bucket = usize::from(self.buckets[a as usize]);
        let partner = bucket ^ self.flip;
        // Windows have sixteen codes, however few the bucket has; those after it belong to other pairs of buckets.
        if !self.b.range(partner).contains(&(b as usize)) {
            return;
        }
        let a = self.word(self.a, bucket, a as usize);
        let b = self.word(self.b, partner, b as usize);
        visit(self.pass, a, b, self.visitor);
    }

    fn word(&self, part: OrderedPart<'_>, bucket: usize, at: usize) -> W {
        // Codes are not kept: number and rest restore them.
        let address = (part.number << self.pass.below | bucket) as u64;
        self.pass.table.restored(address, part.rest(at))
    }

    /// Joins a bucket of the first part with its partner, or with itself, if they have too many pairs to compare them all.
    fn heavy(&mut self, bucket: usize) {
        let partner = bucket ^ self.flip;
        let same = self.a.number == self.b.number && self.flip == 0;
        let of = |part: OrderedPart<'_>, bucket: usize| {
            let words = part.range(bucket).map(|at| self.word(part, bucket, at));
            words.collect::<Vec<_>>()
        };
        let mut segments = vec![of(self.a, bucket)];
        if !same {
            segments.push(of(self.b, partner));
        }
        let (pass, visitor) = (self.pass, &mut *self.visitor);
        let address = pass.table.addressing.address;
        let number = |part: usize, bucket: usize| (part << pass.below | bucket) as u64;
        let differs = number(self.a.number, bucket) ^ number(self.b.number, partner);
        let mut joiner = BucketJoiner::new(pass.radius, pass.is_cancelled, |a: W, b: W, _| {
            let apart = (a ^ b).extract(address).above(0);
            // Pairs inside one of the two buckets are found without a flip.
            if apart == differs {
                visit(pass, a, b, visitor);
            }
        });
        // Both buckets agree in the address except for the flipped bit, so the rest of it is the key of the join.
        let key = address & !W::joined(differs, W::ZERO, 0).deposit(address);
        joiner.begin(key);
        let segments: Vec<&[W]> = segments.iter().map(Vec::as_slice).collect();
        joiner.bucket(&segments, W::ZERO, !key);
    }
}

/// Visits a close pair, unless an earlier table finds it.
fn visit<W: Word>(pass: &TolerantPass<'_, W>, a: W, b: W, visitor: &mut impl FnMut(W, W, u32)) {
    let apart = a ^ b;
    if apart.ones() <= pass.radius && !pass.earlier.iter().any(|table| table.detects(apart)) {
        let (a, b) = (a.min(b), a.max(b));
        visitor(a, b, apart.ones());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        (seed..).map(|i| {
            let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        })
    }

    /// Codes, many of which are near each other, in clusters and at all distances.
    fn clustered(count: usize, radius: u32) -> Vec<u64> {
        let near = numbers(9).zip(numbers(77)).enumerate();
        let codes = near.flat_map(|(at, (center, noise))| {
            let errors = at as u32 % (2 * radius + 2);
            let flips = (0..errors).map(|error| 1_u64 << (noise >> (6 * error) & 63));
            [center, flips.fold(center, |code, flip| code ^ flip), center]
        });
        codes.take(count).collect()
    }

    fn all_pairs(codes: &[u64], radius: u32) -> Vec<(u64, u64, u32)> {
        let mut distinct = codes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let pairs = distinct.iter().enumerate().flat_map(|(at, &a)| {
            let close = move |&&b: &&u64| (a ^ b).count_ones() <= radius;
            let later = distinct[at + 1..].iter().filter(close);
            later.map(move |&b| (a, b, (a ^ b).count_ones()))
        });
        pairs.collect()
    }

    fn joined(codes: &[u64], radius: u32, bits: u32, threads: usize) -> Vec<(u64, u64, u32)> {
        let tables =
            TolerantTables::with_bits(codes, radius, bits).expect("groups are wide enough");
        let pairs = Mutex::new(Vec::new());
        let visitor = |_| {
            |a: u64, b: u64, distance: u32| {
                let pair = (a, b, distance);
                pairs
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(pair);
            }
        };
        let visitors = || (0..threads).map(visitor).collect();
        tables.join(codes, &|| false, None, &visitors);
        let mut pairs = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn joins_equal_the_comparison_of_all_pairs_for_every_radius() {
        for radius in 1..=5 {
            let codes = clustered(3_000, radius);
            let expected = all_pairs(&codes, radius);
            assert!(expected.len() > 200, "{}", expected.len());
            for (bits, threads) in [(16, 1), (18, 3)] {
                assert!(
                    joined(&codes, radius, bits, threads) == expected,
                    "{radius}"
                );
            }
        }
    }

    #[test]
    fn parts_that_differ_in_a_leading_bit_are_compared() {
        // Enough codes for several parts.
        let mut codes: Vec<u64> = numbers(5).take(1 << 18).collect();
        let planted: Vec<u64> = codes
            .iter()
            .step_by(1 << 10)
            .enumerate()
            .map(|(at, code)| code ^ 1 << (at % 64) ^ 1 << (at * 7 % 64) ^ 1 << (at * 11 % 64))
            .collect();
        codes.extend(planted);
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        let found = joined(&codes, 3, 16, 2);
        // Random codes of 64 bits have no close pairs; each of the planted ones is found.
        assert!(
            found
                .iter()
                .all(|&(a, b, distance)| (a ^ b).count_ones() == distance)
        );
        assert_eq!(found.len(), 256 - 1 + 1);
        assert!(found == joined(&codes, 3, 17, 1));
    }

    #[test]
    fn heavy_buckets_are_joined_with_themselves_and_their_partners() {
        // All differ only in 14 bits of the lower half, so that one table has a single bucket, except for one bit.
        let mut codes: Vec<u64> = numbers(3).take(12_000).map(|code| code & 0x3fff).collect();
        codes.extend(
            numbers(8)
                .take(5_000)
                .map(|code| code & 0x3fff | 1 << 63 | 1 << 20),
        );
        for radius in [1, 3] {
            let expected = all_pairs(&codes, radius);
            assert!(joined(&codes, radius, 16, 2) == expected, "{radius}");
        }
    }

    #[test]
    fn uneven_collections_are_left_to_exact_designs() {
        let even: Vec<u64> = numbers(3).take(MIN_CODES).collect();
        let limits = SelfJoinLimits::default();
        assert!(TolerantTables::if_worthwhile(&even, 3, limits).is_some());
        assert!(TolerantTables::if_worthwhile(&even, 9, limits).is_none());
        let little = SelfJoinLimits {
            scratch_bytes: even.len() * 8,
            ..limits
        };
        assert!(TolerantTables::if_worthwhile(&even, 3, little).is_none());
        let uneven: Vec<u64> = even.iter().map(|code| code & 0xff_ffff).collect();
        assert!(TolerantTables::if_worthwhile(&uneven, 3, limits).is_none());
    }
}
