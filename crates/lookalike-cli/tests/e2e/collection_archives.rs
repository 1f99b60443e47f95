//! `lookalike archive`: everything that goes into an archive comes back, or there is an error.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{
    Finish, Folder, Numbers, SmallDisk, contents, corpus, examples, lookalike, record,
};

/// Extracts all files of an archive.
fn extract_to(file: &Path, out: &Path) {
    let mut extract = archive("extract", file);
    extract.arg("-o").arg(out).arg("--quiet").succeed();
}

fn archive(what: &str, file: &Path) -> Command {
    let mut command = lookalike("archive");
    command.arg(what).arg(file);
    command
}

fn build(inputs: &[&Path], file: &Path) -> Command {
    let mut command = lookalike("archive");
    command.arg("build").args(inputs).arg("-o").arg(file);
    command.arg("--quiet");
    command
}

/// Returns the files below a folder by their relative paths.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes families of files and records, mixed with lines that are not documents.
fn mixed(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut numbers = Numbers(11);
    let bases: Vec<String> = (0..6).map(|_| numbers.words(200, 5000)).collect();
    let mut lines = String::from("\u{feff}");
    for number in 0..200 {
        let text = format!("{} {}", bases[number % 6], numbers.words(3, 5000));
        lines.push_str(&record(&format!("r{number}"), &text));
        if number % 50 == 7 {
            lines.push_str("\r\n\n{no record\n");
        }
    }
    lines.push_str("\n{\"id\":\"last\",\"text\":\"without an end\"}");
    let mut expected = BTreeMap::new();
    for number in 0..30 {
        let text = format!("{} {}", bases[number % 6], numbers.words(5, 5000));
        expected.insert(format!("in/pages/{number:02}.txt"), text.into_bytes());
    }
    expected.insert("in/empty.txt".to_owned(), Vec::new());
    expected.insert("in/records.jsonl".to_owned(), lines.into_bytes());
    for (name, bytes) in &expected {
        match name.ends_with("jsonl") {
            true => folder.add(format!("{name}.gz"), gzip(bytes)),
            false => folder.add(name, bytes),
        };
    }
    let expected = expected.into_iter();
    expected
        .map(|(name, bytes)| (PathBuf::from(name), bytes))
        .collect()
}

/// Returns the part of a tree below the folder called `name`, wherever that is.
fn below(tree: BTreeMap<PathBuf, Vec<u8>>, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let cut = |path: &Path| {
        let parts: Vec<_> = path.iter().collect();
        let at = parts.iter().position(|part| *part == name).unwrap();
        parts[at..].iter().collect::<PathBuf>()
    };
    tree.into_iter()
        .map(|(path, bytes)| (cut(&path), bytes))
        .collect()
}

#[test]
fn files_and_records_come_back_byte_for_byte() {
    let folder = Folder::new();
    let expected = mixed(&folder);
    let file = folder.path("all.lka");
    build(&[&folder.path("in")], &file)
        .lose()
        .says(&["records.jsonl.gz, line 11", "invalid JSON"]);
    let info = archive("info", &file)
        .args(["--json", "--verify"])
        .succeed()
        .json();
    assert_eq!(info["documents"], 232);
    assert_eq!(info["sources"], 32);
    assert!(info["copies"].as_u64().unwrap() > 200, "{info}");
    let bytes: usize = expected.values().map(Vec::len).sum();
    assert_eq!(info["source_bytes"], bytes);
    assert_eq!(info["archive_bytes"], fs::metadata(&file).unwrap().len());

    let out = folder.path("out");
    archive("extract", &file)
        .arg("-o")
        .arg(&out)
        .args(["--quiet", "--threads", "3"])
        .succeed();
    assert!(below(tree(&out), "in") == expected);

    let lines = &expected[Path::new("in/records.jsonl")];
    let line = |number: usize| {
        let wanted = format!("{{\"id\":\"r{number}\",");
        let mut lines = lines.split_inclusive(|&byte| byte == b'\n');
        lines
            .find(|line| String::from_utf8_lossy(line).contains(&wanted))
            .unwrap()
    };
    let read = archive("extract", &file)
        .args(["--id", "r33", "--id", "r5"])
        .succeed();
    assert_eq!(read.out, [line(33), line(5)].concat());
    let page = folder.path("in/pages/17.txt");
    let one = folder.path("one");
    archive("extract", &file)
        .arg("--id")
        .arg(&page)
        .arg("-o")
        .arg(&one)
        .succeed();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&page).unwrap());
    let last = archive("extract", &file).args(["--id", "last"]).succeed();
    assert_eq!(last.text(), "{\"id\":\"last\",\"text\":\"without an end\"}");
    assert!(
        fs::read_dir(folder.path("."))
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().contains("tmp") })
    );
}

