//! `extract`: its counts, and texts written as a table.

use crate::support::{Finish, Folder, STORY, lookalike};

#[test]
fn text_that_was_decoded_wrongly_before_is_counted_and_left() {
    let folder = Folder::new();
    let wrong = "Die GrÃ¶ÃŸe des CafÃ©s, und das MaÃŸ der Ãœbungen";
    let input = folder.records(
        "a.jsonl",
        &[
            ("wrong", wrong),
            ("right", "Größe, Café, Maß, Übung"),
            ("plain", STORY),
        ],
    );
    let done = lookalike("extract").arg(&input).arg("--json").succeed();
    let summary: serde_json::Value =
        serde_json::from_str(done.err.lines().last().unwrap()).unwrap();
    assert_eq!(summary["mojibake"], 1);
    assert_eq!(done.lines()[0]["text"], wrong);
    let done = lookalike("extract").arg(&input).succeed();
    done.says(&["1 with text that was already decoded wrongly"]);
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("counts", "mojibake"), 1);
    assert_eq!(results.kept.len(), 3);
}

#[test]
fn words_that_mix_scripts_are_counted() {
    let folder = Folder::new();
    let mixed = "Log in to p\u{430}ypal with your name";
    let input = folder.records("a.jsonl", &[("mixed", mixed), ("plain", STORY)]);
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("counts", "homoglyphs"), 1);
    let done = lookalike("pairs").arg(&input).succeed();
    done.says(&["1 with words that mix look-alike letters"]);
    let done = lookalike("extract").arg(&input).arg("--json").succeed();
    let summary: serde_json::Value =
        serde_json::from_str(done.err.lines().last().unwrap()).unwrap();
    assert_eq!(summary["homoglyphs"], 1);
    assert_eq!(done.lines()[0]["text"], mixed);
}

#[cfg(feature = "parquet")]
#[test]
fn texts_as_a_table_are_those_that_are_printed() {
    let folder = Folder::new();
    let input = folder.add(
        "a.jsonl",
        format!("{{\"id\":\"a\",\"text\":\"{STORY}\"}}\n{{\"id\":\"b\"}}\n{{\"id\":\"c\",\"html\":\"<p>x<p>y\"}}\n"),
    );
    let printed = lookalike("extract")
        .arg(&input)
        .arg("--quiet")
        .succeed()
        .lines();
    let table = folder.path("texts.parquet");
    lookalike("extract")
        .arg(&input)
        .arg("-o")
        .arg(&table)
        .succeed();
    let read = lookalike("extract")
        .arg(&table)
        .arg("--quiet")
        .succeed()
        .lines();
    assert_eq!(read.len(), 3);
    for (read, printed) in read.iter().zip(&printed) {
        assert_eq!(
            (&read["id"], &read["text"]),
            (&printed["id"], &printed["text"])
        );
    }
    // If the table is read as records, its columns are the fields of the printed lines.
    let rows = lookalike("dedup")
        .arg(&table)
        .args(["--output-format", "jsonl", "-o"])
        .arg(folder.path("out"))
        .succeed();
    rows.says(&["3 records"]);
    let kept = crate::support::json_lines(&std::fs::read(folder.path("out/kept.jsonl")).unwrap());
    assert_eq!(kept[1]["without"], "missing");
    assert_eq!(kept[0]["record"], 1);
    let mut both = lookalike("extract");
    let flags = ["--output-format", "text"];
    both.arg(&input)
        .arg("-o")
        .arg(&table)
        .args(flags)
        .fail(2)
        .says(&[".parquet", "another name"]);
}
