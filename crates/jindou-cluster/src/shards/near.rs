//! A client for shards that are all in one process: they answer each other directly.

use super::{Reply, SearchTurns, ShardClient, ShardRequest, answer, post};
use jindou_graph::shard::{Far, Posts};
use jindou_model::{CancelToken, Error, Result};
use jindou_store::Base;
use std::sync::Arc;

/// All shards of a store, open in this process.
#[derive(Clone)]
pub struct InProcessShards {
    shards: Vec<Arc<Base>>,
    posts: Option<Arc<dyn Posts>>,
}

jindou_model::debug_format!(
    InProcessShards,
    |this| "Near {{ shards: {}, .. }}",
    this.shards.len()
);

impl InProcessShards {
    /// Creates the client; `shards` are in the order of their numbers.
    #[must_use]
    pub fn new(shards: Vec<Arc<Base>>) -> Self {
        Self {
            shards,
            posts: None,
        }
    }

    /// Sets the service that evaluates parts of queries at the shards.
    #[must_use]
    pub fn with_posts(self, posts: Arc<dyn Posts>) -> Self {
        Self {
            posts: Some(posts),
            ..self
        }
    }

    /// The shards, in the order of their numbers.
    #[must_use]
    pub fn shards(&self) -> &[Arc<Base>] {
        &self.shards
    }
}

impl Far for InProcessShards {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }
}

impl ShardClient for InProcessShards {
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        let mut turns = SearchTurns::new(requests.iter().map(|r| &r.1));
        let one = |(shard, request): &(u32, ShardRequest)| {
            cancel.check()?;
            let request = &*turns.next(request);
            let base = self.shards.get(*shard as usize);
            let base = base.ok_or_else(|| Error::shard(*shard, "no such shard"))?;
            let reply = match (request, &self.posts) {
                (ShardRequest::Post(message), Some(posts)) => {
                    posts.take(*shard, message).map(Reply::Post)
                }
                _ => answer(base, request),
            };
            reply.map_err(|e| match e {
                Error::Shard { .. } => e,
                e => Error::shard(*shard, e.to_string()),
            })
        };
        requests.iter().map(one).collect()
    }

    #[cfg(feature = "text")]
    fn has_word_index(&self) -> bool {
        super::words::are_indexed(self.shards.iter())
    }

    #[cfg(feature = "text")]
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        super::words::prepare(self.shards.iter(), stop)
    }
}
