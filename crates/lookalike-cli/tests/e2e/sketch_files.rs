//! Super-shingles and signatures in files: compared with brute force, and invalid uses that are refused.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Finish, Folder, STORY, corpus, examples, json_lines, lookalike, record};

/// The id of a document, and the places of its sketch.
type Document = (String, Vec<u64>);

/// Reads the lines of a sketch file, with places of `digits` digits; texts without features are left out.
fn documents(path: &Path, field: &str, digits: usize) -> Vec<Document> {
    let read = |line: &Value| {
        let sketch = line[field].as_str()?;
        let places = sketch.as_bytes().chunks(digits);
        // Numbers make comparing all pairs faster.
        let places = places.map(|place| {
            let place = std::str::from_utf8(place).unwrap();
            u64::from_str_radix(place, 16).unwrap()
        });
        Some((line["id"].as_str().unwrap().to_owned(), places.collect()))
    };
    json_lines(&fs::read(path).unwrap())
        .iter()
        .filter_map(read)
        .collect()
}

/// Returns the number of equal places. Sixty million pairs are compared in unoptimised code, where a loop takes a fifth of the time of iterators.
fn equal(a: &[u64], b: &[u64]) -> usize {
    let (places, mut at, mut equal) = (a.len(), 0, 0);
    while at < places {
        if a[at] == b[at] {
            equal += 1;
        }
        at += 1;
    }
    equal
}

#[track_caller]
fn sketch(input: &Path, sketch: &str, output: &Path) {
    let mut command = lookalike("fingerprint");
    command.arg(input).args(["--sketch", sketch, "-q", "-o"]);
    command.arg(output).succeed();
}

fn join(inputs: &[&Path], equal: &str) -> Command {
    let mut command = lookalike("join");
    command.args(inputs).args(["--equal", equal, "-q"]);
    command
}

/// Groups documents with equal sketches, in the order of their first documents in the file.
fn classes(documents: &[Document]) -> Vec<Vec<&Document>> {
    let (mut classes, mut known) = (Vec::<Vec<&Document>>::new(), HashMap::new());
    for document in documents {
        let next = classes.len();
        let class = *known.entry(&document.1).or_insert(next);
        if class == next {
            classes.push(Vec::new());
        }
        classes[class].push(document);
    }
    classes
}

/// Returns the pairs that a join of one file must have, by comparing all documents.
fn recount(documents: &[Document], least: usize) -> BTreeMap<(String, String), usize> {
    let classes = classes(documents);
    let name = |class: &[&Document]| class.iter().map(|one| one.0.clone()).min().unwrap();
    let named: Vec<(String, &Document)> = classes
        .iter()
        .map(|class| (name(class), class[0]))
        .collect();
    let mut pairs = BTreeMap::new();
    let mut add = |a: &String, b: &String, apart| {
        pairs.insert((a.min(b).clone(), a.max(b).clone()), apart);
    };
    for (number, (a, x)) in named.iter().enumerate() {
        for (b, y) in &named[number + 1..] {
            let equal = equal(&x.1, &y.1);
            if equal >= least {
                add(a, b, x.1.len() - equal);
            }
        }
        for (other, _) in classes[number].iter().filter(|(other, _)| other != a) {
            add(a, other, 0);
        }
    }
    pairs
}

/// Returns the pairs in the lines of a join of one file.
fn pairs(lines: &[Value]) -> BTreeMap<(String, String), usize> {
    let id = |line: &Value, side: &str| line[side].as_str().unwrap().to_owned();
    let pair = |line: &Value| {
        let distance = line["distance"].as_u64().unwrap() as usize;
        ((id(line, "a"), id(line, "b")), distance)
    };
    lines.iter().map(pair).collect()
}

