//! Estimates of the cost of a search move, and of the number of rows after it.
//!
//! Costs are in nanoseconds and assume typical hardware: a random read misses the cache (some 15–20 ns if a batch
//! prefetches), a sequential read does not, and small segments stay in the cache.

mod moves;
mod values;

use crate::edge::{EdgeInfo, any_list};
use crate::parameters::is_parameter;
use crate::resolve::{Edge, PatternGraph, Resolved, ResolvedPredicate, ResolvedTerm, SlotStar};
use crate::{Condition, Slot, condition};
use jindou_graph::Graph;
use jindou_graph::shard::Sharded;
use jindou_model::Direction;
use moves::{Moved, StateFacts};
pub(crate) use moves::{
    SearchMove, SearchState, StartOrigin, SubStep, SubStepKind, bits, edges_of,
};
use values::SampleValues;

/// Costs of looking up a key and its list: if the keys ascend, if the segment is small, and otherwise.
const SEQUENTIAL: f64 = 4.0;
const CACHED: f64 = 5.0;
const RANDOM: f64 = 20.0;
/// Looking up the same key as in the previous row.
const REPEATED: f64 = 2.0;
/// Costs of copying one value into a batch, of testing one id against intervals, and of one step of a search in a list.
const COPY: f64 = 1.0;
const TEST: f64 = 1.0;
const SEARCH: f64 = 2.0;
/// Length from which a search in a neighbour list misses the cache.
const LONG_LIST: f64 = 1e5;
/// One lookup of a vertex's list of predicates.
const PREDICATES_OF: f64 = 40.0;

/// Cost model of one query.
pub(crate) struct CostModel<'a> {
    pub edges: &'a [Edge],
    pub info: Vec<Option<EdgeInfo>>,
    pub stars: Vec<Option<SlotStar>>,
    pub resolved: &'a Resolved,
    within: Vec<f64>,
    /// Slots of each edge, as bit masks.
    pub masks: Vec<u128>,
    /// For each condition: its slots as a bit mask, the share of rows that pass, and the cost per row.
    conditions: Vec<(u128, f64, f64)>,
    graphs: f64,
    quads: f64,
    vertices: f64,
    predicates: f64,
    /// For patterns with a predicate variable: the number of edges at a constant subject and object (`[Out, In]`).
    any_lists: Vec<[f64; 2]>,
}

/// Fetches the lengths of the neighbour lists of all constants of known predicates from the shards at once.
fn fetch_degrees(edges: &[Edge], sharded: &Sharded) {
    let ends = |e: &Edge| [(e.subject, Direction::Out), (e.object, Direction::In)];
    let of = edges.iter().flat_map(|e| {
        ends(e)
            .into_iter()
            .filter_map(move |(node, d)| match (e.predicate, node) {
                (ResolvedPredicate::Known(p), ResolvedTerm::Const(c)) if !is_parameter(c) => {
                    Some((p, d, c))
                }
                _ => None,
            })
    });
    sharded.fetch_degrees(of);
}

