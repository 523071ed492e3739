//! Opening one server's shards of a store whose other shards are on other servers.

use super::durable::{Access, OpenOptions, OpenedStore, log_size};
use super::shards::ShardHost;
use super::trust::{Held, Trust, Verify, compare};
use super::writer::Writer;
use jindou_cluster::servers::{ClusterFile, Servers};
use jindou_cluster::shards::{ShardClient, snapshot_of_shard};
use jindou_model::{Error, Result};
use jindou_store::shard::{Cluster, open_shard, shard_folder};
use std::path::Path;
use std::sync::Arc;

const WHY: &str = "a store on several servers cannot be updated yet: load its data again and restart the servers with the new store";

/// Opens the shards in `dir` that a server of a cluster holds, listens for its peers and connects to them.
///
/// # Errors
/// [`Error::Unsupported`] for write access; [`Error::NotAStore`] for a folder that is not a sharded store,
/// [`Error::Damaged`] for a shard that is missing, damaged or of another load, and for a cluster file that does not
/// fit.
pub(crate) fn open_server(
    dir: &Path,
    file: &ClusterFile,
    name: &str,
    options: &OpenOptions,
) -> Result<OpenedStore> {
    if options.access == Access::Write {
        return Err(Error::Unsupported(WHY.into()));
    }
    let cluster = Cluster::read(dir)?
        .ok_or_else(|| Error::not_a_store(dir, "not a sharded store; load it with --shards"))?;
    file.check(cluster.shards as usize)?;
    let [unmerged, _] = log_size(dir, cluster.epoch, cluster.merged)?;
    if unmerged > 0 {
        return Err(Error::Conflict(format!(
            "the store at {} has {unmerged} transactions in its log, which several servers cannot read: merge them, and copy the shards again",
            dir.display()
        )));
    }
    let entry = file.server(name)?;
    let mut own = vec![None; cluster.shards as usize];
    let mut first = None;
    let mut bytes = 0;
    for &shard in &entry.shards {
        let base = open_shard(dir, &cluster, shard, &options.indexes)?;
        if options.verify != Verify::Off {
            bytes += compare(&dir.join(shard_folder(shard)), &base, None, &|| false)?;
        }
        first.get_or_insert_with(|| Arc::clone(&base));
        if let Some(place) = own.get_mut(shard as usize) {
            *place = Some(base);
        }
    }
    let first = first.ok_or_else(|| Error::Usage(format!("server {name} holds no shard")))?;
    let verified = match options.verify {
        Verify::Off => Held(Arc::default()),
        _ => Held(Trust::of_verified(bytes)),
    };
    let home = entry.shards.first().copied().unwrap_or(0);
    let host = ShardHost::new(home, options);
    let posts = Arc::new(host.hub().clone());
    let runtime = options.runtime.clone().unwrap_or_default();
    let memory = runtime.memory();
    let servers = Servers::start(file, name, &cluster, own.clone(), Some(posts), memory)?;
    servers.serve_reads(dir);
    let client: Arc<dyn ShardClient> = Arc::new(servers);
    host.serve(own, &client);
    let snapshot = snapshot_of_shard(first, client)?;
    Ok(OpenedStore {
        shards: Some(host),
        hub: None,
        writer: Writer::new(snapshot, Err(WHY.into())),
        recovery: None,
        disk: None,
        reader: None,
        trust: verified,
    })
}
