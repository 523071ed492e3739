//! Answers that the caller pulls batch by batch, as columns of ids whose terms are decoded on demand.
//!
//! The query runs on a thread of its own, at most [`AHEAD`] batches ahead of its reader. It sleeps while the reader is
//! slow, and is cancelled when the reader is dropped.

use crate::database::{Database, guarded, watching};
use crate::execute::PlanExecution;
use crate::options::QueryOptions;
use crate::planning::{PlannedQuery, QueryForm};
use crate::row_batch::{BatchColumns, IdContext, RowBatch};
use crate::update::spawn;
use jindou_engine::{QueryTerms, Sink, WorkerPool};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result, scope, sync};
use jindou_store::Snapshot;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Largest number of batches in the queue.
const AHEAD: usize = 2;
/// Largest number of rows in a batch.
const ROWS: usize = 1 << 13;
/// Time between two checks of the time limit and the cancel tokens by a waiting query or reader.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// State that the query and its reader share, protected by a lock.
#[derive(Default)]
struct CursorState {
    batches: VecDeque<BatchColumns>,
    /// The outcome of the query once it has ended. The reader takes an error out, and leaves `Ok`.
    ended: Option<Result<()>>,
    /// True once the reader is dropped.
    closed: bool,
}

/// A queue between the query and its reader.
struct BatchQueue {
    state: Mutex<CursorState>,
    /// Notified when a batch was added or taken, or when the query or the reader has ended.
    changed: Condvar,
    /// The query's token, which dropping the reader also cancels.
    cancel: CancelToken,
    /// The caller's token.
    callers: CancelToken,
}

impl BatchQueue {
    fn lock(&self) -> MutexGuard<'_, CursorState> {
        sync::lock(&self.state)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, CursorState>) -> MutexGuard<'q, CursorState> {
        self.changed
            .wait_timeout(state, CHECK_EVERY)
            .map_or_else(|e| e.into_inner().0, |(state, _)| state)
    }

    /// Returns an error if the query was cancelled or ran out of time.
    fn check(&self) -> Result<()> {
        self.callers.check()?;
        self.cancel.check()
    }

    /// Waits until the queue has space, without holding a computing slot, and adds a batch.
    fn put(&self, columns: BatchColumns, pool: &dyn WorkerPool) -> Result<()> {
        let mut state = self.lock();
        if state.batches.len() >= AHEAD {
            drop(state);
            pool.blocking(&self.cancel, &mut || self.wait_for_room())?;
            state = self.lock();
        }
        if state.closed {
            return Err(Error::SinkClosed);
        }
        self.check()?;
        // Only this thread adds batches, so the queue still has space.
        state.batches.push_back(columns);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until the queue has space, or the reader needs no more batches.
    fn wait_for_room(&self) {
        let mut state = self.lock();
        while state.batches.len() >= AHEAD && !state.closed && self.check().is_ok() {
            state = self.wait(state);
        }
    }

    /// Waits for a batch; `None` at the end. An error is returned once, and `None` after it.
    fn take(&self) -> Result<Option<BatchColumns>> {
        let mut state = self.lock();
        loop {
            // An error is returned at once: the queued batches before it would not form a complete answer anyway.
            if let Some(Err(_)) = &state.ended {
                state.batches.clear();
                if let Some(Err(e)) = state.ended.replace(Ok(())) {
                    return Err(e);
                }
            }
            if let Some(columns) = state.batches.pop_front() {
                self.changed.notify_all();
                return Ok(Some(columns));
            }
            if state.ended.is_some() {
                return Ok(None);
            }
            // The query checks the caller's token only when it has a batch, which may never happen; so the reader
            // checks it too.
            if self.callers.check().is_err() {
                self.cancel.cancel();
            }
            state = self.wait(state);
        }
    }

    /// Waits until a batch is available; false if the time limit passed first.
    fn wait_for_batch(&self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        let mut state = self.lock();
        while state.batches.is_empty() && state.ended.is_none() {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            if self.callers.check().is_err() {
                self.cancel.cancel();
            }
            state = self.wait(state);
        }
        true
    }

    fn end(&self, outcome: Result<()>) {
        self.lock().ended = Some(outcome);
        self.changed.notify_all();
    }
}

