//! Files of which nothing is read are copied to the results too, so that kept, removed and skipped make up the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::hostile_files::{long_and_short, wait_for};
use crate::results::Results;
use crate::support::{Finish, Folder, STORY, json_lines, lookalike};

/// Adds two equal texts, an office document, a binary file, a broken PDF, and a gzip file with invalid contents.
fn mixed(folder: &Folder) -> Vec<(&'static str, PathBuf)> {
    let files: [(&str, &[u8]); 6] = [
        ("a.txt", STORY.as_bytes()),
        ("b.txt", STORY.as_bytes()),
        ("sub/letter.docx", b"PK\x03\x04 an office document"),
        ("sub/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("scan.pdf", b"%PDF-1.7 that breaks off"),
        ("lines.jsonl.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff no deflate"),
    ];
    let add = |(name, bytes)| (name, folder.add(Path::new("in").join(name), bytes));
    files.into_iter().map(add).collect()
}

fn dedup(folder: &Folder, flags: &[&str]) -> std::process::Command {
    let mut command = lookalike("dedup");
    command.current_dir(folder.path(""));
    command.args(["in", "-o", "out"]).args(flags);
    command
}

#[test]
fn what_is_not_read_is_copied_to_skipped() {
    let folder = Folder::new();
    let files = mixed(&folder);
    let told = dedup(&folder, &[]).lose();
    assert!(
        told.err.contains("that could not be read at all"),
        "{}",
        told.err
    );
    for (name, file) in &files {
        let places = ["kept", "removed", "skipped"].map(|part| folder.path("out").join(part));
        let copies = places.iter().map(|part| part.join("in").join(name));
        let copies: Vec<PathBuf> = copies.filter(|copy| copy.exists()).collect();
        assert_eq!(copies.len(), 1, "{name}: {copies:?}");
        assert_eq!(fs::read(&copies[0]).unwrap(), fs::read(file).unwrap());
    }
    let rows = json_lines(&fs::read(folder.path("out/skipped.jsonl")).unwrap());
    let mut listed: Vec<&str> = rows.iter().filter_map(|row| row["file"].as_str()).collect();
    listed.sort_unstable();
    let wanted = [
        "lines.jsonl.gz",
        "scan.pdf",
        "sub/letter.docx",
        "sub/picture.png",
    ];
    assert_eq!(listed, wanted.map(|name| format!("skipped/in/{name}")));
    // A file that is one document has no lines.
    let scan = rows.iter().find(|row| row["kind"] == "conversion").unwrap();
    assert_eq!((scan.get("line"), &scan["record"]), (None, &1.into()));
    let run: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path("out/run.json")).unwrap()).unwrap();
    assert_eq!(run["written"]["skipped_files"], 4, "{run}");
    let page = fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("4 files that could not be read at all are in skipped/"));
    // Files given with `--against` are not written, not even those that could not be read.
    folder.add("other.txt", STORY);
    let mut against = lookalike("dedup");
    against.current_dir(folder.path(""));
    against
        .args(["other.txt", "-o", "new", "--against", "in"])
        .lose();
    assert!(!folder.path("new/skipped").exists());
}

#[test]
fn a_damaged_arrow_file_was_copied_as_a_parquet_table() {
    let folder = Folder::new();
    folder.add("in/a.txt", STORY);
    folder.add("in/rows.arrow", b"ARROW1\0\0 that breaks off");
    dedup(&folder, &[]).lose();
    assert!(folder.path("out/skipped/in/rows.arrow").exists());
}

/// Starts a job over a folder with a picture and another file that takes a while.
fn with_picture(folder: &Folder, flags: &[&str]) -> (PathBuf, Child) {
    let [long, _] = long_and_short(folder);
    fs::create_dir(folder.path("in")).unwrap();
    fs::rename(long, folder.path("in/long.jsonl")).unwrap();
    let picture = folder.add("in/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let mut command = dedup(folder, flags);
    (picture, command.stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_file_that_was_passed_over_and_vanished_before_it_was_copied_ended_the_job() {
    for (flags, status) in [
        (&[][..], 3),
        (&["--max-skipped", "0"], 1),
        (&["--strict"], 1),
    ] {
        let folder = Folder::new();
        let (picture, mut child) = with_picture(&folder, flags);
        wait_for(&folder.path("out/.lookalike/job.json"), &mut child);
        fs::remove_file(picture).unwrap();
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{message}");
        assert!(
            message.contains("picture.png") && message.contains("gone"),
            "{message}"
        );
        assert_eq!(folder.path("out/run.json").exists(), status == 3);
        if status == 1 {
            continue;
        }
        let results = Results::read(&folder.path("out"));
        assert_eq!(results.kept.len() + results.removed.len(), 16_000);
        let [passed_over, lost] = &results.skipped[..] else {
            panic!("{:?}", results.skipped);
        };
        assert!(passed_over["file"].is_null(), "{passed_over}");
        assert_eq!(lost["kind"], "unreadable");
        assert!(lost["source"].as_str().unwrap().ends_with("picture.png"));
        assert_eq!(results.run["written"]["skipped_files"], 0);
    }
}

#[test]
fn copies_of_files_that_were_passed_over_outlive_a_killed_job() {
    let folder = Folder::new();
    let (picture, mut child) = with_picture(&folder, &[]);
    wait_for(&folder.path("out/.lookalike/decided.bin"), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !folder.path("out/run.json").exists(),
        "it was killed in time"
    );
    let bytes = fs::read(&picture).unwrap();
    fs::remove_file(picture).unwrap();
    dedup(&folder, &["--resume"]).succeed();
    let copy = folder.path("out/skipped/in/picture.png");
    assert!(fs::read(copy).unwrap() == bytes);
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.run["written"]["skipped_files"], 1);
}

#[cfg(unix)]
#[test]
fn files_are_linked_where_that_is_asked_for() {
    use std::os::unix::fs::MetadataExt;

    let folder = Folder::new();
    mixed(&folder);
    dedup(&folder, &["--link"]).lose();
    for (result, name) in [
        ("kept", "a.txt"),
        ("removed", "b.txt"),
        ("skipped", "scan.pdf"),
        ("skipped", "sub/picture.png"),
    ] {
        let copy = folder.path("out").join(result).join("in").join(name);
        let same = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(same(&copy), same(&folder.path("in").join(name)), "{name}");
    }
    dedup(&folder, &["--link", "--overwrite"]).lose();
    assert_eq!(fs::read_to_string(folder.path("in/a.txt")).unwrap(), STORY);
}
