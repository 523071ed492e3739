//! Implementation of the graph interface of queries for snapshots.

use crate::snapshot::Snapshot;
use jindou_graph::kinds::TermKinds;
use jindou_graph::shard::Sharded;
use jindou_graph::statistics::{PredicateStatistics, Statistics};
use jindou_graph::{Edges, Graph, Identity, ObjectTerms, Predicates, Vocabulary};
use jindou_model::{Direction, PredicateId, VertexId};
use std::any::Any;
use std::sync::Arc;

impl Graph for Snapshot {
    fn identity(&self) -> Identity {
        Identity {
            epoch: self.base().epoch(),
            version: self.version(),
            shape: self.shape(),
        }
    }

    fn is_as_loaded(&self) -> bool {
        Self::is_as_loaded(self)
    }

    fn as_sharded(&self) -> Option<&Sharded> {
        Self::as_sharded(self)
    }

    fn shared(&self) -> Option<Arc<dyn Graph>> {
        Some(Arc::new(self.clone()))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn predicate_count(&self) -> u32 {
        Self::predicate_count(self)
    }

    fn vertex_of(&self, p: PredicateId) -> VertexId {
        Self::vertex_of(self, p)
    }

    fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'_> {
        Self::edges(self, p, direction)
    }

    fn generation_of(&self, p: PredicateId) -> u32 {
        self.base().generation_of(p)
    }

    fn is_predicate_patched(&self, p: PredicateId) -> bool {
        Self::is_predicate_patched(self, p)
    }

    fn predicates(&self) -> Predicates<'_> {
        Self::predicates(self)
    }

    fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]> {
        Self::class_intervals(self, class)
    }

    fn object_terms(&self, p: PredicateId) -> ObjectTerms {
        Self::object_terms(self, p)
    }

    fn term_kinds(&self) -> Option<&TermKinds> {
        self.base().term_kinds()
    }

    fn dense_ids(&self) -> u32 {
        self.base().vertices()
    }

    fn has_graph(&self, graph: u32) -> bool {
        Self::has_graph(self, graph)
    }

    fn named_graphs(&self) -> Arc<[u32]> {
        Self::named_graphs(self)
    }

    fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        Self::graph_predicates(self, graph)
    }

    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        Self::graph_subjects(self, graph, predicate, out);
    }

    fn statistics(&self) -> &Statistics {
        Self::statistics(self)
    }

    fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics {
        Self::predicate_statistics(self, p)
    }

    fn quads(&self) -> u64 {
        Self::quads(self)
    }

    fn vertices(&self) -> u32 {
        Self::vertices(self)
    }

    fn vocabulary(&self) -> Vocabulary<'_> {
        Self::vocabulary(self)
    }
}
