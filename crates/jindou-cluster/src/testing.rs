//! Small sharded stores for tests of other crates, made by an actual load.

use crate::shards::{InProcessShards, snapshot_of_shard};
use jindou_model::Progress;
use jindou_store::shard::{Cluster, Sharding, open_shards};
use jindou_store::testing::{QuadList, TermQuad, canonical};
use jindou_store::{LoadOptions, Snapshot, load, open};
use oxrdf::Quad;
use std::sync::Arc;
use tempfile::TempDir;

/// Loads these quads into a sharded store and opens all shards in this process. Returns the snapshot of shard `own`.
/// With one shard, the store is not sharded.
///
/// # Panics
/// If the load fails, since this is for tests.
#[must_use]
pub fn shards_of(quads: &[Quad], sharding: Sharding, own: u32) -> (TempDir, Snapshot) {
    let terms: Vec<TermQuad> = quads.iter().map(canonical).collect();
    shards_of_terms(&terms, sharding, own)
}

/// As [`shards_of`], with quads in canonical bytes.
///
/// # Panics
/// If the load fails, since this is for tests.
#[must_use]
#[allow(clippy::expect_used)]
pub fn shards_of_terms(quads: &[TermQuad], sharding: Sharding, own: u32) -> (TempDir, Snapshot) {
    let (folder, near) = near_of_terms(quads, sharding);
    let Some(near) = near else {
        let base = open(&folder.path().join("store")).expect("the store just loaded");
        return (folder, Snapshot::of_base(base));
    };
    let base = Arc::clone(&near.shards()[own as usize]);
    let snapshot = snapshot_of_shard(base, Arc::new(near)).expect("a shard");
    (folder, snapshot)
}

/// Loads these quads into a sharded store and opens the shards in this process; `None` with one shard, which is not a
/// sharded store.
///
/// # Panics
/// If the load fails, since this is for tests.
#[must_use]
#[allow(clippy::expect_used)]
pub fn near_of_terms(quads: &[TermQuad], sharding: Sharding) -> (TempDir, Option<InProcessShards>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_memory(64 << 20)
        .with_threads(2)
        .with_sharding(Some(sharding));
    load(&dir, &QuadList(quads), &options, &Progress::default()).expect("a load of small data");
    let cluster = Cluster::read(&dir).expect("the manifest just written");
    let near = cluster
        .map(|c| InProcessShards::new(open_shards(&dir, &c).expect("the shards just loaded")));
    (folder, near)
}
