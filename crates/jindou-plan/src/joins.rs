//! The order of joined parts: groups of patterns, VALUES, sub-queries, unions, paths.

mod many;

use crate::build::{Builder, Built, Taken, hash_join, is_safe, unit};
use crate::equal;
use crate::expression::Expr;
use crate::keyed::Comparison;
use crate::logical::{Kind, Node, Row};
use crate::set::SlotSet;
use crate::{JoinKind, Slot, cost};
use jindou_model::scope;
use jindou_syntax::algebra::{Expression, Literal, NamedNode, Variable};
use rustc_hash::FxHashSet;
use std::ops::Deref;
use std::sync::Arc;

/// Parts up to which every next part is tried at every place.
const MAX_TRIED: usize = 10;
/// Parts from which on only one is tried at each place.
const MANY: usize = 64;
/// Assumed later cost of a row, in about nanoseconds of one core.
const ROW_AHEAD: f64 = 8.0;
/// Terms up to which a filter gives a path's ends.
const MAX_GIVEN: usize = 256;
/// Parts that are tried as the first one, the cheapest ones, where there are paths.
const STARTS: usize = 3;

fn score(b: &Built) -> f64 {
    b.cost + b.rows * ROW_AHEAD
}

impl Builder<'_> {
    /// The join of all parts: from the one that is smallest, always to the one that is cheapest next, by going on
    /// from the rows or by hashing. A filter drops rows as soon as its slots are bound; one that equates a slot of one part
    /// with one of another connects them as a shared slot does.
    pub(crate) fn join(&mut self, parts: &[Node], mut filters: Vec<Arc<Expr>>) -> Built {
        let (mut parts, over) = connected(constants(parts));
        filters.extend(over);
        let has_path = parts.iter().any(|p| p.has_path());
        if has_path {
            let more = given_ends(&parts, &filters);
            parts.extend(more.into_iter().map(Part::made));
        }
        let rest: Vec<(&Node, Built)> = parts.iter().map(|p| (&**p, self.build(p))).collect();
        let filters: Filters = self
            .comparisons(&filters)
            .into_iter()
            .zip(filters)
            .collect();
        let mut order: Vec<usize> = (0..rest.len()).collect();
        order.sort_by(|&a, &b| score(&rest[a].1).total_cmp(&score(&rest[b].1)));
        // Where a path ends says little of where it had better begin.
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
        mut rest: Vec<(&Node, Built)>,
        mut filters: Filters,
    ) -> Built {
        if rest.len() > MANY {
            return self.join_many(first, rest, filters);
        }
        let mut at = rest.swap_remove(first).1;
        let hollowed = |(i, part): (usize, &mut (&Node, Built))| part.1.hollowed(i as Slot + 1);
        let mut taken: Vec<Taken> = rest.iter_mut().enumerate().map(hollowed).collect();
        while !rest.is_empty() {
            let rows = at.hollowed(0);
            let (mut once, mut twice) = (SlotSet::default(), SlotSet::default());
            for (_, b) in &rest {
                twice.add(&once.and(&b.possible));
                once.add(&b.possible);
            }
            // What others than this part may bind.
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

    /// The join with a part, and the places of the filters that it needs no more.
    fn next_by(
        &mut self,
        at: &Built,
        node: &Node,
        built: &Built,
        later: &SlotSet,
        filters: &Filters,
    ) -> (Built, Vec<usize>) {
        // The side that is held is the smaller one.
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
            // Two bounds of one column are better than one of each.
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
                // What is tested after it drops most of its rows.
                if plain.cost + plain.rows * cost::OUT < score(&linked) {
                    return (plain, vec![]);
                }
                (linked, used)
            }
            None => (self.next(at, node, built), vec![]),
        }
    }

    fn next(&mut self, at: &Built, node: &Node, built: &Built) -> Built {
        // The side that is held is the smaller one.
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

/// Filters, each with the comparison that it is.
type Filters = Vec<(Option<Comparison>, Arc<Expr>)>;

/// A part of a join: one of the query's, or one that was made of some of them.
pub(crate) enum Part<'a> {
    Given(&'a Node),
    Made(Box<Node>),
}

impl Part<'_> {
    fn made(node: Node) -> Self {
        Self::Made(Box::new(node))
    }
}

