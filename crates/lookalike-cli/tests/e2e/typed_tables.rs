//! Parquet and Arrow as input, Parquet as output: rows keep their types, schema, metadata, files and order.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Int32Type, IntervalMonthDayNano};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array,
    DictionaryArray, DurationMicrosecondArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, LargeBinaryArray,
    LargeStringArray, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    Time32MillisecondArray, Time32SecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::results::Results;
use crate::support::{Finish, Folder, lookalike};

/// Number of rows, of which every third has the text of the one before; ids descend.
const ROWS: usize = 900;

fn id(row: usize) -> String {
    format!("r{:04}", ROWS - row)
}

/// Returns whether a row is kept: of two rows with equal text, that with the smaller id survives.
fn is_kept(row: usize) -> bool {
    row % 3 != 1
}

fn text(row: usize) -> String {
    let story = if row % 3 == 2 { row - 1 } else { row };
    (0..12)
        .map(|word| format!("w{} ", story * 31 + word))
        .collect()
}

/// Returns values that are null in every third row.
fn some<T>(make: impl Fn(usize) -> T) -> Vec<Option<T>> {
    (0..ROWS)
        .map(|row| (row % 3 != 0).then(|| make(row)))
        .collect()
}

/// Returns columns of every type that Parquet and Arrow share.
fn columns() -> Vec<(&'static str, ArrayRef)> {
    let bytes = some(|row| vec![0xff, row as u8, 0, 0xfe]);
    let bytes = || bytes.iter().map(Option::as_deref);
    let places = some(|row| {
        (0..row % 4)
            .map(|place| Some(place as i32))
            .collect::<Vec<_>>()
    });
    let score: ArrayRef = Arc::new(Float32Array::from(some(|row| row as f32 / 7.0)));
    let name: ArrayRef = Arc::new(StringArray::from_iter(some(|row| format!("n{row}"))));
    let fields = [("score", score), ("name", name)].map(|(name, array)| {
        (
            Arc::new(Field::new(name, array.data_type().clone(), true)),
            array,
        )
    });
    vec![
        (
            "id",
            Arc::new(StringArray::from_iter_values((0..ROWS).map(id))),
        ),
        (
            "text",
            Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(text))),
        ),
        ("i8", Arc::new(Int8Array::from(some(|row| row as i8)))),
        ("i16", Arc::new(Int16Array::from(some(|row| -(row as i16))))),
        ("i32", Arc::new(Int32Array::from(some(|row| row as i32)))),
        (
            "i64",
            Arc::new(Int64Array::from(some(|row| i64::MIN + row as i64))),
        ),
        ("u8", Arc::new(UInt8Array::from(some(|row| row as u8)))),
        ("u16", Arc::new(UInt16Array::from(some(|row| row as u16)))),
        (
            "u32",
            Arc::new(UInt32Array::from(some(|row| u32::MAX - row as u32))),
        ),
        (
            "u64",
            Arc::new(UInt64Array::from(some(|row| u64::MAX - row as u64))),
        ),
        (
            "f32",
            Arc::new(Float32Array::from(some(|row| 0.1 * row as f32))),
        ),
        ("f64", Arc::new(Float64Array::from(some(|_| f64::INFINITY)))),
        (
            "bool",
            Arc::new(BooleanArray::from(some(|row| row % 2 == 0))),
        ),
        (
            "view",
            Arc::new(StringViewArray::from_iter(some(|row| {
                format!("a longer text {row}")
            }))),
        ),
        ("binary", Arc::new(BinaryArray::from_iter(bytes()))),
        ("large", Arc::new(LargeBinaryArray::from_iter(bytes()))),
        (
            "fixed",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), 4).unwrap()),
        ),
        ("day", Arc::new(Date32Array::from(some(|row| row as i32)))),
        (
            "day64",
            Arc::new(Date64Array::from(some(|row| 86_400_000 * row as i64))),
        ),
        (
            "s",
            Arc::new(TimestampSecondArray::from(some(|row| row as i64))),
        ),
        (
            "ms",
            Arc::new(
                TimestampMillisecondArray::from(some(|row| row as i64))
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        (
            "us",
            Arc::new(TimestampMicrosecondArray::from(some(|row| row as i64)).with_timezone("UTC")),
        ),
        (
            "ns",
            Arc::new(TimestampNanosecondArray::from(some(|row| row as i64))),
        ),
        (
            "time",
            Arc::new(Time32SecondArray::from(some(|row| row as i32))),
        ),
        (
            "time64",
            Arc::new(Time64NanosecondArray::from(some(|row| row as i64))),
        ),
        (
            "took",
            Arc::new(DurationMicrosecondArray::from(some(|row| row as i64))),
        ),
        (
            "price",
            Arc::new(
                Decimal128Array::from(some(|row| 100 * row as i128 + 25))
                    .with_precision_and_scale(12, 2)
                    .unwrap(),
            ),
        ),
        (
            "kind",
            Arc::new(
                some(|row| ["even", "odd"][row % 2])
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        (
            "places",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(places)),
        ),
        ("at", Arc::new(StructArray::from(fields.to_vec()))),
        ("nothing", Arc::new(NullArray::new(ROWS))),
    ]
}

/// Returns the same columns, with Arrow types that Parquet lacks replaced by the nearest type.
fn columns_of_parquet() -> Vec<(&'static str, ArrayRef)> {
    let mut columns = columns();
    for (name, column) in &mut columns {
        let timestamps = |unit: i64| TimestampMillisecondArray::from(some(|row| unit * row as i64));
        match *name {
            "day64" => *column = Arc::new(timestamps(86_400_000)),
            "s" => *column = Arc::new(timestamps(1000)),
            "time" => {
                *column = Arc::new(Time32MillisecondArray::from(some(|row| 1000 * row as i32)));
            }
            _ => {}
        }
    }
    columns
}

fn table(columns: Vec<(&'static str, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| {
        let field = Field::new(*name, array.data_type().clone(), *name != "id");
        field.with_metadata([("unit".to_owned(), format!("of {name}"))].into())
    });
    let metadata = [("pandas".to_owned(), "{\"index\":1}".to_owned())].into();
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata);
    let arrays = columns.iter().map(|(_, array)| array.clone()).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

