//! The edges of predicates that differ from row to row.

use jindou_graph::{Edges, Graph};
use jindou_model::{Direction, PredicateId};

/// Number of entries of the cache. Predicates whose numbers differ by a multiple of it displace each other.
const KEPT: usize = 32;

/// A predicate's edges in one direction.
#[derive(Clone, Copy)]
pub(crate) struct RowPredicate<'a> {
    pub number: PredicateId,
    /// Vertex id of the predicate's IRI.
    pub term: u32,
    pub edges: Edges<'a>,
}

/// Number of lookups in the graph from which on more than the last predicate is cached; few rows are not worth a table.
const WARM: usize = 64;

/// Cache of the predicates that rows used most recently, in one direction. Most rows use the same few predicates, so
/// the graph is rarely asked.
pub(crate) struct RowPredicates<'a> {
    graph: &'a dyn Graph,
    direction: Direction,
    asked: usize,
    last: Option<RowPredicate<'a>>,
    /// The cache, by number modulo [`KEPT`]; empty until there were [`WARM`] lookups.
    kept: Vec<Option<RowPredicate<'a>>>,
}

impl<'a> RowPredicates<'a> {
    pub fn new(graph: &'a dyn Graph, direction: Direction) -> Self {
        Self {
            graph,
            direction,
            asked: 0,
            last: None,
            kept: Vec::new(),
        }
    }

    #[inline]
    pub fn get(&mut self, number: PredicateId) -> &RowPredicate<'a> {
        if self.asked == WARM && self.kept.is_empty() {
            self.kept.resize_with(KEPT, || None);
        }
        let place = self.kept.get_mut(number.0 as usize % KEPT);
        let place = place.unwrap_or(&mut self.last);
        if place.as_ref().is_none_or(|kept| kept.number != number) {
            self.asked = WARM.min(self.asked + 1);
            bring(self.graph, number, self.direction, place);
        }
        place.as_ref().expect("just brought")
    }
}

#[inline(never)]
fn bring<'a>(
    graph: &'a dyn Graph,
    number: PredicateId,
    direction: Direction,
    place: &mut Option<RowPredicate<'a>>,
) {
    *place = Some(RowPredicate {
        number,
        term: graph.vertex_of(number).0,
        edges: graph.edges(number, direction),
    });
}
