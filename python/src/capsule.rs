//! Exchange of Arrow data with Python through Arrow's PyCapsule interface, with any library and without copies.
//!
//! Data from a producer are checked before anything reads them, so wrong offsets cause an exception, not a crash. Two things cannot be
//! checked: the lengths of buffers that the C data interface does not transfer, and that the memory is not modified.

#![expect(unsafe_code, reason = "the C data interface of Arrow")]

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatchReader, StructArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_data::{ArrayData, layout};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::{CallError, type_name};

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// Arrays of the same type, from an object that exports Arrow data.
pub(crate) struct ArrowProducer {
    /// Type of the arrays, which is a struct for batches of a table.
    pub(crate) field: Field,
    source: ProducerSource,
}

enum ProducerSource {
    /// A single array, until it is taken.
    Array(Option<ArrayRef>),
    Stream(FFI_ArrowArrayStream),
}

impl ArrowProducer {
    /// Opens the arrays of an object. Returns `None` if it exports no Arrow data.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Option<Self>, CallError> {
        // Try a stream first: an object with a single chunk has both interfaces, and an object with many chunks would copy them into one
        // array.
        if object.hasattr("__arrow_c_stream__")? {
            let capsule = object.call_method0("__arrow_c_stream__")?;
            return stream(object.py(), &capsule.cast_into().map_err(PyErr::from)?).map(Some);
        }
        if object.hasattr("__arrow_c_array__")? {
            let both = object.call_method0("__arrow_c_array__")?;
            return array(&both.cast_into().map_err(PyErr::from)?).map(Some);
        }
        // A column of pandas before version 3.
        match of_pandas(object) {
            Some(column) => Self::of(&column),
            None => Ok(None),
        }
    }

    /// Opens the arrays of an object.
    ///
    /// # Errors
    /// [`CallError::Type`] if it exports no Arrow data.
    pub(crate) fn required(object: &Bound<'_, PyAny>) -> Result<Self, CallError> {
        Self::of(object)?.ok_or_else(|| {
            CallError::Type(format!("{} hands out no Arrow data", type_name(object)))
        })
    }

    /// Returns the next array, or `None` at the end. Releases the interpreter meanwhile.
    pub(crate) fn next(&mut self, py: Python<'_>) -> Result<Option<ArrayRef>, CallError> {
        py.detach(|| self.next_detached())
    }

    /// Returns the next array in the same way, on a thread that is not attached to the interpreter.
    pub(crate) fn next_detached(&mut self) -> Result<Option<ArrayRef>, CallError> {
        match &mut self.source {
            ProducerSource::Array(array) => Ok(array.take()),
            ProducerSource::Stream(stream) => next_of_stream(stream, self.field.data_type()),
        }
    }
}

