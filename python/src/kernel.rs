//! Steps of a deduplication that is spread over many machines, on batches of Arrow data.
//!
//! Batches come from an engine that moves rows between machines: all columns are found by their names, and whatever a step takes for granted
//! is checked.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, LargeBinaryArray, StructArray,
};
use arrow_schema::DataType;
use lookalike_batch::kernel::{
    CheckedBytesError, ClassKey, DedupKernel, FeatureFrequency, FingerprintKey, FrequencyLevels,
    KernelDocument, KernelError, KernelMember, KernelWorker, KeyPlan, WorkEdge,
};
use lookalike_cli::program;
use lookalike_corpus::{Category, OrderField};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::array::ArrowTable;
use crate::capsule::ArrowProducer;
use crate::documents::{DocumentColumns, DocumentRows, column, rows_of_arrow};
use crate::error::{CallError, told, type_name};
use crate::texts::named;
use crate::work::run;

/// Steps of `lookalike dedup` for engines that spread a collection over many machines.
#[pyclass(frozen, name = "DedupKernel", module = "lookalike._lookalike")]
pub(crate) struct PyDedupKernel {
    words: Vec<OsString>,
    warnings: Vec<String>,
    kernel: DedupKernel,
    columns: DocumentColumns,
    worker: Mutex<KernelWorker>,
    plan: Mutex<Option<Arc<KeyPlan>>>,
}

