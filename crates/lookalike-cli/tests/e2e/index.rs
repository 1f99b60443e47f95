//! `index`: building, searching and examining indexes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::hostile_files::wait_for;
use crate::support::{Finish, Folder, Numbers, interrupt, lookalike};

fn index(subcommand: &str) -> Command {
    let mut command = lookalike("index");
    command.arg(subcommand);
    command
}

/// Returns fingerprints in families: a third random, a third near those, a third equal to them.
fn codes(count: usize) -> Vec<u64> {
    let mut numbers = Numbers(7);
    let mut random = || (0..4).fold(0_u64, |word, _| word << 16 | numbers.below(1 << 16) as u64);
    let base: Vec<u64> = (0..count).map(|_| random()).collect();
    let near = |(at, &code): (usize, &u64)| match at % 3 {
        0 => code,
        1 => base[at - 1] ^ 1 << (code % 64) ^ 1 << (code / 64 % 64),
        _ => base[at - 2],
    };
    base.iter().enumerate().map(near).collect()
}

fn json_lines(folder: &Folder, name: &str, codes: &[u64], from: usize) -> PathBuf {
    let line = |(at, code): (usize, &u64)| {
        format!(
            "{{\"id\":\"page-{}\",\"fingerprint\":\"{code:016x}\"}}\n",
            from + at
        )
    };
    folder.add(name, codes.iter().enumerate().map(line).collect::<String>())
}

fn built(folder: &Folder, inputs: &[&Path], name: &str, flags: &[&str]) -> PathBuf {
    let path = folder.path(name);
    index("build")
        .args(inputs)
        .arg("-o")
        .arg(&path)
        .args(flags)
        .succeed();
    path
}

/// Returns the expected output of a search, by comparing all fingerprints with all queries.
fn expected(codes: &[u64], queries: &[u64], distance: u32) -> Vec<(String, u32, String, String)> {
    let mut all = Vec::new();
    for query in queries {
        let near = codes
            .iter()
            .enumerate()
            .map(|(at, code)| (at, code, (code ^ query).count_ones()));
        let mut rows: Vec<_> = near
            .filter(|&(_, _, apart)| apart <= distance)
            .map(|(at, code, apart)| {
                (
                    format!("{query:016x}"),
                    apart,
                    format!("{code:016x}"),
                    format!("page-{at}"),
                )
            })
            .collect();
        rows.sort();
        all.extend(rows);
    }
    all
}

fn rows(lines: &[Value]) -> Vec<(String, u32, String, String)> {
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let row = |line: &Value| {
        let distance = line["distance"].as_u64().unwrap() as u32;
        (
            text(line, "query"),
            distance,
            text(line, "fingerprint"),
            text(line, "id"),
        )
    };
    lines.iter().map(row).collect()
}

#[test]
fn a_search_finds_what_a_scan_finds_in_the_documented_order() {
    let folder = Folder::new();
    let codes = codes(900);
    let input = json_lines(&folder, "in.jsonl", &codes, 0);
    let queries: Vec<u64> = codes.iter().step_by(31).map(|code| code ^ 0x10).collect();
    for (name, flags) in [
        ("two", &["--distance", "3"][..]),
        ("buckets", &["--distance", "3", "--layout", "buckets"]),
        ("eight", &["--distance", "3", "--tables", "8"]),
        ("named", &["--distance", "3", "--design", "nested-4-4"]),
        ("scan", &["--distance", "3", "--design", "scan"]),
        (
            "groups",
            &[
                "--distance",
                "5",
                "--design",
                "2-of-3x3",
                "--layout",
                "dense",
            ],
        ),
        ("far", &["--distance", "8"]),
    ] {
        let path = built(&folder, &[&input], name, flags);
        for distance in [0, 2, 3] {
            let found = index("search")
                .arg(&path)
                .args(queries.iter().map(|query| format!("{query:016x}")))
                .args(["--distance", &distance.to_string()])
                .succeed();
            assert_eq!(
                rows(&found.lines()),
                expected(&codes, &queries, distance),
                "{name} {distance}"
            );
        }
        let in_memory = index("search")
            .arg(&path)
            .arg(format!("{:016x}", codes[4]))
            .arg("--in-memory")
            .succeed();
        assert_eq!(
            in_memory.out,
            index("search")
                .arg(&path)
                .arg(format!("{:016x}", codes[4]))
                .succeed()
                .out
        );
    }
}

