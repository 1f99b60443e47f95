//! A short form of fuzzing: every run tries the same few thousand mutations and the inputs that fuzzing has found.
//!
//! The long form, which is guided by code coverage, is in `fuzz/` of the repository.

use std::fs;
use std::path::Path;

use crate::fuzzing::{self, TARGETS, seeds};
use crate::mutate::{Trying, draws, mutated};

/// Number of mutations tried per target.
const EXECUTIONS: u64 = 2000;

fn run(target: &str, bytes: &[u8]) {
    let _trying = Trying { target, bytes };
    fuzzing::run(target, bytes);
}

#[test]
fn mutations_break_no_promise() {
    for target in TARGETS {
        let seeds = seeds(target);
        seeds.iter().for_each(|seed| run(target, seed));
        for mut numbers in draws(EXECUTIONS) {
            run(target, &mutated(&seeds, &mut numbers));
        }
    }
}

#[test]
fn no_flipped_bit_breaks_a_promise() {
    for target in TARGETS {
        for seed in seeds(target).iter().filter(|seed| seed.len() < 1 << 14) {
            for at in 0..seed.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut bytes = seed.clone();
                    bytes[at] ^= flip;
                    run(target, &bytes);
                }
            }
        }
    }
}

/// Reads inputs that once broke something, as libFuzzer saved them.
#[test]
fn what_fuzzing_found_stays_mended() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    for target in TARGETS {
        let Ok(entries) = fs::read_dir(found.join(target)) else {
            continue;
        };
        for entry in entries {
            run(target, &fs::read(entry.unwrap().path()).unwrap());
        }
    }
}
