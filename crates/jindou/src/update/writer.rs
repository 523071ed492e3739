//! Admits one writer at a time, and publishes snapshots in order once the journal has confirmed them.
//!
//! `head` is the newest prepared snapshot. It may be ahead of the published one: while a record is being written to
//! disk, the next transaction is already evaluated over `head`, so that several records share one sync. If a record
//! fails, all later snapshots fail as well, and `head` is rolled back to the last durable snapshot.

use super::journal::{Journal, Ticket};
use arc_swap::ArcSwap;
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Invariant, Result};
use jindou_store::Snapshot;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Interval at which a transaction that waits for the right to write checks its own deadline.
const POLL: Duration = Duration::from_millis(20);

/// The published snapshot, the head for the next transaction, and the prepared snapshots between them that wait for the
/// journal.
pub(crate) struct Writer {
    /// The snapshot that queries read. Reading it never blocks.
    published: ArcSwap<Snapshot>,
    state: Mutex<CommitState>,
    /// Notified when a transaction gives up the right to write.
    free: Condvar,
    /// The journal, or the reason why the database is read-only.
    journal: Result<Box<dyn Journal>, String>,
}

struct CommitState {
    busy: bool,
    head: Snapshot,
    /// Prepared snapshots that are not known to be durable, ascending.
    waiting: VecDeque<Arc<PreparedSnapshot>>,
    /// Number of rollbacks of `head`.
    rollbacks: u64,
}

/// A snapshot whose record was passed to the journal.
struct PreparedSnapshot {
    snapshot: Snapshot,
    ticket: Mutex<Option<Box<dyn Ticket>>>,
    outcome: OnceLock<Result<(), Arc<Error>>>,
}

impl PreparedSnapshot {
    /// Blocks until the record is durable or has failed. Any number of threads may wait.
    fn wait(&self) -> Result<(), Arc<Error>> {
        let mut ticket = sync::lock(&self.ticket);
        if let Some(ticket) = ticket.take() {
            let _ = self.outcome.set(ticket.wait().map_err(Arc::new));
        }
        drop(ticket);
        let outcome = self.outcome.get().cloned();
        outcome.invariant("who takes the ticket sets the outcome")
    }
}

