//! Arrays and tables that the engine returns: Arrow data, which all frame libraries take without a copy.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions, RecordBatchReader as _, StructArray, UInt64Array,
    new_empty_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict, PyList, PySlice, PyString, PyTuple};

use crate::capsule::{ArrowProducer, export_array, export_schema, export_stream};
use crate::error::CallError;
use crate::pickled::{reduced_array, reduced_table};
use crate::texts::named;
use crate::value::{list, value};

/// Column of values: Arrow data that pyarrow, polars, pandas, DuckDB and NumPy (numbers without nulls) use without a copy.
///
/// NumPy gets lists, such as those of `features`, as an array of objects: one array for each list, None for a null.
///
/// It is a sequence: `len()`, `[at]`, slices and iteration work; values are Python objects. A column of a pandas frame may be set to it. Such
/// frames take only NumPy arrays as masks: `frame[numpy.asarray(mask)]`.
#[pyclass(frozen, sequence, name = "Array", module = "lookalike")]
pub(crate) struct ArrowArray(pub(crate) ArrayRef);

/// Number of values that are shown at each end of a long array, and of rows of a long table.
const SHOWN: usize = 5;
/// Number of characters of a value that are shown in a table.
const SHOWN_CHARS: usize = 100;

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns a cell of a table in HTML.
fn cell_html(py: Python<'_>, column: &ArrayRef, row: usize) -> String {
    let text = value(py, column, row).and_then(|value| Ok(value.str()?.to_string()));
    // Of a value without a Python form, the type is shown.
    let text = text.unwrap_or_else(|_| named(column.data_type()));
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("<td>{}</td>", escaped(&shown))
}

#[pymethods]
impl ArrowArray {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface asks for the closest type that a producer supports, which is its own.
        let _ = requested_schema;
        export_array(py, &self.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.data_type()).map_err(CallError::value)?;
        export_schema(py, schema)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        reduced_array(py, &self.0)
    }

    /// Returns NumPy's view of the numbers.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let no_view = |why: String| Err(PyAttributeError::new_err(why));
        let has_lists = matches!(self.0.data_type(), DataType::FixedSizeList(..));
        let (numbers, columns) = match self.0.data_type() {
            DataType::FixedSizeList(_, columns) => {
                let list = self.0.as_fixed_size_list();
                (list.values().clone(), Some(*columns))
            }
            _ => (self.0.clone(), None),
        };
        if self.0.null_count() > 0 || numbers.null_count() > 0 {
            let why = format!(
                "{} of the values are null, which NumPy has no number for: use to_pylist()",
                self.0.null_count()
            );
            // Without the attribute, NumPy would read the values one by one, and fail with a message of its own if each is a list.
            return match has_lists {
                true => Err(PyValueError::new_err(why)),
                false => no_view(why),
            };
        }
        let Some(kind) = number_kind(numbers.data_type()) else {
            return no_view(format!(
                "values of the type {} are no numbers",
                self.data_type()
            ));
        };
        let data = numbers.to_data();
        let width = data.data_type().primitive_width().unwrap_or(1);
        // NumPy keeps this object alive as the base of its array, and the array is frozen, so the address stays valid.
        let address = data.buffers()[0].as_ptr() as usize + data.offset() * width;
        let view = PyDict::new(py);
        view.set_item("version", 3)?;
        view.set_item("typestr", format!("<{kind}{width}"))?;
        // Read-only, because the memory may be shared with other arrays and with the producer of the data.
        view.set_item("data", (address, true))?;
        match columns {
            Some(columns) => view.set_item("shape", (self.0.len(), columns))?,
            None => view.set_item("shape", (self.0.len(),))?,
        }
        Ok(view)
    }

    /// Returns NumPy's array of objects: of integers with nulls, because pandas would convert integers next to None to floats, and of lists,
    /// because NumPy would convert 64-bit integers in lists to floats.
    #[getter]
    fn __array__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCFunction>> {
        let is_integers = self.0.data_type().is_integer() && self.0.null_count() > 0;
        let is_lists = matches!(
            self.0.data_type(),
            DataType::List(_) | DataType::LargeList(_)
        );
        if !is_integers && !is_lists {
            return Err(PyAttributeError::new_err("__array__"));
        }
        let array = self.0.clone();
        PyCFunction::new_closure(py, Some(c"__array__"), None, move |given, named| {
            let py = given.py();
            let values = objects(py, &array)?;
            let of_name = named.map(|named| named.get_item("dtype")).transpose()?;
            let data_type = given.get_item(0).ok().or(of_name.flatten());
            let values = match data_type.filter(|data_type| !data_type.is_none()) {
                Some(data_type) => values.call_method1("astype", (data_type,))?,
                None => values,
            };
            Ok::<_, PyErr>(values.unbind())
        })
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __iter__(&self) -> RowIterator {
        RowIterator::over(vec![self.0.clone()])
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = self.0.len() as isize;
        if let Ok(slice) = at.cast::<PySlice>() {
            let slice = slice.indices(len)?;
            let part = match slice.step {
                1 => self.0.slice(slice.start as usize, slice.slicelength),
                step => {
                    let places = (0..slice.slicelength as isize).map(|at| slice.start + at * step);
                    let places: UInt64Array = places.map(|at| Some(at as u64)).collect();
                    take(&self.0, &places, None).map_err(CallError::value)?
                }
            };
            return Ok(Self(part).into_pyobject(py)?.into_any());
        }
        let at: isize = at.extract()?;
        let from_start = if at < 0 { at + len } else { at };
        match (0..len).contains(&from_start) {
            true => value(py, &self.0, from_start as usize),
            false => Err(PyIndexError::new_err(format!(
                "index {at} is out of range: the array has {len} values"
            ))),
        }
    }

    /// The values as Python objects, None for missing values.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list(py, &self.0)
    }

    /// Number of missing values.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.logical_null_count()
    }

    /// Arrow's name for the type of the values.
    #[getter]
    #[pyo3(name = "type")]
    fn data_type(&self) -> String {
        named(self.0.data_type())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let len = self.0.len();
        let shown = |range: Range<usize>| -> PyResult<Vec<String>> {
            range
                .map(|at| Ok(value(py, &self.0, at)?.repr()?.to_string()))
                .collect()
        };
        let values = match len <= 2 * SHOWN {
            true => shown(0..len)?,
            false => {
                let mut values = shown(0..SHOWN)?;
                values.push("...".to_owned());
                values.extend(shown(len - SHOWN..len)?);
                values
            }
        };
        Ok(format!(
            "<lookalike.Array of {len} {}: [{}]>",
            self.data_type(),
            values.join(", ")
        ))
    }
}

