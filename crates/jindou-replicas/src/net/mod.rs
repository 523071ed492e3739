//! Connections between servers: TCP with mutual TLS 1.3, separate from the connections for queries.
//!
//! Each process creates a certificate at its start and writes the certificate's hash to its entry in the bucket. Both
//! sides of a connection present certificates, and trust exactly those in the bucket's list, which only processes with
//! write access to the bucket can change. A server that is not in the list as last read is rejected, and the list is
//! read again. Both sides dial; of two connections between the same processes one is kept.
//!
//! Servers that hold shards have additional connections between them (`streams.rs`), so that a large response never
//! delays a message of the log's protocol. ALPN distinguishes the two kinds of connections.
//!
//! Start reading at `table.rs` (known servers, and which connection is kept); then `dial.rs`, `link.rs` and `queue.rs`.

mod dial;
mod link;
mod memory_limit;
mod queue;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use crate::bucket::ServerEntry;
use crate::machine::{Message, ServerName};
use crate::peers::{FromPeer, Peers};
use crate::start::Options;
use rustls::ClientConfig;
pub use streams::{AcceptedStream, Streams};

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use table::Table;
use tls::{Certificate, Pinned};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Time limits of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Idle time after which a ping is sent.
    pub ping: Duration,
    /// A connection is closed after this time without receiving a byte, or without being able to send one.
    pub silence: Duration,
    /// Time limit for establishing a connection.
    pub greeting: Duration,
}

/// Limits of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Size in bytes of the largest message that is accepted. Larger groups are exchanged only through the bucket.
    pub message: usize,
    /// Memory limit in bytes for messages from one server: incomplete messages, messages that the driver has not
    /// received, and updates and groups until the machine has finished with them.
    pub memory: usize,
    /// Time limits.
    pub times: Times,
}

impl Limits {
    /// Limits that accept any update that another server may accept from its clients
    /// ([`crate::Options::update_bytes`]).
    pub fn for_updates(bytes: usize) -> Self {
        let message = bytes.saturating_add(1 << 20).min(u32::MAX as usize);
        Self {
            message,
            // A large message is in memory twice while it is decoded.
            memory: message.saturating_mul(3),
            times: Times {
                ping: Duration::from_secs(1),
                silence: Duration::from_secs(3),
                greeting: Duration::from_secs(3),
            },
        }
    }
}

/// Capacity of the queue of messages for the driver.
const WAITING: usize = 4096;
/// Rate limit for re-reading the list because of unknown servers: a burst of this many reads, then one per interval.
const ASK: (u32, Duration) = (10, Duration::from_secs(10));
/// Shortest interval between two such reads.
const ASK_APART: Duration = Duration::from_secs(1);

/// A process's certificate and listening socket, before any other server is known.
pub struct Listener {
    listener: TcpListener,
    certificate: Certificate,
    address: String,
    limits: Limits,
    shards: Option<mpsc::Sender<AcceptedStream>>,
}

jindou_model::debug_format!(Listener, |this| "Listener({})", this.address);

/// Creates a certificate and listens at `at`, or at `address` if `at` is `None`. Other servers dial `address`. Both
/// have the form `HOST:PORT`; port 0 in `address` is replaced by the socket's port.
///
/// # Errors
/// A sentence for the operator.
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
        shards: None,
    })
}

/// Splits `HOST:PORT`. The brackets of an IPv6 address are kept.
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

/// Listens at `HOST:PORT` and writes the address and the certificate's hash into a server's options. Returns the
/// arguments for [`crate::start`]; both must run in one runtime.
///
/// # Errors
/// A sentence for the operator.
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
    /// The address that other servers dial, for [`crate::Options::addresses`]. Port 0 was replaced by the socket's
    /// port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The socket's address.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Hash of the certificate, for [`crate::Options::certificate`].
    pub fn certificate(&self) -> String {
        tls::text(&self.certificate.fingerprint)
    }

    /// Sets the channel that receives connections for shard requests. Without a channel, such connections are closed.
    #[must_use]
    pub fn with_shards(self, to: mpsc::Sender<AcceptedStream>) -> Self {
        let shards = Some(to);
        Self { shards, ..self }
    }

    /// Starts to accept connections and to dial, as the server `name`, in the caller's runtime. No other server is
    /// known before [`Peers::know`] is called.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn connect(self, name: &str) -> Result<(Connections, mpsc::Receiver<FromPeer>), String> {
        let pinned = Arc::new(Pinned::default());
        let tls = tls::configurations(&self.certificate, &pinned)?;
        let (out, incoming) = mpsc::channel(WAITING);
        let table = Table::new(name.into(), self.limits, pinned, tls.log, out, self.shards);
        let table = Arc::new(table);
        table.spawn(dial::accept(table.clone(), self.listener, tls.accept));
        table.spawn(ask(table.clone()));
        Ok((Connections(table, tls.shards), incoming))
    }
}

/// Asks the driver to read the list again after an unknown server was rejected, within the rate limit.
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

/// The connections of one server; closed on drop.
pub struct Connections(Arc<Table>, Arc<ClientConfig>);

impl Connections {
    /// Dials the same servers for shard requests.
    pub fn streams(&self) -> Streams {
        Streams::new(Arc::clone(&self.0), Arc::clone(&self.1))
    }
}

jindou_model::debug_format!(Connections, |this| "Connections({})", this.0.me);

impl Peers for Connections {
    fn send(&mut self, to: &ServerName, message: Message) {
        self.0.send(to, message);
    }

    fn set_servers(&mut self, servers: &[ServerEntry]) {
        for (name, changed) in self.0.set_servers(servers) {
            self.0.spawn(dial::keep(self.0.clone(), name, changed));
        }
    }

    fn is_rejected_by_peer(&self) -> bool {
        self.0.is_rejected_by_peer()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.end();
    }
}
