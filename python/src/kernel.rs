//! The steps of a deduplication that is distributed over many machines, on batches of Arrow data.
//!
//! The batches come from an engine that moves rows between machines, so columns are found by name, and everything that a step relies on is
//! checked.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, LargeBinaryArray, StructArray,
};
use arrow_schema::DataType;
use lookalike_batch::kernel::{
    CheckedBytesError, ClassMembers, DedupKernel, DocumentPacker, FeatureFrequency,
    FrequencyLevels, KernelDocument, KernelError, KernelMember, KernelWorker, NodeComponent,
    PackedDocuments, connected_nodes, packed_components,
};
use lookalike_cli::program;
use lookalike_corpus::{Category, OrderField, OrderKey};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::array::ArrowTable;
use crate::capsule::ArrowProducer;
use crate::documents::{DocumentColumns, DocumentRows, column, rows_of_arrow};
use crate::error::{CallError, type_name, warnings_for_python};
use crate::texts::named;
use crate::work::{locked, run};

/// Number of bytes that are held before `pack` returns them.
const FLUSH_BYTES: usize = 32 << 20;

/// Steps of `lookalike dedup` for engines that spread a collection over many machines.
#[pyclass(frozen, name = "DedupKernel", module = "lookalike._lookalike")]
pub(crate) struct PyDedupKernel {
    // Kept for pickling: an engine sends the arguments to its workers, each of which builds its own kernel from them. So the state of
    // `prepare` and counts are not transferred.
    #[pyo3(get)]
    words: Vec<OsString>,
    /// Warnings about the options, one on each line.
    #[pyo3(get)]
    warnings: Vec<String>,
    kernel: DedupKernel,
    columns: DocumentColumns,
    worker: Mutex<KernelWorker>,
    packer: Mutex<Option<DocumentPacker>>,
    keep_counts: Mutex<KeepCounts>,
}

/// Values of new documents that the rule for survivors ranks last.
#[derive(Default)]
struct KeepCounts {
    missing: u64,
    unusable: u64,
    /// One of the unusable values with the reason: the smallest, so that it does not depend on the order of rows.
    example: Option<String>,
}

impl KeepCounts {
    fn add(&mut self, value: &OrderKey<'_>) {
        match value {
            OrderKey::Missing => self.missing += 1,
            OrderKey::Unusable(value) => {
                self.unusable += 1;
                // A value may be a whole array or object.
                let shown: String = value.json.chars().take(60).collect();
                let told = format!("{shown} is {}", value.reason);
                if self.example.as_ref().is_none_or(|known| told < *known) {
                    self.example = Some(told);
                }
            }
            OrderKey::Number(_) | OrderKey::Text(_) => {}
        }
    }
}

impl From<KernelError> for CallError {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Settings(error) => error.into(),
            // First, settings that the caller can change; then, data that a shuffle repeated, mixed up or truncated; the rest is the fault
            // of neither.
            KernelError::NoLevels | KernelError::WholeRecords { .. } => Self::value(error),
            KernelError::RepeatedRank { .. }
            | KernelError::AgainstAfterOthers { .. }
            | KernelError::CutOff { .. }
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
            packer: Mutex::new(None),
            keep_counts: Mutex::default(),
            warnings: warnings_for_python(job.warnings),
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

    /// Returns the text of the scheme.
    #[getter]
    fn scheme(&self) -> String {
        self.kernel.settings().scheme.to_string()
    }

    /// Returns the field whose values `pack` needs as `value`.
    #[getter]
    fn value_field(&self) -> Option<String> {
        let field = self.kernel.order_field().map(OrderField::path);
        field.map(ToString::to_string)
    }

    /// Returns the field whose values are the categories.
    #[getter]
    fn category_field(&self) -> Option<String> {
        match self.kernel.category()? {
            Category::Site => Some("url".to_owned()),
            Category::Field(path) => Some(path.to_string()),
        }
    }

