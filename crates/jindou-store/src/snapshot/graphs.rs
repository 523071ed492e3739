//! The named graphs of a snapshot.

use super::Snapshot;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use std::sync::Arc;

impl Snapshot {
    pub(crate) fn is_base_graph(&self, graph: u32) -> bool {
        self.base.index.graph_ids().binary_search(&graph).is_ok()
    }

    /// True if a named graph has a quad. O(log edits) for a graph that lost no quads, otherwise O(its subjects) at
    /// worst.
    #[must_use]
    pub fn has_graph(&self, graph: u32) -> bool {
        if !self.is_base_graph(graph) && !self.delta.touched.has_graph(graph) {
            return false;
        }
        if !self.delta.touched.may_be_empty(graph) {
            return true;
        }
        let mut subjects = Vec::new();
        self.graph_predicates(graph).into_iter().any(|p| {
            let p = PredicateId(p);
            self.graph_subjects(graph, p, &mut subjects);
            let view = self.edges(p, Direction::Out);
            view.any_has_edges(&subjects, GraphScope::Named(graph))
        })
    }

    /// Ids of the named graphs that have a quad, ascending. O(graphs) at the first call for this snapshot and its
    /// copies, plus [`Self::has_graph`] for each graph that lost quads.
    #[must_use]
    pub fn named_graphs(&self) -> Arc<[u32]> {
        if let Some(known) = self.named_graphs.get() {
            return Arc::clone(known);
        }
        let found: Arc<[u32]> = self.find_named_graphs().into();
        // The result is cached only if no request to a shard failed, since a failure must not affect the next query.
        match self.check_shards() {
            Ok(()) => Arc::clone(self.named_graphs.get_or_init(|| found)),
            Err(_) => found,
        }
    }

    fn find_named_graphs(&self) -> Vec<u32> {
        let mut out = self.possible_graphs();
        if !self.is_as_loaded() {
            let shrunk = self.delta.touched.shrunk();
            let empty: Vec<u32> = shrunk.filter(|&g| !self.has_graph(g)).collect();
            if !empty.is_empty() {
                out.retain(|g| empty.binary_search(g).is_err());
            }
        }
        out
    }

    /// Ids of the named graphs that have a quad, and possibly of some that had one, ascending. Does not read other
    /// shards.
    pub(crate) fn possible_graphs(&self) -> Vec<u32> {
        let mut out = self.base.index.graph_ids().to_vec();
        out.extend(self.delta.touched.graphs());
        out.sort();
        out.dedup();
        out
    }

    /// Appends the subjects of a predicate in one graph, ascending, without reading any other graph; a superset if a
    /// patch removed edges.
    pub fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        out.clear();
        if let Some(sharded) = &self.sharded {
            if self.is_base_graph(graph) {
                sharded.others().graph_subjects(graph, predicate, out);
            }
        } else {
            self.base.graph_subjects(graph, predicate, out);
        }
        let base = out.len();
        out.extend(self.delta.touched.graph_subjects(graph, predicate.0));
        if out.len() > base {
            out.sort();
            out.dedup();
        }
    }

    /// The distinct predicates in one graph, ascending; a superset if a patch removed edges.
    #[must_use]
    pub fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let mut out = match &self.sharded {
            Some(_) if !self.is_base_graph(graph) => Vec::new(),
            Some(sharded) => sharded.others().graph_predicates(graph),
            None => self.base.graph_predicates(graph),
        };
        out.extend(self.delta.touched.graph_predicates(graph));
        out.sort_unstable();
        out.dedup();
        out
    }
}
