//! Servers that hold the shards of one store together, connected by mutual TLS, and by UCX on trusted networks.
//!
//! Every server dials every other one. A server sends requests on the connection that it has dialled and receives their
//! replies on it, so an answering server never waits for an asking one: it reads requests only while few are in
//! progress on the connection, and the asking side always reads. Queries share the connection, told apart by the
//! numbers of their requests.
//!
//! ```text
//! file     the cluster file: servers, addresses, shards, certificates, the token
//! tls      both sides' configurations; a certificate proves a server's name
//! frame    the header of a frame, and what a handshake says
//! dial     the asking side's handshakes, and keeping its connections up
//! peer     the asking side: a connection, and what waits on it
//! listen   the answering side
//! gate     who may wait there for a handshake
//! own      the shards of this process
//! routes   which server answers a request, and another one if it fails or is slow
//! members  servers of a log's list, in place of a cluster file
//! lane     requests and replies of a connection over UCX, where the network is trusted
//! reads    lists read out of a peer's memory, there
//! ```

mod dial;
mod file;
mod frame;
mod gate;
mod lane;
mod listen;
mod members;
mod own;
mod peer;
mod reads;
mod routes;
mod tls;

pub use dial::{Network, Stream};
pub use file::{ClusterFile, Fabric, ServerEntry};
pub use members::{Member, Members};
pub use own::{Holding, ShardBases};

use crate::shards::{Reply, ShardClient, ShardRequest, post};
use frame::Hello;
use jindou_graph::shard::{Blocks, Far, Posts};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Error, MemoryBudget, Resource, Result};
use jindou_store::Base;
use jindou_store::shard::{Cluster, shard_folder};
use listen::{AdmittedAccess, Listener};
use own::Own;
use peer::Peer;
use routes::Routes;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Silence after which a peer counts as dead, and time limit of a handshake.
const SILENCE: Duration = Duration::from_millis(2500);
/// Interval between heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// Most bytes in a frame's body.
const CHUNK: usize = 256 << 10;
/// Most bytes in a message of requests.
const MAX_REQUEST: usize = 64 << 20;

/// A running server's connections to its peers, and theirs to it. Everything ends when it is dropped.
pub struct Servers {
    routes: Arc<Routes>,
    /// Number of the base of all shards.
    base: u64,
    address: SocketAddr,
    lanes: Option<Arc<lane::LaneEnd>>,
    runtime: Option<tokio::runtime::Runtime>,
    /// Handle that ends the task listening for peers; the channel is closed once it has ended.
    listener: (tokio::task::AbortHandle, Mutex<Receiver<()>>),
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers")
            .field("address", &self.address)
            .field("peers", &self.peers().len())
            .finish_non_exhaustive()
    }
}

/// A server's state, as reported to another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Name of the server.
    pub name: String,
    /// Identity of its store.
    pub identity: u64,
    /// Id epoch of its store.
    pub epoch: u64,
    /// Port for UCX lanes; 0 if it has none.
    pub ucx: u16,
    /// The shards that it holds, ascending.
    pub shards: Vec<u32>,
}

