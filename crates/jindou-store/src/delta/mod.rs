//! Updates of a graph: each transaction makes the next snapshot from the current one (OSDI '16 §6, evolving graphs).
//!
//! ```text
//! Changes ──resolve──► quads in ids ──net──► effective changes ──► record (for the log)
//!                                                     └──────────► next Snapshot
//! ```
//!
//! A snapshot is an immutable value. A transaction copies the parts that it changes and shares the rest; publishing a
//! snapshot swaps a pointer, and dropping it aborts the transaction. There is one writer at a time; readers never wait
//! and do not test the visibility of edges.

mod apply;
mod changes;
mod free;
mod merges;
mod net;
mod net_apply;
pub(crate) mod record;

pub use apply::Applied;
pub use changes::{ChangeTerm, Changes};
pub use merges::{MergeCommitted, OpenMerge, ShardResult};
pub use record::{committed_at, stamp};

pub(crate) use net::NetChanges;
