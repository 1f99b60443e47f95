//! WARC and ARC: intact, compressed in every way, damaged in every way, and as written by real crawlers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use lookalike_corpus::{BadRecordKind, InputOptions, Inputs, SkipKind, TextState};
use serde_json::Value;

use crate::support::{Corpus, Reading, gzip, read, read_raw, zstd};

/// Builds a response record about page `n`, with a `Content-Length` that is wrong by `off`.
fn record_off(n: usize, off: i64) -> Vec<u8> {
    let block = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>text {n} of a page that is no other"
    );
    let length = block.len() as i64 + off;
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{n}\r\n\
         WARC-Date: 2024-01-0{n}T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {length}\r\n\r\n{block}\r\n\r\n"
    )
    .into_bytes()
}

fn record(n: usize) -> Vec<u8> {
    record_off(n, 0)
}

fn arc_record(n: usize) -> Vec<u8> {
    let block =
        format!("HTTP/1.0 200 OK\nContent-Type: text/html\n\n<html><p>text {n} in an old archive");
    format!(
        "http://a.example/{n} 192.0.2.1 2008010{n}000000 text/html {}\n{block}\n",
        block.len()
    )
    .into_bytes()
}

fn read_bytes(name: &str, bytes: &[u8]) -> Reading {
    let options = InputOptions::default();
    let corpus = Corpus::with(name, bytes);
    let inputs = corpus.inputs(name, &options);
    let reading = read(&inputs, &options);
    let raw = read_raw(&inputs, &options);
    assert_eq!(raw.len(), reading.records.len());
    for (raw, seen) in raw.iter().zip(&reading.records) {
        let bytes = seen.as_ref().map_or(&b""[..], |seen| &seen.raw);
        assert_eq!(raw.bytes, bytes);
    }
    reading
}

/// Returns the number of bad records and damaged members.
fn losses(reading: &Reading) -> usize {
    let damaged = reading.skips.iter();
    let damaged = damaged.filter(|skip| skip.kind == SkipKind::Damaged);
    reading.reasons().len() + damaged.count()
}

#[test]
fn fields_become_the_line_of_a_record() {
    let reading = read_bytes("a.warc", &record(3));
    let seen = reading.records[0].as_ref().unwrap();
    assert_eq!(seen.id, "http://a.example/3");
    assert_eq!(seen.text.trim(), "text 3 of a page that is no other");
    let line: Value = serde_json::from_slice(&seen.raw).unwrap();
    for (field, value) in [
        ("url", "http://a.example/3"),
        ("date", "2024-01-03T00:00:00Z"),
        ("type", "response"),
        ("mime", "text/html"),
        ("charset", "UTF-8"),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert_eq!(line["status"], 200);
}

#[test]
fn pages_with_a_fault_in_their_type_were_no_texts() {
    let types = [
        "text/html charset=iso-8859-1",
        "text/html, text/html; charset=iso-8859-1",
        "\"text/html; charset=iso-8859-1\"",
        "*/*; charset=iso-8859-1",
        "unknown/unknown; charset=iso-8859-1",
        "html; charset=iso-8859-1",
        "text/plain\r\nContent-Type: text/html; charset=iso-8859-1",
    ];
    for declared in types {
        let block = [
            format!("HTTP/1.1 200 OK\r\nContent-Type: {declared}\r\n\r\n<html><p>caf").as_bytes(),
            b"\xe9 au lait",
        ]
        .concat();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        let reading = read_bytes("a.warc", &[head.as_bytes(), &block].concat());
        assert_eq!(reading.texts(), ["caf\u{e9} au lait"], "{declared}");
    }
}

#[test]
fn packed_in_every_way_the_records_are_the_same() {
    let all: Vec<Vec<u8>> = (1..=3).map(record).collect();
    let each = |pack: fn(&[u8]) -> Vec<u8>| {
        let members: Vec<Vec<u8>> = all.iter().map(|bytes| pack(bytes)).collect();
        members.concat()
    };
    let plain = read_bytes("a.warc", &all.concat());
    assert_eq!(plain.records.len(), 3);
    for (name, bytes) in [
        ("a.warc.gz", each(gzip)),
        ("a.warc.zst", each(zstd)),
        ("a.warc.gz", gzip(&all.concat())),
        ("a.warc.zst", zstd(&all.concat())),
        ("archive", all.concat()),
    ] {
        let reading = read_bytes(name, &bytes);
        assert_eq!(reading.texts(), plain.texts(), "{name}");
        assert_eq!(reading.ids(), plain.ids(), "{name}");
        assert_eq!(losses(&reading), 0, "{name}");
    }
}

/// Compresses bytes as a zstd frame that only this dictionary decompresses.
fn zstd_with(dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut encoder =
        zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, dictionary).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn nothing_was_read_of_an_archive_with_a_dictionary_in_its_first_frame() {
    // A dictionary without tables, as `zstd -D` accepts it: the records refer to its content.
    let dictionary: Vec<u8> = (4..8).flat_map(record).collect();
    let records: Vec<Vec<u8>> = (4..8).map(|n| zstd_with(&dictionary, &record(n))).collect();
    assert!(zstd::decode_all(&records[0][..]).is_err());
    let texts = read_bytes("a.warc", &dictionary);
    for frame in [dictionary.clone(), zstd(&dictionary)] {
        let mut bytes = b"\x5d\x2a\x4d\x18".to_vec();
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&frame);
        bytes.extend_from_slice(&records.concat());
        for name in ["a.warc.zst", "a"] {
            let reading = read_bytes(name, &bytes);
            assert_eq!(reading.texts(), texts.texts(), "{name}");
            assert_eq!(losses(&reading), 0, "{name}");
        }
    }
    // Lines in several frames of one stream.
    let line = |n: usize| format!("{{\"text\":\"{}\"}}\n", "a word ".repeat(n)).into_bytes();
    let mut bytes = b"\x5d\x2a\x4d\x18".to_vec();
    bytes.extend_from_slice(&(line(40).len() as u32).to_le_bytes());
    bytes.extend_from_slice(&line(40));
    for n in [40, 41] {
        bytes.extend_from_slice(&zstd_with(&line(40), &line(n)));
    }
    assert_eq!(read_bytes("a.jsonl.zst", &bytes).texts().len(), 2);
}

