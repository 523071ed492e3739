//! A single writer at a time; snapshots wait for the journal and are published in order.
//!
//! `head` is the last snapshot that was prepared. It may be ahead of the published one: while a record is on its way to
//! the disk the next transaction is already evaluated over it, so that several records share one write. If a record
//! fails, every snapshot after it fails as well, and `head` goes back to the last durable one.

use super::journal::{Journal, Ticket};
use arc_swap::ArcSwap;
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Invariant, Result};
use jindou_store::Snapshot;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Interval at which a transaction that waits for its turn checks its own deadline.
const LOOK: Duration = Duration::from_millis(20);

/// The published snapshot, the head that the next transaction is evaluated over, and the transactions between them that wait for the journal.
pub(crate) struct Writer {
    /// The snapshot that readers take at every query, without waiting for each other or for a writer.
    published: ArcSwap<Snapshot>,
    state: Mutex<CommitState>,
    /// Notified when a turn ends.
    free: Condvar,
    /// `Err` if the database is read-only, with the reason.
    journal: Result<Box<dyn Journal>, String>,
}

struct CommitState {
    busy: bool,
    head: Snapshot,
    /// Prepared snapshots not known to be durable, ascending.
    waiting: VecDeque<Arc<PreparedSnapshot>>,
    /// Number of times that `head` went back.
    falls: u64,
}

/// A snapshot that waits for the journal.
struct PreparedSnapshot {
    snapshot: Snapshot,
    ticket: Mutex<Option<Box<dyn Ticket>>>,
    outcome: OnceLock<Result<(), Arc<Error>>>,
}

