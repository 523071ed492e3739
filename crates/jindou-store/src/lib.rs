//! The store directory: bulk load, snapshots, updates, merging, and the formats of all files. [`jindou_graph`] is the
//! interface that queries use.

mod base;
pub mod delta;
pub mod directory;
mod load;
mod merge;
mod quads;
mod requests;
mod revisions;
pub mod shard;
mod snapshot;
mod snapshot_graph;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threads;
mod warm;

pub use base::Base;
pub use delta::{Applied, ChangeTerm, Changes, MergeCommitted, OpenMerge, ShardResult};
pub use directory::{
    CheckReport, Damage, InfoReport, PredicateInfo, check, check_with, info, info_with, open,
};
pub use load::{LoadOptions, LoadReport, PHASES, Successor, load, load_successor};
pub use merge::{MergeOptions, MergePlan, MergeReport, Merging, ShardFiles, ShardMerge};
pub use quads::SnapshotQuads;
pub use requests::DoneRequest;
pub use snapshot::{GraphPart, Snapshot};
pub use warm::{SegmentUse, WarmPart, WarmProgress, warm};
