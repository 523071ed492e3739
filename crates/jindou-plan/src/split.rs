//! Splits a node into parts that share no slot, so that parts which only conditions connect are joined by these
//! conditions, and their cross product is never built.
//!
//! `{ A OPTIONAL { B } } { C } FILTER(?b = ?c)` becomes `(A × C) OPTIONAL B` when the OPTIONAL is lifted over the join.
//! Splitting restores `A OPTIONAL B` and `C`.

use crate::ApplyKind;
use crate::equal;
use crate::expression::Expr;
use crate::keyed::{compares, slots_compared};
use crate::logical::{LogicalNode, NodeKind};
use crate::set::SlotSet;
use std::sync::Arc;

/// Largest tree, in nodes, that is split, since the parts are copies.
const MOST: usize = 256;

/// Parts of a node, and conditions over several parts. The join of the parts, filtered by the conditions, is equivalent
/// to the node.
pub(crate) struct Split {
    pub parts: Vec<LogicalNode>,
    pub over: Vec<Arc<Expr>>,
}

/// Splits a node with filters above it, if it is a join below operators each of which concerns only some of the joined
/// parts. `None` if no condition compares one part with another.
pub(crate) fn split(node: &LogicalNode, filters: &[Arc<Expr>]) -> Option<Split> {
    let is_made_of_joins = matches!(
        node.kind,
        NodeKind::LeftJoin { .. }
            | NodeKind::Minus { .. }
            | NodeKind::Extend { .. }
            | NodeKind::Apply { .. }
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

fn is_small(node: &LogicalNode) -> bool {
    let (mut open, mut seen) = (vec![node], 0);
    while let Some(node) = open.pop() {
        seen += match &node.kind {
            NodeKind::Bgp(b) => 1 + b.patterns.len() + b.filters.len(),
            NodeKind::Values { rows, .. } => 1 + rows.len(),
            _ => 1,
        };
        node.kind.each_input(|input| open.push(input));
        if seen > MOST {
            return false;
        }
    }
    true
}

/// Splits a node; one part if it cannot be split. Recursive, for small nodes only.
fn parts(node: &LogicalNode) -> Split {
    let one = |node: &LogicalNode| Split {
        parts: vec![node.copied()],
        over: vec![],
    };
    let slots_of = |list: &[Arc<Expr>]| {
        list.iter()
            .fold(SlotSet::default(), |a, f| a.or(&f.slots()))
    };
    // An operator over a join moves to the parts that it reads, which are joined below it.
    let with =
        |inner: &LogicalNode, reads: &SlotSet, operator: &dyn Fn(LogicalNode) -> LogicalNode| {
            let Split { parts, over } = parts(inner);
            let (its, mut rest): (Vec<LogicalNode>, Vec<LogicalNode>) =
                parts.into_iter().partition(|p| p.uses.meets(reads));
            // Filters over several parts will be tested above the operator, so the operator must not change the slots
            // that they read.
            if its.is_empty() || over.iter().any(|f| !f.slots().is_within(&inner.certain)) {
                return one(node);
            }
            rest.push(operator(
                its.into_iter().fold(LogicalNode::unit(), LogicalNode::join),
            ));
            Split { parts: rest, over }
        };
    match &node.kind {
        NodeKind::Bgp(b) if b.filters.iter().all(|f| !f.per_row) => {
            let (groups, over) = equal::components(b, true);
            if groups.len() < 2 {
                return one(node);
            }
            let parts = groups
                .into_iter()
                .map(|b| LogicalNode::bgp(b.patterns, SlotSet::default()).filter(b.filters))
                .collect();
            Split { parts, over }
        }
        NodeKind::Join(list) => parts_of_join(list),
        NodeKind::LeftJoin {
            left,
            right,
            condition,
        } => {
            let reads = right.uses.or(&slots_of(condition));
            with(left, &reads, &|left| {
                LogicalNode::left_join(left, right.copied(), condition.clone())
            })
        }
        NodeKind::Minus { left, right } => with(left, &right.uses, &|left| {
            LogicalNode::minus(left, right.copied())
        }),
        NodeKind::Extend { inner, to, value } if !value.per_row => {
            let mut reads = value.slots();
            reads.insert(*to);
            with(inner, &reads, &|inner| inner.extend(*to, value.clone()))
        }
        NodeKind::Apply {
            input,
            body,
            kind: kind @ (ApplyKind::Semi | ApplyKind::Anti),
        } => with(input, &body.uses, &|input| {
            input.apply(body.copied(), *kind)
        }),
        NodeKind::Filter { inner, filters } if filters.iter().all(|f| !f.per_row) => {
            let mut split = parts(inner);
            filters.iter().for_each(|f| split.filter(f));
            split
        }
        _ => one(node),
    }
}

/// Splits all parts of a join, and joins the resulting parts that share a slot.
fn parts_of_join(list: &[LogicalNode]) -> Split {
    let mut all: Vec<LogicalNode> = vec![];
    let mut over = vec![];
    for part in list {
        let mut split = parts(part);
        over.append(&mut split.over);
        for mut new in split.parts {
            let (its, rest): (Vec<LogicalNode>, Vec<LogicalNode>) =
                all.into_iter().partition(|p| p.uses.meets(&new.uses));
            all = rest;
            for i in its {
                new = LogicalNode::join(i, new);
            }
            all.push(new);
        }
    }
    Split { parts: all, over }
}

impl Split {
    /// Adds a condition to the part that has all its slots, or, if there is none, to those over several parts.
    fn filter(&mut self, condition: &Arc<Expr>) {
        let slots = condition.slots();
        let own = self
            .parts
            .iter_mut()
            .find(|p| slots.is_within(&p.possible) && !slots.is_empty());
        match own {
            Some(p) => {
                let part = std::mem::replace(p, LogicalNode::unit());
                *p = part.filter(vec![condition.clone()]);
            }
            None => self.over.push(condition.clone()),
        }
    }
}
