//! GRAPH. The graph becomes a further column of the rows, if that is equivalent to evaluating the pattern in each
//! graph.

use super::*;

impl Translator {
    /// Translates GRAPH with an IRI. If the named graph does not exist, there are no solutions, whatever the pattern
    /// is.
    pub(super) fn in_named(&mut self, node: LogicalNode, name: Canonical) -> LogicalNode {
        if has_pattern_in(&node, &name) {
            node
        } else {
            LogicalNode::join(node, LogicalNode::has_graph(name))
        }
    }

    pub(super) fn graph(
        &mut self,
        v: &Variable,
        inner: &GraphPattern,
        env: &mut ScopeSlots,
    ) -> Result<LogicalNode, Reason> {
        let outside = self.variable(v, env);
        // If the pattern mentions the graph variable itself, the graph gets a slot of its own, and the two are compared
        // afterwards. In plain triple patterns one slot suffices.
        let own = !is_conjunction(inner) && inner.mentions(v);
        let g = if own { self.hidden("graph")? } else { outside };
        let place = PatternGraphTerm::Slot(g);
        let mut node = self.pattern(inner, env, &place)?;
        if is_per_graph(&node, g) {
            node = LogicalNode::graphs(g).apply(node, ApplyKind::Inner);
        } else if !binds_graph(&node, g) {
            node = LogicalNode::join(LogicalNode::graphs(g), node);
        }
        if !own {
            return Ok(node.in_graph(g));
        }
        let name = Variable::new_unchecked("graph");
        let value = Arc::new(Expr::plain(name.clone().into(), [(name, g)]));
        if node.possible.has(outside) {
            let names = LogicalNode::graphs(g).in_graph(g).extend(outside, value);
            Ok(LogicalNode::join(node.in_graph(g), names))
        } else {
            Ok(node.in_graph(g).extend(outside, value))
        }
    }
}

/// Returns true for a pattern that consists of joined and filtered triple patterns, without EXISTS.
pub(super) fn is_conjunction(p: &GraphPattern) -> bool {
    match p {
        GraphPattern::Bgp { .. } => true,
        GraphPattern::Join { left, right } => is_conjunction(left) && is_conjunction(right),
        GraphPattern::Filter { inner, expr } => is_conjunction(inner) && !has_exists(expr),
        _ => false,
    }
}

/// Returns true if every row of the node binds `g`, the slot of its graph.
pub(super) fn binds_graph(node: &LogicalNode, g: Slot) -> bool {
    use crate::logical::NodeKind;
    match &node.kind {
        NodeKind::Bgp(b) => b
            .patterns
            .iter()
            .any(|p| p.place == PatternGraphTerm::Slot(g)),
        NodeKind::Graphs(s) => *s == g,
        NodeKind::Path(p) => p.place == PatternGraphTerm::Slot(g),
        NodeKind::Join(parts) => parts.iter().any(|p| binds_graph(p, g)),
        NodeKind::Union(branches) => branches.iter().all(|b| binds_graph(b, g)),
        NodeKind::LeftJoin { left: inner, .. }
        | NodeKind::Minus { left: inner, .. }
        | NodeKind::Filter { inner, .. }
        | NodeKind::Extend { inner, .. }
        | NodeKind::Apply { input: inner, .. }
        | NodeKind::OrderBy { inner, .. }
        | NodeKind::Slice { inner, .. }
        | NodeKind::Project(inner) => binds_graph(inner, g),
        NodeKind::Distinct { inner, slots } | NodeKind::Reduced { inner, slots } => {
            slots.contains(&g) && binds_graph(inner, g)
        }
        NodeKind::Group { inner, by, .. } => by.contains(&g) && binds_graph(inner, g),
        NodeKind::Values { .. } | NodeKind::Service(_) | NodeKind::HasGraph(_) => false,
    }
}

/// Adds the graph column to the left side of an operator whose right side (`other` are its slots) depends on the graph.
pub(super) fn in_some_graph(
    node: LogicalNode,
    other: &SlotSet,
    place: &PatternGraphTerm,
) -> LogicalNode {
    match place {
        PatternGraphTerm::Slot(g) if other.has(*g) && !binds_graph(&node, *g) => {
            LogicalNode::join(LogicalNode::graphs(*g), node)
        }
        _ => node,
    }
}

/// Returns true if the node with the graph as a further column is not equivalent to evaluating it in each graph, so
/// that it must be evaluated per graph.
pub(super) fn is_per_graph(node: &LogicalNode, g: Slot) -> bool {
    use crate::logical::NodeKind;
    let dependent = |n: &LogicalNode| n.uses.has(g) && is_per_graph(n, g);
    match &node.kind {
        NodeKind::Bgp(_)
        | NodeKind::Graphs(_)
        | NodeKind::HasGraph(_)
        | NodeKind::Path(_)
        | NodeKind::Values { .. }
        | NodeKind::Service(_) => false,
        NodeKind::Join(parts) | NodeKind::Union(parts) => parts.iter().any(dependent),
        NodeKind::LeftJoin { left, right, .. } => dependent(left) || dependent(right),
        NodeKind::Minus { left, right } => {
            let shared = left.possible.and(&right.possible);
            let plain = shared.is_within(&left.certain) && shared.is_within(&right.certain);
            right.uses.has(g) && !plain || dependent(left) || dependent(right)
        }
        NodeKind::Filter { inner, .. }
        | NodeKind::Extend { inner, .. }
        | NodeKind::OrderBy { inner, .. }
        | NodeKind::Project(inner) => dependent(inner),
        NodeKind::Apply { input, body, .. } => dependent(input) || dependent(body),
        NodeKind::Distinct { inner, slots } | NodeKind::Reduced { inner, slots } => {
            !slots.contains(&g) && inner.uses.has(g) || dependent(inner)
        }
        NodeKind::Group { inner, by, .. } => {
            !by.contains(&g) && inner.uses.has(g) || dependent(inner)
        }
        NodeKind::Slice { inner, .. } => inner.uses.has(g),
    }
}

/// Returns true if every solution matches a pattern in the graph of this name, which proves that the graph exists.
pub(super) fn has_pattern_in(node: &LogicalNode, name: &Canonical) -> bool {
    use crate::logical::NodeKind;
    match &node.kind {
        NodeKind::Bgp(b) => b
            .patterns
            .iter()
            .any(|p| matches!(&p.place, PatternGraphTerm::Named(n) if n == name)),
        NodeKind::HasGraph(n) => n == name,
        NodeKind::Join(parts) => parts.iter().any(|p| has_pattern_in(p, name)),
        NodeKind::Filter { inner, .. }
        | NodeKind::Extend { inner, .. }
        | NodeKind::OrderBy { inner, .. }
        | NodeKind::Distinct { inner, .. }
        | NodeKind::Reduced { inner, .. }
        | NodeKind::Slice { inner, .. }
        | NodeKind::Project(inner) => has_pattern_in(inner, name),
        NodeKind::LeftJoin { left, .. } | NodeKind::Minus { left, .. } => {
            has_pattern_in(left, name)
        }
        _ => false,
    }
}
