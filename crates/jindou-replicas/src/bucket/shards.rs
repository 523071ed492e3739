//! The shards of a base, each uploaded by one of its holders.
//!
//! A shard's document is stored next to the shard's parts, and lists them. The base's document, which is created once
//! all shards are uploaded, contains copies of the shards' documents.

use super::bases::{BaseFiles, FileInBase, part_name};
use super::{Bucket, Failure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which an upload checks for shards from other holders, and the number of checks.
const SHARD_LOOK: Duration = Duration::from_secs(1);
const SHARD_LOOKS: u32 = 60;

/// A shard of a base, with its files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShardInBase {
    /// Number of the shard.
    pub shard: u32,
    /// Random number of the process that uploaded the shard.
    pub(super) start: u64,
    /// The shard's files.
    pub files: Vec<FileInBase>,
}

/// Largest number of files of a shard. Used to number the files of all shards, so that names of parts are unique.
const SHARD_FILES: usize = 4096;

impl ShardInBase {
    /// Number of a file among the files of all shards.
    pub(super) fn index(&self, file: usize) -> usize {
        (self.shard as usize + 1) * SHARD_FILES + file
    }

    fn name(epoch: u64, number: u64, start: u64, shard: u32) -> String {
        let part = part_name(epoch, number, start, 0, 0);
        let folder = part.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/shard-{shard}.json")
    }
}

impl Bucket {
    /// Uploads the files of one shard of a base, and the shard's document.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub async fn upload_shard(
        &self,
        (epoch, number, start): (u64, u64, u64),
        shard: u32,
        files: Arc<dyn BaseFiles>,
    ) -> Result<(), Failure> {
        let mut uploaded = ShardInBase {
            shard,
            start,
            files: Vec::new(),
        };
        let all = files.files();
        if all.len() > SHARD_FILES {
            let why = format!("shard {shard} has {} files", all.len());
            return Err(Failure::Refused(why));
        }
        for (index, (name, length)) in all.into_iter().enumerate() {
            let place = (epoch, number, start, uploaded.index(index));
            let file = self.upload_file(place, &files, &name, Some(length)).await?;
            uploaded.files.push(file);
        }
        let bytes = serde_json::to_vec(&uploaded).map_err(|e| Failure::Refused(e.to_string()))?;
        let name = ShardInBase::name(epoch, number, start, shard);
        self.create_with_retries(&name, Bytes::from(bytes))
            .await
            .map(|_| ())
    }

    /// The shards of a base that were uploaded so far, by ascending number.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn shards(&self, epoch: u64, number: u64) -> Result<Vec<ShardInBase>, Failure> {
        let begin = part_name(epoch, number, 0, 0, 0);
        let begin = begin.rsplit_once('-').map_or("", |(begin, _)| begin);
        let begin = begin.rsplit_once('-').map_or("", |(begin, _)| begin);
        let (found, _) = self.names("parts", None, usize::MAX).await?;
        let names = found.iter().filter_map(|meta| self.name(&meta.location));
        let is_shard = |name: &String| {
            let file = name.strip_prefix(begin).and_then(|n| n.rsplit_once('/'));
            file.is_some_and(|(_, file)| file.starts_with("shard-") && file.ends_with(".json"))
        };
        let mut all: BTreeMap<u32, ShardInBase> = BTreeMap::new();
        for name in names.filter(is_shard) {
            let (bytes, _) = self.get_with_retries(&name).await?;
            // A damaged document is ignored; its shard is uploaded again under another name.
            let read: Option<ShardInBase> = serde_json::from_slice(&bytes).ok();
            let read = read.filter(|s| ShardInBase::name(epoch, number, s.start, s.shard) == name);
            all.extend(read.map(|shard| (shard.shard, shard)));
        }
        Ok(all.into_values().collect())
    }

    /// Waits until `count` shards of a base are uploaded.
    pub(super) async fn all_shards(
        &self,
        epoch: u64,
        number: u64,
        count: u32,
    ) -> Result<Vec<ShardInBase>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut there = 0;
        for _ in 0..SHARD_LOOKS {
            let shards = self.shards(epoch, number).await?;
            if shards.iter().map(|s| s.shard).eq(0..count) {
                return Ok(shards);
            }
            there = shards.len();
            tokio::time::sleep(SHARD_LOOK).await;
        }
        let why = format!("{there} of {count} shards are uploaded so far");
        Err(Failure::Unknown(why))
    }
}