    /// Returns true if `pack` needs a `position`.
    #[getter]
    fn needs_position(&self) -> bool {
        self.kernel.needs_position()
    }

    /// Returns true if the documents of a class count as copies of its first.
    #[getter]
    fn copies_are_pairs(&self) -> bool {
        self.kernel.copies_are_pairs()
    }

    /// Returns true unless only copies are to be found.
    #[getter]
    fn finds_near(&self) -> bool {
        self.kernel.has_keys()
    }

    /// Returns true if `prepare` needs levels.
    #[getter]
    fn needs_levels(&self) -> bool {
        self.kernel.needs_levels()
    }

    /// Returns the minimum resemblance of near-duplicates.
    #[getter]
    fn threshold(&self) -> f64 {
        self.kernel.threshold()
    }

    /// Counts the features of a sample, and returns their number.
    fn count(&self, batch: &Bound<'_, PyAny>) -> PyResult<u64> {
        let tables = tables(batch)?;
        run(batch.py(), |_| {
            let mut worker = locked(&self.worker);
            // The worker counts over all batches of a task, so only return the number of this batch.
            let before = worker.frequency().total();
            for table in &tables {
                self.for_each_document(table, |document| {
                    worker.scan(document, true);
                    Ok(())
                })?;
            }
            Ok(worker.frequency().total() - before)
        })
    }

    /// Returns the feature counts of everything that this object has counted.
    fn frequencies<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| locked(&self.worker).frequency().to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Adds up feature counts.
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

