//! Texts that are not UTF-8 in Parquet and Arrow.
//!
//! The libraries refuse all rows that they decode together if one of them has such a text. So the texts are read as bytes, and only rows with such a
//! text are lost.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{Field as IpcField, Type as IpcType, root_as_message};
use arrow_schema::{DataType, SchemaRef};
use parquet::basic::{ConvertedType, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::column;
use super::parquet_types::batch_of;
use crate::row::RowSink;

/// Rows that were decoded together.
pub(super) struct TableBatch {
    pub(super) rows: RecordBatch,
    /// The schema of the rows, if their texts were read as bytes.
    pub(super) texts: Option<SchemaRef>,
}

impl TableBatch {
    /// Adds the rows from `at` on, the first of which is number `first + at` of the table, until the sink is full. Returns the next row to add.
    pub(super) fn add_rows(
        &self,
        mut at: usize,
        first: u64,
        limit: usize,
        sink: &mut RowSink<'_>,
    ) -> usize {
        let schema = self.texts.as_ref().unwrap_or(self.rows.schema_ref());
        while at < self.rows.num_rows() && !sink.is_full() {
            column::add_row(&self.rows, schema, at, first + at as u64, limit, sink);
            at += 1;
        }
        at
    }

    /// Returns the rows with texts; those that are not UTF-8 are empty.
    pub(super) fn restored(self) -> std::result::Result<RecordBatch, String> {
        match &self.texts {
            Some(schema) => batch_of(&self.rows, schema),
            None => Ok(self.rows),
        }
    }
}

/// Returns the type with bytes in place of texts, if it is one of these.
pub(super) fn bytes_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8 => Some(DataType::Binary),
        DataType::LargeUtf8 => Some(DataType::LargeBinary),
        DataType::Utf8View => Some(DataType::BinaryView),
        _ => None,
    }
}

/// Returns the schema of a Parquet file with bytes in place of texts.
pub(super) fn bytes_schema(schema: &SchemaDescriptor) -> Result<SchemaDescriptor> {
    let root = schema.root_schema();
    let fields = root.get_fields().iter().map(bytes_field);
    let root = Type::group_type_builder(root.name()).with_fields(fields.collect::<Result<_>>()?);
    Ok(SchemaDescriptor::new(Arc::new(root.build()?)))
}

fn bytes_field(field: &TypePtr) -> Result<TypePtr> {
    let info = field.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if field.is_group() {
        let fields = field.get_fields().iter().map(bytes_field);
        let group = Type::group_type_builder(info.name())
            .with_repetition(info.repetition())
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_fields(fields.collect::<Result<_>>()?)
            .with_id(id);
        return group.build().map(Arc::new);
    }
    let is_text = matches!(
        info.converted_type(),
        ConvertedType::UTF8 | ConvertedType::JSON
    );
    if !is_text || field.get_physical_type() != PhysicalType::BYTE_ARRAY {
        return Ok(field.clone());
    }
    let bytes = Type::primitive_type_builder(info.name(), PhysicalType::BYTE_ARRAY);
    let bytes = bytes.with_repetition(info.repetition()).with_id(id);
    bytes.build().map(Arc::new)
}

/// Changes the first message of an Arrow stream so that texts are read as bytes, and returns its schema; `None` if it is no schema.
pub(super) fn read_texts_as_bytes(message: &mut [u8]) -> Option<SchemaRef> {
    // Since Arrow 0.15, four bytes of ones come before the length.
    let prefix = if message.starts_with(&[0xff; 4]) {
        8
    } else {
        4
    };
    let head = message.get_mut(prefix..)?;
    let schema = root_as_message(head).ok()?.header_as_schema()?;
    let written = fb_to_schema(schema);
    let mut changes = Vec::new();
    for field in schema.fields()? {
        find_texts(&field, &mut changes);
    }
    for (at, kind) in changes {
        head[at] = kind.0;
    }
    Some(Arc::new(written))
}

/// Finds the bytes that name the types of texts in a field, and the types of bytes to name there instead. All of these types have no parameters.
fn find_texts(field: &IpcField<'_>, changes: &mut Vec<(usize, IpcType)>) {
    let kind = match field.type_type() {
        IpcType::Utf8 => IpcType::Binary,
        IpcType::LargeUtf8 => IpcType::LargeBinary,
        IpcType::Utf8View => IpcType::BinaryView,
        _ => {
            let children = field.children().into_iter().flatten();
            return children.for_each(|child| find_texts(&child, changes));
        }
    };
    let place = field._tab.vtable().get(IpcField::VT_TYPE_TYPE);
    changes.push((field._tab.loc() + usize::from(place), kind));
}
