//! Fingerprints in every format, converted to every other.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::support::{Finish, Folder, STORY, interrupt, lookalike};

/// Returns a folder with texts, one of them without features, and with their fingerprints as JSON Lines.
fn documents() -> (Folder, PathBuf, PathBuf) {
    let folder = Folder::new();
    let texts = [
        ("first", STORY.to_owned()),
        ("zw\u{f6}lf \"2\"", STORY.replace("the", "a")),
        ("empty", String::new()),
        ("last", STORY.to_uppercase() + " and so on"),
    ];
    let input = folder.records("in.jsonl", &texts.map(|(id, text)| (id.to_owned(), text)));
    let lines = folder.path("lines.jsonl");
    fingerprint(&[&input], &lines, &[]);
    (folder, input, lines)
}

#[track_caller]
fn fingerprint(inputs: &[&Path], output: &Path, flags: &[&str]) -> String {
    let mut command = lookalike("fingerprint");
    command.args(inputs).arg("-o").arg(output).args(flags);
    command.succeed().err
}

fn import(input: &Path) -> Command {
    let mut command = lookalike("fingerprint");
    command.args(["--import", "-q"]).arg(input);
    command
}

/// Returns the lines that are printed for a collection.
#[track_caller]
fn printed(path: &Path) -> String {
    import(path).succeed().text().to_owned()
}

