//! `--memory` of jobs on collections: it is kept to the end, and a refusal names a limit that is enough.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::hostile_memory::{FREED_LATE, measured, watched};
use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, SmallDisk, lookalike, record};

const MIB: u64 = 1 << 20;

/// Returns the limit in MiB that a refusal asks for.
fn asked(said: &str) -> u64 {
    let least = said.split("--memory to at least ").nth(1);
    let (mebibytes, _) = least.expect(said).split_once('M').unwrap();
    mebibytes.parse().unwrap()
}

/// Runs a job with two threads and a limit in MiB, and checks that it takes no more memory. Returns its messages.
#[track_caller]
fn limited(mut command: Command, mebibytes: u64, status: i32) -> String {
    command.args(["--threads", "2", "--memory", &format!("{mebibytes}M")]);
    let (said, most) = measured(command.stdout(Stdio::null()), status);
    let enough = mebibytes * MIB + FREED_LATE;
    assert!(most <= enough, "{} of {mebibytes} MiB", most / MIB);
    said
}

/// Checks that a job refused under each of these limits asks for a limit, and succeeds within it. Returns the messages of the last success.
#[track_caller]
fn keeps_its_word(limits: &[u64], command: impl Fn() -> Command) -> String {
    let tried = |mebibytes: u64| {
        let mut command = command();
        command.args(["--threads", "2", "--memory", &format!("{mebibytes}M")]);
        watched(command.stdout(Stdio::null()))
    };
    let mut messages = String::new();
    for &limit in limits {
        let (status, said, _) = tried(limit);
        assert_eq!(status, Some(1), "{limit}: {said}");
        let mut least = asked(&said);
        let (mut status, mut said, mut most) = tried(least);
        // A refusal estimates from the first part of the input, which varies between runs because of the threads, so it may ask for more again.
        for _ in 0..2 {
            if status == Some(1) {
                least = asked(&said);
                (status, said, most) = tried(least);
            }
        }
        assert_eq!(status, Some(0), "{least}: {said}");
        let enough = least * MIB + FREED_LATE;
        assert!(most.all <= enough, "{} of {least} MiB", most.all / MIB);
        messages = said;
    }
    messages
}

