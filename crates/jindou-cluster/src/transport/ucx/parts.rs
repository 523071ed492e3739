//! The parts of an operation in progress, and the thread that sleeps until there are none.

use super::sync::{AtomicBool, AtomicU32, Mutex, Ordering, PoisonError, Thread, current, fence};

/// Counter of parts that other threads complete, with at most one thread that waits for the last of them.
#[derive(Default)]
pub(super) struct PendingParts {
    remaining: AtomicU32,
    parked: AtomicBool,
    sleeper: Mutex<Option<Thread>>,
}

impl PendingParts {
    /// True once all parts are complete; everything written before is then visible.
    #[inline]
    pub(super) fn done(&self) -> bool {
        self.remaining.load(Ordering::Acquire) == 0
    }

    /// Counts one more.
    pub(super) fn begin(&self) {
        self.remaining.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one less, and wakes the thread that sleeps for the last one.
    pub(super) fn end(&self) {
        if self.remaining.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // The fences here and in `park` have one order: either this thread sees that the other one is parked, or that
        // one sees that nothing remains. With acquire and release alone, both could look before they announce
        // themselves.
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) {
            let sleeper = self.sleeper.lock();
            if let Some(sleeper) = sleeper.unwrap_or_else(PoisonError::into_inner).take() {
                sleeper.unpark();
            }
        }
    }

    /// Calls `sleep` unless all parts are complete. The last part to complete wakes the thread by its token.
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
