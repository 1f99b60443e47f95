//! Conversion of Arrow types that Parquet lacks to the nearest ones that it has: seconds to milliseconds, 64-bit dates to timestamps, at any depth.
//!
//! Otherwise the library would write plain integers, which only readers that use the embedded Arrow schema can distinguish from numbers.
//! Bytes that were read in place of texts become texts again.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date64Type, Time32MillisecondType, Time32SecondType,
    TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, GenericBinaryArray, GenericStringArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, StringViewArray, make_array,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};

/// Returns the schema of the batches that [`batch_of`] returns.
pub(super) fn schema_of(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields: Vec<_> = fields.map(|field| with_types(field, &nearest)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the nearest type that Parquet has, or `None` if it has this one, or has none.
fn nearest(kind: &DataType) -> Option<DataType> {
    Some(match kind {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        // A date that is not a whole day keeps its time.
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        _ => return None,
    })
}

/// Returns the field with another type: each type in it for which `change` returns one is replaced by that.
pub(super) fn with_types(
    field: &FieldRef,
    change: &dyn Fn(&DataType) -> Option<DataType>,
) -> FieldRef {
    let kind = with_inner_types(field.data_type(), change);
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// Works like [`with_types`], for a type.
pub(super) fn with_inner_types(
    kind: &DataType,
    change: &dyn Fn(&DataType) -> Option<DataType>,
) -> DataType {
    let inner = |field: &FieldRef| with_types(field, change);
    change(kind).unwrap_or_else(|| match kind {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::ListView(item) => DataType::ListView(inner(item)),
        DataType::LargeListView(item) => DataType::LargeListView(inner(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::RunEndEncoded(ends, values) => {
            DataType::RunEndEncoded(ends.clone(), inner(values))
        }
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), with_inner_types(values, change).into())
        }
        other => other.clone(),
    })
}

/// Returns the types of the arrays of which an array of this type consists.
fn inner_types(kind: &DataType) -> Vec<&DataType> {
    match kind {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        DataType::Dictionary(_, values) => vec![values],
        _ => Vec::new(),
    }
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
        _ => inner_types(kind).into_iter().find_map(lacking_kind),
    }
}

/// Converts the rows of a batch to this schema, which [`schema_of`] derived from that of the batch.
///
/// # Errors
/// Fails if a time is beyond the range of milliseconds.
pub(super) fn batch_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        converted(column, field.data_type(), None)
            .map_err(|error| format!("column {}: {error}", field.name()))
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    // A batch without columns still has rows, which `try_new` could not count.
    match columns.is_empty() {
        true => Ok(batch.clone()),
        false => RecordBatch::try_new(schema.clone(), columns).map_err(|error| error.to_string()),
    }
}

