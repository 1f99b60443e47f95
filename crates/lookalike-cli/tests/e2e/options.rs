//! Options take effect or are refused: fields that no record has, values that no rule can use, combinations in which an option would have no effect.

use serde_json::{Value, json};

use crate::support::{Finish, Folder, STORY, contents, lookalike};

/// Writes records with the same text, with ids in order, and with the given values in a field.
fn versions(folder: &Folder, values: &[Value]) -> std::path::PathBuf {
    let line = |(number, value): (usize, &Value)| {
        let object =
            json!({"id": number.to_string(), "text": STORY, "v": value, "site": number % 2});
        format!("{object}\n")
    };
    let lines: String = values.iter().enumerate().map(line).collect();
    folder.add("in.jsonl", lines)
}

/// Returns the id that survives.
fn survivor(values: &[Value], keep: &str) -> String {
    let folder = Folder::new();
    let results = folder.dedup(&versions(&folder, values), &["--keep", keep]);
    let kept: Value = serde_json::from_slice(&results.kept[0]).unwrap();
    assert_eq!(results.kept.len(), 1);
    kept["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_newest_version_survives_however_its_date_is_written() {
    let cases = [
        [json!("2023-11"), json!("2024-02"), json!("2024-01")],
        [json!("2023/11/30"), json!("2024/2/1"), json!("2024/1/31")],
        [json!("2023.11"), json!("2024.10"), json!("2024.9")],
        [json!(1999), json!("2024-02"), json!("2023-12-31T10:00:00Z")],
        [
            json!("Fri, 01 Mar 2024 00:00:00 GMT"),
            json!("2024-03-02"),
            json!("Thu, 29 Feb 2024 23:00:00 +0000"),
        ],
    ];
    for values in cases {
        assert_eq!(survivor(&values, "newest:v"), "1", "{values:?}");
    }
}

/// Regression test: a double holds today's time in seconds to a quarter of a microsecond, so close versions counted as equal and the smaller id
/// survived.
#[test]
fn times_differ_in_their_last_nanosecond() {
    let written = |last: u64| json!(format!("2024-03-01T10:00:00.{:09}Z", 123_456_700 + last));
    let counted = |last: u64| json!(1_709_287_200_123_456_700 + last);
    for time in [&written as &dyn Fn(u64) -> Value, &counted] {
        assert_eq!(survivor(&[time(1), time(3), time(2)], "newest:v"), "1");
        assert_eq!(survivor(&[time(1), time(3), time(4)], "newest:v"), "2");
    }
}

/// Regression test: a double has 53 bits, so versions that differ in the last digit counted as equal and the smaller id survived.
#[test]
fn large_integers_differ_in_their_last_digit() {
    let digits = |last: u64| json!(9_007_199_254_740_990 + last);
    let versions = [digits(2), digits(3), digits(1)];
    assert_eq!(survivor(&versions, "max:v"), "1");
    assert_eq!(survivor(&versions, "min:v"), "2");
    let ids = [
        "18446744073709551614",
        "18446744073709551615",
        "-18446744073709551615",
    ];
    assert_eq!(survivor(&ids.map(|id| json!(id)), "max:v"), "1");
    assert_eq!(survivor(&ids.map(|id| json!(id)), "min:v"), "2");
    // If values are equal, the next rule decides.
    assert_eq!(survivor(&[digits(3), digits(3), digits(2)], "max:v"), "0");
}

#[test]
fn the_order_of_texts_and_lists_of_rules_decide() {
    let versions = [json!("r2"), json!("r3"), json!("r1")];
    assert_eq!(survivor(&versions, "latest:v"), "1");
    assert_eq!(
        survivor(&[json!(1), json!(2), json!(2)], "max:v,first"),
        "1"
    );
    let folder = Folder::new();
    let long = format!("{STORY} and so on");
    let row =
        |id: &str, text: &str, q: u32| format!("{}\n", json!({"id": id, "text": text, "q": q}));
    let rows = row("a", STORY, 7) + &row("b", &long, 7) + &row("c", &long, 1);
    let input = folder.add("q.jsonl", rows);
    let results = folder.dedup(&input, &["--keep", "max:q,longest", "--threshold", "0.5"]);
    assert_eq!(results.kept.len(), 1);
    assert!(String::from_utf8_lossy(&results.kept[0]).contains("\"b\""));
}

#[test]
fn a_rule_that_no_value_serves_is_an_error_before_anything_is_decided() {
    let ambiguous = [json!("01/02/2024"), json!("02/03/2024")];
    let dates = [json!("2024-01-01"), json!("2024-01-02")];
    let infinite = [json!("1e400"), json!("2e400")];
    let cases: [(&[Value], &str, &[&str]); 5] = [
        (&infinite, "max:v", &["1e400", "too large a number"]),
        (
            &ambiguous,
            "newest:v",
            &["01/02/2024", "day and month", "2024-03-01"],
        ),
        (&dates, "max:v", &["a date, not a number", "newest:"]),
        (&dates, "newest:date", &["field date", "id, site, text, v"]),
        (&dates, "max:v.x", &["field v.x"]),
    ];
    for (values, keep, said) in cases {
        let folder = Folder::new();
        let input = versions(&folder, values);
        let out = folder.path("out");
        let mut command = lookalike("dedup");
        command
            .arg(&input)
            .arg("-o")
            .arg(&out)
            .args(["--keep", keep]);
        command.fail(1).says(said);
        assert!(!out.exists(), "{keep}");
    }
    for (keep, said) in [
        ("max:q,longestt", "\"longestt\""),
        ("max:a,min:b", "two fields"),
        ("biggest", "latest:FIELD"),
    ] {
        let mut command = lookalike("dedup");
        command.args(["x", "-o", "y", "--keep", keep]);
        command.fail(2).says(&[said]);
    }
}

#[test]
fn values_that_a_rule_cannot_use_are_counted_everywhere() {
    let folder = Folder::new();
    let values = [
        json!("2024-01"),
        json!("01/02/2025"),
        Value::Null,
        json!("2024-02"),
    ];
    let input = versions(&folder, &values);
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command
        .arg(&input)
        .arg("-o")
        .arg(&out)
        .args(["--keep", "newest:v"]);
    let said = [
        "1 record without a value for the survivor rule",
        "1 record with a value that the survivor rule cannot use",
        "record 2",
        "01/02/2025",
    ];
    command.succeed().says(&said);
    let run: Value = serde_json::from_slice(&contents(&out.join("run.json"))).unwrap();
    let counts = &run["counts"];
    assert_eq!(
        (&counts["keep_missing"], &counts["keep_unusable"]),
        (&json!(1), &json!(1))
    );
    let page = String::from_utf8(contents(&out.join("report.html"))).unwrap();
    assert!(page.contains("1 record with a value that the survivor rule cannot use"));
    let kept = contents(&out.join("kept.jsonl"));
    assert!(String::from_utf8(kept).unwrap().contains("\"id\":\"3\""));
}

#[test]
fn a_field_that_no_record_has_is_an_error_on_every_command() {
    let folder = Folder::new();
    let input = versions(&folder, &[json!(1), json!(2)]);
    let cases = [
        ("pairs", "--id", "docid"),
        ("pairs", "--within", "language"),
        ("pairs", "--across", "language"),
        ("pairs", "--within", "site.name"),
        ("pairs", "--text", "body"),
        ("pairs", "--fields", "anchors:3"),
        ("extract", "--id", "docid"),
        ("extract", "--text", "body"),
        ("fingerprint", "--id", "docid"),
        ("overlap", "--id", "docid"),
    ];
    for (command, option, field) in cases {
        let mut command = lookalike(command);
        command.arg(&input).args([option, field]);
        command.fail(1).says(&["id, site, text, v", option]);
    }
    let urls = ["--within", "site"];
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let mut command = lookalike("pairs");
    command.arg(&input).args(urls).fail(1).says(&[
        "URL",
        "within site requires",
        "leave --within out",
    ]);
    let mut command = lookalike("pairs");
    command.args(["--method", "henzinger", "--distance-for", "site"]);
    command.arg(&input).fail(1).says(&[
        "URL",
        "distance_for site requires",
        "leave --distance-for out",
    ]);
    let mut command = lookalike("terms");
    command
        .arg(&input)
        .args(["--id", "docid", "-o"])
        .arg(folder.path("t"));
    command.fail(1).says(&["as id docid requires", "--id"]);
    assert!(!folder.path("t").exists());
}

#[test]
fn a_field_that_some_records_lack_is_told_as_missing() {
    let folder = Folder::new();
    let lines = "{\"key\":\"a\",\"text\":\"one two\"}\n{\"text\":\"three four\"}\n{\"key\":\"c\"}\n{\"key\":\"d\",\"text\":\"\"}\n";
    let input = folder.add("in.jsonl", lines);
    let mut command = lookalike("pairs");
    command.arg(&input).args(["--id", "key"]);
    command.succeed().says(&[
        "1 record without a text field",
        "1 record without the field for ids",
        "1 with an empty text",
    ]);
}

#[test]
fn options_beside_which_others_would_do_nothing_are_refused() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let input = input.to_str().unwrap();
    let key = folder.add("key", "000102030405060708090a0b0c0d0e0f");
    let key = key.to_str().unwrap();
    for words in [
        &["pairs", input, "--boilerplate-share", "0.2"][..],
        &["pairs", input, "--convert-limit", "5"],
        &["pairs", input, "--terms", key],
        &["pairs", input, "--hash-key", key],
        &[
            "pairs",
            input,
            "--method",
            "exact",
            "--fields",
            "in-links:1",
        ],
        &["extract", input, "--language", "--output-format", "text"],
        &["overlap", input, "--copy-containment", "0.5"],
        &["overlap", input, "--set-page-share", "0.7"],
        &["overlap", input, "--set-server-share", "0.7"],
        &["overlap", input, "--alias-pages", "2"],
        &["overlap", input, "--address", "peer"],
        &["overlap", input, "--server", "path:1"],
        &["fingerprint", "--import", input, "--shingle", "words:3"],
        &["fingerprint", "--import", input, "--id", "x"],
        &[
            "evaluate", "labels", input, "--labels", key, "--weight", "tf",
        ],
        &["evaluate", "sweep", input, "--positive", "2"],
        &[
            "evaluate",
            "sweep",
            input,
            "--labels",
            key,
            "--threshold",
            "0.5",
        ],
    ] {
        let mut command = lookalike(words[0]);
        command.args(&words[1..]).fail(2).says(&["has no effect"]);
    }
}

