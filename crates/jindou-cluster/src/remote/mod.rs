//! Neighbour lists out of another server's memory (OSDI '16 §5.2, in-place execution).
//!
//! A list is one read because the reader already knows where it lies. It keeps, for each segment that it
//! uses, a [`summary`] of the key finder and the offsets: up to 3 bytes a key, on average 0.3 (LUBM) to 2.5,
//! instead of 4 to 8, exact, so that nothing is read twice and nothing too much. Neighbours themselves are never kept.
//!
//! ```text
//! key ──summary: find──► no key: empty list, no read
//!     └──summary: offsets[k], offsets[k+1]──► one read of [a, b) of the neighbours
//! ```
//!
//! Only the base of the default graph is read. Lists of segments whose summary does not fit the reader's memory limit, of
//! named graphs, and of snapshots with patches are asked for by message ([`crate::servers`]).

pub mod blocks;
mod exposed;
mod files;
mod plain;
mod reader;
pub mod summary;
mod wire;

pub use exposed::Exposed;
pub use files::StoreFiles;
pub use reader::RemoteStore;
