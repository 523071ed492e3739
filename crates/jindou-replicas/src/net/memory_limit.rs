//! Memory limit for messages from one server. It covers messages while they are received, until the driver takes them,
//! and updates and groups until the machine has finished with them.

use crate::machine::{Message, RequestKey};
use crate::peers::MessageMemory;
use jindou_model::sync;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Time after which the memory of a forwarded update is released even if the machine never answers the update.
const FORWARDED: Duration = Duration::from_secs(2 * 3600);
/// Number of bytes per semaphore permit.
const UNIT: usize = 1024;

pub(super) struct MemoryLimit {
    units: Arc<Semaphore>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    updates: HashMap<RequestKey, (MessageMemory, Instant)>,
    groups: BTreeMap<u64, MessageMemory>,
}

impl MemoryLimit {
    /// Creates a limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units)),
            kept: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        sync::lock(&self.kept)
    }

    /// Reserves this many bytes; `None` if they are not available.
    pub fn reserve(&self, bytes: usize) -> Option<MessageMemory> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).ok()?;
        let take = || self.units.clone().try_acquire_many_owned(units).ok();
        let permit = take().or_else(|| {
            let now = Instant::now();
            let old = |at: Instant| now.duration_since(at) > FORWARDED;
            self.lock().updates.retain(|_, (_, at)| !old(*at));
            take()
        });
        permit.map(MessageMemory::new)
    }

    /// Keeps the memory of a message reserved after the driver has taken the message.
    pub fn received(&self, message: &Message, held: &MessageMemory) {
        let mut kept = self.lock();
        match message {
            Message::Forward(request, ..) => {
                (kept.updates).insert(request.key, (held.clone(), Instant::now()));
            }
            Message::Proposed(group) => drop(kept.groups.insert(group.number, held.clone())),
            _ => {}
        }
    }

    /// Releases the memory of requests that the machine has finished, as shown by its outgoing messages.
    pub fn sent(&self, message: &Message) {
        let mut kept = self.lock();
        match message {
            Message::Outcome(key, _) | Message::NotWriter(key, ..) => {
                kept.updates.remove(key);
            }
            Message::Beat(beat) => {
                kept.groups = kept.groups.split_off(&beat.committed.saturating_add(1));
            }
            _ => {}
        }
    }

    /// Number of available bytes.
    #[cfg(test)]
    pub fn available(&self) -> usize {
        self.units.available_permits() * UNIT
    }
}
