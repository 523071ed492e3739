//! The library: queries, updates, stores on disk, completion, replicas.

mod answers;
mod changes_memory;
mod compare;
mod completion;
mod empty;
mod one_value;
mod oracle;
mod quads;
mod queries;
#[cfg(feature = "replicas")]
mod replicas;
#[cfg(feature = "replicas")]
mod shard_servers;
#[cfg(feature = "replicas")]
mod shard_texts;
#[cfg(feature = "replicas")]
mod shard_updates;
mod storage;
mod updates;
