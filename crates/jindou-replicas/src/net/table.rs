//! The servers in the bucket's list, and the connection to each.

use super::Limits;
use super::memory_limit::MemoryLimit;
use super::queue::{NotQueued, Queue};
use super::streams::AcceptedStream;
use super::tls::{self, Fingerprint, Pinned};
use crate::bucket::ServerEntry;
use crate::machine::{Message, ServerName};
use crate::peers::{FromPeer, MessageMemory, PeerProblem};
use jindou_model::sync;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// State shared by all connections of one server.
pub(super) struct Table {
    pub me: ServerName,
    pub limits: Limits,
    pub pinned: Arc<Pinned>,
    pub client: Arc<rustls::ClientConfig>,
    pub out: mpsc::Sender<FromPeer>,
    /// Receives connections for shard requests; `None` if this server holds no shards.
    pub shards: Option<mpsc::Sender<AcceptedStream>>,
    peers: Mutex<Peers>,
    tasks: Mutex<Option<JoinSet<()>>>,
}

#[derive(Default)]
struct Peers {
    of: BTreeMap<ServerName, Peer>,
    /// Number of the newest connection.
    links: u64,
}

struct Peer {
    /// The server's entry; `None` after it was removed from the list.
    entry: Option<Entry>,
    /// Number of different entries of the server so far.
    version: u64,
    /// Notified when the entry has changed or the connection was closed.
    changed: Arc<Notify>,
    link: Option<Link>,
    memory: Arc<MemoryLimit>,
    /// True if the process of the current entry speaks another protocol version.
    other_version: bool,
    /// True if the server rejected this process's certificate when it was last dialled.
    refuses: bool,
    told_unreachable: bool,
    told_too_large: bool,
}

/// A server's addresses and certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub start: u64,
    pub certificate: Option<Fingerprint>,
    pub addresses: Vec<String>,
}

/// A registered connection.
struct Link {
    number: u64,
    certificate: Fingerprint,
    /// True if the server with the lower name dialled.
    lower: bool,
    queue: Arc<Queue>,
    close: Arc<Notify>,
}

/// Handle of a registered connection, held by the task that runs it.
pub(super) struct Joined {
    pub number: u64,
    pub queue: Arc<Queue>,
    pub memory: Arc<MemoryLimit>,
    /// Notified when the connection must be closed.
    pub close: Arc<Notify>,
}

/// Reason why a connection is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rejection {
    /// The list has no entry with this name, or the entry has another certificate.
    Stranger,
    /// Another connection between the two processes exists and is kept.
    Second,
    /// This server is stopping.
    Ending,
}

/// Next step of the task that dials a server.
pub(super) enum DialStep {
    /// Do not dial now.
    Nothing,
    /// Dial the server of this entry. The number changes whenever the entry changes.
    Dial(u64, Entry),
    /// The server was removed from the list.
    Gone,
}

