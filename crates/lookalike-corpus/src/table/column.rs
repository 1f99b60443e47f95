//! Values of Arrow columns as JSON.
//!
//! Numbers are numbers (what is not finite is null), times are written as ISO 8601 has them,
//! decimals as strings, bytes as text with what is no UTF-8 replaced, lists as arrays, structs and
//! maps as objects and arrays of objects.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use jiff::Timestamp;

use crate::long_hash::LongHasher;
use crate::row::{JsonObject, RowSink, RowState, string};

/// Nested deeper than this is not read.
const MAX_DEPTH: usize = 32;

/// A list that is longer as JSON becomes null: items of no size, such as nulls, can be any number.
const MOST_OF_LIST: usize = 256 << 20;

/// Adds the rows of a batch from `from` on until the sink is full; returns where it stopped.
pub(super) fn add_rows(
    batch: &RecordBatch,
    from: usize,
    first_number: u64,
    limit: usize,
    sink: &mut RowSink<'_>,
) -> usize {
    let mut row = from;
    while row < batch.num_rows() && !sink.is_full() {
        add_row(batch, row, first_number + row as u64, limit, sink);
        row += 1;
    }
    row
}

/// A row as the JSON object of its columns.
pub(super) fn row_line(batch: &RecordBatch, row: usize) -> Vec<u8> {
    let mut line = Vec::new();
    let mut object = JsonObject::begin(&mut line);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        value(object.name(field.name()), column, row, 0, &mut false);
    }
    object.end();
    line
}

fn add_row(batch: &RecordBatch, row: usize, number: u64, limit: usize, sink: &mut RowSink<'_>) {
    let start = sink.bytes.len();
    let mut replaced = false;
    let mut long: Option<LongHasher> = None;
    let mut object = JsonObject::begin(sink.bytes);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let bytes = object.name(field.name());
        // The length of the text itself, not of its JSON: escapes make up to six bytes of one, and the same text
        // must be too long or not whatever the format that it came in. Before it is written, for the chunk would
        // keep the memory.
        match text_bytes(column, row).filter(|text| text.len() > limit) {
            Some(text) => {
                bytes.extend_from_slice(b"null");
                // Several long columns go into one hash, in the order of the columns.
                long.get_or_insert_with(LongHasher::of_text).update(text);
            }
            None => value(bytes, column, row, 0, &mut replaced),
        }
    }
    object.end();
    debug_assert!(sink.bytes.len() > start);
    let state = match long {
        Some(hasher) => RowState::TooLong(Some(hasher.finish())),
        None => RowState::Good,
    };
    sink.push(number, state, replaced);
}

/// The bytes of a text, if the value is one.
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

macro_rules! number {
    ($out:expr, $array:expr, $row:expr, $kind:ty) => {
        $out.extend_from_slice(
            $array
                .as_primitive::<$kind>()
                .value($row)
                .to_string()
                .as_bytes(),
        )
    };
}

macro_rules! time {
    ($out:expr, $array:expr, $row:expr, $kind:ty, $make:expr) => {{
        let value = $array.as_primitive::<$kind>().value($row);
        moment($out, $make(i64::from(value)))
    }};
}

/// A whole number as text.
pub(super) fn number_text(array: &ArrayRef, row: usize) -> String {
    let mut bytes = Vec::new();
    value(&mut bytes, array, row, 0, &mut false);
    String::from_utf8(bytes).unwrap_or_default()
}

