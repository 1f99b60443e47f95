//! `join`: compared with comparing all pairs, in every format, and with invalid input.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookalike_hamming::{ArchiveWriter, FingerprintWriter, GapCounts, SketchWords};
use serde_json::Value;

use crate::hostile_memory::measured;
use crate::support::{Finish, Folder, STORY, lookalike};

const SCHEME: u64 = 0x1234_5678_9abc_def0;

/// Returns pseudo-random codes; every third is near an earlier one, and some are equal.
fn codes(count: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 27
    };
    let mut all: Vec<u64> = (0..40).map(|i| (i + 1) * 0x0123_4567_89ab_cdef).collect();
    while all.len() < count {
        let near = all[next() as usize % all.len()];
        let flips = (0..next() % 6).fold(0, |flips, _| flips | 1 << (next() % 64));
        all.push(if next() % 3 == 0 {
            near ^ flips
        } else {
            next()
        });
    }
    all.truncate(count);
    all
}

fn raw(codes: &[u64]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_le_bytes()).collect()
}

fn json_lines(codes: &[u64], id: impl Fn(usize) -> String) -> String {
    let line = |(at, code): (usize, &u64)| {
        format!(
            "{{\"id\":\"{}\",\"fingerprint\":\"{code:016x}\"}}\n",
            id(at)
        )
    };
    codes.iter().enumerate().map(line).collect()
}

fn file(codes: &[u64], scheme: u64, with_ids: bool) -> Vec<u8> {
    let writer = if with_ids {
        FingerprintWriter::with_ids(Vec::new(), scheme)
    } else {
        FingerprintWriter::new(Vec::new(), scheme, SketchWords::FINGERPRINT, false)
    };
    let mut writer = writer.unwrap();
    for (at, &code) in codes.iter().enumerate() {
        writer.push(code, at as u64 * 10).unwrap();
    }
    writer.finish().unwrap()
}

fn archive(codes: &[u64]) -> Vec<u8> {
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    let mut gaps = GapCounts::default();
    sorted.iter().for_each(|&code| gaps.observe(code));
    let mut writer = ArchiveWriter::new(Vec::new(), SCHEME, &gaps, 128).unwrap();
    sorted.iter().for_each(|&code| writer.push(code).unwrap());
    writer.finish().unwrap()
}

/// Returns the lines that must be written; `f_name` and `q_name` give the name of each fingerprint.
fn expected(
    f: &[u64],
    q: &[u64],
    radius: u32,
    f_name: impl Fn(usize) -> Value,
    q_name: impl Fn(usize) -> Value,
) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (i, a) in f.iter().enumerate() {
        for (j, b) in q.iter().enumerate() {
            let distance = (a ^ b).count_ones();
            if distance <= radius {
                let (f, q) = (f_name(i), q_name(j));
                lines.insert(format!("{{\"f\":{f},\"q\":{q},\"distance\":{distance}}}"));
            }
        }
    }
    lines
}

fn hex(codes: &[u64]) -> impl Fn(usize) -> Value + '_ {
    |at| format!("{:016x}", codes[at]).into()
}

#[track_caller]
fn join(f: &Path, q: &Path, flags: &[&str]) -> String {
    let mut command = lookalike("join");
    let finished = command.arg(f).arg(q).args(flags).succeed();
    finished.text().to_owned()
}

/// Returns two collections of moderate size.
fn two() -> (Vec<u64>, Vec<u64>) {
    let mut all = codes(3_000, 1);
    let f = all.split_off(400);
    (f, all)
}

