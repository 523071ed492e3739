//! [`LogicalNode`] tree → [`Operator`] tree: decides which parts are evaluated by themselves, and which extend the rows
//! of other parts.

mod built;
mod counted;
mod exists;
mod order;
mod path;
mod reach;
mod rows;
mod shell;

use crate::condition::{self, CompiledCondition, ConditionCompiler};
use crate::cost::{self, EXPRESSION, GROUP, OUT, PATH, SERVICE, SORT};
use crate::equal;
use crate::expression::Expr;
use crate::keyed;
use crate::logical::{Bgp, LogicalNode, NodeKind, PathNode, PatternGraphTerm, PatternTerm, Row};
use crate::operator;
use crate::resolve::Dataset;
use crate::set::SlotSet;
use crate::split;
use crate::steps;
use crate::validity::WatchedSnapshot;
use crate::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Condition, Count, Exploration, FarEnd, GraphRef,
    JoinKey, JoinKind, Match, Operand, Operator, Path, ServiceEndpoint, Slot, StartSource, Step,
    StepKind,
};
use jindou_model::{VertexId, scope, term};
use jindou_syntax::algebra::{Canonical, Expression, NamedNode, PropertyPathExpression};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(crate) use built::{
    Built, JoinMatches, apply_op, filtered, hash_join, match_join, nothing, row_of, unit,
};
use built::{Nodes, distinct, group, is_unit, on_steps, reduced, slice, union};
pub(crate) use reach::Reaches;
use rows::nodes_of;
pub(crate) use rows::{is_safe, op_certain};
pub(crate) use shell::TakenOperators;

/// Slots of the rows for which the nearest enclosing `Apply` runs its inner part.
#[derive(Clone, Default)]
pub(crate) struct OuterSlots {
    pub certain: SlotSet,
    pub possible: SlotSet,
}

pub(crate) struct PlanBuilder<'a> {
    pub snapshot: &'a WatchedSnapshot<'a>,
    pub dataset: &'a Dataset,
    pub slots: Vec<String>,
    /// Slots of the outer row; empty except in the inner part of an `Apply`, which runs once for each outer row.
    pub outer: OuterSlots,
    /// Slots whose values an EXISTS substitutes in the patterns of its body: they are constants there.
    pub constants: SlotSet,
    /// Estimates of the property paths met so far, by path and graph.
    pub reaches: Reaches,
    pub graphs: Option<f64>,
    /// Number of nodes for which alternative plans may still be tried; see [`PlanBuilder::may_try`].
    pub tries: std::cell::Cell<usize>,
    /// Variables that the query compares with others by `=`.
    pub compared: SlotSet,
}

/// Slots of the outer row that the operator's rows start from or have already been joined with. Only a chain of
/// operators is followed; a slot that is missing here is joined once more, which changes nothing.
fn joined_outer(mut op: &Operator) -> SlotSet {
    const LATELY: usize = 64;
    let mut out = SlotSet::default();
    for _ in 0..LATELY {
        op = match op {
            Operator::Filter(f) => &f.input,
            Operator::Extend(e) => &e.input,
            Operator::Steps(s) => &s.input,
            Operator::Path(p) => &p.input,
            Operator::Apply(a) => &a.input,
            Operator::Outer(row) => {
                row.slots.iter().for_each(|s| out.insert(*s));
                break;
            }
            Operator::Join(j) if matches!(j.kind, JoinKind::Inner) => {
                if let Operator::Outer(row) = &*j.right {
                    row.slots.iter().for_each(|s| out.insert(*s));
                }
                &j.left
            }
            _ => break,
        };
    }
    out
}

