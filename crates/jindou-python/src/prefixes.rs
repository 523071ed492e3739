//! The class `Prefixes`: a dict of a database's prefixes, which changes the database.

use crate::database::PyDatabase;
use crate::wait::interruptible;
use jindou::{PrefixTable, UpdateOptions};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use std::sync::Arc;

/// The prefixes of a database with their IRIs, without the common ones. Names are without the colon.
///
/// Each call reads the current state of the database. A prefix that is set takes precedence over one that the data
/// declares, which is effective again once the former is deleted.
#[pyclass(frozen, module = "jindou")]
pub struct Prefixes {
    db: Py<PyDatabase>,
}

impl Prefixes {
    pub fn new(db: Py<PyDatabase>) -> Self {
        Self { db }
    }

    fn table(&self, py: Python<'_>) -> PyResult<Arc<PrefixTable>> {
        Ok(self.db.get().get(py)?.prefixes())
    }
}

#[pymethods]
impl Prefixes {
    /// A dict of names and IRIs, as of now.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, iri, _) in self.table(py)?.iter() {
            out.set_item(name, iri)?;
        }
        Ok(out)
    }

    /// The origin of a prefix: `"data"` or `"set"`; `None` if there is no such prefix.
    fn origin(&self, py: Python<'_>, name: &str) -> PyResult<Option<&'static str>> {
        let table = self.table(py)?;
        let found = table.iter().find(|p| p.0 == name);
        Ok(found.map(|(_, _, origin)| origin.name()))
    }

    /// The IRI of a prefix, or `default`.
    #[pyo3(signature = (name, default = None))]
    fn get(
        &self,
        py: Python<'_>,
        name: &str,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        match self.table(py)?.get(name) {
            Some(iri) => Ok(Some(iri.into_pyobject(py)?.into_any().unbind())),
            None => Ok(default),
        }
    }

    /// The names.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.asdict(py)?.call_method0("keys")
    }

    /// The IRIs.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.asdict(py)?.call_method0("values")
    }

    /// Names and IRIs.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.asdict(py)?.call_method0("items")
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let table = self.table(py)?;
        let iri = table.get(name).map(str::to_owned);
        iri.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, name: &str, iri: &str) -> PyResult<()> {
        let db = self.db.get().writable(py)?;
        let options = UpdateOptions::default();
        interruptible(py, &options.cancel, || db.set_prefix(name, iri, &options)).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let db = self.db.get().writable(py)?;
        if db.prefixes().get(name).is_none() {
            return Err(PyKeyError::new_err(name.to_owned()));
        }
        let options = UpdateOptions::default();
        interruptible(py, &options.cancel, || db.remove_prefix(name, &options)).map(drop)
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.table(py)?.get(name).is_some())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.table(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.asdict(py)?.as_any().try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Prefixes({})", self.asdict(py)?.repr()?))
    }
}
