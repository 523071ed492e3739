//! The driver of [`jindou_replicas::Machine`]: it connects the machine with the bucket, the clock and the store.
//!
//! [`Bucket`] is an object store or a directory, with time limits and the outcomes that the machine distinguishes.
//! [`Driver`] is the task that owns the machine: it turns results into events and executes actions. [`Application`] is
//! the interface to the store, and [`Peers`] that to other servers; the feature `net` implements it over TCP.
//! docs/internals/replicas.md describes the protocol.
//!
//! Start reading at `driver.rs`; then `turns.rs` (the order of operations on the store) and `bucket/mod.rs`.

mod application;
mod bucket;
mod clock;
mod downloads;
mod driver;
mod endings;
mod evaluations;
mod figures;
mod handle;
#[cfg(feature = "net")]
pub mod net;
mod peers;
mod requests;
mod start;
mod turns;
mod uploads;

pub use application::{Application, Evaluated, Local, Report};
pub use bucket::{
    BaseFiles, BaseInBucket, Beginning, Bucket, Examined, Failure, FileInBase, Finding,
    FirstObject, FoundServer, Identity, Incoming, Limits, Put, Remains, ServerEntry, Survey,
    read_known, write_known,
};
pub use clock::now;
pub use driver::{Driver, Stopped};
pub use figures::FiguresNow;
pub use handle::{Fresh, Handle, Status, Unready};
pub use peers::{FromPeer, Held, Hub, Member, Nobody, PeerProblem, Peers};
pub use start::{Options, start};
