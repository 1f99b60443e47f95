//! Whole numbers that a caller gives as settings.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// A whole number where a setting may be left out; see [`whole_number`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeNumber(pub(crate) i64);

/// A whole number, negative ones included: whether a setting may have it, the setting says itself, in words of its own.
pub(crate) fn whole_number(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // Python counts with True as 1, but nobody writes it for a number.
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!(
            "a whole number is wanted, not {value}"
        )));
    }
    value.extract().map_err(|error: PyErr| {
        match error.is_instance_of::<PyOverflowError>(value.py()) {
            true => PyValueError::new_err(format!(
                "{value} is out of range: no setting has such a number"
            )),
            false => error,
        }
    })
}

impl<'py> FromPyObject<'_, 'py> for WholeNumber {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole_number(&value).map(Self)
    }
}