#[test]
fn a_share_may_be_a_percentage() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let pairs = |flags: &[&str]| {
        let mut command = lookalike("pairs");
        command.arg(&input).args(flags);
        command
    };
    pairs(&["--threshold", "80%", "--lengths", "50%"]).succeed();
    for (wrong, said) in [
        ("much", "80%"),
        ("80", "0.8"),
        ("0%", "above 0"),
        ("101%", "at most 1"),
    ] {
        pairs(&["--threshold", wrong]).fail(2).says(&[said]);
    }
}

#[test]
fn memory_that_does_not_do_is_told_in_units_that_the_option_takes() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let pairs = |memory: &str| {
        let mut command = lookalike("pairs");
        command
            .arg(&input)
            .args(["--threads", "1", "--memory", memory]);
        command
    };
    let refused = pairs("1M").fail(1);
    let (_, after) = refused.err.split_once("--memory to at least ").unwrap();
    let (least, _) = after.split_once([',', ' ']).unwrap();
    assert!(least.ends_with('M'), "{}", refused.err);
    pairs(least).succeed();
}

/// Regression test: a limit on documents that the memory cannot hold was accepted, and the job took three times the memory.
#[test]
fn documents_that_are_too_long_for_the_memory_are_refused_before_the_job() {
    let folder = Folder::new();
    let input = folder.add("long.txt", STORY.repeat((40 << 20) / STORY.len()));
    let dedup = |flags: &[&str]| {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("--overwrite").arg("-o");
        command.arg(folder.path("out")).args(flags);
        command
    };
    let refused = dedup(&["--memory", "128M", "--max-document", "200M"]).fail(1);
    refused.says(&["--max-document", "--memory to at least"]);
    // Documents longer than the default limit are not held in memory.
    dedup(&["--memory", "128M", "--json"]).succeed();
    let (_, after) = refused.err.split_once("--memory to at least ").unwrap();
    let (least, _) = after.split_once([',', ' ']).unwrap();
    let done = dedup(&["--memory", least, "--max-document", "200M", "--json"]).succeed();
    let peak = done.json()["measured"]["peak_memory"].as_u64().unwrap() >> 20;
    let least: u64 = least.trim_end_matches('M').parse().unwrap();
    assert!(peak <= least, "{peak} of {least}");
}

