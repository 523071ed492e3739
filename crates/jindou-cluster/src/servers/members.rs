//! The servers of a log's list, each of which holds some shards of the same store, and the client with which a query
//! reads the shards of one base.

use super::dial::{Network, keep};
use super::listen::{AdmittedAccess, serve};
use super::own::{BaseReader, Holding, Own, ShardBases};
use super::peer::Peer;
use super::routes::{RequestCounts, Routes};
use crate::shards::{Lookups, Reply, ShardClient, ShardRequest, post, post_through};
use crate::transport::Transport;
use jindou_graph::shard::{Blocks, BoundFar, Far, Posts};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_store::Base;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

/// Interval at which the list of servers is read.
const LOOK: Duration = Duration::from_millis(250);

/// A connection that another server has dialled.
pub type Accepted = TlsStream<TcpStream>;

/// Another server in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of the server.
    pub name: String,
    /// The bases that the server holds; `None` while it is not connected.
    pub holdings: Option<Vec<Holding>>,
}

/// Metrics of a shard, from this server's point of view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardFigures {
    /// Number of the shard.
    pub shard: u32,
    /// Names of the connected servers that hold the shard, including this one.
    pub holders: Vec<String>,
    /// Number of bases of the shard that this server holds.
    pub bases: usize,
    /// Bytes of this server's files of the shard in its newest base.
    pub bytes: u64,
    /// Numbers of messages to other servers with requests for the shard.
    pub asked: RequestCounts,
}

/// This server's shards, and the other servers of its log's list that hold shards of the same store. Cheap to clone.
#[derive(Clone)]
pub struct Members(Arc<Routes>, Arc<str>);

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.members()).finish()
    }
}

impl Members {
    /// Creates the server with this name, which knows no other server and holds no shard yet. With a transport, this
    /// server and others that have one read lists from each other's memory where that is faster than requesting them.
    #[must_use]
    pub fn new(name: &str, transport: Option<Arc<dyn Transport>>) -> Self {
        Self(Arc::new(Routes::new(Own::new(transport))), name.into())
    }

    /// Sets the service that evaluates parts of queries at this server's shards.
    pub fn run_parts(&self, posts: Arc<dyn Posts>) {
        self.0.own.run_parts(posts);
    }

    /// The sender of messages to parts of queries, at any server and over any base.
    #[must_use]
    pub fn far(&self) -> Arc<dyn Far> {
        Arc::new(self.clone())
    }

