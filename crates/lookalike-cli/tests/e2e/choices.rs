//! The options of `dedup`: survivors, order, lists of pairs, compression, earlier results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::promises::documents;
use crate::results::find;
use crate::support::{
    Finish, Folder, Numbers, STORY, corpus, json_lines, lookalike, pairs_of, record,
};

const OTHER: &str =
    "a loaf of rye bread wants two days of patience and a warm place beside the kitchen stove";

/// Returns the story with another ending.
fn retold(ending: &str) -> String {
    format!("{STORY} {ending}")
}

#[test]
fn earlier_results_and_files_are_never_removed_and_never_written() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY), ("b", STORY), ("c", OTHER)]);
    let new = folder.records(
        "new.jsonl",
        &[
            ("a", &*retold("today")),
            ("x", OTHER),
            ("y", "something else altogether, and new"),
        ],
    );
    let first = folder.path("first");
    lookalike("dedup").arg(&old).arg("-o").arg(&first).succeed();
    for against in [&old, &first] {
        let flags = ["--against", against.to_str().unwrap()];
        let results = folder.dedup(&new, &flags);
        assert_eq!(results.kept_ids(), ["y"]);
        assert_eq!(results.removed_ids(), ["a", "x"]);
        let survivors: Vec<&str> = results
            .clusters
            .iter()
            .map(|cluster| &*cluster.survivor)
            .collect();
        assert_eq!(survivors, ["a", "c"]);
        assert!(results.removals()["x"].2 && !results.removals()["a"].2);
    }
    // Pairs within the earlier documents are not reported.
    let results = folder.dedup(
        &new,
        &["--against", old.to_str().unwrap(), "--pairs", "all"],
    );
    let ids: Vec<_> = results.pairs.keys().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(ids, [("a", "a"), ("a", "b"), ("c", "x")]);
}

#[test]
fn the_survivor_is_the_one_that_was_asked_for() {
    let folder = Folder::new();
    let rows = [
        ("a", "today", 3, "2024-01-01"),
        ("b", "yesterday at dusk", 9, "2025-06-01T10:00:00Z"),
        ("c", "", 5, "2023-01-01"),
    ];
    let line = |(id, end, score, date): (&str, &str, u32, &str)| {
        format!(
            "{}\n",
            serde_json::json!({ "id": id, "text": retold(end).trim_end(), "meta": { "score": score }, "date": date })
        )
    };
    let input = folder.add("in.jsonl", rows.map(line).concat() + &record("d", OTHER));
    let cases = [
        ("longest", "b"),
        ("shortest", "c"),
        ("first", "a"),
        ("max:meta.score", "b"),
        ("min:meta.score", "a"),
        ("newest:date", "b"),
    ];
    for (rule, survivor) in cases {
        let results = folder.dedup(&input, &["--threshold", "0.6", "--keep", rule]);
        assert_eq!(results.kept_ids(), [survivor, "d"], "{rule}");
        assert_eq!(results.run["keep"], rule);
    }
}

#[test]
fn the_input_s_order_is_kept_on_demand() {
    let folder = Folder::new();
    let texts = ["z", "b", "q", "a"].map(|id| {
        (
            id,
            format!("{OTHER} told by {id} alone in the long winter of the year {id}{id}"),
        )
    });
    let records: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (*id, &**text)).collect();
    let input = folder.records("in.jsonl", &records);
    let flags = ["--threshold", "1"];
    assert_eq!(
        folder.dedup(&input, &flags).kept_ids(),
        ["a", "b", "q", "z"]
    );
    assert_eq!(
        folder
            .dedup(&input, &[flags[0], flags[1], "--order", "input"])
            .kept_ids(),
        ["z", "b", "q", "a"]
    );
}

