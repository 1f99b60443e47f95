//! The short form of fuzzing: stored inputs that once failed, and the same few thousand mutations in every run.
//!
//! The long form, which tracks the covered code, is in `fuzz/` of the repository.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fuzzing::mutate::{Trying, draws, mutated};
use crate::fuzzing::{TARGETS, Target, run, seeds::seeds};

/// Number of mutations for each target.
const EXECUTIONS: u64 = 300;

/// Maximum time for any input, in a build with little optimisation on a busy machine.
const LONG: Duration = Duration::from_secs(10);

fn timed(target: Target, bytes: &[u8], folder: &Path) {
    let clock = Instant::now();
    let _trying = Trying {
        target: target.name,
        bytes,
    };
    run(target, bytes, folder);
    let taken = clock.elapsed();
    assert!(taken < LONG, "{taken:?}");
}

#[test]
fn mutations_break_no_promise() {
    let folder = tempfile::tempdir().unwrap();
    for &target in TARGETS {
        let seeds = seeds(target.name);
        for seed in &seeds {
            timed(target, seed, folder.path());
        }
        for mut numbers in draws(EXECUTIONS) {
            timed(target, &mutated(&seeds, &mut numbers), folder.path());
        }
    }
}

/// A flipped bit turns a short length into a long one, wherever it is.
#[test]
fn no_wrong_byte_asks_for_much_memory() {
    const FLIPS: [u8; 4] = [0x01, 0x40, 0x80, 0xff];
    const BINARY: [&str; 6] = ["packed", "bzip2", "xz", "pdf", "parquet", "arrow"];
    let folder = tempfile::tempdir().unwrap();
    let is_binary = |target: &&Target| BINARY.contains(&target.name);
    for &target in TARGETS.iter().filter(is_binary) {
        for (number, seed) in seeds(target.name).iter().enumerate() {
            let places = (number % 9..seed.len()).step_by(9);
            for (at, flip) in places.zip(FLIPS.into_iter().cycle()) {
                let mut bytes = seed.clone();
                bytes[at] ^= flip;
                timed(target, &bytes, folder.path());
            }
            // Overwrites lengths of eight bytes, where they are aligned.
            for at in (0..seed.len().saturating_sub(8)).step_by(40) {
                let mut bytes = seed.clone();
                bytes[at..at + 8].copy_from_slice(&(1_u64 << 45).to_le_bytes());
                timed(target, &bytes, folder.path());
            }
        }
    }
}

/// Replaces a number in digits, which may be a length or a count.
#[test]
fn no_wrong_number_asks_for_much_memory() {
    const NUMBERS: [u64; 4] = [0, u32::MAX as u64, 1 << 45, u64::MAX];
    const WRITTEN: [&str; 5] = ["csv", "warc", "wat", "arc", "pdf"];
    let folder = tempfile::tempdir().unwrap();
    let is_written = |target: &&Target| WRITTEN.contains(&target.name);
    for &target in TARGETS.iter().filter(is_written) {
        for seed in seeds(target.name) {
            let begins = |at: &usize| {
                seed[*at].is_ascii_digit()
                    && !at
                        .checked_sub(1)
                        .is_some_and(|at| seed[at].is_ascii_digit())
            };
            for (at, number) in (0..seed.len())
                .filter(begins)
                .zip(NUMBERS.into_iter().cycle())
            {
                let digits = seed[at..].iter().take_while(|byte| byte.is_ascii_digit());
                let (head, tail) = (&seed[..at], &seed[at + digits.count()..]);
                let bytes = [head, number.to_string().as_bytes(), tail].concat();
                timed(target, &bytes, folder.path());
            }
        }
    }
}

/// Inputs that once failed, as saved by libFuzzer.
#[test]
fn what_fuzzing_found_stays_mended() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    let folder = tempfile::tempdir().unwrap();
    for &target in TARGETS {
        let Ok(entries) = fs::read_dir(found.join(target.name)) else {
            continue;
        };
        for entry in entries {
            timed(
                target,
                &fs::read(entry.unwrap().path()).unwrap(),
                folder.path(),
            );
        }
    }
}
