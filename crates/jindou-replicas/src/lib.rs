//! Replication by one log in a bucket: the protocol's state machine, without threads, clocks, files and network.
//!
//! [`Machine`] takes events and the time, and returns actions that a driver executes. The bucket is the only authority:
//! groups of transactions are objects with consecutive names that can only be created. One put of a name succeeds, and
//! a server that creates group `n + 1` has applied group `n`. Messages between servers are hints that save time.
//! docs/internals/replicas.md has the protocol and the driver's obligations.
//!
//! Start reading at `machine/mod.rs`; then `machine/log.rs` (which groups are committed), `machine/writing.rs`
//! (updates), `machine/peers.rs` (acknowledgements) and `machine/reads.rs`.

mod event;
mod group;
mod machine;
mod names;
mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod simulate;

pub use event::{
    Action, Base, Beat, Consistency, Echo, Evaluation, Event, Fetch, Fetched, Gap, KnownKey,
    Listing, LostObject, Message, Outcome, Problem, PutResult, Refusal,
};
pub use group::{
    Author, Blob, Damage, GROUP_VERSION, Group, Record, Request, RequestKey, ServerName, read_span,
    write_span,
};
pub use machine::{Impossible, Machine};
pub use names::Name;
pub use settings::{Settings, Time};
