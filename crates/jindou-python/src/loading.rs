//! Loading of RDF files and text into a new store directory or into a database.

use crate::errors::exception;
use crate::options::{graph_iri, token};
use crate::wait::ticking;
use jindou::parse::{ContextFiles, Format, Input, Replacement, Sources};
use jindou::{
    CancelToken, CancellableSource, Database, LOAD_PHASES, Progress, QuadSource, Result, Runtime,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The documents of a load, and how to report progress.
pub struct Reading {
    pub sources: Sources,
    pub cancel: CancelToken,
    callback: Option<Py<PyAny>>,
}

impl Reading {
    /// Interprets the arguments of a call to `load`. `numbered` is for loads into an existing store: each document then
    /// gets blank nodes of its own.
    pub fn new(
        files: &Bound<'_, PyTuple>,
        keywords: &mut Keywords<'_>,
        numbered: bool,
    ) -> PyResult<Self> {
        let format = match keywords.take("format")? {
            Some(name) => Some(format_of(&name.extract::<String>()?)?),
            None => None,
        };
        let graph = match keywords.take("graph")? {
            Some(graph) => Some(graph_iri(&graph)?),
            None => None,
        };
        let lenient = keywords.flag("lenient")?;
        let contexts = ContextFiles::default();
        let mut builder = Sources::builder()
            .lenient(lenient)
            .format(format)
            .contexts(Some(Arc::new(contexts)));
        if let Some(base) = keywords.take("base")? {
            builder = builder.base_iri(Some(base.extract()?));
        }
        builder = builder.graph(graph.clone());
        if numbered {
            builder = builder.documents_from(Database::document_number());
        }
        for file in files.iter() {
            for path in paths(&file)? {
                builder = builder.input(Input {
                    path,
                    format,
                    graph: graph.clone(),
                });
            }
        }
        let text = keywords.take("text")?;
        if let Some(text) = &text {
            let bytes = match text.cast::<PyBytes>() {
                Ok(bytes) => bytes.as_bytes().to_vec(),
                Err(_) => text.extract::<String>()?.into_bytes(),
            };
            let format = format.ok_or_else(|| {
                PyTypeError::new_err("text= needs format=, such as \"turtle\" or \"ntriples\"")
            })?;
            builder = builder.text("<text>", bytes, format);
        }
        if files.is_empty() && text.is_none() {
            if numbered {
                return Err(PyTypeError::new_err(
                    "nothing to load: name files, or pass text=",
                ));
            }
            // A new store may be empty.
            builder = builder.text("<nothing>", Vec::<u8>::new(), Format::NTriples);
        }
        let cancel = match keywords.take("cancel")? {
            Some(cancel) => token(&cancel)?,
            None => CancelToken::new(),
        };
        let callback = match keywords.take("progress")? {
            Some(p) => Some(
                files
                    .py()
                    .import("jindou._progress")?
                    .call_method1("callback", (p,))?,
            ),
            None => None,
        };
        Ok(Self {
            sources: builder.build().map_err(exception)?,
            cancel,
            callback: callback.filter(|c| !c.is_none()).map(Bound::unbind),
        })
    }

    /// Runs a load of these documents, with progress reports.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        load: impl FnOnce(&CancellableSource<'_, &Sources>, &Progress) -> Result<T> + Send,
    ) -> PyResult<T> {
        let progress = Progress::default();
        let source = CancellableSource::new(&self.sources, &self.cancel);
        let total = source.size_hint();
        let tell = |py: Python<'_>, ended: bool| match &self.callback {
            Some(callback) => told(py, callback, &progress, total, ended),
            None => Ok(()),
        };
        let done = ticking(
            py,
            &self.cancel,
            || load(&source, &progress),
            |py| tell(py, false),
        )?;
        tell(py, true)?;
        Ok(done)
    }
}

fn told(
    py: Python<'_>,
    callback: &Py<PyAny>,
    progress: &Progress,
    total: Option<u64>,
    ended: bool,
) -> PyResult<()> {
    let of = PyDict::new(py);
    let phase = progress.phase.load(Relaxed) as usize;
    of.set_item(
        "phase",
        LOAD_PHASES.get(phase).copied().unwrap_or("reading"),
    )?;
    of.set_item("bytes", progress.done.load(Relaxed))?;
    of.set_item("total_bytes", total)?;
    of.set_item("quads", progress.quads.load(Relaxed))?;
    of.set_item("skipped", progress.skipped.load(Relaxed))?;
    let part = progress.phase_permille.load(Relaxed).min(1000);
    of.set_item("phase_fraction", part as f64 / 1000.0)?;
    of.set_item("done", ended)?;
    let class = py.import("jindou._progress")?.getattr("Progress")?;
    callback.call1(py, (class.call((), Some(&of))?,))?;
    Ok(())
}

/// The paths in an argument: a single one, or a list.
fn paths(value: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value.try_iter()?.map(|p| p?.extract()).collect();
    }
    Ok(vec![value.extract()?])
}

/// A format by its name, its extension or its media type.
pub fn format_of(name: &str) -> PyResult<Format> {
    Format::from_extension(name)
        .or_else(|| Format::from_media_type(name))
        .or_else(|| name.parse().ok())
        .ok_or_else(|| {
            let all: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
            PyValueError::new_err(format!(
                "'{name}' is not an RDF format: write one of {}",
                all.join(", ")
            ))
        })
}

