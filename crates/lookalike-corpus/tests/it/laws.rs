//! Properties that hold for any bytes.

use lookalike::HtmlMode;
use lookalike_corpus::{HtmlText, InputOptions, charset};
use proptest::prelude::*;

use crate::support::{Corpus, Reading, read, read_raw};

/// Generates bytes that sometimes look like JSONL. None start like gzip, which would be detected whatever the name of the file.
fn some_lines() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"{\"text\":\"a b\"}".to_vec()),
        Just(b"{\"id\":3,\"text\":\"\\ud800\\n\"}".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b" \t".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"[[[".to_vec()),
        Just(vec![b' '; 40]),
        proptest::collection::vec(any::<u8>(), 0..12),
        "\\{\"text\":\"[ -~]{0,60}\"\\}\n".prop_map(String::into_bytes),
    ];
    let lines = proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    lines.prop_filter("begins as gzip does", |bytes| {
        !bytes.starts_with(b"\x1f\x8b")
    })
}

fn some_html() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "</?[a-z]{1,4}[ /]?>",
        Just("<script>".to_owned()),
        Just("</script>".to_owned()),
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<pre>\n".to_owned()),
        Just("<svg><![CDATA[".to_owned()),
        Just("&amp".to_owned()),
        Just("&#x".to_owned()),
        Just(" \n".to_owned()),
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn options(chunk_bytes: usize, max_document_bytes: u64) -> InputOptions {
    InputOptions::default()
        .chunk_bytes(chunk_bytes)
        .max_document_bytes(max_document_bytes)
}

fn read_in(bytes: &[u8], options: &InputOptions) -> Reading {
    let corpus = Corpus::with("a.jsonl", bytes);
    let mut reading = read(&corpus.inputs("a.jsonl", options), options).placeless();
    // Generated ids contain the directory of the test.
    for seen in reading.records.iter_mut().flatten() {
        seen.id = seen.id.rsplit('/').next().unwrap_or("").to_owned();
    }
    reading
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn chunks_do_not_change_the_records(
        bytes in some_lines(), chunk_bytes in 1usize..200, max in 0u64..100,
    ) {
        let whole = read_in(&bytes, &options(1 << 20, max));
        prop_assert_eq!(read_in(&bytes, &options(chunk_bytes, max)), whole);
    }

    #[test]
    fn both_readings_number_alike(
        bytes in some_lines(), chunk_bytes in 1usize..200, max in 0u64..100,
    ) {
        let options = options(chunk_bytes, max);
        let corpus = Corpus::with("a.jsonl", &bytes);
        let inputs = corpus.inputs("a.jsonl", &options);
        let raw = read_raw(&inputs, &options);
        let parsed = read(&inputs, &options);
        prop_assert_eq!(raw.len(), parsed.records.len());
        for (raw, parsed) in raw.iter().zip(&parsed.records) {
            match parsed {
                Ok(seen) => {
                    prop_assert_eq!((raw.source, raw.number), (seen.source, seen.number));
                    prop_assert!(seen.raw.is_empty() || seen.raw == raw.bytes);
                }
                Err(bad) => prop_assert_eq!((raw.source, raw.number), (bad.source, bad.number)),
            }
        }
    }

    /// Compares with an independent definition of which lines are records.
    #[test]
    fn records_are_the_lines_that_are_not_blank(bytes in some_lines(), max in 0u64..100) {
        let options = options(7, max);
        let corpus = Corpus::with("a.jsonl", &bytes);
        let raw = read_raw(&corpus.inputs("a.jsonl", &options), &options);
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let mut expected: Vec<&[u8]> = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let content = line.strip_suffix(b"\r\n").or(line.strip_suffix(b"\n")).unwrap_or(line);
            let blank = content.iter().all(|byte| b" \t\r".contains(byte));
            if !blank || content.len() as u64 > max {
                expected.push(content);
            }
        }
        let found: Vec<&[u8]> = raw.iter().map(|raw| raw.bytes.as_slice()).collect();
        prop_assert_eq!(found, expected);
    }

    /// The picked fields equal those in a tree of the whole object.
    #[test]
    fn fields_are_those_of_the_whole_object(
        text in any::<String>(), id in any::<String>(), junk in any::<String>(), ascii in any::<bool>(),
    ) {
        let object = serde_json::json!({
            "junk": [junk.clone(), {"text": junk}], "text": text, "id": id, "n": 1.5,
        });
        let mut line = object.to_string();
        if ascii {
            line = line.chars().map(escape).collect();
        }
        let reading = read_in(line.as_bytes(), &InputOptions::default());
        let seen = reading.records[0].as_ref().unwrap();
        prop_assert_eq!(&seen.text, &text);
        prop_assert_eq!(&seen.id, &id.rsplit('/').next().unwrap_or(""));
        prop_assert!(!seen.replaced);
    }

    #[test]
    fn any_page_has_a_text(page in some_html()) {
        let mut text = String::new();
        HtmlText::new(HtmlMode::Visible.into()).unwrap().extract(&page, &mut text);
        prop_assert!(!text.ends_with(' '));
        // References can grow: `&nGt;` has five bytes, and its value six.
        prop_assert!(text.len() <= 2 * page.len() + 2);
    }

    #[test]
    fn any_file_can_be_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..400), html: bool) {
        let decoded = charset::decode(&bytes, html);
        prop_assert_eq!(&charset::decode(&bytes, html), &decoded);
        if let Ok(text) = std::str::from_utf8(&bytes)
            && !text.starts_with('\u{feff}')
            && (!html || charset::declared(&bytes).is_none())
        {
            prop_assert_eq!(decoded.text, text);
        }
    }
}

/// Returns the character as a JSON escape, as other programs may write it.
fn escape(c: char) -> String {
    if c.is_ascii() {
        return c.to_string();
    }
    let units = c.encode_utf16(&mut [0; 2]).to_vec();
    units.iter().map(|unit| format!("\\u{unit:04X}")).collect()
}
