//! Parquet and Arrow IPC: every type of text column, and every kind of damage.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array,
    Int64Array, LargeListViewArray, LargeStringArray, ListArray, ListViewArray, NullArray,
    RecordBatch, RunArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
    UnionArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use lookalike_corpus::{CodeTable, InputOptions, SkipKind, TextState};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::fuzzing::allocation;
use crate::support::{Corpus, Reading, read, read_raw};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Builds a batch with ids 0, 1, ... and this column of texts.
fn with_text(text: ArrayRef) -> RecordBatch {
    let ids: Int64Array = (0..text.len() as i64).collect();
    batch(vec![("id", Arc::new(ids)), ("text", text)])
}

fn parquet_rows(path: &Path, batch: &RecordBatch, rows_a_group: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows_a_group))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn ipc_file(path: &Path, batch: &RecordBatch) {
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn ipc_stream(path: &Path, batch: &RecordBatch) {
    let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

type Write = fn(&Path, &RecordBatch);

const KINDS: [(&str, Write); 3] = [
    ("t.parquet", |path, batch| parquet_rows(path, batch, 2)),
    ("t.arrow", ipc_file),
    ("t.arrows", ipc_stream),
];

fn written(name: &str, write: Write, batch: &RecordBatch) -> Corpus {
    let corpus = Corpus::with(name, b"");
    write(&corpus.path(name), batch);
    corpus
}

fn read_with(corpus: &Corpus, name: &str, options: &InputOptions) -> Reading {
    let inputs = corpus.inputs(name, options);
    let reading = read(&inputs, options);
    assert_eq!(read_raw(&inputs, options).len(), reading.records.len());
    reading
}

#[test]
fn texts_of_every_type() {
    let words = vec![Some("one"), None, Some("\"three\"")];
    let bytes: Vec<Option<&[u8]>> = words.iter().map(|w| w.map(str::as_bytes)).collect();
    let texts: [ArrayRef; 5] = [
        Arc::new(StringArray::from(words.clone())),
        Arc::new(LargeStringArray::from(words.clone())),
        Arc::new(StringViewArray::from(words.clone())),
        Arc::new(BinaryArray::from(bytes)),
        Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>()),
    ];
    for (name, write) in KINDS {
        for text in &texts {
            let kind = text.data_type();
            let corpus = written(name, write, &with_text(text.clone()));
            let reading = read_with(&corpus, name, &InputOptions::default());
            assert_eq!(reading.ids(), ["0", "1", "2"], "{name} {kind}");
            assert_eq!(reading.texts(), ["one", "", "\"three\""], "{name} {kind}");
            let state = reading.records[1].as_ref().unwrap().state;
            assert_eq!(state, TextState::Missing, "{name} {kind}");
            assert!(reading.skips.is_empty(), "{name} {kind}");
        }
    }
}

#[test]
fn other_columns_are_fields_and_nested_ones_are_reached() {
    let inner: ArrayRef = Arc::new(StringArray::from(vec!["deep"]));
    let nested = StructArray::try_from(vec![("body", inner)]).unwrap();
    let all = batch(vec![
        ("page", Arc::new(nested)),
        ("score", Arc::new(Float64Array::from(vec![0.5]))),
        ("nan", Arc::new(Float64Array::from(vec![f64::NAN]))),
        ("flag", Arc::new(BooleanArray::from(vec![true]))),
        (
            "when",
            Arc::new(TimestampMicrosecondArray::from(vec![1_000_000])),
        ),
    ]);
    let options = InputOptions::default()
        .text_field(Some("page.body".parse().unwrap()))
        .order_field(Some("newest:when".parse().unwrap()));
    for (name, write) in KINDS {
        let corpus = written(name, write, &all);
        let reading = read_with(&corpus, name, &options);
        let seen = reading.records[0].as_ref().unwrap();
        assert_eq!(
            (seen.text.as_str(), seen.rank),
            ("deep", Some(1.0)),
            "{name}"
        );
        assert_eq!(
            String::from_utf8_lossy(&seen.raw),
            r#"{"page":{"body":"deep"},"score":0.5,"nan":null,"flag":true,"when":"1970-01-01T00:00:01Z"}"#
        );
    }
}

#[test]
fn a_column_of_another_type_is_an_error_of_each_row() {
    for (name, write) in KINDS {
        let corpus = written(name, write, &with_text(Arc::new(Int64Array::from(vec![7]))));
        let reading = read_with(&corpus, name, &InputOptions::default());
        assert_eq!(
            reading.reasons(),
            ["the text field holds a number, not a string"]
        );
    }
}

#[test]
fn no_rows_and_nothing_but_nulls() {
    for (name, write) in KINDS {
        let none = with_text(Arc::new(StringArray::from(Vec::<&str>::new())));
        let corpus = written(name, write, &none);
        assert_eq!(
            read_with(&corpus, name, &InputOptions::default()),
            Reading::default()
        );
        let corpus = written(name, write, &with_text(Arc::new(NullArray::new(2))));
        let reading = read_with(&corpus, name, &InputOptions::default());
        assert_eq!(reading.texts(), ["", ""], "{name}");
    }
}

#[test]
fn a_text_that_is_too_long_keeps_its_row() {
    let options = InputOptions::default().max_document_bytes(100);
    let long = "x".repeat(101);
    let texts = StringArray::from(vec![long.as_str(), "short"]);
    for (name, write) in KINDS {
        let corpus = written(name, write, &with_text(Arc::new(texts.clone())));
        let reading = read_with(&corpus, name, &options);
        let states: Vec<TextState> = reading.records.iter().flatten().map(|s| s.state).collect();
        assert_eq!(states, [TextState::TooLong, TextState::Present], "{name}");
        assert_eq!(reading.ids(), ["0", "1"], "{name}");
        // Rows written as lines used to have `null` in its place.
        let raw = read_raw(&corpus.inputs(name, &options), &options);
        let kept = String::from_utf8(raw[0].bytes.clone()).unwrap();
        assert!(kept.contains(&long), "{name}: {kept}");
    }
}

/// Cuts each kind of file at every byte: no panic, and the loss is reported, except if the file has all rows and only lacks a part of its footer.
#[test]
fn cut_at_every_byte() {
    let words: Vec<String> = (0..6).map(|n| format!("text number {n}")).collect();
    let rows = with_text(Arc::new(StringArray::from(words)));
    for (name, write) in KINDS {
        let corpus = written(name, write, &rows);
        let whole = std::fs::read(corpus.path(name)).unwrap();
        for cut in 1..whole.len() {
            corpus.add(name, &whole[..cut]);
            let reading = read_with(&corpus, name, &InputOptions::default());
            let told = reading
                .skips
                .iter()
                .any(|skip| skip.kind == SkipKind::Damaged);
            let lacks_footer = name == "t.arrow" && reading.texts().len() == 6;
            assert!(told || lacks_footer, "{name} cut at {cut}");
            // Without the last byte, only the mark of the footer is broken.
            assert!(
                told != lacks_footer || cut + 1 < whole.len(),
                "{name} is damaged"
            );
        }
    }
}

/// Flips every byte of the footer and of the pages: errors, but no panics.
#[test]
fn every_flipped_byte_is_survived() {
    let rows = with_text(Arc::new(StringArray::from(vec!["one", "two", "three"])));
    for (name, write) in KINDS {
        let corpus = written(name, write, &rows);
        let whole = std::fs::read(corpus.path(name)).unwrap();
        for at in 8..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= [0x01, 0x80, 0xff][at % 3];
            corpus.add(name, &broken);
            let reading = read_with(&corpus, name, &InputOptions::default());
            assert!(reading.records.len() <= 1 << 20, "{name} byte {at}");
        }
    }
}

