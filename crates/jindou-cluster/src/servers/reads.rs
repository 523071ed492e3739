//! Lists read from another server's memory, if the fabric allows it, instead of being requested.
//!
//! ```text
//! owner    segment files and their summaries, registered ([`Shelf`]) ─► catalogue of each shard
//! reader   catalogue, and the summaries of the segments that it meets ─► one read for all lists of a request ([`Reads`])
//! ```
//!
//! Only lists of the default graph are read. Everything else is requested, and so is any list that a read does not
//! deliver in time: a failed read is not an error. Times measured when the lane is opened decide between reading and
//! requesting, since some fabrics only emulate reads: there the other side has to help with every list.

use super::SILENCE;
use super::lane::{ALIVE, CATALOGUE, LaneEnd};
use crate::remote::{Exposed, RemoteStore, StoreFiles};
use crate::shards::{Reply, RequestGraphs, ShardRequest};
use crate::transport::{self, Epoch, Transport, TransportError};
use jindou_graph::shard::{Blocks, EVERYTHING};
use jindou_model::sync::{read, write};
use jindou_model::{CancelToken, DEFAULT_GRAPH, Error, PredicateId, Result};
use jindou_store::Base;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// Summaries may take this fraction (1/n) of a shard's segment bytes, and at least [`LEAST`].
const PART: u64 = 20;
const LEAST: u64 = 1 << 20;
/// Nanoseconds that the peer needs for a requested list.
const A_LIST: f64 = 60.0;
/// Number of samples of each access method when a lane is opened.
const TRIES: usize = 8;
/// Most neighbours that are read to test if some edges exist.
const LOOKED_THROUGH: u32 = 1 << 16;
/// Number of lists in the longer one of two timed reads.
const MANY: u32 = 64;

/// The shards of this server that peers may read.
pub struct Shelf {
    /// Predicates of the store, which all shards know.
    predicates: u32,
    /// The catalogue for readers, by shard.
    catalogues: RwLock<FxHashMap<u32, Vec<u8>>>,
}

impl Shelf {
    /// An empty shelf for a store with this many predicates.
    pub fn new(predicates: u32) -> Self {
        Self {
            predicates,
            catalogues: RwLock::default(),
        }
    }

    /// Lets peers read the segments in a shard's folder. Takes about a second for 50 million keys.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Io`] for files that cannot be opened; [`Error::Shard`] with the fabric's reason.
    pub fn put(&self, to: &dyn Transport, shard: u32, folder: &Path, base: &Base) -> Result<()> {
        let files = StoreFiles::open(folder)?;
        let named = base.statistics().predicates.iter();
        let named: Vec<u64> = named.map(|p| p.named_edges).collect();
        let exposed = Exposed::new(files, &named);
        let cannot = |e: TransportError| Error::Shard {
            shard,
            message: format!("its memory cannot be made readable for other servers: {e}"),
        };
        let (catalogue, _) = exposed.register(to).map_err(cannot)?;
        write(&self.catalogues).insert(shard, catalogue);
        Ok(())
    }

    /// The answer to a peer that asks for a shard's catalogue; empty as long as there is none.
    pub fn answer(&self, payload: &[u8], reply: &mut Vec<u8>) -> Result<(), &'static str> {
        let shard = payload.try_into().map_err(|_| "the shard is missing")?;
        if let Some(catalogue) = read(&self.catalogues).get(&u32::from_le_bytes(shard)) {
            reply.extend_from_slice(catalogue);
        }
        Ok(())
    }
}

/// Times in nanoseconds of the methods for reading lists.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ReadTimes {
    /// A request and its answer.
    ask: f64,
    /// Reading one list.
    one: f64,
    /// Reading each further list in the same read.
    further: f64,
}

impl ReadTimes {
    /// True if reading this many lists is faster than requesting them.
    fn reads(&self, lists: usize) -> bool {
        let further = lists.saturating_sub(1) as f64;
        self.one + further * self.further < self.ask + A_LIST * lists as f64
    }
}

/// A peer's shards, as they are read here.
pub struct Reads {
    end: Arc<LaneEnd>,
    /// By shard.
    stores: FxHashMap<u32, RemoteStore>,
    cost: ReadTimes,
    /// Number of requests served by reading.
    read: AtomicU64,
}

impl Reads {
    /// Opens the shards that a peer has; `None` until all of them are available.
    ///
    /// # Errors
    /// The fabric's errors, and an error for a peer that sends invalid data.
    pub fn open(
        end: &Arc<LaneEnd>,
        link: &Arc<dyn transport::Peer>,
        shards: &[u32],
    ) -> Result<Option<Self>, TransportError> {
        let predicates = end.shelf().map(|s| s.predicates);
        let deadline = || end.transport().deadline(SILENCE);
        let mut stores = FxHashMap::default();
        for &shard in shards {
            let mut catalogue = Vec::new();
            let of = shard.to_le_bytes();
            link.call(CATALOGUE, Epoch(0), &of, &mut catalogue, deadline())?;
            if catalogue.is_empty() {
                return Ok(None);
            }
            let begins = catalogue.first_chunk().map(|n| u32::from_le_bytes(*n));
            if begins != predicates {
                let what = "the peer's predicates differ";
                return Err(TransportError::Refused(what.into()));
            }
            let memory = |segments: u64| (segments / PART).max(LEAST);
            let link = Arc::clone(link);
            let store = RemoteStore::of_catalogue(link, &catalogue, memory, deadline())?;
            stores.insert(shard, store);
        }
        let cost = Self::measure(end, &**link, &stores)?;
        Ok(Some(Self {
            end: Arc::clone(end),
            stores,
            cost,
            read: AtomicU64::new(0),
        }))
    }

