//! Merges of a sharded store that its log records: *merge started*, and *merge committed* once the shards' files are
//! there. Both are numbered like other changes, so that all servers use the same base from the same snapshot on.

use super::record::{self, RecordPart, damaged};
use crate::merge::MergePlan;
use crate::snapshot::Snapshot;
use jindou_model::{Error, Result};

/// A merge that was started and not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMerge {
    /// The snapshot that started it. The base is made of a snapshot that is not older.
    pub started: u64,
    /// The files to write.
    pub plan: MergePlan,
}

impl OpenMerge {
    pub(crate) fn to_numbers(self) -> [u64; 3] {
        let MergePlan { generation, all } = self.plan;
        [self.started, generation.into(), all.into()]
    }

    /// `None` unless they are output of [`Self::to_numbers`].
    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[started, generation, all @ 0..=1] = numbers else {
            return None;
        };
        let plan = MergePlan {
            generation: u32::try_from(generation).ok()?,
            all: all == 1,
        };
        Some(Self { started, plan })
    }
}

/// Result of merging one shard; equal on all servers that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardResult {
    /// Hash of the files that do not depend on other shards, and of the statistics.
    pub hash: u64,
    /// The shard's part of the statistics of the whole store.
    pub statistics: Vec<u8>,
}

/// The base that a store's servers use from the snapshot on that has this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeCommitted {
    /// The last snapshot that the base contains.
    pub merged: u64,
    /// By shard.
    pub shards: Vec<ShardResult>,
}

impl MergeCommitted {
    /// The committed merge in a record, if it has one.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Version`] for a record that is damaged.
    pub fn of_record(record: &[u8]) -> Result<Option<Self>> {
        for part in record::parts(record) {
            if let (_, RecordPart::MergeCommitted(committed)) = part? {
                return Ok(Some(committed));
            }
        }
        Ok(None)
    }

    /// The record of a snapshot with this number that commits the merge.
    #[must_use]
    pub fn to_record(&self, number: u64) -> Vec<u8> {
        record::encode_merge_committed(self, number)
    }
}

impl Snapshot {
    /// True if a record starts a merge. False for damaged records.
    #[must_use]
    pub fn starts_merge(record: &[u8]) -> bool {
        record::parts(record).any(|part| matches!(part, Ok((_, RecordPart::MergeStarted(_)))))
    }

    /// The merge that was started and not committed yet, if there is one. Only in sharded stores on several servers.
    #[must_use]
    pub fn open_merge(&self) -> Option<OpenMerge> {
        self.delta().open_merge
    }

    /// Creates the next snapshot, from which on a merge is open, and its record. `None` if one is open already.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a store that is not sharded, [`Error::Usage`] for a generation that the base has
    /// already, [`Error::Limit`] when snapshot numbers run out.
    pub fn start_merge(&self, plan: MergePlan) -> Result<Option<(Self, Vec<u8>)>> {
        if self.open_merge().is_some() {
            return Ok(None);
        }
        let number = self.next_number()?;
        if self.as_sharded().is_none() {
            let what = "a store that is not sharded is merged by each server alone";
            return Err(Error::Unsupported(what.into()));
        }
        if plan.generation <= self.base().manifest().merged.newest() {
            let what = format!(
                "the base has files of generation {} already",
                plan.generation
            );
            return Err(Error::Usage(what));
        }
        let record = record::encode_merge_started(plan, number);
        Ok(Some((self.with_merge_started(plan, number)?, record)))
    }

    /// Creates the next snapshot, from which on the open merge is committed, and its record. The base of this snapshot
    /// must be the merged one; see [`Merging::rebase_shards`](crate::Merging::rebase_shards).
    ///
    /// # Errors
    /// [`Error::Conflict`] for another base; [`Error::Damaged`] if no merge is open, or another one.
    pub fn commit_merge(&self, committed: &MergeCommitted) -> Result<(Self, Vec<u8>)> {
        let number = self.next_number()?;
        let next = self.with_merge_committed(committed, number)?;
        if self.base().merged() != committed.merged {
            return Err(Error::Conflict(format!(
                "snapshot {number} uses the base of snapshot {}, which this server has not merged yet",
                committed.merged
            )));
        }
        Ok((next, record::encode_merge_committed(committed, number)))
    }

    /// The same snapshot without an open merge: for a store that leaves the log in which it was started.
    #[must_use]
    pub fn without_open_merge(&self) -> Self {
        let mut next = self.clone();
        if next.open_merge().is_some() {
            next.set_open_merge(None);
        }
        next
    }

    pub(super) fn with_merge_started(&self, plan: MergePlan, number: u64) -> Result<Self> {
        if self.as_sharded().is_none() {
            return Err(damaged(
                "it starts a merge of shards, and the store is not sharded",
            ));
        }
        if self.open_merge().is_some() {
            return Err(damaged("it starts a merge while another one is open"));
        }
        if plan.generation <= self.base().manifest().merged.newest() {
            return Err(damaged(
                "it starts a merge of a generation that the base has already",
            ));
        }
        let mut next = self.successor(number);
        next.set_open_merge(Some(OpenMerge {
            started: number,
            plan,
        }));
        next.finish(0, 0, false);
        Ok(next)
    }

    /// The base need not be the committed one: a store that was restored from the log merges by itself.
    pub(super) fn with_merge_committed(
        &self,
        committed: &MergeCommitted,
        number: u64,
    ) -> Result<Self> {
        let Some(own) = self
            .base()
            .own_data()
            .filter(|_| self.as_sharded().is_some())
        else {
            return Err(damaged(
                "it commits a merge of shards, and the store is not sharded",
            ));
        };
        let Some(open) = self.open_merge() else {
            return Err(damaged("it commits a merge that was not started"));
        };
        if !(open.started..number).contains(&committed.merged) {
            return Err(damaged("it commits a merge that is not the open one"));
        }
        if committed.shards.len() != own.blocks().shards() as usize {
            return Err(damaged("it commits a merge of another number of shards"));
        }
        let mut next = self.successor(number);
        next.set_open_merge(None);
        if self.base().merged() == committed.merged {
            next.drop_idle(committed)?;
        }
        next.finish(0, 0, false);
        Ok(next)
    }
}
