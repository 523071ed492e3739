//! The results of expressions as terms, and the values of terms.

use super::derived;
use super::duration::{Duration, DurationKind};
use super::number::Number;
use super::temporal::{Temporal, TemporalKind};
use super::typed;
use oxrdf::{BaseDirection, Literal, Term};

pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The result of an expression as a term, and whether a computation chose its lexical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    term: Term,
    computed: bool,
}

impl Value {
    /// A term of the data or of the query, with its language tag in lower case.
    pub fn from_term(term: &Term) -> Self {
        Self {
            term: lower(term),
            computed: false,
        }
    }

    /// A computed term, of which only the value is specified, not the lexical form.
    pub fn computed(term: Term) -> Self {
        Self {
            term,
            computed: true,
        }
    }

    /// The term.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// True if a computation chose the lexical form, so that only the value is compared.
    pub fn is_computed(&self) -> bool {
        self.computed
    }

    pub(crate) fn string(s: impl Into<String>) -> Self {
        Self::from_term(&Literal::new_simple_literal(s).into())
    }

    pub(crate) fn tagged(s: impl Into<String>, tag: Option<&Tag>) -> Self {
        Self::from_term(&match tag {
            None => Literal::new_simple_literal(s).into(),
            Some(tag) => with_tag(s, tag),
        })
    }

    pub(crate) fn integer(n: impl ToString) -> Self {
        Self::computed(typed(n.to_string(), "integer"))
    }

    pub(crate) fn kind(&self) -> ValueKind {
        ValueKind::from_term(&self.term)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::from_term(&typed(if b { "true" } else { "false" }, "boolean"))
    }
}

fn with_tag(s: impl Into<String>, (tag, direction): &Tag) -> Term {
    match direction {
        None => Literal::new_language_tagged_literal_unchecked(s, tag),
        Some(d) => Literal::new_directional_language_tagged_literal_unchecked(s, tag, *d),
    }
    .into()
}

fn lower(term: &Term) -> Term {
    match term {
        Term::Literal(l) => match l.language() {
            Some(tag) => with_tag(l.value(), &(tag.to_ascii_lowercase(), l.direction())),
            None => term.clone(),
        },
        Term::Triple(t) => {
            let mut t = t.clone();
            t.object = lower(&t.object);
            Term::Triple(t)
        }
        _ => term.clone(),
    }
}

/// A language tag and a base direction.
pub(crate) type Tag = (String, Option<BaseDirection>);

/// The value of a term.
#[derive(Clone, Debug)]
pub(crate) enum ValueKind {
    Iri(String),
    Blank,
    Triple(Box<oxrdf::Triple>),
    /// A literal of type `xsd:string` or a type derived from it, or a string with a language tag.
    Text(String, Option<Tag>),
    Boolean(bool),
    Number(Number),
    Temporal(Temporal),
    Duration(Duration),
    /// An ill-typed literal: its lexical form is invalid for its recognised datatype.
    Ill(Family),
    /// A literal of a datatype that SPARQL does not recognise.
    Other,
}

/// Families of recognised datatypes, which the rules for ill-typed literals distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Boolean,
    Number,
    Time,
}

impl ValueKind {
    pub fn from_term(term: &Term) -> Self {
        let l = match term {
            Term::NamedNode(n) => return Self::Iri(n.as_str().to_owned()),
            Term::BlankNode(_) => return Self::Blank,
            Term::Triple(t) => return Self::Triple(t.clone()),
            Term::Literal(l) => l,
        };
        let text = l.value();
        if let Some(tag) = l.language() {
            return Self::Text(text.to_owned(), Some((tag.to_owned(), l.direction())));
        }
        let datatype = l.datatype();
        let Some(local) = datatype.as_str().strip_prefix(XSD) else {
            return Self::Other;
        };
        let ill = |family| Self::Ill(family);
        if local == "string" {
            return Self::Text(text.to_owned(), None);
        }
        if local == "boolean" {
            return match text {
                "true" | "1" => Self::Boolean(true),
                "false" | "0" => Self::Boolean(false),
                _ => ill(Family::Boolean),
            };
        }
        if Number::is_datatype(local) {
            return Number::parse(text, local).map_or(ill(Family::Number), Self::Number);
        }
        if TemporalKind::from_local_name(local).is_some() {
            return Temporal::parse(text, local).map_or(ill(Family::Time), Self::Temporal);
        }
        if local == "dateTimeStamp" {
            let zoned = Temporal::parse(text, "dateTime").filter(|t| t.zone.is_some());
            return zoned.map_or(Self::Other, Self::Temporal);
        }
        if let Some(fits) = derived::is_lexical(local, text) {
            return match fits {
                true => Self::Text(text.to_owned(), None),
                false => Self::Other,
            };
        }
        if DurationKind::from_local_name(local).is_some() {
            return Duration::parse(text, local).map_or(ill(Family::Time), Self::Duration);
        }
        Self::Other
    }
}
