//! Constructor functions of SPARQL 1.1 §17.5, and those of the date and time types of XPath F&O 3.1 §19.

use super::Free;
use super::derived;
use super::duration::{Duration, DurationKind};
use super::number::Number;
use super::operate::bounded;
use super::temporal::{Temporal, TemporalKind};
use super::typed;
use super::value::{Value, ValueKind, XSD};
use num_traits::Zero;

/// Evaluates the cast `xsd:local(value)`, where `iri` is the datatype. `None` for an error, and for an unknown
/// function.
pub(super) fn cast(iri: &str, value: &Value, free: &Free) -> Option<Value> {
    let local = iri.strip_prefix(XSD)?;
    if let (ValueKind::Text(_, Some(_)), false) = (value.kind(), local == "string") {
        free.note("a cast of a string with a language tag");
        return None;
    }
    match local {
        "string" => string(value, free),
        "boolean" => boolean(value).map(Value::from),
        "integer" | "decimal" | "float" | "double" => number(value, local, free).map(|n| n.value()),
        _ if TemporalKind::from_local_name(local).is_some() => temporal(value, local, free),
        "dateTimeStamp" => {
            let made = temporal(value, "dateTime", free)?;
            let ValueKind::Temporal(t) = made.kind() else {
                return None;
            };
            t.zone.as_ref()?;
            free.note("a constructor that SPARQL does not list");
            let text = super::string::text_of(&made)?;
            Some(Value::computed(typed(text, local)))
        }
        _ if derived::is_lexical(local, "").is_some() => {
            free.note("a constructor that SPARQL does not list");
            let text = super::string::text_of(&string(value, free)?)?;
            let text = derived::processed(local, &text);
            derived::is_lexical(local, &text)?.then(|| Value::from_term(&typed(text, local)))
        }
        _ if DurationKind::from_local_name(local).is_some() => duration(value, local),
        _ => {
            free.note("a constructor that SPARQL does not list");
            None
        }
    }
}

/// Collapses white space, as XPath does before it parses a lexical form (§19.2).
fn collapsed(s: &str) -> String {
    s.split([' ', '\t', '\r', '\n'])
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The canonical form of a value (XPath F&O 3.1 §19.1.1); the text of an IRI.
fn string(value: &Value, free: &Free) -> Option<Value> {
    Some(Value::string(match value.kind() {
        ValueKind::Blank | ValueKind::Triple(_) => return None,
        ValueKind::Iri(s) | ValueKind::Text(s, None) => s,
        ValueKind::Boolean(b) => b.to_string(),
        ValueKind::Number(n) => lexical(&n.value())?,
        ValueKind::Temporal(t) => lexical(&t.value())?,
        ValueKind::Duration(d) => lexical(&d.value())?,
        ValueKind::Text(_, Some(_)) | ValueKind::Ill(_) | ValueKind::Other => {
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
        ValueKind::Boolean(b) => Some(b),
        ValueKind::Number(n) => Some(n.is_true()),
        ValueKind::Text(s, None) => match collapsed(&s).as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn number(value: &Value, local: &str, free: &Free) -> Option<Number> {
    let n = match value.kind() {
        ValueKind::Number(n) => n,
        ValueKind::Boolean(b) => Number::Integer(u8::from(b).into()),
        ValueKind::Text(s, None) => Number::parse(&collapsed(&s), local)?,
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
    let to = TemporalKind::from_local_name(local)?;
    let out = match value.kind() {
        ValueKind::Temporal(t) => t.cast(to)?,
        ValueKind::Text(s, None) => Temporal::parse(&collapsed(&s), local)?,
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
    let to = DurationKind::from_local_name(local)?;
    let out = match value.kind() {
        ValueKind::Duration(d) => d.of_kind(to),
        ValueKind::Text(s, None) => Duration::parse(&collapsed(&s), local)?,
        _ => return None,
    };
    debug_assert!(out.months.is_zero() || to != DurationKind::DayTime);
    Some(out.value())
}

/// STRDT, for any lexical form and any datatype.
pub(super) fn typed_literal(text: &str, datatype: &str) -> Value {
    match datatype.strip_prefix(XSD) {
        Some(local) => Value::from_term(&typed(text, local)),
        None => Value::from_term(
            &oxrdf::Literal::new_typed_literal(text, oxrdf::NamedNode::new_unchecked(datatype))
                .into(),
        ),
    }
}
