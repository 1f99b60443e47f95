//! One part of a table: codes ordered by bucket, with their low bits and their other bits in separate lists.

use super::super::super::kernel::{self, NearWindows, WINDOW};
use std::ops::Range;

/// Division of a word that is scattered by its leading bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartShape {
    /// Number of bits that number a bucket within its part.
    pub(super) below: u32,
    /// Number of bits below those.
    pub(super) rest_bits: u32,
}

/// Number of codes from which on duplicates are dropped from a bucket before it is compared.
const DEDUP_MIN: usize = 64;
/// Two buckets are too heavy to be compared code by code if |a| |b| / (|a| + |b|), the number of comparisons for each code of both, is more than
/// this.
const HEAVY: usize = 2048;

/// All parts, back to back.
#[derive(Debug, Default)]
pub(super) struct SortedParts {
    /// The low 32 bits of each code, and a window more after each part.
    lows: Vec<u32>,
    /// The other bits of each code that do not number its bucket.
    sides: Vec<u16>,
    /// Starts of the buckets of each part, relative to the start of the part, and the end of the last bucket.
    starts: Vec<u32>,
    /// Buckets of each part that are larger than a window.
    larger: Vec<Vec<u32>>,
    /// Start of each part, and the end.
    bounds: Vec<usize>,
    /// Number of starts of one part.
    starts_each: usize,
}

/// Buffers for one part.
pub(super) struct PartBuffers<'a> {
    number: usize,
    lows: &'a mut [u32],
    sides: &'a mut [u16],
    starts: &'a mut [u32],
    larger: &'a mut Vec<u32>,
}

/// A part that has been ordered.
#[derive(Clone, Copy)]
pub(super) struct OrderedPart<'a> {
    pub(super) number: usize,
    /// The low bits of the part, and at least a window more.
    lows: &'a [u32],
    sides: &'a [u16],
    starts: &'a [u32],
    larger: &'a [u32],
}

impl SortedParts {
    /// Makes room for parts of `counts` codes, each with 2^`below` buckets.
    pub(super) fn prepare(
        &mut self,
        counts: impl Iterator<Item = usize>,
        below: u32,
    ) -> Vec<PartBuffers<'_>> {
        self.bounds.clear();
        self.bounds.push(0);
        let mut end = 0;
        self.bounds.extend(counts.map(|count| {
            end += count;
            end
        }));
        self.starts_each = (1 << below) + 1;
        let parts = self.bounds.len() - 1;
        resize(&mut self.lows, end + parts * WINDOW);
        resize(&mut self.sides, end);
        resize(&mut self.starts, parts * self.starts_each);
        self.larger.resize_with(parts, Vec::new);
        // Each part splits its buffers off the front, so that several threads may fill them at the same time.
        let (mut lows, mut sides) = (self.lows.as_mut_slice(), self.sides.as_mut_slice());
        let starts = self.starts.chunks_exact_mut(self.starts_each);
        let rooms = self.bounds.windows(2).zip(starts).zip(&mut self.larger);
        let rooms = rooms
            .enumerate()
            .map(|(number, ((bounds, starts), larger))| {
                let count = bounds[1] - bounds[0];
                PartBuffers {
                    number,
                    lows: lows.split_off_mut(..count + WINDOW).unwrap_or_default(),
                    sides: sides.split_off_mut(..count).unwrap_or_default(),
                    starts,
                    larger,
                }
            });
        rooms.collect()
    }

    pub(super) fn part(&self, number: usize) -> OrderedPart<'_> {
        let bounds = self.bounds[number]..self.bounds[number + 1];
        OrderedPart {
            number,
            lows: &self.lows[bounds.start + number * WINDOW..][..bounds.len() + WINDOW],
            sides: &self.sides[bounds],
            starts: &self.starts[number * self.starts_each..][..self.starts_each],
            larger: &self.larger[number],
        }
    }
}

