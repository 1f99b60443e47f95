//! The extension module of the Python package `lookalike`.
//!
//! The package around it is written in Python: `lookalike/__init__.py` exports what users see. This module has the functions that need the
//! engine:
//!
//! - `capsule` takes Arrow data from Python, checks it, and exports Arrow data; all `unsafe` code is there;
//! - `texts`, `codes`, `array` and `pickled` are Arrow columns as the engine reads and creates them;
//! - `work` runs the engine on separate threads, while the calling thread handles Ctrl-C;
//! - `error` turns errors into the exceptions of `lookalike/_errors.py`;
//! - the other modules have the functions of the package: `sketches`, `scheme`, `index`, `join`, `html`, `jobs`, `lines`, `decisions` with
//!   `documents`; `minwise` is for `lookalike.compat.datasketch`, and `kernel` and `chunks` are for engines such as Spark.

mod array;
mod capsule;
mod chunks;
mod codes;
mod decisions;
mod documents;
mod error;
mod html;
mod index;
mod jobs;
mod join;
mod kernel;
mod lines;
mod minwise;
mod pickled;
mod preset;
mod room;
mod scheme;
mod sketches;
mod texts;
mod value;
mod whole;
mod work;

use std::ffi::OsString;
use std::io::Write;

use pyo3::prelude::*;

/// Runs the command with these arguments, the name of the program first, and returns its exit status.
///
/// The command handles signals and writes to standard output as usual.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    // Report panics of the command as the program does. The command is alone in the process, so nobody else sets panic hooks meanwhile.
    let silent = std::panic::take_hook();
    // Detached, because the command may run for hours, and other threads of the interpreter must not be blocked.
    let status = py.detach(|| lookalike_cli::run(words));
    std::panic::set_hook(silent);
    status
}

/// The engine of the package `lookalike`; use that.
#[pymodule(gil_used = false)]
fn _lookalike(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Panics become exceptions (see `work`), except those that end the process, which must say why.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        let is_last = ["unsafe precondition", "cannot unwind", "during cleanup"];
        if is_last.iter().any(|words| text.contains(words)) {
            let _ = writeln!(std::io::stderr(), "{panic}");
        }
    }));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<array::ArrowArray>()?;
    module.add_class::<array::ArrowTable>()?;
    module.add_class::<scheme::PyScheme>()?;
    module.add_class::<index::PyIndex>()?;
    module.add_class::<decisions::DocumentDecisions>()?;
    module.add_class::<kernel::PyDedupKernel>()?;
    module.add_class::<chunks::PyTextChunks>()?;
    module.add_class::<minwise::MinwisePermutations>()?;
    module.add_class::<lines::ZstdLines>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(sketches::simhash, module)?)?;
    module.add_function(wrap_pyfunction!(sketches::minhash, module)?)?;
    module.add_function(wrap_pyfunction!(sketches::features, module)?)?;
    module.add_function(wrap_pyfunction!(sketches::resemblance, module)?)?;
    module.add_function(wrap_pyfunction!(join::join, module)?)?;
    module.add_function(wrap_pyfunction!(preset::preset_distance, module)?)?;
    module.add_function(wrap_pyfunction!(html::extract, module)?)?;
    module.add_function(wrap_pyfunction!(html::decode_html, module)?)?;
    module.add_function(wrap_pyfunction!(array::table, module)?)?;
    module.add_function(wrap_pyfunction!(array::read_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(pickled::table_of_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(pickled::array_of_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(lines::table_of_lines, module)?)?;
    module.add_function(wrap_pyfunction!(lines::write_lines, module)?)?;
    module.add_function(wrap_pyfunction!(array::concat_tables, module)?)?;
    module.add_function(wrap_pyfunction!(decisions::dedup_documents, module)?)?;
    module.add_function(wrap_pyfunction!(decisions::explain_documents, module)?)?;
    module.add_function(wrap_pyfunction!(decisions::open_decisions, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::copy_results, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::dedup_paths, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::explain, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::explain_paths, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::object_urls, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::run_job, module)?)?;
    Ok(())
}
