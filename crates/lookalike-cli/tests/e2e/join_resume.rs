//! A join that is killed at any moment leaves no incomplete list, and `--resume` ends with the same bytes as an uninterrupted join.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Finish, Folder, Numbers, interrupt, lookalike};

/// Writes raw numbers; every third is near an earlier one.
fn raw(folder: &Folder, name: &str, count: usize, seed: u64) -> PathBuf {
    let mut numbers = Numbers(seed);
    let mut codes: Vec<u64> = Vec::with_capacity(count);
    for at in 0..count {
        let mut code = 0;
        match at % 3 {
            0 if at > 0 => {
                code = codes[numbers.below(at)];
                (0..numbers.below(8)).for_each(|_| code ^= 1 << numbers.below(64));
            }
            _ => (0..4).for_each(|_| code = code << 16 | numbers.below(1 << 16) as u64),
        }
        codes.push(code);
    }
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    folder.add(name, bytes)
}

/// A join into a file that is killed and resumed.
struct KilledJoin {
    folder: Folder,
    inputs: Vec<PathBuf>,
    flags: Vec<&'static str>,
    whole: Vec<u8>,
    took: Duration,
}

impl KilledJoin {
    fn new(folder: Folder, inputs: Vec<PathBuf>, flags: &[&'static str]) -> Self {
        let mut join = Self {
            folder,
            inputs,
            flags: flags.to_vec(),
            whole: Vec::new(),
            took: Duration::ZERO,
        };
        let (path, start) = (join.folder.path("whole.jsonl"), Instant::now());
        join.command(&path).succeed();
        join.took = start.elapsed();
        join.whole = fs::read(&path).unwrap();
        assert!(join.whole.len() > 100_000, "{}", join.whole.len());
        assert!(!join.folder.path("whole.jsonl.joining").exists());
        join
    }

    fn command(&self, output: &Path) -> Command {
        let mut command = lookalike("join");
        command.args(&self.inputs).args(&self.flags).arg("-q");
        command.arg("-o").arg(output);
        command
    }

    /// Kills the join `kills` times, two of three times once there is something to resume, and resumes it each time.
    fn kill_and_resume(&self, kills: usize) {
        let (mut hit, mut kept, mut attempts) = (0, 0, 0);
        while hit < kills {
            attempts += 1;
            assert!(
                attempts <= 6 * kills,
                "{hit} of {attempts} joins were still running"
            );
            let output = self.folder.path(format!("{attempts}.jsonl"));
            let state = self
                .folder
                .path(format!("{attempts}.jsonl.joining/job.json"));
            let mut child = self.command(&output).spawn().unwrap();
            if attempts % 3 > 0 {
                wait_for(&state, &mut child);
            }
            sleep(self.took.mul_f64(0.1 * (attempts % 4) as f64));
            hit += usize::from(kill(child));
            kept += usize::from(state.exists());
            if output.exists() {
                assert!(fs::read(&output).unwrap() == self.whole, "half a list");
            }
            let mut again = self.command(&output);
            // Resume with another number of threads, as on another machine.
            again.args(["--resume", "--threads", "1"]).succeed();
            assert!(
                fs::read(&output).unwrap() == self.whole,
                "another list after --resume"
            );
            assert!(!state.parent().unwrap().exists());
            let unfinished = format!("{attempts}.jsonl.tmp-");
            let left = fs::read_dir(self.folder.path(".")).unwrap();
            let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let left: Vec<String> = left.filter(|name| name.starts_with(&unfinished)).collect();
            assert_eq!(left, [""; 0], "of the killed join");
        }
        assert!(kept > 0, "none of {attempts} had found anything");
    }
}

/// Kills a join. Returns whether it was still running.
fn kill(mut child: Child) -> bool {
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// Waits until a file exists or the join has ended.
fn wait_for(file: &Path, child: &mut Child) {
    while !file.exists() && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
}

/// At six bits every chunk is saved, and little memory makes chunks small.
const SMALL: [&str; 4] = ["--distance", "6", "--memory", "64M"];

#[test]
fn a_join_of_two_files_that_was_killed_goes_on() {
    let folder = Folder::new();
    let q = raw(&folder, "q.u64", 20_000, 1);
    // F contains Q, so that there are pairs.
    let mut bytes = fs::read(&q).unwrap();
    bytes.extend(fs::read(raw(&folder, "more.u64", 1_500_000, 2)).unwrap());
    let f = folder.add("f.u64", bytes);
    KilledJoin::new(folder, vec![f, q], &SMALL).kill_and_resume(4);
}

#[test]
fn a_self_join_that_was_killed_goes_on() {
    let folder = Folder::new();
    let f = raw(&folder, "f.u64", 400_000, 3);
    KilledJoin::new(folder, vec![f], &["--distance", "6"]).kill_and_resume(3);
}

#[test]
fn a_shard_of_a_self_join_that_was_killed_goes_on() {
    let folder = Folder::new();
    let f = raw(&folder, "f.u64", 900_000, 4);
    let flags = [&SMALL[..], &["--shard", "1/30"]].concat();
    KilledJoin::new(folder, vec![f], &flags).kill_and_resume(3);
}

#[test]
fn a_join_with_an_index_that_was_killed_goes_on() {
    let folder = Folder::new();
    let (f, index) = (raw(&folder, "f.u64", 200_000, 5), folder.path("f.lkix"));
    lookalike("index")
        .arg("build")
        .arg(&f)
        .args(["-q", "--distance", "6", "-o"])
        .arg(&index)
        .succeed();
    KilledJoin::new(folder, vec![index, f], &SMALL).kill_and_resume(3);
}

/// Writes raw super-shingles, many of which have two in common with others.
fn shingles(folder: &Folder, count: usize) -> PathBuf {
    let mut numbers = Numbers(6);
    let sketch = (0..count).flat_map(|at| {
        let mut place = |place: usize| match numbers.below(3) {
            0 => (at / 8 * 6 + place) as u64 + 1,
            _ => numbers.below(1 << 40) as u64 + (1 << 41),
        };
        (0..6).map(&mut place).collect::<Vec<u64>>()
    });
    let bytes: Vec<u8> = sketch.flat_map(u64::to_le_bytes).collect();
    folder.add("f.u64x6", bytes)
}

/// Makes the output a link to a full disk, which stops a join at its last step, after all pairs were found.
fn fill(output: &Path) {
    std::os::unix::fs::symlink("/dev/full", output).unwrap();
}

#[test]
fn a_join_whose_list_could_not_be_written_goes_on() {
    let folder = Folder::new();
    let f = shingles(&folder, 40_000);
    let join = KilledJoin::new(folder, vec![f], &["--equal", "2"]);
    let output = join.folder.path("out.jsonl");
    let state = join.folder.path("out.jsonl.joining");
    fill(&output);
    join.command(&output).fail(1).says(&["out.jsonl"]);
    assert!(state.join("job.json").exists());
    fs::remove_file(&output).unwrap();
    let mut other = lookalike("join");
    other
        .args(&join.inputs)
        .args(["--equal", "3", "-o"])
        .arg(&output);
    let refused = other.arg("--resume").fail(2);
    refused.says(&[
        "out.jsonl.joining",
        "other inputs or settings",
        "without --resume",
    ]);
    join.command(&output).arg("--resume").succeed();
    assert!(fs::read(&output).unwrap() == join.whole);
    assert!(!state.exists());
}

#[test]
fn inputs_that_changed_since_the_interruption_are_refused() {
    let folder = Folder::new();
    let f = raw(&folder, "f.u64", 300_000, 7);
    let join = KilledJoin::new(folder, vec![f.clone()], &["--distance", "6"]);
    let output = join.folder.path("out.jsonl");
    fill(&output);
    join.command(&output).fail(1);
    fs::remove_file(&output).unwrap();
    let mut changed = fs::read(&f).unwrap();
    changed[12_345] ^= 1;
    fs::write(&f, &changed).unwrap();
    let refused = join.command(&output).arg("--resume").fail(2);
    refused.says(&["the inputs have changed", "without --resume"]);
    changed[12_345] ^= 1;
    fs::write(&f, &changed).unwrap();
    join.command(&output).arg("--resume").succeed();
    assert!(fs::read(&output).unwrap() == join.whole);
}

#[test]
fn a_join_that_starts_again_removed_the_progress_of_another_without_a_word() {
    let folder = Folder::new();
    let f = raw(&folder, "f.u64", 300_000, 7);
    let output = folder.path("out.jsonl");
    let join = || {
        let mut command = lookalike("join");
        command.arg(&f).args(["--distance", "3", "-o"]);
        command.arg(&output);
        command
    };
    fill(&output);
    join().fail(1);
    fs::remove_file(&output).unwrap();
    let left = "an interrupted job left its progress";
    join().succeed().says(&[left, "from the beginning"]);
    let again = join().succeed();
    assert!(!again.err.contains(left), "{}", again.err);
}

#[test]
fn resume_needs_an_output_and_says_when_there_is_nothing_to_go_on_from() {
    let folder = Folder::new();
    let f = raw(&folder, "f.u64", 1_000, 8);
    lookalike("join")
        .arg(&f)
        .arg("--resume")
        .fail(2)
        .says(&["--output"]);
    let output = folder.path("out.jsonl");
    let mut command = lookalike("join");
    command.arg(&f).arg("--resume").arg("-o").arg(&output);
    command.succeed().says(&["there is nothing to resume"]);
    // Add a file that does not belong to a join.
    let foreign = folder.add("out.jsonl.joining/thesis.tex", "years");
    let mut command = lookalike("join");
    command.arg(&f).arg("-o").arg(&output);
    command.fail(1).says(&["thesis.tex", "may be yours"]);
    assert!(foreign.exists());
}

/// Presses Ctrl-C before anything is found, and after.
#[cfg(unix)]
#[test]
fn an_interrupted_join_says_what_goes_on_with_it() {
    let folder = Folder::new();
    let q = raw(&folder, "q.u64", 30_000, 9);
    let state = folder.path("early.jsonl.joining");
    let mut command = lookalike("join");
    command.arg("u64:-").arg(&q).arg("-o");
    command.arg(folder.path("early.jsonl"));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    wait_for(&state, &mut child);
    let (code, said) = interrupt(child);
    drop(input);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("nothing was finished"), "{said}");
    assert!(!state.exists());

    let mut bytes = fs::read(&q).unwrap();
    bytes.extend(fs::read(raw(&folder, "more.u64", 1_500_000, 10)).unwrap());
    let f = folder.add("f.u64", bytes);
    let join = KilledJoin::new(folder, vec![f, q], &SMALL);
    for attempt in 0..10 {
        let output = join.folder.path(format!("late{attempt}.jsonl"));
        let state = join.folder.path(format!("late{attempt}.jsonl.joining"));
        let mut command = join.command(&output);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&state.join("job.json"), &mut child);
        let (code, said) = interrupt(child);
        if code == Some(0) {
            continue;
        }
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains("--resume continues from"), "{said}");
        join.command(&output).arg("--resume").succeed();
        assert!(fs::read(&output).unwrap() == join.whole);
        return;
    }
    panic!("no join was still running");
}
