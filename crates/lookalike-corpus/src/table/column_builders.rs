//! Builders of columns from JSON lines, with the types inferred by [`schema_inference`](super::schema_inference).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::schema_inference::{InferredFields, InferredType};

/// One column.
pub(super) enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    UInt(UInt64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
    Json(StringBuilder),
    List(ListBuilder),
    Struct(StructBuilder),
}

pub(super) struct ListBuilder {
    // Offsets as in Arrow: zero, then the end of each list among the items.
    ends: Vec<i32>,
    valid: NullBufferBuilder,
    items: Box<ColumnBuilder>,
    kind: InferredType,
}

/// Builders of the fields of an object, or at the top level of the record.
pub(super) struct StructBuilder {
    fields: InferredFields,
    columns: Vec<ColumnBuilder>,
    valid: NullBufferBuilder,
    rows: usize,
    /// Fields that already occurred in the current row.
    seen: Vec<bool>,
}

/// Returns the Arrow type of a settled type.
fn data_type(kind: &InferredType) -> DataType {
    match kind {
        InferredType::Bool => DataType::Boolean,
        InferredType::Int { .. } => DataType::Int64,
        InferredType::UInt => DataType::UInt64,
        InferredType::Float => DataType::Float64,
        InferredType::Null | InferredType::Text | InferredType::Json => DataType::Utf8,
        InferredType::List(item) => DataType::List(field("item", item)),
        InferredType::Struct(fields) => DataType::Struct(arrow_fields(fields).into()),
    }
}

fn field(name: &str, kind: &InferredType) -> FieldRef {
    Arc::new(Field::new(name, data_type(kind), true))
}

/// Returns the Arrow fields, all of them nullable.
pub(super) fn arrow_fields(fields: &InferredFields) -> Vec<FieldRef> {
    let fields = fields.0.iter();
    fields.map(|(name, kind)| field(name, kind)).collect()
}

impl ColumnBuilder {
    fn new(kind: &InferredType) -> ColumnBuilder {
        match kind {
            InferredType::Bool => ColumnBuilder::Bool(BooleanBuilder::new()),
            InferredType::Int { .. } => ColumnBuilder::Int(Int64Builder::new()),
            InferredType::UInt => ColumnBuilder::UInt(UInt64Builder::new()),
            InferredType::Float => ColumnBuilder::Float(Float64Builder::new()),
            InferredType::Null | InferredType::Text => ColumnBuilder::Text(StringBuilder::new()),
            InferredType::Json => ColumnBuilder::Json(StringBuilder::new()),
            InferredType::List(item) => ColumnBuilder::List(ListBuilder {
                ends: vec![0],
                valid: NullBufferBuilder::new(0),
                items: Box::new(ColumnBuilder::new(item)),
                kind: (**item).clone(),
            }),
            InferredType::Struct(fields) => ColumnBuilder::Struct(StructBuilder::new(fields)),
        }
    }

    fn add_null(&mut self) {
        match self {
            ColumnBuilder::Bool(column) => column.append_null(),
            ColumnBuilder::Int(column) => column.append_null(),
            ColumnBuilder::UInt(column) => column.append_null(),
            ColumnBuilder::Float(column) => column.append_null(),
            ColumnBuilder::Text(column) | ColumnBuilder::Json(column) => column.append_null(),
            ColumnBuilder::List(list) => list.close(0, false),
            ColumnBuilder::Struct(group) => {
                // Arrow needs a slot in every child, even if the struct itself is null.
                group.columns.iter_mut().for_each(ColumnBuilder::add_null);
                group.close(false);
            }
        }
    }

    /// Takes the values that were added since the last call.
    fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Bool(column) => Arc::new(column.finish()),
            ColumnBuilder::Int(column) => Arc::new(column.finish()),
            ColumnBuilder::UInt(column) => Arc::new(column.finish()),
            ColumnBuilder::Float(column) => Arc::new(column.finish()),
            ColumnBuilder::Text(column) | ColumnBuilder::Json(column) => Arc::new(column.finish()),
            ColumnBuilder::List(list) => {
                let ends = std::mem::replace(&mut list.ends, vec![0]);
                Arc::new(ListArray::new(
                    field("item", &list.kind),
                    OffsetBuffer::new(ScalarBuffer::from(ends)),
                    list.items.finish(),
                    list.valid.finish(),
                ))
            }
            ColumnBuilder::Struct(group) => {
                let valid = group.valid.finish();
                let columns = group.finish();
                let fields = arrow_fields(&group.fields).into();
                Arc::new(StructArray::new(fields, columns, valid))
            }
        }
    }
}

