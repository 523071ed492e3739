//! Expressions with the slots of their variables.

use crate::set::SlotSet;
use crate::{Functions, GeneralExpression, Slot};
use spargebra::algebra::{Expression, Function};
use spargebra::term::Variable;

/// An EXISTS-free expression whose variables are slots; a variable that is not listed is unbound.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub expression: Expression,
    pub variables: Vec<(Variable, Slot)>,
    /// See [`GeneralExpression::per_row`].
    pub per_row: bool,
    pub base_iri: Option<String>,
    pub functions: Functions,
}

impl Expr {
    pub(crate) fn slots(&self) -> SlotSet {
        self.variables.iter().map(|v| v.1).collect()
    }

    pub(crate) fn slot(&self, v: &Variable) -> Option<Slot> {
        self.variables.iter().find(|x| x.0 == *v).map(|x| x.1)
    }

    pub(crate) fn general(&self) -> GeneralExpression {
        self.part(&self.expression)
    }

    /// A part of the expression, by itself.
    pub(crate) fn part(&self, e: &Expression) -> GeneralExpression {
        let mut variables: Vec<(Variable, Slot)> = vec![];
        let mut per_row = false;
        walk(e, &mut |e| match e {
            Expression::Variable(v) | Expression::Bound(v) => {
                if let Some(slot) = self.slot(v)
                    && !variables.iter().any(|x| x.0 == *v)
                {
                    variables.push((v.clone(), slot));
                }
            }
            // Of functions by IRI the whole knows whether one of them varies.
            Expression::FunctionCall(Function::Custom(_), _) => per_row |= self.per_row,
            Expression::FunctionCall(f, _) => per_row |= varies(f),
            _ => {}
        });
        GeneralExpression {
            expression: e.clone(),
            variables,
            per_row,
            base_iri: self.base_iri.clone(),
            functions: self.functions.clone(),
            asked: None,
        }
    }
}

/// True for functions whose value is another one in each row.
pub(crate) fn varies(f: &Function) -> bool {
    matches!(
        f,
        Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode
    )
}

/// The list of the expressions directly inside one, for references of either kind.
macro_rules! directly_inside {
    ($e:ident, $iter:ident, $($reference:tt)+) => {{
        use Expression as E;
        match $e {
            E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => vec![],
            E::Or(a, b)
            | E::And(a, b)
            | E::Equal(a, b)
            | E::SameTerm(a, b)
            | E::Greater(a, b)
            | E::GreaterOrEqual(a, b)
            | E::Less(a, b)
            | E::LessOrEqual(a, b)
            | E::Add(a, b)
            | E::Subtract(a, b)
            | E::Multiply(a, b)
            | E::Divide(a, b) => vec![a, b],
            E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => vec![a],
            E::In(a, list) => std::iter::once($($reference)+ **a).chain(list).collect(),
            E::If(a, b, c) => vec![a, b, c],
            E::Coalesce(list) | E::FunctionCall(_, list) => list.$iter().collect(),
        }
    }};
}

/// The expressions directly inside one; patterns of EXISTS are not looked into.
#[must_use]
pub fn parts(e: &Expression) -> Vec<&Expression> {
    directly_inside!(e, iter, &)
}

/// The same, to change them.
pub fn parts_mut(e: &mut Expression) -> Vec<&mut Expression> {
    directly_inside!(e, iter_mut, &mut)
}

/// Calls `f` with the expression and everything inside, EXISTS's patterns aside.
pub(crate) fn walk<'a>(e: &'a Expression, f: &mut impl FnMut(&'a Expression)) {
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        f(e);
        stack.extend(parts(e));
    }
}

/// Members of an IN that weigh as much as one part of an expression.
const MEMBERS: usize = 16;

/// How much it is to plan and test an expression once more: its parts, of a list of constants a share.
pub(crate) fn weight(e: &Expression) -> usize {
    let mut weight = 0;
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        weight += 1;
        match e {
            Expression::In(a, list) => {
                weight += list.len() / MEMBERS;
                stack.push(a);
                let is_constant = |e: &&Expression| {
                    matches!(e, Expression::NamedNode(_) | Expression::Literal(_))
                };
                stack.extend(list.iter().filter(|e| !is_constant(e)));
            }
            e => stack.extend(parts(e)),
        }
    }
    weight
}

/// The conjuncts of a filter: a row stays if all are true, whatever is false or an error.
pub(crate) fn conjuncts(e: &Expression) -> Vec<&Expression> {
    let mut out = vec![];
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        if let Expression::And(a, b) = e {
            stack.push(b);
            stack.push(a);
        } else {
            out.push(e);
        }
    }
    out
}