impl From<KernelError> for CallError {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Settings(error) => error.into(),
            KernelError::NoLevels | KernelError::WholeRecords { .. } => Self::value(error),
            KernelError::RepeatedRank { .. }
            | KernelError::AgainstAfterOthers { .. }
            | KernelError::TooLarge { .. } => Self::bad_input(error),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<CheckedBytesError> for CallError {
    fn from(error: CheckedBytesError) -> Self {
        Self::bad_input(error)
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl PyDedupKernel {
    #[new]
    fn new(words: Vec<OsString>) -> PyResult<Self> {
        let job = program::dedup_kernel(&words);
        let kernel = job.done.map_err(CallError::from)?;
        let category = kernel.category();
        let columns = DocumentColumns {
            text: vec!["text".to_owned()],
            order: kernel.order_field().map(|_| "value".to_owned()),
            category: category.map(|_| "category".to_owned()),
            site: category == Some(&Category::Site),
            ..DocumentColumns::default()
        };
        Ok(Self {
            worker: Mutex::new(kernel.worker()),
            plan: Mutex::new(None),
            warnings: told(job.warnings),
            words,
            kernel,
            columns,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let words = PyList::new(slf.py(), &slf.get().words)?;
        let arguments = PyTuple::new(slf.py(), [words])?;
        PyTuple::new(slf.py(), [slf.get_type().into_any(), arguments.into_any()])
    }

    #[getter]
    fn words(&self) -> Vec<OsString> {
        self.words.clone()
    }

    /// Things to know about the words, a line each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    #[getter]
    fn method(&self) -> &'static str {
        self.kernel.settings().method.name()
    }

    /// Text of the scheme.
    #[getter]
    fn scheme(&self) -> String {
        self.kernel.settings().scheme.to_string()
    }

    /// The field whose values `scan` wants as `value`.
    #[getter]
    fn value_field(&self) -> Option<String> {
        let field = self.kernel.order_field().map(OrderField::path);
        field.map(ToString::to_string)
    }

    /// The field whose values are the categories.
    #[getter]
    fn category_field(&self) -> Option<String> {
        match self.kernel.category()? {
            Category::Site => Some("url".to_owned()),
            Category::Field(path) => Some(path.to_string()),
        }
    }

    /// True if `scan` wants a `position`.
    #[getter]
    fn needs_position(&self) -> bool {
        self.kernel.needs_position()
    }

    /// True if documents of one class are copies of its first.
    #[getter]
    fn copies_are_pairs(&self) -> bool {
        self.kernel.copies_are_pairs()
    }

    /// True unless copies are all there is to find.
    #[getter]
    fn finds_near(&self) -> bool {
        self.kernel.has_keys()
    }

    /// True if `prepare_keys` wants levels.
    #[getter]
    fn needs_levels(&self) -> bool {
        self.kernel.needs_levels()
    }

    /// Least resemblance of near-duplicates.
    #[getter]
    fn threshold(&self) -> f64 {
        self.kernel.threshold()
    }

    /// Columns of `keys`, in the words of Spark.
    #[getter]
    fn keys_schema(&self) -> &'static str {
        match self.kernel.needs_fingerprints() {
            true => "key long, rank long, size int, fingerprint binary",
            false => "key long, rank long, size int",
        }
    }

    /// Class and place in the order of survivors of each document.
    #[pyo3(signature = (batch, count=true))]
    fn scan(&self, batch: &Bound<'_, PyAny>, count: bool) -> PyResult<ArrowTable> {
        let tables = tables(batch)?;
        run(batch.py(), |_| {
            let mut scanned = ScannedColumns::default();
            for table in &tables {
                self.scan_table(table, count, &mut scanned)?;
            }
            scanned.table()
        })
    }

    /// Counts of features of all that this object scanned.
    fn frequencies<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| locked(&self.worker).frequency().to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Sum of counts.
    #[staticmethod]
    fn merge_frequencies<'py>(
        py: Python<'py>,
        parts: Vec<Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut sum = FeatureFrequency::new();
        for part in parts {
            sum.merge(&FeatureFrequency::from_bytes(part.as_bytes()).map_err(CallError::from)?);
        }
        Ok(PyBytes::new(py, &sum.to_bytes()))
    }

    /// Levels of counts.
    #[staticmethod]
    fn levels<'py>(py: Python<'py>, frequencies: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let frequency = FeatureFrequency::from_bytes(frequencies).map_err(CallError::from)?;
        Ok(PyBytes::new(py, &frequency.levels().to_bytes()))
    }

    /// Says what `keys` depends on.
    #[pyo3(signature = (classes, levels=None))]
    fn prepare_keys(&self, classes: u64, levels: Option<&[u8]>) -> PyResult<()> {
        let levels = levels.filter(|_| self.kernel.needs_levels());
        let levels = levels.map(FrequencyLevels::from_bytes).transpose();
        let plan = self
            .kernel
            .key_plan(classes, levels.map_err(CallError::from)?)
            .map_err(CallError::from)?;
        *locked(&self.plan) = Some(Arc::new(plan));
        Ok(())
    }

    /// Keys of each class.
    fn keys(&self, batch: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let unprepared =
            || CallError::Value("the keys were not prepared: call prepare_keys first".to_owned());
        let plan = locked(&self.plan).clone().ok_or_else(unprepared)?;
        let tables = tables(batch)?;
        run(batch.py(), |_| {
            let mut worker = locked(&self.worker);
            let mut keys = KeyColumns::default();
            let bytes = match self.kernel.settings().fingerprint_bits() {
                bits if bits > 64 => 16,
                _ => 8,
            };
            for table in &tables {
                let classes = ClassRows::of(table, &self.columns)?;
                for row in 0..table.len() {
                    worker.keys(&plan, classes.member(row), |key| keys.push(key, bytes))?;
                }
            }
            keys.table(self.kernel.needs_fingerprints())
        })
    }

    /// Edges of whole groups of keys.
    #[pyo3(
        signature = (batches, group_limit=Some(32)),
        text_signature = "($self, batches, group_limit=32)"
    )]
    fn work_edges(
        &self,
        batches: &Bound<'_, PyAny>,
        group_limit: Option<usize>,
    ) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let mut edges = EdgeColumns::default();
            match self.kernel.needs_fingerprints() {
                true => {
                    let mut keys = Vec::new();
                    for table in &tables {
                        let columns = FingerprintColumn::of(table)?;
                        for (row, class) in class_keys(table)?.enumerate() {
                            let fingerprint = columns.get(row)?;
                            keys.push(FingerprintKey { class, fingerprint });
                        }
                    }
                    self.kernel
                        .fingerprint_edges(keys, |edge| edges.push(&edge));
                }
                false => {
                    let mut keys = Vec::new();
                    for table in &tables {
                        keys.extend(class_keys(table)?);
                    }
                    self.kernel
                        .work_edges(keys, group_limit, |edge| edges.push(&edge));
                }
            }
            edges.table()
        })
    }

    /// Edges that counts and sizes do not rule out.
    fn promising(&self, batch: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batch)?;
        run(batch.py(), |_| {
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            for table in &tables {
                let [x, y, shared] = ["x", "y", "shared"].map(|name| longs(table, name));
                let (x, y, shared) = (x?, y?, shared?);
                let (size_x, size_y) = (ints(table, "size_x")?, ints(table, "size_y")?);
                for row in 0..table.len() {
                    let edge = WorkEdge {
                        x: x.value(row),
                        y: y.value(row),
                        size_x: size_x.value(row),
                        size_y: size_y.value(row),
                        shared: shared.value(row),
                    };
                    if self.kernel.is_promising(&edge) {
                        xs.push(edge.x);
                        ys.push(edge.y);
                    }
                }
            }
            ArrowTable::of(vec![
                ("x", Arc::new(Int64Array::from(xs))),
                ("y", Arc::new(Int64Array::from(ys))),
            ])
        })
    }

    /// Classes of whole components that join a survivor.
    fn settle(&self, batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |cancellation| {
            let mut worker = locked(&self.worker);
            let (mut ranks, mut survivors) = (Vec::new(), Vec::new());
            let (mut similarities, mut reasons) = (Float64Builder::new(), StringBuilder::new());
            self.for_each_component(&tables, |members| {
                if cancellation.is_cancelled() {
                    return Ok(());
                }
                for class in worker.settle(members)? {
                    ranks.push(class.rank);
                    survivors.push(class.survivor);
                    similarities.append_value(class.similarity);
                    reasons.append_value(if class.is_same_text { "exact" } else { "near" });
                }
                Ok(())
            })?;
            ArrowTable::of(vec![
                ("rank", Arc::new(Int64Array::from(ranks))),
                ("survivor", Arc::new(Int64Array::from(survivors))),
                ("similarity", Arc::new(similarities.finish())),
                ("reason", Arc::new(reasons.finish())),
            ])
        })
    }

    /// All pairs of classes of whole components that resemble each other.
    fn verify(&self, batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |cancellation| {
            let mut worker = locked(&self.worker);
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            let mut similarities = Float64Builder::new();
            self.for_each_component(&tables, |members| {
                if cancellation.is_cancelled() {
                    return Ok(());
                }
                Ok(worker.verify(members, |pair| {
                    xs.push(pair.x);
                    ys.push(pair.y);
                    similarities.append_value(pair.similarity);
                })?)
            })?;
            ArrowTable::of(vec![
                ("x", Arc::new(Int64Array::from(xs))),
                ("y", Arc::new(Int64Array::from(ys))),
                ("similarity", Arc::new(similarities.finish())),
            ])
        })
    }
}

