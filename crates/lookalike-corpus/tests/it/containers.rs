//! Files that are compressed, truncated, bombs, or changing.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lookalike_corpus::{
    BadRecordKind, Compression, InputOptions, Parser, ReadError, SkipKind, TextState, raw_records,
};

use crate::support::{Corpus, gzip, read, read_raw, zstd};

/// Cuts a file of three members at every byte: no panic, the members before the cut are intact, and the loss is reported.
fn cut_everywhere(name: &str, pack: fn(&[u8]) -> Vec<u8>) {
    let options = InputOptions::default();
    let members: Vec<Vec<u8>> = (0..3)
        .map(|member| pack(format!("{{\"id\":{member},\"text\":\"text {member}\"}}\n").as_bytes()))
        .collect();
    let whole = members.concat();
    let ends: Vec<usize> = (1..=3).map(|n| members[..n].concat().len()).collect();
    let corpus = Corpus::new();
    for cut in 0..=whole.len() {
        corpus.add(name, &whole[..cut]);
        let inputs = corpus.inputs(name, &options);
        let reading = read(&inputs, &options);
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let good = reading
            .records
            .iter()
            .flatten()
            .filter(|seen| seen.text.starts_with("text"));
        assert!(good.count() >= complete, "cut at {cut}");
        let at_an_end = cut > 0 && (ends.contains(&cut));
        let losses = reading
            .skips
            .iter()
            .filter(|skip| skip.kind == SkipKind::Damaged);
        assert_eq!(losses.count(), usize::from(!at_an_end), "cut at {cut}");
        assert_eq!(
            read_raw(&inputs, &options).len(),
            reading.records.len(),
            "cut at {cut}"
        );
    }
}

#[test]
fn truncated_gzip() {
    cut_everywhere("a.jsonl.gz", gzip);
}

#[test]
fn truncated_zstd() {
    cut_everywhere("a.jsonl.zst", zstd);
}

#[test]
fn every_flipped_byte_is_survived() {
    let options = InputOptions::default();
    let lines = "{\"text\":\"the same again\"}\n".repeat(20);
    let corpus = Corpus::new();
    for (name, packed) in [
        ("a.jsonl.gz", gzip(lines.as_bytes())),
        ("a.jsonl.zst", zstd(lines.as_bytes())),
    ] {
        for at in 4..packed.len() {
            let mut broken = packed.clone();
            broken[at] ^= 0x55;
            corpus.add(name, &broken);
            let inputs = corpus.inputs(name, &options);
            let reading = read(&inputs, &options);
            assert_eq!(read_raw(&inputs, &options).len(), reading.records.len());
        }
    }
}

#[test]
fn a_damaged_document_keeps_its_number() {
    let options = InputOptions::default();
    let mut packed = gzip(&b"some text ".repeat(1000));
    packed.truncate(packed.len() / 2);
    let corpus = Corpus::with("a.txt.gz", &packed);
    corpus.add("b.txt", b"fine");
    let inputs = corpus.inputs("", &options);
    let reading = read(&inputs, &options);
    let bad = reading.records[0].as_ref().unwrap_err();
    assert_eq!(
        (bad.source, bad.number, bad.kind),
        (0, 0, BadRecordKind::Damaged)
    );
    assert_eq!(reading.texts(), ["fine"]);
    // It is one loss, not both a record and a part of a file.
    assert_eq!(reading.skips, []);
    assert_eq!(read_raw(&inputs, &options).len(), 2);
}

#[test]
fn bombs_are_refused_in_bounded_memory() {
    let options = InputOptions::default();
    let zeros = vec![b' '; 40 << 20];
    let corpus = Corpus::new();
    for (name, packed) in [("a.txt.gz", gzip(&zeros)), ("a.txt.zst", zstd(&zeros))] {
        corpus.add(name, &packed);
        let tight = options.clone().max_decoded_ratio(100);
        let inputs = corpus.inputs(name, &tight);
        let reading = read(&inputs, &tight);
        assert_eq!(
            reading.records[0].as_ref().unwrap_err().kind,
            BadRecordKind::Bomb,
            "{name}"
        );
        for chunk in inputs.chunks(&tight) {
            assert!(chunk.unwrap().bytes.is_empty());
        }
    }
    // The default ratio admits gzip, whose maximum is 1032, but not a run-length zstd block.
    let packed = zstd(&vec![b' '; 60 << 20]);
    assert!(packed.len() * 1000 < 60 << 20);
    corpus.add("b.txt.zst", &packed);
    let inputs = corpus.inputs("b.txt.zst", &options);
    let bad = read(&inputs, &options).records.remove(0).unwrap_err();
    assert_eq!(bad.kind, BadRecordKind::Bomb);
}

