//! The store: loading, segments, updates, merging, damaged files.

#[path = "../common/agreement.rs"]
mod agreement;
#[path = "../common/transactions.rs"]
mod transactions;

mod changes;
mod damage;
mod load;
mod merge;
mod place;
mod quads;
