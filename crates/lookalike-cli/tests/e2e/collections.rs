//! `lookalike collection`, `dedup --against` and `--into` a collection: old documents are compared without being read again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::results::Results;
use crate::support::{Finish, Finished, Folder, Numbers, STORY, interrupt, lookalike, record};

/// Returns records of which a third are copies or retellings of another; ids are repeated now and then.
fn records(seed: u64, range: std::ops::Range<usize>) -> String {
    let mut numbers = Numbers(seed);
    let mut texts: Vec<String> = Vec::new();
    let mut lines = String::new();
    for number in 0..range.end {
        let text = match numbers.below(6) {
            0 if number > 0 => texts[numbers.below(number)].clone(),
            1 if number > 0 => {
                format!(
                    "{} {}",
                    texts[numbers.below(number)],
                    numbers.words(2, 1000)
                )
            }
            _ => numbers.words(30, 20_000),
        };
        if range.contains(&number) {
            let id = format!("{:05}", number * 7919 % 9973 % 4000);
            lines.push_str(&record(&id, &text));
        }
        texts.push(text);
    }
    lines
}

fn collection(what: &str, folder: &Path, inputs: &[&Path]) -> Command {
    let mut command = lookalike("collection");
    command.arg(what).arg(folder).args(inputs);
    if what != "info" {
        command.args(["--quiet", "--threads", "2"]);
    }
    command
}

fn dedup(input: &Path, out: &Path) -> Command {
    let mut command = lookalike("dedup");
    command
        .arg(input)
        .arg("-o")
        .arg(out)
        .args(["--quiet", "--threads", "2"]);
    command
}

fn documents(folder: &Path) -> u64 {
    let info = collection("info", folder, &[])
        .args(["--json", "--verify"])
        .succeed();
    info.json()["documents"].as_u64().unwrap()
}

#[test]
fn results_against_a_collection_are_those_against_its_files() {
    let folder = Folder::new();
    let files = [
        folder.add("first.jsonl", records(5, 0..900)),
        folder.add("second.jsonl", records(5, 900..1200)),
    ];
    let new = folder.add("new.jsonl", records(5, 1200..1700));
    for flags in [
        &["--method", "allpairs"][..],
        &["--method", "minhash"],
        &["--method", "simhash"],
        &["--method", "super-shingle", "--threshold", "0.6"],
        &["--method", "exact"],
        &["--keep", "first"],
    ] {
        let name = flags[1];
        let seen = folder.path(format!("seen-{name}"));
        collection("build", &seen, &[&files[0]])
            .args(flags)
            .succeed();
        collection("add", &seen, &[&files[1]]).args(flags).succeed();
        let (read, kept) = (
            folder.path(format!("read-{name}")),
            folder.path(format!("out-{name}")),
        );
        let against = files
            .iter()
            .flat_map(|file| ["--against".as_ref(), file.as_os_str()]);
        dedup(&new, &read).args(flags).args(against).succeed();
        dedup(&new, &kept)
            .args(flags)
            .arg("--against")
            .arg(&seen)
            .succeed();
        let (read, kept) = (Results::stable(&read), Results::stable(&kept));
        for ((name, expected), (_, found)) in read.iter().zip(&kept) {
            assert!(found == expected, "{flags:?}: {name} is another one");
        }
        let removed = Results::read(&folder.path(format!("out-{name}")))
            .removed
            .len();
        assert!((50..450).contains(&removed), "{flags:?}: {removed}");
    }
}

#[test]
fn a_crawl_that_is_kept_clean_day_by_day_is_that_of_files() {
    let folder = Folder::new();
    let seen = folder.path("seen");
    let (mut all, mut kept_before): (Vec<PathBuf>, u64) = (Vec::new(), 0);
    for (day, range) in [0..500, 500..800, 800..1300].into_iter().enumerate() {
        let input = folder.add(format!("{day}.jsonl"), records(8, range));
        let (read, out) = (
            folder.path(format!("read-{day}")),
            folder.path(format!("out-{day}")),
        );
        let against = all
            .iter()
            .flat_map(|file| ["--against".as_ref(), file.as_os_str()]);
        dedup(&input, &read).args(against).succeed();
        let mut job = dedup(&input, &out);
        job.arg("--into").arg(&seen);
        if day > 0 {
            job.arg("--against").arg(&seen);
        }
        job.succeed();
        assert!(Results::stable(&out) == Results::stable(&read), "day {day}");
        let results = Results::read(&out);
        let kept = results.kept.len() as u64;
        assert_eq!(results.run["added"]["added"], kept);
        assert_eq!(results.run["added"]["documents"], kept_before + kept);
        assert_eq!(documents(&seen), kept_before + kept);
        if day > 0 {
            assert_eq!(
                results.count("counts", "documents"),
                results.kept.len() as u64 + results.removed.len() as u64
            );
            assert_eq!(
                results.run["counts"]["collection"]["documents"],
                kept_before
            );
        }
        kept_before += kept;
        all.push(read);
    }
    // If the same day is added again, nothing is new and nothing is added.
    let again = folder.path("again");
    let mut job = dedup(&folder.path("2.jsonl"), &again);
    job.arg("--into")
        .arg(&seen)
        .arg("--against")
        .arg(&seen)
        .succeed();
    assert_eq!(Results::read(&again).run["decisions"]["kept"], 0);
    assert_eq!(documents(&seen), kept_before);
}

