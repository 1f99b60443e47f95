//! Chunks of texts for engines that count which documents share them.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{BinaryBuilder, Int64Builder, ListBuilder};
use arrow_array::{Array as _, Int32Array, StringArray};
use lookalike_batch::overlap::{ExactCopies, TextChunks};
use lookalike_cli::program;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::ArrowTable;
use crate::documents::{DocumentColumns, rows_of_arrow};
use crate::error::{CallError, warnings_for_python};
use crate::kernel::{array, tables};
use crate::work::{locked, run};

/// Chunks of texts by the options of `lookalike overlap`.
#[pyclass(frozen, name = "TextChunks", module = "lookalike._lookalike")]
pub(crate) struct PyTextChunks {
    #[pyo3(get)]
    words: Vec<OsString>,
    /// Warnings about the options, one on each line.
    #[pyo3(get)]
    warnings: Vec<String>,
    chunks: Mutex<SeenChunks>,
}

/// Maximum number of texts that are remembered, which takes about 40 MB. Chunks of later copies are returned again, which only gives the
/// job a row to drop.
const MAX_REMEMBERED: usize = 1 << 20;

struct SeenChunks {
    texts: TextChunks,
    /// Hashes of texts whose chunks were returned recently.
    seen: HashSet<u128>,
}

#[pymethods]
impl PyTextChunks {
    #[new]
    fn new(words: Vec<OsString>) -> PyResult<Self> {
        let job = program::text_chunks(&words);
        let texts = job.done.map_err(CallError::from)?;
        let seen = HashSet::new();
        Ok(Self {
            chunks: Mutex::new(SeenChunks { texts, seen }),
            warnings: warnings_for_python(job.warnings),
            words,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let words = PyList::new(slf.py(), &slf.get().words)?;
        let arguments = PyTuple::new(slf.py(), [words])?;
        PyTuple::new(slf.py(), [slf.get_type().into_any(), arguments.into_any()])
    }

    /// Name of each chunking, and the least number of shared chunks.
    #[getter]
    fn chunkings(&self) -> Vec<(String, u32)> {
        let chunks = locked(&self.chunks);
        let settings = chunks.texts.settings();
        let named = settings.chunkings.iter().enumerate();
        named
            .map(|(at, chunking)| (chunking.to_string(), settings.least(at)))
            .collect()
    }

    /// True if every pair of equal texts has its row.
    #[getter]
    fn lists_copies(&self) -> bool {
        locked(&self.chunks).texts.settings().copies == ExactCopies::Listed
    }

    /// Returns the minimum share of the smaller text's chunks.
    #[getter]
    fn min_containment(&self) -> f64 {
        locked(&self.chunks).texts.settings().min_containment
    }

    /// Returns the text hashes of documents, and the chunks of texts that are new, as far as they are remembered.
    fn chunk(&self, batch: &Bound<'_, PyAny>) -> PyResult<(ArrowTable, ArrowTable)> {
        let tables = tables(batch)?;
        let columns = DocumentColumns {
            text: vec!["text".to_owned()],
            id: Some("id".to_owned()),
            ..DocumentColumns::default()
        };
        run(batch.py(), |_| {
            // Locked for the whole batch: the chunker holds the sets of one text at a time, and `push` reads them from it.
            let mut chunks = locked(&self.chunks);
            let SeenChunks { texts, seen } = &mut *chunks;
            let (mut ids, mut units) = (Vec::new(), BinaryBuilder::new());
            let mut sets = SetColumns::default();
            for table in &tables {
                let rows = rows_of_arrow(&array(table), &columns)?;
                for row in 0..table.len() {
                    let document = rows.document(row, None);
                    let hash = document.text.as_deref().and_then(|text| texts.chunk(text));
                    ids.push(document.id.map(|id| id.into_owned()));
                    // Hash of the text, by which the engine joins documents with the sets of their text. It is the same on every machine.
                    units.append_option(hash.map(u128::to_le_bytes));
                    if seen.len() == MAX_REMEMBERED {
                        seen.clear();
                    }
                    if let Some(hash) = hash.filter(|hash| seen.insert(*hash)) {
                        sets.push(hash, texts);
                    }
                }
            }
            let documents = ArrowTable::of(vec![
                ("id", Arc::new(StringArray::from(ids))),
                ("unit", Arc::new(units.finish())),
            ])?;
            Ok((documents, sets.table()?))
        })
    }
}

#[derive(Default)]
struct SetColumns {
    units: BinaryBuilder,
    chunkings: Vec<i32>,
    sets: ListBuilder<Int64Builder>,
}

impl SetColumns {
    /// Adds the chunk sets of the text that was chunked last.
    fn push(&mut self, hash: u128, texts: &TextChunks) {
        for chunking in 0..texts.settings().chunkings.len() {
            let set = texts.set(chunking);
            if set.is_empty() {
                continue;
            }
            self.units.append_value(hash.to_le_bytes());
            self.chunkings.push(chunking as i32);
            set.iter()
                .for_each(|&chunk| self.sets.values().append_value(chunk as i64));
            self.sets.append(true);
        }
    }

    fn table(mut self) -> Result<ArrowTable, CallError> {
        ArrowTable::of(vec![
            ("unit", Arc::new(self.units.finish())),
            ("chunking", Arc::new(Int32Array::from(self.chunkings))),
            ("chunks", Arc::new(self.sets.finish())),
        ])
    }
}