impl Servers {
    /// Starts to listen for peers and to dial them. `own` has the shards that this server holds, by number; `posts`
    /// runs parts of queries at them. Requests of peers are charged to `memory` from their arrival until they are
    /// answered.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file does not fit the store or does not name this server; [`Error::Io`] and
    /// [`Error::Usage`] for certificates and addresses that cannot be used.
    pub fn start(
        file: &ClusterFile,
        name: &str,
        cluster: &Cluster,
        own: Vec<Option<Arc<Base>>>,
        posts: Option<Arc<dyn Posts>>,
        memory: &MemoryBudget,
    ) -> Result<Self> {
        file.check(cluster.shards as usize)?;
        let entry = file.server(name)?;
        let mine: Vec<u32> = (0..)
            .zip(&own)
            .filter(|(_, b)| b.is_some())
            .map(|(s, _)| s)
            .collect();
        if mine != entry.shards {
            return Err(Error::Usage(format!(
                "{}: server {name} should hold shards {:?} but has {mine:?} open",
                file.path.display(),
                entry.shards
            )));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(
                std::thread::available_parallelism().map_or(4, |n| n.get().max(4)),
            )
            .thread_name("jindou-peers")
            .enable_all()
            .build()
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("cannot start the threads for the cluster's network: {e}"),
                )
            })?;
        let tls = tls::Both::for_server(entry)?;
        let hello = Hello {
            token: file.token.clone(),
            identity: cluster.identity(),
            epoch: cluster.epoch,
            name: name.to_owned(),
        };
        let (base, bases) = (cluster.merged, Arc::new(own));
        let own = Own::new();
        if let Some(posts) = posts {
            own.run_parts(posts);
        }
        own.serve(base, Arc::clone(&bases));
        let (listener, address) = runtime.block_on(Listener::bind(entry, &tls))?;
        let predicates = bases
            .iter()
            .flatten()
            .next()
            .map_or(0, |base| base.statistics().predicates.len());
        let lanes = lane::LaneEnd::open(file, name, address.ip(), predicates as u32)?;
        let state = ServerState {
            name: name.to_owned(),
            identity: cluster.identity(),
            epoch: cluster.epoch,
            ucx: lanes.as_ref().map_or(0, |l| l.port()),
            shards: mine,
        };
        let others = file.servers.iter().filter(|s| s.name != name);
        let others = others.map(|s| s.address.clone()).collect();
        let inside = AdmittedAccess {
            own: own.clone(),
            lanes: lanes.clone(),
            memory: memory.clone(),
        };
        // Dropped together with the task and its listener.
        let (listens, listening) = std::sync::mpsc::channel::<()>();
        let run = listener.run(inside, hello.clone(), state, others);
        let listener = runtime.spawn(async move {
            let _listens = listens;
            run.await;
        });
        let listener = (listener.abort_handle(), Mutex::new(listening));
        let routes = Arc::new(Routes::new(own));
        for other in file.servers.iter().filter(|s| s.name != name) {
            let peer = Arc::new(Peer::listed(other));
            runtime.spawn(dial::keep_up(
                Arc::clone(&peer),
                other.clone(),
                tls.client.clone(),
                hello.clone(),
                lanes.clone(),
            ));
            routes.add(peer);
        }
        Ok(Self {
            routes,
            base,
            address,
            lanes,
            runtime: Some(runtime),
            listener,
        })
    }

    /// The number of shards of the store in a folder; `None` for an unsharded store.
    ///
    /// # Errors
    /// As [`Cluster::read`].
    pub fn shards_in(dir: &Path) -> Result<Option<usize>> {
        Ok(Cluster::read(dir)?.map(|c| c.shards as usize))
    }

    /// The address at which peers reach this server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Name of each peer, and the number of requests that its UCX lane has accepted; `None` while it has no lane.
    #[must_use]
    pub fn lanes(&self) -> Vec<(String, Option<u64>)> {
        let all = self.peers();
        let one = |p: &Arc<Peer>| (p.name().to_owned(), p.over_lane());
        all.iter().map(one).collect()
    }

    fn peers(&self) -> Vec<Arc<Peer>> {
        self.routes.peers()
    }

    /// Lets peers with UCX read the segments of the shards that this server holds, in the folder of the sharded store.
    /// It takes effect after some time, about a second for 50 million keys. If the cluster file forbids it, or it
    /// fails, or a shard was merged, peers send requests instead.
    pub fn serve_reads(&self, store: &Path) {
        let Some(lanes) = self.lanes.as_ref().filter(|l| l.shelf().is_some()) else {
            return;
        };
        let own = self.routes.own.clone();
        let (lanes, store) = (Arc::downgrade(lanes), store.to_owned());
        let serve = move || {
            for (shard, base) in own.newest() {
                let Some(lanes) = lanes.upgrade() else {
                    return;
                };
                if base.merged() > 0 {
                    // After a merge some of its segments are in further files, whose addresses peers do not have.
                    continue;
                }
                let folder = store.join(shard_folder(shard));
                let put =
                    |shelf: &Arc<reads::Shelf>| shelf.put(lanes.transport(), shard, &folder, &base);
                if let Some(Err(e)) = lanes.shelf().map(put) {
                    tracing::warn!(
                        "other servers must request the lists of shard {shard} by message: {e}"
                    );
                }
            }
        };
        let thread = std::thread::Builder::new().name("jindou-summaries".into());
        if let Err(e) = thread.spawn(serve) {
            tracing::warn!("other servers must request lists by message: {e}");
        }
    }

    /// Name of each peer, and the number of list requests that were served by reading its memory; `None` while it
    /// cannot be read.
    #[must_use]
    pub fn reads(&self) -> Vec<(String, Option<u64>)> {
        self.peers()
            .iter()
            .map(|p| {
                let lane = p.lane();
                let count = lane.as_ref().and_then(|l| l.reads()).map(|r| r.count());
                (p.name().to_owned(), count)
            })
            .collect()
    }

    /// Ends UCX on this server as if it had broken, for tests.
    #[doc(hidden)]
    pub fn break_lanes(&self) {
        if let Some(lanes) = &self.lanes {
            lanes.close();
        }
    }

    /// Asks each server of a file for its state, as the server `name` of the file.
    ///
    /// # Errors
    /// For a file or certificates that cannot be used; a server that does not answer appears as an error of its own.
    pub fn states(
        file: &ClusterFile,
        name: &str,
    ) -> Result<Vec<(String, Result<ServerState, String>)>> {
        let tls = tls::Both::for_server(file.server(name)?)?;
        let hello = Hello {
            token: file.token.clone(),
            identity: 0,
            epoch: 0,
            name: name.to_owned(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("cannot start a thread for the cluster's network: {e}"),
                )
            })?;
        let one = |s: &ServerEntry| {
            let found = runtime.block_on(dial::state_of(s, &tls.client, &hello));
            (s.name.clone(), found)
        };
        Ok(file.servers.iter().map(one).collect())
    }

    fn peer(&self, shard: u32) -> Result<Arc<Peer>> {
        let mut peers = self.peers().into_iter();
        let found = peers.find(|p| p.holds(shard, self.base));
        found.ok_or_else(|| Error::Shard {
            shard,
            message: "no server of the cluster holds it".into(),
        })
    }
}

