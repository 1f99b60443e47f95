//! Code shared by the examples that measure the Hamming engine.

use lookalike_hamming::{CostConstants, TableIndex, calibrate};
use std::time::Instant;

/// Returns a random fingerprint for a number.
pub(crate) fn word(i: u64) -> u64 {
    let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

/// Returns the seconds that this thread has run on a processor if the system tells, else those that have passed.
pub(crate) fn seconds(started: Instant) -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = ran.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map_or(started.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
}

/// Returns the number at a position of the command line.
pub(crate) fn argument(at: usize, default: usize) -> usize {
    std::env::args()
        .nth(at)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Measures the constants of this machine, with random cache lines within up to `largest` bytes.
pub(crate) fn calibrated(largest: u64) -> CostConstants {
    let started = Instant::now();
    let sizes: Vec<u64> = (20..34)
        .map(|log| 1 << log)
        .filter(|&size| size <= largest)
        .collect();
    // Processor time moves in steps of milliseconds, too coarse for this.
    calibrate(&mut || started.elapsed().as_secs_f64(), &sizes)
}

/// Number of queries that are searched together.
const GROUP: usize = 64;

/// Speed at which an index answers.
pub(crate) struct Speed {
    /// Queries for each second of processor time, in groups.
    pub(crate) queries: f64,
    /// Number of codes found.
    pub(crate) found: usize,
    /// Median of the wall time of single queries, in microseconds.
    pub(crate) median: f64,
    /// 99th percentile of the same times.
    pub(crate) late: f64,
}

/// Searches most queries in groups and the others, whose memory is just as cold, one by one.
pub(crate) fn speed(
    index: &TableIndex<u64>,
    queries: &[u64],
    radius: u32,
) -> Result<Speed, Box<dyn std::error::Error>> {
    let (single, grouped) = queries.split_at(queries.len() / 5);
    let started = Instant::now();
    let mut found = 0_usize;
    let before = seconds(started);
    for group in grouped.chunks(GROUP) {
        index.search_group(group, radius, &mut |_, _, _| found += 1)?;
    }
    let searched = seconds(started) - before;
    let mut all = Vec::new();
    for &query in single {
        let started = Instant::now();
        index.search(query, radius, &mut |_, _| found += 1)?;
        all.push(started.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    Ok(Speed {
        queries: grouped.len() as f64 / searched,
        found,
        median: all[all.len() / 2],
        late: all[all.len() * 99 / 100],
    })
}
