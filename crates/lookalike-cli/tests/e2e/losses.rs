//! Unreadable input is never silent: the exit status reports it, and `--max-skipped` limits how much is acceptable.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Finish, Folder, Numbers, contents, json_lines, lookalike, record};

/// Returns the commands that read documents, each with the options that it needs.
pub(crate) fn readers(folder: &Folder, input: &Path) -> Vec<Command> {
    let out = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let flags: [(&str, Vec<String>); 8] = [
        (
            "dedup",
            vec!["--overwrite".into(), "-o".into(), out("dedup")],
        ),
        ("pairs", vec![]),
        ("extract", vec!["-o".into(), out("texts.jsonl")]),
        ("fingerprint", vec!["-o".into(), out("codes.lkfp")]),
        ("terms", vec!["-o".into(), out("terms")]),
        ("overlap", vec![]),
        (
            "overlap",
            vec!["--overwrite".into(), "-o".into(), out("atlas")],
        ),
        ("evaluate", vec!["--method".into(), "simhash".into()]),
    ];
    let command = |(name, flags): (&str, Vec<String>)| {
        let mut command = lookalike(name);
        command.args((name == "evaluate").then_some("audit"));
        command.arg(input).args(flags);
        command
    };
    flags.into_iter().map(command).collect()
}

/// Returns records of 30 words that do not resemble each other.
fn lines(count: usize) -> String {
    let mut numbers = Numbers(7);
    let line = |number: usize| record(&number.to_string(), &numbers.words(30, 100_000));
    (0..count).map(line).collect()
}

/// Writes a gzip file of 200 records that is truncated.
fn cut_off(folder: &Folder, name: &str) -> PathBuf {
    cut_off_text(folder, name, &lines(200))
}

/// Writes a truncated gzip file of this text.
fn cut_off_text(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    folder.add(name, &packed[..packed.len() * 9 / 10])
}

#[test]
fn a_file_of_which_no_line_can_be_read_is_not_status_0() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", "nonsense\n".repeat(3));
    for mut command in readers(&folder, &input) {
        command.lose().says(&["3 records or files", "line 1"]);
    }
    let input = folder.add("in.jsonl", lines(3) + "nonsense\n");
    let mut command = lookalike("pairs");
    let told = command.arg(&input).lose();
    told.says(&["done, but 1 record or file could not be read: ", "line 4"]);
}

#[test]
fn a_gzip_file_that_breaks_off_is_not_status_0() {
    let folder = Folder::new();
    let input = cut_off(&folder, "in.jsonl.gz");
    for mut command in readers(&folder, &input) {
        command.lose().says(&["in.jsonl.gz", "ends early"]);
    }
    let run: Value = serde_json::from_slice(&contents(&folder.path("dedup/run.json"))).unwrap();
    assert!(run["counts"]["documents"].as_u64().unwrap() > 100, "{run}");
    assert_eq!(run["skipped"][0]["loss"], "unknown", "{run}");
}

#[cfg(unix)]
#[test]
fn a_file_of_a_folder_that_cannot_be_opened_is_not_status_0() {
    let folder = Folder::new();
    folder.add("in/a.jsonl", lines(10));
    std::os::unix::fs::symlink("nowhere", folder.path("in/b.jsonl")).unwrap();
    for mut command in readers(&folder, &folder.path("in")) {
        command.lose().says(&["b.jsonl", "No such file"]);
        command
            .arg("--strict")
            .fail(1)
            .says(&["b.jsonl", "--strict"]);
    }
}

#[test]
fn a_strict_evaluation_read_on_after_a_record_that_it_cannot_read() {
    let folder = Folder::new();
    let first = folder.add("a.jsonl", lines(3) + "[1]\n");
    // Longer than a chunk. Its kind of loss comes before that of the other file, whose loss comes first.
    let second = folder.add("b.jsonl", lines(100_000) + "nonsense\n");
    let mut command = lookalike("evaluate");
    command.arg("audit").args([&first, &second]);
    let stopped = command.args(["--method", "simhash", "--strict"]).fail(1);
    stopped.says(&["a.jsonl, line 4", "--strict"]);
}

/// Files that nobody asked for are listed and have no other effect.
#[test]
fn what_a_walk_passes_over_is_no_loss() {
    let folder = Folder::new();
    folder.add("in/a.jsonl", lines(10));
    folder.add("in/.hidden", "x");
    folder.add("in/photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    for mut command in readers(&folder, &folder.path("in")) {
        command.succeed();
        command.arg("--strict").succeed();
    }
    let skipped = json_lines(&contents(&folder.path("dedup/skipped.jsonl")));
    assert_eq!(skipped.len(), 2, "{skipped:?}");
}

