//! Search of tables that a query probes once each, with all its probes in one loop.
//!
//! If a table tolerates no error, a query probes it once, and the bookkeeping of a stream of tasks (`index`) would cost more than the probe. Here a
//! few queries at a time, a *wave*, pass three stages: their buckets are computed and prefetched; the memory behind these (entries of packed tables,
//! entries that do not fit a line) is prefetched; entries are compared. A stage of one wave runs while the memory that the next stage of the wave
//! before needs is on its way.
//!
//! The whole loop is a [`Kernel`], so that its stages are compiled for the instructions of the processor: a call for each of twenty probes would cost
//! as much as the probe.

use super::super::code::Integer;
use super::super::kernel::{Kernel, ScanLine, ScanPacked, ScanRun, Vector, hit_positions};
use super::super::table::{AddressSplit, SingleProbeTable};

/// Maximum number of probes in a wave: as many lines as a processor fetches at a time, or twice that.
const WAVE: usize = 32;

/// Receiver of results: index of the query, code, distance.
pub(in super::super) type Found<'v, W> = &'v mut dyn FnMut(usize, W, u32);

/// A search of 1 to [`MAX_TABLES`](super::super::table::MAX_TABLES) tables that a query probes once each. Returns the number of entries compared.
/// The results of one query come together.
pub(in super::super) struct SingleProbeSearch<'a, 'v, W, T> {
    pub(in super::super) tables: &'a [T],
    pub(in super::super) queries: &'a [W],
    pub(in super::super) radius: u32,
    pub(in super::super) found: Found<'v, W>,
}

impl<W: Integer, T: SingleProbeTable<W>> Kernel<W> for SingleProbeSearch<'_, '_, W, T> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) -> u64 {
        let mut pipeline = ProbePipeline {
            tables: self.tables,
            queries: self.queries,
            radius: self.radius,
            // At least one, because there are at most `MAX_TABLES` = 20 tables.
            per_wave: WAVE / self.tables.len(),
            // Written in the first stage and read up to the third, so three waves have buckets. Places only last for two.
            buckets: [[0; WAVE]; 3],
            places: [[T::Place::default(); WAVE]; 2],
        };
        let mut compared = 0;
        // Two rounds more, in which the last waves pass the later stages.
        for wave in 0..self.queries.len().div_ceil(pipeline.per_wave) + 2 {
            pipeline.prefetch(vector, wave);
            if let Some(before) = wave.checked_sub(1) {
                pipeline.locate(before);
            }
            if let Some(before) = wave.checked_sub(2) {
                compared += pipeline.compare(vector, before, self.found);
            }
        }
        compared
    }
}

/// The unfinished probes: those of three consecutive waves.
struct ProbePipeline<'a, W, T: SingleProbeTable<W>> {
    tables: &'a [T],
    queries: &'a [W],
    radius: u32,
    /// Number of queries in a wave.
    per_wave: usize,
    buckets: [[u32; WAVE]; 3],
    places: [[T::Place; WAVE]; 2],
}

impl<'a, W: Integer, T: SingleProbeTable<W>> ProbePipeline<'a, W, T> {
    /// Returns the queries of a wave; none after the last.
    #[inline(always)]
    fn queries(&self, wave: usize) -> &'a [W] {
        let start = (wave * self.per_wave).min(self.queries.len());
        &self.queries[start..self.queries.len().min(start + self.per_wave)]
    }

    /// Runs the first stage of a wave.
    #[inline(always)]
    fn prefetch<V: Vector<W>>(&mut self, vector: V, wave: usize) {
        let mut at = 0;
        for &query in self.queries(wave) {
            for table in self.tables {
                let bucket = vector.extract(query, table.split().address).above(0) as u32;
                table.prefetch(bucket);
                self.buckets[wave % 3][at] = bucket;
                at += 1;
            }
        }
    }

    /// Runs the second stage of a wave.
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

    /// Runs the third stage of a wave.
    #[inline(always)]
    fn compare<V: Vector<W>>(&self, vector: V, wave: usize, found: Found<'_, W>) -> u64 {
        let (mut compared, mut at) = (0, 0);
        for (number, &query) in self.queries(wave).iter().enumerate() {
            for (earlier, table) in self.tables.iter().enumerate() {
                let (bucket, place) = (self.buckets[wave % 3][at], self.places[wave % 2][at]);
                at += 1;
                let width = table.width();
                // Computed here instead of in the first stage: a PEXT takes three cycles, and the needles of three waves would take twice the room of
                // their bucket numbers.
                let needle = vector.extract(query, table.split().rest);
                let mut part = 0;
                while let Some(run) = table.run(bucket, place, part) {
                    part += 1;
                    compared += run.count as u64;
                    let entries = ScanPacked {
                        bytes: run.bytes,
                        width,
                        count: run.count,
                        needle,
                        radius: self.radius,
                    };
                    let hits = match run.bytes.as_array() {
                        _ if !T::IN_CACHE_LINES => {
                            let place = run.place;
                            ScanRun { place, entries }.run(vector)
                        }
                        // An overflow that has at least 64 bytes up to its end is also treated as a line: its entries are at the start, and two
                        // vectors hold them all.
                        Some(line) => ScanLine { line, entries }.run(vector),
                        // A few entries that begin anywhere in their line: a vector would reach into the next line.
                        None => ScanPacked {
                            bytes: &run.bytes[run.place..],
                            ..entries
                        }
                        .run(vector),
                    };
                    if hits != 0 {
                        let probe = SingleProbe {
                            query,
                            number: wave * self.per_wave + number,
                            bucket,
                            table,
                            earlier: &self.tables[..earlier],
                        };
                        probe.emit(vector, hits, &run.bytes[run.place..], found);
                    }
                }
            }
        }
        compared
    }
}

/// A probe that has hits.
struct SingleProbe<'a, W, T> {
    query: W,
    number: usize,
    bucket: u32,
    table: &'a T,
    /// The tables before this one.
    earlier: &'a [T],
}

impl<W: Integer, T: SingleProbeTable<W>> SingleProbe<'_, W, T> {
    /// Emits the entries of `run` that are hits, except those that an earlier table finds.
    #[inline(always)]
    fn emit<V: Vector<W>>(self, vector: V, hits: u64, run: &[u8], found: Found<'_, W>) {
        let AddressSplit { address, rest } = self.table.split();
        let width = self.table.width();
        let bucket = vector.deposit(W::joined(self.bucket.into(), W::ZERO, 0), address);
        for at in hit_positions(hits) {
            let entry = W::read_at(run, at * width, width);
            let word = bucket | vector.deposit(entry, rest);
            let apart = word ^ self.query;
            // A table without a budget finds the codes that agree with the query in its whole address.
            let finds = |table: &T| apart & table.split().address == W::ZERO;
            if !self.earlier.iter().any(finds) {
                found(self.number, word, apart.ones());
            }
        }
    }
}
