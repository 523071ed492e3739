//! The class `Database`.

use crate::backups;
use crate::errors::{exception, named};
use crate::facts;
use crate::frame::Frame;
use crate::loading::{Keywords, Reading};
use crate::options::{of_query, of_update};
use crate::prefixes::Prefixes;
use crate::prepared::Kept;
use crate::process::Home;
use crate::profile::Profile;
use crate::quads::{Quads, write_quads};
use crate::query::{Asked, names, run_query};
use crate::terms;
use crate::update::{Report, Transaction, batch, not_within};
use crate::wait::{interruptible, locked};
use jindou::oxrdf::{GraphName, Term};
use jindou::{
    CancelToken, Database, MergeOptions, Progress, QuadMatches, QuadPattern, QueryOptions,
    ResultFormat, ResultWriter, UpdateOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

/// A database: a store directory (`jindou.open`) or one in memory (`jindou.memory`). Any number of threads may use it.
///
/// A query sees the data as of the moment when the query began.
#[pyclass(frozen, name = "Database", module = "jindou")]
pub struct PyDatabase {
    pub home: Home,
    /// `None` after `close`.
    db: Mutex<Option<Database>>,
    kept: Kept,
    /// The thread that has an open transaction, if there is one.
    owner: Mutex<Option<ThreadId>>,
    path: Option<PathBuf>,
}

impl PyDatabase {
    /// Wraps an open database, with the directory of its store.
    pub fn new(db: Database, path: Option<PathBuf>) -> Self {
        Self {
            home: Home::here(),
            db: Mutex::new(Some(db)),
            kept: Kept::default(),
            owner: Mutex::new(None),
            path,
        }
    }

    pub fn get(&self, py: Python<'_>) -> PyResult<Database> {
        // Checked first: another thread of the parent may have held the lock when this process was forked, so the lock
        // may never be released here.
        self.home.check()?;
        let db = locked(py, &self.db);
        db.clone()
            .ok_or_else(|| named("ClosedError", "the database is closed"))
    }

    /// The database, for changing it; an error if this thread has an open transaction, for whose end it would wait for
    /// ever.
    pub fn writable(&self, py: Python<'_>) -> PyResult<Database> {
        self.home.check()?;
        let owner = *locked(py, &self.owner);
        not_within(owner)?;
        self.get(py)
    }

    /// Records which thread has an open transaction.
    pub fn set_owner(&self, py: Python<'_>, owner: Option<ThreadId>) {
        *locked(py, &self.owner) = owner;
    }

    fn apply(&self, py: Python<'_>, quads: &Bound<'_, PyAny>, insert: bool) -> PyResult<Report> {
        let db = self.writable(py)?;
        let batch = batch(quads, insert)?;
        let options = UpdateOptions::default();
        interruptible(py, &options.cancel, || db.apply(&batch, &options)).map(Report::from)
    }

    fn asked<'py>(
        &self,
        py: Python<'py>,
        asked: Asked,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let db = self.get(py)?;
        run_query(py, &db, Some(&self.kept), asked, text, bindings, keywords)
    }

    fn matching(&self, py: Python<'_>, pattern: &QuadPattern) -> PyResult<QuadMatches> {
        let db = self.get(py)?;
        let options = QueryOptions::default();
        interruptible(py, &options.cancel, || db.quads_matching(pattern, &options))
    }
}

/// The default of arguments that stand for any graph: `...`.
fn any_graph() -> Py<PyAny> {
    Python::attach(|py| py.Ellipsis())
}

/// The graph in a pattern; `None` (any graph) for `...`.
fn graph_pattern(name: &Bound<'_, PyAny>) -> PyResult<Option<GraphName>> {
    match name.is(name.py().Ellipsis()) {
        true => Ok(None),
        false => terms::graph_of(Some(name)).map(Some),
    }
}

/// Writes to a file, and returns the number that `write` returns; without a file, returns the bytes that it wrote.
fn written<'py>(
    py: Python<'py>,
    to: Option<&Path>,
    cancel: &CancelToken,
    write: impl FnOnce(&mut (dyn Write + Send)) -> jindou::Result<u64> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(to) = to else {
        let mut bytes = Vec::new();
        interruptible(py, cancel, || write(&mut bytes))?;
        return Ok(PyBytes::new(py, &bytes).into_any());
    };
    let number = interruptible(py, cancel, || {
        let io = |e| jindou::Error::io(to, e);
        let mut out = BufWriter::with_capacity(1 << 16, File::create(to).map_err(io)?);
        let number = write(&mut out)?;
        out.flush().map_err(io)?;
        Ok(number)
    })?;
    Ok(number.into_pyobject(py)?.into_any())
}

