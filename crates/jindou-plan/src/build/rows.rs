//! Going on from rows: when that means the same as evaluation by itself, and how it is done.

use super::*;

impl Builder<'_> {
    /// True if the node's solutions that go with a row can be found from that row, operators that look at all rows
    /// aside.
    pub(crate) fn can_go_on(&self, certain: &SlotSet, possible: &SlotSet, node: &Node) -> bool {
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
                let parts: Vec<&Node> = parts.iter().collect();
                self.can_follow(certain, possible, &parts, 0)
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
                let mut nodes = vec![];
                sure_nodes(left, &mut nodes);
                self.can_go_on(certain, possible, left)
                    && self.can_go_on(&c, &p, right)
                    && is_safe(right, &p, &nodes)
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
                    && self.can_go_on(certain, possible, input)
                    && self.can_go_on(&c, &p, body)
            }
            Kind::Group { .. }
            | Kind::OrderBy { .. }
            | Kind::Distinct { .. }
            | Kind::Slice { .. } => false,
        }
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
                let mut rest: Vec<&Node> = parts.iter().collect();
                while !rest.is_empty() {
                    // What is connected comes first, as long as the others can still follow.
                    let next = (0..rest.len())
                        .filter(|&i| rest[i].uses.meets(&at.possible))
                        .find(|&i| self.can_follow(&at.certain, &at.possible, &rest, i))
                        .unwrap_or(0);
                    at = self.go_on(at, rest.remove(next));
                }
                at
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
                self.optional_by_row(left, right, condition)
            }
            Kind::Filter { inner, filters } => {
                let b = self.go_on(input, inner);
                self.filter(b, filters)
            }
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
                self.apply_by_row(b, body, *kind)
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
        let (mut known, mut nodes) = (SlotSet::default(), vec![]);
        let others = (0..parts.len()).filter(|&i| i != first);
        std::iter::once(first).chain(others).all(|i| {
            let p = parts[i];
            let ok = self.can_go_on(&certain, &possible, p) && is_safe(p, &known, &nodes);
            certain.add(&op_certain(p));
            possible.add(&p.uses);
            known.add(&p.uses);
            sure_nodes(p, &mut nodes);
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
            self.watch,
        );
        match planned {
            Ok(p) => {
                let mut out = if p.steps.is_empty() {
                    input
                } else {
                    on_steps(input, p.steps, p.rows, p.cost)
                };
                out.nodes.extend(nodes_of(bgp));
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
        condition: &[Expr],
    ) -> Built {
        let mut uses = right.uses.clone();
        condition.iter().for_each(|c| uses.add(&c.slots()));
        let row = row_of(&left, &uses.and(&left.possible));
        let inner = self.go_on(row, right);
        let inner = self.filter(inner, condition);
        apply_op(left, inner, ApplyKind::Left, false)
    }

    pub(super) fn apply_by_row(&mut self, input: Built, body: &Node, kind: ApplyKind) -> Built {
        let row = row_of(&input, &body.uses.and(&input.possible));
        let inner = self.go_on(row, body);
        apply_op(input, inner, kind, false)
    }
}

/// Slots that an operator over the node's rows finds bound in every row: those in scope, and the graph's.
pub(crate) fn op_certain(node: &Node) -> SlotSet {
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
pub(crate) fn is_safe(node: &Node, known: &SlotSet, nodes: &Nodes) -> bool {
    if !node.uses.meets(known) {
        return true;
    }
    let sees_bound = |read: &SlotSet, bound: &SlotSet| read.and(known).is_within(bound);
    match &node.kind {
        // Between two variables, a path of length zero is only on nodes of the graph.
        Kind::Path(p) => match (&p.subject, &p.object) {
            (End::Slot(s), End::Slot(o)) => {
                let is_node = |s: &Slot| nodes.iter().any(|n| n.0 == p.place && n.1 == *s);
                !is_nullable(&p.path) || [s, o].iter().all(|s| !known.has(**s) || is_node(s))
            }
            _ => true,
        },
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

/// Slots that hold nodes of a graph in each of the node's rows.
pub(super) fn sure_nodes(node: &Node, out: &mut Nodes) {
    match &node.kind {
        Kind::Bgp(b) => out.extend(nodes_of(b)),
        Kind::Join(parts) => parts.iter().for_each(|p| sure_nodes(p, out)),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Project(inner) => sure_nodes(inner, out),
        _ => {}
    }
}