impl Writer {
    /// Creates a writer whose first snapshot is already durable.
    pub(crate) fn new(snapshot: Snapshot, journal: Result<Box<dyn Journal>, String>) -> Self {
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            state: Mutex::new(CommitState {
                busy: false,
                head: snapshot,
                waiting: VecDeque::new(),
                rollbacks: 0,
            }),
            free: Condvar::new(),
            journal,
        }
    }

    /// The published snapshot, which queries read.
    pub(crate) fn published(&self) -> Snapshot {
        Snapshot::clone(&self.published.load())
    }

    /// The snapshot over which the next transaction would be evaluated.
    pub(crate) fn head(&self) -> Snapshot {
        self.lock().head.clone()
    }

    /// Publishes a snapshot that this writer did not evaluate: of a read-only database whose store another process has
    /// changed, or the next one of a replica, also on the server that wrote the group.
    pub(crate) fn follow(&self, snapshot: Snapshot) {
        let mut state = self.lock();
        self.published.store(Arc::new(snapshot.clone()));
        state.head = snapshot;
    }

    /// # Errors
    /// [`Error::ReadOnly`] with the reason.
    pub(crate) fn is_writable(&self) -> Result<()> {
        self.journal().map(drop)
    }

    pub(crate) fn journal(&self) -> Result<&dyn Journal> {
        match &self.journal {
            Ok(journal) => Ok(&**journal),
            Err(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    /// Calls `act` with `head` while no transaction is evaluated and all earlier ones are durable or have failed. If
    /// `act` returns a snapshot, which must have the same content as `head`, that snapshot replaces `head` and the
    /// published one.
    pub(crate) fn exclusively<T>(
        &self,
        cancel: &CancelToken,
        act: impl FnOnce(&Snapshot) -> Result<(Option<Snapshot>, T)>,
    ) -> Result<T> {
        let mut permit = self.acquire(cancel)?;
        let last = self.lock().waiting.back().cloned();
        if let Some(last) = last {
            // The committing threads receive the error; here only a possible rollback of `head` matters.
            let _ = self.settle(&last);
        }
        let head = self.lock().head.clone();
        let (next, out) = act(&head)?;
        if let Some(next) = next {
            let mut state = self.lock();
            self.published.store(Arc::new(next.clone()));
            state.head = next;
        }
        permit.end();
        Ok(out)
    }

    pub(crate) fn log_status(&self) -> Option<jindou_log::Status> {
        self.journal.as_ref().ok()?.status()
    }

    fn lock(&self) -> MutexGuard<'_, CommitState> {
        sync::lock(&self.state)
    }

    /// Waits for the exclusive right to write, which lasts until the returned permit is dropped.
    pub(crate) fn acquire(&self, cancel: &CancelToken) -> Result<WritePermit<&Self>> {
        Self::acquire_owned(self, cancel)
    }

    /// Like [`Self::acquire`], but the permit owns its reference to the writer.
    pub(crate) fn acquire_owned<W: Deref<Target = Self>>(
        writer: W,
        cancel: &CancelToken,
    ) -> Result<WritePermit<W>> {
        writer.is_writable()?;
        let mut state = writer.lock();
        while state.busy {
            cancel.check()?;
            state = writer
                .free
                .wait_timeout(state, POLL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        cancel.check()?;
        state.busy = true;
        let (head, rollbacks) = (state.head.clone(), state.rollbacks);
        drop(state);
        Ok(WritePermit {
            writer,
            head,
            rollbacks,
            over: false,
        })
    }

    /// Blocks until a prepared snapshot is durable, and publishes it; if its record failed, rolls back `head`.
    fn settle(&self, prepared: &Arc<PreparedSnapshot>) -> Result<u64> {
        let outcome = prepared.wait();
        let number = prepared.snapshot.number();
        match outcome {
            Ok(()) => {
                self.publish(&prepared.snapshot);
                let mut state = self.lock();
                // Earlier snapshots are durable as well, since records become durable in order.
                while state.waiting.front().is_some_and(|w| {
                    same_epoch(&w.snapshot, &prepared.snapshot) && w.snapshot.number() <= number
                }) {
                    state.waiting.pop_front();
                }
                Ok(number)
            }
            Err(e) => {
                self.fall_back(prepared);
                Err(e.duplicate())
            }
        }
    }

    fn publish(&self, snapshot: &Snapshot) {
        let next = Arc::new(snapshot.clone());
        // Records become durable in order, so a later snapshot, which includes this one, may already be published. A
        // snapshot of another epoch is published only after all snapshots of the earlier epoch are durable.
        self.published.rcu(|published| {
            if same_epoch(published, snapshot) && published.number() < snapshot.number() {
                Arc::clone(&next)
            } else {
                Arc::clone(published)
            }
        });
    }

    /// Rolls back `head` to the last durable snapshot, once for all snapshots that failed together.
    fn fall_back(&self, failed: &Arc<PreparedSnapshot>) {
        let mut state = self.lock();
        if !state.waiting.iter().any(|w| Arc::ptr_eq(w, failed)) {
            return;
        }
        // This does not block for long: since one record failed, the outcomes of all others are known, or will be at
        // once.
        while let Some(next) = state.waiting.front() {
            if next.wait().is_err() {
                break;
            }
            self.publish(&next.snapshot);
            state.waiting.pop_front();
        }
        state.waiting.clear();
        state.head = self.published();
        state.rollbacks += 1;
        if let Ok(journal) = &self.journal {
            // If the journal cannot resume yet, it refuses further records with the reason.
            let _ = journal.reset(state.head.number());
        }
    }
}

fn same_epoch(a: &Snapshot, b: &Snapshot) -> bool {
    a.base().epoch() == b.base().epoch()
}

/// The exclusive right to write, held by the transaction that is being evaluated. Dropping it changes nothing.
pub(crate) struct WritePermit<W: Deref<Target = Writer>> {
    writer: W,
    head: Snapshot,
    rollbacks: u64,
    over: bool,
}

impl<W: Deref<Target = Writer>> WritePermit<W> {
    /// The snapshot with which the transaction begins.
    pub(crate) fn head(&self) -> &Snapshot {
        &self.head
    }

    /// Passes the next snapshot's record to the journal, gives up the right to write, and blocks until the snapshot is
    /// durable and published. Returns its number.
    ///
    /// # Errors
    /// The journal's errors. In that case nothing is changed.
    pub(crate) fn commit(mut self, snapshot: Snapshot, record: Vec<u8>) -> Result<u64> {
        let journal = self.writer.journal()?;
        let mut state = self.writer.lock();
        if state.rollbacks != self.rollbacks {
            return Err(Error::Conflict(
                "a transaction that this one depends on could not be written; nothing was changed: try again".into(),
            ));
        }
        let ticket = match journal.append(snapshot.number(), record) {
            Ok(ticket) => ticket,
            Err(e) => {
                if state.waiting.is_empty() {
                    let _ = journal.reset(state.head.number());
                }
                return Err(e);
            }
        };
        let prepared = Arc::new(PreparedSnapshot {
            snapshot: snapshot.clone(),
            ticket: Mutex::new(Some(ticket)),
            outcome: OnceLock::new(),
        });
        state.head = snapshot;
        state.waiting.push_back(Arc::clone(&prepared));
        drop(state);
        self.end();
        self.writer.settle(&prepared)
    }

    /// Ends a transaction that changes nothing, once the data that it read is durable.
    pub(crate) fn commit_nothing(mut self) -> Result<u64> {
        let last = self.writer.lock().waiting.back().cloned();
        self.end();
        match last {
            Some(last) => self.writer.settle(&last),
            None => Ok(self.head.number()),
        }
    }

    /// Blocks until all prepared snapshots are durable or have failed. Returns the published snapshot, which is then
    /// `head`.
    pub(crate) fn wait_until_durable(&self) -> Snapshot {
        loop {
            let last = self.writer.lock().waiting.back().cloned();
            match last {
                // The committing threads receive the error, and `head` is rolled back.
                Some(last) => drop(self.writer.settle(&last)),
                None => return self.writer.published(),
            }
        }
    }

    /// Replaces `head` by an equal snapshot of another base, which must be durable, and gives up the right to write.
    /// The journal must accept the next record.
    pub(crate) fn replace(mut self, snapshot: Snapshot) {
        {
            let mut state = self.writer.lock();
            state.head = snapshot.clone();
            self.writer.published.store(Arc::new(snapshot));
        }
        self.end();
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.over, true) {
            self.writer.lock().busy = false;
            self.writer.free.notify_one();
        }
    }
}

impl<W: Deref<Target = Writer>> Drop for WritePermit<W> {
    fn drop(&mut self) {
        self.end();
    }
}