/// Removes texts without features, which only lines and tables keep.
fn with_features(lines: &str) -> String {
    let kept = lines.lines().filter(|line| !line.contains("null"));
    kept.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn every_format_becomes_every_other_and_none_loses_an_id() {
    let (folder, input, lines) = documents();
    let wanted = with_features(&fs::read_to_string(&lines).unwrap());
    assert_eq!(wanted.lines().count(), 3);
    let formats = ["lkfp", "lkfp.gz", "parquet", "jsonl.zst", "ndjson"];
    for from in formats {
        let first = folder.path(format!("made.{from}"));
        fingerprint(&[&input], &first, &[]);
        assert_eq!(printed(&first), wanted, "{from}");
        for to in formats {
            let second = folder.path(format!("{from}.as.{to}"));
            fingerprint(&[&first], &second, &["--import"]);
            assert_eq!(printed(&second), wanted, "{from} to {to}");
        }
    }
}

#[test]
fn raw_numbers_have_neither_ids_nor_texts_without_features() {
    let (folder, input, lines) = documents();
    let wanted = with_features(&fs::read_to_string(&lines).unwrap());
    let codes = |line: &str| serde_json::from_str::<Value>(line).unwrap()["fingerprint"].clone();
    let wanted: Vec<_> = wanted.lines().map(codes).collect();
    let raw = folder.path("made.u64");
    fingerprint(&[&input], &raw, &[]);
    assert_eq!(fs::metadata(&raw).unwrap().len(), 24);
    for name in ["lkfp", "parquet", "u64.zst", "jsonl"] {
        let other = folder.path(format!("raw.{name}"));
        fingerprint(&[&raw], &other, &["--import"]);
        let lines = import(&other).succeed().lines();
        assert!(lines.iter().all(|line| line.get("id").is_none()), "{name}");
        let found: Vec<_> = lines
            .iter()
            .map(|line| line["fingerprint"].clone())
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn a_fingerprint_file_keeps_its_scheme_and_is_refused_beside_another() {
    let (folder, input, _) = documents();
    let (words, chars) = (folder.path("words.lkfp"), folder.path("chars.lkfp"));
    let told = fingerprint(&[&input], &words, &[]);
    fingerprint(&[&input], &chars, &["--shingle", "chars:5"]);
    let mut command = import(&words);
    command.arg("--json").arg("-o").arg(folder.path("x.u64"));
    let summary = command.succeed().json();
    let scheme = summary["scheme_id"].as_str().unwrap();
    assert!(told.contains(scheme), "{told}");
    let both = import(&words).arg(&chars).fail(1);
    both.says(&["words.lkfp", "chars.lkfp", "cannot be compared"]);
    // The file joins like the lines.
    let alone = lookalike("join")
        .arg(&words)
        .args(["--distance", "16"])
        .succeed();
    assert!(alone.text().contains("first"), "{}", alone.text());
    lookalike("join")
        .arg(&words)
        .arg(&chars)
        .fail(1)
        .says(&["cannot be compared"]);
}

#[test]
fn an_archive_holds_all_in_order_under_any_memory_and_keeps_the_scheme() {
    let (folder, input, _) = documents();
    let archive = folder.path("made.lkar");
    let told = fingerprint(&[&input], &archive, &[]);
    let summary = import(&archive)
        .arg("--json")
        .arg("-o")
        .arg(folder.path("made.u64"))
        .succeed()
        .json();
    assert_eq!(summary["fingerprints"], 3);
    assert!(
        told.contains(summary["scheme_id"].as_str().unwrap()),
        "{told}"
    );
    // Two in three codes begin with the same bytes, and some are equal.
    let codes = (0..300_000_u64).map(|n| {
        let code = (n / 3 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if n % 3 == 0 { code } else { code >> 40 }
    });
    let bytes: Vec<u8> = codes.clone().flat_map(u64::to_le_bytes).collect();
    let raw = folder.add("many.u64", bytes);
    let made = ["64M", "4G"].map(|memory| {
        let output = folder.path(format!("{memory}.lkar"));
        fingerprint(&[&raw], &output, &["--import", "--memory", memory]);
        fs::read(output).unwrap()
    });
    assert!(made[0] == made[1]);
    assert!(made[0].len() < 300_000 * 7, "{}", made[0].len());
    let back = folder.path("back.u64");
    fingerprint(&[&folder.path("4G.lkar")], &back, &["--import"]);
    let mut expected: Vec<u64> = codes.collect();
    expected.sort_unstable();
    let expected: Vec<u8> = expected.into_iter().flat_map(u64::to_le_bytes).collect();
    assert!(fs::read(back).unwrap() == expected);
    // The archive names no scheme, so it can be joined with one that does, and gives the same pairs as the raw numbers.
    let joined = |f: &Path| {
        lookalike("join")
            .arg(f)
            .arg(&archive)
            .succeed()
            .text()
            .to_owned()
    };
    assert_eq!(joined(&folder.path("4G.lkar")), joined(&raw));
    let chars = folder.path("chars.lkar");
    fingerprint(&[&input], &chars, &["--shingle", "chars:5"]);
    import(&archive)
        .arg(&chars)
        .fail(1)
        .says(&["cannot be compared"]);
}

#[test]
fn parquet_of_others_is_read_by_its_columns() {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;

    let folder = Folder::new();
    let written = |name: &str, columns: Vec<(&str, ArrayRef)>| {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns
                .into_iter()
                .map(|(name, column)| (name, column, true)),
        );
        let batch = batch.unwrap();
        let path = folder.path(name);
        let file = fs::File::create(&path).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), None, Some(16)]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
    let path = written(
        "numbers.parquet",
        vec![
            ("x", Arc::clone(&ids)),
            ("fingerprint", numbers),
            ("id", ids),
        ],
    );
    let expected = "{\"id\":\"7\",\"fingerprint\":\"ffffffffffffffff\"}\n{\"id\":\"9\",\"fingerprint\":\"0000000000000010\"}\n";
    assert_eq!(printed(&path), expected);

    let digits: ArrayRef = Arc::new(StringArray::from(vec!["00000000000000ff", "no digits"]));
    let path = written("digits.parquet", vec![("fingerprint", digits)]);
    let mut command = lookalike("fingerprint");
    let found = command.arg("--import").arg(&path).lose();
    assert_eq!(found.text(), "{\"fingerprint\":\"00000000000000ff\"}\n");
    found.says(&["row 2", "16 hexadecimal digits"]);
    import(&path)
        .arg("--strict")
        .fail(1)
        .says(&["digits.parquet", "row 2"]);

    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let path = written(
        "texts.parquet",
        vec![("id", Arc::clone(&texts)), ("text", texts)],
    );
    import(&path).fail(1).says(&[
        "texts.parquet",
        "there is no column fingerprint; the columns are id, text",
    ]);
    let cut = fs::read(&path).unwrap();
    let cut = folder.add("cut.parquet", &cut[..cut.len() - 9]);
    import(&cut).fail(1).says(&["cut.parquet"]);
    let refused = lookalike("fingerprint")
        .args(["--import", "-"])
        .finish_with(&fs::read(&path).unwrap());
    assert_eq!(refused.status, Some(1));
    refused.says(&["save it to a file"]);
}

#[test]
fn mixtures_and_unknown_names_are_refused_and_leave_no_file() {
    let (folder, input, lines) = documents();
    let raw = folder.path("made.u64");
    fingerprint(&[&input], &raw, &[]);
    for name in ["mixed.lkfp", "mixed.parquet"] {
        let output = folder.path(name);
        let mut command = import(&lines);
        command
            .arg(&raw)
            .arg("-o")
            .arg(&output)
            .fail(2)
            .says(&["some fingerprints have ids and others have none"]);
        assert!(!output.exists());
    }
    for name in ["a.txt", "a.parquet.gz", "a.lkar.zst", "lkfp"] {
        let mut command = lookalike("fingerprint");
        command.arg(&input).arg("-o").arg(folder.path(name));
        command.fail(2).says(&[name, ".lkfp", ".parquet"]);
    }
    let nowhere = folder.path("none/here.lkfp");
    lookalike("fingerprint")
        .arg(&input)
        .arg("-o")
        .arg(&nowhere)
        .fail(1)
        .says(&["here.lkfp"]);
}

#[test]
fn an_empty_collection_is_one_in_every_format() {
    let folder = Folder::new();
    let empty = folder.add("empty.u64", []);
    for name in ["e.lkfp", "e.parquet", "e.jsonl", "e.u64.gz", "e.lkar"] {
        let output = folder.path(name);
        fingerprint(&[&empty], &output, &["--import"]);
        assert_eq!(printed(&output), "", "{name}");
    }
}

/// Starts an import of standard input and waits until its output file exists. Returns the process and its open input.
fn begun(folder: &Folder, lines: &Path, output: &str) -> (Child, ChildStdin) {
    let mut command = import(Path::new("-"));
    command.arg("-o").arg(folder.path(output));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = fs::read(lines).unwrap();
    // This is more than the command reads before it creates the file, whatever the first lines are.
    stdin.write_all(&lines.repeat(1000)).unwrap();
    while temporary(folder).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (child, stdin)
}

/// Returns the names of unfinished files.
fn temporary(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".tmp-")).collect()
}