#[test]
fn every_format_on_either_side_gives_the_pairs_of_a_linear_scan() {
    let (f, q) = two();
    let folder = Folder::new();
    let text = |at: usize| format!("doc \"{at}\"");
    let quoted = |at: usize| text(at).replace('"', "\\\"");
    let plain = json_lines(&f, quoted);
    let packed = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    let by_text = |at: usize| Value::from(text(at));
    let by_number = |at: usize| Value::from(at as u64 * 10);
    type Naming<'a> = Box<dyn Fn(usize) -> Value + 'a>;
    let sides: Vec<(PathBuf, Naming<'_>)> = vec![
        (folder.add("f.u64", raw(&f)), Box::new(hex(&f))),
        (
            folder.add("f.bin", file(&f, SCHEME, false)),
            Box::new(hex(&f)),
        ),
        (
            folder.add("f.lkfp", file(&f, SCHEME, true)),
            Box::new(by_number),
        ),
        (folder.add("f.lkar", archive(&f)), Box::new(hex(&f))),
        (folder.add("f.jsonl", plain), Box::new(by_text)),
        (folder.add("f.jsonl.zst", packed), Box::new(by_text)),
    ];
    let q_raw = folder.add("q.u64", raw(&q));
    let q_lines = folder.add("q.jsonl", json_lines(&q, quoted));
    let q_file = folder.add("q.lkfp", file(&q, SCHEME, true));
    for (path, name) in &sides {
        let lines = |out: &str| out.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let once = |out: &str| assert_eq!(lines(out).len(), out.lines().count());
        let out = join(path, &q_raw, &[]);
        assert_eq!(lines(&out), expected(&f, &q, 3, name, hex(&q)), "{path:?}");
        once(&out);
        let out = join(path, &q_lines, &["--distance", "5"]);
        assert_eq!(lines(&out), expected(&f, &q, 5, name, by_text), "{path:?}");
        once(&out);
        let out = join(path, &q_file, &["--distance", "0"]);
        assert_eq!(
            lines(&out),
            expected(&f, &q, 0, name, by_number),
            "{path:?}"
        );
    }
}

#[test]
fn lines_are_sorted_and_the_same_for_any_threads_memory_and_order() {
    let (mut f, mut q) = two();
    let folder = Folder::new();
    let (f_path, q_path) = (folder.add("f.u64", raw(&f)), folder.add("q.u64", raw(&q)));
    let out = join(&f_path, &q_path, &["--distance", "6", "--threads", "1"]);
    assert!(out.lines().is_sorted() && out.lines().count() > 50);
    for flags in [["--threads", "3"], ["--memory", "40M"]] {
        assert_eq!(
            join(
                &f_path,
                &q_path,
                &[&["--distance", "6"], &flags[..]].concat()
            ),
            out
        );
    }
    f.reverse();
    q.rotate_left(123);
    let (f_path, q_path) = (folder.add("f.u64", raw(&f)), folder.add("q.u64", raw(&q)));
    assert_eq!(join(&f_path, &q_path, &["--distance", "6"]), out);
}

#[test]
fn many_pairs_are_sorted_on_disk() {
    let folder = Folder::new();
    let f = vec![7_u64; 1 << 12];
    let ids: Vec<u64> = vec![7 ^ 1; 100];
    let f_path = folder.add("f.lkfp", file(&f, SCHEME, true));
    let q_path = folder.add("q.jsonl", json_lines(&ids, |at| format!("q{at:03}")));
    let output = folder.path("pairs.jsonl");
    let mut command = lookalike("join");
    command.arg(&f_path).arg(&q_path).arg("-o").arg(&output);
    let finished = command
        .args(["--memory", "32M", "--threads", "1", "--json"])
        .succeed();
    let summary = finished.json();
    assert!(finished.err.is_empty());
    assert_eq!(summary["pairs"], 409_600);
    assert!(summary["temporary_bytes"].as_u64().unwrap() > 0);
    let lines = fs::read_to_string(output).unwrap();
    let pair = |at: usize| {
        let (f, q) = (at / 100 * 10, at % 100);
        format!("{{\"f\":{f},\"q\":\"q{q:03}\",\"distance\":1}}")
    };
    assert!(lines.lines().map(str::to_owned).eq((0..409_600).map(pair)));
}

