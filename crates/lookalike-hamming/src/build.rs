//! Building of a table's buckets, in order, from codes in any order and in bounded memory.
//!
//! Codes are scattered by the leading bits of their address into parts that fit the cache, and each part by the rest of the address. Each bucket is
//! sorted and its duplicates are dropped before it is passed on. If the scratch memory does not hold all codes, the source is replayed once for each
//! slice of the address space that fits.

use super::code::Word;
use super::kernel::Permute;
use super::scatter::ScatterBuffers;
use super::threads::in_parallel_with;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Codes that can be read again and again, in the same order each time.
///
/// ```
/// use lookalike_hamming::{BuildLimits, CodeSource, Design, Family, Layout, TableIndex};
/// use std::io::{self, BufRead};
///
/// /// Codes in a file, a line each.
/// struct Lines(String);
///
/// impl CodeSource<u64> for Lines {
///     fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> io::Result<()> {
///         for line in self.0.as_bytes().lines() {
///             let code = u64::from_str_radix(&line?, 16).map_err(io::Error::other)?;
///             sink(&[code]);
///         }
///         Ok(())
///     }
/// }
///
/// let source = Lines("00ff\n0000\n".to_owned());
/// let design = Design::new(Family::block_choice(4, 3), 64, 3)?;
/// let index = TableIndex::<u64>::build_from(&source, &design, Layout::Packed, BuildLimits::default())?;
/// assert!(index.contains(0xff));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait CodeSource<C: Word>: Sync {
    /// Passes all codes to `sink`, in chunks of any size.
    ///
    /// # Errors
    ///
    /// Returns an error if reading the codes fails.
    fn replay(&self, sink: &mut dyn FnMut(&[C])) -> io::Result<()>;
}

impl<C: Word> CodeSource<C> for [C] {
    fn replay(&self, sink: &mut dyn FnMut(&[C])) -> io::Result<()> {
        sink(self);
        Ok(())
    }
}

/// A source that passes on no more codes once the build is cancelled.
pub(super) struct CancellableSource<'a, S: ?Sized> {
    pub(super) source: &'a S,
    pub(super) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// Number of codes between two checks for cancellation.
const CANCELLATION_INTERVAL: usize = 1 << 16;

impl<C: Word, S: CodeSource<C> + ?Sized> CodeSource<C> for CancellableSource<'_, S> {
    fn replay(&self, sink: &mut dyn FnMut(&[C])) -> io::Result<()> {
        let mut is_cancelled = (self.is_cancelled)();
        self.source.replay(&mut |codes| {
            for codes in codes.chunks(CANCELLATION_INTERVAL) {
                is_cancelled = is_cancelled || (self.is_cancelled)();
                // The source continues, as it cannot be stopped, but its codes are dropped.
                if !is_cancelled {
                    sink(codes);
                }
            }
        })?;
        match is_cancelled {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

/// Reason why an index could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There are more codes than tables of [`Layout::CacheLineBuckets`](super::Layout) can hold.
    #[error("{0} fingerprints are too many for cache-line buckets; choose another layout")]
    TooManyForBuckets(u64),
    /// Too many codes to be sorted together agree in the leading bits of their addresses.
    #[error(
        "{0} fingerprints agree in most bits that number the buckets; the maximum is 4,294,967,295"
    )]
    TooManyEqualAddresses(u64),
    /// The design is for codes of another width.
    #[error("the design is for {design}-bit codes, and these have {codes} bits")]
    OtherWidth {
        /// Width that the design is for, in bits.
        design: u32,
        /// Width of the codes, in bits.
        codes: u32,
    },
    /// The design needs so many probes per query that a linear scan is faster.
    #[error("the design needs {0} probes of one table; choose one with smaller error budgets")]
    TooManyProbes(u64),
    /// The source gave another number of codes, or of distinct codes, when it was read again. Codes that changed into as many others may go
    /// unnoticed.
    #[error("the fingerprints changed while they were read")]
    Changed,
    /// The number of ids is not the number of codes.
    #[error("there are {codes} fingerprints but {ids} ids")]
    IdCount {
        /// Number of codes.
        codes: usize,
        /// Number of ids.
        ids: usize,
    },
    /// The end of an id, counted from zero, is before that of the id before it, or not at a character boundary in the texts.
    #[error("id {0}, counted from 0, ends before the id before it, or within a character")]
    IdEnd(usize),
    /// An earlier table was written in part only.
    #[error(
        "a table was written in part only, because its writing failed: resume the index from its last progress"
    )]
    Failed,
    /// The source could not be read.
    #[error("reading fingerprints")]
    Read(#[from] io::Error),
    /// The index could not be written.
    #[error("writing the index: {0}")]
    Write(io::Error),
    /// The build was cancelled.
    #[error("the build was cancelled")]
    Cancelled,
    /// The file was to be ended before all its tables were written.
    #[error("the index does not have all its tables yet")]
    Incomplete,
}