/// The sink into which the query writes its rows.
struct Put<'a> {
    queue: Arc<BatchQueue>,
    snapshot: &'a Snapshot,
    memory: MemoryBudget,
    pool: Arc<dyn WorkerPool>,
}

impl Put<'_> {
    fn piece(&self, columns: &[&[u32]], from: usize, rows: usize) -> Result<()> {
        let mut charge = Charge::new(Holder::Rest, &self.memory);
        charge.set((columns.len() * rows) as u64 * 4 + size_of::<BatchColumns>() as u64)?;
        let mut ids = Vec::with_capacity(columns.len() * rows);
        for column in columns {
            ids.extend_from_slice(&column[from..from + rows]);
        }
        let columns = BatchColumns {
            ids,
            rows,
            _charge: charge,
        };
        self.queue.put(columns, &*self.pool)
    }
}

impl Sink for Put<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        // Checked here because a failure to read another shard's data is not reported when the rows are decoded later.
        self.snapshot.check_shards()?;
        for from in (0..rows).step_by(ROWS) {
            // The batch outlives the query, so its memory is allocated outside the query's scope.
            scope::outside(|| self.piece(columns, from, ROWS.min(rows - from)))?;
        }
        Ok(())
    }
}

/// The rows of a SELECT, pulled batch by batch. The query runs concurrently, some batches ahead. Dropping the cursor
/// cancels the query and waits until it has ended, which takes about as long as one batch.
///
/// ```
/// # let db = jindou::Database::in_memory();
/// # db.update(
/// #     "INSERT DATA { <http://e/earth> <http://e/radius> 6371 . <http://e/mars> <http://e/radius> 3390 }",
/// #     &jindou::UpdateOptions::default(),
/// # )?;
/// let query = "SELECT ?planet ?radius { ?planet <http://e/radius> ?radius }";
/// let mut cursor = db.cursor(query, &jindou::QueryOptions::default())?;
/// let mut radii = vec![];
/// while let Some(batch) = cursor.next_batch()? {
///     // Only one of the columns is ever decoded.
///     for radius in batch.terms(1) {
///         radii.push(radius?.unwrap().to_string());
///     }
/// }
/// radii.sort();
/// assert_eq!(radii.len(), 2);
/// assert!(radii[0].starts_with("\"3390\""));
/// # Ok::<(), jindou::Error>(())
/// ```
pub struct Cursor {
    queue: Arc<BatchQueue>,
    meaning: Arc<IdContext>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Answers a SELECT with a cursor, from which the caller pulls batches of rows.
    ///
    /// The time limit covers everything from this call to the query's end, including the time that the query waits for
    /// its reader. Batches are charged to the query's memory until they are dropped. [`QueryOptions::cancel`] is
    /// checked whenever the query has a batch, and while the reader waits for one.
    ///
    /// # Errors
    /// Those of [`Self::plan`], [`Error::Unsupported`] for queries other than SELECT, [`Error::Limit`] if no thread can
    /// be started.
    pub fn cursor(&self, text: &str, options: &QueryOptions) -> Result<Cursor> {
        let cancel = own_token(options);
        let planned = guarded(|| self.plan(text, options))?;
        self.cursor_until(cancel, planned, options)
    }

