//! The asking side: one connection to a peer, dialled again whenever it ends, and the requests that wait on it.

use super::ServerEntry;
use super::frame::{self, FrameKind, FramePart};
use super::lane::{LOST, Lane};
use super::own::{Holding, holdings_of_bytes};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Error, Result};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Most bytes in one message of replies: lists count their neighbours in 32 bits.
pub const MAX_REPLY: usize = 24 << 30;
/// Beginning of the error text when nothing listens at a peer's address.
pub(super) const UNREACHABLE: &str = "it cannot be reached";

/// A peer from the asking side's point of view.
pub struct Peer {
    name: String,
    /// Address of a server of a cluster file; a peer of a log's list is dialled by its name.
    address: Option<String>,
    held: Held,
    pub(super) state: Mutex<PeerState>,
    pub(super) next: AtomicU64,
}

/// The shards that a peer has.
enum Held {
    /// The shards in the cluster file.
    Listed(Vec<u32>),
    /// The last announcement.
    Announced(Mutex<Vec<Holding>>),
}

pub(super) enum PeerState {
    /// The first dial has not ended.
    First,
    /// No connection, for this reason.
    Down(String),
    Up {
        /// Number of this connection among those to the peer.
        link: u64,
        /// Channel of outgoing frames. Its length is bounded by the number of waiting threads: each has one round in
        /// progress.
        out: UnboundedSender<FramePart>,
        waiting: FxHashMap<u64, Arc<ReplySlot>>,
        /// Lane that takes precedence over TLS, once the peer has accepted it.
        lane: Option<Arc<Lane>>,
    },
}

/// Slot for one reply, and the thread that waits for it.
pub(super) struct ReplySlot {
    thread: Thread,
    state: Mutex<SlotState>,
}

pub(super) enum SlotState {
    Coming(Vec<u8>),
    Done(Vec<u8>),
    /// The peer cannot answer for one of its shards, for this reason.
    Failed(u32, String),
    /// No reply can arrive any more, for this reason.
    Lost(String),
}

impl ReplySlot {
    fn is_done(&self) -> bool {
        !matches!(&*lock(&self.state), SlotState::Coming(_))
    }

    /// Ends the wait. The first result is kept: a reply stays valid even if its connection ends before it is taken.
    fn end(&self, ended: SlotState) {
        let mut state = lock(&self.state);
        if matches!(*state, SlotState::Coming(_)) {
            *state = ended;
        }
        drop(state);
        self.thread.unpark();
    }
}

/// A request in progress. If it is dropped, its reply is discarded.
pub struct PendingReply {
    peer: Arc<Peer>,
    number: u64,
    slot: Arc<ReplySlot>,
}

impl PendingReply {
    /// True once the reply is there, or cannot come any more.
    pub fn is_done(&self) -> bool {
        self.slot.is_done()
    }

    /// True if no reply can come any more.
    pub fn has_failed(&self) -> bool {
        matches!(
            &*lock(&self.slot.state),
            SlotState::Failed(..) | SlotState::Lost(_)
        )
    }

    /// Sleeps until the reply is there, at most for `limit`. Returns true if it is.
    ///
    /// # Errors
    /// The token's error.
    pub fn is_done_within(&self, limit: Duration, cancel: &CancelToken) -> Result<bool> {
        let begun = Instant::now();
        while !self.is_done() {
            cancel.check()?;
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            cancel.park_at_most(Some(left), || self.is_done());
        }
        Ok(true)
    }

    /// Sleeps until the reply is there, or `others` returns true.
    ///
    /// # Errors
    /// The token's error.
    pub fn park_until_done_or(
        &self,
        others: impl Fn() -> bool,
        cancel: &CancelToken,
    ) -> Result<()> {
        while !self.is_done() && !others() {
            cancel.check()?;
            cancel.park_unless(|| self.is_done() || others());
        }
        Ok(())
    }

