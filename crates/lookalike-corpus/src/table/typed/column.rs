//! Conversion of Arrow values to JSON.
//!
//! Numbers stay numbers (those that are not finite become null), times, durations and intervals are written as in ISO 8601, decimals and UUIDs as
//! strings, bytes as text with invalid UTF-8 replaced, lists as arrays, structs and maps as objects and arrays of objects.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType, RunEndIndexType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp};

use crate::charset;
use crate::long_hash::LongHasher;
use crate::record::BadRecordKind;
use crate::row::{JsonObject, RowSink, RowState, string};

/// Maximum nesting of values; deeper ones become null.
const MAX_DEPTH: usize = 32;

/// Maximum length of a list as JSON, in bytes; longer ones become null. A list may have any number of items without size, such as nulls.
const MAX_LIST_BYTES: usize = 256 << 20;

/// A value that JSON cannot represent: [`cell_json`] returns this error, and records have null in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is a time out of range, not in its dictionary, too long, or nested too deeply")]
pub struct UnrepresentableValue;

/// The kinds of replacements in the values of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Replacements {
    /// Invalid characters were decoded in another character set, or replaced.
    characters: bool,
    /// A value became null.
    values: bool,
    /// A text is not UTF-8, so the row is lost.
    invalid_text: bool,
}

/// Returns a row as the JSON object of its columns, which equals the record if the same table is an input, and true if a value that JSON cannot
/// represent became null.
pub fn row_line(batch: &RecordBatch, row: usize) -> (Vec<u8>, bool) {
    let (mut line, mut replaced) = (Vec::new(), Replacements::default());
    let mut object = JsonObject::begin(&mut line);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let bytes = object.name(field.name());
        cell(bytes, field, column.data_type(), column, row, &mut replaced);
    }
    object.end();
    (line, replaced.values)
}

/// Adds a row of a batch, or notes that it has a text that is not UTF-8. In the batch, texts of `schema` may be bytes. `number` is the number of the row
/// in the table, and `limit` the maximum size of a text in bytes.
pub(super) fn add_row(
    batch: &RecordBatch,
    schema: &Schema,
    row: usize,
    number: u64,
    limit: usize,
    sink: &mut RowSink<'_>,
) {
    let start = sink.bytes.len();
    let mut replaced = Replacements::default();
    let mut long: Option<LongHasher> = None;
    let mut object = JsonObject::begin(sink.bytes);
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let bytes = object.name(field.name());
        // The length of the text counts, not that of its JSON, where escapes take up to six bytes: whether a text is too long must not depend on its
        // format. Checked before writing, because the chunk would keep the memory.
        match text_bytes(column, row).filter(|text| text.len() > limit) {
            Some(text) => {
                bytes.extend_from_slice(b"null");
                replaced.invalid_text = column.data_type() != field.data_type()
                    && simdutf8::basic::from_utf8(text).is_err();
                // Several over-long columns share one hash, in column order.
                long.get_or_insert_with(LongHasher::of_text).update(text);
            }
            None => cell(bytes, field, field.data_type(), column, row, &mut replaced),
        }
        if replaced.invalid_text {
            sink.bytes.truncate(start);
            let reason = format!("column {}: its text is not UTF-8", field.name());
            return sink.bad(number, BadRecordKind::Broken, reason);
        }
    }
    object.end();
    debug_assert!(sink.bytes.len() > start);
    let state = match long {
        Some(hasher) => RowState::TooLong(Some(hasher.finish())),
        None => RowState::Good,
    };
    sink.push(number, state, replaced.characters || replaced.values);
}

/// Returns the bytes of a text, if the value is one.
fn text_bytes(column: &ArrayRef, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => column.as_string_view().value(row).as_bytes(),
        DataType::Binary => column.as_binary::<i32>().value(row),
        DataType::LargeBinary => column.as_binary::<i64>().value(row),
        DataType::BinaryView => column.as_binary_view().value(row),
        _ => return None,
    })
}

