//! Queries, updates and their answers, through the library.

mod cursor;
mod documents;
mod exceptions;
mod functions;
mod indexes;
mod matching;
mod mixes;
mod named_graphs;
mod prefixes;
mod prepared;
mod semantics;
mod shard_workloads;
mod shards;
mod ted;
mod values;
mod w3c_sparql;
mod w3c_update;
mod watch;
mod watdiv;
mod workloads;
