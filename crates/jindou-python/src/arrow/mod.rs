//! Answers as Arrow arrays. Each distinct term of a column is decoded once, by its id.
//!
//! ```text
//! ids of all rows ─► distinct ids, ascending (`distinct`) ─► their terms, on all cores (`decoded`)
//!                 ─► numbers, dates, truth values if all terms are (`typed`), else a dictionary of text
//!                 ─► one place or value a row ─► one record batch ─► the C stream
//! ```

mod distinct;
mod typed;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, LargeStringArray, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use distinct::DistinctIds;
use jindou::oxrdf::Term;
use jindou::{CancelToken, Error, Resource, Result, RowBatch, TermParts, decode_term};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// All rows of an answer.
pub type Batch = RecordBatch;

/// Number of terms that are decoded between two checks for cancellation.
const LOOK: usize = 1 << 16;

/// How terms become columns.
#[derive(Clone, Copy)]
pub struct How {
    /// True if a column whose values are all numbers, dates or truth values gets the corresponding type; otherwise it
    /// is text.
    typed: bool,
    /// True for text in N-Triples syntax.
    ntriples: bool,
    /// True for dictionary-encoded text, which stores each distinct text once.
    dictionary: bool,
}

impl How {
    /// Takes the keywords of `arrow()`. With N-Triples syntax every column is text; with `typed=False` text without a
    /// dictionary.
    pub fn new(typed: bool, syntax: &str) -> PyResult<Self> {
        match syntax {
            "plain" => Ok(Self {
                typed,
                ntriples: false,
                dictionary: typed,
            }),
            "ntriples" => Ok(Self {
                typed: false,
                ntriples: true,
                dictionary: typed,
            }),
            other => Err(PyValueError::new_err(format!(
                "syntax='{other}': write \"plain\" or \"ntriples\""
            ))),
        }
    }

    /// True if text is N-Triples.
    pub fn is_ntriples(self) -> bool {
        self.ntriples
    }
}

/// Texts of terms, concatenated, and the kind of each term.
#[derive(Default)]
struct Texts {
    text: Vec<u8>,
    /// Position of the end of each term's text.
    ends: Vec<usize>,
    /// The first byte of each term's canonical form, which tells whether it is an IRI, a string, has one of certain
    /// datatypes, ….
    tags: Vec<u8>,
}

impl Texts {
    fn push(&mut self, canonical: &[u8], how: How) -> Result<()> {
        let damaged = || {
            Error::damaged(
                "strings.jd",
                "a term cannot be read; `jindou check` shows where",
            )
        };
        let &tag = canonical.first().ok_or_else(damaged)?;
        if how.ntriples {
            let term = decode_term(canonical).ok_or_else(damaged)?;
            self.write(&term);
        } else {
            match jindou::term_parts(canonical).ok_or_else(damaged)? {
                TermParts::Iri(text)
                | TermParts::String(text)
                | TermParts::Lang(text, _)
                | TermParts::Coded(text, _)
                | TermParts::Typed(text, _) => self.text.extend_from_slice(text.as_bytes()),
                TermParts::Blank(label) => {
                    self.text.extend_from_slice(b"_:");
                    self.text.extend_from_slice(label.as_bytes());
                }
                TermParts::Triple(_) => {
                    let term = decode_term(canonical).ok_or_else(damaged)?;
                    self.write(&term);
                }
            }
        }
        self.ends.push(self.text.len());
        self.tags.push(tag);
        Ok(())
    }

    fn write(&mut self, term: &Term) {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(text, "{term}");
        self.text.extend_from_slice(text.as_bytes());
    }

    fn append(&mut self, other: Self) {
        let from = self.text.len();
        self.text.extend_from_slice(&other.text);
        self.ends.extend(other.ends.iter().map(|end| from + end));
        self.tags.extend_from_slice(&other.tags);
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The texts, in order.
    fn iter(&self) -> impl Iterator<Item = &str> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let bytes = self.text.get(from..end).unwrap_or(&[]);
            from = end;
            // Only valid UTF-8 was added.
            std::str::from_utf8(bytes).unwrap_or("")
        })
    }
}

