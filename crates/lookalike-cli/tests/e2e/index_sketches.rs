//! `index` of super-shingles and minima: compared with joins of the same files, and invalid uses that are refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Finish, Folder, STORY, corpus, examples, json_lines, lookalike, path};

/// A stored document, a query, and the number of places in which they differ.
type NearPair = (String, String, u64);

fn index(subcommand: &str) -> Command {
    let mut command = lookalike("index");
    command.arg(subcommand);
    command
}

fn sketch(input: &Path, sketch: &str, output: &Path) {
    let mut command = lookalike("fingerprint");
    command.arg(input).args(["--sketch", sketch, "-q", "-o"]);
    command.arg(output).succeed();
}

fn built(inputs: &[&Path], equal: &str, output: &Path, flags: &[&str]) {
    let mut command = index("build");
    command.args(inputs).args(["--equal", equal, "-q", "-o"]);
    command.arg(output).args(flags).succeed();
}

fn join(f: &[&Path], q: &Path, equal: &str) -> Vec<u8> {
    let mut command = lookalike("join");
    command.args(f).arg("--queries").arg(q);
    command.args(["--equal", equal, "-q"]).succeed().out
}

fn pairs(lines: &[Value], f: &str, q: &str) -> BTreeSet<NearPair> {
    let id = |line: &Value, side: &str| line[side].as_str().unwrap().to_owned();
    let pair = |line: &Value| (id(line, f), id(line, q), line["distance"].as_u64().unwrap());
    lines.iter().map(pair).collect()
}

fn found(indexes: &[&Path], queries: &Path, flags: &[&str]) -> BTreeSet<NearPair> {
    let mut command = index("search");
    command.args(indexes).arg(queries).args(flags);
    let lines = command.succeed().lines();
    let found = pairs(&lines, "id", "query");
    assert_eq!(found.len(), lines.len(), "each pair once");
    found
}

/// Writes the sketches of the example articles to two files that overlap, and to one file of all.
fn articles(folder: &Folder, shape: &str) -> [PathBuf; 3] {
    let all = fs::read_to_string(examples().join("articles.jsonl")).unwrap();
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let parts = [&lines[..18], &lines[14..], &lines[..]].map(|lines| lines.concat());
    let names = ["monday", "tuesday", "all"];
    let mut files = names.iter().zip(parts).map(|(name, part)| {
        let text = folder.add(format!("{name}.jsonl"), part);
        let file = folder.path(format!("{name}.lkfp"));
        sketch(&text, shape, &file);
        file
    });
    std::array::from_fn(|_| files.next().unwrap())
}

#[test]
fn a_search_finds_the_pairs_of_the_join_of_the_same_files() {
    for (shape, equal, more) in [
        ("super-shingle:6x14", "2", "4"),
        ("minhash:128", "0.8", "0.95"),
        ("minhash:9", "1", "9"),
    ] {
        let folder = Folder::new();
        let [monday, tuesday, all] = articles(&folder, shape);
        let file = |name: &str| folder.path(name);
        built(&[&all], equal, &file("all.lkix"), &[]);
        let joined = join(&[&all], &tuesday, equal);
        let wanted = pairs(&json_lines(&joined), "f", "q");
        let near = wanted.iter().filter(|(.., apart)| *apart > 0);
        assert!(near.count() > 3, "{shape}: {wanted:?}");
        assert_eq!(found(&[&file("all.lkix")], &tuesday, &[]), wanted);
        let narrow = pairs(&json_lines(&join(&[&all], &tuesday, more)), "f", "q");
        let flags = ["--equal", more, "--in-memory", "--skip-check"];
        assert_eq!(found(&[&file("all.lkix")], &tuesday, &flags), narrow);
        // The index is the same however it is built from parts.
        let whole = fs::read(file("all.lkix")).unwrap();
        built(&[&monday], equal, &file("monday.lkix"), &["--threads", "1"]);
        built(&[&tuesday], equal, &file("tuesday.lkix"), &[]);
        fs::copy(file("monday.lkix"), file("grown.lkix")).unwrap();
        index("extend")
            .args([&file("grown.lkix"), &tuesday])
            .args(["-q", "--memory", "48M"])
            .succeed();
        index("merge")
            .args([&file("tuesday.lkix"), &file("monday.lkix")])
            .args(["-q", "-o", path(&file("merged.lkix"))])
            .succeed();
        built(
            &[&tuesday, &file("monday.lkix")],
            equal,
            &file("mixed.lkix"),
            &[],
        );
        let both = fs::read(file("grown.lkix")).unwrap();
        for name in ["merged.lkix", "mixed.lkix"] {
            assert!(fs::read(file(name)).unwrap() == both, "{name}");
        }
        let count = |name: &str| index("info").arg(file(name)).arg("--json").succeed().json();
        // Four articles are in both parts, and their sketches are stored once.
        let read = |name: &str| count(name)["documents"].as_u64().unwrap();
        assert_eq!(
            read("grown.lkix"),
            read("monday.lkix") + read("tuesday.lkix")
        );
        assert!(read("grown.lkix") > read("all.lkix"));
        assert_eq!(
            count("grown.lkix")["sketches"],
            count("all.lkix")["sketches"]
        );
        assert_eq!(whole.len(), both.len());
        let parts = [&*file("monday.lkix"), &file("tuesday.lkix")];
        assert_eq!(found(&parts, &tuesday, &[]), wanted);
        // Indexes can be the collection F of a join.
        assert!(join(&[&file("all.lkix")], &tuesday, equal) == joined);
        assert!(join(&parts, &tuesday, equal) == joined);
        let alone = |input: &Path| {
            let mut command = lookalike("join");
            command
                .arg(input)
                .args(["--equal", equal, "-q"])
                .succeed()
                .out
        };
        assert!(alone(&file("all.lkix")) == alone(&all));
        let mut shards = BTreeSet::new();
        for shard in ["1/3", "2/3", "3/3"] {
            let mut command = lookalike("join");
            command.args([&file("all.lkix"), &tuesday]);
            let part = command.args(["--equal", equal, "--shard", shard, "-q"]);
            for pair in pairs(&part.succeed().lines(), "f", "q") {
                assert!(shards.insert(pair), "in two shards");
            }
        }
        assert_eq!(shards, wanted);
    }
}

