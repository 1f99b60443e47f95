//! `cluster`: compared with brute force over all pairs of a real corpus, with every kind of input, and with invalid input.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use lookalike_hamming::{FingerprintWriter, SketchWords};
use serde_json::{Value, json};

use crate::scope::mixed;
use crate::support::{
    Finish, Finished, Folder, STORY, SmallDisk, corpus, interrupt, json_lines, lookalike, pairs_of,
};

const RESULTS: [&str; 3] = ["kept.jsonl", "removed.jsonl", "clusters.jsonl"];

/// The id and fingerprint of a document; lists of documents are in the order of the file.
struct Document {
    id: String,
    fingerprint: u64,
}

/// Reads the output of `fingerprint`. Returns the documents, and the number of documents without a fingerprint.
fn documents(lines: &[Value]) -> (Vec<Document>, usize) {
    let read = |line: &Value| {
        let fingerprint = u64::from_str_radix(line["fingerprint"].as_str()?, 16).unwrap();
        let id = line["id"].as_str().unwrap().to_owned();
        Some(Document { id, fingerprint })
    };
    let all: Vec<Document> = lines.iter().filter_map(read).collect();
    let without = lines.len() - all.len();
    (all, without)
}

/// The survivor of each removed document, and the distance between them.
type Removals = BTreeMap<String, (String, Option<u64>)>;

/// Groups documents with equal fingerprints, in the order of their first documents in the file.
fn classes(documents: &[Document]) -> Vec<Vec<&Document>> {
    let (mut classes, mut known) = (Vec::<Vec<&Document>>::new(), HashMap::new());
    for document in documents {
        let next = classes.len();
        let class = *known.entry(document.fingerprint).or_insert(next);
        if class == next {
            classes.push(Vec::new());
        }
        classes[class].push(document);
    }
    classes
}

/// Decides by comparing all documents: each goes to the closest survivor before it.
fn recount(documents: &[Document], distance: u32) -> Removals {
    let (mut removed, mut survivors) = (Removals::new(), Vec::<&Document>::new());
    for class in classes(documents) {
        let best = class[0];
        let apart = |other: &Document| (other.fingerprint ^ best.fingerprint).count_ones();
        // Takes the first of the closest survivors.
        let closest = survivors.iter().min_by_key(|survivor| apart(survivor));
        let (survivor, bits, members) = match closest.filter(|closest| apart(closest) <= distance) {
            Some(closest) => (closest.id.clone(), apart(closest), &class[..]),
            None => {
                survivors.push(best);
                (best.id.clone(), 0, &class[1..])
            }
        };
        for member in members {
            removed.insert(member.id.clone(), (survivor.clone(), Some(u64::from(bits))));
        }
    }
    removed
}

/// Keeps one document of each connected component, which is found by visiting neighbours of neighbours.
fn recount_components(documents: &[Document], distance: u32) -> Removals {
    let classes = classes(documents);
    let mut removed = Removals::new();
    let mut seen = vec![false; classes.len()];
    for first in 0..classes.len() {
        let mut waiting = vec![first];
        while let Some(at) = waiting.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            for member in &classes[at] {
                let survivor = classes[first][0].id.clone();
                if member.id != survivor {
                    let bits = (at == first).then_some(0);
                    removed.insert(member.id.clone(), (survivor, bits));
                }
            }
            let fingerprint = classes[at][0].fingerprint;
            waiting.extend((0..classes.len()).filter(|&other| {
                !seen[other]
                    && (classes[other][0].fingerprint ^ fingerprint).count_ones() <= distance
            }));
        }
    }
    removed
}

/// Reads the removals that the command wrote.
fn removals(folder: &Path) -> Removals {
    let mut removed = Removals::new();
    for cluster in json_lines(&fs::read(folder.join("clusters.jsonl")).unwrap()) {
        let survivor = cluster["survivor"].as_str().unwrap();
        for member in cluster["members"].as_array().unwrap() {
            let (id, distance) = (member["id"].as_str().unwrap(), member["distance"].as_u64());
            let reason = match distance {
                Some(0) => "same-fingerprint",
                Some(_) => "near",
                None => "connected",
            };
            assert_eq!(member["reason"], reason);
            let before = removed.insert(id.to_owned(), (survivor.to_owned(), distance));
            assert!(before.is_none(), "{id} twice");
        }
    }
    removed
}