/// Returns each removed document with its survivor, by comparing all documents: each goes to the closest survivor before it.
fn decide(documents: &[Document], least: usize) -> BTreeMap<String, (String, u64)> {
    let (mut removed, mut survivors) = (BTreeMap::new(), Vec::<&Document>::new());
    for class in classes(documents) {
        let best = class[0];
        let apart = |other: &Document| best.1.len() - equal(&other.1, &best.1);
        let closest = survivors.iter().min_by_key(|survivor| apart(survivor));
        let closest = closest.filter(|closest| apart(closest) <= best.1.len() - least);
        let (survivor, members) = match closest {
            Some(closest) => (*closest, &class[..]),
            None => {
                survivors.push(best);
                (best, &class[1..])
            }
        };
        for member in members {
            removed.insert(
                member.0.clone(),
                (survivor.0.clone(), apart(survivor) as u64),
            );
        }
    }
    removed
}

/// Reads the removals that `cluster` wrote.
fn removals(folder: &Path) -> BTreeMap<String, (String, u64)> {
    let mut removed = BTreeMap::new();
    for cluster in json_lines(&fs::read(folder.join("clusters.jsonl")).unwrap()) {
        let survivor = cluster["survivor"].as_str().unwrap();
        for member in cluster["members"].as_array().unwrap() {
            let (id, distance) = (member["id"].as_str().unwrap(), &member["distance"]);
            removed.insert(
                id.to_owned(),
                (survivor.to_owned(), distance.as_u64().unwrap()),
            );
        }
    }
    removed
}

#[test]
fn super_shingles_of_a_corpus_are_joined_and_decided_as_a_recount_does() {
    let Some(news) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let lines = folder.path("news.jsonl");
    sketch(&news, "super-shingle:6x14", &lines);
    let all = documents(&lines, "super_shingles", 16);
    assert!(all.len() > 10_000 && all.iter().all(|(_, places)| places.len() == 6));
    for least in [1, 2, 6] {
        let found = pairs(&join(&[&lines], &least.to_string()).succeed().lines());
        let expected = recount(&all, least);
        assert!(expected.len() > 150, "{}", expected.len());
        assert_eq!(found, expected, "{least}");
    }
    let (file, out) = (folder.path("news.lkfp"), folder.path("out"));
    sketch(&news, "super-shingle:6x14", &file);
    let bytes = fs::metadata(&file).unwrap().len();
    let ids: usize = all.iter().map(|(id, _)| id.len() + 8).sum();
    assert!(
        bytes < (48 * all.len() + ids) as u64 + 1_000,
        "48 bytes a page: {bytes}"
    );
    let mut command = lookalike("cluster");
    command
        .arg(&file)
        .args(["--equal", "2", "-q", "-o"])
        .arg(&out)
        .succeed();
    let expected = decide(&all, 2);
    assert_eq!(removals(&out), expected);
    let count = |name: &str| json_lines(&fs::read(out.join(name)).unwrap()).len();
    assert_eq!(count("removed.jsonl"), expected.len());
    assert_eq!(count("kept.jsonl"), all.len() - expected.len());
    let run: Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(
        (&run["equal"]["least"], &run["distance"]),
        (&2.into(), &Value::Null)
    );
    // The lists of two shards, which may come from two machines, give the same results.
    let lists = ["1/2", "2/2"].map(|shard| {
        let list = folder.path(shard.replace('/', "of"));
        let mut part = join(&[&file], "2");
        part.args(["--shard", shard, "-o"]).arg(&list).succeed();
        list
    });
    let listed = |least: &str| {
        let mut command = lookalike("cluster");
        command.arg(&file).args(["--equal", least, "-q", "-o"]);
        command.arg(folder.path(format!("listed{least}")));
        for list in &lists {
            command.arg("--pairs").arg(list);
        }
        command
    };
    listed("2").succeed();
    for name in ["kept.jsonl", "removed.jsonl", "clusters.jsonl"] {
        let of_list = fs::read(folder.path("listed2").join(name)).unwrap();
        assert!(of_list == fs::read(out.join(name)).unwrap(), "{name}");
    }
    listed("3").fail(1).says(&["more than 3"]);
}

