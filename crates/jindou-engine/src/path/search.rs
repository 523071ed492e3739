//! Breadth-first search over pairs (state of an automaton, node), from one end or from both.

use super::automaton::{Automaton, EdgeDirection, Move, MoveLabel};
use super::seen::VisitedSet;
use crate::explore::{QueryContext, RowPredicates};
use jindou_graph::segment::{GraphScope, KeyFinder, Segment};
use jindou_model::{PredicateId, Result};

/// Number of nodes between two checks of the deadline.
const PART: usize = 1024;
/// How many lists ahead the bounds of a list are prefetched.
const AHEAD: usize = 8;

/// The search from one end of a path.
pub(super) struct Side {
    /// The visited nodes, by state.
    pub seen: Vec<VisitedSet>,
    /// By state, the number of visited nodes that were already expanded.
    done: Vec<usize>,
    /// Buffers: some nodes to expand, and their key numbers in a segment.
    front: Vec<u32>,
    keys: Vec<u32>,
    scratch: Vec<u32>,
}

/// The automaton's moves, forward or backward as a search uses them, and the graphs to search.
#[derive(Clone, Copy)]
pub(super) struct PathGraph<'a> {
    moves: &'a [Vec<Move>],
    labels: &'a [MoveLabel],
    scope: GraphScope<'a>,
}

impl<'a> PathGraph<'a> {
    pub fn forward(a: &'a Automaton, scope: GraphScope<'a>) -> Self {
        Self {
            moves: &a.next,
            labels: &a.labels,
            scope,
        }
    }

    pub fn backward(a: &'a Automaton, scope: GraphScope<'a>) -> Self {
        Self {
            moves: &a.previous,
            labels: &a.reversed,
            scope,
        }
    }
}

impl Side {
    pub fn new(states: usize, ctx: &QueryContext<'_>) -> Self {
        Self {
            seen: (0..states).map(|_| VisitedSet::new(ctx)).collect(),
            done: vec![0; states],
            front: vec![],
            keys: vec![],
            scratch: vec![],
        }
    }

    pub fn clear(&mut self) -> Result<()> {
        self.done.fill(0);
        self.seen.iter_mut().try_for_each(VisitedSet::clear)
    }

    /// Adds the node at which the search begins, in a state.
    pub fn begin(&mut self, state: usize, node: u32) -> Result<()> {
        if let Some(seen) = self.seen.get_mut(state) {
            seen.reserve(1)?;
            seen.insert(node);
        }
        Ok(())
    }

    /// Number of visited nodes that were not expanded yet.
    pub fn waiting(&self) -> usize {
        self.seen
            .iter()
            .zip(&self.done)
            .map(|(s, d)| s.order.len() - d)
            .sum()
    }

    /// Searches until no new nodes are found.
    pub fn exhaust(&mut self, ctx: &QueryContext<'_>, graph: PathGraph<'_>) -> Result<()> {
        while self.waiting() > 0 {
            self.level(ctx, graph, None)?;
        }
        Ok(())
    }

