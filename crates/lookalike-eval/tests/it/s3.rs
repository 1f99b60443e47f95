//! Published S3 scores of the webis pairs: the common distinct word 8-grams divided by the mean number of the two.

use std::collections::BTreeMap;
use std::path::Path;

use lookalike::hash::xxh3_64;
use lookalike::{FeatureExtractor, Scheme, intersection_size};
use serde_json::Value;

/// Returns the line with its score quoted as a string.
fn scores_as_text(line: &str) -> String {
    let Some((before, after)) = line.split_once("\"s3\": ") else {
        return line.to_owned();
    };
    let end = after.find([',', '}']).unwrap();
    format!("{before}\"s3\": \"{}\"{}", &after[..end], &after[end..])
}

#[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
fn rows(name: &str) -> Option<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/webis-s3-pairs");
    let Ok(text) = std::fs::read_to_string(folder.join(name)) else {
        eprintln!("skipped: {name} of webis-s3-pairs is not there");
        return None;
    };
    Some(
        text.lines()
            .map(|line| serde_json::from_str(&scores_as_text(line)).unwrap())
            .collect(),
    )
}

#[test]
fn the_published_scores_to_the_last_digit() {
    let (Some(documents), Some(pairs)) = (rows("processed.jsonl"), rows("pairs.jsonl")) else {
        return;
    };
    let scheme = Scheme::default().shingle("words:8".parse().unwrap());
    let mut extractor = FeatureExtractor::new(&scheme);
    let mut sets = BTreeMap::new();
    for row in &documents {
        let words = row["text"].as_str().unwrap().split(' ');
        let tokens: Vec<u64> = words.map(|word| xxh3_64(word.as_bytes(), 0)).collect();
        let set = extractor.extract_tokens(&tokens).unwrap().set.to_vec();
        sets.insert(row["id"].as_str().unwrap(), set);
    }
    assert_eq!(pairs.len(), 184);
    for pair in &pairs {
        let [a, b] = ["a", "b"].map(|end| &sets[pair[end].as_str().unwrap()]);
        let mean = (a.len() as f64 + b.len() as f64) / 2.0;
        let score = intersection_size(a, b) as f64 / mean;
        // Compare the score as written, because a JSON parser may be off in the last digit.
        let written = pair["s3"].as_str().unwrap();
        assert_eq!(score, written.parse::<f64>().unwrap(), "{pair}");
    }
}
