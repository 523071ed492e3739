//! Outgoing connections to other servers: the greeting, and reconnecting after failures.

use super::frame::{self, FrameKind};
use super::peer::Peer;
use super::{CHUNK, SILENCE};
use crate::transport::Transport;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

/// Shortest and longest delay before a server is dialled again.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A connection that this server has dialled.
pub type Stream = TlsStream<TcpStream>;

/// Dials the servers of a log's list.
pub trait Network: Send + Sync + 'static {
    /// Names of the other servers.
    fn servers(&self) -> Vec<String>;

    /// Dials the server with this name, and checks its identity. The error is a sentence for the operator.
    fn dial(&self, name: &str) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send>>;
}

/// Greets a server that was dialled. `epoch` is the id epoch of this server's store. Returns the stream if the server
/// accepts this one.
async fn greet(mut stream: Stream, epoch: u64) -> Result<Stream, String> {
    let talked = async {
        frame::send(&mut stream, FrameKind::Hello, epoch.to_le_bytes().to_vec()).await?;
        frame::read(&mut stream, CHUNK).await
    };
    let reply = talked
        .await
        .map_err(|e| format!("it accepts no connections: {e}"))?;
    match reply.kind {
        FrameKind::Welcome => Ok(stream),
        FrameKind::Refusal => Err(format!(
            "it refuses: {}",
            String::from_utf8_lossy(&reply.body)
        )),
        _ => Err("it did not answer the greeting".into()),
    }
}

/// Maintains a connection to a server; never returns. `epoch` is the id epoch of this server's store. With a transport,
/// lists are also read from the memory that the other server offers.
pub async fn keep(
    peer: Arc<Peer>,
    network: Arc<dyn Network>,
    epoch: u64,
    transport: Option<Arc<dyn Transport>>,
) {
    let mut pause = BACK_OFF[0];
    loop {
        let dialled = async { greet(network.dial(peer.name()).await?, epoch).await };
        let dialled = timeout(SILENCE, dialled).await.unwrap_or_else(|_| {
            let seconds = SILENCE.as_secs_f64();
            Err(format!("it did not answer within {seconds} s"))
        });
        let why = match dialled {
            Ok(stream) => {
                pause = BACK_OFF[0];
                talk(&peer, stream, transport.as_ref()).await
            }
            Err(why) => why,
        };
        peer.down(&why);
        tokio::time::sleep(pause).await;
        pause = BACK_OFF[1].min(2 * pause);
    }
}

/// Sends and receives frames until the connection ends; returns the reason.
async fn talk(peer: &Arc<Peer>, stream: Stream, reads: Option<&Arc<dyn Transport>>) -> String {
    let (from, to) = tokio::io::split(stream);
    let (mut from, mut to) = (
        BufReader::with_capacity(CHUNK, from),
        BufWriter::with_capacity(CHUNK, to),
    );
    let (out, mut parts) = unbounded_channel();
    peer.up(out);
    let reading = async {
        loop {
            let frame = frame::read(&mut from, CHUNK).await?;
            peer.take(frame, reads)?;
        }
    };
    let writing = frame::write_all(&mut to, |cx| parts.poll_recv(cx));
    let ended: io::Result<()> = tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    };
    match ended {
        Ok(()) => "the connection ended".into(),
        Err(e) => e.to_string(),
    }
}
