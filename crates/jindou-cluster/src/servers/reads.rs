//! Reads of lists from another server's memory, instead of requests, if both servers have the same transport.
//!
//! ```text
//! owner    registers the files of each base ([`OfferedFiles`]) ─► announces a catalogue of each shard to the peers
//! reader   opens the catalogue, requests summaries of segments on first use ─► reads all lists of a request at once
//! ```
//!
//! A catalogue belongs to one base, so a query never reads lists of another base. Only lists of the default graph are
//! read. All other data is requested, and so are lists that a read does not deliver in time: a failed read is not an
//! error of the query. Times that are measured when a catalogue arrives decide between reading and requesting, since
//! some devices only emulate reads, so that the owner's processor has to take part in each read.

use super::own::ShardBases;
use super::peer::Peer;
use super::{CHUNK, SILENCE};
use crate::remote::{RemoteStore, expose};
use crate::shards::{Reply, RequestGraphs, ShardRequest, wire};
use crate::transport::{Transport, TransportError};
use jindou_graph::shard::{Blocks, EVERYTHING};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, DEFAULT_GRAPH, Direction, PredicateId};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Summaries may take this fraction (1/n) of the bytes of a shard's segments, or [`MIN_SUMMARY_BYTES`] if that is more.
const SUMMARY_SHARE: u64 = 20;
const MIN_SUMMARY_BYTES: u64 = 1 << 20;
/// Assumed time in nanoseconds that a peer needs to answer for one more list in a request.
const REQUESTED_LIST_NS: f64 = 60.0;
/// Number of samples that are measured of each access method when a shard is opened.
const SAMPLES: usize = 8;
/// Largest number of neighbours that are read to test whether edges exist.
const MAX_TESTED: u32 = 1 << 16;
/// Number of lists in the longer of the two reads that are measured.
const MANY_LISTS: u32 = 64;
/// Time for which memory stays registered after its withdrawal was announced. A peer that does not receive the
/// announcement considers the connection dead within [`SILENCE`], and a read takes no longer than that.
const LINGER: Duration = Duration::from_secs(10);
/// Size in bytes of a shard number, a base number and a length in an announcement.
const ENTRY_BYTES: usize = 16;
/// Longest wait for a summary.
const SUMMARY_WAIT: Duration = Duration::from_secs(60);

/// Files of this server's shards that peers may read.
pub struct OfferedFiles {
    transport: Arc<dyn Transport>,
    state: Mutex<OfferedState>,
}

#[derive(Default)]
struct OfferedState {
    /// Numbers of the bases that are served, in any order.
    served: Vec<u64>,
    registered: Vec<Registered>,
}

/// The registered files of one shard in one base.
struct Registered {
    shard: u32,
    base: u64,
    catalogue: Vec<u8>,
    regions: Vec<u64>,
}

