//! One query's reading of a sharded store: requests for data of other shards ([`ShardRequest`], sent by a [`ShardClient`]),
//! a shard's answers to them ([`answer()`]), and the data received so far ([`ShardSession`]), through which one shard is
//! explored as the whole store.
//!
//! ```text
//! Graph, EdgeView ──► Session ──► kept: lists, numbers of edges, terms
//!                        └──────► ShardClient ──► wire ──► answer ──► the other shard's own data
//! ```

mod answer;
mod kept;
mod lay;
mod near;
mod request;
mod search;
mod session;
mod uses;
pub mod wire;
#[cfg(feature = "text")]
mod words;

pub use answer::answer;
pub use near::NearShards;
#[cfg(feature = "servers")]
pub(crate) use request::post_through;
pub use request::{Reply, RequestGraphs, SearchTurns, ShardClient, ShardRequest, post};
pub use session::{ShardSession, snapshot_at_shard, snapshot_of_shard};
pub use uses::uses_of;
#[cfg(all(feature = "servers", feature = "text"))]
pub(crate) use words::{are_indexed, prepare};
