//! `Database`: opened, asked, explained.

use crate::errors::{exception, named};
use crate::loading::{Keywords, Reading};
use crate::options::{of_query, of_update};
use crate::prefixes::Prefixes;
use crate::prepared::{self, Bindings, Kept};
use crate::profile::Profile;
use crate::quads::{Quads, write_quads};
use crate::solutions::Solutions;
use crate::terms;
use crate::triples::{Triples, unexpected};
use crate::update::{Report, Transaction, batch, not_within};
use crate::wait::interruptible;
use jindou::oxrdf::{GraphName, Term};
use jindou::results::{Collector, Prefixes as Names};
use jindou::{
    Access, Answer, CancelToken, Database, Durability, MergeOptions, OpenOptions, PlannedQuery,
    Progress, QuadMatches, QuadPattern, QueryForm, QueryOptions, ResultFormat, ResultWriter,
    Runtime, UpdateOptions, Verify,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

/// A database: a store directory (`jindou.open`) or one in memory (`jindou.memory`). Any number of threads may use it.
///
/// A query sees the data as it was when the query began.
#[pyclass(frozen, name = "Database", module = "jindou")]
pub struct PyDatabase {
    /// `None` once closed.
    db: Mutex<Option<Database>>,
    kept: Kept,
    /// The thread that has a transaction open.
    owner: Mutex<Option<ThreadId>>,
    path: Option<PathBuf>,
}

/// Opens a store directory. It can be changed if no other process is changing it; with `read_only=True` nothing in its
/// directory is touched, with `read_only=False` it is an error if it cannot be changed.
///
/// `verify` says when the store's files are compared with their checksums: `"eager"` (before it opens; some 3 GB a second, if they are in memory),
/// `"background"` (meanwhile; what was answered before damage is found may be wrong) or `"off"` (damage may give wrong answers).
/// `durability`: `"batch"` (an update that returned is never lost), or `"none"` (the loss of power may lose it).
/// `threads` and `memory` (bytes) limit all queries together. With `create=True` an empty store is made where there is nothing yet.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "the keywords of a Python function"
)]
#[pyo3(signature = (path, *, create = false, read_only = None, verify = "eager", durability = "batch", threads = None, memory = None))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    create: bool,
    read_only: Option<bool>,
    verify: &str,
    durability: &str,
    threads: Option<usize>,
    memory: Option<u64>,
) -> PyResult<PyDatabase> {
    if create && read_only == Some(true) {
        return Err(PyValueError::new_err(
            "create=True makes a store to be changed: leave out read_only=True",
        ));
    }
    let access = match read_only {
        None => Access::Any,
        Some(true) => Access::Read,
        Some(false) => Access::Write,
    };
    let verify: Verify = verify.parse().map_err(PyValueError::new_err)?;
    let durability = match durability {
        "batch" => Durability::Batch,
        "none" => Durability::None,
        other => {
            let why = format!("durability='{other}': write \"batch\" or \"none\"");
            return Err(PyValueError::new_err(why));
        }
    };
    let mut runtime = Runtime::builder();
    if let Some(threads) = threads {
        runtime = runtime.threads(threads);
    }
    if let Some(memory) = memory {
        runtime = runtime.memory(memory);
    }
    let options = OpenOptions::default()
        .with_access(access)
        .with_create(create)
        .with_verify(verify)
        .with_durability(durability)
        .with_runtime(runtime.build());
    let db = interruptible(py, &Default::default(), || {
        Database::open_with(&path, &options)
    })?;
    Ok(PyDatabase::new(db, Some(path)))
}

/// An empty database in memory, which ends with the object. For many millions of quads load a store.
#[pyfunction]
pub fn memory() -> PyDatabase {
    PyDatabase::new(Database::in_memory(), None)
}

impl PyDatabase {
    fn new(db: Database, path: Option<PathBuf>) -> Self {
        Self {
            db: Mutex::new(Some(db)),
            kept: Kept::default(),
            owner: Mutex::new(None),
            path,
        }
    }

    pub fn get(&self, py: Python<'_>) -> PyResult<Database> {
        let db = self
            .db
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        db.clone()
            .ok_or_else(|| named("ClosedError", "the database is closed"))
    }