fn ids(path: &Path) -> Vec<String> {
    let lines = json_lines(&fs::read(path).unwrap());
    let id = |line: &Value| line["id"].as_str().unwrap().to_owned();
    lines.iter().map(id).collect()
}

#[track_caller]
fn cluster(inputs: &[&Path], flags: &[&str], output: &Path) -> Finished {
    let mut command = lookalike("cluster");
    command.args(inputs).args(flags).arg("-o").arg(output);
    command.succeed()
}

fn results(folder: &Path) -> [Vec<u8>; 3] {
    RESULTS.map(|name| fs::read(folder.join(name)).unwrap())
}

/// Writes the fingerprints of a real corpus of news; features are words, weighted by their counts.
fn news(folder: &Folder, output: &str) -> Option<PathBuf> {
    let path = folder.path(output);
    let mut command = lookalike("fingerprint");
    command.arg(corpus("reuters21578/docs.jsonl.gz")?);
    command.args(["--shingle", "words:1", "--weight", "tf", "--quiet", "-o"]);
    command.arg(&path).succeed();
    Some(path)
}

#[test]
fn a_corpus_is_decided_as_a_recount_of_all_pairs_decides() {
    let folder = Folder::new();
    let Some(all) = news(&folder, "news.jsonl") else {
        return;
    };
    let lines = folder.first_records(&all, 4000);
    let (documents, without) = documents(&json_lines(&fs::read(&lines).unwrap()));
    for distance in [3, 6] {
        let out = folder.path(format!("out-{distance}"));
        let bits = distance.to_string();
        let summary = cluster(&[&lines], &["--distance", &bits, "--json"], &out).json();
        let expected = recount(&documents, distance);
        assert!(expected.len() > 100, "{}", expected.len());
        assert_eq!(removals(&out), expected);
        let (kept, removed): (Vec<&Document>, Vec<&Document>) =
            (documents.iter()).partition(|document| !expected.contains_key(&document.id));
        let names = |some: Vec<&Document>| {
            some.iter()
                .map(|document| document.id.clone())
                .collect::<Vec<_>>()
        };
        let counts = [documents.len(), without, kept.len()];
        assert_eq!(ids(&out.join("kept.jsonl")), names(kept));
        assert_eq!(ids(&out.join("removed.jsonl")), names(removed));
        assert_eq!(summary["counts"]["documents"], counts[0]);
        assert_eq!(summary["counts"]["without_features"], counts[1]);
        assert_eq!(summary["decisions"]["kept"], counts[2]);
        assert_eq!(summary["verified"], false);
        assert_eq!(summary["compared"], true);
        let out = folder.path(format!("components-{distance}"));
        let summary = cluster(
            &[&lines],
            &["--components", "--distance", &bits, "--json"],
            &out,
        )
        .json();
        let connected = recount_components(&documents, distance);
        assert_eq!(removals(&out), connected);
        assert!(connected.len() >= expected.len(), "chains remove more");
        assert_eq!(summary["compared"], false);
    }
}

#[test]
fn a_corpus_gives_the_same_bytes_from_every_format_from_pairs_and_with_little_memory() {
    let folder = Folder::new();
    let Some(lines) = news(&folder, "news.jsonl") else {
        return;
    };
    let pairs = folder.path("pairs.jsonl.zst");
    let mut join = lookalike("join");
    join.arg(&lines).args(["--distance", "6", "--quiet", "-o"]);
    join.arg(&pairs).succeed();
    let file = folder.path("news.lkfp");
    let mut import = lookalike("fingerprint");
    import.arg("--import").arg(&lines).args(["--quiet", "-o"]);
    import.arg(&file).succeed();
    let straight = folder.path("straight");
    cluster(&[&lines], &["--distance", "6"], &straight);
    let listed = ["--pairs", pairs.to_str().unwrap()];
    for (name, input, flags) in [
        ("file", &file, &["--distance", "6", "--threads", "1"][..]),
        ("memory", &file, &["--distance", "6", "--memory", "48M"]),
        ("pairs", &file, &listed[..]),
        ("lines", &lines, &listed[..]),
    ] {
        let out = folder.path(name);
        cluster(&[input], flags, &out);
        assert!(results(&out) == results(&straight), "{name}");
    }
}

