//! XPath's constructor functions (SPARQL 1.1 §17.5, F&O 3.1 §19).

use crate::decimal::Decimal;
use crate::duration::Duration;
use crate::exact::Exact;
use crate::number::{Num, Number, NumericKind};
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Value, boolean};
use jindou_model::term;

const DECIMAL_TAG: u8 = term::FIRST_DATATYPE + 1;

/// The value converted to the datatype with this tag (of `term::DATATYPES`); `None` is an error. A number does not
/// carry its exact type: for a type derived from `xsd:integer`, callers write the result with that type's tag.
#[must_use]
pub fn cast(to: u8, v: &Value<'_>) -> Option<Value<'static>> {
    match v {
        Value::String(s) => cast_text(to, s),
        Value::Number(n) if to == term::BOOLEAN_TAG => Some(Value::Boolean(n.truth())),
        Value::Number(n) => number(to, n).map(Value::Number),
        Value::Boolean(b) if to == term::BOOLEAN_TAG => Some(Value::Boolean(*b)),
        Value::Boolean(b) => number(to, &Num::Int((*b).into()).into()).map(Value::Number),
        Value::Temporal(t) => t.cast(TemporalKind::of_tag(to)?).map(Value::Temporal),
        Value::Duration(d) => d.cast(to).map(Value::Duration),
        _ => None,
    }
}

/// The value of a text as a lexical form of the datatype with this tag, after removing surrounding white space (XSD's
/// `collapse`); `None` if it is not one.
#[must_use]
pub fn cast_text(to: u8, text: &str) -> Option<Value<'static>> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if term::NUMERIC_TAGS.contains(&to) {
        return Number::parse(to, text).map(Value::Number);
    }
    if to == term::BOOLEAN_TAG {
        return boolean(text).map(Value::Boolean);
    }
    match TemporalKind::of_tag(to) {
        Some(kind) => Temporal::parse(kind, text).map(Value::Temporal),
        None => Duration::parse(to, text).map(Value::Duration),
    }
}

/// A number converted to the numeric type with this tag; `None` is an error.
fn number(to: u8, n: &Number) -> Option<Number> {
    match NumericKind::of_tag(to)? {
        NumericKind::Double => Some(
            Num::Dbl(match n {
                Number::Small(n) => n.to_f64(),
                long => long.to_f64(),
            })
            .into(),
        ),
        NumericKind::Float => Some(
            Num::Flt(match n {
                Number::Small(n) => n.to_f32(),
                long => long.to_f32(),
            })
            .into(),
        ),
        NumericKind::Exact if to == DECIMAL_TAG => match n {
            Number::Small(Num::Int(i)) => Some(Num::Dec((*i).into()).into()),
            Number::Integer(e) => Some(Number::decimal(e.clone())),
            Number::Small(Num::Dec(_)) | Number::Decimal(_) => Some(n.clone()),
            Number::Small(n) => real_to_decimal(n.to_f64()),
        },
        NumericKind::Exact => {
            let whole = match n {
                Number::Small(Num::Int(_)) | Number::Integer(_) => n.clone(),
                Number::Small(Num::Dec(d)) => {
                    let whole = d.whole();
                    match i64::try_from(whole) {
                        Ok(i) => Num::Int(i).into(),
                        Err(_) => Number::integer(Exact::parse(&whole.to_string())?),
                    }
                }
                Number::Decimal(e) => Number::integer(e.truncate()),
                Number::Small(n) => real_to_integer(n.to_f64())?,
            };
            whole.is_within(to).then_some(whole)
        }
    }
}

/// The decimal nearest to a float or double: the exact value, rounded to 18 digits after the point. `None` for NaN and
/// infinities.
fn real_to_decimal(d: f64) -> Option<Number> {
    if !d.is_finite() {
        return None;
    }
    Some(match Decimal::from_f64(d) {
        Some(d) => Num::Dec(d).into(),
        // A float or double beyond the range of `Decimal` is an integer.
        None => Number::decimal(Exact::from_f64(d)),
    })
}

fn real_to_integer(d: f64) -> Option<Number> {
    if !d.is_finite() {
        return None;
    }
    let whole = d.trunc();
    // −2⁶³ fits 64 bits, 2⁶³ does not.
    let least = i64::MIN as f64;
    Some(if (least..-least).contains(&whole) {
        Num::Int(whole as i64).into()
    } else {
        Number::integer(Exact::from_f64(whole))
    })
}

/// Appends the text of a computed value that a cast to `xsd:string` yields (F&O 3.1 §19.1.1); for terms without a
/// value, their lexical form or IRI. Returns false for blank nodes and triple terms, which cannot be cast.
pub fn push_string(v: &Value<'_>, out: &mut Vec<u8>) -> bool {
    match v {
        Value::Iri(s)
        | Value::String(s)
        | Value::Lang(s, _)
        | Value::Other(s, _)
        | Value::IllTyped(s, _) => out.extend_from_slice(s.as_bytes()),
        Value::Boolean(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Number(n) => n.push_text(out),
        Value::Temporal(t) => t.push_text(out),
        Value::Duration(d) => d.push_text(out),
        Value::Blank(_) | Value::Triple(_) => return false,
    }
    true
}
