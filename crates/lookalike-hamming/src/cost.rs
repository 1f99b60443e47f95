//! Costs of a design for a number of fingerprints: memory, memory accesses, comparisons, time.
//!
//! Counts assume evenly spread fingerprints; `analysis` tells how far real ones are from that. Times come from [`CostConstants`], which are measured
//! once for a machine ([`calibrate`]).

use super::design::Design;
use super::family::choose;
use super::kernel::DENSE_GROUP;
use super::layout::{LINE_BYTES, Layout, TableGeometry, bucket_capacity, overflow};
use super::table::MAX_TABLES;
use super::table_key::TableKey;

mod calibrate;

pub use calibrate::calibrate;

/// Costs of the steps of a query on a machine, in nanoseconds of one core.
///
/// ```no_run
/// use std::time::Instant;
///
/// use lookalike_hamming::{PlanLimits, calibrate, plan};
///
/// // Those of this machine, for accesses to tables of up to a gibibyte.
/// let start = Instant::now();
/// let constants = calibrate(&mut || start.elapsed().as_secs_f64(), &[1 << 20, 1 << 25, 1 << 30]);
/// let plans = plan(100_000_000, 64, 3, &PlanLimits::default().memory_bytes(8 << 30), &constants);
/// assert!(plans.iter().any(|costed| costed.cheapest));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CostConstants {
    /// Fixed cost of a query.
    pub query_ns: f64,
    /// Cost of a packed table in a query, in addition to its probes.
    pub table_ns: f64,
    /// The same for a table of cache-line buckets.
    pub bucket_table_ns: f64,
    /// The same for a dense table.
    pub dense_table_ns: f64,
    /// Cost of a packed table in a query that probes each of its tables once, including the probe.
    pub single_probe_ns: f64,
    /// The same for a table of cache-line buckets.
    pub bucket_single_probe_ns: f64,
    /// Cost of a probe of a packed table, in addition to its memory accesses and entries.
    pub probe_ns: f64,
    /// The same for a table of cache-line buckets.
    pub bucket_probe_ns: f64,
    /// Additional cost of a probe of a dense table over one of a packed table, if any: its bucket is found by a select, but fewer entries are
    /// compared.
    pub select_ns: f64,
    /// Cost of a bucket that does not fit its line, in addition to its memory accesses and entries.
    pub overflow_ns: f64,
    /// Cost of comparing one entry.
    pub entry_ns: f64,
    /// Cost of one code of a linear scan.
    pub scanned_code_ns: f64,
    /// Cost of one entry of one table in a build.
    pub build_entry_ns: f64,
    /// Throughput cost of a random cache line with prefetching: pairs of the size of the accessed memory in bytes, ascending, and the cost;
    /// interpolated logarithmically.
    pub line_ns: Vec<(f64, f64)>,
}

impl Default for CostConstants {
    /// Measured on a 2.5 GHz Xeon of 2017 with AVX-512, huge pages granted.
    fn default() -> Self {
        const MIB: f64 = (1 << 20) as f64;
        let line_ns = [
            (0.5, 2.0),
            (1.0, 3.0),
            (24.0, 9.0),
            (256.0, 14.0),
            (1024.0, 16.0),
            (2048.0, 30.0),
            (4096.0, 40.0),
            (8192.0, 60.0),
        ];
        Self {
            query_ns: 60.0,
            table_ns: 40.0,
            bucket_table_ns: 40.0,
            dense_table_ns: 50.0,
            single_probe_ns: 35.0,
            bucket_single_probe_ns: 25.0,
            probe_ns: 20.0,
            bucket_probe_ns: 15.0,
            select_ns: 12.0,
            overflow_ns: 30.0,
            entry_ns: 1.2,
            scanned_code_ns: 0.5,
            build_entry_ns: 38.0,
            line_ns: line_ns.map(|(size, ns)| (size * MIB, ns)).to_vec(),
        }
    }
}

impl CostConstants {
    /// Returns the nanoseconds of a random cache line within this many bytes of memory.
    pub fn line_ns(&self, working_set_bytes: f64) -> f64 {
        let above = self
            .line_ns
            .partition_point(|&(size, _)| size < working_set_bytes);
        match (
            above.checked_sub(1).and_then(|i| self.line_ns.get(i)),
            self.line_ns.get(above),
        ) {
            (Some(&(low, a)), Some(&(high, b))) => {
                a + (b - a) * (working_set_bytes / low).ln() / (high / low).ln()
            }
            // Outside the measured sizes, the nearest value.
            (Some(&(_, ns)), None) | (None, Some(&(_, ns))) => ns,
            (None, None) => 0.0,
        }
    }
}

