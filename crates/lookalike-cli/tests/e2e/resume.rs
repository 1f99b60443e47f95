//! A job that is killed at any moment leaves no incomplete file under a final name, and `--resume` ends with the same bytes as an uninterrupted job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::results::{Results, STABLE};
use crate::support::{Finish, Folder, Numbers, SmallDisk, interrupt, lookalike, record};

/// The collection of this module, and the results and duration of an uninterrupted job over it.
struct Reference {
    folder: Folder,
    input: PathBuf,
    bytes: Vec<(&'static str, Vec<u8>)>,
    took: Duration,
}

/// Returns the reference, which is made once for all tests and is large enough that a job takes a while.
fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let folder = Folder::new();
        let input = folder.add("in.jsonl", collection());
        let out = folder.path("undisturbed");
        let start = Instant::now();
        job(&input, &out, &[]).succeed();
        let (took, bytes) = (start.elapsed(), Results::stable(&out));
        assert!(
            bytes
                .iter()
                .all(|(name, bytes)| *name == "skipped.jsonl" || bytes.len() > 1000)
        );
        Reference {
            folder,
            input,
            bytes,
            took,
        }
    })
}

/// Returns 10 MB in 12,500 records with ids in no order, a quarter of which are copies or retellings of another.
fn collection() -> String {
    let mut numbers = Numbers(3);
    let mut texts: Vec<String> = Vec::new();
    let mut lines = String::new();
    for number in 0..12_500 {
        let text = match numbers.below(8) {
            0 if number > 0 => texts[numbers.below(number)].clone(),
            1 if number > 0 => format!(
                "{} {}",
                texts[numbers.below(number)],
                numbers.words(3, 1000)
            ),
            _ => numbers.words(140, 20_000),
        };
        lines.push_str(&record(&format!("{:05}", number * 7919 % 12_500), &text));
        texts.push(text);
    }
    lines
}

fn job(input: &Path, out: &Path, flags: &[&str]) -> Command {
    let mut command = lookalike("dedup");
    // Use little memory, so that records are written to disk and sorted there.
    command
        .arg(input)
        .arg("-o")
        .arg(out)
        .args(["--quiet", "--memory", "52M", "--threads", "2"])
        .args(flags);
    command
}

/// Starts a job.
fn started(mut job: Command, errors: Stdio) -> Child {
    job.stderr(errors).spawn().unwrap()
}