/// Regression test: commands accepted such a limit and took whatever memory the documents needed.
#[test]
fn every_command_that_reads_documents_refuses_those_that_its_memory_cannot_hold() {
    let folder = Folder::new();
    let input = folder.add("long.txt", STORY.repeat((40 << 20) / STORY.len()));
    let labels = folder.add("labels.jsonl", "{\"a\":\"x\",\"b\":\"y\",\"label\":1}\n");
    let (labels, out) = (labels.to_str().unwrap(), folder.path("out"));
    let out = out.to_str().unwrap();
    let drawn = folder.add("drawn.jsonl", "{\"a\":\"x\",\"b\":\"y\",\"score\":1,\"stratum\":{\"number\":1,\"of\":1,\"name\":\"0\",\"pairs\":1,\"drawn\":1}}\n");
    let drawn = drawn.to_str().unwrap();
    let run = |command: &[&str], limits: [&str; 4]| {
        let (name, more) = command.split_first().unwrap();
        let mut run = lookalike(name);
        run.args(more).arg(&input).args(limits);
        run
    };
    let commands: [&[&str]; 11] = [
        &["dedup", "-o", out],
        &["pairs"],
        &["fingerprint"],
        &["terms", "-o", out],
        &["extract"],
        &["extract", "--boilerplate", "collection"],
        &["overlap"],
        &["overlap", "-o", out, "--chunk", "lines:1,words:3"],
        &["evaluate", "audit", "--method", "simhash"],
        &["evaluate", "sample", "-o", out],
        &["evaluate", "labels", "--labels", labels],
    ];
    let evaluations: [&[&str]; 2] = [
        &["evaluate", "sweep"],
        &["evaluate", "label", "--pairs", drawn, "-o", out],
    ];
    for command in commands.into_iter().chain(evaluations) {
        let refused = run(command, ["--memory", "128M", "--max-document", "200M"]).fail(1);
        refused.says(&[
            "a document of 40M may take",
            "--max-document to ",
            "--memory to at least",
            "lower --threads",
        ]);
        let is_there = folder.path("out").exists();
        assert!(!is_there || command[0] == "overlap", "{command:?}");
    }
    // With a memory that is large enough they succeed.
    for command in &commands[4..8] {
        let limits = ["--memory", "1G", "--max-document", "200M"];
        let done = run(command, limits).arg("--quiet").succeed();
        assert!(done.err.is_empty(), "{}", done.err);
        assert!(command[0] != "extract" || done.out.len() > 40 << 20);
    }
}

