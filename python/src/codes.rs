//! Fingerprints from a caller: Arrow columns of integers or hexadecimal digits, NumPy arrays, or iterables.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use lookalike_batch::fingerprints::files::SizedFingerprint;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

use crate::capsule::ArrowProducer;
use crate::error::{CallError, type_name};
use crate::texts::{TextColumn, named, single_column};

/// Fingerprints of one width with their row numbers; rows without a fingerprint are left out.
#[derive(Debug, Default)]
pub(crate) struct CodeColumn<W> {
    pub(crate) codes: Vec<W>,
    /// Row of each code; `None` if all rows have a code.
    rows: Option<Vec<u64>>,
    /// Number of rows so far.
    count: usize,
}

impl<W> CodeColumn<W> {
    /// Returns the number of rows, including those without a fingerprint.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the row of a code.
    pub(crate) fn row(&self, at: usize) -> u64 {
        self.rows.as_ref().map_or(at as u64, |rows| rows[at])
    }

    fn push(&mut self, code: Option<W>) {
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
                // Row numbers are only stored from the first missing fingerprint on, so data without nulls, the usual case, need no list of
                // rows.
                self.rows.get_or_insert_with(|| (0..before).collect());
            }
        }
        self.count += 1;
    }
}

/// Fingerprints from a caller: 64-bit integers, or strings of the hexadecimal digits of 64 or 128 bits, as `lookalike fingerprint` prints
/// them.
#[derive(Debug)]
pub(crate) enum FingerprintColumn {
    Narrow(CodeColumn<u64>),
    Wide(CodeColumn<u128>),
}

impl FingerprintColumn {
    /// Reads the fingerprints of an object.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Self, CallError> {
        let mut column = Self::Narrow(CodeColumn::default());
        if let Some(mut producer) = ArrowProducer::of(object)? {
            while let Some(array) = producer.next(object.py())? {
                let (array, name) = single_column(array, "fingerprints")?;
                column
                    .extend(&array)
                    .map_err(|error| error.in_column(name.as_deref()))?;
            }
        } else if object.hasattr("__array_interface__")? {
            let codes = of_numpy(object)?;
            column = Self::Narrow(CodeColumn {
                count: codes.len(),
                codes,
                rows: None,
            });
        } else {
            column.extend_python(object)?;
        }
        Ok(column)
    }

    /// Returns the number of bits of the fingerprints.
    pub(crate) fn bits(&self) -> u32 {
        match self {
            Self::Narrow(_) => u64::BITS,
            Self::Wide(_) => u128::BITS,
        }
    }

    /// Returns the number of bits of the fingerprints; a column without any takes the width `wanted`.
    pub(crate) fn bits_or(&mut self, wanted: u32) -> u32 {
        if wanted == u128::BITS {
            self.widen();
        }
        self.bits()
    }

    /// Turns a column without fingerprints into one of 128 bits.
    fn widen(&mut self) {
        if let Self::Narrow(column) = self
            && column.codes.is_empty()
        {
            *self = Self::Wide(CodeColumn {
                codes: Vec::new(),
                rows: column.rows.take(),
                count: column.count,
            });
        }
    }

    /// Gives two columns the same width, or returns an error if their fingerprints have different widths.
    pub(crate) fn ensure_equal_widths(a: &mut Self, b: &mut Self) -> Result<(), CallError> {
        match (a.bits_or(b.bits()), b.bits_or(a.bits())) {
            (first, second) if first == second => Ok(()),
            (first, second) => Err(CallError::Value(format!(
                "fingerprints of {first} bits and of {second} cannot be compared: make both with the same scheme or preset"
            ))),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Narrow(column) => column.push(None),
            Self::Wide(column) => column.push(None),
        }
    }

    /// Appends a number. Returns false if the others have 128 bits.
    fn push_number(&mut self, number: u64) -> bool {
        match self {
            Self::Narrow(column) => {
                column.push(Some(number));
                true
            }
            Self::Wide(_) => false,
        }
    }

    /// Appends a fingerprint given in hexadecimal digits. Returns false if the string is not one, or the others have another width.
    fn push_digits(&mut self, text: &str) -> bool {
        let Ok(code) = text.parse::<SizedFingerprint>() else {
            return false;
        };
        if let Some(narrow) = code.code::<u64>() {
            return self.push_number(narrow);
        }
        let Some(code) = code.code::<u128>() else {
            return false;
        };
        self.widen();
        match self {
            Self::Narrow(_) => false,
            Self::Wide(column) => {
                column.push(Some(code));
                true
            }
        }
    }

    /// Creates the error for the value of the next row.
    fn refused(&self, value: &str) -> CallError {
        CallError::Type(format!(
            "fingerprints must all be integers from 0 to 2**64 - 1 or strings of 16 hexadecimal digits, or all strings of 32, not {value} (row {})",
            self.rows()
        ))
    }

    fn rows(&self) -> usize {
        match self {
            Self::Narrow(column) => column.count,
            Self::Wide(column) => column.count,
        }
    }

    fn extend(&mut self, array: &ArrayRef) -> Result<(), CallError> {
        let value: Box<dyn Fn(usize) -> u64 + '_> = match array.data_type() {
            DataType::UInt64 => {
                let numbers = array.as_primitive::<UInt64Type>();
                Box::new(|at| numbers.value(at))
            }
            // Frame libraries without unsigned types keep the 64 bits in signed numbers.
            DataType::Int64 => words::<Int64Type>(array),
            DataType::Int32 => words::<Int32Type>(array),
            DataType::Int16 => words::<Int16Type>(array),
            DataType::Int8 => words::<Int8Type>(array),
            DataType::UInt32 => words::<UInt32Type>(array),
            DataType::UInt16 => words::<UInt16Type>(array),
            DataType::UInt8 => words::<UInt8Type>(array),
            // A column of only None, whose values are never read.
            DataType::Null => Box::new(|_| 0),
            other => {
                let texts = TextColumn::of(array).map_err(|_| {
                    CallError::Type(format!(
                        "fingerprints must be integers of 64 bits, or strings of 16 or 32 hexadecimal digits, not {}",
                        named(other)
                    ))
                })?;
                return self.extend_texts(&texts);
            }
        };
        let is_narrow = matches!(
            array.data_type(),
            DataType::Int32 | DataType::Int16 | DataType::Int8
        );
        let nulls = array.logical_nulls();
        let is_there = |at| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        for at in 0..array.len() {
            if !is_there(at) {
                self.push_null();
            } else if is_narrow && value(at).cast_signed() < 0 {
                return Err(narrow_negative(
                    &named(array.data_type()),
                    value(at),
                    self.rows(),
                ));
            } else if !self.push_number(value(at)) {
                return Err(self.refused(&value(at).to_string()));
            }
        }
        Ok(())
    }

    fn extend_texts(&mut self, texts: &TextColumn) -> Result<(), CallError> {
        for at in 0..texts.len() {
            match texts.get(at) {
                None => self.push_null(),
                Some(text) if self.push_digits(text) => {}
                Some(text) => return Err(self.refused(&format!("{text:?}"))),
            }
        }
        Ok(())
    }

    fn extend_python(&mut self, object: &Bound<'_, PyAny>) -> Result<(), CallError> {
        let items = object.try_iter().map_err(|_| {
            CallError::Type(format!(
                "fingerprints must be Arrow data, a NumPy array or an iterable of integers or strings, not {}",
                type_name(object)
            ))
        })?;
        for item in items {
            let item = item?;
            let is_taken = if let Ok(text) = item.cast::<PyString>() {
                self.push_digits(text.to_str()?)
            } else if item.is_none() {
                self.push_null();
                true
            } else {
                // Python treats True and False as numbers, but they are not fingerprints.
                let number = item.extract::<u64>().ok();
                let number = number.filter(|_| !item.is_instance_of::<PyBool>());
                number.is_some_and(|number| self.push_number(number))
            };
            if !is_taken {
                let shown = item.repr();
                let shown = shown.map_or_else(|_| type_name(&item), |shown| shown.to_string());
                return Err(self.refused(&shown));
            }
        }
        Ok(())
    }
}

