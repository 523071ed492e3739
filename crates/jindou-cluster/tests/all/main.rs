//! Shards as one store, and what servers read of each other, from files and over UCX.

mod failures;
mod remote;
mod shards;
mod support;
mod ucx;
