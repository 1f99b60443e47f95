//! Each count has one meaning everywhere: on the terminal, in `run.json`, in the report, and across jobs.

use serde_json::{Value, json};

use crate::support::{Finish, Folder, STORY, contents, json_lines, lookalike, record};

fn run_of(out: &std::path::Path) -> Value {
    serde_json::from_slice(&contents(&out.join("run.json"))).unwrap()
}

/// Runs an overlap of one input into `atlas`.
fn atlas(folder: &Folder, input: &std::path::Path) -> Value {
    let out = folder.path("atlas");
    let mut command = lookalike("overlap");
    command.arg(input).arg("-o").arg(&out);
    command.args(["--chunk", "lines:1", "--quiet"]).succeed();
    run_of(&out)
}

/// Writes three captures of one page, one of them changed, the same text on another site, and a page that was captured twice.
fn archive(folder: &Folder) -> std::path::PathBuf {
    let line = |id: &str, text: &str| record(id, text);
    let lines = [
        line("http://a.example/robots.txt", "user agent\ndisallow"),
        line("http://a.example/robots.txt", "user agent\ndisallow"),
        line("http://a.example/robots.txt", "user agent\nallow all of it"),
        line("http://b.example/robots.txt", "user agent\ndisallow"),
        line("http://b.example/robots.txt", "user agent\ndisallow"),
        line("http://c.example/", "one\ntwo\nthree"),
        line("http://c.example/", "one\ntwo\nthree"),
    ];
    folder.add("archive.jsonl", lines.concat())
}

#[test]
fn records_that_cannot_be_read_are_counted_each_and_told_with_their_place() {
    let folder = Folder::new();
    let bad = "nonsense\n".repeat(261);
    let input = folder.add("in.jsonl", format!("{bad}{}", record("a", STORY)));
    let out = folder.path("atlas");
    let mut command = lookalike("overlap");
    let done = command.arg(&input).arg("-o").arg(&out).finish();
    done.says(&["261 invalid-json"]);
    let run = run_of(&out);
    assert_eq!(run["skipped"][0]["count"], 261);
    assert_eq!(run["counts"]["unreadable"], 261);
    let lines = json_lines(&contents(&out.join("skipped.jsonl")));
    assert_eq!(lines.len(), 261);
    assert_eq!(lines[7]["line"], 8);
    assert_eq!(lines[7]["source"], input.to_str().unwrap());
    assert_eq!(lines[7]["kind"], "invalid-json");
    // `dedup` writes the same lines.
    let deduped = folder.path("out");
    let mut dedup = lookalike("dedup");
    dedup.arg(&input).arg("-o").arg(&deduped).finish();
    assert_eq!(
        contents(&deduped.join("skipped.jsonl")),
        contents(&out.join("skipped.jsonl"))
    );
}

#[test]
fn records_of_an_archive_that_are_no_pages_do_not_stop_a_strict_overlap() {
    let folder = Folder::new();
    let head = "WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let page = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwords\r\n\r\n";
    let input = folder.add("in.warc", format!("{head}{head}{page}"));
    let out = folder.path("atlas");
    let mut command = lookalike("overlap");
    command.arg(&input).arg("-o").arg(&out);
    command.args(["--strict", "--quiet"]).succeed();
    let skipped = &run_of(&out)["skipped"][0];
    assert_eq!(
        (&skipped["kind"], &skipped["count"]),
        (&json!("request"), &json!(2))
    );
}

