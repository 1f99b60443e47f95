//! Values of Arrow arrays as Python objects.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::texts::{dictionary_keys, named};

/// Returns a value as a Python object; `None` for a null.
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
            // Slice to one value: otherwise the keys of the whole array would be computed again for each value.
            match dictionary_keys(&array.slice(at, 1))[0] {
                Some(key) => value(py, values, key)?,
                None => py.None().into_bound(py),
            }
        }
        DataType::Map(..) => {
            // A list of pairs, because keys may repeat and need not be hashable. pyarrow returns the same form.
            let entries = array.as_map().value(at);
            let (keys, values) = (entries.column(0), entries.column(1));
            let pairs: PyResult<Vec<_>> = (0..entries.len())
                .map(|entry| Ok((value(py, keys, entry)?, value(py, values, entry)?)))
                .collect();
            PyList::new(py, pairs?)?.into_any()
        }
        other => return scalar(py, array, at, other),
    })
}

/// Returns a value of a type for which Python's library has a class.
fn scalar<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    at: usize,
    data_type: &DataType,
) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(at)
        };
    }
    macro_rules! decimal {
        ($kind:ty) => {{
            let decimals = array.as_primitive::<$kind>();
            // With all digits, also if there are more than the type declares.
            let text = <$kind>::format_decimal(decimals.value(at), u8::MAX, decimals.scale());
            py.import("decimal")?.getattr("Decimal")?.call1((text,))
        }};
    }
    match data_type {
        DataType::Float16 => Ok(number!(Float16Type).to_f64().into_pyobject(py)?.into_any()),
        DataType::BinaryView => Ok(array
            .as_binary_view()
            .value(at)
            .into_pyobject(py)?
            .into_any()),
        DataType::FixedSizeBinary(_) => Ok(array
            .as_fixed_size_binary()
            .value(at)
            .into_pyobject(py)?
            .into_any()),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Date32 => date(py, i64::from(number!(Date32Type))),
        DataType::Date64 => date(py, number!(Date64Type).div_euclid(86_400_000)),
        DataType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Second => micros(number!(TimestampSecondType), 1_000_000),
                TimeUnit::Millisecond => micros(number!(TimestampMillisecondType), 1_000),
                TimeUnit::Microsecond => micros(number!(TimestampMicrosecondType), 1),
                TimeUnit::Nanosecond => number!(TimestampNanosecondType).div_euclid(1_000).into(),
            };
            moment(py, micros, zone.as_deref())
        }
        DataType::Time32(TimeUnit::Second) => {
            time(py, micros(number!(Time32SecondType), 1_000_000))
        }
        DataType::Time32(_) => time(py, micros(number!(Time32MillisecondType), 1_000)),
        DataType::Time64(TimeUnit::Microsecond) => time(py, number!(Time64MicrosecondType).into()),
        DataType::Time64(_) => time(py, i128::from(number!(Time64NanosecondType) / 1_000)),
        DataType::Duration(unit) => {
            let micros = match unit {
                TimeUnit::Second => micros(number!(DurationSecondType), 1_000_000),
                TimeUnit::Millisecond => micros(number!(DurationMillisecondType), 1_000),
                TimeUnit::Microsecond => micros(number!(DurationMicrosecondType), 1),
                TimeUnit::Nanosecond => number!(DurationNanosecondType).div_euclid(1_000).into(),
            };
            duration(py, micros)
        }
        other => Err(PyTypeError::new_err(format!(
            "values of the type {} have no Python form here: hand the data to pyarrow, polars or pandas",
            named(other)
        ))),
    }
}

fn micros(number: impl Into<i64>, unit: i128) -> i128 {
    i128::from(number.into()) * unit
}

fn duration(py: Python<'_>, micros: i128) -> PyResult<Bound<'_, PyAny>> {
    let class = py.import("datetime")?.getattr("timedelta")?;
    class.call1((0, 0, micros))
}

fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    // The ordinal of 1 January 1970 in Python.
    let class = py.import("datetime")?.getattr("date")?;
    class.call_method1("fromordinal", (719_163 + days,))
}

/// Returns a time of day, given in microseconds since midnight.
///
/// # Errors
/// `OverflowError` for one that is not within a day; Python's classes raise the same for dates out of their range.
fn time(py: Python<'_>, micros: i128) -> PyResult<Bound<'_, PyAny>> {
    if !(0..86_400_000_000).contains(&micros) {
        let reason = format!("{micros} microseconds after midnight are no time of day");
        return Err(PyOverflowError::new_err(reason));
    }
    moment(py, micros, None)?.call_method0("time")
}

/// Returns a time, given in microseconds since 1970.
fn moment<'py>(py: Python<'py>, micros: i128, zone: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("datetime")?;
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let class = module.getattr("datetime")?;
    let of_zone = match zone {
        None => None,
        Some("UTC" | "Z" | "+00:00") => Some(utc.clone()),
        Some(offset) if offset.starts_with(['+', '-']) => {
            let parsed = class.call_method1("strptime", (offset, "%z"))?;
            Some(parsed.getattr("tzinfo")?)
        }
        Some(name) => Some(py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,))?),
    };
    let epoch = match of_zone {
        None => class.call1((1970, 1, 1))?,
        Some(_) => class.call1((1970, 1, 1, 0, 0, 0, 0, utc))?,
    };
    let time = epoch.add(duration(py, micros)?)?;
    match of_zone {
        Some(zone) => time.call_method1("astimezone", (zone,)),
        None => Ok(time),
    }
}

/// Returns all values of an array.
pub(crate) fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let values: PyResult<Vec<_>> = (0..array.len()).map(|at| value(py, array, at)).collect();
    PyList::new(py, values?)
}