#[test]
fn info_and_summaries_say_what_there_is() {
    let folder = Folder::new();
    let old = folder.records(
        "old.jsonl",
        &[("a", STORY), ("b", "something else entirely")],
    );
    let new = folder.records(
        "new.jsonl",
        &[("c", STORY), ("d", "a third text that nobody wrote before")],
    );
    let seen = folder.path("seen");
    let mut build = lookalike("collection");
    let built = build.arg("build").arg(&seen).arg(&old).succeed();
    built.says(&["2 documents to", "seen, which now has 2"]);
    let mut job = lookalike("dedup");
    job.arg(&new).arg("-o").arg(folder.path("out"));
    let done = job
        .arg("--against")
        .arg(&seen)
        .arg("--into")
        .arg(&seen)
        .succeed();
    done.says(&[
        "2 documents in a collection, 1 of them examined",
        "1 document to",
        "now has 3",
    ]);
    let info = collection("info", &seen, &[]).succeed();
    for part in [
        "3 documents",
        "2 additions",
        "method: allpairs",
        "threshold: 0.8",
    ] {
        assert!(
            info.text().contains(part),
            "{part} is not in {}",
            info.text()
        );
    }
    let json = collection("info", &seen, &[])
        .arg("--json")
        .succeed()
        .json();
    let files = fs::read_dir(&seen)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len());
    assert_eq!(json["bytes"], files.sum::<u64>());
    assert_eq!(
        (&json["additions"], &json["segments"]),
        (&2.into(), &2.into())
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    let (seen, out) = (folder.path("seen"), folder.path("out"));
    collection("build", &seen, &[&old]).succeed();
    let refused = |command: &mut Command, status: i32, words: &[&str]| {
        command.fail(status).says(words);
        assert!(!out.exists(), "{command:?}");
        assert_eq!(documents(&seen), 1);
    };
    let against = |flags: &[&str]| {
        let mut job = dedup(&old, &out);
        job.arg("--against").arg(&seen).args(flags);
        job
    };
    let other_method = [
        "method of the collection: allpairs, of the job: minhash",
        "build a collection",
    ];
    refused(&mut against(&["--method", "minhash"]), 1, &other_method);
    let other_threshold = ["threshold of the collection: 0.8, of the job: 0.7"];
    refused(&mut against(&["--threshold", "0.7"]), 1, &other_threshold);
    refused(
        &mut against(&["--shingle", "words:3"]),
        1,
        &["scheme of the collection: ", "words:3"],
    );
    refused(
        &mut against(&["--boilerplate", "site"]),
        2,
        &["--boilerplate", "leave it out"],
    );
    let two = ["a collection must be the only --against", "collection add"];
    refused(against(&[]).arg("--against").arg(&old), 2, &two);
    let unread = ["--into", "not compared with them", "--against"];
    refused(dedup(&old, &out).arg("--into").arg(&seen), 2, &unread);
    refused(
        &mut dedup(&seen, &out),
        2,
        &["a collection holds no documents", "--against"],
    );
    let results = ["is the directory of a collection", "-o"];
    refused(&mut dedup(&old, &seen), 2, &results);
    // Name a directory that does not exist yet in two ways.
    let mut both = dedup(&old, Path::new("both"));
    both.current_dir(out.parent().unwrap());
    refused(both.args(["--into", "./both"]), 2, &results);
    refused(
        &mut collection("build", &seen, &[&old]),
        2,
        &["already holds a collection", "add"],
    );
    let mut idle = collection("build", &folder.path("idle"), &[&old]);
    refused(
        idle.args(["--distance", "3"]),
        2,
        &["--distance has no effect"],
    );
    let missing = folder.path("missing");
    refused(
        &mut collection("add", &missing, &[&old]),
        1,
        &["there is no collection", "build one"],
    );
    refused(
        &mut collection("info", &missing, &[]),
        1,
        &["there is no collection"],
    );
    let foreign = folder.add("foreign/mine.txt", "mine");
    let foreign = foreign.parent().unwrap();
    refused(
        &mut collection("build", foreign, &[&old]),
        1,
        &["mine.txt", "empty or new"],
    );
    refused(
        dedup(&old, &out).arg("--into").arg(foreign),
        1,
        &["mine.txt"],
    );
    // A build that fails leaves no directory.
    let broken = folder.records("broken.jsonl", &[("a", "")]);
    let nothing = folder.add("nothing.jsonl", "{\"id\":\"a\"}\n");
    let new = folder.path("new");
    collection("build", &new, &[&nothing])
        .fail(1)
        .says(&["the only record does not have a text"]);
    assert!(!new.exists());
    collection("build", &new, &[&broken]).succeed();
    assert_eq!(documents(&new), 1);
}

