//! Readers that close a pipe, and signals: no panic, and no incomplete result.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::hostile_files::{fifo, long_and_short, wait_for};
use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, STORY, lookalike, record, send, wait_for_spool};

/// Returns commands that print more than a pipe holds, where they can.
fn talkative(folder: &Folder) -> Vec<Command> {
    let equal: String = (0..400)
        .map(|number| record(&format!("{number:03}"), STORY))
        .collect();
    let input = folder.add("equal.jsonl", equal);
    let many: String = (0..4000)
        .map(|number| record(&number.to_string(), STORY))
        .collect();
    let many = folder.add("many.jsonl", many);
    let mut numbers = Numbers(2);
    let pages = ["a", "b"].map(|name| {
        folder.add(
            format!("{name}.txt"),
            numbers.words(30_000, 5000).replace("w7", "w7\n"),
        )
    });
    let command = |subcommand: &str| lookalike(subcommand);
    let mut commands = vec![
        command("pairs"),
        command("fingerprint"),
        command("explain"),
        command("explain"),
        command("completions"),
        command("dedup"),
    ];
    commands[0].arg(&input);
    commands[1].arg(&many);
    commands[2].args(&pages);
    commands[3].args(&pages).arg("--json");
    commands[4].arg("zsh");
    commands[5]
        .arg(&input)
        .arg("--json")
        .arg("-o")
        .arg(folder.path("out"));
    commands
}

#[test]
fn row_40_a_reader_that_leaves_is_no_failure() {
    let folder = Folder::new();
    for mut command in talkative(&folder) {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            !message.contains("panicked") && !message.contains("error"),
            "{command:?}: {message}"
        );
        assert_eq!(output.status.code(), Some(0), "{command:?}: {message}");
    }
}

#[test]
fn row_40_head_takes_one_line() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        (0..500)
            .map(|number| record(&format!("{number:03}"), STORY))
            .collect::<String>(),
    );
    let script = "\"$0\" pairs \"$1\" | head -1; echo \"${PIPESTATUS[*]}\"";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_lookalike")])
        .arg(&input)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        "{\"a\":\"000\",\"b\":\"001\",\"similarity\":1.0}\n0 0\n"
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

/// If nobody reads the summary, the results must still be written.
#[test]
fn row_40_nobody_reads_standard_error() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    let mut child = command
        .arg(&input)
        .arg("-o")
        .arg(&out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(out.join("run.json").exists());
    let mut child = lookalike("pairs")
        .arg("missing.jsonl")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn row_40_terminated_twice_and_resumed() {
    let folder = Folder::new();
    let [long, _] = long_and_short(&folder);
    let out = folder.path("out");
    let mut child = lookalike("dedup")
        .arg(&long)
        .arg("-o")
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&out.join(".lookalike/job.json"), &mut child);
    for _ in 0..2 {
        let mut kill = Command::new("kill");
        kill.arg("-TERM")
            .arg(child.id().to_string())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }
    assert!(!child.wait().unwrap().success());
    assert!(!out.join("run.json").exists());
    lookalike("dedup")
        .arg(&long)
        .args(["-q", "--resume", "-o"])
        .arg(&out)
        .succeed();
    assert_eq!(Results::read(&out).kept.len(), 16_000);
}

/// Starts a job that waits for its standard input. Returns it with its directories of results and of temporary files.
fn waiting(folder: &Folder, shell: &str) -> (Child, [PathBuf; 2]) {
    let directories = ["out", "tmp"].map(|name| folder.path(name));
    std::fs::create_dir(&directories[1]).unwrap();
    let job = lookalike("dedup");
    let mut command = Command::new("sh");
    command.arg("-c").arg(shell).arg(job.get_program());
    command.args(job.get_args()).args(["-", "-q", "-o"]);
    command
        .arg(&directories[0])
        .arg("--tmp")
        .arg(&directories[1]);
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // With its first temporary folder, the command handles signals.
    let is_begun = || std::fs::read_dir(&directories[1]).unwrap().next().is_some();
    while !is_begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (child, directories)
}

