//! Evaluating a part of the query from the rows of another part: when that is equivalent to evaluating both parts
//! separately, and how it is planned.

use super::built::add_nodes;
use super::*;
use crate::joins;

/// Number of nodes for which alternative plans may be tried within one query: `TRIES`, which is more than any
/// hand-written query needs, plus `TRIES_A_NODE` for each node of the query.
const TRIES: usize = 1 << 13;
const TRIES_A_NODE: usize = 32;

impl PlanBuilder<'_> {
    /// See [`PlanBuilder::tries`].
    pub(crate) fn tries_for(root: &LogicalNode) -> std::cell::Cell<usize> {
        std::cell::Cell::new(TRIES + TRIES_A_NODE * root.nodes())
    }

    /// True while alternative plans may be tried for a part of this many nodes, which it deducts. Without this limit
    /// the work would be exponential: each level of a deep query has an alternative for everything below it, and each
    /// of those has alternatives in turn.
    pub(crate) fn may_try(&self, nodes: usize) -> bool {
        let left = self.tries.get().checked_sub(nodes);
        self.tries.set(left.unwrap_or(0));
        left.is_some()
    }

    /// True if the node's solutions can be computed by extending rows that bind `certain` always and `possible`
    /// sometimes. False for operators that process all their rows together, such as GROUP BY.
    pub(crate) fn can_go_on(
        &self,
        certain: &SlotSet,
        possible: &SlotSet,
        node: &LogicalNode,
    ) -> bool {
        if scope::is_over() {
            return false;
        }
        let known = |uses: &SlotSet| uses.and(possible).is_within(certain);
        match &node.kind {
            NodeKind::Bgp(b) => {
                known(&node.uses)
                    && node.uses.len() <= steps::MAX_LOCAL
                    && b.patterns.len() <= crate::resolve::MAX_EDGES
            }
            NodeKind::Path(_) => known(&node.uses),
            NodeKind::Graphs(g) => !possible.has(*g),
            NodeKind::HasGraph(_) | NodeKind::Values { .. } | NodeKind::Service(_) => false,
            NodeKind::Join(parts) => {
                let (parts, over) = joins::connected(joins::given(parts));
                let parts: Vec<&LogicalNode> = parts.iter().map(|p| &**p).collect();
                over.iter().all(|f| !f.per_row) && self.can_follow(certain, possible, &parts, 0)
            }
            NodeKind::Union(branches) => branches
                .iter()
                .all(|b| self.can_go_on(certain, possible, b)),
            NodeKind::LeftJoin {
                left,
                right,
                condition: _,
            } => {
                let (c, p) = (certain.or(&op_certain(left)), possible.or(&left.uses));
                self.has_outer(&c, right)
                    && self.can_go_on(certain, possible, left)
                    && self.can_go_on(&c, &p, right)
                    && is_safe(right, &p, None)
            }
            NodeKind::Minus { .. } => false,
            NodeKind::Filter { inner, .. } | NodeKind::Project(inner) => {
                self.can_go_on(certain, possible, inner)
            }
            NodeKind::Reduced { inner, .. } => self.can_go_on(certain, possible, inner),
            NodeKind::Extend { inner, to, .. } => {
                !possible.has(*to) && self.can_go_on(certain, possible, inner)
            }
            NodeKind::Apply { input, body, kind } => {
                let (c, p) = (certain.or(&op_certain(input)), possible.or(&input.uses));
                let slot_is_free = match kind {
                    ApplyKind::Mark(s) => !possible.has(*s),
                    _ => true,
                };
                slot_is_free
                    && self.has_outer(&c, body)
                    && self.can_go_on(certain, possible, input)
                    && self.can_go_on(&c, &p, body)
            }
            NodeKind::Group { .. }
            | NodeKind::OrderBy { .. }
            | NodeKind::Distinct { .. }
            | NodeKind::Slice { .. } => false,
        }
    }

    /// True if rows that bind `certain` contain every slot of the outer row that the node reads. If the node decides
    /// which rows are kept, as OPTIONAL does, these values must be known while it runs; comparing them afterwards would
    /// be too late.
    pub(super) fn has_outer(&self, certain: &SlotSet, node: &LogicalNode) -> bool {
        let read = node.uses.and(&self.outer.possible);
        read.is_within(certain)
    }

    /// Extends each row of the input by the node's matching solutions. Requires [`Self::can_go_on`].
    pub(crate) fn go_on(&mut self, input: Built, node: &LogicalNode) -> Built {
        match &node.kind {
            NodeKind::Bgp(b) => self.steps(input, b),
            NodeKind::Path(p) => self.path(input, p),
            NodeKind::Graphs(g) => {
                let n = self.graph_count();
                let rows = input.rows * n;
                let step = Step {
                    kind: StepKind::Cross {
                        to: *g,
                        source: StartSource::Graphs(self.dataset.named.clone()),
                        within: None,
                    },
                    filters: vec![],
                    live: vec![],
                    rows,
                    cost: rows,
                    why: "in each graph".into(),
                };
                let mut out = on_steps(input, vec![step], rows, rows);
                out.certain.insert(*g);
                out.possible.insert(*g);
                out
            }
            NodeKind::Join(parts) => {
                let mut at = input;
                let (parts, over) = joins::connected(joins::given(parts));
                let mut rest: Vec<&LogicalNode> = parts.iter().map(|p| &**p).collect();
                while !rest.is_empty() {
                    // Parts connected to the rows come first, provided that all remaining parts can still be evaluated
                    // after them. Among them, paths with an unknown end come last. The first part of the list is always
                    // possible.
                    let nodes: usize = rest.iter().map(|n| n.nodes()).sum();
                    let next = (0..rest.len())
                        .take_while(|_| self.may_try(nodes))
                        .filter(|&i| rest[i].uses.meets(&at.possible))
                        .filter(|&i| self.can_follow(&at.certain, &at.possible, &rest, i))
                        .min_by_key(|&i| match &rest[i].kind {
                            NodeKind::Path(_) => !rest[i].uses.is_within(&at.possible),
                            _ => false,
                        })
                        .unwrap_or(0);
                    at = self.go_on(at, rest.remove(next));
                }
                self.filter(at, &over)
            }
            NodeKind::Union(branches) => {
                // The outer row keeps all its columns, since operators above read columns that the union does not.
                let is_row = matches!(input.op, Operator::Outer(_));
                let row = if is_row {
                    input.clone()
                } else {
                    row_of(&input, &node.uses.and(&input.possible))
                };
                let built = branches
                    .iter()
                    .map(|b| self.go_on(row.clone(), b))
                    .collect::<Vec<_>>();
                let all = union(built);
                if is_row {
                    return all;
                }
                apply_op(input, all, ApplyKind::Inner, false)
            }
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let left = self.go_on(input, left);
                let seen = left.possible.clone();
                self.optional_by_row(left, right, condition, &seen)
            }
            NodeKind::Filter { inner, filters } => self.go_on_if(input, inner, filters),
            NodeKind::Extend { inner, to, value } => {
                let b = self.go_on(input, inner);
                self.extend(b, *to, value)
            }
            NodeKind::Apply {
                input: i,
                body,
                kind,
            } => {
                let b = self.go_on(input, i);
                self.apply_by_row(b, body, *kind, *kind != ApplyKind::Left)
            }
            NodeKind::Project(inner) | NodeKind::Reduced { inner, .. } => self.go_on(input, inner),
            _ => {
                let right = self.build(node);
                hash_join(input, right, JoinKind::Inner, None)
            }
        }
    }

    /// True if all parts can extend the rows one after the other, beginning with `parts[first]`.
    pub(super) fn can_follow(
        &self,
        certain: &SlotSet,
        possible: &SlotSet,
        parts: &[&LogicalNode],
        first: usize,
    ) -> bool {
        let (mut certain, mut possible) = (certain.clone(), possible.clone());
        let mut known = SlotSet::default();
        let others = (0..parts.len()).filter(|&i| i != first);
        std::iter::once(first).chain(others).all(|i| {
            let p = parts[i];
            let ok = self.can_go_on(&certain, &possible, p) && is_safe(p, &known, None);
            certain.add(&op_certain(p));
            possible.add(&p.uses);
            known.add(&p.uses);
            ok
        })
    }

    pub(super) fn steps(&mut self, input: Built, bgp: &Bgp) -> Built {
        let uses: SlotSet = bgp.patterns.iter().flat_map(|p| p.slots()).collect();
        let given = uses.and(&input.certain);
        let planned = steps::plan(
            bgp,
            &mut self.slots,
            Some((&given, input.rows)),
            self.dataset,
            self.snapshot,
        );
        match planned {
            Ok(p) => {
                let mut out = if p.steps.is_empty() {
                    input
                } else {
                    on_steps(input, p.steps, p.rows, p.cost)
                };
                add_nodes(&mut out.nodes, nodes_of(bgp));
                out.texts.add(&self.texts(bgp));
                out.certain.add(&uses);
                out.possible.add(&uses);
                for c in p.conditions {
                    out = filtered(out, c);
                }
                out
            }
            Err(_) => {
                // The group has no solutions, so no row is kept.
                let mut out = filtered(input, Condition::Or(vec![]));
                out.certain.add(&uses);
                out.possible.add(&uses);
                out.rows = 0.0;
                out
            }
        }
    }

    pub(super) fn optional_by_row(
        &mut self,
        left: Built,
        right: &LogicalNode,
        condition: &[Arc<Expr>],
        seen: &SlotSet,
    ) -> Built {
        let mut uses = right.uses.clone();
        condition.iter().for_each(|c| uses.add(&c.slots()));
        let row = row_of(&left, &uses.and(seen));
        let inner = self.go_on_if(row, right, condition);
        apply_op(left, inner, ApplyKind::Left, false)
    }

    /// Runs the body for each row of the input. With `constants`, the row's values replace variables of the body as if
    /// they were written there (EXISTS); otherwise the result is the body's solutions that are compatible with the row.
    pub(super) fn apply_by_row(
        &mut self,
        input: Built,
        body: &LogicalNode,
        kind: ApplyKind,
        constants: bool,
    ) -> Built {
        let slots = body.uses.and(&input.possible);
        let row = row_of(&input, &slots);
        let before = self.constants.clone();
        if constants {
            self.constants.add(&slots);
        }
        let inner = self.go_on(row, body);
        self.constants = before;
        apply_op(input, inner, kind, false)
    }
}

