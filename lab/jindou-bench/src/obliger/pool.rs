//! Helpers of a heavy query: other workers of the scheduler, up to a limit.

use super::sync::{AtomicUsize, HelpCalls, Ordering, fence};
use jindou::{Main, WorkerPool};

/// Counts the workers that work on heavy queries, and holds the calls for more.
pub(crate) struct Heavy {
    calls: HelpCalls,
    /// Number of workers that work on heavy queries; at most `most`.
    at_work: AtomicUsize,
    most: usize,
    /// Wakes up to this many workers; set once.
    wake: std::sync::OnceLock<Box<dyn Fn(usize) + Send + Sync>>,
}

impl std::fmt::Debug for Heavy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heavy")
            .field("calls", &self.calls)
            .field("at_work", &self.at_work)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl Heavy {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            calls: HelpCalls::default(),
            at_work: AtomicUsize::new(0),
            most: most.max(1),
            wake: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn on_wanted(&self, wake: Box<dyn Fn(usize) + Send + Sync>) {
        let _ = self.wake.set(wake);
    }

    /// True if a query asks for a helper. Cheap, so that workers check it first.
    pub(crate) fn is_wanted(&self) -> bool {
        self.calls.are_wanted()
    }

    /// Helps the query that has asked longest; false if none asks. The caller must have called [`Self::enter`].
    pub(crate) fn help(&self) -> bool {
        self.calls.help(|| false)
    }

    /// Counts the caller among the workers at heavy queries; false if there are `most` already.
    pub(crate) fn enter(&self) -> bool {
        self.at_work
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < self.most).then_some(n + 1)
            })
            .is_ok()
    }

    /// Undoes [`Self::enter`]. Because of the fence, a thread that then looks for work sees jobs pushed by threads that
    /// found the limit reached.
    pub(crate) fn leave(&self) {
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// True if another worker may work on heavy queries.
    pub(crate) fn has_place(&self) -> bool {
        self.at_work.load(Ordering::Relaxed) < self.most
    }
}

impl WorkerPool for Heavy {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        self.calls.work(help, &mut |ask| {
            main(&mut |helpers| {
                ask(helpers);
                if helpers == 0 {
                    return;
                }
                // A worker that is about to sleep checks `is_wanted` after a fence of its own. So either it sees this
                // call, or it is seen as asleep and woken below.
                fence(Ordering::SeqCst);
                if let Some(wake) = self.wake.get() {
                    wake(helpers);
                }
            });
        });
    }
}