/// Returns a fingerprint file with texts as ids.
fn file(documents: &[(&str, u64)], scheme: u64) -> Vec<u8> {
    let mut writer =
        FingerprintWriter::new(Vec::new(), scheme, SketchWords::FINGERPRINT, true).unwrap();
    for (id, fingerprint) in documents {
        writer.push_sketch(&[*fingerprint], id).unwrap();
    }
    writer.finish().unwrap()
}

/// A chain in which neighbours differ in three bits, a copy of its first document, and a document far from all.
const CHAIN: [(&str, u64); 5] = [
    ("c", 0),
    ("b", 0b111),
    ("a", 0b11_1111),
    ("copy", 0),
    ("far", u64::MAX),
];

#[test]
fn stars_do_not_drift_and_components_do() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let stars = folder.path("stars");
    let finished = cluster(&[&chain], &[], &stars);
    finished.says(&[
        "5 documents",
        "2 within 3 bits",
        "1 removed, each with the fingerprint of a kept one",
        "1 removed, each within the distance of a kept one",
        "3 (60.0%)",
        "fingerprints decided, no text was compared",
    ]);
    let clusters = json_lines(&fs::read(stars.join("clusters.jsonl")).unwrap());
    let expected = json!({"cluster": 1, "survivor": "c", "members": [
        {"id": "b", "distance": 3, "reason": "near"},
        {"id": "copy", "distance": 0, "reason": "same-fingerprint"},
    ]});
    assert_eq!(clusters, [expected]);
    assert_eq!(ids(&stars.join("kept.jsonl")), ["c", "a", "far"]);
    assert_eq!(ids(&stars.join("removed.jsonl")), ["b", "copy"]);
    let summary: Value =
        serde_json::from_slice(&fs::read(stars.join("run.json")).unwrap()).unwrap();
    assert_eq!(summary["rule"], "stars");
    assert_eq!(summary["keep"], "first");
    assert_eq!(
        summary["decisions"]["largest_cluster"],
        json!({"survivor": "c", "removed": 2})
    );
    assert!(!stars.join(".lookalike").exists());

    let components = folder.path("components");
    let finished = cluster(&[&chain], &["--components"], &components);
    finished.says(&[
        "2 removed, each connected to a kept one by a chain of pairs, not compared with it",
    ]);
    let clusters = json_lines(&fs::read(components.join("clusters.jsonl")).unwrap());
    let expected = json!({"cluster": 1, "survivor": "c", "members": [
        {"id": "b", "reason": "connected"},
        {"id": "a", "reason": "connected"},
        {"id": "copy", "distance": 0, "reason": "same-fingerprint"},
    ]});
    assert_eq!(clusters, [expected]);

    // Keep the smallest id, then the last document.
    for (keep, kept) in [
        ("id", &["c", "a", "far"][..]),
        ("last", &["a", "copy", "far"]),
    ] {
        let out = folder.path(keep);
        cluster(&[&chain], &["--keep", keep], &out);
        assert_eq!(ids(&out.join("kept.jsonl")), kept, "{keep}");
    }
}

