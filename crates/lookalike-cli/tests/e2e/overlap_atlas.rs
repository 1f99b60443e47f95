//! `lookalike overlap -o`: replicas, savings, mirrors, aliases, the skip list, the page; reranking and near copies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Finish, Folder, Numbers, contents, json_lines, lookalike, parsed, record};

const FILES: [&str; 8] = [
    "pairs.jsonl",
    "copies.jsonl",
    "servers.jsonl",
    "mirrors.jsonl",
    "mirror_pages.jsonl",
    "aliases.jsonl",
    "skip.jsonl",
    "skipped.jsonl",
];

/// Returns a page of twelve lines that depend on `seed`; `changed` replaces the first line.
fn page(seed: usize, changed: bool) -> String {
    let mut lines: Vec<String> = (0..12)
        .map(|line| format!("page {seed} line {line}"))
        .collect();
    if changed {
        lines[0] = format!("page {seed} in a new version");
    }
    lines.join("\n")
}

/// Regression test: the folder remained, with an empty `.lookalike` in it.
#[test]
fn a_job_that_fails_before_it_has_read_leaves_no_folder_and_old_results_as_they_were() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("a", &*page(1, false)), ("b", &page(1, true))],
    );
    let out = folder.path("atlas");
    let overlap = |flags: &[&str]| {
        let mut overlap = lookalike("overlap");
        overlap.arg(&input).arg("-o").arg(&out).args(flags);
        overlap
    };
    let broken = folder.add("broken.jsonl", "no json\n");
    overlap(&["--id", "name"])
        .fail(1)
        .says(&["as id name requires", "--id"]);
    assert!(!out.exists());
    overlap(&["--strict"]).arg(&broken).fail(1);
    assert!(!out.exists());
    overlap(&[]).succeed();
    let run = contents(&out.join("run.json"));
    overlap(&["--id", "name", "--overwrite"]).fail(1);
    assert_eq!(contents(&out.join("run.json")), run);
    assert!(!out.join(".lookalike").exists());
}