/// Returns a column of pandas as Arrow data of pyarrow; `None` without pyarrow, or if the column has values of several types.
fn of_pandas<'py>(column: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let module = column.get_type().module().ok()?;
    if !module.to_string_lossy().starts_with("pandas.") {
        return None;
    }
    let arrays = column.py().import("pyarrow").ok()?.getattr("Array").ok()?;
    arrays.call_method1("from_pandas", (column,)).ok()
}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> Result<NonNull<T>, CallError> {
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

/// Maximum depth of nested types. All code that reads a type is recursive, and thousands of levels would overflow the stack.
const MAX_LEVELS: usize = 64;

/// Maximum number of entries in the metadata of a type. The reader reserves memory for the stated number before it reads an entry.
const MAX_METADATA_ENTRIES: i32 = 1 << 16;

/// Reads the type of the data from a schema, in which names and formats may be arbitrary.
fn read_schema(schema: &FFI_ArrowSchema) -> Result<Field, CallError> {
    catch_unwind(AssertUnwindSafe(|| check_schema(schema, MAX_LEVELS)))
        .unwrap_or_else(|_| Err(malformed("its parts do not fit together")))?;
    catch_panic_as_error(|| Field::try_from(schema))
}

/// Checks that types are nested in at most `levels` levels, and that the numbers of their metadata entries are plausible.
fn check_schema(schema: &FFI_ArrowSchema, levels: usize) -> Result<(), CallError> {
    let Some(below) = levels.checked_sub(1) else {
        return Err(CallError::bad_input(format!(
            "the Arrow data has types within types at more than {MAX_LEVELS} levels: flatten it first"
        )));
    };
    if !schema.metadata.is_null() {
        // SAFETY: according to the C data interface, metadata that is not null begins with the number of its entries.
        let entries = unsafe { schema.metadata.cast::<i32>().read_unaligned() };
        if entries > MAX_METADATA_ENTRIES {
            return Err(CallError::bad_input(format!(
                "the metadata of a type in the Arrow data has {entries} entries, and at most {MAX_METADATA_ENTRIES} are read: leave it out"
            )));
        }
    }
    let mut inner = schema.children().chain(schema.dictionary());
    inner.try_for_each(|schema| check_schema(schema, below))
}

fn array(both: &Bound<'_, PyTuple>) -> Result<ArrowProducer, CallError> {
    let schema: Bound<'_, PyCapsule> = both.get_item(0)?.cast_into().map_err(PyErr::from)?;
    let array: Bound<'_, PyCapsule> = both.get_item(1)?.cast_into().map_err(PyErr::from)?;
    let schema = pointer::<FFI_ArrowSchema>(&schema, SCHEMA)?;
    let array = pointer::<FFI_ArrowArray>(&array, ARRAY)?;
    // SAFETY: according to the PyCapsule interface, capsules with these names hold such structs, which live as long as the capsules, and
    // `both` keeps these alive. The array is moved out, as the interface specifies, and what is left behind is marked as released.
    let (field, array) = unsafe {
        let field = read_schema(schema.as_ref())?;
        (field, FFI_ArrowArray::from_raw(array.as_ptr()))
    };
    let array = import(array, field.data_type())?;
    Ok(ArrowProducer {
        field,
        source: ProducerSource::Array(Some(array)),
    })
}

fn stream(py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> Result<ArrowProducer, CallError> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: according to the PyCapsule interface, a capsule with this name holds such a struct, which lives as long as the capsule, and
    // consumers move it out.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let field = py.detach(|| {
        let mut schema = FFI_ArrowSchema::empty();
        let get_schema = stream.get_schema.filter(|_| stream.release.is_some());
        let get_schema = get_schema.ok_or_else(consumed_error)?;
        // SAFETY: the stream is not released, so its function may be called with it, and writes a schema that we own.
        let status = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        check_status(&mut stream, status)?;
        read_schema(&schema)
    })?;
    Ok(ArrowProducer {
        field,
        source: ProducerSource::Stream(stream),
    })
}

fn consumed_error() -> CallError {
    CallError::bad_input("the Arrow data was handed to somebody else before: hand it over anew")
}

fn next_of_stream(
    stream: &mut FFI_ArrowArrayStream,
    data_type: &DataType,
) -> Result<Option<ArrayRef>, CallError> {
    let mut array = FFI_ArrowArray::empty();
    let get_next = stream.get_next.ok_or_else(consumed_error)?;
    // SAFETY: the stream is not released, so its function may be called with it, and writes an array that we own.
    let status = unsafe { get_next(&raw mut *stream, &raw mut array) };
    check_status(stream, status)?;
    match array.is_released() {
        true => Ok(None),
        false => import(array, data_type).map(Some),
    }
}

