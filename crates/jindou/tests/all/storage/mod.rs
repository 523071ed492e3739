//! The store on disk: logs, merges, backups, damaged files.

mod backup;
mod damage;
mod freeing;
mod lost_log;
mod merging;
mod numbers;
mod prefixes;
mod recluster;
mod shard_servers;
mod transactions;
