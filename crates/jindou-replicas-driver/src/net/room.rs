//! Memory that one server's messages take here: while they are put together, until the driver has them, and, of updates
//! and groups, until the machine is done with them.

use crate::peers::Held;
use jindou_replicas::{Message, RequestKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Time after which the machine has given up an update that was forwarded to it, if it never says so.
const FORWARDED: Duration = Duration::from_secs(2 * 3600);
/// Bytes of a permit.
const UNIT: usize = 1024;

pub(super) struct Room {
    units: Arc<Semaphore>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    updates: HashMap<RequestKey, (Held, Instant)>,
    groups: BTreeMap<u64, Held>,
}

impl Room {
    /// Room for this number of bytes.
    pub fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units)),
            kept: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for this number of bytes, if there is any.
    pub fn take(&self, bytes: usize) -> Option<Held> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).ok()?;
        let take = || self.units.clone().try_acquire_many_owned(units).ok();
        let permit = take().or_else(|| {
            let now = Instant::now();
            let old = |at: Instant| now.duration_since(at) > FORWARDED;
            self.lock().updates.retain(|_, (_, at)| !old(*at));
            take()
        });
        permit.map(Held::new)
    }

    /// Keeps the room of a message that the machine is about to get.
    pub fn received(&self, message: &Message, held: &Held) {
        let mut kept = self.lock();
        match message {
            Message::Forward(request, ..) => {
                (kept.updates).insert(request.key, (held.clone(), Instant::now()));
            }
            Message::Proposed(group) => drop(kept.groups.insert(group.number, held.clone())),
            _ => {}
        }
    }

    /// Gives back the room of what the machine is done with, by what it says.
    pub fn sent(&self, message: &Message) {
        let mut kept = self.lock();
        match message {
            Message::Outcome(key, _) | Message::NotHere(key, ..) => {
                kept.updates.remove(key);
            }
            Message::Beat(beat) => {
                kept.groups = kept.groups.split_off(&beat.committed.saturating_add(1));
            }
            _ => {}
        }
    }

    /// Bytes that are free.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.units.available_permits() * UNIT
    }
}