#[test]
fn a_stream_of_nothing_but_one_line_is_not_held() {
    let options = InputOptions::default()
        .max_document_bytes(1 << 20)
        .chunk_bytes(1 << 16);
    let packed = zstd(&vec![b'0'; 100 << 20]);
    let corpus = Corpus::with("a.jsonl.zst", &packed);
    let inputs = corpus.inputs("a.jsonl.zst", &options);
    let mut records = 0;
    for chunk in inputs.chunks(&options) {
        let chunk = chunk.unwrap();
        records += chunk.records;
        assert!(chunk.bytes.capacity() < 8 << 20);
    }
    assert_eq!(records, 1);
}

#[test]
fn a_document_over_the_limit_has_no_text() {
    let options = InputOptions::default().max_document_bytes(10);
    let corpus = Corpus::with("a.txt", b"0123456789");
    corpus.add("b.txt", b"0123456789a");
    corpus.add("c.txt.gz", &gzip(b"0123456789a"));
    let reading = read(&corpus.inputs("", &options), &options);
    let states: Vec<_> = reading
        .records
        .iter()
        .flatten()
        .map(|seen| seen.state)
        .collect();
    assert_eq!(
        states,
        [TextState::Present, TextState::TooLong, TextState::TooLong]
    );
}

/// Reads a file that was changed after it was discovered.
fn changes(name: &str, bytes: &[u8], check: impl Fn(Reading, &str)) {
    let grow = |path: &Path| fs::write(path, [bytes, bytes].concat()).unwrap();
    // The same size with another time is a change, too.
    let touch = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(10))
            .unwrap();
    };
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let changes = [&grow as &dyn Fn(&Path), &touch, &remove];
    let reasons = ["changed", "changed", "No such file"];
    for (change, reason) in changes.into_iter().zip(reasons) {
        let options = InputOptions::default();
        let corpus = Corpus::with(name, bytes);
        let inputs = corpus.inputs(name, &options);
        change(&corpus.path(name));
        let reading = Reading {
            error: inputs.chunks(&options).find_map(Result::err),
            bad: read(&inputs, &options)
                .records
                .into_iter()
                .filter_map(Result::err)
                .collect(),
        };
        check(reading, reason);
    }
}

struct Reading {
    error: Option<ReadError>,
    bad: Vec<lookalike_corpus::BadRecord>,
}