/// Iterator over the values of arrays, one array after another.
#[pyclass(module = "lookalike")]
pub(crate) struct RowIterator {
    arrays: std::vec::IntoIter<ArrayRef>,
    current: Option<ArrayRef>,
    next: usize,
}

impl RowIterator {
    fn over(arrays: Vec<ArrayRef>) -> Self {
        let mut arrays = arrays.into_iter();
        Self {
            current: arrays.next(),
            arrays,
            next: 0,
        }
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        while let Some(array) = &self.current {
            if self.next < array.len() {
                self.next += 1;
                return value(py, array, self.next - 1).map(Some);
            }
            self.current = self.arrays.next();
            self.next = 0;
        }
        Ok(None)
    }
}

/// Returns NumPy's array of the values as objects. Each list is an array by itself, because lists may differ in length.
fn objects<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let values = numpy.call_method1("empty", (array.len(), "object"))?;
    for row in 0..array.len() {
        let items = match array.data_type() {
            DataType::List(_) if array.is_valid(row) => array.as_list::<i32>().value(row),
            DataType::LargeList(_) if array.is_valid(row) => array.as_list::<i64>().value(row),
            _ => {
                values.set_item(row, value(py, array, row)?)?;
                continue;
            }
        };
        values.set_item(row, numpy.call_method1("asarray", (ArrowArray(items),))?)?;
    }
    Ok(values)
}

/// Returns NumPy's letter for a numeric type.
fn number_kind(data_type: &DataType) -> Option<char> {
    match data_type {
        data_type if data_type.is_unsigned_integer() => Some('u'),
        data_type if data_type.is_signed_integer() => Some('i'),
        DataType::Float32 | DataType::Float64 => Some('f'),
        _ => None,
    }
}

