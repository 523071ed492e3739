//! The order in which parts of a join (groups of patterns, VALUES, sub-queries, unions, paths) are joined.

mod many;

use crate::build::{Built, PlanBuilder, TakenOperators, hash_join, is_safe, unit};
use crate::equal;
use crate::expression::Expr;
use crate::keyed::KeyedCondition;
use crate::logical::{LogicalNode, NodeKind, Row};
use crate::set::SlotSet;
use crate::{JoinKind, Slot, cost};
use jindou_model::scope;
use jindou_syntax::algebra::{Expression, Literal, NamedNode, Variable};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// Largest number of parts that are tried as the next one at each position of the order.
const MAX_TRIED: usize = 10;
/// Number of parts above which one order is chosen without trying others ([`many`]).
const MANY: usize = 64;
/// Assumed cost of processing a row of the join later on, roughly in nanoseconds of one core.
const ROW_AHEAD: f64 = 8.0;
/// Largest set of IRIs in a filter that becomes VALUES for an end of a path.
const MAX_GIVEN: usize = 256;
/// Number of cheapest parts, each of which is tried as the first one, if there are paths.
const STARTS: usize = 3;

fn score(b: &Built) -> f64 {
    b.cost + b.rows * ROW_AHEAD
}

impl PlanBuilder<'_> {
    /// Joins all parts: starts with the cheapest and then always adds the part with the lowest score, either by
    /// extending the rows or by a hash join. A filter is tested as soon as its slots are bound. A filter that equates
    /// slots of two parts connects them, as a shared slot does.
    pub(crate) fn join(&mut self, parts: &[LogicalNode], mut filters: Vec<Arc<Expr>>) -> Built {
        let (mut parts, over) = connected(constants(parts));
        filters.extend(over);
        let has_path = parts.iter().any(|p| p.has_path());
        if has_path {
            let more = given_ends(&parts, &filters);
            parts.extend(more.into_iter().map(JoinPart::made));
        }
        let rest: Vec<(&LogicalNode, Built)> =
            parts.iter().map(|p| (&**p, self.build(p))).collect();
        let filters: Filters = self
            .comparisons(&filters)
            .into_iter()
            .zip(filters)
            .collect();
        let mut order: Vec<usize> = (0..rest.len()).collect();
        order.sort_by(|&a, &b| score(&rest[a].1).total_cmp(&score(&rest[b].1)));
        // The estimate for a path by itself says little about the end from which it should be followed.
        order.truncate(if has_path { STARTS } else { 1 });
        let Some((&last, others)) = order.split_last() else {
            return unit();
        };
        let mut best: Option<Built> = None;
        for &first in others {
            let tried = self.join_from(first, rest.clone(), filters.clone());
            if best.as_ref().is_none_or(|b| score(&tried) < score(b)) {
                best = Some(tried);
            }
        }
        let tried = self.join_from(last, rest, filters);
        match best {
            Some(b) if score(&b) <= score(&tried) => b,
            _ => tried,
        }
    }

    fn join_from(
        &mut self,
        first: usize,
        mut rest: Vec<(&LogicalNode, Built)>,
        mut filters: Filters,
    ) -> Built {
        if rest.len() > MANY {
            return self.join_many(first, rest, filters);
        }
        let mut at = rest.swap_remove(first).1;
        let hollowed =
            |(i, part): (usize, &mut (&LogicalNode, Built))| part.1.hollowed(i as Slot + 1);
        let mut taken: Vec<TakenOperators> = rest.iter_mut().enumerate().map(hollowed).collect();
        while !rest.is_empty() {
            let rows = at.hollowed(0);
            let (mut once, mut twice) = (SlotSet::default(), SlotSet::default());
            for (_, b) in &rest {
                twice.add(&once.and(&b.possible));
                once.add(&b.possible);
            }
            // Slots that other parts may bind when they are joined later.
            let later = |b: &Built| twice.or(&once.minus(&b.possible));
            let links = |b: &Built, at: &Built| {
                let mut comparisons = filters.iter().filter_map(|f| f.0.as_ref()).peekable();
                comparisons.peek().is_some() && {
                    let later = later(b);
                    comparisons.any(|c| c.links(at, b, &later))
                }
            };
            let connected = |b: &Built, at: &Built| b.possible.meets(&at.possible) || links(b, at);
            let any = rest.iter().any(|r| connected(&r.1, &at));
            let mut best: Option<(usize, Built, Vec<usize>)> = None;
            let mut tried = 0;
            for (i, (node, built)) in rest.iter().enumerate() {
                if any && !connected(built, &at) {
                    continue;
                }
                tried += 1;
                if tried > MAX_TRIED || scope::is_over() {
                    break;
                }
                let (next, used) = self.next_by(&at, node, built, &later(built), &filters);
                if best.as_ref().is_none_or(|b| score(&next) < score(&b.1)) {
                    best = Some((i, next, used));
                }
            }
            let Some((i, next, used)) = best else {
                at = at.refilled(rows);
                break;
            };
            rest.swap_remove(i);
            at = next.refilled(rows).refilled(taken.swap_remove(i));
            for used in used.into_iter().rev() {
                filters.remove(used);
            }
            let (now, later): (Filters, Filters) = filters.into_iter().partition(|(_, f)| {
                let slots = f.slots();
                !f.per_row && !slots.is_empty() && slots.is_within(&at.certain)
            });
            filters = later;
            let now: Vec<Arc<Expr>> = now.into_iter().map(|f| f.1).collect();
            at = self.filter(at, &now);
        }
        let filters: Vec<Arc<Expr>> = filters.into_iter().map(|f| f.1).collect();
        self.filter(at, &filters)
    }

    /// Joins with a part; also returns the positions of the filters that need no further test.
    fn next_by(
        &mut self,
        at: &Built,
        node: &LogicalNode,
        built: &Built,
        later: &SlotSet,
        filters: &Filters,
    ) -> (Built, Vec<usize>) {
        // The right side is stored, so it is the smaller one.
        let (left, right) = if at.rows < built.rows {
            (built, at)
        } else {
            (at, built)
        };
        let mut linked = |left: &Built, right: &Built| {
            let comparisons = filters.iter().map(|f| f.0.as_ref());
            self.matched(left, right, JoinKind::Inner, later, comparisons)
        };
        let is_equality = |i: &usize| filters[*i].0.as_ref().is_some_and(|c| !c.is_order());
        let mut best = linked(left, right);
        if best.as_ref().is_some_and(|b| !b.1.iter().any(is_equality)) {
            // A sorted right side can be searched by a lower and an upper bound of one column, but not by bounds of two
            // columns.
            let other = linked(right, left);
            if let (Some(a), Some(b)) = (&best, &other)
                && score(&b.0) < score(&a.0)
            {
                best = other;
            }
        }
        let shares = built.possible.meets(&at.possible);
        match best {
            Some((linked, used)) if !shares => {
                if used.iter().any(is_equality) {
                    return (linked, used);
                }
                let plain = self.next(at, node, built);
                if score(&plain) < score(&linked) {
                    return (plain, vec![]);
                }
                (linked, used)
            }
            Some((linked, used)) => {
                let plain = self.next(at, node, built);
                // The filters are tested on the rows of this plan afterwards and drop most of them, so its rows count
                // little.
                if plain.cost + plain.rows * cost::OUT < score(&linked) {
                    return (plain, vec![]);
                }
                (linked, used)
            }
            None => (self.next(at, node, built), vec![]),
        }
    }

    fn next(&mut self, at: &Built, node: &LogicalNode, built: &Built) -> Built {
        // The right side is stored, so it is the smaller one.
        let hashed = if at.rows < built.rows {
            hash_join(built.clone(), at.clone(), JoinKind::Inner, None)
        } else {
            hash_join(at.clone(), built.clone(), JoinKind::Inner, None)
        };
        let shared = node.uses.and(&at.possible);
        if !shared.is_empty()
            && self.may_try(node.nodes())
            && self.can_go_on(&at.certain, &at.possible, node)
            && is_safe(node, &at.possible, None)
        {
            let by_row = self.go_on(at.clone(), node);
            if by_row.cost + by_row.rows * ROW_AHEAD <= hashed.cost + hashed.rows * ROW_AHEAD {
                return by_row;
            }
        }
        hashed
    }
}

