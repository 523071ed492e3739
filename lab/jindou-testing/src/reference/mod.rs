//! An evaluator of SPARQL expressions written from the specifications alone: SPARQL 1.1 §17 and the additions of SPARQL
//! 1.2, XPath Functions and Operators 3.1, XML Schema 1.1 Datatypes.
//!
//! The evaluator is slow and simple: each step parses the lexical forms of its arguments again, numbers are exact
//! rationals, dates are numbers of days. It shares only the algebra and the terms with the engine under test. If a
//! specification lets implementations choose a result, [`Outcome::free`] says so. Tests can then only check that the
//! engine gives the same result wherever the expression occurs in a query.

mod call;
mod cast;
mod compare;
mod derived;
mod duration;
mod number;
mod operate;
mod same;
mod string;
mod temporal;
#[cfg(test)]
mod tests;
mod value;

pub use same::same;
pub use value::Value;

use number::Number;
use operate::Operator;
use oxrdf::{Literal, Term};
use spargebra::algebra::{Expression, Function};
use std::cell::Cell;

/// The result of an expression for one row.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<T = Value> {
    /// The value; `None` for an error.
    pub value: Option<T>,
    /// The reason why implementations may return another value; `None` if the specification determines the value.
    pub free: Option<&'static str>,
}

/// The effective boolean value of an expression for one row.
pub type Truth = Outcome<bool>;

impl<T> Outcome<T> {
    /// The result of a step of the evaluation, and the reason that the step has noted.
    fn of(step: impl FnOnce(&Free) -> Option<T>) -> Self {
        let free = Free(Cell::new(None));
        let value = step(&free);
        let free = free.0.get();
        Self { value, free }
    }
}

/// The value of an expression. `row` returns the term of a variable, `None` if it is unbound.
pub fn evaluate(e: &Expression, row: &dyn Fn(&str) -> Option<Term>) -> Outcome {
    Outcome::of(|free| Reference { row, free }.value(e))
}

/// The effective boolean value of an expression. `row` returns the term of a variable, `None` if it is unbound.
pub fn truth(e: &Expression, row: &dyn Fn(&str) -> Option<Term>) -> Truth {
    Outcome::of(|free| Reference { row, free }.boolean(e))
}

/// The effective boolean value of a value (SPARQL 1.1 §17.2.2).
pub fn effective(value: &Value) -> Option<bool> {
    compare::effective(value)
}

/// True for a well-typed numeric literal.
pub fn is_numeric(term: &Term) -> bool {
    matches!(Value::from_term(term).kind(), value::ValueKind::Number(_))
}

/// `a = b`.
pub fn equal(a: &Value, b: &Value) -> Truth {
    Outcome::of(|free| compare::equal(a, b, free))
}

/// `a < b`.
pub fn less(a: &Term, b: &Term) -> Truth {
    Outcome::of(|free| compare::less(&Value::from_term(a), &Value::from_term(b), free))
}

/// `a + b`, as SUM computes it.
pub fn add(a: &Value, b: &Value) -> Outcome {
    Outcome::of(|free| operate::arithmetic(Operator::Add, a, b, free))
}

/// `a / b`, as AVG computes it.
pub fn divide(a: &Value, b: &Value) -> Outcome {
    Outcome::of(|free| operate::arithmetic(Operator::Divide, a, b, free))
}

/// The last reason found so far why implementations may return another value.
pub(crate) struct Free(Cell<Option<&'static str>>);

impl Free {
    pub fn note(&self, why: &'static str) {
        self.0.set(Some(why));
    }
}

struct Reference<'r> {
    row: &'r dyn Fn(&str) -> Option<Term>,
    free: &'r Free,
}