#[test]
fn a_dictionary_that_is_broken_or_too_long_is_no_dictionary() {
    let packed = zstd(&record(1));
    // Tables that are none, and a frame that is none.
    for (frame, length) in [
        (&b"\x37\xa4\x30\xec no tables"[..], 14),
        (&b"\x28\xb5\x2f\xfd no frame"[..], 13),
    ] {
        let mut bytes = b"\x5d\x2a\x4d\x18".to_vec();
        bytes.extend_from_slice(&u32::to_le_bytes(length));
        bytes.extend_from_slice(frame);
        assert_eq!(frame.len(), length as usize);
        bytes.extend_from_slice(&packed);
        let reading = read_bytes("a.warc.zst", &bytes);
        assert_eq!(reading.texts().len(), 1, "{frame:?}");
    }
    let reading = read_bytes(
        "a.warc.zst",
        b"\x5d\x2a\x4d\x18\xff\xff\xff\xff and no more",
    );
    assert_eq!(reading.texts().len(), 0);
}

/// Cuts an archive of three records at every byte: the records before the cut are complete, and the loss is reported once.
fn cut_everywhere(name: &str, parts: &[Vec<u8>]) {
    let whole = parts.concat();
    let ends: Vec<usize> = (1..=3).map(|n| parts[..n].concat().len()).collect();
    for cut in 1..=whole.len() {
        let reading = read_bytes(name, &whole[..cut]);
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let good = reading.texts().len();
        // Missing line feeds after an uncompressed record are not a loss, but a missing checksum is.
        assert!(good >= complete && good <= 3, "{name} cut at {cut}");
        let told = losses(&reading) > 0;
        let begun = ends.iter().take(good).max().copied().unwrap_or(0);
        assert!(
            told || cut <= begun,
            "{name} cut at {cut}: nothing was told"
        );
        assert!(reading.reasons().len() <= 1, "{name} cut at {cut}");
    }
}

#[test]
fn cut_at_every_byte() {
    let parts: Vec<Vec<u8>> = (1..=3).map(record).collect();
    cut_everywhere("a.warc", &parts);
    cut_everywhere(
        "a.warc.gz",
        &parts.iter().map(|p| gzip(p)).collect::<Vec<_>>(),
    );
    cut_everywhere(
        "a.warc.zst",
        &parts.iter().map(|p| zstd(p)).collect::<Vec<_>>(),
    );
    let parts: Vec<Vec<u8>> = (1..=3).map(arc_record).collect();
    cut_everywhere("a.arc", &parts);
    cut_everywhere(
        "a.arc.gz",
        &parts.iter().map(|p| gzip(p)).collect::<Vec<_>>(),
    );
}