/// Kills a job. Returns whether it was still running.
fn kill(mut child: Child) -> bool {
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// Checks that every result is complete, also before it is moved to its place, and that `run.json` exists only if all of them do.
#[track_caller]
fn nothing_is_half(out: &Path, reference: &Reference) {
    let mut whole = 0;
    for (name, bytes) in &reference.bytes {
        if let Ok(found) = fs::read(out.join(".lookalike/new").join(name)) {
            assert!(found == *bytes, "{name} waits and is not whole");
        }
    }
    for (name, bytes) in &reference.bytes {
        if let Ok(found) = fs::read(out.join(name)) {
            assert!(found == *bytes, "{name} is there and not whole");
            whole += 1;
        }
    }
    if let Ok(page) = fs::read_to_string(out.join("report.html")) {
        assert!(page.trim_end().ends_with("</html>"), "half a report");
    }
    if let Ok(run) = fs::read(out.join("run.json")) {
        serde_json::from_slice::<serde_json::Value>(&run).unwrap();
        assert_eq!(whole, STABLE.len());
        assert!(out.join("report.html").exists());
    }
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn is_complete(out: &Path, reference: &Reference) {
    for ((name, wanted), (_, found)) in reference.bytes.iter().zip(Results::stable(out)) {
        assert!(*wanted == found, "{name} is another one after --resume");
    }
    assert!(out.join("run.json").exists());
}

/// Starts jobs, kills the i-th when `moment(i, pace)` returns, and resumes each, until `kills` of them were still running when killed.
///
/// `pace` scales the times at which jobs are killed. It starts at 1 and is reduced whenever a job ended too early.
fn kill_and_resume(kills: usize, test: &str, moment: impl Fn(usize, f64, &Path, &mut Child)) {
    let reference = reference();
    let (mut hit, mut attempts, mut pace) = (0, 0, 1.0);
    while hit < kills {
        attempts += 1;
        assert!(
            attempts <= 4 * kills,
            "{hit} of {attempts} jobs were still running when they were to be killed"
        );
        let out = reference.folder.path(format!("{test}-{attempts}"));
        let mut child = started(job(&reference.input, &out, &["--resume"]), Stdio::null());
        moment(attempts, pace, &out, &mut child);
        match kill(child) {
            true => hit += 1,
            false => pace *= 0.8,
        }
        nothing_is_half(&out, reference);
        if !out.join("run.json").exists() {
            job(&reference.input, &out, &["--resume"]).succeed();
        }
        is_complete(&out, reference);
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn killed_at_any_moment() {
    let took = reference().took;
    kill_and_resume(8, "moment", |attempt, pace, _, _| {
        sleep(took.mul_f64(pace * (attempt % 8) as f64 / 8.0))
    });
}

/// Kills jobs while they write results, after their decisions are on disk.
#[test]
fn killed_while_results_are_written() {
    let left = reference().took.mul_f64(0.5);
    kill_and_resume(6, "writing", |attempt, pace, out, child| {
        wait_for(&out.join(".lookalike/decided.bin"), child);
        sleep(left.mul_f64(pace * (attempt % 6) as f64 / 6.0));
    });
}

/// Kills jobs a random time after each of the results is complete.
#[test]
fn killed_behind_each_result_at_a_random_moment() {
    let results = [
        "pairs.jsonl",
        "skipped.jsonl",
        "clusters.jsonl",
        "kept.jsonl",
        "removed.jsonl",
        "report.html",
    ];
    kill_and_resume(9, "behind", |attempt, pace, out, child| {
        let new = out.join(".lookalike/new");
        wait_for(&new.join(results[attempt % results.len()]), child);
        let milliseconds = Numbers(attempt as u64).below(30) as f64;
        sleep(Duration::from_millis(1).mul_f64(pace * milliseconds));
    });
}

/// Waits until a file exists or the job has ended.
fn wait_for(file: &Path, child: &mut Child) {
    while !file.exists() && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
}

/// Returns a folder with the results of an earlier job, and their contents.
fn earlier(folder: &Folder) -> (PathBuf, Vec<(&'static str, Vec<u8>)>) {
    let out = folder.path("out");
    let input = folder.records("old.jsonl", &[("a", "one text"), ("b", "one text")]);
    job(&input, &out, &["--keep", "first"]).succeed();
    let mut bytes = Results::stable(&out);
    bytes.push(("run.json", fs::read(out.join("run.json")).unwrap()));
    (out, bytes)
}

#[test]
fn a_job_that_is_killed_leaves_the_results_that_it_was_to_replace() {
    let reference = reference();
    let (mut hit, mut attempts) = (0, 0);
    while hit < 6 {
        attempts += 1;
        assert!(
            attempts <= 24,
            "{hit} of {attempts} jobs were still running"
        );
        let folder = Folder::new();
        let (out, bytes) = earlier(&folder);
        let child = started(job(&reference.input, &out, &["--overwrite"]), Stdio::null());
        sleep(reference.took.mul_f64(f64::from(attempts % 6) / 6.0 + 0.1));
        hit += usize::from(kill(child));
        if Results::read(&out).kept.len() > 1 {
            is_complete(&out, reference);
            continue;
        }
        for (name, wanted) in bytes {
            assert!(fs::read(out.join(name)).unwrap() == wanted, "{name}");
        }
        if out.join(".lookalike/job.json").exists() {
            job(&reference.input, &out, &["--resume"]).succeed();
            is_complete(&out, reference);
        }
    }
}

/// If a job is killed while old results are replaced by new ones, the next command completes the replacement, and nothing is lost.
#[test]
fn killed_between_old_and_new_results() {
    let folder = Folder::new();
    let ((old, _), reference) = (earlier(&folder), reference());
    let new = folder.path("new");
    job(&reference.input, &new, &[]).succeed();
    let results = names(&new);
    for moved in 0..=2 * results.len() {
        let out = folder.path(format!("out-{moved}"));
        let state = out.join(".lookalike");
        copy(&old, &out);
        let mut child = started(job(&reference.input, &out, &["--overwrite"]), Stdio::null());
        wait_for(&state.join("decided.bin"), &mut child);
        assert!(kill(child), "the job was to be interrupted");
        // Recreate the state of a job that has moved `moved` results.
        fs::remove_dir_all(state.join("new")).unwrap();
        copy(&new, &state.join("new"));
        fs::create_dir(state.join("old")).unwrap();
        let places = results
            .iter()
            .rev()
            .map(|name| (&out, state.join("old"), name));
        for (from, to, name) in places.take(moved) {
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
        if moved >= results.len() {
            let ready = state.join("ready");
            fs::rename(state.join("new"), &ready).unwrap();
            let last = |name: &&String| *name == "run.json";
            let (last, others): (Vec<_>, Vec<_>) = results.iter().partition(last);
            for name in others.iter().chain(&last).take(moved - results.len()) {
                fs::rename(ready.join(name), out.join(name)).unwrap();
            }
        }
        match moved % 2 {
            0 => drop(job(&reference.input, &out, &["--resume"]).succeed()),
            _ => drop(job(&reference.input, &out, &[]).fail(1)),
        }
        is_complete(&out, reference);
        fs::remove_dir_all(out).unwrap();
    }
}

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// Kills one job repeatedly, each time a little later, then lets it finish.
#[test]
fn killed_while_resuming() {
    let reference = reference();
    let out = reference.folder.path("again");
    for round in 0..8 {
        let child = started(job(&reference.input, &out, &["--resume"]), Stdio::null());
        sleep(reference.took.mul_f64(f64::from(round) / 8.0));
        kill(child);
        nothing_is_half(&out, reference);
        if out.join("run.json").exists() {
            return is_complete(&out, reference);
        }
    }
    job(&reference.input, &out, &["--resume"]).succeed();
    is_complete(&out, reference);
}

/// Checks that an interrupted job leaves a state that `--resume` continues from, or all of its results, and that its message says which.
#[cfg(unix)]
#[track_caller]
fn can_be_resumed(out: &Path, said: &str) {
    let reference = reference();
    // A job that had only begun leaves nothing, not even an empty folder.
    if out.exists() {
        let left = names(out);
        assert!(left.iter().all(|name| !name.contains("tmp-")), "{left:?}");
        nothing_is_half(out, reference);
    }
    let finished = out.join("run.json").exists();
    let told = match finished {
        true => format!("the results in {} are complete", out.display()),
        false if out.exists() => format!("--resume continues from {}", out.display()),
        // The job had not decided, so there is nothing to resume, and the message says only that.
        false => "nothing was finished that --resume could continue from: the same command starts from the beginning".to_owned(),
    };
    assert_eq!(said, format!("lookalike: error: interrupted: {told}\n"));
    if !finished {
        job(&reference.input, out, &["--resume"]).succeed();
    }
    is_complete(out, reference);
}

/// Interrupts jobs as Ctrl-C does, before and after they have decided.
#[cfg(unix)]
#[test]
fn an_interrupted_job_removes_its_temporary_files() {
    let reference = reference();
    for (attempt, wanted) in ["job.json", "decided.bin"].into_iter().enumerate() {
        let out = reference.folder.path(format!("interrupted-{attempt}"));
        let mut child = started(job(&reference.input, &out, &[]), Stdio::piped());
        wait_for(&out.join(".lookalike").join(wanted), &mut child);
        let (status, said) = interrupt(child);
        assert_eq!(status, Some(130), "the job was to be interrupted: {said}");
        can_be_resumed(&out, &said);
    }
}

/// Ctrl-C before the input was read left `.lookalike/new`, and Ctrl-C before that an empty folder of results.
#[cfg(unix)]
#[test]
fn an_interrupted_job_that_had_not_begun_to_write_left_empty_folders() {
    let folder = Folder::new();
    for (command, flags) in [("dedup", &[][..]), ("overlap", &["--chunk", "lines:2"])] {
        let out = folder.path(command);
        let mut command = lookalike(command);
        command.args(["-", "-o"]).arg(&out).args(flags);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        // Until standard input is copied there, beside the lock: by then, everything that an interruption removes is registered.
        let is_copied = |spool: PathBuf| fs::read_dir(spool).is_ok_and(|files| files.count() > 1);
        let entries = || fs::read_dir(&out).into_iter().flatten().flatten();
        while !entries().any(|entry| is_copied(entry.path())) {
            assert_eq!(child.try_wait().unwrap(), None, "the job ended too early");
            sleep(Duration::from_millis(1));
        }
        assert_eq!(interrupt(child).0, Some(130));
        drop(input);
        assert!(!out.exists());
    }
}

/// Results of an earlier job do not count as those of the interrupted one.
#[cfg(unix)]
#[test]
fn an_interrupted_job_does_not_take_older_results_for_its_own() {
    let folder = Folder::new();
    let ((out, bytes), reference) = (earlier(&folder), reference());
    let mut child = started(
        job(&reference.input, &out, &["--overwrite"]),
        Stdio::piped(),
    );
    wait_for(&out.join(".lookalike/decided.bin"), &mut child);
    let (status, said) = interrupt(child);
    assert_eq!(status, Some(130), "the job was to be interrupted: {said}");
    assert!(said.contains("--resume continues from"), "{said}");
    assert_eq!(Results::stable(&out), bytes[..STABLE.len()]);
    job(&reference.input, &out, &["--resume"]).succeed();
    is_complete(&out, reference);
}

/// An interruption removes files that threads are using; their errors are neither reported nor decide the exit status.
#[cfg(unix)]
#[test]
fn interrupted_while_results_are_written() {
    let reference = reference();
    let left = reference.took.mul_f64(0.5);
    for attempt in 0..12 {
        let out = reference.folder.path(format!("writing-{attempt}"));
        let mut child = started(job(&reference.input, &out, &[]), Stdio::piped());
        wait_for(&out.join(".lookalike/decided.bin"), &mut child);
        sleep(left.mul_f64(f64::from(attempt) / 12.0));
        let (status, said) = interrupt(child);
        if status == Some(0) {
            assert_eq!(said, "", "done before it was interrupted");
            is_complete(&out, reference);
        } else {
            assert_eq!(status, Some(130), "{said}");
            can_be_resumed(&out, &said);
        }
        fs::remove_dir_all(out).unwrap();
    }
}

/// Starts a job into `out` and kills it once it has decided.
fn interrupted(out: &Path) -> &'static Reference {
    let reference = reference();
    let mut child = started(job(&reference.input, out, &[]), Stdio::null());
    wait_for(&out.join(".lookalike/decided.bin"), &mut child);
    assert!(kill(child), "the job was to be interrupted");
    reference
}

#[test]
fn a_resumed_job_takes_over_the_decisions_and_leaves_nothing_else_behind() {
    let folder = Folder::new();
    let out = folder.path("out");
    let reference = interrupted(&out);
    // Limits are not part of the settings.
    let mut command = lookalike("dedup");
    command.arg(&reference.input).arg("-o").arg(&out);
    command
        .args(["--resume", "--threads", "1", "--memory", "300M"])
        .succeed();
    is_complete(&out, reference);
    assert_eq!(Results::read(&out).run["resumed"], true);
    let wanted = [
        "clusters.jsonl",
        "kept.jsonl",
        "pairs.jsonl",
        "removed.jsonl",
        "report.html",
        "run.json",
        "skipped.jsonl",
    ];
    assert_eq!(names(&out), wanted);
}

#[test]
fn other_settings_other_input_and_a_new_job_are_refused() {
    let folder = Folder::new();
    let out = folder.path("out");
    let reference = interrupted(&out);
    // Temporary files of a killed job have no owner, so the next command removes them.
    let names = |out: &Path| -> Vec<String> {
        let all = names(out).into_iter();
        all.filter(|name| !name.starts_with("spool.tmp-")).collect()
    };
    let before = names(&out);
    let refused = job(&reference.input, &out, &["--resume", "--threshold", "0.9"]).fail(1);
    refused.says(&["out", "other settings", "0.8", "0.9", "--overwrite"]);
    let other = folder.add("other.jsonl", record("a", "some other text"));
    job(&other, &out, &["--resume"])
        .fail(1)
        .says(&["out", "other files", "--overwrite"]);
    job(&reference.input, &out, &[]).fail(1).says(&[
        "out",
        "already holds results",
        "--resume",
        "--overwrite",
    ]);
    // As if another version had begun the job, which may have written other bytes.
    let identity = out.join(".lookalike/job.json");
    let own = fs::read_to_string(&identity).unwrap();
    let version = concat!("version=", env!("CARGO_PKG_VERSION"));
    fs::write(&identity, own.replace(version, "version=0.0.9")).unwrap();
    job(&reference.input, &out, &["--resume"])
        .fail(1)
        .says(&["other settings", "version=0.0.9 there"]);
    fs::write(&identity, own).unwrap();
    assert_eq!(names(&out), before, "a refusal changes nothing");
    job(&reference.input, &out, &["--resume"]).succeed();
    is_complete(&out, reference);
    // A finished job cannot be resumed, so the remedy does not name `--resume`.
    let refused = job(&reference.input, &out, &[]).fail(1);
    refused.says(&["already holds results", "--overwrite"]);
    assert!(!refused.err.contains("--resume"), "{}", refused.err);
}

#[test]
fn input_that_changed_since_is_refused() {
    let folder = Folder::new();
    let (out, reference) = (folder.path("out"), reference());
    let input = folder.add("in.jsonl", fs::read(&reference.input).unwrap());
    let mut child = started(job(&input, &out, &[]), Stdio::null());
    wait_for(&out.join(".lookalike/decided.bin"), &mut child);
    assert!(kill(child), "the job was to be interrupted");
    let mut bytes = fs::read(&input).unwrap();
    bytes.extend_from_slice(record("new", "one more record").as_bytes());
    fs::write(&input, bytes).unwrap();
    job(&input, &out, &["--resume"])
        .fail(1)
        .says(&["changed", "--overwrite"]);
    job(&input, &out, &["--overwrite"]).succeed();
    assert!(Results::read(&out).kept_ids().contains(&"new".to_owned()));
}

#[test]
fn finished_jobs_are_neither_repeated_nor_overwritten_unasked() {
    let folder = Folder::new();
    let (input, out) = (
        folder.records("in.jsonl", &[("a", "one text"), ("b", "another text")]),
        folder.path("out"),
    );
    job(&input, &out, &["--resume"]).succeed();
    let first = Results::stable(&out);
    job(&input, &out, &[]).fail(1).says(&["out", "--overwrite"]);
    job(&input, &out, &["--resume"]).succeed();
    assert_eq!(Results::stable(&out), first);
    let other = folder.records("other.jsonl", &[("c", "a third text")]);
    job(&other, &out, &["--overwrite", "--compress", "zst"]).succeed();
    assert_eq!(Results::read(&out).kept_ids(), ["c"]);
    assert!(!out.join("kept.jsonl").exists(), "the old results are gone");
}

/// Files that are not results are left alone.
#[test]
fn files_of_others_stay() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "one text")]);
    folder.add("out/notes.txt", "mine");
    job(&input, &folder.path("out"), &[]).succeed();
    job(&input, &folder.path("out"), &["--overwrite"]).succeed();
    assert_eq!(
        fs::read_to_string(folder.path("out/notes.txt")).unwrap(),
        "mine"
    );
}

/// Runs a job that is killed after its decisions are on disk.
fn killed_after_it_decided(input: &Path, out: &Path) {
    for _ in 0..20 {
        let mut child = started(job(input, out, &["--resume"]), Stdio::null());
        wait_for(&out.join(".lookalike/decided.bin"), &mut child);
        if kill(child) && !out.join("run.json").exists() {
            return;
        }
        fs::remove_dir_all(out).unwrap();
    }
    panic!("the job was always done before it could be killed");
}

#[test]
fn an_input_that_changed_under_its_size_and_time_is_not_resumed() {
    let reference = reference();
    let input = reference.folder.path("same-size.jsonl");
    fs::copy(&reference.input, &input).unwrap();
    let out = reference.folder.path("same-size");
    killed_after_it_decided(&input, &out);
    let file = fs::OpenOptions::new().write(true).open(&input).unwrap();
    let times = file.metadata().unwrap().modified().unwrap();
    let mut bytes = fs::read(&input).unwrap();
    let at = bytes
        .iter()
        .rposition(|byte| byte.is_ascii_lowercase())
        .unwrap();
    bytes[at] = if bytes[at] == b'q' { b'x' } else { b'q' };
    fs::write(&input, &bytes).unwrap();
    file.set_modified(times).unwrap();
    assert_eq!(fs::metadata(&input).unwrap().modified().unwrap(), times);
    job(&input, &out, &["--resume"])
        .fail(1)
        .says(&["same-size.jsonl has changed since"]);
    assert!(!out.join("run.json").exists());
}

#[test]
fn an_input_that_only_has_another_time_is_resumed() {
    let reference = reference();
    let input = reference.folder.path("other-time.jsonl");
    fs::copy(&reference.input, &input).unwrap();
    let out = reference.folder.path("other-time");
    killed_after_it_decided(&input, &out);
    let file = fs::OpenOptions::new().write(true).open(&input).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000))
        .unwrap();
    job(&input, &out, &["--resume"]).succeed();
    assert!(out.join("run.json").exists());
}

