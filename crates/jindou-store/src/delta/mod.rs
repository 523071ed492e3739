//! Changes of a live graph: transactions that make the next snapshot from one (OSDI '16 §6, evolving graphs).
//!
//! ```text
//! Changes ──resolve──► quads in ids ──net──► what really changes ──► record (for the log)
//!                                                     └─────────────► next Snapshot
//! ```
//!
//! A snapshot is a value: a transaction copies what it touches and shares the rest, publishing one is swapping a
//! pointer, and dropping one aborts it. One writer at a time; readers never wait and test no visibility.

mod apply;
mod changes;
mod free;
mod lay;
mod merges;
mod net;
pub(crate) mod record;

pub use apply::Applied;
pub use changes::{ChangeTerm, Changes};
pub use merges::{MergeCommitted, OpenMerge, ShardResult};
pub use record::{committed_at, stamp};

pub(crate) use net::NetChanges;