/// Regression test: on damage, a library kept what it had unpacked in the same step, and steps were as long as chunks.
#[test]
fn damage_is_met_at_the_same_record_wherever_chunks_are_cut() {
    let mut numbers = 0_u64..;
    let line = |number: u64| {
        let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{{\"id\":{number},\"text\":\"{word:x}\"}}\n")
    };
    let lines: String = numbers.by_ref().take(20_000).map(line).collect();
    let bzip2 = |bytes: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let xz = |bytes: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    for (name, mut packed) in [
        ("a.jsonl.gz", gzip(lines.as_bytes())),
        ("a.jsonl.zst", zstd(lines.as_bytes())),
        ("a.jsonl.bz2", bzip2(lines.as_bytes())),
        ("a.jsonl.xz", xz(lines.as_bytes())),
    ] {
        let middle = packed.len() / 2;
        packed[middle] ^= 0x55;
        let corpus = Corpus::with(name, &packed);
        let counts = [1 << 8, 1 << 14, 1 << 17, 1 << 22].map(|chunk_bytes| {
            let options = InputOptions::default().chunk_bytes(chunk_bytes);
            read(&corpus.inputs(name, &options), &options).records.len()
        });
        assert!(counts[0] > 0, "{name}");
        assert_eq!(counts, [counts[0]; 4], "{name}");
    }
}

const LINE: &[u8] = b"{\"text\":\"a\"}\n";

#[test]
fn all_records_of_a_short_xz_file_were_lost_with_the_bytes_behind_its_stream() {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(LINE).unwrap();
    let packed = [&*encoder.finish().unwrap(), b"other bytes."].concat();
    let options = InputOptions::default();
    let corpus = Corpus::with("a.jsonl.xz", &packed);
    let reading = read(&corpus.inputs("a.jsonl.xz", &options), &options);
    assert_eq!(reading.texts(), ["a"]);
    let [skip] = &reading.skips[..] else {
        panic!("{:?}", reading.skips);
    };
    assert_eq!(skip.kind, SkipKind::Damaged);
}

#[test]
fn a_file_of_records_that_changes_before_it_is_read_is_lost_alone() {
    let options = InputOptions::default();
    for is_gone in [false, true] {
        let corpus = Corpus::with("a.jsonl", LINE);
        corpus.add("b.jsonl", LINE);
        let inputs = corpus.inputs("*.jsonl", &options);
        let path = corpus.add("a.jsonl", &LINE.repeat(2));
        if is_gone {
            fs::remove_file(&path).unwrap();
        }
        let read = || -> Vec<_> { inputs.chunks(&options).map(Result::unwrap).collect() };
        let chunks = read();
        assert_eq!(chunks.iter().map(|chunk| chunk.records).sum::<u64>(), 1);
        let skips: Vec<_> = chunks.iter().flat_map(|chunk| &chunk.skips).collect();
        let [skip] = skips[..] else {
            panic!("{skips:?}");
        };
        assert_eq!(skip.kind, SkipKind::Unreadable);
        assert!(skip.name.ends_with("a.jsonl"), "{skip:?}");
        // Every later reading skips it, even if its original contents are back.
        corpus.add("a.jsonl", LINE);
        assert_eq!(read().iter().map(|chunk| chunk.records).sum::<u64>(), 1);
        let mut sources = Vec::new();
        raw_records::<ReadError>(&inputs, &options, &mut |record| {
            sources.push(record.source);
            Ok(())
        })
        .unwrap();
        assert_eq!(sources, [1]);
    }
}

#[test]
fn a_file_of_records_that_changes_once_it_was_read_stops_the_reading_for_output() {
    let options = InputOptions::default();
    let corpus = Corpus::with("a.jsonl", LINE);
    let inputs = corpus.inputs("a.jsonl", &options);
    assert!(inputs.chunks(&options).all(|chunk| chunk.is_ok()));
    let path = corpus.add("a.jsonl", &LINE.repeat(2));
    let error = || raw_records::<ReadError>(&inputs, &options, &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error(), ReadError::Changed { .. }));
    assert!(error().to_string().contains("a.jsonl"));
    fs::remove_file(&path).unwrap();
    assert!(matches!(error(), ReadError::Io { .. }));
    // A job that continues learns that it is lost, from one source or from all of them.
    let lost = inputs
        .mark_changed_lost(&[1])
        .map(|source| source.is_lost());
    assert_eq!(lost, Some(true));
    let read: Vec<_> = inputs.chunks(&options).map(Result::unwrap).collect();
    assert_eq!(read.iter().map(|chunk| chunk.records).sum::<u64>(), 0);
    assert_eq!(read[0].skips[0].kind, SkipKind::Unreadable);
}

/// The records before the change are read, and their number is reported.
#[test]
fn a_file_that_changed_while_it_was_read_stopped_the_reading() {
    let options = InputOptions::default().chunk_bytes(100);
    let lines = LINE.repeat(40_000);
    let elements = b",{\"text\":\"b\"}\n".repeat(40_000);
    let array = [b"[", LINE, &elements, b"]"].concat();
    let table = [&b"text\n"[..], &b"words\n".repeat(80_000)].concat();
    let (small, packed) = (b"{\"text\":\"b\"}\n", gzip(&lines));
    let files: [(&str, &[u8], &[u8]); 4] = [
        ("a.jsonl", &lines, &lines),
        ("a.jsonl.gz", &packed, &packed),
        ("a.json", &array, b"\n"),
        ("a.csv", &table, &table),
    ];
    for (name, bytes, more) in files {
        let corpus = Corpus::with(name, bytes);
        corpus.add("b.jsonl", small);
        let inputs = corpus.inputs("", &options);
        let mut chunks = inputs.chunks(&options);
        let first = chunks.next().unwrap().unwrap();
        assert!(first.records > 0 && first.skips.is_empty(), "{name}");
        let mut file = fs::File::options()
            .append(true)
            .open(corpus.path(name))
            .unwrap();
        file.write_all(more).unwrap();
        let mut parser = Parser::new(&inputs, &options);
        let (mut records, mut skips) = ([0, 0], Vec::new());
        for chunk in std::iter::once(first).chain(chunks.map(Result::unwrap)) {
            parser.parse(&chunk, &mut |record| {
                records[record.unwrap().source as usize] += 1
            });
            skips.extend(chunk.skips);
        }
        let [skip] = &skips[..] else {
            panic!("{name}: {skips:?}");
        };
        assert_eq!(records[1], 1, "{name}");
        assert_eq!(skip.kind, SkipKind::Unreadable, "{name}");
        let told = format!("the rest after record {} is not read", records[0]);
        assert!(
            skip.reason.contains(&told),
            "{name}: {records:?} {}",
            skip.reason
        );
    }
}