fn write_parquet(path: &Path, table: &RecordBatch) {
    let kept = KeyValue::new("org.example".to_owned(), "of the file".to_owned());
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![kept]))
        .set_max_row_group_row_count(Some(250));
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties.build())).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
}

/// Returns all rows of a Parquet file, and the schema and metadata in its footer.
pub(crate) fn read_parquet(path: &Path) -> (RecordBatch, String, Vec<(String, Option<String>)>) {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let footer = builder.metadata().file_metadata();
    let schema = format!("{:?}", footer.schema());
    let pairs = footer.key_value_metadata().cloned().unwrap_or_default();
    let mut pairs: Vec<_> = pairs
        .into_iter()
        .map(|pair| (pair.key, pair.value))
        .collect();
    pairs.sort();
    let schema_ref: SchemaRef = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    (
        concat_batches(&schema_ref, &batches).unwrap(),
        schema,
        pairs,
    )
}

fn rows(table: &RecordBatch, wanted: impl Fn(usize) -> bool) -> RecordBatch {
    let mask: BooleanArray = (0..table.num_rows()).map(|row| Some(wanted(row))).collect();
    filter_record_batch(table, &mask).unwrap()
}

fn dedup(inputs: &[&Path], out: &Path, flags: &[&str]) {
    let mut command = lookalike("dedup");
    command.args(inputs).arg("-o").arg(out);
    command.args(flags).succeed();
}

