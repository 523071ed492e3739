//! The rows of a SELECT, as Python objects or as Arrow. They are fetched from a cursor when they are read.

use crate::arrow;
use crate::errors::{exception, named};
use crate::process::Home;
use crate::rows::{self, Names, Objects, Row, Rows};
use crate::wait::{LOOK, interruptible, locked};
use jindou::{CancelToken, Cursor, RowBatch};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PySlice};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a SELECT: iterate over them to get `Row`s, take one as `solutions[0]`, or all as `arrow()`, `pandas()`,
/// `polars()`. `print` shows the first twenty as a table.
///
/// The query runs while rows are read, a little ahead. Rows that were read are kept (four bytes per cell; terms are
/// decoded when they are accessed), so they can be read again, unless `keep=False` was given.
#[pyclass(frozen, name = "Solutions", module = "jindou")]
pub struct Solutions {
    names: Arc<Names>,
    home: Home,
    cancel: CancelToken,
    keep: bool,
    state: Mutex<SolutionsState>,
}

struct SolutionsState {
    /// `None` after the query has ended.
    cursor: Option<Cursor>,
    /// The batches that were read; without `keep`, only the last one.
    batches: Vec<Arc<RowBatch>>,
    /// Number of batches that were read.
    read: usize,
    rows: usize,
    /// The reason why reading stopped before the last row, if it did.
    broken: Option<String>,
}

impl Solutions {
    /// Wraps the cursor of a running query; `cancel` is the token that was passed to the query.
    pub fn new(py: Python<'_>, cursor: Cursor, cancel: CancelToken, keep: bool) -> PyResult<Self> {
        Ok(Self {
            names: Arc::new(Names::new(py, cursor.variables())?),
            home: Home::here(),
            cancel,
            keep,
            state: Mutex::new(SolutionsState {
                cursor: Some(cursor),
                batches: Vec::new(),
                read: 0,
                rows: 0,
                broken: None,
            }),
        })
    }

    /// The batch of rows with this number; `None` after the last one. Handles signals while waiting for it.
    pub fn batch(&self, py: Python<'_>, number: usize) -> PyResult<Option<Arc<RowBatch>>> {
        self.home.check()?;
        let mut state = locked(py, &self.state);
        loop {
            if self.keep
                && let Some(batch) = state.batches.get(number)
            {
                return Ok(Some(Arc::clone(batch)));
            }
            if number < state.read {
                let gone = "the rows were not kept as they were read (keep=False)";
                return Err(named("QueryError", gone));
            }
            if let Some(why) = &state.broken {
                return Err(named("CancelledError", why));
            }
            let Some(cursor) = &mut state.cursor else {
                return Ok(None);
            };
            while !py.detach(|| cursor.wait(LOOK)) {
                if let Err(e) = py.check_signals() {
                    self.cancel.cancel();
                    state.end(py, Some("the query was interrupted before its end".into()));
                    return Err(e);
                }
            }
            match py.detach(|| cursor.next_batch()) {
                Ok(Some(batch)) => {
                    state.rows += batch.rows();
                    state.read += 1;
                    let batch = Arc::new(batch);
                    if self.keep {
                        state.batches.push(batch);
                    } else {
                        return Ok(Some(batch));
                    }
                }
                Ok(None) => state.end(py, None),
                Err(e) => {
                    state.end(py, Some(format!("the query ended with an error: {e}")));
                    return Err(exception(e));
                }
            }
        }
    }

    /// All batches.
    fn all(&self, py: Python<'_>) -> PyResult<Vec<Arc<RowBatch>>> {
        let mut out = Vec::new();
        while let Some(batch) = self.batch(py, out.len())? {
            out.push(batch);
        }
        Ok(out)
    }

    fn table(&self, py: Python<'_>, typed: bool, syntax: &str) -> PyResult<arrow::Batch> {
        let how = arrow::How::new(typed, syntax)?;
        let batches = self.all(py)?;
        let cancel = CancelToken::new();
        interruptible(py, &cancel, || {
            arrow::of_rows(&self.names.texts, &batches, how, &cancel)
        })
    }

    /// The row with this number; `None` if there are fewer rows. Waits for the rows up to it.
    fn row(&self, py: Python<'_>, number: usize) -> PyResult<Option<Row>> {
        let (mut place, mut batches) = (number, 0);
        while let Some(batch) = self.batch(py, batches)? {
            if place < batch.rows() {
                let cells = Objects::default().cells(py, &batch, place..place + 1)?;
                return Ok(Some(Row::new(&self.names, cells)));
            }
            place -= batch.rows();
            batches += 1;
        }
        Ok(None)
    }
}