    /// The database, for a thread that has no transaction open.
    pub fn writable(&self, py: Python<'_>) -> PyResult<Database> {
        let owner = *self
            .owner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        not_within(owner)?;
        self.get(py)
    }

    /// Notes which thread has a transaction open.
    pub fn set_owner(&self, py: Python<'_>, owner: Option<ThreadId>) {
        *self
            .owner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner) = owner;
    }

    fn apply(&self, py: Python<'_>, quads: &Bound<'_, PyAny>, insert: bool) -> PyResult<Report> {
        let db = self.writable(py)?;
        let batch = batch(quads, insert)?;
        let options = UpdateOptions::default();
        interruptible(py, &options.cancel, || db.apply(&batch, &options)).map(Report)
    }

    fn matching(&self, py: Python<'_>, pattern: &QuadPattern) -> PyResult<QuadMatches> {
        let db = self.get(py)?;
        let options = QueryOptions::default();
        interruptible(py, &options.cancel, || db.quads_matching(pattern, &options))
    }
}

/// The prefixes that a graph is written with: none in tables, whose IRIs stay whole.
fn names(db: &Database, text: &str, options: &QueryOptions, format: ResultFormat) -> Names {
    if !matches!(format, ResultFormat::Rdf(_)) {
        return Names::new();
    }
    let mut names = match options.common_prefixes {
        true => Names::common(),
        false => Names::new(),
    };
    if options.store_prefixes {
        names.declare_all(&db.prefixes());
    }
    names.declare_of(text);
    names
}

/// The argument `...`.
fn any_graph() -> Py<PyAny> {
    Python::attach(|py| py.Ellipsis())
}

/// The graph of a pattern: any for `...`.
fn graph_pattern(name: &Bound<'_, PyAny>) -> PyResult<Option<GraphName>> {
    match name.is(name.py().Ellipsis()) {
        true => Ok(None),
        false => terms::graph_of(Some(name)).map(Some),
    }
}

