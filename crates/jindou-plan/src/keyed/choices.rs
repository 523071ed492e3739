//! Conditions as alternatives (disjunctions): `?a = ?b || ?a = ?c`, `?a IN (?b, ?c)`, `!(?a != ?b && ?c != ?d)`.

use crate::expression::{walk, weighs_at_most};
use jindou_syntax::algebra::Expression;
use std::sync::Arc;

/// Largest number of alternatives of a condition that can be a join key: each needs a hash table of its own.
const MOST: usize = 16;
/// Largest weight of a condition that can be a join key.
const MOST_WEIGHT: usize = 256;

/// Conditions that are all true exactly if the alternative is true.
pub(super) type Alternative = Vec<Expression>;

/// Alternatives of a condition (its disjunctive form): the condition is true exactly if at least one of them is. `None`
/// if there are too many.
///
/// That an alternative may be an error makes no difference: if another one is true, so is the condition; if none is,
/// the condition is false or an error, and the row is dropped in both cases.
pub(super) fn choices(e: &Expression) -> Option<Vec<Alternative>> {
    let mut out = vec![];
    (weighs_at_most(e, MOST_WEIGHT) && add(e, false, &mut out)).then_some(out)
}

/// Adds the alternatives of the condition, or of its negation; returns false if there are too many. Recursion is
/// limited by the condition's weight.
fn add(e: &Expression, is_negated: bool, out: &mut Vec<Alternative>) -> bool {
    use Expression as E;
    match (e, is_negated) {
        (E::Not(e), _) => return add(e, !is_negated, out),
        (E::Or(a, b), false) | (E::And(a, b), true) => {
            return add(a, is_negated, out) && add(b, is_negated, out);
        }
        (E::In(a, list), false) => {
            let (constants, others): (Vec<&E>, Vec<&E>) = list.iter().partition(|e| is_constant(e));
            for other in others {
                out.push(vec![E::Equal(Arc::clone(a), Arc::new(other.shared()))]);
                if out.len() > MOST {
                    return false;
                }
            }
            if !constants.is_empty() {
                let constants = constants.into_iter().map(E::shared).collect();
                out.push(vec![E::In(Arc::clone(a), constants)]);
            }
        }
        _ => {
            let mut all = vec![];
            add_parts(e, is_negated, &mut all);
            out.push(all);
        }
    }
    out.len() <= MOST
}

/// Splits the condition, or its negation, into conditions that are all true exactly if it is. Recursion is limited by
/// the condition's weight.
fn add_parts(e: &Expression, is_negated: bool, out: &mut Alternative) {
    use Expression as E;
    match (e, is_negated) {
        (E::Not(e), _) => add_parts(e, !is_negated, out),
        (E::And(a, b), false) | (E::Or(a, b), true) => {
            add_parts(a, is_negated, out);
            add_parts(b, is_negated, out);
        }
        (e, false) => out.push(e.shared()),
        (e, true) => out.push(E::Not(Arc::new(e.shared()))),
    }
}

fn is_constant(e: &Expression) -> bool {
    let mut varies = false;
    walk(e, &mut |e| {
        varies |= matches!(e, Expression::Variable(_) | Expression::Bound(_));
    });
    !varies
}

/// The conjunction of these conditions; `None` if there are none.
pub(super) fn conjunction(choice: &Alternative) -> Option<Expression> {
    choice
        .iter()
        .map(Expression::shared)
        .reduce(|a, b| Expression::And(Arc::new(a), Arc::new(b)))
}

/// Returns true if the expression may consist of several alternatives or several conditions.
pub(super) fn is_compound(e: &Expression) -> bool {
    matches!(
        e,
        Expression::Or(..) | Expression::And(..) | Expression::Not(_) | Expression::In(..)
    )
}
