//! The store: loading, segments, updates, merging, freed ids, damaged files.

mod changes;
mod damage;
mod free;
mod load;
mod merge;
mod place;
mod quads;
mod transactions;