/// Regression test: a field that was null in all new documents was reported as misnamed, although the collection was built with it.
#[test]
fn a_day_without_a_value_was_refused_against_a_collection_only() {
    let folder = Folder::new();
    let story = |id: &str, lang: &str| {
        format!("{{\"id\":\"{id}\",\"lang\":{lang},\"text\":\"{STORY}\"}}\n")
    };
    let old = folder.add("old.jsonl", story("old", "\"de\""));
    let new = folder.add("new.jsonl", story("new", "null"));
    let silent = folder.add("silent.jsonl", "{\"id\":\"a\",\"text\":null}\n");
    for (flags, day) in [
        (&["--within", "lang"][..], &new),
        (&["--across", "lang"], &new),
        (&[], &silent),
        (&["--text", "text"], &silent),
    ] {
        let name = flags.concat();
        let kept = folder.path(format!("{name}.seen"));
        let into = &mut dedup(&old, &folder.path(format!("{name}.first")));
        into.args(flags).arg("--into").arg(&kept).succeed();
        let outs = ["collection", "files"].map(|with| folder.path(format!("{name}.{with}")));
        for (out, against) in outs.iter().zip([&kept, &old]) {
            let mut job = dedup(day, out);
            job.args(flags).arg("--against").arg(against).succeed();
        }
        assert_eq!(
            fs::read(outs[0].join("clusters.jsonl")).unwrap(),
            fs::read(outs[1].join("clusters.jsonl")).unwrap(),
            "{name}"
        );
    }
    let mut job = dedup(&new, &folder.path("latest"));
    job.args(["--keep", "latest:lang", "--against"]);
    let kept = folder.path("latest.seen");
    let into = &mut dedup(&old, &folder.path("latest.first"));
    into.args(["--keep", "latest:lang", "--into"])
        .arg(&kept)
        .succeed();
    job.arg(&kept).succeed();
    // A field that does not exist is misnamed.
    let renamed = folder.add("renamed.jsonl", "{\"id\":\"a\",\"body\":\"b\"}\n");
    let mut job = dedup(&renamed, &folder.path("renamed"));
    job.arg("--against").arg(folder.path(".seen"));
    job.fail(1).says(&["the only record", "fields body, id"]);
    let lists = "{\"text\":[1]}\n{\"id\":\"a\"}\n";
    let mut job = dedup(&folder.add("lists.jsonl", lists), &folder.path("lists"));
    job.args(["--max-skipped", "9"])
        .fail(1)
        .says(&["1 more could not be read, the first: the text field holds an array"]);
}

/// Regression test: a text in another field was refused against a collection only, and a field without values for `--keep` against files only.
#[test]
fn a_file_to_compare_with_and_a_collection_refused_different_input() {
    let folder = Folder::new();
    let scored = format!("{{\"id\":\"old\",\"score\":1,\"text\":\"{STORY}\"}}\n");
    let old = folder.add("old.jsonl", scored);
    let kept = folder.path("seen");
    let keep = ["--keep", "max:score"];
    let mut into = dedup(&old, &folder.path("first"));
    into.args(keep).arg("--into").arg(&kept).succeed();
    let unscored = folder.records("unscored.jsonl", &[("new", STORY)]);
    let renamed = folder.add("renamed.jsonl", "{\"id\":\"a\",\"body\":\"b\"}\n");
    let empty = folder.add("empty.txt", "\n");
    for (against, name) in [(&kept, "collection"), (&old, "files")] {
        let job = |input: &Path, out: &str| {
            let mut job = dedup(input, &folder.path(format!("{name}.{out}")));
            job.args(keep).arg("--against").arg(against);
            job
        };
        job(&renamed, "renamed")
            .fail(1)
            .says(&["the only record does not have a text", "fields body, id"]);
        job(&unscored, "unscored").succeed();
        // A document without a field has a text, even if it is empty.
        job(&empty, "empty").succeed();
    }
    assert_eq!(
        fs::read(folder.path("collection.unscored/clusters.jsonl")).unwrap(),
        fs::read(folder.path("files.unscored/clusters.jsonl")).unwrap(),
    );
}

#[test]
fn the_url_of_a_record_without_a_text_counted_in_a_collection_only() {
    let folder = Folder::new();
    let old = folder.records("old.jsonl", &[("http://harbour.example/1", "")]);
    let new = folder.records("new.jsonl", &[("a", STORY), ("b", STORY)]);
    let seen = folder.path("seen");
    let site = ["--within", "site"];
    let mut into = dedup(&old, &folder.path("first"));
    into.args(site).arg("--into").arg(&seen).succeed();
    for (against, out) in [(&seen, "collection"), (&old, "files")] {
        let mut job = dedup(&new, &folder.path(out));
        job.args(site).arg("--against").arg(against).succeed();
    }
    let stable = |out| Results::stable(&folder.path(out));
    assert!(stable("collection") == stable("files"));
}

