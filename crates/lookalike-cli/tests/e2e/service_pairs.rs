//! Categories and lengths in the service: its pairs are those of `lookalike pairs` for the same documents.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::scope::mixed;
use crate::serve::{Service, client};
use crate::support::{Finish as _, Folder, corpus, lookalike};

type IdPairs = BTreeSet<[String; 2]>;

/// Returns the pairs of the batch command within a distance, whatever their resemblance.
fn of_batch(documents: &Path, flags: &[&str]) -> IdPairs {
    let mut command = lookalike("pairs");
    command.arg(documents).args(flags).args([
        "--quiet",
        "--method",
        "simhash",
        "--distance",
        RADIUS,
        "--threshold",
        "0",
    ]);
    let rows = command.succeed().lines();
    let end = |row: &Value, end: &str| row[end].as_str().expect("an id").to_owned();
    rows.iter()
        .map(|row| [end(row, "a"), end(row, "b")])
        .collect()
}

const RADIUS: &str = "4";

/// Returns the pairs of the service, which are each document and its neighbours after all are inserted, and the documents without features, which are
/// copies of equal texts but have no other neighbours.
fn of_service(
    service: &Service,
    name: &str,
    documents: &Path,
    flags: &[&str],
) -> (IdPairs, BTreeSet<String>) {
    let path = documents.to_str().expect("a name");
    let words = [&["query", name, path, "--limit", "100000"][..], flags].concat();
    let (mut pairs, mut bare) = (IdPairs::new(), BTreeSet::new());
    for answer in client(service, &words).succeed().lines() {
        let id = answer["id"].as_str().expect("an id").to_owned();
        if answer["fingerprint"].is_null() {
            bare.insert(id);
            continue;
        }
        let near = answer["neighbours"].as_array().expect("a list");
        let others: Vec<&Value> = near.iter().filter(|near| near["id"] != *id).collect();
        // A document finds itself, unless only other categories are compared.
        if others.is_empty() && near.is_empty() {
            assert_eq!(answer["verdict"], "new", "{answer}");
        }
        for other in others {
            let mut pair = [id.clone(), other["id"].as_str().expect("an id").to_owned()];
            pair.sort();
            pairs.insert(pair);
        }
    }
    (pairs, bare)
}

/// Checks that the service finds the pairs of the batch command. Returns their number.
#[track_caller]
fn same(service: &Service, name: &str, documents: &Path, flags: &[&str], rule: &[&str]) -> usize {
    let (found, bare) = of_service(service, name, documents, flags);
    let mut expected = of_batch(documents, rule);
    expected.retain(|pair| !pair.iter().any(|id| bare.contains(id)));
    assert_eq!(found, expected, "{name} {flags:?} {rule:?}");
    expected.len()
}

fn compare(service: &Service, name: &str, documents: &Path, category: &str) -> usize {
    let path = documents.to_str().expect("a name");
    let mut found = 0;
    for (at, rule) in [
        &["--within", category][..],
        &["--across", category],
        &["--within", category, "--lengths", "0.9"],
        &["--lengths", "0.95"],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{name}{at}");
        let create = [&["create", &name, "--radius", RADIUS][..], rule].concat();
        client(service, &create).succeed();
        client(service, &["insert", &name, path]).succeed();
        found += same(service, &name, documents, &[], rule);
        if at == 0 {
            // The same collection also answers the other questions.
            for (flag, rule) in [("across", &["--across", category][..]), ("all", &[])] {
                same(service, &name, documents, &["--pairs", flag], rule);
            }
        }
        if rule.contains(&"--lengths") {
            let (flags, rest) = (["--lengths", "0"], &rule[..rule.len() - 2]);
            same(service, &name, documents, &flags, rest);
        }
    }
    found
}

#[test]
fn pairs_of_categories_and_lengths_are_those_of_the_batch() {
    let folder = Folder::new();
    let (documents, _) = mixed(&folder);
    let service = Service::start(&folder.path("data"), &[]);
    for category in ["site", "meta.lang"] {
        let name = category.replace('.', "-");
        assert!(compare(&service, &name, &documents, category) > 100);
    }
}

#[test]
fn pairs_of_public_collections_are_those_of_the_batch() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    for (set, category) in [
        ("java-api-html", "version"),
        ("de-laws-revisions", "law"),
        ("newsgroups20", "group"),
    ] {
        let Some(documents) = corpus(&format!("{set}/docs.jsonl.gz")) else {
            continue;
        };
        assert!(compare(&service, set, &documents, category) > 50, "{set}");
    }
}

#[test]
fn fingerprints_alone_are_refused_where_categories_or_lengths_are_compared() {
    let folder = Folder::new();
    let (documents, _) = mixed(&folder);
    let codes = folder.path("codes.lkfp");
    let out = codes.to_str().expect("a name");
    lookalike("fingerprint")
        .arg(&documents)
        .args(["-q", "-o", out])
        .succeed();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages", "--within", "site"]).succeed();
    client(&service, &["load", "pages", out])
        .fail(1)
        .says(&["compact form does not tell", "send JSON"]);
    service.stop();
    let data = folder.path("data");
    lookalike("store")
        .args(["load", data.to_str().expect("a name"), "pages", out])
        .fail(2)
        .says(&["which sketches do not have", "insert the documents"]);
}