#[test]
fn results_are_replaced_only_if_that_is_asked_for() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let out = folder.path("out");
    cluster(&[&chain], &[], &out);
    let before = results(&out);
    let mut again = lookalike("cluster");
    again.arg(&chain).arg("-o").arg(&out);
    again
        .fail(1)
        .says(&["already holds results (kept.jsonl)", "--overwrite"]);
    assert_eq!(results(&out), before);
    cluster(&[&chain], &["--overwrite", "--distance", "0"], &out);
    assert_eq!(ids(&out.join("removed.jsonl")), ["copy"]);
    // A job that fails leaves earlier results alone, and leaves nothing of its own.
    let pairs = folder.add(
        "pairs.jsonl",
        "{\"a\":\"nobody\",\"b\":\"c\",\"distance\":1}\n",
    );
    let mut failing = lookalike("cluster");
    failing.arg(&chain).arg("--pairs").arg(&pairs);
    failing.arg("--overwrite").arg("-o").arg(&out).fail(1);
    assert_eq!(ids(&out.join("removed.jsonl")), ["copy"]);
    let names = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 4, "three results and run.json");
    let mut fresh = lookalike("cluster");
    fresh.arg(&chain).arg("--pairs").arg(&pairs);
    fresh.arg("-o").arg(folder.path("fresh")).fail(1);
    assert!(!folder.path("fresh").exists());
}

#[test]
fn pairs_that_do_not_fit_are_refused_with_their_place() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let line = |a: &str, b: &str, distance: u32| {
        format!("{}\n", json!({"a": a, "b": b, "distance": distance}))
    };
    let good = line("b", "c", 3);
    for (name, second, flags, words) in [
        (
            "gone",
            line("b", "gone", 1),
            &[][..],
            &["\"gone\"", "in none of the files", "1 such"][..],
        ),
        (
            "other",
            line("a", "b", 2),
            &[],
            &[
                "\"a\" and \"b\"",
                "the distance 2 in the pairs and 3 in the files",
            ],
        ),
        (
            "equal",
            line("copy", "b", 0),
            &[],
            &["the distance 0 in the pairs and 3 in the files"],
        ),
        (
            "beyond",
            line("a", "b", 3),
            &["--distance", "2"],
            &["beyond.jsonl, line 1", "more than 2"],
        ),
        (
            "itself",
            line("a", "a", 3),
            &[],
            &[
                "itself.jsonl, line 2",
                "\"a\"",
                "one id for different documents",
            ],
        ),
        (
            "columns",
            "{\"x\":\"a\",\"y\":\"b\",\"distance\":3}\n".into(),
            &[],
            &["columns.jsonl, line 2", "neither a and b nor f and q"],
        ),
        (
            "similar",
            "{\"a\":\"a\",\"b\":\"b\",\"similarity\":0.9}\n".into(),
            &[],
            &["similar.jsonl, line 2", "--components"],
        ),
        (
            "table",
            "a\tb\t3\n".into(),
            &[],
            &["table.jsonl, line 2", "lookalike join"],
        ),
    ] {
        let pairs = folder.add(format!("{name}.jsonl"), format!("{good}{second}"));
        let mut command = lookalike("cluster");
        command.arg(&chain).arg("--pairs").arg(&pairs).args(flags);
        let out = folder.path(format!("{name}-out"));
        command.arg("-o").arg(&out).fail(1).says(words);
        assert!(!out.exists(), "{name}");
    }
    let twice = folder.add("twice.lkfp", file(&[("b", 7), ("c", 0), ("c", 0)], 7));
    let pairs = folder.add("pairs.jsonl", &good);
    let mut command = lookalike("cluster");
    command.arg(&twice).arg("--pairs").arg(&pairs).arg("-o");
    command
        .arg(folder.path("twice"))
        .fail(1)
        .says(&["\"c\"", "more than once"]);
}