#[test]
fn the_skip_list_names_no_invented_url_and_no_page_as_its_own_copy() {
    let folder = Folder::new();
    let input = archive(&folder);
    let run = atlas(&folder, &input);
    let read = |name: &str| json_lines(&contents(&folder.path("atlas").join(name)));
    // The page of a must be visited because of its third capture, and the page of c has no copy elsewhere.
    assert_eq!(
        read("skip.jsonl"),
        [
            json!({"url": "http://b.example/robots.txt", "copy_of": "http://a.example/robots.txt", "why": "exact"})
        ]
    );
    assert_eq!((&run["pages"], &run["skip"]), (&json!(3), &json!(1)));
    let copies = read("copies.jsonl");
    assert_eq!(
        copies[0]["urls"],
        json!(["http://a.example/robots.txt", "http://b.example/robots.txt"])
    );
    assert_eq!(copies[1]["urls"], json!(["http://c.example/"]));
    assert_eq!(run["pages_again"], 3);
    let names = |name: &str| String::from_utf8(contents(&folder.path("atlas").join(name))).unwrap();
    for name in [
        "skip.jsonl",
        "mirrors.jsonl",
        "mirror_pages.jsonl",
        "aliases.jsonl",
    ] {
        assert!(!names(name).contains('#'), "{name}: {}", names(name));
    }
    let page = names("atlas.html");
    assert!(page.contains("Of 3 pages 1 (33.3%)"), "{page}");
}

