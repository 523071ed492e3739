//! The asking side of a lane.

use super::super::frame::FrameKind;
use super::super::peer::{MAX_REPLY, Peer};
use super::super::reads::Reads;
use super::super::{BEAT, SILENCE};
use super::parts::{Assembly, LanePart};
use super::{ALIVE, IN_WORK, LaneEnd, secret};
use crate::transport::{self, Epoch, Transport, TransportError};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Result};
use rustc_hash::FxHashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Error of a request that was handed over to UCX and lost.
pub const LOST: &str = "its lane over UCX broke";

/// Time after which a peer that accepts nothing over UCX loses its lane, even if it is heard over TLS: as long as for
/// TLS, since queries wait meanwhile.
const DEAF: Duration = SILENCE;

/// The lane of the connection to a peer.
pub struct Lane {
    end: Arc<LaneEnd>,
    peer: Arc<Peer>,
    link: Arc<dyn transport::Peer>,
    /// Number that precedes replies.
    own: u64,
    /// Number that precedes requests, once the peer has sent it.
    theirs: OnceLock<u64>,
    /// Requests without a reply yet, by number; `None` once the lane has ended.
    under_way: Mutex<Option<FxHashMap<u64, UnderWay>>>,
    /// Number of requests that were handed over.
    taken: AtomicU64,
    /// Held while a multi-part request is sent.
    long: Mutex<()>,
    /// The peer's shards, once they can be read.
    reads: OnceLock<Reads>,
}

#[derive(Default)]
struct UnderWay {
    /// True if all of it was handed over.
    is_sent: bool,
    reply: Assembly,
}

impl Lane {
    /// Records that the peer accepts requests preceded by this number.
    pub fn accepted(&self, number: u64) {
        let _ = self.theirs.set(number);
    }

    /// Number of requests handed over; `None` before the peer has accepted the lane.
    pub fn taken(&self) -> Option<u64> {
        self.theirs
            .get()
            .map(|_| self.taken.load(Ordering::Relaxed))
    }

    /// Sends a request; false if it has to be sent over TLS.
    ///
    /// # Errors
    /// The token's errors.
    pub fn send(&self, number: u64, message: &[u8], cancel: &CancelToken) -> Result<bool> {
        let Some(&theirs) = self.theirs.get() else {
            return Ok(false);
        };
        // The peer keeps parts of only a few requests at a time.
        let long = (message.len() > super::parts::PART).then(|| self.long.try_lock());
        let _long = match long {
            None => None,
            Some(Ok(held)) => Some(held),
            Some(Err(TryLockError::Poisoned(e))) => Some(PoisonError::into_inner(e)),
            Some(Err(TryLockError::WouldBlock)) => return Ok(false),
        };
        match &mut *lock(&self.under_way) {
            Some(all) if all.len() < IN_WORK => all.insert(number, UnderWay::default()),
            _ => return Ok(false),
        };
        let patience = || match cancel.check() {
            Ok(()) => cancel.left().map_or(SILENCE, |left| left.min(SILENCE)),
            Err(_) => Duration::ZERO,
        };
        let to = (theirs, number, FrameKind::Requests);
        if let Err(e) = self.end.send(&*self.link, to, message, patience) {
            self.forget(number);
            // A timeout of this query, or a slow peer, must not fail the requests of others.
            if !matches!(e, TransportError::Deadline { .. }) {
                self.peer.lane_ended(self, &e.to_string());
            }
            cancel.check()?;
            return Ok(false);
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        let has_ended = match &mut *lock(&self.under_way) {
            Some(all) => {
                // It has been removed if its reply has arrived.
                if let Some(one) = all.get_mut(&number) {
                    one.is_sent = true;
                }
                false
            }
            None => true,
        };
        if has_ended {
            self.peer.lost(number, LOST);
        }
        Ok(true)
    }

    /// Accepts a part of a reply.
    ///
    /// # Errors
    /// For an invalid part.
    pub(super) fn take(&self, part: &LanePart<'_>) -> Result<(), &'static str> {
        let is_unwanted = !part.is_whole() && !self.peer.waits_for(part.number);
        let taken = {
            let mut under_way = lock(&self.under_way);
            let all = under_way.as_mut().ok_or("the lane has ended")?;
            // For example a reply to a request that was answered over TLS in the end.
            let Some(one) = all.get_mut(&part.number) else {
                return Ok(());
            };
            if is_unwanted {
                one.reply.throw_away();
            }
            let taken = one.reply.put(part, MAX_REPLY);
            if let Ok(Some(_)) = taken {
                all.remove(&part.number);
            }
            taken
        };
        let ended = match taken {
            Ok(None) => return Ok(()),
            Ok(Some(body)) => self.peer.finish(part.number, part.kind, body),
            Err(what) => Err(what),
        };
        if let Err(what) = ended {
            self.peer.lane_ended(self, what);
        }
        ended
    }

    /// Stops waiting for a request's reply.
    pub fn forget(&self, number: u64) {
        if let Some(all) = &mut *lock(&self.under_way) {
            all.remove(&number);
        }
    }

    /// Stops accepting requests; returns the requests that were handed over.
    pub fn end(&self) -> Vec<u64> {
        let all = lock(&self.under_way).take().unwrap_or_default();
        let sent = all.into_iter().filter(|(_, one)| one.is_sent);
        sent.map(|(number, _)| number).collect()
    }

    /// Access to the peer's shards by reading, while the lane lives.
    pub fn reads(&self) -> Option<&Reads> {
        let reads = self.reads.get()?;
        (!self.has_ended()).then_some(reads)
    }

    /// Opens the peer's shards for reading; true if no further attempt is needed.
    fn open_reads(&self) -> bool {
        match Reads::open(&self.end, &self.link, self.peer.shards()) {
            Ok(Some(reads)) => {
                let _ = self.reads.set(reads);
                true
            }
            Ok(None) => false,
            Err(e) => {
                tracing::debug!(
                    server = self.peer.name(),
                    "its lists are requested by message, not read from its memory: {e}"
                );
                true
            }
        }
    }

    fn has_ended(&self) -> bool {
        lock(&self.under_way).is_none()
    }

    /// True if a request still waits for its reply.
    fn is_busy(&self) -> bool {
        lock(&self.under_way)
            .as_ref()
            .is_some_and(|all| !all.is_empty())
    }
}

/// A lane in its end's table, until it is dropped.
struct AskingLane(Arc<Lane>);

impl Drop for AskingLane {
    fn drop(&mut self) {
        lock(&self.0.end.tables.asking).remove(&self.0.own);
        self.0.end();
        self.0.link.close();
    }
}

/// A connection that is closed on drop unless it is taken out.
struct Connected(Option<Arc<dyn transport::Peer>>);

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.close();
        }
    }
}

