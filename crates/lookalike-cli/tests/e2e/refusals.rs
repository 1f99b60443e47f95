//! Wrong usage and invalid input: the exit status, and a message that names the error and the remedy.

use std::process::Stdio;

use crate::support::{Finish, Folder, STORY, lookalike, record};

/// Returns a folder with a file of two records.
pub(crate) fn two() -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    let input = folder.records("two.jsonl", &[("a", STORY), ("b", STORY)]);
    (folder, input)
}

#[test]
fn an_output_that_is_also_an_input_destroyed_it() {
    let (folder, input) = two();
    let codes = folder.path("codes.jsonl");
    let command = ["fingerprint", crate::support::path(&input), "-o"];
    let all = |words: &[&str]| -> std::process::Command {
        let mut command = lookalike(words[0]);
        command.current_dir(folder.path("")).args(&words[1..]);
        command
    };
    all(&command).arg(&codes).succeed();
    all(&["index", "build", "codes.jsonl", "-o", "codes.lkix"]).succeed();
    std::os::unix::fs::symlink(&input, folder.path("link.jsonl")).unwrap();
    let cases = [
        "fingerprint two.jsonl -o ./two.jsonl",
        "fingerprint link.jsonl -o two.jsonl",
        "fingerprint two.jsonl -o link.jsonl",
        "extract two.jsonl -o two.jsonl",
        "pairs two.jsonl -o two.jsonl",
        "links two.jsonl -o two.jsonl",
        "terms two.jsonl -o two.jsonl",
        "explain a b --in two.jsonl --page two.jsonl",
        "evaluate sample two.jsonl -o two.jsonl",
        "evaluate sample --fingerprints codes.jsonl -o codes.jsonl",
        "evaluate sweep two.jsonl --page two.jsonl",
        "dedup two.jsonl -o out --boilerplate collection --boilerplate-lines two.jsonl",
        "join codes.jsonl -o codes.jsonl",
        "index info codes.lkix --page codes.lkix",
        // Other files that a command reads.
        "index build codes.jsonl -o codes.jsonl --overwrite",
        "fingerprint two.jsonl --hash siphash --hash-key key -o key",
        "terms two.jsonl --hash siphash --hash-key key -o key",
        "pairs two.jsonl --hash siphash --hash-key key -o key",
        "explain a b --in two.jsonl --method i-match --shingle words:1 --terms table --page table",
        "evaluate sweep two.jsonl --shingles words:1 --labels labels.jsonl --page labels.jsonl",
    ];
    folder.add("key", "0123456789abcdef0123456789abcdef\n");
    folder.add("labels.jsonl", "{\"a\":\"a\",\"b\":\"b\",\"label\":true}\n");
    all(&["terms", "two.jsonl", "--shingle", "words:1", "-o", "table"]).succeed();
    let files = [
        "two.jsonl",
        "codes.jsonl",
        "codes.lkix",
        "key",
        "table",
        "labels.jsonl",
    ];
    let before = files.map(|name| std::fs::read(folder.path(name)).unwrap());
    for case in cases {
        let words: Vec<&str> = case.split(' ').collect();
        all(&words).fail(2).says(&["is also an input"]);
        let after = files.map(|name| std::fs::read(folder.path(name)).unwrap());
        assert!(before == after, "{case}");
    }
    // An index may replace one that it was built from.
    all(&[
        "index",
        "build",
        "codes.lkix",
        "-o",
        "codes.lkix",
        "--overwrite",
    ])
    .succeed();
}

#[test]
fn more_parts_than_a_sketch_has_could_be_demanded_and_nothing_was_found() {
    let (_folder, input) = two();
    for (method, most) in [("super-shingle", 6), ("henzinger", 6), ("buckets", 8)] {
        let equal = |equal: u32| {
            let mut command = lookalike("pairs");
            command
                .arg(&input)
                .args(["--method", method, "--equal", &equal.to_string()]);
            command
        };
        assert_eq!(equal(most).succeed().lines().len(), 1, "{method}");
        equal(most + 1)
            .fail(2)
            .says(&[&format!("equal {} is above {most}", most + 1)]);
    }
}

