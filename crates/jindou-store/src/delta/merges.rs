//! Merges of a sharded store, as its log records them: *merge started*, and *merge committed* once the files of all
//! shards are complete. Both are numbered like other changes, so that all servers use the merged base from the same
//! snapshot on.

use super::record::{self, RecordPart, damaged};
use crate::merge::MergePlan;
use crate::snapshot::Snapshot;
use jindou_model::{Error, Result};

/// A merge that was started and is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMerge {
    /// Number of the snapshot that started the merge. The merged base contains this snapshot or a later one.
    pub started: u64,
    /// The plan of the files to write.
    pub plan: MergePlan,
}

impl OpenMerge {
    pub(crate) fn to_numbers(self) -> [u64; 3] {
        let plan = self.plan;
        [self.started, plan.generation.into(), plan.to_flags()]
    }

    /// Decodes the output of [`Self::to_numbers`]; `None` for anything else.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[started, generation, flags] = numbers else {
            return None;
        };
        let plan = MergePlan::from_flags(u32::try_from(generation).ok()?, flags)?;
        Some(Self { started, plan })
    }
}

/// Result of merging one shard; equal on all servers that have the shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardResult {
    /// Hash of the shard's statistics and of its files that do not depend on other shards.
    pub hash: u64,
    /// The shard's part of the statistics of the whole store.
    pub statistics: Vec<u8>,
}

/// The commit of a merge. All servers use the merged base from the snapshot on that this record makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeCommitted {
    /// Number of the last snapshot that the base contains.
    pub merged: u64,
    /// The result of each shard, in order.
    pub shards: Vec<ShardResult>,
}

impl MergeCommitted {
    /// The committed merge in a record; `None` if the record does not commit one.
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

    /// The record that commits the merge and makes the snapshot with this number.
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

    /// The merge that was started and is not committed yet, if there is one. Only in sharded stores on several servers.
    #[must_use]
    pub fn open_merge(&self) -> Option<OpenMerge> {
        self.delta().open_merge
    }

    /// Creates the next snapshot, in which a merge is open, and its record. `None` if a merge is open already.
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

    /// Creates the next snapshot, in which the open merge is committed, and its record. This snapshot must already use
    /// the merged base; see [`Merging::rebase_shards`](crate::Merging::rebase_shards).
    ///
    /// # Errors
    /// [`Error::Conflict`] if this snapshot uses another base; [`Error::Damaged`] if no merge is open, or another one.
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

    /// As [`Self::commit_merge`], but the base need not be the committed one: a store that was restored from the log
    /// merges by itself.
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
            next.drop_terms_without_edges(committed)?;
        }
        next.finish(0, 0, false);
        Ok(next)
    }
}