/// Writes a manual on three servers, one of which has a new version of half of its pages; an alias; a page under two URLs; pages of single servers; a
/// page without a server.
fn crawl(folder: &Folder) -> PathBuf {
    let mut lines = Vec::new();
    let mut add = |id: String, url: Option<String>, text: String| {
        lines.push(json!({"id": id, "url": url, "text": text}))
    };
    for (server, changed) in [
        ("a.example", false),
        ("b.example", false),
        ("c.example", true),
        ("www.a.example", false),
    ] {
        for number in 0..10 {
            let url = format!("http://{server}/manual/{number}.html");
            let changed = changed && number < 5;
            add(
                format!("{server}-{number}"),
                Some(url),
                page(number, changed),
            );
        }
    }
    for number in 0..4 {
        add(
            format!("b-own-{number}"),
            Some(format!("http://b.example/own/{number}")),
            page(100 + number, false),
        );
        add(
            format!("c-own-{number}"),
            Some(format!("http://c.example/own/{number}")),
            page(200 + number, false),
        );
    }
    add(
        "twice".into(),
        Some("http://b.example/".into()),
        page(100, false),
    );
    add("nowhere".into(), None, page(300, false));
    add(
        "empty".into(),
        Some("http://c.example/empty".into()),
        " ".into(),
    );
    folder.add(
        "crawl.jsonl",
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
}

fn atlas(input: &Path, out: &Path, flags: &[&str]) -> Value {
    command(input, out, flags).succeed();
    serde_json::from_slice(&contents(&out.join("run.json"))).unwrap()
}

fn command(input: &Path, out: &Path, flags: &[&str]) -> Command {
    let least = [
        "--chunk",
        "doc,lines:4,lines:1",
        "--min-shared",
        "2,doc=1,lines:1=6",
    ];
    let mut command = lookalike("overlap");
    command.arg(input).arg("-o").arg(out).args(least);
    command.args(["--quiet"]).args(flags);
    command
}

fn stable(out: &Path) -> Vec<Vec<u8>> {
    FILES.iter().map(|name| contents(&out.join(name))).collect()
}

#[test]
fn the_atlas_of_a_mirrored_manual() {
    let folder = Folder::new();
    let (input, out) = (crawl(&folder), folder.path("out"));
    let run = atlas(&input, &out, &[]);
    let read = |name: &str| json_lines(&contents(&out.join(name)));

    // 10 pages are on 3 servers, 5 of them also on c; one page is on b twice.
    let copies = read("copies.jsonl");
    assert_eq!(copies.len(), 11);
    assert_eq!(
        copies[0],
        json!({"id": "a.example-0", "copies": ["b.example-0", "www.a.example-0"], "urls": ["http://a.example/manual/0.html", "http://b.example/manual/0.html", "http://www.a.example/manual/0.html"], "bytes": page(0, false).len()})
    );
    assert_eq!(
        (&run["shared_texts"], &run["counts"]["repeated_texts"]),
        (&json!(11), &json!(26))
    );

    let levels = run["levels"].as_array().unwrap();
    let replicas = |level: usize| {
        let classes = levels[level]["replicas"].as_array().unwrap().iter();
        classes
            .map(|class| class["documents"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    // Unique are 5 new versions, 3 + 4 pages of single servers, the one without a server and the empty one. 5 pages are on three servers and 5 on
    // four.
    assert_eq!(replicas(0), [14, 2, 35, 0, 0, 0]);
    // By lines, the 5 new versions are replicas of pages on 3 other servers.
    assert_eq!(replicas(3), [9, 2, 40, 0, 0, 0]);
    assert_eq!(levels[0]["visits_saved"], 26);
    assert_eq!(levels[3]["visits_saved"], 31);
    assert_eq!(replicas(1), replicas(0), "whole documents are equal texts");

    let mirrors = read("mirrors.jsonl");
    assert_eq!(mirrors.len(), 1);
    assert_eq!(mirrors[0]["pages"], 10);
    assert_eq!(
        mirrors[0]["core"],
        json!(["a.example", "b.example", "c.example", "www.a.example"])
    );
    assert_eq!(mirrors[0]["approximate"], json!([]));
    assert_eq!(
        (&mirrors[0]["servers"], &mirrors[0]["held"]),
        (&json!(4), &json!(40))
    );
    assert_eq!(
        read("mirror_pages.jsonl")[0],
        json!({"set": 1, "url": "http://a.example/manual/0.html", "servers": 4, "share": 1.0})
    );
    assert_eq!(mirrors[0]["examples"][0], "http://a.example/manual/0.html");

    let aliases = read("aliases.jsonl");
    assert_eq!(aliases.len(), 2);
    assert_eq!(
        aliases[0],
        json!({"kind": "server", "servers": ["a.example", "www.a.example"], "pages": [10, 10], "shared": [10, 10], "address": "unknown"})
    );
    assert_eq!(
        aliases[1]["urls"],
        json!(["http://b.example/", "http://b.example/own/0"])
    );

    skip_list_is_sound(&read("skip.jsonl"));
    assert_eq!(run["skip"], 31);
    let servers = read("servers.jsonl");
    let whole = servers
        .iter()
        .find(|row| row["a"] == "a.example" && row["b"] == "c.example" && row["chunking"] == "doc");
    assert_eq!(
        (&whole.unwrap()["shared"], &whole.unwrap()["chunks_b"]),
        (&json!(5), &json!(14))
    );
    let html = String::from_utf8(contents(&out.join("atlas.html"))).unwrap();
    assert!(
        html.contains("31</b>") || html.contains("31 (") || html.contains(">31<"),
        "savings are on the page"
    );
    assert!(
        html.contains("http://a.example/manual/0.html") && html.trim_end().ends_with("</html>")
    );
}

/// Checks that no page is skipped for one that is itself skipped, and that near copies have their containment.
#[track_caller]
fn skip_list_is_sound(lines: &[Value]) {
    let skipped: Vec<&str> = lines
        .iter()
        .map(|line| line["url"].as_str().unwrap())
        .collect();
    for line in lines {
        assert!(
            !skipped.contains(&line["copy_of"].as_str().unwrap()),
            "{line}"
        );
        assert_eq!(
            line["why"] == "near",
            line["containment"]
                .as_f64()
                .is_some_and(|share| share >= 0.8),
            "{line}"
        );
    }
    assert_eq!(lines.iter().filter(|line| line["why"] == "near").count(), 5);
}

#[test]
fn the_same_bytes_for_any_order_threads_memory_and_engine() {
    let folder = Folder::new();
    let input = crawl(&folder);
    let out = folder.path("out");
    atlas(&input, &out, &[]);
    let reference = stable(&out);
    let text = String::from_utf8(contents(&input)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    Numbers(5).shuffle(&mut lines);
    let shuffled = folder.add("shuffled.jsonl", lines.join("\n"));
    for flags in [
        &["--threads", "1", "--memory", "32M", "--engine", "sort"][..],
        &["--threads", "2", "--memory", "42M", "--engine", "count"],
    ] {
        for input in [&input, &shuffled] {
            atlas(input, &out, &[flags, &["--overwrite"]].concat());
            assert!(stable(&out) == reference, "{flags:?}");
        }
    }
}

#[test]
fn results_that_are_there_are_not_replaced_unasked() {
    let folder = Folder::new();
    let (input, out) = (crawl(&folder), folder.path("out"));
    atlas(&input, &out, &[]);
    let again = |flags: &[&str]| {
        let mut command = lookalike("overlap");
        command.arg(&input).arg("-o").arg(&out).args(flags);
        command
    };
    again(&[]).fail(1).says(&["--overwrite"]);
    again(&["--resume"]).fail(1).says(&["other settings"]);
    again(&["--overwrite", "--quiet"]).succeed();
}

#[test]
fn results_are_reordered_by_what_is_new_in_each() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[
            ("a", "1\n2\n3\n4"),
            ("b", "1\n2\n3\n5"),
            ("c", "7\n8\n1"),
            ("d", "9"),
            ("e", ""),
        ],
    );
    let list = folder.add("list", "a\nb\n\n{\"id\":\"c\"}\nd\ne\n");
    let lines = lookalike("overlap")
        .arg(&input)
        .args(["--chunk", "lines:1", "--quiet", "--rerank"])
        .arg(&list)
        .succeed()
        .lines();
    let order: Vec<&str> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["a", "d", "c", "b", "e"]);
    assert_eq!(
        lines[3],
        json!({"rank": 4, "id": "b", "was": 2, "chunks": 4, "new_chunks": 1, "new": 0.25})
    );
    let wrong = folder.add("wrong", "a\nzebra\n");
    lookalike("overlap")
        .arg(&input)
        .arg("--rerank")
        .arg(&wrong)
        .fail(1)
        .says(&["zebra"]);
}

/// Returns for each page of a crawl of lines the page that it is skipped for.
fn skipped(
    folder: &Folder,
    pages: &[(String, String)],
    flags: &[&str],
) -> BTreeMap<String, String> {
    let lines = pages.iter().map(|(id, text)| record(id, text));
    let input = folder.add("crawl.jsonl", lines.collect::<String>());
    let out = folder.path("out");
    lookalike("overlap")
        .arg(&input)
        .args(["--chunk", "lines", "--overwrite", "--quiet", "-o"])
        .arg(&out)
        .args(flags)
        .succeed();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let lines = json_lines(&contents(&out.join("skip.jsonl")));
    let lines = lines
        .iter()
        .map(|line| (text(&line["url"]), text(&line["copy_of"])));
    lines.collect()
}

#[test]
fn a_page_within_a_later_one_was_visited() {
    let folder = Folder::new();
    let page = |id: &str, lines: usize| {
        let lines: Vec<String> = (0..lines).map(|line| format!("line {line}")).collect();
        (format!("http://{id}.example/"), lines.join("\n"))
    };
    let found = skipped(&folder, &[page("a", 4), page("b", 10), page("c", 5)], &[]);
    let b = "http://b.example/";
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.values().all(|kept| kept == b), "{found:?}");
    // No page is within an earlier one.
    let found = skipped(&folder, &[page("a", 4), page("b", 10)], &[]);
    assert_eq!(
        found,
        BTreeMap::from([("http://a.example/".to_owned(), b.to_owned())])
    );
    // A chain ends at the largest.
    let chain: Vec<_> = ["a", "b", "c", "d"]
        .into_iter()
        .zip([3, 5, 8, 13])
        .collect();
    let chain: Vec<_> = chain.iter().map(|&(id, lines)| page(id, lines)).collect();
    let found = skipped(&folder, &chain, &["--copy-containment", "1"]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.values().all(|kept| kept == "http://d.example/"),
        "{found:?}"
    );
}

/// Compares the skip list of random crawls with its definition.
#[test]
fn every_page_is_skipped_that_may_be() {
    let folder = Folder::new();
    let mut numbers = Numbers(17);
    for share in ["0.5", "0.8", "1"] {
        for _ in 0..8 {
            let mut pages = Vec::new();
            for at in 0..14 {
                let start = numbers.below(6);
                let end = start + 1 + numbers.below(12);
                let lines: Vec<String> = (start..end).map(|line| line.to_string()).collect();
                pages.push((format!("http://h{at:02}.example/"), lines.join("\n")));
            }
            let found = skipped(&folder, &pages, &["--copy-containment", share]);
            let least: f64 = share.parse().unwrap();
            let texts: BTreeMap<&str, Vec<&str>> = pages
                .iter()
                .map(|(id, text)| (&**id, text.lines().collect()))
                .collect();
            let within = |a: &str, b: &str| {
                let shared = texts[a]
                    .iter()
                    .filter(|line| texts[b].contains(line))
                    .count();
                shared as f64 / texts[a].len() as f64 >= least
            };
            for (page, kept) in &found {
                assert!(
                    within(page, kept) && !found.contains_key(kept),
                    "{page} {kept}"
                );
            }
            let kept = || texts.keys().filter(|page| !found.contains_key(**page));
            for page in kept().filter(|page| !found.values().any(|kept| kept == *page)) {
                let other = kept().find(|other| *other != page && within(page, other));
                assert_eq!(other, None, "{page} is visited");
            }
        }
    }
}

#[test]
fn a_byte_order_mark_was_part_of_the_first_id_of_a_list() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "1\n2"), ("b", "1\n3")]);
    let list = folder.add("list", "\u{feff}b\na\n");
    let lines = lookalike("overlap")
        .arg(&input)
        .args(["--chunk", "lines:1", "--quiet", "--rerank"])
        .arg(&list)
        .succeed()
        .lines();
    assert_eq!(lines[0]["id"], "b");
}