/// Regression test: the manifest was read as a text, and the segments were reported as unreadable files.
#[test]
fn a_collection_among_the_inputs_is_left_out_and_told() {
    let folder = Folder::new();
    folder.add("all/a.txt", STORY);
    let seen = folder.path("all/seen");
    let old = folder.records("old.jsonl", &[("a", STORY)]);
    collection("build", &seen, &[&old]).succeed();
    let mut job = lookalike("dedup");
    job.arg(folder.path("all"))
        .arg("-o")
        .arg(folder.path("out"));
    let done = job.arg("--against").arg(&seen).succeed();
    done.says(&[
        "seen is left out: it is a lookalike collection",
        "which does not store documents",
    ]);
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.count("counts", "documents"), 1);
    assert_eq!(results.count("decisions", "removed_exact"), 1);
    assert_eq!(results.skipped.len(), 1, "{:?}", results.skipped);
    assert_eq!(results.skipped[0]["kind"], "results-folder");
}

#[test]
fn unreadable_records_are_told_as_ever() {
    let folder = Folder::new();
    let lines = format!("{}no record\n", record("a", STORY));
    let old = folder.add("old.jsonl", lines);
    let seen = folder.path("seen");
    collection("build", &seen, &[&old]).lose();
    assert_eq!(documents(&seen), 1);
    let strict = folder.path("strict");
    collection("build", &strict, &[&old])
        .arg("--strict")
        .fail(1);
    assert!(!strict.exists());
}

/// Names of files, with their bytes.
type Files<Name> = Vec<(Name, Vec<u8>)>;

/// Returns the files of a collection with their bytes, except those that its manifest does not name.
fn snapshot(folder: &Path) -> Files<String> {
    let manifest = fs::read_to_string(folder.join("lookalike.collection")).unwrap_or_default();
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name == "lookalike.collection" || manifest.contains(name.as_str()))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in snapshot(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}

/// Kills a job. Returns whether it was still running.
fn kill(mut child: Child) -> bool {
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// A collection, the input that one day adds to it, and the files of the collection before that.
struct Day {
    folder: Folder,
    seen: PathBuf,
    input: PathBuf,
    before: Files<String>,
}

impl Day {
    fn new() -> Self {
        let folder = Folder::new();
        let old = folder.add("old.jsonl", records(3, 0..3000));
        let input = folder.add("new.jsonl", records(3, 3000..12_000));
        let seen = folder.path("seen");
        collection("build", &seen, &[&old]).succeed();
        let before = snapshot(&seen);
        Self {
            folder,
            seen,
            input,
            before,
        }
    }

    /// Copies the collection.
    fn copy(&self, name: &str) -> PathBuf {
        let copied = self.folder.path(name);
        copy(&self.seen, &copied);
        copied
    }

    fn job(&self, seen: &Path, out: &Path, flags: &[&str]) -> Command {
        let mut job = dedup(&self.input, out);
        job.arg("--against")
            .arg(seen)
            .arg("--into")
            .arg(seen)
            .args(flags);
        job
    }
}

fn started(command: &mut Command) -> Child {
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a job and waits until it is about to write its results.
fn started_and_decided(job: &mut Command, out: &Path) -> Child {
    let mut child = started(job);
    let decided = out.join(".lookalike/decided.bin");
    while !decided.exists() && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
    child
}

fn kill_once_decided(job: &mut Command, out: &Path) {
    assert!(kill(started_and_decided(job, out)), "it was still writing");
}

#[test]
fn an_addition_that_is_killed_leaves_the_collection_as_it_was_or_complete() {
    let day = Day::new();
    let reference = day.copy("reference");
    let start = Instant::now();
    collection("add", &reference, &[&day.input]).succeed();
    let (took, after) = (start.elapsed(), snapshot(&reference));
    let mut hit = 0;
    for attempt in 0..12 {
        let seen = day.copy(&format!("add-{attempt}"));
        let child = started(&mut collection("add", &seen, &[&day.input]));
        sleep(took.mul_f64(f64::from(attempt) / 11.0));
        hit += u32::from(kill(child));
        let found = snapshot(&seen);
        assert!(found == day.before || found == after, "attempt {attempt}");
        documents(&seen);
        if found == day.before {
            collection("add", &seen, &[&day.input]).succeed();
            assert!(snapshot(&seen) == after, "attempt {attempt}");
            let left = fs::read_dir(&seen).unwrap().count();
            assert_eq!(
                left,
                after.len() + 1,
                "files and the lock, and nothing that was killed"
            );
        }
        fs::remove_dir_all(&seen).unwrap();
    }
    assert!(hit >= 3, "{hit} jobs were still running");
}

/// Returns a build that writes a checkpoint for every half megabyte that it reads.
fn build(seen: &Path, input: &Path, flags: &[&str]) -> Command {
    let mut build = collection("build", seen, &[input]);
    build.args(["--checkpoint", "256K"]).args(flags);
    build
}

/// Starts builds until one is stopped while it is reading and has logged at least `logged` bytes.
fn stopped_build<T>(seen: &Path, input: &Path, logged: u64, stop: impl Fn(Child) -> T) -> T {
    for _ in 0..20 {
        let mut command = build(seen, input, &[]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = seen.join("begun.bin");
        let is_short = || fs::metadata(&log).map_or(0, |log| log.len()) < logged;
        while is_short() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        let stopped = stop(child);
        if log.exists() && !seen.join("lookalike.collection").exists() {
            return stopped;
        }
        let _ = fs::remove_dir_all(seen);
    }
    panic!("the build had always ended before it could be stopped");
}

#[test]
fn a_build_that_is_killed_goes_on_from_what_it_had_read() {
    let folder = Folder::new();
    let input = folder.add("old.jsonl", records(3, 0..24_000));
    let [reference, seen, anew] = ["reference", "seen", "anew"].map(|name| folder.path(name));
    let whole = build(&reference, &input, &["--json"]).succeed().json();
    assert_eq!(whole["resumed"], false);
    for logged in [1, 2 << 20] {
        stopped_build(&seen, &input, logged, kill);
        fs::create_dir(&anew).unwrap();
        for entry in fs::read_dir(&seen).unwrap() {
            let entry = entry.unwrap();
            // The folder of temporary files is not copied.
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), anew.join(entry.file_name())).unwrap();
            }
        }
        let resumed = build(&seen, &input, &["--resume", "--json"]).succeed();
        assert_eq!(resumed.json()["resumed"], true);
        // Without --resume the build starts over.
        assert_eq!(
            build(&anew, &input, &["--json"]).succeed().json()["resumed"],
            false
        );
        for built in [&seen, &anew] {
            assert!(snapshot(built) == snapshot(&reference));
            let left = fs::read_dir(built).unwrap().count();
            assert_eq!(left, snapshot(&reference).len() + 1, "files and the lock");
            fs::remove_dir_all(built).unwrap();
        }
    }
    let mut told = lookalike("collection");
    told.arg("build").arg(&seen).arg(&input).arg("--resume");
    told.succeed().says(&["there is nothing to resume"]);
    // Simulate a kill after the last step, which leaves the log of the build.
    let log = seen.join("begun.bin");
    fs::write(&log, "a log").unwrap();
    let complete = build(&seen, &input, &["--resume"]).fail(1);
    complete.says(&["the collection is complete", "nothing is left to resume"]);
    assert!(!log.exists());
}

