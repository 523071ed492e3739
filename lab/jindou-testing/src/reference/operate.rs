//! Arithmetic on numbers, dates, times and durations.

use super::Free;
use super::duration::{Duration, DurationKind};
use super::number::{self, DIGITS, Number, Pair};
use super::temporal::{Temporal, TemporalKind};
use super::value::{Value, ValueKind};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A decimal, rounded if it has more digits than implementations must support.
pub(super) fn bounded(d: BigRational, free: &Free) -> BigRational {
    match number::places(&d) {
        Some(n) if n <= DIGITS => d,
        _ => {
            free.note("a decimal of more than 18 fractional digits may be rounded");
            number::rounded(&d, DIGITS)
        }
    }
}

pub(super) fn numbers(op: Operator, a: &Number, b: &Number, free: &Free) -> Option<Number> {
    use Operator::{Add, Divide, Multiply, Subtract};
    let decimal = |d: BigRational| Number::Decimal(bounded(d, free));
    Some(match (a.pair(b), op) {
        (Pair::Integer(a, b), Add) => Number::Integer(a + b),
        (Pair::Integer(a, b), Subtract) => Number::Integer(a - b),
        (Pair::Integer(a, b), Multiply) => Number::Integer(a * b),
        (Pair::Integer(_, b), Divide) if b.is_zero() => return None,
        (Pair::Integer(a, b), Divide) => decimal(BigRational::new(a, b)),
        (Pair::Decimal(a, b), Add) => Number::Decimal(a + b),
        (Pair::Decimal(a, b), Subtract) => Number::Decimal(a - b),
        (Pair::Decimal(a, b), Multiply) => Number::Decimal(a * b),
        (Pair::Decimal(_, b), Divide) if b.is_zero() => return None,
        (Pair::Decimal(a, b), Divide) => decimal(a / b),
        (Pair::Float(a, b), Add) => Number::Float(a + b),
        (Pair::Float(a, b), Subtract) => Number::Float(a - b),
        (Pair::Float(a, b), Multiply) => Number::Float(a * b),
        (Pair::Float(a, b), Divide) => Number::Float(a / b),
        (Pair::Double(a, b), Add) => Number::Double(a + b),
        (Pair::Double(a, b), Subtract) => Number::Double(a - b),
        (Pair::Double(a, b), Multiply) => Number::Double(a * b),
        (Pair::Double(a, b), Divide) => Number::Double(a / b),
    })
}

/// Evaluates `a op b` (SPARQL 1.1 §17.3; XPath F&O 3.1 §4.2, §8.4, §9.7).
pub(super) fn arithmetic(op: Operator, a: &Value, b: &Value, free: &Free) -> Option<Value> {
    use Operator::{Add, Divide, Multiply, Subtract};
    match (a.kind(), b.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => Some(numbers(op, &a, &b, free)?.value()),
        (ValueKind::Temporal(t), ValueKind::Duration(d)) if matches!(op, Add | Subtract) => {
            moved(&t, &d, op == Subtract, free)
        }
        (ValueKind::Duration(d), ValueKind::Temporal(t)) if op == Add => moved(&t, &d, false, free),
        (ValueKind::Temporal(a), ValueKind::Temporal(b)) if op == Subtract => between(&a, &b, free),
        (ValueKind::Duration(a), ValueKind::Duration(b)) => durations(op, &a, &b, free),
        (ValueKind::Duration(d), ValueKind::Number(n)) if matches!(op, Multiply | Divide) => {
            scaled(&d, &n, op == Divide, free)
        }
        (ValueKind::Number(n), ValueKind::Duration(d)) if op == Multiply => {
            scaled(&d, &n, false, free)
        }
        _ => None,
    }
}

