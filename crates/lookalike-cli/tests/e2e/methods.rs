//! Every method: only verified pairs, and the options that a scheme needs.

use crate::support::{
    Finish, Folder, Numbers, TRUTH, contents, corpus, json_lines, listed, lookalike, pairs_of,
};

/// Checks the recall of each method at resemblance 0.9 on wire stories; all reported pairs must be true.
#[test]
fn what_every_method_reports_is_true_and_most_is_found() {
    let Some(documents) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let truth = corpus("reuters21578/jaccard_w5.jsonl").unwrap();
    let mut truth = pairs_of(&json_lines(&contents(&truth)), "j");
    truth.retain(|_, j| *j >= 0.9);
    let folder = Folder::new();
    let terms = folder.path("words.terms");
    lookalike("terms")
        .arg(&documents)
        .args(["--shingle", "words:5", "--quiet", "-o"])
        .arg(&terms)
        .args(TRUTH)
        .succeed();
    let terms = terms.to_str().unwrap();
    let cases: [(&str, &[&str], f64); 9] = [
        ("minhash", &[], 0.99),
        ("oph", &[], 0.9),
        ("b-bit", &[], 0.99),
        ("super-shingle", &["--equal", "1"], 0.7),
        ("henzinger", &["--distance", "8"], 0.6),
        ("mod-p", &[], 0.9),
        ("winnow", &[], 0.99),
        ("i-match", &["--terms", terms], 0.5),
        ("buckets", &["--size", "16", "--equal", "1"], 0.7),
    ];
    for (method, flags, recall) in cases {
        let mut command = lookalike("pairs");
        command.arg(&documents).args(TRUTH).args(flags);
        command.args(["--quiet", "--threshold", "0.9", "--method", method]);
        let found = pairs_of(&command.succeed().lines(), "similarity");
        for (pair, similarity) in &found {
            let true_value = truth.get(pair).copied().unwrap_or(0.0);
            assert!((similarity - true_value).abs() < 1e-6, "{method} {pair:?}");
        }
        let share = found.len() as f64 / truth.len() as f64;
        assert!(share >= recall, "{method}: {share}");
    }
}

#[test]
fn a_table_of_terms_is_part_of_the_scheme() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[
            ("a", "one two three"),
            ("b", "one two four"),
            ("c", "five six seven"),
        ],
    );
    let table = |name: &str, flags: &[&str]| {
        let path = folder.path(name);
        lookalike("terms")
            .arg(&input)
            .arg("-o")
            .arg(&path)
            .args(flags)
            .succeed();
        path
    };
    let words = table("words", &["--shingle", "words:1"]);
    let again = table("again", &["--shingle", "words:1", "--threads", "1"]);
    assert_eq!(
        std::fs::read(&words).unwrap(),
        std::fs::read(&again).unwrap()
    );
    let fingerprints = |flags: &[&str], terms: &std::path::Path| {
        let mut command = lookalike("fingerprint");
        command
            .arg(&input)
            .args(["--json", "--weight", "idf", "--terms"]);
        command.arg(terms).args(flags).finish()
    };
    let finished = fingerprints(&["--shingle", "words:1"], &words);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    finished.says(&["weight=idf", "terms="]);
    // A table of other features, no table, a missing file, and a damaged one.
    let other = fingerprints(&["--shingle", "words:2"], &words);
    assert_eq!(other.status, Some(1));
    other.says(&["counts other features", "shingle (words:1 and words:2)"]);
    let none = lookalike("fingerprint")
        .arg(&input)
        .args(["--weight", "idf"])
        .fail(2);
    none.says(&["lookalike terms", "--terms FILE"]);
    let mut bytes = std::fs::read(&words).unwrap();
    bytes[40] ^= 1;
    let damaged = folder.add("damaged", bytes);
    fingerprints(&["--shingle", "words:1"], &damaged).says(&["damaged", "make it again"]);
    let method = ["--method", "i-match", "--threshold", "0.5"];
    lookalike("pairs")
        .arg(&input)
        .args(method)
        .fail(2)
        .says(&["--terms FILE"]);
}

#[test]
fn secret_keys_make_schemes_of_their_own() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "one two three four five six")]);
    let key = folder.add("key", "000102030405060708090a0b0c0d0e0f\n");
    let run = |flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        command
            .arg(&input)
            .args(["--json", "--hash"])
            .args(flags)
            .finish()
    };
    let secret = run(&["siphash", "--hash-key", key.to_str().unwrap()]);
    secret.says(&["hash=siphash-2-4:"]);
    assert!(!secret.err.contains("00010203"), "the key is secret");
    let jenkins = run(&["lookup3"]);
    jenkins.says(&["hash=lookup3"]);
    assert_ne!(secret.out, jenkins.out);
    let without = run(&["siphash"]);
    assert_eq!(without.status, Some(2));
    without.says(&["--hash-key FILE"]);
}