/// Returns a job that writes a checkpoint for every megabyte that it reads.
fn job_with_checkpoints(input: &Path, out: &Path) -> Command {
    job(input, out, &["--resume", "--checkpoint", "512K"])
}

/// Starts jobs until one is killed while it is reading and has logged at least `logged` bytes.
fn killed_while_reading(input: &Path, out: &Path, logged: u64) {
    killed_with_log(input, out, "scanned.bin", logged);
}

/// Starts jobs until one is killed before it has decided, when its log has at least `logged` bytes.
fn killed_with_log(input: &Path, out: &Path, log: &str, logged: u64) {
    for _ in 0..20 {
        let mut child = started(job_with_checkpoints(input, out), Stdio::null());
        let log = out.join(".lookalike").join(log);
        let is_short = || fs::metadata(&log).map_or(0, |log| log.len()) < logged;
        while is_short() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        if kill(child) && log.exists() && !out.join(".lookalike/decided.bin").exists() {
            return;
        }
        let _ = fs::remove_dir_all(out);
    }
    panic!("the job had always decided before it could be killed");
}

#[test]
fn a_job_that_is_killed_while_it_reads_goes_on_from_its_last_checkpoint() {
    let (folder, reference) = (Folder::new(), reference());
    for (attempt, logged) in [1, 2 << 20, 6 << 20].into_iter().enumerate() {
        let out = folder.path(format!("reading-{attempt}"));
        killed_while_reading(&reference.input, &out, logged);
        // Kill the resumed job as well, and then use other numbers of threads and other memory.
        killed_while_reading(&reference.input, &out, logged + (2 << 20));
        let mut command = lookalike("dedup");
        command.arg(&reference.input).arg("-o").arg(&out);
        command.args(["--quiet", "--resume", "--threads", "3", "--memory", "300M"]);
        command.succeed();
        is_complete(&out, reference);
        let run = Results::read(&out).run;
        assert_eq!(run["resumed"], true);
        assert_eq!(run["counts"]["documents"], 12_500);
        assert!(!out.join(".lookalike").exists());
    }
}

