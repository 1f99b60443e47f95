//! Results are the same bytes whatever the order of the input, its division into files, the number of threads and the memory.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, contents, corpus, lookalike};

/// Returns the lines of a corpus in an order that depends on the seed.
fn shuffled(lines: &[&[u8]], seed: u64) -> Vec<u8> {
    let mut lines = lines.to_vec();
    Numbers(seed).shuffle(&mut lines);
    lines.concat()
}

/// One way to run a job.
struct Way {
    inputs: Vec<PathBuf>,
    flags: &'static [&'static str],
}

/// Returns ways to run a job on the same records: in other orders, divided into other files, with other limits. The first is the plain way.
fn ways(folder: &Folder, plain: &[u8]) -> Vec<Way> {
    let lines: Vec<&[u8]> = plain.split_inclusive(|&byte| byte == b'\n').collect();
    let whole = folder.add("whole.jsonl", plain);
    let backwards = folder.add(
        "backwards.jsonl",
        lines.iter().rev().copied().collect::<Vec<_>>().concat(),
    );
    let mixed = folder.add("mixed.jsonl", shuffled(&lines, 1));
    let other = shuffled(&lines, 2);
    let other: Vec<&[u8]> = other.split_inclusive(|&byte| byte == b'\n').collect();
    let cut = |(number, part): (usize, &[&[u8]])| {
        folder.add(format!("parts/{number}.jsonl"), part.concat())
    };
    let parts: Vec<PathBuf> = other
        .chunks(lines.len().div_ceil(7))
        .enumerate()
        .map(cut)
        .collect();
    let way = |inputs, flags| Way { inputs, flags };
    vec![
        way(vec![whole], &[]),
        way(vec![backwards], &["--threads", "1", "--memory", "48M"]),
        way(vec![mixed], &["--threads", "2", "--memory", "64M"]),
        way(
            vec![folder.path("parts")],
            &["--threads", "3", "--memory", "256M"],
        ),
        way(
            parts.into_iter().rev().collect(),
            &["--threads", "8", "--memory", "256M"],
        ),
    ]
}

