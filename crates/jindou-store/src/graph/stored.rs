//! The graph of a store directory.

use super::{Graph, Identity, Predicates, Vocabulary};
use crate::base::ObjectTerms;
use crate::segment::{EdgeView, Scope};
use crate::shard::{Blocks, Traffic};
use crate::snapshot::Snapshot;
use crate::statistics::{PredicateStatistics, Statistics};
use jindou_model::{Direction, MemoryBudget, PredicateId, VertexId};
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

    fn is_sharded(&self) -> bool {
        self.session().is_some()
    }

    fn placement(&self) -> Option<(u32, &Blocks)> {
        self.session().map(|s| s.placement())
    }

    fn own_keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: Scope<'_>,
        page: [u32; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        self.session()
            .is_some_and(|s| s.own_keys(p.0, direction, scope, page, out))
    }

    fn fetch(&self, lists: &mut dyn Iterator<Item = (PredicateId, Direction, u32, Scope<'_>)>) {
        if let Some(session) = self.session() {
            session.fetch_all(lists);
        }
    }

    fn fetch_degrees(&self, of: &mut dyn Iterator<Item = (PredicateId, Direction, u32)>) {
        if let Some(session) = self.session() {
            session.fetch_degrees(of.map(|(p, direction, key)| (p.0, direction, key)));
        }
    }

    fn fetch_terms(&self, ids: &mut dyn Iterator<Item = u32>) {
        if let Some(session) = self.session() {
            session.fetch_terms(ids);
        }
    }

    fn keep_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]) {
        if let Some(session) = self.session() {
            session.keep_terms(shard, ids, ends, bytes);
        }
    }

    fn charge_to(&self, memory: &MemoryBudget) {
        if let Some(session) = self.session() {
            session.charge_to(memory);
        }
    }

    fn traffic(&self) -> Option<Traffic> {
        self.session().map(|s| s.traffic())
    }

    fn predicate_count(&self) -> u32 {
        Self::predicate_count(self)
    }

    fn vertex_of(&self, p: PredicateId) -> VertexId {
        Self::vertex_of(self, p)
    }

    fn edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_> {
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
