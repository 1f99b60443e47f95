//! Folders of results that are within the input, or that a job writes to again.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, STORY, json_lines, lookalike, path, record};

/// Returns a command whose input is the folder that it runs in.
fn here(folder: &Path, subcommand: &str, out: &str) -> Command {
    let mut command = lookalike(subcommand);
    command.current_dir(folder).args([".", "-o", out]);
    command
}

/// Adds three documents, two of them equal.
fn documents(folder: &Folder) {
    folder.add("a.txt", STORY);
    folder.add("b.txt", STORY);
    folder.add("sub/c.txt", "quite another story of a mill by the river");
}

/// Returns ids and files of the kept documents.
fn kept(out: &Path) -> Vec<Value> {
    json_lines(&fs::read(out.join("kept.jsonl")).unwrap())
}

fn skipped(out: &Path, kind: &str) -> Vec<String> {
    let rows = json_lines(&fs::read(out.join("skipped.jsonl")).unwrap());
    let rows = rows.iter().filter(|row| row["kind"] == kind);
    rows.map(|row| row["source"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_job_removed_what_another_command_was_writing_beside_its_results() {
    let folder = Folder::new();
    documents(&folder);
    let others = ["out/linked.jsonl.tmp-AbC123", "out/notes.tmp-backup"];
    for other in others {
        folder.add(other, "not of this job");
    }
    let mut command = lookalike("dedup");
    command
        .arg(folder.path("a.txt"))
        .arg("-o")
        .arg(folder.path("out"));
    command.succeed();
    command.arg("--overwrite").succeed();
    for other in others {
        assert_eq!(fs::read(folder.path(other)).unwrap(), b"not of this job");
    }
}

#[test]
fn overwrite_replaced_folders_of_the_user_that_have_the_names_of_results() {
    let folder = Folder::new();
    let lines = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let out = folder.path("out");
    let job = |input: &Path| {
        let mut command = lookalike("dedup");
        command.arg(input).arg("-o").arg(&out);
        command
    };
    job(&lines).succeed();
    let run: Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    let expected = [
        "clusters.jsonl",
        "kept.jsonl",
        "pairs.jsonl",
        "removed.jsonl",
        "report.html",
        "run.json",
    ];
    let mut results: Vec<&str> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    results.retain(|name| *name != "skipped.jsonl");
    assert_eq!(results, expected);
    // With files as input the job writes `kept/`, which the job before did not write.
    folder.add("files/a.txt", STORY);
    folder.add("out/kept/mine.txt", "not of any job");
    let mut files = job(&folder.path("files"));
    let refused = files.arg("--overwrite").fail(1);
    refused.says(&["kept exists", "may be yours"]);
    assert!(out.join("kept/mine.txt").exists() && out.join("kept.jsonl").exists());
    fs::remove_dir_all(out.join("kept")).unwrap();
    files.succeed();
    // Results of another command would be mixed with those of this one.
    let mut atlas = lookalike("overlap");
    atlas.arg(&lines).arg("-o").arg(&out).arg("--overwrite");
    atlas.fail(1).says(&["is a result of another command"]);
}

#[test]
fn results_within_the_input_are_replaced_and_not_read() {
    let folder = Folder::new();
    documents(&folder);
    here(&folder.path(""), "dedup", "out").succeed();
    let (first, out) = (Results::stable(&folder.path("out")), folder.path("out"));
    assert_eq!(kept(&out).len(), 2);
    for _ in 0..2 {
        let again = here(&folder.path(""), "dedup", "out")
            .arg("--overwrite")
            .succeed();
        assert!(again.err.contains("output-folder"), "{}", again.err);
        assert!(!again.err.contains("warning"), "{}", again.err);
        assert_eq!(Results::stable(&out), first);
    }
    assert_eq!(skipped(&out, "output-folder"), ["./out"]);
    assert_eq!(
        fs::read(out.join("kept/sub/c.txt")).unwrap(),
        fs::read(folder.path("sub/c.txt")).unwrap()
    );
    assert!(!out.join(".lookalike").exists());
}

#[test]
fn results_of_another_job_are_left_out_and_told() {
    let folder = Folder::new();
    documents(&folder);
    here(&folder.path(""), "dedup", "sub/out").succeed();
    let told = here(&folder.path(""), "dedup", "out2").succeed();
    assert!(
        told.err.contains("warning: ./sub/out is left out"),
        "{}",
        told.err
    );
    assert!(told.err.contains("1 results-folder"), "{}", told.err);
    let out2 = folder.path("out2");
    let ids: Vec<Value> = kept(&out2).iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["./a.txt", "./sub/c.txt"]);
    assert_eq!(skipped(&out2, "results-folder"), ["./sub/out"]);
    // The same holds for other commands and for patterns.
    let mut extract = lookalike("extract");
    extract.current_dir(folder.path(""));
    let texts = extract.args([".", "--quiet"]).succeed();
    assert_eq!(texts.lines().len(), 3);
    assert_eq!(texts.err, "");
    let mut extract = lookalike("extract");
    extract.current_dir(folder.path(""));
    assert_eq!(extract.arg("**/*.txt").succeed().lines().len(), 3);
    let mut atlas = here(&folder.path(""), "overlap", "atlas");
    atlas.succeed();
    let left_out = fs::read_to_string(folder.path("atlas/skipped.jsonl")).unwrap();
    assert!(left_out.contains("results-folder"), "{left_out}");
    let before = fs::read(folder.path("atlas/copies.jsonl")).unwrap();
    atlas.arg("--overwrite").succeed();
    assert_eq!(fs::read(folder.path("atlas/copies.jsonl")).unwrap(), before);
}

#[test]
fn kept_documents_that_are_named_are_read() {
    let folder = Folder::new();
    documents(&folder);
    here(&folder.path(""), "dedup", "out").succeed();
    let named = folder.dedup_into("named", &folder.path("out/kept"), &[]);
    assert_eq!(named.count("decisions", "kept"), 2);
    let mut against = here(&folder.path(""), "dedup", "new");
    against.args(["--against", "out"]).succeed();
    assert_eq!(kept(&folder.path("new")), [] as [Value; 0]);
}

#[test]
fn clusters_and_removed_records_of_a_results_folder_were_read_as_documents() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    folder.dedup(&input, &[]);
    let out = folder.path("out");
    let kept = out.join("kept.jsonl");
    let said = ["holds results of an earlier job", kept.to_str().unwrap()];
    for subcommand in ["pairs", "extract", "links"] {
        lookalike(subcommand).arg(&out).fail(1).says(&said);
    }
    let mut dedup = lookalike("dedup");
    dedup.arg(&out).arg("-o").arg(folder.path("again"));
    dedup.fail(1).says(&said);
    assert!(!folder.path("again").exists());
    assert_eq!(lookalike("extract").arg(&kept).succeed().lines().len(), 1);
    let seen = folder.path("seen");
    let mut build = lookalike("collection");
    build.arg("build").arg(&seen).arg(&out).succeed();
    lookalike("pairs")
        .arg(&seen)
        .fail(1)
        .says(&["is a collection"]);
}

/// Spark writes each result as a folder of parts, including `run.json`.
#[test]
fn results_of_a_job_on_spark_were_read_with_what_was_removed_there() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let mut job = lookalike("dedup");
    job.arg(&input).arg("-o").arg(folder.path("out"));
    job.args(["--output-format", "parquet"]).succeed();
    let of_spark = folder.path("of spark");
    for name in ["kept.parquet", "removed.parquet", "clusters.parquet"] {
        fs::create_dir_all(of_spark.join(name)).unwrap();
        let part = of_spark.join(name).join("part-00000.snappy.parquet");
        fs::copy(folder.path("out").join(name), part).unwrap();
    }
    folder.add("of spark/run.json/_SUCCESS", "");
    let summary = r#"{"program":"lookalike.spark","counts":{"documents":2},"kept_in":["kept.parquet"],"results":["kept.parquet","removed.parquet"]}"#;
    let part = folder.add("of spark/run.json/part-00000.txt", summary);
    let new = folder.records("new.jsonl", &[("c", STORY)]);
    let against = |subcommand: &str| {
        let mut command = lookalike(subcommand);
        command.current_dir(folder.path(""));
        command
            .arg(&new)
            .args(["-o", "against", "--overwrite", "--against", "of spark"]);
        command
    };
    against("dedup").succeed().says(&["against  1 record,"]);
    let clusters = json_lines(&fs::read(folder.path("against/clusters.jsonl")).unwrap());
    assert_eq!(clusters[0]["survivor"], "a");
    let mut build = lookalike("collection");
    build.arg("build").arg(folder.path("seen")).arg(&of_spark);
    build.succeed();
    let info = lookalike("collection")
        .arg("info")
        .arg(folder.path("seen"))
        .arg("--json")
        .succeed();
    assert_eq!(info.json()["documents"], 1);
    let kept = of_spark.join("kept.parquet");
    let said = ["holds results of an earlier job", kept.to_str().unwrap()];
    lookalike("pairs").arg(&of_spark).fail(1).says(&said);
    here(&folder.path(""), "dedup", "all").succeed();
    assert!(skipped(&folder.path("all"), "results-folder").contains(&"./of spark".to_owned()));
    // Spark writes an empty summary first.
    fs::write(part, "").unwrap();
    against("dedup")
        .fail(1)
        .says(&["of spark: ", "is not finished"]);
}

