//! Documents that a caller hands over: rows of Arrow data, or Python strings and dicts.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{
    date32_to_datetime, timestamp_ms_to_datetime, timestamp_ns_to_datetime,
    timestamp_s_to_datetime, timestamp_us_to_datetime,
};
use arrow_array::types::{Date32Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, TimeUnit};
use lookalike_corpus::{DocumentBatch, GivenDocument, OrderField, OrderKey, host};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::capsule::ArrowProducer;
use crate::error::{CallError, type_name};
use crate::texts::{TextColumn, dictionary_keys, named, single_column};

/// Columns of the data by what they are for.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DocumentColumns {
    /// Texts, which are joined by line breaks if there are several.
    pub(crate) text: Vec<String>,
    /// Ids; without them documents are called by their rows.
    pub(crate) id: Option<String>,
    /// Values by which survivors are chosen.
    pub(crate) order: Option<String>,
    /// Categories.
    pub(crate) category: Option<String>,
    /// True if the category is the host of a URL.
    pub(crate) site: bool,
    /// True if the texts are HTML.
    pub(crate) html: bool,
}

/// Some rows, with the columns that the job needs.
#[derive(Debug)]
pub(crate) struct DocumentRows {
    texts: Vec<TextColumn>,
    ids: Option<TextColumn>,
    /// Values as JSON.
    orders: Option<TextColumn>,
    categories: Option<TextColumn>,
    is_html: bool,
}

/// Rows that one thread works on.
pub(crate) struct RowBatch {
    rows: Arc<DocumentRows>,
    range: Range<usize>,
    bytes: usize,
    order: Option<Arc<OrderField>>,
    /// Number of the first of `rows`, where documents without ids are called by theirs in words of our own.
    named_from: Option<usize>,
}

impl DocumentRows {
    fn bytes(&self, row: usize) -> usize {
        let texts = self.texts.iter();
        texts
            .map(|column| column.get(row).map_or(0, str::len))
            .sum()
    }

    /// The text of a row, of the first column of texts.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        self.texts[0].get(row)
    }

    pub(crate) fn category(&self, row: usize) -> Option<&str> {
        self.categories.as_ref()?.get(row)
    }

    pub(crate) fn document<'a>(
        &'a self,
        row: usize,
        order: Option<&OrderField>,
    ) -> GivenDocument<'a> {
        let text = match &self.texts[..] {
            [column] => column.get(row).map(Into::into),
            columns => {
                let parts: Vec<&str> = columns
                    .iter()
                    .filter_map(|column| column.get(row))
                    .collect();
                // A document of which one column is missing has the others; one without any has no text.
                (!parts.is_empty()).then(|| parts.join("\n").into())
            }
        };
        let value = |column: &'a Option<TextColumn>| column.as_ref()?.get(row);
        let order_key = match (order, value(&self.orders)) {
            (Some(order), Some(json)) => OrderKey::parse(order, json),
            _ => OrderKey::Missing,
        };
        GivenDocument {
            id: value(&self.ids).map(Into::into),
            text,
            is_html: self.is_html,
            order_key,
            category: value(&self.categories).map(Into::into),
        }
    }
}

impl DocumentBatch for RowBatch {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn visit(&self, visit: &mut dyn FnMut(GivenDocument<'_>)) {
        for row in self.range.clone() {
            let mut document = self.rows.document(row, self.order.as_deref());
            if let (None, Some(first)) = (&document.id, self.named_from) {
                // Row numbers start at 0 in both data; two documents of one id would be taken for one.
                document.id = Some(format!("against-{}", first + row).into());
            }
            visit(document);
        }
    }
}

/// Documents in batches, from any thread.
pub(crate) struct DocumentSource {
    data: RowSource,
    columns: DocumentColumns,
    order: Option<Arc<OrderField>>,
    /// True for documents that others are compared with: their numbers must not be taken for those of the others.
    is_against: bool,
    /// Number of rows before the current ones.
    before: usize,
    /// Rows that are to be handed out, and the next of them.
    current: Option<(Arc<DocumentRows>, usize)>,
    /// True after an error.
    ended: bool,
}

enum RowSource {
    Arrow(ArrowProducer),
    /// A list of strings and dicts, and the next of them.
    List(Py<PyList>, usize),
}

/// An error on the way through the job, which gives it back.
#[derive(Debug)]
pub(crate) struct SourceError(pub(crate) std::sync::Mutex<Option<CallError>>);

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the documents could not be had")
    }
}

impl std::error::Error for SourceError {}

