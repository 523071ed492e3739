//! The class `Literal`.

use crate::terms::{Iri, iri, quoted, term_of};
use jindou::TermParts;
use jindou::oxrdf::vocab::{rdf, xsd};
use jindou::oxrdf::{Literal, NamedNode, Term};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Code of `xsd:integer` in canonical terms.
const INTEGER: u8 = 0x80;

/// A literal: its lexical form and its datatype, or its language.
///
/// `Literal("text")`, `Literal("Mars", language="en")`, `Literal("1", datatype=IRI("…#byte"))`. Without a datatype,
/// Python's numbers, truth values, dates and times get theirs: `Literal(1)` is an `xsd:integer`, `Literal(1.5)` an
/// `xsd:double`. `int()` and `float()` accept literals that are numbers. A literal is equal only to the same literal,
/// never to text: compare its `value` with text.
#[pyclass(frozen, eq, hash, name = "Literal", module = "jindou")]
#[derive(PartialEq, Eq, Hash)]
pub struct Lit {
    /// Canonical bytes, which are equal exactly if the literals are equal. They are decoded only when needed, since
    /// most literals of an answer are only read as text, or not at all.
    canonical: Box<[u8]>,
}

#[pymethods]
impl Lit {
    #[new]
    #[pyo3(signature = (value, language = None, datatype = None))]
    fn made(
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
            return made.map(Self::new).map_err(|e| {
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
        Ok(Self::new(match datatype {
            Some(d) => Literal::new_typed_literal(text, d),
            None => Literal::new_simple_literal(text),
        }))
    }

    /// The lexical form: `"01"` of `"01"^^xsd:integer`.
    #[getter]
    fn value(&self) -> &str {
        match self.parts() {
            Some(
                TermParts::String(text)
                | TermParts::Lang(text, _)
                | TermParts::Coded(text, _)
                | TermParts::Typed(text, _),
            ) => text,
            _ => "",
        }
    }

    /// The language in lower case, or `None`.
    #[getter]
    fn language(&self) -> Option<&str> {
        let tag = self.tag()?;
        Some(tag.split_once("--").map_or(tag, |(language, _)| language))
    }

    /// The base direction (`"ltr"`, `"rtl"`), or `None`.
    #[getter]
    fn direction(&self) -> Option<&'static str> {
        match self.tag()?.split_once("--")? {
            (_, "rtl") => Some("rtl"),
            _ => Some("ltr"),
        }
    }

    /// The datatype; `rdf:langString` for a text with a language.
    #[getter]
    fn datatype(&self) -> Iri {
        Iri(self.literal().datatype().into_owned())
    }

    /// The value as a Python object: `int`, `float`, `Decimal`, `bool`, `date`, `datetime`, `time`, `timedelta`,
    /// `bytes`. Returns the lexical form if Python has no such type, or if the lexical form is invalid for the
    /// datatype.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plain = match self.parts() {
            Some(TermParts::String(text) | TermParts::Lang(text, _)) => Some(text),
            Some(TermParts::Coded(text, INTEGER)) => {
                if let Ok(value) = text.parse::<i64>() {
                    return Ok(value.into_pyobject(py)?.into_any());
                }
                None
            }
            _ => None,
        };
        if let Some(text) = plain {
            return Ok(PyString::new(py, text).into_any());
        }
        let literal = self.literal();
        let datatype = literal.datatype();
        if datatype == rdf::LANG_STRING {
            return Ok(PyString::new(py, literal.value()).into_any());
        }
        py.import("jindou._convert")?
            .call_method1("value_of", (literal.value(), datatype.as_str()))
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
        self.literal().to_string()
    }

    fn __str__(&self) -> &str {
        self.value()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let value = quoted(py, self.value())?;
        let literal = self.literal();
        let datatype = literal.datatype();
        Ok(match self.tag() {
            Some(tag) => format!("Literal({value}, language={})", quoted(py, tag)?),
            None if datatype == xsd::STRING => format!("Literal({value})"),
            None => format!(
                "Literal({value}, datatype=IRI({}))",
                quoted(py, datatype.as_str())?
            ),
        })
    }

    fn __getnewargs__(&self) -> (&str, Option<&str>, Option<Iri>) {
        match self.tag() {
            Some(tag) => (self.value(), Some(tag), None),
            None => (self.value(), None, Some(self.datatype())),
        }
    }

    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("value",)
    }
}

impl Lit {
    /// The value converted by a method of Python's numbers, such as `__float__`.
    fn number<'py>(&self, py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.to_python(py)?;
        if !value.hasattr(method)? {
            return Err(PyValueError::new_err(format!(
                "{} is not a number",
                self.literal()
            )));
        }
        value.call_method0(method)
    }

    /// The language tag with the base direction, in the form that `language=` accepts.
    fn tag(&self) -> Option<&str> {
        match self.parts() {
            Some(TermParts::Lang(_, tag)) => Some(tag),
            _ => None,
        }
    }

    /// Wraps a literal.
    pub fn new(literal: Literal) -> Self {
        Self::of_canonical(&jindou::encode_term(&literal.into()))
    }

    /// Takes the canonical bytes of a literal.
    pub fn of_canonical(canonical: &[u8]) -> Self {
        Self {
            canonical: canonical.into(),
        }
    }

    fn parts(&self) -> Option<TermParts<'_>> {
        jindou::term_parts(&self.canonical)
    }

    /// The literal.
    pub fn literal(&self) -> Literal {
        match jindou::decode_term(&self.canonical) {
            Some(Term::Literal(literal)) => literal,
            // The bytes are always those of a literal.
            _ => Literal::new_simple_literal(""),
        }
    }
}

/// The lexical form of a Python value, and the datatype that follows from its type; `None` for text.
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
