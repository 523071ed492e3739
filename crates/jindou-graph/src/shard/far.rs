//! Messages between the parts of a query that run at shards; a graph does not know their content.

use jindou_model::{CancelToken, Result};
use std::sync::Arc;

/// Access to the other shards of a store, for messages to the parts of queries that are executed there.
///
/// A message names a shard, not a server. Where several servers hold copies of a shard, [`bind`](Self::bind) chooses
/// one of them for a query, so that all its messages reach the same server.
pub trait Far: Send + Sync {
    /// Chooses a server for each shard for one query, and returns connections to these servers and the encoded choice.
    /// With `chosen`, connects to the servers of a choice that the query's coordinator made and encoded. `None` if each
    /// shard has one server only.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) for a shard that no connected server holds, and if `chosen` cannot
    /// be decoded.
    fn bind(&self, chosen: Option<&[u8]>) -> Result<Option<BoundFar>> {
        let _ = chosen;
        Ok(None)
    }

    /// Sends every message to its shard's [`Posts`] and waits for all answers, which are returned in the order of the
    /// messages. Messages to one shard are sent together. Callers must check answers, which may be invalid. The wait
    /// ends early if the query's token is cancelled or a shard stops responding. After an error, each message may have
    /// been accepted or not: callers must not repeat messages that must not be accepted twice.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) with the first shard that did not answer, and the reason; the
    /// token's [`Error::Cancelled`](jindou_model::Error::Cancelled) and
    /// [`Error::Timeout`](jindou_model::Error::Timeout).
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// Estimated nanoseconds for reading one edge list from another server's memory; `None` unless the memory of all
    /// other shards can be read directly.
    fn reading(&self) -> Option<f64> {
        None
    }

    /// Number of the current connection to a shard. It changes after the shard's server was unreachable, even for a
    /// moment. So if two calls return the same number, the shard has lost no message and no query in between. Constant
    /// for shards in this process.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) while the shard's server is unreachable.
    fn link(&self, shard: u32) -> Result<u64> {
        let _ = shard;
        Ok(0)
    }
}

/// The connections of one query, and the encoded choice of servers.
pub type BoundFar = (Arc<dyn Far>, Vec<u8>);

/// The receiver of [`Far::post`]: runs parts of queries at the shards of this process.
pub trait Posts: Send + Sync {
    /// Accepts a message to one of the shards and answers it. Must not wait for another shard, or servers could
    /// deadlock: a server handles few requests of a connection concurrently, and waiting requests would prevent it from
    /// reading the messages that they wait for.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) if the message cannot be decoded.
    fn take(&self, shard: u32, message: &[u8]) -> Result<Vec<u8>>;
}