/// Creates the error for a negative number of fewer than 64 bits: with its sign in the upper bits, it would be far from all others.
fn narrow_negative(data_type: &str, word: u64, row: usize) -> CallError {
    CallError::Type(format!(
        "fingerprints of {data_type} must not be negative, as {} is (row {row}): convert them to u{data_type} first, in NumPy with view(\"u{data_type}\")",
        word.cast_signed()
    ))
}

/// Returns a function for the value of each row, as NumPy widens it.
fn words<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
) -> Box<dyn Fn(usize) -> u64 + '_> {
    let numbers = array.as_primitive::<T>();
    Box::new(|at| numbers.value(at).into().cast_unsigned())
}

/// Reads the integers of a NumPy array from its bytes.
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
    // Signed numbers of 64 bits keep their bits; strides and byte order are normalised. Nothing is copied if the array already has this form.
    let words = array.call_method("astype", ("<u8",), Some(&named))?;
    let bytes: Bound<'_, PyBytes> = words
        .call_method0("tobytes")?
        .cast_into()
        .map_err(PyErr::from)?;
    let words = bytes.as_bytes().chunks_exact(8);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let words: Vec<u64> = words.collect();
    let data_type = array.getattr("dtype")?;
    let is_narrow = kind == "i" && data_type.getattr("itemsize")?.extract::<usize>()? < 8;
    match words.iter().position(|word| word.cast_signed() < 0) {
        Some(row) if is_narrow => {
            let name: String = data_type.getattr("name")?.extract()?;
            Err(narrow_negative(&name, words[row], row))
        }
        _ => Ok(words),
    }
}