#[test]
fn wrong_usage_is_status_2_and_names_what_would_be_right() {
    let (_folder, input) = two();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--method", "jaccard"],
            &[
                "jaccard",
                "allpairs",
                "minhash",
                "super-shingle",
                "simhash",
                "exact",
            ],
        ),
        (
            &["--threshold", "0"],
            &["threshold 0", "above 0 and at most 1"],
        ),
        (
            &["--threshold", "2"],
            &["threshold 2", "above 0 and at most 1"],
        ),
        (
            &["--threshold", "NaN"],
            &["threshold NaN", "above 0 and at most 1"],
        ),
        (&["--threshold", "much"], &["much", "--threshold"]),
        (&["--method", "simhash", "--distance", "17"], &["17", "16"]),
        (&["--shingle", "words:0"], &["words:0", "words:5"]),
        (
            &["--shingle", "lines:3"],
            &["lines:3", "words:N or chars:N"],
        ),
        (&["--segment", "thai"], &["thai", "unicode", "word-chars"]),
        (&["--normalize", "nfd"], &["nfd", "nfc", "nfkc", "none"]),
        (
            &["--method", "simhash", "--weight", "idf"],
            &["idf", "lookalike terms", "--terms"],
        ),
        (&["--weight", "much"], &["much", "set", "tf"]),
        (&["--memory", "lots"], &["lots", "512M"]),
        (&["--threads", "0"], &["threads", "1 to 1024"]),
        (
            &["--method", "minhash", "--recall", "1"],
            &["recall 1", "allpairs"],
        ),
        (
            &["--functions", "256"],
            &["--functions", "minhash", "allpairs"],
        ),
        (
            &["--method", "minhash", "--functions", "1"],
            &["--functions", "allpairs"],
        ),
        (
            &["--format", "docx"],
            &["docx", "jsonl, json, text, html, pdf, warc"],
        ),
        (&["--text", "a..b"], &["a..b", "empty name"]),
        (&["--thresold", "0.9"], &["--thresold", "--threshold"]),
    ];
    for (flags, words) in cases {
        let failed = lookalike("pairs").arg(&input).args(*flags).fail(2);
        assert!(failed.out.is_empty());
        failed.says(words);
    }
    lookalike("dedup").arg(&input).fail(2).says(&["--output"]);
    lookalike("pairs").fail(2).says(&["<INPUT>"]);
    lookalike("frobnicate").fail(2).says(&["frobnicate"]);
    assert_eq!(
        lookalike("pairs")
            .arg(&input)
            .args(["--resume"])
            .finish()
            .status,
        Some(2)
    );
}

#[test]
fn wrong_choices_of_dedup_are_status_2() {
    let (folder, input) = two();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--keep", "best"], &["best", "longest", "newest:FIELD"]),
        (
            &["--keep", "max:"],
            &["max:", "names no field", "max:score"],
        ),
        (&["--order", "size"], &["size", "id or input"]),
        (&["--pairs", "some"], &["some", "deciding or all"]),
        (&["--compress", "xz"], &["xz", "none, gz or zst"]),
        (&["--repeated-ids", "drop"], &["drop", "number or refuse"]),
        (&["--resume", "--overwrite"], &["--resume", "--overwrite"]),
    ];
    for (flags, words) in cases {
        lookalike("dedup")
            .arg(&input)
            .arg("-o")
            .arg(folder.path("out"))
            .args(*flags)
            .fail(2)
            .says(words);
    }
    assert!(
        !folder.path("out").exists(),
        "a wrong word on the command line makes no folder"
    );
}

#[test]
fn the_remedy_for_packed_records_made_one_document_of_them() {
    let folder = Folder::new();
    for name in ["a.jsonl.zip", "a.jsonl.lz4", "a.wacz", "a.tgz"] {
        let input = folder.add(name, "PK\x03\x04");
        let told = lookalike("extract").arg(&input).fail(1);
        told.says(&[name, "unpack it first, or pass its content through"]);
        assert!(!told.err.contains("--convert"), "{}", told.err);
    }
}

