//! Shards in this process, whose traffic is counted.

use jindou::{CancelToken, Database, OpenOptions, Result};
use jindou_cluster::shards::{Reply, ShardClient, ShardRequest, post};
use jindou_graph::shard::Far;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The way between shards, which counts what goes over it.
pub struct Counting {
    far: Arc<dyn ShardClient>,
    rounds: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    /// Nanoseconds.
    latency: AtomicU64,
}

impl Counting {
    /// The same way, counted.
    pub fn over(far: Arc<dyn ShardClient>) -> Arc<Self> {
        Arc::new(Self {
            far,
            rounds: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            latency: AtomicU64::new(0),
        })
    }

    /// From now on every request takes at least so long.
    pub fn take_so_long(&self, time: Duration) {
        self.latency
            .store(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Rounds, messages to a shard, and bytes of them and of their replies since the last call.
    pub fn take(&self) -> [u64; 3] {
        [&self.rounds, &self.messages, &self.bytes].map(|n| n.swap(0, Ordering::Relaxed))
    }
}

impl ShardClient for Counting {
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        match self.latency.load(Ordering::Relaxed) {
            0 => {}
            time => std::thread::sleep(Duration::from_nanos(time)),
        }
        let replies = self.far.ask(requests, cancel)?;
        let messages = requests.chunk_by(|a, b| a.0 == b.0).count();
        let sent: u64 = requests.iter().map(|r| r.1.bytes()).sum();
        let got: u64 = replies.iter().map(Reply::bytes).sum();
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(sent + got, Ordering::Relaxed);
        Ok(replies)
    }
}

impl Far for Counting {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }

    fn link(&self, shard: u32) -> Result<u64> {
        self.far.link(shard)
    }
}

/// A store that is cut, asked at one of its shards.
pub fn counted(
    store: &Path,
    home: u32,
    options: &OpenOptions,
) -> Result<(Arc<Counting>, Database)> {
    let counting = OnceLock::new();
    let db = Database::open_shards_at(store, options, home, |far| {
        let one = counting.get_or_init(|| Counting::over(far));
        Arc::clone(one) as Arc<dyn ShardClient>
    })?;
    let counting = counting.into_inner();
    let counting = counting.ok_or_else(|| jindou::Error::Internal("a mode was not used".into()))?;
    Ok((counting, db))
}