impl OfferedFiles {
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            state: Mutex::default(),
        }
    }

    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Registers the shards of a base in the background, since some devices need time for each page. Calls `done`
    /// afterwards.
    pub fn put(
        self: &Arc<Self>,
        base: u64,
        bases: ShardBases,
        done: impl FnOnce() + Send + 'static,
    ) {
        lock(&self.state).served.push(base);
        let offered = Arc::clone(self);
        let register = move || {
            // The same base may have been registered before, with other files.
            offered.withdraw(|r| r.base == base);
            for (shard, of) in (0..).zip(&*bases) {
                let Some(of) = of else { continue };
                match expose(of, &*offered.transport) {
                    Ok((catalogue, regions)) => lock(&offered.state).registered.push(Registered {
                        shard,
                        base,
                        catalogue,
                        regions,
                    }),
                    Err(e) => tracing::warn!(
                        "other servers must request the lists of shard {shard}, since its files cannot be made readable: {e}"
                    ),
                }
            }
            // The base may have been released meanwhile.
            let served = lock(&offered.state).served.clone();
            offered.withdraw(|r| !served.contains(&r.base));
            done();
        };
        let thread = Builder::new().name("jindou-register".into());
        if let Err(e) = thread.spawn(register) {
            tracing::warn!("other servers must request lists: {e}");
        }
    }

    /// Withdraws the files of a base.
    pub fn release(self: &Arc<Self>, base: u64) {
        lock(&self.state).served.retain(|served| *served != base);
        self.withdraw(|r| r.base == base);
    }

    /// Stops offering the selected shards, and releases their memory after [`LINGER`].
    fn withdraw(self: &Arc<Self>, which: impl Fn(&Registered) -> bool) {
        let mut state = lock(&self.state);
        let old = state.registered.extract_if(.., |r| which(r));
        let old: Vec<u64> = old.flat_map(|r| r.regions).collect();
        drop(state);
        if old.is_empty() {
            return;
        }
        let offered = Arc::clone(self);
        let release = move || {
            std::thread::sleep(LINGER);
            old.into_iter()
                .for_each(|region| offered.transport.release(region));
        };
        // If no thread can be started, the memory stays registered.
        let _ = Builder::new().name("jindou-release".into()).spawn(release);
    }

    /// Encodes an announcement of the readable files, which must fit into one frame. Shards beyond that are left out;
    /// their lists are requested by message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&self.transport.address().unwrap_or_default(), &mut out);
        for r in &lock(&self.state).registered {
            if out.len() + ENTRY_BYTES + r.catalogue.len() > CHUNK {
                break;
            }
            out.extend_from_slice(&r.shard.to_le_bytes());
            out.extend_from_slice(&r.base.to_le_bytes());
            put(&r.catalogue, &mut out);
        }
        out
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A peer's announcement of the files that may be read.
pub struct Offers {
    address: Vec<u8>,
    /// Shard and base, with the catalogue.
    shards: Vec<(ShardName, Vec<u8>)>,
}

/// A shard and a base, by their numbers.
type ShardName = (u32, u64);

impl Offers {
    /// Decodes the bytes that [`OfferedFiles::to_bytes`] encodes; `None` if they are invalid.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let text = |bytes: &mut &[u8]| {
            let (length, rest) = bytes.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            *bytes = rest;
            Some(text.to_vec())
        };
        let address = text(&mut bytes)?;
        let mut shards = Vec::new();
        while !bytes.is_empty() {
            let (shard, rest) = bytes.split_first_chunk()?;
            let (base, rest) = rest.split_first_chunk()?;
            bytes = rest;
            let name = (u32::from_le_bytes(*shard), u64::from_le_bytes(*base));
            shards.push((name, text(&mut bytes)?));
        }
        Some(Self { address, shards })
    }
}

/// Measured times of the access methods, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ReadTimes {
    /// Time for a request and its reply.
    request: f64,
    /// Time for reading one list.
    first_list: f64,
    /// Additional time for each further list in the same read.
    next_list: f64,
}

impl ReadTimes {
    /// True if reading this many lists is faster than requesting them.
    fn reads(&self, lists: usize) -> bool {
        let further = lists.saturating_sub(1) as f64;
        self.first_list + further * self.next_list < self.request + REQUESTED_LIST_NS * lists as f64
    }
}

/// The shards that are read from a peer's memory while the peer is connected.
pub struct PeerReads {
    open: Mutex<FxHashMap<ShardName, Option<Arc<RemoteShard>>>>,
    work: Sender<Work>,
}

/// Tasks of the thread that opens a peer's shards and requests their summaries.
enum Work {
    Open(ShardName, Vec<u8>, Vec<u8>),
    Summary(ShardName, PredicateId, Direction),
}

impl PeerReads {
    /// Starts without open shards. The thread ends when the returned value is dropped.
    pub fn start(peer: &Arc<Peer>, transport: &Arc<dyn Transport>) -> Arc<Self> {
        let (work, todo) = channel();
        let reads = Arc::new(Self {
            open: Mutex::default(),
            work,
        });
        let opener = ShardOpener {
            reads: Arc::downgrade(&reads),
            peer: Arc::downgrade(peer),
            transport: Arc::clone(transport),
        };
        let thread = Builder::new().name("jindou-reads".into());
        if let Err(e) = thread.spawn(move || opener.run(&todo)) {
            tracing::warn!(server = peer.name(), "its lists are requested: {e}");
        }
        reads
    }

    /// Opens shards that are newly offered, and closes those that are no longer offered.
    pub fn set(&self, offers: Offers) {
        let Offers { address, shards } = offers;
        let mut open = lock(&self.open);
        open.retain(|name, _| shards.iter().any(|(offered, _)| offered == name));
        for (name, catalogue) in shards {
            open.entry(name).or_insert_with(|| {
                let _ = self.work.send(Work::Open(name, address.clone(), catalogue));
                None
            });
        }
    }