/// They were taken and had no effect, because clap does not demand `--output` beside an option that excludes it.
#[test]
fn options_of_results_are_refused_where_rows_are_printed() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "1\n2"), ("b", "1\n3")]);
    let list = folder.add("list", "b\na\n");
    for option in [
        &["--output-format", "parquet"][..],
        &["--resume"],
        &["--overwrite"],
    ] {
        let mut rerank = lookalike("overlap");
        rerank.arg(&input).arg("--rerank").arg(&list).args(option);
        rerank.fail(2).says(&[option[0], "--rerank"]);
        let mut copies = lookalike("overlap");
        copies.arg(&input).args(["--copies-of", "a"]).args(option);
        copies.fail(2).says(&[option[0], "--copies-of"]);
    }
}

#[test]
fn copies_of_a_dead_link() {
    let folder = Folder::new();
    let input = crawl(&folder);
    let lines = lookalike("overlap")
        .arg(&input)
        .args([
            "--chunk",
            "lines:1",
            "--min-shared",
            "6",
            "--quiet",
            "--copies-of",
            "http://c.example/manual/0.html",
        ])
        .succeed()
        .lines();
    let found: Vec<&str> = lines
        .iter()
        .map(|line| line["url_b"].as_str().unwrap())
        .collect();
    assert_eq!(
        found,
        [
            "http://a.example/manual/0.html",
            "http://b.example/manual/0.html",
            "http://www.a.example/manual/0.html"
        ]
    );
    assert_eq!(
        (&lines[0]["shared"], &lines[0]["chunks_a"]),
        (&json!(11), &json!(12))
    );
    lookalike("overlap")
        .arg(&input)
        .args(["--copies-of", "http://x/"])
        .fail(1)
        .says(&["http://x/"]);
}