/// Writes three row groups with two texts each.
fn six_texts(compression: Compression) -> (Corpus, Vec<u8>) {
    let words = StringArray::from(vec!["one", "two", "three", "four", "five", "six"]);
    let rows = with_text(Arc::new(words));
    let corpus = written("a.parquet", |path, rows| parquet_rows(path, rows, 2), &rows);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(2))
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .build();
    let file = File::create(corpus.path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let whole = std::fs::read(corpus.path("a.parquet")).unwrap();
    (corpus, whole)
}

/// Returns the file with another second row group in its footer.
fn with_second_group(
    corpus: &Corpus,
    whole: &[u8],
    change: impl Fn(RowGroupMetaData) -> RowGroupMetaData,
) -> Vec<u8> {
    let file = File::open(corpus.path("a.parquet")).unwrap();
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let mut groups = metadata.row_groups().to_vec();
    groups[1] = change(groups[1].clone());
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let length: [u8; 4] = whole[whole.len() - 8..][..4].try_into().unwrap();
    let data = whole.len() - 8 - u32::from_le_bytes(length) as usize;
    let mut changed = whole[..data].to_vec();
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata)
        .finish()
        .unwrap();
    changed.extend(footer);
    changed
}

/// Checks that declared sizes are not trusted: memory for them is not available. The other row groups are read, and the contents of this one are read
/// or reported as lost.
fn is_not_believed(corpus: &Corpus, name: &str, bytes: &[u8]) {
    corpus.add("a.parquet", bytes);
    let reading = read_with(corpus, "a.parquet", &InputOptions::default());
    let texts = reading.texts();
    if reading.skips.is_empty() {
        return assert_eq!(
            texts,
            ["one", "two", "three", "four", "five", "six"],
            "{name}"
        );
    }
    assert!(
        reading
            .skips
            .iter()
            .all(|skip| skip.kind == SkipKind::Damaged),
        "{name}"
    );
    // If something is beyond the end of the file, the footer does not belong to this file.
    let whole_footer_lies = texts.is_empty();
    let others_read = texts.starts_with(&["one", "two"]) && texts.ends_with(&["five", "six"]);
    assert!(whole_footer_lies || others_read, "{name}: {texts:?}");
}

