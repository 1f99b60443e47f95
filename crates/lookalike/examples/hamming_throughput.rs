//! Prints queries a second, memory and build time of some designs over n random fingerprints, in
//! processor time of one thread.
//!
//! `cargo run --release -p lookalike --example hamming_throughput -- [n] [radius] [queries] [most tables] [least tables]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

use lookalike::hamming::{
    Constants, Costed, HammingIndex, Kind, Limits, SelfJoinLimits, TableIndex, calibrate, plan,
    self_join,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn words(seed: u64) -> impl Iterator<Item = u64> {
    (seed..).map(|i| {
        let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    })
}

/// Seconds this thread has run on a processor, where the system tells; else those that have passed.
fn seconds(started: Instant) -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = ran.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map_or(started.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
}

fn argument(at: usize, default: usize) -> usize {
    std::env::args()
        .nth(at)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (count, radius) = (argument(1, 1 << 20), argument(2, 3) as u32);
    let queries = argument(3, 200_000);
    let codes: Vec<u64> = words(1 << 40).take(count).collect();
    // Every second query has a neighbour within the radius.
    let far = words(1).map(|word| word ^ 0x5555);
    let near = codes
        .iter()
        .step_by((count / queries).max(1))
        .map(|code| code ^ 1 << 5 ^ 1 << 40);
    let queries: Vec<u64> = far
        .zip(near)
        .flat_map(|(a, b)| [a, b])
        .take(queries)
        .collect();
    let started = Instant::now();
    let constants = calibrated(started, count);
    println!(
        "{count} fingerprints, radius {radius}, {} queries",
        queries.len()
    );
    println!("calibrated: {constants:.2?}");
    println!(
        "tables family                    layout  B/fp  planned | build M/s  k q/s   planned  p50 us  p99 us  found"
    );
    for costed in plan(count as u64, 64, radius, &Limits::default(), &constants) {
        let tables = argument(5, 1)..=argument(4, 64);
        if worth_a_look(&costed) && tables.contains(&costed.design.tables().len()) {
            measure(&costed, &codes, &queries, radius)?;
        }
    }
    let pairs = AtomicU64::new(0);
    let before = seconds(started);
    self_join(&codes, radius, SelfJoinLimits::default(), || {
        |_, _, _| {
            pairs.fetch_add(1, Ordering::Relaxed);
        }
    });
    let joined = seconds(started) - before;
    println!(
        "self-join: {:.2} M codes/s, {} pairs",
        count as f64 / joined / 1e6,
        pairs.into_inner()
    );
    Ok(())
}

fn calibrated(started: Instant, count: usize) -> Constants {
    let largest = (count as u64 * 20).max(1 << 22);
    let sizes: Vec<u64> = (20..34)
        .map(|log| 1 << log)
        .filter(|&size| size <= largest)
        .collect();
    // Processor time moves in steps of milliseconds, too coarse for this.
    calibrate(&mut || started.elapsed().as_secs_f64(), &sizes)
}

fn worth_a_look(costed: &Costed) -> bool {
    let tables = costed.design.tables().len();
    let small = costed.design.budget() <= 1 && tables <= 11;
    let shown = matches!(costed.design.family().kind(), Kind::Budgets | Kind::Covers);
    small && shown && costed.costs.bytes_per_fingerprint < 90.0 && costed.costs.query_ns < 2e4
}

/// Median and 99th percentile of wall microseconds of single queries.
fn latencies(
    index: &TableIndex<u64>,
    queries: &[u64],
    radius: u32,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    for &query in queries.iter().take(50_000) {
        let started = Instant::now();
        index.search(query, radius, &mut |_, _| {})?;
        all.push(started.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    Ok((all[all.len() / 2], all[all.len() * 99 / 100]))
}

fn measure(
    costed: &Costed,
    codes: &[u64],
    queries: &[u64],
    radius: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let before = seconds(started);
    let index = TableIndex::build(codes, &costed.design, costed.layout)?;
    let built = seconds(started) - before;
    let mut found = 0_usize;
    let before = seconds(started);
    for group in queries.chunks(64) {
        index.search_group(group, radius, &mut |_, _, _| found += 1)?;
    }
    let searched = seconds(started) - before;
    let tables = costed.design.tables().len();
    let count = codes.len() as f64;
    let (median, late) = latencies(&index, queries, radius)?;
    println!(
        "{tables:6} {:25} {:7} {:5.2} {:8.2} | {:9.1} {:6.0} {:9.0} {median:7.2} {late:7.2} {found:6}",
        costed.design.family().to_string(),
        costed.layout.name(),
        index.bytes() as f64 / count,
        costed.costs.bytes_per_fingerprint,
        count * tables as f64 / built / 1e6,
        queries.len() as f64 / searched / 1e3,
        1e6 / costed.costs.query_ns,
    );
    Ok(())
}
