//! Fuzz targets for the readers of lookalike's own files, which must cope with arbitrary bytes.
//!
//! [`run`] passes bytes to one reader and checks what must hold for all input: the reader does not panic, and its answers agree with what the file
//! claims to hold. Files end in checksums, so nearly every mutation would stop there. Each input is therefore read a second time with matching
//! checksums, as an adversary would supply them.

use lookalike::{GrowingTerms, Scheme, TermCounts};
use xxhash_rust::xxh3::xxh3_64;

/// The names of all targets.
pub(crate) const TARGETS: &[&str] = &["scheme", "terms"];

/// Runs a target on `bytes`.
///
/// # Panics
/// If the reader breaks a promise.
pub(crate) fn run(target: &str, bytes: &[u8]) {
    match target {
        "scheme" => scheme(bytes),
        _ => {
            terms(bytes);
            terms(&summed(bytes));
        }
    }
}

/// Returns the initial inputs of a target.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "scheme" => schemes(),
        _ => [vec![], vec![vec![1, 2, 3], vec![2, 3], vec![3]]]
            .iter()
            .map(|sets: &Vec<Vec<u64>>| {
                let mut counts = TermCounts::new(&Scheme::default());
                sets.iter().for_each(|set| counts.add(set));
                GrowingTerms::new(counts).to_bytes()
            })
            .collect(),
    }
}

/// Returns `bytes` with its last eight replaced by the checksum of all bytes before them.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let body = &bytes[..bytes.len().saturating_sub(8)];
    [body, &xxh3_64(body).to_le_bytes()].concat()
}

fn schemes() -> Vec<Vec<u8>> {
    let default = Scheme::default().to_string();
    let other = default
        .replace("words:5", "chars:9")
        .replace("simhash:64", "minhash:128");
    vec![default.into_bytes(), other.into_bytes()]
}

/// Checks that a scheme is unchanged when its text is parsed again.
fn scheme(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(scheme) = text.parse::<Scheme>() {
        let again: Scheme = scheme.to_string().parse().expect("its own text");
        assert_eq!(again, scheme);
        assert_eq!(again.id(), scheme.id());
    }
}

fn terms(bytes: &[u8]) {
    if let Ok(mut table) = GrowingTerms::from_bytes(bytes, None) {
        let written = table.to_bytes();
        let again = GrowingTerms::from_bytes(&written, None).expect("its own bytes");
        assert_eq!(again.to_bytes(), written);
        assert!(table.terms().idf(3) >= 1);
        assert!((0.0..=64.0).contains(&table.refresh_weights(1.0).bits));
    }
}