/// Division of a code into the bits that address its bucket and those that are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuildAddressing<W> {
    /// Bits that address the bucket.
    pub(super) address: W,
    /// All other bits.
    pub(super) rest: W,
    pub(super) address_bits: u32,
    pub(super) rest_bits: u32,
}

impl<W: Word> BuildAddressing<W> {
    pub(super) fn new(mask: u128) -> Self {
        let address = W::from_u128(mask);
        let address_bits = address.ones();
        Self {
            address,
            rest: !address,
            address_bits,
            rest_bits: W::BITS - address_bits,
        }
    }

    pub(super) fn bucket(&self, word: W) -> u64 {
        word.extract(self.address).above(0)
    }

    pub(super) fn restored(&self, bucket: u64, rest: W) -> W {
        W::joined(bucket, W::ZERO, 0).deposit(self.address) | rest.deposit(self.rest)
    }
}

/// Division of the codes into parts.
struct PartDivision {
    /// Number of leading address bits that identify a part.
    bits: u32,
    /// Number of address bits below them.
    below: u32,
    /// Number of codes in each part.
    counts: Vec<usize>,
}

impl PartDivision {
    fn of<W: Word>(&self, permuted: W, addressing: &BuildAddressing<W>) -> usize {
        permuted.above(addressing.rest_bits + self.below) as usize
    }

    /// Returns runs of parts that hold at most `most` codes, or a single part.
    fn slices(&self, most: usize) -> Vec<Range<usize>> {
        let mut slices: Vec<Range<usize>> = Vec::new();
        let mut held = 0;
        for (part, &count) in self.counts.iter().enumerate() {
            match slices.last_mut() {
                Some(slice) if held + count <= most => {
                    slice.end = part + 1;
                    held += count;
                }
                _ => {
                    slices.push(part..part + 1);
                    held = count;
                }
            }
        }
        slices
    }
}

/// Maximum number of codes in a part.
const MAX_CODES_PER_PART: usize = if cfg!(test) {
    1 << 20
} else {
    u32::MAX as usize
};

/// Receiver of buckets: the stored bits of their codes, and the number of codes in each bucket.
pub(super) type EntrySink<'a, W> = &'a mut dyn FnMut(&[W], &[u32]);

/// Passes every bucket to `sink`, from the first to the last and including empty ones, some at a time: the stored bits of their distinct codes,
/// ascending within each bucket, and the number of codes in each.
///
/// `count` is the number of codes of the source. Takes at most `scratch_bytes`, if the distinct codes of a part fit in half of them, or with
/// several threads in three eighths, plus some mebibytes. One of the threads passes buckets on, the others sort them.
pub(super) fn buckets<C: Word>(
    source: &(impl CodeSource<C> + ?Sized),
    count: usize,
    addressing: &BuildAddressing<C>,
    scratch_bytes: usize,
    threads: usize,
    sink: EntrySink<'_, C>,
) -> Result<(), BuildError> {
    let parts = count_parts(source, count, addressing)?;
    // The source was counted when it was first read, and memory is reserved for that count.
    if parts.counts.iter().sum::<usize>() != count {
        return Err(BuildError::Changed);
    }
    // Positions in a part, and sizes of buckets, have 32 bits.
    if let Some(&alike) = parts
        .counts
        .iter()
        .find(|&&count| count > MAX_CODES_PER_PART)
    {
        return Err(BuildError::TooManyEqualAddresses(alike as u64));
    }
    let run_bytes = PartRun::<C>::bytes(count.div_ceil(parts.counts.len()));
    // Sorted runs get a quarter of the memory, however many threads there are: two for each thread that sorts.
    let sorting = (scratch_bytes / 4 / (2 * run_bytes).max(1)).min(threads.saturating_sub(1));
    let most = (scratch_bytes - 2 * sorting * run_bytes) / size_of::<C>();
    let mut scratch = Vec::new();
    let mut runs = PartRuns::new(sorting);
    // Each slice reads the source once more. Slices are whole parts, so buckets come out in order, whatever the memory.
    for slice in parts.slices(most) {
        if parts.counts[slice.clone()].iter().sum::<usize>() > most {
            // A single part, most of whose codes may be equal.
            gather_distinct(source, addressing, &parts, slice.start, most, &mut scratch)?;
            runs.buckets(&[scratch.as_slice()], addressing, parts.below, sink);
            continue;
        }
        gather(source, addressing, &parts, slice.clone(), &mut scratch)?;
        let mut rest = scratch.as_slice();
        let codes = slice.map(|part| {
            let (codes, later) = rest.split_at(parts.counts[part]);
            rest = later;
            codes
        });
        let codes: Vec<&[C]> = codes.collect();
        runs.buckets(&codes, addressing, parts.below, sink);
    }
    Ok(())
}

