//! The boundary between a graph and those who explore it: all that planner and executors ask of one.
//!
//! They know [`Graph`] and the views that it hands out, not where the data is. A method is called once a query, a step or a
//! batch, never once a row: what loops over rows need are the concrete views, [`EdgeView`], [`Predicates`] and
//! [`Vocabulary`], whose calls are static.

mod predicates;
mod stored;
mod vocabulary;

pub use predicates::Predicates;
pub use vocabulary::{TermDecoding, TermSource, Vocabulary};

use crate::base::ObjectTerms;
use crate::segment::{EdgeView, Patch, Scope};
use crate::shard::{Blocks, Traffic};
use crate::statistics::{PredicateStatistics, Statistics};
use jindou_model::{Direction, MemoryBudget, PredicateId, VertexId};
use std::borrow::Cow;
use std::sync::Arc;

/// Names one consistent state of one graph. Plans, caches and tables of rows carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The id epoch: graphs with different ones number vertices differently.
    pub epoch: u64,
    /// The state: no other one of the epoch has the same.
    pub version: u64,
    /// Goes on when plans should be made again: when there are predicates, graphs or sets of predicates that were not there, or
    /// counts changed much.
    pub shape: u64,
}

/// One consistent state of a graph, to be explored. [`Snapshot`] is the one of a store directory.
///
/// [`Snapshot`]: crate::Snapshot
pub trait Graph: Send + Sync {
    // Which graph it is.

    /// The epoch, the state and the shape.
    fn identity(&self) -> Identity;

    /// True if nothing changed since the graph was numbered, so that characteristic sets say exactly what there is.
    fn is_as_loaded(&self) -> bool;

    /// True if this is one shard of a store with the way to the others: reading a vertex may cost a round trip, so a batch's are
    /// [fetched](EdgeView::fetch) at once.
    fn is_sharded(&self) -> bool {
        false
    }

    /// The number of this shard, and which shards own which ids; `None` for an unsharded graph.
    fn placement(&self) -> Option<(u32, &Blocks)> {
        None
    }

    /// Appends this shard's own keys of a predicate in some graphs, from an id on: ascending, each with an edge, at most `most`. True if
    /// there are more. None for a graph that is not cut.
    fn own_keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: Scope<'_>,
        [from, most]: [u32; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let _ = (p, direction, scope, from, most, out);
        false
    }

    /// Fetches the lists of several predicates that [`EdgeView::read`] and its like will be asked for, in one round: before the loop over a
    /// batch, where [`Self::is_sharded`].
    fn fetch(&self, lists: &mut dyn Iterator<Item = (PredicateId, Direction, u32, Scope<'_>)>) {
        let _ = lists;
    }

    /// Fetches the numbers of edges that [`EdgeView::default_degree`] and [`EdgeView::named_degree`] will be asked for, in one round, where
    /// [`Self::is_sharded`].
    fn fetch_degrees(&self, of: &mut dyn Iterator<Item = (PredicateId, Direction, u32)>) {
        let _ = of;
    }

    /// Fetches terms that [`TermDecoding::term`] will be asked for, of a batch of rows, in one round, where [`Self::is_sharded`].
    fn fetch_terms(&self, ids: &mut dyn Iterator<Item = u32>) {
        let _ = ids;
    }

    /// Keeps terms that another shard sent with its answer: those of its own ids, a term an id, with the place where each ends in the
    /// bytes. [`Self::fetch_terms`] has them then.
    fn keep_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]) {
        let _ = (shard, ids, ends, bytes);
    }

    /// Charges what is kept of other shards to a query's memory from now on.
    fn charge_to(&self, memory: &MemoryBudget) {
        let _ = memory;
    }

    /// Counts of what was asked of other shards so far; `None` where there are none.
    fn traffic(&self) -> Option<Traffic> {
        None
    }

    // Edges.

    /// Number of predicates; their dense ids count from 0.
    fn predicate_count(&self) -> u32;

    /// The term of a predicate; vertex 0 for an unknown number.
    fn vertex_of(&self, p: PredicateId) -> VertexId;

    /// The edges of a predicate in one direction, in all graphs; none for an unknown number.
    fn edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_>;

    /// A number that changes with a predicate's segments: with the epoch, predicate and direction it names their content for
    /// good. Patches over them are named by the version.
    fn generation_of(&self, p: PredicateId) -> u32;

    /// True if a predicate has edges or lacks some that its segments do not say.
    fn is_predicate_patched(&self, p: PredicateId) -> bool {
        let patch = self.edges(p, Direction::Out).patch;
        patch.is_some_and(|p: &Patch| !p.is_empty())
    }

    // Vertices.

    /// Predicates by term and by vertex: characteristic sets, and what edits gave to single vertices.
    fn predicates(&self) -> Predicates<'_>;

    /// The instances of a class (default and named graphs merged) as intervals, if they are few. Exact for vertices that
    /// no patch of `rdf:type` touches; those must be looked up in the segment.
    fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]>;

    /// Kind of terms that every object of the predicate, in all graphs, surely belongs to.
    fn object_terms(&self, p: PredicateId) -> ObjectTerms;

    /// Most vertices have the ids from 1 to this one: sets of them are best kept as bitmaps.
    fn dense_ids(&self) -> u32;

    // Named graphs.

    /// True if a named graph holds a quad.
    fn has_graph(&self, graph: u32) -> bool;

    /// Named graphs that hold a quad: ascending.
    fn named_graphs(&self) -> Arc<[u32]>;

    /// The predicates that occur in one graph: ascending, each once; a superset where a patch removed edges.
    fn graph_predicates(&self, graph: u32) -> Vec<u32>;

    /// Makes `out` the subjects of one graph with a predicate: ascending; a superset where a patch removed edges.
    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>);

    // Counts for the planner.

    /// The statistics of what lies under patches; see [`Self::predicate_statistics`], [`Self::quads`] and
    /// [`Self::vertices`] for counts with patches.
    fn statistics(&self) -> &Statistics;

    /// Counts of one predicate, patch included.
    fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics;

    /// Quads, patches included.
    fn quads(&self) -> u64;

    /// Terms that have an id.
    fn vertices(&self) -> u32;

    // Terms.

    /// Terms ↔ ids, and the values of terms.
    fn vocabulary(&self) -> Vocabulary<'_>;

    // What follows from the above, for those who ask once.

    /// As [`Vocabulary::lookup`].
    fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.vocabulary().lookup(canonical)
    }

    /// As [`Vocabulary::term`].
    fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        self.vocabulary().term(v, out)
    }

    /// As [`Predicates::of_term`].
    fn predicate_of(&self, v: VertexId) -> Option<PredicateId> {
        self.predicates().of_term(v)
    }

    /// As [`Predicates::of_vertex`].
    fn predicates_of(&self, v: u32, direction: Direction) -> Cow<'_, [u32]> {
        self.predicates().of_vertex(v, direction)
    }
}
