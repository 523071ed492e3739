//! Terms as Python objects: small, immutable, hashable, picklable; and terms of other libraries as ours.

use crate::errors::named;
use jindou::oxrdf::vocab::{rdf, xsd};
use jindou::oxrdf::{
    BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple,
};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
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

/// A blank node. Without a label it gets a random one, which is unique.
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

    /// N-Triples syntax, which also is what a Python value of it is.
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

/// A literal: its lexical form and its datatype, or its language.
///
/// `Literal("text")`, `Literal("Mars", language="en")`, `Literal("1", datatype=IRI("…#byte"))`; without a datatype, numbers, truth values,
/// dates and times of Python get theirs: `Literal(1)` is an `xsd:integer`, `Literal(1.5)` an `xsd:double`. `int()` and `float()` take
/// literals of numbers. A literal is equal to the same literal only, never to its text: compare `value` with text.
#[pyclass(frozen, eq, hash, name = "Literal", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct Lit(pub Literal);

#[pymethods]
impl Lit {
    #[new]
    #[pyo3(signature = (value, language = None, datatype = None))]
    fn new(
        value: &Bound<'_, PyAny>,
        language: Option<&str>,
        datatype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (text, own) = lexical(value)?;
        if let Some(language) = language {
            if datatype.is_some_and(|d| !d.is_none()) {
                return Err(PyValueError::new_err(
                    "a literal with a language cannot have datatype=",
                ));
            }
            let made = match language.rsplit_once("--") {
                Some((tag, direction)) => {
                    let direction = match direction {
                        "ltr" => jindou::oxrdf::BaseDirection::Ltr,
                        "rtl" => jindou::oxrdf::BaseDirection::Rtl,
                        _ => {
                            return Err(PyValueError::new_err(format!(
                                "'{direction}' is not a direction: write ltr or rtl"
                            )));
                        }
                    };
                    Literal::new_directional_language_tagged_literal(text, tag, direction)
                }
                None => Literal::new_language_tagged_literal(text, language),
            };
            return made.map(Self).map_err(|e| {
                PyValueError::new_err(format!("'{language}' is not a language tag: {e}"))
            });
        }
        let datatype = match datatype.filter(|d| !d.is_none()) {
            Some(d) => match d.cast::<PyString>() {
                Ok(text) => Some(iri(&text.to_cow()?)?),
                Err(_) => match term_of(d)? {
                    Term::NamedNode(n) => Some(n),
                    other => {
                        return Err(PyTypeError::new_err(format!(
                            "a datatype must be an IRI, not {other}"
                        )));
                    }
                },
            },
            None => own.map(NamedNode::new_unchecked),
        };
        Ok(Self(match datatype {
            Some(d) => Literal::new_typed_literal(text, d),
            None => Literal::new_simple_literal(text),
        }))
    }

    /// The lexical form: `"01"` of `"01"^^xsd:integer`.
    #[getter]
    fn value(&self) -> &str {
        self.0.value()
    }

    /// The language in lower case, or `None`.
    #[getter]
    fn language(&self) -> Option<&str> {
        self.0.language()
    }

    /// The base direction (`"ltr"`, `"rtl"`), or `None`.
    #[getter]
    fn direction(&self) -> Option<&'static str> {
        self.0.direction().map(|d| match d {
            jindou::oxrdf::BaseDirection::Ltr => "ltr",
            jindou::oxrdf::BaseDirection::Rtl => "rtl",
        })
    }

    /// The datatype, `rdf:langString` of a text with a language.
    #[getter]
    fn datatype(&self) -> Iri {
        Iri(self.0.datatype().into_owned())
    }

    /// The value as a Python object: `int`, `float`, `Decimal`, `bool`, `date`, `datetime`, `time`, `timedelta`, `bytes`; the lexical form
    /// where Python has no such value, or the lexical form is not the datatype's.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let datatype = self.0.datatype();
        if self.0.language().is_some() || datatype == xsd::STRING || datatype == rdf::LANG_STRING {
            return Ok(PyString::new(py, self.0.value()).into_any());
        }
        py.import("jindou._convert")?
            .call_method1("value_of", (self.0.value(), datatype.as_str()))
    }

    /// The number as a `float`: `float(literal)`.
    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, "__float__")
    }

    /// The number without its fraction: `int(literal)`.
    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, "__int__")
    }

    /// N-Triples syntax: `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> &str {
        self.0.value()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let value = quoted(py, self.0.value())?;
        let datatype = self.0.datatype();
        Ok(match self.tag() {
            Some(tag) => format!("Literal({value}, language={})", quoted(py, &tag)?),
            None if datatype == xsd::STRING => format!("Literal({value})"),
            None => format!(
                "Literal({value}, datatype=IRI({}))",
                quoted(py, datatype.as_str())?
            ),
        })
    }

    fn __getnewargs__(&self) -> (&str, Option<String>, Option<Iri>) {
        match self.tag() {
            Some(tag) => (self.0.value(), Some(tag), None),
            None => (self.0.value(), None, Some(self.datatype())),
        }
    }

    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("value",)
    }
}

