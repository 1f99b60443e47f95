//! JSONL as it comes: what is a record, what it holds, what is wrong with it.

use lookalike_corpus::{BadKind, InputOptions, TextState};

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
            (1, 3, 14, BadKind::InvalidJson),
            (2, 4, 23, BadKind::NotAnObject),
            (3, 5, 27, BadKind::WrongType),
            (4, 6, 39, BadKind::InvalidJson),
            (5, 7, 54, BadKind::NotAnObject),
            (6, 8, 59, BadKind::WrongType),
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