#[test]
fn files_that_do_not_go_together_and_wishes_that_cannot_be_met_are_refused() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let foreign = folder.add("foreign.lkfp", file(&[("x", 1)], 8));
    let bare = folder.add("bare.u64", [0; 16]);
    // A kept and a removed document would have the same id.
    for (name, documents) in [
        ("near", [("x", 0), ("x", 1), ("y", u64::MAX)]),
        ("far", [("x", u64::MAX), ("x", 0), ("y", 1)]),
        ("last", [("y", 1), ("x", 0), ("x", u64::MAX)]),
    ] {
        let twice = folder.add(format!("{name}.lkfp"), file(&documents, 7));
        let mut command = lookalike("cluster");
        command.arg(&twice).arg("-o").arg(folder.path("twice"));
        command.fail(1).says(&["\"x\"", "more than once"]);
    }
    let pairs = folder.add("pairs.jsonl", "{\"a\":\"b\",\"b\":\"c\",\"distance\":3}\n");
    let out = folder.path("out");
    let refused = |inputs: &[&Path], flags: &[&str], status: i32, words: &[&str]| {
        let mut command = lookalike("cluster");
        command.args(inputs).args(flags).arg("-o").arg(&out);
        command.fail(status).says(words);
        assert!(!out.exists());
    };
    refused(
        &[&chain, &foreign],
        &[],
        1,
        &["cannot be compared", "chain.lkfp", "foreign.lkfp"],
    );
    refused(
        &[&chain, &bare],
        &[],
        1,
        &["bare.u64", "some fingerprints have ids"],
    );
    refused(
        &[&pairs],
        &[],
        1,
        &["pairs.jsonl", "no line of the file is a fingerprint"],
    );
    refused(&[Path::new("-")], &[], 2, &["read more than once"]);
    refused(&[&chain], &["--distance", "17"], 2, &["17", "16 bits"]);
    refused(
        &[&chain],
        &["--keep", "longest"],
        2,
        &["longest", "first, last or id"],
    );
    refused(
        &[],
        &["--pairs", pairs.to_str().unwrap(), "--keep", "first"],
        2,
        &["an order of documents, and pairs have none"],
    );
    refused(&[], &[], 2, &["INPUT"]);
    refused(
        &[&folder.path("none.lkfp")],
        &[],
        1,
        &["none.lkfp", "check the path"],
    );
    let many = folder.add("many.u64", vec![1; 8 << 20]);
    refused(
        &[&many],
        &["--memory", "34M"],
        1,
        &[
            "do not fit in 34 MiB",
            "raise --memory",
            "each of --threads",
        ],
    );
}

/// Regression test: the folder of the results was named.
#[test]
fn a_full_folder_for_temporary_files_is_named_while_clusters_are_arranged() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("small"), 2) else {
        return;
    };
    // Lines of members take some 14 MB, of which a few wait in memory.
    let line = |at| format!("{{\"id\":\"d{at:07}\",\"fingerprint\":\"0123456789abcdef\"}}\n");
    let input = folder.add("one.jsonl", (0..200_000).map(line).collect::<String>());
    let mut job = lookalike("cluster");
    job.arg(&input).arg("-o").arg(folder.path("out"));
    job.args(["--memory", "48M", "--threads", "1", "--tmp"])
        .arg(disk.path());
    let refused = job.fail(1);
    let place = disk.path().to_str().unwrap();
    refused.says(&[place, "temporary files are stored there"]);
    assert!(
        !refused.err.contains("results are written there"),
        "{}",
        refused.err
    );
}