/// A `run.json` of another program does not mark a folder of results.
#[test]
fn a_folder_with_a_foreign_summary_is_read() {
    let folder = Folder::new();
    documents(&folder);
    folder.add("sub/run.json", r#"{"program":"another","version":"1"}"#);
    here(&folder.path(""), "dedup", "out").succeed();
    assert_eq!(kept(&folder.path("out")).len(), 3);
}

#[test]
fn input_and_output_may_be_one_folder() {
    let folder = Folder::new();
    documents(&folder);
    here(&folder.path(""), "dedup", ".").succeed();
    let first = Results::stable(&folder.path(""));
    here(&folder.path(""), "dedup", ".")
        .arg("--overwrite")
        .succeed();
    assert_eq!(kept(&folder.path("")).len(), 2);
    let again = Results::stable(&folder.path(""));
    for ((name, first), (_, again)) in first.iter().zip(&again) {
        assert!(*name == "skipped.jsonl" || first == again, "{name}");
    }
}

#[test]
fn what_no_job_left_is_not_overwritten() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let mine = folder.add("out/kept/mine.txt", "years of work");
    let mut job = lookalike("dedup");
    job.arg(&input).arg("-o").arg(folder.path("out"));
    job.arg("--overwrite").fail(1).says(&["kept", "yours"]);
    assert_eq!(fs::read_to_string(mine).unwrap(), "years of work");
}

