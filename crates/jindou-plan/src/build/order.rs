//! ORDER BY of a sub-select whose rows are read in their order.
//!
//! Solutions are a multiset (SPARQL 1.1 §18.2), so that a sub-select's order need not be kept. It is kept where queries
//! rely on it, as other engines do: by the query's rows, by LIMIT, and by GROUP_CONCAT and SAMPLE, if nothing but
//! operators that pass rows on one by one is between them and the ORDER BY.

use super::{HASH_PROBE, OUT, PlanBuilder, kept, slice};
use crate::build::Built;
use crate::logical::{LogicalNode, NodeKind};
use crate::{ApplyKind, operator};

/// The input of an operator that passes its rows on in their order, one by one.
fn passed_on(node: &LogicalNode) -> Option<&LogicalNode> {
    match &node.kind {
        NodeKind::Project(inner)
        | NodeKind::Filter { inner, .. }
        | NodeKind::Extend { inner, .. }
        | NodeKind::Distinct { inner, .. }
        | NodeKind::Reduced { inner, .. }
        | NodeKind::Slice { inner, .. } => Some(inner),
        // FILTER EXISTS and MINUS.
        NodeKind::Apply {
            input: inner,
            kind: ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_),
            ..
        }
        | NodeKind::Minus { left: inner, .. } => Some(inner),
        _ => None,
    }
}

fn has_order(node: &LogicalNode) -> bool {
    let mut nodes = std::iter::successors(Some(node), |node| passed_on(node));
    nodes.any(|node| matches!(node.kind, NodeKind::OrderBy { .. }))
}

impl PlanBuilder<'_> {
    /// As [`Self::build`], with the rows in the order of the innermost ORDER BY that decides it.
    pub(crate) fn build_in_order(&mut self, node: &LogicalNode) -> Built {
        if has_order(node) {
            self.ordered(node)
        } else {
            self.build(node)
        }
    }

    /// As [`Self::build_in_order`], where there is such an ORDER BY.
    fn ordered(&mut self, node: &LogicalNode) -> Built {
        match &node.kind {
            NodeKind::Project(inner) => self.ordered(inner),
            NodeKind::Filter { inner, filters } => {
                let inner = self.ordered(inner);
                self.filter(inner, filters)
            }
            NodeKind::Apply { input, body, kind } => {
                let input = self.ordered(input);
                self.apply(input, body, *kind)
            }
            NodeKind::Minus { left, right } => {
                let above = left.possible.clone();
                let left = self.ordered(left);
                self.minus(left, &above, right)
            }
            NodeKind::Extend { inner, to, value } => {
                let inner = self.ordered(inner);
                self.extend(inner, *to, value)
            }
            NodeKind::Distinct { inner, slots } => {
                let b = self.ordered(inner);
                let slots = kept(slots, &b.possible);
                let cost = b.cost + b.rows * HASH_PROBE;
                b.with(
                    |input| operator::Distinct { input, slots }.into(),
                    None,
                    cost,
                )
            }
            NodeKind::Reduced { inner, slots } => {
                let b = self.ordered(inner);
                let slots = kept(slots, &b.possible);
                let cost = b.cost + b.rows * OUT;
                b.with(
                    |input| operator::Reduced { input, slots }.into(),
                    None,
                    cost,
                )
            }
            NodeKind::Slice {
                inner,
                offset,
                limit,
            } => slice(self.ordered(inner), *offset, *limit),
            _ => self.build(node),
        }
    }
}
