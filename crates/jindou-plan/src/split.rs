//! Parts of a node that share no slot: what only conditions connect is joined by these, before anything makes a product of it.
//!
//! `{ A OPTIONAL { B } } { C } FILTER(?b = ?c)` is `(A × C) OPTIONAL B` after OPTIONAL was put on top of the join. Here it becomes
//! `A OPTIONAL B` and `C` again.

use crate::ApplyKind;
use crate::equal;
use crate::expression::Expr;
use crate::keyed::{compares, slots_compared};
use crate::logical::{Kind, Node};
use crate::set::SlotSet;
use std::sync::Arc;

/// Nodes up to which a tree is taken apart: its parts are copies.
const MOST: usize = 256;

/// Parts of a node, and conditions over several of them: joined, with the conditions as a filter, they are the node.
pub(crate) struct Split {
    pub parts: Vec<Node>,
    pub over: Vec<Arc<Expr>>,
}

/// The parts of a filtered node that is a join under operators which concern some of them only; `None` if no condition compares
/// one part with another.
pub(crate) fn split(node: &Node, filters: &[Arc<Expr>]) -> Option<Split> {
    let is_made_of_joins = matches!(
        node.kind,
        Kind::LeftJoin { .. } | Kind::Minus { .. } | Kind::Extend { .. } | Kind::Apply { .. }
    );
    if !is_made_of_joins || !filters.iter().any(|f| compares(f)) || !is_small(node) {
        return None;
    }
    let mut all = parts(node);
    all.over.extend_from_slice(filters);
    let part = |slots: &SlotSet| all.parts.iter().position(|p| slots.is_within(&p.possible));
    let connects = |f: &Arc<Expr>| {
        slots_compared(f)
            .iter()
            .any(|(a, b)| matches!((part(a), part(b)), (Some(a), Some(b)) if a != b))
    };
    all.over.iter().any(connects).then_some(all)
}

fn is_small(node: &Node) -> bool {
    let (mut open, mut seen) = (vec![node], 0);
    while let Some(node) = open.pop() {
        seen += 1;
        match &node.kind {
            Kind::Bgp(b) => seen += b.patterns.len() + b.filters.len(),
            Kind::Values { rows, .. } => seen += rows.len(),
            Kind::Join(list) | Kind::Union(list) => open.extend(list),
            Kind::LeftJoin { left, right, .. } | Kind::Minus { left, right } => {
                open.extend([&**left, &**right]);
            }
            Kind::Apply { input, body, .. } => open.extend([&**input, &**body]),
            Kind::Filter { inner, .. }
            | Kind::Extend { inner, .. }
            | Kind::Group { inner, .. }
            | Kind::OrderBy { inner, .. }
            | Kind::Distinct { inner, .. }
            | Kind::Reduced { inner, .. }
            | Kind::Slice { inner, .. }
            | Kind::Project(inner) => open.push(inner),
            Kind::Graphs(_) | Kind::HasGraph(_) | Kind::Path(_) | Kind::Service(_) => {}
        }
        if seen > MOST {
            return false;
        }
    }
    true
}

/// Recurses as far as the node is small.
fn parts(node: &Node) -> Split {
    let one = |node: &Node| Split {
        parts: vec![node.copied()],
        over: vec![],
    };
    let slots_of = |list: &[Arc<Expr>]| {
        list.iter()
            .fold(SlotSet::default(), |a, f| a.or(&f.slots()))
    };
    // What an operator adds belongs to the parts that it reads.
    let with = |inner: &Node, reads: &SlotSet, operator: &dyn Fn(Node) -> Node| {
        let Split { parts, over } = parts(inner);
        let (its, mut rest): (Vec<Node>, Vec<Node>) =
            parts.into_iter().partition(|p| p.uses.meets(reads));
        // A filter over several parts comes after the operator, which must not have changed what it reads.
        if its.is_empty() || over.iter().any(|f| !f.slots().is_within(&inner.certain)) {
            return one(node);
        }
        rest.push(operator(its.into_iter().fold(Node::unit(), Node::join)));
        Split { parts: rest, over }
    };
    match &node.kind {
        Kind::Bgp(b) if b.filters.iter().all(|f| !f.per_row) => {
            let (groups, over) = equal::components(b, true);
            if groups.len() < 2 {
                return one(node);
            }
            let parts = groups
                .into_iter()
                .map(|b| Node::bgp(b.patterns, SlotSet::default()).filter(b.filters))
                .collect();
            Split { parts, over }
        }
        Kind::Join(list) => {
            let mut all: Vec<Node> = vec![];
            let mut over = vec![];
            for part in list {
                let mut split = parts(part);
                over.append(&mut split.over);
                for mut new in split.parts {
                    let (its, rest): (Vec<Node>, Vec<Node>) =
                        all.into_iter().partition(|p| p.uses.meets(&new.uses));
                    all = rest;
                    for i in its {
                        new = Node::join(i, new);
                    }
                    all.push(new);
                }
            }
            Split { parts: all, over }
        }
        Kind::LeftJoin {
            left,
            right,
            condition,
        } => {
            let reads = right.uses.or(&slots_of(condition));
            with(left, &reads, &|left| {
                Node::left_join(left, right.copied(), condition.clone())
            })
        }
        Kind::Minus { left, right } => {
            with(left, &right.uses, &|left| Node::minus(left, right.copied()))
        }
        Kind::Extend { inner, to, value } if !value.per_row => {
            let mut reads = value.slots();
            reads.insert(*to);
            with(inner, &reads, &|inner| inner.extend(*to, value.clone()))
        }
        Kind::Apply {
            input,
            body,
            kind: kind @ (ApplyKind::Semi | ApplyKind::Anti),
        } => with(input, &body.uses, &|input| {
            input.apply(body.copied(), *kind)
        }),
        Kind::Filter { inner, filters } if filters.iter().all(|f| !f.per_row) => {
            let mut split = parts(inner);
            for f in filters {
                let slots = f.slots();
                let own = split
                    .parts
                    .iter_mut()
                    .find(|p| slots.is_within(&p.possible) && !slots.is_empty());
                match own {
                    Some(p) => {
                        let part = std::mem::replace(p, Node::unit());
                        *p = part.filter(vec![f.clone()]);
                    }
                    None => split.over.push(f.clone()),
                }
            }
            split
        }
        _ => one(node),
    }
}