/// Returns the producer's own error message if a call failed.
fn check_status(stream: &mut FFI_ArrowArrayStream, status: c_int) -> Result<(), CallError> {
    if status == 0 {
        return Ok(());
    }
    let told = stream.get_last_error.map(|get| {
        // SAFETY: the stream is not released. The text, if there is one, is valid until the next call.
        unsafe {
            let text = get(&raw mut *stream);
            match text.is_null() {
                true => String::new(),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        }
    });
    let told = told.filter(|told| !told.is_empty());
    // Ctrl-C in Python code behind the reader: Arrow only transfers the text of the exception.
    let is_interrupt = |told: &String| told.lines().any(|line| line == "KeyboardInterrupt");
    if told.as_ref().is_some_and(is_interrupt) {
        return Err(PyKeyboardInterrupt::new_err(()).into());
    }
    Err(CallError::bad_input(format!(
        "the Arrow data could not be read: {}",
        told.unwrap_or_else(|| format!("error {status}"))
    )))
}

/// Takes ownership of an array, after all checks.
fn import(array: FFI_ArrowArray, data_type: &DataType) -> Result<ArrayRef, CallError> {
    catch_unwind(AssertUnwindSafe(|| check_buffers(&array, data_type)))
        .unwrap_or_else(|_| Err(malformed("its type is none")))?;
    let readable = catch_unwind(AssertUnwindSafe(|| readable_type(&array, data_type)))
        .map_err(|_| malformed("its parts do not fit together"))?;
    // SAFETY: the array is the producer's, its numbers of buffers and children fit the type, and the lengths that are read from its buffers
    // are valid lengths; the rest of its contents is validated before anything else reads it. This takes ownership in any case, so the
    // array is released exactly once, even on an error.
    let data = catch_panic_as_error(|| unsafe { from_ffi_and_data_type(array, readable) })?;
    let array = catch_panic_as_error(|| {
        let data = declared(data, data_type)?;
        data.validate_full().map(|()| make_array(data))
    })?;
    catch_panic_as_error(|| below_nulls(array))
}

/// Returns the type as which an array is read. Some producers, such as polars, give a null array one buffer, which `from_ffi` refuses; a
/// struct without fields has exactly one buffer.
fn readable_type(array: &FFI_ArrowArray, data_type: &DataType) -> DataType {
    let child = |at: usize, field: &FieldRef| -> FieldRef {
        let readable = readable_type(array.child(at), field.data_type());
        Arc::new((**field).clone().with_data_type(readable))
    };
    match data_type {
        DataType::Null if array.num_buffers() == 1 => DataType::Struct(Fields::empty()),
        DataType::List(field) => DataType::List(child(0, field)),
        DataType::LargeList(field) => DataType::LargeList(child(0, field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(child(0, field), *size),
        DataType::Struct(fields) => {
            let fields = fields.iter().enumerate();
            DataType::Struct(fields.map(|(at, field)| child(at, field)).collect())
        }
        other => other.clone(),
    }
}

/// Gives data read with [`readable_type`] the type that the producer declares.
fn declared(data: ArrayData, data_type: &DataType) -> Result<ArrayData, ArrowError> {
    if data.data_type() == data_type {
        return Ok(data);
    }
    if *data_type == DataType::Null {
        return Ok(ArrayData::new_null(data_type, data.len()));
    }
    let children = data.child_data().iter().zip(child_types(data_type));
    let children = children.map(|(child, data_type)| declared(child.clone(), data_type));
    let children = children.collect::<Result<_, _>>()?;
    let builder = data.into_builder().data_type(data_type.clone());
    builder.child_data(children).build()
}

/// Makes the values of null rows null as well, because values below a null may be arbitrary.
fn below_nulls(array: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(rows) = array.as_struct_opt() else {
        return Ok(array);
    };
    let Some(nulls) = rows.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(array);
    };
    let columns = rows.columns().iter().map(|column| {
        // The nulls of such a column are in its values.
        if !layout(column.data_type()).can_contain_null_mask {
            return Ok(column.clone());
        }
        let data = column.to_data();
        let both = NullBuffer::union(Some(nulls), data.nulls());
        data.into_builder().nulls(both).build().map(make_array)
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let rows = StructArray::try_new(rows.fields().clone(), columns, Some(nulls.clone()))?;
    Ok(Arc::new(rows))
}

/// Turns an error about the producer's data, or a panic, into a [`CallError`].
fn catch_panic_as_error<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, CallError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(malformed(&error.to_string())),
        Err(_) => Err(malformed("its parts do not fit together")),
    }
}

fn malformed(what: &str) -> CallError {
    CallError::bad_input(format!("the Arrow data is broken: {what}"))
}

/// Checks what `from_ffi` relies on: the numbers of buffers and children, and the lengths that are read from buffers.
fn check_buffers(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), CallError> {
    const MAX_LENGTH: usize = isize::MAX as usize / 64;
    if array.len() > MAX_LENGTH || array.offset() > MAX_LENGTH {
        return Err(malformed("its length or offset is no length"));
    }
    let expected = layout(data_type);
    let own = expected.buffers.len() + usize::from(expected.can_contain_null_mask);
    let buffers = own + usize::from(expected.variadic);
    // The number is signed in C, so a negative one appears as a huge one.
    let too_few = array.num_buffers() < buffers || array.num_buffers() > MAX_LENGTH;
    if too_few && !matches!(data_type, DataType::Null) {
        return Err(malformed(&format!(
            "an array of {data_type} has {} buffers instead of {buffers}",
            array.num_buffers()
        )));
    }
    let wrong_children = || malformed(&format!("an array of {data_type} has wrong children"));
    match data_type {
        DataType::Utf8 | DataType::Binary => check_end(array, 4)?,
        DataType::LargeUtf8 | DataType::LargeBinary => check_end(array, 8)?,
        DataType::Utf8View | DataType::BinaryView => check_view_lengths(array)?,
        DataType::Dictionary(_, values) => {
            let dictionary = array.dictionary().ok_or_else(wrong_children)?;
            check_buffers(dictionary, values)?;
        }
        _ => {}
    }
    let children = child_types(data_type);
    if array.num_children() != children.len() {
        return Err(wrong_children());
    }
    for (at, child) in children.into_iter().enumerate() {
        let there = catch_unwind(AssertUnwindSafe(|| array.child(at)));
        check_buffers(there.map_err(|_| wrong_children())?, child)?;
    }
    Ok(())
}

fn child_types(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

/// Checks the last offset, from which the number of bytes is taken. `width` is the size of an offset in bytes.
fn check_end(array: &FFI_ArrowArray, width: usize) -> Result<(), CallError> {
    let (offsets, end) = (array.buffer(1), array.len() + array.offset());
    if array.is_empty() || offsets.is_null() {
        return Ok(());
    }
    // SAFETY: an array of this many texts has one more offset, of this width. Whether the offset is valid is checked below and by the
    // validation.
    let last = unsafe {
        match width {
            4 => offsets.cast::<i32>().add(end).read_unaligned().into(),
            _ => offsets.cast::<i64>().add(end).read_unaligned(),
        }
    };
    match last >= 0 {
        true => Ok(()),
        false => Err(malformed("its last offset is negative")),
    }
}

/// Checks the lengths of the buffers that views refer to.
fn check_view_lengths(array: &FFI_ArrowArray) -> Result<(), CallError> {
    // Besides validity, views and lengths, which were checked to be present above.
    let count = array.num_buffers() - 3;
    let lengths = array.buffer(array.num_buffers() - 1);
    if count == 0 {
        return Ok(());
    }
    if lengths.is_null() {
        return Err(malformed("its view buffers have no lengths"));
    }
    for at in 0..count {
        // SAFETY: the last buffer of a view array has a length for each of its data buffers.
        let length = unsafe { lengths.cast::<i64>().add(at).read_unaligned() };
        let data = array.buffer(2 + at);
        if length < 0 || (data.is_null() && length > 0) {
            return Err(malformed("a view buffer has a length that is none"));
        }
    }
    Ok(())
}

/// Exports an array, as `__arrow_c_array__` does.
pub(crate) fn export_array<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<Bound<'py, PyTuple>> {
    let data: ArrayData = array.to_data();
    let (array, schema) = to_ffi(&data).map_err(CallError::bad_input)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// Exports a type, as `__arrow_c_schema__` does.
pub(crate) fn export_schema(
    py: Python<'_>,
    schema: FFI_ArrowSchema,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Exports batches, as `__arrow_c_stream__` does.
pub(crate) fn export_stream(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}
