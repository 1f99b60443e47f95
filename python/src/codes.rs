//! Fingerprints of 64 bits that a caller hands over: Arrow columns of integers, NumPy arrays, iterables of integers.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::capsule::ArrowProducer;
use crate::error::{CallError, type_name};
use crate::texts::{named, single_column};

/// Fingerprints with their rows; rows without one are left out.
#[derive(Debug, Default)]
pub(crate) struct CodeColumn {
    pub(crate) codes: Vec<u64>,
    /// Row of each code, where some rows have none.
    rows: Option<Vec<u64>>,
    /// Rows so far.
    count: usize,
}

impl CodeColumn {
    /// The fingerprints of an object.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Self, CallError> {
        let mut column = Self::default();
        if let Some(mut producer) = ArrowProducer::of(object)? {
            while let Some(array) = producer.next(object.py())? {
                let (array, name) = single_column(array, "fingerprints")?;
                column
                    .extend(&array)
                    .map_err(|error| error.in_column(name.as_deref()))?;
            }
        } else if object.hasattr("__array_interface__")? {
            column.codes = of_numpy(object)?;
            column.count = column.codes.len();
        } else {
            column.extend_python(object)?;
        }
        Ok(column)
    }

    /// Number of rows, with those that have no fingerprint.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The row of a code.
    pub(crate) fn row(&self, at: usize) -> u64 {
        self.rows.as_ref().map_or(at as u64, |rows| rows[at])
    }

    fn push(&mut self, code: Option<u64>) {
        match code {
            Some(code) => {
                self.codes.push(code);
                let row = self.count as u64;
                if let Some(rows) = &mut self.rows {
                    rows.push(row);
                }
            }
            None => {
                let before = self.codes.len() as u64;
                // Rows are counted from the first missing one on: data without nulls, which is nearly all,
                // costs no list of rows.
                self.rows.get_or_insert_with(|| (0..before).collect());
            }
        }
        self.count += 1;
    }

    fn extend(&mut self, array: &ArrayRef) -> Result<(), CallError> {
        let value: Box<dyn Fn(usize) -> u64 + '_> = match array.data_type() {
            DataType::UInt64 => {
                let numbers = array.as_primitive::<UInt64Type>();
                Box::new(|at| numbers.value(at))
            }
            // Frame libraries that know no unsigned numbers keep the bits in signed ones.
            DataType::Int64 => {
                let numbers = array.as_primitive::<Int64Type>();
                Box::new(|at| numbers.value(at).cast_unsigned())
            }
            DataType::UInt32 => {
                let numbers = array.as_primitive::<UInt32Type>();
                Box::new(|at| numbers.value(at).into())
            }
            // A column of nothing but None; none of its values is asked for.
            DataType::Null => Box::new(|_| 0),
            other => {
                return Err(CallError::Type(format!(
                    "fingerprints must be integers of 64 bits, not {}",
                    named(other)
                )));
            }
        };
        let nulls = array.logical_nulls();
        let is_there = |at| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        (0..array.len()).for_each(|at| self.push(is_there(at).then(|| value(at))));
        Ok(())
    }

    fn extend_python(&mut self, object: &Bound<'_, PyAny>) -> Result<(), CallError> {
        let items = object.try_iter().map_err(|_| {
            CallError::Type(format!(
                "fingerprints must be Arrow data, a NumPy array or an iterable of integers, not {}",
                type_name(object)
            ))
        })?;
        for item in items {
            let item = item?;
            let row = self.count;
            let code = item.extract::<Option<u64>>().map_err(|_| {
                CallError::Type(format!(
                    "fingerprints must be integers from 0 to 2**64 - 1, not {} (row {row})",
                    item.repr()
                        .map_or_else(|_| type_name(&item), |shown| shown.to_string())
                ))
            })?;
            self.push(code);
        }
        Ok(())
    }
}

/// The integers of a NumPy array, by way of its bytes.
fn of_numpy(array: &Bound<'_, PyAny>) -> Result<Vec<u64>, CallError> {
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 || !matches!(&*kind, "u" | "i") {
        return Err(CallError::Type(format!(
            "fingerprints must be integers in one dimension, not {} in {dimensions}",
            array.getattr("dtype")?
        )));
    }
    let named = PyDict::new(array.py());
    named.set_item("copy", false)?;
    // Signed ones keep their bits, strides and byte order are undone; without a copy where the array is so
    // already.
    let words = array.call_method("astype", ("<u8",), Some(&named))?;
    let bytes: Bound<'_, PyBytes> = words
        .call_method0("tobytes")?
        .cast_into()
        .map_err(PyErr::from)?;
    let words = bytes.as_bytes().chunks_exact(8);
    Ok(words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect())
}