#[cfg(target_os = "linux")]
#[test]
fn files_came_back_under_other_folders_without_a_word() {
    let folder = Folder::new();
    let gone = ["b.txt", "b.txt.gz"].map(|name| Path::new("in").join(name));
    folder.add("in/a.txt", "the first text");
    folder.add("in/A.txt", "the second text, in capitals");
    folder.add(&gone[0], "the third text, as it is");
    folder.add(&gone[1], gzip(b"the fourth text, compressed"));
    let here = |output: &str, flag: &str| {
        let mut build = lookalike("archive");
        build.current_dir(folder.path(""));
        build.args(["build", "in", "-o", output, flag]).succeed()
    };
    let summary = here("a.lka", "--json").json();
    assert_eq!(summary["renamed"], 1, "{summary}");
    assert_eq!(
        summary["first_renamed"],
        serde_json::json!({"source": "in/b.txt.gz", "path": "in~2/b.txt"})
    );
    here("b.lka", "--level=1").says(&["renamed  1 file because", "in/b.txt.gz is in~2/b.txt"]);
    let out = folder.path("out");
    extract_to(&folder.path("a.lka"), &out);
    let found = tree(&out);
    let names: Vec<&Path> = found.keys().map(PathBuf::as_path).collect();
    let wanted = ["in/A.txt", "in/a.txt", "in/b.txt", "in~2/b.txt"];
    assert_eq!(names, wanted.map(Path::new));
    assert_eq!(
        found[Path::new("in/A.txt")],
        b"the second text, in capitals"
    );
}

#[test]
fn blocks_of_every_size_give_back_the_same() {
    let folder = Folder::new();
    let expected = mixed(&folder);
    let built = |block: &str| {
        let file = folder.path(format!("{block}.lka"));
        build(&[&folder.path("in")], &file)
            .args(["--block", block])
            .lose();
        let out = folder.path(format!("{block} out"));
        extract_to(&file, &out);
        assert!(below(tree(&out), "in") == expected, "{block}");
        let read = archive("extract", &file).args(["--id", "r33"]).succeed();
        let info = archive("info", &file).arg("--json").succeed().json();
        let number = |name: &str| info[name].as_u64().unwrap();
        (read.out, number("blocks"), number("archive_bytes"))
    };
    let ((one, blocks, bytes), (other, one_block, fewer)) = (built("64K"), built("32M"));
    assert_eq!(one, other);
    // There are six families of some 50 KiB; with large blocks all of them share one stream.
    assert_eq!((blocks, one_block), (6, 1));
    assert!(fewer < bytes, "{fewer} {bytes}");
    for wrong in ["63K", "33M", "a few"] {
        build(&[&folder.path("in")], &folder.path("wrong"))
            .args(["--block", wrong])
            .fail(2)
            .says(&["--block", wrong]);
    }
}

