//! `--against` if old and new documents are in the same folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::results::Results;
use crate::scope::mixed;
use crate::support::{Finish, Folder, STORY, json_lines, lookalike, record};

const FAR: &str =
    "the council met on tuesday and talked about the new bridge over the river for hours";

fn dedup(folder: &Folder, input: &Path, against: &Path) -> std::process::Command {
    let mut command = lookalike("dedup");
    command.arg(input).arg("--against").arg(against);
    command.arg("-o").arg(folder.path("out")).arg("--overwrite");
    command
}

/// Regression test: every file of the old folder was read twice, the second time as a new document that is a copy of itself.
#[test]
fn what_is_compared_with_is_left_out_of_the_input_that_holds_it() {
    let folder = Folder::new();
    folder.add("all/old/a.txt", STORY);
    folder.add("all/old/b.txt", FAR);
    folder.add("all/old/report.docx", b"PK\x03\x04 no text");
    folder.add("all/new/c.txt", STORY);
    folder.add(
        "all/new/d.txt",
        "something else that nobody has said before in so many words",
    );
    let done = dedup(&folder, &folder.path("all"), &folder.path("all/old")).succeed();
    done.says(&[
        "2 files of the input are also given with --against",
        "not written",
    ]);
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.count("counts", "documents"), 4);
    assert_eq!(results.count("counts", "against"), 2);
    assert_eq!(results.count("decisions", "kept"), 1);
    assert_eq!(results.count("decisions", "removed_exact"), 1);
    let told: Vec<&str> = results
        .skipped
        .iter()
        .filter(|row| row["kind"] == "duplicate")
        .map(|row| row["reason"].as_str().unwrap())
        .collect();
    let reason = "also given with --against: only compared with, not written";
    assert_eq!(told, [reason, reason]);
    assert!(!folder.path("out/skipped").exists());
    let removed = json_lines(&fs::read(folder.path("out/removed.jsonl")).unwrap());
    assert!(removed[0]["id"].as_str().unwrap().ends_with("new/c.txt"));
}

#[test]
fn a_file_is_known_by_every_path_that_leads_to_it() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    let new = folder.records("new.jsonl", &[("b", STORY), ("c", FAR)]);
    let other_path = folder.path("./x/../old.jsonl");
    fs::create_dir(folder.path("x")).unwrap();
    let mut command = dedup(&folder, &new, &other_path);
    command
        .arg(&old)
        .succeed()
        .says(&["1 file of the input is also given"]);
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.removed_ids(), ["b"]);
    assert_eq!(results.kept_ids(), ["c"]);
    let refused = dedup(&folder, &old, &folder.path("old.jsonl")).fail(2);
    refused.says(&["all of the input is also given with --against"]);
    // If nothing is in both, there is no message.
    let done = dedup(&folder, &new, &old).succeed();
    assert!(!done.err.contains("of the input"), "{}", done.err);
}

#[test]
fn standard_input_was_read_for_one_side_and_lost_for_the_other() {
    let folder = Folder::new();
    let out = folder.path("out");
    let mut dedup = lookalike("dedup");
    dedup.args(["-", "--against", "-", "-o"]).arg(&out);
    let mut links = lookalike("links");
    links.args(["-", "--from", "-"]);
    let mut pairs = lookalike("pairs");
    pairs.args(["-", "-"]);
    for mut command in [dedup, links, pairs] {
        let done = command.finish_with(record("a", STORY).as_bytes());
        assert_eq!(done.status, Some(2), "{}", done.err);
        done.says(&[
            "standard input is named more than once",
            "save it to a file",
        ]);
    }
    assert!(!out.exists());
}

#[test]
fn an_earlier_and_a_new_document_of_one_id_could_not_be_told_apart() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY), ("z", FAR)]);
    let new = [
        ("a", STORY),
        ("b", &*format!("{STORY} indeed")),
        ("c", FAR),
        ("d", "!!!"),
        ("e", "!!!"),
    ];
    let new = folder.records("new.jsonl", &new);
    for pairs in ["all", "deciding"] {
        dedup(&folder, &new, &old)
            .args(["--pairs", pairs])
            .succeed();
        let lines = |name: &str| json_lines(&fs::read(folder.path("out").join(name)).unwrap());
        let clusters = lines("clusters.jsonl");
        let told =
            |cluster: &serde_json::Value| (cluster["survivor"].clone(), cluster["against"].clone());
        let clusters: Vec<_> = clusters.iter().map(told).collect();
        assert_eq!(
            clusters,
            [
                ("a".into(), true.into()),
                ("z".into(), true.into()),
                ("d".into(), ().into())
            ]
        );
        for pair in lines("pairs.jsonl") {
            let is_old = |side: &str| pair["against"] == side;
            match (pair["a"].as_str().unwrap(), pair["b"].as_str().unwrap()) {
                ("a", "a" | "b") => assert!(is_old("a") || pairs == "all", "{pair}"),
                ("c", "z") => assert!(is_old("b"), "{pair}"),
                ("d", "e") => assert!(pair.get("against").is_none(), "{pair}"),
                _ => panic!("{pair}"),
            }
        }
    }
}

