//! Prints the cost of joins over n random fingerprints, in processor time of all threads and wall time.
//!
//! `cargo run --release -p lookalike-hamming --example join_throughput -- [n] [radius] [threads] [queries]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch, SelfJoinLimits, self_join};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn words(seed: u64) -> impl Iterator<Item = u64> {
    (seed..).map(|i| {
        let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    })
}

/// Returns the seconds that this process has run on processors, in user mode and in the system, if the system reports its clock ticks.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(") ").next().unwrap_or_default();
    let ticks = after.split(' ').skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn argument(at: usize, default: usize) -> usize {
    std::env::args()
        .nth(at)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Runs `work`, and prints its cost for each unit.
fn measure(what: &str, units: usize, work: impl FnOnce() -> u64) {
    let (wall, processor) = (Instant::now(), processor_seconds());
    let result = work();
    let (wall, processor) = (
        wall.elapsed().as_secs_f64(),
        processor_seconds() - processor,
    );
    println!(
        "{what:12} {:6.1} ns of processor, {:6.1} ns of wall time each, {:.2} s, {:.2} s; {result}",
        processor * 1e9 / units as f64,
        wall * 1e9 / units as f64,
        processor,
        wall,
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (count, radius) = (argument(1, 1 << 24), argument(2, 3) as u32);
    let (threads, queries) = (argument(3, 1), argument(4, 1 << 20));
    // Every 16th code has a neighbour within the radius.
    let near = |(at, code): (usize, u64)| {
        if at % 16 == 0 {
            code ^ 1 << (at / 16 % 64)
        } else {
            code
        }
    };
    let codes: Vec<u64> = words(1 << 40)
        .take(count - count / 16)
        .chain(
            words(1 << 40)
                .enumerate()
                .map(near)
                .step_by(16)
                .take(count / 16),
        )
        .collect();
    let limits = SelfJoinLimits::default()
        .threads(threads)
        .scratch_bytes(usize::MAX);
    for _ in 0..2 {
        measure("self-join", count, || {
            let pairs = AtomicU64::new(0);
            self_join(&codes, radius, limits, || {
                |_, _, _| {
                    pairs.fetch_add(1, Ordering::Relaxed);
                }
            });
            pairs.into_inner()
        });
    }
    let queries: Vec<u64> = words(1 << 20).take(queries).collect();
    let mut join = None;
    measure("queries", queries.len(), || {
        let limits = BatchLimits::default().threads(threads);
        join = BatchJoin::new(&queries, radius, limits).ok();
        join.as_ref().map_or(0, |join| join.bytes() as u64)
    });
    let join = join.ok_or("too many queries")?;
    let mut scratch = JoinScratch::default();
    for _ in 0..2 {
        measure("batch", count, || {
            let mut pairs = 0;
            join.join(&codes, &mut scratch, &mut |_, _, _| pairs += 1);
            pairs
        });
    }
    Ok(())
}
