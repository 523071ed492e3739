//! Comparison of a term from an engine with the expected value.

use super::number::Number;
use super::value::{Value, ValueKind};
use oxrdf::Term;

/// True if the term `got` is a correct result for the expected value `want`. It must be the same term, or, if a
/// computation chose the lexical form, a literal of the same datatype with an identical value (XML Schema 1.1 §2.2.1:
/// zeros have signs, NaN is identical to NaN, and time zones matter). All blank nodes are the same.
pub fn same(got: &Term, want: &Value) -> bool {
    if let (Term::Triple(a), Term::Triple(b)) = (got, want.term()) {
        let object = if want.is_computed() {
            Value::computed(b.object.clone())
        } else {
            Value::from_term(&b.object)
        };
        let subjects = match (&a.subject, &b.subject) {
            (oxrdf::NamedOrBlankNode::BlankNode(_), oxrdf::NamedOrBlankNode::BlankNode(_)) => true,
            (a, b) => a == b,
        };
        return subjects && a.predicate == b.predicate && same(&a.object, &object);
    }
    if let (Term::BlankNode(_), Term::BlankNode(_)) = (got, want.term()) {
        return true;
    }
    if got == want.term() {
        return true;
    }
    let (Term::Literal(a), Term::Literal(b)) = (got, want.term()) else {
        return false;
    };
    want.is_computed() && a.datatype() == b.datatype() && identical(got, want)
}

fn identical(got: &Term, want: &Value) -> bool {
    match (ValueKind::from_term(got), want.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => match (a, b) {
            (Number::Integer(a), Number::Integer(b)) => a == b,
            (Number::Decimal(a), Number::Decimal(b)) => a == b,
            (Number::Float(a), Number::Float(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (Number::Double(a), Number::Double(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            _ => false,
        },
        (ValueKind::Boolean(a), ValueKind::Boolean(b)) => a == b,
        (ValueKind::Temporal(a), ValueKind::Temporal(b)) => {
            a.kind == b.kind && a.zone == b.zone && a.local == b.local
        }
        (ValueKind::Duration(a), ValueKind::Duration(b)) => {
            a.kind == b.kind && a.months == b.months && a.seconds == b.seconds
        }
        _ => false,
    }
}
