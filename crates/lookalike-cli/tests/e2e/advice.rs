//! The advice of a sweep: the commands that it prints must do what it promises.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{
    Finish as _, Folder, Numbers, Pairs, STORY, corpus, json_lines, lookalike, pairs_of,
};

/// Runs a printed command in a folder, with this binary as `lookalike`.
fn follow(folder: &Path, command: &str) -> Pairs {
    let program = env!("CARGO_BIN_EXE_lookalike");
    let command = command.replace("lookalike ", &format!("{program} --quiet "));
    let command = command.replace(
        &format!("{program} --quiet terms"),
        &format!("{program} terms --quiet"),
    );
    let command = command.replace(
        &format!("{program} --quiet pairs"),
        &format!("{program} pairs --quiet"),
    );
    let done = Command::new("sh")
        .current_dir(folder)
        .args(["-c", &command])
        .succeed();
    pairs_of(&done.lines(), "similarity")
}

/// Writes texts that resemble each other to various degrees, and labels some pairs as a person would.
fn labelled(folder: &Folder) -> Vec<(String, String, bool)> {
    let mut numbers = Numbers(5);
    let mut texts = Vec::new();
    for family in 0..24 {
        let base = format!("{STORY} and {}", numbers.words(60, 400));
        let mut words: Vec<String> = base.split(' ').map(str::to_owned).collect();
        for copy in 0..4 {
            texts.push((format!("{family:02}-{copy}"), words.join(" ")));
            for _ in 0..8 {
                let at = numbers.below(words.len());
                words[at] = format!("changed{}", numbers.below(1000));
            }
        }
    }
    let mut labels = Vec::new();
    for family in 0..24 {
        for (a, b, is_copy) in [(0, 1, true), (0, 2, true), (0, 3, numbers.below(2) == 0)] {
            labels.push((
                format!("{family:02}-{a}"),
                format!("{family:02}-{b}"),
                is_copy,
            ));
        }
        let other = (family + 1) % 24;
        let (a, b) = (family.min(other), family.max(other));
        labels.push((format!("{a:02}-0"), format!("{b:02}-1"), false));
    }
    let rows = labels.iter().map(|(a, b, is_copy)| {
        format!(
            "{{\"a\":\"{a}\",\"b\":\"{b}\",\"label\":{}}}\n",
            u8::from(*is_copy)
        )
    });
    folder.add("labels.jsonl", rows.collect::<String>());
    folder.records("docs.jsonl", &texts);
    labels
}

fn sweep(folder: &Path, flags: &[&str]) -> Value {
    lookalike("evaluate")
        .current_dir(folder)
        .args(["sweep", "docs.jsonl", "--json"])
        .args(flags)
        .succeed()
        .json()
}

/// Counts the labelled pairs that a job found, and those of them that are true.
fn judged(found: &Pairs, labels: &[(String, String, bool)]) -> (u64, u64) {
    let known =
        |pair: &&(String, String, bool)| found.contains_key(&(pair.0.clone(), pair.1.clone()));
    let all: Vec<_> = labels.iter().filter(known).collect();
    let correct = all.iter().filter(|pair| pair.2).count();
    (all.len() as u64, correct as u64)
}

fn promised(advice: &Value) -> (u64, u64) {
    let number = |name: &str| advice[name].as_u64().unwrap();
    (number("found"), number("correct"))
}