#[test]
fn queries_come_from_files_and_standard_input_with_their_ids() {
    let folder = Folder::new();
    let codes = codes(300);
    let input = json_lines(&folder, "in.jsonl", &codes, 0);
    let path = built(&folder, &[&input], "index", &[]);
    let queries = json_lines(&folder, "queries.jsonl", &codes[..40], 5_000);
    let from_file = index("search").arg(&path).arg(&queries).succeed();
    let lines = from_file.lines();
    assert_eq!(lines[0]["query"], "page-5000");
    let hits = lines.iter().filter(|line| line["distance"] == 0).count();
    assert!(hits >= 40);
    let piped = index("search")
        .arg(&path)
        .arg("-")
        .finish_with(&fs::read(&queries).unwrap());
    assert!(
        piped.status == Some(0) && piped.out == from_file.out,
        "{}",
        piped.err
    );
    let summary = index("search")
        .arg(&path)
        .arg(&queries)
        .arg("--json")
        .succeed();
    let summary: Value = serde_json::from_str(summary.err.trim()).unwrap();
    assert_eq!(
        (&summary["queries"], &summary["queries_with_matches"]),
        (&40.into(), &40.into())
    );
}

#[test]
fn raw_numbers_have_no_ids_and_the_order_of_inputs_leaves_no_trace() {
    let folder = Folder::new();
    let codes = codes(600);
    let raw = |codes: &[u64]| {
        codes
            .iter()
            .flat_map(|code| code.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let one = folder.add("one.u64", raw(&codes[..200]));
    let two = folder.add("two.u64", raw(&codes[200..]));
    let forward = built(&folder, &[&one, &two], "forward", &[]);
    let backward = built(&folder, &[&two, &one], "backward", &["--memory", "64M"]);
    assert!(fs::read(&forward).unwrap() == fs::read(&backward).unwrap());
    let found = index("search")
        .arg(&forward)
        .arg(format!("{:016x}", codes[0]))
        .succeed();
    assert!(found.lines().iter().all(|line| line.get("id").is_none()));
    let lines = json_lines(&folder, "lines.jsonl", &codes, 0);
    let mixed = index("build")
        .args([&one, &lines])
        .arg("-o")
        .arg(folder.path("mixed"))
        .fail(2);
    mixed.says(&["one.u64", "lines.jsonl", "--no-ids"]);
    assert!(!folder.path("mixed").exists());
    let without = built(&folder, &[&lines], "without", &["--no-ids"]);
    assert!(fs::read(without).unwrap() == fs::read(forward).unwrap());
}

/// Stops a build from standard input at its last step, after everything was built, because a folder has the name of the output.
fn stop_at_the_end(mut build: Command, input: &Path, output: &Path) {
    let mut child = build
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&output.with_extension("building"), &mut child);
    fs::create_dir_all(output.join("occupied")).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&fs::read(input).unwrap()).unwrap();
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    fs::remove_dir_all(output).unwrap();
}

#[test]
fn a_build_that_was_killed_goes_on() {
    let folder = Folder::new();
    let codes = codes(3_000);
    let input = json_lines(&folder, "in.jsonl", &codes, 0);
    let whole = built(&folder, &[&input], "whole", &[]);
    let path = folder.path("index");
    let build = || {
        let mut command = index("build");
        command.args(["-", "-o"]).arg(&path);
        command
    };
    stop_at_the_end(build(), &input, &path);
    assert!(folder.path("index.building/progress").exists());
    let part = folder.path("index.building/part");
    let mut bytes = fs::read(&part).unwrap();
    bytes.truncate(bytes.len() - 7);
    fs::write(&part, bytes).unwrap();
    let resumed = build().args(["--resume", "--json"]).succeed();
    assert_eq!(resumed.json()["tables_resumed"], 2);
    assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap());
    assert!(!folder.path("index.building").exists());
    fs::create_dir_all(folder.path("index.building")).unwrap();
    fs::write(folder.path("index.building/progress"), "nonsense").unwrap();
    let anew = build().args(["--resume"]).fail(2);
    anew.says(&["--overwrite"]);
    fs::remove_file(&path).unwrap();
    let anew = build()
        .arg("--resume")
        .finish_with(&fs::read(&input).unwrap());
    anew.says(&["there is nothing to resume"]);
    assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap());
}

