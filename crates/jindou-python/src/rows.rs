//! Rows as Python objects. The terms of several rows are decoded together, each distinct one once.

use crate::errors::exception;
use crate::solutions::Solutions;
use crate::terms;
use jindou::RowBatch;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyString, PyTuple};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Number of terms in a generation of Python objects. Two generations are cached, since the same ids recur.
const OBJECTS: usize = 1 << 13;

/// Number of rows that are decoded first. Each time it grows by the factor [`GROWTH`], so that the first row does not
/// wait for many others.
const FIRST: usize = 16;
const GROWTH: usize = 4;

/// Largest number of cells that are decoded together.
const CELLS: usize = 1 << 11;

/// Names of an answer's columns, without `?`.
pub struct Names {
    pub texts: Vec<String>,
    /// The same as interned strings. Names and constants in a program are interned, too, so most keys are found by
    /// identity.
    interned: Vec<Py<PyString>>,
    /// True for names that are also attributes of the class `Row`.
    hidden: Vec<bool>,
}

impl Names {
    /// Takes names without `?`.
    pub fn new(py: Python<'_>, texts: &[String]) -> PyResult<Self> {
        let row = py.get_type::<Row>();
        let hidden = texts.iter().map(|name| row.hasattr(name.as_str()));
        Ok(Self {
            texts: texts.to_vec(),
            hidden: hidden.collect::<PyResult<_>>()?,
            interned: texts
                .iter()
                .map(|name| PyString::intern(py, name).unbind())
                .collect(),
        })
    }

    fn same(&self, key: &Bound<'_, PyAny>) -> Option<usize> {
        self.interned.iter().position(|name| name.is(key))
    }

    fn equal(&self, key: &str) -> Option<usize> {
        let key = key.strip_prefix('?').unwrap_or(key);
        self.texts.iter().position(|name| name == key)
    }
}

/// Cache of the Python objects of terms, by id.
#[derive(Default)]
pub struct Objects {
    of: FxHashMap<u32, Py<PyAny>>,
    /// The previous generation. Objects of it that are used again are moved to the current one.
    older: FxHashMap<u32, Py<PyAny>>,
    /// True to make plain Python values (`to_python`) rather than terms.
    values: bool,
}

impl Objects {
    /// The cells of some rows of a batch, row by row; `None` for unbound cells.
    pub fn cells(
        &mut self,
        py: Python<'_>,
        batch: &RowBatch,
        rows: Range<usize>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let width = batch.variables().len();
        let column = |c| batch.ids(c).get(rows.clone()).unwrap_or(&[]);
        if self.of.len() >= OBJECTS {
            std::mem::swap(&mut self.of, &mut self.older);
            self.of.clear();
        }
        let mut missing = Vec::new();
        for &id in (0..width).flat_map(column) {
            if id == 0 || self.of.contains_key(&id) {
                continue;
            }
            match self.older.remove(&id) {
                Some(object) => {
                    self.of.insert(id, object);
                }
                None => missing.push(id),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        self.decode(py, batch, &missing)?;
        let mut out = Vec::with_capacity(width * rows.len());
        for row in rows {
            for c in 0..width {
                let id = batch.ids(c).get(row).copied().unwrap_or(0);
                out.push(match self.of.get(&id) {
                    Some(object) => object.clone_ref(py),
                    None => py.None(),
                });
            }
        }
        Ok(out)
    }

    fn decode(&mut self, py: Python<'_>, batch: &RowBatch, ids: &[u32]) -> PyResult<()> {
        let mut failed = Ok(());
        let mut take = |place: usize, bytes: &[u8]| -> PyResult<()> {
            let mut object = terms::decoded(py, bytes)?;
            if self.values {
                object = object.call_method0(intern!(py, "to_python"))?;
            }
            if let Some(id) = ids.get(place) {
                self.of.insert(*id, object.unbind());
            }
            Ok(())
        };
        let read = batch.decode(ids, |place, bytes| {
            if failed.is_ok() {
                failed = take(place, bytes);
            }
        });
        read.map_err(exception)?;
        failed
    }
}

/// Reads the rows of an answer in chunks.
struct Chunks {
    batch: Option<Arc<RowBatch>>,
    /// Number of the batch that follows `batch`.
    next: usize,
    /// The first row of `batch` that was not read yet.
    row: usize,
    /// Largest number of rows of the next chunk.
    rows: usize,
    objects: Objects,
}

impl Chunks {
    fn new(values: bool) -> Self {
        Self {
            batch: None,
            next: 0,
            row: 0,
            rows: FIRST,
            objects: Objects {
                values,
                ..Objects::default()
            },
        }
    }

    /// The next rows: their number, and their cells. `None` after the last row.
    fn next(
        &mut self,
        py: Python<'_>,
        solutions: &Solutions,
    ) -> PyResult<Option<(usize, Vec<Py<PyAny>>)>> {
        let batch = loop {
            match &self.batch {
                Some(batch) if self.row < batch.rows() => break Arc::clone(batch),
                _ => {
                    self.batch = solutions.batch(py, self.next)?;
                    if self.batch.is_none() {
                        return Ok(None);
                    }
                    self.next += 1;
                    self.row = 0;
                }
            }
        };
        let end = batch.rows().min(self.row + self.rows);
        let cells = self.objects.cells(py, &batch, self.row..end)?;
        let rows = end - self.row;
        self.row = end;
        let most = CELLS / batch.variables().len().max(1);
        self.rows = (self.rows * GROWTH).min(most.max(1));
        Ok(Some((rows, cells)))
    }
}

/// An iterator over the rows of an answer.
#[pyclass(name = "Rows", module = "jindou")]
pub struct Rows {
    solutions: Py<Solutions>,
    names: Arc<Names>,
    chunks: Chunks,
    /// Number of rows of the current chunk that were not returned yet, and their cells.
    left: usize,
    cells: std::vec::IntoIter<Py<PyAny>>,
}

impl Rows {
    /// An iterator that starts at the first row.
    pub fn new(solutions: Py<Solutions>, names: Arc<Names>) -> Self {
        Self {
            solutions,
            names,
            chunks: Chunks::new(false),
            left: 0,
            cells: Vec::new().into_iter(),
        }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Row>> {
        if self.left == 0 {
            let Some((rows, cells)) = self.chunks.next(py, self.solutions.get())? else {
                return Ok(None);
            };
            self.left = rows;
            self.cells = cells.into_iter();
        }
        self.left -= 1;
        let width = self.names.texts.len();
        Ok(Some(Row {
            names: Arc::clone(&self.names),
            cells: self.cells.by_ref().take(width).collect(),
        }))
    }
}

/// Passes all rows of an answer to `take`, as tuples of Python values.
pub fn tuples<'py>(
    py: Python<'py>,
    solutions: &Solutions,
    mut take: impl FnMut(Bound<'py, PyTuple>) -> PyResult<()>,
) -> PyResult<()> {
    let mut chunks = Chunks::new(true);
    while let Some((rows, cells)) = chunks.next(py, solutions)? {
        let width = cells.len() / rows;
        let mut cells = cells.into_iter();
        for _ in 0..rows {
            let row: Vec<_> = cells.by_ref().take(width).collect();
            take(PyTuple::new(py, row)?)?;
        }
    }
    Ok(())
}

/// A row: a sequence of terms (`None` for unbound variables), which can also be accessed by name: `row["x"]`, `row.x`.
#[pyclass(frozen, sequence, name = "Row", module = "jindou")]
pub struct Row {
    names: Arc<Names>,
    cells: Box<[Py<PyAny>]>,
}

impl Row {
    /// Takes one cell for each name.
    pub fn new(names: &Arc<Names>, cells: Vec<Py<PyAny>>) -> Self {
        Self {
            names: Arc::clone(names),
            cells: cells.into(),
        }
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &*self.cells)
    }

    fn cell(&self, py: Python<'_>, place: Option<usize>) -> Option<Py<PyAny>> {
        self.cells.get(place?).map(|cell| cell.clone_ref(py))
    }

    fn pairs<'a, 'py: 'a>(
        &'a self,
        py: Python<'py>,
    ) -> impl Iterator<Item = (&'a str, &'a Bound<'py, PyAny>)> {
        let names = self.names.texts.iter().map(String::as_str);
        names.zip(self.cells.iter().map(move |cell| cell.bind(py)))
    }
}

#[pymethods]
impl Row {
    /// Names of the columns, without `?`.
    #[getter]
    fn variables(&self) -> Vec<String> {
        self.names.texts.clone()
    }