    /// Connects to the servers of a network, and answers those that dial, until the future is dropped. Starts once this
    /// server has a base, because the greeting contains the id epoch of its load, which must be the same on all
    /// servers. Requests of other servers are charged to `memory` from their arrival until they are answered.
    pub async fn run(
        self,
        network: Arc<dyn Network>,
        mut accepted: Receiver<(Arc<str>, Accepted)>,
        memory: MemoryBudget,
    ) {
        let mut changes = self.0.own.changes();
        let epoch = loop {
            match self.0.own.newest().first() {
                Some((_, base)) => break base.epoch(),
                None => drop(changes.changed().await),
            }
        };
        let own = self.0.own.clone();
        let inside = AdmittedAccess { own, memory };
        let mut tasks = JoinSet::new();
        let mut dialled: Vec<(Arc<Peer>, tokio::task::AbortHandle)> = Vec::new();
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = look.tick() => {
                    let servers = network.servers();
                    dialled.retain(|(peer, task)| {
                        let stays = servers.iter().any(|s| s == peer.name());
                        if !stays {
                            task.abort();
                            self.0.remove(peer);
                        }
                        stays
                    });
                    for server in servers {
                        if dialled.iter().all(|(peer, _)| peer.name() != server) {
                            let peer = Arc::new(Peer::new(&server));
                            let transport = self.0.own.offered().map(|s| s.transport().clone());
                            let network = Arc::clone(&network);
                            let task = tasks.spawn(keep(Arc::clone(&peer), network, epoch, transport));
                            self.0.add(Arc::clone(&peer));
                            dialled.push((peer, task));
                        }
                    }
                    while tasks.try_join_next().is_some() {}
                }
                Some((other, stream)) = accepted.recv() => {
                    let names = [Arc::clone(&self.1), other];
                    tasks.spawn(serve(stream, inside.clone(), epoch, names));
                }
            }
        }
    }

    /// Serves another base of this server's shards.
    pub fn serve(&self, base: u64, bases: ShardBases) {
        self.0.own.serve(base, bases);
    }

    /// The base with this number, as it is held here, indexed by shard.
    #[must_use]
    pub fn bases(&self, base: u64) -> Option<ShardBases> {
        self.0.own.bases(base)
    }

    /// The newest base of each shard that this server holds.
    #[must_use]
    pub fn newest(&self) -> Vec<(u32, Arc<Base>)> {
        self.0.own.newest()
    }

    /// Stops serving a base.
    pub fn release(&self, base: u64) {
        self.0.own.release(base);
    }

    /// Numbers of the bases that this server serves, ascending.
    #[must_use]
    pub fn served(&self) -> Vec<u64> {
        self.0.own.numbers()
    }

    /// The oldest base that any query or cursor reads, at this server or a connected one.
    #[must_use]
    pub fn oldest_in_use(&self) -> u64 {
        let peers = self.0.peers();
        let others = peers.iter().filter_map(|peer| peer.oldest_in_use());
        others.fold(self.0.own.oldest_in_use(), u64::min)
    }

    /// Announces that the segments of a base are written, and keeps each shard's merge result, which other servers may
    /// request.
    pub fn set_written(&self, base: u64, results: Vec<(u32, Vec<u8>)>) {
        self.0.own.set_written(base, results);
    }

    /// The bases that this server holds.
    #[must_use]
    pub fn holdings(&self) -> Vec<Holding> {
        self.0.own.holdings()
    }

    /// Metrics of each shard of the store; empty before this server has a base.
    #[must_use]
    pub fn figures(&self) -> Vec<ShardFigures> {
        let (own, members) = (&self.0.own, self.members());
        let bases: Vec<ShardBases> = own.numbers().iter().filter_map(|&n| own.bases(n)).collect();
        let one = |shard: u32| {
            let mut here = bases.iter().filter_map(|b| b.get(shard as usize)?.as_ref());
            let holds = |m: &&Member| {
                let mut all = m.holdings.iter().flatten();
                all.any(|h| h.is_open && h.shard == shard)
            };
            let holders = members.iter().filter(holds).map(|m| m.name.clone());
            let own = (here.clone().next().is_some()).then(|| self.1.to_string());
            ShardFigures {
                shard,
                holders: holders.chain(own).collect(),
                bases: here.clone().count(),
                bytes: here.next_back().map_or(0, |base| base.file_bytes()),
                asked: self.0.asked(shard),
            }
        };
        let shards = bases.last().map_or(0, |bases| bases.len() as u32);
        (0..shards).map(one).collect()
    }

    /// The other servers in the list.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let peers = self.0.peers();
        let one = |peer: &Arc<Peer>| Member {
            name: peer.name().to_owned(),
            holdings: peer.holdings(),
        };
        peers.iter().map(one).collect()
    }

    /// True if this server is the first by name among the connected servers that hold the newest base of a shard that
    /// this server has.
    #[must_use]
    pub fn is_first(&self, shard: u32) -> bool {
        let own = self.holdings();
        let own = own.iter().filter(|h| h.is_open && h.shard == shard);
        let Some(base) = own.map(|h| h.base).max() else {
            return false;
        };
        let has = |h: &Holding| h.is_open && (h.shard, h.base) == (shard, base);
        let mut others = self.members().into_iter();
        !others.any(|m| *m.name < *self.1 && m.holdings.is_some_and(|all| all.iter().any(has)))
    }

    /// Requests the merge result of a shard from servers that have written base `base`; `None` if no connected server
    /// has it.
    #[must_use]
    pub fn merge_result(&self, base: u64, shard: u32, cancel: &CancelToken) -> Option<Vec<u8>> {
        let request = [(shard, ShardRequest::MergeResult)];
        let reply = self.0.ask_writers(base, &request, cancel)?;
        match reply {
            Reply::Post(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Creates the client for queries over a base. While the client exists, the base counts as in use.
    #[must_use]
    pub fn client(&self, base: u64) -> Arc<dyn ShardClient> {
        Arc::new(BaseClient {
            _reader: self.0.own.begin_reading(base),
            routes: Arc::clone(&self.0),
            base,
            lookups: Lookups::default(),
        })
    }
}

impl Far for Members {
    fn bind(&self, chosen: Option<&[u8]>) -> Result<Option<BoundFar>> {
        let routes = Arc::clone(&self.0);
        let (names, servers) = match chosen {
            Some(chosen) => (chosen.to_vec(), self.servers_of(chosen)?),
            None => self.choose()?,
        };
        Ok(Some((Arc::new(QueryFar { routes, servers }), names)))
    }

    fn post(&self, messages: Vec<(u32, Vec<u8>)>, _: &CancelToken) -> Result<Vec<Vec<u8>>> {
        let shard = messages.first().map_or(0, |m| m.0);
        let message = "a message of a query that is not bound to servers".into();
        Err(Error::Shard { shard, message })
    }

    fn reading(&self) -> Option<f64> {
        self.0.own.offered()?;
        let (base, bases) = self.0.own.newest_base()?;
        let far = (0..).zip(&*bases).filter(|(_, here)| here.is_none());
        let one = far.map(|(shard, _)| self.0.remote(shard, base)?.one());
        let all: Vec<f64> = one.collect::<Option<_>>()?;
        all.into_iter().reduce(f64::max)
    }
}

/// Servers indexed by shard; `None` means this server.
type Chosen = Vec<Option<Arc<Peer>>>;

impl Members {
    /// Chooses a connected holder for each shard: this server if it holds the shard. Returns the names, each preceded
    /// by its length, and the servers.
    fn choose(&self) -> Result<(Vec<u8>, Chosen)> {
        let base = self.0.common_base();
        let shards = self.0.own.bases(base).map_or(0, |bases| bases.len());
        let cancel = CancelToken::new();
        let (mut names, mut servers) = (Vec::new(), Chosen::new());
        for shard in 0..shards as u32 {
            let server = match self.0.own.holds(base, shard) {
                true => None,
                false => Some(self.0.holder_of(base, shard, &cancel)?),
            };
            let name = server.as_ref().map_or(&*self.1, |peer| peer.name());
            let length = u8::try_from(name.len()).map_err(|_| {
                Error::shard(shard, "the name of its server is longer than 255 bytes")
            })?;
            names.push(length);
            names.extend_from_slice(name.as_bytes());
            servers.push(server);
        }
        Ok((names, servers))
    }

    /// Decodes the names of the servers that a coordinator chose, and finds the servers.
    fn servers_of(&self, mut names: &[u8]) -> Result<Chosen> {
        let peers = self.0.peers();
        let mut servers = Chosen::new();
        while let Some((&length, rest)) = names.split_first() {
            let shard = servers.len() as u32;
            let wrong = |message: &str| Error::shard(shard, message);
            let name = rest.split_at_checked(length.into());
            let (name, rest) =
                name.ok_or_else(|| wrong("a choice of servers that cannot be read"))?;
            names = rest;
            if name == self.1.as_bytes() {
                servers.push(None);
                continue;
            }
            let peer = peers.iter().find(|peer| peer.name().as_bytes() == name);
            let peer = peer.filter(|peer| peer.outstanding().is_some());
            let peer = peer
                .ok_or_else(|| wrong("the server that has it for this query is not connected"))?;
            servers.push(Some(Arc::clone(peer)));
        }
        Ok(servers)
    }
}

/// Sends the messages of one query, whose servers are already chosen.
struct QueryFar {
    routes: Arc<Routes>,
    servers: Chosen,
}

impl QueryFar {
    fn server(&self, shard: u32) -> Result<&Option<Arc<Peer>>> {
        let server = self.servers.get(shard as usize);
        server.ok_or_else(|| Error::shard(shard, "no such shard"))
    }
}

impl Far for QueryFar {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        for (shard, _) in &messages {
            self.server(*shard)?;
        }
        post_through(messages, |requests| {
            self.routes.ask_bound(0, requests, cancel, &self.servers)
        })
    }

    fn link(&self, shard: u32) -> Result<u64> {
        match self.server(shard)? {
            Some(peer) => peer.link(shard),
            None => Ok(0),
        }
    }
}

/// Client that reads the shards of one base.
struct BaseClient {
    routes: Arc<Routes>,
    base: u64,
    lookups: Lookups,
    _reader: BaseReader,
}

impl Far for BaseClient {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }
}

impl ShardClient for BaseClient {
    fn read(
        &self,
        blocks: &Blocks,
        shard: u32,
        request: &ShardRequest,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        // Return at once if this server reads no peer's memory.
        self.routes.own.offered()?;
        let remote = self.routes.remote(shard, self.base)?;
        remote.reply(blocks, shard, request, cancel)
    }

    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        self.routes.ask(self.base, requests, cancel)
    }

    fn lookups(&self) -> Option<&Lookups> {
        Some(&self.lookups)
    }

    #[cfg(feature = "text")]
    fn has_word_index(&self) -> bool {
        self.routes.own.has_word_index()
    }

    #[cfg(feature = "text")]
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        self.routes.own.prepare_search(stop)
    }
}
