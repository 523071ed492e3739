//! ORDER BY inside a sub-select whose order the surrounding query relies on.
//!
//! Solutions are a multiset (SPARQL 1.1 §18.2), so a sub-select's order need not be kept. As in other engines, it is
//! kept where queries rely on it (the query's result, LIMIT, GROUP_CONCAT and SAMPLE), if all operators between these
//! and the ORDER BY pass rows on one by one.

use super::PlanBuilder;
use super::built::{distinct, reduced, slice};
use crate::ApplyKind;
use crate::build::Built;
use crate::logical::{LogicalNode, NodeKind};

/// The input of an operator that passes on rows one by one in the order of its input; `None` for other operators.
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
    /// As [`Self::build`], with the rows in the order of the ORDER BY that [`has_order`] finds below the node, if any.
    pub(crate) fn build_in_order(&mut self, node: &LogicalNode) -> Built {
        if has_order(node) {
            self.ordered(node)
        } else {
            self.build(node)
        }
    }

    /// As [`Self::build_in_order`], for a node with such an ORDER BY.
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
            NodeKind::Distinct { inner, slots } => distinct(self.ordered(inner), slots),
            NodeKind::Reduced { inner, slots } => reduced(self.ordered(inner), slots),
            NodeKind::Slice {
                inner,
                offset,
                limit,
            } => slice(self.ordered(inner), *offset, *limit),
            _ => self.build(node),
        }
    }
}
