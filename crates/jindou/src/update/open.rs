//! Transactions of several calls: each call sees the changes of the previous calls, and the commit is atomic.

use super::documents;
use super::transaction::Transaction;
use super::{Batch, OpenSinkTransaction, UpdateOptions, UpdateReport};
use crate::database::{Database, guarded, watching};
use jindou_model::{CancelToken, Progress, QuadSource, Result};
use std::time::{Duration, Instant};

/// An open transaction, created by [`Database::begin`]. Only the transaction itself sees the changes of its calls until
/// [`Self::commit`] makes all of them durable, with one record in the log, and visible. If the transaction is dropped
/// without a commit, nothing is changed.
///
/// While a transaction is open, other updates, merges and reclusterings of the database wait for it. Queries do not
/// wait, and see the data before the transaction. A thread with an open transaction that calls [`Database::update`]
/// deadlocks with itself.
///
/// A store with a shared log does not make others wait. Instead, [`Self::commit`] fails with
/// [`Error::Conflict`](crate::Error::Conflict) if the store was changed after the transaction had begun.
///
/// ```
/// use jindou::{Database, QueryOptions, UpdateOptions};
///
/// let db = Database::in_memory();
/// let options = UpdateOptions::default();
/// let mut transaction = db.begin(&options)?;
/// transaction.update("INSERT DATA { <http://e/a> <http://e/owes> 100 }", &options)?;
/// // A call that fails leaves what those before it did.
/// assert!(transaction.update("INSERT DATA { this is not SPARQL }", &options).is_err());
/// let owes = "ASK { ?who <http://e/owes> 100 }";
/// assert_eq!(transaction.database()?.query(owes)?, jindou::Answer::Boolean(true));
/// assert_eq!(db.query(owes)?, jindou::Answer::Boolean(false));
/// assert_eq!(transaction.commit()?.added, 1);
/// assert_eq!(db.query(owes)?, jindou::Answer::Boolean(true));
///
/// let mut transaction = db.begin(&options)?;
/// transaction.update("CLEAR ALL", &options)?;
/// drop(transaction);
/// assert_eq!(db.quads(), 1);
/// # Ok::<(), jindou::Error>(())
/// ```
pub struct OpenTransaction {
    db: Database,
    sink_transaction: Box<dyn OpenSinkTransaction>,
    changes: Transaction,
    /// A read-only database over the changes so far, created on demand.
    view: Option<Database>,
    operations: usize,
    wait_time: Duration,
    parse_time: Duration,
    run_time: Duration,
}

impl Database {
    /// Waits for other transactions to end, and opens a transaction of several calls. The memory option limits the
    /// transaction's changes; time limit and cancellation apply to the wait. Each call has options of its own.
    ///
    /// # Errors
    /// As [`Self::update`], for errors before evaluation.
    pub fn begin(&self, options: &UpdateOptions) -> Result<OpenTransaction> {
        self.inner.check_writable()?;
        let asked = Instant::now();
        let sink_transaction = self.inner.sink.begin(self, &options.token())?;
        let settled = self.inner.runtime.settle_update(options);
        let changes = Transaction::new(sink_transaction.head(), &settled, &CancelToken::new());
        Ok(OpenTransaction {
            db: self.clone(),
            sink_transaction,
            changes,
            view: None,
            operations: 0,
            wait_time: asked.elapsed(),
            parse_time: Duration::ZERO,
            run_time: Duration::ZERO,
        })
    }
}

impl OpenTransaction {
    /// Runs an update request over the results of the previous calls.
    ///
    /// # Errors
    /// As [`Database::update`]. After an error this call has changed nothing, and the transaction is still open.
    pub fn update(&mut self, text: &str, options: &UpdateOptions) -> Result<UpdateReport> {
        let (db, cancel) = (self.db.clone(), options.token());
        let options = &db.inner.runtime.settle_update(options);
        let read =
            Database::read_request(text, options, self.changes.unapplied().prefixes(), &cancel)?;
        let (operations, parse_time) = (read.operations(), read.parse_time);
        let mut report = self.change(&cancel, |changes| read.run(options, changes))?;
        (report.operations, report.parse_time) = (operations, parse_time);
        self.operations += operations;
        self.parse_time += parse_time;
        Ok(report)
    }

