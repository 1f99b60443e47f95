//! Henzinger's combination with a distance that applies only to pairs of one site, compared with the two methods that it combines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::scope::{mixed, pairs, site};
use crate::support::{Finish, Folder, Pairs, lookalike};

/// Few shingles must agree and few bits may differ, so each test rejects some pairs.
const FLAGS: [&str; 8] = [
    "--method",
    "henzinger",
    "--distance",
    "2",
    "--equal",
    "1",
    "--shingle",
    "words:2",
];

fn with(flags: &[&'static str]) -> Vec<&'static str> {
    [&FLAGS[..], flags].concat()
}

/// Computes the results of the rule from the two methods that it combines.
fn expected(input: &Path, is_one_site: impl Fn(&str, &str) -> bool) -> (Pairs, Pairs, Pairs) {
    let shingles = pairs(
        input,
        &[
            "--method",
            "super-shingle",
            "--equal",
            "1",
            "--shingle",
            "words:2",
        ],
    );
    let both = pairs(input, &FLAGS);
    let rule = shingles
        .iter()
        .filter(|(pair, _)| both.contains_key(*pair) || !is_one_site(&pair.0, &pair.1));
    let rule = rule.map(|(pair, similarity)| (pair.clone(), *similarity));
    (rule.collect(), shingles.clone(), both)
}

#[test]
fn the_distance_counts_for_pairs_of_one_site() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let place = |id: &str| Some(site(&documents[id])).filter(|site| !site.is_empty());
    let is_one_site = |a: &str, b: &str| match (place(a), place(b)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let (rule, shingles, both) = expected(&input, is_one_site);
    let found = pairs(&input, &with(&["--distance-for", "site"]));
    assert_eq!(found, rule);
    assert!(both.len() < rule.len() && rule.len() < shingles.len());
    assert_eq!(pairs(&input, &with(&["--distance-for", "all"])), both);
    assert_eq!(
        pairs(
            &input,
            &with(&[
                "--distance-for",
                "site",
                "--threads",
                "1",
                "--memory",
                "64M"
            ])
        ),
        rule
    );
    // Records without a site are reported.
    let mut told = lookalike("pairs");
    told.arg(&input).args(with(&["--distance-for", "site"]));
    told.succeed()
        .says(&["records have no site: --distance applies to all their pairs"]);
    // Equal texts of two sites still count as copies, and every removal was verified.
    let results = folder.dedup(
        &input,
        &with(&["--distance-for", "site", "--threshold", "0.7"]),
    );
    assert_eq!(results.run["distance_for"], "site");
    let all = pairs(&input, &["--shingle", "words:2"]);
    let mut reasons = BTreeSet::new();
    for cluster in &results.clusters {
        let survivor = &cluster.survivor;
        for member in cluster
            .members
            .iter()
            .filter(|member| member.id != *survivor)
        {
            let id = &member.id;
            let pair = (id.min(survivor).clone(), id.max(survivor).clone());
            assert_eq!(Some(&member.similarity), all.get(&pair), "{pair:?}");
            let equal = documents[id]["text"] == documents[survivor]["text"];
            assert_eq!(member.exact, equal, "{pair:?}");
            reasons.insert(member.exact);
        }
    }
    assert_eq!(reasons.len(), 2);
    // No text is kept twice, on any site.
    let kept: Vec<&Value> = results
        .kept_ids()
        .iter()
        .map(|id| &documents[id]["text"])
        .collect();
    let different: BTreeSet<String> = kept.iter().map(|text| text.to_string()).collect();
    assert_eq!(kept.len(), different.len());
}

#[test]
fn explain_and_audit_know_the_rule() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let found = pairs(&input, &with(&["--distance-for", "site"]));
    let only_by_site: Vec<_> = {
        let both = pairs(&input, &FLAGS);
        found
            .keys()
            .filter(|pair| !both.contains_key(*pair))
            .take(3)
            .cloned()
            .collect()
    };
    assert!(!only_by_site.is_empty());
    for (a, b) in only_by_site {
        let explain = |flags: &[&'static str]| {
            let mut command = lookalike("explain");
            command
                .args([&a, &b])
                .args(with(flags))
                .args(["--threshold", "0.7", "--json", "--in"]);
            command.arg(&input).succeed().json()
        };
        let told = explain(&["--distance-for", "site"]);
        assert_eq!(told["found"]["found"], true, "{told}");
        let because = told["found"]["because"].as_str().unwrap();
        assert!(because.contains("their sites differ"), "{because}");
        let plain = explain(&[]);
        assert_eq!(plain["found"]["found"], false);
        let chance = |told: &Value| told["found"]["chance"].as_f64().unwrap();
        assert!(chance(&plain) < chance(&told));
    }
    // A sample of all documents counts every pair twice. Texts without words are not compared by any method. Of documents with equal text the one
    // with the smallest id counts, on its site.
    let mut audit = lookalike("evaluate");
    audit
        .arg("audit")
        .arg(&input)
        .args(with(&["--distance-for", "site"]));
    audit.args([
        "--threshold",
        "0.7",
        "--sample",
        "1000",
        "--json",
        "--quiet",
    ]);
    let report = audit.succeed().json();
    let mut first = BTreeMap::new();
    for (id, document) in &documents {
        first.entry(document["text"].to_string()).or_insert(id);
    }
    let counts = |id: &String| first[&documents[id]["text"].to_string()] == id;
    let different = found.keys().filter(|(a, b)| counts(a) && counts(b)).count();
    assert_eq!(report["found"], different);
}

#[test]
fn the_rule_is_refused_where_it_has_no_meaning() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    for (flags, words) in [
        (vec!["--distance-for", "site"], "--method henzinger"),
        (
            vec!["--distance-for", "site", "--method", "super-shingle"],
            "--method henzinger",
        ),
        (
            with(&["--distance-for", "site", "--within", "site"]),
            "--within",
        ),
        (
            with(&["--distance-for", "site", "--across", "meta.lang"]),
            "--across",
        ),
        (with(&["--distance-for", "host"]), "all or site"),
    ] {
        lookalike("pairs")
            .arg(&input)
            .args(flags)
            .fail(2)
            .says(&[words]);
    }
    let mut audit = lookalike("evaluate");
    audit
        .arg("audit")
        .arg(&input)
        .args(["--method", "simhash", "--distance-for", "site"]);
    audit.fail(2).says(&["--method henzinger"]);
}

#[test]
fn equal_texts_of_two_sites_were_true_pairs_of_an_audit() {
    let folder = Folder::new();
    let text = |changed: usize| {
        let words = (0..60).map(|at| format!("{}{at} ", if at == changed { 'x' } else { 'w' }));
        words.collect::<String>()
    };
    let line = |id: &str, host: &str, changed| {
        let url = format!("http://{host}.example/{id}");
        json!({"id": id, "url": url, "text": text(changed)}).to_string() + "\n"
    };
    let lines = [
        line("1", "a", 99),
        line("2", "b", 99),
        line("3", "a", 30),
        line("4", "b", 31),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    for options in [&[][..], &["--distance-for", "site"]] {
        let mut audit = lookalike("evaluate");
        audit
            .arg("audit")
            .arg(&input)
            .args(["--method", "henzinger", "--json"]);
        let report = audit.args(options).succeed().json();
        // Of three texts each two are near-duplicates.
        assert_eq!(
            (&report["copies"], &report["true_pairs"]),
            (&json!(1), &json!(3)),
            "{options:?}"
        );
    }
}
