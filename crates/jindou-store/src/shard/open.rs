//! Opening shards, and reading those that are open in the same process.

use super::{BLOCKS, CLUSTER, Cluster, ShardInfo, blocks_file, shard_folder};
use crate::base::Base;
use crate::directory::{
    Bytes, MANIFEST, Manifest, ManifestState, NEXT_MANIFEST, open_folder, remove_unnamed,
};
use jindou_dictionary::index::Indexes;
use jindou_model::{Error, Result};
use std::path::Path;
use std::sync::Arc;

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
    let manifest = manifest_of(dir, cluster, number)?;
    let mut base = open_folder(&folder, &manifest, indexes)?;
    let (blocks, is) = blocks_file::read(Bytes::map(&folder.join(BLOCKS))?)?;
    if (blocks.shards(), blocks.shift(), is) != (cluster.shards, cluster.block_shift, number) {
        return wrong(format!(
            "its {BLOCKS} is of another shard; load the data again"
        ));
    }
    let shard = ShardInfo::new(blocks.with_merged(base.merged.tail.len()), number);
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
    let mut bases: Vec<Arc<Base>> = Vec::new();
    for s in 0..cluster.shards {
        let mut base = open_shard(dir, cluster, s, indexes)?;
        // Every shard has the same; it is needed once.
        if let (Some(first), Some(own)) = (bases.first(), Arc::get_mut(&mut base)) {
            own.merged = first.merged.clone();
        }
        bases.push(base);
    }
    Ok(bases)
}

/// The manifest of a shard's files in the base that `cluster.jd` describes.
///
/// # Errors
/// [`Error::Damaged`] if there is none; [`Error::Io`].
pub fn manifest_of(dir: &Path, cluster: &Cluster, number: u32) -> Result<Manifest> {
    let folder = dir.join(shard_folder(number));
    let mut what = format!(
        "the shard is missing; {CLUSTER} lists {} shards",
        cluster.shards
    );
    for name in [MANIFEST, NEXT_MANIFEST] {
        match Manifest::read_as(&folder, name)? {
            ManifestState::Store(m) if cluster.has(number, &m) => return Ok(m),
            ManifestState::None => {}
            ManifestState::Store(_) => {
                what =
                    "the shard was not loaded together with the others; load the data again".into();
            }
            _ => what = format!("its {name} is damaged; load the data again"),
        }
    }
    Err(Error::damaged(folder, what))
}

/// Completes or undoes what a process left that ended while it merged: [`NEXT_MANIFEST`] becomes the manifest if
/// `cluster.jd` says that the merge is valid, and files that no manifest names are removed. Only for the process that
/// holds the store's lock. What cannot be done now is done at the next opening.
///
/// # Errors
/// As [`manifest_of`].
pub fn tidy_shards(dir: &Path, cluster: &Cluster) -> Result<()> {
    for number in 0..cluster.shards {
        let manifest = manifest_of(dir, cluster, number)?;
        let folder = dir.join(shard_folder(number));
        if Manifest::read(&folder)? == ManifestState::Store(manifest.clone()) {
            let _ = std::fs::remove_file(folder.join(NEXT_MANIFEST));
        } else if std::fs::rename(folder.join(NEXT_MANIFEST), folder.join(MANIFEST)).is_err() {
            continue;
        }
        remove_unnamed(&folder, &manifest)?;
    }
    Ok(())
}
