//! The lane of a connection: its requests and replies over UCX instead of TLS.
//!
//! The TLS connection shows if the peer is there, and lives or ends just as without a lane. If both servers have UCX,
//! the dialling one also connects to the other's UCX end. Both then tell each other over TLS, in a frame of kind
//! [`FrameKind::Lane`], a random number that must precede everything that is sent to them. From then on requests and
//! replies go over UCX in one-way messages ([`parts`]).
//!
//! A lane only makes things faster. Messages for which it has no room go over TLS, and when it breaks, all of them do
//! until the next connection. Requests that were handed over but not answered then fail, as they might otherwise be
//! executed twice. When a request is given up because its query ends, the other side may keep some of its parts for a
//! while, and the lane continues.

mod answer;
mod ask;
mod parts;

pub use answer::{AnsweringLane, RequestLane};
pub use ask::{LOST, Lane, keep};

use super::file::{ClusterFile, Fabric};
use super::frame::FrameKind;
use super::reads::Shelf;
use super::{BEAT, SILENCE};
use crate::transport::ucx::{self, UcxOptions, UcxTransport};
use crate::transport::{Epoch, Message, Peer, Transport, TransportError};
use jindou_model::sync::lock;
use jindou_model::{Error, Result};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Most requests of a lane that were read but not answered yet.
const IN_WORK: usize = 16;
/// Flow control: after this many parts of a message, the sender waits until the peer has received them.
const WINDOW: u32 = 4;
/// Kinds of messages on the transport.
const REQUESTS: u16 = 1;
const REPLIES: u16 = 2;
/// Asks for an empty answer.
pub const ALIVE: u16 = 4;
/// Asks for the catalogue of a shard.
pub const CATALOGUE: u16 = 5;

/// A server's UCX end.
pub struct LaneEnd {
    transport: Arc<UcxTransport>,
    tables: Arc<Tables>,
    /// Shards that peers may read; `None` if they may not.
    shelf: Option<Arc<Shelf>>,
    port: u16,
}

/// Lanes by the numbers that peers put before their messages.
#[derive(Default)]
struct Tables {
    asking: Mutex<FxHashMap<u64, Arc<Lane>>>,
    answering: Mutex<FxHashMap<u64, Arc<RequestLane>>>,
}

impl LaneEnd {
    /// The end that a cluster file asks for, at a free port of an address; `None` if servers use TLS only. The store
    /// has this many predicates.
    ///
    /// # Errors
    /// [`Error::Usage`] when UCX cannot be used here.
    pub fn open(
        file: &ClusterFile,
        name: &str,
        ip: IpAddr,
        predicates: u32,
    ) -> Result<Option<Arc<Self>>> {
        if file.fabric == Fabric::Tls {
            return Ok(None);
        }
        let cannot = |e: TransportError| {
            Error::Usage(format!(
                "{}: server {name} cannot use the fabric \"ucx\": {e}",
                file.path.display()
            ))
        };
        let mut options = UcxOptions::loopback(ucx::Fabric::SharedMemory);
        if let Some(devices) = &file.server(name)?.devices {
            options.fabric = ucx::Fabric::Best;
            options.devices = devices.clone();
        }
        options.listen = SocketAddr::new(ip, 0).to_string();
        options.heartbeat = BEAT;
        // The TLS connection should notice first.
        options.suspect_after = 2 * SILENCE;
        let transport = UcxTransport::new(options).map_err(cannot)?;
        let port = transport.address().parse::<SocketAddr>();
        let port = port.map_or(0, |a| a.port());
        let tables = Arc::<Tables>::default();
        let shelf = file.reads.then(|| Arc::new(Shelf::new(predicates)));
        let end = Arc::new(Self {
            transport,
            tables: Arc::clone(&tables),
            shelf: shelf.clone(),
            port,
        });
        let (own, asked) = (Arc::downgrade(&end), Arc::clone(&tables));
        let requests = move |m: &Message<'_>, _: &mut Vec<u8>| {
            let part = whole(m)?;
            let lane = lock(&asked.answering).get(&part.lane).cloned();
            let (lane, peer) = lane.zip(m.peer).ok_or("no such lane")?;
            let end = own.upgrade().ok_or("the server is shutting down")?;
            lane.take(&end, peer, &part).map_err(str::to_owned)
        };
        end.transport
            .handle(REQUESTS, Arc::new(requests))
            .map_err(cannot)?;
        let replies = move |m: &Message<'_>, _: &mut Vec<u8>| {
            let part = whole(m)?;
            let lane = lock(&tables.asking).get(&part.lane).cloned();
            let lane = lane.ok_or("no such lane")?;
            lane.take(&part).map_err(str::to_owned)
        };
        end.transport
            .handle(REPLIES, Arc::new(replies))
            .map_err(cannot)?;
        let alive = |_: &Message<'_>, _: &mut Vec<u8>| Ok(());
        end.transport
            .handle(ALIVE, Arc::new(alive))
            .map_err(cannot)?;
        let catalogue = move |m: &Message<'_>, reply: &mut Vec<u8>| {
            let shelf = shelf.as_ref().ok_or("no memory can be read here")?;
            shelf.answer(m.payload, reply).map_err(str::to_owned)
        };
        end.transport
            .handle(CATALOGUE, Arc::new(catalogue))
            .map_err(cannot)?;
        Ok(Some(end))
    }

    /// The underlying transport.
    pub fn transport(&self) -> &UcxTransport {
        &self.transport
    }

    /// The shards that peers may read, if they may.
    pub fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.shelf.as_ref()
    }

    /// The port of its control connections.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends all lanes.
    pub fn close(&self) {
        self.transport.close();
    }

    /// Connects to another end.
    fn connect(&self, address: SocketAddr) -> Result<Arc<dyn Peer>, TransportError> {
        let deadline = self.transport.deadline(SILENCE);
        self.transport.connect(&address.to_string(), deadline)
    }

    /// Sends a message part by part. Before each part, `patience` returns how long it may wait. After an error the peer
    /// does not have all parts.
    fn send(
        &self,
        to: &dyn Peer,
        (lane, number, kind): (u64, u64, FrameKind),
        message: &[u8],
        patience: impl Fn() -> Duration,
    ) -> Result<(), TransportError> {
        let transport_kind = match kind {
            FrameKind::Requests => REQUESTS,
            _ => REPLIES,
        };
        let mut bytes = Vec::new();
        let all = parts::parts(message);
        let count = all.len() as u32;
        for (index, body) in all {
            parts::write(lane, number, kind, (index, count), body, &mut bytes);
            let deadline = self.transport.deadline(patience());
            // Otherwise all of a long message would be in UCX's queues. The last part never waits: if that wait timed
            // out, the part might still have arrived.
            if (index + 1).is_multiple_of(WINDOW) && index + 1 < count {
                to.call(transport_kind, Epoch(0), &bytes, &mut Vec::new(), deadline)?;
            } else {
                to.send(transport_kind, Epoch(0), &bytes, deadline)?;
            }
        }
        Ok(())
    }
}

/// The part in a message. A damaged part ends its connection, and with it the lane: otherwise its receiver would wait
/// for ever.
fn whole<'m>(m: &Message<'m>) -> Result<parts::LanePart<'m>, &'static str> {
    parts::read(m.payload).ok_or_else(|| {
        if let Some(peer) = m.peer {
            peer.close();
        }
        "a damaged part"
    })
}

/// A random number that cannot be guessed, and is not 0.
fn secret() -> Option<u64> {
    let mut bytes = [0; 8];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes)).filter(|&n| n != 0)
}