#[test]
fn rows_of_parquet_keep_their_types_schema_metadata_and_order() {
    let folder = Folder::new();
    let input = folder.path("in.parquet");
    write_parquet(&input, &table(columns()));
    let (original, schema, pairs) = read_parquet(&input);
    assert!(pairs.iter().any(|(key, _)| key == "ARROW:schema"));
    for (out, flags) in [("a", &["--threads", "1"][..]), ("b", &["--memory", "96M"])] {
        let out = folder.path(out);
        dedup(&[&input], &out, flags);
        for (name, kept) in [("kept.parquet", true), ("removed.parquet", false)] {
            let (found, found_schema, found_pairs) = read_parquet(&out.join(name));
            assert_eq!(found.schema(), original.schema(), "{name}");
            assert_eq!(found_schema, schema, "{name}");
            assert_eq!(found_pairs, pairs, "{name}");
            let wanted = rows(&original, |row| is_kept(row) == kept);
            assert!(found == wanted, "rows of {name}");
        }
    }
    let same = |name: &str| ["a", "b"].map(|out| fs::read(folder.path(out).join(name)).unwrap());
    for name in ["kept.parquet", "removed.parquet", "clusters.parquet"] {
        let [a, b] = same(name);
        assert!(a == b, "{name} depends on threads or memory");
    }
    let page = fs::read_to_string(folder.path("a/report.html")).unwrap();
    assert!(page.contains("w27838"), "the report shows texts");
}

