//! Some words that are compared together, and the algorithms that compare them.

use super::super::code::Integer;
use super::address_filter::select_one_by_one;
use super::bits::low_ones;
use super::dense::Dense;
use super::probe_set::ProbeLocations;
use super::windows::NearWindows;

/// Instructions that work on some words at a time.
///
/// A value proves that the processor has them: only `run` creates one, from the level that was detected. So everything that is written over vectors
/// is safe code; `unsafe` is only around single instructions, and where a value is created.
///
/// Methods are always inlined, and so must be their callers, up to the function that is compiled for the instructions: only there does the compiler
/// put an instruction inline, and elsewhere it calls a function for it. For the same reason no method may be called by a closure that is passed to a
/// function of the standard library, such as `fold`.
pub trait Vector<W: Integer>: Copy {
    /// The words of a vector.
    type Lanes: Copy;
    /// Number of words of a vector.
    const LANES: usize;
    /// True if two whole vectors are compared as fast as two words.
    const WIDE: bool;
    /// True if fewer words than a vector are compared with it as fast as one by one.
    const PARTS: bool;

    /// Returns the same word in each lane.
    fn splat(self, word: W) -> Self::Lanes;
    /// Loads at most [`Vector::LANES`] words into the first lanes; the others are unspecified.
    fn load(self, words: &[W]) -> Self::Lanes;
    /// Returns how many of `left` entries of `width` bytes are worth a vector; zero if they are compared one by one as fast.
    fn packed_lanes(width: usize, left: usize) -> usize;
    /// Loads packed entries of `width` bytes, as many as [`Vector::packed_lanes`] returned, into the first lanes.
    fn load_packed(self, bytes: &[u8], width: usize, count: usize) -> Self::Lanes;
    /// Loads the first two vectors of the entries in a cache line, which hold all of them, if one load gives both.
    #[inline(always)]
    fn load_line(self, line: &[u8; 64], width: usize) -> Option<[Self::Lanes; 2]> {
        let _ = (line, width);
        None
    }
    /// Returns a mask of the lanes that differ from those of `needles` in at most `radius` bits.
    fn near(self, lanes: Self::Lanes, needles: Self::Lanes, radius: u32) -> u64;
    /// Does the same for at most [`Vector::LANES`] words.
    #[inline(always)]
    fn near_words(self, words: &[W], needles: Self::Lanes, radius: u32) -> u64 {
        // Lanes that were not loaded may hold anything.
        self.near(self.load(words), needles, radius) & low_ones(words.len())
    }

    /// Does the same as [`Integer::extract`].
    #[inline(always)]
    fn extract(self, word: W, mask: W) -> W {
        word.extract(mask)
    }
    /// Does the same as [`Integer::deposit`].
    #[inline(always)]
    fn deposit(self, word: W, mask: W) -> W {
        word.deposit(mask)
    }
    /// Returns the position of the `n`-th one of a word, counted from zero; 64 if it has fewer.
    #[inline(always)]
    fn select(self, word: u64, n: u32) -> u32 {
        super::bits::deposit(1 << n, word).trailing_zeros()
    }

    // Three kernels are different algorithms where eight words can be gathered from anywhere in memory: AVX-512 has separate forms of them.

    /// Compares the entries of a table as bits, in any order; see `ProbeDense`.
    #[inline(always)]
    fn probe_dense(
        self,
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        table.probe_one_by_one(probes, needle, hit)
    }
    /// Writes the owner's bits of the `items` that are marked to the front of `room`, which is as long, and returns their number. See
    /// `select_members`.
    #[inline(always)]
    fn select_members<const BLOOM: bool>(
        self,
        words: &[u64],
        items: &[u64],
        room: &mut [u32],
    ) -> usize {
        select_one_by_one::<BLOOM>(words, items, room)
    }
    /// Finds words near others in windows.
    #[inline(always)]
    fn near_windows<F: Fn(usize) -> usize + Copy>(self, search: NearWindows<'_, F>) {
        search.find_one_by_one();
    }
}

/// An algorithm over vectors, with its operands.
pub trait Kernel<W: Integer> {
    /// Result of the algorithm.
    type Output;

    /// Runs the algorithm. Implementations are always inlined; see [`Vector`].
    fn run<V: Vector<W>>(self, vector: V) -> Self::Output;
}