/// Slots that are bound in every row of the node's operator: the node's own, and variables of GRAPH, which the operator
/// binds even where they are not in scope.
pub(crate) fn op_certain(node: &LogicalNode) -> SlotSet {
    // Recursive calls at each level of a deep query take quadratic time, so the deadline is checked here.
    if scope::is_over() {
        return SlotSet::default();
    }
    let graphs = match &node.kind {
        NodeKind::Bgp(_) | NodeKind::Graphs(_) | NodeKind::Path(_) => return node.uses.clone(),
        NodeKind::Join(parts) => parts
            .iter()
            .fold(SlotSet::default(), |a, p| a.or(&op_certain(p))),
        NodeKind::LeftJoin { left: inner, .. }
        | NodeKind::Minus { left: inner, .. }
        | NodeKind::Apply { input: inner, .. }
        | NodeKind::Filter { inner, .. }
        | NodeKind::Extend { inner, .. }
        | NodeKind::Reduced { inner, .. }
        | NodeKind::Project(inner) => op_certain(inner),
        _ => SlotSet::default(),
    };
    node.certain.or(&graphs)
}

/// True if evaluating the node from given values of the slots `known` has the same result as evaluating it by itself
/// and keeping the solutions with these values. That is not so if a filter, OPTIONAL, MINUS or BIND inside would see a
/// value that is unbound there when evaluated by itself.
///
/// `nodes` lists slots that certainly hold nodes of graphs. If it is given, the values are assumed to be substituted as
/// constants, which for paths makes a difference. If it is `None`, a path between two variables itself checks whether a
/// known end is a node.
pub(crate) fn is_safe(node: &LogicalNode, known: &SlotSet, nodes: Option<&Nodes>) -> bool {
    if !node.uses.meets(known) {
        return true;
    }
    if scope::is_over() {
        return false;
    }
    let sees_bound = |read: &SlotSet, bound: &SlotSet| read.and(known).is_within(bound);
    match &node.kind {
        // Between two variables, a zero-length path exists only at nodes of the graph; with a constant end, at any
        // term.
        NodeKind::Path(p) => {
            let Some(nodes) = nodes else { return true };
            let ends = [&p.subject, &p.object];
            let is_node = |s: Slot| nodes.iter().any(|n| n.0 == p.place && n.1 == s);
            let given = |e: &&&PatternTerm| matches!(e, PatternTerm::Slot(s) if known.has(*s));
            let terms = ends
                .iter()
                .filter(|e| matches!(e, PatternTerm::Term(_)))
                .count();
            let constants = terms + ends.iter().filter(given).count();
            !is_nullable(&p.path)
                || keeps_any(&p.path, terms) == keeps_any(&p.path, constants)
                || ends
                    .iter()
                    .filter(given)
                    .all(|e| matches!(e, PatternTerm::Slot(s) if is_node(*s)))
        }
        NodeKind::Bgp(_)
        | NodeKind::Values { .. }
        | NodeKind::Graphs(_)
        | NodeKind::HasGraph(_) => true,
        NodeKind::Join(parts) | NodeKind::Union(parts) => {
            parts.iter().all(|p| is_safe(p, known, nodes))
        }
        NodeKind::Filter { inner, filters } => {
            is_safe(inner, known, nodes)
                && filters
                    .iter()
                    .all(|f| sees_bound(&f.slots(), &inner.certain))
        }
        NodeKind::Extend { inner, to, value } => {
            !known.has(*to)
                && is_safe(inner, known, nodes)
                && sees_bound(&value.slots(), &inner.certain)
        }
        NodeKind::LeftJoin {
            left,
            right,
            condition,
        } => {
            let both = left.certain.or(&right.certain);
            is_safe(left, known, nodes)
                && is_safe(right, known, nodes)
                && sees_bound(&right.uses, &op_certain(left))
                && condition.iter().all(|c| sees_bound(&c.slots(), &both))
        }
        NodeKind::Minus { left, right } => {
            is_safe(left, known, nodes)
                && is_safe(right, known, nodes)
                && sees_bound(&right.uses, &left.certain.and(&right.certain))
        }
        NodeKind::Apply { input, body, kind } => {
            !matches!(kind, ApplyKind::Inner | ApplyKind::Left)
                && is_safe(input, known, nodes)
                && sees_bound(&body.uses, &op_certain(input))
        }
        NodeKind::Project(inner) | NodeKind::Reduced { inner, .. } => is_safe(inner, known, nodes),
        NodeKind::Service(_)
        | NodeKind::Group { .. }
        | NodeKind::OrderBy { .. }
        | NodeKind::Distinct { .. }
        | NodeKind::Slice { .. } => false,
    }
}

