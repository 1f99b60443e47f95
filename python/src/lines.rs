//! Lines of files of results.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lookalike_corpus::{AtomicFile, OutputFormat};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{ArrowTable, read_parquet};
use crate::error::CallError;

/// Lines of a file that Zstandard compressed, one after another.
#[pyclass(frozen, module = "lookalike")]
pub(crate) struct ZstdLines {
    // The outer buffer holds what is unpacked, to look for line feeds in; the inner one is of the compressed
    // bytes.
    reader: Mutex<BufReader<zstd::Decoder<'static, BufReader<File>>>>,
    path: PathBuf,
}

impl ZstdLines {
    fn failed(path: &std::path::Path, error: &std::io::Error) -> CallError {
        CallError::Failed(format!("{}: {error}", path.display()))
    }
}

/// Makes a table of lines of JSON, one object each, by way of a file in `folder`.
#[pyfunction]
pub(crate) fn table_of_lines(
    py: Python<'_>,
    lines: &Bound<'_, PyAny>,
    folder: PathBuf,
) -> PyResult<ArrowTable> {
    let path = folder.join("table.parquet");
    let failed = |error: std::io::Error| CallError::Failed(error.to_string());
    // By way of a file, since the types of columns are inferred from all lines by the writer of results: a
    // table made here has the types that the same records have in results as Parquet.
    let mut table = AtomicFile::lines(&path, OutputFormat::Parquet, "").map_err(failed)?;
    for line in lines.try_iter()? {
        table
            .write_all(line?.cast::<PyBytes>()?.as_bytes())
            .map_err(failed)?;
    }
    py.detach(|| table.commit()).map_err(failed)?;
    read_parquet(py, path)
}

#[pymethods]
impl ZstdLines {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let opened = File::open(&path).and_then(zstd::Decoder::new);
        let reader = opened.map_err(|error| Self::failed(&path, &error))?;
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
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            // With its line feed, as Python's own files give lines. The end of the file is the one line without
            // a byte.
            reader.read_until(b'\n', &mut line)
        })
        .map_err(|error| Self::failed(&self.path, &error))?;
        Ok((!line.is_empty()).then(|| PyBytes::new(py, &line)))
    }
}
