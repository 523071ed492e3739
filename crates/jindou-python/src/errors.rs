//! Converts errors of the library to Python exceptions, with details as attributes.

use jindou::{Diagnostics, Error, Limit};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;

/// The exception for an error. Its class is in `jindou.errors`.
pub fn exception(error: Error) -> PyErr {
    Python::attach(|py| made(py, &error).unwrap_or_else(|e| e))
}

/// An exception of this class in `jindou.errors` with a message.
pub fn named(class: &str, message: &str) -> PyErr {
    Python::attach(|py| build(py, class, message, &PyDict::new(py)).unwrap_or_else(|e| e))
}

fn build(py: Python<'_>, class: &str, message: &str, data: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let class = py.import("jindou.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(data))?))
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let data = PyDict::new(py);
    let message = error.to_string();
    let with_filename = |path: &PathBuf, class: &'static str| {
        data.set_item("filename", path)?;
        Ok::<_, PyErr>(class)
    };
    let class = match error {
        Error::Syntax { at, text, .. } => {
            data.set_item("file", &at.file)?;
            data.set_item("line", (at.line > 0).then_some(at.line))?;
            data.set_item("column", (at.column > 0).then_some(at.column))?;
            data.set_item("text", text)?;
            "RdfSyntaxError"
        }
        Error::Sparql(found) => {
            data.set_item("diagnostics", diagnostics(py, found)?)?;
            "SparqlSyntaxError"
        }
        Error::Query(_) => "QueryError",
        Error::Unsupported(_) | Error::Gpu(_) => "UnsupportedError",
        Error::UnknownFormat { name } => {
            data.set_item("name", name)?;
            "UnknownFormatError"
        }
        Error::Io { path, source } => {
            data.set_item("errno", source.raw_os_error())?;
            with_filename(path, "FileError")?
        }
        Error::NoStore { path } => with_filename(path, "NoStoreError")?,
        Error::StoreExists { path } => with_filename(path, "StoreExistsError")?,
        Error::InUse { path, .. } => with_filename(path, "InUseError")?,
        Error::Damaged { file, offset, .. } => {
            data.set_item("offset", offset)?;
            with_filename(file, "DamagedError")?
        }
        Error::Version {
            file,
            found,
            supported,
        } => {
            data.set_item("found", found)?;
            data.set_item("supported", supported)?;
            with_filename(file, "VersionError")?
        }
        Error::NotAStore { path, .. } => with_filename(path, "NotAStoreError")?,
        Error::ReadOnly(_) => "ReadOnlyError",
        Error::Usage(_) => "UsageError",
        Error::External(_) => "Error",
        Error::Limit(limit) => {
            limited(&data, limit)?;
            "LimitError"
        }
        Error::Busy(limit) => {
            limited(&data, limit)?;
            "BusyError"
        }
        Error::Timeout(limit) => {
            data.set_item("seconds", limit.as_secs_f64())?;
            "QueryTimeoutError"
        }
        Error::Cancelled => "CancelledError",
        Error::Conflict(_) | Error::Precondition(_) | Error::KeyReused(_) => "ConflictError",
        Error::Service { endpoint, .. } => {
            data.set_item("endpoint", endpoint)?;
            "ServiceError"
        }
        Error::Document { iri, .. } => {
            data.set_item("iri", iri)?;
            "DocumentError"
        }
        _ => "InternalError",
    };
    build(py, class, &message, &data)
}

fn limited(data: &Bound<'_, PyDict>, limit: &Limit) -> PyResult<()> {
    data.set_item("resource", format!("{:?}", limit.resource).to_lowercase())?;
    data.set_item("limit", limit.limit)
}

fn diagnostics<'py>(py: Python<'py>, found: &Diagnostics) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("jindou.errors")?.getattr("Diagnostic")?;
    let out = PyList::empty(py);
    for d in found.all() {
        let data = PyDict::new(py);
        data.set_item("kind", words(&format!("{:?}", d.kind)))?;
        data.set_item("message", &d.message)?;
        data.set_item("start", d.start)?;
        data.set_item("end", d.end)?;
        data.set_item("line", d.line)?;
        data.set_item("column", d.column)?;
        data.set_item("end_line", d.end_line)?;
        data.set_item("end_column", d.end_column)?;
        data.set_item("found", &d.found)?;
        data.set_item("expected", &d.expected)?;
        let suggestions: Vec<&str> = d.suggestions.iter().map(|s| s.text.as_str()).collect();
        data.set_item("suggestions", suggestions)?;
        out.append(class.call((), Some(&data))?)?;
    }
    Ok(out)
}

/// Converts a name like `MissingDot` to `missing-dot`, as in the server's JSON.
fn words(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The exception if the thread that was to compute a result has panicked.
pub fn lost() -> PyErr {
    PyRuntimeError::new_err("the thread that computed ended without an answer")
}
