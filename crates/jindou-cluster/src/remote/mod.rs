//! Neighbour lists out of another server's memory (OSDI '16 §5.2, in-place execution).
//!
//! A list is one read because the reader already knows where it lies. It keeps, for each segment that it
//! uses, a [`summary`] of the key finder and the offsets: up to 3 bytes a key, on average 0.3 (LUBM) to 2.5,
//! instead of 4 to 8, exact, so that nothing is read twice and nothing too much. Neighbours themselves are never kept.
//!
//! ```text
//! key ──dirty keys──► dirty: ask the server, which merges its patch
//!   └──summary: find──► no key: empty list, no read
//!         └──summary: offsets[k], offsets[k+1]──► one read of [a, b) of the neighbours
//! ```
//!
//! The dirty keys come with the snapshot: a reader that holds a [`RemoteSnapshot`] knows without asking which
//! keys any update up to that snapshot touched. Keys of segments whose summary does not fit the reader's
//! memory limit, and patterns over named graphs, go to the server by message as well.

pub mod blocks;
mod exposed;
mod files;
mod plain;
mod reader;
mod server;
pub mod summary;
mod wire;

pub use exposed::Exposed;
pub use files::StoreFiles;
pub use reader::{Access, Lists, Pattern, RemoteSnapshot, RemoteStore};
pub use server::{Retired, StoreServer};
