//! Constructor functions: SPARQL 1.1 §17.5 with the date and time types of XPath F&O 3.1 §19.

use super::Free;
use super::duration::{Duration, DurationKind};
use super::number::Number;
use super::operate::bounded;
use super::temporal::{Temporal, TemporalKind};
use super::typed;
use super::value::{Kind, Value, XSD};
use num_traits::Zero;

/// `xsd:local(value)`. `None` is an error; so is an unknown function.
pub(super) fn cast(iri: &str, value: &Value, free: &Free) -> Option<Value> {
    let local = iri.strip_prefix(XSD)?;
    if let (Kind::Text(_, Some(_)), false) = (value.kind(), local == "string") {
        free.note("a cast of a string with a language tag");
        return None;
    }
    match local {
        "string" => string(value, free),
        "boolean" => boolean(value).map(Value::from),
        "integer" | "decimal" | "float" | "double" => number(value, local, free).map(|n| n.value()),
        _ if TemporalKind::of(local).is_some() => temporal(value, local, free),
        _ if DurationKind::of(local).is_some() => duration(value, local),
        _ => {
            free.note("a constructor that SPARQL does not list");
            None
        }
    }
}

/// XPath collapses white space before it reads (§19.2).
fn collapsed(s: &str) -> String {
    s.split([' ', '\t', '\r', '\n'])
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The canonical form of a value (XPath F&O 3.1 §19.1.1), an IRI's text.
fn string(value: &Value, free: &Free) -> Option<Value> {
    Some(Value::string(match value.kind() {
        Kind::Blank | Kind::Triple(_) => return None,
        Kind::Iri(s) | Kind::Text(s, None) => s,
        Kind::Boolean(b) => b.to_string(),
        Kind::Number(n) => lexical(&n.value())?,
        Kind::Temporal(t) => lexical(&t.value())?,
        Kind::Duration(d) => lexical(&d.value())?,
        Kind::Text(_, Some(_)) | Kind::Ill(_) | Kind::Other => {
            free.note("a cast of a literal without a value of XML Schema");
            return None;
        }
    }))
}

fn lexical(value: &Value) -> Option<String> {
    super::string::text_of(value)
}

fn boolean(value: &Value) -> Option<bool> {
    match value.kind() {
        Kind::Boolean(b) => Some(b),
        Kind::Number(n) => Some(n.is_true()),
        Kind::Text(s, None) => match collapsed(&s).as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn number(value: &Value, local: &str, free: &Free) -> Option<Number> {
    let n = match value.kind() {
        Kind::Number(n) => n,
        Kind::Boolean(b) => Number::Integer(u8::from(b).into()),
        Kind::Text(s, None) => Number::parse(&collapsed(&s), local)?,
        _ => return None,
    };
    if matches!(n, Number::Integer(_)) && local == "decimal" {
        return Some(Number::Decimal(bounded(n.rational()?, free)));
    }
    Some(match local {
        "integer" => Number::Integer(n.rational()?.trunc().to_integer()),
        "decimal" => match n {
            Number::Decimal(d) => Number::Decimal(d),
            n => Number::Decimal(bounded(n.rational()?, free)),
        },
        "float" => Number::Float(n.float()),
        _ => Number::Double(n.double()),
    })
}

fn temporal(value: &Value, local: &str, free: &Free) -> Option<Value> {
    let to = TemporalKind::of(local)?;
    let out = match value.kind() {
        Kind::Temporal(t) => t.cast(to)?,
        Kind::Text(s, None) => Temporal::parse(&collapsed(&s), local)?,
        _ => return None,
    };
    if !matches!(
        to,
        TemporalKind::DateTime | TemporalKind::Date | TemporalKind::Time
    ) {
        free.note("a constructor that SPARQL does not list");
    }
    Some(out.value())
}

fn duration(value: &Value, local: &str) -> Option<Value> {
    let to = DurationKind::of(local)?;
    let out = match value.kind() {
        Kind::Duration(d) => d.of_kind(to),
        Kind::Text(s, None) => Duration::parse(&collapsed(&s), local)?,
        _ => return None,
    };
    debug_assert!(out.months.is_zero() || to != DurationKind::DayTime);
    Some(out.value())
}

/// STRDT: any lexical form, any datatype.
pub(super) fn typed_literal(text: &str, datatype: &str) -> Value {
    match datatype.strip_prefix(XSD) {
        Some(local) => Value::of(&typed(text, local)),
        None => Value::of(
            &oxrdf::Literal::new_typed_literal(text, oxrdf::NamedNode::new_unchecked(datatype))
                .into(),
        ),
    }
}
