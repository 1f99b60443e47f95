//! Integers that a caller gives as settings.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// An integer for a setting that may be left out; see [`whole_number`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeNumber(pub(crate) i64);

/// Extracts an integer, which may be negative: each setting checks its own range, with its own message.
pub(crate) fn whole_number(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // Python treats True as 1, but nobody means it as a number.
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
