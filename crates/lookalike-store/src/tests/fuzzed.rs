//! A short form of fuzzing: the same mutations in every run, and inputs that fuzzing found once.
//!
//! The long form, which is guided by coverage, is in `fuzz/` of the repository.

use std::fs;
use std::path::Path;

use super::allocation::largest;
use super::mutate::{Trying, draws, mutated};
use crate::fuzzing::{self, TARGETS, seeds};

/// Number of mutations for each target.
const EXECUTIONS: u64 = 1000;

/// Maximum size of an allocation for one of these small files.
const MAX_ALLOCATION: usize = 8 << 20;

fn run(target: &str, bytes: &[u8]) {
    let _trying = Trying { target, bytes };
    largest();
    fuzzing::run(target, bytes);
    let largest = largest();
    assert!(largest <= MAX_ALLOCATION, "{largest} bytes at once");
}

#[test]
fn mutations_of_files_whose_checks_fit_break_no_promise() {
    for target in TARGETS {
        let seeds = seeds(target);
        seeds.iter().for_each(|seed| run(target, seed));
        for mut numbers in draws(EXECUTIONS) {
            run(target, &mutated(&seeds, &mut numbers));
        }
    }
}

#[test]
fn no_flipped_bit_of_a_file_whose_checks_fit_breaks_a_promise() {
    for target in TARGETS {
        for seed in seeds(target) {
            for (at, flip) in (0..seed.len())
                .step_by(11)
                .zip([0x01, 0x80, 0xff].into_iter().cycle())
            {
                let mut bytes = seed.clone();
                bytes[at] ^= flip;
                run(target, &bytes);
            }
        }
    }
}

/// Replays inputs that once broke something.
#[test]
fn what_fuzzing_found_stays_mended() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    for target in TARGETS {
        let Ok(entries) = fs::read_dir(found.join(target)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a folder").path();
            run(target, &fs::read(path).expect("a file"));
        }
    }
}
