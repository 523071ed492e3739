//! Counting of the pending parts of an operation, and waking up the thread that waits for the last one.

use super::sync::{AtomicBool, AtomicU32, Mutex, Ordering, PoisonError, Thread, current, fence};

/// Number of parts that other threads complete, with at most one thread that waits for the last of them.
#[derive(Default)]
pub(super) struct PendingParts {
    remaining: AtomicU32,
    parked: AtomicBool,
    sleeper: Mutex<Option<Thread>>,
}

impl PendingParts {
    /// True once all parts are complete. All data that was written before is then visible.
    #[inline]
    pub(super) fn done(&self) -> bool {
        self.remaining.load(Ordering::Acquire) == 0
    }

    /// Counts another pending part.
    pub(super) fn begin(&self) {
        self.remaining.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the completion of a part. If it was the last one, wakes up the waiting thread.
    pub(super) fn end(&self) {
        if self.remaining.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // The fences here and in `park` are totally ordered. So either this thread sees that the other one is parked,
        // or the other one sees that no part remains. With acquire and release only, both could read before they see
        // the other's write.
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) {
            let sleeper = self.sleeper.lock();
            if let Some(sleeper) = sleeper.unwrap_or_else(PoisonError::into_inner).take() {
                sleeper.unpark();
            }
        }
    }

    /// Calls `sleep` unless all parts are complete. The completion of the last part unparks the thread.
    pub(super) fn park(&self, sleep: impl FnOnce()) {
        *self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(current());
        self.parked.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.done() {
            sleep();
        }
        self.parked.store(false, Ordering::Relaxed);
    }
}