    /// Applies a batch of insertions and removals.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn apply(&mut self, batch: &Batch, options: &UpdateOptions) -> Result<UpdateReport> {
        self.one(&options.token(), |changes| changes.apply(&batch.changes))
    }

    /// Adds all quads of a source, like [`Database::insert`].
    ///
    /// # Errors
    /// As [`Self::update`], and the source's own errors.
    pub fn insert(
        &mut self,
        source: &dyn QuadSource,
        options: &UpdateOptions,
        progress: &Progress,
    ) -> Result<UpdateReport> {
        let (db, cancel) = (self.db.clone(), options.token());
        let options = &db.inner.runtime.settle_update(options);
        let only = options.only.as_ref();
        let gathered = guarded(|| documents::read_quads(source, only, options, &cancel, progress))?;
        self.one(&cancel, |changes| gathered.add_to(changes))
    }

    /// A read-only database over the transaction's results so far, for queries. Later calls of the transaction do not
    /// change it.
    ///
    /// # Errors
    /// [`Error::Limit`](crate::Error::Limit) for memory; [`Error::Damaged`](crate::Error::Damaged) if damage was found
    /// in the store's files.
    pub fn database(&mut self) -> Result<Database> {
        self.db.inner.check_trusted()?;
        if let Some(view) = &self.view {
            return Ok(view.clone());
        }
        let (changes, inner) = (&mut self.changes, &self.db.inner);
        let snapshot = guarded(|| changes.current())?;
        let view = Database::to_read(snapshot, inner.runtime.clone());
        self.view = Some(view.clone());
        Ok(view)
    }

    /// Makes all changes durable and visible, atomically. The report sums up all calls.
    ///
    /// # Errors
    /// The log's errors; [`Error::Damaged`](crate::Error::Damaged) if files from which the changes were computed are
    /// damaged. In both cases nothing is changed.
    pub fn commit(self) -> Result<UpdateReport> {
        let Self {
            db,
            sink_transaction,
            mut changes,
            ..
        } = self;
        changes.cancel = watching(CancelToken::new(), changes.unapplied());
        // Errors in the store's files are detected here, before anything is written, because the record repeats what
        // was read from them.
        let (made, outcome) = db
            .inner
            .computed_from(sink_transaction.head(), || changes.finish())?;
        let ran = Instant::now();
        let snapshot = sink_transaction.commit(made, outcome)?;
        Ok(UpdateReport {
            snapshot,
            operations: self.operations,
            added: outcome.added,
            removed: outcome.removed,
            wait_time: self.wait_time,
            parse_time: self.parse_time,
            run_time: self.run_time,
            commit_time: ran.elapsed(),
            ..UpdateReport::default()
        })
    }

    /// Executes a change that counts as one operation.
    fn one(
        &mut self,
        cancel: &CancelToken,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<UpdateReport> {
        let mut report = self.change(cancel, change)?;
        report.operations = 1;
        self.operations += 1;
        Ok(report)
    }

    /// Executes a change and counts its quads; on an error, undoes it.
    fn change(
        &mut self,
        cancel: &CancelToken,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<UpdateReport> {
        let begun = Instant::now();
        self.view = None;
        let changes = &mut self.changes;
        changes.cancel = watching(cancel.clone(), changes.unapplied());
        let before = changes.savepoint();
        let inner = &self.db.inner;
        let outcome = inner.computed_from(&changes.unapplied().clone(), || {
            change(changes)?;
            changes.apply_all()
        });
        match outcome {
            Ok(now) => {
                let run_time = begun.elapsed();
                self.run_time += run_time;
                let then = before.outcome();
                Ok(UpdateReport {
                    added: now.added - then.added,
                    removed: now.removed - then.removed,
                    run_time,
                    ..UpdateReport::default()
                })
            }
            Err(e) => {
                self.changes.roll_back_to(before);
                Err(e)
            }
        }
    }
}

jindou_model::debug_format!(
    OpenTransaction,
    |this| "OpenTransaction {{ operations: {:?}, .. }}",
    this.operations
);
