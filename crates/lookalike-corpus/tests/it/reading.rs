//! JSONL: which lines are records, their contents, and their errors.

use lookalike_corpus::{BadRecordKind, Format, InputOptions, TextState};

use crate::support::{Corpus, Reading, gzip, read, read_raw, zstd};

fn parse(bytes: &[u8], options: &InputOptions) -> Reading {
    let corpus = Corpus::with("a.jsonl", bytes);
    read(&corpus.inputs("a.jsonl", options), options)
}

#[test]
fn lines_are_records() {
    let reading = parse(
        b"\xef\xbb\xbf{\"id\":\"x\",\"text\":\"one\"}\r\n\n \t\r\n{\"text\":\"two\"}\n{\"id\":7,\"text\":null}",
        &InputOptions::default(),
    );
    assert_eq!(reading.texts(), ["one", "two", ""]);
    assert_eq!(reading.blank_lines, 2);
    assert_eq!(reading.ids()[0], "x");
    assert!(reading.ids()[1].ends_with("a.jsonl:2"));
    assert_eq!(reading.ids()[2], "7");
    let states: Vec<_> = reading
        .records
        .iter()
        .flatten()
        .map(|seen| seen.state)
        .collect();
    assert_eq!(
        states,
        [TextState::Present, TextState::Present, TextState::Missing]
    );
    let offsets: Vec<_> = reading
        .records
        .iter()
        .flatten()
        .map(|seen| seen.offset)
        .collect();
    assert_eq!(offsets, [3, 33, 48]);
}

#[test]
fn a_bad_line_is_named_and_harms_no_other() {
    let reading = parse(
        b"{\"text\":\"a\"}\n\n{\"text\":\n[1]\n{\"text\":{}}\n{\"text\":\"a\"} x\nnull\n{\"id\":[],\"text\":\"a\"}\n{\"text\":\"b\"}\n",
        &InputOptions::default(),
    );
    assert_eq!(reading.texts(), ["a", "b"]);
    let bad: Vec<_> = reading
        .records
        .iter()
        .filter_map(|record| record.clone().err())
        .collect();
    let places: Vec<_> = bad
        .iter()
        .map(|bad| (bad.number, bad.line, bad.offset, bad.kind))
        .collect();
    assert_eq!(
        places,
        [
            (1, 3, 14, BadRecordKind::InvalidJson),
            (2, 4, 23, BadRecordKind::NotAnObject),
            (3, 5, 27, BadRecordKind::WrongType),
            (4, 6, 39, BadRecordKind::InvalidJson),
            (5, 7, 54, BadRecordKind::NotAnObject),
            (6, 8, 59, BadRecordKind::WrongType),
        ]
    );
    assert!(
        bad[0].reason.starts_with("invalid JSON at column 8"),
        "{}",
        bad[0].reason
    );
    assert_eq!(bad[1].reason, "the line holds an array, not an object");
    assert_eq!(
        bad[2].reason,
        "the text field holds an object, not a string"
    );
    assert_eq!(
        bad[5].reason,
        "the id field holds an array, not a string or number"
    );
}

#[test]
fn compressed_members_are_one_stream() {
    let options = InputOptions::default();
    let lines: [&[u8]; 3] = [
        b"{\"text\":\"a\"}\n{\"te",
        b"xt\":\"b\"}\n",
        b"{\"text\":\"c\"}",
    ];
    for (name, packed) in [
        ("a.jsonl.gz", lines.map(gzip).concat()),
        ("a.jsonl.zst", lines.map(zstd).concat()),
    ] {
        let corpus = Corpus::with(name, &packed);
        let inputs = corpus.inputs(name, &options);
        assert_eq!(read(&inputs, &options).texts(), ["a", "b", "c"]);
        let raw = read_raw(&inputs, &options);
        assert_eq!(raw[1].bytes, b"{\"text\":\"b\"}");
        assert_eq!((raw[1].end, raw[2].end), (&b"\n"[..], &b""[..]));
    }
}

#[test]
fn a_file_without_objects_was_an_array_that_is_not_closed() {
    let options = InputOptions::default().format(Some(Format::Json));
    for bytes in [&b""[..], b"\xef\xbb\xbf", b" \r\n"] {
        let reading = parse(bytes, &options);
        assert!(reading.records.is_empty() && reading.skips.is_empty());
    }
    assert_eq!(parse(b"[", &options).skips.len(), 1);
}

