//! CSV and TSV: quotes, names, numbers, rows of the wrong length, and all compressions.

use std::io::Write;

use lookalike_corpus::{BadRecordKind, InputOptions, SkipKind, TextState};

use crate::support::{Corpus, Reading, gzip, read, read_raw};

fn read_with(name: &str, bytes: &[u8], options: &InputOptions) -> Reading {
    let corpus = Corpus::with(name, bytes);
    let inputs = corpus.inputs(name, options);
    let reading = read(&inputs, options);
    assert_eq!(read_raw(&inputs, options).len(), reading.records.len());
    reading
}

fn read_table(name: &str, bytes: &[u8]) -> Reading {
    read_with(name, bytes, &InputOptions::default())
}

#[test]
fn quotes_line_feeds_and_a_byte_order_mark() {
    let table =
        "\u{feff}id,text,note\r\n1,\"two \"\"lines\"\"\nof, text\",\r\n2,plain,x\r\n\r\n3,last,y";
    let reading = read_table("a.csv", table.as_bytes());
    assert_eq!(reading.ids(), ["1", "2", "3"]);
    assert_eq!(
        reading.texts(),
        ["two \"lines\"\nof, text", "plain", "last"]
    );
    let first = reading.records[0].as_ref().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&first.raw),
        r#"{"id":"1","text":"two \"lines\"\nof, text","note":""}"#
    );
    let reading = read_table("a.tsv", b"id\ttext\n1\ta, b\n");
    assert_eq!(reading.texts(), ["a, b"]);
}

#[test]
fn columns_by_name_and_by_number() {
    let table = b"key,body,2\nk1,one,no\nk2,two,no\n";
    let options = |id: &str, text: &str| {
        InputOptions::default()
            .id_field(Some(id.parse().unwrap()))
            .text_field(Some(text.parse().unwrap()))
            .order_field(Some("max:1".parse().unwrap()))
    };
    let reading = read_with("a.csv", table, &options("key", "body"));
    assert_eq!(
        (reading.ids(), reading.texts()),
        (vec!["k1", "k2"], vec!["one", "two"])
    );
    // If the name of a column is a number, it takes precedence over the column's number.
    let reading = read_with("a.csv", table, &options("1", "2"));
    assert_eq!(
        (reading.ids(), reading.texts()),
        (vec!["k1", "k2"], vec!["no", "no"])
    );
}

#[test]
fn a_row_with_other_fields_is_bad_and_harms_no_other() {
    let reading = read_table("a.csv", b"id,text\n1,one\n2,two,three\n3\n4,four\n");
    assert_eq!(reading.ids(), ["1", "4"]);
    assert_eq!(reading.reasons().len(), 2);
    let bad = reading.records[1].as_ref().unwrap_err();
    assert_eq!(
        (bad.kind, bad.place().as_str()),
        (BadRecordKind::Fields, "record 2")
    );
    assert_eq!(bad.reason, "the row has 3 fields, the first row 2");
}

#[test]
fn a_row_that_is_too_long_is_passed_over() {
    let options = InputOptions::default().max_document_bytes(100);
    let table = format!("id,text\n1,\"{}\"\n2,short\n", "x,\n".repeat(500_000));
    let reading = read_with("a.csv", table.as_bytes(), &options);
    let states: Vec<TextState> = reading.records.iter().flatten().map(|s| s.state).collect();
    assert_eq!(states, [TextState::TooLong, TextState::Present]);
    assert_eq!(reading.texts()[1], "short");
}

#[test]
fn a_header_that_was_too_long_was_a_panic() {
    let wide = format!("{}\nx,y\n", vec!["abc"; 100_000].join(","));
    let options = InputOptions::default().max_document_bytes(100);
    let long = format!("id,{}\n1,one\n", "text".repeat(5_000));
    for (table, options) in [(wide, &InputOptions::default()), (long, &options)] {
        let reading = read_with("a.csv", table.as_bytes(), options);
        assert_eq!(
            reading.reasons(),
            ["the first row is too long to name the columns"; 2]
        );
    }
}

