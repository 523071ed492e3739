//! How one query reads a sharded store: requests for data of other shards ([`ShardRequest`], sent by a
//! [`ShardClient`]), a shard's answers ([`answer()`]), and the session with the data received so far
//! ([`ShardSession`]), with which one shard is explored as if it were the whole store. Answers that updates need
//! are kept beyond a query ([`Lookups`]).
//!
//! ```text
//! Graph, EdgeView ──► ShardSession ──► cache: lists, edge counts, terms
//!                        └──────► ShardClient ──► wire ──► answer ──► data of the other shard
//! ```

mod answer;
mod append;
mod cache;
mod lookups;
mod near;
mod request;
mod search;
mod session;
mod uses;
pub mod wire;
#[cfg(feature = "text")]
mod words;

pub use answer::answer;
pub use lookups::Lookups;
pub use near::InProcessShards;
#[cfg(feature = "servers")]
pub(crate) use request::post_through;
pub use request::{Reply, RequestGraphs, SearchTurns, ShardClient, ShardRequest, post};
pub use session::{ShardSession, snapshot_at_shard, snapshot_of_shard};
pub use uses::uses_of;
#[cfg(all(feature = "servers", feature = "text"))]
pub(crate) use words::{are_indexed, prepare};