/// Longest wait for the listener to close its address.
const LISTENERS_END: Duration = Duration::from_secs(1);

impl Drop for Servers {
    fn drop(&mut self) {
        // The address is free when this returns: another server may be about to listen there.
        self.listener.0.abort();
        let _ = lock(&self.listener.1).recv_timeout(LISTENERS_END);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if let Some(lanes) = &self.lanes {
            lanes.close();
        }
    }
}

impl Far for Servers {
    fn link(&self, shard: u32, cancel: &CancelToken) -> Result<u64> {
        if self.routes.own.holds(self.base, shard) {
            return Ok(0);
        }
        self.peer(shard)?.link(shard, cancel)
    }

    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }

    fn reading(&self) -> Option<f64> {
        self.lanes.as_ref()?.shelf()?;
        let one = |peer: &Arc<Peer>| peer.lane()?.reads()?.one();
        let all = self.peers().iter().map(one).collect::<Option<Vec<f64>>>()?;
        all.into_iter().reduce(f64::max)
    }
}

impl ShardClient for Servers {
    fn read(
        &self,
        blocks: &Blocks,
        shard: u32,
        request: &ShardRequest,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        // Returns at once in a cluster over TLS.
        self.lanes.as_ref()?.shelf()?;
        let lane = self.peer(shard).ok()?.lane()?;
        lane.reads()?.reply(blocks, shard, request, cancel)
    }

    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        self.routes.ask(self.base, requests, cancel)
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