#[test]
fn an_interrupted_command_left_half_a_file_of_fingerprints_for_good() {
    let (folder, input, lines) = documents();
    for output in ["x.lkfp", "x.jsonl.gz", "x.parquet"] {
        let (child, stdin) = begun(&folder, &lines, output);
        let (code, said) = interrupt(child);
        drop(stdin);
        assert_eq!(code, Some(130), "{said}");
        assert_eq!(temporary(&folder), [""; 0], "{output}");
        let (mut killed, _stdin) = begun(&folder, &lines, output);
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert_eq!(temporary(&folder).len(), 1);
        for flags in [&[][..], &["--sketch", "minhash:8"]] {
            fingerprint(&[&input], &folder.path(output), flags);
            assert_eq!(temporary(&folder), [""; 0], "{output} {flags:?}");
            // Add the temporary file that a killed command leaves.
            folder.add(format!("{output}.tmp-abcdef"), "half a file");
        }
        fs::remove_file(folder.path(format!("{output}.tmp-abcdef"))).unwrap();
    }
}

#[test]
fn a_packed_file_that_ends_early_was_a_matter_of_its_path() {
    let (folder, input, _) = documents();
    for name in ["x.lkfp.gz", "x.jsonl.zst"] {
        let path = folder.path(name);
        fingerprint(&[&input], &path, &[]);
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(bytes.len() / 2);
        fs::write(&path, bytes).unwrap();
        let refused = lookalike("join").arg(&path).fail(1);
        refused.says(&[name, "make the file again, or restore it from a copy"]);
        assert!(!refused.err.contains("check the path"), "{}", refused.err);
    }
    let missing = lookalike("join").arg(folder.path("missing")).fail(1);
    missing.says(&["missing", "check the path"]);
}

#[test]
fn an_index_of_which_nothing_was_left_was_joined_as_no_lines() {
    let folder = Folder::new();
    let queries = folder.add("q.jsonl", "{\"fingerprint\":\"0000000000000001\"}\n");
    for name in ["a.lkix", "a.lkfp", "a.LKAR", "a.parquet", "a.lkfp.zst"] {
        let empty = folder.add(name, []);
        for inputs in [[&empty, &queries], [&queries, &empty]] {
            let refused = lookalike("join").args(inputs).fail(1);
            refused.says(&[name, "cut off at byte 0"]);
        }
    }
    // Lines may be none.
    let empty = folder.add("empty", []);
    assert_eq!(
        lookalike("join").args([&empty, &queries]).succeed().text(),
        ""
    );
}

#[test]
fn a_table_on_standard_input_was_to_be_read_from_standard_input() {
    let (folder, input, _) = documents();
    let table = folder.path("made.parquet");
    fingerprint(&[&input], &table, &[]);
    let bytes = fs::read(&table).unwrap();
    let join = ["join", "-"];
    for words in [&["fingerprint", "--import", "-"][..], &join] {
        let refused = lookalike(words[0]).args(&words[1..]).finish_with(&bytes);
        assert_eq!(refused.status, Some(1), "{}", refused.err);
        refused.says(&[
            "standard input: Parquet is read from its end",
            "save it to a file",
        ]);
        let wrong = refused.err.contains("read standard input with -");
        assert!(!wrong, "{}", refused.err);
    }
}

#[test]
fn a_file_of_digits_was_refused_with_a_type_of_the_program() {
    let folder = Folder::new();
    let digits = folder.add("hex.txt", "5a3b5c7d9e1f2a4b\n");
    let refused = lookalike("join").arg(&digits).fail(1);
    refused.says(&[
        "hex.txt, line 1: not a fingerprint: not a JSON object",
        "lookalike fingerprint",
    ]);
    assert!(!refused.err.contains("struct"), "{}", refused.err);
}