#[test]
fn a_build_is_not_resumed_with_other_documents() {
    let folder = Folder::new();
    let input = folder.add("old.jsonl", records(3, 0..24_000));
    let seen = folder.path("seen");
    stopped_build(&seen, &input, 2 << 20, kill);
    let mut bytes = fs::read(&input).unwrap();
    let time = fs::metadata(&input).unwrap().modified().unwrap();
    let at = bytes.iter().position(u8::is_ascii_lowercase).unwrap();
    bytes[at + 40] ^= 1;
    fs::write(&input, &bytes).unwrap();
    let file = fs::File::options().write(true).open(&input).unwrap();
    file.set_modified(time).unwrap();
    let refused = build(&seen, &input, &["--resume"]).fail(1);
    refused.says(&["old.jsonl", "changed"]);
    assert!(!seen.join("lookalike.collection").exists());
}

#[test]
fn a_build_with_other_options_or_inputs_was_resumed_from_the_beginning() {
    let folder = Folder::new();
    let input = folder.add("old.jsonl", records(3, 0..24_000));
    let more = folder.add("more.jsonl", records(3, 0..100));
    let seen = folder.path("seen");
    stopped_build(&seen, &input, 1, kill);
    let log = fs::read(seen.join("begun.bin")).unwrap();
    let refused = build(&seen, &input, &["--resume", "--threshold", "0.7"]).fail(1);
    let settings = ["seen", "the job to resume has other settings", "0.8", "0.7"];
    refused.says(&settings);
    refused.says(&["repeat it with the same ones, or run without --resume"]);
    let refused = build(&seen, &more, &["--resume"]).fail(1);
    refused.says(&["the job to resume read other files", "run without --resume"]);
    // With the original arguments the build is resumed.
    assert!(fs::read(seen.join("begun.bin")).unwrap() == log);
    let resumed = build(&seen, &input, &["--resume", "--json"]).succeed();
    assert_eq!(resumed.json()["resumed"], true);
    assert_eq!(documents(&seen), 24_000);
}

