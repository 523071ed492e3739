//! Terms as Python objects, which are small, immutable, hashable and picklable; and conversion of other libraries'
//! terms.

use crate::errors::named;
use crate::literal::Lit;
use jindou::TermParts;
use jindou::oxrdf::{BlankNode, GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString, PyTuple};

/// An IRI.
#[pyclass(frozen, eq, hash, name = "IRI", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct Iri(pub NamedNode);

#[pymethods]
impl Iri {
    #[new]
    fn new(value: &str) -> PyResult<Self> {
        Ok(Self(iri(value)?))
    }

    /// The IRI as text.
    #[getter]
    fn value(&self) -> &str {
        self.0.as_str()
    }

    /// The IRI as text.
    fn to_python(&self) -> &str {
        self.0.as_str()
    }

    /// N-Triples syntax: `<http://example.org/>`.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> &str {
        self.0.as_str()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("IRI({})", quoted(py, self.0.as_str())?))
    }

    fn __getnewargs__(&self) -> (&str,) {
        (self.0.as_str(),)
    }

    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("value",)
    }
}

/// A blank node. Without a label, it gets a random, unique one.
#[pyclass(frozen, eq, hash, name = "BlankNode", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct Blank(pub BlankNode);

#[pymethods]
impl Blank {
    #[new]
    #[pyo3(signature = (value = None))]
    fn new(value: Option<&str>) -> PyResult<Self> {
        Ok(Self(match value {
            Some(label) => blank(label)?,
            None => BlankNode::default(),
        }))
    }

    /// The label, without `_:`.
    #[getter]
    fn value(&self) -> &str {
        self.0.as_str()
    }

    /// N-Triples syntax, since Python has no other value for a blank node.
    fn to_python(&self) -> String {
        self.0.to_string()
    }

    /// N-Triples syntax: `_:b1`.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("BlankNode({})", quoted(py, self.0.as_str())?))
    }

    fn __getnewargs__(&self) -> (&str,) {
        (self.0.as_str(),)
    }

    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("value",)
    }
}

/// A triple: `subject`, `predicate`, `object`, into which it can be unpacked. It is also a term (RDF 1.2).
#[pyclass(frozen, eq, hash, name = "Triple", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct PyTriple(pub Triple);

#[pymethods]
impl PyTriple {
    #[new]
    fn new(
        subject: &Bound<'_, PyAny>,
        predicate: &Bound<'_, PyAny>,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (s, p, o) = (
            subject_of(subject)?,
            predicate_of(predicate)?,
            term_of(object)?,
        );
        Ok(Self(Triple::new(s, p, o)))
    }

    #[getter]
    fn subject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.subject.clone().into())
    }

    #[getter]
    fn predicate(&self) -> Iri {
        Iri(self.0.predicate.clone())
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.object.clone())
    }

    /// N-Triples syntax of a triple term (RDF 1.2).
    fn n3(&self) -> String {
        Term::from(self.0.clone()).to_string()
    }

    /// The triple itself.
    fn to_python(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Triple{}", self.parts(py)?.repr()?))
    }

    fn __len__(&self) -> usize {
        3
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        at(&self.parts(py)?, index)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.parts(py)?.try_iter()
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.parts(py)
    }
}

impl PyTriple {
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        triple_parts(py, &self.0)
    }
}

/// A quad: `subject`, `predicate`, `object` and `graph_name`, which is `None` for the default graph.
#[pyclass(frozen, eq, hash, name = "Quad", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct PyQuad(pub Quad);

#[pymethods]
impl PyQuad {
    #[new]
    #[pyo3(signature = (subject, predicate, object, graph_name = None))]
    fn new(
        subject: &Bound<'_, PyAny>,
        predicate: &Bound<'_, PyAny>,
        object: &Bound<'_, PyAny>,
        graph_name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (s, p, o) = (
            subject_of(subject)?,
            predicate_of(predicate)?,
            term_of(object)?,
        );
        Ok(Self(Quad::new(s, p, o, graph_of(graph_name)?)))
    }

    #[getter]
    fn subject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.subject.clone().into())
    }

    #[getter]
    fn predicate(&self) -> Iri {
        Iri(self.0.predicate.clone())
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.object.clone())
    }

    #[getter]
    fn graph_name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        graph_object(py, &self.0.graph_name)
    }

    /// The quad without its graph.
    #[getter]
    fn triple(&self) -> PyTriple {
        PyTriple(Triple::from(self.0.clone()))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Quad{}", self.parts(py)?.repr()?))
    }

    fn __len__(&self) -> usize {
        4
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        at(&self.parts(py)?, index)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.parts(py)?.try_iter()
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.parts(py)
    }
}

impl PyQuad {
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let graph = graph_object(py, &self.0.graph_name)?;
        let triple = triple_parts(py, &Triple::from(self.0.clone()))?;
        let (s, p, o) = (
            triple.get_item(0)?,
            triple.get_item(1)?,
            triple.get_item(2)?,
        );
        (s, p, o, graph).into_pyobject(py)
    }
}

fn triple_parts<'py>(py: Python<'py>, triple: &Triple) -> PyResult<Bound<'py, PyTuple>> {
    let subject = object(py, triple.subject.clone().into())?;
    let predicate = Iri(triple.predicate.clone());
    (subject, predicate, object(py, triple.object.clone())?).into_pyobject(py)
}

fn at<'py>(parts: &Bound<'py, PyTuple>, index: isize) -> PyResult<Bound<'py, PyAny>> {
    let place = place(index, parts.len());
    parts.get_item(place.ok_or_else(|| PyIndexError::new_err("no such part"))?)
}