    /// Sleeps until the reply arrives, and takes it.
    ///
    /// # Errors
    /// [`Error::Shard`] when the peer dies or cannot answer; the token's error.
    pub fn wait(self, shard: u32, cancel: &CancelToken) -> Result<Vec<u8>> {
        while !self.slot.is_done() {
            cancel.check()?;
            cancel.park_unless(|| self.slot.is_done());
        }
        let state = std::mem::replace(&mut *lock(&self.slot.state), SlotState::Coming(Vec::new()));
        match state {
            SlotState::Done(body) => Ok(body),
            SlotState::Failed(shard, why) => Err(self.peer.error(shard, &why)),
            SlotState::Lost(why) => Err(self.peer.error(shard, &why)),
            SlotState::Coming(_) => Err(Error::Internal("a reply was taken twice".into())),
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let PeerState::Up { waiting, .. } = &mut *lock(&self.peer.state) {
            waiting.remove(&self.number);
        }
    }
}

impl Peer {
    /// A server of a cluster file that has not been dialled yet.
    pub fn listed(entry: &ServerEntry) -> Self {
        let held = Held::Listed(entry.shards.clone());
        Self::new(entry.name.clone(), Some(entry.address.clone()), held)
    }

    /// A server of a log's list that has not been dialled yet.
    pub fn announcing(name: &str) -> Self {
        Self::new(name.to_owned(), None, Held::Announced(Mutex::default()))
    }

    fn new(name: String, address: Option<String>, held: Held) -> Self {
        Self {
            name,
            address,
            held,
            state: Mutex::new(PeerState::First),
            next: AtomicU64::new(1),
        }
    }

    /// The error of a query that needs data which the peer cannot deliver.
    pub fn error(&self, shard: u32, why: &str) -> Error {
        Error::Shard {
            shard,
            message: match &self.address {
                Some(address) => format!("server {} at {address}: {why}", self.name),
                None => format!("server {}: {why}", self.name),
            },
        }
    }

    /// True if the peer has this shard of this base.
    pub fn holds(&self, shard: u32, base: u64) -> bool {
        match &self.held {
            Held::Listed(shards) => shards.contains(&shard),
            Held::Announced(all) => lock(all)
                .iter()
                .any(|h| h.is_open && (h.shard, h.base) == (shard, base)),
        }
    }

    /// The last announcement; `None` while it is not connected, and for a server of a cluster file.
    pub fn holdings(&self) -> Option<Vec<Holding>> {
        self.outstanding()?;
        match &self.held {
            Held::Listed(_) => None,
            Held::Announced(all) => Some(lock(all).clone()),
        }
    }

    /// The error of a query that needs one of its shards, if the peer is not connected; `None` if it is connected or
    /// never had the shard.
    pub fn why_down(&self, shard: u32) -> Option<Error> {
        let had = match &self.held {
            Held::Listed(shards) => shards.contains(&shard),
            Held::Announced(all) => lock(all).iter().any(|h| h.shard == shard),
        };
        match &*lock(&self.state) {
            PeerState::Down(why) if had => Some(self.error(shard, why)),
            _ => None,
        }
    }

    /// Number of requests that wait for their replies, or 0 before the first dial has ended; `None` while the peer is
    /// not connected.
    pub fn outstanding(&self) -> Option<usize> {
        match &*lock(&self.state) {
            PeerState::First => self.address.is_some().then_some(0),
            PeerState::Down(_) => None,
            PeerState::Up { waiting, .. } => Some(waiting.len()),
        }
    }

    /// Sends requests. Waits for a connection only until the peer is first reached, or has not been reached within
    /// [`SILENCE`].
    ///
    /// # Errors
    /// [`Error::Shard`] while the peer is unreachable; the token's error.
    pub fn send(
        self: &Arc<Self>,
        shard: u32,
        body: Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<PendingReply> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(ReplySlot {
            thread: std::thread::current(),
            state: Mutex::new(SlotState::Coming(Vec::new())),
        });
        let lane = loop {
            match &mut *lock(&self.state) {
                PeerState::Up {
                    out, waiting, lane, ..
                } => {
                    waiting.insert(number, Arc::clone(&slot));
                    match lane {
                        Some(lane) => break Arc::clone(lane),
                        None => put(out, number, body),
                    }
                    return Ok(PendingReply {
                        peer: Arc::clone(self),
                        number,
                        slot,
                    });
                }
                PeerState::Down(why) => return Err(self.error(shard, why)),
                PeerState::First => {}
            }
            Self::wait_for_first(cancel)?;
        };
        let sent = PendingReply {
            peer: Arc::clone(self),
            number,
            slot,
        };
        if !lane.send(number, &body, cancel)?
            && let PeerState::Up { out, waiting, .. } = &mut *lock(&self.state)
            && waiting.contains_key(&number)
        {
            put(out, number, body);
        }
        Ok(sent)
    }