#[test]
fn a_build_whose_log_is_damaged_says_that_it_started_from_the_beginning() {
    let folder = Folder::new();
    let input = folder.add("old.jsonl", records(3, 0..24_000));
    let seen = folder.path("seen");
    stopped_build(&seen, &input, 1, kill);
    fs::write(seen.join("begun.bin"), "no log").unwrap();
    let mut resumed = lookalike("collection");
    resumed.arg("build").args([&seen, &input]).arg("--resume");
    let done = resumed.succeed();
    done.says(&["damaged", "from the beginning"]);
    assert_eq!(documents(&seen), 24_000);
}

#[test]
fn an_interrupted_build_says_that_it_can_be_resumed() {
    let folder = Folder::new();
    let input = folder.add("old.jsonl", records(3, 0..24_000));
    let seen = folder.path("seen");
    let (code, said) = stopped_build(&seen, &input, 1, interrupt);
    assert_eq!(code, Some(130));
    assert!(said.contains("--resume continues from"), "{said}");
    build(&seen, &input, &["--resume"]).succeed();
    assert_eq!(documents(&seen), 24_000);
}

#[test]
fn a_day_that_is_killed_adds_all_or_nothing_and_can_be_resumed() {
    let day = Day::new();
    let (reference, out) = (day.copy("reference"), day.folder.path("out"));
    let start = Instant::now();
    day.job(&reference, &out, &[]).succeed();
    let (took, after, expected) = (start.elapsed(), snapshot(&reference), Results::stable(&out));
    assert!(Results::read(&out).kept.len() > 1000);
    let (mut hit, mut added_first) = (0, 0);
    for attempt in 0..10 {
        let seen = day.copy(&format!("seen-{attempt}"));
        let out = day.folder.path(format!("out-{attempt}"));
        let mut job = day.job(&seen, &out, &[]);
        // Kill every second job while it writes results.
        let child = if attempt % 2 == 0 {
            let child = started_and_decided(&mut job, &out);
            sleep(took.mul_f64(f64::from(attempt) / 10.0 * 0.3));
            child
        } else {
            let child = started(&mut job);
            sleep(took.mul_f64(f64::from(attempt) / 10.0));
            child
        };
        hit += u32::from(kill(child));
        let found = snapshot(&seen);
        assert!(found == day.before || found == after, "attempt {attempt}");
        if !out.join("run.json").exists() {
            added_first += u32::from(found == after);
            day.job(&seen, &out, &["--resume"]).succeed();
        }
        assert!(snapshot(&seen) == after, "attempt {attempt}");
        assert!(Results::stable(&out) == expected, "attempt {attempt}");
        documents(&seen);
        fs::remove_dir_all(&seen).unwrap();
        fs::remove_dir_all(&out).unwrap();
    }
    assert!(
        hit >= 3,
        "{hit} jobs were still running, {added_first} had added"
    );
}

#[test]
fn a_day_that_was_added_and_has_no_results_yet_is_resumed_without_adding_again() {
    let day = Day::new();
    let seen = day.copy("seen-once");
    let job = |out: &Path, flags: &[&str]| day.job(&seen, out, flags);
    is_resumed_without_adding_again(&day, &seen, &job);
}

/// Regression test: the job did not recognise the collection that it had created itself.
#[test]
fn a_first_day_that_was_added_and_has_no_results_yet_was_refused() {
    let day = Day::new();
    let seen = day.folder.path("seen-first");
    let job = |out: &Path, flags: &[&str]| {
        let mut job = dedup(&day.input, out);
        job.arg("--into").arg(&seen).args(flags);
        job
    };
    is_resumed_without_adding_again(&day, &seen, &job);
    let out = day.folder.path("out-once");
    job(&out, &["--resume"]).succeed();
    job(&out, &["--overwrite"]).fail(2).says(&["--against"]);
}

/// Regression test: the lock of the new collection was read as an empty document to compare with.
#[test]
fn a_first_day_that_names_its_collection_twice_is_compared_with_nothing() {
    let day = Day::new();
    let seen = day.folder.path("seen-first");
    let job = |out: &Path, flags: &[&str]| day.job(&seen, out, flags);
    is_resumed_without_adding_again(&day, &seen, &job);
    let out = day.folder.path("out-once");
    let alone = day.folder.path("out-alone");
    dedup(&day.input, &alone).succeed();
    assert!(Results::stable(&out) == Results::stable(&alone));

    let second = day.folder.path("second");
    let mut job = lookalike("dedup");
    job.arg(&day.input).arg("-o").arg(&second);
    job.arg("--against").arg(day.folder.path("misspelt"));
    job.arg("--into").arg(day.folder.path("misspelt"));
    job.succeed()
        .says(&["--against names the new collection of --into: nothing is in it yet"]);
    assert_eq!(Results::read(&second).run["counts"]["against"], 0);
}

