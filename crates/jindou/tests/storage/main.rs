//! The store on disk: logs, merges, backups, damaged files.

#[path = "../common/quads.rs"]
mod quads;
#[path = "../common/stores.rs"]
mod stores;

mod backup;
mod damage;
mod lost_log;
mod merging;
mod numbers;
mod prefixes;
mod recluster;
mod transactions;
