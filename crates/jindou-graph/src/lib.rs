//! A graph as planner and executors see it: [`Graph`], and the views of edges, predicates and terms that it hands out.
//!
//! ```text
//! Graph ──► Edges        the edges of a predicate in one direction: [`segment`]s and a patch over them ([`segment::EdgeView`]),
//!      │                 or some of them and the way to the other shards ([`shard::ShardEdges`])
//!      ├──► Predicates   predicates by term and by vertex: [`sets`], and what edits ([`delta`]) gave to single vertices
//!      ├──► Vocabulary   terms ↔ ids, and the values of terms
//!      ├──► Statistics   counts for the planner
//!      └──► Sharded      the way to the other shards, for a graph that is one of several
//! ```
//!
//! Where the data comes from (files, updates, other servers) is the business of the crates above, which implement [`Graph`] and
//! [`shard::OtherShards`].

pub mod delta;
mod edges;
mod graph;
mod predicates;
pub mod segment;
pub mod sets;
pub mod shard;
pub mod statistics;
mod vocabulary;

pub use edges::Edges;
pub use graph::{Graph, Identity, ObjectTerms};
pub use predicates::Predicates;
pub use vocabulary::{TermDecoding, TermSource, Vocabulary};
