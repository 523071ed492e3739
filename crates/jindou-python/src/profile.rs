//! Profiles of queries.

use jindou::{ProfileNode, QueryReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The profile of a query that was run: `print` it, or walk through its `tree`.
#[pyclass(frozen, name = "Profile", module = "jindou")]
pub struct Profile {
    report: QueryReport,
}

impl Profile {
    /// The profile in a report.
    pub fn new(report: QueryReport) -> Self {
        Self { report }
    }
}

#[pymethods]
impl Profile {
    /// Number of rows of the answer.
    #[getter]
    fn rows(&self) -> u64 {
        self.report.rows
    }

    /// Seconds for parsing and planning.
    #[getter]
    fn plan_seconds(&self) -> f64 {
        self.report.plan_time.as_secs_f64()
    }

    /// Seconds for running the plan, and for decoding and writing its rows.
    #[getter]
    fn run_seconds(&self) -> f64 {
        self.report.run_time.as_secs_f64()
    }

    /// True if the plan was in the cache.
    #[getter]
    fn plan_cached(&self) -> bool {
        self.report.plan_cached
    }

    /// The steps as nested dicts: `name`, `place`, `rows_in`, `rows_out`, `seconds`, `bytes`, `inputs`.
    #[getter]
    fn tree<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tree = self.report.profile_tree.as_ref();
        tree.map(|node| as_dict(py, node, 0)).transpose()
    }

    /// The steps as a readable table.
    #[getter]
    fn text(&self) -> &str {
        &self.report.profile
    }

    fn __str__(&self) -> &str {
        &self.report.profile
    }

    fn __repr__(&self) -> String {
        format!(
            "Profile(rows={}, run_seconds={:.6})",
            self.rows(),
            self.run_seconds()
        )
    }
}

/// Largest depth of `tree`, since Python recurses when it prints nested dicts.
const LEVELS: usize = 100;

fn as_dict<'py>(py: Python<'py>, node: &ProfileNode, level: usize) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", &node.name)?;
    out.set_item("place", &node.place)?;
    out.set_item("rows_in", node.rows_in)?;
    out.set_item("rows_out", node.rows_out)?;
    out.set_item("seconds", node.time.map(|t| t.as_secs_f64()))?;
    out.set_item("bytes", node.bytes)?;
    let inputs = PyList::empty(py);
    if level < LEVELS {
        for input in &node.inputs {
            inputs.append(as_dict(py, input, level + 1)?)?;
        }
    }
    out.set_item("inputs", inputs)?;
    Ok(out)
}
