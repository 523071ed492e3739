//! Reads of neighbour lists from another server's memory (OSDI '16
//! 5.2, in-place execution).
//!
//! A list takes a single read because the reader already knows its location. For each segment that it uses, the reader
//! requests from the owner a [`summary`] of the key finder and the offsets, and keeps this summary in memory. A summary
//! takes up to 3 bytes per key, on average 0.3 (LUBM) to 2.5, instead of 4 to 8. It is exact, so nothing is read twice
//! or in excess. Neighbours themselves are never cached.
//!
//! ```text
//! key ──find in the summary──► not a key: empty list, no read
//!     └──offsets[k], offsets[k+1] from the summary──► one read of [a, b) of the neighbours
//! ```
//!
//! Only files of one base are read, which never change; if updates have changed the store, the reader applies the
//! changes itself. Lists of named graphs, and of segments whose summary has not arrived or exceeds the reader's memory
//! limit, are requested by message ([`crate::servers`]).

pub mod blocks;
mod exposed;
mod plain;
mod reader;
pub mod summary;

pub use exposed::expose;
pub use reader::RemoteStore;
