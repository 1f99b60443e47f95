//! Prints queries per second, memory and build time of some designs over n random fingerprints, in
//! processor time of one thread.
//!
//! `cargo run --release -p lookalike-hamming --example search_throughput -- [n] [radius] [queries] [most tables] [least tables]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

mod measuring;

use lookalike_hamming::{
    CostedDesign, FamilyKind, PlanLimits, SelfJoinLimits, TableIndex, plan, self_join,
};
use measuring::{argument, calibrated, seconds, speed, word};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (count, radius) = (argument(1, 1 << 20), argument(2, 3) as u32);
    let queries = argument(3, 200_000);
    let codes: Vec<u64> = (1 << 40..).take(count).map(word).collect();
    // Every second query has a neighbour within the radius.
    let far = (1..).map(|i| word(i) ^ 0x5555);
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
    let constants = calibrated((count as u64 * 20).max(1 << 22));
    println!(
        "{count} fingerprints, radius {radius}, {} queries",
        queries.len()
    );
    println!("calibrated: {constants:.2?}");
    println!(
        "tables family                    layout  B/fp  planned | build M/s  k q/s   planned  p50 us  p99 us  found"
    );
    for costed in plan(count as u64, 64, radius, &PlanLimits::default(), &constants) {
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

fn worth_a_look(costed: &CostedDesign) -> bool {
    let tables = costed.design.tables().len();
    let small = costed.design.budget() <= 1 && tables <= 11;
    let shown = matches!(
        costed.design.family().kind(),
        FamilyKind::Budgets | FamilyKind::Covers
    );
    small && shown && costed.costs.bytes_per_fingerprint < 90.0 && costed.costs.query_ns < 2e4
}

fn measure(
    costed: &CostedDesign,
    codes: &[u64],
    queries: &[u64],
    radius: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let before = seconds(started);
    let index = TableIndex::build(codes, &costed.design, costed.layout)?;
    let built = seconds(started) - before;
    let speed = speed(&index, queries, radius)?;
    let tables = costed.design.tables().len();
    let count = codes.len() as f64;
    println!(
        "{tables:6} {:25} {:7} {:5.2} {:8.2} | {:9.1} {:6.0} {:9.0} {:7.2} {:7.2} {:6}",
        costed.design.family().to_string(),
        costed.layout.name(),
        index.bytes() as f64 / count,
        costed.costs.bytes_per_fingerprint,
        count * tables as f64 / built / 1e6,
        speed.queries / 1e3,
        1e6 / costed.costs.query_ns,
        speed.median,
        speed.late,
        speed.found,
    );
    Ok(())
}