    fn measure(
        end: &LaneEnd,
        link: &dyn transport::Peer,
        stores: &FxHashMap<u32, RemoteStore>,
    ) -> Result<ReadTimes, TransportError> {
        let deadline = || end.transport().deadline(SILENCE);
        let quickest = |once: &dyn Fn() -> Result<(), TransportError>| {
            let mut least = f64::MAX;
            for _ in 0..TRIES {
                let begun = Instant::now();
                once()?;
                least = least.min(begun.elapsed().as_nanos() as f64);
            }
            Ok::<_, TransportError>(least)
        };
        let mut cost = ReadTimes {
            ask: quickest(&|| link.call(ALIVE, Epoch(0), &[], &mut Vec::new(), deadline()))?,
            one: 0.0,
            further: 0.0,
        };
        for store in stores.values() {
            let one = quickest(&|| store.touch(1, deadline()))?;
            let many = quickest(&|| store.touch(MANY, deadline()))?;
            cost.one = cost.one.max(one);
            let further = (many - one).max(0.0) / f64::from(MANY - 1);
            cost.further = cost.further.max(further);
        }
        Ok(cost)
    }

    /// Nanoseconds for reading one list, if a single list would be read.
    pub fn one(&self) -> Option<f64> {
        self.cost.reads(1).then_some(self.cost.one)
    }

    /// Number of requests served by reading so far.
    pub fn count(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The reply to a request about the default graph's edges of a shard; `None` if a message must be sent to the
    /// shard.
    pub fn reply(
        &self,
        blocks: &Blocks,
        shard: u32,
        request: &ShardRequest,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        let (ShardRequest::Lists { keys, .. }
        | ShardRequest::Contains { keys, .. }
        | ShardRequest::Degrees { keys, .. }) = request
        else {
            return None;
        };
        if !self.cost.reads(keys.len()) {
            return None;
        }
        let store = self.stores.get(&shard)?;
        let own = |&key: &u32| {
            let place = blocks.place(key).filter(|p| p.shard == shard)?;
            Some(place.local.0)
        };
        let keys: Vec<u32> = keys.iter().map(own).collect::<Option<_>>()?;
        let patience = cancel.left().map_or(SILENCE, |left| left.min(SILENCE));
        let deadline = self.end.transport().deadline(patience);
        let lists = |predicate, direction, most| {
            let (mut ends, mut neighbours) = (Vec::new(), Vec::new());
            let into = (&mut ends, &mut neighbours);
            let of = (PredicateId(predicate), direction);
            let read = store.lists(of, &keys, most, into, deadline);
            read.is_ok_and(|r| r).then_some((ends, neighbours))
        };
        let reply = match request {
            ShardRequest::Lists {
                predicate,
                direction,
                graphs: RequestGraphs::Default,
                merged,
                within,
                most,
                ..
            } => {
                let (mut ends, mut neighbours) = lists(*predicate, *direction, *most)?;
                if *within != EVERYTHING {
                    keep(*within, &mut ends, &mut neighbours);
                }
                let graphs = match merged {
                    true => Vec::new(),
                    false => vec![DEFAULT_GRAPH; neighbours.len()],
                };
                Reply::Lists {
                    ends,
                    neighbours,
                    graphs,
                }
            }
            ShardRequest::Contains {
                predicate,
                direction,
                graphs: RequestGraphs::Default,
                neighbours,
                ..
            } => {
                let (ends, all) = lists(*predicate, *direction, LOOKED_THROUGH)?;
                let mut start = 0;
                let there = |(&end, wanted): (&u32, &u32)| {
                    let list = all.get(start..end as usize).unwrap_or(&[]);
                    start = end as usize;
                    u8::from(list.binary_search(wanted).is_ok())
                };
                Reply::There(ends.iter().zip(neighbours).map(there).collect())
            }
            ShardRequest::Degrees {
                predicate,
                direction,
                ..
            } => {
                let of = (PredicateId(*predicate), *direction);
                let default = store.degrees(of, &keys, deadline).ok()??;
                let named = vec![0; default.len()];
                Reply::Degrees { default, named }
            }
            _ => return None,
        };
        self.read.fetch_add(1, Ordering::Relaxed);
        Some(reply)
    }
}

/// Removes ids outside an interval from sorted lists.
fn keep([from, to]: [u32; 2], ends: &mut [u32], neighbours: &mut Vec<u32>) {
    let (mut read, mut written) = (0, 0);
    for end in ends {
        let list = neighbours.get(read..*end as usize).unwrap_or(&[]);
        let first = list.partition_point(|&n| n < from);
        let last = list.partition_point(|&n| n < to).max(first);
        let kept = read + first..read + last;
        read = *end as usize;
        let len = kept.len();
        neighbours.copy_within(kept, written);
        written += len;
        *end = written as u32;
    }
    neighbours.truncate(written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_to_an_interval() {
        let mut ends = vec![3, 3, 5, 6];
        let mut neighbours = vec![1, 5, 9, 4, 5, 8];
        keep([4, 8], &mut ends, &mut neighbours);
        assert_eq!((ends, neighbours), (vec![1, 1, 3, 3], vec![5, 4, 5]));
    }

    #[test]
    fn reads_that_the_other_side_has_to_help_with_are_for_few_lists() {
        let mut cost = ReadTimes {
            ask: 40_000.0,
            one: 600.0,
            further: 30.0,
        };
        assert!([0, 1, 100, 1_000_000].iter().all(|&n| cost.reads(n)));
        // As over TCP, where each list is a message.
        cost = ReadTimes {
            ask: 40_000.0,
            one: 30_000.0,
            further: 15_000.0,
        };
        assert!(cost.reads(1) && !cost.reads(2));
    }
}
