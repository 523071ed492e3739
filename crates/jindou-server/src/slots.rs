//! Limits on the number of queries that compute at the same time. A query that waits for its reader releases its slot,
//! so that slow readers cost memory and a sleeping thread, but no processor core.
//!
//! Light queries have slots of their own. A heavy query uses one of the computing slots of the database's runtime,
//! which has one per thread; helper threads of heavy queries use these as well.

use crate::live::LiveQuery;
use jindou::{Error, Result, WorkerPool, Workers};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The slots of light and of heavy queries. Light queries never wait for heavy ones.
pub(crate) struct Slots {
    light: Arc<Semaphore>,
    /// Slots of heavy queries; `None` if as many heavy queries may run as the runtime has computing slots.
    heavy: Option<Arc<Semaphore>>,
    /// Permits for planning a text for a short time.
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

    /// Waits for a permit to plan a text for a short time, in order of arrival. Ends with an error when the query's
    /// time is over or it is cancelled.
    pub(crate) fn planning(&self, query: &LiveQuery) -> Result<SemaphorePermit<'_>> {
        if let Ok(turn) = self.planning.try_acquire() {
            return Ok(turn);
        }
        let turn = query.wait_for(self.planning.acquire())?;
        turn.map_err(|_| Error::Internal("the server's slots are closed".into()))
    }

    /// A slot that is not held yet.
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

/// One query's slot. The query's own thread takes and drops it; any of the query's threads that waits for the reader
/// releases it meanwhile.
pub(crate) struct QuerySlot {
    of: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
    workers: Workers,
    /// True if the thread must also take a computing slot of the runtime: for a heavy query, or if it held one before
    /// it waited.
    wants_place: bool,
}

impl QuerySlot {
    /// Waits for the slot, in order of arrival. Ends with an error when the query's time is over or it is cancelled.
    /// Must never be called on a network thread.
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

    /// Releases the slot while the query waits. Also releases the computing slot that this thread may hold, and
    /// remembers that it needs one to continue: helper threads of a light query hold one, too.
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
