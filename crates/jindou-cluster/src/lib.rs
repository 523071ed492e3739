//! Several shards as one store, in one process or on several servers: how a query reads the data of other shards, the
//! transport between servers, and the reading of neighbour lists from another server's memory.
//!
//! ```text
//! shards     a query's requests for other shards' data, and the answers to them
//!    │
//! servers    servers of a store in shards, which ask one another over mutual TLS, or over a transport where the network is trusted
//!
//! remote     a reader's index of lists (a few bits per key), and one read for the list itself
//!    │
//! transport  registered memory, reads of many ranges, messages with handlers, deadlines, epochs
//!    ├── memory   everything in one process on a virtual clock, with seeded faults (tests)
//!    └── ucx      RDMA, shared memory or TCP by libucp, loaded at run time (cluster)
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
