//! Small random collections with many coincidences, compared with the plain definitions: shingles as lists of words, all pairs compared, survivors by
//! `lookalike::survivors`.

use std::collections::BTreeSet;

use lookalike::{Decision, survivors};
use proptest::prelude::*;

use crate::promises::documents;
use crate::results::Results;
use crate::support::{Finish, Folder, Pairs, lookalike, pairs_of, record};

/// Returns the distinct runs of `width` words, or all words of a shorter text.
fn shingles(text: &str, width: usize) -> BTreeSet<Vec<&str>> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == '!')
        .filter(|word| !word.is_empty())
        .collect();
    let runs = words.windows(width.min(words.len()).max(1));
    runs.map(<[&str]>::to_vec).collect()
}

fn jaccard(a: &BTreeSet<Vec<&str>>, b: &BTreeSet<Vec<&str>>) -> f64 {
    let shared = a.intersection(b).count();
    if shared == 0 {
        0.0
    } else {
        shared as f64 / (a.len() + b.len() - shared) as f64
    }
}

/// Returns all pairs at or above the threshold, by position.
fn all_pairs(texts: &[String], width: usize, threshold: f64) -> Vec<(usize, usize, f64)> {
    let sets: Vec<_> = texts.iter().map(|text| shingles(text, width)).collect();
    let mut pairs = Vec::new();
    for a in 0..texts.len() {
        for b in a + 1..texts.len() {
            let exact = texts[a] == texts[b] && !texts[a].trim().is_empty();
            let similarity = if exact {
                1.0
            } else {
                jaccard(&sets[a], &sets[b])
            };
            if exact || similarity >= threshold {
                pairs.push((a, b, similarity));
            }
        }
    }
    pairs
}

/// Returns an id; the order of ids differs from that of the positions.
fn id(position: usize) -> String {
    format!("id{}", position * 37 % 101)
}

fn by_id(pairs: &[(usize, usize, f64)]) -> Pairs {
    let named = |&(a, b, similarity): &(usize, usize, f64)| {
        let (a, b) = (id(a), id(b));
        (if a < b { (a, b) } else { (b, a) }, similarity)
    };
    pairs.iter().map(named).collect()
}

/// Returns the order of preference: the longest text first, then the smaller id.
fn priority(texts: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&at| (usize::MAX - texts[at].len(), id(at)));
    order
}

/// Generates a text of few words from a tiny vocabulary, which may be empty, short, or without words, with several kinds of white space.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["aa", "bb", "c"]);
    let gap = prop::sample::select(vec![" ", " ", " ", "  ", " ! "]);
    let words = prop::collection::vec((word, gap), 0..9);
    let written = words.prop_map(|words| {
        words
            .into_iter()
            .map(|(word, gap)| format!("{word}{gap}"))
            .collect()
    });
    let odd = prop::sample::select(vec!["", " ", "!", "!!", "\n\t", "aa"]).prop_map(str::to_owned);
    prop_oneof![6 => written, 1 => odd]
}

fn collection() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 1..40)
}

