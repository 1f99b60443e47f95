//! Conversion of Arrow types that Parquet lacks to the nearest ones that it has: seconds to milliseconds, 64-bit dates to timestamps.
//!
//! Otherwise the library would write plain integers, which only readers that use the embedded Arrow schema can distinguish from numbers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date64Type, Time32MillisecondType, Time32SecondType,
    TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, IntervalUnit, Schema, SchemaRef, TimeUnit};

/// Returns the schema of the batches that [`batch_of`] returns. Types within lists and structs stay.
pub(super) fn schema_of(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Timestamp(TimeUnit::Second, zone) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
            // A date that is not a whole day keeps its time.
            DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
            _ => return field.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(kind))
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the first column with a type that Parquet has nothing for, as the reason why such rows cannot be written.
///
/// The library panics over unions, and finds intervals only when it writes the first of them.
pub(super) fn lacking(schema: &Schema) -> Option<String> {
    schema.fields().iter().find_map(|field| {
        let kind = lacking_kind(field.data_type())?;
        Some(format!(
            "column {} holds {kind}, which Parquet lacks",
            field.name()
        ))
    })
}

fn lacking_kind(kind: &DataType) -> Option<&'static str> {
    match kind {
        DataType::Union(..) => Some("a union"),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Some("intervals of months, days and nanoseconds")
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => lacking_kind(field.data_type()),
        DataType::Struct(fields) => fields
            .iter()
            .find_map(|field| lacking_kind(field.data_type())),
        DataType::Dictionary(_, values) => lacking_kind(values),
        _ => None,
    }
}

/// Converts the rows of a batch to this schema, which [`schema_of`] derived from that of the batch.
///
/// # Errors
/// Fails if a time is beyond the range of milliseconds.
pub(super) fn batch_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        converted(column, field.data_type()).map_err(|value| {
            format!(
                "column {}: {value} seconds are beyond the times of Parquet",
                field.name()
            )
        })
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    // A batch without columns still has rows, which `try_new` could not count.
    match columns.is_empty() {
        true => Ok(batch.clone()),
        false => RecordBatch::try_new(schema.clone(), columns).map_err(|error| error.to_string()),
    }
}

/// Converts the values to this type. Fails with the first value that does not fit.
fn converted(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, String> {
    Ok(match (column.data_type(), kind) {
        (DataType::Timestamp(TimeUnit::Second, zone), DataType::Timestamp(..)) => {
            let values = column.as_primitive::<TimestampSecondType>();
            let values =
                for_each::<_, TimestampMillisecondType>(values, |value| value.checked_mul(1000))?;
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        (DataType::Time32(TimeUnit::Second), DataType::Time32(_)) => {
            let values = column.as_primitive::<Time32SecondType>();
            let millis =
                for_each::<_, Time32MillisecondType>(values, |value| value.checked_mul(1000))?;
            Arc::new(millis)
        }
        (DataType::Date64, DataType::Timestamp(..)) => {
            let values = column.as_primitive::<Date64Type>();
            Arc::new(values.reinterpret_cast::<TimestampMillisecondType>())
        }
        _ => column.clone(),
    })
}

fn for_each<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    values: &PrimitiveArray<A>,
    convert: impl Fn(A::Native) -> Option<B::Native>,
) -> Result<PrimitiveArray<B>, String> {
    values.try_unary(|value| convert(value).ok_or_else(|| format!("{value:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, UnionFields, UnionMode};

    #[test]
    fn a_type_that_parquet_lacks_is_found_at_any_depth() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let list = |kind: DataType| DataType::List(Arc::new(Field::new("item", kind, true)));
        let structure = |kind: DataType| DataType::Struct(vec![Field::new("a", kind, true)].into());
        let told = |kind: DataType| {
            let fields = [("text", DataType::Utf8), ("length", kind)];
            let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
            lacking(&Schema::new(fields.to_vec()))
        };
        let expected =
            "column length holds intervals of months, days and nanoseconds, which Parquet lacks";
        for kind in [
            interval.clone(),
            list(interval.clone()),
            structure(list(interval)),
        ] {
            assert_eq!(told(kind.clone()).as_deref(), Some(expected), "{kind}");
        }
        let union = DataType::Union(UnionFields::empty(), UnionMode::Dense);
        let expected = "column length holds a union, which Parquet lacks";
        assert_eq!(told(list(union)).as_deref(), Some(expected));
        for unit in [IntervalUnit::YearMonth, IntervalUnit::DayTime] {
            assert_eq!(told(list(DataType::Interval(unit))), None);
        }
    }
}