#[pymethods]
impl PyDatabase {
    /// Answers a SPARQL query: `Solutions` for SELECT, a `bool` for ASK, `Triples` for CONSTRUCT and DESCRIBE.
    ///
    /// `bindings` replaces variables by terms (or plain values): `db.query(text, {"planet": IRI(…)})`. A variable with
    /// a list, a tuple or a set takes any of its terms, as with VALUES at the start of the WHERE clause.
    /// Keywords: `timeout` (seconds), `memory` (bytes), `temp` (bytes of temporary files if that is not enough; 0 for
    /// none), `threads`, `default_graphs`, `named_graphs` (IRIs, in place of FROM), `union_default_graph`, `common_prefixes` (`rdf:`, `foaf:`, … need no PREFIX; true by default),
    /// `store_prefixes` (those of `prefixes()` need no PREFIX; true by default), `cancel` (a `CancelToken`), `keep` (if
    /// false, rows are dropped after they were read, so that memory does not grow with the answer).
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
        self.asked(py, Asked::Any, text, bindings, keywords)
    }

    /// As `query`, for a SELECT: `Solutions`. Another query is a `QueryError`.
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None, keep=True)"
    )]
    fn select<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.asked(py, Asked::Select, text, bindings, keywords)
    }

    /// As `query`, for an ASK: a `bool`. Another query is a `QueryError`.
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.asked(py, Asked::Ask, text, bindings, keywords)
    }

    /// As `query`, for a CONSTRUCT or a DESCRIBE: `Triples`. Another query is a `QueryError`.
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn construct<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.asked(py, Asked::Construct, text, bindings, keywords)
    }

    /// As `query`, to be awaited: other tasks of the event loop continue in the meantime. Returns when the whole answer
    /// is there. Cancelling the task cancels the query, and with it the token that is given as `cancel`.
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn query_async<'py>(
        this: &Bound<'py, Self>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        py.import("jindou._async")?
            .call_method1("query", (this, text, bindings, keywords))
    }

    /// Runs a SPARQL update: all of its operations, or none.
    ///
    /// Keywords: `timeout`, `memory`, `threads`, `base`, `graph` (the only graph that the update may change, and the
    /// one that it uses where it names none), `using_graphs`, `using_named_graphs`, `union_default_graph`,
    /// `common_prefixes`, `store_prefixes`, `load_from` (the folder from which LOAD may read `file:` IRIs), `cancel`.
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
        let options = of_update(keywords)?;
        let db = self.writable(py)?;
        interruptible(py, &options.cancel, || db.update(text, &options)).map(Report::from)
    }

    /// Opens a transaction of several calls. Waits while another transaction is open. Keywords: `timeout`, `memory`,
    /// `cancel`.
    #[pyo3(signature = (**keywords))]
    #[pyo3(text_signature = "($self, *, timeout=None, memory=None, cancel=None)")]
    fn transaction(
        this: &Bound<'_, Self>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Transaction> {
        Transaction::begin(this.py(), this.clone().unbind(), &of_update(keywords)?)
    }

    /// Adds the quads of files or of a text in one transaction. Their blank nodes are new ones.
    ///
    /// Keywords: `format`, `graph`, `base`, `text`, `lenient`, `progress`, as for `jindou.load`; and `timeout`,
    /// `memory`, `threads`, `cancel`.
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
        let db = self.writable(py)?;
        let reading = Reading::new(files, &mut keywords, true)?;
        let mut options = of_update(keywords.rest())?;
        options.cancel = reading.cancel.clone();
        reading
            .run(py, |source, progress| db.insert(source, &options, progress))
            .map(Report::from)
    }

    /// Adds a quad (or a triple, to the default graph).
    fn add(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, PyTuple::new(py, [quad])?.as_any(), true)
    }

    /// Adds any number of quads in one transaction.
    fn add_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, quads, true)
    }

    /// Adds the rows of a DataFrame (pandas, polars) or of an Arrow table as triples, in one transaction. A pandas
    /// DataFrame needs pyarrow.
    ///
    /// Without `columns`, each row is a triple, from the columns that `subject`, `predicate` and `object` name. With
    /// `columns`, a dict from names of columns to predicates, each cell of these columns is the object of a triple,
    /// whose subject is in the row's column `subject`. An empty cell (null, NaN, NaT) makes no triple.
    ///
    /// In subjects, predicates and the columns that `iris` lists, text is an IRI or, as `_:label`, a blank node; in
    /// other objects it is a plain literal. With `syntax="ntriples"`, all text is in N-Triples syntax. Integers,
    /// floats, decimals, truth values, dates and times become literals of their datatypes. Other keywords:
    /// `graph_name`, `timeout`, `memory`, `threads`, `cancel`.
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
        let db = self.writable(py)?;
        let (frame, options) = Frame::new(frame, columns, keywords)?;
        frame
            .run(py, &options, |frame, progress| {
                db.insert(frame, &options, progress)
            })
            .map(Report::from)
    }

    /// Removes a quad.
    fn remove(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, PyTuple::new(py, [quad])?.as_any(), false)
    }

    /// Removes any number of quads in one transaction.
    fn remove_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, quads, false)
    }

    /// The quads with these terms, as of the moment of the call. `None` stands for any term; `graph_name=None` is the
    /// default graph, `...` any graph. A blank node is the one with that label in the store.
    #[pyo3(signature = (subject = None, predicate = None, object = None, graph_name = any_graph()))]
    #[pyo3(text_signature = "($self, subject=None, predicate=None, object=None, graph_name=...)")]
    fn quads(
        &self,
        py: Python<'_>,
        subject: Option<&Bound<'_, PyAny>>,
        predicate: Option<&Bound<'_, PyAny>>,
        object: Option<&Bound<'_, PyAny>>,
        graph_name: Py<PyAny>,
    ) -> PyResult<Quads> {
        let term = |value: Option<&Bound<'_, PyAny>>| value.map(terms::term_of).transpose();
        let pattern = QuadPattern::default()
            .with_subject(term(subject)?)
            .with_predicate(term(predicate)?)
            .with_object(term(object)?)
            .with_graph(graph_pattern(graph_name.bind(py))?);
        Ok(Quads::new(self.matching(py, &pattern)?))
    }

    fn __contains__(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<bool> {
        let quad = terms::quad_of(quad)?;
        let pattern = QuadPattern::default()
            .with_subject(Term::from(quad.subject))
            .with_predicate(Term::from(quad.predicate))
            .with_object(quad.object)
            .with_graph(quad.graph_name);
        Ok(!self.matching(py, &pattern)?.is_empty())
    }

    /// Number of quads, including those of named graphs.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.get(py)?.quads() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Names of the named graphs that contain a quad.
    fn graphs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let db = self.get(py)?;
        let options = QueryOptions::default();
        let answer = interruptible(py, &options.cancel, || {
            db.query_with("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", &options)
        })?;
        let out = PyList::empty(py);
        for term in answer.solutions().iter().flatten().flatten() {
            out.append(terms::object(py, term.clone())?)?;
        }
        Ok(out)
    }

    /// The prefixes that queries need not declare, in addition to the common ones: those that loaded documents declare,
    /// and those that are set here. Works as a dict: `db.prefixes()["ex"]`. Setting or deleting a prefix changes the
    /// database.
    fn prefixes(this: &Bound<'_, Self>) -> PyResult<Prefixes> {
        this.get().get(this.py())?;
        Ok(Prefixes::new(this.clone().unbind()))
    }

    /// The plan of a query, step by step, with estimates. The query is not run. Keywords as for `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn explain(
        &self,
        py: Python<'_>,
        text: &str,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let options = of_query(keywords)?;
        let db = self.get(py)?;
        interruptible(py, &options.cancel, || db.explain(text, &options))
    }

    /// Reasons why a query has no answer, for a query that returned no rows: a dict for each reason, with `kind`,
    /// `message`, `line`, `column` (both `None` if the reason has no position) and `suggestions`. An empty list for a
    /// query that has rows. Keywords as for `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn why_empty<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = of_query(keywords)?;
        let db = self.get(py)?;
        let reasons = interruptible(py, &options.cancel, || db.why_empty(text, &options))?;
        facts::reasons(py, reasons)
    }

    /// Runs a query and reports what each of its steps did: rows, time, bytes. The rows are only counted. Keywords as
    /// for `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn profile(
        &self,
        py: Python<'_>,
        text: &str,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Profile> {
        let options = of_query(keywords)?.with_profile(true);
        let db = self.get(py)?;
        interruptible(py, &options.cancel, || {
            let mut writer = ResultWriter::new(std::io::sink(), ResultFormat::Tsv);
            db.run(text, &options, &mut writer)
        })
        .map(Profile::new)
    }

    /// Answers a query as text: `format` is `"json"`, `"xml"`, `"csv"`, `"tsv"`, `"ndjson"` or `"table"`; for triples
    /// `"turtle"`, `"ntriples"` and others. Returns the bytes, or writes them to the file `to` and returns the number
    /// of rows. Other keywords as for `query`.
    #[pyo3(signature = (text, format = "json", *, to = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, format='json', *, to=None, timeout=None, memory=None, temp=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
    )]
    fn serialize<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        format: &str,
        to: Option<PathBuf>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let format: ResultFormat = format.parse().map_err(PyValueError::new_err)?;
        let options = of_query(keywords)?;
        let db = self.get(py)?;
        written(py, to.as_deref(), &options.cancel, |out| {
            let mut writer = ResultWriter::new(out, format)
                .with_graphs(format)
                .with_prefixes(names(&db, text, &options, format));
            Ok(db.run(text, &options, &mut writer)?.rows)
        })
    }

    /// Writes all quads, or those of one graph, as N-Quads. Returns the bytes, or writes them to the file `to` and
    /// returns the number of quads. `graph_name=None` is the default graph, `...` all graphs. For many millions of
    /// quads, use the command `jindou dump`, which can also write other formats.
    #[pyo3(signature = (to = None, *, graph_name = any_graph()))]
    #[pyo3(text_signature = "($self, to=None, *, graph_name=...)")]
    fn dump<'py>(
        &self,
        py: Python<'py>,
        to: Option<PathBuf>,
        graph_name: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pattern = QuadPattern::default().with_graph(graph_pattern(graph_name.bind(py))?);
        let found = self.matching(py, &pattern)?;
        let cancel = CancelToken::new();
        let name = to.as_deref().unwrap_or(Path::new("memory"));
        written(py, to.as_deref(), &cancel, |out| {
            write_quads(&found, out, name, &cancel)?;
            Ok(found.len() as u64)
        })
    }

    /// Counts: triples, quads of named graphs, terms, predicates with their statements, classes with their instances.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let db = self.get(py)?;
        facts::summary(py, py.detach(|| db.summary()))
    }

    /// Merges the changes by updates into the files of the store, so that it opens and answers as fast as after a load.
    /// Returns the number of edits that were merged.
    fn merge(&self, py: Python<'_>) -> PyResult<u64> {
        let db = self.writable(py)?;
        let options = MergeOptions::default();
        py.detach(|| db.merge(&options, &Progress::default()))
            .map(|report| report.edits)
            .map_err(exception)
    }

    /// Backs up the store to a folder; the store can be used meanwhile. Only files that the folder does not have yet
    /// are copied. `keep` is the number of backups to keep there; older ones are removed. `jindou.restore` makes a
    /// store from a backup.
    #[pyo3(signature = (to, *, keep = None, cancel = None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        to: PathBuf,
        keep: Option<usize>,
        cancel: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let db = self.get(py)?;
        backups::take(py, &db, self.path.as_deref(), &to, keep, cancel)
    }

    /// For a database that is open read-only: shows what another process has changed in the store since. Queries see
    /// the store as of the time when it was opened or last refreshed. Returns true if there was something new.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let db = self.get(py)?;
        interruptible(py, &CancelToken::new(), || db.refresh())
    }

    /// Number of the current snapshot. Each update that changes something makes a new one.
    #[getter]
    fn snapshot(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get(py)?.snapshot_number())
    }

    /// The store's directory; `None` for a database in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// True if the database can be changed.
    #[getter(writable)]
    fn is_writable(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.get(py)?.is_writable().is_ok())
    }

    /// Closes the database. Answers that are still being read can be read to their end.
    fn close(&self, py: Python<'_>) {
        if !self.home.is_here() {
            return;
        }
        let mut db = locked(py, &self.db);
        let taken = db.take();
        drop(db);
        self.kept.clear();
        py.detach(|| drop(taken));
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = match &self.path {
            Some(path) => format!("{path:?}"),
            None => "in memory".into(),
        };
        match self.get(py) {
            Ok(db) => format!("<jindou.Database {place}: {} quads>", db.quads()),
            Err(_) => format!("<jindou.Database {place}: closed>"),
        }
    }
}

impl Drop for PyDatabase {
    fn drop(&mut self) {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.home.drop((db.take(), std::mem::take(&mut self.kept)));
    }
}
