//! Every byte of a source can be restored from the visited pieces.

use lookalike_corpus::{ExactPiece, InputOptions, Inputs, ReadError, exact_pieces};
use proptest::prelude::*;

use crate::support::{Corpus, gzip, read, zstd};

/// Joins the bytes of each source, and those of its records by number.
fn put_together(inputs: &Inputs, options: &InputOptions) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut sources = vec![(Vec::new(), Vec::new()); inputs.sources.len()];
    exact_pieces::<ReadError>(inputs, options, &mut |piece: ExactPiece<'_>| {
        let (whole, records): &mut (Vec<u8>, Vec<Vec<u8>>) = &mut sources[piece.source as usize];
        assert_eq!(
            piece.offset,
            whole.len() as u64,
            "pieces follow one another"
        );
        whole.extend_from_slice(piece.bytes);
        if piece.begins {
            assert_eq!(piece.record, Some(records.len() as u64));
            records.push(Vec::new());
        }
        if let Some(number) = piece.record {
            assert_eq!(number + 1, records.len() as u64);
            records.last_mut().unwrap().extend_from_slice(piece.bytes);
        }
        Ok(())
    })
    .unwrap();
    sources
}

/// Generates lines: records, blank and over-long ones, and line ends of every kind.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(b"{\"id\":\"a\",\"text\":\"b c\"}".to_vec()),
        Just(b"no json".to_vec()),
        Just(b" \t".to_vec()),
        Just(Vec::new()),
        prop::collection::vec(prop_oneof![Just(b' '), Just(b'x'), Just(b'\r')], 0..200),
    ];
    let end = prop::sample::select(vec!["\n", "\r\n", "\n\n"]);
    let rest = prop::sample::select(vec!["", "{}", "\r", "\u{feff}"]);
    let mark = prop::sample::select(vec!["", "\u{feff}"]);
    (mark, prop::collection::vec((line, end), 0..20), rest).prop_map(|(mark, lines, rest)| {
        let mut bytes = mark.as_bytes().to_vec();
        for (line, end) in lines {
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(end.as_bytes());
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    })
}

proptest! {
    #[test]
    fn every_byte_of_lines_comes_back(
        bytes in lines(),
        chunk_bytes in prop::sample::select(vec![1_usize, 7, 64, 1 << 20]),
        max_document_bytes in prop::sample::select(vec![3_u64, 40, 1 << 20]),
        packed in any::<bool>(),
    ) {
        let corpus = Corpus::new();
        let (name, stored) = match packed {
            true => ("a.jsonl.gz", gzip(&bytes)),
            false => ("a.jsonl", bytes.clone()),
        };
        corpus.add(name, &stored);
        let options = InputOptions::default().chunk_bytes(chunk_bytes).max_document_bytes(max_document_bytes);
        let inputs = corpus.inputs(name, &options);
        let (whole, records) = put_together(&inputs, &options).swap_remove(0);
        prop_assert_eq!(&whole, &bytes);
        let reading = read(&inputs, &options);
        prop_assert_eq!(records.len(), reading.records.len());
        for seen in reading.records.iter().flatten() {
            prop_assert!(records[seen.number as usize].starts_with(&seen.raw));
        }
    }
}

#[test]
fn files_come_back_decompressed_and_empty_ones_too() {
    let corpus = Corpus::new();
    let long: Vec<u8> = (0..3_000_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
    let files = [
        ("a.txt", &b"a rose is a rose"[..]),
        ("b.txt", b""),
        ("c.txt.zst", b"packed"),
        ("d.html.gz", &long),
    ];
    for (name, bytes) in files {
        let stored = match name.rsplit_once('.').unwrap().1 {
            "zst" => zstd(bytes),
            "gz" => gzip(bytes),
            _ => bytes.to_vec(),
        };
        corpus.add(name, &stored);
    }
    let options = InputOptions::default();
    let inputs = corpus.inputs("", &options);
    assert_eq!(inputs.sources.len(), files.len());
    for ((whole, records), (name, bytes)) in put_together(&inputs, &options).iter().zip(files) {
        assert_eq!((&**whole, records.len()), (bytes, 1), "{name}");
    }
}

#[test]
fn sources_that_cannot_come_back_are_no_exact_ones() {
    let corpus = Corpus::new();
    corpus.add("a.csv", b"id,text\n1,one\n");
    corpus.add("b.json", b"[{\"id\":1,\"text\":\"one\"}]");
    corpus.add("c.jsonl", b"{\"id\":1,\"text\":\"one\"}\n");
    let options = InputOptions::default();
    let inputs = corpus.inputs("", &options);
    let exact: Vec<bool> = inputs
        .sources
        .iter()
        .map(|source| source.is_exact())
        .collect();
    assert_eq!(exact, [false, false, true]);
    let visited = put_together(&inputs, &options);
    assert!(visited[..2].iter().all(|(whole, _)| whole.is_empty()));
}