/// Without an output file nothing can be resumed, so the message must not suggest `--resume`.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_has_a_remedy_that_exists() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    for command in ["pairs", "extract", "fingerprint", "overlap"] {
        let mut command = lookalike(command);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        command.arg(&input).stdout(full.unwrap());
        let child = command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("No space left") && !said.contains("--resume"),
            "{said}"
        );
    }
}

#[test]
fn a_job_with_nothing_to_resume_says_that_it_starts_anew() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    for command in ["dedup", "overlap"] {
        let out = folder.path(command);
        let mut command = lookalike(command);
        command.arg(&input).arg("-o").arg(&out).arg("--resume");
        command.succeed().says(&["nothing to resume"]);
    }
}

/// In a table without a header, a document is where the names should be.
#[test]
fn a_document_in_the_place_of_a_name_is_cut_and_quoted() {
    let folder = Folder::new();
    let long = "some words ".repeat(500);
    let input = folder.add("in.csv", format!("1,{long}\n2,other words\n"));
    let mut command = lookalike("pairs");
    let said = command.arg(&input).arg("--format").arg("csv").fail(1).err;
    assert!(said.len() < 800 && said.contains("\"some words"), "{said}");
}

/// Regression test: the guide showed a fingerprint that the page does not have.
#[test]
fn the_answer_in_the_guide_is_what_the_product_gives() {
    let guide =
        std::fs::read_to_string(crate::support::examples().join("../docs/how-to/operations.md"));
    let guide = guide.unwrap();
    let (_, after) = guide.split_once("\"html\":\"").unwrap();
    let (page, after) = after.split_once('"').unwrap();
    let (_, after) = after.split_once("\"fingerprint\":\"").unwrap();
    let folder = Folder::new();
    let page = folder.add("page.html", page);
    let given = lookalike("fingerprint").arg(&page).arg("-q").succeed();
    assert_eq!(given.lines()[0]["fingerprint"], after[..16]);
}