/// Calls `each` with the permuted words of some codes.
pub(super) fn permuted<C: Word>(
    codes: &[C],
    addressing: &BuildAddressing<C>,
    each: &mut impl FnMut(C),
) {
    // One kernel call for a whole block: a dispatch for each code would cost more than its two PEXT.
    const BLOCK: usize = 256;
    let mut permuted = [C::ZERO; BLOCK];
    for codes in codes.chunks(BLOCK) {
        let permuted = &mut permuted[..codes.len()];
        C::run(Permute {
            words: codes,
            address: addressing.address,
            out: &mut *permuted,
        });
        permuted.iter().for_each(|&permuted| each(permuted));
    }
}

fn count_parts<C: Word>(
    source: &(impl CodeSource<C> + ?Sized),
    count: usize,
    addressing: &BuildAddressing<C>,
) -> Result<PartDivision, BuildError> {
    // A part of 2^15 codes fits the second-level cache, with room for its sorted copy. At most 2^13 parts: their lines, on the way to memory, take
    // 512 KiB.
    let wanted = count.max(1).ilog2().saturating_sub(15).min(13);
    let bits = wanted.min(addressing.address_bits);
    let mut parts = PartDivision {
        bits,
        below: addressing.address_bits - bits,
        counts: Vec::new(),
    };
    parts.counts.resize(1 << parts.bits, 0);
    source.replay(&mut |codes| {
        permuted(codes, addressing, &mut |permuted| {
            // Counted in a separate pass, so that parts are back to back without gaps or growth, and the memory is known before it is allocated.
            let part = parts.of(permuted, addressing);
            parts.counts[part] += 1;
        });
    })?;
    Ok(parts)
}

/// Fills `out` with the permuted codes of a slice of parts, part by part.
fn gather<C: Word>(
    source: &(impl CodeSource<C> + ?Sized),
    addressing: &BuildAddressing<C>,
    parts: &PartDivision,
    slice: Range<usize>,
    out: &mut Vec<C>,
) -> Result<(), BuildError> {
    let mut scatter = ScatterBuffers::new(&parts.counts[slice.clone()], out);
    let mut fits = true;
    source.replay(&mut |codes| {
        permuted(codes, addressing, &mut |permuted| {
            // Parts before the slice wrap to large numbers, so one comparison checks both ends.
            let part = parts.of(permuted, addressing).wrapping_sub(slice.start);
            if part < slice.len() {
                fits &= scatter.push(part, permuted, out);
            }
        });
    })?;
    let complete = scatter.finish(out);
    if fits && complete {
        Ok(())
    } else {
        Err(BuildError::Changed)
    }
}

/// Fills `out` with the distinct permuted codes of one part, of which it holds at most `most` copies, or twice the distinct ones.
fn gather_distinct<C: Word>(
    source: &(impl CodeSource<C> + ?Sized),
    addressing: &BuildAddressing<C>,
    parts: &PartDivision,
    part: usize,
    most: usize,
    out: &mut Vec<C>,
) -> Result<(), BuildError> {
    let (mut room, mut seen) = (most, 0);
    let drop_copies = |out: &mut Vec<C>| {
        out.sort_unstable();
        out.dedup();
    };
    out.clear();
    // Not by doubling, which may exceed the room. The part has more copies than that.
    out.reserve_exact(most);
    source.replay(&mut |codes| {
        permuted(codes, addressing, &mut |permuted| {
            if parts.of(permuted, addressing) != part {
                return;
            }
            seen += 1;
            if out.len() >= room {
                drop_copies(out);
                room = room.max(2 * out.len());
                out.reserve_exact(room - out.len());
            }
            out.push(permuted);
        });
    })?;
    drop_copies(out);
    match seen == parts.counts[part] {
        true => Ok(()),
        false => Err(BuildError::Changed),
    }
}

/// Sorts parts, several at a time, while the parts before them are passed on.
struct PartRuns<W> {
    /// Parts that are passed on, and those in `busy`, which are sorted meanwhile.
    ready: Vec<PartRun<W>>,
    busy: Vec<PartRun<W>>,
}