/// Makes a record batch of the rows of an answer.
///
/// # Errors
/// [`Error::Damaged`] for a damaged store, [`Error::Cancelled`], [`Error::Limit`] if a column has more than 2³¹
/// distinct terms.
pub fn of_rows(
    variables: &[String],
    batches: &[Arc<RowBatch>],
    how: How,
    cancel: &CancelToken,
) -> Result<Batch> {
    let rows = batches.iter().map(|b| b.rows()).sum();
    let mut columns = Vec::with_capacity(variables.len());
    for column in 0..variables.len() {
        let ids: Vec<&[u32]> = batches.iter().map(|b| b.ids(column)).collect();
        let distinct = DistinctIds::from_columns(&ids);
        let texts = match batches.first() {
            Some(batch) => decoded(batch, &distinct.ids(), how, cancel)?,
            None => Texts::default(),
        };
        cancel.check()?;
        columns.push(array(
            texts,
            how,
            &RowPlaces::from_columns(&ids, &distinct, rows),
        )?);
    }
    batch(variables.iter().map(String::as_str), columns, rows)
}

/// Makes a record batch of columns of terms, for answers that do not come from a cursor.
///
/// # Errors
/// As [`of_rows`].
pub fn of_terms(columns: &[(&str, Vec<Term>)], how: How) -> Result<Batch> {
    let mut arrays = Vec::with_capacity(columns.len());
    for (_, terms) in columns {
        let mut texts = Texts::default();
        let mut seen: rustc_hash::FxHashMap<&Term, i32> = Default::default();
        let mut places = Vec::with_capacity(terms.len());
        for term in terms {
            let next = seen.len() as i32;
            let place = *seen.entry(term).or_insert(next);
            if place == next {
                texts.push(&jindou::encode_term(term), how)?;
            }
            places.push(place);
        }
        let places = RowPlaces {
            places,
            nulls: None,
        };
        arrays.push(array(texts, how, &places)?);
    }
    let rows = columns.first().map_or(0, |(_, terms)| terms.len());
    batch(columns.iter().map(|(name, _)| *name), arrays, rows)
}

fn batch<'n>(
    names: impl Iterator<Item = &'n str>,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<Batch> {
    use arrow_array::Array as _;
    let fields: Vec<Field> = names
        .zip(&columns)
        .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
        .collect();
    // The number of rows is given, since there may be rows without columns.
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(ours)
}

/// For each row, the position of its term among the distinct terms, and whether it has a term.
struct RowPlaces {
    places: Vec<i32>,
    nulls: Option<NullBuffer>,
}

impl RowPlaces {
    fn from_columns(ids: &[&[u32]], distinct: &DistinctIds, rows: usize) -> Self {
        let mut places = Vec::with_capacity(rows);
        let mut unbound = false;
        for &id in ids.iter().copied().flatten() {
            unbound |= id == 0;
            places.push(if id == 0 { 0 } else { distinct.place(id) });
        }
        let nulls = unbound
            .then(|| NullBuffer::from_iter(ids.iter().copied().flatten().map(|&id| id != 0)));
        Self { places, nulls }
    }

    /// A value for each row, given the values of the distinct terms; `rest` for rows without a term.
    fn gather<T: Copy>(&self, values: &[T], rest: T) -> Vec<T> {
        let value = |&place: &i32| values.get(place as usize).copied().unwrap_or(rest);
        self.places.iter().map(value).collect()
    }
}

/// Decodes ids, which must be ascending, on all cores.
fn decoded(batch: &RowBatch, ids: &[u32], how: How, cancel: &CancelToken) -> Result<Texts> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let parts = cores.min(ids.len() / LOOK + 1);
    let one = |ids: &[u32]| {
        let mut texts = Texts::default();
        for ids in ids.chunks(LOOK) {
            cancel.check()?;
            let mut pushed = Ok(());
            batch.decode(ids, |_, canonical| {
                if pushed.is_ok() {
                    pushed = texts.push(canonical, how);
                }
            })?;
            pushed?;
        }
        Ok(texts)
    };
    if parts == 1 {
        return one(ids);
    }
    let slots: Vec<Mutex<Option<Result<Texts>>>> = (0..parts).map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for (slot, ids) in slots.iter().zip(ids.chunks(ids.len().div_ceil(parts))) {
            let work = move || {
                let texts = one(ids);
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(texts);
            };
            let started = thread::Builder::new().spawn_scoped(scope, work);
            if started.is_err() {
                // The system cannot start another thread, so this thread does the work.
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(one(ids));
            }
        }
    });
    let mut all: Option<Texts> = None;
    for slot in slots {
        match (
            slot.into_inner().unwrap_or_else(PoisonError::into_inner),
            &mut all,
        ) {
            (Some(texts), Some(all)) => all.append(texts?),
            (Some(texts), all) => *all = Some(texts?),
            // There may be fewer chunks than parts.
            (None, _) => {}
        }
    }
    Ok(all.unwrap_or_default())
}

