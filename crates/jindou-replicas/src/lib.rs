//! Replication of one store through a log in a bucket: the protocol's state machine, and the driver that runs it.
//!
//! [`Machine`] maps events and the time to actions. It has no threads, clocks, files or network. Only the bucket
//! decides which groups are in the log: groups of transactions are objects with consecutive names, written with
//! create-only puts. At most one put of a name succeeds, and a server that creates group `n + 1` has applied group `n`.
//! Messages between servers only save time; the protocol is correct without them.
//!
//! [`Driver`] is the task that owns the machine: it executes the machine's actions and reports their outcomes as
//! events. [`Bucket`] is an object store or a directory, with time limits and the outcomes that the machine
//! distinguishes. [`Application`] is the interface to the store, [`Peers`] the interface to other servers, and [`net`]
//! implements the latter over TCP. docs/internals/replicas.md describes the protocol and the driver's obligations.
//!
//! Start reading at `machine/mod.rs`; then `machine/log.rs` (which groups are committed), `machine/writing.rs`
//! (updates), `machine/peers.rs` (acknowledgements) and `machine/reads.rs`; then `driver.rs`, `apply_queue.rs` (the
//! order of changes to the store) and `bucket/mod.rs`.

mod application;
mod apply_queue;
mod bases;
mod blocking;
mod bucket;
mod clock;
mod downloads;
mod driver;
mod evaluations;
mod figures;
mod handle;
mod machine;
pub mod net;
mod peers;
mod requests;
mod shutdown;
#[cfg(any(test, feature = "testing"))]
pub mod simulate;
mod start;
mod uploads;

pub use application::{Application, Evaluated, Local, Report, ShardFiles};
pub use bases::HeldBases;
pub use bucket::{
    BaseFiles, BaseInBucket, Beginning, Bucket, Examined, Failure, FileInBase, Finding,
    FirstObject, FoundServer, Identity, Incoming, Limits, Put, Remains, ServerEntry, ShardInBase,
    Survey, read_known, write_known,
};
pub use clock::now;
pub use driver::{Driver, Stopped};
pub use figures::{FiguresNow, OtherServer};
pub use handle::{Fresh, Handle, Status, Unready};
pub use machine::*;
pub use peers::{FromPeer, Hub, Member, MessageMemory, NoPeers, PeerProblem, Peers};
pub use start::{LogBeginner, Options, start};
pub use uploads::upload_missing;