#[test]
fn advice_is_a_command_that_finds_what_was_promised() {
    let folder = Folder::new();
    let labels = labelled(&folder);
    let root = folder.path("");
    let flags = [
        "--labels",
        "labels.jsonl",
        "--two-tests",
        "--case",
        "keep",
        "--shingles",
        "words:1,words:2,stops:2",
        "--weights",
        "set,idf",
        "--sketches",
        "simhash:64,super-shingle:6x14,none",
        "--measures",
        "resemblance,containment,coverage",
        "--precision",
        "0.5",
        "--recall",
        "0.3",
    ];
    let answer = sweep(&root, &flags);
    let (mut followed, mut methods) = (0, std::collections::BTreeSet::new());
    for advice in answer["advice"].as_array().unwrap() {
        let Some(command) = advice["command"].as_str() else {
            continue;
        };
        let found = follow(&root, command);
        assert_eq!(
            judged(&found, &labels),
            promised(&advice["point"]),
            "{command}"
        );
        followed += 1;
        methods.insert(command.contains("--method"));
    }
    assert!(
        followed > 10 && methods.len() == 2,
        "{followed} {methods:?}"
    );
    let two = answer["two_tests"].as_array().unwrap();
    assert!(!two.is_empty());
    for both in two {
        if let Some(command) = both["command"].as_str() {
            let found = follow(&root, command);
            assert_eq!(judged(&found, &labels), promised(both), "{command}");
            assert!(command.contains(" --and "), "{command}");
        }
    }
    assert!(answer["best"]["command"].is_string(), "{}", answer["best"]);
    // Figures on the labels used for the choice are too good, so the answer also says what to expect elsewhere.
    let expected = answer["expected"].as_array().unwrap();
    let names: Vec<&str> = expected
        .iter()
        .map(|one| one["choice"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "simhash:64",
            "super-shingle:6x14",
            "none",
            "any",
            "two tests"
        ]
    );
    let f1 = |value: &Value| value["f1"].as_f64().unwrap();
    assert!(f1(&expected[4]) <= f1(&two[0]), "{}", expected[4]);
}

#[test]
fn advised_containment_lost_quotes_in_texts_a_thousand_times_as_long() {
    let folder = Folder::new();
    let mut numbers = Numbers(3);
    let long = numbers.words(6000, 100_000);
    let words: Vec<&str> = long.split(' ').collect();
    let mut rows = vec![("long".to_owned(), long.clone())];
    let mut labels = Vec::new();
    for quote in 0..6 {
        let at = quote * 900;
        rows.push((format!("q{quote}"), words[at..at + 8].join(" ")));
        rows.push((format!("o{quote}"), numbers.words(8, 100_000)));
        for (a, b, label) in [("long", "q", 1), ("long", "o", 0)] {
            labels.push(format!(
                "{{\"a\":\"{a}\",\"b\":\"{b}{quote}\",\"label\":{label}}}\n"
            ));
        }
    }
    folder.records("docs.jsonl", &rows);
    folder.add("labels.jsonl", labels.concat());
    let flags = [
        "--labels",
        "labels.jsonl",
        "--sketches",
        "none",
        "--shingles",
        "words:5",
        "--masks",
        "none",
        "--weights",
        "set",
        "--measures",
        "containment",
    ];
    let root = folder.path("");
    let answer = sweep(&root, &flags);
    let advice = &answer["advice"][0];
    assert_eq!(promised(&advice["point"]), (6, 6));
    let found = follow(&root, advice["command"].as_str().unwrap());
    assert_eq!(found.len(), 6, "{}", advice["command"]);
}

#[test]
fn without_labels_the_advised_job_finds_every_pair_of_the_sweep() {
    let folder = Folder::new();
    let _ = labelled(&folder);
    let root = folder.path("");
    let answer = sweep(
        &root,
        &[
            "--threshold",
            "0.3",
            "--shingles",
            "words:2,words:5",
            "--sketches",
            "none,simhash:64",
            "--weights",
            "set",
        ],
    );
    let mut followed = 0;
    for advice in answer["advice"].as_array().unwrap() {
        if let Some(command) = advice["command"].as_str() {
            let found = follow(&root, command).len() as u64;
            assert_eq!(found, promised(&advice["point"]).0, "{command}");
            followed += 1;
        }
    }
    assert!(followed > 0);
}