impl<'a> CostModel<'a> {
    pub(crate) fn new(
        resolved: &'a Resolved,
        snapshot: &dyn Graph,
        stars: Vec<Option<SlotStar>>,
    ) -> Self {
        let edges = &resolved.edges;
        let named = resolved.named.as_deref();
        let graphs = if edges
            .iter()
            .any(|e| e.graph != PatternGraph::Fixed(crate::GraphRef::Default))
        {
            snapshot.named_graphs().len().max(1) as f64
        } else {
            1.0
        };
        let within: Vec<f64> = resolved
            .within
            .iter()
            .map(|w| w.as_ref().map_or(f64::INFINITY, |w| w.count(snapshot)))
            .collect();
        if let Some(sharded) = snapshot.as_sharded() {
            fetch_degrees(edges, sharded);
        }
        let info = edges
            .iter()
            .map(|e| match e.predicate {
                ResolvedPredicate::Known(p) => {
                    let read = e.graph_ref(named);
                    let scope = read.scope()?;
                    let views = [
                        snapshot.edges(p, Direction::Out),
                        snapshot.edges(p, Direction::In),
                    ];
                    let counts = snapshot.predicate_statistics(p);
                    let longest = [counts.max_out, counts.max_in];
                    Some(EdgeInfo::new(
                        e,
                        views,
                        scope,
                        longest,
                        graphs,
                        &resolved.within,
                        &within,
                    ))
                }
                ResolvedPredicate::Slot(_) => None,
            })
            .collect();
        let any_lists = edges
            .iter()
            .map(|e| match e.predicate {
                ResolvedPredicate::Slot(_) => {
                    [(e.subject, Direction::Out), (e.object, Direction::In)].map(|(n, d)| match n {
                        ResolvedTerm::Const(c) => any_list(snapshot, c, d),
                        ResolvedTerm::Slot(_) => 0.0,
                    })
                }
                ResolvedPredicate::Known(_) => [0.0; 2],
            })
            .collect();
        let mut values = SampleValues::new(resolved, snapshot);
        let conditions = resolved
            .conditions
            .iter()
            .map(|c| {
                let mut mask = 0u128;
                condition::for_each_slot(c, &mut |s| mask |= 1 << s);
                let cost = match c {
                    Condition::General(g) => 5.0 + 95.0 * g.costly_share(),
                    _ => 5.0,
                };
                let share = condition::selectivity_by(c, &mut |slot, q| values.share(slot, q));
                (mask, share, cost)
            })
            .collect();
        Self {
            edges,
            info,
            stars,
            resolved,
            within,
            masks: edges.iter().map(Edge::slots).collect(),
            conditions,
            graphs,
            quads: (snapshot.quads() as f64).max(1.0),
            vertices: f64::from(snapshot.vertices().max(1)),
            predicates: f64::from(snapshot.predicate_count().max(1)),
            any_lists,
        }
    }

    /// Number of ids in a slot's intervals; infinite if the slot is not restricted.
    pub(crate) fn within(&self, slot: Slot) -> f64 {
        self.within
            .get(usize::from(slot))
            .copied()
            .unwrap_or(f64::INFINITY)
    }

    pub(crate) fn is_known(node: ResolvedTerm, bound: u128) -> bool {
        match node {
            ResolvedTerm::Const(_) => true,
            ResolvedTerm::Slot(s) => bound >> s & 1 == 1,
        }
    }

    /// True if the edge's neighbour lists can be read directly, since its predicate and its graph are known.
    pub(crate) fn is_plain(&self, e: usize, bound: u128) -> bool {
        matches!(self.edges[e].predicate, ResolvedPredicate::Known(_))
            && match self.edges[e].graph {
                PatternGraph::Fixed(_) => true,
                PatternGraph::Slot(g) => bound >> g & 1 == 1,
            }
    }

    /// The known end from which edge `e` leads to `slot`, and the direction from there; `None` if there is no such end.
    pub(crate) fn anchor(
        &self,
        e: usize,
        slot: Slot,
        bound: u128,
    ) -> Option<(ResolvedTerm, Direction)> {
        let edge = &self.edges[e];
        let to = ResolvedTerm::Slot(slot);
        if edge.subject == edge.object {
            None
        } else if edge.object == to && Self::is_known(edge.subject, bound) {
            Some((edge.subject, Direction::Out))
        } else if edge.subject == to && Self::is_known(edge.object, bound) {
            Some((edge.object, Direction::In))
        } else {
            None
        }
    }

    /// The edges of the slot's star that every value of the slot has in a state, as a bit mask over the star's edges.
    fn held(&self, slot: Slot, facts: StateFacts) -> u32 {
        let Some(s) = self.stars.get(usize::from(slot)).and_then(Option::as_ref) else {
            return 0;
        };
        let mut mask = s.always;
        for (bit, &e) in s.edges.iter().enumerate() {
            if self.masks[e] & !facts.bound == 0 || facts.keys == Some((slot, e)) {
                mask |= 1 << bit;
            }
        }
        mask
    }