#[test]
fn inputs_that_are_not_there_are_status_1_and_named() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.add("t.orc", "ORC");
    folder.add("pictures/a.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let cases: &[(&str, &[&str])] = &[
        ("missing.jsonl", &["missing.jsonl", "no such file"]),
        ("empty", &["empty", "no document"]),
        ("pictures", &["pictures", "no document", "a.png", "binary"]),
        (
            "t.orc",
            &[
                "t.orc: this table format is not supported yet; convert it to JSON Lines: --convert names a command",
                "; skip such files with --skip-unreadable",
            ],
        ),
        ("*.nothing", &["*.nothing", "no file matches"]),
    ];
    for (name, words) in cases {
        for subcommand in ["pairs", "fingerprint"] {
            lookalike(subcommand)
                .arg(folder.path(name))
                .fail(1)
                .says(words);
        }
        lookalike("dedup")
            .arg(folder.path(name))
            .arg("-o")
            .arg(folder.path("out"))
            .fail(1)
            .says(words);
        assert!(!folder.path("out").exists(), "{name}");
    }
}

#[test]
fn a_wrong_field_name_lists_the_fields_there_are() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"name\":\"a\",\"body\":\"one two\"}\n{\"name\":\"b\",\"body\":\"three\"}\n",
    );
    for flags in [&[][..], &["--text", "content"]] {
        let out = folder.path("out");
        let failed = lookalike("dedup")
            .arg(&input)
            .arg("-o")
            .arg(&out)
            .args(flags)
            .arg("--overwrite")
            .fail(1);
        failed.says(&["2 records", "body, name", "--text"]);
        assert!(!out.exists());
        lookalike("pairs")
            .arg(&input)
            .args(flags)
            .fail(1)
            .says(&["body, name", "--text"]);
    }
    let results = folder.dedup(&input, &["--text", "body", "--id", "name"]);
    assert_eq!(results.kept.len(), 2);
}

/// Only `dedup`, `pairs` and builds refused it: other commands succeeded with results of nothing.
#[test]
fn input_without_any_text_passed_in_silence() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"id\":\"a\",\"body\":\"one two\"}\n{\"id\":\"b\",\"body\":\"three\"}\n",
    );
    for (command, output) in [
        ("overlap", Some("out")),
        ("overlap", None),
        ("terms", Some("out.terms")),
        ("fingerprint", Some("out.jsonl")),
        ("fingerprint", None),
    ] {
        let mut command = lookalike(command);
        command.arg(&input);
        let output = output.map(|name| folder.path(name));
        if let Some(output) = &output {
            command.arg("-o").arg(output);
        }
        command.fail(1).says(&[
            "none of the 2 records has a text",
            "body, id",
            "--text FIELD",
        ]);
        assert!(output.is_none_or(|output| !output.exists()));
    }
    // Pages known only by their links have features without any text.
    let linked = folder.add("linked.jsonl", "{\"id\":\"a\",\"anchors\":[\"x\"]}\n");
    let mut fingerprint = lookalike("fingerprint");
    fingerprint.arg(&linked).args(["--fields", "anchors:2"]);
    fingerprint.succeed();
    // No records have no fields, which does not make the input wrong.
    let empty = folder.add("empty.jsonl", "");
    lookalike("fingerprint").arg(&empty).succeed();
    lookalike("overlap").arg(&empty).succeed();
}

/// The first attempt names a wrong field. The second is right and must not need a flag that would delete results.
#[test]
fn a_job_that_failed_before_it_had_results_is_not_in_the_way() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", "{\"id\":\"a\",\"body\":\"one two\"}\n");
    let dedup = || {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(folder.path("out"));
        command
    };
    std::fs::create_dir(folder.path("out")).unwrap();
    dedup().fail(1).says(&["--text FIELD"]);
    // The folder existed before, so it is kept; nothing of the job is left in it.
    assert_eq!(std::fs::read_dir(folder.path("out")).unwrap().count(), 0);
    dedup().args(["--text", "body"]).succeed();
}

#[test]
fn names_of_other_formats_got_plain_lines() {
    let (folder, input) = two();
    let codes = folder.path("codes.lkfp");
    let mut make = lookalike("fingerprint");
    make.arg(&input).arg("-o").arg(&codes).succeed();
    let all = |subcommand: &str, output: &str| {
        let mut command = lookalike(subcommand);
        let read = if subcommand == "join" { &codes } else { &input };
        command.arg(read).arg("-o").arg(folder.path(output));
        command
    };
    for subcommand in ["join", "links"] {
        let refused = all(subcommand, "z.parquet").fail(2);
        refused.says(&["z.parquet: this command writes JSON lines, not a table"]);
    }
    for (subcommand, output) in [
        ("join", "z.CSV"),
        ("pairs", "z.csv.gz"),
        ("extract", "z.arrow"),
        ("extract", "z.parquet.gz"),
        ("links", "z.parquet.zst"),
    ] {
        let refused = all(subcommand, output).fail(2);
        refused.says(&[output, "not written in this format, but as JSON lines"]);
    }
    for (subcommand, output) in [
        ("join", "z.xz"),
        ("pairs", "z.jsonl.XZ"),
        ("extract", "z.bz2"),
    ] {
        let refused = all(subcommand, output).fail(1);
        refused.says(&[output, "bzip2 and xz are read, not written"]);
    }
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 2);
}

