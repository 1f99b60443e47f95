//! Fuzzes one target with libFuzzer, chosen by the environment; see README.md of this folder.

#![no_main]

#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the tests"
)]
#[path = "../../crates/lookalike/tests/fuzzing/mod.rs"]
mod core_files;
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the tests"
)]
#[path = "../../crates/lookalike-corpus/tests/fuzzing/mod.rs"]
mod fuzzing;
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the tests"
)]
#[path = "../../crates/lookalike-hamming/tests/fuzzing/mod.rs"]
mod hamming_files;

use std::path::Path;
use std::sync::OnceLock;

use fuzzing::allocation::{MAX_ALLOCATION, Watched, beyond, largest};
use lookalike_server::fuzzing as requests;
use lookalike_store::fuzzing as store;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

static RUN: OnceLock<Run> = OnceLock::new();

/// Returns the function that runs a target on bytes, and the initial inputs of the target.
fn target(name: &'static str) -> Option<(Run, Vec<Vec<u8>>)> {
    if let Some(&target) = fuzzing::TARGETS.iter().find(|target| target.name == name) {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let run = move |bytes: &[u8]| fuzzing::run(target, bytes, &folder);
        return Some((Box::new(run), fuzzing::seeds::seeds(name)));
    }
    if core_files::TARGETS.contains(&name) {
        let run = move |bytes: &[u8]| core_files::run(name, bytes);
        return Some((Box::new(run), core_files::seeds(name)));
    }
    if hamming_files::TARGETS.contains(&name) {
        let run = move |bytes: &[u8]| hamming_files::run(name, bytes);
        return Some((Box::new(run), hamming_files::seeds(name)));
    }
    if store::TARGETS.contains(&name) {
        let run = move |bytes: &[u8]| store::run(name, bytes);
        return Some((Box::new(run), store::seeds(name)));
    }
    if requests::TARGETS.contains(&name) {
        let run = move |bytes: &[u8]| requests::run(name, bytes);
        return Some((Box::new(run), requests::seeds(name)));
    }
    None
}

fn names() -> impl Iterator<Item = &'static str> {
    let own = core_files::TARGETS.iter().chain(hamming_files::TARGETS);
    let own = own.chain(store::TARGETS).chain(requests::TARGETS);
    fuzzing::TARGETS
        .iter()
        .map(|target| target.name)
        .chain(own.copied())
}

fn write_seeds(folder: &Path, seeds: &[Vec<u8>]) {
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).expect("a folder for seeds");
    }
}

/// Finds the target and writes its initial inputs; without a target, lists all.
fn begin() {
    // libFuzzer stops at every panic, but panics in libraries that are caught and reported are no failure.
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !lookalike_corpus::panic_is_handled() {
            end(panic);
        }
    }));
    let Ok(wanted) = std::env::var("FUZZ_TARGET") else {
        names().for_each(|name| println!("{name}"));
        std::process::exit(0);
    };
    let Some((run, seeds)) = target(wanted.leak()) else {
        eprintln!("there is no such target: `fuzz/run list` names all");
        std::process::exit(2);
    };
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
        write_seeds(Path::new(&folder), &seeds);
    }
    let _ = RUN.set(run);
}

libfuzzer_sys::fuzz_target!(init: begin(), |bytes: &[u8]| {
    largest();
    RUN.get().expect("begun")(bytes);
    let largest = largest().max(beyond());
    assert!(largest <= MAX_ALLOCATION, "{largest} bytes at once");
});
