//! Texts of several fields (`--text a,b`).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use crate::support::{Finish, Folder, lookalike};

const QUESTIONS: [Option<&str>; 4] = [Some("one \"q\""), None, Some(""), None];
const ANSWERS: [Option<&str>; 4] = [Some("one a"), Some("alone"), Some("after nothing"), None];

fn texts(input: &Path, fields: &str) -> Vec<Value> {
    let mut command = lookalike("extract");
    command.arg(input).args(["--text", fields]);
    let rows = command.succeed().lines().into_iter();
    rows.map(|row| row["text"].clone()).collect()
}

fn table() -> RecordBatch {
    let column =
        |values: [Option<&str>; 4]| -> ArrayRef { Arc::new(StringArray::from_iter(values)) };
    let columns = [("q", column(QUESTIONS)), ("a, b", column(ANSWERS))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

#[test]
fn a_text_in_several_fields_could_not_be_compared() {
    let folder = Folder::new();
    let lines = folder.add(
        "in.jsonl",
        "{\"q\":\"one \\\"q\\\"\",\"a, b\":\"one a\"}\n{\"a, b\":\"alone\"}\n{\"a, b\":\"after nothing\",\"q\":\"\"}\n{\"q\":null}\n",
    );
    let parquet = folder.path("in.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&parquet).unwrap(), table().schema(), None).unwrap();
    writer.write(&table()).unwrap();
    writer.close().unwrap();
    let arrow = folder.path("in.arrow");
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &table().schema()).unwrap();
    writer.write(&table()).unwrap();
    writer.finish().unwrap();
    // The rule of `text=["q", "a, b"]` in Python: what is missing is left out, and an empty text is not missing.
    let wanted = ["one \"q\"\none a", "alone", "\nafter nothing"];
    for input in [&lines, &parquet, &arrow] {
        let found = texts(input, r"q,a\, b");
        assert_eq!(found[..3], wanted, "{}", input.display());
        assert!(found.len() == 3 || found[3].is_null(), "{found:?}");
    }
    let table = folder.add("in.csv", "q,\"a, b\"\n\"one \"\"q\"\"\",one a\n");
    assert_eq!(texts(&table, r"q,a\, b"), [wanted[0]]);
    assert_eq!(texts(&table, "2,1"), ["one a\none \"q\""]);
}

#[test]
fn one_of_several_text_fields_is_as_good_as_a_single_one() {
    let folder = Folder::new();
    // Recognised as records, although the first has only the second field; a file without an ending is sniffed.
    let input = folder.add(
        "in",
        "{\"meta\":{\"body\":\"<b>as it is</b>\"}}\n{\"title\":\"alone\"}\n",
    );
    assert_eq!(
        texts(&input, "title,meta.body"),
        ["<b>as it is</b>", "alone"]
    );
    let pages = folder.add(
        "pages.jsonl",
        "{\"title\":\"T\",\"html\":\"<b>as it is</b>\"}\n",
    );
    assert_eq!(texts(&pages, "title,html"), ["T\n<b>as it is</b>"]);
    assert_eq!(texts(&pages, "html"), ["as it is"]);
    let wrong = folder.add(
        "wrong.jsonl",
        "{\"id\":1,\"q\":[1],\"a\":\"x\"}\n{\"id\":2,\"q\":\"y\"}\n{\"id\":3,\"a\":\"z\"}\n",
    );
    let mut command = lookalike("extract");
    command.arg(&wrong).args(["--text", "q,a"]);
    assert_eq!(
        command
            .lose()
            .says(&["text field holds an array"])
            .lines()
            .len(),
        2
    );
    let mut command = lookalike("extract");
    command.arg(&wrong).args(["--text", "q,,a"]);
    command.fail(2).says(&["empty name in field path"]);
    // Equal texts from other fields are equal texts.
    let twins = folder.add(
        "twins.jsonl",
        "{\"id\":\"a\",\"q\":\"one\",\"a\":\"two\"}\n{\"id\":\"b\",\"q\":\"one\\ntwo\"}\n",
    );
    let told = folder.dedup(&twins, &["--text", "q,a"]);
    assert_eq!(told.run["decisions"]["removed_exact"], 1);
}

#[test]
fn a_misspelt_name_among_several_text_fields_left_the_field_out_and_removed_different_answers() {
    let folder = Folder::new();
    let answers = folder.add(
        "answers.jsonl",
        "{\"q\":\"one question for all\",\"a\":\"yes\",\"note\":null}\n{\"q\":\"one question for all\",\"a\":\"no\"}\n",
    );
    for name in ["dedup", "pairs", "fingerprint", "overlap"] {
        let mut command = lookalike(name);
        command.arg(&answers).args(["--text", "q,answer"]);
        if ["dedup", "overlap"].contains(&name) {
            command.arg("-o").arg(folder.path("out"));
        }
        command.fail(1).says(&[
            "none of the 2 records has a value in the field answer, as text q,answer requires",
            "the first record has the fields a, note, q",
        ]);
    }
    // A field that is null wherever it is there is no mistake; one that is too long to be read may be.
    let told = folder.dedup(&answers, &["--text", "q,a,note"]);
    assert_eq!(told.run["decisions"]["removed_exact"], 0);
    let cut = ["--text", "q,answer", "--max-document", "20"];
    assert_eq!(folder.dedup(&answers, &cut).run["counts"]["too_long"], 2);
    // Later texts for a collection whose first ones had the field.
    let held = folder.path("held");
    let mut command = lookalike("dedup");
    command.arg(&answers).args(["--text", "q,a", "--into"]);
    command.arg(&held).arg("-o").arg(folder.path("first"));
    command.succeed();
    let later = folder.add("later.jsonl", "{\"q\":\"another question\"}\n");
    let mut command = lookalike("dedup");
    command.arg(&later).args(["--text", "q,a", "--against"]);
    command.arg(&held).arg("-o").arg(folder.path("second"));
    command.succeed();
}