/// Number of parts that a thread sorts at a time.
const PARTS_AT_ONCE: usize = 8;

/// A few parts, sorted.
#[derive(Default)]
struct PartRun<W> {
    sorter: PartSorter<W>,
    rests: Vec<W>,
    /// Number of codes in each bucket.
    sizes: Vec<u32>,
}

impl<W: Word> PartRun<W> {
    /// Returns the memory of a run of parts that hold `codes` codes each, on average.
    fn bytes(codes: usize) -> usize {
        // The sorter holds one part more, as it was and in order.
        codes * (PARTS_AT_ONCE * (size_of::<W>() + size_of::<u32>()) + 2 * size_of::<W>())
    }

    fn sort(&mut self, parts: &[&[W]], addressing: &BuildAddressing<W>, below: u32) {
        self.rests.clear();
        self.sizes.clear();
        // Not by doubling, which takes up to twice as much.
        self.rests
            .reserve_exact(parts.iter().map(|codes| codes.len()).sum());
        for codes in parts {
            let (rests, sizes) = self.sorter.buckets(codes, addressing.rest_bits, below);
            self.rests.extend_from_slice(rests);
            self.sizes.extend_from_slice(sizes);
        }
    }

    /// Passes the buckets on, and clears them.
    fn flush_to(&mut self, sink: EntrySink<'_, W>) {
        if !self.sizes.is_empty() {
            sink(&self.rests, &self.sizes);
            self.sizes.clear();
        }
    }
}

impl<W: Word> PartRuns<W> {
    /// Creates the runs of `sorting` threads besides this one, which passes buckets on, or sorts itself if there are none.
    fn new(sorting: usize) -> Self {
        let runs = |count| (0..count).map(|_| PartRun::default()).collect();
        Self {
            ready: runs(sorting.max(1)),
            busy: runs(sorting),
        }
    }

    fn buckets(
        &mut self,
        parts: &[&[W]],
        addressing: &BuildAddressing<W>,
        below: u32,
        sink: EntrySink<'_, W>,
    ) {
        if self.busy.is_empty() {
            let sorter = &mut self.ready[0].sorter;
            for codes in parts {
                let (rests, sizes) = sorter.buckets(codes, addressing.rest_bits, below);
                sink(rests, sizes);
            }
            return;
        }
        for round in parts.chunks(PARTS_AT_ONCE * self.busy.len()) {
            let busy: Vec<_> = self.busy.iter_mut().map(Mutex::new).collect();
            let parts: Vec<_> = round.chunks(PARTS_AT_ONCE).collect();
            let sort = |number: usize| {
                // Each number belongs to one thread.
                let mut run = busy[number].lock().unwrap_or_else(PoisonError::into_inner);
                run.sort(parts[number], addressing, below);
            };
            // This thread passes on the round before, in order, while the others sort.
            in_parallel_with(0..parts.len(), &sort, &mut || {
                self.ready.iter_mut().for_each(|run| run.flush_to(sink));
            });
            // The parts sorted in this round are passed on in the next.
            std::mem::swap(&mut self.ready, &mut self.busy);
        }
        self.ready.iter_mut().for_each(|run| run.flush_to(sink));
    }
}

/// Sorts one part after the other.
#[derive(Default)]
struct PartSorter<W> {
    sorted: Vec<W>,
    /// End of each bucket, and later the number of its codes.
    sizes: Vec<u32>,
}

/// Number of codes above which a bucket is sorted by itself.
const BUCKET_SORT_MIN: usize = 24;

impl<W: Word> PartSorter<W> {
    /// Returns the stored bits of the distinct codes of each bucket of a part, and the number of codes in each.
    fn buckets(&mut self, codes: &[W], rest_bits: u32, below: u32) -> (&[W], &[u32]) {
        self.scatter(codes, rest_bits, below);
        let mut start = 0;
        for &end in &self.sizes {
            let bucket = &mut self.sorted[start..end as usize];
            // Insertion sort follows, which is quadratic, and all codes may share one address.
            if bucket.len() > BUCKET_SORT_MIN {
                bucket.sort_unstable();
            }
            start = end as usize;
        }
        sort_nearly_sorted(&mut self.sorted);
        let distinct = keep_distinct(&mut self.sorted);
        // If nothing was dropped, the ends still hold. Duplicates are rare in most collections, so only a part that has some pays for counting again.
        if distinct == codes.len() {
            let mut start = 0;
            for slot in &mut self.sizes {
                let end = *slot;
                *slot -= std::mem::replace(&mut start, end);
            }
        } else {
            self.sorted.truncate(distinct);
            self.count(rest_bits, below);
        }
        for code in &mut self.sorted {
            *code = code.low(rest_bits);
        }
        (&self.sorted, &self.sizes)
    }

