//! Changes: updates, single quads, and transactions of several calls.

use crate::database::PyDatabase;
use crate::errors::{exception, named};
use crate::frame::Frame;
use crate::loading::{Keywords, Reading};
use crate::options;
use crate::query::{Asked, run_query};
use crate::terms::quad_of;
use crate::wait::{interruptible, locked};
use jindou::{Batch, OpenTransaction, Result, UpdateOptions, UpdateReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Report on an update: its changes, and its duration.
#[pyclass(frozen, get_all, name = "UpdateReport", module = "jindou")]
pub struct Report {
    /// Number of the snapshot that contains the changes.
    snapshot: u64,
    /// Number of operations.
    operations: usize,
    /// Number of quads that were added.
    added: u64,
    /// Number of quads that were removed.
    removed: u64,
    /// Total time in seconds: parsing the request, waiting for other updates, running, and making the changes durable.
    seconds: f64,
}

impl From<UpdateReport> for Report {
    fn from(r: UpdateReport) -> Self {
        Self {
            snapshot: r.snapshot,
            operations: r.operations,
            added: r.added,
            removed: r.removed,
            seconds: (r.parse_time + r.wait_time + r.run_time + r.commit_time).as_secs_f64(),
        }
    }
}

#[pymethods]
impl Report {
    fn __repr__(&self) -> String {
        format!(
            "UpdateReport(added={}, removed={}, operations={}, snapshot={})",
            self.added, self.removed, self.operations, self.snapshot
        )
    }
}

/// A batch of quads from Python, all to be inserted or all to be removed.
pub fn batch(quads: &Bound<'_, PyAny>, insert: bool) -> PyResult<Batch> {
    let mut batch = Batch::new();
    for quad in quads.try_iter()? {
        let quad = quad_of(&quad?)?;
        if insert {
            batch.insert(quad.as_ref());
        } else {
            batch.remove(quad.as_ref());
        }
    }
    Ok(batch)
}

/// A transaction of several calls. Its changes are visible to its own queries at once, and to others after `commit`,
/// all together. In a `with` statement, it is committed at the end, or rolled back if an exception is raised.
///
/// While it is open, other updates of the database wait.
#[pyclass(frozen, name = "Transaction", module = "jindou")]
pub struct Transaction {
    db: Py<PyDatabase>,
    open: Mutex<Option<OpenTransaction>>,
}

impl Transaction {
    /// Opens a transaction; waits while another one is open.
    pub fn begin(py: Python<'_>, db: Py<PyDatabase>, options: &UpdateOptions) -> PyResult<Self> {
        let database = db.get().writable(py)?;
        let open = interruptible(py, &options.cancel, || database.begin(options))?;
        db.get().set_owner(py, Some(std::thread::current().id()));
        Ok(Self {
            db,
            open: Mutex::new(Some(open)),
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        options: &UpdateOptions,
        work: impl FnOnce(&mut OpenTransaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        let mut open = self.open(py)?;
        let open = open.as_mut().ok_or_else(over)?;
        interruptible(py, &options.cancel, || work(open))
    }

    /// The transaction; an error in a process that did not open it.
    fn open(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<OpenTransaction>>> {
        self.db.get().home.check()?;
        Ok(locked(py, &self.open))
    }

    fn take(&self, py: Python<'_>) -> PyResult<OpenTransaction> {
        let mut open = self.open(py)?;
        let taken = open.take().ok_or_else(over)?;
        self.db.get().set_owner(py, None);
        Ok(taken)
    }
}

fn over() -> PyErr {
    named(
        "TransactionError",
        "the transaction is over: it was committed or rolled back",
    )
}

#[pymethods]
impl Transaction {
    /// Runs a SPARQL update on top of the transaction's earlier changes. If it fails, it has changed nothing, and the
    /// transaction can continue.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, threads=None, base=None, graph=None, using_graphs=None, using_named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, load_from=None, cancel=None)"
    )]
    fn update(
        &self,
        py: Python<'_>,
        text: &str,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Report> {
        let options = options::of_update(keywords)?;
        self.with(py, &options, |open| open.update(text, &options))
            .map(Report::from)
    }

    /// Adds a quad (or a triple, to the default graph).
    fn add(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, &batch(PyTuple::new(py, [quad])?.as_any(), true)?)
    }

    /// Adds any number of quads.
    fn add_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, &batch(quads, true)?)
    }

    /// Adds the rows of a DataFrame or of an Arrow table as triples, as `Database.add_frame` does.
    #[pyo3(signature = (frame, columns = None, **keywords))]
    #[pyo3(
        text_signature = "($self, frame, columns=None, *, subject='subject', predicate='predicate', object='object', iris=(), graph_name=None, syntax='plain', timeout=None, memory=None, threads=None, cancel=None)"
    )]
    fn add_frame(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyDict>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Report> {
        let (frame, options) = Frame::new(frame, columns, keywords)?;
        let mut open = self.open(py)?;
        let open = open.as_mut().ok_or_else(over)?;
        frame
            .run(py, &options, |frame, progress| {
                open.insert(frame, &options, progress)
            })
            .map(Report::from)
    }

    /// Removes a quad.
    fn remove(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, &batch(PyTuple::new(py, [quad])?.as_any(), false)?)
    }

    /// Removes any number of quads.
    fn remove_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, &batch(quads, false)?)
    }

    /// Adds the quads of files or of a text, as `Database.load` does.
    #[pyo3(signature = (*files, **keywords))]
    #[pyo3(
        text_signature = "($self, *files, format=None, graph=None, base=None, text=None, lenient=False, progress=None, timeout=None, memory=None, threads=None, cancel=None)"
    )]
    fn load(
        &self,
        py: Python<'_>,
        files: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Report> {
        let mut keywords = Keywords::new(keywords)?;
        let reading = Reading::new(files, &mut keywords, true)?;
        let mut options = options::of_update(keywords.rest())?;
        options.cancel = reading.cancel.clone();
        let mut open = self.open(py)?;
        let open = open.as_mut().ok_or_else(over)?;
        reading
            .run(py, |source, progress| {
                open.insert(source, &options, progress)
            })
            .map(Report::from)
    }

    /// Answers a query over the database with the transaction's changes so far; see `Database.query`.
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None, keep=True)"
    )]
    fn query<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view = self.with(py, &UpdateOptions::default(), OpenTransaction::database)?;
        run_query(py, &view, None, Asked::Any, text, bindings, keywords)
    }

    /// Makes all changes durable and visible.
    fn commit(&self, py: Python<'_>) -> PyResult<Report> {
        let open = self.take(py)?;
        // From here on the changes cannot be undone, so nothing may interrupt the call.
        py.detach(|| open.commit())
            .map(Report::from)
            .map_err(exception)
    }

    /// Discards all changes.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.take(py)?;
        py.detach(|| drop(open));
        Ok(())
    }

    /// True if the transaction was neither committed nor rolled back.
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.open(py)?.is_some())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (kind, _value, _trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if self.is_open(py)? {
            if kind.is_none() {
                self.commit(py)?;
            } else {
                self.rollback(py)?;
            }
        }
        Ok(false)
    }
}

impl Transaction {
    fn apply(&self, py: Python<'_>, batch: &Batch) -> PyResult<Report> {
        let options = UpdateOptions::default();
        self.with(py, &options, |open| open.apply(batch, &options))
            .map(Report::from)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.take() else {
            return;
        };
        Python::attach(|py| {
            let db = self.db.get();
            // The owner is reset before the transaction ends, since another thread's transaction may begin as soon as
            // it does.
            if db.home.is_here() {
                db.set_owner(py, None);
            }
            db.home.drop(open);
        });
    }
}

/// Returns an error if this thread has an open transaction, for whose end the call would wait for ever.
pub fn not_within(owner: Option<ThreadId>) -> PyResult<()> {
    if owner == Some(std::thread::current().id()) {
        let why = "this thread has an open transaction: another update would wait for it for ever; call the transaction's own methods";
        return Err(named("TransactionError", why));
    }
    Ok(())
}