#[test]
fn minima_of_a_corpus_are_joined_exactly_by_a_share_of_them() {
    let Some(news) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let lines = folder.path("news.jsonl");
    sketch(&news, "minhash:21", &lines);
    let all = documents(&lines, "signature", 8);
    assert!(all.iter().all(|(_, places)| places.len() == 21));
    // 0.8 of 21 is 16.8, so 17 places must be equal.
    let expected = recount(&all, 17);
    let mut threads = join(&[&lines], "0.8");
    let found = threads.args(["--threads", "2"]).succeed();
    assert_eq!(pairs(&found.lines()), expected);
    let alone = join(&[&lines], "17").args(["--threads", "1"]).succeed();
    assert_eq!(alone.out, found.out);
}

/// Returns a folder, and the sketches of the example articles as lines in it.
fn articles(shape: &str) -> (Folder, PathBuf) {
    let folder = Folder::new();
    let lines = folder.path("articles.jsonl");
    sketch(&examples().join("articles.jsonl"), shape, &lines);
    (folder, lines)
}

#[test]
fn every_format_gives_the_pairs_of_every_other() {
    for (shape, field, digits, raw) in [
        ("super-shingle:5x2", "super_shingles", 16, "u64x5"),
        ("minhash:9", "signature", 8, "u32x9"),
    ] {
        let (folder, lines) = articles(shape);
        let wanted = join(&[&lines], "3").succeed().out;
        assert!(!wanted.is_empty());
        for ending in ["lkfp", "lkfp.gz", "parquet", "jsonl.zst"] {
            let other = folder.path(format!("articles.{ending}"));
            sketch(&examples().join("articles.jsonl"), shape, &other);
            assert_eq!(join(&[&other], "3").succeed().out, wanted, "{ending}");
            // Join two files, which may have different formats.
            let crossed = join(&[&lines, &other], "3").succeed().lines();
            let itself = |line: &&Value| line["f"] == line["q"] && line["distance"] == 0;
            let all = documents(&lines, field, digits);
            assert_eq!(crossed.iter().filter(itself).count(), all.len(), "{ending}");
        }
        // Raw numbers are named by their digits.
        let bare = folder.path(format!("articles.{raw}.gz"));
        sketch(&examples().join("articles.jsonl"), shape, &bare);
        let ids: HashMap<String, String> = documents(&lines, field, digits)
            .into_iter()
            .map(|(id, places)| {
                let places = places.iter().map(|place| format!("{place:0digits$x}"));
                (places.collect(), id)
            })
            .collect();
        let of_bare = pairs(&join(&[&bare], "3").succeed().lines())
            .into_iter()
            .map(|((a, b), apart)| {
                let (a, b) = (ids[&a].clone(), ids[&b].clone());
                (if a < b { (a, b) } else { (b, a) }, apart)
            });
        let near = pairs(&json_lines(&wanted))
            .into_iter()
            .filter(|(_, apart)| *apart > 0);
        let (found, near): (BTreeMap<_, _>, BTreeMap<_, _>) = (of_bare.collect(), near.collect());
        assert_eq!(found.len(), near.len(), "{shape}");
    }
}

#[test]
fn the_super_shingles_are_those_that_explain_shows() {
    let (_folder, lines) = articles("super-shingle:6x14");
    let pairs = join(&[&lines], "1").succeed().lines();
    let near = pairs.iter().find(|line| line["distance"] != 0).unwrap();
    let mut explain = lookalike("explain");
    explain.arg("--in").arg(examples().join("articles.jsonl"));
    let [a, b] = ["a", "b"].map(|side| near[side].as_str().unwrap());
    explain.args([a, b, "--method", "super-shingle", "--json"]);
    let told = explain.succeed().json();
    let agreeing = told["super_shingles"]["agreeing"].as_u64().unwrap();
    assert_eq!(agreeing, 6 - near["distance"].as_u64().unwrap());
}

