//! Records that are read as something else, or not at all: whole rows within a value, columns of one name, ids of two types, fields of a wrong type.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, lookalike, record};

const TWO_QUOTES: &str = "id\ttext\n1\t\"I went home.\n2\tAnd then I slept.\"\n3\tNothing.\n";

fn dedup(folder: &Folder, input: &Path, flags: &[&str]) -> Command {
    let mut command = lookalike("dedup");
    command.arg(input).arg("-o").arg(folder.path("out"));
    command.arg("--overwrite").args(flags);
    command
}

#[test]
fn rows_between_a_quote_and_a_quote_that_ends_a_value_were_lost_in_silence() {
    let folder = Folder::new();
    let input = folder.add("in.tsv", TWO_QUOTES);
    let told = dedup(&folder, &input, &[]).succeed();
    told.says(&[
        "note  1 swallowed-rows",
        "of 2 lines, each of which looks like a row",
        "--no-quotes",
    ]);
    let skipped = Results::read(&folder.path("out")).skipped;
    assert_eq!(
        (&skipped[0]["kind"], &skipped[0]["offset"]),
        (&json!("swallowed-rows"), &json!(8))
    );
    dedup(&folder, &input, &["--no-quotes"]).succeed();
    assert_eq!(Results::read(&folder.path("out")).kept.len(), 3);
    // Texts of several lines, some with a comma, are usual in CSV.
    let prose = "id,text\n1,\"Dear Sir, I went home.\nYours, A.\"\n2,\"Hello,\n\nworld\"\n";
    let told = dedup(&folder, &folder.add("in.csv", prose), &[]).succeed();
    assert!(!told.err.contains("swallowed"), "{}", told.err);
}

#[test]
fn a_column_with_the_name_of_an_earlier_one_was_lost() {
    let folder = Folder::new();
    let input = folder.add("in.csv", "id,text,text\n1,Hello,World\n");
    let told = dedup(&folder, &input, &[]).succeed();
    told.says(&["note  1 repeated-column", "\"text_1\""]);
    let kept: Value = serde_json::from_slice(&Results::read(&folder.path("out")).kept[0]).unwrap();
    assert_eq!(kept, json!({"id": "1", "text": "Hello", "text_1": "World"}));
    // The other column can be compared by its new name, or by its number.
    for field in ["text_1", "3"] {
        let mut extract = lookalike("extract");
        extract.arg(&input).args(["--text", field, "--quiet"]);
        assert_eq!(extract.succeed().lines()[0]["text"], "World");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn one_numeric_id_put_quotes_around_all_other_ids_of_a_table() {
    use crate::typed_tables::read_parquet;
    use arrow_array::cast::AsArray as _;

    let folder = Folder::new();
    let lines = record("doc-1", "one two three")
        + &record("doc-2", "one two three")
        + "{\"id\":3,\"text\":\"four five six\"}\n";
    let input = folder.add("in.jsonl", lines);
    dedup(&folder, &input, &["--output-format", "parquet"]).succeed();
    let ids = |name: &str, column: &str| -> Vec<String> {
        let (rows, ..) = read_parquet(&folder.path("out").join(name));
        let values = rows.column_by_name(column).unwrap().as_string::<i32>();
        let mut ids: Vec<String> = values.iter().map(|id| id.unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("kept.parquet", "id"), ["3", "doc-1"]);
    assert_eq!(ids("removed.parquet", "id"), ["doc-2"]);
    let mut again = lookalike("dedup");
    again.arg(&input).arg("--against").arg(folder.path("out"));
    again.arg("-o").arg(folder.path("again")).succeed();
    let clusters = Results::read(&folder.path("again")).clusters;
    assert_eq!(clusters[0].survivor, "3");
    assert_eq!(clusters[1].survivor, "doc-1");
}

#[test]
fn records_whose_ids_are_all_objects_gave_empty_results_and_no_remedy() {
    let folder = Folder::new();
    let line = |number: usize| {
        json!({"id": {"$oid": format!("a{number}")}, "text": format!("text {number}")}).to_string()
            + "\n"
    };
    let input = folder.add("in.jsonl", (0..3).map(line).collect::<String>());
    let out = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    for (words, output) in [
        (&["dedup"][..], Some(out("results"))),
        (&["pairs"], None),
        (&["overlap"], None),
        (&["fingerprint"], Some(out("codes.lkfp"))),
        (&["archive", "build"], Some(out("texts.lka"))),
    ] {
        let mut command = lookalike(words[0]);
        command.args(&words[1..]).arg(&input);
        if let Some(output) = &output {
            command.arg("-o").arg(output);
        }
        command.fail(1).says(&[
            "3 of 3 records could not be read",
            "the id field holds an object",
            "--id id.name",
        ]);
        assert!(output.is_none_or(|output| !Path::new(&output).exists()));
    }
    let mut command = lookalike("collection");
    command.arg("build").arg(folder.path("collection"));
    command.arg(&input).fail(1).says(&["--id id.name"]);
    let results = folder.dedup(&input, &["--id", "id.$oid"]);
    assert_eq!(results.kept.len(), 3);
    // Such records beside others are lost, as ever.
    folder.add(
        "mixed.jsonl",
        line(1) + &record("a", "a text") + &record("b", "another"),
    );
    dedup(&folder, &folder.path("mixed.jsonl"), &[])
        .lose()
        .says(&["--id and --text can name a field within it"]);
}

#[cfg(feature = "evaluation")]
#[test]
fn evaluations_of_records_without_any_text_advised_other_thresholds() {
    let folder = Folder::new();
    let line = |number: usize| {
        json!({"id": number, "doc": {"body": format!("text number {number}")}}).to_string() + "\n"
    };
    let input = folder.add("in.jsonl", (0..5).map(line).collect::<String>());
    let drawn = folder.path("drawn.jsonl");
    for words in [
        &["audit", "--method", "simhash"][..],
        &["sample", "-o", drawn.to_str().unwrap()],
        &["sweep"],
    ] {
        let mut command = lookalike("evaluate");
        command.arg(words[0]).arg(&input).args(&words[1..]);
        command
            .fail(1)
            .says(&["none of the 5 records has a text", "--text FIELD"]);
    }
}

#[cfg(feature = "evaluation")]
#[test]
fn the_precision_of_no_pairs_was_0() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("a", "one two three"), ("b", "four five six")],
    );
    let mut command = lookalike("evaluate");
    command
        .arg("audit")
        .arg(&input)
        .args(["--method", "minhash"]);
    let told = command.succeed();
    assert!(
        told.text().contains("precision   -  of the 0 pairs"),
        "{}",
        told.text()
    );
}

#[test]
fn the_remedies_for_a_wrong_text_field_could_not_be_followed() {
    let folder = Folder::new();
    let chat = "{\"id\":1,\"messages\":[{\"content\":\"hello\"}]}\n";
    let input = folder.add("chat.jsonl", chat);
    let told = |field: &str| {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(folder.path("out"));
        command.args(["--text", field]).fail(1).err
    };
    let list = told("messages");
    assert!(
        list.contains("holds an array") && list.contains("join the list"),
        "{list}"
    );
    assert!(!list.contains("--id"), "{list}");
    // The name that was given is repeated.
    let missing = told("body");
    let words = [
        "the field body, as text body requires",
        "the fields id, messages",
    ];
    assert!(words.iter().all(|word| missing.contains(word)), "{missing}");
    let several = told(r"body,a\, b");
    assert!(several.contains(r"the field body,a\, b,"), "{several}");
}
