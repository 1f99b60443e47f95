//! `evaluate sample` and `evaluate label`: through a pipe, and on a pseudo-terminal.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Finish, Finished, Folder, STORY, json_lines, lookalike};

/// Writes documents in families of two to four that tell the same story with different endings.
fn stories(folder: &Folder) -> PathBuf {
    let rows: Vec<(String, String)> = (0..24)
        .map(|at| {
            let words: Vec<String> = (0..30).map(|word| format!("w{}x{word}", at / 4)).collect();
            let ending = "and so on ".repeat(at % 4);
            let text = format!("{}\n{STORY}\n{ending}end{}", words.join(" "), at % 4);
            (format!("d{at:02}"), text)
        })
        .collect();
    folder.records("in.jsonl", &rows)
}

fn sample(folder: &Folder, input: &Path, flags: &[&str]) -> (PathBuf, Finished) {
    let pairs = folder.path("pairs.jsonl");
    let mut command = lookalike("evaluate");
    command.arg("sample").arg(input).arg("-o").arg(&pairs);
    let done = command
        .args(["--sketch", "none", "--shingle", "words:2"])
        .args(flags)
        .succeed();
    (pairs, done)
}

fn label(input: &Path, pairs: &Path, answers: &Path) -> Command {
    let mut command = lookalike("evaluate");
    command.arg("label").arg(input).arg("--pairs").arg(pairs);
    command.arg("-o").arg(answers);
    command
}

#[test]
fn bands_give_equally_many_and_say_where_they_cannot() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, done) = sample(
        &folder,
        &input,
        &["--bands", "0.2,0.6,0.99", "--each", "6", "--json"],
    );
    let answer = done.json();
    let rows = answer["bands"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["pairs"], 0, "no pair is that alike");
    assert_eq!(
        (&rows[1]["drawn"], &rows[2]["drawn"]),
        (&Value::from(6), &Value::from(6))
    );
    done.says(&["fewer than 6 pairs", "0.99 or more (0)"]);
    let lines = json_lines(&std::fs::read(&pairs).unwrap());
    assert_eq!(lines.len(), 12);
    // The sample does not depend on the order of the input.
    let text = std::fs::read_to_string(&input).unwrap();
    let mut reversed: Vec<&str> = text.lines().collect();
    reversed.reverse();
    let other = folder.add("other.jsonl", reversed.join("\n"));
    let before = std::fs::read(&pairs).unwrap();
    sample(&folder, &other, &["--bands", "0.2,0.6,0.99", "--each", "6"]);
    assert_eq!(std::fs::read(&pairs).unwrap(), before);
    sample(
        &folder,
        &other,
        &[
            "--bands",
            "0.2,0.6,0.99",
            "--each",
            "6",
            "--sample-seed",
            "1",
        ],
    );
    assert_ne!(std::fs::read(&pairs).unwrap(), before);
    // If more pairs are requested than there are, all are taken, with a warning.
    let (_, all) = sample(&folder, &input, &["--bands", "0.2", "--each", "5000"]);
    all.says(&["fewer than 5000 pairs, all of which were taken"]);
    let refused = |flags: &[&str], words: &[&str]| {
        let mut command = lookalike("evaluate");
        command
            .arg("sample")
            .arg(&input)
            .arg("-o")
            .arg(folder.path("x"));
        let done = command.args(flags).finish();
        assert_ne!(done.status, Some(0));
        done.says(words);
    };
    refused(&["--bands", "5,3"], &["ascending"]);
    refused(&["--bands", "0.5"], &["whole number"]);
    refused(
        &["--sketch", "none", "--bands", "1"],
        &["no two of the 24 documents", "--bands"],
    );
}

/// Without a terminal, answers are lines of input. Pairs without an answer stay open, and the next run continues with them.
#[test]
fn answers_come_by_pipe_and_the_next_run_goes_on() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, _) = sample(&folder, &input, &["--bands", "0.2,0.6", "--each", "5"]);
    let answers = folder.path("labels.jsonl");
    let first = label(&input, &pairs, &answers).finish_with(b"true\nf\nu\nnonsense\nb\nunknown\n");
    assert_eq!(first.status, Some(0), "{}", first.err);
    assert!(
        first
            .text()
            .contains("3 of 10 pairs labelled: 1 true, 1 false, 1 unknown"),
        "{}",
        first.text()
    );
    assert!(first.text().contains("7 left"));
    first.says(&["near-duplicates?", "press t, f, u", "pair 1 of 10"]);
    assert!(!first.err.contains('\x1b'), "no colour in a pipe");
    // Simulate a crash in the middle of a line and of a character: the line is removed, and its pair is asked again.
    let whole = std::fs::read(&answers).unwrap();
    let mut torn = std::fs::OpenOptions::new()
        .append(true)
        .open(&answers)
        .unwrap();
    torn.write_all(b"{\"a\":\"d0\xc3").unwrap();
    drop(torn);
    let second = label(&input, &pairs, &answers)
        .arg("--json")
        .finish_with(b"t\nt\nt\nf\nf\nf\nt\n");
    second.says(&["cut short", "pair 4 of 10"]);
    assert_eq!(second.json()["left"], 0);
    assert!(std::fs::read(&answers).unwrap().starts_with(&whole));
    let third = label(&input, &pairs, &answers).finish_with(b"");
    assert!(third.text().contains("10 of 10"), "{}", third.text());

    // Unknown ones are counted apart, and bands are weighted.
    let mut labels = lookalike("evaluate");
    labels
        .arg("labels")
        .arg(&input)
        .arg("--labels")
        .arg(&answers);
    labels.args(["--shingle", "words:2"]);
    let text = labels.succeed();
    for words in [
        "1 unknown, not counted",
        "drawn by bands",
        "if all false",
        "0.2 to 0.6",
    ] {
        let words = words.replace("if all", "all");
        assert!(text.text().contains(&words), "{words}: {}", text.text());
    }
    let json = labels.arg("--json").succeed().json();
    assert_eq!(json["unknown"], 1);
    let curve = json["bands"]["curve"].as_array().unwrap();
    assert_eq!(curve.len(), 2);
    assert_eq!(curve[1]["recall"]["value"], 1.0);
}