#[test]
fn what_fingerprint_prints_is_what_join_reads() {
    let folder = Folder::new();
    let other = STORY.replace("forty", "fifty");
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", &other), ("c", "...")]);
    let printed = lookalike("fingerprint").arg(&input).succeed();
    let lines = folder.add("fp.jsonl", &printed.out);
    let mut command = lookalike("join");
    command.arg("-").arg(&lines).args(["--distance", "16"]);
    let finished = command.finish_with(&printed.out);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    finished.says(&["2 fingerprints", "1 null: texts without features"]);
    let pairs = finished.lines();
    assert_eq!(
        pairs[0],
        serde_json::json!({"f": "a", "q": "a", "distance": 0})
    );
    assert!(pairs.iter().all(|pair| pair["f"] != "c"));
}

#[test]
fn empty_collections_have_no_pairs() {
    let folder = Folder::new();
    let some = folder.add("some.u64", raw(&[1, 2, 3]));
    for (name, bytes) in [
        ("none.u64", Vec::new()),
        ("none.jsonl", Vec::new()),
        ("none.lkfp", file(&[], SCHEME, false)),
        ("none.lkar", archive(&[])),
    ] {
        let none = folder.add(name, bytes);
        assert_eq!(join(&none, &some, &[]), "");
        assert_eq!(join(&some, &none, &[]), "");
        assert_eq!(join(&none, &none, &[]), "");
    }
}

#[test]
fn what_cannot_be_joined_is_refused_with_what_to_do() {
    let (f, q) = two();
    let folder = Folder::new();
    let good = folder.add("good.lkfp", file(&f, SCHEME, false));
    let refuse = |f: &Path, q: &Path, flags: &[&str], status: i32, words: &[&str]| {
        let mut command = lookalike("join");
        let finished = command.arg(f).arg(q).args(flags).fail(status);
        finished.says(words);
        assert!(finished.out.is_empty());
    };
    let other = folder.add("other.lkfp", file(&q, 7, false));
    let both = [
        "other.lkfp",
        "good.lkfp",
        "123456789abcdef0",
        "0000000000000007",
        "same options",
    ];
    refuse(&good, &other, &[], 1, &both);
    refuse(
        &good,
        &good,
        &["--distance", "17"],
        2,
        &["distance 17", "16"],
    );
    let dash = Path::new("-");
    let once = ["standard input is named more than once"];
    refuse(dash, dash, &[], 2, &once);
    let queries = good.to_str().unwrap();
    refuse(dash, dash, &["--queries", queries], 2, &once);
    let cut = folder.add("cut.lkfp", &file(&f, SCHEME, false)[..5_000]);
    refuse(&cut, &good, &[], 1, &["cut.lkfp", "cut off at byte 5000"]);
    refuse(&good, &cut, &[], 1, &["cut.lkfp", "cut off at byte 5000"]);
    let odd = folder.add("odd.u64", &raw(&f)[..5_003]);
    refuse(&odd, &good, &[], 1, &["odd.u64", "5003"]);
    let mut flipped = archive(&f);
    flipped[1_000] ^= 4;
    let flipped = folder.add("flipped.lkar", flipped);
    refuse(
        &flipped,
        &good,
        &[],
        1,
        &["flipped.lkar", "damaged at byte"],
    );
    let text = folder.add("text.txt", "no fingerprints here\nnor here\n");
    refuse(
        &text,
        &good,
        &[],
        1,
        &["text.txt", "line 1", "lookalike fingerprint"],
    );
    refuse(
        &folder.path("absent"),
        &good,
        &[],
        1,
        &["absent", "check the path"],
    );
    let large = folder.add("large.u64", raw(&codes(600_000, 9)));
    refuse(
        &good,
        &large,
        &["--memory", "24M", "--threads", "1"],
        1,
        &["--memory", "split Q", "lookalike merge"],
    );
}

