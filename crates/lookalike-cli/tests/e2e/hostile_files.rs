//! Files that change, are not regular files, or have strange names; outputs that cannot be written.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, STORY, json_lines, lookalike, record};

/// Writes two files; a job takes a while to reach the second.
pub(crate) fn long_and_short(folder: &Folder) -> [PathBuf; 2] {
    let mut numbers = Numbers(5);
    let lines =
        (0..16_000).map(|number| record(&format!("{number:05}"), &numbers.words(140, 20_000)));
    let long = folder.add("long.jsonl", lines.collect::<String>());
    [
        long,
        folder.add("short.jsonl", record("z", STORY) + &record("zz", STORY)),
    ]
}

/// Waits until a file exists, and panics if the job ends before.
pub(crate) fn wait_for(file: &Path, child: &mut Child) {
    while !file.exists() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the job ended too early"
        );
        sleep(Duration::from_millis(1));
    }
}

/// Changes the second file as soon as `sign` exists in the output folder. Returns how the job ended.
fn change_when(folder: &Folder, sign: &str, change: impl Fn(&Path)) -> Output {
    let [long, short] = long_and_short(folder);
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command
        .args([&long, &short])
        .arg("-o")
        .arg(&out)
        .args(["--quiet", "--threads", "1"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&out.join(sign), &mut child);
    change(&short);
    child.wait_with_output().unwrap()
}

#[test]
fn row_20_a_file_that_changes_while_the_job_runs() {
    let truncate = |path: &Path| fs::write(path, "").unwrap();
    let extend = |path: &Path| {
        fs::write(
            path,
            record("z", STORY) + &record("y", STORY) + &record("x", STORY),
        )
        .unwrap()
    };
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    for (change, reason) in [
        (truncate as fn(&Path), "changed"),
        (extend, "changed"),
        (remove, "No such file"),
    ] {
        // A file that changes before it is read is lost alone, and this is reported.
        let folder = Folder::new();
        let output = change_when(&folder, ".lookalike/job.json", change);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{message}");
        let results = Results::read(&folder.path("out"));
        assert_eq!(results.kept.len() + results.removed.len(), 16_000);
        let [skip] = &results.skipped[..] else {
            panic!("{:?}", results.skipped);
        };
        assert_eq!(skip["kind"], "unreadable", "{skip}");
        assert!(
            skip["source"].as_str().unwrap().ends_with("short.jsonl"),
            "{skip}"
        );
        assert!(skip["reason"].as_str().unwrap().contains(reason), "{skip}");
        // A file that changes after it was read ends the job, because its records can no longer be copied.
        let folder = Folder::new();
        let output = change_when(&folder, ".lookalike/decided.bin", change);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.contains("short.jsonl") && message.contains(reason),
            "{message}"
        );
        for name in ["run.json", "kept.jsonl", "removed.jsonl"] {
            assert!(!folder.path("out").join(name).exists(), "{name}");
        }
    }
}

