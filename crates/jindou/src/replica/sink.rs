//! The shared log as the sink of a database's changes.

use super::Replica;
use super::request::SentChange;
use crate::backup::take::in_the_log;
use crate::database::{Database, DatabaseState};
use crate::runtime::Settled;
use crate::update::{
    Change, ChangeCounts, FileLayer, OpenSinkTransaction, UpdateOptions, UpdateReport, UpdateSink,
    WholeStoreWork, Writer, pause,
};
use jindou_model::{CancelToken, Error, MemoryBudget, Progress, Resource, Result};
use jindou_replicas::Consistency;
use jindou_store::{MergeOptions, MergeReport, Snapshot};
use std::any::Any;
use std::time::{Duration, Instant};

/// Minimum number of groups since the last merge for another merge: a server that starts must fetch and apply these
/// groups, at some 60 µs each. A merge also requires one group per [`GROUPS_SHARE`] quads, so that applying the groups
/// would take longer than merging.
const GROUPS: u64 = 50_000;
const GROUPS_SHARE: u64 = 50;

impl Database {
    /// The database's connection to a shared log; `None` for a store without one.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        (&*self.inner.sink as &dyn Any).downcast_ref()
    }
}

impl UpdateSink for Replica {
    fn is_writable(&self, _: &Writer) -> Result<()> {
        Ok(())
    }

    fn probe(&self, db: &DatabaseState) -> Result<()> {
        db.check_writable()
    }

    fn submit(
        &self,
        db: &Database,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<UpdateReport> {
        match &change {
            // Syntax errors are found here, before the change is sent.
            Change::Update(text) => {
                Database::parse_request(text, options, &db.prefixes(), cancel)?;
            }
            Change::Clear(graph) => graph.check()?,
            _ => {}
        }
        let change = SentChange::Change(change);
        self.send_with_room(db, &change, (&**options, &options.memory), cancel)
    }

    fn begin(&self, db: &Database, cancel: &CancelToken) -> Result<Box<dyn OpenSinkTransaction>> {
        Ok(Box::new(ReplicaTurn {
            head: db.snapshot_for(cancel)?,
            db: db.clone(),
        }))
    }

    fn wait_until_fresh(&self) -> Result<()> {
        match self.queries_wait {
            true => self.wait_for(Consistency::Default),
            false => Ok(()),
        }
    }

    /// The number of the snapshot's newest group.
    fn number(&self, snapshot: &Snapshot) -> u64 {
        snapshot.group()
    }

    fn has_files(&self, _: &DatabaseState) -> bool {
        true
    }

    fn may_merge(&self, db: &DatabaseState) -> Result<()> {
        db.check_writable()
    }

    /// Merges with the server's own options, while updates continue.
    fn merge(
        &self,
        db: &Database,
        _: Option<&FileLayer<'_>>,
        _: &MergeOptions,
        _: &Progress,
    ) -> Result<MergeReport> {
        db.inner.check_writable()?;
        let begun = Instant::now();
        let mut report = MergeReport::default();
        report.edits = db.snapshot().edit_count();
        if db.is_sharded() {
            self.merge_everywhere(db)?;
            let edits = report.edits;
            report = self.folder.last_merge();
            report.edits = edits;
        } else if self.save().is_none() {
            return Err(match db.inner.merges.last_failure() {
                Some(why) => Error::external(why),
                None => Error::Conflict(
                    "another merge is in progress; try again when it is done".into(),
                ),
            });
        }
        report.time = begun.elapsed();
        let snapshot = db.snapshot();
        report.snapshot = snapshot.base().number();
        report.generations = snapshot.base().generations();
        Ok(report)
    }

    fn is_log_long(&self, _: &DatabaseState, snapshot: &Snapshot) -> bool {
        let groups = snapshot.number().saturating_sub(snapshot.base().number());
        groups >= GROUPS.max(snapshot.quads() / GROUPS_SHARE)
    }

    fn supports(&self, work: WholeStoreWork) -> Result<()> {
        Err(match work {
            WholeStoreWork::Backup => in_the_log(),
            WholeStoreWork::Recluster => Error::Unsupported(
                "reclustering a store with a shared log: stop all servers, export the store, load it with another folder, and start with a new log".into(),
            ),
        })
    }
}

/// Longest wait for all servers of a sharded store to merge.
const ALL_MERGE: Duration = Duration::from_secs(3600);
/// Interval at which that wait checks the state.
const POLL: Duration = Duration::from_millis(20);

impl Replica {
    /// Sends a change once the limit of unmerged changes permits. The writer refuses the change if its newest snapshot
    /// is at the limit; then the change is sent again.
    ///
    /// # Errors
    /// Those of [`Self::send`] and [`ChangesLimit::wait`](crate::update::ChangesLimit::wait).
    fn send_with_room(
        &self,
        db: &Database,
        change: &SentChange<'_>,
        (options, memory): (&UpdateOptions, &MemoryBudget),
        cancel: &CancelToken,
    ) -> Result<UpdateReport> {
        let inner = &db.inner;
        let (begun, mut options) = (Instant::now(), options.clone());
        loop {
            inner.changes.wait(|| inner.writer.published(), cancel)?;
            if begun.elapsed() > POLL {
                options.timeout = cancel.left().or(options.timeout);
            }
            match self.send(change, &options, memory) {
                Err(Error::Busy(limit)) if limit.resource == Resource::Changes => {
                    pause(Error::Busy(limit), begun, cancel)?;
                }
                done => return done,
            }
        }
    }

    /// Starts a merge by all servers of a sharded store, and waits until the new base is in use.
    ///
    /// # Errors
    /// [`Error::Conflict`]; [`Error::External`] with the reason why the merge failed on this server.
    pub(super) fn merge_everywhere(&self, db: &Database) -> Result<()> {
        let snapshot = db.inner.writer.published();
        let base = snapshot.base().number();
        if snapshot.edit_count() == 0 {
            return Ok(());
        }
        if snapshot.open_merge().is_none() {
            let memory = db.runtime().memory();
            self.send(
                &SentChange::StartMerge(base),
                &UpdateOptions::default(),
                memory,
            )?;
        }
        let begun = Instant::now();
        loop {
            if db.inner.writer.published().base().number() != base {
                return Ok(());
            }
            if let Some(why) = db.inner.merges.last_failure() {
                return Err(Error::external(why));
            }
            if let Some(ended) = self.ended() {
                return Err(Error::Stale(ended));
            }
            if begun.elapsed() >= ALL_MERGE {
                let why = "another server has not completed its part of the merge";
                return Err(Error::external(why));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// A transaction of several calls. Its commit fails if the store was changed since the transaction began.
struct ReplicaTurn {
    db: Database,
    head: Snapshot,
}

impl OpenSinkTransaction for ReplicaTurn {
    fn head(&self) -> &Snapshot {
        &self.head
    }

    fn commit(
        self: Box<Self>,
        made: Option<(Snapshot, Vec<u8>)>,
        counts: ChangeCounts,
    ) -> Result<u64> {
        let Some((_, record)) = made else {
            return Ok(self.head.group());
        };
        let Some(replica) = self.db.replica() else {
            return Err(Error::Internal("a transaction without a shared log".into()));
        };
        let change = SentChange::Record {
            after: self.head.number(),
            record: &record,
            added: counts.added,
            removed: counts.removed,
        };
        let memory = self.db.runtime().memory();
        let options = UpdateOptions::default();
        let (options, cancel) = ((&options, memory), CancelToken::new());
        let report = replica.send_with_room(&self.db, &change, options, &cancel)?;
        Ok(report.snapshot)
    }
}