#[test]
fn huge_declared_row_groups_are_not_believed() {
    let (corpus, whole) = six_texts(Compression::UNCOMPRESSED);
    for huge in [1 << 31, 1 << 40, 1 << 61] {
        let group = |change: &dyn Fn(RowGroupMetaData) -> RowGroupMetaData| {
            with_second_group(&corpus, &whole, change)
        };
        let rows = group(&|group| group.into_builder().set_num_rows(huge).build().unwrap());
        is_not_believed(&corpus, "rows", &rows);
        corpus.add("a.parquet", &whole);
        let bytes = group(&|group| {
            group
                .into_builder()
                .set_total_byte_size(huge)
                .build()
                .unwrap()
        });
        is_not_believed(&corpus, "bytes of a group", &bytes);
        type Change = fn(ColumnChunkMetaData, i64) -> ColumnChunkMetaData;
        let changes: [(&str, Change); 3] = [
            ("values of a column", |column, huge| {
                column.into_builder().set_num_values(huge).build().unwrap()
            }),
            ("bytes of a column", |column, huge| {
                column
                    .into_builder()
                    .set_total_uncompressed_size(huge)
                    .build()
                    .unwrap()
            }),
            ("compressed bytes of a column", |column, huge| {
                column
                    .into_builder()
                    .set_total_compressed_size(huge)
                    .build()
                    .unwrap()
            }),
        ];
        for (name, change) in changes {
            corpus.add("a.parquet", &whole);
            let column = group(&|group| {
                let columns = group.columns().iter().cloned();
                let columns = columns.map(|column| change(column, huge)).collect();
                group
                    .into_builder()
                    .set_column_metadata(columns)
                    .build()
                    .unwrap()
            });
            is_not_believed(&corpus, name, &column);
        }
        corpus.add("a.parquet", &whole);
    }
}

/// The last page of the file declares 2 GiB, packed and unpacked.
#[test]
fn huge_declared_pages_are_not_believed() {
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let (corpus, whole) = six_texts(compression);
        let file = File::open(corpus.path("a.parquet")).unwrap();
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .unwrap();
        let page = metadata.row_group(2).column(1).data_page_offset() as usize;
        // Thrift's compact protocol: two 32-bit fields after the kind of the page.
        assert_eq!((whole[page], whole[page + 2]), (0x15, 0x15));
        let varint =
            |from: usize| from + whole[from..].iter().take_while(|b| **b >= 0x80).count() + 1;
        let unpacked = varint(page + 3);
        let packed = varint(unpacked + 1);
        let huge = [0xfe, 0xff, 0xff, 0xff, 0x0f];
        for (name, from, to) in [
            ("unpacked", page + 3, unpacked),
            ("packed", unpacked + 1, packed),
        ] {
            let bytes = [&whole[..from], &huge, &whole[to..]].concat();
            corpus.add("a.parquet", &bytes);
            let reading = read_with(&corpus, "a.parquet", &InputOptions::default());
            assert_eq!(
                &reading.texts()[..4],
                ["one", "two", "three", "four"],
                "{name}"
            );
            let told = reading
                .skips
                .iter()
                .any(|skip| skip.kind == SkipKind::Damaged);
            assert!(told || reading.texts().len() == 6, "{name}");
        }
    }
}