    /// Counts the sorted codes in each bucket.
    fn count(&mut self, rest_bits: u32, below: u32) {
        let bucket = bucket_of(rest_bits, below);
        self.sizes.clear();
        self.sizes.resize(1 << below, 0);
        for &code in &self.sorted {
            self.sizes[bucket(code)] += 1;
        }
    }

    /// Sorts by counting, by the low `below` bits of the address, which are above `rest_bits` other bits.
    fn scatter(&mut self, codes: &[W], rest_bits: u32, below: u32) {
        let bucket = bucket_of(rest_bits, below);
        let ends = &mut self.sizes;
        ends.clear();
        ends.resize(1 << below, 0);
        self.sorted.resize(codes.len(), W::ZERO);
        for &code in codes {
            ends[bucket(code)] += 1;
        }
        let mut start = 0;
        for slot in ends.iter_mut() {
            // Counts become starts; the pass below moves each start to the end of its bucket.
            start += std::mem::replace(slot, start);
        }
        for &code in codes {
            let slot = &mut ends[bucket(code)];
            self.sorted[*slot as usize] = code;
            *slot += 1;
        }
    }
}

/// Returns the bucket of a code within its part.
fn bucket_of<W: Word>(rest_bits: u32, below: u32) -> impl Fn(W) -> usize {
    let last = (1 << below) - 1;
    move |code: W| (code.above(rest_bits) & last) as usize
}

/// Sorts codes that are already near their positions, in one loop over all buckets. Most buckets have one code or a handful: a loop for each would be
/// mispredicted at its end.
fn sort_nearly_sorted<W: Word>(codes: &mut [W]) {
    for from in 1..codes.len() {
        let code = codes[from];
        let mut to = from;
        // Stops at the start of the bucket at the latest, because its number is above the other bits of each code.
        while to > 0 && codes[to - 1] > code {
            codes[to] = codes[to - 1];
            to -= 1;
        }
        codes[to] = code;
    }
}

/// Moves the distinct ones of sorted codes to the front, and returns their number.
fn keep_distinct<W: Word>(codes: &mut [W]) -> usize {
    let Some(&(mut last)) = codes.first() else {
        return 0;
    };
    let mut kept = 1;
    for at in 1..codes.len() {
        let code = codes[at];
        // Written before it is known to be different, so that no branch depends on it.
        codes[kept] = code;
        kept += usize::from(code != last);
        last = code;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::{Design, Family, Layout, TableIndex};
    use super::*;

    /// Copies of a few codes.
    struct RepeatedCodes;

    impl RepeatedCodes {
        const COUNT: usize = 300_000;
    }

    impl CodeSource<u64> for RepeatedCodes {
        fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> io::Result<()> {
            (0..Self::COUNT as u64 / 3).for_each(|copy| sink(&[9, 7 + copy % 2 * 4, 1 << 63]));
            Ok(())
        }
    }

    #[test]
    fn memory_was_taken_for_each_copy_of_a_code() {
        const MOST: usize = 1000;
        let addressing = BuildAddressing::<u64>::new(0xff << 56);
        let parts = count_parts(&RepeatedCodes, RepeatedCodes::COUNT, &addressing).unwrap();
        let mut codes = Vec::new();
        gather_distinct(&RepeatedCodes, &addressing, &parts, 0, MOST, &mut codes).unwrap();
        assert_eq!(codes, [7, 9, 11]);
        assert!(codes.capacity() <= MOST, "{}", codes.capacity());
        let mut found = Vec::new();
        let sink: EntrySink<'_, u64> = &mut |rests, sizes| {
            found.extend_from_slice(rests);
            assert!(sizes.len() <= 256);
        };
        let (count, bytes) = (RepeatedCodes::COUNT, MOST * size_of::<u64>());
        buckets(&RepeatedCodes, count, &addressing, bytes, 1, sink).unwrap();
        assert_eq!(found, [7, 9, 11, 0]);
    }

    #[test]
    fn so_many_equal_codes_that_places_among_them_would_wrap_are_refused() {
        let design = Design::new(Family::budgets(&[1, 1]), 64, 3).expect("a design");
        let build = |codes: &[u64]| TableIndex::build(codes, &design, Layout::Dense);
        let codes = vec![7; MAX_CODES_PER_PART + 1];
        assert_eq!(build(&codes[1..]).expect("just enough").len(), 1);
        let refused = build(&codes);
        assert!(matches!(
            refused,
            Err(BuildError::TooManyEqualAddresses(1_048_577))
        ));
    }
}