#[test]
fn an_archive_does_not_depend_on_threads_or_memory() {
    let folder = Folder::new();
    mixed(&folder);
    let input = folder.path("in");
    let first = folder.path("first.lka");
    build(&[&input], &first).args(["--threads", "1"]).lose();
    for (name, flags) in [("a", ["--threads", "7"]), ("b", ["--memory", "260M"])] {
        let other = folder.path(name);
        build(&[&input], &other).args(flags).lose();
        assert!(
            fs::read(&other).unwrap() == fs::read(&first).unwrap(),
            "{flags:?}"
        );
    }
    build(&[&input], &folder.path("little"))
        .args(["--memory", "64M", "--threads", "1"])
        .fail(1)
        .says(&[
            "compressing a block",
            "raise --memory to at least",
            "--block",
        ]);
    assert!(!folder.path("little").exists());
}

/// A higher limit let in more threads, which took the rest; and the packed size of the input was taken for that of its blocks.
#[test]
fn the_memory_that_a_build_asked_for_was_refused_again() {
    let folder = Folder::new();
    let line = |at| {
        record(
            &format!("{at:03}"),
            &format!("{at} {}", "word ".repeat(20_000)),
        )
    };
    let packed = gzip((0..400).map(line).collect::<String>().as_bytes());
    let input = folder.add("in.jsonl.gz", packed);
    let file = folder.path("a.lka");
    let limited = |memory: &str| {
        let mut command = build(&[&input], &file);
        command.args(["--threads", "16", "--level", "1", "--memory", memory]);
        command
    };
    let refused = limited("60M").fail(1);
    refused.says(&["compressing a block takes 224 MiB"]);
    let (_, asked) = refused
        .err
        .split_once("raise --memory to at least ")
        .unwrap();
    let (asked, _) = asked.split_once(',').unwrap();
    limited(asked).succeed();
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    let input = folder.add("a.txt", "some text");
    let file = folder.path("a.lka");
    build(&[&input], &file).succeed();
    let before = fs::read(&file).unwrap();
    build(&[&input], &file)
        .fail(2)
        .says(&["a.lka", "choose another place"]);
    let full = folder.add("full/b.txt", "b");
    archive("extract", &file)
        .arg("-o")
        .arg(full.parent().unwrap())
        .fail(2)
        .says(&["full", "nothing is overwritten"]);
    archive("extract", &file)
        .args(["--id", input.to_str().unwrap(), "-o"])
        .arg(&full)
        .fail(2);
    assert_eq!(fs::read(&full).unwrap(), b"b");
    assert_eq!(fs::read(&file).unwrap(), before);
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    extract_to(&file, &empty);
    assert_eq!(tree(&empty).len(), 1);
    archive("extract", &file).fail(2).says(&["--output"]);
}

#[test]
fn an_empty_directory_was_not_taken_as_it_was_or_only_refused_after_the_work() {
    let folder = Folder::new();
    let input = folder.add("a.txt", "some text");
    let file = folder.path("a.lka");
    build(&[&input], &file).succeed();
    let [closed, link] = ["closed", "link"].map(|name| folder.path(name));
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&closed, &link).unwrap();
    extract_to(&file, &link);
    assert!(link.is_symlink());
    assert_eq!(tree(&closed).len(), 1);
    let mode = fs::metadata(&closed).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 1) else {
        return;
    };
    let mut extract = archive("extract", &file);
    let refused = extract.arg("-o").arg(disk.path()).fail(2);
    refused.says(&["is a mount point", "name a new directory in it"]);
}

#[test]
fn what_would_not_come_back_is_refused_with_its_kind() {
    let folder = Folder::new();
    let text = folder.add("a.txt", "some text");
    let table = folder.add("rows.csv", "id,text\n1,one\n2,two\n");
    let array = folder.add(
        "rows.json",
        r#"[{"id":1,"text":"one"},{"id":2,"text":"two"}]"#,
    );
    for (input, kind) in [(&table, "records of csv"), (&array, "records of json")] {
        let file = folder.path("a.lka");
        build(&[&text, input], &file)
            .fail(1)
            .says(&[input.to_str().unwrap(), kind, "JSON Lines"]);
        assert!(!file.exists());
    }
    archive("extract", &text)
        .args(["--id", "a"])
        .fail(1)
        .says(&["not a collection archive"]);
}

