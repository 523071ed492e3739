//! The asking side: one connection to a peer, dialled again whenever it ends, and the requests that wait on it.

use super::frame::{self, FrameKind, FramePart, Hello};
use super::lane::{self, LOST, Lane};
use super::{CHUNK, SILENCE, ServerEntry, ServerState};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Error, Result};
use rustc_hash::FxHashMap;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;
use tokio::io::{BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Most bytes in one message of replies: lists count their neighbours in 32 bits.
pub const MAX_REPLY: usize = 24 << 30;
/// Beginning of the error text when nothing listens at a peer's address.
const UNREACHABLE: &str = "it cannot be reached";
/// Pauses before the first and the last attempts to dial again.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A peer from the asking side's point of view.
pub struct Peer {
    entry: ServerEntry,
    state: Mutex<PeerState>,
    next: AtomicU64,
}

enum PeerState {
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
struct ReplySlot {
    thread: Thread,
    state: Mutex<SlotState>,
}

enum SlotState {
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
pub struct PendingReply<'a> {
    peer: &'a Peer,
    number: u64,
    slot: Arc<ReplySlot>,
}

impl PendingReply<'_> {
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

impl Drop for PendingReply<'_> {
    fn drop(&mut self) {
        if let PeerState::Up { waiting, .. } = &mut *lock(&self.peer.state) {
            waiting.remove(&self.number);
        }
    }
}

impl Peer {
    /// A peer that has not been dialled yet.
    pub fn new(entry: &ServerEntry) -> Self {
        Self {
            entry: entry.clone(),
            state: Mutex::new(PeerState::First),
            next: AtomicU64::new(1),
        }
    }

    /// The error of a query that needs data which the peer cannot deliver.
    pub fn error(&self, shard: u32, why: &str) -> Error {
        Error::Shard {
            shard,
            message: format!(
                "server {} at {}: {why}",
                self.entry.name, self.entry.address
            ),
        }
    }

    /// Sends requests. Waits for a connection only until the peer is first reached, or has not been reached within
    /// [`SILENCE`].
    ///
    /// # Errors
    /// [`Error::Shard`] while the peer is unreachable; the token's error.
    pub fn send(
        &self,
        shard: u32,
        body: Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<PendingReply<'_>> {
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
                        peer: self,
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
            peer: self,
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
        &self.entry.name
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

    /// The shards that the peer holds.
    pub fn shards(&self) -> &[u32] {
        &self.entry.shards
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
    fn down(&self, why: &str) {
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
    fn take(&self, frame: frame::Frame) -> io::Result<()> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        match (frame.kind, frame.number) {
            (FrameKind::Beat, _) => return Ok(()),
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

type Stream = TlsStream<TcpStream>;

/// Dials a server and introduces this one.
async fn dial(
    entry: &ServerEntry,
    tls: &Arc<ClientConfig>,
    hello: &Hello,
) -> Result<(Stream, ServerState), String> {
    let dialled = async {
        let tcp = TcpStream::connect(&entry.address)
            .await
            .map_err(|e| format!("{UNREACHABLE}: {e}"))?;
        // Requests are small, and callers wait for them.
        let _ = tcp.set_nodelay(true);
        let name = ServerName::try_from(entry.name.clone()).map_err(|e| e.to_string())?;
        let mut stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, tcp)
            .await
            .map_err(|e| format!("TLS with it failed: {e}"))?;
        let talked = async {
            frame::send(&mut stream, FrameKind::Hello, hello.to_bytes()).await?;
            frame::read(&mut stream, CHUNK).await
        };
        let reply = talked
            .await
            .map_err(|e| format!("it accepts no connections: {e}"))?;
        match reply.kind {
            FrameKind::Welcome => {}
            FrameKind::Refusal => {
                return Err(format!(
                    "it refuses: {}",
                    String::from_utf8_lossy(&reply.body)
                ));
            }
            _ => return Err("it did not answer the introduction".into()),
        }
        let state = ServerState::parse(&reply.body).ok_or("its introduction cannot be read")?;
        if state.name != entry.name {
            return Err(format!("it says that it is server {}", state.name));
        }
        Ok((stream, state))
    };
    timeout(SILENCE, dialled).await.unwrap_or_else(|_| {
        let seconds = SILENCE.as_secs_f64();
        Err(format!("it did not answer within {seconds} s"))
    })
}

/// Requests the state of a server with a single message.
pub async fn state_of(
    entry: &ServerEntry,
    tls: &Arc<ClientConfig>,
    hello: &Hello,
) -> Result<ServerState, String> {
    dial(entry, tls, hello).await.map(|found| found.1)
}

/// Keeps a connection to a peer up; never returns.
pub async fn keep_up(
    peer: Arc<Peer>,
    tls: Arc<ClientConfig>,
    hello: Hello,
    lanes: Option<Arc<lane::LaneEnd>>,
) {
    let mut pause = BACK_OFF[0];
    // Servers that are started together do not listen at once: until then queries wait, as during the first dial.
    let begun = tokio::time::Instant::now();
    let mut met = false;
    loop {
        let fits = dial(&peer.entry, &tls, &hello)
            .await
            .and_then(|(stream, state)| {
                if state.identity != hello.identity {
                    return Err("it serves the data of another load".into());
                }
                if state.shards != peer.entry.shards {
                    return Err(format!(
                        "it holds shards {:?}, but the cluster file says {:?}",
                        state.shards, peer.entry.shards
                    ));
                }
                Ok((stream, state.ucx))
            });
        match fits {
            Ok((stream, port)) => {
                pause = BACK_OFF[0];
                met = true;
                let lanes = lanes.as_ref().filter(|_| port != 0);
                let why = talk(&peer, stream, lanes.map(|l| (l, port))).await;
                peer.down(&why);
            }
            Err(why) if !met && why.starts_with(UNREACHABLE) && begun.elapsed() < SILENCE => {}
            Err(why) => peer.down(&why),
        }
        tokio::time::sleep(pause).await;
        pause = BACK_OFF[1].min(2 * pause);
    }
}

/// Sends and receives until the connection ends; returns the reason.
async fn talk(
    peer: &Arc<Peer>,
    stream: Stream,
    lanes: Option<(&Arc<lane::LaneEnd>, u16)>,
) -> String {
    let address = stream.get_ref().0.peer_addr();
    let (from, to) = tokio::io::split(stream);
    let (mut from, mut to) = (
        BufReader::with_capacity(CHUNK, from),
        BufWriter::with_capacity(CHUNK, to),
    );
    let (out, mut parts) = unbounded_channel();
    *lock(&peer.state) = PeerState::Up {
        link: peer.next.fetch_add(1, Ordering::Relaxed),
        out,
        waiting: FxHashMap::default(),
        lane: None,
    };
    let lane = async {
        if let (Some((end, port)), Ok(address)) = (lanes, address) {
            lane::keep(peer, end, SocketAddr::new(address.ip(), port)).await;
        }
        std::future::pending().await
    };
    let reading = async {
        loop {
            let frame = frame::read(&mut from, CHUNK).await?;
            peer.take(frame)?;
        }
    };
    let writing = frame::write_all(&mut to, |cx| parts.poll_recv(cx));
    let ended: io::Result<()> = tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
        () = lane => Ok(()),
    };
    match ended {
        Ok(()) => "the connection ended".into(),
        Err(e) => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_came_outlives_its_lane_and_connection() {
        let peer = Peer::new(&ServerEntry {
            name: "a".into(),
            address: "127.0.0.1:1".into(),
            http: "h:1".into(),
            shards: vec![0],
            authority: "a".into(),
            certificate: "a".into(),
            key: "a".into(),
            devices: None,
        });
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