#[test]
fn a_merge_of_hundreds_of_lists_holds_little_of_each() {
    let folder = Folder::new();
    let long = "x".repeat(1 << 10);
    let line = |at: usize| format!("{{\"a\":\"{at:03}{long}\",\"b\":\"z\",\"distance\":1}}\n");
    let list: String = (0..300).map(line).collect();
    let lists: Vec<_> = (0..300)
        .map(|at| folder.add(format!("{at}.jsonl"), &list))
        .collect();
    let merged = folder.path("merged.jsonl");
    let most = |lists: &[_]| {
        let mut command = lookalike("merge");
        command.args(lists).arg("-o").arg(&merged).arg("--quiet");
        let most = measured(&mut command, 0).1;
        assert!(fs::read_to_string(&merged).unwrap() == list);
        fs::remove_file(&merged).unwrap();
        most
    };
    let more = most(&lists) - most(&lists[..1]);
    // 64 KiB of each, and its next line.
    assert!(more < 32 << 20, "{more}");
}

#[test]
fn the_memory_that_a_refusal_names_is_enough() {
    let folder = Folder::new();
    let some = folder.add("some.u64", raw(&[1, 2, 3]));
    let large = folder.add("large.u64", raw(&codes(600_000, 9)));
    let mut command = lookalike("join");
    let flags = ["--memory", "24M", "--threads", "1"];
    let refused = command.arg(&some).arg(&large).args(flags).fail(1);
    let (_, after) = refused.err.split_once("--memory to about ").unwrap();
    let (least, _) = after.split_once(' ').unwrap();
    let mut command = lookalike("join");
    let flags = ["--memory", least, "--threads", "1"];
    command.arg(&some).arg(&large).args(flags).succeed();
}

#[test]
fn a_bad_line_is_counted_and_harms_no_other() {
    let folder = Folder::new();
    let lines = "{\"id\":\"a\",\"fingerprint\":\"0000000000000001\"}\n\n{\"id\":\"b\"}\n\
                 {\"id\":\"c\",\"fingerprint\":\"0000000000000003\"}";
    let f = folder.add("f.jsonl", lines);
    let q = folder.add("q.u64", raw(&[1]));
    let mut command = lookalike("join");
    let finished = command.arg(&f).arg(&q).lose();
    assert_eq!(finished.lines().len(), 2);
    finished.says(&[
        "1 malformed",
        "f.jsonl, line 3",
        "no field named fingerprint",
    ]);
    let mut command = lookalike("join");
    let finished = command.arg(&f).arg(&q).arg("--strict").fail(1);
    finished.says(&["f.jsonl, line 3", "without --strict"]);
}

/// Returns the lines of a self-join, in which equal codes have the first of their names.
fn expected_alone(all: &[u64], radius: u32, name: impl Fn(usize) -> Value) -> Vec<String> {
    let first: Vec<usize> = (all.iter())
        .map(|code| all.iter().position(|other| other == code).unwrap())
        .collect();
    let mut lines = Vec::new();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate().skip(i + 1) {
            let distance = (a ^ b).count_ones();
            let told = first[i] == i && (first[j] == j || distance == 0);
            if distance <= radius && told {
                let (a, b) = (name(i), name(j));
                lines.push(format!("{{\"a\":{a},\"b\":{b},\"distance\":{distance}}}"));
            }
        }
    }
    lines
}