#[pymethods]
impl PyDatabase {
    /// Answers a SPARQL query: `Solutions` for SELECT, a `bool` for ASK, `Triples` for CONSTRUCT and DESCRIBE.
    ///
    /// `bindings` puts terms (or plain values) in the place of variables: `db.query(text, {"planet": IRI(…)})`.
    /// Keywords: `timeout` (seconds), `memory` (bytes), `threads`, `default_graphs`, `named_graphs` (IRIs, in place of FROM),
    /// `union_default_graph`, `common_prefixes` (`rdf:`, `foaf:`, … without a PREFIX; true by default), `store_prefixes` (those of `prefixes()`
    /// without a PREFIX; true by default), `cancel` (a
    /// `CancelToken`), `keep` (false: rows are given away as they are read, so that memory does not grow with the answer).
    #[pyo3(signature = (text, bindings = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, bindings=None, *, timeout=None, memory=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None, keep=True)"
    )]
    fn query<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        bindings: Option<&Bound<'py, PyDict>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let db = self.get(py)?;
        run_query(py, &db, Some(&self.kept), text, bindings, keywords)
    }

    /// Runs a SPARQL update: all of its operations, or none.
    ///
    /// Keywords: `timeout`, `memory`, `threads`, `base`, `graph` (the one graph that it may change, and that it means where it
    /// names none), `using_graphs`, `using_named_graphs`, `union_default_graph`, `common_prefixes`, `store_prefixes`, `load_from` (the folder that LOAD may read `file:` IRIs of), `cancel`.
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
        interruptible(py, &options.cancel, || db.update(text, &options)).map(Report)
    }

    /// Opens a transaction of several calls; waits while another one is open. Keywords: `timeout`, `memory`, `cancel`.
    #[pyo3(signature = (**keywords))]
    #[pyo3(text_signature = "($self, *, timeout=None, memory=None, cancel=None)")]
    fn transaction(
        this: &Bound<'_, Self>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Transaction> {
        Transaction::begin(this.py(), this.clone().unbind(), &of_update(keywords)?)
    }

    /// Adds the quads of files or of a text, in one transaction; blank nodes are new ones.
    ///
    /// Keywords: `format`, `graph`, `base`, `text`, `lenient`, `progress`, as of `jindou.load`; and `timeout`, `memory`,
    /// `threads`, `cancel`.
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
            .map(Report)
    }

    /// Adds a quad (or a triple, to the default graph).
    fn add(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, PyTuple::new(py, [quad])?.as_any(), true)
    }

    /// Adds any number of quads in one transaction.
    fn add_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, quads, true)
    }

    /// Removes a quad.
    fn remove(&self, py: Python<'_>, quad: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, PyTuple::new(py, [quad])?.as_any(), false)
    }

    /// Removes any number of quads in one transaction.
    fn remove_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<Report> {
        self.apply(py, quads, false)
    }

    /// The quads with these terms: `None` is any term; `graph_name=None` is the default graph, `...` any graph. They are those of the
    /// moment of the call; a blank node is the one that the store has under that label.
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

    /// Number of quads, those of named graphs included.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.get(py)?.quads() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Names of the named graphs that have a quad.
    fn graphs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let db = self.get(py)?;
        let options = QueryOptions::default();
        let answer = interruptible(py, &options.cancel, || {
            db.query_with("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", &options)
        })?;
        let out = PyList::empty(py);
        for term in answer.solutions().iter().flatten().flatten() {
            out.append(terms::object(py, term)?)?;
        }
        Ok(out)
    }

    /// The prefixes that queries need not declare, besides the common ones: those that loaded documents declare, and those that are set
    /// here. Works as a dict: `db.prefixes()["ex"]`; setting and deleting one changes the database.
    fn prefixes(this: &Bound<'_, Self>) -> PyResult<Prefixes> {
        this.get().get(this.py())?;
        Ok(Prefixes::new(this.clone().unbind()))
    }

    /// The plan of a query, step by step, with estimates; the query is not run. Keywords as of `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
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

    /// Reasons why a query has no answer, to be asked after one without rows: a dict for each reason, with `kind`, `message`, `line`, `column`
    /// (`None` where it has no place) and `suggestions`. An empty list for a query that has rows. Keywords as of `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
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

    /// Runs a query and says what each step of it did: rows, time, bytes. Its rows are counted and forgotten. Keywords as of
    /// `query`.
    #[pyo3(signature = (text, **keywords))]
    #[pyo3(
        text_signature = "($self, text, *, timeout=None, memory=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
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

    /// Answers a query as text: `format` is `"json"`, `"xml"`, `"csv"`, `"tsv"`, `"ndjson"`, `"table"`; for triples `"turtle"`, `"ntriples"`
    /// and others. Gives the bytes, or writes them to the file `to` and gives the number of rows. Other keywords as of `query`.
    #[pyo3(signature = (text, format = "json", *, to = None, **keywords))]
    #[pyo3(
        text_signature = "($self, text, format='json', *, to=None, timeout=None, memory=None, threads=None, default_graphs=None, named_graphs=None, union_default_graph=None, common_prefixes=True, store_prefixes=True, cancel=None)"
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
        let Some(to) = to else {
            let bytes = interruptible(py, &options.cancel, || {
                let mut bytes = Vec::new();
                let mut writer = ResultWriter::new(&mut bytes, format)
                    .with_graphs(format)
                    .with_prefixes(names(&db, text, &options, format));
                db.run(text, &options, &mut writer)?;
                drop(writer);
                Ok(bytes)
            })?;
            return Ok(PyBytes::new(py, &bytes).into_any());
        };
        let report = interruptible(py, &options.cancel, || {
            let file = File::create(&to).map_err(|e| jindou::Error::io(&to, e))?;
            let mut writer = ResultWriter::new(BufWriter::with_capacity(1 << 16, file), format)
                .with_graphs(format)
                .with_prefixes(names(&db, text, &options, format));
            db.run(text, &options, &mut writer)
        })?;
        Ok(report.rows.into_pyobject(py)?.into_any())
    }

    /// Writes all quads, or those of one graph, as N-Quads: gives the bytes, or writes them to the file `to` and gives the number of
    /// quads. `graph_name=None` is the default graph, `...` all graphs. For many millions of quads use the command `jindou dump`, which
    /// also writes the other formats.
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
        let Some(to) = to else {
            let bytes = interruptible(py, &cancel, || {
                let mut bytes = Vec::new();
                write_quads(&found, &mut bytes, Path::new("memory"), &cancel)?;
                Ok(bytes)
            })?;
            return Ok(PyBytes::new(py, &bytes).into_any());
        };
        interruptible(py, &cancel, || {
            let file = File::create(&to).map_err(|e| jindou::Error::io(&to, e))?;
            let mut out = BufWriter::with_capacity(1 << 16, file);
            write_quads(&found, &mut out, &to, &cancel)?;
            out.flush().map_err(|e| jindou::Error::io(&to, e))
        })?;
        Ok(found.len().into_pyobject(py)?.into_any())
    }

    /// Counts: triples, quads of named graphs, terms, predicates with their statements, classes with their instances.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let db = self.get(py)?;
        let summary = py.detach(|| db.summary());
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

    /// Merges what updates changed into the files of the store, so that it opens and answers as if loaded. Gives the number of
    /// edits that were merged.
    fn merge(&self, py: Python<'_>) -> PyResult<u64> {
        let db = self.writable(py)?;
        let options = MergeOptions::default();
        py.detach(|| db.merge(&options, &Progress::default()))
            .map(|report| report.edits)
            .map_err(exception)
    }

    /// Number of the current snapshot: each update that changes something makes one.
    #[getter]
    fn snapshot(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get(py)?.snapshot_number())
    }

    /// The store's directory; `None` in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// True if it can be changed.
    #[getter(writable)]
    fn is_writable(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.get(py)?.is_writable().is_ok())
    }

    /// Closes the database. Answers that are still read keep what they read until they end.
    fn close(&self, py: Python<'_>) {
        let mut db = self
            .db
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
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

/// Texts up to this length are planned at once, on the thread that calls.
const SHORT: usize = 1 << 14;

/// Answers a query; `keep` is the one keyword that is not the library's.
pub fn run_query<'py>(
    py: Python<'py>,
    db: &Database,
    kept: Option<&Kept>,
    text: &str,
    bindings: Option<&Bound<'py, PyDict>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut keywords = Keywords::new(keywords)?;
    let keep = match keywords.take("keep")? {
        Some(keep) => keep.extract()?,
        None => true,
    };
    let options = of_query(keywords.rest())?;
    let mut bound = Bindings::new();
    for (name, value) in bindings.into_iter().flatten() {
        let name: String = name.extract()?;
        let name = name.trim_start_matches(['?', '$']).to_owned();
        bound.push((name, terms::term_of(&value)?));
    }
    let plan = || prepared::plan(db, kept, text, &bound, &options);
    let planned: PlannedQuery = if text.len() <= SHORT {
        py.detach(plan).map_err(exception)?
    } else {
        interruptible(py, &options.cancel, plan)?
    };
    match planned.form() {
        QueryForm::Select => {
            let cursor = py
                .detach(|| db.cursor_planned(planned, &options))
                .map_err(exception)?;
            let solutions = Solutions::new(cursor, options.cancel.clone(), keep);
            Ok(Bound::new(py, solutions)?.into_any())
        }
        QueryForm::Ask | QueryForm::Construct | QueryForm::Describe => {
            let answer = interruptible(py, &options.cancel, || {
                let memory = options.memory.clone();
                let memory = memory.unwrap_or_else(|| {
                    let all = db.runtime().memory();
                    all.part(all.limit())
                });
                let mut collector = Collector::new(memory.clone());
                let options = options.clone().with_memory(memory);
                db.run_planned(&planned, &options, &mut collector)?;
                Ok(collector.into_answer())
            })?;
            match answer {
                Answer::Boolean(yes) => Ok(yes.into_pyobject(py)?.to_owned().into_any()),
                Answer::Graph(triples) => {
                    let triples = Arc::new(triples);
                    Ok(Bound::new(py, Triples { triples })?.into_any())
                }
                Answer::Solutions { .. } => Err(unexpected()),
            }
        }
    }
}
