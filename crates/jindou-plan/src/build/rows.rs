//! Going on from rows: when that means the same as evaluation by itself, and how it is done.

use super::built::add_nodes;
use super::*;
use crate::joins;

/// Nodes that may be looked at again in a query, to plan them another way: any that people write, and this many times a query's own.
const TRIES: usize = 1 << 13;
const TRIES_A_NODE: usize = 32;

impl Builder<'_> {
    /// See [`Builder::tries`].
    pub(crate) fn tries_for(root: &Node) -> std::cell::Cell<usize> {
        std::cell::Cell::new(TRIES + TRIES_A_NODE * root.nodes())
    }

    /// True while a part of this many nodes may be planned another way than by itself. Each level of a deep query has another way for
    /// all that is below it, of which each has others in turn.
    pub(crate) fn may_try(&self, nodes: usize) -> bool {
        let left = self.tries.get().checked_sub(nodes);
        self.tries.set(left.unwrap_or(0));
        left.is_some()
    }

    /// True if the node's solutions that go with a row can be found from that row, operators that look at all rows
    /// aside.
    pub(crate) fn can_go_on(&self, certain: &SlotSet, possible: &SlotSet, node: &Node) -> bool {
        if scope::is_over() {
            return false;
        }
        let known = |uses: &SlotSet| uses.and(possible).is_within(certain);
        match &node.kind {
            Kind::Bgp(b) => {
                known(&node.uses)
                    && node.uses.len() <= steps::MAX_LOCAL
                    && b.patterns.len() <= crate::resolve::MAX_EDGES
            }
            Kind::Path(_) => known(&node.uses),
            Kind::Graphs(g) => !possible.has(*g),
            Kind::HasGraph(_) | Kind::Values { .. } | Kind::Service(_) => false,
            Kind::Join(parts) => {
                let (parts, over) = joins::connected(joins::given(parts));
                let parts: Vec<&Node> = parts.iter().map(|p| &**p).collect();
                over.iter().all(|f| !f.per_row) && self.can_follow(certain, possible, &parts, 0)
            }
            Kind::Union(branches) => branches
                .iter()
                .all(|b| self.can_go_on(certain, possible, b)),
            Kind::LeftJoin {
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
            Kind::Minus { .. } => false,
            Kind::Filter { inner, .. } | Kind::Project(inner) => {
                self.can_go_on(certain, possible, inner)
            }
            Kind::Reduced { inner, .. } => self.can_go_on(certain, possible, inner),
            Kind::Extend { inner, to, .. } => {
                !possible.has(*to) && self.can_go_on(certain, possible, inner)
            }
            Kind::Apply { input, body, kind } => {
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
            Kind::Group { .. }
            | Kind::OrderBy { .. }
            | Kind::Distinct { .. }
            | Kind::Slice { .. } => false,
        }
    }

    /// True if rows with these slots have all that the node reads of the outer row. Where the node decides which rows stay, as in
    /// OPTIONAL, it must see the outer row's values itself: comparing them afterwards is too late.
    pub(super) fn has_outer(&self, certain: &SlotSet, node: &Node) -> bool {
        let read = node.uses.and(&self.outer.possible);
        read.is_within(certain)
    }

    /// Each row of the input with the node's solutions that go with it. Only if [`Self::can_go_on`].
    pub(crate) fn go_on(&mut self, input: Built, node: &Node) -> Built {
        match &node.kind {
            Kind::Bgp(b) => self.steps(input, b),
            Kind::Path(p) => self.path(input, p),
            Kind::Graphs(g) => {
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
            Kind::Join(parts) => {
                let mut at = input;
                let (parts, over) = joins::connected(joins::given(parts));
                let mut rest: Vec<&Node> = parts.iter().map(|p| &**p).collect();
                while !rest.is_empty() {
                    // What is connected comes first, as long as the others can still follow; of that paths come last, but for those
                    // with both ends known. The first one always can.
                    let nodes: usize = rest.iter().map(|n| n.nodes()).sum();
                    let next = (0..rest.len())
                        .take_while(|_| self.may_try(nodes))
                        .filter(|&i| rest[i].uses.meets(&at.possible))
                        .filter(|&i| self.can_follow(&at.certain, &at.possible, &rest, i))
                        .min_by_key(|&i| match &rest[i].kind {
                            Kind::Path(_) => !rest[i].uses.is_within(&at.possible),
                            _ => false,
                        })
                        .unwrap_or(0);
                    at = self.go_on(at, rest.remove(next));
                }
                self.filter(at, &over)
            }
            Kind::Union(branches) => {
                // All of the row's columns: what comes after reads others than the union does.
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
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let left = self.go_on(input, left);
                let seen = left.possible.clone();
                self.optional_by_row(left, right, condition, &seen)
            }
            Kind::Filter { inner, filters } => self.go_on_if(input, inner, filters),
            Kind::Extend { inner, to, value } => {
                let b = self.go_on(input, inner);
                self.extend(b, *to, value)
            }
            Kind::Apply {
                input: i,
                body,
                kind,
            } => {
                let b = self.go_on(input, i);
                self.apply_by_row(b, body, *kind, *kind != ApplyKind::Left)
            }
            Kind::Project(inner) | Kind::Reduced { inner, .. } => self.go_on(input, inner),
            _ => {
                let right = self.build(node);
                hash_join(input, right, JoinKind::Inner, None)
            }
        }
    }

    /// True if all parts can go on from the rows one after the other, this one first.
    pub(super) fn can_follow(
        &self,
        certain: &SlotSet,
        possible: &SlotSet,
        parts: &[&Node],
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
                // Nothing goes with any row.
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
        right: &Node,
        condition: &[Arc<Expr>],
        seen: &SlotSet,
    ) -> Built {
        let mut uses = right.uses.clone();
        condition.iter().for_each(|c| uses.add(&c.slots()));
        let row = row_of(&left, &uses.and(seen));
        let inner = self.go_on_if(row, right, condition);
        apply_op(left, inner, ApplyKind::Left, false)
    }

    /// `constants`: the row's values stand in the body as if they were written there (EXISTS); else rows of the body by itself
    /// that go with the row are asked for.
    pub(super) fn apply_by_row(
        &mut self,
        input: Built,
        body: &Node,
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

/// Slots that an operator over the node's rows finds bound in every row: those in scope, and the graph's.
pub(crate) fn op_certain(node: &Node) -> SlotSet {
    // Each level of a deep query asks for all that is below it.
    if scope::is_over() {
        return SlotSet::default();
    }
    let graphs = match &node.kind {
        Kind::Bgp(_) | Kind::Graphs(_) | Kind::Path(_) => return node.uses.clone(),
        Kind::Join(parts) => parts
            .iter()
            .fold(SlotSet::default(), |a, p| a.or(&op_certain(p))),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Reduced { inner, .. }
        | Kind::Project(inner) => op_certain(inner),
        _ => SlotSet::default(),
    };
    node.certain.or(&graphs)
}

/// True if the node's solutions, restricted to values of the slots `known`, are what evaluation with those values
/// put in from the start gives: no filter, OPTIONAL, MINUS or BIND inside sees them bound before it would.
///
/// With `nodes` (slots that surely hold nodes of graphs) also if the values are put in as constants; else a path between two
/// variables looks itself whether an end that is known is a node.
pub(crate) fn is_safe(node: &Node, known: &SlotSet, nodes: Option<&Nodes>) -> bool {
    if !node.uses.meets(known) {
        return true;
    }
    if scope::is_over() {
        return false;
    }
    let sees_bound = |read: &SlotSet, bound: &SlotSet| read.and(known).is_within(bound);
    match &node.kind {
        // Between two variables, a path of length zero is only on nodes of the graph.
        Kind::Path(p) => {
            let Some(nodes) = nodes else { return true };
            let ends = [&p.subject, &p.object];
            let is_node = |s: Slot| nodes.iter().any(|n| n.0 == p.place && n.1 == s);
            let given = |e: &&&End| matches!(e, End::Slot(s) if known.has(*s));
            let terms = ends.iter().filter(|e| matches!(e, End::Term(_))).count();
            let constants = terms + ends.iter().filter(given).count();
            !is_nullable(&p.path)
                || keeps_any(&p.path, terms) == keeps_any(&p.path, constants)
                || ends
                    .iter()
                    .filter(given)
                    .all(|e| matches!(e, End::Slot(s) if is_node(*s)))
        }
        Kind::Bgp(_) | Kind::Values { .. } | Kind::Graphs(_) | Kind::HasGraph(_) => true,
        Kind::Join(parts) | Kind::Union(parts) => parts.iter().all(|p| is_safe(p, known, nodes)),
        Kind::Filter { inner, filters } => {
            is_safe(inner, known, nodes)
                && filters
                    .iter()
                    .all(|f| sees_bound(&f.slots(), &inner.certain))
        }
        Kind::Extend { inner, to, value } => {
            !known.has(*to)
                && is_safe(inner, known, nodes)
                && sees_bound(&value.slots(), &inner.certain)
        }
        Kind::LeftJoin {
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
        Kind::Minus { left, right } => {
            is_safe(left, known, nodes)
                && is_safe(right, known, nodes)
                && sees_bound(&right.uses, &left.certain.and(&right.certain))
        }
        Kind::Apply { input, body, kind } => {
            !matches!(kind, ApplyKind::Inner | ApplyKind::Left)
                && is_safe(input, known, nodes)
                && sees_bound(&body.uses, &op_certain(input))
        }
        Kind::Project(inner) | Kind::Reduced { inner, .. } => is_safe(inner, known, nodes),
        Kind::Service(_)
        | Kind::Group { .. }
        | Kind::OrderBy { .. }
        | Kind::Distinct { .. }
        | Kind::Slice { .. } => false,
    }
}

/// True if a path of length zero leads from a term that is not a node of the graph, where this many of its ends are constants: the
/// variables between the parts of a sequence, and ends that are none, are nodes only (SPARQL 1.1 §18.4).
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

/// True if a path may have length zero.
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
    let ends = bgp
        .patterns
        .iter()
        .flat_map(|p| [(&p.place, &p.subject), (&p.place, &p.object)]);
    ends.filter_map(|(place, end)| match end {
        End::Slot(s) => Some((place.clone(), *s)),
        End::Term(_) => None,
    })
    .collect()
}
