//! Queries for `spareval` in which none of its departures from the specification in expressions shows: each is written in terms
//! that it evaluates as specified.
//!
//! | `spareval` | SPARQL 1.1 | written as |
//! |---|---|---|
//! | `<=` of the same IRI, blank node … is true, `<` false | error (§17.3) | asks for the datatype first, which only literals have |
//! | no order of booleans | `op:boolean-less-than` (§17.3) | their integers are compared |
//! | the effective boolean value of a string with a language is an error | its length (§17.2.2) | STRLEN |

use oxrdf::Literal;
use oxrdf::vocab::xsd;
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression as E, Function, GraphPattern as G, OrderExpression,
};

/// Rewrites a query's expressions.
pub fn as_specified(query: &mut Query) {
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    in_pattern(pattern);
}

/// Rewrites a pattern's expressions.
pub fn in_pattern(pattern: &mut G) {
    match pattern {
        G::Bgp { .. } | G::Path { .. } | G::Values { .. } | G::Service { .. } => {}
        G::Filter { expr, inner } => {
            truth(expr);
            in_pattern(inner);
        }
        G::LeftJoin {
            left,
            right,
            expression,
        } => {
            expression.iter_mut().for_each(truth);
            in_pattern(left);
            in_pattern(right);
        }
        G::Join { left, right }
        | G::Union { left, right }
        | G::Minus { left, right }
        | G::Lateral { left, right } => {
            in_pattern(left);
            in_pattern(right);
        }
        G::Extend {
            inner, expression, ..
        } => {
            value(expression);
            in_pattern(inner);
        }
        G::OrderBy { inner, expression } => {
            for key in expression {
                let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = key;
                value(e);
            }
            in_pattern(inner);
        }
        G::Group {
            inner, aggregates, ..
        } => {
            for (_, a) in aggregates {
                if let AggregateExpression::FunctionCall { expr, .. } = a {
                    value(expr);
                }
            }
            in_pattern(inner);
        }
        G::Graph { inner, .. }
        | G::Project { inner, .. }
        | G::Distinct { inner }
        | G::Reduced { inner }
        | G::Slice { inner, .. } => in_pattern(inner),
    }
}

fn call(f: Function, of: &E) -> E {
    E::FunctionCall(f, vec![of.clone()])
}

/// Where the effective boolean value counts.
fn truth(e: &mut E) {
    value(e);
    let plain = matches!(
        e,
        E::Variable(_) | E::Literal(_) | E::Coalesce(_) | E::If(..) | E::FunctionCall(..)
    );
    if plain {
        let none = Box::new(Literal::from("").into());
        let untagged = E::Equal(Box::new(call(Function::Lang, e)), none);
        let text = call(Function::Str, e);
        let long = E::Greater(
            Box::new(call(Function::StrLen, &text)),
            Box::new(Literal::from(0).into()),
        );
        *e = E::If(Box::new(untagged), Box::new(e.clone()), Box::new(long));
    }
}

fn value(e: &mut E) {
    match e {
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) => {}
        E::Exists(p) => in_pattern(p),
        E::Not(a) => truth(a),
        E::And(a, b) | E::Or(a, b) => {
            truth(a);
            truth(b);
        }
        E::If(a, b, c) => {
            truth(a);
            value(b);
            value(c);
        }
        E::UnaryPlus(a) | E::UnaryMinus(a) => value(a),
        E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => {
            value(a);
            value(b);
        }
        E::In(a, list) => {
            value(a);
            list.iter_mut().for_each(value);
        }
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter_mut().for_each(value),
        E::Less(a, b) | E::LessOrEqual(a, b) | E::Greater(a, b) | E::GreaterOrEqual(a, b) => {
            value(a);
            value(b);
            let boolean = |of: &E| {
                let datatype = xsd::BOOLEAN.into_owned().into();
                E::Equal(Box::new(call(Function::Datatype, of)), Box::new(datatype))
            };
            let both = E::And(Box::new(boolean(a)), Box::new(boolean(b)));
            let whole = |of: &E| Box::new(call(Function::Custom(xsd::INTEGER.into_owned()), of));
            let (x, y) = (whole(a), whole(b));
            let numbers = match e {
                E::Less(..) => E::Less(x, y),
                E::LessOrEqual(..) => E::LessOrEqual(x, y),
                E::Greater(..) => E::Greater(x, y),
                _ => E::GreaterOrEqual(x, y),
            };
            // An error for what is no literal.
            *e = E::If(Box::new(both), Box::new(numbers), Box::new(e.clone()));
        }
    }
}