#[test]
fn an_id_that_nobody_has_gives_nothing() {
    let folder = Folder::new();
    let input = folder.records("r.jsonl", &[("a", "one two three"), ("b", "four five six")]);
    let file = folder.path("r.lka");
    build(&[&input], &file).succeed();
    let failed = archive("extract", &file)
        .args(["--id", "a", "--id", "c"])
        .fail(1);
    failed.says(&["\"c\"", "check the id"]);
    assert!(failed.out.is_empty());
}

#[test]
fn a_damaged_archive_gives_an_error_and_no_wrong_byte() {
    let folder = Folder::new();
    mixed(&folder);
    let file = folder.path("all.lka");
    build(&[&folder.path("in")], &file).lose();
    let whole = fs::read(&file).unwrap();
    let out = folder.path("out");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        fs::write(&file, &damaged).unwrap();
        let failed = archive("extract", &file)
            .arg("-o")
            .arg(&out)
            .arg("--quiet")
            .fail(1);
        let is_told = ["is damaged", "not a collection archive", "has format"]
            .iter()
            .any(|word| failed.err.contains(word));
        assert!(is_told, "byte {at}: {}", failed.err);
        assert!(!out.exists(), "byte {at}");
    }
    for length in (0..whole.len()).step_by(whole.len() / 10) {
        fs::write(&file, &whole[..length]).unwrap();
        archive("info", &file).fail(1);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_build_leaves_nothing() {
    let folder = Folder::new();
    let mut numbers = Numbers(3);
    let lines: String = (0..4000)
        .map(|n| record(&n.to_string(), &numbers.words(400, 90_000)))
        .collect();
    let input = folder.add("in/many.jsonl", lines);
    let file = folder.path("out/many.lka");
    fs::create_dir(folder.path("out")).unwrap();
    let mut command = build(&[&input], &file);
    let mut child = command
        .args(["--level", "19"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Compression takes seconds; wait until the output file exists.
    let begun = || {
        let mut spools = fs::read_dir(folder.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        spools.any(|spool| {
            fs::read_dir(spool).is_ok_and(|mut all| {
                all.any(|entry| {
                    entry
                        .unwrap()
                        .file_name()
                        .to_string_lossy()
                        .starts_with("output.tmp")
                })
            })
        })
    };
    while child.try_wait().unwrap().is_none() && !begun() {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_dir(folder.path("out")).unwrap().count(), 0);
}

#[test]
fn the_examples_come_back() {
    let folder = Folder::new();
    let file = folder.path("examples.lka");
    build(&[&examples()], &file).succeed();
    let out = folder.path("out");
    extract_to(&file, &out);
    let found = below(tree(&out), "examples");
    for (name, bytes) in &found {
        let path = examples().parent().unwrap().join(name);
        assert!(*bytes == fs::read(&path).unwrap(), "{}", path.display());
    }
    assert!(found.len() > 20, "{}", found.len());
}

/// At this level the window covers the distance between pages, but not between versions of a page.
#[test]
fn versions_of_manuals_take_half_of_plain_zstd_at_level_3() {
    let Some(input) = corpus("manual-versions-html/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let file = folder.path("manuals.lka");
    build(&[&input], &file).args(["--level", "3"]).succeed();
    let out = folder.path("out");
    extract_to(&file, &out);
    let plain = contents(&input);
    let found = tree(&out).into_values().next().unwrap();
    assert!(found == plain);
    let packed = zstd::bulk::compress(&plain, 3).unwrap().len() as u64;
    assert!(fs::metadata(&file).unwrap().len() < packed / 2);
}