#[test]
fn copies_that_share_equally_many_chunks_were_ordered_by_their_texts() {
    let folder = Folder::new();
    let texts = [
        ("q", "1\n2\n3"),
        ("a1", "1\nx"),
        ("a9", "1\nx"),
        ("a5", "1\ny"),
    ];
    let records = texts.map(|(id, text)| json!({"id": id, "text": text}).to_string());
    let input = folder.add("in.jsonl", records.join("\n"));
    let mut command = lookalike("overlap");
    command.arg(&input).args(["--chunk", "lines:1", "--quiet"]);
    let lines = command.args(["--copies-of", "q"]).succeed().lines();
    let found: Vec<&str> = lines.iter().filter_map(|line| line["b"].as_str()).collect();
    assert_eq!(found, ["a1", "a5", "a9"]);
}

#[test]
fn urls_that_do_not_parse_and_records_that_are_none_are_counted() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"id\":\"1\",\"url\":\"http://h/a\",\"text\":\"x\"}\n{\"id\":\"2\",\"url\":\"not a url\",\"text\":\"x\"}\nnonsense\n{\"id\":\"3\",\"url\":7,\"text\":\"y\"}\n",
    );
    let out = folder.path("out");
    command(&input, &out, &[]).lose();
    let run: Value = serde_json::from_slice(&contents(&out.join("run.json"))).unwrap();
    assert_eq!(
        (&run["servers"], &run["without_server"]),
        (&json!(1), &json!(2))
    );
    let skipped = json_lines(&contents(&out.join("skipped.jsonl")));
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0]["line"], 3);
    let strict = folder.path("strict");
    lookalike("overlap")
        .arg(&input)
        .arg("-o")
        .arg(&strict)
        .arg("--strict")
        .fail(1)
        .says(&["line 3"]);
}

