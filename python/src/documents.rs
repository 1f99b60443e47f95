//! Documents from a caller: rows of Arrow data, or Python strings and dicts.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::Field;
use lookalike::DocumentFields;
use lookalike_corpus::{
    Category, DocumentBatch, FieldPath, InMemoryDocument, OrderField, OrderKey, cell_json,
    given_id, host, parse_document_fields,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyString};

use crate::capsule::ArrowProducer;
use crate::error::{CallError, type_name};
use crate::texts::{TextColumn, single_column};

/// Rows of a caller's data, and the roles of their columns.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CallerRows {
    /// A list, or an object with Arrow data.
    rows: Py<PyAny>,
    columns: DocumentColumns,
}

/// Names of columns by their roles.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DocumentColumns {
    /// Texts, which are joined by line breaks if there are several columns.
    pub(crate) text: Vec<String>,
    /// Ids; without them, documents are named by row numbers.
    pub(crate) id: Option<String>,
    /// Values by which survivors are chosen.
    pub(crate) order: Option<String>,
    /// Categories.
    pub(crate) category: Option<String>,
    /// True if the category is the host of a URL.
    pub(crate) site: bool,
    /// True if the texts are HTML.
    pub(crate) html: bool,
    /// HTML pages, which are used for rows without a text.
    pub(crate) page: Option<String>,
    /// Columns of anchors and links that become features, named like the fields of records.
    pub(crate) fields: Vec<String>,
}

impl DocumentColumns {
    /// Returns the source of categories, if there is one.
    fn category_source(&self) -> Option<Category> {
        let name = self.category.as_ref()?;
        Some(match self.site {
            true => Category::Site,
            false => Category::Field(FieldPath::name(name)),
        })
    }
}

/// Some rows, with the columns that the job needs.
#[derive(Debug)]
pub(crate) struct DocumentRows {
    texts: Vec<TextColumn>,
    /// HTML that is used for rows without a text.
    pages: Option<TextColumn>,
    ids: Option<TextColumn>,
    /// Values as JSON.
    orders: Option<TextColumn>,
    categories: Option<TextColumn>,
    fields: Option<Vec<DocumentFields>>,
    is_html: bool,
}

/// Values of a column, in the form of record fields.
enum FieldColumn {
    /// Strings, which are not copied.
    Texts(TextColumn),
    /// Any values as JSON.
    Json(TextColumn),
}

impl FieldColumn {
    /// Reads a column of an array; `first` is the number of its first row.
    ///
    /// # Errors
    /// [`CallError::BadInput`] for a value that has no representation: as null, it would count as missing.
    fn of_arrow(field: &Field, array: &ArrayRef, first: usize) -> Result<Self, CallError> {
        if let Ok(texts) = TextColumn::of(array) {
            return Ok(Self::Texts(texts));
        }
        let mut json = LargeStringBuilder::new();
        for row in 0..array.len() {
            // In the form that the command produces when it reads the same column from a file.
            let value = (!array.is_null(row)).then(|| cell_json(field, array, row));
            let value = value.transpose().map_err(|error| {
                let reason = format!("{error}: correct it, or set it to null");
                bad_row(first + row, &reason).in_column(Some(field.name()))
            })?;
            json.append_option(value);
        }
        Ok(Self::Json(TextColumn::Large(json.finish())))
    }

    /// Returns the value as JSON, or `None` if it is null.
    fn json(&self, row: usize) -> Option<Cow<'_, str>> {
        match self {
            Self::Texts(texts) => Some(serde_json::Value::from(texts.get(row)?).to_string().into()),
            Self::Json(json) => json.get(row).filter(|json| *json != "null").map(Cow::from),
        }
    }

    fn into_orders(self, rows: usize) -> TextColumn {
        match self {
            Self::Json(json) => json,
            Self::Texts(_) => built(rows, |row| self.json(row)),
        }
    }

    /// Converts the values to ids, as the command reads them.
    ///
    /// # Errors
    /// [`CallError::BadInput`] for a value that is not an id. `first` is the number of the first row.
    fn into_ids(self, rows: usize, first: usize) -> Result<TextColumn, CallError> {
        let json = match self {
            Self::Texts(texts) => return Ok(texts),
            Self::Json(json) => json,
        };
        let mut ids = LargeStringBuilder::new();
        for row in 0..rows {
            let id = given_id(json.get(row).unwrap_or("null"));
            ids.append_option(id.map_err(|error| bad_row(first + row, &error.to_string()))?);
        }
        Ok(TextColumn::Large(ids.finish()))
    }

    fn into_categories(self, rows: usize, source: &Category) -> TextColumn {
        match (self, source) {
            (Self::Texts(texts), Category::Field(_)) => texts,
            (column, _) => {
                let mut categories = LargeStringBuilder::new();
                for row in 0..rows {
                    categories.append_option(source.value(column.json(row).as_deref(), ""));
                }
                TextColumn::Large(categories.finish())
            }
        }
    }
}