#[test]
fn results_that_new_ones_are_compared_with_are_not_replaced() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    let out = folder.dedup(&old, &[]).folder;
    let new = folder.records("new.jsonl", &[("b", "another story altogether")]);
    for against in [out.clone(), out.join("kept.jsonl")] {
        let mut job = lookalike("dedup");
        job.arg(&new).arg("-o").arg(&out).arg("--against");
        job.arg(against).arg("--overwrite");
        job.fail(2).says(&["--overwrite", "-o"]);
    }
    assert_eq!(Results::read(&out).kept_ids(), ["a"]);
}

#[test]
fn results_that_were_the_input_were_replaced_by_their_own_results() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY), ("b", STORY)]);
    let out = folder.dedup(&old, &[]).folder;
    let before = Results::stable(&out);
    for input in ["kept.jsonl", "removed.jsonl"] {
        let mut job = lookalike("dedup");
        job.arg(out.join(input)).arg("-o").arg(&out);
        let refused = job.arg("--overwrite").fail(2);
        refused.says(&["--overwrite would replace", input, "also an input"]);
    }
    assert_eq!(Results::stable(&out), before);
}

/// The second job fails before it has decided, the third while it writes.
#[test]
fn a_job_that_fails_leaves_the_old_results_whole() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY), ("b", STORY)]);
    let out = folder.dedup(&old, &[]).folder;
    let first = Results::stable(&out);
    let run = fs::read(out.join("run.json")).unwrap();
    let job = |input: &Path, flags: &[&str]| {
        let mut job = lookalike("dedup");
        job.arg(input).arg("-o").arg(&out).arg("--overwrite");
        job.args(flags).fail(1)
    };
    let broken = folder.add("broken.jsonl", "{\"id\":1,\"text\":\"x\"}\nno json\n");
    job(&broken, &["--strict"]);
    let mut numbers = Numbers(1);
    let record: serde_json::Map<String, Value> = (0..1_001)
        .map(|i| (format!("k{i}"), Value::from(numbers.words(3, 100))))
        .chain([("text".to_owned(), STORY.into())])
        .collect();
    let wide = folder.add("wide.jsonl", format!("{}\n", Value::Object(record)));
    job(&wide, &["--output-format", "parquet"]);
    assert_eq!(Results::stable(&out), first);
    assert_eq!(fs::read(out.join("run.json")).unwrap(), run);
    // The decisions could be resumed, so a new job removes them.
    folder.dedup(&old, &["--output-format", "jsonl"]);
    assert!(!out.join(".lookalike").exists());
    assert_eq!(Results::stable(&out), first);
}

