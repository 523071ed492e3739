//! Opening shards, and reading those that are open in the same process.

use super::{BLOCKS, CLUSTER, Cluster, ShardInfo, blocks_file, shard_folder};
use crate::base::Base;
use crate::directory::{Bytes, MANIFEST, Manifest, ManifestState, open_folder};
use jindou_dictionary::index::Indexes;
use jindou_model::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Opens one shard of the store at `dir`, with these indexes where it has them.
///
/// # Errors
/// [`Error::Damaged`] if there is no such store, if the shard is missing or belongs to another load, and for a damaged
/// file.
pub fn open_shard(
    dir: &Path,
    cluster: &Cluster,
    number: u32,
    indexes: &Indexes,
) -> Result<Arc<Base>> {
    let folder = dir.join(shard_folder(number));
    let wrong = |what: String| Err(Error::damaged(&folder, what));
    let manifest = match Manifest::read(&folder)? {
        ManifestState::Store(m) => m,
        ManifestState::None => {
            return wrong(format!(
                "the shard is missing; {CLUSTER} lists {} shards",
                cluster.shards.len()
            ));
        }
        _ => return wrong(format!("its {MANIFEST} is damaged; load the data again")),
    };
    let text = manifest.to_text();
    let known = cluster.shards.get(number as usize);
    if known != Some(&xxh3_64(text.as_bytes())) || manifest.epoch != cluster.epoch {
        return wrong(
            "the shard was not loaded together with the others; load the data again".into(),
        );
    }
    let mut base = open_folder(&folder, &manifest, indexes)?;
    let (blocks, is) = blocks_file::read(Bytes::map(&folder.join(BLOCKS))?)?;
    let shape = (blocks.shards() as usize, blocks.shift(), is);
    if shape != (cluster.shards.len(), cluster.block_shift, number)
        || manifest.shard != Some([number, blocks.shards()])
    {
        return wrong(format!(
            "its {BLOCKS} is of another shard; load the data again"
        ));
    }
    let shard = ShardInfo::new(blocks, number);
    if base.dictionary.len() != shard.terms() {
        return wrong(
            "its dictionary does not match its table of blocks; load the data again".into(),
        );
    }
    base.shard = Some(Box::new(shard));
    Ok(Arc::new(base))
}

/// Opens all shards of the store at `dir` in this process, in their order.
///
/// # Errors
/// As [`open_shard`].
pub fn open_shards(dir: &Path, cluster: &Cluster) -> Result<Vec<Arc<Base>>> {
    open_shards_with(dir, cluster, &Indexes::new())
}

/// As [`open_shards`], with these indexes where the shards have them.
///
/// # Errors
/// As [`open_shard`].
pub fn open_shards_with(
    dir: &Path,
    cluster: &Cluster,
    indexes: &Indexes,
) -> Result<Vec<Arc<Base>>> {
    let shards = 0..cluster.shards.len() as u32;
    shards
        .map(|s| open_shard(dir, cluster, s, indexes))
        .collect()
}
