//! The graph: segments, index vertices, statistics, patches, snapshots, the store directory and bulk
//! load.

mod base;
pub mod delta;
pub mod directory;
mod graph;
mod load;
mod merge;
mod quads;
pub mod segment;
pub mod sets;
pub mod shard;
mod snapshot;
pub mod statistics;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use base::Base;
pub use base::ObjectTerms;
pub use delta::{Applied, ChangeTerm, Changes, TailTerms};
pub use directory::{
    CheckReport, Damage, InfoReport, PredicateInfo, check, check_with, info, info_with, open,
};
pub use graph::{Graph, Identity, Predicates, TermDecoding, TermSource, Vocabulary};
pub use load::{LoadOptions, LoadReport, PHASES, Successor, load, load_successor};
pub use merge::{MergeOptions, MergeReport, Merging};
pub use quads::SnapshotQuads;
pub use snapshot::{GraphPart, Snapshot};