#[test]
fn a_build_that_was_to_replace_an_index_could_not_go_on() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &codes(3_000), 0);
    let whole = built(&folder, &[&input], "whole", &[]);
    let path = folder.path("index");
    let build = || {
        let mut command = index("build");
        command.args(["-", "-o"]).arg(&path);
        command
    };
    for flags in [&["--resume"][..], &["--resume", "--overwrite"]] {
        stop_at_the_end(build(), &input, &path);
        fs::write(&path, "an older index").unwrap();
        let resumed = build().args(flags).arg("--json").succeed();
        assert_ne!(resumed.json()["tables_resumed"], 0);
        assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap());
        fs::remove_file(&path).unwrap();
    }
    // A build without --resume says that it starts from the beginning.
    stop_at_the_end(build(), &input, &path);
    let left = "an interrupted job left its progress";
    let anew = build().finish_with(&fs::read(&input).unwrap());
    anew.says(&[left, "from the beginning"]);
    assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap());
}

/// Presses Ctrl-C while the input is still being read.
#[cfg(unix)]
#[test]
fn an_interrupted_build_says_what_goes_on_with_it() {
    let folder = Folder::new();
    let path = folder.path("index");
    let mut child = index("build")
        .args(["-", "--no-ids", "-o"])
        .arg(&path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&folder.path("index.building"), &mut child);
    // Keep standard input open meanwhile.
    let input = child.stdin.take();
    let (code, said) = interrupt(child);
    drop(input);
    assert_eq!(code, Some(130), "{said}");
    // The build was still reading, so there is nothing to resume, and the message says only that.
    let told = "interrupted: nothing was finished that --resume could continue from";
    assert!(said.contains(told), "{said}");
}

#[test]
fn other_settings_do_not_resume_an_interrupted_build() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &codes(100), 0);
    let path = folder.path("index");
    let build = || {
        let mut command = index("build");
        command.args(["-", "-o"]).arg(&path);
        command
    };
    stop_at_the_end(build(), &input, &path);
    let refused = build().args(["--resume", "--distance", "5"]).fail(2);
    refused.says(&[
        "index.building",
        "other inputs or settings",
        "without --resume",
    ]);
}

#[test]
fn one_of_a_kind_is_told_in_the_singular() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &[7], 0);
    let path = built(&folder, &[&input], "index", &["--distance", "0"]);
    let told = index("info").arg(path).succeed();
    for words in ["1 fingerprint of 64 bits", ": 1 table ("] {
        assert!(told.text().contains(words), "{}", told.text());
    }
}

#[test]
fn info_tells_of_duplicates_spikes_and_gaps() {
    let folder = Folder::new();
    let mut all = codes(900);
    all.extend([42; 150]);
    let distinct = all.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
    let input = json_lines(&folder, "in.jsonl", &all, 0);
    let path = built(&folder, &[&input], "index", &[]);
    let page = folder.path("page.html");
    let info = index("info")
        .arg(&path)
        .args(["--verify", "--json", "--page"])
        .arg(&page)
        .succeed()
        .json();
    assert_eq!(
        (&info["documents"], &info["fingerprints"]),
        (&1_050.into(), &distinct.into())
    );
    assert_eq!(
        (&info["verified"], &info["ids"], &info["tables"]),
        (&true.into(), &true.into(), &2.into())
    );
    let distribution = &info["distribution"];
    let spike = &distribution["spikes"][0];
    assert_eq!(
        (&spike["range"], &spike["commonest"]["copies"]),
        (&0.into(), &150.into())
    );
    assert_eq!(spike["commonest"]["fingerprint"], "000000000000002a");
    assert_eq!(spike["commonest"]["ids"][0], "page-1000");
    let sum = |field: &str| {
        distribution[field]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("ranges"), sum("leading_gaps")), (1_050, distinct - 1));
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<polyline") && page.contains("000000000000002a") && !page.contains("http:")
    );
    // Spikes have a range, and repeated fingerprints do not. Each id is on a line of its own.
    assert_eq!(page.matches(">range</th>").count(), 1);
    assert!(
        page.contains("<bdi>page-1000</bdi><br><bdi>page-"),
        "{page}"
    );
    let text = index("info").arg(&path).arg("--analyse").succeed();
    let counted = format!(
        "1,050 fingerprints of 64 bits, {distinct} of them different, {} repeat",
        1_050 - distinct
    );
    for words in [counted.as_str(), "range   0", "150 times"] {
        assert!(
            text.text().contains(words),
            "{words:?} is not in {}",
            text.text()
        );
    }
}