/// Such results are protected whether a pattern or a link leads to them.
#[test]
fn results_that_a_wildcard_or_a_link_leads_to_were_replaced_and_lost() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    let out = folder.dedup(&old, &[]).folder;
    let new = folder.records("new.jsonl", &[("b", "another story altogether")]);
    fs::create_dir(folder.path("links")).unwrap();
    std::os::unix::fs::symlink(out.join("kept.jsonl"), folder.path("links/k.jsonl")).unwrap();
    let pattern = format!("{}/*.jsonl", out.display());
    for against in [
        &[&*pattern][..],
        &[folder.path("links").to_str().unwrap(), "--follow-links"],
    ] {
        let mut job = lookalike("dedup");
        job.arg(&new).arg("-o").arg(&out).arg("--against");
        job.args(against).arg("--overwrite");
        job.fail(2).says(&["--overwrite would replace", "-o"]);
    }
    assert_eq!(Results::read(&out).kept_ids(), ["a"]);
}

/// A scheduler repeats a task that has succeeded; that must not turn it into a failure, nor do anything twice.
#[test]
fn a_finished_job_that_was_resumed_failed() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let (out, seen) = (folder.path("out"), folder.path("seen"));
    let job = |more: &[&str]| {
        let mut job = lookalike("dedup");
        job.arg(&input).arg("-o").arg(&out).arg("--into").arg(&seen);
        job.args(more);
        job
    };
    let seen_too = ["--against", path(&seen), "--resume"];
    let done = ["nothing was left to do"];
    job(&[]).succeed();
    let bytes = || {
        [
            "out/run.json",
            "out/kept.jsonl",
            "seen/lookalike.collection",
        ]
        .map(|name| fs::read(folder.path(name)).unwrap())
    };
    let before = bytes();
    job(&["--resume"]).succeed().says(&done);
    // On the first day the collection was not there yet.
    job(&seen_too).succeed().says(&done);
    let quiet = job(&["--resume", "--quiet"]).succeed();
    assert_eq!((quiet.text(), &*quiet.err), ("", ""));
    let told = job(&["--resume", "--json"]).succeed().json();
    assert_eq!(told["added"]["added"], 1);
    assert_eq!(bytes(), before);
    let other = job(&["--resume", "--threshold", "0.7"]).fail(1);
    other.says(&["different settings"]);
    let mut without = lookalike("dedup");
    without.arg(folder.records("b.jsonl", &[("b", STORY)]));
    without.arg("-o").arg(&out).arg("--resume");
    without.fail(1).says(&["other files"]);
    fs::remove_dir_all(&seen).unwrap();
    let gone = job(&["--resume"]).fail(1);
    gone.says(&["is not in", "lookalike collection add"]);
    assert!(!seen.exists());
}

