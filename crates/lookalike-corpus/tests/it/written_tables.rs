//! Conversion of lines of JSON to Parquet and back.

use std::fs;
use std::io::Write;

use lookalike_corpus::{AtomicFile, InputOptions, OutputFormat, TableRowError};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{Corpus, read};

fn table(corpus: &Corpus, name: &str, lines: &[u8], example: &str) -> std::io::Result<Vec<u8>> {
    fs::create_dir_all(corpus.path("")).unwrap();
    let path = corpus.path(name);
    let mut file = AtomicFile::lines(&path, OutputFormat::Parquet, example)?;
    // In pieces, because callers need not write whole lines.
    for piece in lines.chunks(7) {
        file.write_all(piece)?;
    }
    file.commit()?;
    Ok(fs::read(path).unwrap())
}

/// Returns the rows of a table, using the reader that `columns` tests.
fn rows(corpus: &Corpus, name: &str) -> Vec<Value> {
    let options = InputOptions::default();
    let reading = read(&corpus.inputs(name, &options), &options);
    assert_eq!(reading.skips, []);
    let rows = reading
        .records
        .into_iter()
        .map(|record| record.unwrap().raw);
    rows.map(|raw| serde_json::from_slice(&raw).unwrap())
        .collect()
}

fn round_trip(lines: &str) -> Vec<Value> {
    let corpus = Corpus::new();
    table(&corpus, "t.parquet", lines.as_bytes(), "").unwrap();
    rows(&corpus, "t.parquet")
}

/// Returns true if a value was read back: null fields may be left out or added, and values without a common type are JSON text.
fn is_same(written: &Value, found: &Value) -> bool {
    let text = || {
        let parsed = serde_json::from_str::<Value>(found.as_str()?).ok()?;
        Some(parsed == *written)
    };
    match (written, found) {
        (Value::Object(w), Value::Object(f)) => {
            let names = w.keys().chain(f.keys());
            let get = |map: &Map<String, Value>, name: &String| map.get(name).cloned();
            names.into_iter().all(|name| {
                let (w, f) = (get(w, name), get(f, name));
                is_same(&w.unwrap_or_default(), &f.unwrap_or_default())
            })
        }
        (Value::Array(w), Value::Array(f)) => {
            w.len() == f.len() && w.iter().zip(f).all(|(w, f)| is_same(w, f))
        }
        (Value::Number(w), Value::Number(f)) => w == f || w.as_f64() == f.as_f64(),
        _ => written == found || text().unwrap_or(false),
    }
}

fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::from),
        3 => (-5_i64..5).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        2 => (-100_i32..100).prop_map(|x| Value::from(f64::from(x) / 8.0)),
        3 => "[a-c\\\\\"\u{e9}]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_table_holds_what_the_lines_held(
        records in prop::collection::vec(prop::collection::btree_map("[d-f]", some_value(), 0..4), 1..12),
    ) {
        let records: Vec<Value> = records
            .into_iter()
            .map(|fields| {
                let mut record: Map<String, Value> = fields.into_iter().collect();
                record.insert("text".into(), "t".into());
                Value::Object(record)
            })
            .collect();
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        let found = round_trip(&lines);
        prop_assert_eq!(found.len(), records.len());
        for (written, found) in records.iter().zip(&found) {
            prop_assert!(is_same(written, found), "{written} became {found}");
        }
    }
}

#[test]
fn columns_have_types() {
    let lines = concat!(
        r#"{"id":"a","text":"t","n":1,"x":1,"yes":true,"tags":["p","q"],"at":{"line":3},"odd":1,"big":18446744073709551615,"long":1}"#,
        "\n",
        r#"{"text":"u","id":"b","n":-2,"x":0.5,"tags":[],"at":{"line":null,"file":"f"},"odd":"1","big":2,"long":123456789012345678901234567890}"#,
        "\n",
    );
    let found = round_trip(lines);
    assert_eq!(
        found[0],
        json!({"id": "a", "text": "t", "n": 1, "x": 1, "yes": true, "tags": ["p", "q"],
            "at": {"line": 3, "file": null}, "odd": "1", "big": 18_446_744_073_709_551_615_u64, "long": "1"})
    );
    assert_eq!(
        found[1],
        json!({"id": "b", "text": "u", "n": -2, "x": 0.5, "yes": null, "tags": [],
            "at": {"line": null, "file": "f"}, "odd": "1", "big": 2,
            "long": "123456789012345678901234567890"})
    );
}

#[test]
fn the_last_of_repeated_names_counts_as_everywhere() {
    let found = round_trip("{\"text\":\"a\",\"n\":1,\"n\":2}\n{\"text\":\"b\",\"n\":3}\n");
    assert_eq!([&found[0]["n"], &found[1]["n"]], [2, 3]);
}