impl PyDedupKernel {
    fn scan_table(
        &self,
        table: &StructArray,
        count: bool,
        scanned: &mut ScannedColumns,
    ) -> Result<(), CallError> {
        let columns = DocumentColumns {
            id: Some("id".to_owned()),
            ..self.columns.clone()
        };
        let rows = rows_of_arrow(&array(table), &columns)?;
        let against = truths(table, "against")?;
        let positions = match self.kernel.needs_position() {
            true => Some(longs(table, "position")?),
            false => None,
        };
        let mut worker = locked(&self.worker);
        for row in 0..table.len() {
            let given = rows.document(row, self.kernel.order_field());
            let Some(id) = given.id.as_deref() else {
                return Err(CallError::BadInput {
                    message: format!("row {row} has no id: every document needs one"),
                    row: Some(row),
                    source: Some("id".to_owned()),
                });
            };
            let document = KernelDocument {
                id,
                text: given.text.as_deref(),
                category: given.category.as_deref(),
                position: positions.as_ref().map_or(0, |column| column.value(row)),
                is_against: against.get(row),
                value: given.order_key,
            };
            let found = worker.scan(&document, count);
            scanned.ids.append_value(id);
            let hash = found.text_hash.map(u128::to_le_bytes);
            scanned.hashes.append_option(hash);
            scanned.orders.append_value(found.order);
            scanned.against.append_value(document.is_against);
        }
        Ok(())
    }