#[test]
fn removals_of_a_corpus_are_verified_with_the_similarity_that_dedup_gives() {
    let folder = Folder::new();
    let (Some(lines), Some(texts)) = (
        news(&folder, "news.jsonl"),
        corpus("reuters21578/docs.jsonl.gz"),
    ) else {
        return;
    };
    let texts = texts.to_str().unwrap();
    let plain = folder.path("plain");
    cluster(&[&lines], &["--distance", "6"], &plain);
    let out = folder.path("verified");
    let flags = [
        "--distance",
        "6",
        "--verify",
        texts,
        "--threshold",
        "0.5",
        "--json",
    ];
    let summary = cluster(&[&lines], &flags, &out).json();
    // The exact resemblances of all pairs from 0.5 on.
    let mut pairs = lookalike("pairs");
    let rows = pairs
        .args([texts, "--threshold", "0.5", "--quiet"])
        .succeed()
        .lines();
    let known = pairs_of(&rows, "similarity");
    let resemblance = |a: &str, b: &str| {
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        known.get(&(a.to_owned(), b.to_owned())).copied()
    };
    let all = removals(&plain);
    let mut expected = BTreeMap::new();
    for (id, (survivor, _)) in &all {
        if let Some(similarity) = resemblance(id, survivor) {
            expected.insert(id.clone(), (survivor.clone(), similarity));
        }
    }
    let mut found = BTreeMap::new();
    for cluster in json_lines(&fs::read(out.join("clusters.jsonl")).unwrap()) {
        for member in cluster["members"].as_array().unwrap() {
            let survivor = cluster["survivor"].as_str().unwrap().to_owned();
            let similarity = member["similarity"].as_f64().unwrap();
            found.insert(
                member["id"].as_str().unwrap().to_owned(),
                (survivor, similarity),
            );
        }
    }
    assert!(
        found.len() > 200 && found.len() < all.len(),
        "{} of {}",
        found.len(),
        all.len()
    );
    assert_eq!(found, expected);
    let removed = ids(&out.join("removed.jsonl"));
    assert_eq!(removed.len(), found.len());
    assert!(removed.iter().all(|id| found.contains_key(id)));
    let kept = ids(&out.join("kept.jsonl"));
    assert_eq!(
        kept.len() + removed.len(),
        summary["counts"]["documents"].as_u64().unwrap() as usize
    );
    assert_eq!(summary["verified"], true);
    assert_eq!(summary["verification"]["threshold"], 0.5);
    assert_eq!(
        summary["verification"]["counts"]["kept_after_all"],
        all.len() - found.len()
    );
    assert_eq!(summary["verification"]["counts"]["missing"], 0);
    assert_eq!(summary["verification"]["counts"]["without_text"], 0);
    let again = folder.path("again");
    let more = [&flags[..], &["--threads", "1", "--memory", "200M"]].concat();
    cluster(&[&lines], &more, &again);
    assert!(results(&again) == results(&out), "threads and memory");
}

