//! Summaries and messages that told users something else than what was so, or no remedy.

use std::path::Path;

use crate::support::{Finish, Folder, STORY, lookalike, record};

#[test]
fn pages_that_were_read_and_kept_were_told_as_skipped() {
    let folder = Folder::new();
    let body = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\n<p>one two three</p>";
    let page = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
        body.len()
    );
    let input = folder.add("a.warc", page);
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    let told = command.succeed();
    told.says(&["note  1 cut-body"]);
    assert!(!told.err.contains("skipped"), "{}", told.err);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("each thing that was not read, or only in part, and why"));
}

#[test]
fn quotes_that_break_a_table_were_told_without_the_option_that_reads_it() {
    let folder = Folder::new();
    for (name, table) in [
        ("open.tsv", "id\ttext\n1\tone\n2\t\"two\n"),
        ("stray.tsv", "id\ttext\n1\tone\n2\t\"two\n3\tthree\" four\n"),
    ] {
        let mut command = lookalike("extract");
        command
            .arg(folder.add(name, table))
            .arg("-o")
            .arg("/dev/null");
        command
            .lose()
            .says(&["--no-quotes reads each line as a row"]);
    }
    let mut command = lookalike("extract");
    command.arg(folder.add("short.csv", "id,text\n1,one\n2\n"));
    command
        .lose()
        .says(&["the row has 1 field, the first row 2"]);
}

#[test]
fn explain_spoke_of_chances_and_visible_text_where_there_are_none() {
    let folder = Folder::new();
    let a = folder.add("a.txt", STORY);
    let b = folder.add("b.txt", format!("{STORY} again"));
    let mut command = lookalike("explain");
    command.args([&a, &b]);
    let told = command.succeed();
    for words in ["chance over all seeds", "of all that is visible"] {
        assert!(!told.text().contains(words), "{}", told.text());
    }
    let told = command.args(["--method", "minhash"]).succeed();
    assert!(told.text().contains("chance over all seeds"));
}

#[cfg(feature = "service")]
#[test]
fn values_of_a_file_or_a_variable_were_blamed_on_a_flag() {
    let folder = Folder::new();
    let file = folder.add("c.toml", "max-body = \"8X\"\n");
    let serve = || {
        let mut command = lookalike("serve");
        command.arg("--data").arg(folder.path("store"));
        command
    };
    let told = serve().arg("--config").arg(&file).fail(2);
    told.says(&[
        "c.toml: invalid value '8X' for '--max-body <SIZE>'",
        "is not a size",
    ]);
    let mut command = serve();
    command
        .env("LOOKALIKE_MAX_BODY", "abc")
        .arg("--config")
        .arg(&file);
    let told = command.fail(2);
    told.says(&["environment variable LOOKALIKE_MAX_BODY: invalid value 'abc'"]);
    let told = serve().args(["--max-body", "8X"]).fail(2);
    told.says(&["error: invalid value '8X' for '--max-body <SIZE>'"]);
    // For these, clap has no error of a parser.
    for (line, said) in [
        (
            "log = \"loud\"",
            "invalid value 'loud' for '--log <LEVEL>': use one of error, warn",
        ),
        (
            "trust-clock = 5",
            "invalid value '5' for '--trust-clock': use one of true, false",
        ),
        (
            "keys = \"\"",
            "invalid value '' for '--keys <FILE>': a value is required",
        ),
    ] {
        let file = folder.add("c.toml", line);
        let told = serve().arg("--config").arg(&file).fail(2);
        told.says(&["c.toml: ", said]);
    }
    let told = serve().args(["--log", "loud"]).fail(2);
    told.says(&[
        "error: invalid value 'loud' for '--log <LEVEL>'",
        "possible values",
    ]);
}

#[test]
fn numbers_that_are_none_were_told_in_words_of_the_library() {
    for words in [
        &["fingerprint", "a", "--seed", "0x10"][..],
        &["pairs", "a", "--functions", "abc"],
        &["links", "a", "--window", "x"],
    ] {
        let mut command = lookalike(words[0]);
        let told = command.args(&words[1..]).fail(2);
        told.says(&["not a whole number such as 7"]);
    }
}

#[test]
fn a_test_without_its_minimum_was_told_as_a_wrong_shingle() {
    let mut command = lookalike("dedup");
    command.args(["a", "-o", "b", "--and", "coverage:words:5"]);
    command
        .fail(2)
        .says(&["lacks the minimum at its end", "MEASURE:FEATURES:LEAST"]);
}

#[test]
fn the_directory_of_an_output_was_made_by_some_commands_and_blamed_on_the_disk_by_others() {
    let folder = Folder::new();
    let input = folder.add("in.jsonl", record("a", STORY) + &record("b", STORY));
    let codes = folder.path("codes.lkfp");
    let mut command = lookalike("fingerprint");
    command.arg(&input).arg("-o").arg(&codes).succeed();
    for (words, input) in [
        (&["pairs"][..], &input),
        (&["extract"], &input),
        (&["fingerprint"], &input),
        (&["terms"], &input),
        (&["links"], &input),
        (&["archive", "build"], &input),
        (&["join"], &codes),
        (&["index", "build"], &codes),
    ] {
        let mut command = lookalike(words[0]);
        command.args(&words[1..]).arg(input);
        let told = command.arg("-o").arg(folder.path("none/file")).fail(1);
        told.says(&["none does not exist: create it, or name another file"]);
        assert!(!folder.path("none").exists(), "{words:?}");
    }
}

#[test]
fn messages_named_no_remedy_or_a_wrong_one() {
    let folder = Folder::new();
    folder.add("out.txt", STORY);
    std::fs::create_dir(folder.path("in")).unwrap();
    std::os::unix::fs::symlink(folder.path("out.txt"), folder.path("in/link")).unwrap();
    let dedup = |input: &Path| {
        let mut command = lookalike("dedup");
        command.arg(input).arg("-o").arg(folder.path("results"));
        command.fail(1)
    };
    dedup(&folder.path("in")).says(&["(1 entry skipped: ", "--follow-links reads them"]);
    dedup(Path::new("")).says(&["error: \"\": no such file"]);
}

#[test]
fn the_words_of_other_tools_got_the_hint_of_another_idea_or_none() {
    for (command, word, meant) in [
        ("dedup", "--ngram", "'--shingle'"),
        ("dedup", "--num-perm", "'--functions'"),
        ("pairs", "--jaccard", "'--threshold'"),
        ("pairs", "--columns", "'--text'"),
        ("fingerprint", "--text-column", "'--text'"),
        ("dedup", "--num-workers", "'--threads'"),
    ] {
        let told = lookalike(command).args(["in.jsonl", word, "5"]).fail(2);
        told.says(&[word, meant]);
    }
    let told = lookalike("dedup")
        .args(["in.jsonl", "--min-length", "5"])
        .fail(2);
    told.says(&["short texts are compared too"]);
    assert!(!told.err.contains("--lengths"), "{}", told.err);
    // Only options that the command has.
    let told = lookalike("join").args(["a", "--num-perm", "5"]).fail(2);
    assert!(!told.err.contains("--functions"), "{}", told.err);
}