/// Bytes of text of a batch.
const BATCH_BYTES: usize = 1 << 20;
/// Most documents of a batch.
const BATCH_ROWS: usize = 1 << 14;

impl DocumentSource {
    /// The documents of a list, or of an object with Arrow data.
    pub(crate) fn of(
        data: &Bound<'_, PyAny>,
        columns: DocumentColumns,
        order: Option<Arc<OrderField>>,
    ) -> Result<Self, CallError> {
        let data = match (data.cast::<PyList>(), ArrowProducer::of(data)?) {
            (Ok(list), _) => RowSource::List(list.clone().unbind(), 0),
            (_, Some(producer)) => RowSource::Arrow(producer),
            _ => {
                return Err(CallError::Type(format!(
                    "documents must be Arrow data or a list, not {}",
                    type_name(data)
                )));
            }
        };
        Ok(Self {
            data,
            columns,
            order,
            is_against: false,
            before: 0,
            current: None,
            ended: false,
        })
    }

    /// The same documents to compare with: those without ids are called `against-0` and so on.
    pub(crate) fn against(self) -> Self {
        Self {
            is_against: true,
            ..self
        }
    }

    fn next_rows(&mut self) -> Result<Option<DocumentRows>, CallError> {
        match &mut self.data {
            RowSource::Arrow(producer) => {
                let array = producer.next_detached()?;
                array
                    .map(|array| rows_of_arrow(&array, &self.columns))
                    .transpose()
            }
            RowSource::List(list, next) => {
                Python::attach(|py| of_list(list.bind(py), next, &self.columns))
            }
        }
    }

    fn next_batch(&mut self) -> Result<Option<RowBatch>, CallError> {
        loop {
            if let Some((rows, next)) = &mut self.current {
                let (len, start) = (rows.texts[0].len(), *next);
                let (mut end, mut bytes) = (start, 0);
                // At least one row, however long it is.
                while end < len && end - start < BATCH_ROWS && bytes < BATCH_BYTES {
                    bytes += rows.bytes(end);
                    end += 1;
                }
                if end > start {
                    *next = end;
                    return Ok(Some(RowBatch {
                        rows: Arc::clone(rows),
                        range: start..end,
                        bytes,
                        order: self.order.clone(),
                        named_from: self.is_against.then_some(self.before),
                    }));
                }
            }
            if let Some((rows, _)) = self.current.take() {
                self.before += rows.texts[0].len();
            }
            match self.next_rows()? {
                Some(rows) => self.current = Some((Arc::new(rows), 0)),
                None => return Ok(None),
            }
        }
    }
}

impl Iterator for DocumentSource {
    type Item = Result<RowBatch, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.next_batch();
        // A producer must not be asked again after its end or an error.
        self.ended = !matches!(batch, Ok(Some(_)));
        batch
            .map_err(|error| SourceError(std::sync::Mutex::new(Some(error))))
            .transpose()
    }
}

/// The rows of an array: of a table, or of a column of texts.
pub(crate) fn rows_of_arrow(
    array: &ArrayRef,
    columns: &DocumentColumns,
) -> Result<DocumentRows, CallError> {
    let Some(table) = array.as_struct_opt() else {
        return Ok(DocumentRows {
            texts: vec![TextColumn::of(array)?],
            ids: None,
            orders: None,
            categories: None,
            is_html: columns.html,
        });
    };
    let texts: Vec<TextColumn> = match &columns.text[..] {
        [] => vec![TextColumn::of(&single_column(array.clone(), "texts")?.0)?],
        names => {
            let texts = names.iter().map(|name| {
                TextColumn::of(column(table, name)?).map_err(|error| error.in_column(Some(name)))
            });
            texts.collect::<Result<_, _>>()?
        }
    };
    let other = |name: &Option<String>, form: fn(&ArrayRef) -> Result<TextColumn, CallError>| {
        let form =
            |name: &String| form(column(table, name)?).map_err(|error| error.in_column(Some(name)));
        name.as_ref().map(form).transpose()
    };
    let categories = other(&columns.category, plain_texts)?;
    Ok(DocumentRows {
        texts,
        ids: other(&columns.id, plain_texts)?,
        orders: other(&columns.order, json_texts)?,
        categories: match columns.site {
            true => categories.map(|urls| hosts(&urls)),
            false => categories,
        },
        is_html: columns.html,
    })
}

