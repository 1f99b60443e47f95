//! Results as Parquet: equal to the JSON lines for any order, memory and threads, and readable as input. `scripts/check_tables.py` checks with
//! another reader that they have the contents of the lines.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Finish, Folder, Numbers, STORY, lookalike};

const TABLES: [&str; 5] = [
    "kept.parquet",
    "removed.parquet",
    "clusters.parquet",
    "pairs.parquet",
    "skipped.parquet",
];

/// Writes 3,000 records with fields of many types, every third similar to another, in an order that depends on the seed.
fn collection(folder: &Folder, name: &str, seed: u64) -> PathBuf {
    let mut numbers = Numbers(5);
    let mut texts: Vec<String> = Vec::new();
    let mut lines: Vec<String> = (0..3_000)
        .map(|number| {
            let text = match number % 3 {
                2 => format!("{} more", texts[numbers.below(number)]),
                _ => numbers.words(60, 9_000),
            };
            texts.push(text.clone());
            let record = json!({"id": format!("d{number:04}"), "text": text, "size": number,
                "tags": vec!["a"; number % 3], "meta": {"score": 0.5, "n": number % 7}});
            format!("{record}\n")
        })
        .collect();
    Numbers(seed).shuffle(&mut lines);
    folder.add(name, lines.concat())
}

fn tables(input: &Path, out: &Path, flags: &[&str]) -> Value {
    let mut command = lookalike("dedup");
    command.arg(input).arg("-o").arg(out);
    command.args(["--output-format", "parquet", "--json"]);
    command.args(flags).succeed().json()
}

fn bytes(out: &Path) -> Vec<Vec<u8>> {
    TABLES
        .iter()
        .map(|name| fs::read(out.join(name)).unwrap())
        .collect()
}

#[test]
fn tables_are_the_same_bytes_for_any_order_memory_and_threads() {
    let folder = Folder::new();
    let first = folder.path("first");
    let summary = tables(
        &collection(&folder, "a.jsonl", 1),
        &first,
        &["--threads", "1"],
    );
    assert!(
        summary["decisions"]["removed_near"].as_u64().unwrap() > 500,
        "{summary}"
    );
    let other = folder.path("other");
    let input = collection(&folder, "b.jsonl", 2);
    tables(&input, &other, &["--threads", "2", "--memory", "64M"]);
    assert!(bytes(&first) == bytes(&other));
    let names: Vec<String> = fs::read_dir(&first)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        names.len(),
        TABLES.len() + 2,
        "and the page and run.json: {names:?}"
    );
}

#[test]
fn tables_are_input_again() {
    let folder = Folder::new();
    let input = collection(&folder, "a.jsonl", 1);
    let out = folder.path("out");
    let summary = tables(&input, &out, &[]);
    // Every record resembles one that was kept.
    let again = tables(
        &input,
        &folder.path("again"),
        &["--against", out.to_str().unwrap()],
    );
    assert_eq!(again["decisions"]["kept"], 0, "{again}");
    // Kept records are kept again, and the rows are the same.
    let kept = tables(&out.join("kept.parquet"), &folder.path("kept"), &[]);
    assert_eq!(kept["decisions"]["kept"], summary["decisions"]["kept"]);
    let same = fs::read(folder.path("kept").join("kept.parquet")).unwrap();
    assert!(same == fs::read(out.join("kept.parquet")).unwrap());
}

#[test]
fn files_are_copied_and_their_table_names_them() {
    let folder = Folder::new();
    folder.add("in/a.txt", STORY);
    folder.add("in/b.txt", STORY);
    let out = folder.path("out");
    tables(&folder.path("in"), &out, &[]);
    for folder in ["kept", "removed"] {
        assert!(out.join(folder).is_dir());
        assert!(out.join(format!("{folder}.parquet")).is_file());
    }
}

#[test]
fn nothing_read_still_makes_tables() {
    let folder = Folder::new();
    let out = folder.path("out");
    tables(&folder.add("empty.jsonl", ""), &out, &[]);
    assert!(bytes(&out).iter().all(|table| table.starts_with(b"PAR1")));
}

#[test]
fn records_that_are_no_table_are_refused_with_a_remedy() {
    let folder = Folder::new();
    let mut record: serde_json::Map<String, Value> =
        (0..1_000).map(|i| (format!("k{i}"), json!(i))).collect();
    record.insert("text".to_owned(), json!(STORY));
    let input = folder.add("wide.jsonl", format!("{}\n", Value::Object(record)));
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    command.args(["--output-format", "parquet"]);
    command
        .fail(1)
        .says(&["1000 columns", "--output-format jsonl"]);
    assert!(!folder.path("out/kept.parquet").exists());
}

#[test]
fn the_format_is_part_of_what_a_job_is() {
    let folder = Folder::new();
    let input = folder.records("a.jsonl", &[("a", STORY)]);
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    command.args(["--output-format", "parquet", "--compress", "gz"]);
    command.fail(2).says(&["--compress", "Parquet"]);
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    command.args(["--output-format", "orc"]);
    command.fail(2).says(&["orc", "jsonl or parquet"]);
    // Results in the other format count as results.
    tables(&input, &folder.path("out"), &[]);
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    command.fail(1).says(&["--overwrite", "kept.parquet"]);
    command.arg("--overwrite").succeed();
    assert!(!folder.path("out/kept.parquet").exists());
}

#[test]
fn the_atlas_has_tables_too() {
    let folder = Folder::new();
    let page = |server: &str, number: usize| {
        let text: Vec<String> = (0..9).map(|line| format!("{number} line {line}")).collect();
        let url = format!("http://{server}/{number}");
        format!(
            "{}\n",
            json!({"id": format!("{server}{number}"), "url": url, "text": text.join("\n")})
        )
    };
    let lines: String = ["a.example", "b.example"]
        .iter()
        .flat_map(|server| (0..5).map(move |number| page(server, number)))
        .collect();
    let input = folder.add("crawl.jsonl", lines);
    let out = folder.path("atlas");
    let mut command = lookalike("overlap");
    command.arg(&input).arg("-o").arg(&out);
    command.args(["--output-format", "parquet"]).succeed();
    for name in [
        "pairs",
        "copies",
        "servers",
        "mirrors",
        "mirror_pages",
        "aliases",
        "skip",
        "skipped",
    ] {
        let table = fs::read(out.join(format!("{name}.parquet"))).unwrap();
        assert!(table.starts_with(b"PAR1"), "{name}");
    }
    let mut command = lookalike("overlap");
    command.arg(&input).args(["--output-format", "parquet"]);
    command.fail(2);
}
