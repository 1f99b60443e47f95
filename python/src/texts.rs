//! Texts from a caller: Arrow columns of any string type, or Python strings.

use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, LargeStringArray, StringArray, StringViewArray, downcast_run_array,
};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyString};

use crate::capsule::ArrowProducer;
use crate::error::{CallError, type_name};

/// A chunk of texts, some of which may be missing.
#[derive(Clone, Debug)]
pub(crate) enum TextColumn {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
    /// Indexes of texts in a dictionary or in the values of runs, `None` for missing texts, and these.
    Dictionary(Vec<Option<usize>>, Box<TextColumn>),
    /// This number of missing texts.
    Missing(usize),
}

impl TextColumn {
    /// Reads the texts of an array.
    pub(crate) fn of(array: &ArrayRef) -> Result<Self, CallError> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string().clone()),
            DataType::LargeUtf8 => Self::Large(array.as_string().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            DataType::Null => Self::Missing(array.len()),
            // The dictionary is shared, not unpacked: a category of a million rows is only a few strings.
            DataType::Dictionary(_, values) if is_text(values) => {
                let values = Self::of(array.as_any_dictionary().values())?;
                Self::Dictionary(dictionary_keys(array), Box::new(values))
            }
            _ => downcast_run_array!(
                array => {
                    let runs = (0..array.len()).map(|at| Some(array.get_physical_index(at)));
                    Self::Dictionary(runs.collect(), Box::new(Self::of(array.values())?))
                },
                other => return Err(no_text(&named(other), "")),
            ),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
            Self::View(array) => array.len(),
            Self::Dictionary(numbers, _) => numbers.len(),
            Self::Missing(count) => *count,
        }
    }

    /// Returns a text, or `None` if it is missing.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Self::Small(array) => array.is_valid(at).then(|| array.value(at)),
            Self::Large(array) => array.is_valid(at).then(|| array.value(at)),
            Self::View(array) => array.is_valid(at).then(|| array.value(at)),
            Self::Dictionary(numbers, values) => numbers[at].and_then(|at| values.get(at)),
            Self::Missing(_) => None,
        }
    }
}

/// Creates the error for a value or a column that is no text, with a remedy for types that are often meant as texts.
fn no_text(type_name: &str, place: &str) -> CallError {
    let remedy = match type_name {
        "bytes" | "binary" | "largebinary" | "binaryview" => {
            ": decode them, or give pages to extract() first"
        }
        "float" | "NAType" | "NaTType" => ": use None where one is missing",
        "RecordBatch" => ": join batches with pyarrow.Table.from_batches",
        _ => "",
    };
    CallError::Type(format!(
        "texts must be strings, not {type_name}{place}{remedy}"
    ))
}

/// Returns the indexes of a dictionary array's values in its dictionary.
pub(crate) fn dictionary_keys(array: &ArrayRef) -> Vec<Option<usize>> {
    let dictionary = array.as_any_dictionary();
    // `normalized_keys` would panic here. All values are null in this case, whatever their keys.
    if dictionary.values().is_empty() {
        return vec![None; array.len()];
    }
    let keys = dictionary.normalized_keys();
    // Keys of null values are arbitrary, but `normalized_keys` has clamped them, so none is out of bounds.
    let there = |at: usize| array.is_valid(at).then(|| keys[at]);
    (0..array.len()).map(there).collect()
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
    )
}

/// Returns the name of a type as Arrow's users write it, such as `int64` or `string`.
pub(crate) fn named(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 => "string".to_owned(),
        DataType::LargeUtf8 => "large_string".to_owned(),
        DataType::Utf8View => "string_view".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Dictionary(_, values) => format!("dictionary of {}", named(values)),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            format!("list of {}", named(field.data_type()))
        }
        DataType::RunEndEncoded(_, values) => {
            format!("run_end_encoded of {}", named(values.data_type()))
        }
        // Without the fields, whose names keep their case.
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Returns the only column of an array: the array itself, or the column of a table with one.
pub(crate) fn single_column(
    array: ArrayRef,
    what: &str,
) -> Result<(ArrayRef, Option<String>), CallError> {
    let DataType::Struct(fields) = array.data_type() else {
        return Ok((array, None));
    };
    match &fields[..] {
        [field] => Ok((
            array.as_struct().column(0).clone(),
            Some(field.name().clone()),
        )),
        _ => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(CallError::Type(format!(
                "{what} must be one column, and the data has {}: {}",
                names.len(),
                names.join(", ")
            )))
        }
    }
}

