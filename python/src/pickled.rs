//! Arrays and tables as bytes, for transfer to other processes: a stream of Arrow IPC.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::array::{ArrowArray, ArrowTable};
use crate::error::CallError;

/// Reads a table from bytes.
#[pyfunction]
pub(crate) fn table_of_bytes(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<ArrowTable> {
    let bytes = bytes.as_bytes();
    Ok(py.detach(|| read(bytes)).map_err(CallError::bad_input)?)
}

/// Reads an array from bytes: the only column of a table.
#[pyfunction]
pub(crate) fn array_of_bytes(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<ArrowArray> {
    table_of_bytes(py, bytes)?.column(COLUMN)
}

const COLUMN: &str = "values";

fn read(bytes: &[u8]) -> Result<ArrowTable, ArrowError> {
    let reader = StreamReader::try_new(bytes, None)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<_, _>>()?;
    Ok(ArrowTable { schema, batches })
}

fn written(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.into_inner()
}

/// Returns, for `pickle`, the function of this module that recreates the value, and its argument.
fn reduced<'py>(
    py: Python<'py>,
    function: &str,
    schema: &Schema,
    batches: &[RecordBatch],
) -> PyResult<Bound<'py, PyTuple>> {
    let bytes = py.detach(|| written(schema, batches));
    let bytes = PyBytes::new(py, &bytes.map_err(CallError::value)?);
    let function = py.import("lookalike._lookalike")?.getattr(function)?;
    let arguments = PyTuple::new(py, [bytes])?;
    PyTuple::new(py, [function, arguments.into_any()])
}

pub(crate) fn reduced_table<'py>(
    py: Python<'py>,
    table: &ArrowTable,
) -> PyResult<Bound<'py, PyTuple>> {
    reduced(py, "table_of_bytes", &table.schema, &table.batches)
}

pub(crate) fn reduced_array<'py>(
    py: Python<'py>,
    array: &ArrayRef,
) -> PyResult<Bound<'py, PyTuple>> {
    let field = Field::new(COLUMN, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array.clone()]);
    reduced(
        py,
        "array_of_bytes",
        &schema,
        &[batch.map_err(CallError::value)?],
    )
}