#[test]
fn signals_that_the_caller_ignores_ended_a_job() {
    let folder = Folder::new();
    let shell = "trap '' HUP INT TERM; exec \"$0\" \"$@\"";
    let (mut child, [out, _]) = waiting(&folder, shell);
    for signal in ["HUP", "INT", "TERM"] {
        send(signal, &child);
    }
    let mut input = child.stdin.take().unwrap();
    input.write_all(record("a", STORY).as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(Results::read(&out).kept.len(), 1);
}

#[test]
fn a_closed_terminal_left_the_temporary_files_of_a_job() {
    let folder = Folder::new();
    let (mut child, [_, tmp]) = waiting(&folder, "exec \"$0\" \"$@\"");
    send("HUP", &child);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
}

#[test]
fn a_job_removed_the_temporary_files_of_another_that_was_still_reading() {
    let folder = Folder::new();
    let (out, input) = (
        folder.path("out"),
        folder.records("in.jsonl", &[("a", STORY)]),
    );
    let into_out = |input: &Path| {
        let mut command = lookalike("dedup");
        command.arg(input).arg("-q").arg("-o").arg(&out);
        command
    };
    let mut first = into_out("-".as_ref());
    first.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = first.spawn().unwrap();
    wait_for_spool(&out, &mut child);
    into_out(&input).succeed();
    let mut rest = child.stdin.take().unwrap();
    rest.write_all(record("b", STORY).as_bytes()).unwrap();
    drop(rest);
    let told = child.wait_with_output().unwrap().stderr;
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("already holds results"), "{told}");
}

#[test]
fn a_pipe_among_temporary_files_stopped_every_command_that_looked_for_old_ones() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let tmp = folder.path("tmp");
    std::fs::create_dir_all(tmp.join("spool.tmp-other")).unwrap();
    fifo(&tmp.join("spool.tmp-other/in-use"));
    let mut command = lookalike("pairs");
    command.arg(&input).arg("--tmp").arg(&tmp).succeed();
    assert!(tmp.join("spool.tmp-other/in-use").exists());
}

/// A shell gives a command the name `/dev/fd/63` for `>(gzip > FILE)`, and nothing can be created beside it.
#[test]
fn pairs_for_a_process_of_the_shell_were_refused_because_no_checkpoint_stands_beside_it() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let codes = folder.path("codes.jsonl");
    let mut fingerprint = lookalike("fingerprint");
    fingerprint.arg(&input).arg("-o").arg(&codes).succeed();
    for (subcommand, input) in [("pairs", &input), ("join", &codes)] {
        let expected = lookalike(subcommand).arg(input).arg("-q").succeed().out;
        let program = lookalike(subcommand);
        let mut shell = Command::new("sh");
        // The stream that the shell opens is standard output under another number.
        shell.args(["-c", "exec \"$0\" \"$@\" 3>&1"]);
        shell.arg(program.get_program()).arg(subcommand).arg(input);
        let told = shell.args(["-q", "-o", "/dev/fd/3"]).succeed();
        assert_eq!(told.out, expected, "{subcommand}");
    }
}

#[test]
fn a_log_was_replaced_by_the_results_that_went_to_it_as_a_stream() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let pairs = || {
        let mut command = lookalike("pairs");
        command.arg(&input).arg("-q");
        command
    };
    let expected = [b"before\n", &*pairs().succeed().out].concat();
    for stream in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr"] {
        let log = folder.add("log", "before\n");
        let file = std::fs::File::options().append(true).open(&log).unwrap();
        let mut command = pairs();
        command.arg("-o").arg(stream);
        match stream {
            "/dev/stderr" => command.stderr(file),
            _ => command.stdout(file),
        };
        assert!(command.status().unwrap().success());
        assert_eq!(std::fs::read(&log).unwrap(), expected, "{stream}");
    }
    // The summary, which follows the lines, was written over them if the file behind the stream was opened again.
    let log = folder.path("log");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "echo before >&2; exec \"$0\" pairs \"$1\" -o /dev/stderr",
    ]);
    shell.arg(lookalike("pairs").get_program()).arg(&input);
    let truncated = std::fs::File::create(&log).unwrap();
    assert!(shell.stderr(truncated).status().unwrap().success());
    assert!(std::fs::read(&log).unwrap().starts_with(&expected));
    let mut other = Command::new("sh");
    other.args(["-c", "exec \"$0\" pairs \"$1\" -o /dev/fd/3 3>\"$2\""]);
    other
        .arg(lookalike("pairs").get_program())
        .args([&input, &log]);
    other.fail(2).says(&["/dev/fd/3", "name the file itself"]);
    let mut terms = lookalike("terms");
    terms.arg(&input).args(["-o", "/dev/stdout"]);
    terms.fail(2).says(&["cannot go to standard output"]);
}

