//! GRAPH: the graph as one more column wherever that is the same as evaluating in each graph.

use super::*;

impl Translator {
    /// A named graph that is not there has no solutions, whatever is inside.
    pub(super) fn in_named(&mut self, node: Node, name: Canonical) -> Node {
        if has_pattern_in(&node, &name) {
            node
        } else {
            Node::join(node, Node::has_graph(name))
        }
    }

    pub(super) fn graph(
        &mut self,
        v: &Variable,
        inner: &GraphPattern,
        env: &mut Env,
    ) -> Result<Node, Reason> {
        let outside = self.variable(v, env);
        // Inside its own GRAPH the variable is an ordinary one; in plain patterns that is the same slot.
        let own = !is_conjunction(inner) && inner.mentions(v);
        let g = if own { self.hidden("graph")? } else { outside };
        let place = Place::Slot(g);
        let mut node = self.pattern(inner, env, &place)?;
        if is_per_graph(&node, g) {
            node = Node::graphs(g).apply(node, ApplyKind::Inner);
        } else if !binds_graph(&node, g) {
            node = Node::join(Node::graphs(g), node);
        }
        if !own {
            return Ok(node.in_graph(g));
        }
        let name = Variable::new_unchecked("graph");
        let value = Arc::new(Expr::plain(name.clone().into(), [(name, g)]));
        if node.possible.has(outside) {
            let names = Node::graphs(g).in_graph(g).extend(outside, value);
            Ok(Node::join(node.in_graph(g), names))
        } else {
            Ok(node.in_graph(g).extend(outside, value))
        }
    }
}

/// True for triple patterns joined and filtered, without EXISTS.
pub(super) fn is_conjunction(p: &GraphPattern) -> bool {
    match p {
        GraphPattern::Bgp { .. } => true,
        GraphPattern::Join { left, right } => is_conjunction(left) && is_conjunction(right),
        GraphPattern::Filter { inner, expr } => is_conjunction(inner) && !has_exists(expr),
        _ => false,
    }
}

/// True if every row surely has the graph that it comes from.
pub(super) fn binds_graph(node: &Node, g: Slot) -> bool {
    use crate::logical::Kind;
    match &node.kind {
        Kind::Bgp(b) => b.patterns.iter().any(|p| p.place == Place::Slot(g)),
        Kind::Graphs(s) => *s == g,
        Kind::Path(p) => p.place == Place::Slot(g),
        Kind::Join(parts) => parts.iter().any(|p| binds_graph(p, g)),
        Kind::Union(branches) => branches.iter().all(|b| binds_graph(b, g)),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::OrderBy { inner, .. }
        | Kind::Slice { inner, .. }
        | Kind::Project(inner) => binds_graph(inner, g),
        Kind::Distinct { inner, slots } | Kind::Reduced { inner, slots } => {
            slots.contains(&g) && binds_graph(inner, g)
        }
        Kind::Group { inner, by, .. } => by.contains(&g) && binds_graph(inner, g),
        Kind::Values { .. } | Kind::Service(_) | Kind::HasGraph(_) => false,
    }
}

/// Makes the left side of something one-sided say which graph it is in, when the other side depends on it.
pub(super) fn in_some_graph(node: Node, other: &SlotSet, place: &Place) -> Node {
    match place {
        Place::Slot(g) if other.has(*g) && !binds_graph(&node, *g) => {
            Node::join(Node::graphs(*g), node)
        }
        _ => node,
    }
}

/// True if evaluating with the graph as one more column is not the same as evaluating in each graph.
pub(super) fn is_per_graph(node: &Node, g: Slot) -> bool {
    use crate::logical::Kind;
    let dependent = |n: &Node| n.uses.has(g) && is_per_graph(n, g);
    match &node.kind {
        Kind::Bgp(_)
        | Kind::Graphs(_)
        | Kind::HasGraph(_)
        | Kind::Path(_)
        | Kind::Values { .. }
        | Kind::Service(_) => false,
        Kind::Join(parts) | Kind::Union(parts) => parts.iter().any(dependent),
        Kind::LeftJoin { left, right, .. } => dependent(left) || dependent(right),
        Kind::Minus { left, right } => {
            let shared = left.possible.and(&right.possible);
            let plain = shared.is_within(&left.certain) && shared.is_within(&right.certain);
            right.uses.has(g) && !plain || dependent(left) || dependent(right)
        }
        Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::OrderBy { inner, .. }
        | Kind::Project(inner) => dependent(inner),
        Kind::Apply { input, body, .. } => dependent(input) || dependent(body),
        Kind::Distinct { inner, slots } | Kind::Reduced { inner, slots } => {
            !slots.contains(&g) && inner.uses.has(g) || dependent(inner)
        }
        Kind::Group { inner, by, .. } => !by.contains(&g) && inner.uses.has(g) || dependent(inner),
        Kind::Slice { inner, .. } => inner.uses.has(g),
    }
}

/// True if the rows surely come from a graph of this name.
pub(super) fn has_pattern_in(node: &Node, name: &Canonical) -> bool {
    use crate::logical::Kind;
    match &node.kind {
        Kind::Bgp(b) => b
            .patterns
            .iter()
            .any(|p| matches!(&p.place, Place::Named(n) if n == name)),
        Kind::HasGraph(n) => n == name,
        Kind::Join(parts) => parts.iter().any(|p| has_pattern_in(p, name)),
        Kind::Filter { inner, .. } | Kind::Extend { inner, .. } => has_pattern_in(inner, name),
        Kind::LeftJoin { left, .. } | Kind::Minus { left, .. } => has_pattern_in(left, name),
        _ => false,
    }
}
