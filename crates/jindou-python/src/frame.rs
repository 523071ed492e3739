//! DataFrames and Arrow tables as sources of quads.
//!
//! ```text
//! Arrow C stream ─► record batches ─► slices, a thread each ─► each distinct text of a column once ─► canonical terms ─► quads
//! ```

mod cell;

use crate::arrow::How;
use crate::errors::named;
use crate::loading::Keywords;
use crate::options::of_update;
use crate::terms;
use crate::wait::interruptible;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader};
use cell::{Cells, Role};
use jindou::oxrdf::{GraphName, Term};
use jindou::{
    Error, Progress, QuadBatch, QuadSink, QuadSource, Result, Span, UpdateOptions, UpdateReport,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyString};
use std::sync::atomic::Ordering;

/// Number of rows that are converted to quads at a time.
const ROWS: usize = 1 << 14;

/// Largest number of bytes of terms in a batch of several rows, and in a batch of a single row. Spans can address 4
/// GiB.
const BYTES: usize = 1 << 24;
const BYTES_OF_ROW: usize = 1 << 30;

/// The columns of a table from which triples are made.
struct Columns {
    subject: usize,
    /// For each object column: the predicate, the column, and how its text is interpreted.
    objects: Vec<(Predicate, usize, Role)>,
}

enum Predicate {
    Column(usize),
    Iri(Vec<u8>),
}

impl Columns {
    /// Interprets the arguments of `add_frame` that name columns.
    fn new(
        names: &[String],
        columns: Option<&Bound<'_, PyDict>>,
        keywords: &mut Keywords<'_>,
    ) -> PyResult<Self> {
        let place = |name: &str| {
            let place = names.iter().position(|n| n == name);
            place.ok_or_else(|| {
                let all = names.join(", ");
                let why = format!("the table has no column '{name}'; its columns are {all}");
                named("UsageError", &why)
            })
        };
        let mut of_keyword = |key: &str| match keywords.take(key)? {
            Some(name) => place(&name.extract::<String>()?),
            None => place(key),
        };
        let subject = of_keyword("subject")?;
        let triple = match columns {
            None => Some((of_keyword("predicate")?, of_keyword("object")?)),
            Some(_) => None,
        };
        let mut iris = Vec::new();
        if let Some(listed) = keywords.take("iris")? {
            if listed.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err(
                    "iris= takes a list of names of columns",
                ));
            }
            for name in listed.try_iter()? {
                iris.push(place(&name?.extract::<String>()?)?);
            }
        }
        let role = |column: usize| match iris.contains(&column) {
            true => Role::Node,
            false => Role::Object,
        };
        let mut objects = Vec::new();
        if let Some((predicate, object)) = triple {
            objects.push((Predicate::Column(predicate), object, role(object)));
        }
        for (name, predicate) in columns.into_iter().flatten() {
            let column = place(&name.extract::<String>()?)?;
            let predicate = Term::from(terms::predicate_of(&predicate)?);
            let predicate = Predicate::Iri(jindou::encode_term(&predicate));
            objects.push((predicate, column, role(column)));
        }
        Ok(Self { subject, objects })
    }
}

/// A table, and how its rows become quads.
pub struct Frame {
    batches: Vec<RecordBatch>,
    names: Vec<String>,
    columns: Columns,
    /// Canonical bytes of the graph's name; empty for the default graph.
    graph: Vec<u8>,
    ntriples: bool,
}

impl Frame {
    /// Interprets the arguments of `add_frame`; also returns the options of the update.
    pub fn new(
        frame: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyDict>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Self, UpdateOptions)> {
        let mut keywords = Keywords::new(keywords)?;
        let (batches, names) = read(frame)?;
        let columns = Columns::new(&names, columns, &mut keywords)?;
        let graph = match terms::graph_of(keywords.take("graph_name")?.as_ref())? {
            GraphName::DefaultGraph => Vec::new(),
            GraphName::NamedNode(n) => jindou::encode_term(&n.into()),
            GraphName::BlankNode(b) => jindou::encode_term(&b.into()),
        };
        let syntax = match keywords.take("syntax")? {
            Some(syntax) => syntax.extract::<String>()?,
            None => "plain".into(),
        };
        let frame = Self {
            batches,
            names,
            columns,
            graph,
            ntriples: How::new(true, &syntax)?.is_ntriples(),
        };
        Ok((frame, of_update(keywords.rest())?))
    }

