//! Facts about one edge of a query (a triple pattern), read before the planner tries orders: counts of its segments,
//! neighbour lists of constants, and a few sampled lists.

use crate::parameters::is_parameter;
use crate::resolve::{Edge, ResolvedTerm};
use crate::{IdFilter, Slot, intervals, sample};
use jindou_graph::Edges;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, Segment};
use jindou_model::{DEFAULT_GRAPH, Direction, FIRST_TAIL_ID};

/// Segments up to this size are assumed to stay in a core's cache.
const CACHED_BYTES: f64 = 2e6;

/// One end of an edge: the vertices that can be there, and their neighbours along the edge.
pub(crate) struct EdgeSide {
    /// Number of distinct vertices at this end, in the edge's graphs.
    pub keys: f64,
    /// Number of these that are also in the set `within` of this end's slot, and whether it is exact; `None` if
    /// unknown.
    pub overlap: Option<(f64, bool)>,
    /// Length of the longest neighbour list.
    pub longest: f64,
    /// Number of neighbours of this end if it is a constant, otherwise 0.
    pub list: f64,
    /// Mean number of neighbours of the vertices at this end that are candidates of its slot; `None` if it was not
    /// sampled.
    pub mean: Option<f64>,
    /// Share of the neighbours that are in the set `within` of the slot at the other end; `None` if unknown.
    pub inside: Option<f64>,
}

/// Facts about an edge with a known predicate.
pub(crate) struct EdgeInfo {
    pub edges: f64,
    /// By direction: `[Out]` describes the subject's end, `[In]` the object's.
    pub sides: [EdgeSide; 2],
    /// True if the segments are small enough to stay in a core's cache.
    pub cached: bool,
}

impl EdgeInfo {
    pub(crate) fn new(
        edge: &Edge,
        views: [Edges<'_>; 2],
        scope: GraphScope<'_>,
        longest: [u32; 2],
        graphs: f64,
        within: &[Option<IdFilter>],
        ids: &[f64],
    ) -> Self {
        let named_share = match scope {
            GraphScope::Default => 0.0,
            GraphScope::Named(_) => 1.0 / graphs,
            GraphScope::AnyNamed | GraphScope::Union => 1.0,
            GraphScope::Set(gs) => {
                gs.iter().filter(|g| **g != DEFAULT_GRAPH).count() as f64 / graphs
            }
        };
        let reader = EdgeReader {
            edge,
            views,
            scope,
            named_share,
            within,
            ids,
        };
        let view = &reader.views[0];
        let edges = reader.seen(view.default_edges() as f64, view.named_edges() as f64);
        let sides = [
            reader.side(Direction::Out, edges, longest[0]),
            reader.side(Direction::In, edges, longest[1]),
        ];
        let bytes = 4.0 * (edges + sides[0].keys.max(sides[1].keys));
        Self {
            edges,
            sides,
            cached: bytes < CACHED_BYTES,
        }
    }
}

/// Reads the facts about an edge from its segments.
struct EdgeReader<'a> {
    edge: &'a Edge,
    views: [Edges<'a>; 2],
    scope: GraphScope<'a>,
    /// Share of all edges in named graphs that are in graphs of the scope, assuming that all graphs are equally large.
    named_share: f64,
    /// Sets of ids that each slot is restricted to.
    within: &'a [Option<IdFilter>],
    /// Number of candidates of each slot, including vertices that updates added.
    ids: &'a [f64],
}

impl EdgeReader<'_> {
    /// Estimated number of edges or keys in the edge's graphs, given the numbers for the default graph and for all
    /// named graphs together.
    fn seen(&self, default: f64, named: f64) -> f64 {
        let default = match self.scope.sees(DEFAULT_GRAPH) {
            true => default,
            false => 0.0,
        };
        default + named * self.named_share
    }

    fn within(&self, slot: Slot) -> Option<&IdFilter> {
        self.within.get(usize::from(slot)).and_then(Option::as_ref)
    }

    fn intervals(&self, end: ResolvedTerm) -> Option<&[[u32; 2]]> {
        match end {
            ResolvedTerm::Slot(s) => {
                let within = self.within(s)?;
                Some(intervals::without_open_end(&within.intervals))
            }
            ResolvedTerm::Const(_) => None,
        }
    }

