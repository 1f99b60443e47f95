//! Simhashes of real sentences, whose bits are far from even if the features are single words.

use super::collections::{LinearScan, found};
use lookalike::{FeatureExtractor, Scheme, Simhash};
use lookalike_hamming::{Integer, Layout, SelfJoinLimits, TableIndex, designs, self_join};
use std::fs;
use std::path::Path;

/// Returns the fingerprints of every sentence of the example articles, and of each sentence with one word left out.
fn fingerprints(shingle: &str) -> Vec<u64> {
    let articles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles.jsonl");
    let text = fs::read_to_string(articles).unwrap();
    let scheme = Scheme::default().shingle(shingle.parse().unwrap());
    let mut extractor = FeatureExtractor::new(&scheme);
    let mut fingerprints = Vec::new();
    for sentence in text.split(". ") {
        let words: Vec<&str> = sentence.split(' ').collect();
        let mut add = |text: &str| {
            let fingerprint = Simhash::fingerprint(extractor.features(text));
            fingerprints.extend(fingerprint.map(|fingerprint| fingerprint.0));
        };
        add(sentence);
        for skipped in (0..words.len()).step_by(4) {
            add(&[&words[..skipped], &words[skipped + 1..]]
                .concat()
                .join(" "));
        }
    }
    fingerprints
}

#[test]
fn real_fingerprints_are_found_by_every_design() {
    for shingle in ["words:1", "words:3"] {
        let all = fingerprints(shingle);
        assert!(all.len() > 500, "{}", all.len());
        let scan = LinearScan::new(&all);
        for design in designs(64, 3, 16) {
            for layout in Layout::ALL {
                let index = TableIndex::build(&all, &design, layout).unwrap();
                assert_eq!(index.len(), scan.codes.len());
                for &query in all.iter().step_by(29) {
                    let (found, expected) = (found(&index, query, 3), scan.found(query, 3));
                    assert_eq!(found, expected, "{shingle} {} {layout}", design.family());
                }
            }
        }
    }
}

#[test]
fn real_fingerprints_are_joined() {
    for shingle in ["words:1", "words:3"] {
        let all = fingerprints(shingle);
        for radius in [0, 3, 6] {
            let mut found = Vec::new();
            let pairs = std::sync::Mutex::new(&mut found);
            self_join(&all, radius, SelfJoinLimits::default(), || {
                |a, b, distance| pairs.lock().unwrap().push((a, b, distance))
            });
            found.sort_unstable();
            let mut distinct = all.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let mut expected = Vec::new();
            for (i, &a) in distinct.iter().enumerate() {
                let apart = distinct[i + 1..].iter().map(|&b| (a, b, a.bits_apart(b)));
                expected.extend(apart.filter(|&(_, _, distance)| distance <= radius));
            }
            assert!(found == expected, "{shingle} {radius}");
            assert!(radius < 3 || !found.is_empty());
        }
    }
}