#[test]
fn rows_of_arrow_leave_as_parquet_of_the_same_types() {
    let folder = Folder::new();
    let (table, as_parquet) = (table(columns()), table(columns_of_parquet()));
    let paths = ["in.arrow", "in.arrows"].map(|name| folder.path(name));
    let mut file = FileWriter::try_new(File::create(&paths[0]).unwrap(), &table.schema()).unwrap();
    let mut stream =
        StreamWriter::try_new(File::create(&paths[1]).unwrap(), &table.schema()).unwrap();
    for start in (0..ROWS).step_by(300) {
        file.write(&table.slice(start, 300)).unwrap();
        stream.write(&table.slice(start, 300)).unwrap();
    }
    file.finish().unwrap();
    stream.finish().unwrap();
    for path in &paths {
        let out = path.with_extension("out");
        dedup(&[path], &out, &[]);
        let (found, _, pairs) = read_parquet(&out.join("kept.parquet"));
        assert_eq!(found.schema().fields(), as_parquet.schema().fields());
        assert!(pairs.iter().any(|(key, _)| key == "pandas"), "{pairs:?}");
        assert!(found.columns() == rows(&as_parquet, is_kept).columns());
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn a_time_beyond_those_of_parquet_is_told_with_its_column() {
    let folder = Folder::new();
    let mut columns = columns();
    columns.push((
        "far",
        Arc::new(TimestampSecondArray::from(vec![i64::MAX; ROWS])),
    ));
    let table = table(columns);
    let path = folder.path("in.arrow");
    let mut file = FileWriter::try_new(File::create(&path).unwrap(), &table.schema()).unwrap();
    file.write(&table).unwrap();
    file.finish().unwrap();
    let mut command = lookalike("dedup");
    command
        .arg(&path)
        .arg("-o")
        .arg(folder.path("out"))
        .fail(2)
        .says(&[
            "in.arrow: its rows cannot be written as Parquet",
            "column far: 9223372036854775807 seconds",
            "use --output-format jsonl",
        ]);
    dedup(
        &[&path],
        &folder.path("out"),
        &["--output-format", "jsonl", "--overwrite"],
    );
}

#[test]
fn a_job_over_intervals_failed_only_when_it_wrote_them() {
    let folder = Folder::new();
    let mut columns = columns();
    let lengths: IntervalMonthDayNanoArray = (0..ROWS as i32)
        .map(|row| Some(IntervalMonthDayNano::new(row, 1, 2)))
        .collect();
    columns.push(("length", Arc::new(lengths)));
    let table = table(columns);
    let (path, out) = (folder.path("in.arrow"), folder.path("out"));
    let mut file = FileWriter::try_new(File::create(&path).unwrap(), &table.schema()).unwrap();
    file.write(&table).unwrap();
    file.finish().unwrap();
    let mut command = lookalike("dedup");
    command.arg(&path).arg("-o").arg(&out).fail(2).says(&[
        "in.arrow: its rows cannot be written as Parquet",
        "column length holds intervals of months, days and nanoseconds, which Parquet lacks",
        "use --output-format jsonl",
    ]);
    assert!(!out.join("report.html").exists());
    dedup(&[&path], &out, &["--output-format", "jsonl", "--overwrite"]);
}

/// Two files with different columns, and a file of lines beside them.
#[test]
fn each_file_of_rows_gives_one_of_its_path() {
    let folder = Folder::new();
    let whole = table(columns());
    fs::create_dir(folder.path("in")).unwrap();
    let narrow = whole.slice(300, 300).project(&[0, 1, 4]).unwrap();
    write_parquet(&folder.path("in/a.parquet"), &whole.slice(0, 300));
    write_parquet(&folder.path("in/b.parquet"), &narrow);
    let run = |out: &str, flags: &[&str]| {
        let mut command = lookalike("dedup");
        command.current_dir(folder.path("")).args(["in", "-o", out]);
        command.arg("--json");
        command.args(flags).succeed().json()
    };
    let summary = run("out", &[]);
    assert_eq!(summary["kept_in"], serde_json::json!(["kept"]));
    let (found, ..) = read_parquet(&folder.path("out/kept/in/a.parquet"));
    assert!(found.columns() == rows(&whole.slice(0, 300), is_kept).columns());
    let (found, ..) = read_parquet(&folder.path("out/removed/in/b.parquet"));
    assert_eq!(found.schema().field(2).data_type(), &DataType::Int32);
    assert!(found.columns() == rows(&narrow, |row| !is_kept(row)).columns());
    assert!(!folder.path("out/kept.parquet").exists());
    // The kept results stand for the whole folder.
    let again = run("again", &["--against", "out"]);
    assert_eq!(again["decisions"]["kept"], 0, "{again}");
    // Lines are written as usual. Without `--output-format`, all rows become lines if the input has lines.
    folder.records(
        "in/c.jsonl",
        &[("x", "a record of its own in a file of lines")],
    );
    let mixed = run("mixed", &["--output-format", "parquet"]);
    assert_eq!(
        mixed["kept_in"],
        serde_json::json!(["kept.parquet", "kept"])
    );
    let (lines, ..) = read_parquet(&folder.path("mixed/kept.parquet"));
    assert_eq!(lines.num_rows(), 1);
    let again = run("mixed-again", &["--against", "mixed"]);
    assert_eq!(again["decisions"]["kept"], 0, "{again}");
    run("lines", &[]);
    assert_eq!(Results::read(&folder.path("lines")).kept.len(), 401);
}

#[test]
fn a_mark_of_spark_turned_a_folder_of_parquet_into_lines_without_a_word() {
    let folder = Folder::new();
    let narrow = table(columns()).project(&[0, 1, 4]).unwrap();
    fs::create_dir(folder.path("in")).unwrap();
    write_parquet(&folder.path("in/part-0.parquet"), &narrow);
    write_parquet(&folder.path("in/_common_metadata"), &narrow.slice(0, 0));
    folder.add("in/_SUCCESS", b"");
    let run = |out: &str, flags: &[&str]| {
        let mut command = lookalike("dedup");
        command.current_dir(folder.path(""));
        command.args(["in", "-o", out]).args(flags).succeed().err
    };
    let told = run("out", &[]);
    assert!(!told.contains("neither Parquet"), "{told}");
    assert!(!folder.path("out/kept.jsonl").exists());
    run("lines", &["--output-format", "jsonl"]);
    let skipped = Results::read(&folder.path("lines")).skipped;
    let names: Vec<_> = skipped.iter().map(|skip| &skip["source"]).collect();
    assert_eq!(names, ["in/_SUCCESS", "in/_common_metadata"]);
    folder.add("in/readme.txt", b"What this table is about.");
    let told = run("mixed", &[]);
    assert!(
        told.contains("in/readme.txt is neither Parquet nor Arrow (2 inputs in all)"),
        "{told}"
    );
    assert!(folder.path("mixed/kept.jsonl").exists());
}

#[test]
fn lines_of_parquet_are_there_for_the_asking() {
    let folder = Folder::new();
    let input = folder.path("in.parquet");
    write_parquet(&input, &table(columns()));
    let out = folder.path("out");
    dedup(&[&input], &out, &["--output-format", "jsonl"]);
    assert_eq!(Results::read(&out).kept.len(), 2 * ROWS / 3);
    for flags in [["--compress", "zst"], ["--order", "id"]] {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(folder.path("other"));
        command
            .args(flags)
            .fail(2)
            .says(&[flags[0], "--output-format jsonl"]);
    }
}

/// A damaged row group is reported, and the rows of the others keep their decisions.
#[test]
fn rows_behind_a_damaged_group_stay_with_their_decisions() {
    let folder = Folder::new();
    let input = folder.path("in.parquet");
    let narrow = table(columns()).project(&[0, 1, 4]).unwrap();
    write_parquet(&input, &narrow);
    let file = File::open(&input).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let group = builder.metadata().row_group(1).column(1).byte_range();
    let mut bytes = fs::read(&input).unwrap();
    bytes[group.0 as usize..(group.0 + 40) as usize].fill(0xff);
    fs::write(&input, bytes).unwrap();
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(&out);
    command.lose();
    let kept = read_parquet(&out.join("kept.parquet")).0;
    let removed = read_parquet(&out.join("removed.parquet")).0;
    assert_eq!(kept.num_rows() + removed.num_rows(), ROWS - 250);
    let sound = rows(&narrow, |row| !(250..500).contains(&row) && is_kept(row));
    // A row whose copy is in the damaged group is kept.
    assert!(
        kept.num_rows() - sound.num_rows() <= 1,
        "{}",
        kept.num_rows()
    );
    assert!(kept.slice(0, 160).columns() == sound.slice(0, 160).columns());
}

#[test]
fn a_text_that_was_not_utf8_lost_the_rows_beside_it() {
    let folder = Folder::new();
    let narrow = table(columns()).project(&[0, 1, 4]).unwrap();
    // No other row has the text of row 300.
    let sound = |keep: bool| rows(&narrow, |row| row != 300 && is_kept(row) == keep);
    for name in ["in.parquet", "in.arrow"] {
        let input = folder.path(name);
        if name == "in.parquet" {
            write_parquet(&input, &narrow);
        } else {
            let file = File::create(&input).unwrap();
            let mut writer = FileWriter::try_new(file, &narrow.schema()).unwrap();
            writer.write(&narrow).unwrap();
            writer.finish().unwrap();
        }
        let (mut bytes, text) = (fs::read(&input).unwrap(), text(300));
        let mut places = bytes.windows(text.len());
        let at = places.position(|place| place == text.as_bytes()).unwrap();
        bytes[at] = 0xff;
        fs::write(&input, bytes).unwrap();
        let run = |out: &str, flags: &[&str]| {
            let mut command = lookalike("dedup");
            let out = folder.path(format!("{name}.{out}"));
            command.arg(&input).arg("-o").arg(out).args(flags);
            command
        };
        run("out", &[]).lose();
        let out = folder.path(format!("{name}.out"));
        let summary = fs::read_to_string(out.join("run.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let skipped = summary["skipped"].as_array().unwrap();
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        let of = |field: &str| skipped[0][field].to_string();
        let told = ["count", "kind", "loss"].map(of);
        assert_eq!(told, ["1", "\"broken\"", "\"records\""]);
        let first = of("first");
        assert!(
            first.contains("record 301: column text: its text is not UTF-8"),
            "{first}"
        );
        for (file, keep) in [("kept.parquet", true), ("removed.parquet", false)] {
            let found = read_parquet(&out.join(file)).0;
            assert!(found.columns() == sound(keep).columns(), "{name} {file}");
        }
        run("some", &["--max-skipped", "1"]).succeed();
        run("none", &["--strict"])
            .fail(1)
            .says(&["record 301", "not UTF-8"]);
    }
}
