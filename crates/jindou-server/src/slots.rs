//! How many queries compute at once. A query that waits for its reader gives its slot back, so that slow readers cost
//! memory and a sleeping thread, and never the machine's cores.

use crate::live::LiveQuery;
use jindou::Result;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of light and of heavy queries: light ones never wait for heavy ones.
pub(crate) struct Slots {
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

impl Slots {
    pub(crate) fn new(light: usize, heavy: usize) -> Self {
        let semaphore = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            light: semaphore(light),
            heavy: semaphore(heavy),
        }
    }

    /// A slot that is not taken yet.
    pub(crate) fn slot(&self, light: bool) -> Slot {
        let of = if light { &self.light } else { &self.heavy };
        Slot {
            of: Arc::clone(of),
            permit: None,
        }
    }
}

/// One query's place among those that compute.
pub(crate) struct Slot {
    of: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Slot {
    /// Waits for the slot, first come first served, until the query's deadline or its cancellation. Called on the query's own thread.
    pub(crate) fn take(&mut self, query: &LiveQuery) -> Result<()> {
        if self.permit.is_none() {
            self.permit = match Arc::clone(&self.of).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => Some(
                    query
                        .wait_for(Arc::clone(&self.of).acquire_owned())?
                        .map_err(|_| {
                            jindou::Error::Internal("the server's slots are closed".into())
                        })?,
                ),
            };
        }
        Ok(())
    }

    /// Gives it back for the time being.
    pub(crate) fn give_back(&mut self) {
        self.permit = None;
    }
}
