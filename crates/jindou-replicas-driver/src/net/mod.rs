//! Connections between servers: TCP with mutual TLS 1.3, apart from those that queries use.
//!
//! Each process makes a certificate at its start, whose hash stands in its entry in the bucket. Both sides of a connection
//! show theirs, and trust what stands in the list: who can write to the bucket, and nothing else. A server that is not in
//! the list as it was last read is refused, and has the list read again. Both sides dial; of two connections between the
//! same processes one stays.
//!
//! Start reading at `table.rs` (who is known, which connection counts); then `dial.rs`, `link.rs` and `queue.rs`.

mod dial;
mod link;
mod queue;
mod room;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use crate::bucket::ServerEntry;
use crate::peers::{FromPeer, Peers};
use crate::start::Options;
use jindou_replicas::{Message, ServerName};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use table::Table;
use tls::{Certificate, Pinned};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Times of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Time after which a sign of life is sent where nothing else was.
    pub ping: Duration,
    /// Time without a byte, or without one that can be sent, after which a connection ends.
    pub silence: Duration,
    /// Time for a connection to begin.
    pub greeting: Duration,
}

/// Limits of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the largest message that is taken. Larger groups come by the bucket alone.
    pub message: usize,
    /// Bytes that messages of one server take here: what has not come as a whole, what the driver has not taken, and
    /// updates and groups until the machine is done with them.
    pub room: usize,
    /// Times.
    pub times: Times,
}

impl Limits {
    /// Limits by which a server takes any update that another may hold for its clients ([`crate::Options::update_bytes`]).
    pub fn for_updates(bytes: usize) -> Self {
        let message = bytes.saturating_add(1 << 20).min(u32::MAX as usize);
        Self {
            message,
            // A large one is there twice while it is read.
            room: message.saturating_mul(3),
            times: Times {
                ping: Duration::from_secs(1),
                silence: Duration::from_secs(3),
                greeting: Duration::from_secs(3),
            },
        }
    }
}

/// Messages that wait for the driver.
const WAITING: usize = 4096;
/// Questions for the list of servers that strangers may cause in a row, and the time after which another may follow.
const ASK: (u32, Duration) = (10, Duration::from_secs(10));
/// Shortest time between two of them.
const ASK_APART: Duration = Duration::from_secs(1);

/// A process's certificate and the socket that it listens at, before it is known which servers there are.
pub struct Listener {
    listener: TcpListener,
    certificate: Certificate,
    address: String,
    limits: Limits,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Listener({})", self.address)
    }
}

/// Listens at `at`, or if there is none at `address`, and makes a certificate. Others dial `address`. Both are `HOST:PORT`; a port
/// 0 in `address` is that of the socket.
///
/// # Errors
/// One sentence.
pub async fn listen(address: &str, at: Option<&str>, limits: Limits) -> Result<Listener, String> {
    let bound = at.unwrap_or(address);
    let cannot =
        |e: std::io::Error| format!("connections of other servers cannot be taken at {bound}: {e}");
    let any = |ip: IpAddr| ip.to_canonical().is_unspecified();
    let (host, port) = host_and_port(address)?;
    host_and_port(bound)?;
    let listener = TcpListener::bind(bound).await.map_err(cannot)?;
    let local = listener.local_addr().map_err(cannot)?;
    let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
    if literal.is_ok_and(any) || (at.is_none() && any(local.ip())) {
        return Err(format!(
            "other servers cannot dial {address}: name a host at which they reach this one"
        ));
    }
    let port = match port {
        0 => local.port(),
        port => port,
    };
    Ok(Listener {
        listener,
        certificate: Certificate::new()?,
        address: format!("{host}:{port}"),
        limits,
    })
}

/// The parts of `HOST:PORT`. An IPv6 address is in brackets, which stay.
fn host_and_port(text: &str) -> Result<(&str, u16), String> {
    let is_host = |host: &str| match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains([':', ']']),
    };
    let parts = text.rsplit_once(':').filter(|(host, _)| is_host(host));
    parts
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| format!("\"{text}\" is not HOST:PORT"))
}

/// Listens at `HOST:PORT` and writes where that is, and the certificate, into a server's settings. Gives what
/// [`crate::start`] takes; both belong into one runtime.
///
/// # Errors
/// One sentence.
pub async fn connect(
    address: &str,
    options: &mut Options,
) -> Result<(Connections, mpsc::Receiver<FromPeer>), String> {
    let listener = listen(address, None, Limits::for_updates(options.update_bytes)).await?;
    options.addresses = vec![listener.address().to_owned()];
    options.certificate = Some(listener.certificate());
    listener.connect(&options.name)
}

impl Listener {
    /// Where others dial, for [`crate::Options::addresses`]. A port 0 was replaced by that of the socket.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where the socket is.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Hash of the certificate, for [`crate::Options::certificate`].
    pub fn certificate(&self) -> String {
        tls::text(&self.certificate.fingerprint)
    }

    /// Begins to take connections and to dial, as the server of this name, in the runtime of the caller. No server is known
    /// before [`Peers::know`].
    ///
    /// # Errors
    /// One sentence.
    pub fn connect(self, name: &str) -> Result<(Connections, mpsc::Receiver<FromPeer>), String> {
        let pinned = Arc::new(Pinned::default());
        let (client, server) = tls::configurations(&self.certificate, &pinned)?;
        let (out, incoming) = mpsc::channel(WAITING);
        let table = Table::new(name.into(), self.limits, pinned, client, out);
        let table = Arc::new(table);
        table.spawn(dial::accept(table.clone(), self.listener, server));
        table.spawn(ask(table.clone()));
        Ok((Connections(table), incoming))
    }
}

/// Asks for the list of servers when a stranger was refused.
async fn ask(table: Arc<Table>) {
    let (mut left, mut filled) = (ASK.0, tokio::time::Instant::now());
    loop {
        table.pinned.stranger.notified().await;
        while left < ASK.0 && filled.elapsed() >= ASK.1 {
            left += 1;
            filled += ASK.1;
        }
        if left == ASK.0 {
            filled = tokio::time::Instant::now();
        }
        if left == 0 {
            tokio::time::sleep_until(filled + ASK.1).await;
            filled += ASK.1;
            left = 1;
        }
        left -= 1;
        if table.out.send(FromPeer::Unknown).await.is_err() {
            return;
        }
        tokio::time::sleep(ASK_APART).await;
    }
}

/// The connections of one server. They end when it is dropped.
pub struct Connections(Arc<Table>);

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Connections({})", self.0.me)
    }
}

impl Peers for Connections {
    fn send(&mut self, to: &ServerName, message: Message) {
        self.0.send(to, message);
    }

    fn know(&mut self, servers: &[ServerEntry]) {
        for (name, changed) in self.0.know(servers) {
            self.0.spawn(dial::keep(self.0.clone(), name, changed));
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.end();
    }
}