/// Regression test: a regular file replaced the pipe, so its reader got nothing; another one replaced a link.
#[test]
fn a_pipe_that_was_to_be_written_to_was_replaced() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let pairs = |output: &[&Path]| {
        let mut command = lookalike("pairs");
        command.arg(&input);
        for path in output {
            command.arg("-o").arg(path);
        }
        command.succeed().out
    };
    let expected = pairs(&[]);
    let pipe = folder.path("pipe.jsonl");
    fifo(&pipe);
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    pairs(&[&pipe]);
    assert_eq!(reader.join().unwrap(), expected);
    let (target, link) = (folder.add("target.jsonl", "old"), folder.path("link.jsonl"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    pairs(&[&link]);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&target).unwrap(), expected);
    // A format that cannot be written sequentially is refused.
    let table = folder.path("pipe.parquet");
    fifo(&table);
    let mut sketch = lookalike("fingerprint");
    sketch.arg(&input).arg("-o").arg(&table);
    let refused = sketch.fail(1);
    refused.says(&["a pipe or a device, which no file can replace: choose another file\n"]);
    let codes = folder.path("codes.jsonl");
    lookalike("fingerprint")
        .arg(&input)
        .arg("-o")
        .arg(&codes)
        .succeed();
    let mut build = lookalike("index");
    build
        .arg("build")
        .arg(&codes)
        .arg("-o")
        .arg(&pipe)
        .arg("--overwrite");
    build.fail(2).says(&["is a pipe or a device, and no index"]);
}

#[test]
fn fingerprints_were_refused_to_a_pipe_that_other_commands_wrote_to() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let lines = lookalike("fingerprint").arg(&input).succeed().out;
    let codes = folder.add("codes.jsonl", &lines);
    let pipe = folder.path("pipe.jsonl");
    fifo(&pipe);
    for (input, flags) in [(&input, &[][..]), (&codes, &["--import"])] {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let mut command = lookalike("fingerprint");
        command.arg(input).args(flags).arg("-o").arg(&pipe);
        command.succeed();
        assert_eq!(reader.join().unwrap(), lines);
    }
}

#[test]
fn fingerprints_and_indexes_replaced_a_link_and_left_the_file_behind_it_old() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", "another")]);
    let link = |name: &str| {
        let (target, link) = (folder.add(format!("real/{name}"), "old"), folder.path(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        (target, link)
    };
    let written = |(target, link): &(PathBuf, PathBuf)| {
        assert!(link.is_symlink());
        std::fs::read(target).unwrap()
    };
    let codes = link("codes.lkfp");
    let mut fingerprint = lookalike("fingerprint");
    fingerprint.arg(&input).arg("-o").arg(&codes.1).succeed();
    assert!(written(&codes).len() > "old".len());
    let copy = link("copy.lkfp");
    let mut import = lookalike("fingerprint");
    import.arg("--import").arg(&codes.1).arg("-o").arg(&copy.1);
    import.succeed();
    assert_eq!(written(&copy), written(&codes));
    let index = link("pages.lkix");
    let mut build = lookalike("index");
    build.arg("build").arg(&codes.1).arg("--overwrite");
    build.arg("-o").arg(&index.1).succeed();
    let built = written(&index);
    let mut extend = lookalike("index");
    extend.arg("extend").arg(&index.1).arg(&codes.1).succeed();
    assert_ne!(written(&index), built);
    let merged = link("merged.lkix");
    let mut merge = lookalike("index");
    merge.arg("merge").args([&index.1, &index.1]);
    merge.arg("--overwrite").arg("-o").arg(&merged.1).succeed();
    assert!(written(&merged).len() > "old".len());
}

#[test]
fn pairs_were_written_uncompressed_to_a_pipe_with_the_name_of_a_packed_file() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let pairs = |output: &Path| {
        let mut pairs = lookalike("pairs");
        pairs.arg(&input).arg("--quiet").arg("-o").arg(output);
        pairs
    };
    for name in ["gz", "zst", "jsonl"] {
        let file = folder.path(format!("file.{name}"));
        pairs(&file).succeed();
        let pipe = folder.path(format!("pipe.{name}"));
        fifo(&pipe);
        // Open both ends, so that neither side waits for the other to open the pipe.
        let reader = std::fs::File::options().read(true).write(true).open(&pipe);
        let mut reader = reader.unwrap();
        pairs(&pipe).succeed();
        let wanted = std::fs::read(&file).unwrap();
        // The pipe's buffer is larger than this. Reading to the end would block, because this process has the pipe open for writing too.
        let mut bytes = vec![0; wanted.len()];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, wanted, "{name}");
    }
}