/// Regression test: the summary said "0 rows" beside the documents saved, and nothing of their copies.
#[test]
fn a_crawl_of_equal_pages_seemed_to_have_no_copies() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "x\ny"), ("b", "x\ny")]);
    let mut job = lookalike("overlap");
    let said = job
        .arg(&input)
        .arg("-o")
        .arg(folder.path("out"))
        .succeed()
        .err;
    assert!(said.contains("0 rows"), "{said}");
    assert!(
        said.contains("1 set of equal text, in copies.jsonl"),
        "{said}"
    );
}

/// The table of servers alone was missing if no document had a server.
#[test]
fn without_servers_their_table_was_missing() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "x\ny"), ("b", "x\ny\nz")]);
    let out = folder.path("out");
    command(&input, &out, &[]).succeed();
    assert!(FILES.iter().all(|name| out.join(name).exists()));
    assert!(contents(&out.join("servers.jsonl")).is_empty());
    let run: Value = serde_json::from_slice(&contents(&out.join("run.json"))).unwrap();
    assert!(run["results"].to_string().contains("servers.jsonl"));
}

/// Writes documents of 40 lines, ten of them out of 3,000, so that there are many pairs.
fn many(folder: &Folder) -> PathBuf {
    let mut numbers = Numbers(11);
    let mut text = |number: usize| {
        let family = if number.is_multiple_of(3) {
            number / 30
        } else {
            number
        };
        let line = |line: usize, numbers: &mut Numbers| match line < 30 {
            true => format!("family {family} line {line}\n"),
            false => format!("line {}\n", numbers.below(3000)),
        };
        (0..40).map(|at| line(at, &mut numbers)).collect::<String>()
    };
    let records: Vec<(String, String)> = (0..4000)
        .map(|n| (format!("http://s{}.example/{n}", n % 40), text(n)))
        .collect();
    folder.records("many.jsonl", &records)
}