macro_rules! decimal {
    ($out:expr, $array:expr, $row:expr, $kind:ty) => {{
        let decimals = $array.as_primitive::<$kind>();
        // With all digits: DuckDB declares 38 for its `HUGEINT`, whose values have up to 39, and Arrow would cut the last one off.
        let text = <$kind>::format_decimal(decimals.value($row), u8::MAX, decimals.scale());
        string($out, &text)
    }};
}

/// Formats a whole number.
pub(super) fn number_text(array: &ArrayRef, row: usize) -> String {
    let mut bytes = Vec::new();
    let replaced = &mut Replacements::default();
    value(&mut bytes, array, array.data_type(), row, 0, replaced);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns a value of a column as JSON, the same as in [`row_line`].
///
/// # Errors
/// Fails for a value that [`row_line`] replaces with null.
pub fn cell_json(
    field: &Field,
    column: &ArrayRef,
    row: usize,
) -> Result<String, UnrepresentableValue> {
    let (mut bytes, mut replaced) = (Vec::new(), Replacements::default());
    let kind = column.data_type();
    cell(&mut bytes, field, kind, column, row, &mut replaced);
    match replaced.values {
        true => Err(UnrepresentableValue),
        false => Ok(String::from_utf8(bytes).unwrap_or_default()),
    }
}

/// Writes a value of a column, whose type is `kind` with any texts read as bytes.
fn cell(
    out: &mut Vec<u8>,
    field: &Field,
    kind: &DataType,
    column: &ArrayRef,
    row: usize,
    replaced: &mut Replacements,
) {
    let extension = field.extension_type_name();
    match (extension, column.as_fixed_size_binary_opt()) {
        (Some("arrow.uuid"), Some(ids)) if ids.is_valid(row) => string(out, &uuid(ids.value(row))),
        _ => value(out, column, kind, row, 0, replaced),
    }
}

/// Formats the 16 bytes of a UUID in the usual form.
fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn value(
    out: &mut Vec<u8>,
    array: &ArrayRef,
    kind: &DataType,
    row: usize,
    depth: usize,
    replaced: &mut Replacements,
) {
    let is_null = array.is_null(row);
    // Types nest as deep as the schema of the file says, without limit; this stops the recursion here and in the parser.
    let is_too_deep = depth > MAX_DEPTH;
    replaced.values |= is_too_deep && !is_null;
    if is_null || is_too_deep {
        return out.extend_from_slice(b"null");
    }
    match array.data_type() {
        DataType::Boolean => {
            let word = if array.as_boolean().value(row) {
                "true"
            } else {
                "false"
            };
            out.extend_from_slice(word.as_bytes());
        }
        own if own.is_integer() => integer(out, array, row),
        DataType::Float16 => float(out, array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(out, array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(out, array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(..) => decimal!(out, array, row, Decimal32Type),
        DataType::Decimal64(..) => decimal!(out, array, row, Decimal64Type),
        DataType::Decimal128(..) => decimal!(out, array, row, Decimal128Type),
        DataType::Decimal256(..) => decimal!(out, array, row, Decimal256Type),
        DataType::Utf8 => string(out, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => string(out, array.as_string::<i64>().value(row)),
        DataType::Utf8View => string(out, array.as_string_view().value(row)),
        DataType::Binary => binary(out, array.as_binary::<i32>().value(row), kind, replaced),
        DataType::LargeBinary => binary(out, array.as_binary::<i64>().value(row), kind, replaced),
        DataType::BinaryView => binary(out, array.as_binary_view().value(row), kind, replaced),
        DataType::FixedSizeBinary(_) => {
            binary(out, array.as_fixed_size_binary().value(row), kind, replaced);
        }
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_) => time(out, array, row, replaced),
        _ => nested(out, array, kind, row, depth, replaced),
    }
}

fn integer(out: &mut Vec<u8>, array: &ArrayRef, row: usize) {
    downcast_integer_array!(
        array => out.extend_from_slice(array.value(row).to_string().as_bytes()),
        _ => unreachable!("the caller has checked the type")
    );
}

/// Writes a moment, a time of day or a duration.
fn time(out: &mut Vec<u8>, array: &ArrayRef, row: usize, replaced: &mut Replacements) {
    const SECOND: i128 = 1_000_000_000;
    macro_rules! nanos {
        ($kind:ty, $unit:expr) => {
            // As nanoseconds, 64 bits of seconds need more than 64 bits.
            i128::from(array.as_primitive::<$kind>().value(row)) * $unit
        };
    }
    let nanos = match array.data_type() {
        DataType::Date32 => nanos!(Date32Type, 86_400 * SECOND),
        DataType::Date64 => nanos!(Date64Type, 1_000_000),
        DataType::Timestamp(TimeUnit::Second, _) => nanos!(TimestampSecondType, SECOND),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            nanos!(TimestampMillisecondType, 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => nanos!(TimestampMicrosecondType, 1_000),
        DataType::Timestamp(..) => nanos!(TimestampNanosecondType, 1),
        DataType::Time32(TimeUnit::Second) => nanos!(Time32SecondType, SECOND),
        DataType::Time32(_) => nanos!(Time32MillisecondType, 1_000_000),
        DataType::Time64(TimeUnit::Microsecond) => nanos!(Time64MicrosecondType, 1_000),
        DataType::Time64(_) => nanos!(Time64NanosecondType, 1),
        DataType::Duration(TimeUnit::Second) => nanos!(DurationSecondType, SECOND),
        DataType::Duration(TimeUnit::Millisecond) => nanos!(DurationMillisecondType, 1_000_000),
        DataType::Duration(TimeUnit::Microsecond) => nanos!(DurationMicrosecondType, 1_000),
        _ => nanos!(DurationNanosecondType, 1),
    };
    // Cannot panic: a span has 64 bits for its seconds, as many as the largest value of the coarsest unit, except for days, which have 32.
    let span = SignedDuration::from_nanos_i128(nanos);
    match array.data_type() {
        DataType::Duration(_) => string(out, &span.to_string()),
        DataType::Time32(_) | DataType::Time64(_) => {
            or_null(out, Time::midnight().checked_add(span).ok(), replaced);
        }
        // A moment outside of the range of the library becomes null.
        _ => or_null(out, Timestamp::from_duration(span).ok(), replaced),
    }
}

fn nested(
    out: &mut Vec<u8>,
    array: &ArrayRef,
    kind: &DataType,
    row: usize,
    depth: usize,
    replaced: &mut Replacements,
) {
    if let Some((items, kind)) = items(array, kind, row) {
        return list(out, &items, kind, depth, replaced);
    }
    match kind {
        DataType::Dictionary(_, kind) => {
            let dictionary = array.as_any_dictionary();
            match dictionary_key(dictionary.keys(), row) {
                // A damaged file may contain any key.
                Some(key) if key < dictionary.values().len() => {
                    value(out, dictionary.values(), kind, key, depth + 1, replaced);
                }
                _ => or_null(out, None::<&str>, replaced),
            }
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = JsonObject::begin(out);
            for (field, column) in fields.iter().zip(columns) {
                let (out, kind) = (object.name(field.name()), field.data_type());
                value(out, column, kind, row, depth + 1, replaced);
            }
            object.end();
        }
        DataType::RunEndEncoded(ends, field) => {
            let (values, at) = match ends.data_type() {
                DataType::Int16 => run_value::<Int16Type>(array, row),
                DataType::Int32 => run_value::<Int32Type>(array, row),
                _ => run_value::<Int64Type>(array, row),
            };
            value(out, values, field.data_type(), at, depth + 1, replaced);
        }
        DataType::Union(fields, _) => {
            let union = array.as_union();
            match fields.find_by_type_id(union.type_id(row)) {
                // An array of one value, with the type that this row has.
                Some((_, field)) => {
                    let own = union.value(row);
                    value(out, &own, field.data_type(), 0, depth + 1, replaced);
                }
                None => or_null(out, None::<&str>, replaced),
            }
        }
        DataType::Interval(unit) => string(out, &interval(array, row, *unit)),
        // An array of this type has no bitmap, so `is_null` is false for its values.
        DataType::Null => out.extend_from_slice(b"null"),
        // A type that this version of the program does not know.
        _ => or_null(out, None::<&str>, replaced),
    }
}

/// Returns the items of a list, or the entries of a map, and their type with any texts read as bytes.
fn items<'k>(array: &ArrayRef, kind: &'k DataType, row: usize) -> Option<(ArrayRef, &'k DataType)> {
    let (items, item): (ArrayRef, _) = match kind {
        DataType::List(item) => (array.as_list::<i32>().value(row), item),
        DataType::LargeList(item) => (array.as_list::<i64>().value(row), item),
        DataType::FixedSizeList(item, _) => (array.as_fixed_size_list().value(row), item),
        DataType::ListView(item) => (array.as_list_view::<i32>().value(row), item),
        DataType::LargeListView(item) => (array.as_list_view::<i64>().value(row), item),
        DataType::Map(entry, _) => (Arc::new(array.as_map().value(row)), entry),
        _ => return None,
    };
    Some((items, item.data_type()))
}

/// Returns the values of the runs, and the index of the value of a row.
fn run_value<R: RunEndIndexType>(array: &ArrayRef, row: usize) -> (&ArrayRef, usize) {
    let runs = array.as_run::<R>();
    (runs.values(), runs.get_physical_index(row))
}

/// Formats an interval as in ISO 8601, with a sign for each part, because parts may have different signs and cannot be converted into each other.
fn interval(array: &ArrayRef, row: usize, unit: IntervalUnit) -> String {
    let (months, days, nanos) = match unit {
        IntervalUnit::YearMonth => {
            let months = array.as_primitive::<IntervalYearMonthType>().value(row);
            (months, 0, 0)
        }
        IntervalUnit::DayTime => {
            let parts = array.as_primitive::<IntervalDayTimeType>().value(row);
            (0, parts.days, i64::from(parts.milliseconds) * 1_000_000)
        }
        IntervalUnit::MonthDayNano => {
            let parts = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (parts.months, parts.days, parts.nanoseconds)
        }
    };
    // Months and days carry their own signs; the fraction of a second would lose that of the time.
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (
        nanos.unsigned_abs() / 1_000_000_000,
        nanos.unsigned_abs() % 1_000_000_000,
    );
    let mut time = format!("T{sign}{seconds}");
    if rest > 0 {
        let digits = format!("{rest:09}");
        let _ = write!(time, ".{}", digits.trim_end_matches('0'));
    }
    format!("P{months}M{days}D{time}S")
}

fn list(
    out: &mut Vec<u8>,
    items: &ArrayRef,
    kind: &DataType,
    depth: usize,
    replaced: &mut Replacements,
) {
    let start = out.len();
    out.push(b'[');
    for item in 0..items.len() {
        // Checked before each item, so at most one item beyond the limit is written.
        if out.len() - start > MAX_LIST_BYTES {
            replaced.values = true;
            out.truncate(start);
            return out.extend_from_slice(b"null");
        }
        if item > 0 {
            out.push(b',');
        }
        value(out, items, kind, item, depth + 1, replaced);
    }
    out.push(b']');
}

/// Returns the key of a dictionary at a row.
fn dictionary_key(keys: &dyn Array, row: usize) -> Option<usize> {
    downcast_integer_array!(
        keys => keys.value(row).to_usize(),
        _ => None
    )
}

fn float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(value.to_string().as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn binary(out: &mut Vec<u8>, bytes: &[u8], kind: &DataType, replaced: &mut Replacements) {
    if kind.is_string() {
        return match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => string(out, text),
            Err(_) => replaced.invalid_text = true,
        };
    }
    let text = charset::decode_line(bytes);
    replaced.characters |= matches!(text, std::borrow::Cow::Owned(_));
    string(out, &text);
}

/// Writes a value as a string, or null in place of one that has no representation.
fn or_null(out: &mut Vec<u8>, value: Option<impl std::fmt::Display>, replaced: &mut Replacements) {
    match value {
        Some(value) => string(out, &value.to_string()),
        None => {
            replaced.values = true;
            out.extend_from_slice(b"null");
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{IntervalDayTime, IntervalMonthDayNano};
    use arrow_array::{
        Date32Array, Decimal128Array, Decimal256Array, DurationMicrosecondArray,
        DurationSecondArray, FixedSizeBinaryArray, Int8Array, Int32Array, IntervalDayTimeArray,
        IntervalMonthDayNanoArray, IntervalYearMonthArray, ListViewArray, NullArray, RunArray,
        StringArray, StructArray, Time32SecondArray, Time64NanosecondArray, TimestampSecondArray,
        UnionArray,
    };
    use arrow_buffer::i256;

    use super::*;

    /// Returns the values of an array as JSON, `!` for those without a representation.
    fn json(array: ArrayRef) -> String {
        let field = Field::new("x", array.data_type().clone(), true);
        (0..array.len())
            .map(|row| cell_json(&field, &array, row).unwrap_or_else(|_| "!".to_owned()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns for each row of a column whether a value or a character was replaced.
    fn replaced(array: ArrayRef) -> Vec<bool> {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let mut sink = RowSink {
            bytes: &mut Vec::new(),
            rows: Vec::new(),
            skips: &mut Vec::new(),
            attached: &mut 0,
            enough: 1 << 20,
        };
        for row in 0..batch.num_rows() {
            add_row(&batch, &batch.schema(), row, row as u64, 100, &mut sink);
        }
        sink.rows.iter().map(|row| row.replaced).collect()
    }

    #[test]
    fn values_without_a_representation_became_null_without_a_count() {
        let days = Date32Array::from(vec![Some(0), None, Some(i32::MAX)]);
        assert_eq!(
            json(Arc::new(days.clone())),
            "\"1970-01-01T00:00:00Z\" null !"
        );
        assert_eq!(replaced(Arc::new(days)), [false, false, true]);
        let seconds = TimestampSecondArray::from(vec![0, i64::MIN, i64::MAX]);
        assert_eq!(replaced(Arc::new(seconds)), [false, true, true]);
        let noon = Time32SecondArray::from(vec![43_200, 86_400, -1]);
        assert_eq!(replaced(Arc::new(noon)), [false, true, true]);
        // No value is lost in a column of nulls.
        assert_eq!(replaced(Arc::new(NullArray::new(2))), [false, false]);
    }

    #[test]
    fn times_of_day_and_durations_were_null() {
        // 86,400 seconds are not a time of day.
        let seconds = Time32SecondArray::from(vec![37_800, 86_400]);
        assert_eq!(json(Arc::new(seconds)), "\"10:30:00\" !");
        let nanos = Time64NanosecondArray::from(vec![1]);
        assert_eq!(json(Arc::new(nanos)), "\"00:00:00.000000001\"");
        let micros = DurationMicrosecondArray::from(vec![5_400_500_000, 0]);
        assert_eq!(json(Arc::new(micros)), "\"PT1H30M0.5S\" \"PT0S\"");
        let seconds = DurationSecondArray::from(vec![-1, i64::MIN]);
        assert!(json(Arc::new(seconds)).starts_with("\"-PT1S\" \"-PT"));
    }

    #[test]
    fn the_last_of_more_digits_than_the_type_declares_was_cut_off() {
        let values = [i128::MAX, i128::MIN, 5, -5];
        let of_scale = |scale| {
            let column = Decimal128Array::from(values.to_vec());
            json(Arc::new(
                column.with_precision_and_scale(38, scale).unwrap(),
            ))
        };
        assert_eq!(
            of_scale(0),
            r#""170141183460469231731687303715884105727" "-170141183460469231731687303715884105728" "5" "-5""#
        );
        assert_eq!(
            of_scale(2),
            r#""1701411834604692317316873037158841057.27" "-1701411834604692317316873037158841057.28" "0.05" "-0.05""#
        );
        assert!(of_scale(-1).ends_with(r#" "50" "-50""#));
        let digits = "5".repeat(77);
        let wide = Decimal256Array::from(vec![i256::from_string(&digits).unwrap()]);
        let wide = wide.with_precision_and_scale(76, 0).unwrap();
        assert_eq!(json(Arc::new(wide)), format!("\"{digits}\""));
    }

    #[test]
    fn intervals_unions_views_of_lists_and_runs_were_null() {
        let months = IntervalYearMonthArray::from(vec![Some(14), None, Some(-1)]);
        assert_eq!(json(Arc::new(months)), "\"P14M0DT0S\" null \"P-1M0DT0S\"");
        let days = IntervalDayTimeArray::from(vec![IntervalDayTime::new(3, -1_500)]);
        assert_eq!(json(Arc::new(days)), "\"P0M3DT-1.5S\"");
        let all = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, -2, 1)]);
        assert_eq!(json(Arc::new(all)), "\"P1M-2DT0.000000001S\"");

        let ends = Int32Array::from(vec![2, 3, 4]);
        let values = StringArray::from(vec![Some("a"), None, Some("b")]);
        let runs: ArrayRef = Arc::new(RunArray::try_new(&ends, &values).unwrap());
        assert_eq!(json(runs.clone()), "\"a\" \"a\" null \"b\"");
        assert_eq!(json(runs.slice(1, 3)), "\"a\" null \"b\"");

        let item = Arc::new(Field::new_list_field(DataType::Int8, true));
        let views = ListViewArray::try_new(
            item,
            vec![1, 0, 0].into(),
            vec![1, 2, 0].into(),
            Arc::new(Int8Array::from(vec![7, 8])),
            Some(vec![true, true, false].into()),
        );
        assert_eq!(json(Arc::new(views.unwrap())), "[8] [7,8] null");

        let fields = [
            (0, Arc::new(Field::new("word", DataType::Utf8, true))),
            (1, Arc::new(Field::new("count", DataType::Int8, true))),
        ];
        let children: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec!["a"])),
            Arc::new(Int8Array::from(vec![Some(5), None])),
        ];
        let union = UnionArray::try_new(
            fields.into_iter().collect(),
            vec![1, 0, 1].into(),
            Some(vec![0, 0, 1].into()),
            children,
        );
        assert_eq!(json(Arc::new(union.unwrap())), "5 \"a\" null");
    }

    #[test]
    fn uuids_were_read_as_text_with_broken_characters() {
        let bytes: Vec<u8> = (0x10..0x20).collect();
        let ids: ArrayRef =
            Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap());
        let metadata = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
        let field = Field::new("id", ids.data_type().clone(), true).with_metadata(metadata.into());
        // The groups of 8, 4, 4, 4 and 12 digits of RFC 9562.
        let expected = "\"10111213-1415-1617-1819-1a1b1c1d1e1f\"";
        assert_eq!(cell_json(&field, &ids, 0).as_deref(), Ok(expected));
    }

    #[test]
    fn a_value_that_was_nested_too_deeply_was_lost_silently() {
        let nested = |depth: usize, values: Vec<Option<i8>>| {
            let mut array: ArrayRef = Arc::new(Int8Array::from(values));
            for _ in 0..depth {
                let field = Arc::new(Field::new("x", array.data_type().clone(), true));
                array = Arc::new(StructArray::from(vec![(field, array)]));
            }
            array
        };
        let at_depth = |depth| replaced(nested(depth, vec![Some(1), None]));
        assert_eq!(at_depth(MAX_DEPTH), [false, false]);
        assert_eq!(at_depth(MAX_DEPTH + 1), [true, false]);
    }

    #[test]
    fn a_text_over_the_limit_was_escaped_into_the_chunk_first() {
        let text = "\u{1}".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(), "short"]));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut bytes = Vec::new();
        let mut sink = RowSink {
            bytes: &mut bytes,
            rows: Vec::new(),
            skips: &mut Vec::new(),
            attached: &mut 0,
            enough: 1 << 20,
        };
        for row in 0..2 {
            add_row(&batch, &batch.schema(), row, row as u64, 100, &mut sink);
        }
        assert!(matches!(sink.rows[0].state, RowState::TooLong(Some(_))));
        assert_eq!(bytes, b"{\"text\":null}\n{\"text\":\"short\"}\n");
        assert!(bytes.capacity() < 1 << 12, "{}", bytes.capacity());
    }
}
