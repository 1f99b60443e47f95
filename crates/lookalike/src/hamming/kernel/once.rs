//! Tables that a query probes once each: all its probes as one loop.
//!
//! Where a table forgives no error, a query has one probe of it, and the bookkeeping of a stream of tasks (`index`) would
//! cost more than the probe. Here a few queries at a time, a *wave*, take three steps: their buckets are numbered and asked
//! for; what lies behind these (entries of packed tables, what does not fit a line) is asked for; entries are compared. A
//! step of one wave is made while the memory that the next step of the wave before needs is on its way.

use super::super::code::Word;
use super::{Line, prefetch, prefetch_run};

/// Most tables that are searched so.
pub(in super::super) const MOST_TABLES: usize = 20;
/// Probes of a wave, at most: as many lines as a processor fetches at a time, or twice that.
const WAVE: usize = 32;

/// Which bits of a code number its bucket, and which are stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Split<W> {
    pub(in super::super) address: W,
    pub(in super::super) rest: W,
}

/// A table with a line for each bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineTable<'a, W> {
    pub(in super::super) split: Split<W>,
    pub(in super::super) lines: &'a [Line],
    /// What does not fit the lines, as the module `table` says.
    pub(in super::super) spilled: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
    /// Entries of a line.
    pub(in super::super) capacity: u32,
    /// What a place beside is counted in, in bytes.
    pub(in super::super) unit: usize,
}

/// A table with entries back to back.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackedTable<'a, W> {
    pub(in super::super) split: Split<W>,
    /// Rank of the first entry of each bucket, and of the end.
    pub(in super::super) starts: &'a [[u8; 4]],
    /// With eight bytes more.
    pub(in super::super) entries: &'a [u8],
    /// Bytes of an entry.
    pub(in super::super) width: usize,
}

impl<'a, W> LineTable<'a, W> {
    /// Where beside the lines the rest of a bucket is; the beginning where there is none.
    #[inline(always)]
    fn place_beside(&self, tail: u32) -> usize {
        tail.saturating_sub(self.capacity + 1) as usize * self.unit
    }

    /// The entries of a bucket that its line does not hold, and how many these are.
    fn beside(&self, tail: u32) -> (&'a [u8], usize) {
        let beside = self.spilled.get(self.place_beside(tail)..);
        let (count, entries) = beside
            .and_then(<[u8]>::split_first_chunk)
            .unwrap_or((&[0; 4], &[]));
        let count = u32::from_le_bytes(*count).saturating_sub(self.capacity);
        // A damaged file may tell of more than there is; whole ones never do.
        let most = entries.len() / self.width.max(1);
        (entries, (count as usize).min(most))
    }
}

impl<W> PackedTable<'_, W> {
    /// Place of the first entry of a bucket, and how many there are.
    #[inline(always)]
    fn run(&self, bucket: u32) -> (usize, usize) {
        let rank = |at: usize| u32::from_le_bytes(self.starts[at]) as usize;
        let first = rank(bucket as usize);
        (
            first * self.width,
            rank(bucket as usize + 1).saturating_sub(first),
        )
    }
}

/// What the loops below are made of: for words of 64 bits by the instructions of the processor.
///
/// Functions of loops are always inlined, so that these are as well.
pub(in super::super) struct Steps<Extract, Deposit, Near> {
    /// As [`Word::extract`].
    pub(in super::super) extract: Extract,
    /// As [`Word::deposit`].
    pub(in super::super) deposit: Deposit,
    /// Which of at most 64 entries, from a place of some bytes on, are within the radius of a needle: bytes, place, width,
    /// count, needle, radius.
    pub(in super::super) near: Near,
}

/// Who is told of what is found: number of the query, code, distance.
pub(in super::super) type Found<'v, W> = &'v mut dyn FnMut(usize, W, u32);

/// The queries of a wave.
#[inline(always)]
fn wave<W>(queries: &[W], held: usize, number: usize) -> &[W] {
    let start = (number * held).min(queries.len());
    &queries[start..queries.len().min(start + held)]
}