#[test]
fn a_finished_job_was_taken_for_one_of_an_input_of_equal_size() {
    let folder = Folder::new();
    for command in ["dedup", "overlap"] {
        let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
        let out = folder.path(command);
        let job = |more: &[&str]| {
            let mut job = lookalike(command);
            job.arg(&input).arg("-o").arg(&out).args(more);
            job
        };
        job(&[]).succeed();
        let summary = fs::read(out.join("run.json")).unwrap();
        let (before, times) = (fs::read(&input).unwrap(), fs::metadata(&input).unwrap());
        let mut other = before.clone();
        *other
            .iter_mut()
            .rfind(|byte| byte.is_ascii_lowercase())
            .unwrap() = b'#';
        fs::write(&input, other).unwrap();
        let file = fs::File::options().write(true).open(&input).unwrap();
        // Times prove nothing either.
        file.set_modified(times.modified().unwrap()).unwrap();
        let told = job(&["--resume"]).fail(1);
        told.says(&["have changed since", "--overwrite"]);
        assert_eq!(fs::read(out.join("run.json")).unwrap(), summary);
        fs::write(&input, before).unwrap();
        job(&["--resume"])
            .succeed()
            .says(&["nothing was left to do"]);
    }
}

#[test]
fn losses_of_a_finished_job_were_forgotten_when_it_was_resumed() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", format!("{}{{\n", record("a", STORY)));
    for command in ["dedup", "overlap"] {
        let out = folder.path(command);
        let job = |more: &[&str]| {
            let mut job = lookalike(command);
            job.arg(&input).arg("-o").arg(&out).args(more);
            job
        };
        job(&[]).lose();
        job(&["--resume"]).lose().says(&["nothing was left to do"]);
        job(&["--resume", "--max-skipped", "1"]).succeed();
        job(&["--resume", "--max-skipped", "0"]).fail(1);
    }
}

#[test]
fn a_job_repeated_over_its_results_replaced_what_it_had_kept_by_nothing() {
    let folder = Folder::new();
    let monday = folder.records("monday.jsonl", &[("a", STORY), ("b", STORY)]);
    let tuesday = folder.records(
        "tuesday.jsonl",
        &[("c", "a mill by the river, and its miller")],
    );
    let (out, seen) = (folder.path("out"), folder.path("seen"));
    let job = |input: &Path| {
        let mut job = lookalike("dedup");
        job.arg(input).arg("-o").arg(&out).arg("--into").arg(&seen);
        job
    };
    job(&monday).succeed();
    let repeated = |input: &Path| {
        let mut job = job(input);
        job.arg("--overwrite").arg("--against").arg(&seen);
        job
    };
    repeated(&monday)
        .fail(1)
        .says(&["added 1 document", "would find them there", "-o"]);
    assert_eq!(kept(&out).len(), 1);
    // The same directory can get the results of each day.
    repeated(&tuesday).succeed();
    assert_eq!(kept(&out)[0]["id"], "c");
    // The collection can be started again.
    fs::remove_dir_all(&seen).unwrap();
    job(&tuesday).arg("--overwrite").succeed();
    assert_eq!(kept(&out).len(), 1);
}

#[test]
fn a_link_that_linked_nothing_was_not_told() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let dedup = |input: &Path, out: &str| {
        let mut dedup = lookalike("dedup");
        dedup
            .arg(input)
            .arg("-o")
            .arg(folder.path(out))
            .arg("--link");
        dedup.succeed().err
    };
    let told = "--link had no effect";
    assert!(dedup(&input, "records").contains(told));
    assert!(!dedup(&folder.add("a.txt", STORY), "files").contains(told));
}

#[test]
fn a_failed_job_left_the_empty_folder_around_its_collection() {
    let folder = Folder::new();
    let out = folder.path("out");
    let mut job = lookalike("dedup");
    job.arg(folder.path("missing.jsonl")).arg("-o").arg(&out);
    job.arg("--into").arg(out.join("seen"));
    job.fail(1).says(&["missing.jsonl"]);
    assert!(!out.exists());
}
