//! Progress on a terminal while a command works, tested with a pseudo-terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Finish, Folder, Numbers};

/// Returns every line that a command draws on a terminal of `columns` columns.
#[track_caller]
fn drawn(columns: u16, subcommand: &[&str], rest: &[&Path]) -> Vec<String> {
    let mut python = Command::new("python3");
    python.arg("-").arg(columns.to_string());
    python.arg(env!("CARGO_BIN_EXE_lookalike")).args(subcommand);
    python.args(rest).stdin(Stdio::piped());
    let done = python.finish_with(include_bytes!("terminal.py"));
    assert_eq!(done.status, Some(0), "{}{}", done.text(), done.err);
    done.text().lines().map(str::to_owned).collect()
}

/// Returns the lines of a stage: its name, followed by a bar or a spinner.
fn of_stage<'l>(lines: &'l [String], stage: &str) -> Vec<&'l str> {
    let all = lines.iter().map(String::as_str);
    all.filter(|line| {
        line.strip_prefix(stage)
            .is_some_and(|rest| rest.starts_with("  "))
    })
    .collect()
}

fn stories(folder: &Folder, count: usize, words: usize) -> std::path::PathBuf {
    let mut numbers = Numbers(7);
    let story = |number: usize| (format!("d{number:05}"), numbers.words(words, 50_000));
    let mut records: Vec<(String, String)> = (0..count).map(story).collect();
    for number in 0..count / 4 {
        records[number].1 = format!("{} and so on", records[count - 1 - number].1);
    }
    let lines: Vec<(String, String)> = records
        .into_iter()
        .map(|(id, text)| (id, text.replace(" w1", "\nw1")))
        .collect();
    folder.records("in.jsonl", &lines)
}

#[test]
fn a_sweep_shows_what_it_does() {
    let folder = Folder::new();
    let input = stories(&folder, 400, 200);
    let sweep = ["evaluate", "sweep", "--threads", "1"];
    let lines = drawn(80, &sweep, &[&input]);
    let measured = of_stage(&lines, "measure");
    assert!(
        measured.iter().any(|line| line.contains(" of 84")),
        "{lines:#?}"
    );
    let quiet = ["evaluate", "sweep", "--quiet", "--shingles", "words:5"];
    let few = drawn(80, &quiet, &[&input]);
    assert!(of_stage(&few, "measure").is_empty(), "--quiet");
}

#[test]
fn grouping_of_an_overlap_advances() {
    let folder = Folder::new();
    let input = stories(&folder, 20_000, 150);
    let overlap = [
        "overlap",
        "--chunk",
        "words:2:sliding",
        "--min-shared",
        "40",
    ];
    let lines = drawn(80, &overlap, &[&input]);
    let groups = of_stage(&lines, "group");
    assert!(!groups.is_empty(), "{lines:#?}");
    assert!(
        groups.iter().all(|line| !line.contains(" of 1,")),
        "{groups:#?}"
    );
}

#[test]
fn a_line_of_progress_never_wraps() {
    let folder = Folder::new();
    let input = stories(&folder, 8_000, 150);
    for columns in [80, 60, 40] {
        let out = folder.path(format!("out-{columns}"));
        let lines = drawn(columns, &["dedup"], &[&input, Path::new("-o"), &out]);
        let stages = ["read", "rank", "keys", "group", "compare", "write"];
        let bars: Vec<&str> = stages
            .iter()
            .flat_map(|stage| of_stage(&lines, stage))
            .collect();
        assert!(!bars.is_empty(), "{lines:#?}");
        for bar in bars {
            let width = bar.chars().count();
            assert!(width < usize::from(columns), "{width} of {columns}: {bar}");
        }
    }
}