    /// The shard of this base, if it is open.
    pub fn shard(&self, shard: u32, base: u64) -> Option<Arc<RemoteShard>> {
        lock(&self.open).get(&(shard, base)).cloned().flatten()
    }
}

/// The thread of [`PeerReads`], which opens shards.
struct ShardOpener {
    reads: Weak<PeerReads>,
    peer: Weak<Peer>,
    transport: Arc<dyn Transport>,
}

impl ShardOpener {
    fn run(&self, todo: &Receiver<Work>) {
        for work in todo {
            match work {
                Work::Open(name, address, catalogue) => {
                    let opened = self.open(name, &address, &catalogue);
                    self.tell(name, opened);
                }
                Work::Summary(name, predicate, direction) => {
                    let put = self.fetch(name, predicate, direction);
                    self.tell(name, put);
                }
            }
        }
    }

    fn tell(&self, (shard, base): ShardName, result: Result<(), TransportError>) {
        if let Err(e) = result
            && let Some(peer) = self.peer.upgrade()
        {
            tracing::debug!(
                server = peer.name(),
                shard,
                base,
                "lists are requested, not read from its memory: {e}"
            );
        }
    }

    fn open(
        &self,
        name: ShardName,
        address: &[u8],
        catalogue: &[u8],
    ) -> Result<(), TransportError> {
        let link = self.transport.connect(address)?;
        let memory = |segments: u64| (segments / SUMMARY_SHARE).max(MIN_SUMMARY_BYTES);
        let work = self.reads.upgrade().map(|reads| reads.work.clone());
        let work = work.ok_or(TransportError::Closed)?;
        let want = Box::new(move |predicate, direction| {
            let _ = work.send(Work::Summary(name, predicate, direction));
        });
        let store = RemoteStore::open(link, catalogue, memory, want)?;
        let cost = self.measure(name, &store)?;
        let reads = self.reads.upgrade().ok_or(TransportError::Closed)?;
        if let Some(place) = lock(&reads.open).get_mut(&name) {
            *place = Some(Arc::new(RemoteShard {
                store,
                cost,
                has_failed: AtomicBool::new(false),
            }));
        }
        Ok(())
    }

    fn measure(
        &self,
        (shard, base): ShardName,
        store: &RemoteStore,
    ) -> Result<ReadTimes, TransportError> {
        let quickest = |once: &dyn Fn() -> Result<(), TransportError>| {
            let mut least = f64::MAX;
            for _ in 0..SAMPLES {
                let begun = Instant::now();
                once()?;
                least = least.min(begun.elapsed().as_nanos() as f64);
            }
            Ok::<_, TransportError>(least)
        };
        let nothing = ShardRequest::Terms { ids: Vec::new() };
        let ask = quickest(&|| self.ask((shard, base), nothing.clone()).map(drop))?;
        let deadline = || Instant::now() + SILENCE;
        let one = quickest(&|| store.touch(1, deadline()))?;
        let many = quickest(&|| store.touch(MANY_LISTS, deadline()))?;
        let further = (many - one).max(0.0) / f64::from(MANY_LISTS - 1);
        Ok(ReadTimes {
            request: ask,
            first_list: one,
            next_list: further,
        })
    }

    /// Requests a summary from the peer and adds it to the shard.
    fn fetch(
        &self,
        name: ShardName,
        predicate: PredicateId,
        direction: Direction,
    ) -> Result<(), TransportError> {
        let request = ShardRequest::Summary {
            predicate: predicate.0,
            direction,
        };
        let reply = self.ask(name, request)?;
        let Some(of) = self
            .reads
            .upgrade()
            .and_then(|reads| reads.shard(name.0, name.1))
        else {
            return Ok(());
        };
        match reply {
            Reply::Post(bytes) if of.store.put(predicate, direction, &bytes) => Ok(()),
            _ => Err(TransportError::Refused(
                "the peer sent a damaged summary".into(),
            )),
        }
    }