#[test]
fn one_collection_alone_gives_all_its_pairs() {
    let all = codes(2_500, 5);
    let folder = Folder::new();
    let numbers = folder.add("all.lkfp", file(&all, SCHEME, true));
    let texts = folder.add("all.jsonl", json_lines(&all, |at| format!("{at:04}")));
    for radius in ["0", "3", "7"] {
        let run = |path: &Path, flags: &[&str]| {
            let mut command = lookalike("join");
            command.arg(path).args(["--distance", radius]).args(flags);
            let finished = command.succeed();
            finished
                .text()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let bits = radius.parse().unwrap();
        let expected = expected_alone(&all, bits, |at| Value::from(at as u64 * 10));
        assert!(radius == "0" || expected.len() > 100);
        assert_eq!(run(&numbers, &[]), expected);
        assert_eq!(
            run(&numbers, &["--threads", "3", "--memory", "40M"]),
            expected
        );
        let expected = expected_alone(&all, bits, |at| format!("{at:04}").into());
        assert_eq!(run(&texts, &["--threads", "1"]), expected);
    }
}

#[test]
fn many_equal_fingerprints_are_a_star_and_without_ids_one() {
    let folder = Folder::new();
    let mut all = vec![9_u64; 30_000];
    all.push(8);
    let ids = folder.add("ids.lkfp", file(&all, SCHEME, true));
    let mut command = lookalike("join");
    let pairs = command.arg(&ids).succeed().lines();
    assert_eq!(pairs.len(), 30_000);
    assert!(pairs.iter().all(|pair| pair["a"] == 0));
    assert_eq!(
        pairs[29_999],
        serde_json::json!({"a": 0, "b": 300_000, "distance": 1})
    );
    let bare = folder.add("bare.u64", raw(&all));
    let mut command = lookalike("join");
    let line = "{\"a\":\"0000000000000008\",\"b\":\"0000000000000009\",\"distance\":1}\n";
    assert_eq!(command.arg(&bare).succeed().text(), line);
    let mut command = lookalike("join");
    let large = folder.add("large.u64", raw(&codes(900_000, 2)));
    let refused = command
        .arg(&large)
        .args(["--memory", "24M", "--threads", "1"])
        .fail(1);
    refused.says(&["large.u64", "raise --memory", "--shard"]);
}

/// Returns the output of a command, which must succeed.
fn printed(command: &str, arguments: &[&Path], flags: &[&str]) -> String {
    let mut command = lookalike(command);
    command.args(arguments).args(flags);
    command.succeed().text().to_owned()
}

#[test]
fn shards_merged_have_the_bytes_of_one_run_also_where_fingerprints_are_equal() {
    let (mut f, q) = two();
    f.extend_from_within(..300);
    let folder = Folder::new();
    let (first, second) = f.split_at(1_000);
    folder.add("f1.lkfp", file(first, SCHEME, true));
    folder.add("f2.jsonl", json_lines(second, |at| format!("t{at}")));
    let queries = folder.add("q.u64", raw(&q));
    let glob = folder.path("f*");
    for sides in [vec![glob.as_path()], vec![&glob, &queries]] {
        let flags = ["--distance", "4"];
        let whole = printed("join", &sides, &flags);
        assert!(whole.lines().count() > 300);
        let lists: Vec<PathBuf> = (1..=3)
            .map(|number| {
                let shard = format!("{number}/3");
                let list = folder.path(format!("list{number}.jsonl.zst"));
                let output = list.to_str().unwrap();
                let flags = [&flags[..], &["--shard", &shard, "-o", output]].concat();
                printed("join", &sides, &flags);
                list
            })
            .collect();
        let lists: Vec<&Path> = lists.iter().map(PathBuf::as_path).collect();
        assert!(printed("merge", &lists, &[]) == whole);
        assert!(printed("merge", &[&folder.path("list*")], &[]) == whole);
        assert!(printed("merge", &lists[..2], &[]).len() < whole.len());
    }
}

#[test]
fn many_files_on_each_side_are_one_collection() {
    let (f, q) = two();
    let folder = Folder::new();
    let (first, second) = f.split_at(700);
    let f1 = folder.add("part1.u64", raw(first));
    let f2 = folder.add("part2.lkfp", file(second, SCHEME, false));
    let (left, right) = q.split_at(150);
    let q1 = folder.add("q1.u64", raw(left));
    let q2 = folder.add("q2.lkar", archive(right));
    let whole = join(
        &folder.add("f.u64", raw(&f)),
        &folder.add("q.u64", raw(&q)),
        &[],
    );
    let [q1, q2] = [&q1, &q2].map(|path| path.to_str().unwrap());
    let queries = ["--queries", q1, "--queries", q2];
    assert!(printed("join", &[&f1, &f2], &queries) == whole);
    assert!(printed("join", &[&folder.path("part*")], &queries) == whole);
    let mut command = lookalike("join");
    command.arg("u64:-").arg(&f2).args(queries);
    let finished = command.finish_with(&raw(first));
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(finished.text() == whole);
    let mut command = lookalike("join");
    command
        .args([&f1, &f2])
        .arg(q1)
        .fail(2)
        .says(&["--queries"]);
    let mut command = lookalike("join");
    let none = folder.path("none*.u64");
    command
        .arg(none)
        .fail(1)
        .says(&["none*.u64", "no file matches"]);
    let mut command = lookalike("join");
    let mixed = command.arg(&f1).args(["--shard", "4/3"]).fail(2);
    mixed.says(&["4/3", "I/N"]);
}

/// Builds an index of a collection in the folder.
fn index(folder: &Folder, input: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let path = folder.path(name);
    let mut command = lookalike("index");
    command.arg("build").arg(input).arg("-o").arg(&path);
    command.args(flags).succeed();
    path
}

#[test]
fn an_indexed_collection_gives_the_pairs_of_a_linear_scan() {
    let (f, q) = two();
    let folder = Folder::new();
    let named = |at: usize| Value::from(format!("d{at}"));
    let with_ids = folder.add("f.jsonl", json_lines(&f, |at| format!("d{at}")));
    let bare = folder.add("f.u64", raw(&f));
    let queries = folder.add("q.u64", raw(&q));
    for layout in ["packed", "buckets", "dense"] {
        let flags = ["--layout", layout, "--distance", "4"];
        let ids = index(&folder, &with_ids, &format!("ids.{layout}"), &flags);
        let none = index(&folder, &bare, &format!("bare.{layout}"), &flags);
        for distance in [0, 3, 4] {
            let text = distance.to_string();
            let flags = ["--distance", text.as_str(), "--threads", "3"];
            let found = join(&ids, &queries, &flags);
            let lines: BTreeSet<String> = found.lines().map(str::to_owned).collect();
            assert_eq!(
                lines,
                expected(&f, &q, distance, named, hex(&q)),
                "{layout} {distance}"
            );
            // The output is byte for byte that of a join of the collection itself.
            assert!(found == join(&with_ids, &queries, &flags[..2]));
            assert!(join(&none, &queries, &flags) == join(&bare, &queries, &flags[..2]));
        }
    }
}

#[test]
fn an_index_is_refused_beyond_its_distance_alone_or_of_another_scheme() {
    let folder = Folder::new();
    let f = folder.add("f.lkfp", file(&codes(50, 3), SCHEME, true));
    let index = index(&folder, &f, "f.lkix", &["--distance", "2"]);
    let other = folder.add("q.lkfp", file(&codes(50, 4), 5, true));
    let mut beyond = lookalike("join");
    beyond.arg(&index).arg(&f).args(["--distance", "3"]);
    beyond
        .fail(2)
        .says(&["f.lkix", "built for distances up to 2"]);
    let mut alone = lookalike("join");
    alone
        .arg(&index)
        .args(["--distance", "2"])
        .fail(2)
        .says(&["f.lkix", "built from"]);
    let mut foreign = lookalike("join");
    foreign.arg(&index).arg(&other).args(["--distance", "2"]);
    foreign
        .fail(1)
        .says(&["f.lkix", "q.lkfp", "cannot be compared"]);
}

#[test]
fn a_limit_on_open_files_that_could_be_raised_was_not() {
    let folder = Folder::new();
    let mut merge = Command::new("sh");
    merge.args(["-c", "ulimit -Sn 16; exec \"$0\" \"$@\""]);
    merge.arg(env!("CARGO_BIN_EXE_lookalike")).arg("merge");
    for number in 0..40 {
        let line = format!("{{\"a\":\"{number:02}\",\"b\":\"x\",\"distance\":0}}\n");
        merge.arg(folder.add(format!("{number}.jsonl"), line));
    }
    assert_eq!(merge.succeed().lines().len(), 40);
}
