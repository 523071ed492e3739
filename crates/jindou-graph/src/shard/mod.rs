//! A graph that is one of several shards: which shard owns what ([`Blocks`]), the way to the others for one query ([`Sharded`]), and for
//! parts of queries that run there ([`Far`], [`Posts`]).
//!
//! Keys of a shard's segments are those of the vertices that it owns, numbered by the shard; neighbours are ids of the whole store.
//! Statistics, characteristic sets, class intervals and the table of blocks are the same on every shard, so plans are, too.
//!
//! ```text
//! planner, executors ──► Sharded, ShardEdges ─► OtherShards   requests of one query for lists, numbers of edges, terms
//! fork-join ───────────► Far::post ──────────► Posts::take   messages to the part of another shard that runs queries
//! ```
//!
//! Only bases are divided. Every shard has all changes since the last merge, keyed by id, so what it says about the whole graph (whether it
//! is as loaded, which predicates have a patch, counts, class intervals, characteristic sets) is about all shards. A merge therefore computes
//! class intervals and counts from all of them.

mod blocks;
mod edges;
mod far;
mod lay;
mod others;
mod own;

pub use blocks::{Blocks, IdPlace, LocalKey, MAX_SHARDS, MAX_SHIFT};
pub use edges::ShardEdges;
pub use far::{BoundFar, Far, Posts};
pub use lay::MOST_LAID;
pub use others::{FarKey, FoundTerm, List, OtherShards, Sharded, Traffic, WordSearch};
pub use own::{OwnEdges, OwnLists};

/// An interval that all ids are in.
pub const EVERYTHING: [u32; 2] = [0, u32::MAX];
