//! Texts that a caller hands over: columns of Arrow of any string type, or Python strings.

use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
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
    /// Texts by their numbers, of those that are not missing.
    Dictionary(Vec<Option<usize>>, Box<TextColumn>),
    /// So many missing ones.
    Missing(usize),
}

impl TextColumn {
    /// The texts of an array.
    pub(crate) fn of(array: &ArrayRef) -> Result<Self, CallError> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string().clone()),
            DataType::LargeUtf8 => Self::Large(array.as_string().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            DataType::Null => Self::Missing(array.len()),
            // The dictionary is shared, not unpacked: a category of a million rows is a few strings.
            DataType::Dictionary(_, values) if is_text(values) => {
                let values = Self::of(array.as_any_dictionary().values())?;
                Self::Dictionary(dictionary_keys(array), Box::new(values))
            }
            other => {
                return Err(CallError::Type(format!(
                    "texts must be strings, not {}",
                    named(other)
                )));
            }
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

    /// A text; none if it is missing.
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

/// Places of the values of a dictionary array in its dictionary.
pub(crate) fn dictionary_keys(array: &ArrayRef) -> Vec<Option<usize>> {
    let dictionary = array.as_any_dictionary();
    // `normalized_keys` panics here. All values are null then, whatever their keys say.
    if dictionary.values().is_empty() {
        return vec![None; array.len()];
    }
    let keys = dictionary.normalized_keys();
    // Keys under nulls are arbitrary; `normalized_keys` has clamped them, so that none of them is out of
    // bounds.
    let there = |at: usize| array.is_valid(at).then(|| keys[at]);
    (0..array.len()).map(there).collect()
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
    )
}

/// The name of a type as Arrow's users write it: `int64`, `string`.
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
        other => other.to_string().to_lowercase(),
    }
}

/// The one column of an array: itself, or that of a table with one column.
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

/// Texts, a chunk at a time.
pub(crate) enum TextSource<'py> {
    Arrow(ArrowProducer),
    Python {
        items: Bound<'py, PyIterator>,
        /// Items read.
        row: usize,
    },
}

/// Most texts of a chunk.
const CHUNK_TEXTS: usize = 1 << 16;
/// A chunk ends when its texts have so many bytes.
const CHUNK_BYTES: usize = 1 << 24;

impl<'py> TextSource<'py> {
    /// The texts of an object: Arrow data, or an iterable of strings.
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
        // These can be iterated over, and would be taken for their characters, bytes or keys: the likeliest
        // slip of all, which must not give a result.
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

    /// The next chunk; none at the end.
    pub(crate) fn next(&mut self, py: Python<'py>) -> Result<Option<TextColumn>, CallError> {
        self.next_of(py, Ok)
    }

    /// The next chunk of texts that `texts_of` makes of a column.
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
        // After the text, not before: a text above the limit is a chunk by itself.
        if bytes >= CHUNK_BYTES {
            break;
        }
    }
    let texts = texts.finish();
    // Large, since one text alone may pass 2 GiB.
    Ok((!texts.is_empty()).then_some(TextColumn::Large(texts)))
}

/// The text of an item.
pub(crate) fn string<'a>(item: &'a Bound<'_, PyAny>, row: usize) -> Result<&'a str, CallError> {
    let text = item.cast::<PyString>().map_err(|_| {
        CallError::Type(format!(
            "texts must be strings, not {} (row {row})",
            type_name(item)
        ))
    })?;
    text.to_str().map_err(|error| CallError::BadInput {
        message: format!("row {row}: the text cannot be encoded as UTF-8: {error}"),
        row: Some(row),
        source: None,
    })
}

/// Calls `work` for the chunks of texts, one after the other.
pub(crate) fn for_each_chunk<'py>(
    texts: &Bound<'py, PyAny>,
    work: impl FnMut(Arc<TextColumn>) -> PyResult<()>,
) -> PyResult<()> {
    for_each_chunk_of(texts, Ok, work)
}

/// The same for the texts that `texts_of` makes of columns.
pub(crate) fn for_each_chunk_of<'py>(
    texts: &Bound<'py, PyAny>,
    texts_of: impl Fn(ArrayRef) -> Result<ArrayRef, CallError>,
    mut work: impl FnMut(Arc<TextColumn>) -> PyResult<()>,
) -> PyResult<()> {
    let py = texts.py();
    let mut source = TextSource::of(texts)?;
    while let Some(chunk) = source.next_of(py, &texts_of)? {
        work(Arc::new(chunk))?;
        // A generator in Python looks for signals itself; Arrow data of many small chunks would keep Ctrl-C
        // waiting.
        py.check_signals()?;
    }
    Ok(())
}