#[test]
fn a_document_that_changes_is_lost_alone() {
    changes("a.txt", b"text", |reading, reason| {
        assert!(reading.error.is_none());
        let [bad] = &reading.bad[..] else {
            panic!("{:?}", reading.bad);
        };
        assert_eq!(bad.kind.name(), "unreadable");
        assert!(bad.reason.contains(reason), "{}", bad.reason);
    });
}

#[cfg(unix)]
#[test]
fn after_an_error_the_reader_is_at_its_end() {
    let options = InputOptions::default();
    let corpus = Corpus::with("a.jsonl", b"{}\n");
    corpus.add("b.txt", b"b");
    let inputs = corpus.inputs("", &options);
    let path = corpus.path("a.jsonl");
    fs::remove_file(&path).unwrap();
    // A link to itself cannot be opened, for a reason that does not count as specific to one file.
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let mut chunks = inputs.chunks(&options);
    assert!(chunks.next().unwrap().is_err());
    assert!(chunks.next().is_none());
}

#[test]
fn progress_adds_up_to_the_bytes_on_disk() {
    let options = InputOptions::default().chunk_bytes(100);
    let lines = "{\"text\":\"some words to be packed\"}\n".repeat(500);
    let corpus = Corpus::with("a.jsonl", lines.as_bytes());
    corpus.add("b.jsonl.gz", &gzip(lines.as_bytes()));
    corpus.add("c.jsonl.zst", &zstd(lines.as_bytes()));
    corpus.add("d.txt", b"text");
    corpus.add("e.html.gz", &gzip(b"<p>text"));
    let inputs = corpus.inputs("", &options);
    assert_eq!(inputs.sources[1].compression, Compression::Gzip);
    let consumed: u64 = inputs
        .chunks(&options)
        .map(|chunk| chunk.unwrap().disk_bytes)
        .sum();
    assert_eq!(consumed, inputs.total_bytes());
}

#[test]
fn zeros_behind_and_between_gzip_members_were_damage() {
    let options = InputOptions::default();
    let [first, last] = [1, 2].map(|n| gzip(format!("{{\"text\":\"text {n}\"}}\n").as_bytes()));
    for padding in [1, 7, 511] {
        let zeros = vec![0; padding];
        let packed = [&first[..], &zeros, &last, &vec![0; 300_000]].concat();
        let corpus = Corpus::with("a.jsonl.gz", &packed);
        let reading = read(&corpus.inputs("a.jsonl.gz", &options), &options);
        assert_eq!(reading.texts(), ["text 1", "text 2"], "{padding}");
        assert!(reading.skips.is_empty(), "{padding}");
    }
    let corpus = Corpus::with("a.jsonl.gz", &[&first[..], &[0, 0, 1]].concat());
    let reading = read(&corpus.inputs("a.jsonl.gz", &options), &options);
    assert_eq!(reading.texts(), ["text 1"]);
    assert_eq!(reading.skips[0].kind, SkipKind::Damaged);
}

#[test]
fn lines_in_a_hole_of_zeros_were_missing_in_silence() {
    let options = InputOptions::default();
    let line = |id: &str| gzip(format!("{{\"id\":\"{id}\",\"text\":\"words\"}}\n").as_bytes());
    let packed = [line("a"), vec![0; 70_000], line("c"), vec![0; 512]].concat();
    let corpus = Corpus::with("a.jsonl.gz", &packed);
    let reading = read(&corpus.inputs("a.jsonl.gz", &options), &options);
    assert_eq!(reading.ids(), ["a", "c"]);
    assert_eq!(reading.skips[0].kind, SkipKind::Damaged);
    let reason = &reading.skips[0].reason;
    assert!(reason.contains("a hole of 70000 zeros"), "{reason}");
}

#[test]
fn a_frame_with_a_large_window_was_said_to_be_corrupt() {
    let options = InputOptions::default();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(b"{\"text\":\"a text\"}\n").unwrap();
    let corpus = Corpus::with("a.jsonl.zst", &encoder.finish().unwrap());
    let reading = read(&corpus.inputs("a.jsonl.zst", &options), &options);
    let reason = &reading.skips[0].reason;
    assert!(reason.starts_with("its zstd window is larger"), "{reason}");
}

