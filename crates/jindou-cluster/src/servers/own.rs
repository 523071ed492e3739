//! The shards that this process holds, for requests of peers and for its own queries.

use super::reads::OfferedFiles;
use crate::shards::{Reply, ShardRequest, answer};
use crate::transport::Transport;
use jindou_graph::shard::Posts;
use jindou_model::invariant::guarded;
use jindou_model::sync::{lock, read, write};
use jindou_model::{Error, Result};
use jindou_store::Base;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use tokio::sync::watch;

/// A base, indexed by shard; `None` for shards that this process does not hold.
pub type ShardBases = Arc<Vec<Option<Arc<Base>>>>;

/// A shard's base that a server holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Number of the shard.
    pub shard: u32,
    /// Number of the base, which is that of the last snapshot that it contains.
    pub base: u64,
    /// True if the base can be read. False if only its segments are written, and the server still waits for the merge
    /// results of other shards.
    pub is_open: bool,
}

/// The state that a server announces to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The oldest base that the server's queries and cursors read.
    pub oldest_in_use: u64,
    /// The bases that the server holds.
    pub holdings: Vec<Holding>,
}

/// The shards that a server holds, and the service that evaluates parts of queries at them. A base is served until it
/// is released, so that queries that began before a merge can end.
#[derive(Clone)]
pub struct Own {
    state: Arc<RwLock<OwnState>>,
    /// Number of readers in this process, by base.
    readers: Arc<Mutex<BTreeMap<u64, usize>>>,
    posts: Arc<OnceLock<Arc<dyn Posts>>>,
    offered: Option<Arc<OfferedFiles>>,
    changed: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct OwnState {
    /// Served bases by number, ascending.
    bases: Vec<(u64, ShardBases)>,
    /// Merge results for other servers: base, shard, encoded result.
    written: Vec<(u64, u32, Vec<u8>)>,
}

impl OwnState {
    fn of(&self, base: u64) -> Option<&ShardBases> {
        let found = self.bases.iter().find(|(number, _)| *number == base);
        found.map(|(_, bases)| bases)
    }
}

impl Own {
    /// Creates the state without bases and without the service for parts of queries. With a transport, peers may read
    /// the bases' files.
    pub fn new(transport: Option<Arc<dyn Transport>>) -> Self {
        Self {
            state: Arc::default(),
            readers: Arc::default(),
            posts: Arc::default(),
            offered: transport.map(|transport| Arc::new(OfferedFiles::new(transport))),
            changed: Arc::new(watch::Sender::new(())),
        }
    }

    /// Sets the service that evaluates parts of queries at the shards.
    pub fn run_parts(&self, posts: Arc<dyn Posts>) {
        let _ = self.posts.set(posts);
    }

    /// Serves another base.
    pub fn serve(&self, base: u64, bases: ShardBases) {
        let mut state = write(&self.state);
        state.bases.retain(|(number, _)| *number != base);
        state.bases.push((base, Arc::clone(&bases)));
        state.bases.sort_unstable_by_key(|(number, _)| *number);
        drop(state);
        self.changed.send_replace(());
        if let Some(offered) = &self.offered {
            let changed = Arc::clone(&self.changed);
            offered.put(base, bases, move || changed.send_replace(()));
        }
    }

    /// The files that peers may read; `None` without a transport.
    pub fn offered(&self) -> Option<&Arc<OfferedFiles>> {
        self.offered.as_ref()
    }

    /// Stops serving a base.
    pub fn release(&self, base: u64) {
        write(&self.state).bases.retain(|(n, _)| *n != base);
        if let Some(offered) = &self.offered {
            offered.release(base);
        }
        self.changed.send_replace(());
    }

    /// Numbers of the bases that are served, ascending.
    pub fn numbers(&self) -> Vec<u64> {
        let state = read(&self.state);
        state.bases.iter().map(|(number, _)| *number).collect()
    }