    /// The peer's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offers a lane to the peer, which must put this number before replies.
    pub fn offer(&self, offered: &Arc<Lane>, number: u64) {
        if let PeerState::Up { out, lane, .. } = &mut *lock(&self.state) {
            *lane = Some(Arc::clone(offered));
            tell(out, number);
        }
    }

    /// Sends everything over TLS from now on. Requests that were handed over to the lane and not answered fail.
    pub fn lane_ended(&self, ended: &Lane, why: &str) {
        if let PeerState::Up { out, lane, .. } = &mut *lock(&self.state) {
            if lane.take_if(|l| std::ptr::eq(&**l, ended)).is_none() {
                return;
            }
            tell(out, 0);
        }
        tracing::warn!(
            server = self.name(),
            "the lane over UCX broke, so TLS is used: {why}"
        );
        for number in ended.end() {
            self.lost(number, LOST);
        }
    }

    /// Fails a request that can no longer get a reply.
    pub fn lost(&self, number: u64, why: &str) {
        if let Some(slot) = self.slot(number) {
            slot.end(SlotState::Lost(why.to_owned()));
        }
    }

    /// Number of requests that its lane accepted; `None` without a lane that the peer has accepted.
    pub fn over_lane(&self) -> Option<u64> {
        self.lane().and_then(|lane| lane.taken())
    }

    /// The shards that the cluster file names for the peer.
    pub fn shards(&self) -> &[u32] {
        match &self.held {
            Held::Listed(shards) => shards,
            Held::Announced(_) => &[],
        }
    }

    /// The peer's lane.
    pub fn lane(&self) -> Option<Arc<Lane>> {
        match &*lock(&self.state) {
            PeerState::Up { lane, .. } => lane.clone(),
            _ => None,
        }
    }

    /// The number of the connection. Waits for the first one.
    ///
    /// # Errors
    /// [`Error::Shard`] while the peer is unreachable; the token's error.
    pub fn link(&self, shard: u32, cancel: &CancelToken) -> Result<u64> {
        loop {
            match &*lock(&self.state) {
                PeerState::Up { link, .. } => return Ok(*link),
                PeerState::Down(why) => return Err(self.error(shard, why)),
                PeerState::First => {}
            }
            Self::wait_for_first(cancel)?;
        }
    }

