//! Fingerprints of 32, 64 and 128 bits in every format and command that accepts them, and the widths that are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Finish, Folder, examples, json_lines, lookalike};

/// Widths, each with a distance within which the examples have pairs.
const WIDTHS: [(u32, u32); 3] = [(32, 2), (64, 4), (128, 9)];

/// Ids and fingerprints of lines.
type Documents = Vec<(String, u128)>;

fn documents(lines: &[Value]) -> Documents {
    let read = |line: &Value| {
        let digits = line["fingerprint"].as_str()?;
        let value = u128::from_str_radix(digits, 16).unwrap();
        Some((line["id"].as_str()?.to_owned(), value))
    };
    lines.iter().filter_map(read).collect()
}

#[track_caller]
fn fingerprint(bits: u32, output: &Path) {
    let mut command = lookalike("fingerprint");
    command.arg(examples().join("articles.jsonl"));
    command.args(["--shingle", "words:1", "-q", "--sketch"]);
    command.arg(format!("simhash:{bits}")).arg("-o").arg(output);
    command.succeed();
}

/// Writes the fingerprints of the examples in a format.
#[track_caller]
fn made(folder: &Folder, bits: u32, ending: &str) -> PathBuf {
    let path = folder.path(format!("{bits}.{ending}"));
    fingerprint(bits, &path);
    path
}

fn with_features(lines: &str) -> String {
    let kept = lines.lines().filter(|line| !line.contains("null"));
    kept.map(|line| line.to_owned() + "\n").collect()
}

fn import(input: &Path) -> Command {
    let mut command = lookalike("fingerprint");
    command.args(["--import", "-q"]).arg(input);
    command
}

fn join(inputs: &[&Path], distance: u32) -> Command {
    let mut command = lookalike("join");
    command.args(inputs).args(["-q", "--distance"]);
    command.arg(distance.to_string());
    command
}

/// Returns the pairs in the lines of a self-join, with their distances.
fn pairs(lines: &[Value]) -> BTreeMap<(String, String), u64> {
    let name = |line: &Value, side: &str| line[side].as_str().unwrap().to_owned();
    let pair = |line: &Value| {
        let ends = (name(line, "a"), name(line, "b"));
        (ends, line["distance"].as_u64().unwrap())
    };
    lines.iter().map(pair).collect()
}

/// Returns the same pairs by comparing all documents.
fn recount(documents: &Documents, distance: u32) -> BTreeMap<(String, String), u64> {
    let mut names = BTreeMap::<u128, BTreeSet<&str>>::new();
    for (id, value) in documents {
        names.entry(*value).or_default().insert(id);
    }
    let mut pairs = BTreeMap::new();
    for (a, a_names) in &names {
        let least = a_names.first().unwrap();
        for other in a_names.iter().skip(1) {
            pairs.insert(((*least).to_owned(), (*other).to_owned()), 0);
        }
        for (b, b_names) in names.range(a..).skip(1) {
            let apart = (a ^ b).count_ones();
            let other = b_names.first().unwrap();
            if apart <= distance {
                let ends = (least.min(other).to_string(), least.max(other).to_string());
                pairs.insert(ends, apart.into());
            }
        }
    }
    pairs
}

#[test]
fn the_narrower_fingerprint_is_the_low_part_of_the_wider_in_every_format() {
    let folder = Folder::new();
    let read = |bits: u32| {
        let lines = made(&folder, bits, "jsonl");
        // Only lines and tables keep texts without features.
        let text = with_features(&fs::read_to_string(&lines).unwrap());
        let first = json_lines(text.as_bytes())[0]["fingerprint"].clone();
        assert_eq!(first.as_str().unwrap().len() as u32, bits / 4);
        for ending in ["lkfp", "parquet", "lkfp.zst", "jsonl.gz"] {
            let other = made(&folder, bits, ending);
            let imported = with_features(import(&other).succeed().text());
            assert_eq!(imported, text, "{bits} {ending}");
            let again = folder.path(format!("{bits}.{ending}.parquet"));
            import(&other).arg("-o").arg(&again).succeed();
            let imported = with_features(import(&again).succeed().text());
            assert_eq!(imported, text, "{bits} {ending}");
        }
        let documents = documents(&json_lines(text.as_bytes()));
        let raw = fs::read(made(&folder, bits, &format!("u{bits}"))).unwrap();
        let wanted = documents.iter().flat_map(|(_, value)| {
            let bytes = value.to_le_bytes();
            bytes[..bits as usize / 8].to_vec()
        });
        assert_eq!(raw, wanted.collect::<Vec<u8>>());
        documents
    };
    let [narrow, usual, wide] = [32, 64, 128].map(read);
    assert!(usual.len() > 30);
    for (wide, usual) in wide.iter().zip(&usual) {
        assert_eq!((&wide.0, wide.1 as u64), (&usual.0, usual.1 as u64));
    }
    for (usual, narrow) in usual.iter().zip(&narrow) {
        assert_eq!((&usual.0, usual.1 as u32), (&narrow.0, narrow.1 as u32));
    }
    // The high half is not a copy of the low half.
    assert!(
        wide.iter()
            .all(|(_, value)| (value >> 64) as u64 != *value as u64)
    );
}

