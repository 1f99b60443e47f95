//! Prints the cost of finding the first match in a sorted table by bisection and by interpolation (Manku et al. 2007, section 3.1): entries read, and
//! nanoseconds of processor time, for 2^n random fingerprints, and for as many in groups of sixteen that are within two bits of one.
//!
//! `cargo run --release -p lookalike-hamming --example prefix_lookups -- [n] [queries]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

mod lookups;
#[allow(dead_code, reason = "shared with examples that measure more")]
#[path = "../measuring/mod.rs"]
mod measuring;

use lookups::{bisected, interpolated};
use measuring::{argument, seconds, word};
use std::time::Instant;

fn main() {
    let (count, queries) = (1_usize << argument(1, 20), argument(2, 1_000_000));
    let random: Vec<u64> = (1..).take(count).map(word).collect();
    let near = |at: u64| word(at / 16) ^ 1 << (word(at) % 64) ^ 1 << (word(at) / 64 % 64);
    let clustered: Vec<u64> = (1..).take(count).map(near).collect();
    let wanted: Vec<u64> = (1 << 40..).take(queries).map(word).collect();
    println!("fingerprints        lookup          entries read   ns a lookup");
    for (name, mut codes) in [("random", random), ("clustered", clustered)] {
        codes.sort_unstable();
        for interpolates in [false, true] {
            let lookup = |target: u64, reads: &mut u64| {
                let read = |at: usize| {
                    *reads += 1;
                    codes[at]
                };
                match interpolates {
                    true => interpolated(codes.len(), target, read),
                    false => bisected(0..codes.len(), target, read),
                }
            };
            let started = Instant::now();
            let (before, mut reads, mut found) = (seconds(started), 0, 0);
            for &query in &wanted {
                let at = lookup(query, &mut reads);
                found += u64::from(codes.get(at) == Some(&query));
            }
            let spent = (seconds(started) - before) / queries as f64 * 1e9;
            let reads = reads as f64 / queries as f64;
            let kind = if interpolates {
                "Interpolation"
            } else {
                "Binary"
            };
            println!("{count:>9} {name:10} {kind:14} {reads:12.1} {spent:12.0}   ({found} found)");
        }
    }
}