impl PlanBuilder<'_> {
    /// Builds operators that produce the node's solutions. Inside an `Apply`, those are the solutions for one outer
    /// row.
    pub(crate) fn build(&mut self, node: &LogicalNode) -> Built {
        if scope::is_over() {
            return nothing(String::new());
        }
        match &node.kind {
            NodeKind::Bgp(_)
            | NodeKind::Graphs(_)
            | NodeKind::HasGraph(_)
            | NodeKind::Path(_)
            | NodeKind::Values { .. }
            | NodeKind::Service(_) => self.leaf_for_row(node),
            NodeKind::Join(parts) => self.join(parts, vec![]),
            NodeKind::Union(branches) => {
                let built = branches.iter().map(|b| self.build(b)).collect();
                union(built)
            }
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let left = self.build(left);
                self.left_join(left, right, condition)
            }
            NodeKind::Minus { left, right } => {
                let above = left.possible.clone();
                let left = self.build(left);
                self.minus(left, &above, right)
            }
            NodeKind::Apply { input, body, kind } => {
                let input = self.build(input);
                self.apply(input, body, *kind)
            }
            NodeKind::Filter { inner, filters } => self.build_filtered(inner, filters.clone()),
            NodeKind::Extend { inner, to, value } => {
                let inner = self.build(inner);
                self.extend(inner, *to, value)
            }
            NodeKind::Group {
                inner,
                by,
                aggregates,
            } => self.build_group(inner, by, aggregates),
            NodeKind::OrderBy { inner, keys } => self.build_order_by(inner, keys),
            NodeKind::Distinct { inner, slots } => {
                if let Some(known) = self.distinct_predicates(unordered(inner), slots) {
                    return known;
                }
                distinct(self.build(unordered(inner)), slots)
            }
            NodeKind::Reduced { inner, slots } => reduced(self.build(inner), slots),
            NodeKind::Slice {
                inner,
                offset,
                limit,
            } => {
                // The order decides which rows are taken.
                slice(self.build_in_order(inner), *offset, *limit)
            }
            // Hidden slots need not be removed, since operators above do not read them.
            NodeKind::Project(inner) => self.build(unordered(inner)),
        }
    }

    fn build_group(&mut self, inner: &LogicalNode, by: &[Slot], aggregates: &[Aggregate]) -> Built {
        if let Some(known) = self.counted(inner, by, aggregates) {
            return known;
        }
        // The values of GROUP_CONCAT and SAMPLE depend on the order of the rows.
        let takes_order = |a: &Aggregate| {
            matches!(
                a.function,
                AggregateFunction::GroupConcat(_) | AggregateFunction::Sample
            )
        };
        let inner = if aggregates.iter().any(takes_order) {
            self.build_in_order(inner)
        } else {
            self.build(inner)
        };
        group(inner, by, aggregates)
    }

    fn build_order_by(&mut self, inner: &LogicalNode, keys: &[(Slot, bool)]) -> Built {
        let b = self.build(inner);
        let keys: Vec<(Slot, bool)> = keys
            .iter()
            .copied()
            .filter(|k| b.possible.has(k.0))
            .collect();
        if keys.is_empty() {
            return b;
        }
        let cost = b.cost + b.rows * SORT * (2.0 + b.rows).log2();
        b.with(
            |op| operator::OrderBy { input: op, keys }.into(),
            None,
            cost,
        )
    }

    /// A leaf of the tree, evaluated from the outer row's values of its slots if it has any.
    fn leaf_for_row(&mut self, node: &LogicalNode) -> Built {
        let known = node.uses.and(&self.outer.possible);
        if known.is_empty() {
            return self.leaf(node);
        }
        let row = self.outer_row(&known);
        if self.can_go_on(&row.certain, &row.possible, node) {
            return self.go_on(row, node);
        }
        let outer = std::mem::take(&mut self.outer);
        let leaf = self.leaf(node);
        self.outer = outer;
        hash_join(row, leaf, JoinKind::Inner, None)
    }

    /// A leaf operator that returns columns of the outer row.
    fn outer_row(&self, slots: &SlotSet) -> Built {
        Built {
            op: Operator::Outer(operator::Outer {
                slots: slots.to_vec(),
            }),
            certain: slots.and(&self.outer.certain),
            possible: slots.clone(),
            nodes: vec![],
            texts: SlotSet::default(),
            rows: 1.0,
            cost: 0.0,
        }
    }

    /// Binds slots that are unbound in `b` to the outer row's values.
    fn with_outer(&mut self, b: Built, slots: &SlotSet) -> Built {
        let mut missing = slots.and(&self.outer.possible).minus(&b.certain);
        if missing.meets(&b.possible) {
            // Some rows, such as those of another UNION branch, lack the slot unless they were joined with the outer
            // row.
            missing = missing.minus(&joined_outer(&b.op));
        }
        if missing.is_empty() {
            return b;
        }
        let row = self.outer_row(&missing);
        hash_join(b, row, JoinKind::Inner, None)
    }

    /// A leaf evaluated by itself, without an outer row.
    fn leaf(&mut self, node: &LogicalNode) -> Built {
        match &node.kind {
            NodeKind::Bgp(b) => self.explore(b),
            NodeKind::Graphs(g) => self.graphs(*g),
            NodeKind::HasGraph(name) => {
                self.snapshot.bind();
                let there = self
                    .dataset
                    .graph(name, self.snapshot)
                    .is_some_and(|g| self.snapshot.has_graph(g));
                if there {
                    unit()
                } else {
                    nothing(format!(
                        "{} is not a named graph of the query's dataset",
                        crate::show::term(name)
                    ))
                }
            }
            NodeKind::Path(p) => self.path(unit(), p),
            NodeKind::Values { slots, rows } => self.values(node, slots, rows),
            NodeKind::Service(s) => Built {
                op: Operator::Service(s.clone()),
                certain: SlotSet::default(),
                possible: node.possible.clone(),
                nodes: vec![],
                texts: SlotSet::default(),
                rows: 1_000.0,
                cost: SERVICE,
            },
            _ => nothing("an inner node stands where a leaf should".into()),
        }
    }

    fn values(&mut self, node: &LogicalNode, slots: &[Slot], rows: &[Row]) -> Built {
        let cells = rows
            .iter()
            .map(|r| {
                r.iter()
                    .map(|c| match c {
                        None => Cell::Unbound,
                        Some(bytes) => match self.snapshot.lookup(bytes) {
                            Some(VertexId(v)) => Cell::Id(v),
                            None => Cell::Term(bytes.clone()),
                        },
                    })
                    .collect()
            })
            .collect::<Vec<_>>();
        let n = rows.len() as f64;
        Built {
            op: Operator::Values(operator::Values {
                slots: slots.to_vec(),
                rows: cells,
            }),
            certain: node.certain.clone(),
            possible: node.possible.clone(),
            nodes: vec![],
            texts: SlotSet::default(),
            rows: n,
            cost: n * OUT,
        }
    }

    /// Plans one group of patterns. If it has more slots or patterns than the planner's bit masks can hold, it is split
    /// into parts, which are joined.
    /// joined.
    fn explore(&mut self, bgp: &Bgp) -> Built {
        let mut uses: SlotSet = SlotSet::default();
        for p in &bgp.patterns {
            p.slots().for_each(|s| uses.insert(s));
        }
        if uses.len() > steps::MAX_LOCAL || bgp.patterns.len() > crate::resolve::MAX_EDGES {
            let (parts, filters) = cut(bgp);
            return self.join(&parts, filters);
        }
        if let Some((group, copies)) = equal::unified(bgp, self.snapshot.graph()) {
            let one = self.explore(&group);
            return copies
                .iter()
                .fold(one, |b, (to, value)| self.extend(b, *to, value));
        }
        let whole = self.explore_whole(bgp, uses);
        cheaper(self.explore_parts(bgp), whole)
    }

    /// Plans parts that are connected only by `=` of their values as a join; `None` if there are no such parts.
    fn explore_parts(&mut self, bgp: &Bgp) -> Option<Built> {
        let compares = |f: &Arc<Expr>| keyed::compares(f);
        if !bgp.filters.iter().any(compares) {
            return None;
        }
        let (parts, over) = equal::components(bgp, false);
        if parts.len() < 2 || !over.iter().any(compares) {
            return None;
        }
        let parts: Vec<LogicalNode> = parts
            .into_iter()
            .map(|b| LogicalNode::bgp(b.patterns, SlotSet::default()).filter(b.filters))
            .collect();
        Some(self.join(&parts, over))
    }

    /// Plans the group as a single exploration.
    fn explore_whole(&mut self, bgp: &Bgp, uses: SlotSet) -> Built {
        match steps::plan(bgp, &mut self.slots, None, self.dataset, self.snapshot) {
            Ok(p) => Built {
                op: Operator::Explore(Exploration {
                    steps: p.steps,
                    empty: None,
                }),
                certain: uses.clone(),
                possible: uses,
                nodes: nodes_of(bgp),
                texts: self.texts(bgp),
                rows: p.rows,
                cost: p.cost,
            },
            Err(why) => {
                self.snapshot.bind();
                Built {
                    certain: uses.clone(),
                    possible: uses,
                    ..nothing(why)
                }
            }
        }
    }

    /// Slots as in [`Built::texts`]; objects are considered only if the query compares them.
    fn texts(&self, bgp: &Bgp) -> SlotSet {
        equal::identical(&bgp.patterns, self.snapshot.graph(), Some(&self.compared)).texts
    }

    fn graph_count(&mut self) -> f64 {
        let snapshot = self.snapshot;
        let named = self.dataset.named.as_ref().map(Vec::len);
        *self
            .graphs
            .get_or_insert_with(|| named.unwrap_or_else(|| snapshot.named_graphs().len()) as f64)
    }

    fn graphs(&mut self, g: Slot) -> Built {
        let rows = self.graph_count();
        let step = Step {
            kind: StepKind::Start {
                to: Some(g),
                source: StartSource::Graphs(self.dataset.named.clone()),
                within: None,
            },
            filters: vec![],
            live: vec![g],
            rows,
            cost: rows,
            why: "the query asks for the graphs".into(),
        };
        Built {
            op: Operator::Explore(Exploration {
                steps: vec![step],
                empty: None,
            }),
            certain: SlotSet::one(g),
            possible: SlotSet::one(g),
            nodes: vec![],
            texts: SlotSet::default(),
            rows,
            cost: rows,
        }
    }

    fn left_join(&mut self, left: Built, right: &LogicalNode, condition: &[Arc<Expr>]) -> Built {
        let mut needs = SlotSet::default();
        condition.iter().for_each(|c| needs.add(&c.slots()));
        let mut left = self.with_outer(left, &needs);
        let taken = left.hollowed(0);
        // Slots that only some left rows bind: the right side finds its own values, which are compared when the rows
        // are combined.
        let open = right.uses.and(&left.possible).minus(&left.certain);
        let seen = left.possible.minus(&open);
        let by_row = self.may_try(right.nodes())
            && self.has_outer(&left.certain, right)
            && self.can_go_on(&left.certain, &seen, right)
            && is_safe(right, &seen, None)
            && (open.is_empty() || right.uses.meets(&left.certain))
            && needs.and(&open).is_within(&right.certain);
        let by_row = by_row.then(|| self.optional_by_row(left.clone(), right, condition, &seen));
        let right = self.build(right);
        let hashed = self.hashed(left, right, JoinKind::Left, condition);
        cheaper(by_row, hashed).refilled(taken)
    }

    fn minus(&mut self, mut left: Built, above: &SlotSet, right: &LogicalNode) -> Built {
        let shared = above.and(&right.possible);
        if shared.is_empty() {
            return left;
        }
        let taken = left.hollowed(0);
        let plain = shared.is_within(&left.certain) && shared.is_within(&right.certain);
        let by_row = plain
            && self.may_try(right.nodes())
            && self.has_outer(&left.certain, right)
            && self.can_go_on(&left.certain, &left.possible, right)
            && is_safe(right, &left.possible, None);
        let by_row = by_row.then(|| self.apply_by_row(left.clone(), right, ApplyKind::Anti, false));
        let visible = right.possible.clone();
        let mut right = self.build(right);
        let hashed = if plain {
            hash_join(left, right, JoinKind::Anti, None)
        } else {
            // MINUS compares only variables in scope on the right side.
            if right.possible.meets(&left.possible.minus(&visible)) {
                let slots = visible.and(&right.possible);
                right.possible = slots.clone();
                right.certain = right.certain.and(&slots);
                right = right.with(
                    |op| {
                        operator::Reduced {
                            input: op,
                            slots: slots.to_vec(),
                        }
                        .into()
                    },
                    None,
                    0.0,
                );
            }
            hash_join(left, right, JoinKind::Minus, None)
        };
        cheaper(by_row, hashed).refilled(taken)
    }

    pub(super) fn apply(&mut self, input: Built, body: &LogicalNode, kind: ApplyKind) -> Built {
        let mut input = self.with_outer(input, &body.uses);
        if let (NodeKind::Service(service), ApplyKind::Inner | ApplyKind::Left) = (&body.kind, kind)
            && matches!(service.endpoint, ServiceEndpoint::Slot(_))
        {
            // The SERVICE reads only the endpoint from the row: one call per distinct endpoint. Other common slots are
            // compared when the rows are combined.
            let inner = self.leaf(body);
            return apply_op(input, inner, kind, true);
        }
        let taken = input.hollowed(0);
        let shared = body.uses.and(&input.possible);
        let by_row = (self.may_try(body.nodes())
            && self.can_go_on(&input.certain, &input.possible, body))
        .then(|| self.apply_by_row(input.clone(), body, kind, kind != ApplyKind::Left));
        // A body that is independent of the row can be hashed once.
        let join = match kind {
            ApplyKind::Semi => Some(JoinKind::Semi),
            ApplyKind::Anti => Some(JoinKind::Anti),
            ApplyKind::Mark(slot) => Some(JoinKind::Mark(slot)),
            ApplyKind::Inner | ApplyKind::Left => None,
        };
        let is_independent = shared.is_within(&input.certain)
            && shared.is_within(&op_certain(body))
            && !shared.is_empty()
            && is_safe(body, &shared, Some(&input.nodes));
        if let (Some(join), true) = (join, is_independent) {
            let right = self.build(body);
            let hashed = hash_join(input, right, join, None);
            return cheaper(by_row, hashed).refilled(taken);
        }
        if let Some(join) = join
            && (by_row.is_none() || self.may_try(body.nodes()))
        {
            if let Some(hashed) = self.exists_by_key(&input, body, join) {
                return cheaper(by_row, hashed).refilled(taken);
            }
            if kind == ApplyKind::Anti
                && let Some(chain) = self.without_each(&input, body)
            {
                return cheaper(by_row, chain).refilled(taken);
            }
        }
        if let Some(b) = by_row {
            return b.refilled(taken);
        }
        let row = OuterSlots {
            certain: input.certain.clone(),
            possible: input.possible.clone(),
        };
        let before = std::mem::replace(&mut self.outer, row);
        let inner = self.build(body);
        self.outer = before;
        apply_op(input, inner, kind, true).refilled(taken)
    }

    /// Keeps rows for which all filters are true.
    pub(crate) fn filter(&mut self, b: Built, filters: &[Arc<Expr>]) -> Built {
        let mut needs = SlotSet::default();
        filters.iter().for_each(|f| needs.add(&f.slots()));
        let b = self.with_outer(b, &needs);
        match self.conjunction(filters, &b.certain) {
            Some(c) => filtered(b, c),
            None => b,
        }
    }

    fn conjunction(&self, filters: &[Arc<Expr>], certain: &SlotSet) -> Option<Condition> {
        let compiler = ConditionCompiler {
            snapshot: self.snapshot,
            resources: 0,
            certain: Some(certain),
            stored: false,
        };
        let mut all: Vec<Condition> = filters
            .iter()
            .take_while(|_| !scope::is_over())
            .filter_map(|f| match compiler.compile(f) {
                CompiledCondition::True => None,
                other => Some(condition::known(other)),
            })
            .collect();
        match all.len() {
            0 => None,
            1 => all.pop(),
            _ => Some(Condition::And(all)),
        }
    }

    pub(crate) fn extend(&mut self, b: Built, to: Slot, value: &Expr) -> Built {
        let b = self.with_outer(b, &value.slots());
        let bound = match &*value.expression {
            Expression::NamedNode(_) | Expression::Literal(_) => true,
            Expression::Variable(v) => value.slot(v).is_some_and(|s| b.certain.has(s)),
            _ => false,
        };
        let cost = b.cost + b.rows * if bound { OUT } else { EXPRESSION };
        let text = keyed::is_text(&value.expression, value, &b);
        let value = value.general();
        let mut out = b.with(
            |input| {
                operator::Extend {
                    input,
                    to,
                    value,
                    is_computed_above: false,
                }
                .into()
            },
            None,
            cost,
        );
        out.possible.insert(to);
        if text {
            out.texts.insert(to);
        } else {
            out.texts.remove(to);
        }
        if bound {
            out.certain.insert(to);
        }
        out
    }
}