/// Returns the total size of the strings in arrays with 32-bit offsets; 0 for other arrays.
fn text_bytes(chunks: &[&dyn Array]) -> usize {
    let bytes = chunks.iter().filter_map(|chunk| {
        let offsets = chunk.as_string_opt::<i32>()?.value_offsets();
        Some((offsets[offsets.len() - 1] - offsets[0]) as usize)
    });
    bytes.sum()
}

fn large_texts(chunks: &[&dyn Array]) -> ArrayRef {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let mut texts = LargeStringBuilder::with_capacity(rows, text_bytes(chunks));
    for chunk in chunks {
        let chunk = chunk.as_string::<i32>().iter();
        chunk.for_each(|text| texts.append_option(text));
    }
    Arc::new(texts.finish())
}

/// Returns the values of a column: an `Array`, or another object with Arrow data. `None` for any other object.
fn column_of(data: &Bound<'_, PyAny>) -> Result<Option<ArrayRef>, CallError> {
    if let Ok(array) = data.cast::<ArrowArray>() {
        return Ok(Some(array.get().0.clone()));
    }
    let Some(mut producer) = ArrowProducer::of(data)? else {
        return Ok(None);
    };
    let mut chunks = Vec::new();
    while let Some(chunk) = producer.next(data.py())? {
        chunks.push(chunk);
    }
    let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
    Ok(Some(match chunks.is_empty() {
        true => new_empty_array(producer.field.data_type()),
        false => concat(&chunks).map_err(CallError::value)?,
    }))
}

/// Returns the truths of a mask: a column of bool, or a sequence, such as a list or an array of NumPy.
fn truths_of(mask: &Bound<'_, PyAny>) -> Result<Option<BooleanArray>, CallError> {
    Ok(match column_of(mask)? {
        Some(column) => column.as_boolean_opt().cloned(),
        None => mask.extract::<Vec<Option<bool>>>().ok().map(Into::into),
    })
}

/// Returns numbers of rows: a column of integers, or a sequence, such as a list or an array of NumPy.
fn row_numbers_of(rows: &Bound<'_, PyAny>) -> Result<Vec<u64>, CallError> {
    let wrong = || {
        CallError::Type(
            "rows must be numbers from 0, as an array of uint64 without nulls or a list".to_owned(),
        )
    };
    let Some(column) = column_of(rows)? else {
        return rows.extract().map_err(|_| wrong());
    };
    if column.null_count() > 0 {
        return Err(wrong());
    }
    if let Some(rows) = column.as_primitive_opt::<UInt64Type>() {
        return Ok(rows.values().to_vec());
    }
    let rows = column.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
    let rows = rows.values().iter().map(|row| u64::try_from(*row));
    rows.collect::<Result<_, _>>().map_err(|_| wrong())
}

/// Number of rows that are taken at a time.
const ROWS_PER_TAKE: usize = 1 << 16;

/// Table of named columns: Arrow data that pyarrow, polars, pandas and DuckDB use without a copy.
///
/// `data` is any object with Arrow data; all of it is read. `len()` is the number of rows, `["name"]` a column as `Array`, and iteration is over the
/// rows, as dicts. Further columns may be any Arrow data, too; so may masks and row numbers, or lists. Raises `TypeError` for other data,
/// `BadInput` if a producer delivers broken arrays.
#[pyclass(frozen, name = "Table", module = "lookalike")]
pub(crate) struct ArrowTable {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl ArrowTable {
    /// Collects all batches of an object with Arrow data.
    fn collect(data: &Bound<'_, PyAny>) -> Result<Self, CallError> {
        let mut producer = ArrowProducer::required(data)?;
        let DataType::Struct(fields) = producer.field.data_type() else {
            return Err(CallError::Type(
                "the data is a column, not a table".to_owned(),
            ));
        };
        let metadata = producer.field.metadata().clone();
        let schema = Arc::new(Schema::new_with_metadata(fields.clone(), metadata));
        let mut batches = Vec::new();
        while let Some(array) = producer.next(data.py())? {
            let columns = array.as_struct().columns().to_vec();
            let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
            let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
            batches.push(batch.map_err(CallError::bad_input)?);
        }
        Ok(Self { schema, batches })
    }