#[test]
fn joins_of_every_width_find_the_pairs_of_all_with_all() {
    let folder = Folder::new();
    for (bits, distance) in WIDTHS {
        let lines = made(&folder, bits, "jsonl");
        let all = documents(&json_lines(&fs::read(&lines).unwrap()));
        let expected = recount(&all, distance);
        assert!(expected.len() > 5, "{bits}: {}", expected.len());
        for ending in ["jsonl", "lkfp", "parquet"] {
            let file = made(&folder, bits, ending);
            let alone = join(&[&file], distance).succeed();
            assert!(pairs(&alone.lines()) == expected, "{bits} {ending}");
            let two = join(&[&lines, &file], distance).succeed();
            // A join of two lists has each pair in both orders, and each document with itself and its equals; count one order only.
            let count = |line: &&Value| line["f"].as_str() < line["q"].as_str();
            let ordered = two.lines().iter().filter(count).count();
            let near = |(at, (_, a)): (usize, &(String, u128))| {
                let later = all[at + 1..].iter();
                later
                    .filter(|(_, b)| (a ^ b).count_ones() <= distance)
                    .count()
            };
            assert_eq!(ordered, all.iter().enumerate().map(near).sum::<usize>());
        }
        let raw = made(&folder, bits, &format!("u{bits}"));
        let bare = join(&[&raw], distance).succeed();
        let first = bare.lines()[0]["a"].as_str().unwrap().len();
        assert_eq!(first as u32, bits / 4);
        // Read the same numbers from standard input, with the width as a prefix because there is no file ending.
        let piped = join(&[Path::new(&format!("u{bits}:-"))], distance)
            .finish_with(&fs::read(&raw).unwrap());
        assert_eq!(piped.text(), bare.text(), "{}", piped.err);
        let parts = [1, 2, 3].map(|part| {
            let path = folder.path(format!("{bits}.part{part}"));
            let mut command = join(&[&lines], distance);
            command.arg("--shard").arg(format!("{part}/3"));
            command.arg("-o").arg(&path).succeed();
            path
        });
        let merged = lookalike("merge").args(&parts).arg("-q").succeed();
        assert_eq!(pairs(&merged.lines()), expected, "{bits}");
    }
}

#[test]
fn clusters_of_every_width_are_those_of_its_pairs() {
    let folder = Folder::new();
    for (bits, distance) in WIDTHS {
        let file = made(&folder, bits, "lkfp");
        let list = folder.path(format!("{bits}.pairs"));
        join(&[&file], distance).arg("-o").arg(&list).succeed();
        let cluster = |name: &str, flags: &[&str]| {
            let output = folder.path(format!("{bits}-{name}"));
            let mut command = lookalike("cluster");
            command.arg(&file).arg("-q").args(flags);
            command.arg("-o").arg(&output).succeed();
            ["kept.jsonl", "removed.jsonl", "clusters.jsonl"]
                .map(|name| fs::read_to_string(output.join(name)).unwrap())
        };
        let distance = distance.to_string();
        let own = cluster("own", &["--distance", &distance]);
        assert!(own[1].lines().count() > 5, "{}", own[1]);
        let list = list.to_str().unwrap();
        assert_eq!(cluster("listed", &["--pairs", list]), own, "{bits}");
        // Pairs that do not match the fingerprints are detected.
        let wrong = fs::read_to_string(list).unwrap();
        let wrong = wrong.replacen("\"distance\":0", "\"distance\":1", 1);
        let wrong = folder.add(format!("{bits}.wrong"), wrong);
        let mut command = lookalike("cluster");
        command.arg(&file).arg("--pairs").arg(wrong).arg("-o");
        command.arg(folder.path("wrong"));
        command.fail(1);
    }
}

