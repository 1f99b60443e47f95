//! What an evaluation reads: other fields of a record, texts without the lines of a template, standard input.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Finish, Folder, lookalike};

fn evaluate(what: &str, input: &Path, flags: &[&str]) -> Value {
    let mut command = lookalike("evaluate");
    command.arg(what).arg(input).args(flags);
    command.args(["--json", "--quiet"]).succeed().json()
}

fn pairs(input: &Path, flags: &[&str]) -> usize {
    let mut command = lookalike("pairs");
    command.arg(input).args(flags).arg("--quiet");
    command.succeed().lines().len()
}

/// Every evaluation finds as many true pairs as `pairs` lists under the same flags.
fn agree(folder: &Folder, input: &Path, threshold: &str, flags: &[&str]) -> usize {
    let flags = [flags, &["--threshold", threshold]].concat();
    let expected = pairs(input, &flags);
    let sketches = [
        "--sketches",
        "none,simhash:64",
        "--shingles",
        "words:1",
        "--weights",
        "set,idf",
    ];
    let sweep = evaluate("sweep", input, &[&flags[..], &sketches].concat());
    assert_eq!(sweep["true_pairs"], expected, "{flags:?}");
    // With and without a mask.
    assert_eq!(sweep["rows"].as_array().unwrap().len(), 6);
    let audit = evaluate(
        "audit",
        input,
        &[&flags[..], &["--method", "oph", "--functions", "64"]].concat(),
    );
    assert_eq!(audit["true_pairs"], 2 * expected, "{flags:?}");
    let flags = &flags[..flags.len() - 2];
    let sampled = folder.path("pairs.jsonl");
    let sample = ["--sketch", "none", "--each", "1000", "--bands", threshold];
    let sample = [flags, &sample, &["-o", sampled.to_str().unwrap()]].concat();
    assert_eq!(
        evaluate("sample", input, &sample)["pairs"],
        expected,
        "{flags:?}"
    );
    expected
}

#[test]
fn other_fields_are_looked_at() {
    let folder = Folder::new();
    let page = |id: usize, link: usize| {
        let text = format!("page number{id} about topic{} and no more", id / 2);
        let links = [
            format!("http://a/{link}"),
            format!("http://b/{link}"),
            format!("http://c/{link}"),
        ];
        json!({"id": format!("p{id:02}"), "text": text, "in_links": links}).to_string() + "\n"
    };
    // Pages 2n and 2n + 1 have a topic in common, pages n and n + 10 their links.
    let input = folder.add(
        "in.jsonl",
        (0..20).map(|id| page(id, id % 10)).collect::<String>(),
    );
    let (plain, fields) = (
        ["--shingle", "words:1"],
        ["--shingle", "words:1", "--fields", "in-links:3"],
    );
    assert_eq!(agree(&folder, &input, "0.7", &plain), 10);
    assert_eq!(agree(&folder, &input, "0.6", &fields), 10);
    let label = |a: usize, b: usize, is_true: bool| {
        json!({"a": format!("p{a:02}"), "b": format!("p{b:02}"), "label": is_true}).to_string()
            + "\n"
    };
    let labels: String = (0..10)
        .map(|at| label(at, at + 10, true) + &label(2 * at, 2 * at + 1, false))
        .collect();
    let labels = folder.add("labels.jsonl", labels);
    let f1 = |flags: &[&str]| {
        let flags = [flags, &["--labels", labels.to_str().unwrap()]].concat();
        let answer = evaluate("labels", &input, &flags);
        let scheme = answer["row"]["scheme"].as_str().unwrap().to_owned();
        (
            answer["row"]["curve"]["best"]["f1"].as_f64().unwrap(),
            scheme,
        )
    };
    let ((with, scheme), (without, _)) = (f1(&fields), f1(&plain));
    assert!(with == 1.0 && without < 0.8, "{with} {without}");
    assert!(scheme.contains(" fields=in-links:3 "), "{scheme}");
    let simhash = [&fields[..], &["--sketch", "simhash:64"]].concat();
    assert!(f1(&simhash).0 > f1(&[&plain[..], &["--sketch", "simhash:64"]].concat()).0);
}

#[test]
fn templates_are_taken_out_where_that_is_asked_for() {
    let folder = Folder::new();
    let template = "home news sport weather\nthis site was made by people who like templates\nall rights reserved by them\n";
    let page = |id: usize| {
        let own: Vec<String> = (0..30)
            .map(|word| format!("story{}word{word}", id / 2))
            .collect();
        let own = own.join(" ");
        let url = format!("http://site{}.example/{id}", id % 2);
        json!({"url": url, "text": format!("{template}{own}")}).to_string() + "\n"
    };
    let input = folder.add("in.jsonl", (0..20).map(page).collect::<String>());
    let flags = ["--shingle", "words:1", "--boilerplate", "site"];
    // With the template all pages look somewhat alike; without it each story stands on both sites.
    assert_eq!(agree(&folder, &input, "0.2", &flags[..2]), 190);
    assert_eq!(agree(&folder, &input, "0.2", &flags), 10);
    let sweep = evaluate(
        "sweep",
        &input,
        &[&flags[..], &["--sketches", "none"]].concat(),
    );
    let scheme = sweep["rows"][0]["scheme"].as_str().unwrap();
    assert!(scheme.contains(" boilerplate=site/1:"), "{scheme}");
    let audit = evaluate(
        "audit",
        &input,
        &[&flags[..], &["--method", "oph"]].concat(),
    );
    assert!(
        audit["scheme"]
            .as_str()
            .unwrap()
            .contains(" boilerplate=site/1:")
    );
}

/// An audit reads its input twice, and standard input comes once.
#[test]
fn standard_input_is_read_as_often_as_an_audit_needs() {
    let lines: String = (0..30)
        .map(|at| {
            json!({"id": at, "text": format!("story{} was told twice", at / 2)}).to_string() + "\n"
        })
        .collect();
    let mut command = lookalike("evaluate");
    command.args([
        "audit", "-", "--format", "jsonl", "--method", "minhash", "--json", "--quiet",
    ]);
    let done = command.finish_with(lines.as_bytes());
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!(
        (&done.json()["documents"], &done.json()["true_pairs"]),
        (&json!(30), &json!(30))
    );
}

#[test]
fn a_sample_that_memory_cannot_hold_is_refused() {
    let folder = Folder::new();
    let words = "one two three four ".repeat(50_000);
    let lines: String = (0..80)
        .map(|at| json!({"id": at, "text": format!("{at} {words}")}).to_string() + "\n")
        .collect();
    let input = folder.add("long.jsonl", &lines);
    let run = |sample: &str| {
        let mut command = lookalike("evaluate");
        command.arg("audit").arg(&input);
        command.args([
            "--method", "minhash", "--memory", "64M", "--sample", sample, "--quiet",
        ]);
        command
    };
    run("80")
        .fail(1)
        .says(&["a sample of 80 documents", "--memory", "--sample"]);
    run("10").succeed();
}