#[test]
fn an_archive_of_no_bytes_was_complete() {
    for name in ["a.warc.gz", "a.warc.zst", "a.arc.gz"] {
        assert_eq!(losses(&read_bytes(name, b"")), 1, "{name}");
    }
}

#[test]
fn zeros_that_pad_an_archive_were_told_as_damage() {
    let padding = vec![0; 511];
    let rest = vec![0; 10_000];
    let packed = [gzip(&record(1)), padding, gzip(&record(2)), rest].concat();
    let reading = read_bytes("a.warc.gz", &packed);
    assert_eq!((reading.texts().len(), losses(&reading)), (2, 0));
    let second = reading.records[1].as_ref().unwrap();
    let line: Value = serde_json::from_slice(&second.raw).unwrap();
    assert_eq!(line["member"], gzip(&record(1)).len() + 511);
}

#[test]
fn members_in_a_hole_of_zeros_were_missing_in_silence() {
    let hole = vec![0; 512];
    let parts = [gzip(&record(1)), hole.clone(), gzip(&record(3))];
    let reading = read_bytes("a.warc.gz", &parts.concat());
    assert_eq!((reading.texts().len(), losses(&reading)), (2, 1));
    let reason = &reading.skips[0].reason;
    assert!(reason.contains("a hole of 512 zeros"), "{reason}");
}

#[test]
fn behind_a_broken_member_reading_goes_on() {
    let parts: Vec<Vec<u8>> = (1..=3).map(|n| gzip(&record(n))).collect();
    let (start, end) = (parts[0].len(), parts[0].len() + parts[1].len());
    for at in start..end {
        let mut broken = parts.concat();
        broken[at] ^= 0x55;
        let reading = read_bytes("a.warc.gz", &broken);
        let ids = reading.ids();
        assert_eq!(ids.first(), Some(&"http://a.example/1"), "byte {at}");
        assert_eq!(ids.last(), Some(&"http://a.example/3"), "byte {at}");
        // Nothing checks flags, time and system in the header of a member.
        let head = at - start < 10;
        assert!(head || losses(&reading) > 0, "byte {at}");
    }
}

#[test]
fn damage_in_the_first_bytes_of_an_archive_lost_all_of_it() {
    for (name, pack) in [
        ("a.warc.gz", gzip as fn(&[u8]) -> Vec<u8>),
        ("a.warc.zst", zstd),
    ] {
        let parts: Vec<Vec<u8>> = (1..=3).map(|n| pack(&record(n))).collect();
        let whole = parts.concat();
        let mut flipped = whole.clone();
        flipped[0] ^= 1;
        let zeros = [
            vec![0; parts[0].len() - 1],
            whole[parts[0].len() - 1..].to_vec(),
        ]
        .concat();
        let line = [b"\r\n", &whole[..]].concat();
        for (bytes, read) in [(flipped, 2), (zeros, 2), (line, 3)] {
            let reading = read_bytes(name, &bytes);
            assert_eq!(
                (reading.records.len(), losses(&reading)),
                (read, 1),
                "{name}"
            );
        }
    }
    // A plain archive under such a name is read all the same, also with NUL in its records.
    let page = String::from_utf8(record(1)).unwrap();
    let plain = [page.replace("text 1", "text\0\0"), page.clone()].concat();
    assert_eq!(read_bytes("a.warc.gz", plain.as_bytes()).records.len(), 2);
}

#[test]
fn a_record_whose_checksum_fails_was_a_document_with_wrong_letters() {
    // The letters of a stored member are changed, not its structure.
    let stored = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let altered = |mut bytes: Vec<u8>| {
        let at = bytes.windows(4).position(|bytes| bytes == b"page");
        bytes[at.unwrap()] ^= 2;
        bytes
    };
    let ids = ["http://a.example/1", "http://a.example/3"];
    let frame = |bytes: &[u8]| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut broken_sum = frame(&record(2));
    *broken_sum.last_mut().unwrap() ^= 1;
    for (name, parts) in [
        (
            "a.warc.gz",
            [
                gzip(&record(1)),
                altered(stored(&record(2))),
                gzip(&record(3)),
            ],
        ),
        (
            "a.warc.zst",
            [frame(&record(1)), broken_sum, frame(&record(3))],
        ),
    ] {
        let reading = read_bytes(name, &parts.concat());
        assert_eq!(
            (reading.ids(), losses(&reading)),
            (ids.to_vec(), 1),
            "{name}"
        );
    }
    // One member of several records: they are read, and the damage is told.
    let all: Vec<u8> = (1..=3).flat_map(record).collect();
    let reading = read_bytes("a.warc.gz", &altered(stored(&all)));
    assert_eq!((reading.records.len(), losses(&reading)), (3, 1));
}