fn cheaper(a: Option<Built>, b: Built) -> Built {
    match a {
        Some(a) if a.cost <= b.cost => a,
        _ => b,
    }
}

/// The node without ORDER BY at its top, for consumers that ignore the order of rows.
fn unordered(node: &LogicalNode) -> &LogicalNode {
    let mut at = node;
    while let NodeKind::OrderBy { inner, .. } = &at.kind {
        at = inner;
    }
    at
}

fn kept(slots: &[Slot], possible: &SlotSet) -> Vec<Slot> {
    slots.iter().copied().filter(|s| possible.has(*s)).collect()
}

/// Splits a group into parts that fit the planner's bit masks; also returns the filters that span several parts.
/// O(patterns).
fn cut(bgp: &Bgp) -> (Vec<LogicalNode>, Vec<Arc<Expr>>) {
    let half = steps::MAX_LOCAL / 2;
    let mut parts: Vec<(Bgp, SlotSet)> = vec![];
    // The last part that has a slot; earlier parts are full, or nearly.
    let mut last_with: FxHashMap<Slot, usize> = FxHashMap::default();
    for p in &bgp.patterns {
        let slots: SlotSet = p.slots().collect();
        let fits = |(b, s): &(Bgp, SlotSet)| {
            b.patterns.len() < half && (s.len() + slots.len() <= half || s.or(&slots).len() <= half)
        };
        let room = |&i: &usize| parts.get(i).is_some_and(fits);
        let connected = p.slots().filter_map(|s| last_with.get(&s).copied());
        let at = connected
            .filter(room)
            .min()
            .or_else(|| parts.len().checked_sub(1).filter(room));
        let at = at.unwrap_or(parts.len());
        p.slots().for_each(|s| {
            last_with.insert(s, at);
        });
        match parts.get_mut(at) {
            Some((b, s)) => {
                b.patterns.push(p.clone());
                s.add(&slots);
            }
            None => parts.push((Bgp::new(vec![p.clone()], vec![]), slots)),
        }
    }
    let mut nodes: Vec<LogicalNode> = parts
        .into_iter()
        .map(|(b, _)| LogicalNode::bgp(b.patterns, SlotSet::default()))
        .collect();
    let mut rest = vec![];
    for f in &bgp.filters {
        if scope::is_over() {
            break;
        }
        let slots = f.slots();
        let part = nodes.iter_mut().find(|n| slots.is_within(&n.certain));
        match part.map(|n| &mut n.kind) {
            Some(NodeKind::Bgp(b)) => b.filters.push(f.clone()),
            _ => rest.push(f.clone()),
        }
    }
    (nodes, rest)
}