    /// Upper estimate of the number of distinct values of a bound slot.
    fn domain(&self, slot: Slot, facts: StateFacts) -> f64 {
        let mut domain = self.within(slot);
        for (e, edge) in self.edges.iter().enumerate() {
            if self.masks[e] & !facts.bound != 0 && facts.keys != Some((slot, e)) {
                continue;
            }
            let Some(info) = &self.info[e] else { continue };
            for (node, side) in [(edge.subject, 0), (edge.object, 1)] {
                if node == ResolvedTerm::Slot(slot) {
                    let other = &info.sides[1 - side];
                    let other_const = matches!(
                        if side == 0 { edge.object } else { edge.subject },
                        ResolvedTerm::Const(_)
                    );
                    domain = domain.min(if other_const {
                        other.list
                    } else {
                        info.sides[side].keys
                    });
                }
            }
        }
        domain
    }

    /// Share of a bound anchor's values that are keys of the edge, and the mean length of the neighbour lists of those.
    fn fan_out(
        &self,
        e: usize,
        anchor: ResolvedTerm,
        direction: Direction,
        facts: StateFacts,
    ) -> (f64, f64) {
        let Some(info) = &self.info[e] else {
            return (1.0, 1.0);
        };
        let side = &info.sides[direction as usize];
        let mut share = 1.0;
        let mut len;
        match anchor {
            ResolvedTerm::Const(_) => len = side.list,
            ResolvedTerm::Slot(s) => {
                len = side.mean.unwrap_or(info.edges / side.keys.max(1.0));
                let held = self.held(s, facts);
                let star = self.stars.get(usize::from(s)).and_then(Option::as_ref);
                let bit = star.and_then(|x| x.edges.iter().position(|&i| i == e));
                if let (Some(x), Some(bit), Direction::Out) = (star, bit, direction)
                    && (held != 0)
                {
                    let before = x.star.subjects(held).max(1.0);
                    share = (x.star.subjects(held | 1 << bit) / before).min(1.0);
                    len = x.star.edges(bit as u32, held);
                } else if let Some((overlap, _)) = side.overlap
                    && self.within(s).is_finite()
                    && self.domain(s, facts) >= self.within(s)
                {
                    share = (overlap / self.within(s).max(1.0)).min(1.0);
                } else {
                    // The slot is assumed to take its values from the most selective source in the state.
                    let domain = self.domain(s, facts);
                    if domain.is_finite() {
                        let keys = side.overlap.map_or(side.keys, |o| o.0);
                        share = (keys / domain.max(1.0)).min(1.0);
                    }
                }
                len = len.min(side.longest.max(1.0));
            }
        }
        if let PatternGraph::Slot(g) = self.edges[e].graph
            && facts.bound >> g & 1 == 1
        {
            // The list is spread over all graphs, of which one counts; but the anchor often comes from the same graph.
            len = (len / self.graphs).max(len.min(1.0) * 0.5);
        }
        (share, len)
    }

    /// Cost of finding the neighbour list of one anchor. `repeated`: the previous row often has the same anchor.
    fn lookup(&self, e: usize, anchor: ResolvedTerm, state: &SearchState, repeated: bool) -> f64 {
        match anchor {
            ResolvedTerm::Const(_) => 0.5,
            ResolvedTerm::Slot(_) if repeated => REPEATED,
            ResolvedTerm::Slot(s) if state.ascending == Some(s) => SEQUENTIAL,
            ResolvedTerm::Slot(_) if self.info[e].as_ref().is_some_and(|i| i.cached) => CACHED,
            ResolvedTerm::Slot(_) => RANDOM,
        }
    }