/// A column, typed if that is requested and possible.
fn array(texts: Texts, how: How, places: &RowPlaces) -> Result<ArrayRef> {
    if how.typed
        && let Some(array) = typed::array(&texts, places)
    {
        return Ok(array);
    }
    if !how.dictionary {
        return strings(&texts, places);
    }
    if i32::try_from(texts.len()).is_err() {
        return Err(Error::limit(
            Resource::Numbers,
            "a column has more than 2147483647 distinct terms, the maximum of an Arrow dictionary",
        ));
    }
    let (texts, keys) = match merged(&texts) {
        // Terms that differ only in datatype or language have the same plain text, which a dictionary must contain
        // once.
        Some((merged, new)) => (merged, places.gather(&new, 0)),
        None => (texts, places.places.clone()),
    };
    let keys = ScalarBuffer::from(keys);
    let keys = Int32Array::try_new(keys, places.nulls.clone()).map_err(ours)?;
    let mut from = 0;
    let lengths = texts.ends.iter().map(|&end| {
        let length = end - from;
        from = end;
        length
    });
    let values = text_array(lengths, texts.text, None)?;
    let array = DictionaryArray::<Int32Type>::try_new(keys, values).map_err(ours)?;
    Ok(Arc::new(array))
}

/// A column of plain text, without a dictionary.
fn strings(texts: &Texts, places: &RowPlaces) -> Result<ArrayRef> {
    let distinct: Vec<&str> = texts.iter().collect();
    let mut of_rows = places.gather(&distinct, "");
    for (row, text) in of_rows.iter_mut().enumerate() {
        if places.nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            *text = "";
        }
    }
    let text = of_rows.concat().into_bytes();
    text_array(of_rows.iter().map(|t| t.len()), text, places.nulls.clone())
}

/// A text array, given the length of each text and the concatenated texts.
fn text_array(
    lengths: impl ExactSizeIterator<Item = usize>,
    text: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let small = i32::try_from(text.len()).is_ok();
    let text = Buffer::from_vec(text);
    if small {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        let array = StringArray::try_new(offsets, text, nulls).map_err(ours)?;
        return Ok(Arc::new(array));
    }
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    let array = LargeStringArray::try_new(offsets, text, nulls).map_err(ours)?;
    Ok(Arc::new(array))
}

/// The texts without duplicates, and the position in them of each text; `None` if there cannot be duplicates.
fn merged(texts: &Texts) -> Option<(Texts, Vec<i32>)> {
    let first = *texts.tags.first()?;
    let same = texts.tags.iter().all(|&tag| tag == first);
    if texts.tags.iter().all(|tag| matches!(tag, b'<' | b'_'))
        || (same && !matches!(first, b'@' | b'^'))
    {
        return None;
    }
    let mut seen: rustc_hash::FxHashMap<&str, i32> = Default::default();
    let mut out = Texts::default();
    let mut places = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        let next = out.len() as i32;
        let place = *seen.entry(text).or_insert(next);
        if place == next {
            out.text.extend_from_slice(text.as_bytes());
            out.ends.push(out.text.len());
        }
        places.push(place);
    }
    (out.len() < texts.len()).then_some((out, places))
}

fn ours(e: ArrowError) -> Error {
    Error::Internal(format!("an Arrow array of an answer is not valid: {e}"))
}

/// An answer to be read by a library that reads Arrow streams, any number of times.
#[pyclass(frozen)]
struct Stream {
    batch: Batch,
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        capsule(py, self.batch.clone())
    }
}

/// A capsule with a stream of one batch. A reader takes over the arrays without copying them.
pub fn capsule(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    // The stream is freed with the capsule, unless a reader took it over and left the capsule empty.
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A `pyarrow.Table`.
pub fn pyarrow(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyAny>> {
    let module = needed(py, "pyarrow", "arrow")?;
    module.call_method1("table", (Stream { batch },))
}

/// A `pandas.DataFrame`.
pub fn pandas(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyAny>> {
    needed(py, "pandas", "pandas")?;
    let table = needed(py, "pyarrow", "pandas")?.call_method1("table", (Stream { batch },))?;
    py.import("jindou._frames")?
        .call_method1("pandas_of", (table,))
}

/// A `polars.DataFrame`.
pub fn polars(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyAny>> {
    needed(py, "polars", "polars")?.call_method1("DataFrame", (Stream { batch },))
}

fn needed<'py>(py: Python<'py>, module: &str, extra: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(module).map_err(|e| {
        if !e.is_instance_of::<pyo3::exceptions::PyImportError>(py) {
            return e;
        }
        let why =
            format!("this needs {module}, which is not installed: pip install 'jindou[{extra}]'");
        let error = pyo3::exceptions::PyImportError::new_err(why);
        error.set_cause(py, Some(e));
        error
    })
}