impl Reference<'_> {
    fn boolean(&self, e: &Expression) -> Option<bool> {
        compare::effective(&self.value(e)?)
    }

    fn less(&self, a: &Value, b: &Value) -> Option<bool> {
        compare::less(a, b, self.free)
    }

    fn less_or_equal(&self, a: &Value, b: &Value) -> Option<bool> {
        compare::less_or_equal(a, b, self.free)
    }

    fn calculate(&self, op: Operator, a: &Expression, b: &Expression) -> Option<Value> {
        operate::arithmetic(op, &self.value(a)?, &self.value(b)?, self.free)
    }

    fn signed(&self, a: &Expression, sign: fn(&Number) -> Number) -> Option<Value> {
        let why = "XPath has no sign before a duration";
        operate::of_number(&self.value(a)?, sign, why, self.free)
    }

    fn value(&self, e: &Expression) -> Option<Value> {
        Some(match e {
            Expression::NamedNode(n) => Value::from_term(&n.clone().into()),
            Expression::Literal(l) => Value::from_term(&l.clone().into()),
            Expression::Variable(v) => Value::from_term(&(self.row)(v.as_str())?),
            Expression::Or(a, b) => match (self.boolean(a), self.boolean(b)) {
                (Some(true), _) | (_, Some(true)) => true.into(),
                (Some(false), Some(false)) => false.into(),
                _ => return None,
            },
            Expression::And(a, b) => match (self.boolean(a), self.boolean(b)) {
                (Some(false), _) | (_, Some(false)) => false.into(),
                (Some(true), Some(true)) => true.into(),
                _ => return None,
            },
            Expression::Not(a) => (!self.boolean(a)?).into(),
            Expression::Equal(a, b) => {
                compare::equal(&self.value(a)?, &self.value(b)?, self.free)?.into()
            }
            Expression::SameTerm(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                (a.term() == b.term()).into()
            }
            Expression::Less(a, b) => self.less(&self.value(a)?, &self.value(b)?)?.into(),
            Expression::Greater(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.less(&b, &a)?.into()
            }
            Expression::LessOrEqual(a, b) => {
                self.less_or_equal(&self.value(a)?, &self.value(b)?)?.into()
            }
            Expression::GreaterOrEqual(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.less_or_equal(&b, &a)?.into()
            }
            Expression::In(a, list) => return self.is_in(a, list),
            Expression::Add(a, b) => return self.calculate(Operator::Add, a, b),
            Expression::Subtract(a, b) => return self.calculate(Operator::Subtract, a, b),
            Expression::Multiply(a, b) => return self.calculate(Operator::Multiply, a, b),
            Expression::Divide(a, b) => return self.calculate(Operator::Divide, a, b),
            Expression::UnaryPlus(a) => return self.signed(a, Number::clone),
            Expression::UnaryMinus(a) => return self.signed(a, Number::negate),
            Expression::Exists(_) => {
                self.free.note("EXISTS needs data");
                return None;
            }
            Expression::Bound(v) => (self.row)(v.as_str()).is_some().into(),
            Expression::If(c, a, b) => return self.value(if self.boolean(c)? { a } else { b }),
            Expression::Coalesce(list) => return list.iter().find_map(|e| self.value(e)),
            Expression::FunctionCall(f, args) => return self.call(f, args),
        })
    }

    /// IN: true if one element is equal; otherwise an error if one comparison is an error (SPARQL 1.1 §17.4.1.9).
    fn is_in(&self, a: &Expression, list: &[Expression]) -> Option<Value> {
        let a = self.value(a);
        let mut error = false;
        for e in list {
            let found = match (&a, self.value(e)) {
                (Some(a), Some(b)) => compare::equal(a, &b, self.free),
                _ => None,
            };
            match found {
                Some(true) => return Some(true.into()),
                Some(false) => {}
                None => error = true,
            }
        }
        (!error).then(|| false.into())
    }

    fn call(&self, f: &Function, args: &[Expression]) -> Option<Value> {
        // An error in an argument is an error of the call.
        let values = args
            .iter()
            .map(|e| self.value(e))
            .collect::<Option<Vec<_>>>()?;
        call::call(f, &values, self.free)
    }
}

pub(crate) fn typed(text: impl Into<String>, local: &str) -> Term {
    let datatype = oxrdf::NamedNode::new_unchecked(format!("{}{local}", value::XSD));
    Literal::new_typed_literal(text, datatype).into()
}
