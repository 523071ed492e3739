//! Messages between the parts of a query that run at shards; a graph does not know their content.

use jindou_model::{CancelToken, Result};
use std::sync::Arc;

/// Access to the other shards of a store, for messages to the parts of queries that are executed there.
///
/// A message names a shard, not a server. Where several servers hold a shard, a query is [bound](Self::bind) to one of
/// them, so that its messages find its part.
pub trait Far: Send + Sync {
    /// The connections of one query to the servers that have its parts, and the choice of servers in bytes; or those that a
    /// query's coordinator chose, in bytes. `None` if each shard is at one server only.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) for a shard that no connected server holds, and for bytes that are not
    /// a choice.
    fn bind(&self, chosen: Option<&[u8]>) -> Result<Option<BoundFar>> {
        let _ = chosen;
        Ok(None)
    }

    /// Sends every message to its shard's [`Posts`] and waits for all answers, which are returned in the order of the
    /// messages. Messages to one shard are sent together. Answers are not trusted: the sender checks that each is
    /// valid. The query's token ends the wait; a shard that does not respond ends it sooner. After an error any of the
    /// messages may have been accepted, or none: a sender must not repeat one that must not be accepted twice.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) with the first shard that did not answer, and the reason; the
    /// token's [`Error::Cancelled`](jindou_model::Error::Cancelled) and
    /// [`Error::Timeout`](jindou_model::Error::Timeout).
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// Nanoseconds for reading one edge list from another server's memory, if the memory of all other shards can be
    /// read directly.
    fn reading(&self) -> Option<f64> {
        None
    }

    /// Number of the connection to a shard. It changes after the shard's server was unreachable, even for a moment, so
    /// that two equal numbers mean that the shard lost nothing in between. Constant for shards in this process. Waits while a server
    /// that was never reached may still be starting.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) while its server is unreachable; the token's error.
    fn link(&self, shard: u32, cancel: &CancelToken) -> Result<u64> {
        let _ = (shard, cancel);
        Ok(0)
    }
}

/// The connections of one query, and the choice of servers in bytes.
pub type BoundFar = (Arc<dyn Far>, Vec<u8>);

/// The receiver of [`Far::post`]: runs parts of queries at the shards of this process.
pub trait Posts: Send + Sync {
    /// Accepts a message to one of the shards and answers it. Never waits for another shard, so that servers cannot
    /// deadlock: a server handles few requests of a connection concurrently, and one that waited would keep the others
    /// from being read.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) for bytes that are not a message.
    fn take(&self, shard: u32, message: &[u8]) -> Result<Vec<u8>>;
}