impl Lit {
    /// The value as another type of number, by a method of Python's.
    fn number<'py>(&self, py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.to_python(py)?;
        if !value.hasattr(method)? {
            return Err(PyValueError::new_err(format!("{} is not a number", self.0)));
        }
        value.call_method0(method)
    }

    /// The language with its direction, as `language=` takes it.
    fn tag(&self) -> Option<String> {
        let language = self.0.language()?;
        Some(match self.direction() {
            Some(direction) => format!("{language}--{direction}"),
            None => language.to_owned(),
        })
    }
}

/// A triple: `subject`, `predicate`, `object`, which it can be unpacked into. It is a term, too (RDF 1.2).
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
        object(py, &self.0.subject.clone().into())
    }

    #[getter]
    fn predicate(&self) -> Iri {
        Iri(self.0.predicate.clone())
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.0.object)
    }

    /// N-Triples syntax of RDF 1.2's triple terms.
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

/// A quad: `subject`, `predicate`, `object` and `graph_name`, which is `None` in the default graph.
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
        object(py, &self.0.subject.clone().into())
    }

    #[getter]
    fn predicate(&self) -> Iri {
        Iri(self.0.predicate.clone())
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.0.object)
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
    let subject = object(py, &triple.subject.clone().into())?;
    let predicate = Iri(triple.predicate.clone());
    (subject, predicate, object(py, &triple.object)?).into_pyobject(py)
}

fn at<'py>(parts: &Bound<'py, PyTuple>, index: isize) -> PyResult<Bound<'py, PyAny>> {
    let len = parts.len();
    let place = if index < 0 {
        len as isize + index
    } else {
        index
    };
    usize::try_from(place)
        .ok()
        .filter(|place| *place < len)
        .ok_or_else(|| PyIndexError::new_err("no such part"))
        .and_then(|place| parts.get_item(place))
}

/// A term as a Python object.
pub fn object<'py>(py: Python<'py>, term: &Term) -> PyResult<Bound<'py, PyAny>> {
    Ok(match term {
        Term::NamedNode(n) => Bound::new(py, Iri(n.clone()))?.into_any(),
        Term::BlankNode(b) => Bound::new(py, Blank(b.clone()))?.into_any(),
        Term::Literal(l) => Bound::new(py, Lit(l.clone()))?.into_any(),
        Term::Triple(t) => Bound::new(py, PyTriple((**t).clone()))?.into_any(),
    })
}

/// A graph's name as a Python object, `None` for the default graph.
pub fn graph_object<'py>(
    py: Python<'py>,
    graph: &GraphName,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match graph {
        GraphName::DefaultGraph => Ok(None),
        GraphName::NamedNode(n) => object(py, &n.clone().into()).map(Some),
        GraphName::BlankNode(b) => object(py, &b.clone().into()).map(Some),
    }
}

/// The term of a Python object: ours, RDFLib's or pyoxigraph's terms, and plain values as literals.
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
        Some(literal.get().0.clone().into())
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

fn predicate_of(value: &Bound<'_, PyAny>) -> PyResult<NamedNode> {
    match term_of(value)? {
        Term::NamedNode(n) => Ok(n),
        other => Err(PyTypeError::new_err(format!(
            "a predicate must be an IRI, not {other}"
        ))),
    }
}

/// The name of a graph; `None` is the default graph.
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

/// The quad of a `Quad`, a `Triple`, or a sequence of three or four terms.
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

/// The lexical form of a Python value, and the datatype that it has by itself.
fn lexical(value: &Bound<'_, PyAny>) -> PyResult<(String, Option<String>)> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok((text.to_cow()?.into_owned(), None));
    }
    value
        .py()
        .import("jindou._convert")?
        .call_method1("lexical_of", (value,))?
        .extract()
}

fn iri(text: &str) -> PyResult<NamedNode> {
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

/// A text as Python writes it in quotes.
fn quoted(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(PyString::new(py, text).repr()?.to_string())
}
