//! `--and`: further tests that a pair must pass; and `--threshold 0`, under which every candidate counts.

use std::collections::BTreeSet;
use std::path::Path;

use lookalike::resemblance::SetMeasure;
use lookalike::{FeatureExtractor, Scheme, intersection_size};

use crate::support::{Finish as _, Folder, STORY, lookalike, pairs_of};

/// Returns families of texts that share their nouns, or the skeletons of their sentences, or both.
fn texts() -> Vec<(String, String)> {
    let names = [
        "ferry", "harbour", "captain", "island", "storm", "engine", "crew", "night",
    ];
    let skeletons = [
        "the A of the B was in a C and it had not been there when they said that the D would",
        "A with B by C, no D on E",
        "if you are in A or at B, which is C, then we have what they said of D",
    ];
    let mut texts = Vec::new();
    for (s, skeleton) in skeletons.iter().enumerate() {
        for first in 0..names.len() {
            let name = |c: char| match c {
                'A'..='E' => names[(first + c as usize - 'A' as usize) % names.len()].to_owned(),
                c => c.to_string(),
            };
            let text: String = skeleton.chars().map(name).collect();
            texts.push((format!("{s}-{first}"), format!("{text}. {STORY}")));
        }
    }
    texts
}

type IdPairs = BTreeSet<(String, String)>;

fn pairs(input: &Path, flags: &[&str]) -> IdPairs {
    let done = lookalike("pairs")
        .arg(input)
        .arg("--quiet")
        .args(flags)
        .succeed();
    pairs_of(&done.lines(), "similarity").into_keys().collect()
}

/// Returns the pairs whose sets reach the minimum of a measure, by definition.
fn defined(texts: &[(String, String)], measure: SetMeasure, shingle: &str, least: f64) -> IdPairs {
    let scheme = Scheme::default().shingle(shingle.parse().unwrap());
    let set = |text: &str| FeatureExtractor::new(&scheme).feature_set(text).to_vec();
    let sets: Vec<Vec<u64>> = texts.iter().map(|(_, text)| set(text)).collect();
    let mut found = IdPairs::new();
    for (x, a) in sets.iter().enumerate() {
        for (y, b) in sets.iter().enumerate().skip(x + 1) {
            if measure.of(intersection_size(a, b), a.len(), b.len()) >= least {
                let (x, y) = (texts[x].0.clone(), texts[y].0.clone());
                found.insert((x.clone().min(y.clone()), x.max(y)));
            }
        }
    }
    found
}

#[test]
fn a_pair_counts_when_it_passes_both_tests() {
    let folder = Folder::new();
    let texts = texts();
    let input = folder.records("a.jsonl", &texts);
    let first = ["--shingle", "words:2", "--threshold", "0.5"];
    let plain = pairs(&input, &first);
    let mut narrowed = 0;
    for (measure, shingle, least) in [
        (SetMeasure::Resemblance, "words:1", 0.8),
        (SetMeasure::Containment, "words:3", 0.7),
        (SetMeasure::Coverage, "stops:5", 0.6),
    ] {
        let test = format!("{measure}:{shingle}:{least}");
        let defined = defined(&texts, measure, shingle, least);
        let both: IdPairs = plain.intersection(&defined).cloned().collect();
        narrowed += usize::from(both.len() < plain.len() && !both.is_empty());
        for method in ["allpairs", "minhash", "oph"] {
            let flags = ["--method", method, "--and", &test];
            let found = pairs(&input, &[&first[..], &flags].concat());
            assert_eq!(found, both, "{method} {test}");
        }
        // With very little memory, sets are read from disk.
        let small = ["--memory", "48M", "--threads", "1", "--and", &test];
        assert_eq!(pairs(&input, &[&first[..], &small].concat()), both);
    }
    assert!(narrowed > 0, "tests that change nothing show nothing");
}

#[test]
fn whatever_is_removed_passes_all_tests_with_its_survivor() {
    let folder = Folder::new();
    let texts = texts();
    let input = folder.records("a.jsonl", &texts);
    let test = "coverage:stops:5:0.6";
    let flags = ["--shingle", "words:2", "--threshold", "0.5", "--and", test];
    let allowed = pairs(&input, &flags);
    let results = folder.dedup(&input, &flags);
    assert_eq!(results.kept.len() + results.removed.len(), texts.len());
    assert!(!results.removed.is_empty());
    for cluster in &results.clusters {
        for member in &cluster.members {
            let (a, b) = (cluster.survivor.clone(), member.id.clone());
            let pair = (a.clone().min(b.clone()), a.max(b));
            assert!(allowed.contains(&pair), "{pair:?}");
        }
    }
    // No two kept documents are a pair that passes.
    let id = |line: &Vec<u8>| -> String {
        let record: serde_json::Value = serde_json::from_slice(line).unwrap();
        record["id"].as_str().unwrap().to_owned()
    };
    let kept: BTreeSet<String> = results.kept.iter().map(id).collect();
    let both = |pair: &&(String, String)| kept.contains(&pair.0) && kept.contains(&pair.1);
    assert_eq!(allowed.iter().find(both), None);
    assert_eq!(results.run["and"][0], test);
}

