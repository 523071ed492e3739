//! The way to other servers. Losing a message costs time only, so whatever cannot be sent at once is dropped.

use crate::bucket::ServerEntry;
use jindou_replicas::{Message, ServerName};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Connections to other servers.
pub trait Peers: Send + 'static {
    /// Sends a message, if there is a connection that takes it at once.
    fn send(&mut self, to: &ServerName, message: Message);
    /// Takes the servers in the bucket's list.
    fn know(&mut self, servers: &[ServerEntry]);
    /// True if connections to them will come about.
    fn connects(&self) -> bool {
        true
    }
}

/// Something that came from other servers, or is to be known of them.
#[derive(Debug)]
pub enum FromPeer {
    /// A message, and the room that it takes until the driver has it.
    Message(ServerName, Message, Held),
    /// The end of the connection.
    Gone(ServerName),
    /// A server that is not in the list as it was last read: it should be read again.
    Unknown,
    /// Something that an operator must be told.
    Problem(PeerProblem),
}

/// Room for a message's bytes, given back when it is dropped.
#[derive(Clone, Debug, Default)]
pub struct Held(#[allow(dead_code, reason = "only dropped")] Option<Arc<OwnedSemaphorePermit>>);

impl Held {
    /// The room that a permit stands for.
    #[cfg(feature = "net")]
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Some(Arc::new(permit)))
    }
}

/// Something about other servers that an operator must be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerProblem {
    /// A server that speaks another version, this one.
    Version(ServerName, u32),
    /// A server that cannot be connected with, and why.
    Unreachable(ServerName, String),
    /// A message of this size that is not sent, since the other takes less.
    TooLarge(ServerName, usize),
}

impl std::fmt::Display for PeerProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Version(name, version) => write!(
                f,
                "server {name} speaks version {version} of the connections between servers, which this one does not: \
                 they follow each other by the bucket alone"
            ),
            Self::Unreachable(name, why) => {
                write!(f, "server {name} cannot be connected with: {why}")
            }
            Self::TooLarge(name, size) => {
                write!(
                    f,
                    "a message of {size} bytes is more than server {name} takes"
                )
            }
        }
    }
}

/// Messages that wait for a server, at most.
const WAITING: usize = 4096;

/// No connections: each server follows the bucket by itself.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Peers for Nobody {
    fn send(&mut self, _: &ServerName, _: Message) {}
    fn know(&mut self, _: &[ServerEntry]) {}
    fn connects(&self) -> bool {
        false
    }
}

impl Nobody {
    /// No connections, and what comes through them.
    pub fn connect() -> (Self, mpsc::Receiver<FromPeer>) {
        (Self, mpsc::channel(1).1)
    }
}

/// Servers of one process, for tests.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Mutex<BTreeMap<ServerName, mpsc::Sender<FromPeer>>>>);

/// The connections of one server of a [`Hub`]; they end when it is dropped.
#[derive(Debug)]
pub struct Member {
    hub: Hub,
    name: ServerName,
    own: mpsc::Sender<FromPeer>,
}

impl Hub {
    /// Connects a server to all others, in the place of an earlier run of the same name.
    pub fn connect(&self, name: &str) -> (Member, mpsc::Receiver<FromPeer>) {
        let (own, incoming) = mpsc::channel(WAITING);
        let name: ServerName = name.into();
        self.lock().insert(name.clone(), own.clone());
        let hub = self.clone();
        (Member { hub, name, own }, incoming)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ServerName, mpsc::Sender<FromPeer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for Member {
    fn send(&mut self, to: &ServerName, message: Message) {
        let members = self.hub.lock();
        // A run that was replaced is heard no longer.
        let mine = (members.get(&self.name)).is_some_and(|own| own.same_channel(&self.own));
        if let Some(to) = members.get(to).filter(|_| mine) {
            let _ = to.try_send(FromPeer::Message(
                self.name.clone(),
                message,
                Held::default(),
            ));
        }
    }

    fn know(&mut self, _: &[ServerEntry]) {}
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