/// Searches tables in lines; how many entries were compared. There are 1 to [`MOST_TABLES`] tables. What is found for one
/// query comes together.
#[inline(always)]
pub(in super::super) fn lines_with<W: Word>(
    tables: &[LineTable<'_, W>],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
    steps: &Steps<
        impl Fn(W, W) -> W,
        impl Fn(W, W) -> W,
        impl Fn(&[u8], usize, usize, usize, W, u32) -> u64,
    >,
) -> u64 {
    let held = WAVE / tables.len();
    let waves = queries.len().div_ceil(held);
    let mut buckets = [[0_u32; WAVE]; 3];
    let mut compared = 0;
    for step in 0..waves + 2 {
        let mut at = 0;
        for &query in wave(queries, held, step) {
            for table in tables {
                let bucket = (steps.extract)(query, table.split.address).above(0) as u32;
                prefetch(table.lines, bucket as usize);
                buckets[step % 3][at] = bucket;
                at += 1;
            }
        }
        let mut at = 0;
        if let Some(before) = step.checked_sub(1) {
            for _ in wave(queries, held, before) {
                for table in tables {
                    let tail = table.lines[buckets[before % 3][at] as usize].tail();
                    prefetch(table.spilled, table.place_beside(tail));
                    at += 1;
                }
            }
        }
        let mut at = 0;
        if let Some(before) = step.checked_sub(2) {
            for (number, &query) in wave(queries, held, before).iter().enumerate() {
                for (earlier, table) in tables.iter().enumerate() {
                    let bucket = buckets[before % 3][at];
                    at += 1;
                    let line = &table.lines[bucket as usize];
                    let tail = line.tail();
                    let count = tail.min(table.capacity);
                    compared += u64::from(count);
                    let needle = (steps.extract)(query, table.split.rest);
                    let near = &steps.near;
                    let hits = near(&line.0, 0, table.width, count as usize, needle, radius);
                    if hits == 0 && tail <= table.capacity {
                        continue;
                    }
                    let owner = Owner {
                        query,
                        number: before * held + number,
                        bucket,
                        width: table.width,
                        split: table.split,
                    };
                    let is_new = |apart: W| {
                        let finds = |table: &LineTable<'_, W>| apart & table.split.address;
                        !tables[..earlier]
                            .iter()
                            .any(|table| finds(table) == W::ZERO)
                    };
                    owner.tell(hits, &line.0, &steps.deposit, &is_new, found);
                    if tail > table.capacity {
                        let (bytes, count) = table.beside(tail);
                        compared += count as u64;
                        for first in (0..count).step_by(64) {
                            let (run, count) = (&bytes[first * table.width..], count - first);
                            let hits = near(run, 0, table.width, count.min(64), needle, radius);
                            owner.tell(hits, run, &steps.deposit, &is_new, found);
                        }
                    }
                }
            }
        }
    }
    compared
}

/// As [`lines_with`] for packed tables.
#[inline(always)]
pub(in super::super) fn packed_with<W: Word>(
    tables: &[PackedTable<'_, W>],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
    steps: &Steps<
        impl Fn(W, W) -> W,
        impl Fn(W, W) -> W,
        impl Fn(&[u8], usize, usize, usize, W, u32) -> u64,
    >,
) -> u64 {
    let held = WAVE / tables.len();
    let waves = queries.len().div_ceil(held);
    let mut buckets = [[0_u32; WAVE]; 3];
    let mut runs = [[(0_usize, 0_usize); WAVE]; 2];
    let mut compared = 0;
    for step in 0..waves + 2 {
        let mut at = 0;
        for &query in wave(queries, held, step) {
            for table in tables {
                let bucket = (steps.extract)(query, table.split.address).above(0) as u32;
                prefetch(table.starts, bucket as usize);
                // In the next line now and then.
                prefetch(table.starts, bucket as usize + 1);
                buckets[step % 3][at] = bucket;
                at += 1;
            }
        }
        let mut at = 0;
        if let Some(before) = step.checked_sub(1) {
            for _ in wave(queries, held, before) {
                for table in tables {
                    let (start, count) = table.run(buckets[before % 3][at]);
                    prefetch_run(table.entries, start, count, table.width);
                    runs[before % 2][at] = (start, count);
                    at += 1;
                }
            }
        }
        let mut at = 0;
        if let Some(before) = step.checked_sub(2) {
            for (number, &query) in wave(queries, held, before).iter().enumerate() {
                for (earlier, table) in tables.iter().enumerate() {
                    let ((start, count), bucket) = (runs[before % 2][at], buckets[before % 3][at]);
                    at += 1;
                    compared += count as u64;
                    let needle = (steps.extract)(query, table.split.rest);
                    let mut first = 0;
                    while first < count {
                        let place = start + first * table.width;
                        let here = (count - first).min(64);
                        let near = &steps.near;
                        let hits = near(table.entries, place, table.width, here, needle, radius);
                        if hits != 0 {
                            let owner = Owner {
                                query,
                                number: before * held + number,
                                bucket,
                                width: table.width,
                                split: table.split,
                            };
                            let is_new = |apart: W| {
                                let finds =
                                    |table: &PackedTable<'_, W>| apart & table.split.address;
                                !tables[..earlier]
                                    .iter()
                                    .any(|table| finds(table) == W::ZERO)
                            };
                            let run = &table.entries[place..];
                            owner.tell(hits, run, &steps.deposit, &is_new, found);
                        }
                        first += 64;
                    }
                }
            }
        }
    }
    compared
}

/// Whose probe finds something.
struct Owner<W> {
    query: W,
    number: usize,
    bucket: u32,
    width: usize,
    split: Split<W>,
}

impl<W: Word> Owner<W> {
    /// Tells of the entries of `run` that are hits, but for those that an earlier table finds.
    #[inline(always)]
    fn tell(
        &self,
        mut hits: u64,
        run: &[u8],
        deposit: &impl Fn(W, W) -> W,
        is_new: &impl Fn(W) -> bool,
        found: &mut dyn FnMut(usize, W, u32),
    ) {
        while hits != 0 {
            let at = hits.trailing_zeros() as usize * self.width;
            hits &= hits - 1;
            let rest = W::read(&run[at..at + self.width]);
            let bucket = W::joined(self.bucket.into(), W::ZERO, 0);
            let Split {
                address,
                rest: mask,
            } = self.split;
            let word = deposit(bucket, address) | deposit(rest, mask);
            let apart = word ^ self.query;
            if is_new(apart) {
                found(self.number, word, apart.ones());
            }
        }
    }
}