#[test]
fn ids_are_strings_or_numbers_as_written() {
    let reading = parse(
        b"{\"id\":1,\"text\":\"\"}\n{\"id\":\"1\",\"text\":\"\"}\n{\"id\":123456789012345678901234567890,\"text\":\"\"}\n\
          {\"id\":null,\"url\":\"http://a/\",\"text\":\"\"}\n{\"url\":\"u\\u00e9\",\"text\":\"\"}\n{\"id\":1.50,\"text\":\"\"}\n",
        &InputOptions::default(),
    );
    let big = "123456789012345678901234567890";
    assert_eq!(
        reading.ids(),
        ["1", "1", big, "http://a/", "u\u{e9}", "1.50"]
    );
}

#[test]
fn the_last_of_duplicate_names_wins() {
    let reading = parse(
        b"{\"id\":1,\"text\":\"a\",\"id\":2,\"text\":\"b\"}\n{\"text\":[],\"text\":\"c\\n\"}\n{\"text\":\"d\",\"text\":null}\n{\"id\":1,\"id\":null,\"text\":\"e\"}\n",
        &InputOptions::default(),
    );
    assert_eq!(reading.texts(), ["b", "c\n", "", "e"]);
    assert_eq!(reading.ids()[0], "2");
    assert!(reading.ids()[3].ends_with(":4"));
}