#[test]
fn damage_is_named_with_file_and_place() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &codes(200), 0);
    let path = built(&folder, &[&input], "index.lkix", &[]);
    let bytes = fs::read(&path).unwrap();
    let mut numbers = Numbers(3);
    for _ in 0..40 {
        let mut damaged = bytes.clone();
        let at = numbers.below(bytes.len());
        damaged[at] ^= 1 << numbers.below(8);
        let file = folder.add("damaged.lkix", damaged);
        let refused = index("info").arg(file).arg("--verify").fail(1);
        refused.says(&["damaged.lkix"]);
        let placed = refused.err.contains("at byte") || at < 8;
        assert!(placed, "byte {at}: {}", refused.err);
        let cut = folder.add("cut.lkix", &bytes[..at]);
        index("info").arg(cut).fail(1).says(&["cut.lkix", "byte"]);
    }
    let mut other = bytes.clone();
    other[4] = 9;
    let file = folder.add("newer.lkix", other);
    index("search")
        .arg(file)
        .arg("0000000000000000")
        .fail(1)
        .says(&["version 9", "reads version 2"]);
}

#[test]
fn wrong_use_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &codes(50), 0);
    let path = built(&folder, &[&input], "index", &[]);
    index("build")
        .arg(&input)
        .arg("-o")
        .arg(&path)
        .fail(2)
        .says(&["--overwrite"]);
    index("build")
        .arg(&input)
        .arg("-o")
        .arg(&path)
        .arg("--overwrite")
        .succeed();
    let far = index("search")
        .arg(&path)
        .args(["0000000000000000", "--distance", "4"])
        .fail(2);
    far.says(&["up to 3", "--distance 4"]);
    // Too few digits were taken for the name of a file.
    let short = index("search").arg(&path).arg("00").fail(2);
    short.says(&["00: no file has this name", "16 hexadecimal digits"]);
    index("search")
        .arg(folder.path("none"))
        .arg("0000000000000000")
        .fail(1)
        .says(&["none", "index build"]);
    index("search")
        .arg(&input)
        .arg("0000000000000000")
        .fail(1)
        .says(&["not a fingerprint index"]);
    let small = index("build")
        .arg(&input)
        .arg("-o")
        .arg(folder.path("small"))
        .args(["--memory", "1M"])
        .fail(1);
    small.says(&["takes at least", "MiB"]);
    let empty = folder.add("empty.jsonl", "");
    let path = built(&folder, &[&empty], "empty", &[]);
    assert!(
        index("search")
            .arg(&path)
            .arg("0000000000000000")
            .succeed()
            .out
            .is_empty()
    );
    let info = index("info")
        .arg(&path)
        .args(["--verify", "--analyse"])
        .succeed();
    let first = info.text().lines().next().unwrap().to_owned();
    assert!(first.ends_with("B, every byte checked"), "{first}");
}

