//! Answers that the caller pulls: batches of columns of ids, whose terms are decoded when they are asked for.
//!
//! The query runs on a thread of its own, at most [`AHEAD`] batches ahead of its reader. Where the reader is slow the query
//! sleeps; where the reader goes, the query is cancelled.

use crate::database::{Database, guarded, watching};
use crate::execute;
use crate::options::QueryOptions;
use crate::planning::{PlannedQuery, QueryForm};
use jindou_engine::{QueryTerms, Sink, TermDecoder, WorkerPool};
use jindou_model::sync;
use jindou_model::{
    CancelToken, Charge, Error, Holder, MemoryBudget, NO_VERTEX, Resource, Result, term,
};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches that wait for their reader at most.
const AHEAD: usize = 2;
/// Rows in a batch at most.
const ROWS: usize = 1 << 13;
/// How often a side that waits for the other looks at the time limit and at cancellation.
const LOOK: Duration = Duration::from_millis(20);
/// Rows that are decoded together.
const GROUP: usize = 64;
/// Bytes of terms after which a group ends.
const GROUP_BYTES: usize = 1 << 16;

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

    /// Waits until there is a batch to take; false if the time passed first.
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

/// The query's side.
struct Put<'a> {
    queue: Arc<Queue>,
    snapshot: &'a Snapshot,
    memory: MemoryBudget,
    pool: Arc<dyn WorkerPool>,
}

impl Put<'_> {
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