    /// The state after a move. The move's sub-steps are added to `subs`.
    pub(crate) fn apply(
        &self,
        state: &SearchState,
        m: &SearchMove,
        mut subs: Option<&mut Vec<SubStep>>,
    ) -> SearchState {
        let Moved {
            mut next,
            fan,
            used,
            tested,
        } = self.moved(state, m);
        let (mut rows, mut cost) = (state.rows, state.cost);
        let mut record = |what: SubStepKind, next: &SearchState| {
            if let Some(subs) = subs.as_deref_mut() {
                subs.push(SubStep {
                    what,
                    rows: next.rows,
                    cost: next.cost - cost,
                });
            }
            rows = next.rows;
            cost = next.cost;
        };
        record(SubStepKind::Main, &next);
        let fresh = next.bound & !state.bound;
        for slot in bits(fresh & !tested) {
            if self.within(slot).is_finite() {
                next.cost += next.rows * TEST;
                next.rows *= (self.within(slot) / self.vertices).min(1.0);
                record(SubStepKind::Restrict(slot), &next);
            }
        }
        for e in 0..self.edges.len() {
            let mask = self.masks[e];
            let due = mask & !next.bound == 0 && mask & fresh != 0;
            if !due || used >> e & 1 == 1 {
                continue;
            }
            let what = self.check(e, state, &mut next, fresh, fan);
            record(what, &next);
        }
        for &(mask, share, cost) in &self.conditions {
            if mask & !next.bound == 0 && mask & fresh != 0 {
                next.cost += next.rows * cost;
                next.rows *= share;
            }
        }
        next
    }

    /// The state after the move itself, before the checks of edges and conditions whose slots it has bound.
    fn moved(&self, state: &SearchState, m: &SearchMove) -> Moved {
        let mut next = state.clone();
        let fan;
        let mut used = 0u128;
        let mut tested = 0u128;
        match m {
            SearchMove::Given(slots) => {
                fan = 1.0;
                next.bound |= slots;
            }
            SearchMove::Start(slot, source) => {
                let (values, cost) = self.start(*slot, *source);
                fan = values;
                next.cost += cost + state.rows * values * COPY;
                next.rows = state.rows * values;
                next.bound |= 1 << slot;
                tested |= 1 << slot;
                if state.bound == 0 {
                    next.ascending = Some(*slot);
                }
                if let StartOrigin::Keys(e, _) = source {
                    next.keys = Some((*slot, *e));
                }
            }
            SearchMove::Bind(slot, lists) => {
                (fan, next.cost) = self.bind(state, *slot, *lists);
                next.cost += state.cost;
                next.rows = state.rows * fan;
                next.bound |= 1 << slot;
                used = *lists;
                tested |= 1 << slot;
                if state.bound == 0 {
                    next.ascending = Some(*slot);
                }
            }
            SearchMove::Graph(e) => return self.graph_bound(next, *e),
            SearchMove::Any(e) => {
                let (f, cost, _) = self.any(*e, state);
                fan = f;
                next.cost += state.rows * cost;
                next.rows *= f;
                next.bound |= self.masks[*e];
                used = 1 << e;
            }
            SearchMove::Scan(e) => {
                let bound_predicate = matches!(self.edges[*e].predicate, ResolvedPredicate::Slot(p) if state.bound >> p & 1 == 1);
                fan = if bound_predicate {
                    self.quads / self.predicates
                } else {
                    self.quads
                };
                next.cost += state.rows * fan * 2.0 * COPY;
                next.rows *= fan;
                next.bound |= self.masks[*e];
                used = 1 << e;
            }
        }
        Moved {
            next,
            fan,
            used,
            tested,
        }
    }

    /// The state after [`SearchMove::Graph`] for edge `e`.
    fn graph_bound(&self, state: SearchState, e: usize) -> Moved {
        let edge = &self.edges[e];
        let from_subject = Self::is_known(edge.subject, state.bound);
        let (anchor, far, direction) = if from_subject {
            (edge.subject, edge.object, Direction::Out)
        } else {
            (edge.object, edge.subject, Direction::In)
        };
        let (share, len) = self.fan_out(e, anchor, direction, state.facts(state.bound));
        let both = from_subject && Self::is_known(edge.object, state.bound);
        let mut fan = if both { share * 0.5 } else { share * len };
        let lookup = self.lookup(e, anchor, &state, false);
        let mut next = state;
        next.cost += next.rows * (lookup + share * len * 2.0 * COPY);
        next.rows *= fan;
        next.bound |= self.masks[e];
        let mut tested = 0u128;
        if !both && let ResolvedTerm::Slot(to) = far {
            tested |= 1 << to;
            fan *= self.inside(e, to);
            next.rows *= self.inside(e, to);
        }
        Moved {
            next,
            fan,
            used: 1 << e,
            tested,
        }
    }

