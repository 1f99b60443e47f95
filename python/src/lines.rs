//! Lines of compressed files of results.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::CallError;

/// Lines of a file that Zstandard compressed, one after another.
#[pyclass(frozen, module = "lookalike")]
pub(crate) struct ZstdLines {
    reader: Mutex<BufReader<zstd::Decoder<'static, BufReader<File>>>>,
    path: PathBuf,
}

impl ZstdLines {
    fn failed(path: &std::path::Path, error: &std::io::Error) -> CallError {
        CallError::Failed(format!("{}: {error}", path.display()))
    }
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
            reader.read_until(b'\n', &mut line)
        })
        .map_err(|error| Self::failed(&self.path, &error))?;
        Ok((!line.is_empty()).then(|| PyBytes::new(py, &line)))
    }
}
