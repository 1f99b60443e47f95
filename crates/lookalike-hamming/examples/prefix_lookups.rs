//! Prints what the first match in a sorted table costs by bisection and by interpolation (Manku et al. 2007, section 3.1): entries read, and
//! nanoseconds of processor time, of 2^n fingerprints that are random, and of as many of which sixteen each are within
//! two bits of one.
//!
//! `cargo run --release -p lookalike-hamming --example prefix_lookups -- [n] [queries]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

#[allow(dead_code, reason = "shared with examples that measure more")]
mod measuring;

use lookalike_hamming::{Design, Family, HammingIndex, PrefixLookup, SortedTables};
use measuring::{argument, seconds, word};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (count, queries) = (1_usize << argument(1, 20), argument(2, 1_000_000));
    let random: Vec<u64> = (1..).take(count).map(word).collect();
    let near = |at: u64| word(at / 16) ^ 1 << (word(at) % 64) ^ 1 << (word(at) / 64 % 64);
    let clustered: Vec<u64> = (1..).take(count).map(near).collect();
    let wanted: Vec<u64> = (1 << 40..).take(queries).map(word).collect();
    println!("fingerprints        lookup          entries read   ns a lookup");
    for (name, codes) in [("random", random), ("clustered", clustered)] {
        for lookup in [PrefixLookup::Binary, PrefixLookup::Interpolation] {
            let exact = Design::new(Family::budgets(&[0]), 64, 0)?;
            let table = SortedTables::build(&codes, &exact, lookup)?;
            let reads: u64 = wanted.iter().map(|&query| table.lookup_reads(query)).sum();
            let started = Instant::now();
            let (before, mut found) = (seconds(started), 0_u64);
            for &query in &wanted {
                table.search(query, 0, &mut |_, _| found += 1)?;
            }
            let spent = (seconds(started) - before) / queries as f64 * 1e9;
            let reads = reads as f64 / queries as f64;
            println!(
                "{count:>9} {name:10} {:14} {reads:12.1} {spent:12.0}   ({found} found)",
                format!("{lookup:?}")
            );
        }
    }
    Ok(())
}
