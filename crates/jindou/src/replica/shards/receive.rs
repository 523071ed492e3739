//! Receives this server's shards from a base of the log.

use super::{ShardFolder, check_address};
use crate::replica::folder::IncomingFiles;
use crate::replica::notes::sync as sync_path;
use jindou_model::{Error, Result};
use jindou_replicas::Base as LogBase;
use jindou_replicas::Incoming;
use jindou_store::Snapshot;
use jindou_store::directory::BaseLocation;
use jindou_store::shard::{CLUSTER, Cluster, open_shards_with, shard_folder};
use std::sync::Arc;

/// Subfolder for shards that are being received.
pub(super) const INCOMING: &str = "incoming";

/// Shards that are being received into the store directory.
pub(super) struct ReceivedShards {
    pub into: Arc<ShardFolder>,
    pub log: u64,
    pub files: IncomingFiles,
}

impl ReceivedShards {
    /// The division of the store into shards, from the file that is received first.
    fn cluster(&self) -> Option<Cluster> {
        let read = Cluster::read(&self.into.dir.join(INCOMING));
        read.ok().flatten()
    }

    /// The shards to receive. Without a choice of the operator, those that the folder had before.
    fn wanted(&self, cluster: &Cluster) -> Result<Vec<u32>> {
        let wanted = self.into.shards.resolve(&self.into.dir, cluster)?;
        match wanted.is_empty() {
            false => Ok(wanted),
            true => Err(Error::Usage(
                "the folder has none of the store's shards: name some with --shards or --part"
                    .into(),
            )),
        }
    }

    fn take(&mut self, base: &LogBase) -> Result<Snapshot> {
        self.files.end()?;
        let (dir, incoming) = (&self.into.dir, self.into.dir.join(INCOMING));
        let cluster = self.cluster();
        let cluster = cluster.ok_or_else(|| {
            Error::Usage("the log's store is not sharded: leave --shards and --part out".into())
        })?;
        let held = self.wanted(&cluster)?;
        check_address(cluster.shards, &held, self.into.has_address)?;
        // Open the received shards once, to find damage before they replace the old ones.
        open_shards_with(&incoming, &cluster, &held, &self.into.indexes)?;
        // Remove this file first: if the move is interrupted, the folder has no store, and the shards are received
        // again.
        let old = std::fs::remove_file(dir.join(CLUSTER));
        let place = BaseLocation::find(dir)?.number();
        let notes = &self.into.notes;
        notes.write(place, cluster.merged, (self.log, base))?;
        let moved = || -> std::io::Result<()> {
            if let Err(e) = old
                && e.kind() != std::io::ErrorKind::NotFound
            {
                return Err(e);
            }
            for shard in (0..cluster.shards).map(shard_folder) {
                if dir.join(&shard).exists() {
                    std::fs::remove_dir_all(dir.join(&shard))?;
                }
                if incoming.join(&shard).exists() {
                    std::fs::rename(incoming.join(&shard), dir.join(&shard))?;
                }
            }
            std::fs::rename(incoming.join(CLUSTER), dir.join(CLUSTER))?;
            std::fs::remove_dir_all(&incoming)
        };
        moved().map_err(|e| Error::io(dir, e))?;
        sync_path(dir)?;
        notes.remove_others(place, cluster.merged);
        self.into.state().log = Some(self.log);
        let (_, snapshot) = self.into.open_base(&cluster, held)?;
        Ok(snapshot.at_group(base.number))
    }
}

impl Incoming<Snapshot> for ReceivedShards {
    fn write(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.files.append(name, bytes)
    }

    fn wants(&self, shard: u32) -> bool {
        let wanted = self.cluster().map(|cluster| self.wanted(&cluster));
        wanted.is_some_and(|wanted| wanted.is_ok_and(|wanted| wanted.contains(&shard)))
    }

    fn finish(mut self: Box<Self>, base: &LogBase) -> std::io::Result<Snapshot> {
        self.take(base).map_err(std::io::Error::other)
    }
}