/// Returns the file with a checksum in the head of its last page, and the offset of the last byte of the page.
fn with_page_checksum(corpus: &Corpus, whole: &[u8]) -> (Vec<u8>, usize) {
    let file = File::open(corpus.path("a.parquet")).unwrap();
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let mut groups = metadata.row_groups().to_vec();
    let mut columns = groups[2].columns().to_vec();
    let (start, length) = columns[1].byte_range();
    let (start, end) = (start as usize, (start + length) as usize);
    // Thrift's compact protocol: kind, unpacked and packed size, each in a byte, and after the checksum the struct of the page.
    assert_eq!(
        [0, 2, 4, 6].map(|at| whole[start + at]),
        [0x15, 0x15, 0x15, 0x2c]
    );
    let values = &whole[end - usize::from(whole[start + 5] / 2)..end];
    let mut checksum = flate2::Crc::new();
    checksum.update(values);
    let checksum = checksum.sum().cast_signed();
    let mut zigzag = (checksum << 1 ^ checksum >> 31).cast_unsigned();
    let mut field = vec![0x15];
    while zigzag >= 0x80 {
        field.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    field.extend([zigzag as u8, 0x1c]);
    let mut changed = [&whole[..start + 6], &field, &whole[start + 7..end]].concat();
    let last = changed.len() - 1;
    let column = columns[1].clone().into_builder();
    let length = (changed.len() - start) as i64;
    columns[1] = column.set_total_compressed_size(length).build().unwrap();
    let group = groups[2].clone().into_builder();
    groups[2] = group.set_column_metadata(columns).build().unwrap();
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let mut footer = Vec::new();
    let writer = ParquetMetaDataWriter::new(&mut footer, &metadata);
    writer.finish().unwrap();
    changed.extend(footer);
    (changed, last)
}

#[test]
fn a_codec_that_is_not_read_was_told_in_the_words_of_the_library() {
    let (corpus, whole) = six_texts(Compression::UNCOMPRESSED);
    let bytes = with_second_group(&corpus, &whole, |group| {
        let columns = group.columns().iter().cloned();
        let columns = columns.map(|column| {
            let column = column.into_builder();
            column.set_compression(Compression::LZO).build().unwrap()
        });
        let columns = columns.collect();
        let group = group.into_builder().set_column_metadata(columns);
        group.build().unwrap()
    });
    corpus.add("a.parquet", &bytes);
    let reading = read_with(&corpus, "a.parquet", &InputOptions::default());
    assert_eq!(reading.texts(), ["one", "two", "five", "six"]);
    let reason = "row group 2: pages compressed with LZO are not read: write the table with zstd";
    assert_eq!(reading.skips[0].reason, reason);
}

#[test]
fn a_page_that_contradicts_its_checksum_was_read() {
    let (corpus, whole) = six_texts(Compression::UNCOMPRESSED);
    let (mut bytes, last) = with_page_checksum(&corpus, &whole);
    let read_bytes = |bytes: &[u8]| {
        corpus.add("a.parquet", bytes);
        read_with(&corpus, "a.parquet", &InputOptions::default())
    };
    assert_eq!(read_bytes(&bytes).texts()[4..], ["five", "six"]);
    bytes[last] ^= 1;
    let reading = read_bytes(&bytes);
    assert_eq!(reading.texts(), ["one", "two", "three", "four"]);
    let [skip] = &reading.skips[..] else {
        panic!("{:?}", reading.skips);
    };
    assert_eq!(skip.kind, SkipKind::Damaged);
}

/// Returns an Arrow file with one text of zeros, and the position of the length of the text in it.
fn packed_zeros(codec: CompressionType, bytes: usize) -> (Vec<u8>, usize) {
    let text = "0".repeat(bytes);
    let batch = batch(vec![("text", Arc::new(StringArray::from(vec![text])))]);
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(codec))
        .unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let file = writer.into_inner().unwrap();
    let magic: [u8; 4] = match codec {
        CompressionType::LZ4_FRAME => [0x04, 0x22, 0x4d, 0x18],
        _ => [0x28, 0xb5, 0x2f, 0xfd],
    };
    let length = [&(bytes as u64).to_le_bytes()[..], &magic].concat();
    let at = file.windows(12).position(|window| window == length);
    (file, at.unwrap())
}