fn resize<T: Copy + Default>(items: &mut Vec<T>, len: usize) {
    if items.capacity() < len {
        // The system provides zeros, so nothing is written twice.
        *items = vec![T::default(); len];
        kernel::claim_huge_pages(items);
    }
    items.resize(len, T::default());
}

impl PartBuffers<'_> {
    pub(super) fn part(&self) -> OrderedPart<'_> {
        OrderedPart {
            number: self.number,
            lows: self.lows,
            sides: self.sides,
            starts: self.starts,
            larger: self.larger,
        }
    }

    /// Lists the large buckets.
    fn list_larger(&mut self) {
        let sizes = sizes(self.starts).enumerate();
        let larger = sizes.filter(|&(_, size)| size > WINDOW);
        self.larger.clear();
        self.larger.extend(larger.map(|(bucket, _)| bucket as u32));
    }

    /// Takes the words of `segments`, and orders them by bucket. `ordered` is a buffer that is reused.
    fn order(&mut self, segments: &[&[u64]], shape: PartShape, ordered: &mut Vec<u64>) {
        let last = (1 << shape.below) - 1;
        let bucket = |word: u64| (word >> shape.rest_bits) as usize & last;
        let side = ((1_u64 << (shape.rest_bits - 32)) - 1) as u16;
        self.starts.fill(0);
        // Shifted by one position: when the scatter has moved each start to the end of its bucket, which is the start of the next, the list is
        // complete.
        let next = &mut self.starts[1..];
        for segment in segments {
            segment.iter().for_each(|&word| next[bucket(word)] += 1);
        }
        let mut start = 0;
        for slot in next.iter_mut() {
            start += std::mem::replace(slot, start);
        }
        // Whole words first: one write outside the first-level cache, instead of one for each of two lists.
        ordered.resize(start as usize, 0);
        for segment in segments {
            for &word in *segment {
                let slot = &mut next[bucket(word)];
                ordered[*slot as usize] = word;
                *slot += 1;
            }
        }
        let lists = self.lows.iter_mut().zip(self.sides.iter_mut());
        for (&word, (low, slot)) in ordered.iter().zip(lists) {
            *low = word as u32;
            *slot = (word >> 32) as u16 & side;
        }
    }

    /// Drops duplicates in buckets of at least `least` codes.
    fn drop_equal(&mut self, least: usize) {
        if sizes(self.starts).all(|size| size < least) {
            return;
        }
        let mut rests = Vec::new();
        let (mut start, mut kept) = (0, 0);
        for bucket in 1..self.starts.len() {
            // Starts are rewritten on the way, so the old one is remembered in `start`.
            let end = self.starts[bucket] as usize;
            if end - start < least {
                self.lows.copy_within(start..end, kept);
                self.sides.copy_within(start..end, kept);
                kept += end - start;
            } else {
                rests.clear();
                rests.extend((start..end).map(|at| self.part().rest(at)));
                rests.sort_unstable();
                rests.dedup();
                for rest in &rests {
                    self.lows[kept] = *rest as u32;
                    self.sides[kept] = (rest >> 32) as u16;
                    kept += 1;
                }
            }
            start = end;
            self.starts[bucket] = kept as u32;
        }
        // Old codes remain after the last one. Windows reach them, and `PairVerifier::pair` rejects their positions.
        self.list_larger();
    }
}

impl OrderedPart<'_> {
    /// Returns the number of codes.
    pub(super) fn len(&self) -> usize {
        self.starts.last().map_or(0, |&end| end as usize)
    }

    /// Returns the positions of the codes of a bucket.
    pub(super) fn range(&self, bucket: usize) -> Range<usize> {
        self.starts[bucket] as usize..self.starts[bucket + 1] as usize
    }

    /// Returns the bits of a code that do not number its bucket.
    pub(super) fn rest(&self, at: usize) -> u64 {
        u64::from(self.sides[at]) << 32 | u64::from(self.lows[at])
    }
}

/// Returns the number of codes of each bucket.
fn sizes(starts: &[u32]) -> impl Iterator<Item = usize> {
    let bounds = starts.windows(2);
    bounds.map(|bounds| (bounds[1] - bounds[0]) as usize)
}