impl SolutionsState {
    fn end(&mut self, py: Python<'_>, broken: Option<String>) {
        self.broken = broken;
        let cursor = self.cursor.take();
        // Dropping the cursor waits for the query's thread.
        py.detach(|| drop(cursor));
    }
}

#[pymethods]
impl Solutions {
    /// Names of the columns, without `?`.
    #[getter]
    fn variables(&self) -> Vec<String> {
        self.names.texts.clone()
    }

    fn __iter__(this: Bound<'_, Self>) -> Rows {
        let names = Arc::clone(&this.get().names);
        Rows::new(this.unbind(), names)
    }

    /// Number of rows. Waits for the end of the query.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if !self.keep {
            return Err(PyTypeError::new_err(
                "the rows of a query with keep=False have no length",
            ));
        }
        self.all(py)?;
        Ok(locked(py, &self.state).rows)
    }

    /// The row with this number, counted from the end if it is negative; for a slice, a list of rows.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !self.keep {
            return Err(PyTypeError::new_err(
                "the rows of a query with keep=False cannot be indexed",
            ));
        }
        let missing = || PyIndexError::new_err("no such row");
        if let Ok(slice) = key.cast::<PySlice>() {
            let of = slice.indices(self.__len__(py)? as isize)?;
            let rows = PyList::empty(py);
            for step in 0..of.slicelength as isize {
                let number = (of.start + step * of.step) as usize;
                rows.append(self.row(py, number)?.ok_or_else(missing)?)?;
            }
            return Ok(rows.into_any());
        }
        let index: isize = key.extract()?;
        let number = match index < 0 {
            true => self.__len__(py)?.checked_add_signed(index),
            false => Some(index as usize),
        };
        let row = number.map(|number| self.row(py, number)).transpose()?;
        let row = row.flatten().ok_or_else(missing)?;
        Ok(Bound::new(py, row)?.into_any())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.home.check()?;
        if locked(py, &self.state).rows > 0 {
            return Ok(true);
        }
        Ok(self.keep && self.batch(py, 0)?.is_some())
    }

    /// The answer as a `pyarrow.Table`, passed on without a copy. Waits for the end of the query.
    ///
    /// A column in which all values are integers is an `int64`, one of numbers a `float64`, of truth values a `bool`,
    /// of `xsd:dateTime` a `timestamp[us]` (with time zone UTC if all values have a time zone, without one if none
    /// has), of `xsd:date` a `date32`. All other columns are dictionary-encoded text: each distinct term once, and an
    /// `int32` per row. With `typed=False`, all columns are plain text. With `syntax="plain"`, the text is the IRI, the
    /// lexical form of a literal, or `_:label`; with `syntax="ntriples"` it is in N-Triples syntax, in which literals
    /// keep language and datatype.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn arrow<'py>(
        &self,
        py: Python<'py>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::pyarrow(py, self.table(py, typed, syntax)?)
    }

    /// The answer as a `pandas.DataFrame`; needs pandas and pyarrow. Text columns are categories, or plain text with
    /// `typed=False`. Columns of integers or truth values with unbound cells have the types `Int64` and `boolean`. See
    /// `arrow`.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn pandas<'py>(
        &self,
        py: Python<'py>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::pandas(py, self.table(py, typed, syntax)?)
    }

    /// The answer as a `polars.DataFrame`; needs polars. Text columns are categories, or plain text with `typed=False`.
    /// See `arrow`.
    #[pyo3(signature = (*, typed = true, syntax = "plain"))]
    fn polars<'py>(
        &self,
        py: Python<'py>,
        typed: bool,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrow::polars(py, self.table(py, typed, syntax)?)
    }

    /// All rows as a list of tuples of Python values, as `Row.to_python` returns them; `None` for unbound variables.
    /// Waits for the end of the query.
    fn fetchall<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(this.py());
        rows::tuples(this.py(), this.get(), |row| all.append(row))?;
        Ok(all)
    }

    /// The Arrow C stream, for all libraries that support the PyCapsule interface: `pyarrow.table(solutions)`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows ignoring a requested schema.
        let _ = requested_schema;
        arrow::capsule(py, self.table(py, true, "plain")?)
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("jindou._html")?
            .call_method1("of_solutions", (this,))
    }

    /// The first rows as a table. With `keep=False` no rows are shown, since that would consume them.
    fn __str__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        if !this.get().keep {
            return Ok(this.repr()?.into_any());
        }
        py.import("jindou._text")?
            .call_method1("of_solutions", (this,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = locked(py, &self.state);
        let more = if state.cursor.is_some() {
            " read so far"
        } else {
            ""
        };
        format!(
            "Solutions({}; {} rows{more})",
            self.names.texts.join(", "),
            state.rows
        )
    }
}

impl Drop for Solutions {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.home
            .drop((state.cursor.take(), std::mem::take(&mut state.batches)));
    }
}