#[test]
fn a_band_of_unknown_labels_was_wholly_false() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, _) = sample(&folder, &input, &["--bands", "0.2,0.6", "--each", "5"]);
    let mut judged = [false, true, true, true, true].into_iter();
    let labelled: String = json_lines(&std::fs::read(&pairs).unwrap())
        .into_iter()
        .map(|mut pair| {
            let is_first = pair["stratum"]["number"] == 1;
            pair["label"] = match is_first {
                true => Value::Null,
                false => judged.next().into(),
            };
            format!("{pair}\n")
        })
        .collect();
    let answers = folder.add("labels.jsonl", labelled);
    let mut labels = lookalike("evaluate");
    labels
        .arg("labels")
        .arg(&input)
        .arg("--labels")
        .arg(&answers);
    let text = labels.succeed();
    let told = "only unknown labels, so not in precision, recall and F1: 0.6 or more\n";
    assert!(text.text().contains(told), "{}", text.text());
    let json = labels.arg("--json").succeed().json();
    assert_eq!(json["bands"]["curve"][1]["precision"]["value"], 0.8);
}

#[cfg(unix)]
#[test]
fn labels_from_a_pipe_lost_their_bands() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, _) = sample(&folder, &input, &["--bands", "0.2,0.6", "--each", "5"]);
    let answers = folder.path("labels.jsonl");
    label(&input, &pairs, &answers).finish_with(b"t\nf\n");
    let mut labels = lookalike("evaluate");
    labels.arg("labels").arg(&input).arg("--json");
    labels.args(["--shingle", "words:2", "--labels", "/dev/stdin"]);
    let piped = labels.finish_with(&std::fs::read(&answers).unwrap());
    assert_eq!(piped.status, Some(0), "{}", piped.err);
    assert!(piped.json()["bands"].is_object(), "{}", piped.text());
}

#[test]
fn labels_of_another_sample_and_missing_documents_are_refused() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, _) = sample(&folder, &input, &["--bands", "0.2", "--each", "3"]);
    let answers = folder.path("labels.jsonl");
    label(&input, &pairs, &answers).finish_with(b"t\n");
    let kept = std::fs::read(&pairs).unwrap();
    sample(&folder, &input, &["--bands", "0.6", "--each", "3"]);
    label(&input, &pairs, &answers)
        .fail(1)
        .says(&["line 1", "another sample", "-o"]);
    std::fs::write(&pairs, kept).unwrap();
    let few = folder.records("few.jsonl", &[("d00", "one"), ("d01", "two")]);
    label(&few, &pairs, &answers)
        .fail(1)
        .says(&["no document has the id", "3 of 3 pairs"]);
    let wrong = folder.add("wrong.jsonl", "{\"a\":1}\n");
    label(&input, &wrong, &answers)
        .fail(1)
        .says(&["wrong.jsonl: line 1", "evaluate sample"]);
    let empty = folder.add("empty.jsonl", "");
    label(&input, &empty, &answers)
        .fail(1)
        .says(&["holds no pairs"]);
    // Put labels of two samples into one file.
    let mixed = std::fs::read_to_string(&answers).unwrap();
    let mut other: Value = serde_json::from_str(mixed.lines().next().unwrap()).unwrap();
    other["a"] = "d22".into();
    other["b"] = "d23".into();
    other["label"] = false.into();
    other["stratum"]["pairs"] = 9999.into();
    let mixed = folder.add("mixed.jsonl", format!("{mixed}{other}\n"));
    let mut labels = lookalike("evaluate");
    labels.arg("labels").arg(&input).arg("--labels").arg(&mixed);
    labels.fail(1).says(&["two samples are mixed"]);
}

/// Acts as a person at a terminal: single keys, colour, undo, a kill, and another run that continues.
#[cfg(unix)]
#[test]
fn a_person_labels_at_a_terminal() {
    let folder = Folder::new();
    let input = stories(&folder);
    let (pairs, _) = sample(&folder, &input, &["--bands", "0.2,0.6", "--each", "4"]);
    let answers = folder.path("labels.jsonl");
    let mut python = Command::new("python3");
    python.arg("-").arg(env!("CARGO_BIN_EXE_lookalike"));
    python
        .args([&input, &pairs, &answers])
        .stdin(Stdio::piped());
    let done = python.finish_with(include_bytes!("label_terminal.py"));
    assert_eq!(done.status, Some(0), "{}{}", done.text(), done.err);
    let said: Vec<Value> = json_lines(&std::fs::read(&answers).unwrap());
    let said: Vec<&Value> = said.iter().map(|line| &line["label"]).collect();
    let (yes, no) = (Value::from(true), Value::from(false));
    assert_eq!(said, [&yes, &Value::Null, &no, &yes, &yes, &no, &no, &yes]);
}