impl Table {
    pub fn new(
        me: ServerName,
        limits: Limits,
        pinned: Arc<Pinned>,
        client: Arc<rustls::ClientConfig>,
        out: mpsc::Sender<FromPeer>,
        shards: Option<mpsc::Sender<AcceptedStream>>,
    ) -> Self {
        Self {
            me,
            limits,
            pinned,
            client,
            out,
            shards,
            peers: Mutex::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        sync::lock(&self.peers)
    }

    /// Spawns a task that is aborted when this server stops.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = sync::lock(&self.tasks);
        if let Some(tasks) = tasks.as_mut() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(work);
        }
    }

    /// Closes all connections.
    pub fn end(&self) {
        let tasks = sync::lock(&self.tasks).take();
        drop(tasks);
    }

    /// Updates the servers from the bucket's list. Returns those that are new.
    pub fn set_servers(&self, servers: &[ServerEntry]) -> Vec<(ServerName, Arc<Notify>)> {
        let mut new = Vec::new();
        let mut peers = self.lock();
        let others = servers.iter().filter(|server| *server.name != *self.me);
        let mut entries: BTreeMap<ServerName, Entry> = others
            .map(|server| {
                let certificate = server.certificate.as_deref().and_then(tls::parse);
                let entry = Entry {
                    start: server.start,
                    certificate,
                    addresses: server.addresses.clone(),
                };
                (server.name.as_str().into(), entry)
            })
            .collect();
        let certificates = entries.values().filter_map(|entry| entry.certificate);
        self.pinned.replace(certificates.collect());
        for (name, peer) in &mut peers.of {
            let entry = entries.remove(name);
            if entry != peer.entry {
                peer.change(entry);
            }
        }
        for (name, entry) in entries {
            let changed = Arc::new(Notify::new());
            new.push((name.clone(), changed.clone()));
            let peer = Peer {
                entry: Some(entry),
                version: 1,
                changed,
                link: None,
                memory: Arc::new(MemoryLimit::new(self.limits.memory)),
                other_version: false,
                refuses: false,
                told_unreachable: false,
                told_too_large: false,
            };
            peers.of.insert(name, peer);
        }
        new
    }

    /// Sends a message if the server is connected and its queue accepts it.
    pub fn send(&self, to: &ServerName, message: Message) {
        let mut peers = self.lock();
        let Some(peer) = peers.of.get_mut(to) else {
            return;
        };
        peer.memory.sent(&message);
        let Some(link) = &peer.link else {
            return;
        };
        if let Err(NotQueued::TooLarge(size)) = link.queue.push(message)
            && !std::mem::replace(&mut peer.told_too_large, true)
        {
            self.tell(PeerProblem::TooLarge(to.clone(), size));
        }
    }

    /// Reports a problem to the operator, unless the queue is full.
    fn tell(&self, problem: PeerProblem) {
        let _ = self.out.try_send(FromPeer::Problem(problem));
    }

    /// Name of the server whose entry has this certificate.
    pub fn name_of(&self, certificate: &Fingerprint) -> Option<ServerName> {
        let peers = self.lock();
        let mut all = peers.of.iter();
        let of = all.find(|(_, peer)| {
            let entry = peer.entry.as_ref();
            entry.is_some_and(|entry| entry.certificate.as_ref() == Some(certificate))
        });
        of.map(|(name, _)| name.clone())
    }

    /// Names and entries of the listed servers.
    pub fn entries(&self) -> Vec<(ServerName, Entry)> {
        let peers = self.lock();
        let all = peers.of.iter();
        let listed = all.filter_map(|(name, peer)| Some((name.clone(), peer.entry.clone()?)));
        listed.collect()
    }

    /// Next step of the task that dials this server.
    pub fn next_step(&self, name: &ServerName) -> DialStep {
        let mut peers = self.lock();
        let Some(peer) = peers.of.get(name) else {
            return DialStep::Gone;
        };
        match &peer.entry {
            None if peer.link.is_none() => {
                peers.of.remove(name);
                DialStep::Gone
            }
            Some(entry)
                if peer.link.is_none()
                    && !peer.other_version
                    && entry.certificate.is_some()
                    && !entry.addresses.is_empty() =>
            {
                DialStep::Dial(peer.version, entry.clone())
            }
            _ => DialStep::Nothing,
        }
    }

    /// Waits until a server's entry has changed since `version`.
    pub async fn another(&self, name: &ServerName, version: u64, changed: &Notify) {
        let same = || {
            let peers = self.lock();
            peers
                .of
                .get(name)
                .is_some_and(|peer| peer.version == version)
        };
        while same() {
            changed.notified().await;
        }
    }

    /// Records whether a server rejected this process's certificate when it was dialled.
    pub fn refused(&self, name: &ServerName, version: u64, refused: bool) {
        let mut peers = self.lock();
        if let Some(peer) = peers.of.get_mut(name)
            && peer.version == version
        {
            peer.refuses = refused;
        }
    }

    /// True if some server that is not connected rejects this process's certificate.
    pub fn is_rejected_by_peer(&self) -> bool {
        let peers = self.lock();
        let mut all = peers.of.values();
        all.any(|peer| peer.refuses && peer.link.is_none())
    }

    /// Records that a server cannot be reached, and reports it once.
    pub fn unreachable(&self, name: &ServerName, version: u64, why: String) {
        let mut peers = self.lock();
        if let Some(peer) = peers.of.get_mut(name)
            && peer.version == version
            && peer.link.is_none()
            && !std::mem::replace(&mut peer.told_unreachable, true)
        {
            self.tell(PeerProblem::Unreachable(name.clone(), why));
        }
    }

    /// Records that a server speaks another protocol version, and reports it once.
    pub fn other_version(&self, certificate: &Fingerprint, version: u32) {
        let Some(name) = self.name_of(certificate) else {
            return;
        };
        let mut peers = self.lock();
        if let Some(peer) = peers.of.get_mut(&name)
            && !std::mem::replace(&mut peer.other_version, true)
        {
            self.tell(PeerProblem::Version(name, version));
        }
    }

    /// Registers a connection. An earlier connection is replaced if it belongs to another process or has lower
    /// priority. Of two connections between the same processes, both sides keep the one that the server with the lower
    /// name dialled; if the same side dialled both, the later one.
    pub async fn join(
        &self,
        name: &ServerName,
        certificate: Fingerprint,
        lower: bool,
        most: usize,
    ) -> Result<Joined, Rejection> {
        // The slot is for reporting the end of the earlier connection.
        let slot = self.out.reserve().await.map_err(|_| Rejection::Ending)?;
        let mut peers = self.lock();
        peers.links += 1;
        let number = peers.links;
        let peer = peers.of.get_mut(name).ok_or(Rejection::Stranger)?;
        let entry = peer.entry.as_ref().ok_or(Rejection::Stranger)?;
        if entry.certificate != Some(certificate) {
            return Err(Rejection::Stranger);
        }
        if let Some(earlier) = &peer.link {
            let same = earlier.certificate == certificate;
            if same && earlier.lower && !lower {
                return Err(Rejection::Second);
            }
            earlier.close.notify_one();
            if !same {
                slot.send(FromPeer::Gone(name.clone()));
            }
        }
        let link = Link {
            number,
            certificate,
            lower,
            queue: Arc::new(Queue::new(most)),
            close: Arc::new(Notify::new()),
        };
        let joined = Joined {
            number,
            queue: link.queue.clone(),
            memory: peer.memory.clone(),
            close: link.close.clone(),
        };
        peer.link = Some(link);
        peer.refuses = false;
        peer.told_unreachable = false;
        Ok(joined)
    }

    /// Removes a connection that has ended, unless it was replaced.
    pub async fn leave(&self, name: &ServerName, number: u64) {
        let Ok(slot) = self.out.reserve().await else {
            return;
        };
        let mut peers = self.lock();
        if let Some(peer) = peers.of.get_mut(name)
            && peer.link.take_if(|link| link.number == number).is_some()
        {
            peer.changed.notify_one();
            slot.send(FromPeer::Gone(name.clone()));
        }
    }

    /// Passes a message to the driver, unless the connection was replaced.
    pub async fn deliver(
        &self,
        name: &ServerName,
        number: u64,
        message: Message,
        held: MessageMemory,
    ) {
        let Ok(slot) = self.out.reserve().await else {
            return;
        };
        let peers = self.lock();
        if let Some(peer) = peers.of.get(name)
            && peer.link.as_ref().is_some_and(|link| link.number == number)
        {
            peer.memory.received(&message, &held);
            slot.send(FromPeer::Message(name.clone(), message, held));
        }
    }
}

impl Peer {
    /// Replaces the entry. Closes the connection if it belongs to another process.
    fn change(&mut self, entry: Option<Entry>) {
        if let (Some(link), Some(entry)) = (&self.link, &entry)
            && entry.certificate != Some(link.certificate)
        {
            link.close.notify_one();
        }
        let process = |entry: &Option<Entry>| entry.as_ref().map(|e| (e.start, e.certificate));
        if process(&entry) != process(&self.entry) {
            self.other_version = false;
        }
        self.entry = entry;
        self.version += 1;
        self.refuses = false;
        self.told_unreachable = false;
        self.told_too_large = false;
        self.changed.notify_one();
    }
}
