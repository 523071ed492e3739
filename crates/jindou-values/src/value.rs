//! Terms as values: `=`, `<` and effective boolean values (SPARQL 1.1 §17.2 to §17.4).

use crate::derived::DerivedType;
use crate::duration::Duration;
use crate::number::{Num, Number};
use crate::temporal::{Temporal, TemporalKind};
use jindou_model::term::{self, Parts};
use std::cmp::Ordering;

/// The value of a term.
#[derive(Clone, Debug)]
pub enum Value<'t> {
    /// An IRI.
    Iri(&'t str),
    /// A blank node's label.
    Blank(&'t str),
    /// A string of `xsd:string` or of a type derived from it.
    String(&'t str),
    /// A text with its language tag, which includes `--ltr` or `--rtl` if there is a base direction.
    Lang(&'t str, &'t str),
    /// `xsd:boolean`
    Boolean(bool),
    /// A literal of a numeric type.
    Number(Number),
    /// A date or time.
    Temporal(Temporal),
    /// A duration.
    Duration(Duration),
    /// A triple term, by the canonical bytes of its three parts.
    Triple([&'t [u8]; 3]),
    /// A literal outside its datatype's lexical space or the supported range: lexical form and tag.
    IllTyped(&'t str, u8),
    /// A literal of a datatype that has no values here, or outside the lexical space of a [`DerivedType`]: lexical form
    /// and datatype IRI.
    Other(&'t str, &'t str),
}

/// Namespace of XSD's datatypes.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Deepest nesting of triple terms that are compared by value; below it, only the same terms are equal.
const DEEPEST: usize = 64;

/// The value of a lexical form of `xsd:boolean`; `None` if it is invalid.
#[must_use]
pub fn boolean(lexical: &str) -> Option<bool> {
    match lexical {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// The value of the term with these canonical bytes; `None` if they are invalid. Linear in their length.
#[must_use]
pub fn value(bytes: &[u8]) -> Option<Value<'_>> {
    Some(match term::parts(bytes)? {
        Parts::Iri(i) => Value::Iri(i),
        Parts::Blank(b) => Value::Blank(b),
        Parts::String(s) => Value::String(s),
        Parts::Lang(s, tag) => Value::Lang(s, tag),
        Parts::Typed(s, datatype) => DerivedType::from_iri(datatype)
            .and_then(|t| t.value(s))
            .unwrap_or(Value::Other(s, datatype)),
        Parts::Triple(parts) => Value::Triple(parts),
        Parts::Coded(s, tag) => {
            let value = if term::NUMERIC_TAGS.contains(&tag) {
                Number::parse(tag, s).map(Value::Number)
            } else if tag == term::BOOLEAN_TAG {
                boolean(s).map(Value::Boolean)
            } else if let Some(kind) = TemporalKind::of_tag(tag) {
                Temporal::parse(kind, s).map(Value::Temporal)
            } else {
                Duration::parse(tag, s).map(Value::Duration)
            };
            value.unwrap_or(Value::IllTyped(s, tag))
        }
    })
}

impl Value<'_> {
    /// True if this literal's value is unknown, and `other` is a literal that may have the same value.
    fn may_be(&self, other: &Self) -> bool {
        matches!(self, Self::IllTyped(..) | Self::Other(..))
            && !matches!(
                other,
                Self::Iri(_) | Self::Blank(_) | Self::Triple(_) | Self::Lang(..)
            )
    }

    /// Appends the canonical bytes of the literal with this value; for a term without a value, those of the term.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Iri(i) => term::push_iri(i, out),
            Self::Blank(b) => term::push_blank(b, out),
            Self::String(s) => {
                out.push(term::STRING);
                out.extend_from_slice(s.as_bytes());
            }
            Self::Lang(s, tag) => term::push_lang(s, tag, out),
            Self::Boolean(b) => {
                out.push(term::BOOLEAN_TAG);
                out.extend_from_slice(if *b { b"true" } else { b"false" });
            }
            Self::Number(n) => n.push(out),
            Self::Temporal(t) => t.push(out),
            Self::Duration(d) => d.push(out),
            Self::IllTyped(s, tag) => {
                out.push(*tag);
                out.extend_from_slice(s.as_bytes());
            }
            Self::Other(s, datatype) => term::push_typed(s, datatype, out),
            Self::Triple(parts) => {
                out.push(term::TRIPLE);
                for part in parts {
                    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
                    out.extend_from_slice(part);
                }
            }
        }
    }
}

/// `a = b` for terms given by their canonical bytes; `None` is a type error. The same term is equal to itself, unless
/// it is NaN.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> Option<bool> {
    equal_at(a, &value(a)?, b, &value(b)?, 0)
}

/// As [`equal`], for terms whose values are computed already.
#[must_use]
pub fn equal_values(a: &[u8], x: &Value<'_>, b: &[u8], y: &Value<'_>) -> Option<bool> {
    equal_at(a, x, b, y, 0)
}

fn equal_at(a: &[u8], x: &Value<'_>, b: &[u8], y: &Value<'_>, depth: usize) -> Option<bool> {
    match (x, y) {
        (Value::Triple(x), Value::Triple(y)) => {
            if depth >= DEEPEST {
                return if a == b { Some(true) } else { None };
            }
            // False if any part is unequal; otherwise an error if any comparison is.
            let mut all = Some(true);
            for (x, y) in x.iter().zip(y) {
                match equal_at(x, &value(x)?, y, &value(y)?, depth + 1) {
                    Some(true) => {}
                    Some(false) => return Some(false),
                    None => all = None,
                }
            }
            all
        }
        (Value::Number(x), Value::Number(y)) => Some(x.order(y) == Some(Ordering::Equal)),
        (Value::Boolean(x), Value::Boolean(y)) => Some(x == y),
        (Value::String(x), Value::String(y)) => Some(x == y),
        (Value::Temporal(x), Value::Temporal(y)) => Some(x.order(*y) == Some(Ordering::Equal)),
        (Value::Duration(x), Value::Duration(y)) => Some(x == y),
        _ if a == b => Some(true),
        // The value of a literal is unknown, so it is unknown whether the values are equal. A language-tagged string,
        // however, differs from the values of all other datatypes.
        _ if x.may_be(y) || y.may_be(x) => None,
        _ => Some(false),
    }
}

/// The order of `a` and `b` for `<`. `None` is a type error; `Some(None)` means that they are not ordered (NaN).
#[must_use]
pub fn order(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a.order(b)),
        (Value::String(a), Value::String(b)) => Some(Some(a.cmp(b))),
        (Value::Lang(a, x), Value::Lang(b, y)) if x == y => Some(Some(a.cmp(b))),
        (Value::Boolean(a), Value::Boolean(b)) => Some(Some(a.cmp(b))),
        (Value::Temporal(a), Value::Temporal(b)) => a.order(*b).map(Some),
        (Value::Duration(a), Value::Duration(b)) => a.order(*b).map(Some),
        _ => None,
    }
}

/// The effective boolean value (SPARQL 1.1 §17.2.2); `None` is a type error.
#[must_use]
pub fn truth(v: &Value<'_>) -> Option<bool> {
    match v {
        Value::Boolean(b) => Some(*b),
        Value::Number(n) => Some(n.truth()),
        Value::String(s) | Value::Lang(s, _) => Some(!s.is_empty()),
        Value::IllTyped(_, tag) if *tag <= term::BOOLEAN_TAG => Some(false),
        _ => None,
    }
}

impl From<Num> for Value<'_> {
    fn from(n: Num) -> Self {
        Self::Number(n.into())
    }
}
