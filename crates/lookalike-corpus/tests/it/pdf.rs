//! PDF: files of common producers, and hostile files.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use lookalike_corpus::{BadRecordKind, InputOptions, TextState};

use crate::support::{Corpus, Reading, read, read_raw};

const STORY: [&str; 3] = [
    "The ferry left the harbour at nine with forty people on board and came back before noon. Nobody on the pier had \
     seen a thing like it, and the keeper of the lighthouse wrote it down in his book.",
    "In the afternoon the wind turned to the north. The boats that were out came in one by one, and by six the whole \
     fleet lay behind the mole.",
    "On the next day all of it was forgotten.",
];

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name),
    )
    .unwrap()
}

fn read_bytes(bytes: &[u8], options: &InputOptions) -> Reading {
    let corpus = Corpus::with("a.pdf", bytes);
    let inputs = corpus.inputs("a.pdf", options);
    let reading = read(&inputs, options);
    assert_eq!(read_raw(&inputs, options).len(), reading.records.len());
    reading
}

fn text(bytes: &[u8]) -> String {
    let reading = read_bytes(bytes, &InputOptions::default());
    reading.texts()[0].to_owned()
}

/// Returns the paragraphs, with the line ends within them replaced by spaces.
fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect()
}

#[test]
fn paragraphs_come_out_as_they_were_written() {
    for name in ["story.pdf", "packed.pdf", "turned.pdf", "owned.pdf"] {
        assert_eq!(paragraphs(&text(&fixture(name))), STORY, "{name}");
    }
    let scripts = text(&fixture("scripts.pdf"));
    let lines: Vec<&str> = scripts.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        ["Größe und Maß", "Η βάρκα έφυγε", "Паром ушёл в девять"]
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let reason = |bytes: &[u8]| {
        let reading = read_bytes(bytes, &InputOptions::default());
        let bad = reading.records[0].clone().unwrap_err();
        assert_eq!(bad.kind, BadRecordKind::Conversion);
        bad.reason
    };
    assert!(reason(&fixture("locked.pdf")).contains("encrypted with a password"));
    assert!(reason(b"%PDF-1.7\nand nothing else").contains("not a PDF, or damaged"));
}

#[test]
fn a_text_that_is_too_long_is_counted() {
    let options = InputOptions::default().max_document_bytes(100);
    // The file is longer than that, so it is never parsed.
    let reading = read_bytes(&fixture("story.pdf"), &options);
    assert_eq!(
        reading.records[0].as_ref().unwrap().state,
        TextState::TooLong
    );
    // This short file has a long text: one stream is drawn on a thousand pages.
    let content = zlib(
        format!(
            "BT /F1 9 Tf 10 10 Td ({}) Tj ET",
            "a long line ".repeat(1000)
        )
        .as_bytes(),
    );
    let bytes = pages(&content, 1000);
    let options = InputOptions::default().max_document_bytes(200_000);
    assert!(bytes.len() < 200_000);
    let reading = read_bytes(&bytes, &options);
    assert_eq!(
        reading.records[0].as_ref().unwrap().state,
        TextState::TooLong
    );
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Builds a file with `count` pages that share one content, without a cross-reference table, which readers must rebuild.
pub(crate) fn pages(content: &[u8], count: usize) -> Vec<u8> {
    let kids: String = (0..count)
        .map(|page| format!("{} 0 R ", page + 5))
        .collect();
    let mut bytes = format!(
        "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Count {count} /Kids [{kids}] >>\n\
         endobj\n3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n4 0 obj\n\
         << /Filter /FlateDecode /Length {} >>\nstream\n",
        content.len()
    )
    .into_bytes();
    bytes.extend(content);
    bytes.extend(b"\nendstream\nendobj\n");
    for page in 0..count {
        let object = format!(
            "{} 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >>\nendobj\n",
            page + 5
        );
        bytes.extend(object.into_bytes());
    }
    bytes.extend(b"trailer << /Root 1 0 R >>\n%%EOF\n");
    bytes
}

#[test]
fn damaged_and_missing_pages_vanished() {
    const DAMAGED: &str = "the contents of a page are damaged or missing";
    let reason = |bytes: &[u8]| {
        let reading = read_bytes(bytes, &InputOptions::default());
        reading.records[0].clone().unwrap_err().reason
    };
    let content = b"BT /F1 9 Tf 10 10 Td (a line) Tj ET ";
    let length = content.len() as u8;
    // A stored block, and the head of a block of a type that does not exist.
    let head = [0x78, 0x01, 0, length, 0, !length, 0xff];
    let damaged = [&head[..], content, b"\x07 and more"].concat();
    assert_eq!(reason(&pages(&damaged, 2)), DAMAGED);
    let whole = pages(&zlib(content), 3);
    let place = |word: &[u8]| whole.windows(word.len()).position(|part| part == word);
    let (last, end) = (place(b"7 0 obj"), place(b"%%EOF"));
    let cut = reason(&whole[..last.unwrap()]);
    assert_eq!(cut, "it has 2 of the 3 pages that it declares");
    let lost = String::from_utf8_lossy(&pages(content, 2)).replace("4 0 obj", "9 0 obj");
    assert_eq!(
        reason(lost.replace("/Filter /FlateDecode", "").as_bytes()),
        DAMAGED
    );
    // A file whose contents are there is read, whatever its end lacks.
    assert_eq!(text(&whole[..end.unwrap()]), text(&whole));
}

#[test]
fn files_made_to_hurt_cost_themselves_only() {
    let nested = |open: &str, close: &str| {
        let object = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        format!("%PDF-1.4\n1 0 obj\n<< /Type /Catalog /X {object} /Pages 2 0 R >>\nendobj\ntrailer << /Root 1 0 R >>").into_bytes()
    };
    // More than the limit of a stream, but less than the allocation tests in this process allow.
    let bomb = pages(&zlib(&vec![b' '; 150 << 20]), 1);
    let circle = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 \
        >>\nendobj\ntrailer << /Root 1 0 R /Prev 9 >>\nxref\n0 99999999999\n"
        .to_vec();
    let states = pages(&zlib(&b"q ".repeat(1_000_000)), 1);
    for (name, bytes) in [
        ("arrays", nested("[", "]")),
        ("dictionaries", nested("<</A", ">>")),
        ("bomb", bomb),
        ("circle", circle),
        ("states", states),
    ] {
        let clock = Instant::now();
        let reading = read_bytes(&bytes, &InputOptions::default());
        assert_eq!(reading.records.len(), 1, "{name}");
        assert!(
            clock.elapsed() < Duration::from_secs(20),
            "{name}: {:?}",
            clock.elapsed()
        );
        let kind = reading.records[0].as_ref().err().map(|bad| bad.kind);
        assert_eq!(
            kind == Some(BadRecordKind::Bomb),
            name == "bomb",
            "{name}: {kind:?}"
        );
    }
}

#[test]
fn every_cut_and_flipped_byte_is_borne() {
    let whole = fixture("story.pdf");
    let options = InputOptions::default();
    for at in (0..whole.len()).step_by(97) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x15;
        assert_eq!(read_bytes(&flipped, &options).records.len(), 1);
        assert!(read_bytes(&whole[..at.max(1)], &options).records.len() <= 1);
    }
}
