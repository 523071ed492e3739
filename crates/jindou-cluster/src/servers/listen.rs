//! The answering side: connections from peers, admitted after a handshake, whose requests are answered on threads of
//! their own.

use super::frame::{self, FrameKind, FramePart, Hello};
use super::gate::{Gate, PendingConnection};
use super::lane::{self, RequestLane};
use super::own::{Own, holdings_to_bytes};
use super::tls::Both;
use super::{CHUNK, MAX_REQUEST, SILENCE, ServerEntry, ServerState};
use crate::shards::{Reply, SearchTurns, ShardRequest, wire};
use jindou_model::{Charge, Error, Holder, MemoryBudget, Result};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::io::{BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longest wait for the first byte of a connection: a server begins its handshake at once.
const FIRST_BYTE: Duration = Duration::from_secs(1);
/// Most admitted connections at once.
const CONNECTIONS: usize = 1024;
/// Most requests of a connection that were read but not answered yet.
const IN_WORK: usize = 16;
/// Most bytes of an introduction.
const MAX_HELLO: usize = 4096;

/// Everything that admitted connections can access.
#[derive(Clone)]
pub struct AdmittedAccess {
    pub own: Own,
    pub lanes: Option<Arc<lane::LaneEnd>>,
    /// Budget for incoming requests.
    pub memory: MemoryBudget,
}

/// A port on which peers connect.
pub struct Listener {
    tcp: TcpListener,
    tls: Arc<ServerConfig>,
}

impl Listener {
    /// Binds the port of a server.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be bound.
    pub async fn bind(entry: &ServerEntry, tls: &Both) -> Result<(Self, SocketAddr)> {
        let cannot = |e: io::Error| {
            Error::io(
                format!(
                    "server {}, address {} for its peers",
                    entry.name, entry.address
                ),
                e,
            )
        };
        let tcp = TcpListener::bind(&entry.address).await.map_err(cannot)?;
        let address = tcp.local_addr().map_err(cannot)?;
        let tls = Arc::clone(&tls.server);
        Ok((Self { tcp, tls }, address))
    }

    /// Accepts connections; never returns. `others` are the addresses of the cluster's other servers.
    pub async fn run(
        self,
        inside: AdmittedAccess,
        expected: Hello,
        state: ServerState,
        others: Vec<String>,
    ) {
        let gate = Arc::new(Gate::default());
        tokio::spawn(Arc::clone(&gate).look_up(others));
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let (expected, state) = (Arc::new(expected), Arc::new(state));
        loop {
            let Ok((tcp, from)) = self.tcp.accept().await else {
                // For example too many open files: others may be closed meanwhile.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let newcomer = gate.enter(from.ip());
            let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
            let (expected, state) = (Arc::clone(&expected), Arc::clone(&state));
            let (inside, connections) = (inside.clone(), Arc::clone(&connections));
            tokio::spawn(async move {
                let met = tokio::select! {
                    met = greet(&newcomer, tcp, acceptor, &expected, &state) => met,
                    () = newcomer.sent_away() => return,
                };
                drop(newcomer);
                // Only peers with a certificate and the token get this far.
                let Ok(_connection) = connections.try_acquire_owned() else {
                    return;
                };
                if let Ok(Some(stream)) = met {
                    // The dialling side sees the end as well, and dials again.
                    let _ = serve(stream, inside).await;
                }
            });
        }
    }
}

/// The reason to refuse a server.
fn refusal(hello: Option<&Hello>, expected: &Hello) -> Option<String> {
    let Some(hello) = hello else {
        return Some("the introduction cannot be read".into());
    };
    if !bool::from(hello.token.as_bytes().ct_eq(expected.token.as_bytes())) {
        return Some("the token differs from this server's".into());
    }
    // This peer only asks for the state.
    if hello.identity == 0 {
        return None;
    }
    if (hello.identity, hello.epoch) != (expected.identity, expected.epoch) {
        return Some(format!(
            "server {} has shards of another load than server {}; use shards of a single load",
            hello.name, expected.name
        ));
    }
    None
}

/// The handshake, once the first byte has arrived.
async fn greet(
    newcomer: &PendingConnection,
    tcp: TcpStream,
    acceptor: TlsAcceptor,
    expected: &Hello,
    state: &ServerState,
) -> io::Result<Option<TlsStream<TcpStream>>> {
    timeout(FIRST_BYTE, tcp.readable()).await??;
    newcomer.greets();
    timeout(SILENCE, meet(tcp, acceptor, expected, state)).await?
}

/// The handshake; `None` for a server that was rejected or only requested the state.
async fn meet(
    tcp: TcpStream,
    acceptor: TlsAcceptor,
    expected: &Hello,
    state: &ServerState,
) -> io::Result<Option<TlsStream<TcpStream>>> {
    let _ = tcp.set_nodelay(true);
    let stream = acceptor.accept(tcp).await?;
    welcome(stream, expected, state).await
}

/// Answers the introduction of a server that has dialled; `None` for one that was rejected or only requested the state.
async fn welcome(
    mut stream: TlsStream<TcpStream>,
    expected: &Hello,
    state: &ServerState,
) -> io::Result<Option<TlsStream<TcpStream>>> {
    let found = frame::read(&mut stream, MAX_HELLO).await;
    let why = match &found {
        Ok(f) if f.kind == FrameKind::Hello && f.last => {
            let hello = Hello::parse(&f.body);
            match refusal(hello.as_ref(), expected) {
                None => {
                    frame::send(&mut stream, FrameKind::Welcome, state.to_bytes()).await?;
                    return Ok(hello.filter(|h| h.identity != 0).map(|_| stream));
                }
                Some(why) => why,
            }
        }
        Ok(_) => "a server must introduce itself first".into(),
        Err(e) => format!("the introduction cannot be read: {e}"),
    };
    frame::send(&mut stream, FrameKind::Refusal, why.into_bytes()).await?;
    Ok(None)
}

/// Answers a server of a log's list that has dialled, until the connection ends.
pub async fn serve_member(
    stream: TlsStream<TcpStream>,
    inside: AdmittedAccess,
    expected: Hello,
    state: ServerState,
) {
    let met = timeout(SILENCE, welcome(stream, &expected, &state)).await;
    if let Ok(Ok(Some(stream))) = met {
        // The dialling side sees the end as well, and dials again.
        let _ = serve(stream, inside).await;
    }
}

/// Announces what this server holds, now and whenever it changes.
async fn announce(own: &Own, out: &Sender<FramePart>) -> Option<()> {
    let mut changes = own.changes();
    loop {
        let all = holdings_to_bytes(&own.holdings());
        reply(out, FrameKind::Holdings, 0, all).await?;
        changes.changed().await.ok()?;
    }
}

/// Answers a connection's requests until it ends.
async fn serve(stream: TlsStream<TcpStream>, inside: AdmittedAccess) -> io::Result<()> {
    let AdmittedAccess { own, lanes, memory } = inside;
    let (from, to) = tokio::io::split(stream);
    let (mut from, mut to) = (
        BufReader::with_capacity(CHUNK, from),
        BufWriter::with_capacity(CHUNK, to),
    );
    let (out, mut parts) = channel::<FramePart>(4);
    let in_work = Arc::new(Semaphore::new(IN_WORK));
    let reading = async {
        let mut message: Option<IncomingMessage> = None;
        let mut open: Option<lane::AnsweringLane> = None;
        loop {
            let frame = frame::read(&mut from, CHUNK).await?;
            let current = match (frame.kind, message.take()) {
                (FrameKind::Beat, before) => {
                    message = before;
                    continue;
                }
                (FrameKind::Lane, before) => {
                    message = before;
                    // One lane at a time; 0 asks for none.
                    drop(open.take());
                    open = lanes
                        .as_ref()
                        .filter(|_| frame.number != 0)
                        .and_then(|end| RequestLane::open(end, &own, &out, frame.number, &memory));
                    if frame.number != 0 {
                        let number = open.as_ref().map_or(0, |o| o.number);
                        let _ = reply(&out, FrameKind::Lane, number, Vec::new()).await;
                    }
                    continue;
                }
                (FrameKind::Requests, None) => {
                    let mut begun = IncomingMessage::new(frame.number, &memory);
                    begun.add(&frame.body);
                    begun
                }
                (FrameKind::Requests, Some(mut begun))
                    if begun.number == frame.number
                        && begun.length + frame.body.len() <= MAX_REQUEST =>
                {
                    begun.add(&frame.body);
                    begun
                }
                _ => {
                    let what = "a frame that belongs to no request";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            };
            if !frame.last {
                message = Some(current);
                continue;
            }
            let IncomingMessage {
                number,
                bytes,
                charge,
                refused,
                ..
            } = current;
            if let Some(why) = refused {
                let _ = reply(&out, FrameKind::Failure, number, failure(0, &why)).await;
                continue;
            }
            // Reading stops while many requests are being answered. The asking side reads all the time, so this ends.
            let Ok(permit) = Arc::clone(&in_work).acquire_owned().await else {
                return Ok(());
            };
            let (own, out) = (own.clone(), out.clone());
            tokio::spawn(async move {
                let answered = tokio::task::spawn_blocking(move || message_for(&own, &bytes));
                if let Ok((kind, body)) = answered.await {
                    let _ = reply(&out, kind, number, body).await;
                }
                drop((permit, charge));
            });
        }
    };
    let writing = frame::write_all(&mut to, |cx| parts.poll_recv(cx));
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
        _ = announce(&own, &out) => Ok(()),
    }
}

/// A message that arrives in frames, charged as it grows. If memory is exhausted, it is read to its end and discarded.
struct IncomingMessage {
    number: u64,
    bytes: Vec<u8>,
    /// Bytes received so far.
    length: usize,
    charge: Charge,
    /// Set if memory is exhausted, with the reason.
    refused: Option<String>,
}

impl IncomingMessage {
    fn new(number: u64, memory: &MemoryBudget) -> Self {
        Self {
            number,
            bytes: Vec::new(),
            length: 0,
            charge: Charge::new(Holder::Rest, memory),
            refused: None,
        }
    }

    fn add(&mut self, body: &[u8]) {
        self.length += body.len();
        if self.refused.is_some() {
            return;
        }
        if self.length > self.bytes.capacity() {
            // The buffer doubles, and for a moment the old and the new one exist together; afterwards it is parsed into
            // requests.
            let room = self.length.next_power_of_two();
            if let Err(e) = self.charge.set(2 * room as u64) {
                self.bytes = Vec::new();
                let _ = self.charge.set(0);
                self.refused = Some(e.to_string());
                return;
            }
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(body);
    }
}

/// A message with the reason why a shard does not answer.
pub fn failure(shard: u32, why: &str) -> Vec<u8> {
    let mut out = shard.to_le_bytes().to_vec();
    out.extend_from_slice(why.as_bytes());
    out
}

/// Sends a message part by part, so that short messages can overtake long ones.
async fn reply(out: &Sender<FramePart>, kind: FrameKind, number: u64, body: Vec<u8>) -> Option<()> {
    for part in frame::parts(kind, number, body) {
        out.send(part).await.ok()?;
    }
    Some(())
}

/// The message that answers a message of requests.
pub fn message_for(own: &Own, bytes: &[u8]) -> (FrameKind, Vec<u8>) {
    let mut out = Vec::new();
    match replies(own, bytes) {
        Ok(replies) => {
            wire::put_replies(&replies, &mut out);
            (FrameKind::Replies, out)
        }
        Err(e) => {
            let (shard, why) = match e {
                Error::Shard { shard, message } => (shard, message),
                e => (0, e.to_string()),
            };
            (FrameKind::Failure, failure(shard, &why))
        }
    }
}

fn replies(own: &Own, bytes: &[u8]) -> Result<Vec<Reply>> {
    let (base, requests) =
        wire::requests(bytes).ok_or_else(|| Error::Usage("the request cannot be read".into()))?;
    let mut turns = SearchTurns::new(requests.iter().map(|r| &r.1));
    let one =
        |(shard, request): &(u32, ShardRequest)| own.answer(base, *shard, &turns.next(request));
    requests.iter().map(one).collect()
}