#[test]
fn a_day_that_was_added_and_has_no_results_yet_lost_its_list_when_repeated() {
    let day = Day::new();
    let seen = day.copy("seen-repeated");
    let job = |out: &Path, flags: &[&str]| day.job(&seen, out, flags);
    let (out, after, expected) = between_addition_and_results(&day, &seen, &job);
    for flags in [&[][..], &["--overwrite"]] {
        let refused = job(&out, flags).fail(1);
        refused.says(&[
            "or an equal one elsewhere, has added the documents",
            "repeat the command of that job",
            "choose another directory",
        ]);
        assert!(!refused.err.contains("--overwrite"), "{}", refused.err);
    }
    // Where this job cannot be resumed, --overwrite alone would lead back to the refusal above.
    job(&out, &["--resume", "--output-format", "parquet"])
        .fail(1)
        .says(&["other settings", "start again in another directory or with"]);
    job(&out, &["--resume"]).succeed();
    assert!(snapshot(&seen) == after);
    assert!(Results::stable(&out) == expected);
}

fn is_resumed_without_adding_again(
    day: &Day,
    seen: &Path,
    job: &dyn Fn(&Path, &[&str]) -> Command,
) {
    let (out, after, expected) = between_addition_and_results(day, seen, job);
    job(&out, &["--resume"]).succeed();
    assert!(snapshot(seen) == after);
    assert!(Results::stable(&out) == expected);
}

/// Recreates the state between the addition and the results, which is too short to be hit by chance. Returns the output directory, and what the
/// collection and the results are in the end.
fn between_addition_and_results(
    day: &Day,
    seen: &Path,
    job: &dyn Fn(&Path, &[&str]) -> Command,
) -> (PathBuf, Files<String>, Files<&'static str>) {
    let out = day.folder.path("out-once");
    kill_once_decided(&mut job(&out, &[]), &out);
    let state = day.folder.path("state");
    let status = Command::new("cp").arg("-r").arg(&out).arg(&state).status();
    assert!(status.unwrap().success());
    job(&out, &["--resume"]).succeed();
    let (after, expected) = (snapshot(seen), Results::stable(&out));
    // Restore the folder from before the results, beside a collection that already has the addition.
    fs::remove_dir_all(&out).unwrap();
    fs::rename(&state, &out).unwrap();
    (out, after, expected)
}

#[test]
fn a_collection_that_changed_since_is_not_added_to_by_a_resumed_job() {
    let day = Day::new();
    let seen = day.copy("seen-changed");
    let out = day.folder.path("out-changed");
    kill_once_decided(&mut day.job(&seen, &out, &[]), &out);
    let other = day.folder.records("other.jsonl", &[("x", STORY)]);
    collection("add", &seen, &[&other]).succeed();
    let before = snapshot(&seen);
    let refused = day.job(&seen, &out, &["--resume"]).fail(1);
    refused.says(&["has changed since", "start that job again"]);
    assert!(snapshot(&seen) == before);
    day.job(&seen, &out, &["--overwrite"]).succeed();
}

#[test]
fn a_job_that_added_nothing_kept_an_interrupted_one_from_being_resumed() {
    let day = Day::new();
    let (reference, seen) = (day.copy("reference"), day.copy("seen"));
    let (done, out) = (day.folder.path("done"), day.folder.path("out"));
    day.job(&reference, &done, &[]).succeed();
    let (after, expected) = (snapshot(&reference), Results::stable(&done));
    kill_once_decided(&mut day.job(&seen, &out, &[]), &out);
    let copies = day.folder.path("old.jsonl");
    let mut other = dedup(&copies, &day.folder.path("out-copies"));
    other.arg("--against").arg(&seen).arg("--into").arg(&seen);
    other.succeed();
    assert!(snapshot(&seen) == day.before);
    day.job(&seen, &out, &["--resume"]).succeed();
    assert!(snapshot(&seen) == after);
    assert!(Results::stable(&out) == expected);
}

#[test]
fn two_writers_at_once_are_refused_and_readers_are_not() {
    let day = Day::new();
    let seen = day.copy("seen-locked");
    // The first job waits for the rest of its input.
    let mut child = started(collection("add", &seen, &["-".as_ref()]).stdin(Stdio::piped()));
    let input = child.stdin.take().unwrap();
    let is_at_work = || {
        let mut names = fs::read_dir(&seen)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with("spool"))
    };
    while !is_at_work() {
        sleep(Duration::from_millis(1));
    }
    let small = day.folder.records("small.jsonl", &[("x", STORY)]);
    let second = collection("add", &seen, &[&small]).finish();
    let reader = dedup(&small, &day.folder.path("reader"))
        .arg("--against")
        .arg(&seen)
        .finish();
    assert!(kill(child), "the first was still at work");
    drop(input);
    assert_eq!(second.status, Some(1), "{}", second.err);
    second.says(&["another job is writing", "wait"]);
    assert_eq!(reader.status, Some(0), "{}", reader.err);
    // The lock of a killed process is released.
    collection("add", &seen, &[&small]).succeed();
}

/// Runs a command in a shell that limits the size of files to `blocks` blocks, which simulates a full disk.
fn with_small_disk(blocks: u32, command: &Command) -> Finished {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg(script)
        .arg(command.get_program())
        .args(command.get_args());
    limited.stdin(Stdio::null()).finish()
}

