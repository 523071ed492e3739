//! Several shards as one store, in one process or on several servers: how a query reads the data of other shards, the
//! connections between servers, and the reading of neighbour lists from another server's memory.
//!
//! ```text
//! shards     a query's requests for other shards' data, and the answers to them
//!    │
//! servers    the servers of a log, which ask one another
//!    │
//! remote     a reader's index of lists (a few bits per key), and one read for the list itself
//!    │
//! transport  registered memory, and reads of many ranges of it with deadlines
//!    ├── files    servers on one machine map each other's files
//!    └── ucx      RDMA or TCP by libucp, loaded at run time
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