    /// Returns the batches of this class's table, or collects those of another object with Arrow data.
    fn of_any(data: &Bound<'_, PyAny>) -> Result<Self, CallError> {
        match data.cast::<Self>() {
            Ok(table) => Ok(Self {
                schema: table.get().schema.clone(),
                batches: table.get().batches.clone(),
            }),
            Err(_) => Self::collect(data),
        }
    }

    /// Appends the rows at these places, each given as a batch and a row in it, as further batches.
    fn gather(
        &self,
        places: &[(usize, usize)],
        into: &mut Vec<RecordBatch>,
    ) -> Result<(), ArrowError> {
        let columns = (0..self.schema.fields().len()).map(|at| {
            let parts = self.batches.iter().map(|batch| &**batch.column(at));
            interleave(&parts.collect::<Vec<&dyn Array>>(), places)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        match columns.collect::<Result<_, _>>() {
            Ok(columns) => {
                let schema = self.schema.clone();
                let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
                into.push(batch);
                Ok(())
            }
            // The texts are long: more than 2 GiB do not fit the offsets of a column.
            Err(ArrowError::OffsetOverflowError(_)) if places.len() > 1 => {
                let (first, second) = places.split_at(places.len() / 2);
                self.gather(first, into)?;
                self.gather(second, into)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the column of this name.
    pub(crate) fn column(&self, name: &str) -> PyResult<ArrowArray> {
        let fields = self.schema.fields().iter().enumerate();
        let mut places = fields.filter_map(|(at, field)| (field.name() == name).then_some(at));
        let at = places.next().ok_or_else(|| {
            PyKeyError::new_err(format!(
                "there is no column {name:?}: the columns are {}",
                self.column_names().join(", ")
            ))
        })?;
        if places.next().is_some() {
            return Err(PyKeyError::new_err(format!(
                "several columns are called {name:?}: rename them first"
            )));
        }
        let chunks: Vec<&dyn Array> = self
            .batches
            .iter()
            .map(|batch| &**batch.column(at))
            .collect();
        let column = match &chunks[..] {
            [] => arrow_array::new_empty_array(self.schema.field(at).data_type()),
            chunks if text_bytes(chunks) > i32::MAX as usize => large_texts(chunks),
            chunks => concat(chunks).map_err(CallError::value)?,
        };
        Ok(ArrowArray(column))
    }

    /// Joins the batches of tables with the same schema.
    pub(crate) fn joined(tables: Vec<Self>) -> Result<Self, CallError> {
        let schema = tables.first().map(|table| table.schema.clone());
        let schema = schema.ok_or_else(|| CallError::Value("there is no table".to_owned()))?;
        let batches = tables.into_iter().flat_map(|table| table.batches).collect();
        Ok(Self { schema, batches })
    }

    /// Returns rows in HTML.
    fn rows_html(&self, py: Python<'_>, rows: Range<usize>) -> String {
        let (mut html, mut start) = (String::new(), 0);
        for batch in &self.batches {
            let end = start + batch.num_rows();
            for row in rows.start.max(start)..rows.end.min(end) {
                let cells = batch.columns().iter();
                let cells: String = cells
                    .map(|column| cell_html(py, column, row - start))
                    .collect();
                html += &format!("<tr>{cells}</tr>");
            }
            start = end;
        }
        html
    }

    /// Returns a name that several columns have: in a dict, all but one of them would be lost.
    fn repeated_name(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        names.into_iter().find(|name| !seen.insert(*name))
    }

    /// Creates a table of one batch.
    pub(crate) fn of(columns: Vec<(&str, ArrayRef)>) -> Result<Self, CallError> {
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(CallError::value)?;
        Ok(Self {
            schema,
            batches: vec![batch],
        })
    }
}

#[pymethods]
impl ArrowTable {
    /// All rows of an object with Arrow data.
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::collect(data)?)
    }

    /// The rows where `mask`, a column or a list of bool as long as the table, is true; with `is_true=False`, where it is false.
    #[pyo3(signature = (mask, is_true=true))]
    fn filter(&self, mask: &Bound<'_, PyAny>, is_true: bool) -> PyResult<Self> {
        let wrong = || {
            CallError::Value(format!(
                "the mask must have a truth for each of the {} rows",
                self.__len__()
            ))
        };
        let mask = truths_of(mask)?
            .filter(|mask| mask.len() == self.__len__())
            .ok_or_else(wrong)?;
        let mut start = 0;
        let batches = self.batches.iter().map(|batch| {
            let own = mask.slice(start, batch.num_rows());
            start += batch.num_rows();
            let chosen = own.iter().map(|value| Some(value == Some(is_true)));
            let of_batch: BooleanArray = chosen.collect();
            filter_record_batch(batch, &of_batch).map_err(CallError::value)
        });
        Ok(Self {
            batches: batches.collect::<Result<_, _>>()?,
            schema: self.schema.clone(),
        })
    }

    /// The rows with these numbers, a column of uint64 or int64 or a list, in the order of the numbers.
    fn take(&self, rows: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rows = row_numbers_of(rows)?;
        let mut starts = vec![0];
        for batch in &self.batches {
            // One more than there are batches, so that `partition_point` finds the batch of a row even after empty batches, which have the
            // same start.
            starts.push(starts[starts.len() - 1] + batch.num_rows() as u64);
        }
        if let Some(row) = rows.iter().find(|row| **row >= self.__len__() as u64) {
            let reason = format!("there is no row {row}: the table has {}", self.__len__());
            return Err(PyIndexError::new_err(reason));
        }
        let place = |&row: &u64| {
            let batch = starts.partition_point(|start| *start <= row) - 1;
            (batch, (row - starts[batch]) as usize)
        };
        let mut batches = Vec::new();
        for block in rows.chunks(ROWS_PER_TAKE) {
            let places: Vec<_> = block.iter().map(place).collect();
            self.gather(&places, &mut batches)
                .map_err(CallError::value)?;
        }
        Ok(Self {
            batches,
            schema: self.schema.clone(),
        })
    }

    /// The same rows with the columns of another table appended, whose names must be new; metadata is that of this table.
    fn with_columns(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let other = Self::of_any(other)?;
        let fields = self.schema.fields().iter().chain(other.schema.fields());
        let fields: Vec<_> = fields.cloned().collect();
        let metadata = self.schema.metadata().clone();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let mut own: HashSet<&String> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name())
            .collect();
        let mut added = other.schema.fields().iter().map(|field| field.name());
        if let Some(name) = added.find(|name| !own.insert(name)) {
            return Err(CallError::Value(format!(
                "two columns would be called {name:?}: rename one of them first"
            ))
            .into());
        }
        // The batches of the two tables end at different rows, so concatenate one table and cut it like the other.
        let others = concat_batches(&other.schema, &other.batches).map_err(CallError::value)?;
        if others.num_rows() != self.__len__() {
            return Err(CallError::Value(format!(
                "the tables have {} and {} rows",
                self.__len__(),
                others.num_rows()
            ))
            .into());
        }
        let mut start = 0;
        let batches = self.batches.iter().map(|batch| {
            let beside = others.slice(start, batch.num_rows());
            start += batch.num_rows();
            let columns = batch
                .columns()
                .iter()
                .chain(beside.columns())
                .cloned()
                .collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), columns, &options)
                .map_err(CallError::value)
        });
        Ok(Self {
            batches: batches.collect::<Result<_, _>>()?,
            schema: schema.clone(),
        })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        export_stream(
            py,
            Box::new(RecordBatchIterator::new(batches, self.schema.clone())),
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(CallError::value)?;
        export_schema(py, schema)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        reduced_table(py, self)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The column of this name; of strings that exceed 2 GiB, as `large_string`.
    fn __getitem__(&self, name: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
        match name.cast::<PyString>() {
            Ok(name) => self.column(name.to_str()?),
            // As in a list or a frame of rows; only columns have keys.
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is no name of a column: the columns are {}; rows are in to_pylist()",
                name.repr()?,
                self.column_names().join(", ")
            ))),
        }
    }