#[test]
fn each_of_many_broken_members_was_told_and_kept() {
    let broken = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x07";
    let archive = [
        gzip(&record(1)),
        broken.repeat(1000),
        gzip(&record(2)),
        broken.repeat(3),
    ];
    let reading = read_bytes("a.warc.gz", &archive.concat());
    assert_eq!(reading.records.len(), 2);
    let counts: Vec<u64> = reading.skips.iter().map(|skip| skip.count).collect();
    assert_eq!(counts, [1000, 3]);
    // With records between them that are not documents, a chunk holds a limited number of them.
    let request = b"WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let archive = [&broken[..], &gzip(request)].concat().repeat(20_000);
    let options = InputOptions::default();
    let corpus = Corpus::with("a.warc.gz", &archive);
    let inputs = corpus.inputs("a.warc.gz", &options);
    let chunks = inputs
        .chunks(&options)
        .map(|chunk| chunk.unwrap().skips.len());
    let skips: Vec<usize> = chunks.collect();
    assert_eq!(skips, [1 << 14, 20_000 - (1 << 14) + 1]);
}

#[test]
fn wrong_lengths_cost_one_record() {
    for packed in [false, true] {
        for off in [-20, -1, 1, 3, 20, 200, 1_000_000, i64::MAX / 2] {
            let parts = [record(1), record_off(2, off), record(3), record(4)];
            let bytes = if packed {
                parts
                    .iter()
                    .map(|part| gzip(part))
                    .collect::<Vec<_>>()
                    .concat()
            } else {
                parts.concat()
            };
            let name = if packed { "a.warc.gz" } else { "a.warc" };
            let reading = read_bytes(name, &bytes);
            let ids = [
                "http://a.example/1",
                "http://a.example/3",
                "http://a.example/4",
            ];
            let found = reading.ids();
            // Within a member, nothing contradicts a length that includes the line feeds.
            let without: Vec<&str> = found
                .iter()
                .copied()
                .filter(|id| !id.ends_with('2'))
                .collect();
            assert_eq!(without, ids, "{name} off by {off}");
            if !(1..=3).contains(&off) {
                assert_eq!(found, ids, "{name} off by {off}");
                assert_eq!(reading.reasons().len(), 1, "{name} off by {off}");
            }
        }
    }
}

#[test]
fn a_length_that_is_none_costs_one_record() {
    for length in [
        "-5",
        "",
        "9223372036854775808",
        "99999999999999999999",
        "many",
    ] {
        let wrong = String::from_utf8(record(2)).unwrap();
        let at = wrong.find("Content-Length: ").unwrap() + 16;
        let end = at + wrong[at..].find('\r').unwrap();
        let wrong = format!("{}{length}{}", &wrong[..at], &wrong[end..]);
        let bytes = [record(1), wrong.into_bytes(), record(3)].concat();
        let reading = read_bytes("a.warc", &bytes);
        let ids = ["http://a.example/1", "http://a.example/3"];
        assert_eq!(reading.ids(), ids, "{length}");
        assert_eq!(reading.reasons().len(), 1, "{length}");
        let bad = reading.records[1].as_ref().unwrap_err();
        assert_eq!(
            (bad.kind, bad.place().as_str()),
            (BadRecordKind::Broken, "record 2")
        );
    }
}

#[test]
fn a_head_that_the_next_record_directly_followed_took_that_record_along() {
    let ids = [1, 2, 3].map(|n| format!("http://a.example/{n}"));
    let check = |kind: &str, parts: [Vec<u8>; 4], what: &str| {
        let members = parts.each_ref().map(|part| gzip(part)).concat();
        let whole = parts.concat();
        for (name, bytes) in [
            (format!("a.{kind}"), &whole),
            (format!("each.{kind}.gz"), &members),
            (format!("one.{kind}.gz"), &gzip(&whole)),
        ] {
            let reading = read_bytes(&name, bytes);
            assert_eq!(reading.ids(), ids, "{name}: {what}");
            assert_eq!(losses(&reading), 1, "{name}: {what}");
        }
    };
    for field in [
        "",
        "Content-Length: -1\r\n",
        "Content-Length: 100\r\n",
        "Content-Length: 50000\r\n",
    ] {
        let head = format!("WARC/1.0\r\nWARC-Type: conversion\r\n{field}\r\n");
        let parts = [record(1), head.into_bytes(), record(2), record(3)];
        check("warc", parts, field);
    }
    for length in ["100", "50000"] {
        let head = format!("http://a.example/x 192.0.2.1 20080109000000 text/html {length}\n");
        let parts = [
            arc_record(1),
            head.into_bytes(),
            arc_record(2),
            arc_record(3),
        ];
        check("arc", parts, length);
    }
}