/// Regression test: a row of fewer bytes than the first buffer never counted as too long.
#[test]
fn a_short_row_can_be_longer_than_the_limit() {
    let long = "ab ".repeat(60);
    let options = InputOptions::default().max_document_bytes(100);
    let table = format!("id,text\nx,{long}\ny,short\n");
    let reading = read_with("a.csv", table.as_bytes(), &options);
    let states: Vec<TextState> = reading.records.iter().flatten().map(|s| s.state).collect();
    assert_eq!(states, [TextState::TooLong, TextState::Present]);
    // It is copied with all its contents; only `{}` used to be left of it.
    let corpus = Corpus::with("a.csv", table.as_bytes());
    let raw = read_raw(&corpus.inputs("a.csv", &options), &options);
    let kept = String::from_utf8(raw[0].bytes.clone()).unwrap();
    assert_eq!(kept, format!(r#"{{"id":"x","text":"{long}"}}"#));
}

#[test]
fn rows_that_are_no_utf8_are_decoded_and_counted() {
    let reading = read_table("a.csv", b"id,text\n1,a\xffb\n2,fine\n");
    let replaced: Vec<bool> = reading
        .records
        .iter()
        .flatten()
        .map(|s| s.replaced)
        .collect();
    assert_eq!(replaced, [true, false]);
    assert_eq!(reading.texts()[0], "a\u{ff}b");
    // Regression test: in windows-1251 all letters became U+FFFD, and records of words with the same lengths counted as copies.
    let texts = [
        "Паром пришёл в гавань поздно вечером, когда рыбаки уже спали.",
        "Утром на площади открылся рынок, и дети купили свежий хлеб.",
    ];
    let table = format!("id,text\n1,\"{}\"\n2,\"{}\"\n", texts[0], texts[1]);
    let (table, _, _) = encoding_rs::WINDOWS_1251.encode(&table);
    assert_eq!(read_table("b.csv", &table).texts(), texts);
    // JSON lines that are not UTF-8 are read as windows-1252, so that different lines stay different.
    let lines = texts
        .map(|text| format!("{{\"text\":\"{text}\"}}\n"))
        .concat();
    let (lines, _, _) = encoding_rs::WINDOWS_1251.encode(&lines);
    let found = read_table("b.jsonl", &lines);
    assert!(found.texts()[0].starts_with("\u{cf}\u{e0}\u{f0}\u{ee}\u{ec} "));
    assert_ne!(found.texts()[0], found.texts()[1]);
}

#[test]
fn bzip2_and_xz_of_several_streams() {
    let lines = [
        "{\"id\":1,\"text\":\"one\"}\n",
        "{\"id\":2,\"text\":\"two\"}\n",
    ];
    let bzip2 = |line: &str| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(line.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let xz = |line: &str| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(line.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for (name, bytes) in [
        ("a.jsonl.bz2", lines.map(bzip2).concat()),
        ("a.jsonl.xz", lines.map(xz).concat()),
    ] {
        let reading = read_table(name, &bytes);
        assert_eq!(reading.texts(), ["one", "two"], "{name}");
        let cut = read_table(name, &bytes[..bytes.len() - 3]);
        assert_eq!(cut.skips.len(), 1, "{name}");
        assert_eq!(cut.texts()[0], "one", "{name}");
    }
}

/// Regression test: all rows after it silently became part of one text.
#[test]
fn a_quote_that_is_never_closed_swallowed_all_rows_behind_it() {
    for ending in ["", "\n", "\n5\tfive"] {
        let table = format!("id\ttext\n1\tone\n2\t\"two\n3\tthree\n4\tfour{ending}");
        let reading = read_table("a.tsv", table.as_bytes());
        let bad = reading.records[1].as_ref().unwrap_err();
        assert_eq!(bad.kind, BadRecordKind::BrokenRun);
        assert!(bad.reason.contains("never closed"), "{}", bad.reason);
        assert_eq!((reading.records.len(), reading.texts()), (2, vec!["one"]));
    }
    // A quote within a field opens nothing, and a quote may be closed by the very last byte.
    for table in [
        "id,text\n1,5\" pipe",
        "id,text\n1,\"5\"\" pipe\"",
        "id,text\n1,\"one\"\n",
    ] {
        assert_eq!(
            read_table("a.csv", table.as_bytes()).texts().len(),
            1,
            "{table}"
        );
    }
    // Also in the first row, which names the columns.
    let reading = read_table("a.csv", b"id,\"text\n1,one\n");
    assert_eq!(
        reading.records[0].as_ref().unwrap_err().kind,
        BadRecordKind::BrokenRun
    );
}

#[test]
fn columns_of_one_name_are_numbered_and_no_number_is_taken_twice() {
    let columns = |header: &str| -> Vec<String> {
        let values = vec!["x"; header.split(',').count()].join(",");
        let table = format!("{header}\n{values}\n");
        let corpus = Corpus::with("a.csv", table.as_bytes());
        let options = InputOptions::default();
        let raw = read_raw(&corpus.inputs("a.csv", &options), &options);
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&raw[0].bytes).unwrap();
        object.keys().cloned().collect()
    };
    assert_eq!(
        columns("id,text,text,text"),
        ["id", "text", "text_1", "text_2"]
    );
    assert_eq!(columns("a,a,a_1"), ["a", "a_1", "a_2"]);
    assert_eq!(columns("a, a ,b"), ["a", "a_1", "b"]);
}

#[test]
fn a_nul_in_an_early_row_lost_the_whole_table() {
    let reading = read_table("a.csv", b"id,text\n1,one\n2,tw\0o\n");
    assert_eq!(reading.texts(), ["one", "tw\0o"]);
    let reading = read_table("a.tsv.gz", &gzip(b"id\ttext\n1\to\0ne\n"));
    assert_eq!(reading.texts(), ["o\0ne"]);
    assert_eq!(read_table("a.html", b"<p>o\0ne</p>").records.len(), 1);
    // Zeros in place of an upload hold no table, and all its rows are missing.
    let corpus = Corpus::with("a.csv.gz", &[0; 20_000]);
    corpus.add("b.html", b"GIF89a\0");
    corpus.add("c.txt", b"a text");
    let skips = corpus.inputs("", &InputOptions::default()).skips;
    let kinds: Vec<SkipKind> = skips.iter().map(|skip| skip.kind).collect();
    assert_eq!(kinds, [SkipKind::Unreadable, SkipKind::Binary]);
}
