//! XPath's constructor functions (SPARQL 1.1 §17.5, F&O 3.1 §19).

use crate::decimal::Decimal;
use crate::duration::Duration;
use crate::exact::Exact;
use crate::number::{Num, Number, NumericKind};
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Value, boolean};
use jindou_model::term;

const DECIMAL_TAG: u8 = term::FIRST_DATATYPE + 1;

/// The value in the datatype with this tag (of `term::DATATYPES`); `None` is an error. A number's value is converted
/// with its type: for an integer type derived from `xsd:integer` it is written with that type's tag.
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

/// The value of a text in the datatype with this tag; surrounding white space is ignored (XSD's `collapse`).
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

/// A number in the numeric type with this tag.
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

/// The decimal nearest to a float or double: its exact value, to 18 digits after the point.
fn real_to_decimal(d: f64) -> Option<Number> {
    if !d.is_finite() {
        return None;
    }
    Some(match Decimal::from_f64(d) {
        Some(d) => Num::Dec(d).into(),
        // A number this large is an integer.
        None => Number::decimal(Exact::from_f64(d)),
    })
}

fn real_to_integer(d: f64) -> Option<Number> {
    if !d.is_finite() {
        return None;
    }
    let whole = d.trunc();
    // −2⁶³ is a 64-bit integer, 2⁶³ is not.
    let least = i64::MIN as f64;
    Some(if (least..-least).contains(&whole) {
        Num::Int(whole as i64).into()
    } else {
        Number::integer(Exact::from_f64(whole))
    })
}

/// Appends the text of a computed value as in a cast to `xsd:string` (F&O 3.1 §19.1.1); for terms without a value,
/// their own text. False for blank nodes and triple terms, which have none.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::value;

    fn bytes(lexical: &str, datatype: &str) -> Vec<u8> {
        let mut out = vec![];
        term::push_typed(
            lexical,
            &format!("http://www.w3.org/2001/XMLSchema#{datatype}"),
            &mut out,
        );
        out
    }

    fn to(name: &str, from: &[u8]) -> String {
        let v = value(from).unwrap();
        let mut out = vec![];
        if name == "string" {
            if !push_string(&v, &mut out) {
                return "error".into();
            }
        } else {
            let tag =
                term::datatype_code(&format!("http://www.w3.org/2001/XMLSchema#{name}")).unwrap();
            match cast(tag, &v) {
                Some(v) => assert!(push_string(&v, &mut out)),
                None => return "error".into(),
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn casts_as_functions_and_operators_has_them() {
        for (name, lexical, datatype, want) in [
            ("integer", "1.0E6", "float", "1000000"),
            ("integer", "1e15", "double", "1000000000000000"),
            ("integer", "1e18", "double", "1000000000000000000"),
            (
                "integer",
                "9223372036854775808",
                "double",
                "9223372036854775808",
            ),
            (
                "integer",
                "-9223372036854775808",
                "double",
                "-9223372036854775808",
            ),
            (
                "integer",
                "1e30",
                "double",
                "1000000000000000019884624838656",
            ),
            ("integer", "-1.9", "double", "-1"),
            ("integer", "NaN", "double", "error"),
            ("integer", "INF", "float", "error"),
            ("integer", "-1.9", "decimal", "-1"),
            (
                "integer",
                "123456789012345678901.9",
                "decimal",
                "123456789012345678901",
            ),
            (
                "integer",
                "1234567890123456789012.9",
                "decimal",
                "1234567890123456789012",
            ),
            ("integer", " 7 ", "string", "7"),
            ("integer", "1.5", "string", "error"),
            ("integer", "true", "boolean", "1"),
            ("decimal", "1234567.25e0", "double", "1234567.25"),
            ("decimal", "0.1", "float", "0.100000001490116119"),
            ("decimal", "1e400", "double", "error"),
            ("decimal", "1e22", "double", "10000000000000000000000"),
            ("decimal", "false", "boolean", "0"),
            (
                "decimal",
                "99999999999999999999999",
                "integer",
                "99999999999999999999999",
            ),
            ("decimal", "1e0", "string", "error"),
            ("double", "1e400", "string", "INF"),
            ("double", "0.1", "float", "0.10000000149011612"),
            ("float", "16777217", "integer", "1.6777216E7"),
            ("float", "0.1", "double", "0.1"),
            ("boolean", "NaN", "double", "false"),
            ("boolean", "0.0", "decimal", "false"),
            ("boolean", "99999999999999999999", "integer", "true"),
            ("boolean", " 1\n", "string", "true"),
            ("boolean", "TRUE", "string", "error"),
            ("byte", "300", "integer", "error"),
            ("byte", "127.9", "double", "127"),
            (
                "unsignedLong",
                "18446744073709551615",
                "decimal",
                "18446744073709551615",
            ),
            ("string", "01", "integer", "1"),
            ("string", "1.50", "decimal", "1.5"),
            ("string", "1", "boolean", "true"),
            ("string", "1e0", "double", "1"),
            ("string", "1e6", "double", "1.0E6"),
            (
                "string",
                "2011-01-10T24:00:00",
                "dateTime",
                "2011-01-11T00:00:00",
            ),
            ("date", "2011-01-10T14:45:13Z", "dateTime", "2011-01-10Z"),
            ("dateTime", "2011-01-10", "date", "2011-01-10T00:00:00"),
            ("dateTime", "2011-01-10", "string", "error"),
            ("dateTime", "x", "dateTime", "error"),
            ("integer", "2011", "gYear", "error"),
            ("dayTimeDuration", "P1Y2DT3H", "duration", "P2DT3H"),
            ("yearMonthDuration", "P1Y2DT3H", "duration", "P1Y"),
            ("duration", "PT24H", "dayTimeDuration", "P1D"),
            ("duration", "P1D", "string", "P1D"),
            ("gYear", "2011-01-10", "date", "2011"),
        ] {
            assert_eq!(
                to(name, &bytes(lexical, datatype)),
                want,
                "{name}({lexical} {datatype})"
            );
        }
        assert_eq!(to("string", b"<http://e/a"), "http://e/a");
        assert_eq!(to("integer", b"<http://e/a"), "error");
        assert_eq!(to("string", b"_:b"), "error");
        assert_eq!(to("string", b"@en\0x"), "x");
        assert_eq!(to("integer", b"@en\x00001"), "error");
    }
}
