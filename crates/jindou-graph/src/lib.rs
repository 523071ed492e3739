//! A graph as the planner and the executors read it: [`Graph`], and the views of edges, predicates and terms that it
//! returns.
//!
//! ```text
//! Graph ──► Edges        the edges of a predicate in one direction: [`segment`]s and a patch ([`segment::EdgeView`]),
//!      │                 or this shard's edges and access to the other shards' ([`shard::ShardEdges`])
//!      ├──► Predicates   predicates by term and by vertex: [`sets`], and those that updates added ([`delta`])
//!      ├──► Vocabulary   terms ↔ ids, and the values of terms
//!      ├──► Statistics   counts for the planner
//!      └──► Sharded      access to the other shards, for a graph that is one of several shards
//! ```
//!
//! The data comes from files, updates and other servers. Other crates read these, and implement [`Graph`] and
//! [`shard::OtherShards`].

pub mod counts;
pub mod delta;
mod edges;
mod graph;
pub mod kinds;
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