/// Builds a column from the result of `value` for each row.
fn built<S: AsRef<str>>(rows: usize, value: impl Fn(usize) -> Option<S>) -> TextColumn {
    let mut column = LargeStringBuilder::new();
    (0..rows).for_each(|row| column.append_option(value(row)));
    TextColumn::Large(column.finish())
}

fn bad_row(row: usize, reason: &str) -> CallError {
    CallError::BadInput {
        message: format!("row {row}: {reason}"),
        row: Some(row),
        source: None,
    }
}

/// Returns the error for a document without an id, if there is a column of ids.
pub(crate) fn no_id(row: usize, column: Option<&str>) -> CallError {
    let fault = "the id is missing: give every document one, or leave out id=";
    bad_row(row, fault).in_column(column)
}

/// Columns of some rows, before their values are checked.
struct RowColumns {
    texts: Vec<TextColumn>,
    pages: Option<TextColumn>,
    ids: Option<FieldColumn>,
    orders: Option<FieldColumn>,
    categories: Option<FieldColumn>,
    /// Columns that [`DocumentColumns::fields`] names.
    fields: Vec<FieldColumn>,
}

impl RowColumns {
    /// Converts the columns to rows; `first` is the number of the first row.
    fn into_rows(self, columns: &DocumentColumns, first: usize) -> Result<DocumentRows, CallError> {
        let rows = self.texts[0].len();
        let in_id = |error: CallError| error.in_column(columns.id.as_deref());
        let ids = self.ids.map(|ids| ids.into_ids(rows, first).map_err(in_id));
        let ids = ids.transpose()?;
        let source = columns.category_source();
        let categories = self.categories.zip(source.as_ref());
        let categories = categories.map(|(column, source)| column.into_categories(rows, source));
        let fields = (!columns.fields.is_empty())
            .then(|| (0..rows).map(|row| row_fields(&columns.fields, &self.fields, row, first)))
            .map(Iterator::collect);
        Ok(DocumentRows {
            texts: self.texts,
            pages: self.pages,
            ids,
            orders: self.orders.map(|orders| orders.into_orders(rows)),
            categories,
            fields: fields.transpose()?,
            is_html: columns.html,
        })
    }
}

fn row_fields(
    names: &[String],
    columns: &[FieldColumn],
    row: usize,
    first: usize,
) -> Result<DocumentFields, CallError> {
    let json = |name: &str| {
        let at = names.iter().position(|known| known == name)?;
        columns[at].json(row)
    };
    let [anchors, in_links, out_links] = ["anchors", "in_links", "out_links"].map(json);
    parse_document_fields(
        anchors.as_deref(),
        in_links.as_deref(),
        out_links.as_deref(),
    )
    .map_err(|error| bad_row(first + row, &error.to_string()))
}

/// Rows that one thread processes.
pub(crate) struct RowBatch {
    rows: Arc<DocumentRows>,
    range: Range<usize>,
    bytes: usize,
    order: Option<Arc<OrderField>>,
    /// Number of the first of `rows`, if documents without ids are named by their row numbers.
    named_from: Option<usize>,
}

impl DocumentRows {
    fn bytes(&self, row: usize) -> usize {
        let texts = self.texts.iter().filter_map(|column| column.get(row));
        let page = self.page(row).into_iter();
        texts.chain(page).map(str::len).sum()
    }

    /// Returns the HTML of a row without a text.
    fn page(&self, row: usize) -> Option<&str> {
        let pages = self.pages.as_ref()?;
        let has_text = self.texts.iter().any(|column| column.get(row).is_some());
        pages.get(row).filter(|_| !has_text)
    }