#[test]
fn a_head_that_was_cut_off_took_the_next_record_as_its_own() {
    let check = |name: &str, bytes: &[u8], what: usize| {
        let reading = read_bytes(name, bytes);
        let ids = ["http://a.example/1", "http://a.example/3"];
        assert_eq!(reading.ids(), ids, "{name}: {what} bytes");
        let texts = reading.texts();
        assert!(texts[1].contains("text 3 "), "{name}: {texts:?}");
        assert_eq!(losses(&reading), 1, "{name}: {what} bytes");
    };
    let start = record(2);
    let end = start.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    for length in 10..end.unwrap() {
        let parts = [record(1), start[..length].to_vec(), record(3)];
        check("a.warc", &parts.concat(), length);
        check("a.warc.gz", &parts.map(|part| gzip(&part)).concat(), length);
        let hole = [&start[..length], &[0; 600], b"\r\n\r\n"].concat();
        check("hole.warc", &[record(1), hole, record(3)].concat(), length);
    }
    let start = arc_record(2);
    let end = start.iter().position(|byte| *byte == b'\n').unwrap();
    for length in 1..end {
        let parts = [arc_record(1), start[..length].to_vec(), arc_record(3)];
        check("a.arc.gz", &parts.map(|part| gzip(&part)).concat(), length);
    }
}

#[test]
fn records_within_a_length_beyond_the_longest_document_were_lost_in_silence() {
    let options = InputOptions::default().max_document_bytes(100_000);
    for (length, is_packed) in [(300_000, false), (300_000, true), (9_000_000, true)] {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: {length}\r\n\r\nshort\r\n\r\n"
        );
        let bytes = [record(1), head.into_bytes(), record(2).repeat(2000)].concat();
        let bytes = if is_packed { gzip(&bytes) } else { bytes };
        let corpus = Corpus::with("a.warc", &bytes);
        let reading = read(&corpus.inputs("a.warc", &options), &options);
        // The share of the archive that is missing is unknown.
        let mut skips = reading.skips.iter();
        let damaged = skips.find(|skip| skip.kind == SkipKind::Damaged);
        let reason = &damaged.expect("a loss").reason;
        assert!(reason.contains("may be missing"), "{reason}");
        assert_eq!(losses(&reading), 1, "{length}");
    }
}

#[test]
fn a_page_that_is_too_long_keeps_its_fields() {
    let options = InputOptions::default().max_document_bytes(30);
    let long = format!(
        "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/long\r\n\
         Content-Type: text/plain\r\nContent-Length: 200000\r\n\r\n{}\r\n\r\n",
        "x".repeat(200_000)
    );
    let short = "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/short\r\n\
                 Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nshort\r\n\r\n";
    for pack in [false, true] {
        let bytes = [long.as_bytes(), short.as_bytes()];
        let bytes = if pack {
            bytes.map(gzip).concat()
        } else {
            bytes.concat()
        };
        let corpus = Corpus::with("a.warc", &bytes);
        let reading = read(&corpus.inputs("a.warc", &options), &options);
        let states: Vec<TextState> = reading.records.iter().flatten().map(|s| s.state).collect();
        assert_eq!(states, [TextState::TooLong, TextState::Present]);
        assert_eq!(
            reading.ids(),
            ["http://a.example/long", "http://a.example/short"]
        );
        assert_eq!(losses(&reading), 0);
    }
}