    /// The oldest base that is read in this process, or the newest served base if none is read.
    pub fn oldest_in_use(&self) -> u64 {
        let oldest = lock(&self.readers).keys().next().copied();
        oldest.unwrap_or_else(|| self.numbers().last().copied().unwrap_or(0))
    }

    /// Counts a reader of a base until the returned value is dropped.
    pub fn begin_reading(&self, base: u64) -> BaseReader {
        self.count(base, |readers| *readers += 1);
        let own = self.clone();
        BaseReader { own, base }
    }

    fn count(&self, base: u64, change: impl FnOnce(&mut usize)) {
        let mut all = lock(&self.readers);
        let before = all.keys().next().copied();
        let readers = all.entry(base).or_default();
        change(readers);
        if *readers == 0 {
            all.remove(&base);
        }
        let is_new = all.keys().next().copied() != before;
        drop(all);
        if is_new {
            self.changed.send_replace(());
        }
    }

    /// Announces that the segments of a base are written, and keeps each shard's merge result, which other servers may
    /// request.
    pub fn set_written(&self, base: u64, results: Vec<(u32, Vec<u8>)>) {
        let results = results.into_iter().map(|(shard, r)| (base, shard, r));
        write(&self.state).written = results.collect();
        self.changed.send_replace(());
    }

    /// The announcement of this server's present state.
    pub fn announcement(&self) -> Announcement {
        Announcement {
            oldest_in_use: self.oldest_in_use(),
            holdings: self.holdings(),
        }
    }

    /// The bases that this server holds.
    pub fn holdings(&self) -> Vec<Holding> {
        let state = read(&self.state);
        let open = state.bases.iter().flat_map(|(base, bases)| {
            let held = (0..).zip(&**bases).filter(|(_, b)| b.is_some());
            held.map(|(shard, _)| Holding {
                shard,
                base: *base,
                is_open: true,
            })
        });
        let written = state.written.iter();
        let written = written.filter(|w| state.of(w.0).is_none());
        let written = written.map(|&(base, shard, _)| Holding {
            shard,
            base,
            is_open: false,
        });
        open.chain(written).collect()
    }

    /// Receiver that is notified when the announcement changes.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// True if this server holds a shard of a base.
    pub fn holds(&self, base: u64, shard: u32) -> bool {
        self.base(base, shard).is_some()
    }

    /// The base with this number, indexed by shard.
    pub fn bases(&self, base: u64) -> Option<ShardBases> {
        read(&self.state).of(base).cloned()
    }

    fn base(&self, base: u64, shard: u32) -> Option<Arc<Base>> {
        let state = read(&self.state);
        state.of(base)?.get(shard as usize)?.clone()
    }

    /// The newest base: its number, and the shards held here.
    pub fn newest_base(&self) -> Option<(u64, ShardBases)> {
        read(&self.state).bases.last().cloned()
    }

    /// The shards of the newest base that are held here.
    pub fn newest(&self) -> Vec<(u32, Arc<Base>)> {
        let newest = self.newest_base();
        let all = newest.iter().flat_map(|(_, bases)| (0..).zip(&**bases));
        all.filter_map(|(shard, base)| Some((shard, base.clone()?)))
            .collect()
    }

    /// Answers a request to one of the shards, over the base with this number.
    ///
    /// # Errors
    /// [`Error::Shard`] with the shard's number.
    pub fn answer(&self, base: u64, shard: u32, request: &ShardRequest) -> Result<Reply> {
        let failed = |message: String| Error::Shard { shard, message };
        if matches!(request, ShardRequest::MergeResult) {
            let state = read(&self.state);
            let found = state.written.iter().find(|w| (w.0, w.1) == (base, shard));
            let found = found.map(|(.., result)| Reply::Post(result.clone()));
            return found.ok_or_else(|| failed(format!("it has not written base {base}")));
        }
        // A message to a part of a query names the snapshot that it reads.
        let posts = self.posts.get();
        let message = match request {
            ShardRequest::Post(message) => posts.map(|posts| (posts, message)),
            _ => None,
        };
        // Values out of range in damaged files must make only this request fail.
        let one = || match message {
            Some((posts, message)) => posts.take(shard, message).map(Reply::Post),
            None => match self.base(base, shard) {
                Some(of) => answer(&of, request),
                None => Err(failed(format!(
                    "it does not hold base {base} of this shard"
                ))),
            },
        };
        guarded(one).map_err(|e| match e {
            Error::Shard { .. } => e,
            e => failed(e.to_string()),
        })
    }