#[test]
fn a_disk_that_is_full_leaves_the_collection_as_it_was_and_says_so() {
    let day = Day::new();
    let mut failures = 0;
    for blocks in [0, 1, 16, 300, 1 << 20] {
        let seen = day.copy(&format!("full-{blocks}"));
        let add = collection("add", &seen, &[&day.input]);
        let done = with_small_disk(blocks, &add);
        assert!(!done.err.contains("panicked"), "{}", done.err);
        if done.status != Some(0) {
            failures += 1;
            assert_eq!(done.status, Some(1), "{}", done.err);
            done.says(&["full-", "File too large"]);
            assert!(snapshot(&seen) == day.before, "{blocks} blocks");
        }
        let out = day.folder.path(format!("out-{blocks}"));
        if blocks == 300 {
            let job = day.job(&seen, &out, &[]);
            let done = with_small_disk(blocks, &job);
            assert_eq!(done.status, Some(1), "{}", done.err);
            assert!(snapshot(&seen) == day.before);
            day.job(&seen, &out, &["--resume"]).succeed();
            // There is one segment, with the old and the new documents.
            assert_eq!(snapshot(&seen).len(), day.before.len());
            assert!(snapshot(&seen) != day.before);
        }
    }
    assert_eq!(failures, 4);
}

/// Returns a number from `info --json`.
fn info(folder: &Path, key: &str) -> u64 {
    let told = collection("info", folder, &[]).arg("--json").succeed();
    told.json()[key].as_u64().unwrap()
}

#[test]
fn an_addition_is_made_where_only_merging_it_would_fill_the_disk() {
    let day = Day::new();
    let (alone, merged) = (day.folder.path("alone"), day.copy("merged"));
    collection("build", &alone, &[&day.input]).succeed();
    collection("add", &merged, &[&day.input]).succeed();
    let size = |folder: &Path, name: &str| fs::metadata(folder.join(name)).unwrap().len();
    let fits = size(&alone, "segment-000001.bin");
    let does_not = size(&merged, "segment-000002.bin");
    assert!(fits + (64 << 10) < does_not, "{fits} {does_not}");
    let seen = day.copy("small");
    let add = collection("add", &seen, &[&day.input]);
    let blocks = (fits + does_not) / 2 / 512;
    let done = with_small_disk(blocks as u32, &add);
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!((info(&merged, "segments"), info(&seen, "segments")), (1, 2));
    assert_eq!(documents(&seen), documents(&merged));
    // There is room for the next additions.
    let small = day.folder.records("small.jsonl", &[("x", STORY)]);
    collection("add", &seen, &[&small]).succeed();
    collection("add", &seen, &[&small]).succeed();
    assert_eq!((info(&seen, "segments"), info(&seen, "additions")), (3, 4));
}

/// Regression test: every addition stayed a file of its own, and all files were opened at once.
#[test]
fn a_collection_of_many_additions_could_not_be_opened() {
    let folder = Folder::new();
    let seen = folder.path("seen");
    for addition in 0..50_usize {
        let range = addition * 20..(addition + 1) * 20;
        let input = folder.add("in.jsonl", records(4, range));
        let what = if addition == 0 { "build" } else { "add" };
        collection(what, &seen, &[&input]).succeed();
    }
    assert_eq!((info(&seen, "additions"), documents(&seen)), (50, 1000));
    let with_few_files = |command: &Command| {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n 30; exec \"$0\" \"$@\""]);
        limited
            .arg(command.get_program())
            .args(command.get_args())
            .succeed();
    };
    with_few_files(&collection("info", &seen, &[]));
    let new = folder.add("new.jsonl", records(4, 1000..1050));
    let mut job = dedup(&new, &folder.path("out"));
    with_few_files(job.arg("--against").arg(&seen).arg("--into").arg(&seen));
}

#[test]
fn a_damaged_file_is_named_with_what_to_do() {
    let day = Day::new();
    let segment = day.seen.join("segment-000001.bin");
    let good = fs::read(&segment).unwrap();
    let refused = |words: &[&str]| {
        let out = day.folder.path("out");
        day.job(&day.seen, &out, &[]).fail(1).says(words);
        collection("info", &day.seen, &[])
            .arg("--verify")
            .fail(1)
            .says(words);
        assert!(!out.join("run.json").exists());
    };
    let mut bad = good.clone();
    bad[9] ^= 4;
    fs::write(&segment, &bad).unwrap();
    refused(&[
        "segment-000001.bin",
        "damaged within",
        "restore the directory",
        "build it again",
    ]);
    fs::write(&segment, &good[..good.len() - 1]).unwrap();
    refused(&["segment-000001.bin", "were written", "restore"]);
    fs::remove_file(&segment).unwrap();
    refused(&["segment-000001.bin", "missing", "restore"]);
}
