//! Measuring of [`CostConstants`] on this machine, with a clock that the caller provides.

use super::super::code::Word;
use super::super::design::Design;
use super::super::family::{BlockGroup, Family};
use super::super::index::TableIndex;
use super::super::kernel::{self, EntryRange, ProbeLocations, ProbePacked, ProbeSet, ScanWords};
use super::super::layout::Layout;
use super::{CostConstants, DesignCosts};
use std::hint::black_box;

/// Measures the constants of one core. Takes a second or two, and the memory of the largest working set in `working_sets` (bytes; ascending).
///
/// `clock` returns seconds from any origin. The library itself reads no clock.
pub fn calibrate(clock: &mut dyn FnMut() -> f64, working_sets: &[u64]) -> CostConstants {
    let line_ns = working_sets
        .iter()
        .map(|&size| (size as f64, random_line(clock, size)));
    let line_ns = line_ns.collect();
    let scanned_code_ns = scan(clock);
    let (shorter, longer) = (probe(clock, 64), probe(clock, 128));
    // By difference, as for all constants here: the cost that both measurements share, such as that of the probe itself, drops out. Noise may make it
    // negative, or too large.
    let entry_ns = ((longer - shorter) / 64.0).clamp(0.0, shorter / 64.0);
    // What is not measured yet costs nothing, so that a query is priced by the known parts alone, and the rest is what they leave.
    let fitted = CostConstants {
        query_ns: 0.0,
        table_ns: 0.0,
        bucket_table_ns: 0.0,
        dense_table_ns: 0.0,
        single_probe_ns: 0.0,
        bucket_single_probe_ns: 0.0,
        probe_ns: 0.0,
        bucket_probe_ns: 0.0,
        select_ns: 0.0,
        overflow_ns: 0.0,
        entry_ns,
        scanned_code_ns,
        build_entry_ns: build(clock),
        line_ns,
    };
    let (bucket_single_probe_ns, overflow_ns) = bucket_and_overflow(clock, &fitted);
    let fitted = CostConstants {
        overflow_ns,
        ..fitted
    };
    let [packed, lines, dense] = [Layout::Packed, Layout::CacheLineBuckets, Layout::Dense]
        .map(|layout| table_and_probe(clock, layout, &fitted));
    CostConstants {
        table_ns: packed.0,
        bucket_table_ns: lines.0,
        dense_table_ns: dense.0,
        single_probe_ns: single_probe_table(clock, &fitted),
        bucket_single_probe_ns,
        probe_ns: packed.1,
        bucket_probe_ns: lines.1,
        select_ns: dense.1 - packed.1,
        ..fitted
    }
}

/// Measures the building of one entry of a table.
fn build(clock: &mut dyn FnMut() -> f64) -> f64 {
    const CODES: u64 = 1 << 20;
    let codes: Vec<u64> = (1..=CODES).map(random).collect();
    let Ok(design) = Design::new(error_tolerant(), 64, 3) else {
        return CostConstants::default().build_entry_ns;
    };
    let entries = codes.len() * design.tables().len();
    best(clock, entries, &mut || {
        let built = TableIndex::build(&codes, &design, Layout::Packed);
        black_box(built.is_ok());
    })
}

