//! Quads that match a pattern.

use crate::errors::exception;
use crate::terms::{PyQuad, place};
use jindou::oxrdf::Quad;
use jindou::{CancelToken, QuadMatches};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Number of quads that are decoded at a time.
const GROUP: usize = 256;

/// Number of quads that are written between two checks for cancellation.
const WRITTEN: usize = 4096;

/// Writes quads as N-Quads to `out`; `name` is its name in error messages.
pub fn write_quads(
    found: &QuadMatches,
    out: &mut dyn Write,
    name: &Path,
    cancel: &CancelToken,
) -> jindou::Result<()> {
    let mut group = Vec::new();
    for start in (0..found.len()).step_by(WRITTEN) {
        cancel.check()?;
        group.clear();
        found.read(start..start + WRITTEN, &mut group)?;
        for quad in &group {
            writeln!(out, "{quad} .").map_err(|e| jindou::Error::io(name, e))?;
        }
    }
    Ok(())
}

/// The quads that match a pattern, as of the moment of the call. They can be iterated over, counted and indexed.
#[pyclass(frozen, sequence, name = "Quads", module = "jindou")]
pub struct Quads {
    found: Arc<QuadMatches>,
}

impl Quads {
    /// Wraps the quads that were found.
    pub fn new(found: QuadMatches) -> Self {
        Self {
            found: Arc::new(found),
        }
    }
}

#[pymethods]
impl Quads {
    fn __len__(&self) -> usize {
        self.found.len()
    }

    fn __iter__(&self) -> QuadIterator {
        QuadIterator {
            found: Arc::clone(&self.found),
            next: 0,
            group: Vec::new().into_iter(),
        }
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyQuad> {
        let missing = || PyIndexError::new_err("no such quad");
        let place = place(index, self.found.len()).ok_or_else(missing)?;
        let mut out = Vec::new();
        self.found
            .read(place..place + 1, &mut out)
            .map_err(exception)?;
        out.pop().map(PyQuad).ok_or_else(missing)
    }

    fn __repr__(&self) -> String {
        format!("Quads({} quads)", self.found.len())
    }
}

/// An iterator over quads.
#[pyclass(name = "QuadIterator", module = "jindou")]
pub struct QuadIterator {
    found: Arc<QuadMatches>,
    next: usize,
    group: std::vec::IntoIter<Quad>,
}

#[pymethods]
impl QuadIterator {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&mut self) -> PyResult<Option<PyQuad>> {
        if self.group.len() == 0 {
            let mut group = Vec::new();
            self.found
                .read(self.next..self.next + GROUP, &mut group)
                .map_err(exception)?;
            self.next += group.len();
            self.group = group.into_iter();
        }
        Ok(self.group.next().map(PyQuad))
    }
}
