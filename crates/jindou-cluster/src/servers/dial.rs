//! Outgoing connections to other servers: the handshake, and connecting again after a failure.

use super::frame::{self, FrameKind, Hello};
use super::lane;
use super::peer::{Peer, PeerState, UNREACHABLE};
use super::{CHUNK, SILENCE, ServerEntry, ServerState};
use jindou_model::sync::lock;
use rustc_hash::FxHashMap;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Pauses before the first and the last attempts to dial again.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A connection that this server has dialled.
pub type Stream = TlsStream<TcpStream>;

/// The way to the servers of a log's list.
pub trait Network: Send + Sync + 'static {
    /// Names of the other servers.
    fn servers(&self) -> Vec<String>;

    /// Dials one of them, and checks that it is that server. Fails with one sentence.
    fn dial(&self, name: &str) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send>>;
}

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
        // Without Nagle's algorithm: requests are small, and callers wait for the answers.
        let _ = tcp.set_nodelay(true);
        let name = ServerName::try_from(entry.name.clone()).map_err(|e| e.to_string())?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, tcp)
            .await
            .map_err(|e| format!("TLS with it failed: {e}"))?;
        introduce(stream, &entry.name, hello).await
    };
    in_time(dialled).await
}

/// Ends a handshake that takes too long.
async fn in_time<T>(handshake: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout(SILENCE, handshake).await.unwrap_or_else(|_| {
        let seconds = SILENCE.as_secs_f64();
        Err(format!("it did not answer within {seconds} s"))
    })
}

/// Introduces this server to the server with this name.
async fn introduce(
    mut stream: Stream,
    name: &str,
    hello: &Hello,
) -> Result<(Stream, ServerState), String> {
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
    if state.name != name {
        return Err(format!("it says that it is server {}", state.name));
    }
    Ok((stream, state))
}

/// Keeps a connection to a server of a log's list up; never returns.
pub async fn keep_member(peer: Arc<Peer>, network: Arc<dyn Network>, hello: Hello) {
    let mut pause = BACK_OFF[0];
    loop {
        let dialled = async {
            let stream = network.dial(peer.name()).await?;
            introduce(stream, peer.name(), &hello).await
        };
        match in_time(dialled).await {
            Ok((stream, _)) => {
                pause = BACK_OFF[0];
                let why = talk(&peer, stream, None).await;
                peer.down(&why);
            }
            Err(why) => peer.down(&why),
        }
        tokio::time::sleep(pause).await;
        pause = BACK_OFF[1].min(2 * pause);
    }
}

/// Requests the state of a server with a single message.
pub async fn state_of(
    entry: &ServerEntry,
    tls: &Arc<ClientConfig>,
    hello: &Hello,
) -> Result<ServerState, String> {
    dial(entry, tls, hello).await.map(|found| found.1)
}

/// Connects to a peer, and again whenever the connection is lost; never returns.
pub async fn keep_up(
    peer: Arc<Peer>,
    entry: ServerEntry,
    tls: Arc<ClientConfig>,
    hello: Hello,
    lanes: Option<Arc<lane::LaneEnd>>,
) {
    let mut pause = BACK_OFF[0];
    // Servers that are started together do not listen at once: until then queries wait, as during the first dial.
    let begun = tokio::time::Instant::now();
    let mut met = false;
    loop {
        let fits = dial(&entry, &tls, &hello)
            .await
            .and_then(|(stream, state)| {
                if state.identity != hello.identity {
                    return Err("it serves the data of another load".into());
                }
                if state.shards != entry.shards {
                    return Err(format!(
                        "it holds shards {:?}, but the cluster file says {:?}",
                        state.shards, entry.shards
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
