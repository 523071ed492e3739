//! `=`, `<` and the effective boolean value.

use super::Free;
use super::duration::{Duration, DurationKind};
use super::value::{Kind, Value};
use oxrdf::Triple;
use std::cmp::Ordering;

/// SPARQL 1.1 §17.2.2: ill-typed booleans and numbers are false, all but booleans, numbers and strings an error.
pub(super) fn effective(value: &Value) -> Option<bool> {
    use super::value::Family;
    match value.kind() {
        Kind::Boolean(b) => Some(b),
        Kind::Number(n) => Some(n.is_true()),
        Kind::Text(s, _) => Some(!s.is_empty()),
        Kind::Ill(Family::Boolean | Family::Number) => Some(false),
        _ => None,
    }
}

/// SPARQL 1.1 §17.3 and RDFterm-equal, as SPARQL 1.2 words it: values where there are values, an error where a literal has none and
/// the terms differ, false between values of different kinds.
pub(super) fn equal(a: &Value, b: &Value, free: &Free) -> Option<bool> {
    let same = a.term() == b.term();
    Some(match (a.kind(), b.kind()) {
        (Kind::Number(a), Kind::Number(b)) => a.order(&b) == Some(Ordering::Equal),
        (Kind::Temporal(a), Kind::Temporal(b)) if a.kind == b.kind => a.instant() == b.instant(),
        (Kind::Duration(a), Kind::Duration(b)) => a.months == b.months && a.seconds == b.seconds,
        (Kind::Boolean(a), Kind::Boolean(b)) => a == b,
        (Kind::Text(a, s), Kind::Text(b, t)) => a == b && s == t,
        (Kind::Triple(a), Kind::Triple(b)) => return triples(&a, &b, free),
        _ if same => {
            if a.is_computed() || b.is_computed() {
                free.note("equality of terms whose form was computed");
            }
            true
        }
        (a, b) => {
            let unknown = |k: &Kind| matches!(k, Kind::Ill(_) | Kind::Other);
            // A literal without a value may have any, but none with a language tag: those are values of their own.
            let tagged = |k: &Kind| matches!(k, Kind::Text(_, Some(_)));
            let literal =
                |k: &Kind| !matches!(k, Kind::Iri(_) | Kind::Blank | Kind::Triple(_)) && !tagged(k);
            if (unknown(&a) && literal(&b)) || (unknown(&b) && literal(&a)) {
                return None;
            }
            false
        }
    })
}

/// `(s1 = s2) && (p1 = p2) && (o1 = o2)` (SPARQL 1.2 §17.3).
fn triples(a: &Triple, b: &Triple, free: &Free) -> Option<bool> {
    let subjects = a.subject == b.subject;
    let objects = equal(&Value::of(&a.object), &Value::of(&b.object), free);
    if !subjects || a.predicate != b.predicate {
        return Some(false);
    }
    objects
}

/// `None` where values are not ordered, and for NaN `Some(None)`.
fn order(a: &Value, b: &Value, free: &Free) -> Option<Option<Ordering>> {
    Some(match (a.kind(), b.kind()) {
        (Kind::Number(a), Kind::Number(b)) => a.order(&b),
        (Kind::Boolean(a), Kind::Boolean(b)) => Some(a.cmp(&b)),
        (Kind::Text(a, None), Kind::Text(b, None)) => Some(a.cmp(&b)),
        (Kind::Temporal(a), Kind::Temporal(b)) if a.kind == b.kind => {
            Some(a.instant().cmp(&b.instant()))
        }
        (Kind::Duration(a), Kind::Duration(b)) => {
            let both = |k: DurationKind| a.kind == k && b.kind == k;
            if both(DurationKind::YearMonth) || both(DurationKind::DayTime) {
                Some(length(&a).cmp(&length(&b)))
            } else {
                free.note("order of durations that XPath does not order");
                return None;
            }
        }
        (Kind::Text(..), Kind::Text(..)) => {
            free.note("order of strings with language tags (SPARQL 1.1 §17.3.1 allows one)");
            return None;
        }
        (Kind::Triple(_), Kind::Triple(_)) => {
            free.note("order of triple terms (SPARQL 1.1 §17.3.1 allows one)");
            return None;
        }
        _ => return None,
    })
}

fn length(d: &Duration) -> (num_bigint::BigInt, num_rational::BigRational) {
    (d.months.clone(), d.seconds.clone())
}

pub(super) fn less(a: &Value, b: &Value, free: &Free) -> Option<bool> {
    Some(order(a, b, free)? == Some(Ordering::Less))
}

pub(super) fn less_or_equal(a: &Value, b: &Value, free: &Free) -> Option<bool> {
    Some(matches!(
        order(a, b, free)?,
        Some(Ordering::Less | Ordering::Equal)
    ))
}
