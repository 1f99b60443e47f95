//! One target under libFuzzer, chosen by the environment: see README.md beside it.

#![no_main]

#[allow(dead_code, missing_docs, unreachable_pub, reason = "shared with the tests")]
#[path = "../../crates/lookalike-corpus/tests/fuzzing/mod.rs"]
mod fuzzing;

use std::path::PathBuf;
use std::sync::OnceLock;

use fuzzing::Target;

struct Session {
    target: Target,
    folder: PathBuf,
}

static SESSION: OnceLock<Session> = OnceLock::new();

/// Finds the target and writes its first inputs.
fn begin() {
    // libFuzzer ends at every panic; those in libraries that are caught and told are no failure.
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !lookalike_corpus::panic_is_handled() {
            end(panic);
        }
    }));
    let wanted = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target");
    let known = fuzzing::TARGETS.iter().find(|target| target.name == wanted);
    let target = *known.unwrap_or_else(|| panic!("no target {wanted}"));
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) {
        for (number, seed) in fuzzing::seeds::seeds(target.name).iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed).expect("a folder for seeds");
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder").keep();
    let _ = SESSION.set(Session { target, folder });
}

libfuzzer_sys::fuzz_target!(init: begin(), |bytes: &[u8]| {
    let session = SESSION.get().expect("begun");
    fuzzing::run(session.target, bytes, &session.folder);
});