#[test]
fn row_12_an_archive_in_one_gzip_member_is_read_and_told() {
    let all: Vec<Vec<u8>> = (1..=3).map(record).collect();
    let each: Vec<Vec<u8>> = all.iter().map(|bytes| gzip(bytes)).collect();
    let two = [gzip(&all[..2].concat()), gzip(&all[2])].concat();
    let whole = gzip(&all.concat());
    let frame = zstd(&all.concat());
    let cases = [
        ("a.warc", all.concat(), None),
        ("a.warc.gz", each.concat(), None),
        ("a.warc.gz", two, Some(1)),
        ("a.warc.gz", whole, Some(1)),
        ("a.warc.zst", frame, Some(1)),
    ];
    for (name, bytes, expected) in cases {
        let reading = read_bytes(name, &bytes);
        assert_eq!(reading.texts().len(), 3, "{name}");
        let mut skips = reading.skips.iter();
        let told = skips.find(|skip| skip.kind == SkipKind::SharedMember);
        assert_eq!(told.map(|skip| skip.count), expected, "{name}");
        assert!(told.is_none_or(|skip| !skip.kind.is_loss()));
    }
}

#[test]
fn row_15_revisits_and_members_of_nothing_are_counted_and_passed() {
    let empty = gzip(b"");
    let revisit = b"WARC/1.1\r\nWARC-Type: revisit\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let bytes = [
        empty.clone(),
        gzip(&record(1)),
        empty.clone(),
        empty.clone(),
        gzip(revisit),
        gzip(&record(2)),
        empty.clone(),
    ];
    let reading = read_bytes("a.warc.gz", &bytes.concat());
    assert_eq!(reading.ids(), ["http://a.example/1", "http://a.example/2"]);
    let kinds: Vec<SkipKind> = reading.skips.iter().map(|skip| skip.kind).collect();
    assert_eq!(kinds, [SkipKind::Revisit]);
    for nothing in [empty.clone(), empty.repeat(3), zstd(b"")] {
        let reading = read_bytes("a.warc.gz", &nothing);
        assert_eq!(reading, Reading::default(), "{nothing:?}");
    }
}

#[cfg(feature = "pdf")]
#[test]
fn pdf_in_an_archive_is_read_where_it_stands() {
    let response = |n: usize, mime: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n");
        let block = [head.as_bytes(), body].concat();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{n}\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        gzip(&[head.as_bytes(), &block, b"\r\n\r\n"].concat())
    };
    let fixture = |name: &str| {
        std::fs::read(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/fixtures")
                .join(name),
        )
        .unwrap()
    };
    let story = fixture("story.pdf");
    let parts = [
        response(1, "application/pdf", &story),
        response(2, "application/octet-stream", &fixture("packed.pdf")),
        response(3, "application/pdf", &fixture("locked.pdf")),
        response(4, "application/pdf; x", b"%PDF-1.7 and no more"),
        response(5, "text/html", b"<p>a page behind them"),
    ];
    let corpus = Corpus::with("a.warc.gz", &parts.concat());
    let options = InputOptions::default().chunk_bytes(1);
    let inputs = corpus.inputs("a.warc.gz", &options);
    let reading = read(&inputs, &options);
    let texts = reading.texts();
    assert_eq!(texts.len(), 3);
    assert!(texts[0].contains("The ferry left the harbour"), "{texts:?}");
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(texts[0]), words(texts[1]));
    for (number, reason) in [
        (2, "encrypted with a password"),
        (3, "not a PDF, or damaged"),
    ] {
        let bad = reading.records[number].as_ref().unwrap_err();
        assert_eq!(bad.kind, BadRecordKind::Conversion);
        assert!(bad.reason.contains(reason), "{}", bad.reason);
    }
    // The output has the position, not the bytes; the second reading gives the same numbers and reads no PDF.
    let raw = read_raw(&inputs, &options);
    assert_eq!(raw.len(), 5);
    let line: Value = serde_json::from_slice(&raw[0].bytes).unwrap();
    assert_eq!(
        (&line["mime"], &line["member"], line.get("text")),
        (&Value::from("application/pdf"), &Value::from(0), None)
    );
    // The PDF as a file has the same text.
    let alone = Corpus::with("a.pdf", &story);
    let alone = read(&alone.inputs("a.pdf", &options), &options);
    assert_eq!(alone.texts()[0], texts[0]);
    let short = InputOptions::default().max_document_bytes(200);
    let reading = read(&corpus.inputs("a.warc.gz", &short), &short);
    let first = reading.records[0].as_ref().unwrap();
    assert_eq!((first.state, first.text.as_str()), (TextState::TooLong, ""));
}

