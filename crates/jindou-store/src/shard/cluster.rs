//! `cluster.jd`, the manifest of a sharded store.
//!
//! ```text
//! jindou-cluster 1                   format version
//! epoch 5b0c…                        id epoch of all shards, 16 hex digits
//! region 0                           the 32-bit id space; there is one so far
//! shards 6
//! placement range                    or hash
//! block-shift 11                     blocks have 2^11 ids
//! union-default-graph false
//! quads 123                          of all shards together
//! terms 45                           of the load
//! shard 0 01ab…                      xxh3-64 of the manifest in the folder shard-0
//! …
//! cluster 8d2f…                      xxh3-64 of all lines above
//! ```
//!
//! A load writes version 1. Merges write version 2, which has no hashes and has the line `merged 17` after the quads:
//! the number of the last snapshot that the bases of all shards contain. A merge becomes valid when this file is
//! replaced; the files of the new bases are complete by then.

use super::Placement;
use crate::directory::{Manifest, manifest_text};
use jindou_graph::shard::{MAX_SHARDS, MAX_SHIFT};
use jindou_model::{Error, Result};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The manifest's name.
pub const CLUSTER: &str = "cluster.jd";

const FIRST_WORD: &str = "jindou-cluster";
/// The newest version of the format.
const VERSION: u32 = 2;

/// The folder of a shard's store directory.
#[must_use]
pub fn shard_folder(shard: u32) -> String {
    format!("shard-{shard}")
}

/// The content of `cluster.jd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Id epoch of all shards.
    pub epoch: u64,
    /// Rule by which blocks were assigned to shards.
    pub placement: Placement,
    /// log2 of the ids in a block.
    pub block_shift: u32,
    /// True if queries see the union of all graphs as their default graph.
    pub union_default: bool,
    /// Distinct quads.
    pub quads: u64,
    /// Distinct terms of the load.
    pub terms: u64,
    /// Number of shards.
    pub shards: u32,
    /// Number of the last snapshot that the bases contain; 0 for a load.
    pub merged: u64,
    /// xxh3-64 of each shard's manifest as the load wrote it; empty once the shards were merged.
    pub hashes: Vec<u64>,
}

impl Cluster {
    /// The text, including its own hash.
    #[must_use]
    pub fn to_text(&self) -> String {
        let version = if self.hashes.is_empty() { 2 } else { 1 };
        let mut t = format!(
            "{FIRST_WORD} {version}\nepoch {:016x}\nregion 0\nshards {}\nplacement {}\nblock-shift {}\n\
             union-default-graph {}\nquads {}\n",
            self.epoch,
            self.shards,
            self.placement.name(),
            self.block_shift,
            self.union_default,
            self.quads,
        );
        if version > 1 {
            let _ = writeln!(t, "merged {}", self.merged);
        }
        let _ = writeln!(t, "terms {}", self.terms);
        for (i, hash) in self.hashes.iter().enumerate() {
            let _ = writeln!(t, "shard {i} {hash:016x}");
        }
        let sum = xxh3_64(t.as_bytes());
        let _ = writeln!(t, "cluster {sum:016x}");
        t
    }

    /// True if this manifest belongs to the files of shard `number` in the base that `self` describes.
    pub(crate) fn has(&self, number: u32, manifest: &Manifest) -> bool {
        let of_load = self.hashes.get(number as usize);
        let same = match of_load {
            Some(&hash) => xxh3_64(manifest.to_text().as_bytes()) == hash,
            None => {
                (manifest.merged.number, manifest.quads, manifest.terms)
                    == (self.merged, self.quads, self.terms)
            }
        };
        same && manifest.epoch == self.epoch && manifest.shard == Some([number, self.shards])
    }

    /// Parses the text; `None` for anything but the output of [`Self::to_text`].
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let found = Self::parse_lines(std::str::from_utf8(text).ok()?)?;
        let hashes = found.hashes.len();
        let fits = (1..=MAX_SHARDS).contains(&found.shards)
            && (hashes == found.shards as usize || hashes == 0)
            && found.block_shift <= MAX_SHIFT;
        (fits && found.to_text().as_bytes() == text).then_some(found)
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut c = Self {
            epoch: 0,
            placement: Placement::Range,
            block_shift: 0,
            union_default: false,
            quads: 0,
            terms: 0,
            shards: 0,
            merged: 0,
            hashes: Vec::new(),
        };
        for line in text.lines() {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "epoch" => c.epoch = u64::from_str_radix(rest, 16).ok()?,
                "placement" => c.placement = rest.parse().ok()?,
                "block-shift" => c.block_shift = rest.parse().ok()?,
                "union-default-graph" => c.union_default = rest.parse().ok()?,
                "quads" => c.quads = rest.parse().ok()?,
                "terms" => c.terms = rest.parse().ok()?,
                "shards" => c.shards = rest.parse().ok()?,
                "merged" => c.merged = rest.parse().ok()?,
                "shard" => {
                    let hash = rest.split_once(' ')?.1;
                    c.hashes.push(u64::from_str_radix(hash, 16).ok()?);
                }
                // The remaining lines are checked by comparing the whole text.
                _ => {}
            }
        }
        Some(c)
    }

    /// Reads the manifest in a folder; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Version`]; [`Error::Io`] when the file cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(CLUSTER);
        let Some(text) = manifest_text(&path, File::open(&path))? else {
            return Ok(None);
        };
        if let Some(found) = Self::parse(&text) {
            return Ok(Some(found));
        }
        let first = text.split(|&b| b == b'\n').next().unwrap_or(&[]);
        let first = String::from_utf8_lossy(first).into_owned();
        let version = first.strip_prefix(FIRST_WORD).map(str::trim);
        let version = version.and_then(|v| v.parse::<u32>().ok());
        Err(match version {
            Some(v) if !(1..=VERSION).contains(&v) => Error::Version {
                file: path,
                found: v.into(),
                supported: VERSION.into(),
            },
            _ => Error::damaged(path, "damaged; load the data again"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::damaged;

    #[test]
    fn a_cluster_comes_back_and_any_change_is_seen() {
        let c = Cluster {
            epoch: 0xABC,
            placement: Placement::Hash,
            block_shift: 4,
            union_default: true,
            quads: 12,
            terms: 7,
            shards: 3,
            merged: 0,
            hashes: vec![3, 99, u64::MAX],
        };
        let merged = Cluster {
            merged: 17,
            hashes: Vec::new(),
            ..c.clone()
        };
        for c in [c, merged] {
            let text = c.to_text().into_bytes();
            assert_eq!(Cluster::parse(&text), Some(c));
            for bad in damaged(&text) {
                assert_eq!(Cluster::parse(&bad), None, "{}", bad.escape_ascii());
            }
        }
    }
}
