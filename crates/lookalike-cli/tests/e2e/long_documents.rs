//! Documents longer than `--max-document`: equal bytes are exact copies, and all others are kept.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, STORY, contents, json_lines, lookalike, pairs_of, record};

const MIB: usize = 1 << 20;

/// Returns a text of `bytes` bytes that ends with `last`.
fn long(bytes: usize, last: &str) -> String {
    let mut text = "all work and no play ".repeat(bytes / 21 + 1);
    text.truncate(bytes - last.len());
    text + last
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Checks that the counts of texts add up to the number of documents.
#[track_caller]
fn check_sum(run: &Value) {
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    let parts = ["distinct_texts", "repeated_texts", "empty", "too_long"];
    let sum: u64 = parts.into_iter().map(count).sum();
    assert_eq!(count("documents"), sum, "{}", run["counts"]);
}

/// Returns the names of all files below a folder.
fn files_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(files_in(&entry.path())),
            false => names.push(entry.file_name().into_string().unwrap()),
        }
    }
    names.sort_unstable();
    names
}

#[test]
fn long_files_of_equal_bytes_are_exact_copies() {
    let folder = Folder::new();
    let text = long(20 * MIB, "end");
    folder.add("in/a.txt", &text);
    folder.add("in/b.txt", &text);
    folder.add("in/c.txt.gz", gzip(text.as_bytes()));
    folder.add("in/other.txt", long(20 * MIB, "END"));
    folder.add("in/begins-alike.txt", long(21 * MIB, "end"));
    folder.add("in/story.txt", STORY);
    folder.add("in/story again.txt", STORY);
    for (number, flags) in [
        &["--threads", "1"][..],
        &["--threads", "4", "--method", "exact"],
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path(format!("out{number}"));
        let mut command = lookalike("dedup");
        command.arg(folder.path("in")).arg("-o").arg(&out);
        command.args(["--max-document", "1M", "--memory", "128M", "--json"]);
        let run = command.args(flags).succeed().json();
        assert_eq!(
            files_in(&out.join("removed")),
            ["b.txt", "c.txt.gz", "story.txt"]
        );
        assert_eq!(
            files_in(&out.join("kept")),
            ["a.txt", "begins-alike.txt", "other.txt", "story again.txt"]
        );
        assert_eq!(run["counts"]["too_long"], 5);
        assert_eq!(run["counts"]["without_features"], 0);
        assert_eq!(run["decisions"]["removed_exact"], 3);
        assert_eq!(run["decisions"]["removed_near"], 0);
        check_sum(&run);
        let results = Results::read(&out);
        let reasons = results.clusters.iter().flat_map(|cluster| &cluster.members);
        assert!(reasons.into_iter().all(|member| member.exact));
    }
}

#[test]
fn pairs_and_the_survivor_rules_know_long_files() {
    let folder = Folder::new();
    let text = long(2 * MIB, "end");
    for name in ["a.txt", "b.txt", "c.txt"] {
        folder.add(format!("in/{name}"), &text);
    }
    folder.add("in/d.txt", long(2 * MIB, "END"));
    let mut pairs = lookalike("pairs");
    pairs.arg(folder.path("in")).args(["--max-document", "1M"]);
    let done = pairs.succeed();
    done.says(&["4 longer than --max-document: compared for equal bytes only"]);
    let name = |name: &str| folder.path("in").join(name).display().to_string();
    let found: Vec<_> = pairs_of(&done.lines(), "similarity").into_iter().collect();
    let pair = |a: &str, b: &str| ((name(a), name(b)), 1.0);
    let wanted = [
        pair("a.txt", "b.txt"),
        pair("a.txt", "c.txt"),
        pair("b.txt", "c.txt"),
    ];
    assert_eq!(found, wanted);
    // Documents given with --against survive.
    let out = folder.path("out");
    let mut dedup = lookalike("dedup");
    dedup
        .arg(folder.path("in/a.txt"))
        .arg(folder.path("in/d.txt"));
    dedup.arg("--against").arg(folder.path("in/c.txt"));
    dedup.arg("-o").arg(&out).args(["--max-document", "1M"]);
    dedup.succeed();
    assert_eq!(files_in(&out.join("removed")), ["a.txt"]);
    assert_eq!(files_in(&out.join("kept")), ["d.txt"]);
}