/// Regression test: an index of an empty file had fingerprints of 64 bits, and was said to be damaged next to others.
#[test]
fn an_empty_index_goes_with_fingerprints_of_any_width() {
    let folder = Folder::new();
    let nothing = built(
        &folder,
        &[&folder.add("empty.jsonl", "")],
        "empty.lkix",
        &[],
    );
    let line = "{\"id\":\"a\",\"fingerprint\":\"01234567\"}\n";
    let input = folder.add("a.jsonl", line);
    let full = built(&folder, &[&input], "full.lkix", &[]);
    let search = |indexes: &[&Path], query: &str| {
        let mut search = index("search");
        search.args(indexes).arg(query).succeed().text().to_owned()
    };
    let found = search(&[&full], "01234567");
    assert!(found.contains("01234567"), "{found}");
    for pair in [[&*nothing, &*full], [&*full, &*nothing]] {
        assert!(search(&pair, "01234567").contains("01234567"));
        let merged = folder.path("merged.lkix");
        let mut merge = index("merge");
        merge.args(pair).arg("-o").arg(&merged).arg("--overwrite");
        merge.succeed();
        assert_eq!(search(&[&merged], "01234567"), found);
    }
    assert_eq!(search(&[&nothing], "01234567"), "");
    assert_eq!(search(&[&nothing], "0123456789abcdef"), "");
    let mut join = lookalike("join");
    let joined = join.arg(&nothing).arg(&input).succeed();
    assert_eq!(joined.text(), "");
    let mut join = lookalike("join");
    let joined = join.arg(&nothing).args(["--queries", "-"]);
    assert_eq!(joined.finish_with(line.as_bytes()).text(), "");
    index("extend").arg(&nothing).arg(&input).succeed();
    assert_eq!(search(&[&nothing], "01234567"), found);
}