    /// Number of values that a start yields, and its cost.
    fn start(&self, slot: Slot, source: StartOrigin) -> (f64, f64) {
        match source {
            StartOrigin::IdFilter => (self.within(slot), 0.5 * self.within(slot)),
            StartOrigin::Keys(e, d) => {
                let Some(info) = &self.info[e] else {
                    return (self.vertices, self.vertices);
                };
                let side = &info.sides[d as usize];
                let values = side.overlap.map_or(side.keys, |o| o.0);
                (
                    values.min(self.within(slot)),
                    side.keys.min(4.0 * values) * 1.0,
                )
            }
        }
    }

    /// Of the values that the edge leads to at `slot`'s end, the share that is in the slot's intervals.
    fn inside(&self, e: usize, slot: Slot) -> f64 {
        if self.within(slot).is_infinite() {
            return 1.0;
        }
        let Some(info) = &self.info[e] else {
            return 0.5;
        };
        let at = usize::from(self.edges[e].object == ResolvedTerm::Slot(slot));
        let side = &info.sides[at];
        info.sides[1 - at].inside.unwrap_or_else(|| {
            side.overlap
                .map_or(0.5, |o| (o.0 / side.keys.max(1.0)).min(1.0))
        })
    }

    /// Number of distinct vertices that the edge has at one end and that are in the intervals of that end's slot.
    fn candidates(&self, e: usize, end: Direction) -> f64 {
        self.info[e].as_ref().map_or(1.0, |i| {
            let side = &i.sides[end as usize];
            side.overlap.map_or(side.keys, |o| o.0).max(1.0)
        })
    }

    /// Rows per input row, and total cost, of binding a slot by intersecting the neighbour lists of these edges.
    fn bind(&self, state: &SearchState, slot: Slot, lists: u128) -> (f64, f64) {
        let mut per_row = 0.0;
        let mut each: Vec<(f64, f64, f64, f64)> = vec![];
        for e in edges_of(lists) {
            let Some((anchor, direction)) = self.anchor(e, slot, state.bound) else {
                continue;
            };
            let (share, len) = self.fan_out(e, anchor, direction, state.facts(state.bound));
            per_row += self.lookup(e, anchor, state, false);
            each.push((
                share,
                len,
                self.candidates(e, direction.reverse()),
                self.inside(e, slot),
            ));
        }
        each.sort_by(|a, b| a.1.total_cmp(&b.1));
        let Some(&(share, len, keys, inside)) = each.first() else {
            return (0.0, 0.0);
        };
        let mut fan = share * len * inside;
        if each.len() == 1 {
            per_row += share * len * (COPY + if inside < 1.0 { TEST } else { 0.0 });
        } else {
            // The engine restricts each list to the slot's intervals before it intersects them.
            let clipped: Vec<f64> = each.iter().map(|x| x.1 * x.3.max(0.01)).collect();
            let shortest = clipped.iter().copied().fold(f64::INFINITY, f64::min);
            for (x, len) in each.iter().zip(&clipped).skip(1) {
                fan *= x.0 * (x.1 * x.3 / x.2.max(keys).max(1.0)).min(1.0);
                let cold = if *len > LONG_LIST { 2.0 * RANDOM } else { 0.0 };
                let gallop = shortest * (cold + SEARCH * (2.0 + len / shortest.max(1.0)).log2());
                per_row += gallop.min((shortest + len) * COPY);
            }
            per_row += 3.0;
        }
        (fan, state.rows * (per_row + fan * COPY))
    }

