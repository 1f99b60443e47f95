//! Tables with wrong bytes: the file is named, and the others are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::results::Results;
use crate::support::{Finish, Folder, STORY, fixture, lookalike, record};

const ROWS: usize = 3;

/// Returns texts without ids, so that each record is identified by its file.
fn batch() -> RecordBatch {
    let texts = (0..ROWS).map(|row| format!("{row} {}", STORY.repeat(8)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    RecordBatch::try_from_iter([("text", texts)]).unwrap()
}

fn arrow(codec: CompressionType) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(codec))
        .unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch().schema(), options).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(codec: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(codec).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

/// Runs jobs over these files and a sound one. No file may lose a record without being named, and the sound one must be read.
#[track_caller]
fn survive(ending: &str, files: impl IntoIterator<Item = Vec<u8>>) -> Results {
    let folder = Folder::new();
    let mut wrong = 0;
    for (number, bytes) in files.into_iter().enumerate() {
        folder.add(format!("in/{number:05}.{ending}"), bytes);
        wrong += 1;
    }
    folder.add(
        "in/sound.jsonl",
        record("sound", "no other text is like this one"),
    );
    let run = |subcommand: &str, flags: &[&str]| {
        let mut command = lookalike(subcommand);
        command.current_dir(folder.path("")).args(["in", "--quiet"]);
        let finished = command.args(flags).finish();
        let (status, err) = (finished.status, &finished.err);
        assert!(
            matches!(status, Some(0 | 3)),
            "{subcommand}: {status:?}: {err}"
        );
        assert!(!err.contains("panicked"), "{subcommand}: {err}");
        finished
    };
    run("dedup", &["-o", "out", "--method", "exact"]);
    let results = Results::read(&folder.path("out"));
    // Count the rows read from each file, whose name is part of their ids.
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for row in run("fingerprint", &[]).lines() {
        let id = row["id"].as_str().unwrap();
        let file = id.split(&format!(".{ending}")).next().unwrap();
        *rows.entry(file.to_owned()).or_default() += 1;
    }
    assert_eq!(rows.get("sound"), Some(&1), "{rows:?}");
    let named: Vec<&str> = results
        .skipped
        .iter()
        .map(|row| row["source"].as_str().unwrap())
        .collect();
    for number in 0..wrong {
        let file = format!("in/{number:05}");
        let name = format!("{file}.{ending}");
        assert!(
            rows.get(&file) == Some(&ROWS) || named.contains(&name.as_str()),
            "{name} lost records without a word"
        );
    }
    results
}

/// Returns copies with a wrong byte, one for every `step` bytes.
fn flipped(whole: &[u8], step: usize) -> Vec<Vec<u8>> {
    let flip = |(number, at): (usize, usize)| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= [0x80, 0x01, 0xff][number % 3];
        bytes
    };
    (0..whole.len())
        .step_by(step)
        .enumerate()
        .map(flip)
        .collect()
}

/// Returns copies in which one word of eight bytes is far too large for any length.
fn with_huge_words(whole: &[u8]) -> Vec<Vec<u8>> {
    let places = (0..whole.len() - 8).step_by(8);
    let huge = |at: usize| {
        let mut bytes = whole.to_vec();
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 48).to_le_bytes());
        bytes
    };
    places.map(huge).collect()
}

#[test]
fn one_wrong_length_in_a_compressed_arrow_file_does_not_end_the_job() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let whole = arrow(codec);
        let huge = survive("arrow", with_huge_words(&whole));
        assert!(huge.skipped.len() > 10, "{codec:?}: {:?}", huge.skipped);
        survive("arrow", flipped(&whole, 5));
    }
}

#[test]
fn wrong_bytes_in_parquet_of_every_codec_do_not_end_the_job() {
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        survive("parquet", flipped(&parquet(codec), 7));
    }
    for name in ["brotli.parquet", "brotli-v2.parquet"] {
        survive("parquet", flipped(&fs::read(fixture(name)).unwrap(), 7));
    }
}

/// The footer states the number of row groups before it describes them, and the library allocates memory for that number.
#[test]
fn two_billion_row_groups_that_are_not_there_do_not_end_the_job() {
    let whole = parquet(Compression::SNAPPY);
    let footer = whole.len() - 8;
    let length = u32::from_le_bytes(whole[footer..footer + 4].try_into().unwrap()) as usize;
    let start = footer - length;
    // The number of rows, then a list of one struct.
    let wanted = [0x16, 2 * ROWS as u8, 0x19, 0x1c];
    let found = whole[start..footer]
        .windows(4)
        .position(|window| window == wanted);
    let at = start + found.unwrap() + 3;
    let mut bytes = whole[..at].to_vec();
    bytes.extend([0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
    bytes.extend(&whole[at + 1..footer]);
    bytes.extend((length as u32 + 5).to_le_bytes());
    bytes.extend(b"PAR1");
    let results = survive("parquet", [bytes]);
    let reason = results.skipped[0]["reason"].as_str().unwrap();
    assert!(reason.contains("footer"), "{reason}");
}

/// A file from an outside review that ended a job with a hundred other files.
#[test]
fn the_arrow_file_that_ended_a_job_is_named() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found/arrow/a-buffer-of-terabytes");
    let folder = Folder::new();
    folder.add("in/a.arrow", fs::read(file).unwrap());
    let flags = ["--quiet", "--output-format", "jsonl"];
    let results = folder.dedup_with_losses(&folder.path("in"), &flags);
    assert!(
        results.skipped[0]["source"]
            .as_str()
            .unwrap()
            .ends_with("a.arrow")
    );
}