    /// Returns the text of a row from the first column of texts.
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
    ) -> InMemoryDocument<'a> {
        let text = match &self.texts[..] {
            [column] => column.get(row).map(Into::into),
            columns => {
                let parts: Vec<&str> = columns
                    .iter()
                    .filter_map(|column| column.get(row))
                    .collect();
                // If some columns of texts are null, the others are used; if all are, the document has no text.
                (!parts.is_empty()).then(|| parts.join("\n").into())
            }
        };
        let page = self.page(row);
        let value = |column: &'a Option<TextColumn>| column.as_ref()?.get(row);
        let order_key = match (order, value(&self.orders)) {
            (Some(order), Some(json)) => OrderKey::parse(order, json),
            _ => OrderKey::Missing,
        };
        InMemoryDocument {
            id: value(&self.ids).map(Into::into),
            is_html: self.is_html || page.is_some(),
            text: text.or_else(|| page.map(Into::into)),
            order_key,
            category: value(&self.categories).map(Into::into),
            fields: match &self.fields {
                Some(fields) => fields[row].clone(),
                None => DocumentFields::default(),
            },
        }
    }

    /// Uses the host of the id as the category of rows whose URL has none.
    fn with_sites_of_ids(mut self) -> Self {
        let site = |row| {
            let own = self.category(row).map(Cow::from);
            own.or_else(|| host(self.ids.as_ref()?.get(row)?))
        };
        self.categories = Some(built(self.texts[0].len(), site));
        self
    }

    /// Returns the number of the first row without an id, if there is a column of ids.
    fn without_id(&self) -> Option<usize> {
        let ids = self.ids.as_ref()?;
        (0..ids.len()).find(|row| ids.get(*row).is_none())
    }
}

impl DocumentBatch for RowBatch {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn visit(&self, visit: &mut dyn FnMut(InMemoryDocument<'_>)) {
        for row in self.range.clone() {
            let mut document = self.rows.document(row, self.order.as_deref());
            if let (None, Some(first)) = (&document.id, self.named_from) {
                // Row numbers start at 0 in both data sets, and two documents with the same id would be taken for one.
                document.id = Some(format!("against-{}", first + row).into());
            }
            visit(document);
        }
    }
}

/// Documents in batches, which any thread may read.
pub(crate) struct DocumentSource {
    data: RowSource,
    columns: DocumentColumns,
    order: Option<Arc<OrderField>>,
    /// True for documents that others are compared with, whose row numbers must not be mistaken for those of the others.
    is_against: bool,
    /// Number of rows before the current ones.
    before: usize,
    /// Rows that are being returned, and the next of them.
    current: Option<(Arc<DocumentRows>, usize)>,
    /// True after an error.
    ended: bool,
}

enum RowSource {
    Arrow(ArrowProducer),
    /// A list of strings or dicts, and the position of the next.
    List(Py<PyList>, usize),
}

/// An error that passes through the job, which returns it.
#[derive(Debug)]
pub(crate) struct SourceError(pub(crate) std::sync::Mutex<Option<CallError>>);

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the documents could not be obtained")
    }
}

impl std::error::Error for SourceError {}

impl From<CallError> for SourceError {
    fn from(error: CallError) -> Self {
        Self(std::sync::Mutex::new(Some(error)))
    }
}

/// Approximate size of a batch's texts in bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of documents in a batch.
const BATCH_ROWS: usize = 1 << 14;

impl DocumentSource {
    /// Creates a source from a list, or from an object with Arrow data.
    pub(crate) fn of(
        py: Python<'_>,
        CallerRows { rows, columns }: CallerRows,
        order: Option<Arc<OrderField>>,
    ) -> Result<Self, CallError> {
        let data = rows.bind(py);
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

    /// Turns this into a source of documents that others are compared with: those without ids are named `against-0` and so on.
    pub(crate) fn against(self) -> Self {
        Self {
            is_against: true,
            ..self
        }
    }

    /// Returns the document in a row, counted from 0, with a copy of its text.
    pub(crate) fn document(mut self, row: usize) -> Result<InMemoryDocument<'static>, CallError> {
        while let Some(rows) = self.next_rows()? {
            let end = self.before + rows.texts[0].len();
            if row < end {
                let document = rows.document(row - self.before, None);
                return Ok(InMemoryDocument {
                    text: document.text.map(|text| text.into_owned().into()),
                    category: document.category.map(|value| value.into_owned().into()),
                    is_html: document.is_html,
                    fields: document.fields,
                    ..InMemoryDocument::default()
                });
            }
            self.before = end;
        }
        Err(CallError::Failed(format!(
            "there is no row {row} any more: the data has changed since"
        )))
    }