    /// As [`Self::cursor`], for a query that [`Self::plan`] or [`PreparedQuery::plan`](crate::PreparedQuery::plan) has
    /// planned.
    ///
    /// ```
    /// # let db = jindou::Database::in_memory();
    /// # let data = "INSERT DATA { <http://example.org/Phobos> <http://example.org/near> <http://example.org/Mars> }";
    /// # db.update(data, &Default::default())?;
    /// use jindou::{QueryForm, QueryOptions, Value};
    ///
    /// let options = QueryOptions::default();
    /// let query = "SELECT ?moon { ?moon <http://example.org/near> $planet }";
    /// let moons = db.prepare(query, &["planet"], &options)?;
    /// let planned = moons.plan(&[Value::Iri("http://example.org/Mars")], &options)?;
    /// assert_eq!(planned.form(), QueryForm::Select);
    /// let mut cursor = db.cursor_planned(planned, &options)?;
    /// assert_eq!(cursor.next_batch()?.map(|batch| batch.rows()), Some(1));
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] for queries other than SELECT, [`Error::Limit`] if no thread can be started.
    pub fn cursor_planned(&self, planned: PlannedQuery, options: &QueryOptions) -> Result<Cursor> {
        self.cursor_until(own_token(options), planned, options)
    }

    fn cursor_until(
        &self,
        cancel: CancelToken,
        planned: PlannedQuery,
        options: &QueryOptions,
    ) -> Result<Cursor> {
        let plan = planned.plan();
        if planned.form() != QueryForm::Select {
            return Err(Error::Unsupported(
                "a cursor needs a SELECT query: other queries have no rows".into(),
            ));
        }
        let meaning = Arc::new(IdContext {
            variables: plan.columns.clone(),
            snapshot: planned.snapshot().for_new_query().into_owned(),
            terms: QueryTerms::new(),
        });
        let queue = Arc::new(BatchQueue {
            state: Mutex::default(),
            changed: Condvar::new(),
            cancel,
            callers: options.cancel.clone(),
        });
        let (db, shared) = (self.clone(), Arc::clone(&meaning));
        let (options, queries) = (options.clone(), Arc::clone(&queue));
        let failure = "cannot start a thread for a cursor";
        let thread = spawn("jindou-cursor", failure, move || {
            execute_into_queue(&db, &planned, &shared, &options, &queries);
        })?;
        Ok(Cursor {
            queue,
            meaning,
            thread: Some(thread),
        })
    }
}

/// A token for this query alone, because the caller's may be shared by many queries. The time limit starts now.
fn own_token(options: &QueryOptions) -> CancelToken {
    match options.timeout {
        Some(limit) => CancelToken::with_deadline(limit),
        None => CancelToken::new(),
    }
}

/// Executes the query and writes its rows and its outcome into the queue.
fn execute_into_queue(
    db: &Database,
    planned: &PlannedQuery,
    meaning: &IdContext,
    options: &QueryOptions,
    queue: &Arc<BatchQueue>,
) {
    // Rows may be decoded after the query was cancelled or timed out, so decoding uses a snapshot of its own for reads
    // of other shards.
    let snapshot = &*meaning.snapshot.for_new_query();
    let outcome = guarded(|| {
        queue.check()?;
        let options = db.settle(options);
        let mut put = Put {
            queue: Arc::clone(queue),
            snapshot,
            memory: options.memory.clone(),
            pool: Arc::clone(options.pool),
        };
        let execution = PlanExecution {
            plan: planned.plan(),
            snapshot,
            options: &options,
            cancel: watching(queue.cancel.clone(), snapshot),
        };
        let done = execution.into_rows(&meaning.terms, &mut put);
        // If the caller cancelled the query or its time limit has passed, that is the error to return, rather than the
        // error with which the query ended.
        if done.is_err() {
            queue.callers.check()?;
        }
        // Any other error may be a consequence of a damaged file; then the damage is the error to return.
        db.inner.check_files(snapshot)?;
        done
    });
    queue.end(outcome);
}

impl Cursor {
    /// Names of the columns, without `?`.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.meaning.variables
    }

    /// Waits until [`Self::next_batch`] would not block, for at most `limit` (and up to 20 ms more). Returns false if
    /// `limit` passed first. Useful for programs that must check other conditions periodically.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        self.queue.wait_for_batch(limit)
    }

    /// The next rows, at least one; `None` when there are no more. Blocks until the query has produced them.
    ///
    /// # Errors
    /// Those of [`Database::run`], returned once: afterwards there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<RowBatch>> {
        Ok(self.queue.take()?.map(|columns| RowBatch {
            columns,
            meaning: Arc::clone(&self.meaning),
        }))
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.cancel.cancel();
        self.queue.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread never panics: its work runs inside `guarded`.
            let _ = thread.join();
        }
    }
}

jindou_model::debug_format!(
    Cursor,
    |this| "Cursor {{ variables: {:?}, .. }}",
    this.meaning.variables
);