/// Compares the counts of both examples with those in their README.
#[test]
fn the_counts_of_the_examples_are_those_of_their_readme() {
    let readme = std::fs::read_to_string(crate::support::examples().join("README.md")).unwrap();
    for (name, input) in [("pages", "pages"), ("articles.jsonl", "articles.jsonl")] {
        let folder = Folder::new();
        let run = folder
            .dedup(&crate::support::examples().join(input), &[])
            .run;
        let count = |part: &str, name: &str| run[part][name].as_u64().unwrap();
        let exact = count("decisions", "removed_exact");
        let near = count("decisions", "removed_near");
        let kept = count("decisions", "kept");
        let told = format!("{exact} exact copies, {near} near copies, {kept} kept");
        let heading = readme
            .lines()
            .find(|line| line.starts_with(&format!("## {name}:")));
        assert!(heading.unwrap().ends_with(&told), "{told}");
    }
}

#[test]
fn short_texts_have_shorter_runs_and_longer_ones_keep_theirs() {
    let folder = Folder::new();
    let words = |count: usize, changed: usize| {
        let word = |at: usize| match at == changed {
            true => "another".to_owned(),
            false => format!("word{at}"),
        };
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    // A changed word in 30 leaves 21 of 31 runs of five words and 27 of 31 of two; in 49 it leaves 40 of 50 of five.
    let input = folder.records(
        "in.jsonl",
        &[
            ("short", &words(30, 99)),
            ("changed", &words(30, 15)),
            ("long", &words(49, 99).replace("word", "other")),
            ("long-changed", &words(49, 20).replace("word", "other")),
        ],
    );
    // Returns whether one of the short texts and one of the long texts is removed.
    let removed = |flags: &[&str]| {
        let results = folder.dedup(&input, flags);
        let survivors: Vec<&str> = (results.clusters.iter())
            .map(|cluster| cluster.survivor.as_str())
            .collect();
        let scheme = results.run["scheme"].to_string();
        assert_eq!(
            scheme.contains("shingle=words:5/"),
            !flags.is_empty(),
            "{scheme}"
        );
        [["short", "changed"], ["long", "long-changed"]]
            .map(|pair| pair.iter().any(|id| survivors.contains(id)))
    };
    assert_eq!(removed(&[]), [false, true]);
    assert_eq!(removed(&["--short", "49:2"]), [true, true]);
    assert_eq!(removed(&["--short", "30:2"]), [false, true]);
    assert_eq!(removed(&["--shingle", "words:5/49:2"]), [true, true]);
    let prints = |flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        command.arg(&input).args(flags).arg("-q");
        let lines = command.succeed().lines();
        lines
            .iter()
            .map(|line| line["fingerprint"].clone())
            .collect::<Vec<_>>()
    };
    let (usual, ruled, two) = (
        prints(&[]),
        prints(&["--short", "49:2"]),
        prints(&["--shingle", "words:2"]),
    );
    assert_eq!((&ruled[..2], &ruled[2..]), (&two[..2], &usual[2..]));
    let explained = lookalike("explain")
        .args(["short", "changed", "--in"])
        .arg(&input)
        .args(["--short", "49:2"])
        .succeed();
    assert!(
        explained.text().contains("word3 word4"),
        "{}",
        explained.text()
    );
    for flags in [
        &["--short", "49:5"][..],
        &["--short", "49:2", "--shingle", "chars:9"],
        &["--short", "1:1"],
        &["--short", "49"],
    ] {
        let mut command = lookalike("dedup");
        command
            .arg(&input)
            .args(flags)
            .arg("-o")
            .arg(folder.path("refused"));
        command.fail(2).says(&["short"]);
    }
}