    /// Facts about one end of the edge; `edges` is the number of its edges in its graphs.
    fn side(&self, direction: Direction, edges: f64, longest: u32) -> EdgeSide {
        let v = &self.views[direction as usize];
        // A patched segment is sampled without its patch.
        let segment = v
            .plain(self.scope)
            .or_else(|| v.plain_but_dirty(self.scope).map(|x| x.0));
        let more_keys = v.patch().map_or(0.0, |p| f64::from(p.more_keys()));
        let (node, far) = match direction {
            Direction::Out => (self.edge.subject, self.edge.object),
            Direction::In => (self.edge.object, self.edge.subject),
        };
        let list = match node {
            // The value of a parameter is unknown: a list of mean length is assumed.
            ResolvedTerm::Const(c) if is_parameter(c) => {
                let keys: f64 = v.key_counts().map(f64::from).iter().sum();
                edges / keys.max(1.0)
            }
            ResolvedTerm::Const(c) => {
                self.seen(v.default_degree(c) as f64, v.named_degree(c) as f64)
            }
            ResolvedTerm::Slot(_) => 0.0,
        };
        let overlap = match (node, &segment) {
            (ResolvedTerm::Slot(s), Some(segment)) => self.overlap(s, v, segment, more_keys),
            _ => None,
        };
        let far = self.intervals(far);
        let (mean, inside) = match (&segment, node) {
            (Some(segment), ResolvedTerm::Const(c)) if is_parameter(c) => {
                (None, sample::sample(segment, None, far).1)
            }
            (Some(segment), ResolvedTerm::Const(c)) => {
                let list = segment.neighbours_of(c);
                (
                    None,
                    far.map(|w| sample::inside(list, w) / (list.len() as f64).max(1.0)),
                )
            }
            (Some(segment), ResolvedTerm::Slot(_)) => {
                let narrowed = overlap.is_some_and(|o| o.0 < 0.9 * f64::from(segment.key_count));
                sample::sample(segment, self.intervals(node).filter(|_| narrowed), far)
            }
            (None, _) => (None, None),
        };
        let [default_keys, named_keys] = v.key_counts().map(f64::from);
        EdgeSide {
            mean,
            inside,
            keys: (self.seen(default_keys, named_keys) + more_keys).max(1.0),
            overlap,
            longest: f64::from(longest),
            list,
        }
    }

    /// Number of keys of a segment and its patch that are candidates of a slot, and whether it is exact; `None` if the
    /// slot has no restriction.
    fn overlap(
        &self,
        slot: Slot,
        view: &Edges<'_>,
        segment: &Segment<'_>,
        more_keys: f64,
    ) -> Option<(f64, bool)> {
        let w = self.within(slot)?;
        let (n, exact) = intervals::overlap(segment, &w.intervals);
        let exact = exact && w.is_exact();
        let share = n / f64::from(segment.key_count.max(1));
        // All vertices that updates added may be keys.
        let ids = self.ids.get(usize::from(slot)).copied().unwrap_or(0.0);
        let beyond = (ids - intervals::count(&w.intervals)).max(0.0);
        let n = n + beyond.min(f64::from(segment.key_count));
        // Keys of the base say nothing about vertices beyond the base.
        let beyond = intervals::from(&w.intervals, FIRST_TAIL_ID);
        let more = if segment.key_count == 0 {
            more_keys.min(intervals::count(&w.intervals))
        } else {
            (more_keys * share).max(more_keys.min(beyond))
        };
        Some((n + more, exact && view.plain(self.scope).is_some()))
    }
}

/// Number of edges at a constant over all predicates. If it has many predicates, only some are counted, and the sum is
/// scaled up.
pub(crate) fn any_list(snapshot: &dyn Graph, c: u32, d: Direction) -> f64 {
    const COUNTED: usize = 64;
    if is_parameter(c) {
        return snapshot.quads() as f64 / f64::from(snapshot.vertices().max(1));
    }
    let predicates = snapshot.predicates_of(c, d);
    let counted = predicates.iter().take(COUNTED);
    if let Some(sharded) = snapshot.as_sharded() {
        let key = |&p: &u32| (jindou_model::PredicateId(p), d, c);
        sharded.fetch_degrees(counted.clone().map(key));
    }
    let sum: u64 = counted
        .map(|&p| {
            let v = snapshot.edges(jindou_model::PredicateId(p), d);
            v.default_degree(c) + v.named_degree(c)
        })
        .sum();
    sum as f64 * (predicates.len() as f64 / COUNTED as f64).max(1.0)
}
