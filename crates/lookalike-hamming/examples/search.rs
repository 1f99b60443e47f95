//! Plans an index for a million fingerprints, builds it, searches it for one query and for many, and finds all close pairs.

#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use lookalike_hamming::{CostConstants, PlanLimits, SelfJoinLimits, TableIndex, plan, self_join};
use std::sync::atomic::{AtomicU64, Ordering};

const DISTANCE: u32 = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut codes: Vec<u64> = (1..1_000_000_u64).map(fingerprint).collect();
    // A near-duplicate of every thousandth.
    let near: Vec<u64> = codes
        .iter()
        .step_by(1_000)
        .map(|code| code ^ 0b11)
        .collect();
    codes.extend(near);

    let (count, limits) = (codes.len() as u64, PlanLimits::default());
    let plans = plan(count, 64, DISTANCE, &limits, &CostConstants::default());
    let best = plans.iter().find(|costed| costed.cheapest);
    let best = best.ok_or("a scan fits without limits")?;
    let index = TableIndex::build(&codes, &best.design, best.layout)?;
    println!(
        "{} codes in {} tables ({}, {}), {:.1} bytes a code",
        index.len(),
        best.design.tables().len(),
        best.design.family(),
        best.layout,
        index.bytes() as f64 / index.len() as f64
    );

    // One query.
    let query = codes[0] ^ 1 << 40;
    let effort = index.search(query, DISTANCE, &mut |code, distance| {
        println!("{query:016x} -> {code:016x}, {distance} bits");
    })?;
    println!(
        "{} probes, {} codes compared",
        effort.probes, effort.candidates
    );

    // Many queries, which hide each other's memory latency.
    let mut found = 0;
    index.search_group(&codes[..64], DISTANCE, &mut |_query, _code, _distance| {
        found += 1
    })?;
    println!("{found} codes near the first 64");

    // All pairs, without an index.
    let pairs = AtomicU64::new(0);
    self_join(&codes, DISTANCE, SelfJoinLimits::default(), || {
        |_a, _b, _distance| {
            pairs.fetch_add(1, Ordering::Relaxed);
        }
    });
    println!("{} close pairs", pairs.into_inner());
    Ok(())
}

/// Returns evenly spread bits, in place of a simhash.
fn fingerprint(i: u64) -> u64 {
    let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}