/// Costs of one design in one layout.
///
/// ```
/// use lookalike_hamming::{CostConstants, Design, DesignCosts, Family, Layout};
///
/// // The paper's 2^34 fingerprints and 20 tables: "at most 2^(34 - 31) = 8 fingerprints a probe".
/// let design = Design::new(Family::block_choice(6, 3), 64, 3)?;
/// let costs = DesignCosts::of(&design, Layout::Packed, 1 << 34, &CostConstants::default());
/// assert_eq!((costs.probes, costs.matches_per_probe), (20.0, 8.0));
/// # Ok::<(), lookalike_hamming::NoSuchDesign>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DesignCosts {
    /// Address bits of each table, whose number of buckets is 2 to this power.
    pub address_bits: Vec<u32>,
    /// Probes of a query, over all tables.
    pub probes: f64,
    /// Codes that agree with a probe in the whole key, in the table with the shortest key: the
    /// paper's "at most 2^(d-p) fingerprints a probe".
    pub matches_per_probe: f64,
    /// Entries compared in a query, over all tables.
    pub candidates_per_query: f64,
    /// Buckets that a query probes and that do not fit their lines.
    pub overflows_per_query: f64,
    /// Bytes of memory for each distinct fingerprint, over all tables.
    pub bytes_per_fingerprint: f64,
    /// Cache lines touched in a query.
    pub lines_per_query: f64,
    /// Expected nanoseconds of a query in a group, on one core.
    pub query_ns: f64,
    /// The part of these that the cache lines take: no search of this design is faster than its memory.
    pub memory_ns: f64,
    /// Expected nanoseconds of the build for each fingerprint, on one core.
    pub build_ns_per_fingerprint: f64,
}

/// Returns the number of keys within `budget` of a key of `bits` bits, itself included; saturating.
pub fn neighbours(bits: u32, budget: u32) -> u64 {
    (0..=budget.min(bits))
        .map(|wrong| choose(bits, wrong))
        .fold(0, u64::saturating_add)
}

impl DesignCosts {
    /// Computes the costs of `design` for `fingerprints` distinct fingerprints. Takes time linear in its tables.
    pub fn of(
        design: &Design,
        layout: Layout,
        fingerprints: u64,
        constants: &CostConstants,
    ) -> Self {
        let (shortest, _) = design.prefix_range();
        let mut costs = Self {
            matches_per_probe: fingerprints as f64 / 2_f64.powi(shortest as i32),
            ..Self::default()
        };
        // Memory is priced by the size of the memory that is read at random: a line from 8 MiB costs a tenth of a line from 8 GiB.
        let mut reads = QueryReads::default();
        // Keys of one length, which most designs have, share one geometry.
        let mut last = None;
        for key in design.tables() {
            let prefix = key.prefix_bits();
            let choose = || TableGeometry::choose(layout, design.bits(), prefix, fingerprints);
            let known = last
                .filter(|&(bits, _)| bits == prefix)
                .map(|(_, geometry)| geometry);
            let geometry = known.unwrap_or_else(choose);
            last = Some((prefix, geometry));
            costs.add(key, geometry, layout);
            // Summed over all tables before pricing, because a line costs more the larger the memory that it is read from.
            reads.add(key, geometry, layout);
        }
        costs.lines_per_query = reads.0.iter().map(|read| read.lines).sum();
        costs.price(layout, &reads, constants);
        costs
    }

    fn add(&mut self, key: &TableKey, geometry: TableGeometry, layout: Layout) {
        let probes = neighbours(geometry.address_bits, key.budget) as f64;
        self.address_bits.push(geometry.address_bits);
        self.probes += probes;
        self.candidates_per_query += probes * geometry.load;
        if layout == Layout::CacheLineBuckets {
            let (_, overflow_share) = overflow(geometry.load, bucket_capacity(geometry.width));
            self.overflows_per_query += probes * overflow_share;
        }
        self.bytes_per_fingerprint += geometry.bytes;
    }

    fn price(&mut self, layout: Layout, reads: &QueryReads, constants: &CostConstants) {
        let tables = self.address_bits.len() as f64;
        self.build_ns_per_fingerprint = tables * constants.build_entry_ns;
        // Nothing is looked up, so this is a scan.
        if self.address_bits.iter().all(|&bits| bits == 0) {
            let scanned = constants.scanned_code_ns * self.candidates_per_query;
            self.query_ns = constants.query_ns + scanned;
            return;
        }
        // Such designs are searched by the shorter loop (`index::single_probe`).
        // Each table takes at least one probe, so no more probes than tables means one for each.
        let single_probes = self.probes <= tables && tables <= MAX_TABLES as f64;
        let (table_ns, probe_ns) = match layout {
            Layout::Packed if single_probes => (constants.single_probe_ns, 0.0),
            Layout::CacheLineBuckets if single_probes => (constants.bucket_single_probe_ns, 0.0),
            Layout::Packed => (constants.table_ns, constants.probe_ns),
            Layout::CacheLineBuckets => (constants.bucket_table_ns, constants.bucket_probe_ns),
            Layout::Dense => (
                constants.dense_table_ns,
                constants.probe_ns + constants.select_ns,
            ),
        };
        self.memory_ns = reads.0.iter().map(|read| read.ns(constants)).sum();
        self.query_ns = constants.query_ns
            + tables * table_ns
            + self.probes * probe_ns
            + self.candidates_per_query * constants.entry_ns
            + self.overflows_per_query * constants.overflow_ns
            + self.memory_ns;
    }
}