/// Starts the job of [`many`] and kills it as soon as the data that it read are on disk.
fn killed_after_reading(folder: &Folder, input: &Path, name: &str) -> PathBuf {
    let out = folder.path(name);
    let read = out.join(".lookalike/read.bin");
    let mut command = lookalike("overlap");
    command.arg(input).arg("-o").arg(&out);
    command.args(["--quiet", "--engine", "sort", "--min-shared", "1"]);
    command.args(["--chunk", "lines:1"]);
    let mut child = command.spawn().unwrap();
    while !read.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(read.exists() && !out.join("run.json").exists());
    out
}

#[test]
fn what_was_read_is_taken_over_and_never_believed_when_damaged() {
    let folder = Folder::new();
    let input = many(&folder);
    let run = |out: &Path, flags: &[&str]| {
        let mut command = lookalike("overlap");
        command.arg(&input).arg("-o").arg(out).args(flags);
        command.args(["--quiet", "--engine", "sort", "--min-shared", "1"]);
        command.args(["--chunk", "lines:1"]);
        command
    };
    let whole = folder.path("whole");
    run(&whole, &[]).succeed();
    let resumed = |out: &Path| {
        let run: Value = serde_json::from_slice(&contents(&out.join("run.json"))).unwrap();
        run["resumed"].as_bool().unwrap()
    };
    assert!(!resumed(&whole));
    let taken = killed_after_reading(&folder, &input, "taken");
    run(&taken, &[]).fail(1).says(&["--resume"]);
    let limits = ["--memory", "48M", "--threads", "2"];
    run(&taken, &[&["--resume"], &limits[..]].concat()).succeed();
    assert!(resumed(&taken) && stable(&taken) == stable(&whole));

    let damaged = killed_after_reading(&folder, &input, "damaged");
    let read = damaged.join(".lookalike/read.bin");
    let mut bytes = contents(&read);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&read, bytes).unwrap();
    run(&damaged, &["--resume"]).succeed();
    assert!(!resumed(&damaged) && stable(&damaged) == stable(&whole));
}

#[test]
fn an_input_that_changed_under_its_size_and_time_is_not_resumed() {
    let folder = Folder::new();
    let input = many(&folder);
    let out = killed_after_reading(&folder, &input, "changed");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&input)
        .unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    let mut bytes = contents(&input);
    let digit = bytes.iter().rposition(u8::is_ascii_digit).unwrap();
    bytes[digit] = if bytes[digit] == b'7' { b'8' } else { b'7' };
    std::fs::write(&input, &bytes).unwrap();
    file.set_modified(time).unwrap();
    let mut command = lookalike("overlap");
    command.arg(&input).arg("-o").arg(&out).arg("--resume");
    command.args(["--quiet", "--engine", "sort", "--min-shared", "1"]);
    let refused = command.args(["--chunk", "lines:1"]).fail(1);
    refused.says(&["many.jsonl has changed since"]);
    assert!(!out.join("run.json").exists());
}

