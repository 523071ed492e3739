//! Facts about a store and about a query, as dicts.

use jindou::{Reason, Summary};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Reasons why a query has no answer, as a list of dicts.
pub fn reasons(py: Python<'_>, reasons: Vec<Reason>) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for reason in reasons {
        let one = PyDict::new(py);
        one.set_item("kind", reason.kind.name())?;
        one.set_item("message", reason.message)?;
        one.set_item("line", reason.place.map(|p| p.line))?;
        one.set_item("column", reason.place.map(|p| p.column))?;
        let texts = reason.suggestions.into_iter().map(|s| s.text);
        one.set_item("suggestions", texts.collect::<Vec<_>>())?;
        out.append(one)?;
    }
    Ok(out)
}

/// Counts of a store, as a dict.
pub fn summary(py: Python<'_>, summary: Summary) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("triples", summary.triples)?;
    out.set_item("named_quads", summary.named_quads)?;
    out.set_item("graphs", summary.graphs)?;
    out.set_item("terms", summary.terms)?;
    let counts = |list: Vec<(String, u64)>| {
        let counts = PyDict::new(py);
        for (name, count) in list {
            counts.set_item(name, count)?;
        }
        Ok::<_, PyErr>(counts)
    };
    out.set_item("predicates", counts(summary.predicates)?)?;
    out.set_item("classes", counts(summary.classes)?)?;
    out.set_item("union_default_graph", summary.union_default)?;
    Ok(out)
}