#[test]
fn a_job_that_is_killed_while_it_compares_goes_on_from_its_last_checkpoint() {
    let (folder, reference) = (Folder::new(), reference());
    for (attempt, logged) in [17, 2 << 10].into_iter().enumerate() {
        let out = folder.path(format!("comparing-{attempt}"));
        killed_with_log(&reference.input, &out, "compared.bin", logged);
        let mut command = lookalike("dedup");
        command.arg(&reference.input).arg("-o").arg(&out);
        command.args(["--quiet", "--resume", "--threads", "3", "--memory", "300M"]);
        command.succeed();
        is_complete(&out, reference);
        assert_eq!(Results::read(&out).run["resumed"], true);
        assert!(!out.join(".lookalike").exists());
    }
}

#[test]
fn what_a_killed_job_had_read_must_be_there_again() {
    let (folder, reference) = (Folder::new(), reference());
    let input = folder.path("read.jsonl");
    fs::copy(&reference.input, &input).unwrap();
    let out = folder.path("out");
    killed_while_reading(&input, &out, 2 << 20);
    let whole = fs::read(&input).unwrap();
    let mut bytes = whole.clone();
    let at = bytes.iter().position(u8::is_ascii_lowercase).unwrap();
    bytes[at] = bytes[at].to_ascii_uppercase();
    fs::write(&input, &bytes).unwrap();
    let refused = job_with_checkpoints(&input, &out).fail(1);
    refused.says(&["read.jsonl has changed since", "--overwrite"]);
    // A new job neither uses the log nor removes it.
    job(&input, &out, &[]).fail(1).says(&["--resume"]);
    fs::write(&input, &whole).unwrap();
    job_with_checkpoints(&input, &out).succeed();
    is_complete(&out, reference);
}