/// The bytes that must not depend on the way, and how many bytes of features were written to the disk.
struct Ran {
    stable: Vec<(&'static str, Vec<u8>)>,
    spilled: u64,
}

fn run(folder: &Folder, way: &Way, flags: &[&str]) -> Ran {
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command
        .args(&way.inputs)
        .arg("-o")
        .arg(&out)
        .args(["--overwrite", "--quiet"])
        .args(way.flags)
        .args(flags);
    command.succeed();
    let run: Value = serde_json::from_slice(&contents(&out.join("run.json"))).unwrap();
    let below = run["below_threshold"].to_string().into_bytes();
    let mut stable = Results::stable(&out);
    stable.push(("below_threshold", below));
    let spilled = run["counts"]["temporary_bytes"].as_u64().unwrap();
    Ran { stable, spilled }
}

/// Checks that all ways give the same bytes, and that the results are not empty. Returns the most bytes that one of them wrote to the disk.
#[track_caller]
fn all_ways_are_one(corpus: &Path, flags: &[&str]) -> u64 {
    let folder = Folder::new();
    let ways = ways(&folder, &contents(corpus));
    let plain = run(&folder, &ways[0], flags);
    let mut spilled = plain.spilled;
    assert!(
        plain.stable[..2]
            .iter()
            .all(|(name, bytes)| !bytes.is_empty() || *name == "skipped.jsonl")
    );
    for (number, way) in ways.iter().enumerate().skip(1) {
        let ran = run(&folder, way, flags);
        spilled = spilled.max(ran.spilled);
        for ((name, wanted), (_, found)) in plain.stable.iter().zip(ran.stable) {
            assert!(
                *wanted == found,
                "{name} differs in way {number}, {:?} {flags:?}",
                way.flags
            );
        }
    }
    spilled
}

#[test]
fn license_texts_in_any_way() {
    let Some(path) = corpus("license-texts/docs.jsonl.gz") else {
        return;
    };
    let spilled = all_ways_are_one(&path, &["--pairs", "all"]);
    assert!(spilled > 0, "the least memory sends features to the disk");
}

#[test]
fn german_laws_in_any_way() {
    let Some(path) = corpus("de-laws-revisions/docs.jsonl.gz") else {
        return;
    };
    all_ways_are_one(&path, &[]);
}

#[test]
fn german_laws_by_every_method_in_any_way() {
    let Some(path) = corpus("de-laws-revisions/docs.jsonl.gz") else {
        return;
    };
    for method in ["minhash", "super-shingle", "simhash"] {
        all_ways_are_one(&path, &["--method", method]);
    }
}

#[test]
fn many_small_records_of_few_words_in_any_way() {
    let (folder, mut numbers) = (Folder::new(), Numbers(7));
    let line = |number: usize| {
        let count = numbers.below(9);
        crate::support::record(
            &format!("d{}", number * 7919 % 3000),
            &numbers.words(count, 3),
        )
    };
    let path = folder.add("small.jsonl", (0..3000).map(line).collect::<String>());
    all_ways_are_one(&path, &["--threshold", "0.5", "--pairs", "all"]);
    all_ways_are_one(
        &path,
        &[
            "--keep",
            "shortest",
            "--threshold",
            "0.7",
            "--method",
            "simhash",
            "--distance",
            "7",
        ],
    );
}

#[test]
fn pages_of_one_text_were_compared_by_the_title_of_whichever_came_first() {
    const TRIPLES: usize = 500;
    let page = |kind: usize, of: usize, title: &str, headline: &str, words: &[&str]| {
        let links = words
            .iter()
            .map(|word| format!("<a href=x>{word}{of}</a> "));
        let links: String = links.collect();
        let html = format!(
            "<html><head><title>{title}</title></head><body><nav>{links}</nav><h1>{headline}</h1></body></html>"
        );
        format!(
            "{}\n",
            json!({"id": format!("{kind}-{of}"), "n": kind, "html": html})
        )
    };
    // The first two show the same text. Only the second has the title of the third, whose text resembles both.
    let line = |at: usize| match (at / TRIPLES, at % TRIPLES) {
        (0, of) => page(0, of, "Home page", "", &["aa", "bb", "cc"]),
        (1, of) => page(1, of, "T", "", &["aa", "bb", "cc"]),
        (_, of) => page(2, of, "T", "T", &["aa", "bb"]),
    };
    let lines: Vec<String> = (0..3 * TRIPLES).map(line).collect();
    let folder = Folder::new();
    let path = folder.add("pages.jsonl", lines.concat());
    let flags = [
        "--threshold",
        "0.3",
        "--shingle",
        "words:2",
        "--keep",
        "min:n",
    ];
    all_ways_are_one(&path, &[&flags[..], &["--pairs", "all"]].concat());
    for threads in ["1", "2", "16"] {
        let results = folder.dedup(&path, &[&flags[..], &["--threads", threads]].concat());
        assert_eq!(results.count("decisions", "removed_exact"), TRIPLES as u64);
        assert_eq!(results.count("decisions", "removed_near"), 0, "{threads}");
    }
    // The verdict on a new page does not depend on where the old page comes from.
    let old = folder.add("old.jsonl", lines[..TRIPLES].concat());
    let new = folder.add("new.jsonl", lines[TRIPLES..].concat());
    let collection = folder.path("collection");
    let mut build = lookalike("collection");
    build
        .arg("build")
        .arg(&collection)
        .arg(&old)
        .args(&flags[..4]);
    build.succeed();
    for earlier in [&old, &collection] {
        let against = ["--against", crate::support::path(earlier)];
        let results = folder.dedup(&new, &[&flags[..4], &against].concat());
        assert_eq!(results.count("decisions", "removed_exact"), TRIPLES as u64);
        assert_eq!(results.count("decisions", "removed_near"), 0, "{earlier:?}");
    }
}

#[test]
fn pairs_in_any_way() {
    let Some(path) = corpus("de-laws-revisions/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let mut outputs = ways(&folder, &contents(&path)).into_iter().map(|way| {
        let mut command = lookalike("pairs");
        command
            .args(way.inputs)
            .args(way.flags)
            .args(["--threshold", "0.3", "--quiet"])
            .succeed()
            .out
    });
    let first = outputs.next().unwrap();
    assert!(!first.is_empty() && outputs.all(|output| output == first));
}