/// Tests lines that the reader never holds in memory, lines that it does hold, and one that is just too long.
#[test]
fn long_lines_of_equal_bytes_are_exact_copies_however_they_end() {
    let folder = Folder::new();
    for bytes in [1_025, 1_026, 3 * MIB] {
        let line = |last: &str| {
            let line = record("same", &long(bytes - 23, last));
            assert_eq!(line.len(), bytes + 1);
            line.trim_end().to_owned()
        };
        let (same, other) = (line("end"), line("END"));
        let story = record("story", STORY);
        let first = format!("{same}\n{story}{other}\r\n{same}\r\n{story}{same}");
        folder.add("in/first.jsonl", &first);
        folder.add("in/second.jsonl", format!("{same}\n"));
        let results = folder.dedup(
            &folder.path("in"),
            &["--max-document", "1K", "--order", "input"],
        );
        assert_eq!(results.count("counts", "too_long"), 5, "{bytes}");
        assert_eq!(results.count("decisions", "removed_exact"), 4, "{bytes}");
        check_sum(&results.run);
        let all = [
            same.clone(),
            story.clone(),
            other,
            same.clone(),
            story,
            same.clone(),
            same,
        ];
        let line = |at: usize| all[at].trim_end().as_bytes().to_vec();
        let trimmed = |lines: &[Vec<u8>]| -> Vec<Vec<u8>> {
            lines
                .iter()
                .map(|line| line.trim_ascii_end().to_vec())
                .collect()
        };
        assert!(trimmed(&results.kept) == [0, 1, 2].map(line), "{bytes}");
        assert!(
            trimmed(&results.removed) == [3, 4, 5, 6].map(line),
            "{bytes}"
        );
    }
}

#[test]
fn long_elements_of_an_array_and_long_rows_of_equal_bytes_are_exact_copies() {
    let folder = Folder::new();
    let text = long(700_000, "end");
    let element = |text: &str| json!({"id": "same", "text": text});
    let array = json!([
        element(&text),
        element(STORY),
        element(&long(700_000, "END")),
        element(&text)
    ]);
    let pretty = folder.add("in.json", serde_json::to_string_pretty(&array).unwrap());
    let row = |text: &str, more: &str| format!("same,\"{text}\",{more}\n");
    let rows = [
        "id,text,more\n".to_owned(),
        row(&text, "x"),
        row(STORY, ""),
        row(&text, "y"),
        // The same bytes, divided into other fields.
        row(&text[1..], "x").replacen("same", "samea", 1),
        row(&text, "x"),
    ];
    let table = folder.add("in.csv", rows.concat());
    for (input, long, removed) in [(pretty, 3, 1), (table, 4, 1)] {
        let results = folder.dedup(&input, &["--max-document", "100K"]);
        assert_eq!(
            results.count("counts", "too_long"),
            long,
            "{}",
            input.display()
        );
        assert_eq!(
            results.count("decisions", "removed_exact"),
            removed,
            "{}",
            input.display()
        );
        check_sum(&results.run);
    }
}

