//! Limits of the queries that compute at once. A query that waits for its reader gives its slot back, so that slow
//! readers cost memory and a sleeping thread, but never cores.
//!
//! Light queries have slots of their own. A heavy query computes in one of the places of the database's runtime, which
//! has as many as threads and shares them with the threads that help heavy queries.

use crate::live::LiveQuery;
use jindou::{Error, Result, WorkerPool, Workers};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The slots of light and of heavy queries: light ones never wait for heavy ones.
pub(crate) struct Slots {
    light: Arc<Semaphore>,
    /// Slots of heavy queries, if they are fewer than the runtime's places.
    heavy: Option<Arc<Semaphore>>,
    /// Permits for texts being planned, for a moment each.
    planning: Semaphore,
    workers: Workers,
}

impl Slots {
    pub(crate) fn new(light: usize, heavy: usize, workers: &Workers) -> Self {
        let semaphore = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            light: semaphore(light),
            heavy: (heavy < workers.places()).then(|| semaphore(heavy)),
            planning: Semaphore::new(workers.places().max(2)),
            workers: workers.clone(),
        }
    }

    /// Waits for permission to plan for a short time, first come, first served, until the query's deadline or its
    /// cancellation.
    pub(crate) fn planning(&self, query: &LiveQuery) -> Result<SemaphorePermit<'_>> {
        if let Ok(turn) = self.planning.try_acquire() {
            return Ok(turn);
        }
        let turn = query.wait_for(self.planning.acquire())?;
        turn.map_err(|_| Error::Internal("the server's slots are closed".into()))
    }

    /// A slot that has not been taken yet.
    pub(crate) fn slot(&self, light: bool) -> QuerySlot {
        QuerySlot {
            of: match light {
                true => Some(Arc::clone(&self.light)),
                false => self.heavy.clone(),
            },
            permit: None,
            workers: self.workers.clone(),
            wants_place: !light,
        }
    }
}

/// One query's slot. It is taken and dropped on the query's own thread, and given back by whichever of its threads
/// waits.
pub(crate) struct QuerySlot {
    of: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
    workers: Workers,
    /// True if the thread holds a computing slot of the runtime, or held one before it waited.
    wants_place: bool,
}

impl QuerySlot {
    /// Waits for the slot, first come, first served, until the query's deadline or its cancellation. Must never be
    /// called on a thread of the network.
    pub(crate) fn take(&mut self, query: &LiveQuery) -> Result<()> {
        if let (None, Some(of)) = (&self.permit, &self.of) {
            self.permit = match Arc::clone(of).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => Some(
                    query
                        .wait_for(Arc::clone(of).acquire_owned())?
                        .map_err(|_| Error::Internal("the server's slots are closed".into()))?,
                ),
            };
        }
        if self.wants_place {
            let token = query.token().limited(query.left());
            let entered = self.workers.enter(&token).map(|_| ());
            entered.map_err(|e| match e {
                Error::Timeout(_) => Error::Timeout(query.limit()),
                e => e,
            })?;
        }
        Ok(())
    }

    /// Releases the slot temporarily, along with this thread's computing slot: a light query's helpers have one, and
    /// need it again to continue.
    pub(crate) fn give_back(&mut self) {
        self.permit = None;
        self.wants_place = self.workers.is_inside();
        self.workers.leave();
    }
}

impl Drop for QuerySlot {
    fn drop(&mut self) {
        self.workers.leave();
    }
}
