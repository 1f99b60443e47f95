//! Conversion of the engine's errors to the exceptions that users catch.

use std::path::Path;

use lookalike::SchemeMismatch;
use lookalike_batch::{BatchError, CollectionError};
use lookalike_cli::{Failure, OptionStyle};
use lookalike_corpus::{InputError, ReadError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// The reason why a call has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// A value has the wrong type.
    Type(String),
    /// An argument is invalid.
    Value(String),
    /// Data cannot be read.
    BadInput {
        /// Fault and remedy.
        message: String,
        /// Row of the fault, if known.
        row: Option<usize>,
        /// File or column of the fault, if known.
        source: Option<String>,
    },
    /// Values were made with different schemes.
    SchemeMismatch(String),
    /// The memory limit is too low.
    MemoryLimit {
        /// Consumer, limit and remedy.
        message: String,
        /// Lowest sufficient limit in bytes.
        needed: Option<u64>,
    },
    /// Anything else that goes wrong with files or results.
    Failed(String),
    /// An exception of the caller's own code, or Ctrl-C.
    Raised(PyErr),
}

impl CallError {
    /// Creates the error for data that cannot be read in an unknown row, for `map_err`.
    pub(crate) fn bad_input(error: impl std::fmt::Display) -> Self {
        Self::BadInput {
            message: error.to_string(),
            row: None,
            source: None,
        }
    }

    /// Creates the error for an invalid argument, for `map_err`.
    pub(crate) fn value(error: impl std::fmt::Display) -> Self {
        Self::Value(error.to_string())
    }

    /// Creates the error for a file that cannot be read or written.
    pub(crate) fn of_path(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }

    /// Adds the name of the column to the error.
    pub(crate) fn in_column(self, column: Option<&str>) -> Self {
        match (self, column) {
            (
                Self::BadInput {
                    message,
                    row,
                    source: None,
                },
                Some(column),
            ) => Self::BadInput {
                message: format!("{message} (column {column:?})"),
                row,
                source: Some(column.to_owned()),
            },
            (Self::Type(message), Some(column)) => Self::Type(match message.split_once(": ") {
                Some((fault, remedy)) => format!("{fault} (column {column:?}): {remedy}"),
                None => format!("{message} (column {column:?})"),
            }),
            (error, _) => error,
        }
    }
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<SchemeMismatch> for CallError {
    fn from(error: SchemeMismatch) -> Self {
        Self::SchemeMismatch(error.to_string())
    }
}

impl From<BatchError> for CallError {
    fn from(error: BatchError) -> Self {
        // The command adds the remedy.
        Failure::Job(error).into()
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        // Remedies are already in terms of Python; other messages of the command may name options.
        let message = in_python(&failure.text_in(OptionStyle::Keyword));
        match failure {
            Failure::Job(error) => of_job(&error, message),
            Failure::Usage(_) => Self::Value(message),
            _ => Self::Failed(message),
        }
    }
}

fn of_job(error: &BatchError, message: String) -> CallError {
    match *error {
        BatchError::Memory { least, .. } | BatchError::LongDocuments { least, .. } => {
            memory_limit(message, least)
        }
        BatchError::JoinMemory { least, .. }
        | BatchError::SelfJoinMemory { least, .. }
        // These errors give sizes in MiB.
        | BatchError::IndexMemory { least, .. } => memory_limit(message, least << 20),
        BatchError::Settings(_) => CallError::Value(message),
        BatchError::Collection(CollectionError::Settings { .. }) => {
            CallError::SchemeMismatch(message)
        }
        BatchError::Input(ref error) => of_file(input_name(error), message),
        BatchError::Read(ReadError::Io { ref name, .. } | ReadError::Changed { ref name }) => {
            of_file(Some(name), message)
        }
        BatchError::Given(_)
        | BatchError::Read(_)
        | BatchError::RepeatedId { .. }
        | BatchError::Strict(_)
        | BatchError::Losses { .. }
        | BatchError::NoText { .. }
        | BatchError::NoField { .. }
        | BatchError::NoUsableValue { .. } => CallError::bad_input(message),
        _ => CallError::Failed(message),
    }
}

/// Creates the error for data that cannot be read, with the name of a file or other input.
fn of_file(name: Option<&str>, message: String) -> CallError {
    CallError::BadInput {
        message,
        row: None,
        source: name.map(str::to_owned),
    }
}

/// Returns the input as it was named, or the file among several that the name stands for.
fn input_name(error: &InputError) -> Option<&str> {
    match error {
        InputError::NotFound { name }
        | InputError::NoMatch { name }
        | InputError::Pattern { name, .. }
        | InputError::Empty { name, .. }
        | InputError::Unsupported { name, .. }
        | InputError::Remote { name, .. }
        | InputError::Copy { name, .. }
        | InputError::NotAFile { name, .. }
        | InputError::Io { name, .. } => Some(name),
        _ => None,
    }
}

fn memory_limit(message: String, needed: u64) -> CallError {
    CallError::MemoryLimit {
        message,
        needed: Some(needed),
    }
}

impl From<CallError> for PyErr {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Type(message) => PyTypeError::new_err(message),
            CallError::Value(message) => PyValueError::new_err(message),
            CallError::Raised(error) => error,
            other => Python::attach(|py| exception(py, other).unwrap_or_else(|error| error)),
        }
    }
}

