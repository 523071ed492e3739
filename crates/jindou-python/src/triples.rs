//! The answer of CONSTRUCT and DESCRIBE.

use crate::arrow;
use crate::errors::exception;
use crate::terms::{self, PyTriple};
use crate::wait::interruptible;
use jindou::CancelToken;
use jindou::oxrdf::{Term, Triple};
use jindou::parse::Format;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::sync::Arc;

/// The triples that a CONSTRUCT or DESCRIBE returns: a sequence of `Triple`.
#[pyclass(frozen, sequence, name = "Triples", module = "jindou")]
pub struct Triples {
    pub triples: Arc<Vec<Triple>>,
}

#[pymethods]
impl Triples {
    fn __len__(&self) -> usize {
        self.triples.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyTriple> {
        terms::place(index, self.triples.len())
            .map(|place| PyTriple(self.triples[place].clone()))
            .ok_or_else(|| PyIndexError::new_err("no such triple"))
    }

    fn __contains__(&self, triple: &Bound<'_, PyAny>) -> PyResult<bool> {
        let wanted = Triple::from(terms::quad_of(triple)?);
        Ok(self.triples.contains(&wanted))
    }

    /// The triples as a document: `"ntriples"` or `"turtle"`.
    #[pyo3(signature = (format = "ntriples"))]
    fn serialize<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let format = crate::loading::format_of(format)?;
        // N-Triples is a subset of Turtle, so both are written in the same way.
        if !matches!(format, Format::NTriples | Format::Turtle) {
            return Err(PyValueError::new_err(
                "triples can be written as ntriples or turtle; Database.serialize has more formats",
            ));
        }
        let text = py.detach(|| {
            use std::fmt::Write as _;
            let mut text = String::new();
            for triple in &*self.triples {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{triple} .");
            }
            text
        });
        Ok(PyBytes::new(py, text.as_bytes()))
    }

    /// An `rdflib.Graph` with the triples.
    fn rdflib<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("jindou.rdflib_store")?
            .call_method1("graph_of", (this,))
    }

    /// A `pyarrow.Table` with the columns `subject`, `predicate`, `object`; see `Solutions.arrow`.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn arrow<'py>(
        this: &Bound<'py, Self>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::pyarrow(this.py(), this.get().table(this.py(), typed, syntax)?)
    }

    /// A `pandas.DataFrame` with the columns `subject`, `predicate`, `object`; see `Solutions.pandas`.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn pandas<'py>(
        this: &Bound<'py, Self>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::pandas(this.py(), this.get().table(this.py(), typed, syntax)?)
    }

    /// A `polars.DataFrame` with the columns `subject`, `predicate`, `object`; see `Solutions.polars`.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn polars<'py>(
        this: &Bound<'py, Self>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::polars(this.py(), this.get().table(this.py(), typed, syntax)?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::capsule(py, self.table(py, true, "plain")?)
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("jindou._html")?
            .call_method1("of_triples", (this,))
    }

    fn __repr__(&self) -> String {
        format!("Triples({} triples)", self.triples.len())
    }
}

impl Triples {
    fn table(&self, py: Python<'_>, typed: bool, syntax: &str) -> PyResult<arrow::Batch> {
        let how = arrow::How::new(typed, syntax)?;
        let (triples, cancel) = (Arc::clone(&self.triples), CancelToken::new());
        interruptible(py, &cancel, || {
            let of = |part: fn(&Triple) -> Term| triples.iter().map(part).collect::<Vec<_>>();
            arrow::of_terms(
                &[
                    ("subject", of(|t| t.subject.clone().into())),
                    ("predicate", of(|t| t.predicate.clone().into())),
                    ("object", of(|t| t.object.clone())),
                ],
                how,
            )
        })
    }
}

/// The exception for an answer of another form than was planned, which is a bug in this library.
pub fn unexpected() -> PyErr {
    exception(jindou::Error::Internal(
        "an answer of another form than the query's".into(),
    ))
}
