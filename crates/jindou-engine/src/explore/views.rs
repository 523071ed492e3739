//! Views of the edges of predicates that rows choose.

use jindou_model::{Direction, PredicateId};
use jindou_store::Graph;
use jindou_store::segment::EdgeView;

/// Predicates that are kept; those whose numbers differ by a multiple of it displace each other.
const KEPT: usize = 32;

/// A predicate that a row leads to.
#[derive(Clone, Copy)]
pub(crate) struct RowPredicate<'a> {
    pub number: PredicateId,
    /// Its term.
    pub term: u32,
    pub edges: EdgeView<'a>,
}

/// The predicates that rows led to last, in one direction: mostly they lead to the same few, and the graph is asked for the others
/// only.
pub(crate) struct RowPredicates<'a> {
    graph: &'a dyn Graph,
    direction: Direction,
    /// By number modulo [`KEPT`]; empty before the first use.
    kept: Vec<RowPredicate<'a>>,
}

impl<'a> RowPredicates<'a> {
    pub fn new(graph: &'a dyn Graph, direction: Direction) -> Self {
        Self {
            graph,
            direction,
            kept: Vec::new(),
        }
    }

    #[inline]
    pub fn get(&mut self, number: PredicateId) -> &RowPredicate<'a> {
        let at = number.0 as usize % KEPT;
        if self.kept.get(at).is_none_or(|k| k.number != number) {
            self.bring(number);
        }
        // `bring` fills all places.
        &self.kept[at]
    }

    #[inline(never)]
    fn bring(&mut self, number: PredicateId) {
        let brought = RowPredicate {
            number,
            term: self.graph.vertex_of(number).0,
            edges: self.graph.edges(number, self.direction),
        };
        // At first all places hold this one, which is found in its own only.
        self.kept.resize(KEPT, brought);
        self.kept[number.0 as usize % KEPT] = brought;
    }
}