#[test]
fn a_killed_job_leaves_nothing_half_and_resumes_to_the_same_bytes() {
    let folder = Folder::new();
    let (input, out) = (many(&folder), folder.path("undisturbed"));
    let flags = ["--memory", "52M", "--threads", "2"];
    let start = std::time::Instant::now();
    atlas(&input, &out, &flags);
    let (took, reference) = (start.elapsed(), stable(&out));
    for eighths in [2, 5, 7] {
        let out = folder.path(format!("killed-{eighths}"));
        let mut command = lookalike("overlap");
        command
            .arg(&input)
            .arg("-o")
            .arg(&out)
            .args(flags)
            .arg("--quiet");
        command.args([
            "--chunk",
            "doc,lines:4,lines:1",
            "--min-shared",
            "2,doc=1,lines:1=6",
        ]);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(took * eighths / 8);
        child.kill().unwrap();
        child.wait().unwrap();
        for (name, whole) in FILES.iter().zip(&reference) {
            assert!(
                std::fs::read(out.join(name)).map_or(true, |found| found == *whole),
                "{name} is half"
            );
        }
        if out.join("run.json").exists() {
            continue;
        }
        atlas(&input, &out, &[&flags[..], &["--resume"]].concat());
        assert!(stable(&out) == reference, "killed at {eighths} eighths");
        let names: Vec<_> = std::fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), FILES.len() + 2, "{names:?}");
    }
}

/// Returns whether the first entry of a log of rows is complete (see the module `row_log`), since a kill may leave only its beginning.
fn has_an_entry(log: &Path) -> bool {
    let bytes = std::fs::read(log).unwrap_or_default();
    // Behind the magic and the hash: the length of the entry, the entry and its checksum.
    let length = bytes.get(16..).and_then(|entries| entries.first_chunk());
    length.is_some_and(|length| bytes.len() as u64 >= 32 + u64::from_le_bytes(*length))
}

/// Returns a job that counts the pairs of `input` for a while.
fn counting(input: &Path, out: &Path, flags: &[&str]) -> Command {
    let mut command = lookalike("overlap");
    command.arg(input).arg("-o").arg(out).args(flags);
    command.args(["--quiet", "--chunk", "lines:1", "--threads", "1"]);
    command
}

/// Returns the summary of the chunking of a finished job.
fn chunking(out: &Path) -> Value {
    let mut run = parsed(&contents(&out.join("run.json")));
    run["chunkings"][0].take()
}

/// Runs an uninterrupted job over `input` and returns its results.
fn counted(input: &Path, out: &Path, flags: &[&str]) -> Vec<Vec<u8>> {
    counting(input, out, flags).succeed();
    assert_eq!(chunking(out)["units_resumed"], 0);
    stable(out)
}

/// Runs a job over `input` that is killed while it counts, then resumed, after `tear` damaged the log of rows. Checks that the results are those of
/// an uninterrupted job, and returns the job's summary of the chunking.
fn killed_while_counting(
    input: &Path,
    (out, whole): (&Path, &[Vec<u8>]),
    flags: &[&str],
    tear: Option<Tear>,
) -> Value {
    let log = out.join(".lookalike/rows-0.bin");
    let mut child = counting(input, out, flags).spawn().unwrap();
    while !has_an_entry(&log) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let is_unfinished = has_an_entry(&log) && !out.join("run.json").exists();
    assert!(is_unfinished, "{}", out.display());
    let mut bytes = contents(&log);
    match tear {
        Some(Tear::Damaged) => bytes[40] ^= 1,
        Some(Tear::Short) => bytes.truncate(bytes.len() - 5),
        None => {}
    }
    std::fs::write(&log, bytes).unwrap();
    counting(input, out, flags).arg("--resume").succeed();
    assert!(stable(out) == whole, "{}", out.display());
    chunking(out)
}

/// Damage to a log of rows.
enum Tear {
    /// A flipped bit in the first frame.
    Damaged,
    /// A truncated last frame.
    Short,
}