/// Finder of pairs of codes that are near in their low bits.
#[derive(Default)]
pub(super) struct PartFinder {
    /// Positions of the codes of each pair in their parts. Not all are in the buckets that were compared.
    pub(super) found: Vec<(u32, u32)>,
    /// Buckets of the first part that are too heavy: no pairs are kept for them.
    pub(super) heavy: Vec<u32>,
    /// The bucket of each code of the current part.
    buckets: Vec<u16>,
    /// Start of the window for the codes of each bucket.
    windows: Vec<u32>,
    /// The words of a part by bucket.
    ordered: Vec<u64>,
}

/// Orders a part, drops duplicates, and finds the pairs within each bucket.
pub(super) fn sort_part(
    segments: &[&[u64]],
    shape: PartShape,
    radius: u32,
    room: &mut PartBuffers<'_>,
    finder: &mut PartFinder,
) {
    room.order(segments, shape, &mut finder.ordered);
    room.list_larger();
    room.drop_equal(DEDUP_MIN);
    let part = room.part();
    finder.number_buckets(part);
    finder.inside(part, radius);
    let equal = |&(a, b): &(u32, u32)| {
        let (a, b) = (a as usize, b as usize);
        let alike = b < part.len() && part.rest(a) == part.rest(b);
        alike && finder.buckets[a] == finder.buckets[b]
    };
    // Most parts have no duplicates, so all buckets are sorted only if the comparison shows some.
    if finder.found.iter().any(equal) {
        room.drop_equal(2);
        let part = room.part();
        finder.number_buckets(part);
        finder.inside(part, radius);
    }
}

impl PartFinder {
    /// Finds pairs inside the buckets of a part.
    fn inside(&mut self, part: OrderedPart<'_>, radius: u32) {
        self.found.clear();
        self.heavy.clear();
        let (lows, found) = (part.lows, &mut self.found);
        kernel::run(NearWindows {
            xs: &lows[..part.len()],
            ys: lows,
            // Each code with the sixteen after it, so that a pair comes up once.
            window: |at| at + 1,
            radius,
            first: 0,
            found: &mut *found,
        });
        for &bucket in part.larger {
            let range = part.range(bucket as usize);
            // The condition of `HEAVY`, for a bucket compared with itself.
            if range.len() > 2 * HEAVY {
                self.heavy.push(bucket);
                continue;
            }
            for beyond in (1 + WINDOW..range.len()).step_by(WINDOW) {
                // Codes whose window would begin after the bucket are left out.
                let (first, xs) = (range.start, range.start..range.end - beyond);
                let window = move |at| first + at + beyond;
                kernel::run(NearWindows {
                    xs: &lows[xs],
                    ys: lows,
                    window,
                    radius,
                    first,
                    found: &mut *found,
                });
            }
        }
        self.drop_heavy(part);
    }

    /// Prepares for comparisons of a part: lists the bucket of each code.
    pub(super) fn number_buckets(&mut self, part: OrderedPart<'_>) {
        self.buckets.resize(part.len() + WINDOW, 0);
        // Most buckets are no larger than a window; the next bucket overwrites the surplus.
        for (bucket, &start) in part.starts[..part.starts.len() - 1].iter().enumerate() {
            let from = start as usize;
            self.buckets[from..from + WINDOW].copy_from_slice(&[bucket as u16; WINDOW]);
        }
        for &bucket in part.larger {
            self.buckets[part.range(bucket as usize)].fill(bucket as u16);
        }
        self.buckets.truncate(part.len());
    }

    /// Returns the bucket of each code of the current part.
    pub(super) fn buckets(&self) -> &[u16] {
        &self.buckets
    }