/// Texts from a caller, a chunk at a time.
pub(crate) enum TextSource<'py> {
    Arrow(ArrowProducer),
    Python {
        items: Bound<'py, PyIterator>,
        /// Number of items read so far.
        row: usize,
    },
}

/// Maximum number of texts in a chunk.
const CHUNK_TEXTS: usize = 1 << 16;
/// Size in bytes at which a chunk ends.
const CHUNK_BYTES: usize = 1 << 24;

impl<'py> TextSource<'py> {
    /// Creates a source from Arrow data or from an iterable of strings.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> Result<Self, CallError> {
        if let Some(producer) = ArrowProducer::of(object)? {
            return Ok(Self::Arrow(producer));
        }
        let no_texts = || {
            CallError::Type(format!(
                "texts must be Arrow data or an iterable of strings, not {}",
                type_name(object)
            ))
        };
        // These are iterable and would be read as their characters, bytes or keys. This is the likeliest mistake, and it must not give a
        // result.
        let is_single = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyDict>();
        if is_single {
            return Err(CallError::Type(format!(
                "texts must be several, as in a list, not one {}",
                type_name(object)
            )));
        }
        let items = object.try_iter().map_err(|_| no_texts())?;
        Ok(Self::Python { items, row: 0 })
    }

    /// Returns the next chunk, or `None` at the end.
    pub(crate) fn next(&mut self, py: Python<'py>) -> Result<Option<TextColumn>, CallError> {
        self.next_of(py, Ok)
    }

    /// Returns the next chunk of the texts that `texts_of` makes from a column.
    fn next_of(
        &mut self,
        py: Python<'py>,
        texts_of: impl Fn(ArrayRef) -> Result<ArrayRef, CallError>,
    ) -> Result<Option<TextColumn>, CallError> {
        match self {
            Self::Arrow(producer) => {
                let Some(array) = producer.next(py)? else {
                    return Ok(None);
                };
                let (column, name) = single_column(array, "texts")?;
                let texts = texts_of(column).and_then(|column| TextColumn::of(&column));
                texts
                    .map(Some)
                    .map_err(|error| error.in_column(name.as_deref()))
            }
            Self::Python { items, row } => next_strings(items, row),
        }
    }
}

fn next_strings(
    items: &mut Bound<'_, PyIterator>,
    row: &mut usize,
) -> Result<Option<TextColumn>, CallError> {
    let (mut texts, mut bytes) = (LargeStringBuilder::new(), 0);
    for item in items.by_ref().take(CHUNK_TEXTS) {
        let item = item?;
        match item.is_none() {
            true => texts.append_null(),
            false => {
                let text = string(&item, *row)?;
                bytes += text.len();
                texts.append_value(text);
            }
        }
        *row += 1;
        // Checked after the text, not before, so that a text above the limit is a chunk by itself.
        if bytes >= CHUNK_BYTES {
            break;
        }
    }
    let texts = texts.finish();
    // A large column, because a single text may exceed 2 GiB.
    Ok((!texts.is_empty()).then_some(TextColumn::Large(texts)))
}

/// Returns the text of an item.
pub(crate) fn string<'a>(item: &'a Bound<'_, PyAny>, row: usize) -> Result<&'a str, CallError> {
    let text = item
        .cast::<PyString>()
        .map_err(|_| no_text(&type_name(item), &format!(" (row {row})")))?;
    text.to_str().map_err(|error| CallError::BadInput {
        message: format!("row {row}: the text cannot be encoded as UTF-8: {error}"),
        row: Some(row),
        source: None,
    })
}

/// Calls `work` for all chunks of texts, one after the other.
pub(crate) fn for_each_chunk<'py>(
    texts: &Bound<'py, PyAny>,
    work: impl FnMut(Arc<TextColumn>) -> PyResult<()>,
) -> PyResult<()> {
    for_each_chunk_of(texts, Ok, work)
}

/// Calls `work` for all chunks of the texts that `texts_of` makes from columns.
pub(crate) fn for_each_chunk_of<'py>(
    texts: &Bound<'py, PyAny>,
    texts_of: impl Fn(ArrayRef) -> Result<ArrayRef, CallError>,
    mut work: impl FnMut(Arc<TextColumn>) -> PyResult<()>,
) -> PyResult<()> {
    let py = texts.py();
    let mut source = TextSource::of(texts)?;
    while let Some(chunk) = source.next_of(py, &texts_of)? {
        work(Arc::new(chunk))?;
        // A generator in Python checks for signals itself, but Arrow data of many small chunks would delay Ctrl-C.
        py.check_signals()?;
    }
    Ok(())
}
