//! Search of some words, or of packed entries, for those near a needle.
//!
//! Results are masks: bit i stands for word i, of which there are at most 64. Hits are left to the caller, and handled after the whole scan: they are
//! rare and unpredictable, so a branch for each comparison would be mispredicted at every hit, for about twenty cycles, in which whole vectors are
//! compared.

use super::super::code::Integer;
use super::bits::low_ones;
use super::one_by_one::OneByOne;
use super::vector::{Kernel, Vector};

/// Scan of at most 64 words. Returns a mask of those within `radius` of `needle`.
#[derive(Clone, Copy, Debug)]
pub struct ScanWords<'a, W> {
    /// The words.
    pub words: &'a [W],
    /// The word that they are compared with.
    pub needle: W,
    /// Maximum distance.
    pub radius: u32,
}

impl<W: Integer> Kernel<W> for ScanWords<'_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        assert!(self.words.len() <= 64);
        let needles = vector.splat(self.needle);
        let mut hits = 0;
        // Whole vectors are handled separately: the compiler knows their number of words, whereas a mask for the existing ones costs more than the
        // comparison.
        let whole = self.words.chunks_exact(V::LANES);
        let rest = whole.remainder();
        for (at, words) in whole.enumerate() {
            hits |= vector.near_words(words, needles, self.radius) << (at * V::LANES);
        }
        let at = self.words.len() - rest.len();
        if V::PARTS && !rest.is_empty() {
            hits |= vector.near_words(rest, needles, self.radius) << at;
        }
        if !V::PARTS {
            for (at, &word) in (at..).zip(rest) {
                hits |= u64::from((word ^ self.needle).ones() <= self.radius) << at;
            }
        }
        hits
    }
}

/// Scan of `count` entries, at most 64, of `width` bytes at the start of `bytes`. Returns a mask of those within `radius` of `needle`. An entry is a
/// little-endian number, at most as wide as a word.
///
/// # Panics
///
/// Panics if `bytes` is shorter than the entries, or `count` or `width` is out of range.
#[derive(Clone, Copy, Debug)]
pub struct ScanPacked<'a, W> {
    /// The entries, and the bytes that follow them.
    pub bytes: &'a [u8],
    /// Bytes of an entry.
    pub width: usize,
    /// Number of entries that are compared.
    pub count: usize,
    /// The word that they are compared with.
    pub needle: W,
    /// Maximum distance.
    pub radius: u32,
}

impl<W: Integer> Kernel<W> for ScanPacked<'_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let Self {
            bytes,
            width,
            count,
            needle,
            radius,
        } = self;
        debug_assert!(count <= 64 && width <= W::BITS as usize / 8);
        let needles = vector.splat(needle);
        let (mut hits, mut at) = (0, 0);
        loop {
            // The vector decides how many entries it can load: AVX2 four of four to eight bytes, AVX-512 eight, others none.
            let lanes = V::packed_lanes(width, count - at);
            if lanes == 0 {
                break;
            }
            let entries = vector.load_packed(&bytes[at * width..], width, lanes);
            hits |= (vector.near(entries, needles, radius) & low_ones(lanes)) << at;
            at += lanes;
        }
        for at in at..count {
            let entry = W::read_at(bytes, at * width, width);
            hits |= u64::from((entry ^ needle).ones() <= radius) << at;
        }
        hits
    }
}

impl<W: Integer> ScanPacked<'_, W> {
    /// Runs the scan for entries that a wide vector cannot load: those of few bytes, and the last of a table.
    #[inline(always)]
    fn run_apart<V: Vector<W>>(self, vector: V) -> u64 {
        /// A call, to keep it out of the loops for all other entries.
        #[cold]
        #[inline(never)]
        fn one_by_one<W: Integer>(entries: ScanPacked<'_, W>) -> u64 {
            entries.run(OneByOne)
        }
        if V::WIDE {
            one_by_one(self)
        } else {
            self.run(vector)
        }
    }
}

/// [`ScanPacked`] for entries from byte `place` on, followed by others that may be read.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ScanRun<'a, W> {
    /// Byte offset of the first entry in `entries`.
    pub place: usize,
    /// All entries of the table, from the first to the last.
    pub entries: ScanPacked<'a, W>,
}

impl<W: Integer> Kernel<W> for ScanRun<'_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let ScanPacked {
            bytes,
            width,
            count,
            needle,
            radius,
        } = self.entries;
        let lanes = V::LANES;
        // Whole vectors, at least one: entries after the bucket are compared as well, and masked off at the end.
        let whole = count.max(1).next_multiple_of(lanes) * width;
        let bytes = match bytes.get(self.place..self.place + whole) {
            Some(bytes) if V::WIDE && V::packed_lanes(width, lanes) == lanes => bytes,
            _ => {
                let bytes = &bytes[self.place..];
                let entries = ScanPacked {
                    bytes,
                    ..self.entries
                };
                return entries.run_apart(vector);
            }
        };
        // Two vectors are compared even if one would be enough, and then the same one twice: the number of entries in a bucket is unpredictable, and
        // a mispredicted branch on it costs more than a vector. But the second one does not read memory beyond the bucket, which has not been
        // prefetched.
        let needles = vector.splat(needle);
        // A conditional move, not a branch.
        let second = if count > lanes { lanes * width } else { 0 };
        let entries = vector.load_packed(bytes, width, lanes);
        let beyond = vector.load_packed(&bytes[second..], width, lanes);
        let mut hits =
            vector.near(entries, needles, radius) | vector.near(beyond, needles, radius) << lanes;
        // Few buckets get here, so the branch is predicted.
        let mut at = 2 * lanes;
        while at < count {
            let entries = vector.load_packed(&bytes[at * width..], width, lanes);
            hits |= vector.near(entries, needles, radius) << at;
            at += lanes;
        }
        hits & low_ones(count)
    }
}

/// [`ScanPacked`] for entries in one cache line, which is loaded once.
#[derive(Clone, Copy, Debug)]
pub struct ScanLine<'a, W> {
    /// The line, with its entries at the start.
    pub line: &'a [u8; 64],
    /// The same entries.
    pub entries: ScanPacked<'a, W>,
}

impl<W: Integer> Kernel<W> for ScanLine<'_, W> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let entries = self.entries;
        match vector.load_line(self.line, entries.width) {
            Some([first, second]) => {
                // No branch depends on the number of entries.
                let needles = vector.splat(entries.needle);
                let hits = vector.near(first, needles, entries.radius)
                    | vector.near(second, needles, entries.radius) << V::LANES;
                hits & low_ones(entries.count)
            }
            None => entries.run(vector),
        }
    }
}

/// Returns the positions of a mask's ones, ascending.
#[inline(always)]
pub(in super::super) fn hit_positions(hits: u64) -> HitPositions {
    HitPositions(hits)
}

/// Iterator of [`hit_positions`].
pub(in super::super) struct HitPositions(u64);

impl Iterator for HitPositions {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let at = self.0.trailing_zeros() as usize;
        // Clears the lowest one (BLSR).
        self.0 &= self.0 - 1;
        Some(at)
    }
}