/// Opens a peer's lane and watches it until it ends. Must be dropped together with the connection.
pub async fn keep(peer: &Arc<Peer>, end: &Arc<LaneEnd>, address: SocketAddr) {
    let ours = Arc::clone(end);
    let connecting = tokio::task::spawn_blocking(move || {
        let link = ours.connect(address)?;
        Ok::<_, TransportError>(Connected(Some(link)))
    });
    let link = match connecting.await {
        Ok(Ok(mut connected)) => connected.0.take(),
        Ok(Err(e)) => {
            tracing::warn!(
                server = peer.name(),
                "no lane over UCX, so TLS is used: {e}"
            );
            None
        }
        Err(_) => None,
    };
    let (Some(link), Some(own)) = (link, secret()) else {
        return;
    };
    let open = AskingLane(Arc::new(Lane {
        end: Arc::clone(end),
        peer: Arc::clone(peer),
        link,
        own,
        theirs: OnceLock::new(),
        under_way: Mutex::new(Some(FxHashMap::default())),
        taken: AtomicU64::new(0),
        long: Mutex::new(()),
        reads: OnceLock::new(),
    }));
    lock(&end.tables.asking).insert(own, Arc::clone(&open.0));
    peer.offer(&open.0, own);
    // On a thread, since it waits for the peer; the thread ends with the lane at the latest.
    if end.shelf().is_some() {
        let lane = Arc::clone(&open.0);
        let opening = move || {
            let mut pause = BEAT / 10;
            while !lane.has_ended() && !lane.open_reads() {
                std::thread::sleep(pause);
                // A peer that cannot summarise its segments never gets any further.
                pause = (2 * pause).min(2 * BEAT);
            }
        };
        let _ = Builder::new().name("jindou-reads".into()).spawn(opening);
    }
    watch(&open.0).await;
}