#[test]
fn explain_says_which_test_a_pair_fails() {
    let folder = Folder::new();
    let texts = texts();
    let input = folder.records("a.jsonl", &texts);
    let explain = |test: &str| {
        lookalike("explain")
            .args(["0-0", "1-0", "--in"])
            .arg(&input)
            .args(["--threshold", "0.1", "--and", test])
            .succeed()
    };
    let failed = explain("resemblance:stops:5:0.9");
    assert!(
        failed.text().starts_with("not near-duplicates"),
        "{}",
        failed.text()
    );
    assert!(
        failed
            .text()
            .contains("fails the test resemblance:stops:5:0.9"),
        "{}",
        failed.text()
    );
    let passed = explain("containment:words:1:0.1");
    assert!(
        passed.text().starts_with("near-duplicates"),
        "{}",
        passed.text()
    );
}

#[test]
fn a_test_that_would_do_nothing_is_refused() {
    let folder = Folder::new();
    let input = folder.records("a.jsonl", &[("a", STORY), ("b", STORY)]);
    for (flags, part) in [
        (
            &["--method", "exact", "--and", "coverage:words:1:0.5"][..],
            "leave --and out, or name another method",
        ),
        (
            &["--and", "coverage:phrases:5:0.5"],
            "need a table of terms",
        ),
        (&["--and", "coverage:words:1"], "lacks the minimum"),
        (&["--and", "coverage:words:1:7"], "above 0 and at most 1"),
        (
            &["--threshold", "0"],
            "is for the methods with --distance or --equal",
        ),
    ] {
        let mut command = lookalike("pairs");
        let done = command.arg(&input).args(flags).finish();
        assert!(
            matches!(done.status, Some(1 | 2)),
            "{flags:?}: {}",
            done.err
        );
        assert!(done.err.contains(part), "{flags:?}: {}", done.err);
    }
}

#[test]
fn at_threshold_zero_every_candidate_counts() {
    let folder = Folder::new();
    let texts = texts();
    let input = folder.records("a.jsonl", &texts);
    let flags = [
        "--shingle",
        "words:1",
        "--method",
        "simhash",
        "--distance",
        "16",
    ];
    let all = pairs(&input, &[&flags[..], &["--threshold", "0"]].concat());
    let prints = lookalike("fingerprint")
        .arg(&input)
        .args(["--shingle", "words:1"])
        .succeed()
        .lines();
    let bits = |row: &serde_json::Value| {
        u64::from_str_radix(row["fingerprint"].as_str().unwrap(), 16).unwrap()
    };
    let mut near = 0;
    for (x, a) in prints.iter().enumerate() {
        near += prints[x + 1..]
            .iter()
            .filter(|b| (bits(a) ^ bits(b)).count_ones() <= 16)
            .count();
    }
    assert_eq!(all.len(), near);
    assert!(pairs(&input, &flags).len() < near);
}

/// Regression test: a rule by containment alone needed a threshold such as 0.000000001, because 0 was refused.
#[test]
fn a_further_test_alone_needed_a_tiny_threshold() {
    let folder = Folder::new();
    let mut texts = texts();
    // It passes the test with many, but has no run of two words in common with them.
    texts.push(("short".to_owned(), "ferry".to_owned()));
    texts.push((
        "far".to_owned(),
        "nothing of this is anywhere else".to_owned(),
    ));
    texts.push(("empty".to_owned(), "...".to_owned()));
    let input = folder.records("a.jsonl", &texts);
    let test = "containment:words:1:0.8";
    let shared = defined(
        &texts,
        SetMeasure::Resemblance,
        "words:2",
        f64::MIN_POSITIVE,
    );
    let passing = defined(&texts, SetMeasure::Containment, "words:1", 0.8);
    let expected: IdPairs = shared.intersection(&passing).cloned().collect();
    assert!(expected.len() < passing.len() && expected.len() < shared.len());
    let flags = ["--shingle", "words:2", "--threshold", "0", "--and", test];
    assert_eq!(pairs(&input, &flags), expected);
    let results = folder.dedup(&input, &[&flags[..], &["--pairs", "all"]].concat());
    let listed: IdPairs = results.pairs.keys().cloned().collect();
    assert_eq!(listed, expected);
    assert_eq!(results.run["verified"], true);
    let report = std::fs::read_to_string(results.folder.join("report.html")).unwrap();
    assert!(report.contains("have some runs of 2 words in common") && report.contains(test));
    let explain = |a: &str, b: &str| {
        let mut command = lookalike("explain");
        command.args([a, b, "--in"]).arg(&input).args(flags);
        command.succeed().text().to_owned()
    };
    assert!(explain("short", "0-0").contains("no feature in common"));
    let (a, b) = expected.iter().next().unwrap();
    assert!(explain(a, b).contains("allpairs finds the pair"));
    let mut refused = lookalike("pairs");
    refused
        .arg(&input)
        .args(["--threshold", "0"])
        .fail(2)
        .says(&["for a further test (--and)"]);
}
