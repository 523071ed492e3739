//! Predicates by term and by vertex, for use in loops over rows.

use crate::delta::{BaseSets, VertexDelta};
use crate::sets::CharacteristicSets;
use jindou_model::{Direction, PredicateId, VertexId};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Predicates of a graph by term and by vertex. Callers obtain it once per query or step; its methods are not virtual.
#[derive(Clone, Copy)]
pub struct Predicates<'a> {
    /// Dense predicate ids by vertex: of the predicates of the base, and of those that updates added.
    numbers: [Option<&'a FxHashMap<u32, u32>>; 2],
    base: BaseSets<'a>,
    touched: Option<&'a VertexDelta>,
}

impl<'a> Predicates<'a> {
    /// Creates a view without updates, from the dense predicate ids by vertex and the characteristic sets of the
    /// vertices `1..=vertices`.
    #[must_use]
    pub fn new(
        numbers: &'a FxHashMap<u32, u32>,
        sets: CharacteristicSets<'a>,
        vertices: u32,
    ) -> Self {
        Self {
            numbers: [Some(numbers), None],
            base: BaseSets { sets, vertices },
            touched: None,
        }
    }

    /// Adds the changes by updates: `numbers` has the dense ids of new predicates by vertex, `touched` the predicates
    /// that single vertices got.
    #[must_use]
    pub fn with_edits(self, numbers: &'a FxHashMap<u32, u32>, touched: &'a VertexDelta) -> Self {
        Self {
            numbers: [self.numbers[0], Some(numbers)],
            touched: Some(touched),
            ..self
        }
    }

    /// The dense id of a predicate's term. O(1).
    #[must_use]
    pub fn of_term(&self, v: VertexId) -> Option<PredicateId> {
        let mut known = self.numbers.iter().flatten();
        known.find_map(|n| n.get(&v.0)).copied().map(PredicateId)
    }

    /// The dense ids of the predicates of edges that leave (`Out`) or enter (`In`) a vertex in any graph, ascending.
    /// May also contain predicates whose edges a patch removed. O(log runs + log edits); borrowed unless updates added
    /// a predicate to the vertex.
    #[must_use]
    pub fn of_vertex(&self, v: u32, direction: Direction) -> Cow<'a, [u32]> {
        match self.touched {
            Some(touched) => touched.predicates_of(self.base, v, direction),
            None => Cow::Borrowed(self.base.list(v, direction)),
        }
    }

    /// The characteristic sets of the base. [`Self::widened_vertices`] are the vertices to which updates added
    /// predicates.
    #[must_use]
    pub fn sets(&self) -> CharacteristicSets<'a> {
        self.base.sets
    }

    /// The vertices to which updates added predicates in a direction, ascending, each with its whole list as returned
    /// by [`Self::of_vertex`]. O(edits).
    #[must_use]
    pub fn widened_vertices(&self, direction: Direction) -> Vec<(u32, Cow<'a, [u32]>)> {
        let vertices = self.touched.map(|t| t.widened(direction));
        let vertices = vertices.unwrap_or_default().into_iter();
        vertices
            .map(|v| (v, self.of_vertex(v, direction)))
            .collect()
    }

    /// The distinct out-lists of the vertices to which updates added predicates, and the number of vertices with each.
    /// Each is a superset of its vertices' out-predicates. The planner must add these lists to the characteristic sets
    /// before it concludes that a pattern has no solutions. O(distinct lists).
    pub fn widened_sets(&self) -> impl Iterator<Item = (&'a [u32], u32)> + use<'a> {
        self.touched.into_iter().flat_map(VertexDelta::widened_sets)
    }
}