    /// Finds pairs of codes of the current part whose buckets differ in bit `bit`.
    pub(super) fn within(&mut self, part: OrderedPart<'_>, bit: u32, radius: u32) {
        /// Bit below which the codes of both values are too close together for kernel calls of their own.
        const NEAR: u32 = 3;
        self.found.clear();
        self.heavy.clear();
        let (flip, buckets) = (1_usize << bit, part.starts.len() - 1);
        // Codes without the bit are compared with their partners, the others with `nowhere`: it is after the part, and matches there are rejected by
        // their position.
        let nowhere = part.len() as u32;
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        // The partner of a bucket without the bit is `flip` buckets further, so the windows are the starts, shifted by as many.
        windows.extend_from_slice(&part.starts[flip.min(buckets)..buckets]);
        windows.resize(buckets, nowhere);
        if bit < NEAR {
            for pairs in windows.chunks_exact_mut(2 * flip) {
                pairs[flip..].fill(nowhere);
            }
            self.compare_run(part, 0..part.len(), part, &windows, radius);
        } else {
            for bucket in (0..buckets).step_by(2 * flip) {
                let run = part.starts[bucket] as usize..part.starts[bucket + flip] as usize;
                self.compare_run(part, run, part, &windows, radius);
            }
        }
        self.windows = windows;
        for &larger in part.larger {
            // All codes of a large bucket on this side have been compared; of one on the other side only its first sixteen have.
            let bucket = larger as usize ^ flip;
            if bucket & flip == 0 {
                self.compare_beyond_window(part, bucket, part, bucket ^ flip, radius);
            }
        }
        self.drop_heavy(part);
    }

    /// Finds pairs of codes of the current part and of another whose buckets have the same number.
    pub(super) fn between(&mut self, part: OrderedPart<'_>, other: OrderedPart<'_>, radius: u32) {
        self.found.clear();
        self.heavy.clear();
        let buckets = other.starts.len() - 1;
        self.compare_run(part, 0..part.len(), other, &other.starts[..buckets], radius);
        for &bucket in other.larger {
            self.compare_beyond_window(part, bucket as usize, other, bucket as usize, radius);
        }
        self.drop_heavy(part);
    }

    /// Compares some codes with the first ones of the bucket of `other` that `windows` gives for their own bucket.
    fn compare_run(
        &mut self,
        part: OrderedPart<'_>,
        run: Range<usize>,
        other: OrderedPart<'_>,
        windows: &[u32],
        radius: u32,
    ) {
        let (xs, buckets) = (&part.lows[run.clone()], &self.buckets[run.clone()]);
        // The number of windows is a power of two, so a mask avoids a bounds check for each code. The index stays within the list, and a wrong bucket
        // only finds pairs that `pair` rejects.
        let last = windows.len() - 1;
        let window = move |at: usize| windows[buckets[at] as usize & last] as usize;
        let found = &mut self.found;
        kernel::run(NearWindows {
            xs,
            ys: other.lows,
            window,
            radius,
            first: run.start,
            found,
        });
    }

    /// Compares a bucket with the codes of another that the first window leaves out.
    fn compare_beyond_window(
        &mut self,
        part: OrderedPart<'_>,
        bucket: usize,
        other: OrderedPart<'_>,
        partner: usize,
        radius: u32,
    ) {
        let (mine, theirs) = (part.range(bucket), other.range(partner));
        // The harmonic form weighs both sides: a b comparisons, against a + b codes to move in the other way.
        let (a, b) = (mine.len(), theirs.len());
        if a * b > HEAVY * (a + b) {
            return self.heavy.push(bucket as u32);
        }
        for from in (theirs.start + WINDOW..theirs.end).step_by(WINDOW) {
            let (first, xs) = (mine.start, &part.lows[mine.clone()]);
            kernel::run(NearWindows {
                xs,
                ys: other.lows,
                window: |_| from,
                radius,
                first,
                found: &mut self.found,
            });
        }
    }

    /// Drops the pairs that were found for heavy buckets.
    fn drop_heavy(&mut self, part: OrderedPart<'_>) {
        for &bucket in &self.heavy {
            let range = part.range(bucket as usize);
            self.found
                .retain(|&(at, _)| !range.contains(&(at as usize)));
        }
    }
}
