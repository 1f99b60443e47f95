//! Super-shingles, minima and fingerprints of other widths in the service: neighbours are the pairs of `lookalike join` for the same documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::scope::mixed;
use crate::serve::{Service, client};
use crate::support::{Finish as _, Folder, contents, corpus, json_lines, lookalike, path};

type IdPairs = BTreeSet<[String; 2]>;

/// Sketches, with the number of equal or of different bits allowed, and the field of their digits.
const SKETCHES: [[&str; 3]; 4] = [
    ["super-shingle:6x14", "2", "super_shingles"],
    ["minhash:64", "0.8", "signature"],
    ["simhash:128", "7", "fingerprint"],
    ["simhash:32", "2", "fingerprint"],
];

fn pair(a: &str, b: &str) -> [String; 2] {
    let mut pair = [a.to_owned(), b.to_owned()];
    pair.sort();
    pair
}

/// Returns the sketches that the command makes, by id, and the pairs that it joins.
fn of_batch(
    folder: &Folder,
    documents: &Path,
    [sketch, equal, field]: [&str; 3],
) -> (BTreeMap<String, Value>, IdPairs) {
    let out = folder.path("sketches.jsonl");
    lookalike("fingerprint")
        .arg(documents)
        .args(["--sketch", sketch, "-q", "-o", path(&out)])
        .succeed();
    let rows = json_lines(&contents(&out));
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    let sketches: BTreeMap<String, Value> = rows
        .iter()
        .map(|row| (id(row), row[field].clone()))
        .collect();
    // A join names only one of the documents with equal sketches.
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, sketch) in &sketches {
        if let Some(digits) = sketch.as_str() {
            classes.entry(digits).or_default().push(id);
        }
    }
    let mut pairs = IdPairs::new();
    for members in classes.values() {
        for (at, a) in members.iter().enumerate() {
            pairs.extend(members[at + 1..].iter().map(|b| pair(a, b)));
        }
    }
    let class = |id: &Value| &classes[sketches[id.as_str().unwrap()].as_str().unwrap()];
    let condition = if field == "fingerprint" {
        "--distance"
    } else {
        "--equal"
    };
    let joined = lookalike("join")
        .args([path(&out), condition, equal, "-q"])
        .succeed()
        .lines();
    for row in &joined {
        for a in class(&row["a"]) {
            let others = class(&row["b"]).iter().filter(|b| *b != a);
            pairs.extend(others.map(|b| pair(a, b)));
        }
    }
    (sketches, pairs)
}

/// Returns the pairs of each document and its neighbours, after all are inserted.
fn of_service(service: &Service, name: &str, documents: &Path) -> IdPairs {
    let words = ["query", name, path(documents), "--limit", "100000"];
    let mut pairs = IdPairs::new();
    for answer in client(service, &words).succeed().lines() {
        // A text without features has no sketch, so the batch command does not join it; its only neighbour is the document that it copies.
        if answer.get("fingerprint") == Some(&Value::Null) {
            continue;
        }
        let id = answer["id"].as_str().unwrap();
        let near = answer["neighbours"].as_array().unwrap();
        let near = near.iter().map(|near| near["id"].as_str().unwrap());
        pairs.extend(
            near.filter(|other| *other != id)
                .map(|other| pair(id, other)),
        );
    }
    pairs
}

/// Returns the sketches that a collection exports, by id.
fn exported(service: &Service, name: &str, field: &str) -> BTreeMap<String, Value> {
    let rows = client(service, &["export", name]).succeed().lines();
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| (id(row), row[field].clone()))
        .collect()
}

fn create(
    service: &Service,
    name: &str,
    [sketch, equal, field]: [&str; 3],
    further: &[&str],
) -> Value {
    let condition = if field == "fingerprint" {
        "--radius"
    } else {
        "--equal"
    };
    let words = [
        "create", name, "--quiet", "--sketch", sketch, condition, equal,
    ];
    client(service, &[&words[..], further].concat())
        .succeed()
        .json()
}

