//! The servers of a log's list, which hold the shards of one store together: the connections between them.
//!
//! Every server dials every other one. A server sends requests on the connection that it has dialled and receives their
//! replies on it, so an answering server never waits for an asking one: it reads requests only while few are in
//! progress on the connection, and the asking side always reads. Queries share the connection, told apart by the
//! numbers of their requests.
//!
//! ```text
//! members  the servers, and the client through which a query reads the shards of one base
//! frame    the header of a frame
//! dial     the asking side's greeting, and keeping its connections up
//! peer     the asking side: a connection, and what waits on it
//! listen   the answering side
//! own      the shards of this process
//! routes   which server answers a request, and another one if it fails or is slow
//! reads    lists read from a peer's memory, where both servers allow it
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

/// Silence after which a peer counts as dead, and time limit of a greeting.
const SILENCE: Duration = Duration::from_millis(2500);
/// Interval between heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// Most bytes in a frame's body.
const CHUNK: usize = 256 << 10;
/// Most bytes in a message of requests.
const MAX_REQUEST: usize = 64 << 20;
