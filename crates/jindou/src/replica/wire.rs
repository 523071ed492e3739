//! A replica's connections to other servers, for messages of the log's protocol and for requests to shards.

use jindou_cluster::servers::{Network, Stream};
use jindou_replicas::{Message, NoPeers, Peers, ServerEntry, ServerName, net};
use std::pin::Pin;

/// The connections to other servers, if the server has an address.
pub(super) enum Wire {
    Alone(NoPeers),
    Connected(net::Connections),
}

impl Peers for Wire {
    fn send(&mut self, to: &ServerName, message: Message) {
        match self {
            Self::Alone(peers) => peers.send(to, message),
            Self::Connected(peers) => peers.send(to, message),
        }
    }

    fn set_servers(&mut self, servers: &[ServerEntry]) {
        match self {
            Self::Alone(peers) => peers.set_servers(servers),
            Self::Connected(peers) => peers.set_servers(servers),
        }
    }

    fn connects(&self) -> bool {
        matches!(self, Self::Connected(_))
    }

    fn is_rejected_by_peer(&self) -> bool {
        match self {
            Self::Alone(peers) => peers.is_rejected_by_peer(),
            Self::Connected(peers) => peers.is_rejected_by_peer(),
        }
    }
}

/// Most incoming connections for shard requests that may wait to be served.
pub(super) const STREAMS: usize = 64;

/// The servers in the log's list, for connections between holders of shards.
pub(super) struct LogNetwork(pub(super) net::Streams);

impl Network for LogNetwork {
    fn servers(&self) -> Vec<String> {
        let servers = self.0.servers();
        servers.iter().map(|name| name.to_string()).collect()
    }

    fn dial(&self, name: &str) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send>> {
        let (streams, name) = (self.0.clone(), ServerName::from(name));
        Box::pin(async move { streams.dial(&name).await })
    }
}