#[test]
fn indexes_of_every_width_find_what_a_join_does_and_tell_their_width() {
    let folder = Folder::new();
    for (bits, distance) in WIDTHS {
        let file = made(&folder, bits, "lkfp");
        let lines = made(&folder, bits, "jsonl");
        let all = documents(&json_lines(&fs::read(&lines).unwrap()));
        let most = distance.to_string();
        for layout in ["packed", "dense", "buckets"] {
            let index = folder.path(format!("{bits}.{layout}.lkix"));
            let mut build = lookalike("index");
            build
                .arg("build")
                .arg(&file)
                .args(["-q", "--distance", &most]);
            build.args(["--layout", layout, "-o"]).arg(&index).succeed();
            let told = lookalike("index")
                .arg("info")
                .arg(&index)
                .arg("--verify")
                .succeed();
            assert!(
                told.text().contains(&format!("of {bits} bits")),
                "{}",
                told.text()
            );
            let joined = join(&[&index, &lines], distance).succeed();
            let expected = join(&[&file, &lines], distance).succeed();
            assert_eq!(joined.text(), expected.text(), "{bits} {layout}");
            let (id, value) = &all[0];
            let digits = format!("{value:0width$x}", width = bits as usize / 4);
            let found = lookalike("index")
                .arg("search")
                .arg(&index)
                .arg(&digits)
                .succeed();
            let ids: BTreeSet<_> = found
                .lines()
                .iter()
                .map(|line| line["id"].to_string())
                .collect();
            let near = all
                .iter()
                .filter(|(_, other)| (value ^ other).count_ones() <= distance);
            let near: BTreeSet<_> = near
                .map(|(id, _)| Value::from(id.as_str()).to_string())
                .collect();
            assert_eq!(ids, near, "{id}");
            let info = lookalike("index")
                .args(["info", "--json"])
                .arg(&index)
                .succeed();
            assert_eq!(info.json()["bits"], bits);
            // An extended index keeps its width.
            let more = folder.path(format!("{bits}.{layout}.more"));
            fs::copy(&index, &more).unwrap();
            lookalike("index")
                .arg("extend")
                .arg(&more)
                .arg(&lines)
                .arg("-q")
                .succeed();
            let told = lookalike("index").arg("info").arg(&more).succeed();
            assert!(
                told.text().contains(&format!("of {bits} bits")),
                "{}",
                told.text()
            );
        }
    }
}

#[test]
fn fingerprints_of_two_widths_are_never_compared() {
    let folder = Folder::new();
    let [narrow, usual, wide] = [32, 64, 128].map(|bits| made(&folder, bits, "jsonl"));
    for (a, b) in [(&narrow, &usual), (&usual, &wide), (&wide, &narrow)] {
        let told = join(&[a, b], 3).fail(1);
        told.says(&["-bit fingerprints", "cannot be compared", "--sketch"]);
        let both = folder.path("both.lkix");
        let mut build = lookalike("index");
        build.arg("build").args([a, b]).arg("-o").arg(&both);
        build.fail(1).says(&["cannot be compared"]);
        assert!(!both.exists());
        let mut cluster = lookalike("cluster");
        cluster.args([a, b]).arg("-o").arg(folder.path("both"));
        cluster.fail(1).says(&["cannot be compared"]);
    }
    let index = folder.path("wide.lkix");
    lookalike("index")
        .arg("build")
        .arg(&wide)
        .arg("-q")
        .arg("-o")
        .arg(&index)
        .succeed();
    let told = join(&[&index, &usual], 3).fail(1);
    told.says(&["128-bit", "64-bit"]);
    let mut search = lookalike("index");
    search.arg("search").arg(&index).arg("0123456789abcdef");
    search.fail(2).says(&["32 hexadecimal digits"]);
    let mut search = lookalike("index");
    search.arg("search").arg(&index).arg(&narrow);
    search.fail(1).says(&["32 bits"]);
    let mut design = lookalike("index");
    design
        .arg("build")
        .arg(&wide)
        .args(["--design", "no-such-design", "-o"]);
    design.arg(folder.path("other.lkix")).fail(2);
}

#[test]
fn a_format_that_does_not_hold_the_width_is_refused_by_name() {
    let folder = Folder::new();
    for (bits, name) in [(128, "out.lkar"), (32, "out.u64"), (64, "out.u32")] {
        let mut command = lookalike("fingerprint");
        command.arg(examples().join("articles.jsonl"));
        command.arg("--sketch").arg(format!("simhash:{bits}"));
        command.arg("-o").arg(folder.path(name));
        let told = command.fail(2);
        told.says(&[name, &format!(".u{bits}"), ".lkfp"]);
        assert!(!folder.path(name).exists());
    }
    // Weights are available for fingerprints of any width.
    let mut command = lookalike("fingerprint");
    command.arg(examples().join("articles.jsonl"));
    command.args(["--sketch", "simhash:128", "--weight", "tf", "-q"]);
    command.succeed();
}
