//! Choice of the shards that a server holds.

use crate::replica::notes::Notes;
use jindou_model::{Error, Result};
use jindou_store::shard::{Cluster, shard_folder};
use std::path::Path;

/// Number of shards of the store in a folder; `None` for a store that is not sharded.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Version`] and [`Error::Io`] for `cluster.jd`.
pub fn shards_in(dir: &Path) -> Result<Option<u32>> {
    Ok(Cluster::read(dir)?.map(|cluster| cluster.shards))
}

/// The shards of a sharded store that a server holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeldShards {
    /// All shards that are in its folder.
    #[default]
    InFolder,
    /// The shards with these numbers.
    Listed(Vec<u32>),
    /// One server's share, if the shards are distributed evenly over several servers.
    Part {
        /// Number of this server, from 0.
        number: u32,
        /// Number of servers.
        of: u32,
        /// Number of servers that hold each shard.
        replicas: u32,
    },
}

impl HeldShards {
    /// One of the held shards, if that is known without reading the store.
    pub(super) fn first(&self) -> Option<u32> {
        match self {
            Self::InFolder => None,
            Self::Listed(shards) => shards.first().copied(),
            Self::Part { number, .. } => Some(*number),
        }
    }

    /// Resolves the choice to shard numbers, ascending, for a folder that contains the store or a part of it.
    /// [`Self::InFolder`] means the shards in the folder, and those that it had before.
    ///
    /// # Errors
    /// Those of [`Self::among`].
    pub(super) fn resolve(&self, dir: &Path, cluster: &Cluster) -> Result<Vec<u32>> {
        let all = 0..cluster.shards;
        match self {
            Self::InFolder => {
                let before = Notes::of(dir).shards(cluster.epoch)?;
                let is_here = |s: &u32| dir.join(shard_folder(*s)).exists();
                Ok(all.filter(|s| before.contains(s) || is_here(s)).collect())
            }
            chosen => chosen.among(cluster.shards),
        }
    }

    /// Resolves the choice to shard numbers, ascending, among `shards` shards of a store.
    ///
    /// # Errors
    /// [`Error::Usage`] if a number is too high or repeated, or no shard is chosen.
    pub fn among(&self, shards: u32) -> Result<Vec<u32>> {
        let all = 0..shards;
        let held: Vec<u32> = match self {
            Self::InFolder => all.collect(),
            Self::Listed(listed) => check_shards(shards, listed)?,
            &Self::Part {
                number,
                of,
                replicas,
            } => {
                if number >= of {
                    return Err(Error::Usage(format!(
                        "there is no part {number} of {of}: the first part is 0, the last is {}",
                        i64::from(of) - 1
                    )));
                }
                if !(1..=of).contains(&replicas) {
                    return Err(Error::Usage(format!(
                        "a shard cannot be at {replicas} of {of} servers: use 1 to {of} replicas"
                    )));
                }
                all.filter(|s| (s % of + of - number) % of < replicas)
                    .collect()
            }
        };
        match held.is_empty() {
            false => Ok(held),
            true => Err(Error::Usage(format!(
                "this server would have none of the store's {shards} shards"
            ))),
        }
    }
}

/// Checks shard numbers that an operator listed; returns them ascending.
fn check_shards(count: u32, shards: &[u32]) -> Result<Vec<u32>> {
    let mut all = shards.to_vec();
    all.sort_unstable();
    let wrong = |what: String| Err(Error::Usage(what));
    if let Some(&last) = all.last()
        && last >= count
    {
        let n = count;
        return wrong(format!(
            "the store has no shard {last}: it has {n}, from 0 to {}",
            n - 1
        ));
    }
    if let Some(pair) = all.windows(2).find(|p| p[0] == p[1]) {
        return wrong(format!("shard {} is named twice", pair[0]));
    }
    Ok(all)
}
