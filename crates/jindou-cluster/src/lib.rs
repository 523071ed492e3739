//! Several shards as one store, in one process or on several servers: how a query reads the data of other shards, the
//! connections between servers, and reads of neighbour lists from another server's memory.
//!
//! ```text
//! shards     a query's requests for data of other shards, and their answers
//!    │
//! servers    connections between the servers of a log, over which shards are requested
//!    │
//! remote     a reader's summary of a segment (a few bits per key), with which a list takes a single read
//!    │
//! transport  registered memory, and reads of many ranges of it with a deadline
//!    ├── files    servers on one machine map each other's files
//!    └── ucx      RDMA or TCP through libucp, loaded at run time
//! ```

#[cfg(feature = "transport")]
pub mod remote;
#[cfg(feature = "servers")]
pub mod servers;
pub mod shards;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "transport")]
pub mod transport;
