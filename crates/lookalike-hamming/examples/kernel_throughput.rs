//! Prints the nanoseconds that each kernel takes for a word, an entry or a probe, with its memory in the nearest cache.
//!
//! `cargo run --release -p lookalike-hamming --example kernel_throughput -- [rounds] [level]`

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

#[allow(dead_code, reason = "other examples use the rest")]
mod measuring;

use lookalike_hamming::{
    BucketVisitor, CacheLine, ClosePairs, EntryRange, Integer, Permute, ProbeBuckets,
    ProbeLocations, ProbePacked, ProbeSet, ScanLine, ScanPacked, ScanWords, Word, force_level,
    level_name,
};
use measuring::{argument, word};
use std::hint::black_box;
use std::time::Instant;

/// Number of times that everything is measured, each so short that other processes disturb few of them; the shortest counts.
const TIMES: usize = 60;

/// Prints the shortest time of some rounds of `work`, divided by the units of a round.
fn measure(what: &str, rounds: usize, units: usize, mut work: impl FnMut(usize) -> u64) {
    let (mut least, mut sum) = (f64::MAX, 0);
    for _ in 0..TIMES {
        let started = Instant::now();
        for round in 0..rounds {
            sum = black_box(work(round));
        }
        least = least.min(started.elapsed().as_secs_f64());
    }
    println!(
        "{what:28} {:8.3} ns; {sum}",
        least * 1e9 / (rounds * units) as f64
    );
}

struct Count(u64);

impl BucketVisitor<u64> for Count {
    fn hit(&mut self, _: u32, entry: u64) {
        self.0 = self.0.wrapping_add(entry);
    }

    fn overflow(&mut self, _: u32, _: u32) -> u64 {
        0
    }
}

/// Words, one in sixteen of which has three bits.
fn words(count: u64) -> Vec<u64> {
    let of = |i| {
        if i % 16 == 5 {
            7_u64 << (i % 60)
        } else {
            word(i)
        }
    };
    (0..count).map(of).collect()
}

fn main() {
    if let Some(level) = std::env::args().nth(2) {
        assert!(force_level(&level), "this processor has no {level}");
    }
    println!("instructions: {}", level_name());
    let rounds = argument(1, 4_000);
    let words = words(4096);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for count in [3, 8, 20, 64] {
        measure(&format!("scan_words {count}"), rounds, count, |round| {
            let at = black_box(round % 64);
            let words = &words[at..at + count];
            u64::run(ScanWords {
                words,
                needle: 0,
                radius: 3,
            })
        });
    }
    for (width, count) in [(6, 2), (6, 8), (6, 24), (6, 64), (5, 64), (8, 64), (3, 64)] {
        let name = format!("scan_packed {width} x {count}");
        measure(&name, rounds, count, |round| {
            let at = black_box(round % 64) * width;
            let bytes = &bytes[at..];
            u64::run(ScanPacked {
                bytes,
                width,
                count,
                needle: 0,
                radius: 3,
            })
        });
    }
    for (width, count) in [(6, 2), (6, 8), (5, 12)] {
        let name = format!("scan_cache_line {width} x {count}");
        let (lines, _) = bytes.as_chunks::<64>();
        measure(&name, rounds, count, |round| {
            let line = &lines[black_box(round % 64)];
            let entries = ScanPacked {
                bytes: line,
                width,
                count,
                needle: 0,
                radius: 3,
            };
            u64::run(ScanLine { line, entries })
        });
    }
    for size in [2, 3, 6, 20, 64] {
        let ends: Vec<u32> = (1..=256 / size).map(|group| group * size).collect();
        let mut pairs = Vec::with_capacity(1 << 16);
        let units = (256 / size * size * (size - 1) / 2) as usize;
        measure(
            &format!("close_pairs of {size}"),
            rounds / 100,
            units,
            |round| {
                pairs.clear();
                u64::run(ClosePairs {
                    words: &words[round % 64..],
                    start: 0,
                    ends: black_box(&ends),
                    most: 64,
                    radius: 3,
                    pairs: &mut pairs,
                });
                pairs.len() as u64
            },
        );
    }
    let mut permuted = vec![0; 512];
    measure("permute", rounds / 50, 512, |_| {
        u64::run(Permute {
            words: black_box(&words[..512]),
            address: 0x00ff_0f0f_1234_00f0,
            out: &mut permuted,
        });
        permuted[7]
    });
    measure("extract", rounds, 1, |round| {
        words[round % 64].extract(black_box(0x00ff_0f0f_1234_00f0))
    });
    probes(rounds, &bytes);
}

/// Measures probes of packed tables and of cache-line buckets, 32 for each query.
fn probes(rounds: usize, bytes: &[u8]) {
    let xor_masks: Vec<u32> = (0..32).collect();
    let probes = ProbeSet {
        bucket: 5,
        xor_masks: &xor_masks,
        radius: 5,
    };
    for (width, load) in [(5, 1), (6, 1), (7, 1), (6, 4), (6, 12), (6, 40)] {
        let ranges: Vec<EntryRange> = (0..32)
            .map(|at| EntryRange {
                first: u64::from(at * load),
                count: load,
            })
            .collect();
        let located = ProbeLocations {
            probes,
            ranges: &ranges,
        };
        let name = format!("probe_packed {width}, {load} each");
        measure(&name, rounds / 20, 32, |_| {
            let mut sum = 0_u64;
            let mut hit = |_, entry| sum = sum.wrapping_add(entry);
            let compared = u64::run(ProbePacked {
                entries: bytes,
                width,
                probes: black_box(located),
                needle: 0,
                hit: &mut hit,
            });
            compared + sum
        });
    }
    for (width, load) in [(5, 4), (6, 4), (6, 9)] {
        let (lines, _) = bytes.as_chunks::<64>();
        let mut lines = lines[..32].to_vec();
        for line in &mut lines {
            line[60..].copy_from_slice(&u32::to_le_bytes(load));
        }
        let lines: Vec<CacheLine> = lines.into_iter().map(CacheLine).collect();
        let name = format!("probe_buckets {width}, {load} each");
        measure(&name, rounds / 20, 32, |_| {
            let mut visitor = Count(0);
            let capacity = (60 / width) as u32;
            let compared = u64::run(ProbeBuckets {
                lines: black_box(&lines),
                width,
                capacity,
                probes,
                needle: 0,
                visitor: &mut visitor,
            });
            compared + visitor.0
        });
    }
}