/// Converts the values to this type. Fails if one does not fit, unless it is not one of those that are `shown`: a null above it hides any value.
fn converted(
    column: &ArrayRef,
    kind: &DataType,
    shown: Option<&NullBuffer>,
) -> Result<ArrayRef, String> {
    Ok(match (column.data_type(), kind) {
        (own, kind) if own == kind => column.clone(),
        (DataType::Timestamp(TimeUnit::Second, zone), DataType::Timestamp(..)) => {
            let values = column.as_primitive::<TimestampSecondType>();
            let values = for_each::<_, TimestampMillisecondType>(values, shown, |value| {
                value.checked_mul(1000)
            })?;
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        (DataType::Time32(TimeUnit::Second), DataType::Time32(_)) => {
            let values = column.as_primitive::<Time32SecondType>();
            let millis = for_each::<_, Time32MillisecondType>(values, shown, |value| {
                value.checked_mul(1000)
            })?;
            Arc::new(millis)
        }
        (DataType::Date64, DataType::Timestamp(..)) => {
            let values = column.as_primitive::<Date64Type>();
            Arc::new(values.reinterpret_cast::<TimestampMillisecondType>())
        }
        (DataType::Binary, DataType::Utf8) => texts(column.as_binary::<i32>()),
        (DataType::LargeBinary, DataType::LargeUtf8) => texts(column.as_binary::<i64>()),
        (DataType::BinaryView, DataType::Utf8View) => text_views(column.as_binary_view())?,
        _ => {
            let data = column.to_data();
            let shown = shown_items(column, shown);
            let inner = data.child_data().iter().zip(inner_types(kind));
            let inner = inner.map(|(data, kind)| {
                let converted = converted(&make_array(data.clone()), kind, shown.as_ref())?;
                Ok(converted.to_data())
            });
            let inner = inner.collect::<Result<_, String>>()?;
            let data = data.into_builder().data_type(kind.clone());
            let data = data.child_data(inner).build();
            make_array(data.map_err(|error| error.to_string())?)
        }
    })
}

/// Returns which items of a nested array the `shown` ones of its rows show, or `None` if all items count.
fn shown_items(array: &ArrayRef, shown: Option<&NullBuffer>) -> Option<NullBuffer> {
    let rows = NullBuffer::union(array.nulls(), shown);
    let rows = rows.as_ref();
    match array.data_type() {
        DataType::Struct(_) => rows.cloned(),
        DataType::FixedSizeList(_, length) => rows.map(|rows| rows.expand(*length as usize)),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            Some(listed_items(lists.offsets(), rows, lists.values().len()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            Some(listed_items(lists.offsets(), rows, lists.values().len()))
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            Some(listed_items(maps.offsets(), rows, maps.entries().len()))
        }
        _ => None,
    }
}

fn listed_items<O: OffsetSizeTrait>(
    ends: &OffsetBuffer<O>,
    rows: Option<&NullBuffer>,
    items: usize,
) -> NullBuffer {
    let mut shown = BooleanBufferBuilder::new(items);
    shown.append_n(items, false);
    for (row, list) in ends.windows(2).enumerate() {
        if rows.is_none_or(|rows| rows.is_valid(row)) {
            let items = list[0].as_usize()..list[1].as_usize();
            items.for_each(|item| shown.set_bit(item, true));
        }
    }
    NullBuffer::new(shown.finish())
}

/// Returns the values as texts. Those that are not UTF-8 become empty: rows with such texts are lost, and are only there to keep the numbers of others.
fn texts<O: OffsetSizeTrait>(values: &GenericBinaryArray<O>) -> ArrayRef {
    match GenericStringArray::try_from_binary(values.clone()) {
        Ok(texts) => Arc::new(texts),
        Err(_) => {
            let texts = values
                .iter()
                .map(|text| Some(valid_text(text?).unwrap_or_default()));
            Arc::new(texts.collect::<GenericStringArray<O>>())
        }
    }
}

/// Works like [`texts`]. The texts are not copied, because any number of views may have the same text.
fn text_views(values: &BinaryViewArray) -> Result<ArrayRef, String> {
    let views = values.iter().zip(values.views());
    // An empty text has a view of zeros.
    let views = views.map(|(text, view)| text.and_then(valid_text).map_or(0, |_| *view));
    let (buffers, nulls) = (values.data_buffers().to_vec(), values.nulls().cloned());
    let texts = StringViewArray::try_new(views.collect(), buffers, nulls);
    Ok(Arc::new(texts.map_err(|error| error.to_string())?))
}

fn valid_text(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

fn for_each<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    values: &PrimitiveArray<A>,
    shown: Option<&NullBuffer>,
    convert: impl Fn(A::Native) -> Option<B::Native>,
) -> Result<PrimitiveArray<B>, String> {
    let nulls = NullBuffer::union(values.nulls(), shown);
    let shown = PrimitiveArray::<A>::new(values.values().clone(), nulls);
    let converted: Result<PrimitiveArray<B>, String> = shown.try_unary(|value| {
        let beyond = || format!("{value:?} seconds are beyond the times of Parquet");
        convert(value).ok_or_else(beyond)
    });
    let (_, converted, _) = converted?.into_parts();
    // Without the hidden nulls, which the type of the items may not allow.
    Ok(PrimitiveArray::new(converted, values.nulls().cloned()))
}

#[cfg(test)]
mod tests {
    use super::super::column::row_line;
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        Date64Array, DictionaryArray, FixedSizeListArray, Int32Array, ListArray, StructArray,
        Time32SecondArray, TimestampSecondArray,
    };
    use arrow_schema::{Field, UnionFields, UnionMode};

    #[test]
    fn seconds_and_64_bit_dates_in_lists_became_numbers() {
        let millis =
            |zone: Option<&str>| DataType::Timestamp(TimeUnit::Millisecond, zone.map(Arc::from));
        let lists = |values: ArrayRef| -> ArrayRef {
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            let ends = OffsetBuffer::from_lengths([1, values.len() - 1]);
            Arc::new(ListArray::new(item, ends, values, None))
        };
        let seconds = TimestampSecondArray::from(vec![Some(1), None, Some(-2)]);
        let times: ArrayRef = Arc::new(Time32SecondArray::from(vec![1, 2, 3]));
        let field = Field::new("t", times.data_type().clone(), true);
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(field), times)]));
        let days: ArrayRef = Arc::new(Date64Array::from(vec![0, 86_400_000]));
        let keys = Int32Array::from(vec![1, 0, 1]);
        let dictionary = DictionaryArray::<Int32Type>::new(keys, days);
        let columns = [
            ("zoned", lists(Arc::new(seconds.with_timezone("UTC")))),
            ("structs", lists(structs)),
            ("dictionary", lists(Arc::new(dictionary))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        // A part of it, whose arrays do not begin at 0.
        let batch = batch.expect("three columns").slice(1, 1);
        let schema = schema_of(&batch.schema());
        let written = batch_of(&batch, &schema).expect("times in range");
        let items = |column: usize| written.column(column).as_list::<i32>().value(0);
        assert_eq!(items(0).data_type(), &millis(Some("UTC")));
        let zoned = items(0);
        let zoned = zoned.as_primitive::<TimestampMillisecondType>();
        assert_eq!(zoned.iter().collect::<Vec<_>>(), [None, Some(-2000)]);
        let structs = items(1);
        let times = structs.as_struct().column(0);
        let times = times.as_primitive::<Time32MillisecondType>();
        assert_eq!(times.values(), &[2000, 3000]);
        let dictionary = items(2);
        let dictionary = dictionary.as_dictionary::<Int32Type>();
        assert_eq!(dictionary.keys().values(), &[0, 1]);
        assert_eq!(dictionary.values().data_type(), &millis(None));
    }

    #[test]
    fn a_value_under_a_null_that_did_not_fit_was_refused() {
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, i64::MAX, 3]));
        let item = Arc::new(Field::new("item", seconds.data_type().clone(), false));
        let valid = || Some(NullBuffer::from(vec![true, false, true]));
        let lists = |valid| -> ArrayRef {
            let ends = OffsetBuffer::from_lengths([1, 1, 1]);
            Arc::new(ListArray::new(item.clone(), ends, seconds.clone(), valid))
        };
        let structs = |column: ArrayRef, valid| -> ArrayRef {
            let field = Field::new("in", column.data_type().clone(), true);
            Arc::new(StructArray::new(vec![field].into(), vec![column], valid))
        };
        let fixed = FixedSizeListArray::new(item.clone(), 1, seconds.clone(), valid());
        let hidden: [ArrayRef; 5] = [
            lists(valid()),
            lists(None).slice(2, 1),
            structs(seconds.clone(), valid()),
            structs(structs(lists(None), None), valid()),
            Arc::new(fixed),
        ];
        for column in hidden {
            let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
            let written = batch_of(&batch, &schema_of(&batch.schema())).unwrap();
            let lines = |batch: &RecordBatch| {
                let rows = 0..batch.num_rows();
                rows.map(|row| row_line(batch, row)).collect::<Vec<_>>()
            };
            assert_eq!(lines(&written), lines(&batch));
        }
        for column in [lists(None), structs(lists(None), None)] {
            let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
            let refused = batch_of(&batch, &schema_of(&batch.schema())).unwrap_err();
            assert!(refused.contains("9223372036854775807 seconds"), "{refused}");
        }
    }

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
