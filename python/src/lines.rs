//! Lines of result files.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use lookalike_corpus::{AtomicFile, OutputFormat, cell_json, row_line};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{ArrowTable, read_parquet};
use crate::capsule::ArrowProducer;
use crate::documents::no_id;
use crate::error::CallError;
use crate::work::locked;

/// Lines of a file that Zstandard compressed, one after another.
#[pyclass(frozen, module = "lookalike")]
pub(crate) struct ZstdLines {
    // The outer buffer holds decompressed bytes, in which line feeds are searched; the inner one holds compressed bytes.
    reader: Mutex<BufReader<zstd::Decoder<'static, BufReader<File>>>>,
    path: PathBuf,
}

/// Makes a table from lines of JSON, one object each, by way of a file in `folder`.
#[pyfunction]
pub(crate) fn table_of_lines(
    py: Python<'_>,
    lines: &Bound<'_, PyAny>,
    folder: PathBuf,
) -> PyResult<ArrowTable> {
    let path = folder.join("table.parquet");
    let failed = |error: std::io::Error| CallError::of_path(&path, error);
    // By way of a file, because the writer of results infers the types of columns from all lines. So the table has the same types as the
    // same records in results in Parquet format.
    let mut table = AtomicFile::lines(&path, OutputFormat::Parquet, "").map_err(failed)?;
    for line in lines.try_iter()? {
        table
            .write_all(line?.cast::<PyBytes>()?.as_bytes())
            .map_err(failed)?;
    }
    py.detach(|| table.commit()).map_err(failed)?;
    read_parquet(py, path)
}

/// Writes the rows of a table to a file as lines of JSON, in the form in which the command reads the same rows from Parquet. Returns the number of
/// rows with a value that JSON cannot represent, which became null.
///
/// # Errors
/// [`CallError::BadInput`] for rows without a value in the column `id`.
#[pyfunction]
#[pyo3(signature = (rows, path, id=None))]
pub(crate) fn write_lines(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    path: PathBuf,
    id: Option<&str>,
) -> PyResult<u64> {
    let failed = |error: std::io::Error| CallError::of_path(&path, error);
    let mut producer = ArrowProducer::required(rows)?;
    let DataType::Struct(fields) = producer.field.data_type() else {
        return Err(CallError::Type("the data is a column, not a table".to_owned()).into());
    };
    let schema = Arc::new(Schema::new(fields.clone()));
    let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
    let (mut first, mut lost) = (0, 0);
    while let Some(array) = producer.next(py)? {
        let columns = array.as_struct().columns().to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
        let batch = batch.map_err(CallError::bad_input)?;
        lost += py.detach(|| write_batch(&mut file, &batch, id, first, &failed))?;
        first += batch.num_rows();
        py.check_signals()?;
    }
    file.flush().map_err(failed)?;
    Ok(lost)
}

/// Writes the rows of a batch, and returns the number of those with a value that became null.
fn write_batch(
    file: &mut impl Write,
    batch: &RecordBatch,
    id: Option<&str>,
    first: usize,
    failed: &(impl Fn(std::io::Error) -> CallError + Sync),
) -> Result<u64, CallError> {
    let mut lost = 0;
    let ids = id.and_then(|name| batch.schema_ref().column_with_name(name));
    for row in 0..batch.num_rows() {
        if let Some((at, field)) = ids
            && matches!(
                cell_json(field, batch.column(at), row).as_deref(),
                Ok("null") | Err(_)
            )
        {
            return Err(no_id(first + row, id));
        }
        let (mut line, has_lost) = row_line(batch, row);
        lost += u64::from(has_lost);
        line.push(b'\n');
        file.write_all(&line).map_err(failed)?;
    }
    Ok(lost)
}

#[pymethods]
impl ZstdLines {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let opened = File::open(&path).and_then(zstd::Decoder::new);
        let reader = opened.map_err(|error| CallError::of_path(&path, error))?;
        Ok(Self {
            reader: Mutex::new(BufReader::new(reader)),
            path,
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut line = Vec::new();
        py.detach(|| {
            // Includes the line feed, like lines of Python's own files. Only the end of the file gives a line without any byte.
            locked(&self.reader).read_until(b'\n', &mut line)
        })
        .map_err(|error| CallError::of_path(&self.path, error))?;
        Ok((!line.is_empty()).then(|| PyBytes::new(py, &line)))
    }
}