/// Filters, each with the comparison that it consists of, if it can be a join key.
type Filters = Vec<(Option<KeyedCondition>, Arc<Expr>)>;

/// A part of a join: a node of the query, or one that was made from nodes of the query.
pub(crate) enum JoinPart<'a> {
    Given(&'a LogicalNode),
    Made(Box<LogicalNode>),
}

impl JoinPart<'_> {
    fn made(node: LogicalNode) -> Self {
        Self::Made(Box::new(node))
    }
}

impl Deref for JoinPart<'_> {
    type Target = LogicalNode;

    fn deref(&self) -> &LogicalNode {
        match self {
            Self::Given(node) => node,
            Self::Made(node) => node,
        }
    }
}

/// The parts of a join, unchanged.
pub(crate) fn given(parts: &[LogicalNode]) -> Vec<JoinPart<'_>> {
    parts.iter().map(JoinPart::Given).collect()
}

/// Splits the groups of patterns of a join that contains paths into connected groups: a path may connect them, and
/// their product should not be built first. Being in the same graph does not count as connected. Also returns the
/// filters over several groups. A join without paths is unchanged.
pub(crate) fn connected(parts: Vec<JoinPart<'_>>) -> (Vec<JoinPart<'_>>, Vec<Arc<Expr>>) {
    let mut over = vec![];
    if !parts.iter().any(|p| p.has_path()) {
        return (parts, over);
    }
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        let cut = match &part.kind {
            NodeKind::Bgp(b) if b.patterns.len() > 1 => Some(equal::components(b, false)),
            _ => None,
        };
        match cut {
            Some((groups, between)) if groups.len() > 1 && between.iter().all(|f| !f.per_row) => {
                out.extend(groups.into_iter().map(|b| {
                    JoinPart::made(
                        LogicalNode::bgp(b.patterns, SlotSet::default()).filter(b.filters),
                    )
                }));
                over.extend(between);
            }
            _ => out.push(part),
        }
    }
    (out, over)
}