#[test]
fn texts_decide_about_removals_one_by_one() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let other = "nothing of that stands in this text at all as far as anybody can see";
    let texts = folder.records(
        "texts.jsonl",
        &[("c", STORY), ("b", other), ("copy", STORY), ("more", other)],
    );
    let out = folder.path("out");
    let verify = ["--verify", texts.to_str().unwrap()];
    let finished = cluster(&[&chain], &verify, &out);
    finished.says(&[
        "1 removed, each with a text that resembles that of a kept one by 0.8 or more",
        "1 kept after all: their texts do not resemble those of their survivors",
    ]);
    assert!(!finished.err.contains("--verify files"), "{}", finished.err);
    let clusters = json_lines(&fs::read(out.join("clusters.jsonl")).unwrap());
    let expected = json!({"cluster": 1, "survivor": "c", "members": [
        {"id": "copy", "distance": 0, "similarity": 1.0, "reason": "same-fingerprint"},
    ]});
    assert_eq!(clusters, [expected]);
    assert_eq!(ids(&out.join("kept.jsonl")), ["c", "b", "a", "far"]);

    // A missing text is no reason to remove a document, and no evidence about a resemblance.
    let few = folder.records("few.jsonl", &[("c", STORY), ("b", STORY)]);
    let out = folder.path("few");
    let finished = cluster(&[&chain], &["--verify", few.to_str().unwrap()], &out);
    let unknown = "1 kept after all: their texts, or those of their survivors, are in none of the --verify files";
    finished.says(&[unknown]);
    assert!(!finished.err.contains("do not"), "{}", finished.err);
    assert_eq!(ids(&out.join("removed.jsonl")), ["b"]);

    let none = folder.records("none.jsonl", &[("x", STORY)]);
    let twice = folder.records("twice.jsonl", &[("c", STORY), ("c", STORY)]);
    let bare = folder.add("bare.u64", [[0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat());
    for (input, texts, words) in [
        (
            &chain,
            &none,
            &["none of the 1 records", "\"c\"", "--id"][..],
        ),
        (&chain, &twice, &["\"c\"", "more than once"]),
        (&bare, &none, &["have no ids"]),
    ] {
        let mut command = lookalike("cluster");
        command.arg(input).arg("--verify").arg(texts);
        command
            .arg("-o")
            .arg(folder.path("refused"))
            .fail(1)
            .says(words);
    }
    for (flags, words) in [
        (
            &["--shingle", "words:3"][..],
            &["--shingle", "--verify"][..],
        ),
        (&["--threshold", "0.5"], &["--threshold", "--verify"]),
        (
            &["--verify", "x", "--threshold", "0"],
            &["--threshold 0", "above 0"],
        ),
    ] {
        let mut command = lookalike("cluster");
        command.arg(&chain).args(flags);
        command
            .arg("-o")
            .arg(folder.path("refused"))
            .fail(2)
            .says(words);
    }
}

#[test]
fn texts_that_a_verification_lost_were_borne_whatever_max_skipped_said() {
    let folder = Folder::new();
    let chain = folder.add("chain.lkfp", file(&CHAIN, 7));
    let texts = folder.records("texts.jsonl", &[("c", STORY), ("copy", STORY)]);
    let lines = fs::read_to_string(&texts).unwrap() + "nonsense\n";
    fs::write(&texts, lines).unwrap();
    let verified = |most: &str| {
        let mut command = lookalike("cluster");
        command.arg(&chain).arg("--verify").arg(&texts);
        command
            .args(["--max-skipped", most, "-o"])
            .arg(folder.path(most));
        command
    };
    verified("0")
        .fail(1)
        .says(&["texts.jsonl, line 3", "--max-skipped"]);
    verified("1").succeed();
}

/// Regression test: while a job has the directory, another one is interrupted before it is refused.
#[test]
fn ctrl_c_removed_the_state_of_another_process() {
    let folder = Folder::new();
    let state = folder.add("out/.lookalike/scanned.bin", "an hour of work");
    let pairs = folder.add("pairs.jsonl", "");
    let out = fs::File::open(folder.path("out")).unwrap();
    out.lock().unwrap();
    let mut command = lookalike("cluster");
    command.args(["--pairs".as_ref(), pairs.as_os_str()]);
    // The job waits for the texts on standard input.
    command
        .args(["--verify", "-", "-o"])
        .arg(folder.path("out"));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let texts = child.stdin.take();
    let entries = || fs::read_dir(folder.path("out")).unwrap();
    // When standard input is copied, everything that an interruption removes is registered.
    let is_copied = || {
        let mut entries = entries().flatten();
        entries.any(|entry| entry.path().join("standard-input").exists())
    };
    while !is_copied() {
        assert_eq!(child.try_wait().unwrap(), None, "the job ended too early");
        sleep(Duration::from_millis(1));
    }
    assert_eq!(interrupt(child).0, Some(130));
    drop(texts);
    assert_eq!(entries().count(), 1);
    assert_eq!(fs::read(state).unwrap(), b"an hour of work");
}

/// After Ctrl-C while pairs are read, nothing of the job is left, and earlier files are still there.
#[test]
fn an_interrupted_job_left_its_unfinished_files() {
    let folder = Folder::new();
    for is_new in [true, false] {
        let out = folder.path(format!("out{is_new}"));
        if !is_new {
            folder.add("outfalse/of-the-user", "kept");
        }
        let mut command = lookalike("cluster");
        command.args(["--pairs", "-", "-o"]).arg(&out);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        while !out.join(".lookalike/job.json").exists() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        let input = child.stdin.take();
        let (code, said) = interrupt(child);
        drop(input);
        assert_eq!(code, Some(130), "{said}");
        assert!(
            said.contains("interrupted") && !said.contains("resume"),
            "{said}"
        );
        match is_new {
            true => assert!(!out.exists()),
            false => {
                let left = fs::read_dir(&out)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name());
                assert_eq!(left.collect::<Vec<_>>(), ["of-the-user"]);
            }
        }
    }
}