/// A job that is killed while it counts resumes where it was: rows on disk are not counted again unless they are truncated or damaged, and the
/// results are the same.
#[test]
fn counting_goes_on_where_a_killed_job_was() {
    let folder = Folder::new();
    let input = many(&folder);
    // Each engine has the same results (see `the_same_bytes_for_any_order_threads_memory_and_engine`).
    let least = ["--min-shared", "1"];
    let whole = counted(&input, &folder.path("whole"), &least);
    let resumed = |name: &str, more: &[&str], tear: Option<Tear>| {
        let flags = [&least, more].concat();
        let out = folder.path(name);
        let told = killed_while_counting(&input, (&out, &whole), &flags, tear);
        told["units_resumed"].as_u64().unwrap()
    };
    assert!(resumed("count", &[], None) > 0);
    assert!(resumed("sort", &["--engine", "sort"], None) > 0);
    resumed("torn", &[], Some(Tear::Short));
    assert_eq!(resumed("damaged", &[], Some(Tear::Damaged)), 0);
}

/// Writes documents whose lists of shared chunks do not fit in `--memory 30M` with one thread.
fn more_than_fits(folder: &Folder) -> PathBuf {
    let mut numbers = Numbers(5);
    let mut text = || -> String {
        (0..100)
            .map(|_| format!("line {}\n", numbers.below(37_500)))
            .collect()
    };
    let records: String = (0..3000)
        .map(|at| record(&format!("http://s{}.example/{at:04}", at % 40), &text()))
        .collect();
    folder.add("in.jsonl", &records)
}

#[test]
fn coarse_counting_goes_on_where_a_killed_job_was() {
    let folder = Folder::new();
    let input = more_than_fits(&folder);
    let flags = ["--min-shared", "2", "--memory", "30M"];
    let (out, whole) = (folder.path("out"), folder.path("whole"));
    let whole = counted(&input, &whole, &flags);
    let told = killed_while_counting(&input, (&out, &whole), &flags, None);
    assert_eq!(told["engine"], "count (coarse)");
    assert!(told["units_resumed"].as_u64().unwrap() > 0);
}

/// The figures of the coarse engine's pilot are reported, and its estimate is about right.
#[test]
fn the_figures_of_the_coarse_engine_are_told() {
    let folder = Folder::new();
    let input = more_than_fits(&folder);
    let run = |flags: &[&str]| {
        let mut command = lookalike("overlap");
        command
            .arg(&input)
            .args(["--chunk", "lines:1", "--threads", "1"]);
        command.args(flags).succeed()
    };
    let least = ["--min-shared", "3"];
    let expected = run(&least);
    let coarse = [&least[..], &["--memory", "30M"]].concat();
    let told = run(&coarse);
    assert!(told.out == expected.out, "the same rows");
    told.says(&["count (coarse)", "pilot: ", "candidates counted exactly ("]);

    let ample = run(&["--json"]);
    let pairs = ample.text().lines().count() as f64;
    let rows = expected.text().lines().count() as u64;
    let finished = run(&[&coarse[..], &["--json"]].concat());
    let summary = parsed(finished.err.trim().as_bytes());
    let figures = &summary["chunkings"][0]["coarse"];
    let figure = |name: &str| figures[name].as_u64().unwrap();
    assert!(figure("pilot_units") > 0 && figure("pilot_pairs") >= figure("pilot_units"));
    let share = figure("expected_pairs") as f64 / pairs;
    assert!((0.8..1.25).contains(&share), "{figures} of {pairs}");
    assert!(figure("candidates") >= rows, "{figures}");
    assert!(figure("expected_candidates") >= figure("expected_enough"));
    assert!(figure("hashes") <= 2 && (figure("hashes") > 0) == (figure("counters") > 0));
    let ample = parsed(ample.err.trim().as_bytes());
    assert!(ample["chunkings"][0]["coarse"].is_null());
}