/// VALUES for ends of paths that a filter restricts to certain IRIs, unless another part may bind them.
fn given_ends(parts: &[JoinPart<'_>], filters: &[Arc<Expr>]) -> Vec<LogicalNode> {
    let mut given = SlotSet::default();
    let mut out = vec![];
    for f in filters {
        let Some((slot, rows)) = terms_of(f) else {
            continue;
        };
        let is_end = |n: &JoinPart<'_>| matches!(n.kind, NodeKind::Path(_)) && n.certain.has(slot);
        let is_bound =
            |n: &JoinPart<'_>| !matches!(n.kind, NodeKind::Path(_)) && n.possible.has(slot);
        if !given.has(slot) && parts.iter().any(is_end) && !parts.iter().any(is_bound) {
            given.insert(slot);
            out.push(LogicalNode::values(vec![slot], rows));
        }
    }
    out
}

/// For a filter that is true only if a slot holds one of some IRIs: the slot and the IRIs.
fn terms_of(f: &Expr) -> Option<(Slot, Vec<Row>)> {
    let (v, list) = match &*f.expression {
        Expression::Equal(a, b) | Expression::SameTerm(a, b) => match (&**a, &**b) {
            (Expression::Variable(v), other) | (other, Expression::Variable(v)) => {
                (v, std::slice::from_ref(other))
            }
            _ => return None,
        },
        Expression::In(a, list) => match &**a {
            Expression::Variable(v) => (v, &list[..]),
            _ => return None,
        },
        _ => return None,
    };
    if list.len() > MAX_GIVEN {
        return None;
    }
    let mut rows = vec![];
    for e in list {
        let Expression::NamedNode(n) = e else {
            return None;
        };
        let row = vec![Some(n.canonical())];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Some((f.slot(v)?, rows))
}

/// Replaces VALUES of one variable, and BIND of a constant, by a condition on a group of patterns that binds the variable.
pub(crate) fn constants(parts: &[LogicalNode]) -> Vec<JoinPart<'_>> {
    let mut out = given(parts);
    for (i, p) in parts.iter().enumerate() {
        let Some((slot, rows)) = values_of_one(p) else {
            continue;
        };
        let group = parts
            .iter()
            .position(|g| matches!(g.kind, NodeKind::Bgp(_)) && g.certain.has(slot));
        let (Some(group), Some(filter)) = (group, one_of(slot, &rows)) else {
            continue;
        };
        if let JoinPart::Given(node) = &out[group]
            && let NodeKind::Bgp(b) = &node.kind
        {
            let copy = node.with_kind(NodeKind::Bgp(b.clone()));
            out[group] = JoinPart::made(copy);
        }
        if let JoinPart::Made(node) = &mut out[group]
            && let NodeKind::Bgp(b) = &mut node.kind
        {
            b.filters.push(Arc::new(filter));
        }
        out[i] = JoinPart::made(LogicalNode::unit());
    }
    if out.iter().any(|p| matches!(p, JoinPart::Made(_))) {
        out.retain(|n| !n.is_unit());
    }
    out
}

/// The only slot of VALUES or of BIND of a constant, and its values.
fn values_of_one(node: &LogicalNode) -> Option<(Slot, Cow<'_, [Row]>)> {
    match &node.kind {
        NodeKind::Values { slots, rows } => match slots.as_slice() {
            [slot] => Some((*slot, Cow::Borrowed(rows))),
            _ => None,
        },
        NodeKind::Extend { inner, to, value } if inner.is_unit() => {
            let term = match &*value.expression {
                Expression::NamedNode(n) => n.canonical(),
                Expression::Literal(l) => l.canonical().clone(),
                _ => return None,
            };
            Some((*to, Cow::Owned(vec![vec![Some(term)]])))
        }
        _ => None,
    }
}

/// The condition "the slot is one of these terms", in a form that the planner turns into intervals. `None` for rows
/// that contain a duplicate, an unbound value, or terms for which there is no such form.
fn one_of(slot: Slot, rows: &[Row]) -> Option<Expr> {
    let v = Variable::new_unchecked("value");
    let mut terms = vec![];
    let mut seen = FxHashSet::default();
    for row in rows {
        let bytes = row.first()?.as_ref()?;
        if !seen.insert(bytes) {
            return None;
        }
        terms.push(bytes);
    }
    let literal = match terms.as_slice() {
        [one] => Literal::from_canonical(one),
        _ => None,
    };
    let value = Arc::new(v.clone().into());
    let expression = match literal {
        Some(literal) => Expression::SameTerm(value, Arc::new(literal.into())),
        None => {
            let names = terms
                .into_iter()
                .map(|t| Some(NamedNode::from_canonical(t)?.into()));
            Expression::In(value, names.collect::<Option<Vec<_>>>()?)
        }
    };
    Some(Expr::plain(expression, [(v, slot)]))
}