pub(crate) fn column<'t>(table: &'t StructArray, name: &str) -> Result<&'t ArrayRef, CallError> {
    table.column_by_name(name).ok_or_else(|| {
        CallError::Value(format!(
            "there is no column {name:?}: the columns are {}",
            table.column_names().join(", ")
        ))
    })
}

/// The hosts of URLs.
fn hosts(urls: &TextColumn) -> TextColumn {
    let mut hosts = LargeStringBuilder::new();
    (0..urls.len()).for_each(|row| hosts.append_option(urls.get(row).and_then(host)));
    TextColumn::Large(hosts.finish())
}

/// Values as texts, as the command reads the same values from JSON lines.
fn plain_texts(array: &ArrayRef) -> Result<TextColumn, CallError> {
    match TextColumn::of(array) {
        Ok(texts) => Ok(texts),
        // No text: then a number, a date or a truth, whose own error says what is read.
        Err(_) => scalar_texts(array, |text, _| text),
    }
}

/// Values as JSON.
fn json_texts(array: &ArrayRef) -> Result<TextColumn, CallError> {
    match TextColumn::of(array) {
        Ok(texts) => {
            let mut quoted = LargeStringBuilder::new();
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            (0..texts.len()).for_each(|row| quoted.append_option(texts.get(row).map(quote)));
            Ok(TextColumn::Large(quoted.finish()))
        }
        Err(_) => scalar_texts(array, |text, is_number| match is_number {
            true => text,
            false => serde_json::Value::from(text).to_string(),
        }),
    }
}

/// Values of numbers, dates, truths as texts; `form` hears whether a value is one that JSON writes without quotes.
fn scalar_texts(
    array: &ArrayRef,
    form: impl Fn(String, bool) -> String,
) -> Result<TextColumn, CallError> {
    let value: Box<dyn Fn(usize) -> Option<(String, bool)> + '_> = match array.data_type() {
        DataType::Boolean => {
            let truths = array.as_boolean();
            Box::new(|row| Some((truths.value(row).to_string(), true)))
        }
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            Box::new(|row| Some((number_text(numbers.value(row))?, true)))
        }
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            // By way of a double, which shows digits that the caller never wrote (0.1 is 0.10000000149011612),
            // as JSON of the same value does elsewhere.
            Box::new(|row| Some((number_text(numbers.value(row).into())?, true)))
        }
        DataType::Date32 => {
            let dates = array.as_primitive::<Date32Type>();
            Box::new(|row| {
                let date = date32_to_datetime(dates.value(row))?;
                Some((date.date().to_string(), false))
            })
        }
        DataType::Timestamp(unit, _) => {
            let read = match unit {
                TimeUnit::Second => timestamp_s_to_datetime,
                TimeUnit::Millisecond => timestamp_ms_to_datetime,
                TimeUnit::Microsecond => timestamp_us_to_datetime,
                TimeUnit::Nanosecond => timestamp_ns_to_datetime,
            };
            // All four units hold integers of 64 bits: read as such, one function serves whatever the zone is.
            let ticks = array.to_data();
            let ticks = arrow_array::Int64Array::from(
                ticks
                    .into_builder()
                    .data_type(DataType::Int64)
                    .build()
                    .map_err(CallError::bad_input)?,
            );
            Box::new(move |row| Some((read(ticks.value(row))?.to_string(), false)))
        }
        data_type if data_type.is_integer() => {
            let numbers = integers(array)?;
            Box::new(move |row| Some((numbers[row].to_string(), true)))
        }
        DataType::Dictionary(..) => {
            // Each distinct value is written once, however many rows have it.
            let values = scalar_texts(array.as_any_dictionary().values(), form)?;
            return Ok(TextColumn::Dictionary(
                dictionary_keys(array),
                Box::new(values),
            ));
        }
        other => {
            return Err(CallError::Type(format!(
                "values must be strings, numbers, dates or truths, not {}",
                named(other)
            )));
        }
    };
    let mut texts = LargeStringBuilder::new();
    for row in 0..array.len() {
        // Below a null may lie anything, also what no date is.
        let value = array.is_valid(row).then(|| value(row)).flatten();
        texts.append_option(value.map(|(text, is_number)| form(text, is_number)));
    }
    Ok(TextColumn::Large(texts.finish()))
}

/// A number as JSON writes it; none for what is no number.
fn number_text(number: f64) -> Option<String> {
    serde_json::Number::from_f64(number).map(|number| number.to_string())
}

