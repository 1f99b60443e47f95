//! Values of Arrow arrays as Python objects.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::texts::{dictionary_keys, named};

/// A value as Python has it; `None` where there is none.
pub(crate) fn value<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    at: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($kind:ty) => {
            array
                .as_primitive::<$kind>()
                .value(at)
                .into_pyobject(py)?
                .into_any()
        };
    }
    Ok(match array.data_type() {
        DataType::Null => py.None().into_bound(py),
        DataType::Boolean => array
            .as_boolean()
            .value(at)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8 => array
            .as_string::<i32>()
            .value(at)
            .into_pyobject(py)?
            .into_any(),
        DataType::LargeUtf8 => array
            .as_string::<i64>()
            .value(at)
            .into_pyobject(py)?
            .into_any(),
        DataType::Utf8View => array
            .as_string_view()
            .value(at)
            .into_pyobject(py)?
            .into_any(),
        DataType::Binary => array
            .as_binary::<i32>()
            .value(at)
            .into_pyobject(py)?
            .into_any(),
        DataType::LargeBinary => array
            .as_binary::<i64>()
            .value(at)
            .into_pyobject(py)?
            .into_any(),
        DataType::List(_) => list(py, &array.as_list::<i32>().value(at))?.into_any(),
        DataType::LargeList(_) => list(py, &array.as_list::<i64>().value(at))?.into_any(),
        DataType::FixedSizeList(..) => list(py, &array.as_fixed_size_list().value(at))?.into_any(),
        DataType::Struct(fields) => {
            let (object, columns) = (PyDict::new(py), array.as_struct().columns());
            for (field, column) in fields.iter().zip(columns) {
                object.set_item(field.name(), value(py, column, at)?)?;
            }
            object.into_any()
        }
        DataType::Dictionary(..) => {
            let values = array.as_any_dictionary().values();
            // A slice of one value: keys of the whole array would be computed anew for each.
            match dictionary_keys(&array.slice(at, 1))[0] {
                Some(key) => value(py, values, key)?,
                None => py.None().into_bound(py),
            }
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "values of the type {} have no Python form here: hand the data to pyarrow, polars or pandas",
                named(other)
            )));
        }
    })
}

/// All values of an array.
pub(crate) fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let values: PyResult<Vec<_>> = (0..array.len()).map(|at| value(py, array, at)).collect();
    PyList::new(py, values?)
}
