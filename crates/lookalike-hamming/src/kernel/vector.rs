//! Some words that are compared together, and the algorithms that do it.

use super::super::code::Integer;
use super::address_filter::select_one_by_one;
use super::bits::low_ones;
use super::dense::Dense;
use super::probe_set::ProbeLocations;
use super::windows::NearWindows;

/// Instructions that work on some words at a time.
///
/// A value is the proof that the processor has them: only `run` makes one, from the level that was detected. So
/// all that is written over vectors is safe code; `unsafe` stands around single instructions, and where a value is made.
///
/// Methods are always inlined, and so must be what calls them, up to the function that is compiled for the instructions: the
/// compiler puts an instruction inline only there, and calls a function for it elsewhere. For the same reason no method may be
/// called by a closure that is handed to a function of the standard library, such as `fold`.
pub trait Vector<W: Integer>: Copy {
    /// The words of a vector.
    type Lanes: Copy;
    /// Number of these.
    const LANES: usize;
    /// True if two whole vectors are compared as fast as two words.
    const WIDE: bool;
    /// True if some words less than a vector are compared as fast as one by one.
    const PARTS: bool;

    /// The same word in each lane.
    fn splat(self, word: W) -> Self::Lanes;
    /// At most [`Vector::LANES`] words, in the first lanes; nothing is said of the others.
    fn load(self, words: &[W]) -> Self::Lanes;
    /// As many of `left` entries of `width` bytes as are worth a vector; zero if they are compared one by one as fast.
    fn packed_lanes(width: usize, left: usize) -> usize;
    /// As many entries of `width` bytes, which lie back to back, as [`Vector::packed_lanes`] says, in the first lanes.
    fn load_packed(self, bytes: &[u8], width: usize, count: usize) -> Self::Lanes;
    /// The first two vectors of the entries in a cache line, for all that they hold, where one load gives both.
    #[inline(always)]
    fn load_line(self, line: &[u8; 64], width: usize) -> Option<[Self::Lanes; 2]> {
        let _ = (line, width);
        None
    }
    /// Mask of the lanes that differ from those of `needles` in at most `radius` bits.
    fn near(self, lanes: Self::Lanes, needles: Self::Lanes, radius: u32) -> u64;
    /// The same of at most [`Vector::LANES`] words.
    #[inline(always)]
    fn near_words(self, words: &[W], needles: Self::Lanes, radius: u32) -> u64 {
        // Lanes that were not loaded may hold anything.
        self.near(self.load(words), needles, radius) & low_ones(words.len())
    }

    /// As [`Integer::extract`].
    #[inline(always)]
    fn extract(self, word: W, mask: W) -> W {
        word.extract(mask)
    }
    /// As [`Integer::deposit`].
    #[inline(always)]
    fn deposit(self, word: W, mask: W) -> W {
        word.deposit(mask)
    }
    /// The position of the `n`-th one of a word, from zero on; 64 when it has fewer.
    #[inline(always)]
    fn select(self, word: u64, n: u32) -> u32 {
        super::bits::deposit(1 << n, word).trailing_zeros()
    }

    // Three kernels are other algorithms where eight words can be gathered from anywhere in the memory: AVX-512 has forms of
    // its own for them.

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
    /// Writes what is kept of `items` to the front of `room`, which is as long; how many. See
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

/// An algorithm over vectors, with what it works on.
pub trait Kernel<W: Integer> {
    /// Result of the algorithm.
    type Output;

    /// Runs it. Implementations are always inlined; see [`Vector`].
    fn run<V: Vector<W>>(self, vector: V) -> Self::Output;
}