/// Ends a lane when its connection fails, or when no data passes although the connection seems to work. Returns once
/// the lane has ended.
async fn watch(lane: &Arc<Lane>) {
    let mut looked = Instant::now();
    let mut asked: Option<JoinHandle<Result<(), TransportError>>> = None;
    while !lane.has_ended() {
        if let Some(why) = lane.link.failure() {
            lane.peer.lane_ended(lane, &why);
        }
        if let Some(answer) = asked.take_if(|a| a.is_finished()) {
            looked = Instant::now();
            match answer.join() {
                Ok(Err(e)) if !matches!(e, TransportError::Refused(_)) => {
                    lane.peer.lane_ended(lane, &e.to_string());
                }
                _ => {}
            }
        }
        if asked.is_none() && looked.elapsed() >= BEAT && lane.is_busy() {
            let lane = Arc::clone(lane);
            let call = move || {
                let deadline = lane.end.transport.deadline(DEAF);
                let mut nothing = Vec::new();
                lane.link.call(ALIVE, Epoch(0), &[], &mut nothing, deadline)
            };
            // All of the runtime's threads may be waiting for replies of this lane.
            asked = Builder::new().name("jindou-lane".into()).spawn(call).ok();
        }
        tokio::time::sleep(BEAT / 5).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tables;
    use super::super::parts::{PART, parts, read, write};
    use super::*;
    use crate::servers::ServerEntry;
    use crate::transport::ucx::{Fabric, UcxOptions, UcxTransport, available};
    use crate::transport::{ByteRange, Moment, RegionDescriptor, RemoteRegion};

    /// A connection that seems to work but passes no data.
    struct Deaf;

    impl transport::Peer for Deaf {
        fn name(&self) -> &str {
            "deaf"
        }

        fn epoch(&self) -> Epoch {
            Epoch(0)
        }

        fn failure(&self) -> Option<String> {
            None
        }

        fn attach(&self, _: &RegionDescriptor) -> transport::Result<RemoteRegion> {
            Err(TransportError::Closed)
        }

        fn read_many(
            &self,
            _: RemoteRegion,
            _: &[ByteRange],
            _: &mut [u8],
            _: Moment,
        ) -> transport::Result<()> {
            Err(TransportError::Closed)
        }

        fn call(
            &self,
            _: u16,
            _: Epoch,
            _: &[u8],
            _: &mut Vec<u8>,
            _: Moment,
        ) -> transport::Result<()> {
            Err(TransportError::Deadline {
                peer: "deaf".into(),
                waited: DEAF,
            })
        }

        fn send(&self, _: u16, _: Epoch, _: &[u8], _: Moment) -> transport::Result<()> {
            Ok(())
        }

        fn close(&self) {}
    }

    /// A lane over a deaf connection, without any waiting caller, that accepted one request.
    fn lane() -> Option<Arc<Lane>> {
        if let Err(e) = available() {
            println!("skipped: {e}");
            return None;
        }
        let end = LaneEnd {
            transport: UcxTransport::new(UcxOptions::loopback(Fabric::SharedMemory)).unwrap(),
            tables: Arc::<Tables>::default(),
            shelf: None,
            port: 0,
        };
        let entry = ServerEntry {
            name: "a".into(),
            address: "127.0.0.1:1".into(),
            http: "h:1".into(),
            shards: vec![0],
            authority: "a".into(),
            certificate: "a".into(),
            key: "a".into(),
            devices: None,
        };
        let lane = Arc::new(Lane {
            end: Arc::new(end),
            peer: Arc::new(Peer::listed(&entry)),
            link: Arc::new(Deaf),
            own: 1,
            theirs: OnceLock::new(),
            under_way: Mutex::new(Some(FxHashMap::default())),
            taken: AtomicU64::new(0),
            long: Mutex::new(()),
            reads: OnceLock::new(),
        });
        lane.accepted(2);
        assert!(lane.send(9, b"some", &CancelToken::new()).unwrap());
        Some(lane)
    }

    #[test]
    fn a_reply_that_nobody_waits_for_is_not_kept() {
        let Some(lane) = lane() else {
            return;
        };
        let message = vec![7; 3 * PART + 1];
        let all = parts(&message);
        let count = all.len() as u32;
        for (at, body) in all {
            let mut bytes = Vec::new();
            write(1, 9, FrameKind::Replies, (at, count), body, &mut bytes);
            lane.take(&read(&bytes).unwrap()).unwrap();
            let under_way = lock(&lane.under_way);
            let one = under_way.as_ref().unwrap().get(&9);
            assert_eq!(one.map(|one| one.reply.bytes()), (at < 3).then_some(0));
        }
        assert!(!lane.is_busy());
    }

    #[test]
    fn a_lane_through_which_nothing_comes_ends() {
        let Some(lane) = lane() else {
            return;
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let ended = async { tokio::time::timeout(4 * DEAF, watch(&lane)).await };
        runtime.block_on(ended).unwrap();
        let again = lane.send(10, b"some", &CancelToken::new()).unwrap();
        assert!(!again, "it goes over TLS");
    }
}
