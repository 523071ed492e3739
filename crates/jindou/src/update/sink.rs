//! Interface for ordering changes and making them durable: by this process's writer, or in a log that several servers
//! share.

use super::change::{Change, Changed};
use super::merge::FileLayer;
use super::transaction::ChangeCounts;
use super::writer::{WritePermit, Writer};
use super::{UpdateOptions, UpdateReport};
use crate::database::{Database, DatabaseState};
use crate::runtime::Settled;
use jindou_model::{CancelToken, Error, Progress, Result};
use jindou_store::{MergeOptions, MergeReport, Snapshot};
use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// Operations on a whole store that not every kind of store supports.
#[derive(Clone, Copy)]
pub(crate) enum WholeStoreWork {
    Backup,
    Recluster,
}

/// Orders a database's changes and makes them durable.
pub(crate) trait UpdateSink: Any + Send + Sync {
    /// Ok if the database accepts changes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) with the reason.
    fn is_writable(&self, writer: &Writer) -> Result<()>;

    /// Ok if a change would probably become durable now.
    fn probe(&self, db: &DatabaseState) -> Result<()>;

    /// Executes a change in one transaction, and returns when it is durable. Queries that begin later see it. On a
    /// replica they may have to wait for that, and those with the consistency `Any` may miss it.
    fn submit(
        &self,
        db: &Database,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<UpdateReport>;

    /// Begins a transaction of several calls.
    fn begin(&self, db: &Database, cancel: &CancelToken) -> Result<Box<dyn OpenSinkTransaction>>;

    /// Waits until the published snapshot is fresh enough for a query that begins now.
    fn wait_until_fresh(&self) -> Result<()>;

    /// The number of a snapshot as users see it: of the group in a shared log, if there is one.
    fn number(&self, snapshot: &Snapshot) -> u64;

    /// True if the store has files, into which changes can be merged.
    fn has_files(&self, db: &DatabaseState) -> bool;

    /// Ok if [`Self::merge`] is possible now.
    fn may_merge(&self, db: &DatabaseState) -> Result<()>;

    /// Merges the changes into the store's files. `through` replaces the file layer, for tests.
    fn merge(
        &self,
        db: &Database,
        through: Option<&FileLayer<'_>>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport>;

    /// True if the log since the last merge is so long that opening the store would take longer than a merge.
    fn is_log_long(&self, db: &DatabaseState, snapshot: &Snapshot) -> bool;

    /// Ok if this kind of store supports the operation.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported), with an alternative.
    fn supports(&self, work: WholeStoreWork) -> Result<()>;
}

/// An open transaction of several calls. Dropping it changes nothing.
pub(crate) trait OpenSinkTransaction: Send + Sync {
    /// The snapshot with which the transaction began.
    fn head(&self) -> &Snapshot;

    /// Makes the changes durable and visible; `made` is `None` if there are none. Returns the number of the snapshot
    /// that contains them.
    fn commit(
        self: Box<Self>,
        made: Option<(Snapshot, Vec<u8>)>,
        counts: ChangeCounts,
    ) -> Result<u64>;
}

/// The sink of a database without a shared log. Uses the database's [`Writer`], which refuses changes if the database
/// is read-only.
pub(crate) struct LocalSink {
    pub(crate) is_sharded: bool,
}

/// Size of the log in bytes at which a merge is due, because opening the store reads the whole log.
const LOG_BYTES: u64 = 1 << 30;

impl UpdateSink for LocalSink {
    fn is_writable(&self, writer: &Writer) -> Result<()> {
        writer.is_writable()
    }

    fn probe(&self, db: &DatabaseState) -> Result<()> {
        db.writer.journal()?.probe()
    }

    fn submit(
        &self,
        db: &Database,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<UpdateReport> {
        let prepared = Database::prepare_change(change, options, &db.prefixes(), cancel)?;
        let asked = Instant::now();
        let permit = acquire_with_capacity(&db.inner, || &db.inner.writer, cancel)?;
        let begun = Instant::now();
        let before = permit.head().clone();
        if let Some(mut report) = options.earlier_report(&before)? {
            // Wait until everything that the first execution read and wrote is durable.
            permit.commit_nothing()?;
            prepared.describe(&mut report);
            return Ok(report);
        }
        let Changed { made, mut report } = db.evaluate(&before, prepared, options, cancel)?;
        let ran = Instant::now();
        report.snapshot = match made {
            Some((snapshot, record)) => permit.commit(snapshot, record)?,
            None => permit.commit_nothing()?,
        };
        report.wait_time = begun - asked;
        report.commit_time = ran.elapsed();
        Ok(report)
    }

    fn begin(&self, db: &Database, cancel: &CancelToken) -> Result<Box<dyn OpenSinkTransaction>> {
        let writer = || WriterOf(Arc::clone(&db.inner));
        let permit = acquire_with_capacity(&db.inner, writer, cancel)?;
        Ok(Box::new(permit))
    }

    fn wait_until_fresh(&self) -> Result<()> {
        Ok(())
    }

    fn number(&self, snapshot: &Snapshot) -> u64 {
        snapshot.number()
    }

    fn has_files(&self, db: &DatabaseState) -> bool {
        db.disk.is_some()
    }

    fn may_merge(&self, db: &DatabaseState) -> Result<()> {
        db.merge_place().map(drop)
    }

    fn merge(
        &self,
        db: &Database,
        through: Option<&FileLayer<'_>>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        db.merge_files(through, options, progress)
    }

    fn is_log_long(&self, db: &DatabaseState, snapshot: &Snapshot) -> bool {
        let bytes = db.writer.log_status().map_or(0, |log| log.bytes);
        bytes >= LOG_BYTES && snapshot.number() > snapshot.base().number()
    }

    fn supports(&self, work: WholeStoreWork) -> Result<()> {
        let what = match work {
            _ if !self.is_sharded => return Ok(()),
            WholeStoreWork::Backup => {
                "a sharded store cannot be backed up yet: export it, or copy its folder while no process has it open"
            }
            WholeStoreWork::Recluster => {
                "a sharded store cannot be reclustered: export it, and load the export again with --shards"
            }
        };
        Err(Error::Unsupported(what.into()))
    }
}

/// Acquires the right to write once the limit of unmerged changes permits.
///
/// # Errors
/// Those of [`Writer::acquire`] and [`ChangesLimit::wait`](super::ChangesLimit::wait).
fn acquire_with_capacity<W: Deref<Target = Writer>>(
    db: &DatabaseState,
    writer: impl Fn() -> W,
    cancel: &CancelToken,
) -> Result<WritePermit<W>> {
    loop {
        // The right to write is not held during the wait, since a merge needs it.
        db.changes.wait(|| db.writer.head(), cancel)?;
        let permit = Writer::acquire_owned(writer(), cancel)?;
        if db.changes.check(permit.head()).is_ok() {
            return Ok(permit);
        }
    }
}

/// Reference to a database's writer that keeps the database alive.
struct WriterOf(Arc<DatabaseState>);

impl Deref for WriterOf {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.0.writer
    }
}

impl OpenSinkTransaction for WritePermit<WriterOf> {
    fn head(&self) -> &Snapshot {
        WritePermit::head(self)
    }

    fn commit(self: Box<Self>, made: Option<(Snapshot, Vec<u8>)>, _: ChangeCounts) -> Result<u64> {
        match made {
            Some((snapshot, record)) => WritePermit::commit(*self, snapshot, record),
            None => self.commit_nothing(),
        }
    }
}
