//! Builders of columns from JSON lines, with the types inferred by [`schema_inference`](super::schema_inference).

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use serde::de::Error;

use super::schema_inference::{InferredFields, InferredType};
use crate::json::{JsonText, for_each_item, for_each_member};

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
    /// Empty, with room for a value of each column.
    spare: Vec<Option<&'static str>>,
}

/// Returns the Arrow type of a settled type.
fn data_type(kind: &InferredType) -> DataType {
    match kind {
        InferredType::Bool => DataType::Boolean,
        InferredType::Int { .. } => DataType::Int64,
        InferredType::UInt => DataType::UInt64,
        InferredType::Float => DataType::Float64,
        InferredType::Null | InferredType::NumberText | InferredType::Text | InferredType::Json => {
            DataType::Utf8
        }
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
            InferredType::NumberText | InferredType::Json => {
                ColumnBuilder::Json(StringBuilder::new())
            }
            InferredType::List(item) => ColumnBuilder::List(ListBuilder {
                ends: vec![0],
                valid: NullBufferBuilder::new(0),
                items: Box::new(ColumnBuilder::new(item)),
                kind: (**item).clone(),
            }),
            InferredType::Struct(fields) => ColumnBuilder::Struct(StructBuilder::new(fields)),
        }
    }

    /// Adds a value, given as JSON.
    fn add(&mut self, json: &str) -> serde_json::Result<()> {
        match self {
            _ if json == "null" => self.add_null(),
            ColumnBuilder::Bool(column) => column.append_value(serde_json::from_str(json)?),
            ColumnBuilder::Int(column) => column.append_value(serde_json::from_str(json)?),
            ColumnBuilder::UInt(column) => column.append_value(serde_json::from_str(json)?),
            // A column with at least one fraction is of floats; a whole number that is not exact as a float would have made it a column of JSON.
            ColumnBuilder::Float(column) => column.append_value(serde_json::from_str(json)?),
            ColumnBuilder::Text(column) if !json.starts_with('"') => column.append_value(json),
            ColumnBuilder::Text(column) => {
                let JsonText(text) = serde_json::from_str(json)?;
                column.append_value(text);
            }
            // The types in this column differ: the value is stored as a text, as written.
            ColumnBuilder::Json(column) => column.append_value(json),
            ColumnBuilder::List(list) => {
                let mut items = 0;
                for_each_item(json, |item| {
                    items += 1;
                    list.items.add(item)
                })?;
                list.close(items, true);
            }
            ColumnBuilder::Struct(group) => group.add(json)?,
        }
        Ok(())
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
            columns,
            valid: NullBufferBuilder::new(0),
            rows: 0,
            spare: Vec::new(),
        }
    }

    /// Adds a record, or an object in it. Of several values with the same name the last counts.
    ///
    /// # Errors
    /// Fails if it is not an object with the inferred types.
    pub(super) fn add(&mut self, json: &str) -> serde_json::Result<()> {
        let mut values: Vec<Option<&str>> = std::mem::take(&mut self.spare);
        values.resize(self.columns.len(), None);
        let mut next = 0;
        for_each_member(json, |name, value| {
            let at = self.fields.find(name, &mut next);
            let at = at.ok_or_else(|| serde_json::Error::custom("the line has changed"))?;
            values[at] = Some(value);
            Ok(())
        })?;
        for (column, value) in self.columns.iter_mut().zip(values.drain(..)) {
            match value {
                Some(value) => column.add(value)?,
                None => column.add_null(),
            }
        }
        // Collected in place, so the next object needs no allocation.
        self.spare = values.into_iter().map(|_| None).collect();
        self.close(true);
        Ok(())
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
