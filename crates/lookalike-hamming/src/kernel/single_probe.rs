//! Tables that a query probes once each: all its probes as one loop.
//!
//! Where a table tolerates no error, a query has one probe of it, and the bookkeeping of a stream of tasks (`index`) would
//! cost more than the probe. Here a few queries at a time, a *wave*, pass three stages: their buckets are numbered and asked
//! for; what lies behind these (entries of packed tables, what does not fit a line) is asked for; entries are compared. A
//! stage of one wave is made while the memory that the next stage of the wave before needs is on its way.
//!
//! Functions of the loop are always inlined, so that its stages are as well: for words of 64 bits they are made of the
//! instructions of the processor.

use super::super::code::Word;
use super::bits::{deposit_portably, extract_portably};
use super::memory::{prefetch, prefetch_overflow, prefetch_run};
use super::scan::scan_packed_from;
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{CacheLine, KernelLevel};

/// Most tables that are searched so.
pub(in super::super) const MOST_TABLES: usize = 20;
/// Probes of a wave, at most: as many lines as a processor fetches at a time, or twice that.
const WAVE: usize = 32;
/// Entries that are compared at a time.
const TOGETHER: usize = 64;

/// Division of a code into the bits that number its bucket and those that are stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddressSplit<W> {
    pub(in super::super) address: W,
    pub(in super::super) rest: W,
}

/// Some entries of a bucket, at most 64: so many from a place of some bytes on.
#[derive(Clone, Copy, Debug)]
pub struct EntryRun<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) place: usize,
    pub(super) count: usize,
}

/// A table that is searched so.
pub trait SingleProbeTable<W>: Copy + Default {
    /// True if the first run of a bucket is a cache line.
    const IN_CACHE_LINES: bool;
    /// Place of the entries of a bucket, once that is known.
    type Place: Copy + Default;

    /// Division of codes into address and stored bits.
    fn split(&self) -> AddressSplit<W>;
    /// Bytes of an entry.
    fn width(&self) -> usize;
    /// Asks for the memory of a bucket.
    fn prefetch(&self, bucket: u32);
    /// Looks at a bucket that was asked for, and asks for what lies behind it.
    fn locate(&self, bucket: u32) -> Self::Place;
    /// The runs of a bucket by their numbers from zero on; `None` behind the last.
    fn run(&self, bucket: u32, place: Self::Place, number: usize) -> Option<EntryRun<'_>>;
}

/// A table with a line for each bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct BucketTable<'a, W> {
    pub(in super::super) split: AddressSplit<W>,
    pub(in super::super) lines: &'a [CacheLine],
    /// Overflow of the buckets, as the module `stored` says.
    pub(in super::super) overflow: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
    /// Entries of a line.
    pub(in super::super) capacity: u32,
    /// Unit of an overflow place, in bytes.
    pub(in super::super) unit: usize,
}

impl<'a, W> BucketTable<'a, W> {
    /// Place of the overflow of a bucket; the beginning where there is none.
    #[inline(always)]
    fn overflow_place(&self, tail: u32) -> usize {
        tail.saturating_sub(self.capacity + 1) as usize * self.unit
    }

    /// The entries of a bucket that its line does not hold, and how many these are.
    fn overflow_entries(&self, tail: u32) -> (&'a [u8], usize) {
        let list = self.overflow.get(self.overflow_place(tail)..);
        let (count, entries) = list
            .and_then(<[u8]>::split_first_chunk)
            .unwrap_or((&[0; 4], &[]));
        let count = u32::from_le_bytes(*count).saturating_sub(self.capacity);
        // A damaged file may tell of more than there is; whole ones never do.
        let most = entries.len() / self.width.max(1);
        (entries, (count as usize).min(most))
    }
}

impl<W: Word> SingleProbeTable<W> for BucketTable<'_, W> {
    const IN_CACHE_LINES: bool = true;
    type Place = ();

    #[inline(always)]
    fn split(&self) -> AddressSplit<W> {
        self.split
    }

    #[inline(always)]
    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        prefetch(self.lines, bucket as usize);
    }

    #[inline(always)]
    fn locate(&self, bucket: u32) {
        let tail = self.lines[bucket as usize].tail();
        prefetch_overflow(self.overflow, self.overflow_place(tail));
    }

    #[inline(always)]
    fn run(&self, bucket: u32, (): (), number: usize) -> Option<EntryRun<'_>> {
        let line = &self.lines[bucket as usize];
        let tail = line.tail();
        let Some(number) = number.checked_sub(1) else {
            return Some(EntryRun {
                bytes: &line.0,
                place: 0,
                count: tail.min(self.capacity) as usize,
            });
        };
        if tail <= self.capacity {
            return None;
        }
        let (bytes, count) = self.overflow_entries(tail);
        part_of(bytes, 0, count, self.width, number)
    }
}