    /// The rows as dicts.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut rows = self.__iter__()?;
        let list = PyList::empty(py);
        while let Some(row) = rows.__next__(py)? {
            list.append(row)?;
        }
        Ok(list)
    }

    fn __iter__(&self) -> PyResult<RowIterator> {
        if let Some(name) = self.repeated_name() {
            return Err(PyValueError::new_err(format!(
                "several columns are called {name:?}, and a dict has room for one of them: rename them first"
            )));
        }
        let batches = self.batches.iter();
        let rows = batches.map(|batch| -> ArrayRef { Arc::new(StructArray::from(batch.clone())) });
        Ok(RowIterator::over(rows.collect()))
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter();
        let columns: Vec<String> = columns
            .map(|field| format!("{}: {}", field.name(), named(field.data_type())))
            .collect();
        format!(
            "<lookalike.Table of {} rows: {}>",
            self.__len__(),
            columns.join(", ")
        )
    }

    /// The first and last rows, as a notebook shows them.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        let rows = self.__len__();
        let lines = match rows <= 2 * SHOWN {
            true => self.rows_html(py, 0..rows),
            false => format!(
                "{}<tr><td colspan={}>...</td></tr>{}",
                self.rows_html(py, 0..SHOWN),
                self.schema.fields().len(),
                self.rows_html(py, rows - SHOWN..rows)
            ),
        };
        let names = self.column_names().into_iter();
        let names: String = names
            .map(|name| format!("<th>{}</th>", escaped(&name)))
            .collect();
        format!(
            "<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table><p>{rows} rows</p>"
        )
    }
}