impl Deref for Part<'_> {
    type Target = Node;

    fn deref(&self) -> &Node {
        match self {
            Self::Given(node) => node,
            Self::Made(node) => node,
        }
    }
}

/// The parts of a join as the query has them.
pub(crate) fn given(parts: &[Node]) -> Vec<Part<'_>> {
    parts.iter().map(Part::Given).collect()
}

/// Parts among which are paths, with groups of patterns cut where no variable connects them (being in the same graph does not):
/// a path does, and a product is not to be made before. The second are filters over several.
pub(crate) fn connected(parts: Vec<Part<'_>>) -> (Vec<Part<'_>>, Vec<Arc<Expr>>) {
    let mut over = vec![];
    if !parts.iter().any(|p| p.has_path()) {
        return (parts, over);
    }
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        let cut = match &part.kind {
            Kind::Bgp(b) if b.patterns.len() > 1 => Some(equal::components(b, false)),
            _ => None,
        };
        match cut {
            Some((groups, between)) if groups.len() > 1 && between.iter().all(|f| !f.per_row) => {
                out.extend(groups.into_iter().map(|b| {
                    Part::made(Node::bgp(b.patterns, SlotSet::default()).filter(b.filters))
                }));
                over.extend(between);
            }
            _ => out.push(part),
        }
    }
    (out, over)
}

/// VALUES for the ends of paths that a filter lets be only certain IRIs, and that nothing else binds.
fn given_ends(parts: &[Part<'_>], filters: &[Arc<Expr>]) -> Vec<Node> {
    let mut given = SlotSet::default();
    let mut out = vec![];
    for f in filters {
        let Some((slot, rows)) = terms_of(f) else {
            continue;
        };
        let is_end = |n: &Part<'_>| matches!(n.kind, Kind::Path(_)) && n.certain.has(slot);
        let is_bound = |n: &Part<'_>| !matches!(n.kind, Kind::Path(_)) && n.possible.has(slot);
        if !given.has(slot) && parts.iter().any(is_end) && !parts.iter().any(is_bound) {
            given.insert(slot);
            out.push(Node::values(vec![slot], rows));
        }
    }
    out
}

/// The slot of which a filter is only true if it is one of some IRIs, and these.
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

/// VALUES of one variable that a group of patterns binds becomes a condition on the group.
fn constants(parts: &[Node]) -> Vec<Part<'_>> {
    let mut out = given(parts);
    for (i, p) in parts.iter().enumerate() {
        let Kind::Values { slots, rows } = &p.kind else {
            continue;
        };
        let [slot] = slots.as_slice() else { continue };
        let group = parts
            .iter()
            .position(|g| matches!(g.kind, Kind::Bgp(_)) && g.certain.has(*slot));
        let (Some(group), Some(filter)) = (group, one_of(*slot, rows)) else {
            continue;
        };
        if let Part::Given(node) = &out[group]
            && let Kind::Bgp(b) = &node.kind
        {
            let copy = node.with_kind(Kind::Bgp(b.clone()));
            out[group] = Part::made(copy);
        }
        if let Part::Made(node) = &mut out[group]
            && let Kind::Bgp(b) = &mut node.kind
        {
            b.filters.push(Arc::new(filter));
        }
        out[i] = Part::made(Node::unit());
    }
    if out.iter().any(|p| matches!(p, Part::Made(_))) {
        out.retain(|n| !n.is_unit());
    }
    out
}

/// "The slot is one of these terms", in the form that becomes intervals; `None` for what is not a set of terms, or
/// has no such form.
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
        [one] => Literal::of(one),
        _ => None,
    };
    let value = Arc::new(v.clone().into());
    let expression = match literal {
        Some(literal) => Expression::SameTerm(value, Arc::new(literal.into())),
        None => {
            let names = terms.into_iter().map(|t| Some(NamedNode::of(t)?.into()));
            Expression::In(value, names.collect::<Option<Vec<_>>>()?)
        }
    };
    Some(Expr::plain(expression, [(v, slot)]))
}