/// A table with entries back to back.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackedTable<'a, W> {
    pub(in super::super) split: AddressSplit<W>,
    /// Rank of the first entry of each bucket, and of the end.
    pub(in super::super) starts: &'a [[u8; 4]],
    /// With eight bytes more.
    pub(in super::super) entries: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
}

impl<W: Word> SingleProbeTable<W> for PackedTable<'_, W> {
    const IN_CACHE_LINES: bool = false;
    /// Of the first entry, and how many there are.
    type Place = (usize, usize);

    #[inline(always)]
    fn split(&self) -> AddressSplit<W> {
        self.split
    }

    #[inline(always)]
    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        prefetch(self.starts, bucket as usize);
        // In the next line now and then.
        prefetch(self.starts, bucket as usize + 1);
    }

    #[inline(always)]
    fn locate(&self, bucket: u32) -> (usize, usize) {
        let rank = |at: usize| u32::from_le_bytes(self.starts[at]) as usize;
        let first = rank(bucket as usize);
        let count = rank(bucket as usize + 1).saturating_sub(first);
        let place = first * self.width;
        prefetch_run(self.entries, place, count, self.width);
        (place, count)
    }

    #[inline(always)]
    fn run(&self, _: u32, (place, count): (usize, usize), number: usize) -> Option<EntryRun<'_>> {
        part_of(self.entries, place, count, self.width, number)
    }
}

/// The entries of a list that are compared as its `number`-th part.
#[inline(always)]
fn part_of(
    bytes: &[u8],
    place: usize,
    count: usize,
    width: usize,
    number: usize,
) -> Option<EntryRun<'_>> {
    let before = number * TOGETHER;
    (before < count).then(|| EntryRun {
        bytes,
        place: place + before * width,
        count: (count - before).min(TOGETHER),
    })
}

/// Word operations of the loop.
pub(in super::super) struct ProbeStages<Extract, Deposit, Near> {
    /// As [`Word::extract`].
    pub(in super::super) extract: Extract,
    /// As [`Word::deposit`].
    pub(in super::super) deposit: Deposit,
    /// Mask of those of at most 64 entries, from a place of some bytes on, that are within the radius of a needle: bytes, place, width,
    /// count, needle, radius.
    pub(in super::super) near: Near,
}

/// Receiver of what is found: number of the query, code, distance.
pub(in super::super) type Found<'v, W> = &'v mut dyn FnMut(usize, W, u32);

/// Searches 1 to [`MOST_TABLES`] tables; how many entries were compared. What is found for one query comes together.
#[inline(always)]
pub(in super::super) fn search_with<W: Word, T: SingleProbeTable<W>>(
    tables: &[T],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
    stages: &ProbeStages<
        impl Fn(W, W) -> W,
        impl Fn(W, W) -> W,
        impl Fn(&[u8], usize, usize, usize, W, u32) -> u64,
    >,
) -> u64 {
    let mut pipeline = ProbePipeline {
        tables,
        queries,
        per_wave: WAVE / tables.len(),
        buckets: [[0; WAVE]; 3],
        places: [[T::Place::default(); WAVE]; 2],
    };
    let mut compared = 0;
    for wave in 0..queries.len().div_ceil(pipeline.per_wave) + 2 {
        pipeline.prefetch(wave, &stages.extract);
        if let Some(before) = wave.checked_sub(1) {
            pipeline.locate(before);
        }
        if let Some(before) = wave.checked_sub(2) {
            compared += pipeline.compare(before, radius, stages, found);
        }
    }
    compared
}

/// The probes on their way: those of three waves, which follow one another.
struct ProbePipeline<'a, W, T: SingleProbeTable<W>> {
    tables: &'a [T],
    queries: &'a [W],
    /// Queries of a wave.
    per_wave: usize,
    buckets: [[u32; WAVE]; 3],
    places: [[T::Place; WAVE]; 2],
}