#[test]
fn a_buffer_that_grows_beyond_its_length_is_refused_before_it_is_unpacked() {
    let bytes = 120 << 20;
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let (mut file, at) = packed_zeros(codec, bytes);
        file[at..at + 8].copy_from_slice(&1000_u64.to_le_bytes());
        let corpus = Corpus::with("t.arrow", &file);
        let options = InputOptions::default();
        let inputs = corpus.inputs("t.arrow", &options);
        allocation::largest();
        let reading = read(&inputs, &options);
        let largest = allocation::largest();
        assert!(largest < 32 << 20, "{codec:?}: {largest}");
        assert_eq!(reading.records.len(), 0);
        assert_eq!(reading.skips.len(), 1, "{codec:?}");
    }
}

#[test]
fn brotli_pages_of_both_versions_are_read() {
    for file in [
        include_bytes!("../fixtures/brotli.parquet").as_slice(),
        include_bytes!("../fixtures/brotli-v2.parquet"),
    ] {
        let corpus = Corpus::with("t.parquet", file);
        let reading = read_with(&corpus, "t.parquet", &InputOptions::default());
        let ports = ["null", "\"north\"", "\"north\""];
        let words = ["", "\"word 0\"", "\"word 0\",\"word 1\""];
        for (row, record) in reading.records.iter().enumerate() {
            let text = "the ferry left the harbour at nine ".repeat(8);
            let (port, words) = (ports[row], words[row]);
            let expected = format!(
                r#"{{"text":"{row} {text}","port":{port},"words":[{words}],"nothing":null}}"#
            );
            let raw = &record.as_ref().unwrap().raw;
            assert_eq!(String::from_utf8_lossy(raw), expected);
        }
        assert_eq!((reading.records.len(), reading.skips.len()), (3, 0));
    }
}

#[test]
fn a_brotli_page_that_grows_beyond_its_length_is_refused_before_it_is_unpacked() {
    let mut file = include_bytes!("../fixtures/brotli-zeros.parquet").to_vec();
    let corpus = Corpus::with("t.parquet", &file);
    let options = InputOptions::default();
    let inputs = corpus.inputs("t.parquet", &options);
    assert_eq!(read(&inputs, &options).texts(), ["0".repeat(32 << 20)]);

    // After the magic comes the head of the page: kind 0 and the unpacked size, as numbers of zigzag.
    assert_eq!((&file[4..7], file[10]), (&[0x15, 0, 0x15][..], 32));
    file[10] = 2;
    let corpus = Corpus::with("t.parquet", &file);
    let inputs = corpus.inputs("t.parquet", &options);
    allocation::largest();
    let reading = read(&inputs, &options);
    let largest = allocation::largest();
    // The decoder keeps the last 4 MiB.
    assert!(largest < 6 << 20, "{largest}");
    assert_eq!(reading.records.len(), 0);
    let reason = &reading.skips[0].reason;
    assert!(reason.contains("a page comes to more than"), "{reason}");
}

#[test]
fn a_batch_over_the_limit_is_refused_with_a_remedy() {
    let (file, _) = packed_zeros(CompressionType::ZSTD, 3 << 20);
    let corpus = Corpus::with("t.arrow", &file);
    let read_up_to = |max_batch_bytes| {
        let options = InputOptions::default().max_batch_bytes(max_batch_bytes);
        read(&corpus.inputs("t.arrow", &options), &options)
    };
    assert_eq!(read_up_to(4 << 20).records.len(), 1);
    let refused = read_up_to(2 << 20);
    assert_eq!(refused.records.len(), 0);
    assert!(
        refused.skips[0].reason.contains("write smaller batches"),
        "{:?}",
        refused.skips
    );
}