#[test]
fn the_index_of_a_corpus_finds_what_a_join_finds() {
    let Some(news) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    for (shape, equal) in [("super-shingle:6x14", "2"), ("minhash:40", "0.7")] {
        let folder = Folder::new();
        let (file, lkix) = (folder.path("news.lkfp"), folder.path("news.lkix"));
        sketch(&news, shape, &file);
        built(&[&file], equal, &lkix, &["--memory", "48M"]);
        let joined = join(&[&file], &file, equal);
        let wanted = pairs(&json_lines(&joined), "f", "q");
        assert!(wanted.len() > 10_000);
        assert_eq!(found(&[&lkix], &file, &[]), wanted);
        assert!(join(&[&lkix], &file, equal) == joined);
    }
}

#[test]
fn sketches_without_ids_are_called_by_their_digits() {
    let folder = Folder::new();
    let [_, _, all] = articles(&folder, "super-shingle:3x2");
    let raw = folder.path("all.u64x3");
    sketch(&folder.path("all.jsonl"), "super-shingle:3x2", &raw);
    let file = |name: &str| folder.path(name);
    built(&[&raw], "2", &file("raw.lkix"), &[]);
    built(&[&all], "2", &file("bare.lkix"), &["--no-ids"]);
    assert_eq!(
        found(&[&file("bare.lkix")], &all, &[]),
        found(&[&file("raw.lkix")], &all, &[])
    );
    let joined = join(&[&raw], &all, "2");
    let wanted = pairs(&json_lines(&joined), "f", "q");
    assert_eq!(found(&[&file("raw.lkix")], &all, &[]), wanted);
    assert!(join(&[&file("raw.lkix")], &all, "2") == joined);
    // A query may be a sketch in hexadecimal digits. Its answers are ordered by distance and id.
    let (digits, _, _) = wanted.first().unwrap();
    let lines = index("search")
        .args([path(&file("raw.lkix")), digits])
        .succeed()
        .lines();
    assert_eq!(
        (&lines[0]["id"], &lines[0]["query"]),
        (&digits[..].into(), &digits[..].into())
    );
    let distances: Vec<u64> = lines
        .iter()
        .map(|line| line["distance"].as_u64().unwrap())
        .collect();
    assert!(distances[0] == 0 && distances.is_sorted());
    // An index without ids can be extended by sketches without ids, but not by sketches with ids.
    index("extend")
        .args([&file("bare.lkix"), &raw])
        .arg("-q")
        .succeed();
    let count = |name: &str| index("info").arg(file(name)).arg("--json").succeed().json();
    let (bare, raw) = (count("bare.lkix"), count("raw.lkix"));
    assert_eq!(
        bare["documents"].as_u64(),
        raw["documents"].as_u64().map(|all| 2 * all)
    );
    assert_eq!(
        (&bare["ids"], &bare["sketches"]),
        (&false.into(), &raw["sketches"])
    );
    built(&[&all], "2", &file("named.lkix"), &[]);
    index("merge")
        .args([&file("named.lkix"), &file("bare.lkix")])
        .args(["-o", path(&file("x.lkix"))])
        .fail(2)
        .says(&["named.lkix has ids", "bare.lkix has none"]);
}