#[test]
fn what_is_no_text_is_replaced_and_numbers_that_nothing_holds_stay_text() {
    let corpus = Corpus::new();
    let lines = b"{\"text\":\"a\xff\",\"n\":1e999}\n{\"text\":\"\\ud800b\",\"n\":1}\n";
    table(&corpus, "t.parquet", lines, "").unwrap();
    let found = rows(&corpus, "t.parquet");
    assert_eq!(found[0], json!({"text": "a\u{ff}", "n": "1e999"}));
    assert_eq!(found[1], json!({"text": "\u{fffd}b", "n": "1"}));
}

#[test]
fn deep_values_and_wide_maps_are_json_text() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let wide: Map<String, Value> = (0..1_001).map(|i| (format!("k{i}"), i.into())).collect();
    let wide = Value::Object(wide);
    let found = round_trip(&format!(
        "{{\"text\":\"t\",\"deep\":{deep},\"wide\":{wide}}}\n"
    ));
    let text = found[0]["deep"].to_string();
    assert_eq!(text.matches('[').count(), 5_000);
    assert_eq!(found[0]["wide"], wide.to_string());
}

#[test]
fn too_many_columns_are_refused_with_the_row() {
    let corpus = Corpus::new();
    let record: Map<String, Value> = (0..1_001).map(|i| (format!("k{i}"), i.into())).collect();
    let line = format!("{{\"text\":\"t\"}}\n{}\n", Value::Object(record));
    let error = table(&corpus, "t.parquet", line.as_bytes(), "").unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("row 2") && told.contains("1000 columns"),
        "{told}"
    );
    // Libraries do not know options.
    assert!(!told.contains("--"), "{told}");
    assert!(TableRowError::is_cause_of(&error));
    assert_eq!(
        fs::read_dir(corpus.path("")).unwrap().count(),
        0,
        "no half file is left"
    );
}

#[test]
fn an_empty_table_has_the_columns_of_the_example() {
    let corpus = Corpus::new();
    let bytes = table(&corpus, "t.parquet", b"", r#"{"a":"","similarity":0.5}"#).unwrap();
    let file = corpus.add("u.parquet", &bytes);
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        fs::File::open(file).unwrap(),
    )
    .unwrap();
    let fields = builder.schema().fields();
    let types: Vec<String> = fields
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    assert_eq!(types, ["a Utf8", "similarity Float64"]);
}

#[test]
fn tables_of_one_job_have_the_same_columns() {
    let corpus = Corpus::with("kept/x", b"");
    let files = [
        ("kept.parquet", "{\"text\":\"a\",\"n\":1}\n"),
        ("removed.parquet", ""),
    ];
    let files = files.map(|(name, lines)| {
        let path = corpus.path(name);
        let mut file = AtomicFile::lines(&path, OutputFormat::Parquet, "").unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        file
    });
    AtomicFile::commit_all(files.into()).unwrap();
    let schema = |name: &str| {
        let file = fs::File::open(corpus.path(name)).unwrap();
        let builder =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        builder.schema().fields().clone()
    };
    assert_eq!(schema("kept.parquet"), schema("removed.parquet"));
    assert_eq!(schema("kept.parquet").len(), 2);
}

#[test]
fn the_same_lines_give_the_same_bytes_in_several_row_groups() {
    let line = |i: u32| {
        format!(
            "{{\"id\":{i},\"text\":\"{}\"}}\n",
            "word ".repeat(i as usize % 50)
        )
    };
    let lines: String = (0..40_000).map(line).collect();
    let corpus = Corpus::new();
    let first = table(&corpus, "a.parquet", lines.as_bytes(), "").unwrap();
    let second = table(&corpus, "b.parquet", lines.as_bytes(), "").unwrap();
    assert!(first == second);
    assert_eq!(rows(&corpus, "a.parquet").len(), 40_000);
}

/// Regression test: if one row repeated a field, all rows went through floating-point numbers.
#[test]
fn a_repeated_name_in_one_row_rounded_the_numbers_of_others() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let lines = [
        r#"{"id":"1","n":12345678901234567890123,"m":{"z":1,"a":0.10000000000000000555},"s":{"x":1}}"#.to_owned(),
        r#"{"id":"2","n":"x","m":5,"s":{"x":1,"x":2}}"#.to_owned(),
        format!(r#"{{"id":"3","f":1e400,"d":{deep},"id":"z"}}"#),
    ];
    let rows = round_trip(&(lines.join("\n") + "\n"));
    assert_eq!(rows[0]["n"], "12345678901234567890123");
    assert_eq!(rows[0]["m"], r#"{"z":1,"a":0.10000000000000000555}"#);
    assert_eq!(
        (&rows[0]["s"]["x"], &rows[1]["s"]["x"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (&rows[2]["id"], &rows[2]["f"]),
        (&json!("z"), &json!("1e400"))
    );
    assert_eq!(rows[2]["d"].to_string().replace('"', ""), deep);
}