/// The keyword arguments of a call, which are taken one by one. At the end, the remaining ones are refused.
pub struct Keywords<'py>(Option<Bound<'py, PyDict>>);

impl<'py> Keywords<'py> {
    /// Takes the keyword arguments of a call.
    pub fn new(keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        Ok(Self(keywords.map(|k| k.copy()).transpose()?))
    }

    /// Removes a keyword; returns its value, or `None` if it was not given or is Python's `None`.
    pub fn take(&mut self, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(all) = &self.0 else {
            return Ok(None);
        };
        let Some(value) = all.get_item(key)? else {
            return Ok(None);
        };
        all.del_item(key)?;
        Ok((!value.is_none()).then_some(value))
    }

    /// Removes a truth value; returns false if it was not given.
    pub fn flag(&mut self, key: &str) -> PyResult<bool> {
        match self.take(key)? {
            Some(value) => value.extract(),
            None => Ok(false),
        }
    }

    /// The keywords that were not taken, if there are any.
    pub fn rest(&self) -> Option<&Bound<'py, PyDict>> {
        self.0.as_ref().filter(|k| !k.is_empty())
    }

    /// Returns an error if there are keywords that were not taken.
    pub fn end(&self) -> PyResult<()> {
        match self.rest() {
            None => Ok(()),
            Some(rest) => Err(PyTypeError::new_err(format!(
                "not keyword arguments of this call: {}",
                rest.keys()
            ))),
        }
    }
}

/// Report on a load: counts, sizes, and seconds of each phase.
#[pyclass(frozen, get_all, name = "LoadReport", module = "jindou")]
pub struct Loaded {
    /// Number of quads that were read, duplicates included.
    quads_read: u64,
    /// Number of distinct quads in the store.
    quads: u64,
    /// Number of distinct terms.
    terms: u64,
    /// Duration of each phase in seconds, by its name.
    phases: Py<PyDict>,
    /// Total time in seconds.
    seconds: f64,
    /// Total size of the store's files in bytes.
    store_bytes: u64,
    /// Largest number of bytes that the load had in memory at any time.
    peak_bytes: u64,
    /// Number of statements that were skipped (with `lenient=True`).
    skipped: u64,
    /// Descriptions of the first statements that were skipped.
    skipped_first: Vec<String>,
}

#[pymethods]
impl Loaded {
    fn __repr__(&self) -> String {
        format!(
            "LoadReport(quads={}, terms={}, seconds={:.3}, store_bytes={})",
            self.quads, self.terms, self.seconds, self.store_bytes
        )
    }
}

/// Loads RDF files into a new store directory, all or nothing; `jindou.open` opens it. Without files and text, the
/// store is empty.
///
/// Files may be folders, and may be compressed (gzip, bzip2, xz, zstd). Keywords: `format` (of all files, whatever
/// their names suggest), `graph` (for statements that name none), `base`, `text` (a document in place of files),
/// `lenient` (skip bad statements), `replace` (an existing store), `union_default_graph`, `threads`, `memory` (bytes),
/// `progress` (`True` for a line on standard error, or a function that gets a `Progress` a few times per second),
/// `cancel`.
#[pyfunction]
#[pyo3(signature = (store, *files, **keywords))]
#[pyo3(
    text_signature = "(store, *files, format=None, graph=None, base=None, text=None, lenient=False, replace=False, union_default_graph=False, threads=None, memory=None, progress=None, cancel=None)"
)]
pub fn load(
    py: Python<'_>,
    store: PathBuf,
    files: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Loaded> {
    let mut keywords = Keywords::new(keywords)?;
    let mut runtime = Runtime::builder();
    if let Some(threads) = keywords.take("threads")? {
        runtime = runtime.threads(threads.extract()?);
    }
    if let Some(memory) = keywords.take("memory")? {
        runtime = runtime.memory(memory.extract()?);
    }
    let replace = keywords.flag("replace")?;
    let options = runtime
        .build()
        .load_options()
        .with_replace(replace)
        .with_union_default(keywords.flag("union_default_graph")?);
    let reading = Reading::new(files, &mut keywords, false)?;
    keywords.end()?;
    let report = reading.run(py, |source, progress| match replace && store.exists() {
        true => {
            let source = Replacement::new(source, &reading.sources, "the store");
            Database::load(&store, &source, &options, progress)
        }
        false => Database::load(&store, source, &options, progress),
    })?;
    let phases = PyDict::new(py);
    for (name, seconds) in &report.seconds {
        phases.set_item(name, seconds)?;
    }
    let first = reading.sources.first_skipped();
    let first = first
        .iter()
        .map(|bad| format!("{}: {}", bad.at, bad.message));
    Ok(Loaded {
        quads_read: report.quads_read,
        quads: report.quads_stored,
        terms: report.terms,
        phases: phases.unbind(),
        seconds: report.seconds.iter().map(|(_, s)| s).sum(),
        store_bytes: report.store_bytes,
        peak_bytes: report.peak_bytes,
        skipped: reading.sources.skipped(),
        skipped_first: first.collect(),
    })
}