#[test]
fn info_tells_bands_and_repeated_sketches() {
    let folder = Folder::new();
    let pages: Vec<(String, &str)> = (0..9).map(|at| (format!("page-{at}"), STORY)).collect();
    let mut pages: Vec<(&str, &str)> = pages.iter().map(|(id, text)| (&**id, *text)).collect();
    pages.push((
        "other",
        "something else altogether, and not a word of the story",
    ));
    let (input, file) = (folder.records("in.jsonl", &pages), folder.path("s.lkfp"));
    sketch(&input, "super-shingle:6x14", &file);
    let (lkix, page) = (folder.path("s.lkix"), folder.path("page.html"));
    built(&[&file], "2", &lkix, &[]);
    let mut command = index("info");
    command
        .arg(&lkix)
        .args(["--verify", "--json", "--page"])
        .arg(&page);
    let info = command.succeed().json();
    assert_eq!(
        (&info["documents"], &info["sketches"]),
        (&10.into(), &2.into())
    );
    assert_eq!(
        (&info["equal"]["least"], &info["bands"]),
        (&2.into(), &5.into())
    );
    assert_eq!(
        (&info["verified"], &info["ids"]),
        (&true.into(), &true.into())
    );
    let distribution = &info["distribution"];
    assert_eq!(distribution["bands"].as_array().unwrap().len(), 5);
    let repeated = &distribution["repeated"][0];
    assert_eq!(
        (&repeated["copies"], &repeated["ids"][0]),
        (&9.into(), &"page-0".into())
    );
    assert_eq!(repeated["sketch"].as_str().unwrap().len(), 96);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("Bands") && page.contains("<bdi>page-0</bdi>") && !page.contains("http:")
    );
    let text = index("info").arg(&lkix).arg("--analyse").succeed();
    let text = text.text();
    for words in [
        "10 sketches of 6 super-shingles, 2 of them different, 8 repeat another",
        "at least 2 equal: 5 bands, with ids",
        "9 times",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    let mut build = index("build");
    build
        .arg(&file)
        .args(["--equal", "2", "--json", "-o"])
        .arg(folder.path("t.lkix"));
    let told = build.succeed().json();
    assert_eq!(
        (&told["sketches"], &told["distinct"]),
        (&10.into(), &2.into())
    );
    assert_eq!(told["equal"]["of"], "6 super-shingles");
}

