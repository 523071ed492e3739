//! Opening shards, and access between those that are open in the same process.

use super::{BLOCKS, CLUSTER, Cluster, ShardInfo, blocks_file, shard_folder};
use crate::base::{Base, MergedData};
use crate::directory::{
    Bytes, MANIFEST, Manifest, ManifestState, NEXT_MANIFEST, open_folder, remove_unnamed,
};
use jindou_dictionary::index::Indexes;
use jindou_model::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Opens one shard of the store at `dir`, with indexes of these kinds if the shard has them.
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

/// Opens all shards of the store at `dir` in this process, in the order of their numbers.
///
/// # Errors
/// As [`open_shard`].
pub fn open_shards(dir: &Path, cluster: &Cluster) -> Result<Vec<Arc<Base>>> {
    let all: Vec<u32> = (0..cluster.shards).collect();
    let bases = open_shards_with(dir, cluster, &all, &Indexes::new())?;
    Ok(bases.into_iter().flatten().collect())
}

/// Opens some shards of the store at `dir` in this process, with indexes of these kinds if they have them. Returns the
/// bases by shard. The other shards need not be in the directory.
///
/// # Errors
/// As [`open_shard`]; [`Error::Usage`] for a number that is not that of a shard.
pub fn open_shards_with(
    dir: &Path,
    cluster: &Cluster,
    shards: &[u32],
    indexes: &Indexes,
) -> Result<Vec<Option<Arc<Base>>>> {
    let mut bases: Vec<Option<Arc<Base>>> = vec![None; cluster.shards as usize];
    let mut merged: Option<MergedData> = None;
    for &shard in shards {
        let count = cluster.shards;
        let slot = bases.get_mut(shard as usize).ok_or_else(|| {
            Error::Usage(format!(
                "the store has no shard {shard}, but {count} shards from 0"
            ))
        })?;
        let base = open_shard(dir, cluster, shard, indexes)?;
        merged = Some(match merged {
            None => base.merged.clone(),
            Some(merged) => MergedData {
                tail: merged
                    .tail
                    .with_texts_of(&base.merged.tail)
                    .ok_or_else(|| {
                        let folder = dir.join(shard_folder(shard));
                        Error::damaged(folder, "its terms do not match those of the other shards")
                    })?,
                ..merged
            },
        });
        *slot = Some(base);
    }
    // The data of merged changes is the same in all shards, except for the text of terms, so they share it.
    for base in bases.iter_mut().flatten() {
        if let (Some(merged), Some(own)) = (&merged, Arc::get_mut(base)) {
            own.merged = merged.clone();
        }
    }
    Ok(bases)
}

/// The manifest of a shard's files in the base that `cluster` describes.
///
/// # Errors
/// [`Error::Damaged`] if there is none; [`Error::Io`].
pub fn manifest_of(dir: &Path, cluster: &Cluster, number: u32) -> Result<Manifest> {
    let folder = dir.join(shard_folder(number));
    let mut what = format!(
        "the shard is missing; {CLUSTER} lists {} shards (a server with some of them is started with --log)",
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

impl Cluster {
    /// Names of a sharded store's files, with their folders, for the shards that are in the directory.
    ///
    /// # Errors
    /// As [`manifest_of`].
    pub fn files_in(&self, dir: &Path) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::from([CLUSTER.to_owned()]);
        for number in 0..self.shards {
            let folder = shard_folder(number);
            if dir.join(&folder).exists() {
                let files = manifest_of(dir, self, number)?.names();
                names.extend(files.iter().map(|name| format!("{folder}/{name}")));
            }
        }
        Ok(names)
    }
}

/// Completes or undoes, for these shards, a merge whose process ended early. [`NEXT_MANIFEST`] becomes the manifest if
/// `cluster.jd` says that the merge is valid, and files that no manifest names are removed. Only for the process that
/// holds the store's lock. Steps that fail are repeated at the next opening.
///
/// # Errors
/// As [`manifest_of`].
pub fn tidy_shards(dir: &Path, cluster: &Cluster, shards: &[u32]) -> Result<()> {
    for &number in shards {
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