#[test]
fn what_has_no_meaning_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY), ("c", "")]);
    let (shingles, minima, prints) = (
        folder.path("s.lkfp"),
        folder.path("m.jsonl"),
        folder.path("f.lkfp"),
    );
    sketch(&input, "super-shingle:6x14", &shingles);
    sketch(&input, "minhash:16", &minima);
    sketch(&input, "simhash:64", &prints);
    let null = documents(&minima, "signature", 8).len();
    assert_eq!(null, 2, "a text without features has no sketch");
    let refuse = |command: &mut Command, status: i32, words: &[&str]| {
        command.fail(status).says(words);
    };
    refuse(
        lookalike("join").arg(&shingles),
        1,
        &["holds 6 super-shingles", "--equal"],
    );
    refuse(
        &mut join(&[&prints], "2"),
        1,
        &["holds fingerprints", "--distance"],
    );
    refuse(
        &mut join(&[&shingles], "7"),
        2,
        &["more than the 6 super-shingles"],
    );
    refuse(
        &mut join(&[&shingles], "none"),
        2,
        &["whole number of at least 1"],
    );
    refuse(
        &mut join(&[&shingles, &minima], "2"),
        1,
        &["6 super-shingles", "16 minima", "--sketch"],
    );
    refuse(
        join(&[&shingles], "2").args(["--distance", "3"]),
        2,
        &["cannot be used with"],
    );
    refuse(
        &mut join(&[&input], "2"),
        1,
        &["no field named super_shingles", "--sketch"],
    );
    let index = folder.path("f.lkix");
    lookalike("index")
        .arg("build")
        .arg(&prints)
        .arg("-o")
        .arg(&index)
        .succeed();
    refuse(
        &mut join(&[&index, &shingles], "2"),
        2,
        &["an index of fingerprints cannot be joined by equal places"],
    );
    let mut indexes = lookalike("join");
    indexes.arg(&index).arg(&index);
    refuse(&mut indexes, 1, &["f.lkix is an index", "not of Q"]);
    let mut import = lookalike("fingerprint");
    refuse(
        import.arg("--import").arg(&shingles),
        1,
        &["holds 6 super-shingles"],
    );
    let mut weighted = lookalike("fingerprint");
    weighted
        .arg(&input)
        .args(["--sketch", "minhash:8", "--weight", "tf"]);
    refuse(&mut weighted, 2, &["--weight tf has no effect"]);
    let mut kind = lookalike("fingerprint");
    refuse(
        kind.arg(&input).args(["--sketch", "mod-p:8"]),
        2,
        &["cannot be stored in files"],
    );
    let mut named = lookalike("fingerprint");
    named
        .arg(&input)
        .args(["--sketch", "minhash:8", "-o"])
        .arg(folder.path("x.u64x8"));
    refuse(
        &mut named,
        2,
        &["a file of this name cannot hold 8 minima", ".u32x8"],
    );
    let mut cluster = lookalike("cluster");
    cluster
        .arg(&prints)
        .args(["--equal", "2", "-o"])
        .arg(folder.path("out"));
    refuse(&mut cluster, 1, &["holds fingerprints"]);
    let mut small = join(&[&shingles], "2");
    refuse(
        small.args(["--memory", "16M"]),
        1,
        &["a join of sketches takes at least", "raise --memory"],
    );
}

/// The limit on the size of files simulates a full disk.
#[test]
fn a_full_disk_was_not_named_for_longer_sketches() {
    let folder = Folder::new();
    let lines = (0..40).map(|number| record(&number.to_string(), &format!("{STORY} {number}")));
    let input = folder.add("in.jsonl", lines.collect::<String>());
    let out = folder.path("out.lkfp");
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_lookalike")]);
    command.args(["fingerprint", "--sketch", "minhash:64", "-q"]);
    command.arg(&input).arg("-o").arg(&out).stdin(Stdio::null());
    let failed = command.fail(1);
    failed.says(&["out.lkfp: File too large", "or free some space"]);
    assert!(!out.exists());
}