/// A dictionary makes a table small in which one long text occurs in many rows; each row is the whole text.
#[test]
fn a_long_text_in_many_rows_is_read_without_a_copy_for_each() {
    let text = "the ferry left the harbour ".repeat(10_000);
    let texts = StringArray::from_iter_values(std::iter::repeat_n(text.as_str(), 500));
    let corpus = written(
        "t.parquet",
        |path, batch| parquet_rows(path, batch, 1 << 20),
        &with_text(Arc::new(texts)),
    );
    let options = InputOptions::default();
    let inputs = corpus.inputs("t.parquet", &options);
    let mut records = 0;
    allocation::largest();
    for chunk in inputs.chunks(&options) {
        let chunk = chunk.unwrap();
        assert!(chunk.skips.is_empty(), "{:?}", chunk.skips);
        records += chunk.records;
    }
    let largest = allocation::largest();
    assert_eq!(records, 500);
    assert!(largest < 32 << 20, "{largest}");
}

/// Regression test: eight zeros in place of a message are the end mark, and the bytes after it were never examined.
#[test]
fn a_mark_of_the_end_before_the_end_is_told() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", "two"]));
    for (name, write) in &KINDS[1..] {
        let corpus = written(name, *write, &with_text(texts.clone()));
        let whole = std::fs::read(corpus.path(name)).unwrap();
        let places: Vec<usize> = (8..whole.len() - 8)
            .filter(|&at| whole[at..at + 4] == [0xff; 4] && whole[at + 4..at + 8] != [0; 4])
            .collect();
        let batch = *places.last().unwrap();
        // A power failure may leave zeros up to the end of a file.
        for end in [batch + 8, whole.len()] {
            let mut bytes = whole.clone();
            bytes[batch..end].fill(0);
            std::fs::write(corpus.path(name), bytes).unwrap();
            let options = InputOptions::default();
            let reading = read(&corpus.inputs(name, &options), &options);
            let found = (reading.records.len(), reading.skips.len());
            assert_eq!(found, (0, 1), "{name} up to {end}");
            assert!(
                reading.skips[0].reason.contains("mark"),
                "{:?}",
                reading.skips
            );
        }
    }
}

#[test]
fn rows_that_a_row_group_lacks_vanished() {
    let (corpus, whole) = six_texts(Compression::UNCOMPRESSED);
    let changed = with_second_group(&corpus, &whole, |group| {
        group.into_builder().set_num_rows(5).build().unwrap()
    });
    let path = corpus.add("a.parquet", &changed);
    let reading = read_with(&corpus, "a.parquet", &InputOptions::default());
    assert_eq!((reading.records.len(), reading.skips.len()), (6, 1));
    let reason = "row group 2: it lacks 3 of the rows that its footer declares";
    assert!(
        reading.skips[0].reason.contains(reason),
        "{:?}",
        reading.skips
    );
    let mut table = CodeTable::open(&path, "text").unwrap();
    let error = loop {
        match table.read(&mut |_, _, _| ()) {
            Ok(more) => assert!(more, "the table ended without a word"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("it lacks 3 of the rows"), "{error}");
}

#[test]
fn rows_behind_a_lost_row_group_had_the_ids_of_the_lost_ones() {
    let words = StringArray::from(vec!["one", "two", "three", "four", "five", "six"]);
    let rows = batch(vec![("text", Arc::new(words))]);
    let corpus = written("a.parquet", |path, rows| parquet_rows(path, rows, 2), &rows);
    let numbers = |reading: &Reading| -> Vec<u64> {
        let good = reading.records.iter().flatten();
        let number = |id: &str| id.rsplit(':').next().unwrap().parse().unwrap();
        good.map(|seen| {
            let number = number(&seen.id);
            assert_eq!(seen.offset + 1, number);
            number
        })
        .collect()
    };
    let reading = read_with(&corpus, "a.parquet", &InputOptions::default());
    assert_eq!(numbers(&reading), [1, 2, 3, 4, 5, 6]);
    let file = File::open(corpus.path("a.parquet")).unwrap();
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let mut bytes = std::fs::read(corpus.path("a.parquet")).unwrap();
    let (start, length) = metadata.row_group(1).column(0).byte_range();
    bytes[start as usize..][..length as usize].fill(0xff);
    corpus.add("a.parquet", &bytes);
    let reading = read_with(&corpus, "a.parquet", &InputOptions::default());
    assert_eq!(numbers(&reading), [1, 2, 5, 6]);
    assert_eq!(reading.skips[0].offset, Some(2));
}

/// Makes every `br_ken` in a file invalid UTF-8.
fn break_texts(corpus: &Corpus, name: &str) {
    let mut bytes = std::fs::read(corpus.path(name)).unwrap();
    let found: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"br_ken"))
        .collect();
    assert!(!found.is_empty(), "{name}");
    for at in found {
        bytes[at + 2] = 0xff;
    }
    corpus.add(name, &bytes);
}

