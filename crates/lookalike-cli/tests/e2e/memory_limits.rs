//! `--memory` of jobs on collections: it is kept to the end, and a refusal names a limit that is enough.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::hostile_memory::{measured, watched};
use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, SmallDisk, lookalike, record};

const MIB: u64 = 1 << 20;

/// Maximum memory that the code of a build with assertions takes beyond that of a release: 25 to 32 MiB of the file are resident instead of 16,
/// depending on how the system shares its pages.
const CHECKED_CODE: u64 = 16 * MIB;

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
    let enough = mebibytes * MIB + CHECKED_CODE;
    assert!(most <= enough, "{} of {mebibytes} MiB", most / MIB);
    said
}

/// Checks that a job refused under each of these limits asks for a limit, and succeeds within it.
#[track_caller]
fn keeps_its_word(limits: &[u64], command: impl Fn() -> Command) {
    let tried = |mebibytes: u64| {
        let mut command = command();
        command.args(["--threads", "2", "--memory", &format!("{mebibytes}M")]);
        watched(command.stdout(Stdio::null()))
    };
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
        let enough = least * MIB + CHECKED_CODE;
        assert!(most.all <= enough, "{} of {least} MiB", most.all / MIB);
    }
}

fn raw(folder: &Folder, name: &str, count: usize, seed: u64) -> PathBuf {
    let mut state = seed;
    let numbers = (0..count).flat_map(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 29).to_le_bytes()
    });
    folder.add(name, numbers.collect::<Vec<u8>>())
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
    // Features that only one record has go to disk and are not part of the table.
    for limit in [44, 60] {
        let memory = format!("{limit}M");
        let mut little = terms(&["--threads", "2", "--memory", &memory]);
        let (said, most) = measured(little.stdout(Stdio::null()), 0);
        assert!(said.contains("on disk"), "{said}");
        let enough = limit * MIB + CHECKED_CODE;
        assert!(most <= enough, "{} of {limit} MiB", most / MIB);
        let little = table();
        terms(&[]).succeed();
        assert!(table() == little);
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
    let most_bytes = least * MIB + CHECKED_CODE;
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
    let folder = Folder::new();
    let page = |at: usize| {
        let link = format!("<a href=/{}>page</a>", at * 7 % 200_000);
        serde_json::json!({"url": format!("http://a.example/{at}"), "html": link}).to_string()
            + "\n"
    };
    let input = folder.add("crawl.jsonl", (0..200_000).map(page).collect::<String>());
    let links = || {
        let mut command = lookalike("links");
        command.arg(&input).arg("-o");
        command.arg(folder.path("out.jsonl"));
        command
    };
    keeps_its_word(&[1, 25], links);
    // The table of addresses takes 4 MiB.
    let mut command = links();
    command.args(["--memory", "40M", "--threads", "2"]);
    command.succeed().says(&["of tables on disk"]);
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

/// Writes records in which most pairs of adjacent words are shared by four. Some records resemble an earlier one.
fn sharing(folder: &Folder, count: usize) -> PathBuf {
    let mut numbers = Numbers(7);
    let mut texts: Vec<Vec<usize>> = Vec::new();
    for at in 0..count {
        let mut words: Vec<usize> = match at % 5 {
            4 => texts[numbers.below(at)].clone(),
            _ => (0..150).map(|_| numbers.below(1200)).collect(),
        };
        for _ in 0..numbers.below(40) {
            let place = numbers.below(words.len());
            words[place] = numbers.below(1200);
        }
        texts.push(words);
    }
    let lines = texts.iter().enumerate().map(|(at, words)| {
        let words: Vec<String> = words.iter().map(|word| format!("w{word}")).collect();
        record(&format!("n{at}"), &words.join(" "))
    });
    folder.add("sharing.jsonl", lines.collect::<String>())
}

/// Returns a job on such records: a record's groups take some 800 bytes and its tables 100.
fn sharing_job(subcommand: &str, input: &Path, out: &Path) -> Command {
    let mut command = lookalike(subcommand);
    command.arg(input).args(["-q", "--shingle", "words:2"]);
    command.args(["--threshold", "0.4", "-o"]).arg(out);
    command
}

/// Checks that two jobs have the same kept and removed records and the same clusters.
#[track_caller]
fn assert_same_decisions(folder: &Folder, one: &str, other: &str) {
    for file in ["kept.jsonl", "removed.jsonl", "clusters.jsonl"] {
        let [found, expected] =
            [one, other].map(|name| fs::read(folder.path(name).join(file)).unwrap());
        assert!(found == expected, "{one}: {file}");
    }
}

#[test]
fn groups_that_do_not_fit_in_memory_were_refused() {
    let folder = Folder::new();
    let input = sharing(&folder, 40_000);
    let job = |name: &str| sharing_job("dedup", &input, &folder.path(name));
    let mut command = job("ample");
    let (_, ample) = measured(command.args(["--memory", "1G", "--threads", "2"]), 0);
    assert!(ample > 90 * MIB, "{} MiB are no large groups", ample / MIB);
    let all = Results::read(&folder.path("ample"));
    assert!(all.removals().len() > 3_000, "{}", all.removals().len());
    for (limit, threads) in [(60, "2"), (56, "1")] {
        let name = format!("{limit}");
        let mut command = job(&name);
        command.args(["--memory", &format!("{limit}M"), "--threads", threads]);
        let (_, most) = measured(&mut command, 0);
        assert!(
            most <= limit * MIB + CHECKED_CODE,
            "{} of {limit} MiB",
            most / MIB
        );
        assert_same_decisions(&folder, &name, "ample");
        let found = Results::read(&folder.path(&name));
        assert_eq!(found.run["comparisons"], all.run["comparisons"]);
    }
}

#[test]
fn a_job_whose_groups_are_on_disk_goes_on_after_a_kill() {
    let folder = Folder::new();
    let input = sharing(&folder, 40_000);
    let job = |name: &str, memory: &str| {
        let mut command = sharing_job("dedup", &input, &folder.path(name));
        command.args(["--memory", memory, "--threads", "2"]);
        command.args(["--checkpoint", "1M"]);
        command
    };
    job("ample", "1G").succeed();
    let out = folder.path("killed");
    let log = out.join(".lookalike/compared.bin");
    let mut child = job("killed", "60M").spawn().unwrap();
    while fs::metadata(&log).map_or(0, |log| log.len()) < 2 << 10 {
        assert!(child.try_wait().unwrap().is_none(), "it was not killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.join("run.json").exists());
    job("killed", "62M").arg("--resume").succeed();
    assert_same_decisions(&folder, "killed", "ample");
    let [found, expected] = ["killed", "ample"].map(|name| Results::read(&folder.path(name)).run);
    assert_eq!(found["resumed"], true);
    assert_eq!(found["comparisons"], expected["comparisons"]);
}

/// The job stores 50 MB on the disk while it reads, and the same again for its groups.
#[test]
fn a_job_whose_groups_fill_the_disk_goes_on_with_more_room() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 70) else {
        return;
    };
    let input = sharing(&folder, 40_000);
    let job = |name: &str, memory: &str| {
        let mut command = sharing_job("dedup", &input, &folder.path(name));
        command.args(["--memory", memory, "--threads", "2"]);
        command.args(["--checkpoint", "1M", "--resume", "--tmp"]);
        command.arg(disk.path());
        command
    };
    let log = folder.path("few/.lookalike/scanned.bin");
    let mut logged = Vec::new();
    for megabytes in [70, 80] {
        disk.grow(megabytes);
        let full = job("few", "60M").fail(1);
        full.says(&["No space left on device", "--tmp", "--resume continues"]);
        logged.push(fs::metadata(&log).unwrap().len());
    }
    // The resumed job had nothing left to read, so it only added a mark to the log.
    assert!(logged[0].abs_diff(logged[1]) < 1 << 10, "{logged:?}");
    disk.grow(400);
    job("few", "60M").succeed();
    job("ample", "1G").succeed();
    assert_same_decisions(&folder, "few", "ample");
    assert_eq!(Results::read(&folder.path("few")).run["resumed"], true);
}

#[test]
fn pairs_of_groups_that_do_not_fit_in_memory_are_those_of_groups_that_do() {
    let folder = Folder::new();
    let input = sharing(&folder, 40_000);
    let job = |name: &str| sharing_job("pairs", &input, &folder.path(name));
    job("ample").args(["--memory", "1G"]).succeed();
    let mut few = job("few");
    let (_, most) = measured(few.args(["--memory", "60M", "--threads", "2"]), 0);
    assert!(most <= 66 * MIB + CHECKED_CODE, "{} MiB", most / MIB);
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
