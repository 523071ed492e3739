//! The asking side: the connection to a peer, which is dialled again whenever it ends, and the requests that wait on
//! it.

use super::frame::{self, FrameKind, FramePart};
use super::own::{Announcement, Holding};
use super::reads::{Offers, PeerReads, RemoteShard};
use crate::transport::Transport;
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Error, Result};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Largest message of replies in bytes: lists count their neighbours in 32 bits.
const MAX_REPLY: usize = 24 << 30;

/// A peer, as the asking side knows it.
pub struct Peer {
    name: String,
    /// The peer's latest announcement.
    announced: Mutex<Announcement>,
    /// Access to the peer's files; `None` if they cannot be read.
    reads: Mutex<Option<Arc<PeerReads>>>,
    state: Mutex<PeerState>,
    next: AtomicU64,
}

enum PeerState {
    /// Not connected, for this reason.
    Down(String),
    Up {
        /// Number of this connection; each connection to the peer has another one.
        link: u64,
        /// Channel of outgoing frames. Its length is bounded by the number of waiting threads, since each has one round
        /// in progress.
        out: UnboundedSender<FramePart>,
        waiting: FxHashMap<u64, Arc<ReplySlot>>,
    },
}

/// Slot for the reply to a request, and the thread that waits for it.
struct ReplySlot {
    thread: Thread,
    state: Mutex<SlotState>,
}

enum SlotState {
    Coming(Vec<u8>),
    Done(Vec<u8>),
    /// The peer cannot answer for this shard, for this reason.
    Failed(u32, String),
    /// The reply can no longer arrive, for this reason.
    Lost(String),
}

impl ReplySlot {
    fn is_done(&self) -> bool {
        !matches!(&*lock(&self.state), SlotState::Coming(_))
    }

    /// Ends the wait. Only the first result counts: a reply stays valid even if the connection ends before the reply is
    /// taken.
    fn end(&self, ended: SlotState) {
        let mut state = lock(&self.state);
        if matches!(*state, SlotState::Coming(_)) {
            *state = ended;
        }
        drop(state);
        self.thread.unpark();
    }
}

/// A request whose reply is pending. If this is dropped, the reply is discarded.
pub struct PendingReply {
    peer: Arc<Peer>,
    number: u64,
    slot: Arc<ReplySlot>,
}

impl PendingReply {
    /// True once the reply has arrived, or can no longer arrive.
    pub fn is_done(&self) -> bool {
        self.slot.is_done()
    }

    /// True if the request has failed, so that no reply will arrive.
    pub fn has_failed(&self) -> bool {
        matches!(
            &*lock(&self.slot.state),
            SlotState::Failed(..) | SlotState::Lost(_)
        )
    }

    /// Sleeps until the reply has arrived or failed, at most for `limit`. Returns true if it has.
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

    /// Sleeps until the reply has arrived or failed, or `others` returns true.
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

