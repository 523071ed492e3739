//! The interface for messages to other servers. A lost message costs time, never correctness, so a message that cannot
//! be queued at once is dropped.

use crate::bucket::ServerEntry;
use crate::machine::{Message, ServerName};
use jindou_model::sync;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Connections to other servers.
pub trait Peers: Send + 'static {
    /// Sends a message if the server is connected and its queue accepts the message at once.
    fn send(&mut self, to: &ServerName, message: Message);
    /// Updates the set of servers to connect to from the bucket's list.
    fn set_servers(&mut self, servers: &[ServerEntry]);
    /// True if connections to listed servers are established automatically.
    fn connects(&self) -> bool {
        true
    }
    /// True while some listed server refuses this process's connections, because it has not yet read this process's
    /// entry.
    fn is_rejected_by_peer(&self) -> bool {
        false
    }
}

/// A message or an event from other servers.
#[derive(Debug)]
pub enum FromPeer {
    /// A message, with the memory reserved for it until the driver has handled it.
    Message(ServerName, Message, MessageMemory),
    /// The connection was closed.
    Gone(ServerName),
    /// A server connected that is not in the list; the driver should read the list again.
    Unknown,
    /// A problem to report to the operator.
    Problem(PeerProblem),
}

/// Memory reserved for a message, released on drop.
#[derive(Clone, Debug, Default)]
pub struct MessageMemory(
    #[allow(dead_code, reason = "only dropped")] Option<Arc<OwnedSemaphorePermit>>,
);

impl MessageMemory {
    /// Wraps the permit for a message's memory.
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Some(Arc::new(permit)))
    }
}

/// A problem with other servers, for the operator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PeerProblem {
    /// A server that speaks this other protocol version.
    #[error(
        "server {0} speaks version {1} of the connections between servers, which this one does not: \
         they follow each other by the bucket alone"
    )]
    Version(ServerName, u32),
    /// A server that cannot be reached, and the reason.
    #[error("server {0} cannot be connected with: {1}")]
    Unreachable(ServerName, String),
    /// A message of this many bytes was not sent, since it exceeds the receiver's limit.
    #[error("a message of {1} bytes is more than server {0} takes")]
    TooLarge(ServerName, usize),
}

/// Capacity of the queue of messages for a server.
const WAITING: usize = 4096;

/// No connections: servers exchange groups only through the bucket.
#[derive(Clone, Copy, Debug)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn send(&mut self, _: &ServerName, _: Message) {}
    fn set_servers(&mut self, _: &[ServerEntry]) {}
    fn connects(&self) -> bool {
        false
    }
}

impl NoPeers {
    /// Creates an instance, with a channel that never receives anything.
    pub fn connect() -> (Self, mpsc::Receiver<FromPeer>) {
        (Self, mpsc::channel(1).1)
    }
}

/// Connects servers within one process, for tests.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Mutex<BTreeMap<ServerName, mpsc::Sender<FromPeer>>>>);

/// The connections of one server of a [`Hub`]; closed on drop.
#[derive(Debug)]
pub struct Member {
    hub: Hub,
    name: ServerName,
    own: mpsc::Sender<FromPeer>,
}

impl Hub {
    /// Connects a server to all others. An earlier connection under the same name is replaced.
    pub fn connect(&self, name: &str) -> (Member, mpsc::Receiver<FromPeer>) {
        let (own, incoming) = mpsc::channel(WAITING);
        let name: ServerName = name.into();
        self.lock().insert(name.clone(), own.clone());
        let hub = self.clone();
        (Member { hub, name, own }, incoming)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ServerName, mpsc::Sender<FromPeer>>> {
        sync::lock(&self.0)
    }
}

impl Peers for Member {
    fn send(&mut self, to: &ServerName, message: Message) {
        let members = self.hub.lock();
        // Messages of a replaced member are dropped.
        let mine = (members.get(&self.name)).is_some_and(|own| own.same_channel(&self.own));
        if let Some(to) = members.get(to).filter(|_| mine) {
            let _ = to.try_send(FromPeer::Message(
                self.name.clone(),
                message,
                MessageMemory::default(),
            ));
        }
    }

    fn set_servers(&mut self, _: &[ServerEntry]) {}
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut members = self.hub.lock();
        if (members.get(&self.name)).is_some_and(|own| own.same_channel(&self.own)) {
            members.remove(&self.name);
        }
        for to in members.values() {
            let _ = to.try_send(FromPeer::Gone(self.name.clone()));
        }
    }
}