fn value(out: &mut Vec<u8>, array: &ArrayRef, row: usize, depth: usize, replaced: &mut bool) {
    // Types nest as deep as the schema says, which a file may make as deep as it likes; this recursion and the
    // parser's both end.
    if depth > MAX_DEPTH || array.is_null(row) {
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
        DataType::Int8 => number!(out, array, row, Int8Type),
        DataType::Int16 => number!(out, array, row, Int16Type),
        DataType::Int32 => number!(out, array, row, Int32Type),
        DataType::Int64 => number!(out, array, row, Int64Type),
        DataType::UInt8 => number!(out, array, row, UInt8Type),
        DataType::UInt16 => number!(out, array, row, UInt16Type),
        DataType::UInt32 => number!(out, array, row, UInt32Type),
        DataType::UInt64 => number!(out, array, row, UInt64Type),
        DataType::Float16 => float(out, array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(out, array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(out, array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => {
            string(
                out,
                &array.as_primitive::<Decimal128Type>().value_as_string(row),
            );
        }
        DataType::Decimal256(..) => {
            string(
                out,
                &array.as_primitive::<Decimal256Type>().value_as_string(row),
            );
        }
        DataType::Utf8 => string(out, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => string(out, array.as_string::<i64>().value(row)),
        DataType::Utf8View => string(out, array.as_string_view().value(row)),
        DataType::Binary => binary(out, array.as_binary::<i32>().value(row), replaced),
        DataType::LargeBinary => binary(out, array.as_binary::<i64>().value(row), replaced),
        DataType::BinaryView => binary(out, array.as_binary_view().value(row), replaced),
        DataType::FixedSizeBinary(_) => {
            binary(out, array.as_fixed_size_binary().value(row), replaced);
        }
        DataType::Date32 => time!(out, array, row, Date32Type, |days: i64| {
            Timestamp::from_second(days.saturating_mul(86_400))
        }),
        DataType::Date64 => time!(out, array, row, Date64Type, Timestamp::from_millisecond),
        DataType::Timestamp(unit, _) => timestamp(out, array, row, *unit),
        _ => nested(out, array, row, depth, replaced),
    }
}

fn timestamp(out: &mut Vec<u8>, array: &ArrayRef, row: usize, unit: TimeUnit) {
    match unit {
        TimeUnit::Second => time!(out, array, row, TimestampSecondType, Timestamp::from_second),
        TimeUnit::Millisecond => {
            time!(
                out,
                array,
                row,
                TimestampMillisecondType,
                Timestamp::from_millisecond
            )
        }
        TimeUnit::Microsecond => {
            time!(
                out,
                array,
                row,
                TimestampMicrosecondType,
                Timestamp::from_microsecond
            )
        }
        TimeUnit::Nanosecond => {
            time!(out, array, row, TimestampNanosecondType, |n: i64| {
                Timestamp::from_nanosecond(n.into())
            })
        }
    }
}

fn nested(out: &mut Vec<u8>, array: &ArrayRef, row: usize, depth: usize, replaced: &mut bool) {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            match key(dictionary.keys(), row) {
                // A damaged file may have any key.
                Some(key) if key < dictionary.values().len() => {
                    value(out, dictionary.values(), key, depth + 1, replaced);
                }
                _ => out.extend_from_slice(b"null"),
            }
        }
        DataType::List(_) => list(out, &array.as_list::<i32>().value(row), depth, replaced),
        DataType::LargeList(_) => list(out, &array.as_list::<i64>().value(row), depth, replaced),
        DataType::FixedSizeList(..) => {
            list(out, &array.as_fixed_size_list().value(row), depth, replaced);
        }
        DataType::Map(..) => {
            let entries: ArrayRef = std::sync::Arc::new(array.as_map().value(row));
            list(out, &entries, depth, replaced);
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = JsonObject::begin(out);
            for (field, column) in fields.iter().zip(columns) {
                value(object.name(field.name()), column, row, depth + 1, replaced);
            }
            object.end();
        }
        _ => out.extend_from_slice(b"null"),
    }
}

fn list(out: &mut Vec<u8>, items: &ArrayRef, depth: usize, replaced: &mut bool) {
    let start = out.len();
    out.push(b'[');
    for item in 0..items.len() {
        // Checked before each item: one item beyond the bound is the most that is written.
        if out.len() - start > MOST_OF_LIST {
            *replaced = true;
            out.truncate(start);
            return out.extend_from_slice(b"null");
        }
        if item > 0 {
            out.push(b',');
        }
        value(out, items, item, depth + 1, replaced);
    }
    out.push(b']');
}

/// A dictionary's key at a row.
fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    macro_rules! at {
        ($kind:ty) => {
            usize::try_from(keys.as_primitive::<$kind>().value(row)).ok()
        };
    }
    match keys.data_type() {
        DataType::Int8 => at!(Int8Type),
        DataType::Int16 => at!(Int16Type),
        DataType::Int32 => at!(Int32Type),
        DataType::Int64 => at!(Int64Type),
        DataType::UInt8 => at!(UInt8Type),
        DataType::UInt16 => at!(UInt16Type),
        DataType::UInt32 => at!(UInt32Type),
        DataType::UInt64 => at!(UInt64Type),
        _ => None,
    }
}

fn float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(value.to_string().as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn binary(out: &mut Vec<u8>, bytes: &[u8], replaced: &mut bool) {
    let text = String::from_utf8_lossy(bytes);
    *replaced |= matches!(text, std::borrow::Cow::Owned(_));
    string(out, &text);
}

fn moment(out: &mut Vec<u8>, time: Result<Timestamp, jiff::Error>) {
    match time {
        Ok(time) => string(out, &time.to_string()),
        Err(_) => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

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
        assert_eq!(add_rows(&batch, 0, 0, 100, &mut sink), 2);
        assert!(matches!(sink.rows[0].state, RowState::TooLong(Some(_))));
        assert_eq!(bytes, b"{\"text\":null}\n{\"text\":\"short\"}\n");
        assert!(bytes.capacity() < 1 << 12, "{}", bytes.capacity());
    }
}
