//! A search for pairs that is killed at any moment leaves no incomplete list, and `--resume` ends with the same bytes as an uninterrupted search.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Finish, Folder, Numbers, interrupt, lookalike, record};

/// Returns records in families. Every sixtieth is a copy of the first, so that one class has very many pairs.
fn collection(records: usize) -> String {
    let mut numbers = Numbers(11);
    let mut texts: Vec<String> = Vec::new();
    let mut lines = String::new();
    for number in 0..records {
        let text = match number % 60 {
            0 if number > 0 => texts[0].clone(),
            1..12 => format!(
                "{}\n\n{}",
                texts[numbers.below(number)],
                numbers.words(9, 500)
            ),
            _ => format!("{}\n\n{}", numbers.words(30, 400), numbers.words(50, 9000)),
        };
        lines.push_str(&record(
            &format!("{:05}", number * 7919 % records * 10 + number % 3),
            &text,
        ));
        texts.push(text);
    }
    lines
}

/// A search for pairs into a file that is killed and resumed.
struct KilledSearch {
    folder: Folder,
    input: PathBuf,
    flags: Vec<&'static str>,
    whole: Vec<u8>,
    took: Duration,
}

impl KilledSearch {
    fn new(records: usize, flags: &[&'static str]) -> Self {
        let folder = Folder::new();
        let mut search = Self {
            input: folder.add("in.jsonl", collection(records)),
            folder,
            flags: flags.to_vec(),
            whole: Vec::new(),
            took: Duration::ZERO,
        };
        let (path, start) = (search.folder.path("whole.jsonl"), Instant::now());
        search.command(&path).succeed();
        search.took = start.elapsed();
        search.whole = fs::read(&path).unwrap();
        assert!(search.whole.len() > 100_000, "{}", search.whole.len());
        assert!(!search.state(&path).exists());
        search
    }

    fn command(&self, output: &Path) -> Command {
        let mut command = lookalike("pairs");
        command.arg(&self.input).args(&self.flags).arg("-q");
        command.args(["--checkpoint", "100K", "--threads", "2", "-o"]);
        command.arg(output);
        command
    }

    fn state(&self, output: &Path) -> PathBuf {
        output.with_extension("jsonl.pairing")
    }

    fn resume(&self, output: &Path) -> Command {
        let mut again = self.command(output);
        // Resume with another memory limit, as on another machine.
        again.args(["--resume", "--memory", "200M"]);
        again
    }

    /// Kills the search `kills` times: at any time, after some input was read, and after some pairs were compared. Resumes it each time. Returns how
    /// many times a log of compared pairs was left.
    fn kill_and_resume(&self, kills: usize) -> usize {
        let (mut hit, mut read, mut compared, mut attempts) = (0, 0, 0, 0);
        while hit < kills {
            attempts += 1;
            assert!(
                attempts <= 6 * kills,
                "{hit} of {attempts} searches were still running"
            );
            let output = self.folder.path(format!("{attempts}.jsonl"));
            let state = self.state(&output);
            let mut child = self.command(&output).spawn().unwrap();
            match attempts % 3 {
                0 => sleep(self.took.mul_f64(0.1 * (attempts % 5) as f64)),
                1 => wait_for(&mut child, || state.join("scanned.bin").exists()),
                _ => wait_for(&mut child, || has_entries(&state.join("found.bin"))),
            }
            hit += usize::from(kill(child));
            read += usize::from(state.join("scanned.bin").exists());
            compared += usize::from(has_entries(&state.join("found.bin")));
            if output.exists() {
                assert!(fs::read(&output).unwrap() == self.whole, "half a list");
            }
            self.resume(&output).succeed();
            assert!(
                fs::read(&output).unwrap() == self.whole,
                "another list after --resume"
            );
            assert!(!state.exists());
        }
        assert!(read > 0, "none of {attempts} had read anything");
        compared
    }

    /// Stops the search after all pairs were found, by making the output a link to a full disk.
    fn stopped_at_its_last_step(&self) -> PathBuf {
        let output = self.folder.path("out.jsonl");
        std::os::unix::fs::symlink("/dev/full", &output).unwrap();
        self.command(&output).fail(1).says(&["out.jsonl"]);
        fs::remove_file(&output).unwrap();
        assert!(has_entries(&self.state(&output).join("found.bin")));
        output
    }
}

/// Kills a search. Returns whether it was still running.
fn kill(mut child: Child) -> bool {
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// Returns whether a log of compared pairs has more than its header.
fn has_entries(log: &Path) -> bool {
    fs::metadata(log).is_ok_and(|log| log.len() > 16)
}

/// Waits until a condition holds or the search has ended.
fn wait_for(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_search_that_was_killed_goes_on() {
    let compared = KilledSearch::new(9_000, &["--threshold", "0.3"]).kill_and_resume(6);
    assert!(compared > 0);
}

#[test]
fn a_search_for_pairs_of_paragraphs_that_was_killed_goes_on() {
    let flags = ["--unit", "paragraphs", "--threshold", "0.3"];
    KilledSearch::new(6_000, &flags).kill_and_resume(3);
}

#[test]
fn a_search_by_fingerprints_that_was_killed_goes_on() {
    let flags = ["--method", "simhash", "--threshold", "0"];
    KilledSearch::new(6_000, &flags).kill_and_resume(3);
}

/// `dedup` searches for all pairs after it has decided.
#[test]
fn a_job_that_lists_all_pairs_goes_on_with_those_it_found() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", collection(12_000));
    let job = |out: &Path| {
        let mut command = lookalike("dedup");
        command.arg(&input).args(["--pairs", "all", "-q"]);
        command.args(["--threshold", "0.3", "--checkpoint", "100K"]);
        command.args(["--threads", "2", "-o"]).arg(out);
        command
    };
    let whole = folder.path("whole");
    job(&whole).succeed();
    for attempt in 0..10 {
        let out = folder.path(format!("{attempt}"));
        let log = out.join(".lookalike/found.bin");
        let mut child = job(&out).spawn().unwrap();
        wait_for(&mut child, || has_entries(&log));
        if !kill(child) || !has_entries(&log) {
            continue;
        }
        job(&out).arg("--resume").succeed();
        for name in ["pairs.jsonl", "clusters.jsonl", "kept.jsonl"] {
            let [found, wanted] = [&out, &whole].map(|out| fs::read(out.join(name)).unwrap());
            assert!(found == wanted, "another {name} after --resume");
        }
        assert!(!log.exists());
        return;
    }
    panic!("no job was killed while it looked for pairs");
}

#[test]
fn a_search_whose_list_could_not_get_its_name_compares_nothing_again() {
    let search = KilledSearch::new(4_000, &["--threshold", "0.3"]);
    let output = search.stopped_at_its_last_step();
    let mut again = search.resume(&output);
    let summary = again.arg("--json").succeed().json();
    assert_eq!(summary["resumed"], true);
    assert!(fs::read(&output).unwrap() == search.whole);
    assert!(!search.state(&output).exists());
}

#[test]
fn another_search_does_not_go_on_with_it() {
    let search = KilledSearch::new(4_000, &["--threshold", "0.3"]);
    let output = search.stopped_at_its_last_step();
    let mut other = search.resume(&output);
    other.args(["--method", "minhash"]).fail(1).says(&[
        "out.jsonl.pairing",
        "has other settings",
        "without --resume",
    ]);
    let mut more = search.resume(&output);
    more.arg(search.folder.add("more.jsonl", record("x", "a text")));
    more.fail(1)
        .says(&["read other files", "run without --resume"]);
    // The changed file has the same length and time.
    let (bytes, time) = (
        fs::read(&search.input).unwrap(),
        fs::metadata(&search.input).unwrap().modified().unwrap(),
    );
    let set = |bytes: &[u8]| {
        fs::write(&search.input, bytes).unwrap();
        let file = fs::File::options().write(true).open(&search.input);
        file.unwrap().set_modified(time).unwrap();
    };
    let mut changed = bytes.clone();
    let at = changed.len() / 2;
    changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
    set(&changed);
    search
        .resume(&output)
        .fail(1)
        .says(&["in.jsonl has changed", "run without --resume"]);
    set(&bytes);
    search.resume(&output).succeed();
    assert!(fs::read(&output).unwrap() == search.whole);
}

#[test]
fn without_resume_a_search_starts_again() {
    let search = KilledSearch::new(4_000, &["--threshold", "0.3"]);
    let output = search.stopped_at_its_last_step();
    let mut again = lookalike("pairs");
    again.arg(&search.input).args(&search.flags).arg("-o");
    let done = again.arg(&output).arg("--json").succeed();
    done.says(&["an interrupted job left its progress", "from the beginning"]);
    assert_eq!(done.json()["resumed"], false);
    assert!(fs::read(&output).unwrap() == search.whole);
    assert!(!search.state(&output).exists());
}

#[test]
fn resume_needs_an_output_and_says_when_there_is_nothing_to_go_on_from() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", collection(100));
    let search = || {
        let mut command = lookalike("pairs");
        command.arg(&input);
        command
    };
    search().arg("--resume").fail(2).says(&["--output"]);
    let output = folder.path("out.jsonl");
    let mut command = search();
    command.arg("--resume").arg("-o").arg(&output);
    command.succeed().says(&["there is nothing to resume"]);
    // Add a file that does not belong to a search.
    let foreign = folder.add("out.jsonl.pairing/thesis.tex", "years");
    let mut command = search();
    command.arg("-o").arg(&output);
    command.fail(1).says(&["thesis.tex", "may be yours"]);
    assert!(foreign.exists());
}

#[test]
fn an_interrupted_search_says_what_goes_on_with_it() {
    let search = KilledSearch::new(9_000, &["--threshold", "0.3"]);
    for attempt in 0..10 {
        let output = search.folder.path(format!("late{attempt}.jsonl"));
        let mut command = search.command(&output);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&mut child, || {
            search.state(&output).join("scanned.bin").exists()
        });
        let (code, said) = interrupt(child);
        if code == Some(0) {
            continue;
        }
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains("--resume continues from"), "{said}");
        search.resume(&output).succeed();
        assert!(fs::read(&output).unwrap() == search.whole);
        return;
    }
    panic!("no search was still running");
}