#[test]
fn all_pairs_of_dedup_are_those_of_pairs() {
    let Some(all) = corpus("license-texts/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let path = folder.first_records(&all, 1000);
    for method in ["allpairs", "simhash", "exact"] {
        let flags = match method {
            "exact" => vec!["--method", method],
            _ => vec!["--method", method, "--threshold", "0.7"],
        };
        let listed = lookalike("pairs")
            .arg(&path)
            .args(&flags)
            .arg("--quiet")
            .succeed();
        let results = Folder::new();
        let folder = results
            .dedup(&path, &[&flags[..], &["--pairs", "all"]].concat())
            .folder;
        assert!(
            fs::read(folder.join("pairs.jsonl")).unwrap() == listed.out,
            "{method}"
        );
        assert!(!listed.out.is_empty());
    }
}

#[test]
fn copies_are_equal_texts_and_nothing_else() {
    let folder = Folder::new();
    let nearly = retold("");
    let records = [
        ("a", STORY),
        ("b", &*nearly),
        ("c", STORY),
        ("d", ""),
        ("e", ""),
        ("f", "!!!"),
        ("g", "!!!"),
    ];
    let input = folder.records("in.jsonl", &records);
    let results = folder.dedup(&input, &["--method", "exact"]);
    assert_eq!(results.removed_ids(), ["c", "g"]);
    assert!(results.removals().values().all(|removal| removal.2));
    let found = lookalike("pairs")
        .arg(&input)
        .args(["--method", "exact", "--quiet"])
        .succeed()
        .lines();
    let ids: Vec<_> = pairs_of(&found, "similarity").into_keys().collect();
    assert_eq!(ids, [("a".into(), "c".into()), ("f".into(), "g".into())]);
}

/// Returns the paths of the two record files in a folder.
fn record_files(folder: &Path) -> [PathBuf; 2] {
    ["kept.jsonl", "removed.jsonl"].map(|name| find(folder, name))
}

#[test]
fn results_are_compressed_as_the_input_or_as_asked() {
    let folder = Folder::new();
    let plain = [
        record("a", STORY),
        record("b", &retold("again")),
        record("c", OTHER),
    ]
    .concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, plain.as_bytes()).unwrap();
    let inputs = [
        (folder.add("in.jsonl", &plain), ""),
        (folder.add("in.jsonl.gz", gzip.finish().unwrap()), ".gz"),
        (
            folder.add(
                "in.jsonl.zst",
                zstd::encode_all(plain.as_bytes(), 1).unwrap(),
            ),
            ".zst",
        ),
    ];
    for (input, suffix) in &inputs {
        for (flags, wanted) in [
            (vec![], *suffix),
            (vec!["--compress", "none"], ""),
            (vec!["--compress", "gz"], ".gz"),
            (vec!["--compress", "zst"], ".zst"),
        ] {
            let results = folder.dedup(input, &flags);
            results.obey(&documents(plain.as_bytes()));
            for path in record_files(&results.folder) {
                assert!(
                    path.to_str().unwrap().ends_with(&format!(".jsonl{wanted}")),
                    "{}",
                    path.display()
                );
            }
            assert_eq!(results.removed.len(), 1);
        }
    }
}

#[test]
fn compressed_results_are_the_same_for_any_threads_and_one_stream_for_every_reader() {
    let (folder, mut numbers) = (Folder::new(), Numbers(5));
    // The results have several frames in either format, and the input is not in the order of ids.
    let line = |number: usize| {
        let id = number * 7919 % 34_000;
        record(&format!("{id:05}"), &numbers.words(50, 90_000))
    };
    let mut lines: Vec<String> = (0..34_000).map(line).collect();
    let input = folder.add("in.jsonl", lines.concat());
    lines.sort();
    for compression in ["gz", "zst"] {
        let kept = |threads: &str| {
            // Without features, which have no part in how results are written.
            let copies = ["--method", "exact", "--threads", threads];
            let flags = [&copies[..], &["--compress", compression]].concat();
            let results = folder.dedup(&input, &flags);
            fs::read(find(&results.folder, "kept.jsonl")).unwrap()
        };
        let one = kept("1");
        assert!(one == kept("3"));
        let path = folder.add(format!("again.jsonl.{compression}"), &one);
        let plain = match compression {
            "gz" => {
                let mut tool = std::process::Command::new("gzip");
                tool.arg("-dc").arg(&path).output().unwrap().stdout
            }
            _ => zstd::decode_all(&one[..]).unwrap(),
        };
        assert!(plain == lines.concat().into_bytes());
        let again = folder.dedup(&path, &["--method", "exact"]);
        assert_eq!(again.kept.len(), lines.len());
    }
}

#[test]
fn run_json_tells_what_was_done() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("a", STORY), ("b", STORY), ("c", ""), ("d", "!?")],
    );
    let run = folder
        .dedup(
            &input,
            &["--method", "minhash", "--threads", "1", "--memory", "200M"],
        )
        .run;
    assert_eq!(run["method"], "minhash");
    assert_eq!(run["verified"], true);
    assert!(run["recall"].as_f64().unwrap() >= 0.999);
    assert_eq!(
        run["limits"],
        serde_json::json!({ "threads": 1, "memory": 200 << 20 })
    );
    let counts = ["documents", "distinct_texts", "empty", "without_features"]
        .map(|name| run["counts"][name].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 1]);
    assert!(run["measured"]["peak_memory"].as_u64().unwrap() > 1 << 20);
    assert_eq!(json_lines(run["scheme"].to_string().as_bytes()).len(), 1);
    assert_eq!(run["scheme_id"].as_str().unwrap().len(), 16);
}

#[test]
fn a_job_without_a_threshold_said_that_its_removals_were_verified() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY), ("c", "no story")]);
    let flags = ["--method", "simhash", "--threshold", "0"];
    let mut command = lookalike("dedup");
    command
        .arg(&input)
        .args(flags)
        .arg("-o")
        .arg(folder.path("out"));
    let told = command.succeed();
    assert!(told.err.contains("not verified"), "{}", told.err);
    let results = crate::results::Results::read(&folder.path("out"));
    assert_eq!(results.run["verified"], false);
    let page = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("Not verified:"), "the report says otherwise");
}