#[test]
fn fields_are_found_by_path() {
    let options = InputOptions::default()
        .id_field(Some("meta.key".parse().unwrap()))
        .text_field(Some("meta.body.en".parse().unwrap()))
        .order_field(Some("newest:meta".parse().unwrap()));
    let line = br#"{"x":{"body":{"en":"no"}},"meta":{"key":"k","body":{"de":"nein","en":"yes \"\u00e9\""}},"text":"no"}"#;
    let reading = parse(line, &options);
    assert_eq!(
        (reading.ids()[0], reading.texts()[0]),
        ("k", "yes \"\u{e9}\"")
    );
    let dotted = InputOptions::default().text_field(Some(r"dc\.title".parse().unwrap()));
    assert_eq!(
        parse(br#"{"dc.title":"t","dc":{"title":"no"}}"#, &dotted).texts(),
        ["t"]
    );
    // A later value of the outer name replaces everything below it.
    let nested = InputOptions::default().text_field(Some("a.b".parse().unwrap()));
    let replaced = parse(br#"{"a":{"b":"x"},"a":7}"#, &nested);
    assert_eq!(
        replaced.records[0].as_ref().unwrap().state,
        TextState::Missing
    );
}

#[test]
fn html_is_extracted_when_there_is_no_text() {
    let lines = b"{\"html\":\"<p>a<script>x</script></p><p>b\"}\n{\"text\":\"<p>\",\"html\":\"no\"}\n{\"text\":null,\"html\":\"<b>c\\n\"}\n";
    assert_eq!(
        parse(lines, &InputOptions::default()).texts(),
        ["a\n\nb", "<p>", "c"]
    );
    let by_name = InputOptions::default().text_field(Some("page.html".parse().unwrap()));
    assert_eq!(
        parse(br#"{"page":{"html":"<i>x</i>"}}"#, &by_name).texts(),
        ["x"]
    );
}

#[test]
fn ranks_come_with_the_record() {
    let options = InputOptions::default().order_field(Some("newest:id".parse().unwrap()));
    let lines = b"{\"id\":5,\"text\":\"\"}\n{\"id\":\"1970-01-01T00:01:00Z\",\"text\":\"\"}\n{\"text\":\"\"}\n";
    let reading = parse(lines, &options);
    let ranks: Vec<_> = reading
        .records
        .iter()
        .flatten()
        .map(|seen| seen.rank)
        .collect();
    assert_eq!(ranks, [Some(5.0), Some(60.0), None]);
}

#[test]
fn broken_characters_are_read_otherwise_and_told() {
    let cases: [(&[u8], &str, bool); 8] = [
        (b"{\"text\":\"a\xffb\"}", "a\u{ff}b", true),
        (
            "{\"text\":\"\u{430}\u{431}\u{432}\u{433} ?\"}".as_bytes(),
            "\u{430}\u{431}\u{432}\u{433} ?",
            false,
        ),
        (
            b"{\"text\":\"\xd0\xb0\xd0\xb1\xd0\xb2\xd0\xb3 \xff\"}",
            "\u{430}\u{431}\u{432}\u{433} \u{fffd}",
            true,
        ),
        (b"{\"text\":\"\\ud800x\"}", "\u{fffd}x", true),
        (b"{\"\\udc00\":1,\"text\":\"x\"}", "x", true),
        (b"{\"skipped\":\"\\ud800\",\"text\":\"x\"}", "x", false),
        (
            b"{\"text\":\"\\ud83d\\ude00\\\\ud800\"}",
            "\u{1f600}\\ud800",
            false,
        ),
        (b"{\"text\":\"\\u0000\"}", "\0", false),
    ];
    for (line, text, replaced) in cases {
        let reading = parse(line, &InputOptions::default());
        let seen = reading.records[0].as_ref().unwrap();
        assert_eq!((seen.text.as_str(), seen.replaced), (text, replaced));
    }
    // An invalid line does not affect its neighbours.
    let reading = parse(
        b"{\"text\":\"a\"}\n{\"text\":\"\xff\"}\n",
        &InputOptions::default(),
    );
    let replaced: Vec<_> = reading
        .records
        .iter()
        .flatten()
        .map(|seen| seen.replaced)
        .collect();
    assert_eq!(replaced, [false, true]);
}

#[test]
fn an_id_with_lone_surrogates_is_mended() {
    let reading = parse(
        b"{\"id\":\"\\ud800\",\"text\":\"\"}",
        &InputOptions::default(),
    );
    assert_eq!(reading.ids(), ["\u{fffd}"]);
    assert!(reading.records[0].as_ref().unwrap().replaced);
}

#[test]
fn great_depth_and_great_numbers_do_no_harm() {
    let deep = |field: &str| {
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        format!("{{\"{field}\":{open}{close},\"text\":\"x\"}}\n")
    };
    let lines = [
        deep("other"),
        deep("text"),
        deep("id"),
        format!("{{\"a\":{}\"text\":1", "{\"b\":".repeat(100_000)),
        "\n{\"n\":1e999,\"m\":-123456789012345678901234567890,\"text\":\"y\"}\n".to_owned(),
        "{\"n\":NaN,\"text\":\"z\"}\n".to_owned(),
    ];
    let reading = parse(lines.concat().as_bytes(), &InputOptions::default());
    assert_eq!(reading.texts(), ["x", "x", "y"]);
    let kinds: Vec<_> = reading
        .records
        .iter()
        .filter_map(|record| record.as_ref().err().map(|bad| bad.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            BadRecordKind::WrongType,
            BadRecordKind::InvalidJson,
            BadRecordKind::InvalidJson
        ]
    );
}

#[test]
fn an_over_long_line_is_one_record_without_text() {
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(5000));
    let all = format!("{{\"text\":\"a\"}}\n{long}\r\n{{\"text\":\"b\"}}\n{long}");
    let options = InputOptions::default()
        .max_document_bytes(1000)
        .chunk_bytes(64);
    let corpus = Corpus::with("a.jsonl", all.as_bytes());
    let inputs = corpus.inputs("a.jsonl", &options);
    let reading = read(&inputs, &options);
    assert_eq!(reading.texts(), ["a", "", "b", ""]);
    assert_eq!(
        reading.records[1].as_ref().unwrap().state,
        TextState::TooLong
    );
    assert!(reading.ids()[1].ends_with(":2"));
    let raw = read_raw(&inputs, &options);
    assert_eq!(raw.len(), 4);
    assert_eq!(
        (raw[1].bytes.as_slice(), raw[1].end),
        (long.as_bytes(), &b"\r\n"[..])
    );
    assert_eq!(raw[3].bytes, long.as_bytes());
    for chunk in inputs.chunks(&options) {
        assert!(chunk.unwrap().bytes.len() < 2100, "the long line was held");
    }
}

#[test]
fn the_parser_does_not_remember() {
    let options = InputOptions::default();
    let reading = parse(
        b"{\"id\":1,\"text\":\"a\\nb\"}\n{}\n{\"text\":\"c\"",
        &options,
    );
    assert_eq!(
        reading.records[1].as_ref().unwrap().state,
        TextState::Missing
    );
    assert_eq!(reading.texts(), ["a\nb", ""]);
    assert_eq!(reading.reasons().len(), 1);
}