/// The place of a Python index, which counts from the end if it is negative; `None` if it is out of range.
pub fn place(index: isize, len: usize) -> Option<usize> {
    let place = match index < 0 {
        true => len.checked_add_signed(index)?,
        false => index as usize,
    };
    (place < len).then_some(place)
}

/// A term as a Python object.
pub fn object(py: Python<'_>, term: Term) -> PyResult<Bound<'_, PyAny>> {
    Ok(match term {
        Term::NamedNode(n) => Bound::new(py, Iri(n))?.into_any(),
        Term::BlankNode(b) => Bound::new(py, Blank(b))?.into_any(),
        Term::Literal(l) => Bound::new(py, Lit::new(l))?.into_any(),
        Term::Triple(t) => Bound::new(py, PyTriple(*t))?.into_any(),
    })
}

/// The Python object of a term, given its canonical bytes.
pub fn decoded<'py>(py: Python<'py>, canonical: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let damaged = || named("StoreError", "the store is damaged: a term cannot be read");
    match jindou::term_parts(canonical).ok_or_else(damaged)? {
        TermParts::Iri(text) => Ok(Bound::new(py, Iri(NamedNode::new_unchecked(text)))?.into_any()),
        TermParts::Blank(_) | TermParts::Triple(_) => {
            object(py, jindou::decode_term(canonical).ok_or_else(damaged)?)
        }
        _ => Ok(Bound::new(py, Lit::of_canonical(canonical))?.into_any()),
    }
}

/// The name of a graph as a Python object; `None` for the default graph.
pub fn graph_object<'py>(
    py: Python<'py>,
    graph: &GraphName,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match graph {
        GraphName::DefaultGraph => Ok(None),
        GraphName::NamedNode(n) => object(py, n.clone().into()).map(Some),
        GraphName::BlankNode(b) => object(py, b.clone().into()).map(Some),
    }
}

/// The term of a Python object: a term of this package, of RDFLib or of pyoxigraph; or a plain value, which becomes a
/// literal.
pub fn term_of(value: &Bound<'_, PyAny>) -> PyResult<Term> {
    if let Some(term) = ours(value) {
        return Ok(term);
    }
    let other = value
        .py()
        .import("jindou._convert")?
        .call_method1("term_of", (value,))?;
    ours(&other).ok_or_else(|| {
        let kind = value
            .get_type()
            .name()
            .map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!("not an RDF term: an object of the class {kind}"))
    })
}

fn ours(value: &Bound<'_, PyAny>) -> Option<Term> {
    if let Ok(iri) = value.cast::<Iri>() {
        Some(iri.get().0.clone().into())
    } else if let Ok(literal) = value.cast::<Lit>() {
        Some(literal.get().literal().into())
    } else if let Ok(blank) = value.cast::<Blank>() {
        Some(blank.get().0.clone().into())
    } else if let Ok(triple) = value.cast::<PyTriple>() {
        Some(triple.get().0.clone().into())
    } else {
        None
    }
}

fn subject_of(value: &Bound<'_, PyAny>) -> PyResult<NamedOrBlankNode> {
    match term_of(value)? {
        Term::NamedNode(n) => Ok(n.into()),
        Term::BlankNode(b) => Ok(b.into()),
        other => Err(PyTypeError::new_err(format!(
            "a subject must be an IRI or a blank node, not {other}"
        ))),
    }
}

/// The IRI of a predicate.
pub fn predicate_of(value: &Bound<'_, PyAny>) -> PyResult<NamedNode> {
    match term_of(value)? {
        Term::NamedNode(n) => Ok(n),
        other => Err(PyTypeError::new_err(format!(
            "a predicate must be an IRI, not {other}"
        ))),
    }
}

/// The name of a graph; `None` stands for the default graph.
pub fn graph_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<GraphName> {
    let Some(value) = value.filter(|v| !v.is_none()) else {
        return Ok(GraphName::DefaultGraph);
    };
    match term_of(value)? {
        Term::NamedNode(n) => Ok(n.into()),
        Term::BlankNode(b) => Ok(b.into()),
        other => Err(PyTypeError::new_err(format!(
            "a graph's name must be an IRI or a blank node, not {other}"
        ))),
    }
}

/// Converts a `Quad`, a `Triple`, or a sequence of three or four terms to a quad.
pub fn quad_of(value: &Bound<'_, PyAny>) -> PyResult<Quad> {
    if let Ok(quad) = value.cast::<PyQuad>() {
        return Ok(quad.get().0.clone());
    }
    if let Ok(triple) = value.cast::<PyTriple>() {
        return Ok(triple.get().0.clone().in_graph(GraphName::DefaultGraph));
    }
    let parts = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let (s, p, o, g) = match &parts[..] {
        [s, p, o] => (s, p, o, None),
        [s, p, o, g] => (s, p, o, Some(g)),
        _ => {
            return Err(PyTypeError::new_err(
                "a quad has three terms, or four with a graph",
            ));
        }
    };
    Ok(Quad::new(
        subject_of(s)?,
        predicate_of(p)?,
        term_of(o)?,
        graph_of(g)?,
    ))
}

/// The IRI that a text denotes.
pub fn iri(text: &str) -> PyResult<NamedNode> {
    NamedNode::new(text).map_err(|e| named("TermError", &format!("<{text}> is not an IRI: {e}")))
}

fn blank(label: &str) -> PyResult<BlankNode> {
    BlankNode::new(label).map_err(|e| {
        named(
            "TermError",
            &format!("'{label}' is not a blank node's label: {e}"),
        )
    })
}

/// A text in quotes, as Python writes it.
pub fn quoted(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(PyString::new(py, text).repr()?.to_string())
}