#[test]
fn a_text_that_was_not_utf8_lost_the_rows_beside_it() {
    let words = vec![
        Some("one"),
        Some("a br_ken text that takes more than twelve bytes"),
        None,
        Some("four"),
        Some("br_ken"),
        Some("six"),
    ];
    let texts: [ArrayRef; 4] = [
        Arc::new(StringArray::from(words.clone())),
        Arc::new(LargeStringArray::from(words.clone())),
        Arc::new(StringViewArray::from(words.clone())),
        Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>()),
    ];
    let whole: Write = |path, batch| parquet_rows(path, batch, 100);
    for (name, write) in KINDS.into_iter().chain([("whole.parquet", whole)]) {
        for text in &texts {
            let kind = text.data_type();
            let corpus = written(name, write, &with_text(text.clone()));
            break_texts(&corpus, name);
            let reading = read_with(&corpus, name, &InputOptions::default());
            assert_eq!(reading.ids(), ["0", "2", "3", "5"], "{name} {kind}");
            assert_eq!(reading.texts(), ["one", "", "four", "six"], "{name} {kind}");
            let bad: Vec<_> = reading
                .records
                .iter()
                .filter_map(|record| record.as_ref().err())
                .map(|bad| (bad.number, bad.reason.as_str()))
                .collect();
            let reason = "column text: its text is not UTF-8";
            assert_eq!(bad, [(1, reason), (4, reason)], "{name} {kind}");
            assert!(reading.skips.is_empty(), "{name} {kind}");
        }
    }
}

#[test]
fn a_column_of_lists_lost_the_rows_after_its_first_page() {
    const ROWS: usize = 9000;
    let lengths = || (0..ROWS).map(|row| row % 4);
    let words = (0..lengths().sum()).map(|word| format!("w{word}"));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(words));
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths(lengths()), words, None);
    let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("text {row}")));
    let rows = batch(vec![("text", Arc::new(texts)), ("words", Arc::new(lists))]);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_write_batch_size(100)
            .set_data_page_row_count_limit(1000)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        let corpus = Corpus::with("t.parquet", &writer.into_inner().unwrap());
        let reading = read_with(&corpus, "t.parquet", &InputOptions::default());
        assert!(reading.skips.is_empty(), "{:?}", reading.skips);
        let mut word = 0;
        for (row, record) in reading.records.iter().enumerate() {
            let list = (word..word + row % 4).map(|word| format!("\"w{word}\""));
            let list = list.collect::<Vec<_>>().join(",");
            word += row % 4;
            let raw = String::from_utf8_lossy(&record.as_ref().unwrap().raw).into_owned();
            let expected = format!("{{\"text\":\"text {row}\",\"words\":[{list}]}}");
            assert_eq!(raw, expected, "{version:?}");
        }
        assert_eq!(reading.records.len(), ROWS);
    }
}

#[test]
fn a_text_in_a_list_that_was_not_utf8_lost_the_rows_beside_it() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "br_ken", "z"]));
    let item = Arc::new(Field::new("word", DataType::Utf8, true));
    let words: ArrayRef = Arc::new(StructArray::new(vec![item].into(), vec![words], None));
    let item = Arc::new(Field::new("item", words.data_type().clone(), true));
    let ends = OffsetBuffer::from_lengths([1, 2, 0, 1]);
    let lists = ListArray::new(item, ends, words, None);
    let bytes = BinaryArray::from(vec![b"\xff".as_ref(); 4]);
    let texts = StringArray::from(vec!["one", "two", "three", "four"]);
    let rows = batch(vec![
        ("text", Arc::new(texts)),
        ("words", Arc::new(lists)),
        ("bytes", Arc::new(bytes)),
    ]);
    for (name, write) in KINDS {
        let corpus = written(name, write, &rows);
        break_texts(&corpus, name);
        let reading = read_with(&corpus, name, &InputOptions::default());
        assert_eq!(reading.texts(), ["one", "three", "four"], "{name}");
        let reason = "column words: its text is not UTF-8";
        assert_eq!(reading.reasons(), [reason], "{name}");
        assert!(reading.skips.is_empty(), "{name}");
        let raw = String::from_utf8_lossy(&reading.records[0].as_ref().unwrap().raw).into_owned();
        assert_eq!(
            raw, "{\"text\":\"one\",\"words\":[{\"word\":\"x\"}],\"bytes\":\"\u{ff}\"}",
            "{name}"
        );
    }
}