fn threshold() -> impl Strategy<Value = f64> {
    let ties = prop::sample::select(vec![
        0.1,
        0.2,
        0.25,
        1.0 / 3.0,
        0.5,
        0.6,
        2.0 / 3.0,
        0.75,
        0.8,
        0.9,
        1.0,
    ]);
    prop_oneof![3 => ties, 1 => 0.1..1.0_f64]
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Compares similarities with a tiny tolerance, because they were printed in decimal digits.
fn close(wanted: &Pairs, found: &Pairs) -> bool {
    let near = |pair: &(String, String)| (wanted[pair] - found[pair]).abs() < 1e-12;
    wanted.keys().eq(found.keys()) && wanted.keys().all(near)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn pairs_are_all_pairs(texts in collection(), threshold in threshold(), width in 1..4_usize) {
        let folder = Folder::new();
        let lines = texts.iter().enumerate().map(|(at, text)| record(&id(at), text));
        let input = folder.add("in.jsonl", lines.collect::<String>());
        let (threshold_text, shingle) = (threshold.to_string(), format!("words:{width}"));
        let flags = ["--threshold", &threshold_text, "--shingle", &shingle];
        let found = lookalike("pairs").arg(&input).args(flags).arg("--quiet").succeed().lines();
        let wanted = by_id(&all_pairs(&texts, width, threshold));
        let found = pairs_of(&found, "similarity");
        prop_assert!(close(&wanted, &found), "{:?}\n{:?}", wanted, found);
    }

    #[test]
    fn survivors_are_those_of_the_definition(texts in collection(), threshold in threshold(), width in 1..4_usize) {
        let folder = Folder::new();
        let lines = texts.iter().enumerate().map(|(at, text)| record(&id(at), text));
        let plain = lines.collect::<String>();
        let input = folder.add("in.jsonl", &plain);
        let (threshold_text, shingle) = (threshold.to_string(), format!("words:{width}"));
        let results = folder.dedup(&input, &["--threshold", &threshold_text, "--shingle", &shingle]);
        results.obey(&documents(plain.as_bytes()));
        let removals = results.removals();
        let decisions = survivors(&priority(&texts), &all_pairs(&texts, width, threshold));
        for (at, decision) in decisions.into_iter().enumerate() {
            let found = removals.get(&*id(at));
            match decision {
                Decision::Survivor => prop_assert!(found.is_none(), "{} is removed", id(at)),
                Decision::Removed { survivor, similarity } => {
                    let (by, found, exact) = *found.expect("removed as the definition says");
                    prop_assert_eq!(by, id(survivor));
                    prop_assert_eq!(exact, texts[at] == texts[survivor]);
                    prop_assert!((found - similarity).abs() < 1e-12);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Ids may be repeated without limit: each record is kept or removed under a name of its own, and the order of the input does not matter.
    #[test]
    fn repeated_ids_lose_nothing(rows in prop::collection::vec((0..4_usize, text()), 1..30), turn in 0..30_usize) {
        let folder = Folder::new();
        // Texts of white space are one class. Another test covers records with the same id and class.
        let line = |(name, text): &(usize, String)| {
            record(["x", "y", "x#2", ""][*name], if text.trim().is_empty() { "" } else { text })
        };
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        let out = folder.path("out");
        let mut bytes = Vec::new();
        for _ in 0..2 {
            let input = folder.add("in.jsonl", lines.concat());
            let results = folder.dedup(&input, &["--threshold", "0.5", "--shingle", "words:2", "--pairs", "all"]);
            let mut found: Vec<Vec<u8>> = results.kept.iter().chain(&results.removed).cloned().collect();
            let mut wanted: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
            found.sort();
            wanted.sort();
            prop_assert_eq!(found, wanted);
            let members: usize = results.clusters.iter().map(|cluster| cluster.members.len()).sum();
            prop_assert_eq!(members, results.removals().len());
            prop_assert_eq!(members, results.removed.len());
            bytes.push(Results::stable(&out));
            let middle = turn % lines.len();
            lines.rotate_left(middle);
            lines.reverse();
        }
        prop_assert!(bytes[0] == bytes[1], "another order, another result");
    }

    /// The approximate methods may find fewer pairs, but no others.
    #[test]
    fn approximate_methods_find_true_pairs(texts in collection(), threshold in threshold()) {
        let folder = Folder::new();
        let lines = texts.iter().enumerate().map(|(at, text)| record(&id(at), text));
        let input = folder.add("in.jsonl", lines.collect::<String>());
        let wanted = by_id(&all_pairs(&texts, 2, threshold));
        for method in ["minhash", "super-shingle", "simhash"] {
            let threshold = threshold.to_string();
            let flags = ["--method", method, "--threshold", &threshold, "--shingle", "words:2", "--quiet"];
            let functions = if method == "minhash" { &["--functions", "512"][..] } else { &[] };
            let found = pairs_of(&lookalike("pairs").arg(&input).args(flags).args(functions).succeed().lines(), "similarity");
            let part: Pairs = wanted.iter().filter(|row| found.contains_key(row.0)).map(|(k, s)| (k.clone(), *s)).collect();
            prop_assert!(close(&part, &found), "{}: {:?}", method, found);
            let exact = |at: &(usize, usize, f64)| texts[at.0] == texts[at.1];
            let copies: Vec<_> = all_pairs(&texts, 2, 1.0).into_iter().filter(exact).collect();
            prop_assert!(by_id(&copies).keys().all(|pair| found.contains_key(pair)), "{} lost a copy", method);
        }
    }
}

#[test]
fn records_that_share_id_and_text_do_not_depend_on_the_order() {
    let folder = Folder::new();
    let lines =
        |text: &str| [1, 2].map(|n| format!("{{\"id\":\"x\",\"n\":{n},\"text\":{text:?}}}\n"));
    for text in ["", "one two three"] {
        let mut lines = lines(text);
        let mut stable = || {
            lines.reverse();
            Results::stable(
                &folder
                    .dedup(&folder.add("in.jsonl", lines.concat()), &[])
                    .folder,
            )
        };
        assert!(stable() == stable(), "text {text:?}");
    }
}
