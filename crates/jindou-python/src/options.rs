//! Conversion of keyword arguments to the library's options.

use crate::errors::{exception, named};
use crate::terms;
use jindou::oxrdf::Term;
use jindou::{
    CancelToken, DatasetChoice, Documents, GraphName, MemoryBudget, QueryOptions, UpdateOptions,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Duration;

/// Cancels calls from another thread: pass the same token to the calls as `cancel=`.
///
/// A cancelled token stays cancelled, so later calls with it end at once.
#[pyclass(frozen, name = "CancelToken", module = "jindou")]
#[derive(Default)]
pub struct Cancel {
    token: CancelToken,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends all calls that were given this token, at their next batch of rows.
    fn cancel(&self) {
        self.token.cancel();
    }

    /// True if `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.token.is_cancelled()
    }
}

/// A time limit, given in seconds.
fn seconds(limit: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(limit).map_err(|e| {
        PyValueError::new_err(format!("timeout={limit} is not a time in seconds: {e}"))
    })
}

/// The options of a query from its keywords; unknown keywords are refused.
pub fn of_query(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<QueryOptions> {
    let mut options = QueryOptions::default();
    let mut dataset: Option<DatasetChoice> = None;
    for (key, value) in keywords.into_iter().flatten() {
        let key: String = key.extract()?;
        if value.is_none() && key != "cancel" {
            continue;
        }
        match key.as_str() {
            "timeout" => options.timeout = Some(seconds(value.extract()?)?),
            "memory" => options.memory = Some(MemoryBudget::new(value.extract()?)),
            "temp" => options.temp = Some(value.extract()?),
            "threads" => options.threads = Some(value.extract()?),
            "cancel" => options.cancel = token(&value)?,
            "union_default_graph" => options.union_default = Some(value.extract()?),
            "common_prefixes" => options.common_prefixes = value.extract()?,
            "store_prefixes" => options.store_prefixes = value.extract()?,
            "default_graphs" => dataset.get_or_insert_default().default = graphs(&value)?,
            "named_graphs" => dataset.get_or_insert_default().named = graphs(&value)?,
            _ => return Err(unknown(&key)),
        }
    }
    options.dataset = dataset;
    Ok(options)
}

/// The options of an update from its keywords; unknown keywords are refused.
pub fn of_update(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<UpdateOptions> {
    let mut options = UpdateOptions::default();
    let mut using: Option<DatasetChoice> = None;
    for (key, value) in keywords.into_iter().flatten() {
        let key: String = key.extract()?;
        if value.is_none() && key != "cancel" {
            continue;
        }
        match key.as_str() {
            "timeout" => options.timeout = Some(seconds(value.extract()?)?),
            "memory" => options.memory = Some(MemoryBudget::new(value.extract()?)),
            "threads" => options.threads = Some(value.extract()?),
            "cancel" => options.cancel = token(&value)?,
            "union_default_graph" => options.union_default = Some(value.extract()?),
            "common_prefixes" => options.common_prefixes = value.extract()?,
            "store_prefixes" => options.store_prefixes = value.extract()?,
            "base" => options.base = Some(value.extract()?),
            "using_graphs" => using.get_or_insert_default().default = graphs(&value)?,
            "using_named_graphs" => using.get_or_insert_default().named = graphs(&value)?,
            "graph" => options.only = Some(GraphName::Named(graph_iri(&value)?)),
            "load_from" => {
                let folder: std::path::PathBuf = value.extract()?;
                let documents = Documents::new().folder(folder).map_err(exception)?;
                options.documents = Some(Arc::new(documents));
            }
            _ => return Err(unknown(&key)),
        }
    }
    options.using = using;
    Ok(options)
}

fn unknown(key: &str) -> PyErr {
    PyTypeError::new_err(format!("'{key}' is not a keyword argument of this call"))
}

/// The token in an argument, or a new one for `None`.
pub fn token(value: &Bound<'_, PyAny>) -> PyResult<CancelToken> {
    if value.is_none() {
        return Ok(CancelToken::new());
    }
    let cancel = value
        .cast::<Cancel>()
        .map_err(|_| PyTypeError::new_err("cancel= takes a jindou.CancelToken"))?;
    Ok(cancel.get().token.clone())
}

/// IRIs of graphs.
fn graphs(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    value
        .try_iter()?
        .map(|item| graph_iri(&item?))
        .collect::<PyResult<Vec<_>>>()
}

/// The IRI of a graph, given as text, or as a term of this or another RDF library.
pub fn graph_iri(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value
        .get_type()
        .is(value.py().get_type::<pyo3::types::PyString>())
    {
        return value.extract();
    }
    match terms::term_of(value)? {
        Term::NamedNode(n) => Ok(n.into_string()),
        other => Err(named(
            "QueryError",
            &format!("a graph's name must be an IRI here, not {other}"),
        )),
    }
}
