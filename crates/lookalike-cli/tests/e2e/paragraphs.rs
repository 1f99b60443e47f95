//! Similar paragraphs (Yu, Hu and Zhang: similarity on full text and paragraphs), found by the commands.

use serde_json::{Value, json};

use crate::support::{Finish, Folder, contents, corpus, json_lines, lookalike, record};
use crate::typed_tables::read_parquet;

const BRIDGE: &str = "The old bridge over the river was closed to traffic on Monday morning after an engineer found two cracks in its third arch";

#[test]
fn pairs_of_paragraphs_name_documents_and_positions() {
    let folder = Folder::new();
    let edited = BRIDGE.replace("Monday", "Tuesday");
    let other = "Nobody knew anything about the weather of the following week, and nobody asked.";
    let docs = folder.add(
        "docs.jsonl",
        &(record(
            "a",
            &format!("Local news\n\n{other}\n\n{BRIDGE}\n\n{BRIDGE}"),
        ) + &record("b", &format!("{edited}\n{BRIDGE}\nLocal news"))
            + &record("c", "")),
    );
    let docs = docs.to_str().unwrap();
    let pairs = |flags: &[&str]| {
        let mut command = lookalike("pairs");
        command.args([docs, "--unit", "paragraphs"]).args(flags);
        command.args(["--shingle", "words:2", "--threshold", "0.6"]);
        command
    };
    let found = pairs(&["--json"]).succeed();
    let pair = |at: u32, to: u32, similarity: f64| json!({"a": "a", "a_position": at, "b": "b", "b_position": to, "similarity": similarity});
    let lines = found.lines();
    assert_eq!(lines[0], pair(0, 2, 1.0));
    // Two of 22 runs of two words differ. A paragraph that occurs twice in `a` counts once.
    assert_eq!(lines[1], pair(2, 0, 20.0 / 24.0));
    assert_eq!(lines[2], pair(2, 1, 1.0));
    assert_eq!(lines.len(), 3);
    let summary: Value = serde_json::from_str(&found.err).unwrap();
    assert_eq!(summary["pairs"], 3);
    let counts = &summary["paragraphs"];
    assert_eq!(
        (&counts["documents"], &counts["paragraphs"]),
        (&json!(3), &json!(6))
    );
    let blank = pairs(&["--paragraphs", "blank"]).succeed();
    // All of b is one paragraph of 27 runs of two words, 22 of which the bridge has.
    assert_eq!(blank.lines(), [pair(2, 0, 22.0 / 27.0)]);
    let told = pairs(&[]).succeed();
    assert!(
        told.err.contains("6 paragraphs in 3 documents"),
        "{}",
        told.err
    );
    // Write to a file, with the summary on standard output; then to a table, which has its columns even without pairs.
    let packed = folder.path("pairs.jsonl.gz");
    let summary = pairs(&["--json", "-o", packed.to_str().unwrap()])
        .succeed()
        .json();
    assert_eq!(summary["pairs"], 3);
    assert_eq!(json_lines(&contents(&packed)), lines);
    let lone = folder.add("lone.jsonl", record("a", BRIDGE));
    for (input, rows) in [(docs, 3), (lone.to_str().unwrap(), 0)] {
        let table = folder.path("pairs.parquet");
        let mut command = lookalike("pairs");
        command.args([input, "--unit", "paragraphs", "--shingle", "words:2"]);
        command.args(["--threshold", "0.6", "-o"]).arg(&table);
        command.succeed();
        let (found, ..) = read_parquet(&table);
        let fields = found.schema();
        let names: Vec<&str> = fields
            .fields()
            .iter()
            .map(|field| &**field.name())
            .collect();
        assert_eq!(names, ["a", "a_position", "b", "b_position", "similarity"]);
        assert_eq!(found.num_rows(), rows);
    }
    pairs(&["--across", "site"]).fail(2);
    pairs(&["--fields", "anchors:2"]).fail(2);
    lookalike("pairs")
        .args([docs, "--paragraphs", "lines"])
        .fail(2);
}

/// Filed revisions of a law share paragraphs; if each document were one paragraph, not all of them would.
#[test]
fn revisions_of_chinese_laws_share_paragraphs() {
    let (Some(docs), Some(versions)) = (
        corpus("zh-laws/docs.jsonl.gz"),
        corpus("zh-laws/versions.jsonl"),
    ) else {
        return;
    };
    let shared = |flags: &[&str]| {
        let mut command = lookalike("pairs");
        command.arg(&docs).args(["--unit", "paragraphs", "--quiet"]);
        let found = command
            .args(["--shingle", "chars:5", "--threshold", "0.8"])
            .args(flags)
            .succeed();
        let ends = |pair: &Value| {
            let text = |name: &str| pair[name].as_str().unwrap().to_owned();
            (text("a"), text("b"))
        };
        let all: std::collections::HashSet<(String, String)> =
            found.lines().iter().map(ends).collect();
        all
    };
    let (by_line, by_blank_line) = (shared(&[]), shared(&["--paragraphs", "blank"]));
    let (mut lines, mut blanks, mut close) = (0, 0, 0);
    for pair in json_lines(&contents(&versions)) {
        let text = |name: &str| pair[name].as_str().unwrap().to_owned();
        let mut ends = [text("a"), text("b")];
        ends.sort_unstable();
        let [a, b] = ends;
        let is_close = pair["j"].as_f64().is_some_and(|j| j >= 0.3);
        close += u32::from(is_close);
        lines += u32::from(is_close && by_line.contains(&(a.clone(), b.clone())));
        blanks += u32::from(is_close && by_blank_line.contains(&(a, b)));
    }
    assert!(close > 20, "the truth itself has changed: {close}");
    assert_eq!(lines, close, "all revisions share a paragraph");
    assert!(blanks < close, "{blanks}");
}
