//! Shards as one store, and what servers read of each other, over the transport in memory and over UCX.

mod double;
mod failures;
mod remote;
mod shards;
mod support;
mod ucx;