    /// Passes the quads to `insert`, without the interpreter's lock.
    pub fn run(
        &self,
        py: Python<'_>,
        options: &UpdateOptions,
        insert: impl FnOnce(&Self, &Progress) -> Result<UpdateReport> + Send,
    ) -> PyResult<UpdateReport> {
        let progress = Progress::default();
        interruptible(py, &options.cancel, || insert(self, &progress))
    }

    fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("?", String::as_str)
    }

    /// Converts some rows to quads; `first` is the number of the first row.
    fn quads(&self, rows: &RecordBatch, first: usize, out: &mut QuadBatch) -> Result<()> {
        let graph = out.push_term(&self.graph);
        let mut spans = |column: usize, role: Role| -> Result<Vec<Span>> {
            let cells = Cells {
                name: self.name(column),
                role,
                ntriples: self.ntriples,
                first,
                most: match rows.num_rows() {
                    1 => BYTES_OF_ROW,
                    _ => BYTES,
                },
            };
            cells.spans(rows.column(column).as_ref(), out)
        };
        let subjects = spans(self.columns.subject, Role::Subject)?;
        let mut all = Vec::with_capacity(self.columns.objects.len());
        for (predicate, column, role) in &self.columns.objects {
            let predicates = match predicate {
                Predicate::Column(column) => Some(spans(*column, Role::Predicate)?),
                Predicate::Iri(_) => None,
            };
            all.push((predicate, predicates, spans(*column, *role)?));
        }
        for (predicate, predicates, objects) in all {
            let fixed = match predicate {
                Predicate::Iri(iri) => out.push_term(iri),
                Predicate::Column(_) => Span::default(),
            };
            for (row, object) in objects.into_iter().enumerate() {
                // An empty cell makes no triple.
                if object.len == 0 {
                    continue;
                }
                let of = |spans: &[Span], column: usize| match spans.get(row) {
                    Some(span) if span.len > 0 => Ok(*span),
                    _ => Err(Error::Usage(format!(
                        "row {} of the table has no value in the column '{}', but has an object",
                        first + row,
                        self.name(column)
                    ))),
                };
                let subject = of(&subjects, self.columns.subject)?;
                let predicate = match (predicate, &predicates) {
                    (Predicate::Column(column), Some(spans)) => of(spans, *column)?,
                    _ => fixed,
                };
                out.quads.push([subject, predicate, object, graph]);
            }
        }
        Ok(())
    }
}

impl Frame {
    /// Passes the quads of some rows to the sink; divides the rows if their terms are too long for one batch.
    fn deliver(
        &self,
        rows: &RecordBatch,
        first: usize,
        out: &mut QuadBatch,
        sink: &mut dyn QuadSink,
    ) -> Result<()> {
        out.clear();
        match self.quads(rows, first, out) {
            Err(Error::Limit(_)) if rows.num_rows() > 1 => {
                let half = rows.num_rows() / 2;
                self.deliver(&rows.slice(0, half), first, out, sink)?;
                let rest = rows.slice(half, rows.num_rows() - half);
                self.deliver(&rest, first + half, out, sink)
            }
            done => {
                done?;
                sink.batch(out)
            }
        }
    }
}

impl QuadSource for Frame {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut out = QuadBatch::default();
        let (mut first, mut number) = (0, 0);
        for batch in &self.batches {
            for start in (0..batch.num_rows()).step_by(ROWS) {
                let rows = ROWS.min(batch.num_rows() - start);
                if number % workers == worker {
                    let rows_here = batch.slice(start, rows);
                    self.deliver(&rows_here, first + start, &mut out, sink)?;
                    progress.done.fetch_add(rows as u64, Ordering::Relaxed);
                }
                number += 1;
            }
            first += batch.num_rows();
        }
        Ok(())
    }
}

/// The record batches of a table, and the names of its columns.
fn read(frame: &Bound<'_, PyAny>) -> PyResult<(Vec<RecordBatch>, Vec<String>)> {
    let py = frame.py();
    let capsule = py
        .import("jindou._frames")?
        .call_method1("stream_of", (frame,))?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    let failed = |e: arrow_schema::ArrowError| {
        named("UsageError", &format!("the table cannot be read: {e}"))
    };
    // SAFETY: By the Arrow PyCapsule interface, a capsule with this name contains a stream of the C data interface. It
    // is moved out, and an empty one is left in its place, while the interpreter's lock is held.
    let stream =
        unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(failed)?;
    let fields = reader.schema();
    let names = fields.fields().iter().map(|f| f.name().clone()).collect();
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>();
    Ok((batches.map_err(failed)?, names))
}
