//! The graph: segments, index vertices, statistics, patches, snapshots, the store directory and bulk
//! load.

pub mod directory;
pub mod segment;
pub mod sets;
mod snapshot;
pub mod statistics;

pub use snapshot::{Base, GraphPart, QuadEdit, Snapshot};
