//! Files that declare larger sizes than they have: each affects only itself, and no declared size ends the process.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

use crate::support::{Finish, Finished, Folder, STORY, contents, fixture, json_lines, record};

/// Limit on the address space of the process in KiB. An allocation of a declared size would exceed it and end the process.
const KIBIBYTES: u64 = 12 << 20;

fn batch() -> RecordBatch {
    let texts: Vec<String> = (0..12).map(|n| format!("{STORY} {n} {STORY}")).collect();
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..12))),
        ("text", Arc::new(StringArray::from(texts))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn arrow(codec: Option<CompressionType>, is_file: bool) -> Vec<u8> {
    let (batch, options) = (batch(), IpcWriteOptions::default());
    let options = options.try_with_compression(codec).unwrap();
    let schema = batch.schema();
    if is_file {
        let mut file = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        file.write(&batch).unwrap();
        return file.into_inner().unwrap();
    }
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    stream.write(&batch).unwrap();
    stream.into_inner().unwrap()
}

fn parquet(set: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder) -> Vec<u8> {
    let properties = set(WriterProperties::builder()).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

/// Runs `extract` on a folder with a small address space.
fn extract(folder: &Folder) -> Finished {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {KIBIBYTES}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_lookalike")]);
    command.args(["extract", "--threads", "2", "--memory", "1G"]);
    command
        .arg(folder.path("in"))
        .arg("-o")
        .arg(folder.path("out.jsonl"));
    command.stdin(Stdio::null()).finish()
}

/// Spoils one byte after another in copies of the file, each of which may be lost, and checks that the other file is still read.
fn corrupt_sector(name: &str, bytes: &[u8], ending: &str) {
    let folder = Folder::new();
    for at in 0..bytes.len() {
        let mut bad = bytes.to_vec();
        bad[at] |= 0x7f;
        if bad[at] != bytes[at] {
            folder.add(Path::new("in").join(format!("{at:05}{ending}")), bad);
        }
    }
    folder.add("in/z.jsonl", record("good", STORY));
    let done = extract(&folder);
    assert!(
        matches!(done.status, Some(0 | 3)),
        "{name}: {:?} {}",
        done.status,
        done.err
    );
    let read = json_lines(&contents(&folder.path("out.jsonl")));
    assert!(
        read.iter().any(|row| row["id"] == "good"),
        "{name}: the others are unharmed"
    );
}

#[test]
fn one_wrong_byte_in_packed_arrow_ends_nothing() {
    for (name, codec) in [
        ("lz4", CompressionType::LZ4_FRAME),
        ("zstd", CompressionType::ZSTD),
    ] {
        corrupt_sector(name, &arrow(Some(codec), true), ".arrow");
        corrupt_sector(name, &arrow(Some(codec), false), ".arrows");
    }
    corrupt_sector("plain", &arrow(None, true), ".arrow");
}

#[test]
fn one_wrong_byte_in_parquet_of_any_codec_ends_nothing() {
    for (name, codec) in [
        ("plain", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
        ("lz4", Compression::LZ4),
        ("lz4 raw", Compression::LZ4_RAW),
    ] {
        let bytes = parquet(|properties| properties.set_compression(codec));
        corrupt_sector(name, &bytes, ".parquet");
    }
    let bytes = fs::read(fixture("brotli.parquet")).unwrap();
    corrupt_sector("brotli", &bytes, ".parquet");
}

#[test]
fn one_wrong_byte_in_parquet_of_any_encoding_ends_nothing() {
    for encoding in [
        Encoding::PLAIN,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ] {
        let text = || parquet::schema::types::ColumnPath::from("text");
        let bytes = parquet(|properties| {
            properties
                .set_dictionary_enabled(false)
                .set_column_encoding(text(), encoding)
        });
        corrupt_sector(&encoding.to_string(), &bytes, ".parquet");
    }
}

/// Sets each length that a compressed buffer may declare to 281 terabytes.
#[test]
fn a_length_that_a_packed_buffer_only_declares_is_refused_with_the_file() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let whole = arrow(Some(codec), true);
        let is_length = |at: &usize| {
            let word = u64::from_le_bytes(whole[*at..at + 8].try_into().unwrap());
            (64..10_000).contains(&word)
        };
        let refused = (0..whole.len() - 8)
            .step_by(8)
            .filter(is_length)
            .filter(|at| {
                let folder = Folder::new();
                let mut bytes = whole.clone();
                bytes[at + 5] = 0xff;
                folder.add("in/a.arrow", bytes);
                folder.add("in/z.jsonl", record("good", STORY));
                let done = extract(&folder);
                assert!(matches!(done.status, Some(0 | 3)), "{}", done.err);
                done.err.contains("says that it comes to") && done.err.contains("a.arrow")
            });
        // There are at least two: the numbers and the texts.
        assert!(refused.count() >= 2, "{codec:?}");
    }
}
