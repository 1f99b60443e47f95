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