fn raw(folder: &Folder, name: &str, count: usize, seed: u64) -> PathBuf {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(8 * count);
    for _ in 0..count {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    folder.add(name, bytes)
}

/// Writes records of random words; most pairs of adjacent words occur in one record only.
fn notes(folder: &Folder, count: usize, words: usize) -> PathBuf {
    let mut numbers = Numbers(3);
    let lines = (0..count).map(|at| record(&format!("n{at}"), &numbers.words(words, 5000)));
    folder.add("notes.jsonl", lines.collect::<String>())
}

#[test]
fn a_table_of_terms_took_more_than_the_limit_and_asked_for_more_four_times() {
    let folder = Folder::new();
    let input = notes(&folder, 40_000, 30);
    let terms = |flags: &[&str]| {
        let mut command = lookalike("terms");
        command.arg(&input).args(flags).arg("-o");
        command.arg(folder.path("table"));
        command
    };
    let table = || fs::read(folder.path("table")).unwrap();
    terms(&[]).succeed();
    let ample = table();
    // Features that only one record has go to disk and are not part of the table.
    for limit in [44, 60] {
        let memory = format!("{limit}M");
        let mut little = terms(&["--threads", "2", "--memory", &memory]);
        let (said, most) = measured(little.stdout(Stdio::null()), 0);
        assert!(said.contains("on disk"), "{said}");
        let enough = limit * MIB + FREED_LATE;
        assert!(most <= enough, "{} of {limit} MiB", most / MIB);
        assert!(table() == ample);
    }
    limited(terms(&["--singles"]), 60, 1);
    keeps_its_word(&[44, 60], || terms(&["--singles"]));
    let ample = table();
    terms(&["--singles"]).succeed();
    assert!(table() == ample);
    // The same holds for tables that are read.
    let decay = || {
        let mut command = lookalike("terms");
        command.arg("decay").arg(folder.path("table"));
        command.args(["--factor", "0.9", "-q", "-o"]);
        command.arg(folder.path("faded"));
        command
    };
    let mut refused = decay();
    let (said, _) = measured(refused.args(["--memory", "40M"]), 1);
    let least = asked(&said);
    let mut enough = decay();
    let (_, most) = measured(enough.args(["--memory", &format!("{least}M")]), 0);
    let most_bytes = least * MIB + FREED_LATE;
    assert!(most <= most_bytes, "{} of {least} MiB", most / MIB);
}

#[test]
fn an_index_of_sketches_was_checked_in_memory_whatever_the_limit() {
    let folder = Folder::new();
    let [first, more] = [1, 2].map(|seed| {
        raw(
            &folder,
            &format!("{seed}.u64x6"),
            6 * 500_000,
            seed * 0x1234_5678,
        )
    });
    let index = folder.path("index");
    let job = |subcommand: &str| {
        let mut command = lookalike("index");
        command.arg(subcommand);
        command
    };
    let mut build = job("build");
    build.arg(&first).args(["--equal", "2", "-q", "-o"]);
    build.arg(&index);
    limited(build, 56, 0);
    assert!(fs::metadata(&index).unwrap().len() > 30 * MIB);
    let mut extend = job("extend");
    extend.arg(&index).arg(&more).arg("-q");
    limited(extend, 56, 0);
    assert!(fs::metadata(&index).unwrap().len() > 60 * MIB);
}

#[test]
fn links_asked_for_a_limit_that_never_was_enough() {
    const PAGES: usize = 100_000;
    let folder = Folder::new();
    let page = |at: usize| {
        let (url, link) = (format!("http://a.example/{at}"), at * 7 % PAGES);
        format!("{{\"url\":\"{url}\",\"html\":\"<a href=/{link}>page</a>\"}}\n")
    };
    let input = folder.add("crawl.jsonl", (0..PAGES).map(page).collect::<String>());
    let links = || {
        let mut command = lookalike("links");
        command.arg(&input).arg("-o");
        command.arg(folder.path("out.jsonl"));
        command
    };
    // The table of addresses takes 2 MiB.
    let said = keeps_its_word(&[1, 25], links);
    assert!(said.contains("of tables on disk"), "{said}");
}

/// Returns an overlap of notes.
fn overlap(input: &Path, out: &Path, chunk: &str) -> Command {
    let mut command = lookalike("overlap");
    command.arg(input).args(["--chunk", chunk, "-q", "-o"]);
    command.arg(out).arg("--overwrite");
    command
}

#[test]
fn the_limit_that_overlap_asked_for_was_far_from_what_it_needs() {
    let folder = Folder::new();
    for count in [10, 5_000, 60_000] {
        let input = notes(&folder, count, 6);
        let job = || overlap(&input, &folder.path("out"), "lines:1");
        let (said, _) = measured(job().args(["--threads", "2", "--memory", "37M"]), 1);
        assert!(asked(&said) <= 45 + count as u64 / 1500, "{count}: {said}");
        keeps_its_word(&[1, 37], job);
    }
}

#[test]
fn overlap_of_sliding_words_took_a_fifth_more_than_the_limit() {
    let folder = Folder::new();
    let input = notes(&folder, 60_000, 20);
    for chunk in ["words:3:sliding", "lines:1"] {
        for limit in [60, 70] {
            limited(overlap(&input, &folder.path("out"), chunk), limit, 0);
        }
    }
}

#[test]
fn the_ids_of_an_archive_were_in_memory_four_times() {
    let folder = Folder::new();
    let lines = (0..50_000).map(|at| record(&format!("{at:02000}"), &format!("note {at}")));
    let input = folder.add("in.jsonl", lines.collect::<String>());
    let build = |name: &str| {
        let mut command = lookalike("archive");
        command.arg("build").arg(&input).args(["--level", "1"]);
        command.args(["--block", "1M", "-o"]);
        command.arg(folder.path(name));
        command
    };
    limited(build("little.lka"), 280, 0);
    build("much.lka").succeed();
    let [little, much] =
        ["little.lka", "much.lka"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(little == much);
}

#[test]
fn a_small_job_was_refused_because_of_many_threads() {
    let folder = Folder::new();
    let input = notes(&folder, 100, 6);
    let limits = ["--threads", "64", "--memory", "512M"];
    let named = |command: &str, output: &str| {
        let mut command = lookalike(command);
        command.arg(&input).arg("-o").arg(folder.path(output));
        command.args(limits);
        command
    };
    let mut archive = lookalike("archive");
    archive.arg("build").arg(&input).args(limits);
    archive.arg("-o").arg(folder.path("a.lka"));
    let mut collection = lookalike("collection");
    collection.arg("build").arg(folder.path("seen")).arg(&input);
    collection.args(limits);
    for command in [
        named("dedup", "out"),
        named("pairs", "pairs.jsonl"),
        named("terms", "t.terms"),
        named("overlap", "atlas"),
        named("fingerprint", "f.lkfp"),
        named("extract", "texts.jsonl"),
        archive,
        collection,
    ] {
        let told = "512 MiB has room for 37 threads, not for 64: 37 are used";
        { command }.succeed().says(&[told]);
    }
    let run = Results::read(&folder.path("out")).run;
    assert_eq!(run["limits"]["threads"], 37);
}

#[test]
fn a_refused_build_left_its_folder_without_a_word() {
    let folder = Folder::new();
    let input = raw(&folder, "codes.u64", 1_000_000, 5);
    let (output, left) = (folder.path("index"), folder.path("index.building"));
    let build = |flags: &[&str]| {
        let mut command = lookalike("index");
        command.arg("build").arg(&input).args(flags).arg("-o");
        command.arg(&output).arg("-q");
        command
    };
    build(&["--memory", "41M"]).fail(1).says(&[
        "takes at least",
        "index.building",
        "--resume continues",
    ]);
    assert!(left.join("codes").exists());
    build(&["--memory", "41M", "--resume"])
        .fail(1)
        .says(&["index.building", "--resume continues"]);
    build(&["--memory", "100M", "--resume"]).succeed();
    assert!(output.exists() && !left.exists());
    // These builds leave nothing to resume.
    let sketches = raw(&folder, "codes.u64x6", 6_000, 6);
    let build = |flags: &[&str]| {
        let mut command = lookalike("index");
        command.arg("build").arg(&sketches).args(flags);
        command.arg("-o").arg(folder.path("sketches"));
        command
    };
    build(&["--equal", "7"]).fail(2).says(&["more than the 6"]);
    assert!(!folder.path("sketches.building").exists());
    let short = build(&["--equal", "2", "--memory", "16M"]).fail(1);
    assert!(!short.err.contains("--resume"), "{}", short.err);
    assert!(!folder.path("sketches.building").exists());
}

/// Number of records of [`sharing`].
const SHARING: usize = 30_000;

/// Returns records in which most pairs of adjacent words are shared by two or more. Some records resemble an earlier one.
fn sharing() -> String {
    const VOCABULARY: usize = 1560;
    let mut numbers = Numbers(7);
    let mut texts: Vec<Vec<usize>> = Vec::new();
    for at in 0..SHARING {
        let mut words: Vec<usize> = match at % 5 {
            4 => texts[numbers.below(at)].clone(),
            _ => (0..150).map(|_| numbers.below(VOCABULARY)).collect(),
        };
        for _ in 0..numbers.below(40) {
            let place = numbers.below(words.len());
            words[place] = numbers.below(VOCABULARY);
        }
        texts.push(words);
    }
    let names: Vec<String> = (0..VOCABULARY).map(|word| format!(" w{word}")).collect();
    let mut lines = String::new();
    for (at, words) in texts.iter().enumerate() {
        lines += &format!("{{\"id\":\"n{at}\",\"text\":\"");
        words.iter().for_each(|&word| lines += &names[word]);
        lines += "\"}\n";
    }
    lines
}

/// Records of which some resemble others, and what `dedup` decides about them when all groups fit in memory.
struct Ample {
    records: String,
    peak: u64,
    decisions: [Vec<u8>; 3],
    run: Value,
}

impl Ample {
    fn get() -> &'static Self {
        static AMPLE: OnceLock<Ample> = OnceLock::new();
        AMPLE.get_or_init(|| {
            let (folder, records) = (Folder::new(), sharing());
            let (input, out) = (folder.add("in.jsonl", &records), folder.path("out"));
            let mut command = sharing_job("dedup", &input, &out);
            let (_, peak) = measured(command.args(["--memory", "1G", "--threads", "2"]), 0);
            let run = Results::read(&out).run;
            Self {
                records,
                peak,
                decisions: decisions(&out),
                run,
            }
        })
    }

    fn write(&self, folder: &Folder) -> PathBuf {
        folder.add("sharing.jsonl", &self.records)
    }

    /// Checks that a job has the same kept and removed records and the same clusters.
    #[track_caller]
    fn has_decisions_of(&self, out: &Path) {
        assert!(decisions(out) == self.decisions, "{}", out.display());
        let run = Results::read(out).run;
        assert_eq!(run["comparisons"], self.run["comparisons"]);
    }
}

fn decisions(out: &Path) -> [Vec<u8>; 3] {
    ["kept.jsonl", "removed.jsonl", "clusters.jsonl"].map(|file| fs::read(out.join(file)).unwrap())
}

/// Returns a job on such records: a record's groups take some 800 bytes and its tables 100.
fn sharing_job(subcommand: &str, input: &Path, out: &Path) -> Command {
    let mut command = lookalike(subcommand);
    command.arg(input).args(["-q", "--shingle", "words:2"]);
    command.args(["--threshold", "0.4", "-o"]).arg(out);
    command
}

#[test]
fn groups_that_do_not_fit_in_memory_were_refused() {
    let (folder, ample) = (Folder::new(), Ample::get());
    let input = ample.write(&folder);
    let peak = ample.peak / MIB;
    assert!(peak > 80, "{peak} MiB are no large groups");
    let [_, removed, _] = &ample.decisions;
    let removed = removed.split(|&byte| byte == b'\n').count();
    assert!(removed > 3_000, "{removed}");
    for (limit, threads) in [(60, "2"), (56, "1")] {
        let out = folder.path(limit.to_string());
        let mut command = sharing_job("dedup", &input, &out);
        command.args(["--memory", &format!("{limit}M"), "--threads", threads]);
        let (_, most) = measured(&mut command, 0);
        assert!(
            most <= limit * MIB + FREED_LATE,
            "{} of {limit} MiB",
            most / MIB
        );
        ample.has_decisions_of(&out);
    }
}

#[test]
fn a_job_whose_groups_are_on_disk_goes_on_after_a_kill() {
    let (folder, ample) = (Folder::new(), Ample::get());
    let input = ample.write(&folder);
    let out = folder.path("killed");
    let job = |memory: &str| {
        let mut command = sharing_job("dedup", &input, &out);
        command.args(["--memory", memory, "--threads", "2"]);
        command.args(["--checkpoint", "1M"]);
        command
    };
    let log = out.join(".lookalike/compared.bin");
    let mut child = job("60M").spawn().unwrap();
    while fs::metadata(&log).map_or(0, |log| log.len()) < 2 << 10 {
        assert!(child.try_wait().unwrap().is_none(), "it was not killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.join("run.json").exists());
    job("62M").arg("--resume").succeed();
    ample.has_decisions_of(&out);
    assert_eq!(Results::read(&out).run["resumed"], true);
}

/// The job stores 38 MB on the disk while it reads, and the same again for its groups.
#[test]
fn a_job_whose_groups_fill_the_disk_goes_on_with_more_room() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 52) else {
        return;
    };
    let ample = Ample::get();
    let (input, out) = (ample.write(&folder), folder.path("few"));
    let job = || {
        let mut command = sharing_job("dedup", &input, &out);
        command.args(["--memory", "60M", "--threads", "2"]);
        command.args(["--checkpoint", "1M", "--resume", "--tmp"]);
        command.arg(disk.path());
        command
    };
    let log = out.join(".lookalike/scanned.bin");
    let mut logged = Vec::new();
    for megabytes in [52, 60] {
        disk.grow(megabytes);
        let full = job().fail(1);
        full.says(&["No space left on device", "--tmp", "--resume continues"]);
        logged.push(fs::metadata(&log).unwrap().len());
    }
    // The resumed job had nothing left to read, so it only added a mark to the log.
    assert!(logged[0].abs_diff(logged[1]) < 1 << 10, "{logged:?}");
    disk.grow(400);
    job().succeed();
    ample.has_decisions_of(&out);
    assert_eq!(Results::read(&out).run["resumed"], true);
}

#[test]
fn pairs_of_groups_that_do_not_fit_in_memory_are_those_of_groups_that_do() {
    let folder = Folder::new();
    let input = Ample::get().write(&folder);
    let job = |name: &str| sharing_job("pairs", &input, &folder.path(name));
    job("ample").args(["--memory", "1G"]).succeed();
    let mut few = job("few");
    let (_, most) = measured(few.args(["--memory", "60M", "--threads", "2"]), 0);
    assert!(most <= 66 * MIB + FREED_LATE, "{} MiB", most / MIB);
    let [few, ample] = ["few", "ample"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(ample.len() > 200_000 && few == ample);
}

/// Regression test: a line of all documents makes a row for every pair of them, and the rows of a hundred units for every thread were in memory at
/// once.
#[test]
fn rows_of_a_chunk_that_all_have_took_several_times_the_limit() {
    let folder = Folder::new();
    let lines = (0..2_000).map(|at| record(&format!("d{at}"), &format!("own {at}\nlicence line")));
    let input = folder.add("in.jsonl", lines.collect::<String>());
    let mut command = lookalike("overlap");
    command.arg(&input).args(["--chunk", "lines:1", "-q", "-o"]);
    command.arg(folder.path("out"));
    limited(command, 48, 0);
    let pairs = fs::read_to_string(folder.path("out/pairs.jsonl")).unwrap();
    assert_eq!(pairs.lines().count(), 2_000 * 1_999 / 2);
}

/// Regression test: texts and rows were limited, but sketches were not.
#[test]
fn sketches_that_are_longer_than_their_texts_took_several_times_the_limit() {
    let folder = Folder::new();
    let lines = (0..1_000).map(|at| record(&at.to_string(), &format!("a{at} b c")));
    let input = folder.add("in.jsonl", lines.collect::<String>());
    for name in ["s.lkfp", "s.parquet"] {
        let mut command = lookalike("fingerprint");
        command
            .arg(&input)
            .args(["--sketch", "minhash:20000", "-q", "-o"]);
        command.arg(folder.path(name));
        limited(command, 64, 0);
    }
}

#[test]
fn chunks_of_a_list_took_memory_that_no_limit_counted() {
    let folder = Folder::new();
    let mut numbers = Numbers(5);
    let lines = (0..2_000).map(|at| record(&at.to_string(), &numbers.words(180, 1 << 30)));
    let input = folder.add("in.jsonl", lines.collect::<String>());
    // Some documents are listed again.
    let ids = (0..2_000).chain(0..500).map(|at| format!("{at}\n"));
    let list = folder.add("list.txt", ids.collect::<String>());
    keeps_its_word(&[50], || {
        let mut command = lookalike("overlap");
        command.arg(&input).arg("--rerank").arg(&list);
        command.args(["--chunk", "chars:9:sliding"]);
        command
    });
}
