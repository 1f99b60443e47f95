//! A file of records that changes while it is read is lost, told, and ends no job.
//!
//! The job is stopped in the middle of the file: behind its records a gap follows that takes a while to be read.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::losses::readers;
use crate::results::Results;
use crate::support::{Finished, Folder, Numbers, lookalike, record};

/// Length of the file that changes; all but its beginning is a gap.
const LENGTH: u64 = 512 << 20;

const RECORDS: usize = 2000;

/// A folder of two files: `a.jsonl`, which is to change, and `b.jsonl`, which begins with a text of the other.
fn two_files(folder: &Folder) -> [PathBuf; 2] {
    let mut numbers = Numbers(11);
    let texts: Vec<String> = (0..RECORDS).map(|_| numbers.words(30, 100_000)).collect();
    let lines = |name: &str, texts: &[String]| -> String {
        let line = |(number, text): (usize, &String)| record(&format!("{name}{number}"), text);
        texts.iter().enumerate().map(line).collect()
    };
    let changing = folder.add("in/a.jsonl", lines("a", &texts));
    let file = OpenOptions::new().write(true).open(&changing).unwrap();
    file.set_len(LENGTH).unwrap();
    let other = folder.add("in/b.jsonl", lines("b", &texts[..10]));
    [changing, other]
}

fn truncate(file: &Path) {
    OpenOptions::new()
        .write(true)
        .open(file)
        .and_then(|file| file.set_len(1 << 20))
        .unwrap();
}

fn grow(file: &Path) {
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(record("late", "a text that came late").as_bytes())
        .unwrap();
}

fn replace(file: &Path) {
    let other = file.with_extension("new");
    fs::write(&other, record("new", "the text of another file")).unwrap();
    fs::rename(other, file).unwrap();
}

/// The place at which a process reads a file; none where it has not opened it.
fn reads_at(process: u32, file: &Path) -> Option<u64> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let mut open = open.filter(|open| fs::read_link(open.path()).is_ok_and(|to| to == file));
    let number = open.next()?.file_name().into_string().unwrap();
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    let place = info.lines().find_map(|line| line.strip_prefix("pos:"))?;
    place.trim().parse().ok()
}

fn is_stopped(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    status.rsplit(')').next().unwrap().trim().starts_with('T')
}

/// Stops a process as soon as it has begun with a file.
fn stop_within(child: &mut Child, file: &Path) {
    let process = child.id();
    let pid = Pid::from_child(child);
    loop {
        assert!(child.try_wait().unwrap().is_none(), "the job is over");
        kill_process(pid, Signal::STOP).unwrap();
        while !is_stopped(process) {
            std::thread::yield_now();
        }
        match reads_at(process, file) {
            // The records before the gap are read.
            Some(at) if at > LENGTH / 256 => {
                assert!(at < LENGTH, "the file is read to its end");
                return;
            }
            _ => kill_process(pid, Signal::CONT).unwrap(),
        }
        std::thread::yield_now();
    }
}

/// Runs a command that reads a file, and changes the file meanwhile.
fn change_midway(command: &mut Command, file: &Path, change: fn(&Path)) -> Finished {
    let file = file.canonicalize().unwrap();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    stop_within(&mut child, &file);
    change(&file);
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    Finished {
        status: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn dedup(folder: &Folder) -> Command {
    let mut command = lookalike("dedup");
    command.arg(folder.path("in")).arg("-o");
    command.arg(folder.path("out"));
    command
}

#[test]
fn one_file_that_changed_while_it_was_read_ended_the_job() {
    for change in [truncate, grow, replace] {
        let folder = Folder::new();
        let [changing, other] = two_files(&folder);
        let finished = change_midway(&mut dedup(&folder), &changing, change);
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        let results = Results::read(&folder.path("out"));
        // Nothing is removed for a text that stands in the lost file only.
        assert!(results.kept.concat() == fs::read(other).unwrap());
        assert!(results.removed.is_empty());
        let [skip] = &results.skipped[..] else {
            panic!("{:?}", results.skipped);
        };
        assert_eq!(skip["kind"], "unreadable", "{skip}");
        assert!(skip["source"].as_str().unwrap().ends_with("in/a.jsonl"));
        assert!(
            skip["reason"].as_str().unwrap().contains("changed"),
            "{skip}"
        );
        let row = &results.run["skipped"][0];
        assert_eq!(row["count"], 1, "{row}");
        assert_eq!(row["loss"], "unknown", "{row}");
        finished.says(&["a.jsonl", "changed"]);
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_a_loss_to_every_command() {
    let folder = Folder::new();
    for change in [truncate, grow] {
        let [changing, _] = two_files(&folder);
        for mut command in readers(&folder, &folder.path("in")) {
            File::options()
                .write(true)
                .open(&changing)
                .and_then(|file| file.set_len(LENGTH))
                .unwrap();
            let finished = change_midway(&mut command, &changing, change);
            assert_eq!(finished.status, Some(3), "{command:?}: {}", finished.err);
            finished.says(&["a.jsonl", "changed"]);
        }
    }
}

#[test]
fn limits_on_losses_hold_for_a_file_that_changes_while_it_is_read() {
    let changed = |flags: &[&str]| {
        let folder = Folder::new();
        let [changing, _] = two_files(&folder);
        let finished = change_midway(dedup(&folder).args(flags), &changing, grow);
        let is_written = folder.path("out/run.json").exists();
        assert_eq!(is_written, finished.status == Some(0), "{}", finished.err);
        finished
    };
    assert_eq!(changed(&["--max-skipped", "1"]).status, Some(0));
    for flags in [&["--max-skipped", "0"][..], &["--strict"]] {
        let refused = changed(flags);
        assert_eq!(refused.status, Some(1), "{}", refused.err);
        refused.says(&["a.jsonl", "changed", flags[0]]);
    }
}
