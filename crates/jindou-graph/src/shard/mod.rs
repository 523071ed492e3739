//! A graph that is one of several shards: the owner of each vertex ([`Blocks`]), one query's access to the data of
//! other shards ([`Sharded`]), and messages to the parts of queries that run there ([`Far`], [`Posts`]).
//!
//! A shard's segments have the vertices that it owns as keys, numbered by the shard; neighbours are ids of the whole
//! store. Statistics, characteristic sets, class intervals and the block table are the same on every shard, and
//! therefore every shard makes the same plan for a query.
//!
//! ```text
//! planner, executors ──► Sharded, ShardEdges ─► OtherShards   requests of one query for lists, numbers of edges, terms
//! fork-join ───────────► Far::post ──────────► Posts::take   messages to the part of another shard that runs queries
//! ```
//!
//! Only bases are divided. Every shard has all changes since the last merge, keyed by id. Properties of the whole graph
//! (whether it is as loaded, which predicates have a patch, counts, class intervals, characteristic sets) are therefore
//! those of all shards together, and a merge computes class intervals and counts from all shards.

mod blocks;
mod collect;
mod edges;
mod far;
mod others;
mod own;

pub use blocks::{Blocks, IdPlace, LocalKey, MAX_SHARDS, MAX_SHIFT};
pub use collect::MAX_APPENDED;
pub use edges::ShardEdges;
pub use far::{BoundFar, Far, Posts};
pub use others::{FarKey, FoundTerm, List, OtherShards, Sharded, Traffic, WordSearch};
pub use own::{OwnEdges, OwnLists};

/// An interval that all ids are in.
pub const EVERYTHING: [u32; 2] = [0, u32::MAX];
