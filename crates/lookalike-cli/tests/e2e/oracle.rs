//! Small random collections with many coincidences, compared with the plain definitions: shingles as lists of words, all pairs compared, survivors by
//! `lookalike::survivors`.

use std::collections::BTreeSet;

use lookalike::{Decision, survivors};
use proptest::prelude::*;
use serde_json::{Value, json};

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

/// Generates a page of few words under one of few titles, or a text that is not a page. Many have one visible text.
fn page() -> impl Strategy<Value = Value> {
    let shapes = vec![
        ("aa bb cc", ""),
        ("aa bb cc", ""),
        ("aa bb", "T"),
        ("aa bb", ""),
        ("!!", ""),
    ];
    let shape = prop::sample::select(shapes);
    let main = prop::sample::select(vec!["", "", "", "", "ee ff"]);
    let title = prop::sample::select(vec!["T", "Home page"]);
    let html = (shape.clone(), main, title).prop_map(|((menu, headline), main, title)| {
        let links: String = menu.split(' ').map(|word| format!("<a href=x>{word}</a> ")).collect();
        let body = format!("<nav>{links}</nav><h1>{headline}</h1><main>{main}</main>");
        json!({"html": format!("<html><head><title>{title}</title></head><body>{body}</body></html>")})
    });
    prop_oneof![7 => html, 1 => shape.prop_map(|(text, _)| json!({"text": text}))]
}

/// Returns all pairs by the verdicts of `explain`, by position, and whether each is of exact copies.
fn explained(folder: &Folder, pages: usize, flags: &[&str]) -> Vec<(usize, usize, f64, bool)> {
    let mut pairs = Vec::new();
    for a in 0..pages {
        for b in a + 1..pages {
            let mut command = lookalike("explain");
            command
                .args([&id(a), &id(b)])
                .arg("--in")
                .arg(folder.path("in.jsonl"));
            let told = command.arg("--json").args(flags).succeed().json();
            let exact = told["equal_text"] == true;
            if exact || told["near_duplicates"] == true {
                let similarity = told["resemblance"].as_f64().unwrap();
                pairs.push((a, b, if exact { 1.0 } else { similarity }, exact));
            }
        }
    }
    pairs
}

fn without_kind(pairs: &[(usize, usize, f64, bool)]) -> Vec<(usize, usize, f64)> {
    pairs
        .iter()
        .map(|&(a, b, similarity, _)| (a, b, similarity))
        .collect()
}

proptest! {
    #![proptest_config(cases(24))]

    /// A job decides on each pair of pages as `explain` does, although pages of one visible text may have different titles; and so does a job
    /// that has the earlier pages from a collection.
    #[test]
    fn pages_are_decided_as_they_are_explained(
        pages in prop::collection::vec(page(), 3..9),
        threshold in prop::sample::select(vec!["0.2", "0.3", "0.5"]),
        shingle in prop::sample::select(vec!["words:1", "words:2", "words:2"]),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = Folder::new();
        let line = |(at, page): (usize, &Value)| {
            let mut record = page.clone();
            (record["id"], record["n"]) = (json!(id(at)), json!(at));
            format!("{record}\n")
        };
        let lines: Vec<String> = pages.iter().enumerate().map(line).collect();
        let input = folder.add("in.jsonl", lines.concat());
        let flags = ["--threshold", threshold, "--shingle", shingle];
        let wanted = explained(&folder, pages.len(), &flags);

        let pairs = |flags: &[&str]| {
            pairs_of(&lookalike("pairs").arg(&input).args(flags).arg("--quiet").succeed().lines(), "similarity")
        };
        let found = pairs(&flags);
        prop_assert!(close(&by_id(&without_kind(&wanted)), &found), "{:?}\n{:?}", wanted, found);
        let copies: Vec<_> = wanted.iter().copied().filter(|pair| pair.3).collect();
        prop_assert_eq!(pairs(&["--method", "exact"]), by_id(&without_kind(&copies)));

        let order: Vec<usize> = (0..pages.len()).collect();
        let mut decisions = survivors(&order, &without_kind(&wanted));
        // Equal pages are one: the first of them stands for all, also if a later survivor is closer.
        for at in 0..pages.len() {
            let first = (0..at).find(|&first| pages[first] == pages[at]);
            if let Some(removed @ Decision::Removed { .. }) = first.map(|first| decisions[first]) {
                decisions[at] = removed;
            }
        }
        let mut reversed = lines.clone();
        reversed.reverse();
        let backwards = folder.add("backwards.jsonl", reversed.concat());
        for (input, threads) in [(&input, "1"), (&backwards, "1"), (&backwards, "16")] {
            let results = folder.dedup(input, &[&flags[..], &["--keep", "min:n", "--threads", threads]].concat());
            let removals = results.removals();
            for (at, decision) in decisions.iter().enumerate() {
                let found = removals.get(&*id(at));
                let is_right = match *decision {
                    Decision::Survivor => found.is_none(),
                    Decision::Removed { survivor, similarity } => found.is_some_and(|&(by, found, exact)| {
                        let is_copy = copies.iter().any(|copy| (copy.0, copy.1) == (survivor, at));
                        by == id(survivor) && exact == is_copy && (found - similarity).abs() < 1e-12
                    }),
                };
                prop_assert!(is_right, "{}: {:?}, not {:?}", id(at), found, decision);
            }
        }

        let (old, new) = lines.split_at(1 + cut.index(lines.len() - 1));
        let (old, new) = (folder.add("old.jsonl", old.concat()), folder.add("new.jsonl", new.concat()));
        let collection = folder.path("collection");
        lookalike("collection").arg("build").arg(&collection).arg(&old).args(flags).succeed();
        let stable = |earlier: &std::path::Path| {
            let earlier = ["--against", crate::support::path(earlier), "--pairs", "all"];
            Results::stable(&folder.dedup(&new, &[&flags[..], &earlier].concat()).folder)
        };
        prop_assert!(stable(&old) == stable(&collection), "the collection gives another result");
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