#[cfg(feature = "pdf")]
#[test]
fn a_pdf_that_a_crawler_cut_off_had_no_text() {
    use crate::pdf::pages;

    let archive = |body: &[u8]| {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nContent-Type: application/pdf\r\nWARC-Truncated: length\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let bytes = [head.as_bytes(), body, b"\r\n\r\n"].concat();
        let options = InputOptions::default();
        let reading = read(
            &Corpus::with("a.warc", &bytes).inputs("a.warc", &options),
            &options,
        );
        let kinds: Vec<SkipKind> = reading.skips.iter().map(|skip| skip.kind).collect();
        assert_eq!(kinds, [SkipKind::CutBody]);
        reading
    };
    let whole = String::from_utf8(pages(b"BT /F1 9 Tf 10 10 Td (a line) Tj ET ", 3)).unwrap();
    let whole = whole.replace("/Filter /FlateDecode", "");
    let last = whole.find("7 0 obj").unwrap();
    let lines = archive(&whole.as_bytes()[..last]);
    assert_eq!(lines.texts(), ["a line\n\na line"]);
    // The contents of the first page are behind the end.
    let lines = archive(whole.replacen("/Contents 4", "/Contents 9", 1).as_bytes());
    assert_eq!(lines.texts(), ["a line\n\na line"]);
    // Without any page, there is no text.
    let first = whole.find("5 0 obj").unwrap();
    for none in [
        &whole[..first],
        &*whole.replace("/Contents 4", "/Contents 9"),
    ] {
        let reading = archive(none.as_bytes());
        let bad = reading.records[0].as_ref().unwrap_err();
        assert_eq!(bad.kind, BadRecordKind::Conversion);
    }
}

