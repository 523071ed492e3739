//! Reading neighbour lists from another server's memory (OSDI '16 §5.2, in-place execution).
//!
//! A list takes a single read because the reader already knows its place. For each segment that it uses, it keeps a
//! [`summary`] of the key finder and the offsets, which it has requested from the owner. A summary takes up to 3 bytes per
//! key, on average 0.3 (LUBM) to 2.5, instead of 4 to 8, and is exact, so that nothing is read twice or in excess.
//! Neighbours themselves are never kept.
//!
//! ```text
//! key ──summary: find──► no key: empty list, no read
//!     └──summary: offsets[k], offsets[k+1]──► one read of [a, b) of the neighbours
//! ```
//!
//! Reads go to the files of one base, which never change; a reader of a changed store applies the changes itself.
//! Lists of named graphs, and of segments whose summary is not here or does not fit the reader's memory limit, are
//! requested by message ([`crate::servers`]).

pub mod blocks;
mod exposed;
mod plain;
mod reader;
pub mod summary;

pub use exposed::expose;
pub use reader::RemoteStore;
