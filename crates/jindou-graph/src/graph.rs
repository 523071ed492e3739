//! The interface between a graph and its readers, the planner and the executors.
//!
//! Readers know [`Graph`] and the views that it returns, not where the data is stored. A method of [`Graph`] is called
//! once per query, step or batch, never once per row, since the call is virtual: loops over rows use the concrete views
//! [`Edges`], [`Predicates`] and [`Vocabulary`].

use crate::kinds::TermKinds;
use crate::segment::Patch;
use crate::shard::Sharded;
use crate::statistics::{PredicateStatistics, Statistics};
use crate::{Edges, Predicates, Vocabulary};
use jindou_model::{Direction, PredicateId, VertexId};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Identifies one snapshot of one graph. Plans, caches and tables of rows store it to detect that they are out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The id epoch: in graphs of different epochs the same term may have different ids.
    pub epoch: u64,
    /// The snapshot: unique within the epoch.
    pub version: u64,
    /// A counter that increases when cached plans should be replaced: when predicates, graphs or characteristic sets
    /// were added, or counts changed much.
    pub shape: u64,
}

/// Kinds of terms; each contains all objects of some predicate. From the least specific to the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectTerms {
    /// Anything.
    Any,
    /// IRIs, blank nodes and strings (`xsd:string` or with a language tag): `=` between two such terms is true only if
    /// they are the same (SPARQL 1.1 §17.3, RDFterm-equal). A string also equals literals of types derived from
    /// `xsd:string`.
    Texts,
    /// IRIs and blank nodes.
    Resources,
}

/// One snapshot of a graph, or of a shard of it, as queries read it.
pub trait Graph: Send + Sync {
    // Identity.

    /// The epoch, the version and the shape.
    fn identity(&self) -> Identity;

    /// Returns true if no update changed the graph since it was loaded, so that characteristic sets are exact.
    fn is_as_loaded(&self) -> bool;

    /// Access to the other shards, if this graph is one of several shards. Reading a vertex may then need a round trip
    /// to another shard, so the vertices of a batch are [fetched](Sharded::fetch) together. Called once per step or
    /// batch.
    fn as_sharded(&self) -> Option<&Sharded> {
        None
    }

    /// The graph itself, for work that outlives the borrow; `None` if the graph is not reference-counted.
    fn shared(&self) -> Option<Arc<dyn Graph>> {
        None
    }

    /// The graph as `Any`, for code that downcasts it to its concrete type, for example to open another shard in the
    /// same snapshot. `None` if it is not `'static`.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    // Edges.

    /// Number of predicates; their dense ids count from 0.
    fn predicate_count(&self) -> u32;

    /// The vertex of a predicate's term; vertex 0 for an unknown dense id.
    fn vertex_of(&self, p: PredicateId) -> VertexId;

    /// The edges of a predicate in one direction, in all graphs; no edges for an unknown dense id.
    fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'_>;

    /// The generation of a predicate's segments: epoch, predicate, direction and generation together identify the
    /// segments' content permanently. The version of [`Self::identity`] identifies the patches over them.
    fn generation_of(&self, p: PredicateId) -> u32;

    /// Returns true if updates added or removed edges of the predicate since its segments were written.
    fn is_predicate_patched(&self, p: PredicateId) -> bool {
        let patch = self.edges(p, Direction::Out).patch();
        patch.is_some_and(|p: &Patch| !p.is_empty())
    }

    // Vertices.

    /// Predicates by term and by vertex: characteristic sets, and the predicates that updates added to single vertices.
    fn predicates(&self) -> Predicates<'_>;

    /// The instances of a class (default and named graphs merged) as intervals of ids, if there are few intervals.
    /// Exact for vertices that no patch of `rdf:type` touches; others must be looked up among the edges.
    fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]>;

    /// The most specific kind of terms that is known to include every object of the predicate, in all graphs.
    fn object_terms(&self, p: PredicateId) -> ObjectTerms;

    /// The kinds of the base's terms, if they are known. O(runs of ids) at the first call.
    fn term_kinds(&self) -> Option<&TermKinds> {
        None
    }

    /// Upper bound of the ids of most vertices, for use as the size of bitmaps. Ids start at 1; only vertices that
    /// updates added have larger ids.
    fn dense_ids(&self) -> u32;

    // Named graphs.

    /// Returns true if a named graph holds a quad.
    fn has_graph(&self, graph: u32) -> bool;

    /// Named graphs that hold a quad, ascending.
    fn named_graphs(&self) -> Arc<[u32]>;

    /// The predicates that occur in one graph: ascending, each once. May also contain predicates whose edges a patch
    /// removed.
    fn graph_predicates(&self, graph: u32) -> Vec<u32>;

    /// Sets `out` to the subjects in one graph that have the predicate: ascending. May also contain subjects whose
    /// edges a patch removed.
    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>);

    // Counts for the planner.

    /// Statistics of the base, without the changes of patches. [`Self::predicate_statistics`], [`Self::quads`] and
    /// [`Self::vertices`] include these.
    fn statistics(&self) -> &Statistics;

    /// Counts of one predicate, including its patch.
    fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics;

    /// Number of quads, including patches.
    fn quads(&self) -> u64;

    /// Number of ids that were assigned to terms: those of updates are [`FIRST_TAIL_ID`](jindou_model::FIRST_TAIL_ID) and
    /// the ones after it, some of which may be free again.
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