    /// Shows the members of each component.
    fn for_each_component(
        &self,
        tables: &[StructArray],
        mut visit: impl FnMut(&mut [KernelMember<'_>]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut batches = Vec::with_capacity(tables.len());
        let mut rows: Vec<(i64, usize, usize)> = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let components = longs(table, "component")?;
            rows.extend((0..table.len()).map(|row| (components.value(row), number, row)));
            batches.push(ClassRows::of(table, &self.columns)?);
        }
        rows.sort_unstable();
        let mut members = Vec::new();
        for component in rows.chunk_by(|a, b| a.0 == b.0) {
            members.clear();
            let all = component.iter();
            members.extend(all.map(|&(_, batch, row)| batches[batch].member(row)));
            visit(&mut members)?;
        }
        Ok(())
    }
}

/// All tables of an object with Arrow data, or of a list of such objects.
fn tables(data: &Bound<'_, PyAny>) -> Result<Vec<StructArray>, CallError> {
    let objects = match data.cast::<PyList>() {
        Ok(list) => list.iter().collect(),
        Err(_) => vec![data.clone()],
    };
    let mut tables = Vec::with_capacity(objects.len());
    for object in objects {
        let Some(mut producer) = ArrowProducer::of(&object)? else {
            return Err(CallError::Type(format!(
                "batches must be Arrow data, or a list of it, not {}",
                type_name(&object)
            )));
        };
        while let Some(array) = producer.next(data.py())? {
            let table = array.as_struct_opt().ok_or_else(|| {
                CallError::Type("the data is a column, not a table of named columns".to_owned())
            })?;
            tables.push(table.clone());
        }
    }
    Ok(tables)
}

fn array(table: &StructArray) -> ArrayRef {
    Arc::new(table.clone())
}

/// A column of a type in which no value is missing.
fn whole<'t>(
    table: &'t StructArray,
    name: &str,
    data_type: &DataType,
) -> Result<&'t ArrayRef, CallError> {
    let values = column(table, name)?;
    if values.data_type() != data_type {
        return Err(CallError::Type(format!(
            "the column {name:?} must be {}, not {}",
            named(data_type),
            named(values.data_type())
        )));
    }
    match (0..values.len()).find(|&row| values.is_null(row)) {
        None => Ok(values),
        Some(row) => Err(CallError::BadInput {
            message: format!("the column {name:?} has no value in row {row}: every row needs one"),
            row: Some(row),
            source: Some(name.to_owned()),
        }),
    }
}

fn longs(table: &StructArray, name: &str) -> Result<Int64Array, CallError> {
    let values = whole(table, name, &DataType::Int64)?;
    Ok(values.as_primitive::<Int64Type>().clone())
}

fn ints(table: &StructArray, name: &str) -> Result<Int32Array, CallError> {
    let values = whole(table, name, &DataType::Int32)?;
    Ok(values.as_primitive::<Int32Type>().clone())
}

/// A column of truths that may be missing, or have missing values: they are false.
struct TruthColumn(Option<ArrayRef>);

fn truths(table: &StructArray, name: &str) -> Result<TruthColumn, CallError> {
    match table.column_by_name(name) {
        None => Ok(TruthColumn(None)),
        Some(values) if values.data_type() == &DataType::Boolean => {
            Ok(TruthColumn(Some(values.clone())))
        }
        Some(other) => Err(CallError::Type(format!(
            "the column {name:?} must be bool, not {}",
            named(other.data_type())
        ))),
    }
}

impl TruthColumn {
    fn get(&self, row: usize) -> bool {
        let values = self.0.as_ref();
        values.is_some_and(|values| values.is_valid(row) && values.as_boolean().value(row))
    }
}

/// Classes with their texts.
struct ClassRows {
    ranks: Int64Array,
    rows: DocumentRows,
    against: TruthColumn,
}

impl ClassRows {
    fn of(table: &StructArray, columns: &DocumentColumns) -> Result<Self, CallError> {
        let columns = DocumentColumns {
            order: None,
            ..columns.clone()
        };
        Ok(Self {
            ranks: longs(table, "rank")?,
            rows: rows_of_arrow(&array(table), &columns)?,
            against: truths(table, "against")?,
        })
    }

    fn member(&self, row: usize) -> KernelMember<'_> {
        KernelMember {
            rank: self.ranks.value(row),
            text: self.rows.text(row).unwrap_or_default(),
            category: self.rows.category(row),
            is_against: self.against.get(row),
        }
    }
}