#[test]
fn losses_that_are_bearable_are_status_0_and_one_more_fails_without_results() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", lines(98) + "nonsense\n" + "[1]\n");
    for enough in ["2", "2%"] {
        for mut command in readers(&folder, &input) {
            command.args(["--max-skipped", enough]).succeed();
        }
    }
    let results = ["dedup", "texts.jsonl", "codes.lkfp", "terms", "atlas"];
    let results = results.map(|name| folder.path(name));
    for result in &results {
        let removed = std::fs::remove_file(result).or_else(|_| std::fs::remove_dir_all(result));
        removed.unwrap();
    }
    for too_few in ["1", "0", "1.9%"] {
        for mut command in readers(&folder, &input) {
            command.args(["--max-skipped", too_few]).fail(1).says(&[
                "2 of 100",
                "in.jsonl, line",
                "repair",
                "--max-skipped",
            ]);
        }
    }
    for result in results {
        let is_there = result.is_file() || result.join("run.json").exists();
        assert!(!is_there, "{}", result.display());
    }
    for wrong in ["some", "-1", "101%"] {
        let mut command = lookalike("pairs");
        command.arg(&input).arg(format!("--max-skipped={wrong}"));
        command.fail(2).says(&["0.1%"]);
    }
}

/// The number of records after the damage is unknown, so no percentage covers it.
#[test]
fn a_percentage_never_bears_a_file_that_breaks_off() {
    let folder = Folder::new();
    let input = cut_off(&folder, "in.jsonl.gz");
    let pairs = |most: &str| {
        let mut command = lookalike("pairs");
        command.arg(&input).args(["--max-skipped", most]);
        command
    };
    // "1 of 300, more than the limit of 99%" contradicted itself.
    let said = pairs("99%").fail(1);
    said.says(&[
        "a share of 99% cannot be checked: ",
        ": it is unknown how many records are missing there",
        "--max-skipped N",
    ]);
    assert!(!said.err.contains("more than"), "{}", said.err);
}

/// Returns a record of a web archive.
fn archived(number: usize, length: usize) -> String {
    let text = format!("{:length$}", Numbers(number as u64).words(30, 100_000));
    format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/{number}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n\r\n{text}\r\n\r\n"
    )
}