/// Number of cache lines that a query reads of one part of all tables, and the size of that part.
#[derive(Clone, Copy, Debug, Default)]
struct PartRead {
    lines: f64,
    bytes: f64,
}

impl PartRead {
    fn ns(&self, constants: &CostConstants) -> f64 {
        self.lines * constants.line_ns(self.bytes)
    }
}

/// Reads of the directory, the unary directory, and the entries.
#[derive(Clone, Copy, Debug, Default)]
struct QueryReads([PartRead; 3]);

impl QueryReads {
    fn add(&mut self, key: &TableKey, geometry: TableGeometry, layout: Layout) {
        let Self([directory, unary, entries]) = self;
        let address_bits = geometry.address_bits;
        let buckets = 2_f64.powi(address_bits as i32);
        let probes = neighbours(address_bits, key.budget) as f64;
        // Buckets whose numbers differ only in low bits share a line.
        let apart = |together: f64| {
            let shared = together.max(1.0).log2() as u32;
            neighbours(address_bits.saturating_sub(shared), key.budget) as f64
        };
        let line = LINE_BYTES as f64;
        let load = geometry.load;
        match layout {
            Layout::Packed => {
                directory.lines += apart(line / 4.0);
                directory.bytes += 4.0 * buckets;
                let bytes = load * geometry.width as f64;
                // Entries of buckets that differ in low bits are also neighbours, but a bucket and the next rarely share a line, so they count as if
                // they never did.
                entries.lines += probes * lines_of_run(bytes);
                entries.bytes += buckets * bytes;
            }
            Layout::CacheLineBuckets => {
                let (overflow_entries, overflow_share) =
                    overflow(load, bucket_capacity(geometry.width));
                let overflow_bytes = overflow_entries * geometry.width as f64;
                entries.lines += probes
                    * (1.0
                        + overflow_share
                            * lines_of_run(4.0 + overflow_bytes / overflow_share.max(1e-9)));
                entries.bytes += buckets * (line + overflow_bytes + 16.0 * overflow_share);
            }
            Layout::Dense => {
                let group = DENSE_GROUP as f64;
                directory.lines += apart(line / 4.0 * group);
                directory.bytes += 4.0 * buckets / group;
                let unary_bytes = (1.0 + load) / 8.0;
                // A group reaches into the next line with a probability proportional to its length.
                unary.lines += apart(line / unary_bytes) * (1.0 + group * unary_bytes / line);
                unary.bytes += buckets * unary_bytes;
                let bytes = load * geometry.entry_bits / 8.0;
                // Empty buckets are not read.
                let filled = 1.0 - (-load).exp();
                let runs = 1.0 + (apart(line / bytes.max(1.0)) - 1.0) * filled;
                entries.lines += runs * lines_of_run(bytes / filled.max(1e-9));
                entries.bytes += buckets * bytes;
            }
        }
    }
}

/// Returns the number of cache lines in a run of `bytes` bytes that begins anywhere. The processor prefetches those after the second by itself, so
/// they count a third.
fn lines_of_run(bytes: f64) -> f64 {
    let line = LINE_BYTES as f64;
    // A run of b bytes at a random position touches 1 + (b - 1) / 64 lines on average.
    let few = (bytes - 1.0).clamp(0.0, 2.0 * line);
    1.0 + few / line + (bytes - 1.0 - few).max(0.0) / (3.0 * line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_costs_are_interpolated_and_never_extrapolated() {
        let line_ns = vec![(1024.0, 1.0), (4096.0, 3.0)];
        let constants = CostConstants {
            line_ns,
            ..CostConstants::default()
        };
        assert_eq!(constants.line_ns(1.0), 1.0);
        assert!((constants.line_ns(2048.0) - 2.0).abs() < 1e-9);
        assert_eq!(constants.line_ns(1e9), 3.0);
        assert_eq!(
            CostConstants {
                line_ns: Vec::new(),
                ..constants
            }
            .line_ns(5.0),
            0.0
        );
    }

    #[test]
    fn neighbours_of_a_key() {
        assert_eq!(neighbours(24, 1), 25);
        assert_eq!(neighbours(32, 3), 1 + 32 + 496 + 4960);
        assert_eq!(neighbours(2, 9), 4);
        assert_eq!(neighbours(0, 3), 1);
    }
}