/// Makes a table from columns, given as names, kinds of values (`string`, `double`, `uint64`) and values.
#[pyfunction]
pub(crate) fn table(columns: Vec<(String, String, Bound<'_, PyList>)>) -> PyResult<ArrowTable> {
    let mut made: Vec<(&str, ArrayRef)> = Vec::new();
    for (name, kind, values) in &columns {
        let column: ArrayRef = match kind.as_str() {
            "double" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
            "uint64" => Arc::new(UInt64Array::from(values.extract::<Vec<Option<u64>>>()?)),
            _ => Arc::new(LargeStringArray::from(
                values.extract::<Vec<Option<String>>>()?,
            )),
        };
        made.push((name, column));
    }
    Ok(ArrowTable::of(made)?)
}

/// Concatenates tables with the same columns. Returns None if their columns differ.
#[pyfunction]
pub(crate) fn concat_tables(tables: Vec<PyRef<'_, ArrowTable>>) -> PyResult<Option<ArrowTable>> {
    let Some((first, _)) = tables.split_first() else {
        return Ok(Some(ArrowTable::of(Vec::new())?));
    };
    let same = |other: &Field, own: &Field| {
        (other.name(), other.data_type()) == (own.name(), own.data_type())
    };
    let mut fields: Vec<Field> = first
        .schema
        .fields()
        .iter()
        .map(|field| (**field).clone())
        .collect();
    for table in &tables {
        let others = table.schema.fields();
        let is_same = others.len() == fields.len()
            && others
                .iter()
                .zip(&fields)
                .all(|(other, own)| same(other, own));
        if !is_same {
            return Ok(None);
        }
        for (own, other) in fields.iter_mut().zip(others) {
            // Producers differ in nullability for the same data, and a null in a field that is declared non-nullable would be refused.
            let is_nullable = own.is_nullable() || other.is_nullable();
            own.set_nullable(is_nullable);
        }
    }
    let schema = Arc::new(Schema::new_with_metadata(
        fields,
        first.schema.metadata().clone(),
    ));
    let batches = tables.iter().flat_map(|table| &table.batches);
    let batches = batches.map(|batch| {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
            .map_err(CallError::value)
    });
    Ok(Some(ArrowTable {
        batches: batches.collect::<Result<_, _>>()?,
        schema: schema.clone(),
    }))
}

/// Reads a Parquet file of results.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: PathBuf) -> PyResult<ArrowTable> {
    Ok(py.detach(|| {
        let file = File::open(&path).map_err(|error| CallError::of_path(&path, error))?;
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
        let reader = reader.map_err(|error| CallError::of_path(&path, error))?;
        let schema = reader.schema();
        let batches: Result<Vec<_>, _> = reader.collect();
        Ok::<_, CallError>(ArrowTable {
            schema,
            batches: batches.map_err(|error| CallError::of_path(&path, error))?,
        })
    })?)
}