#[test]
fn what_an_index_of_sketches_cannot_do_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let [_, tuesday, all] = articles(&folder, "super-shingle:6x14");
    let file = |name: &str| folder.path(name);
    let text = folder.path("all.jsonl");
    sketch(&text, "minhash:16", &file("minima.jsonl"));
    sketch(&text, "super-shingle:6x7", &file("scheme.lkfp"));
    sketch(&text, "simhash:64", &file("codes.lkfp"));
    built(&[&all], "3", &file("s.lkix"), &[]);
    let codes = file("codes.lkix");
    index("build")
        .arg(file("codes.lkfp"))
        .arg("-qo")
        .arg(&codes)
        .succeed();
    let refuse = |command: &mut Command, status: i32, words: &[&str]| {
        command.fail(status).says(words);
    };
    let search = |flags: &[&str]| {
        let mut command = index("search");
        command.arg(file("s.lkix")).args(flags);
        command
    };
    let [queries, minima, scheme] =
        [&tuesday, &file("minima.jsonl"), &file("scheme.lkfp")].map(|file| path(file).to_owned());
    refuse(
        &mut search(&[&queries, "--equal", "2"]),
        2,
        &["at least 3", "--equal 2"],
    );
    refuse(
        &mut search(&[&queries, "--equal", "7"]),
        2,
        &["more than the 6"],
    );
    refuse(
        &mut search(&[&queries, "--distance", "3"]),
        2,
        &["use --equal instead"],
    );
    refuse(
        &mut search(&[&minima]),
        1,
        &["6 super-shingles", "16 minima", "--sketch"],
    );
    refuse(
        &mut search(&[&scheme]),
        1,
        &["cannot be compared", "same options"],
    );
    refuse(
        &mut search(&[path(&file("codes.lkfp"))]),
        1,
        &["holds fingerprints"],
    );
    refuse(
        &mut search(&["0123456789abcdef"]),
        2,
        &["16 hexadecimal digits", "give 96"],
    );
    refuse(&mut search(&[path(&file("s.lkix"))]), 2, &["none a query"]);
    refuse(&mut search(&[path(&codes), &queries]), 1, &["codes.lkix"]);
    let mut of_codes = index("search");
    of_codes.arg(&codes).args([&queries, "--equal", "2"]);
    refuse(&mut of_codes, 2, &["use --distance instead"]);
    let build = |flags: &[&str]| {
        let mut command = index("build");
        command.args(flags).args(["-o", path(&file("x.lkix"))]);
        command
    };
    refuse(
        &mut build(&[path(&all)]),
        1,
        &["holds 6 super-shingles", "--equal"],
    );
    refuse(
        &mut build(&[path(&file("codes.lkfp")), "--equal", "2"]),
        1,
        &["holds fingerprints"],
    );
    refuse(
        &mut build(&[path(&all), "--equal", "2", "--distance", "3"]),
        2,
        &["cannot be used with"],
    );
    refuse(
        &mut build(&[path(&all), "--equal", "2", "--layout", "dense"]),
        2,
        &["cannot be used with"],
    );
    refuse(
        &mut build(&[path(&all), "--equal", "7"]),
        2,
        &["more than the 6"],
    );
    refuse(
        &mut build(&[path(&all), &minima, "--equal", "2"]),
        1,
        &["16 minima"],
    );
    refuse(
        &mut build(&[path(&codes), "--equal", "2"]),
        1,
        &["codes.lkix is an index"],
    );
    refuse(
        &mut build(&[path(&file("s.lkix"))]),
        1,
        &["s.lkix is an index", "--equal"],
    );
    refuse(
        &mut build(&[path(&all), "--equal", "2", "--memory", "16M"]),
        1,
        &["takes at least", "MiB"],
    );
    let before = fs::read(file("s.lkix")).unwrap();
    refuse(
        index("extend").args([&file("s.lkix"), &file("minima.jsonl")]),
        1,
        &["16 minima"],
    );
    assert!(fs::read(file("s.lkix")).unwrap() == before);
    let mut merge = index("merge");
    merge
        .args([&codes, &file("s.lkix")])
        .args(["-o", path(&file("x.lkix"))]);
    refuse(
        &mut merge,
        2,
        &[
            "s.lkix is an index of sketches",
            "codes.lkix one of fingerprints",
        ],
    );
    let mut joined = lookalike("join");
    joined
        .args([&file("s.lkix"), &tuesday])
        .args(["--equal", "2"]);
    refuse(&mut joined, 2, &["at least 3 equal places", "--equal 2"]);
    refuse(
        lookalike("join").args([&file("s.lkix"), &tuesday]),
        1,
        &["holds 6 super-shingles", "--equal"],
    );
    let mut cluster = lookalike("cluster");
    cluster
        .arg(file("s.lkix"))
        .args(["--equal", "3", "-o"])
        .arg(file("out"));
    refuse(&mut cluster, 1, &["s.lkix is an index"]);
    let bytes = fs::read(file("s.lkix")).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 30) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let damaged = folder.add("flipped.lkix", flipped);
        let mut command = index("search");
        refuse(command.arg(&damaged).arg(&queries), 1, &["flipped.lkix"]);
        let cut = folder.add("cut.lkix", &bytes[..at]);
        let mut info = index("info");
        refuse(info.arg(cut), 1, &["cut.lkix"]);
    }
    assert!(!file("x.lkix").exists());
}

#[test]
fn several_indexes_of_fingerprints_are_searched_as_one() {
    let folder = Folder::new();
    let [monday, tuesday, all] = articles(&folder, "simhash:64");
    let file = |name: &str| folder.path(name);
    for (input, name) in [(&monday, "m.lkix"), (&tuesday, "t.lkix"), (&all, "a.lkix")] {
        let mut build = index("build");
        build
            .arg(input)
            .args(["--distance", "5", "-qo", path(&file(name))])
            .succeed();
    }
    let search = |indexes: &[&str]| {
        let mut command = index("search");
        command
            .args(indexes.iter().map(|name| file(name)))
            .arg(&all);
        let lines: BTreeSet<String> = command
            .succeed()
            .text()
            .lines()
            .map(str::to_owned)
            .collect();
        lines
    };
    assert_eq!(search(&["m.lkix", "t.lkix"]), search(&["a.lkix"]));
}