    fn ask(
        &self,
        (shard, base): ShardName,
        request: ShardRequest,
    ) -> Result<Reply, TransportError> {
        let peer = self.peer.upgrade().ok_or(TransportError::Closed)?;
        let body = wire::message(base, &[&(shard, request)]);
        let cancel = CancelToken::with_deadline(SUMMARY_WAIT);
        let waiting = peer.send(shard, body);
        let body = waiting.and_then(|waiting| waiting.wait(shard, &cancel));
        let body = body.map_err(|e| TransportError::Refused(e.to_string()))?;
        let reply = wire::replies(&body).and_then(|mut all| all.pop());
        reply.ok_or_else(|| TransportError::Refused("the peer's answer cannot be read".into()))
    }
}

/// A shard of a base on a peer, which is read from the peer's memory.
pub struct RemoteShard {
    store: RemoteStore,
    cost: ReadTimes,
    /// True once a read has failed. From then on all lists are requested by message.
    has_failed: AtomicBool,
}

impl RemoteShard {
    /// Time in nanoseconds for reading one list; `None` if requesting a single list is faster.
    pub fn one(&self) -> Option<f64> {
        self.cost.reads(1).then_some(self.cost.first_list)
    }

    /// Handles a failed read: from now on all lists are requested, unless the read only failed because the query's
    /// remaining time was short.
    #[cold]
    fn failed(&self, e: &TransportError, patience: Duration) {
        let is_late = matches!(e, TransportError::Deadline(_)) && patience < SILENCE;
        if !is_late && !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!("lists are requested from now on, since reading one failed: {e}");
        }
    }

    /// Replies to a request about a shard's edges in the default graph by reading memory; `None` if the request must be
    /// sent by message.
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
        if !self.cost.reads(keys.len()) || self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let own = |&key: &u32| {
            let place = blocks.place(key).filter(|p| p.shard == shard)?;
            Some(place.local.0)
        };
        let keys: Vec<u32> = keys.iter().map(own).collect::<Option<_>>()?;
        let patience = cancel.left().map_or(SILENCE, |left| left.min(SILENCE));
        let deadline = Instant::now() + patience;
        let lists = |predicate, direction, most| {
            let (mut ends, mut neighbours) = (Vec::new(), Vec::new());
            let into = (&mut ends, &mut neighbours);
            let of = (PredicateId(predicate), direction);
            let read = self.store.lists(of, &keys, most, into, deadline);
            if let Err(e) = &read {
                self.failed(e, patience);
            }
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
                let (ends, all) = lists(*predicate, *direction, MAX_TESTED)?;
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
                let default = self.store.degrees(of, &keys)?;
                let named = vec![0; default.len()];
                Reply::Degrees { default, named }
            }
            _ => return None,
        };
        Some(reply)
    }
}

/// Removes ids outside of an interval from sorted lists.
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
    fn announcements_come_back_and_others_are_refused() {
        let files = OfferedFiles::new(Arc::new(crate::transport::files::Files));
        let offered = |shard, base, catalogue: &[u8]| Registered {
            shard,
            base,
            catalogue: catalogue.to_vec(),
            regions: Vec::new(),
        };
        let all = [offered(3, u64::MAX, b"some"), offered(0, 7, b"")];
        lock(&files.state).registered.extend(all);
        let bytes = files.to_bytes();
        let offers = Offers::parse(&bytes).unwrap();
        assert!(offers.address.is_empty());
        let shards = [((3, u64::MAX), b"some".to_vec()), ((0, 7), Vec::new())];
        assert_eq!(offers.shards, shards);
        for cut in (1..4).chain(5..bytes.len()) {
            let is_between = cut == 4 + ENTRY_BYTES + 4;
            assert_eq!(Offers::parse(&bytes[..cut]).is_some(), is_between, "{cut}");
        }
        // Shards that do not fit into a frame are left out.
        let long = offered(1, 1, &vec![1; CHUNK]);
        lock(&files.state).registered.push(long);
        assert_eq!(files.to_bytes(), bytes);
    }

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
            request: 40_000.0,
            first_list: 600.0,
            next_list: 30.0,
        };
        assert!([0, 1, 100, 1_000_000].iter().all(|&n| cost.reads(n)));
        // As over TCP, where each list takes a message.
        cost = ReadTimes {
            request: 40_000.0,
            first_list: 30_000.0,
            next_list: 15_000.0,
        };
        assert!(cost.reads(1) && !cost.reads(2));
    }
}