/// The integers of an array of any width.
fn integers(array: &ArrayRef) -> Result<Vec<i128>, CallError> {
    use arrow_array::types::{
        Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    };
    macro_rules! of {
        ($kind:ty) => {
            array
                .as_primitive::<$kind>()
                .values()
                .iter()
                .map(|&number| number.into())
                .collect()
        };
    }
    Ok(match array.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        other => {
            return Err(CallError::Type(format!("{} is no integer", named(other))));
        }
    })
}

/// The next rows of a list.
fn of_list(
    list: &Bound<'_, PyList>,
    next: &mut usize,
    columns: &DocumentColumns,
) -> Result<Option<DocumentRows>, CallError> {
    if *next >= list.len() {
        return Ok(None);
    }
    let mut texts: Vec<LargeStringBuilder> = Vec::new();
    texts.resize_with(columns.text.len().max(1), LargeStringBuilder::new);
    let (mut ids, mut orders, mut categories) = (
        LargeStringBuilder::new(),
        LargeStringBuilder::new(),
        LargeStringBuilder::new(),
    );
    let mut bytes = 0;
    while *next < list.len() && bytes < BATCH_BYTES {
        let (item, row) = (list.get_item(*next)?, *next);
        *next += 1;
        if let Ok(object) = item.cast::<PyDict>() {
            if columns.text.is_empty() {
                // The names of columns come from the first document, and texts have none.
                return Err(CallError::Type(format!(
                    "documents must be all strings or all dicts, and the first is a string, not a dict (row {row})"
                )));
            }
            for (name, texts) in columns.text.iter().zip(&mut texts) {
                let text = object.get_item(name)?.filter(|text| !text.is_none());
                let text = text.as_ref().map(|text| {
                    crate::texts::string(text, row).map_err(|error| error.in_column(Some(name)))
                });
                let text = text.transpose()?;
                // 64 for what a row costs by itself, so that a list of empty strings is cut into batches, too.
                bytes += text.map_or(0, str::len) + 64;
                texts.append_option(text);
            }
            let value = |name: &Option<String>| match name {
                Some(name) => object.get_item(name),
                None => Ok(None),
            };
            ids.append_option(plain_text(value(&columns.id)?, row)?);
            orders.append_option(json_text(value(&columns.order)?, row)?);
            categories.append_option(plain_text(value(&columns.category)?, row)?);
        } else {
            let is_text =
                columns.id.is_none() && columns.order.is_none() && columns.category.is_none();
            if !is_text {
                return Err(CallError::Type(format!(
                    "documents must be dicts, not {} (row {row})",
                    type_name(&item)
                )));
            }
            let text = match item.is_none() {
                true => None,
                false => Some(crate::texts::string(&item, row)?),
            };
            bytes += text.map_or(0, str::len) + 64;
            texts[0].append_option(text);
            texts[1..]
                .iter_mut()
                .for_each(LargeStringBuilder::append_null);
            [&mut ids, &mut orders, &mut categories]
                .into_iter()
                .for_each(LargeStringBuilder::append_null);
        }
    }
    let finished = |mut column: LargeStringBuilder| TextColumn::Large(column.finish());
    let categories = finished(categories);
    Ok(Some(DocumentRows {
        texts: texts.into_iter().map(finished).collect(),
        ids: columns.id.is_some().then(|| finished(ids)),
        orders: columns.order.is_some().then(|| finished(orders)),
        categories: columns.category.is_some().then(|| match columns.site {
            true => hosts(&categories),
            false => categories,
        }),
        is_html: columns.html,
    }))
}

/// A value as text; the second says that JSON writes it without quotes.
fn scalar_text(
    value: Option<Bound<'_, PyAny>>,
    row: usize,
) -> Result<Option<(String, bool)>, CallError> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some((crate::texts::string(text, row)?.to_owned(), false)));
    }
    // Before integers: in Python a bool is one.
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Some((truth.is_true().to_string(), true)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Some((value.str()?.to_string(), true)));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number_text(number.value()).map(|text| (text, true)));
    }
    // Dates and the like say themselves what they are.
    Ok(Some((value.str()?.to_string(), false)))
}

fn plain_text(value: Option<Bound<'_, PyAny>>, row: usize) -> Result<Option<String>, CallError> {
    Ok(scalar_text(value, row)?.map(|(text, _)| text))
}

fn json_text(value: Option<Bound<'_, PyAny>>, row: usize) -> Result<Option<String>, CallError> {
    let text = scalar_text(value, row)?;
    Ok(text.map(|(text, is_json)| match is_json {
        true => text,
        false => serde_json::Value::from(text).to_string(),
    }))
}