impl<'a, W: Word, T: SingleProbeTable<W>> ProbePipeline<'a, W, T> {
    /// The queries of a wave; none behind the last.
    #[inline(always)]
    fn queries(&self, wave: usize) -> &'a [W] {
        let start = (wave * self.per_wave).min(self.queries.len());
        &self.queries[start..self.queries.len().min(start + self.per_wave)]
    }

    /// The first stage.
    #[inline(always)]
    fn prefetch(&mut self, wave: usize, extract: &impl Fn(W, W) -> W) {
        let mut at = 0;
        for &query in self.queries(wave) {
            for table in self.tables {
                let bucket = extract(query, table.split().address).above(0) as u32;
                table.prefetch(bucket);
                self.buckets[wave % 3][at] = bucket;
                at += 1;
            }
        }
    }

    /// The second stage.
    #[inline(always)]
    fn locate(&mut self, wave: usize) {
        let mut at = 0;
        for _ in self.queries(wave) {
            for table in self.tables {
                self.places[wave % 2][at] = table.locate(self.buckets[wave % 3][at]);
                at += 1;
            }
        }
    }

    /// The third stage.
    #[inline(always)]
    fn compare(
        &self,
        wave: usize,
        radius: u32,
        stages: &ProbeStages<
            impl Fn(W, W) -> W,
            impl Fn(W, W) -> W,
            impl Fn(&[u8], usize, usize, usize, W, u32) -> u64,
        >,
        found: &mut dyn FnMut(usize, W, u32),
    ) -> u64 {
        let (mut compared, mut at) = (0, 0);
        for (number, &query) in self.queries(wave).iter().enumerate() {
            for (earlier, table) in self.tables.iter().enumerate() {
                let (bucket, place) = (self.buckets[wave % 3][at], self.places[wave % 2][at]);
                at += 1;
                let width = table.width();
                let needle = (stages.extract)(query, table.split().rest);
                let mut part = 0;
                while let Some(EntryRun {
                    bytes,
                    place,
                    count,
                }) = table.run(bucket, place, part)
                {
                    part += 1;
                    compared += count as u64;
                    let hits = (stages.near)(bytes, place, width, count, needle, radius);
                    if hits != 0 {
                        let probe = SingleProbe {
                            query,
                            number: wave * self.per_wave + number,
                            bucket,
                            table,
                            earlier: &self.tables[..earlier],
                        };
                        probe.emit(hits, &bytes[place..], &stages.deposit, found);
                    }
                }
            }
        }
        compared
    }
}

/// A probe that finds something.
struct SingleProbe<'a, W, T> {
    query: W,
    number: usize,
    bucket: u32,
    table: &'a T,
    /// The tables before that one.
    earlier: &'a [T],
}

impl<W: Word, T: SingleProbeTable<W>> SingleProbe<'_, W, T> {
    /// Emits the entries of `run` that are hits, but for those that an earlier table finds.
    #[inline(always)]
    fn emit(
        &self,
        mut hits: u64,
        run: &[u8],
        deposit: &impl Fn(W, W) -> W,
        found: &mut dyn FnMut(usize, W, u32),
    ) {
        let AddressSplit { address, rest } = self.table.split();
        let width = self.table.width();
        let bucket = deposit(W::joined(self.bucket.into(), W::ZERO, 0), address);
        while hits != 0 {
            let at = hits.trailing_zeros() as usize * width;
            hits &= hits - 1;
            let word = bucket | deposit(W::read(&run[at..at + width]), rest);
            let apart = word ^ self.query;
            let finds = |table: &T| apart & table.split().address == W::ZERO;
            if !self.earlier.iter().any(finds) {
                found(self.number, word, apart.ones());
            }
        }
    }
}

/// Searches tables of cache-line buckets that a query probes once each; see [`search_with`].
///
/// This and the next are no generic function: one would be compiled again in each crate that calls it, and call the
/// kernels of this one instead of holding them.
pub(in super::super) fn search_buckets(
    tables: &[BucketTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    search_single_probe_at(KernelLevel::detected(), tables, queries, radius, found)
}

/// The same for packed tables.
pub(in super::super) fn search_packed(
    tables: &[PackedTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    search_single_probe_at(KernelLevel::detected(), tables, queries, radius, found)
}

pub(super) fn search_single_probe_at<T: SingleProbeTable<u64>>(
    level: KernelLevel,
    tables: &[T],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= KernelLevel::Avx2 => {
            x86::search_single_probe(level, tables, queries, radius, found)
        }
        _ => search_with(tables, queries, radius, found, &PORTABLE_STAGES),
    }
}

type Extracting = fn(u64, u64) -> u64;
type Comparing = fn(&[u8], usize, usize, usize, u64, u32) -> u64;

const PORTABLE_STAGES: ProbeStages<Extracting, Extracting, Comparing> = ProbeStages {
    extract: extract_portably,
    deposit: deposit_portably,
    near: scan_packed_from,
};
