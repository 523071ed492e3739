//! Where changes are put in order and made durable: at this process's writer, or in a log that several servers share.

use super::change::{Change, Changed};
use super::merge::FileLayer;
use super::transaction::ChangeCounts;
use super::writer::{Writer, WriterTurn};
use super::{UpdateOptions, UpdateReport};
use crate::database::{Database, DatabaseState};
use crate::runtime::Settled;
use jindou_model::{CancelToken, Error, Progress, Result};
use jindou_store::{MergeOptions, MergeReport, Snapshot};
use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// Work on a whole store that not every kind of store supports.
#[derive(Clone, Copy)]
pub(crate) enum WholeStoreWork {
    Backup,
    Recluster,
}

/// Where a database's changes are put in order and made durable.
pub(crate) trait UpdateSink: Any + Send + Sync {
    /// Ok if the database accepts changes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) with the reason.
    fn is_writable(&self, writer: &Writer) -> Result<()>;

    /// Ok if a change would probably become durable now.
    fn probe(&self, db: &DatabaseState) -> Result<()>;

    /// Makes a change in one transaction, and returns when it is durable and visible to queries.
    fn submit(
        &self,
        db: &Database,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<UpdateReport>;

    /// Begins a transaction of several calls.
    fn begin(&self, db: &Database, cancel: &CancelToken) -> Result<Box<dyn SinkTurn>>;

    /// Waits until the published snapshot is fresh enough for a query that begins now.
    fn wait_until_fresh(&self) -> Result<()>;

    /// The number of a snapshot for users.
    fn number(&self, snapshot: &Snapshot) -> u64;

    /// True if changes can be merged into files.
    fn has_files(&self, db: &DatabaseState) -> bool;

    /// Ok if [`Self::merge`] is possible now.
    fn may_merge(&self, db: &DatabaseState) -> Result<()>;

    /// Merges the changes into the store's files; `through` replaces the layer below files, for tests.
    fn merge(
        &self,
        db: &Database,
        through: Option<&FileLayer<'_>>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport>;

    /// True if the log since the last merge delays a start so much that it justifies another merge.
    fn is_log_long(&self, db: &DatabaseState, snapshot: &Snapshot) -> bool;

    /// Ok if the kind of store supports this work.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) with another way to the same end.
    fn supports(&self, work: WholeStoreWork) -> Result<()>;
}

/// A transaction of several calls, between its beginning and its commit. Dropped, it changes nothing.
pub(crate) trait SinkTurn: Send + Sync {
    /// The snapshot with which the transaction began.
    fn head(&self) -> &Snapshot;

    /// Makes the changes durable and visible; `made` is `None` if there are none. Returns the number of the snapshot that
    /// shows them.
    fn commit(
        self: Box<Self>,
        made: Option<(Snapshot, Vec<u8>)>,
        counts: ChangeCounts,
    ) -> Result<u64>;
}

/// The sink of a database without a shared log: its [`Writer`], which refuses changes if the database is read-only.
pub(crate) struct LocalSink {
    /// True for a store in several shards.
    pub(crate) is_sharded: bool,
}

/// Bytes of the log that justify a merge: opening the store has to read them.
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
        let turn = turn_with_room(&db.inner, || &db.inner.writer, cancel)?;
        let begun = Instant::now();
        let before = turn.head().clone();
        if let Some(mut report) = options.repeated(&before)? {
            // What the first one saw and made is durable then.
            turn.nothing()?;
            prepared.describe(&mut report);
            return Ok(report);
        }
        let Changed { made, mut report } = db.evaluate(&before, prepared, options, cancel)?;
        let ran = Instant::now();
        report.snapshot = match made {
            Some((snapshot, record)) => turn.commit(snapshot, record)?,
            None => turn.nothing()?,
        };
        report.wait_time = begun - asked;
        report.commit_time = ran.elapsed();
        Ok(report)
    }

    fn begin(&self, db: &Database, cancel: &CancelToken) -> Result<Box<dyn SinkTurn>> {
        let writer = || WriterOf(Arc::clone(&db.inner));
        let turn = turn_with_room(&db.inner, writer, cancel)?;
        Ok(Box::new(turn))
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

/// The right to write, once there is room for further changes.
///
/// # Errors
/// Those of [`Writer::turn`] and [`ChangesLimit::wait`](super::ChangesLimit::wait).
fn turn_with_room<W: Deref<Target = Writer>>(
    db: &DatabaseState,
    writer: impl Fn() -> W,
    cancel: &CancelToken,
) -> Result<WriterTurn<W>> {
    loop {
        // A merge needs the turn itself, so it is not held meanwhile.
        db.changes.wait(|| db.writer.head(), cancel)?;
        let turn = Writer::turn_of(writer(), cancel)?;
        if db.changes.check(turn.head()).is_ok() {
            return Ok(turn);
        }
    }
}

/// The writer of a database, kept alive together with it.
struct WriterOf(Arc<DatabaseState>);

impl Deref for WriterOf {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.0.writer
    }
}

impl SinkTurn for WriterTurn<WriterOf> {
    fn head(&self) -> &Snapshot {
        WriterTurn::head(self)
    }

    fn commit(self: Box<Self>, made: Option<(Snapshot, Vec<u8>)>, _: ChangeCounts) -> Result<u64> {
        match made {
            Some((snapshot, record)) => WriterTurn::commit(*self, snapshot, record),
            None => self.nothing(),
        }
    }
}