impl Sink for Put<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        // The rows' own reading of other shards knows nothing of what the query could not read.
        self.snapshot.check_shards()?;
        for from in (0..rows).step_by(ROWS) {
            self.piece(columns, from, ROWS.min(rows - from))?;
        }
        Ok(())
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
        let cancel = own_token(options);
        let planned = guarded(|| self.plan(text, options))?;
        self.cursor_until(cancel, planned, options)
    }

    /// [`Self::cursor`] over a query that [`Self::plan`] or [`PreparedQuery::plan`](crate::PreparedQuery::plan) has planned already.
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
    /// [`Error::Unsupported`] for other queries than SELECT, [`Error::Limit`] without a thread.
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
                "a cursor over another query than SELECT: its answer is no rows".into(),
            ));
        }
        let meaning = Arc::new(Meaning {
            variables: plan.columns.clone(),
            snapshot: planned.snapshot().afresh().into_owned(),
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

/// A token of this query alone, since the caller's may be shared by many; its time counts from now.
fn own_token(options: &QueryOptions) -> CancelToken {
    match options.timeout {
        Some(limit) => CancelToken::with_deadline(limit),
        None => CancelToken::new(),
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
    // Rows may be decoded after the query was cancelled or its time was over, so they have a session of their own.
    let snapshot = &*meaning.snapshot.afresh();
    let outcome = guarded(|| {
        queue.check()?;
        let options = db.settle(options);
        let mut put = Put {
            queue: Arc::clone(queue),
            snapshot,
            memory: options.memory.clone(),
            pool: Arc::clone(options.pool),
        };
        let watching = watching(queue.cancel.clone(), snapshot);
        let done = execute::pulled(
            planned.plan(),
            snapshot,
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

    /// Waits until [`Self::next_batch`] would return at once, for `limit` at most (and up to 20 ms more). False if the time
    /// passed first. It is for programs that have other things to check now and then.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        self.queue.wait_for_batch(limit)
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
            group: Group::default(),
        }
    }

    /// A column's terms, one a row; `None` where unbound. Decoded as the iterator goes.
    pub fn terms(&self, column: usize) -> impl Iterator<Item = Result<Option<Term>>> + '_ {
        let mut column = self.column(column);
        (0..column.ids.len()).map(move |row| column.term(row))
    }

    /// Hands the canonical bytes ([`decode_term`](crate::decode_term)) of any ids of this answer to `take`, in their order, with each
    /// id's place among them. An id need not be in this batch, so a program can collect the ids of many batches and have each
    /// term decoded once: ascending ids are the fastest. Nothing is handed over for 0, which is unbound.
    ///
    /// ```
    /// # let db = jindou::Database::in_memory();
    /// # let data = "INSERT DATA { <http://e/a> a <http://e/C> . <http://e/b> a <http://e/C> }";
    /// # db.update(data, &Default::default())?;
    /// let mut cursor = db.cursor("SELECT ?class { ?thing a ?class }", &Default::default())?;
    /// let (mut distinct, mut last) = (std::collections::BTreeSet::new(), None);
    /// while let Some(batch) = cursor.next_batch()? {
    ///     distinct.extend(batch.ids(0).iter().copied());
    ///     last = Some(batch);
    /// }
    /// let ids: Vec<u32> = distinct.into_iter().collect();
    /// let mut terms = vec![];
    /// last.unwrap().decode(&ids, |_, bytes| terms.extend(jindou::decode_term(bytes)))?;
    /// assert_eq!(terms.len(), 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Column::term`]; what was handed over before counts for nothing then.
    pub fn decode(&self, ids: &[u32], mut take: impl FnMut(usize, &[u8])) -> Result<()> {
        let mut decoder = TermDecoder::new(&self.meaning.snapshot, &self.meaning.terms);
        let mut place = 0;
        for group in ids.chunks(GROUP) {
            decoder.prefetch(group);
            for &id in group {
                if let Some(bytes) = decoder.canonical(id)? {
                    take(place, bytes);
                }
                place += 1;
            }
        }
        // Once for all of them: batches outlive their query.
        self.meaning.snapshot.check_files()
    }

    /// One whole row. For many rows, reading column by column is faster.
    ///
    /// # Errors
    /// [`Error::Store`] for an id that has no term: the store is damaged.
    pub fn row(&self, row: usize) -> Result<Vec<Option<Term>>> {
        (0..self.meaning.variables.len())
            .map(|c| {
                let mut column = self.column(c);
                // Alone, also if it is the first one.
                column.group.first = usize::MAX;
                column.term(row)
            })
            .collect()
    }
}

/// Reads one column of a batch. If it is read from its first row on, terms are decoded a group at a time: ids near
/// each other cost little, and the store's files are asked about faults once a group.
pub struct Column<'b> {
    ids: &'b [u32],
    decoder: TermDecoder<'b>,
    /// Snapshot whose files are checked after each group, before a term of it is returned: batches outlive their query.
    snapshot: &'b Snapshot,
    group: Group,
}

/// Terms of some rows, whose files were whole after they were read.
#[derive(Default)]
struct Group {
    first: usize,
    bytes: Vec<u8>,
    /// The end of each row's term in `bytes`.
    ends: Vec<usize>,
}

impl Group {
    /// The row behind the last.
    fn end(&self) -> usize {
        self.first + self.ends.len()
    }

    fn contains(&self, row: usize) -> bool {
        (self.first..self.end()).contains(&row)
    }

    fn term(&self, row: usize) -> Option<&[u8]> {
        let at = row.checked_sub(self.first)?;
        let from = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(from..*self.ends.get(at)?)
    }
}

impl Column<'_> {
    /// Decodes the row, and those behind it if reading goes from row to row.
    fn decode(&mut self, row: usize) -> Result<()> {
        let goes_on = row == self.group.end();
        let to = self.ids.len().min(row + if goes_on { GROUP } else { 1 });
        let ids = self.ids.get(row..to).unwrap_or(&[]);
        if ids.len() > 1 {
            self.decoder.prefetch(ids);
        }
        let group = &mut self.group;
        group.bytes.clear();
        group.ends.clear();
        group.first = row;
        let mut failed = None;
        for &id in ids {
            match self.decoder.canonical(id) {
                Ok(term) => group.bytes.extend_from_slice(term.unwrap_or(&[])),
                Err(e) => {
                    // Those before it are good; its own turn comes.
                    failed = group.ends.is_empty().then_some(e);
                    break;
                }
            }
            group.ends.push(group.bytes.len());
            if group.bytes.len() > GROUP_BYTES {
                break;
            }
        }
        if let Err(e) = self.snapshot.check_files() {
            self.group.ends.clear();
            return Err(e);
        }
        failed.map_or(Ok(()), Err)
    }

    /// The term in a row; `None` where it is unbound, or there is no such row.
    ///
    /// # Errors
    /// [`Error::Store`] for an id that has no term, and for a file that shrank or cannot be read: the store is damaged.
    pub fn term(&mut self, row: usize) -> Result<Option<Term>> {
        match self.canonical(row)?.map(term::decode) {
            None => Ok(None),
            Some(Some(term)) => Ok(Some(term)),
            // The decoder says why.
            Some(None) => {
                let term = self.decoder.term(self.ids[row]);
                self.snapshot.check_files()?;
                term
            }
        }
    }

    /// The same as canonical bytes ([`decode_term`](crate::decode_term) makes a term of them): no allocation, and equal bytes are
    /// equal terms in any store.
    ///
    /// # Errors
    /// As [`Self::term`].
    pub fn canonical(&mut self, row: usize) -> Result<Option<&[u8]>> {
        let Some(&id) = self.ids.get(row) else {
            return Ok(None);
        };
        if !self.group.contains(row) {
            self.decode(row)?;
        }
        Ok(self.group.term(row).filter(|_| id != NO_VERTEX))
    }
}

impl std::fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column")
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}