    /// Expands all nodes that are waiting. Returns true as soon as it visits a node that the `other` side has visited
    /// in the same state.
    pub fn level(
        &mut self,
        ctx: &QueryContext<'_>,
        graph: PathGraph<'_>,
        other: Option<&Self>,
    ) -> Result<bool> {
        for state in 0..self.seen.len() {
            let to = self.seen[state].order.len();
            let from = std::mem::replace(&mut self.done[state], to);
            for part in (from..to).step_by(PART) {
                ctx.check()?;
                let mut front = std::mem::take(&mut self.front);
                front.clear();
                let end = to.min(part + PART);
                front.extend_from_slice(&self.seen[state].order[part..end]);
                let mut met = false;
                for m in &graph.moves[state] {
                    if let Some(label) = graph.labels.get(m.label) {
                        let there = other.and_then(|o| o.seen.get(m.state));
                        met = self.take(ctx, &front, label, m.state, graph.scope, there)?;
                    }
                    if met {
                        break;
                    }
                }
                self.front = front;
                if met {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Follows all edges of a label from some nodes to the state `to`. Returns true as in [`Self::level`].
    fn take(
        &mut self,
        ctx: &QueryContext<'_>,
        front: &[u32],
        label: &MoveLabel,
        to: usize,
        scope: GraphScope<'_>,
        other: Option<&VisitedSet>,
    ) -> Result<bool> {
        for &(p, way) in &label.edges {
            let view = ctx.snapshot.edges(p, way.direction());
            if let Some(segment) = view.plain(scope) {
                if self.plain(front, segment, to, other)? {
                    return Ok(true);
                }
                continue;
            }
            view.fetch(front.iter().map(|&v| (v, scope)));
            for &v in front {
                let list = view.read(v, scope, &mut self.scratch);
                if add(&mut self.seen[to], list, other)? {
                    return Ok(true);
                }
            }
        }
        for (not, way) in &label.others {
            let known = ctx.snapshot.predicates();
            let mut views = RowPredicates::new(ctx.snapshot, way.direction());
            if let Some(sharded) = ctx.snapshot.as_sharded() {
                let mut wanted = Vec::new();
                for &v in front {
                    let known = known.of_vertex(v, way.direction());
                    let all = known.iter().map(|&p| PredicateId(p));
                    let all = all.filter(|p| !not.contains(p));
                    wanted.extend(all.map(|p| (p, way.direction(), v, scope)));
                }
                sharded.fetch(wanted.into_iter());
            }
            for &v in front {
                for &p in known.of_vertex(v, way.direction()).iter() {
                    let p = PredicateId(p);
                    if not.contains(&p) {
                        continue;
                    }
                    let view = views.get(p).edges;
                    let list = view.read(v, scope, &mut self.scratch);
                    if add(&mut self.seen[to], list, other)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn plain(
        &mut self,
        front: &[u32],
        segment: Segment<'_>,
        to: usize,
        other: Option<&VisitedSet>,
    ) -> Result<bool> {
        if matches!(segment.finder, KeyFinder::Empty) {
            return Ok(false);
        }
        segment.finder.find_many(front, &mut self.keys);
        for (i, &k) in self.keys.iter().enumerate() {
            if let Some(&ahead) = self.keys.get(i + AHEAD) {
                segment.prefetch_list(ahead);
            }
            if add(&mut self.seen[to], segment.list(k), other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds nodes. Returns true as soon as one of them is new in `seen` and is in `other`.
#[inline]
fn add(seen: &mut VisitedSet, nodes: &[u32], other: Option<&VisitedSet>) -> Result<bool> {
    if nodes.is_empty() {
        return Ok(false);
    }
    seen.reserve(nodes.len())?;
    match other {
        None => {
            for &n in nodes {
                seen.insert(n);
            }
            Ok(false)
        }
        Some(other) => Ok(nodes.iter().any(|&n| seen.insert(n) && other.contains(n))),
    }
}

/// Adds every node with an edge that a move from the start state may follow.
pub(super) fn starts(
    ctx: &QueryContext<'_>,
    a: &Automaton,
    scope: GraphScope<'_>,
    out: &mut VisitedSet,
) -> Result<()> {
    for m in &a.next[a.start] {
        let Some(label) = a.labels.get(m.label) else {
            continue;
        };
        for &(p, way) in &label.edges {
            keys(ctx, p, way, scope, out)?;
        }
        for (not, way) in &label.others {
            for p in (0..ctx.snapshot.predicate_count()).map(PredicateId) {
                if !not.contains(&p) {
                    keys(ctx, p, *way, scope, out)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns true if the vertex has an edge in the graphs.
pub(super) fn is_node(
    ctx: &QueryContext<'_>,
    v: u32,
    scope: GraphScope<'_>,
    scratch: &mut Vec<u32>,
) -> bool {
    [EdgeDirection::Out, EdgeDirection::In]
        .into_iter()
        .any(|way| {
            let direction = way.direction();
            let predicates = ctx.snapshot.predicates_of(v, direction);
            predicates.iter().any(|&p| {
                let view = ctx.snapshot.edges(PredicateId(p), direction);
                !view.read(v, scope, scratch).is_empty()
            })
        })
}

/// Adds every node that is an end of an edge in the graphs.
pub(super) fn nodes(
    ctx: &QueryContext<'_>,
    scope: GraphScope<'_>,
    out: &mut VisitedSet,
) -> Result<()> {
    for p in (0..ctx.snapshot.predicate_count()).map(PredicateId) {
        for way in [EdgeDirection::Out, EdgeDirection::In] {
            keys(ctx, p, way, scope, out)?;
        }
    }
    Ok(())
}

fn keys(
    ctx: &QueryContext<'_>,
    p: PredicateId,
    way: EdgeDirection,
    scope: GraphScope<'_>,
    out: &mut VisitedSet,
) -> Result<()> {
    let view = ctx.snapshot.edges(p, way.direction());
    if let Some(segment) = view.plain(scope) {
        let mut part = Vec::with_capacity(PART.min(segment.key_count as usize));
        for from in (0..segment.key_count).step_by(PART) {
            ctx.check()?;
            part.clear();
            segment.keys_into(from, from.saturating_add(PART as u32), &mut part);
            add(out, &part, None)?;
        }
        return Ok(());
    }
    let (mut all, mut some) = (vec![], vec![]);
    view.candidate_keys(scope, &mut all);
    for part in all.chunks(PART) {
        ctx.check()?;
        some.clear();
        some.extend_from_slice(part);
        view.retain_with_edges(scope, &mut some);
        add(out, &some, None)?;
    }
    Ok(())
}
