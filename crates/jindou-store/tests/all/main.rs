//! The store: loading, segments, updates, merging, shards, damaged files.

#[path = "../common/transactions.rs"]
mod transactions;

mod changes;
mod damage;
mod load;
mod merge;
mod place;
mod quads;
mod shards;