#[test]
fn a_wat_is_counted_and_read_when_asked_for() {
    let metadata = |n: usize, mime: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.example/{n}\r\nWARC-Date: 2024-05-31T00:00:00Z\r\n\
             Content-Type: {mime}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let page = r#"{"Envelope":{"WARC-Header-Metadata":{"WARC-Date":"2024-01-02T00:00:00Z"},"Payload-Metadata":{"HTTP-Response-Metadata":{
        "Response-Message":{"Status":"200"},"Headers":{"Content-Type":"text/html; charset=utf-8"},"HTML-Metadata":{
        "Head":{"Title":"The ferry"},"Links":[{"path":"A@/href","url":"/tide","text":"tide table"}]}}}}}"#;
    let request = r#"{"Envelope":{"Payload-Metadata":{"HTTP-Request-Metadata":{}}}}"#;
    let bytes = [
        metadata(1, "application/json", page),
        metadata(2, "application/json", request),
        metadata(3, "application/warc-fields", "fetchTimeMs: 7"),
        metadata(4, "application/json", "{\"Envelope\":"),
    ]
    .concat();
    let corpus = Corpus::with("a.warc.wat", bytes.as_bytes());
    let counted = |reading: &Reading| {
        let mut skips = reading.skips.iter();
        let skip = skips.find(|skip| skip.kind == SkipKind::Metadata);
        skip.map_or(0, |skip| skip.count)
    };
    let options = InputOptions::default();
    let reading = read(&corpus.inputs("a.warc.wat", &options), &options);
    assert_eq!((reading.records.len(), counted(&reading)), (0, 4));
    let options = InputOptions::default().format(Some("wat".parse().unwrap()));
    let reading = read(&corpus.inputs("a.warc.wat", &options), &options);
    assert_eq!(reading.texts(), ["The ferry\n\ntide table"]);
    assert_eq!(counted(&reading), 2);
    assert!(reading.reasons()[0].contains("its metadata is not JSON"));
    let line: Value = serde_json::from_slice(&reading.records[0].as_ref().unwrap().raw).unwrap();
    for (field, value) in [
        ("url", Value::from("http://a.example/1")),
        ("date", Value::from("2024-01-02T00:00:00Z")),
        ("status", Value::from(200)),
        ("mime", Value::from("text/html")),
        ("title", Value::from("The ferry")),
        ("out_links", vec!["/tide"].into()),
        ("link_texts", vec!["tide table"].into()),
        ("anchors", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
}

#[test]
fn old_archives() {
    let head = "filedesc://x.arc 0.0.0.0 20080101000000 text/plain 15\n1 0 CommonCrawl\n";
    let mut bytes = head.as_bytes().to_vec();
    for n in 1..=3 {
        bytes.extend(arc_record(n));
    }
    let reading = read_bytes("a.arc", &bytes);
    assert_eq!(
        reading.ids(),
        [
            "http://a.example/1",
            "http://a.example/2",
            "http://a.example/3"
        ]
    );
    let line: Value = serde_json::from_slice(&reading.records[0].as_ref().unwrap().raw).unwrap();
    assert_eq!(line["date"], "2008-01-01T00:00:00Z");
    assert_eq!(losses(&reading), 0);
    assert_eq!(reading.skips[0].kind, SkipKind::Warcinfo);
}

/// Counts the records that are read, and the others by kind, including `bad` and `damaged`.
fn counts(path: &Path) -> BTreeMap<String, u64> {
    let options = InputOptions::default();
    let argument: OsString = path.into();
    let inputs = Inputs::discover(&[argument], &options, Path::new("/nowhere")).unwrap();
    let reading = read(&inputs, &options);
    let mut counts = BTreeMap::new();
    for record in &reading.records {
        let kind = match record {
            Err(_) => "bad".to_owned(),
            Ok(seen) => {
                let line: Value = serde_json::from_slice(&seen.raw).unwrap();
                line["type"].as_str().unwrap().to_owned()
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    for skip in reading.skips {
        *counts.entry(skip.kind.name().to_owned()).or_default() += skip.count;
    }
    counts
}

/// Archives written by real crawlers: numbers of records by type according to `warcio`, where a response is a document, or not a page
/// (`http-status`), or not text (`not-text`).
#[test]
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must not look like a passed one"
)]
fn real_archives_are_read_to_their_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/warc-samples");
    if !folder.is_dir() {
        return eprintln!("skipped: warc-samples is not at hand");
    }
    let expected: [(&str, &[(&str, u64)]); 11] = [
        (
            "cc-2024-a.warc.gz",
            &[
                ("warcinfo", 1),
                ("request", 22),
                ("response", 22),
                ("metadata", 1),
                ("resource", 2),
            ],
        ),
        (
            "cc-2024-whirlwind.warc.gz",
            &[
                ("warcinfo", 1),
                ("request", 1),
                ("response", 1),
                ("metadata", 1),
            ],
        ),
        (
            "cc-2024-whirlwind.warc.wet.gz",
            &[("warcinfo", 1), ("conversion", 1)],
        ),
        (
            "cc-2024-whirlwind.warc.wat.gz",
            &[("warcinfo", 1), ("metadata", 1)],
        ),
        ("ia-2008.arc.gz", &[("warcinfo", 1), ("response", 299)]),
        (
            "ia-2008.warc.gz",
            &[
                ("warcinfo", 1),
                ("response", 299),
                ("request", 261),
                ("metadata", 261),
            ],
        ),
        // One of its responses is a truncated PDF.
        (
            "cc-2008.arc",
            if cfg!(feature = "pdf") {
                &[("warcinfo", 1), ("response", 144), ("bad", 1)]
            } else {
                &[("warcinfo", 1), ("response", 145)]
            },
        ),
        ("quirk-clipped.warc.gz", &[("damaged", 1)]),
        (
            "quirk-clueweb.warc.gz",
            &[("warcinfo", 1), ("response", 29)],
        ),
        (
            "revisit-iana.warc.gz",
            &[
                ("warcinfo", 1),
                ("response", 48),
                ("request", 171),
                ("revisit", 123),
            ],
        ),
        (
            "revisit-dupes.warc.gz",
            &[
                ("warcinfo", 1),
                ("response", 3),
                ("request", 12),
                ("revisit", 9),
            ],
        ),
    ];
    for (name, expected) in expected {
        let mut found = counts(&folder.join(name));
        for note in ["raw-body", "cut-body"] {
            found.remove(note);
        }
        let no_page = found.remove("http-status").unwrap_or(0);
        let no_text = found.remove("not-text").unwrap_or(0);
        if no_page + no_text > 0 {
            *found.entry("response".to_owned()).or_default() += no_page + no_text;
        }
        let expected: BTreeMap<String, u64> = expected
            .iter()
            .map(|(kind, n)| ((*kind).to_owned(), *n))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_wrong_length_in_a_member_of_its_own_was_of_unknown_extent() {
    for short in [record_off(2, -20), record_off(2, 20)] {
        let parts = [record(1), short, record(3)];
        for (name, bytes) in [
            ("a.warc", parts.concat()),
            ("a.warc.gz", parts.clone().map(|part| gzip(&part)).concat()),
        ] {
            let reading = read_bytes(name, &bytes);
            let bad = reading.records[1].as_ref().unwrap_err();
            assert_eq!(bad.kind, BadRecordKind::Broken, "{name}");
            assert_eq!((reading.records.len(), losses(&reading)), (3, 1), "{name}");
        }
    }
}
