//! Connections between the servers of a log's list, each of which holds some shards of the same store.
//!
//! Every server dials every other one. A server sends its requests on the connections that it has dialled, and receives
//! the replies there. So an answering server never waits for an asking one: the answering side reads requests only
//! while few are being answered on the connection, and the asking side always reads. All queries share a connection;
//! the numbers of their requests distinguish them.
//!
//! ```text
//! members  the servers, and the client with which a query reads the shards of one base
//! frame    the header of a frame
//! dial     the asking side's greeting, and reconnecting after failures
//! peer     the asking side: a connection, and the requests that wait on it
//! listen   the answering side of a connection
//! own      the shards that this process holds
//! routes   the choice of the server that answers a request, and of another one if that fails or is slow
//! reads    reads of lists from a peer's memory, where both servers allow it
//! ```

mod dial;
mod frame;
mod listen;
mod members;
mod own;
mod peer;
mod reads;
mod routes;

pub use dial::{Network, Stream};
pub use members::{Accepted, Member, Members, ShardFigures};
pub use own::{Holding, ShardBases};
pub use routes::RequestCounts;

use std::time::Duration;

/// Time without any bytes after which a peer counts as dead; also the time limit of a greeting.
const SILENCE: Duration = Duration::from_millis(2500);
/// Interval between heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// Largest size of a frame's body in bytes.
const CHUNK: usize = 256 << 10;
/// Largest size in bytes of a message with requests.
const MAX_REQUEST: usize = 64 << 20;
