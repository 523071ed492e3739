//! The operators `=` and `<`, and the effective boolean value.

use super::Free;
use super::duration::{Duration, DurationKind};
use super::value::{Value, ValueKind};
use oxrdf::Triple;
use std::cmp::Ordering;

/// The effective boolean value (SPARQL 1.1 §17.2.2). Ill-typed booleans and numbers are false. `None`, an error, for
/// values other than booleans, numbers and strings.
pub(super) fn effective(value: &Value) -> Option<bool> {
    use super::value::Family;
    match value.kind() {
        ValueKind::Boolean(b) => Some(b),
        ValueKind::Number(n) => Some(n.is_true()),
        ValueKind::Text(s, _) => Some(!s.is_empty()),
        ValueKind::Ill(Family::Boolean | Family::Number) => Some(false),
        _ => None,
    }
}

/// `=` by SPARQL 1.1 §17.3 and RDFterm-equal, in the wording of SPARQL 1.2. Compares values if both terms have a value.
/// Terms of different kinds are not equal. `None`, an error, if a literal has no value and the terms differ.
pub(super) fn equal(a: &Value, b: &Value, free: &Free) -> Option<bool> {
    let same = a.term() == b.term();
    Some(match (a.kind(), b.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => a.order(&b) == Some(Ordering::Equal),
        (ValueKind::Temporal(a), ValueKind::Temporal(b)) if a.kind == b.kind => {
            a.instant() == b.instant()
        }
        (ValueKind::Duration(a), ValueKind::Duration(b)) => {
            a.months == b.months && a.seconds == b.seconds
        }
        (ValueKind::Boolean(a), ValueKind::Boolean(b)) => a == b,
        (ValueKind::Text(a, s), ValueKind::Text(b, t)) => a == b && s == t,
        (ValueKind::Triple(a), ValueKind::Triple(b)) => return triples(&a, &b, free),
        _ if same => {
            if a.is_computed() || b.is_computed() {
                free.note("equality of terms whose form was computed");
            }
            true
        }
        (a, b) => {
            let unknown = |k: &ValueKind| matches!(k, ValueKind::Ill(_) | ValueKind::Other);
            // A literal whose value is unknown may be equal to any other literal, except for literals with language
            // tags, which are equal only to themselves.
            let tagged = |k: &ValueKind| matches!(k, ValueKind::Text(_, Some(_)));
            let literal = |k: &ValueKind| {
                !matches!(
                    k,
                    ValueKind::Iri(_) | ValueKind::Blank | ValueKind::Triple(_)
                ) && !tagged(k)
            };
            if (unknown(&a) && literal(&b)) || (unknown(&b) && literal(&a)) {
                return None;
            }
            false
        }
    })
}

/// `=` of two triple terms: `(s1 = s2) && (p1 = p2) && (o1 = o2)` (SPARQL 1.2 §17.3).
fn triples(a: &Triple, b: &Triple, free: &Free) -> Option<bool> {
    let subjects = a.subject == b.subject;
    let objects = equal(
        &Value::from_term(&a.object),
        &Value::from_term(&b.object),
        free,
    );
    if !subjects || a.predicate != b.predicate {
        return Some(false);
    }
    objects
}

/// The order of two values: `None` (an error) if their kinds have no order, `Some(None)` if one is NaN.
fn order(a: &Value, b: &Value, free: &Free) -> Option<Option<Ordering>> {
    Some(match (a.kind(), b.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => a.order(&b),
        (ValueKind::Boolean(a), ValueKind::Boolean(b)) => Some(a.cmp(&b)),
        (ValueKind::Text(a, None), ValueKind::Text(b, None)) => Some(a.cmp(&b)),
        (ValueKind::Temporal(a), ValueKind::Temporal(b)) if a.kind == b.kind => {
            Some(a.instant().cmp(&b.instant()))
        }
        (ValueKind::Duration(a), ValueKind::Duration(b)) => {
            let both = |k: DurationKind| a.kind == k && b.kind == k;
            if both(DurationKind::YearMonth) || both(DurationKind::DayTime) {
                Some(length(&a).cmp(&length(&b)))
            } else {
                free.note("order of durations that XPath does not order");
                return None;
            }
        }
        (ValueKind::Text(..), ValueKind::Text(..)) => {
            free.note("order of strings with language tags (SPARQL 1.1 §17.3.1 allows one)");
            return None;
        }
        (ValueKind::Triple(_), ValueKind::Triple(_)) => {
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