    /// Names of the columns, so that `dict(row)` works. Its values are terms, or `None` for unbound variables.
    fn keys(&self) -> Vec<String> {
        self.names.texts.clone()
    }

    /// The terms by name, without unbound variables.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, cell) in self.pairs(py).filter(|(_, cell)| !cell.is_none()) {
            out.set_item(name, cell)?;
        }
        Ok(out)
    }

    /// The terms as Python values (see `Literal.to_python`), as a tuple.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let values = self.pairs(py).map(|(_, cell)| match cell.is_none() {
            true => Ok(cell.clone()),
            false => cell.call_method0(intern!(py, "to_python")),
        });
        PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// The term of a variable, or `default` if it is unbound or there is no such column.
    #[pyo3(signature = (name, default = None))]
    fn get(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let place = match self.names.same(name) {
            Some(place) => Some(place),
            None => self.names.equal(&name.to_cow()?),
        };
        let found = self.cell(py, place);
        Ok(found.filter(|cell| !cell.is_none(py)).or(default))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Some(cell) = self.cell(py, self.names.same(key)) {
            return Ok(cell);
        }
        if let Ok(name) = key.cast::<PyString>() {
            let name = name.to_cow()?;
            return self
                .cell(py, self.names.equal(&name))
                .ok_or_else(|| PyKeyError::new_err(format!("no column ?{name}")));
        }
        let index: isize = key.extract()?;
        self.cell(py, terms::place(index, self.cells.len()))
            .ok_or_else(|| PyIndexError::new_err("no such column"))
    }

    /// Finds a column by its name first, which avoids the search for an attribute that would precede `__getattr__`.
    fn __getattribute__<'py>(
        this: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, row) = (this.py(), this.get());
        if let Some(place) = row.names.same(name)
            && row.names.hidden.get(place) == Some(&false)
            && let Some(cell) = row.cells.get(place)
        {
            return Ok(cell.bind(py).clone());
        }
        py.get_type::<PyAny>()
            .getattr(intern!(py, "__getattribute__"))?
            .call1((this, name))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.cell(py, self.names.equal(name))
            .ok_or_else(|| PyAttributeError::new_err(format!("no column ?{name}")))
    }

    fn __len__(&self) -> usize {
        self.cells.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.tuple(py)?.try_iter()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(row) => self.tuple(py)?.eq(row.get().tuple(py)?),
            Err(_) => self.tuple(py)?.eq(other),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.tuple(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut parts = Vec::with_capacity(self.cells.len());
        for (name, cell) in self.pairs(py) {
            parts.push(format!("{name}={}", cell.repr()?));
        }
        Ok(format!("Row({})", parts.join(", ")))
    }
}
