//! The short form of fuzzing: inputs that were found once, and the same few thousand mutations in every run.
//!
//! The long form, which watches what code is reached, is in `fuzz/` of the repository.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fuzzing::mutate::{Numbers, mutated};
use crate::fuzzing::{TARGETS, Target, run, seeds::seeds};

/// Mutations of each target; more with `LOOKALIKE_FUZZ_EXECUTIONS`.
const EXECUTIONS: u64 = 300;

/// What no input may take, in a build that is hardly optimised, on a machine that does other things.
const LONG: Duration = Duration::from_secs(10);

fn timed(target: Target, bytes: &[u8], folder: &Path) {
    let clock = Instant::now();
    run(target, bytes, folder);
    let taken = clock.elapsed();
    assert!(taken < LONG, "{}: {taken:?} for {bytes:?}", target.name);
}

#[test]
fn mutations_break_no_promise() {
    let wanted = std::env::var("LOOKALIKE_FUZZ_EXECUTIONS");
    let executions = wanted.map_or(EXECUTIONS, |wanted| wanted.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    for &target in TARGETS {
        let seeds = seeds(target.name);
        for seed in &seeds {
            timed(target, seed, folder.path());
        }
        for number in 0..executions {
            let bytes = mutated(&seeds, &mut Numbers(number));
            timed(target, &bytes, folder.path());
        }
    }
}

/// A flipped bit turns a short length into a long one, wherever it stands.
#[test]
fn no_wrong_byte_asks_for_much_memory() {
    const FLIPS: [u8; 4] = [0x01, 0x40, 0x80, 0xff];
    let folder = tempfile::tempdir().unwrap();
    let binary = |target: &&Target| ["packed", "parquet", "arrow"].contains(&target.name);
    for &target in TARGETS.iter().filter(binary) {
        for (number, seed) in seeds(target.name).iter().enumerate() {
            let places = (number % 3..seed.len()).step_by(3);
            for (at, flip) in places.zip(FLIPS.into_iter().cycle()) {
                let mut bytes = seed.clone();
                bytes[at] ^= flip;
                timed(target, &bytes, folder.path());
            }
            // Lengths of eight bytes, where they are aligned.
            for at in (0..seed.len().saturating_sub(8)).step_by(16) {
                let mut bytes = seed.clone();
                bytes[at..at + 8].copy_from_slice(&(1_u64 << 45).to_le_bytes());
                timed(target, &bytes, folder.path());
            }
        }
    }
}

/// Inputs that once broke something, as libFuzzer left them.
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