#[test]
fn neighbours_of_public_collections_are_the_pairs_of_the_batch_also_after_a_kill() {
    let folder = Folder::new();
    let data = folder.path("data");
    let (mixed, _) = mixed(&folder);
    let sets = [
        Some(mixed),
        corpus("java-api-html/docs.jsonl.gz"),
        corpus("de-laws-revisions/docs.jsonl.gz"),
        corpus("newsgroups20/docs.jsonl.gz"),
    ];
    let mut service = Service::start(&data, &["--max-body", "64M"]);
    for (at, documents) in sets.into_iter().flatten().enumerate() {
        // Each sketch is tested with two corpora, and each corpus with two sketches.
        for (number, sketch) in SKETCHES.into_iter().enumerate().skip(at % 2).step_by(2) {
            let name = format!("pages{at}-{number}");
            let (sketches, pairs) = of_batch(&folder, &documents, sketch);
            assert!(pairs.len() > 20, "{documents:?}");
            create(&service, &name, sketch, &[]);
            client(&service, &["insert", &name, path(&documents)]).succeed();
            assert_eq!(exported(&service, &name, sketch[2]), sketches);
            // Query first in memory, with documents read from the log, then in one run.
            service.kill();
            service = Service::start(&data, &["--max-body", "64M"]);
            assert!(
                of_service(&service, &name, &documents) == pairs,
                "{documents:?} {sketch:?}"
            );
            client(&service, &["compact", &name]).succeed();
            while client(&service, &["show", &name]).succeed().json()["compacting"] == true {}
            assert!(
                of_service(&service, &name, &documents) == pairs,
                "{documents:?} {sketch:?}"
            );
            service.kill();
            service = Service::start(&data, &["--max-body", "64M"]);
            assert!(
                of_service(&service, &name, &documents) == pairs,
                "{documents:?} {sketch:?}"
            );
        }
    }
    service.stop();
    lookalike("store").args(["verify", path(&data)]).succeed();
}

#[test]
fn a_collection_of_fingerprints_is_sketched_anew_as_super_shingles_and_back() {
    let folder = Folder::new();
    let (documents, _) = mixed(&folder);
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages", "--keep", "texts", "--quiet"]).succeed();
    client(&service, &["insert", "pages", path(&documents)]).succeed();
    let before = exported(&service, "pages", "fingerprint");
    let [sketch, equal, field] = SKETCHES[0];
    let words = [
        "resketch", "pages", "--sketch", sketch, "--equal", equal, "--wait",
    ];
    let shown = client(&service, &words).succeed().json();
    assert_eq!((&shown["equal"], shown.get("radius")), (&json!(2), None));
    let (sketches, pairs) = of_batch(&folder, &documents, SKETCHES[0]);
    assert_eq!(exported(&service, "pages", field), sketches);
    assert!(of_service(&service, "pages", &documents) == pairs);
    // A smaller distance is requested with the same option.
    let narrow = ["check", "pages", path(&documents), "--equal", "6"];
    client(&service, &narrow).succeed();
    let back = ["resketch", "pages", "--sketch", "simhash:64", "--wait"];
    let shown = client(&service, &back).succeed().json();
    assert_eq!(shown["radius"], 3);
    assert_eq!(exported(&service, "pages", "fingerprint"), before);
}

#[test]
fn paragraphs_beside_other_sketches_had_a_radius_that_nobody_chose() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    let keep = ["--keep", "texts,paragraphs"];
    let [sketch, equal, _] = SKETCHES[0];
    let sketch = ["--sketch", sketch, "--equal", equal];
    let warning = ["always up to 3 bits", "--sketch simhash:64", "--radius"];
    let words = [&["create", "a"][..], &keep, &sketch].concat();
    client(&service, &words).succeed().says(&warning);
    let quiet = [&["create", "b", "--quiet"][..], &keep, &sketch].concat();
    assert_eq!(client(&service, &quiet).succeed().err, "");
    let fingerprints = [&["create", "c", "--radius", "10"][..], &keep].concat();
    let told = client(&service, &fingerprints).succeed().err;
    assert!(!told.contains(warning[0]), "{told}");
    let words = [&["resketch", "c", "--wait"][..], &sketch].concat();
    client(&service, &words).succeed().says(&warning);
}

