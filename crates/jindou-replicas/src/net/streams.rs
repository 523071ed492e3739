//! Connections between the servers in the bucket's list for shard requests. This module only transports bytes;
//! `jindou-cluster` implements the protocol.

use super::dial::{first_that_answers, secure};
use super::table::Table;
use super::tls::Fingerprint;
use crate::machine::ServerName;
use rustls::ClientConfig;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{client, server};

/// An accepted connection, and the name of the server that dialled.
pub type AcceptedStream = (ServerName, server::TlsStream<TcpStream>);

/// Dials servers in the bucket's list.
#[derive(Clone)]
pub struct Streams {
    table: Arc<Table>,
    tls: Arc<ClientConfig>,
}

jindou_model::debug_format!(Streams, |this| "Streams({})", this.table.me);

impl Streams {
    pub(super) fn new(table: Arc<Table>, tls: Arc<ClientConfig>) -> Self {
        Self { table, tls }
    }

    /// Names of the other servers in the list.
    pub fn servers(&self) -> Vec<ServerName> {
        let entries = self.table.entries();
        entries.into_iter().map(|(name, _)| name).collect()
    }

    /// Dials a server and authenticates it.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn dial(&self, name: &ServerName) -> Result<client::TlsStream<TcpStream>, String> {
        let entries = self.table.entries();
        let entry = entries.into_iter().find(|(of, _)| of == name);
        let (_, entry) = entry.ok_or("it is not in the list of servers")?;
        let dial = |place| secure(&self.table, &self.tls, &entry, place);
        let stream = first_that_answers(&self.table, &entry, dial).await;
        stream.map(|(stream, _)| stream).map_err(|e| e.why)
    }
}

/// Passes on a connection from a server in the list. The connection is closed if this server serves no shards.
pub(super) fn accepted(
    table: &Table,
    certificate: Fingerprint,
    stream: server::TlsStream<TcpStream>,
) {
    if let (Some(to), Some(name)) = (&table.shards, table.name_of(&certificate)) {
        let _ = to.try_send((name, stream));
    }
}