/// Regression test: opening the pipe waited for a writer that never came.
#[test]
fn a_pipe_in_the_place_of_a_file_that_was_found_stopped_the_job_for_ever() {
    let folder = Folder::new();
    for (sign, status) in [(".lookalike/job.json", 3), (".lookalike/decided.bin", 1)] {
        let [long, short] = long_and_short(&folder);
        let out = folder.path("out");
        let mut command = lookalike("dedup");
        command.args([&long, &short]).arg("-o").arg(&out);
        command.args(["--quiet", "--threads", "1", "--overwrite"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&out.join(sign), &mut child);
        fs::remove_file(&short).unwrap();
        fifo(&short);
        while child.try_wait().unwrap().is_none() {
            if is_awaited(&short) {
                child.kill().unwrap();
                panic!("the job waits for a writer");
            }
            sleep(Duration::from_millis(1));
        }
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{message}");
        assert!(
            message.contains("short.jsonl") && message.contains("changed"),
            "{message}"
        );
        if status == 3 {
            let results = Results::read(&out);
            assert_eq!(results.kept.len() + results.removed.len(), 16_000);
            assert_eq!(results.skipped[0]["kind"], "unreadable");
        }
        fs::remove_file(&short).unwrap();
        fs::remove_dir_all(&out).unwrap();
    }
}

/// Returns whether a process has the named pipe open for reading, and unblocks a process that waits for a writer.
fn is_awaited(pipe: &Path) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    open(pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_ok()
}

/// Regression test: a folder that has a pipe with the name of a job's summary is not a folder of results.
#[test]
fn a_pipe_that_is_called_as_a_summary_stopped_the_walk_for_ever() {
    let folder = Folder::new();
    folder.add("in/sub/a.txt", STORY);
    let pipe = folder.path("in/sub/run.json");
    fifo(&pipe);
    let mut command = lookalike("pairs");
    command.arg(folder.path("in")).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if is_awaited(&pipe) {
            child.kill().unwrap();
            panic!("the walk waits for a writer");
        }
        sleep(Duration::from_millis(1));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

pub(crate) fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn row_20_pipes_and_devices_are_refused_by_name_and_skipped_in_folders() {
    let folder = Folder::new();
    folder.add("in/a.txt", STORY);
    fifo(&folder.path("in/pipe"));
    lookalike("pairs")
        .arg(folder.path("in/pipe"))
        .fail(1)
        .says(&["pipe", "named pipe", "`-`"]);
    lookalike("pairs")
        .arg("/dev/zero")
        .fail(1)
        .says(&["/dev/zero", "device"]);
    let results = folder.dedup(&folder.path("in"), &[]);
    assert_eq!(results.kept.len(), 1);
    assert_eq!(results.skipped.len(), 1);
    assert_eq!(results.skipped[0]["kind"], "not-a-file");
    assert!(
        results.skipped[0]["source"]
            .as_str()
            .unwrap()
            .ends_with("in/pipe")
    );
}

#[test]
fn row_20_links_that_lead_in_circles_are_followed_once() {
    let folder = Folder::new();
    folder.add("in/deep/a.txt", STORY);
    std::os::unix::fs::symlink("..", folder.path("in/deep/up")).unwrap();
    std::os::unix::fs::symlink("self", folder.path("in/self")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path("in/dangling")).unwrap();
    std::os::unix::fs::symlink("deep/a.txt", folder.path("in/again.txt")).unwrap();
    // The dangling link is a file that could not be read. The looping links hide nothing.
    let results = folder.dedup_with_losses(&folder.path("in"), &[]);
    assert_eq!(results.kept.len(), 1);
    let kind = |name: &str| {
        let row = results
            .skipped
            .iter()
            .find(|row| row["source"].as_str().unwrap().ends_with(name));
        row.unwrap_or_else(|| panic!("{name} is not listed"))["kind"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (kind("deep/up"), kind("in/self"), kind("in/dangling")),
        ("loop".into(), "loop".into(), "unreadable".into())
    );
    assert_eq!(results.skipped.len(), 4, "{:?}", results.skipped);
}

/// Runs the command in a shell that limits the size of files to `blocks` blocks, which simulates a full disk.
fn with_small_disk(blocks: u32, arguments: &[&str]) -> crate::support::Finished {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_lookalike")])
        .args(arguments)
        .stdin(Stdio::null());
    command.finish()
}

#[test]
fn row_21_a_disk_that_is_full_leaves_no_half_file() {
    let folder = Folder::new();
    let mut numbers = Numbers(9);
    let lines = (0..900).map(|number| {
        record(
            &format!("{:03}", number * 7 % 900),
            &numbers.words(100, 3000),
        )
    });
    let input = folder.add("in.jsonl", lines.collect::<String>());
    let size = fs::metadata(&input).unwrap().len();
    let whole = Results::stable(&folder.dedup(&input, &[]).folder);
    let mut failures = 0;
    for blocks in [
        0,
        1,
        2,
        8,
        64,
        256,
        size as u32 / 1024 / 2,
        size as u32 / 512 + 1024,
    ] {
        let out = folder.path(format!("full-{blocks}"));
        let finished = with_small_disk(
            blocks,
            &[
                "dedup",
                input.to_str().unwrap(),
                "-q",
                "-o",
                out.to_str().unwrap(),
            ],
        );
        assert!(!finished.err.contains("panicked"), "{}", finished.err);
        for (name, bytes) in &whole {
            assert!(
                fs::read(out.join(name)).is_ok_and(|found| found == *bytes)
                    || !out.join(name).exists(),
                "half {name}"
            );
        }
        assert_eq!(out.join("run.json").exists(), finished.status == Some(0));
        if finished.status != Some(0) {
            failures += 1;
            assert_eq!(finished.status, Some(1), "{}", finished.err);
            finished.says(&["full-", "File too large"]);
            lookalike("dedup")
                .arg(&input)
                .args(["-q", "--resume", "-o"])
                .arg(&out)
                .succeed();
            assert!(
                Results::stable(&out) == whole,
                "once there is room the job goes on"
            );
        }
    }
    assert!(
        (3..8).contains(&failures),
        "{failures} of 8 jobs met the limit"
    );
}

#[test]
fn row_21_places_that_cannot_be_written_to_are_told_before_the_work() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let file = folder.add("file", "no directory");
    for out in [file.clone(), file.join("below")] {
        let failed = lookalike("dedup").arg(&input).arg("-o").arg(&out).fail(1);
        failed.says(&[out.to_str().unwrap(), "-o"]);
    }
    assert_eq!(fs::read(&file).unwrap(), b"no directory");
    lookalike("fingerprint")
        .arg(&input)
        .arg("-o")
        .arg(file.join("x.jsonl"))
        .fail(1)
        .says(&["file/x.jsonl", "choose another file"]);
    let full = || {
        Stdio::from(
            fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
    };
    let two = folder.records("two.jsonl", &[("a", STORY), ("b", STORY)]);
    for subcommand in ["pairs", "fingerprint"] {
        let output = lookalike(subcommand)
            .arg(&two)
            .stdout(full())
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{subcommand}: {message}");
        assert!(
            message.contains("No space left") && message.contains("output"),
            "{message}"
        );
    }
}

#[test]
fn two_lines_named_one_file_when_names_were_not_utf8() {
    let folder = Folder::new();
    let names: [(&[u8], &str); 3] = [
        (b"a\xe8.txt", "a\\xe8.txt"),
        (b"a\xe9.txt", "a\\xe9.txt"),
        (b"back\\slash.png", "back\\\\slash.png"),
    ];
    for (number, (name, _)) in names.iter().enumerate() {
        let text = match name.ends_with(b"png") {
            true => "\0".to_owned(),
            false => {
                [STORY, "quite another matter: bread, ovens, flour and salt"][number].to_owned()
            }
        };
        folder.add(
            Path::new("in").join(std::ffi::OsStr::from_bytes(name)),
            text,
        );
    }
    let mut command = lookalike("dedup");
    command.current_dir(folder.path(""));
    command.args(["in", "-o", "out", "-q"]).succeed();
    let results = Results::read(&folder.path("out"));
    let kept = json_lines(&fs::read(folder.path("out/kept.jsonl")).unwrap());
    let files: Vec<_> = kept.iter().map(|row| row["file"].clone()).collect();
    let wanted = |at: usize| names[at].1;
    assert_eq!(files, [0, 1].map(|at| format!("kept/in/{}", wanted(at))));
    assert_eq!(
        results.skipped[0]["file"],
        format!("skipped/in/{}", wanted(2))
    );
}

#[test]
fn row_42_names_are_bytes() {
    let folder = Folder::new();
    let names: [&[u8]; 5] = [
        b"latin-\xe9.txt",
        b"-",
        b"with space\n.txt",
        b"back\\slash.txt",
        b"[a]*.txt",
    ];
    for name in names {
        folder.add(
            Path::new("in").join(std::ffi::OsStr::from_bytes(name)),
            STORY,
        );
    }
    let mut command = lookalike("dedup");
    command
        .current_dir(folder.path(""))
        .env("LC_ALL", "C")
        .env("LANG", "nonsense");
    command.args(["in", "-o", "out", "-q"]).succeed();
    let results = Results::read(&folder.path("out"));
    assert_eq!(
        results.kept_ids(),
        ["in/-"],
        "equal texts: the smallest name stays"
    );
    let copies = fs::read_dir(folder.path("out/removed/in"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut copies: Vec<_> = copies.map(|name| name.as_bytes().to_vec()).collect();
    let mut wanted: Vec<_> = names
        .iter()
        .filter(|name| **name != b"-")
        .map(|name| name.to_vec())
        .collect();
    copies.sort();
    wanted.sort();
    assert_eq!(copies, wanted);
    assert!(
        results
            .removed_ids()
            .contains(&"in/latin-\\xe9.txt".to_owned()),
        "{:?}",
        results.removed_ids()
    );
    // The first argument is the exact name of a file as well as a pattern. The others are a file called `-` and a pattern that matches a name that is
    // not UTF-8.
    lookalike("pairs")
        .arg(folder.path("in/[a]*.txt"))
        .arg("-q")
        .succeed();
    lookalike("pairs")
        .current_dir(folder.path("in"))
        .args(["./-", "latin*", "-q"])
        .succeed();
}

/// A manual run with a million files took a minute and a half; see bench/results/performance.md.
#[test]
fn row_42_a_glob_of_many_files() {
    let folder = Folder::new();
    for n in 0..5_000 {
        let text = format!("note {n} of the harbour: ferry {n} left at noon, tide {n}");
        folder.add(format!("in/{:02}/{n}.txt", n % 50), text);
    }
    let mut command = lookalike("dedup");
    command.current_dir(folder.path(""));
    command.args(["in/**/*.txt", "-o", "out", "-q"]).succeed();
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.kept_ids().len(), 5_000);
}

#[test]
fn row_42_standard_input() {
    let folder = Folder::new();
    let lines = record("a", STORY) + &record("b", STORY);
    let compressed = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    let found = "{\"a\":\"a\",\"b\":\"b\",\"similarity\":1.0}\n";
    for input in [lines.as_bytes(), &compressed] {
        let finished = lookalike("pairs").args(["-", "-q"]).finish_with(input);
        assert_eq!(
            (finished.status, finished.text()),
            (Some(0), found),
            "{}",
            finished.err
        );
    }
    let out = folder.path("out");
    let mut dedup = lookalike("dedup");
    let finished = dedup
        .args(["-", "-q", "-o"])
        .arg(&out)
        .finish_with(lines.as_bytes());
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(
        Results::read(&out).kept.concat(),
        record("a", STORY).as_bytes()
    );
    let page = lookalike("fingerprint")
        .args(["-", "-q"])
        .finish_with(b"<html><body><p>one two three</body></html>");
    assert_eq!(page.lines()[0]["id"], "-");
    let mixed = folder.records("in.jsonl", &[("c", STORY)]);
    let finished = lookalike("pairs")
        .arg("-")
        .arg(&mixed)
        .arg("-q")
        .finish_with(lines.as_bytes());
    assert_eq!(finished.lines().len(), 3);
}

/// Regression test: the suffix of a temporary file made the name too long.
#[test]
fn a_long_name_ended_the_job_without_results() {
    let folder = Folder::new();
    folder.add("in/a.txt", STORY);
    let names = [244, 245, 255].map(|length| "n".repeat(length - 4));
    for name in &names {
        folder.add(format!("in/{name}.txt"), format!("{STORY} {name}"));
        folder.add(format!("in/{name}.png"), b"\x89PNG\r\n\x1a\n\0\0\0");
    }
    // Characters of two bytes are not cut in half.
    folder.add(
        format!("in/{}.txt", "\u{e4}".repeat(125)),
        "something else to read here",
    );
    let mut job = lookalike("dedup");
    job.current_dir(folder.path("")).args(["in", "-o", "out"]);
    job.succeed();
    let kept = fs::read_dir(folder.path("out/kept/in")).unwrap();
    assert!(kept.count() >= 2);
    assert!(
        folder
            .path(format!("out/skipped/in/{}.png", names[2]))
            .exists()
    );
}

#[test]
fn files_in_the_folder_where_two_stars_begin_were_left_out() {
    let folder = Folder::new();
    folder.records("in/top.jsonl", &[("a", STORY)]);
    folder.records("in/sub/mid.jsonl", &[("b", STORY)]);
    for pattern in ["**", "./**"] {
        let mut command = lookalike("extract");
        command.current_dir(folder.path("in")).arg(pattern);
        let mut ids: Vec<_> = command
            .succeed()
            .lines()
            .iter()
            .map(|line| line["id"].clone())
            .collect();
        ids.sort_by_key(ToString::to_string);
        assert_eq!(ids, ["a", "b"], "{pattern}");
    }
}