fn moved(t: &Temporal, d: &Duration, back: bool, free: &Free) -> Option<Value> {
    let mut d = d.clone();
    if back {
        (d.months, d.seconds) = (-d.months, -d.seconds);
    }
    match (t.kind, d.kind) {
        (_, DurationKind::Any) => {
            free.note("XPath adds no xsd:duration to dates and times");
            return None;
        }
        (TemporalKind::Time, DurationKind::YearMonth) => {
            free.note("XPath adds no months to a time");
            return None;
        }
        (TemporalKind::DateTime | TemporalKind::Date | TemporalKind::Time, _) => {}
        _ => {
            free.note("XPath adds nothing to gYear and its like");
            return None;
        }
    }
    let out = t.plus(&d)?;
    if out.fields().year.abs() > 9999 {
        free.note("a year of more than four digits may overflow");
    }
    Some(out.value())
}

fn between(a: &Temporal, b: &Temporal, free: &Free) -> Option<Value> {
    if a.kind != b.kind {
        return None;
    }
    if !matches!(
        a.kind,
        TemporalKind::DateTime | TemporalKind::Date | TemporalKind::Time
    ) {
        free.note("XPath does not subtract gYear and its like");
        return None;
    }
    Some(Duration::of_seconds(a.instant() - b.instant()).value())
}

fn durations(op: Operator, a: &Duration, b: &Duration, free: &Free) -> Option<Value> {
    if a.kind != b.kind || a.kind == DurationKind::Any {
        if op != Operator::Multiply {
            free.note(
                "XPath calculates with two durations only if both are of months or both of seconds",
            );
        }
        return None;
    }
    let sign = match op {
        Operator::Add => BigInt::from(1),
        Operator::Subtract => BigInt::from(-1),
        Operator::Multiply => return None,
        Operator::Divide => {
            let length = |d: &Duration| match d.kind {
                DurationKind::YearMonth => BigRational::from(d.months.clone()),
                _ => d.seconds.clone(),
            };
            let (a, b) = (length(a), length(b));
            return (!b.is_zero()).then(|| Number::Decimal(bounded(a / b, free)).value());
        }
    };
    let mut out = a.clone();
    out.months += &b.months * &sign;
    out.seconds += &b.seconds * BigRational::from(sign);
    Some(out.value())
}

/// A duration multiplied (`by` is false) or divided by a number. Months are rounded, halves up.
fn scaled(d: &Duration, n: &Number, by: bool, free: &Free) -> Option<Value> {
    if d.kind == DurationKind::Any {
        free.note("XPath multiplies no xsd:duration");
        return None;
    }
    let whole = n.rational().is_none_or(|f| f.is_integer());
    if matches!(n, Number::Float(_) | Number::Double(_)) && !whole {
        free.note("the digits of a float or double that a duration is multiplied by");
    }
    let factor = match n.rational() {
        Some(f) if by && f.is_zero() => return None,
        Some(f) if by => f.recip(),
        Some(f) => f,
        // Division by infinity gives an empty duration. NaN, and multiplication by infinity, are errors.
        None if by && !n.double().is_nan() => BigRational::zero(),
        None => return None,
    };
    let mut out = d.clone();
    if d.kind == DurationKind::YearMonth {
        out.months = number::half_up(&(BigRational::from(d.months.clone()) * factor)).to_integer();
    } else {
        out.seconds = bounded(&d.seconds * factor, free);
    }
    if out.months.abs() > BigInt::from(10_000_000_000_i64)
        || out.seconds.abs() > BigRational::from(BigInt::from(10).pow(17))
    {
        free.note("a long duration may overflow");
    }
    Some(out.value())
}

/// A function of a number. Implementations may also define it for durations; `why` says so.
pub(super) fn of_number(
    a: &Value,
    f: fn(&Number) -> Number,
    why: &'static str,
    free: &Free,
) -> Option<Value> {
    match a.kind() {
        ValueKind::Number(n) => Some(f(&n).value()),
        ValueKind::Duration(_) => {
            free.note(why);
            None
        }
        _ => None,
    }
}