/// Returns true if a zero-length path may start at a term that is not a node of the graph. `constants` is the number of
/// the path's ends that are constants: variables, also those between the parts of a sequence, take only nodes (SPARQL
/// 1.1 §18.4).
pub(super) fn keeps_any(path: &PropertyPathExpression, constants: usize) -> bool {
    use PropertyPathExpression as P;
    match path {
        P::NamedNode(_) | P::NegatedPropertySet(_) => false,
        P::ZeroOrMore(_) | P::ZeroOrOne(_) => constants > 0,
        P::OneOrMore(p) => constants > 0 && keeps_any(p, 1),
        P::Reverse(p) => keeps_any(p, constants),
        P::Alternative(a, b) => keeps_any(a, constants) || keeps_any(b, constants),
        P::Sequence(a, b) => constants == 2 && keeps_any(a, 1) && keeps_any(b, 1),
    }
}

/// Returns true if a path may have length zero.
pub(super) fn is_nullable(path: &PropertyPathExpression) -> bool {
    use PropertyPathExpression as P;
    match path {
        P::ZeroOrMore(_) | P::ZeroOrOne(_) => true,
        P::NamedNode(_) | P::NegatedPropertySet(_) => false,
        P::Reverse(p) | P::OneOrMore(p) => is_nullable(p),
        P::Sequence(a, b) => is_nullable(a) && is_nullable(b),
        P::Alternative(a, b) => is_nullable(a) || is_nullable(b),
    }
}

pub(super) fn nodes_of(bgp: &Bgp) -> Nodes {
    let patterns = bgp.patterns.iter();
    let ends = patterns.flat_map(|p| [(&p.place, &p.subject), (&p.place, &p.object)]);
    ends.filter_map(|(place, end)| Some((place.clone(), end.slot()?)))
        .collect()
}