#[test]
fn a_file_that_broke_off_was_two_losses() {
    let folder = Folder::new();
    let rows = |from: &str| from.lines().map(str::to_owned).collect::<Vec<_>>();
    let array = format!("[{}]", rows(&lines(200)).join(",\n"));
    let table: String = (0..200)
        .map(|number| format!("{number},\"{}\"\n", Numbers(number).words(30, 100_000)))
        .collect();
    let archive: String = (0..200).map(|number| archived(number, 300)).collect();
    for (name, text) in [
        ("in.jsonl.gz", lines(200)),
        ("in.json.gz", array),
        ("in.csv.gz", "id,text\n".to_owned() + &table),
        ("in.warc.gz", archive),
    ] {
        let input = cut_off_text(&folder, name, &text);
        let mut command = lookalike("extract");
        command.arg(&input).args(["--max-skipped", "1"]);
        let read = command.succeed().lines().len();
        assert!((100..200).contains(&read), "{name}: {read}");
    }
    // The last record may be whole, although the checksum behind it is not.
    let whole = lines(20);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(whole.trim_end().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let input = folder.add("in.jsonl.gz", &packed[..packed.len() - 4]);
    let mut command = lookalike("extract");
    command.arg(&input).args(["--max-skipped", "1"]);
    assert_eq!(command.succeed().lines().len(), 20);
}

#[test]
fn a_percentage_bore_a_record_that_took_all_others_along() {
    let folder = Folder::new();
    let element = |number: usize| format!("{{\"id\":\"{number}\",\"text\":\"the text {number}\"}}");
    let elements = |between: &str| (1..50).map(element).collect::<Vec<_>>().join(between);
    let broken = "{\"id\":\"0\",\"text\":\"x\"]}";
    let pretty = |object: &str| object.replace('{', "{\n ").replace('}', "\n}");
    let table = |row: &str, last: &str| {
        let rows: String = (1..50)
            .map(|number| format!("{number},text {number}\n"))
            .collect();
        format!("id,text\n{row}\n{rows}{last}\n")
    };
    let between = "x".repeat(3 * archived(1, 300).len());
    for (name, text) in [
        ("open.csv", table("0,\"no end", "50,end")),
        ("stray.csv", table("0,\"no end", "50,an end\" here")),
        (
            "line.json",
            format!("[\n{broken},{},\n{}\n]", elements(","), element(50)),
        ),
        ("sequence.json", format!("{broken} {}", elements(" "))),
        ("joined.json", pretty(&format!("{broken}{}", elements("")))),
        ("over.warc", archived(1, 300) + &between + &archived(2, 300)),
    ] {
        let input = folder.add(name, text);
        let mut command = lookalike("extract");
        command.arg(&input).args(["--max-skipped", "99%"]);
        let said = command.fail(1);
        said.says(&[name, "a share of 99% cannot be checked"]);
    }
    // A record that is lost alone is a share.
    let alone = [element(1), element(2), broken.to_owned(), element(3)].join(",\n");
    let short = archived(1, 300).replace("Content-Length: 300", "Content-Length: 280");
    for (name, text) in [
        ("lines.json", format!("[\n{alone}\n]")),
        ("length.warc", archived(2, 300) + &short + &archived(3, 300)),
    ] {
        let input = folder.add(name, text);
        let mut command = lookalike("extract");
        command.arg(&input).lose().says(&["1 record"]);
        command.args(["--max-skipped", "50%"]).succeed();
    }
}

#[test]
fn texts_over_the_limit_were_not_told_by_fingerprint_terms_and_evaluate() {
    let folder = Folder::new();
    let long = record("long", &"word ".repeat(500));
    let input = folder.add("in.jsonl", lines(10) + &long + "{\"id\":\"none\"}\n");
    let told = ["without a text", "longer than --max-document"];
    for (name, out) in [("fingerprint", "codes.lkfp"), ("terms", "terms")] {
        let mut command = lookalike(name);
        command.arg(&input).args(["--max-document", "1K"]);
        command.arg("-o").arg(folder.path(out));
        command.succeed().says(&told);
        command.arg("--json");
        let summary = command.succeed().json();
        let counts = ["missing_text", "too_long"].map(|name| summary[name].as_u64());
        assert_eq!(counts, [Some(1); 2], "{summary}");
    }
    let mut audit = lookalike("evaluate");
    audit
        .arg("audit")
        .arg(&input)
        .args(["--max-document", "1K"]);
    audit.args(["--method", "simhash"]).succeed().says(&told);
}

/// Regression test: a damaged document was counted twice, as a record and as a file.
#[test]
fn a_damaged_document_is_one_loss() {
    let folder = Folder::new();
    cut_off(&folder, "in/page.html.gz");
    folder.add("in/other.txt", "another");
    let results = folder.dedup_with_losses(&folder.path("in"), &[]);
    assert_eq!(results.skipped.len(), 1, "{:?}", results.skipped);
}

#[test]
fn lines_that_are_no_fingerprints_are_not_status_0() {
    let folder = Folder::new();
    let good = json!({"id": "a", "fingerprint": "0000000000000001"});
    let codes = folder.add("f.jsonl", format!("{good}\n{{\"id\":\"b\"}}\n"));
    let commands = || {
        let mut join = lookalike("join");
        join.arg(&codes);
        let mut build = lookalike("index");
        build.arg("build").arg(&codes).arg("--overwrite");
        build.arg("-o").arg(folder.path("index"));
        let mut search = lookalike("index");
        search.arg("search").arg(folder.path("index")).arg(&codes);
        let mut import = lookalike("fingerprint");
        import.arg("--import").arg(&codes);
        let mut load = lookalike("store");
        load.arg("load")
            .arg(folder.path("store"))
            .arg("pages")
            .arg(&codes);
        [join, build, search, import, load]
    };
    for mut command in commands() {
        command.lose().says(&["line 2"]);
        command.arg("--strict").fail(1).says(&["line 2"]);
    }
    for mut command in commands() {
        command.args(["--max-skipped", "1"]).succeed();
    }
    for mut command in commands() {
        command
            .args(["--max-skipped", "0"])
            .fail(1)
            .says(&["line 2"]);
    }
}

#[test]
fn an_explanation_of_a_page_that_cannot_be_read_says_why() {
    let folder = Folder::new();
    let page = cut_off(&folder, "page.html.gz");
    let other = folder.add("other.txt", "another");
    let mut command = lookalike("explain");
    command.args([page, other]);
    command.fail(1).says(&["page.html.gz", "ends early"]);
}

#[test]
fn help_says_what_each_exit_status_means() {
    let said = lookalike("--help").succeed();
    let text = said.text();
    for words in ["Exit status:", "3 done, but", "--max-skipped"] {
        assert!(text.contains(words), "{text}");
    }
}
