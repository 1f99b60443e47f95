//! What the readers of our own files must bear: any bytes whatever.
//!
//! [`run`] gives bytes to one reader and demands what holds for all input: no panic, and what is read says of itself what it holds.
//! Files end in sums, and nearly every change of a byte would be stopped by one; a second reading therefore gives the bytes sums that fit, as
//! an adversary would.

use lookalike::{GrowingTerms, Scheme, TermCounts};
use xxhash_rust::xxh3::xxh3_64;

/// All targets.
pub(crate) const TARGETS: &[&str] = &["scheme", "terms"];

/// Gives the bytes to a target.
///
/// # Panics
/// If a promise is broken: that is what it is for.
pub(crate) fn run(target: &str, bytes: &[u8]) {
    match target {
        "scheme" => scheme(bytes),
        _ => {
            terms(bytes);
            terms(&summed(bytes));
        }
    }
}

/// The inputs that a target begins with.
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

/// The bytes with the sum of all before in their last eight.
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

/// The text of a scheme says the same when it is read again.
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
        let again = GrowingTerms::from_bytes(&table.to_bytes(), None);
        assert_eq!(again.as_ref(), Ok(&table));
        assert!(table.terms().idf(3) >= 1);
        assert!((0.0..=64.0).contains(&table.follow(1.0).bits));
    }
}