    fn next_rows(&mut self) -> Result<Option<DocumentRows>, CallError> {
        let (columns, before) = (&self.columns, self.before);
        let rows = match &mut self.data {
            RowSource::Arrow(producer) => match producer.next_detached()? {
                Some(array) => {
                    Some(columns_of_arrow(&array, columns, before)?.into_rows(columns, before)?)
                }
                None => None,
            },
            RowSource::List(list, next) => {
                let of_list = Python::attach(|py| columns_of_list(list.bind(py), next, columns))?;
                match of_list {
                    Some(of_list) => Some(of_list.into_rows(columns, before)?),
                    None => None,
                }
            }
        };
        // Any id generated for this document might be that of another.
        match rows.as_ref().and_then(DocumentRows::without_id) {
            Some(row) => Err(no_id(before + row, columns.id.as_deref())),
            None if columns.site => Ok(rows.map(DocumentRows::with_sites_of_ids)),
            None => Ok(rows),
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
        // A producer must not be called again after its end or an error.
        self.ended = !matches!(batch, Ok(Some(_)));
        batch.map_err(SourceError::from).transpose()
    }
}

/// Reads the rows of an array: a table, or a column of texts.
pub(crate) fn rows_of_arrow(
    array: &ArrayRef,
    columns: &DocumentColumns,
) -> Result<DocumentRows, CallError> {
    columns_of_arrow(array, columns, 0)?.into_rows(columns, 0)
}

fn columns_of_arrow(
    array: &ArrayRef,
    columns: &DocumentColumns,
    first: usize,
) -> Result<RowColumns, CallError> {
    let Some(table) = array.as_struct_opt() else {
        return Ok(RowColumns {
            texts: vec![TextColumn::of(array)?],
            pages: None,
            ids: None,
            orders: None,
            categories: None,
            fields: Vec::new(),
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
    let field = |name: &String| {
        let array = column(table, name)?;
        let (_, field) = table
            .fields()
            .find(name)
            .expect("a column of this name was found");
        FieldColumn::of_arrow(field, array, first)
    };
    let other = |name: &Option<String>| name.as_ref().map(field).transpose();
    let pages = columns.page.as_ref().map(|name| {
        page_column(&texts, column(table, name)?).map_err(|error| error.in_column(Some(name)))
    });
    Ok(RowColumns {
        pages: pages.transpose()?,
        texts,
        ids: other(&columns.id)?,
        orders: other(&columns.order)?,
        categories: other(&columns.category)?,
        fields: columns.fields.iter().map(field).collect::<Result<_, _>>()?,
    })
}

/// Returns the column of pages, for rows without a text. If all rows have a text, it may have any type, because it is not read.
fn page_column(texts: &[TextColumn], array: &ArrayRef) -> Result<TextColumn, CallError> {
    TextColumn::of(array).or_else(|error| {
        let is_wanted = |row: usize| {
            !array.is_null(row) && texts.iter().all(|column| column.get(row).is_none())
        };
        match (0..array.len()).any(is_wanted) {
            true => Err(error),
            false => Ok(TextColumn::Missing(array.len())),
        }
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

/// Reads the next rows of a list.
fn columns_of_list(
    list: &Bound<'_, PyList>,
    next: &mut usize,
    columns: &DocumentColumns,
) -> Result<Option<RowColumns>, CallError> {
    if *next >= list.len() {
        return Ok(None);
    }
    let names = |name: &Option<String>| name.iter().cloned().collect::<Vec<_>>();
    let mut texts: Vec<LargeStringBuilder> = Vec::new();
    texts.resize_with(columns.text.len().max(1), LargeStringBuilder::new);
    let mut pages = columns.page.as_ref().map(|_| LargeStringBuilder::new());
    let mut others = [
        ListColumns::of(names(&columns.id)),
        ListColumns::of(names(&columns.order)),
        ListColumns::of(names(&columns.category)),
        ListColumns::of(columns.fields.clone()),
    ];
    let mut bytes = 0;
    while *next < list.len() && bytes < BATCH_BYTES {
        let (item, row) = (list.get_item(*next)?, *next);
        *next += 1;
        if let Ok(object) = item.cast::<PyDict>() {
            if columns.text.is_empty() {
                // The names of columns are taken from the first document, and strings have none.
                return Err(CallError::Type(format!(
                    "documents must be all strings or all dicts, and the first is a string, not a dict (row {row})"
                )));
            }
            let mut has_text = false;
            for (name, texts) in columns.text.iter().zip(&mut texts) {
                let text = object.get_item(name)?;
                let text = text_of(text.as_ref(), name, row)?;
                // 64 bytes of overhead for each row, so that a list of empty strings is divided into batches too.
                bytes += text.map_or(0, str::len) + 64;
                has_text |= text.is_some();
                texts.append_option(text);
            }
            if let (Some(name), Some(pages)) = (&columns.page, &mut pages) {
                let page = object.get_item(name)?.filter(|_| !has_text);
                let page = text_of(page.as_ref(), name, row)?;
                bytes += page.map_or(0, str::len);
                pages.append_option(page);
            }
            for columns in &mut others {
                columns.push(object, row)?;
            }
        } else {
            if others.iter().any(|columns| !columns.names.is_empty()) {
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
            let others = texts[1..].iter_mut().chain(&mut pages);
            others.for_each(LargeStringBuilder::append_null);
        }
    }
    let [ids, orders, categories, fields] = others.map(ListColumns::finish);
    Ok(Some(RowColumns {
        texts: texts
            .into_iter()
            .map(|mut texts| TextColumn::Large(texts.finish()))
            .collect(),
        pages: pages.map(|mut pages| TextColumn::Large(pages.finish())),
        ids: ids.into_iter().next(),
        orders: orders.into_iter().next(),
        categories: categories.into_iter().next(),
        fields,
    }))
}

/// Returns the text of a dict's value, or `None` if there is none.
fn text_of<'a>(
    value: Option<&'a Bound<'_, PyAny>>,
    name: &str,
    row: usize,
) -> Result<Option<&'a str>, CallError> {
    let text = value.filter(|value| !value.is_none());
    let text = text.map(|text| crate::texts::string(text, row));
    text.transpose()
        .map_err(|error| error.in_column(Some(name)))
}

/// Values of dicts as JSON, a column for each key.
struct ListColumns {
    names: Vec<String>,
    columns: Vec<LargeStringBuilder>,
}

impl ListColumns {
    fn of(names: Vec<String>) -> Self {
        Self {
            columns: names.iter().map(|_| LargeStringBuilder::new()).collect(),
            names,
        }
    }

    fn push(&mut self, object: &Bound<'_, PyDict>, row: usize) -> Result<(), CallError> {
        for (name, column) in self.names.iter().zip(&mut self.columns) {
            let value = object.get_item(name)?.filter(|value| !value.is_none());
            let json = value
                .as_ref()
                .map(|value| json_text(value, row).map_err(|error| error.in_column(Some(name))));
            column.append_option(json.transpose()?);
        }
        Ok(())
    }

    fn finish(self) -> Vec<FieldColumn> {
        let columns = self.columns.into_iter();
        columns
            .map(|mut column| FieldColumn::Json(TextColumn::Large(column.finish())))
            .collect()
    }
}

/// Returns a Python value as JSON.
fn json_text(value: &Bound<'_, PyAny>, row: usize) -> Result<String, CallError> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = crate::texts::string(text, row)?;
        return Ok(serde_json::Value::from(text).to_string());
    }
    // This covers most ids and ranks. Subclasses, such as `bool`, may be printed differently. Python does not print thousands of digits.
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(digits) = value.str()
    {
        return Ok(digits.to_string());
    }
    // The same function that writes rows for jobs over files, so that both have the same values.
    static JSON_TEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let written = JSON_TEXT.get_or_try_init(py, || {
        let module = py.import("lookalike._json")?;
        Ok::<_, PyErr>(module.getattr("json_text")?.unbind())
    })?;
    match written.call1(py, (value,)) {
        Ok(text) => Ok(text.extract(py)?),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
            Err(bad_row(row, &error.value(py).to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
