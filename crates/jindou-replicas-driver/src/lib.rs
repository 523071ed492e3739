//! The driver around [`jindou_replicas::Machine`]: what is between it, the bucket, the clock and the store.
//!
//! [`Bucket`] is an object store or a directory, with time limits and the distinctions that the machine needs.
//! [`Driver`] is one task that owns the machine: it turns what ends into events and actions into requests. The store is
//! behind [`Application`], other servers behind [`Peers`]; the feature `net` has connections over TCP.
//! docs/internals/replicas.md has the rules.
//!
//! Start reading at `driver.rs`; then `turns.rs` (the order of what touches the store) and `bucket/mod.rs`.

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
