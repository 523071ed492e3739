//! How often a vertex occurs, by which search results are ordered. The count is the same for an unsharded store and at
//! the vertex's shard.

use jindou_graph::segment::GraphScope;
use jindou_graph::shard::LocalKey;
use jindou_graph::statistics::Statistics;
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId};
use jindou_store::shard::OwnData;

/// Number of predicates per direction whose edges are counted. Occurrences of a vertex with more predicates are
/// underestimated.
const MOST_PREDICATES: usize = 32;

/// Approximate number of occurrences of a vertex in all graphs; `None` if the vertex does not occur in the graphs that
/// the query reads.
///
/// `predicates` are those of the vertex's edges, by direction. `edges(p, direction, is_seen)` returns two values for
/// the vertex's edges with predicate `p`: whether one of them is in the graphs that the query reads, and their number
/// in all graphs. If `is_seen` is true, an earlier call has found such an edge, and the first value does not matter.
/// `as_predicate` returns the number of edges, in the graphs that the query reads, whose predicate is this vertex.
pub fn uses_of(
    predicates: [(Direction, &[u32]); 2],
    mut edges: impl FnMut(PredicateId, Direction, bool) -> (bool, u64),
    as_predicate: impl FnOnce() -> u64,
) -> Option<u64> {
    let (mut uses, mut is_seen) = (0u64, false);
    for (direction, all) in predicates {
        for (i, &p) in all.iter().enumerate() {
            if is_seen && i >= MOST_PREDICATES {
                break;
            }
            let (seen, each) = edges(PredicateId(p), direction, is_seen);
            is_seen |= seen;
            uses = uses.saturating_add(each);
        }
    }
    if !is_seen {
        let each = as_predicate();
        is_seen = each > 0;
        uses = uses.saturating_add(each);
    }
    is_seen.then_some(uses)
}

/// Calls [`uses_of`] for a vertex that the shard owns.
pub(super) fn uses_at(
    own: &OwnData<'_>,
    (id, key): (u32, LocalKey),
    (scope, statistics): (GraphScope<'_>, &Statistics),
    scratch: &mut Vec<u32>,
) -> Option<u64> {
    let [into, out] = [Direction::In, Direction::Out].map(|d| own.predicates_of(id, d));
    let predicates = [(Direction::In, &*into), (Direction::Out, &*out)];
    let edges = |p, direction, is_seen| {
        let view = own.edges(p, direction);
        let seen = is_seen || !view.read(key, scope, scratch).is_empty();
        let each = view.default_degree(key);
        (seen, each.saturating_add(view.named_degree(key)))
    };
    let as_predicate = || {
        let p = own.predicate_of(id).map(|p| p.0 as usize);
        let Some(of) = p.and_then(|p| statistics.predicates.get(p)) else {
            return 0;
        };
        let default = if scope.sees(DEFAULT_GRAPH) {
            of.edges
        } else {
            0
        };
        let named = if scope.sees_named() {
            of.named_edges
        } else {
            0
        };
        default.saturating_add(named)
    };
    uses_of(predicates, edges, as_predicate)
}