#[test]
fn an_output_that_was_named_is_named_when_it_is_full() {
    let (folder, input) = two();
    let codes = folder.path("codes.jsonl");
    let mut make = lookalike("fingerprint");
    make.arg(&input).arg("-o").arg(&codes).succeed();
    for (subcommand, read) in [("join", &codes), ("pairs", &input)] {
        let mut command = lookalike(subcommand);
        let full = command.arg(read).args(["-o", "/dev/full"]).fail(1);
        full.says(&[
            "/dev/full: ",
            "check where it goes and the free space there",
        ]);
        assert!(!full.err.contains("the output"), "{}", full.err);
        let mut command = lookalike(subcommand);
        let full = std::fs::File::options().write(true).open("/dev/full");
        command
            .arg(read)
            .stdout(full.unwrap())
            .stderr(Stdio::piped());
        let full = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(full.stderr).unwrap();
        assert!(said.contains("error: standard output: "), "{said}");
    }
}

#[test]
fn help_that_a_full_disk_cut_off_was_taken_for_whole() {
    for words in [&["--help"][..], &["dedup", "--help"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = lookalike(words[0]);
        command.args(&words[1..]).stdout(full.unwrap());
        command.fail(1).says(&["standard output: "]);
    }
}

#[test]
fn a_size_of_nothing_left_out_every_document() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", record("a", STORY));
    for option in ["--max-document", "--checkpoint"] {
        let mut dedup = lookalike("dedup");
        dedup.arg(&input).arg("-o").arg(folder.path("out"));
        let told = dedup.args([option, "0"]).fail(2);
        told.says(&[option, "at least one byte"]);
    }
}

#[test]
fn a_first_record_without_fields_was_told_as_an_empty_list_of_them() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", "{}\n");
    let told = lookalike("pairs").arg(&input).fail(1);
    told.says(&["the first record has no fields"]);
}

#[test]
fn standard_input_that_cannot_be_read_was_told_as_a_temporary_file() {
    let folder = Folder::new();
    let mut dedup = lookalike("dedup");
    let input = std::fs::File::open(folder.path("")).unwrap();
    dedup
        .arg("-")
        .stdin(input)
        .arg("-o")
        .arg(folder.path("out"));
    dedup
        .fail(1)
        .says(&["error: standard input: Is a directory"]);
}

#[test]
fn sketches_that_no_file_holds_were_offered_in_place_of_a_wrong_one() {
    let (_folder, input) = two();
    let mut command = lookalike("fingerprint");
    let refused = command.arg(&input).args(["--sketch", "simhash:16"]).fail(2);
    refused.says(&["simhash:16", "simhash:64 (or 32 or 128)", "minhash:N"]);
    assert!(!refused.err.contains("oph"), "{}", refused.err);
}

#[test]
fn a_sweep_measured_and_counted_a_setting_twice() {
    let (_folder, input) = two();
    for (option, values) in [
        ("--shingles", "words:2,words:2"),
        ("--sketches", "none,simhash:64,none"),
        ("--weights", "tf,tf"),
        ("--masks", "none,none"),
        ("--html-modes", "main,main"),
    ] {
        let mut sweep = lookalike("evaluate");
        sweep.arg("sweep").arg(&input).args([option, values]);
        sweep.fail(2).says(&[option, "names a value twice"]);
    }
}

#[test]
fn an_output_that_is_a_directory_was_refused_after_all_the_work() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let codes = folder.path("codes.jsonl");
    let mut fingerprint = lookalike("fingerprint");
    fingerprint.arg(&input).arg("-o").arg(&codes).succeed();
    let output = folder.path("out.jsonl");
    std::fs::create_dir(&output).unwrap();
    for (subcommand, input) in [("pairs", &input), ("join", &codes), ("links", &input)] {
        let mut command = lookalike(subcommand);
        let refused = command.arg(input).arg("-o").arg(&output).fail(2);
        refused.says(&["out.jsonl: is a directory: choose another name"]);
    }
    // No command has created a file.
    let entries = std::fs::read_dir(folder.path("")).unwrap();
    assert_eq!(entries.count(), 3);
}

