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

#[cfg(test)]
mod tests {
    use super::*;

    fn t(lexical: &str, datatype: &str) -> Vec<u8> {
        let mut out = vec![];
        term::push_typed(
            lexical,
            &format!("http://www.w3.org/2001/XMLSchema#{datatype}"),
            &mut out,
        );
        out
    }

    fn triple(object: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        Value::Triple([b"<s", b"<p", object]).push(&mut out);
        out
    }

    #[test]
    fn equality() {
        let nan = t("NaN", "double");
        let lang = |s, tag| {
            let mut out = vec![];
            term::push_lang(s, tag, &mut out);
            out
        };
        let other = |s| {
            let mut out = vec![];
            term::push_typed(s, "http://e/dt", &mut out);
            out
        };
        for (a, b, want) in [
            (t("01", "integer"), t("1.0", "decimal"), Some(true)),
            (t("1", "integer"), t("1", "string"), Some(false)),
            (nan.clone(), nan.clone(), Some(false)),
            (t("1", "boolean"), t("true", "boolean"), Some(true)),
            (t("x", "integer"), t("x", "integer"), Some(true)),
            (t("x", "integer"), t("y", "integer"), None),
            (t("x", "integer"), t("1", "integer"), None),
            (t("x", "integer"), b"<x".to_vec(), Some(false)),
            (t("300", "byte"), t("300", "integer"), None),
            (t("a", "token"), t("a", "string"), Some(true)),
            (t("a", "token"), t("a", "NCName"), Some(true)),
            (t("a", "token"), t("b", "string"), Some(false)),
            (t("a", "token"), t("1", "integer"), Some(false)),
            (t("a", "token"), lang("a", "en"), Some(false)),
            (t(" a", "token"), t(" a", "string"), None),
            (t(" a", "token"), t(" a", "token"), Some(true)),
            (
                t("2011-01-01T02:00:00+02:00", "dateTimeStamp"),
                t("2011-01-01T00:00:00", "dateTime"),
                Some(true),
            ),
            (
                t("2011-01-01T00:00:00", "dateTimeStamp"),
                t("2011-01-01T00:00:00", "dateTime"),
                None,
            ),
            (lang("a", "EN"), lang("a", "en"), Some(true)),
            (lang("a", "en"), t("a", "string"), Some(false)),
            (other("a"), other("a"), Some(true)),
            (other("a"), other("b"), None),
            (other("a"), t("a", "string"), None),
            (other("a"), lang("a", "en"), Some(false)),
            (
                t("2011-01-01", "date"),
                t("2011-01-01T00:00:00", "dateTime"),
                Some(false),
            ),
            (
                t("2011-01-01", "date"),
                t("2011-01-01Z", "date"),
                Some(true),
            ),
            (
                t("P1Y", "yearMonthDuration"),
                t("P12M", "duration"),
                Some(true),
            ),
            (
                triple(&t("1", "integer")),
                triple(&t("1.0", "decimal")),
                Some(true),
            ),
            (
                triple(&t("1", "integer")),
                triple(&t("2", "integer")),
                Some(false),
            ),
            (triple(&other("a")), triple(&other("b")), None),
            (triple(&nan), triple(&nan), Some(false)),
            (triple(b"<o"), b"<o".to_vec(), Some(false)),
        ] {
            assert_eq!(equal(&a, &b), want, "{a:?} {b:?}");
            assert_eq!(equal(&b, &a), want, "{b:?} {a:?}");
        }
    }

    #[test]
    fn orders() {
        let cmp = |a: &[u8], b: &[u8]| order(&value(a).unwrap(), &value(b).unwrap());
        assert_eq!(
            cmp(&t("false", "boolean"), &t("1", "boolean")),
            Some(Some(Ordering::Less))
        );
        assert_eq!(cmp(&t("1", "integer"), &t("NaN", "double")), Some(None));
        assert_eq!(cmp(&t("1", "integer"), &t("1", "string")), None);
        assert_eq!(cmp(b"<a", b"<b"), None);
        assert_eq!(cmp(&t("P1M", "duration"), &t("P30D", "duration")), None);
        assert_eq!(
            cmp(&t("2011", "gYear"), &t("2012", "gYear")),
            Some(Some(Ordering::Less))
        );
    }

    #[test]
    fn effective_boolean_values() {
        let ebv = |b: &[u8]| truth(&value(b).unwrap());
        let lang = |s| {
            let mut out = vec![];
            term::push_lang(s, "en", &mut out);
            out
        };
        for (bytes, want) in [
            (t("", "string"), Some(false)),
            (t("a", "string"), Some(true)),
            (lang("x"), Some(true)),
            (lang(""), Some(false)),
            (t("x", "boolean"), Some(false)),
            (t("1", "boolean"), Some(true)),
            (t("x", "integer"), Some(false)),
            (t("300", "byte"), Some(false)),
            (t("a", "token"), Some(true)),
            (t("", "token"), Some(false)),
            (t(" a", "token"), None),
            (t("0.0", "decimal"), Some(false)),
            (t("NaN", "float"), Some(false)),
            (t("-INF", "float"), Some(true)),
            (t("99999999999999999999999", "integer"), Some(true)),
            (t("2011", "gYear"), None),
            (t("x", "date"), None),
            (b"<a".to_vec(), None),
            (triple(b"<o"), None),
        ] {
            assert_eq!(ebv(&bytes), want, "{bytes:?}");
        }
    }
}