    /// Sleeps until the reply has arrived, and returns it.
    ///
    /// # Errors
    /// [`Error::Shard`] if the peer dies or cannot answer; the token's error.
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
    /// Creates a peer that is not connected yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            announced: Mutex::default(),
            reads: Mutex::default(),
            state: Mutex::new(PeerState::Down("it has not been reached yet".into())),
            next: AtomicU64::new(1),
        }
    }

    /// The peer's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The error of a query that needs data of a shard which the peer cannot deliver.
    pub fn error(&self, shard: u32, why: &str) -> Error {
        Error::shard(shard, format!("server {}: {why}", self.name))
    }

    /// True if the peer holds this shard of this base, open for reading.
    pub fn holds(&self, shard: u32, base: u64) -> bool {
        let all = lock(&self.announced);
        all.holdings
            .iter()
            .any(|h| h.is_open && (h.shard, h.base) == (shard, base))
    }

    /// The bases that the peer holds, according to its latest announcement; `None` while it is not connected.
    pub fn holdings(&self) -> Option<Vec<Holding>> {
        self.outstanding()?;
        Some(lock(&self.announced).holdings.clone())
    }

    /// The oldest base that the peer reads, according to its latest announcement; `None` while it is not connected.
    pub fn oldest_in_use(&self) -> Option<u64> {
        self.outstanding()?;
        Some(lock(&self.announced).oldest_in_use)
    }

    /// The shards that the peer holds, according to its latest announcement, connected or not.
    pub fn last_shards(&self) -> Vec<u32> {
        let all = lock(&self.announced);
        all.holdings.iter().map(|h| h.shard).collect()
    }

    /// The error of a query that needs a shard of the peer, if the peer holds that shard and is not connected;
    /// otherwise `None`.
    pub fn why_down(&self, shard: u32) -> Option<Error> {
        let had = self.last_shards().contains(&shard);
        match &*lock(&self.state) {
            PeerState::Down(why) if had => Some(self.error(shard, why)),
            _ => None,
        }
    }

    /// Number of requests that wait for replies; `None` while the peer is not connected.
    pub fn outstanding(&self) -> Option<usize> {
        match &*lock(&self.state) {
            PeerState::Down(_) => None,
            PeerState::Up { waiting, .. } => Some(waiting.len()),
        }
    }

    /// Sends a message of requests. `shard` is named in errors.
    ///
    /// # Errors
    /// [`Error::Shard`] while the peer is unreachable.
    pub fn send(self: &Arc<Self>, shard: u32, body: Vec<u8>) -> Result<PendingReply> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(ReplySlot {
            thread: std::thread::current(),
            state: Mutex::new(SlotState::Coming(Vec::new())),
        });
        match &mut *lock(&self.state) {
            PeerState::Up { out, waiting, .. } => {
                waiting.insert(number, Arc::clone(&slot));
                put(out, number, body);
            }
            PeerState::Down(why) => return Err(self.error(shard, why)),
        }
        Ok(PendingReply {
            peer: Arc::clone(self),
            number,
            slot,
        })
    }

    /// Number of the current connection.
    ///
    /// # Errors
    /// [`Error::Shard`] while the peer is unreachable.
    pub fn link(&self, shard: u32) -> Result<u64> {
        match &*lock(&self.state) {
            PeerState::Up { link, .. } => Ok(*link),
            PeerState::Down(why) => Err(self.error(shard, why)),
        }
    }

    /// Starts a connection, whose outgoing frames are sent to this channel.
    pub(super) fn up(&self, out: UnboundedSender<FramePart>) {
        *lock(&self.state) = PeerState::Up {
            link: self.next.fetch_add(1, Ordering::Relaxed),
            out,
            waiting: FxHashMap::default(),
        };
    }

    /// Access to the peer's shard by reading its memory; `None` if that is not possible (yet).
    pub fn remote(&self, shard: u32, base: u64) -> Option<Arc<RemoteShard>> {
        lock(&self.reads).as_ref()?.shard(shard, base)
    }

    /// Ends the connection: all pending requests fail at once.
    pub(super) fn down(&self, why: &str) {
        *lock(&self.reads) = None;
        let before = std::mem::replace(&mut *lock(&self.state), PeerState::Down(why.to_owned()));
        if let PeerState::Up { waiting, .. } = before {
            for slot in waiting.into_values() {
                slot.end(SlotState::Lost(why.to_owned()));
            }
        }
    }

    fn slot(&self, number: u64) -> Option<Arc<ReplySlot>> {
        match &*lock(&self.state) {
            PeerState::Up { waiting, .. } => waiting.get(&number).cloned(),
            _ => None,
        }
    }

    /// Handles a received frame. Frames of replies that are no longer awaited are discarded. With a transport, the
    /// memory that the peer offers is opened for reading.
    pub(super) fn take(
        self: &Arc<Self>,
        frame: frame::Frame,
        transport: Option<&Arc<dyn Transport>>,
    ) -> io::Result<()> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        match frame.kind {
            FrameKind::Beat => return Ok(()),
            FrameKind::Holdings => {
                let Some(all) = Announcement::parse(&frame.body).filter(|_| frame.last) else {
                    return invalid("what it says about its shards cannot be read");
                };
                *lock(&self.announced) = all;
                return Ok(());
            }
            FrameKind::Memory => {
                let Some(offers) = Offers::parse(&frame.body).filter(|_| frame.last) else {
                    return invalid("what it says about its memory cannot be read");
                };
                if let Some(transport) = transport {
                    let mut reads = lock(&self.reads);
                    let reads = reads.get_or_insert_with(|| PeerReads::start(self, transport));
                    reads.set(offers);
                }
                return Ok(());
            }
            _ => {}
        }
        let Some(slot) = self.slot(frame.number) else {
            return Ok(());
        };
        let mut done = {
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
        match frame.kind {
            FrameKind::Replies => slot.end(SlotState::Done(done)),
            FrameKind::Failure if done.len() >= 4 => {
                let why = done.split_off(4);
                let shard = done.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b));
                let why = String::from_utf8_lossy(&why).into_owned();
                slot.end(SlotState::Failed(shard, why));
            }
            _ => return invalid("an answer to no request"),
        }
        Ok(())
    }
}

/// Queues all frames of a message together, because the receiver assembles only one message at a time.
fn put(out: &UnboundedSender<FramePart>, number: u64, body: Vec<u8>) {
    for part in frame::parts(FrameKind::Requests, number, body) {
        // A closed channel means that the connection has ended; the pending requests are notified of that elsewhere.
        let _ = out.send(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_reply_that_came_outlives_its_connection() {
        let peer = Arc::new(Peer::new("a"));
        assert!(peer.send(0, vec![1]).is_err());
        let (out, _parts) = unbounded_channel();
        peer.up(out);
        let token = CancelToken::new();
        let came = peer.send(0, vec![1]).unwrap();
        let coming = peer.send(0, vec![2]).unwrap();
        let reply = frame::Frame {
            kind: FrameKind::Replies,
            last: true,
            number: came.number,
            body: vec![7],
        };
        peer.take(reply, None).unwrap();
        peer.down("it closed the connection");
        assert_eq!(came.wait(0, &token).unwrap(), [7]);
        let e = coming.wait(0, &token).unwrap_err().to_string();
        assert!(e.contains("server a: it closed"), "{e}");
    }
}
