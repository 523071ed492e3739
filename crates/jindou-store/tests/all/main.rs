//! The store: loading, segments, updates, merging, damaged files.

mod changes;
mod damage;
mod load;
mod merge;
mod place;
mod quads;
mod transactions;