    /// Returns the levels of feature counts.
    #[staticmethod]
    fn levels<'py>(py: Python<'py>, frequencies: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let frequency = FeatureFrequency::from_bytes(frequencies).map_err(CallError::from)?;
        Ok(PyBytes::new(py, &frequency.levels().to_bytes()))
    }

    /// Sets what `pack` depends on.
    #[pyo3(signature = (documents, buckets, levels=None))]
    fn prepare(&self, documents: u64, buckets: u32, levels: Option<&[u8]>) -> PyResult<()> {
        let levels = levels.filter(|_| self.kernel.needs_levels());
        let levels = levels.map(FrequencyLevels::from_bytes).transpose();
        let plan = self
            .kernel
            .key_plan(documents, levels.map_err(CallError::from)?)
            .map_err(CallError::from)?;
        let packer = DocumentPacker::new(&self.kernel, plan, buckets.max(1));
        *locked(&self.packer) = Some(packer);
        Ok(())
    }

    /// Packs documents. Returns the packed rows if there are enough of them.
    fn pack(&self, batch: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batch)?;
        run(batch.py(), |_| {
            let mut packer = locked(&self.packer);
            let packer = packer.as_mut().ok_or_else(unprepared)?;
            let mut keep_counts = locked(&self.keep_counts);
            let counts_values = self.kernel.order_field().is_some();
            for table in &tables {
                self.for_each_document(table, |document| {
                    if counts_values && !document.is_against {
                        keep_counts.add(&document.value);
                    }
                    Ok(packer.add(document)?)
                })?;
            }
            // Few large blocks: each row of the result is the share of one bucket, and a shuffle has a cost for every row.
            let rows = match packer.pending_bytes() > FLUSH_BYTES {
                true => packer.take(),
                false => Vec::new(),
            };
            packed_table(&rows)
        })
    }

    /// Returns the rows that are still packed.
    fn packed(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        run(py, |_| {
            let mut packer = locked(&self.packer);
            packed_table(&packer.as_mut().ok_or_else(unprepared)?.take())
        })
    }

    /// Returns how many of the new documents packed so far have no value for the rule for survivors, how many have one that it cannot use,
    /// and one of the latter.
    #[getter]
    fn keep_counts(&self) -> (u64, u64, Option<String>) {
        let counts = locked(&self.keep_counts);
        (counts.missing, counts.unusable, counts.example.clone())
    }

    /// Groups complete buckets of packed documents.
    #[pyo3(
        signature = (batches, buckets, group_limit=Some(32)),
        text_signature = "($self, batches, buckets, group_limit=32)"
    )]
    fn group(
        &self,
        batches: &Bound<'_, PyAny>,
        buckets: u32,
        group_limit: Option<usize>,
    ) -> PyResult<(ArrowTable, u64, u64, u64, u64)> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let mut parts = Vec::new();
            for table in &tables {
                let buckets = whole(table, "bucket", &DataType::Int32)?;
                let columns = [
                    PayloadColumn::of(table, "classes")?,
                    PayloadColumn::of(table, "ids")?,
                    PayloadColumn::of(table, "keys")?,
                ];
                parts.push((buckets.as_primitive::<Int32Type>().clone(), columns));
            }
            // The same row of the three columns is one block, so they are read together, never column by column.
            let rows = parts.iter().flat_map(|(buckets, columns)| {
                let bytes = move |row| [0, 1, 2].map(|at| columns[at].get(row));
                (0..buckets.len()).map(move |row| (buckets.value(row) as u32, bytes(row)))
            });
            let found = self.kernel.group(rows, buckets.max(1), group_limit)?;
            let edges = bucket_table("edges", &found.edges)?;
            Ok((
                edges,
                found.edge_count,
                found.documents,
                found.texts,
                found.repeated,
            ))
        })
    }

    /// Returns the edges that counts and sizes do not rule out.
    fn promising(&self, batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let columns = payloads(&tables, "edges")?;
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            self.kernel.promising(rows_of(&columns), |edge| {
                xs.push(edge.x);
                ys.push(edge.y);
            })?;
            ArrowTable::of(vec![
                ("x", Arc::new(Int64Array::from(xs))),
                ("y", Arc::new(Int64Array::from(ys))),
            ])
        })
    }

    /// Returns the component of each node of the edges.
    #[staticmethod]
    fn connected(batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let mut edges = Vec::new();
            for table in &tables {
                let (x, y) = (longs(table, "x")?, longs(table, "y")?);
                edges.extend((0..table.len()).map(|row| [x.value(row), y.value(row)]));
            }
            let found = connected_nodes(&edges)?;
            let nodes: Vec<i64> = found.iter().map(|row| row.node).collect();
            let components: Vec<i64> = found.iter().map(|row| row.component).collect();
            ArrowTable::of(vec![
                ("node", Arc::new(Int64Array::from(nodes))),
                ("component", Arc::new(Int64Array::from(components))),
            ])
        })
    }

    /// Packs components for the buckets of their nodes.
    #[staticmethod]
    fn pack_components(batches: &Bound<'_, PyAny>, buckets: u32) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let mut rows = Vec::new();
            for table in &tables {
                let (node, component) = (longs(table, "node")?, longs(table, "component")?);
                rows.extend((0..table.len()).map(|row| NodeComponent {
                    node: node.value(row),
                    component: component.value(row),
                }));
            }
            bucket_table("components", &packed_components(rows, buckets.max(1)))
        })
    }

    /// Returns the classes of complete buckets that are in a component or have copies, with these copies.
    fn members(&self, batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |_| {
            let classes = payloads(&tables, "classes")?;
            let components = payloads(&tables, "components")?;
            let mut found = MemberColumns::default();
            let visit = |row: ClassMembers<'_>| found.push(&row);
            self.kernel
                .members(rows_of(&classes), rows_of(&components), visit)?;
            found.table()
        })
    }

    /// Returns the classes of complete components that join a survivor.
    fn settle(&self, batches: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let tables = tables(batches)?;
        run(batches.py(), |cancellation| {
            let mut worker = locked(&self.worker);
            let (mut ranks, mut survivors) = (Vec::new(), Vec::new());
            let (mut similarities, mut reasons) = (Float64Builder::new(), StringBuilder::new());
            self.for_each_component(&tables, |members| {
                // Skip the rest without doing work. The result is dropped, because `run` raises the exception that cancelled it.
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
    /// Visits the documents of a table.
    fn for_each_document(
        &self,
        table: &StructArray,
        mut visit: impl FnMut(&KernelDocument<'_>) -> Result<(), CallError>,
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
        for row in 0..table.len() {
            let given = rows.document(row, self.kernel.order_field());
            let Some(id) = given.id.as_deref() else {
                return Err(CallError::BadInput {
                    message: format!("row {row} has no id: every document needs one"),
                    row: Some(row),
                    source: Some("id".to_owned()),
                });
            };
            visit(&KernelDocument {
                id,
                text: given.text.as_deref(),
                category: given.category.as_deref(),
                position: positions.as_ref().map_or(0, |column| column.value(row)),
                is_against: against.get(row),
                value: given.order_key,
            })?;
        }
        Ok(())
    }

    /// Visits the members of each component.
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
        // A shuffle delivers the rows of a component in any order and in several batches. Sorting makes each component contiguous; the
        // worker orders its members by rank.
        rows.sort_unstable();
        let mut members = Vec::new();
        for component in rows.chunk_by(|a, b| a.0 == b.0) {
            // A single buffer for all components, most of which have two members.
            members.clear();
            let all = component.iter();
            members.extend(all.map(|&(_, batch, row)| batches[batch].member(row)));
            visit(&mut members)?;
        }
        Ok(())
    }
}

/// Reads all tables of an object with Arrow data, or of a list of such objects.
pub(crate) fn tables(data: &Bound<'_, PyAny>) -> Result<Vec<StructArray>, CallError> {
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

pub(crate) fn array(table: &StructArray) -> ArrayRef {
    Arc::new(table.clone())
}

/// Returns a column of a given type in which no value is missing.
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

/// A column of booleans that may be missing or have missing values, which count as false.
struct BoolColumn(Option<ArrayRef>);

fn truths(table: &StructArray, name: &str) -> Result<BoolColumn, CallError> {
    match table.column_by_name(name) {
        // Usually there are no documents that others are only compared with, and engines then leave the column out.
        None => Ok(BoolColumn(None)),
        Some(values) if values.data_type() == &DataType::Boolean => {
            Ok(BoolColumn(Some(values.clone())))
        }
        Some(other) => Err(CallError::Type(format!(
            "the column {name:?} must be bool, not {}",
            named(other.data_type())
        ))),
    }
}

impl BoolColumn {
    fn get(&self, row: usize) -> bool {
        let values = self.0.as_ref();
        values.is_some_and(|values| values.is_valid(row) && values.as_boolean().value(row))
    }
}

/// Classes with their texts.
struct ClassRows {
    ranks: Int64Array,
    rows: DocumentRows,
    against: BoolColumn,
}

impl ClassRows {
    fn of(table: &StructArray, columns: &DocumentColumns) -> Result<Self, CallError> {
        let columns = DocumentColumns {
            // Ranks already express the order.
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

fn unprepared() -> CallError {
    CallError::Value("nothing was prepared: call prepare first".to_owned())
}

/// A column of packed rows. A missing value has no rows.
enum PayloadColumn {
    Small(BinaryArray),
    Large(LargeBinaryArray),
}

impl PayloadColumn {
    fn of(table: &StructArray, name: &str) -> Result<Self, CallError> {
        let values = column(table, name)?;
        match values.data_type() {
            DataType::Binary => Ok(Self::Small(values.as_binary().clone())),
            DataType::LargeBinary => Ok(Self::Large(values.as_binary().clone())),
            other => Err(CallError::Type(format!(
                "the column {name:?} must be binary, not {}",
                named(other)
            ))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Small(values) => values.len(),
            Self::Large(values) => values.len(),
        }
    }

    fn get(&self, row: usize) -> &[u8] {
        let (is_there, bytes) = match self {
            Self::Small(values) => (values.is_valid(row), values.value(row)),
            Self::Large(values) => (values.is_valid(row), values.value(row)),
        };
        // Rows of two kinds come in one table, as a union makes it: each has nulls in the columns of the other kind.
        if is_there { bytes } else { &[] }
    }
}

fn payloads(tables: &[StructArray], name: &str) -> Result<Vec<PayloadColumn>, CallError> {
    let columns = tables.iter().map(|table| PayloadColumn::of(table, name));
    columns.collect()
}

fn rows_of(columns: &[PayloadColumn]) -> impl Iterator<Item = &[u8]> {
    let rows = |column| (0..PayloadColumn::len(column)).map(move |row| column.get(row));
    columns.iter().flat_map(rows)
}

/// Returns a table of packed rows by bucket.
fn bucket_table(name: &str, rows: &[(u32, Vec<u8>)]) -> Result<ArrowTable, CallError> {
    // Signed, because Spark has no unsigned integers.
    let buckets: Vec<i32> = rows.iter().map(|(bucket, _)| *bucket as i32).collect();
    // A large column, because the blocks of a batch may exceed 2 GiB together, the limit of 32-bit offsets.
    let bytes = LargeBinaryArray::from_iter_values(rows.iter().map(|(_, rows)| rows));
    ArrowTable::of(vec![
        ("bucket", Arc::new(Int32Array::from(buckets))),
        (name, Arc::new(bytes)),
    ])
}

fn packed_table(rows: &[PackedDocuments]) -> Result<ArrowTable, CallError> {
    let buckets: Vec<i32> = rows.iter().map(|row| row.bucket as i32).collect();
    let bytes = |of: fn(&PackedDocuments) -> &[u8]| -> ArrayRef {
        Arc::new(LargeBinaryArray::from_iter_values(rows.iter().map(of)))
    };
    ArrowTable::of(vec![
        ("bucket", Arc::new(Int32Array::from(buckets))),
        ("classes", bytes(|row| &row.classes)),
        ("ids", bytes(|row| &row.ids)),
        ("keys", bytes(|row| &row.keys)),
    ])
}

/// Number of bytes of ids and orders at which a batch of members ends, far below the 2 GiB of a column with 32-bit offsets.
const MEMBER_BYTES: usize = 64 << 20;

#[derive(Default)]
struct MemberColumns {
    /// Complete batches.
    batches: Vec<Vec<(&'static str, ArrayRef)>>,
    /// Number of bytes in the columns, which become the next batch.
    bytes: usize,
    components: Int64Builder,
    orders: BinaryBuilder,
    ids: StringBuilder,
    against: BooleanBuilder,
    copies: ListBuilder<StringBuilder>,
    are_against: BooleanBuilder,
}

impl MemberColumns {
    fn push(&mut self, row: &ClassMembers<'_>) {
        self.components.append_option(row.component);
        self.orders.append_value(row.order);
        self.ids.append_value(row.id);
        self.against.append_value(row.is_against);
        self.bytes += row.order.len() + row.id.len();
        for &id in &row.copies {
            self.copies.values().append_value(id);
            self.bytes += id.len();
        }
        self.copies.append(!row.copies.is_empty());
        self.are_against.append_value(row.copies_are_against);
        if self.bytes >= MEMBER_BYTES {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        self.bytes = 0;
        self.batches.push(vec![
            ("component", Arc::new(self.components.finish())),
            ("order", Arc::new(self.orders.finish())),
            ("id", Arc::new(self.ids.finish())),
            ("against", Arc::new(self.against.finish())),
            ("copies", Arc::new(self.copies.finish())),
            ("are_against", Arc::new(self.are_against.finish())),
        ]);
    }

    fn table(mut self) -> Result<ArrowTable, CallError> {
        self.end_batch();
        let tables = self.batches.into_iter().map(ArrowTable::of);
        ArrowTable::joined(tables.collect::<Result<_, _>>()?)
    }
}
