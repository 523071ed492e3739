//! The interface between a graph and its readers: everything that planner and executors ask of one.
//!
//! They know [`Graph`] and the views that it hands out, not where the data is. A method is called once per query, step
//! or batch, never once per row: loops over rows use the concrete views, [`Edges`], [`Predicates`] and [`Vocabulary`],
//! whose calls are static.

use crate::segment::Patch;
use crate::shard::Sharded;
use crate::statistics::{PredicateStatistics, Statistics};
use crate::{Edges, Predicates, Vocabulary};
use jindou_model::{Direction, PredicateId, VertexId};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Names one consistent state of one graph. Plans, caches and tables of rows carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The id epoch: graphs with different ones number vertices differently.
    pub epoch: u64,
    /// The state: unique within the epoch.
    pub version: u64,
    /// A counter that increases when queries should be planned again: when predicates, graphs or sets of predicates
    /// were added, or counts changed much.
    pub shape: u64,
}

/// Kinds of terms that include all objects of a predicate, from the least specific to the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectTerms {
    /// Anything.
    Any,
    /// IRIs, blank nodes and strings, of `xsd:string` or with a language: `=` between two such terms is true only if they
    /// are the same (SPARQL 1.1 §17.3, RDFterm-equal). A string also equals literals of types derived from `xsd:string`.
    Texts,
    /// IRIs and blank nodes.
    Resources,
}

/// One consistent state of a graph, to be explored. A store's snapshot is the one that queries explore.
pub trait Graph: Send + Sync {
    // Identity.

    /// The epoch, the state and the shape.
    fn identity(&self) -> Identity;

    /// Returns true if nothing changed since the graph was numbered, so that characteristic sets are exact.
    fn is_as_loaded(&self) -> bool;

    /// Access to the other shards, if this is one of several. Reading a vertex may then cost a round trip, so the
    /// vertices of a batch are [fetched](Sharded::fetch) together. Called once per step or batch.
    fn as_sharded(&self) -> Option<&Sharded> {
        None
    }

    /// The graph itself, for work that outlives the borrow; `None` if it cannot.
    fn shared(&self) -> Option<Arc<dyn Graph>> {
        None
    }

    /// The concrete type, for code that knows it: such as what opens another shard in the state of a graph.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    // Edges.

    /// Number of predicates; their dense ids count from 0.
    fn predicate_count(&self) -> u32;

    /// The term of a predicate; vertex 0 for an unknown number.
    fn vertex_of(&self, p: PredicateId) -> VertexId;

    /// The edges of a predicate in one direction, in all graphs; none for an unknown number.
    fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'_>;

    /// A number that changes with a predicate's segments: with the epoch, predicate and direction it identifies their
    /// content permanently. Patches over them are identified by the version.
    fn generation_of(&self, p: PredicateId) -> u32;

    /// Returns true if a predicate has gained or lost edges compared with its segments.
    fn is_predicate_patched(&self, p: PredicateId) -> bool {
        let patch = self.edges(p, Direction::Out).patch();
        patch.is_some_and(|p: &Patch| !p.is_empty())
    }

    // Vertices.

    /// Predicates by term and by vertex: characteristic sets, and additions to single vertices by edits.
    fn predicates(&self) -> Predicates<'_>;

    /// The instances of a class (default and named graphs merged) as intervals, if they are few. Exact for vertices that
    /// no patch of `rdf:type` touches; those must be looked up in the segment.
    fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]>;

    /// Kind of terms that certainly includes every object of the predicate, in all graphs.
    fn object_terms(&self, p: PredicateId) -> ObjectTerms;

    /// Upper bound of the ids of most vertices, which start at 1; suitable as the size of bitmaps.
    fn dense_ids(&self) -> u32;

    // Named graphs.

    /// Returns true if a named graph holds a quad.
    fn has_graph(&self, graph: u32) -> bool;

    /// Named graphs that hold a quad: ascending.
    fn named_graphs(&self) -> Arc<[u32]>;

    /// The predicates that occur in one graph: ascending, each once; a superset where a patch removed edges.
    fn graph_predicates(&self, graph: u32) -> Vec<u32>;

    /// Sets `out` to the subjects of one graph with a predicate: ascending; a superset where a patch removed edges.
    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>);

    // Counts for the planner.

    /// Statistics of the data below patches; see [`Self::predicate_statistics`], [`Self::quads`] and [`Self::vertices`]
    /// for counts with patches.
    fn statistics(&self) -> &Statistics;

    /// Counts of one predicate, patch included.
    fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics;

    /// Quads, patches included.
    fn quads(&self) -> u64;

    /// Number of terms with an id.
    fn vertices(&self) -> u32;

    // Terms.

    /// Terms ↔ ids, and the values of terms.
    fn vocabulary(&self) -> Vocabulary<'_>;

    // Derived methods, for single lookups.

    /// Returns true if [`Self::as_sharded`] returns something.
    fn is_sharded(&self) -> bool {
        self.as_sharded().is_some()
    }

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