fn random(i: u64) -> u64 {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Number of codes in the index on which queries are measured: larger than the nearest caches, and built quickly.
const CODES: u64 = 1 << 19;

/// Two tables that each tolerate an error.
fn error_tolerant() -> Family {
    let half = BlockGroup {
        errors: 1,
        blocks: 1,
        chosen: 1,
    };
    Family::Groups(vec![half; 2])
}

/// Eight tables that are probed once each.
fn exact() -> Family {
    Family::exact_groups(&[(1, 4), (1, 4)])
}

/// Measures the costs of a table in a query and of a probe, from two searches: one with many probes of each table, and one that also has tables with
/// a single probe. `others` prices the rest of a query, which is memory and entries. These two constants include the time that a query takes beyond
/// all parts, such as for mispredicted branches and the passing of results.
fn table_and_probe(
    clock: &mut dyn FnMut() -> f64,
    layout: Layout,
    others: &CostConstants,
) -> (f64, f64) {
    let families = [error_tolerant(), Family::budgets(&[1, 0, 0])];
    let [Some(own), Some(other)] =
        families.map(|family| calibrate_part(clock, family, CODES, layout, others))
    else {
        let default = CostConstants::default();
        return (default.table_ns, default.probe_ns);
    };
    solve(&own, &other)
}

/// Computes the costs of a table and of a probe, neither below zero, from a query with many probes of few tables and one with few probes of many.
fn solve(own: &MeasuredQuery, other: &MeasuredQuery) -> (f64, f64) {
    let (few, many_probes, a) = (own.tables, own.probes, own.ns);
    let (many, few_probes, b) = (other.tables, other.probes, other.ns);
    // a = few t + many_probes p, b = many t + few_probes p.
    // Cramer's rule for two equations. The denominator is far from zero, because one search has many probes of few tables and the other few probes of
    // many.
    let probe_ns = (a * many - b * few) / (many_probes * many - few_probes * few);
    let probe_ns = probe_ns.clamp(0.0, a / many_probes);
    // If probes take all the time, rounding may leave a negative rest.
    let table_ns = ((a - many_probes * probe_ns) / few).max(0.0);
    (table_ns, probe_ns)
}

/// Measures the cost of a packed table in a query that probes each table once.
fn single_probe_table(clock: &mut dyn FnMut() -> f64, others: &CostConstants) -> f64 {
    let own = calibrate_part(clock, exact(), CODES, Layout::Packed, others);
    own.map_or(CostConstants::default().single_probe_ns, |own| {
        own.ns / own.tables
    })
}

/// Measures the costs of a table of cache-line buckets in a query that probes each table once, and of a bucket that does not fit its line: from a
/// search in which hardly any bucket overflows, and one in which every fifth does.
fn bucket_and_overflow(clock: &mut dyn FnMut() -> f64, others: &CostConstants) -> (f64, f64) {
    let searches = [CODES / 2, CODES];
    let [Some(few), Some(many)] = searches
        .map(|codes| calibrate_part(clock, exact(), codes, Layout::CacheLineBuckets, others))
    else {
        let default = CostConstants::default();
        return (default.bucket_single_probe_ns, default.overflow_ns);
    };
    let apart = many.overflow_share - few.overflow_share;
    // Noise must not make it negative, or more than the whole query.
    let overflow_ns = ((many.ns - few.ns) / apart).clamp(0.0, many.ns / many.overflow_share);
    (
        (few.ns - few.overflow_share * overflow_ns) / few.tables,
        overflow_ns,
    )
}

/// Cost of a query that other constants do not price, and its work.
struct MeasuredQuery {
    tables: f64,
    probes: f64,
    overflow_share: f64,
    ns: f64,
}

fn calibrate_part(
    clock: &mut dyn FnMut() -> f64,
    family: Family,
    codes: u64,
    layout: Layout,
    others: &CostConstants,
) -> Option<MeasuredQuery> {
    let design = Design::new(family, 64, 3).ok()?;
    let costs = DesignCosts::of(&design, layout, codes, others);
    let measured = search(clock, &design, codes, layout)?;
    Some(MeasuredQuery {
        tables: design.tables().len() as f64,
        probes: costs.probes,
        overflow_share: costs.overflows_per_query,
        // If memory seems to take all the time, a part is left.
        ns: (measured - costs.query_ns).max(measured / 4.0),
    })
}

/// Measures the nanoseconds of a query of an index. No query is repeated, so that its memory is not in the caches from an earlier run.
fn search(
    clock: &mut dyn FnMut() -> f64,
    design: &Design,
    codes: u64,
    layout: Layout,
) -> Option<f64> {
    const QUERIES: usize = 1 << 14;
    const GROUP: usize = 64;
    let codes: Vec<u64> = (1..=codes).map(random).collect();
    let index = TableIndex::build(&codes, design, layout).ok()?;
    // Every second query finds something, which also takes time.
    let near = |i: usize| codes[i * (codes.len() / (TIMINGS * QUERIES))] ^ 1 << 5 ^ 1 << 40;
    let far = |i: usize| random(1 << 40 | i as u64);
    let queries = 0..TIMINGS * QUERIES;
    let queries = queries.map(|i| if i % 2 == 0 { near(i) } else { far(i) });
    let queries: Vec<u64> = queries.collect();
    let mut rounds = queries.chunks(QUERIES);
    Some(typical(clock, QUERIES, &mut || {
        let mut sum = 0;
        for group in rounds.next().unwrap_or_default().chunks(GROUP) {
            let searched = index.search_group(group, 3, &mut |_, code, _| sum ^= code);
            black_box(searched.is_ok());
        }
        black_box(sum);
    }))
}

/// Returns the shortest of five timings.
fn best(clock: &mut dyn FnMut() -> f64, units: usize, work: &mut dyn FnMut()) -> f64 {
    timings(clock, units, work).fold(f64::INFINITY, f64::min)
}

const TIMINGS: usize = 5;

/// Returns the median of five timings. Not the shortest, because other users of the memory are also there during a search.
fn typical(clock: &mut dyn FnMut() -> f64, units: usize, work: &mut dyn FnMut()) -> f64 {
    let mut all: Vec<f64> = timings(clock, units, work).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Returns five timings, in nanoseconds for each of `units`.
fn timings(
    clock: &mut dyn FnMut() -> f64,
    units: usize,
    work: &mut dyn FnMut(),
) -> impl Iterator<Item = f64> {
    (0..TIMINGS).map(move |_| {
        let start = clock();
        work();
        (clock() - start) * 1e9 / units as f64
    })
}

/// Measures a line of a query that probes at every flip of one bit. Such lines are powers of two apart, which crowds the sets of caches and page
/// tables more than random lines do, and they are prefetched one query before they are read.
fn random_line(clock: &mut dyn FnMut() -> f64, bytes: u64) -> f64 {
    const QUERIES: usize = 8_000;
    let bits = (bytes / 64).max(2).ilog2();
    let mut lines = vec![[0_u64; 8]; 1 << bits];
    kernel::advise_huge_pages(&mut lines);
    // Pages that were never written are all the same page of zeros, which the cache holds.
    lines.iter_mut().for_each(|line| line[0] = 1);
    kernel::gather_huge_pages(&lines);
    let flips: Vec<usize> = std::iter::once(0)
        .chain((0..bits).map(|bit| 1 << bit))
        .collect();
    // The high bits of a product depend on all bits of its factors; the low ones do not.
    let base = |query: usize| (random(query as u64 + 1) >> (64 - bits)) as usize;
    let mut from = 0;
    typical(clock, QUERIES * flips.len(), &mut || {
        let mut sum = 0;
        for query in from..from + QUERIES {
            let next = base(query + 1);
            flips
                .iter()
                .for_each(|flip| kernel::prefetch(&lines, next ^ flip));
            let own = base(query);
            sum += flips.iter().map(|flip| lines[own ^ flip][0]).sum::<u64>();
        }
        from += QUERIES;
        black_box(sum);
    })
}

fn scan(clock: &mut dyn FnMut() -> f64) -> f64 {
    let words: Vec<u64> = (0..1 << 20)
        .map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    best(clock, words.len(), &mut || {
        let hits = words
            .chunks(64)
            .map(|words| ScanWords {
                words,
                needle: 1,
                radius: 3,
            })
            .map(|scan| u64::run(scan).count_ones());
        black_box(hits.sum::<u32>());
    })
}

/// Measures a probe of a bucket of `load` entries of five bytes, in the nearest caches.
fn probe(clock: &mut dyn FnMut() -> f64, load: u32) -> f64 {
    const BUCKETS: u32 = 64;
    const ROUNDS: u32 = 4_000;
    // Kernels read eight bytes beyond the last entry.
    let bytes = 0..BUCKETS * load * 5 + 8;
    let bytes: Vec<u8> = bytes
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    best(clock, ROUNDS as usize, &mut || {
        let mut sum = 0;
        for round in 0..ROUNDS {
            let bucket = round.wrapping_mul(2_654_435_761) % BUCKETS;
            let probes = ProbeSet {
                bucket,
                xor_masks: &[0],
                radius: 3,
            };
            let ranges = &[EntryRange {
                first: (bucket * load).into(),
                count: load,
            }];
            let hit = &mut |_, entry| sum += entry;
            u64::run(ProbePacked {
                entries: &bytes,
                width: 5,
                probes: ProbeLocations { probes, ranges },
                needle: u64::from(round) << 8,
                hit,
            });
        }
        black_box(sum);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_calibrated_with_few_and_with_many_buckets_that_do_not_fit() {
        let design = Design::new(exact(), 64, 3).expect("complete");
        let overflow_share = |codes| {
            let costs = DesignCosts::of(
                &design,
                Layout::CacheLineBuckets,
                codes,
                &CostConstants::default(),
            );
            costs.overflows_per_query / costs.probes
        };
        assert!(
            overflow_share(CODES / 2) < 0.01,
            "{}",
            overflow_share(CODES / 2)
        );
        assert!(overflow_share(CODES) > 0.1, "{}", overflow_share(CODES));
    }

    #[test]
    fn rounding_makes_no_table_cost_less_than_nothing() {
        let query = |tables, probes, ns| MeasuredQuery {
            tables,
            probes,
            overflow_share: 0.0,
            ns,
        };
        let other = query(20.0, 60.0, 0.1);
        for step in 1..1000 {
            let (table_ns, probe_ns) = solve(&query(2.0, 66.0, f64::from(step) * 0.1), &other);
            assert!(table_ns >= 0.0 && probe_ns >= 0.0, "{table_ns} {probe_ns}");
        }
    }

    #[test]
    fn constants_follow_the_clock_that_is_given() {
        let mut now = 0.0;
        let mut clock = || {
            now += 1e-3;
            now
        };
        let constants = calibrate(&mut clock, &[1 << 12, 1 << 16]);
        // All work takes a millisecond by this clock.
        let per_line = |bits: u32| 1e6 / (8_000.0 * f64::from(1 + bits));
        assert_eq!(constants.line_ns.len(), 2);
        assert!(
            constants
                .line_ns
                .iter()
                .all(|(size, ns)| (ns - per_line((size / 64.0).log2() as u32)).abs() < 1e-6)
        );
        assert!((constants.scanned_code_ns - 1e6 / f64::from(1 << 20)).abs() < 1e-6);
        // Long and short probes took the same time, and so did searches with many and with few of them.
        assert!(constants.entry_ns.abs() < 1e-6);
        let search = 1e6 / f64::from(1 << 14);
        for ns in [
            constants.probe_ns,
            constants.table_ns,
            constants.bucket_table_ns,
            constants.single_probe_ns,
            constants.bucket_single_probe_ns,
            constants.overflow_ns,
        ] {
            assert!((0.0..=search).contains(&ns), "{constants:?}");
        }
        assert!(constants.probe_ns + constants.table_ns > 0.0);
    }
}