#[test]
fn objects_that_are_spread_over_lines_were_one_text() {
    let options = InputOptions::default();
    let objects = "\u{feff}{\n  \"id\": 1,\n  \"text\": \"one }\"\n}\n\n{ \"id\": 2, \"text\": \"two\" }{\"id\": 3,\n\"text\": \"three\"}";
    for (name, more, reasons) in [
        ("a.json", "", &[][..]),
        ("a.json.part", "\n", &[]),
        (
            "b.json",
            "\n]",
            &["there is no object after element 3: the rest is not read"],
        ),
        (
            "c.json",
            "\n{\n\"id\": 4",
            &["invalid JSON: the data ends within it"],
        ),
    ] {
        let corpus = Corpus::with(name, format!("{objects}{more}").as_bytes());
        let reading = read(&corpus.inputs(name, &options), &options);
        assert_eq!(reading.texts(), ["one }", "two", "three"], "{name}");
        assert_eq!(reading.ids(), ["1", "2", "3"], "{name}");
        assert_eq!(
            reading.reasons().len() + reading.skips.len(),
            reasons.len(),
            "{name}"
        );
        let skips = reading.skips.iter().map(|skip| skip.reason.as_str());
        let told: Vec<_> = reading.reasons().into_iter().chain(skips).collect();
        assert_eq!(told, reasons, "{name}");
    }
}

#[test]
fn a_mark_within_a_file_cost_its_record() {
    let options = InputOptions::default();
    let lines = "\u{feff}{\"text\":\"a\"}\n\u{feff}{\"text\":\"b\"}\n";
    let corpus = Corpus::with("a.jsonl", lines.as_bytes());
    let inputs = corpus.inputs("a.jsonl", &options);
    assert_eq!(read(&inputs, &options).texts(), ["a", "b"]);
    let raw = read_raw(&inputs, &options);
    assert_eq!(raw.len(), 2);
}

/// Reads a file of three objects of which one is broken, and returns the number of losses that tell of others.
fn other_losses(json: &str) -> usize {
    let corpus = Corpus::with("a.json", json.as_bytes());
    let options = InputOptions::default();
    let reading = read(&corpus.inputs("a.json", &options), &options);
    assert_eq!(
        reading.reasons().len(),
        1,
        "{json}: {:?}",
        reading.reasons()
    );
    reading.skips.len()
}

#[test]
fn objects_within_a_broken_one_were_taken_for_others_that_are_lost() {
    for broken in [
        r#"{"tags":[{"a":1},{"b":2}],"x":[1}"#,
        "{\"x\":[1},\n \"tags\":[\n  {\"a\":1},\n  {\"b\":2}]}",
        r#"{"script":"if (a) {b},{c}","x":[1}"#,
    ] {
        let array = format!("[\n{{\"text\":\"one\"}},\n{broken},\n{{\"text\":\"two\"}}\n]");
        assert_eq!(other_losses(&array), 0, "{broken}");
    }
    let cut = "{\n\"text\":\"one\"\n}{\n\"tags\":[{\"a\":1},{\"b\":";
    assert_eq!(other_losses(cut), 0);
    // Others may be lost indeed: they follow a missing quote, a missing bracket or the broken object, on its line.
    for lost in [
        "[\n{\"text\":\"x},{\"text\":\"two\"},\n{\"text\":\"three\"}\n]",
        "{\n\"text\":\"one\",\n\"tags\":[\"x\"\n}{\n\"text\":\"two\"\n}",
        "{\n\"text\":\"one\",\n\"tags\":[\"x\"{\n\"text\":\"two\"\n}{\n\"text\":\"three\"\n}",
        "{\n\"text\":\"x\"]}{\"text\":\"two\"}{\"text\":\"three\"}",
    ] {
        assert_eq!(other_losses(lost), 1, "{lost}");
    }
}

#[test]
fn a_line_cut_behind_an_inner_bracket_was_two_losses() {
    let packed = gzip(b"{\"text\":\"one\"}\n{\"text\":\"two\",\"site\":{\"name\":\"a\"}");
    let corpus = Corpus::with("a.jsonl.gz", &packed[..packed.len() - 4]);
    let options = InputOptions::default();
    let reading = read(&corpus.inputs("a.jsonl.gz", &options), &options);
    assert_eq!((reading.records.len(), reading.skips.len()), (1, 1));
}