impl PreparedSnapshot {
    /// Blocks until the journal has decided. Any number of threads may wait.
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
    /// A writer over a snapshot that is durable already.
    pub(crate) fn new(snapshot: Snapshot, journal: Result<Box<dyn Journal>, String>) -> Self {
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            state: Mutex::new(CommitState {
                busy: false,
                head: snapshot,
                waiting: VecDeque::new(),
                falls: 0,
            }),
            free: Condvar::new(),
            journal,
        }
    }

    /// The snapshot that queries read.
    pub(crate) fn published(&self) -> Snapshot {
        Snapshot::clone(&self.published.load())
    }

    /// The snapshot that the next transaction would be evaluated over.
    pub(crate) fn head(&self) -> Snapshot {
        self.lock().head.clone()
    }

    /// Publishes another snapshot of a read-only database, whose store another process has changed.
    pub(crate) fn follow(&self, snapshot: Snapshot) {
        let mut state = self.lock();
        self.published.store(Arc::new(snapshot.clone()));
        state.head = snapshot;
    }

    /// # Errors
    /// [`Error::ReadOnly`] with the reason.
    pub(crate) fn is_writable(&self) -> Result<()> {
        match &self.journal {
            Ok(_) => Ok(()),
            Err(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    pub(crate) fn journal(&self) -> Result<&dyn Journal> {
        match &self.journal {
            Ok(journal) => Ok(&**journal),
            Err(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    /// Calls `act` with `head` while no transaction is evaluated and all earlier ones are durable or have failed. If it
    /// returns a snapshot, which must have the same content, that replaces `head`, also for queries.
    pub(crate) fn quiet<T>(
        &self,
        cancel: &CancelToken,
        act: impl FnOnce(&Snapshot) -> Result<(Option<Snapshot>, T)>,
    ) -> Result<T> {
        let mut turn = self.turn(cancel)?;
        let last = self.lock().waiting.back().cloned();
        if let Some(last) = last {
            // The committing threads receive the outcome; only the position of `head` matters here.
            let _ = self.settle(&last);
        }
        let head = self.lock().head.clone();
        let (next, out) = act(&head)?;
        if let Some(next) = next {
            let mut state = self.lock();
            self.published.store(Arc::new(next.clone()));
            state.head = next;
        }
        turn.end();
        Ok(out)
    }

    pub(crate) fn log_status(&self) -> Option<jindou_log::Status> {
        self.journal.as_ref().ok()?.status()
    }

    fn lock(&self) -> MutexGuard<'_, CommitState> {
        sync::lock(&self.state)
    }

    /// Waits for the exclusive right to write, which lasts until the result is dropped.
    pub(crate) fn turn(&self, cancel: &CancelToken) -> Result<WriterTurn<&Self>> {
        Self::turn_of(self, cancel)
    }

    /// [`Self::turn`] that may hold the writer for as long as it lives.
    pub(crate) fn turn_of<W: Deref<Target = Self>>(
        writer: W,
        cancel: &CancelToken,
    ) -> Result<WriterTurn<W>> {
        writer.is_writable()?;
        let mut state = writer.lock();
        while state.busy {
            cancel.check()?;
            state = writer
                .free
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        cancel.check()?;
        state.busy = true;
        let (head, falls) = (state.head.clone(), state.falls);
        drop(state);
        Ok(WriterTurn {
            writer,
            head,
            falls,
            over: false,
        })
    }

    /// Blocks until a prepared snapshot is durable, and publishes it.
    fn settle(&self, prepared: &Arc<PreparedSnapshot>) -> Result<u64> {
        let outcome = prepared.wait();
        let number = prepared.snapshot.number();
        match outcome {
            Ok(()) => {
                self.publish(&prepared.snapshot);
                let mut state = self.lock();
                // The snapshots before it are durable as well.
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
        // Records become durable in order, so a later snapshot may have been published already, which includes this
        // one. A snapshot of another epoch was published only after all before it were durable.
        self.published.rcu(|published| {
            if same_epoch(published, snapshot) && published.number() < snapshot.number() {
                Arc::clone(&next)
            } else {
                Arc::clone(published)
            }
        });
    }

    /// Moves `head` back to the last durable snapshot, once for all snapshots that failed together.
    fn fall_back(&self, failed: &Arc<PreparedSnapshot>) {
        let mut state = self.lock();
        if !state.waiting.iter().any(|w| Arc::ptr_eq(w, failed)) {
            return;
        }
        // All of them are decided, or will be at once: one of them failed.
        while let Some(next) = state.waiting.front() {
            if next.wait().is_err() {
                break;
            }
            self.publish(&next.snapshot);
            state.waiting.pop_front();
        }
        state.waiting.clear();
        state.head = self.published();
        state.falls += 1;
        if let Ok(journal) = &self.journal {
            // A journal that cannot continue yet refuses further records, with the reason.
            let _ = journal.reset(state.head.number());
        }
    }
}

fn same_epoch(a: &Snapshot, b: &Snapshot) -> bool {
    a.base().epoch() == b.base().epoch()
}

/// The only transaction that is being evaluated. Dropped, it changes nothing.
pub(crate) struct WriterTurn<W: Deref<Target = Writer>> {
    writer: W,
    head: Snapshot,
    falls: u64,
    over: bool,
}

impl<W: Deref<Target = Writer>> WriterTurn<W> {
    /// The snapshot with which the transaction begins.
    pub(crate) fn head(&self) -> &Snapshot {
        &self.head
    }

    /// Hands the next snapshot over, ends the turn, and blocks until the snapshot is durable and published. Returns its
    /// number.
    ///
    /// # Errors
    /// The journal's errors: nothing was changed.
    pub(crate) fn commit(mut self, snapshot: Snapshot, record: Vec<u8>) -> Result<u64> {
        let journal = match &self.writer.journal {
            Ok(journal) => journal,
            Err(why) => return Err(Error::ReadOnly(why.clone())),
        };
        let mut state = self.writer.lock();
        if state.falls != self.falls {
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

    /// Ends the turn of a transaction that changes nothing, once the data that it saw is durable.
    pub(crate) fn nothing(mut self) -> Result<u64> {
        let last = self.writer.lock().waiting.back().cloned();
        self.end();
        match last {
            Some(last) => self.writer.settle(&last),
            None => Ok(self.head.number()),
        }
    }

    /// Blocks until all prepared snapshots are decided; returns the published snapshot, which is then `head`.
    pub(crate) fn settled(&self) -> Snapshot {
        loop {
            let last = self.writer.lock().waiting.back().cloned();
            match last {
                // The committing threads get the error, and `head` goes back.
                Some(last) => drop(self.writer.settle(&last)),
                None => return self.writer.published(),
            }
        }
    }

    /// Replaces `head` by an equal snapshot of another base, which is durable, and ends the turn. The journal must
    /// accept the record after it.
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

impl<W: Deref<Target = Writer>> Drop for WriterTurn<W> {
    fn drop(&mut self) {
        self.end();
    }
}