/// Phrases come from a table, which the scheme names; without it they are refused.
#[test]
fn phrases_come_from_the_collection() {
    let folder = Folder::new();
    let rows: Vec<(String, String)> = (0..40)
        .map(|at| {
            let place = if at < 4 { "new york" } else { "some place" };
            (
                format!("d{at:02}"),
                format!("a letter from {place} number{at} about nothing{at} at all"),
            )
        })
        .collect();
    let input = folder.records("in.jsonl", &rows);
    let table = folder.path("phrases.terms");
    let mut terms = lookalike("terms");
    terms
        .arg(&input)
        .args(["--shingle", "phrases:4", "--json", "-o"])
        .arg(&table);
    let told = terms.succeed();
    let scheme = told.json()["scheme"].as_str().unwrap().to_owned();
    assert!(scheme.contains("shingle=words:1+2"), "{scheme}");
    assert!(told.err.is_empty());
    let explained = |flags: &[&str]| {
        let mut command = lookalike("explain");
        command
            .args(["d01", "d02", "--json", "--shingle", "phrases:4", "--in"])
            .arg(&input);
        command.args(flags).finish()
    };
    let told = explained(&["--terms", table.to_str().unwrap()]).json();
    let shared = listed(&told, "shared_features");
    assert!(
        shared.contains(&"new york") && !shared.contains(&"new"),
        "{shared:?}"
    );
    assert!(
        told["scheme"]
            .as_str()
            .unwrap()
            .contains("shingle=phrases:4")
    );
    let refused = explained(&[]);
    assert_eq!(refused.status, Some(2));
    refused.says(&["--shingle phrases:4", "lookalike terms"]);
    let mut pairs = lookalike("pairs");
    pairs.arg(&input).args([
        "--shingle",
        "phrases:4",
        "--threshold",
        "0.6",
        "-q",
        "--terms",
    ]);
    let rows = pairs.arg(&table).succeed().lines();
    assert_eq!(rows.len(), 4 * 3 / 2 + 36 * 35 / 2);
}

#[test]
fn features_that_many_texts_have_propose_nothing_if_that_is_asked_for() {
    let folder = Folder::new();
    let mut numbers = Numbers(11);
    // Forty pages have the same template, and each has a copy that differs in one word. The features of the template distinguish nothing.
    let template = numbers.words(400, 5_000);
    let mut records = Vec::new();
    for number in 0..40 {
        let own = numbers.words(2_000, 100_000);
        records.push((format!("{number}-a"), format!("{template} {own}")));
        records.push((
            format!("{number}-b"),
            format!("{template} {own} end{number}"),
        ));
    }
    let input = folder.records("in.jsonl", &records);
    let run = |flags: &[&str]| {
        let all = [&["--method", "mod-p"], flags].concat();
        let results = folder.dedup(&input, &all);
        let compared = results.run["comparisons"]["compared"].as_u64().unwrap();
        (
            results.removed.len(),
            compared,
            results.count("counts", "stop_features"),
        )
    };
    let (removed, compared, stopped) = run(&[]);
    assert_eq!((removed, stopped), (40, 0));
    assert!(compared > 700, "{compared}");
    let (removed, compared, stopped) = run(&["--stop-features", "10"]);
    assert_eq!(removed, 40);
    assert!(compared < 80, "{compared}");
    assert!(stopped > 10, "{stopped}");
    // This loses a family that is larger than the bound, because all its features are common.
    let copies: Vec<(String, String)> = (0..20)
        .map(|number| (format!("{number}"), format!("{template} end{number}")))
        .collect();
    let family = folder.records("family.jsonl", &copies);
    let kept = |flags: &[&str]| {
        let all = [&["--method", "mod-p"], flags].concat();
        folder.dedup(&family, &all).kept.len()
    };
    assert_eq!((kept(&[]), kept(&["--stop-features", "19"])), (1, 20));
    for (flags, words) in [
        (
            &["--method", "minhash", "--stop-features", "9"][..],
            "mod-p",
        ),
        (
            &["--method", "mod-p", "--stop-features", "1"],
            "stop-features",
        ),
        (
            &[
                "--method",
                "mod-p",
                "--stop-features",
                "9",
                "--within",
                "site",
            ],
            "--within",
        ),
    ] {
        let mut command = lookalike("dedup");
        command
            .arg(&input)
            .args(flags)
            .arg("-o")
            .arg(folder.path("no"));
        command.fail(2).says(&[words]);
    }
}