    /// Adds the cost and the selectivity of checking an edge both of whose ends are bound now, from the cheaper end.
    fn check(
        &self,
        e: usize,
        before: &SearchState,
        next: &mut SearchState,
        fresh: u128,
        fan: f64,
    ) -> SubStepKind {
        let edge = &self.edges[e];
        let ResolvedPredicate::Known(_) = edge.predicate else {
            let state = SearchState {
                bound: before.bound | fresh,
                ..next.clone()
            };
            let (share, cost, direction) = self.any(e, &state);
            next.cost += next.rows * cost;
            next.rows *= share.min(1.0);
            return SubStepKind::CheckAny(e, direction);
        };
        // Cost, direction and selectivity of the cheaper of both directions. The selectivity is estimated from the
        // slots that are bound without this edge.
        let mut best: Option<(f64, Direction, f64)> = None;
        for (anchor, other, direction) in [
            (edge.subject, edge.object, Direction::Out),
            (edge.object, edge.subject, Direction::In),
        ] {
            let repeated =
                fan > 2.0 && matches!(anchor, ResolvedTerm::Slot(s) if fresh >> s & 1 == 0);
            let (share, len) = self.fan_out(e, anchor, direction, next.facts(before.bound));
            let cold = if repeated || len < 64.0 { 1.0 } else { 4.0 };
            let cost = self.lookup(e, anchor, next, repeated) + SEARCH * cold * (1.0 + len).log2();
            let far = self.candidates(e, direction.reverse());
            let mut inside = 1.0;
            let domain = match other {
                ResolvedTerm::Slot(s) => {
                    inside = self.inside(e, s);
                    let d = self.domain(s, next.facts(before.bound | (fresh & !(1 << s))));
                    if d.is_finite() { far.max(d) } else { far }
                }
                ResolvedTerm::Const(_) => far,
            };
            let selectivity = (share * len * inside / domain.max(1.0)).min(1.0);
            if best.is_none_or(|b| cost < b.0) {
                best = Some((cost, direction, selectivity));
            }
        }
        let (cost, direction, selectivity) = best.unwrap_or((RANDOM, Direction::Out, 0.5));
        next.cost += next.rows * cost;
        next.rows *= selectivity;
        SubStepKind::Check(e, direction)
    }

    /// The direction in which [`SearchMove::Any`] follows the pattern.
    pub(crate) fn any_direction(&self, e: usize, state: &SearchState) -> Direction {
        self.any(e, state).2
    }

    /// For a pattern with a predicate variable: rows per input row, cost per input row, and the direction to follow it.
    fn any(&self, e: usize, state: &SearchState) -> (f64, f64, Direction) {
        let edge = &self.edges[e];
        let predicate_known =
            matches!(edge.predicate, ResolvedPredicate::Slot(p) if state.bound >> p & 1 == 1);
        let mut best: Option<(f64, Direction)> = None;
        for (node, d) in [(edge.subject, Direction::Out), (edge.object, Direction::In)] {
            let len = match node {
                ResolvedTerm::Const(_) => self.any_lists[e][d as usize],
                ResolvedTerm::Slot(_) if Self::is_known(node, state.bound) => {
                    // The number of edges varies more among objects than among subjects, and large ones dominate.
                    let mean = (self.quads / self.vertices).max(1.0);
                    if d == Direction::Out {
                        2.0 * mean
                    } else {
                        4.0 * mean
                    }
                }
                ResolvedTerm::Slot(_) => continue,
            };
            if best.is_none_or(|b| len < b.0) {
                best = Some((len, d));
            }
        }
        let (len, d) = best.unwrap_or((self.quads, Direction::Out));
        let len = if predicate_known {
            len / self.predicates.sqrt()
        } else {
            len
        };
        let both =
            Self::is_known(edge.subject, state.bound) && Self::is_known(edge.object, state.bound);
        let rows = if both {
            (len / self.vertices.sqrt()).min(1.0)
        } else {
            len
        };
        let work = if both {
            len.min(64.0) * RANDOM
        } else {
            len.min(32.0) * RANDOM + len * COPY
        };
        (rows, PREDICATES_OF + work, d)
    }
}
