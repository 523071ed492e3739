//! Helpers of a heavy query: the scheduler's other workers, as many as are let.

use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError, fence};
use jindou_engine::{Main, WorkerPool};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Workers that are at heavy queries, and those who ask for more.
pub(crate) struct Heavy {
    asked: Mutex<VecDeque<Arc<Help>>>,
    /// Helpers that are wanted now: what workers look at first.
    pub(crate) wanted: AtomicUsize,
    /// Workers at heavy queries.
    at_work: AtomicUsize,
    most: usize,
    /// Wakes workers; set once.
    wake: std::sync::OnceLock<Box<dyn Fn(usize) + Send + Sync>>,
}

impl std::fmt::Debug for Heavy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heavy")
            .field("wanted", &self.wanted)
            .field("at_work", &self.at_work)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

/// One call for help.
struct Help {
    /// Valid while `running > 0 || wanted > 0`: see [`Asked::drop`].
    call: *const (dyn Fn() + Sync),
    state: Mutex<PoolState>,
    over: Condvar,
}

#[derive(Default)]
struct PoolState {
    wanted: usize,
    running: usize,
    /// No one may come any more.
    withdrawn: bool,
}

// SAFETY: `call` points to something `Sync`, and is only called while its owner waits (see `Asked`); everything else is
// `Send` and `Sync` by itself.
unsafe impl Send for Help {}
// SAFETY: as above.
unsafe impl Sync for Help {}

impl Help {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heavy {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            asked: Mutex::default(),
            wanted: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            most: most.max(1),
            wake: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn on_wanted(&self, wake: Box<dyn Fn(usize) + Send + Sync>) {
        let _ = self.wake.set(wake);
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Help>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call for this many helpers in the queue, if it is not withdrawn.
    fn ask(&self, help: &Arc<Help>, helpers: usize) {
        let mut all = self.lock();
        let mut state = help.lock();
        if state.withdrawn {
            return;
        }
        state.wanted += helpers;
        drop(state);
        if !all.iter().any(|h| Arc::ptr_eq(h, help)) {
            all.push_back(Arc::clone(help));
        }
        self.wanted.fetch_add(helpers, Ordering::SeqCst);
    }

    /// Helps the query that has asked longest; false if none wants help. The caller has a place. Where it gave way to others in
    /// the middle (`gave_way` afterwards), the query still wants that help.
    pub(crate) fn help(&self, gave_way: impl FnOnce() -> bool) -> bool {
        let help = {
            let mut asked = self.lock();
            loop {
                let Some(help) = asked.front() else {
                    return false;
                };
                let mut state = help.lock();
                if state.wanted > 0 {
                    state.wanted -= 1;
                    state.running += 1;
                    self.wanted.fetch_sub(1, Ordering::Relaxed);
                    drop(state);
                    break Arc::clone(help);
                }
                drop(state);
                asked.pop_front();
            }
        };
        // SAFETY: `running` was raised under the lock while `wanted` was above zero, so the owner of the call has not
        // returned, and waits in `Asked::drop` until `running` is zero again.
        let call = unsafe { &*help.call };
        // The engine catches panics of its own; none may pass here, or the owner would wait for ever.
        let _ = catch_unwind(AssertUnwindSafe(call));
        if gave_way() {
            self.ask(&help, 1);
        }
        // The last of it: the owner may return and go as soon as it sees this.
        let mut state = help.lock();
        state.running -= 1;
        drop(state);
        help.over.notify_all();
        true
    }
}

/// Withdraws a call for help, and waits for those who came, however its scope is left.
struct Asked<'h> {
    heavy: &'h Heavy,
    help: Arc<Help>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut state = self.help.lock();
        self.heavy.wanted.fetch_sub(state.wanted, Ordering::Relaxed);
        (state.wanted, state.withdrawn) = (0, true);
        while state.running > 0 {
            state = self
                .help
                .over
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.heavy.lock().retain(|h| !Arc::ptr_eq(h, &self.help));
    }
}

impl WorkerPool for Heavy {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        let call: *const (dyn Fn() + Sync + '_) = help;
        // SAFETY: only the lifetime changes. The pointer is read while `running > 0`, and `Asked::drop`, which runs before
        // this function returns or unwinds, waits until that is over for good.
        let call: *const (dyn Fn() + Sync + 'static) = unsafe { std::mem::transmute(call) };
        let asked = Asked {
            heavy: self,
            help: Arc::new(Help {
                call,
                state: Mutex::default(),
                over: Condvar::new(),
            }),
        };
        main(&mut |helpers| {
            if helpers == 0 {
                return;
            }
            self.ask(&asked.help, helpers);
            // Workers that lie down look at `wanted` after a fence of theirs: one of the two sees the other.
            fence(Ordering::SeqCst);
            if let Some(wake) = self.wake.get() {
                wake(helpers);
            }
        });
        drop(asked);
    }
}