#[test]
fn what_super_shingles_have_no_use_for_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let documents = folder.records(
        "docs.jsonl",
        &[("a", "one two three"), ("b", "two three four")],
    );
    let service = Service::start(&folder.path("data"), &[]);
    client(
        &service,
        &["create", "pages", "--sketch", "super-shingle:6x14"],
    )
    .fail(1)
    .says(&["how many of the 6 super-shingles", "--equal NUMBER"]);
    client(&service, &["create", "pages", "--equal", "2"])
        .fail(1)
        .says(&["holds fingerprints", "`radius`"]);
    client(&service, &["create", "pages", "--equal", "two"])
        .fail(2)
        .says(&["not a number of equal places"]);
    create(&service, "pages", SKETCHES[0], &["--keep", "texts"]);
    client(
        &service,
        &["check", "pages", path(&documents), "--radius", "3"],
    )
    .fail(1)
    .says(&["bits of fingerprints", "`equal`"]);
    let codes = folder.path("codes.lkfp");
    lookalike("fingerprint")
        .arg(&documents)
        .args(["-q", "-o", path(&codes)])
        .succeed();
    client(&service, &["load", "pages", path(&codes)])
        .fail(1)
        .says(&["holds fingerprints", "--sketch super-shingle:6x14"]);
    service.stop();
    let data = folder.path("data");
    lookalike("store")
        .args(["load", path(&data), "pages", path(&codes)])
        .fail(1)
        .says(&["holds fingerprints", "--sketch super-shingle:6x14"]);
    let load = |name: &str, flags: &[&str], words: &[&str]| {
        let mut command = lookalike("store");
        command.args(["load", path(&data), name, path(&codes)]);
        command.args(flags).fail(2).says(words);
    };
    load("new", &["--sketch", "minhash:9"], &["--equal NUMBER"]);
    load(
        "new",
        &["--equal", "2"],
        &["holds fingerprints", "--radius"],
    );
    load(
        "new",
        &["--sketch", "minhash:9", "--equal", "10"],
        &["more than the 9 minima"],
    );
    load("new", &["--sketch", "mod-p:8"], &["no file holds mod-p:8"]);
    load(
        "pages",
        &["--equal", "3"],
        &["--equal has no effect", "at least 2 equal"],
    );
    load(
        "pages",
        &["--sketch", "simhash:64"],
        &["--sketch has no effect", "another scheme"],
    );
}

#[test]
fn files_of_sketches_that_are_loaded_find_what_inserted_documents_find() {
    let folder = Folder::new();
    let (documents, _) = mixed(&folder);
    let data = folder.path("data");
    let mut service = Service::start(&data, &["--max-body", "64M"]);
    let all = [&SKETCHES[..], &[["simhash:64", "3", "fingerprint"]]].concat();
    let mut expected = Vec::new();
    for (number, sketch) in all.iter().enumerate() {
        let file = folder.path(format!("{number}.lkfp"));
        lookalike("fingerprint")
            .arg(&documents)
            .args(["--sketch", sketch[0], "-q", "-o", path(&file)])
            .succeed();
        let (inserted, loaded) = (format!("inserted{number}"), format!("loaded{number}"));
        create(&service, &inserted, *sketch, &[]);
        create(&service, &loaded, *sketch, &[]);
        client(&service, &["insert", &inserted, path(&documents)]).succeed();
        let load = ["load", &loaded, path(&file), "--batch", "7"];
        let told = client(&service, &load).succeed().json();
        // Texts without features have no sketch, so they are not in the file.
        let mut sketches = exported(&service, &inserted, sketch[2]);
        sketches.retain(|_, sketch| !sketch.is_null());
        assert_eq!(
            (&told["loaded"], &told["replaced"]),
            (&json!(sketches.len()), &json!(0))
        );
        assert!(
            exported(&service, &loaded, sketch[2]) == sketches,
            "{sketch:?}"
        );
        let pairs = of_service(&service, &inserted, &documents);
        assert!(pairs.len() > 20 && of_service(&service, &loaded, &documents) == pairs);
        let again = client(&service, &load).succeed().json();
        assert_eq!(again["replaced"], again["loaded"]);
        expected.push((sketches, pairs));
    }
    service.stop();
    // Load the same files into the directory of a stopped service.
    for (number, [sketch, nearness, field]) in all.iter().enumerate() {
        let condition = if *field == "fingerprint" {
            "--radius"
        } else {
            "--equal"
        };
        let (file, name) = (
            folder.path(format!("{number}.lkfp")),
            format!("stored{number}"),
        );
        let mut load = lookalike("store");
        load.args(["load", path(&data), &name, path(&file)]);
        load.args(["--sketch", sketch, condition, nearness]);
        let told = load.succeed().json();
        assert_eq!(told["documents"], expected[number].0.len());
        // Load into a collection that exists.
        let told = lookalike("store")
            .args(["load", path(&data), &name, path(&file)])
            .succeed()
            .json();
        assert_eq!(told["replaced"], expected[number].0.len());
    }
    service = Service::start(&data, &["--max-body", "64M"]);
    for (number, sketch) in all.iter().enumerate() {
        let name = format!("stored{number}");
        let (sketches, pairs) = &expected[number];
        assert!(
            exported(&service, &name, sketch[2]) == *sketches,
            "{sketch:?}"
        );
        assert!(
            of_service(&service, &name, &documents) == *pairs,
            "{sketch:?}"
        );
    }
    service.stop();
}