impl ListBuilder {
    /// Ends a list with this number of items.
    fn close(&mut self, items: i32, valid: bool) {
        self.valid.append(valid);
        let before = self.ends.last().copied().unwrap_or_default();
        // A batch ends with the line that reaches 4 MiB, and no line is longer than 256 MiB, so it has fewer than 2^31 items (`writer`).
        self.ends.push(before + items);
    }
}

impl StructBuilder {
    /// Creates empty columns.
    pub(super) fn new(fields: &InferredFields) -> StructBuilder {
        let columns: Vec<ColumnBuilder> = fields
            .0
            .iter()
            .map(|field| ColumnBuilder::new(&field.1))
            .collect();
        StructBuilder {
            fields: fields.clone(),
            seen: vec![false; columns.len()],
            columns,
            valid: NullBufferBuilder::new(0),
            rows: 0,
        }
    }

    /// Adds a record. The names in each of its objects must be distinct.
    ///
    /// # Errors
    /// Fails if the line is not an object with the inferred types.
    pub(super) fn add(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(line);
        AddObject(self).deserialize(&mut json)?;
        json.end()
    }

    /// Returns the number of rows since the last call of `finish`.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the columns with the rows added since the last call.
    pub(super) fn finish(&mut self) -> Vec<ArrayRef> {
        // Does not take `valid`, which the record itself does not need, because it is never null.
        self.rows = 0;
        self.columns.iter_mut().map(ColumnBuilder::finish).collect()
    }

    fn close(&mut self, valid: bool) {
        self.valid.append(valid);
        self.rows += 1;
    }
}

struct AddObject<'a>(&'a mut StructBuilder);

impl<'de> DeserializeSeed<'de> for AddObject<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AddObject<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let group = self.0;
        group.seen.fill(false);
        let mut expected = 0;
        while let Some(name) = entries.next_key::<Cow<'de, str>>()? {
            // Lines of a file mostly have their fields in the same order, so the guess is nearly always right, and avoids a search.
            let at = group.fields.find(&name, expected);
            let at = at.ok_or_else(|| A::Error::custom("the line has changed"))?;
            expected = at + 1;
            debug_assert!(!group.seen[at], "the writer has mended repeated names");
            group.seen[at] = true;
            entries.next_value_seed(ColumnVisitor(&mut group.columns[at]))?;
        }
        for (column, seen) in group.columns.iter_mut().zip(&group.seen) {
            if !seen {
                column.add_null();
            }
        }
        group.close(true);
        Ok(())
    }
}

struct ColumnVisitor<'a>(&'a mut ColumnBuilder);

impl<'de> DeserializeSeed<'de> for ColumnVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // The types in this column differ: the value is stored as a text, as written.
        if let ColumnBuilder::Json(column) = self.0 {
            let text = <&RawValue>::deserialize(deserializer)?.get();
            match text {
                "null" => column.append_null(),
                text => column.append_value(text),
            }
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ColumnVisitor<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of its column's kind")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.add_null();
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.0 {
            ColumnBuilder::Bool(column) => column.append_value(value),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.0 {
            ColumnBuilder::Int(column) => column.append_value(value),
            // A column with at least one fraction is of floats; a whole number that is not exact as a float would have made it a column of JSON.
            ColumnBuilder::Float(column) => column.append_value(value as f64),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match self.0 {
            // The cast is lossless: a single value beyond the signed range would have given the column another type.
            ColumnBuilder::Int(column) => column.append_value(value.cast_signed()),
            ColumnBuilder::UInt(column) => column.append_value(value),
            ColumnBuilder::Float(column) => column.append_value(value as f64),
            _ => {
                return Err(E::invalid_type(
                    serde::de::Unexpected::Unsigned(value),
                    &self,
                ));
            }
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.0 {
            ColumnBuilder::Float(column) => column.append_value(value),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Float(value), &self)),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.0 {
            ColumnBuilder::Text(column) => column.append_value(value),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Str(value), &self)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let ColumnBuilder::List(list) = self.0 else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        let mut length = 0;
        while items
            .next_element_seed(ColumnVisitor(&mut list.items))?
            .is_some()
        {
            length += 1;
        }
        list.close(length, true);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        match self.0 {
            ColumnBuilder::Struct(group) => AddObject(group).visit_map(entries),
            _ => Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self)),
        }
    }
}