    /// Waits a moment for the first connection.
    fn wait_for_first(cancel: &CancelToken) -> Result<()> {
        cancel.check()?;
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Ends the connection's state: all waiting requests fail at once.
    pub(super) fn down(&self, why: &str) {
        let before = std::mem::replace(&mut *lock(&self.state), PeerState::Down(why.to_owned()));
        if let PeerState::Up { waiting, .. } = before {
            for slot in waiting.into_values() {
                slot.end(SlotState::Lost(why.to_owned()));
            }
        }
    }

    /// True if the reply of this request is still awaited.
    pub fn waits_for(&self, number: u64) -> bool {
        match &*lock(&self.state) {
            PeerState::Up { waiting, .. } => waiting.contains_key(&number),
            _ => false,
        }
    }

    fn slot(&self, number: u64) -> Option<Arc<ReplySlot>> {
        match &*lock(&self.state) {
            PeerState::Up { waiting, .. } => waiting.get(&number).cloned(),
            _ => None,
        }
    }

    /// Accepts a frame of a reply; frames for requests that are no longer awaited are discarded.
    pub(super) fn take(&self, frame: frame::Frame) -> io::Result<()> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        match (frame.kind, frame.number) {
            (FrameKind::Beat, _) => return Ok(()),
            (FrameKind::Holdings, _) => {
                let Some(all) = holdings_of_bytes(&frame.body).filter(|_| frame.last) else {
                    return invalid("what it says about its shards cannot be read");
                };
                if let Held::Announced(held) = &self.held {
                    *lock(held) = all;
                }
                return Ok(());
            }
            (FrameKind::Lane, number) => {
                match self.lane() {
                    Some(lane) if number == 0 => self.lane_ended(&lane, "it accepts none"),
                    Some(lane) => lane.accepted(number),
                    None => {}
                }
                return Ok(());
            }
            _ => {}
        }
        // A request sent over UCX may be answered here.
        if frame.last
            && let Some(lane) = self.lane()
        {
            lane.forget(frame.number);
        }
        let Some(slot) = self.slot(frame.number) else {
            return Ok(());
        };
        let done = {
            let mut state = lock(&slot.state);
            let SlotState::Coming(bytes) = &mut *state else {
                return Ok(());
            };
            if bytes.len() + frame.body.len() > MAX_REPLY {
                return invalid("its answer is longer than allowed");
            }
            if bytes.is_empty() {
                *bytes = frame.body;
            } else {
                bytes.extend_from_slice(&frame.body);
            }
            if !frame.last {
                return Ok(());
            }
            std::mem::take(bytes)
        };
        self.finish(frame.number, frame.kind, done).or_else(invalid)
    }

    /// Hands a complete reply to its waiting caller.
    ///
    /// # Errors
    /// For an invalid message.
    pub fn finish(
        &self,
        number: u64,
        kind: FrameKind,
        mut done: Vec<u8>,
    ) -> Result<(), &'static str> {
        let Some(slot) = self.slot(number) else {
            return Ok(());
        };
        match kind {
            FrameKind::Replies => slot.end(SlotState::Done(done)),
            FrameKind::Failure if done.len() >= 4 => {
                let why = done.split_off(4);
                let shard = done.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b));
                let why = String::from_utf8_lossy(&why).into_owned();
                slot.end(SlotState::Failed(shard, why));
            }
            _ => return Err("an answer to no request"),
        }
        Ok(())
    }
}

/// Puts all parts of a request in a row: the receiver assembles one message at a time.
fn put(out: &UnboundedSender<FramePart>, number: u64, body: Vec<u8>) {
    for part in frame::parts(FrameKind::Requests, number, body) {
        // A closed channel means that the connection has ended, which is reported to the waiting requests elsewhere.
        let _ = out.send(part);
    }
}

/// Tells the peer which number must precede its messages over UCX.
fn tell(out: &UnboundedSender<FramePart>, number: u64) {
    for part in frame::parts(FrameKind::Lane, number, Vec::new()) {
        let _ = out.send(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_reply_that_came_outlives_its_lane_and_connection() {
        let peer = Arc::new(Peer::listed(&ServerEntry {
            name: "a".into(),
            address: "127.0.0.1:1".into(),
            http: "h:1".into(),
            shards: vec![0],
            authority: "a".into(),
            certificate: "a".into(),
            key: "a".into(),
            devices: None,
        }));
        let (out, _parts) = unbounded_channel();
        *lock(&peer.state) = PeerState::Up {
            link: 1,
            out,
            waiting: FxHashMap::default(),
            lane: None,
        };
        let token = CancelToken::new();
        let came = peer.send(0, vec![1], &token).unwrap();
        let coming = peer.send(0, vec![2], &token).unwrap();
        let (first, second) = (came.number, coming.number);
        peer.finish(first, FrameKind::Replies, vec![7]).unwrap();
        peer.lost(first, LOST);
        peer.lost(second, LOST);
        peer.down("it closed the connection");
        assert_eq!(came.wait(0, &token).unwrap(), [7]);
        let e = coming.wait(0, &token).unwrap_err().to_string();
        assert!(e.contains(LOST), "{e}");
    }
}