#[test]
fn an_audit_without_a_method_blamed_the_one_that_nobody_named() {
    let (_folder, input) = two();
    let mut audit = lookalike("evaluate");
    let refused = audit.arg("audit").arg(&input).fail(2);
    refused.says(&[
        "allpairs is exact",
        "name the approximate method",
        "--method simhash",
    ]);
    assert!(
        !refused.err.contains("--method allpairs"),
        "{}",
        refused.err
    );
}

#[test]
fn places_were_told_by_lines_where_there_are_none() {
    let folder = Folder::new();
    let file = folder.add("broken.pdf", "%PDF-1.4 broken");
    let mut dedup = lookalike("dedup");
    let told = dedup.arg(&file).arg("-o").arg(folder.path("out")).lose();
    told.says(&["broken.pdf: not a PDF"]);
    let pairs = folder.add("pairs.parquet", "PAR1");
    let mut cluster = lookalike("cluster");
    cluster
        .arg("--pairs")
        .arg(&pairs)
        .arg("-o")
        .arg(folder.path("out2"));
    let refused = cluster.fail(1);
    refused.says(&["pairs.parquet, line 1: not a pair: expected value, at character 1"]);
}

#[test]
fn an_address_of_an_unknown_kind_is_no_missing_file() {
    let mut command = lookalike("dedup");
    command.args(["hdfs://node/crawl.jsonl", "-o", "out"]);
    command
        .fail(1)
        .says(&["addresses of the form hdfs://", "by their path"]);
}

#[test]
fn an_output_named_dash_became_a_file() {
    let (folder, _) = two();
    let run = |case: &str| {
        let mut words = case.split(' ');
        let mut command = lookalike(words.next().unwrap());
        command.current_dir(folder.path("")).args(words);
        command
    };
    for case in [
        "fingerprint two.jsonl -o codes.jsonl",
        "join codes.jsonl -o pairs.jsonl",
        "archive build two.jsonl -o two.lkar",
    ] {
        run(case).succeed();
    }
    for case in [
        "pairs two.jsonl -q",
        "extract two.jsonl -q",
        "links two.jsonl -q",
        "fingerprint two.jsonl -q",
        "fingerprint --import codes.jsonl -q",
        "join codes.jsonl -q",
        "merge pairs.jsonl -q",
        "archive extract two.lkar --id a -q",
    ] {
        let plain = run(case).succeed();
        assert!(!plain.out.is_empty(), "{case}");
        assert_eq!(run(&format!("{case} -o -")).succeed().out, plain.out);
    }
    for case in [
        "dedup two.jsonl",
        "archive build two.jsonl",
        "archive extract two.lkar",
        "terms two.jsonl",
        "index build codes.jsonl",
        "cluster codes.jsonl",
        "overlap two.jsonl",
        "evaluate sample two.jsonl",
    ] {
        let refused = run(&format!("{case} -o -")).fail(2);
        refused.says(&["cannot go to standard output", "./- for one called -"]);
    }
    // Files besides the output were written under the name `-`, or read from a file of this name.
    for case in [
        "dedup two.jsonl -o out --into -",
        "dedup two.jsonl -o out --boilerplate site --boilerplate-lines -",
        "pairs two.jsonl --tmp -",
        "design --calibrate --constants -",
        "index info codes.lki --page -",
        "explain a b --in two.jsonl --page -",
        "evaluate sweep two.jsonl --page -",
        "evaluate labels two.jsonl --labels -",
        "terms add - two.jsonl -o terms.lkt",
        "archive extract - --id a",
        "client rerank pages -",
        "man -",
    ] {
        let refused = run(case).fail(2);
        refused.says(&["cannot be standard input or output", "./- for one called -"]);
    }
    let resumed = run("pairs two.jsonl -o - --resume").fail(2);
    resumed.says(&["--resume has no effect here", "name a file with -o"]);
    assert!(!folder.path("-").exists());
    run("pairs two.jsonl -q -o ./-").succeed();
    assert!(folder.path("-").exists());
}
