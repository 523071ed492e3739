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
//! peer     the asking side: one connection that is kept up, and what waits on it
//! listen   the answering side
//! gate     who may wait there for a handshake
//! lane     requests and replies of a connection over UCX, where the network is trusted
//! reads    lists read out of a peer's memory, there
//! ```

mod file;
mod frame;
mod gate;
mod lane;
mod listen;
mod peer;
mod reads;
mod tls;

pub use file::{ClusterFile, Fabric, ServerEntry};

use crate::shards::{Reply, SearchTurns, ShardClient, ShardRequest, post, wire};
use frame::Hello;
use jindou_graph::shard::{Blocks, Far, Posts};
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Error, MemoryBudget, Resource, Result};
use jindou_store::Base;
use jindou_store::shard::{Cluster, shard_folder};
use listen::{AdmittedAccess, Listener, Own};
use peer::{Peer, PendingReply};
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
    own: Own,
    peers: Vec<Arc<Peer>>,
    /// By shard: the peer that holds it.
    holder: Vec<Option<usize>>,
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
            .field("peers", &self.peers.len())
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
        let own = Own::new(own, posts);
        let (listener, address) = runtime.block_on(Listener::bind(entry, &tls))?;
        let predicates = own
            .all()
            .next()
            .map_or(0, |(_, base)| base.statistics().predicates.len());
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
        let mut peers = Vec::new();
        let mut holder = vec![None; cluster.shards as usize];
        for other in file.servers.iter().filter(|s| s.name != name) {
            for &shard in &other.shards {
                if let Some(place) = holder.get_mut(shard as usize) {
                    *place = Some(peers.len());
                }
            }
            let peer = Arc::new(Peer::new(other));
            runtime.spawn(peer::keep_up(
                Arc::clone(&peer),
                tls.client.clone(),
                hello.clone(),
                lanes.clone(),
            ));
            peers.push(peer);
        }
        Ok(Self {
            own,
            peers,
            holder,
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
    pub fn lanes(&self) -> Vec<(&str, Option<u64>)> {
        self.peers
            .iter()
            .map(|p| (p.name(), p.over_lane()))
            .collect()
    }

    /// Lets peers with UCX read the segments of the shards that this server holds, in the folder of the sharded store.
    /// It takes effect after some time, about a second for 50 million keys. If the cluster file forbids it, or it
    /// fails, or a shard was merged, peers send requests instead.
    pub fn serve_reads(&self, store: &Path) {
        let Some(lanes) = self.lanes.as_ref().filter(|l| l.shelf().is_some()) else {
            return;
        };
        let (lanes, own, store) = (Arc::downgrade(lanes), self.own.clone(), store.to_owned());
        let serve = move || {
            for (shard, base) in own.all() {
                let Some(lanes) = lanes.upgrade() else {
                    return;
                };
                if base.merged() > 0 {
                    // After a merge some of its segments are in further files, whose addresses peers do not have.
                    continue;
                }
                let folder = store.join(shard_folder(shard));
                let put =
                    |shelf: &Arc<reads::Shelf>| shelf.put(lanes.transport(), shard, &folder, base);
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
    pub fn reads(&self) -> Vec<(&str, Option<u64>)> {
        self.peers
            .iter()
            .map(|p| {
                let lane = p.lane();
                let count = lane.as_ref().and_then(|l| l.reads()).map(|r| r.count());
                (p.name(), count)
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
            let found = runtime.block_on(peer::state_of(s, &tls.client, &hello));
            (s.name.clone(), found)
        };
        Ok(file.servers.iter().map(one).collect())
    }

    fn peer(&self, shard: u32) -> Result<&Arc<Peer>> {
        let at = self.holder.get(shard as usize).copied().flatten();
        at.and_then(|p| self.peers.get(p))
            .ok_or_else(|| Error::Shard {
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

/// One peer's share of a round.
struct Sent<'a> {
    peer: &'a Peer,
    /// Shard of the first request.
    shard: u32,
    /// Positions of the requests in the round.
    places: Vec<usize>,
    waiting: PendingReply<'a>,
}

impl Far for Servers {
    fn link(&self, shard: u32, cancel: &CancelToken) -> Result<u64> {
        if self.own.holds(shard) {
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
        let all = self.peers.iter().map(one).collect::<Option<Vec<f64>>>()?;
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
        let mut found: Vec<Option<Reply>> = Vec::new();
        found.resize_with(requests.len(), || None);
        // By peer, in the order of requests.
        let mut groups: Vec<(&Arc<Peer>, Vec<usize>)> = Vec::new();
        let mut here = Vec::new();
        for (at, (shard, _)) in requests.iter().enumerate() {
            if self.own.holds(*shard) {
                here.push(at);
                continue;
            }
            let peer = self.peer(*shard)?;
            match groups.iter_mut().find(|g| Arc::ptr_eq(g.0, peer)) {
                Some(group) => group.1.push(at),
                None => groups.push((peer, vec![at])),
            }
        }
        let mut sent = Vec::with_capacity(groups.len());
        for (peer, places) in groups {
            let shard = requests[places[0]].0;
            let group: Vec<(u32, ShardRequest)> =
                places.iter().map(|&at| requests[at].clone()).collect();
            let mut body = Vec::new();
            wire::put_requests(&group, &mut body);
            drop(group);
            if body.len() > MAX_REQUEST {
                return Err(Error::Shard {
                    shard,
                    message: format!(
                        "a request of {} bytes is longer than the {MAX_REQUEST} that servers accept",
                        body.len()
                    ),
                });
            }
            let waiting = peer.send(shard, body, cancel)?;
            sent.push(Sent {
                peer,
                shard,
                places,
                waiting,
            });
        }
        let mut turns = SearchTurns::new(here.iter().map(|&at| &requests[at].1));
        for at in here {
            cancel.check()?;
            let (shard, request) = &requests[at];
            found[at] = Some(self.own.answer(*shard, &turns.next(request))?);
        }
        for Sent {
            peer,
            shard,
            places,
            waiting,
        } in sent
        {
            let body = waiting.wait(shard, cancel)?;
            let replies = wire::replies(&body).filter(|r| r.len() == places.len());
            let replies = replies.ok_or_else(|| peer.error(shard, "its answer cannot be read"))?;
            for (at, reply) in places.into_iter().zip(replies) {
                found[at] = Some(reply);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    #[cfg(feature = "text")]
    fn has_word_index(&self) -> bool {
        self.own.has_word_index()
    }

    #[cfg(feature = "text")]
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        self.own.prepare_search(stop)
    }
}