/// A log that is damaged anywhere gives its intact part, or nothing.
#[test]
fn a_damaged_log_costs_time_and_no_result() {
    let (folder, reference) = (Folder::new(), reference());
    let out = folder.path("out");
    killed_while_reading(&reference.input, &out, 4 << 20);
    let log = out.join(".lookalike/scanned.bin");
    let whole = fs::read(&log).unwrap();
    for (number, at) in [3, 200, whole.len() / 2, whole.len() - 1]
        .into_iter()
        .enumerate()
    {
        let copied = folder.path(format!("damaged-{number}"));
        fs::create_dir_all(copied.join(".lookalike")).unwrap();
        let job = ".lookalike/job.json";
        fs::copy(out.join(job), copied.join(job)).unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(copied.join(".lookalike/scanned.bin"), &bytes).unwrap();
        job_with_checkpoints(&reference.input, &copied).succeed();
        is_complete(&copied, reference);
    }
}

/// Regression test: all checkpoints were deleted, and the job started from the first byte.
#[test]
fn a_disk_that_was_full_while_a_job_read_left_nothing_to_resume() {
    let (folder, reference) = (Folder::new(), reference());
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 9) else {
        return;
    };
    let out = disk.path().join("out");
    let command = || {
        let mut command = lookalike("dedup");
        command.arg(&reference.input).arg("-o").arg(&out);
        command.args(["--memory", "64M", "--threads", "2", "--checkpoint", "512K"]);
        command.args(["--quiet", "--resume"]);
        command
    };
    // The full disk may be noticed by the log, which the job does not need to go on, or by a file that it needs.
    let left = || {
        let files = ["scanned.bin", "decided.bin"].map(|name| out.join(".lookalike").join(name));
        files.iter().any(|file| file.exists())
    };
    for _ in 0..2 {
        let full = command().fail(1);
        full.says(&["No space left on device", "space", "--resume"]);
        assert!(left(), "{}", full.err);
    }
    disk.grow(400);
    command().succeed();
    is_complete(&out, reference);
    assert_eq!(Results::read(&out).run["resumed"], true);
}
