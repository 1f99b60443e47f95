//! Limits of the system on threads and open files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Finish as _, Folder, STORY, lookalike, path};

/// A folder that another user may use, with the command in it.
struct SharedFolder {
    folder: Folder,
    /// A user without other processes, as root has no limit on threads. `None` if the tests do not run as root.
    user: Option<u32>,
}

impl SharedFolder {
    /// Creates the folder; `number` differs between the tests, so that none counts the threads of another.
    fn new(number: u32) -> Self {
        let folder = Folder::new();
        let all = Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(""), all).unwrap();
        let (command, place) = (env!("CARGO_BIN_EXE_lookalike"), folder.path("lookalike"));
        fs::hard_link(command, &place)
            .or_else(|_| fs::copy(command, &place).map(drop))
            .unwrap();
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let user = 54_000 + number * 1000 + std::process::id() % 1000;
        Self {
            folder,
            user: is_root.then_some(user),
        }
    }

    /// Returns a command below a limit, such as `-u 5`, that is killed after a minute.
    fn limited(&self, limit: &str, words: &[&str]) -> Command {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", &script]);
        command.arg(self.folder.path("lookalike")).args(words);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.stdin(Stdio::null());
        command
    }
}

/// Texts, some of which resemble each other.
fn records(folder: &Folder) -> std::path::PathBuf {
    let texts = (0..200).map(|number| (number.to_string(), format!("{STORY} {}", number % 150)));
    folder.records("in.jsonl", &texts.collect::<Vec<_>>())
}

#[test]
fn a_job_that_could_start_no_more_threads_panicked_or_never_ended() {
    let shared = SharedFolder::new(0);
    let input = records(&shared.folder);
    let out = shared.folder.path("out");
    let (input, out) = (path(&input), path(&out));
    let jobs: [&[&str]; 5] = [
        &["dedup", input, "-o", out, "--overwrite"],
        &["pairs", input],
        &["overlap", input],
        &["fingerprint", input],
        &["extract", input],
    ];
    let kept = Path::new(out).join("kept.jsonl");
    for job in jobs {
        let run = |limit: &str| {
            let mut words = job.to_vec();
            words.extend(["--threads", "64", "--quiet"]);
            let text = shared.limited(limit, &words).succeed().out;
            match job[0] {
                "dedup" => fs::read(&kept).unwrap(),
                _ => text,
            }
        };
        let expected = run("-u unlimited");
        assert!(!expected.is_empty());
        for threads in [1, 2, 3, 4, 6, 10, 40, 60, 64, 66] {
            assert!(
                run(&format!("-u {threads}")) == expected,
                "{job:?} {threads}"
            );
        }
    }
    // A log of what was read is written by a thread of its own.
    let logged = [
        "dedup",
        input,
        "-o",
        out,
        "--overwrite",
        "--threads",
        "1",
        "--checkpoint",
        "1K",
    ];
    shared.limited("-u unlimited", &logged).succeed();
    let refused = shared.limited("-u 1", &logged).fail(1);
    refused.says(&["a thread cannot be started", "ulimit -u", "--threads"]);
}

#[test]
fn a_service_that_could_start_no_threads_neither_listened_nor_ended() {
    let shared = SharedFolder::new(1);
    let data = shared.folder.path("data");
    let words = [
        "serve",
        "--data",
        path(&data),
        "--listen",
        "127.0.0.1:0",
        "--threads",
        "16",
    ];
    for threads in [1, 3, 10, 20, 30] {
        let refused = shared.limited(&format!("-u {threads}"), &words).finish();
        assert_eq!(refused.status, Some(1), "{threads}: {}", refused.err);
        refused.says(&["a thread cannot be started", "ulimit -u", "--threads"]);
        assert!(!refused.err.contains("panic"), "{}", refused.err);
        // Nothing is made by a start that is refused.
        assert!(!data.exists(), "{threads}");
    }
}

#[test]
fn too_many_open_files_were_answered_with_free_some_space() {
    let folder = Folder::new();
    let input = records(&folder);
    let out = folder.path("out");
    let mut refused = Command::new("bash");
    refused.args(["-c", "ulimit -n 5; exec \"$0\" \"$@\""]);
    refused.arg(lookalike("dedup").get_program());
    refused.args(["dedup", path(&input), "-o", path(&out)]);
    let refused = refused.fail(1);
    refused.says(&["Too many open files", "ulimit -n", "--threads"]);
    assert!(!refused.err.contains("space"), "{}", refused.err);
}