/// Regression test: ids were read as floating-point numbers, which made two of them equal.
#[test]
fn ids_that_are_longer_than_any_number_were_rounded() {
    let folder = Folder::new();
    let lines = "{\"id\":18446744073709551616,\"fingerprint\":\"00000000000000ff\"}\n\
                 {\"id\":18446744073709551617,\"fingerprint\":\"0f0f0f0f0f0f0f0f\"}\n\
                 {\"id\":1e3,\"fingerprint\":\"f0f0f0f0f0f0f0f0\"}\n";
    let input = folder.add("in.jsonl", lines);
    let out = folder.path("out");
    lookalike("cluster")
        .arg(&input)
        .arg("-o")
        .arg(&out)
        .succeed();
    let kept = json_lines(&fs::read(out.join("kept.jsonl")).unwrap());
    let ids: Vec<_> = kept
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["18446744073709551616", "18446744073709551617", "1e3"]);
    let wrong = folder.add("wrong.jsonl", "{\"a\":true,\"b\":\"x\",\"distance\":0}\n");
    let mut command = lookalike("cluster");
    command
        .arg("--pairs")
        .arg(&wrong)
        .arg("-o")
        .arg(folder.path("no"));
    command.fail(1).says(&["the id field holds a boolean"]);
}

/// Regression test: lines of `pairs` were refused, so there were no connected components over resemblance.
#[test]
fn pairs_of_documents_could_not_be_connected() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let pairs = folder.path("near.jsonl");
    let mut list = lookalike("pairs");
    list.arg(&input)
        .args(["--threshold", "0.8", "-q", "-o"])
        .arg(&pairs)
        .succeed();
    let found = json_lines(&fs::read(&pairs).unwrap());
    // By definition: the smallest id that a chain of pairs leads to, spread until nothing changes.
    let sides = |pair: &'_ Value| ["a", "b"].map(|side| pair[side].as_str().unwrap().to_owned());
    let ends: Vec<[String; 2]> = found.iter().map(sides).collect();
    let ids_of_pairs = ends.iter().flatten().map(|id| (&**id, &**id));
    let mut smallest: BTreeMap<&str, &str> = ids_of_pairs.collect();
    loop {
        let before = smallest.clone();
        for [a, b] in &ends {
            let least = smallest[&**a].min(smallest[&**b]);
            smallest.insert(a, least);
            smallest.insert(b, least);
        }
        if smallest == before {
            break;
        }
    }
    let out = folder.path("out");
    let listed = |more: &[&str]| {
        let mut command = lookalike("cluster");
        command
            .arg("--pairs")
            .arg(&pairs)
            .args(more)
            .arg("-o")
            .arg(&out);
        command
    };
    listed(&["--components"])
        .succeed()
        .says(&["pairs decided, no text was read"]);
    let kept: Vec<&str> = smallest
        .iter()
        .filter(|(id, least)| id == least)
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(ids(&out.join("kept.jsonl")), kept);
    let mut members = BTreeMap::new();
    for cluster in json_lines(&fs::read(out.join("clusters.jsonl")).unwrap()) {
        for member in cluster["members"].as_array().unwrap() {
            assert_eq!(member, &json!({"id": member["id"], "reason": "connected"}));
            members.insert(
                member["id"].as_str().unwrap().to_owned(),
                cluster["survivor"].clone(),
            );
        }
    }
    let removed = smallest.iter().filter(|(id, least)| id != least);
    let expected: BTreeMap<String, Value> = removed
        .map(|(id, least)| ((*id).to_owned(), json!(least)))
        .collect();
    assert!(members == expected && !members.is_empty());
    // A chain is longer than one pair, so stars would decide otherwise.
    let is_pair = |a: &String, b: &Value| {
        ends.iter()
            .any(|[x, y]| [x, y].contains(&a) && [x, y].iter().any(|id| **id == *b))
    };
    assert!(
        members
            .iter()
            .any(|(member, survivor)| !is_pair(member, survivor))
    );
    for more in [
        &["--overwrite"][..],
        &["--overwrite", "--components", "--distance", "3"],
    ] {
        listed(more).fail(1).says(&[
            "line 1: a pair of documents with a similarity",
            "add --components",
        ]);
    }
    let mut merge = lookalike("merge");
    merge.arg(&pairs).fail(1).says(&["line 1: has no distance"]);
}