    /// As [`ShardClient::has_word_index`](crate::shards::ShardClient::has_word_index).
    #[cfg(feature = "text")]
    pub fn has_word_index(&self) -> bool {
        crate::shards::are_indexed(self.newest().iter().map(|s| &s.1))
    }

    /// As [`ShardClient::prepare_search`](crate::shards::ShardClient::prepare_search).
    #[cfg(feature = "text")]
    pub fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        crate::shards::prepare(self.newest().iter().map(|s| &s.1), stop)
    }
}

/// A counted reader of a base; see [`Own::begin_reading`].
pub struct BaseReader {
    own: Own,
    base: u64,
}

impl Drop for BaseReader {
    fn drop(&mut self) {
        self.own.count(self.base, |readers| *readers -= 1);
    }
}

impl Announcement {
    /// Encodes the announcement for [`Self::parse`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.oldest_in_use.to_le_bytes().to_vec();
        for h in &self.holdings {
            out.extend_from_slice(&h.shard.to_le_bytes());
            out.extend_from_slice(&h.base.to_le_bytes());
            out.push(h.is_open.into());
        }
        out
    }

    /// Decodes an announcement; `None` if the bytes are invalid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (oldest, holdings) = bytes.split_first_chunk()?;
        Some(Self {
            oldest_in_use: u64::from_le_bytes(*oldest),
            holdings: holdings_of_bytes(holdings)?,
        })
    }
}

/// Size in bytes of an encoded holding.
const HOLDING: usize = 13;

fn holdings_of_bytes(bytes: &[u8]) -> Option<Vec<Holding>> {
    let one = |bytes: &[u8]| {
        let (shard, rest) = bytes.split_first_chunk()?;
        let (base, rest) = rest.split_first_chunk()?;
        Some(Holding {
            shard: u32::from_le_bytes(*shard),
            base: u64::from_le_bytes(*base),
            is_open: match rest {
                [0] => false,
                [1] => true,
                _ => return None,
            },
        })
    };
    bytes.chunks(HOLDING).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_come_back_and_others_are_refused() {
        let all = [(3, 7, true), (0, u64::MAX, false)].map(|(shard, base, is_open)| Holding {
            shard,
            base,
            is_open,
        });
        for holdings in [all.to_vec(), Vec::new()] {
            let announcement = Announcement {
                oldest_in_use: 5,
                holdings,
            };
            let bytes = announcement.to_bytes();
            assert_eq!(Announcement::parse(&bytes), Some(announcement));
            assert_eq!(Announcement::parse(&bytes[1..]), None);
        }
        let mut bad = 0u64.to_le_bytes().to_vec();
        bad.extend([0; HOLDING]);
        *bad.last_mut().unwrap() = 2;
        assert_eq!(Announcement::parse(&bad), None);
    }

    #[test]
    fn the_oldest_base_in_use_is_announced() {
        let own = Own::new(None);
        own.serve(4, Arc::default());
        own.serve(9, Arc::default());
        assert_eq!(own.oldest_in_use(), 9);
        let mut changes = own.changes();
        let readers = [4, 9, 4].map(|base| own.begin_reading(base));
        assert_eq!(own.announcement().oldest_in_use, 4);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        let [one, other, last] = readers;
        drop((one, other));
        assert_eq!(own.oldest_in_use(), 4);
        assert!(!changes.has_changed().unwrap());
        drop(last);
        assert_eq!(own.oldest_in_use(), 9);
        assert!(changes.has_changed().unwrap());
        own.release(4);
        assert_eq!(own.numbers(), [9]);
    }
}
