//! Answers that the caller pulls: batches of columns of ids, whose terms are decoded when they are asked for.
//!
//! The query runs on a thread of its own, at most [`AHEAD`] batches ahead of its reader. Where the reader is slow the query
//! sleeps; where the reader goes, the query is cancelled.

use crate::database::{Database, guarded, watching};
use crate::execute::{self, Consumer};
use crate::options::QueryOptions;
use crate::planning::PlannedQuery;
use jindou_engine::{QueryTerms, Sink, TermDecoder, WorkerPool};
use jindou_model::sync;
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Resource, Result};
use jindou_plan::Form;
use jindou_store::Snapshot;
use oxrdf::Term;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// Batches that wait for their reader at most.
const AHEAD: usize = 2;
/// Rows in a batch at most.
const ROWS: usize = 1 << 13;
/// How often a side that waits for the other looks at the time limit and at cancellation.
const LOOK: Duration = Duration::from_millis(20);
/// Rows that are fetched ahead of being decoded.
const GROUP: usize = 64;

/// The ids of a batch, a column after the other, and the bytes that they are charged for.
struct Columns {
    ids: Vec<u32>,
    rows: usize,
    _charge: Charge,
}

/// State of the two sides, under the lock.
#[derive(Default)]
struct State {
    batches: VecDeque<Columns>,
    /// The query is over, with this outcome until the reader took it.
    ended: Option<Result<()>>,
    /// The reader is gone.
    closed: bool,
}

/// A queue between the query and its reader.
struct Queue {
    state: Mutex<State>,
    /// Told when a batch was put or taken, or one side ended.
    changed: Condvar,
    /// Of the query: ended by the reader's going, too.
    cancel: CancelToken,
    /// Of the caller.
    callers: CancelToken,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, State>) -> MutexGuard<'q, State> {
        self.changed
            .wait_timeout(state, LOOK)
            .map_or_else(|e| e.into_inner().0, |(state, _)| state)
    }

    /// Ok while the query may go on.
    fn check(&self) -> Result<()> {
        self.callers.check()?;
        self.cancel.check()
    }

    /// Waits for room, in no computing place meanwhile, and puts a batch.
    fn put(&self, columns: Columns, pool: &dyn WorkerPool) -> Result<()> {
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
        // One thread puts, so the room that there was is there still.
        state.batches.push_back(columns);
        self.changed.notify_all();
        Ok(())
    }

    /// Returns when there is room, or no sense in waiting for it.
    fn wait_for_room(&self) {
        let mut state = self.lock();
        while state.batches.len() >= AHEAD && !state.closed && self.check().is_ok() {
            state = self.wait(state);
        }
    }

    /// Waits for a batch; `None` at the end. An error comes once.
    fn take(&self) -> Result<Option<Columns>> {
        let mut state = self.lock();
        loop {
            // An error is told at once: what was read before it is no whole answer in any case.
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
            // The query sees it at its next batch, which may never come.
            if self.callers.check().is_err() {
                self.cancel.cancel();
            }
            state = self.wait(state);
        }
    }

    fn end(&self, outcome: Result<()>) {
        self.lock().ended = Some(outcome);
        self.changed.notify_all();
    }
}

/// The query's side.
struct Put {
    queue: Arc<Queue>,
    memory: MemoryBudget,
    pool: Arc<dyn WorkerPool>,
    refused: bool,
}

impl Put {
    fn piece(&self, columns: &[&[u32]], from: usize, rows: usize) -> Result<()> {
        let mut charge = Charge::new(Holder::Rest, &self.memory);
        charge.set((columns.len() * rows) as u64 * 4 + size_of::<Columns>() as u64)?;
        let mut ids = Vec::with_capacity(columns.len() * rows);
        for column in columns {
            let part = column.get(from..from + rows);
            ids.extend_from_slice(
                part.ok_or_else(|| Error::Internal("a column is shorter than its rows".into()))?,
            );
        }
        let columns = Columns {
            ids,
            rows,
            _charge: charge,
        };
        self.queue.put(columns, &*self.pool)
    }
}

impl Sink for Put {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        for from in (0..rows).step_by(ROWS) {
            let put = self.piece(columns, from, ROWS.min(rows - from));
            self.refused |= put.is_err();
            put?;
        }
        Ok(())
    }
}

impl Consumer for Put {
    fn refused(&self) -> bool {
        self.refused
    }
}

/// The meaning of ids, shared by a cursor and its batches.
struct Meaning {
    variables: Vec<String>,
    snapshot: Snapshot,
    terms: QueryTerms,
}

/// The rows of a SELECT, pulled batch by batch. The query runs meanwhile, some batches ahead; dropping the cursor cancels it
/// and waits until it has ended, which is a batch's time.
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
    queue: Arc<Queue>,
    meaning: Arc<Meaning>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Answers a SELECT with a cursor, from which the caller pulls batches of rows.
    ///
    /// The time limit counts from this call to the query's end, the time that it waits for its reader included. The batches
    /// that wait are charged to the query's memory, as long as they live. [`QueryOptions::cancel`] is looked at when the query has
    /// a batch, and while the reader waits for one.
    ///
    /// # Errors
    /// Those of [`Self::plan`], [`Error::Unsupported`] for other queries than SELECT, [`Error::Limit`] without a thread.
    pub fn cursor(&self, text: &str, options: &QueryOptions) -> Result<Cursor> {
        // Of this query alone, since the caller's may be shared by many.
        let cancel = match options.timeout {
            Some(limit) => CancelToken::with_deadline(limit),
            None => CancelToken::new(),
        };
        let planned = guarded(|| self.plan(text, options))?;
        let plan = planned.plan();
        if plan.is_ask() || matches!(plan.form, Form::Construct(_) | Form::Describe(_)) {
            return Err(Error::Unsupported(
                "a cursor over another query than SELECT: its answer is no rows".into(),
            ));
        }
        let meaning = Arc::new(Meaning {
            variables: plan.columns.clone(),
            snapshot: planned.snapshot().clone(),
            terms: QueryTerms::new(),
        });
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            cancel,
            callers: options.cancel.clone(),
        });
        let (db, shared) = (self.clone(), Arc::clone(&meaning));
        let (options, queries) = (options.clone(), Arc::clone(&queue));
        let thread = std::thread::Builder::new()
            .name("jindou-cursor".into())
            .spawn(move || run(&db, &planned, &shared, &options, &queries))
            .map_err(|e| Error::limit(Resource::Threads, format!("no thread for a cursor: {e}")))?;
        Ok(Cursor {
            queue,
            meaning,
            thread: Some(thread),
        })
    }
}