/// Creates an exception of the package.
fn exception(py: Python<'_>, error: CallError) -> PyResult<PyErr> {
    let named = PyDict::new(py);
    let (class, message) = match error {
        CallError::BadInput {
            message,
            row,
            source,
        } => {
            named.set_item("row", row)?;
            named.set_item("source", source)?;
            ("BadInput", message)
        }
        CallError::MemoryLimit { message, needed } => {
            named.set_item("needed", needed)?;
            ("MemoryLimit", message)
        }
        CallError::SchemeMismatch(message) => ("SchemeMismatch", message),
        CallError::Failed(message) => ("LookalikeError", message),
        CallError::Type(message) | CallError::Value(message) => ("LookalikeError", message),
        CallError::Raised(error) => return Ok(error),
    };
    // The classes are defined in Python, so that users see and catch ordinary classes with fields of their own.
    let class = exceptions(py)?.getattr(py, class)?;
    let value = class.bind(py).call((message,), Some(&named))?;
    Ok(PyErr::from_value(value))
}

/// Returns the module with the exceptions.
fn exceptions(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || {
        Ok(py.import("lookalike._errors")?.into_any().unbind())
    })
}

/// Returns the name of a value's type, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    let class: Bound<'_, PyType> = value.get_type();
    class
        .name()
        .map_or_else(|_| "an unknown type".to_owned(), |name| name.to_string())
}

/// Rewrites warnings to name arguments instead of options.
pub(crate) fn warnings_for_python(warnings: Vec<String>) -> Vec<String> {
    warnings.iter().map(|warning| in_python(warning)).collect()
}

/// Rewrites a message to name arguments instead of options of the command: `--max-document` becomes `max_document=`.
fn in_python(message: &str) -> String {
    let mut told = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        // Within a word it is not an option, because names of files and ids may contain hyphens.
        let is_word = match before.chars().next_back() {
            Some(last) => last.is_whitespace() || matches!(last, '(' | '`' | '\''),
            None => told.is_empty(),
        };
        let name = option[2..]
            .find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            // Names of options consist of lower-case letters and hyphens, so any other character ends them.
            .map_or(&option[2..], |end| &option[2..2 + end]);
        told.push_str(before);
        rest = &option[2 + name.len()..];
        match name.is_empty() || !is_word {
            true => {
                told.push_str("--");
                told.push_str(name);
            }
            false => {
                told.push_str(&name.replace('-', "_"));
                // Python keywords.
                if matches!(name, "and" | "in") {
                    told.push('_');
                }
                // "--memory 4G" becomes memory=4G; "--memory" alone becomes the name of an argument.
                if let Some(value) = rest.strip_prefix(' ')
                    && value.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
                {
                    told.push('=');
                    rest = value;
                }
            }
        }
    }
    // The folder and the file of results are arguments without a name.
    let told = told + rest;
    let parts: Vec<&str> = told.split(" with -o").collect();
    let mut named = parts[0].to_owned();
    for part in &parts[1..] {
        // Not within the name of a file.
        if part.starts_with(char::is_alphanumeric) {
            named.push_str(" with -o");
        }
        named.push_str(part);
    }
    named
}