/// A repeated id that is no URL counted as a second page, under a name that is not in the input.
#[test]
fn a_repeated_id_became_a_page_that_nobody_can_visit() {
    let folder = Folder::new();
    let lines = [
        record("a", "one\ntwo\nthree"),
        record("a", "one\ntwo\nthree"),
        record("b", "one\ntwo\nthree"),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let run = atlas(&folder, &input);
    assert_eq!(
        (&run["pages"], &run["skip"], &run["pages_again"]),
        (&json!(2), &json!(1), &json!(1))
    );
    let skip = json_lines(&contents(&folder.path("atlas").join("skip.jsonl")));
    assert_eq!(skip, [json!({"url": "b", "copy_of": "a", "why": "exact"})]);
    // Documents keep names of their own.
    let copies = json_lines(&contents(&folder.path("atlas").join("copies.jsonl")));
    assert_eq!(copies[0]["copies"], json!(["a#2", "b"]));
    assert_eq!(copies[0]["urls"], json!([]));
}

#[test]
fn rows_of_copies_name_ids_and_tell_urls_beside() {
    let folder = Folder::new();
    let row = |id: &str, url: &str, text: &str| {
        format!("{}\n", json!({"id": id, "url": url, "text": text}))
    };
    let lines = [
        row("1", "http://a.example/", "one\ntwo\nthree"),
        row("2", "http://a.example/", "one\ntwo\nfour"),
        row("3", "http://b.example/", "one\ntwo\nthree"),
        record("4", "one\ntwo"),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let copies = |name: &str| {
        let mut command = lookalike("overlap");
        command.arg(&input).args(["--chunk", "lines:1"]);
        command.args(["--copies-of", name]).succeed()
    };
    for name in ["http://a.example/", "1"] {
        let found = copies(name);
        let rows = found.lines();
        let named: Vec<_> = rows
            .iter()
            .map(|row| (&row["a"], &row["b"], &row["url_a"], &row["url_b"]))
            .collect();
        assert_eq!(
            named,
            [
                (
                    &json!("1"),
                    &json!("3"),
                    &json!("http://a.example/"),
                    &json!("http://b.example/")
                ),
                (
                    &json!("1"),
                    &json!("4"),
                    &json!("http://a.example/"),
                    &Value::Null
                ),
            ]
        );
        found.says(&["1 that overlap have the same URL or id"]);
    }
}

#[test]
fn dedup_and_overlap_agree_on_repeated_texts_and_name_what_they_remove() {
    let folder = Folder::new();
    let near = format!("{STORY} today");
    // The two equal texts are removed for the longer one that they resemble, so none counts as an exact copy.
    let lines = [
        record("a", STORY),
        record("b", STORY),
        record("c", &near),
        record("d", "something quite different from the others here"),
        record("e", "something quite different from the others here"),
        record("f", ""),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let results = folder.dedup(&input, &["--threshold", "0.7"]);
    let overlap = atlas(&folder, &input);
    let counts = &results.run["counts"];
    assert_eq!(counts["repeated_texts"], 2);
    assert_eq!(
        counts["repeated_texts"],
        overlap["counts"]["repeated_texts"]
    );
    assert_eq!(
        counts["distinct_texts"],
        overlap["counts"]["distinct_texts"]
    );
    assert_eq!(overlap["shared_texts"], 2);
    let number = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!(
        number("documents"),
        number("distinct_texts") + number("repeated_texts") + number("empty")
    );
    let decisions = &results.run["decisions"];
    assert_eq!(
        (&decisions["removed_exact"], &decisions["removed_near"]),
        (&json!(1), &json!(2))
    );
    let mut dedup = lookalike("dedup");
    dedup.arg(&input).arg("-o").arg(folder.path("told"));
    let told = dedup.args(["--threshold", "0.7"]).succeed();
    told.says(&["3 different, 2 records repeat one of them"]);
    let mut command = lookalike("overlap");
    let told = command.arg(&input).succeed();
    told.says(&["3 different, 2 records repeat one of them, in 2 sets"]);
}

#[test]
fn bytes_and_records_leave_out_what_is_given_with_against() {
    let folder = Folder::new();
    let old = folder.add("old.jsonl", record("old", &STORY.repeat(50)));
    let lines = [record("a", STORY), record("b", STORY)];
    let input = folder.add("in.jsonl", lines.concat());
    let out = folder.path("out");
    let mut dedup = lookalike("dedup");
    dedup.arg(&input).arg("-o").arg(&out);
    let told = dedup.arg("--against").arg(&old).succeed();
    let bytes = lines.concat().len();
    told.says(&[&format!("2 records, {bytes} B as stored")]);
    told.says(&["against  1 record"]);
    // Only this line has earlier texts in it.
    told.says(&["2 different, 1 record repeats one of them, with those of --against"]);
    let run = run_of(&out);
    let counts = &run["counts"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(
        number(&counts["input_bytes"]) - number(&counts["against_bytes"]),
        bytes as u64
    );
    assert_eq!(
        number(&counts["text_bytes"]) - number(&counts["against_text_bytes"]),
        2 * STORY.len() as u64
    );
    assert_eq!(run["written"]["kept"], record("a", STORY).len());
    assert_eq!(run["written"]["removed"], record("b", STORY).len());
    // The terminal and the report give the same numbers for what is read and saved.
    told.says(&[&format!(
        "{} B of {} B of text (50.0%)",
        STORY.len(),
        2 * STORY.len()
    )]);
    let page = String::from_utf8(contents(&out.join("report.html"))).unwrap();
    assert!(page.contains(&format!("<dd>{bytes} B <small>as stored</small>")));
    assert!(page.contains(&format!("<dd>{} B <small>50.0% of the text", STORY.len())));
}

#[test]
fn the_report_tells_who_is_just_below_the_threshold_and_counts_members_once() {
    let folder = Folder::new();
    let words: Vec<String> = (0..100).map(|word| format!("word{word}")).collect();
    let changed = |count: usize| {
        let mut words = words.clone();
        for word in words.iter_mut().take(count) {
            word.insert(0, 'x');
        }
        words.join(" ")
    };
    let lines = [
        record("a", &changed(0)),
        record("b", &format!("{} ", changed(0))),
        record("copy", &changed(0)),
        record("nearly", &changed(15)),
        record("empty", ""),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let results = folder.dedup(&input, &[]);
    // Of 96 features 81 are shared, so the resemblance is 81/111.
    let below = &results.run["below_threshold"];
    assert_eq!(below["closest"][0]["similarity"], 81.0 / 111.0);
    assert_eq!(below["closest"][0]["a"], "b");
    assert_eq!(below["closest"][0]["b"], "nearly");
    let kept = below["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 10);
    assert_eq!(kept[2], 2, "both, from .70 in steps of .01: {below}");
    let page = String::from_utf8(contents(&results.folder.join("report.html"))).unwrap();
    for words in [
        "Just below the threshold",
        "2 kept records have a similarity between 0.70 and 0.80 to another",
        "0.729",
        "1 record is without any text: kept, never a duplicate",
    ] {
        assert!(page.contains(words), "{words:?} is not in the report");
    }
    for words in ["more</li>", "compared for exact equality"] {
        assert!(!page.contains(words), "{words:?} is in the report");
    }
    // Other limits of threads and memory do not change the figures.
    let again = folder.dedup(&input, &["--threads", "2", "--memory", "64M"]);
    assert_eq!(again.run["below_threshold"], *below);
}

#[test]
fn the_removals_of_the_lowest_similarity_were_not_in_the_report() {
    let folder = Folder::new();
    let text = |cluster: usize, changed: usize| {
        let word = |at: usize| format!("{}{cluster}n{at} ", if at < changed { "x" } else { "w" });
        (0..60).map(word).collect::<String>()
    };
    // Clusters of two: 35 of exact copies, then 12 of near copies, of which each is less similar than the one before.
    let mut lines = String::new();
    for cluster in 0..47_usize {
        let id = |kind: &str| format!("{kind}{cluster:02}");
        lines += &record(&id("a"), &text(cluster, 0));
        lines += &record(&id("b"), &text(cluster, cluster.saturating_sub(34)));
    }
    let input = folder.add("in.jsonl", lines);
    let results = folder.dedup(&input, &["--shingle", "words:1", "--threshold", "0.6"]);
    assert_eq!(results.count("decisions", "clusters"), 47);
    let page = String::from_utf8(contents(&results.folder.join("report.html"))).unwrap();
    // Of equally large clusters, those of the lowest similarity come first, so all near copies are among the largest.
    for near in 35..47 {
        assert!(page.contains(&format!(">b{near}<")), "{near}");
    }
    // A third exact copy makes clusters of exact copies larger.
    let more: String = (0..35)
        .map(|cluster| record(&format!("c{cluster:02}"), &text(cluster, 0)))
        .collect();
    let input = folder.add(
        "more.jsonl",
        String::from_utf8(contents(&input)).unwrap() + &more,
    );
    let results = folder.dedup(&input, &["--shingle", "words:1", "--threshold", "0.6"]);
    let page = String::from_utf8(contents(&results.folder.join("report.html"))).unwrap();
    assert!(page.contains(
        "The 30 largest of 47 clusters, then of the others the 10 of the lowest similarity."
    ));
    let shown = |near: u32| page.contains(&format!(">b{near}<"));
    assert_eq!(
        (35..47).map(shown).collect::<Vec<_>>(),
        [&[false; 2][..], &[true; 10]].concat()
    );
}

#[test]
fn a_preferred_near_miss_was_not_counted() {
    let folder = Folder::new();
    let text = |changed: [usize; 2]| {
        let word = |at: usize| match changed.contains(&at) {
            true => format!("x{at} "),
            false => format!("w{at} "),
        };
        (0..80).map(word).collect::<String>()
    };
    // Of 76 runs of 5 words each change breaks 5, so b and c resemble a by 66/86, and each other by 56/96.
    let lines = [
        record("a", &text([99, 99])),
        record("b", &text([20, 40])),
        record("c", &text([30, 50])),
    ];
    let results = folder.dedup(&folder.add("in.jsonl", lines.concat()), &[]);
    let below = &results.run["below_threshold"];
    let kept = below["kept"].as_array().unwrap();
    assert_eq!(kept.iter().filter_map(Value::as_u64).sum::<u64>(), 3);
    let closest = below["closest"].as_array().unwrap();
    assert_eq!(closest.len(), 2, "each pair once: {below}");
    let page = String::from_utf8(contents(&results.folder.join("report.html"))).unwrap();
    assert!(page.contains("3 kept records have a similarity between 0.70 and 0.80 to another kept record. All of them:"));
}

#[test]
fn settings_are_told_by_their_names_on_the_atlas() {
    let folder = Folder::new();
    let input = archive(&folder);
    let run = atlas(&folder, &input);
    let settings = run["settings"].as_str().unwrap();
    assert!(settings.contains("chunk=lines:1") && settings.contains("output=jsonl"));
    let page = String::from_utf8(contents(&folder.path("atlas/atlas.html"))).unwrap();
    for code in ["InputOptions", "None", "Some(", "{ "] {
        assert!(!settings.contains(code), "{code}: {settings}");
    }
    assert!(!page.contains("InputOptions") && page.contains("<dt>min-containment</dt>"));
}
