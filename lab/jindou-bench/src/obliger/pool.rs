//! Helpers of a heavy query: the scheduler's other workers, as many as are let.

use super::sync::{AtomicUsize, HelpCalls, Ordering, fence};
use jindou::{Main, WorkerPool};

/// Workers that are at heavy queries, and calls for more.
pub(crate) struct Heavy {
    calls: HelpCalls,
    /// Workers at heavy queries.
    at_work: AtomicUsize,
    most: usize,
    /// Wakes workers; set once.
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

    /// True if a helper is wanted now, which workers check first.
    pub(crate) fn is_wanted(&self) -> bool {
        self.calls.are_wanted()
    }

    /// Helps the query that has asked longest; false if none wants help. The caller has a place.
    pub(crate) fn help(&self) -> bool {
        self.calls.help(|| false)
    }

    /// A place among the workers at heavy queries.
    pub(crate) fn enter(&self) -> bool {
        self.at_work
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < self.most).then_some(n + 1)
            })
            .is_ok()
    }

    /// Gives the place back. A thread that then looks for work sees what was pushed by one that found no place.
    pub(crate) fn leave(&self) {
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// True if another worker may go to heavy queries.
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
                // Workers that lie down look at `is_wanted` after a fence of theirs: one of the two sees the other.
                fence(Ordering::SeqCst);
                if let Some(wake) = self.wake.get() {
                    wake(helpers);
                }
            });
        });
    }
}