#[test]
fn a_flipped_bit_in_a_mapped_index_gives_no_wrong_answer() {
    let folder = Folder::new();
    let codes = codes(3000);
    let input = json_lines(&folder, "codes.jsonl", &codes, 0);
    for layout in ["packed", "buckets"] {
        let path = built(&folder, &[&input], "index.lkix", &["--layout", layout]);
        let queries: Vec<String> = codes
            .iter()
            .step_by(10)
            .map(|code| format!("{code:016x}"))
            .collect();
        let search = |path: &Path, flags: &[&str]| {
            index("search")
                .arg(path)
                .args(&queries)
                .args(flags)
                .finish()
        };
        let wanted = search(&path, &[]);
        assert_eq!(wanted.status, Some(0));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(search(&path, &["--skip-check"]).out, wanted.out);
        for at in (0..bytes.len()).step_by(bytes.len() / 40) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let damaged = folder.add("flipped.lkix", flipped);
            let found = search(&damaged, &[]);
            assert_eq!(found.status, Some(1), "{layout}: byte {at}");
            found.says(&["flipped.lkix"]);
        }
        fs::remove_file(path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn an_index_that_is_cut_short_while_it_is_searched_is_an_error() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let folder = Folder::new();
    let codes = codes(200_000);
    let input = json_lines(&folder, "codes.jsonl", &codes, 0);
    let path = built(&folder, &[&input], "index.lkix", &[]);
    let mut child = index("search")
        .arg(&path)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut queries = child.stdin.take().unwrap();
    let text: String = codes
        .iter()
        .cycle()
        .take(600_000)
        .map(|code| format!("{{\"fingerprint\":\"{code:016x}\"}}\n"))
        .collect();
    let (cut, go_on) = std::sync::mpsc::channel();
    let writing = std::thread::spawn(move || {
        let (first, rest) = text.split_at(text.len() / 2);
        // The process may end during this write.
        let _ = queries.write_all(first.as_bytes());
        let _ = go_on.recv();
        let _ = queries.write_all(rest.as_bytes());
    });
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(100)
        .unwrap();
    cut.send(()).unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    writing.join().unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(
        said.contains("index.lkix: the file was truncated"),
        "{said}"
    );
}

#[test]
fn an_extended_index_and_a_merged_one_are_those_of_one_build() {
    let folder = Folder::new();
    let codes = codes(900);
    let (first, second) = codes.split_at(500);
    let one = json_lines(&folder, "one.jsonl", first, 0);
    // Fingerprints of the first file again, with other ids.
    let other = json_lines(&folder, "other.jsonl", second, 500);
    let again = json_lines(&folder, "again.jsonl", &first[..40], 900);
    for (number, flags) in [
        &["--design", "nested-4-4"][..],
        &["--design", "nested-4-4", "--layout", "buckets"],
        &[
            "--design",
            "2-of-3x3",
            "--distance",
            "5",
            "--layout",
            "dense",
        ],
        &["--design", "scan"],
    ]
    .into_iter()
    .enumerate()
    {
        let name = |what: &str| format!("{what}-{number}.lkix");
        let whole = built(&folder, &[&one, &other, &again], &name("whole"), flags);
        let whole = fs::read(whole).unwrap();
        let grown = built(&folder, &[&one], &name("grown"), flags);
        index("extend").arg(&grown).arg(&other).arg("-q").succeed();
        index("extend")
            .arg(&grown)
            .arg(&again)
            .args(["-q", "--memory", "48M"])
            .succeed();
        assert!(fs::read(&grown).unwrap() == whole, "extended {flags:?}");
        let parts = [("a", &one), ("b", &other), ("c", &again)];
        let parts = parts.map(|(part, input)| built(&folder, &[input], &name(part), flags));
        let merged = folder.path(name("merged"));
        let mut merge = index("merge");
        merge
            .args(&parts[1..])
            .arg(&parts[0])
            .args(["-q", "-o"])
            .arg(&merged)
            .succeed();
        assert!(fs::read(&merged).unwrap() == whole, "merged {flags:?}");
        // A build with an index among its inputs gives the same bytes.
        let mixed = built(&folder, &[&parts[1], &again, &one], &name("mixed"), flags);
        assert!(fs::read(&mixed).unwrap() == whole, "mixed {flags:?}");
        assert!(!folder.path(name("grown.lkix.building")).exists());
    }
    // The design chosen for few fingerprints is kept, and gives the same results.
    let grown = built(&folder, &[&one], "default.lkix", &[]);
    index("extend").arg(&grown).args([&other, &again]).succeed();
    let whole = built(&folder, &[&one, &other, &again], "default-whole.lkix", &[]);
    let search = |path: &Path| {
        let queries = codes
            .iter()
            .step_by(17)
            .map(|code| format!("{:016x}", code ^ 0x10));
        index("search").arg(path).args(queries).succeed().out
    };
    assert_eq!(search(&grown), search(&whole));
    // Without ids an index does not record which fingerprints were repeated, so compare answers and `info` instead of bytes.
    let flags = &["--design", "nested-4-4", "--no-ids"][..];
    let all = [&*one, &other, &again];
    let whole = built(&folder, &all, "bare-whole.lkix", flags);
    let parts = [0, 1, 2].map(|part| {
        built(
            &folder,
            &all[part..=part],
            &format!("bare-{part}.lkix"),
            flags,
        )
    });
    let merged = folder.path("bare-merged.lkix");
    index("merge")
        .args(&parts)
        .args(["-q", "-o"])
        .arg(&merged)
        .succeed();
    index("extend")
        .arg(&parts[0])
        .args(&all[1..])
        .arg("-q")
        .succeed();
    let told = |path: &Path| {
        let told = String::from_utf8(index("info").arg(path).succeed().out).unwrap();
        // Skip the line with the name of the file.
        told.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for index in [&merged, &parts[0]] {
        assert_eq!(search(index), search(&whole));
        assert_eq!(told(index), told(&whole));
    }
}

/// The bits of the tables were chosen by the fingerprints that came first.
#[test]
fn uneven_fingerprints_in_another_order_made_another_index() {
    let folder = Folder::new();
    // Most of the upper half is constant, and more than the sample of a build in the rest.
    let uneven = |(at, code): (usize, u64)| match at % 50 {
        0 => code,
        _ => code >> 24,
    };
    let codes: Vec<u64> = codes(150_000).into_iter().enumerate().map(uneven).collect();
    let (first, second) = codes.split_at(40_000);
    let one = json_lines(&folder, "one.jsonl", first, 0);
    let other = json_lines(&folder, "other.jsonl", second, 40_000);
    let flags = &["--design", "nested-4-4"][..];
    let whole = built(&folder, &[&one, &other], "whole.lkix", flags);
    let whole = fs::read(whole).unwrap();
    let backward = built(&folder, &[&other, &one], "backward.lkix", flags);
    assert!(fs::read(backward).unwrap() == whole);
    let grown = built(&folder, &[&one], "grown.lkix", flags);
    index("extend").arg(&grown).arg(&other).arg("-q").succeed();
    assert!(fs::read(&grown).unwrap() == whole);
    let queries: Vec<u64> = codes.iter().step_by(7001).map(|code| code ^ 5).collect();
    let texts = queries.iter().map(|query| format!("{query:016x}"));
    let found = index("search").arg(&grown).args(texts).succeed();
    assert_eq!(rows(&found.lines()), expected(&codes, &queries, 3));
}

#[test]
fn what_cannot_be_put_into_an_index_is_refused_and_leaves_it_as_it_was() {
    let folder = Folder::new();
    let codes = codes(60);
    let lines = json_lines(&folder, "in.jsonl", &codes, 0);
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    let raw = folder.add("bare.u64", &bytes);
    let texts = folder.records("texts.jsonl", &[("a", crate::support::STORY)]);
    let made = |name: &str, flags: &[&str]| {
        let path = folder.path(name);
        let mut command = lookalike("fingerprint");
        command
            .arg(&texts)
            .args(["-q", "-o"])
            .arg(&path)
            .args(flags)
            .succeed();
        path
    };
    let (words, chars) = (
        made("w.lkfp", &[]),
        made("c.lkfp", &["--shingle", "chars:5"]),
    );
    let of_lines = built(&folder, &[&lines], "lines.lkix", &[]);
    let of_raw = built(&folder, &[&raw], "raw.lkix", &[]);
    let of_words = built(&folder, &[&words], "words.lkix", &[]);
    let refuse = |command: &mut Command, status: i32, words: &[&str]| {
        command.fail(status).says(words);
    };
    let before = fs::read(&of_words).unwrap();
    refuse(
        index("extend").arg(&of_words).arg(&chars),
        1,
        &["scheme", "cannot be compared"],
    );
    assert_eq!(fs::read(&of_words).unwrap(), before);
    refuse(
        index("extend").arg(&of_lines).arg(&raw),
        2,
        &["has ids", "has none"],
    );
    refuse(index("extend").arg(&lines).arg(&raw), 1, &["not a"]);
    let merged = folder.path("merged.lkix");
    let merge = |parts: [&Path; 2]| {
        let mut command = index("merge");
        command.args(parts).arg("-o").arg(&merged);
        command
    };
    refuse(
        &mut merge([&of_lines, &lines]),
        2,
        &["is not an index", "index extend"],
    );
    // The order of the parts does not matter. Merged, the ids of one part would be lost silently.
    for parts in [[&*of_lines, &*of_raw], [&*of_raw, &*of_lines]] {
        let words = [
            "lines.lkix has ids",
            "raw.lkix has none",
            "index build --no-ids",
        ];
        refuse(&mut merge(parts), 2, &words);
    }
    let remedy = built(&folder, &[&of_raw, &of_lines], "remedy.lkix", &["--no-ids"]);
    let told = String::from_utf8(index("info").arg(remedy).succeed().out).unwrap();
    assert!(told.contains("without ids"), "{told}");
    refuse(
        index("merge").arg(&of_lines).arg("-o").arg(&merged),
        2,
        &["2 values required"],
    );
    assert!(!merged.exists());
    fs::copy(&of_lines, &merged).unwrap();
    refuse(&mut merge([&of_lines, &of_lines]), 2, &["--overwrite"]);
    let mut damaged = fs::read(&of_lines).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&of_lines, damaged).unwrap();
    refuse(index("extend").arg(&of_lines).arg(&lines), 1, &["damaged"]);
}

#[test]
fn a_folder_in_place_of_the_index_was_found_when_everything_was_built() {
    let folder = Folder::new();
    let input = json_lines(&folder, "in.jsonl", &codes(100), 0);
    let path = folder.path("index");
    fs::create_dir(&path).unwrap();
    for flags in [&[][..], &["--overwrite"], &["--resume"]] {
        let mut build = index("build");
        build.arg(&input).arg("-o").arg(&path).args(flags);
        build
            .fail(2)
            .says(&["index: is a directory: choose another name"]);
        assert!(!folder.path("index.building").exists());
    }
}