/// Runs the query to its end, whatever that is.
fn run(
    db: &Database,
    planned: &PlannedQuery,
    meaning: &Meaning,
    options: &QueryOptions,
    queue: &Arc<Queue>,
) {
    let outcome = guarded(|| {
        queue.check()?;
        let options = db.settle(options);
        let mut put = Put {
            queue: Arc::clone(queue),
            memory: options.memory.clone(),
            pool: Arc::clone(options.pool),
            refused: false,
        };
        let watching = watching(queue.cancel.clone(), &meaning.snapshot);
        let done = execute::pulled(
            planned.plan(),
            &meaning.snapshot,
            &meaning.terms,
            &options,
            watching,
            &mut put,
        );
        // What the caller asked for, rather than how it reached the query.
        if done.is_err() {
            queue.callers.check()?;
        }
        // Whatever else went wrong may have followed from a file that failed.
        db.inner.check_files(&meaning.snapshot)?;
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

    /// The next rows, at least one; `None` when there are no more. Blocks until the query has them.
    ///
    /// # Errors
    /// Those of [`Database::run`], once: afterwards there are no more rows.
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
            // It never panics: what it runs is guarded.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor")
            .field("variables", &self.meaning.variables)
            .finish_non_exhaustive()
    }
}

/// Some rows of an answer, column by column. Outlives its cursor, and keeps the query's snapshot.
pub struct RowBatch {
    columns: Columns,
    meaning: Arc<Meaning>,
}

impl std::fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowBatch")
            .field("variables", &self.meaning.variables)
            .field("rows", &self.columns.rows)
            .finish_non_exhaustive()
    }
}

impl RowBatch {
    /// Names of the columns, without `?`.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.meaning.variables
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.rows
    }

    /// A column's ids, one a row: equal ids are equal terms, 0 is unbound. They mean something in this answer only. Empty if
    /// there is no such column.
    #[must_use]
    pub fn ids(&self, column: usize) -> &[u32] {
        let rows = self.columns.rows;
        let from = column.saturating_mul(rows);
        self.columns
            .ids
            .get(from..from.saturating_add(rows))
            .unwrap_or(&[])
    }

    /// A reader of a column's terms.
    #[must_use]
    pub fn column(&self, column: usize) -> Column<'_> {
        Column {
            ids: self.ids(column),
            decoder: TermDecoder::new(&self.meaning.snapshot, &self.meaning.terms),
            snapshot: &self.meaning.snapshot,
            fetched: 0,
        }
    }

    /// A column's terms, one a row; `None` where unbound. Decoded as the iterator goes.
    pub fn terms(&self, column: usize) -> impl Iterator<Item = Result<Option<Term>>> + '_ {
        let mut column = self.column(column);
        (0..column.ids.len()).map(move |row| column.term(row))
    }

    /// One whole row. For many rows, reading column by column is faster.
    ///
    /// # Errors
    /// [`Error::Store`] for an id that has no term: the store is damaged.
    pub fn row(&self, row: usize) -> Result<Vec<Option<Term>>> {
        (0..self.meaning.variables.len())
            .map(|c| self.column(c).term(row))
            .collect()
    }
}

/// Reads one column of a batch: it keeps what it decoded last, so that ids near each other cost little.
pub struct Column<'b> {
    ids: &'b [u32],
    decoder: TermDecoder<'b>,
    /// Its files are asked after each term: batches outlive their query.
    snapshot: &'b Snapshot,
    /// Rows that were fetched from memory ahead.
    fetched: usize,
}

impl Column<'_> {
    fn id(&mut self, row: usize) -> u32 {
        if row == self.fetched {
            let to = self.ids.len().min(row + GROUP);
            self.decoder.prefetch(self.ids.get(row..to).unwrap_or(&[]));
            self.fetched = to;
        }
        self.ids.get(row).copied().unwrap_or(0)
    }

    /// The term in a row; `None` where it is unbound, or there is no such row.
    ///
    /// # Errors
    /// [`Error::Store`] for an id that has no term, and for a file that shrank or cannot be read: the store is damaged.
    pub fn term(&mut self, row: usize) -> Result<Option<Term>> {
        let id = self.id(row);
        let term = self.decoder.term(id);
        self.snapshot.base().check_files()?;
        term
    }

    /// The same as canonical bytes ([`decode_term`](crate::decode_term) makes a term of them): no allocation, and equal bytes are
    /// equal terms in any store.
    ///
    /// # Errors
    /// As [`Self::term`].
    pub fn canonical(&mut self, row: usize) -> Result<Option<&[u8]>> {
        let id = self.id(row);
        let term = self.decoder.canonical(id);
        self.snapshot.base().check_files()?;
        term
    }
}

impl std::fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column")
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}