/// Returns the words as list views of one word each, as runs, and as unions.
fn unusual_columns(words: &[&str]) -> Vec<ArrayRef> {
    let texts: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
    let count = words.len();
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let views = ListViewArray::new(
        item.clone(),
        (0..count as i32).collect::<Vec<_>>().into(),
        vec![1; count].into(),
        texts.clone(),
        None,
    );
    let large_views = LargeListViewArray::new(
        item.clone(),
        (0..count as i64).collect::<Vec<_>>().into(),
        vec![1; count].into(),
        texts.clone(),
        None,
    );
    let ends: Int32Array = (1..=count as i32).collect();
    let runs = RunArray::try_new(&ends, texts.as_ref()).unwrap();
    let union = |offsets: Option<Vec<i32>>| {
        let fields = [(3, item.clone())].into_iter().collect();
        let offsets = offsets.map(Into::into);
        UnionArray::try_new(fields, vec![3; count].into(), offsets, vec![texts.clone()]).unwrap()
    };
    vec![
        Arc::new(views),
        Arc::new(large_views),
        Arc::new(runs),
        Arc::new(union(None)),
        Arc::new(union(Some((0..count as i32).collect()))),
    ]
}

#[test]
fn a_text_in_a_list_view_a_run_or_a_union_that_was_not_utf8_lost_the_rest_of_the_file() {
    for words in unusual_columns(&["x", "br_ken", "z"]) {
        let kind = words.data_type().clone();
        let texts = StringArray::from(vec!["one", "two", "three"]);
        let rows = batch(vec![("text", Arc::new(texts)), ("words", words)]);
        for (name, write) in &KINDS[1..] {
            let corpus = written(name, *write, &rows);
            break_texts(&corpus, name);
            let reading = read_with(&corpus, name, &InputOptions::default());
            assert_eq!(reading.texts(), ["one", "three"], "{name} {kind}");
            let bad = reading.records[1].as_ref().unwrap_err();
            assert_eq!(bad.number, 1, "{name} {kind}");
            assert_eq!(bad.reason, "column words: its text is not UTF-8");
            assert!(reading.skips.is_empty(), "{name} {kind}");
            let raw = &reading.records[2].as_ref().unwrap().raw;
            assert!(raw.windows(3).any(|part| part == b"\"z\""), "{name} {kind}");
        }
    }
}

#[test]
fn a_text_that_was_not_utf8_beside_a_long_schema_lost_the_rest_of_the_file() {
    let metadata = [("notes".to_owned(), "n".repeat(17 << 20))];
    let texts = StringArray::from(vec!["one", "br_ken", "three"]);
    let field = Field::new("text", DataType::Utf8, false).with_metadata(metadata.into());
    let schema = Arc::new(Schema::new(vec![field]));
    let rows = RecordBatch::try_new(schema, vec![Arc::new(texts)]).unwrap();
    for (name, write) in &KINDS[1..] {
        let corpus = written(name, *write, &rows);
        break_texts(&corpus, name);
        let reading = read_with(&corpus, name, &InputOptions::default());
        assert_eq!(reading.texts(), ["one", "three"], "{name}");
        assert!(reading.skips.is_empty(), "{name}");
    }
}

#[test]
fn a_schema_that_is_too_long_was_refused_without_a_remedy() {
    let (prefix, length) = ([0xff; 4], (256_u32 << 20) + 8);
    let corpus = Corpus::with("t.arrows", &[prefix, length.to_le_bytes()].concat());
    let file = File::options().write(true).open(corpus.path("t.arrows"));
    file.unwrap().set_len(u64::from(length) + 64).unwrap();
    let reading = read_with(&corpus, "t.arrows", &InputOptions::default());
    assert_eq!(
        reading.skips[0].reason,
        "a message has a header of 268435464 bytes, and at most 268435456 are read: write the table with fewer columns or less metadata"
    );
}