#[test]
#[cfg(feature = "parquet")]
fn long_texts_of_a_parquet_table_are_copies_whatever_else_their_rows_hold() {
    let folder = Folder::new();
    let (text, other) = (long(300_000, "end"), long(300_000, "END"));
    let rows = [("1", &*text), ("2", &other), ("3", &text), ("4", STORY)];
    let lines = folder.records("in.jsonl", &rows);
    let tables = folder.path("tables");
    let mut command = lookalike("dedup");
    command.arg(lines).arg("-o").arg(&tables);
    command.args(["--method", "exact", "--output-format", "parquet"]);
    command.succeed();
    // The tables have all rows but one copy, and that copy.
    let input = folder.path("rows");
    fs::create_dir(&input).unwrap();
    for name in ["kept.parquet", "removed.parquet"] {
        fs::copy(tables.join(name), input.join(name)).unwrap();
    }
    let results = folder.dedup(
        &input,
        &["--max-document", "100K", "--output-format", "jsonl"],
    );
    assert_eq!(results.count("counts", "too_long"), 3);
    assert_eq!(results.removed_ids(), ["3"]);
    check_sum(&results.run);
}

#[test]
fn long_pages_of_an_archive_are_copies_by_their_bodies() {
    let folder = Folder::new();
    let page = |url: &str, date: &str, text: &str| {
        let block = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nDate: {date}\r\n\r\n<p>{text}</p>"
        );
        let length = block.len();
        format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-06T07:08:09Z\r\n\
             Content-Type: application/http\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
        )
    };
    // The longer body is never completely in memory.
    for bytes in [30_000, 300_000] {
        let text = long(bytes, "end");
        let crawl = [
            page("http://a.example/", "monday", &text),
            page("http://b.example/", "tuesday", &text),
            page("http://c.example/", "monday", &long(bytes, "END")),
            page("http://d.example/", "monday", STORY),
        ];
        let input = folder.add("crawl.warc", crawl.concat());
        let out = folder.path("out");
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(&out).arg("--overwrite");
        command.args(["--max-document", "20K"]).succeed();
        let clusters = json_lines(&contents(&out.join("clusters.jsonl")));
        assert_eq!(clusters.len(), 1, "{bytes}");
        assert_eq!(clusters[0]["survivor"], "http://a.example/", "{bytes}");
        assert_eq!(
            clusters[0]["members"][0]["id"], "http://b.example/",
            "{bytes}"
        );
        assert_eq!(clusters[0]["members"][0]["reason"], "exact", "{bytes}");
    }
}

#[test]
fn long_documents_obey_categories() {
    let folder = Folder::new();
    let text = long(300_000, "end");
    let line = |site: &str| {
        format!(
            "{}\n",
            json!({"url": format!("https://{site}/"), "text": text})
        )
    };
    let lines = folder.add(
        "in.jsonl",
        [line("a.example"), line("a.example"), line("b.example")].concat(),
    );
    // A line that is not parsed has no category, so it cannot differ in it.
    let results = folder.dedup(&lines, &["--max-document", "1K", "--across", "site"]);
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    let results = folder.dedup(&lines, &["--max-document", "1M", "--across", "site"]);
    assert_eq!(results.count("decisions", "removed_exact"), 1);
    let results = folder.dedup(&lines, &["--max-document", "1K", "--within", "site"]);
    assert_eq!(results.count("decisions", "removed_exact"), 1);
}

#[test]
fn a_long_file_that_is_cut_short_is_told_and_a_bomb_is_kept_unread() {
    let folder = Folder::new();
    let packed = gzip(long(3 * MIB, "end").as_bytes());
    folder.add("in/whole.txt.gz", &packed);
    folder.add("in/cut.txt.gz", &packed[..packed.len() - 9]);
    let zeros = vec![b'0'; 64 * MIB];
    let bomb = zstd::encode_all(&zeros[..], 3).unwrap();
    folder.add("in/bomb.txt.zst", &bomb);
    folder.add("in/bomb again.txt.zst", &bomb);
    folder.add("in/story.txt", STORY);
    let results = folder.dedup_with_losses(&folder.path("in"), &["--max-document", "1M"]);
    assert_eq!(results.skipped.len(), 1);
    assert_eq!(results.skipped[0]["kind"], "damaged");
    assert_eq!(results.count("counts", "too_long"), 3);
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    check_sum(&results.run);
}
