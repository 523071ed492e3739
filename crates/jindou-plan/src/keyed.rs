//! OPTIONAL whose condition equates a term of one side with one of the other: a key to match by, instead of a test
//! of every pair.

use crate::expression::Expr;
use crate::logical::{End, Kind, Node, Place};
use crate::set::SlotSet;
use jindou_syntax::algebra::Expression;
use std::sync::Arc;

/// For each conjunct `?l = ?r` that can only hold for one and the same term, the right side gets a copy of `?r` under
/// the name `?l`, which both sides then share. Gives the right side, and what is left of the condition.
///
/// `?l` is bound in every row of the left side and not mentioned in the right one, `?r` the other way round; so a
/// pair of rows is compatible with the copy exactly if the conjunct is true for it, and no row gains a binding.
/// An IRI or a blank node equals only itself, so it is enough that one of the two is known to be one.
pub(crate) fn keyed(
    left: &Node,
    mut right: Node,
    condition: Vec<Arc<Expr>>,
) -> (Node, Vec<Arc<Expr>>) {
    let mut rest = vec![];
    for c in condition {
        match key(left, &right, &c) {
            Some((l, copy)) => right = right.extend(l, Arc::new(copy)),
            None => rest.push(c),
        }
    }
    (right, rest)
}

fn key(left: &Node, right: &Node, c: &Expr) -> Option<(crate::Slot, Expr)> {
    let (a, b, same) = match &*c.expression {
        Expression::Equal(a, b) => (a, b, false),
        Expression::SameTerm(a, b) => (a, b, true),
        _ => return None,
    };
    let (Expression::Variable(a), Expression::Variable(b)) = (&**a, &**b) else {
        return None;
    };
    for (l, r) in [(a, b), (b, a)] {
        let (left_slot, right_slot) = (c.slot(l)?, c.slot(r)?);
        let apart = left.certain.has(left_slot)
            && !right.uses.has(left_slot)
            && right.certain.has(right_slot)
            && !left.uses.has(right_slot);
        if apart && (same || resources(left).has(left_slot) || resources(right).has(right_slot)) {
            let copy = Expr::plain(r.clone().into(), [(r.clone(), right_slot)]);
            return Some((left_slot, copy));
        }
    }
    None
}

/// Slots that every solution binds to an IRI or a blank node: subjects, predicates and graphs of patterns.
fn resources(node: &Node) -> SlotSet {
    let all = match &node.kind {
        Kind::Bgp(b) => b
            .patterns
            .iter()
            .flat_map(|p| {
                let end = |e: &End| match e {
                    End::Slot(s) => Some(*s),
                    End::Term(_) => None,
                };
                let graph = match &p.place {
                    Place::Slot(g) => Some(*g),
                    _ => None,
                };
                [end(&p.subject), end(&p.predicate), graph]
            })
            .flatten()
            .collect(),
        Kind::Join(parts) => parts
            .iter()
            .fold(SlotSet::default(), |all, p| all.or(&resources(p))),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::OrderBy { inner, .. }
        | Kind::Distinct { inner, .. }
        | Kind::Reduced { inner, .. }
        | Kind::Slice { inner, .. }
        | Kind::Project(inner) => resources(inner),
        _ => SlotSet::default(),
    };
    all.and(&node.certain)
}