#[test]
fn a_wish_that_nothing_fulfils_still_names_the_best() {
    let folder = Folder::new();
    let _ = labelled(&folder);
    let done = lookalike("evaluate")
        .current_dir(folder.path(""))
        .args([
            "sweep",
            "docs.jsonl",
            "--labels",
            "labels.jsonl",
            "--precision",
            "1",
            "--recall",
            "1",
        ])
        .args(["--sketches", "none", "--shingles", "words:2"])
        .succeed();
    for part in [
        "chosen on:\nnone\n",
        "The best by F1",
        "lookalike pairs docs.jsonl",
        "chosen on",
        "Expected on other labels",
    ] {
        assert!(done.text().contains(part), "{part}: {}", done.text());
    }
}

#[test]
fn masks_and_ways_to_read_html_are_tried() {
    let folder = Folder::new();
    let menu: String = (0..40)
        .map(|at| format!("<li><a href=\"/{at}\">menu entry {at}</a></li>"))
        .collect();
    let page = |at: usize, counter: usize, teller: &str| {
        format!(
            "<html><body><nav><ul>{menu}</ul></nav><main><article><h1>Ferry {at}</h1><p>{}</p><p>{STORY}, {at}, says {teller}.</p></article></main>\
             <footer>visitor {counter}, page made at 12:{counter:02}</footer></body></html>",
            Numbers(at as u64 + 1).words(80, 900)
        )
    };
    for at in 0..6 {
        for copy in 0..2 {
            folder.add(
                format!("pages/{at}-{copy}.html"),
                page(at, 10 + 7 * copy + at, ["Anna", "Berta"][copy]),
            );
        }
    }
    let run = |flags: &[&str]| {
        lookalike("evaluate")
            .current_dir(folder.path(""))
            .args([
                "sweep",
                "pages",
                "--json",
                "--sketches",
                "none",
                "--shingles",
                "words:3",
            ])
            .args(flags)
            .succeed()
            .json()
    };
    let names = |answer: &Value| -> Vec<String> {
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| row["features"].as_str().unwrap().to_owned())
            .collect()
    };
    let answer = run(&[]);
    let all = names(&answer);
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(
        all.iter()
            .any(|name| name.contains("mask=numbers,dates html=visible")),
        "{all:?}"
    );
    let with_html = answer["advice"].as_array().unwrap().iter().find(|advice| {
        advice["command"]
            .as_str()
            .is_some_and(|command| command.contains(" --html visible"))
    });
    let command = with_html.unwrap()["command"].as_str().unwrap();
    let found = follow(&folder.path(""), command).len() as u64;
    assert_eq!(found, promised(&with_html.unwrap()["point"]).0, "{command}");
    assert_eq!(
        names(&run(&["--masks", "none", "--html-modes", "main"])).len(),
        1
    );
}

/// Regression test: 1,682 pairs were promised at .373, but the cut was .37288, and rounding it lost 21 of them.
#[test]
fn a_cut_is_printed_so_that_it_finds_the_pairs() {
    let (Some(documents), Some(labels)) = (
        corpus("webis-s3-pairs/docs.jsonl"),
        corpus("webis-s3-pairs/pairs.jsonl"),
    ) else {
        return;
    };
    let folder = Folder::new();
    let rows = json_lines(&std::fs::read(&labels).unwrap());
    std::fs::copy(&documents, folder.path("docs.jsonl")).unwrap();
    std::fs::copy(&labels, folder.path("labels.jsonl")).unwrap();
    let root = folder.path("");
    let flags = [
        "--labels",
        "labels.jsonl",
        "--two-tests",
        "--sketches",
        "none",
        "--masks",
        "none",
        "--measures",
        "resemblance,coverage",
        "--shingles",
        "words:2,words:3,stops:5",
    ];
    let answer = sweep(&root, &flags);
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    for both in answer["two_tests"].as_array().unwrap() {
        let found = follow(&root, both["command"].as_str().unwrap());
        let known = rows.iter().filter(|row| {
            let (a, b) = (text(row, "a"), text(row, "b"));
            found.contains_key(&(a.clone().min(b.clone()), a.max(b)))
        });
        assert_eq!(known.count() as u64, promised(both).0, "{both}");
    }
}
