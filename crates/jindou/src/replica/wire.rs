//! A replica's connections to other servers, for messages of the log's protocol and for requests to shards.

use jindou_cluster::servers::{Network, Stream};
use jindou_replicas::{Message, Nobody, Peers, ServerEntry, ServerName, net};
use std::pin::Pin;

/// The connections to other servers, if the server has an address.
pub(super) enum Wire {
    Alone(Nobody),
    Connected(net::Connections),
}

impl Peers for Wire {
    fn send(&mut self, to: &ServerName, message: Message) {
        match self {
            Self::Alone(peers) => peers.send(to, message),
            Self::Connected(peers) => peers.send(to, message),
        }
    }

    fn know(&mut self, servers: &[ServerEntry]) {
        match self {
            Self::Alone(peers) => peers.know(servers),
            Self::Connected(peers) => peers.know(servers),
        }
    }

    fn connects(&self) -> bool {
        matches!(self, Self::Connected(_))
    }

    fn is_refused(&self) -> bool {
        match self {
            Self::Alone(peers) => peers.is_refused(),
            Self::Connected(peers) => peers.is_refused(),
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