/// The keys of a table of them.
fn class_keys(table: &StructArray) -> Result<impl Iterator<Item = ClassKey>, CallError> {
    let (key, rank) = (longs(table, "key")?, longs(table, "rank")?);
    let size = ints(table, "size")?;
    Ok((0..table.len()).map(move |row| ClassKey {
        key: key.value(row) as u64,
        rank: rank.value(row),
        size: size.value(row),
    }))
}

/// Fingerprints, little-endian.
enum FingerprintColumn {
    Small(BinaryArray),
    Large(LargeBinaryArray),
}

impl FingerprintColumn {
    fn of(table: &StructArray) -> Result<Self, CallError> {
        let name = "fingerprint";
        match column(table, name)?.data_type() {
            DataType::LargeBinary => {
                let values = whole(table, name, &DataType::LargeBinary)?;
                Ok(Self::Large(values.as_binary().clone()))
            }
            _ => {
                let values = whole(table, name, &DataType::Binary)?;
                Ok(Self::Small(values.as_binary().clone()))
            }
        }
    }

    fn get(&self, row: usize) -> Result<u128, CallError> {
        let bytes = match self {
            Self::Small(values) => values.value(row),
            Self::Large(values) => values.value(row),
        };
        let mut whole = [0; 16];
        match bytes.len() {
            8 | 16 => whole[..bytes.len()].copy_from_slice(bytes),
            other => {
                return Err(CallError::BadInput {
                    message: format!(
                        "the fingerprint in row {row} has {other} bytes: hand over what keys made"
                    ),
                    row: Some(row),
                    source: Some("fingerprint".to_owned()),
                });
            }
        }
        Ok(u128::from_le_bytes(whole))
    }
}

#[derive(Default)]
struct ScannedColumns {
    ids: StringBuilder,
    hashes: BinaryBuilder,
    orders: BinaryBuilder,
    against: BooleanBuilder,
}

impl ScannedColumns {
    fn table(mut self) -> Result<ArrowTable, CallError> {
        ArrowTable::of(vec![
            ("id", Arc::new(self.ids.finish())),
            ("text_hash", Arc::new(self.hashes.finish())),
            ("order", Arc::new(self.orders.finish())),
            ("against", Arc::new(self.against.finish())),
        ])
    }
}

#[derive(Default)]
struct KeyColumns {
    keys: Vec<i64>,
    ranks: Vec<i64>,
    sizes: Vec<i32>,
    fingerprints: BinaryBuilder,
}

impl KeyColumns {
    /// Adds a key with so many bytes of its fingerprint.
    fn push(&mut self, key: FingerprintKey, bytes: usize) {
        self.keys.push(key.class.key as i64);
        self.ranks.push(key.class.rank);
        self.sizes.push(key.class.size);
        self.fingerprints
            .append_value(&key.fingerprint.to_le_bytes()[..bytes]);
    }

    fn table(mut self, with_fingerprints: bool) -> Result<ArrowTable, CallError> {
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("key", Arc::new(Int64Array::from(self.keys))),
            ("rank", Arc::new(Int64Array::from(self.ranks))),
            ("size", Arc::new(Int32Array::from(self.sizes))),
        ];
        if with_fingerprints {
            columns.push(("fingerprint", Arc::new(self.fingerprints.finish())));
        }
        ArrowTable::of(columns)
    }
}

#[derive(Default)]
struct EdgeColumns {
    x: Vec<i64>,
    y: Vec<i64>,
    size_x: Vec<i32>,
    size_y: Vec<i32>,
    shared: Vec<i64>,
}

impl EdgeColumns {
    fn push(&mut self, edge: &WorkEdge) {
        self.x.push(edge.x);
        self.y.push(edge.y);
        self.size_x.push(edge.size_x);
        self.size_y.push(edge.size_y);
        self.shared.push(edge.shared);
    }

    fn table(self) -> Result<ArrowTable, CallError> {
        ArrowTable::of(vec![
            ("x", Arc::new(Int64Array::from(self.x))),
            ("y", Arc::new(Int64Array::from(self.y))),
            ("size_x", Arc::new(Int32Array::from(self.size_x))),
            ("size_y", Arc::new(Int32Array::from(self.size_y))),
            ("shared", Arc::new(Int64Array::from(self.shared))),
        ])
    }
}