#[test]
fn a_missing_directory_was_created_for_the_results_and_found_empty() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let new = folder.path("new");
    let mut against = lookalike("dedup");
    against.arg(&input).arg("--against").arg(&new);
    let mut read = lookalike("dedup");
    read.arg(&new);
    for mut command in [against, read] {
        let refused = command.arg("-o").arg(folder.path("./new/")).fail(1);
        refused.says(&["new: no such file or directory"]);
        assert!(!new.exists());
    }
}

#[test]
fn a_file_in_place_of_a_collection_was_a_matter_of_permissions() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let before = fs::read(&input).unwrap();
    let mut command = lookalike("dedup");
    command.arg(&input).arg("--into").arg(&input);
    let refused = command.arg("-o").arg(folder.path("out")).fail(1);
    refused.says(&["in.jsonl: is a file, not the directory of a collection"]);
    assert!(!refused.err.contains("permissions"), "{}", refused.err);
    assert_eq!(fs::read(&input).unwrap(), before);
    assert!(!folder.path("out").exists());
}

/// Regression test: new documents were compared with earlier ones that do not have the named field, and all of them were kept.
#[test]
fn earlier_documents_without_the_field_of_the_text_equalled_nothing() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    let new = folder.add(
        "new.jsonl",
        format!("{{\"id\":\"b\",\"body\":\"{STORY}\"}}\n"),
    );
    let mut by_body = dedup(&folder, &new, &old);
    by_body.args(["--text", "body"]).fail(1).says(&[
        "the only record does not have a value in the field body",
        "these are only compared with, and the first record has the fields id, text",
        "name one that records have with --text",
    ]);
    // Earlier documents may all be empty, and a file without records has no fields.
    for earlier in ["{\"id\":\"a\",\"body\":null}\n", ""] {
        let old = folder.add("empty.jsonl", earlier);
        let mut command = dedup(&folder, &new, &old);
        command.args(["--text", "body"]).succeed();
    }
    // One of the named fields is enough.
    let mut by_both = dedup(&folder, &new, &old);
    by_both.args(["--text", "body,text"]).succeed();
    assert_eq!(
        Results::read(&folder.path("out")).count("decisions", "removed_exact"),
        1
    );
}

/// `pairs --against` lists what `dedup --against --pairs all` lists: of all pairs those with a new document.
#[test]
fn pairs_of_two_sets_had_no_command() {
    let folder = Folder::new();
    let (all, _) = mixed(&folder);
    let text = fs::read_to_string(&all).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let old = folder.add("old.jsonl", lines[..140].join("\n"));
    let new = folder.add("new.jsonl", lines[140..].join("\n"));
    let options = ["--threshold", "0.7"];
    let seen = folder.path("seen");
    let mut build = lookalike("collection");
    build
        .arg("build")
        .arg(&seen)
        .arg(&old)
        .args(options)
        .succeed();
    let mut job = lookalike("dedup");
    // Keeps all, so that its results stand for the same documents.
    job.arg(&old)
        .args(["--within", "id", "-o"])
        .arg(folder.path("kept"))
        .succeed();
    let pairs = |inputs: &[&Path]| {
        let mut command = lookalike("pairs");
        command.args(inputs).args(options).arg("-q");
        command.succeed().lines()
    };
    let is_old = |id: &serde_json::Value| id.as_str().unwrap() < "d140";
    let mut expected: BTreeMap<String, f64> = BTreeMap::new();
    for pair in pairs(&[&all]) {
        if !is_old(&pair["a"]) || !is_old(&pair["b"]) {
            expected.insert(
                format!("{} {}", pair["a"], pair["b"]),
                pair["similarity"].as_f64().unwrap(),
            );
        }
    }
    for against in [&old, &folder.path("kept"), &seen] {
        let found = pairs(&[&new, Path::new("--against"), against]);
        for pair in &found {
            let sides = [is_old(&pair["a"]), is_old(&pair["b"])];
            let side = ["a", "b"]
                .into_iter()
                .zip(sides)
                .find(|(_, is_old)| *is_old);
            assert_eq!(
                pair.get("against").and_then(|side| side.as_str()),
                side.map(|(side, _)| side)
            );
        }
        let by_ids = found.iter().map(|pair| {
            let similarity = pair["similarity"].as_f64().unwrap();
            (format!("{} {}", pair["a"], pair["b"]), similarity)
        });
        assert_eq!(
            by_ids.collect::<BTreeMap<_, _>>(),
            expected,
            "{}",
            against.display()
        );
        dedup(&folder, &new, against)
            .args(options)
            .args(["--pairs", "all"])
            .succeed();
        let listed = fs::read(folder.path("out/pairs.jsonl")).unwrap();
        assert_eq!(json_lines(&listed), found, "{}", against.display());
    }
    let mut command = lookalike("pairs");
    command.arg(&new).arg("--against").arg(&old);
    command
        .args(["--unit", "paragraphs"])
        .fail(2)
        .says(&["--against compares whole documents"]);
}
