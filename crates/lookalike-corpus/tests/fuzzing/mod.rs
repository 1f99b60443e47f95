//! Fuzzing of the readers and the HTML extraction, which must accept any bytes.
//!
//! [`run`] passes bytes to one target and checks what holds for all input: no panic, every record is reported once, both readings agree, the cuts
//! between chunks change nothing, and no allocation is larger than such bytes can need. Two programs use it: the tests, with a mutator that draws the
//! same inputs every time ([`mutate`]), and libFuzzer (`fuzz/` of the repository), which tracks the covered code, and the time and memory of every
//! input.

pub(crate) mod allocation;
pub(crate) mod mutate;
pub(crate) mod seeds;

use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use lookalike::Extraction;
use lookalike_corpus::{
    Format, HtmlText, InputOptions, Inputs, Parser, ReadError, RecordChunk, charset, raw_records,
};
use xxhash_rust::xxh3::Xxh3;

/// A reader or converter to fuzz.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// The name of the file from which the bytes are read, and its format; `None` if there is no file.
    file: Option<(&'static str, Option<Format>)>,
}

const fn file(name: &'static str, file: &'static str, format: Option<Format>) -> Target {
    Target {
        name,
        file: Some((file, format)),
    }
}

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "html",
        file: None,
    },
    Target {
        name: "main",
        file: None,
    },
    Target {
        name: "charset",
        file: None,
    },
    // Any format: name and content decide.
    file("sniff", "anything", None),
    file("jsonl", "a.jsonl", Some(Format::Jsonl)),
    file("csv", "a.csv", Some(Format::Csv)),
    file("warc", "a.warc", Some(Format::Warc)),
    file("wat", "a.wat", Some(Format::Wat)),
    file("arc", "a.arc", Some(Format::Arc)),
    file("packed", "a.warc.gz", Some(Format::Warc)),
    file("bzip2", "a.jsonl.bz2", Some(Format::Jsonl)),
    file("xz", "a.jsonl.xz", Some(Format::Jsonl)),
    #[cfg(feature = "pdf")]
    file("pdf", "a.pdf", Some(Format::Pdf)),
    #[cfg(feature = "parquet")]
    file("parquet", "a.parquet", Some(Format::Parquet)),
    #[cfg(feature = "parquet")]
    file("arrow", "a.arrow", Some(Format::Arrow)),
];

/// Passes the bytes to a target. `folder` receives the file from which they are read.
///
/// # Panics
/// Panics if a promise is broken, which is its purpose.
pub(crate) fn run(target: Target, bytes: &[u8], folder: &Path) {
    allocation::largest();
    obey(target, bytes, folder);
    let largest = allocation::largest().max(allocation::beyond());
    assert!(
        largest <= allocation::MAX_ALLOCATION,
        "{} bytes at once",
        largest
    );
}

fn obey(target: Target, bytes: &[u8], folder: &Path) {
    match (target.name, target.file) {
        (_, Some((name, format))) => read(&folder.join(name), format, bytes),
        ("charset", _) => decode(bytes),
        ("main", _) => extract(bytes, &["main/1", "main/1+title+alt+links"]),
        _ => extract(bytes, &["visible", "fast/1", "fast/1+title+alt+links"]),
    }
}

/// Extracts a page in some modes, and checks that the text is valid and reproducible.
fn extract(bytes: &[u8], modes: &[&str]) {
    let page = String::from_utf8_lossy(bytes);
    for mode in modes {
        let extraction: Extraction = mode.parse().expect("a mode");
        let mut extractor = HtmlText::new(extraction).expect("built in");
        let (mut once, mut again) = (String::new(), String::from("before"));
        extractor.extract(&page, &mut once);
        extractor.extract(&page, &mut again);
        assert_eq!(again.strip_prefix("before"), Some(once.as_str()), "{mode}");
    }
}

fn decode(bytes: &[u8]) {
    for html in [false, true] {
        let decoded = charset::decode(bytes, html);
        assert_eq!(charset::decode(bytes, html), decoded);
        if let Some(declared) = charset::declared(bytes) {
            charset::decode_declared(bytes, html, Some(declared));
        }
    }
}

/// Reads a file in small chunks and in large ones: parses both, and reads the first also as raw records.
fn read(path: &Path, format: Option<Format>, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file of our own");
    let options = InputOptions::default()
        .format(format)
        .max_document_bytes(1 << 16)
        .chunk_bytes(1 << 10);
    let folder = path.parent().expect("in a folder");
    let Ok(inputs) = Inputs::discover(&[path.into()], &options, folder) else {
        return;
    };
    let small = parse(&inputs, &options);
    let mut raw = 0;
    raw_records::<ReadError>(&inputs, &options, &mut |record| {
        raw += u64::from(record.part.begins());
        Ok(())
    })
    .expect("nothing but damage");
    assert_eq!(raw, small.records, "both readings number alike");
    let large = options.chunk_bytes(1 << 20);
    assert_eq!(parse(&inputs, &large), small, "chunks change nothing");
}

/// The result of a reading.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    records: u64,
    hash: u64,
}

fn parse(inputs: &Inputs, options: &InputOptions) -> Reading {
    let mut parser = Parser::new(inputs, options);
    let (mut records, mut hasher) = (0, Xxh3::new());
    for chunk in inputs.chunks(options) {
        let chunk: RecordChunk = chunk.expect("nothing but damage");
        let before = records;
        parser.parse(&chunk, &mut |record| {
            records += 1;
            match record {
                Ok(record) => {
                    assert_eq!(record.number + 1, records);
                    (record.offset, &record.id, &record.text).hash(&mut hasher);
                }
                Err(bad) => {
                    assert_eq!(bad.number + 1, records);
                    (bad.offset, bad.kind, &bad.reason).hash(&mut hasher);
                }
            }
        });
        assert_eq!(records - before, chunk.records, "every record is told");
    }
    Reading {
        records,
        hash: hasher.finish(),
    }
}
